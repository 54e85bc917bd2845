"""Templates of systems: each is a system as soon as it is copied, and none before that."""

import re
from pathlib import Path

import pytest

from tests.test_checks import LISTED, Session, cases, sample
from understudy.paths import ROOT, directories
from understudy.reframe import systems

TEMPLATES = sorted((ROOT / "configs" / "templates").glob("*.py"))
# Lines of the batch system, start, and options that a job of 4 ranks has on the first partition.
EXPECTED = {
    "slurm-gpu": ("#SBATCH --partition=gpu", "srun --kill-on-bad-exit=1 understudy-replay"),
    "pbs-beegfs": ("#PBS -l select=1:mpiprocs=16:ncpus=16", "mpiexec -n 16 understudy-replay"),
    "lsf-cephfs": ("#BSUB -q batch", "lrun -N 1 -T 16 understudy-replay"),
}


def test_templates_are_no_systems() -> None:
    assert {path.stem for path in TEMPLATES} == set(EXPECTED)
    rows, _ = systems.load(directories("systems"))
    assert not {row["name"] for row in rows} & set(EXPECTED)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_becomes_a_system_by_copying(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    assert text.count("EXAMPLE") >= 8
    folder = tmp_path / "site" / "systems"
    folder.mkdir(parents=True)
    (folder / path.name).write_text(text)
    session = Session(tmp_path, sample())
    session.program("understudy-replay", LISTED)
    session.environment["UNDERSTUDY_PATH"] = str(tmp_path / "site")
    done = session.run(
        "--dry-run",
        f"--system={path.stem}",
        names="^Replay%workload=sample%method=posix|^Sweep%workload=n-1%method=posix.*stripe_size",
    )
    assert done.returncode == 0 and "WARNING" not in done.stdout, done.stdout + done.stderr
    ran, failed, _ = cases(done.stdout)
    scripts = session.scripts()
    assert failed == 0 and ran == len(scripts) >= 4
    batch, start = EXPECTED[path.stem]
    assert any(batch in script for script in scripts), scripts[0]
    assert any(start in script for script in scripts), scripts[0]
    assert any(re.search("--stripe-size [0-9]+ ", script) for script in scripts)

"""The check of programs that others wrote: a real run of one, and what is said where none are."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.skel.test_skel_measure import CONFIG, SOURCE
from tests.support.player import needs
from understudy import result
from understudy.paths import ROOT
from understudy.report import cases, programs


def session(folder: Path, examples: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """ReFrame on the check, with the programs of a folder."""
    environment = {
        **os.environ,
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_PREFIX": str(folder / "reframe"),
        "RFM_REPORT_FILE": str(folder / "report.json"),
        "RFM_COLORIZE": "0",
        "UNDERSTUDY_ADIOS_EXAMPLES": str(examples),
    }
    reframe = [Path(sys.executable).parent / "reframe", "-c", ROOT / "checks" / "writers.py"]
    return subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', ROOT, *reframe, *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def program(examples: Path, name: str, old: str = "", new: str = "") -> None:
    """A program in a folder of its own, changed in one spot."""
    assert old in SOURCE
    folder = examples / name
    folder.mkdir(parents=True)
    text = SOURCE.replace(old, new, 1)
    for call in ("init", "open"):  # as those who write for ADIOS set it
        text = text.replace(f"adios_{call}(", f"adios_{call} (")
    (folder / f"{name}.c").write_text(text)
    (folder / "app.xml").write_text(CONFIG)


def test_only_programs_that_can_be_measured_are_taken(tmp_path: Path) -> None:
    program(tmp_path, "app")
    program(tmp_path, "declares", 'adios_init("app.xml", MPI_COMM_WORLD)',
            "adios_init_noxml(MPI_COMM_WORLD)")  # fmt: skip
    program(tmp_path, "reads", 'step && argc > 2 ? "a" : "w"', '"r"')
    done = session(tmp_path, tmp_path, "-l", "--system=localhost")
    found = re.findall(r"(?m)^- Writers %method=(\w+) %learned.writer=(\S+)", done.stdout)
    assert sorted(found) == [("MPI", "app/app"), ("POSIX", "app/app")], done.stdout


def test_a_program_is_run_in_turn_with_what_was_learned_from_it(tmp_path: Path) -> None:
    needs("adios")
    if shutil.which("bpls") is None:
        pytest.skip("there is no bpls here")
    program(tmp_path, "app", 'step && argc > 2 ? "a" : "w"', '"w"')
    done = session(
        tmp_path, tmp_path, "-r", "-v", "--mode=serial", "--system=localhost:tmpfs",
        "-n", "^Writers%method=POSIX", "-S", "Writers.pairs=2", "-S", "Writers.tolerance=1e6",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    said = done.stdout + done.stderr
    (verdict,) = re.findall(r"verdict: app/app POSIX 4 ranks localhost:tmpfs: (.*)", said)
    assert verdict.startswith("2 runs of 3 steps of 32,048 bytes, skeleton "), verdict
    kept = sorted((tmp_path / "reframe" / "output").rglob("result.json"))
    assert [path.parts[-3] for path in kept] == ["application"] * 2 + ["skeleton"] * 2
    for path in kept:
        (stream,) = result.load(path).repetitions[0].streams
        sizes = {n for d in stream.dumps if d.processes for n in d.processes.bytes}
        more = 256 if "skeleton" in path.parts else 0  # scalars that hold what differs
        assert len(stream.dumps) == 3 and min(sizes) >= 8012 and max(sizes) <= 8012 + more
    (study,) = cases.group(cases.load(cases.find([tmp_path / "reframe" / "output"])))
    (row,) = programs.accuracies(study)
    assert row.pairs == 2 and not row.reason
    assert not list(Path("/dev/shm").glob("understudy.*/skeleton"))


def test_without_programs_the_remedy_is_told(tmp_path: Path) -> None:
    done = session(
        tmp_path, tmp_path, "-r", "--system=localhost:tmpfs", "-n", "^Writers%method=MPI"
    )
    assert done.returncode == 0, done.stdout
    assert (
        f"{tmp_path}: no program that writes by ADIOS; install libadios-examples, or name another "
        "folder in UNDERSTUDY_ADIOS_EXAMPLES" in " ".join(done.stdout.split())
    ), done.stdout

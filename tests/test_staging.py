"""Where a session stages its cases: in directories of any name."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support import player
from tests.support.derived import derive
from tests.support.said import said
from tests.test_benchmark_producers import GOLDEN, SUMMARY, fake
from tests.test_checks import LISTED, ROOT, Session, cases, leave, of_this_job, played, sample
from understudy import producers

METHODS = ("posix", "mpiio", "hdf5", "adios", "adios2")


@pytest.fixture
def spaced(tmp_path: Path) -> Session:
    """All of a session below a directory with a space, and data in such a directory, too."""
    folder = tmp_path / "a 'b' $c"
    folder.mkdir()
    here = Session(folder, sample(ranks=2))
    (data := tmp_path / "data of all").mkdir()
    on_disk = f"if partition['name'] == 'disk': partition['extras']['scratch'] = {str(data)!r}"
    derive(folder / "site", "spaced", "localhost", on_disk)
    here.environment["UNDERSTUDY_PATH"] = str(folder / "site")
    here.environment["PATH"] = f"{Path(player.program()).parent}:{here.environment['PATH']}"
    here.environment["PATH"] = f"{here.bin}:{here.environment['PATH']}"
    return here


def records(session: Session) -> list[str]:
    """The producers of the runs that were kept, none of which failed."""
    kept = [producers.load(p) for p in (session.folder / "out" / "records").rglob("*.json.gz")]
    assert not any(run.failed for run in kept), [run.producer.failure for run in kept]
    return sorted(run.producer.name for run in kept)


@pytest.mark.parametrize("method", METHODS)
def test_a_replay_runs_in_a_directory_with_a_space(method: str, spaced: Session) -> None:
    player.needs(method)
    done = spaced.run(
        "-r",
        "--system=spaced:disk",
        "-S",
        "time_scale=0",
        "-P",
        f"method={method}",
        "-P",
        "workload=sample",
        "-P",
        "stripe_count=default",
        names="^Replay",
    )
    assert cases(done.stdout) == (1, 0, 0), done.stdout + done.stderr
    assert records(spaced) == ["player"]


def test_a_skeleton_runs_in_a_directory_with_a_space(spaced: Session) -> None:
    player.needs("adios")
    done = spaced.run(
        "-r",
        "--system=spaced:disk",
        "-S",
        "Skel.pairs=2",
        "-S",
        "Skel.repetitions=1",
        "-S",
        "Skel.tolerance_percent=1e6",
        names="^Skel%method=POSIX%ranks=2%ranks_per_aggregator=4%.*=chimera",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert records(spaced) == ["application"] * 4 + ["skeleton"] * 4  # each has its control


def test_benchmarks_run_in_a_directory_with_a_space(spaced: Session) -> None:
    (spaced.folder / "given.json").write_bytes((GOLDEN / "ior-4.0.0.json").read_bytes())
    (spaced.folder / "given.txt").write_bytes((GOLDEN / "mdtest-4.0.0-easy.txt").read_bytes())
    fake(spaced.bin, "ior", SUMMARY.format('"$RFM_PREFIX"/../given.json'))
    fake(
        spaced.bin,
        "mdtest",
        '[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 0; directory=$(sed -n 2p run-directory); '
        'cd "$RFM_PREFIX"/.. && sed "s|/dev/shm/g|$directory/benchmark|" given.txt; '
        'for w; do [ ! -d "$w" ] || echo "$w" >>told; done',
    )
    done = spaced.run(
        "-r",
        "--system=spaced:disk",
        "-S",
        "rounds=1",
        "-S",
        "Ior.block_bytes=1MiB",
        names="^(Ior%case=darshan|Mdtest%case=easy)%stripe_count=default",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert records(spaced) == ["ior", "mdtest"]
    [scratch] = {line.rpartition("/")[0] for line in _lines(spaced.folder / "told")}
    assert re.fullmatch(r".*/data of all/understudy\.\w+", scratch)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


WAIT = """
cd {folder}
if mkdir first 2>/dev/null; then
  until [ -e go ]; do sleep 0.05; done
fi
cd "$OLDPWD"
{print_measurements} >result.json
"""


def test_two_sessions_at_once_do_not_meet(spaced: Session) -> None:
    """The job of the first waits until the second has ended."""
    folder = spaced.folder
    leave(spaced, played(spaced.text, "posix", 0.1, "disk"))
    here = '"$RFM_PREFIX"/..'
    wait = WAIT.format(folder=here, print_measurements=of_this_job(f"{here}/made.json"))
    spaced.program("mpirun", wait)
    spaced.program("understudy-replay", LISTED)
    row = json.loads((folder / "made.json").read_text())
    row["environment"]["file_system"] = "ext4"
    leave(spaced, row)
    arguments = (
        "-r",
        "--system=spaced:disk",
        "-S",
        "time_scale=0.1",
        "-P",
        "method=posix",
        "-P",
        "workload=sample",
        "-P",
        "stripe_count=default",
    )
    reframe = [str(Path(sys.executable).parent / "reframe"), "-c", str(ROOT / "checks")]
    with (folder / "first.txt").open("w") as printed:
        first = subprocess.Popen(
            [*reframe, *arguments, "-n", "^Replay"],
            cwd=folder,
            env=spaced.environment,
            stdout=printed,
            stderr=subprocess.STDOUT,
        )
        while not (folder / "first").exists() and first.poll() is None:
            time.sleep(0.05)
        try:
            done = spaced.run(*arguments, names="^Replay")
        finally:
            (folder / "go").touch()
            status = first.wait()
    told = (folder / "first.txt").read_text()
    assert cases(told) == (1, 0, 0) and status == 0, told
    assert cases(done.stdout) == (1, 0, 0) and done.returncode == 0, done.stdout
    stage = folder / "reframe" / "stage"
    said("another-session-uses-this", done.stderr, stage=stage)
    assert len({path.parent for path in (folder / "out" / "records").rglob("*.json.gz")}) == 2
    assert not list((folder.parent / "data of all").iterdir())
    for output in ("output", "output-2"):
        assert len(list((folder / "reframe" / output).rglob("run.json"))) == 1
    after = spaced.run(*arguments, names="^Replay")
    assert (after.returncode, after.stderr) == (0, ""), "the directory is free again"


def test_a_session_in_a_directory_without_locks_has_its_own(spaced: Session) -> None:
    site = spaced.folder / "python"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import errno, fcntl\n"
        "def flock(*_):\n    raise OSError(errno.ENOLCK, 'no locks')\n"
        "fcntl.flock = flock\n"
    )
    spaced.environment["PYTHONPATH"] = str(site)
    spaced.program("understudy-replay", LISTED)
    done = spaced.run("--dry-run", "--system=spaced:disk", "-P", "method=posix", check="Replay")
    assert done.returncode == 0, done.stdout + done.stderr
    [stage] = (spaced.folder / "reframe").glob("stage-*")
    assert list(stage.rglob("rfm_job.sh")) and stage.name in done.stderr


def test_a_job_of_pbs_changes_to_a_directory_with_a_space(spaced: Session) -> None:
    spaced.program("understudy-replay", LISTED)
    done = spaced.run("--dry-run", "--system=archer", "-P", "method=posix", check="Replay")
    assert done.returncode == 0, done.stdout + done.stderr
    scripts = list((spaced.folder / "reframe" / "stage").rglob("rfm_job.sh"))
    assert scripts
    for script in scripts:
        [line] = [line for line in _lines(script) if line.startswith("cd ")]
        printed = subprocess.run(
            ["bash", "-c", f"{line} && pwd"], capture_output=True, text=True, check=True
        ).stdout
        assert printed.splitlines() == [str(script.parent)]

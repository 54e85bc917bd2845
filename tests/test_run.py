"""understudy run: every log is played, or named with the reason why it is not."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.readers.logs import ALL, TRACES
from tests.support.said import raises, said
from understudy.commands import run
from understudy.darshanlog import synthetic
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.readers import darshan
from understudy.reframe.session import replica_workloads

SMALL = TRACES / "trap_crash_merged.darshan"
Row = dict[str, str]
MOST_BYTES = 3 << 30  # of a replica of these logs


def place() -> str:
    """Memory where it has room, which is fast, else disk."""
    shm = Path("/dev/shm")
    room = shm.is_dir() and shutil.disk_usage(shm).free > 2 * MOST_BYTES
    return "localhost:tmpfs" if room else "localhost:disk"


def played(out: Path, *arguments: object) -> tuple[subprocess.CompletedProcess[str], list[Row]]:
    """The command, and the cases of its session."""
    command = [Path(sys.executable).parent / "understudy", "run", "--system", place(), *arguments]
    done = subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', ROOT, *map(str, command)],
        cwd=out,
        env=os.environ | {"UNDERSTUDY_OUTPUT": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    (report,) = out.glob("run-*/report.json")
    return done, json.loads(report.read_text())["runs"][0]["testcases"]


def test_every_log_of_ours_runs(tmp_path: Path) -> None:
    done, cases = played(tmp_path, "--partial", *ALL)
    printed = done.stdout + done.stderr
    assert re.search(r"^\d+ passed, 0 failed, \d+ skipped$", done.stdout, re.M), printed
    assert done.returncode == 0, printed
    passed = Counter(case["workload"] for case in cases if case["result"] == "pass")
    assert {name for name, n in passed.items() if n > 1} == {log.stem for log in ALL}


def log_of(path: Path, ranks: int, gib: int) -> Path:
    """A log of a job whose ranks write so many GiB each, some a quarter more."""
    job = synthetic.Synthetic(processes=ranks, file_bytes=gib << 30, transfer_bytes=1 << 28)
    synthetic.write(path, job)
    return path


def test_a_log_that_is_too_large_is_named(tmp_path: Path) -> None:
    """On the terminal and on the page alike, beside those that run."""
    large = log_of(tmp_path / "large.darshan", 1, 5)  # more than the limit, and room for it
    done, cases = played(tmp_path, SMALL, large)
    assert {c["workload"] for c in cases if c["result"] == "pass"} == {SMALL.stem}, done.stderr
    reason = "bytes exceed the limit of 4294967296 on localhost"
    told = [line for line in done.stderr.splitlines() if reason in line]
    assert told and all("%workload=large " in line for line in told)
    assert all("-S max_bytes=SIZE" in line for line in told)
    page = (tmp_path / "index.html").read_text()
    assert reason in page and "%workload=large " in page


def test_the_limit_is_an_option(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    described = darshan.read(log_of(tmp_path / "large.darshan", 16, 2), name="large")
    assert described.bytes > 16 << 31
    most = replica_workloads.most_bytes((), "serial")
    fitted = replica_workloads.fit(described, 64, most)
    assert (fitted.name, most) == ("large-weak-1", 4 << 30)
    assert 2 << 30 <= fitted.bytes <= most
    told = capsys.readouterr().err
    said("large-moves-gib-more", told)
    more = replica_workloads.most_bytes(("fsync=1", "max_bytes=100GiB"), "quick")
    assert replica_workloads.fit(described, 64, more) is described
    assert replica_workloads.fit(described, 8, more).name == "large-strong-4"
    with raises(UnderstudyError, "max-bytes-much-expected"):
        replica_workloads.most_bytes(("max_bytes=much",), "serial")


def test_a_workload_has_the_name_of_its_file(tmp_path: Path) -> None:
    for name in (
        "turbulence-512.darshan",
        "crash test.darshan",
        "alice_crash_id4711-4711_11-27-33133-77_1.darshan",
        "5394_hull.darshan",
        "5394.darshan",
    ):
        shutil.copy(SMALL, tmp_path / name)
    logs = sorted(tmp_path.iterdir())
    names = {log.name: name for name, log in replica_workloads.with_names((*logs, *logs[-1:]), ())}
    assert names == {
        "5394.darshan": "log",  # the job
        "5394_hull.darshan": "hull",
        "alice_crash_id4711-4711_11-27-33133-77_1.darshan": "darshan-2-ranks",
        "crash test.darshan": "crash-test",
        "turbulence-512.darshan": "turbulence-512-2",  # the second time
    }
    pair = tuple(logs[:2])
    names_given = [name for name, _ in replica_workloads.with_names(pair, ("a", "b"))]
    assert names_given == ["a", "b"]
    for given, fault in ((("a",), "one for each of 2"), (("a", "a"), "has this name")):
        with pytest.raises(UnderstudyError, match=fault):
            list(replica_workloads.with_names(pair, given))
    with pytest.raises(UnderstudyError, match="letters, digits"):
        list(replica_workloads.with_names((logs[0],), ("../x",)))


def test_a_log_that_is_none_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, out = tmp_path / "a.darshan", tmp_path / "out"
    log.write_text("no log")
    monkeypatch.setenv("UNDERSTUDY_OUTPUT", str(out))
    done = CliRunner().invoke(run.command, [str(SMALL), str(log)])
    assert done.exit_code != 0 and not list(out.glob("run-*"))


def test_a_trace_of_calls_is_not_shown_to_darshan(tmp_path: Path) -> None:
    """Of files that are opened by openat2, it records nothing: no runtime would help."""
    trace = tmp_path / "app.strace"
    trace.write_text(
        '7 1.0 openat(AT_FDCWD</d>, "a", O_WRONLY|O_CREAT, 0666) = 3</d/a> <0.00001>\n'
        '7 1.1 write(3</d/a>, ""..., 100) = 100 <0.000001>\n'
    )
    done, cases = played(tmp_path, "--mode", "quick", trace)
    assert re.search(r"^\d+ passed, 0 failed, \d+ skipped$", done.stdout, re.M), done.stderr
    said("darshan-does-see-openat", done.stderr)
    assert any(case["result"] == "pass" for case in cases)


# Stands in for ReFrame: a session that a signal ends.
SESSION = f"""#!{sys.executable}
import os, signal, sys, time
from pathlib import Path
parent = os.getppid()
signal.signal(signal.SIGTERM, lambda *_: (Path("ended").touch(), sys.exit(1)))
Path("plays").touch()
while os.getppid() == parent:
    time.sleep(1)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_reframe_before_the_command(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "reframe"
    program.write_text(SESSION)
    program.chmod(0o755)
    code = (
        "import signal, sys; from understudy.reframe.session import reframe_process; "
        "from understudy.cli import main; "
        f"signal.signal({number:d}, signal.SIG_DFL); "  # nohup ignores it
        f"reframe_process.program = lambda: {str(program)!r}; main(sys.argv[1:])"
    )
    with (tmp_path / "stderr").open("w") as out:
        running = subprocess.Popen(
            [sys.executable, "-c", code, "run", "--no-open", str(SMALL)],
            cwd=tmp_path,
            env=os.environ | {"UNDERSTUDY_OUTPUT": str(tmp_path / "out")},
            stderr=out,
        )
    while not (tmp_path / "plays").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    assert running.wait() == 128 + number
    assert (tmp_path / "ended").exists()
    stderr = (tmp_path / "stderr").read_text()
    assert stderr.count("ended by") == 1 and said("run-ended", stderr, number_name=number.name)

"""Record a job of several processes without MPI: a log of each, and the truth of all by strace.

DARSHAN_RUNTIME=… python -m tests.workshop.processes
"""

import os
import shutil
import subprocess
from pathlib import Path

from tests.workshop.live import BASE, HERE, SETTINGS, neutral
from tests.workshop.truth import TRACED, Truth, events, save, told

LOGS = HERE / "processes"
COUNT = 4
JOB = "4711"


def record(runtime: str, target: Path) -> Truth:
    """Run the processes at the same time; their logs go to the directory `target`."""
    folder, traces, raw = BASE / "processes", BASE / "strace", BASE / "raw"
    for fresh in (folder, traces, raw):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
    (folder / "set").mkdir()
    for n in range(200):
        (folder / "set" / f"in_{n:05d}.bin").write_bytes(bytes(24_000))
    (folder / "in.all").write_bytes(bytes(4 << 20))
    settings = BASE / "darshan.conf"
    settings.write_text(SETTINGS.format(folder=folder))
    shutil.copy(HERE / "programs" / "worker.py", BASE / "worker.py")
    started = []
    for n in range(COUNT):
        strace = ["strace", "-f", "--seccomp-bpf", "-ttt", "-y", "-s", "200", "-e", TRACED]
        preload = ["env", "-u", "LD_BIND_NOW", f"LD_PRELOAD={runtime}/lib/libdarshan.so"]
        program = ["python3", str(BASE / "worker.py"), str(n), str(COUNT)]
        environment = {
            "DARSHAN_ENABLE_NONMPI": "1",
            "DARSHAN_CONFIG_PATH": str(settings),
            "DARSHAN_LOGFILE": str(raw / f"{n}.darshan"),
            "DARSHAN_JOBID": "THE_JOB",
            "THE_JOB": JOB,
        }
        command = [*strace, "-o", str(traces / f"{n}"), *preload, *program]
        variables = {**os.environ, **environment}
        started.append(subprocess.Popen(command, cwd=folder, env=variables))
    assert [process.wait() for process in started] == [0] * COUNT
    calls = []
    for n in range(COUNT):
        with (traces / f"{n}").open(errors="replace") as lines:
            calls += events(lines, n, str(folder))
        neutral(raw / f"{n}.darshan", target / f"{n}.darshan")
    shutil.rmtree(folder)
    return told(calls, COUNT, {}, {})


if __name__ == "__main__":
    LOGS.mkdir(exist_ok=True)
    save(record(os.environ["DARSHAN_RUNTIME"], LOGS), LOGS / "truth.json")

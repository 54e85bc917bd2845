"""What goes wrong in jobs, done to real ones: run inside a rehearsal, as root.

    python -m nightly.rehearsal.slurm edison --nodes 8 -- python -m nightly.rehearsal.faults FILE

writes a row for each fault: seconds from the fault to the end of the session, exit status, output.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from nightly.rehearsal.slurm import SELF
from understudy.reframe.bases.methods import lacks

SCRATCH = Path("/scratch1/scratchdirs")  # of edison
PLAYER = "understudy-replay"
PATIENCE_S = 120
ATTEMPTS = 3
RANKS = 8
LIMIT_S = 60  # the least of Slurm


def ranks_of(directory: Path) -> list[int]:
    """Process numbers of the player in a run directory, over all nodes."""
    processes = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            name = (path / "comm").read_text().strip()
        except OSError:
            continue
        if str(directory).encode() in words and name == PLAYER[:15]:
            processes.append(int(path.name))
    return sorted(processes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job whose player has begun to write."""

    number: str
    nodes: list[str]
    directory: Path  # of the run
    ranks: list[int]  # process numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What is done to a job, and the options of its session."""

    name: str
    do: Callable[[Job], None]
    method: str = "posix"
    options: tuple[str, ...] = ()


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def wait_for_its_limit(job: Job) -> None:
    time.sleep(LIMIT_S)


def cancel(job: Job) -> None:
    run("scancel", job.number)


def take_a_node(job: Job) -> None:
    run("scontrol", "update", f"nodename={job.nodes[-1]}", "state=down", "reason=fault")


def kill_a_rank(job: Job) -> None:
    os.kill(job.ranks[0], signal.SIGKILL)


def stop_a_rank(job: Job) -> None:
    os.kill(job.ranks[0], signal.SIGSTOP)


def fill_the_storage(job: Job) -> None:
    """Room that other jobs leave when they end is taken as well, until the file is removed."""
    shared = job.directory.parent
    file = (shared / "other").open("wb")
    taken = 0

    def fill() -> None:
        nonlocal taken
        free = os.statvfs(shared)
        room = free.f_bavail * free.f_frsize - (1 << 20)
        if room > 0:
            os.posix_fallocate(file.fileno(), taken, room)
            taken += room

    def keep_full() -> None:
        with file:
            while os.fstat(file.fileno()).st_nlink:
                with suppress(OSError):  # another took it meanwhile
                    fill()
                time.sleep(0.1)

    fill()
    Thread(target=keep_full, daemon=True).start()


WATCHED = ("-S", "watchdog=10")
FAULTS = (
    Fault(name="cancel", do=cancel),
    Fault(name="node", do=take_a_node),
    Fault(name="rank", do=kill_a_rank),
    Fault(name="hang", do=stop_a_rank, options=WATCHED),
    Fault(name="space", do=fill_the_storage, options=WATCHED),
    *(
        Fault(name=f"space-{method}", do=fill_the_storage, method=method, options=WATCHED)
        for method in ("mpiio", "hdf5", "stdio", "adios")
        if not lacks(method)
    ),
)
LIMIT = Fault(name="limit", do=wait_for_its_limit, options=("-J", "time=1"))


def session(fault: Fault) -> subprocess.Popen[str]:
    """Start a replay of eight ranks on four nodes that takes a minute and a half by its pauses."""
    case = f"workload == 'n-1' and method == '{fault.method}' and stripe_count == 'default'"
    out = SELF / "out" / fault.name
    run("as-user", "mkdir", str(out))
    return subprocess.Popen(
        [
            "as-user",
            "env",
            f"UNDERSTUDY_OUTPUT={out}",
            "reframe",
            "-c",
            "checks/replay.py",
            "-r",
            "--system",
            "edison",
            "-E",
            case,
            "-S",
            "scaling=strong",
            "-S",
            "ranks=8",
            "-S",
            "ranks_per_node=2",
            "-S",
            "time_scale=90",
            *fault.options,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def begun(process: subprocess.Popen[str], before: set[Path]) -> Job | None:
    """The job whose run directory was not there before; none if the session ends without one."""
    ends_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < ends_s:
        ended = process.poll() is not None
        for directory in {path.parent for path in SCRATCH.glob("*/understudy.*/*")} - before:
            ranks = ranks_of(directory)
            if len(ranks) == RANKS:
                variables = (Path("/proc") / str(ranks[0]) / "environ").read_text().split("\0")
                [number] = [v for v in variables if v.startswith("SLURM_JOB_ID=")]
                number = number.partition("=")[2]
                names = run("squeue", "-h", "-j", number, "-o", "%N").strip()
                nodes = run("scontrol", "show", "hostnames", names).split()
                return Job(number=number, nodes=nodes, directory=directory, ranks=ranks)
        if ended:
            return None
        time.sleep(0.2)
    return None


def started(fault: Fault) -> tuple[subprocess.Popen[str], Job]:
    """A session whose job has begun. Slurm and Open MPI do not always get one there: munge refuses
    a connection, a rank finds no memory of another. Then once more, which is said."""
    for _ in range(ATTEMPTS):
        others = set(run("squeue", "-h", "-o", "%A").split())
        before = {path.parent for path in SCRATCH.glob("*/understudy.*/*")}
        process = session(fault)
        if job := begun(process, before):
            return process, job
        process.terminate()
        printed, _ = process.communicate(timeout=PATIENCE_S)
        for number in set(run("squeue", "-h", "-o", "%A").split()) - others:
            run("scancel", number)
        print(f"{fault.name}: no job has begun to write\n{printed}", file=sys.stderr)
        shutil.rmtree(SELF / "out" / fault.name)
    raise TimeoutError(f"{fault.name}: no job has begun to write in {ATTEMPTS} sessions")


def done_to(fault: Fault, process: subprocess.Popen[str], job: Job) -> dict[str, object]:
    """Do it, and see how the session ends."""
    fault.do(job)
    since_s = time.monotonic()
    printed, _ = process.communicate(timeout=PATIENCE_S)
    (job.directory.parent / "other").unlink(missing_ok=True)
    for node in job.nodes:  # an error of one that is in service
        subprocess.run(
            ["scontrol", "update", f"nodename={node}", "state=resume"],
            check=False,
            stderr=subprocess.DEVNULL,
        )
    return {
        "fault": fault.name,
        "job": job.number,
        "nodes": job.nodes,
        "ended_s": time.monotonic() - since_s,
        "status": process.returncode,
        "left": sorted(path.name for path in job.directory.glob("*")),
        "printed": printed,
    }


def main() -> None:
    limited, first = started(LIMIT)
    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(done_to, LIMIT, limited, first)
        rows = [done_to(fault, *started(fault)) for fault in FAULTS]
        rows.append(later.result())
    Path(sys.argv[1]).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

"""The player, run for real by tests, and what stands in the way of that."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.needs import need
from understudy.contracts.measurement import Played
from understudy.paths import ROOT
from understudy.producers import player as reading

# The library of a method, as requirements-debian.txt names it, and what the system has to permit.
LIBRARIES = {"adios": ("ADIOS 1.13",), "adios2": ("ADIOS2",), "hdf5": ("parallel HDF5",)}
LIBRARIES["uring"] = ("liburing", "io_uring")


def program() -> str:
    """The player on PATH, or the one in build/bin."""
    path = shutil.which("understudy-replay", path=f"{ROOT / 'build' / 'bin'}")
    path = shutil.which("understudy-replay") or path
    assert path is not None, "the player is not built: no build/bin/understudy-replay"
    return path


def needs(method: str) -> None:
    """Skip where the machine lacks the library of a method; fail where only the player does."""
    if method in LIBRARIES:
        need(*LIBRARIES[method])
    offers = subprocess.run([program(), "--list"], capture_output=True, text=True, check=True)
    assert not re.search(rf"(?m)^{method} +unavailable: ", offers.stdout), offers.stdout


def methods() -> list[str]:
    """Those of the player that move bytes."""
    offers = subprocess.run([program(), "--list"], capture_output=True, text=True, check=True)
    names = [line.split()[0] for line in offers.stdout.splitlines()]
    return [name for name in names if name != "null"]


def strace() -> str:
    """The program that shows system calls, where it may."""
    need("strace", "ptrace")
    return str(shutil.which("strace"))


def play(
    workload: Path, ranks: int, data: Path, *options: str, before: Sequence[str] = ()
) -> Played:
    """Play a workload; `before` stands between the launcher and the player. The result goes
    beside the data."""
    data.mkdir(parents=True, exist_ok=True)
    result_file = data.parent / "result.json"
    player = [program(), "-w", str(workload), "-o", str(data), "-O", str(result_file), *options]
    command = ["mpirun", "-n", str(ranks), *before, *player]
    done = subprocess.run(
        ["bash", "-c", '. "$0/setup-env.sh" && exec "$@"', str(ROOT), *command],
        cwd=data.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return reading.read(result_file)

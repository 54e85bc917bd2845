"""python -m nightly.rehearsal.slow [--list] [--rounds N] [--application NAME]…
    [--originals DIRECTORY] [STORAGE …]

Mounts file systems of known behaviour on this host (understudy-slowfs), runs the check `transfer`
on them, and unmounts them: whether the replica of an application takes as long as the application.
Needs libfuse 3, root or a user who may open /dev/fuse, a Darshan runtime and the applications. The
exit status is that of ReFrame.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.paths import program, where

SLOWFS = "understudy-slowfs"
# Each differs from a local file system in one thing.
STORAGES = {
    "open2ms": ["--open", "2ms", "--create", "2ms", "--stat", "2ms", "--remove", "2ms"],
    "w500": ["--write", "2ms"],
    "w1500": ["--write", "667us"],
    "rate5": ["--write-rate", "5MB"],
    "rate20": ["--write-rate", "20MB"],
    "rate60": ["--write-rate", "60MB"],
}
TMPFS = "tmpfs"  # nothing is mounted: files are in memory
MEMORY = Path("/dev/shm")
MOUNT_S = 10.0
SYSTEM = '''\
"""File systems of known behaviour on this machine."""

from understudy.reframe.systems import (
    MAX_BYTES, MAX_NODES, MPI, NEEDS, RANKS_PER_NODE, SCRATCH, SHARED, TYPE, per_filesystem
)

system = {{
    "name": "slow",
    "descr": "File systems of known behaviour",
    "hostnames": ["^slow$"],
    "max_local_jobs": 1,
    "partitions": per_filesystem(
        {{
            "scheduler": "local",
            "launcher": "mpirun",
            "environs": ["mpi"],
            "max_jobs": 1,
            "features": [MPI, SHARED],
            "extras": {{
                MAX_BYTES: 4 << 30,
                MAX_NODES: 1,
                RANKS_PER_NODE: 16,
                NEEDS: ["mpirun", "understudy-replay"],
            }},
        }},
        **{{
            name: {{"descr": name, "extras": {{TYPE: type_, SCRATCH: scratch}}}}
            for name, (type_, scratch) in {places!r}.items()
        }},
    ),
}}

environments = [
    {{
        "name": "mpi",
        "target_systems": ["slow"],
        "cc": "mpicc",
        "cxx": "",
        "ftn": "",
        "features": [MPI],
    }}
]
'''


@contextlib.contextmanager
def mounted(
    mount: Path, backing: Path, *options: str, before: Sequence[str] = ()
) -> Iterator[Path]:
    """A file system of this behaviour, started by `before`, until the end of the block."""
    words = [*before, str(program(SLOWFS)), *options, str(backing), str(mount)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            deadline = time.monotonic() + MOUNT_S
            while not os.path.ismount(mount):
                if process.poll() is not None:
                    said = process.stderr.read().strip() if process.stderr else ""
                    raise UnderstudyError(said.removeprefix("understudy: ") or f"{SLOWFS} ended")
                if time.monotonic() > deadline:
                    raise UnderstudyError(f"{mount}: not mounted after {MOUNT_S:g} s")
                time.sleep(0.01)
            yield mount
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)


def rehearse(
    storages: list[str], applications: list[str], rounds: int, originals: Path | None = None
) -> int:
    """Runs the check; the status of ReFrame."""
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="understudy-slow-")))
        places = {}
        for name in storages:
            if name == TMPFS:
                place = tempfile.TemporaryDirectory(prefix="understudy-slow-", dir=MEMORY)
                places[name] = TMPFS, stack.enter_context(place)
                continue
            mount, backing = base / name, base / f"{name}.backing"
            mount.mkdir()
            backing.mkdir()
            stack.enter_context(mounted(mount, backing, *STORAGES[name]))
            places[name] = "fuse.slowfs", str(mount)
        site = base / "site"
        (site / "systems").mkdir(parents=True)
        (site / "systems" / "slow.py").write_text(SYSTEM.format(places=places))
        paths = os.pathsep.join(filter(None, [str(site), os.environ.get("UNDERSTUDY_PATH")]))
        words = ["reframe", "-C", str(where("config")), "-c", str(where("checks") / "transfer.py")]
        words += ["-r", "--system", "slow", "-S", f"rounds={rounds}"]
        if originals is not None:
            words += ["-S", f"originals={originals.resolve()}"]
        if applications:
            words += ["-E", " or ".join(f"application == {name!r}" for name in applications)]
        return subprocess.run(
            words, env=os.environ | {"UNDERSTUDY_PATH": paths}, check=False
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="make rehearse FS=slow", allow_abbrev=False)
    parser.add_argument("storages", nargs="*", metavar="STORAGE", help="default: all")
    parser.add_argument("--list", action="store_true", help="list the storages and end")
    parser.add_argument("--rounds", type=int, default=5, help="of each arm; default: 5")
    parser.add_argument("--application", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--originals",
        type=Path,
        metavar="DIRECTORY",
        help="of logs or workloads, for applications that name none (nightly.rehearsal.record)",
    )
    given = parser.parse_args()
    if given.list:
        for name, options in STORAGES.items():
            print(f"{name:10}{' '.join(options)}")
        print(f"{TMPFS:10}a directory below {MEMORY}")
        return 0
    names = [*STORAGES, TMPFS]
    if unknown := [name for name in given.storages if name not in names]:
        parser.error(f"{unknown[0]}: no such storage; expected one of {', '.join(names)}")
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # to unmount
    try:
        storages = given.storages or names
        return rehearse(storages, given.application, given.rounds, given.originals)
    except UnderstudyError as error:
        print(f"understudy: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

"""The patterns in which the player is held beside IOR, and what IOR is told for each."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.support import sides
from understudy.contracts.workload import Dump, Variable
from understudy.contracts.workload import Pattern as StreamPattern

NAMES = {"posix": "POSIX", "mpiio": "MPIIO", "hdf5": "HDF5"}
MISSING = "no ior on PATH nor in $UNDERSTUDY_IOR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Who moves how much: every rank one block, in transfers."""

    ranks: int
    layout: str
    transfer_bytes: int
    block_bytes: int

    def operations(self) -> int:
        """Data calls of all ranks in one pass."""
        return self.ranks * self.block_bytes // self.transfer_bytes

    def single(self) -> "Pattern":
        """One transfer per rank: what a run costs besides its operations."""
        return replace(self, block_bytes=self.transfer_bytes)

    def workload(self) -> str:
        """The same as the text of a workload with one dump."""
        data = Variable(name="data", type="byte", shape=(self.ranks * self.block_bytes,))
        stream = StreamPattern(
            name="bench",
            role="checkpoint",
            operation="write",
            files="new",
            layout=self.layout,
            method="posix",
            transfer_bytes=self.transfer_bytes,
            dumps=(Dump(time_s=0, variables=(data,)),),
        )
        return sides.workload(self.ranks, stream)


def find() -> str | None:
    """IOR, from $UNDERSTUDY_IOR or PATH."""
    return shutil.which(os.environ.get("UNDERSTUDY_IOR", "ior"))


def methods(ior: str, replay: Path) -> Iterator[str]:
    """The methods that both programs have; says which one lacks."""
    apis = subprocess.run([ior, "-h"], capture_output=True, text=True).stdout
    listed = subprocess.run([replay, "--list"], capture_output=True, text=True).stdout
    for method, name in NAMES.items():
        if name not in apis:
            print(f"SKIPPED: {method}: this ior was built without {name}")
        elif f"{method} " not in listed or "unavailable" in listed.split(method)[1][:20]:
            print(f"SKIPPED: {method}: not in this build of the player")
        else:
            yield method


def command(ior: str, pattern: Pattern, method: str) -> list[str]:
    """IOR writing the pattern to ior.data."""
    words = [ior, "-a", NAMES[method], "-o", "ior.data", "-w"]
    words += ["-t", str(pattern.transfer_bytes), "-b", str(pattern.block_bytes)]
    words += ["-F"] if pattern.layout == "file-per-process" else []
    return words + (["--hdf5.noFill"] if method == "hdf5" else [])


def clear(folder: Path) -> None:
    """Removes what IOR left behind."""
    for path in folder.glob("ior.data*"):
        path.unlink()

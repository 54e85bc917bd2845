"""Two programs side by side: run in turn, metered, compared as ratios with their interval."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

from scipy import stats

from understudy.contracts.workload import Pattern, Provenance, Source, Workload, streams_of

ROOT = Path(__file__).resolve().parents[2]
METER = Path(__file__).with_name("meter.py")
CONFIDENCE = 0.95

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """A command that ended well: what it printed, and what it cost (see meter.py)."""

    out: str
    elapsed_s: float
    cpu_s: float
    peak_bytes: int


def environment() -> dict[str, str]:
    """That of children in any folder: a PYTHONPATH of relative paths begins at ours."""
    variables = dict(os.environ)
    if listed := variables.get("PYTHONPATH"):
        variables["PYTHONPATH"] = os.pathsep.join(
            str(Path(p).resolve()) for p in listed.split(":")
        )
    return variables


def run(folder: Path, command: Sequence[str | Path]) -> Usage:
    """Runs a command in `folder`; ends the benchmark where it fails."""
    cost = folder / "usage.json"
    done = subprocess.run(
        [sys.executable, "-I", "-S", METER, cost, *command],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
    return Usage(out=done.stdout, **json.loads(cost.read_text()))


def launcher() -> str:
    """The program that starts MPI processes; ends the benchmark where there is none."""
    program_path = shutil.which("mpiexec") or shutil.which("mpirun")
    return program_path or sys.exit("there is no mpiexec on PATH: run `./setup.sh test` first")


def on_ranks(mpiexec: str, ranks: int) -> list[str]:
    """The launcher's words before an MPI program; none for one rank."""
    return [mpiexec, "-n", str(ranks)] if ranks > 1 else []


def program(build: Path, name: str) -> Path:
    """A program of the player's build, or of its tests; ends the benchmark where it is missing."""
    path = build.resolve() / "bin" / name
    return path if path.exists() else sys.exit(f"missing {path}: run `./setup.sh test` first")


def in_turn(turn: int, ours: Callable[[], T], theirs: Callable[[], T]) -> tuple[T, T]:
    """Both, in alternating order: the second finds the memory that the first gave back."""
    if turn % 2 == 0:
        return ours(), theirs()
    other = theirs()
    return ours(), other


def spread(values: Sequence[float], digits: int = 2) -> str:
    """The median and its 95 % interval, which no distribution is assumed for.

    Fewer than 6 values have no such interval: then the lowest and the highest take its place.
    """
    low, high = min(values), max(values)
    if len(values) > 5:
        low, high = stats.quantile_test(values, p=0.5).confidence_interval(CONFIDENCE)
    return f"{median(values):.{digits}f} ({low:.{digits}f}…{high:.{digits}f})"


def workload(ranks: int, stream: Pattern) -> str:
    """The text of a workload with one stream."""
    how = "the pattern of a benchmark"
    paths = ("/ranks", "/runtime_s", "/streams")
    return Workload(
        name="bench",
        description="The pattern of a benchmark.",
        ranks=ranks,
        streams=streams_of([stream], ranks),
        source=Source(format="hand"),
        provenance=tuple(Provenance(path=p, origin="assumed", how=how) for p in paths),
    ).to_text()


@contextmanager
def folder_in(parent: Path) -> Iterator[Path]:
    """A folder of our own."""
    folder = Path(tempfile.mkdtemp(prefix="understudy-bench-", dir=parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def memory_folder() -> Path:
    """A file system in memory, where there is one."""
    memory = Path("/dev/shm")
    return memory if memory.is_dir() else Path(tempfile.gettempdir())

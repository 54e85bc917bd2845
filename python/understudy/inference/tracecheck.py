"""Traces held against the counters of the same files: what a trace lacks, or has too much of."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.inference import constants as levels
from understudy.inference.screen import Screen

GAP = levels.SMALL  # share of a file's bytes from which on trace and counters disagree
TRACES = {"DXT_POSIX": ("POSIX", "POSIX"), "DXT_MPIIO": ("MPI-IO", "MPIIO")}
BYTES = ("BYTES_READ", "BYTES_WRITTEN")
CALLS = ("READS", "WRITES")

Ids = npt.NDArray[np.uint64]
Kept = Callable[[Ids], npt.NDArray[np.bool_]]
Sums = npt.NDArray[np.int64]


def notes(log: Log, screen: Screen, kept: Kept) -> Iterator[str]:
    """A message for each trace that has over 1 % more or less bytes of files than the counters.
    `kept` tells which files are the application's; `screen` leaves out impossible values."""
    for trace, (module, _) in TRACES.items():
        found = log.modules.get(trace)
        if found is None or not found.supported or module not in log.modules:
            continue
        sums, seen = _sums(log, screen, kept, trace, BYTES)
        sums[(sums < 0).any(axis=1)] = seen[(sums < 0).any(axis=1)]  # overflowed counters
        yield from _of(trace, module, sums, seen, "lacks", "of", sums - seen)
        yield from _of(trace, module, sums, seen, "has", "beyond", seen - sums)


@dataclass(frozen=True, slots=True)
class Gaps:
    """Calls and bytes that POSIX counted and its trace lacks, and files of which they differ;
    bytes of stdio, which no trace has, and of how many files."""

    calls: int
    bytes: int
    files: int
    stdio_bytes: int
    stdio_files: int


def gaps(log: Log, screen: Screen, kept: Kept) -> Gaps:
    """What the trace of POSIX lacks of all calls that moved bytes."""
    sums, seen = _sums(log, screen, kept, "DXT_POSIX", (*BYTES, *CALLS))
    short = np.maximum(sums - seen, 0).sum(axis=0)
    ids, moved = _counted(log, screen, kept, "STDIO", [f"STDIO_{name}" for name in BYTES])
    stdio = moved.sum(axis=1)
    return Gaps(
        calls=int(short[2:].sum()),
        bytes=int(short[:2].sum()),
        files=int((sums != seen).any(axis=1).sum()),
        stdio_bytes=int(stdio.sum()),
        stdio_files=len(np.unique(ids[stdio > 0])),
    )


def is_whole(log: Log, screen: Screen, kept: Kept) -> bool:
    """Whether the trace of POSIX has every call that moved bytes."""
    trace = log.modules.get("DXT_POSIX")
    if trace is None or not trace.supported or "POSIX" not in log.modules:
        return False
    found = gaps(log, screen, kept)
    return not found.files and not found.stdio_bytes


def _sums(
    log: Log, screen: Screen, kept: Kept, trace: str, names: Sequence[str]
) -> tuple[Sums, Sums]:
    """Bytes read and written, reads and writes, as far as `names` has them, of each file that is
    counted: [files, names] as counted and as traced."""
    module, prefix = TRACES[trace]
    traced: dict[int, list[int]] = {}
    for record in log.dxt(trace):
        home = traced.setdefault(record.id, [0, 0, 0, 0])
        for way, rows in enumerate((record.read_segments, record.write_segments)):
            lengths = screen.segments(trace, rows)["length"]
            home[way] += int(lengths.sum())
            home[way + 2] += len(lengths)
    ids, counted = _counted(log, screen, kept, module, [f"{prefix}_{name}" for name in names])
    files, back = np.unique(ids, return_inverse=True)
    sums = np.zeros((len(files), len(names)), np.int64)
    np.add.at(sums, back.ravel(), counted)
    seen = np.array([traced.get(n, [0, 0, 0, 0]) for n in files.tolist()], np.int64)
    return sums, seen.reshape(-1, 4)[:, : len(names)]


def _counted(
    log: Log, screen: Screen, kept: Kept, module: str, names: Sequence[str]
) -> tuple[Ids, Sums]:
    """File and counters of each record."""
    ids: list[Ids] = [np.empty(0, np.uint64)]
    counted: list[Sums] = [np.empty((0, len(names)), np.int64)]
    found = log.modules.get(module)
    for block in log.records(module) if found is not None and found.supported else ():
        rows = screen(module, block)
        rows = rows[kept(rows["id"])]
        ids.append(rows["id"])
        counted.append(np.column_stack([rows[name] for name in names]))
    return np.concatenate(ids), np.concatenate(counted)


def _of(
    trace: str,
    module: str,
    counted: npt.NDArray[np.int64],
    seen: npt.NDArray[np.int64],
    verb: str,
    word: str,
    gap: npt.NDArray[np.int64],
) -> Iterator[str]:
    odd = gap > GAP * counted
    if odd.any():
        files = int(odd.any(axis=1).sum())
        yield (
            f"The trace {trace} {verb} {int(gap[odd].sum()):,} B {word} the "
            f"{int(counted[odd].sum()):,} B that {module} counted for "
            f"{files} file{'s' if files > 1 else ''}; the counters tell the bytes."
        )

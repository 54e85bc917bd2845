"""Traces held against the counters of the same files: what a trace lacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.inference.log.impossible_values import Screen

BYTES = ("BYTES_READ", "BYTES_WRITTEN")
CALLS = ("READS", "WRITES")

Ids = npt.NDArray[np.uint64]
Kept = Callable[[Ids], npt.NDArray[np.bool_]]
Sums = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Calls and bytes that POSIX counted and its trace lacks, and files of which they differ;
    bytes of stdio, which no trace has, and of how many files: those that were opened without
    bytes included, since Darshan does not see all calls of stdio."""

    calls: int
    bytes: int
    files: int
    stdio_bytes: int
    stdio_files: int


def gaps(log: Log, screen: Screen, kept: Kept) -> Gaps:
    """Gaps of the trace of POSIX: calls that moved bytes and are missing."""
    sums, seen = _sums(log, screen, kept, (*BYTES, *CALLS))
    short = np.maximum(sums - seen, 0).sum(axis=0)
    ids, moved = _counted(log, screen, kept, "STDIO", [f"STDIO_{name}" for name in BYTES])
    stdio = moved.sum(axis=1)
    below, also = _counted(log, screen, kept, "POSIX", [f"POSIX_{name}" for name in BYTES])
    others = below[also.any(axis=1)]  # of C++ streams
    return Gaps(
        calls=int(short[2:].sum()),
        bytes=int(short[:2].sum()),
        files=int((sums != seen).any(axis=1).sum()),
        stdio_bytes=int(stdio.sum()),
        stdio_files=len(np.unique(ids[(stdio > 0) | ~np.isin(ids, others)])),
    )


def is_whole(log: Log, screen: Screen, kept: Kept) -> bool:
    """True if the trace of POSIX has every call that moved bytes."""
    trace = log.modules.get("DXT_POSIX")
    if trace is None or not trace.supported or "POSIX" not in log.modules:
        return False
    missing = gaps(log, screen, kept)
    return not missing.files and not missing.stdio_files


def _sums(log: Log, screen: Screen, kept: Kept, names: Sequence[str]) -> tuple[Sums, Sums]:
    """Bytes read and written, reads and writes, as far as `names` has them, of each file that is
    counted: [files, names] as counted and as traced."""
    traced: dict[int, list[int]] = {}
    for record in log.dxt("DXT_POSIX"):
        home = traced.setdefault(record.id, [0, 0, 0, 0])
        for way, rows in enumerate((record.read_segments, record.write_segments)):
            lengths = screen.segments("DXT_POSIX", rows)["length"]
            home[way] += int(lengths.sum())
            home[way + 2] += len(lengths)
    ids, counted = _counted(log, screen, kept, "POSIX", [f"POSIX_{name}" for name in names])
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
    region = log.modules.get(module)
    for block in log.records(module) if region is not None and region.supported else ():
        rows = screen(module, block)
        rows = rows[kept(rows["id"])]
        ids.append(rows["id"])
        counted.append(np.column_stack([rows[name] for name in names]))
    return np.concatenate(ids), np.concatenate(counted)

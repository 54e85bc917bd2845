"""Traces held against the counters of the same files: what a trace lacks, or has too much of."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.inference import constants as levels
from understudy.inference.screen import Screen

GAP = levels.SMALL  # share of a file's bytes from which on trace and counters disagree
TRACES = {"DXT_POSIX": ("POSIX", "POSIX"), "DXT_MPIIO": ("MPI-IO", "MPIIO")}
WAYS = ("READ", "WRITTEN")

Ids = npt.NDArray[np.uint64]


def notes(log: Log, screen: Screen, kept: Callable[[Ids], npt.NDArray[np.bool_]]) -> Iterator[str]:
    """A message for each trace that has over 1 % more or less bytes of files than the counters.
    `kept` tells which files are the application's; `screen` leaves out impossible values."""
    for trace, (module, prefix) in TRACES.items():
        found = log.modules.get(trace)
        if found is None or not found.supported or module not in log.modules:
            continue
        traced: dict[int, list[int]] = {}
        for record in log.dxt(trace):
            home = traced.setdefault(record.id, [0, 0])
            for way, rows in enumerate((record.read_segments, record.write_segments)):
                home[way] += int(screen.segments(trace, rows)["length"].sum())
        ids: list[Ids] = [np.empty(0, np.uint64)]
        counted: list[npt.NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
        for block in log.records(module) if log.modules[module].supported else ():
            rows = screen(module, block)
            rows = rows[kept(rows["id"])]
            ids.append(rows["id"])
            counted.append(np.column_stack([rows[f"{prefix}_BYTES_{way}"] for way in WAYS]))
        files, back = np.unique(np.concatenate(ids), return_inverse=True)
        sums = np.zeros((len(files), 2), np.int64)
        np.add.at(sums, back.ravel(), np.concatenate(counted))
        seen = np.array([traced.get(n, [0, 0]) for n in files.tolist()], np.int64).reshape(-1, 2)
        sums[(sums < 0).any(axis=1)] = seen[(sums < 0).any(axis=1)]  # overflowed counters
        yield from _of(trace, module, sums, seen, "lacks", "of", sums - seen)
        yield from _of(trace, module, sums, seen, "has", "beyond", seen - sums)


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

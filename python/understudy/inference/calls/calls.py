"""The data calls of files in a Darshan log: how many, how many of them collective, and of which
sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.program.calls import Calls
from understudy.program.counters import BINS

PREFIXES = {"H5D": "H5D", "MPI-IO": "MPIIO", "POSIX": "POSIX", "STDIO": "STDIO"}  # of counters
MODULES = {"hdf5": "H5D", "mpiio": "MPI-IO", "posix": "POSIX", "stdio": "STDIO"}
HISTOGRAM = {"POSIX": ("POSIX", ""), "MPI-IO": ("MPIIO", "_AGG"), "H5D": ("H5D", "_AGG")}

Whole = npt.NDArray[np.int64]
Owner = Callable[[npt.NDArray[np.uint64]], Whole]


# -- of a log -------------------------------------------------------------------------------------


def of_log(log: Log, owner: Owner, owners: int) -> dict[tuple[int, str, str], Calls]:
    """Calls by (owner, operation, method), summed over the records of each owner's files.

    `owner` gives the owner of each file record, below `owners`, or -1.
    """
    calls: dict[tuple[int, str, str], Calls] = {}
    for method, module in MODULES.items():
        sums = np.zeros((owners, 2, 2 + len(BINS)), np.int64)
        for block in log.records(module) if module in log.modules else ():
            which = owner(block["file_rec_id" if module == "H5D" else "id"])
            records, which = block[which >= 0], which[which >= 0]
            for way, word in enumerate(("READ", "WRITE")):
                np.add.at(sums[:, way], which, counters_of(records, module, word))
        for who, way in zip(*map(np.ndarray.tolist, np.nonzero(sums[:, :, 0])), strict=True):
            count, collective, *sizes = sums[who, way].tolist()
            calls[who, ("read", "write")[way], method] = Calls(
                count=count,
                collective=collective,
                sizes=tuple(sizes),
            )
    return calls


def counters_of(block: Any, module: str, word: str) -> Whole:
    """Calls, collective ones and access sizes of each record: [n, 2 + bins]."""
    rows = np.zeros((len(block), 2 + len(BINS)), np.int64)
    if module == "MPI-IO":
        kinds = ("COLL", "SPLIT", "INDEP", "NB")
        calls = [np.maximum(block[f"MPIIO_{k}_{word}S"], 0) for k in kinds]
        rows[:, 0], rows[:, 1] = sum(calls), calls[0] + calls[1]
    else:
        rows[:, 0] = np.maximum(block[f"{module}_{word}S"], 0)
    if module == "H5D":
        rows[:, 1] = np.where(block["H5D_USE_MPIIO_COLLECTIVE"] > 0, rows[:, 0], 0)
    if module in HISTOGRAM:
        prefix, suffix = HISTOGRAM[module]
        for k, name in enumerate(BINS):
            rows[:, 2 + k] = np.maximum(block[f"{prefix}_SIZE_{word}{suffix}_{name}"], 0)
    return rows

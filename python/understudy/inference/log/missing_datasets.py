"""HDF5 records that are missing, completed from those of MPI-IO."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.log.counters import DATASET, PRESENT
from understudy.inference.table import ALL_RANKS, Rows

GAP = levels.SMALL  # share of the bytes below which layers do not differ


def missing_datasets(
    datasets: Rows, present: Rows, mpiio: Rows, ranks: int
) -> tuple[Rows, int, int]:
    """Rows for ranks without HDF5 records, how many files have such, and the bytes of the rows.

    All ranks open the datasets of a parallel file. If one that opened the file through MPI-IO has
    no record of any dataset, its record is missing; if MPI-IO moved more than the other ranks'
    datasets, the difference is its. Its calls are taken to be those of the rank with most bytes.
    """
    assert present.dtype == PRESENT
    parts: list[Rows] = [np.empty(0, DATASET)]
    completed = 0
    for file in np.unique(present["file"]):
        if (datasets["rank"][datasets["file"] == file] == ALL_RANKS).any():
            continue
        opened = mpiio[mpiio["file"] == file]
        who = np.arange(ranks) if (opened["rank"] == ALL_RANKS).any() else opened["rank"]
        absent = np.setdiff1d(who, present["rank"][present["file"] == file])
        if not len(absent) or len(absent) == len(np.unique(who)):
            continue
        before = len(parts)
        for write in (True, False):
            records = datasets[(datasets["file"] == file) & (datasets["write"] == write)]
            parts += _copied(records, opened[opened["write"] == write], absent)
        completed += len(parts) > before
    rows = np.concatenate(parts)
    return rows, completed, int(rows["bytes"].sum())


def _copied(records: Rows, below: Rows, absent: npt.NDArray[np.int64]) -> Iterator[Rows]:
    """The rows of the rank with most bytes, for each absent one with the bytes that it moved."""
    whole = int(np.maximum(below["bytes"], 0).sum())
    rest = whole - int(records["bytes"].sum())
    if not len(records) or rest <= GAP * whole:
        return
    who, index = np.unique(records["rank"], return_inverse=True)
    moved = np.zeros(len(who), np.int64)
    np.add.at(moved, index.ravel(), records["bytes"])
    rows, usual = records[records["rank"] == who[np.argmax(moved)]], int(moved.max())
    for rank in absent.tolist():
        rank_bytes = (
            below[below["rank"] == rank]["bytes"].sum() if (below["rank"] == rank).any() else 0
        )
        size = int(rank_bytes) if rank_bytes > 0 else rest // len(absent)
        if size <= 0:
            continue
        copy = rows.copy()
        copy["rank"], copy["corrected"], copy["even"] = rank, True, False
        if abs(size - usual) > GAP * usual:
            elements = copy["bytes"] // copy["element"] * size // usual
            copy["bytes"] = elements * copy["element"]
        yield copy[copy["bytes"] > 0]

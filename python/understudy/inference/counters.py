"""From Darshan's counters to rows: one per record and direction, alike for every module."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.calls import BINS, HISTOGRAM
from understudy.inference.table import ACCESS, ALL_RANKS, METHODS, Rows
from understudy.inference.transfers import MAX_TRANSFER, of_average, of_streams, sizes_of

MAX_COUNT = (1 << 31) - 1  # calls of one record
MAX_SPREAD = 1 << 17  # rows of ranks that shared records of a log become at most

_SIZED = (("calls", "i4", (len(BINS),)), ("sizes", "f4", (len(BINS),)), ("collectives", "i4"))

# One rank's (or all ranks') use of one file in one direction, as one module saw it.
TOUCH = np.dtype(
    [
        ("file", "u8"), ("rank", "i4"), ("write", "?"), ("bytes", "i8"), ("top", "i8"),
        ("start_s", "f8"), ("end_s", "f8"), ("transfer", "i8"), ("collective", "?"),
        ("syncs", "i8"), ("even", "?"), ("opens", "i8"), ("count", "i8"), ("call_bytes", "i8"),
        ("order", "i8", (3,)), ("gap", "i8"), ("gaps", "i8"),
        ("opened_s", "f8"), ("closed_s", "f8"), ("busy_s", "f8"),
        ("by_handle", "?"), ("corrected", "?"), *_SIZED,
    ]
)  # fmt: skip

# The same of one HDF5 dataset; points: its elements when it was opened last.
DATASET = np.dtype(
    [
        ("file", "u8"), ("record", "u8"), ("rank", "i4"), ("write", "?"), ("bytes", "i8"),
        ("element", "i2"), ("points", "i8"), ("start_s", "f8"), ("end_s", "f8"),
        ("transfer", "i8"), ("collective", "?"), ("even", "?"), ("corrected", "?"), *_SIZED,
    ]
)  # fmt: skip

# Ranks with a record of their own of a dataset, also without bytes.
PRESENT = np.dtype([("file", "u8"), ("rank", "i4")])

FLUSH = np.dtype([("file", "u8"), ("flushes", "i8"), ("opens", "i8")])
_FLUSH_COUNTERS = ("id", "H5F_FLUSHES", "H5F_OPENS")


def flushes(block: Any) -> Rows:
    """The HDF5 files that were flushed, and how often."""
    rows = np.zeros(len(block), FLUSH)
    for column, counter in zip(FLUSH.names or (), _FLUSH_COUNTERS, strict=True):
        rows[column] = block[counter]
    return rows[rows["flushes"] > 0]


def _posix(block: Any, ranks: int, spread: "Spread") -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "POSIX", write, ranks)
        _size(touch, block, "POSIX", "WRITE" if write else "READ", touch["count"])
        touch["syncs"] = np.maximum(block["POSIX_FSYNCS"], 0) + np.maximum(
            block["POSIX_FDSYNCS"], 0
        )
        touch["opens"] = block["POSIX_OPENS"]
        _order(touch, block, "WRITES" if write else "READS")
        touch["by_handle"] = (block["POSIX_FILENOS"] > 0) & (
            block["POSIX_FILENOS"] == block["POSIX_OPENS"]
        )
        touches.append(_spread(touch, block, "POSIX", ranks, spread))
    return touches


def _order(touch: Rows, block: Any, word: str) -> None:
    """How calls follow each other; the distances are those of reads and writes together."""
    for k, name in enumerate((word, f"CONSEC_{word}", f"SEQ_{word}")):
        touch["order"][:, k] = np.clip(block[f"POSIX_{name}"], 0, MAX_COUNT)
    other = block["POSIX_READS" if word == "WRITES" else "POSIX_WRITES"]
    counts = np.column_stack([block[f"POSIX_STRIDE{k}_COUNT"] for k in range(1, 5)])
    gaps = np.column_stack([block[f"POSIX_STRIDE{k}_STRIDE"] for k in range(1, 5)])
    best = np.argmax(counts, axis=1)[:, None]
    touch["gap"] = np.where(other > 0, 0, np.take_along_axis(gaps, best, axis=1)[:, 0])
    touch["gaps"] = np.clip(np.take_along_axis(counts, best, axis=1)[:, 0], 0, MAX_COUNT)


def _mpiio(block: Any, ranks: int, spread: "Spread") -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "MPIIO", write, ranks)
        word = "WRITES" if write else "READS"
        kinds = [block[f"MPIIO_{k}_{word}"] for k in ("COLL", "INDEP", "SPLIT", "NB")]
        touch["collective"] = (kinds[0] > 0) | (kinds[2] > 0)
        every = sum(np.maximum(k, 0) for k in kinds)
        touch["collectives"] = np.maximum(kinds[0], 0) + np.maximum(kinds[2], 0)
        touch["count"] = np.where(kinds[0] > 0, kinds[0], every)
        _size(touch, block, "MPI-IO", word[:-1], every)
        touch["syncs"] = block["MPIIO_SYNCS"]
        opens = [np.maximum(block[f"MPIIO_{k}_OPENS"], 0) for k in ("COLL", "INDEP")]
        touch["opens"] = opens[0] + opens[1]
        touches.append(_spread(touch, block, "MPIIO", ranks, spread))
    return touches


def _stdio(block: Any, ranks: int, _: "Spread") -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "STDIO", write, ranks)
        _size(touch, block, "STDIO", "WRITE" if write else "READ", touch["count"])
        touch["syncs"] = block["STDIO_FLUSHES"]
        touch["opens"] = block["STDIO_OPENS"]
        if "STDIO_FDOPENS" in block.dtype.names:
            _fdopens(touch, block["STDIO_FDOPENS"], ranks)
        touches.append(touch)
    return touches


def _fdopens(touch: Rows, fdopens: Any, ranks: int) -> None:
    """Correct an error: in a file given to fdopen() again and again, Darshan counts on from where
    the last stream ended, though the file was opened anew."""
    each = np.where(touch["rank"] == ALL_RANKS, ranks, 1)
    times = touch["opens"] // each
    again = (fdopens >= touch["opens"] - each) & (times > 1)  # all, but for the first
    again &= (fdopens > 0) & (touch["top"] * each >= touch["bytes"])
    again &= (touch["bytes"] > 0) & (touch["top"] % np.maximum(times, 1) == 0)
    touch["top"] = np.where(again, touch["top"] // np.maximum(times, 1), touch["top"])


COLUMNS: dict[str, Callable[[Any, int, "Spread"], list[Rows]]] = {
    "POSIX": _posix,
    "MPI-IO": _mpiio,
    "STDIO": _stdio,
}


def _touch(block: Any, module: str, write: bool, ranks: int) -> Rows:
    """The counters that all modules have."""
    verb, past = ("WRITE", "WRITTEN") if write else ("READ", "READ")
    touch = np.zeros(len(block), TOUCH)
    touch["file"], touch["write"] = block["id"], write
    touch["bytes"] = block[f"{module}_BYTES_{past}"]
    names = block.dtype.names
    if f"{module}_MAX_BYTE_{past}" in names:
        touch["top"] = np.where(touch["bytes"] > 0, block[f"{module}_MAX_BYTE_{past}"] + 1, 0)
    if f"{module}_{verb}S" in names:
        touch["count"] = block[f"{module}_{verb}S"]
    start = block[f"{module}_F_{verb}_START_TIMESTAMP"]
    touch["start_s"] = np.where(start > 0, start, block[f"{module}_F_OPEN_START_TIMESTAMP"])
    touch["end_s"] = np.maximum(block[f"{module}_F_{verb}_END_TIMESTAMP"], touch["start_s"])
    touch["opened_s"] = block[f"{module}_F_OPEN_START_TIMESTAMP"]
    touch["busy_s"] = block[f"{module}_F_{verb}_TIME"]
    touch["closed_s"] = block[f"{module}_F_CLOSE_END_TIMESTAMP"]
    touch["rank"] = _ranks_of(block, module, ranks)
    variance = block[f"{module}_F_VARIANCE_RANK_BYTES"]
    touch["even"] = (touch["rank"] == ALL_RANKS) & (variance == 0)
    touch["transfer"], touch["call_bytes"] = _transfers(block, module, touch)
    return touch


def _ranks_of(block: Any, module: str, ranks: int) -> npt.NDArray[np.int64]:
    """The rank of each record; a shared record belongs to a rank if only that one moved bytes."""
    rank: npt.NDArray[np.int64] = block["rank"].astype(np.int64)
    if ranks == 1:
        return np.zeros_like(rank)
    moved = block[f"{module}_BYTES_READ"] + block[f"{module}_BYTES_WRITTEN"]
    for extreme in ("SLOWEST", "FASTEST"):
        alone = (
            (rank == ALL_RANKS) & (moved > 0) & (block[f"{module}_{extreme}_RANK_BYTES"] == moved)
        )
        rank[alone] = block[f"{module}_{extreme}_RANK"][alone]
    return rank


def _transfers(block: Any, module: str, touch: Rows) -> tuple[Any, Any]:
    """Per record: the call size that moved most bytes, and the only call size (0: several)."""
    average = touch["bytes"] // np.maximum(touch["count"], 1)
    if f"{module}_ACCESS1_ACCESS" not in block.dtype.names:
        return np.clip(average, 1, MAX_TRANSFER), np.zeros(len(block), np.int64)
    sizes = np.column_stack([block[f"{module}_ACCESS{k}_ACCESS"] for k in range(1, 5)])
    counts = np.column_stack([block[f"{module}_ACCESS{k}_COUNT"] for k in range(1, 5)])
    best = np.argmax(sizes * counts, axis=1)[:, None]
    main = np.take_along_axis(sizes, best, axis=1)[:, 0]
    only = np.where(counts[:, 0] == touch["count"], sizes[:, 0], 0)
    return np.clip(np.where(main > 0, main, average), 1, MAX_TRANSFER), only


def _size(rows: Rows, block: Any, module: str, word: str, count: Any) -> None:
    """Calls by size; of equal size if the histogram has a different number of calls."""
    moved = np.maximum(rows["bytes"], 0)
    counted = np.clip(count, 0, MAX_COUNT)
    if module == "STDIO":
        opens = np.clip(block["STDIO_OPENS"], 1, np.maximum(counted, 1))
        rows["calls"], rows["sizes"] = of_streams(counted, opens, moved)
    else:
        rows["calls"], rows["sizes"] = of_average(counted, moved)
    if module in HISTOGRAM:
        prefix, suffix = HISTOGRAM[module]
        histogram = np.column_stack([block[f"{prefix}_SIZE_{word}{suffix}_{b}"] for b in BINS])
        values, times = (
            np.column_stack([block[f"{prefix}_ACCESS{k}_{what}"] for k in range(1, 5)])
            for what in ("ACCESS", "COUNT")
        )
        told = (histogram.sum(axis=1) == count) & (histogram >= 0).all(axis=1)
        told &= count <= MAX_COUNT
        rows["calls"][told] = histogram[told]
        rows["sizes"][told] = sizes_of(histogram[told], values[told], times[told], moved[told])


@dataclass(slots=True)
class Spread:
    """How many rows shared records may still become, and how many records stay as they are."""

    left: int = MAX_SPREAD
    kept: int = 0

    def some(self, told: npt.NDArray[np.bool_], ranks: int) -> npt.NDArray[np.bool_]:
        """The first of these records, as many as fit."""
        fits = told & (np.cumsum(told) <= self.left // ranks)
        self.left -= int(fits.sum()) * ranks
        self.kept += int(told.sum() - fits.sum())
        return fits


def _spread(touch: Rows, block: Any, module: str, ranks: int, spread: Spread) -> Rows:
    """Replace shared records by one per rank if the access sizes determine the bytes of each rank:
    as many calls as ranks, all of the four most common sizes, which add up to the total."""
    sizes = np.column_stack([block[f"{module}_ACCESS{k}_ACCESS"] for k in range(1, 5)])
    counts = np.column_stack([block[f"{module}_ACCESS{k}_COUNT"] for k in range(1, 5)])
    told = (
        (touch["rank"] == ALL_RANKS)
        & ~touch["even"]
        & (counts.sum(axis=1) == ranks)
        & ((sizes * counts).sum(axis=1) == touch["bytes"])
    )
    told = spread.some(told, ranks)
    parts = [touch[~told]]
    for n in np.flatnonzero(told).tolist():
        left = [int(s) for s, c in zip(sizes[n], counts[n], strict=True) for _ in range(int(c))]
        rows = np.repeat(touch[n : n + 1], ranks)
        rows["rank"] = np.arange(ranks)
        rows["bytes"] = -1
        for extreme in ("FASTEST", "SLOWEST"):
            rank = int(block[f"{module}_{extreme}_RANK"][n])
            size = int(block[f"{module}_{extreme}_RANK_BYTES"][n])
            if 0 <= rank < ranks and rows["bytes"][rank] < 0 and size in left:
                rows["bytes"][rank] = size
                left.remove(size)
        rows["bytes"][rows["bytes"] < 0] = left
        rows["count"] = touch["count"][n] // ranks
        rows["collectives"] = touch["collectives"][n] // ranks
        rows["calls"], rows["sizes"] = of_average(np.ones(ranks, np.int64), rows["bytes"])
        rows["syncs"] = touch["syncs"][n] // ranks
        rows["busy_s"] = touch["busy_s"][n] / ranks
        parts.append(rows)
    return np.concatenate(parts)


def present(block: Any, files: dict[int, int]) -> Rows:
    """The ranks that have records of their own in each file."""
    own = block[block["rank"] >= 0]
    rows = np.zeros(len(own), PRESENT)
    rows["rank"], rows["file"] = own["rank"], own["file_rec_id"]
    for n in np.flatnonzero(rows["file"] == 0).tolist():
        rows["file"][n] = files.get(int(own["id"][n]), int(own["id"][n]))
    return np.unique(rows)


def datasets(block: Any, ranks: int, files: dict[int, int]) -> Rows:
    """A row per dataset record and direction that moved bytes."""
    parts = []
    for write, verb, past in ((True, "WRITE", "WRITTEN"), (False, "READ", "READ")):
        used = block[block[f"H5D_BYTES_{past}"] > 0]
        touch = np.zeros(len(used), TOUCH)
        rows = np.zeros(len(used), DATASET)
        rows["record"], rows["file"] = used["id"], used["file_rec_id"]
        for n in np.flatnonzero(rows["file"] == 0).tolist():
            rows["file"][n] = files.get(int(rows["record"][n]), int(rows["record"][n]))
        rows["write"], rows["rank"] = write, _ranks_of(used, "H5D", ranks)
        rows["bytes"] = touch["bytes"] = used[f"H5D_BYTES_{past}"]
        touch["count"] = used[f"H5D_{verb}S"]
        _size(rows, used, "H5D", verb, touch["count"])
        size = used["H5D_DATATYPE_SIZE"]
        whole = np.isin(size, (1, 2, 4, 8)) & (rows["bytes"] % np.maximum(size, 1) == 0)
        rows["element"] = np.where(whole, size, 1)
        rows["points"] = used["H5D_DATASPACE_NPOINTS"]
        start = used[f"H5D_F_{verb}_START_TIMESTAMP"]
        rows["start_s"] = np.where(start > 0, start, used["H5D_F_OPEN_START_TIMESTAMP"])
        rows["end_s"] = np.maximum(rows["start_s"], used[f"H5D_F_{verb}_END_TIMESTAMP"])
        rows["transfer"] = _transfers(used, "H5D", touch)[0]
        rows["collective"] = used["H5D_USE_MPIIO_COLLECTIVE"] > 0
        rows["collectives"] = np.where(rows["collective"], rows["calls"].sum(axis=1), 0)
        rows["even"] = (rows["rank"] == ALL_RANKS) & (used["H5D_F_VARIANCE_RANK_BYTES"] == 0)
        parts.append(rows)
    return np.concatenate(parts)


def dataset_rows(records: Rows, flushed: npt.NDArray[np.uint64]) -> Rows:
    """The accesses of datasets, which are the variables of a file in order of time."""
    order = np.lexsort((records["record"], records["start_s"], records["file"]))
    records = records[order]
    rows = np.zeros(len(records), ACCESS)
    for name in ACCESS.names or ():
        if name in (DATASET.names or ()):
            rows[name] = records[name]
    rows["method"] = METHODS.index("hdf5")
    rows["busy_s"] = np.inf
    rows["synced"] = np.isin(rows["file"], flushed)
    _, first, which = np.unique(
        records[["file", "write", "record"]], return_index=True, return_inverse=True
    )
    new = np.zeros(len(rows), np.int64)  # in which row a dataset turns up first
    new[first] = 1
    for write in (True, False):
        mine = np.flatnonzero(rows["write"] == write)
        count = np.cumsum(new[mine])
        _, begin, back = np.unique(rows["file"][mine], return_index=True, return_inverse=True)
        index = count - count[begin][back.ravel()]
        rows["variable"][mine] = index
    rows["variable"] = rows["variable"][first][which.ravel()]
    return rows

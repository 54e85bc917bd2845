"""From Darshan's counters to rows: one per record and direction, alike for every module."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.calls.calls import HISTOGRAM
from understudy.inference.calls.stdio_calls import flushes_of_writes, of_streams, units_of
from understudy.inference.calls.transfers import MAX_TRANSFER, of_average, sizes_of
from understudy.inference.constants import SMALL
from understudy.inference.table import ACCESS, ALL_RANKS, METHODS, SHARED, Rows
from understudy.program.counters import BINS

EXTREMES = ("FASTEST", "SLOWEST")  # ranks of a shared record of which the bytes are known
MAX_COUNT = (1 << 31) - 1  # calls of one record
MOST_CHUNK = (1 << 32) - 1  # bytes of a chunk of HDF5
MAX_SPREAD = 1 << 17  # rows of ranks that shared records of a log become at most

Mask = npt.NDArray[np.bool_]
Common = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # sizes of calls, how often

_SIZED = (("calls", "i4", (len(BINS),)), ("sizes", "f4", (len(BINS),)), ("collectives", "i4"))

# One rank's (or all ranks') use of one file in one direction, as one module saw it.
TOUCH = np.dtype(
    [
        *SHARED,
        ("by_handle", "?"),
        ("top", "i8"),
        ("syncs", "i8"),
        ("opens", "i8"),
        ("count", "i8"),
        ("switches", "i8"),
        ("call_bytes", "i8"),
        ("opened_s", "f8"),  # as the next, not of POSIX
        ("closed_s", "f8"),
        ("busy_s", "f8"),
    ],
    align=True,
)

# The same of one HDF5 dataset; points: its elements when it was opened last.
DATASET = np.dtype(
    [
        ("file", "u8"),
        ("record", "u8"),
        ("rank", "i4"),
        ("write", "?"),
        ("bytes", "i8"),
        ("element", "i2"),
        ("points", "i8"),
        ("chunk", "i8"),  # bytes; 0: contiguous
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("transfer", "i8"),
        ("collective", "?"),
        ("even", "?"),
        ("corrected", "?"),
        *_SIZED,
    ]
)

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


def _used(block: Any, module: str, write: bool, needed: Mask | None) -> Any:
    """The records that moved bytes in a direction, and those whose writes are needed anyway; None:
    of all."""
    if write and needed is None:
        return block
    used = block[f"{module}_BYTES_{'WRITTEN' if write else 'READ'}"] != 0
    if write:
        used |= needed
    return block if used.all() else block[used]


def _posix(block: Any, ranks: int, spread: "Spread", needed: Mask | None) -> Iterator[Rows]:
    for write in (True, False):
        some = _used(block, "POSIX", write, needed)
        if not len(some):
            continue
        common = _common(some, "POSIX")
        touch = _touch(some, "POSIX", write, ranks, common)
        _size(touch, some, "POSIX", "WRITE" if write else "READ", touch["count"], common)
        touch["syncs"] = np.maximum(some["POSIX_FSYNCS"], 0) + np.maximum(some["POSIX_FDSYNCS"], 0)
        touch["opens"] = some["POSIX_OPENS"]
        touch["switches"] = np.maximum(some["POSIX_RW_SWITCHES"], 0) // 2
        _order(touch, some, "WRITES" if write else "READS")
        handles = some["POSIX_FILENOS"]
        touch["by_handle"] = (handles > 0) & (handles == some["POSIX_OPENS"])
        yield _spread(touch, some, "POSIX", ranks, spread, common, touch["count"])


def _order(touch: Rows, block: Any, word: str) -> None:
    """How calls follow each other, and how far from each other calls of either direction are that
    do not."""
    for k, name in enumerate((word, f"CONSEC_{word}", f"SEQ_{word}")):
        touch["order"][:, k] = np.clip(block[f"POSIX_{name}"], 0, MAX_COUNT)
    counts = np.column_stack([block[f"POSIX_STRIDE{k}_COUNT"] for k in range(1, 5)])
    if not counts.any():
        touch["gap"] = block["POSIX_STRIDE1_STRIDE"]
        return
    gaps = np.column_stack([block[f"POSIX_STRIDE{k}_STRIDE"] for k in range(1, 5)])
    best = np.argmax(counts, axis=1)[:, None]
    touch["gap"] = np.take_along_axis(gaps, best, axis=1)[:, 0]
    touch["gaps"] = np.clip(np.take_along_axis(counts, best, axis=1)[:, 0], 0, MAX_COUNT)


def _mpiio(block: Any, ranks: int, spread: "Spread", needed: Mask | None) -> Iterator[Rows]:
    for write in (True, False):
        some = _used(block, "MPIIO", write, needed)
        if not len(some):
            continue
        common = _common(some, "MPIIO")
        touch = _touch(some, "MPIIO", write, ranks, common)
        word = "WRITES" if write else "READS"
        kinds = [some[f"MPIIO_{k}_{word}"] for k in ("COLL", "INDEP", "SPLIT", "NB")]
        touch["collective"] = (kinds[0] > 0) | (kinds[2] > 0)
        every = sum(np.maximum(k, 0) for k in kinds)
        touch["collectives"] = np.maximum(kinds[0], 0) + np.maximum(kinds[2], 0)
        touch["count"] = np.where(kinds[0] > 0, kinds[0], every)
        _size(touch, some, "MPI-IO", word[:-1], every, common)
        touch["syncs"] = some["MPIIO_SYNCS"]
        opens = [np.maximum(some[f"MPIIO_{k}_OPENS"], 0) for k in ("COLL", "INDEP")]
        touch["opens"] = opens[0] + opens[1]
        yield _spread(touch, some, "MPIIO", ranks, spread, common, touch["count"])


def _stdio(block: Any, ranks: int, _: "Spread", needed: Mask | None) -> Iterator[Rows]:
    for write in (True, False):
        some = _used(block, "STDIO", write, needed)
        if not len(some):
            continue
        touch = _touch(some, "STDIO", write, ranks, None)
        _size(touch, some, "STDIO", "WRITE" if write else "READ", touch["count"], None, ranks)
        # Each read takes a seek of its own; the others go back to where writes go on.
        touch["switches"] = np.maximum(some["STDIO_SEEKS"] - some["STDIO_READS"], 0)
        touch["syncs"] = flushes_of_writes(some)
        touch["opens"] = some["STDIO_OPENS"]
        if "STDIO_FDOPENS" in some.dtype.names:
            _fdopens(touch, some["STDIO_FDOPENS"], ranks)
        yield touch


def _fdopens(touch: Rows, fdopens: Any, ranks: int) -> None:
    """Correct an error: in a file given to fdopen() again and again, Darshan counts on from where
    the last stream ended, though the file was opened anew."""
    each = np.where(touch["rank"] == ALL_RANKS, ranks, 1)
    times = touch["opens"] // each
    again = (fdopens >= touch["opens"] - each) & (times > 1)  # all, but for the first
    again &= (fdopens > 0) & (touch["top"] * each >= touch["bytes"])
    again &= (touch["bytes"] > 0) & (touch["top"] % np.maximum(times, 1) == 0)
    touch["top"] = np.where(again, touch["top"] // np.maximum(times, 1), touch["top"])


COLUMNS: dict[str, Callable[[Any, int, "Spread", Mask | None], Iterator[Rows]]] = {
    "POSIX": _posix,
    "MPI-IO": _mpiio,
    "STDIO": _stdio,
}
"""By module: the rows of a block for so many ranks. Records that moved no bytes make a row (of
writes) where they are `needed` (None: all)."""


def _common(block: Any, module: str) -> Common:
    """The four most common sizes of calls, and how often they are: [n, 4] each."""
    sizes = np.column_stack([block[f"{module}_ACCESS{k}_ACCESS"] for k in range(1, 5)])
    counts = np.column_stack([block[f"{module}_ACCESS{k}_COUNT"] for k in range(1, 5)])
    return sizes, counts


def _touch(block: Any, module: str, write: bool, ranks: int, common: Common | None) -> Rows:
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
    start, opened = (block[f"{module}_F_{w}_START_TIMESTAMP"] for w in (verb, "OPEN"))
    touch["start_s"] = np.where(start > 0, start, opened)
    touch["end_s"] = np.maximum(block[f"{module}_F_{verb}_END_TIMESTAMP"], touch["start_s"])
    touch["busy_s"] = block[f"{module}_F_{verb}_TIME"]
    if module != "POSIX":
        touch["opened_s"], touch["closed_s"] = opened, block[f"{module}_F_CLOSE_END_TIMESTAMP"]
    touch["rank"] = _ranks_of(block, module, ranks)
    variance = block[f"{module}_F_VARIANCE_RANK_BYTES"]
    touch["even"] = (touch["rank"] == ALL_RANKS) & (variance == 0)
    touch["transfer"], touch["call_bytes"] = _transfers(touch, common)
    return touch


def _ranks_of(block: Any, module: str, ranks: int) -> npt.NDArray[np.int64]:
    """The rank of each record; a shared record belongs to a rank if only that one moved bytes."""
    rank: npt.NDArray[np.int64] = block["rank"].astype(np.int64)
    if ranks == 1:
        return np.zeros_like(rank)
    moved = block[f"{module}_BYTES_READ"] + block[f"{module}_BYTES_WRITTEN"]
    for extreme in EXTREMES[::-1]:
        alone = (
            (rank == ALL_RANKS) & (moved > 0) & (block[f"{module}_{extreme}_RANK_BYTES"] == moved)
        )
        rank[alone] = block[f"{module}_{extreme}_RANK"][alone]
    return rank


def _transfers(touch: Rows, common: Common | None) -> tuple[Any, Any]:
    """Per record: the call size that moved most bytes, and the only call size (0: several)."""
    average = touch["bytes"] // np.maximum(touch["count"], 1)
    if common is None:
        return np.clip(average, 1, MAX_TRANSFER), np.zeros(len(touch), np.int64)
    sizes, counts = common
    if counts[:, 1:].any() or (sizes[:, 0] < 0).any() or (counts[:, 0] < 0).any():
        best = np.argmax(sizes * counts, axis=1)[:, None]
        main = np.take_along_axis(sizes, best, axis=1)[:, 0]
    else:  # of one size
        main = sizes[:, 0]
    only = np.where(counts[:, 0] == touch["count"], sizes[:, 0], 0)
    return np.clip(np.where(main > 0, main, average), 1, MAX_TRANSFER), only


def _size(
    rows: Rows,
    block: Any,
    module: str,
    word: str,
    count: Any,
    common: Common | None,
    ranks: int = 1,
) -> None:
    """Calls by size; of equal size if the histogram has a different number of calls."""
    moved = np.maximum(rows["bytes"], 0)
    told = np.zeros(len(rows), np.bool_)
    if module in HISTOGRAM and common is not None:
        prefix, suffix = HISTOGRAM[module]
        columns = [block[f"{prefix}_SIZE_{word}{suffix}_{b}"] for b in BINS]
        used = [k for k, column in enumerate(columns) if column.any()] or [0]
        histogram = np.column_stack([columns[k] for k in used])
        told = (histogram.sum(axis=1) == count) & (histogram >= 0).all(axis=1)
        told &= count <= MAX_COUNT
        if told.all():
            rows["calls"][:, used] = histogram
            rows["sizes"][:, used] = sizes_of(histogram, *common, moved, used)
            return
        calls, each = np.zeros((2, int(told.sum()), len(BINS)))
        calls[:, used] = histogram[told]
        each[:, used] = sizes_of(
            histogram[told], common[0][told], common[1][told], moved[told], used
        )
        rows["calls"][told], rows["sizes"][told] = calls, each
    rest = ~told
    counted = np.clip(count, 0, MAX_COUNT)[rest]
    if module == "STDIO":
        units, gathered = units_of(block, word, ranks)
        rows["calls"][rest], rows["sizes"][rest] = of_streams(
            counted, units[rest], moved[rest], gathered[rest]
        )
    else:
        rows["calls"][rest], rows["sizes"][rest] = of_average(counted, moved[rest])


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


def _spread(
    rows: Rows, block: Any, module: str, ranks: int, spread: Spread, common: Common, count: Any
) -> Rows:
    """Replace shared records of so many calls by one row per rank if its bytes are known: by the
    sizes of calls, or by those of the fastest and of the slowest rank; what the ranks moved adds
    up to the total then, and differs as much as in the log."""
    uneven = (rows["rank"] == ALL_RANKS) & ~rows["even"] & (count > 0) & (count % ranks == 0)
    if not uneven.any():
        return rows
    each = np.maximum(count // ranks, 1)
    shares = [
        _by_sizes(rows["bytes"], common, count, each),
        _by_extremes(rows, block, module, ranks),
    ]
    variance = block[f"{module}_F_VARIANCE_RANK_BYTES"]
    told = np.zeros((len(shares), len(rows)), np.bool_)
    for k, (size, of) in enumerate(shares):
        far = (size - (rows["bytes"] / ranks)[:, None]) ** 2 * of
        told[k] = uneven & (of >= 0).all(axis=1) & (of.sum(axis=1) == ranks)
        told[k] &= np.isclose((size * of).sum(axis=1), rows["bytes"], rtol=0, atol=0.5)
        told[k] &= np.isclose(far.sum(axis=1) / ranks, variance, rtol=SMALL)
    is_spread = spread.some(told[0] | told[1], ranks)
    parts, names = [rows[~is_spread]], {*(rows.dtype.names or ())}
    for n in np.flatnonzero(is_spread).tolist():
        size, of = shares[int(np.argmax(told[:, n]))]
        left = [int(s) for s, k in zip(size[n], of[n], strict=True) for _ in range(int(k))]
        rank_rows = np.repeat(rows[n : n + 1], ranks)
        rank_rows["rank"] = np.arange(ranks)
        rank_rows["bytes"] = -1
        for extreme in EXTREMES:
            rank = int(block[f"{module}_{extreme}_RANK"][n])
            moved = int(block[f"{module}_{extreme}_RANK_BYTES"][n])
            if 0 <= rank < ranks and rank_rows["bytes"][rank] < 0 and moved in left:
                rank_rows["bytes"][rank] = moved
                left.remove(moved)
        rank_rows["bytes"][rank_rows["bytes"] < 0] = left
        common_size = int(common[0][n, 0]) if not common[1][n, 1:].any() else 0
        rank_rows["calls"], rank_rows["sizes"] = _of_ranks(
            rank_rows["bytes"], int(each[n]), common_size
        )
        for name in {"count", "collectives", "syncs"} & names:
            rank_rows[name] = rows[name][n] // ranks
        if "busy_s" in names:
            rank_rows["busy_s"] = rows["busy_s"][n] / ranks
        parts.append(rank_rows)
    return np.concatenate(parts)


def _by_sizes(moved: Any, common: Common, count: Any, each: Any) -> tuple[Any, Any]:
    """Bytes of ranks, and how many ranks have these (-1: not known), [n, 5] each, if each rank
    made calls of one of the four commonest sizes, or empty ones, of which none is named."""
    sizes, counts = common
    calls = np.column_stack([counts, count - counts.sum(axis=1)])
    of, odd = np.divmod(calls, each[:, None])
    shares = np.column_stack([sizes * each[:, None].astype(np.float64), np.zeros(len(moved))])
    return shares, np.where(odd.sum(axis=1).reshape(-1, 1) > 0, -1, of)


def _by_extremes(rows: Rows, block: Any, module: str, ranks: int) -> tuple[Any, Any]:
    """The same, [n, 2] each, if all ranks moved as much as either the fastest or the slowest."""
    shares = np.column_stack([block[f"{module}_{e}_RANK_BYTES"] for e in EXTREMES])
    shares = shares.astype(np.float64)
    apart = shares[:, 1] - shares[:, 0]
    many = (rows["bytes"] - ranks * shares[:, 0]) / np.where(apart == 0, 1, apart)
    right = (apart != 0) & (many == np.round(many)) & (many >= 1) & (many < ranks)
    many = np.where(right, many, 0).astype(np.int64)
    return shares, np.where(right[:, None], np.column_stack([ranks - many, many]), -1)


def _of_ranks(moved: Any, each: int, size: int) -> tuple[Any, Any]:
    """Calls in each bin and their mean size, [n, 10] each, of ranks that made as many: of this
    size and empty ones, if it is the only one, else all alike."""
    if not size or (moved % size).any() or (moved > size * each).any():
        return of_average(np.full(len(moved), each), moved)
    calls, sizes = of_average(moved // size, moved)
    calls[:, 0] += each - moved // size
    sizes[:, 0] *= moved // size / np.maximum(calls[:, 0], 1)
    return calls, sizes


def present(block: Any, files: dict[int, int]) -> Rows:
    """The ranks that have records of their own in each file."""
    rank_records = block[block["rank"] >= 0]
    rows = np.zeros(len(rank_records), PRESENT)
    rows["rank"], rows["file"] = rank_records["rank"], rank_records["file_rec_id"]
    for n in np.flatnonzero(rows["file"] == 0).tolist():
        rows["file"][n] = files.get(int(rank_records["id"][n]), int(rank_records["id"][n]))
    return np.unique(rows)


def datasets(block: Any, ranks: int, files: dict[int, int], spread: Spread) -> Rows:
    """A row per dataset record and direction that moved bytes, or per rank of these."""
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
        common = _common(used, "H5D")
        _size(rows, used, "H5D", verb, touch["count"], common)
        size = used["H5D_DATATYPE_SIZE"]
        whole = np.isin(size, (1, 2, 4, 8)) & (rows["bytes"] % np.maximum(size, 1) == 0)
        rows["element"] = np.where(whole, size, 1)
        rows["points"] = used["H5D_DATASPACE_NPOINTS"]
        rows["chunk"] = _chunk_bytes(used)
        start = used[f"H5D_F_{verb}_START_TIMESTAMP"]
        rows["start_s"] = np.where(start > 0, start, used["H5D_F_OPEN_START_TIMESTAMP"])
        rows["end_s"] = np.maximum(rows["start_s"], used[f"H5D_F_{verb}_END_TIMESTAMP"])
        rows["transfer"] = _transfers(touch, common)[0]
        rows["collective"] = used["H5D_USE_MPIIO_COLLECTIVE"] > 0
        rows["collectives"] = np.where(rows["collective"], rows["calls"].sum(axis=1), 0)
        rows["even"] = (rows["rank"] == ALL_RANKS) & (used["H5D_F_VARIANCE_RANK_BYTES"] == 0)
        parts.append(_spread(rows, used, "H5D", ranks, spread, common, touch["count"]))
    return np.concatenate(parts)


def _chunk_bytes(block: Any) -> npt.NDArray[np.int64]:
    """Bytes of the chunks of datasets of at most five dimensions; 0: contiguous, or not known."""
    valid, chunk_bytes = np.ones((2, len(block)), np.float64)
    for k in range(1, 6):
        size = block[f"H5D_CHUNK_SIZE_D{k}"]
        inside = k <= block["H5D_DATASPACE_NDIMS"]
        valid *= ~inside | (size > 0)
        chunk_bytes *= np.where(inside & (size > 0), size, 1)
    chunk_bytes *= np.maximum(block["H5D_DATATYPE_SIZE"], 0)
    valid *= (block["H5D_DATASPACE_NDIMS"] >= 1) & (block["H5D_DATASPACE_NDIMS"] <= 5)
    return np.where((valid > 0) & (chunk_bytes <= MOST_CHUNK), chunk_bytes, 0).astype(np.int64)


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
        of_way = np.flatnonzero(rows["write"] == write)
        count = np.cumsum(new[of_way])
        _, begin, back = np.unique(rows["file"][of_way], return_index=True, return_inverse=True)
        index = count - count[begin][back.ravel()]
        rows["variable"][of_way] = index
    rows["variable"] = rows["variable"][first][which.ravel()]
    return rows

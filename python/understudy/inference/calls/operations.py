"""Operations without bytes: opens, stats and renames, which counters tell of each file and rank.

Those of a file that moved bytes belong to its dumps; what the player does not do by itself there
becomes operations of the dump. Those of files that moved none become streams of their own, in
which only their times are known.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import equal_ranks
from understudy.inference.calls.calls import MODULES, PREFIXES
from understudy.inference.table import (
    ALL_RANKS,
    METHODS,
    Once,
    Rows,
    any_of,
    joined,
    place_in,
    same,
    selected,
    sorting,
)

KINDS = ("open", "stat", "rename")
CREATE = len(KINDS)  # of files without bytes: opens that may create the file
REMOVE = CREATE + 1  # those of a file that is created again and again
MAX_MOMENTS = 1 << 16  # (time, rank) pairs of files without bytes that are kept
MAX_BINS = 1 << 16  # of ranks, above which all are taken together
MAX_NUMBERS = 4_000_000  # counts kept of the time steps of a file
SPREAD = 16  # moments over which the opens of a file are spread

Whole = npt.NDArray[np.int64]

# The operations of one rank (or of all) on one file, through one module.
OPERATION = np.dtype(
    [
        ("file", "u8"),
        ("rank", "i4"),
        ("method", "i1"),
        ("operations", "i8", (len(KINDS),)),
        ("moved", "?"),
        ("by_handle", "?"),
        ("apart", "?"),  # opens of stdio are those without fdopen()
        ("creates", "?"),
        ("first_s", "f8"),
        ("last_s", "f8"),
    ],
    align=True,
)
_METHOD = {module: method for method, module in MODULES.items()}


def operations(block: Any, module: str, alone: bool = False) -> Rows:
    """Operations that a block of records of POSIX, STDIO or MPI-IO counts; `alone`: no other
    module has records, so that the times of files that moved bytes are not needed."""
    prefix, names = PREFIXES[module], block.dtype.names
    rows = np.zeros(len(block), OPERATION)
    rows["file"], rows["rank"] = block["id"], block["rank"]
    rows["method"] = METHODS.index(_METHOD[module])

    def count(name: str) -> Whole:
        full = f"{prefix}_{name}"
        values: Whole = np.maximum(block[full] if full in names else 0, 0)
        return np.broadcast_to(values, len(block))

    if module == "MPI-IO":
        columns = [count("INDEP_OPENS") + count("COLL_OPENS")]
    elif module == "STDIO":
        columns = [np.maximum(count("OPENS") - count("FDOPENS"), 0)]
        rows["apart"] = f"{prefix}_FDOPENS" in names
    else:  # each fileno() and dup() is counted as well
        handles = count("FILENOS")
        opens = np.maximum(count("OPENS") - handles - count("DUPS"), 0)
        columns = [opens, count("STATS"), count("RENAME_SOURCES")]
        rows["by_handle"], rows["creates"] = handles > 0, count("MODE") > 0
    rows["moved"] = (block[f"{prefix}_BYTES_READ"] != 0) | (block[f"{prefix}_BYTES_WRITTEN"] != 0)
    told = rows["moved"] | rows["by_handle"]
    for k, counts in enumerate(columns):
        rows["operations"][:, k] = counts
        told |= counts > 0
    if not alone or not rows["moved"].all():
        rows["first_s"] = block[f"{prefix}_F_OPEN_START_TIMESTAMP"]
        end = f"{prefix}_F_OPEN_END_TIMESTAMP"
        last_s = block[end] if end in names else rows["first_s"]
        rows["last_s"] = np.maximum(last_s, rows["first_s"])
    return rows if told.all() else rows[told]


def own(rows: Rows, libraries: npt.NDArray[np.uint64]) -> Rows:
    """The operations that the application made itself, of all of some files; `libraries` are the
    files that HDF5 opens. `inference.log.interface_counters` counts a log by the same rules."""
    if not len(libraries) and (rows["method"] == METHODS.index("posix")).all():
        some = any_of(rows["operations"])
        return rows if some.all() else rows[some]
    method = {name: rows["method"] == METHODS.index(name) for name in METHODS}
    handles = rows["file"][method["posix"] & rows["by_handle"]]
    streamed = rows["file"][method["stdio"] & rows["moved"]]
    above = np.union1d(libraries, rows["file"][method["mpiio"]])
    # a C++ stream: its bytes are in POSIX, so its open belongs there
    twins = method["stdio"] & ~rows["moved"] & np.isin(rows["file"], handles)
    given = method["posix"] & ~rows["moved"] & np.isin(rows["file"], streamed)
    left = method["posix"] & np.isin(rows["file"], above)
    left |= method["mpiio"] & np.isin(rows["file"], libraries)
    left |= twins & np.isin(rows["file"], above)
    assigned = rows.copy()
    assigned["method"][twins] = METHODS.index("posix")
    # Opened, then given to fdopen(): where that is not told apart, its open is that of stdio.
    lost = ("stat",) if rows["apart"].any() else ("open", "stat")
    assigned["method"][given] = METHODS.index("stdio")
    for kind in lost:
        assigned["operations"][given, KINDS.index(kind)] = 0
    kept: Rows = assigned[~left & assigned["operations"].any(axis=1)]
    return kept


def attached(rows: Rows, operation_rows: Rows, ranks: int, once: Once) -> tuple[Rows, Rows]:
    """The accesses with the operations on their files, on rows of their own (`bare`) where they
    are of another rank; and the operations on files without accesses through that interface."""
    idle, more = [operation_rows[:0]], [rows]
    rows["operations"] = 0
    for method in np.flatnonzero(np.bincount(operation_rows["method"])).tolist():
        own_method = operation_rows["method"] == method
        method_rows = operation_rows if own_method.all() else operation_rows[own_method]
        which = np.flatnonzero(rows["method"] == method)
        place, has_row = _rows_of(rows, which, method_rows, once, by_rank=False)
        if not has_row.all():
            idle.append(method_rows[~has_row])
            method_rows, place = method_rows[has_row], place[:, has_row]
        target, last = place  # a write, and a read if there is one
        added = [(target, method_rows["operations"])]
        if (target != last).any():  # some file has several rows
            rank_place, has_row = _rows_of(rows, which, method_rows, once, by_rank=True)
            target, last = np.where(has_row, rank_place, place)
            both = rows["write"][target] & ~rows["write"][last]
            each = np.where(method_rows["rank"] == ALL_RANKS, ranks, 1)
            some = both & (
                method_rows["operations"][:, 0] >= 2 * each
            )  # a file is opened once to read it
            of_reads = np.zeros_like(method_rows["operations"])
            of_reads[:, 0] = np.where(some, each, 0)
            added = [(target, method_rows["operations"] - of_reads), (last, of_reads)]
        for where, counts in added:
            here = any_of(counts)
            alike = here & (rows["rank"][where] == method_rows["rank"])
            if alike.all():
                _add_to(rows["operations"], where, counts)
                continue
            _add_to(rows["operations"], where[alike], counts[alike])
            other = here & ~alike
            if not other.any():
                continue
            bare = rows[where[other]]
            bare["rank"], bare["operations"] = method_rows["rank"][other], counts[other]
            bare["bare"] = True
            for name in ("bytes", "extent", "calls", "collectives"):
                bare[name] = 0
            more.append(bare)
    return joined(more), np.concatenate(idle)


def _add_to(totals: Whole, where: npt.NDArray[np.intp], counts: Whole) -> None:
    """Add counts to rows, some of them to the same."""
    if same(where, np.arange(len(totals))):
        totals += counts
    elif len(where) and np.bincount(where).max() == 1:
        totals[where] += counts
    else:
        np.add.at(totals, where, counts)


def _rows_of(
    rows: Rows, which: npt.NDArray[np.intp], operation_rows: Rows, once: Once, *, by_rank: bool
) -> tuple[Whole, npt.NDArray[np.bool_]]:
    """The first and the last row of the file of each operation, [2, n], of the same rank or of
    any, and which operations have some: what is written first, by variables."""

    def keys(some: Rows) -> npt.NDArray[np.uint64]:
        whose: npt.NDArray[np.uint64] = some["file"]
        spread = np.uint64(0xD6E8FEB86659FD93)
        return whose + spread * (some["rank"] + 2).astype(np.uint64) if by_rank else whose

    if not len(which) or not len(operation_rows):
        return np.zeros((2, len(operation_rows)), np.int64), np.zeros(
            len(operation_rows), np.bool_
        )
    files = operation_rows["file"]
    if same(rows["file"][which], files) and once(files):
        return np.stack([which, which]), np.ones(len(operation_rows), np.bool_)
    whose = keys(rows)[which]
    order = sorting(whose)
    files = whose[order]
    new = np.ones(len(files), np.bool_)
    new[1:] = files[1:] != files[:-1]
    if not new.all():
        variable, write = rows["variable"][which], rows["write"][which]
        order = np.lexsort((variable, ~write, whose))
    first = np.flatnonzero(new)
    count = np.diff(first, append=len(files))
    files, wanted = files[first], keys(operation_rows)
    place = np.minimum(place_in(files, wanted), len(files) - 1)
    first_and_last = which[order[np.stack([first[place], first[place] + count[place] - 1])]]
    return first_and_last, files[place] == wanted


def add_to(home: Whole | None, rows: Rows, bins: int, ranks: int) -> Whole | None:
    """The operations by bin of ranks, with one bin more for those of all ranks together:
    [kinds, bins + 1]; None where there are none."""
    rows = selected(rows, any_of(rows["operations"]))
    if not len(rows):
        return home
    bins = bins if bins <= MAX_BINS else 1
    home = np.zeros((len(KINDS), bins + 1), np.int64) if home is None else home
    where = rows["rank"].astype(np.int64) * bins // ranks
    np.add.at(home.T, np.where(rows["rank"] == ALL_RANKS, bins, where), rows["operations"])
    return home


def share_of(counts: Whole | None, k: int, steps: int) -> Whole | None:
    """Operations of time step k; summed over all ranks if the array would be too large."""
    if counts is None:
        return None
    counts = together(counts) if counts.size * steps > MAX_NUMBERS else counts
    part: Whole = counts * (k + 1) // steps - counts * k // steps
    return part


def together(counts: Whole) -> Whole:
    """The operations of all ranks together: [kinds, 2]."""
    total = counts.sum(axis=1)
    return np.stack([0 * total, total], axis=1)


def per_rank(counts: Whole, ranks: int) -> Whole:
    """How many of one kind each rank makes, from those by bin: [ranks]."""
    bins = len(counts) - 1
    edges = -(-np.arange(bins + 1, dtype=np.int64) * ranks // bins)
    width, rank = np.diff(edges), np.arange(ranks)
    where = rank * bins // ranks
    low, extra = np.divmod(counts[:-1], width)
    shared = counts[-1] // ranks + (rank < counts[-1] % ranks)
    each: Whole = low[where] + (rank - edges[where] < extra[where]) + shared
    return each


def as_runs(each: Whole, ranks: int, limit: int) -> tuple[tuple[int, int], ...]:
    """Runs of ranks with the same number; of too many, or where only their sum is known, all ranks
    are alike to one."""
    begins = np.flatnonzero(np.diff(each, prepend=each[0] - 1))
    if len(begins) > limit or len(each) < ranks:
        return tuple(equal_ranks(ranks, int(each.sum())))
    return tuple(zip(np.diff([*begins, len(each)]).tolist(), each[begins].tolist(), strict=True))


# -- of files that moved no byte --------------------------------------------------------------


@dataclass(slots=True)
class Idle:
    """Opens, stats and renames of files that moved no byte, by method, time and rank.

    `moments` are (method, time in ms, rank): [n, kinds + 2] counts, the last two of creates and of
    removals.
    """

    files: int = 0
    templates: set[bytes] = field(default_factory=set)
    _keys: list[Whole] = field(default_factory=list)
    _counts: list[Whole] = field(default_factory=list)
    _step_ms: int = 1

    def add(self, rows: Rows, templates: set[bytes]) -> None:
        """Note the operations of some files; all of a file are in one call."""
        self.files += len(np.unique(rows["file"]))
        self.templates |= templates
        opens = rows["operations"][:, 0]
        points = np.clip(opens, 1, SPREAD)
        which = np.repeat(np.arange(len(rows)), points)
        nth = np.arange(len(which)) - np.repeat(np.cumsum(points) - points, points)
        along = nth / np.maximum(points[which] - 1, 1)
        time_s = rows["first_s"][which] + along * (rows["last_s"] - rows["first_s"])[which]
        counts = np.zeros((len(which), REMOVE + 1), np.int64)
        totals = rows["operations"][which]
        n, of = nth[:, None], points[which][:, None]
        counts[:, : len(KINDS)] = totals * (n + 1) // of - totals * n // of
        creates = rows["creates"][which] & (rows["rank"][which] != ALL_RANKS)
        again = creates & (opens[which] > 1)  # a lock, or a test whether one can write there
        counts[:, CREATE] = np.where(again, counts[:, 0], creates & (counts[:, 0] > 0))
        counts[:, REMOVE] = np.where(again, counts[:, 0], 0)
        counts[:, 0] -= counts[:, CREATE]
        time = (1e3 * time_s).astype(np.int64)
        self._keys.append(np.column_stack([rows["method"][which], time, rows["rank"][which]]))
        self._counts.append(counts)
        if sum(map(len, self._keys)) > 2 * MAX_MOMENTS:
            self._fold()

    def _fold(self) -> None:
        keys, counts = np.concatenate(self._keys), np.concatenate(self._counts)
        while True:
            unique, back = np.unique(keys, axis=0, return_inverse=True)
            if len(unique) <= MAX_MOMENTS:
                break
            self._step_ms *= 2
            keys[:, 1] -= keys[:, 1] % self._step_ms
            if self._step_ms > 1 << 40:  # too many ranks: their times no longer matter
                break
        sums = np.zeros((len(unique), counts.shape[1]), np.int64)
        np.add.at(sums, back.ravel(), counts)
        self._keys, self._counts = [unique], [sums]

    def moments(self, method: str) -> tuple[npt.NDArray[np.float64], Whole, Whole]:
        """Times in order, ranks and counts of one method."""
        if not self._keys:
            empty = np.empty(0, np.int64)
            return empty.astype(np.float64), empty, np.empty((0, REMOVE + 1), np.int64)
        self._fold()
        keys, counts = self._keys[0], self._counts[0]
        which = np.flatnonzero(keys[:, 0] == METHODS.index(method))
        which = which[np.argsort(keys[which, 1], kind="stable")]
        return keys[which, 1] / 1e3, keys[which, 2], counts[which]

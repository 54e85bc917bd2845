"""The table of accesses that a reader fills: one row for every rank (or for all ranks together) of
every variable of every file in one direction."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.program.counters import BINS

ALL_RANKS = -1
MAX_FIELDS = 6  # numbers of a name
BURST = levels.SMALL  # fraction of the run: where pauses tell nothing, longer ones divide
SOME = 1000  # numbers that are sorted before they are looked up
LONG = levels.FEW  # fraction of the run from which on a file is open for more than one dump

Rows = npt.NDArray[np.void]
Ids = npt.NDArray[np.uint64]

# What a row of counters and an access have alike, in one piece so that it is copied at once.
SHARED: list[Any] = [
    ("file", "u8"),  # identity of the file
    ("bytes", "i8"),  # payload
    ("start_s", "f8"),
    ("end_s", "f8"),
    ("transfer", "i8"),  # bytes of the most important call size
    ("order", "i8", (3,)),  # calls; those that follow the one before; those ahead of it
    ("gap", "i8"),  # the most common distance between calls, bytes
    ("gaps", "i8"),  # how often it is
    ("calls", "i4", (len(BINS),)),  # in each of Darshan's bins of sizes
    ("sizes", "f4", (len(BINS),)),  # their mean size in each, bytes
    ("collectives", "i4"),  # calls that are collective
    ("rank", "i4"),  # ALL_RANKS, or the one that did it
    ("write", "?"),
    ("collective", "?"),
    ("even", "?"),  # the log says that all ranks moved the same
    ("corrected", "?"),  # the bytes are not those of the counter
]

ACCESS = np.dtype(
    [
        *SHARED,
        ("template", "i4"),  # index into the name templates
        ("numbers", "i8", (MAX_FIELDS,)),  # the numbers of the name, see `Templates.split`
        ("variable", "i4"),  # within the file, in the order of time
        ("method", "i1"),  # index into METHODS
        ("synced", "?"),
        ("element", "i2"),  # bytes of an element
        ("extent", "i8"),  # size of the file on storage, on the first row of a file; else 0
        ("size", "i8"),  # the largest offset moved in this direction, plus one; 0: unknown
        ("points", "i8"),  # elements of an HDF5 dataset when it was opened last; else 0
        ("opens", "i4"),  # of each rank, of the file
        ("bare", "?"),  # the row has nothing but `operations`
        ("top", "i8"),  # bytes up to which the file was read
        ("syncs", "i4"),
        ("flushes", "i4"),  # of the buffer of stdio
        ("switches", "i8"),  # interruptions of writes by reads, where opens do not explain them
        ("busy_s", "f8"),  # in calls, of all ranks; infinite if unknown
        ("operations", "i8", (3,)),  # `understudy.inference.calls.operations.KINDS`
    ],
    align=True,
)
METHODS = ("posix", "mpiio", "hdf5", "stdio")


def shared(rows: Rows) -> npt.NDArray[np.uint32]:
    """The columns `SHARED` of rows that begin with them, as words: to copy them at once."""
    words = rows.view(np.uint32).reshape(len(rows), rows.dtype.itemsize // 4)
    return words[:, : np.dtype(SHARED).itemsize // 4]


def over_rows(merge: np.ufunc, words: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The columns merged over the rows, first those of every 16th row, which is faster for many
    short rows."""
    rows, columns = words.shape
    if not rows % 16:
        words = merge.reduce(words.reshape(-1, 16 * columns), axis=0).reshape(16, columns)
    elif rows > 16:
        whole = over_rows(merge, words[: rows - rows % 16])
        words = np.concatenate([whole[None], words[rows - rows % 16 :]])
    merged: npt.NDArray[Any] = merge.reduce(words, axis=0)
    return merged


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, not copied where only one has any."""
    some = [part for part in parts if len(part)] or parts[:1]
    return some[0] if len(some) == 1 else np.concatenate(some)


def selected(rows: Rows, which: npt.NDArray[np.bool_]) -> Rows:
    """Some rows, not copied where these are all."""
    return rows if which.all() else rows[which]


def alike(rows: Rows, names: Sequence[str]) -> bool:
    """True if these columns are the same in all rows."""
    return all(bool((rows[name] == rows[name][:1]).all()) for name in names)


def sorting(ids: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The order that sorts numbers; equal ones stay in their order. Mostly none are equal, so that
    the fastest sort will do."""
    order: npt.NDArray[np.intp] = np.argsort(ids)
    sorted_ids = ids[order]
    return np.argsort(ids, kind="stable") if (sorted_ids[1:] == sorted_ids[:-1]).any() else order


def different(ids: npt.NDArray[Any]) -> bool:
    """True if all ids are different."""
    sorted_ids = np.sort(ids)
    return not (sorted_ids[1:] == sorted_ids[:-1]).any()


def same(some: npt.NDArray[Any], others: npt.NDArray[Any]) -> bool:
    """True if these are equal, one by one."""
    return len(some) == len(others) and bool((some == others).all())


class Once:
    """Tests if ids are all different. Records and names of some files mostly have the ids in the
    same order: those that were the last found to be different are not sorted again."""

    def __init__(self) -> None:
        self._last: Ids = np.empty(0, np.uint64)

    def __call__(self, ids: Ids) -> bool:
        if same(ids, self._last):
            return True
        once = different(ids)
        if once:
            self._last = np.ascontiguousarray(ids)
        return once


def any_of(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which rows of few columns have a number that is not 0; faster than any(axis=1)."""
    nonzero: npt.NDArray[np.bool_] = counts[:, 0] != 0
    for column in counts.T[1:]:
        nonzero |= column != 0
    return nonzero


def place_in(keys: npt.NDArray[Any], wanted: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """As np.searchsorted, which is much faster for numbers in order."""
    if len(wanted) < SOME:
        return np.searchsorted(keys, wanted)
    place = np.empty(len(wanted), np.intp)
    order = np.argsort(wanted)
    place[order] = np.searchsorted(keys, wanted[order])
    return place


def within(ids: Ids, sorted_ids: Ids) -> npt.NDArray[np.bool_]:
    """Which of the ids are among `sorted_ids`."""
    if not len(sorted_ids):
        return np.zeros(len(ids), np.bool_)
    place = np.searchsorted(sorted_ids, ids)
    place[place == len(sorted_ids)] = 0
    contained: npt.NDArray[np.bool_] = sorted_ids[place] == ids
    return contained


class IdSet:
    """Ids that come in blocks: sorted and without repeats when asked for."""

    def __init__(self) -> None:
        self._parts: list[Ids] = [np.empty(0, np.uint64)]

    def add(self, ids: Ids) -> None:
        if len(ids):
            self._parts.append(ids.copy())

    @property
    def ids(self) -> Ids:
        if len(self._parts) > 1:
            self._parts = [np.unique(np.concatenate(self._parts))]
        return self._parts[0]

    def has(self, ids: Ids) -> npt.NDArray[np.bool_]:
        return within(ids, self.ids)

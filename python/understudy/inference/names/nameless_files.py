"""Groups files without usable names by size and time."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.names.filename_numbers import MAX_VALUES, burst_starts
from understudy.inference.names.name_templates import NAMELESS
from understudy.inference.table import ALL_RANKS, Rows

NUMBERS = 2
_KINDS = 3  # a file of one rank, of several, and one open for most of the run


class Nameless:
    """Groups files without usable names by size and time: what each rank does to files of its own
    becomes a dump per burst; files of several ranks, and those open for most of the run, stay
    separate. Sizes that differ by a factor of four or more, with none between, are not mixed."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._last_s = 0.0
        self._sizes = np.zeros(
            (2, _KINDS, 64), np.int64
        )  # files by the power of two of their size
        self._starts: list[npt.NDArray[np.float64]] = [np.empty(0), np.empty(0)]  # by direction
        self._files: tuple[Counter[int], Counter[int]] = (Counter(), Counter())  # of each rank

    def numbered(self, blocks: Callable[[], Iterable[Rows]]) -> Callable[[], Iterable[Rows]]:
        for rows in blocks():
            self._last_s = max(self._last_s, float(rows["end_s"].max(initial=0.0)))
        for rows in blocks():
            self._learn(rows[(rows["template"] == NAMELESS) & ~rows["bare"]])
        if not self._sizes.any():
            return blocks
        most = [max(self._files[w].values(), default=0) for w in (0, 1)]
        bursts = [burst_starts(self._starts[w], most[w], self._last_s) for w in (0, 1)]
        classes = [[_classes(sizes) for sizes in kinds] for kinds in self._sizes]

        def numbered() -> Iterator[Rows]:
            for block in blocks():
                rows = block.copy()
                nameless = rows["template"] == NAMELESS
                accesses = np.flatnonzero(nameless & ~rows["bare"])
                for write, kind, some, power in self._kinds(rows[accesses]):
                    at = accesses[some]
                    rows["template"][at] = -1 - (64 * kind + classes[write][kind][power])
                    if kind == 0:
                        start_s = np.round(rows["start_s"][at], 3)
                        rows["numbers"][at, 0] = np.searchsorted(bursts[write], start_s, "right")
                        rows["numbers"][at, 1] = rows["rank"][at]
                    else:
                        rows["numbers"][at, 0] = (rows["file"][at] >> np.uint64(1)).astype(
                            np.int64
                        )
                _follow(rows, np.flatnonzero(nameless & rows["bare"]), accesses)
                yield rows

        return numbered

    def _learn(self, rows: Rows) -> None:
        for write, kind, some, power in self._kinds(rows):
            np.add.at(self._sizes[write, kind], power, 1)
            if kind == 0:
                who, count = np.unique(rows["rank"][some], return_counts=True)
                self._files[write].update(dict(zip(who.tolist(), count.tolist(), strict=True)))
                starts = np.concatenate([self._starts[write], np.round(rows["start_s"][some], 3)])
                self._starts[write] = np.unique(starts)
                if len(self._starts[write]) > MAX_VALUES:
                    self._starts[write] = self._starts[write][::2]

    def _kinds(self, rows: Rows) -> Iterator[tuple[int, int, Any, Any]]:
        """(direction, kind, which rows, power of two of the size of their file)."""
        files, which = np.unique(rows[["file", "write"]], return_inverse=True)
        which = which.ravel()
        size, ranks = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        np.add.at(size, which, rows["bytes"])
        np.add.at(ranks, which, np.where(rows["rank"] == ALL_RANKS, 2, 1))
        power = np.log2(np.maximum(size, 1)).astype(np.int64)[which]
        long = rows["end_s"] - rows["start_s"] > 0.5 * self._last_s
        kind = np.where(long, 2, np.where(ranks[which] > 1, 1, 0))
        for write in (0, 1):
            for k in range(_KINDS):
                some = np.flatnonzero((rows["write"] == bool(write)) & (kind == k))
                if len(some):
                    yield write, k, some, power[some]


def _follow(rows: Rows, bare: npt.NDArray[np.intp], accesses: npt.NDArray[np.intp]) -> None:
    """Rows with nothing but operations belong where a row of their file does."""
    keys = 2 * rows["file"] + rows["write"]  # identities are hashes: the lowest bit says little
    order = accesses[np.argsort(keys[accesses], kind="stable")]
    for n in bare.tolist():
        home = order[np.searchsorted(keys[order], keys[n])]
        rows["template"][n], rows["numbers"][n] = rows["template"][home], rows["numbers"][home]


def _classes(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Class of each power of two; an empty one between two used ones separates them."""
    used = np.flatnonzero(sizes)
    new = np.zeros(len(sizes), np.int64)
    new[used[1:][np.diff(used) > 2]] = 1
    classes: npt.NDArray[np.int64] = np.cumsum(new)
    return classes

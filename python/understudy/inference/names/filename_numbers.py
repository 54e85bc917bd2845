"""Meaning of each number in a file name.

It counts ranks where its values belong to disjoint ranks, dumps where its values follow one
another in time; otherwise it tells several files of one dump apart.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.table import ALL_RANKS, BURST, Rows

MAX_VALUES = 1 << 18  # values of a number whose ranks and times are kept
# Seconds, or share of the run, within which files are of one burst.
NEAR_S, NEAR = levels.NEAR_S, levels.NEGLIGIBLE
MIN_MERGED = 1 << 14  # accesses that are merged at a time
MAX_ITEMS = 1024  # files of one dump that are told apart


class Spans:
    """Ranks and times of the accesses by the value that one number of their names has."""

    _FIELDS = (
        ("value", "i8"),
        ("first_rank", "i8"),
        ("last_rank", "i8"),
        ("first_s", "f8"),
        ("last_s", "f8"),  # first and last start
        ("end_s", "f8"),
    )
    _MERGE = (
        ("first_rank", np.minimum),
        ("last_rank", np.maximum),
        ("first_s", np.minimum),
        ("last_s", np.maximum),
        ("end_s", np.maximum),
    )

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rows: Rows = np.empty(0, list(self._FIELDS))
        self._added: list[Rows] = []  # not merged into them yet
        self._added_rows = 0

    @classmethod
    def of(cls, rows: Rows) -> "Spans":
        """Those of such rows."""
        spans = cls(len(rows))
        spans._rows = np.concatenate([spans._rows, rows])
        return spans

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> Rows:
        """A row for each value, in order."""
        if self._added:
            added, self._added, self._added_rows = self._added, [], 0
            merged = self._merged(added)
            if len(merged) > self._limit:  # the first of what was added with which they are more
                enough = bisect_right(
                    range(len(added)), self._limit, key=lambda n: len(self._merged(added[:n]))
                )
                merged = merged if enough == len(added) else self._merged(added[:enough])
            self._rows = merged
        return self._rows

    @property
    def full(self) -> bool:
        """True if there are more values than the limit; more are not noted."""
        return len(self.rows) > self._limit

    def add(self, values: npt.NDArray[np.int64], seen: Rows) -> None:
        """Note the values of accesses; `seen` has the other columns."""
        if len(self._rows) > self._limit:
            return
        new = seen.copy()
        new["value"] = values
        self._added.append(new)
        self._added_rows += len(new)
        if self._added_rows > max(MIN_MERGED, len(self._rows) // 4):
            self._rows = self.rows

    def _merged(self, added: Sequence[Rows]) -> Rows:
        """The rows, and what was added, with a row for each value."""
        both: Rows = np.concatenate([self._rows, *added])
        both = both[np.argsort(both["value"])]
        new = np.ones(len(both), np.bool_)
        new[1:] = both["value"][1:] != both["value"][:-1]
        if new.all():
            return both
        begin = np.flatnonzero(new)
        rows: Rows = both[begin]
        for name, merge in self._MERGE:
            rows[name] = merge.reduceat(both[name], begin)
        return rows

    @classmethod
    def seen(cls, accesses: Rows, ranks: int) -> Rows:
        """Ranks and times of accesses, for `add`."""
        rows = np.zeros(len(accesses), list(cls._FIELDS))
        shared = accesses["rank"] == ALL_RANKS
        rows["first_rank"] = np.where(shared, 0, accesses["rank"])
        rows["last_rank"] = np.where(shared, ranks - 1, accesses["rank"])
        rows["first_s"] = rows["last_s"] = accesses["start_s"]
        rows["end_s"] = accesses["end_s"]
        return rows

    @property
    def disjoint_ranks(self) -> bool:
        first, last = self._sorted("first_rank", "last_rank")
        return bool(np.all(last[:-1] < first[1:]))

    @property
    def disjoint_times(self) -> bool:
        first_s, last_s = self._sorted("first_s", "last_s")
        return bool(np.all(last_s[:-1] < first_s[1:]))

    def concurrent(self, runtime_s: float) -> bool:
        """Some overlap in time, or all follow one another at once: within a second or the time
        that one takes, but no more than a fraction of the run."""
        gaps = self._gaps()
        longest_s = float((self.rows["end_s"] - self.rows["first_s"]).max())
        return bool(gaps.min() < 0 or gaps.max() < min(BURST * runtime_s, max(NEAR_S, longest_s)))

    @property
    def serial(self) -> bool:
        """The number counts files: each is one rank's, and most overlap with the next."""
        single_rank = self.rows["first_rank"] == self.rows["last_rank"]
        several = len(np.unique(self.rows["first_rank"])) > 1
        return bool(single_rank.all() and several and np.mean(self._gaps() < 0) > 0.5)

    @property
    def ascending(self) -> bool:
        """The values rise with the ranks."""
        return self.rows["first_rank"][0] == 0 and bool(
            np.all(np.diff(self.rows["first_rank"]) > 0)
        )

    def bursts(self) -> npt.NDArray[np.float64]:
        """Start times of the bursts after the first, if each rank has one file in each."""
        who = len(np.unique(self.rows["first_rank"]))
        last_s = float(self.rows["end_s"].max())
        return burst_starts(np.unique(self.rows["first_s"]), -(-len(self) // who), last_s)

    def _sorted(self, first: str, last: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """Two columns in the order of the first."""
        order = np.argsort(self.rows[first], kind="stable")
        return self.rows[first][order], self.rows[last][order]

    def _gaps(self) -> npt.NDArray[np.float64]:
        first_s, end_s = self._sorted("first_s", "end_s")
        gaps: npt.NDArray[np.float64] = first_s[1:] - end_s[:-1]
        return gaps


def roles_of(fields: Sequence[Spans], ranks: int, runtime_s: float) -> list[str]:
    """The role of each number: fixed, rank, dump, item (files of one dump), serial (counts all
    files), or burst (a serial number, if no number counts the dumps)."""
    disjoint_ranks = [not s.full and s.disjoint_ranks for s in fields]
    disjoint_times = [not s.full and s.disjoint_times for s in fields]
    roles = []
    for place, spans in enumerate(fields):
        in_ranks, in_times = disjoint_ranks[place], disjoint_times[place]
        if len(spans) < 2:
            roles.append("fixed")
        elif spans.full:
            roles.append("serial")
        elif in_ranks and in_times and not spans.concurrent(runtime_s):
            # Files of one rank after another: it counts ranks if the values rise with the ranks
            # or if another number already counts the dumps.
            others = any(
                disjoint_times[o] and not disjoint_ranks[o] and len(fields[o]) > 1
                for o in range(len(fields))
                if o != place
            )
            ascending = spans.ascending and len(spans) > ranks // 2
            roles.append("rank" if others or ascending else "dump")
        elif in_ranks:
            roles.append("rank")
        elif spans.serial:
            roles.append("serial")
        elif in_times:
            roles.append("dump")
        else:
            roles.append("item" if len(spans) <= MAX_ITEMS else "serial")
    if "serial" in roles and "dump" not in roles and "rank" not in roles:
        roles[roles.index("serial")] = "burst"
    return roles


def burst_starts(
    starts: npt.NDArray[np.float64], limit: int, last_s: float
) -> npt.NDArray[np.float64]:
    """Start times of the bursts after the first: at most `limit`, split at the largest gaps, which
    are at least a second, or a thousandth of the time up to `last_s` if that is shorter."""
    gaps = np.diff(starts)
    largest = np.argsort(gaps)[::-1][: max(0, limit - 1)]
    least_s = max(0.02 * gaps.max(initial=0.0), min(NEAR_S, NEAR * last_s))
    largest = largest[gaps[largest] > least_s]
    begins: npt.NDArray[np.float64] = starts[1:][np.sort(largest)]
    return begins

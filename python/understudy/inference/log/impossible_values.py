"""Values that no run can have, taken out before anything is concluded from them.

A damaged or edited log can state a rank that the job does not have, a time that is not finite, or
more bytes than storage holds. A record whose rank or bytes are impossible is left out; an
impossible time or count becomes unknown. What was taken out is counted for the notes.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import UnderstudyError
from understudy.inference.table import ALL_RANKS, Rows, over_rows

MAX_RANKS = 1 << 24
MAX_BYTES = 1 << 56  # of a record; 64 PiB
MAX_TOTAL = 1 << 61  # of all records: their sums stay below 2^63
MAX_COUNT = 1 << 53  # calls, or any other counter
MAX_MOVED = float(1 << 60)  # bytes that the calls of one common size can move
CENTURY_S = 3.2e9
LEFT_OUT = "left out, whose rank, bytes or times no run of this job can have"
UNKNOWN = -1  # counters of old logs that lack them have this value, too


@dataclass(frozen=True, slots=True)
class _Columns:
    """Places of the counters in a record, as words of 8 bytes."""

    rank: int
    bytes: list[int]
    times: list[int]
    timers: npt.NDArray[np.bool_]  # which of `times` are sums over the ranks
    counts: list[int]
    unknown: npt.NDArray[np.int64]  # what each of `counts` becomes
    ranks: list[int]  # which of `counts` are ranks
    common: list[tuple[int, int]]  # common sizes and how often they occur


_COUNT = re.compile(
    r"READS$|WRITES$|OPENS$|STATS$|SEEKS$|RENAME_SOURCES$|RENAME_TARGETS$|SYNCS$|FLUSHES$|FILENOS$|"
    r"NPOINTS$|DATATYPE_SIZE$|EST_RANK|"
    r"_ACCESS$|ACCESS\d_COUNT$|_SIZE_READ_|_SIZE_WRITE_|_MAX_BYTE_"
)


@cache
def _columns(fields: tuple[str, ...]) -> _Columns:
    place = {name: k for k, name in enumerate(fields)}
    sums = [n for n in fields if n.endswith(("_BYTES_READ", "_BYTES_WRITTEN"))]
    times = [n for n in fields if n.endswith(("_TIMESTAMP", "_TIME"))]
    counts = [n for n in fields if _COUNT.search(n) and "_F_" not in n]
    reset = [UNKNOWN if "_MAX_BYTE_" in n or n.endswith("_RANK") else 0 for n in counts]
    return _Columns(
        rank=place["rank"],
        bytes=[place[n] for n in sums],
        times=[place[n] for n in times],
        timers=np.array([n.endswith("_TIME") for n in times], np.bool_),
        counts=[place[n] for n in counts],
        unknown=np.array(reset, np.int64),
        ranks=[k for k, n in enumerate(counts) if n.endswith("_RANK")],
        common=[(place[n], place[f"{n[:-7]}_COUNT"]) for n in fields if n.endswith("_ACCESS")],
    )


@dataclass(slots=True)
class Screen:
    """The screen of one log, for a job of so many ranks that took `run_time_s` (None: unknown)."""

    where: str  # names the log in messages
    ranks: int
    run_time_s: float | None
    records: Counter[str] = field(default_factory=Counter)  # by module, as the next three
    left_out: Counter[str] = field(default_factory=Counter)
    timeless: Counter[str] = field(default_factory=Counter)
    uncounted: Counter[str] = field(default_factory=Counter)
    counted: set[tuple[object, ...]] = field(default_factory=set)  # see `segments`
    total: float = 0.0

    @property
    def latest_s(self) -> float:
        """No time is later: the clocks of nodes may differ from that of the job by a little."""
        return CENTURY_S if self.run_time_s is None else 1.1 * self.run_time_s + 60

    def __call__(self, module: str, block: Rows) -> Rows:
        """A block of records of a module of fixed size, screened.

        Raises UnderstudyError where the bytes of all records exceed what can be added up.
        """
        columns = _columns(block.dtype.names or ())
        self.records[module] += len(block)
        words = np.ascontiguousarray(block).view(np.int64).reshape(len(block), -1)
        if len(block) and self._fine(words, columns):
            return block
        lowest = -MAX_BYTES if module == "MPI-IO" else UNKNOWN  # its counter of bytes overflows
        moved = words[:, columns.bytes]
        good = np.all((moved >= lowest) & (moved <= MAX_BYTES), axis=1)
        rank = words[:, columns.rank]
        good &= (rank >= -1) & (rank < self.ranks)
        self.left_out[module] += int(len(good) - good.sum())
        screened = self._plausible(module, words[good], columns)
        self.total += float(screened[:, columns.bytes].sum(dtype=np.float64))
        if self.total > MAX_TOTAL:
            raise UnderstudyError(
                f"{self.where}: module {module}: the records add up to {self.total:.3g} B, "
                f"expected at most {MAX_TOTAL:.3g} B"
            )
        rows: Rows = screened.view(block.dtype)[:, 0]
        return rows

    def _fine(self, words: npt.NDArray[np.int64], columns: _Columns) -> bool:
        """True if no record has an impossible or unknown value, by the smallest and the largest of
        each column; the bytes are then added to the total."""
        low, high = (over_rows(merge, words) for merge in (np.minimum, np.maximum))
        moved = columns.bytes
        if low[moved].min(initial=0) < 0 or high[moved].max(initial=0) > MAX_BYTES:
            return False
        if low[columns.rank] < ALL_RANKS or high[columns.rank] >= self.ranks:
            return False
        # Of numbers that are not negative, the larger one has the larger bits.
        latest_s = np.where(columns.timers, self.ranks * self.latest_s, self.latest_s)
        if (
            low[columns.times].min(initial=0) < 0
            or (high[columns.times] > latest_s.view(np.int64)).any()
        ):
            return False
        counts = columns.counts
        if low[counts].min(initial=0) < UNKNOWN or high[counts].max(initial=0) > MAX_COUNT:
            return False
        if any(high[counts[k]] >= self.ranks for k in columns.ranks):
            return False
        if any(float(high[a]) * float(high[b]) > MAX_MOVED for a, b in columns.common):
            return False
        total = self.total + float(words[:, columns.bytes].sum(dtype=np.float64))
        if total > MAX_TOTAL:
            return False
        self.total = total
        return True

    def _plausible(
        self, module: str, words: npt.NDArray[np.int64], columns: _Columns
    ) -> npt.NDArray[np.int64]:
        """The words with unknown times and counts where they are impossible."""
        times, counts = words.view(np.float64)[:, columns.times], words[:, columns.counts]
        latest_s = np.where(columns.timers, self.ranks * self.latest_s, self.latest_s)
        lacking = np.zeros((len(words), len(columns.bytes)), np.bool_)
        if module != "MPI-IO":  # there, a negative number is an overflow
            lacking = words[:, columns.bytes] == UNKNOWN
        bad = ~((times >= 0) & (times <= latest_s))
        odd = (counts < UNKNOWN) | (counts > MAX_COUNT)
        odd[:, columns.ranks] |= counts[:, columns.ranks] >= self.ranks
        if bad.any() or odd.any() or lacking.any():
            words = words.copy()
            moved = words[:, columns.bytes]
            words[:, columns.bytes] = np.where(lacking, 0, moved)
            words.view(np.float64)[:, columns.times] = np.where(bad, 0.0, times)
            words[:, columns.counts] = np.where(odd, columns.unknown, counts)
            self.timeless[module] += int((bad & (times != UNKNOWN)).any(axis=1).sum())
            self.uncounted[module] += int((odd.any(axis=1) | lacking.any(axis=1)).sum())
        for size, count in columns.common:
            huge = words[:, size].astype(np.float64) * words[:, count] > MAX_MOVED
            if huge.any():
                words = words.copy()
                words[huge, size] = words[huge, count] = 0
                self.uncounted[module] += int(huge.sum())
        return words

    def segments(self, module: str, rows: Any, *record: int) -> Any:
        """Traced accesses whose times and length can be true; what is left out counts once for
        each `record`, however often that is read."""
        length, start, end = rows["length"], rows["start_s"], rows["end_s"]
        good = (length >= 0) & (length <= MAX_BYTES) & (start >= 0) & (end >= start)
        good &= end <= self.latest_s
        if (key := (module, *record)) not in self.counted:
            self.left_out[module] += int(len(good) - good.sum())
            if record and not good.all():
                self.counted.add(key)
        return rows[good]

    def heat(self, width_s: float, *bins: npt.NDArray[np.int64]) -> bool:
        """True if a record of the heatmap is possible; counted if not."""
        possible = all(((b >= 0) & (b <= MAX_BYTES)).all() for b in bins)
        good = 1e-6 <= width_s <= CENTURY_S and possible
        self.left_out["HEATMAP"] += not good
        return good

    def notes(self, modules: Iterable[str]) -> list[str]:
        """Notes on what was left out, one for each module, and on modules read that had no
        records."""
        texts = (
            (self.left_out, LEFT_OUT),
            (
                self.timeless,
                "with times that are not finite, negative or long after the end of "
                "the job: these times are unknown",
            ),
            (self.uncounted, "with counters that no run can have: these are unknown"),
        )
        notes = [f"Module {m} has no records." for m in modules if not self.records[m]]
        return notes + [
            f"Module {module}: {count} {'record' if count == 1 else 'records'} {text}."
            for counter, text in texts
            for module, count in counter.items()
            if count
        ]

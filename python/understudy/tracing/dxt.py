"""Calls of a Darshan log with DXT, its extended tracing: each read and write that POSIX saw, at
its place and time, and between them the opens, stats and syncs, which Darshan only counts.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice, pairwise
from typing import Any

import numpy as np

from understudy.darshanlog import MORE_MEMORY, Log
from understudy.errors import UnderstudyError
from understudy.inference import constants as levels
from understudy.inference.log.impossible_values import MAX_BYTES, Screen
from understudy.inference.log.interface_counters import not_junk
from understudy.inference.log.trace_gaps import Ids, Kept, gaps
from understudy.inference.steps.overlaps import CLOCK_S, depths
from understudy.inference.steps.overwritten_files import passes_of
from understudy.inference.table import ALL_RANKS
from understudy.program.types import requests_left_out
from understudy.tracing.files import File, Path, TracedCall
from understudy.tracing.vocabulary import MAX_CALL_BYTES
from understudy.units import plural, size

MODULE = "DXT_POSIX"
REMEDY = (
    "record it with DXT_ENABLE_IO_TRACE=1 in the environment (or DARSHAN_MOD_ENABLE=DXT_POSIX), "
    "or, since DXT does not see stdio, with understudy record"
)
MAX_CALLS = 1 << 24
MAX_HANDLES = 1 << 16
PAUSE = levels.SMALL  # share of the run time


def _type(**fields: str) -> np.dtype[np.void]:
    return np.dtype(list(fields.items()))


SEGMENT = _type(file="u8", rank="i8", write="?", at="i8", bytes="i8", begin_s="f8", end_s="f8")
# `order_s`: the end, by which calls are in order. `needs`: another rank reads or wrote the bytes.
CALL = _type(
    **{"order_s": "f8", "begin_s": "f8", "seconds": "f8", "rank": "i4", "file": "i4"},
    **{"kind": "i1", "flags": "i1", "needs": "?", "depth": "i2", "bytes": "i8", "at": "i8"},
)
# In the order in which they stand at one segment.
OPEN, STAT, READ, WRITE, SYNC, DATA_SYNC, CLOSE = range(7)
WORDS = ("open", "stat", "read", "write", "sync", "sync", "close")
# How files are opened: the words by the sum of 1, 2, 4 and 8.
FLAGS = [
    [word for k, word in enumerate(("read", "write", "create", "truncate")) if number >> k & 1]
    for number in range(16)
]
# Counters of what is not played as it was made.
LEFT_OUT = {
    "RENAME_SOURCES": "renames",
    "MMAPS": "what is moved in files that are mapped into memory",
    "SEEKS": "seeks, as places of reads and writes",
}


@dataclass(slots=True)
class _Counts:
    """Counts of a rank and a file, or of all ranks and a file: calls, and seconds of the first
    open, the last close, and all of these calls together; 0: unknown."""

    opens: int = 0
    stats: int = 0
    syncs: int = 0
    data_syncs: int = 0
    open_s: float = 0.0
    close_s: float = 0.0
    meta_s: float = 0.0

    @property
    def each_s(self) -> float:
        """Seconds of one call."""
        calls = 2 * self.opens + self.stats + self.syncs + self.data_syncs
        return self.meta_s / max(1, calls)

    def share(self, k: int, parts: int) -> "_Counts":
        """Counts of the k-th of `parts` ranks."""
        names = ("opens", "stats", "syncs", "data_syncs")
        whole = {name: getattr(self, name) for name in names}
        shares = {name: n // parts + (k < n % parts) for name, n in whole.items()}
        return replace(self, meta_s=self.meta_s / parts, **shares)


class TracedLog:
    """The calls of a log, as `understudy.tracing.program.workload_of` takes them. Raises
    UnderstudyError where it has no DXT, or more calls than `MAX_CALLS`."""

    roots = ("/",)
    begin_s = 0.0
    call_s = 0.0

    def __init__(self, log: Log, ranks: int, tick: Callable[[float], None]) -> None:
        if MODULE not in log.modules:
            raise UnderstudyError(f"{log.path}: no module {MODULE}; {REMEDY}")
        self._where, self._nprocs = str(log.path), ranks
        self.left_out: Counter[str] = Counter()
        self.paths: dict[str, Path] = {}
        self.files: list[File] = []
        self.truncated = self.reopened = self._count = 0
        self.screen = Screen(str(log.path), ranks, log.job.run_time_s)
        kept = not_junk(log)
        self.gaps = gaps(log, Screen(str(log.path), ranks, log.job.run_time_s), kept)
        segments = self._segments(log, kept)
        counts = self._counts(log, kept)
        tick(0.3)
        files = np.union1d(segments["file"], np.array(list(counts), np.uint64))
        self._names = self._named(log, files)
        edges = np.append(np.searchsorted(segments["file"], files), len(segments))
        calls = [np.zeros(0, CALL)]
        for n, file in enumerate(files.tolist()):
            calls += self._of_file(n, segments[edges[n] : edges[n + 1]], counts.get(file, {}))
        self._calls = np.concatenate(calls)
        self._calls = self._calls[np.argsort(self._calls["order_s"], kind="stable")]
        self.overlapping = self._overlap()
        self.ranks = {rank: rank for rank in np.unique(self._calls["rank"]).tolist()}
        ends = self._calls["begin_s"] + self._calls["seconds"]
        last_s = float(ends.max(initial=0.0))
        told_s = log.job.run_time_s or 0.0
        self.run_time_s = told_s if told_s > 0 else last_s
        self.pause_s = PAUSE * self.run_time_s
        tick(0.5)

    def notes(self) -> Iterator[str]:
        """Notes on unknown calls, and on those that are not played."""
        yield (
            "Darshan counts opens, closes, stats and syncs, and traces none: a file is open from "
            "the first open to the last close of its rank; stats and syncs, on open files, are "
            "spread evenly over its reads and writes; and those of a record of all ranks over "
            "these."
        )
        if self.reopened:
            yield (
                f"Assumed: {self.reopened:,} opens of files that a rank opened several times are "
                "where its offsets start again, if that is as often, else in its longest pauses."
            )
        if self.overlapping:
            yield (
                f"Played: {self.overlapping:,} reads and writes of ranks at a time, as threads or "
                "asynchronous calls make them, as calls in flight."
            )
        if self.truncated:
            yield (
                f"Assumed: {self.truncated:,} opens truncate: behind them, the only rank of a "
                "file writes all of it from its begin on."
            )
        if self.gaps.calls or self.gaps.bytes:
            moves = int(np.count_nonzero(np.isin(self._calls["kind"], (READ, WRITE))))
            if self.gaps.calls:
                yield requests_left_out(self.gaps.calls, self.gaps.calls + moves)
            yield (
                f"Not played: {self.gaps.calls:,} reads and writes ({size(self.gaps.bytes)}) that "
                f"POSIX counted and DXT lacks; record it again {MORE_MEMORY}."
            )
        if self.gaps.stdio_files:
            yield (
                f"Not played: stdio of {plural(self.gaps.stdio_files, 'file')} "
                f"({size(self.gaps.stdio_bytes)} counted, without putc, fprintf and the _unlocked "
                "calls): DXT does not see it."
            )

    # -- what the log has -------------------------------------------------------------------------

    def _segments(self, log: Log, kept: Kept) -> Any:
        """All traced calls (SEGMENT [n]), those of a rank on a file one behind the other."""
        parts = [np.zeros(0, SEGMENT)]
        for record in log.dxt(MODULE):
            if not kept(np.array([record.id], np.uint64))[0]:
                continue
            for write, rows in enumerate((record.read_segments, record.write_segments)):
                good = self.screen.segments(MODULE, rows)
                fits = (good["length"] <= MAX_CALL_BYTES) & (good["offset"] >= 0)
                fits &= good["offset"] <= MAX_BYTES
                fits &= 0 <= record.rank < self._nprocs
                self.screen.left_out[MODULE] += int(len(good) - fits.sum())
                good = good[fits]
                self._take(len(good))
                part = np.zeros(len(good), SEGMENT)
                part["file"], part["rank"], part["write"] = record.id, record.rank, write
                part["at"], part["bytes"] = good["offset"], good["length"]
                part["begin_s"], part["end_s"] = good["start_s"], good["end_s"]
                parts.append(part)
        segments = np.concatenate(parts)
        return segments[
            np.lexsort([segments[key] for key in ("end_s", "begin_s", "rank", "file")])
        ]

    def _overlap(self) -> int:
        """Let reads and writes of a rank state how many overlap, between its other calls; the
        number of these."""
        calls = self._calls
        calls["depth"] = 1
        moves = (calls["kind"] == READ) | (calls["kind"] == WRITE)
        order = np.argsort(calls["rank"], kind="stable")
        edges = np.flatnonzero(np.diff(calls["rank"][order])) + 1
        for indices in np.split(order, edges):
            here = moves[indices]
            some = indices[here]
            begins, ends = calls["begin_s"][some], calls["begin_s"][some] + calls["seconds"][some]
            calls["depth"][some] = depths(begins, ends, np.cumsum(~here)[here], CLOCK_S)
        return int((calls["depth"] > 1).sum())

    def _counts(self, log: Log, kept: Kept) -> dict[int, dict[int, _Counts]]:
        """The counters of POSIX by file and rank."""
        counts_by_file: dict[int, dict[int, _Counts]] = {}
        for block in log.records("POSIX"):
            rows = self.screen("POSIX", block)
            rows = rows[kept(rows["id"])]

            def counter(name: str, rows: Any = rows) -> Any:
                return np.maximum(rows[f"POSIX_{name}"], 0)  # below: the log is older than it

            # it counts each fileno() and dup(), too
            opens = np.maximum(counter("OPENS") - counter("FILENOS") - counter("DUPS"), 0)
            counts = [opens, *map(counter, ("STATS", "FSYNCS", "FDSYNCS"))]
            self._take(sum(float(some.sum(dtype=np.float64)) for some in counts))
            self.left_out.update({k: int(counter(name).sum()) for name, k in LEFT_OUT.items()})
            times = map(
                counter, ("F_OPEN_START_TIMESTAMP", "F_CLOSE_END_TIMESTAMP", "F_META_TIME")
            )
            columns = [some.tolist() for some in (rows["id"], rows["rank"], *counts, *times)]
            for file, rank, *rest in zip(*columns, strict=True):
                counts_by_file.setdefault(file, {})[rank] = _Counts(*rest)
        self.left_out = +self.left_out
        return counts_by_file

    def _take(self, calls: float) -> None:
        self._count += int(calls)
        if self._count > MAX_CALLS:
            raise UnderstudyError(
                f"{self._where}: {self._count:,} calls, expected at most {MAX_CALLS:,}"
            )

    def _named(self, log: Log, files: Ids) -> list[str]:
        """Numbers for names, those of files in a directory behind that of it, if there are
        several."""
        parents: dict[int, bytes] = {}
        for ids, texts in log.names():
            for n in np.flatnonzero(np.isin(ids, files)).tolist():
                parents.setdefault(int(ids[n]), texts[n].rpartition(b"/")[0])
        numbers = {parent: n for n, parent in enumerate(sorted(set(parents.values())))}
        if len(numbers) < 2:
            return [f"/{n}" for n in range(len(files))]
        self.paths |= {f"/d{n}": Path(directory=True, before=True) for n in numbers.values()}
        directories = (numbers.get(parents.get(file, b"")) for file in files.tolist())
        return [f"/{n}" if d is None else f"/d{d}/{n}" for n, d in enumerate(directories)]

    # -- calls of a file --------------------------------------------------------------------------

    def _of_file(self, n: int, rows: Any, counts: dict[int, _Counts]) -> Iterator[Any]:
        """The calls of all ranks on file `n` (CALL [k] each)."""
        prepared, before = _found(rows)
        ends = rows["at"] + rows["bytes"]
        top = max(prepared, int(ends[rows["write"]].max(initial=0)))
        self.paths[self._names[n]] = Path(before=before, bytes=prepared)
        self.files.append(File(size=top, most=top))
        needy = list(_needy(rows))
        parts = np.split(rows, np.flatnonzero(np.diff(rows["rank"])) + 1)
        lives = {int(part["rank"][0]): part for part in parts if len(part)}
        only_user = len(lives.keys() | counts.keys()) == 1 and ALL_RANKS not in counts
        for life, count, ranks in self._lives(lives, counts, rows[:0]):
            calls = self._life(life, count, before, prepared if only_user else None)
            reads, writes = calls["kind"] == READ, calls["kind"] == WRITE
            calls["file"] = n
            calls["needs"] = (writes & bool(needy)) | (reads & (ranks[0] in needy))
            every = np.tile(calls, len(ranks))
            every["rank"] = np.repeat(ranks, len(calls))
            yield every

    def _lives(
        self, lives: dict[int, Any], counts: dict[int, _Counts], none: Any
    ) -> Iterator[tuple[Any, _Counts, list[int]]]:
        """Traced calls on a file, what is counted beside them, and the ranks with both."""
        whole = counts.get(ALL_RANKS)
        if whole is None:
            for rank in sorted(lives.keys() | counts.keys()):
                yield lives.get(rank, none), counts.get(rank, _Counts()), [rank]
            return
        parts = max(1, len(lives), min(self._nprocs, whole.opens))
        for k, rank in enumerate(lives):
            yield lives[rank], replace(whole.share(k, parts), close_s=0.0), [rank]
        others = (rank for rank in range(self._nprocs) if rank not in lives)
        rests = (n % parts for n in (whole.opens, whole.stats, whole.syncs, whole.data_syncs))
        cuts = sorted({len(lives), parts, *(n for n in rests if n > len(lives))})
        for k, end in pairwise(cuts):  # ranks with equal shares
            yield none, whole.share(k, parts), list(islice(others, end - k))

    def _life(self, rows: Any, count: _Counts, before: bool, prepared: int | None) -> Any:
        """The calls of a rank on a file: CALL [k], in order. `prepared`: bytes that the file has
        before, if no other rank uses it."""
        n, opens = len(rows), count.opens or int(len(rows) > 0)
        begins = _begins(rows, opens)
        ends = [*begins[1:], n] if begins else []
        empty = opens - len(begins)  # opens without a call, before the others
        first_s = float(rows["begin_s"][0]) if n else np.inf
        open_s = count.open_s if 0 < count.open_s < first_s else first_s if n else 0.0
        end_s = np.maximum.accumulate(rows["end_s"])
        close_s = max(count.close_s, float(end_s[-1]) if n else open_s)
        marks = np.linspace(open_s, first_s if n else close_s, empty, endpoint=False)
        start, stop = np.append(marks, rows["begin_s"]), np.append(marks, end_s)
        places = np.arange(-empty, n)
        writes = np.flatnonzero(rows["write"]) if rows["write"].any() else places[empty:]
        at = {
            OPEN: np.array([*places[:empty], *begins], np.int64),
            CLOSE: np.array([*places[:empty], *(k - 1 for k in ends)], np.int64),
            STAT: np.arange(count.stats) * n // max(1, count.stats) - (not n),
            SYNC: _spread(count.syncs, writes),
            DATA_SYNC: _spread(count.data_syncs, writes),
        }
        if not opens:
            at = {STAT: at[STAT] * 0}
            start = stop = np.array([open_s])
        counted_calls: list[Any] = [np.zeros(len(some), CALL) for some in at.values()]
        for part, (kind, some) in zip(counted_calls, at.items(), strict=True):
            times = start if kind in (OPEN, STAT) else stop
            part["kind"], part["at"], part["seconds"] = kind, some, count.each_s
            part["order_s"] = part["begin_s"] = times[some + empty]
        if opens:
            counted_calls[0]["order_s"][0] = counted_calls[0]["begin_s"][0] = open_s
            counted_calls[1]["order_s"][-1] = counted_calls[1]["begin_s"][-1] = close_s
            counted_calls[0]["flags"] = self._flags(rows, begins, empty, before, prepared)
        moves = np.zeros(n, CALL)
        moves["kind"], moves["at"] = np.where(rows["write"], WRITE, READ), np.arange(n)
        moves["order_s"], moves["begin_s"] = end_s, rows["begin_s"]
        moves["seconds"], moves["bytes"] = rows["end_s"] - rows["begin_s"], rows["bytes"]
        calls = np.concatenate([*counted_calls, moves])
        calls = calls[np.lexsort([calls["kind"], calls["at"]])]
        calls["order_s"] = np.maximum.accumulate(calls["order_s"])
        moved = (calls["kind"] == READ) | (calls["kind"] == WRITE)
        calls["at"][moved] = rows["at"]
        return calls

    def _flags(
        self, rows: Any, begins: list[int], empty: int, before: bool, prepared: int | None
    ) -> Any:
        """How a rank opens a file each time: numbers in `FLAGS`."""
        flags = np.full(empty + len(begins), 1 + 4 * (not before))
        if not begins:
            return flags
        writes = np.logical_or.reduceat(rows["write"], begins)
        reads = np.logical_or.reduceat(~rows["write"], begins)
        flags[empty:] += writes * 2 - ~reads
        self.reopened += len(begins) * (len(begins) > 1)
        if prepared is not None:
            tops = np.maximum.reduceat(rows["at"] + rows["bytes"], begins)
            sizes = np.maximum.accumulate(np.append(prepared, tops))[:-1]
            anew = ~reads & (rows["at"][begins] == 0) & (tops >= sizes)
            self.truncated += int(anew.sum())
            flags[empty:] += 8 * anew
        return flags

    # -- calls in the order of time ---------------------------------------------------------------

    @property
    def system_calls(self) -> Iterator[TracedCall]:
        """The calls, one by one."""
        opened: dict[tuple[int, int], int] = {}  # handles by rank and file
        free: dict[int, list[int]] = {}  # handles of a rank
        used: Counter[int] = Counter()
        opened_files: set[int] = set()  # files that were opened
        for start in range(0, len(self._calls), 1 << 16):
            for fields in self._calls[start : start + (1 << 16)].tolist():
                _, begin_s, seconds, rank, n, kind, flags, needs, depth, moved, at = fields
                call = TracedCall(rank, begin_s, seconds, {"call": WORDS[kind]})
                row, handle = call.row, opened.get((rank, n))
                if kind == OPEN:
                    heap = free.setdefault(rank, [])
                    if not heap:
                        heap.append(used[rank])
                        used[rank] += 1
                    handle = opened[rank, n] = heappop(heap)
                    if handle >= MAX_HANDLES:
                        raise UnderstudyError(
                            f"{self._where}: rank {rank} has more than {MAX_HANDLES:,} files open"
                        )
                    row |= {"as": handle, "flags": FLAGS[flags]}
                    call.path = self._names[n]
                    call.changes = n not in opened_files and bool(flags & 4)
                    opened_files.add(n)
                elif handle is None:
                    call.path = self._names[n]
                else:
                    row["of"] = handle
                if kind in (READ, WRITE):
                    row |= {"bytes": moved, "at": at}
                    row |= {"depth": depth} if depth > 1 else {}
                    call.file, call.changes = self.files[n] if needs else None, kind == WRITE
                elif kind == DATA_SYNC:
                    row["data_only"] = True
                elif kind == CLOSE:
                    heappush(free[rank], opened.pop((rank, n)))
                yield call


def _begins(rows: Any, opens: int) -> list[int]:
    """The first of the calls after each open: where places start again if that is as often, else
    behind the longest pauses."""
    if opens < 2 or opens >= len(rows):
        return list(range(min(opens, len(rows))))
    passes = passes_of(*(rows[key] for key in ("at", "bytes", "begin_s", "end_s")))
    if len(passes) == opens:
        return passes
    rests = rows["begin_s"][1:] - np.maximum.accumulate(rows["end_s"])[:-1]
    return [0, *sorted((np.argsort(-rests, kind="stable")[: opens - 1] + 1).tolist())]


def _spread(count: int, places: Any) -> Any:
    """Places of `count` calls, evenly behind the given ones; -1: there is none."""
    if not len(places):
        return np.full(count, -1)
    return places[-(-np.arange(1, count + 1) * len(places) // max(1, count)) - 1]


def _found(rows: Any) -> tuple[int, bool]:
    """The bytes that a file has before the first call, by reads of what was not written, and
    whether it is there."""
    rows = rows[np.argsort(rows["end_s"], kind="stable")]
    writes, ends = rows["write"], rows["at"] + rows["bytes"]
    high = np.maximum.accumulate(np.append(0, np.where(writes, ends, 0)))[:-1]
    low = np.minimum.accumulate(np.append(MAX_BYTES, np.where(writes, rows["at"], MAX_BYTES)))[:-1]
    old = ~writes & (rows["bytes"] > 0) & ((ends > high) | (rows["at"] < low))
    return int(ends[old].max(initial=0)), bool(old.any() or not writes.any())


def _needy(rows: Any) -> Iterator[int]:
    """The ranks that read where others write."""
    reads, writes = rows[~rows["write"] & (rows["bytes"] > 0)], rows[rows["write"]]
    if not len(reads) or not len(writes):
        return
    (rank, low, high), (other, begin, end) = _extents(reads), _extents(writes)
    for k in range(len(rank)):
        if ((other != rank[k]) & (low[k] < end) & (begin < high[k])).any():
            yield int(rank[k])


def _extents(rows: Any) -> tuple[Any, Any, Any]:
    """Ranks, and the first and the last place of each."""
    ranks, first = np.unique(rows["rank"], return_index=True)
    ends = rows["at"] + rows["bytes"]
    return ranks, np.minimum.reduceat(rows["at"], first), np.maximum.reduceat(ends, first)

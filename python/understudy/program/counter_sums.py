"""The counters of Darshan: sums over what the evaluator says of the calls of a stream."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from understudy.program.block_calls import Cut, Mask, Whole, compare
from understudy.program.counter_state import FLUSHES, MOVED, OPENS, TOPS, File, Sums
from understudy.program.counters import NOT_ALIGNED, RECORDS, Tally
from understudy.program.evaluator import Walk
from understudy.program.flushes import Written, flushes_of
from understudy.program.instructions import (
    EACH_ROW,
    QUEUES,
    InTurn,
    Move,
    Open,
    Sync,
    instructions,
    opening,
)
from understudy.program.operations import operate
from understudy.program.page_alignment import PAGE, Places, unaligned, unaligned_of
from understudy.program.reads_between_writes import is_whole, looked_up
from understudy.program.runs import Call, Closed, Dumps, Moved, Opened, Operated, Rows, Synced
from understudy.program.types import Lookups


class Counting(Sums):
    """Counts of one stream. Equal dumps are counted until they do not differ, then multiplied."""

    def __init__(self, walk: Walk, tally: Tally) -> None:
        super().__init__(walk.stream, walk.segments, tally)
        self.walk = walk
        self.direct = any(i.direct for i in opening(walk.stream))
        self.looks_up = walk.is_read_open or any(
            isinstance(i, Move) and i.lookups for i in instructions(walk.stream)
        )
        self.open: dict[tuple[int, int], File] = {}
        self.written: dict[int, list[Written]] = {}
        self.looked: dict[int, list[Written]] = {}
        self._unsynced: dict[tuple[int, int], list[int]] = {}
        self._unread: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for dumps in walk.dumps:
            self._repeat(dumps)

    # -- dumps ------------------------------------------------------------------------------------

    def _repeat(self, dumps: Dumps) -> None:
        sets = self.walk.sets if self.walk.stream.closes else 1
        alone = min(dumps.count, 2 * sets)
        more = dumps.count - alone
        for k in range(alone):
            self.written, self.looked = {}, {}
            ends = {key: file.end for key, file in self.open.items()}
            for moves, calls in groupby(dumps.calls, lambda c: isinstance(c, Moved) and (c.loop,)):
                if moves:
                    self._passes([c for c in calls if isinstance(c, Moved)], dumps, k)
                else:
                    for call in calls:
                        self._call(call, dumps, k)
            self.take(1 + (more if k == alone - 1 else 0))
        for key, file in self.open.items() if more else ():
            file.end = file.end + more * (file.end - ends.get(key, file.end))
        self._flush(dumps)

    def _call(self, call: Call, dumps: Dumps, k: int) -> None:
        set_ = self._set(dumps, k)
        match call:
            case Opened():
                self.open[set_, call.file] = self._opened(call, dumps)
            case Synced():
                recorded = self.open[set_, call.file].recorded
                self.flushed(call.ranks, call.ranks & recorded)
            case Closed():
                self.open.pop((set_, call.file), None)
            case Operated():
                operate(self, call, [self.open[set_, f] for f, _ in call.opened])
            case Rows():
                self._rows(call)

    def _set(self, dumps: Dumps, k: int) -> int:
        content = dumps.content + (k if dumps.begins else 0)
        return content % self.walk.sets if not self.walk.appends else 0

    # -- files ------------------------------------------------------------------------------------

    def _opened(self, opened: Opened, dumps: Dumps) -> File:
        ranks, leads = opened.ranks, opened.leads
        self._count_opens(opened, ranks & ~opened.lent, dumps)
        recorded: Mask = ranks
        end: Whole = np.ones(len(ranks), np.int64)
        if self.method == "stdio":
            recorded = ranks & ~leads if opened.fresh else ranks
            end = np.where(ranks & (leads | (not self.walk.writes)), 0, -1)
            if leads.any() and not opened.fresh:
                # Darshan goes on to count from where the FILE before it ended.
                self.tally.decline("STDIO_MAX_BYTE_WRITTEN")
            if self.looks_up or not self.walk.writes:
                recorded = ranks & False
            if self.walk.is_read_open or opened.lent.any():  # where the other left it
                self.tally.decline("STDIO_SEEKS", "STDIO_FLUSHES")
        return File(ranks, end, self.none, recorded)

    def _count_opens(self, opened: Opened, ranks: Mask, dumps: Dumps) -> None:
        """The first rank of a file creates or empties it."""
        leads, how = opened.leads, opened.how
        match self.method:
            case "posix":
                self.count("POSIX_OPENS", ranks, 1 + how.direct)
                self.count("POSIX_OPENS", leads, int(how.write_through))
            case "stdio":
                self.count("STDIO_OPENS", ranks)
                if self.walk.writes and not self.looks_up:
                    recorded = ranks & ~leads if opened.fresh else ranks
                    self.count("POSIX_OPENS", recorded)
                    self.left.add(recorded)
            case "mpiio" | "hdf5":
                turns = any(isinstance(i, InTurn) for i in dumps.step.body)
                alone = (self.segments.in_file(ranks.astype(np.int64)) == 1) | turns
                self.moved.add(ranks)
                if self.method == "hdf5":
                    self.count("H5F_OPENS", ranks)
                if self.method == "mpiio" or not turns:
                    self.count("MPIIO_INDEP_OPENS", ranks & alone)
                    self.count("MPIIO_COLL_OPENS", ranks & ~alone)

    # -- moves ------------------------------------------------------------------------------------

    def _passes(self, moves: Sequence[Moved], dumps: Dumps, k: int) -> None:
        before, self.sums = self.sums, Counter()
        for number in (1, moves[0].times - 1):
            for moved in moves if number else ():
                self._move(moved, dumps, k)
            for name, count in self.sums.items():
                before[name] += number * count
            self.sums = Counter()
        self.sums = before

    def _move(self, moved: Moved, dumps: Dumps, k: int) -> None:
        way = "WRITE" if moved.move.writes else "READ"
        if moved.place is not None:  # which bytes it reads depends on when it does
            self.tally.decline(f"{TOPS[self.method]}_MAX_BYTE_READ", "STDIO_SEEKS")
            self.tally.decline("POSIX_CONSEC_READS", "POSIX_SEQ_READS")
        if self.method in ("mpiio", "hdf5"):
            self._count_library(moved, way)
            return
        file = self.open[self._set(dumps, k), moved.move.variable.file]
        self._note_state(moved, file)
        self._count_calls(moved, way)
        self._note_top(moved, way, dumps.count)
        if k == 0:
            self._note_pages(moved, dumps.count)
        self._note_places(moved, way, file, k)

    def _note_state(self, moved: Moved, file: File) -> None:
        """Note the state for flushes and reads between writes."""
        move = moved.move
        times = np.full(len(self.none), move.variable.count)
        written = Written(move, times, moved.calls, file.recorded)
        if move.lookups:
            self.looked.setdefault(move.variable.file, []).append(written)
            self._look_up(moved, move.lookups)
        if move.flushes(self.method):
            self._note_written(move.variable.file, written)

    def _note_written(self, file: int, written: Written) -> None:
        self.written.setdefault(file, []).append(written)
        sizes = {s for c in written.calls.cuts if c is not None for s, _ in c.sizes}
        if written.move.order.rule != "consecutive" and len(sizes) > 1:
            self.tally.decline("FSYNCS", "FLUSHES", "SYNCS")

    def _count_calls(self, moved: Moved, way: str) -> None:
        """One for each run of bytes."""
        count, runs = moved.move.variable.count, moved.sizes(by_runs=True)
        sizes = directly(runs) if self.direct else runs
        if self.direct and not is_aligned(moved):
            self._decline_split(way)
        self.note_calls(way, sizes, count)
        if self.method == "posix":
            self._go_on(way, count * (sum(sizes.values()) - runs.total()))

    def _go_on(self, way: str, calls: int) -> None:
        """Calls that go on where the one before them ended."""
        self.sums[f"POSIX_CONSEC_{way}S"] += calls
        self.sums[f"POSIX_SEQ_{way}S"] += calls

    def _decline_split(self, way: str) -> None:
        """Calls past the cache whose bytes are not whole pages are split, each in its own way."""
        self.tally.decline(
            f"POSIX_{way}S", f"POSIX_SIZE_{way}", f"POSIX_CONSEC_{way}S", f"POSIX_SEQ_{way}S"
        )

    def _note_top(self, moved: Moved, way: str, dumps: int) -> None:
        """The last byte of all dumps."""
        ranks, others = self.segments.counts - 1, moved.move.variable.count - 1
        last = moved.end + others * moved.block.whole + (moved.slope + moved.block.slope) * ranks
        last = (last + (dumps - 1) * moved.growth)[moved.block.size > 0]
        if len(last):
            self.tally.top(f"{TOPS[self.method]}_MAX_BYTE_{MOVED[way]}", int(last.max()) - 1)

    def _note_pages(self, moved: Moved, dumps: int) -> None:
        """Calls of all dumps that do not begin with a page."""
        if self.method != "posix":
            return
        number = None if self.direct else unaligned(moved, dumps)
        if number is None:
            self.tally.decline(NOT_ALIGNED)
        else:
            self.sums[NOT_ALIGNED] += number

    def _look_up(self, moved: Moved, lookups: Lookups) -> None:
        """Reads between writes whose bytes nobody knows."""
        has = moved.block.size > 0
        alone = self.segments.in_file(moved.ranks.astype(np.int64)) == 1
        cuts, which = moved.calls.cuts, moved.calls.which
        single_strand = np.array([c is not None and c.strands == 1 for c in cuts], np.bool_)[which]
        first = np.array([0 if c is None else c.rounds[0][1][0][0] for c in cuts], np.int64)[which]
        first = np.where(alone, moved.at, 0) + np.where(alone | single_strand, first, 0)
        if not is_whole(lookups, first[has]):
            self.tally.decline("BYTES_READ", "SIZE_READ")
        if not (alone | single_strand)[has].all():
            self.tally.decline("_READS", "STDIO_SEEKS")
        if self.direct:  # a read that is not aligned is two
            self.tally.decline("_READS", "BYTES_READ", "SIZE_READ")

    def _count_library(self, moved: Moved, way: str) -> None:
        """Calls of MPI-IO or HDF5: where they are collective, of all ranks of the file, as many as
        of the rank with most."""
        move, count, kind = moved.move, moved.move.variable.count, ""
        if self.method == "hdf5":
            self.count("H5D_OPENS", moved.takes_part, count)
        else:
            kind = "COLL_" if move.collective else "INDEP_"
        queued = move.depth > 1 and self.method in QUEUES
        if move.nonblocking or queued:  # of which Darshan does not see those that are collective
            kind = "NB_"
            if move.collective:
                self.tally.decline("MPIIO_")
        self.note_calls(way, moved.sizes(by_runs=False), count, kind)
        if every := move.flushes(self.method):
            most = self.segments.most_in_file(moved.calls.transfers)
            behind = (every - 1) // move.call_bytes(self.method) + 1
            each = most // behind * moved.takes_part * count
            self.flushed(each, each)

    def _note_places(self, moved: Moved, way: str, file: File, k: int) -> None:
        """Calls that go on where the one of the same rank before it ended, and those behind it."""
        counts, calls, count = self.segments.counts, moved.calls, moved.move.variable.count
        has, whole = moved.block.size > 0, moved.block.whole
        if calls.by_chance:
            self.tally.decline(f"POSIX_CONSEC_{way}S", f"POSIX_SEQ_{way}S", "STDIO_SEEKS")
            return
        at, slope = moved.at + k * moved.growth, moved.slope + moved.block.slope
        end = np.where(calls.exact, moved.end, moved.end - 1) + k * moved.growth
        behind, after = compare(at - file.end, slope - file.slope, counts)
        gap = at + whole - end
        consecutive = behind + counts * (count * calls.consecutive + (count - 1) * (gap == 0))
        sequential = after + counts * (count * calls.sequential + (count - 1) * (gap >= 0))
        if self.method == "posix":
            self.sums[f"POSIX_CONSEC_{way}S"] += int(consecutive[has].sum())
            self.sums[f"POSIX_SEQ_{way}S"] += int(sequential[has].sum())
        else:
            call_count = count * sum(calls.runs.values())
            self.sums["STDIO_SEEKS"] += call_count - int(consecutive[has].sum())
        file.end = np.where(has, end + (count - 1) * whole, file.end)
        file.slope = np.where(has, slope, file.slope)

    # -- files of a row each ----------------------------------------------------------------------

    def _rows(self, rows: Rows) -> None:
        """A file for each row, opened and closed by itself."""
        opens = next(i for i in rows.files.body if isinstance(i, Open))
        syncs = any(isinstance(i, Sync) for i in rows.files.body)
        for move, block, calls in rows.moves:
            times = rows.times * move.variable.count
            number = times * int((block.rows * self.segments.counts).sum())
            if number == 0:
                continue
            self.sums[RECORDS] += number
            for name in OPENS[self.method]:
                self.sums[name] += number
            if self.method == "posix":
                more = opens.direct + (opens.write_through and self.walk.writes)
                self.sums["POSIX_OPENS"] += more * number
            if syncs:
                self.sums[FLUSHES[self.method]] += number
                if self.method == "stdio":
                    self.taken.add(self.none == 0)
            if move.flushes(self.method):
                self._note_written(0, Written(move, times * block.rows, calls, self.none > 0))
                if rows.files.order.rule != "consecutive" and len(rows.moves) > 1:
                    self.tally.decline("FSYNCS", "FLUSHES", "SYNCS")
            cut = next(c for c in calls.cuts if c is not None)
            self._count_row(move, cut, number, len(rows.moves) == move.variable.count == 1)

    def _count_row(self, move: Move, cut: Cut, number: int, alone: bool) -> None:
        """The calls of so many files with one row each; `alone`: they have nothing else."""
        way, sizes = "WRITE" if move.writes else "READ", dict(cut.sizes)
        direct = self.direct and self.method in ("posix", "stdio")
        if direct and any(size % PAGE for size in sizes) and cut.transfers > 1:
            self._decline_split(way)
        call_sizes = directly(sizes) if direct else sizes
        self.note_calls(way, call_sizes, number, "INDEP_" if self.method == "mpiio" else "")
        row = sum(size * times for size, times in sizes.items())
        if self.method in ("posix", "stdio"):
            self.tally.top(f"{TOPS[self.method]}_MAX_BYTE_{MOVED[way]}", row - 1)
        if self.method == "posix":
            self._go_on(way, number * (sum(call_sizes.values()) - 1))
            begin = Places(np.zeros(1, np.int64), np.ones(1, np.int64))
            inside = unaligned_of(cut, begin) if alone and not direct else None
            if inside is None:
                self.tally.decline(NOT_ALIGNED)
            else:
                self.sums[NOT_ALIGNED] += number * inside
        if self.method == "hdf5":
            self.sums["H5D_OPENS"] += number

    # -- what goes on from call to call -----------------------------------------------------------

    def _flush(self, dumps: Dumps) -> None:
        """Count flushes of ranks each time that they have written so many bytes."""
        count, begins, closes = dumps.count, dumps.begins, self.walk.stream.closes
        lasts = self.walk.stream.set.owner == EACH_ROW or closes or not begins
        sets = self.walk.sets if closes else 1
        last = dumps.content + (count - 1 if begins else 0)
        if not lasts:  # nothing is left of the content before, in any file
            self._unsynced.clear()
            self._unread.clear()
        shares = [(j, count // sets + (j < count % sets)) for j in range(min(count, sets))]
        for file, written in self.written.items():
            each = self.none.copy()
            every = written[0].move.flush_bytes or 1
            for j, times in shares:
                state = self._unsynced.setdefault(((last - j) % sets, file), [0] * len(each))
                for s in range(len(each)):
                    more, state[s] = flushes_of(state[s], written, s, times if lasts else 1, every)
                    each[s] += more if lasts else times * more
            self.flushed(each, each * written[0].recorded)
        for file, written in self.looked.items():
            for j, times in shares:
                key = (last - j) % sets, file
                unread = self._unread.setdefault(key, [(0, 0)] * len(self.none))
                looked_up(self, written, unread, times, lasts)
        self.take(1)


def directly(sizes: Mapping[int, int]) -> Mapping[int, int]:
    """Calls that begin with a page, with the pages of each apart from the bytes behind them."""
    split_sizes: Counter[int] = Counter()
    for size, number in sizes.items():
        pages = size - size % PAGE
        for part in (pages, size - pages):
            if part:
                split_sizes[part] += number
    return split_sizes


def is_aligned(moved: Moved) -> bool:
    """True if each call begins with a page."""
    has, block = moved.block.size > 0, moved.block
    places = [moved.at, moved.growth, moved.slope + block.slope]
    places += [block.whole] if moved.move.variable.count > 1 else []
    if moved.place is not None or any((each[has] % PAGE).any() for each in places):
        return False
    return all(
        c is None or c.calls == 1 or not any(s % PAGE for s, _ in c.runs) for c in moved.calls.cuts
    )

"""A stream of a program, played dump by dump for the counters of Darshan."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.semantics.counters import Tally
from understudy.semantics.flushes import Written, flushes_of
from understudy.semantics.lookups import is_whole, looked_up
from understudy.semantics.needs import borrows
from understudy.semantics.operations import Made, Target, operate, together
from understudy.semantics.pieces import Block, Calls, Mask, Segments, Whole, compare
from understudy.semantics.program import (
    EACH_ROW,
    NEW,
    TRUNCATE,
    Begin,
    Body,
    Close,
    Compute,
    Files,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Remove,
    Skew,
    Spread,
    Step,
    Sync,
    Thread,
    flat,
)
from understudy.semantics.rows import count_files, rows_of
from understudy.semantics.sums import (
    PAGE,
    File,
    Sums,
    begins_content,
    directly,
    masks_of,
    variables_of,
)
from understudy.semantics.times import open_spans, started
from understudy.semantics.types import Lookups, Variable


@dataclass(slots=True)
class Chunk:
    """A move as it is prepared: where the block of the first rank of each segment begins and
    ends, by how much that grows from rank to rank."""

    move: Move
    at: Whole
    end: Whole
    slope: Whole
    block: Block
    calls: Calls


def _opens(thread: Thread) -> Iterator[Open]:
    for step in thread.steps:
        yield from (i for i in flat(step.body) if isinstance(i, Open))


class Play(Sums):
    """One stream, dump after dump. Equal dumps are played until they no longer differ, then
    multiplied."""

    def __init__(
        self, thread: Thread, segments: Segments, tally: Tally, before: Sequence["Play"]
    ) -> None:
        super().__init__(thread, segments, tally)
        bodies = [step.body for step in thread.steps]
        self.writer = before[0] if before and borrows(thread) else None
        self.extended = () if self.writer else tuple(p for p in before if not p.writer)
        makers = [i for play in (self, *self.extended) for i in _opens(play.thread)]
        self.empties = any(i.mode in (NEW, TRUNCATE) for i in makers)
        self.names = None if self.writer else thread.set.names
        self.appends = not thread.set.numbered and not self.writer
        kept = self.appends and self.writes and thread.closes
        syncs = any(isinstance(i, Sync) for body in bodies for i in flat(body))
        # These libraries keep the bytes of a dump; the player flushes them.
        self.syncs_itself = kept and not syncs and self.method in ("hdf5", "stdio")
        self.masks = masks_of(segments, variables_of(iter(bodies))) if self.names else {}
        self.looks_up = any(isinstance(i, Move) and i.lookups for b in bodies for i in flat(b))
        self.moves_places = self.appends or len(set(bodies)) > 1  # from dump to dump
        self.k = -1
        self.fresh = True
        self.turns = False
        self.borrows = False  # its files are open for the stream that writes them
        self.rows: Whole | None = None  # of the dump of a flood: files that each rank has
        self.payload: dict[int, tuple[Whole, Whole]] = {}
        self.places: dict[str, tuple[Whole, Whole]] = {}
        self.open: dict[tuple[int, int], File] = {}
        self.unsynced: dict[tuple[int, int], list[int]] = {}
        self.looked: dict[int, list[Written]] = {}
        self.unread: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.cached: dict[object, Calls] = {}
        self.made = Made(self.none)

    # -- dumps ------------------------------------------------------------------------------------

    def run(self) -> None:
        """Play all steps."""
        for i, step in enumerate(self.thread.steps):
            new = begins_content(step)
            if self.names is None and new:
                self.masks = masks_of(self.segments, variables_of(self._content(i)))
            for lent, count in self._parts(step, new):
                self.borrows = lent
                if count:
                    self._repeat(step, count)
            self.made.go_on(self.segments, step)

    def _parts(self, step: Step, new: bool) -> Iterator[tuple[bool, int]]:
        """The dumps that read through the opens of the writer, and not; that create files, and
        not."""
        if self.writer:
            borrowed = sum(started(step, *span) for span in open_spans(self.writer.thread))
            yield from ((True, borrowed), (False, step.count - borrowed))
            return
        fresh = step.count
        if new and self.names is not None:
            fresh = min(step.count, max(0, self.names - self.k - 1))
        yield from ((False, fresh), (False, step.count - fresh))

    def _content(self, i: int) -> Iterator[Body]:
        """The bodies of the content that begins with a step."""
        yield self.thread.steps[i].body
        for step in self.thread.steps[i + 1 :]:
            if begins_content(step):
                return
            yield step.body

    def _repeat(self, step: Step, count: int) -> None:
        """So many equal dumps."""
        sets = (self.names or 1) if self.thread.closes else 1
        alone = min(count, 2 * sets)
        if self.thread.set.owner == EACH_ROW:
            self.rows = rows_of(self, step.body)
        for _ in range(alone):
            before = dict(self.payload)
            places = dict(self.places)
            ends = {key: file.end for key, file in self.open.items()}
            self.sums, self.tops, self.written, self.looked = Counter(), {}, {}, {}
            self._body(step.body)
            if self.syncs_itself:
                self._sync()
            self.take(1)
        more = count - alone
        if more:
            self.take(more)
            grown = {
                f: at - before[f][0] if f in before else self.none
                for f, (at, _) in self.payload.items()
            }
            for f, (at, slope) in self.payload.items():
                self.payload[f] = at + more * grown[f], slope
            for name, (at, slope) in self.places.items():
                self.places[name] = at + more * (at - places.get(name, (at, slope))[0]), slope
            for key, file in self.open.items():
                file.end = file.end + more * (file.end - ends.get(key, file.end))
            for (name, f), top in self.tops.items():
                self._top(name, np.where(top >= 0, top + more * grown.get(f, self.none), -1))
            if begins_content(step):
                self.k += more
        self._flush(count, begins_content(step))

    # -- instructions -----------------------------------------------------------------------------

    def _body(self, body: Body) -> None:
        for instruction in together(body):
            match instruction:
                case Begin():
                    self._begin()
                case InTurn():
                    self.turns = True
                    self._begin_turns(instruction.body)
                    self._body(instruction.body)
                case Open():
                    self._open(instruction)
                case Operate():
                    operate(self, instruction, list(self._opened()), self.rows)
                case Passes():
                    self._passes(instruction)
                case Files():
                    count_files(self, instruction, 1)
                case Move():
                    self._follow(self._prepare(instruction))
                case Sync():
                    self._sync()
                case Close():
                    self.open.clear()
                case Skew() | Remove() | Compute() | Spread():
                    pass
                case _:
                    raise AssertionError(instruction)

    def _begin(self) -> None:
        self.k += 1
        self.fresh = self.names is None or self.k < self.names
        self.payload = {f: (self._before(f), self.none) for f in self.masks}
        self.places = {}

    def _before(self, file: int) -> Whole:
        """Bytes of the streams that this one extends, in the content at which it is."""
        behind: Whole = self.none
        for play in self.extended:
            for variable in play.content_variables(self.k):
                if variable.file == file:
                    whole = self.segments.block(variable, False).whole
                    behind = behind + variable.count * whole
        return behind

    def _exists(self, file: int) -> Mask:
        """Where an extended stream has made the file: one that is written again is there from its
        first dump on, with bytes or without."""
        exists: Mask = self._before(file) > 0
        for play in self.extended:
            if play.names and file in play.masks:
                exists = exists | (self.segments.in_file(play.masks[file].astype(np.int64)) > 0)
        return exists

    def content_variables(self, k: int) -> list[Variable]:
        """The variables of content k."""
        for step in self.thread.steps:
            if k < step.count:
                return variables_of(iter([step.body]))
            k -= step.count
        return []

    def _begin_turns(self, body: Body) -> None:
        """Each rank's bytes are behind those of the ranks before it."""
        for file in self.masks:
            at = slope = self.none
            for variable in variables_of(iter([body])):
                if variable.file == file:
                    block = self.segments.block(variable, True)
                    at = at + variable.count * block.before
                    slope = slope + variable.count * block.size
            self.payload[file] = at, self.none if self.segments.alone else slope

    def _set(self) -> int:
        return self.k % self.names if self.names and not self.appends else 0

    def _open(self, instruction: Open) -> None:
        for file, mask in self.masks.items():
            if (self._set(), file) in self.open:
                continue
            if self.appends and file not in self.payload:
                self.payload[file] = self.none, self.none
            base = self._exists(file)
            creates = self.writes and (self.fresh or self.empties)
            leads = self.segments.leads(mask) & ~base if creates else mask & False
            self._note_open(instruction, mask & ~self._lent(file, mask), leads)
            if self.method == "stdio" and leads.any() and not self.fresh:
                # Darshan goes on to count from where the FILE before it ended.
                self.tally.decline("STDIO_MAX_BYTE_WRITTEN")
            known = mask & ~leads if self.fresh else mask
            if self.method == "stdio":
                end = np.where(mask & (leads | (not self.writes)), 0, -1)
            else:
                end = np.ones(len(mask), np.int64)
                known = mask
            if self.method == "stdio" and (self.looks_up or not self.writes):
                known = mask & False
            self.open[self._set(), file] = File(end, self.none, known)
        if self.appends:
            self.fresh = False

    def _lent(self, file: int, mask: Mask) -> Mask:
        """The ranks that read a file through the opens of all its ranks."""
        if not self.borrows or not self.writer or file not in self.writer.masks:
            return mask & False
        ranks, others = (
            self.segments.in_file(m.astype(np.int64)) for m in (mask, self.writer.masks[file])
        )
        lent: Mask = mask & (ranks == others)
        return lent

    def _note_open(self, instruction: Open, mask: Mask, leads: Mask) -> None:
        """The opens of a file; its first rank creates or empties it."""
        match self.method:
            case "posix":
                self.count("POSIX_OPENS", mask)
                if instruction.write_through:
                    self.count("POSIX_OPENS", leads)
                if instruction.direct:
                    self.count("POSIX_OPENS", mask)
            case "stdio":
                self.count("STDIO_OPENS", mask)
                if self.writes and not self.looks_up:
                    known = mask & ~leads if self.fresh else mask
                    self.count("POSIX_OPENS", known)
                    self.left.add(known)
            case "mpiio" | "hdf5":
                one = self.segments.in_file(mask.astype(np.int64)) == 1
                self.moved.add(mask)
                if self.method == "hdf5":
                    self.count("H5F_OPENS", mask)
                if self.method == "mpiio" or not self.turns:
                    alone = one | self.turns
                    self.count("MPIIO_INDEP_OPENS", mask & alone)
                    self.count("MPIIO_COLL_OPENS", mask & ~alone)

    def _passes(self, passes: Passes) -> None:
        for instruction in passes.body:
            if isinstance(instruction, Files):
                count_files(self, instruction, passes.count)
        chunks = [self._prepare(i) for i in passes.body if isinstance(i, Move)]
        for number in (1, passes.count - 1):
            before = self.sums
            self.sums = Counter()
            for chunk in chunks if number else ():
                self._follow(chunk)
            for name, count in self.sums.items():
                before[name] += number * count
            self.sums = before

    def _sync(self) -> None:
        for file, mask in self.masks.items():
            opened = self.open.get((self._set(), file))
            known = opened.known if opened else mask
            self.flushed(mask, mask & known)

    # -- moves ------------------------------------------------------------------------------------

    def _prepare(self, move: Move) -> Chunk:
        variable = move.variable
        block = self.segments.block(variable, self.turns)
        begin = self.payload.setdefault(variable.file, (self.none, self.none))
        at, slope = begin
        if move.at is not None:
            places = self.writer.places if self.writer else self.places
            if self.writer and self.writer.moves_places:
                self._decline_places()
            at, slope = begin = places.get(move.at, begin)
        else:
            self.payload[variable.file] = at + variable.count * block.whole, slope
        self.places[variable.name] = begin
        return Chunk(
            move=move,
            at=at + block.at,
            end=at + block.end,
            slope=slope + block.slope,
            block=block,
            calls=self._calls(move, block),
        )

    def _decline_places(self) -> None:
        """Which bytes it reads depends on when it does."""
        module = self.method.upper()
        self.tally.decline(f"{module}_MAX_BYTE_READ", "STDIO_SEEKS")
        self.tally.decline("POSIX_CONSEC_READS", "POSIX_SEQ_READS")

    def _calls(self, move: Move, block: Block) -> Calls:
        call_bytes = move.call_bytes(self.method)
        key = (id(block), call_bytes, move.order)
        if key not in self.cached:
            cuts = block.cuts(call_bytes)
            self.cached[key] = Calls.of(cuts, move.order, self.segments.counts)
        return self.cached[key]

    def _follow(self, chunk: Chunk) -> None:
        """Count the calls of a move."""
        move, calls, count = chunk.move, chunk.calls, chunk.move.variable.count
        way = "WRITE" if move.writes else "READ"
        moved = int((chunk.block.size * self.segments.counts).sum()) * count
        file = move.variable.file
        has = chunk.block.size > 0
        last = chunk.end + (count - 1) * chunk.block.whole - 1
        last = np.where(has, last + chunk.slope * (self.segments.counts - 1), -1)
        if move.lookups and self.method in ("posix", "stdio"):
            self._look_up(chunk, move.lookups)
        if move.flushes(self.method) and self.method in ("posix", "stdio"):
            known = self.open[self._set(), file].known
            times = np.full(len(has), count)
            self.note_written(file, Written(move, times, calls.cuts, known))
        match self.method:
            case "posix" | "stdio":
                module = self.method.upper()
                if self.direct and not is_aligned(chunk, has):
                    self.decline_split(way)
                runs = directly(calls.runs) if self.direct else calls.runs
                split = count * (sum(runs.values()) - sum(calls.runs.values()))
                self.sums[f"{module}_{way}S"] += count * sum(runs.values())
                self.note_top(f"{module}_MAX_BYTE", way, file, last)
                self.note_bytes(module, way, moved)
                self._note_places(chunk, way, has)
                if module == "POSIX":
                    self.note_sizes("POSIX_SIZE", way, runs, count)
                    self.sums[f"POSIX_CONSEC_{way}S"] += split
                    self.sums[f"POSIX_SEQ_{way}S"] += split
            case "mpiio":
                self._note_library(chunk, "MPIIO", way, moved, has)
            case "hdf5":
                self._note_library(chunk, "H5D", way, moved, has)

    def _look_up(self, chunk: Chunk, lookups: Lookups) -> None:
        """Note a move between whose writes there are reads."""
        file, block = chunk.move.variable.file, chunk.block
        has, times = block.size > 0, np.full(len(block.size), chunk.move.variable.count)
        alone = self.segments.in_file(self.masks[file].astype(np.int64)) == 1
        known = self.open[self._set(), file].known
        self.looked.setdefault(file, []).append(
            Written(chunk.move, times, chunk.calls.cuts, known)
        )
        cuts = chunk.calls.cuts
        one = np.array([c is not None and c.strands == 1 for c in cuts], np.bool_)
        sizes = np.array([0 if c is None else c.rounds[0][1][0][0] for c in cuts], np.int64)
        first = np.where(alone, chunk.at, 0) + np.where(alone | one, sizes, 0)
        if not is_whole(lookups, first[has]):
            self.tally.decline("BYTES_READ", "SIZE_READ")
        if not (alone | one)[has].all():
            self.tally.decline("_READS", "STDIO_SEEKS")
        if self.direct:  # a read that is not aligned is two
            self.tally.decline("_READS", "BYTES_READ", "SIZE_READ")

    def _note_library(self, chunk: Chunk, module: str, way: str, moved: int, has: Mask) -> None:
        """Calls of MPI-IO or HDF5: where they are collective, of all ranks of the file, as many as
        of the rank with most."""
        move, count, mask = (
            chunk.move,
            chunk.move.variable.count,
            self.masks[chunk.move.variable.file],
        )
        takes_part = mask & (chunk.block.whole > 0)
        calls = chunk.calls.transfers
        idle = self.none
        if move.collective and not self.turns:
            idle = np.where(takes_part, self.segments.most_in_file(calls) - calls, 0)
        kind = f"{'COLL' if move.collective else 'INDEP'}_" if module == "MPIIO" else ""
        self.count(f"{module}_{kind}{way}S", calls + idle, count)
        self.note_bytes(module, way, moved)
        self.note_sizes(f"{module}_SIZE", way, chunk.calls.boxes, count)
        self.count(f"{module}_SIZE_{way}_AGG_0_100", idle, count)
        if module == "H5D":
            self.count("H5D_OPENS", takes_part, count)
        if every := move.flushes(self.method):
            most = self.segments.most_in_file(calls)
            behind = (every - 1) // move.call_bytes(self.method) + 1
            each = most // behind * takes_part * count
            self.flushed(each, each)

    def _note_places(self, chunk: Chunk, way: str, has: Mask) -> None:
        """Calls that go on where the one of the same rank before it ended, and those behind it."""
        counts, calls, count = self.segments.counts, chunk.calls, chunk.move.variable.count
        file = self.open[self._set(), chunk.move.variable.file]
        if calls.by_chance:
            self.tally.decline(f"POSIX_CONSEC_{way}S", f"POSIX_SEQ_{way}S", "STDIO_SEEKS")
            return
        end = np.where(calls.exact, chunk.end, chunk.end - 1)
        behind, after = compare(chunk.at - file.end, chunk.slope - file.slope, counts)
        gap = chunk.at + chunk.block.whole - end
        consecutive = behind + counts * (count * calls.consecutive + (count - 1) * (gap == 0))
        sequential = after + counts * (count * calls.sequential + (count - 1) * (gap >= 0))
        consecutive, sequential = int(consecutive[has].sum()), int(sequential[has].sum())
        if self.method == "posix":
            self.sums[f"POSIX_CONSEC_{way}S"] += consecutive
            self.sums[f"POSIX_SEQ_{way}S"] += sequential
        else:
            self.sums["STDIO_SEEKS"] += count * sum(calls.runs.values()) - consecutive
        file.end = np.where(has, end + (count - 1) * chunk.block.whole, file.end)
        file.slope = np.where(has, chunk.slope, file.slope)

    # -- floods: files of rows --------------------------------------------------------------------

    # -- operations -------------------------------------------------------------------------------

    def _flush(self, dumps: int, begins: bool) -> None:
        """What ranks flush each time that they have written so many bytes."""
        self.sums = Counter()
        flood = self.thread.set.owner == EACH_ROW
        lasts = flood or self.thread.closes or not begins
        sets = (self.names or 1) if self.thread.closes else 1
        if not lasts:  # nothing is left of the content before, in any file
            self.unsynced.clear()
            self.unread.clear()
        for file, written in self.written.items():
            each = self.none.copy()
            for j in range(min(dumps, sets)):
                times = dumps // sets + (j < dumps % sets)
                key = (self.k - j) % sets, file
                state = self.unsynced.setdefault(key, [0] * len(each))
                for s in range(len(each)):
                    every = written[0].move.flush_bytes or 1
                    more, state[s] = flushes_of(state[s], written, s, times if lasts else 1, every)
                    each[s] += more if lasts else times * more
            self.flushed(each, each * written[0].known)
        for file, written in self.looked.items():
            for j in range(min(dumps, sets)):
                key = (self.k - j) % sets, file
                found = self.unread.setdefault(key, [(0, 0)] * len(self.none))
                looked_up(self, written, found, dumps // sets + (j < dumps % sets), lasts)
        self.take(1)

    def _opened(self) -> Iterator[Target]:
        """The open files of the content, the ranks of each, and how many files these have open
        before it."""
        before = self.none
        for file in sorted(self.masks):
            if (self._set(), file) in self.open:
                yield self.masks[file], self.open[self._set(), file], before
                before = before + self.masks[file]


def is_aligned(chunk: Chunk, has: Mask) -> bool:
    """Whether each call begins with a page."""
    if (chunk.at[has] % PAGE).any() or (chunk.slope[has] % PAGE).any():
        return False
    if chunk.move.variable.count > 1 and (chunk.block.whole[has] % PAGE).any():
        return False
    return all(
        c is None or c.calls == 1 or not any(s % PAGE for s, _ in c.runs) for c in chunk.calls.cuts
    )

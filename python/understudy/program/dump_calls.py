"""Effects of the instructions of a dump on the state of a stream."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby

import numpy as np

from understudy.program.block_calls import Calls, Mask, Whole
from understudy.program.instructions import (
    EACH_ROW,
    NEW,
    TRUNCATE,
    Begin,
    Body,
    Close,
    Files,
    Instruction,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Runs,
    Step,
    Stream,
    Sync,
    begins_content,
    opening,
    variables_of,
    writes,
)
from understudy.program.needs import borrows, goes_on
from understudy.program.runs import (
    Call,
    Closed,
    Dumps,
    Moved,
    Opened,
    Operated,
    Place,
    Rows,
    Synced,
)
from understudy.program.segments import Block, Segments, masks_of
from understudy.program.times import open_spans
from understudy.program.types import CONSECUTIVE, Variable

_KEEP_BYTES = ("hdf5", "stdio")  # the player flushes what these libraries keep of a dump
_HAND_OVER = ("stdio",)  # and what these keep of calls


class State:
    """State of a stream so far; `before` are those of the same files before it."""

    def __init__(
        self,
        stream: Stream,
        segments: Segments,
        before: Sequence["State"],
        is_read_open: bool = False,
    ) -> None:
        self.stream, self.segments = stream, segments
        self.writer = next((w for w in before if w.stream.name == stream.last), None)
        self.extended = () if borrows(stream) else tuple(w for w in before if not w.writer)
        makers = [i for walk in (self, *self.extended) for i in opening(walk.stream)]
        self.writes = writes(stream)
        self.empties = any(i.mode in (NEW, TRUNCATE) for i in makers)
        self.names = None if borrows(stream) else stream.set.names
        self.appends = not stream.set.numbered and not borrows(stream)
        self.lends = stream.closes and stream.set.names == 1 and stream.set.numbered
        self.firsts = list(accumulate((s.count for s in stream.steps), initial=0))
        self.none: Whole = np.zeros(len(segments.starts), np.int64)
        bodies = {step.body for step in stream.steps}
        self.masks = masks_of(segments, variables_of(bodies)) if self.names else {}
        shared = any(segments.counts[m].sum() > segments.groups for m in self.masks.values())
        self.is_read_open = is_read_open  # others read its files through the same open
        kept = stream.closes and (self.appends or shared) and stream.method in _KEEP_BYTES
        others = is_read_open or goes_on(stream)
        self.keeps_bytes = self.writes and (kept or (others and stream.method in _HAND_OVER))
        self.open: dict[int, Opened] = {}  # by file
        self.payload: dict[int, tuple[Whole, Whole]] = {}
        self.places: dict[str, Place] = {}
        self.content = -1
        self.fresh = True  # no other content had the files that it is at
        self.opened: set[int] = set()  # sets of files
        self.dumps: list[Dumps] = []

    @property
    def total(self) -> int:
        """Dumps of the stream."""
        return self.firsts[-1]

    @property
    def sets(self) -> int:
        """Sets of files that stay open from dump to dump, at most."""
        return self.names or 1

    def variables(self, k: int) -> Sequence[Variable]:
        """Those of dump k."""
        step = self.stream.steps[bisect_left(self.firsts, k + 1) - 1]
        return variables_of([step.body]) if k < self.total else ()

    def begin(self, contents: int) -> None:
        """The next content, so many behind the last."""
        self.content += contents
        self.fresh = self.names is None or self.content % self.names not in self.opened
        self.payload = {f: (self._before(f), self.none) for f in self.masks}
        self.places = {}

    def _before(self, file: int) -> Whole:
        """Bytes of the streams that this one extends, in the content at which it is."""
        behind: Whole = self.none
        for walk in self.extended:
            for variable in walk.variables(self.content):
                if variable.file == file:
                    whole = self.segments.block(variable, False).whole
                    behind = behind + variable.count * whole
        return behind

    def exists(self, file: int) -> Mask:
        """Where an extended stream has made the file: one that is written again is there from its
        first dump on, with bytes or without."""
        exists: Mask = self._before(file) > 0
        for walk in self.extended:
            if walk.names and file in walk.masks:
                exists = exists | (self.segments.in_file(walk.masks[file].astype(np.int64)) > 0)
        return exists

    def settled(self, name: str) -> Place | None:
        """Where a variable is in all dumps; None: that depends on the dump."""
        places = [(d.places[name], d.count) for d in self.dumps if name in d.places]
        (at, slope, _), _ = places[0]
        same = all(np.array_equal(p, at) and not (n > 1 and g.any()) for (p, _, g), n in places)
        return (at, slope, self.none) if same else None

    def lent(self, file: int, mask: Mask, time_s: float) -> Mask:
        """The ranks that read a file through the opens of all its ranks."""
        others = self.writer.open_at(time_s).get(file) if self.writer else None
        if others is None:
            return mask & False
        readers, openers = (self.segments.in_file(m.astype(np.int64)) for m in (mask, others))
        lent: Mask = mask & (readers == openers)
        return lent

    def open_at(self, time_s: float) -> dict[int, Mask]:
        """The ranks of the files that are open at that time, behind the dumps of the same."""
        spans = list(open_spans(self.stream))
        if not any(begin <= time_s < end for begin, end in spans):
            return {}
        at = [d for d in self.dumps if d.step.start_s(d.number) <= time_s]
        return dict(at[-1].masks) if at else {}


def _with_next(
    groups: Sequence[list[Instruction]],
) -> Iterator[tuple[list[Instruction], Instruction | None]]:
    """Each with the first instruction of the next."""
    for k, group in enumerate(groups):
        yield group, groups[k + 1][0] if k + 1 < len(groups) else None


class Dump:
    """The first of equal dumps."""

    def __init__(self, walk: State, step: Step, first: int, time_s: float) -> None:
        self._walk, self._first, self._time_s = walk, first, time_s
        self._segments = walk.segments
        self._variables = {v.name: v for v in variables_of([step.body])}
        self._in_turn = False
        self._loop = 0  # of passes
        self._opens = False
        self.begins = begins_content(step) > 0
        self.growth: dict[int, Whole] = {}  # of files, from dump to dump
        turns = any(isinstance(i, InTurn) for i in step.body)
        for variable in () if self.begins or turns else self._variables.values():
            if variable.at is None:
                more = variable.count * self._segments.block(variable, False).whole
                self.growth[variable.file] = self.growth.get(variable.file, 0) + more

    def calls(self, body: Body) -> Iterator[Call]:
        """Calls of the instructions, in their order."""
        groups = groupby(body, lambda i: i.kind if isinstance(i, Operate) else id(i))
        for (instruction, *more), behind in _with_next([list(same) for _, same in groups]):
            match instruction:
                case Begin():
                    self._walk.begin(instruction.contents)
                case InTurn():
                    self._begin_turns(instruction.body)
                    yield from self.calls(instruction.body)
                case Open():
                    yield from self._open(instruction)
                case Operate():
                    each = [i.runs for i in (instruction, *more) if isinstance(i, Operate)]
                    yield self._operate(instruction.kind, each)
                case Passes():
                    yield from self._passes(instruction)
                case Files() | Move():
                    yield from self._move((instruction,), 1)
                    if self._walk.keeps_bytes and not isinstance(behind, Move | Sync):
                        yield from self._sync()
                case Sync():
                    yield from self._sync()
                case Close():
                    yield from self._close()

    def _passes(self, passes: Passes) -> Iterator[Call]:
        """Passes of moves alone are one behind the other, each at the places of the first; others
        are gone through."""
        if all(isinstance(i, Move | Files) for i in passes.body):
            self._loop += 1
            yield from self._move(passes.body, passes.count, self._loop)
            return
        walk = self._walk
        payload, places = dict(walk.payload), walk.places
        for _ in range(passes.count):
            walk.payload, walk.places = dict(payload), places
            yield from self.calls(passes.body)

    def closes_last(self) -> Iterator[Call]:
        """Closes behind a dump of a stream that keeps its files open."""
        stream, walk = self._walk.stream, self._walk
        if not stream.closes:
            return
        last = self._first >= walk.total - walk.sets
        if not walk.lends and last and (self._is_open() or self._opens):
            yield from (Closed(stream, f, o.ranks) for f, o in walk.open.items())

    def _is_open(self) -> bool:
        """True if a dump before this one has opened the files of its content, and they stay so."""
        walk = self._walk
        return walk.content % walk.sets in walk.opened

    def _begin_turns(self, body: Body) -> None:
        """Each rank's bytes are behind those of the ranks before it."""
        self._in_turn = True
        walk = self._walk
        for file in walk.masks:
            at = slope = walk.none
            for variable in variables_of([body]):
                if variable.file == file:
                    block = self._segments.block(variable, True)
                    at = at + variable.count * block.before
                    slope = slope + variable.count * block.size
            walk.payload[file] = at, walk.none if self._segments.alone else slope

    def _open(self, how: Open) -> Iterator[Call]:
        walk = self._walk
        if walk.stream.closes and self._is_open():
            return
        creates = walk.writes and (walk.fresh or walk.empties)
        for file, mask in walk.masks.items():
            if file in walk.open and not walk.stream.closes:
                continue
            if walk.appends:
                walk.payload.setdefault(file, (walk.none, walk.none))
            makes = mask & ~walk.exists(file) if creates else mask & False
            leads = self._segments.leads(mask) & makes
            lent = walk.lent(file, mask, self._time_s)
            walk.open[file] = Opened(file, how, mask, makes, leads, lent, walk.fresh)
            yield walk.open[file]
        self._opens = True
        walk.fresh = walk.fresh and not walk.appends

    def _sync(self) -> Iterator[Call]:
        yield from (Synced(f, o.ranks) for f, o in self._walk.open.items())

    def _close(self) -> Iterator[Call]:
        for file, opened in self._walk.open.items():
            yield Closed(self._walk.stream, file, opened.ranks & ~opened.lent)
        self._walk.open.clear()

    def _operate(self, kind: str, runs: Sequence[Runs]) -> Operated:
        each = sum(map(self._segments.spread, runs), self._walk.none)
        is_open = not self._walk.stream.closes or self._is_open() or self._opens
        opened = tuple((f, o.ranks) for f, o in self._walk.open.items() if is_open)
        rows = None
        if self._walk.stream.set.owner == EACH_ROW:
            blocks = [(v, self._segments.block(v, False)) for v in self._variables.values()]
            rows = sum((v.count * b.rows for v, b in blocks), self._walk.none)
        return Operated(kind, each, opened, rows)

    def _move(self, body: Body, times: int, loop: int = 0) -> Iterator[Call]:
        for i in body:
            if isinstance(i, Move):
                yield self._moved(i, times, loop)
            elif isinstance(i, Files):
                moves = [m for m in i.body if isinstance(m, Move)]
                yield Rows(i, times, tuple(map(self._of_rows, moves)), self._walk.fresh)

    def _of_rows(self, move: Move) -> tuple[Move, Block, Calls]:
        block = self._segments.block(move.variable, False)
        most = move.call_bytes(self._walk.stream.method)
        return move, block, block.calls(most, CONSECUTIVE, True)

    def _moved(self, move: Move, times: int, loop: int) -> Moved:
        walk, variable, name = self._walk, move.variable, None
        block = self._segments.block(variable, self._in_turn)
        at, slope = walk.payload.setdefault(variable.file, (walk.none, walk.none))
        begin: Place = at, slope, self._growth_of(variable)
        if move.at is None:
            walk.payload[variable.file] = at + variable.count * block.whole, slope
        elif borrows(walk.stream):
            settled = walk.writer.settled(move.at) if walk.writer else None
            name = move.at if settled is None else None
            begin = settled or (walk.none, walk.none, walk.none)
        else:
            begin = (*walk.places[move.at][:2], begin[2])
        walk.places = {**walk.places, variable.name: begin}
        return Moved(
            move,
            walk.masks.get(variable.file, walk.none > 0),
            times,
            self._in_turn,
            block,
            block.calls(move.call_bytes(walk.stream.method), move.order),
            *begin,
            place=name,
            loop=loop,
        )

    def _growth_of(self, variable: Variable) -> Whole:
        """By how much the place of a variable grows from dump to dump."""
        for _ in self._variables:
            if variable.at is None:
                return self.growth.get(variable.file, self._walk.none)
            if variable.at not in self._variables:
                break
            variable = self._variables[variable.at]
        return self._walk.none

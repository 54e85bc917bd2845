"""What a program does, call by call, as proxies/tests/calllog.c writes it down: the runs of the
evaluator expanded, for small programs."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from math import prod

import numpy as np

from tests.support.orders import key, position
from understudy.program.block_calls import Whole
from understudy.program.evaluator import Walk, evaluate
from understudy.program.instructions import (
    ALL_RANKS,
    EACH_RANK,
    QUEUES,
    InTurn,
    Move,
    Program,
    Sync,
    instructions,
)
from understudy.program.runs import Closed, Dumps, Moved, Opened, Operated, Rows, Synced
from understudy.program.segments import Block
from understudy.program.types import TYPE_BYTES, Order, Variable

SUFFIXES = {"hdf5": ".h5", "adios": ".bp", "adios2": ".bp"}
DEFINES = ("mpiio", "hdf5", "adios", "adios2")
TOGETHER = ("mpiio", "hdf5")  # methods whose flushes are calls of all ranks of a file

Call = tuple[int, int, int]  # its first byte, bytes, runs


def lines(program: Program) -> list[list[str]]:
    """Of each rank, in the order in which it makes the calls."""
    number = {stream.name: i for i, stream in enumerate(program.streams)}
    walks = sorted(evaluate(program), key=lambda w: number[w.stream.name])
    events = []
    for walk in walks:
        for dumps in walk.dumps:
            for k in range(dumps.count):
                time_s = -1 if walk.prepares else dumps.step.start_s(dumps.number + k)
                events.append((time_s, number[walk.stream.name], dumps.first + k, walk, dumps, k))
    events.sort(key=lambda e: e[:3])
    return [[*_Rank(rank).lines(events)] for rank in range(program.ranks)]


class _Rank:
    """What one rank does."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.current: dict[str, tuple[Dumps, int]] = {}  # of each stream
        self.unsynced: dict[tuple[str, int | None, int], int] = defaultdict(int)
        self.unread: dict[tuple[str, int | None, int], tuple[int, int]] = defaultdict(
            lambda: (0, 0)
        )

    def lines(self, events: Sequence[tuple[float, int, int, Walk, Dumps, int]]) -> Iterator[str]:
        for _, _, _, walk, dumps, k in events:
            yield from _Dump(self, walk, dumps, k).lines()
            self.current[walk.stream.name] = dumps, k


class _Dump:
    """One dump of a rank."""

    def __init__(self, rank: _Rank, walk: Walk, dumps: Dumps, k: int) -> None:
        self.state, self.rank, self.walk, self.dumps, self.k = rank, rank.rank, walk, dumps, k
        self.stream, segments = walk.stream, walk.segments
        self.method = self.stream.method
        self.s = int(np.searchsorted(segments.ends, self.rank, "right"))
        self.i = self.rank - int(segments.starts[self.s])
        self.flood = any(isinstance(c, Rows) for c in dumps.calls)
        self.in_turn = any(isinstance(i, InTurn) for i in dumps.step.body)
        self.turn = 0
        set_ = dumps.set_of(self.stream.set, k)
        if walk.writer and walk.writer.stream.name in rank.current:
            writer, at = rank.current[walk.writer.stream.name]
            set_ = writer.set_of(self.stream.set, at)
        self.set = set_
        if dumps.begins and not self.stream.closes and not self.flood:
            for state in (rank.unsynced, rank.unread):
                for key_ in [each for each in state if each[0] == self.stream.name]:
                    del state[key_]
        self.content = dumps.content + (k if dumps.begins else 0)
        # The key of an order; those that are made before have the numbers of their contents.
        again = self.stream.set.numbered and self.stream.set.names
        self.dump = self.content if walk.prepares and again else dumps.first + k

    def key(self, file: int) -> tuple[str, int | None, int]:
        return self.stream.name, self.set if self.stream.closes else None, file

    def at(self, numbers: Whole) -> int:
        return int(numbers[self.s])

    def path(self, file: int) -> str:
        files = self.stream.set
        group = self.at(self.walk.segments.group) + (self.i if self.walk.segments.alone else 0)
        folder = f"{files.name}.d{group}/" if files.own_directories else ""
        name = f"run/{folder}{files.name}"
        name += "" if self.set is None else f".{self.set:06d}"
        name += f".f{file}" if files.files > 1 else ""
        if files.owner == EACH_RANK:
            name += f".{self.rank:08d}"
        elif files.owner != ALL_RANKS:
            name += f".g{group}"
        return name + SUFFIXES.get(self.method, "")

    def lines(self) -> Iterator[str]:
        variables = self.dumps.step.variables
        firsts = accumulate((v.count for v in variables), initial=0)
        numbers = {v.name: n for v, n in zip(variables, firsts, strict=False)}
        for moves, calls in groupby(
            self.dumps.calls, lambda c: isinstance(c, Moved) and (c.loop,)
        ):
            if moves:
                pieces = [c for c in calls if isinstance(c, Moved)]
                for _ in range(pieces[0].times):
                    for moved in pieces:
                        yield from self.moved(moved, numbers[moved.move.variable.name])
                continue
            for call in calls:
                match call:
                    case Opened() if self.at(call.ranks & ~call.lent):
                        yield self.opened(call)
                    case Synced() if self.at(call.ranks):
                        yield f"sync {self.path(call.file)}"
                    case Closed() if self.at(call.ranks):
                        yield f"close {self.path(call.file)}"
                    case Operated() if call.kind in ("open", "stat", "seek", "sync"):
                        yield from self.operated(call)
                    case Rows():
                        yield from self.rows(call)

    # -- files ------------------------------------------------------------------------------------

    def opened(self, opened: Opened) -> str:
        here = self.walk.segments.in_file(opened.ranks.astype(np.int64))
        mode = "read"
        if self.walk.writes:
            first = not self.in_turn or self.at(opened.leads)
            mode = "create" if self.at(opened.makes) and first else "extend"
        said = f"open {self.path(opened.file)} {mode} ranks {1 if self.in_turn else self.at(here)}"
        return said + (" turns" if self.in_turn else "") + self.flags()

    def flags(self) -> str:
        each = [*instructions(self.stream)]
        moves = [i for i in each if isinstance(i, Move)]
        lasting = any(m.flush_bytes and not m.hands_over for m in moves) or (
            any(isinstance(i, Sync) for i in each) and not self.walk.prepares
        )
        through = any(getattr(i, "write_through", False) for i in each)
        looks_up = self.walk.is_read_open or any(m.lookups for m in moves)
        appends = not self.stream.set.numbered and not self.walk.writer
        flags = {"write-through": through, "append": appends and not self.flood}
        flags |= {"looks-up": looks_up, "lasting": lasting}
        return "".join(f" {name}" for name, on in flags.items() if on)

    def operated(self, operated: Operated) -> Iterator[str]:
        files = [self.path(f) for f, mask in operated.opened if self.at(mask)]
        for rows in self.dumps.calls:
            files += [path for _, _, path in self.files(rows)] if isinstance(rows, Rows) else []
        count, here = self.at(operated.each), max(len(files), 1)
        if operated.kind in ("seek", "sync"):
            if self.method not in ("posix", "stdio") or not files or self.flood:
                self.turn += min(count, here)
            return
        for _ in range(count):
            path = files[self.turn % here] if files else "made"
            self.turn += 1
            if operated.kind == "open" and self.method not in SUFFIXES:
                yield f"open {path} read ranks 1"
                yield f"close {path}"

    # -- moves ------------------------------------------------------------------------------------

    def moved(self, moved: Moved, number: int) -> Iterator[str]:
        """The calls of variable `number` of the dump, and those alike behind it."""
        if not self.at(moved.takes_part):
            return
        move, block = moved.move, moved.block
        begin = (
            self.at(moved.begin) + self.i * self.at(moved.slope) + self.k * self.at(moved.growth)
        )
        if moved.place is not None:
            assert self.walk.writer
            writer, k = self.state.current[self.walk.writer.stream.name]
            at, _, growth = writer.places[moved.place]
            begin += self.at(at) + k * self.at(growth)
        for n in range(move.variable.count):
            name = f"domain_{self.rank:08d}/" if moved.in_turn else ""
            name += move.variable.name + (f"_{n}" if move.variable.count > 1 else "")
            path = self.path(move.variable.file)
            together = " collective" if move.collective and self.method in TOGETHER else ""
            if self.method in DEFINES:
                yield self.defined(path, name, move.variable, block, begin, together)
            calls = [*block_calls(block, self.s, self.rank, move.call_bytes(self.method))]
            k = key(move.order, self.dump, number + n, self.rank)
            way = "write" if move.writes else "read"
            begins = move.nonblocking and not self.walk.prepares
            begins = begins or (move.depth > 1 and self.method in QUEUES)
            way = f"i{way}" if begins else way
            most = block.calls(move.call_bytes(self.method), move.order).transfers
            most = self.walk.segments.most_in_file(most)
            each = move.call_bytes(self.method)
            written = 0
            for p in range(max(self.at(most), len(calls)) if not moved.in_turn else len(calls)):
                size = 0
                if p < len(calls):
                    at, size, runs = calls[position(move.order, k, len(calls), p)]
                    where = f"offset {begin + at} bytes {size} runs {runs}"
                    yield f"{way} {path} {name} {where}{together}"
                elif together:
                    yield f"{way} {path} {name} offset -1 bytes 0 runs 0{together}"
                if move.writes and (every := move.flushes(self.method)):
                    yield from self.flushed(move.variable.file, p, size, every, each, path)
                if move.writes and move.lookups and size:
                    written += size
                    yield from self.looked_up(moved, path, name, begin + at + size, size, written)
            begin += self.at(block.whole)

    def defined(
        self, path: str, name: str, variable: Variable, block: Block, begin: int, together: str
    ) -> str:
        kind = list(TYPE_BYTES).index(variable.type)
        rule = variable.decomposition
        size = self.at(block.size)
        if rule.rule == "cyclic":
            size = min(size, rule.block * block.variable.row_bytes)
        all_ = self.walk.segments.groups == 1 and (
            not self.in_turn or self.walk.segments.ranks == 1
        )
        slabs = "" if rule.rule == "grid" and all_ else " slabs"
        again = self.walk.names if self.stream.set.numbered else None
        updates = again and self.walk.writes and not self.walk.empties
        exists = updates and not any(
            isinstance(c, Opened) and (c.fresh or c.makes.any()) for c in self.dumps.calls
        )
        tail = f"{slabs}{together}{' exists' if exists else ''}"
        return f"define {path} {name} type {kind} rows 0 offset {begin} block {size}{tail}"

    def flushed(
        self, file: int, p: int, size: int, every: int, each: int, path: str
    ) -> Iterator[str]:
        state = self.state.unsynced
        state[self.key(file)] += size
        if self.method in TOGETHER:
            flushes = (p + 1) % ((every - 1) // each + 1) == 0
        else:
            flushes = state[self.key(file)] >= every
        if flushes:
            state[self.key(file)] = 0
            yield f"sync {path}"

    def looked_up(
        self, moved: Moved, path: str, name: str, end: int, size: int, written: int
    ) -> Iterator[str]:
        lookups, file = moved.move.lookups, moved.move.variable.file
        assert lookups
        unread, times = self.state.unread[self.key(file)]
        unread += size
        if unread >= lookups.every_bytes:
            unread, times = unread % lookups.every_bytes, times + 1
            calls = int(times * lookups.calls) - int((times - 1) * lookups.calls)
            alone = self.at(self.walk.segments.in_file(moved.ranks.astype(np.int64))) == 1
            cut = moved.calls.cut(self.s)
            assert cut
            reach = end if alone else written if cut.strands == 1 else 0
            most = min(reach, lookups.transfer_bytes)
            for _ in range(calls if most else 0):
                yield f"read {path} {name} offset {end - most} bytes {most} runs 1"
        self.state.unread[self.key(file)] = unread, times

    # -- files of a row each ----------------------------------------------------------------------

    def rows(self, rows: Rows) -> Iterator[str]:
        mode = "create" if self.walk.writes else "read"
        syncs = any(isinstance(i, Sync) for i in rows.files.body)
        for _ in range(rows.times):
            for move, block, path in self.files(rows):
                yield f"open {path} {mode} ranks 1{self.flags()}"
                yield from self.row(move, block, path)
                yield from [f"sync {path}"] if syncs else []
                yield f"close {path}"

    def files(self, rows: Rows) -> Iterator[tuple[Move, Block, str]]:
        """Those of the rank, in their order."""
        order, numbers, firsts = rows.files.order, [], [0]
        for move, block, _ in rows.moves:
            count, length = move.variable.count, move.variable.shape[0]
            block_rows = [*_rows_of_rank(block, self.rank, self.s)]
            numbers += [firsts[-1] + n * length + row for n in range(count) for row in block_rows]
            firsts.append(firsts[-1] + count * length)
        shuffle, per = key(order, self.dump, 0, 0), self.stream.set.files_per_directory
        for i in range(len(numbers)):
            if order.rule == "strided":
                number = numbers[position(order, 0, len(numbers), i)]
            else:
                number = position(order, shuffle, firsts[-1], numbers[i])
            folder = f".d{number // per:06d}/" if per else "."
            path = f"run/{self.stream.set.name}.{self.set:06d}{folder}{number:08d}"
            move, block, _ = rows.moves[int(np.searchsorted(firsts, number, "right")) - 1]
            yield move, block, path + SUFFIXES.get(self.method, "")

    def row(self, move: Move, block: Block, path: str) -> Iterator[str]:
        variable, at = move.variable, 0
        row = block.variable.row_bytes
        if self.method in DEFINES:
            kind = list(TYPE_BYTES).index(variable.type)
            yield f"define {path} {variable.name} type {kind} rows 0 offset 0 block {row} slabs"
        [cut] = {c for c in block.calls(move.call_bytes(self.method), Order(), True).cuts if c}
        for outer, sizes in cut.rounds:
            for _ in range(outer):
                for size, times in sizes:
                    for _ in range(times):
                        way = "write" if move.writes else "read"
                        yield f"{way} {path} {variable.name} offset {at} bytes {size} runs 1"
                        at += size
                        if move.writes and (every := move.flushes(self.method)):
                            self.state.unsynced[self.key(0)] += size
                            if self.state.unsynced[self.key(0)] >= every:
                                self.state.unsynced[self.key(0)] = 0
                                yield f"sync {path}"


def block_calls(block: Block, s: int, rank: int, call_bytes: int) -> Iterator[Call]:
    """The transfers of a rank's block of a variable, in the order of its bytes; places are those
    in the dataset."""
    cut = block.calls(call_bytes, Order()).cut(s)
    if cut is None:
        return
    variable = block.variable
    if block.scattered:
        yield from _grid_calls(variable, rank, call_bytes)
        return
    part = variable.decomposition.block * variable.row_bytes
    apart = int(block.end[s] - block.at[s]) > int(block.size[s])
    leap = 0
    if apart:
        parts = -(-int(block.size[s]) // part)
        leap = (int(block.end[s] - block.at[s]) - int(block.size[s])) // (parts - 1)
    begin = int(block.at[s]) + (rank - int(block.segments.starts[s])) * int(block.slope[s])
    at = 0
    for times, sizes in cut.rounds:
        for _ in range(times):
            for size, number in sizes:
                for _ in range(number):
                    yield begin + at + (at // part * leap if apart else 0), size, 1
                    at += size


def _grid_calls(variable: Variable, rank: int, call_bytes: int) -> Iterator[Call]:
    """Boxes of whole trailing dimensions."""
    shape, element = variable.shape, TYPE_BYTES[variable.type]
    most = call_bytes // element
    starts, counts = [], []
    for length, parts in zip(reversed(shape), reversed(variable.decomposition.grid), strict=True):
        rank, index = divmod(rank, parts)
        low, extra = divmod(length, parts)
        starts.insert(0, index * low + min(index, extra))
        counts.insert(0, low + (index < extra))
    dim, inner = len(shape) - 1, 1
    while dim > 0 and inner * counts[dim] <= most:
        inner *= counts[dim]
        dim -= 1
    rows = min(most // inner, counts[dim])
    strides = [prod(shape[d + 1 :]) for d in range(len(shape))]
    for outer in np.ndindex(*counts[:dim]):
        for row in range(0, counts[dim], rows):
            box = [*(1 for _ in outer), min(rows, counts[dim] - row), *counts[dim + 1 :]]
            first = [*(s + o for s, o in zip(starts, outer, strict=False))]
            first += [starts[dim] + row, *starts[dim + 1 :]]
            whole = len(shape) - 1
            while whole > 0 and box[whole] == shape[whole]:
                whole -= 1
            at = sum(f * s for f, s in zip(first, strides, strict=True))
            yield at * element, prod(box) * element, prod(box[:whole])


def _rows_of_rank(block: Block, rank: int, s: int) -> Iterator[int]:
    """Of dimension 0."""
    variable, ranks, rows = block.variable, block.segments.ranks, int(block.rows[s])
    rule = variable.decomposition
    if rule.rule == "cyclic":
        for n in range(rows):
            yield (n // rule.block * ranks + rank) * rule.block + n % rule.block
        return
    first = 0
    for many, each in variable.rank_runs(ranks):
        first += min(max(rank, 0), many) * each // variable.row_bytes
        rank -= many
    yield from range(first, first + rows)

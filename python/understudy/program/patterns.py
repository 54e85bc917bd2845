"""Patterns: streams of dumps that are alike, and the one constructor of their programs.

Readers and simulations say with a pattern what a stream is; workloads hold the program that it
means. Files of understudy/workload/1 and /2 say patterns, too.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from understudy.program.instructions import (
    ALL_RANKS,
    CALLERS,
    EACH_GROUP,
    EACH_RANK,
    EACH_ROW,
    KEEP,
    NEW,
    OPERATIONS,
    READ,
    TRUNCATE,
    Begin,
    Body,
    Calls,
    Close,
    Compute,
    Files,
    FileSet,
    Instruction,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Remove,
    Skew,
    Spread,
    Step,
    Stream,
    Sync,
)
from understudy.program.syscalls import CallList, Tree
from understudy.program.types import CONSECUTIVE, RANDOM, Content, Lookups, Order, Variable

_OWNERS = {
    "shared": ALL_RANKS,
    "file-per-process": EACH_RANK,
    "grouped": EACH_GROUP,
    "flood": EACH_ROW,
    "callers": CALLERS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """A dump that stands for `count` of them, `period_s` seconds from start to start."""

    count: int
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation without bytes; `runs` are (ranks, how often each makes it)."""

    operation: str
    runs: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """How often all ranks together make it."""
        return sum(n * each for n, each in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """An entry of a stream: a dump, or equal dumps by `repeat`."""

    time_s: float
    variables: tuple[Variable, ...] = ()
    duration_s: float | None = None
    compute_s: float = 0
    overhead_bytes: int | None = None
    repeat: Repeat | None = None
    operations: tuple[Operation, ...] = ()
    skew: tuple[tuple[int, float], ...] = ()  # (ranks, seconds behind time_s); empty: none
    continues: bool = False
    calls: CallList | None = None  # of the system, in place of variables

    @property
    def bytes(self) -> int:
        """Contents of one dump over all ranks."""
        if self.calls is not None:
            return self.calls.bytes
        return sum(v.bytes for v in self.variables)

    @property
    def count(self) -> int:
        """Dumps that the entry stands for."""
        return self.repeat.count if self.repeat else 1

    def start_s(self, k: int) -> float:
        """When dump k of the entry starts."""
        return self.time_s + k * self.repeat.period_s if self.repeat else self.time_s

    def started(self, time_s: float) -> int:
        """How many dumps of the entry start at that time or before."""
        return bisect_right(range(self.count), time_s, key=self.start_s)

    @property
    def last_s(self) -> float:
        """When the last dump of the entry starts."""
        return self.start_s(self.count - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A stream of dumps that are alike in how they use files and move bytes."""

    name: str
    role: str
    operation: str
    files: str
    layout: str
    method: str
    transfer_bytes: int
    dumps: tuple[Dump, ...]
    label: str = ""
    groups: int | None = None
    collective: bool = False
    sync: bool = False
    turns: bool = False
    content: Content = RANDOM
    names: int = 1
    reopen: bool | None = None  # None: as the files imply; see stays_open
    extends: str | None = None
    order: Order = CONSECUTIVE
    passes: int = 1
    pace: str = "burst"
    direct: bool = False
    sync_bytes: int | None = None
    flush_bytes: int | None = None
    chunk_bytes: int | None = None
    fill: bool = False
    lookups: Lookups | None = None
    write_through: bool = False
    removes: bool = False
    backup: bool = False
    own_directories: bool = False
    files_per_directory: int | None = None
    reads: str | None = None
    tree: Tree | None = None  # the files of its calls of the system

    def __post_init__(self) -> None:
        if self.reopen == (self.files != "append"):
            object.__setattr__(self, "reopen", None)

    @property
    def stays_open(self) -> bool:
        """True if files are open from their first dump to their last: appended ones unless
        `reopen` is true, updated ones if it is false. One set of updated ones is open until it is
        read for the last time."""
        return self.files == "append" if self.reopen is None else not self.reopen

    @property
    def grows(self) -> bool:
        """True if it has one set of files, to which each dump is added."""
        return self.files == "append"

    @property
    def is_flood(self) -> bool:
        """True if each row of a variable is a file of its own."""
        return self.layout == "flood"

    @property
    def base(self) -> str | None:
        """The stream whose files it extends or reads."""
        return self.extends or self.reads

    @property
    def bytes(self) -> int:
        """Payload that the stream moves over all dumps, passes and ranks."""
        return self.passes * sum(d.count * d.bytes for d in self.dumps)

    @property
    def dump_count(self) -> int:
        """Number of dumps, with repetitions."""
        return sum(d.count for d in self.dumps)

    @property
    def first_s(self) -> float:
        """When the first dump starts."""
        return self.dumps[0].time_s

    @property
    def last_s(self) -> float:
        """When the last dump starts."""
        return self.dumps[-1].last_s

    def expanded(self) -> Iterator[tuple[float, Dump]]:
        """Every dump in order, with repetitions, and when it starts."""
        for dump in self.dumps:
            yield from ((dump.start_s(k), dump) for k in range(dump.count))


def streams_of(patterns: Iterable[Pattern], ranks: int) -> tuple[Stream, ...]:
    """Streams of the patterns, those that go into files of others behind these."""
    streams: list[Stream] = []
    before: dict[str, Stream] = {}
    for pattern in patterns:
        streams.append(_stream(pattern, ranks, before))
        before[pattern.name] = streams[-1]
    return tuple(streams)


def stream_of(pattern: Pattern, ranks: int) -> Stream:
    """Stream of one pattern by itself, as if the files that it goes into were its own."""
    return _stream(pattern, ranks, {})


def _stream(pattern: Pattern, ranks: int, before: Mapping[str, Stream]) -> Stream:
    base = before.get(pattern.base or "")
    return Stream(
        name=pattern.name,
        label=pattern.label,
        role=pattern.role,
        method=pattern.method,
        content=pattern.content,
        set=base.set if base else _file_set(pattern, ranks),
        steps=tuple(_Builder(pattern).steps()),
        closes=pattern.stays_open and not pattern.is_flood,
        behind=pattern.extends,
        last=pattern.reads,
        files_per_directory=pattern.files_per_directory if base else None,
    )


def _file_set(stream: Pattern, ranks: int) -> FileSet:
    owner = _OWNERS[stream.layout]
    again = stream.files in ("rewrite", "update")
    return FileSet(
        name=stream.name,
        owner=owner,
        groups=1 if owner == ALL_RANKS else stream.groups or ranks,
        files=1 + max((v.file for d in stream.dumps for v in d.variables), default=0),
        names=stream.names if again else 1 if stream.files == "append" else None,
        numbered=stream.files != "append",
        own_directories=stream.own_directories,
        files_per_directory=stream.files_per_directory,
        prepared=stream.operation == "read" and stream.reads is None,
        tree=stream.tree,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """Equal dumps of an entry of the descriptor: those from `first` on, `count` of them."""

    dump: Dump
    first: int
    count: int
    opens: bool
    closes: bool


class _Builder:
    """Builder of one stream."""

    def __init__(self, stream: Pattern) -> None:
        self._stream = stream
        self._writes = stream.operation == "write"
        self._flood = stream.layout == "flood"
        self._order = CONSECUTIVE if self._flood else stream.order
        self._bodies: dict[tuple[Any, ...], Body] = {}  # bodies and moves that dumps share

    def steps(self) -> Iterator[Step]:
        for part in self._parts():
            dump = part.dump
            yield Step(
                time_s=dump.start_s(part.first) if part.first else dump.time_s,
                count=part.count,
                period_s=dump.repeat.period_s if dump.repeat and part.count > 1 else 0,
                duration_s=dump.duration_s,
                overhead_bytes=dump.overhead_bytes,
                body=self._shared(part),
            )

    def _shared(self, part: _Part) -> Body:
        dump = part.dump
        does = (id(dump.variables), id(dump.calls), dump.operations, dump.compute_s, dump.skew)
        key = (*does, dump.continues, part.opens, part.closes)
        if key not in self._bodies:
            self._bodies[key] = tuple(self._body(part))
        return self._bodies[key]

    def _parts(self) -> Iterator[_Part]:
        """Entries, divided where not all of their dumps open and close files alike."""
        dumps = self._stream.dumps
        if self._stream.stays_open:
            yield from (_Part(dump, 0, dump.count, True, False) for dump in dumps)
            return
        begin = 0
        while begin < len(dumps):
            end = begin + 1
            while end < len(dumps) and dumps[end].continues:
                end += 1
            yield from self._contents(dumps[begin:end])
            begin = end

    def _contents(self, dumps: Sequence[Dump]) -> Iterator[_Part]:
        """The contents that begin with an entry; the last one goes on in the entries behind it."""
        head, tail = dumps[0], dumps[1:]
        alone = head.count - 1 if tail else head.count
        if alone:
            opens = bool(head.variables)
            yield _Part(head, 0, alone, opens, opens)
        parts = [_Part(head, alone, 1, False, False)] if tail else []
        for dump in tail:
            if dump.count > 1:
                parts.append(_Part(dump, 0, dump.count - 1, False, False))
            parts.append(_Part(dump, dump.count - 1, 1, False, False))
        with_data = [i for i, part in enumerate(parts) if part.dump.variables]
        for i, part in enumerate(parts):
            opens = bool(with_data) and i == with_data[0]
            closes = bool(with_data) and i == with_data[-1]
            yield replace(part, opens=opens, closes=closes)

    def _body(self, part: _Part) -> Iterator[Instruction]:
        dump, stream = part.dump, self._stream
        if dump.calls is not None:
            yield from (*self._pace(dump), Calls(dump.calls))
            return
        if not dump.continues and stream.files != "append":
            yield Begin()
        if dump.skew:
            yield Skew(dump.skew)
        operations = sorted(dump.operations, key=lambda o: OPERATIONS.index(o.operation))
        operated = tuple(Operate(kind=o.operation, runs=o.runs) for o in operations)
        if self._flood:
            files = self._flood_files(dump)
            yield from (*files, *operated) if self._writes else (*operated, *files)
            return
        data = bool(dump.variables) or stream.stays_open
        body = (
            *(self._remove() if part.opens and stream.removes else ()),
            *((self._open(),) if part.opens else ()),
            *operated,
            *self._moves(dump),
            *((Sync(),) if stream.sync and self._writes and data else ()),
            *((Close(),) if part.closes else ()),
        )
        yield from (InTurn(body),) if stream.turns else body

    def _remove(self) -> Body:
        stream = self._stream
        return (Remove(backup=stream.backup),) if stream.extends is None else ()

    def _open(self) -> Open:
        stream = self._stream
        modes = {
            "new": NEW,
            "append": KEEP,
            "rewrite": NEW if stream.removes else TRUNCATE,
            "update": KEEP,
        }
        mode = modes[stream.files] if stream.extends is None else KEEP
        return Open(
            mode=mode if self._writes else READ,
            direct=stream.direct,
            write_through=stream.write_through,
            chunk_bytes=stream.chunk_bytes,
            fill=stream.fill,
        )

    def _moves(self, dump: Dump) -> Body:
        if not dump.variables:
            return ()
        return (*self._pace(dump), *self._passes(self._moved(dump)))

    def _flood_files(self, dump: Dump) -> Body:
        """A loop over the files of a dump."""
        if not dump.variables:
            return ()
        stream = self._stream
        sync = (Sync(),) if stream.sync and self._writes else ()
        files = Files(stream.order, (self._open(), *self._moved(dump), *sync, Close()))
        return (*self._pace(dump), *self._passes((files,)))

    def _pace(self, dump: Dump) -> Body:
        if self._stream.pace == "steady":
            return (Spread(),)
        return (Compute(dump.compute_s),) if dump.compute_s else ()

    def _passes(self, body: Body) -> Body:
        return (Passes(self._stream.passes, body),) if self._stream.passes > 1 else body

    def _moved(self, dump: Dump) -> Body:
        key = (id(dump.variables),)
        if key not in self._bodies:
            self._bodies[key] = tuple(map(self._move, dump.variables))
        return self._bodies[key]

    def _move(self, variable: Variable) -> Move:
        stream = self._stream
        return Move(
            variable=replace(variable, transfer_bytes=None, collective=None),
            writes=self._writes,
            transfer_bytes=variable.transfer_bytes or stream.transfer_bytes,
            collective=stream.collective if variable.collective is None else variable.collective,
            order=self._order,
            flush_bytes=stream.flush_bytes or stream.sync_bytes,
            hands_over=stream.flush_bytes is not None,
            lookups=stream.lookups,
        )

"""From a workload to its program: the only code in Python that reads what a stream's keys say of
its files.

proxies/core/program.c does the same for the player; a test holds the two against each other.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from understudy.semantics.program import (
    ALL_RANKS,
    CALLERS,
    CONSECUTIVE,
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
    Program,
    Remove,
    Skew,
    Spread,
    Step,
    Sync,
    Thread,
)
from understudy.semantics.types import Described, Dump, Stream, Variable

_OWNERS = {
    "shared": ALL_RANKS,
    "file-per-process": EACH_RANK,
    "grouped": EACH_GROUP,
    "flood": EACH_ROW,
    "callers": CALLERS,
}


def lower(workload: Described) -> Program:
    """The program of a valid workload."""
    threads = threads_of(workload.streams, workload.ranks)
    return Program(name=workload.name, ranks=workload.ranks, threads=threads)


def threads_of(streams: Iterable[Stream], ranks: int) -> tuple[Thread, ...]:
    """What each stream does, those that go into files of others behind these."""
    threads: list[Thread] = []
    before: dict[str, Thread] = {}
    for stream in streams:
        threads.append(_thread(stream, ranks, before))
        before[stream.name] = threads[-1]
    return tuple(threads)


def thread_of(stream: Stream, ranks: int) -> Thread:
    """What a stream does by itself, as if the files that it goes into were its own."""
    return _thread(stream, ranks, {})


def _thread(stream: Stream, ranks: int, before: dict[str, Thread]) -> Thread:
    base = before.get(stream.extends or stream.reads or "")
    files = base.set if base else _file_set(stream, ranks)
    lowering = _Lowering(stream, files)
    return Thread(
        name=stream.name,
        method=stream.method,
        content=stream.content,
        set=files,
        steps=tuple(lowering.steps()),
        closes=stream.stays_open and not stream.is_flood,
        writer=stream.reads,
    )


def _file_set(stream: Stream, ranks: int) -> FileSet:
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


class _Lowering:
    """Of one stream."""

    def __init__(self, stream: Stream, files: FileSet) -> None:
        self._stream = stream
        self._files = files
        self._writes = stream.operation == "write"
        self._flood = stream.layout == "flood"
        self._order = CONSECUTIVE if self._flood else stream.order

    def steps(self) -> Iterator[Step]:
        for part in self._parts():
            dump = part.dump
            yield Step(
                time_s=dump.start_s(part.first) if part.first else dump.time_s,
                count=part.count,
                period_s=dump.repeat.period_s if dump.repeat and part.count > 1 else 0,
                duration_s=dump.duration_s,
                body=tuple(self._body(part)),
            )

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
            yield from (*self._pace(dump), Calls(self._files, dump.calls))
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
            set=self._files,
            mode=mode if self._writes else READ,
            last=stream.reads is not None,
            direct=stream.direct,
            write_through=stream.write_through,
            chunk_bytes=stream.chunk_bytes,
            fill=stream.fill,
        )

    def _moves(self, dump: Dump) -> Body:
        if not dump.variables:
            return ()
        return (*self._pace(dump), *self._passes(tuple(map(self._move, dump.variables))))

    def _flood_files(self, dump: Dump) -> Body:
        """A loop over the files of a dump."""
        if not dump.variables:
            return ()
        stream = self._stream
        sync = (Sync(),) if stream.sync and self._writes else ()
        moves = tuple(map(self._move, dump.variables))
        files = Files(stream.order, (self._open(), *moves, *sync, Close()))
        return (*self._pace(dump), *self._passes((files,)))

    def _pace(self, dump: Dump) -> Body:
        if self._stream.pace == "steady":
            return (Spread(),)
        return (Compute(dump.compute_s),) if dump.compute_s else ()

    def _passes(self, body: Body) -> Body:
        return (Passes(self._stream.passes, body),) if self._stream.passes > 1 else body

    def _move(self, variable: Variable) -> Move:
        stream = self._stream
        return Move(
            variable=variable,
            writes=self._writes,
            transfer_bytes=variable.transfer_bytes or stream.transfer_bytes,
            collective=stream.collective if variable.collective is None else variable.collective,
            order=self._order,
            flush_bytes=stream.flush_bytes or stream.sync_bytes,
            hands_over=stream.flush_bytes is not None,
            lookups=stream.lookups,
        )

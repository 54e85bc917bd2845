"""A workload of a trace: what each rank calls, in steps that keep the order between ranks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby
from math import inf
from operator import itemgetter
from typing import Any, Protocol

from understudy.errors import UnderstudyError
from understudy.program.instructions import (
    CALLERS,
    Body,
    Calls,
    Compute,
    FileSet,
    Step,
    Stream,
    calls_of_system,
)
from understudy.program.syscalls import CallList, Entry, Tree
from understudy.program.types import Provenance, Scaling, Source, identifier
from understudy.program.workload import Workload
from understudy.tracing.files import File, Path, TracedCall
from understudy.tracing.folding import Item, fold, item_of, outer, row_of
from understudy.tracing.processes import Processes
from understudy.units import plural, size

Row = dict[str, Any]
# Calls on a file that do the same whatever another rank has written to it.
_ALIKE = ("open", "close", "dup", "seek", "sync", "advise", "attribute")
AT_ONCE = 1 << 18  # calls that are held before loops are found in them


class Trace(Protocol):
    """The calls of a program, and the names and files that they are on."""

    @property
    def system_calls(self) -> Iterable[TracedCall]:
        """The calls, in the order in which they ended: by then they have had their effect. There
        is one at least; read several times."""

    @property
    def paths(self) -> dict[str, Path]:
        """All names, those of directories included."""

    @property
    def files(self) -> Sequence[File]:
        """All files that had a name."""

    @property
    def roots(self) -> Sequence[str]:
        """Directories that are there in any case."""

    @property
    def ranks(self) -> dict[int, int]:
        """The number in the workload of each rank that made calls."""

    @property
    def begin_s(self) -> float:
        """When the program began, in the time of the calls."""

    @property
    def call_s(self) -> float:
        """Seconds that tracing took for each call."""

    @property
    def pause_s(self) -> float:
        """A step begins where no rank made a call for longer."""


def workload_of(
    name: str,
    traced: Trace,
    *,
    ranks: int,
    runtime_s: float,
    source: Source,
    provenance: tuple[Provenance, ...],
) -> Workload:
    """The workload of the calls of a trace."""
    numbers = _numbered(traced)
    program_steps = []
    start_s = 0.0
    for calls in steps(traced.system_calls, traced.pause_s):
        first = next(calls)
        start_s = max(start_s, first.begin_s - traced.begin_s)
        program_steps.append(_step(first, calls, start_s, traced, numbers))
    tree = _tree(traced, numbers)
    stream = Stream(
        name=identifier(name),
        role="output",
        method="posix",
        set=FileSet(name=identifier(name), owner=CALLERS, groups=ranks, tree=tree),
        steps=tuple(program_steps),
    )
    return Workload(
        name=identifier(name),
        description="",
        ranks=ranks,
        streams=(stream,),
        source=source,
        provenance=provenance,
        runtime_s=round(runtime_s, 6),
        scaling=Scaling(rule="none", from_ranks=ranks),
    )


def of_processes(
    name: str,
    traced: Processes,
    tracer: str,
    where: str,
    version: str = "",
    notes: Sequence[str] = (),
) -> Workload:
    """The workload of the calls of processes that a tracer has written to `where`; the notes say
    what it does not tell."""
    unseen = list(traced.unseen())
    if not traced.system_calls:
        if unseen:
            raise UnderstudyError(f"{where}: {' '.join(unseen)} There are no other calls.")
        raise UnderstudyError(
            f"{where}: no calls on files of the directories; expected some below the one in which "
            "the program was started, or below others: understudy describe --below DIRECTORY"
        )
    if (stored := sum(file.most for file in traced.files)) >= 1 << 63:
        raise UnderstudyError(f"{where}: its files have {stored:,} bytes, expected less than 2^63")
    how = {
        "ranks": "Processes with a rank of MPI, or one.",
        "runtime_s": "From the first call to the last.",
        "streams": f"Calls of the system, as {tracer} saw them.",
    }
    all_notes = [*notes, *unseen, *left_out(traced.left_out)]
    if traced.elsewhere:
        read, written = map(sum, zip(*traced.elsewhere.values(), strict=True))
        all_notes.append(
            f"Not played: calls on {plural(len(traced.elsewhere), 'file')} of other directories "
            f"({size(read)} read, {size(written)} written); --below DIRECTORY takes those."
        )
    return workload_of(
        identifier(name),
        traced,
        ranks=len(traced.ranks),
        runtime_s=traced.end_s - traced.begin_s,
        source=Source(format=tracer, version=version, reader=tracer, notes=tuple(all_notes)),
        provenance=tuple(
            Provenance(path=f"/{key}", origin="read", how=text) for key, text in how.items()
        ),
    )


def left_out(calls: Mapping[str, int]) -> Iterator[str]:
    """A note for each kind of call that is not played as it was made, with its number."""
    for what, count in sorted(calls.items(), key=lambda pair: -pair[1]):
        how = "Played" if " as " in what else "Not played"
        yield f"{how}: {what} ({plural(count, 'time')})."


def closing(workload: Workload) -> str:
    """Summary of the replica, with its omissions."""
    (stream,) = workload.streams
    lists = list(calls_of_system(stream))
    count = sum(n * calls.count for calls, n in lists)
    files = stream.tree.files if stream.tree else 0
    ranks, names = plural(workload.ranks, "rank"), plural(files, "name")
    kept = f"The replica makes {plural(count, 'call')} of {ranks} on {names}, in their order."
    return " ".join((kept, *(workload.source.notes if workload.source else ())))


# -- names ---------------------------------------------------------------------------------------


def _numbered(traced: Trace) -> dict[str, int]:
    """The entry of each name: those of several ranks first, then those of each rank in the order
    in which it uses them, so that ranks that do alike have them alike."""
    users: dict[str, set[int]] = {}
    for call in traced.system_calls:
        for name in (call.path, call.to):
            if name is not None:
                users.setdefault(name, set()).add(traced.ranks[call.rank])
    order = sorted(users, key=lambda n: min(users[n]) + 1 if len(users[n]) == 1 else 0)
    numbers: dict[str, int] = {}
    for name in sorted(traced.paths):  # directories without calls of their own
        if name not in users and name not in traced.roots:
            _number(name, traced.paths, numbers, traced.roots)
    for name in order:
        _number(name, traced.paths, numbers, traced.roots)
    return numbers


def _number(
    name: str, paths: dict[str, Path], numbers: dict[str, int], roots: Sequence[str]
) -> None:
    needed = [name.rpartition("/")[0] or "/"] if name not in roots else []
    needed += filter(None, [paths[name].like])
    for before in needed:
        if before in paths and before not in numbers and before not in roots and before != name:
            _number(before, paths, numbers, roots)
    numbers.setdefault(name, len(numbers))


def _tree(traced: Trace, numbers: dict[str, int]) -> Tree:
    entries: list[Entry] = []
    for name in numbers:
        path = traced.paths[name]
        if name in traced.roots:
            entries.append(Entry(top=True))
            continue
        there = bool(path.before) and not path.assumed
        parent = name.rpartition("/")[0] or "/"
        entry = Entry(
            within=None if parent in traced.roots else numbers[parent],
            directory=there and path.directory,
            bytes=path.bytes if there and not path.directory else None,
            name=None if path.like is None else numbers.get(path.like),
        )
        last = entries[-1] if entries else Entry(top=True)
        if replace(last, count=1) == entry and not last.top:
            entries[-1] = replace(last, count=last.count + 1)
        else:
            entries.append(entry)
    return Tree(entries=tuple(entries), stored_bytes=sum(f.most for f in traced.files))


# -- steps ---------------------------------------------------------------------------------------


def steps(
    system_calls: Iterable[TracedCall], pause_s: float = inf
) -> Iterator[Iterator[TracedCall]]:
    """The calls, divided where one needs what another rank has done in the same step, and where
    all ranks pause."""
    return (
        map(itemgetter(1), calls)
        for _, calls in groupby(_numbered_steps(system_calls, pause_s), _FIRST)
    )


_FIRST = itemgetter(0)


def _numbered_steps(
    system_calls: Iterable[TracedCall], pause_s: float
) -> Iterator[tuple[int, TracedCall]]:
    """The calls, each with the number of its step."""
    step = 0
    changed: dict[Any, int] = {}  # the rank that has changed a name or a file; -1: several have
    used: dict[Any, set[int]] = {}
    end_s = 0.0  # of the calls so far
    for call in system_calls:
        names = [n for n in (call.path, call.to) if n is not None]
        keys: list[Any] = [*names, *(id(f) for f in _needed(call) if f is not None)]
        writes = call.row["call"] == "write"
        waits = any(
            changed.get(k, call.rank) != call.rank for k in keys if not writes or k in names
        )
        waits = waits or (
            call.changes
            and not writes
            and any(used.get(k, {call.rank}) != {call.rank} for k in keys)
        )
        if waits or call.begin_s - end_s > pause_s:
            step, changed, used = step + 1, {}, {}
        end_s = max(end_s, call.begin_s + call.seconds)
        yield step, call
        for key in keys:
            used.setdefault(key, set()).add(call.rank)
            if call.changes:
                changed[key] = call.rank if changed.get(key, call.rank) == call.rank else -1


def _needed(call: TracedCall) -> tuple[File | None, ...]:
    """Files whose bytes or size a call changes or depends on."""
    alike = call.row["call"] in _ALIKE and "from_end" not in call.row
    return () if alike and not call.changes else (call.file, call.source)


def _step(
    first: TracedCall,
    rest: Iterable[TracedCall],
    start_s: float,
    traced: Trace,
    numbers: dict[str, int],
) -> Step:
    lists: dict[int, list[Item]] = {}
    times = _Times(traced.call_s)
    for n, call in enumerate(chain([first], rest), 1):
        rank = traced.ranks[call.rank]
        lists.setdefault(rank, []).append(item_of(_named(call, numbers)))
        if n % AT_ONCE == 0:
            lists = {rank: fold(items) for rank, items in lists.items()}
        times.add(call)
    folded = {rank: fold(lists[rank]) for rank in sorted(lists)}
    thinking_s = times.thinking_s
    computes: Body = (Compute(thinking_s),) if thinking_s else ()
    call_list = CallList([row for rows in _joined(folded) for row in rows])
    return Step(time_s=round(start_s, 6), body=(*computes, Calls(call_list)))


class _Times:
    """When the ranks made the calls of a step, and the time that they were in them."""

    def __init__(self, call_s: float) -> None:
        self._call_s = call_s
        self._spent: dict[int, float] = {}
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}

    def add(self, call: TracedCall) -> None:
        """Count a call."""
        self._spent[call.rank] = self._spent.get(call.rank, 0) + call.seconds + self._call_s
        self._first.setdefault(call.rank, call.begin_s)
        self._last[call.rank] = call.begin_s + call.seconds

    @property
    def thinking_s(self) -> float:
        """Seconds between the calls of a rank, on average, without what tracing takes for each."""
        idle = [max(0.0, self._last[r] - s - self._spent[r]) for r, s in self._first.items()]
        return round(sum(idle) / len(idle), 6)


def _named(call: TracedCall, numbers: dict[str, int]) -> Row:
    row = dict(call.row)
    if call.path is not None:
        row["path"] = numbers[call.path]
    if call.to is not None:
        row["to"] = numbers[call.to]
    return row


def _joined(folded: dict[int, list[Item]]) -> Iterator[list[Row]]:
    """Ranks one behind the other that do alike, with steps between names and places, make one
    list."""
    ranks = list(folded)
    k = 0
    while k < len(ranks):
        n = k + 1
        steps: list[int] | None = None
        while n < len(ranks) and ranks[n] == ranks[k] + n - k:
            increments = _steps_between(folded[ranks[k]], folded[ranks[n]], n - k)
            if increments is None or (steps is not None and increments != steps):
                break
            steps, n = increments, n + 1
        yield [_of_ranks(folded[ranks[k]], ranks[k], n - k, steps or [])]
        k = n


def _steps_between(first: list[Item], other: list[Item], ranks: int) -> list[int] | None:
    """Increments of names and places from rank to rank, for lists so many ranks apart."""
    if [i.shape for i in first] != [i.shape for i in other]:
        return None
    values = [v for i in first for v in i.values]
    others = [v for i in other for v in i.values]
    steps = []
    for a, b in zip(values, others, strict=True):
        step, rest = divmod(b[0] - a[0], ranks)
        if rest or a[1:] != b[1:]:
            return None
        steps.append(step)
    return steps


def _of_ranks(items: list[Item], first: int, count: int, steps: list[int]) -> Row:
    body = []
    at = iter(steps)
    for item in items:
        values = tuple(outer(v, next(at, 0)) for v in item.values)
        body.append(row_of(Item(item.shape, values, item.passes, item.body, item.depth)))
    return {"ranks": [first, count], "do": body}

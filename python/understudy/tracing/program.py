"""A workload of a trace: what each rank calls, in steps that keep the order between ranks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from understudy.errors import UnderstudyError
from understudy.semantics.program import (
    CALLERS,
    Body,
    Calls,
    Compute,
    FileSet,
    Step,
    Stream,
    calls_of_system,
)
from understudy.semantics.syscalls import CallList, Entry, Tree
from understudy.semantics.types import Provenance, Scaling, Source, identifier
from understudy.semantics.workload import Workload
from understudy.tracing.files import Made, Path
from understudy.tracing.folding import Item, fold, item_of, outer, row_of
from understudy.tracing.processes import Processes
from understudy.units import size

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracer:
    """What has written a trace: its name, its version, what it takes for each call, and what it
    does not tell."""

    name: str
    version: str = ""
    call_s: float = 0
    notes: tuple[str, ...] = ()


def workload_of(name: str, traced: Processes, tracer: Tracer, where: str) -> Workload:
    """The workload of the calls of a trace, which is read from `where`."""
    made = traced.made  # in the order in which they ended: by then they have had their effect
    if not made:
        raise UnderstudyError(
            f"{where}: no calls on files of the directories; expected some below the one in which "
            "the program was started, or below others: understudy describe --below DIRECTORY"
        )
    ranks = {rank: k for k, rank in enumerate(sorted({m.rank for m in made}))}
    numbers = _numbered(made, traced, ranks)
    begin = min(m.begin_s for m in made)
    steps = list(_steps(made))
    starts = accumulate((step[0].begin_s - begin for step in steps), max)
    pairs = zip(steps, starts, strict=True)
    tree = _tree(traced, numbers)
    stream = Stream(
        name=identifier(name),
        role="output",
        method="posix",
        set=FileSet(name=identifier(name), owner=CALLERS, groups=len(ranks), tree=tree),
        steps=tuple(_step(step, start_s, ranks, numbers, tracer) for step, start_s in pairs),
    )
    how = f"Calls of the system, as {tracer.name} saw them."
    notes = (*tracer.notes, *_notes(traced))
    return Workload(
        name=identifier(name),
        description="",
        ranks=len(ranks),
        streams=(stream,),
        source=Source(format=tracer.name, version=tracer.version, reader=tracer.name, notes=notes),
        provenance=(
            Provenance(path="/ranks", origin="read", how="Processes with a rank of MPI, or one."),
            Provenance(path="/runtime_s", origin="read", how="From the first call to the last."),
            Provenance(path="/streams", origin="read", how=how),
        ),
        runtime_s=round(max(m.begin_s + m.seconds for m in made) - begin, 6),
        scaling=Scaling(rule="none", from_ranks=len(ranks)),
    )


def _notes(traced: Processes) -> Iterator[str]:
    for what, count in traced.left_out.most_common():
        how = "Played" if " as " in what else "Not played"
        yield f"{how}: {what} ({count:,} times)."
    if traced.elsewhere:
        read_bytes = sum(traced.elsewhere.values())
        yield (
            f"Not played: calls on {len(traced.elsewhere):,} files of other directories "
            f"({size(read_bytes)} read); --below DIRECTORY takes those."
        )


def closing(workload: Workload) -> str:
    """What the replica makes, and what it leaves out."""
    (stream,) = workload.streams
    count = sum(n * calls.count for calls, n in calls_of_system(stream))
    files = stream.tree.files if stream.tree else 0
    ranks = f"{workload.ranks} rank{'s' * (workload.ranks != 1)}"
    names = f"{files:,} name{'s' * (files != 1)}"
    kept = f"The replica makes {count:,} calls of {ranks} on {names}, in their order."
    return " ".join((kept, *workload.source.notes))


# -- names ---------------------------------------------------------------------------------------


def _numbered(made: Sequence[Made], traced: Processes, ranks: dict[int, int]) -> dict[str, int]:
    """The entry of each name: those of several ranks first, then those of each rank in the order
    in which it uses them, so that ranks that do alike have them alike."""
    users: dict[str, set[int]] = {}
    for call in made:
        for name in (call.path, call.to):
            if name is not None:
                users.setdefault(name, set()).add(ranks[call.rank])
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


def _tree(traced: Processes, numbers: dict[str, int]) -> Tree:
    entries: list[Entry] = []
    for name in numbers:
        path = traced.paths[name]
        if name in traced.roots:
            entries.append(Entry(top=True))
            continue
        there, parent = bool(path.before), name.rpartition("/")[0] or "/"
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


def _steps(made: Sequence[Made]) -> Iterator[list[Made]]:
    """The calls, divided where one needs what another rank has done in the same step."""
    step: list[Made] = []
    changed: dict[Any, int] = {}  # the rank that has changed a name or a file
    used: dict[Any, set[int]] = {}
    for call in made:
        names = [n for n in (call.path, call.to) if n is not None]
        keys: list[Any] = [*names, *(id(f) for f in (call.file, call.source) if f is not None)]
        writes = call.row["call"] == "write"
        waits = any(
            changed.get(k, call.rank) != call.rank for k in keys if not writes or k in names
        )
        waits = waits or (
            call.changes
            and not writes
            and any(used.get(k, {call.rank}) != {call.rank} for k in keys)
        )
        if waits and step:
            yield step
            step, changed, used = [], {}, {}
        step.append(call)
        for key in keys:
            used.setdefault(key, set()).add(call.rank)
            if call.changes:
                changed[key] = call.rank
    yield step


def _step(
    step: Sequence[Made],
    start_s: float,
    ranks: dict[int, int],
    numbers: dict[str, int],
    tracer: Tracer,
) -> Step:
    lists: dict[int, list[Item]] = {}
    for call in step:
        lists.setdefault(ranks[call.rank], []).append(item_of(_named(call, numbers)))
    folded = {rank: fold(items) for rank, items in sorted(lists.items())}
    thinking_s = _thinking(step, tracer.call_s)
    computes: Body = (Compute(thinking_s),) if thinking_s else ()
    made = CallList([row for rows in _joined(folded) for row in rows])
    return Step(time_s=round(start_s, 6), body=(*computes, Calls(made)))


def _named(call: Made, numbers: dict[str, int]) -> Row:
    row = dict(call.row)
    if call.path is not None:
        row["path"] = numbers[call.path]
    if call.to is not None:
        row["to"] = numbers[call.to]
    return row


def _thinking(step: Sequence[Made], call_s: float) -> float:
    """Seconds between the calls of a rank, on average, without what the tracer takes for each."""
    spent: dict[int, float] = {}
    first: dict[int, float] = {}
    last: dict[int, float] = {}
    for call in step:
        spent[call.rank] = spent.get(call.rank, 0) + call.seconds + call_s
        first.setdefault(call.rank, call.begin_s)
        last[call.rank] = call.begin_s + call.seconds
    idle = [max(0.0, last[r] - first[r] - spent[r]) for r in first]
    return round(sum(idle) / len(idle), 6)


def _joined(folded: dict[int, list[Item]]) -> Iterator[list[Row]]:
    """Ranks one behind the other that do alike, with steps between names and places, make one
    list."""
    ranks = list(folded)
    k = 0
    while k < len(ranks):
        n = k + 1
        steps: list[int] | None = None
        while n < len(ranks) and ranks[n] == ranks[k] + n - k:
            found = _steps_between(folded[ranks[k]], folded[ranks[n]], n - k)
            if found is None or (steps is not None and found != steps):
                break
            steps, n = found, n + 1
        yield [_of_ranks(folded[ranks[k]], ranks[k], n - k, steps or [])]
        k = n


def _steps_between(one: list[Item], other: list[Item], ranks: int) -> list[int] | None:
    """What names and places grow by from rank to rank, of lists so many ranks apart."""
    if [i.shape for i in one] != [i.shape for i in other]:
        return None
    values = [v for i in one for v in i.values]
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

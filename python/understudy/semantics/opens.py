"""Which ranks open which files of a stream, how often, and what the player opens before it takes
time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from understudy.semantics.needs import borrows, contents
from understudy.semantics.operations import Made
from understudy.semantics.pieces import Segments, Whole
from understudy.semantics.program import (
    ALL_RANKS,
    EACH_GROUP,
    EACH_ROW,
    KEEP,
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
    Step,
    Sync,
    Thread,
    flat,
    instructions,
)
from understudy.semantics.sums import begins_content, variables_of
from understudy.semantics.times import open_spans, started
from understudy.semantics.types import Variable


@dataclass(frozen=True, slots=True)
class PerRank:
    """A number for each rank, in runs of ranks that have the same."""

    ranks: Whole
    each: Whole

    @property
    def total(self) -> int:
        """The sum over all ranks."""
        return int((self.ranks * self.each).sum())

    @property
    def ends(self) -> Whole:
        """The rank behind each run."""
        ends: Whole = np.cumsum(self.ranks)
        return ends

    def by_rank(self, ranks: int) -> Whole:
        """The number of each rank: [ranks]."""
        each: Whole = np.repeat(self.each, self.ranks)
        return each if len(each) else np.zeros(ranks, np.int64)

    def at(self, ranks: Whole) -> Whole:
        """The numbers of these ranks."""
        return self.each[np.searchsorted(self.ends, ranks, "right")]


def aligned(parts: Sequence[PerRank]) -> tuple[Whole, list[Whole]]:
    """Runs in which none of the numbers changes: their ranks, and the numbers."""
    ends = np.unique(np.concatenate([p.ends for p in parts]))
    starts = np.concatenate([[0], ends[:-1]])
    return ends - starts, [p.at(starts) for p in parts]


@lru_cache(maxsize=256)
def ranks_of_files(variables: tuple[Variable, ...], ranks: int) -> Mapping[int, PerRank]:
    """Which ranks have bytes in each file with such variables: 1, else 0."""
    files: dict[int, list[PerRank]] = {}
    for variable in variables:
        many, size = np.array(variable.rank_runs(ranks), np.int64).T
        files.setdefault(variable.file, []).append(PerRank(many, np.minimum(size, 1)))
    joined = {file: aligned(parts) for file, parts in files.items()}
    return {file: PerRank(many, np.max(each, axis=0)) for file, (many, each) in joined.items()}


def opened(variables: tuple[Variable, ...], ranks: int) -> PerRank:
    """How many files with these variables each rank opens."""
    masks = list(ranks_of_files(variables, ranks).values())
    if not masks:
        return PerRank(np.empty(0, np.int64), np.empty(0, np.int64))
    many, each = aligned(masks)
    return PerRank(many, np.sum(each, axis=0))


def files_of_steps(thread: Thread, ranks: int) -> Iterator[tuple[Step, Mapping[int, PerRank]]]:
    """The steps, each with the ranks of the files of its content."""
    steps = thread.steps
    begins = [i for i, step in enumerate(steps) if begins_content(step)]
    if (thread.set.names is not None and not borrows(thread)) or not begins:
        begins = [0]
    for begin, end in zip(begins, [*begins[1:], len(steps)], strict=True):
        bodies = dict.fromkeys(step.body for step in steps[begin:end])
        masks = ranks_of_files(tuple(dict.fromkeys(variables_of(iter(bodies)))), ranks)
        yield from ((step, masks) for step in steps[begin:end])


def files_of(thread: Thread, ranks: int) -> int:
    """The files of a stream's own set in all its contents that any rank has bytes in; those of a
    group are taken for used by it. Of the set of another stream, 0."""
    own = thread.set
    if own.name != thread.name:
        return 0
    found, sets = 0, own.names or contents(thread)
    last: list[tuple[Step, Mapping[int, PerRank]]] = []
    for step, masks in files_of_steps(thread, ranks):
        if own.owner == EACH_ROW:
            found += step.count * rows_of_body(step.body)
        elif begins_content(step) or not last:
            last.append((step, masks))
    for step, masks in last:
        times = min(sets, step.count if own.numbered else 1)
        if own.owner == ALL_RANKS:
            each = sum(bool(mask.total) for mask in masks.values())
        elif own.owner == EACH_GROUP:
            each = own.groups * len(masks)
        else:
            each = _total(masks)
        found += times * each
        sets -= times
    return found


def rows_of_body(body: Body, times: int = 1) -> int:
    """Files of a row each that a dump opens, once for each pass."""
    found = 0
    for instruction in body:
        if isinstance(instruction, Passes):
            found += rows_of_body(instruction.body, times * instruction.count)
        elif isinstance(instruction, Files):
            variables = variables_of(iter([instruction.body]))
            found += times * sum(v.shape[0] * v.count for v in variables)
    return found


def opens_of(thread: Thread, ranks: int, writer: Thread | None = None) -> int:
    """How often the ranks open files, operations included. Those of `writer`, whose files it
    reads, are not opened where they are open."""
    found = sum(
        step.count * i.count
        for step in thread.steps
        for i in flat(step.body)
        if isinstance(i, Operate) and i.kind in ("open", "create")
    )
    steps = tuple(files_of_steps(thread, ranks))
    if thread.closes:
        sets = min(contents(thread), thread.set.names or 1) if thread.set.numbered else 1
        return found + sets * _total(steps[0][1])
    spans = tuple(_spans(writer, ranks)) if writer and borrows(thread) else ()
    for step, masks in steps:
        if thread.set.owner == EACH_ROW:
            found += step.count * rows_of_body(step.body)
        elif any(isinstance(i, Open) for i in flat(step.body)):
            found += step.count * _total(masks)
            for begin, end, others in spans:
                if times := started(step, begin, end):
                    found -= times * _lent(masks, others, thread.set.groups)
    return found


def _spans(writer: Thread, ranks: int) -> Iterator[tuple[float, float, Mapping[int, PerRank]]]:
    """From when to when files are open, and for which ranks."""
    masks = {step.time_s: masks for step, masks in files_of_steps(writer, ranks)}
    for begin, end in open_spans(writer):
        yield begin, end, masks[begin]


def _lent(masks: Mapping[int, PerRank], others: Mapping[int, PerRank], groups: int) -> int:
    """Opens that a stream shares with another: of the files that as many ranks have open there."""
    found = 0
    for file in masks.keys() & others.keys():
        mine, its = masks[file], others[file]
        behind = -(-np.arange(1, groups + 1) * mine.ends[-1] // groups)  # each group
        ends = np.unique(np.concatenate([mine.ends, its.ends, behind]))
        starts = np.concatenate([[0], ends[:-1]])
        own, group = mine.at(starts) * (ends - starts), np.searchsorted(behind, starts, "right")
        more = np.zeros(groups, np.int64)
        np.add.at(more, group, own - its.at(starts) * (ends - starts))
        found += int(own[more[group] == 0].sum())
    return found


def _total(masks: Mapping[int, PerRank]) -> int:
    return sum(mask.total for mask in masks.values())


# -- before time is taken -------------------------------------------------------------------------


def prepared_opens(thread: Thread, ranks: int) -> tuple[int, int]:
    """How often the player opens files before it takes time: those that the stream reads, by the
    stream's method, and those that its operations need and do not create, by POSIX."""
    reads = 0
    if thread.set.prepared and not borrows(thread):
        reads = opens_of(preparing(thread), ranks)
    return reads, lacking_files(thread, ranks)


def lacking_files(thread: Thread, ranks: int) -> int:
    """Files that the operations of the ranks need and do not create."""
    numbers = [i.runs for i in instructions(thread) if isinstance(i, Operate)]
    if not numbers:
        return 0
    variables = [i.variable for i in instructions(thread) if isinstance(i, Move)]
    segments = Segments(ranks, ranks, variables, numbers)
    made = Made(np.zeros(len(segments.starts), np.int64))
    for step in thread.steps:
        made.go_on(segments, step)
    return int((made.lacking * segments.counts).sum())


def preparing(thread: Thread) -> Thread:
    """What makes the files that a stream reads: each once, flushed but for those of a row each."""
    names = thread.set.names if thread.set.numbered else None
    flood = thread.set.owner == EACH_ROW
    steps: list[Step] = []
    before: list[list[Variable]] = []
    for step in thread.steps:
        count = step.count if names is None else min(step.count, names)
        moved = variables_of(iter([step.body]))
        if names is not None:
            fresh = 0
            for _ in range(count):
                fresh += len(before) < names or (not flood and moved != before[-names])
                before.append(moved)
            count = fresh
        if count:
            steps.append(replace(step, count=count, body=tuple(_making(step.body, thread))))
    return replace(thread, steps=tuple(steps), closes=thread.closes and not thread.set.numbered)


def _making(body: Body, thread: Thread) -> Iterator[Instruction]:
    """The body with writes in place of reads, once."""
    inside = [i for i in body if isinstance(i, InTurn)]
    opens = Open(set=thread.set, mode=KEEP)
    given = next((i for i in flat(body) if isinstance(i, Open)), opens)
    moves = [replace(i, writes=True) for i in flat(body) if isinstance(i, Move)]
    yield from (i for i in body if isinstance(i, Begin))
    if not moves:
        return
    files: Body = (replace(given, mode=KEEP, last=False), *moves)
    if thread.set.owner == EACH_ROW:
        order = next(i.order for i in flat(body) if isinstance(i, Files))
        yield Files(order, (*files, Close()))
        return
    made: Body = (
        *files,
        Sync(),
        *((Close(),) if thread.set.numbered or not thread.closes else ()),
    )
    yield from (InTurn(made),) if inside else made

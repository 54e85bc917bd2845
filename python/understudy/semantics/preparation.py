"""What the player does before it takes time: it makes the files that streams read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from understudy.semantics.program import (
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
    Step,
    Stream,
    Sync,
    flat,
    variables_of,
)
from understudy.semantics.types import Variable


def preparing(thread: Stream) -> Stream:
    """What makes the files that a stream reads: each once, flushed but for those of a row each."""
    names = thread.set.names if thread.set.numbered else None
    steps: list[Step] = []
    done = dumps = 0
    before: dict[int, list[Variable]] = {}
    for step in thread.steps:
        moved = variables_of([step.body])
        if names is None:
            steps.append(replace(step, body=tuple(_making(step.body, thread, 1))))
            continue
        for k in range(min(step.count, names)):  # those behind them find what these have made
            last = before.get((dumps + k) % names)
            before[(dumps + k) % names] = moved
            if last is None or (thread.set.owner != EACH_ROW and moved != last):
                body = tuple(_making(step.body, thread, dumps + k + 1 - done))
                steps.append(replace(step, count=1, time_s=step.start_s(k), body=body))
                done = dumps + k + 1
        dumps += step.count
    return replace(thread, steps=tuple(_joined(steps)), closes=thread.closes and names is None)


def _joined(steps: Sequence[Step]) -> Iterator[Step]:
    """Dumps in a row that make the same."""
    for _, same in groupby(steps, lambda s: s.body):
        each = list(same)
        *_, first = [i for i in each[0].body if isinstance(i, Begin)] or [Begin()]
        if first.contents > 1:
            yield from each
        else:
            yield replace(each[0], count=sum(s.count for s in each))


def _making(body: Body, thread: Stream, contents: int) -> Iterator[Instruction]:
    """The body with writes in place of reads, once."""
    inside = [i for i in body if isinstance(i, InTurn)]
    opens = Open(mode=KEEP)
    given = next((i for i in flat(body) if isinstance(i, Open)), opens)
    moves = [replace(i, writes=True) for i in flat(body) if isinstance(i, Move)]
    yield from (Begin(contents) for i in body if isinstance(i, Begin))
    if not moves:  # files that stay open are opened for each dump by itself
        yield from (
            (replace(given, mode=KEEP), Close()) if thread.closes and thread.set.numbered else ()
        )
        return
    files: Body = (replace(given, mode=KEEP), *moves)
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

"""Steps of the player before it takes time: it makes the files that streams read."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest

from understudy.program.instructions import (
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
    Passes,
    Step,
    Stream,
    Sync,
    variables_of,
)
from understudy.program.types import Variable


def preparing(stream: Stream) -> Stream:
    """Stream that makes the files that a stream reads: each once, flushed unless of a row each."""
    names = stream.set.names if stream.set.numbered else None
    steps: list[Step] = []
    done = dumps = 0
    before: dict[int, list[Variable]] = {}
    for step in stream.steps:
        moved = variables_of([step.body])
        if names is None:
            steps.append(replace(step, body=tuple(_making(step.body, stream, 1))))
            continue
        for k in range(min(step.count, names)):  # those behind them find what these have made
            last = before.get((dumps + k) % names)
            before[(dumps + k) % names] = moved
            if last is None or (stream.set.owner != EACH_ROW and moved != last):
                body = tuple(_making(step.body, stream, dumps + k + 1 - done))
                steps.append(replace(step, count=1, time_s=step.start_s(k), body=body))
                done = dumps + k + 1
        dumps += step.count
    return replace(stream, steps=tuple(_joined(steps)), closes=stream.closes and names is None)


def _joined(steps: Sequence[Step]) -> Iterator[Step]:
    """Dumps in a row that make the same."""
    for _, same in groupby(steps, lambda s: s.body):
        each = list(same)
        *_, first = [i for i in each[0].body if isinstance(i, Begin)] or [Begin()]
        if first.contents > 1:
            yield from each
        else:
            yield replace(each[0], count=sum(s.count for s in each))


def _making(body: Body, stream: Stream, contents: int) -> Iterator[Instruction]:
    """The body with writes in place of reads, once, and nothing else; files are flushed behind
    them, but those of a row each."""
    rows = stream.set.owner == EACH_ROW
    yield from _written(body, contents, flushes=not rows)
    if stream.closes and stream.set.numbered:  # opened for each dump by itself
        yield Close()


def _written(body: Body, contents: int, flushes: bool) -> Iterator[Instruction]:
    for instruction, behind in zip_longest(body, body[1:]):
        match instruction:
            case Begin():
                yield Begin(contents)
            case Open():
                yield replace(instruction, mode=KEEP)
            case Move():
                yield replace(instruction, writes=True)
                if flushes and not isinstance(behind, Move):
                    yield Sync()
            case Close():
                yield instruction
            case Passes():
                yield from _written(instruction.body, contents, flushes)
            case InTurn() | Files():
                inside = tuple(_written(instruction.body, contents, flushes))
                yield replace(instruction, body=inside)

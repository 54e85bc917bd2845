"""Dumps of equal bodies as one step, for sums over the calls of a program.

A dump of new files that it opens and closes does not depend on those before it, so sums over all
dumps are the same in any order and at any times.
"""

from collections import Counter
from dataclasses import replace

from understudy.program.instructions import (
    CALLERS,
    EACH_ROW,
    Begin,
    Body,
    Close,
    Compute,
    InTurn,
    Move,
    Open,
    Passes,
    Program,
    Skew,
    Spread,
    Stream,
    Sync,
    WaitAll,
    flat,
)

_ALONE = (Begin, Close, Compute, InTurn, Move, Open, Passes, Skew, Spread, Sync, WaitAll)


def together(stream: Stream) -> Stream:
    """The stream with one step for all dumps of a body, if none depends on another; its times are
    those of the first. No other stream may use its files."""
    owner = stream.set.owner
    new = stream.set.numbered and stream.set.names is None and stream.base is None
    if not new or stream.closes or owner in (CALLERS, EACH_ROW):
        return stream
    counts: Counter[int] = Counter()
    for step in stream.steps:
        counts[id(step.body)] += step.count
    if len(counts) == len(stream.steps) or not all(map(_stands_alone, stream.bodies)):
        return stream
    first = {id(step.body): step for step in reversed(stream.steps)}
    steps = (replace(first[id(b)], count=counts[id(b)], period_s=0) for b in stream.bodies)
    return replace(stream, steps=tuple(steps))


def with_equal_dumps_together(program: Program) -> Program:
    """The program with `together` of each stream that is alone with its files."""
    uses = Counter(stream.set for stream in program.streams)
    streams = (together(s) if uses[s.set] == 1 else s for s in program.streams)
    return replace(program, streams=tuple(streams))


def _stands_alone(body: Body) -> bool:
    """True if a dump begins a content and closes what it opens."""
    is_open = False
    for k, instruction in enumerate(flat(body)):
        if not isinstance(instruction, _ALONE) or (k == 0) != isinstance(instruction, Begin):
            return False
        is_open = (is_open or isinstance(instruction, Open)) and not isinstance(instruction, Close)
    return not is_open and bool(body) and body[0] == Begin()

"""Calls of a rank whose times overlap in a trace: threads, or asynchronous calls, make them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from understudy.inference.steps.passes import Segments
from understudy.inference.streams.stream_grouping import Draft
from understudy.program.instructions import Instruction, Move, Stream

MAX_DEPTH = 4096  # that a call may state
MAX_FILES = 8  # of a dump whose traces are looked at
CLOCK_S = 1e-6  # two calls that overlap by less may not
HOW = "calls of a rank that overlap in the DXT segments, on average"


def depths(begin_s: Any, end_s: Any, parts: Any, resolution_s: float) -> Any:
    """How many calls of a rank are in flight (i8 [n]): `averages`, rounded."""
    held = averages(begin_s, end_s, parts, resolution_s)
    return np.clip(np.rint(held), 1, MAX_DEPTH).astype(np.int64)


def averages(begin_s: Any, end_s: Any, parts: Any, resolution_s: float) -> Any:
    """How many calls of a rank are in flight (f8 [n]), for their times (f8 [n] each) and the part
    of the list that each is in (i8 [n], ascending): the average over the time that the calls of
    the part cover. What overlaps by less than the resolution of the clock does not."""
    if not len(begin_s):
        return np.zeros(0)
    order = np.lexsort([begin_s, parts])
    begins, of = begin_s[order], parts[order]
    ends = np.maximum(end_s - resolution_s, begin_s)[order]
    first = np.flatnonzero(np.append(True, of[1:] != of[:-1]))
    which = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(of))))
    far = ends.max() - begins.min() + 1  # parts are apart by it, so that no end reaches another
    reached = np.maximum.accumulate(ends + far * which) - far * which
    before = np.append(-np.inf, reached[:-1])
    before[first] = -np.inf
    covered = np.add.reduceat(np.maximum(ends - np.maximum(begins, before), 0), first)
    spent = np.add.reduceat(ends - begins, first)
    held = np.divide(spent, covered, out=np.ones(len(first)), where=covered > 0)
    in_flight = np.ones(len(order))
    in_flight[order] = held[which]
    return in_flight


def maximum(begin_s: Any, end_s: Any, resolution_s: float) -> int:
    """How many calls are in flight at once at most, with the clock of `averages`."""
    times = np.concatenate([np.maximum(end_s - resolution_s, begin_s), begin_s])
    steps = np.repeat([-1, 1], len(begin_s))
    return int(np.cumsum(steps[np.lexsort([steps, times])]).max(initial=0))


def learn(draft: Draft, trace: Callable[[int, str, bool], Segments | None]) -> None:
    """Note how many calls each rank has in flight, by traces of files of the largest dump: as
    many as the rank and file with the fewest."""
    if draft.method != "posix" or draft.lookups or draft.scratch_dumps:
        return
    main = max(draft.series, key=lambda s: s.bytes)
    dump = max(main.dumps, key=lambda d: d.bytes)
    cells = sorted(dump.cells.values(), key=lambda c: -int(c.order[0]))
    fewest: list[int] = []
    for cell in cells[:MAX_FILES]:
        segments = trace(cell.file, "posix", draft.write)
        if segments is None:
            return
        for rank in np.unique(segments.rank):
            of = np.flatnonzero((segments.rank == rank) & (segments.bytes > 0))
            times = segments.start_s[of], segments.end_s[of]
            fewest += depths(*times, np.zeros(len(of), np.int64), CLOCK_S)[:1].tolist()
        if 1 in fewest:
            return
    draft.depth = min(fewest, default=1)


def deep(stream: Stream, depth: int) -> Stream:
    """The stream with moves that have so many calls in flight, where they can."""

    def change(instruction: Instruction) -> Instruction:
        if not isinstance(instruction, Move) or instruction.collective or instruction.lookups:
            return instruction
        return replace(instruction, depth=depth)

    return replace(stream, steps=tuple(step.mapped(change) for step in stream.steps))


def note(name: str, depth: int) -> str:
    """How to play the stream so."""
    return (
        f"{name}: {depth:,} calls of a rank are in flight at a time, as threads or asynchronous "
        "calls make them: the replica has as many by the method uring (--method uring)."
    )

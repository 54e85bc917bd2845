"""When a stream has its files open."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

from understudy.program.instructions import Close, Open, Step, Stream, flat


def open_at(stream: Stream, times: Sequence[float]) -> list[bool]:
    """For each time, True if the files of the current content are open, behind dumps of the same
    time."""
    spans = tuple(open_spans(stream))
    behind = [bisect_right(spans, time, key=lambda span: span[0]) for time in times]
    return [k > 0 and time < spans[k - 1][1] for k, time in zip(behind, times, strict=True)]


def ever_open(stream: Stream) -> bool:
    """True if its files are open between dumps."""
    return stream.closes or any(map(leaves_open, stream.steps))


def leaves_open(step: Step) -> bool:
    """True if a dump opens files and does not close them."""
    kinds = [type(i) for i in flat(step.body)]
    return Open in kinds and Close not in kinds


def open_spans(stream: Stream) -> Iterator[tuple[float, float]]:
    """From when to when its files are open behind a dump, for those that read them then."""
    steps = stream.steps
    if stream.closes:
        left = sum(step.count for step in steps) - (stream.set.names or 1)
        lent = stream.set.names == 1 and stream.set.numbered
        at = math.inf if lent else steps[0].time_s
        for step in steps:
            if not lent and 0 <= left < step.count:
                at = step.start_s(left)
            left -= step.count
        yield steps[0].time_s, at
        return
    begin: float | None = None
    for step in steps:
        if leaves_open(step):
            begin = step.time_s
        elif begin is not None and any(isinstance(i, Close) for i in flat(step.body)):
            yield begin, step.time_s
            begin = None


def started(step: Step, begin: float, end: float) -> int:
    """Its dumps from one time on and before another."""
    first, last = (bisect_left(range(step.count), t, key=step.start_s) for t in (begin, end))
    return last - first

"""When a stream has its files open."""

import math
from bisect import bisect_left
from collections.abc import Iterator

from understudy.semantics.program import Close, Open, Step, Thread, flat


def open_spans(thread: Thread) -> Iterator[tuple[float, float]]:
    """From when to when its files are open behind a dump, for those that read them then."""
    steps = thread.steps
    if thread.closes:
        left = sum(step.count for step in steps) - (thread.set.names or 1)
        lent = thread.set.names == 1 and thread.set.numbered
        at = math.inf if lent else steps[0].time_s
        for step in steps:
            if not lent and 0 <= left < step.count:
                at = step.start_s(left)
            left -= step.count
        yield steps[0].time_s, at
        return
    begin: float | None = None
    for step in steps:
        kinds = [type(i) for i in flat(step.body)]
        if Close in kinds and begin is not None:
            yield begin, step.time_s
            begin = None
        elif Open in kinds and Close not in kinds:
            begin = step.time_s


def started(step: Step, begin: float, end: float) -> int:
    """Its dumps from one time on and before another."""
    first, last = (bisect_left(range(step.count), t, key=step.start_s) for t in (begin, end))
    return last - first

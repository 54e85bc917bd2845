"""Flushes of ranks, each time that they have written so many bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from understudy.program.block_calls import Calls, Cut, Mask, Sizes, Whole
from understudy.program.instructions import Move


@dataclass(slots=True)
class Written:
    """A move between whose calls there are others: how often each rank makes them, and whose
    descriptors Darshan knows."""

    move: Move
    times: Whole
    calls: Calls
    recorded: Mask


def flushes_of(
    state: int, written: Sequence[Written], s: int, dumps: int, every: int, carry: bool = False
) -> tuple[int, int]:
    """Flushes of a rank of segment `s`, one behind the transfer with which it has written `every`
    bytes since the last one, `state` of them before; and the bytes behind the last one. `carry`:
    bytes beyond a multiple of them count for the next one."""

    def sizes(state: int, each: Sizes) -> tuple[int, int]:
        flushes = 0
        for size, calls in each:
            if carry:
                flushes += calls if size >= every else (state + calls * size) // every
                state = (state + calls * size) % every
                continue
            first = -(-(every - state) // size)
            if calls < first:
                state += calls * size
                continue
            per = -(-every // size)
            flushes += 1 + (calls - first) // per
            state = (calls - first) % per * size
        return flushes, state

    def variable(state: int, cut: Cut) -> tuple[int, int]:
        flushes = 0
        for times, each in cut.rounds:
            more, state = repeated(state, times, partial(sizes, each=each))
            flushes += more
        return flushes, state

    def dump(state: int) -> tuple[int, int]:
        flushes = 0
        for each in written:
            cut = each.calls.cut(s)
            if cut is not None:
                more, state = repeated(state, int(each.times[s]), partial(variable, cut=cut))
                flushes += more
        return flushes, state

    return repeated(state, dumps, dump)


def repeated(state: int, times: int, each: Callable[[int], tuple[int, int]]) -> tuple[int, int]:
    """The sum of what `each` gives from one state to the next, and the last state; where the
    states recur, the sum of a cycle is multiplied."""
    seen: dict[int, tuple[int, int]] = {}
    total_, k = 0, 0
    while k < times:
        if state in seen:
            before, at = seen[state]
            cycles = (times - k) // (k - at)
            if cycles:
                total_ += cycles * (total_ - before)
                k += cycles * (k - at)
                seen = {}
                continue
        seen.setdefault(state, (total_, k))
        more, state = each(state)
        total_, k = total_ + more, k + 1
    return total_, state

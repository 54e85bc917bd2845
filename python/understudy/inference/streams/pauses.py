"""Where one time step ends and the next begins, from the pauses between accesses.

Pauses within a time step (between two calls) and between time steps (while the application
computes) differ by their kind, not by their share of the run: in the sorted pauses there is a
break, which a time step every second shows as well as one every hour.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels

PAUSE_S = levels.PAUSE_S  # a shorter pause is none
# For which a process may wait for its turn on a core, whatever the application does.
TURN_S = levels.TURN_S
# Ratio of neighbours in the sorted pauses from which on they are of two kinds.
BREAK = levels.BREAK
MAX_RIVALS = 5
MOST = levels.HALF  # share of all rest that lies between time steps
# Share of the largest break's logarithm from which on another break is plausible.
RIVAL = 1 - levels.QUARTER

Times = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """The accesses that begin a time step, without the first; empty if there is only one.

    `others` are the numbers of time steps that the pauses would give as well, `clear` says that
    pauses of two kinds were found.
    """

    at: tuple[int, ...] = ()
    others: tuple[int, ...] = ()
    clear: bool = False

    @property
    def steps(self) -> int:
        return len(self.at) + 1


def pauses_of(start_s: Times, end_s: Times) -> Times:
    """Seconds without an access before each access but the first; they are in order of start."""
    pauses: Times = start_s[1:] - np.maximum.accumulate(end_s)[:-1]
    return pauses


def cut(
    pauses: Times,
    sizes: npt.NDArray[np.int64],
    *,
    call_s: float,
    few_s: float,
    least_s: float = PAUSE_S,
) -> Cuts:
    """Time steps by the largest break in the sorted pauses, in seconds.

    `sizes` are the bytes of the accesses, one more than there are pauses: of several plausible
    breaks the one counts whose time steps are most alike. `call_s` is how long an access takes:
    where all pauses are alike and longer than that, each access is a time step. Without a break,
    pauses longer than `few_s` and TURN_S divide. Pauses of at most `least_s` are none.
    """
    order = np.argsort(pauses, kind="stable")[::-1]
    longest = np.maximum(pauses[order], least_s)
    count = int((longest > least_s).sum())
    if not count:
        return Cuts()
    below = np.append(longest[1:], least_s)[:count]
    if count == len(pauses):  # there is no shorter kind of pause than the last
        below[-1] = max(least_s, min(call_s, longest[-1]))
    breaks = np.log(longest[:count] / below)
    alone = breaks[-1] if count == len(pauses) else 0.0  # each access is a time step
    rest = np.cumsum(np.where(longest > least_s, longest, 0.0))
    breaks[rest[:count] < MOST * rest[-1]] = 0.0  # a long pause or two tell nothing
    within = float(breaks[: len(pauses) - 1].max(initial=0.0))
    if max(alone, within) < np.log(BREAK):
        return Cuts(at=_sorted(np.flatnonzero(pauses > max(few_s, TURN_S))))
    plausible = breaks >= max(np.log(BREAK), RIVAL * within)
    if count == len(pauses):
        plausible[-1] = alone >= max(np.log(BREAK), within)
    candidates = np.flatnonzero(plausible)
    rivals = sorted(
        candidates[np.argsort(-breaks[candidates], kind="stable")][:MAX_RIVALS].tolist()
    )
    best = min(rivals, key=lambda n: round(_unlike(sizes, _sorted(order[: n + 1])), 1))
    return Cuts(
        at=_sorted(order[: best + 1]),
        others=tuple(n + 2 for n in rivals if n != best),
        clear=True,
    )


def cut_into(pauses: Times, steps: int) -> Cuts:
    """So many time steps, at the longest pauses; clear if the next pause is of another kind."""
    if not 2 <= steps <= len(pauses) + 1:
        return Cuts()
    order = np.argsort(pauses, kind="stable")[::-1]
    longest = np.append(np.maximum(pauses[order], PAUSE_S), PAUSE_S)
    clear = bool(longest[steps - 2] >= BREAK * longest[steps - 1])
    return Cuts(at=_sorted(order[: steps - 1]), clear=clear)


def cut_flushed(pauses: Times, flushes: int) -> Cuts:
    """Time steps that each end with a flush, or one more, which ends with the close."""
    fewer, more = cut_into(pauses, flushes), cut_into(pauses, flushes + 1)
    return more if more.clear and not fewer.clear else fewer


def rounds_of(ranks: Sequence[Set[int]]) -> list[slice]:
    """Bursts that make one time step, from the ranks that take part in each: a time step goes on
    until a rank of it moves bytes again. Ranks that begin later than others begin none."""
    edges, busy = [0], set[int]()
    for k, some in enumerate(ranks):
        if busy & some:
            edges.append(k)
            busy = set()
        busy |= some
    return [slice(a, b) for a, b in pairwise([*edges, len(ranks)])]


def _unlike(sizes: npt.NDArray[np.int64], at: Sequence[int]) -> float:
    """How much the bytes of time steps differ: their standard deviation over their mean."""
    steps = np.add.reduceat(sizes, [0, *at])
    return float(steps.std() / max(1.0, steps.mean()))


def _sorted(places: npt.NDArray[np.intp]) -> tuple[int, ...]:
    return tuple((np.sort(places) + 1).tolist())

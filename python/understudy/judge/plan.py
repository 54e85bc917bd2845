"""How many sessions and repetitions a comparison needs to find a loss, from history or a pilot."""

import math
from dataclasses import dataclass

import numpy as np

from understudy.judge import change
from understudy.judge.change import Floats, Nights, Rule

POWER = 0.95
SIMULATIONS = 400
MOST_SESSIONS = 40
ENOUGH_SESSIONS = 20  # more take too long: a larger workload is proposed
FEW = 5  # sessions of a pilot; of fewer, the distribution is taken for a normal one
MOST_REPETITIONS = 25
MEDIAN_VARIANCE = math.pi / 2  # of the median of n normal values, in units of variance / n
SEED = 2015


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """For one figure of a case: `sessions`, nights on each side, or `in_turn`, nights in which
    both sides run in turn; None where MOST_SESSIONS do not suffice.

    `scale`: how many times larger the workload has to be for ENOUGH_SESSIONS in turn; None where
    more bytes do not help, as the scatter is that between nights.
    """

    known_sessions: int
    repetitions: int
    sessions: int | None
    in_turn: int | None
    within: float | None  # None of sessions of one repetition
    between: float
    scale: int | None = None


def need(sessions: Nights, detect: float, cases: int, repetitions: int = 0) -> Need | None:
    """What finds a loss of the fraction `detect` with the probability POWER among so many cases;
    None of fewer than two nights, which tell no scatter between them. In turn, the sides of a
    night are taken to differ as much as nights do, which is the worst case."""
    if len(sessions) < 2:
        return None
    logs = [np.log(np.asarray(s, np.float64)) for s in sessions]
    medians = np.array([np.median(s) for s in logs])
    now = float(np.median([len(s) for s in logs]))
    inside = [float(np.var(s, ddof=1)) for s in logs if len(s) > 1]
    within = float(np.mean(inside)) if inside else 0.0
    seen = float(np.var(medians, ddof=1)) * _caution(len(medians))
    between = max(0.0, seen - MEDIAN_VARIANCE * within / now)
    wanted = repetitions or _repetitions(within, between, int(now))
    rule = Rule(limit=detect, effect=detect / 2)
    shape = _shape(medians)

    def enough(variance: float, in_turn: bool) -> int | None:
        return _nights(shape, math.sqrt(variance), detect, cases, rule, in_turn)

    noise = between + MEDIAN_VARIANCE * within / wanted
    found, turns = enough(noise, False), enough(noise, True)
    scale = None
    if turns is None or turns > ENOUGH_SESSIONS:
        for power in range(1, 11):  # noise of a run, not of its session, falls with its length
            more = enough(between + MEDIAN_VARIANCE * within / wanted / 2**power, True)
            if more is not None and more <= ENOUGH_SESSIONS:
                scale = 2**power
                break
    return Need(
        known_sessions=len(sessions),
        repetitions=wanted,
        sessions=found,
        in_turn=turns,
        within=math.sqrt(within) if inside else None,
        between=math.sqrt(between),
        scale=scale,
    )


def _caution(sessions: int) -> float:
    """By how much the scatter of these sessions may be too small, in variance: its upper limit of
    80 %. Half of all pilots see less than there is."""
    from scipy import special

    freedom = sessions - 1
    return float(freedom / special.chdtri(freedom, 0.8))


def _repetitions(within: float, between: float, now: int) -> int:
    """As many as make the noise of repetitions less than half of that of sessions."""
    if within == 0:
        return max(1, now)
    if between == 0:
        return min(MOST_REPETITIONS, max(now, 5))
    return int(min(MOST_REPETITIONS, max(1, math.ceil(2 * MEDIAN_VARIANCE * within / between))))


def _shape(medians: Floats) -> Floats | None:
    """Deviations of sessions in units of their own scatter; None of too few to tell a shape."""
    spread = float(np.std(medians))
    if len(medians) <= FEW or spread == 0:
        return None
    return np.asarray((medians - medians.mean()) / spread)


def _nights(
    shape: Floats | None, spread: float, detect: float, cases: int, rule: Rule, in_turn: bool
) -> int | None:
    low, high = change.nights_needed(cases, in_turn, rule), MOST_SESSIONS + 1
    while low < high:
        middle = (low + high) // 2
        if _power(shape, spread, middle, detect, cases, rule, in_turn) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low if low <= MOST_SESSIONS else None


def _power(
    shape: Floats | None,
    spread: float,
    n: int,
    detect: float,
    cases: int,
    rule: Rule,
    in_turn: bool,
) -> float:
    """How often the loss is found, with the rules of the comparison itself."""
    dice = np.random.default_rng(SEED)
    size = (SIMULATIONS, 2 * n)
    if shape is None:
        values = dice.normal(0, spread, size)
    else:
        values = spread * (dice.choice(shape, size) + dice.normal(0, 0.1, size))
    before, after = values[:, :n], values[:, n:] + math.log1p(-detect)
    if in_turn:
        found, rank = change.paired(after - before), change.signed_rank_p(after - before)
        ratio = np.median(after - before, axis=1)
    else:
        found, rank = change.apart(before, after), change.rank_p(before, after)
        ratio = np.median(after, axis=1) - np.median(before, axis=1)
    p = np.maximum(rank, change.student_p(*found))
    lost = (p * cases <= rule.alpha) & (ratio <= math.log1p(-rule.effect)) & (found[0] < 0)
    return float(lost.mean())

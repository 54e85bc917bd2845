"""How many sessions and repetitions a comparison needs to find a loss, from history or a pilot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.judge import change, dependence
from understudy.judge.change import Floats, Rule, Sessions

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
    """For one figure of a case; `sessions` on each side, None where MOST_SESSIONS do not suffice.

    `scale`: how many times larger the workload has to be for ENOUGH_SESSIONS; None where more
    bytes do not help, as the scatter is that between sessions.
    """

    known_sessions: int
    repetitions: int
    sessions: int | None
    within: float | None  # None of sessions of one repetition
    between: float
    scale: int | None = None


def need(
    sessions: Sessions, detect: float, cases: int, repetitions: int = 0, factor: float = 1.0
) -> Need | None:
    """What finds a loss of the fraction `detect` with the probability POWER among so many cases;
    None of fewer than two sessions, which tell no scatter between sessions. `factor` is that of
    `judge.dependence` for all cases."""
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

    def enough(variance: float) -> int | None:
        return _sessions(shape, math.sqrt(variance), detect, cases, rule, factor)

    found = enough(between + MEDIAN_VARIANCE * within / wanted)
    scale = None
    if found is None or found > ENOUGH_SESSIONS:
        for power in range(1, 11):  # noise of a run, not of its session, falls with its length
            more = enough(between + MEDIAN_VARIANCE * within / wanted / 2**power)
            if more is not None and more <= ENOUGH_SESSIONS:
                scale = 2**power
                break
    return Need(
        known_sessions=len(sessions), repetitions=wanted, sessions=found,
        within=math.sqrt(within) if inside else None, between=math.sqrt(between), scale=scale,
    )  # fmt: skip


def factor(every: Sequence[Sessions]) -> float:
    """That of `judge.dependence` for the sessions of all figures, each by time."""
    medians = [np.log([np.median(values) for values in sessions]) for sessions in every]
    found = [dependence.lags([one]).tolist() if len(one) else [] for one in medians]
    counts = [len(one) for one in medians]
    return float(
        dependence.factor(dependence.pooled(found, counts), max(counts, default=1), sides=1)
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


def _sessions(
    shape: Floats | None, spread: float, detect: float, cases: int, rule: Rule, factor: float
) -> int | None:
    least = change.sessions_needed(cases, rule.alpha)
    low, high = least, MOST_SESSIONS + 1
    while low < high:
        middle = (low + high) // 2
        if _power(shape, spread, middle, detect, cases, rule, factor) >= POWER:
            high = middle
        else:
            low = middle + 1
    return low if low <= MOST_SESSIONS else None


def _power(
    shape: Floats | None, spread: float, n: int, detect: float, cases: int, rule: Rule,
    factor: float = 1.0,
) -> float:  # fmt: skip
    """How often the loss is found, with the rules of the comparison itself."""
    from scipy import stats

    dice = np.random.default_rng(SEED)
    size = (SIMULATIONS, 2 * n)
    if shape is None:
        values = dice.normal(0, spread, size)
    else:
        values = spread * (dice.choice(shape, size) + dice.normal(0, 0.1, size))
    before, after = values[:, :n], values[:, n:] + math.log1p(-detect)
    p = stats.mannwhitneyu(before, after, axis=1, method="exact").pvalue
    sides = (before, after)
    lags = dependence.lags(sides)
    whole = np.stack([np.roll(lags, i, axis=0) for i in range(min(cases, SIMULATIONS))]).mean(0)
    factors = np.maximum(factor, dependence.factor(whole, 2 * n))
    wider = dependence.step_p(dependence.step(sides), factors, 2 * n)
    p = np.where(factors > 1, np.maximum(p, wider), p)
    ratio = np.median(after, axis=1) - np.median(before, axis=1)
    found = (p * cases <= rule.alpha) & (ratio <= math.log1p(-rule.effect))
    rows: Sequence[int] = np.flatnonzero(found).tolist()
    lines = [change.line(before[i], after[i]) for i in rows]
    drifts = sum(one.slope_p < change.DRIFT_LEVEL <= one.step_p for one in lines if one)
    return float(found.sum() - drifts) / SIMULATIONS

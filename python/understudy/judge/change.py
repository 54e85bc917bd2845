"""Whether something changed between sessions: the statistics of compare, plan, trend and accept.

Values are made such that a ratio below 1 is worse. What counts is how far *sessions* differ: the
repetitions of one session share its node, its neighbours and its hour, so that they say little of
the next session. docs/statistics.md explains each rule, and what the rules cannot do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.judge import dependence
from understudy.judge.limits import LIMIT_FRACTION

WORSE, BETTER, NO_CHANGE, UNDECIDED = "worse", "better", "no change", "undecided"
ALPHA = 0.01  # probability of a false alarm in a whole comparison, all cases together
CONFIDENCE = 0.95
RESAMPLES = 2000
SEED = 2015
FEW = 4  # sessions of a side; with so few, the interval is that of the smaller side alone
FEW_KNOWN = 3  # sessions from which the scatter is taken where a side has one
DRIFT_LEVEL = 0.05
ALL_DRIFT = 0.01
# Sessions of A/A history with which one session, two or more sessions can decide if all of them
# lie FAR times as far off as any of the history: a bad night that comes with the probability r is
# taken for a change with r^n (1 - r)^h at most, which these numbers keep below 1 %.
FAR = 3.0
FAR_HISTORY = {1: 37, 2: 8, 3: 6}

Floats = NDArray[np.float64]
Sessions = Sequence[Sequence[float]]  # values above 0 of each session, by time


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`limit`: a loss that matters, as a fraction; `effect`: the smallest change that is told."""

    limit: float = LIMIT_FRACTION
    effect: float = LIMIT_FRACTION / 2
    alpha: float = ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line over all sessions beside the step between the sides.

    The one-sided p of its slope and of the step that it leaves, both in the direction of the
    step, and the signed slope as a z value.
    """

    slope_p: float
    step_p: float
    slope_z: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The ratio of medians (see `level`), after over before, and how sure it is.

    `low` to `high` is the interval of 95 %. `p` is that of the rank test. `within` and `between`
    are the scatters (standard deviations of logarithms) within and between sessions, None where
    there are too few. `floor` is how far the sessions of one side, or of the history, lie apart at
    most: what a ratio can be without any change. `far`: every session after lies FAR times as far
    off as any before. `line`: what a trend over time leaves of the change. `lags` and `step` are
    those of `judge.dependence`, `factor` that of all figures, which `adjusted` sets.
    """

    ratio: float
    low: float
    high: float
    p: float
    before: int
    after: int
    history: int = 0
    within: float | None = None
    between: float | None = None
    floor: float | None = None
    far: bool = False
    line: Line | None = None
    lags: tuple[float, ...] = ()
    step: float = 0.0
    factor: float = 1.0

    @property
    def sessions(self) -> int:
        return self.before + self.after + self.history

    @property
    def drift(self) -> bool:
        """Whether a line explains the step: it goes the same way, and little is left of it."""
        if self.line is None:
            return False
        return self.line.slope_p < DRIFT_LEVEL <= self.line.step_p


def measure(
    before: Sessions, after: Sessions, history: Sessions = (), resamples: int = RESAMPLES
) -> Change:
    """The change between two sets of sessions; `history` are further sessions of the condition of
    `before`. With those before, they tell the scatter between sessions where a side has one."""
    sides = [[np.log(np.asarray(s, np.float64)) for s in side] for side in (before, after)]
    past = [float(np.median(np.log(np.asarray(s, np.float64)))) for s in history]
    b, a = (np.array([np.median(s) for s in side]) for side in sides)
    ratio = float(np.median(a) - np.median(b))
    known = np.array([*past, *b])  # one condition: A/A
    low, high = _interval(sides, ratio, known, resamples)
    series = [known, a] if len(a) else [known]
    far_needed = FAR_HISTORY[min(len(a), max(FAR_HISTORY))]
    spread = np.abs(known - np.median(known)).max() if len(known) > 1 else math.inf
    away = a - np.median(known)
    return Change(
        ratio=math.exp(ratio), low=math.exp(low), high=math.exp(high), p=rank_p(b, a),
        before=len(b), after=len(a), history=len(past),
        within=_within(sides), between=_between(b, a, known),
        floor=math.exp(-float(np.ptp(known))) if len(known) > 1 else None,
        far=bool(
            len(known) >= far_needed
            and (away.max() < 0 or away.min() > 0)
            and np.abs(away).min() > FAR * spread
        ),
        line=line(b, a), lags=tuple(dependence.lags(series).tolist()),
        step=float(dependence.step(series)) if len(series) == 2 else 0.0,
    )  # fmt: skip


def adjusted(changes: Sequence[Change]) -> list[Change]:
    """The changes of a comparison, for sessions that resemble those before them: with wider
    intervals and larger p. Few sessions, or independent ones, leave them as they are."""
    together = dependence.pooled([c.lags for c in changes], [c.sessions for c in changes])
    made = []
    for one in changes:
        if not one.lags:
            made.append(one)
            continue
        factor = dependence.factor(together[: len(one.lags)], one.sessions)
        wider, ratio = float(dependence.wider(factor, one.sessions)), math.log(one.ratio)
        p = dependence.step_p(np.array(one.step), factor, one.sessions) if wider > 1 else 0.0
        low, high = (
            math.exp(ratio + wider * (math.log(end) - ratio)) if 0 < end < math.inf else end
            for end in (one.low, one.high)
        )
        made.append(replace(one, low=low, high=high, p=max(one.p, float(p)), factor=float(factor)))
    return made


def level(sessions: Sessions) -> float:
    """The median over sessions as `measure` takes it, of logarithms: the ratio of two of them is
    that of their change."""
    return math.exp(float(np.median([np.median(np.log(values)) for values in sessions])))


def median_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of sessions, by time, and the ends of its interval, each with the probability
    CONFIDENCE, by order statistics: no distribution is assumed. Infinite where there are too few
    values. Sessions that resemble those before them count as fewer, see `judge.dependence`."""
    from scipy import special

    count = len(values)
    series = np.array(values, np.float64)
    factor = float(dependence.factor(dependence.lags([series]), count, sides=1))
    fewer = int(count / factor)
    below = special.bdtr(np.arange(fewer), fewer, 0.5)  # that so many lie below the median
    rank = int((below <= 1 - CONFIDENCE).sum())
    middle = float(np.median(series))
    if not rank:
        return middle, -math.inf, math.inf
    ordered = np.sort(series)
    position = rank if fewer == count else max(1, int(rank * count / fewer))
    return middle, float(ordered[position - 1]), float(ordered[count - position])


def variability(values: Sequence[float]) -> tuple[float, float, float]:
    """Standard deviation over mean of sessions, by time, with the ends of its interval, each with
    the probability CONFIDENCE, as of a normal distribution."""
    from scipy import special

    series = np.array(values, np.float64)
    mean = float(series.mean())
    found = float(np.std(series, ddof=1)) / mean if mean else math.inf
    factor = float(dependence.factor(dependence.lags([series]), len(values), sides=1))
    free = len(values) / factor - 1
    low, high = (
        found * math.sqrt(free / float(special.chdtri(free, p)))
        for p in (1 - CONFIDENCE, CONFIDENCE)
    )
    return found, low, high


def rank_p(before: Floats, after: Floats) -> float:
    """The Mann-Whitney test of the medians of sessions, two-sided and exact."""
    from scipy import stats  # 0.5 s to import: only who judges pays

    if not len(before) or not len(after):
        return 1.0
    return float(stats.mannwhitneyu(before, after, method="exact").pvalue)


@lru_cache
def smallest_p(before: int, after: int) -> float:
    """The smallest p that the rank test of so many sessions can have."""
    return min(1.0, 2 / math.comb(before + after, before))


def sessions_needed(cases: int, alpha: float = ALPHA) -> int:
    """Sessions on each side with which the rank test can decide the first of so many cases."""
    n = 2
    while smallest_p(n, n) > alpha / max(1, cases):
        n += 1
    return n


def holm(values: Sequence[float]) -> list[float]:
    """The p values of all cases of a comparison, corrected by Holm's method."""
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [1.0] * len(values)
    highest = 0.0
    for rank, i in enumerate(order):
        highest = max(highest, min(1.0, (len(values) - rank) * values[i]))
        found[i] = highest
    return found


def decide(changes: Sequence[Change], rule: Rule = Rule()) -> list[tuple[str, str]]:
    """The state of each case of a comparison, and why it is undecided."""
    corrected = holm([change.p for change in changes])
    lines = [change.line for change in changes if change.line]
    left = holm([change.line.step_p if change.line else 1.0 for change in changes])
    together = drift_together(lines)
    return [
        _decided(change, p, rule, len(changes), together and step > rule.alpha)
        for change, p, step in zip(changes, corrected, left, strict=True)
    ]


def drift_together(lines: Sequence[Line]) -> bool:
    """Whether the cases of a comparison drift: one alone says little of it, all together more."""
    from scipy import special

    if not lines:
        return False
    z = sum(line.slope_z for line in lines) / math.sqrt(len(lines))
    return bool(2 * special.ndtr(-abs(z)) < ALL_DRIFT)


def _decided(change: Change, p: float, rule: Rule, cases: int, together: bool) -> tuple[str, str]:
    significant = p <= rule.alpha or change.far
    moved = change.ratio <= 1 - rule.effect or change.ratio >= 1 / (1 - rule.effect)
    clear = change.far or change.high < 1 or change.low > 1
    if significant and moved and clear:
        if (change.drift or together) and not change.far:
            return UNDECIDED, "the sessions drift, and that explains the difference"
        return (WORSE if change.ratio < 1 else BETTER), ""
    if 1 - rule.limit < change.low and change.high < 1 / (1 - rule.limit):
        return NO_CHANGE, ""
    fewest = min(change.before, change.after)
    if not math.isfinite(change.high) or fewest < 2:
        return UNDECIDED, (
            f"{change.before} and {change.after} sessions do not tell how far sessions differ"
        )
    needed = smallest_p(change.before, change.after) * cases > rule.alpha
    if needed and moved:
        return UNDECIDED, (
            f"{change.before} and {change.after} sessions cannot decide {cases} cases; "
            f"{sessions_needed(cases, rule.alpha)} on each side can"
        )
    return UNDECIDED, "the interval holds both no change and one that matters"


def _interval(
    sides: Sequence[Sequence[Floats]], ratio: float, known: Floats, resamples: int
) -> tuple[float, float]:
    """Of the logarithm. Sessions are drawn with replacement, then values within each; quantiles
    are those of Student's t, since few sessions show too little scatter (Hesterberg, What Teachers
    Should Know about the Bootstrap, 2015). A side of one session takes the scatter of `known`."""
    from scipy import special

    counts = [len(side) for side in sides]
    if min(counts) < 2:
        if len(known) < FEW_KNOWN:
            return -math.inf, math.inf
        spread = float(np.std(known, ddof=1)) * math.sqrt(sum(1 / n for n in counts))
        half = float(special.stdtrit(len(known) - 1, 0.5 + CONFIDENCE / 2)) * spread
        return ratio - half, ratio + half
    dice = np.random.default_rng(SEED)
    drawn = [_resampled(side, resamples, dice) for side in sides]
    differences = drawn[1] - drawn[0]
    fewest = min(counts)
    freedom = sum(counts) - 2 if fewest > FEW else fewest - 1
    tail = float(special.ndtr(-special.stdtrit(freedom, 0.5 + CONFIDENCE / 2)))
    low, high = np.quantile(differences, [tail, 1 - tail])
    return float(low), float(high)


def _resampled(side: Sequence[Floats], resamples: int, dice: np.random.Generator) -> Floats:
    """float64[resamples]: medians of sessions' medians, both drawn with replacement."""
    n = len(side)
    medians = np.empty((n, resamples))
    for i, values in enumerate(side):
        draws = dice.integers(len(values), size=(resamples, len(values)))
        medians[i] = np.median(values[draws], axis=1)
    chosen = dice.integers(n, size=(n, resamples))
    return np.asarray(np.median(medians[chosen, np.arange(resamples)], axis=0))


def _within(sides: Sequence[Sequence[Floats]]) -> float | None:
    found = [float(np.var(s, ddof=1)) for side in sides for s in side if len(s) > 1]
    return math.sqrt(sum(found) / len(found)) if found else None


def _between(before: Floats, after: Floats, known: Floats) -> float | None:
    found = [(len(s) - 1, float(np.var(s, ddof=1))) for s in (known, after) if len(s) > 1]
    freedom = sum(n for n, _ in found)
    return math.sqrt(sum(n * v for n, v in found) / freedom) if freedom else None


def line(before: Floats, after: Floats) -> Line | None:
    """By least squares over the order of sessions; None of fewer than three on a side."""
    from scipy import special

    if min(len(before), len(after)) < 3:
        return None
    y = np.concatenate([before, after])
    n = len(y)
    step = np.r_[np.zeros(len(before)), np.ones(len(after))]
    x = np.column_stack([np.ones(n), np.arange(n) - (n - 1) / 2, step])
    beta, *_ = np.linalg.lstsq(x, y, rcond=None)
    rest = y - x @ beta
    variance = float(rest @ rest) / (n - 3)
    if variance < 1e-24:
        return None
    errors = np.sqrt(np.diag(np.linalg.inv(x.T @ x)) * variance)
    way = math.copysign(1, float(after.mean() - before.mean()))
    p = special.stdtr(n - 3, -way * beta[1:] / errors[1:])
    z = float(-special.ndtri(min(max(float(p[0]), 1e-12), 1 - 1e-12)))
    return Line(slope_p=float(p[0]), step_p=float(p[1]), slope_z=z * way)

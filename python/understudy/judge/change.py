"""Whether something changed between nights: the statistics of compare, plan and accept.

Values are made such that a ratio below 1 is worse. What counts is how far *nights* differ: the
repetitions of one session share its node, its neighbours and its hour, and sessions of one night
share the night, so that they say little of the next one. docs/statistics.md explains each rule,
and what the rules cannot do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from understudy.judge.limits import LIMIT_FRACTION

WORSE, BETTER, NO_CHANGE, UNDECIDED = "worse", "better", "no change", "undecided"
ALPHA = 0.01  # probability of a false alarm in a whole comparison, all cases together
CONFIDENCE = 0.95
# How much a night is assumed to keep of the deviation of the one before, as nothing tells in few
# nights; more if the nights compared look so.
RESEMBLANCE = 0.5
MOST_RESEMBLANCE = 0.97
ROUNDING = 1e-24  # a variance of logarithms that is none
TERMS = 3  # of the line over all nights with a step: level, slope, step

Floats = NDArray[np.float64]
Nights = Sequence[Sequence[float]]  # values above 0 of each night, by time


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`limit`: a loss that matters, as a fraction; `effect`: the smallest change that is told."""

    limit: float = LIMIT_FRACTION
    effect: float = LIMIT_FRACTION / 2
    alpha: float = ALPHA


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The ratio of medians (see `level`), after over before, and how sure it is.

    `step` is the logarithm of what changed between the sides, `error` its standard error and
    `freedom` its degrees of freedom, below 1 where there are too few nights; `low` to `high` is
    the interval of 95 %. `rank_p` is that of a rank test, `step_p` that of Student's t. `paired`:
    both sides ran in every night, `before` and `after` in turn; `lone` nights had one side only,
    and do not count; `in_order`: one side ran first in all of them; `turns`: they are turns of a
    campaign, of which a night can have several. `within` and `between` are the
    scatters (standard deviations of logarithms) within and between nights, None where there are
    too few. `floor` is how far the nights before lie apart at most: what a ratio can be without
    any change.
    """

    ratio: float
    step: float
    error: float
    freedom: float
    low: float
    high: float
    rank_p: float
    step_p: float
    before: int
    after: int
    paired: bool = False
    lone: int = 0
    in_order: bool = False
    turns: bool = False
    within: float | None = None
    between: float | None = None
    floor: float | None = None

    @property
    def p(self) -> float:
        """Both tests have to find it: ranks, since few nights may by chance show little scatter,
        and Student's t, since nights resemble each other."""
        return max(self.rank_p, self.step_p)

    def interval(self, confidence: float, middle: float | None = None) -> tuple[float, float]:
        """The ends around the ratio of medians, or around the logarithm `middle`."""
        middle = math.log(self.ratio) if middle is None else middle
        half = float(half_width(self.error, self.freedom, confidence))
        if not math.isfinite(half):
            return 0.0, math.inf
        return math.exp(middle - half), math.exp(middle + half)


def measure(before: Nights, after: Nights) -> Change:
    """The change between two sets of nights."""
    b, a = (_medians(side) for side in (before, after))
    estimate = apart(b, a)
    ratio = float(np.median(a) - np.median(b))
    return _change(before, after, ratio, estimate, float(rank_p(b, a)), _between([b, a]))


def measure_pairs(
    before: Nights, after: Nights, lone: int = 0, in_order: bool = False, turns: bool = False
) -> Change:
    """The change between the sides of nights, or of turns, in which both ran."""
    b, a = (_medians(side) for side in (before, after))
    found = _change(
        before,
        after,
        float(np.median(a - b)),
        paired(a - b),
        float(signed_rank_p(a - b)),
        _between([b]),
    )
    return replace(found, paired=True, lone=lone, in_order=in_order, turns=turns)


def _change(
    before: Nights,
    after: Nights,
    ratio: float,
    estimate: "Estimate",
    rank: float,
    between: float | None,
) -> Change:
    step, error, free = (float(x) for x in estimate)
    made = Change(
        ratio=math.exp(ratio),
        step=step,
        error=error,
        freedom=free,
        low=0.0,
        high=math.inf,
        rank_p=rank,
        step_p=float(student_p(*estimate)),
        before=len(before),
        after=len(after),
        within=_within([*before, *after]),
        between=between,
        floor=math.exp(-float(np.ptp(_medians(before)))) if len(before) > 1 else None,
    )
    low, high = made.interval(CONFIDENCE)
    return replace(made, low=low, high=high)


# -- estimates, of any number of comparisons at once -------------------------------------------

Estimate = tuple[Floats, Floats, Floats]  # step, standard error, degrees of freedom


def apart(before: Floats, after: Floats) -> Estimate:
    """Of logarithms float64[..., nights], by time: the step between the sides beside a line over
    all nights, so that a drift is no step. Nights resemble those before them: with the
    autocorrelation r of the first order, n of them tell as much of a level as n (1 - r) / (1 + r)
    independent ones, and as much of a scatter as n (1 - r^2) / (1 + r^2) (Bayley and Hammersley,
    Supplement to the Journal of the Royal Statistical Society 8, 1946)."""
    n = before.shape[-1] + after.shape[-1]
    shape = before.shape[:-1]
    if n <= TERMS or not before.shape[-1] or not after.shape[-1]:
        return np.zeros(shape), np.full(shape, math.inf), np.zeros(shape)
    y = np.concatenate([before, after], axis=-1)
    side = np.r_[np.zeros(before.shape[-1]), np.ones(after.shape[-1])]
    x = np.column_stack([np.ones(n), np.arange(n) - (n - 1) / 2, side])
    inverse = np.linalg.pinv(x.T @ x)
    beta = y @ x @ inverse
    rest = y - beta @ x.T
    squares = (rest**2).sum(axis=-1)
    r = resemblance(rest, squares)
    error = np.sqrt(squares / (n - TERMS) * inverse[2, 2] * (1 + r) / (1 - r))
    return beta[..., 2], error, freedom(n, r)


def resemblance(rest: Floats, squares: Floats) -> Floats:
    """The autocorrelation of the first order that is assumed of residuals float64[..., nights]
    of a line with a step: that of RESEMBLANCE, or one standard error above what they show.

    What they show is too small by (1 + 3 r) terms / 2n (Marriott and Pope, Biometrika 41, 1954).
    """
    n = rest.shape[-1]
    products = (rest[..., 1:] * rest[..., :-1]).sum(axis=-1)
    shown = np.where(squares > n * ROUNDING, products / np.maximum(squares, n * ROUNDING), 0)
    whole = shown + (1 + 3 * np.clip(shown, 0, 1)) * TERMS / (2 * n)
    return np.asarray(np.clip(whole + 1 / math.sqrt(n), RESEMBLANCE, MOST_RESEMBLANCE))


def freedom(nights: int, r: Floats) -> Floats:
    """Degrees of freedom of the scatter about a line with a step, see `apart`."""
    return np.asarray(np.maximum(nights * (1 - r**2) / (1 + r**2) - TERMS, 0))


def paired(differences: Floats) -> Estimate:
    """Of differences of logarithms float64[..., nights]: what nights share is not in them."""
    n = differences.shape[-1]
    if n < 2:
        shape = differences.shape[:-1]
        return np.zeros(shape), np.full(shape, math.inf), np.zeros(shape)
    error = np.std(differences, axis=-1, ddof=1) / math.sqrt(n)
    return differences.mean(axis=-1), error, np.full(differences.shape[:-1], n - 1.0)


def student_p(step: Floats, error: Floats, freedom: Floats) -> Floats:
    """Two-sided p of Student's t; 1 where there are too few nights."""
    from scipy import special

    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.nan_to_num(np.abs(step) / error, nan=0.0, posinf=1e6)
    p = 2 * special.stdtr(np.maximum(freedom, 1), -t)
    return np.asarray(np.where(np.asarray(freedom) >= 1, p, 1.0))


def half_width(error: Floats | float, freedom: Floats | float, confidence: float) -> Floats:
    """Of an interval of logarithms; infinite where there are too few nights."""
    from scipy import special

    known = np.asarray(freedom) >= 1
    factor = special.stdtrit(np.maximum(freedom, 1), 0.5 + confidence / 2)
    return np.asarray(np.where(known, factor * np.asarray(error), math.inf))


def level(nights: Nights) -> float:
    """The median over nights as `measure` takes it, of logarithms: the ratio of two of them is
    that of their change."""
    return math.exp(float(np.median(_medians(nights))))


def levels(before: Nights, after: Nights, in_turn: bool) -> tuple[float, float]:
    """Those of both sides, whose ratio is that of their change; in turn, as in a middle night."""
    if not in_turn:
        return level(before), level(after)
    b, a = _medians(before), _medians(after)
    middle, half = float(np.median((b + a) / 2)), float(np.median(a - b)) / 2
    return math.exp(middle - half), math.exp(middle + half)


def rank_p(before: Floats, after: Floats) -> Floats:
    """The Mann-Whitney test of the medians float64[..., nights], two-sided and exact."""
    from scipy import stats  # 0.5 s to import: only who judges pays

    if not before.shape[-1] or not after.shape[-1]:
        return np.ones(before.shape[:-1])
    found = stats.mannwhitneyu(before, after, axis=-1, method="exact")
    return np.asarray(found.pvalue)


def signed_rank_p(differences: Floats) -> Floats:
    """The signed-rank test of Wilcoxon of float64[..., nights], two-sided and exact; a difference
    of 0 counts for neither side."""
    from scipy import stats

    n = differences.shape[-1]
    if not n:
        return np.ones(differences.shape[:-1])
    ranks = stats.rankdata(np.abs(differences), axis=-1)
    both = [(ranks * (differences * way > 0)).sum(axis=-1) for way in (1, -1)]
    less = np.floor(np.minimum(*both) + 1e-9).astype(int)
    return np.asarray(np.minimum(1.0, 2 * _rank_sums(n)[less]))


@lru_cache
def _rank_sums(n: int) -> Floats:
    """Probabilities that those ranks of 1 to n that a coin chooses sum up to 0, 1 ... or less."""
    ways = np.ones(1)
    for rank in range(1, n + 1):
        ways = np.r_[ways, np.zeros(rank)] + np.r_[np.zeros(rank), ways]
    return np.asarray(np.cumsum(ways) / 2.0**n)


def least_p(change: Change) -> float:
    """The smallest p that the rank test of so many nights can have."""
    return _least_p(change.before, change.after, change.paired)


@lru_cache
def _least_p(before: int, after: int, in_turn: bool) -> float:
    return min(1.0, 2 / (2**before if in_turn else math.comb(before + after, before)))


def nights_needed(cases: int, in_turn: bool = False, rule: Rule = Rule()) -> int:
    """Nights, on each side if not in turn, with which one of so many cases can be decided."""
    n = 2
    while _least_p(n, n, in_turn) > rule.alpha / max(1, cases) or not (in_turn or _free(n)):
        n += 1
    return n


def _free(n: int) -> bool:
    """Whether so many nights on each side leave a degree of freedom."""
    return bool(freedom(2 * n, np.array(RESEMBLANCE)) >= 1)


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
    cases = len(changes)
    corrected = holm([change.p for change in changes])
    return [_decided(one, p, rule, cases) for one, p in zip(changes, corrected, strict=True)]


def _decided(change: Change, p: float, rule: Rule, cases: int) -> tuple[str, str]:
    moved = change.ratio <= 1 - rule.effect or change.ratio >= 1 / (1 - rule.effect)
    block = "turn" if change.turns else "night"
    if p <= rule.alpha and moved and (change.ratio < 1) == (change.step < 0):
        if change.in_order:
            return UNDECIDED, (
                f"one side ran first in every {block}, so that a drift within the {block} looks "
                "like a change: let them take turns"
            )
        return (WORSE if change.ratio < 1 else BETTER), ""
    fewest, needed = min(change.before, change.after), nights_needed(cases, change.paired, rule)
    nights, wanted = f"{change.before} and {change.after} nights", f"{needed} on each side"
    if change.paired:
        nights, wanted = f"{change.before} {block}{'s' * (change.before != 1)}", str(needed)
        nights += "" if change.turns else " in turn"
    if change.freedom < 1:
        return UNDECIDED, f"{nights} cannot tell; {wanted} can"
    low, high = change.interval(1 - 2 * rule.alpha)
    step = change.interval(1 - 2 * rule.alpha, change.step)
    if all(1 - rule.limit < end < 1 / (1 - rule.limit) for end in (low, high, *step)):
        return NO_CHANGE, ""
    if not moved:
        return UNDECIDED, (
            f"{_percent(low)} to {_percent(high)} (98 %) holds both no change and one that matters"
        )
    if fewest < needed and least_p(change) * cases > rule.alpha:
        return UNDECIDED, (
            f"{nights} cannot decide {cases} case{'s' * (cases != 1)}; {wanted} can"
        )
    return UNDECIDED, _why_not(change, p, rule, cases)


def _why_not(change: Change, p: float, rule: Rule, cases: int) -> str:
    """Why a change of the medians is not significant: which of the tests, or the correction."""
    of_all = f" after the correction for {cases} cases" if cases > 1 else ""
    if change.rank_p <= rule.alpha / cases and not change.paired:
        return (
            f"the medians differ, but a drift, or nights that resemble each other, can do that: "
            f"the step beside a line over all nights is {_percent(math.exp(change.step))}, "
            f"p = {p:.2g}{of_all}"
        )
    return f"p = {p:.2g}{of_all}, above {rule.alpha:g}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def _medians(side: Nights) -> Floats:
    return np.array([np.median(np.log(np.asarray(values, np.float64))) for values in side])


def _within(nights: Nights) -> float | None:
    found = [float(np.var(np.log(values), ddof=1)) for values in nights if len(values) > 1]
    return math.sqrt(sum(found) / len(found)) if found else None


def _between(sides: Sequence[Floats]) -> float | None:
    found = [(len(s) - 1, float(np.var(s, ddof=1))) for s in sides if len(s) > 1]
    freedom = sum(n for n, _ in found)
    return math.sqrt(sum(n * v for n, v in found) / freedom) if freedom else None

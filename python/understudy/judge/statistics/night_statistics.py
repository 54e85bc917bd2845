"""Changes between nights: the one model of compare, campaign, plan, trend, accept and report.

The logarithm of a value is side + night + session + repetition. The standard deviation between
nights is *stated* (`Rule.nights`, a normal distribution): one night suffices for a loss that no
night of that kind makes. The rest is estimated: how sessions of a night differ, and repetitions of
a session. From `WEIGHT` nights on, those seen count beside the statement, which weighs as much as
WEIGHT nights; nights that differ by more than it allows replace it.

The sides are estimated by generalized least squares, so that a night in which both sides ran says
nothing but their difference, and a night of one side costs what a night may do. Degrees of freedom
are Satterthwaite's (Biometrics Bulletin 2, 1946), those of a stated part infinite. Sessions of one
night are stated to differ by no more than nights do, which is used while they are too few to tell.
Many figures are decided at a rate of false discoveries (Benjamini and Hochberg, Journal of the
Royal Statistical Society B 57, 1995): a slow storage slows many figures at once, and if none
changed, it is the probability of any false alarm. docs/statistics.md explains each rule and what
it finds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from understudy.judge.statistics.limits import LIMIT_FRACTION

SLOWER, FASTER, WITHIN, UNDECIDED = "slower", "faster", "within the limit", "not decided"
STATES = (SLOWER, UNDECIDED, FASTER, WITHIN)
ALPHA = 0.01  # rate of false discoveries of a comparison: of false alarms, if nothing changed
CONFIDENCE = 0.95
POWER = 0.95
NIGHTS = 0.10  # standard deviation of logarithms between nights, unless a site states another
WEIGHT = 8  # nights that the statement counts as
# Variance by which the statement on sessions of a night grows where it may tell more than the few
# that were seen: of these two ways, it has a tenth of the false alarms.
CHOICE = 1.63
MOST_NIGHTS = 40  # more are not practical
AT_ONCE = 16  # sessions after which changes are looked for, in one array
ROUNDING = 1e-6  # of the variance of nights: none

Floats = NDArray[np.float64]
Numbers = Floats | float | Sequence[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`limit`: a loss that matters, as a fraction; `effect`: the smallest change that is told;
    `nights`: the standard deviation of logarithms that is stated of nights."""

    limit: float = LIMIT_FRACTION
    effect: float = LIMIT_FRACTION / 2
    alpha: float = ALPHA
    nights: float = NIGHTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """The repetitions of a figure in one session: values above 0 of which higher is better."""

    night: int
    values: tuple[float, ...]

    level: float = field(init=False, repr=False, compare=False)
    """The logarithm of the median."""
    noise: float = field(init=False, repr=False, compare=False)
    """The variance of the level by what repetitions differ; NaN of one."""

    def __post_init__(self) -> None:  # once: every window of sessions asks for them
        logs, n = np.log(self.values), len(self.values)
        level = float(np.median(logs)) if n > 1 else float(logs[0])
        noise = of_median(n) * float(np.var(logs, ddof=1)) if n > 1 else math.nan
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "noise", noise)


Side = Sequence[Session]


def of_median(n: int) -> float:
    """The variance of the median of n normal values, in units of theirs (to 2 %, of odd n)."""
    return math.pi / (2 * n + math.pi - 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """Variances of logarithms: between nights, between sessions of a night, and the part of the
    latter that `noise` between repetitions makes. `session_known`: several sessions of a night
    tell that of sessions; else it is in that of nights, but for the noise."""

    night: float
    session: float
    session_known: bool
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """After over before.

    `levels` are both sides as estimated, in the unit of the values; `step` the logarithm of their
    ratio, `error` its standard error, `freedom` its degrees of freedom, by each way: what one
    tells counts. `contradicted`: nights differ by more than was stated. `shared`: nights in which
    both sides ran.
    """

    levels: tuple[float, float]
    step: float
    error: tuple[float, ...]
    freedom: tuple[float, ...]
    scatter: Scatter
    contradicted: bool
    nights: tuple[int, int]
    sessions: tuple[int, int]
    shared: int

    @property
    def ratio(self) -> float:
        return math.exp(self.step)

    @property
    def p(self) -> float:
        return float(student_p(self.step, self.error, self.freedom).min())

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Both ends of the ratio."""
        half = float(reach(self.error, self.freedom, 1 - confidence).min())
        return math.exp(self.step - half), math.exp(self.step + half)


# -- estimates, of any number of figures at once ------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Estimates for figures, float64[figures] each: the means of both sides, their difference, its
    standard error and degrees of freedom, [ways, figures] (infinite: not this way); the others are
    as in `Scatter` and `Change`."""

    means: tuple[Floats, Floats]
    step: Floats
    error: Floats
    freedom: Floats
    night: Floats
    session: Floats
    noise: Floats
    session_known: NDArray[np.bool_]
    contradicted: NDArray[np.bool_]


def estimate(
    levels: Floats, sides: NDArray[np.intp], nights: NDArray[np.intp], noise: Floats, rule: Rule
) -> Estimate:
    """The step between the sides 0 and 1 of the levels float64[figures, sessions]; of one side
    alone, the step from 0 to its mean.

    `sides` is [figures, sessions] or [sessions], -1 for a session that does not count; `nights`
    are [sessions], from 0 without a gap; `noise` is the variance of each level by repetitions, as
    `levels`, or NaN: repetitions are then taken to differ by half as much as nights.
    """
    of = [np.broadcast_to(sides == side, levels.shape).astype(np.float64) for side in (0, 1)]
    seen: Floats
    free: Floats
    if np.array_equal(nights, np.arange(len(nights))):  # no session shares its night
        counts, sums = of, [levels * mask for mask in of]
        seen, free = np.zeros(len(levels)), np.zeros(len(levels))
    else:
        order = np.argsort(nights, kind="stable")
        begin = np.searchsorted(nights[order], np.arange(nights.max() + 1))
        counts = [np.add.reduceat(mask[:, order], begin, axis=1) for mask in of]
        sums = [np.add.reduceat((levels * mask)[:, order], begin, axis=1) for mask in of]
        seen, free = _between_sessions(levels, of[0] + of[1], counts, sums, nights)
    measured = free > 0
    noise = np.where(np.isnan(noise), rule.nights**2 / 4, noise)
    noise = np.average(np.broadcast_to(noise, levels.shape), axis=1, weights=of[0] + of[1])
    least = ROUNDING * rule.nights**2
    seen, free = (
        np.maximum(np.where(measured, seen, noise), least),
        np.where(measured, free, np.inf),
    )
    alike = _alike(counts, sums)
    night, free_n, contradicted = _between_nights(counts, sums, alike, seen, rule)
    in_turn = (alike.number * (alike.counts[0] * alike.counts[1] > 0)).any(axis=1)
    stated = np.maximum(noise, least) + in_turn * rule.nights**2 * np.where(measured, CHOICE, 1.0)
    session = np.where(measured, seen, stated)
    means = _weighted(alike, sums, session, night)
    ways = [_error(alike, session, night, free, free_n)]
    few = measured & in_turn & (free < WEIGHT - 1)
    if few.any():
        from scipy import special

        few &= special.chdtrc(np.where(measured, free, 1), free * seen / stated) >= ALPHA
        error, freedom = _error(alike, stated, night, np.full(free.shape, np.inf), free_n)
        ways.append((np.where(few, error, np.inf), freedom))
    return Estimate(
        means=means,
        step=means[1] - means[0],
        error=np.stack([error for error, _ in ways]),
        freedom=np.stack([freedom for _, freedom in ways]),
        night=night,
        session=seen,
        noise=noise,
        session_known=measured,
        contradicted=contradicted,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alike:
    """Nights by how many sessions of each side they have, since most have as many: these `counts`,
    float64[groups] of each side, the `number` of such nights, [figures, groups], and the sum of
    their levels."""

    counts: tuple[Floats, Floats]
    number: Floats
    totals: Floats


def _alike(counts: Sequence[Floats], sums: Sequence[Floats]) -> _Alike:
    """Without the nights in which no session counts."""
    base = int(counts[1].max()) + 1
    codes = (counts[0] * base + counts[1]).astype(np.intp)
    kinds = np.flatnonzero(np.bincount(codes.ravel())[1:]) + 1
    total = sums[0] + sums[1]
    masks = [codes == kind for kind in kinds]
    return _Alike(
        counts=((kinds // base).astype(np.float64), (kinds % base).astype(np.float64)),
        number=np.stack([mask.sum(axis=1, dtype=np.float64) for mask in masks], axis=1),
        totals=np.stack([(total * mask).sum(axis=1) for mask in masks], axis=1),
    )


def _error(
    alike: _Alike, session: Floats, night: Floats, free: Floats, free_n: Floats
) -> tuple[Floats, Floats]:
    """Standard error of the step, and its degrees of freedom."""
    variance = _variance(alike, session, night)
    more = 1e-4
    of_session = (_variance(alike, session * (1 + more), night) - variance) / more
    of_night = (_variance(alike, session, night * (1 + more)) - variance) / more
    spread = of_session**2 / free + of_night**2 / free_n
    freedom = np.where(spread > 0, variance**2 / np.maximum(spread, 1e-300), np.inf)
    return np.sqrt(variance), freedom


def _between_sessions(
    levels: Floats,
    counted: Floats,
    counts: list[Floats],
    sums: list[Floats],
    nights: NDArray[np.intp],
) -> tuple[Floats, Floats]:
    """The variance of sessions about their night and side, and its degrees of freedom."""
    both, total = counts[0] + counts[1], sums[0] + sums[1]
    present = np.maximum(both, 1)
    squares = (counted * (levels - (total / present)[:, nights]) ** 2).sum(axis=1)
    weights = counts[0] * counts[1] / present
    with np.errstate(invalid="ignore", divide="ignore"):
        apart = np.where(weights > 0, sums[1] / counts[1] - sums[0] / counts[0], 0.0)
    weight = weights.sum(axis=1)
    shared = weight > 0
    squares = squares - (weights * apart).sum(axis=1) ** 2 / np.where(shared, weight, 1)
    free = np.maximum(both - 1, 0).sum(axis=1) - shared
    return np.maximum(squares, 0) / np.maximum(free, 1), free


def _between_nights(
    counts: list[Floats], sums: list[Floats], alike: _Alike, session: Floats, rule: Rule
) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The variance of nights, its degrees of freedom, and whether the statement does not hold;
    from nights in which one side ran."""
    from scipy import special

    stated = np.full(len(session), rule.nights**2)
    squares, free, parts, products = (np.zeros_like(stated) for _ in range(4))
    lone = np.zeros_like(stated)
    for k, total in enumerate(sums):
        side, other = counts[k], counts[1 - k]
        alone = (side > 0) & (other == 0)
        number = alike.number * (alike.counts[1 - k] == 0)
        n = number.sum(axis=1)
        means = total / np.maximum(side, 1) * alone
        middle = means.sum(axis=1) / np.maximum(n, 1)
        away = (means - middle[:, None]) * alone
        squares += (away**2).sum(axis=1)
        products += (away[:, 1:] * away[:, :-1]).sum(axis=1)
        free += np.maximum(n - 1, 0)
        parts += (number / np.maximum(alike.counts[k], 1)).sum(axis=1)
        lone += n
    some = np.maximum(free, 1)
    session_part = session * parts / np.maximum(lone, 1)
    seen = np.maximum(squares / some - session_part, 0)
    contradicted = (free > 0) & (special.chdtrc(some, squares / (stated + session_part)) < ALPHA)
    many_nights = free >= WEIGHT - 1
    r = products / np.where(squares > 0, squares, 1)
    r = np.clip(r + (1 + 3 * r) / some + 1 / np.sqrt(some), 0, 0.97)
    shrunk = (WEIGHT * stated + free * seen) / (WEIGHT + free) * (1 + r) / (1 - r)
    narrower = many_nights & (shrunk < stated)
    night = np.where(narrower, shrunk, stated)
    night = np.where(contradicted, np.maximum(seen, np.where(many_nights, shrunk, stated)), night)
    freedom = WEIGHT / (1.0 + contradicted) + free
    freedom = np.where(contradicted | narrower, freedom, np.inf)
    return night, freedom, contradicted


def _products(
    alike: _Alike, session: Floats, night: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """Products of generalized least squares, in units of the variance of sessions: what a night
    of each group keeps back, and the products of the sides with themselves and with each other."""
    ratio = (night / session)[:, None]
    first, second = alike.counts
    keep = ratio / (1 + (first + second) * ratio)
    a, c = (
        (alike.number * side * (1 + ratio * other) * keep / ratio).sum(axis=1)
        for side, other in ((first, second), (second, first))
    )
    return keep, a, -(alike.number * keep * first * second).sum(axis=1), c


def _variance(alike: _Alike, session: Floats, night: Floats) -> Floats:
    """Variance of the difference of the sides, or of the mean of a side that is alone."""
    _, a, b, c = _products(alike, session, night)
    if not alike.counts[0].any():
        return np.asarray(session / c)
    return np.asarray(session * (a + c + 2 * b) / (a * c - b * b))


def _weighted(
    alike: _Alike, sums: list[Floats], session: Floats, night: Floats
) -> tuple[Floats, Floats]:
    """The means of both sides; 0 of one without sessions."""
    keep, a, b, c = _products(alike, session, night)
    u, v = (
        s.sum(axis=1) - (keep * n * alike.totals).sum(axis=1)
        for n, s in zip(alike.counts, sums, strict=True)
    )
    if not alike.counts[0].any():
        return np.zeros_like(v), v / c
    determinant = a * c - b * b
    return (c * u - b * v) / determinant, (a * v - b * u) / determinant


def student_p(step: Floats | float, error: Numbers, freedom: Numbers) -> Floats:
    """Two-sided p of Student's t, of the normal distribution where the freedom is infinite."""
    from scipy import special

    free = np.minimum(np.asarray(freedom, np.float64), 1e9)
    return np.asarray(2 * special.stdtr(free, -np.abs(np.asarray(step)) / np.asarray(error)))


def quantile(probability: float, freedom: Numbers) -> Floats:
    """Quantile of Student's t."""
    from scipy import special

    return np.asarray(special.stdtrit(np.minimum(np.asarray(freedom, float), 1e9), probability))


def reach(error: Numbers, freedom: Numbers, alpha: float) -> Floats:
    """The smallest significant step, for one figure."""
    return np.asarray(quantile(1 - alpha / 2, freedom) * np.asarray(error))


# -- figures of a comparison --------------------------------------------------------------------


def measure(before: Side, after: Side, rule: Rule = Rule()) -> Change:
    """The change between two sides, of at least one session each; without `before`, the level of
    one side, as a change from 1."""
    sessions = [*before, *after]
    nights = {night: i for i, night in enumerate(sorted({s.night for s in sessions}))}
    fit = estimate(
        np.array([[s.level for s in sessions]]),
        np.repeat([0, 1], [len(before), len(after)]),
        np.array([nights[s.night] for s in sessions]),
        np.array([[s.noise for s in sessions]]),
        rule,
    )
    ran = [{s.night for s in side} for side in (before, after)]
    low, high = (math.exp(float(mean[0])) for mean in fit.means)
    return Change(
        levels=(low, high),
        step=float(fit.step[0]),
        error=tuple(fit.error[:, 0].tolist()),
        freedom=tuple(fit.freedom[:, 0].tolist()),
        scatter=Scatter(
            night=float(fit.night[0]),
            session=float(fit.session[0]),
            session_known=bool(fit.session_known[0]),
            noise=float(fit.noise[0]),
        ),
        contradicted=bool(fit.contradicted[0]),
        nights=(len(ran[0]), len(ran[1])),
        sessions=(len(before), len(after)),
        shared=len(ran[0] & ran[1]),
    )


def decide(changes: Sequence[Change], rule: Rule = Rule()) -> list[str]:
    """The state of each figure of a comparison."""
    if not changes:
        return []
    halves = [reach(change.error, change.freedom, 2 * rule.alpha).min() for change in changes]
    every = [(change.step, change.p, half) for change, half in zip(changes, halves, strict=True)]
    step, p, half = (np.array([column]) for column in zip(*every, strict=True))
    return [STATES[i] for i in states(step, p, half, rule)[0]]


def states(step: Floats, p: Floats, half: Floats, rule: Rule) -> NDArray[np.intp]:
    """Numbers of STATES, [comparisons, figures]; `half` is that of the interval that has to lie
    within the limit. Which figures changed is found by the procedure of Benjamini and Hochberg in
    each comparison."""
    ranked = np.sort(p, axis=1)
    share = rule.alpha * np.arange(1, p.shape[1] + 1) / p.shape[1]
    most = np.where(ranked <= share, ranked, -1.0).max(axis=1, keepdims=True)
    changed = (p <= most) & (np.abs(step) >= -math.log1p(-rule.effect))
    within = np.abs(step) + half < -math.log1p(-rule.limit)
    state = np.where(within, STATES.index(WITHIN), STATES.index(UNDECIDED))
    side = np.where(step < 0, STATES.index(SLOWER), STATES.index(FASTER))
    return np.where(changed, side, state).astype(np.intp)


def findable(scatter: Scatter, blocks: int, in_turn: bool, figures: int, rule: Rule) -> float:
    """The loss, as a fraction, that so many blocks find with the probability POWER in one of so
    many figures: nights of each side, or turns. Turns whose scatter is not known are taken to
    scatter as nights do."""
    from scipy import special

    variance = scatter.session + scatter.night * (not (in_turn and scatter.session_known))
    ways = []
    if not in_turn or blocks < WEIGHT:
        more = rule.nights**2 * (CHOICE if blocks > 1 else 1) + scatter.noise
        ways.append((more if in_turn else variance, math.inf))
    if in_turn and blocks > 1:
        ways.append((variance, blocks - 1.0))
    steps = []
    for each, freedom in ways:
        beyond = float(quantile(1 - rule.alpha / figures / 2, freedom))
        power = beyond + float(quantile(POWER, math.inf))
        if math.isfinite(freedom):
            power = float(special.nctdtrinc(freedom, 1 - POWER, beyond))
        steps.append(power * math.sqrt(2 * each / blocks))
    return -math.expm1(-min(steps))


def needed(scatter: Scatter, in_turn: bool, figures: int, rule: Rule) -> int | None:
    """The fewest blocks (see `findable`) that find a loss of the limit; None of more than
    MOST_NIGHTS."""
    wanted = range(1, MOST_NIGHTS + 1)
    sufficient = (n for n in wanted if findable(scatter, n, in_turn, figures, rule) <= rule.limit)
    return next(sufficient, None)


def drifting(side: Side, change: Change, apart: float) -> bool:
    """True if the sessions of one side, by time, fall or rise as the step does, by at least half
    of it over `apart` sessions."""
    levels = np.array([session.level for session in side])
    if len(levels) < 3:
        return False
    slope = float(np.polyfit(np.arange(len(levels)), levels, 1)[0])
    return slope * change.step > 0 and abs(slope) * apart >= abs(change.step) / 2


# -- one side, and many sessions ------------------------------------------------------------------


def level(side: Side, rule: Rule = Rule()) -> tuple[float, float, float]:
    """Where a side lies, and both ends, each of which holds with the probability CONFIDENCE."""
    change = measure((), side, rule)
    low, high = change.interval(2 * CONFIDENCE - 1)
    return change.ratio, low, high


def variability(side: Side) -> tuple[float, float, float]:
    """Standard deviation over mean of a log-normal distribution with the variance of the nights'
    levels, of at least two, and both ends, each of which holds with the probability CONFIDENCE."""
    from scipy import special

    nights = {session.night for session in side}
    levels = [np.mean([s.level for s in side if s.night == night]) for night in nights]
    free = len(levels) - 1
    squares = float(np.var(levels)) * len(levels)
    divisors = free, special.chdtri(free, 1 - CONFIDENCE), special.chdtri(free, CONFIDENCE)
    value, low, high = (math.sqrt(math.expm1(min(squares / by, 700.0))) for by in divisors)
    return value, low, high


def windows(sessions: int) -> list[int]:
    """Lengths of the end of so many sessions that are compared with what is before them."""
    lengths, step = [1, 2, 3], 4
    while step <= sessions:
        lengths += [step, step + step // 2]
        step *= 2
    return [n for n in lengths if n < sessions]


def changes(sessions: Side, rule: Rule = Rule(), figures: int | Sequence[int] = 1) -> list[int]:
    """The first sessions after each change, by time.

    After each session its last ones are compared with those since the last change, over windows
    of several lengths. What was found stays found: it depends on no later session. So many
    `figures` are looked at, at each session or at all. The probability of a false alarm, over all
    sessions and figures, is at most that of the rule: after m sessions of a series a share of
    1 / (m (m - 1)) of it is spent, in equal parts.
    """
    nights = np.unique([s.night for s in sessions], return_inverse=True)[1]
    levels = np.array([s.level for s in sessions])
    noise = np.array([s.noise for s in sessions])
    spent = rule.alpha / np.broadcast_to(figures, levels.shape)
    starts: list[int] = []
    start, first = 0, 2
    while start < len(levels):
        hit = None
        for low in range(max(first, start + 2), len(levels) + 1, AT_ONCE):
            ends = range(low, min(low + AT_ONCE, len(levels) + 1))
            hit = _first_change(levels, nights, noise, start, ends, rule, spent)
            if hit:
                break
        if hit is None:
            break
        first, start = hit[0] + 1, hit[1]
        starts.append(start)
    return starts


def _first_change(
    levels: Floats,
    nights: NDArray[np.intp],
    noise: Floats,
    start: int,
    ends: Sequence[int],
    rule: Rule,
    spent: Floats,
) -> tuple[int, int] | None:
    """The first of the ends after which there is a change, and its place."""
    pairs = np.array([(end, end - n) for end in ends for n in windows(end - start)])
    part = slice(start, ends[-1])
    at, end, place = np.arange(start, ends[-1])[None, :], pairs[:, :1], pairs[:, 1:]
    sides = np.where(at < end, at >= place, -1).astype(np.intp)
    side_levels = np.broadcast_to(levels[part], sides.shape)
    fit = estimate(side_levels, sides, nights[part] - nights[start], noise[part], rule)
    p = student_p(fit.step, fit.error, fit.freedom).min(axis=0)
    ends_, places = pairs.T
    share = spent[ends_ - 1] / (ends_ * (ends_ - 1)) / np.bincount(ends_)[ends_]
    hits = (p <= share) & (np.abs(fit.step) >= -math.log1p(-rule.effect))
    if not hits.any():
        return None
    first_end = int(ends_[hits][0])
    return first_end, int(places[np.argmin(np.where(ends_ == first_end, p, 2.0))])

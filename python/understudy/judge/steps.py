"""Steps and drifts of a figure over sessions: one model of four kinds, chosen by one criterion.

A series of logarithms is a constant, a line (a drift), steps, or a line with steps, and what is
left of it resembles the session before (an autoregression of the first order, as the nights of
`judge.change`). Each candidate costs -2 log of its likelihood, STEP for each step and LINE for a
line; the cheapest is taken. The two prices are chosen by the rate of false alarms, see
benchmarks/trends.py and docs/statistics.md. Steps stand where the squares of the residuals are
least, found exactly (Auger and Lawrence, Bulletin of Mathematical Biology 51, 1989), and are then
moved to where the absolute deviations are, which a bad night beside a step moves less.

A session further than FAR scatters from what was fitted before counts as one at that distance
(Huber), so that bad nights make no step; it is told as an outlier.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from understudy.judge.change import ROUNDING, Rule

FEWEST = 5  # sessions between steps, and before the first and after the last one
STEP, LINE = 23.0, 12.0
FAR = 3.0
NORMAL = 1.4826  # standard deviation of a normal distribution over its median deviation
AROUND = 7  # sessions on both sides of one, whose median it is compared with at first
RESEMBLANCES = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
ROUNDS = 10  # until places and slope, or fit and outliers, agree

Floats = NDArray[np.float64]
Points = tuple[int, ...]  # the first session of each part but the first


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """`fitted` are logarithms, `slope` their drift a session, 0 without a line. `resemblance` is
    what a session keeps of the deviation of the last."""

    points: Points
    slope: float
    fitted: tuple[float, ...]
    outliers: tuple[int, ...]
    resemblance: float

    def ratio(self, point: int) -> float:
        """What changed from the session before a step to the one after it."""
        return math.exp(self.fitted[point] - self.fitted[point - 1])

    @property
    def told(self) -> Points:
        """The steps that are large enough to matter, see `change.Rule`."""
        return tuple(p for p in self.points if matters(self.ratio(p)))

    @property
    def drifts(self) -> bool:
        """Whether there is a drift, and it is large enough over all sessions."""
        return matters(math.exp(self.slope * (len(self.fitted) - 1)))


def matters(ratio: float) -> bool:
    return abs(math.log(ratio)) >= -math.log(1 - Rule().effect)


def change_points(values: Sequence[Sequence[float]]) -> Points:
    """The steps of values above 0 of each session, by time."""
    return fit([math.log(median(session)) for session in values]).told


def fit(logarithms: Sequence[float]) -> Fit:
    """The cheapest model of a series, by time."""
    y = np.array(logarithms, np.float64)
    points: Points = ()
    line, slope, resemblance = False, 0.0, 0.0
    fitted = _around(y)
    for _ in range(ROUNDS):
        near = _near(y, fitted)
        before = points, line
        points, line, resemblance = _cheapest(near)
        slope = float(_solve(near, _terms(len(y), points, line))[0][-1]) if line else 0.0
        points = _settled(y - slope * np.arange(len(y)), points)
        fitted = _fitted(y, points, slope)
        if before == (points, line):
            break
    far = np.flatnonzero(np.abs(y - _near(y, fitted)) > 0)
    return Fit(
        points=points,
        slope=slope,
        fitted=tuple(fitted.tolist()),
        outliers=tuple(far.tolist()),
        resemblance=resemblance,
    )


def _fitted(y: Floats, points: Points, slope: float) -> Floats:
    """The median of each part, on a slope."""
    drift = slope * np.arange(len(y))
    parts = np.split(y - drift, list(points))
    return np.asarray(
        drift + np.concatenate([np.full(len(part), np.median(part)) for part in parts])
    )


def _settled(y: Floats, points: Points) -> Points:
    """Each step where the absolute deviations from the medians around it are least: a session that
    lies far from the fit can belong to the part on the other side."""
    found = list(points)
    for k in range(len(found)):
        start, *_, end = [0, *found, len(y)][k : k + 3]
        places = range(start + FEWEST, end - FEWEST + 1)
        found[k] = min(places, key=lambda p: (_away(y[start:p]) + _away(y[p:end]), p))
    return tuple(found)


def _away(part: Floats) -> float:
    return float(np.abs(part - np.median(part)).sum())


def _around(y: Floats) -> Floats:
    """The median of AROUND sessions on both sides of each, which follows steps and drifts."""
    spans = (y[max(0, i - AROUND) : i + AROUND + 1] for i in range(len(y)))
    return np.array([np.median(span) for span in spans])


def _near(y: Floats, fitted: Floats) -> Floats:
    """What lies far from the fit is brought nearer."""
    left = y - fitted
    most = FAR * NORMAL * float(np.median(np.abs(left)))
    return fitted + np.clip(left, -most, most) if most**2 > ROUNDING else y


def _cheapest(y: Floats) -> tuple[Points, bool, float]:
    """Steps, line and resemblance; none of fewer sessions than two parts need."""
    n = len(y)
    if n < 2 * FEWEST:
        return (), False, 0.0
    every = []
    for line in (False, True):
        own: list[tuple[float, Points, bool, float]] = []
        for count in range(n // FEWEST):
            points = _places(y, count, line)
            cost, resemblance = _deviance(y, _terms(n, points, line))
            own.append((cost + STEP * count + LINE * line, points, line, resemblance))
            if min(own[-2:]) > min(own):  # a dip needs two steps
                break
        every += own
    return min(every)[1:]


def _places(y: Floats, count: int, line: bool) -> Points:
    """Where so many steps fit best (least squares), with or without a line beside them."""
    if not line or not count:
        return partition(y, count)
    t = np.arange(len(y))
    lag = len(y) // 4  # over which most pairs have no step between them
    slopes = (0.0, float(np.polyfit(t, y, 1)[0]), float(np.median(y[lag:] - y[:-lag])) / lag)
    found = []
    for slope in slopes:
        points: Points = ()
        for _ in range(ROUNDS):
            before, points = points, partition(y - slope * t, count)
            factors, left = _solve(y, _terms(len(y), points, line))
            slope = float(factors[-1])
            if points == before:
                break
        found.append((float(left @ left), points))
    return min(found)[1]


def partition(y: Floats, count: int) -> Points:
    """The parts, one more than steps, whose squares around their means are least."""
    n = len(y)
    sums, squares = (np.r_[0.0, np.cumsum(v)] for v in (y - y.mean(), (y - y.mean()) ** 2))
    ends = np.arange(n + 1)
    lengths = ends[None, :] - ends[:, None]
    inside = squares[None, :] - squares[:, None]
    inside -= (sums[None, :] - sums[:, None]) ** 2 / np.maximum(lengths, 1)
    cost = np.where(lengths >= FEWEST, inside, math.inf)  # of the part from row to column
    least, origins = cost[0], []
    for _ in range(count):
        total = least[:, None] + cost
        origins.append(total.argmin(axis=0))
        least = total.min(axis=0)
    points: list[int] = []
    end = n
    for origin in reversed(origins):
        end = int(origin[end])
        points.insert(0, end)
    return tuple(points)


def _terms(n: int, points: Points, line: bool) -> Floats:
    """float64[sessions, terms]: level, steps, and the line as the last one."""
    t = np.arange(n, dtype=np.float64)
    return np.stack([np.ones(n), *(t >= p for p in points), *([t] if line else [])], axis=1)


def _solve(y: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """Factors of the terms, and what is left."""
    factors = np.asarray(np.linalg.lstsq(terms, y, rcond=None)[0], np.float64)
    return factors, y - terms @ factors


def _deviance(y: Floats, terms: Floats) -> tuple[float, float]:
    """-2 log likelihood, but for a constant, and the resemblance for which it is least."""
    found = []
    for r in RESEMBLANCES:
        both = np.column_stack([terms, y])
        both = np.r_[both[:1] * math.sqrt(1 - r**2), both[1:] - r * both[:-1]]
        left = _solve(both[:, -1], both[:, :-1])[1]
        squares = max(float(left @ left) / len(y), ROUNDING)
        found.append((len(y) * math.log(squares) - math.log(1 - r**2), r))
    return min(found)

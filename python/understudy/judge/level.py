"""Where the figures of one set of nights lie: what `accept` judges marks by.

All are logarithms, float64[..., nights], one value for each night, by time. The interval is the
wider one of two, each end of which holds with the probability CONFIDENCE:

* that of the median by order statistics, interpolated (Hettmansperger and Sheather, Statistics and
  Probability Letters 4, 1986), which assumes no distribution but independent nights;
* that of Student's t of a line over the nights at its ends, so that what drifts must reach the
  limit from the first night to the last. A night is assumed to keep RESEMBLANCE of the deviation
  of the last, since a few nights cannot tell how much they resemble each other. Nights farther
  than FAR scatters from the median are moved there, so that one bad night moves the line little.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
CONFIDENCE = 0.95
RESEMBLANCE = 0.25
FAR = 3.0
FEWEST = 5  # nights: fewer have no interval of the median
NORMAL = 1.4826  # standard deviation over the median of absolute deviations


def interval(levels: Floats) -> tuple[Floats, Floats, Floats]:
    """The median, and both ends of its interval, [...]; without bound for fewer than FEWEST
    nights, and where half of the nights or more have no finite value."""
    levels = np.asarray(levels, np.float64)
    nights = levels.shape[-1]
    middle = np.asarray(np.median(levels, axis=-1))
    if nights < FEWEST:
        return middle, np.full(middle.shape, -np.inf), np.full(middle.shape, np.inf)
    with np.errstate(invalid="ignore"):
        away = np.abs(levels - middle[..., None])
        scatter = NORMAL * np.median(away, axis=-1)[..., None]
        reach = np.where(scatter > 0, FAR * scatter, np.inf)  # none if half of them are equal
        near = np.clip(levels, middle[..., None] - reach, middle[..., None] + reach)
        low, high = _line(near)
    below, above = _order(np.sort(levels, axis=-1))
    known = np.isfinite(low) & np.isfinite(high)
    return (
        middle,
        np.where(known, np.minimum(low, below), -np.inf),
        np.where(known, np.maximum(high, above), np.inf),
    )


def variability(levels: Floats) -> tuple[Floats, Floats, Floats]:
    """Standard deviation over mean of a log-normal distribution with the variance of the nights,
    and both ends of its interval, as of a normal distribution of the logarithms."""
    from scipy import special

    levels = np.asarray(levels, np.float64)
    nights = levels.shape[-1]
    own = _resembling(nights)
    free = _free(nights, 1)
    squares = ((levels - levels.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    variance = squares / (nights - own.sum() / nights)
    low, high = (
        variance * free / special.chdtri(free, p) if free > 0 else np.full(variance.shape, end)
        for p, end in ((1 - CONFIDENCE, 0.0), (CONFIDENCE, np.inf))
    )
    return _relative(variance), _relative(low), _relative(high)


def _relative(variance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.expm1(np.minimum(variance, 700.0))))


def _resembling(nights: int) -> Floats:
    """Correlations of the nights, [nights, nights]."""
    apart = np.abs(np.subtract.outer(np.arange(nights), np.arange(nights)))
    return np.asarray(RESEMBLANCE**apart, np.float64)


def _free(nights: int, fitted: int) -> float:
    """Degrees of freedom."""
    return nights * (1 - RESEMBLANCE**2) / (1 + RESEMBLANCE**2) - fitted


def _line(levels: Floats) -> tuple[Floats, Floats]:
    """The lower and the upper end of the line of least squares, of its two ends."""
    from scipy import special

    nights = levels.shape[-1]
    design = np.stack([np.ones(nights), np.linspace(-1, 1, nights)], axis=1)
    fit = np.linalg.pinv(design)
    rest = np.eye(nights) - design @ fit
    own = _resembling(nights)
    variance = ((levels @ rest) ** 2).sum(axis=-1) / np.trace(rest @ own)
    ends = np.array([[1, -1], [1, 1]]) @ fit  # of both ends, the weight of each night
    factor = special.stdtrit(_free(nights, 2), CONFIDENCE) * np.sqrt(np.diag(ends @ own @ ends.T))
    at, half = levels @ ends.T, np.sqrt(variance)[..., None] * factor
    return (at - half).min(axis=-1), (at + half).max(axis=-1)


def _order(ordered: Floats) -> tuple[Floats, Floats]:
    """Both ends of the interval of the median of ordered values, interpolated."""
    from scipy import special

    nights = ordered.shape[-1]
    beyond = special.bdtr(np.arange(nights), nights, 0.5)  # that at most so many lie below
    rank = int((beyond <= 1 - CONFIDENCE).sum())
    outer, inner = beyond[rank - 1], beyond[rank]
    share = (1 - CONFIDENCE - outer) / (inner - outer)
    part = (nights - rank) * share / (rank + (nights - 2 * rank) * share)
    return (
        _between(ordered[..., rank - 1], ordered[..., rank], part),
        _between(ordered[..., nights - rank], ordered[..., nights - rank - 1], part),
    )


def _between(outer: Floats, inner: Floats, part: float) -> Floats:
    """Nothing of a value without bound is inside of it."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(np.isfinite(outer), outer + part * (inner - outer), outer))

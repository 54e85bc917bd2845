"""How much sessions resemble those before them, for what `accept` and `trend` say of them.

Sessions that follow each other, as on a file system that fills up, tell less than as
many independent ones: n sessions count as n / f. The factor is f = 1 + 2 (r1 + r2 + ...), with the
autocorrelations of the deviations from the median of their side, up to the first that is not
positive (Geyer, Practical Markov Chain Monte Carlo, 1992). They are of ranks, so that one bad
night moves them little, and are averaged over all figures of a comparison, which share their
sessions.

The deviations of few sessions from their own middle are smaller than those from the true one, by
the share f / n of the variance, and look less alike by as much; both are corrected.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
STEPS = 20  # until the factor and its correction agree
FEWEST = 10  # sessions in all; fewer tell nothing of it


def lags(sides: Sequence[Floats]) -> Floats:
    """float64[..., lags] of sides float64[..., sessions], by time; none of too few sessions.
    `factor` corrects them: those of independent sessions are a bit below 0."""
    from scipy import stats  # 0.5 s to import: only who judges pays

    counts = [side.shape[-1] for side in sides]
    total = sum(counts)
    shape = sides[0].shape[:-1]
    if total < FEWEST:
        return np.zeros((*shape, 0))
    ranks = stats.rankdata(np.concatenate(_residuals(sides), axis=-1), axis=-1)
    parts = np.split(ranks, np.cumsum(counts)[:-1], axis=-1)
    parts = [part - part.mean(axis=-1, keepdims=True) for part in parts]
    power = sum((part**2).sum(axis=-1) for part in parts) / total
    found = []
    for lag in range(1, max(1, max(counts) // 3) + 1):
        products = sum((p[..., :-lag] * p[..., lag:]).sum(axis=-1) for p in parts)
        pairs = sum(max(0, count - lag) for count in counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            found.append(np.where(power > 0, products / pairs / power, -len(sides) / total))
    return np.stack(found, axis=-1)


def factor(of: Floats, sessions: int, sides: int = 2) -> Floats:
    """f of autocorrelations float64[..., lags]; at least 1, at most a third of the sessions."""
    found = np.ones(of.shape[:-1])
    if not of.shape[-1]:
        return found
    for _ in range(STEPS):  # f tells how much too small the autocorrelations are, and they tell f
        lost = (found * sides / sessions)[..., None]
        whole = of * (1 - lost) + lost
        positive = np.cumprod(whole > 0, axis=-1)
        found = np.clip(1 + 2 * (whole * positive).sum(axis=-1), 1, max(1.0, sessions / 3))
    return np.asarray(found)


def pooled(every: Sequence[Sequence[float]], sessions: Sequence[int]) -> Floats:
    """The mean autocorrelations over the figures of a comparison, by their numbers of sessions."""
    longest = max(map(len, every), default=0)
    made = []
    for lag in range(longest):
        known = [(one[lag], n) for one, n in zip(every, sessions, strict=True) if lag < len(one)]
        made.append(sum(r * n for r, n in known) / sum(n for _, n in known))
    return np.array(made)


def _residuals(sides: Sequence[Floats]) -> list[Floats]:
    return [side - np.median(side, axis=-1, keepdims=True) for side in sides]

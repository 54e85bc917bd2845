"""How well a skeletal application stands for its application: errors of throughput.

The application and its skeleton run in turn, as pairs, so that both meet the same machine. The
errors are those of the Skel paper (Euro-Par 2012, Figs. 2 and 3): of the average and of the
maximum throughput, relative to the application's. Each has an interval, by a bootstrap over the
pairs, because two programs that are alike differ as well on a machine that others use.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UnderstudyError
from understudy.judge.limits import LIMIT_FRACTION

LIMIT = LIMIT_FRACTION
CONFIDENCE = 0.95
RESAMPLES = 9999
SEED = 2012
AVERAGE, MAXIMUM = "average", "maximum"

Runs = Sequence[Sequence[float]]  # throughput in bytes/s, of each step of each run
Floats = NDArray[np.float64]
# Of the throughputs float64[..., runs, steps].
STATISTICS: Mapping[str, Callable[[Floats], Floats]] = {
    AVERAGE: lambda speeds: np.asarray(speeds.mean(axis=(-2, -1))),
    MAXIMUM: lambda speeds: np.asarray(speeds.max(axis=(-2, -1))),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value and the interval that holds it with the probability CONFIDENCE; of one run alone,
    nothing is known of it, and the interval is infinite."""

    value: float
    low: float
    high: float

    def crosses(self, bound: float) -> bool:
        return self.low <= bound <= self.high

    @property
    def least(self) -> float:
        """The smallest size of the value that the interval allows; 0 where it holds 0."""
        return max(0.0, self.low, -self.high)


def state(error: Estimate, limit: float = LIMIT) -> str:
    """within: the whole interval lies within ±limit; outside: none of it does; else undecided."""
    if error.crosses(limit) or error.crosses(-limit):
        return "undecided"
    return "within" if abs(error.value) < limit else "outside"


def errors(application: Runs, skeleton: Runs) -> dict[str, Estimate]:
    """Relative errors (skeleton - application) / application of the STATISTICS of throughput.

    Row k of both is pair k; pairs are drawn with replacement, together. An `UnderstudyError` where
    the numbers of runs differ.
    """
    if len(application) != len(skeleton):
        raise UnderstudyError(
            f"{len(application)} runs of the application and {len(skeleton)} of the skeleton make "
            "no pairs; expected as many of both"
        )
    theirs, ours = _table(application), _table(skeleton)
    if theirs.shape != ours.shape:
        raise UnderstudyError(
            f"runs of {theirs.shape[1]} and of {ours.shape[1]} steps: the maximum of more steps "
            "is higher; expected as many in both"
        )
    return {
        name: _estimate(
            lambda pairs, of=of: of(ours[pairs]) / of(theirs[pairs]) - 1, len(theirs)
        )
        for name, of in STATISTICS.items()
    }  # fmt: skip


def ratio(first: Runs, second: Runs) -> Estimate:
    """Average throughput of the first over that of the second; their runs are drawn apart from
    each other, as they were not made in pairs."""
    above, below = _table(first), _table(second)
    average = STATISTICS[AVERAGE]
    return _estimate(
        lambda a, b: average(above[a]) / average(below[b]), len(above), len(below)
    )  # fmt: skip


def average(runs: Runs) -> Estimate:
    """The mean of the runs, of which some are drawn anew."""
    table = _table(runs)
    return _estimate(lambda drawn: STATISTICS[AVERAGE](table[drawn]), len(table))


def median_change(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Median over the pairs of after / before - 1; pairs are drawn with replacement."""
    if len(before) != len(after) or not len(before):
        raise UnderstudyError(f"{len(before)} and {len(after)} values make no pairs")
    ratios = np.asarray(after, np.float64) / np.asarray(before, np.float64)
    return _estimate(lambda pairs: np.asarray(np.median(ratios[pairs], axis=-1) - 1), len(ratios))


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The fastest on average of several; `lead` is its ratio to the next, None of one alone.

    `decided` where the interval of that ratio does not hold 1.
    """

    name: str
    second: str | None
    lead: Estimate | None

    @property
    def decided(self) -> bool:
        return self.lead is not None and not self.lead.crosses(1)


def winner(runs: Mapping[str, Runs]) -> Winner:
    """Which of the names has the highest average throughput."""
    average = STATISTICS[AVERAGE]
    first, *others = sorted(runs, key=lambda name: -float(average(_table(runs[name]))))
    if not others:
        return Winner(name=first, second=None, lead=None)
    return Winner(name=first, second=others[0], lead=ratio(runs[first], runs[others[0]]))


def share_within(found: Iterable[Estimate], limit: float = LIMIT) -> float:
    """Share of errors whose value is within ±limit, as the paper counts its cases."""
    inside = [abs(error.value) <= limit for error in found]
    if not inside:
        raise UnderstudyError("no error to count: expected at least one case")
    return sum(inside) / len(inside)


def _table(runs: Runs) -> Floats:
    """float64[runs, steps]"""
    lengths = {len(run) for run in runs}
    if len(lengths) != 1 or 0 in lengths:
        raise UnderstudyError(
            f"runs of {', '.join(map(str, sorted(lengths))) or 'no'} steps; expected runs with as "
            "many steps as each other, at least one"
        )
    table = np.asarray(runs, dtype=np.float64)
    if not (table > 0).all() or not np.isfinite(table).all():
        raise UnderstudyError("a throughput that is not above 0; expected bytes/s of every step")
    return table


def _estimate(statistic: Callable[..., Floats], *counts: int) -> Estimate:
    """Percentile interval; `statistic` takes an array int64[..., runs] of indices per count."""
    from scipy import stats  # 0.5 s to import: only who judges pays

    indices = [np.arange(count) for count in counts]
    value = float(statistic(*indices))
    if min(counts) < 2:
        return Estimate(value=value, low=-np.inf, high=np.inf)
    found = stats.bootstrap(
        indices,
        lambda *drawn, axis: statistic(*drawn),
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return Estimate(value=value, low=float(found.low), high=float(found.high))

"""How well a skeletal application stands for its application: errors of throughput.

Application and skeleton run twice in each round, in turn, so that both meet the same machine. The
second run of each is its control: what it differs from the first is the noise of the machine, the
floor below which no error can be told. Errors and controls have an interval, by a bootstrap over
the rounds, and one rule makes a verdict of them.

The verdict is that of the overall throughput, bytes over time: rates are summarized by their
harmonic mean, and the costs are summarized before their ratio is taken (Hoefler and Belli,
Scientific Benchmarking of Parallel Computing Systems, SC15, rules 3 and 4). The average and the
maximum throughput are those of the Skel paper (Euro-Par 2012, Figs. 2 and 3).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.errors import UnderstudyError
from understudy.judge.statistics.limits import LIMIT_FRACTION

LIMIT = LIMIT_FRACTION
CONFIDENCE = 0.95
RESAMPLES = 9999
SEED = 2012
APPLICATION, SKELETON = "application", "skeleton"
CONTROLS = {APPLICATION: "application-control", SKELETON: "skeleton-control"}  # by arm
WITHIN, OUTSIDE, UNDECIDED = "within", "outside", "undecided"
OVERALL, AVERAGE, MAXIMUM = "overall", "average", "maximum"

Runs = Sequence[Sequence[float]]  # throughput in bytes/s, of each step of each run
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """`of_steps` makes float64[runs] of throughputs float64[runs, steps], `of_runs` one number of
    these, along the last axis."""

    of_steps: Callable[[Floats], Floats]
    of_runs: Callable[[Floats], Floats]


STATISTICS: Mapping[str, Statistic] = {
    # Every step has the same bytes: the harmonic mean is that of bytes over time.
    OVERALL: Statistic(
        of_steps=lambda speeds: np.asarray((1 / speeds).mean(axis=-1)),
        of_runs=lambda times: np.asarray(1 / times.mean(axis=-1)),
    ),
    AVERAGE: Statistic(
        of_steps=lambda speeds: np.asarray(speeds.mean(axis=-1)),
        of_runs=lambda means: np.asarray(means.mean(axis=-1)),
    ),
    MAXIMUM: Statistic(
        of_steps=lambda speeds: np.asarray(speeds.max(axis=-1)),
        of_runs=lambda maxima: np.asarray(maxima.max(axis=-1)),
    ),
}
OF_THE_PAPER = (AVERAGE, MAXIMUM)


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

    @property
    def reach(self) -> float:
        """The largest size of the value that the interval allows."""
        return max(abs(self.low), abs(self.high))


def state(error: Estimate, floor: float, limit: float = LIMIT) -> str:
    """within: the interval of the error lies within ±limit, and so do those of the controls, which
    reach as far as `floor` from 0; outside: it lies beyond the limit, and beyond the floor; else
    undecided."""
    if max(error.reach, floor) <= limit:
        return WITHIN
    return OUTSIDE if error.least > max(limit, floor) else UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """One statistic of the skeleton against that of the application, and of each of them against
    itself, by arm."""

    error: Estimate
    controls: Mapping[str, Estimate]

    @property
    def floor(self) -> float:
        """How far from 0 the interval of a control reaches."""
        return max(control.reach for control in self.controls.values())

    def state(self, limit: float = LIMIT) -> str:
        return state(self.error, self.floor, limit)


def errors(
    application: Runs, skeleton: Runs, controls: tuple[Runs, Runs] | None = None
) -> dict[str, Error]:
    """Relative errors (skeleton - application) / application by the name of the statistic, of both
    runs of each in a round, with the controls (second - first) / first.

    Row k of all is round k; rounds are drawn with replacement. Without `controls`, those of the
    application and of the skeleton, of every two rounds the second is the control. An
    `UnderstudyError` where the numbers of runs or steps differ.
    """
    given = (application, skeleton, *(controls or ()))
    counts = [len(runs) for runs in given]
    if len(set(counts)) > 1:
        raise UnderstudyError(
            f"{counts[0]} runs of the application and {counts[1]} of the skeleton make no pairs; "
            "expected as many of both, and of their controls"
        )
    tables = [_table(runs) for runs in given]
    if len({table.shape for table in tables}) > 1:
        raise UnderstudyError(
            f"runs of {tables[0].shape[1]} and of {tables[1].shape[1]} steps: the maximum of more "
            "steps is higher; expected as many in both"
        )
    if controls is None:
        if counts[0] < 2:
            raise UnderstudyError("one run of each: the noise is not known; expected at least two")
        even = counts[0] // 2 * 2
        tables = [table[first:even:2] for first in (0, 1) for table in tables]
    return {name: _error(statistic, *tables) for name, statistic in STATISTICS.items()}


def _error(
    statistic: Statistic, theirs: Floats, ours: Floats, theirs_again: Floats, ours_again: Floats
) -> Error:
    both = [np.hstack(pair) for pair in ((theirs, theirs_again), (ours, ours_again))]
    return Error(
        error=_change(statistic, *both),
        controls={
            APPLICATION: _change(statistic, theirs, theirs_again),
            SKELETON: _change(statistic, ours, ours_again),
        },
    )


def _change(statistic: Statistic, before: Floats, after: Floats) -> Estimate:
    """Change of the statistic of float64[rounds, steps], whose rounds are drawn together."""
    first, second = statistic.of_steps(before), statistic.of_steps(after)
    return _estimate(
        lambda rounds: statistic.of_runs(second[rounds]) / statistic.of_runs(first[rounds]) - 1,
        len(first),
    )


def ratio(first: Runs, second: Runs, of: str = AVERAGE) -> Estimate:
    """Average (or another statistic) of the first over that of the second; their runs are drawn
    apart from each other, as they were not made in pairs."""
    statistic = STATISTICS[of]
    above, below = (statistic.of_steps(_table(runs)) for runs in (first, second))
    return _estimate(
        lambda a, b: statistic.of_runs(above[a]) / statistic.of_runs(below[b]),
        len(above),
        len(below),
    )


def average(runs: Runs) -> Estimate:
    """The mean of the runs, of which some are drawn anew."""
    statistic = STATISTICS[AVERAGE]
    means = statistic.of_steps(_table(runs))
    return _estimate(lambda drawn: statistic.of_runs(means[drawn]), len(means))


def median_change(before: Sequence[float], after: Sequence[float]) -> Estimate:
    """Median over the pairs of after / before - 1; pairs are drawn with replacement."""
    if len(before) != len(after) or not len(before):
        raise UnderstudyError(f"{len(before)} and {len(after)} values make no pairs")
    ratios = np.asarray(after, np.float64) / np.asarray(before, np.float64)
    return _estimate(lambda pairs: np.asarray(np.median(ratios[pairs], axis=-1) - 1), len(ratios))


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """The one with the highest overall throughput of several; `lead` is its ratio to the next,
    None of one alone.

    `decided` where the interval of that ratio does not hold 1.
    """

    name: str
    second: str | None
    lead: Estimate | None

    @property
    def decided(self) -> bool:
        return self.lead is not None and not self.lead.crosses(1)


def winner(runs: Mapping[str, Runs]) -> Winner:
    """Which of the names has the highest overall throughput."""
    statistic = STATISTICS[OVERALL]
    overall = {
        name: float(statistic.of_runs(statistic.of_steps(_table(of)))) for name, of in runs.items()
    }
    first, *others = sorted(runs, key=lambda name: -overall[name])
    if not others:
        return Winner(name=first, second=None, lead=None)
    lead = ratio(runs[first], runs[others[0]], OVERALL)
    return Winner(name=first, second=others[0], lead=lead)


def count_within(estimates: Iterable[Estimate], limit: float = LIMIT) -> int:
    """The number of errors whose value is within ±limit, as the paper counts its cases."""
    return sum(abs(estimate.value) <= limit for estimate in estimates)


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
    interval = stats.bootstrap(
        indices,
        lambda *drawn, axis: statistic(*drawn),
        vectorized=True,
        n_resamples=RESAMPLES,
        confidence_level=CONFIDENCE,
        method="percentile",
        random_state=np.random.default_rng(SEED),
    ).confidence_interval
    return Estimate(value=value, low=float(interval.low), high=float(interval.high))

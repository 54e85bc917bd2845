"""Does a replica predict the I/O time of its application on another file system?

Application, replica and the application again (control) run in turn, under Darshan. Each round
gives a ratio of the replica's time to the mean of the two runs of the application, and one of the
control to the application, which is noise alone. Both have an interval, by a bootstrap over the
rounds. Of each case, application x storage, one measure is the headline.

A storage that tells what it was asked for (understudy-slowfs) is judged by that first, each kind
of request by itself: counts are exact, whatever the load. Time decides beside them only where the
waits of the storage are at least half of the application's I/O time; the rest is the host's.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from understudy.contracts.run import Run
from understudy.judge.statistics import paired_errors
from understudy.judge.statistics.conditions import OBSERVED, place_of
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.paired_errors import Estimate, median_change

APPLICATION, REPLICA, CONTROL = "application", "replica", "control"
ARMS = (APPLICATION, REPLICA, CONTROL)
HEADLINE = "io_slowest_rank_s"
MEASURES = {
    HEADLINE: "I/O time of the slowest rank",
    "io_all_ranks_s": "I/O time of all ranks",
    "metadata_slowest_rank_s": "metadata time of the slowest rank",
    "metadata_all_ranks_s": "metadata time of all ranks",
    "posix_all_ranks_s": "POSIX, all ranks",
    "stdio_all_ranks_s": "STDIO, all ranks",
    "mpiio_slowest_rank_s": "MPI-IO, slowest rank",
    "mpiio_all_ranks_s": "MPI-IO, all ranks",
    "h5d_all_ranks_s": "HDF5 datasets, all ranks",
    "dumps_s": "first open to last close of the dumps",
    "elapsed_s": "run time",
}
WITHIN, OUTSIDE, UNDECIDED = paired_errors.WITHIN, paired_errors.OUTSIDE, paired_errors.UNDECIDED
FAILED = "failed"

# Requests, by the kinds of the storage; looks at names depend on what the kernel still knows.
KINDS = ("open", "create", "stat", "remove", "read", "write", "flush", "unaligned_write")
FEW, SHARE, SHARE_OF_LOOKS = 3, 0.02, 0.07
WAITS = 0.5  # share of the I/O time from which on time decides

Values = Mapping[str, Sequence[float]]  # of one measure, by arm; in the order of the rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """One measure of one case: medians over the rounds, the error of the replica, and what the
    application differs from itself."""

    measure: str
    application_s: float
    replica_s: float
    error: Estimate
    control: Estimate
    rounds: int

    @property
    def scatter(self) -> float:
        """The farthest that the interval of the control reaches from 0."""
        return self.control.reach

    def state(self, limit: float = LIMIT_FRACTION) -> str:
        return paired_errors.state(self.error, self.scatter, limit)


def error(measure: str, values: Values) -> Error | None:
    """None where the application spends no time on it, in some round."""
    application, control, replica = (values[arm] for arm in (APPLICATION, CONTROL, REPLICA))
    if not application or min(*application, *control) <= 0:
        return None
    both = [(a + c) / 2 for a, c in zip(application, control, strict=True)]
    return Error(
        measure=measure,
        application_s=median(both),
        replica_s=median(replica),
        error=median_change(both, replica),
        control=median_change(application, control),
        rounds=len(replica),
    )


def as_many(kind: str, requests: float, others: float) -> bool:
    """True if two numbers of requests of a kind are equal, but for a few."""
    share = SHARE_OF_LOOKS if kind == "stat" else SHARE
    return abs(others - requests) <= max(FEW, share * requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Requests of one kind, medians over the rounds."""

    kind: str
    application: float
    replica: float
    control: float

    @property
    def state(self) -> str:
        if as_many(self.kind, self.application, self.replica):
            return WITHIN
        again = as_many(self.kind, self.application, self.control)
        return OUTSIDE if again else UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An application on a file system, in one session. `failed` counts its runs without a
    measurement; a round with one is left out. `requests` are empty where the storage does not tell
    them; `waits` is the share of the application's I/O time that these waited."""

    application: str
    place: str
    storage: str
    workload: str
    errors: Mapping[str, Error]
    runs: int
    failed: int
    requests: Sequence[Requests] = ()
    waits: float | None = None

    @property
    def headline(self) -> Error | None:
        return self.errors.get(HEADLINE)

    def state(self, limit: float = LIMIT_FRACTION) -> str:
        """That of the requests and, where time decides, of the headline; failed where any run
        failed."""
        if self.failed or self.headline is None:
            return FAILED
        states = {request.state for request in self.requests}
        if not self.requests or (self.waits is not None and self.waits >= WAITS):
            states.add(self.headline.state(limit))
        return next(state for state in (OUTSIDE, UNDECIDED, WITHIN) if state in states)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Every case is counted once, failed and undecided ones too."""

    within: int
    outside: int
    undecided: int
    failed: int

    @property
    def cases(self) -> int:
        return self.within + self.outside + self.undecided + self.failed

    @property
    def share_within(self) -> float | None:
        """Share of the decided cases; None where there is none."""
        decided = self.within + self.outside
        return self.within / decided if decided else None


def tally(cases: Iterable[Case], limit: float = LIMIT_FRACTION) -> Tally:
    states = [case.state(limit) for case in cases]
    return Tally(**{name: states.count(name) for name in (WITHIN, OUTSIDE, UNDECIDED, FAILED)})


def cases(records: Iterable[Run]) -> list[Case]:
    """The cases of run records; those of other producers are left out."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in records:
        if run.producer.name == OBSERVED:
            name = str(run.producer.options.get("application", run.identity.case))
            key = (name, place_of(run), str(run.identity.session))
            groups.setdefault(key, []).append(run)
    return [_case(name, place, runs) for (name, place, _), runs in sorted(groups.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All cases of a page."""

    cases: tuple[Case, ...]
    key: str = "transfer"  # an anchor of the page

    @property
    def tally(self) -> Tally:
        return tally(self.cases)


def _case(application: str, place: str, runs: Sequence[Run]) -> Case:
    good = [run for run in runs if not run.failed]
    rounds: dict[int, dict[str, Run]] = {}
    for run in good:
        rounds.setdefault(run.identity.round or 0, {})[run.identity.arm] = run
    complete = [rounds[n] for n in sorted(rounds) if set(rounds[n]) >= set(ARMS)]
    errors = {}
    for measure in MEASURES:
        streams = _streams((run for arm_runs in complete for run in arm_runs.values()), measure)
        values = {
            arm: [_value(arm_runs[arm], measure, streams) for arm_runs in complete] for arm in ARMS
        }
        if all(math.isfinite(v) for some in values.values() for v in some):
            errors[measure] = error(measure, values)
    counts = []
    for kind in KINDS:
        told = {
            a: [_value(arm_runs[a], f"{kind}_requests", {None}) for arm_runs in complete]
            for a in ARMS
        }
        if complete and all(math.isfinite(n) for some in told.values() for n in some):
            middle = {arm: median(some) for arm, some in told.items()}
            counts.append(Requests(kind=kind, **middle))
    any_run = (good or runs)[0]
    return Case(
        application=application,
        place=place,
        storage=any_run.storage.type or "unknown",
        workload=any_run.producer.workload.name if any_run.producer.workload else "",
        errors={k: v for k, v in errors.items() if v is not None},
        runs=len(runs),
        failed=len(runs) - len(good),
        requests=counts,
        waits=_waits([arm_runs[APPLICATION] for arm_runs in complete]) if counts else None,
    )


def _waits(runs: Sequence[Run]) -> float | None:
    """The share of the I/O time of all ranks that requests waited; None where there is none."""
    waited, spent = (
        median(_value(run, metric, {None}) for run in runs)
        for metric in ("waited_s", "io_all_ranks_s")
    )
    return waited / spent if spent > 0 else None


def _streams(runs: Iterable[Run], measure: str) -> set[str | None]:
    """The streams that every run has a sample of; None stands for all of a run together."""
    seen = [{s.stream for s in run.samples if s.metric == measure} for run in runs]
    return set.intersection(*seen) if seen else set()


def _value(run: Run, measure: str, streams: set[str | None]) -> float:
    """The sum over these streams; NaN where there is none."""
    values = [s.value for s in run.samples if s.metric == measure and s.stream in streams]
    return sum(values) if values else math.nan

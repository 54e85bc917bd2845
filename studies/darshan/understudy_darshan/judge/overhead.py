"""Overhead of Darshan's instrumentation: a program's I/O time with Darshan and without it.

In each round the program runs without Darshan twice (the second is the control) and once under
each version. A round gives a ratio of the time under Darshan to the mean of the two without it,
and one of the control to the first, which is noise alone. Both have an interval, by a bootstrap
over the rounds, as those of the transfer of a replica.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from understudy.contracts.run import Run
from understudy.judge.fidelity import transfer
from understudy.judge.statistics.conditions import UNDER, place_of

WITHOUT, CONTROL = "without-darshan", "control"
CASE = "overhead-"  # what the name of the workload begins with
DARSHAN = "darshan"  # the option that names the version
LIMIT_PERCENT = 2.0
METRICS = ("total_s", "elapsed_s")  # first open to last close: IOR's, and the player's


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Overhead of one version: `change` is the share by which the I/O time grows, `control` that
    by which two arms without Darshan differ."""

    name: str
    error: transfer.Error

    def state(self, limit: float) -> str:
        """within: the interval of the overhead ends below the limit, and the control scatters
        less; outside: it begins above the limit and above that scatter; else undecided. Less time
        under Darshan is no overhead."""
        change, scatter = self.error.error, self.error.scatter
        if change.high <= limit and scatter <= limit:
            return transfer.WITHIN
        return transfer.OUTSIDE if change.low > max(limit, scatter) else transfer.UNDECIDED


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One job: seconds by arm, in the order of the rounds that all arms have ended."""

    name: str
    place: str
    ranks: int
    seconds: Mapping[str, Sequence[float]]
    versions: Mapping[str, str]  # of Darshan, by arm
    failed: int  # runs without a time

    @property
    def overheads(self) -> list[Overhead]:
        errors = [(arm, self._error(arm)) for arm in self.seconds if arm.startswith(UNDER)]
        return [Overhead(name=self.versions[arm], error=e) for arm, e in errors if e is not None]

    def _error(self, arm: str) -> transfer.Error | None:
        return transfer.error(
            METRICS[0],
            {
                transfer.APPLICATION: self.seconds[WITHOUT],
                transfer.CONTROL: self.seconds[CONTROL],
                transfer.REPLICA: self.seconds[arm],
            },
        )


def is_of(run: Run) -> bool:
    """True if a run is an arm of such a job."""
    arm = run.identity.arm or ""
    return arm in (WITHOUT, CONTROL) or arm.startswith(UNDER)


def cases(all_runs: Iterable[Run]) -> list[Case]:
    """The jobs among run records; other records are left out."""
    jobs: dict[tuple[Any, ...], list[Run]] = {}
    for run in all_runs:
        if is_of(run):
            key = (str(run.identity.case), place_of(run), str(run.identity.session))
            jobs.setdefault(key, []).append(run)
    judged = (_case(case, place, runs) for (case, place, _), runs in sorted(jobs.items()))
    return [case for case in judged if case is not None]


def _case(name: str, place: str, runs: Sequence[Run]) -> Case | None:
    """None where an arm is missing in every round."""
    arms = {run.identity.arm or "" for run in runs}
    rounds: dict[int, dict[str, float]] = {}
    for run in runs:
        value = seconds(run)
        if value is not None:
            rounds.setdefault(run.identity.round or 0, {})[run.identity.arm or ""] = value
    whole = [values for _, values in sorted(rounds.items()) if set(values) == arms]
    if not {WITHOUT, CONTROL} < arms or not whole:
        return None
    ranks = max(
        int((run.measurement or {})["environment"]["ranks"])
        for run in runs
        if run.measurement is not None
    )
    order = [WITHOUT, CONTROL, *sorted(arms - {WITHOUT, CONTROL})]
    return Case(
        name=name,
        place=place,
        ranks=ranks,
        seconds={arm: [values[arm] for values in whole] for arm in order},
        versions={
            str(run.identity.arm): str(run.producer.options.get(DARSHAN, run.identity.arm))
            for run in runs
        },
        failed=len(runs) - sum(map(len, rounds.values())),
    )


def seconds(run: Run) -> float | None:
    """From the first open of any process to the last close; None of a run that failed."""
    if run.failed:
        return None
    values = {s.metric: s.value for s in run.samples if s.stream in ("write", None)}
    return next((values[metric] for metric in METRICS if metric in values), None)

"""Rows of the page on programs that write by themselves: an application beside its skeleton.

Throughput is that of a step: payload of all processes over the time from the first open to the
last close on any of them. docs/metrics.md defines the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from understudy.contracts.measurement import Processes, ProgramDump, ProgramRun
from understudy.errors import UnderstudyError
from understudy.judge.statistics import paired_errors
from understudy.judge.statistics.conditions import SCALARS_BYTES, Case, Condition, Measured
from understudy.judge.statistics.labels import parameters
from understudy.judge.statistics.paired_errors import (
    APPLICATION,
    CONTROLS,
    OVERALL,
    SKELETON,
    UNDECIDED,
    WITHIN,
)

# Parameters of ADIOS, and of ADIOS2's engines.
AGGREGATORS = ("num_aggregators", "NumAggregators", "NumSubFiles", "SubStreams")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Throughput in bytes/s of the steps of a condition."""

    condition: Condition
    average: float
    low: float
    high: float


def kind(condition: Condition) -> str:
    assert condition.program is not None, "a program's condition"
    return condition.program.kind


def fault(condition: Condition) -> str:
    """The fault that was injected; empty without one."""
    program = condition.program
    assert program is not None, "a program's condition"
    words = []
    if program.slow_rank:
        words.append(f"rank {program.slow_rank.rank} made slow")
    if program.extra_collective_bytes:
        words.append("an extra collective")
    return " and ".join(words)


def disturbed(condition: Condition) -> bool:
    """True if a fault was injected, so that its throughput means nothing."""
    return bool(fault(condition))


def is_control(condition: Condition) -> bool:
    """True if it is a repeated program, which is compared with itself alone."""
    return condition.arm in CONTROLS.values()


def _by_start(condition: Condition) -> list[Measured]:
    return sorted(condition.runs, key=lambda run: (run.measurement.environment.started, run.path))


def _steps(run: Measured) -> list[ProgramDump]:
    assert isinstance(run.measurement, ProgramRun), "a program's run"
    repetitions = run.measurement.repetitions
    return [d for r in repetitions for stream in r.streams for d in stream.dumps]


def _throughputs(runs: Iterable[Measured]) -> list[list[float]]:
    return [[d.bandwidth_bytes_per_s for d in _steps(run)] for run in runs]


def throughputs(condition: Condition) -> list[list[float]]:
    """Bytes/s of every step of every run, in the order in which the runs were started."""
    return _throughputs(_by_start(condition))


def point(condition: Condition) -> Point:
    speeds = [v for run in throughputs(condition) for v in run]
    return Point(condition=condition, average=fmean(speeds), low=min(speeds), high=max(speeds))


def series(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Conditions by what they have in common on every number of ranks: the method, and how many
    ranks have one aggregator. A single aggregator stands in each series that has no more there."""
    all_conditions = list(conditions)
    groups = {
        (s.method, s.ranks // many)
        for s in all_conditions
        if (many := _aggregators(s)) and many > 1
    }
    conditions_by_series: dict[str, list[Condition]] = {}
    for condition in all_conditions:
        many = _aggregators(condition)
        sizes = sorted(
            size
            for method, size in groups
            if method == condition.method and many == max(1, condition.ranks // size)
        )
        own_facts = (f"{condition.ranks} ranks", condition.arm)
        more = [f for f in condition.facts if f not in own_facts and not f.startswith(AGGREGATORS)]
        for words in [[f"1 aggregator for {size}"] for size in sizes if many] or [[]]:
            conditions_by_series.setdefault(
                ", ".join([condition.method, *words, *more]), []
            ).append(condition)
    return dict(sorted(conditions_by_series.items()))


def _aggregators(condition: Condition) -> int:
    """0 where the method has none."""
    assert condition.program is not None, "a program's condition"
    stated = parameters(condition.program.parameters)
    text = next((stated[name] for name in AGGREGATORS if name in stated), "")
    return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """The skeleton against the application in one place, by one method, on as many ranks.

    `errors` by the name of the statistic; empty with a `reason` where they were not compared.
    `unpaired` runs have no counterpart in their round, because that failed or was not made.
    """

    application: Condition
    skeleton: Condition
    controls: tuple[Condition, ...]
    rounds: int
    unpaired: int
    errors: dict[str, paired_errors.Error]
    reason: str = ""

    @property
    def state(self) -> str:
        """That of the overall throughput."""
        return self.errors[OVERALL].state() if self.errors else UNDECIDED

    @property
    def runs(self) -> list[Measured]:
        conditions = (self.application, self.skeleton, *self.controls)
        return [run for condition in conditions for run in condition.runs]


def accuracies(case: Case) -> Iterator[AccuracyRow]:
    """A row for each condition that both the application and a skeleton were run under."""
    if not case.programs:
        return
    for skeleton in (s for s in case.conditions if s.arm == SKELETON):
        for application in (s for s in case.conditions if s.arm == APPLICATION):
            if _comparable(application, skeleton) and _met(application, skeleton):
                yield _accuracy(case, application, skeleton)


def _accuracy(case: Case, application: Condition, skeleton: Condition) -> AccuracyRow:
    controls = [
        [s for s in case.conditions if s.arm == CONTROLS[of.arm] and _comparable(s, of)]
        for of in (application, skeleton)
    ]
    rounds = _rounds(application, skeleton, controls)
    used = [_throughputs(runs) for runs in rounds]
    try:
        errors = paired_errors.errors(used[0], used[1], (used[2], used[3]) if used[2:] else None)
        reason = ""
    except UnderstudyError as error:
        errors, reason = {}, str(error)
    row = AccuracyRow(
        application=application,
        skeleton=skeleton,
        controls=tuple(s for conditions in controls for s in conditions if rounds[2:]),
        rounds=min(map(len, rounds)) // (1 if rounds[2:] else 2),
        unpaired=0,
        errors=errors,
        reason=reason,
    )
    return replace(row, unpaired=len(row.runs) - 4 * row.rounds)


def _rounds(
    application: Condition, skeleton: Condition, controls: Sequence[Sequence[Condition]]
) -> list[list[Measured]]:
    """Runs of the application and of the skeleton, row by row those of one round; with those of
    their controls, if all arms ran again in a round."""
    theirs, ours = paired(application, skeleton)
    again = [{_round(run): run for s in conditions for run in s.runs} for conditions in controls]
    if not all(again):
        return [theirs, ours]
    whole = [k for k, run in enumerate(theirs) if all(_round(run) in runs for runs in again)]
    arms = [[runs[k] for k in whole] for runs in (theirs, ours)]
    return [*arms, *([runs[_round(theirs[k])] for k in whole] for runs in again)]


Round = tuple[str | None, str | None, str | None, int | None]  # session, job, case, round


def paired(application: Condition, skeleton: Condition) -> tuple[list[Measured], list[Measured]]:
    """The runs of both, row by row: those of one round of one session, as their records say.

    Old results state no rounds: then the order of their starts pairs them.
    """
    first, second = _by_start(application), _by_start(skeleton)
    if any(run.run.identity.round is None for run in (*first, *second)):
        return first, second
    rounds = [{_round(run): run for run in runs} for runs in (first, second)]
    both = [key for key in rounds[0] if key in rounds[1]]
    return [rounds[0][key] for key in both], [rounds[1][key] for key in both]


def _round(run: Measured) -> Round:
    identity = run.run.identity
    return identity.session, run.run.place.job_id, identity.case, identity.round


def _met(application: Condition, skeleton: Condition) -> bool:
    """False for parts of different sessions, see `pooling`."""
    apart = application.part or skeleton.part
    return not apart or any(paired(application, skeleton))


def _comparable(application: Condition, skeleton: Condition) -> bool:
    """True if all but the program itself is the same, and it wrote as much but for scalars."""
    sizes = [condition.process_bytes for condition in (application, skeleton)]
    near = all(abs(a - b) <= SCALARS_BYTES for a, b in zip(*map(sorted, sizes), strict=False))
    return near and application.alike() == skeleton.alike()


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Cases by their state. `by_value` counts by statistic those whose value is within the limit,
    of all that were compared, as the Skel paper counts them."""

    cases: int
    states: dict[str, int]
    by_value: dict[str, int]
    compared: int


def share(rows: Iterable[AccuracyRow]) -> Share | None:
    """None where there is no case."""
    every = list(rows)
    if not every:
        return None
    states = [row.state for row in every]
    compared = [row for row in every if row.errors]
    return Share(
        cases=len(every),
        states={name: states.count(name) for name in (WITHIN, paired_errors.OUTSIDE, UNDECIDED)},
        by_value={
            name: paired_errors.count_within(row.errors[name].error for row in compared)
            for name in paired_errors.OF_THE_PAPER
        },
        compared=len(compared),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerRow:
    place: str
    kind: str
    ranks: int
    winner: paired_errors.Winner


def winners(case: Case) -> Iterator[WinnerRow]:
    """The fastest method in each place on as many ranks, for the application and for its skeleton;
    nothing where there is one method only."""
    if not case.programs:
        return
    kept = [s for s in case.conditions if not disturbed(s) and not is_control(s)]
    for place, of, ranks in sorted({(s.place, kind(s), s.ranks) for s in kept}):
        here = [s for s in kept if (s.place, kind(s), s.ranks) == (place, of, ranks)]
        runs = {name: throughputs(s) for name, same in series(here).items() for s in same}
        if len(runs) > 1:
            yield WinnerRow(place=place, kind=of, ranks=ranks, winner=paired_errors.winner(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of each process in a step, in the order of their totals: float64[ranks]. Step is the
    one with the median duration of all steps of the condition."""

    communication_s: Floats
    io_s: Floats
    rest_s: Floats
    ranks: NDArray[np.int64]

    @property
    def total_s(self) -> Floats:
        return np.asarray(self.communication_s + self.io_s + self.rest_s)


def parts(condition: Condition) -> Parts:
    """Where the time of each process goes in a typical step."""
    processes = _typical([d for run in condition.runs for d in _steps(run)])
    order = np.argsort(processes.total_s, kind="stable")
    communication_s, io_s, rest_s = (
        np.asarray(seconds)[order]
        for seconds in (processes.communication_s, processes.io_s, processes.rest_s)
    )
    return Parts(communication_s=communication_s, io_s=io_s, rest_s=rest_s, ranks=order)


def _typical(dumps: Sequence[ProgramDump]) -> Processes:
    """Processes of the median dump; of two in the middle, the slower one."""
    return sorted(dumps, key=lambda d: d.elapsed_s)[len(dumps) // 2].processes

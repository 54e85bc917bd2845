"""What the page tells of programs that write by themselves: an application beside its skeleton.

Throughput is that of a step: payload of all processes over the time from the first open to the
last close on any of them. docs/metrics.md defines the rest.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from understudy import accuracy
from understudy.errors import UnderstudyError
from understudy.report.cases import PAUSE, Case, Setting, parameters
from understudy.result import DumpResult, Processes

APPLICATION, SKELETON = "application", "skeleton"
AGGREGATORS = "num_aggregators"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Throughput in bytes/s of the steps of a setting."""

    setting: Setting
    average: float
    low: float
    high: float


def kind(setting: Setting) -> str:
    assert setting.program is not None, "a program's setting"
    return setting.program.kind


def fault(setting: Setting) -> str:
    """The fault that was put in; empty without one."""
    program = setting.program
    assert program is not None, "a program's setting"
    words = []
    if program.slow_rank:
        words.append(f"rank {program.slow_rank.rank} made slow")
    if program.extra_collective_bytes:
        words.append("a collective put in")
    return " and ".join(words)


def disturbed(setting: Setting) -> bool:
    """Whether a fault was put in, so that its throughput stands for nothing."""
    return bool(fault(setting))


def steps(setting: Setting) -> list[list[DumpResult]]:
    """The steps of every run, in the order in which the runs were started."""
    runs = sorted(setting.runs, key=lambda run: (run.result.environment.started, run.path))
    return [
        [d for r in run.result.repetitions for stream in r.streams for d in stream.dumps]
        for run in runs
    ]


def throughputs(setting: Setting) -> list[list[float]]:
    """Bytes/s of every step of every run."""
    return [[d.bandwidth_bytes_per_s for d in run] for run in steps(setting)]


def point(setting: Setting) -> Point:
    speeds = [v for run in throughputs(setting) for v in run]
    return Point(setting=setting, average=fmean(speeds), low=min(speeds), high=max(speeds))


def series(settings: Iterable[Setting]) -> dict[str, list[Setting]]:
    """Settings by what they have in common on every number of ranks: the method, and how many
    ranks have one aggregator. A single aggregator stands in each series that has no more there."""
    found = list(settings)
    groups = {(s.method, s.ranks // many) for s in found if (many := _aggregators(s)) and many > 1}
    made: dict[str, list[Setting]] = {}
    for setting in found:
        many = _aggregators(setting)
        sizes = sorted(
            size
            for method, size in groups
            if method == setting.method and many == max(1, setting.ranks // size)
        )
        own = (f"{setting.ranks} ranks", kind(setting))
        more = [f for f in setting.facts if f not in own and not f.startswith(AGGREGATORS)]
        for words in [[f"1 aggregator for {size}"] for size in sizes if many] or [[]]:
            made.setdefault(", ".join([setting.method, *words, *more]), []).append(setting)
    return dict(sorted(made.items()))


def _aggregators(setting: Setting) -> int:
    """0 where the method has none."""
    assert setting.program is not None, "a program's setting"
    text = parameters(setting.program).get(AGGREGATORS, "")
    return int(text) if text.isdecimal() else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccuracyRow:
    """The skeleton against the application in one place, by one method, on as many ranks.

    `errors` by the name of the statistic; empty with a `reason` where they were not compared.
    """

    application: Setting
    skeleton: Setting
    pairs: int
    errors: dict[str, accuracy.Estimate]
    reason: str = ""


def accuracies(case: Case) -> Iterator[AccuracyRow]:
    """A row for each setting that both the application and a skeleton were run in."""
    if not case.programs:
        return
    alike = {_alike(s): s for s in case.settings if kind(s) == APPLICATION}
    for skeleton in case.settings:
        application = alike.get(_alike(skeleton))
        if kind(skeleton) != SKELETON or application is None:
            continue
        theirs, ours = throughputs(application), throughputs(skeleton)
        try:
            errors, reason = accuracy.errors(theirs, ours), ""
        except UnderstudyError as error:
            errors, reason = {}, str(error)
        yield AccuracyRow(
            application=application, skeleton=skeleton, pairs=min(len(theirs), len(ours)),
            errors=errors, reason=reason,
        )  # fmt: skip


def _alike(setting: Setting) -> tuple[str, str, int, tuple[str, ...]]:
    """What an application and its skeleton have in common; a skeleton may pause, where the
    application computes."""
    facts = (f for f in setting.facts if f != kind(setting) and not f.startswith(PAUSE))
    return setting.place, setting.method, setting.ranks, tuple(facts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How many cases, of both statistics, have an error within the limit; by their state."""

    within: int
    cases: int
    states: dict[str, int]


def share(rows: Iterable[AccuracyRow]) -> Share | None:
    """None where nothing was compared."""
    found = [error for row in rows for error in row.errors.values()]
    if not found:
        return None
    states = [accuracy.state(error) for error in found]
    within = round(accuracy.share_within(found) * len(found))
    counts = {state: states.count(state) for state in ("within", "undecided", "outside")}
    return Share(within=within, cases=len(found), states=counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class WinnerRow:
    place: str
    kind: str
    ranks: int
    winner: accuracy.Winner


def winners(case: Case) -> Iterator[WinnerRow]:
    """The fastest method in each place on as many ranks, for the application and for its skeleton;
    nothing where there is one method only."""
    if not case.programs:
        return
    kept = [s for s in case.settings if not disturbed(s)]
    for place, of, ranks in sorted({(s.place, kind(s), s.ranks) for s in kept}):
        here = [s for s in kept if (s.place, kind(s), s.ranks) == (place, of, ranks)]
        runs = {name: throughputs(s) for name, same in series(here).items() for s in same}
        if len(runs) > 1:
            yield WinnerRow(place=place, kind=of, ranks=ranks, winner=accuracy.winner(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Seconds of each process in a step, in the order of their totals: float64[ranks]. Step is the
    one with the median duration of all steps of the setting."""

    communication_s: Floats
    io_s: Floats
    rest_s: Floats
    ranks: NDArray[np.int64]

    @property
    def total_s(self) -> Floats:
        return np.asarray(self.communication_s + self.io_s + self.rest_s)


def parts(setting: Setting) -> Parts:
    """Where the time of each process goes in a typical step."""
    processes = _typical([d for run in steps(setting) for d in run])
    order = np.argsort(processes.total_s, kind="stable")
    communication_s, io_s, rest_s = (
        np.asarray(seconds)[order]
        for seconds in (processes.communication_s, processes.io_s, processes.rest_s)
    )
    return Parts(communication_s=communication_s, io_s=io_s, rest_s=rest_s, ranks=order)


def _typical(dumps: Sequence[DumpResult]) -> Processes:
    """Of an even number the slower one of the two in the middle."""
    dump = sorted(dumps, key=lambda d: d.elapsed_s)[len(dumps) // 2]
    assert dump.processes is not None, "the contract demands it where there is a program"
    return dump.processes

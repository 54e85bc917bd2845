"""Runs put together: by what was played, and by the conditions under which it was.

Runs are pooled only where their conditions are equal in full: everything in their records but
identity and measured values. A label shows what differs between the conditions at hand. Programs
that write by themselves play no workload: an application and its skeletons, on whatever numbers of
ranks, are put together by the application's name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar, cast

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts.measurement import (
    DumpResult,
    Played,
    PlayedDump,
    Program,
    ProgramDump,
    ProgramRun,
    StreamResult,
)
from understudy.contracts.run import Run
from understudy.contracts.schema import digest
from understudy.contracts.workload import Stream, Workload, identifier
from understudy.errors import UnderstudyError
from understudy.judge.statistics.labels import label

T = TypeVar("T")

AS_DESCRIBED = "as described"
OBSERVED = "observed"  # the producer of runs under Darshan
UNDER = "darshan-"  # what the names of arms under Darshan begin with
BENCHMARK = "benchmark"  # the arm of producers whose figures are their own
RESTART_SUFFIX = "-restart"
# Of a process in a step, that say nothing: a skeleton that is learned from a file adds the sizes
# and offsets that differ from process to process, and has the first one's texts.
SCALARS_BYTES = 256
# What an application and its skeleton need not have in common to be compared: the program itself,
# and what fills the time between its steps.
OF_THE_ARM = ("name", "config", "pause_s", "barriers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run that was measured: its record, the file of it, and the measurement in it."""

    path: Path
    run: Run
    measurement: Played | ProgramRun

    @property
    def place(self) -> str:
        return place_of(self.run)

    @property
    def ranks(self) -> int:
        return self.measurement.environment.ranks

    @property
    def program(self) -> Program | None:
        return self.measurement.program if isinstance(self.measurement, ProgramRun) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A run that failed: it is counted and shown, and never pooled."""

    path: Path
    run: Run

    @property
    def place(self) -> str:
        return place_of(self.run)

    @property
    def failure(self) -> str:
        name = self.run.producer.name
        return self.run.failure or f"the page cannot show a measurement of {name}"


def place_of(run: Run) -> str:
    """System and partition; where the run was started by hand, host and file system."""
    if run.place.system is not None:
        return ":".join(filter(None, (run.place.system, run.place.partition)))
    host = run.place.nodes[0].name if run.place.nodes else None
    return ":".join(filter(None, (host, run.storage.type))) or "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One workload played under one condition by one arm; all repetitions of all its runs.

    `facts` are the words on it in which it differs from others of the case. `part` counts from 1
    where the condition changed between sessions, see `pooling`; 0: it is whole.
    """

    method: str
    facts: tuple[str, ...]
    place: str
    arm: str
    runs: tuple[Measured, ...]
    part: int = 0
    _derived: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def variant(self) -> str:
        return " ".join(self.facts)

    @property
    def label(self) -> str:
        """Label that tells it from the other conditions of its place."""
        return f"{self.method} {self.variant}".strip()

    @property
    def repetitions(self) -> int:
        return sum(len(run.measurement.repetitions) for run in self.runs)

    @property
    def options(self) -> dict[str, Any]:
        return self.runs[0].measurement.options

    @property
    def time_scale(self) -> float:
        """0 where nothing is scheduled."""
        return float(self.options.get("time_scale", 0.0))

    @property
    def bytes_scale(self) -> float:
        return float(self.options.get("bytes_scale", 1.0))

    @property
    def ranks(self) -> int:
        return self.runs[0].ranks

    @property
    def program(self) -> Program | None:
        """The program; None where the player played a workload."""
        return self.runs[0].program

    @property
    def workload(self) -> Workload:
        """The played workload, or what the first run of the program wrote."""
        return self.runs[0].measurement.workload

    @property
    def elapsed_s(self) -> list[float]:
        return [r.elapsed_s for run in self.runs for r in run.measurement.repetitions]

    def stream(self, name: str) -> list[StreamResult]:
        """The stream in every repetition that has it."""
        return [
            stream
            for run in self.runs
            for repetition in run.measurement.repetitions
            for stream in repetition.streams
            if stream.name == name
        ]

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """What is computed of the condition, by its name: pages ask for some of it several times,
        and may not change it."""
        if name not in self._derived:
            self._derived[name] = compute()
        return cast(T, self._derived[name])

    def dumps(self, name: str) -> dict[int, list[DumpResult]]:
        """Dumps of a stream by index, each with one entry per repetition."""

        def ordered() -> dict[int, list[DumpResult]]:
            dumps_by_index: dict[int, list[DumpResult]] = {}
            for stream in self.stream(name):
                for dump in stream.dumps:
                    dumps_by_index.setdefault(dump.dump, []).append(dump)
            return dict(sorted(dumps_by_index.items()))

        return self.once(f"dumps of {name}", ordered)

    def played_dumps(self, name: str) -> dict[int, list[PlayedDump]]:
        """The same of the player's dumps, which were scheduled; nothing of a program."""
        if all(isinstance(run.measurement, Played) for run in self.runs):
            return cast(dict[int, list[PlayedDump]], self.dumps(name))
        return {
            index: [d for d in same if isinstance(d, PlayedDump)]
            for index, same in self.dumps(name).items()
            if any(isinstance(d, PlayedDump) for d in same)
        }

    def stream_names(self) -> list[str]:
        """Streams played, in the order of the measurement: the descriptor's, then restarts."""
        seen = [
            s.name for run in self.runs for r in run.measurement.repetitions for s in r.streams
        ]
        return list(dict.fromkeys(seen))

    @property
    def process_bytes(self) -> list[int]:
        """For each run of a program, the payload of the process that writes most in a step."""
        return [_most_bytes(run) for run in self.runs]

    def alike(self) -> str:
        """Equal for an application and its skeleton that were run under one condition."""
        row = runs.condition(self.runs[0].run)
        options = {k: v for k, v in row["producer"]["options"].items() if k not in OF_THE_ARM}
        return digest([row["place"], row["storage"], options])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One workload and every condition it was played under. `methods` and places `everywhere` are
    those of the whole page, so that figures give each one colour.

    Or one application: itself and its skeletons; `workload` then is what a run on the fewest
    ranks wrote, under the application's name.
    """

    workload: Workload
    sha256: str
    conditions: tuple[Condition, ...]
    methods: tuple[str, ...]
    everywhere: tuple[str, ...]

    @property
    def key(self) -> str:
        """Unique on the page, usable as an anchor."""
        return f"{self.workload.name}-{self.sha256[:8]}"

    @property
    def programs(self) -> bool:
        """True if programs ran that write by themselves."""
        return self.conditions[0].program is not None

    @property
    def ranks(self) -> list[int]:
        return sorted({s.ranks for s in self.conditions})

    @property
    def process_bytes(self) -> list[int]:
        """Payloads of the process that writes most in a step, of programs."""
        return sorted({size for s in self.conditions for size in s.process_bytes})

    @property
    def places(self) -> list[str]:
        return list(dict.fromkeys(s.place for s in self.conditions))

    def at(self, place: str) -> list[Condition]:
        return [s for s in self.conditions if s.place == place]

    def played_streams(self) -> list[str]:
        """Names of all streams that some condition played, largest payload first."""
        names = dict.fromkeys(n for s in self.conditions for n in s.stream_names())
        return sorted(names, key=lambda n: -self.stream_bytes(n))

    def dump_count(self, name: str) -> int:
        """Dumps of a played stream, most of the conditions."""
        return max((len(r.dumps) for s in self.conditions for r in s.stream(name)), default=0)

    @property
    def most_dumps(self) -> int:
        """Dumps of the stream that was played with most."""
        return max(map(self.dump_count, self.played_streams()), default=0)

    def stream_bytes(self, name: str) -> int:
        """Payload of a played stream over its dumps, largest of the conditions."""
        return max((r.bytes for s in self.conditions for r in s.stream(name)), default=0)

    def role(self, name: str) -> str:
        """Role of a played stream; reading a checkpoint back is a restart."""
        stream = described(self.workload, name)
        if stream is None or stream.name != name:
            return "restart"
        return stream.role


def described(workload: Workload, name: str) -> Stream | None:
    """The descriptor's stream that a played stream stands for."""
    by_name = {s.name: s for s in workload.streams}
    return by_name.get(name) or by_name.get(name.removesuffix(RESTART_SUFFIX))


@cache
def is_benchmark(producer: str) -> bool:
    """True if a producer measures itself, as IOR and mdtest do."""
    return producer in producers.names() and producers.get(producer).ARM == BENCHMARK


def load(
    paths: Iterable[Path],
    progress: Callable[[Path], None] = lambda _: None,
    unread: Callable[[Path, UnderstudyError], None] | None = None,
    observed: Callable[[Run], None] = lambda _: None,
    benchmarks: Callable[[Run], None] = lambda _: None,
) -> tuple[list[Measured], list[Failed]]:
    """Read records and measurements: the runs that were measured, and those that failed. What
    cannot be read goes to `unread`, as `producers.load_all` says. Runs under Darshan, failed ones
    too, go to `observed`: they are compared with each other, see `fidelity.transfer`. Those of IOR
    and mdtest go to `benchmarks`."""
    measured, failed = [], []
    for path, run, measurement in producers.load_measured(paths, progress, unread):
        apart = run.producer.name == OBSERVED or is_benchmark(run.producer.name)
        if apart:
            (observed if run.producer.name == OBSERVED else benchmarks)(run)
            if not run.failed:
                continue
        if run.failed or not isinstance(measurement, Played | ProgramRun):
            failed.append(Failed(path=path, run=run))
        else:
            measured.append(Measured(path=path, run=run, measurement=measurement))
    return measured, failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which runs a person asks for; empty: all. What a failed run does not tell is in."""

    systems: Sequence[str] = ()
    workloads: Sequence[str] = ()
    methods: Sequence[str] = ()

    @property
    def any(self) -> bool:
        return bool(self.systems or self.workloads or self.methods)

    def has(self, run: Run) -> bool:
        played = run.producer.workload
        program = (run.measurement or {}).get("program") or {}
        names = {played.name if played else None}
        if program.get("application"):
            names = {program["application"], identifier(program["application"])}
        facts = (
            (self.systems, {run.place.system}),
            (self.workloads, names),
            (self.methods, {run.producer.options.get("method") or AS_DESCRIBED}),
        )
        return all(
            not wanted or not values.isdisjoint(wanted) or (values == {None} and run.failed)
            for wanted, values in facts
        )


def group(measured: Iterable[Measured]) -> list[Case]:
    """Cases by name of the workload, or of the application; two descriptors with one name are two
    cases."""
    ordered_runs = sorted(measured, key=lambda run: (*_case_key(run), run.ranks))
    methods = tuple(sorted({method_of(run) for run in ordered_runs}))
    everywhere = tuple(sorted({run.place for run in ordered_runs}))
    cases = []
    for (name, _), same in groupby(ordered_runs, key=_case_key):
        members = list(same)
        cases.append(
            Case(
                workload=replace(members[0].measurement.workload, name=name),
                sha256=members[0].measurement.workload_sha256,
                conditions=_conditions(members),
                methods=methods,
                everywhere=everywhere,
            )
        )
    return cases


def _case_key(run: Measured) -> tuple[str, str]:
    if run.program is not None:
        return identifier(run.program.application), ""
    return run.measurement.workload.name, run.measurement.workload_sha256


def method_of(run: Measured) -> str:
    """The one method of all streams, or that each kept its own; of a program, that of ADIOS."""
    return str(run.measurement.options.get("method") or AS_DESCRIBED)


def _conditions(members: list[Measured]) -> tuple[Condition, ...]:
    """Runs of a case by arm and condition, in the order of place, method, ranks and label."""
    pooled: dict[str, list[Measured]] = {}
    rows: dict[str, runs.Condition] = {}
    for run in members:
        row = runs.condition(run.run)
        key = digest([run.run.identity.arm, row])
        rows[key] = row
        pooled.setdefault(key, []).append(run)
    firsts = [same[0] for same in pooled.values()]
    labels = label(
        list(rows.values()),
        [run.place for run in firsts],
        [run.ranks for run in firsts],
        _words_of_the_run(firsts),
    )
    conditions = [
        Condition(
            method=method_of(same[0]),
            facts=facts,
            place=same[0].place,
            arm=same[0].run.identity.arm,
            runs=tuple(same),
        )
        for same, facts in zip(pooled.values(), _told_apart(firsts, labels, rows), strict=True)
    ]
    return tuple(sorted(conditions, key=lambda c: (c.place, c.method, c.ranks, c.facts)))


def _words_of_the_run(members: list[Measured]) -> list[list[str]]:
    """Words that are no option, and yet tell runs apart: the arm; of programs the ranks, the
    repetitions and the bytes that they write."""
    shown = {}
    least: dict[int, int] = {}
    for size in sorted({_most_bytes(run) for run in members if run.program}):
        last = next(reversed(least.values()), size)
        least[size] = last if size - last <= SCALARS_BYTES else size
    for run in members:
        words = [run.run.identity.arm]
        if run.program is not None:
            words += [f"{run.ranks} ranks", f"{least[_most_bytes(run)]} B a process"]
        shown[id(run)] = words
    varying = [len({words[k] for words in shown.values() if k < len(words)}) > 1 for k in range(3)]
    return [
        [word for word, differs in zip(shown[id(run)], varying, strict=False) if differs]
        for run in members
    ]


def _told_apart(
    members: list[Measured], labels: list[tuple[str, ...]], rows: dict[str, runs.Condition]
) -> list[tuple[str, ...]]:
    """Labels, with the hash of the condition where two of one place would read the same."""
    seen = [
        (run.place, method_of(run), run.ranks, facts)
        for run, facts in zip(members, labels, strict=True)
    ]
    return [
        (*facts, f"condition {runs.short_hash(row)}") if seen.count(key) > 1 else facts
        for key, facts, row in zip(seen, labels, rows.values(), strict=True)
    ]


def _most_bytes(run: Measured) -> int:
    """Payload of the process of a program that writes most in a step."""
    dumps = (d for stream in run.measurement.repetitions[0].streams for d in stream.dumps)
    return max(max(d.processes.bytes) for d in dumps if isinstance(d, ProgramDump))

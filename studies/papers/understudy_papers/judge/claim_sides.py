"""Which records a side of a claim selects, and what it takes from each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.judge.statistics import labels
from understudy.judge.statistics.labels import stripe_count

AS_DESCRIBED = "described"
FIRST, LARGEST = "first", "largest"
NUMBERS = ("nodes", "ranks")  # keys of a side
CHOICES = {
    "dump": (FIRST, LARGEST),
    "time": ("communication", "io", "total"),
    "processes": ("slowest", "slowest-tenth", "all"),
}
BANDWIDTH, DUMP_BANDWIDTH = "bandwidth_bytes_per_s", "dump_bandwidth_bytes_per_s"


class Subject(Protocol):
    """Subject of a claim."""

    @property
    def system(self) -> str: ...
    @property
    def workload(self) -> str: ...
    @property
    def stream(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which runs of the workload, None: any, and their bandwidth, or a time of their processes.

    `method` is by default what a publication measured: that of each stream as described. `arm` is
    the application or its skeleton; a run must have the `parameters` of its ADIOS method. `dump`
    is the first or the largest of the stream. `processes` are those with the longest total times.
    """

    system: str | None = None
    stripe_count: str | None = None
    method: str | None = None
    arm: str | None = None
    parameters: str | None = None
    nodes: int | None = None
    ranks: int | None = None
    dump: str | None = None
    time: str | None = None
    processes: str | None = None

    def __str__(self) -> str:
        named = {key: getattr(self, key) for key in self.__slots__}
        return ", ".join(f"{key} {v}" for key, v in named.items() if v is not None) or "all runs"


def side(row: Any, where: str) -> Side:
    """Read a YAML row; an UnderstudyError if it is no side."""
    if not isinstance(row, dict) or set(row) - set(Side.__slots__):
        raise UnderstudyError(f"{where}: expected the keys {', '.join(Side.__slots__)}")
    for key in NUMBERS:
        number = row.get(key)
        if number is not None and (type(number) is not int or number < 1):
            raise UnderstudyError(f"{where}: {key}: expected a number above 0, got {number!r}")
    for key, names in CHOICES.items():
        if row.get(key) not in (None, *names):
            raise UnderstudyError(
                f"{where}: {key}: expected {' or '.join(names)}, got {row[key]!r}"
            )
    if row.get("processes") and not row.get("time"):
        raise UnderstudyError(f"{where}: processes: expected the key time beside it")
    texts = [key for key in Side.__slots__ if key not in (*NUMBERS, *CHOICES)]
    named: dict[str, Any] = {key: str(row[key]) for key in texts if row.get(key) is not None}
    return Side(**named, **{key: row.get(key) for key in (*NUMBERS, *CHOICES)})


def selected(subject: Subject, of: Side, every: Sequence[Run]) -> list[Run]:
    """Those that the side selects, failed ones included."""
    return [run for run in every if _belongs(run, subject, of)]


def values(run: Run, stream: str, of: Side) -> list[float]:
    """Values of the side in each step or repetition of a run; empty where it has none."""
    if of.time:
        return list(_times(run, stream, of))
    return _bandwidths(run, stream, of.dump)


def _belongs(run: Run, subject: Subject, of: Side) -> bool:
    options, case = run.producer.options, _case(run)
    name = _name(run)
    scaled = of.nodes is not None or of.ranks is not None
    method = options.get("method") or (case.get("method") if run.measurement is None else None)
    given = labels.parameters(options.get("parameters"))
    return (
        (name == subject.workload or (scaled and name.startswith(f"{subject.workload}-weak-")))
        and run.place.system == (of.system or subject.system)
        and of.nodes in (None, len(run.place.nodes))
        and of.ranks in (None, ranks(run))
        and of.arm in (None, run.identity.arm)
        and of.stripe_count in (None, stripe_count(run))
        and (of.method or AS_DESCRIBED) == (method or AS_DESCRIBED)
        and (run.measurement is None or labels.parameters(of.parameters).items() <= given.items())
    )


def _case(run: Run) -> dict[str, str]:
    """The parameters of the check's case, of itself and of its fixtures."""
    return dict(re.findall(r"%(?:\w*\.)*(\w+)=(\S+)", run.identity.case or ""))


def _name(run: Run) -> str:
    """The workload or the application; of a run that left no measurement, as its case has it."""
    if "application" in run.producer.options:
        return str(run.producer.options["application"])
    if run.producer.workload is not None:
        return run.producer.workload.name
    case = _case(run)
    return case.get("workload") or case.get("application") or ""


def ranks(run: Run) -> int | None:
    if run.measurement is not None:
        return int(run.measurement["environment"]["ranks"])
    text = _case(run).get("ranks", "")
    return int(text) if text.isdecimal() else None


def _bandwidths(run: Run, stream: str, dump: str | None) -> list[float]:
    """One per repetition."""
    if dump is None:
        return [
            s.value
            for s in run.samples
            if (s.metric, s.stream) == (BANDWIDTH, stream) and s.value > 0
        ]
    bandwidths = []
    for number in sorted({s.repetition for s in run.samples if s.repetition is not None}):
        speeds = [
            s.value
            for s in run.samples
            if (s.metric, s.stream, s.repetition) == (DUMP_BANDWIDTH, stream, number)
        ]
        if not speeds:
            continue
        at = 0 if dump == FIRST else _largest(run, stream, number)
        if at < len(speeds) and speeds[at] > 0:
            bandwidths.append(speeds[at])
    return bandwidths


def _largest(run: Run, stream: str, repetition: int) -> int:
    """The dump with the highest payload, of which the measurement tells."""
    for played in (run.measurement or {})["repetitions"]:
        if played["repetition"] == repetition:
            [measured] = [s for s in played["streams"] if s["name"] == stream]
            sizes = [d["bytes"] for d in measured["dumps"]]
            return sizes.index(max(sizes))
    return 0


def _times(run: Run, stream: str, of: Side) -> Iterator[float]:
    """Seconds of each step, on average over the processes that the side names."""
    for step in _steps(run, stream):
        totals = step["processes"]["total_s"]
        slowest_first = sorted(range(len(totals)), key=lambda rank: -totals[rank])
        many = {"slowest": 1, "slowest-tenth": max(1, len(totals) // 10)}
        chosen = slowest_first[: many.get(of.processes or "all")]
        yield fmean(step["processes"][f"{of.time}_s"][rank] for rank in chosen)


def _steps(run: Run, stream: str) -> Iterator[dict[str, Any]]:
    """Those whose processes are known, as those of programs that call ADIOS are."""
    for played in (run.measurement or {}).get("repetitions", ()):
        for measured in played["streams"]:
            if measured["name"] == stream:
                yield from (dump for dump in measured["dumps"] if "processes" in dump)

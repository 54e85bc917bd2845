"""The metrics of the page; docs/metrics.md defines each in prose. Bytes and seconds throughout."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import median
from typing import Any

from understudy import schedule, simulation
from understudy.errors import UnderstudyError
from understudy.report.cases import Case, Setting, described
from understudy.result import DumpResult, StreamResult
from understudy.workload import Workload, numbers, provenance_of

TOLERANCE = 0.10
DATA_PHASES = ("write", "read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Lowest, median and highest of `n` values."""

    low: float
    median: float
    high: float
    n: int


def spread(values: Iterable[float]) -> Spread | None:
    """None where nothing was measured."""
    found = sorted(values)
    if not found:
        return None
    return Spread(low=found[0], median=median(found), high=found[-1], n=len(found))


def payload_error(moved: int, planned: float) -> float:
    """(moved - planned) / planned; a dump planned as nothing is right only if nothing moved."""
    if planned == 0:
        return 0.0 if moved == 0 else float("inf")
    return (moved - planned) / planned


def worst(errors: Iterable[float]) -> float:
    """The error farthest from zero."""
    return max(errors, key=abs, default=0.0)


def planned_bytes(dump: DumpResult, setting: Setting) -> float:
    return dump.described_bytes * setting.bytes_scale


def dump_error(dumps: Sequence[DumpResult], setting: Setting) -> float:
    """Worst payload error of one dump over its repetitions."""
    return worst(payload_error(d.bytes, planned_bytes(d, setting)) for d in dumps)


def stream_error(setting: Setting, name: str) -> float:
    """Worst payload error of a stream's dumps."""
    return worst(dump_error(dumps, setting) for dumps in setting.dumps(name).values())


def setting_error(setting: Setting) -> float:
    """Worst payload error over all dumps; a described dump that was not played counts -100 %."""
    errors = [stream_error(setting, name) for name in setting.stream_names()]
    for stream in setting.workload.streams:
        played = setting.dumps(stream.name)
        if any(len(played.get(i, ())) < setting.repetitions for i in range(len(stream.dumps))):
            errors.append(-1.0)
    return worst(errors)


def total_bandwidth(setting: Setting, operation: str) -> Spread | None:
    """Payload of all streams with that operation over the sum of their dumps' times."""
    values = []
    for run in setting.runs:
        for repetition in run.result.repetitions:
            streams = [s for s in repetition.streams if s.operation == operation]
            elapsed_s = sum(d.elapsed_s for s in streams for d in s.dumps)
            if elapsed_s > 0:
                values.append(sum(s.bytes for s in streams) / elapsed_s)
    return spread(values)


def stream_bandwidth(streams: Iterable[StreamResult]) -> Spread | None:
    return spread(s.bandwidth_bytes_per_s for s in streams if s.bandwidth_bytes_per_s > 0)


def container_bytes(streams: Iterable[StreamResult]) -> Spread | None:
    """Bytes on storage beyond the payload, per repetition; None where storage was not measured."""
    values = []
    for stream in streams:
        grown = [d.file_bytes - d.bytes for d in stream.dumps if d.file_bytes is not None]
        if grown:
            values.append(sum(grown))
    return spread(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one setting came to. `state` is pass, fail or undecided."""

    setting: Setting
    error: float
    compared_bytes: int
    wrong_bytes: int
    verified_runs: int
    write: Spread | None
    read: Spread | None

    @property
    def state(self) -> str:
        if self.wrong_bytes or abs(self.error) > TOLERANCE:
            return "fail"
        return "pass" if self.verified_runs == len(self.setting.runs) else "undecided"


def verdict(setting: Setting) -> Verdict:
    checked = [v for run in setting.runs if (v := run.result.verification) is not None]
    return Verdict(
        setting=setting,
        error=setting_error(setting),
        compared_bytes=sum(v.bytes for v in checked),
        wrong_bytes=sum(v.wrong_bytes for v in checked),
        verified_runs=sum(v.bytes > 0 for v in checked),
        write=total_bandwidth(setting, "write"),
        read=total_bandwidth(setting, "read"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """Seconds of the ranks in the dump and repetition where one rank spent most on the phase."""

    setting: Setting
    stream: str
    phase: str
    dump: int
    seconds: tuple[float, float, float, float, float, float]
    imbalance: float | None


def slowest_phases(setting: Setting) -> Iterator[RankRow]:
    """Per stream and phase the order statistics of the slowest dump; max / median is imbalance."""
    for name in setting.stream_names():
        slowest: dict[str, tuple[int, Any]] = {}
        for index, dumps in setting.dumps(name).items():
            for phase in (p for d in dumps for p in d.phases):
                held = slowest.get(phase.phase)
                if held is None or phase.rank_s.max > held[1].max:
                    slowest[phase.phase] = (index, phase.rank_s)
        for phase_name, (index, s) in slowest.items():
            yield RankRow(
                setting=setting,
                stream=name,
                phase=phase_name,
                dump=index,
                seconds=(s.min, s.q25, s.median, s.q75, s.q95, s.max),
                imbalance=s.max / s.median if s.median > 0 else None,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedRow:
    """A setting against what the text of its simulation states."""

    setting: Setting
    accuracy: simulation.Accuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """What the text says of its own replica, and what the settings came to."""

    published: simulation.Published | None
    rows: list[StatedRow]


def against_stated(case: Case) -> Stated | None:
    """None where the workload is not that of a simulation, or nothing left files of its sizes."""
    stated = simulation.played_by(case.workload)
    if stated is None:
        return None
    rows = []
    for setting in (s for s in case.settings if s.bytes_scale == 1):
        played = (r for run in setting.runs for r in run.result.repetitions)
        with suppress(UnderstudyError):  # a method without files, a text without states
            made = simulation.largest(simulation.accuracy(stated, r) for r in played)
            rows.append(StatedRow(setting=setting, accuracy=made))
    return Stated(published=stated.published, rows=rows) if rows else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PausesRow:
    """The repetition of a setting whose total of the pauses is farthest off."""

    setting: Setting
    pauses: schedule.Pauses


def kept_pauses(case: Case) -> Iterator[PausesRow]:
    """Nothing of settings that were played without pauses."""
    for setting in case.settings:
        found = [
            schedule.pauses(d for s in r.streams for d in s.dumps)
            for run in setting.runs for r in run.result.repetitions
        ]  # fmt: skip
        asked = [pauses for pauses in found if pauses.asked_s > 0]
        if asked:
            yield PausesRow(setting=setting, pauses=max(asked, key=lambda p: abs(p.error)))


def original_bandwidth(workload: Workload, name: str) -> dict[int, float]:
    """Payload over duration of the original's dumps, where the descriptor knows the duration."""
    stream = described(workload, name)
    if stream is None or stream.name != name:
        return {}
    return {i: d.bytes / d.duration_s for i, d in enumerate(stream.dumps) if d.duration_s}


def origins(workload: Workload) -> Counter[str]:
    """How many numbers under ranks, runtime_s and streams have which origin."""
    entries = (provenance_of(workload, pointer) for pointer in numbers(workload))
    return Counter(entry.origin if entry else "not stated" for entry in entries)

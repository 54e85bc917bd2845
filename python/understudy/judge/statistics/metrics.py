"""The metrics of runs; docs/metrics.md defines each in prose. Bytes and seconds throughout."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from understudy.contracts.measurement import DumpResult, Played, PlayedDump, StreamResult
from understudy.judge.statistics import cache, pauses
from understudy.judge.statistics.conditions import (
    AS_DESCRIBED,
    Case,
    Condition,
    Measured,
    described,
)
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.pauses import Pauses

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
    ordered = sorted(values)
    if not ordered:
        return None
    return Spread(low=ordered[0], median=median(ordered), high=ordered[-1], n=len(ordered))


def payload_error(moved: int, planned: float) -> float:
    """(moved - planned) / planned; a dump planned as nothing is right only if nothing moved."""
    if planned == 0:
        return 0.0 if moved == 0 else float("inf")
    return (moved - planned) / planned


def worst(errors: Iterable[float]) -> float:
    """The error farthest from zero."""
    return max(errors, key=abs, default=0.0)


def mixes_reads(condition: Condition, name: str) -> bool:
    """True if the player read between the writes of the stream, besides what is described."""
    if condition.options.get("mix_percent") is None:
        return False
    stream = described(condition.workload, name)
    return (
        stream is not None
        and stream.name == name
        and stream.operation == "write"
        and all(step.calls is None for step in stream.steps)
    )


def mixed_bytes(dump: DumpResult, mixed: bool) -> int:
    """Bytes of a dump that were read between its writes, where the stream mixes reads."""
    return dump.phase_bytes("read") if mixed else 0


def worst_or_bounded(errors: Iterable[float | None]) -> float | None:
    """The error farthest from zero; None where a deadline bounded the payload of some, whose error
    is None, and no other has an error."""
    every = list(errors)
    error = worst(e for e in every if e is not None)
    return None if error == 0 and None in every else error


def dump_error(dumps: Sequence[DumpResult], condition: Condition, name: str) -> float | None:
    """Worst payload error of one dump of the stream over its repetitions, or None, see
    `worst_or_bounded`; a program's has no plan to miss."""
    return _dump_error(dumps, condition, name, mixes_reads(condition, name))


def _dump_error(
    dumps: Sequence[DumpResult], condition: Condition, name: str, mixed: bool
) -> float | None:
    """The same where it is known whether the player read between writes."""
    errors: list[float | None] = []
    scale = condition.bytes_scale
    for dump in dumps:
        if isinstance(dump, PlayedDump):
            moved = dump.bytes - mixed_bytes(dump, mixed)
            error = payload_error(moved, dump.described_bytes * scale)
            errors.append(None if error < 0 and _is_bounded(dump, condition, name) else error)
    return errors[0] if len(errors) == 1 else worst_or_bounded(errors)


def _is_bounded(dump: PlayedDump, condition: Condition, name: str) -> bool:
    """True if a deadline stopped the dump, or the writes that it reads back."""
    if dump.stopped or condition.options.get("deadline_s") is None:
        return dump.stopped
    return all(stream.name != name for stream in condition.workload.streams)


def stream_error(condition: Condition, name: str) -> float | None:
    """Worst payload error of a stream's dumps, or None, see `worst_or_bounded`."""
    mixed, every = mixes_reads(condition, name), condition.dumps(name).values()
    errors = (_dump_error(dumps, condition, name, mixed) for dumps in every)
    return condition.once(f"error of {name}", lambda: worst_or_bounded(errors))


def bounded_bytes(condition: Condition) -> tuple[int, float] | None:
    """The bytes of all described streams that were moved, and those that were planned; None where
    no deadline kept any from being moved."""
    return condition.once("bounded", lambda: _bounded_bytes(condition))


def _bounded_bytes(condition: Condition) -> tuple[int, float] | None:
    moved, planned, bounded, scale = 0, 0.0, False, condition.bytes_scale
    streams = condition.workload.streams if condition.program is None else ()
    played = {stream.name: condition.played_dumps(stream.name) for stream in streams}
    if not any(d.stopped for of in played.values() for dumps in of.values() for d in dumps):
        return None  # of nearly all
    for name, of in played.items():
        mixed = mixes_reads(condition, name)
        for dumps in of.values():
            for dump in dumps:
                bytes_ = dump.bytes - mixed_bytes(dump, mixed)
                moved += bytes_
                planned += dump.described_bytes * scale
                bounded = bounded or (dump.stopped and bytes_ < dump.described_bytes * scale)
    return (moved, planned) if bounded else None


def condition_mixed_bytes(condition: Condition) -> int:
    """Bytes that the player read between writes, besides what is described."""
    return sum(
        mixed_bytes(d, True)
        for name in condition.stream_names()
        if mixes_reads(condition, name)
        for dumps in condition.dumps(name).values()
        for d in dumps
    )


def condition_error(condition: Condition) -> float:
    """Worst payload error over all dumps, but those that a deadline bounded; a described dump that
    was not played counts -100 %."""
    errors = [stream_error(condition, name) or 0.0 for name in condition.stream_names()]
    for stream in condition.workload.streams if condition.program is None else ():
        played = condition.dumps(stream.name)
        if any(len(played.get(i, ())) < condition.repetitions for i in range(stream.dump_count)):
            errors.append(-1.0)
    return worst(errors)


def total_bandwidth(condition: Condition, operation: str) -> Spread | None:
    """Payload over I/O time, of all repetitions of a condition."""
    return spread(bandwidths(condition.runs, operation, lambda stream: stream.io_s))


def nearest(case: Case) -> Condition:
    """The condition that is as near to the original as there is: with pauses, and from storage."""
    return min(
        case.conditions,
        key=lambda c: (
            c.time_scale == 0,
            c.method != AS_DESCRIBED,
            bool(verdict(c).cached),
            total_bandwidth(c, "write") is None,
        ),
    )


def io_seconds(condition: Condition) -> Spread | None:
    """For each repetition, the I/O time of all its dumps."""
    every = (r for run in condition.runs for r in run.measurement.repetitions)
    return spread(sum(s.io_s for s in r.streams) for r in every)


def bandwidths(
    runs: Iterable[Measured],
    operation: str,
    time: Callable[[StreamResult], float] = lambda stream: stream.elapsed_s,
) -> list[float]:
    """For each repetition, the payload of all streams with that operation over the sum of their
    dumps' times; one that moved nothing has no bandwidth."""
    values = []
    for run in runs:
        for repetition in run.measurement.repetitions:
            streams = [s for s in repetition.streams if s.moved(operation)]
            took_s = sum(map(time, streams))
            if took_s > 0:
                values.append(sum(s.moved(operation) for s in streams) / took_s)
    return values


def stream_bandwidth(streams: Iterable[StreamResult]) -> Spread | None:
    """Payload over I/O time."""
    return spread(s.io_bandwidth_bytes_per_s for s in streams if s.io_s > 0 and s.bytes)


def container_bytes(streams: Iterable[StreamResult]) -> Spread | None:
    """Bytes on storage beyond what was written, per repetition; None where storage was not
    measured. Files of dumps that a deadline stopped may have holes, which are no overhead."""
    values = []
    for stream in streams:
        grown = [
            d.file_bytes - d.bytes + (d.phase_bytes("read") if stream.operation == "write" else 0)
            for d in stream.dumps
            if d.file_bytes is not None and not (isinstance(d, PlayedDump) and d.stopped)
        ]
        if grown:
            values.append(sum(grown))
    return spread(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict on one condition. `state` is pass, fail or undecided; it is undecided where a
    deadline bounded the payload, of which `bounded` has the bytes moved and planned."""

    condition: Condition
    error: float
    compared_bytes: int
    wrong_bytes: int
    verified_runs: int
    write: Spread | None
    read: Spread | None
    cached: frozenset[str]  # operations that the page cache can have served, as the records say
    elapsed: tuple[Spread | None, Spread | None]  # the same from first open to last close
    remedies: tuple[str, ...] = ()  # what would make storage serve them
    bounded: tuple[int, float] | None = None
    mixed_bytes: int = 0  # read between writes, besides what is described

    @property
    def state(self) -> str:
        if self.wrong_bytes or abs(self.error) > LIMIT_FRACTION:
            return "fail"
        if self.bounded:
            return "undecided"
        return "pass" if self.verified_runs == len(self.condition.runs) else "undecided"


def verdict(condition: Condition) -> Verdict:
    return condition.once("verdict", lambda: _verdict(condition))


def _verdict(condition: Condition) -> Verdict:
    played = [r.measurement for r in condition.runs if isinstance(r.measurement, Played)]
    checked = [m.verification for m in played if m.verification is not None]
    return Verdict(
        condition=condition,
        error=condition_error(condition),
        compared_bytes=sum(v.bytes for v in checked),
        wrong_bytes=sum(v.wrong_bytes for v in checked),
        verified_runs=sum(v.bytes > 0 for v in checked),
        write=total_bandwidth(condition, "write"),
        read=total_bandwidth(condition, "read"),
        elapsed=(
            spread(bandwidths(condition.runs, "write")),
            spread(bandwidths(condition.runs, "read")),
        ),
        cached=frozenset(_cached(condition)),
        remedies=tuple(dict.fromkeys(filter(None, map(_remedy, condition.runs)))),
        bounded=bounded_bytes(condition),
        mixed_bytes=condition_mixed_bytes(condition),
    )


def _cached(condition: Condition) -> Iterator[str]:
    for run in condition.runs:
        served = (run.run.cache or {}).get("may_serve", ())
        streams = run.measurement.repetitions[0].streams
        yield from (s.operation for s in streams if s.name in served)


def _remedy(run: Measured) -> str:
    names = {s.name for s in run.measurement.repetitions[0].streams}
    return cache.remedies(run.run, run.measurement, names)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRow:
    """Seconds of the ranks in the dump and repetition where one rank spent most on the phase."""

    condition: Condition
    stream: str
    phase: str
    dump: int
    seconds: tuple[float, float, float, float, float, float]
    imbalance: float | None


def slowest_phases(condition: Condition) -> Iterator[RankRow]:
    """Per stream and phase the order statistics of the slowest dump; max / median is imbalance."""
    for name in condition.stream_names():
        slowest: dict[str, tuple[int, Any]] = {}
        for index, dumps in condition.dumps(name).items():
            for phase in (p for d in dumps for p in d.phases):
                held = slowest.get(phase.phase)
                if held is None or phase.rank_s.max > held[1].max:
                    slowest[phase.phase] = (index, phase.rank_s)
        for phase_name, (index, s) in slowest.items():
            yield RankRow(
                condition=condition,
                stream=name,
                phase=phase_name,
                dump=index,
                seconds=(s.min, s.q25, s.median, s.q75, s.q95, s.max),
                imbalance=s.max / s.median if s.median > 0 else None,
            )


TAILS = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TailRow:
    """Seconds of the dumps of a stream, of all repetitions, at the shares TAILS."""

    condition: Condition
    stream: str
    dumps: int
    seconds: tuple[float, ...]


def tails(condition: Condition) -> Iterator[TailRow]:
    """Per stream the quantiles of the times of its dumps, from first open to last close."""
    for name in condition.stream_names():
        took_s = [d.elapsed_s for dumps in condition.dumps(name).values() for d in dumps]
        if took_s:
            yield TailRow(
                condition=condition,
                stream=name,
                dumps=len(took_s),
                seconds=tuple(quantile(took_s, share) for share in TAILS),
            )


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value with at least that share of the values at or below it."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered) * (1 - 1e-12)) - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PausesRow:
    """The repetition of a condition whose total of the pauses is farthest off."""

    condition: Condition
    pauses: Pauses


def kept_pauses(case: Case) -> Iterator[PausesRow]:
    """Nothing of conditions that were played without pauses."""
    for condition in case.conditions:
        repetition_pauses = [
            pauses.pauses(d for s in r.streams for d in s.dumps)
            for run in condition.runs
            if isinstance(run.measurement, Played)
            for r in run.measurement.repetitions
        ]
        asked = [p for p in repetition_pauses if p.asked_s > 0]
        if asked:
            yield PausesRow(condition=condition, pauses=max(asked, key=lambda p: abs(p.error)))


def is_scaled(condition: Condition) -> bool:
    """True if it played other ranks or bytes than the original, whose durations do not apply."""
    rule = condition.workload.scaling
    return condition.bytes_scale != 1 or (rule is not None and rule.rule != "none")


def original_bandwidth(condition: Condition, name: str) -> dict[int, float]:
    """Payload over I/O time of the original's dumps, where the descriptor knows it; none of a
    scaled condition."""
    stream = described(condition.workload, name)
    if stream is None or stream.name != name or is_scaled(condition):
        return {}
    return {i: d.bytes / d.io_s for i, d in enumerate(stream.expanded()) if d.io_s}


def original_speed(condition: Condition, operation: str) -> float | None:
    """Payload of the original's dumps over their I/O time (bytes/s); None where the descriptor
    does not know that of all, and of a scaled condition."""
    streams = [s for s in condition.workload.streams if s.operation == operation]
    dumps = [d for s in streams for d in s.expanded()]
    if not dumps or not all(d.io_s for d in dumps) or is_scaled(condition):
        return None
    return sum(d.bytes for d in dumps) / sum(d.io_s or 0 for d in dumps)

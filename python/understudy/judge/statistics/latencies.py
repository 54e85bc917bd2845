"""Latencies of several streams, repetitions or runs put together; docs/metrics.md defines them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from understudy.contracts.measurement import Latency, Measurement, PlayedStream
from understudy.judge.statistics.conditions import Condition

KINDS = ("write", "read", "file")


def merged(latencies: Iterable[Latency]) -> Latency | None:
    """The latencies of all their operations; None where there are none."""
    every = list(latencies)
    if not every:
        return None
    counts: Counter[int] = Counter()
    for latency in every:
        for ns, count in latency.histogram_ns:
            counts[ns] += count
    together = Latency(
        count=sum(latency.count for latency in every),
        bytes=sum(latency.bytes for latency in every),
        p50_s=0,
        p99_s=0,
        p999_s=0,
        max_s=max(latency.max_s for latency in every),
        histogram_ns=tuple(sorted(counts.items())),
    )
    p50_s, p99_s, p999_s = map(together.quantile, (0.5, 0.99, 0.999))
    return replace(together, p50_s=p50_s, p99_s=p99_s, p999_s=p999_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyRow:
    """Latencies of the operations of a kind of a stream, all repetitions together."""

    condition: Condition
    stream: str
    kind: str
    latency: Latency


def rows(condition: Condition) -> Iterator[LatencyRow]:
    """Per stream and kind of operations; nothing where no latencies were noted."""
    for name in condition.stream_names():
        streams = [s for s in condition.stream(name) if isinstance(s, PlayedStream)]
        for kind in KINDS:
            latency = merged(s.latency[kind] for s in streams if kind in s.latency)
            if latency is not None:
                yield LatencyRow(condition=condition, stream=name, kind=kind, latency=latency)


def kinds(measurement: Measurement, names: Collection[str]) -> list[str]:
    """The kinds of operations of these streams whose latencies were noted."""
    streams = [s for r in measurement.repetitions for s in r.streams if s.name in names]
    noted = {kind for s in streams if isinstance(s, PlayedStream) for kind in s.latency}
    return [kind for kind in KINDS if kind in noted]


def of_operation(measurement: Measurement, operation: str, stream: str = "") -> Latency | None:
    """Those of the data calls of a run, all repetitions together, reads between writes included:
    of all streams, or of that name."""
    return merged(
        played.latency[operation]
        for repetition in measurement.repetitions
        for played in repetition.streams
        if isinstance(played, PlayedStream)
        and operation in played.latency
        and (not stream or played.name == stream)
    )

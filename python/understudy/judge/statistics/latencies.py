"""Latencies of several streams, repetitions or runs put together; docs/metrics.md defines them."""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

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
    max_s = max(latency.max_s for latency in every)
    pairs = tuple(sorted(counts.items()))
    return Latency(
        count=sum(latency.count for latency in every),
        bytes=sum(latency.bytes for latency in every),
        p50_s=_quantile(pairs, max_s, 0.5),
        p99_s=_quantile(pairs, max_s, 0.99),
        p999_s=_quantile(pairs, max_s, 0.999),
        max_s=max_s,
        histogram_ns=pairs,
    )


def quantile(latency: Latency, share: float) -> float:
    """The smallest latency with at least that share of the operations at or below it, in seconds;
    exact to 1/128."""
    return _quantile(latency.histogram_ns, latency.max_s, share)


def _quantile(pairs: Iterable[Iterable[int]], max_s: float, share: float) -> float:
    ordered = [tuple(pair) for pair in pairs]
    need = max(1, math.ceil(share * sum(count for _, count in ordered) * (1 - 1e-12)))
    seen = 0
    for ns, count in ordered:
        seen += count
        if seen >= need:
            return min(ns / 1e9, max_s)
    return max_s


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
    """Those of the data calls of a run, all repetitions together: of the streams with the
    operation, or of the stream of that name."""
    return merged(
        played.latency[operation]
        for repetition in measurement.repetitions
        for played in repetition.streams
        if isinstance(played, PlayedStream)
        and operation in played.latency
        and (played.name == stream if stream else played.operation == operation)
    )

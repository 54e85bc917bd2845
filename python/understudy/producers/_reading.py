"""Reading that producers have in common; nothing here is a producer."""

from collections.abc import Iterator, Sequence
from typing import Any

from understudy.contracts.measurement import (
    DumpResult,
    Environment,
    Node,
    Repetition,
)
from understudy.contracts.run import Sample

# Of result/1, which had them in the environment.
_STORAGE = {"file_system": "type", "total_bytes": "total_bytes", "free_bytes": "free_bytes"}
IO_RATE = "io_bandwidth_bytes_per_s"  # of the same bytes and calls as the bandwidth
RATE, SECONDS, BYTES = "bytes/s", "s", "bytes"
HIGHER, LOWER, EXACT = "higher", "lower", "exact"


def environment_and_storage(row: dict[str, Any]) -> tuple[Environment, dict[str, Any]]:
    """Parts of a valid measurement; those of result/1 are brought into the form of today."""
    here = dict(row["environment"])
    storage = row.get("storage")
    if storage is None:
        storage = {new: here.pop(old) for old, new in _STORAGE.items()}
    values = here | {"command_line": tuple(here["command_line"]), "nodes": _nodes(here)}
    return Environment(**values), storage


def _nodes(here: dict[str, Any]) -> tuple[Node, ...]:
    """result/1 counted the nodes and named the first."""
    nodes = here["nodes"]
    if isinstance(nodes, list):
        return tuple(Node(**node) for node in nodes)
    if nodes == 1:
        return (Node(name=here["host"], ranks=here["ranks"]),)
    return (Node(name=here["host"], ranks=None), *[Node(name=None, ranks=None)] * (nodes - 1))


def common_samples(repetitions: Sequence[Repetition]) -> Iterator[Sample]:
    """Samples common to producers with repetitions, streams and phases."""
    for repetition in repetitions:
        n = repetition.repetition

        def sample(
            metric: str, unit: str, better: str, value: float, stream: str | None, n: int = n
        ) -> Sample:
            return Sample(
                metric=metric, unit=unit, better=better, stream=stream, repetition=n, value=value
            )

        yield sample("elapsed_s", SECONDS, LOWER, repetition.elapsed_s, None)
        for stream in repetition.streams:
            name = stream.name
            yield sample("bytes", BYTES, EXACT, stream.bytes, name)
            grown = [d.file_bytes for d in stream.dumps if d.file_bytes is not None]
            if grown:
                yield sample("file_bytes", BYTES, EXACT, sum(grown), name)
            if (bandwidth := stream.bandwidth_bytes_per_s) > 0:
                yield sample("bandwidth_bytes_per_s", RATE, HIGHER, bandwidth, name)
                yield sample(IO_RATE, RATE, HIGHER, stream.io_bandwidth_bytes_per_s, name)
                yield sample("io_s", SECONDS, LOWER, stream.io_s, name)
            for phase, elapsed_s in _phase_seconds(stream.dumps).items():
                yield sample(f"{phase}_s", SECONDS, LOWER, elapsed_s, name)
            for dump in stream.dumps:
                if (speed := dump.bandwidth_bytes_per_s) > 0:
                    yield sample("dump_bandwidth_bytes_per_s", RATE, HIGHER, speed, name)


def _phase_seconds(dumps: Sequence[DumpResult]) -> dict[str, float]:
    """Elapsed seconds of each phase, summed over the dumps."""
    seconds: dict[str, float] = {}
    for phase in (p for dump in dumps for p in dump.phases):
        seconds[phase.phase] = seconds.get(phase.phase, 0.0) + phase.elapsed_s
    return seconds

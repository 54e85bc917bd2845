"""The values of a run by which a mark is judged: a function for each metric of marks.

docs/how-to/accept-a-system.md defines the metrics.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from understudy.contracts.acceptance import READ, Mark
from understudy.contracts.measurement import (
    Benchmark,
    DumpResult,
    Measurement,
    Played,
    ProgramRun,
)
from understudy.contracts.run import RECORD_FILE, Run
from understudy.judge.statistics import latencies, metrics
from understudy.judge.statistics.conditions import (
    RESTART_SUFFIX,
    Condition,
    Measured,
    described,
    method_of,
)
from understudy.judge.statistics.limits import LIMIT_FRACTION


def _bandwidths(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """For each repetition, bytes over the sum of the times from first open to last close."""
    if isinstance(measurement, Benchmark):
        for sample in run.samples:
            if (sample.metric, sample.stream) == ("bandwidth_bytes_per_s", mark.operation):
                yield sample.value
        return
    for repetition in measurement.repetitions:
        streams = [s for s in repetition.streams if belongs(mark, s.name, s.operation)]
        elapsed_s = sum(d.elapsed_s for s in streams for d in s.dumps)
        if elapsed_s > 0:
            yield sum(s.bytes for s in streams) / elapsed_s


def belongs(mark: Mark, name: str, operation: str) -> bool:
    return name == mark.stream if mark.stream else operation == mark.operation


def _restarts(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """Seconds in which the checkpoints are read back."""
    assert isinstance(measurement, Played), "of the player"
    for repetition in measurement.repetitions:
        streams = [
            s for s in repetition.streams if restarted(mark, measurement, s.name, s.operation)
        ]
        if streams:
            yield sum(d.elapsed_s for s in streams for d in s.dumps)


def restarted(mark: Mark, measurement: Played, name: str, operation: str) -> bool:
    if mark.stream:
        return name in (mark.stream, mark.stream + RESTART_SUFFIX) and operation == READ
    stream = described(measurement.workload, name)
    return operation == READ and (
        stream is None or stream.name != name or stream.role == "restart"
    )


def _elapsed(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """At least the time until the last dump ended, whatever the record says."""
    assert isinstance(measurement, Played | ProgramRun), "with repetitions"
    for r in measurement.repetitions:
        ends = (p.last_end_s for s in r.streams for d in s.dumps for p in d.phases)
        yield max(r.elapsed_s, *ends)


def _dump_times(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """The quantile of the times of all dumps of a run, from first open to last close."""
    yield from _quantile(mark, measurement, lambda dump: dump.elapsed_s)


def _rank_times(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """The same of the seconds that the slowest rank spent in one phase of a dump."""
    yield from _quantile(
        mark, measurement, lambda dump: max((p.rank_s.max for p in dump.phases), default=0.0)
    )


def _latencies(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """The quantile of the latencies of all data calls of a run; nothing where none were noted."""
    assert mark.operation and mark.quantile, "of data calls"
    latency = latencies.of_operation(measurement, mark.operation, mark.stream or "")
    if latency is not None:
        yield latency.quantile(mark.quantile)


def _quantile(
    mark: Mark, measurement: Measurement, seconds: Callable[[DumpResult], float]
) -> Iterator[float]:
    assert isinstance(measurement, Played | ProgramRun) and mark.quantile, "of dumps"
    dump_s = [
        seconds(dump)
        for repetition in measurement.repetitions
        for stream in repetition.streams
        if belongs(mark, stream.name, stream.operation)
        for dump in stream.dumps
    ]
    if dump_s:
        yield metrics.quantile(dump_s, mark.quantile)


def _rates(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    for sample in run.samples:
        if (sample.metric, sample.stream) == ("rate_per_s", mark.operation):
            yield sample.value


def errors(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """The size of the worst error of payload; nothing where a deadline bounded it."""
    assert isinstance(measurement, Played), "of the player"
    measured = Measured(path=Path(RECORD_FILE), run=run, measurement=measurement)
    alone = Condition(
        method=method_of(measured),
        facts=(),
        place=measured.place,
        arm=run.identity.arm,
        runs=(measured,),
    )
    error = abs(metrics.condition_error(alone))
    if error > LIMIT_FRACTION or not metrics.bounded_bytes(alone):
        yield error


def _wrong_bytes(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """Nothing where no byte was compared."""
    checked = getattr(measurement, "verification", None)
    if checked is not None and checked.bytes:
        yield checked.wrong_bytes


Values = Callable[[Mark, Run, Measurement], Iterator[float]]
VALUES: Mapping[str, Values] = {
    "bandwidth": _bandwidths,
    "variability": _bandwidths,
    "restart": _restarts,
    "elapsed": _elapsed,
    "dump-time": _dump_times,
    "rank-time": _rank_times,
    "latency": _latencies,
    "metadata-rate": _rates,
    "fidelity": errors,
    "data-errors": _wrong_bytes,
    "survival": _wrong_bytes,
}

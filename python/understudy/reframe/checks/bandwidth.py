# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Bandwidth of a file system for a workload."""

from statistics import median

from reframe.core.builtins import run_before
from reframe.core.exceptions import SanityError

from understudy.judge.statistics import latencies
from understudy.judge.statistics.metrics import DATA_PHASES
from understudy.reframe.bases.placed import MIB
from understudy.reframe.bases.played import Played, stream_of


class Bandwidth(Played):
    """Bandwidth and latency of every stream and elapsed time of the whole, against the system's
    references."""

    @run_before("performance")
    def one_bandwidth_per_stream(self) -> None:
        for name in [*(stream.name for stream in self.described.streams), *self.restarts]:
            self.promise(f"{name}_bandwidth", "MiB/s", self._bandwidth, name)
        self.promise("elapsed", "s", self._elapsed_s)
        moving = [stream.name for stream in self.described.streams if stream.bytes]
        for name in [*moving, *self.restarts]:
            self.measure(f"{name}_latency_p99", "ms", self._latency_ms, name)

    def _bandwidth(self, name: str) -> float:
        return median(
            stream_of(r, name).bandwidth_bytes_per_s / MIB for r in self.played.repetitions
        )

    def _latency_ms(self, name: str) -> float:
        """The time that 99 % of the data calls of a stream take at most, of all repetitions."""
        streams = [stream_of(r, name) for r in self.played.repetitions]
        calls = [s.latency[kind] for s in streams for kind in DATA_PHASES if kind in s.latency]
        latency = latencies.merged(calls)
        if latency is None:
            raise SanityError(f"{name}: the player noted no latencies of data calls")
        return 1000 * latency.p99_s

    def _elapsed_s(self) -> float:
        return median(r.elapsed_s for r in self.played.repetitions)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Bandwidth of a file system for a workload."""

from statistics import median

from reframe.core.builtins import run_before

from understudy.reframe.bases.placed import MIB
from understudy.reframe.bases.played import Played, stream_of


class Bandwidth(Played):
    """Bandwidth of every stream and elapsed time of the whole, against the system's references."""

    @run_before("performance")
    def one_bandwidth_per_stream(self) -> None:
        for name in [*(stream.name for stream in self.described.streams), *self.restarts]:
            self.promise(f"{name}_bandwidth", "MiB/s", self._bandwidth, name)
        self.promise("elapsed", "s", self._elapsed_s)

    def _bandwidth(self, name: str) -> float:
        return median(
            stream_of(r, name).bandwidth_bytes_per_s / MIB for r in self.played.repetitions
        )

    def _elapsed_s(self) -> float:
        return median(r.elapsed_s for r in self.played.repetitions)

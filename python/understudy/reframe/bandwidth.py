# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""How fast does a file system take a workload?"""

from pathlib import Path
from statistics import median

from reframe.core.builtins import run_after, run_before
from reframe.core.runtime import runtime

from understudy.paths import files
from understudy.reframe.placed import MIB
from understudy.reframe.played import Played, stream_of


class Bandwidth(Played):
    """Bandwidth of every stream and elapsed time of the whole, against the system's references.

    References are in configs/references/<system>.yaml (or another folder, RFM_REFERENCE_PREFIX),
    if that file exists; without it values are only recorded. The mode accept requires them.
    """

    @run_after("init")
    def load_references(self) -> None:
        system = self.current_system.name
        if folder := runtime().get_option("general/0/reference_prefix"):
            path: Path | None = Path(folder) / f"{system}.yaml"
        else:
            path = files("references", ".yaml").get(system)
        if path and path.is_file():
            self.reference = {"$ref": str(path)}

    @run_before("performance")
    def one_bandwidth_per_stream(self) -> None:
        for name in [*(stream.name for stream in self.described.streams), *self.restarts]:
            self.measure(f"{name}_bandwidth", "MiB/s", self._bandwidth, name)
        self.measure("elapsed", "s", self._elapsed_s)

    def _bandwidth(self, name: str) -> float:
        return median(
            stream_of(r, name).bandwidth_bytes_per_s / MIB for r in self.played.repetitions
        )

    def _elapsed_s(self) -> float:
        return median(r.elapsed_s for r in self.played.repetitions)

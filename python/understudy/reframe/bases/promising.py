# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Which values a check measures, which of them a site promises, and the references of these."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError
from reframe.core.runtime import runtime

from understudy.reframe import reframe_internals
from understudy.reframe.bases import references


class Promising(rfm.RegressionTestPlugin):
    """Part of a check: its values, and the demands of the site for them."""

    condition = variable(str, value="", loggable=True)  # key of the references; known by the run
    references_file: Path | None = None
    reference: Any
    require_reference: Any
    perf_variables: Any
    current_system: Any
    current_partition: Any

    @run_after("init")
    def demand_all_references_at_once(self) -> None:
        """ReFrame would demand one for every value, and name the first that is missing."""
        self.demands_references = bool(self.require_reference)
        self.require_reference = False
        self.promised: list[str] = []

    @run_after("init")
    def load_references(self) -> None:
        """configs/references/<system>.yaml (or another folder, RFM_REFERENCE_PREFIX), if that file
        exists; without it values are only recorded."""
        system = self.current_system.name
        folder = runtime().get_option("general/0/reference_prefix")
        path = Path(folder) / f"{system}.yaml" if folder else references.file_of(system)
        # ReFrame cannot read a file without a section for the check.
        if path and path.is_file() and type(self).__name__ in references.read(path):
            self.reference = {"$ref": str(path)}
            self.references_file = path

    @run_before("performance", always_last=True)
    def demand_references(self) -> None:
        """For what a site promises; what a workload fixes itself has bounds of its own. A dry run
        measured nothing: there, a reference under any condition is enough."""
        here = self.current_partition.fullname
        reference_names = (
            self._named_references() if self.is_dry_run() else set(self._references())
        )
        lacking = [name for name in self.promised if name not in reference_names]
        if self.demands_references and lacking:
            under = f" under condition {self.condition}" if self.condition else ""
            raise PerformanceError(
                f"no reference for {', '.join(lacking)} on {here}{under}; "
                f"understudy references --system {self.current_system.name} writes them from the "
                "records of runs"
            )

    def _references(self) -> dict[str, Any]:
        """The references of promised values that there are."""
        of_system, of_promised = reframe_internals.references_of(self), {}
        for name in self.promised:
            with suppress(KeyError):
                of_promised[name] = of_system[f"{self.current_partition.fullname}:{name}"]
        return of_promised

    def _named_references(self) -> set[str]:
        """Names that have a reference on the partition under any condition."""
        if self.references_file is None:
            return set()
        section = references.read(self.references_file)[type(self).__name__]
        return set(references.names(section.get(self.current_partition.fullname)))

    def bound(self, bounds: Mapping[str, tuple[float, float | None, float | None, str]]) -> None:
        """Bounds of the check's own, beside the references of the system; after `promise`."""
        here = self.current_partition.fullname
        self.reference = {here: {**self._references(), **bounds}}

    def promise(self, name: str, unit: str, value: Any, *arguments: Any) -> None:
        """Declare a performance variable that a site promises: a bandwidth, a time, a rate. The
        mode accept demands a reference for it."""
        self.measure(name, unit, value, *arguments)
        self.promised.append(name)

    def measure(self, name: str, unit: str, value: Any, *arguments: Any) -> None:
        """Declare a performance variable. Its name is known before the run, for a dry run."""
        self.perf_variables[name] = sn.make_performance_function(value, unit, *arguments)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""How close does the replica of a simulation come to the sizes that its publication states?"""

import sys
from collections.abc import Iterator
from typing import Any

from reframe.core.builtins import run_after, run_before, variable

from understudy.errors import UnderstudyError
from understudy.judge.statistics.metrics import payload_error, worst
from understudy.reframe.bases.played import Played
from understudy.reframe.bases.recording import PlannedRun
from understudy.reframe.session.session import asks_to_run, exit_on_error
from understudy_papers.judge import published_sizes
from understudy_papers.model import simulation


class SimulationSizes(Played):
    """Sizes on storage of a simulation's replica, against those stated for it (Table II).

    The errors of checkpoints and visualization time steps are those of `published_sizes`,
    with the containers, and must stay below the tolerances; the payload must be exact. The stated
    sizes hold only for the same total bytes: the workload as it is, or scaled strongly.
    """

    mean_tolerance_percent = variable(float, value=0.1, loggable=True)
    max_tolerance_percent = variable(float, value=0.5, loggable=True)
    mean_tolerance = variable(float, type(None), value=None)
    max_tolerance = variable(float, type(None), value=None)
    renamed = {
        "mean_tolerance": "mean_tolerance_percent",
        "max_tolerance": "max_tolerance_percent",
    }
    stated: Any  # the simulation; None, and skipped, if the sizes are not its own

    def _time_scale(self, last_s: float) -> float:
        return 0.0

    @run_after("init")
    def check_simulation(self) -> None:
        """Before any test of a session that runs; a listing composes no simulation."""
        if asks_to_run(sys.argv[1:]):
            with exit_on_error():
                self._simulation()

    def _simulation(self) -> simulation.Simulation | None:
        """None if the sizes are not its own."""
        if self.scaling == "weak":
            return None
        if stated := simulation.played_by(self.described, self.text):
            return stated
        raise UnderstudyError(
            f"{self.workload}: the workload differs from what the simulation of that name gives; "
            "recreate it with understudy compose"
        )

    @run_after("setup")
    def skip_weak_scaling(self) -> None:
        self.stated = self._simulation()
        self.skip_if(
            self.stated is None,
            f"{self.workload} scaled weakly has other sizes than its simulation; expected "
            "-S scaling=strong",
        )

    @run_before("performance")
    def one_error_per_row(self) -> None:
        limits = {
            "checkpoint_mean_error": self.mean_tolerance_percent,
            "checkpoint_max_error": self.max_tolerance_percent,
            "total_error": self.mean_tolerance_percent,
            "state_error": self.mean_tolerance_percent,
        }
        for name in limits:
            self.measure(name, "%", self._error_percent, name)
        self.measure("payload_error", "%", self._payload_error_percent)
        # Of a reference of 0 the thresholds are absolute.
        self.reference = {
            "*": {name: (0, None, limit, "%") for name, limit in limits.items()}
            | {"payload_error": (0, 0, 0, "%")}
        }

    def _accuracy(self) -> simulation.Accuracy:
        accuracies = (published_sizes.accuracy(self.stated, r) for r in self.played.repetitions)
        return published_sizes.largest(accuracies)

    def _error_percent(self, name: str) -> float:
        return 100 * float(getattr(self._accuracy(), name))

    def _payload_error_percent(self) -> float:
        streams = [s for r in self.played.repetitions for s in r.streams]
        dumps = [d for s in streams for d in s.dumps]
        return 100 * worst(payload_error(d.bytes, d.described_bytes) for d in dumps)

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        faults = list(super()._faults())
        yield from faults
        if not faults:
            self._accuracy()  # raises an UnderstudyError if there are no sizes to compare

    def _verdict(self) -> str:
        words = f"{super()._verdict()}; {_errors(self._accuracy())}"
        if self.stated.published is None:
            return words
        return f"{words}; {self.stated.published.where}: {_errors(self.stated.published.accuracy)}"


def _errors(accuracy: simulation.Accuracy) -> str:
    return (
        f"error of checkpoints {accuracy.checkpoint_mean_error:.4%} (mean), "
        f"{accuracy.checkpoint_max_error:.4%} (maximum), of time steps {accuracy.total_error:.4%} "
        f"(total), {accuracy.state_error:.4%} (each)"
    )

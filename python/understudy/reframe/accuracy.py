# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Is a skeleton as fast as its application?"""

from abc import abstractmethod
from collections.abc import Sequence
from statistics import fmean
from typing import Any

import numpy as np
from reframe.core.builtins import run_before, variable

from understudy.judge import accuracy
from understudy.judge.limits import LIMIT_FRACTION
from understudy.reframe.interleaved import Arm, Interleaved
from understudy.reframe.placed import MIB
from understudy.units import percent, size

APPLICATION, SKELETON = "application", "skeleton"


class Accuracy(Interleaved):
    """Throughput of a skeletal application and its application, and the error of the skeleton."""

    tolerance_percent = variable(float, value=100 * LIMIT_FRACTION, loggable=True)
    tolerance = variable(float, type(None), value=None)
    renamed = {"tolerance": "tolerance_percent"}
    application = variable(str, loggable=True)

    @property
    @abstractmethod
    def application_program(self) -> str | None:
        """The program that stands for the application; None if only the skeleton runs."""

    @property
    @abstractmethod
    def skeleton_program(self) -> str:
        """The name of the skeleton's program."""

    @property
    def arms(self) -> Sequence[Arm]:
        skeleton = Arm(name=SKELETON, producer=SKELETON, program=self.skeleton_program)
        if self.application_program is None:
            return [skeleton]
        program = self.application_program
        return [Arm(name=APPLICATION, producer=APPLICATION, program=program), skeleton]

    @property
    def step_bytes(self) -> int:
        """Of all processes."""
        return self.bytes_needed

    def throughputs(self, arm: Arm) -> list[list[float]]:
        """Bytes/s of every step of every run, in the order of the rounds."""
        return self.samples(arm, "dump_bandwidth_bytes_per_s")

    def errors(self) -> dict[str, accuracy.Estimate]:
        """None if the skeleton ran alone."""
        if len(self.arms) == 1:
            return {}
        application, skeleton = map(self.throughputs, self.arms)
        return accuracy.errors(application, skeleton)

    @run_before("performance")
    def throughput_and_errors(self) -> None:
        for arm in self.arms:
            for name, of in (("mean", fmean), ("min", min), ("max", max)):
                promised = (arm.name, name) == (SKELETON, "mean")
                declare = self.promise if promised else self.measure
                declare(f"{arm.name}_{name}", "MiB/s", self._throughput, arm, of)
        if len(self.arms) == 1:
            return
        for name in accuracy.STATISTICS:
            self.measure(f"{name}_error", "%", self._error_percent, name, "value")
            self.measure(f"{name}_error_at_least", "%", self._error_percent, name, "least")
        # The check fails only if the whole interval is beyond the limit: undecided passes.
        self.bound(
            {
                f"{name}_error_at_least": (0, None, self.tolerance_percent, "%")
                for name in accuracy.STATISTICS
            }
        )

    def _throughput(self, arm: Arm, of: Any) -> float:
        return float(of(list(np.ravel(self.throughputs(arm))))) / MIB

    def _error_percent(self, statistic: str, of: str) -> float:
        return 100 * float(getattr(self.errors()[statistic], of))

    def _verdict(self) -> str:
        steps = self.throughputs(self.arms[-1])
        speeds = np.ravel(steps)
        words = [
            f"{self.rounds} runs of {len(steps[0])} steps of {self.step_bytes:,} bytes, "
            f"skeleton {size(speeds.mean())}/s ({size(speeds.min())} to {size(speeds.max())})"
        ]
        for name, error in self.errors().items():
            words.append(
                f"error of the {name} {percent(error.value)} ({percent(error.low)} to "
                f"{percent(error.high)}): {accuracy.state(error, self.tolerance_percent / 100)}"
            )
        return "; ".join(words)

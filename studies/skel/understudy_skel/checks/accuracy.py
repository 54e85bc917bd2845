# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Is a skeleton as fast as its application, as far as the machine can tell?"""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from reframe.core.builtins import run_after, run_before, variable
from reframe.core.exceptions import PerformanceError
from reframe.utility import typecheck

from understudy.judge.statistics import paired_errors
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.paired_errors import (
    APPLICATION,
    CONTROLS,
    OVERALL,
    SKELETON,
    UNDECIDED,
)
from understudy.reframe.bases.interleaved import Arm, Interleaved
from understudy.reframe.bases.placed import MIB
from understudy.units import percent, size


class Accuracy(Interleaved):
    """Throughput of a skeletal application and its application, and the error of the skeleton.

    Both run twice in each round: what a program differs from itself is the noise floor.
    """

    rounds = 12  # each arm is at each place of a round as often
    must_decide = variable(typecheck.Bool, value=False, loggable=True)
    tolerance_percent = variable(float, value=100 * LIMIT_FRACTION, loggable=True)
    tolerance = variable(float, type(None), value=None)
    renamed = {"tolerance": "tolerance_percent"}
    application = variable(str, loggable=True)
    _errors: dict[str, paired_errors.Error] | None = None

    @property
    def application_program(self) -> str | None:
        """The program that stands for the application; None if only the skeleton runs."""
        raise NotImplementedError

    @property
    def skeleton_program(self) -> str:
        """The name of the skeleton's program."""
        raise NotImplementedError

    @property
    def arms(self) -> Sequence[Arm]:
        if self.application_program is None:
            return [self._arm(SKELETON, SKELETON)]
        return [
            self._arm(APPLICATION, APPLICATION),
            self._arm(SKELETON, SKELETON),
            self._arm(SKELETON, CONTROLS[SKELETON]),
            self._arm(APPLICATION, CONTROLS[APPLICATION]),
        ]

    def _arm(self, producer: str, name: str) -> Arm:
        program = self.skeleton_program if producer == SKELETON else self.application_program
        return Arm(name=name, producer=producer, program=str(program))

    @property
    def step_bytes(self) -> int:
        """Bytes of all processes."""
        return self.bytes_needed

    def throughputs(self, arm: Arm) -> list[list[float]]:
        """Bytes/s of every step of every run, in the order of the rounds."""
        return self.samples(arm, "dump_bandwidth_bytes_per_s")

    def errors(self) -> dict[str, paired_errors.Error]:
        """None if the skeleton ran alone; resampled once."""
        if self._errors is None:
            runs = {arm.name: self.throughputs(arm) for arm in self.arms}
            self._errors = {}
            if len(runs) > 1:
                controls = (runs[CONTROLS[APPLICATION]], runs[CONTROLS[SKELETON]])
                self._errors = paired_errors.errors(runs[APPLICATION], runs[SKELETON], controls)
        errors: dict[str, paired_errors.Error] = self._errors
        return errors

    @property
    def verdict(self) -> str | None:
        """within, outside or undecided; None if the skeleton ran alone."""
        errors = self.errors()
        return errors[OVERALL].state(float(self.tolerance_percent) / 100) if errors else None

    @run_before("performance")
    def throughput_and_errors(self) -> None:
        for producer in dict.fromkeys(arm.producer for arm in self.arms):
            for name, of in (("mean", fmean), ("min", min), ("max", max)):
                promised = (producer, name) == (SKELETON, "mean")
                declare = self.promise if promised else self.measure
                declare(f"{producer}_{name}", "MiB/s", self._throughput, producer, of)
        if len(self.arms) == 1:
            return
        for name in paired_errors.STATISTICS:
            self.measure(f"{name}_error", "%", self._error_percent, name, "value")
        for end in ("low", "high"):
            self.measure(f"{OVERALL}_error_{end}", "%", self._error_percent, OVERALL, end)
            for arm in CONTROLS:
                self.measure(f"{arm}_against_itself_{end}", "%", self._control_percent, arm, end)
        self.measure("error_decided", "%", self._decided_percent)
        self.bound({"error_decided": (0, None, self.tolerance_percent, "%")})

    def _throughput(self, producer: str, of: Any) -> float:
        return float(of(list(self._speeds(producer)))) / MIB

    def _speeds(self, producer: str) -> Iterator[float]:
        """Throughput of every step of a program, controls included."""
        for arm in self.arms:
            if arm.producer == producer:
                yield from (speed for run in self.throughputs(arm) for speed in run)

    def _error_percent(self, statistic: str, of: str) -> float:
        return 100 * float(getattr(self.errors()[statistic].error, of))

    def _control_percent(self, arm: str, of: str) -> float:
        return 100 * float(getattr(self.errors()[OVERALL].controls[arm], of))

    def _decided_percent(self) -> float:
        """The smallest error that is sure; 0 unless it is outside of the limit."""
        outside = self.verdict == paired_errors.OUTSIDE
        return 100 * self.errors()[OVERALL].error.least if outside else 0.0

    @run_after("performance")
    def fail_if_undecided(self) -> None:
        """Where a decision is asked for, as the mode accept does."""
        if self.must_decide and not self.is_dry_run() and self.verdict == UNDECIDED:
            raise PerformanceError(
                f"undecided: {self._overall()}; more rounds make intervals narrower "
                f"(-S rounds={2 * self.rounds}), and idle nodes make controls smaller"
            )

    def _overall(self) -> str:
        overall = self.errors()[OVERALL]
        words = [f"error of the overall throughput {_with_interval(overall.error)}"]
        words += [
            f"{arm} against itself {_with_interval(control)}"
            for arm, control in overall.controls.items()
        ]
        return ", ".join(words)

    def _verdict(self) -> str:
        speeds = list(self._speeds(SKELETON))
        runs = f"{self.rounds} rounds of runs of {len(self.throughputs(self.arms[0])[0])} steps"
        words = [
            f"{runs} of {self.step_bytes:,} bytes, skeleton {size(fmean(speeds))}/s "
            f"({size(min(speeds))} to {size(max(speeds))})"
        ]
        if (verdict := self.verdict) is not None:
            of_the_paper = (
                f"error of the {name} {_with_interval(self.errors()[name].error)}"
                for name in paired_errors.OF_THE_PAPER
            )
            words = [f"{verdict}: {self._overall()}", *of_the_paper, *words]
        return "; ".join(words)


def _with_interval(estimate: paired_errors.Estimate) -> str:
    return f"{percent(estimate.value)} ({percent(estimate.low)} to {percent(estimate.high)})"

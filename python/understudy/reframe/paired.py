# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Base class of checks in which a skeletal application and its application run in turn."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from reframe.core.builtins import run_before, variable

from understudy import accuracy
from understudy.errors import UnderstudyError
from understudy.reframe.check import MIB, Placed
from understudy.report.show import percent, size
from understudy.result import Result, load

APPLICATION, SKELETON = "application", "skeleton"


@lru_cache(maxsize=64)
def _loaded(path: Path, _changed_ns: int) -> Result:
    return load(path)


class Paired(Placed):
    """Pairs of runs in one job, each in the order that the last had not, and what they tell.

    A check below it gives the command of a run.
    """

    pairs = variable(int, value=11, loggable=True)
    tolerance = variable(float, value=100 * accuracy.LIMIT, loggable=True)  # %
    application = variable(str, loggable=True)

    @property
    def kinds(self) -> list[str]:
        return [APPLICATION, SKELETON]

    @property
    def judged(self) -> bool:
        """Is there an application beside the skeleton?"""
        return APPLICATION in self.kinds

    @property
    def programs(self) -> list[str]:
        """What their sentences begin with."""
        raise NotImplementedError

    def _first_fault(self) -> str | None:
        if self.job.exitcode not in (0, None):
            words = self._last_words(*self.programs)
            return f"the job ended with status {self.job.exitcode}: {words}"
        try:
            return next(self._faults(), None)
        except UnderstudyError as error:
            return str(error)

    def _faults(self) -> Iterator[str]:
        raise NotImplementedError

    @property
    def step_bytes(self) -> int:
        """Of all processes."""
        return self.bytes_needed

    def command(self, kind: str, result: Path) -> str:
        """The program of a kind and its options; what the launcher starts."""
        raise NotImplementedError

    def turns(self) -> Iterator[str]:
        """Lines of the job."""
        self.job.num_tasks = self.num_tasks  # the launcher asks the job, which is told later
        self.job.num_tasks_per_node = self.num_tasks_per_node
        launch = self.job.launcher.run_command(self.job)
        for pair in range(self.pairs):
            for kind in self.kinds if pair % 2 == 0 else reversed(self.kinds):
                result = self.result_of(kind, pair)
                yield f"mkdir -p {result.parent}"
                yield f"{launch} {self.command(kind, result)}"

    def result_of(self, kind: str, pair: int) -> Path:
        return Path(kind) / f"{pair:0{len(str(self.pairs - 1))}d}" / "result.json"

    def played(self, path: Path) -> Result:
        """The result at a path below the stage."""
        whole = Path(self.stagedir) / path
        return _loaded(whole, whole.stat().st_mtime_ns if whole.exists() else 0)

    def throughputs(self, kind: str) -> list[list[float]]:
        """Bytes/s of every step of every run, in their order."""
        return [
            [
                d.bandwidth_bytes_per_s
                for r in self.played(self.result_of(kind, pair)).repetitions
                for d in r.streams[0].dumps
            ]
            for pair in range(self.pairs)
        ]

    def errors(self) -> dict[str, accuracy.Estimate]:
        return accuracy.errors(self.throughputs(APPLICATION), self.throughputs(SKELETON))

    @run_before("performance")
    def throughput_and_errors(self) -> None:
        for kind in self.kinds:
            for name, of in (("mean", fmean), ("min", min), ("max", max)):
                self.measure(f"{kind}_{name}", "MiB/s", self._throughput, kind, of)
        if not self.judged:
            return
        for name in accuracy.STATISTICS:
            self.measure(f"{name}_error", "%", self._error_percent, name, "value")
            self.measure(f"{name}_error_at_least", "%", self._error_percent, name, "least")
        # The whole interval must be outside for the check to fail: an undecided case is none.
        self.reference = {
            "*": {
                f"{name}_error_at_least": (0, None, self.tolerance, "%")
                for name in accuracy.STATISTICS
            }
        }

    def _throughput(self, kind: str, of: Any) -> float:
        return float(of(list(np.ravel(self.throughputs(kind))))) / MIB

    def _error_percent(self, statistic: str, of: str) -> float:
        return 100 * float(getattr(self.errors()[statistic], of))

    def _verdict(self) -> str:
        steps = self.throughputs(SKELETON)
        speeds = np.ravel(steps)
        words = [
            f"{self.pairs} runs of {len(steps[0])} steps of {self.step_bytes:,} bytes, "
            f"skeleton {size(speeds.mean())}/s ({size(speeds.min())} to {size(speeds.max())})"
        ]
        for name, error in self.errors().items() if self.judged else ():
            words.append(
                f"error of the {name} {percent(error.value)} ({percent(error.low)} to "
                f"{percent(error.high)}): {accuracy.state(error, self.tolerance / 100)}"
            )
        return "; ".join(words)

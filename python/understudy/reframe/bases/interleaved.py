# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Base class of the checks in which several programs run in turn, in one job.

Programs that are compared must meet the same machine, so they share one allocation: in each round
every arm runs once, and the order changes from round to round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reframe.core.builtins import variable

from understudy import producers
from understudy.contracts.measurement import Measurement
from understudy.errors import UnderstudyError
from understudy.producers import MEASUREMENT_FILE
from understudy.reframe.bases.placed import Placed
from understudy.reframe.bases.recording import PlannedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One of the programs that are compared."""

    name: str  # replica, skeleton, application, canary …
    producer: str  # of understudy.producers: what reads its measurement
    program: str  # what its error messages begin with


def order(arms: Sequence[Arm], round_: int) -> list[Arm]:
    """The arms in the order of a round; in a cycle of rounds each is at each place as often.

    Of four, the first and the last, and the two between them, lie around the middle of every
    round, so that a drift within it meets both pairs alike: abcd, badc, dcba, cdab. Of others,
    each is first in turn, and of three or more the direction changes after each cycle.
    """
    first = round_ % len(arms)
    if len(arms) == 4:
        swapped = first ^ first >> 1
        return [arms[place ^ swapped] for place in range(4)]
    turned = [*arms[first:], *arms[:first]]
    reverse = len(arms) > 2 and round_ // len(arms) % 2
    return turned[::-1] if reverse else turned


class Interleaved(Placed):
    """Runs every arm once in each round; statistics read the records of the runs.

    A check derived from it gives the arms and their commands.
    """

    rounds = variable(int, value=11, loggable=True)
    pairs = variable(alias=rounds)  # what rounds of two arms are called

    @property
    def arms(self) -> Sequence[Arm]:
        """The compared arms."""
        raise NotImplementedError

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        """Command for the launcher: it writes data to a directory, its measurement to a file."""
        raise NotImplementedError

    def faults_of(self, arm: Arm, measured: Measurement) -> Iterator[str]:
        """Where a measurement is not what was asked for."""
        raise NotImplementedError

    def moved_on(self, here: Any) -> int:
        return int(self.rounds * len(self.arms) * self.bytes_on(here))

    @property
    def planned_runs(self) -> Sequence[PlannedRun]:
        return [self.run_of(arm, n) for n in range(self.rounds) for arm in order(self.arms, n)]

    def run_of(self, arm: Arm, round_: int) -> PlannedRun:
        folder = Path(arm.name) / f"{round_:0{len(str(self.rounds - 1))}d}"
        return PlannedRun(
            folder=folder,
            producer=arm.producer,
            arm=arm.name,
            round=round_,
            command=self.command(arm, f"$dir/{arm.name}", str(folder / MEASUREMENT_FILE)),
        )

    @property
    def programs(self) -> Sequence[str]:
        return [*(arm.program for arm in self.arms), "understudy"]

    def turns(self) -> Iterator[str]:
        """Lines of the job."""
        self.job.num_tasks = self.num_tasks  # the launcher asks the job, which is told later
        self.job.num_tasks_per_node = self.num_tasks_per_node
        launch = self.job.launcher.run_command(self.job)
        for run in self.planned_runs:
            yield f"mkdir -p {run.folder}"
            yield f"{launch} {run.command}"

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        for arm in self.arms:
            for run in (self.run_of(arm, n) for n in range(self.rounds)):
                try:
                    measured = producers.get(arm.producer).read(self._staged(run.measurement))
                    faults = [f"{run.measurement}: {f}" for f in self.faults_of(arm, measured)]
                except UnderstudyError as error:
                    faults = [str(error)]
                yield from ((run, fault) for fault in faults)

    def samples(self, arm: Arm, metric: str) -> list[list[float]]:
        """The values of a metric in every round."""
        return [
            [s.value for s in self.recorded(self.run_of(arm, n)).samples if s.metric == metric]
            for n in range(self.rounds)
        ]

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""What does Darshan cost a program, in I/O time?"""

import shlex
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from reframe.core.builtins import run_after, run_before, variable

from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    streams_of,
)
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.judge.fidelity.transfer import OUTSIDE
from understudy.judge.statistics.conditions import UNDER
from understudy.producers import ior
from understudy.reframe.bases import observer
from understudy.reframe.bases.benchmark import Benchmark
from understudy.reframe.bases.interleaved import Arm
from understudy.reframe.bases.methods import PLAYER
from understudy.reframe.bases.observed import LETTERS, LOG, Observed, under_darshan
from understudy.reframe.bases.placed import MIB
from understudy.reframe.bases.recording import PlannedRun
from understudy.reframe.session.option_values import Size
from understudy.reframe.session.session import exit_on_error
from understudy.reframe.systems import MAX_BYTES
from understudy.units import percent, seconds, size
from understudy_darshan.judge import overhead
from understudy_darshan.judge.overhead import CONTROL, LIMIT_PERCENT, WITHOUT

IOR = "ior"
TRANSFER_BYTES = 512 << 10


class Overhead(Observed):
    """The I/O time of a program with and without Darshan, in turn, with pauses.

    IOR, or the player with the same pattern where IOR is not on PATH: a file per process,
    independent MPI-IO, 512 MiB per process in accesses of 512 KiB, fewer where the partition takes
    fewer.
    """

    program = variable(str, value="")  # ior or understudy-replay; by default, what there is
    block_bytes = variable(Size, int, value=512 * MIB, loggable=True)
    pause_s = variable(float, value=5.0, loggable=True)
    limit_percent = variable(float, value=LIMIT_PERCENT, loggable=True)

    rounds = 15
    operations = ("write",)
    keep_files = ["workload.json", WITHOUT, CONTROL, *(f"{UNDER}{x}" for x in LETTERS)]

    @run_after("init", always_last=True)
    def choose_program(self) -> None:
        with exit_on_error():
            if self.program not in ("", IOR, PLAYER):
                raise UnderstudyError(f"-S program={self.program}: expected {IOR} or {PLAYER}")
        self.is_chosen = bool(self.program)
        if not self.program:
            self.program = IOR if shutil.which(IOR) else PLAYER

    @run_after("setup")
    def use_ior_of_the_nodes(self) -> None:
        """Use IOR by name: PATH here says nothing of the nodes of a batch system."""
        if not self.local and not self.is_chosen:
            self.program = IOR

    @property
    def methods_needed(self) -> set[str]:
        return {"mpiio"} if self.program == PLAYER else set()

    @property
    def bytes_needed(self) -> int:
        return int(self.ranks * self.block_bytes)

    def block_on(self, here: Any) -> int:
        """Bytes of a process: whole accesses, as many as the partition takes."""
        maximum = here.extras.get(MAX_BYTES) if self.max_bytes is None else self.max_bytes
        block = self.block_bytes
        if maximum is not None:
            block = min(block, maximum // self.ranks)
        return int(max(1, block // TRANSFER_BYTES) * TRANSFER_BYTES)

    def bytes_on(self, here: Any) -> int:
        return int(self.ranks * self.block_on(here))

    def moved_on(self, here: Any) -> int:
        return int(self.rounds * len(self.arms) * self.bytes_on(here))

    def idle_s(self) -> float:
        return float(self.rounds * len(self.arms) * self.pause_s)

    @property
    def name_of_case(self) -> str:
        return f"{overhead.CASE}{self.program}"

    @property
    def title(self) -> str:
        why = "" if self.is_chosen else ", for ior is not on PATH"
        said = "" if self.program == IOR else f" by {PLAYER}{why}"
        return f"overhead of Darshan{said}"

    @property
    def arms(self) -> Sequence[Arm]:
        kind = IOR if self.program == IOR else "player"
        return [
            Arm(name=name, producer=kind, program=self.program)
            for name in (WITHOUT, CONTROL, *self.arms_under_darshan)
        ]

    @run_before("run")
    def set_up(self) -> None:
        here = self.current_partition
        # Darshan leaves out /dev and /var by default.
        line = f"'NAME_INCLUDE ^{observer.DIRECTORY}(/|$) *'"
        self.prerun_cmds += [f"printf '%s\\n' {line} >{observer.SETTINGS}"]
        if self.program == PLAYER:
            (Path(self.stagedir) / "workload.json").write_text(
                pattern(self.ranks, self.block_on(here)).to_text(), encoding="utf-8"
            )

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        folder = Path(measurement).parent
        block = self.block_on(self.current_partition)
        if self.program == IOR:
            words = (
                f'{IOR} -a MPIIO -F -w -t {TRANSFER_BYTES} -b {block} -o "{directory}/data" '
                f"-O summaryFormat=JSON -O summaryFile={folder}/summary.json"
            )
        else:
            words = f'{PLAYER} -w workload.json -o "{directory}" -O {measurement} -a mpiio'
        if not arm.name.startswith(UNDER):
            return words
        before = under_darshan(self.runtime_of(arm.name), f"$PWD/{folder}/{LOG}")
        return f"{' '.join(before)} {words}"

    def turns(self) -> Iterator[str]:
        first = True
        for line in super().turns():
            if line.startswith("mkdir -p "):
                if not first:
                    yield f"sleep {self.pause_s:g}"
                first = False
            yield line

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        if self.program == IOR:
            yield from super()._faults()
            return
        for run in self.planned_runs:
            try:
                if run.arm.startswith(UNDER):
                    self._version(run)
            except UnderstudyError as error:
                yield run, str(error)
        yield from super(Benchmark, self)._faults()

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        row = ior.of_summary(
            self._staged(run.folder / "summary.json"),
            name=self.name_of_case,
            started=started,
            command_line=shlex.split(run.command),
        )
        if run.arm.startswith(UNDER):
            row["options"][overhead.DARSHAN] = self._version(run)
        return row

    def _version(self, run: PlannedRun) -> str:
        """Version of Darshan in a run's log; an UnderstudyError if it did not see the data."""
        with open_log(self._staged(run.folder / LOG)) as log:
            written = sum(
                int(block["POSIX_BYTES_WRITTEN"].sum()) for block in log.records("POSIX")
            )
            if written < self.bytes_on(self.current_partition):
                raise UnderstudyError(
                    f"{run.folder / LOG}: Darshan saw {written} bytes written, expected "
                    f"{self.bytes_on(self.current_partition)}"
                )
            return log.library_version or "of unknown version"

    def faults_of(self, arm: Arm, measured: Any) -> Iterator[str]:
        if self.program == IOR:
            yield from super().faults_of(arm, measured)
            block = self.block_on(self.current_partition)
            if (block_bytes := measured.options.get("blockSize")) != block:
                yield f"expected blocks of {block} bytes, found {block_bytes}"
        elif measured.environment.ranks != self.ranks:
            yield f"expected {self.ranks} ranks, found {measured.environment.ranks}"

    def _judged(self) -> overhead.Case:
        [case] = overhead.cases(self.recorded(run) for run in self.planned_runs)
        return case

    @run_before("performance")
    def times_and_overheads(self) -> None:
        self.measure("without_io", "s", self._median, WITHOUT)
        decided = []
        for n, arm in enumerate(self.arms_under_darshan):
            name = arm.replace("-", "_")
            self.measure(f"{name}_io", "s", self._median, arm)
            for end in ("value", "low", "high"):
                self.measure(f"{name}_overhead_{end}", "%", self._overhead_percent, n, end)
            self.measure(f"{name}_decided", "%", self._decided, n)
            decided.append(f"{name}_decided")
        self.reference = {"*": {k: (0, None, self.limit_percent, "%") for k in decided}}

    def _median(self, arm: str, *_: Any) -> float:
        return median(self._judged().seconds[arm])

    def _overhead_percent(self, number: int, end: str) -> float:
        return 100 * float(getattr(self._judged().overheads[number].error.error, end))

    def _decided(self, number: int) -> float:
        """The smallest overhead that is sure; 0 unless it is outside of the limit."""
        cost = self._judged().overheads[number]
        sure = cost.state(self.limit_percent / 100) == OUTSIDE
        return 100 * cost.error.error.low if sure else 0.0

    def _verdict(self) -> str:
        judged, limit = self._judged(), self.limit_percent / 100
        words = []
        for cost in judged.overheads:
            change, control = cost.error.error, cost.error.control
            words.append(
                f"Darshan {cost.name}: {seconds(cost.error.application_s)} without, "
                f"{seconds(cost.error.replica_s)} with, overhead {percent(change.value)} "
                f"({percent(change.low)} to {percent(change.high)}), control "
                f"{percent(control.low)} to {percent(control.high)}: {cost.state(limit)} (limit "
                f"{self.limit_percent:g} %)"
            )
        each = size(self.block_on(self.current_partition))
        return f"{self.rounds} rounds, {each} on each of {self.ranks} ranks; {'; '.join(words)}"


def pattern(ranks: int, block_bytes: int) -> Workload:
    """Pattern of IOR, for the player."""
    data = Variable(name="data", type="byte", shape=(ranks * block_bytes,))
    how = "The pattern of the evaluation of Darshan 3.0.0."
    return Workload(
        name=f"{overhead.CASE}player",
        description="A file per process, independent MPI-IO, accesses of 512 KiB.",
        ranks=ranks,
        streams=streams_of((_file_per_process(data),), ranks),
        source=Source(format="hand"),
        provenance=tuple(
            Provenance(path=path, origin="assumed", how=how)
            for path in ("/ranks", "/runtime_s", "/streams")
        ),
    )


def _file_per_process(data: Variable) -> Pattern:
    return Pattern(
        name="write",
        role="checkpoint",
        operation="write",
        files="new",
        layout="file-per-process",
        method="mpiio",
        transfer_bytes=TRANSFER_BYTES,
        dumps=(Dump(time_s=0, variables=(data,)),),
    )

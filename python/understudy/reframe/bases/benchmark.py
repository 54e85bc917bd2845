# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base classes of the checks that run IOR and mdtest, which measure themselves."""

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable

from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.producers import ior, mdtest
from understudy.reframe.bases.interleaved import Arm, Interleaved
from understudy.reframe.bases.placed import MIB
from understudy.reframe.bases.recording import PRINTED, PlannedRun
from understudy.reframe.session.option_values import Size


class Benchmark(Interleaved):
    """One case of a benchmark, started anew in each round. Its figures are its own."""

    case = parameter(type=str, loggable=True)
    stripe_count = parameter(type=str, loggable=True)
    ranks = variable(int, value=4, loggable=True)
    rounds = 3

    program: str
    cases: Mapping[str, str]  # options by the name of the case
    operations: Sequence[str]
    keep_files = ["benchmark"]

    @property
    def methods_needed(self) -> set[str]:
        return set()

    def moved_on(self, here: Any) -> int:
        return 2 * super().moved_on(here)  # written and read

    @property
    def arms(self) -> Sequence[Arm]:
        return [Arm(name="benchmark", producer=self.program, program=self.program)]

    @property
    def title(self) -> str:
        return f"{self.program} {self.case}"

    @property
    def name_of_case(self) -> str:
        return f"{self.program}-{self.case}"

    @run_after("init")
    def set_tasks(self) -> None:
        self.num_tasks = self.ranks

    @run_after("setup")
    def skip_without_program(self) -> None:
        if self.local and not self.is_dry_run():
            self.skip_if(bool(reason := self.missing()), reason)

    def missing(self) -> str | None:
        if shutil.which(self.program) is None:
            return f"{self.program}: not found on PATH"
        return super().missing()

    @run_before("run")
    def run_in_turns(self) -> None:
        layout = self.layout_options()
        self.prerun_cmds = [*self.run_directory(*layout)]
        self.postrun_cmds = list(self.turns())
        self.executable = "true"  # the launcher starts what stands in the lines after

    def turns(self) -> Iterator[str]:
        """Lines of the job. What a run has left is removed, and on storage, before the next."""
        self.job.num_tasks = self.num_tasks
        self.job.num_tasks_per_node = self.num_tasks_per_node
        launch = self.job.launcher.run_command(self.job)
        for run in self.planned_runs:
            yield f"mkdir -p {run.folder}"
            yield f'mkdir "$dir/{run.arm}"'
            yield f"date -u +%Y-%m-%dT%H:%M:%SZ >{run.folder}/started"
            yield f"{launch} {run.command} >{run.folder}/{PRINTED}"
            yield f'rm -rf "$dir/{run.arm}"; sync -f "$dir"'

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        """The measurement of a run, from its output."""
        raise NotImplementedError

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        reasons = {}
        for run in self.planned_runs:
            try:
                row = self.measured(run, self._started(run))
                write_text(self._staged(run.measurement), json.dumps(row, indent=1) + "\n")
            except UnderstudyError as error:
                reasons[run.folder] = str(error)
        for faulty_run, fault in super()._faults():
            yield faulty_run, reasons.get(faulty_run.folder, fault) if faulty_run else fault

    def _started(self, run: PlannedRun) -> str:
        path = self._staged(run.folder / "started")
        text = path.read_text(encoding="utf-8").strip() if path.is_file() else ""
        return text or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    def faults_of(self, arm: Arm, measured: Any) -> Iterator[str]:
        if measured.environment.ranks != self.ranks:
            yield f"expected {self.ranks} ranks, found {measured.environment.ranks}"
        lacking = set(self.operations) - {rate.operation for rate in measured.rates}
        if lacking:
            yield f"{self.program} says nothing of {', '.join(sorted(lacking))}"

    def _median(self, metric: str, operation: str, factor: float = 1) -> float:
        [arm] = self.arms
        values = [
            s.value
            for n in range(self.rounds)
            for s in self.recorded(self.run_of(arm, n)).samples
            if (s.metric, s.stream) == (metric, operation)
        ]
        return median(values) * factor


class Ior(Benchmark):
    """IOR: bandwidth of writes, and of reads by other ranks, of one block for each rank."""

    program = "ior"
    operations = ("write", "read")
    block_bytes = variable(Size, int, value=512 * MIB, loggable=True)
    cases = {
        # Evaluation of Darshan 3.0.0 (Edison): file per process, independent MPI-IO.
        "darshan": "-a MPIIO -F -t 524288",
        # IO500's easy and hard: a file for each process in 2 MiB, one file in 47,008 bytes.
        "easy": "-a POSIX -F -t 2097152",
        "hard": "-a POSIX -t 47008",
    }

    @run_after("init")
    def check_block(self) -> None:
        if self.block_bytes < 1:
            sys.exit(f"understudy: -S block_bytes={self.block_bytes:d}: expected at least 1B")

    @property
    def block(self) -> int:
        """Block of a rank: a multiple of the transfer size, one at least."""
        transfer = int(self.cases[self.case].rpartition(" ")[2])
        return int(max(1, self.block_bytes // transfer) * transfer)

    @property
    def bytes_needed(self) -> int:
        return int(self.ranks * self.block)

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        summary = Path(measurement).with_name("summary.json")
        # -e: flush before close; -C: a rank reads what another wrote.
        return (
            f'ior {self.cases[self.case]} -b {self.block} -w -r -e -C -o "{directory}/data" '
            f"-O summaryFormat=JSON -O summaryFile={summary}"
        )

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        return ior.of_summary(
            self._staged(run.folder / "summary.json"),
            name=self.name_of_case,
            started=started,
            command_line=shlex.split(run.command),
        )

    def faults_of(self, arm: Arm, measured: Any) -> Iterator[str]:
        yield from super().faults_of(arm, measured)
        if (block := measured.options.get("blockSize")) != self.block:
            yield f"expected blocks of {self.block} bytes, found {block}"

    @run_before("performance")
    def bandwidths(self) -> None:
        for operation in self.operations:
            self.promise(
                f"{operation}_bandwidth",
                "MiB/s",
                self._median,
                "bandwidth_bytes_per_s",
                operation,
                1 / MIB,
            )

        # First open to last close of any rank, as the evaluation of Darshan 3.0.0 takes it.
        self.measure("write_time", "s", self._median, "total_s", "write")

    def _verdict(self) -> str:
        rates = (
            f"{operation} {self._median('bandwidth_bytes_per_s', operation) / MIB:.0f} MiB/s"
            for operation in self.operations
        )
        return f"{', '.join(rates)}; median of {self.rounds} runs on {self.ranks} ranks"


class Mdtest(Benchmark):
    """mdtest: rates of metadata operations on empty and on small files."""

    program = "mdtest"
    files = variable(int, value=1000, loggable=True)  # of a rank
    cases = {
        # IO500's easy and hard: empty files in a directory for each rank; one directory, 3,901 B.
        "easy": "-u -L -F -P",
        "hard": "-F -w 3901 -e 3901 -t",
    }
    operations = ("File creation", "File stat", "File read", "File removal")

    @run_after("init")
    def check_files(self) -> None:
        if self.files < 1:
            sys.exit(f"understudy: -S files={self.files}: expected at least 1")

    @property
    def bytes_needed(self) -> int:
        return int(self.ranks * self.files * (3901 if self.case == "hard" else 0))

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        # -N 1: a rank stats and reads what another created.
        return f'mdtest -n {self.files} {self.cases[self.case]} -N 1 -i 1 -d "{directory}"'

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        return mdtest.of_output(
            self._staged(run.folder / PRINTED),
            name=self.name_of_case,
            options={"case": self.cases[self.case], "files_per_rank": self.files},
            started=started,
            command_line=shlex.split(run.command),
        )

    @run_before("performance")
    def rates(self) -> None:
        for operation in self.operations:
            name = operation.lower().replace(" ", "_")
            self.promise(f"{name}_rate", "1/s", self._median, "rate_per_s", operation)

    def _verdict(self) -> str:
        rates = (
            f"{operation} {self._median('rate_per_s', operation):.0f}/s"
            for operation in self.operations
        )
        return f"{', '.join(rates)}; median of {self.rounds} runs on {self.ranks} ranks"

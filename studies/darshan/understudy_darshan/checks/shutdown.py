# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""How long does Darshan take to write its log at the end of a job, and how large is the log?"""

import csv
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable

from understudy import paths
from understudy.darshanlog.convert import NAMES
from understudy.darshanlog.sizes import LogSize, log_size
from understudy.judge.statistics.conditions import UNDER
from understudy.reframe.bases import observer
from understudy.reframe.bases.interleaved import Arm
from understudy.reframe.bases.observed import LETTERS, LOG, Observed
from understudy.reframe.bases.placed import MIB
from understudy.reframe.bases.recording import PlannedRun
from understudy.units import exact, percent, seconds
from understudy_darshan.judge import shutdown
from understudy_darshan.judge.shutdown import TITLES, WORKLOADS
from understudy_darshan.producers import shutdown as producer

ARCHIVED = "archived.csv"


class Shutdown(Observed):
    """The time in which Darshan writes its log at the end of a job, and the size of the log, of
    records that it fills in itself, by processes."""

    processes = parameter(type=int, loggable=True)
    samples_of_each = variable(int, value=10, loggable=True)

    program = "understudy-darshan-shutdown"
    rounds = 1
    operations = WORKLOADS
    keep_files = [f"{UNDER}{x}" for x in LETTERS]

    @run_after("init")
    def set_tasks(self) -> None:
        self.ranks = self.num_tasks = self.processes

    @property
    def bytes_needed(self) -> int:
        """Bytes of one log at a time, 100 B for each of 1,024 files of a process."""
        return int(MIB + self.ranks * 1024 * 100)

    def idle_s(self) -> float:
        return float(len(self.arms) * (1 + self.samples_of_each) * 30)

    @property
    def title(self) -> str:
        return f"shutdown of Darshan on {self.ranks} processes"

    @property
    def arms(self) -> Sequence[Arm]:
        return [
            Arm(name=name, producer=shutdown.PRODUCER, program=self.program)
            for name in self.arms_under_darshan
        ]

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        library = f"{self.runtime_of(arm.name)}/lib/libdarshan.so"
        return (
            f'env -u LD_BIND_NOW LD_PRELOAD="{library}" {observer.ONE_COPY} '
            f"{self.program} "
            f'-o "{directory}" -O {Path(measurement).parent}/samples.json '
            f"-n {self.samples_of_each} --keep"
        )

    def turns(self) -> Iterator[str]:
        """The version of Darshan and the sizes of the parts of a log are in the smallest one."""
        archive = f"{shlex.quote(sys.executable)} {shlex.quote(str(paths.command()))} archive"
        for line in super().turns():
            if line.startswith("rm -rf "):
                where = line.split()[2].rstrip(";")
                folder = Path(where.strip('"')).name
                [run] = [r for r in self.planned_runs if r.arm == folder]
                yield f"cp {where}/shared.darshan {run.folder}/{LOG}"
                yield f"mkdir {where}/archived"
                yield (
                    f"{archive} --always --into {where}/archived --csv {run.folder}/{ARCHIVED} "
                    f"{where}/*.darshan >/dev/null"
                )
            yield line

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        log = log_size(self._staged(run.folder / LOG))
        return producer.of_output(
            self._staged(run.folder / "samples.json"),
            version=log.library_version or "of unknown version",
            command_line=shlex.split(run.command),
            sizes={
                shutdown.ARCHIVED_BYTES: archived_sizes(self._staged(run.folder / ARCHIVED)),
                **{name: {"shared": value} for name, value in part_sizes(log)},
            },
        )

    def _rows(self) -> list[shutdown.Row]:
        return shutdown.rows(self.recorded(run) for run in self.planned_runs)

    @run_before("performance")
    def times_and_sizes(self) -> None:
        for n, arm in enumerate(self.arms):
            for workload in WORKLOADS:
                name = f"{arm.name}_{workload}".replace("-", "_")
                self.measure(f"{name}_time", "s", self._value, n, workload, True)
                self.measure(f"{name}_log", "B/file", self._value, n, workload, False)

    def _value(self, number: int, workload: str, time: bool) -> float:
        rows = shutdown.rows([self.recorded(self.planned_runs[number])])
        [row] = [row for row in rows if row.workload == workload]
        return row.seconds.median if time else row.bytes_per_file

    def _verdict(self) -> str:
        words = [
            f"Darshan {row.version}, {TITLES[row.workload]}: {seconds(row.seconds.median)}, "
            f"{exact(row.log_bytes.median)} ({row.bytes_per_file:,.1f} B a file; paper "
            f"{shutdown.paper_bytes_per_file(row.workload):,.1f}; bzip2 saves {_saved(row)})"
            for row in sorted(self._rows(), key=lambda r: WORKLOADS.index(r.workload))
        ]
        return f"median of {self.samples_of_each} samples; {'; '.join(words)}"


def _saved(row: shutdown.Row) -> str:
    return "an unknown share" if row.saved is None else percent(row.saved)


def archived_sizes(path: Path) -> dict[str, float]:
    """Bytes of the archived logs by workload; nothing where the node has no Python for it."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = {Path(row["log"]).stem: row for row in csv.DictReader(file)}
    return {
        workload: float(rows[workload]["converted_bytes"])
        for workload in WORKLOADS
        if workload in rows and rows[workload]["converted_bytes"]
    }


def part_sizes(log: LogSize) -> Iterator[tuple[str, float]]:
    """Sizes of the parts of a log, as in Table II of the paper."""
    regions = {region.name: region for region in log.regions}
    records = [regions[m].record_bytes for m in ("POSIX", "MPI-IO") if m in regions]
    names = next((r for name, r in regions.items() if name == NAMES and r.records), None)
    yield shutdown.PARTS[0], log.header_bytes
    yield shutdown.PARTS[1], log.job_bytes
    if len(records) == 2 and names is not None and names.records:
        yield shutdown.PARTS[2], sum(r or 0 for r in records) + names.plain_bytes / names.records

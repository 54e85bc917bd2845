# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of the checks that measure: a job in a run directory of its own on a partition's file
system."""

import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from reframe.core.builtins import fixture, run_after, run_before
from reframe.core.runtime import runtime

from understudy.reframe import spack
from understudy.reframe.bases import recording
from understudy.reframe.bases.installed import InstalledBySpack
from understudy.reframe.bases.recorded import Recorded
from understudy.reframe.bases.recording import (
    EXIT_STATUS,
    NODE_MEMORY,
    RUN_DIRECTORY,
    STORAGE_AFTER,
    STORAGE_BEFORE,
    PlannedRun,
)
from understudy.reframe.session import batch, job_failures, session
from understudy.reframe.systems import MPI, SCRATCH, quoted

MIB = 1 << 20
STORAGE = "understudy-storage"


class Placed(Recorded):
    """Runs in a fresh directory of a partition's file system, if it fits, and prints a verdict.

    A check derived from it has `ranks` and `stripe_count`. Each of its runs leaves a record.
    """

    if spack.asked():
        installation = fixture(InstalledBySpack, scope="environment")
    sourcesdir = None
    exclusive_access = True
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]
    renamed: dict[str, str] = {}  # former variables; ReFrame only warns of one it does not know

    @classmethod
    def before_any_runs(cls, cases: Sequence[Any]) -> None:
        _expect_programs()
        _expect_jobs_to_start(frozenset(c.partition for c in cases if isinstance(c.check, Placed)))

    @run_after("init")
    def refuse_former_variables(self) -> None:
        for former, name in self.renamed.items():
            value = getattr(self, former)
            if value is not None:
                sys.exit(
                    f"understudy: -S {former}={value:g}: the variable is now {name}, in percent"
                )

    @run_before("run")
    def end_with_the_first_failure(self) -> None:
        session.note_run(self)
        here = self.current_partition
        self.job.options += job_failures.NO_REQUEUE.get(here.scheduler.registered_name, [])
        launcher = here.launcher_type.registered_name
        self.job.launcher.options += job_failures.KILL_ALL_RANKS.get(launcher, [])
        if here.scheduler.is_local and (shape := job_failures.SHAPE.get(launcher)):
            words = shape.format(
                nodes=self.node_count, ranks=self.num_tasks, each=self.num_tasks_per_node
            )
            self.job.launcher.options += words.split()

    def run_directory(self, *layout: str) -> list[str]:
        """Lines of the job that create $dir and remove it at the end.

        The storage is examined before and after. A layout, options of understudy-storage, becomes
        the default of files in $dir; if the file system does not give it, the job ends.
        """
        scratch = quoted(self.current_partition.extras[SCRATCH])
        examine = " ".join([STORAGE, *layout, '"$dir"'])
        return [
            "set -e",
            *spack.guard(self.current_environ.name),
            f"dir=$(mktemp -d {scratch}/understudy.XXXXXX)",
            f'{{ date -u +%Y-%m-%dT%H:%M:%SZ; printf "%s\\n" "$dir"; }} >{RUN_DIRECTORY}',
            f'trap \'echo $? >{EXIT_STATUS}; {STORAGE} "$dir" >{STORAGE_AFTER} || true; '
            'rm -rf "$dir"\' EXIT',
            f"{examine} >{STORAGE_BEFORE}",
            f"{recording.ask_memory(self)} >{NODE_MEMORY} || true",
        ]

    def _all_faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        """A measurement that another job left proves nothing."""
        others = list(super()._all_faults())  # some checks write measurements in it
        for run in self.planned_runs:
            yield from ((run, fault) for fault in self.of_another_job(run.measurement))
        yield from others

    def of_another_job(self, measurement: Path) -> Iterator[str]:
        scratch = str(self.current_partition.extras[SCRATCH])
        return recording.of_another_job(Path(self.stagedir), measurement, scratch)


@cache
def _expect_programs() -> None:
    """End the session if a partition has no Spack environment, where the programs are of one."""
    with session.exit_on_error():
        spack.expect(runtime().system.partitions)


@cache
def _expect_jobs_to_start(partitions: frozenset[Any]) -> None:
    """End the session if this host cannot start the jobs of the partitions of selected cases."""
    if not session.asks_to_run(sys.argv[1:]):
        return
    system = runtime().system
    if fault := batch.fault(partitions):
        session.end(
            f"system {system.name} {fault}; use --dry-run to see its job scripts, or "
            f"`make rehearse SYSTEM={system.name}` in a checkout to run them on a stand-in"
        )

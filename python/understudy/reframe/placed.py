# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of all checks: a job in a run directory of its own on a partition's file system."""

import errno
import os
import re
import shutil
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.fields import remove_convertible
from reframe.core.logging import getlogger
from reframe.core.meta import RegressionTestMeta
from reframe.core.runtime import runtime

from understudy.contracts.measurement import Node
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.reframe import endings, recording, session
from understudy.reframe.methods import lacks
from understudy.reframe.recording import EXIT_STATUS, STORAGE_AFTER, STORAGE_BEFORE, PlannedRun
from understudy.reframe.systems import (
    MAX_BYTES,
    MAX_NODES,
    MPI,
    NO_STRIPING,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    STRIPE_COUNT_MAX,
    STRIPING,
)
from understudy.units import parse_size

MIB = 1 << 20
STRIPE_COUNTS = ("default", "nodes", "cores")
STORAGE = "understudy-storage"
FULL = os.strerror(errno.ENOSPC)
STOPPED = "stopped by signal"  # what the player says when others end it
SLOWEST_BYTES_PER_S = 20e6  # of a file system, for time limits

# By scheduler: a job of a failed node must not start again and pass as if nothing had happened.
NO_REQUEUE = {"slurm": "--no-requeue", "squeue": "--no-requeue", "torque": "-r n", "pbs": "-r n"}
# By launcher: the other ranks of one that was killed must not wait for ever.
KILL_ALL_RANKS = {"srun": ["--kill-on-bad-exit=1"]}


# What -S takes, by the type of a variable.
VALUES = {"Bool": "true or false", "int": "an integer", "float": "a number", "str": "text"}


def even_ranks_per_node(ranks: int, maximum: int) -> int:
    """The largest number of ranks per node, at most `maximum`, that fills all nodes equally."""
    return next(n for n in range(min(ranks, maximum), 0, -1) if ranks % n == 0)


class Size(int):
    """Bytes, which -S gives with a unit: 1GiB. A mistake ends the session with one message."""

    def __new__(cls, value: int | str) -> "Size":
        with session.exit_on_error():
            return super().__new__(cls, parse_size(str(value)))


class _Abstract(RegressionTestMeta, ABCMeta):
    """ReFrame's metaclass, with abstract methods, and one message for a wrong value of -S."""

    def __new__(cls, name: str, bases: Any, namespace: Any, **options: Any) -> Any:
        if "deferrable" in namespace:  # a builtin of class bodies, which ReFrame takes out
            return super().__new__(cls, name, bases, namespace, **options)
        # -P and --repeat call ReFrame's metaclass by its name, which has done its work by now.
        return ABCMeta.__new__(cls, name, bases, namespace, **options)

    def setvar(cls, name: str, value: Any) -> bool:
        """What -S NAME=VALUE does to a class of checks."""
        try:
            return bool(super().setvar(name, value))
        except (TypeError, ValueError):
            if value is (given := remove_convertible(value)):
                raise
            field = cls._rfm_var_space[name].field
            names = [t.__name__ for t in field.valid_types if t is not type(None)]
            types = " or ".join(VALUES.get(name, name) for name in names)
            # ReFrame would skip the file and go on without its checks, or print a traceback.
            session.end(f"-S {name}={given}: expected {types}")


class Placed(rfm.RunOnlyRegressionTest, metaclass=_Abstract):
    """Runs in a fresh directory of a partition's file system, if it fits, and prints a verdict.

    A check derived from it has `ranks` and `stripe_count`. Each of its runs leaves a record.
    """

    max_bytes = variable(Size, int, type(None), value=None)
    ranks_per_node = variable(int, type(None), value=None)
    campaign = variable(str, type(None), value=None, loggable=True)
    session = variable(str, loggable=True)
    skip_reason = variable(str, value="", loggable=True)  # ReFrame's report leaves it out
    ranks: Any
    stripe_count: Any

    sourcesdir = None
    exclusive_access = True
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]
    how_to_fit = "use more ranks per node with -S ranks_per_node=N"
    renamed: dict[str, str] = {}  # former variables; ReFrame only warns of one it does not know

    def skip(self, msg: str | None = None) -> None:
        self.skip_reason = msg or ""
        session.note_skip()
        super().skip(msg)

    def user_deps(self) -> Any:
        session.check_variables(_has_variable)
        return super().user_deps()

    @property
    @abstractmethod
    def bytes_needed(self) -> int:
        """Largest volume on the file system at any time."""

    @property
    @abstractmethod
    def methods_needed(self) -> set[str]:
        """Methods of the player, or of the programs built with it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What ran, in the line of the verdict."""

    @property
    @abstractmethod
    def planned_runs(self) -> Sequence[PlannedRun]:
        """The runs of the job, in their order."""

    @property
    @abstractmethod
    def programs(self) -> Sequence[str]:
        """What their error messages begin with."""

    @abstractmethod
    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        """What is missing or wrong in the output of the job, and of which run."""

    @abstractmethod
    def _verdict(self) -> str:
        """What was done and found, of a job without a fault."""

    @run_after("init")
    def join_session(self) -> None:
        session.note_check()
        self.session = session.identifier()
        self.ci_extras = {"gitlab": {"before_script": [session.again()]}}

    @run_after("init")
    def refuse_former_variables(self) -> None:
        for former, name in self.renamed.items():
            value = getattr(self, former)
            if value is not None:
                sys.exit(
                    f"understudy: -S {former}={value:g}: the variable is now {name}, in percent"
                )

    @run_after("init")
    def check_ranks_per_node(self) -> None:
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            sys.exit(f"understudy: -S ranks_per_node={self.ranks_per_node}: expected at least 1")

    @run_after("init")
    def check_stripe_count(self) -> None:
        known = self.stripe_count in STRIPE_COUNTS or re.fullmatch(
            "[1-9][0-9]*", self.stripe_count
        )
        if not known:
            sys.exit(
                f"understudy: -P stripe_count={self.stripe_count}: expected "
                f"{', '.join(STRIPE_COUNTS)} or a number of targets"
            )

    @run_after("init")
    def require_striping(self) -> None:
        if self.stripe_count != "default":
            self.valid_systems = [f"+{MPI} +{STRIPING}", f"+{MPI} +{NO_STRIPING}"]

    @run_after("setup")
    def distribute_ranks(self) -> None:
        here = self.current_partition
        maximum = self.ranks_per_node or here.extras[RANKS_PER_NODE]
        self.num_tasks_per_node = even_ranks_per_node(self.ranks, maximum)
        self.nodes = self.ranks // self.num_tasks_per_node
        self.skip_if(
            self.nodes > here.extras[MAX_NODES],
            f"{self.ranks} ranks need {self.nodes} nodes, {here.fullname} has "
            f"{here.extras[MAX_NODES]} with {maximum} ranks each; {self.how_to_fit}",
        )

    @run_after("setup")
    def skip_separate_directories(self) -> None:
        """After distribute_ranks: the run directory is made on one node."""
        here = self.current_partition
        self.skip_if(
            self.nodes > 1 and SHARED not in here.features,
            f"{here.fullname}: its nodes do not share {here.extras[SCRATCH]}, and {self.ranks} "
            f"ranks need {self.nodes} nodes; {self.how_to_fit}",
        )

    @run_after("setup")
    def skip_striping_that_is_not_possible(self) -> None:
        here = self.current_partition
        self.skip_if(
            self.stripe_count != "default" and STRIPING not in here.features,
            f"{here.fullname}: {here.extras.get(NO_STRIPING)}",
        )

    @run_after("setup")
    def skip_repeated_stripe_counts(self) -> None:
        """After distribute_ranks: two cases with the same stripe count would say the same."""
        if self.stripe_count == "default":
            return
        here = self.current_partition
        most = here.extras[STRIPE_COUNT_MAX]
        self.skip_if(
            self.stripe_count.isdigit() and most is not None and int(self.stripe_count) > most,
            f"{here.fullname} has {most} targets, fewer than {self.stripe_count}",
        )
        count = self.asked_layout()["stripe_count"]
        self.skip_if(
            self.stripe_count == "cores" and count == self._at_most_all_targets(self.nodes),
            f"stripe count {count} is that of the case with a target for each node",
        )

    @run_after("setup")
    def check_local_host(self) -> None:
        if not self.current_partition.scheduler.is_local:
            return
        # Only local tests count against one limit for all partitions (max_local_jobs): two
        # replays on two file systems of one host would disturb each other.
        self.local = True
        if not self.is_dry_run():
            self._skip_without_method()
            self._skip_without_space(Path(self.current_partition.extras[SCRATCH]))

    @run_after("setup")
    def skip_oversized(self) -> None:
        here = self.current_partition
        maximum = here.extras.get(MAX_BYTES, self.bytes_needed)
        if self.max_bytes is not None:
            maximum = self.max_bytes
        self.skip_if(
            self.bytes_needed > maximum,
            f"{self.bytes_needed} bytes exceed the limit of {maximum} on {here.fullname}; "
            "raise it with -S max_bytes=SIZE, such as 100GiB",
        )

    @run_before("run")
    def end_with_the_first_failure(self) -> None:
        session.note_run()
        here = self.current_partition
        if option := NO_REQUEUE.get(here.scheduler.registered_name):
            self.job.options += [option]
        self.job.launcher.options += KILL_ALL_RANKS.get(here.launcher_type.registered_name, [])

    def _skip_without_method(self) -> None:
        for method in self.methods_needed:
            reason = lacks(method)
            self.skip_if(reason is not None, reason)

    def _skip_without_space(self, scratch: Path) -> None:
        self.skip_if(not scratch.is_dir(), f"{scratch} is not a directory")
        free = shutil.disk_usage(scratch).free
        self.skip_if(
            self.bytes_needed > free,
            f"{scratch}: {self.bytes_needed} bytes are needed, {free} are free",
        )

    def _check_programs(self) -> None:
        """An UnderstudyError if this host cannot start a real run on the system."""
        if not session.asks_to_run(sys.argv[1:]):
            return
        system = runtime().system
        if program := session.missing_program(system.partitions):
            raise UnderstudyError(
                f"system {system.name} needs {program}, which is not on this host; "
                "use --dry-run to see its job scripts, or `make rehearse "
                f"SYSTEM={system.name}` in a checkout to run them on a stand-in"
            )

    def layout_options(self) -> list[str]:
        """The layout that is asked for, as the player and understudy-storage take it."""
        return [f"--{key.replace('_', '-')} {n}" for key, n in self.asked_layout().items()]

    def run_directory(self, *layout: str) -> list[str]:
        """Lines of the job that create $dir and remove it at the end.

        The storage is examined before and after. A layout, options of understudy-storage, becomes
        the default of files in $dir; if the file system does not give it, the job ends.
        """
        scratch = self.current_partition.extras[SCRATCH]
        examine = " ".join([STORAGE, *layout, '"$dir"'])
        return [
            "set -e",
            f'dir=$(mktemp -d "{scratch}/understudy.XXXXXX")',
            f'trap \'echo $? >{EXIT_STATUS}; {STORAGE} "$dir" >{STORAGE_AFTER} || true; '
            'rm -rf "$dir"\' EXIT',
            f"{examine} >{STORAGE_BEFORE}",
        ]

    def asked_layout(self) -> dict[str, int]:
        """What is asked of the file system; nothing by default."""
        if self.stripe_count == "default":
            return {}
        named = {"nodes": self.nodes, "cores": self.ranks}
        wanted = named.get(self.stripe_count) or int(self.stripe_count)
        return {"stripe_count": self._at_most_all_targets(wanted)}

    def _at_most_all_targets(self, count: int) -> int:
        most = self.current_partition.extras[STRIPE_COUNT_MAX]
        return count if most is None else min(count, most)

    @sanity_function
    def all_work_was_done(self) -> bool:
        fault = self._record_runs()
        here = self.current_partition.fullname
        getlogger().info(f"verdict: {self.title} {here}: {fault or self._verdict()}")
        if fault:
            raise SanityError(fault)
        return True

    def _record_runs(self) -> str | None:
        """Write the record of every run that was started; the first fault of the job, if any."""
        faults = list(self._all_faults())
        started = [run for run in self.planned_runs if self._staged(run.folder).is_dir()]
        failures = {run.folder: text for run, text in reversed(faults) if run is not None}
        status = self.exit_status
        failed = self._end_of_job(status)
        if failed:
            failures |= {run.folder: failed for run in started[-1:]}
        for run in started:
            recording.write(
                Path(self.stagedir), run, place=self._place(), identity=self._identity(),
                asked=dict(self.asked_layout()),
                exit_status=status if run is started[-1] else 0,
                failure=failures.get(run.folder),
            )  # fmt: skip
        if failed or not faults:
            return failed
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return f"{faults[0][1]}{more}"

    def _end_of_job(self, status: int | None) -> str | None:
        """Why the job did not end well; None if it did, as far as it and the batch system say."""
        noted = recording.exit_status(Path(self.stagedir))
        if noted == 0 and not endings.cut_short(self.job.state):
            return None
        text = self._printed_errors()
        scheduler = self.current_partition.scheduler.registered_name
        nodes = list(self.job.nodelist or ())
        how = endings.told(scheduler, str(self.job.jobid), self.job.state, nodes, text)
        message = self._error_message(*self.programs)
        if how:
            says_more = message.startswith("understudy: ") and STOPPED not in message
            return f"{how}: {message}" if says_more else how
        if status:
            return f"the job ended with status {status}: {message}"
        if noted is None and not self.current_partition.scheduler.is_local:
            return f"job {self.job.jobid} ended before its script did: {message}"
        return None

    def _printed_errors(self) -> str:
        return Path(str(self.stderr.evaluate())).read_text(encoding="utf-8", errors="replace")

    def _all_faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        try:
            yield from self._faults()
        except UnderstudyError as error:
            yield None, str(error)

    @property
    def exit_status(self) -> int | None:
        """As the job noted it, else as the scheduler states it, which Torque does not."""
        noted = recording.exit_status(Path(self.stagedir))
        return self.job.exitcode if noted is None else noted

    def _staged(self, path: Path) -> Path:
        return Path(self.stagedir) / path

    def recorded(self, run: PlannedRun) -> Run:
        return recording.load(self._staged(run.record))

    def _identity(self) -> Identity:
        return Identity(
            session=self.session,
            campaign=self.campaign,
            tags=tuple(sorted(self.tags)),
            case=self.display_name,
        )

    def _place(self) -> Place:
        names = self.job.nodelist or ()
        return Place(
            system=self.current_system.name,
            partition=self.current_partition.name,
            environment=self.current_environ.name,
            job_id=str(self.job.jobid),
            launcher=self.current_partition.launcher_type.registered_name,
            nodes=tuple(Node(name=name, ranks=self.num_tasks_per_node) for name in names),
        )

    def _error_message(self, *programs: str) -> str:
        """The first error message of one of the programs, else what the launcher says of a rank
        that was killed, else the last line on stderr."""
        # Open MPI 5 ends what it prints of an abort with a NUL, in front of the next line.
        text = self._printed_errors().replace("\0", "")
        lines = [line for line in text.splitlines() if re.search(r"\w", line)]
        own = [line for line in lines if line.startswith(tuple(f"{name}: " for name in programs))]
        # The other ranks of one that was killed are stopped, and say so.
        reasons = [line for line in own if STOPPED not in line]
        killed = [line for line in lines if endings.KILLED_RANK.search(line)]
        found = next(iter(reasons or killed or own or lines[-1:]), "it printed nothing")
        # Libraries whose ranks wait for each other for ever on a full disk print the reason alone.
        return f"{found}; {FULL}" if "no progress for" in found and FULL in text else found

    def measure(self, name: str, unit: str, value: Any, *arguments: Any) -> None:
        """Declare a performance variable. Its name is known before the run, for a dry run."""
        self.perf_variables[name] = sn.make_performance_function(value, unit, *arguments)


def _has_variable(test: str | None, name: str) -> bool:
    """Whether a class of tests that ReFrame has loaded (None: any) has a variable."""
    classes = [rfm.RegressionTest]
    for known in classes:
        classes += known.__subclasses__()
    return any(name in known._rfm_var_space for known in classes if test in (None, known.__name__))


def _ignore_former_name(test: type) -> None:
    """ReFrame 4.10 still knows `env_vars` as `variables`, and for the warning, suppressed here, it
    inspects the stack twice for each test: a third of the time of `reframe -l`."""
    former = test._rfm_var_space.vars.get("variables")  # type: ignore[attr-defined]
    if former is not None and former.is_deprecated():
        former.field._op = 0


_ignore_former_name(Placed)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of all checks: a job in a run directory of its own on a partition's file system."""

import re
import shutil
import sys
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime

from understudy.contracts.measurement import Node
from understudy.contracts.run import TURN, Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.judge import promises
from understudy.records import store
from understudy.reframe import (
    batch,
    endings,
    given,
    recording,
    seam,
    session,
    spaces,
    spack,
)
from understudy.reframe.checked import Checked
from understudy.reframe.installed import InstalledBySpack
from understudy.reframe.methods import lacks
from understudy.reframe.promising import Promising
from understudy.reframe.recording import (
    EXIT_STATUS,
    NODE_MEMORY,
    PRINTED,
    STORAGE_AFTER,
    STORAGE_BEFORE,
    PlannedRun,
)
from understudy.reframe.systems import (
    MAX_BYTES,
    MAX_NODES,
    MAX_SECONDS,
    MPI,
    NO_STRIPING,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    STRIPE_COUNT_MAX,
    STRIPING,
    expanded,
    quoted,
    slowest_bytes_per_s,
)
from understudy.units import hms, parse_size

MIB = 1 << 20
STRIPE_COUNTS = ("default", "nodes", "cores")
STORAGE = "understudy-storage"
# Options of understudy-storage and the player, by the key of the record.
LAYOUT_OPTIONS = {"stripe_count": "--stripe-count", "stripe_size_bytes": "--stripe-size"}


def even_ranks_per_node(ranks: int, maximum: int) -> int:
    """The largest number of ranks per node, at most `maximum`, that fills all nodes equally."""
    return next(n for n in range(min(ranks, maximum), 0, -1) if ranks % n == 0)


def stripe_counts() -> tuple[str, ...]:
    """Values of the axis on the current system: the default alone where no file system stripes, or
    forbids it and has to say so."""
    partitions = runtime().system.partitions
    striped = any(STRIPING in here.features or NO_STRIPING in here.extras for here in partitions)
    return STRIPE_COUNTS if striped else STRIPE_COUNTS[:1]


class Placed(Promising, Checked):
    """Runs in a fresh directory of a partition's file system, if it fits, and prints a verdict.

    A check derived from it has `ranks` and `stripe_count`. Each of its runs leaves a record.
    """

    max_bytes = variable(given.Size, int, type(None), value=None)
    stripe_size = variable(str, value=spaces.DEFAULT, loggable=True)
    ranks_per_node = variable(int, type(None), value=None)
    campaign = variable(str, type(None), value=None, loggable=True)
    turn = variable(str, type(None), value=None, loggable=True)
    session = variable(str, loggable=True)
    skip_reason = variable(str, value="", loggable=True)  # ReFrame's report leaves it out
    time_limit: Any
    ranks: Any
    stripe_count: Any

    if spack.asked():
        installation = fixture(InstalledBySpack, scope="environment")
    sourcesdir = None
    exclusive_access = True
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]
    axes: tuple[str, ...] = (spaces.STRIPE_COUNT_AXIS, spaces.STRIPE_SIZE_AXIS)  # of -S and -P
    how_to_fit = "use more ranks per node with -S ranks_per_node=N"
    renamed: dict[str, str] = {}  # former variables; ReFrame only warns of one it does not know

    def skip(self, msg: str | None = None) -> None:
        self.skip_reason = msg or ""
        super().skip(msg)

    def before_any_runs(self) -> None:
        super().before_any_runs()
        _expect_programs()
        _expect_jobs_to_start()

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
    def check_turn(self) -> None:
        if self.turn is not None and not TURN.fullmatch(self.turn):
            sys.exit(f"understudy: -S turn={self.turn}: expected NAME/N, such as upgrade/3")

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

    def wanted(self, axis: str) -> str:
        """The value of an axis of `spaces`; `default` if nothing is asked."""
        return str(getattr(self, axis)) if axis in self.axes else spaces.DEFAULT

    @run_after("init")
    def check_axes(self) -> None:
        for axis in self.axes:
            value = self.wanted(axis)
            if axis == spaces.STRIPE_COUNT_AXIS or value == spaces.DEFAULT:
                continue  # that of the stripe count is checked above
            try:
                spaces.check(axis, value)
            except UnderstudyError as error:
                sys.exit(f"understudy: -S {error}")

    @property
    def asks_for_layout(self) -> bool:
        return any(self.wanted(axis) != spaces.DEFAULT for axis in Placed.axes)

    @run_after("init")
    def require_striping(self) -> None:
        if self.asks_for_layout:
            self.valid_systems = [f"+{MPI} +{STRIPING}", f"+{MPI} +{NO_STRIPING}"]

    def adapt_to_partition(self) -> None:
        """Before the ranks are distributed: what depends on the partition."""

    def ranks_on(self, here: Any) -> int:
        """The ranks of the case on a partition."""
        return int(self.ranks)

    def bytes_on(self, here: Any) -> int:
        """`bytes_needed` on a partition."""
        return self.bytes_needed

    def moved_on(self, here: Any) -> int:
        """Bytes that the job writes and reads on a partition, for its time."""
        return self.bytes_on(here)

    def idle_s(self) -> float:
        """Time in which the job moves no bytes, such as the pauses of a schedule."""
        return 0.0

    def seconds_on(self, here: Any) -> float:
        """The longest time that is expected, at the slowest bandwidth of the file system."""
        return self.idle_s() + self.moved_on(here) / slowest_bytes_per_s(here)

    def beside_s(self, here: Any) -> float:
        """Time limits of what the job runs besides, which end it."""
        return 0.0

    def limit_s(self, here: Any) -> int:
        """The time limit of the job: that which is given, else ten minutes and twice the longest
        time that is expected."""
        if self.time_limit is not None:
            return int(self.time_limit)
        return 600 + round(2 * self.seconds_on(here) + self.beside_s(here))

    def distribution(self, here: Any) -> tuple[int, int]:
        """Nodes, and ranks on each."""
        ranks = self.ranks_on(here)
        each = even_ranks_per_node(ranks, self.ranks_per_node or here.extras[RANKS_PER_NODE])
        return ranks // each, each

    @run_after("setup")
    def distribute_ranks(self) -> None:
        self.adapt_to_partition()
        self.node_count, self.num_tasks_per_node = self.distribution(self.current_partition)

    @run_after("setup")
    def leave_out(self) -> None:
        self.skip_if(bool(reason := next(self.reasons(self.current_partition), None)), reason)

    def reasons(self, here: Any) -> Iterator[str]:
        """Why the case does not run on a partition: it cannot, or it would repeat another."""
        nodes, _ = self.distribution(here)
        if nodes > here.extras[MAX_NODES]:
            maximum = self.ranks_per_node or here.extras[RANKS_PER_NODE]
            yield (
                f"{self.ranks_on(here)} ranks need {nodes} nodes, {here.fullname} has "
                f"{here.extras[MAX_NODES]} with {maximum} ranks each; {self.how_to_fit}"
            )
        if nodes > 1 and SHARED not in here.features:  # the run directory is made on one node
            yield (
                f"{here.fullname}: its nodes do not share {here.extras[SCRATCH]}, and "
                f"{self.ranks_on(here)} ranks need {nodes} nodes; {self.how_to_fit}"
            )
        longest, asked = here.extras.get(MAX_SECONDS), self.limit_s(here)
        if longest is not None and asked > longest:
            yield (
                f"its job asks for {hms(asked)}, {here.fullname} gives jobs at most "
                f"{hms(longest)}; ask for less with -S time_limit=TIME, such as 12h, or move "
                "fewer bytes"
            )
        if self.asks_for_layout and STRIPING not in here.features:
            yield f"{here.fullname}: {here.extras.get(NO_STRIPING)}"
            return
        wanted = self.wanted(spaces.STRIPE_COUNT_AXIS)
        if wanted == spaces.DEFAULT:
            return
        most = here.extras[STRIPE_COUNT_MAX]
        if wanted.isdigit() and most is not None and int(wanted) > most:
            yield f"{here.fullname} has {most} targets, fewer than {wanted}"
        count = self.layout_on(here)["stripe_count"]
        if wanted == "cores" and count == _at_most(nodes, most):
            yield f"stripe count {count} is that of the case with a target for each node"

    @run_after("setup")
    def check_host(self) -> None:
        program = spack.player(self.current_environ.name)
        if not self.current_partition.scheduler.is_local:
            with suppress(UnderstudyError):  # it need not start on this node
                if program and not self.is_dry_run():
                    self._skip_without_method(program)
            return
        # Only local tests count against one limit for all partitions (max_local_jobs): two
        # replays on two file systems of one host would disturb each other.
        self.local = True
        if not self.is_dry_run():
            self._skip_without_method(program)
            self._skip_without_space(self.current_partition.extras[SCRATCH])

    @run_after("setup")
    def skip_oversized(self) -> None:
        self.skip_if(bool(reason := self.oversized(self.current_partition)), reason)

    @run_after("setup")
    def limit_time(self) -> None:
        self.time_limit = self.limit_s(self.current_partition)

    def oversized(self, here: Any) -> str | None:
        """Why the case is too large for a partition, if it is."""
        needed = self.bytes_on(here)
        maximum = here.extras.get(MAX_BYTES, needed) if self.max_bytes is None else self.max_bytes
        if needed <= maximum:
            return None
        return (
            f"{needed} bytes exceed the limit of {maximum} on {here.fullname}; "
            "raise it with -S max_bytes=SIZE, such as 100GiB"
        )

    @run_before("run")
    def end_with_the_first_failure(self) -> None:
        session.note_run(self)
        here = self.current_partition
        self.job.options += endings.NO_REQUEUE.get(here.scheduler.registered_name, [])
        launcher = here.launcher_type.registered_name
        self.job.launcher.options += endings.KILL_ALL_RANKS.get(launcher, [])
        if here.scheduler.is_local and (shape := endings.SHAPE.get(launcher)):
            words = shape.format(
                nodes=self.node_count, ranks=self.num_tasks, each=self.num_tasks_per_node
            )
            self.job.launcher.options += words.split()

    def _skip_without_method(self, program: Path | None) -> None:
        self.skip_if(bool(reason := self.without_method(program)), reason)

    def without_method(self, program: Path | None = None) -> str | None:
        """What a player, by default that on PATH, lacks for the case; None if nothing."""
        found = (lacks(method, program) for method in sorted(self.methods_needed))
        return next(filter(None, found), None)

    def _skip_without_space(self, stated: str) -> None:
        scratch, _ = expanded(stated)
        if not scratch.is_absolute() or not scratch.is_dir():
            return  # the job fails, and says so: the file system may have been there yesterday
        free = shutil.disk_usage(scratch).free
        self.skip_if(
            self.bytes_needed > free,
            f"{scratch}: {self.bytes_needed} bytes are needed, {free} are free",
        )

    def layout_options(self) -> list[str]:
        """The layout that is asked for, as the player and understudy-storage take it."""
        return [f"{LAYOUT_OPTIONS[key]} {n}" for key, n in self.asked_layout().items()]

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
            f'trap \'echo $? >{EXIT_STATUS}; {STORAGE} "$dir" >{STORAGE_AFTER} || true; '
            'rm -rf "$dir"\' EXIT',
            f"{examine} >{STORAGE_BEFORE}",
            f"{recording.ask_memory(self)} >{NODE_MEMORY} || true",
        ]

    def asked_layout(self) -> dict[str, int]:
        """What is asked of the file system; nothing by default."""
        return self.layout_on(self.current_partition)

    def layout_on(self, here: Any) -> dict[str, int]:
        """`asked_layout` on a partition, by the keys of the run record."""
        asked = {}
        if (wanted := self.wanted(spaces.STRIPE_COUNT_AXIS)) != spaces.DEFAULT:
            named = {"nodes": self.distribution(here)[0], "cores": self.ranks_on(here)}
            count = named.get(wanted) or int(wanted)
            asked["stripe_count"] = _at_most(count, here.extras[STRIPE_COUNT_MAX])
        if (wanted := self.wanted(spaces.STRIPE_SIZE_AXIS)) != spaces.DEFAULT:
            asked["stripe_size_bytes"] = parse_size(wanted)
        return asked

    @sanity_function
    def all_work_was_done(self) -> bool:
        if reason := self.found_out():
            session.note_left_out(self)
            self.skip(reason)
        session.note_end(self, self.moved_on(self.current_partition))
        fault = self._record_runs()
        here = self.current_partition.fullname
        asked = self.planned_runs if self.asks_for_storage and not fault else ()
        told = fault or "; ".join(
            [self._verdict(), *recording.from_cache(map(self.recorded, asked))]
        )
        getlogger().info(f"verdict: {self.title} {here}: {told}")
        if fault:
            raise SanityError(fault)
        return True

    @property
    def asks_for_storage(self) -> bool:
        """Whether the options keep the page cache from what is measured, as far as they can."""
        return True

    def found_out(self) -> str | None:
        """Why the case is left out, where only its job could tell; None if it is not."""
        return None

    def _record_runs(self) -> str | None:
        """Write the record of every run that was started; the first fault of the job, if any."""
        faults = list(self._all_faults())
        started = [run for run in self.planned_runs if self._staged(run.folder).is_dir()]
        failures = {run.folder: text for run, text in reversed(faults) if run is not None}
        status = self.exit_status
        failed = self._end_of_job(status, started[-1:])
        if failed:
            failures |= {run.folder: failed for run in started[-1:]}
        elif failed := spack.changed(self.current_environ.name):
            failures |= {run.folder: failed for run in started}
        for run in started:
            made = recording.write(
                Path(self.stagedir),
                run,
                place=self._place(),
                identity=self._identity(),
                asked=dict(self.asked_layout()),
                exit_status=status if run is started[-1] else 0,
                failure=failures.get(run.folder),
                canary=self._canary(),
            )
            session.note_record(self)
            if any(promises.values(made)):
                self.condition = promises.condition(made)
        if failed or not faults:
            return failed
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return f"{faults[0][1]}{more}"

    def keep_lost_runs(self, failure: str) -> None:
        """Keep records of the runs of a job that was to be started, and of which no more is
        known."""
        place = Place(
            system=self.current_system.name,
            partition=self.current_partition.name,
            environment=self.current_environ.name,
        )
        for run in self.planned_runs:
            store.keep(recording.lost(run, place, self._identity(), failure))

    def _end_of_job(self, status: int | None, last: Sequence[PlannedRun]) -> str | None:
        """Why the job did not end well; None if it did, as far as it and the batch system say.
        `last` is the run that was started last, if any."""
        noted = recording.exit_status(Path(self.stagedir))
        text = endings.text_of(Path(str(self.stderr.evaluate())))
        if noted == 0 and not endings.cut_short(self.job.state, text):
            return None
        scheduler = self.current_partition.scheduler.registered_name
        nodes = list(self.job.nodelist or ())
        how = endings.told(scheduler, str(self.job.jobid), self.job.state, nodes, text)
        message = endings.message(text, self.programs, self.num_tasks, self._printed(last))
        if how:
            says_more = message.startswith("understudy: ") and endings.STOPPED not in message
            return f"{how}: {message}" if says_more else how
        if status:
            return f"the job ended with status {status}: {message}"
        if noted is None and not self.current_partition.scheduler.is_local:
            return f"job {self.job.jobid} ended before its script did: {message}"
        return None

    def _printed(self, last: Sequence[PlannedRun]) -> str:
        """What the program of a run printed, else what the job did."""
        files = [self._staged(run.folder / PRINTED) for run in last]
        files.append(Path(str(self.stdout.evaluate())))
        return next((endings.text_of(path) for path in files if path.is_file()), "")

    def _canary(self) -> list[dict[str, Any]]:
        """What ran before and after the runs of the job, to tell how the storage was."""
        return []

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
            turn=self.turn,
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


@cache
def _expect_programs() -> None:
    """End the session if a partition has no Spack environment, where the programs are of one."""
    with session.exit_on_error():
        spack.expect(runtime().system.partitions)


@cache
def _expect_jobs_to_start() -> None:
    """End the session, once it is known what is selected, if this host cannot start its jobs."""
    if not session.asks_to_run(sys.argv[1:]):
        return
    system = runtime().system
    cases = seam.selected_cases()
    partitions = system.partitions
    if cases is not None:
        partitions = [case.partition for case in cases if isinstance(case.check, Placed)]
    if fault := batch.fault(partitions):
        session.end(
            f"system {system.name} {fault}; use --dry-run to see its job scripts, or "
            f"`make rehearse SYSTEM={system.name}` in a checkout to run them on a stand-in"
        )


def _at_most(count: int, most: int | None) -> int:
    """The count, or all targets of the file system if it has fewer and states it."""
    return count if most is None else min(count, most)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base classes of the checks: a replay by the player, and what is asked of its result.

Axes are parameters, which a check fills; knobs are variables, which a person sets with -S. Bytes
and seconds throughout, MiB/s only in what ReFrame prints.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger
from reframe.core.runtime import runtime
from reframe.utility import typecheck

from understudy import schedule, simulation
from understudy import workload as workloads
from understudy.errors import UnderstudyError
from understudy.fidelity import Comparison, compare
from understudy.observation import observe
from understudy.paths import PROXIES, REFERENCES
from understudy.reframe import observer, session
from understudy.reframe.evidence import Asked, faults, verdict
from understudy.reframe.systems import (
    MAX_BYTES,
    MAX_NODES,
    MPI,
    RANKS_PER_NODE,
    SCRATCH,
    STRIPE_COUNT_MAX,
    STRIPING,
    TYPE,
)
from understudy.report.metrics import payload_error, worst
from understudy.result import DumpResult, Repetition, Result, StreamResult, load
from understudy.workload import Workload

MIB = 1 << 20
PLAYER_PROGRAM = "understudy-replay"
AS_DESCRIBED = "described"  # value of the axis `method`: each stream keeps its own
STRIPE_COUNTS = ("default", "nodes", "cores")
PAUSES_S = 0.5  # time of the last dump that the default time scale aims at
OBSERVED_S = 6.0  # the same, where lateness counts
SCHEDULE_S = 30.0  # the same, where nothing else does
SLOWEST_BYTES_PER_S = 20e6  # of a file system, for time limits and where lateness counts
PLAYER, DARSHAN = "player", "darshan"
OBSERVERS = (PLAYER, DARSHAN)


def methods() -> list[str]:
    """The player's methods that move bytes: the listing of their room without `null`."""
    return sorted(p.stem for p in (PROXIES / "methods").glob("*.c") if p.stem != "null")


@cache
def _described(name: str, scaling: str, ranks: int) -> tuple[Workload, str]:
    """The workload and its text: of the room, or for other ranks by an explicit rule."""
    if (scaling == "none") != (ranks == 0):
        raise UnderstudyError(
            f"scaling={scaling} with ranks={ranks}: give both, as in -S scaling=weak -S ranks=64"
        )
    if scaling == "none":
        path = workloads.path_of(name)
        return workloads.load(path), path.read_text(encoding="utf-8")
    scaled = workloads.scale(workloads.get(name), ranks, scaling)
    return scaled, scaled.to_text()


@lru_cache(maxsize=1)
def _loaded(path: Path, _changed_ns: int) -> Result:
    return load(path)


@cache
def _offers(player: str) -> str:
    """What the player on this host says of its methods, a line each."""
    asked = subprocess.run([player, "--list"], capture_output=True, text=True, check=False)
    return asked.stdout


def lacks(method: str) -> str | None:
    """Why the player on this host cannot use a method; None where it can."""
    found = re.search(rf"(?m)^{method} +unavailable: (.+)", _offers(PLAYER_PROGRAM))
    return f"{method}: {found[1]}" if found else None


def ranks_on_a_node(ranks: int, most: int) -> int:
    """The largest number of ranks per node, at most `most`, that fills every node alike."""
    return next(n for n in range(min(ranks, most), 0, -1) if ranks % n == 0)


class Placed(rfm.RunOnlyRegressionTest):
    """Runs in a fresh directory of a partition's file system, where it fits, and says a verdict.

    A check below it has `ranks` and `stripe_count`, and tells what else it needs.
    """

    max_bytes = variable(int, type(None), value=None)
    ranks_per_node = variable(int, type(None), value=None)

    sourcesdir = None
    exclusive_access = True
    valid_systems = [f"+{MPI}"]
    valid_prog_environs = [f"+{MPI}"]

    @property
    def bytes_needed(self) -> int:
        """On the file system, at one time."""
        raise NotImplementedError

    @property
    def methods_needed(self) -> set[str]:
        """Of the player, or of the programs built with it."""
        raise NotImplementedError

    @run_after("setup")
    def fit_the_partition(self) -> None:
        here = self.current_partition
        most = self.ranks_per_node or here.extras[RANKS_PER_NODE]
        self.num_tasks_per_node = ranks_on_a_node(self.ranks, most)
        self.nodes = self.ranks // self.num_tasks_per_node
        self.skip_if(
            self.nodes > here.extras[MAX_NODES],
            f"{self.ranks} ranks need {self.nodes} nodes, {here.fullname} has "
            f"{here.extras[MAX_NODES]} with {most} ranks each; {self.how_to_fit}",
        )

    how_to_fit = "crowd them with -S ranks_per_node=N"

    @run_after("setup")
    def spare_the_host(self) -> None:
        if not self.current_partition.scheduler.is_local:
            return
        # Only local tests count against one limit for all partitions (max_local_jobs): two
        # replays on two file systems of one host would measure each other.
        self.local = True
        if not self.is_dry_run():
            self._skip_without_method()
            self._skip_without_space(Path(self.current_partition.extras[SCRATCH]))

    @run_after("setup")
    def leave_out_what_is_too_large(self) -> None:
        here = self.current_partition
        most = self.max_bytes or here.extras.get(MAX_BYTES, self.bytes_needed)
        self.skip_if(
            self.bytes_needed > most,
            f"{self.bytes_needed} bytes are more than the {most} that {here.fullname} takes; "
            "allow them with -S max_bytes=N",
        )

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

    def _need_programs(self) -> None:
        if not session.asks_to_run(sys.argv[1:]):
            return
        system = runtime().system
        if program := session.missing_program(system.partitions):
            raise UnderstudyError(
                f"system {system.name} needs {program}, which is not on this host; "
                "use --dry-run to see its job scripts"
            )

    def fresh_directory(self) -> list[str]:
        """Lines of the job that make $dir, striped as asked, and remove it at the end."""
        scratch = self.current_partition.extras[SCRATCH]
        return [
            "set -e",
            f'dir=$(mktemp -d "{scratch}/understudy.XXXXXX")',
            "trap 'rm -rf \"$dir\"' EXIT",
            *(f'lfs setstripe -c {count} "$dir"' for count in self.stripes()),
        ]

    def stripes(self) -> Iterator[int]:
        """The stripe count that is asked for, if one is."""
        if self.stripe_count != "default":
            wanted = self.nodes if self.stripe_count == "nodes" else self.ranks
            yield min(wanted, self.current_partition.extras[STRIPE_COUNT_MAX])

    @sanity_function
    def all_work_was_done(self) -> bool:
        fault = self._first_fault()
        here = self.current_partition.fullname
        getlogger().info(f"verdict: {self.title} {here}: {fault or self._verdict()}")
        if fault:
            raise SanityError(fault)
        return True

    @property
    def title(self) -> str:
        """What ran, in the line of the verdict."""
        raise NotImplementedError

    def _first_fault(self) -> str | None:
        raise NotImplementedError

    def _verdict(self) -> str:
        raise NotImplementedError

    def _last_words(self, *programs: str) -> str:
        """The sentence of one of the programs, else the end of what was printed."""
        text = Path(str(self.stderr.evaluate())).read_text(encoding="utf-8", errors="replace")
        # Open MPI 5 ends what it prints of an abort with a NUL, in front of the next line.
        lines = [line for line in text.replace("\0", "").splitlines() if line.strip()]
        own = [line for line in lines if line.startswith(tuple(f"{name}: " for name in programs))]
        return own[0] if own else lines[-1] if lines else "it printed nothing"

    def measure(self, name: str, unit: str, value: Any, *arguments: Any) -> None:
        """A performance variable; its name is known before the run, so a dry run knows it too."""
        self.perf_variables[name] = sn.make_performance_function(value, unit, *arguments)


class Played(Placed):
    """Plays one workload and proves by the result that all of it was done."""

    workload = parameter(loggable=True)
    method = parameter(loggable=True)
    stripe_count = parameter(loggable=True)

    time_scale = variable(float, type(None), value=None, loggable=True)
    repetitions = variable(int, value=1, loggable=True)
    transfer_bytes = variable(int, type(None), value=None, loggable=True)
    collective = variable(typecheck.Bool, type(None), value=None, loggable=True)
    verify = variable(typecheck.Bool, value=True, loggable=True)
    scaling = variable(str, value="none", loggable=True)
    ranks = variable(int, value=0, loggable=True)
    workload_sha256 = variable(str, loggable=True)

    time_limit: Any
    executable = PLAYER_PROGRAM
    keep_files = ["workload.json", "result.json"]
    how_to_fit = (
        "scale it with -S scaling=strong|weak -S ranks=N, or crowd them with -S ranks_per_node=N"
    )

    @run_after("init")
    def read_the_descriptor(self) -> None:
        """A mistake of the person ends the session here, in one sentence and before any test."""
        try:
            self.described, self.text = _described(self.workload, self.scaling, self.ranks)
            self._need_programs()
        except UnderstudyError as error:
            sys.exit(f"understudy: {error}")
        self.workload_sha256 = hashlib.sha256(self.text.encode()).hexdigest()
        self.num_tasks = self.ranks = self.described.ranks
        last_s = max(d.time_s for s in self.described.streams for d in s.dumps)
        if self.time_scale is None:
            self.time_scale = self._time_scale(last_s)
        if self.time_limit is None:
            seconds = self.time_scale * last_s + self.described.bytes / SLOWEST_BYTES_PER_S
            self.time_limit = 600 + round(2 * self.repetitions * seconds)

    def _time_scale(self, last_s: float) -> float:
        """By default the last dump, described at last_s, is due soon."""
        return float(f"{min(1.0, PAUSES_S / last_s):.4g}") if last_s else 1.0

    @run_after("init")
    def stripe_only_where_users_can(self) -> None:
        if self.stripe_count != "default":
            self.valid_systems = [f"+{MPI} +{STRIPING}"]

    @property
    def bytes_needed(self) -> int:
        return self.described.bytes

    @property
    def methods_needed(self) -> set[str]:
        own = {s.method for s in self.described.streams}
        return own if self.method == AS_DESCRIBED else {self.method}

    @run_before("run")
    def write_the_descriptor(self) -> None:
        (Path(self.stagedir) / "workload.json").write_text(self.text, encoding="utf-8")

    @run_before("run")
    def play_in_a_fresh_directory(self) -> None:
        self.prerun_cmds = self.fresh_directory()
        self.executable_opts = [*self._options(), '-o "$dir"', "-O result.json"]

    def _options(self) -> Iterator[str]:
        yield "-w workload.json"
        if self.method != AS_DESCRIBED:
            yield f"-a {self.method}"
        if self.transfer_bytes is not None:
            yield f"-t {self.transfer_bytes}"
        if self.collective is not None:
            yield "-c" if self.collective else "--independent"
        yield f"-i {self.repetitions}"
        yield f"--time-scale {self.time_scale}"
        if self.verify:
            yield "--verify"

    @property
    def title(self) -> str:
        return f"{self.workload} {self.method}"

    def _verdict(self) -> str:
        return verdict(self.played)

    def _first_fault(self) -> str | None:
        status = self.job.exitcode
        if status not in (0, None):  # Torque does not tell the status of a past job
            return f"the player ended with status {status}: {self._last_words('understudy')}"
        try:
            wrong = list(faults(self.played, self._asked()))
        except UnderstudyError as error:
            return str(error)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        return f"result.json: {wrong[0]}{more}" if wrong else None

    def _asked(self) -> Asked:
        return Asked(
            workload=self.described,
            workload_sha256=self.workload_sha256,
            method=None if self.method == AS_DESCRIBED else self.method,
            transfer_bytes=self.transfer_bytes,
            collective=self.collective,
            repetitions=self.repetitions,
            time_scale=self.time_scale,
            verify=self.verify,
            file_system=self.current_partition.extras[TYPE],
        )

    @property
    def played(self) -> Result:
        path = Path(self.stagedir) / "result.json"
        changed_ns = path.stat().st_mtime_ns if path.exists() else 0
        return _loaded(path, changed_ns)


class Bandwidth(Played):
    """Bandwidth of every stream and the time of the whole, against the system's expectations.

    Expectations are in configs/references/<system>.yaml (or another folder, RFM_REFERENCE_PREFIX),
    if there is such a file; without one, values are only recorded. The mode accept demands them.
    """

    @run_after("init")
    def expect_what_the_system_promises(self) -> None:
        folder = runtime().get_option("general/0/reference_prefix") or REFERENCES
        path = Path(folder) / f"{self.current_system.name}.yaml"
        if path.is_file():
            self.reference = {"$ref": str(path)}

    @run_before("performance")
    def one_bandwidth_per_stream(self) -> None:
        for stream in self.described.streams:
            self.measure(f"{stream.name}_bandwidth", "MiB/s", self._bandwidth, stream.name)
        self.measure("elapsed", "s", self._elapsed_s)

    def _bandwidth(self, name: str) -> float:
        return median(
            _stream(r, name).bandwidth_bytes_per_s / MIB for r in self.played.repetitions
        )

    def _elapsed_s(self) -> float:
        return median(r.elapsed_s for r in self.played.repetitions)


class Volume(Played):
    """Volume of every stream and every dump, against what the descriptor states.

    Volume is the growth of the files, container included. States in a file that stays open count
    by their payload, since a library may allocate for several at once; their stream by its files.
    """

    tolerance = variable(float, value=0.1, loggable=True)

    @run_before("performance")
    def one_volume_per_dump(self) -> None:
        expected = {}
        for stream in self.described.streams:
            sizes = [d.bytes + (d.overhead_bytes or 0) for d in stream.dumps]
            expected[f"{stream.name}_bytes"] = sum(sizes)
            self.measure(f"{stream.name}_bytes", "B", self._stream_bytes, stream.name)
            for i, size in enumerate(sizes):
                expected[f"{stream.name}_{i:03d}_bytes"] = size
                self.measure(f"{stream.name}_{i:03d}_bytes", "B", self._dump_bytes, stream.name, i)
        self.reference = {
            "*": {k: (v, -self.tolerance, self.tolerance, "B") for k, v in expected.items()}
        }

    def _stream_bytes(self, name: str) -> int:
        return sum(_volume(d) for d in _stream(self.played.repetitions[0], name).dumps)

    def _dump_bytes(self, name: str, index: int) -> int:
        dump = _stream(self.played.repetitions[0], name).dumps[index]
        return dump.bytes if self.described.stream(name).files == "append" else _volume(dump)


class Faithful(Volume):
    """The same, and what Darshan sees of the replica, which knows nothing of it.

    The observer `player` is the player itself: volumes as it found them on storage. With the
    observer `darshan` the player runs under Darshan's runtime, and its log is compared with the
    descriptor stream by stream, within the same tolerance.
    """

    observer = parameter(loggable=True)

    @run_after("init")
    def play_as_the_application_did(self) -> None:
        if self.observer == DARSHAN:
            self.verify = False  # reading back is no I/O of the application's
            self.repetitions = 1

    def _time_scale(self, last_s: float) -> float:
        if self.observer != DARSHAN or not last_s:
            return super()._time_scale(last_s)
        due_s = max(OBSERVED_S, self.described.bytes / SLOWEST_BYTES_PER_S)
        return float(f"{due_s / last_s:.4g}")

    @run_after("setup")
    def skip_without_the_observer(self) -> None:
        self.runtime = f"${observer.VARIABLE}"  # the job's, where this is only shown
        if self.observer == DARSHAN and not self.is_dry_run():
            try:
                self.runtime = observer.runtime()
                if self.current_partition.scheduler.is_local:
                    observer.preloaded(self.runtime)
            except UnderstudyError as error:
                self.skip(str(error))

    @run_before("run")
    def let_darshan_watch(self) -> None:
        if self.observer == DARSHAN:
            lines = " ".join(f"'{line}'" for line in observer.settings("'\"$dir\"'"))
            self.prerun_cmds += [f"printf '%s\\n' {lines} >{observer.SETTINGS}"]
            program, *preload = " ".join(observer.prefix_of(self.runtime)).split(" ", 1)
            self.executable_opts = [*preload, self.executable, *self.executable_opts]
            self.executable = program
            self.keep_files = [*self.keep_files, observer.LOG]

    def _first_fault(self) -> str | None:
        fault = super()._first_fault()
        if fault or self.observer != DARSHAN:
            return fault
        try:
            made = self._observed()
        except UnderstudyError as error:
            return str(error)
        failures = list(made.failures())
        more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
        return f"{observer.LOG}: {failures[0]}{more}" if failures else None

    def _verdict(self) -> str:
        words = super()._verdict()
        return f"{words}; {self._observed().summary}" if self.observer == DARSHAN else words

    def _observed(self) -> Comparison:
        """What Darshan saw, against the descriptor with the options in force."""
        folder = Path(self.stagedir)
        original = observe(folder / "workload.json")
        return compare(
            original,
            observe(folder / observer.LOG, original),
            tolerance=self.tolerance,
            time_scale=self.time_scale,
        )


class Accurate(Played):
    """Sizes on storage of a simulation's replica, against those that its text states (Table II).

    The errors of checkpoints and visualization states are those of `simulation.accuracy`, with
    the containers, and stay below what is tolerated; the payload has none. Sizes are those of the
    text only with its own total bytes: the workload as it is, or scaled strongly.
    """

    mean_tolerance = variable(float, value=0.1, loggable=True)  # %
    max_tolerance = variable(float, value=0.5, loggable=True)  # %
    stated: Any  # the simulation; None, and skipped, where the sizes are not its own

    def _time_scale(self, last_s: float) -> float:
        return 0.0

    @run_after("init")
    def know_the_simulation(self) -> None:
        self.stated = None if self.scaling == "weak" else simulation.played_by(self.described)
        if self.stated is None and self.scaling != "weak":
            sys.exit(
                f"understudy: {self.workload}: the workload is not what the simulation of that "
                "name gives; make it anew with understudy compose"
            )

    @run_after("setup")
    def skip_what_has_other_sizes(self) -> None:
        self.skip_if(
            self.stated is None,
            f"{self.workload} scaled weakly has other sizes than its simulation; expected "
            "-S scaling=strong",
        )

    @run_before("performance")
    def one_error_per_row(self) -> None:
        limits = {
            "checkpoint_mean_error": self.mean_tolerance,
            "checkpoint_max_error": self.max_tolerance,
            "total_error": self.mean_tolerance,
            "state_error": self.mean_tolerance,
        }
        for name in limits:
            self.measure(name, "%", self._error_percent, name)
        self.measure("payload_error", "%", self._payload_error_percent)
        # Of a reference of 0 the thresholds are absolute.
        self.reference = {
            "*": {name: (0, None, most, "%") for name, most in limits.items()}
            | {"payload_error": (0, 0, 0, "%")}
        }

    def _accuracy(self) -> simulation.Accuracy:
        made = (simulation.accuracy(self.stated, r) for r in self.played.repetitions)
        return simulation.largest(made)

    def _error_percent(self, name: str) -> float:
        return 100 * float(getattr(self._accuracy(), name))

    def _payload_error_percent(self) -> float:
        streams = [s for r in self.played.repetitions for s in r.streams]
        dumps = [d for s in streams for d in s.dumps]
        return 100 * worst(payload_error(d.bytes, d.described_bytes) for d in dumps)

    def _first_fault(self) -> str | None:
        fault = super()._first_fault()
        if fault is None:
            try:
                self._accuracy()
            except UnderstudyError as error:
                return str(error)
        return fault

    def _verdict(self) -> str:
        words = f"{super()._verdict()}; {_errors(self._accuracy())}"
        if self.stated.published is None:
            return words
        return f"{words}; {self.stated.published.where}: {_errors(self.stated.published.accuracy)}"


class Punctual(Played):
    """Whether the dumps begin when the schedule says: the total of the pauses, and lateness."""

    tolerance = variable(float, value=1.0, loggable=True)  # % of the total of the pauses

    def _time_scale(self, last_s: float) -> float:
        return float(f"{SCHEDULE_S / last_s:.4g}") if last_s > SCHEDULE_S else 1.0

    @run_after("setup")
    def skip_without_pauses(self) -> None:
        self.skip_if(self.time_scale == 0, "with -S time_scale=0 there are no pauses to keep")

    @run_before("performance")
    def pauses_and_lateness(self) -> None:
        self.measure("pauses_error", "%", self._error_percent)
        self.measure("pauses", "s", self._seconds, "kept_s")
        self.measure("median_lateness", "s", self._seconds, "median_lateness_s")
        self.measure("max_lateness", "s", self._seconds, "max_lateness_s")
        self.reference = {"*": {"pauses_error": (0, -self.tolerance, self.tolerance, "%")}}

    def _pauses(self) -> list[schedule.Pauses]:
        return [
            schedule.pauses(d for s in r.streams for d in s.dumps) for r in self.played.repetitions
        ]

    def _error_percent(self) -> float:
        return 100 * worst(made.error for made in self._pauses())

    def _seconds(self, name: str) -> float:
        return median(float(getattr(made, name)) for made in self._pauses())

    def _verdict(self) -> str:
        made = self._pauses()[0]
        return (
            f"{super()._verdict()}; {made.kept_s:.3f} of {made.asked_s:.3f} s of pauses "
            f"(error {made.error:+.3%}), lateness of a dump {made.median_lateness_s:.4f} s "
            f"(median), {made.max_lateness_s:.4f} s (largest)"
        )


def _errors(made: simulation.Accuracy) -> str:
    return (
        f"checkpoints off by {made.checkpoint_mean_error:.4%} (mean), "
        f"{made.checkpoint_max_error:.4%} (largest), states by {made.total_error:.4%}, "
        f"{made.state_error:.4%} each"
    )


def _volume(dump: DumpResult) -> int:
    """Growth of the dump's files; payload of a read, or where the method has no files."""
    return dump.bytes if dump.file_bytes is None else dump.file_bytes


def _stream(repetition: Repetition, name: str) -> StreamResult:
    return next(s for s in repetition.streams if s.name == name)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of the checks in which the player plays one workload.

Axes are parameters, which a check fills; options are variables, which a person sets with -S. Bytes
and seconds throughout, MiB/s only in what ReFrame prints.
"""

import hashlib
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable
from reframe.utility import typecheck

from understudy.contracts import measurement
from understudy.contracts import workload as workloads
from understudy.contracts.measurement import PlayedRepetition, PlayedStream
from understudy.contracts.run import RECORD_FILE
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.judge.statistics.conditions import RESTART_SUFFIX
from understudy.model.layouts import with_layout
from understudy.model.scaling import scale
from understudy.producers import MEASUREMENT_FILE, player
from understudy.program.needs import needs
from understudy.program.sizes import stored_bytes
from understudy.reframe import spaces
from understudy.reframe.bases import canary
from understudy.reframe.bases.completeness import Asked, faults, unknown_hints, verdict
from understudy.reframe.bases.methods import PLAYER, cannot_play, is_collective
from understudy.reframe.bases.placed import Placed
from understudy.reframe.bases.recording import PlannedRun
from understudy.reframe.session import option_values
from understudy.reframe.session.option_values import Size
from understudy.reframe.session.session import exit_on_error, refuse
from understudy.reframe.spaces import AGGREGATORS_AXIS, DEFAULT, LAYOUT_AXIS, NODES_AXIS
from understudy.reframe.systems import RANKS_PER_NODE, TYPE, slowest_bytes_per_s

AS_DESCRIBED = "described"  # value of the axis `method`: each stream keeps its own
PAUSES_S = 0.5  # time of the last dump that the default time scale aims at


@cache
def _described(
    name: str, scaling: str, ranks: int, layout: str = DEFAULT, groups: int = 1
) -> Workload:
    """The workload: as described, scaled to other ranks by an explicit rule, or with another
    layout."""
    if (scaling == "none") != (ranks == 0):
        raise UnderstudyError(
            f"scaling={scaling} with ranks={ranks}: give both, as in -S scaling=weak -S ranks=64; "
            "for another check, name it, as in -S Ior.ranks=64"
        )
    if layout != DEFAULT:
        return with_layout(_described(name, scaling, ranks), layout, groups)
    described = workloads.get(name)
    return described if scaling == "none" else scale(described, ranks, scaling)


@cache
def _text(name: str, scaling: str, ranks: int, layout: str = DEFAULT, groups: int = 1) -> str:
    """The text of that workload; a listing needs none."""
    if scaling == "none" and layout == DEFAULT:
        return workloads.text(name)
    return _described(name, scaling, ranks, layout, groups).to_text()


@lru_cache(maxsize=1)
def _loaded(path: Path, _changed_ns: int) -> measurement.Played:
    return player.read(path)


class Played(Placed):
    """Plays one workload and proves from the result that all of it was done."""

    workload = parameter(type=str, loggable=True)
    method = parameter(type=str, loggable=True)
    stripe_count = parameter(type=str, loggable=True)

    time_scale = variable(float, type(None), value=None, loggable=True)
    repetitions = variable(int, value=1, loggable=True)
    transfer_bytes = variable(Size, int, type(None), value=None, loggable=True)
    fsync = variable(typecheck.Bool, value=False, loggable=True)
    restart = variable(typecheck.Bool, value=False, loggable=True)
    shift_ranks = variable(int, value=1, loggable=True)
    drop_cache = variable(typecheck.Bool, value=False, loggable=True)
    deadline_s = variable(float, type(None), value=None, loggable=True)
    wear_out = variable(typecheck.Bool, value=False, loggable=True)
    rate_bytes_per_s = variable(Size, int, type(None), value=None, loggable=True)
    mix_percent = variable(int, type(None), value=None, loggable=True)
    method_options = variable(typecheck.List[str], value=[], loggable=True)
    hints = variable(typecheck.List[str], value=[], loggable=True)
    aggregators = variable(str, value=DEFAULT, loggable=True)
    layout = variable(str, value=DEFAULT, loggable=True)
    nodes = variable(str, value=DEFAULT, loggable=True)
    collective = variable(typecheck.Bool, type(None), value=None, loggable=True)
    canary = variable(typecheck.Bool, value=False, loggable=True)
    verify = variable(typecheck.Bool, value=True, loggable=True)
    watchdog = variable(float, value=300.0)  # s; no condition of a measurement
    scaling = variable(str, value="none", loggable=True)
    ranks = variable(int, value=0, loggable=True)
    workload_sha256 = variable(str, value="", loggable=True)  # known by the setup

    axes = tuple(spaces.AXES)
    executable = PLAYER
    arm = "replica"
    keep_files = ["workload.json", MEASUREMENT_FILE, RECORD_FILE]
    how_to_fit = (
        "scale it with -S scaling=strong|weak -S ranks=N, "
        "or use more ranks per node with -S ranks_per_node=N"
    )

    @run_after("init")
    def load_workload(self) -> None:
        """An invalid option ends the session with one message and before any test."""
        with exit_on_error():
            try:
                self._play(self.scaling, self.ranks)
            except UnderstudyError as error:
                refuse(self, str(error))
                self._play("none", 0)
        self.as_listed = self.described
        last_s = max(s.last_s for s in self.described.streams)
        if self.time_scale is None:
            self.time_scale = self._time_scale(last_s)

    def _play(self, *rule: Any) -> None:
        """Set the workload: scaling, ranks, layout, groups."""
        self.rule = rule
        self.described = _described(self.workload, *rule)
        self.num_tasks = self.ranks = self.described.ranks

    @property
    def text(self) -> str:
        """The workload as the player reads it."""
        return _text(self.workload, *self.rule)

    def ranks_on(self, here: Any) -> int:
        if (nodes := self.wanted(NODES_AXIS)) == DEFAULT:
            return int(self.ranks)
        return int(nodes) * int(self.ranks_per_node or here.extras[RANKS_PER_NODE])

    def bytes_on(self, here: Any) -> int:
        listed = self.as_listed
        stored = stored_bytes(listed.program)
        if self.wanted(NODES_AXIS) == DEFAULT:
            return stored
        return int(stored * self.ranks_on(here) // listed.ranks)

    def moved_on(self, here: Any) -> int:
        """Payload of all repetitions; what is verified is read back too."""
        listed = self.as_listed
        share = self.ranks_on(here) / listed.ranks if self.wanted(NODES_AXIS) != DEFAULT else 1
        return int(self.repetitions * listed.bytes * share * (2 if self.verify else 1))

    def idle_s(self) -> float:
        last_s = max(s.last_s for s in self.as_listed.streams)
        return float(self.repetitions * self.time_scale * last_s)

    def adapt_to_partition(self) -> None:
        """Weak scaling to the nodes, and the layout that is asked for."""
        here = self.current_partition
        nodes, layout = self.wanted(NODES_AXIS), self.wanted(LAYOUT_AXIS)
        ranks = self.ranks_on(here)
        rule = (self.scaling, self.ranks if self.scaling != "none" else 0)
        if nodes != DEFAULT and ranks != self.as_listed.ranks:
            rule = ("weak", ranks)
        try:
            groups = [layout, self.distribution(here)[0]] if layout != DEFAULT else []
            self._play(*rule, *groups)
        except UnderstudyError as error:
            self.skip(str(error))
        self.workload_sha256 = hashlib.sha256(self.text.encode()).hexdigest()

    def beside_s(self, here: Any) -> float:
        """IOR and mdtest, before and after."""
        return 4.0 * self._canary_limit_s(here) if self.canary else 0.0

    def _aggregators(self, here: Any) -> int | None:
        """Ranks that write for the others; None if nothing is asked."""
        wanted = self.wanted(AGGREGATORS_AXIS)
        if wanted == DEFAULT:
            return None
        return spaces.aggregators(wanted, self.ranks_on(here), self.distribution(here)[0])

    def reasons(self, here: Any) -> Iterator[str]:
        yield from super().reasons(here)
        if self._aggregators(here) is None:
            return
        if not any(map(is_collective, self.methods_needed)):
            names = " and ".join(sorted(self.methods_needed))
            yield f"{names}: no collective calls, so that aggregators change nothing"
        layout = self.wanted(LAYOUT_AXIS)
        layouts = {s.layout for s in self.as_listed.streams} if layout == DEFAULT else {layout}
        if layouts == {"file-per-process"}:
            yield "every rank writes its own file, so that aggregators change nothing"

    def _time_scale(self, last_s: float) -> float:
        """The default; the last dump is described at last_s."""
        return float(f"{min(1.0, PAUSES_S / last_s):.4g}") if last_s else 1.0

    @property
    def bytes_needed(self) -> int:
        return stored_bytes(self.described.program)

    @property
    def methods_needed(self) -> set[str]:
        described_methods = {s.method for s in self.described.streams}
        return described_methods if self.method == AS_DESCRIBED else {self.method}

    @run_after("init")
    def check_numbers(self) -> None:
        lowest = {
            "repetitions": (1, "at least 1"),
            "transfer_bytes": (1, "at least 1B"),
            "rate_bytes_per_s": (1, "at least 1B"),
            "time_scale": (0, "a number of at least 0"),
        }
        for name, (least, words) in lowest.items():
            value = getattr(self, name)
            if not option_values.number(value, least):
                sys.exit(f"understudy: -S {name}={value:g}: expected {words}")

    @run_after("init")
    def check_watchdog(self) -> None:
        if not 0 <= self.watchdog < float("inf"):
            sys.exit(f"understudy: -S watchdog={self.watchdog:g}: expected seconds, 0: never")

    @run_after("init")
    def check_limits(self) -> None:
        if self.deadline_s is not None and not 0 < self.deadline_s < float("inf"):
            sys.exit(f"understudy: -S deadline_s={self.deadline_s:g}: expected a number above 0")
        if self.wear_out and self.deadline_s is None:
            sys.exit("understudy: -S wear_out=1: only with -S deadline_s=SECONDS")
        if self.mix_percent is not None and not 1 <= self.mix_percent <= 99:
            sys.exit(f"understudy: -S mix_percent={self.mix_percent}: expected 1 to 99")

    @run_after("init")
    def check_restart(self) -> None:
        if self.drop_cache and not self.restart:
            sys.exit("understudy: -S drop_cache=1: only with -S restart=1, which reads")

    @property
    def restarts(self) -> list[str]:
        """Streams of the measurement that read a checkpoint back; none without checkpoints."""
        written = (s for s in self.described.streams if s.operation == "write")
        names = [f"{s.name}{RESTART_SUFFIX}" for s in written if s.role == "checkpoint"]
        return names if self.restart else []

    @run_after("setup")
    def skip_kinds_that_the_method_lacks(self) -> None:
        for name, needed in needs(self.described.program).items():
            described = self.described.stream(name).method
            method = described if self.method == AS_DESCRIBED else self.method
            writes = self.described.stream(name).operation == "write"
            mixed = {"lookups"} if self.mix_percent is not None and writes else set()
            lacking = sorted((needed | mixed) & cannot_play(method))
            self.skip_if(bool(lacking), f"{method} cannot play {' and '.join(lacking)}: {name}")

    @run_before("run")
    def write_workload(self) -> None:
        (Path(self.stagedir) / "workload.json").write_text(self.text, encoding="utf-8")

    @run_before("run")
    def set_player_options(self) -> None:
        directory = self.layout_options() if self._stripes_directory else []
        self.prerun_cmds = self.run_directory(*directory)
        self.executable_opts = [*self._options(), '-o "$dir"', f"-O {MEASUREMENT_FILE}"]

    @property
    def _stripes_directory(self) -> bool:
        """A method that replaces its files creates them itself, as the directory has it."""
        return any("rewrite" in cannot_play(method) for method in self.methods_needed)

    @run_before("run")
    def run_canary(self) -> None:
        if not self.canary:
            return
        text = canary.workload(self.ranks).to_text()
        (Path(self.stagedir) / canary.WORKLOAD).write_text(text, encoding="utf-8")
        self.job.num_tasks = self.num_tasks  # the launcher asks the job, which is told later
        self.job.num_tasks_per_node = self.num_tasks_per_node
        launch = self.job.launcher.run_command(self.job)
        seconds = self._canary_limit_s(self.current_partition)
        self.prerun_cmds += list(canary.lines(canary.BEFORE, launch, seconds))
        self.postrun_cmds += list(canary.lines(canary.AFTER, launch, seconds))
        self.keep_files = [*self.keep_files, str(canary.FOLDER)]

    def _canary_limit_s(self, here: Any) -> int:
        return canary.limit_s(self.ranks_on(here), slowest_bytes_per_s(here))

    def _canary(self) -> list[dict[str, Any]]:
        return canary.read(Path(self.stagedir)) if self.canary else []

    def _options(self) -> Iterator[str]:
        yield "-w workload.json"
        if self.method != AS_DESCRIBED:
            yield f"-a {self.method}"
        if self.transfer_bytes is not None:
            yield f"-t {self.transfer_bytes}"
        if (collective := self.collective_calls) is not None:
            yield "-c" if collective else "--independent"
        if not self._stripes_directory:
            yield from self.layout_options()
        yield from (f"-m {shlex.quote(option)}" for option in self.method_options)
        yield from (f"--hint {shlex.quote(hint)}" for hint in self.asked_hints())
        if self.fsync:
            yield "-e"
        yield from self._limits()
        if self.restarts:
            yield f"--restart --shift-ranks {self.shift_ranks}"
        if self.restarts and self.drop_cache:
            yield "--drop-cache"
        yield f"-i {self.repetitions}"
        yield f"--time-scale {self.time_scale}"
        yield f"--watchdog {self.watchdog:g}"
        if self.verify:
            yield "--verify"

    def _limits(self) -> Iterator[str]:
        if self.deadline_s is not None:
            yield f"--deadline {self.deadline_s:g}"
        if self.wear_out:
            yield "--wear-out"
        if self.rate_bytes_per_s is not None:
            yield f"--rate {self.rate_bytes_per_s}"
        if self.mix_percent is not None:
            yield f"--mix {self.mix_percent}"

    @property
    def collective_calls(self) -> bool | None:
        """Those asked for, which aggregators need; None: as described."""
        asked = None if self.collective is None else bool(self.collective)
        return True if asked is None and self.wanted(AGGREGATORS_AXIS) != DEFAULT else asked

    def asked_hints(self) -> list[str]:
        """Those of the aggregators, then those given, of which the last counts."""
        here = self.current_partition
        count = self._aggregators(here)
        aggregator_hints = (
            spaces.hints(count, self.distribution(here)[0]) if count is not None else {}
        )
        return [*(f"{key}={value}" for key, value in aggregator_hints.items()), *self.hints]

    @property
    def asks_for_storage(self) -> bool:
        return bool(self.fsync or self.drop_cache)

    @property
    def title(self) -> str:
        return f"{self.workload} {self.method}"

    def _verdict(self) -> str:
        return verdict(self.played)

    @property
    def planned_runs(self) -> Sequence[PlannedRun]:
        return [self.run_of_the_player]

    @property
    def run_of_the_player(self) -> PlannedRun:
        command = " ".join([self.executable, *self.executable_opts])
        return PlannedRun(folder=Path(), producer="player", arm=self.arm, command=command)

    @property
    def programs(self) -> Sequence[str]:
        return ["understudy"]

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        run = self.run_of_the_player
        try:
            for fault in faults(self.played, self._asked()):
                yield run, f"{MEASUREMENT_FILE}: {fault}"
        except UnderstudyError as error:
            yield run, str(error)

    def _asked_limits(self) -> dict[str, Any]:
        names = ("deadline_s", "wear_out", "rate_bytes_per_s", "mix_percent")
        return {name: getattr(self, name) for name in names}

    def found_out(self) -> str | None:
        """The MPI library alone knows which hints it takes, and states it of an open file."""
        with suppress(UnderstudyError):
            if unknown := unknown_hints(self.played, self._asked()):
                words = " and ".join(unknown)
                return f"{words}: not a hint of {self.played.environment.mpi.partition(',')[0]}"
        return None

    def _asked(self) -> Asked:
        here = self.current_partition
        return Asked(
            workload=self.described,
            workload_sha256=self.workload_sha256,
            method=None if self.method == AS_DESCRIBED else self.method,
            options={
                "transfer_bytes": self.transfer_bytes,
                "collective": self.collective_calls,
                "fsync": self.fsync,
                "restart": bool(self.restarts),
                "drop_cache": bool(self.restarts) and self.drop_cache,
                **{name: value for name, value in self._asked_limits().items() if value},
            },
            repetitions=self.repetitions,
            time_scale=self.time_scale,
            verify=self.verify,
            file_system=here.extras[TYPE],
            restarts=self.restarts,
            # understudy-storage reads back what it gave a directory.
            layout={} if self._stripes_directory else self.asked_layout(),
            hints=dict(hint.split("=", 1) for hint in self.asked_hints()),
            optional_hints=spaces.OF_ROMIO if self._aggregators(here) is not None else (),
        )

    @property
    def played(self) -> measurement.Played:
        path = Path(self.stagedir) / MEASUREMENT_FILE
        changed_ns = path.stat().st_mtime_ns if path.exists() else 0
        return _loaded(path, changed_ns)


def stream_of(repetition: PlayedRepetition, name: str) -> PlayedStream:
    return next(s for s in repetition.streams if s.name == name)

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base classes of the checks of Darshan itself: what it costs a program, and at the end of a job.

Both need a runtime: DARSHAN_RUNTIME, or darshan-config on PATH, or the prefixes that are given.
"""

import csv
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable

from understudy import paths
from understudy.contracts.workload import Dump, Provenance, Source, Stream, Variable, Workload
from understudy.darshanlog import open_log
from understudy.darshanlog.convert import NAMES
from understudy.darshanlog.sizes import LogSize, log_size
from understudy.errors import UnderstudyError
from understudy.judge import operations as cost
from understudy.judge import overhead, shutdown
from understudy.judge.overhead import CONTROL, LIMIT_PERCENT, UNDER, WITHOUT
from understudy.judge.shutdown import TITLES, WORKLOADS
from understudy.judge.transfer import OUTSIDE
from understudy.producers import ior
from understudy.producers import operations as profile
from understudy.producers import shutdown as producer
from understudy.producers.operations import FUNCTIONS
from understudy.reframe import observer
from understudy.reframe.benchmark import Benchmark
from understudy.reframe.given import Size
from understudy.reframe.interleaved import Arm
from understudy.reframe.methods import PLAYER
from understudy.reframe.placed import MIB
from understudy.reframe.recording import PlannedRun
from understudy.reframe.session import exit_on_error
from understudy.reframe.systems import MAX_BYTES
from understudy.units import exact, percent, seconds, size

IOR = "ior"
LOG = "run.darshan"
ARCHIVED = "archived.csv"
TRANSFER_BYTES = 512 << 10
SMALL_BYTES, WRITES_EACH = 4096, 20  # of a file of the check Operations
FEW_FILES, MANY_FILES = 20, 120  # under valgrind
LETTERS = "abcdefgh"


class Observed(Benchmark):
    """Runs programs under one or several versions of Darshan."""

    darshan = variable(str, value="", loggable=True)  # prefixes, separated by commas

    case = parameter(["paper"], type=str, loggable=True)
    cases = {"paper": ""}

    @property
    def prefixes(self) -> list[str]:
        """Of the versions; an UnderstudyError where there is none."""
        given = [prefix.strip() for prefix in self.darshan.split(",") if prefix.strip()]
        return given or [observer.runtime()]

    @property
    def versions(self) -> int:
        """How many of them there are, as far as it is known before the setup."""
        return len([prefix for prefix in self.darshan.split(",") if prefix.strip()]) or 1

    @run_after("init")
    def check_versions(self) -> None:
        with exit_on_error():
            if len(self.darshan.split(",")) > len(LETTERS):
                raise UnderstudyError(
                    f"-S darshan={self.darshan}: expected at most {len(LETTERS)} prefixes"
                )

    @run_after("setup")
    def skip_without_darshan(self) -> None:
        self.runtimes = [f"${observer.VARIABLE}"]  # the job's, in a dry run
        if self.is_dry_run():
            return
        try:
            self.runtimes = self.prefixes
            if self.local:
                for prefix in self.runtimes:
                    observer.preloaded(prefix)
        except UnderstudyError as error:
            self.skip(f"{error}; build darshan-runtime, and give its prefix: -S darshan=PREFIX")


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
        """What is on PATH here says nothing of the nodes of a batch system."""
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
        most = here.extras.get(MAX_BYTES) if self.max_bytes is None else self.max_bytes
        block = self.block_bytes if most is None else min(self.block_bytes, most // self.ranks)
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
        versions = [f"{UNDER}{LETTERS[n]}" for n in range(self.versions)]
        return [
            Arm(name=name, producer=kind, program=self.program)
            for name in (WITHOUT, CONTROL, *versions)
        ]

    @run_before("run")
    def set_up(self) -> None:
        here = self.current_partition
        # Darshan leaves out /dev and /var by default.
        line = f"'NAME_INCLUDE ^{observer.DIRECTORY}(/|$) *'"
        self.prerun_cmds += [f"printf '%s\\n' {line} >{observer.SETTINGS}"]
        if self.program == PLAYER:
            (Path(self.stagedir) / "workload.json").write_text(
                _pattern(self.ranks, self.block_on(here)).to_text(), encoding="utf-8"
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
        prefix = self.runtimes[LETTERS.index(arm.name.removeprefix(UNDER))]
        return f"{' '.join(_under(prefix, f'$PWD/{folder}/{LOG}'))} {words}"

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
        """Of Darshan, from the log of a run; an UnderstudyError if it did not see the data."""
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
            if (found := measured.options.get("blockSize")) != block:
                yield f"expected blocks of {block} bytes, found {found}"
        elif measured.environment.ranks != self.ranks:
            yield f"expected {self.ranks} ranks, found {measured.environment.ranks}"

    # -- what it says ----------------------------------------------------------------------------

    def _judged(self) -> overhead.Case:
        [made] = overhead.cases(self.recorded(run) for run in self.planned_runs)
        return made

    @run_before("performance")
    def times_and_overheads(self) -> None:
        self.measure("without_io", "s", self._median, WITHOUT)
        decided = []
        for n, arm in enumerate(arm.name for arm in self.arms if arm.name.startswith(UNDER)):
            name = arm.replace("-", "_")
            self.measure(f"{name}_io", "s", self._median, arm)
            for end in ("value", "low", "high"):
                self.measure(f"{name}_overhead_{end}", "%", self._overhead_percent, n, end)
            self.measure(f"{name}_decided", "%", self._decided, n)
            decided.append(f"{name}_decided")
        self.reference = {"*": {k: (0, None, self.limit_percent, "%") for k in decided}}

    def _median(self, arm: str, *_: Any) -> float:
        from statistics import median

        return median(self._judged().seconds[arm])

    def _overhead_percent(self, number: int, end: str) -> float:
        return 100 * float(getattr(self._judged().overheads[number].error.error, end))

    def _decided(self, number: int) -> float:
        """The smallest overhead that is sure; 0 unless it is outside of the limit."""
        found = self._judged().overheads[number]
        sure = found.state(self.limit_percent / 100) == OUTSIDE
        return 100 * found.error.error.low if sure else 0.0

    def _verdict(self) -> str:
        judged, limit = self._judged(), self.limit_percent / 100
        words = []
        for found in judged.overheads:
            change, control = found.error.error, found.error.control
            words.append(
                f"Darshan {found.name}: {seconds(found.error.application_s)} without, "
                f"{seconds(found.error.replica_s)} with, overhead {percent(change.value)} "
                f"({percent(change.low)} to {percent(change.high)}), control "
                f"{percent(control.low)} to {percent(control.high)}: {found.state(limit)} (limit "
                f"{self.limit_percent:g} %)"
            )
        each = size(self.block_on(self.current_partition))
        return f"{self.rounds} rounds, {each} on each of {self.ranks} ranks; {'; '.join(words)}"


def _under(prefix: str, log: str) -> Iterator[str]:
    """As a site deploys it: all that this build does by default."""
    yield "env -u LD_BIND_NOW"
    yield f'LD_PRELOAD="{prefix}/lib/libdarshan.so"'
    yield f'DARSHAN_CONFIG_PATH="$PWD/{observer.SETTINGS}"'
    yield f'DARSHAN_LOGFILE="{log}"'


def _small_files(method: str, files: int) -> Workload:
    """Files one after another, each of a few small writes."""
    data = Variable(name="data", type="byte", shape=(WRITES_EACH * SMALL_BYTES,))
    made = _pattern(1, SMALL_BYTES)
    [stream] = made.streams
    dumps = tuple(Dump(time_s=0, variables=(data,)) for _ in range(files))
    stream = replace(stream, method=method, transfer_bytes=SMALL_BYTES, dumps=dumps)
    return replace(
        made, name=f"operations-{method}", streams=(stream,), description="Many small files."
    )


def _pattern(ranks: int, block_bytes: int) -> Workload:
    """What IOR does, for the player."""
    data = Variable(name="data", type="byte", shape=(ranks * block_bytes,))
    how = "The pattern of the evaluation of Darshan 3.0.0."
    return Workload(
        name=f"{overhead.CASE}player",
        description="A file per process, independent MPI-IO, accesses of 512 KiB.",
        ranks=ranks,
        streams=(
            Stream(
                name="write",
                role="checkpoint",
                operation="write",
                files="new",
                layout="file-per-process",
                method="mpiio",
                transfer_bytes=TRANSFER_BYTES,
                dumps=(Dump(time_s=0, variables=(data,)),),
            ),
        ),
        source=Source(format="hand"),
        provenance=tuple(
            Provenance(path=path, origin="assumed", how=how)
            for path in ("/ranks", "/runtime_s", "/streams")
        ),
    )


class Operations(Observed):
    """Seconds of an open, a write and a close on one rank without Darshan and under it, in turn,
    and the instructions that it adds to them, by callgrind where the node has valgrind."""

    case = parameter(["posix", "mpiio"], type=str, loggable=True)
    cases = {"posix": "posix", "mpiio": "mpiio"}
    files = variable(int, value=500, loggable=True)

    program = PLAYER
    ranks = 1
    rounds = 7
    operations = tuple(FUNCTIONS)
    keep_files = ["*.json", WITHOUT, CONTROL, *(f"{UNDER}{x}" for x in LETTERS)]

    @property
    def methods_needed(self) -> set[str]:
        return {str(self.case)}

    @property
    def bytes_needed(self) -> int:
        return int(self.files * WRITES_EACH * SMALL_BYTES)

    def moved_on(self, here: Any) -> int:
        return int(self.rounds * len(self.arms) * self.bytes_needed)

    def idle_s(self) -> float:
        return 600.0  # valgrind

    @property
    def title(self) -> str:
        return f"operations under Darshan by {self.case}"

    @property
    def arms(self) -> Sequence[Arm]:
        versions = [f"{UNDER}{LETTERS[n]}" for n in range(self.versions)]
        return [
            Arm(name=name, producer=cost.PRODUCER, program=self.program)
            for name in (WITHOUT, CONTROL, *versions)
        ]

    @run_before("run")
    def set_up(self) -> None:
        self.prerun_cmds += [
            f"printf '%s\\n' {line} >{observer.SETTINGS}"
            for line in (
                "'MAX_RECORDS 20000 POSIX,MPI-IO'",
                f"'NAME_INCLUDE ^{observer.DIRECTORY}(/|$) *'",
            )
        ]
        for name, files in self._sizes().items():
            (Path(self.stagedir) / f"{name}.json").write_text(
                _small_files(str(self.case), files).to_text(), encoding="utf-8"
            )

    def _sizes(self) -> dict[str, int]:
        """Files by the name of the workload; few and many are those under valgrind."""
        return {"timed": int(self.files), "few": FEW_FILES, "many": MANY_FILES}

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        folder = Path(measurement).parent
        words = (
            f'{PLAYER} -w timed.json -o "{directory}/data" -O {folder}/player.json -a {self.case}'
        )
        return " ".join([*self._observed(arm.name, folder / LOG), words])

    def _observed(self, arm: str, log: Path) -> Iterator[str]:
        if arm.startswith(UNDER):
            prefix = self.runtimes[LETTERS.index(arm.removeprefix(UNDER))]
            yield from _under(prefix, f"$PWD/{log}")

    def turns(self) -> Iterator[str]:
        yield from super().turns()
        launch = self.job.launcher.run_command(self.job)
        yield "if command -v valgrind >/dev/null; then"
        for arm in (arm.name for arm in self.arms if arm.name.startswith(UNDER)):
            for name in ("few", "many"):
                observed = " ".join(self._observed(arm, Path(arm) / f"{name}.darshan"))
                yield (
                    f"{launch} {observed} valgrind --quiet --tool=callgrind "
                    f"--callgrind-out-file={arm}/{name}.callgrind {PLAYER} -w {name}.json "
                    f'-o "$dir/counted" -O {arm}/{name}.json -a {self.case}'
                )
                yield 'rm -rf "$dir/counted"'
        yield "fi"

    def measured(self, run: PlannedRun, started: str) -> dict[str, Any]:
        version, instructions = "", dict[str, float]()
        if run.arm.startswith(UNDER):
            version = self._version(run)
            few, many = (self._staged(Path(run.arm) / f"{n}.callgrind") for n in ("few", "many"))
            if run.round == 0 and few.is_file() and many.is_file():
                instructions = profile.added(few, many)
        return profile.of_player(
            self._staged(run.folder / "player.json"),
            name=self.name_of_case,
            version=version,
            started=started,
            command_line=shlex.split(run.command),
            instructions=instructions,
        )

    def _version(self, run: PlannedRun) -> str:
        """Of Darshan, from the log of a run; an UnderstudyError if it did not see each file."""
        with open_log(self._staged(run.folder / LOG)) as log:
            seen = sum(int((b["POSIX_OPENS"] > 0).sum()) for b in log.records("POSIX"))
            if seen < self.files:
                raise UnderstudyError(
                    f"{run.folder / LOG}: Darshan saw {seen} files, expected {self.files}"
                )
            return log.library_version or "of unknown version"

    def _rows(self) -> list[cost.Row]:
        return cost.rows(self.recorded(run) for run in self.planned_runs)

    @run_before("performance")
    def times_and_instructions(self) -> None:
        for n, arm in enumerate(a.name for a in self.arms if a.name.startswith(UNDER)):
            for operation in self.operations:
                name = f"{arm}_{operation}".replace("-", "_")
                self.measure(f"{name}_added", "ns", self._added_ns, n, operation)

    def _added_ns(self, number: int, operation: str) -> float:
        run = self.recorded(self.run_of(self.arms[2 + number], 0))
        version = str((run.measurement or {})["environment"]["version"])
        [row] = [r for r in self._rows() if (r.operation, r.version) == (operation, version)]
        return 1e9 * row.added_s.median

    def _verdict(self) -> str:
        rows = self._rows()
        words = [
            f"Darshan {row.version} adds {1e9 * row.added_s.median:,.0f} ns to {row.operation} "
            f"({1e9 * row.without_s:,.0f} ns without; control "
            f"{1e9 * row.control_s.low:,.0f} to {1e9 * row.control_s.high:,.0f})"
            + (f" and {row.instructions:,.0f} instructions" if row.instructions else "")
            for row in rows
        ]
        counted = any(row.instructions for row in rows)
        why = "" if counted else "; instructions: skipped, valgrind is not on PATH of the node"
        return f"{'; '.join(words)}{why}"


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
        """Of one log at a time, 100 B for each of 1,024 files of a process."""
        return int(MIB + self.ranks * 1024 * 100)

    def idle_s(self) -> float:
        return float(len(self.arms) * (1 + self.samples_of_each) * 30)

    @property
    def title(self) -> str:
        return f"shutdown of Darshan on {self.ranks} processes"

    @property
    def arms(self) -> Sequence[Arm]:
        return [
            Arm(name=f"{UNDER}{LETTERS[n]}", producer=shutdown.PRODUCER, program=self.program)
            for n in range(self.versions)
        ]

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        prefix = self.runtimes[LETTERS.index(arm.name.removeprefix(UNDER))]
        return (
            f'env -u LD_BIND_NOW LD_PRELOAD="{prefix}/lib/libdarshan.so" {observer.ONE_COPY} '
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
                shutdown.ARCHIVED_BYTES: _archived(self._staged(run.folder / ARCHIVED)),
                **{name: {"shared": value} for name, value in _sizes(log)},
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
        found = shutdown.rows([self.recorded(self.planned_runs[number])])
        [row] = [row for row in found if row.workload == workload]
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


def _archived(path: Path) -> dict[str, float]:
    """Bytes of the archived logs by workload; nothing where the node has no Python for it."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        found = {Path(row["log"]).stem: row for row in csv.DictReader(file)}
    return {
        workload: float(found[workload]["converted_bytes"])
        for workload in WORKLOADS
        if workload in found and found[workload]["converted_bytes"]
    }


def _sizes(log: LogSize) -> Iterator[tuple[str, float]]:
    """Of the parts of a log, as in Table II of the paper."""
    regions = {region.name: region for region in log.regions}
    records = [regions[m].record_bytes for m in ("POSIX", "MPI-IO") if m in regions]
    names = next((r for name, r in regions.items() if name == NAMES and r.records), None)
    yield shutdown.PARTS[0], log.header_bytes
    yield shutdown.PARTS[1], log.job_bytes
    if len(records) == 2 and names is not None and names.records:
        yield shutdown.PARTS[2], sum(r or 0 for r in records) + names.plain_bytes / names.records

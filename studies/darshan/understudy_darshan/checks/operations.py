# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""What does Darshan add to an open, a write and a close?"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_before, variable

from understudy.contracts.workload import Workload
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.judge.statistics.conditions import UNDER
from understudy.program.instructions import Move
from understudy.reframe.bases import observer
from understudy.reframe.bases.interleaved import Arm
from understudy.reframe.bases.methods import PLAYER
from understudy.reframe.bases.observed import LETTERS, LOG, Observed, under_darshan
from understudy.reframe.bases.recording import PlannedRun
from understudy_darshan.checks.overhead import pattern
from understudy_darshan.judge import operations as cost
from understudy_darshan.judge.overhead import CONTROL, WITHOUT
from understudy_darshan.producers import operations as profile
from understudy_darshan.producers.operations import FUNCTIONS

SMALL_BYTES, WRITES_EACH = 4096, 20  # of a file
FEW_FILES, MANY_FILES = 20, 120  # under valgrind


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
        return [
            Arm(name=name, producer=cost.PRODUCER, program=self.program)
            for name in (WITHOUT, CONTROL, *self.arms_under_darshan)
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
            yield from under_darshan(self.runtime_of(arm), f"$PWD/{log}")

    def turns(self) -> Iterator[str]:
        yield from super().turns()
        launch = self.job.launcher.run_command(self.job)
        yield "if command -v valgrind >/dev/null; then"
        for arm in self.arms_under_darshan:
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
        """Version of Darshan in a run's log; an UnderstudyError if it did not see each file."""
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
        for n, arm in enumerate(self.arms_under_darshan):
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


def _small_files(method: str, files: int) -> Workload:
    """Files one after another, each of a few small writes."""
    workload = pattern(1, WRITES_EACH * SMALL_BYTES)
    [stream] = workload.streams
    stream = stream.mapped(
        lambda i: replace(i, transfer_bytes=SMALL_BYTES) if isinstance(i, Move) else i
    )
    stream = replace(stream, method=method, steps=stream.steps * files)
    return replace(
        workload, name=f"operations-{method}", streams=(stream,), description="Many small files."
    )

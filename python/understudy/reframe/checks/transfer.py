# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Does a replica tell how its application fares on the file system of a partition?"""

import hashlib
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from reframe.core.builtins import parameter, run_after, run_before, variable

from understudy.contracts import case as cases
from understudy.contracts import workload as workloads
from understudy.contracts.measurement import Spans
from understudy.contracts.workload import Workload
from understudy.darshanlog import logs_below
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.judge.fidelity import transfer
from understudy.judge.fidelity.transfer import APPLICATION, ARMS, CONTROL, HEADLINE, REPLICA
from understudy.judge.statistics.conditions import OBSERVED
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.observations.observation import Observation
from understudy.observations.observed_logs import observe, prepared
from understudy.producers import observed, player
from understudy.program.sizes import stored_bytes
from understudy.readers import darshan
from understudy.reframe.bases import observer
from understudy.reframe.bases.completeness import Asked, faults
from understudy.reframe.bases.interleaved import Arm, Interleaved
from understudy.reframe.bases.methods import PLAYER
from understudy.reframe.bases.recording import PRINTED, PlannedRun
from understudy.reframe.session.session import exit_on_error
from understudy.reframe.systems import TYPE
from understudy.units import percent, seconds

LOG = "run.darshan"
PREPARED = "prepared.txt"
COUNTS = ".understudy-requests"  # of a storage that tells its requests, in its top directory
REQUESTS = "requests.json"
OF_THE_PLAYER = "player.json"  # no result.json: the run is measured by Darshan
# By default the player keeps Open MPI from testing locks with files beside each that it opens; the
# library of the application does, and with it the replica.
LOCKS = 'OMPI_MCA_sharedfp="${OMPI_MCA_sharedfp-lockedfile,sm,individual}"'


class TransferAccuracy(Interleaved):
    """Runs an application, the replica of a log of it, and the application again, in turn, all
    under Darshan, and compares the times that Darshan measured."""

    application = parameter(loggable=True)

    rounds = 11
    time_scale = variable(float, value=1.0, loggable=True)
    player_options = variable(str, value="", loggable=True)
    originals = variable(str, value="")
    tolerance_percent = variable(float, value=100 * LIMIT_FRACTION, loggable=True)
    workload_sha256 = variable(str, value="", loggable=True)  # known by the setup

    stripe_count = "default"
    keep_files = ["workload.json", *ARMS]

    @run_after("init")
    def load_case(self) -> None:
        """An invalid description ends the session here, with one message and before any test."""
        with exit_on_error():
            self.case = cases.get(self.application)
            self.original = _original(self.case, self.originals)
            self.replayed = _described(self.case, self.original) if self.original else None
        of_processes = self.replayed is not None and not self.case.mpi
        self.num_tasks = self.ranks = self.described.ranks if of_processes else self.case.ranks

    @property
    def described(self) -> Workload:
        """Workload of the replica; without an original, the case does not run."""
        assert self.replayed is not None
        return self.replayed

    @property
    def bytes_needed(self) -> int:
        return stored_bytes(self.replayed.program) if self.replayed else 0

    def idle_s(self) -> float:
        runtime_s = self.replayed.runtime_s if self.replayed else None
        return float(len(ARMS) * self.rounds * (runtime_s or 0))

    @property
    def methods_needed(self) -> set[str]:
        return {stream.method for stream in self.replayed.streams} if self.replayed else set()

    def reasons(self, here: Any) -> Iterator[str]:
        if self.replayed is None:
            where = f"and {self.originals} has none" if self.originals else "nor is one given"
            yield f"{self.application} names no original, {where} (-S originals=DIRECTORY)"
        yield from super().reasons(here)

    @property
    def arms(self) -> Sequence[Arm]:
        program = Path(self.case.command[0]).name
        return [
            Arm(name=name, producer=OBSERVED, program=PLAYER if name == REPLICA else program)
            for name in ARMS
        ]

    @run_after("setup")
    def write_out_the_workload(self) -> None:
        self.text = self.described.to_text()
        self.workload_sha256 = hashlib.sha256(self.text.encode()).hexdigest()

    @run_after("setup")
    def skip_without_programs(self) -> None:
        self.runtime = f"${observer.VARIABLE}"  # the job's, in a dry run
        if self.is_dry_run():
            return
        if self.local:
            self.skip_if(bool(reason := self.missing()), reason)
            self.case = self.case.found()
        try:
            self.runtime = observer.runtime()
        except UnderstudyError as error:
            self.skip(str(error))

    def missing(self) -> str | None:
        try:
            observer.preloaded(observer.runtime())
            self.case.found()
        except UnderstudyError as error:
            return str(error)
        return super().missing()

    @run_before("run")
    def one_job_for_all(self) -> None:
        (Path(self.stagedir) / "workload.json").write_text(self.text, encoding="utf-8")
        lines = " ".join(
            f"'{line}'" for line in observer.settings(observer.DIRECTORY, traced=False)
        )
        self.prerun_cmds = [
            *self.run_directory(),
            "stage=$PWD",
            f"printf '%s\\n' {lines} >{observer.SETTINGS}",
            "export DARSHAN_DISABLE_SHARED_REDUCTION=1",
        ]
        self.postrun_cmds = list(self.turns())

    @run_before("run")
    def launch_only_in_turns(self) -> None:
        """The launcher starts what stands in the lines after: this line starts nothing."""
        self.executable = "true"

    def command(self, arm: Arm, directory: str, measurement: str) -> str:
        folder = str(Path(measurement).parent)
        if arm.name == REPLICA or self.case.mpi:
            prefix = observer.prefix_of(self.runtime, "$stage", f"{folder}/{LOG}")
        else:
            logs = f"$stage/{folder}/{observer.LOGS}"
            prefix = observer.prefix_of_processes(self.runtime, "$stage", logs)
        under = " ".join(prefix)
        if arm.name == REPLICA:  # with the same settings of MPI
            words = [
                *([] if "OMPI_MCA_sharedfp" in self.case.environment else [LOCKS]),
                *self.assignments,
                f'{PLAYER} -w workload.json -o "{directory}" -O {folder}/{OF_THE_PLAYER}',
                f"--time-scale {self.time_scale} --keep-pauses -k",
                '${counts:+--requests "$counts"}',
                *filter(None, [self.player_options]),
            ]
        else:
            words = [*self.assignments, *map(shlex.quote, self.case.command)]
        return f"{under} {' '.join(words)}"

    @property
    def assignments(self) -> list[str]:
        """Those of the application, as a shell sets them for one command."""
        return [f"{k}={shlex.quote(v)}" for k, v in self.case.environment.items()]

    def turns(self) -> Iterator[str]:
        """Lines of the job. What a run has written is removed, and on storage, before the next."""
        self.job.num_tasks = self.num_tasks
        self.job.num_tasks_per_node = self.num_tasks_per_node
        launch = self.job.launcher.run_command(self.job)
        inputs = shlex.quote(str(self.case.inputs)) if self.case.inputs else None
        yield f'counts=$(stat -c %m "$dir")/{COUNTS}; [ -e "$counts" ] || counts='
        if self.case.prepare:
            yield "mkdir inputs"
            if inputs:
                yield f"cp -R {inputs}/. inputs"
            prepare = " ".join([*self.assignments, *map(shlex.quote, self.case.prepare)])
            yield f"(cd inputs && {prepare} >../{PREPARED})"
            inputs = "inputs"
        for run in self.planned_runs:
            yield f"mkdir -p {run.folder}"
            where = f'"$dir/{run.arm}"'
            started = f"{launch} {run.command}"
            if run.arm != REPLICA:
                yield f"mkdir {where}"
                if inputs:
                    yield f"cp -R {inputs}/. {where}"
                if not self.case.mpi:
                    yield observer.make_directory(f"{run.folder}/{observer.LOGS}")
                    started = run.command
                started = f'(cd {where} && {started} >"$stage/{run.folder}/{PRINTED}")'
            yield 'sync -f "$dir"'
            yield '[ -z "$counts" ] || : >"$counts"'
            yield started
            yield f'[ -z "$counts" ] || cp "$counts" {run.folder}/{REQUESTS}'
            yield f"rm -rf {where}"

    @property
    def options(self) -> dict[str, Any]:
        """Options common to all arms of a case."""
        return {
            "application": self.application,
            "time_scale": self.time_scale,
            "player_options": self.player_options,
        }

    def run_of(self, arm: Arm, round_: int) -> PlannedRun:
        return replace(super().run_of(arm, round_), options=self.options)

    @property
    def title(self) -> str:
        return f"transfer of {self.application}"

    # -- what the job left -----------------------------------------------------------------------

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        reasons = {}
        for run in self.planned_runs:
            try:
                self._measure(run)
            except UnderstudyError as error:
                reasons[run.folder] = str(error)
        for faulty_run, fault in super()._faults():
            yield faulty_run, reasons.get(faulty_run.folder, fault) if faulty_run else fault

    def _measure(self, run: PlannedRun) -> None:
        """Write the measurement of a run from its log; an `UnderstudyError` without one, or if
        the replica did not do all of its work."""
        if run.arm == REPLICA:
            played = player.read(self._staged(run.folder / OF_THE_PLAYER))
            for fault in self.of_another_job(run.folder / OF_THE_PLAYER):
                raise UnderstudyError(fault)
            for fault in faults(played, self._asked()):
                raise UnderstudyError(f"{run.folder / OF_THE_PLAYER}: {fault}")
        processes = run.arm != REPLICA and not self.case.mpi
        log = self._staged(run.folder / (observer.LOGS if processes else LOG))
        if not (any(log.rglob("*.darshan")) if processes else log.is_file()):
            raise UnderstudyError(f"{run.folder / log.name}: Darshan wrote no log")
        row = observed.of_log(
            log,
            application=self.application,
            options=self.options,
            workload=(self.described.name, self.workload_sha256),
            directory=str(self.current_partition.extras["scratch"]),
            command_line=shlex.split(run.command),
            dumps=self._spans(run, log),
            prepared=prepared(log, self.described.streams) if run.arm == REPLICA else (),
            requests=self._requests(run),
        )
        write_text(self._staged(run.measurement), json.dumps(row, indent=1) + "\n")

    def _requests(self, run: PlannedRun) -> dict[str, Any] | None:
        """Requests to the storage; of the replica, between its first dump and its last."""
        all_ = self._staged(run.folder / REQUESTS)
        if not all_.exists():
            return None
        if run.arm != REPLICA:
            return observed.requests_in(all_)
        first, last = (
            self._staged(run.folder / f"{OF_THE_PLAYER}.{when}") for when in ("first", "last")
        )
        return observed.requests_in(last, first)

    def _spans(self, run: PlannedRun, log: Path) -> list[Spans]:
        """Spans of the streams whose dumps are seen in the log as in the original."""
        original = observe(self._staged(Path("workload.json")))
        try:
            seen = observe(log, original if run.arm == REPLICA else None)
        except UnderstudyError:
            return []  # the timers count all the same
        return list(_spans(original, seen))

    def faults_of(self, arm: Arm, measured: Any) -> Iterator[str]:
        many = arm.name != REPLICA and not self.case.mpi  # as happen to run at the same time
        if measured.environment.ranks != self.ranks and not many:
            yield f"expected {self.ranks} ranks, found {measured.environment.ranks}"

    def _asked(self) -> Asked:
        return Asked(
            workload=self.described,
            workload_sha256=self.workload_sha256,
            method=None,
            options={"transfer_bytes": None, "collective": None},
            repetitions=1,
            time_scale=self.time_scale,
            verify=False,
            file_system=self.current_partition.extras[TYPE],
        )

    # -- what it says ----------------------------------------------------------------------------

    def _judged(self) -> transfer.Case:
        [case] = transfer.cases(self.recorded(run) for run in self.planned_runs)
        return case

    @run_before("performance")
    def times_and_errors(self) -> None:
        for arm in (APPLICATION, REPLICA, CONTROL):
            self.measure(f"{arm}_io", "s", self._median, arm)
        for name in ("value", "low", "high", "least"):
            self.measure(f"error_{name}", "%", self._error_percent, name)
        self.measure("error_decided", "%", self._decided)
        self.measure("kinds_of_requests_outside", "1", self._kinds_outside)
        self.reference = {
            "*": {
                "error_decided": (0, None, self.tolerance_percent, "%"),
                "kinds_of_requests_outside": (0, None, 0.5, "1"),
            }
        }

    def _median(self, arm: str) -> float:
        from statistics import median

        [wanted] = [a for a in self.arms if a.name == arm]
        return median(values[0] for values in self.samples(wanted, HEADLINE))

    def _error_percent(self, of: str) -> float:
        headline = self._judged().headline
        return 100 * float(getattr(headline.error, of)) if headline else 0.0

    def _decided(self) -> float:
        """The smallest error that is sure; 0 unless it is outside of the limit, or time decides
        nothing."""
        judged = self._judged()
        headline = judged.headline
        outside = headline and headline.state(self.tolerance_percent / 100) == transfer.OUTSIDE
        decides = not judged.requests or (judged.waits or 0) >= transfer.WAITS
        return 100 * headline.error.least if headline and outside and decides else 0.0

    def _kinds_outside(self) -> float:
        return float(sum(r.state == transfer.OUTSIDE for r in self._judged().requests))

    def _verdict(self) -> str:
        limit = self.tolerance_percent / 100
        judged = self._judged()
        words = [f"{self.rounds} rounds: {judged.state(limit)}"]
        for request in judged.requests:
            if request.state != transfer.WITHIN:
                words.append(
                    f"{request.kind} requests: application {request.application:g}, replica "
                    f"{request.replica:g}, application again {request.control:g}: {request.state}"
                )
        if judged.requests and (judged.waits or 0) < transfer.WAITS:
            words.append(
                f"the storage's waits are {judged.waits or 0:.0%} of the I/O time: time decides "
                "nothing"
            )
        for name, text in transfer.MEASURES.items():
            if measure_error := judged.errors.get(name):
                error, control = measure_error.error, measure_error.control
                state = measure_error.state(limit)
                words.append(
                    f"{text}: application {seconds(measure_error.application_s)}, replica "
                    f"{seconds(measure_error.replica_s)}, error {percent(error.value)} "
                    f"({percent(error.low)} to {percent(error.high)}), control "
                    f"{percent(control.low)} to {percent(control.high)}: {state}"
                )
        return "; ".join(words)


def _original(case: cases.Application, originals: str) -> Path | None:
    """NAME.json, NAME.darshan or the directory of logs NAME in the directory that is given, else
    what the description names."""
    if originals:
        for name in (f"{case.name}.json", f"{case.name}.darshan", case.name):
            if (path := Path(originals) / name).exists():
                return path
    return case.original


def _described(case: cases.Application, original: Path) -> Workload:
    """Workload of the replica."""
    if original.suffix == ".json":
        workload = workloads.load(original)
    else:
        first, *others = logs_below(original).logs if original.is_dir() else [original]
        workload = darshan.read(first, name=case.name, others=others)
    if workload.ranks != case.ranks and case.mpi:
        raise UnderstudyError(
            f"{original}: ranks: expected {case.ranks} as of {case.name}, found {workload.ranks}"
        )
    return workload


def _spans(original: Observation, seen: Observation) -> Iterator[Spans]:
    """Spans of files that are written and closed in each dump: others stay open between dumps."""
    dumps_of = {
        s.stream.name: s.stream.dump_count
        for s in original.streams
        if s.stream.operation == "write" and not s.stream.grows
    }
    names = [seen_stream.stands_for or seen_stream.stream.name for seen_stream in seen.streams]
    for name, seen_stream in zip(names, seen.streams, strict=True):
        durations = [d.duration_s for d in seen_stream.stream.expanded()]
        alone = names.count(name) == 1
        if alone and dumps_of.get(name) == len(durations) and None not in durations:
            yield Spans(stream=name, seconds=tuple(s for s in durations if s is not None))

# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Was the work done? What every run of a job leaves: a record, and of the job the verdict."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from reframe.core.builtins import run_after, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger

from understudy import producers
from understudy.contracts.measurement import Node
from understudy.contracts.run import TURN, Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.judge.acceptance import site_references
from understudy.records import store
from understudy.reframe import spack
from understudy.reframe.bases import recording
from understudy.reframe.bases.promising import Promising
from understudy.reframe.bases.recording import PRINTED, PlannedRun
from understudy.reframe.bases.striped import Striped
from understudy.reframe.session import job_failures, session


class Recorded(Promising, Striped):
    """A check that passes if its output proves that the work was done; each of its runs leaves a
    record, also of a failure."""

    campaign = variable(str, type(None), value=None, loggable=True)
    turn = variable(str, type(None), value=None, loggable=True)
    session = variable(str, loggable=True)

    @property
    def title(self) -> str:
        """Name of what ran, for the verdict."""
        raise NotImplementedError

    @property
    def planned_runs(self) -> Sequence[PlannedRun]:
        """The runs of the job, in their order."""
        raise NotImplementedError

    @property
    def programs(self) -> Sequence[str]:
        """Prefixes of their error messages."""
        raise NotImplementedError

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        """Faults of the job's output, each with its run."""
        raise NotImplementedError

    def _verdict(self) -> str:
        """Result of a job without a fault, in words."""
        raise NotImplementedError

    @run_after("init")
    def join_session(self) -> None:
        self.session = session.identifier()
        self.ci_extras = {"gitlab": {"before_script": [session.again()]}}

    @run_after("init")
    def check_turn(self) -> None:
        if self.turn is not None and not TURN.fullmatch(self.turn):
            sys.exit(f"understudy: -S turn={self.turn}: expected NAME/N, such as upgrade/3")

    @sanity_function
    def all_work_was_done(self) -> bool:
        if reason := self.found_out():
            session.note_left_out(self)
            self.skip(reason)
        session.note_end(self)
        try:
            fault, verdict = self._outcome()
        except Exception as error:
            self._tell_watchers(passed=False, verdict=str(error))
            raise
        here = self.current_partition.fullname
        getlogger().info(f"verdict: {self.title} {here}: {verdict}")
        self._tell_watchers(passed=not fault, verdict=verdict)
        if fault:
            raise SanityError(fault)
        return True

    def _outcome(self) -> tuple[str | None, str]:
        """The first fault of the job, if any, and the verdict."""
        fault = self._record_runs()
        if fault:
            return fault, fault
        asked = self.planned_runs if self.asks_for_storage else ()
        return None, "; ".join([self._verdict(), *recording.from_cache(map(self.recorded, asked))])

    def _tell_watchers(self, *, passed: bool, verdict: str) -> None:
        """Those who watch the session."""
        ran = self.planned_runs if passed else ()
        session.note_verdict(
            self,
            self.moved_on(self.current_partition),
            passed=passed,
            verdict=verdict,
            measured=(producers.measured(self.recorded(run)) for run in ran),
        )

    @property
    def asks_for_storage(self) -> bool:
        """True if the options keep the page cache from what is measured, as far as they can."""
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
            record = recording.write(
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
            if any(site_references.values(record)):
                self.condition = site_references.condition(record)
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
        text = job_failures.text_of(Path(str(self.stderr.evaluate())))
        if noted == 0 and not job_failures.cut_short(self.job.state, text):
            return None
        scheduler = self.current_partition.scheduler.registered_name
        nodes = list(self.job.nodelist or ())
        how = job_failures.told(scheduler, str(self.job.jobid), self.job.state, nodes, text)
        message = job_failures.message(text, self.programs, self.num_tasks, self._printed(last))
        if how:
            says_more = message.startswith("understudy: ") and job_failures.STOPPED not in message
            return f"{how}: {message}" if says_more else how
        if status:
            return f"the job ended with status {status}: {message}"
        if noted is None and not self.current_partition.scheduler.is_local:
            return f"job {self.job.jobid} ended before its script did: {message}"
        return None

    def _printed(self, last: Sequence[PlannedRun]) -> str:
        """Output of the program of a run, else of the job."""
        files = [self._staged(run.folder / PRINTED) for run in last]
        files.append(Path(str(self.stdout.evaluate())))
        return next((job_failures.text_of(path) for path in files if path.is_file()), "")

    def _canary(self) -> list[dict[str, Any]]:
        """Canaries before and after the runs of the job, to tell how the storage was."""
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

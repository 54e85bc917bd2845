"""Section of the page on Darshan: the overhead of each version beside runs without it."""

from collections.abc import Iterator, Sequence

from understudy import units
from understudy.contracts.run import Run
from understudy.judge.page.additions import Addition
from understudy.judge.page.judged import FAILED, STATE_OF_ERROR, Judged, Lost
from understudy.judge.statistics.conditions import Case
from understudy_darshan.judge import overhead

OVERHEAD = "overhead"


class Overheads(Addition):
    """A case is the overhead of one version of Darshan in one job."""

    KINDS = {OVERHEAD: ("version of Darshan", "versions of Darshan", "an overhead")}  # noqa: RUF012

    def kind(self, run: Run) -> str | None:
        return OVERHEAD if overhead.is_of(run) else None

    def judged(self, cases: Sequence[Case], runs: Sequence[Run], lost: Lost) -> Iterator[Judged]:
        jobs = overhead.cases(runs)
        keys_of_jobs = {(job.name, job.place) for job in jobs}
        lost.leave_out(  # which a job counts by itself
            lambda lost_run: (
                overhead.is_of(lost_run.run)
                and (lost_run.run.identity.case, lost_run.place) in keys_of_jobs
            )
        )
        return _judged(jobs)


ADDITION = Overheads()


def _judged(jobs: Sequence[overhead.Case]) -> Iterator[Judged]:
    limit = overhead.LIMIT_PERCENT / 100
    for job in jobs:
        for overhead_of_version in job.overheads:
            change, control = overhead_of_version.error.error, overhead_of_version.error.control
            state = STATE_OF_ERROR[overhead_of_version.state(limit)]
            why = (
                f"overhead {units.percent(change.value)} ({units.percent(change.low)} to "
                f"{units.percent(change.high)}), control {units.percent(control.low)} to "
                f"{units.percent(control.high)}, limit {overhead.LIMIT_PERCENT:g} %"
            )
            if job.failed:
                state, why = FAILED, f"{job.failed} runs failed"
            yield Judged(
                name=f"Darshan {overhead_of_version.name}",
                place=job.place,
                method=OVERHEAD,
                kind=OVERHEAD,
                label=f"overhead, {job.ranks} ranks",
                state=state,
                why=why,
                anchor="page-overhead",
                limit=limit,
            )

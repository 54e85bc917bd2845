"""Section of the page on skeletons: each against its application, and which method is fastest."""

from collections.abc import Iterator, Sequence

from understudy.contracts.run import Run
from understudy.judge.page.additions import Addition, Render
from understudy.judge.page.judged import (
    FAILED,
    STATE_OF_ERROR,
    Judged,
    Lost,
    failures,
    interval,
)
from understudy.judge.statistics import metrics, paired_errors
from understudy.judge.statistics.conditions import Case, Failed
from understudy_skel import accuracy_rows
from understudy_skel.accuracy_rows import AccuracyRow

SKELETON = "skeleton"


class Skeletons(Addition):
    """A case is a skeleton against its application: one place, one method, as many ranks."""

    KINDS = {SKELETON: ("skeleton", "skeletons", "the throughput of the application")}  # noqa: RUF012

    def kind(self, run: Run) -> str | None:
        return SKELETON if run.producer.name == SKELETON and not run.producer.workload else None

    def judged(self, cases: Sequence[Case], runs: Sequence[Run], lost: Lost) -> Iterator[Judged]:
        for case in cases:
            for row in accuracy_rows.accuracies(case):
                yield _judged(case, row, lost.take(row.runs))

    def tables(self, case: Case, render: Render) -> str:
        if not case.programs:
            return ""
        rows = list(accuracy_rows.accuracies(case))
        return render(
            "skeletons.html",
            rows=rows,
            share=accuracy_rows.share(rows),
            winners=list(accuracy_rows.winners(case)),
            accuracy=paired_errors,
        )


ADDITION = Skeletons()


def _judged(case: Case, row: AccuracyRow, bad: Sequence[Failed]) -> Judged:
    """By the overall throughput; failed where a run of any arm failed."""
    state, why = STATE_OF_ERROR[row.state], row.reason
    if bad:
        state, why = FAILED, failures(bad, len(row.runs))
    elif row.errors:
        overall = row.errors[paired_errors.OVERALL]
        noise = (f"{arm} against itself {interval(c)}" for arm, c in overall.controls.items())
        why = ", ".join([f"error of the throughput {interval(overall.error)}", *noise])
    played = metrics.verdict(row.skeleton)
    return Judged(
        name=f"{case.workload.name}, {row.skeleton.ranks} ranks",
        place=row.skeleton.place,
        method=row.skeleton.method,
        label=row.skeleton.label,
        state=state,
        why=why,
        anchor=case.key,
        kind=SKELETON,
        write=played.write,
        read=played.read,
        cached=played.cached,
    )

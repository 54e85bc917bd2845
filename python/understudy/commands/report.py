"""`understudy report`: one self-contained page from run records."""

from pathlib import Path

import click

from understudy import paths
from understudy.cli import UNUSABLE, print_error
from understudy.commands._options import NIGHTS_DIFFER
from understudy.commands._output import JSON, document, print_json
from understudy.errors import UnderstudyError
from understudy.files import expect_not_read, expect_page, values_stay
from understudy.judge.statistics.night_statistics import NIGHTS, Rule
from understudy.messages import progress
from understudy.units import plural


@click.command("report")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=lambda: paths.output() / "index.html",
    help=f"HTML file to write.  [default: {paths.output() / 'index.html'}]",
)
@click.option("-f", "--force", is_flag=True, help="Replace a file that is no page of understudy.")
@click.option("--system", "systems", multiple=True, help="Only runs on this system.")
@click.option("--workload", "workloads", multiple=True, help="Only runs of this workload.")
@click.option("--method", "methods", multiple=True, help="Only runs by this method.")
@click.option(
    "--full",
    type=click.IntRange(0),
    default=12,
    show_default=True,
    help="Workloads with figures and all tables, those with the worst verdicts.",
)
@NIGHTS_DIFFER
@JSON
@click.option(
    "--session-report",
    type=click.Path(path_type=Path, dir_okay=False),
    help="ReFrame's report of the session (--report-file), which tells what it skipped, and why.",
)
def command(
    runs: tuple[Path, ...],
    output: Path,
    systems: tuple[str, ...] = (),
    workloads: tuple[str, ...] = (),
    methods: tuple[str, ...] = (),
    nights_differ: float = NIGHTS,
    as_json: bool = False,
    full: int = 12,
    force: bool = False,
    session_report: Path | None = None,
) -> None:
    """Show RUNS as one HTML page: figures, tables, verdicts and the origin of every number.

    RUNS are run records (run.json) and measurements (result.json), or folders that are searched
    for them. The folder records/<session> has every case of a session, failed ones included.
    ReFrame keeps those that failed in stage/: of a folder output/, the stage/ beside it is read,
    too, and a case without a record is a failed one. The page begins with the verdict over all
    cases and what to look at first; runs that failed are listed and counted. The page needs no
    network.

    The last lines are the first of the page: how fast storage is, what changed, and how many cases
    are outside, failed and undecided. The exit status is 0
    whatever they are; it is 2 if a figure cannot be drawn, or a file in a folder cannot be read,
    and the page is also written then.
    """
    from rich.progress import SpinnerColumn, TextColumn

    from understudy import producers
    from understudy.contracts.run import Run
    from understudy.judge.fidelity import transfer
    from understudy.judge.page import benchmarks, last_two_sessions, summary
    from understudy.judge.statistics import conditions, pooling
    from understudy.records import reports, staged, store
    from understudy.report import page, rows  # matplotlib takes a second: only who draws pays

    rule = Rule(nights=nights_differ)
    stages = {path.resolve(): stage for path in runs if (stage := staged.beside(path))}
    for stage in dict.fromkeys(stages.values()):
        runs = (*runs, stage)
        click.echo(f"understudy: {stage}: read too, as ReFrame keeps failed cases there", err=True)
    lost = [
        lost_run
        for path in dict.fromkeys(p.resolve() for p in runs)
        for lost_run in staged.lost(path)
    ]
    records = producers.find(runs, empty=[*stages, *(folder for folder, _ in lost)])
    expect_not_read(output, records, store.folder())
    expect_page(output, force)
    with progress(SpinnerColumn(), TextColumn("{task.description}", markup=False)) as bar:
        task = bar.add_task("reading runs")

        def tell(what: object) -> None:
            bar.update(task, description=str(what))

        named = {path.resolve() for path in runs}
        unread: list[UnderstudyError] = []

        def note(path: Path, error: UnderstudyError) -> None:
            if path in named:
                raise error
            unread.append(error)

        under_darshan: list[Run] = []
        beside: list[Run] = []  # IOR and mdtest
        with values_stay():
            measured, failed = conditions.load(
                records, tell, note, under_darshan.append, beside.append
            )
        failed += [conditions.Failed(path=path, run=run) for path, run in lost]
        if unread and not (measured or failed or under_darshan or beside):
            for error in unread[:-1]:
                print_error(error)
            raise unread[-1]
        chosen = conditions.Chosen(systems=systems, workloads=workloads, methods=methods)
        measured = [run for run in measured if chosen.has(run.run)]
        failed = [run for run in failed if chosen.has(run.run)]
        under_darshan = [run for run in under_darshan if chosen.has(run)]
        beside = [run for run in beside if chosen.has(run)]
        if chosen.any and not (measured or failed or under_darshan or beside):
            raise UnderstudyError("no run has this system, workload and method")
        cases = pooling.apart(conditions.group(measured), rule)
        undrawn: list[UnderstudyError] = []
        study = transfer.Study(cases=tuple(transfer.cases(under_darshan)))
        figures = benchmarks.rows(beside)
        told: list[tuple[list[str], summary.Summary]] = []
        every = [*(run.run for run in measured), *(run.run for run in failed)]
        skipped: list[tuple[str, str]] = []
        if session_report:
            sessions = {run.identity.session for run in (*every, *under_darshan, *beside)}
            skipped = reports.skipped(reports.load(session_report, sessions))
        text = page.render(
            cases,
            failed,
            tell,
            undrawn.append,
            [*map(str, unread)],
            study,
            figures,
            full,
            [*beside, *every],
            lambda *both: told.append(both),
            skipped,
            rule,
        )
        page.save(text, output)
    good = len(measured) + sum(not run.failed for run in (*under_darshan, *beside))
    of_them = f", {len(failed)} of {good + len(failed)} runs failed" if failed else ""
    shown = {
        "workload": len(cases),
        "transfer case": len(study.cases),
        "benchmark figure": len(figures),
    }
    parts = [plural(n, what) for what, n in shown.items() if n or what == "workload"]
    click.echo(f"{output}: {', '.join(parts)}{of_them}", err=True)
    [(first, judged)] = told
    for sentence in first:
        click.echo(sentence, err=True)
    for message in dict.fromkeys(map(str, undrawn)):
        print_error(UnderstudyError(f"{message}: the page lacks this figure"))
    for error in unread:
        print_error(UnderstudyError(f"{error}; the page lacks this record"))
    if as_json:
        row = {
            "page": str(output),
            "nights_differ": nights_differ,
            **rows.as_row(first, judged, last_two_sessions.changes(cases, rule)),
            "runs": good + len(failed),
            "failed_runs": len(failed),
            "undrawn": list(dict.fromkeys(map(str, undrawn))),
            "unread": len(unread),
            "unread_records": [*map(str, unread)],
        }
        print_json(document("report", row))
    if undrawn or unread:
        raise SystemExit(UNUSABLE)

"""understudy references: what a system should deliver, from the records of its runs."""

from datetime import datetime, timezone
from pathlib import Path

import click

from understudy import paths, producers
from understudy.errors import UnderstudyError, printable
from understudy.files import expect_new, expect_not_read, write_text
from understudy.judge.acceptance import site_references
from understudy.messages import tell
from understudy.records import select

STAMP = select.FORM


@click.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--system", required=True, help="System of the runs.")
@click.option(
    "--since",
    metavar="TIME",
    help="Only runs since then: 14d, 36h or 8w ago, or a date such as 2026-01-31.",
)
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write. [default: stdout]"
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    runs: tuple[Path, ...], system: str, since: str | None, output: Path | None, force: bool
) -> None:
    """Write references (YAML) from run records: those in RUNS, files or directories; by default
    those that the site keeps.

    A value is the median over sessions, and its bound comes from how far sessions differ. It
    holds for runs under the same condition only: the same ranks, options and layout. With fewer
    than 5 sessions, a bound above 50 %, or where the page cache may have served it, a value is
    written as a comment, which demands nothing. Put the file into references/SYSTEM.yaml of a
    directory in UNDERSTUDY_PATH. Runs that failed or are dated in the future do not count; stderr
    names them.
    """
    kept = paths.records()
    if not runs and not kept.is_dir():
        raise UnderstudyError(f"{kept}: no records; run checks first, or name records")
    start = None if since is None else select.start(since, "--since ")
    damaged: list[str] = []
    files = producers.find(runs or [kept])
    expect_not_read(output, files, kept)
    expect_new(output, force)
    all_runs = producers.load_all(
        files,
        unread=lambda path, error: damaged.append(str(error)),
    )
    now = datetime.now(timezone.utc).strftime(STAMP)
    of_system = [(path, run) for path, run in all_runs if run.place.system == system]
    since_then = [(p, r) for p, r in of_system if start is None or r.identity.time >= start]
    future = [f"{p} ({r.identity.time})" for p, r in since_then if r.identity.time > now]
    chosen = [run for _, run in since_then if run.identity.time <= now]
    for reason in damaged:
        tell(f"left out: {reason}")
    if future:
        _say(f"left out: dated in the future: {'; '.join(future)}")
    cases = site_references.cases(chosen)
    for run in (run for run in chosen if run.fault):
        _say(f"left out: failed: {run.identity.case} of {run.identity.time}: {run.fault}")
    if not cases:
        systems = sorted({run.place.system for _, run in all_runs if run.place.system})
        raise UnderstudyError(
            f"no measured run of a check on {system}{f' since {start}' if start else ''}; there "
            f"are records of {', '.join(systems) or 'no system'}"
        )
    for case in cases:
        _say(
            f"{case.check} on {case.partition}, condition {case.condition}: {case.counts}: "
            f"{case.words}"
        )
        if case.others:
            _say(
                f"left out: {len(case.others)} runs of condition {case.condition} that differ "
                f"from its latest run in {', '.join(case.differing)}"
            )
    refused = [
        reference.refused for case in cases for reference in case.references if reference.refused
    ]
    if refused:
        total = sum(len(case.references) for case in cases)
        _say(
            f"{len(refused)} of {total} values are written as comments, which demand nothing: "
            f"{'; '.join(dict.fromkeys(refused))}"
        )
    text = site_references.text(system, cases, start)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _say(text: str) -> None:
    click.echo(f"understudy: {printable(' '.join(text.split()))}", err=True)

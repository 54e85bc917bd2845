"""understudy references: what a system should deliver, from the records of its runs."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import click

from understudy import paths, producers
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.judge import promises

RECORDS = "records"
SECONDS = {"h": 3600, "d": 86400, "w": 7 * 86400}


@click.command()
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--system", required=True, help="System of the runs.")
@click.option(
    "--since", metavar="TIME",
    help="Only runs since then: 14d, 36h or 8w ago, or a date such as 2026-01-31.",
)  # fmt: skip
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write. [default: stdout]"
)
def command(runs: tuple[Path, ...], system: str, since: str | None, output: Path | None) -> None:
    """Write references (YAML) from run records: those in RUNS, files or directories; by default
    those kept in the directory for output.

    A value is the median over sessions, and its bound comes from how far sessions differ. With
    fewer than 5 sessions a value is written as a comment, which demands nothing. Put the file into
    references/SYSTEM.yaml of a directory in UNDERSTUDY_PATH. Runs that failed do not count.
    """
    kept = paths.output() / RECORDS
    if not runs and not kept.is_dir():
        raise UnderstudyError(f"{kept}: no records; run checks first, or name records")
    start = None if since is None else _start(since)
    damaged: list[str] = []
    found = producers.load_all(
        producers.find(runs or [kept]),
        unread=lambda path, error: damaged.append(str(error)),
    )
    chosen = [
        run for _, run in found
        if run.place.system == system and (start is None or run.identity.time >= start)
    ]  # fmt: skip
    for reason in damaged:
        click.echo(f"understudy: left out: {reason}", err=True)
    made = promises.cases(chosen)
    if not made:
        known = sorted({run.place.system for _, run in found if run.place.system})
        raise UnderstudyError(
            f"no measured run of a check on {system}{f' since {start}' if start else ''}; there "
            f"are records of {', '.join(known) or 'no system'}"
        )
    every = [one for case in made for one in case.references]
    few = sum(one.bound is None for one in every)
    if few:
        click.echo(
            f"understudy: {few} of {len(every)} values have too few sessions, expected at least "
            f"{promises.SESSIONS}: they are written as comments",
            err=True,
        )
    text = promises.text(system, made, start)
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _start(text: str) -> str:
    """The time in UTC, as records have it."""
    if found := re.fullmatch(r"([1-9][0-9]{0,4})([hdw])", text):
        ago = timedelta(seconds=int(found[1]) * SECONDS[found[2]])
        return (datetime.now(timezone.utc) - ago).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        return datetime.strptime(text, "%Y-%m-%d").strftime("%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        raise UnderstudyError(
            f"--since {text}: expected 14d, 36h, 8w or a date such as 2026-01-31"
        ) from None

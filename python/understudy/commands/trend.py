"""understudy trend: sessions over time, with steps, drifts and upgrades."""

import getpass
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from understudy.cli import UNDECIDED, print_error
from understudy.commands._options import FOLDER, NIGHTS_DIFFER, PARTITION, SYSTEM
from understudy.commands._output import JSON, document, print_json
from understudy.contracts import acknowledgements
from understudy.contracts.acknowledgements import Acknowledgement
from understudy.errors import UnderstudyError
from understudy.files import expect_not_read, expect_page, write_text
from understudy.judge.comparison import trend as trends
from understudy.judge.comparison.trend import Trend
from understudy.judge.statistics.night_statistics import Rule
from understudy.records import index as indexes
from understudy.records import select, store
from understudy.report import trend as pages
from understudy.tables import wrapped


@click.command()
@SYSTEM
@PARTITION
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    help="HTML file to write, with figures.",
)
@click.option("-f", "--force", is_flag=True, help="Replace a file that is no page of understudy.")
@FOLDER
@click.option(
    "--acknowledge",
    "acknowledged_changes",
    metavar="CASE@DATE",
    multiple=True,
    help="Note that a change of a case is known: words that name the case, and the day of the "
    "first session after it.",
)
@click.option(
    "--fail",
    is_flag=True,
    help="Set the exit status: 0 fine, 1 an open loss, 3 a figure of which nothing can be told.",
)
@click.option("--metric", "metrics", multiple=True, help="Judge these metrics, not the rates.")
@NIGHTS_DIFFER
@JSON
@click.option("--why", help="The reason for --acknowledge.")
@click.option("--by", help="Who acknowledges.  [default: the user]")
def command(
    system: str,
    partition: str | None,
    output: Path | None,
    force: bool,
    folder: Path | None,
    acknowledged_changes: tuple[str, ...],
    fail: bool,
    metrics: tuple[str, ...],
    nights_differ: float,
    as_json: bool,
    why: str | None,
    by: str | None,
) -> None:
    """Report what changed over time: since when, failures and upgrades, and draw every case.

    After each session, its last ones are compared with those since the last change, by the
    statistics of `understudy compare`. What was found stays open until it is acknowledged,
    whatever runs later. Upgrades are changes of the recorded versions. The page needs no network.

    An acknowledged change stays in the list, and is not open any more. It is written to the file
    acknowledged.yaml in the folder of records.

    Example: understudy trend --system archer2 -o trend.html
    """
    folder = folder or store.folder()
    rule = Rule(nights=nights_differ)
    if bool(acknowledged_changes) != bool(why):
        raise UnderstudyError(
            "--acknowledge and --why: expected both, such as --acknowledge 'Replay x@2026-10-04' "
            "--why 'new firmware'"
        )
    expect_not_read(output, folder=folder)
    if output is not None:
        expect_page(output, force)
    index = indexes.of_folder(folder)
    where = select.equal(system=system, partition=partition)
    unread = list(index.unread_files(*where).values())
    for message in unread:
        print_error(UnderstudyError(f"left out: {message}"))
    trend = trends.of(index, where, acknowledgements.load(folder), rule, metrics)
    if not trend.runs:
        raise UnderstudyError(f"{system}: no run; run checks first")
    if metrics and not trend.figures:
        raise UnderstudyError(f"--metric {', '.join(metrics)}: no run has such samples")
    if acknowledged_changes and why:
        new = [
            _acknowledged(word, system, why, by or _user(), trend) for word in acknowledged_changes
        ]
        acknowledgements.add(folder, new)
        trend = trends.of(index, where, acknowledgements.load(folder), rule, metrics)
    if output is not None:
        write_text(output, pages.render(system, trend))
    status = trend.status or (UNDECIDED if unread else 0)
    if as_json:
        row = pages.as_row(system, partition, trend, rule, unread)
        print_json(document("trend", {"status": status, **row}))
    else:
        for message in pages.lines(trend):
            for line in wrapped(message):
                click.echo(line)
    if fail:
        raise SystemExit(status)


def _acknowledged(word: str, system: str, why: str, by: str, trend: Trend) -> Acknowledgement:
    """The open change that a word CASE@DATE names, by the day after it."""
    case, _, date = word.rpartition("@")
    if not case or not re.fullmatch(r"\d{4}-\d{2}-\d{2}", date):
        raise UnderstudyError(
            f"--acknowledge {word}: expected CASE@DATE, such as 'Replay x@2026-10-04'"
        )
    changes = [
        (trends.case(figure.series.subject), step)
        for figure in trend.figures
        for step in figure.open
    ]
    wanted = Acknowledgement(system=system, case=case, date=date, by=by, why=why)
    named = {
        (name, step.time[:10])
        for name, step in changes
        if _named(case, name) and step.before[:10] <= date <= step.time[:10]
    }
    if len(named) == 1:
        [(name, day)] = named
        return replace(wanted, case=name, date=day)
    raise UnderstudyError(f"--acknowledge {word}: no open change; {_open(changes)}")


def _named(words: str, case: str) -> bool:
    """True if words name a case: each is one of its own, or of its values, as in Replay n-n."""
    case_words = {part for word in case.split() for part in (word, word.rpartition("=")[2])}
    return set(words.split()) <= case_words


def _open(changes: Sequence[tuple[str, trends.Step]]) -> str:
    names = dict.fromkeys(f"{name}@{step.time[:10]}" for name, step in changes)
    return f"expected {' or '.join(names)}" if names else "there is none"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no name in a container
        raise UnderstudyError("--by: the user has no name; expected who acknowledges") from None

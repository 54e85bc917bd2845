"""understudy plan: how many sessions a comparison needs."""

from dataclasses import replace
from pathlib import Path

import click

from understudy.cli import print_error
from understudy.errors import UnderstudyError, printable
from understudy.judge import compare as comparing
from understudy.judge import plan as planning
from understudy.judge import rows as judged
from understudy.records import index as indexes
from understudy.records import select
from understudy.tables import table
from understudy.units import seconds


@click.command()
@click.argument("which", nargs=-1)
@click.option("--detect", metavar="SHARE", default="10%", show_default=True, help="Loss to find.")
@click.option("--repetitions", type=click.IntRange(1), help="In each session, if they are fixed.")
@click.option("--system", help="Only runs on this system.")
@click.option("--partition", help="Only runs on this partition.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of records.  [default: that of the site]",
)
def command(
    which: tuple[str, ...],
    detect: str,
    repetitions: int | None,
    system: str | None,
    partition: str | None,
    folder: Path | None,
) -> None:
    """Estimate from the runs WHICH (all, by default; see understudy records) how many sessions and
    repetitions find a loss with a probability of 95 %, and how long they take.

    The runs must have been made without any change between them. Two sessions suffice for a first
    estimate (a pilot). Nights in turn are such in which both sides run; nights apart are those of
    each side, before and after.

    Example: understudy plan 14d --system archer2 --detect 10%
    """
    share = comparing.parse_share(detect, "--detect")
    paths = [Path(word) for word in which]
    if which and all(path.exists() for path in paths):
        index, chosen = indexes.of_files(paths), select.ALL
    else:
        index = indexes.of_folder(folder)
        chosen = select.any_of([select.parse(word, index) for word in which])
    for message in index.unread:
        print_error(UnderstudyError(f"left out: {message}"))
    rows = judged.read(
        index, select.both(chosen, select.equal(system=system, partition=partition))
    )
    [rows] = judged.with_nights([rows], judged.NIGHT_H)
    series = list(judged.series(replace(row, session=str(row.block)) for row in rows))
    if not series:
        raise UnderstudyError("no run with a rate or a time; run checks first")
    lines: list[tuple[str, ...]] = []
    notes = []
    timed: dict[object, float] = {}
    open_: set[object] = set()  # subjects with a figure of which the number is not known
    subjects = {one.subject for one in series}
    for one in series:
        found = planning.need(one.values, share, len(series), repetitions or 0)
        if found is None:
            notes.append(
                f"{one.name}: one night does not tell how far nights differ; expected "
                "runs of at least two nights"
            )
            lines.append((one.name, "1", "", "", "", "", "", ""))
            open_.add(one.subject)
            continue
        took = (
            one.repetition_s
            and found.in_turn
            and (2 * found.in_turn * found.repetitions * one.repetition_s)
        )
        if not took:
            open_.add(one.subject)
        else:
            timed[one.subject] = max(timed.get(one.subject, 0.0), took)
        lines.append(
            (
                one.name,
                str(found.known_sessions),
                f"{100 * found.between:.1f} %",
                "" if found.within is None else f"{100 * found.within:.1f} %",
                *(
                    str(n or f"over {planning.MOST_SESSIONS}")
                    for n in (found.in_turn, found.sessions)
                ),
                str(found.repetitions),
                seconds(took) if took else "",
            )
        )
        if found.in_turn is None or found.in_turn > planning.ENOUGH_SESSIONS:
            notes.append(
                f"{one.name}: too small for its noise; {found.scale} times as many bytes would do "
                "(understudy scale, or a larger bytes_scale)"
                if found.scale
                else f"{one.name}: sessions differ too much; more bytes or repetitions do not help"
            )
    columns = (
        "case",
        ">known",
        ">between",
        ">within",
        ">nights in turn",
        ">or apart",
        ">repetitions",
        ">time",
    )
    for line in table("", columns, lines):
        click.echo(printable(line))
    for note in notes:
        click.echo(printable(note))
    timed = {subject: took for subject, took in timed.items() if subject not in open_}
    text = f"{_count(len(series), 'figure')} of {_count(len(subjects), 'case')}"
    if timed:
        text += (
            f"; in turn, both sides together take {seconds(sum(timed.values()))} of I/O, without "
            "waiting and starting"
        )
    if unknown := len(subjects) - len(timed):
        text += f"; the time of {_count(unknown, 'case')} is not known"
    click.echo(text)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"

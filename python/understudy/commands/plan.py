"""understudy plan: how many sessions a comparison needs."""

import math
from dataclasses import replace
from pathlib import Path
from statistics import median

import click

from understudy.cli import print_error
from understudy.commands._options import FOLDER, NIGHTS_DIFFER, PARTITION
from understudy.errors import UnderstudyError, printable
from understudy.judge.comparison import case_comparison as comparing
from understudy.judge.statistics import compared_samples as judged
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import Rule, Scatter
from understudy.records import index as indexes
from understudy.records import select
from understudy.tables import table
from understudy.units import plural, seconds


@click.command()
@click.argument("which", nargs=-1)
@click.option("--detect", metavar="SHARE", default="10%", show_default=True, help="Loss to find.")
@click.option("--repetitions", type=click.IntRange(1), help="In each session, if they are fixed.")
@NIGHTS_DIFFER
@click.option("--system", help="Only runs on this system.")
@PARTITION
@FOLDER
def command(
    which: tuple[str, ...],
    detect: str,
    repetitions: int | None,
    nights_differ: float,
    system: str | None,
    partition: str | None,
    folder: Path | None,
) -> None:
    """Estimate from the runs WHICH (all, by default; see understudy records) how many sessions
    find a loss with a probability of 95 %, and how long they take.

    The runs must have been made without any change between them. Nights in turn are such in which
    both sides run; nights apart are those of each side, before and after. How far nights differ is
    stated; eight nights or more count beside the statement. Where each night has one session,
    those of one night are taken to differ as nights do.

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
    series = list(judged.series(rows))
    if not series:
        raise UnderstudyError("no run with a rate or a time; run checks first")
    rule = Rule(limit=share, effect=share / 2, nights=nights_differ)
    lines: list[tuple[str, ...]] = []
    times: dict[object, float | None] = {}
    for figure in series:
        now = median(map(len, figure.values))
        wanted = repetitions or round(now)
        scatter = _with_repetitions(
            night_statistics.measure((), figure.of_nights, rule).scatter, now / wanted
        )
        turns, apart = (
            night_statistics.needed(scatter, way, len(series), rule) for way in (True, False)
        )
        took = 2 * turns * wanted * figure.repetition_s if turns and figure.repetition_s else None
        before = times.get(figure.subject, 0.0)
        times[figure.subject] = None if took is None or before is None else max(took, before)
        lines.append(
            (
                figure.name,
                str(len(set(figure.blocks))),
                *(f"{100 * math.sqrt(value):.1f} %" for value in (scatter.night, scatter.session)),
                *(str(n or f"over {night_statistics.MOST_NIGHTS}") for n in (turns, apart)),
                seconds(took) if took else "",
            )
        )
    columns = ("case", ">known", ">nights", ">sessions", ">in turn", ">or apart", ">time")
    for line in table("", columns, lines):
        click.echo(printable(line))
    case_times = [took for took in times.values() if took is not None]
    text = f"{plural(len(series), 'figure')} of {plural(len(times), 'case')}"
    if case_times:
        text += (
            f"; in turn, both sides together take {seconds(sum(case_times))} of I/O, without "
            "waiting and starting"
        )
    if unknown := len(times) - len(case_times):
        text += f"; the time of {plural(unknown, 'case')} is not known"
    click.echo(text)


def _with_repetitions(scatter: Scatter, ratio: float) -> Scatter:
    """With other repetitions: so many of today's for one of them."""
    session = scatter.session + scatter.noise * (ratio - 1)
    return replace(scatter, session=max(session, 0.0), noise=scatter.noise * ratio)

"""understudy trend: sessions over time, with change points and upgrades, as one page."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from statistics import median

import click

from understudy.cli import print_error
from understudy.errors import UnderstudyError, printable
from understudy.files import expect_new, expect_not_read, write_text
from understudy.judge import rows as judged
from understudy.judge import trend as trends
from understudy.judge.change import level
from understudy.judge.rows import Series
from understudy.judge.trend import Upgrade
from understudy.records import index as indexes
from understudy.records import select, store

WIDTH, HEIGHT, EDGE = 900, 160, 12
ALIKE = 1.5  # sessions that count as one, from which on it is told
STYLE = """
:root { color-scheme: light dark } body { font: 15px/1.5 sans-serif; max-width: 60rem;
margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere }
svg { width: 100%; height: auto; border-bottom: 1px solid } circle { fill: currentColor }
.change { stroke: #d33; stroke-width: 2 } .upgrade { stroke: #38c; stroke-dasharray: 5 4 }
"""


@click.command()
@click.option("--system", required=True, help="The system of the runs.")
@click.option("--partition", help="Only runs on this partition.")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path, dir_okay=False),
    help="HTML file to write.",
)  # fmt: skip
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
@click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False),
    help="The folder of records.  [default: that of the site]",
)  # fmt: skip
def command(
    system: str, partition: str | None, output: Path, force: bool, folder: Path | None
) -> None:
    """Write a page of every case over time: sessions, change points and upgrades.

    One bad night is no change point; at least five sessions on each side are needed. Upgrades are
    changes of the recorded versions. The page needs no network.

    Example: understudy trend --system archer2 -o trend.html
    """
    expect_not_read(output, folder=folder or store.folder())
    expect_new(output, force)
    index = indexes.of_folder(folder)
    where = select.equal(system=system, partition=partition)
    for message in index.unread_files(*where).values():
        print_error(UnderstudyError(f"left out: {message}"))
    rows = judged.read(index, where, across=trends.VERSIONS)
    found = list(judged.series(rows))
    if not found:
        raise UnderstudyError(f"{system}: no run with a rate or a time; run checks first")
    failed = sum(row.failure is not None for row in rows)
    marks = trends.upgrades(index, where)
    points = [trends.change_points(one.values) for one in found]
    alike = trends.resemblance([one.values for one in found], points)
    write_text(output, page(system, found, points, marks, (failed, len(rows)), alike))
    count = sum(map(len, points))
    click.echo(printable(
        f"{output}: {len(found)} figures, {count} change points, {len(marks)} upgrades; failed "
        f"runs: {failed} of {len(rows)}{'; ' * (alike > ALIKE)}{_warning(alike)}"
    ), err=True)  # fmt: skip


def _warning(alike: float) -> str:
    """Of sessions that are not independent, as change points take them to be."""
    if alike <= ALIKE:
        return ""
    return (
        f"sessions resemble those before them, so that {alike:.1f} count as one: change points "
        "may be slow ups and downs"
    )


def page(
    system: str, found: Sequence[Series], points: Sequence[Sequence[int]],
    marks: Sequence[Upgrade], failed: tuple[int, int], alike: float = 1.0,
) -> str:  # fmt: skip
    """The whole page; all text from records is escaped."""
    changed = sum(map(bool, points))
    parts = [
        f"<h1>{escape(system)} over time</h1><p>{changed} of {len(found)} figures have a change "
        f"point (red); upgrades are dashed. {failed[0]} of {failed[1]} runs failed and are not "
        "drawn.</p>"
    ]
    if warning := _warning(alike):
        parts.append(f"<p>{warning[0].upper()}{warning[1:]}.</p>")
    for one, own in zip(found, points, strict=True):
        parts.append(f"<h2>{escape(one.name)}</h2>{drawing(one, own, marks)}")
        parts += [
            f"<p>Change point: {escape(one.times[i])}, {_step(one, own, i)}</p>" for i in own
        ]
    if marks:
        items = "".join(
            f"<li>{escape(mark.time)}: {escape('; '.join(mark.what))}</li>" for mark in marks
        )
        parts.append(f"<h2>Upgrades</h2><ul>{items}</ul>")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(system)} over time</title><style>{STYLE}</style>{''.join(parts)}</html>\n"
    )


def _step(one: Series, own: Sequence[int], at: int) -> str:
    """The change of the medians of the part after from that before, of the values shown."""
    ends = [0, *own, len(one.values)]
    k = ends.index(at)
    before, after = (level(one.values[ends[j] : ends[j + 1]]) for j in (k - 1, k))
    ratio = before / after if one.better == "lower" else after / before
    return f"{100 * (ratio - 1):+.1f} %".replace("-", "\N{MINUS SIGN}")


def drawing(one: Series, own: Sequence[int], marks: Sequence[Upgrade]) -> str:
    """The sessions from left to right, medians from 0; higher is better: of times, the inverse is
    drawn."""
    levels = [median(values) for values in one.values]
    count, top = len(levels), max(levels)

    def x(i: float) -> float:
        return EDGE + (i + 0.5) * (WIDTH - 2 * EDGE) / count

    def upright(kind: str, i: int, text: str) -> str:
        at = x(i - 0.5)
        return (
            f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="0" y2="{HEIGHT}">'
            f"<title>{escape(text)}</title></line>"
        )

    dots = "".join(
        f'<circle cx="{x(i):.1f}" cy="{HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * level / top:.1f}" '
        f'r="3"><title>{escape(time)} {1 / level if one.better == "lower" else level:.4g} '
        f"{escape(one.unit)}</title></circle>"
        for i, (time, level) in enumerate(zip(one.times, levels, strict=True))
    )
    lines = "".join(upright("change", i, f"change point {one.times[i]}") for i in own)
    lines += "".join(
        upright("upgrade", sum(t < mark.time for t in one.times), "; ".join(mark.what))
        for mark in marks
    )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img">{lines}{dots}</svg>'

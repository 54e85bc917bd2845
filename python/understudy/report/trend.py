"""The page of a trend, and its words: what changed, what drifts, what failed, then figures."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import cache, lru_cache, partial
from itertools import pairwise
from typing import Any

from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure as MatplotlibFigure
from matplotlib.ticker import FixedFormatter, FixedLocator

from understudy import __version__, units
from understudy.errors import one_line, printable
from understudy.judge.comparison.case_comparison import apart
from understudy.judge.comparison.trend import Failure, Figure, Step, Trend, Upgrade
from understudy.judge.statistics.night_statistics import FASTER, SLOWER, Rule
from understudy.report import colours, figures
from understudy.report.template import environment
from understudy.units import plural

Sheet = Callable[[], MatplotlibFigure]

FAILURES_AT = 0.04  # of the height of a figure
MARGINS = {"left": 0.085, "right": 0.99, "bottom": 0.16, "top": 0.96}


def render(system: str, trend: Trend) -> str:
    """The HTML; text from records is escaped."""
    templates = environment()
    templates.filters |= {
        "change": change,
        "day": day,
        "upgraded": _upgraded,
        "value": units_of,
    }
    text = templates.get_template("trend.html").render(
        system=system,
        trend=trend,
        summary=summary(trend),
        upgrades=upgrades(trend.upgrades),
        failures=failures(trend.failures),
        colours=colours.TREND_COLOURS,
        role_colours=colours.ROLE_COLOURS,
        version=__version__,
        picture=partial(picture, sheet=cache(new_sheet)),
    )
    return printable(text)


def summary(trend: Trend) -> str:
    """One line: what is open, what drifts, what failed."""
    steps = [step for figure in trend.figures for step in figure.changes]
    acknowledged = sum(step.acknowledgement is not None for step in steps)
    open_changes = plural(len(steps) - acknowledged, "open change")
    return (
        f"{plural(len(trend.figures), 'figure')}: {open_changes}, {acknowledged} acknowledged, "
        f"{plural(len(upgrades(trend.upgrades)), 'upgrade')}; failed runs: {len(trend.failures)} "
        f"of {trend.runs}"
    )


def lines(trend: Trend) -> Iterator[str]:
    """The same as the page, for a terminal."""
    for figure in trend.figures:
        for step in figure.open:
            yield one_line(f"change: {figure.name}: {change(step, figure)}")
    for failure in failures(trend.failures):
        yield one_line(f"failed: {failure.subject}: {day(failure.time)}: {failure.why}")
    for time, what in upgrades(trend.upgrades):
        yield one_line(f"upgrade: {time}: {what}")
    for figure in trend.figures:
        for step in figure.changes:
            if step.acknowledgement is not None:
                by, why = step.acknowledgement.by, step.acknowledgement.why
                text = f"{change(step, figure)}; {by}: {why}"
                yield one_line(f"acknowledged: {figure.name}: {text}")
    yield summary(trend)


def as_row(
    system: str, partition: str | None, trend: Trend, rule: Rule, unread: Sequence[str]
) -> dict[str, Any]:
    """As JSON, see schemas/trend.schema.json."""
    return {
        "system": system,
        "partition": partition,
        "nights_differ": rule.nights,
        "effect": rule.effect,
        "alpha": rule.alpha,
        "summary": summary(trend),
        "runs": trend.runs,
        "figures": [_figure_row(figure) for figure in trend.figures],
        "failures": [
            asdict(failure.subject) | {"time": failure.time, "why": failure.why}
            for failure in trend.failures
        ],
        "upgrades": [
            asdict(upgrade.subject)
            | {"before": upgrade.before, "time": upgrade.time, "what": list(upgrade.what)}
            for upgrade in trend.upgrades
        ],
        "unread": len(unread),
        "unread_records": list(unread),
    }


def _figure_row(figure: Figure) -> dict[str, Any]:
    series = figure.series
    return asdict(series.subject) | {
        "condition": series.condition,
        "condition_words": figure.words,
        "metric": series.metric,
        "unit": series.unit,
        "better": series.better,
        "stream": series.stream,
        "sessions": [
            {"session": session, "time": time, "value": value, "level": level}
            for session, time, value, level in zip(
                series.sessions, series.times, figure.values, figure.fitted, strict=True
            )
        ],
        "changes": [
            {
                "state": SLOWER if step.slower else FASTER,
                "before": step.before,
                "time": step.time,
                "ratio": step.ratio,
                "level_before": step.low,
                "level_after": step.high,
                "drift": step.drift,
                "confirmed": step.confirmed,
                "open": step.acknowledgement is None,
                "acknowledged_by": step.acknowledgement and step.acknowledgement.by,
                "acknowledged_why": step.acknowledgement and step.acknowledgement.why,
            }
            for step in figure.changes
        ],
    }


def change(step: Step, figure: Figure) -> str:
    """By how much, since when, from and to which level, and the upgrades in between."""
    before, after = _days(step.before, step.time)
    with_ = "; ".join(
        what
        for upgrade in figure.upgrades
        for what in upgrade.what
        if upgrade.time > step.before and upgrade.before < step.time
    )
    first, at, end = _bounds(step, figure)
    lie = apart(figure.values[first:at], figure.values[at:end])
    drift = ", not told apart from a drift" * step.drift
    drift += ", not confirmed by the sessions since" * (not step.confirmed)
    return (
        f"{'slower' if step.slower else 'faster'} since {after}: {_percent(step.ratio)}, "
        f"{_pair(step.low, step.high, figure.series.unit)} (last as before on {before})"
        f"{f'; {lie}' * bool(lie)}{drift}"
        f"{f'; upgrade: {with_}' * bool(with_)}"
    )


def _bounds(step: Step, figure: Figure) -> tuple[int, int, int]:
    """Session indices of the change before it, the change, and the one after it."""
    bounds = [0, *figure.points, len(figure.values)]
    k = figure.changes.index(step) + 1
    return bounds[k - 1], bounds[k], bounds[k + 1]


def upgrades(every: Iterable[Upgrade]) -> list[tuple[str, str]]:
    """Days and versions, those of several cases once."""
    return list(dict.fromkeys((day(u.time), "; ".join(u.what)) for u in every))


def failures(every: Iterable[Failure]) -> list[Failure]:
    """The newest first."""
    return sorted(every, key=lambda failure: failure.time, reverse=True)


def day(time: str) -> str:
    return time[:10]


def units_of(value: float, unit: str) -> str:
    return units.quantity(value, unit)


def new_sheet() -> MatplotlibFigure:
    """A figure with empty axes."""
    sheet = MatplotlibFigure(figsize=(10.5, 2.4))
    sheet.set_layout_engine("none")  # takes half the time, and all figures are alike
    sheet.subplots(gridspec_kw=MARGINS)
    return sheet


def picture(number: int, figure: Figure, sheet: Sheet = new_sheet) -> Markup:
    """The figure of that number on the page, as SVG: of at least two sessions. It takes the place
    of what is on the sheet, as axes and their ticks take long to make."""
    unit = figure.series.unit
    sessions = zip(figure.series.times, figure.values, strict=True)
    titles = {
        "session": [f"{_minute(time)}: {units_of(value, unit)}" for time, value in sessions],
        "failed": [
            f"failed {_minute(failure.time)}: {failure.why}" for failure in figure.failures
        ],
    }
    titles |= {f"upgrade-{k}": [text] for k, text in enumerate(map(_upgraded, figure.upgrades))}
    titles |= {f"change-{k}": [change(s, figure)] for k, s in enumerate(figure.changes)}
    label = f"{figure.name}, {len(figure.values)} sessions"
    drawn = figures.render(
        lambda: draw(figure, sheet), f"trend-{number}", label, titles, table=False
    )
    assert drawn, "every figure shows sessions"
    return Markup(drawn.svg)


def draw(figure: Figure, sheet: Sheet = new_sheet) -> MatplotlibFigure:
    """Sessions, their level, changes, upgrades and failures over time."""
    series, colour = figure.series, colours.TREND_COLOURS
    times = [_date(time) for time in series.times]
    divisor, unit = _unit(max(figure.values), series.unit)
    drawn = sheet()
    [axes] = drawn.axes
    for artist in [*axes.lines, *axes.patches]:
        artist.remove()
    axes.relim()
    axes.autoscale()
    for k, upgrade in enumerate(figure.upgrades):
        ends = _date(upgrade.before), _date(upgrade.time)
        axes.axvspan(*ends, color=colour["upgrade"], alpha=0.12, gid=f"upgrade-{k}")
        axes.axvline(ends[1], color=colour["upgrade"], ls="--")
    for k, step in enumerate(figure.changes):
        ends = _date(step.before), _date(step.time)
        axes.axvspan(*ends, color=colour["change"], alpha=0.35, gid=f"change-{k}")
    for begin, end in pairwise([0, *figure.points, len(times)]):
        level = [value / divisor for value in figure.fitted[begin:end]]
        axes.plot(times[begin:end], level, color=colour["fit"], lw=2, label="level")
    values = [value / divisor for value in figure.values]
    axes.plot(times, values, "o", color=colour["session"], label="session", gid="session")
    failed = [_date(failure.time) for failure in figure.failures]
    axes.plot(
        failed,
        [FAILURES_AT] * len(failed),
        "x",
        color=colour["failed"],
        markersize=7,
        markeredgewidth=2,
        transform=axes.get_xaxis_transform(),
        gid="failed",
    )
    if min(values) < 0.5 * max(values):
        axes.set_ylim(bottom=0)
    _set_dates(axes)
    axes.set_ylabel(unit)
    return drawn


def _set_dates(axes: Axes) -> None:
    """Ticks at dates, which are looked for once: a locator is asked several times."""
    locator = AutoDateLocator(minticks=2, maxticks=8)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    ticks = axes.get_xticks().tolist()
    dates: Any = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    labels = FixedFormatter(dates.format_ticks(ticks))
    labels.set_offset_string(dates.get_offset())
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(labels)


def _upgraded(upgrade: Upgrade) -> str:
    return f"Upgrade by {day(upgrade.time)}: {'; '.join(upgrade.what)}"


def _unit(largest: float, unit: str) -> tuple[float, str]:
    """Divisor and name for an axis."""
    if unit == units.RATE:
        divisor, name = units.unit(largest)
        return divisor, f"{name}/s"
    return units.time_unit(largest) if unit == units.SECONDS else (1.0, unit)


def _pair(before: float, after: float, unit: str) -> str:
    divisor, name = _unit(max(before, after), unit)
    ends = " \N{RIGHTWARDS ARROW} ".join(_three(value / divisor) for value in (before, after))
    return f"{ends} {name}"


def _three(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def _percent(ratio: float) -> str:
    share = 100 * (ratio - 1)
    return f"{share:+.{0 if abs(share) >= 10 else 1}f} %".replace("-", "\N{MINUS SIGN}")


def _days(before: str, after: str) -> tuple[str, str]:
    """Days, or minutes where the day is the same."""
    first, last = day(before), day(after)
    return (first, last) if first != last else (_minute(before), _minute(after))


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


@lru_cache(maxsize=10_000)
def _date(time: str) -> float:
    return float(date2num(datetime.fromisoformat(time.replace("Z", "+00:00"))))  # type: ignore[no-untyped-call]

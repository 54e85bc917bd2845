"""The page of a trend, and its words: what changed, what drifts, what failed, then figures.

A drawing has its places in percent across, so that its text keeps its size on any screen.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import Any

from understudy import __version__, units
from understudy.errors import one_line, printable
from understudy.judge.comparison.case_comparison import apart
from understudy.judge.comparison.trend import Failure, Figure, Step, Trend, Upgrade
from understudy.judge.statistics.night_statistics import FASTER, SLOWER, Rule
from understudy.report import colours
from understudy.report.template import environment
from understudy.units import plural

HEIGHT, TOP, BOTTOM = 210, 12, 178  # of a drawing, and of its values, in pixels
MARGIN = 0.02  # of the width, on both sides
DATES = 4
WEEK_S = 7 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One session: x in percent, y in pixels."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Between two sessions, in percent, with its words."""

    low: float
    high: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    sessions: tuple[Mark, ...]
    fit: tuple[tuple[float, float, float, float], ...]  # x1, y1, x2, y2
    changes: tuple[Span, ...]
    upgrades: tuple[Span, ...]
    failures: tuple[Mark, ...]
    values: tuple[tuple[float, str], ...]  # y and label
    dates: tuple[tuple[float, str, str], ...]  # x, anchor and label
    unit: str


def render(system: str, found: Trend) -> str:
    """The HTML; text from records is escaped."""
    made = environment()
    made.filters |= {
        "change": change,
        "day": day,
        "drawing": draw,
        "value": units_of,
    }
    text = made.get_template("trend.html").render(
        system=system,
        trend=found,
        summary=summary(found),
        upgrades=upgrades(found.upgrades),
        failures=failures(found.failures),
        colours=colours.TREND_COLOURS,
        role_colours=colours.ROLE_COLOURS,
        version=__version__,
        height=HEIGHT,
        top=TOP,
        bottom=BOTTOM,
    )
    return printable(text)


def summary(found: Trend) -> str:
    """One line: what is open, what drifts, what failed."""
    steps = [step for figure in found.figures for step in figure.changes]
    known = sum(step.known is not None for step in steps)
    return (
        f"{plural(len(found.figures), 'figure')}: {plural(len(steps) - known, 'open change')}, "
        f"{known} acknowledged, "
        f"{plural(len(upgrades(found.upgrades)), 'upgrade')}; failed runs: {len(found.failures)} "
        f"of {found.runs}"
    )


def lines(found: Trend) -> Iterator[str]:
    """The same as the page, for a terminal."""
    for figure in found.figures:
        for step in figure.open:
            yield one_line(f"change: {figure.name}: {change(step, figure)}")
    for failure in failures(found.failures):
        yield one_line(f"failed: {failure.subject}: {day(failure.time)}: {failure.why}")
    for time, what in upgrades(found.upgrades):
        yield one_line(f"upgrade: {time}: {what}")
    for figure in found.figures:
        for step in figure.changes:
            if step.known is not None:
                text = f"{change(step, figure)}; {step.known.by}: {step.known.why}"
                yield one_line(f"acknowledged: {figure.name}: {text}")
    yield summary(found)


def as_row(
    system: str, partition: str | None, found: Trend, rule: Rule, unread: Sequence[str]
) -> dict[str, Any]:
    """As JSON, see schemas/trend.schema.json."""
    return {
        "system": system,
        "partition": partition,
        "nights_differ": rule.nights,
        "effect": rule.effect,
        "alpha": rule.alpha,
        "summary": summary(found),
        "runs": found.runs,
        "figures": [_figure_row(figure) for figure in found.figures],
        "failures": [
            asdict(one.subject) | {"time": one.time, "why": one.why} for one in found.failures
        ],
        "upgrades": [
            asdict(one.subject) | {"before": one.before, "time": one.time, "what": list(one.what)}
            for one in found.upgrades
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
                "open": step.known is None,
                "acknowledged_by": step.known and step.known.by,
                "acknowledged_why": step.known and step.known.why,
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
    """Of the sessions between the change before it, the change, and the one after it."""
    bounds = [0, *figure.points, len(figure.values)]
    k = figure.changes.index(step) + 1
    return bounds[k - 1], bounds[k], bounds[k + 1]


def upgrades(every: Iterable[Upgrade]) -> list[tuple[str, str]]:
    """Days and versions, those of several cases once."""
    found = {(day(one.time), "; ".join(one.what)): None for one in every}
    return list(found)


def failures(every: Iterable[Failure]) -> list[Failure]:
    """The newest first."""
    return sorted(every, key=lambda one: one.time, reverse=True)


def day(time: str) -> str:
    return time[:10]


def units_of(value: float, unit: str) -> str:
    return units.quantity(value, unit)


def draw(figure: Figure) -> Drawing:
    """Where everything stands; of at least two sessions."""
    series = figure.series
    seconds = [_seconds(time) for time in series.times]
    marks = [*seconds, *(_seconds(one.time) for one in figure.failures)]
    first, last = min(marks), max(marks)

    def x(at: float) -> float:
        share = (at - first) / (last - first) if last > first else 0.5
        return round(100 * (MARGIN + share * (1 - 2 * MARGIN)), 2)

    divisor, unit = _unit(max(figure.values), series.unit)
    ticks = _ticks([v / divisor for v in (*figure.values, *figure.fitted)])
    low, high = ticks[0], ticks[-1]

    def y(value: float) -> float:
        return round(BOTTOM - (value / divisor - low) / (high - low) * (BOTTOM - TOP), 1)

    starts = [0, *figure.points, len(seconds)]
    joints = [(begin, end - 1) for begin, end in pairwise(starts)]
    return Drawing(
        sessions=tuple(
            Mark(
                x=x(at),
                y=y(value),
                text=f"{_minute(time)}: {units_of(value, series.unit)}",
            )
            for i, (at, time, value) in enumerate(
                zip(seconds, series.times, figure.values, strict=True)
            )
        ),
        fit=tuple(
            (x(seconds[i]), y(figure.fitted[i]), x(seconds[j]), y(figure.fitted[j]))
            for i, j in joints
        ),
        changes=tuple(
            Span(
                low=x(_seconds(step.before)),
                high=x(_seconds(step.time)),
                text=change(step, figure),
            )
            for step in figure.changes
        ),
        upgrades=tuple(
            Span(
                low=x(_seconds(one.before)),
                high=x(_seconds(one.time)),
                text=f"upgrade by {day(one.time)}: {'; '.join(one.what)}",
            )
            for one in figure.upgrades
        ),
        failures=tuple(
            Mark(x=x(_seconds(one.time)), y=BOTTOM, text=f"failed {_minute(one.time)}: {one.why}")
            for one in figure.failures
        ),
        values=tuple((y(tick * divisor), f"{tick:g}") for tick in ticks),
        dates=_dates(first, last, x),
        unit=unit,
    )


def _dates(
    first: float, last: float, x: Callable[[float], float]
) -> tuple[tuple[float, str, str], ...]:
    """Labels of days, at most DATES, each once."""
    shown: dict[str, tuple[float, str, str]] = {}
    for k in range(DATES):
        at = first + (last - first) * k / (DATES - 1)
        text = f"{datetime.fromtimestamp(at, tz=timezone.utc):%Y-%m-%d}"
        anchor = "start" if k == 0 else "end" if k == DATES - 1 else "middle"
        shown.setdefault(text, (x(at), anchor, text))
    return tuple(shown.values())


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers from below the values to above them; from 0 unless all are above a half."""
    low, high = min(values), max(values)
    low = 0.0 if low < 0.5 * high else low
    rough = max(high - low, 0.02 * high) / 4
    size = 10 ** math.floor(math.log10(rough))
    step = size * next(k for k in (1, 2, 5, 10) if k * size >= rough)
    begin, end = math.floor(low / step), math.ceil(high / step)
    return [float(f"{k * step:.10g}") for k in range(begin, max(end, begin + 1) + 1)]


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


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()

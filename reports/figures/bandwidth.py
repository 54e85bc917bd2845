"""How fast is each dump?

Payload over I/O time, without computing and waiting between calls. One row per stream, one
column per place; colour is the method. Lines join medians over the repetitions, bands span the
slowest and the fastest, dots are single repetitions. The dashed line is the original on its own
machine, where the descriptor knows how long its dumps took and neither ranks nor bytes are scaled.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.metrics import original_bandwidth, spread
from understudy.report.axes import add_legend, index_dumps, scale_rates, state_cuts
from understudy.report.colours import MUTED, method_colour, place_colour
from understudy.units import shorten, unit

ORDER = 30
MAX_ROWS = 6
MAX_COLUMNS = 4
STYLES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1, 1, 1)))


def draw(case: Case) -> Figure | None:
    played = [n for n in case.played_streams() if case.stream_bytes(n)]
    names = played[:MAX_ROWS]
    places = case.places[:MAX_COLUMNS]
    if case.programs or not names:  # of programs, steps are samples of one thing
        return None
    if case.most_dumps < 2 and len(case.conditions) < 2:
        return None  # one dot
    figure = Figure(figsize=(10.5, 0.75 + 1.85 * len(names)))
    grid = figure.subplots(len(names), len(places), squeeze=False, sharey="row")
    labels: dict[str, Line2D] = {}
    for row, name in zip(grid, names, strict=True):
        _row(row, case, name, places, labels, last=name == names[-1])
    for axes, place in zip(grid[0], places, strict=True):
        axes.annotate(
            place,
            (0.5, 1),
            xycoords="axes fraction",
            xytext=(0, 22),
            ha="center",
            textcoords="offset points",
            color=place_colour(place, case.everywhere),
            fontweight="bold",
            annotation_clip=False,
        )
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, streams=(len(names), len(played)), places=(len(places), len(case.places)))
    return figure


def _row(
    row: Sequence[Axes],
    case: Case,
    name: str,
    places: list[str],
    labels: dict[str, Line2D],
    last: bool,
) -> None:
    originals = {
        place: next(filter(None, (original_bandwidth(s, name) for s in case.at(place))), {})
        for place in places
    }
    curves = {place: [(s, _points(s, name)) for s in case.at(place)] for place in places}
    speeds = [v for c in curves.values() for _, points in c for vs in points.values() for v in vs]
    speeds += [v for original in originals.values() for v in original.values()]
    indices = sorted({i for c in curves.values() for _, points in c for i in points})
    divisor, unit_name = unit(max(speeds, default=1))
    for axes, place in zip(row, places, strict=True):
        for nth, (condition, points) in enumerate(curves[place]):
            alone = len(indices) == 1  # a single dump: its conditions stand side by side
            shift = (nth - (len(curves[place]) - 1) / 2) * 0.3 if alone else 0.0
            line = _curve(axes, case, condition, points, divisor, shift)
            labels.setdefault(condition.label, line)
        if original := originals[place]:
            x, y = list(original), [v / divisor for v in original.values()]
            (line,) = axes.plot(
                x, y, color=MUTED, lw=1, ls="--", marker="." if len(x) == 1 else ""
            )
            line.set_label("original, its own machine")
            labels.setdefault("original", line)
        axes.set_title(shorten(name, 34))
        index_dumps(axes, indices or [0], label=last)
    if speeds:
        scale_rates(row[0], "y", [v / divisor for v in speeds])
    row[0].set_ylabel(f"{unit_name}/s")


def _points(condition: Condition, name: str) -> dict[int, list[float]]:
    speeds_by_dump = {
        i: [d.io_bandwidth_bytes_per_s for d in same if d.io_bandwidth_bytes_per_s > 0]
        for i, same in condition.dumps(name).items()
    }
    return {i: speeds for i, speeds in speeds_by_dump.items() if speeds}


def _curve(
    axes: Axes,
    case: Case,
    condition: Condition,
    points: dict[int, list[float]],
    divisor: float,
    shift: float,
) -> Line2D:
    colour = method_colour(condition.method, case.methods)
    variants = sorted({s.variant for s in case.conditions})
    x = np.array(list(points)) + shift
    spreads = [s for v in points.values() if (s := spread(v)) is not None]
    middle = np.array([s.median for s in spreads]) / divisor
    (line,) = axes.plot(
        x,
        middle,
        color=colour,
        label=condition.label,
        marker="o" if len(x) <= 40 else "",
        ls=STYLES[variants.index(condition.variant) % len(STYLES)],
    )
    if any(s.n > 1 for s in spreads):
        low = np.array([s.low for s in spreads]) / divisor
        high = np.array([s.high for s in spreads]) / divisor
        if len(x) == 1:
            axes.vlines(x, low, high, color=colour, alpha=0.35, lw=5)
        else:
            axes.fill_between(x, low, high, color=colour, alpha=0.13, lw=0)
        if len(x) <= 40:
            singles = [(i + shift, v / divisor) for i, vs in points.items() for v in vs]
            dots_x, dots_y = zip(*singles, strict=True)
            axes.scatter(dots_x, dots_y, s=4, color=colour, alpha=0.6, linewidth=0)
    return line

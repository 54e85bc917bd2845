"""How large is each checkpoint, and how fast?

Bars are the payload of each checkpoint of the original, on the right axis; lines are the median
bandwidth of the replica, on the left. A panel is a stream that checkpoints, colour the method.
Where there are thousands, bars span the smallest and largest of several in a row, as stated.
Bandwidth that rises with the size says that small checkpoints are bound by latency.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.metrics import spread
from understudy.report.axes import add_legend, index_dumps, scale_rates, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import shorten, unit

ORDER = 32
MAX_PANELS = 3
MAX_BARS = 1000  # more are narrower than a pixel
BARS = "#d5dbe1"


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    saved = [n for n in case.played_streams() if case.role(n) == "checkpoint"]
    names = [n for n in saved if case.dump_count(n) > 1]  # a dump alone is in the tables
    rows = {name: lines for name in names if (lines := _speeds(case, name))}
    if not rows:
        return None
    shown = list(rows)[:MAX_PANELS]
    figure = Figure(figsize=(10.5, 2.7))
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    labels: dict[str, Line2D] = {}
    for axes, name in zip(panels, shown, strict=True):
        _panel(axes, case, name, rows[name], labels)
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, streams=(len(shown), len(rows)))
    return figure


def _panel(
    axes: Axes,
    case: Case,
    name: str,
    lines: dict[str, dict[int, float]],
    labels: dict[str, Line2D],
) -> None:
    sizes = {
        i: max(d.described_bytes for d in dumps)
        for condition in case.conditions
        for i, dumps in condition.played_dumps(name).items()
    }
    divisor, size_unit = unit(max(sizes.values(), default=1))
    bars = axes.twinx()
    _bars(bars, sizes, divisor)
    bars.set_ylabel(f"payload ({size_unit})")
    bars.yaxis.set_major_locator(MaxNLocator(nbins=4))
    bars.grid(visible=False)
    bars.spines["right"].set_visible(True)
    axes.set_zorder(bars.get_zorder() + 1)  # lines above bars
    speeds = [v for of in lines.values() for v in of.values()]
    scale, rate_unit = unit(max(speeds))
    for label, of in lines.items():
        method = next(c.method for c in case.conditions if _label(case, c) == label)
        (line,) = axes.plot(
            list(of),
            [v / scale for v in of.values()],
            lw=1.1,
            marker="o",
            markersize=3,
            color=method_colour(method, case.methods),
            label=label,
        )
        labels.setdefault(label, line)
    scale_rates(axes, "y", [v / scale for v in speeds])
    axes.set_ylabel(f"{rate_unit}/s")
    axes.set_title(shorten(name, 30))
    index_dumps(axes, sorted(sizes))


def _bars(axes: Axes, sizes: dict[int, int], divisor: float) -> None:
    """A bar for each dump; of more than MAX_BARS the smallest and the largest of some in a row."""
    if len(sizes) <= MAX_BARS:
        axes.bar(list(sizes), [s / divisor for s in sizes.values()], width=0.8, color=BARS)
        return
    ordered = np.array(sorted(sizes.items()), dtype=float)
    together = -(-len(ordered) // MAX_BARS)
    groups = np.arange(0, len(ordered), together)
    low = np.minimum.reduceat(ordered[:, 1], groups) / divisor
    high = np.maximum.reduceat(ordered[:, 1], groups) / divisor
    x = ordered[groups, 0]
    axes.fill_between(x, low, step="post", color=BARS, lw=0)
    axes.fill_between(x, low, high, step="post", color=BARS, alpha=0.5, lw=0)
    for values, which in ((low, "smallest"), (high, "largest")):
        label = f"{which} payload of {together} dumps"
        axes.plot(x, values, drawstyle="steps-post", color=BARS, lw=0.5, label=label)
    axes.set_ylim(bottom=0)
    axes.annotate(
        f"payload: smallest and largest of each {together} dumps",
        (1, 1),
        xycoords="axes fraction",
        xytext=(0, 6),
        textcoords="offset points",
        ha="right",
        color=MUTED,
        size=8,
    )


def _label(case: Case, condition: Condition) -> str:
    several = len(case.places) > 1
    return f"{condition.label}, {condition.place}" if several else condition.label


def _speeds(case: Case, name: str) -> dict[str, dict[int, float]]:
    """By condition, the median bandwidth of each checkpoint."""
    speeds_by_label: dict[str, dict[int, float]] = {}
    for condition in case.conditions:
        for index, dumps in condition.played_dumps(name).items():
            speed = spread(
                d.io_bandwidth_bytes_per_s for d in dumps if d.io_bandwidth_bytes_per_s > 0
            )
            if speed:
                speeds_by_label.setdefault(_label(case, condition), {})[index] = speed.median
    return {label: dict(sorted(of.items())) for label, of in speeds_by_label.items()}

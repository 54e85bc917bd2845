"""How does the bandwidth grow with the processes?

Weak scaling: the bytes of a process stay the same. Median bandwidth of writing of a workload and
of those scaled weakly from it, bars span the slowest and the fastest run. Colour is the place, a
panel a workload and method; the dashed line grows with the processes, from their smallest number.
"""

import re

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from understudy.judge.statistics.metrics import Spread, total_bandwidth
from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, place_colour
from understudy.units import shorten, unit

ORDER = 80
OF = "page"
MAX_PANELS = 6

Lines = dict[str, dict[int, Spread]]  # by place and variant, by ranks


def draw(book: Book) -> Figure | None:
    lines_by_panel: dict[tuple[str, str], Lines] = {}
    for case in book.cases:
        if case.programs:
            continue
        base = re.sub(r"-weak-[0-9]+$", "", case.workload.name)
        for condition in case.conditions:
            if speed := total_bandwidth(condition, "write"):
                lines = lines_by_panel.setdefault((base, condition.method), {})
                lines.setdefault(condition.place, {}).setdefault(condition.ranks, speed)
    panels = {
        k: lines for k, lines in lines_by_panel.items() if any(len(p) > 1 for p in lines.values())
    }
    if not panels:
        return None
    shown = list(panels)[:MAX_PANELS]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(10.5, 0.6 + 2.4 * rows))
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    labels = {}
    for axes, key in zip(grid, shown, strict=False):
        divisor, name = unit(max(s.high for p in panels[key].values() for s in p.values()))
        for place, points in panels[key].items():
            ranks = sorted(points)
            middle = [points[n].median / divisor for n in ranks]
            colour = place_colour(place, book.places)
            (line,) = axes.plot(ranks, middle, color=colour, marker="o", markersize=4, label=place)
            axes.vlines(
                ranks,
                [points[n].low / divisor for n in ranks],
                [points[n].high / divisor for n in ranks],
                color=colour,
                lw=1,
            )
            axes.plot(
                ranks,
                [middle[0] * n / ranks[0] for n in ranks],
                color=MUTED,
                lw=0.8,
                ls=(0, (4, 3)),
            )
            labels.setdefault(place, line)
        every = sorted({n for points in panels[key].values() for n in points})
        axes.set(xscale="log", yscale="log", xticks=every)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
            axis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_title(shorten(" ".join(key), 34))
        axes.set_xlabel("processes")
        axes.set_ylabel(f"{name}/s")
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    add_legend(figure, list(labels.values()), columns=4)
    state_cuts(figure, panels=(len(shown), len(panels)))
    return figure

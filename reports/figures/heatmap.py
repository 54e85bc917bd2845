"""Which stripe count and number of aggregators go together?

Median bandwidth of writing, stripe count across and aggregators (hint cb_nodes) up, a panel for
each place and method. The frame is the setting with the highest median, and the title gives its
lowest and highest value; empty cells were not run.
"""

from statistics import median

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.labels import stripe_count
from understudy.judge.statistics.metrics import total_bandwidth
from understudy.report.axes import state_cuts
from understudy.report.colours import HEAT
from understudy.units import unit

ORDER = 34
MAX_PANELS = 6
DEFAULT = "default"

Cells = dict[tuple[str, str], list[float]]


def draw(case: Case) -> Figure | None:
    cells_by_panel: dict[tuple[str, str], Cells] = {}
    for condition in case.conditions if not case.programs else ():
        if not (speed := total_bandwidth(condition, "write")):
            continue
        cell = stripe_count(condition.runs[0].run), aggregators(condition)
        cells = cells_by_panel.setdefault((condition.place, condition.method), {})
        cells.setdefault(cell, []).extend((speed.low, speed.median, speed.high))
    panels = {key: cells for key, cells in cells_by_panel.items() if _two_ways(cells)}
    if not panels:
        return None
    shown = list(panels)[:MAX_PANELS]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(10.5, 0.4 + 2.5 * lines))
    grid = figure.subplots(lines, columns, squeeze=False).ravel()
    for axes, key in zip(grid, shown, strict=False):
        cells = panels[key]
        across = sorted({c for c, _ in cells}, key=_natural)
        up = sorted({a for _, a in cells}, key=_natural)
        divisor, name = unit(max(v for values in cells.values() for v in values))
        table = np.full((len(up), len(across)), np.nan)
        for (stripes, aggregating), values in cells.items():
            table[up.index(aggregating), across.index(stripes)] = median(values) / divisor
        axes.imshow(table, cmap=HEAT, vmin=0, aspect="auto", origin="lower")
        high = np.nanmax(table)
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                dark = value > 0.6 * high
                axes.text(
                    column,
                    row,
                    f"{value:.3g}",
                    ha="center",
                    va="center",
                    size=8,
                    color="white" if dark else "black",
                )
        row, column = np.unravel_index(np.nanargmax(table), table.shape)
        axes.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="#d1495b", lw=2)
        )
        best = cells[across[column], up[row]]
        axes.set_title(
            f"{' '.join(key)}: best {min(best) / divisor:.3g} to "
            f"{max(best) / divisor:.3g} {name}/s",
            fontsize=8.5,
        )
        axes.set_xticks(range(len(across)), across)
        axes.set_yticks(range(len(up)), up)
        axes.grid(visible=False)
        axes.set_xlabel("stripe count")
        axes.set_ylabel("aggregators")
    for axes in grid[len(shown) :]:
        axes.set_visible(False)
    state_cuts(figure, panels=(len(shown), len(panels)))
    return figure


def aggregators(condition: Condition) -> str:
    """Aggregators requested, by the hint of MPI-IO."""
    hints = condition.runs[0].run.storage.asked.get("hints") or {}
    return str(hints.get("cb_nodes", DEFAULT))


def _two_ways(cells: Cells) -> bool:
    return len({c for c, _ in cells}) > 1 and len({a for _, a in cells}) > 1


def _natural(word: str) -> tuple[int, str]:
    return (int(word), "") if word.isdigit() else (-1, word)

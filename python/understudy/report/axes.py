"""Common parts of the axes of several figures."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from understudy.report.colours import MUTED, place_colour

LEGEND_LINE_INCHES = 0.22


def state_cuts(figure: Figure, **cuts: tuple[int, int]) -> None:
    """Say below a figure what it leaves out: streams=(shown, of how many) and the like."""
    parts = [f"{n} of {total} {what}" for what, (n, total) in cuts.items() if n < total]
    if parts:
        text = f"Shown: {', '.join(parts)}; the tables have all."
        figure.supxlabel(text, x=0.01, ha="left", fontsize=8.5, color=MUTED)


def add_legend(
    figure: Figure, handles: Sequence[Artist], *, columns: int | None = None, **more: Any
) -> None:
    """A legend above the panels, in at most so many columns that fit; for its lines after the
    first the figure grows."""
    columns = columns or len(handles)
    while True:
        legend = figure.legend(handles=handles, loc="upper left", ncols=columns, **more)
        if columns <= 1 or legend.get_window_extent().width <= figure.bbox.width:
            break
        legend.remove()
        columns -= 1
    lines = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_LINE_INCHES * max(0, lines - 1))
    layout = figure.get_layout_engine()
    if isinstance(layout, ConstrainedLayoutEngine):  # as the style asks for
        taken = legend.get_window_extent().padded(6).height / figure.bbox.height
        layout.set(rect=(0, 0, 1, 1 - taken))


def name_place(axes: Axes, place: str, places: Sequence[str]) -> None:
    """The title of a panel of one place, in its colour."""
    axes.set_title(place, color=place_colour(place, places))


def index_dumps(axes: Axes, dumps: Sequence[int], *, label: bool = True) -> None:
    """The x axis counts dumps: whole numbers only, and one dump does not fill the panel."""
    first, last = min(dumps), max(dumps)
    margin = max(0.04 * (last - first), 0.4, (3 - (last - first)) / 2)
    axes.set_xlim(first - margin, last + margin)
    whole = MaxNLocator(integer=True, nbins=8, min_n_ticks=1).tick_values(first, last)
    axes.set_xticks([t for t in dict.fromkeys(int(t) for t in whole) if first <= t <= last])
    axes.grid(axis="x", visible=False)
    if label:
        axes.set_xlabel("dump")


def scale_rates(axes: Axes, which: str, values: Sequence[float]) -> None:
    """The axis ("x" or "y") starts at zero, or is logarithmic where values differ eightfold."""
    low, high = min(values), max(values)
    axis = axes.xaxis if which == "x" else axes.yaxis
    if high <= 8 * low:
        axes.set(**{f"{which}lim": (0, 1.1 * high)})
        axis.set_major_locator(MaxNLocator(nbins=4))
        return
    axes.set(**{f"{which}scale": "log", f"{which}lim": (low / 1.25, high * 1.25)})
    steps = (1.0, 2.0, 5.0) if np.log10(high / low) < (1.5 if which == "x" else 2.2) else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=steps))
    axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())

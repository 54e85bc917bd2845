"""Does the replica move the original's bytes?

Each dump twice: outlined what the descriptor states for the original, filled what the replica
moved, lowest to highest over all conditions and repetitions where they differ. The title of each
panel gives the worst error of its stream, 0 % meaning the same to the byte.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from understudy.judge.conditions import Case
from understudy.judge.metrics import stream_error, worst
from understudy.report.axes import add_legend, index_dumps, state_cuts
from understudy.report.colours import MUTED, ROLE_COLOURS
from understudy.units import percent, shorten, unit

ORDER = 20
MAX_PANELS = 9
COLUMNS = 3


def draw(case: Case) -> Figure | None:
    if case.programs:  # they stand for themselves
        return None
    names = case.played_streams()
    shown = names[:MAX_PANELS]
    rows = -(-len(shown) // COLUMNS)
    columns = min(COLUMNS, len(shown))
    figure = Figure(figsize=(10.5, 0.55 + 2.05 * rows))
    panels = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axes, name in zip(panels, shown, strict=False):
        _panel(axes, case, name)
    for axes in panels[len(shown) :]:
        axes.set_visible(False)
    original = Patch(facecolor="none", edgecolor=MUTED, lw=1, label="original (descriptor)")
    add_legend(figure, [original, Patch(facecolor=MUTED, label="replica (moved)")], columns=3)
    state_cuts(figure, streams=(len(shown), len(names)))
    return figure


def _panel(axes: Axes, case: Case, name: str) -> None:
    played = [(s, s.played_dumps(name)) for s in case.conditions]
    described: dict[int, float] = {}
    moved: dict[int, list[int]] = {}
    for condition, dumps in played:
        for index, same in dumps.items():
            described[index] = same[0].described_bytes * condition.bytes_scale
            moved.setdefault(index, []).extend(d.bytes for d in same)
    order = sorted(described)
    where = np.array(order)
    divisor, unit_name = unit(max(max(described.values()), *(max(m) for m in moved.values())))
    original = np.array([described[i] for i in order]) / divisor
    low = np.array([min(moved[i]) for i in order]) / divisor
    high = np.array([max(moved[i]) for i in order]) / divisor
    colour = ROLE_COLOURS[case.role(name)]
    if len(order) <= 40:
        axes.bar(where - 0.2, original, 0.38, facecolor="none", edgecolor=colour, linewidth=1)
        axes.bar(where + 0.2, high, 0.38, color=colour)
        differs = high > low
        axes.vlines(where[differs] + 0.2, low[differs], high[differs], color="black", lw=1.2)
    else:
        axes.fill_between(where, high, step="mid", color=colour, alpha=0.55, lw=0)
        axes.step(where, original, where="mid", color=colour, lw=1)
    axes.set_ylim(0, 1.12 * max(original.max(), high.max(), 1e-9))
    index_dumps(axes, order)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_ylabel(unit_name)
    error = worst(stream_error(s, name) for s, dumps in played if dumps)
    axes.set_title(f"{shorten(name, 26)}: error {percent(error)}")

"""How evenly are the ranks served?

Seconds that a rank spent in the data calls of each dump: the line is the median rank, the dark
band holds the middle half of the ranks, the light band all of them, the dotted line 95 % of them.
A wide light band above the median is a straggler. First repetition of each condition; a row is a
stream in a place, a column a condition.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from understudy.contracts.measurement import RankSeconds
from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.metrics import DATA_PHASES
from understudy.report.axes import add_legend, index_dumps, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import shorten, time_unit

ORDER = 50
MAX_ROWS = 6
MAX_COLUMNS = 8


def draw(case: Case) -> Figure | None:
    if case.programs or case.workload.ranks < 2:
        return None  # of programs, each process is known
    every = [
        (name, place, panels)
        for name in case.played_streams()
        for place in case.places
        if (panels := [(c, data) for c in case.at(place) if (data := _data(c, name))])
    ]
    rows = every[:MAX_ROWS]
    if not rows:
        return None
    columns = min(MAX_COLUMNS, max(len(panels) for *_, panels in rows))
    figure = Figure(figsize=(10.5, 0.6 + 1.7 * len(rows)))
    grid = figure.subplots(len(rows), columns, squeeze=False, sharey="row")
    for line, (name, place, panels) in zip(grid, rows, strict=True):
        top = max(s.max for _, data in panels for s in data.values())
        divisor, unit = time_unit(top)
        for axes, (condition, data) in zip(line, panels, strict=False):
            _panel(axes, data, method_colour(condition.method, case.methods), divisor)
            index_dumps(axes, list(data), label=name == rows[-1][0] and place == rows[-1][1])
            axes.annotate(
                shorten(condition.label, 90 // columns),
                (0.5, 1),
                xycoords="axes fraction",
                xytext=(0, 3),
                ha="center",
                textcoords="offset points",
                color=MUTED,
                size=8.5,
            )
        for axes in line[len(panels) :]:
            axes.set_visible(False)
        line[0].set_title(f"{shorten(name, 34)} on {place}", pad=16)
        line[0].set_ylabel(f"{unit} per rank")
        line[0].set_ylim(0, 1.08 * top / divisor or None)
    add_legend(figure, _key(), columns=4)
    most = max(len(case.at(place)) for place in case.places)
    state_cuts(figure, rows=(len(rows), len(every)), conditions=(columns, most))
    return figure


def _data(condition: Condition, name: str) -> dict[int, RankSeconds]:
    streams = condition.stream(name)
    if not streams:
        return {}
    return {d.dump: p.rank_s for d in streams[0].dumps for p in d.phases if p.phase in DATA_PHASES}


def _panel(axes: Axes, values: dict[int, RankSeconds], colour: str, divisor: float) -> None:
    x = np.array(list(values), dtype=float)
    rows = {
        k: np.array([getattr(s, k) for s in values.values()]) / divisor
        for k in ("min", "q25", "median", "q75", "q95", "max")
    }
    if len(x) == 1:  # a band needs two dumps: widen the one
        x = np.array([x[0] - 0.25, x[0] + 0.25])
        rows = {k: np.repeat(v, 2) for k, v in rows.items()}
    axes.fill_between(x, rows["min"], rows["max"], color=colour, alpha=0.15, lw=0)
    axes.fill_between(x, rows["q25"], rows["q75"], color=colour, alpha=0.35, lw=0)
    axes.plot(x, rows["q95"], color=colour, lw=0.8, ls=":")
    axes.plot(x, rows["median"], color=colour, lw=1.3)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))


def _key() -> list[Line2D | Patch]:
    return [
        Line2D([], [], color=MUTED, lw=1.3, label="median rank"),
        Patch(color=MUTED, alpha=0.5, label="middle half"),
        Patch(color=MUTED, alpha=0.2, label="all ranks"),
        Line2D([], [], color=MUTED, lw=0.8, ls=":", label="95 %"),
    ]

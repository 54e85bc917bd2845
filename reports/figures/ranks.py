"""How evenly are the ranks served?

Seconds that a rank spent in the data calls of each dump: the line is the median rank, the dark
band holds the middle half of the ranks, the light band all of them, the dotted line 95 % of them.
A wide light band above the median is a straggler. First repetition of each condition; a row is a
stream, a column a place and method.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from understudy.contracts.measurement import RankSeconds
from understudy.judge.conditions import Case, Condition
from understudy.judge.metrics import DATA_PHASES
from understudy.report.axes import add_legend, index_dumps, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import shorten, time_unit

ORDER = 50
MAX_ROWS = 4
MAX_COLUMNS = 6


def draw(case: Case) -> Figure | None:
    conditions = case.conditions[:MAX_COLUMNS]
    played = [n for n in case.played_streams() if any(_data(s, n) for s in conditions)]
    names = played[:MAX_ROWS]
    if case.programs or case.workload.ranks < 2 or not names:
        return None  # of programs, each process is known
    figure = Figure(figsize=(10.5, 0.8 + 1.6 * len(names)))
    grid = figure.subplots(len(names), len(conditions), squeeze=False, sharey="row")
    for row, name in zip(grid, names, strict=True):
        data = [_data(s, name) for s in conditions]
        divisor, unit = time_unit(max(s.max for d in data for s in d.values()))
        for axes, condition, values in zip(row, conditions, data, strict=True):
            _panel(axes, values, method_colour(condition.method, case.methods), divisor)
            index_dumps(axes, list(values) or [0], label=name == names[-1])
        row[0].set_title(shorten(name, 34))
        row[0].set_ylabel(f"{unit} per rank")
        row[0].set_ylim(0, 1.08 * max(s.max for d in data for s in d.values()) / divisor or None)
    for axes, condition in zip(grid[0], conditions, strict=True):
        axes.annotate(
            f"{condition.place}\n{condition.label}",
            (0.5, 1),
            xycoords="axes fraction",
            xytext=(0, 22),
            ha="center",
            textcoords="offset points",
            color=MUTED,
            size=8.5,
        )
    add_legend(figure, _key(), columns=4)
    state_cuts(
        figure,
        streams=(len(names), len(played)),
        conditions=(len(conditions), len(case.conditions)),
    )
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

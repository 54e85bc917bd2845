"""Which processes wait for storage, and which for each other?

Seconds of each process in the step of median duration, split into MPI communication, I/O, and the
rest (copies, statistics, index); processes stand in the order of their totals, slowest right. A
process that storage keeps waiting has much I/O, and the others may wait for it in communication; a
collective that all must go through lifts the communication of all. With the maximum of ranks that
ran in a place; a row is a place and what ran, a column a method.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from understudy.judge.statistics.conditions import Case, Condition
from understudy.report.axes import add_legend, state_cuts
from understudy.report.colours import MUTED, PHASE_COLOURS
from understudy.units import time_unit
from understudy_skel import accuracy_rows

ORDER = 25
MAX_ROWS = 6
MAX_COLUMNS = 4
MAX_PROCESSES = 512  # drawn of a panel; of more, evenly chosen ones and the slowest
MAX_EDGES = 64  # processes that are told apart by lines
COLOURS = {
    "communication": PHASE_COLOURS["read"],
    "I/O": PHASE_COLOURS["write"],
    "rest": PHASE_COLOURS["open"],
}

Row = tuple[str, str, str]  # place, what ran, the fault in it


def draw(case: Case) -> Figure | None:
    if not case.programs:
        return None
    rows, columns, cells = _layout(case)
    shown, across = rows[:MAX_ROWS], columns[:MAX_COLUMNS]
    figure = Figure(figsize=(10.5, 0.9 + 1.75 * len(shown)))
    grid = figure.subplots(len(shown), len(across), squeeze=False, sharey="row")
    for line, row in zip(grid, shown, strict=True):
        conditions = [cells.get((row, column)) for column in across]
        parts_by_id = {id(s): accuracy_rows.parts(s) for s in conditions if s is not None}
        longest = max(parts.total_s.max() for parts in parts_by_id.values())
        divisor, unit = time_unit(longest)
        for axes, condition in zip(line, conditions, strict=True):
            if condition is None:
                axes.set_axis_off()
                continue
            _panel(axes, parts_by_id[id(condition)], divisor)
            axes.set_ylim(0, 1.06 * longest / divisor)
        first = next(axes for axes, condition in zip(line, conditions, strict=True) if condition)
        first.tick_params(labelleft=True)
        first.set_ylabel(f"{unit} of a process")
        line[0].set_title(", ".join(filter(None, row)), loc="left", fontsize=9)
    for axes, name in zip(grid[0], across, strict=True):
        axes.annotate(
            name,
            (0.5, 1),
            xycoords="axes fraction",
            xytext=(0, 20),
            ha="center",
            textcoords="offset points",
            color=MUTED,
            fontweight="bold",
            annotation_clip=False,
        )
    handles = [Patch(color=colour, label=name) for name, colour in COLOURS.items()]
    add_legend(figure, handles, columns=3)
    state_cuts(figure, rows=(len(shown), len(rows)), methods=(len(across), len(columns)))
    return figure


def _layout(case: Case) -> tuple[list[Row], list[str], dict[tuple[Row, str], Condition]]:
    """Rows and columns, and the condition of most ranks in each."""
    cells: dict[tuple[Row, str], Condition] = {}
    for condition in case.conditions:
        assert condition.program is not None, "a case of programs"
        fault = accuracy_rows.fault(condition)
        row = (condition.place, condition.program.kind, fault)
        column = condition.method
        if (row, column) not in cells or condition.ranks >= cells[row, column].ranks:
            cells[row, column] = condition
    rows = sorted({row for row, _ in cells}, key=lambda row: (row[2], row[0], row[1]))
    return rows, sorted({column for _, column in cells}), cells


def _panel(axes: Axes, parts: accuracy_rows.Parts, divisor: float) -> None:
    count = len(parts.total_s)
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_PROCESSES)).round().astype(int))
    edges = np.append(chosen, count) - 0.5
    seconds = [
        part[np.append(chosen, count - 1)] / divisor
        for part in (parts.communication_s, parts.io_s, parts.rest_s)
    ]
    axes.stackplot(edges, *seconds, colors=COLOURS.values(), step="post", lw=0)
    if count <= MAX_EDGES:
        axes.vlines(edges[1:-1], 0, parts.total_s[:-1] / divisor, color="white", lw=0.6)
    axes.set_xlim(-0.5 - 0.01 * count, 1.01 * count - 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_xlabel("processes in order of their totals")
    most = parts.ranks[np.argmax(parts.io_s)]
    axes.set_title(f"most I/O: rank {most}", loc="right", fontsize=8, color=MUTED)
    axes.grid(axis="x", visible=False)

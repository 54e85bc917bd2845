"""How much do repetitions scatter?

Bandwidth of each stream in every repetition (dots) and their median (bar), by place and method.
Differences smaller than the scatter say nothing about a system.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from understudy.judge.statistics.conditions import Case, Condition
from understudy.report.axes import scale_rates, state_cuts
from understudy.report.colours import method_colour
from understudy.units import shorten, unit

ORDER = 60
MAX_STREAMS = 6


def draw(case: Case) -> Figure | None:
    if all(s.repetitions < 2 for s in case.conditions):
        return None
    names = case.played_streams()[:MAX_STREAMS]
    rows = {n: [(s, v) for s in case.conditions if (v := _speeds(s, n))] for n in names}
    rows = {n: r for n, r in rows.items() if r}
    if not rows:
        return None
    columns = min(3, len(rows))
    lines = -(-len(rows) // columns)
    most = max(len(r) for r in rows.values())
    figure = Figure(figsize=(10.5, 0.3 + lines * (0.75 + 0.21 * most)))
    panels = figure.subplots(lines, columns, squeeze=False)
    for i, (axes, (name, values)) in enumerate(zip(panels.flat, rows.items(), strict=False)):
        _panel(axes, case, name, values, labelled=i % columns == 0)
    for axes in panels.flat[len(rows) :]:
        axes.set_visible(False)
    state_cuts(figure, streams=(len(names), len(case.played_streams())))
    return figure


def _speeds(condition: Condition, name: str) -> list[float]:
    return [
        s.io_bandwidth_bytes_per_s
        for s in condition.stream(name)
        if s.io_bandwidth_bytes_per_s > 0
    ]


def _panel(
    axes: Axes, case: Case, name: str, rows: list[tuple[Condition, list[float]]], labelled: bool
) -> None:
    divisor, unit_name = unit(max(v for _, values in rows for v in values))
    where = np.arange(len(rows))[::-1]
    for y, (condition, values) in zip(where, rows, strict=True):
        colour = method_colour(condition.method, case.methods)
        scaled = np.array(values) / divisor
        axes.hlines(y, scaled.min(), scaled.max(), color=colour, lw=5, alpha=0.15)
        axes.scatter(scaled, np.full(len(scaled), y), s=13, color=colour, alpha=0.65, linewidth=0)
        axes.vlines(np.median(scaled), y - 0.34, y + 0.34, color=colour, lw=2)
    axes.set_yticks(where, [f"{s.place}  {s.label}" if labelled else "" for s, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.grid(axis="y", visible=False)
    scale_rates(axes, "x", [v / divisor for _, values in rows for v in values])
    axes.set_title(shorten(name, 30))
    axes.set_xlabel(f"{unit_name}/s")

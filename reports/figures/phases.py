"""Where do the seconds of a rank go?

Mean over the ranks of the seconds spent in each phase, summed over the dumps of a stream, median
over the repetitions. Opening, flushing and closing belong to the cost of a dump as much as the
data calls.
"""

from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from understudy.judge.statistics.conditions import Case, Condition
from understudy.report.axes import add_legend, state_cuts
from understudy.report.colours import PHASE_COLOURS
from understudy.units import seconds, shorten, time_unit

ORDER = 40
MAX_STREAMS = 6


def draw(case: Case) -> Figure | None:
    names = case.played_streams()[:MAX_STREAMS]
    bars = {n: [(s, means) for s in case.conditions if (means := _means(s, n))] for n in names}
    bars = {n: rows for n, rows in bars.items() if rows}
    if not bars:
        return None
    longest = max(sum(m.values()) for rows in bars.values() for _, m in rows)
    if longest <= 0:
        return None
    heights = [len(rows) for rows in bars.values()]
    figure = Figure(figsize=(10.5, 0.7 + 0.2 * sum(heights) + 0.62 * len(bars)))
    grid = figure.subplots(
        len(bars), 1, squeeze=False, gridspec_kw={"height_ratios": [h + 1.2 for h in heights]}
    )
    for axes, (name, rows) in zip(grid[:, 0], bars.items(), strict=True):
        _panel(axes, name, rows)
    used = {p for rows in bars.values() for _, m in rows for p in m}
    handles = [Patch(color=c, label=p) for p, c in PHASE_COLOURS.items() if p in used]
    add_legend(figure, handles)
    state_cuts(figure, streams=(len(names), len(case.played_streams())))
    return figure


def _means(condition: Condition, name: str) -> dict[str, float]:
    sums: dict[str, list[float]] = {}
    for stream in condition.stream(name):
        once: dict[str, float] = {}
        for phase in (p for d in stream.dumps for p in d.phases):
            once[phase.phase] = once.get(phase.phase, 0.0) + phase.rank_s.mean
        for phase_name, value in once.items():
            sums.setdefault(phase_name, []).append(value)
    return {p: median(sums[p]) for p in PHASE_COLOURS if p in sums}


def _panel(axes: Axes, name: str, rows: list[tuple[Condition, dict[str, float]]]) -> None:
    longest = max(sum(m.values()) for _, m in rows)
    divisor, unit = time_unit(longest)
    where = np.arange(len(rows))[::-1]
    left = np.zeros(len(rows))
    for phase, colour in PHASE_COLOURS.items():
        width = np.array([m.get(phase, 0.0) for _, m in rows]) / divisor
        axes.barh(where, width, left=left, height=0.72, color=colour)
        left += width
    for y, total, (_, means) in zip(where, left, rows, strict=True):
        axes.annotate(
            seconds(sum(means.values())),
            (total, y),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            size=8,
        )
    axes.set_yticks(where, [f"{s.place}  {s.label}" for s, _ in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.12 * max(left.max(), 1e-12))
    axes.grid(axis="y", visible=False)
    axes.set_title(shorten(name, 60))
    axes.set_xlabel(f"{unit} per rank")

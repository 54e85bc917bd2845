"""How does throughput grow with the ranks, and does the skeleton predict the application's?

Left: average over all steps of all runs, by method; bars reach from the slowest to the fastest
step; solid is the application, dashed its skeleton. Right: error of the skeleton's overall and
average throughput against the application's, with its interval; behind it in grey, how far a
program differs from itself; the grey band is what is tolerated. A row is a place. Runs with an
injected fault are left out.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from understudy.judge.statistics import paired_errors
from understudy.judge.statistics.conditions import Case, Condition
from understudy.report.axes import add_legend, name_place, scale_rates, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import unit
from understudy_skel import accuracy_rows
from understudy_skel.accuracy_rows import APPLICATION, AccuracyRow

ORDER = 22
MAX_ROWS = 4
ASIDE = 0.07  # between the series of a number of ranks, whose places on the axis are 1 apart


def draw(case: Case) -> Figure | None:
    if not case.programs:
        return None
    kept = [
        s
        for s in case.conditions
        if not accuracy_rows.disturbed(s) and not accuracy_rows.is_control(s)
    ]
    if not kept:
        return None
    everywhere = list(dict.fromkeys(s.place for s in kept))
    places = everywhere[:MAX_ROWS]
    series = accuracy_rows.series(kept)
    colours = {name: method_colour(name, list(series)) for name in series}
    rows = [r for r in accuracy_rows.accuracies(case) if r.errors and r.skeleton in kept]
    shown = tuple(paired_errors.STATISTICS)[:2]
    columns = 1 + len(shown) if rows else 1
    figure = Figure(figsize=(10.5, 0.95 + 2.35 * len(places)))
    grid = figure.subplots(
        len(places), columns, squeeze=False, gridspec_kw={"width_ratios": [1.7, 1, 1][:columns]}
    )
    for line, place in zip(grid, places, strict=True):
        _throughputs(line[0], place, series, colours, case.ranks)
        name_place(line[0], place, case.everywhere)
        for axes, statistic in zip(line[1:], shown, strict=False):
            here = [r for r in rows if r.skeleton.place == place]
            _errors(axes, statistic, here, series, colours, case.ranks)
    for axes in grid[-1]:
        axes.set_xlabel("ranks")
    add_legend(figure, _key(kept, colours), columns=4)
    state_cuts(figure, places=(len(places), len(everywhere)))
    return figure


def _throughputs(
    axes: Axes,
    place: str,
    series: dict[str, list[Condition]],
    colours: dict[str, str],
    ranks: list[int],
) -> None:
    lines = [
        (name, of, points)
        for name, conditions in series.items()
        for of in (APPLICATION, accuracy_rows.SKELETON)
        if (
            points := [
                accuracy_rows.point(s)
                for s in conditions
                if s.place == place and accuracy_rows.kind(s) == of
            ]
        )
    ]
    divisor, unit_name = unit(max(p.high for _, _, points in lines for p in points))
    for nth, (name, of, points) in enumerate(lines):
        shift = (nth - (len(lines) - 1) / 2) * ASIDE
        x = np.array([ranks.index(p.condition.ranks) for p in points]) + shift
        y, low, high = (
            np.array([getattr(p, key) for p in points]) / divisor
            for key in ("average", "low", "high")
        )
        axes.errorbar(
            x,
            y,
            yerr=np.maximum(0, np.stack([y - low, high - y])),
            color=colours[name],
            marker="o",
            markersize=4,
            ls=_dashes(of),
            markerfacecolor="white" if of != APPLICATION else None,
            elinewidth=0.9,
            capsize=2,
        )
    ends = [v / divisor for *_, points in lines for p in points for v in (p.low, p.high)]
    scale_rates(axes, "y", ends)
    axes.set_ylabel(f"{unit_name}/s")
    _index_ranks(axes, ranks)


def _errors(
    axes: Axes,
    statistic: str,
    rows: list[AccuracyRow],
    series: dict[str, list[Condition]],
    colours: dict[str, str],
    ranks: list[int],
) -> None:
    percent = 100 * paired_errors.LIMIT
    axes.axhspan(-percent, percent, color=MUTED, alpha=0.13, lw=0)
    axes.axhline(0, color=MUTED, lw=0.8)
    named = [
        (name, row)
        for name, conditions in series.items()
        for row in rows
        if any(row.skeleton is condition for condition in conditions)
    ]
    names = list(dict.fromkeys(name for name, _ in named))
    for name, row in named:
        floor = 100 * row.errors[statistic].floor
        error = row.errors[statistic].error
        shift = (names.index(name) - (len(names) - 1) / 2) * 2 * ASIDE
        x = ranks.index(row.skeleton.ranks) + shift
        if np.isfinite([error.reach, floor]).all():
            axes.vlines(x, -floor, floor, color=MUTED, alpha=0.35, lw=5)
            axes.vlines(x, 100 * error.low, 100 * error.high, color=colours[name], lw=1.4)
        axes.plot(x, 100 * error.value, marker="o", markersize=4, color=colours[name])
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, -1.5 * percent), max(high, 1.5 * percent))
    axes.set_title(f"error of the {statistic}")
    axes.set_ylabel("%")
    _index_ranks(axes, ranks)


def _index_ranks(axes: Axes, ranks: list[int]) -> None:
    axes.set_xticks(range(len(ranks)), [f"{n:,}" for n in ranks])
    axes.set_xlim(-0.6, len(ranks) - 0.4)
    axes.grid(axis="x", visible=False)


def _dashes(kind: str) -> str:
    return "-" if kind == APPLICATION else "--"


def _key(conditions: list[Condition], colours: dict[str, str]) -> list[Line2D]:
    kinds = dict.fromkeys(sorted(accuracy_rows.kind(s) for s in conditions))
    return [
        Line2D([], [], color=colour, marker="o", markersize=4, label=name)
        for name, colour in colours.items()
    ] + [
        Line2D(
            [],
            [],
            color=MUTED,
            marker="o",
            markersize=4,
            ls=_dashes(of),
            label=of,
            markerfacecolor=MUTED if of == APPLICATION else "white",
        )
        for of in kinds
    ]

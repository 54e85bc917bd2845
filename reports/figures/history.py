"""How did the bandwidth change from session to session?

Bandwidth of writing of each session at the time of its first run: the line joins medians over
the runs of a session, bars span the slowest and the fastest repetition. A column is a place, and
colour the method. Sessions differ more than runs within one; one session makes no figure.
"""

from datetime import datetime
from statistics import median

from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.metrics import total_bandwidth
from understudy.report.axes import add_legend, name_place, state_cuts
from understudy.report.colours import method_colour
from understudy.units import unit

ORDER = 65
MAX_PLACES = 4

Point = tuple[float, float, float, float]  # time, lowest, median, highest


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    lines = [(c, points) for c in case.conditions if len(points := sessions(c)) > 1]
    everywhere = list(dict.fromkeys(c.place for c, _ in lines))
    if not everywhere:
        return None
    places = everywhere[:MAX_PLACES]
    divisor, name = unit(max(p[3] for _, points in lines for p in points))
    figure = Figure(figsize=(10.5, 2.7))
    panels = figure.subplots(1, len(places), squeeze=False, sharey=True)[0]
    labels = {}
    for axes, place in zip(panels, places, strict=True):
        for condition, points in lines:
            if condition.place != place:
                continue
            times, low, middle, high = zip(*points, strict=True)
            colour = method_colour(condition.method, case.methods)
            (line,) = axes.plot(
                times,
                [v / divisor for v in middle],
                color=colour,
                lw=1.2,
                marker="o",
                markersize=3.5,
                label=condition.label,
            )
            axes.vlines(
                times,
                [v / divisor for v in low],
                [v / divisor for v in high],
                color=colour,
                lw=1,
                alpha=0.5,
            )
            labels.setdefault(condition.label, line)
        locator = AutoDateLocator(minticks=2, maxticks=5)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))
        name_place(axes, place, case.everywhere)
    panels[0].set_ylim(bottom=0)  # of all: set earlier, it would fix the end that they share
    panels[0].set_ylabel(f"{name}/s")
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, places=(len(places), len(everywhere)))
    return figure


def sessions(condition: Condition) -> list[Point]:
    """In the order of time; runs that state no session are left out."""
    speeds_by_session: dict[str, list[tuple[str, list[float]]]] = {}
    for run in condition.runs:
        if (session := run.run.identity.session) is None:
            continue
        single = Condition(
            method=condition.method,
            facts=(),
            place=condition.place,
            arm=condition.arm,
            runs=(run,),
        )
        if bandwidth := total_bandwidth(single, "write"):
            values = [bandwidth.low, bandwidth.median, bandwidth.high]
            speeds_by_session.setdefault(session, []).append((run.run.identity.time, values))
    points = []
    for same in speeds_by_session.values():
        start = datetime.strptime(min(t for t, _ in same), "%Y-%m-%dT%H:%M:%SZ")
        every = [v for _, values in same for v in values]
        middle = median(values[1] for _, values in same)
        points.append((float(date2num(start)), min(every), middle, max(every)))
    return sorted(points)

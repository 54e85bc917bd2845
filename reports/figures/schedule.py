"""Do dumps start when they are due?

Seconds between the time a dump was scheduled for, after the time scale, and the time the first
rank began it. Zero is on time; a rising line is a replica that cannot keep up with the original's
pace in that place. Medians over the repetitions; left out where pauses were switched off.
"""

from statistics import median

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from understudy.judge.conditions import RESTART_SUFFIX, Case, Condition
from understudy.report.axes import add_legend, name_place, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import time_unit

ORDER = 70
MAX_COLUMNS = 4


def draw(case: Case) -> Figure | None:
    paced = [s for s in case.conditions if s.time_scale > 0]
    everywhere = list(dict.fromkeys(s.place for s in paced))
    places = everywhere[:MAX_COLUMNS]
    if case.programs or not places:
        return None
    events = {id(s): _events(s) for s in paced}
    if len({t for e in events.values() for t, _ in e}) < 2:
        return None  # nothing was due later than the first
    divisor, unit = time_unit(max(t for e in events.values() for t, _ in e))
    late_divisor, late_unit = time_unit(max(abs(v) for e in events.values() for _, v in e))
    figure = Figure(figsize=(10.5, 2.5))
    panels = figure.subplots(1, len(places), squeeze=False, sharey=True)[0]
    labels: dict[str, Line2D] = {}
    for axes, place in zip(panels, places, strict=True):
        axes.axhline(0, color=MUTED, lw=0.8)
        for condition in (s for s in paced if s.place == place):
            times, late = zip(*events[id(condition)], strict=True)
            (line,) = axes.plot(
                [t / divisor for t in times],
                [v / late_divisor for v in late],
                color=method_colour(condition.method, case.methods),
                label=condition.label,
                alpha=0.85,
                lw=1,
                marker="o" if len(times) <= 60 else "",
                markersize=3,
            )
            labels.setdefault(condition.label, line)
        name_place(axes, place, case.everywhere)
        axes.set_xlabel(f"scheduled time ({unit})")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    panels[0].set_ylabel(f"lateness ({late_unit})")
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, places=(len(places), len(everywhere)))
    return figure


def _events(condition: Condition) -> list[tuple[float, float]]:
    """(scheduled time, median lateness) of every scheduled dump, in order of time."""
    return sorted(
        (same[0].scheduled_s, median(d.lateness_s for d in same))
        for name in condition.stream_names()
        if not name.endswith(RESTART_SUFFIX)
        for same in condition.played_dumps(name).values()
    )

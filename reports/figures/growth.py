"""How does the dataset grow?

Bytes that the application has written, over its run time: the steps are those of the descriptor,
the dots what the replica left on storage, container included, after each dump, as the median of
its repetitions. Files that are rewritten count each time. A panel is a place, colour the method.
"""

from itertools import accumulate
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from understudy.judge.conditions import Case, Condition
from understudy.report.axes import add_legend, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import time_unit, unit

ORDER = 15
MAX_PLACES = 4
MAX_MARKERS = 60  # more dots hide the steps

Points = list[tuple[float, float]]  # seconds, bytes of one dump


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    written = [s for s in case.workload.streams if s.operation == "write"]
    planned = sorted((d.time_s, float(s.passes * d.bytes)) for s in written for d in s.expanded())
    if len(planned) < 2 or not any(size for _, size in planned):
        return None
    places = case.places[:MAX_PLACES]
    divisor, name = unit(sum(size for _, size in planned))
    slower, clock = time_unit(max(case.workload.runtime_s or 0.0, planned[-1][0]) or 1.0)
    figure = Figure(figsize=(10.5, 2.7))
    panels = figure.subplots(1, len(places), squeeze=False, sharey=True)[0]
    labels: dict[str, Line2D] = {}
    for axes, place in zip(panels, places, strict=True):
        x, y = _sums(planned)
        (line,) = axes.plot(
            [t / slower for t in x],
            [b / divisor for b in y],
            color=MUTED,
            lw=1.2,
            drawstyle="steps-post",
            label="descriptor",
        )
        labels.setdefault("descriptor", line)
        for condition in case.at(place):
            _dots(axes, case, condition, labels, divisor, slower)
        axes.set_title(place)
        axes.set_xlabel(f"time ({clock})")
    panels[0].set_ylim(bottom=0)
    panels[0].set_ylabel(name)
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, places=(len(places), len(case.places)))
    return figure


def _sums(points: Points) -> tuple[list[float], list[float]]:
    """Times from 0, and the bytes until then."""
    times, sizes = zip(*points, strict=True)
    return [0.0, *times], [0.0, *accumulate(sizes)]


def _dots(
    axes: Axes,
    case: Case,
    condition: Condition,
    labels: dict[str, Line2D],
    divisor: float,
    slower: float,
) -> None:
    found: Points = []
    for stream in (s for s in case.workload.streams if s.operation == "write"):
        planned = list(stream.expanded())
        for index, dumps in condition.played_dumps(stream.name).items():
            sizes = [d.file_bytes if d.file_bytes is not None else d.bytes for d in dumps]
            if index < len(planned):
                found.append((planned[index].time_s, median(sizes) / condition.bytes_scale))
    if not found:
        return
    x, y = _sums(sorted(found))
    every = max(1, len(x) // MAX_MARKERS)
    (line,) = axes.plot(
        [t / slower for t in x],
        [b / divisor for b in y],
        lw=0,
        marker="o",
        markersize=3.2,
        markevery=every,
        color=method_colour(condition.method, case.methods),
        alpha=0.8,
        label=condition.label,
    )
    labels.setdefault(condition.label, line)

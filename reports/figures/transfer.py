"""Does a replica predict the I/O time of its application on another file system?

Each dot is an application on a file system: across, the time that the application spent in I/O,
up, the time of its replica, both by Darshan, of the slowest rank, medians over the rounds. The
band is the limit around equal times. Filled dots are decided, hollow ones are not: the error or
the noise of the application itself crosses the limit. Cases that failed have no dot.
"""

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from understudy.judge.fidelity import transfer
from understudy.judge.fidelity.transfer import Study
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.report.axes import add_legend
from understudy.report.colours import MUTED, method_colour

ORDER = 90
OF = "transfer"
MARKERS = "osD^vP*Xph<>"


def draw(study: Study) -> Figure | None:
    shown = [(case, case.headline) for case in study.cases if case.state() != transfer.FAILED]
    compared = [(case, error) for case, error in shown if error is not None]
    if not compared:
        return None
    applications = sorted({case.application for case, _ in compared})
    places = sorted({case.place for case, _ in compared})
    figure = Figure(figsize=(7.2, 6.2))
    axes = figure.subplots()
    times = [t for _, error in compared for t in (error.application_s, error.replica_s)]
    ends = [min(times) / 1.6, max(times) * 1.6]
    bounds = [[t * (1 + sign * LIMIT_FRACTION) for t in ends] for sign in (-1, 1)]
    axes.fill_between(ends, *bounds, color=MUTED, alpha=0.2, lw=0)
    axes.plot(ends, ends, color=MUTED, lw=0.8)
    for case, error in compared:
        colour = method_colour(case.application, applications)
        low, high = (error.replica_s * (1 + b) / (1 + error.error.value) for b in _ends(error))
        axes.vlines(error.application_s, low, high, color=colour, lw=0.8, alpha=0.6)
        decided = case.state() != transfer.UNDECIDED
        axes.scatter(
            error.application_s,
            error.replica_s,
            s=34,
            linewidth=1.2,
            edgecolor=colour,
            marker=MARKERS[places.index(case.place) % len(MARKERS)],
            facecolor=colour if decided else "white",
            zorder=3,
        )
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("application, measured (s)")
    axes.set_ylabel("replica, predicted (s)")
    handles = [
        *(Patch(color=method_colour(a, applications), label=a) for a in applications),
        *(
            Line2D([], [], color=MUTED, marker=MARKERS[i % len(MARKERS)], ls="", label=place)
            for i, place in enumerate(places)
        ),
        Line2D([], [], color=MUTED, marker="o", markerfacecolor="white", ls="", label="undecided"),
    ]
    add_legend(figure, handles, columns=4)
    return figure


def _ends(error: transfer.Error) -> tuple[float, float]:
    """The interval of the error, where one run does not make it infinite."""
    low, high = max(error.error.low, -0.99), error.error.high
    return (low, high) if high < float("inf") else (error.error.value, error.error.value)

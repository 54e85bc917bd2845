"""How long does the shutdown of Darshan take?

Seconds from the start of the shutdown to the closed log, by processes, for four workloads whose
records are made up: medians of the samples, lines span the lowest and the highest. Colour is the
place and the version of Darshan. As Figs. 3 and 4 of "Performance Evaluation of Darshan 3.0.0 on
the Cray XC30", where on Edison one shared file took about 0.1 s, a file per process less than 2 s
and 1,024 files per process less than 7 s with 12,000 processes; machine, file system, version and
numbers of processes differ here.
"""

from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import method_colour
from understudy.units import time_unit
from understudy_darshan.judge import shutdown
from understudy_darshan.judge.shutdown import TITLES, WORKLOADS

ORDER = 96
OF = "page"
MAX_LINES = 8
ENDS = ("low", "high")


def draw(book: Book) -> Figure | None:
    rows = shutdown.rows(book.runs)
    if not rows:
        return None
    every = shutdown.columns(rows)
    shown = every[:MAX_LINES]
    labels = [f"{place}, Darshan {version}" for place, version in shown]
    figure = Figure(figsize=(10.5, 3.0))
    panels = figure.subplots(1, len(WORKLOADS))
    handles = {}
    for axes, workload in zip(panels, WORKLOADS, strict=True):
        here = [row for row in rows if row.workload == workload]
        divisor, unit = time_unit(max((row.seconds.high for row in here), default=1.0))
        for key, label in zip(shown, labels, strict=True):
            rows_of_line = sorted(
                (row for row in here if (row.place, row.version) == key), key=lambda r: r.ranks
            )
            if not rows_of_line:
                continue
            ranks = [row.ranks for row in rows_of_line]
            colour = method_colour(label, labels)
            (line,) = axes.plot(
                ranks,
                [row.seconds.median / divisor for row in rows_of_line],
                marker="o",
                markersize=4,
                color=colour,
                label=label,
            )
            low, high = (
                [getattr(row.seconds, end) / divisor for row in rows_of_line] for end in ENDS
            )
            axes.vlines(ranks, low, high, color=colour, lw=1)
            handles.setdefault(label, line)
        axes.set_xscale("log", base=2)
        axes.set_xticks(sorted({row.ranks for row in here}))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.set(title=TITLES[workload], xlabel="processes", ylabel=unit)
    add_legend(figure, list(handles.values()), columns=3)
    state_cuts(figure, lines=(len(shown), len(every)))
    return figure

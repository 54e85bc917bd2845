"""How large are Darshan logs?

Bytes of a log for each file that its records describe, by workload and version, beside those of
Darshan 2.3.0 and 3.0.0 in Tables I and III of "Performance Evaluation of Darshan 3.0.0 on the Cray
XC30" (Edison, 12,000 processes): on the left at the largest number of processes, on the right over
all. Those measured here are of records that are made up, on the machine and with the number of
processes that the legend names. The header has grown since 3.0.0 from 360 to 1,328 bytes, which
shows with one file alone; names of files and the counters of a record differ, too.
"""

from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator

from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour
from understudy_darshan.judge import shutdown
from understudy_darshan.judge.shutdown import NEW, OLD, PAPER, TITLES, WORKLOADS, Row, files

ORDER = 97
OF = "page"
MAX_COLUMNS = 5
TITLE_LETTERS = 14  # of a line below a group of bars
GREYS = {OLD: "#b9c1ca", NEW: MUTED}
BY_PROCESSES = ("file-per-process", "1024-per-process")


def draw(book: Book) -> Figure | None:
    rows = shutdown.rows(book.runs)
    if not rows:
        return None
    every = shutdown.columns(rows)
    shown = every[:MAX_COLUMNS]
    figure = Figure(figsize=(10.5, 3.3))
    left, *right = figure.subplots(1, 3, width_ratios=(2.3, 1, 1))
    series = [
        (
            f"paper: Darshan {version}, {shutdown.PAPER_PROCESSES:,} processes",
            GREYS[version],
            {w: shutdown.paper_bytes_per_file(w, version) for w in WORKLOADS},
        )
        for version in PAPER
    ]
    for key in shown:
        rows_of_column = [row for row in rows if (row.place, row.version) == key]
        ranks = max(row.ranks for row in rows_of_column)
        label = f"{key[0]}, Darshan {key[1]}, {ranks} processes"
        values = {row.workload: row.bytes_per_file for row in rows_of_column if row.ranks == ranks}
        series.append((label, method_colour(str(key), list(map(str, shown))), values))
    add_legend(figure, _bars(left, series), columns=2)
    for axes, workload in zip(right, BY_PROCESSES, strict=True):
        _lines(axes, workload, [row for row in rows if row.workload == workload], shown)
    state_cuts(figure, versions=(len(shown), len(every)))
    return figure


def _bars(axes: Axes, series: list[tuple[str, str, dict[str, float]]]) -> list[Any]:
    handles = []
    width = 0.84 / len(series)
    for n, (label, colour, values) in enumerate(series):
        heights = [(k, values[w]) for k, w in enumerate(WORKLOADS) if w in values]
        x = np.array([k for k, _ in heights]) + (n - (len(series) - 1) / 2) * width
        bars = axes.bar(
            x, [value for _, value in heights], width * 0.92, color=colour, label=label
        )
        for place, (_, value) in zip(x, heights, strict=True):
            text = f"{value:,.0f}" if value >= 100 else f"{value:.1f}"
            axes.annotate(
                text,
                (place, value),
                (0, 2),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=6.5,
                rotation=90,
            )
        handles.append(bars[0])
        bars[0].set_label(label)
    axes.set_yscale("log")
    _label_powers(axes.yaxis)
    axes.margins(y=0.18)
    titles = [fill(TITLES[w], TITLE_LETTERS) for w in WORKLOADS]
    axes.set_xticks(range(len(WORKLOADS)), titles, fontsize=7.5)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("bytes per file")
    return handles


def _lines(axes: Axes, workload: str, rows: list[Row], shown: list[tuple[str, str]]) -> None:
    """Bytes per file over the number of processes."""
    for version, sizes in PAPER.items():
        ranks = sorted(sizes[workload])
        each = [sizes[workload][n] / files(workload, n) for n in ranks]
        axes.plot(
            ranks,
            each,
            "s--",
            markersize=3,
            lw=1,
            color=GREYS[version],
            label=f"paper: Darshan {version}",
        )
    for key in shown:
        rows_of_column = sorted(
            (row for row in rows if (row.place, row.version) == key), key=lambda r: r.ranks
        )
        axes.plot(
            [row.ranks for row in rows_of_column],
            [row.bytes_per_file for row in rows_of_column],
            "o-",
            markersize=3,
            lw=1,
            color=method_colour(str(key), list(map(str, shown))),
            label=f"{key[0]}, Darshan {key[1]}",
        )
    axes.set_xscale("log")
    _label_powers(axes.xaxis)
    axes.set_ylim(bottom=0)
    axes.set_title(TITLES[workload])
    axes.set_xlabel("processes")


def _label_powers(axis: Axis) -> None:
    """Plain numbers: the page shows the text of matplotlib's formulas as it is."""
    axis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.set_minor_formatter(NullFormatter())
    axis.set_minor_locator(NullLocator())

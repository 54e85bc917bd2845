"""How large are the logs of Darshan?

Bytes of a log for each file that its records describe, of four workloads whose records are made
up, at the largest number of processes that was measured, beside those of Darshan 3.0.0 in Tables I
and III of "Performance Evaluation of Darshan 3.0.0 on the Cray XC30" with 12,000 processes. The
header has grown since from 360 to 1,328 bytes, which shows with one file alone. Names of files,
counters of the records and numbers of processes differ.
"""

import numpy as np
from matplotlib.figure import Figure

from understudy.judge import shutdown
from understudy.judge.shutdown import TITLES, WORKLOADS, paper_bytes_per_file
from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour

ORDER = 97
OF = "page"
MAX_COLUMNS = 5
PAPER = "paper: Darshan 3.0.0, 12,000 processes"


def draw(book: Book) -> Figure | None:
    rows = shutdown.rows(book.runs)
    if not rows:
        return None
    every = shutdown.columns(rows)
    shown = every[:MAX_COLUMNS]
    figure = Figure(figsize=(10.5, 3.2))
    axes = figure.subplots()
    width = 0.8 / (len(shown) + 1)
    series = [(PAPER, MUTED, {w: paper_bytes_per_file(w) for w in WORKLOADS})]
    for key in shown:
        mine = [row for row in rows if (row.place, row.version) == key]
        ranks = max(row.ranks for row in mine)
        label = f"{key[0]}, Darshan {key[1]}, {ranks} processes"
        values = {row.workload: row.bytes_per_file for row in mine if row.ranks == ranks}
        series.append((label, method_colour(str(key), list(map(str, shown))), values))
    handles = []
    for n, (label, colour, values) in enumerate(series):
        known = [(k, values[w]) for k, w in enumerate(WORKLOADS) if w in values]
        x = np.array([k for k, _ in known]) + (n - len(shown) / 2) * width
        bars = axes.bar(x, [value for _, value in known], width * 0.92, color=colour, label=label)
        for place, (_, value) in zip(x, known, strict=True):
            axes.annotate(f"{value:,.1f}", (place, value), ha="center", va="bottom", fontsize=7.5)
        handles.append(bars[0])
        bars[0].set_label(label)
    axes.set_yscale("log")
    axes.margins(y=0.12)
    axes.set_xticks(range(len(WORKLOADS)), [TITLES[w] for w in WORKLOADS])
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("bytes per file")
    add_legend(figure, handles, columns=2)
    state_cuts(figure, versions=(len(shown), len(every)))
    return figure

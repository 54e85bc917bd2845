"""How much smaller is an archived Darshan log?

Share of a log that is saved by bzip2 in place of zlib, each module as one stream, as understudy
archive and darshan-convert write it; below 0, the log gets larger. At the largest number of
processes that was measured, beside Darshan 3.0.0 with 12,000 processes in Table IV of "Performance
Evaluation of Darshan 3.0.0 on the Cray XC30" (Edison). Fewer processes leave zlib fewer streams of
their own and bzip2 less to gain, most with a file per process; versions and names of files differ.
"""

import numpy as np
from matplotlib.figure import Figure

from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour
from understudy_darshan.judge import shutdown
from understudy_darshan.judge.shutdown import NEW, PAPER_PROCESSES, TITLES, WORKLOADS

ORDER = 99
OF = "page"
MAX_COLUMNS = 5


def draw(book: Book) -> Figure | None:
    rows = [row for row in shutdown.rows(book.runs) if row.saved is not None]
    if not rows:
        return None
    every = shutdown.columns(rows)
    shown = every[:MAX_COLUMNS]
    series = [
        (
            f"paper: Darshan {NEW}, {PAPER_PROCESSES:,} processes",
            MUTED,
            {w: shutdown.paper_saved(w) for w in WORKLOADS},
        )
    ]
    for key in shown:
        rows_of_column = [row for row in rows if (row.place, row.version) == key]
        ranks = max(row.ranks for row in rows_of_column)
        label = f"{key[0]}, Darshan {key[1]}, {ranks} processes"
        saved = {row.workload: row.saved or 0.0 for row in rows_of_column if row.ranks == ranks}
        series.append((label, method_colour(str(key), list(map(str, shown))), saved))
    figure = Figure(figsize=(10.5, 2.6))
    axes = figure.subplots()
    width = 0.84 / len(series)
    handles = []
    for n, (label, colour, values) in enumerate(series):
        heights = [(k, 100 * values[w]) for k, w in enumerate(WORKLOADS) if w in values]
        x = np.array([k for k, _ in heights]) + (n - (len(series) - 1) / 2) * width
        bars = axes.bar(
            x, [value for _, value in heights], width * 0.92, color=colour, label=label
        )
        for place, (_, value) in zip(x, heights, strict=True):
            axes.annotate(
                f"{value:.1f}",
                (place, value),
                ha="center",
                fontsize=7.5,
                va="bottom" if value >= 0 else "top",
            )
        handles.append(bars[0])
        bars[0].set_label(label)
    axes.axhline(0, color=MUTED, lw=0.8)
    axes.margins(y=0.15)
    axes.set_xticks(range(len(WORKLOADS)), [TITLES[w] for w in WORKLOADS])
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("saved (%)")
    add_legend(figure, handles, columns=2)
    state_cuts(figure, versions=(len(shown), len(every)))
    return figure

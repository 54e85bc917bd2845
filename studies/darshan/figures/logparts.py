"""What does a Darshan log consist of?

Plain bytes of the header, of the fixed part of the job record, and of all that a log has of one
file: its POSIX and its MPI-IO record and its name, as Darshan writes them before it compresses
them. As Table II of "Performance Evaluation of Darshan 3.0.0 on the Cray XC30", whose versions are
beside those measured here; 2.3.0 has no header, and one record of a file for both interfaces. The
header of today holds 64 modules instead of 16; names of files differ.
"""

import numpy as np
from matplotlib.figure import Figure

from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour
from understudy_darshan.judge import shutdown
from understudy_darshan.judge.shutdown import NEW, OLD, PAPER_PARTS, PARTS

ORDER = 98
OF = "page"
MAX_VERSIONS = 5
GREYS = {OLD: "#b9c1ca", NEW: MUTED}
NAMES = ("header", "job record", "records and name of a file")


def draw(book: Book) -> Figure | None:
    sizes_by_version: dict[str, dict[str, float]] = {}
    for row in shutdown.rows(book.runs):
        if row.sizes:  # they depend on the version alone
            sizes_by_version[row.version] = dict(row.sizes)
    if not sizes_by_version:
        return None
    shown = sorted(sizes_by_version)[:MAX_VERSIONS]
    series = [
        (f"paper: Darshan {version}", GREYS[version], dict(zip(PARTS, sizes, strict=True)))
        for version, sizes in PAPER_PARTS.items()
    ]
    series += [(f"Darshan {v}", method_colour(v, shown), sizes_by_version[v]) for v in shown]
    figure = Figure(figsize=(10.5, 2.6))
    axes = figure.subplots()
    width = 0.84 / len(series)
    handles = []
    for n, (label, colour, sizes) in enumerate(series):
        heights = [(k, sizes[name]) for k, name in enumerate(PARTS) if name in sizes]
        x = np.array([k for k, _ in heights]) + (n - (len(series) - 1) / 2) * width
        bars = axes.bar(x, [size for _, size in heights], width * 0.92, color=colour, label=label)
        for place, (_, size) in zip(x, heights, strict=True):
            text = f"{size:,.0f}" if size else "none"
            axes.annotate(text, (place, size), ha="center", va="bottom", fontsize=7.5)
        handles.append(bars[0])
        bars[0].set_label(label)
    axes.margins(y=0.12)
    axes.set_xticks(range(len(PARTS)), NAMES)
    axes.grid(axis="x", visible=False)
    axes.set_ylabel("bytes")
    add_legend(figure, handles, columns=5)
    state_cuts(figure, versions=(len(shown), len(sizes_by_version)))
    return figure

"""How does IOR compare with the replicas?

Bandwidth of writing: the rows of IOR are its own figures, those below are replicas in the same
place, all conditions together. Bars are medians, lines span the lowest and the highest. What IOR
gets and a replica does not is left to the application's pattern. What the page cache may have
served is left out.
"""

import numpy as np
from matplotlib.figure import Figure

from understudy.judge.statistics.metrics import spread, total_bandwidth, verdict
from understudy.producers._reading import RATE
from understudy.report.axes import name_place, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, place_colour
from understudy.units import shorten, unit

ORDER = 85
OF = "page"
MAX_PLACES = 3
MAX_ROWS = 14


def draw(book: Book) -> Figure | None:
    ior = [row for row in book.beside if row.unit == RATE and row.operation == "write"]
    ior = [row for row in ior if not row.remedy]
    everywhere = sorted({row.place for row in ior})
    if not everywhere:
        return None
    places = everywhere[:MAX_PLACES]
    rows_by_place = {place: _rows(book, place) for place in places}
    most = min(MAX_ROWS, max(map(len, rows_by_place.values())))
    figure = Figure(figsize=(10.5, 0.9 + 0.24 * most))
    panels = figure.subplots(1, len(places), squeeze=False)[0]
    for axes, place in zip(panels, places, strict=True):
        rows = rows_by_place[place][:MAX_ROWS]
        divisor, name = unit(max(high for *_, high in rows))
        where = np.arange(len(rows))[::-1]
        for y, (label, is_ior, low, middle, high) in zip(where, rows, strict=True):
            colour = MUTED if is_ior else place_colour(place, book.places)
            axes.barh(y, middle / divisor, 0.7, color=colour, label=label)
            axes.hlines(y, low / divisor, high / divisor, color="black", lw=1)
        axes.set_yticks(where, [shorten(row[0], 26) for row in rows])
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)
        name_place(axes, place, book.places)
        axes.set_xlabel(f"{name}/s")
    state_cuts(
        figure,
        places=(len(places), len(everywhere)),
        rows=(most, max(map(len, rows_by_place.values()))),
    )
    return figure


def _rows(book: Book, place: str) -> list[tuple[str, bool, float, float, float]]:
    rows = [
        (row.benchmark, True, row.values.low, row.values.median, row.values.high)
        for row in book.beside
        if (row.place, row.unit, row.operation, row.remedy) == (place, RATE, "write", "")
    ]
    for case in book.cases:
        stored = [c for c in case.at(place) if "write" not in verdict(c).cached]
        speeds = [total_bandwidth(c, "write") for c in stored]
        every = [v for s in speeds if s for v in (s.low, s.median, s.high)]
        if bandwidth := spread(every):
            rows.append(
                (case.workload.name, False, bandwidth.low, bandwidth.median, bandwidth.high)
            )
    return rows

"""What does Darshan add to an open, a write and a close?

On one process: above, nanoseconds that an operation takes longer under Darshan than without it,
medians of the rounds, lines from the lowest to the highest; grey is the difference of two arms
without Darshan, which is noise alone. Below, the instructions that Darshan makes of its own, as
valgrind counts them, which noise cannot touch; by MPI-IO they contain those of the POSIX calls
below. Writes have 4 KiB. Without valgrind on the node there are no instructions. The paper on
Darshan 3.0.0 has no such figure.
"""

from matplotlib.figure import Figure

from understudy.report.axes import add_legend, state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour
from understudy_darshan.judge import operations
from understudy_darshan.judge.operations import OPERATIONS

ORDER = 95
OF = "page"
MAX_CASES = 4


def draw(book: Book) -> Figure | None:
    rows = operations.rows(book.runs)
    cases = sorted({(row.place, row.case) for row in rows})
    if not cases:
        return None
    shown = cases[:MAX_CASES]
    versions = sorted({row.version for row in rows})
    counted = any(row.instructions is not None for row in rows)
    figure = Figure(figsize=(10.5, 4.6 if counted else 2.6))
    panels = figure.subplots(2 if counted else 1, len(shown), squeeze=False, sharey="row")
    width = 0.84 / (len(versions) + 1)
    handles = {}
    for k, (place, case) in enumerate(shown):
        rows_of_case = [row for row in rows if (row.place, row.case) == (place, case)]
        panels[0][k].set_title(f"{place}, {case.removeprefix('operations-')}")
        for n, version in enumerate(versions):
            here = {row.operation: row for row in rows_of_case if row.version == version}
            x = [i + (n + 0.5 - len(versions) / 2) * width for i in range(len(OPERATIONS))]
            measured = [(a, here[op]) for a, op in zip(x, OPERATIONS, strict=True) if op in here]
            colour, label = method_colour(version, versions), f"Darshan {version}"
            places = [a for a, _ in measured]
            bars = panels[0][k].bar(
                places,
                [1e9 * row.added_s.median for _, row in measured],
                0.92 * width,
                color=colour,
                label=label,
            )
            panels[0][k].vlines(
                places,
                [1e9 * row.added_s.low for _, row in measured],
                [1e9 * row.added_s.high for _, row in measured],
                color="black",
                lw=1,
            )
            handles.setdefault(label, bars[0])
            bars[0].set_label(label)
            if counted:
                instructions = [
                    (a, row.instructions) for a, row in measured if row.instructions is not None
                ]
                panels[1][k].bar(
                    [a for a, _ in instructions],
                    [value for _, value in instructions],
                    0.92 * width,
                    color=colour,
                    label=label,
                )
                for a, value in instructions:
                    panels[1][k].annotate(
                        f"{value:,.0f}", (a, value), ha="center", va="bottom", fontsize=7
                    )
        noise = {row.operation: row for row in rows_of_case}
        for i, op in enumerate(OPERATIONS):
            if op in noise:
                low, high = noise[op].control_s.low, noise[op].control_s.high
                panels[0][k].vlines([i], [1e9 * low], [1e9 * high], color=MUTED, lw=5, alpha=0.5)
        for row_of_panels in panels:
            axes = row_of_panels[k]
            axes.set_xticks(range(len(OPERATIONS)), OPERATIONS)
            axes.grid(axis="x", visible=False)
            axes.margins(y=0.12)
    panels[0][0].set_ylabel("added (ns)")
    if counted:
        panels[1][0].set_ylabel("added (instructions)")
    add_legend(figure, list(handles.values()), columns=4)
    state_cuts(figure, cases=(len(shown), len(cases)))
    return figure

"""What does Darshan cost a program?

Seconds from the first open of any process to the last close, of a program that writes a file per
process by independent MPI-IO: without Darshan, once more without it (control), and under each
version, in turn in one job. Boxes span the quartiles with the median, whiskers the lowest and the
highest round. As Fig. 2 of "Performance Evaluation of Darshan 3.0.0 on the Cray XC30", which has
medians of 104.4 s without Darshan, 101 s under 2.3.0 and 99.9 s under 3.0.0 on 4,800 processes of
Edison in 2016; machine, file system, MPI and versions differ here.
"""

from matplotlib.figure import Figure

from understudy.report.axes import state_cuts
from understudy.report.book import Book
from understudy.report.colours import MUTED, method_colour
from understudy.units import shorten, time_unit
from understudy_darshan.judge import overhead
from understudy_darshan.judge.overhead import CONTROL, WITHOUT, Case

ORDER = 95
OF = "page"
MAX_CASES = 3
NAMES = {WITHOUT: "without", CONTROL: "without (control)"}


def draw(book: Book) -> Figure | None:
    every = overhead.cases(book.runs)
    shown = every[:MAX_CASES]
    if not shown:
        return None
    figure = Figure(figsize=(10.5, 3.2))
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    for axes, case in zip(panels, shown, strict=True):
        divisor, unit = time_unit(max(max(values) for values in case.seconds.values()))
        arms = list(case.seconds)
        drawn = axes.boxplot(
            [[value / divisor for value in case.seconds[arm]] for arm in arms],
            whis=(0, 100),
            widths=0.5,
            patch_artist=True,
        )
        axes.set_xticks(range(1, len(arms) + 1), [_name(case, arm) for arm in arms])
        for arm, box in zip(arms, drawn["boxes"], strict=True):
            versions = [a for a in arms if a not in NAMES]
            box.set_facecolor(MUTED if arm in NAMES else method_colour(arm, versions))
            box.set_alpha(0.5)
        for line in drawn["medians"]:
            line.set_color("black")
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"I/O time ({unit})")
        axes.set_title(
            f"{case.place}, {case.ranks} processes, {len(case.seconds[WITHOUT])} rounds"
        )
        axes.grid(axis="x", visible=False)
    state_cuts(figure, jobs=(len(shown), len(every)))
    return figure


def _name(case: Case, arm: str) -> str:
    return NAMES.get(arm) or shorten(f"Darshan {case.versions[arm]}", 22)

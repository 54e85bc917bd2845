"""Which stripe count suits each place?

Mean bandwidth of writing over the runs of a stripe setting, with its standard error, by place and
method. Settings stand in the words in which they were asked for; where one setting was run, or the
file system has no stripes, there is no figure.
"""

import numpy as np
from matplotlib.figure import Figure

from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.labels import stripe_count
from understudy.judge.statistics.metrics import total_bandwidth
from understudy.report.axes import add_legend, name_place, state_cuts
from understudy.report.colours import method_colour
from understudy.units import unit

ORDER = 32
MAX_PLACES = 4
WORDS = ("default", "nodes", "cores")


def draw(case: Case) -> Figure | None:
    speeds_by_place: dict[str, dict[tuple[str, str], list[float]]] = {}
    for condition in case.conditions if not case.programs else ():
        key = (condition.method, stripe_count(condition.runs[0].run))
        speeds_by_place.setdefault(condition.place, {}).setdefault(key, []).extend(
            speeds(condition)
        )
    places = [p for p, rows in speeds_by_place.items() if len({s for _, s in rows}) > 1]
    if not places:
        return None
    shown = places[:MAX_PLACES]
    divisor, name = unit(
        max(v for p in shown for values in speeds_by_place[p].values() for v in values)
    )
    figure = Figure(figsize=(10.5, 2.8))
    panels = figure.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for axes, place in zip(panels, shown, strict=True):
        settings = sorted({s for _, s in speeds_by_place[place]}, key=_order)
        methods = sorted({m for m, _ in speeds_by_place[place]})
        width = 0.8 / len(methods)
        for k, method in enumerate(methods):
            here = [s for s in settings if speeds_by_place[place].get((method, s))]
            values = [np.array(speeds_by_place[place][method, s]) / divisor for s in here]
            at = [settings.index(s) + (k - (len(methods) - 1) / 2) * width for s in here]
            axes.bar(
                at,
                [v.mean() for v in values],
                width * 0.92,
                label=method,
                color=method_colour(method, case.methods),
                yerr=[v.std(ddof=1) / len(v) ** 0.5 if len(v) > 1 else 0 for v in values],
                ecolor="black",
                error_kw={"lw": 1},
            )
        axes.set_xticks(range(len(settings)), settings)
        axes.grid(axis="x", visible=False)
        name_place(axes, place, case.everywhere)
        axes.set_xlabel("stripe count")
    panels[0].set_ylabel(f"{name}/s")
    handles, _ = panels[0].get_legend_handles_labels()
    add_legend(figure, handles, columns=6)
    state_cuts(figure, places=(len(shown), len(places)))
    return figure


def speeds(condition: Condition) -> list[float]:
    """The bandwidth of writing of each run."""
    medians = []
    for run in condition.runs:
        single = Condition(
            method=condition.method,
            facts=(),
            place=condition.place,
            arm=condition.arm,
            runs=(run,),
        )
        if bandwidth := total_bandwidth(single, "write"):
            medians.append(bandwidth.median)
    return medians


def _order(setting: str) -> tuple[int, int]:
    if setting in WORDS:
        return WORDS.index(setting), 0
    return len(WORDS), int(setting) if setting.isdigit() else 0

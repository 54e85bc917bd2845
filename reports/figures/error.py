"""How far off are the sizes of the dumps?

Error of each dump on storage against the descriptor, container included, the worst over all
conditions and repetitions, for streams that checkpoint. Dashed lines are the limit. The container
adds to small dumps more than to large ones.
"""

from matplotlib.figure import Figure

from understudy.judge.conditions import Case
from understudy.judge.limits import LIMIT_FRACTION
from understudy.judge.metrics import worst
from understudy.report.axes import add_legend, index_dumps, state_cuts
from understudy.report.colours import MUTED, method_colour
from understudy.units import shorten

ORDER = 22
MAX_PANELS = 3


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    saved = [n for n in case.played_streams() if case.role(n) == "checkpoint"]
    names = [n for n in saved if case.dump_count(n) > 1]  # a dump alone is in the tables
    rows = {name: lines for name in names if (lines := _lines(case, name))}
    if not rows:
        return None
    shown = list(rows)[:MAX_PANELS]
    figure = Figure(figsize=(10.5, 2.5))
    panels = figure.subplots(1, len(shown), squeeze=False)[0]
    labels = {}
    for axes, name in zip(panels, shown, strict=True):
        for bound in (-LIMIT_FRACTION, LIMIT_FRACTION):
            axes.axhline(100 * bound, color=MUTED, lw=0.8, ls=(0, (4, 3)))
        for method, errors in rows[name].items():
            (line,) = axes.plot(
                list(errors),
                [100 * e for e in errors.values()],
                lw=1,
                marker="o",
                markersize=3,
                color=method_colour(method, case.methods),
                label=method,
            )
            labels.setdefault(method, line)
        index_dumps(axes, sorted({i for errors in rows[name].values() for i in errors}))
        axes.set_title(shorten(name, 30))
    panels[0].set_ylabel("error of the size (%)")
    add_legend(figure, list(labels.values()), columns=6)
    state_cuts(figure, streams=(len(shown), len(rows)))
    return figure


def _lines(case: Case, name: str) -> dict[str, dict[int, float]]:
    """By method, of each dump with a size; the worst of its conditions."""
    found: dict[str, dict[int, list[float]]] = {}
    for condition in case.conditions:
        for index, dumps in condition.played_dumps(name).items():
            for d in dumps:
                planned = d.described_bytes * condition.bytes_scale
                if d.file_bytes is not None and planned:
                    errors = found.setdefault(condition.method, {}).setdefault(index, [])
                    errors.append(d.file_bytes / planned - 1)
    return {m: {i: worst(e) for i, e in sorted(of.items())} for m, of in found.items()}

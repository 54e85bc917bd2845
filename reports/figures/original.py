"""When does each rank move data: the original, and below it the replica?

Ranks up, time across; the stronger the colour, the more bytes a second. The original is as the
descriptor has it: its times, and of each rank its part. The replica's times are measured, in the
first repetition of one condition; each rank's part is the descriptor's, by which the player moves
it, and is not measured. Times and colours have scales of their own: compare order and shape.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import NDArray

from understudy.contracts.measurement import PlayedDump
from understudy.contracts.workload import Step
from understudy.judge.statistics.conditions import Case, Condition, described
from understudy.judge.statistics.metrics import nearest
from understudy.report.colours import HEAT
from understudy.units import seconds, time_unit, unit

ORDER = 5
BINS = 96  # of time
PARTS = 24  # of time, for the share of bytes that lie alike; divides BINS
MAX_ROWS = 32  # of ranks

Floats = NDArray[np.float64]
Span = tuple[float, float, Floats]  # start, end (s), bytes of each row


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    shown = nearest(case)
    ranks = case.workload.ranks
    original, replica = list(_original(case)), list(_replica(case, shown))
    if len(original) < 2 or len(replica) < 2:
        return None  # a dump alone has no order
    ends = [max(end for _, end, _ in spans) for spans in (original, replica)]
    maps = [_rates(spans, end) for spans, end in zip((original, replica), ends, strict=True)]
    alike = f"{100 * _alike(*maps):.0f} % of the bytes at the same share of the time"
    parts = zip(("original", f"{_title(shown)}: {alike}"), maps, ends, strict=True)
    rows = len(maps[0])
    figure = Figure(figsize=(10.5, 1.3 + 2 * min(1.6, 0.45 + 0.1 * rows)))
    for axes, (title, rates, length_s) in zip(figure.subplots(2, 1), parts, strict=True):
        _panel(figure, axes, rates, length_s, ranks)
        axes.set_title(title)
    return figure


def _title(condition: Condition) -> str:
    scale = (
        f"pauses scaled by {condition.time_scale:.3g}"
        if condition.time_scale
        else "without pauses"
    )
    return f"replica: {condition.label} on {condition.place}, {scale}"


def _original(case: Case) -> Iterator[Span]:
    rows = _Rows(case.workload.ranks)
    for stream in case.workload.streams:
        for occurrence in stream.expanded():
            start = occurrence.time_s
            shares = rows.of(occurrence.dump, occurrence.bytes)
            yield start, start + (occurrence.duration_s or 0), shares


def _replica(case: Case, condition: Condition) -> Iterator[Span]:
    rows = _Rows(case.workload.ranks)
    for stream in condition.runs[0].measurement.repetitions[0].streams:
        origin = described(case.workload, stream.name)
        dumps = [o.dump for o in origin.expanded()] if origin else []
        for played in stream.dumps:
            if isinstance(played, PlayedDump) and played.dump < len(dumps):
                shares = rows.of(dumps[played.dump], played.bytes)
                yield played.start_s, played.start_s + played.elapsed_s, shares


class _Rows:
    """The bytes of a dump by rank, those of neighbours together."""

    def __init__(self, ranks: int) -> None:
        self._edges = np.linspace(0, ranks, min(ranks, MAX_ROWS) + 1)
        self._ranks = ranks
        self._known: dict[int, Floats] = {}

    def of(self, dump: Step, moved: int) -> Floats:
        """Share of each in `moved` bytes."""
        if id(dump) not in self._known:
            total = np.zeros(len(self._edges))
            for variable in dump.variables:
                runs = np.array(variable.rank_runs(self._ranks), float).reshape(-1, 2)
                ends = np.concatenate([[0], np.cumsum(runs[:, 0])])
                sums = np.concatenate([[0], np.cumsum(runs[:, 0] * runs[:, 1])])
                total += variable.count * np.interp(self._edges, ends, sums)
            self._known[id(dump)] = np.diff(total)
        shares = self._known[id(dump)]
        return shares * (moved / shares.sum()) if shares.sum() else shares


def _rates(spans: Iterable[Span], end_s: float) -> Floats:
    """Bytes a second, a row for each group of ranks, a column for each bin."""
    width = end_s / BINS or 1.0
    all_spans = list(spans)
    rates = np.zeros((len(all_spans[0][2]), BINS))
    for start, end, sizes in all_spans:
        first = min(max(start / width, 0.0), BINS - 1e-9)
        last = min(max(end / width, first + 1e-9), float(BINS))
        edges = np.arange(int(first), int(np.ceil(last)) + 1, dtype=float)
        part = np.diff(np.clip(edges, first, last)) / (last - first)
        rates[:, int(first) : int(first) + len(part)] += np.outer(sizes, part) / width
    return rates


def _alike(original: Floats, replica: Floats) -> float:
    """The share of the bytes that both move in the same part of their time, of PARTS."""
    sums = [
        rates.sum(axis=0).reshape(PARTS, -1).sum(axis=1) / (rates.sum() or 1.0)
        for rates in (original, replica)
    ]
    return float(np.minimum(*sums).sum())


def _panel(figure: Figure, axes: Axes, rates: Floats, end_s: float, ranks: int) -> None:
    time, name = time_unit(end_s)
    divisor, size = unit(float(rates.max()) or 1.0)
    positive = rates[rates > 0] / divisor
    low, high = (float(positive.min()), float(positive.max())) if len(positive) else (1.0, 1.0)
    norm = LogNorm(max(low, high / 1e4), high) if high > 8 * low else None
    image = axes.imshow(
        np.where(rates > 0, rates / divisor, np.nan),
        cmap=HEAT,
        norm=norm,
        vmin=None if norm else 0,
        aspect="auto",
        origin="lower",
        interpolation="nearest",
        extent=(0, end_s / time, -0.5, ranks - 0.5),
    )
    axes.grid(visible=False)
    axes.set_ylabel("rank")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(f"time ({name}); the whole is {seconds(end_s)}")
    bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=12)
    bar.set_label(f"{size}/s")
    if norm:
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda v, _: f"{v:g}"))
        bar.ax.yaxis.set_minor_formatter(NullFormatter())

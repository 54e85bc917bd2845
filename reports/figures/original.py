"""When does each rank move data: the original, and below it the replica?

Ranks up, time across; the stronger the colour, the more bytes a second. The original is as the
descriptor has it: its times, and of each rank its part. The replica's times are measured, in the
first repetition of one condition; each rank's part is the descriptor's, by which the player moves
it, and is not measured. Times and colours have scales of their own: compare order and shape.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
BLOCK = 4096  # dumps that are put into bins at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Starts and ends of dumps (s), and bytes of each row of ranks in them: the `shares` of their
    `kinds`, times `factors`."""

    starts: Floats
    ends: Floats
    kinds: NDArray[np.intp]
    factors: Floats
    shares: Floats


def draw(case: Case) -> Figure | None:
    if case.programs:
        return None
    shown = nearest(case)
    ranks = case.workload.ranks
    rows = _Rows(ranks)
    both = _original(case, rows), _replica(case, shown, rows)
    if any(len(spans.starts) < 2 for spans in both):
        return None  # a dump alone has no order
    ends = [float(spans.ends.max()) for spans in both]
    maps = [_rates(spans, end) for spans, end in zip(both, ends, strict=True)]
    alike = f"{100 * _alike(*maps):.0f} % of the bytes at the same share of the time"
    parts = zip(("original", f"{_title(shown)}: {alike}"), maps, ends, strict=True)
    figure = Figure(figsize=(10.5, 1.3 + 2 * min(1.6, 0.45 + 0.1 * len(maps[0]))))
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


def _original(case: Case, rows: "_Rows") -> Spans:
    dumps = [o for stream in case.workload.streams for o in stream.expanded()]
    return rows.spans(
        [o.time_s for o in dumps],
        [o.time_s + (o.duration_s or 0) for o in dumps],
        [o.dump for o in dumps],
        [o.bytes for o in dumps],
    )


def _replica(case: Case, condition: Condition, rows: "_Rows") -> Spans:
    each: list[tuple[float, float, Step, int]] = []
    for stream in condition.runs[0].measurement.repetitions[0].streams:
        origin = described(case.workload, stream.name)
        steps = [o.dump for o in origin.expanded()] if origin else []
        each += (
            (d.start_s, d.start_s + d.elapsed_s, steps[d.dump], d.bytes)
            for d in stream.dumps
            if isinstance(d, PlayedDump) and d.dump < len(steps)
        )
    return rows.spans(*map(list, zip(*each, strict=True))) if each else rows.spans([], [], [], [])


class _Rows:
    """The bytes of a dump by rank, those of neighbours together."""

    def __init__(self, ranks: int) -> None:
        self._edges = np.linspace(0, ranks, min(ranks, MAX_ROWS) + 1)
        self._ranks = ranks

    def spans(
        self,
        starts: Sequence[float],
        ends: Sequence[float],
        dumps: Sequence[Step],
        moved: Sequence[int],
    ) -> Spans:
        """Spans of dumps that moved so many bytes."""
        bodies = {id(dump.body): dump for dump in dumps}
        numbers = {key: k for k, key in enumerate(bodies)}
        shares = np.array([self._share(dump) for dump in bodies.values()])
        kinds = np.array([numbers[id(dump.body)] for dump in dumps], np.intp)
        sums = np.array([share.sum() for share in shares])[kinds] if bodies else np.zeros(0)
        moved_bytes = np.array(moved, float)
        factors = np.divide(moved_bytes, sums, out=np.ones(len(kinds)), where=sums != 0)
        return Spans(
            starts=np.array(starts, float),
            ends=np.array(ends, float),
            kinds=kinds,
            factors=factors,
            shares=shares,
        )

    def _share(self, dump: Step) -> Floats:
        """Bytes of each row as the dump is described."""
        total = np.zeros(len(self._edges))
        for variable in dump.variables:
            runs = np.array(variable.rank_runs(self._ranks), float).reshape(-1, 2)
            ends = np.concatenate([[0], np.cumsum(runs[:, 0])])
            sums = np.concatenate([[0], np.cumsum(runs[:, 0] * runs[:, 1])])
            total += variable.count * np.interp(self._edges, ends, sums)
        return np.diff(total)


def _rates(spans: Spans, end_s: float) -> Floats:
    """Bytes a second, a row for each group of ranks, a column for each bin."""
    width = end_s / BINS or 1.0
    firsts = np.clip(spans.starts / width, 0.0, BINS - 1e-9)
    lasts = np.minimum(np.maximum(spans.ends / width, firsts + 1e-9), float(BINS))
    rates = np.zeros((spans.shares.shape[1], BINS))
    for k in range(0, len(firsts), BLOCK):
        some = slice(k, k + BLOCK)
        first, last, factors = firsts[some], lasts[some], spans.factors[some]
        kinds, which = np.unique(spans.kinds[some], return_inverse=True)
        begins = first.astype(np.intp)
        bins = np.ceil(last).astype(np.intp) - begins
        weights = np.zeros(len(kinds) * BINS)
        for nth in range(int(bins.max())):  # few, where there are many dumps
            has = bins > nth
            at = begins[has] + nth
            inside = np.minimum(last[has], at + 1) - np.maximum(first[has], at)
            part = inside / (last - first)[has] * factors[has]
            weights += np.bincount(which[has] * BINS + at, part, len(weights))
        rates += spans.shares[kinds].T @ weights.reshape(-1, BINS) / width
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

"""How much later than a dump do its ranks begin, where the log tells when each of them began?

That is known of records of each rank, and of traced accesses (DXT). One record for all ranks tells
only when the first of them began.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import MAX_RUNS
from understudy.inference import constants as levels
from understudy.inference.drafts import Draft
from understudy.inference.passes import Segments, some
from understudy.inference.series import CELLS, DumpFacts, Series, bin_edges

FILES = levels.ALIKE  # of a series, whose traces are looked at
SPREAD = levels.SOME  # share of the dump within which ranks begin together
BUSY_S = levels.TIMES * levels.TURN_S  # within which they do, on a machine that is busy
ALIKE = levels.FEW  # share of the dump to which it is stated when ranks begin
TRACED = 1 - levels.SMALL  # share of the bytes that a trace has at least
LATE = "each of its ranks moves its bytes once, some later than others: one dump"
TOGETHER = f"{LATE}, which the ranks of the replica begin together"
HOW = (
    f"start of the first access of each rank, of its record or its DXT segments, to {ALIKE:.0%} "
    f"of duration_s, where starts are more than {SPREAD:.0%} of it and {BUSY_S:g} s apart"
)

Times: TypeAlias = npt.NDArray[np.float64]
Skew: TypeAlias = tuple[tuple[int, float], ...]


def learn(
    drafts: Sequence[Draft], trace: Callable[[int, str, bool], Segments | None], ranks: int
) -> None:
    """Note when the ranks begin dumps of which only a trace tells it."""
    left = CELLS // ranks
    for draft in drafts:
        if draft.pace != "burst" or draft.turned:
            continue
        for series in draft.series:
            left = _learn(series, trace, ranks, left)


def _learn(
    series: Series,
    trace: Callable[[int, str, bool], Segments | None],
    ranks: int,
    left: int,
) -> int:
    """The same of a series, of so many dumps at most; how many more there may be."""
    traces: dict[int, Segments | None] = {}
    for dump in series.dumps:
        files = {cell.file for cell in dump.cells.values()}
        if len(files) > 1 or dump.end_s - dump.start_s <= BUSY_S or _of_records(dump) is not None:
            continue
        [file] = files
        if file not in traces:
            if len(traces) >= FILES:
                break
            found = trace(file, series.method, series.write)
            traces[file] = found and some(found, np.argsort(found.start_s, kind="stable"))
        segments = traces[file]
        if segments is not None and left > 0:
            dump.rank_start_s = _of_trace(segments, dump, ranks)
            left -= dump.rank_start_s is not None
    return left


def _of_trace(segments: Segments, dump: DumpFacts, ranks: int) -> Times | None:
    """When each rank begins a dump, infinite if it moves nothing: f8 [ranks]; None where the trace
    lacks some of its bytes."""
    first, last = np.searchsorted(
        segments.start_s, (dump.start_s - levels.MOMENT_S, dump.end_s + levels.MOMENT_S)
    )
    mine = slice(int(first), int(last))
    who, moved = segments.rank[mine], segments.bytes[mine]
    known = (moved > 0) & (who >= 0) & (who < ranks)
    if moved[known].sum() < TRACED * dump.bytes:
        return None
    starts = np.full(ranks, np.inf)
    np.minimum.at(starts, who[known], segments.start_s[mine][known])
    return starts


def _of_records(dump: DumpFacts) -> Times | None:
    """The same, where all records are of one rank each."""
    cells = list(dump.cells.values())
    parts = [c.rank_start_s for c in cells if c.rank_start_s is not None and not c.shared_bytes]
    if not parts or len(parts) < len(cells):
        return None
    first_s: Times = np.minimum.reduce(parts)
    return first_s


def _starts(draft: Draft, k: int) -> Times | None:
    facts = [s.dumps[k] for s in draft.series]
    parts = [_of_records(f) if f.rank_start_s is None else f.rank_start_s for f in facts]
    known = [part for part in parts if part is not None]
    if len(known) < len(facts) or any(f.count > 1 for f in facts):
        return None
    first_s: Times = np.minimum.reduce(known)
    return first_s


def of_dump(draft: Draft, k: int, limit: int = MAX_RUNS) -> Skew:
    """The skew of a dump in at most `limit` runs, of which more are averaged in blocks; empty
    where its ranks begin together, or it is not known when they begin. What moves no byte begins
    with the rank before it."""
    first_s, length_s = draft.start_s(k), draft.end_s(k) - draft.start_s(k)
    starts = _starts(draft, k) if draft.pace == "burst" and length_s > BUSY_S else None
    if starts is None:
        return ()
    moving = np.flatnonzero(np.isfinite(starts))
    if len(moving) < 2 or np.ptp(starts[moving]) <= max(BUSY_S, SPREAD * length_s):
        return ()
    before = np.searchsorted(moving, np.arange(len(starts)), side="right") - 1
    late_s = np.maximum(0.0, starts[moving[np.maximum(0, before)]] - first_s)
    ranks: npt.NDArray[np.int64] = np.ones(len(late_s), np.int64)
    runs = _runs(late_s, ranks, ALIKE * length_s)
    if len(runs) > limit:
        edges = bin_edges(len(late_s), limit)
        ranks = np.diff(edges)
        runs = _runs(np.add.reduceat(late_s, edges[:-1]) / ranks, ranks, ALIKE * length_s)
    return runs if len(runs) > 1 else ()


def _runs(late_s: Times, ranks: npt.NDArray[np.int64], step_s: float) -> Skew:
    """Runs of blocks of ranks that are alike to a step; each begins at the mean of all that are
    like it, the first ones at 0."""
    level = np.rint(late_s / step_s).astype(np.int64)
    number = np.maximum(1, np.bincount(level, weights=ranks))
    mean_s = np.bincount(level, weights=ranks * late_s) / number
    mean_s[0] = 0.0
    first = np.flatnonzero(np.diff(level, prepend=-1))
    some = np.add.reduceat(ranks, first)
    return tuple(zip(some.tolist(), np.round(mean_s[level[first]], 6).tolist(), strict=True))


def remarks(draft: Draft) -> list[str]:
    """What a note says of a draft whose ranks are late, which is one dump."""
    return [LATE if of_dump(draft, 0) else TOGETHER] * draft.late


def last_s(draft: Draft, k: int) -> float:
    """How much later than the dump its last ranks begin."""
    return max((late_s for _, late_s in of_dump(draft, k)), default=0.0)

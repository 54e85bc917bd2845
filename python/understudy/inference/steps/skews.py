"""How much later than a dump do its ranks begin, where the log tells when each of them began?

That is known of records of each rank. One record for all ranks tells only when the first of them
began.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import MAX_RUNS
from understudy.inference import constants as levels
from understudy.inference.streams.file_series import DumpFacts, bin_edges
from understudy.inference.streams.stream_grouping import Draft

SPREAD = levels.SOME  # share of the dump within which ranks begin together
BUSY_S = levels.TIMES * levels.TURN_S  # within which they do, on a machine that is busy
ALIKE = levels.FEW  # share of the dump to which it is stated when ranks begin
LATE = "each of its ranks moves its bytes once, some later than others: one dump"
TOGETHER = f"{LATE}, which the ranks of the replica begin together"
HOW = (
    f"start of the first access of each rank, of its record, to {ALIKE:.0%} "
    f"of duration_s, where starts are more than {SPREAD:.0%} of it and {BUSY_S:g} s apart"
)

Times: TypeAlias = npt.NDArray[np.float64]
Skew: TypeAlias = tuple[tuple[int, float], ...]


def _of_records(dump: DumpFacts) -> Times | None:
    """When each rank begins a dump, infinite if it moves nothing: f8 [ranks]; None where a
    record is of several."""
    cells = list(dump.cells.values())
    parts = [c.rank_start_s for c in cells if c.rank_start_s is not None and not c.shared_bytes]
    if not parts or len(parts) < len(cells):
        return None
    first_s: Times = np.minimum.reduce(parts)
    return first_s


def _starts(draft: Draft, k: int) -> Times | None:
    facts = [s.dumps[k] for s in draft.series]
    parts = [_of_records(f) for f in facts]
    times = [part for part in parts if part is not None]
    if len(times) < len(facts) or any(f.count > 1 for f in facts):
        return None
    first_s: Times = np.minimum.reduce(times)
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
    """Notes on a draft whose ranks are late, which is one dump."""
    return [LATE if of_dump(draft, 0) else TOGETHER] * draft.late


def last_s(draft: Draft, k: int) -> float:
    """How much later than the dump its last ranks begin."""
    return max((late_s for _, late_s in of_dump(draft, k)), default=0.0)

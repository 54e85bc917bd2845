"""In which order the calls of a stream move its bytes, and how often they are flushed.

Darshan's POSIX module counts, of each file, the calls that begin where the one before ended
(CONSEC), those that begin anywhere behind it (SEQ), and the most common distances between them
(STRIDE). Other modules tell nothing of the order.
"""

from collections.abc import Sequence

import numpy as np

from understudy.contracts.workload import Order
from understudy.inference.drafts import Draft
from understudy.inference.series import Cell

JUMPING = 0.5  # share of the calls from which on the order is not consecutive
MIXED = (0.2, 0.8)  # share of the calls that go forward if the order is random
DEALT = 0.75  # share of the bytes whose blocks a rank left at the distance of the other ranks
SEED = 1
NEARLY = 0.9  # flushes of a file per dump from which on each dump ends with one
SEVERAL = 1.5  # flushes of a file in a dump from which on they are within it


def learn(draft: Draft, ranks: int) -> None:
    """Note the order of the calls of a draft whose files are not yet divided into time steps."""
    cells = [c for s in draft.series for d in s.dumps for c in d.cells.values()]
    if draft.write and draft.method != "hdf5":
        made = files = 0
        for series in (s for s in draft.series if s.synced):
            for cell in (c for d in series.dumps for c in d.cells.values()):
                made += cell.syncs
                files += max(1, cell.files, min(_used(cell, 0), len(series.rank_spans)))
        draft.flushes = made * draft.dumps / files if files else draft.flushes
    calls, follow, ahead = np.sum([c.order for c in cells], axis=0).tolist()
    if draft.method != "posix" or not calls:
        return
    if draft.write:
        syncs = sum(c.syncs for c in cells)
        draft.syncs = syncs * draft.dumps / sum(_used(c, ranks) for c in cells)
        draft.sync_every = draft.bytes / max(1, syncs)
    if len(draft.spans) < 2 and (block := _dealt(cells, ranks)):
        draft.block = block
        draft.ordered = f"POSIX_STRIDE1_STRIDE = {(ranks - 1) * block}, the blocks of the others"
        return
    jumps = calls - follow - sum(_used(c, ranks) * max(1, c.opens) for c in cells)
    if jumps <= JUMPING * calls:
        return
    verb = "WRITES" if draft.write else "READS"
    if MIXED[0] <= ahead / calls <= MIXED[1]:
        draft.order = Order(rule="shuffled", seed=SEED)
        counters = f"POSIX_CONSEC_{verb} = {follow}, POSIX_SEQ_{verb} = {ahead}"
        draft.ordered = f"of {calls} calls, {counters}"
        return
    draft.remarks.append(
        f"{jumps} of its {calls} calls do not begin where the one before ended, in an order that "
        "the log does not tell and that is not reproduced"
    )


def _used(cell: Cell, ranks: int) -> int:
    """Pairs of a file and a rank that moved bytes in it."""
    own = 0 if cell.rank_bytes is None else int(np.count_nonzero(cell.rank_bytes))
    return max(cell.files, own + (ranks if cell.shared_bytes else 0))


def _dealt(cells: Sequence[Cell], ranks: int) -> int:
    """Bytes of the blocks that are dealt to the ranks in turn; 0 if they are not."""
    gaps = {c.gap for c in cells}
    gap = max(gaps, default=0)
    shared = all(c.even and c.shared_bytes and c.rank_bytes is None for c in cells)
    if ranks < 2 or len(gaps) != 1 or gap <= 0 or gap % (ranks - 1) or not shared:
        return 0
    block = gap // (ranks - 1)
    moved = sum(c.shared_bytes for c in cells)
    left = sum(c.gaps for c in cells) * block
    each = moved // sum(int(c.order[0]) for c in cells)
    return block if DEALT * moved <= left <= moved and each and block % each == 0 else 0


def flushed(draft: Draft) -> bool:
    """Whether each dump ends with a flush of its files; a remark tells of those that do not."""
    if not draft.write or not any(s.synced for s in draft.series):
        return False
    dumps = sum(d.count for d in draft.series[0].dumps)
    share = draft.flushes * draft.names / dumps
    if share < NEARLY:
        draft.remarks.append(
            f"that each of its files was flushed {share * dumps:.3g} x in its {dumps} dumps is "
            "not reproduced: the log does not tell after which of them"
        )
    return share >= NEARLY


def sync_bytes(draft: Draft) -> int | None:
    """Bytes after which a rank flushes a file within a dump; None if it does so once at most."""
    dumps = sum(d.count for d in draft.series[0].dumps)
    return max(1, int(draft.sync_every)) if draft.syncs * draft.names >= SEVERAL * dumps else None

"""In which order the calls of a stream move its bytes, and how often they are flushed.

Darshan's POSIX module counts, of each file, the calls that begin where the one before ended
(CONSEC), those that begin anywhere behind it (SEQ), and the most common distances between them
(STRIDE). Other modules tell nothing of the order.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Order, Pattern
from understudy.inference import constants as levels
from understudy.inference.steps.passes import Segments
from understudy.inference.streams.file_series import Cell
from understudy.inference.streams.stream_grouping import Draft
from understudy.program.patterns import stream_of
from understudy.program.syncs import syncs_of

JUMPING = levels.HALF  # share of the calls from which on the order is not consecutive
MIXED = (levels.SOME, 1 - levels.SOME)  # share of the calls that go forward if the order is random
# Share of the bytes in blocks, each of which a rank began elsewhere than it was.
DEALT = 1 - levels.QUARTER
SEED = 1
FSYNC = ("posix", "stdio")  # methods whose files are flushed by fsync()
NEARLY = 1 - levels.PART  # flushes of a file per dump from which on each dump ends with one
UNTOLD = "in an order that the log does not tell and that is not reproduced"
FEW_LACKING = levels.SMALL  # share of the flushes that may be missed
FEW = levels.ALIKE  # calls of a rank in a dump, below which a trace is not asked for their order
SEVERAL = 1 + levels.HALF  # flushes of a file in a dump from which on they are within it


def learn(draft: Draft, ranks: int) -> None:
    """Note the order of the calls of a draft whose files are not yet divided into time steps."""
    cells = [c for s in draft.series for d in s.dumps for c in d.cells.values()]
    if draft.write and draft.method != "hdf5":
        file_syncs = files = 0
        for series in (s for s in draft.series if s.synced):
            for cell in (c for d in series.dumps for c in d.cells.values()):
                file_syncs += cell.syncs
                files += max(1, cell.files, min(_used(cell, 0), len(series.rank_spans)))
        draft.flushes = file_syncs * draft.dumps / files if files else draft.flushes
        draft.flushed = sum(c.syncs for c in cells)
    if draft.write and draft.method in FSYNC:
        syncs = sum(c.flushes if draft.method == "stdio" else c.syncs for c in cells)
        draft.syncs = syncs * draft.dumps / max(1, sum(_used(c, ranks) for c in cells))
        draft.sync_every = draft.bytes / max(1, syncs)
        if draft.method == "stdio" and (calls := sum(c.calls for c in cells)):
            # Equal calls differ by a byte: a flush comes behind so many of the smaller ones.
            draft.sync_every = draft.bytes // calls * calls / max(1, syncs)
    calls, follow, ahead = np.sum([c.order for c in cells], axis=0).tolist()
    if draft.method != "posix" or not calls:
        return
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
        f"{jumps} of its {calls} calls do not begin where the one before ended, {UNTOLD}"
    )


def traced(draft: Draft, trace: Callable[[int, str, bool], Segments | None]) -> None:
    """Take the order of a draft whose calls jump from the trace of a file, if there is one: that
    of the rank that moved most, in the dump in which it made most calls."""
    jumping = [remark for remark in draft.remarks if UNTOLD in remark]
    if draft.method != "posix" or draft.block or draft.lookups:
        return
    if not jumping and draft.order.rule != "shuffled":
        return
    main = max(draft.series, key=lambda s: s.bytes)
    dump = max(main.dumps, key=lambda d: d.bytes)
    cell = max(dump.cells.values(), key=lambda c: int(c.order[0]))
    segments = trace(cell.file, "posix", draft.write)
    if segments is None:
        return
    ranks, index = np.unique(segments.rank, return_inverse=True)
    main_rank = int(ranks[int(np.argmax(np.bincount(index.ravel(), weights=segments.bytes)))])
    inside = (segments.start_s >= dump.start_s - 1e-6) & (segments.start_s <= dump.end_s)
    which = np.flatnonzero((segments.rank == main_rank) & inside & (segments.bytes > 0))
    which = which[np.argsort(segments.start_s[which], kind="stable")]
    offset = segments.offset[which]
    if len(which) < FEW or len(np.unique(offset)) < len(offset):
        return
    order = _rule(np.argsort(np.argsort(offset)))
    if order is None:
        return
    draft.order = order
    draft.remarks = [remark for remark in draft.remarks if remark not in jumping]
    draft.ordered = f"offsets of {len(which)} calls of a rank in the DXT segments"


def _rule(place: npt.NDArray[np.intp]) -> Order | None:
    """The order of calls by their places in the order of offsets; None if it is another."""
    count, step = len(place), int(place[1] - place[0])
    if (np.diff(place) == 1).all():
        return Order()
    if step > 1:
        turns = np.concatenate([np.arange(first, count, step) for first in range(step)])
        if place[0] == 0 and np.array_equal(place, turns):
            return Order(rule="strided", step=step)
    ahead = float((np.diff(place) > 0).mean())
    return Order(rule="shuffled", seed=SEED) if MIXED[0] <= ahead <= MIXED[1] else None


def _used(cell: Cell, ranks: int) -> int:
    """Pairs of a file and a rank that moved bytes in it."""
    pairs = 0 if cell.rank_bytes is None else int(np.count_nonzero(cell.rank_bytes))
    return max(cell.files, pairs + (ranks if cell.shared_bytes else 0))


def _dealt(cells: Sequence[Cell], ranks: int) -> int:
    """Bytes of the blocks that are dealt to the ranks in turn; 0 if they are not."""
    gaps = {c.gap for c in cells}
    gap = max(gaps, default=0)
    shared = all(c.even and c.shared_bytes and c.rank_bytes is None for c in cells)
    if ranks < 2 or len(gaps) != 1 or gap <= 0 or gap % (ranks - 1) or not shared:
        return 0
    block = gap // (ranks - 1)
    moved = sum(c.shared_bytes for c in cells)
    calls, follow, _ = np.sum([c.order for c in cells], axis=0).tolist()
    left = (calls - follow) * block  # a call that does not go on begins a block
    each = moved // calls
    return block if DEALT * moved <= left <= moved and each and block % each == 0 else 0


def flushed(draft: Draft) -> bool:
    """True if each dump ends with a flush of its files; a remark names those that do not."""
    if not draft.write or not any(s.synced for s in draft.series):
        return False
    dumps = sum(d.count for d in draft.series[0].dumps)
    share = draft.flushes / dumps
    if share < NEARLY:
        draft.remarks.append(
            f"each of its files was flushed {share * dumps:.3g} x in its {dumps} dumps; "
            + (
                "that these are spread evenly over them is assumed"
                if draft.method in FSYNC
                else "this is not reproduced: the log does not tell after which of them"
            )
        )
    return share >= NEARLY


def sync_bytes(draft: Draft) -> int | None:
    """Bytes after which a rank flushes a file, or the buffer of stdio, within a dump; None if it
    does so once at most."""
    dumps = sum(d.count for d in draft.series[0].dumps)
    return max(1, int(draft.sync_every)) if draft.syncs >= SEVERAL * dumps else None


def lacking(draft: Draft, stream: Pattern, ranks: int) -> list[int]:
    """Flushes of the files of a draft that its stream does not make by itself: so many in each of
    its entries' dumps, spread evenly."""
    syncs_itself = draft.method == "posix" or stream.sync
    missing = draft.flushed - (syncs_of(stream_of(stream, ranks), ranks) if syncs_itself else 0)
    if draft.method not in FSYNC or not draft.write or missing <= FEW_LACKING * draft.flushed:
        return [0] * len(stream.dumps)
    ends = np.cumsum([dump.count for dump in stream.dumps])
    share = np.diff(missing * ends // ends[-1], prepend=0)
    return [int(n) // dump.count for n, dump in zip(share, stream.dumps, strict=True)]

"""How often the ranks of a stream flush its files, by the stream's own method."""

from collections.abc import Iterable

from understudy.semantics.opens import PerRank, files_of_steps, rows_of_body
from understudy.semantics.program import EACH_ROW, Step, Sync, Thread, flat, moves
from understudy.semantics.sizes import moved_bytes, writes

_KEEP_BYTES = ("hdf5", "stdio")  # the player flushes what these libraries keep of a dump


def syncs_of(thread: Thread, ranks: int) -> int:
    """Flushes of all ranks. Those after so many bytes are counted as if one rank had all bytes of
    a dump."""
    kept = not thread.set.numbered and thread.closes and thread.method in _KEEP_BYTES
    found = 0
    for step, masks in files_of_steps(thread, ranks) if writes(thread) else ():
        within = moved_bytes(step.body) // every if (every := _every(thread, step)) else 0
        at_end = syncs(step) or kept
        found += step.count * (within + (_files(thread, step, masks.values()) if at_end else 0))
    return found


def surely_synced(thread: Thread, ranks: int) -> int:
    """Dumps that have a flush for sure. The player counts the bytes of each rank in each file
    up to those after which it flushes, but calls where the method is collective."""
    return sum(step.count for step in thread.steps if _is_synced(thread, step, ranks))


def syncs(step: Step) -> bool:
    """Whether ranks flush their files in each dump."""
    return any(isinstance(i, Sync) for i in flat(step.body))


def _is_synced(thread: Thread, step: Step, ranks: int) -> bool:
    every = _every(thread, step)
    if syncs(step) or every is None:
        return syncs(step) and moved_bytes(step.body) > 0
    files = len({m.move.variable.file for m in moves(step.body)})
    by_bytes = thread.method == "posix" and thread.set.owner != EACH_ROW
    return by_bytes and moved_bytes(step.body) >= ranks * files * every


def _every(thread: Thread, step: Step) -> int | None:
    """After how many bytes a rank flushes."""
    return next((m.move.flushes(thread.method) for m in moves(step.body)), None)


def _files(thread: Thread, step: Step, masks: Iterable[PerRank]) -> int:
    """Files of all ranks that a dump flushes at its end."""
    if thread.set.owner == EACH_ROW:
        return rows_of_body(step.body)
    return sum(mask.total for mask in masks)

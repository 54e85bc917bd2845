"""How often the ranks of a stream flush its files, by the stream's own method."""

from understudy.program.evaluator import walk_of
from understudy.program.instructions import (
    EACH_ROW,
    Step,
    Stream,
    Sync,
    calls_of_system,
    flat,
    moved_bytes,
    moves,
    variables_of,
)
from understudy.program.runs import Rows, Synced


def syncs_of(stream: Stream, ranks: int) -> int:
    """Flushes of all ranks. Those after so many bytes are counted as if one rank had all bytes of
    a dump."""
    walk = walk_of(stream, ranks)
    total = sum(dumps * calls.kinds["sync"] for calls, dumps in calls_of_system(stream))
    for dumps in walk.dumps if walk.writes else ():
        step = dumps.step
        if every := _every(stream, step):
            total += dumps.count * (moved_bytes(step.body) // every)
        for call in dumps.calls:
            if isinstance(call, Synced):
                total += dumps.count * int(walk.segments.counts[call.ranks].sum())
            elif isinstance(call, Rows) and syncs(step):
                total += dumps.count * call.times * call.number
    return total


def surely_synced(stream: Stream, ranks: int) -> int:
    """Dumps that have a flush for sure. The player counts the bytes of each rank in each file
    up to those after which it flushes, but calls where the method is collective."""
    called = sum(dumps for calls, dumps in calls_of_system(stream) if calls.kinds["sync"])
    return called + sum(s.count for s in stream.steps if _is_synced(stream, s, ranks))


def syncs(step: Step) -> bool:
    """True if ranks flush their files in each dump."""
    return any(isinstance(i, Sync) for i in flat(step.body))


def _is_synced(stream: Stream, step: Step, ranks: int) -> bool:
    every = _every(stream, step)
    if syncs(step) or every is None:
        return syncs(step) and moved_bytes(step.body) > 0
    files = len({v.file for v in variables_of([step.body])})
    by_bytes = stream.method in ("posix", "uring") and stream.set.owner != EACH_ROW
    return by_bytes and moved_bytes(step.body) >= ranks * files * every


def _every(stream: Stream, step: Step) -> int | None:
    """After how many bytes a rank flushes."""
    return next((move.flushes(stream.method) for move, _ in moves(step.body)), None)

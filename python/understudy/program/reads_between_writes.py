"""Reads of ranks between their writes, of what they have written last."""

from collections.abc import Sequence

import numpy as np

from understudy.program.block_calls import Whole
from understudy.program.counter_state import Sums
from understudy.program.flushes import Written, flushes_of
from understudy.program.instructions import Stream, begins_content, moves
from understudy.program.segments import segments_of
from understudy.program.types import Lookups


def looked_up(
    sums: Sums,
    written: Sequence[Written],
    state: list[tuple[int, int]],
    dumps: int,
    lasts: bool,
) -> None:
    """Count the reads between the writes of a file in so many equal dumps; `lasts`: what was
    written since the last one counts on from dump to dump."""
    lookups = written[0].move.lookups
    assert lookups, "it looks up"
    reads, times, last = sums.none.copy(), sums.none.copy(), sums.none.copy()
    for s, (unread, before) in enumerate(state):
        count = dumps if lasts else 1
        more, unread = flushes_of(unread, written, s, count, lookups.every_bytes, carry=True)
        state[s] = unread, before + more
        each = int((before + more) * lookups.calls) - int(before * lookups.calls)
        reads[s], times[s] = (dumps // count) * each, (dumps // count) * min(each, more)
        last[s] = (dumps // count) * _ends_with(written, s, unread, lookups.every_bytes)
    whole = int((reads * sums.segments.counts).sum())
    sums.note_calls("READ", {lookups.transfer_bytes: whole}, 1)
    if sums.method == "stdio":
        sums.count("STDIO_SEEKS", reads + times - (last if not lasts else sums.none))
        if lasts or lookups.calls < 1:
            sums.tally.decline("STDIO_SEEKS")
    sums.tally.decline(
        f"{sums.method.upper()}_MAX_BYTE_READ", "CONSEC_READS", "SEQ_READS", "RW_SWITCHES"
    )


def _ends_with(written: Sequence[Written], s: int, unread: int, every: int) -> bool:
    """True if the last write of a segment is followed by reads."""
    cut = next((c for w in reversed(written) if (c := w.calls.cut(s)) is not None), None)
    if cut is None:
        return False
    size = cut.rounds[-1][1][-1][0]
    return size >= every or unread < size


def is_whole(lookups: Lookups, first: Whole) -> bool:
    """True if all reads of a move find `transfer_bytes` bytes; `first` is the fewest that the
    ranks of a segment have written in a row when they first read."""
    return bool((first >= lookups.transfer_bytes).all())


def bytes_of_reads(lookups: Lookups, written: int) -> int:
    """Bytes that a rank reads in a file of a content of so many bytes, all of them new."""
    every, most = lookups.every_bytes, lookups.transfer_bytes
    times = written // every
    short = min(times, most // every)
    return round(lookups.calls * (every * short * (short + 1) / 2 + (times - short) * most))


def lookups_of(stream: Stream, ranks: int) -> tuple[int, int, int]:
    """About how many reads a stream makes between its writes, their bytes, and of how many each,
    as if each file were of one rank."""
    calls = moved = size = 0
    lookups: Lookups | None = None
    segments = segments_of([stream], ranks)
    content: Whole = np.zeros(len(segments.counts), np.int64)

    def end(times: int) -> None:
        nonlocal calls, moved, size
        if lookups is not None:
            for written, number in zip(content.tolist(), segments.counts.tolist(), strict=True):
                calls += times * number * int(written // lookups.every_bytes * lookups.calls)
                moved += times * number * bytes_of_reads(lookups, written)
            size = lookups.transfer_bytes

    for step in stream.steps:
        here: Whole = np.zeros(len(segments.counts), np.int64)
        for move, _ in moves(step.body):
            lookups = move.lookups or lookups
            block = segments.block(move.variable, False)
            here = here + move.variable.count * block.size
        if not stream.set.numbered or not begins_content(step):
            content = content + step.count * here
            continue
        end(1)
        content = here
        end(step.count - 1)
    end(1)
    return calls, moved, size

"""Files that are written again and again under the same names.

More bytes were written to such a file than it has. Where it was opened as often, it was truncated
and rewritten each time, else updated in place. A trace shows each pass over the file by offsets
that start again; without one, opens and the size of the file tell how many there were.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.streams.file_series import Cell, DumpFacts, Series
from understudy.inference.streams.stream_grouping import Draft
from understudy.program.types import MAX_DUMPS

# Bytes written over the size of the file from which on it is written again.
AGAIN = 1 + levels.HALF
WHOLE = levels.SMALL  # deviation from a whole number of times, as a share of them
NEARLY = 1 - levels.PART  # share of the largest size that files written again have on average
PATCH = levels.SMALL  # share of a pass below which what is written again is part of it (a header)
MAX_ITEMS = 64  # files of one dump that are looked at one by one
LARGE = levels.LARGE  # bytes of a file from which on it matters that they are read again


@dataclass(frozen=True, slots=True, kw_only=True)
class Again:
    """How often a file was written; `sure` if several counters agree."""

    times: int
    rewritten: bool  # truncated first, else updated in place
    reopened: bool
    sure: bool
    how: str


def is_again(cells: Sequence[Cell]) -> bool:
    """True if more bytes were moved in the files of these cells than they have."""
    extent = sum(c.extent or c.top for c in cells)
    return 0 < AGAIN * extent <= sum(c.bytes for c in cells)


def counted(cells: Sequence[Cell], passes: int) -> Again:
    """How often a file was written by its counters; `passes` are those in its trace, or 0."""
    moved, extent = sum(c.bytes for c in cells), sum(c.extent or c.top for c in cells)
    opens = max(c.opens for c in cells)
    ratio = moved / extent
    fold = max(2, round(ratio))
    whole = abs(ratio - fold) <= WHOLE * fold
    up = int(np.ceil(ratio * (1 - WHOLE)))
    written = any(c.extent for c in cells)
    most = opens * (1 + WHOLE) if written else opens / NEARLY  # a reader may go back a little
    if passes:
        times, sure = passes, True
        how = f"offsets that start again in the DXT segments: {passes} times"
    elif opens > up > 1 and opens % up == 0 and not whole and ratio >= NEARLY * up:
        times, sure = up, False  # several opens each time
        how = f"opened {opens} times per rank, {opens // up} times each time"
    elif opens > 1 and ratio <= most and not (whole and fold < opens):
        times, sure = opens, whole
        how = f"opened {opens} times per rank"
    else:
        times, sure = (fold, whole) if whole else (max(2, int(np.ceil(ratio))), False)
        how = f"opened {opens} times per rank"
    if times > MAX_DUMPS:
        times, sure = MAX_DUMPS, False
    how += f", {ratio:.4g} times as many bytes as the file has"
    return Again(
        times=times, rewritten=opens >= times, reopened=opens >= times, sure=sure, how=how
    )


def passes_of(
    offset: npt.NDArray[np.int64],
    length: npt.NDArray[np.int64],
    start_s: npt.NDArray[np.float64],
    end_s: npt.NDArray[np.float64],
) -> list[int]:
    """The first segment of each pass over a file by one rank, in order of time: its offsets start
    again. Small writes into what the pass has written (a header, a count) begin none, but those
    that follow one another and add up."""
    begins = [0]
    low: list[int] = []  # the ranges that this pass has written, disjoint and in order
    high: list[int] = []
    written = over = 0
    first = 0  # of the segments that follow one another, each over what the pass has written
    places, sizes = offset.tolist(), length.tolist()
    for n, (at, size) in enumerate(zip(places, sizes, strict=True)):
        again = _overlap(low, high, at, at + size)
        if 2 * again < size or not size:
            over, first = 0, n + 1
        over += again
        if n >= first and again and over >= PATCH * written:
            room, low_n = PATCH * written, first  # small writes before it may be of either pass:
            while low_n - 1 > begins[-1] and sizes[low_n - 1] < room:
                low_n -= 1
                room -= sizes[low_n]
            rest = start_s[low_n : n + 1] - end_s[low_n - 1 : n]  # the longest pause tells
            begins.append(low_n + int(np.argmax(rest)))
            low, high, written, over, first = [], [], 0, 0, n + 1
            for m in range(begins[-1], n):
                written += sizes[m] - _overlap(low, high, places[m], places[m] + sizes[m])
                _insert(low, high, places[m], places[m] + sizes[m])
            again = _overlap(low, high, at, at + size)
        written += size - again
        _insert(low, high, at, at + size)
    return begins


def _overlap(low: list[int], high: list[int], begin: int, end: int) -> int:
    first, last = bisect_right(high, begin), bisect_left(low, end)
    return sum(min(high[k], end) - max(low[k], begin) for k in range(first, last))


def _insert(low: list[int], high: list[int], begin: int, end: int) -> None:
    first, last = bisect_left(high, begin), bisect_right(low, end)
    if first < last:
        begin, end = min(begin, low[first]), max(end, high[last - 1])
    low[first:last], high[first:last] = [begin], [end]


# -- which drafts -----------------------------------------------------------------------------


def unravel(drafts: Sequence[Draft]) -> list[Draft]:
    """Files of one dump that are each written or read again become drafts of their own: each has
    its own times."""
    unraveled: list[Draft] = []
    for draft in drafts:
        parts = _parts(draft) if _overlapping(draft) else []
        if 1 < len(parts) <= MAX_ITEMS and any(map(_again, parts)):
            unraveled += [Draft(series=[s]) for s in sorted(parts, key=lambda s: not _again(s))]
        else:
            unraveled.append(draft)
    return unraveled


def _again(series: Series) -> bool:
    """True if its file is written again, or certainly read again: ranks that open it once may each
    read the same bytes of it. Small inputs, such as settings, are read as they come."""
    cells = _cells(series)
    if not series.write and (max(c.opens for c in cells) < 2 or series.bytes < LARGE):
        return False
    return is_again(cells)


def _overlapping(draft: Draft) -> bool:
    """True if the dumps overlap in time."""
    return all(draft.start_s(k + 1) < draft.end_s(k) for k in range(draft.dumps - 1))


def _cells(series: Series) -> list[Cell]:
    return [c for d in series.dumps for c in d.cells.values()]


def _parts(draft: Draft) -> list[Series]:
    """The dumps of a draft by series and file."""
    parts = []
    for series in draft.series:
        for k, dump in enumerate(series.dumps):
            for item in sorted({item for item, _ in dump.cells}):
                cells: dict[tuple[tuple[int, ...], int], Cell] = {
                    ((), v): cell for (i, v), cell in dump.cells.items() if i == item
                }
                part = replace(series, dumps=[DumpFacts.of(cells)], key=series.key[k : k + 1])
                parts.append(part)
    return parts

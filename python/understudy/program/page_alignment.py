"""Calls that do not begin with a page, as Darshan counts them (`POSIX_FILE_NOT_ALIGNED`)."""

import math
from dataclasses import dataclass

import numpy as np

from understudy.program.block_calls import Cut, Whole
from understudy.program.runs import Moved

PAGE = 4096  # bytes, also of direct transfers
MOST = 1 << 16  # places that are told apart


@dataclass(frozen=True, slots=True)
class Places:
    """Places in pages, 0 to PAGE - 1, each once, and how many calls begin there."""

    at: Whole
    calls: Whole

    def spread(self, step: int, times: int) -> "Places | None":
        """Each of them so many times, with so many bytes from one to the next; None: too many."""
        if times == 1:
            return self
        period = PAGE // math.gcd(step, PAGE)
        passes, rest = divmod(times, period)
        numbers = np.arange(min(times, period))
        if len(self.at) * len(numbers) > MOST:
            return None
        at = (self.at[:, None] + step * numbers) % PAGE
        calls = self.calls[:, None] * (passes + (numbers < rest))
        return joined(at.ravel(), calls.ravel())

    @property
    def unaligned(self) -> int:
        """Calls that begin behind the begin of a page."""
        return int(self.calls[self.at != 0].sum())


def joined(at: Whole, calls: Whole) -> Places:
    """All calls of each place."""
    unique_places, which = np.unique(at, return_inverse=True)
    sums = np.zeros(len(unique_places), np.int64)
    np.add.at(sums, which.ravel(), calls)
    return Places(unique_places, sums)


def unaligned(moved: Moved, dumps: int) -> int | None:
    """Calls of all ranks in `dumps` dumps that do not begin with a page; None where it is not
    known."""
    block = moved.block
    has = np.flatnonzero(block.size > 0)
    if moved.place is not None or moved.move.lookups:
        return None
    total = 0
    for s in has.tolist():
        cut = moved.calls.cut(s)
        if cut is None or cut.strands != 1:
            return None
        at = np.array([moved.at[s] % PAGE])
        places: Places | None = Places(at, np.ones(1, np.int64))
        slope = int(moved.slope[s] + block.slope[s])
        for step, times in (
            (slope, int(block.segments.counts[s])),
            (int(block.whole[s]), moved.move.variable.count),
            (int(moved.growth[s]), dumps),
        ):
            places = None if places is None else places.spread(step, times)
        count = None if places is None else unaligned_of(cut, places)
        if count is None:
            return None
        total += count
    return total


def unaligned_of(cut: Cut, blocks: Places) -> int | None:
    """The same of blocks that begin at these places."""
    total, before = 0, 0
    for rounds, sizes in cut.rounds:
        whole = sum(size * times for size, times in sizes)
        for size, times in sizes:
            begins = Places((blocks.at + before) % PAGE, blocks.calls)
            each = begins.spread(whole, rounds)
            each = None if each is None else each.spread(size, times)
            if each is None:
                return None
            total += each.unaligned
            before += size * times
        before += (rounds - 1) * whole
    return total

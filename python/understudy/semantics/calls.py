"""The data calls of a stream: how many, how many of them collective, and of which sizes.

A rank's block of a variable is cut into transfers of whole trailing dimensions, as the player
does.
"""

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from understudy.semantics.counters import BIN_BYTES, BINS
from understudy.semantics.opens import PerRank, aligned, files_of_steps
from understudy.semantics.pieces import Segments, alike
from understudy.semantics.program import Thread, moves
from understudy.semantics.types import Variable

# Methods of the player that make a call for each run of consecutive bytes, and none collectively.
BY_RUNS = ("posix", "stdio")


def bin_of(size: float) -> int:
    """Index of the bin of `BINS` that a call of this many bytes is in."""
    return sum(size > end for end in BIN_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """`sizes` has a count per bin of `BINS`; of the calls that are in none the source keeps no
    sizes (STDIO)."""

    count: int
    collective: int = 0
    sizes: tuple[int, ...] = (0,) * len(BINS)

    def __add__(self, other: "Calls") -> "Calls":
        return total([self, other])

    @property
    def collective_share(self) -> float:
        return self.collective / self.count if self.count else 0.0


def total(parts: list[Calls]) -> Calls:
    """The sum of calls of several kinds of files."""
    return Calls(
        count=sum(p.count for p in parts),
        collective=sum(p.collective for p in parts),
        sizes=tuple(map(sum, zip(*(p.sizes for p in parts), strict=True))),
    )


def calls_of(thread: Thread, ranks: int) -> Calls:
    """The calls by which the player moves the bytes of a stream, by the stream's own method."""
    sizes: Counter[int] = Counter()
    collectives = 0
    by_runs = thread.method in BY_RUNS
    for step, masks in files_of_steps(thread, ranks):
        for moved in moves(step.body):
            move, variable = moved.move, moved.move.variable
            number = variable.count * step.count * moved.times
            calls = _calls(
                alike(variable),
                ranks,
                ranks if moved.in_turn else thread.set.groups,
                move.call_bytes(thread.method),
                by_runs,
                moved.file_per_row,
            )
            for size, times in calls.sizes:
                sizes[size] += times * number
            if move.collective and not by_runs:
                many, (idle, here) = aligned([calls.idle, masks[variable.file]])
                empty = int((many * idle * here).sum())
                sizes[0] += empty * number
                collectives += (calls.count + empty) * number
    bins = [0] * len(BINS)
    for size, times in sizes.items():
        bins[bin_of(size)] += times
    return Calls(count=sum(bins), collective=collectives, sizes=tuple(bins))


@dataclass(frozen=True, slots=True)
class _Calls:
    """The calls of all ranks that move a variable, as (bytes, times); `idle` are those that each
    rank makes empty where they are collective: all of a file make as many as the one with most."""

    sizes: tuple[tuple[int, int], ...]
    idle: PerRank

    @property
    def count(self) -> int:
        return sum(times for _, times in self.sizes)


@lru_cache(maxsize=4096)
def _calls(
    variable: Variable,
    ranks: int,
    groups: int,
    transfer_bytes: int,
    by_runs: bool,
    file_per_row: bool,
) -> _Calls:
    segments = Segments(ranks, groups, [variable], [])
    block = segments.block(variable, False)
    cuts, which = block.kinds(transfer_bytes, file_per_row)
    blocks = np.zeros(len(cuts), np.int64)
    rows = block.size // variable.row_bytes if file_per_row else 1
    np.add.at(blocks, which, segments.counts * rows)
    sizes: Counter[int] = Counter()
    for cut, number in zip(cuts, blocks.tolist(), strict=True):
        for size, times in () if cut is None else cut.runs if by_runs else cut.sizes:
            sizes[size] += times * number
    calls = np.array([0 if cut is None else cut.transfers for cut in cuts], np.int64)[which]
    idle = segments.most_in_file(calls) - calls
    return _Calls(sizes=tuple(sizes.items()), idle=PerRank(segments.counts, idle))

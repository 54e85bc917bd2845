"""Runs of calls, in which the evaluator says what the ranks do.

A number of each rank is given for each segment of ranks that are alike. A place is that of the
first rank of a segment, and grows by a slope from rank to rank and by `growth` from dump to dump.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from understudy.program.block_calls import Calls, Mask, Whole
from understudy.program.instructions import Files, FileSet, Move, Open, Step, Stream
from understudy.program.segments import Block


@dataclass(frozen=True, slots=True)
class Opened:
    """`ranks` open a file of the set. `makes`: those that make or empty it, `leads` of them its
    first rank; the others find it there. `lent`: those that use the open of the stream whose file
    it is instead. `fresh`: no content had the file before."""

    file: int
    how: Open
    ranks: Mask
    makes: Mask
    leads: Mask
    lent: Mask
    fresh: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """`ranks` of a file move their blocks of a variable, `times` for each pass. The dataset of the
    first rank of a segment begins at `begin`, or so many bytes behind the variable `place` of the
    stream whose file it is."""

    move: Move
    ranks: Mask
    times: int
    in_turn: bool
    block: Block
    calls: Calls
    begin: Whole
    slope: Whole
    growth: Whole
    place: str | None = None
    loop: int = 0  # those of a loop are made together, again and again

    @property
    def at(self) -> Whole:
        """The first byte of the block."""
        return self.begin + self.block.at

    @property
    def end(self) -> Whole:
        """Behind its last byte."""
        return self.begin + self.block.end

    @property
    def idle(self) -> Whole:
        """Empty calls of each rank, between which others move their bytes together."""
        if not self.move.collective or self.in_turn:
            return 0 * self.calls.transfers
        most = self.block.segments.most_in_file(self.calls.transfers)
        return np.where(self.takes_part, most - self.calls.transfers, 0)

    def sizes(self, by_runs: bool) -> Counter[int]:
        """The calls of all ranks by size, for one of the variables: `by_runs` one for each run of
        bytes, else one for each transfer, with the empty ones of those that are collective."""
        counts = Counter(self.calls.runs if by_runs else self.calls.boxes)
        if not by_runs and (idle := int((self.idle * self.block.segments.counts).sum())):
            counts[0] += idle
        return counts

    @property
    def takes_part(self) -> Mask:
        """The ranks of files that have bytes of the variable."""
        return self.ranks & (self.block.whole > 0)


@dataclass(frozen=True, slots=True)
class Rows:
    """The files of a row each: as many of each move as a rank has rows, with the calls of
    one; all of it `times`. `fresh`: no content had these files before."""

    files: Files
    times: int
    moves: tuple[tuple[Move, Block, Calls], ...]
    fresh: bool

    @property
    def number(self) -> int:
        """Files of all ranks."""
        return sum(_rows(move, block) for move, block, _ in self.moves)

    @property
    def sizes(self) -> Counter[int]:
        """The calls of all ranks by size."""
        counts: Counter[int] = Counter()
        for move, block, calls in self.moves:
            cut = next((c for c in calls.cuts if c is not None), None)
            for size, times in cut.sizes if cut else ():
                counts[size] += times * _rows(move, block)
        return counts


def _rows(move: Move, block: Block) -> int:
    return move.variable.count * int((block.rows * block.segments.counts).sum())


@dataclass(frozen=True, slots=True)
class Synced:
    """`ranks` flush a file."""

    file: int
    ranks: Mask


@dataclass(frozen=True, slots=True)
class Closed:
    """`ranks` close a file of a stream."""

    stream: Stream
    file: int
    ranks: Mask


@dataclass(frozen=True, slots=True)
class Operated:
    """So many operations of each rank; `opened` are the files that are open, and their ranks."""

    kind: str
    each: Whole
    opened: tuple[tuple[int, Mask], ...]
    rows: Whole | None  # files of each rank in a flood


Call: TypeAlias = Opened | Moved | Rows | Synced | Closed | Operated
Place: TypeAlias = tuple[Whole, Whole, Whole]  # begin, slope, growth


@dataclass(slots=True)
class Dumps:
    """Equal dumps of a step, from dump `first` of the stream on: `count` that make the same calls
    but for the growth of places. `content` is that of the first; `places` are those of variables,
    in the first."""

    step: Step
    first: int
    number: int  # of the first in its step
    count: int
    content: int
    begins: bool
    masks: Mapping[int, Mask]
    calls: list[Call]
    places: Mapping[str, Place]

    def set_of(self, files: FileSet, k: int) -> int | None:
        """The index in the names of the files of dump k."""
        content = self.content + (k if self.begins else 0)
        if not files.numbered:
            return None
        return content % files.names if files.names else content

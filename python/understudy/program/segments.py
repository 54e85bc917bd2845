"""Where the blocks of variables lie in the files of a set.

Ranks that are alike are in one segment, so that the cost grows with the runs of a descriptor and
not with its ranks; but for grids in files of all ranks, where each rank is a segment.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from understudy.program.block_calls import Calls, Cut, Mask, Whole, cut_of
from understudy.program.instructions import (
    EACH_ROW,
    Move,
    Operate,
    Runs,
    Stream,
    begins_content,
    instructions,
    variables_of,
)
from understudy.program.needs import borrows
from understudy.program.types import TYPE_BYTES, Order, Variable


class Segments:
    """The ranks of a set of files in segments of consecutive ones that are alike."""

    def __init__(
        self, ranks: int, groups: int, variables: Iterable[Variable], numbers: Iterable[Runs]
    ) -> None:
        self.ranks, self.groups = ranks, groups
        self._alike = {alike(v): v for v in variables}
        ends = [_ends(v, ranks, groups) for v in self._alike]
        ends += [np.cumsum([n for n, _ in runs]) for runs in numbers]
        if 1 < groups < ranks:
            ends.append(-(-np.arange(1, groups + 1) * ranks // groups))
        self._cut(np.unique(np.concatenate([np.array([ranks]), *ends]).astype(np.int64)))

    def _cut(self, ends: Whole) -> None:
        self.ends = ends
        self.starts: Whole = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        self.counts: Whole = ends - self.starts
        per_rank = self.groups == self.ranks
        self.group: Whole = self.starts if per_rank else self.starts * self.groups // self.ranks
        firsts = -(-self.group * self.ranks // self.groups)
        self.firsts: Whole = self.starts if per_rank else firsts
        behind = -(-(self.group + 1) * self.ranks // self.groups)
        self.behind: Whole = self.starts + 1 if per_rank else behind
        self._blocks: dict[tuple[Variable, bool], Block] = {}

    @property
    def alone(self) -> bool:
        """True if each rank has files of its own."""
        return self.groups == self.ranks

    def split_leads(self, opened: Iterable[Mask]) -> None:
        """Cut so that the first rank of each file is a segment of its own."""
        if not self.alone:
            leads = [self.starts[self.leads(mask)] + 1 for mask in opened]
            self._cut(np.unique(np.concatenate([self.ends, *leads])))

    def leads(self, opened: Mask) -> Mask:
        """The segments with the first rank of each file that these ranks open."""
        if self.alone:
            return opened
        lead = np.zeros(len(self.starts), np.bool_)
        where = np.flatnonzero(opened)
        if len(where):
            groups = self.group[where]
            lead[where[np.concatenate([[True], groups[1:] != groups[:-1]])]] = True
        return lead

    def in_file(self, numbers: Whole) -> Whole:
        """For each segment the sum over the ranks of its group."""
        if self.alone:
            return numbers
        sums = np.zeros(self.groups, np.int64)
        np.add.at(sums, self.group, numbers * self.counts)
        return sums[self.group]

    def most_in_file(self, numbers: Whole) -> Whole:
        """For each segment the largest number of a rank of its group."""
        if self.alone:
            return numbers
        most = np.zeros(self.groups, np.int64)
        np.maximum.at(most, self.group, numbers)
        return most[self.group]

    def spread(self, runs: Runs) -> Whole:
        """Number of each segment, from runs of ranks."""
        ends = np.cumsum([n for n, _ in runs])
        each = np.array([k for _, k in runs], np.int64)
        return each[np.searchsorted(ends, self.starts, "right")]

    def block(self, variable: Variable, turns: bool) -> "Block":
        """The blocks of one variable like this; in `turns` each rank has a dataset of its own."""
        key = (alike(variable), turns)
        if key not in self._blocks:
            self._blocks[key] = Block(self, key[0], turns)
        return self._blocks[key]


def alike(variable: Variable) -> Variable:
    """Common form of variables of the same blocks."""
    return replace(variable, name="v", label="", count=1, file=0, at=None, collective=None)


def _ends(variable: Variable, ranks: int, groups: int) -> Whole:
    """The rank behind each run of ranks that are alike."""
    if variable.decomposition.rule == "grid" and groups == 1:
        return np.arange(1, ranks + 1)
    return np.cumsum([n for n, _ in variable.rank_runs(ranks)])


class Block:
    """Blocks of a variable of the ranks of each segment, in bytes: `size` of each; where the block
    of the first rank begins in its dataset (`at`) and ends (`end`), and by how much that grows
    from rank to rank (`slope`); the bytes of the dataset (`whole`), and those of ranks before in
    its file (`before`).
    """

    def __init__(self, segments: Segments, variable: Variable, turns: bool) -> None:
        self.segments, self.variable = segments, variable
        self._calls: dict[tuple[int, Order, bool], Calls] = {}
        rule = variable.decomposition
        many, each = np.array(variable.rank_runs(segments.ranks), np.int64).T
        ends = np.cumsum(many)
        sums = np.concatenate([[0], np.cumsum(many * each)])
        self.size: Whole = each[np.searchsorted(ends, segments.starts, "right")]
        self.at: Whole = np.zeros(len(self.size), np.int64)
        self.slope: Whole = np.zeros(len(self.size), np.int64)
        self.whole: Whole = self.size
        self.end: Whole = self.size
        alone = segments.alone or turns
        several = segments.behind - segments.firsts > 1
        self._apart: Mask = several & (rule.rule == "cyclic" and not alone)
        one_file = segments.groups == 1 and (not turns or segments.ranks == 1)
        self.scattered = rule.rule == "grid" and one_file

        def before(rank: Whole) -> Whole:
            run = np.minimum(np.searchsorted(ends, rank, "right"), len(each) - 1)
            begins: Whole = sums[run] + (rank - (ends - many)[run]) * each[run]
            return begins

        first = before(segments.firsts)
        self.before: Whole = before(segments.starts) - first
        if alone and not self.scattered:
            return
        self.whole = before(segments.behind) - first
        if self.scattered:
            self._place_grid()
        elif rule.rule == "cyclic":
            part = rule.block * variable.row_bytes
            together = segments.behind - segments.firsts
            parts = -(-self.size // part)
            self.at = part * (segments.starts - segments.firsts)
            self.end = self.at + np.where(
                parts > 0, (parts - 1) * part * together + self.size - (parts - 1) * part, 0
            )
            self.slope = np.full(len(self.size), part)
        else:
            self.at = self.before
            self.end = self.at + self.size
            self.slope = self.size

    def _place_grid(self) -> None:
        shape, grid = self.variable.shape, self.variable.decomposition.grid
        left, stride = self.segments.starts.copy(), TYPE_BYTES[self.variable.type]
        self.at = np.zeros(len(left), np.int64)
        self._sides: Whole = np.zeros(len(left), np.int64)  # which are longer by one than others
        self.end = np.full(len(left), stride)
        self.slope = np.zeros(len(left), np.int64)
        for length, parts in zip(reversed(shape), reversed(grid), strict=True):
            index, left = left % parts, left // parts
            low, extra = divmod(length, parts)
            start = index * low + np.minimum(index, extra)
            count = low + (index < extra)
            self._sides = 2 * self._sides + (index < extra)
            self.at += start * stride
            self.end += (start + count - 1) * stride
            stride *= length

    @property
    def rows(self) -> Whole:
        """Rows of dimension 0 that a rank has."""
        return self.size // self.variable.row_bytes

    def calls(self, transfer_bytes: int, order: Order, file_per_row: bool = False) -> "Calls":
        """The calls that move the blocks; with a `file_per_row`, one row of them."""
        key = transfer_bytes, order, file_per_row
        if key not in self._calls:
            kinds = self._sides if self.scattered else 2 * self.size + self._apart
            _, first, which = np.unique(kinds, return_index=True, return_inverse=True)
            cuts = [self._cut_of(k, transfer_bytes, file_per_row) for k in first.tolist()]
            self._calls[key] = Calls.of(cuts, which, order, self.segments.counts)
        return self._calls[key]

    def _cut_of(self, k: int, transfer_bytes: int, file_per_row: bool) -> "Cut | None":
        """Calls of segment k."""
        variable, size = self.variable, int(self.size[k])
        shape, grid = variable.shape, variable.decomposition.grid
        element = TYPE_BYTES[variable.type]
        block = (size // variable.row_bytes, *shape[1:])
        if size == 0:
            return None
        if file_per_row:
            block = (1, *shape[1:])
        elif self.scattered:
            block = _grid_block(int(self.segments.starts[k]), shape, grid)
        elif grid:
            block, shape = (size // element,), (math.prod(shape),)
        rows = variable.decomposition.block or shape[0]
        most = max(1, transfer_bytes // element)
        return cut_of(block, shape, rows, most, element, bool(self._apart[k]))


def _grid_block(rank: int, shape: Sequence[int], grid: Sequence[int]) -> tuple[int, ...]:
    block = []
    for length, parts in zip(reversed(shape), reversed(grid), strict=True):
        rank, index = divmod(rank, parts)
        block.append(length // parts + (index < length % parts))
    return tuple(reversed(block))


def segments_of(streams: Sequence[Stream], ranks: int) -> Segments:
    """The ranks of a set of files, in segments that are alike in these streams."""
    files = streams[0].set
    each = [i for t in streams for i in instructions(t)]
    segments = Segments(
        ranks,
        ranks if files.owner == EACH_ROW else files.groups,
        [i.variable for i in each if isinstance(i, Move)],
        [i.runs for i in each if isinstance(i, Operate)],
    )
    if not segments.alone:
        contents = {c for t in streams for c in _variables_of_contents(t)}
        segments.split_leads(m for c in contents for m in masks_of(segments, c).values())
    return segments


def _variables_of_contents(stream: Stream) -> Iterator[tuple[Variable, ...]]:
    """Those whose ranks are the ranks of files: of each content, or of all where files are used
    again."""
    steps = stream.steps
    again = stream.set.names is not None and not borrows(stream)
    begins = [0, *(i for i, s in enumerate(steps) if i and begins_content(s) and not again)]
    for begin, end in pairwise((*begins, len(steps))):
        yield tuple(variables_of(s.body for s in steps[begin:end]))


def masks_of(segments: Segments, variables: Sequence[Variable]) -> dict[int, Mask]:
    """Masks of the segments with bytes in each file."""
    masks: dict[int, Mask] = {}
    for variable in dict.fromkeys(variables):
        has = segments.block(variable, False).size > 0
        file = variable.file
        masks[file] = masks[file] | has if file in masks else has
    return dict(sorted(masks.items(), key=lambda each: each[0]))

"""Where the blocks of variables lie in the files of a set, and the calls that move them.

Ranks that are alike are in one segment, so that the cost grows with the runs of a descriptor and
not with its ranks; but for grids in files of all ranks, where each rank is a segment.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from understudy.semantics.program import Runs
from understudy.semantics.types import TYPE_BYTES, Order, Variable

Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Sizes = tuple[tuple[int, int], ...]  # (bytes of a call, how many)


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
        own = self.groups == self.ranks
        self.group: Whole = self.starts if own else self.starts * self.groups // self.ranks
        firsts = -(-self.group * self.ranks // self.groups)
        self.firsts: Whole = self.starts if own else firsts
        behind = -(-(self.group + 1) * self.ranks // self.groups)
        self.behind: Whole = self.starts + 1 if own else behind
        self._blocks: dict[tuple[Variable, bool], Block] = {}

    @property
    def alone(self) -> bool:
        """Whether each rank has files of its own."""
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
        """Of runs of ranks the number of each segment."""
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
    """What variables of the same blocks have in common."""
    return replace(variable, name="v", label="", count=1, file=0, at=None, collective=None)


def _ends(variable: Variable, ranks: int, groups: int) -> Whole:
    """The rank behind each run of ranks that are alike."""
    if variable.decomposition.rule == "grid" and groups == 1:
        return np.arange(1, ranks + 1)
    return np.cumsum([n for n, _ in variable.rank_runs(ranks)])


class Block:
    """What the ranks of each segment have of a variable, in bytes: `size` of each; where the
    block of the first rank begins in its dataset (`at`) and ends (`end`), and by how much that
    grows from rank to rank (`slope`); the bytes of the dataset (`whole`), and those of ranks
    before in its file (`before`).
    """

    def __init__(self, segments: Segments, variable: Variable, turns: bool) -> None:
        self._segments, self._variable = segments, variable
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
        shape, grid = self._variable.shape, self._variable.decomposition.grid
        left, stride = self._segments.starts.copy(), TYPE_BYTES[self._variable.type]
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

    def cuts(self, transfer_bytes: int, file_per_row: bool = False) -> list["Cut | None"]:
        """How the block of each segment is cut into transfers; with a `file_per_row`, that of one
        row."""
        cuts, which = self.kinds(transfer_bytes, file_per_row)
        return [cuts[k] for k in which.tolist()]

    def kinds(self, transfer_bytes: int, file_per_row: bool) -> tuple[list["Cut | None"], Whole]:
        """How blocks are cut into transfers, each way once, and which of these ways each segment
        has."""
        kinds = self._sides if self.scattered else 2 * self.size + self._apart
        _, first, which = np.unique(kinds, return_index=True, return_inverse=True)
        return [self._cut_of(k, transfer_bytes, file_per_row) for k in first.tolist()], which

    def _cut_of(self, k: int, transfer_bytes: int, file_per_row: bool) -> "Cut | None":
        """Of segment k."""
        variable, size = self._variable, int(self.size[k])
        shape, grid = variable.shape, variable.decomposition.grid
        element = TYPE_BYTES[variable.type]
        block = (size // variable.row_bytes, *shape[1:])
        if size == 0:
            return None
        if file_per_row:
            block = (1, *shape[1:])
        elif self.scattered:
            block = _grid_block(int(self._segments.starts[k]), shape, grid)
        elif grid:
            block, shape = (size // element,), (math.prod(shape),)
        rows = variable.decomposition.block or shape[0]
        return _cut(block, shape, rows, transfer_bytes // element, element, bool(self._apart[k]))


def _grid_block(rank: int, shape: Sequence[int], grid: Sequence[int]) -> tuple[int, ...]:
    block = []
    for length, parts in zip(reversed(shape), reversed(grid), strict=True):
        rank, index = divmod(rank, parts)
        block.append(length // parts + (index < length % parts))
    return tuple(reversed(block))


@dataclass(frozen=True, slots=True)
class Cut:
    """The transfers of a block in their order: `parts` of it one after the other, each `outer`
    rounds of `inner` (bytes, times); the calls of those that move one run of consecutive bytes
    (`runs`); and the runs that cannot be joined (`strands`)."""

    rounds: tuple[tuple[int, Sizes], ...]  # (rounds, transfers of each)
    runs: Sizes
    strands: int

    @property
    def transfers(self) -> int:
        """How many there are."""
        return sum(times * sum(n for _, n in sizes) for times, sizes in self.rounds)

    @property
    def calls(self) -> int:
        """How many, where each moves one run of bytes."""
        return sum(n for _, n in self.runs)

    @property
    def sizes(self) -> Sizes:
        """The transfers, whatever their order."""
        found: Counter[int] = Counter()
        for times, sizes in self.rounds:
            for size, n in sizes:
                found[size] += times * n
        return tuple(found.items())

    @property
    def largest(self) -> int:
        """Bytes of the largest transfer."""
        return max(size for _, sizes in self.rounds for size, _ in sizes)


@lru_cache(maxsize=4096)
def _cut(
    block: tuple[int, ...], shape: tuple[int, ...], rows: int, most: int, element: int, apart: bool
) -> Cut:
    """`rows` that no transfer crosses; `apart`: what is behind them belongs to another rank."""
    rounds: list[tuple[int, Sizes]] = []
    runs: Counter[int] = Counter()
    strands = 0
    whole, rest = divmod(block[0], rows)
    for part, times in ((rows, whole), (rest, 1)):
        if part == 0 or times == 0:
            continue
        outer, boxes = _boxes([part, *block[1:]], most)
        rounds.append((times * outer, tuple((math.prod(b) * element, n) for b, n in boxes)))
        for box, n in boxes:
            run, number = _span(box, shape)
            runs[run * element] += times * outer * n * number
        strands += times * _span([part, *block[1:]], shape)[1]
    if not apart and tuple(block[1:]) == shape[1:]:
        strands = 1
    return Cut(tuple(rounds), tuple(runs.items()), strands)


def _boxes(block: list[int], most: int) -> tuple[int, list[tuple[list[int], int]]]:
    """Rounds, and the boxes of each of at most so many elements, with how often each occurs."""
    dim, inner = len(block) - 1, 1
    while dim > 0 and inner * block[dim] <= most:
        inner *= block[dim]
        dim -= 1
    rows = min(most // inner, block[dim])
    whole, rest = divmod(block[dim], rows)
    head, tail = [1] * dim, block[dim + 1 :]
    boxes = [([*head, rows, *tail], whole)]
    if rest:
        boxes.append(([*head, rest, *tail], 1))
    return math.prod(block[:dim]), boxes


def _span(box: Sequence[int], shape: tuple[int, ...]) -> tuple[int, int]:
    """Elements of each run of consecutive ones in a dataset of that shape, and how many runs."""
    dim = len(box) - 1
    while dim > 0 and box[dim] == shape[dim]:
        dim -= 1
    return math.prod(box[dim:]), math.prod(box[:dim])


@dataclass(slots=True)
class Calls:
    """The calls that move a block of each segment, and those of all ranks by size."""

    cuts: list[Cut | None]
    transfers: Whole
    consecutive: Whole
    sequential: Whole
    exact: Mask  # the last call ends the block
    by_chance: bool  # nobody knows which calls go on behind the one before
    runs: Counter[int]  # one for each run of consecutive bytes
    boxes: Counter[int]  # one for each transfer

    @classmethod
    def of(cls, cuts: list[Cut | None], order: Order, counts: Whole) -> "Calls":
        """Those of a block that is cut like this."""
        known = [(0, 0, True) if cut is None else placed(order, cut) for cut in cuts]
        sure = [each or (0, 0, True) for each in known]
        made = cls(
            cuts=cuts,
            transfers=np.array([0 if c is None else c.transfers for c in cuts], np.int64),
            consecutive=np.array([c for c, _, _ in sure], np.int64),
            sequential=np.array([s for _, s, _ in sure], np.int64),
            exact=np.array([e for _, _, e in sure], np.bool_),
            by_chance=None in known,
            runs=Counter(),
            boxes=Counter(),
        )
        for cut, ranks in zip(cuts, counts.tolist(), strict=True):
            if cut is not None:
                for size, number in cut.runs:
                    made.runs[size] += ranks * number
                for size, number in cut.sizes:
                    made.boxes[size] += ranks * number
        return made


def placed(order: Order, cut: Cut) -> tuple[int, int, bool] | None:
    """Of the calls of a block, those that go on behind the one before, those at a higher place,
    and whether the last one ends the block; None: it depends on chance."""
    calls, transfers = cut.calls, cut.transfers
    if order.rule == "consecutive" or transfers == 1:
        return calls - cut.strands, calls - 1, True
    if order.rule == "shuffled":
        return None
    if transfers <= order.step or order.step == 1:
        return calls - cut.strands, calls - 1, True
    rows, longer = divmod(transfers, order.step)
    within = longer * rows + (order.step - longer) * (rows - 1)
    beside = order.step - longer - 1 if rows == 1 else 0
    consecutive = beside if cut.strands == 1 else 0
    return consecutive, calls - transfers + within + beside, longer == 0


def compare(gap: Whole, growth: Whole, counts: Whole) -> tuple[Whole, Whole]:
    """Of each segment the ranks i below `counts` for which gap + i growth is 0, and those for
    which it is not negative."""
    step = np.where(growth == 0, 1, growth)
    at, rest = -gap // step, -gap % step
    zero = np.where(
        growth == 0,
        counts * (gap == 0),
        ((rest == 0) & (at >= 0) & (at < counts)).astype(np.int64),
    )
    up = counts - np.clip(-(gap // np.abs(step)), 0, counts)
    down = np.clip(gap // np.abs(step) + 1, 0, counts)
    more = np.where(growth == 0, counts * (gap >= 0), np.where(growth > 0, up, down))
    return zero, more

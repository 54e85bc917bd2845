"""The calls that move blocks of variables."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from understudy.program.types import Order

Whole = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Sizes = tuple[tuple[int, int], ...]  # (bytes of a call, how many)


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
        counts: Counter[int] = Counter()
        for times, sizes in self.rounds:
            for size, n in sizes:
                counts[size] += times * n
        return tuple(counts.items())

    @property
    def largest(self) -> int:
        """Bytes of the largest transfer."""
        return max(size for _, sizes in self.rounds for size, _ in sizes)


@lru_cache(maxsize=4096)
def cut_of(
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

    cuts: list[Cut | None]  # each way once
    which: Whole  # of these that each segment has
    transfers: Whole
    consecutive: Whole
    sequential: Whole
    exact: Mask  # the last call ends the block
    by_chance: bool  # nobody knows which calls go on behind the one before
    runs: Counter[int]  # one for each run of consecutive bytes
    boxes: Counter[int]  # one for each transfer

    @classmethod
    def of(cls, cuts: list[Cut | None], which: Whole, order: Order, counts: Whole) -> "Calls":
        """Those of blocks that are cut like this."""
        placements = [(0, 0, True) if cut is None else placed(order, cut) for cut in cuts]
        sure = [each or (0, 0, True) for each in placements]
        ranks = np.zeros(len(cuts), np.int64)
        np.add.at(ranks, which, counts)
        calls = cls(
            cuts=cuts,
            which=which,
            transfers=np.array([0 if c is None else c.transfers for c in cuts], np.int64)[which],
            consecutive=np.array([c for c, _, _ in sure], np.int64)[which],
            sequential=np.array([s for _, s, _ in sure], np.int64)[which],
            exact=np.array([e for _, _, e in sure], np.bool_)[which],
            by_chance=None in placements,
            runs=Counter(),
            boxes=Counter(),
        )
        for cut, many in zip(cuts, ranks.tolist(), strict=True):
            if cut is not None:
                for size, number in cut.runs:
                    calls.runs[size] += many * number
                for size, number in cut.sizes:
                    calls.boxes[size] += many * number
        return calls

    def cut(self, s: int) -> Cut | None:
        """That of segment s."""
        return self.cuts[int(self.which[s])]


def placed(order: Order, cut: Cut) -> tuple[int, int, bool] | None:
    """Numbers of calls of a block that go on behind the one before, and at a higher place, and
    whether the last one ends the block; None: it depends on chance."""
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
    """For each segment, the numbers of ranks i below `counts` for which gap + i growth is 0, and
    for which it is not negative."""
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

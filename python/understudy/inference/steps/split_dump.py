"""A dump divided into time steps: evenly, as a rule, or as bursts share its bytes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.calls.operations import share_of, together
from understudy.inference.calls.transfers import Tally
from understudy.inference.steps.heatmap import Burst
from understudy.inference.streams.file_series import CELLS, Cell, DumpFacts, bin_edges

RULE_STEPS = levels.THOUSAND  # regular ones from which on they are held as a rule
SHORTEST_S = levels.MOMENT_S  # between two of them

Bytes = npt.NDArray[np.int64]


class Edges:
    """Where the time steps of a dump begin and end, in bytes of the whole.

    Attributes:
        at: their borders; step k lies between the k-th and the one after it. A range, from 0,
            where a rule has any number of equal ones.
        even: whether all are of one size.
    """

    def __init__(self, at: Sequence[int]) -> None:
        self.at = at
        steps = len(at) - 1
        self.even = isinstance(at, range) or all(
            edge * steps == n * at[-1] for n, edge in enumerate(at)
        )


def evenly(dump: DumpFacts, steps: int) -> list[DumpFacts]:
    """Equal time steps, spread evenly from the first write to the last."""
    period_s = (dump.end_s - dump.start_s) / max(1, steps - 1)
    if steps > RULE_STEPS:
        return as_rule(dump, dump.start_s, period_s, 0.0, steps)
    times = [dump.start_s + k * period_s for k in range(steps)]
    return divide(dump, [Burst(start_s=t, end_s=t, bytes=1) for t in times])


def as_rule(
    dump: DumpFacts, start_s: float, period_s: float, length_s: float, steps: int
) -> list[DumpFacts]:
    """So many equal time steps as a rule; the last one, with what is left, alone."""
    edges = Edges(range(steps + 1))
    period_s = max(period_s, SHORTEST_S)
    last_s = start_s + (steps - 1) * period_s
    rule = DumpFacts(
        cells={key: share(cell, 0, edges) for key, cell in dump.cells.items()},
        start_s=start_s,
        end_s=start_s + length_s,
        count=steps - 1,
        period_s=period_s,
    )
    last = DumpFacts(
        cells={key: _rest(cell, rule.cells[key], steps - 1) for key, cell in dump.cells.items()},
        start_s=last_s,
        end_s=last_s + length_s,
    )
    return [rule, last] if rule.bytes else divide(dump, [_whole(dump)])


def _rest(cell: Cell, each: Cell, times: int) -> Cell:
    """Remainder of a cell for the last time step, behind `times` equal ones."""
    left = share(cell, times, Edges(range(times + 2)))
    left.shared_bytes = cell.shared_bytes - times * each.shared_bytes
    if cell.rank_bytes is not None and each.rank_bytes is not None:
        left.rank_bytes = cell.rank_bytes - times * each.rank_bytes
    if cell.operations is not None and each.operations is not None:
        whole = (
            cell.operations
            if cell.operations.shape == each.operations.shape
            else together(cell.operations)
        )
        left.operations = whole - times * each.operations
    return left


def _whole(dump: DumpFacts) -> Burst:
    return Burst(start_s=dump.start_s, end_s=dump.end_s, bytes=1)


def divide(dump: DumpFacts, bursts: Sequence[Burst]) -> list[DumpFacts]:
    """Divide the dump among the bursts; the bytes of each rank in proportion to theirs."""
    edges = Edges([0, *accumulate(b.bytes for b in bursts)])
    burst_calls = [b.calls for b in bursts if b.calls is not None]
    told = len(burst_calls) == len(bursts) and any(
        (k != burst_calls[0]).any() for k in burst_calls
    )
    calls = np.cumsum([0 * burst_calls[0], *burst_calls], axis=0) if told else None
    dump = coarser(dump, len(bursts))
    return [
        DumpFacts(
            cells={key: share(cell, k, edges, calls) for key, cell in dump.cells.items()},
            start_s=burst.start_s,
            end_s=burst.end_s,
        )
        for k, burst in enumerate(bursts)
    ]


def coarser(dump: DumpFacts, steps: int) -> DumpFacts:
    """The same with blocks of ranks, as small as memory allows for so many time steps; the calls
    of all ranks together where those of each block would be too many."""
    cells = {}
    numbers = CELLS // (steps * max(1, len(dump.cells)))  # of a cell, at most
    for key, cell in dump.cells.items():
        whole = bins = 0 if cell.rank_bytes is None else len(cell.rank_bytes)
        while bins > max(2, numbers):  # two are noted as blocks
            bins = (bins + 1) // 2
        if cell.rank_bytes is not None and bins < whole:
            first, calls = bin_edges(whole, bins)[:-1], cell.rank_calls
            if calls.bins > 1:
                many = 2 * len(calls.kinds) * bins > numbers
                calls = calls.blocks(np.zeros(1, np.int64) if many else first)
            moved = np.add.reduceat(cell.rank_bytes, first)
            cell = replace(cell, rank_bytes=moved, rank_calls=calls)
        cells[key] = cell
    return replace(dump, cells=cells)


def share(cell: Cell, k: int, edges: Edges, calls: Bytes | None = None) -> Cell:
    """Time step k of a cell: its bytes in proportion to the distance of edges k and k + 1; the
    calls in that of `calls`, or equally many in each."""
    low, high, total = edges.at[k], edges.at[k + 1], edges.at[-1]
    steps, portion = len(edges.at) - 1, (high - low) / total

    def scaled(size: int) -> int:
        rows = size // cell.element
        if edges.even:  # the larger ones last: to read files of another size, they are made anew
            return (rows // steps + (k >= steps - rows % steps)) * cell.element
        return (rows * high // total - rows * low // total) * cell.element

    def made(tally: Tally) -> Tally:
        if calls is None:
            return tally.step(k, steps, (low, high, total))
        return tally.portion(calls[k], calls[k + 1], calls[-1])

    ranks = cell.rank_bytes
    return Cell(
        rank_bytes=None
        if ranks is None
        else np.array([scaled(n) for n in ranks.tolist()], np.int64),
        rank_calls=made(cell.rank_calls),
        shared_bytes=scaled(cell.shared_bytes),
        shared_calls=made(cell.shared_calls),
        even=cell.even,
        element=cell.element,
        start_s=cell.start_s,
        end_s=cell.end_s,
        file=cell.file,
        busy_s=cell.busy_s * portion,
        operations=share_of(cell.operations, k, steps),
    )

"""Parts of a shared file that are not one run of bytes: columns of an array, or what a view shows.

A call of HDF5 or MPI-IO may move many runs of bytes. Below it, POSIX then has a call for each run,
which begins behind a gap: the runs of other ranks. Of these calls a log tells sizes, how many jump
ahead, and the most common gap. Such a part is described as a grid: each row of a variable has a
run of each rank.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from understudy.contracts.workload import EVEN, Decomposition
from understudy.inference import constants as levels
from understudy.inference.calls.transfers import Piece
from understudy.inference.table import Rows
from understudy.program.counters import bin_of

JUMPING = levels.HALF  # share of the calls that begin behind a gap
AHEAD = 1 - levels.SOME  # share of the calls that go forward
NEAR = levels.SMALL  # share of the bytes that sizes of runs may miss
KINDS = levels.SEVERAL  # sizes of runs
RUNS = levels.MANY  # of a rank in a part, below which they may be variables of their own
AGGREGATED = levels.LARGE  # bytes of a call from which on it may join those of other ranks

Key = tuple[int, bool]  # a file, and whether it is written


@dataclass(frozen=True, slots=True)
class Strands:
    """The runs of a file in one direction: (bytes of one, share of the bytes), from the smallest
    on; none if they do not add up. `across`: the ranks that have a run in each row, if the gaps
    tell; else 0. `joined`: there are no gaps, but HDF5 cut its calls all the same."""

    runs: tuple[tuple[int, float], ...] = ()
    across: int = 0
    joined: bool = False


def find(asked: Sequence[Rows], posix: Rows, ranks: int) -> Iterator[tuple[Key, Strands]]:
    """The strands of the files whose calls of a library (`asked`, rows of accesses) became calls
    of POSIX that jump ahead, or many more of them."""
    names = ["file", "write"]
    columns = [*names, "bytes", "collectives", "element", "calls"]
    above = np.concatenate([rows[columns] for rows in asked])
    if ranks < 2 or not len(above) or not len(posix):
        return
    keys, index = np.unique(
        np.concatenate([above[names], posix[names]]), return_inverse=True, axis=0
    )
    upper, lower = np.split(index.ravel(), [len(above)])
    moved, together, opens, wanted = np.zeros((4, len(keys)), np.int64)
    order = np.zeros((len(keys), 3), np.int64)
    np.add.at(moved, upper, above["bytes"])
    np.add.at(together, upper, above["collectives"])
    np.add.at(wanted, upper, above["calls"].sum(axis=1))
    np.add.at(order, lower, posix["order"])
    np.add.at(opens, lower, posix["opens"])
    calls, follow, ahead = order.T
    forward = (moved > 0) & (calls >= RUNS * ranks) & (ahead >= AHEAD * calls)
    jumping = calls - follow - opens > JUMPING * calls
    cut = (calls >= RUNS * wanted) & (together == 0)
    for n in np.flatnonzero(forward & (jumping | cut)).tolist():
        file, write = keys[n].item()
        below = posix[lower == n]
        element = int(np.gcd.reduce(above["element"][upper == n]))
        runs = _sizes(below, int(moved[n]), element)
        largest = max((size for size, _ in runs), default=0)
        if (largest >= AGGREGATED and together[n]) or not (runs or jumping[n]):
            continue
        across = _across(below, ranks) if runs and jumping[n] else 0
        yield (file, write), Strands(runs=runs, across=across, joined=not jumping[n])


def _sizes(below: Rows, moved: int, element: int) -> tuple[tuple[int, float], ...]:
    """Sizes of most calls that add up to the bytes moved, and their shares; none if none do."""
    calls = below["calls"].sum(axis=0)
    size = (below["calls"] * below["sizes"].astype(np.float64)).sum(axis=0)
    main = [b for b in np.argsort(-size).tolist() if calls[b]][:KINDS]
    for n in range(1, len(main) + 1):
        some = [p for p in combinations(main, n) if calls[list(p)].sum() > JUMPING * calls.sum()]
        best = min(some, key=lambda part: abs(size[list(part)].sum() - moved), default=())
        whole = float(size[list(best)].sum())
        if best and abs(whole - moved) <= NEAR * moved:
            break
    else:
        return ()
    common = int(below["transfer"][int(np.argmax(below["bytes"]))])
    sizes = []
    for b in sorted(best):
        mean = round(size[b] / calls[b] / element) * element
        each = common if bin_of(common) == b and len(best) == 1 else mean
        sizes.append((max(element, each), float(size[b]) / whole))
    return tuple(sizes)


def _across(below: Rows, ranks: int) -> int:
    """How many ranks have a run in each row, where the gap is that of the others' runs."""
    most = below[int(np.argmax(below["gaps"]))]
    others, rest = divmod(int(most["gap"]), max(1, int(most["transfer"])))
    return others + 1 if others > 0 and not rest and not ranks % (others + 1) else 0


def interleaved(
    parts: Iterable[Piece], strands: Strands, ranks: int, usual_bytes: int
) -> Iterator[tuple[Piece, Decomposition | None]]:
    """The pieces with their runs as grids, the sizes of runs dealt to their calls; what is left
    behind the last whole row or a rank has beyond the others, and pieces of few runs or of unequal
    ranks, stay as they are (None)."""
    smallest = strands.runs[0][0]
    fit: list[Piece] = []
    for part in parts:
        if not _fits(part, smallest, ranks):
            yield part, None
            continue
        common = part.ranks * (part.rows // part.ranks).min()
        surplus = part.rows - common if len(common) > 1 else np.zeros(1, np.int64)
        if surplus.any():
            yield replace(part, rows=surplus), None
        fit.append(replace(part, rows=part.rows - surplus))
    across = strands.across or ranks
    rule = Decomposition(rule="grid", grid=(ranks // across, across))
    moved = list(map(_bytes, fit))
    calls = [(part.transfer_bytes or usual_bytes) * ranks for part in fit]
    rests = [0] * len(strands.runs)
    for part, call, dealt in zip(fit, calls, _dealt(moved, calls, strands, ranks), strict=True):
        for k, (size, _) in enumerate(strands.runs):
            rows, rests[k] = divmod(rests[k] + dealt[k], size * ranks)
            if rows:
                times = round(-(-sum(dealt) // call) * dealt[k] / sum(dealt))
                yield _grid(part, size, rows, ranks, across, times), rule
    if left := sum(rests):
        part = fit[-1]
        element = part.element if left % part.element == 0 else 1
        rest, total = np.array([left // element]), np.array([ranks])
        yield replace(part, ranks=total, rows=rest, row_elements=1, element=element), EVEN


def _dealt(moved: list[int], calls: list[int], strands: Strands, ranks: int) -> list[list[int]]:
    """The bytes of each piece that are in runs of each size, given the bytes of their calls: whole
    calls where these come near the share that a size has, large ones first."""
    left, whole = moved.copy(), sum(moved)
    dealt = [[0] * len(strands.runs) for _ in moved]
    order = sorted(range(len(moved)), key=lambda n: -calls[n])
    for k, (size, share) in enumerate(strands.runs[:-1]):
        wanted = round(share * whole / (size * ranks)) * size * ranks
        slack = NEAR * wanted

        def deal(n: int, taken: int, k: int = k) -> None:
            dealt[n][k] += taken
            left[n] -= taken

        for n in order:
            taken = min(left[n], wanted // calls[n] * calls[n])
            deal(n, taken)
            wanted -= taken
        for n in reversed(order):
            if wanted > slack and left[n]:
                taken = min(left[n], calls[n])
                taken = taken if taken <= wanted + slack else wanted
                deal(n, taken)
                wanted -= taken
        if wanted and order:  # what whole calls miss, by calls that are a little longer
            deal(max(order, key=lambda n: dealt[n][k]), wanted)
    for n, rest in enumerate(left):
        dealt[n][-1] += rest
    return dealt


def _grid(part: Piece, size: int, rows: int, ranks: int, across: int, calls: int) -> Piece:
    """So many runs of each rank, in about as many calls."""
    element = part.element if size % part.element == 0 else 1
    each = max(1, rows // max(1, calls))  # runs of a call
    each += -(-rows // each) - calls > calls - -(-rows // (each + 1))
    return replace(
        part,
        ranks=np.array([ranks]),
        rows=np.array([rows * (ranks // across)]),
        row_elements=across * size // element,
        element=element,
        transfer_bytes=each * size,
    )


def several(parts: Iterable[Piece], strands: Strands, ranks: int) -> bool:
    """True if the ranks have several runs each in all pieces together, as far as is known."""
    least = min((size for size, _ in strands.runs), default=0)
    return sum(map(_bytes, parts)) >= RUNS * least * ranks


def _bytes(part: Piece) -> int:
    return int(part.rows.sum()) * part.row_elements * part.element


def _fits(part: Piece, size: int, ranks: int) -> bool:
    """True if all ranks have about as many runs of a piece, and not few."""
    each = part.rows / part.ranks
    alike = each.max() - each.min() <= NEAR * each.max()
    return bool(alike and _bytes(part) >= RUNS * size * ranks)

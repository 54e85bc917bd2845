"""Blocks of the ranks of an array as its shape and decomposition."""

import math

import numpy as np
import numpy.typing as npt

from understudy.program.types import EVEN, Decomposition, runs_at_most

Integers = npt.NDArray[np.int64]
Tiling = tuple[tuple[int, ...], Decomposition]


def tiling(starts: Integers, counts: Integers, shape: tuple[int, ...]) -> Tiling | None:
    """Shape and decomposition of blocks that tile the global array in the order of the ranks, of
    each a block at `starts` with `counts` elements, both int64[ranks, dimensions]. None of others.
    """
    rule = _slabs(starts, counts, shape) or _grid(starts, counts, shape)
    return None if rule is None else (shape, rule)


def one_behind_the_other(counts: Integers) -> Tiling:
    """Shape and decomposition, with the block of each rank as a separate array."""
    if (counts == counts[0]).all():
        return (len(counts), *(int(n) for n in counts[0])), EVEN
    used = counts[counts.all(axis=1)]
    if len(used) and (used[:, 1:] == used[0, 1:]).all():
        rows = np.where(counts.all(axis=1), counts[:, 0], 0)
        tail = tuple(int(n) for n in used[0, 1:])
    else:
        rows, tail = counts.prod(axis=1), ()
    return (int(rows.sum()), *tail), of_rows(rows)


def _slabs(starts: Integers, counts: Integers, shape: tuple[int, ...]) -> Decomposition | None:
    """Slabs along the slowest dimension, rank after rank."""
    rows = counts[:, 0]
    firsts = np.concatenate(([0], np.cumsum(rows)[:-1]))
    used = rows > 0
    full = (counts[used, 1:] == np.asarray(shape[1:])).all()
    if not full or rows.sum() != shape[0] or (starts[used, 0] != firsts[used]).any():
        return None
    return of_rows(rows)


def of_rows(rows: Integers) -> Decomposition:
    """The decomposition of slabs with so many rows on each rank."""
    even = (rows == even_part(int(rows.sum()), len(rows), np.arange(len(rows)))[1]).all()
    return EVEN if even else runs_at_most((1, int(n)) for n in rows)


def _grid(starts: Integers, counts: Integers, shape: tuple[int, ...]) -> Decomposition | None:
    """Cartesian blocks, ranks in C order."""
    sides = tuple(len(np.unique(starts[:, d])) for d in range(len(shape)))
    if math.prod(sides) != len(counts):
        return None
    for d, places in enumerate(np.unravel_index(np.arange(len(counts)), sides)):
        start, size = even_part(shape[d], sides[d], np.asarray(places, dtype=np.int64))
        if (starts[:, d] != start).any() or (counts[:, d] != size).any():
            return None
    return Decomposition(rule="grid", grid=sides)


def even_part(rows: int, parts: int, place: Integers) -> tuple[Integers, Integers]:
    """Start and size of the parts at these places by the even rule of workloads."""
    low, extra = divmod(rows, parts)
    return place * low + np.minimum(place, extra), low + (place < extra)

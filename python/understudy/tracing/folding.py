"""Loops in lists of calls: what is repeated one behind the other becomes a body with a number of
passes, exactly; names and places may grow by the same from pass to pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from understudy.program.syscalls import LINEAR

Row: TypeAlias = dict[str, Any]
Linear: TypeAlias = tuple[int, ...]  # base, and a factor for each loop around, the outermost first

LONGEST = 512  # calls of a body that are looked for
DEEPEST = 4  # loops within each other, besides the one over ranks


@dataclass(frozen=True, slots=True)
class Item:
    """A call, or a loop: its shape, which has no names and places, and these in their order."""

    shape: Any
    values: tuple[Linear, ...]
    passes: int = 0  # of a loop
    body: tuple["Item", ...] = ()
    depth: int = 0


def item_of(row: Row) -> Item:
    """A call."""
    rest = {k: v for k, v in row.items() if k not in LINEAR}
    flags = tuple(rest.pop("flags", ()))
    shape = (tuple(sorted(rest.items())), flags, tuple(k for k in LINEAR if k in row))
    return Item(shape, tuple((row[k],) for k in LINEAR if k in row))


def row_of(item: Item) -> Row:
    """The same as the contract has it."""
    return _row(item, iter(item.values))


def _row(item: Item, values: Any) -> Row:
    if item.passes:
        return {"repeat": item.passes, "do": [_row(part, values) for part in item.body]}
    rest, flags, keys = item.shape
    row = dict(rest)
    for key in keys:
        row[key] = _shown(next(values))
    if flags:
        row["flags"] = list(flags)
    order = ("call", "path", "to", "of", "as", "bytes", "at", "moved", "flags")
    return {k: row[k] for k in (*order, *sorted(set(row) - set(order))) if k in row}


def _shown(value: Linear) -> Any:
    last = max((k for k, v in enumerate(value) if v), default=0)
    return value[0] if last == 0 else list(value[: last + 1])


def fold(items: Sequence[Item]) -> list[Item]:
    """The list with its loops, the shortest first, until there are no more."""
    numbers: dict[Any, int] = {}
    folded = _List(list(items), np.array([_kind(i, numbers) for i in items], np.int64))
    while True:
        before, length = len(folded.items), 1
        while length <= min(LONGEST, len(folded.items) // 2):
            shorter = _folded(folded, length, numbers)
            length = length + 1 if shorter is folded else 1
            folded = shorter
        if len(folded.items) == before:
            return folded.items


@dataclass(frozen=True, slots=True)
class _List:
    """Items, and the kind of each (i8 [n]): those of one kind can be passes of a loop."""

    items: list[Item]
    kinds: npt.NDArray[np.int64]


def _kind(item: Item, numbers: dict[Any, int]) -> int:
    """A number for the shape and the factors, but one of its own where no loop may be around."""
    key = (item.shape, tuple(v[1:] for v in item.values))
    return numbers.setdefault(key if item.depth < DEEPEST else (len(numbers),), len(numbers))


def _candidates(kinds: npt.NDArray[np.int64], length: int) -> Iterator[tuple[int, int]]:
    """Where as many kinds come again at once: the first and the end of those which do."""
    stops = np.flatnonzero(kinds[:-length] != kinds[length:])
    edges = np.concatenate([[-1], stops, [len(kinds) - length]])
    for k in np.flatnonzero(np.diff(edges) > length).tolist():
        yield int(edges[k]) + 1, int(edges[k + 1])


def _folded(sequence: _List, length: int, numbers: dict[Any, int]) -> _List:
    """Loops whose bodies have so many items; the same list if there are none."""
    items: list[Item] = []
    kinds: list[npt.NDArray[np.int64]] = []
    end = 0  # of what is in the loops so far
    for first, last in _candidates(sequence.kinds, length):
        start = max(first, end)
        while last - start >= length:
            passes = _passes(sequence.items, start, length, (last - start) // length + 1)
            loop = _loop(sequence.items, start, length, passes)
            items += [*sequence.items[end:start], loop]
            kinds += [sequence.kinds[end:start], np.array([_kind(loop, numbers)])]
            start = end = start + passes * length
    if not end:
        return sequence
    return _List([*items, *sequence.items[end:]], np.concatenate([*kinds, sequence.kinds[end:]]))


def _passes(items: list[Item], k: int, length: int, most: int) -> int:
    """How often the items from `k` on, of equal kinds, are repeated with equal steps between names
    and places: twice at least."""
    first = [v[0] for i in items[k : k + length] for v in i.values]
    second = [v[0] for i in items[k + length : k + 2 * length] for v in i.values]
    steps = [b - a for a, b in zip(first, second, strict=True)]
    passes = 2
    while passes < most:
        start = k + passes * length
        here = (v[0] for i in items[start : start + length] for v in i.values)
        if any(v - a != passes * n for a, v, n in zip(first, here, steps, strict=True)):
            break
        passes += 1
    return passes


def _loop(items: list[Item], k: int, length: int, passes: int) -> Item:
    body = tuple(items[k : k + length])
    first = [v for i in body for v in i.values]
    second = [v for i in items[k + length : k + 2 * length] for v in i.values]
    values = tuple(outer(a, b[0] - a[0]) for a, b in zip(first, second, strict=True))
    shape = (passes, tuple(i.shape for i in body))
    return Item(shape, values, passes, body, 1 + max(i.depth for i in body))


def outer(value: Linear, factor: int) -> Linear:
    """The value within one more loop around the others."""
    return (value[0], factor, *value[1:])

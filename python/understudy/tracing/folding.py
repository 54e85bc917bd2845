"""Loops in lists of calls: what is repeated one behind the other becomes a body with a number of
passes, exactly; names and places may grow by the same from pass to pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from understudy.semantics.syscalls import LINEAR

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
        return {"repeat": item.passes, "do": [_row(one, values) for one in item.body]}
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
    found, numbers = list(items), dict[Any, int]()
    while True:
        before, length = len(found), 1
        while length <= min(LONGEST, len(found) // 2):
            shorter = _folded(found, length, numbers)
            length = length + 1 if len(shorter) == len(found) else 1
            found = shorter
        if len(found) == before:
            return found


def _candidates(items: list[Item], length: int, numbers: dict[Any, int]) -> tuple[Any, Any]:
    """Where as many shapes come again at once, and how many of them do."""
    shapes = np.array([numbers.setdefault(i.shape, len(numbers)) for i in items])
    same = shapes[:-length] == shapes[length:]
    stops = np.flatnonzero(~same)
    here = np.arange(len(same))
    reach = np.append(stops, len(same))[np.searchsorted(stops, here)] - here
    starts = np.flatnonzero(reach >= length)
    return starts, reach


def _folded(items: list[Item], length: int, numbers: dict[Any, int]) -> list[Item]:
    """Loops whose bodies have so many items."""
    starts, reach = _candidates(items, length, numbers)
    made: list[Item] = []
    k = n = 0
    while (n := n + int(np.searchsorted(starts[n:], k))) < len(starts):
        start = int(starts[n])
        made += items[k:start]
        passes = _passes(items, start, length, int(reach[start]) // length + 1)
        if passes > 1:
            made.append(_loop(items, start, length, passes))
            k = start + passes * length
        else:
            made.append(items[start])
            k = start + 1
    return [*made, *items[k:]]


def _passes(items: list[Item], k: int, length: int, most: int) -> int:
    """How often the items from `k` on are repeated with equal steps between names and places."""
    if max(i.depth for i in items[k : k + length]) >= DEEPEST:
        return 1
    first = [v for i in items[k : k + length] for v in i.values]
    second = [v for i in items[k + length : k + 2 * length] for v in i.values]
    if any(a[1:] != b[1:] for a, b in zip(first, second, strict=True)):
        return 1
    steps = [b[0] - a[0] for a, b in zip(first, second, strict=True)]
    passes = 2
    while passes < most:
        here = [
            v for i in items[k + passes * length : k + (passes + 1) * length] for v in i.values
        ]
        if any(
            v[0] - a[0] != passes * step or v[1:] != a[1:]
            for a, v, step in zip(first, here, steps, strict=True)
        ):
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

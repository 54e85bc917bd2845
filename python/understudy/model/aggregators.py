"""Which ranks move data for others, and which do so on another number of ranks.

Where single ranks move all data of a stream, they do it for the others: one rank alone is a
*funnel*, ranks at equal distances are *aggregators*. On another number of ranks:

* a funnel stays one rank, at the same place relative to the number of ranks;
* there is one aggregator for as many ranks as before, at the same place among them. In the layout
  grouped with one in each group, there is one in each group again.

In strong scaling, their bytes together stay the same; in weak scaling, they grow with the ranks,
but a funnel keeps at least one transfer: what an application moves in one call is not less on
fewer ranks.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from understudy.contracts.workload import Stream

Pairs = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Aggregators:
    """One for `every` so many ranks, the first of them `offset`; the rows (or calls) of each.

    `groups`: how many there were and are, where each group of ranks has its own aggregator."""

    every: int
    offset: int
    rows: tuple[int, ...]
    groups: tuple[int, int] | None = None

    @property
    def funnel(self) -> bool:
        """One rank moves all data."""
        return len(self.rows) == 1

    def moving(self, pairs: Sequence[tuple[int, int]]) -> "Aggregators":
        """The same with what each has in runs of (ranks, rows)."""
        has = dict(_single(pairs))
        places = (self.offset + k * self.every for k in range(len(self.rows)))
        return replace(self, rows=tuple(has.get(place, 0) for place in places))


def of_stream(stream: Stream, ranks: int, groups: int | None) -> Aggregators | None:
    """The aggregators of a stream, which has so many `groups` on other ranks; None if it has none:
    if all ranks move data, or neighbours, or ranks at unequal distances."""
    places: set[int] = set()
    for variable in {move.variable for move in stream.moves}:
        runs = variable.decomposition.runs
        if any(rows and many > 1 for many, rows in runs) or not runs:
            return None
        places.update(place for place, _ in _single(runs))
    aggregators = found(sorted(places), ranks)
    each = aggregators is not None and len(places) == stream.groups
    if aggregators is None or groups is None or not each:
        return aggregators
    return replace(aggregators, groups=(len(places), groups))


def _single(pairs: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """(rank, rows) of the ranks that have rows of their own."""
    first = 0
    for many, rows in pairs:
        if rows and many == 1:
            yield first, rows
        first += many


def found(places: Sequence[int], ranks: int) -> Aggregators | None:
    """The aggregators at these ranks of so many; None where their distances differ."""
    if not places or ranks == 1:
        return None
    distances = {b - a for a, b in pairwise(places)} or {ranks}
    every = min(distances)
    covers = places[0] < every and ranks - places[-1] <= every
    if len(distances) > 1 or every == 1 or (len(places) > 1 and not covers):
        return None
    return Aggregators(every=every, offset=places[0], rows=(0,) * len(places))


def scaled(
    before: Aggregators, old: int, new: int, *, grow: bool, transfer_rows: int = 1
) -> Pairs:
    """Runs of (ranks, rows) on `new` ranks; `grow`: weak scaling, rows grow with the ranks, and a
    funnel keeps those of a transfer."""
    places = _places(before, old, new)
    if before.funnel:
        [rows_before] = before.rows
        fewest = min(rows_before, max(1, transfer_rows))
        rows = [max(fewest, rows_before * new // old) if grow else rows_before]
    elif grow:  # each as many as the one at the same place in the order
        rows = [before.rows[k * len(before.rows) // len(places)] for k in range(len(places))]
    else:
        rows = _shared(before.rows, len(places))
    pairs, first = [], 0
    for place, each in zip(places, rows, strict=True):
        pairs += [(place - first, 0), (1, each)]
        first = place + 1
    return [pair for pair in [*pairs, (new - first, 0)] if pair[0]]


def _places(before: Aggregators, old: int, new: int) -> list[int]:
    if before.funnel:
        return [before.offset * new // old]
    if before.groups is not None:
        after = before.groups[1]
        starts = [-(-g * new // after) for g in range(after + 1)]
        return [min(a + before.offset, b - 1) for a, b in pairwise(starts)]
    return list(range(before.offset, new, before.every)) or [new - 1]


def _shared(rows: Sequence[int], many: int) -> list[int]:
    """Rows in all, over so many aggregators, such that their cumulative distribution holds."""
    edges = [0]
    for each in rows:
        edges.append(edges[-1] + each)

    def until(k: int) -> int:
        whole, part = divmod(k * len(rows), many)
        if not part:
            return edges[whole]
        return edges[whole] + rows[whole] * part // many

    return [until(k + 1) - until(k) for k in range(many)]

"""From counters of data calls to variables that make such calls.

A log tells of a file how many calls were in each of Darshan's ten bins of sizes, which four sizes
were the most common, how many calls were collective, and the bytes of all. A `Tally` adds these up
for one file of a dump, by bin and kind; `pieces` divides its bytes into a few variables,
each with calls of one size: rank r makes n_r calls of s bytes. The piece that moved most bytes
takes what the others leave, so that the bytes of every rank stay exactly those of the log.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.table import METHODS
from understudy.program.counters import BIN_BYTES, BINS, bin_of

MAX_TRANSFER = 1 << 32  # bytes; a replica holds them in memory
MAX_PIECES = 8  # of a variable of the log in one file
CLOSE = levels.SMALL  # share of the calls that may be missed, or be of a size like others'
CONSTANT = levels.SMALL  # share of the bytes: calls that do not grow with their time step

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]

STDIO = METHODS.index("stdio")

Named = Mapping[int, tuple[int, Mapping[int, int]]]  # by bin: calls, and those of a size by size

_LOW = np.array([0, *(end + 1 for end in BIN_BYTES)], np.float64)
_HIGH = np.array([*BIN_BYTES, 4 << 30], np.float64)
_ENDS = np.array(BIN_BYTES)


def sizes_of(
    histogram: Whole,
    values: Whole,
    times: Whole,
    moved: Whole,
    bins: Sequence[int] = range(len(BINS)),
) -> Real:
    """Mean size of the calls in each of some bins, bytes: [n, bins], of n records.

    From the calls in each bin (histogram [n, bins]), the common sizes (values, times [n, 4]) and
    the bytes moved [n]; all other bins are empty. Calls of no common size are all as far along
    their bins, from the lower end to the upper, as their bytes need. The common sizes are those of
    reads and writes together; where they exceed the bytes moved only the bins are believed.
    """
    rows = np.arange(len(histogram))
    left, common_bytes = histogram.astype(np.int64), np.zeros(histogram.shape)
    some = list(bins)
    low, high = _LOW[some], _HIGH[some]
    column = np.full(len(BINS), -1)
    column[some] = np.arange(len(bins))
    for value, many in zip(values.T, times.T, strict=True):
        if not many.any():
            continue
        alike = (value == value[0]).all()  # one column is a view
        place = column[np.searchsorted(_ENDS, value[:1] if alike else value)]
        home: Any = (slice(None), place[0]) if alike else (rows, place)
        taken = np.where(place < 0, 0, np.minimum(np.maximum(many, 0), left[home]))
        left[home] -= taken
        common_bytes[home] += taken * value.astype(np.float64)
    wrong = common_bytes.sum(axis=1) > moved
    if wrong.any():
        left[wrong], common_bytes[wrong] = histogram[wrong], 0
    rest = moved - common_bytes.sum(axis=1) - left @ low
    along = np.clip(rest / np.maximum(left @ (high - low), 1), 0, 1)[:, None]
    sizes: Real = (common_bytes + left * (low + along * (high - low))) / np.maximum(histogram, 1)
    return sizes


def of_average(count: Whole, moved: Whole) -> tuple[Whole, Real]:
    """Calls in each bin and their mean size, [n, 10] each, if all calls of a record are alike."""
    average = moved / np.maximum(count, 1)
    histogram = np.zeros((len(count), len(BINS)), np.int64)
    histogram[np.arange(len(count)), np.searchsorted(BIN_BYTES, average)] = count
    return histogram, histogram.astype(bool) * average[:, None]


# -- adding up ------------------------------------------------------------------------------------


@dataclass(slots=True)
class Kind:
    """Calls of one bin, collective or not, by bins of ranks: how many and how many bytes. `exact`:
    each is of this size, by the sizes that records name; 0: they differ, or nobody knows."""

    calls: Whole
    bytes: Real
    exact: int = 0

    def __add__(self, other: "Kind") -> "Kind":
        exact = self.exact if self.exact == other.exact else 0
        return Kind(calls=self.calls + other.calls, bytes=self.bytes + other.bytes, exact=exact)

    @property
    def size(self) -> float:
        """Mean, bytes."""
        return float(self.bytes.sum() / self.calls.sum())


@dataclass(slots=True)
class Tally:
    """The calls on one variable of a dump, by bins of ranks."""

    bins: int = 1
    kinds: dict[tuple[bool, int], Kind] = field(default_factory=dict)  # by collective and bin

    def add(self, rows: Any, where: Whole, ranks: int = 1) -> None:
        """Add accesses (`understudy.inference.table.ACCESS`), each in a bin of ranks; `ranks` are
        those that a record stands for."""
        above = np.cumsum(rows["calls"][:, ::-1], axis=1)[:, ::-1] - rows["calls"]
        # The largest calls are the collective ones: libraries write what is their own alone.
        together = np.clip(rows["collectives"][:, None] - above, 0, rows["calls"])
        # All ranks take part in a collective call: what is left of a bin was made alone.
        alone = rows["calls"] % ranks
        alike = alone.sum(axis=1) == rows["calls"].sum(axis=1) - rows["collectives"]
        alike &= (rows["collectives"] > 0) & (ranks > 1)
        together[alike] = (rows["calls"] - alone)[alike]
        same = rows["transfer"] * rows["calls"].sum(axis=1, dtype=np.int64) == rows["bytes"]
        exact = np.where(same & (rows["method"] != STDIO), rows["transfer"], 0)
        for collective, calls in ((True, together), (False, rows["calls"] - together)):
            for size in np.flatnonzero(calls.any(axis=0)).tolist():
                kind = self.kinds.get((collective, size))
                sizes = exact[calls[:, size] > 0]
                exact_size = int(sizes[0]) if (sizes == sizes[0]).all() else 0
                if kind is None:
                    kind = Kind(calls=np.zeros(self.bins, np.int64), bytes=np.zeros(self.bins))
                    self.kinds[collective, size] = kind
                    kind.exact = exact_size
                kind.exact = exact_size if exact_size == kind.exact else 0
                np.add.at(kind.calls, where, calls[:, size])
                np.add.at(kind.bytes, where, calls[:, size] * rows["sizes"][:, size])

    def __add__(self, other: "Tally") -> "Tally":
        both = Tally(bins=self.bins, kinds=dict(self.kinds))
        for key, kind in other.kinds.items():
            both.kinds[key] = both.kinds[key] + kind if key in both.kinds else kind
        return both

    def blocks(self, first: Whole) -> "Tally":
        """The same over blocks of bins, each from its first one."""
        kinds = {
            key: Kind(
                calls=np.add.reduceat(kind.calls, first),
                bytes=np.add.reduceat(kind.bytes, first),
                exact=kind.exact,
            )
            for key, kind in self.kinds.items()
        }
        return Tally(bins=len(first), kinds=kinds)

    def step(self, k: int, steps: int, bytes_: tuple[int, int, int]) -> "Tally":
        """The calls of time step k, which are equally many in each, unless all are of one size:
        `bytes_` are those before it, those behind it and those of all steps.
        Calls that moved almost nothing have a constant size, others grow with the time step: if
        the calls of a size cannot be divided equally, but for a few of a library's own among many,
        the sizes differ because of that growth."""
        low, high, total = bytes_
        share = (high - low) / total
        whole = sum(kind.bytes.sum() for kind in self.kinds.values())
        large = {key for key, kind in self.kinds.items() if kind.bytes.sum() > CONSTANT * whole}
        counts = [int(self.kinds[key].calls.sum()) for key in large]
        grown = any(count % steps > CLOSE * count for count in counts)
        tally = Tally(bins=self.bins)
        for key, kind in sorted(self.kinds.items(), key=lambda k: k[0]):
            if key not in large:
                calls = _of_step(kind.calls, k, steps)
                same = np.asarray(calls * kind.size, np.float64)
                tally.kinds[key] = Kind(calls=calls, bytes=same)
                continue
            home = max(other for other in large if other[0] == key[0]) if grown else key
            tally.kinds[home] = tally.kinds[home] + kind if home in tally.kinds else kind
        for key in large & set(tally.kinds):
            kind = tally.kinds[key]
            calls = _of_step(kind.calls, k, steps)
            if kind.exact:
                before, after = (kind.calls * edge // total for edge in (low, high))
                calls = after - before
            grew: Real = kind.bytes * share
            tally.kinds[key] = Kind(calls=calls, bytes=grew, exact=kind.exact)
        return tally

    def portion(self, low: Whole, high: Whole, whole: Whole) -> "Tally":
        """The calls from `low` to `high` of `whole`, which are counts of each bin of sizes."""
        tally = Tally(bins=self.bins)
        for (collective, size), kind in self.kinds.items():
            n = size if whole[size] else slice(None)  # a bin that the trace lacks: as all calls
            parts = [int(counts[n].sum()) for counts in (low, high, whole)]
            before, after = (
                (2 * kind.calls * edge + parts[2]) // (2 * parts[2]) for edge in parts[:2]
            )
            calls: Whole = after - before
            moved: Real = calls * (kind.bytes / np.maximum(kind.calls, 1))
            tally.kinds[collective, size] = Kind(calls=calls, bytes=moved)
        return tally


def _of_step(calls: Whole, k: int, steps: int) -> Whole:
    part: Whole = calls * (k + 1) // steps - calls * k // steps
    return part


# -- cutting into pieces --------------------------------------------------------------------------


@dataclass(slots=True)
class Piece:
    """Rows of blocks of consecutive ranks ([blocks], beside the ranks in each), each of
    `row_elements` elements; `transfer_bytes` None: of whichever size."""

    ranks: Whole
    rows: Whole
    row_elements: int
    element: int
    collective: bool
    transfer_bytes: int | None


def pieces(
    moved: Whole,
    ranks: Whole,
    tally: Tally,
    *,
    element: int,
    even: bool,
    transfer_bytes: int,
    collective: bool,
    named: Named = MappingProxyType({}),
) -> list[Piece]:
    """The variables for one variable of a dump in the log, the main one last.

    `moved` are the bytes of each of some blocks of consecutive ranks, `ranks` how many are in
    each, `element` the bytes of an element; `even` tells that all ranks of a block moved the same;
    `transfer_bytes` and `collective` are the stream's, kept where the calls follow from them;
    `named` are the sizes of the calls of all its files.
    """
    kinds = _kinds(tally, ranks, moved, named)
    if not kinds:
        return [
            Piece(
                ranks=ranks,
                rows=moved // element,
                row_elements=1,
                element=element,
                collective=collective,
                transfer_bytes=None,
            )
        ]
    main = kinds.pop(max(range(len(kinds)), key=lambda n: (kinds[n].bytes, n)))
    for kind in reversed(kinds):  # a block without a main call makes one of its largest of it
        lent = (main.calls == 0) & (kind.calls > 0)
        main.calls[lent] += 1
        kind.calls[lent] -= 1
    uniform = main.size > 1 and main.size == round(main.size)  # its calls are all of one size
    gap = float(moved.sum()) - main.bytes - sum(kind.bytes for kind in kinds)
    if uniform and kinds and abs(gap) < main.size:  # less than a call: others are of other sizes
        other = max(kinds, key=lambda kind: kind.bytes)
        size = other.size + gap / max(1, int(other.calls.sum()))
        other.size = size if size >= 1 else other.size
    kept = np.minimum(moved, main.calls)  # a main call moves at least a byte
    left = moved - kept
    variables = []
    spare = MAX_PIECES - 1 - len(kinds)
    for kind in kinds:
        unit_bytes = element if kind.size >= element else 1
        sizes = (
            _exact(kind, unit_bytes) if uniform and spare > 0 else _alike_to_one(kind, unit_bytes)
        )
        spare -= len(sizes) - 1
        for elements, calls in sizes:
            rows = np.minimum(calls, left // (elements * unit_bytes))
            if rows.any():
                left -= rows * elements * unit_bytes
                variables.append(
                    Piece(
                        ranks=ranks,
                        rows=rows,
                        row_elements=elements,
                        element=unit_bytes,
                        collective=kind.collective,
                        transfer_bytes=min(elements * unit_bytes, MAX_TRANSFER),
                    )
                )
    left += kept
    if left.any():
        element = 1 if np.any(left % element) else element
        rest, calls, blocks = left // element, main.calls, ranks
        if not even and not main.collective:
            rest, calls, blocks = _unequal(rest, calls, blocks)
        variables += _main(rest, calls, blocks, element, main.collective, transfer_bytes)
    return variables


def _alike_to_one(kind: "_Calls", element: int) -> list[tuple[int, Whole]]:
    """Elements of a call, and the calls of each block."""
    return [(max(1, round(kind.size / element)), kind.calls)]


def _exact(kind: "_Calls", element: int) -> list[tuple[int, Whole]]:
    """The same in two sizes that differ by an element, if one would not add up to the bytes: the
    main calls are of one size, to which nothing may be added."""
    low, calls = max(1, int(kind.size / element)), int(kind.calls.sum())
    longer = min(max(0, round(kind.bytes / element) - low * calls), calls)
    ends = np.cumsum(kind.calls) * longer // max(1, calls)
    more = np.diff(ends, prepend=0)
    return [(n, each) for n, each in ((low + 1, more), (low, kind.calls - more)) if each.any()]


def _main(
    rows: Whole, calls: Whole, ranks: Whole, element: int, collective: bool, usual_bytes: int
) -> list[Piece]:
    """Blocks of ranks with so many rows of an element as calls of one size, or of two that differ
    by an element where calls are so small that one size makes too few."""
    sized = _common if collective else _transfer
    transfer = sized(rows, calls, ranks, element, usual_bytes)
    call_count = _call_count(rows, ranks, (transfer or usual_bytes) // element)
    few = not collective and call_count < (1 - CLOSE) * calls.sum()
    low = np.unique(rows[calls > 0] // calls[calls > 0])
    if few and len(low) == 1 and low[0] and not rows[calls == 0].any():
        longer = rows - low[0] * calls
        return [
            Piece(
                ranks=ranks,
                rows=n,
                row_elements=size,
                element=element,
                collective=collective,
                transfer_bytes=size * element,
            )
            for n, size in ((longer, int(low[0]) + 1), (calls - longer, int(low[0])))
            if n.any()
        ]
    return [
        Piece(
            ranks=ranks,
            rows=rows,
            row_elements=1,
            element=element,
            collective=collective,
            transfer_bytes=transfer,
        )
    ]


@dataclass(slots=True)
class _Calls:
    """Calls of one kind: of each block of ranks, and their mean size in bytes."""

    collective: bool
    calls: Whole
    size: float

    @property
    def bytes(self) -> float:
        return float(self.calls.sum()) * self.size


def _kinds(tally: Tally, ranks: Whole, moved: Whole, named: Named) -> list[_Calls]:
    """At most so many kinds of calls, from the smallest to the largest."""
    kinds = [
        (key, part)
        for key in sorted(tally.kinds)
        for part in _of_sizes(tally.kinds[key], *named.get(key[1], (0, {})))
        if part.calls.any()
    ]
    alone = [(False, kind) for (collective, _), kind in kinds if not collective]
    there, together = int(ranks[moved > 0].sum()), list[Kind]()
    # All ranks of a file take part in each collective call.
    for kind in [kind for (collective, _), kind in reversed(kinds) if collective]:
        if together and not _of_all(together[-1], ranks, moved, there):
            together[-1] += kind
        else:
            together.append(kind)
    if len(together) > 1 and not _of_all(together[-1], ranks, moved, there):
        together[-2:] = [together[-2] + together[-1]]
    merged = [*alone, *((True, kind) for kind in together)]
    merged.sort(key=lambda f: f[1].size)
    total = sum(int(kind.calls.sum()) for _, kind in merged)
    while len(merged) > 1:
        few = min(range(len(merged)), key=lambda n: int(merged[n][1].calls.sum()))
        near = [n for n in range(len(merged)) if n != few and merged[n][0] == merged[few][0]]
        home = min(near, key=lambda n: abs(n - few), default=few)
        sizes = sorted((merged[few][1].size, merged[home][1].size))
        rare = merged[few][1].calls.sum() <= CLOSE * total and sizes[1] <= 2 * sizes[0]
        if not near or not (rare or len(merged) > MAX_PIECES):
            break
        merged[home] = (merged[home][0], merged[home][1] + merged[few][1])
        del merged[few]
    return [
        _Calls(collective=c, calls=_over(kind.calls, moved), size=kind.size) for c, kind in merged
    ]


def told(named: Named, tallies: Iterable[Tally]) -> Named:
    """The bins of which all tallies have as many calls of each size."""
    kinds = [(key[1], kind) for tally in tallies for key, kind in tally.kinds.items()]
    some = {bin_ for bin_, kind in kinds if kind.calls.any()}
    mixed = {
        bin_
        for bin_, kind in kinds
        if bin_ in named and kind.calls.any() and len([*_of_sizes(kind, *named[bin_])]) == 1
    }
    return {bin_: sizes for bin_, sizes in named.items() if bin_ in some - mixed}


def _of_sizes(kind: Kind, count: int, sizes: Mapping[int, int]) -> Iterator[Kind]:
    """The calls of a bin by size, from the smallest, if each file and dump has as many of `count`
    of each as the others, and what is left adds up; else together."""
    by_size, left = list[Kind](), Kind(calls=kind.calls, bytes=kind.bytes)
    for size, number in sorted(sizes.items()):
        calls, odd = np.divmod(kind.calls * number, count)
        by_size.append(Kind(calls=calls, bytes=calls * float(size), exact=size))
        left = Kind(calls=left.calls - calls, bytes=left.bytes - by_size[-1].bytes)
        if odd.any():
            break
    else:
        many, bin_ = int(left.calls.sum()), bin_of(int(kind.size)) if kind.calls.any() else 0
        close = _LOW[bin_] * many <= left.bytes.sum() <= _HIGH[bin_] * many
        if by_size and (close if many else abs(left.bytes.sum()) <= CLOSE * kind.bytes.sum()):
            yield from by_size
            yield left
            return
    yield kind


def _of_all(kind: Kind, ranks: Whole, moved: Whole, there: int) -> bool:
    """True if all ranks that moved bytes may have made as many of these calls."""
    if len(kind.calls) != len(moved) or len(moved) == 1:
        return not kind.calls.sum() % there
    each = np.unique((kind.calls / ranks)[moved > 0])
    return len(each) == 1 and each[0] == int(each[0])


def _over(calls: Whole, moved: Whole) -> Whole:
    """The calls of each block; where only their sum is known, over those that moved something."""
    if len(calls) == len(moved):
        return np.where(moved > 0, calls, 0)
    active = np.flatnonzero(moved > 0)
    low, extra = divmod(int(calls.sum()), len(active))
    spread = np.zeros(len(moved), np.int64)
    spread[active] = low
    spread[active[:extra]] += 1
    return spread


def _unequal(rows: Whole, calls: Whole, ranks: Whole) -> tuple[Whole, Whole, Whole]:
    """Blocks whose ranks cannot all make as many calls in two parts: the first ranks make one
    call more than the others, and have as many more of the rows."""
    low, more = np.divmod(calls, ranks)
    split = (calls > 0) & (more > 0)
    of_first = np.where(split, more * (low + 1), calls)
    first = np.where(split, more, ranks)
    rows_first = np.where(split, (rows * (of_first / np.maximum(calls, 1))).astype(np.int64), rows)
    parts = [
        np.column_stack(pair).ravel()
        for pair in (
            (rows_first, rows - rows_first),
            (of_first, calls - of_first),
            (first, ranks - first),
        )
    ]
    there = parts[2] > 0
    return parts[0][there], parts[1][there], parts[2][there]


def _transfer(
    rows: Whole, calls: Whole, ranks: Whole, element: int, usual_bytes: int
) -> int | None:
    """Bytes of the transfers by which blocks of ranks with so many rows make as many calls, or
    the fewest below; None where the usual transfers do."""
    wanted, usual = int(calls.sum()), usual_bytes // element
    each = (rows + ranks - 1) // ranks
    if usual and _call_count(rows, ranks, usual) == wanted and _alike(each, usual, element):
        return None
    low, high = 1, int(each.max())
    while low < high:
        middle = (low + high) // 2
        few = _call_count(rows, ranks, middle) <= wanted
        low, high = (low, middle) if few else (middle + 1, high)
    transfer = min(low * element, max(element, MAX_TRANSFER - MAX_TRANSFER % element))
    return None if transfer == usual_bytes else transfer


def _common(rows: Whole, calls: Whole, ranks: Whole, element: int, usual_bytes: int) -> int | None:
    """The same of collective calls: of these, a rank with few bytes makes as many as the one with
    the maximum, some of them empty."""
    each, usual = (rows + ranks - 1) // ranks, usual_bytes // element
    largest, there = int(each.max()), int(ranks[calls > 0].sum())
    wanted = max(1, int(calls.sum()) // max(1, there))
    if usual and -(-largest // usual) == wanted and _alike(each[each > usual], usual, element):
        return None
    transfer = min(-(-largest // wanted) * element, MAX_TRANSFER - MAX_TRANSFER % element)
    return None if transfer == usual_bytes else transfer


def _call_count(rows: Whole, ranks: Whole, transfer: int) -> int:
    """Calls that blocks of ranks make of so many rows, at most `transfer` of them at a time."""
    each = (rows + ranks - 1) // ranks
    return int((ranks * ((each + transfer - 1) // transfer)).sum())


def _alike(rows: Whole, transfer: int, element: int) -> bool:
    """True if the remainders behind the last whole transfer are of the same bin of sizes."""
    rest = np.unique(np.where(rows > transfer, rows % transfer, 0))
    return all(bin_of(int(r) * element) == bin_of(transfer * element) for r in rest if r)

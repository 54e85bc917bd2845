"""The data calls of a stream: how many, how many of them collective, and of which sizes.

Computed by the player's own rule: a rank's block of a variable is cut into transfers of whole
trailing dimensions.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
import numpy.typing as npt

from understudy.semantics.counters import BIN_BYTES, BINS
from understudy.semantics.types import TYPE_BYTES, Decomposition, Dump, Stream, Variable

# Methods of the player that make a call for each run of consecutive bytes, and none collectively.
BY_RUNS = ("posix", "stdio")

Whole = npt.NDArray[np.int64]


def bin_of(size: float) -> int:
    """Index of the bin of `BINS` that a call of this many bytes is in."""
    return sum(size > end for end in BIN_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """`sizes` has a count per bin of `BINS`; of the calls that are in none the source keeps no
    sizes (STDIO)."""

    count: int
    collective: int = 0
    sizes: tuple[int, ...] = (0,) * len(BINS)

    def __add__(self, other: "Calls") -> "Calls":
        return total([self, other])

    @property
    def collective_share(self) -> float:
        return self.collective / self.count if self.count else 0.0


def total(parts: list[Calls]) -> Calls:
    """The sum of calls of several kinds of files."""
    return Calls(
        count=sum(p.count for p in parts),
        collective=sum(p.collective for p in parts),
        sizes=tuple(map(sum, zip(*(p.sizes for p in parts), strict=True))),
    )


def of_stream(stream: Stream, ranks: int) -> Calls:
    """The calls by which the player moves a stream with the stream's own method."""
    sizes: Counter[int] = Counter()
    collectives = 0
    groups = 1 if stream.layout == "shared" else stream.groups or ranks
    if stream.turns:
        groups = ranks  # each has a dataset of its own
    appends = stream.files == "append"
    whole = tuple(dict.fromkeys(v for d in stream.dumps for v in d.variables)) if appends else ()
    for dump in stream.dumps:
        if not appends or dump is stream.dumps[0]:
            opened = _opened(whole or tuple(dict.fromkeys(dump.variables)), ranks)
        for variable in dump.variables:
            alike = replace(variable, name="v", label="", count=1, file=0)
            most = variable.transfer_bytes or stream.transfer_bytes
            each, made = _transfers(
                alike, ranks, groups, most, stream.method in BY_RUNS, stream.layout == "flood"
            )
            number = variable.count * dump.count * stream.passes
            for size, times in made:
                sizes[size] += times * number
            own = stream.collective if variable.collective is None else variable.collective
            if own and stream.method not in BY_RUNS:
                idle = _idle(each, opened[variable.file], groups)
                sizes[0] += idle * number
                collectives += (each.total + idle) * number
    bins = [0] * len(BINS)
    for size, times in sizes.items():
        bins[bin_of(size)] += times
    return Calls(count=sum(bins), collective=collectives, sizes=tuple(bins))


def opens_of(stream: Stream, ranks: int, base: Stream | None = None) -> int:
    """How often the ranks open files: each those that it has bytes in, once for files that stay
    open, else in every dump that does not continue, and besides where operations say so. Those of
    `base`, the stream whose files it reads, are not opened where they are open."""
    also = sum(
        dump.count * each.count
        for dump in stream.dumps
        for each in dump.operations
        if each.operation in ("open", "create")
    )
    if stream.stays_open:
        whole = tuple(dict.fromkeys(v for d in stream.dumps for v in d.variables))
        return also + sum(mask.total for mask in _opened(whole, ranks).values())
    opened_again = [not d.continues for d in stream.dumps]
    if base is not None:
        opened_again = [not o for o in base.open_at([d.time_s for d in stream.dumps])]
    for dump, opens in zip(stream.dumps, opened_again, strict=True):
        if not opens:
            continue
        if stream.layout == "flood":
            also += dump.count * sum(v.shape[0] * v.count for v in dump.variables)
        else:
            opened = _opened(tuple(dict.fromkeys(dump.variables)), ranks)
            also += dump.count * sum(mask.total for mask in opened.values())
    return also


def flushes_of(stream: Stream, ranks: int) -> int:
    """How often the ranks flush files, by the stream's own method."""
    appended = (
        stream.files == "append" and stream.stays_open and stream.method in ("hdf5", "stdio")
    )
    each_dump = stream.sync or appended
    if stream.operation != "write" or not (each_dump or stream.sync_bytes):
        return 0
    each = 0
    for dump in stream.dumps:
        used = sum(m.total for m in _opened(tuple(dict.fromkeys(dump.variables)), ranks).values())
        within = 0 if stream.sync_bytes is None else dump.bytes // stream.sync_bytes
        each += dump.count * (within + (used if each_dump else 0))
    return each


def prepared_opens(stream: Stream, ranks: int) -> tuple[int, int]:
    """How often the player opens files before it takes time: those that the stream reads, by the
    stream's method, and those that its operations need and do not create, by POSIX."""
    plain = replace(stream, dumps=tuple(replace(d, operations=()) for d in stream.dumps))
    reads = 0
    if stream.operation == "read" and stream.reads is None:
        if stream.files == "update" and stream.layout == "flood":
            sets = [d for d in plain.dumps for _ in range(min(d.count, stream.names))]
            first = tuple(replace(d, repeat=None) for d in sets[: stream.names])
            plain = replace(plain, dumps=first, reopen=True)
        elif stream.files in ("update", "rewrite"):
            plain = replace(plain, dumps=tuple(_made_first(plain)), reopen=True)
        reads = opens_of(plain, ranks)
    if not any(d.operations for d in stream.dumps):
        return reads, 0
    return reads, int(_lacking(stream, ranks).sum())


def _made_first(stream: Stream) -> Iterator[Dump]:
    """The dumps whose files the player writes before it reads them: those of each set, and where
    a dump differs from the one before it in its set (proxies/core/run.c)."""
    before: list[tuple[Variable, ...]] = []
    for dump in stream.dumps:
        for _ in range(min(dump.count, stream.names)):
            if len(before) < stream.names or dump.variables != before[-stream.names]:
                yield replace(dump, repeat=None)
            before.append(dump.variables)


def _lacking(stream: Stream, ranks: int) -> Whole:
    """Files that the operations of each rank need and do not create, as the player counts them
    (proxies/core/metadata.c)."""
    none: Whole = np.zeros(ranks, np.int64)
    end, renamed, first, lacking = none, none, none, none
    for dump in stream.dumps:
        made = {o.operation: o.runs for o in dump.operations}
        count = {
            kind: np.repeat([k for _, k in runs], [n for n, _ in runs])
            for kind, runs in made.items()
        }
        has_data = opened(tuple(dict.fromkeys(dump.variables)), ranks).by_rank(ranks) > 0
        if stream.layout == "flood" or (stream.files == "append" and dump.variables):
            has_data = np.ones(ranks, np.bool_)
        for _ in range(dump.count):
            end = end + count.get("create", none)
            acts = sum((count.get(k, none) for k in ("open", "stat", "seek", "sync")), none)
            lacking = np.where(
                ~has_data & (acts > 0), np.maximum(lacking, first + 1 - end), lacking
            )
            more = count.get("rename", none)
            renamed = np.where(more > 0, np.maximum(renamed, first) + more, renamed)
            lacking = np.maximum(lacking, renamed - end)
            first = first + count.get("unlink", none)
            lacking = np.maximum(lacking, first - end)
    return lacking


@dataclass(frozen=True, slots=True)
class _Runs:
    """A number for each rank, in runs of ranks that have the same."""

    ranks: Whole
    each: Whole

    @property
    def total(self) -> int:
        """The sum over all ranks."""
        return int((self.ranks * self.each).sum())

    @property
    def ends(self) -> Whole:
        """The rank behind each run."""
        ends: Whole = np.cumsum(self.ranks)
        return ends

    def by_rank(self, ranks: int) -> Whole:
        """The number of each rank: [ranks]."""
        each: Whole = np.repeat(self.each, self.ranks)
        return each if len(each) else np.zeros(ranks, np.int64)

    def at(self, ranks: Whole) -> Whole:
        """The numbers of these ranks."""
        return self.each[np.searchsorted(self.ends, ranks, "right")]


@lru_cache(maxsize=256)
def _opened(variables: tuple[Variable, ...], ranks: int) -> dict[int, _Runs]:
    """Which ranks open each file: 1 for those with bytes in it."""
    files: dict[int, list[_Runs]] = {}
    for variable in variables:
        many, size = np.array(variable.rank_runs(ranks), np.int64).T
        files.setdefault(variable.file, []).append(_Runs(many, np.minimum(size, 1)))
    opened = {}
    for file, parts in files.items():
        ends = np.unique(np.concatenate([p.ends for p in parts]))
        starts = np.concatenate([[0], ends[:-1]])
        opened[file] = _Runs(ends - starts, np.max([p.at(starts) for p in parts], axis=0))
    return opened


def opened(variables: tuple[Variable, ...], ranks: int) -> "_Runs":
    """How many files with these variables each rank opens."""
    masks = list(_opened(variables, ranks).values())
    if not masks:
        return _Runs(np.empty(0, np.int64), np.empty(0, np.int64))
    ends = np.unique(np.concatenate([m.ends for m in masks]))
    starts = np.concatenate([[0], ends[:-1]])
    return _Runs(ends - starts, np.sum([m.at(starts) for m in masks], axis=0))


def _idle(calls: _Runs, opened: _Runs, groups: int) -> int:
    """Empty calls of ranks that take part in collective ones: each makes as many as the one with
    the maximum among those that share its file."""
    ranks = int(calls.ends[-1])
    if groups == ranks:
        return 0
    firsts = -(-np.arange(1, groups + 1) * ranks // groups)  # the rank behind each group
    ends = np.unique(np.concatenate([calls.ends, opened.ends, firsts]))
    starts = np.concatenate([[0], ends[:-1]])
    made, group = calls.at(starts), starts * groups // ranks
    most = np.zeros(groups, np.int64)
    np.maximum.at(most, group, made)
    return int(((most[group] - made) * (ends - starts) * opened.at(starts)).sum())


@lru_cache(maxsize=4096)
def _transfers(
    variable: Variable, ranks: int, groups: int, transfer_bytes: int, spans: bool, flood: bool
) -> tuple[_Runs, tuple[tuple[int, int], ...]]:
    """Transfers of each rank, and (size, times) of the calls over all ranks; with `spans`
    a call moves one run of consecutive bytes, as POSIX does; in a `flood` rows are files."""
    many, blocks = _blocks(variable, ranks, packed=groups > 1)
    shape = variable.shape
    kinds, which = np.unique(blocks, axis=0, return_inverse=True)
    times = np.zeros(len(kinds), np.int64)
    np.add.at(times, which.ravel(), many)
    if variable.decomposition.rule == "grid" and groups > 1:
        shape = (math.prod(shape),)
    most = transfer_bytes // TYPE_BYTES[variable.type]
    calls = np.zeros(len(kinds), np.int64)
    sizes: Counter[int] = Counter()
    parts = 1 if flood else variable.decomposition.block or shape[0]  # rows that calls never cross
    for k, kind in enumerate(kinds.tolist()):
        for box, number in _boxes_of_parts(kind, parts, most):
            calls[k] += number
            run, runs = _span(box, shape) if spans else (math.prod(box), 1)
            sizes[run * TYPE_BYTES[variable.type]] += number * runs * int(times[k])
    return _Runs(many, calls[which.ravel()]), tuple(sizes.items())


def _blocks(variable: Variable, ranks: int, packed: bool) -> tuple[Whole, Whole]:
    """Ranks of each run [n], and the elements of a block along each dimension [n, dimensions]."""
    rule: Decomposition = variable.decomposition
    if rule.rule == "grid":
        sides = [
            [n // parts + (k < n % parts) for k in range(parts)]
            for n, parts in zip(variable.shape, rule.grid, strict=True)
        ]
        blocks = np.array(list(product(*sides)), np.int64)
        blocks = np.prod(blocks, axis=1, keepdims=True) if packed else blocks
        return np.ones(len(blocks), np.int64), blocks
    many, size = np.array(variable.rank_runs(ranks), np.int64).T
    blocks = np.tile(np.array(variable.shape, np.int64), (len(many), 1))
    blocks[:, 0] = size // variable.row_bytes
    return many, blocks


def _boxes_of_parts(block: list[int], rows: int, most: int) -> Iterator[tuple[list[int], int]]:
    """The boxes of a block that is cut into parts of so many rows first."""
    whole, rest = divmod(block[0], rows)
    for part, times in ((rows, whole), (rest, 1)):
        if times:
            for box, number in _boxes([part, *block[1:]], most):
                yield box, times * number


def _boxes(block: list[int], most: int) -> Iterator[tuple[list[int], int]]:
    """The boxes of a block of at most so many elements, and how often each occurs."""
    if math.prod(block) == 0:
        return
    dim, inner = len(block) - 1, 1
    while dim > 0 and inner * block[dim] <= most:
        inner *= block[dim]
        dim -= 1
    rows = min(most // inner, block[dim])
    outer, whole, rest = math.prod(block[:dim]), block[dim] // rows, block[dim] % rows
    head, tail = [1] * dim, block[dim + 1 :]
    yield [*head, rows, *tail], outer * whole
    if rest:
        yield [*head, rest, *tail], outer


def _span(box: list[int], shape: tuple[int, ...]) -> tuple[int, int]:
    """Elements of each run of consecutive ones in a dataset of that shape, and how many runs."""
    dim = len(box) - 1
    while dim > 0 and box[dim] == shape[dim]:
        dim -= 1
    return math.prod(box[dim:]), math.prod(box[:dim])

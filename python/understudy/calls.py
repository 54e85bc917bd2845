"""The data calls of a stream: how many, how many of them collective, and of which sizes.

Counted from the records of a Darshan log, or computed from a descriptor by the player's own rule:
a rank's block of a variable is cut into transfers of whole trailing dimensions.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.workload import TYPE_BYTES, Decomposition, Stream, Variable

# Upper ends of Darshan's bins of access sizes, bytes; the last bin has none.
BIN_BYTES = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
BINS = ("0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M", "4M_10M", "10M_100M",
        "100M_1G", "1G_PLUS")  # fmt: skip
# Whose calls are the application's own; a file that it moves by MPI-IO may have a header by stdio.
MODULES = {"hdf5": ("H5D",), "mpiio": ("MPI-IO", "STDIO"), "posix": ("POSIX", "STDIO")}
HISTOGRAM = {"POSIX": ("POSIX", ""), "MPI-IO": ("MPIIO", "_AGG"), "H5D": ("H5D", "_AGG")}

Whole = npt.NDArray[np.int64]
Owner = Callable[[npt.NDArray[np.uint64]], Whole]


def bin_of(size: float) -> int:
    """Index of the bin of `BINS` that a call of so many bytes is in."""
    return sum(size > end for end in BIN_BYTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """`sizes` has a count per bin of `BINS`; of the calls that are in none the source keeps no
    sizes (STDIO)."""

    count: int
    collective: int = 0
    sizes: tuple[int, ...] = (0,) * len(BINS)

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


# -- of a log -------------------------------------------------------------------------------------


def of_log(log: Log, owner: Owner, owners: int) -> dict[tuple[int, str, str], Calls]:
    """Calls by (owner, operation, method), summed over the records of each owner's files.

    `owner` gives the owner of each file record, below `owners`, or -1.
    """
    found: dict[tuple[int, str, str], Calls] = {}
    for method, modules in MODULES.items():
        sums = np.zeros((owners, 2, 2 + len(BINS)), np.int64)
        for module in (m for m in modules if m in log.modules):
            for block in log.records(module):
                which = owner(block["file_rec_id" if module == "H5D" else "id"])
                mine, which = block[which >= 0], which[which >= 0]
                for way, word in enumerate(("READ", "WRITE")):
                    np.add.at(sums[:, way], which, _counters(mine, module, word))
        for who, way in zip(*map(np.ndarray.tolist, np.nonzero(sums[:, :, 0])), strict=True):
            count, collective, *sizes = sums[who, way].tolist()
            found[who, ("read", "write")[way], method] = Calls(
                count=count,
                collective=collective,
                sizes=tuple(sizes),
            )
    return found


def _counters(block: Any, module: str, word: str) -> Whole:
    """Calls, collective ones and access sizes of each record: [n, 2 + bins]."""
    rows = np.zeros((len(block), 2 + len(BINS)), np.int64)
    if module == "MPI-IO":
        kinds = ("COLL", "SPLIT", "INDEP", "NB")
        calls = [np.maximum(block[f"MPIIO_{k}_{word}S"], 0) for k in kinds]
        rows[:, 0], rows[:, 1] = sum(calls), calls[0] + calls[1]
    else:
        rows[:, 0] = np.maximum(block[f"{module}_{word}S"], 0)
    if module == "H5D":
        rows[:, 1] = np.where(block["H5D_USE_MPIIO_COLLECTIVE"] > 0, rows[:, 0], 0)
    if module in HISTOGRAM:
        prefix, suffix = HISTOGRAM[module]
        for k, name in enumerate(BINS):
            rows[:, 2 + k] = np.maximum(block[f"{prefix}_SIZE_{word}{suffix}_{name}"], 0)
    return rows


# -- of a descriptor ------------------------------------------------------------------------------


def of_stream(stream: Stream, ranks: int) -> Calls:
    """The calls by which the player moves a stream with the stream's own method."""
    sizes: Counter[int] = Counter()
    collectives = 0
    groups = 1 if stream.layout == "shared" else stream.groups or ranks
    if stream.turns:
        groups = ranks  # each has a dataset of its own
    appended = [v for d in stream.dumps for v in d.variables] if stream.files == "append" else []
    for dump in stream.dumps:
        opened = _opened(tuple(dict.fromkeys(appended or dump.variables)), ranks)
        for variable in dump.variables:
            alike = replace(variable, name="v", label="", count=1, file=0)
            most = variable.transfer_bytes or stream.transfer_bytes
            each, made = _transfers(alike, ranks, groups, most, stream.method == "posix")
            for size, times in made:
                sizes[size] += times * variable.count
            own = stream.collective if variable.collective is None else variable.collective
            if own and stream.method != "posix":
                idle = _idle(each, opened[variable.file], groups)
                sizes[0] += idle * variable.count
                collectives += (int(each.sum()) + idle) * variable.count
    bins = [0] * len(BINS)
    for size, times in sizes.items():
        bins[bin_of(size)] += times
    return Calls(count=sum(bins), collective=collectives, sizes=tuple(bins))


@lru_cache(maxsize=256)
def _opened(variables: tuple[Variable, ...], ranks: int) -> dict[int, npt.NDArray[np.bool_]]:
    """Which ranks open each file: those with bytes in it. [ranks] by file."""
    files: dict[int, npt.NDArray[np.bool_]] = {}
    for variable in variables:
        some = np.concatenate([np.full(n, size > 0) for n, size in variable.rank_runs(ranks)])
        files[variable.file] = files.get(variable.file, np.False_) | some
    return files


def _idle(calls: Whole, opened: npt.NDArray[np.bool_], groups: int) -> int:
    """Empty calls of ranks that take part in collective ones: each makes as many as the one with
    the most among those that share its file."""
    ranks = len(calls)
    group = np.arange(ranks) * groups // ranks
    most = np.zeros(groups, np.int64)
    np.maximum.at(most, group, calls)
    return int((most[group] - calls)[opened].sum())


@lru_cache(maxsize=4096)
def _transfers(
    variable: Variable, ranks: int, groups: int, transfer_bytes: int, spans: bool
) -> tuple[Whole, tuple[tuple[int, int], ...]]:
    """Transfers of each rank [ranks], and (size, times) of the calls over all ranks; with `spans`
    a call moves one run of consecutive bytes, as POSIX does."""
    blocks, shape = _blocks(variable, ranks, packed=groups > 1), variable.shape
    kinds, which, times = np.unique(blocks, axis=0, return_inverse=True, return_counts=True)
    if variable.decomposition.rule == "grid" and groups > 1:
        shape = (math.prod(shape),)
    most = transfer_bytes // TYPE_BYTES[variable.type]
    calls = np.zeros(len(kinds), np.int64)
    sizes: Counter[int] = Counter()
    for k, kind in enumerate(kinds.tolist()):
        for box, number in _boxes(kind, most):
            calls[k] += number
            run, runs = _span(box, shape) if spans else (math.prod(box), 1)
            sizes[run * TYPE_BYTES[variable.type]] += number * runs * int(times[k])
    return calls[which.ravel()], tuple(sizes.items())


def _blocks(variable: Variable, ranks: int, packed: bool) -> Whole:
    """Elements of each rank's block along each dimension: [ranks, dimensions]."""
    rule: Decomposition = variable.decomposition
    if rule.rule == "grid":
        sides = [
            [n // parts + (k < n % parts) for k in range(parts)]
            for n, parts in zip(variable.shape, rule.grid, strict=True)
        ]
        blocks = np.array(list(product(*sides)), np.int64)
        return np.prod(blocks, axis=1, keepdims=True) if packed else blocks
    rows = np.concatenate(
        [np.full(n, size // variable.row_bytes) for n, size in variable.rank_runs(ranks)]
    )
    blocks = np.tile(np.array(variable.shape, np.int64), (ranks, 1))
    blocks[:, 0] = rows
    return blocks


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

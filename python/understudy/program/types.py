"""Elements of workloads, as frozen dataclasses.

Sizes are bytes, times are seconds since the start of the application.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

SCHEMA = "understudy/workload/3"
KEYS = "understudy/workload/2"  # the version before, whose streams are keys
MAX_RUNS = 4096
MAX_DUMPS = 10_000_000  # of all streams, with repetitions
CONFIDENCE = {
    "read": "certain",
    "derived": "certain",
    "reconstructed": "likely",
    "assumed": "guess",
}
TYPE_BYTES = {
    "byte": 1,
    "i8": 1,
    "u8": 1,
    "i16": 2,
    "u16": 2,
    "i32": 4,
    "u32": 4,
    "i64": 8,
    "u64": 8,
    "f32": 4,
    "f64": 8,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """The block of each rank: `even`, a `grid` (ranks per dimension), `runs` (ranks, rows) or
    `cyclic` (blocks of `block` rows in turn)."""

    rule: str
    grid: tuple[int, ...] = ()
    runs: tuple[tuple[int, int], ...] = ()
    block: int = 0


EVEN = Decomposition(rule="even")


def runs(pairs: Iterable[tuple[int, int]]) -> Decomposition:
    """Unequal slabs from (ranks, rows) pairs; neighbours with equal rows are merged."""
    merged: list[tuple[int, int]] = []
    for ranks, rows in pairs:
        if merged and merged[-1][1] == rows:
            merged[-1] = (merged[-1][0] + ranks, rows)
        else:
            merged.append((ranks, rows))
    return Decomposition(rule="runs", runs=tuple(merged))


def runs_at_most(pairs: Iterable[tuple[int, int]], limit: int = MAX_RUNS) -> Decomposition:
    """The same as `runs`, but with at most `limit` runs: if there are more, neighbouring ranks are
    averaged in blocks of the same total."""
    rule = runs((n, rows) for n, rows in pairs if n)
    if len(rule.runs) <= limit:
        return rule
    per_block = -(-len(rule.runs) // (limit // 2))
    averaged = []
    for k in range(0, len(rule.runs), per_block):
        block = rule.runs[k : k + per_block]
        averaged += equal_ranks(sum(n for n, _ in block), sum(n * rows for n, rows in block))
    return runs(averaged)


def equal_ranks(ranks: int, rows: int) -> list[tuple[int, int]]:
    """Divide the rows over the ranks; ranks differ by at most one row."""
    low, extra = divmod(rows, ranks)
    return [(n, size) for n, size in ((extra, low + 1), (ranks - extra, low)) if n]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    type: str
    shape: tuple[int, ...]
    decomposition: Decomposition = EVEN
    label: str = ""
    count: int = 1
    file: int = 0
    transfer_bytes: int | None = None  # None: the stream's
    collective: bool | None = None  # None: the stream's
    at: str | None = None  # a variable in the same place

    def has_place_of(self, other: "Variable") -> bool:
        """True if it can have the place of another variable."""
        return all(
            getattr(self, key) == getattr(other, key)
            for key in ("count", "type", "shape", "decomposition", "file")
        )

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of dimension 0 over all `count` variables."""
        return self.count * math.prod(self.shape[1:]) * TYPE_BYTES[self.type]

    @property
    def bytes(self) -> int:
        return self.shape[0] * self.row_bytes

    def rank_runs(self, ranks: int) -> list[tuple[int, int]]:
        """Bytes of each rank as runs [(consecutive ranks, bytes of each)] in rank order."""
        rule = self.decomposition
        if rule.rule == "runs":
            return [(n, rows * self.row_bytes) for n, rows in rule.runs]
        if rule.rule == "even":
            return [(n, rows * self.row_bytes) for n, rows in equal_ranks(ranks, self.shape[0])]
        if rule.rule == "cyclic":
            return [(n, rows * self.row_bytes) for n, rows in self._cyclic_runs(ranks)]
        return list(_grid_runs(self, rule.grid))

    def _cyclic_runs(self, ranks: int) -> Iterator[tuple[int, int]]:
        block = self.decomposition.block
        rounds, rest = divmod(self.shape[0], block * ranks)
        whole, part = divmod(rest, block)
        for n, rows in ((whole, block), (int(part > 0), part), (ranks - whole - (part > 0), 0)):
            if n:
                yield n, rounds * block + rows


def _grid_runs(variable: Variable, grid: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of a Cartesian decomposition, ranks in C order."""
    areas = [1]
    for length, parts in zip(variable.shape, grid, strict=True):
        low, extra = divmod(length, parts)
        sides = [low + 1] * extra + [low] * (parts - extra)
        areas = [area * side for area in areas for side in sides]
    element = variable.count * TYPE_BYTES[variable.type]
    for area, same in groupby(areas):
        yield sum(1 for _ in same), area * element


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Order of transfers or files: `consecutive`, `strided` (by `step`) or `shuffled` (`seed`)."""

    rule: str = "consecutive"
    step: int = 0
    seed: int = 0


CONSECUTIVE = Order()


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Content of the bytes; compressibility is the fraction of random bytes that are zero."""

    kind: str = "random"
    compressibility: float = 0


RANDOM = Content()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """Reads between the writes of a rank: behind every `every_bytes` of a file, `calls` on
    average, each of the last `transfer_bytes` that it has written."""

    every_bytes: int
    calls: float
    transfer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    rule: str
    from_ranks: int


_REQUESTS = "requests (reads, writes and asynchronous ones) are not played"
_REQUESTS_LEFT_OUT = re.compile(
    rf"(?:[0-9][0-9,]* of [0-9][0-9,]*|An unknown number of) {re.escape(_REQUESTS)}\."
)


def requests_left_out(count: int = 0, total: int = 0) -> str:
    """A note that so many of a program's requests are not played, or an unknown number of them."""
    return f"{f'{count:,} of {total:,}' if total else 'An unknown number of'} {_REQUESTS}."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    format: str
    version: str = ""
    reader: str = ""
    notes: tuple[str, ...] = ()

    @property
    def requests_left_out(self) -> str:
        """The note of `requests_left_out`; empty without one."""
        return next(filter(_REQUESTS_LEFT_OUT.fullmatch, self.notes), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a value comes from; `confidence` is that of its origin unless it is given."""

    path: str
    origin: str
    confidence: str = ""
    how: str

    def __post_init__(self) -> None:
        if not self.confidence:
            object.__setattr__(self, "confidence", CONFIDENCE.get(self.origin, "guess"))


def identifier(text: str) -> str:
    """Turn the text into a name that the schema accepts."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).lstrip("-._")[:100].rstrip("-") or "workload"

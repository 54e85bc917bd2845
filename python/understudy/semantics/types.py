"""The workload as frozen dataclasses, and the names and numbers in it.

Sizes are bytes, times are seconds since the start of the application.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from understudy.semantics.descriptor import plain
from understudy.semantics.syscalls import CallList, Tree

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
STRUCTURES = ("role", "operation", "files", "layout", "method")
STATED = ("order", "pace")  # structures that need provenance where they are stated
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
    made = []
    for k in range(0, len(rule.runs), per_block):
        block = rule.runs[k : k + per_block]
        made += equal_ranks(sum(n for n, _ in block), sum(n * rows for n, rows in block))
    return runs(made)


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
        """Whether it can have the place of another variable."""
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
class Repeat:
    """A dump that stands for `count` of them, `period_s` seconds from start to start."""

    count: int
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation without bytes; `runs` are (ranks, how often each makes it)."""

    operation: str
    runs: tuple[tuple[int, int], ...]

    @property
    def count(self) -> int:
        """How often all ranks together make it."""
        return sum(n * each for n, each in self.runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """An entry of a stream: a dump, or equal dumps by `repeat`."""

    time_s: float
    variables: tuple[Variable, ...] = ()
    duration_s: float | None = None
    compute_s: float = 0
    overhead_bytes: int | None = None
    repeat: Repeat | None = None
    operations: tuple[Operation, ...] = ()
    skew: tuple[tuple[int, float], ...] = ()  # (ranks, seconds behind time_s); empty: none
    continues: bool = False
    calls: CallList | None = None  # of the system, in place of variables

    @property
    def bytes(self) -> int:
        """Contents of one dump over all ranks."""
        if self.calls is not None:
            return self.calls.bytes
        return sum(v.bytes for v in self.variables)

    @property
    def count(self) -> int:
        """Dumps that the entry stands for."""
        return self.repeat.count if self.repeat else 1

    def start_s(self, k: int) -> float:
        """When dump k of the entry starts."""
        return self.time_s + k * self.repeat.period_s if self.repeat else self.time_s

    def started(self, time_s: float) -> int:
        """How many dumps of the entry start at that time or before."""
        return bisect_right(range(self.count), time_s, key=self.start_s)

    @property
    def last_s(self) -> float:
        """When the last dump of the entry starts."""
        return self.start_s(self.count - 1)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One dump of a stream; `bytes` are what it moves, every pass counted."""

    time_s: float
    bytes: int
    dump: Dump

    @property
    def duration_s(self) -> float | None:
        return self.dump.duration_s

    @property
    def io_s(self) -> float | None:
        """I/O time: the duration without the computing in it; None where it is not known."""
        duration_s = self.dump.duration_s
        return None if duration_s is None else max(0.0, duration_s - self.dump.compute_s)

    @property
    def overhead_bytes(self) -> int | None:
        return self.dump.overhead_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Order of transfers or files: `consecutive`, `strided` (by `step`) or `shuffled` (`seed`)."""

    rule: str = "consecutive"
    step: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What the bytes contain; compressibility is the fraction of random bytes that are zero."""

    kind: str = "random"
    compressibility: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookups:
    """Reads between the writes of a rank: behind every `every_bytes` of a file, `calls` on
    average, each of the last `transfer_bytes` that it has written."""

    every_bytes: int
    calls: float
    transfer_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    name: str
    role: str
    operation: str
    files: str
    layout: str
    method: str
    transfer_bytes: int
    dumps: tuple[Dump, ...]
    label: str = ""
    groups: int | None = None
    collective: bool = False
    sync: bool = False
    turns: bool = False
    content: Content = Content()
    names: int = 1
    reopen: bool | None = None  # None: as the files imply; see stays_open
    extends: str | None = None
    order: Order = Order()
    passes: int = 1
    pace: str = "burst"
    direct: bool = False
    sync_bytes: int | None = None
    flush_bytes: int | None = None
    chunk_bytes: int | None = None
    fill: bool = False
    lookups: Lookups | None = None
    write_through: bool = False
    removes: bool = False
    backup: bool = False
    own_directories: bool = False
    files_per_directory: int | None = None
    reads: str | None = None
    tree: Tree | None = None  # the files of its calls of the system

    def __post_init__(self) -> None:
        if self.reopen == (self.files != "append"):
            object.__setattr__(self, "reopen", None)

    @property
    def stays_open(self) -> bool:
        """Whether files are open from their first dump to their last: appended ones unless
        `reopen` is true, updated ones if it is false. One set of updated ones is open until it
        is read for the last time."""
        return self.files == "append" if self.reopen is None else not self.reopen

    @property
    def makes_new_files(self) -> bool:
        """Whether each content has files of its own."""
        return self.files == "new"

    @property
    def grows(self) -> bool:
        """Whether it has one set of files, to which each dump is added."""
        return self.files == "append"

    @property
    def empties(self) -> bool:
        """Whether each content begins with the files of an earlier one, emptied."""
        return self.files == "rewrite"

    @property
    def takes_turns(self) -> bool:
        """Whether ranks that share a file have it open one after the other."""
        return self.turns

    @property
    def is_flood(self) -> bool:
        """Whether each row of a variable is a file of its own."""
        return self.layout == "flood"

    @property
    def base(self) -> str | None:
        """The stream whose files it extends or reads."""
        return self.extends or self.reads

    def moved(self, dump: Dump) -> int:
        """Bytes that one dump of an entry moves, every pass counted."""
        return self.passes * dump.bytes

    @property
    def bytes(self) -> int:
        """Payload that the stream moves over all dumps, passes and ranks."""
        return self.passes * sum(d.count * d.bytes for d in self.dumps)

    @property
    def dump_count(self) -> int:
        """Number of dumps, with repetitions."""
        return sum(d.count for d in self.dumps)

    @property
    def first_s(self) -> float:
        """When the first dump starts."""
        return self.dumps[0].time_s

    @property
    def last_s(self) -> float:
        """When the last dump starts."""
        return self.dumps[-1].last_s

    def expanded(self) -> Iterator[Occurrence]:
        """Every dump in order, one after the other, with repetitions."""
        for dump in self.dumps:
            moved = self.passes * dump.bytes
            for k in range(dump.count):
                yield Occurrence(dump.start_s(k), moved, dump)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    rule: str
    from_ranks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    format: str
    version: str = ""
    reader: str = ""
    notes: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a workload says; `semantics.workload` has the workload itself."""

    name: str
    description: str
    ranks: int
    streams: tuple[Stream, ...]
    source: Source
    provenance: tuple[Provenance, ...]
    runtime_s: float | None = None
    compute: str = "sleep"
    scaling: Scaling | None = None

    def __deepcopy__(self, _: object) -> "Described":
        """Itself, of which nothing changes: ReFrame copies each check for each case."""
        return self

    @property
    def bytes(self) -> int:
        """Payload of the workload: every dump of every stream, reads included."""
        return sum(s.bytes for s in self.streams)

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)


def provenance_of(workload: Described, pointer: str) -> Provenance | None:
    """The entry for the value at a JSON pointer; the last match wins."""
    steps = pointer.split("/")
    for entry in reversed(workload.provenance):
        pattern = entry.path.split("/")
        if len(pattern) <= len(steps) and all(
            p in ("*", s) for p, s in zip(pattern, steps, strict=False)
        ):
            return entry
    return None


def numbers(workload: Described) -> Iterator[str]:
    """JSON pointers of all numbers that need a provenance entry."""

    def walk(value: Any, pointer: str) -> Iterator[str]:
        if isinstance(value, dict):
            for key, item in value.items():
                yield from walk(item, f"{pointer}/{key}")
        elif isinstance(value, list):
            for k, item in enumerate(value):
                yield from walk(item, f"{pointer}/{k}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield pointer

    row = plain(workload)
    for key in ("ranks", "runtime_s", "streams"):
        yield from walk(row[key], f"/{key}")


def structures(workload: Described) -> Iterator[str]:
    """JSON pointers of what a reader infers besides numbers; it needs a provenance entry too."""
    for k, stream in enumerate(plain(workload)["streams"]):
        keys = (*STRUCTURES, *(key for key in STATED if key in stream))
        yield from (f"/streams/{k}/{key}" for key in keys)


def identifier(text: str) -> str:
    """Turn the text into a name that the schema accepts."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text).lstrip("-._")[:100].rstrip("-") or "workload"

"""Calls of the system that a program makes, on the files of a tree, as docs/reference/program.md
defines them; proxies/core/workload/syscalls.c reads the same. Loops are never expanded. Sizes are
bytes.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]

DATA = ("read", "write", "copy")
# Keys of the calls that name files or places, which are linear in the passes of loops.
LINEAR = ("path", "to", "at")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`count` files or directories of a tree, one behind the other: in the directory that is the
    entry `within`. `bytes`: of a file that is there before the first call; None: it is not."""

    within: int | None = None
    directory: bool = False
    bytes: int | None = None
    count: int = 1
    top: bool = False  # the directory of the tree itself
    name: int | None = None  # the entry whose last name it has; None: its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """The files of the calls; together they take `stored_bytes` at most."""

    entries: tuple[Entry, ...]
    stored_bytes: int

    @property
    def files(self) -> int:
        """Entries that are no directory before the first call."""
        return sum(e.count for e in self.entries if not e.directory and not e.top)

    @property
    def count(self) -> int:
        """All entries."""
        return sum(e.count for e in self.entries)


class CallList:
    """The calls of a step, as rows of the contract."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = tuple(rows)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CallList) and self.rows == other.rows

    def __hash__(self) -> int:
        return hash((len(self.rows), self.bytes, self.count))

    def each(self) -> Iterator[tuple[Row, int]]:
        """Each call, and how often all ranks together make it."""
        yield from _each(self.rows, 1)

    @cached_property
    def kinds(self) -> Counter[str]:
        """Calls of all ranks by kind."""
        counts: Counter[str] = Counter()
        for call, times in self.each():
            counts[call["call"]] += times
        return counts

    @cached_property
    def count(self) -> int:
        """Calls of all ranks."""
        return self.kinds.total()

    def sizes(self, kind: str) -> Counter[int]:
        """The reads or writes of all ranks by the bytes that they move."""
        counts: Counter[int] = Counter()
        for call, times in self.each():
            if call["call"] == kind:
                counts[moved(call)] += times
        return counts

    @cached_property
    def bytes(self) -> int:
        """Bytes that all ranks move."""
        return sum(times * moved(call) for call, times in self.each())

    @property
    def largest(self) -> int:
        """Bytes of the largest call."""
        return max((call.get("bytes", 0) for call, _ in self.each()), default=0)

    @property
    def opens(self) -> int:
        """Opens of all ranks that succeed."""
        return sum(times for call, times in self.each() if call["call"] == "open" and "as" in call)


def passes(loop: Row) -> int:
    """How often all ranks together go through the body of a loop."""
    return loop["repeat"] if "repeat" in loop else loop["ranks"][1]  # type: ignore[no-any-return]


def moved(call: Row) -> int:
    """Bytes that a call moves."""
    if call["call"] not in DATA:
        return 0
    size: int = call["moved"] if "moved" in call else asked(call)
    return size


def asked(call: Row) -> int:
    """Bytes that a call which moves some asks for."""
    size: int = call["length"] if call["call"] == "copy" else call["bytes"]
    return size


def _each(rows: Sequence[Row], times: int) -> Iterator[tuple[Row, int]]:
    for row in rows:
        if "call" in row:
            yield row, times
        else:
            yield from _each(row["do"], times * passes(row))


def tree_of(files: Row) -> Tree:
    """The tree of a set of files of the contract."""
    entries = (
        Entry(
            within=e.get("in"),
            directory=e.get("directory", False),
            bytes=e.get("bytes"),
            count=e.get("count", 1),
            top=e.get("top", False),
            name=e.get("name"),
        )
        for e in files["entries"]
    )
    return Tree(entries=tuple(entries), stored_bytes=files["stored_bytes"])


def entry_row(entry: Entry) -> Row:
    """An entry as the contract has it."""
    row: Row = {}
    if entry.within is not None:
        row["in"] = entry.within
    if entry.directory:
        row["directory"] = True
    if entry.bytes is not None:
        row["bytes"] = entry.bytes
    if entry.count > 1:
        row["count"] = entry.count
    if entry.top:
        row["top"] = True
    if entry.name is not None:
        row["name"] = entry.name
    return row


def faults(tree: Tree, calls: CallList, ranks: int) -> Iterator[tuple[str, str]]:
    """Faults of the calls of a step, as (key, message)."""
    first = 0
    before = sum((entry.bytes or 0) * entry.count for entry in tree.entries)
    if before > tree.stored_bytes:
        yield "set.stored_bytes", f"expected at least {before}, the bytes that are there before"
    for k, entry in enumerate(tree.entries):
        if entry.top and (entry.directory or entry.bytes is not None or entry.count > 1):
            yield f"set.entries[{k}].top", "expected no directory, bytes and count with it"
        if entry.within is not None and entry.within >= first:
            yield (
                f"set.entries[{k}].in",
                f"expected the number of an entry before it, below {first}",
            )
        if entry.name is not None and (entry.name >= first or entry.count > 1):
            yield (
                f"set.entries[{k}].name",
                f"expected the number of an entry before it, below {first}",
            )
        first += entry.count
    yield from _faults(calls.rows, tree.count, ranks, (), "calls.do")


def _faults(
    rows: Sequence[Row], paths: int, ranks: int, around: tuple[int, ...], where: str
) -> Iterator[tuple[str, str]]:
    for k, row in enumerate(rows):
        here = f"{where}[{k}]"
        if "call" in row:
            yield from ((f"{here}.{key}", why) for key, why in _call_faults(row, paths, around))
            continue
        if "ranks" in row:
            low, count = row["ranks"]
            if around or low + count > ranks:
                yield f"{here}.ranks", f"expected ranks below {ranks}, outside of other loops"
        more = (*around, passes(row))
        if len(more) > MOST_LOOPS:
            yield here, f"expected at most {MOST_LOOPS} loops within each other"
        else:
            yield from _faults(row["do"], paths, ranks, more, f"{here}.do")


MOST_LOOPS = 6


def _call_faults(call: Row, paths: int, passes: tuple[int, ...]) -> Iterator[tuple[str, str]]:
    kind = call["call"]
    for key in LINEAR:
        if key not in call:
            continue
        most = (1 << 63) - 1 - call.get("bytes", 0) if key == "at" else paths - 1
        low, high, factors = _bounds(call[key], passes)
        if factors > len(passes) or low < 0 or high > most:
            yield (
                key,
                f"expected from 0 to {most} in all passes, and at most {len(passes)} factors",
            )
    if "moved" in call and call["moved"] > asked(call):
        yield "moved", f"expected at most the {asked(call)} bytes that are asked for"
    if kind in ("stat", "truncate", "attribute") and ("path" in call) == ("of" in call):
        yield "call", "expected either path or of"
    if "depth" in call and "at" not in call:
        yield "depth", "expected with at alone"
    if kind == "open" and ("as" in call) == bool(call.get("fails")):
        yield "as", "expected the handle, unless the call fails"
    if call.get("fails") and "of" in call:
        yield "fails", "expected with path alone"


def _bounds(value: Any, passes: tuple[int, ...]) -> tuple[int, int, int]:
    """Minimum and maximum of the value, and the number of factors."""
    if isinstance(value, int):
        return value, value, 0
    low = high = value[0]
    for factor, count in zip(value[1:], passes, strict=False):
        far = factor * (count - 1)
        low, high = min(low, low + far), max(high, high + far)
    return low, high, len(value) - 1

"""Files as the calls of a trace show them: names, open files, descriptors, calls."""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import add
from typing import Any

import numpy as np

Row = dict[str, Any]


@dataclass(slots=True)
class Path:
    """A name of the program's files: what it was before the first call."""

    directory: bool = False
    before: bool | None = None  # was it there? None: no call has said so
    created: bool = False  # by a call that would also have taken what was there
    assumed: bool = False  # a directory that is there for all that the calls have said so far
    bytes: int = 0  # before the first call, as far as is known
    file: "File | None" = None  # that has the name
    like: str | None = None  # the path whose last name it has, in a directory that is renamed


@dataclass(slots=True)
class File:
    """Its size, as far as the calls say."""

    size: int = 0
    prepared: Path | None = None  # whose bytes may be more than is known
    most: int = 0  # the largest size that it had

    def was(self, size: int) -> None:
        """A call has found it of this size, which no other call has given it."""
        if self.prepared is not None and size > self.size:
            self.prepared.bytes = size
            self.prepared.before = True
            self.grow(size)

    def grow(self, end: int) -> None:
        """Bytes up to there are written."""
        self.size = max(self.size, end)
        self.most = max(self.most, self.size)

    def cut(self, size: int) -> None:
        """It gets this size."""
        self.size, self.prepared = size, None
        self.most = max(self.most, size)


@dataclass(slots=True)
class Opened:
    """An open file."""

    file: File
    path: str
    place: int = 0
    append: bool = False
    written: bool = False


@dataclass(slots=True)
class Descriptor:
    """Descriptor of a process: the handle in the list of calls."""

    handle: int
    opened: Opened
    closes: bool  # at exec


@dataclass(slots=True)
class Process:
    """A process: threads share it."""

    rank: int
    cwd: str
    table: dict[int, Descriptor] = field(default_factory=dict)
    tasks: int = 1


@dataclass(slots=True)
class TracedCall:
    """A call of a rank; `path` and `to` are names of files."""

    rank: int
    begin_s: float
    seconds: float
    row: Row
    path: str | None = None
    to: str | None = None
    file: File | None = None  # whose bytes it moves
    source: File | None = None  # whose bytes it copies
    changes: bool = False  # names, sizes or bytes
    alone: bool = False  # its place depends on the calls before it


class TracedCalls:
    """Many calls, in 28 bytes each and once what several of them have in common: all but their
    times and the place in the file."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[Any, ...], int] = {}
        self._firsts: list[TracedCall] = []  # of each kind
        self._of = array("I")
        self._at = array("q")
        self._times = array("d")
        self._waits: dict[int, int] = {}  # ranks that wait behind a call
        self._withdrawn: set[int] = set()

    def append(self, call: TracedCall) -> None:
        """Add a call; its row stays as it is."""
        kind = self._kind(call)
        self._at.append(call.row.get("at", 0))  # or OverflowError
        self._of.append(kind)
        self._times.extend((call.begin_s, call.seconds))

    def change(self, index: int, **keys: int) -> None:
        """Add keys to the row of a call."""
        call = self[index]
        call.row = call.row | keys
        self._of[index] = self._kind(call)

    def withdraw(self, index: int) -> None:
        """Leave a call out, whose number stays."""
        self._withdrawn.add(index)

    def wait_behind(self, index: int, rank: int) -> None:
        """Let a rank wait for its calls in flight behind a call."""
        self._waits[index] = rank

    def placed(self) -> Iterator[tuple[Any, Any]]:
        """The numbers of reads and writes with a place of their own, of each rank, and for each
        how many other calls of the rank are before it."""
        of = np.array(self._of, np.uint32)
        ranks = np.array([call.rank for call in self._firsts], np.int64)[of]
        placed = np.array([_has_place(call) for call in self._firsts], np.bool_)[of]
        order = np.argsort(ranks, kind="stable")
        order = order[~np.isin(order, list(self._withdrawn))]
        for indices in np.split(order, np.flatnonzero(np.diff(ranks[order])) + 1):
            here = placed[indices]
            yield indices[here], np.cumsum(~here)[here]

    def times(self, indices: Any) -> tuple[Any, Any]:
        """When these calls began and ended."""
        times = np.frombuffer(self._times, np.float64).reshape(-1, 2)[indices]
        return times[:, 0].copy(), times.sum(axis=1)

    def _kind(self, call: TracedCall) -> int:
        row = call.row
        rest = (tuple(v) if k == "flags" else v for k, v in row.items() if k != "at")
        of: tuple[Any, ...] = (call.rank, call.path, call.to, id(call.file), id(call.source))
        of += (call.changes, call.alone)
        key = (*of, *row, *rest)
        kind = self._kinds.setdefault(key, len(self._firsts))
        if kind == len(self._firsts):
            self._firsts.append(call)
        return kind

    def __len__(self) -> int:
        return len(self._of)

    def __iter__(self) -> Iterator[TracedCall]:
        for k in range(len(self)):
            call = self[k]
            if k not in self._withdrawn:
                yield call
            if k in self._waits:
                end_s = call.begin_s + call.seconds
                yield TracedCall(self._waits[k], end_s, 0.0, {"call": "wait"})

    def __getitem__(self, k: int) -> TracedCall:
        first, at = self._firsts[self._of[k]], self._at[k]
        row = first.row if first.row.get("at", 0) == at else first.row | {"at": at}
        begin_s, seconds = self._times[2 * k : 2 * k + 2]
        return TracedCall(
            first.rank,
            begin_s,
            seconds,
            row,
            first.path,
            first.to,
            first.file,
            first.source,
            first.changes,
            first.alone,
        )

    @property
    def moves(self) -> int:
        """How many of them are reads and writes."""
        kinds = np.array(
            [call.row["call"] in ("read", "write") for call in self._firsts], np.bool_
        )
        moves = kinds[np.array(self._of, np.uint32)]
        return int(np.count_nonzero(moves) - np.count_nonzero(moves[list(self._withdrawn)]))

    @property
    def ranks(self) -> set[int]:
        """Those that made calls."""
        return {call.rank for call in self._firsts}

    @property
    def span_s(self) -> tuple[float, float]:
        """The begin of the first and the end of the last; there is one at least."""
        begins, seconds = self._times[::2], self._times[1::2]
        return min(begins), max(map(add, begins, seconds))


def _has_place(call: TracedCall) -> bool:
    row = call.row
    moves = row["call"] in ("read", "write") and "at" in row
    return moves and "depth" not in row and not call.alone

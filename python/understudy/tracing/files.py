"""Files as the calls of a trace show them: names, open files, descriptors, calls."""

from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]


@dataclass(slots=True)
class Path:
    """A name of the program's files: what it was before the first call."""

    directory: bool = False
    before: bool | None = None  # was it there? None: no call has said so
    made: bool = False  # by a call that would also have taken what was there
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
    """Of a process: the handle in the list of calls."""

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
class Made:
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

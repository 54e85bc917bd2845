"""A program: what a workload means for its ranks, as docs/reference/program.md defines it.

It is as long as the descriptor: loops over dumps, passes, files and ranks are never expanded.
Sizes are bytes, times are seconds since the start of the application.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from understudy.semantics.syscalls import CallList, Tree
from understudy.semantics.types import Content, Lookups, Order, Variable

Runs: TypeAlias = tuple[tuple[int, int], ...]  # (ranks, number of each)

ALL_RANKS, EACH_RANK, EACH_GROUP, EACH_ROW = "all ranks", "each rank", "each group", "each row"
CALLERS = "callers"
NEW, TRUNCATE, KEEP, READ = "new", "truncate", "keep", "read"
CONSECUTIVE = Order()
# Bytes that a call of a library can move: HDF5's driver of MPI-IO counts them in an int.
MOST_CALL_BYTES = {"hdf5": (1 << 31) - 1}
HANDS_OVER = ("stdio",)  # methods whose library has a buffer that a flush empties
OPERATIONS = ("mkdir", "create", "open", "stat", "seek", "sync", "rename", "unlink")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSet:
    """The files of a stream: for each content, `files` of each of their owners.

    Content k is in the set of index k, or k modulo `names`; `numbered` is false where there is
    one set for all time. The ranks of a file are those with bytes in it: of the content where the
    index is k, else of any dump.
    """

    name: str
    owner: str  # ALL_RANKS, EACH_RANK, EACH_GROUP, EACH_ROW, CALLERS
    groups: int  # owners; of rows: ranks
    files: int = 1
    names: int | None = None  # None: each content has a set of its own
    numbered: bool = True
    own_directories: bool = False  # each owner's files are in one
    files_per_directory: int | None = None
    prepared: bool = False  # the run makes them before it takes time
    tree: Tree | None = None  # of CALLERS


@dataclass(frozen=True, slots=True)
class Begin:
    """The next content: k grows by one, and the next byte is the first of each file, or the first
    behind those of the stream that is extended. Where files are prepared, k grows by more than one
    where those between are made already."""

    contents: int = 1


@dataclass(frozen=True, slots=True)
class Skew:
    """Ranks begin later than the dump: `runs` are (ranks, seconds of each)."""

    runs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """The files are removed, if they are there. `backup`: they are renamed instead, to a backup
    that takes the place of the one before."""

    backup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Every rank of each file opens it, unless it has it open. `last`: the files of the content
    that their stream is at, through its open where it has them open."""

    set: FileSet
    mode: str
    last: bool = False
    direct: bool = False
    write_through: bool = False
    chunk_bytes: int | None = None  # of datasets of HDF5
    fill: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operate:
    """Operations without bytes; `runs` are (ranks, how often each makes it)."""

    kind: str
    runs: Runs

    @property
    def count(self) -> int:
        """How often all ranks together make it."""
        return sum(ranks * each for ranks, each in self.runs)


@dataclass(frozen=True, slots=True)
class Compute:
    """Each rank computes for so long, between its transfers."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The transfers are spread evenly over the time that the dump lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Every rank moves its block of each of `count` variables, call by call."""

    variable: Variable
    writes: bool
    transfer_bytes: int  # of a call, at most
    collective: bool = False
    order: Order = CONSECUTIVE
    flush_bytes: int | None = None  # a rank flushes each time that it has written so many
    hands_over: bool = False  # to the system only, what the library buffers
    lookups: Lookups | None = None

    @property
    def at(self) -> str | None:
        """The variable whose place in the file it has; None: behind what was moved last."""
        return self.variable.at

    def call_bytes(self, method: str) -> int:
        """Bytes of a call by this method, at most."""
        return min(self.transfer_bytes, MOST_CALL_BYTES.get(method, self.transfer_bytes))

    def flushes(self, method: str) -> int | None:
        """Bytes behind which a rank flushes a file of this method; None: it does not."""
        return None if self.hands_over and method not in HANDS_OVER else self.flush_bytes


@dataclass(frozen=True, slots=True)
class Sync:
    """Every rank flushes its files."""


@dataclass(frozen=True, slots=True)
class Close:
    """Every rank closes its files."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The body so many times."""

    count: int
    body: "Body"


@dataclass(frozen=True, slots=True)
class InTurn:
    """The body by one rank of each file after the other: the first finds no file, and those
    behind it what the ranks before them wrote."""

    body: "Body"


@dataclass(frozen=True, slots=True)
class Files:
    """The body for each file of a set with a file for each row, by the rank that has the row."""

    order: Order
    body: "Body"


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of the system, on the files of a tree: all that a step does, but for computing."""

    set: FileSet
    list: CallList


Instruction: TypeAlias = (
    Begin
    | Skew
    | Remove
    | Open
    | Operate
    | Compute
    | Spread
    | Move
    | Sync
    | Close
    | Passes
    | InTurn
    | Files
    | Calls
)
Body: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A dump, or `count` equal ones every `period_s`."""

    time_s: float
    body: Body
    count: int = 1
    period_s: float = 0
    duration_s: float | None = None

    def start_s(self, k: int) -> float:
        """When dump k of the step is due."""
        return self.time_s + k * self.period_s if k else self.time_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """What one stream does, in the order of time; `closes`: files that are still open are closed
    behind their last use."""

    name: str
    method: str
    content: Content
    set: FileSet  # of its files, or of the stream that it extends or reads
    steps: tuple[Step, ...]
    closes: bool = False
    writer: str | None = None  # the thread of whose content its `last` files are


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Threads run side by side in the order of their times, those of one time in this order."""

    name: str
    ranks: int
    threads: tuple[Thread, ...]

    @property
    def sets(self) -> tuple[FileSet, ...]:
        """All sets of files, in the order of the threads."""
        return tuple(dict.fromkeys(thread.set for thread in self.threads))


def flat(body: Body) -> Iterator[Instruction]:
    """The instructions with those of the loops within, each once."""
    for instruction in body:
        yield instruction
        if isinstance(instruction, Passes | InTurn | Files):
            yield from flat(instruction.body)


def instructions(thread: Thread) -> Iterator[Instruction]:
    """Those of all steps, with those of the loops within, each once."""
    for step in thread.steps:
        yield from flat(step.body)


def begins_content(step: Step) -> int:
    """By how much k grows in each dump of a step; 0: it goes on with the content before it."""
    return next((i.contents for i in step.body if isinstance(i, Begin)), 0)


def variables_of(bodies: Iterable[Body]) -> list[Variable]:
    """The variables that they move."""
    return [i.variable for body in bodies for i in flat(body) if isinstance(i, Move)]


def calls_of_system(thread: Thread) -> Iterator[tuple[CallList, int]]:
    """Those of a thread, and in how many dumps it makes them."""
    for step in thread.steps:
        yield from ((i.list, step.count) for i in step.body if isinstance(i, Calls))


def writes(thread: Thread) -> bool:
    """Whether it moves bytes into files."""
    return any(isinstance(i, Move) and i.writes for i in instructions(thread))


def opening(thread: Thread) -> Iterator[Open]:
    """The opens of a thread."""
    return (i for i in instructions(thread) if isinstance(i, Open))


def moves(body: Body, times: int = 1) -> Iterator[tuple[Move, int]]:
    """The moves of a body with those of the loops within, and how often it makes each."""
    for instruction in body:
        match instruction:
            case Move():
                yield instruction, times
            case Passes():
                yield from moves(instruction.body, times * instruction.count)
            case InTurn() | Files():
                yield from moves(instruction.body, times)
            case _:
                pass

"""A program: what a workload means for its ranks, as docs/reference/program.md defines it.

It is as long as the descriptor: loops over dumps, passes, files and ranks are never expanded.
Sizes are bytes, times are seconds since the start of the application. One file because what a
stream is follows from its instructions.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, TypeVar

from understudy.program.syscalls import CallList, Tree
from understudy.program.types import CONSECUTIVE, RANDOM, Content, Lookups, Order, Variable

T = TypeVar("T")
Runs: TypeAlias = tuple[tuple[int, int], ...]  # (ranks, number of each)

ALL_RANKS, EACH_RANK, EACH_GROUP, EACH_ROW = "all ranks", "each rank", "each group", "each row"
CALLERS = "callers"
NEW, TRUNCATE, KEEP, READ = "new", "truncate", "keep", "read"
# Bytes that a call of a library can move: HDF5's driver of MPI-IO counts them in an int.
MOST_CALL_BYTES = {"hdf5": (1 << 31) - 1}
HANDS_OVER = ("stdio",)  # methods whose library has a buffer that a flush empties
QUEUES = ("mpiio", "uring")  # methods that can have calls of a move in flight
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


class Word:
    """An instruction that is one word in the contract, see `WORDS`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Begin(Word):
    """The next content: k grows by one, and the next byte is the first of each file, or the first
    behind those of the stream that is extended. Where files are prepared, k grows by more than one
    where those between are made already."""

    contents: int = 1


@dataclass(frozen=True, slots=True)
class Skew:
    """Ranks begin later than the dump: `runs` are (ranks, seconds of each)."""

    runs: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Remove(Word):
    """The files are removed, if they are there. `backup`: they are renamed instead, to a backup
    that takes the place of the one before."""

    backup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Every rank of each file opens it, unless it has it open."""

    mode: str
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
class Spread(Word):
    """The transfers are spread evenly over the time that the dump lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Every rank moves its block of each of `count` variables, call by call."""

    variable: Variable
    writes: bool
    transfer_bytes: int  # of a call, at most
    collective: bool = False
    nonblocking: bool = False  # only begun, for WaitAll to wait for
    depth: int = 1  # calls of a rank in flight at a time
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
class WaitAll(Word):
    """Every rank waits for the moves that it has begun."""


@dataclass(frozen=True, slots=True)
class Sync(Word):
    """Every rank flushes its files."""


@dataclass(frozen=True, slots=True)
class Close(Word):
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

    list: CallList


Instruction: TypeAlias = (
    Word | Skew | Open | Operate | Compute | Move | Passes | InTurn | Files | Calls
)
Body: TypeAlias = tuple[Instruction, ...]

WORDS: dict[str, Word] = {
    "begin": Begin(),
    "remove": Remove(),
    "rename": Remove(backup=True),
    "spread": Spread(),
    "wait_all": WaitAll(),
    "sync": Sync(),
    "close": Close(),
}
WORD_OF = {instruction: word for word, instruction in WORDS.items()}
Change: TypeAlias = Callable[[Instruction], Instruction | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A dump, or `count` equal ones every `period_s`."""

    time_s: float
    body: Body
    count: int = 1
    period_s: float = 0
    duration_s: float | None = None
    overhead_bytes: int | None = None  # what its container adds to each, for people

    def start_s(self, k: int) -> float:
        """When dump k of the step is due."""
        return self.time_s + k * self.period_s if k else self.time_s

    @property
    def last_s(self) -> float:
        """When the last dump of the step is due."""
        return self.start_s(self.count - 1)

    def started(self, time_s: float) -> int:
        """How many dumps of the step are due at that time or before."""
        return bisect_right(range(self.count), time_s, key=self.start_s)

    @property
    def moves(self) -> tuple["Move", ...]:
        """Its moves, each once."""
        return tuple(i for i in flat(self.body) if isinstance(i, Move))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Those that it moves, each once."""
        return tuple(move.variable for move in self.moves)

    @property
    def operations(self) -> tuple["Operate", ...]:
        """Its operations without bytes."""
        return operations_of(self.body)

    @property
    def compute_s(self) -> float:
        """Seconds that each rank computes in a dump."""
        return compute_s(self.body)

    @property
    def skew(self) -> tuple[tuple[int, float], ...]:
        """By how much ranks are late."""
        return next((i.runs for i in flat(self.body) if isinstance(i, Skew)), ())

    @property
    def calls(self) -> CallList | None:
        """Its calls of the system."""
        return next((i.list for i in self.body if isinstance(i, Calls)), None)

    @property
    def continues(self) -> bool:
        """True if it goes on with the content of the step before it."""
        return not begins_content(self)

    @property
    def bytes(self) -> int:
        """Contents of one dump over all ranks."""
        called = self.calls
        return called.bytes if called is not None else sum(v.bytes for v in self.variables)

    @property
    def moved_bytes(self) -> int:
        """Bytes that one dump moves over all ranks, every pass counted."""
        return moved_bytes(self.body)

    @property
    def io_s(self) -> float | None:
        """I/O time: the duration without the computing in it; None where it is not known."""
        return io_s(self, self.compute_s)

    def mapped(self, change: Change) -> "Step":
        """The step with each instruction but loops changed, or left out where that is None."""
        return replace(self, body=mapped(self.body, change))


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One dump of a stream; `bytes` are what it moves, every pass counted; `compute_s`: the
    seconds that each rank computes in it, None where they are not summed up yet."""

    time_s: float
    bytes: int
    dump: Step
    compute_s: float | None = None

    @property
    def duration_s(self) -> float | None:
        return self.dump.duration_s

    @property
    def io_s(self) -> float | None:
        return self.dump.io_s if self.compute_s is None else io_s(self.dump, self.compute_s)

    @property
    def overhead_bytes(self) -> int | None:
        return self.dump.overhead_bytes


_LAYOUTS = {
    ALL_RANKS: "shared",
    EACH_RANK: "file-per-process",
    EACH_GROUP: "grouped",
    EACH_ROW: "flood",
    CALLERS: "callers",
}


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Program of one stream, in the order of time, and what follows from it.

    `closes`: files that are still open are closed behind their last use.
    """

    name: str
    role: str
    method: str
    set: FileSet  # of its files, or of the stream that it is behind or reads
    steps: tuple[Step, ...]
    label: str = ""
    content: Content = RANDOM
    closes: bool = False
    behind: str | None = None  # the stream behind whose bytes its own go
    last: str | None = None  # the stream whose last content it reads
    files_per_directory: int | None = None  # of operations, where the set is another stream's

    @property
    def base(self) -> str | None:
        """The stream in whose files its bytes are."""
        return self.behind or self.last

    # -- what it does to files ----------------------------------------------------------------

    @cached_property
    def operation(self) -> str:
        """Direction of its moves (write or read); without any, what it would do to its files."""
        move = self._first_move
        if move is not None:
            return "write" if move.writes else "read"
        mode = next((i.mode for i in opening(self)), None)
        reads = mode == READ or self.last is not None or self.set.prepared
        return "read" if reads else "write"

    @cached_property
    def files(self) -> str:
        """Use that a content makes of the files of those before it: `new`, or the same that it
        appends to (`append`), empties first (`rewrite`) or writes over (`update`)."""
        if self.last is not None:
            return "update"
        if not self.set.numbered:
            return "append"
        if self.set.names is None:
            return "new"
        kept = self.open.mode in (KEEP, READ) and self.behind is None
        return "update" if kept else "rewrite"

    @property
    def layout(self) -> str:
        """Whose each file is."""
        return _LAYOUTS[self.set.owner]

    @property
    def groups(self) -> int | None:
        """Groups of ranks that share a file, where neither all nor none do."""
        return self.set.groups if self.set.owner == EACH_GROUP else None

    @property
    def names(self) -> int:
        """Sets of files that are used in turn."""
        numbered = self.set.numbered and self.last is None
        return (self.set.names or 1) if numbered else 1

    @property
    def tree(self) -> Tree | None:
        """The files of its calls of the system."""
        return self.set.tree

    @property
    def makes_new_files(self) -> bool:
        """True if each content has files of its own."""
        return self.files == "new"

    @property
    def grows(self) -> bool:
        """True if it has one set of files, to which each dump is added."""
        return self.files == "append"

    @property
    def empties(self) -> bool:
        """True if each content begins by emptying the files of an earlier one."""
        return self.files == "rewrite"

    @property
    def is_flood(self) -> bool:
        """True if each row of a variable is a file of its own."""
        return self.set.owner == EACH_ROW

    @cached_property
    def takes_turns(self) -> bool:
        """True if ranks that share a file have it open one after the other."""
        return any(isinstance(i, InTurn) for i in instructions(self))

    @cached_property
    def removes(self) -> bool:
        """True if it removes files before it writes them again, or renames them."""
        return any(isinstance(i, Remove) for i in instructions(self))

    @cached_property
    def backup(self) -> bool:
        """True if it renames files to a backup before it writes them again."""
        return any(isinstance(i, Remove) and i.backup for i in instructions(self))

    @property
    def opens(self) -> bool:
        """True if it opens its files itself, rather than its operations."""
        return next(opening(self), None) is not None

    @cached_property
    def open(self) -> Open:
        """How it opens its files; all its opens are alike."""
        return next(opening(self), Open(mode=READ if self.operation == "read" else TRUNCATE))

    # -- how it moves bytes -------------------------------------------------------------------

    @property
    def moves(self) -> Iterator[Move]:
        """Its moves in all steps, each once; those of a body that steps share are not repeated."""
        return (i for i in instructions(self) if isinstance(i, Move))

    @cached_property
    def _first_move(self) -> Move | None:
        return next(self.moves, None)

    @cached_property
    def transfer_bytes(self) -> int:
        """Bytes of a call at most, of its first move or of its largest call of the system."""
        if self._first_move is not None:
            return self._first_move.transfer_bytes
        return max((calls.largest for calls, _ in calls_of_system(self)), default=1) or 1

    @cached_property
    def collective(self) -> bool:
        """True if ranks make all its calls together."""
        return {move.collective for move in self.moves} == {True}

    @cached_property
    def sync(self) -> bool:
        """True if it flushes files behind its bytes."""
        return any(isinstance(i, Sync) for i in instructions(self))

    @cached_property
    def passes(self) -> int:
        """How often it moves a variable in a dump, at most."""
        return max((times for body in self.bodies for _, times in moves(body)), default=1)

    @cached_property
    def pace(self) -> str:
        """`steady` where its transfers are spread over the time of a dump, else `burst`."""
        return "steady" if any(isinstance(i, Spread) for i in instructions(self)) else "burst"

    @cached_property
    def order(self) -> Order:
        """The order of its transfers, or of its files of a row each."""
        loop = next((i for i in instructions(self) if isinstance(i, Files)), None)
        given = loop or self._first_move
        return CONSECUTIVE if given is None else given.order

    @property
    def lookups(self) -> Lookups | None:
        """Reads between its writes."""
        return self._first_move.lookups if self._first_move else None

    # -- its dumps ----------------------------------------------------------------------------

    @cached_property
    def bodies(self) -> tuple[Body, ...]:
        """The bodies of its steps in their order, one that steps share once."""
        return tuple({id(step.body): step.body for step in self.steps}.values())

    def of_bodies(self, of: Callable[[Body], T]) -> list[T]:
        """For each step what `of` returns for its body; one that steps share is asked for once."""
        values = {id(body): of(body) for body in self.bodies}
        return [values[id(step.body)] for step in self.steps]

    @cached_property
    def bytes(self) -> int:
        """Payload that the stream moves over all dumps, passes and ranks."""
        each = self.of_bodies(moved_bytes)
        return sum(step.count * moved for step, moved in zip(self.steps, each, strict=True))

    @cached_property
    def dump_count(self) -> int:
        """Number of dumps, with repetitions."""
        return sum(step.count for step in self.steps)

    @property
    def first_s(self) -> float:
        """When the first dump is due."""
        return self.steps[0].time_s

    @property
    def last_s(self) -> float:
        """When the last dump is due."""
        return self.steps[-1].last_s

    def expanded(self) -> Iterator[Occurrence]:
        """Every dump in order, one after the other, with repetitions."""
        sums = self.of_bodies(moved_bytes), self.of_bodies(compute_s)
        for step, moved, seconds in zip(self.steps, *sums, strict=True):
            for k in range(step.count):
                yield Occurrence(step.start_s(k), moved, step, seconds)

    # -- other streams ------------------------------------------------------------------------

    def mapped(self, change: Change) -> "Stream":
        """The stream with each instruction but loops changed, or left out where that is None."""
        return replace(self, steps=tuple(step.mapped(change) for step in self.steps))

    def with_variables(self, change: Callable[[Variable], Variable]) -> "Stream":
        """The stream with other variables in its moves."""

        def of(instruction: Instruction) -> Instruction:
            if not isinstance(instruction, Move):
                return instruction
            return replace(instruction, variable=change(instruction.variable))

        return self.mapped(of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Streams run side by side in the order of their times, those of one time in this order."""

    name: str
    ranks: int
    streams: tuple[Stream, ...]

    @property
    def sets(self) -> tuple[FileSet, ...]:
        """All sets of files, in the order of the streams."""
        return tuple(dict.fromkeys(stream.set for stream in self.streams))


def mapped(body: Body, change: Change) -> Body:
    """The body with each instruction but loops changed, or left out where that is None."""
    changed = (
        replace(i, body=mapped(i.body, change))
        if isinstance(i, Passes | InTurn | Files)
        else change(i)
        for i in body
    )
    return tuple(i for i in changed if i is not None)


def flat(body: Body) -> Iterator[Instruction]:
    """The instructions with those of the loops within, each once."""
    for instruction in body:
        yield instruction
        if isinstance(instruction, Passes | InTurn | Files):
            yield from flat(instruction.body)


def instructions(stream: Stream) -> Iterator[Instruction]:
    """Those of all steps, with those of the loops within, each once; those of a body that steps
    share are not repeated."""
    for body in stream.bodies:
        yield from flat(body)


def compute_s(body: Body) -> float:
    """Seconds that each rank computes in a dump."""
    return sum(i.seconds for i in flat(body) if isinstance(i, Compute))


def io_s(step: Step, seconds: float) -> float | None:
    """I/O time of a dump: its duration without the seconds of computing; None if not known."""
    return None if step.duration_s is None else max(0.0, step.duration_s - seconds)


def moved_bytes(body: Body) -> int:
    """Bytes that one dump moves over all ranks, every pass counted."""
    called = sum(i.list.bytes for i in body if isinstance(i, Calls))
    return called + sum(times * move.variable.bytes for move, times in moves(body))


def begins_content(step: Step) -> int:
    """By how much k grows in each dump of a step; 0: it goes on with the content before it."""
    return next((i.contents for i in step.body if isinstance(i, Begin)), 0)


def variables_of(bodies: Iterable[Body]) -> list[Variable]:
    """The variables that they move."""
    return [i.variable for body in bodies for i in flat(body) if isinstance(i, Move)]


def operations_of(body: Body) -> tuple[Operate, ...]:
    """The operations without bytes of a dump."""
    return tuple(i for i in flat(body) if isinstance(i, Operate))


def calls_of_system(stream: Stream) -> Iterator[tuple[CallList, int]]:
    """Those of a stream, and in how many dumps it makes them."""
    for step in stream.steps:
        yield from ((i.list, step.count) for i in step.body if isinstance(i, Calls))


def writes(stream: Stream) -> bool:
    """True if it moves bytes into files."""
    return any(isinstance(i, Move) and i.writes for i in instructions(stream))


def opening(stream: Stream) -> Iterator[Open]:
    """The opens of a stream."""
    return (i for i in instructions(stream) if isinstance(i, Open))


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

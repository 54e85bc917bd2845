"""Measurements of producers: the dataclasses that they share.

Seconds count from the start of the repetition, bytes are payload unless said otherwise. Each
producer has its own small schema (schemas/player.schema.json …); `understudy.producers` reads it
into these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from understudy.contracts.workload import Workload


class RankSeconds(NamedTuple):
    """Order statistics over the ranks of the seconds each spent in a phase. A tuple, like `Phase`:
    long runs have hundreds of thousands, which are made in half the time."""

    min: float
    q25: float
    median: float
    q75: float
    q95: float
    max: float
    mean: float


class Phase(NamedTuple):
    """A phase of a dump, such as open, write or close, over all ranks."""

    phase: str
    bytes: int
    operations: int
    first_start_s: float
    last_end_s: float
    rank_s: RankSeconds
    first_end_s: float | None = None
    first_end_bytes: int | None = None

    @property
    def elapsed_s(self) -> float:
        """From the first start on any rank to the last end on any rank."""
        return self.last_end_s - self.first_start_s


@dataclass(frozen=True, slots=True, kw_only=True)
class RankRange:
    """Smallest and largest number of a rank."""

    min: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """Moves of a dump by its deadline, and how many ranks that stopped."""

    stopped_ranks: int
    bytes: int
    rank_bytes: RankRange
    rank_transfers: RankRange


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryTimers:
    """Seconds of each process by ADIOS' own timers, which overlap."""

    communication_s: tuple[float, ...]
    io_s: tuple[float, ...]
    local_metadata_s: tuple[float, ...]
    global_metadata_s: tuple[float, ...]
    open_s: tuple[float, ...]
    write_s: tuple[float, ...]
    overflow_s: tuple[float, ...]
    close_s: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Bytes and seconds of each process in a step, in rank order.

    open_s + write_s + close_s = total_s, and communication_s + io_s + rest_s = total_s.
    """

    bytes: tuple[int, ...]
    open_s: tuple[float, ...]
    write_s: tuple[float, ...]
    close_s: tuple[float, ...]
    total_s: tuple[float, ...]
    communication_s: tuple[float, ...]
    io_s: tuple[float, ...]
    rest_s: tuple[float, ...]
    library: LibraryTimers | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpResult:
    """One dump of a stream, or one step of a program's group."""

    dump: int
    start_s: float
    bytes: int
    file_bytes: int | None
    files: int
    phases: tuple[Phase, ...]
    elapsed_s: float = field(init=False, repr=False, compare=False)
    """First start to last end of any phase on any rank: open to close, as IOR counts. 0 of a dump
    without calls."""
    io_s: float = field(init=False, repr=False, compare=False)
    """I/O time: the seconds of the slowest rank in each phase, added up. Computing and waiting
    between the calls are not in it, and it is at most `elapsed_s`."""

    def __post_init__(self) -> None:  # once: every statistic asks for them
        elapsed_s = io_s = 0.0
        if self.phases:
            ends = [p.last_end_s for p in self.phases]
            elapsed_s = max(ends) - min([p.first_start_s for p in self.phases])
            io_s = min(elapsed_s, sum([p.rank_s.max for p in self.phases]))
        object.__setattr__(self, "elapsed_s", elapsed_s)
        object.__setattr__(self, "io_s", io_s)

    def phase_bytes(self, phase: str) -> int:
        """Payload of its phase of that name; 0 where it has none."""
        return sum([p.bytes for p in self.phases if p.phase == phase])

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Payload moved by all ranks over `elapsed_s`."""
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def io_bandwidth_bytes_per_s(self) -> float:
        """Payload moved by all ranks over `io_s`."""
        return self.bytes / self.io_s if self.io_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedDump(DumpResult):
    """A dump of the player's: what was due when, too."""

    scheduled_s: float
    lateness_s: float
    described_bytes: int
    deadline: Deadline | None = None

    @property
    def stopped(self) -> bool:
        """Did a deadline leave bytes of it unmoved? Ranks that wore it out may have moved all."""
        return self.deadline is not None and self.deadline.stopped_ranks > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDump(DumpResult):
    """A step of a program that writes by itself: what each process did, too."""

    processes: Processes


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    name: str
    method: str
    dumps: Sequence[DumpResult]

    operation: str = "write"
    bytes: int = field(init=False, repr=False, compare=False)
    other_bytes: int = field(init=False, repr=False, compare=False)
    """Bytes that are read by a stream that writes, and the other way round."""
    elapsed_s: float = field(init=False, repr=False, compare=False)
    """The times of all dumps, added up."""
    io_s: float = field(init=False, repr=False, compare=False)
    """I/O time of all dumps."""

    def __post_init__(self) -> None:  # once: every statistic asks for them
        other = "read" if self.operation == "write" else "write"
        phases = [p for d in self.dumps for p in d.phases if p.phase == other]
        sums = {
            "bytes": sum([d.bytes for d in self.dumps]),
            "other_bytes": sum([p.bytes for p in phases]),
            "elapsed_s": sum([d.elapsed_s for d in self.dumps]),
            "io_s": sum([d.io_s for d in self.dumps]),
        }
        for name, value in sums.items():
            object.__setattr__(self, name, value)

    def moved(self, operation: str) -> int:
        """Bytes that are read, or written: calls of the system do both in one dump."""
        return self.other_bytes if self.operation != operation else self.bytes - self.other_bytes

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Payload of all dumps over the sum of their times."""
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def io_bandwidth_bytes_per_s(self) -> float:
        """Payload of all dumps over their I/O time."""
        return self.bytes / self.io_s if self.io_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Latencies of the operations of one kind, over all dumps and ranks.

    `histogram_ns` has a pair for each bucket with operations, ascending: its largest latency in
    nanoseconds, and their number.
    """

    count: int
    bytes: int
    p50_s: float
    p99_s: float
    p999_s: float
    max_s: float
    histogram_ns: Sequence[Sequence[int]]

    def quantile(self, share: float) -> float:
        """The smallest latency with at least that share of the operations at or below it, in
        seconds; exact to 1/128."""
        operations = sum(count for _, count in self.histogram_ns)
        need = max(1, math.ceil(share * operations * (1 - 1e-12)))
        seen = 0
        for ns, count in self.histogram_ns:
            seen += count
            if seen >= need:
                return min(ns / 1e9, self.max_s)
        return self.max_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStream(StreamResult):
    dumps: tuple[PlayedDump, ...]
    transfer_bytes: int
    collective: bool
    sync: bool
    latency: dict[str, Latency] = field(default_factory=dict)  # of write, read and file


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramStream(StreamResult):
    dumps: tuple[ProgramDump, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    repetition: int
    elapsed_s: float
    streams: Sequence[StreamResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestHost:
    """I/O time of the slowest host, the mean of its ranks, and the median of all hosts."""

    host: str
    io_s: float
    median_io_s: float

    @property
    def ratio(self) -> float | None:
        """Its time over the median; None where that is 0."""
        return self.io_s / self.median_io_s if self.median_io_s > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowestRank(SlowestHost):
    """I/O time of the slowest rank, and the median of all ranks."""

    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedRepetition(Repetition):
    streams: tuple[PlayedStream, ...]
    slowest_rank: SlowestRank | None = None
    slowest_host: SlowestHost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRepetition(Repetition):
    streams: tuple[ProgramStream, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """None where it is not known: old results counted nodes only."""

    name: str | None
    ranks: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    understudy_version: str
    command_line: tuple[str, ...]
    started: str
    ranks: int
    nodes: tuple[Node, ...]
    host: str
    kernel: str
    processors: int
    mpi: str
    libraries: dict[str, str]
    directory: str
    program_sha256: str | None = None
    commit: str | None = None
    mpi_settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    bytes: int
    wrong_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A fault that was injected: this rank's I/O took so much longer in each close."""

    rank: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The program, where it is not the player; `method` and `parameters` as requested."""

    kind: str
    name: str
    application: str
    method: str | None
    parameters: str | None
    config: str
    steps: int
    append: bool
    pause_s: float
    barriers: tuple[str, ...]
    slow_rank: SlowRank | None
    extra_collective_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timers:
    """Seconds of each rank in the calls of one interface, by Darshan."""

    module: str  # as Darshan names it
    files: int
    bytes_read: int
    bytes_written: int
    read_s: tuple[float, ...]
    write_s: tuple[float, ...]
    meta_s: tuple[float, ...]

    @property
    def total_s(self) -> tuple[float, ...]:
        return tuple(map(sum, zip(self.read_s, self.write_s, self.meta_s, strict=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Spans:
    """Seconds of each dump of a stream, from its first open or call to its last."""

    stream: str
    seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A workload by its name alone."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Darshan's record of a program, whichever it is; `requests`: those that the storage reports,
    None where it does not."""

    application: str
    requests: dict[str, Any] | None
    workload: Stated
    workload_sha256: str
    options: dict[str, Any]
    environment: Environment
    elapsed_s: float
    modules: tuple[Timers, ...]
    dumps: tuple[Spans, ...]
    storage: dict[str, Any] = field(default_factory=dict)
    striping: tuple[dict[str, Any], ...] = ()
    repetitions: tuple[Repetition, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One figure of a benchmark: metric and unit as samples have them."""

    operation: str
    metric: str
    unit: str
    repetition: int
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """Results that IOR or mdtest report of their own run."""

    workload: Stated
    workload_sha256: str
    options: dict[str, Any]
    environment: Environment
    rates: tuple[Rate, ...]
    storage: dict[str, Any] = field(default_factory=dict)
    striping: tuple[dict[str, Any], ...] = ()
    repetitions: tuple[Repetition, ...] = ()


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Measurement(Protocol):
    """Attributes of every producer's measurement; the record is made from this.

    `storage` is the object of `understudy-storage`, `striping` what was asked and applied for each
    stream; both as they stand in the document.
    """

    @property
    def workload(self) -> Named:
        """The workload that was played, or a program's bytes per process."""

    @property
    def workload_sha256(self) -> str:
        """SHA-256 of the text of `workload`."""

    @property
    def options(self) -> dict[str, Any]:
        """Every option in force, by name."""

    @property
    def environment(self) -> Environment: ...

    @property
    def storage(self) -> dict[str, Any]: ...

    @property
    def striping(self) -> tuple[dict[str, Any], ...]: ...

    @property
    def repetitions(self) -> Sequence[Repetition]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """Measurement of the player; `workload` is the descriptor that it played."""

    workload: Workload
    workload_sha256: str
    options: dict[str, Any]
    environment: Environment
    storage: dict[str, Any]
    striping: tuple[dict[str, Any], ...]
    repetitions: tuple[PlayedRepetition, ...]
    verification: Verification | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramRun:
    """Measurement of a skeleton or an application; `workload` is made of the bytes per process."""

    program: Program
    workload: Workload
    workload_sha256: str
    options: dict[str, Any]
    environment: Environment
    storage: dict[str, Any]
    striping: tuple[dict[str, Any], ...]
    repetitions: tuple[ProgramRepetition, ...]

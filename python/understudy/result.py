"""The result of one run of the player (contract: schemas/result.schema.json).

Seconds count from the start of the repetition, bytes are payload unless said otherwise. Loading
is strict: a result without its end mark, with an unknown or missing key, or whose embedded
workload does not match its SHA-256, is an `UnderstudyError`.

Programs that call ADIOS themselves (skeletal applications, I/O kernels) play no descriptor: their
workload here is made from the bytes per process that their result states.
"""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from understudy.errors import UnderstudyError
from understudy.paths import SCHEMAS
from understudy.workload import (
    Dump,
    Provenance,
    Source,
    Stream,
    Variable,
    Workload,
    identifier,
    parse,
    runs_at_most,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankSeconds:
    """Order statistics over the ranks of the seconds each spent in a phase."""

    min: float
    q25: float
    median: float
    q75: float
    q95: float
    max: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    phase: str
    bytes: int
    operations: int
    first_start_s: float
    last_end_s: float
    rank_s: RankSeconds

    @property
    def elapsed_s(self) -> float:
        """From the first start on any rank to the last end on any rank."""
        return self.last_end_s - self.first_start_s


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
    dump: int
    scheduled_s: float
    start_s: float
    lateness_s: float
    described_bytes: int
    bytes: int
    file_bytes: int | None
    files: int
    phases: tuple[Phase, ...]
    processes: Processes | None = None

    @property
    def elapsed_s(self) -> float:
        """First start to last end of any phase on any rank: open to close, as IOR counts."""
        return max(p.last_end_s for p in self.phases) - min(p.first_start_s for p in self.phases)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Payload moved by all ranks over `elapsed_s`."""
        return self.bytes / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamResult:
    name: str
    operation: str
    method: str
    transfer_bytes: int
    collective: bool
    sync: bool
    dumps: tuple[DumpResult, ...]

    @property
    def bytes(self) -> int:
        return sum(d.bytes for d in self.dumps)

    @property
    def bandwidth_bytes_per_s(self) -> float:
        """Payload of all dumps over the sum of their times."""
        elapsed_s = sum(d.elapsed_s for d in self.dumps)
        return self.bytes / elapsed_s if elapsed_s > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    repetition: int
    elapsed_s: float
    streams: tuple[StreamResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    method: str | None
    transfer_bytes: int | None
    collective: bool | None
    fsync: bool
    repetitions: int
    keep: bool
    time_scale: float
    bytes_scale: float
    verify: bool
    restart: bool
    compute: str | None = None
    restart_stream: str | None = None
    restart_dump: int | None = None
    restart_from: str | None = None
    shift_ranks: int = 1
    drop_cache: bool = False
    method_options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    understudy_version: str
    command_line: tuple[str, ...]
    started: str
    ranks: int
    nodes: int
    host: str
    kernel: str
    processors: int
    mpi: str
    libraries: dict[str, str]
    directory: str
    file_system: str
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    bytes: int
    wrong_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowRank:
    """A fault that was put in: this rank's I/O took so much longer in each close."""

    rank: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What ran, where it was not the player; `method` and `parameters` as they were asked for."""

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
class Result:
    """`workload_sha256` is that of the descriptor that was played, or of the one made of the bytes
    per process, where a program ran that plays none."""

    workload: Workload
    workload_sha256: str
    options: Options
    environment: Environment
    repetitions: tuple[Repetition, ...]
    verification: Verification | None
    program: Program | None = None


@cache
def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / "result.schema.json").read_text())
    return schema


def load(path: Path) -> Result:
    """Read and check a result file."""
    import jsonschema  # 0.1 s to import: only who reads a result pays

    try:
        row = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot read the result: {error.strerror}") from None
    except ValueError as error:
        raise UnderstudyError(f"{path}: not a result: {error}") from None
    errors = jsonschema.Draft202012Validator(_schema()).iter_errors(row)
    worst = jsonschema.exceptions.best_match(errors)
    if worst is not None:
        key = ".".join(map(str, worst.absolute_path)) or "top level"
        raise UnderstudyError(f"{path}: {key}: {worst.message[:300]}")
    environment = row["environment"] | {"command_line": tuple(row["environment"]["command_line"])}
    repetitions = tuple(_repetition(r) for r in row["repetitions"])
    program = _program(row["program"]) if "program" in row else None
    if program is None:
        text = row["workload"]
        if hashlib.sha256(text.encode()).hexdigest() != row["workload_sha256"]:
            raise UnderstudyError(
                f"{path}: workload_sha256 is not the SHA-256 of the workload in it"
            )
    else:
        text = _workload_of(program, environment["ranks"], repetitions[0], path).to_text()
    verification = row["verification"]
    return Result(
        workload=parse(text, f"{path}: workload"),
        workload_sha256=hashlib.sha256(text.encode()).hexdigest(),
        options=Options(**row["options"]),
        environment=Environment(**environment),
        repetitions=repetitions,
        verification=Verification(**verification) if verification else None,
        program=program,
    )


def _program(row: dict[str, Any]) -> Program:
    slow = row["slow_rank"]
    parts = {"barriers": tuple(row["barriers"]), "slow_rank": SlowRank(**slow) if slow else None}
    return Program(**(row | parts))


def _workload_of(program: Program, ranks: int, repetition: Repetition, path: Path) -> Workload:
    """The bytes that each process wrote, as a workload: what such a result tells of its I/O.

    Its times are 0, so that the runs of one program are runs of one workload."""
    streams = []
    for played in repetition.streams:
        dumps = []
        for dump in played.dumps:
            assert dump.processes is not None, "the schema demands it where there is a program"
            rows = dump.processes.bytes
            where = f"{path}: stream {played.name}, dump {dump.dump}"
            if len(rows) != ranks or sum(rows) == 0:
                raise UnderstudyError(
                    f"{where}: {len(rows)} processes wrote {sum(rows)} bytes, expected some bytes "
                    f"of {ranks} ranks"
                )
            payload = Variable(
                name="payload",
                type="byte",
                shape=(sum(rows),),
                decomposition=runs_at_most((1, n) for n in rows),
            )
            dumps.append(Dump(time_s=0.0, variables=(payload,)))
        stream = Stream(
            name=identifier(played.name),
            role="checkpoint",
            operation="write",
            files="append" if program.append else "new",
            layout="shared",
            method=played.method,
            transfer_bytes=played.transfer_bytes,
            dumps=tuple(dumps),
        )
        streams.append(stream)
    origins = {
        "/ranks": ("read", "Ranks of the run."),
        "/streams": ("read", "Bytes of each process and step in the result."),
        "/streams/*/dumps/*/time_s": ("assumed", "A program of this kind has no schedule."),
    }
    return Workload(
        name=identifier(program.name),
        description=f"What the {program.kind} {program.name} wrote: the bytes of each process.",
        ranks=ranks,
        streams=tuple(streams),
        source=Source(format="result"),
        provenance=tuple(
            Provenance(path=key, origin=origin, how=how) for key, (origin, how) in origins.items()
        ),
    )


def _repetition(row: dict[str, Any]) -> Repetition:
    return Repetition(**(row | {"streams": tuple(_stream(s) for s in row["streams"])}))


def _stream(row: dict[str, Any]) -> StreamResult:
    return StreamResult(**(row | {"dumps": tuple(_dump(d) for d in row["dumps"])}))


def _dump(row: dict[str, Any]) -> DumpResult:
    phases = tuple(Phase(**(p | {"rank_s": RankSeconds(**p["rank_s"])})) for p in row["phases"])
    more = {"processes": _processes(row["processes"])} if "processes" in row else {}
    return DumpResult(**(row | {"phases": phases} | more))


def _processes(row: dict[str, Any]) -> Processes:
    library = row["library"]
    timers = LibraryTimers(**_tuples(library)) if library else None
    figures = {key: values for key, values in row.items() if key != "library"}
    return Processes(**_tuples(figures), library=timers)


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(values) for key, values in row.items()}

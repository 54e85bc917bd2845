"""The proof that all of the work was done: where a measurement differs from what was asked."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from understudy.contracts.measurement import (
    Played,
    PlayedDump,
    PlayedRepetition,
    PlayedStream,
    ProgramRepetition,
    ProgramRun,
)
from understudy.contracts.workload import Occurrence, Step, Stream, Workload
from understudy.program.sizes import growth

IN_MEMORY = ("tmpfs", "ramfs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Task given to the player; None = as the descriptor says."""

    workload: Workload
    workload_sha256: str
    method: str | None
    options: Mapping[str, Any]  # options of the measurement, by name
    repetitions: int
    time_scale: float
    verify: bool
    file_system: str
    restarts: Sequence[str] = ()  # streams that read checkpoints back, after those of the workload
    layout: Mapping[str, int] = field(default_factory=dict)  # as the run record names it
    hints: Mapping[str, str] = field(default_factory=dict)
    optional_hints: Collection[str] = ()  # of these: what an MPI library need not know


def faults(result: Played, asked: Asked) -> Iterator[str]:
    """Where the result is not what was asked for; nothing if all the work was done."""
    if result.workload_sha256 != asked.workload_sha256:
        yield f"workload: another descriptor was played, SHA-256 {result.workload_sha256}"
        return
    yield from _differences(
        {
            "environment.ranks": (result.environment.ranks, asked.workload.ranks),
            "options.method": (result.options["method"], asked.method),
            "options.time_scale": (result.options["time_scale"], asked.time_scale),
            "options.bytes_scale": (result.options["bytes_scale"], 1),
            "options.verify": (result.options["verify"], asked.verify),
            "repetitions": (len(result.repetitions), asked.repetitions),
        }
        | {f"options.{key}": (result.options[key], value) for key, value in asked.options.items()}
    )
    if result.verification is not None and result.verification.wrong_bytes:
        yield f"verification.wrong_bytes: expected 0, got {result.verification.wrong_bytes}"
    yield from _wrong_file_system(result.storage, asked.file_system)
    yield from _layout_faults(result, asked)
    for repetition in result.repetitions:
        for fault in _repetition_faults(repetition, asked):
            yield f"repetitions[{repetition.repetition}].{fault}"


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedProgram:
    """Task given to a program that writes by itself; `process_bytes` by rank, in a step, give or
    take `scalars_bytes`."""

    kind: str
    group: str
    method: str
    parameters: str | None
    process_bytes: tuple[int, ...]
    steps: int
    repetitions: int
    file_system: str
    scalars_bytes: int = 0
    append: bool = False  # the bytes of one step's part of the file are not known
    transformed: bool = False  # files may hold less than the payload


def program_faults(result: ProgramRun, asked: AskedProgram) -> Iterator[str]:
    """Where a program's result is not what was asked for; nothing if all the work was done."""
    program = result.program
    yield from _differences(
        {
            "program.kind": (program.kind, asked.kind),
            "program.method": (program.method, asked.method),
            "program.parameters": (program.parameters, asked.parameters),
            "environment.ranks": (result.environment.ranks, len(asked.process_bytes)),
            "repetitions": (len(result.repetitions), asked.repetitions),
        }
    )
    yield from _wrong_file_system(result.storage, asked.file_system)
    for repetition in result.repetitions:
        for fault in _program_repetition_faults(repetition, asked):
            yield f"repetitions[{repetition.repetition}].{fault}"


def _program_repetition_faults(
    repetition: ProgramRepetition, asked: AskedProgram
) -> Iterator[str]:
    have = [s.name for s in repetition.streams]
    if have != [asked.group]:
        yield f"streams: expected {asked.group}, got {', '.join(have)}"
        return
    dumps = repetition.streams[0].dumps
    if [d.dump for d in dumps] != list(range(asked.steps)):
        yield f"{asked.group}.dumps: expected {asked.steps}, got {len(dumps)}"
    for dump in dumps:
        where = f"{asked.group}.dumps[{dump.dump}]"
        pairs = zip(dump.processes.bytes, asked.process_bytes, strict=False)
        for rank, (got, want) in enumerate(pairs):
            if abs(got - want) > asked.scalars_bytes:
                yield f"{where}.processes.bytes[{rank}]: expected {want}, got {got}"
        minimum = 1 if asked.transformed else sum(dump.processes.bytes)
        if not asked.append and (dump.file_bytes or 0) < minimum:
            yield f"{where}: its files hold {dump.file_bytes} bytes, less than the payload"


def _differences(pairs: dict[str, tuple[object, object]]) -> Iterator[str]:
    for key, (have, want) in pairs.items():
        if have != want:
            yield f"{key}: expected {want}, got {have}"


def _wrong_file_system(storage: Mapping[str, Any], wanted: str) -> Iterator[str]:
    type_ = storage["type"]
    if type_ in IN_MEMORY if wanted == "disk" else type_ != wanted:
        yield f"storage.type: {type_}, but the partition says {wanted}"


def unknown_hints(result: Played, asked: Asked) -> list[str]:
    """The hints that the MPI library of the run does not know: those that it does not state of an
    open file that was given them. Optional ones are left out."""
    rows = [
        ((row["asked"] or {}).get("hints"), (row["applied"] or {}).get("hints"))
        for row in result.striping
    ]
    return [
        key
        for key in asked.hints
        if key not in asked.optional_hints
        and any(told and applied is not None and key not in applied for told, applied in rows)
    ]


def _layout_faults(result: Played, asked: Asked) -> Iterator[str]:
    """Differences, for each stream with files, between the layout requested and that read back.

    Hints count for a stream whose method takes any; at least one stream must.
    """
    striping = {row["stream"]: row for row in result.striping}
    hinted = False
    for stream in asked.workload.streams:
        if stream.operation != "write" or not (asked.layout or asked.hints):
            continue
        row = striping.get(stream.name)
        if row is None:
            yield f"striping: nothing is known of {stream.name}"
            continue
        told, applied = row["asked"] or {}, row["applied"] or {}
        for key, value in asked.layout.items():
            yield from _differences(
                {
                    f"striping.{stream.name}.asked.{key}": (told.get(key), value),
                    f"striping.{stream.name}.applied.{key}": (applied.get(key), value),
                }
            )
        if not told.get("hints"):
            continue
        hinted = True
        stated = applied.get("hints")
        for key, text in asked.hints.items():
            parts = [("asked", told["hints"]), ("applied", stated or {})]
            if stated is not None and key in asked.optional_hints and key not in stated:
                del parts[1]
            yield from _differences(
                {
                    f"striping.{stream.name}.{part}.hints.{key}": (row.get(key), text)
                    for part, row in parts
                }
            )
    if asked.hints and not hinted:
        yield "striping: no stream was given the hints"


def _repetition_faults(repetition: PlayedRepetition, asked: Asked) -> Iterator[str]:
    have = [s.name for s in repetition.streams]
    want = [*(s.name for s in asked.workload.streams), *asked.restarts]
    if have != want:
        yield f"streams: expected {', '.join(want)}; got {', '.join(have)}"
        return
    for played, stream in zip(repetition.streams, asked.workload.streams, strict=False):
        for fault in _stream_faults(played, stream, asked):
            yield f"{stream.name}.{fault}"
        for fault in _missing_bytes(played, stream):
            yield f"{stream.name}.{fault}"


def _stream_faults(played: PlayedStream, stream: Stream, asked: Asked) -> Iterator[str]:
    yield from _differences(
        {
            "operation": (played.operation, stream.operation),
            "method": (played.method, asked.method or stream.method),
            "dumps": (len(played.dumps), stream.dump_count),
        }
    )
    for i, (have, want) in enumerate(zip(played.dumps, stream.expanded(), strict=False)):
        for fault in _dump_faults(have, want, _moved_by(stream, want.dump), asked):
            yield f"dumps[{i}]: {fault}"


def _missing_bytes(played: PlayedStream, stream: Stream) -> Iterator[str]:
    """Dumps behind which files are smaller than the program makes them, but for a deadline."""
    if any(dump.stopped for dump in played.dumps):
        return
    ahead = 0  # a file that stays open may have grown earlier for a later dump (HDF5's chunks)
    for i, (have, (begins, bytes_)) in enumerate(zip(played.dumps, growth(stream), strict=False)):
        ahead = (0 if begins else max(0, ahead)) + (have.file_bytes or 0) - bytes_
        if have.file_bytes is not None and ahead < 0:
            yield f"dumps[{i}]: its files lack {-ahead} bytes"


def _moved_by(stream: Stream, dump: Step) -> dict[str, int]:
    """The bytes of a dump by the phase that moves them."""
    if dump.calls is None:
        return {stream.operation: dump.moved_bytes}
    kinds = {"read": ("read",), "write": ("write", "copy")}
    return {
        phase: sum(size * n for kind in of for size, n in dump.calls.sizes(kind).items())
        for phase, of in kinds.items()
    }


def _dump_faults(
    played: PlayedDump, dump: Occurrence, phases: Mapping[str, int], asked: Asked
) -> Iterator[str]:
    """Bytes of the calls and of the data phases: some of them, where a deadline came, and
    besides them those of reads that the player mixed in."""
    mixed = asked.options.get("mix_percent") is not None
    between = sum(p.bytes for p in played.phases if mixed and p.phase not in phases)
    bytes_ = played.bytes - between
    if played.stopped and asked.options.get("deadline_s") is not None:
        moved = sum(p.bytes for p in played.phases if p.phase in phases)
        if not moved == bytes_ <= dump.bytes:
            yield f"bytes: expected at most {dump.bytes}, got {bytes_}; of phases {moved}"
        return
    sizes: dict[str, tuple[object, object]] = {"bytes": (bytes_, dump.bytes)}
    for phase, bytes_ in phases.items():
        in_phase = sum(p.bytes for p in played.phases if p.phase == phase)
        sizes[f"bytes of phase {phase}"] = (in_phase, bytes_)
    yield from _differences(sizes)


def verdict(result: Played) -> str:
    """How much of what was described was moved, and how fast, for a person."""
    workload = result.workload
    described = workload.bytes * len(result.repetitions)
    names = {s.name for s in workload.streams}  # a restart reads more
    mixed = result.options.get("mix_percent") is not None  # more is read than described
    moved = sum(
        s.moved(s.operation) if mixed else s.bytes
        for r in result.repetitions
        for s in r.streams
        if s.name in names
    )
    dumps = sum(s.dump_count for s in workload.streams) * len(result.repetitions)
    error = (moved - described) / described if described else 0.0
    elapsed_s = sum(r.elapsed_s for r in result.repetitions)
    return (
        f"{dumps} dumps of {len(workload.streams)} streams on {result.environment.ranks} ranks: "
        f"{moved:,} of {described:,} bytes (error {error:+.4%}) in {elapsed_s:.2f} s "
        f"on {result.storage['type']}"
    )

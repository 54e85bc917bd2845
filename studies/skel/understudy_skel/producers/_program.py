"""Measurements of programs that call ADIOS themselves: skeletons and applications.

They play no descriptor: their workload is made from the bytes per process that they measured.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from understudy.contracts import schema
from understudy.contracts.long_dumps import phases_of
from understudy.contracts.measurement import (
    LibraryTimers,
    Processes,
    Program,
    ProgramDump,
    ProgramRepetition,
    ProgramRun,
    ProgramStream,
    SlowRank,
)
from understudy.contracts.run import Sample
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    identifier,
    runs_at_most,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.producers._reading import (
    LOWER,
    SECONDS,
    common_samples,
    environment_and_storage,
)

_DUMP_KEYS = ("dump", "start_s", "bytes", "file_bytes", "files")
# Of today's contract; result/1 had them elsewhere, or not.
_OF_THE_RUN = ("repetitions", "keep")


def read(path: Path, kind: str) -> ProgramRun:
    """The measurement in a file, if it is that of a program of this kind."""
    row = schema.read(path, f"measurement of a program of the kind {kind}")
    stated_kind = schema.check(row, str(path))
    if stated_kind == "result":
        stated_kind = row["program"]["kind"] if "program" in row else "player"
    if stated_kind != kind:
        raise UnderstudyError(
            f"{path}: expected a measurement of kind {kind}, found {stated_kind}"
        )
    return parse(row, str(path))


def parse(row: dict[str, Any], where: str) -> ProgramRun:
    """Parse a JSON object that is valid by its schema."""
    old = row["schema"] == "understudy/result/1"
    repetitions = tuple(
        ProgramRepetition(
            repetition=r["repetition"],
            elapsed_s=r["elapsed_s"],
            streams=tuple(map(_stream, r["streams"])),
        )
        for r in row["repetitions"]
    )
    stated = {"kind": row["schema"].split("/")[1]} | row["program"]
    if old:
        stated.setdefault("application", _application(stated["name"], repetitions[0]))
    options = {k: v for k, v in stated.items() if k != "kind"}
    if old:
        options |= {key: row["options"][key] for key in _OF_THE_RUN}
    program = _program({k: v for k, v in stated.items() if k not in _OF_THE_RUN})
    environment, storage = environment_and_storage(row)
    wrote = _workload(program, environment.ranks, repetitions[0], where)
    return ProgramRun(
        program=program,
        workload=wrote,
        workload_sha256=hashlib.sha256(wrote.to_text().encode()).hexdigest(),
        options=options,
        environment=environment,
        storage=storage,
        striping=tuple(row.get("striping", ())),
        repetitions=repetitions,
    )


def _application(name: str, repetition: ProgramRepetition) -> str:
    """Before results named the application, the name of the program held it: without kernel- in
    front, or the group that is written behind."""
    return name.removeprefix("kernel-").removesuffix(f"-{repetition.streams[0].name}")


def _program(row: dict[str, Any]) -> Program:
    slow = row["slow_rank"]
    built = {"barriers": tuple(row["barriers"]), "slow_rank": SlowRank(**slow) if slow else None}
    return Program(**(row | built))


def _stream(row: dict[str, Any]) -> ProgramStream:
    return ProgramStream(
        name=row["name"], method=row["method"], dumps=tuple(map(_dump, row["dumps"]))
    )


def _dump(row: dict[str, Any]) -> ProgramDump:
    processes = row["processes"]
    library = processes["library"]
    return ProgramDump(
        **{key: row[key] for key in _DUMP_KEYS},
        phases=phases_of(row),
        processes=Processes(
            **_tuples({key: v for key, v in processes.items() if key != "library"}),
            library=LibraryTimers(**_tuples(library)) if library else None,
        ),
    )


def _tuples(row: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(values) for key, values in row.items()}


def _workload(program: Program, ranks: int, repetition: ProgramRepetition, where: str) -> Workload:
    """The bytes that each process wrote, as a workload.

    Its times are 0, so that the runs of one program are runs of one workload."""
    streams = []
    for played in repetition.streams:
        dumps = []
        for dump in played.dumps:
            rows = dump.processes.bytes
            if len(rows) != ranks:
                raise UnderstudyError(
                    f"{where}: stream {played.name}, dump {dump.dump}: {len(rows)} processes, "
                    f"expected {ranks} ranks"
                )
            if sum(rows) == 0:
                continue  # a time step without data
            payload = Variable(
                name="payload",
                type="byte",
                shape=(sum(rows),),
                decomposition=runs_at_most((1, n) for n in rows),
            )
            dumps.append(Dump(time_s=0.0, variables=(payload,)))
        if not dumps:
            raise UnderstudyError(f"{where}: stream {played.name}: no bytes, expected some")
        stream = Pattern(
            name=identifier(played.name),
            role="checkpoint",
            operation="write",
            files="append" if program.append else "new",
            layout="shared",
            method=played.method,
            transfer_bytes=max(1, max(max(d.processes.bytes) for d in played.dumps)),
            dumps=tuple(dumps),
        )
        streams.append(stream)
    origins = {
        "/ranks": ("read", "Ranks of the run."),
        "/streams": ("read", "Bytes of each process and step in the measurement."),
        "/streams/*/dumps/*/time_s": ("assumed", "A program of this kind has no schedule."),
    }
    return Workload(
        name=identifier(program.name),
        description=f"What the {program.kind} {program.name} wrote: the bytes of each process.",
        ranks=ranks,
        streams=streams_of(streams, ranks),
        source=Source(format="result"),
        provenance=tuple(
            Provenance(path=key, origin=origin, how=how) for key, (origin, how) in origins.items()
        ),
    )


def samples(measurement: ProgramRun) -> Iterator[Sample]:
    """Besides what all have: where the time of a process went, on average."""
    yield from common_samples(measurement.repetitions)
    for repetition in measurement.repetitions:
        for stream in repetition.streams:
            for metric in ("communication_s", "io_s", "rest_s"):
                rows = [getattr(d.processes, metric) for d in stream.dumps]
                yield Sample(
                    metric=f"process_{metric}",
                    unit=SECONDS,
                    better=LOWER,
                    stream=stream.name,
                    repetition=repetition.repetition,
                    value=sum(sum(row) / len(row) for row in rows),
                )

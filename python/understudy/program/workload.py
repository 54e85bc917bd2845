"""The workload: what it says, and its text."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from understudy.program.descriptor import laid_out, plain
from understudy.program.instructions import Program, Step, Stream
from understudy.program.program_writer import Row, rows_of
from understudy.program.types import SCHEMA, Order, Provenance, Scaling, Source

STRUCTURES = ("role", "operation", "files", "layout", "method")
STATED = ("order", "pace")  # structures that need provenance where they are stated


@dataclass(frozen=True, kw_only=True)
class Workload:
    """An application's use of storage: its program, and where that comes from."""

    name: str
    description: str
    ranks: int
    streams: tuple[Stream, ...]
    source: Source
    provenance: tuple[Provenance, ...]
    runtime_s: float | None = None
    compute: str = "sleep"
    scaling: Scaling | None = None

    def __deepcopy__(self, _: object) -> "Workload":
        """Itself, of which nothing changes: ReFrame copies each check for each case."""
        return self

    @cached_property
    def program(self) -> Program:
        """Program of its ranks."""
        return Program(name=self.name, ranks=self.ranks, streams=self.streams)

    @property
    def bytes(self) -> int:
        """Payload of the workload: every dump of every stream, reads included."""
        return sum(s.bytes for s in self.streams)

    def stream(self, name: str) -> Stream:
        return next(s for s in self.streams if s.name == name)

    def to_text(self) -> str:
        """The workload as JSON text, one line per instruction."""
        return laid_out(row_of(self))


def row_of(workload: Workload) -> Row:
    """The workload as JSON of the contract."""
    scaling = plain(workload.scaling) or {"rule": "none", "from_ranks": workload.ranks}
    row: Row = {"schema": SCHEMA}
    row |= {key: getattr(workload, key) for key in ("name", "description", "ranks")}
    row |= {"scaling": scaling, "runtime_s": workload.runtime_s, "compute": workload.compute}
    row |= rows_of(workload.program)
    return row | {key: plain(getattr(workload, key)) for key in ("source", "provenance")}


def provenance_of(workload: Workload, pointer: str) -> Provenance | None:
    """The entry for the value at a JSON pointer; the last match wins."""
    steps = pointer.split("/")
    for entry in reversed(workload.provenance):
        pattern = entry.path.split("/")
        if len(pattern) <= len(steps) and all(
            p in ("*", s) for p, s in zip(pattern, steps, strict=False)
        ):
            return entry
    return None


def numbers(workload: Workload) -> Iterator[str]:
    """JSON pointers of all numbers that need a provenance entry."""
    yield from _pointers(workload.ranks, "/ranks")
    yield from _pointers(workload.runtime_s, "/runtime_s")
    for k, stream in enumerate(workload.streams):
        yield from _pointers(_stated(stream), f"/streams/{k}")


def origins(workload: Workload) -> Counter[str]:
    """How many numbers under ranks, runtime_s and streams have which origin. Steps whose index no
    entry names have one origin for each key, so equal ones are looked at once."""
    named = {step for entry in workload.provenance for step in entry.path.split("/")}
    counts: Counter[str] = Counter()

    def add(value: Any, pointer: str, times: int = 1) -> None:
        for each in _pointers(value, pointer):
            entry = provenance_of(workload, each)
            counts[entry.origin if entry else "not stated"] += times

    add(workload.ranks, "/ranks")
    add(workload.runtime_s, "/runtime_s")
    for k, stream in enumerate(workload.streams):
        add(_stated(stream, dumps=False), f"/streams/{k}")
        alike: Counter[tuple[Any, ...]] = Counter()
        first: dict[tuple[Any, ...], int] = {}
        for j, step in enumerate(stream.steps):
            kind: tuple[Any, ...] = (j,)
            if str(j) not in named:
                kind = id(step.body), step.duration_s is None, step.overhead_bytes is None
                kind += (step.count > 1,)
            alike[kind] += 1
            first.setdefault(kind, j)
        for kind, j in first.items():
            add(_dump(stream.steps[j], stream), f"/streams/{k}/dumps/{j}", alike[kind])
    return counts


def _pointers(value: Any, pointer: str) -> Iterator[str]:
    """JSON pointers of the numbers in a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _pointers(item, f"{pointer}/{key}")
    elif isinstance(value, list):
        for k, item in enumerate(value):
            yield from _pointers(item, f"{pointer}/{k}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield pointer


def structures(workload: Workload) -> Iterator[str]:
    """JSON pointers of what a reader infers besides numbers; it needs a provenance entry too."""
    for k, stream in enumerate(workload.streams):
        stated = _stated(stream, dumps=False)
        keys = (*STRUCTURES, *(key for key in STATED if key in stated))
        yield from (f"/streams/{k}/{key}" for key in keys)


def _given(**keys: Any) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value is not None}


def _stated(stream: Stream, dumps: bool = True) -> dict[str, Any]:
    """Values that a stream states, under the names that paths of the provenance have for them;
    with those of its `dumps`, or without."""
    move = next((m for m in stream.moves), None)
    return _given(
        groups=stream.groups,
        transfer_bytes=stream.transfer_bytes,
        content=plain(stream.content),
        names=stream.names if stream.names > 1 else None,
        order=plain(stream.order) if stream.order != Order() else None,
        passes=stream.passes if stream.passes > 1 else None,
        pace="steady" if stream.pace == "steady" else None,
        flush_bytes=move.flush_bytes if move and move.hands_over else None,
        sync_bytes=move.flush_bytes if move and not move.hands_over else None,
        chunk_bytes=stream.open.chunk_bytes,
        lookups=plain(stream.lookups),
        files_per_directory=stream.files_per_directory or stream.set.files_per_directory,
        dumps=[_dump(step, stream) for step in stream.steps] if dumps else None,
    )


def _dump(step: Step, stream: Stream) -> dict[str, Any]:
    return _given(
        time_s=step.time_s,
        duration_s=step.duration_s,
        overhead_bytes=step.overhead_bytes,
        compute_s=step.compute_s or None,
        repeat={"count": step.count, "period_s": step.period_s} if step.count > 1 else None,
        operations=[{"runs": plain(o.runs)} for o in step.operations],
        skew=plain(step.skew) if step.skew else None,
        variables=[
            _given(
                count=move.variable.count,
                shape=plain(move.variable.shape),
                decomposition=plain(move.variable.decomposition),
                file=move.variable.file,
                transfer_bytes=(
                    move.transfer_bytes if move.transfer_bytes != stream.transfer_bytes else None
                ),
            )
            for move in step.moves
        ],
    )

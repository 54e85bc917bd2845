"""Which keys of a pattern go together, and what their schema cannot express: sums, products, order
and names. A pattern without a fault has a program without one."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from understudy.program.patterns import Dump, Operation, Pattern
from understudy.program.rules import Fault, decomposition_fault, names_fault, unplaced
from understudy.program.types import MAX_DUMPS, Variable


def faults(streams: Sequence[Pattern], ranks: int) -> Iterator[Fault]:
    """The key and the message of every fault."""
    names = [s.name for s in streams]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield f"streams[{i}].name", f"expected a name of its own, got {name!r} again"
    dumps = sum(s.dump_count for s in streams)
    if dumps > MAX_DUMPS:
        yield "streams", f"expected at most {MAX_DUMPS} dumps in all streams, got {dumps}"
    for i, stream in enumerate(streams):
        for key, message in _stream_faults(stream, ranks):
            yield f"streams[{i}].{key}", message
        for key, message in _extension_faults(streams, i):
            yield f"streams[{i}].{key}", message
        for key, message in _place_faults(streams, i):
            yield f"streams[{i}].{key}", message


def _time_faults(stream: Pattern) -> Iterator[Fault]:
    for j, (before, dump) in enumerate(pairwise(stream.dumps), 1):
        if dump.time_s < before.last_s:
            yield (
                f"dumps[{j}].time_s",
                f"expected at least {before.last_s}, the time of the "
                f"dump before, got {dump.time_s}",
            )
    if stream.bytes >= 1 << 63:
        yield "dumps", f"expected less than 2^63 bytes in all, got {stream.bytes}"


def _stream_faults(stream: Pattern, ranks: int) -> Iterator[Fault]:
    grouped = stream.layout == "grouped"
    if (stream.groups is not None) != grouped:
        yield (
            "groups",
            f"expected {'a number' if grouped else 'null'} for the layout "
            f"{stream.layout}, got {json.dumps(stream.groups)}",
        )
    if stream.groups is not None and stream.groups > ranks:
        yield "groups", f"expected at most {ranks}, the ranks, got {stream.groups}"
    why = stream.turns and _turns_fault(stream)
    if why:
        yield "turns", f"expected false, since {why}"
    if stream.content.compressibility and stream.content.kind != "random":
        yield (
            "content.compressibility",
            f"expected 0, since the kind is {stream.content.kind} and not random",
        )
    yield from _kind_faults(stream)
    for j, dump in enumerate(stream.dumps):
        for key, message in _dump_faults(stream, dump, ranks):
            yield f"dumps[{j}].{key}", message
    yield from _time_faults(stream)


def _kind_faults(stream: Pattern) -> Iterator[Fault]:
    """Keys that only some kinds of streams have."""
    reads, files = stream.operation == "read", stream.files
    again = files in ("rewrite", "update")
    if reads and files == "rewrite":
        yield "files", "expected new, append or update, since the operation is read, got rewrite"
    if stream.names > 1 and not again:
        yield "names", f"expected 1, since the files are {files}, got {stream.names}"
    if stream.stays_open and files not in ("append", "update"):
        yield "reopen", f"expected true, since the files are {files}"
    if stream.own_directories and stream.layout not in ("file-per-process", "grouped"):
        yield (
            "own_directories",
            "expected false, since the layout is neither file-per-process nor grouped",
        )
    if stream.removes and files != "rewrite":
        yield "removes", f"expected false, since the files are {files} and not rewrite"
    if stream.backup and not stream.removes:
        yield "backup", "expected false, since removes is false"
    if not reads and stream.passes > 1:
        yield "passes", f"expected 1, since the operation is write, got {stream.passes}"
    for key, given in (("sync_bytes", stream.sync_bytes), ("write_through", stream.write_through)):
        if reads and given:
            expected = "false" if given is True else "null"
            yield key, f"expected {expected}, since the operation is read, got {json.dumps(given)}"
    if stream.flush_bytes and (reads or stream.sync_bytes):
        why = "the operation is read or sync_bytes is given"
        yield "flush_bytes", f"expected null, since {why}, got {stream.flush_bytes}"
    if stream.lookups and (
        reads or stream.layout == "flood" or stream.order.rule != "consecutive"
    ):
        why = "the operation is read, the layout flood or the order not consecutive"
        yield "lookups", f"expected null, since {why}"
    if stream.order.rule != "consecutive" and stream.collective:
        yield (
            "order.rule",
            "expected consecutive, since ranks make collective calls together, "
            f"got {stream.order.rule}",
        )
    flood = stream.layout == "flood"
    if flood and files not in (("new", "update") if reads else ("new",)):
        yield (
            "files",
            f"expected new{' or update' if reads else ''} for the layout flood, got {files}",
        )
    if flood and stream.collective:
        yield "collective", "expected false, since no ranks share a file in the layout flood"
    operations = any(d.operations for d in stream.dumps)
    if stream.files_per_directory is not None and not flood and not operations:
        yield (
            "files_per_directory",
            "expected null, since the layout is not flood and no dump "
            f"has operations, got {stream.files_per_directory}",
        )


def _dump_faults(stream: Pattern, dump: Dump, ranks: int) -> Iterator[Fault]:
    if not dump.variables and not dump.operations:
        yield "variables", "expected a list of at least 1, since the dump has no operations"
    wrong_names = names_fault(dump.variables)
    if wrong_names:
        yield "variables", wrong_names
    if not math.isfinite(dump.last_s):
        yield "repeat", "expected finite times of all dumps"
    if stream.pace == "steady" and not dump.duration_s:
        yield (
            "duration_s",
            f"expected more than 0, since the pace is steady, got {json.dumps(dump.duration_s)}",
        )
    if dump.compute_s and (stream.pace == "steady" or stream.layout == "flood"):
        why = "pace is steady" if stream.pace == "steady" else "layout is flood"
        yield "compute_s", f"expected 0, since the {why}, got {json.dumps(dump.compute_s)}"
    alone = _alone(stream)
    for k, variable in enumerate(dump.variables):
        if variable.collective and alone:
            yield f"variables[{k}].collective", f"expected false, since {alone}"
        wrong = decomposition_fault(variable, ranks)
        if wrong is None and stream.layout == "flood":
            wrong = _flood_fault(variable)
        if wrong is not None:
            yield f"variables[{k}].decomposition", wrong
    if dump.bytes >= 1 << 63:
        yield "variables", f"expected less than 2^63 bytes, got {dump.bytes}"
    late = sum(n for n, _ in dump.skew)
    if dump.skew and late != ranks:
        yield "skew", f"expected runs of {ranks} ranks in all, got {late}"
    for k, operation in enumerate(dump.operations):
        yield from _operation_faults(operation, ranks, f"operations[{k}].runs")


def _operation_faults(operation: Operation, ranks: int, key: str) -> Iterator[Fault]:
    have = sum(n for n, _ in operation.runs)
    if have != ranks:
        yield key, f"expected runs of {ranks} ranks in all, got {have}"
    if operation.count >= 1 << 63:
        yield key, f"expected less than 2^63 operations, got {operation.count}"


def _extension_faults(streams: Sequence[Pattern], i: int) -> Iterator[Fault]:
    """Faults of a stream that goes into the files of another."""
    stream = streams[i]
    if stream.extends is None:
        return
    base = next((s for s in streams[:i] if s.name == stream.extends), None)
    if base is None:
        yield "extends", f"expected the name of a stream before it, got {stream.extends!r}"
        return
    if any(s.extends == stream.extends for s in streams[:i]):
        yield "extends", f"expected a stream that no other extends, got {stream.extends!r}"
    if stream.files not in ("new", "rewrite"):
        yield "files", f"expected new or rewrite, since it extends a stream, got {stream.files}"
    if stream.layout == "flood":
        yield "layout", "expected shared, file-per-process or grouped, since it extends a stream"
    for key, value, base_value in (
        ("operation", stream.operation, base.operation),
        ("files", stream.files, base.files),
        ("names", stream.names, base.names),
        ("layout", stream.layout, base.layout),
        ("groups", stream.groups, base.groups),
        ("dumps", stream.dump_count, base.dump_count),
    ):
        if value != base_value:
            yield (
                key,
                f"expected {base_value}, as the stream {base.name} that it extends, got {value}",
            )
    for key, pattern in (("turns", stream), ("extends", base)):
        if pattern.turns:
            yield key, "expected false" if pattern is stream else "expected a stream without turns"
    if any(d.continues for d in (*stream.dumps, *base.dumps)):
        yield "extends", "expected streams whose dumps do not continue"
    if _files(stream) > _files(base):
        yield (
            "dumps",
            f"expected file indices below {_files(base)}, as those of the stream "
            f"{base.name} that it extends",
        )
    for k, ((time_s, _), (its_s, _)) in enumerate(
        zip(stream.expanded(), base.expanded(), strict=False)
    ):
        if time_s < its_s:
            yield (
                "dumps",
                f"expected dump {k} at {its_s} or later, as that of the "
                f"stream {base.name} that it extends, got {time_s}",
            )


def _continues_fault(stream: Pattern, j: int) -> str:
    """Why dump j cannot continue; empty if it can."""
    if j == 0:
        return "there is no dump before the first"
    if stream.operation == "read":
        return "the operation is read"
    if stream.files == "append":
        return "the files are append"
    if stream.stays_open:
        return "the files stay open for all dumps"
    if stream.layout == "flood":
        return "the layout is flood"
    return "the ranks of the stream take turns" if stream.turns else ""


def _reader_faults(stream: Pattern, base: Pattern) -> Iterator[Fault]:
    """Faults of a stream that reads the files of another."""
    why = "since it reads the files of a stream"
    for key, wrong, expected in (
        ("reads", stream.operation != "read", "null, since the operation is write"),
        ("files", stream.files != "update", f"update, {why}"),
        ("names", stream.names > 1, f"1, {why}"),
        ("reopen", stream.stays_open, f"true, {why}"),
        ("own_directories", stream.own_directories, f"false, {why}"),
        ("collective", _together(stream), f"false, {why}"),
        ("layout", stream.layout == "flood", f"shared, file-per-process or grouped, {why}"),
        ("reads", base.operation != "write", "a stream of the operation write"),
        ("reads", base.turns, "a stream without turns"),
        (
            "layout",
            (stream.layout, stream.groups) != (base.layout, base.groups),
            f"that of the stream {base.name}, {why}",
        ),
        ("method", stream.method != base.method, f"{base.method}, {why}"),
        ("dumps", _files(stream) > _files(base), f"file indices below {_files(base)}, {why}"),
        (
            "dumps",
            stream.first_s < base.first_s,
            f"times of {base.first_s} or later, when the stream that it reads begins",
        ),
    ):
        if wrong:
            yield key, f"expected {expected}"


def _place_faults(streams: Sequence[Pattern], i: int) -> Iterator[Fault]:
    """Faults of dumps that continue, and of variables in the places of others."""
    stream = streams[i]
    for j, dump in enumerate(stream.dumps):
        why = dump.continues and _continues_fault(stream, j)
        if why:
            yield f"dumps[{j}].continues", f"expected false, since {why}"
            return
    base = stream
    if stream.reads is not None:
        writer = next((s for s in streams[:i] if s.name == stream.reads), None)
        if writer is None:
            yield "reads", f"expected the name of a stream before it, got {stream.reads!r}"
            return
        base = writer
        wrong = list(_reader_faults(stream, base))
        yield from wrong
        if wrong:
            return
    placed = any(v.at is not None for d in stream.dumps for v in d.variables)
    if base is stream and not placed:
        return
    if base is stream and (stream.layout == "flood" or stream.turns or stream.operation == "read"):
        yield "dumps", "expected no variable with the key 'at' in such a stream"
        return
    for j, variable, message in unplaced(stream, stream.dumps, base, base.dumps):
        at = "variables" if variable is None else f"variables[{variable}].at"
        yield f"dumps[{j}].{at}", message


def can_read(stream: Pattern, base: Pattern) -> bool:
    """True if a stream can read the files of an earlier one."""
    reader = replace(stream, reads=base.name)
    return next(_place_faults((base, reader), 1), None) is None


def can_extend(stream: Pattern, base: Pattern) -> bool:
    """True if the dumps of a stream can go behind those of an earlier one, in its files."""
    return next(_extension_faults((base, replace(stream, extends=base.name)), 1), None) is None


def _files(stream: Pattern) -> int:
    return 1 + max((v.file for d in stream.dumps for v in d.variables), default=0)


def _together(stream: Pattern) -> bool:
    """True if any of its calls are collective."""
    return stream.collective or any(v.collective for d in stream.dumps for v in d.variables)


def _turns_fault(stream: Pattern) -> str:
    """Why its ranks cannot take turns; empty if they can."""
    if stream.layout in ("file-per-process", "flood"):
        return f"no ranks share a file in the layout {stream.layout}"
    if stream.files == "append":
        return "the files are append and not new"
    if stream.files != "new":
        return f"the files are {stream.files} and not new"
    return "collective calls are made by all ranks together" if stream.collective else ""


def _alone(stream: Pattern) -> str:
    """Why its ranks cannot make collective calls; empty if they can."""
    if stream.turns:
        return "the ranks of the stream take turns"
    if stream.layout == "flood":
        return "no ranks share a file in the layout flood"
    consecutive = stream.order.rule == "consecutive"
    return "" if consecutive else "the order of the stream is not consecutive"


def _flood_fault(variable: Variable) -> str | None:
    if variable.decomposition.rule == "grid":
        return "expected even, runs or cyclic for the layout flood, got grid"
    return None

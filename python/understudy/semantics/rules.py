"""What the schema of workloads cannot express: sums, products, order, names, and which keys go
together. `proxies/core/workload.c` and `proxies/core/rules.c` check the same."""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from understudy.errors import UnderstudyError
from understudy.semantics import syscalls
from understudy.semantics.types import (
    MAX_DUMPS,
    Described,
    Dump,
    Operation,
    Stream,
    Variable,
)

_INDEX = re.compile(r"0|[1-9][0-9]{0,18}")
Fault = tuple[str, str]  # the key below that of the object, and the message


def check(workload: Described, where: str) -> None:
    """An `UnderstudyError` with the first fault; `where` names the file."""
    for key, message in faults(workload):
        raise UnderstudyError(f"{where}: {key}: {message}")


def faults(workload: Described) -> Iterator[Fault]:
    """The key and the message of every fault."""
    rule, made_from = "none", workload.ranks
    if workload.scaling is not None:
        rule, made_from = workload.scaling.rule, workload.scaling.from_ranks
    if rule == "none" and made_from != workload.ranks:
        expected = f"expected {workload.ranks}, the ranks, for the rule none"
        yield "scaling.from_ranks", f"{expected}, got {made_from}"
    names = [s.name for s in workload.streams]
    for i, name in enumerate(names):
        if name in names[:i]:
            yield f"streams[{i}].name", f"expected a name of its own, got {name!r} again"
    dumps = sum(s.dump_count for s in workload.streams)
    if dumps > MAX_DUMPS:
        yield "streams", f"expected at most {MAX_DUMPS} dumps in all streams, got {dumps}"
    for i, stream in enumerate(workload.streams):
        if stream.tree is not None:
            for key, message in _syscall_faults(stream, workload.ranks):
                yield f"streams[{i}].{key}", message
            continue
        for key, message in _stream_faults(stream, workload.ranks):
            yield f"streams[{i}].{key}", message
        for key, message in _extension_faults(workload.streams, i):
            yield f"streams[{i}].{key}", message
        for key, message in _place_faults(workload.streams, i):
            yield f"streams[{i}].{key}", message


def _syscall_faults(stream: Stream, ranks: int) -> Iterator[Fault]:
    """Of a stream of calls of the system."""
    tree = stream.tree
    for j, dump in enumerate(stream.dumps):
        if tree is not None and dump.calls is not None:
            for key, message in syscalls.faults(tree, dump.calls, ranks):
                at = f"steps[{j}].do[{int(dump.compute_s > 0)}].do"
                yield key.replace("calls.do", at, 1), message
    yield from _time_faults(stream)


def _time_faults(stream: Stream) -> Iterator[Fault]:
    for j, (before, dump) in enumerate(pairwise(stream.dumps), 1):
        if dump.time_s < before.last_s:
            yield (
                f"dumps[{j}].time_s",
                f"expected at least {before.last_s}, the time of the "
                f"dump before, got {dump.time_s}",
            )
    if stream.bytes >= 1 << 63:
        yield "dumps", f"expected less than 2^63 bytes in all, got {stream.bytes}"


def _stream_faults(stream: Stream, ranks: int) -> Iterator[Fault]:
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


def _kind_faults(stream: Stream) -> Iterator[Fault]:
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


def _dump_faults(stream: Stream, dump: Dump, ranks: int) -> Iterator[Fault]:
    if not dump.variables and not dump.operations:
        yield "variables", "expected a list of at least 1, since the dump has no operations"
    again = _duplicate(v.name for v in dump.variables)
    if again:
        yield "variables", f"expected a name of its own for each, got {again!r} twice"
    again = _numbered_alike(dump.variables)
    if again:
        yield "variables", f"expected names that no count of variables gives, got {again!r}"
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
        wrong = _decomposition_fault(variable, ranks)
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


def _extension_faults(streams: tuple[Stream, ...], i: int) -> Iterator[Fault]:
    """Of a stream that goes into the files of another."""
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
    for key, mine, its in (
        ("operation", stream.operation, base.operation),
        ("files", stream.files, base.files),
        ("names", stream.names, base.names),
        ("layout", stream.layout, base.layout),
        ("groups", stream.groups, base.groups),
        ("dumps", stream.dump_count, base.dump_count),
    ):
        if mine != its:
            yield key, f"expected {its}, as the stream {base.name} that it extends, got {mine}"
    for key, one in (("turns", stream), ("extends", base)):
        if one.turns:
            yield key, "expected false" if one is stream else "expected a stream without turns"
    if any(d.continues for d in (*stream.dumps, *base.dumps)):
        yield "extends", "expected streams whose dumps do not continue"
    if _files(stream) > _files(base):
        yield (
            "dumps",
            f"expected file indices below {_files(base)}, as those of the stream "
            f"{base.name} that it extends",
        )
    for k, (own, its_dump) in enumerate(zip(stream.expanded(), base.expanded(), strict=False)):
        if own.time_s < its_dump.time_s:
            yield (
                "dumps",
                f"expected dump {k} at {its_dump.time_s} or later, as that of the "
                f"stream {base.name} that it extends, got {own.time_s}",
            )


def _continues_fault(stream: Stream, j: int) -> str:
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


def _reader_faults(stream: Stream, base: Stream) -> Iterator[Fault]:
    """Of a stream that reads the files of another."""
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


def _place_faults(streams: tuple[Stream, ...], i: int) -> Iterator[Fault]:
    """Of dumps that continue, and of variables in the places of others."""
    stream = streams[i]
    for j, dump in enumerate(stream.dumps):
        why = dump.continues and _continues_fault(stream, j)
        if why:
            yield f"dumps[{j}].continues", f"expected false, since {why}"
            return
    base = stream
    if stream.reads is not None:
        found = next((s for s in streams[:i] if s.name == stream.reads), None)
        if found is None:
            yield "reads", f"expected the name of a stream before it, got {stream.reads!r}"
            return
        base = found
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
    yield from _unplaced(stream, base)


def can_read(stream: Stream, base: Stream) -> bool:
    """Whether a stream can read the files of an earlier one."""
    own = replace(stream, reads=base.name)
    return next(_place_faults((base, own), 1), None) is None


def can_extend(stream: Stream, base: Stream) -> bool:
    """Whether the dumps of a stream can go behind those of an earlier one, in its files."""
    return next(_extension_faults((base, replace(stream, extends=base.name)), 1), None) is None


def _unplaced(stream: Stream, base: Stream) -> Iterator[Fault]:
    """Variables without the place that they name, and reads beyond the end of the files."""
    files = Contents(base)
    entries = base.dumps if base is not stream else ()
    at = written = 0  # the entry that is written next, and how many of its dumps are
    for j, dump in enumerate(stream.dumps):
        for time_s in _moments(dump, entries, again=base is stream and files.goes_on(dump)):
            while at < len(entries):
                started = entries[at].started(time_s)
                files.write(entries[at], started - written)
                written = started
                if started < entries[at].count:
                    break
                at, written = at + 1, 0
            found = next(_unplaced_of(dump, files, base is stream), None)
            if found is not None:
                yield f"dumps[{j}].{found[0]}", found[1]
                return


def _moments(dump: Dump, entries: Iterable[Dump], again: bool) -> Iterator[float]:
    """When the first dump of an entry starts, those that find more entries of another stream begun
    than the one before, and with `again` the second."""
    yield dump.time_s
    if again and dump.count > 1:
        yield dump.start_s(1)
    for entry in entries:
        if dump.time_s < entry.time_s <= dump.last_s:
            yield dump.start_s(bisect_left(range(dump.count), entry.time_s, key=dump.start_s))


def _unplaced_of(dump: Dump, files: "Contents", own: bool) -> Iterator[Fault]:
    """Of a dump that finds or, if the files are its own, makes these contents."""
    if own:
        files.begin(dump)
    for k, variable in enumerate(dump.variables):
        place = files.places.get(variable.at or "")
        if variable.at is None:
            fits = True
        elif own:
            fits = place is not None and variable.has_place_of(place.variable)
        else:
            fits = place is not None and variable.file == place.variable.file
        if not fits:
            like = "count, type, shape, decomposition and file" if own else "file"
            expected = f"expected a variable in the files with the same {like}"
            yield f"variables[{k}].at", f"{expected}, got {variable.at!r}"
            return
        if own:
            files.add(variable)
    if not own and (wrong := files.beyond(dump)):
        yield "variables", wrong


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files have a variable; bytes before it over all ranks."""

    variable: Variable
    offset: int


class Contents:
    """What the files of a stream hold, dump after dump; of sets used in turn, the last one."""

    def __init__(self, stream: Stream) -> None:
        self._keeps = stream.files in ("update", "append")
        self._grows = stream.files == "append"
        self.places: dict[str, Place] = {}
        self._bytes: dict[int, int] = {}  # of a file, in the dumps with these contents
        self._sizes: dict[int, int] = {}

    def goes_on(self, dump: Dump) -> bool:
        """Whether a dump is added to what the files hold."""
        return dump.continues or self._grows

    def begin(self, dump: Dump) -> None:
        """A dump is written."""
        if not self.goes_on(dump):
            self.places, self._bytes = {}, {}
            if not self._keeps:
                self._sizes = {}

    def add(self, variable: Variable) -> None:
        """And one of its variables."""
        file = variable.file
        begin = self._bytes.get(file, 0)
        if variable.at is None:
            self._bytes[file] = begin + variable.bytes
            self._sizes[file] = max(self._sizes.get(file, 0), self._bytes[file])
        else:
            begin = self.places[variable.at].offset
        self.places[variable.name] = Place(variable, begin)

    def write(self, dump: Dump, times: int) -> None:
        """Whole dumps are written, one as the other."""
        grows = self._grows or dump.continues
        if grows and times > 1:  # all but the last
            for v in dump.variables:
                more = v.bytes if v.at is None else 0
                self._bytes[v.file] = self._bytes.get(v.file, 0) + (times - 1) * more
        for _ in range(min(times, 1 if grows else 2)):  # a third changes nothing
            self.begin(dump)
            for variable in dump.variables:
                self.add(variable)

    def beyond(self, dump: Dump) -> str:
        """Which file a dump that is read would need to be larger; empty if none."""
        behind: dict[int, int] = {}
        for v in dump.variables:
            begin = behind.get(v.file, 0) if v.at is None else self.places[v.at].offset
            if v.at is None:
                behind[v.file] = begin + v.bytes
            size = self._sizes.get(v.file, 0)
            if begin + v.bytes > size:
                end = begin + v.bytes
                return f"expected at most {size} bytes of file {v.file} by then, got {end}"
        return ""


def _files(stream: Stream) -> int:
    return 1 + max((v.file for d in stream.dumps for v in d.variables), default=0)


def _together(stream: Stream) -> bool:
    """Whether any of its calls are collective."""
    return stream.collective or any(v.collective for d in stream.dumps for v in d.variables)


def _turns_fault(stream: Stream) -> str:
    """Why its ranks cannot take turns; empty if they can."""
    if stream.layout in ("file-per-process", "flood"):
        return f"no ranks share a file in the layout {stream.layout}"
    if stream.files == "append":
        return "the files are append and not new"
    if stream.files != "new":
        return f"the files are {stream.files} and not new"
    return "collective calls are made by all ranks together" if stream.collective else ""


def _alone(stream: Stream) -> str:
    """Why its ranks cannot make collective calls; empty if they can."""
    if stream.turns:
        return "the ranks of the stream take turns"
    if stream.layout == "flood":
        return "no ranks share a file in the layout flood"
    consecutive = stream.order.rule == "consecutive"
    return "" if consecutive else "the order of the stream is not consecutive"


def _duplicate(names: Iterable[str]) -> str:
    """The first name that occurs twice; empty if none does."""
    seen: set[str] = set()
    return next((n for n in names if n in seen or seen.add(n)), "")  # type: ignore[func-returns-value]


def _numbered_alike(variables: Iterable[Variable]) -> str:
    """The first name that is also that of one of `count` variables, such as v_1 of 2 times v."""
    counts = {v.name: v.count for v in variables}
    for name, count in counts.items():
        stem, _, digits = name.rpartition("_")
        numbers = counts.get(stem, 1)
        if count == 1 < numbers and _INDEX.fullmatch(digits) and int(digits) < numbers:
            return name
    return ""


def _decomposition_fault(variable: Variable, ranks: int) -> str | None:
    rule = variable.decomposition
    if rule.rule == "grid":
        if len(rule.grid) != len(variable.shape):
            return f"expected a grid of {len(variable.shape)} dimensions, got {len(rule.grid)}"
        if math.prod(rule.grid) != ranks:
            return f"expected a grid of {ranks} ranks, got {math.prod(rule.grid)}"
    if rule.rule == "runs":
        have = sum(n for n, _ in rule.runs)
        rows = sum(n * size for n, size in rule.runs)
        if have != ranks:
            return f"expected runs of {ranks} ranks in all, got {have}"
        if rows != variable.shape[0]:
            return f"expected runs of {variable.shape[0]} rows in all, as shape[0], got {rows}"
    return None


def _flood_fault(variable: Variable) -> str | None:
    if variable.decomposition.rule == "grid":
        return "expected even, runs or cyclic for the layout flood, got grid"
    return None

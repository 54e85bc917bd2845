"""Rules that the schema of workloads cannot express: sums, products, order and names.

`proxies/core/workload/program.c` and `proxies/core/plan/plan.c` refuse the same. One file because
the rules of a step need those of its instructions.
"""

import json
import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from understudy.errors import UnderstudyError
from understudy.program import syscalls
from understudy.program.instructions import (
    CALLERS,
    EACH_RANK,
    EACH_ROW,
    KEEP,
    READ,
    Begin,
    Body,
    Calls,
    Close,
    Compute,
    Files,
    Instruction,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Skew,
    Spread,
    Step,
    Stream,
    Sync,
    WaitAll,
    flat,
)
from understudy.program.patterns import Dump, Pattern
from understudy.program.types import CONSECUTIVE, MAX_DUMPS, Variable

if TYPE_CHECKING:
    from understudy.program.workload import Workload

Fault = tuple[str, str]  # the key below that of the object, and the message

_INDEX = re.compile(r"0|[1-9][0-9]{0,18}")
MOST_DEPTH = 8  # loops within each other
MOST_BYTES = (1 << 63) - 1
MOST_CHUNK_BYTES = (1 << 32) - 1  # of HDF5


def check(workload: "Workload", where: str) -> None:
    """An `UnderstudyError` with the first fault; `where` names the file."""
    for key, message in faults(workload):
        raise UnderstudyError(f"{where}: {key}: {message}")


def faults(workload: "Workload") -> Iterator[Fault]:
    """The key and the message of every fault."""
    if workload.scaling is not None and workload.scaling.rule == "none":
        made_from = workload.scaling.from_ranks
        if made_from != workload.ranks:
            expected = f"expected {workload.ranks}, the ranks, for the rule none"
            yield "scaling.from_ranks", f"{expected}, got {made_from}"
    dumps = sum(s.dump_count for s in workload.streams)
    if dumps > MAX_DUMPS:
        yield "streams", f"expected at most {MAX_DUMPS} dumps in all streams, got {dumps}"
    for i in range(len(workload.streams)):
        for key, message in _faults(workload.streams, i, workload.ranks):
            yield f"streams[{i}].{key}", message


def _faults(streams: Sequence[Stream], i: int, ranks: int) -> Iterator[Fault]:
    stream = streams[i]
    if any(s.name == stream.name for s in streams[:i]):
        yield "name", f"expected a name of its own, got {stream.name!r} again"
    if stream.content.compressibility and stream.content.kind != "random":
        kind = stream.content.kind
        yield "content.compressibility", f"expected 0, since the kind is {kind} and not random"
    sound: set[Body] = set()  # thousands of steps have few bodies
    shared: set[int] = set()  # identities of those, which are faster to find
    for j, step in enumerate(stream.steps):
        is_sound = id(step.body) in shared or (stream.set.owner != CALLERS and step.body in sound)
        if is_sound and math.isfinite(step.last_s):
            continue
        step_faults = list(_step_faults(stream, step, ranks))
        for key, message in step_faults:
            yield f"steps[{j}].{key}", message
        if stream.set.owner != CALLERS and not step_faults:
            sound.add(step.body)
            shared.add(id(step.body))
    yield from _time_faults(stream)
    if stream.set.owner == CALLERS:
        yield from _caller_faults(stream)
        return
    base_faults = list(_base_faults(streams, i))
    yield from base_faults
    yield from _order_faults(stream)
    if not base_faults:
        yield from _place_faults(streams, i)


def _time_faults(stream: Stream) -> Iterator[Fault]:
    for j, (before, step) in enumerate(pairwise(stream.steps), 1):
        if step.time_s < before.last_s:
            expected = f"expected at least {before.last_s}, the time of the step before"
            yield f"steps[{j}].at", f"{expected}, got {step.time_s}"
    if stream.bytes > MOST_BYTES:
        yield "steps", f"expected less than 2^63 bytes in all, got {stream.bytes}"


def _caller_faults(stream: Stream) -> Iterator[Fault]:
    """Faults of a stream of calls of the system."""
    for key, wrong in (("close_last", stream.closes), ("set", stream.base is not None)):
        if wrong:
            yield key, "expected calls and compute alone with a set of callers"


# -- steps ----------------------------------------------------------------------------------------


def placed(body: Body, at: str = "do", depth: int = 0) -> Iterator[tuple[str, Instruction, int]]:
    """The instructions of a body with those of the loops within: the key of each, and in how many
    loops it is."""
    for i, instruction in enumerate(body):
        here = f"{at}[{i}]"
        yield here, instruction, depth
        if isinstance(instruction, Passes | InTurn | Files):
            inner = "in_turn" if isinstance(instruction, InTurn) else "do"
            yield from placed(instruction.body, f"{here}.{inner}", depth + 1)


def _step_faults(stream: Stream, step: Step, ranks: int) -> Iterator[Fault]:
    if not math.isfinite(step.last_s):
        yield "repeat", "expected finite times of all dumps"
    called = [i for i in step.body if isinstance(i, Calls)]
    if stream.set.owner == CALLERS and len(called) != 1:
        yield "do", "expected calls once, since the set is of callers"
    opened, kinds, last = False, set[str](), None
    moved: list[Variable] = []
    yield from _flight_faults(step.body, "do")
    for key, instruction, depth in placed(step.body):
        if depth > MOST_DEPTH:
            yield key, f"expected at most {MOST_DEPTH} loops within each other"
            return
        wrong = (stream.set.owner == CALLERS and not isinstance(instruction, Calls | Compute)) or (
            isinstance(instruction, Calls) and stream.set.owner != CALLERS
        )
        if wrong:
            yield key, "expected calls and compute alone with a set of callers, and only there"
        for inner, message in _instruction_faults(stream, step, instruction, ranks):
            yield key + inner, message
        if isinstance(instruction, Calls) and stream.set.tree is not None:
            for inner, message in syscalls.faults(stream.set.tree, instruction.list, ranks):
                yield inner.replace("calls.", f"{key}.", 1), message
        match instruction:
            case Move():
                moved.append(instruction.variable)
            case Open() if opened:
                yield key, "expected one open in a step"
            case Open():
                opened = True
            case InTurn() if opened:
                expected = (
                    "expected the open of the step in it, since ranks open one after the other"
                )
                yield f"{key}.in_turn", expected
            case Operate():
                if instruction.kind in kinds and instruction.kind != last:
                    expected = "expected all of a kind one behind the other in a step"
                    yield f"{key}.operate", f"{expected}, got {instruction.kind!r} again"
                kinds.add(instruction.kind)
        last = instruction.kind if isinstance(instruction, Operate) else None
    wrong_names = names_fault(moved)
    if wrong_names:
        yield "do", wrong_names
    if step.moved_bytes > MOST_BYTES:
        yield "do", f"expected less than 2^63 bytes, got {step.moved_bytes}"


def _flight_faults(body: Body, at: str) -> Iterator[Fault]:
    """Faults of nonblocking moves: wait_all is in the list, behind moves and compute alone."""
    in_flight = False
    for i, instruction in enumerate(body):
        here = f"{at}[{i}]"
        if in_flight and not isinstance(instruction, Move | Compute | WaitAll):
            yield here, "expected moves, compute or wait_all behind a nonblocking move"
            return
        if isinstance(instruction, Passes | InTurn | Files):
            inner = "in_turn" if isinstance(instruction, InTurn) else "do"
            yield from _flight_faults(instruction.body, f"{here}.{inner}")
        if isinstance(instruction, Move):
            in_flight = in_flight or instruction.nonblocking
        in_flight = in_flight and not isinstance(instruction, WaitAll)
    if in_flight:
        yield at, "expected wait_all behind nonblocking moves"


def _instruction_faults(
    stream: Stream, step: Step, instruction: Instruction, ranks: int
) -> Iterator[Fault]:
    rows = stream.set.owner == EACH_ROW
    match instruction:
        case Skew():
            late = sum(n for n, _ in instruction.runs)
            if late != ranks:
                yield ".wait", f"expected runs of {ranks} ranks in all, got {late}"
        case Operate():
            have = sum(n for n, _ in instruction.runs)
            if have != ranks:
                yield ".runs", f"expected runs of {ranks} ranks in all, got {have}"
            if instruction.count > MOST_BYTES:
                yield ".runs", f"expected less than 2^63 operations, got {instruction.count}"
        case Spread():
            if not step.duration_s:
                yield "", "expected a step with lasting of more than 0"
        case Open():
            yield from _open_faults(stream, instruction)
        case Passes():
            if instruction.count > 1 and stream.operation == "write":
                yield ".repeat", f"expected 1, since the stream writes, got {instruction.count}"
        case InTurn():
            if stream.set.owner in (EACH_ROW, EACH_RANK) or stream.set.names or stream.last:
                yield ".in_turn", "expected a set of files of several ranks with the index k"
        case Files():
            if not rows:
                yield ".each_file", "expected a set of files of each row"
            if instruction.order != stream.order:
                yield ".order", "expected that of the loops before it in the stream"
        case Move():
            yield from _move_faults(stream, instruction, ranks)


def _open_faults(stream: Stream, how: Open) -> Iterator[Fault]:
    if how != stream.open:
        yield "", "expected an open as those before it in the stream"
    moves = next(stream.moves, None) is not None
    if moves and (how.mode == READ) != (stream.operation == "read"):
        expected = "read" if stream.operation == "read" else "new, truncate or keep"
        yield ".mode", f"expected {expected}, since the stream {stream.operation}s, got {how.mode}"
    if (how.chunk_bytes or 0) > MOST_CHUNK_BYTES:
        yield ".chunk_bytes", f"expected at most {MOST_CHUNK_BYTES}, got {how.chunk_bytes}"


def _move_faults(stream: Stream, move: Move, ranks: int) -> Iterator[Fault]:
    first, variable = next(stream.moves), move.variable
    if move.writes != first.writes:
        what = "write" if first.writes else "read"
        yield "", f"expected a {what}, as those before it in the stream"
    for key in ("order", "flush_bytes", "lookups"):
        if getattr(move, key) != getattr(first, key):
            yield f".{key}", "expected that of the moves before it in the stream"
    if move.flush_bytes and move.hands_over != first.hands_over:
        yield ".to_system", "expected that of the moves before it in the stream"
    if move.flush_bytes and not move.writes:
        yield ".flush_bytes", f"expected none, since it reads, got {move.flush_bytes}"
    alone = _alone(stream)
    if move.collective and alone:
        yield ".collective", f"expected false, since {alone}"
    if move.at is not None and (stream.is_flood or stream.takes_turns):
        yield ".at", f"expected none, since each rank has its own bytes, got {move.at!r}"
    if move.nonblocking and (stream.is_flood or move.lookups or move.flush_bytes):
        expected = "expected false in files of each row, with lookups and with flush_bytes"
        yield ".nonblocking", expected
    if move.depth > 1 and (stream.is_flood or move.lookups or move.collective or move.nonblocking):
        expected = "expected none in files of each row, with lookups, collective and nonblocking"
        yield ".depth", expected
    consecutive = stream.order == CONSECUTIVE
    if move.lookups and (not move.writes or stream.is_flood or not consecutive):
        yield ".lookups", "expected writes in the order of their bytes to files of ranks"
    if variable.file >= stream.set.files:
        yield ".file", f"expected less than the {stream.set.files} of the set, got {variable.file}"
    if variable.bytes > MOST_BYTES:
        yield ".shape", f"expected less than 2^63 bytes, got {variable.bytes}"
    wrong = decomposition_fault(variable, ranks)
    if wrong is None and stream.is_flood and variable.decomposition.rule == "grid":
        wrong = "expected even, runs or cyclic in files of each row, got grid"
    if wrong is not None:
        yield ".split", wrong


def _alone(stream: Stream) -> str:
    """Why its ranks cannot make collective calls; empty if they can."""
    if stream.takes_turns:
        return "the ranks of the stream take turns"
    if stream.is_flood:
        return "no ranks share a file of each row"
    return "" if stream.order == CONSECUTIVE else "the order of the stream is not consecutive"


# -- which files are open -------------------------------------------------------------------------


def _wrong_place(stream: Stream, step: Step, instruction: Instruction, is_open: bool) -> str:
    """Why an instruction cannot stand where it does; empty if it can."""
    match instruction:
        case Close() if stream.closes:
            return "expected no close, since the stream has close_last"
        case Begin() if not stream.set.numbered and stream.last is None:
            return "expected no begin, since the set has no index"
        case Operate() if not is_open and not stream.is_flood:
            if any(isinstance(i, Open) for i in flat(step.body)):
                return "expected operate behind open, before close"
    return ""


def _truncates(stream: Stream) -> bool:
    """True if it writes files that it empties or makes first."""
    moves = stream.operation == "write" and next(stream.moves, None) is not None
    return moves and stream.open.mode != KEEP


def _order_faults(stream: Stream) -> Iterator[Fault]:
    """Open before moves, close behind them, unless the stream closes its files behind their last
    use."""
    if stream.closes and stream.is_flood:
        yield "close_last", "expected false in files of each row"
    elif stream.closes and stream.set.numbered and stream.set.names is None and not stream.last:
        yield "close_last", "expected a set with an index that comes again, or none"
    elif stream.closes and stream.set.numbered and _truncates(stream):
        yield "close_last", f"expected an open with keep, got {stream.open.mode}"
    if (stream.set.numbered or stream.last) and stream.steps[0].continues:
        yield "steps[0].do", "expected begin in the first step, since the set has an index"
    if not stream.set.numbered and stream.last is None and _truncates(stream):
        yield "set", f"expected an open with keep, since it has no index, got {stream.open.mode}"
    opened = False  # since the content began
    is_open = False
    behind: dict[tuple[int, bool, bool], tuple[bool, bool]] = {}  # a body without a fault
    for j, step in enumerate(stream.steps):
        before = id(step.body), opened, is_open
        if before in behind:
            opened, is_open = behind[before]
            continue
        is_sound = True
        rows = set[str]()  # keys of loops over the files of rows
        for key, instruction, _ in placed(step.body):
            at = f"steps[{j}].{key}"
            if isinstance(instruction, Files):
                rows.add(key)
            if (
                isinstance(instruction, Move)
                and stream.is_flood
                and not any(key.startswith(f"{loop}.") for loop in rows)
            ):
                yield at, "expected each_file around it, since the files are of each row"
                is_sound = False
            if isinstance(instruction, Move | Sync | Close) and not is_open:
                yield at, "expected open before what moves, flushes or closes files"
                return
            if isinstance(instruction, Begin) and is_open and not stream.closes:
                yield at, "expected close before begin"
                return
            fault = _wrong_place(stream, step, instruction, is_open)
            if fault:
                yield at, fault
                return
            if isinstance(instruction, Begin):
                opened = False
            if isinstance(instruction, Open):
                again = stream.set.numbered and not stream.closes and stream.last is None
                if opened and again:
                    yield at, "expected begin before files are opened again"
                    return
                opened = True
            is_open = (is_open or isinstance(instruction, Open)) and not isinstance(
                instruction, Close
            )
        if is_sound:
            behind[before] = opened, is_open
    if is_open and not stream.closes:
        yield "steps", "expected close, or close_last, behind open"


# -- files of other streams -----------------------------------------------------------------------


def _base_faults(streams: Sequence[Stream], i: int) -> Iterator[Fault]:
    """Faults of a stream that uses the set of another."""
    stream, others = streams[i], [s for s in streams[:i] if s.set.name == streams[i].set.name]
    key = "behind" if stream.behind is not None else "last"
    if not others:
        if stream.base is not None:
            yield key, "expected none, since no stream has used the set before"
        return
    if stream.behind is not None and stream.last is not None:
        yield key, "expected either behind or last"
    base = next((s for s in others if s.name == stream.base), None)
    if base is None:
        expected = f"expected a stream before it of the set {stream.set.name}, since others use it"
        yield key, f"{expected}, got {json.dumps(stream.base)}"
        return
    if stream.last is not None:
        if stream.first_s < base.first_s:
            expected = f"expected times of {base.first_s} or later"
            yield "steps", f"{expected}, when the stream that it reads begins"
        return
    if any(s.behind == stream.behind for s in others):
        yield key, f"expected a stream that no other is behind, got {stream.behind!r}"
    if stream.dump_count != base.dump_count:
        expected = f"expected {base.dump_count} dumps, as the stream {base.name} that it is behind"
        yield "steps", f"{expected}, got {stream.dump_count}"
    yield from _behind_faults(stream, base)


def _behind_faults(stream: Stream, base: Stream) -> Iterator[Fault]:
    """Faults of one whose bytes go behind those of another, dump by dump."""
    for each in (stream, base):
        if each.set.numbered and any(step.continues for step in each.steps):
            yield (
                "steps",
                f"expected begin in each step of {each.name}, as one is behind the other",
            )
            return
    for k, (dump, base_dump) in enumerate(zip(stream.expanded(), base.expanded(), strict=False)):
        if dump.time_s < base_dump.time_s:
            expected = f"expected dump {k} at {base_dump.time_s} or later, as that of {base.name}"
            yield "steps", f"{expected}, got {dump.time_s}"
            return


def _place_faults(streams: Sequence[Stream], i: int) -> Iterator[Fault]:
    """Faults of variables in the places of others, and of reads of what another stream writes."""
    stream = streams[i]
    base = next((s for s in streams[:i] if s.name == stream.last), stream)
    if base is stream and all(move.at is None for move in stream.moves):
        return
    misplaced = unplaced(stream, stream.steps, base, base.steps)
    for j, k, message in misplaced:
        moved = [
            key
            for key, instruction, _ in placed(stream.steps[j].body)
            if isinstance(instruction, Move)
        ]
        yield f"steps[{j}].{'do' if k is None else f'{moved[k]}.at'}", message


def unplaced(
    stream: Stream | Pattern,
    dumps: Sequence[Step | Dump],
    base: Stream | Pattern,
    entries: Sequence[Step | Dump],
) -> Iterator[tuple[int, int | None, str]]:
    """The first variable without the place that it names, or reads beyond the end of the files: of
    which dump, and which variable of it."""
    files = Contents(base)
    owns_files = base is stream
    at = written = 0  # the entry that is written next, and how many of its dumps are
    for j, dump in enumerate(dumps):
        for time_s in _moments(
            dump, () if owns_files else entries, again=owns_files and files.goes_on(dump)
        ):
            while not owns_files and at < len(entries):
                started = entries[at].started(time_s)
                files.write(entries[at], started - written)
                written = started
                if started < entries[at].count:
                    break
                at, written = at + 1, 0
            fault = next(_unplaced_of(dump, files, owns_files), None)
            if fault is not None:
                yield j, *fault
                return


def _moments(dump: Step | Dump, entries: Iterable[Step | Dump], again: bool) -> Iterator[float]:
    """When the first dump of an entry starts, those that find more entries of another stream begun
    than the one before, and with `again` the second."""
    yield dump.time_s
    if again and dump.count > 1:
        yield dump.start_s(1)
    for entry in entries:
        if dump.time_s < entry.time_s <= dump.last_s:
            yield dump.start_s(bisect_left(range(dump.count), entry.time_s, key=dump.start_s))


def _unplaced_of(
    dump: Step | Dump, files: "Contents", owns_files: bool
) -> Iterator[tuple[int | None, str]]:
    """Faults of a dump that finds these contents or, if the files are its own, makes them."""
    if owns_files:
        files.begin(dump)
    for k, variable in enumerate(dump.variables):
        place = files.places.get(variable.at or "")
        if variable.at is None:
            fits = True
        elif owns_files:
            fits = place is not None and variable.has_place_of(place.variable)
        else:
            fits = place is not None and variable.file == place.variable.file
        if not fits:
            like = "count, type, shape, decomposition and file" if owns_files else "file"
            expected = f"expected a variable in the files with the same {like}"
            yield k, f"{expected}, got {variable.at!r}"
            return
        if owns_files:
            files.add(variable)
    if not owns_files and (wrong := files.beyond(dump)):
        yield None, wrong


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files have a variable; bytes before it over all ranks."""

    variable: Variable
    offset: int


class Contents:
    """Contents of the files of a stream, dump after dump; of sets used in turn, the last one."""

    def __init__(self, stream: Stream | Pattern) -> None:
        self._keeps = stream.files in ("update", "append")
        self._grows = stream.grows
        self.places: dict[str, Place] = {}
        self._bytes: dict[int, int] = {}  # of a file, in the dumps with these contents
        self._sizes: dict[int, int] = {}

    def goes_on(self, dump: Step | Dump) -> bool:
        """True if a dump is added to what the files hold."""
        return dump.continues or self._grows

    def begin(self, dump: Step | Dump) -> None:
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

    def write(self, dump: Step | Dump, times: int) -> None:
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

    def beyond(self, dump: Step | Dump) -> str:
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


# -- variables ------------------------------------------------------------------------------------


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


def names_fault(variables: Sequence[Variable]) -> str:
    """Fault of the names of the variables of a dump; empty if none."""
    again = _duplicate(v.name for v in variables)
    if again:
        return f"expected a name of its own for each, got {again!r} twice"
    again = _numbered_alike(variables)
    return f"expected names that no count of variables gives, got {again!r}" if again else ""


def decomposition_fault(variable: Variable, ranks: int) -> str | None:
    """Fault of the blocks of a variable; None if none."""
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

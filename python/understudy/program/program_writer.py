"""A workload as the program that it is (understudy/workload/3): sets of files and instructions,
as docs/reference/program.md defines them. The player carries out just these.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

from understudy.program.descriptor import plain
from understudy.program.instructions import (
    CALLERS,
    EACH_GROUP,
    WORD_OF,
    Calls,
    Compute,
    Files,
    FileSet,
    Instruction,
    InTurn,
    Move,
    Open,
    Operate,
    Passes,
    Program,
    Skew,
    Step,
    Stream,
    Word,
)
from understudy.program.syscalls import entry_row
from understudy.program.types import CONSECUTIVE, EVEN, Content

Row: TypeAlias = dict[str, Any]


def rows_of(program: Program) -> Row:
    """The keys of the contract that a program has."""
    row: Row = {"sets": [_set(files) for files in program.sets]}
    row["streams"] = [_stream(stream) for stream in program.streams]
    return row | _beside(program.streams)


def _beside(streams: Iterable[Stream]) -> Row:
    """Keys that only people and the predictions of containers need."""
    labels: Row = {}
    overheads: Row = {}
    for stream in streams:
        labels |= {stream.name: stream.label} if stream.label else {}
        named = {m.variable.name: m.variable.label for m in stream.moves if m.variable.label}
        labels |= {f"{stream.name}/{name}": label for name, label in named.items()}
        if any(step.overhead_bytes is not None for step in stream.steps):
            overheads[stream.name] = [[s.count, s.overhead_bytes] for s in stream.steps]
    return _given(labels=labels or None, overheads=overheads or None)


def _given(**keys: Any) -> Row:
    """Those that are not what they are by default."""
    return {key: value for key, value in keys.items() if value not in (None, False, 0)}


def _set(files: FileSet) -> Row:
    row: Row = {"name": files.name, "of": files.owner}
    if files.tree is not None:
        entries = [entry_row(entry) for entry in files.tree.entries]
        return row | {"entries": entries, "stored_bytes": files.tree.stored_bytes}
    if files.owner == EACH_GROUP:
        row["groups"] = files.groups
    if files.files > 1:
        row["files"] = files.files
    if not files.numbered:
        row["index"] = "none"
    elif files.names:
        row["index"] = files.names
    return row | _given(
        own_directories=files.own_directories,
        files_per_directory=files.files_per_directory,
        prepared=files.prepared,
    )


def _stream(stream: Stream) -> Row:
    row: Row = {"name": stream.name, "role": stream.role, "method": stream.method}
    if stream.content != Content():
        row["content"] = plain(stream.content)
    if not stream.opens and stream.set.owner != CALLERS:
        row |= {"set": stream.set.name, **_given(behind=stream.behind, last=stream.last)}
    row |= _given(close_last=stream.closes, files_per_directory=stream.files_per_directory)
    row["steps"] = [_step(step, stream) for step in stream.steps]
    return row


def _step(step: Step, stream: Stream) -> Row:
    row: Row = {"at": step.time_s}
    if step.count > 1:
        row |= {"repeat": step.count, "every": step.period_s}
    if step.duration_s is not None:
        row["lasting"] = step.duration_s
    return row | {"do": [_instruction(i, stream) for i in step.body]}


def _instruction(instruction: Instruction, stream: Stream) -> Row | str:
    if isinstance(instruction, Word):
        return WORD_OF[instruction]
    match instruction:
        case Skew():
            return {"wait": plain(instruction.runs)}
        case Open():
            return _open(instruction, stream)
        case Operate():
            return {"operate": instruction.kind, "runs": plain(instruction.runs)}
        case Compute():
            return {"compute": instruction.seconds}
        case Move():
            return _move(instruction)
        case Calls():
            return {"calls": stream.set.name, "do": list(instruction.list.rows)}
        case _:
            return _loop(instruction, stream)


def _loop(instruction: Passes | InTurn | Files, stream: Stream) -> Row:
    body = [_instruction(i, stream) for i in instruction.body]
    match instruction:
        case Passes():
            return {"repeat": instruction.count, "do": body}
        case InTurn():
            return {"in_turn": body}
        case Files():
            order = {} if instruction.order == CONSECUTIVE else {"order": plain(instruction.order)}
            return {"each_file": stream.set.name, **order, "do": body}


def _open(instruction: Open, stream: Stream) -> Row:
    row: Row = {"open": stream.set.name, "mode": instruction.mode}
    return row | _given(
        behind=stream.behind,
        last=stream.last,
        direct=instruction.direct,
        write_through=instruction.write_through,
        chunk_bytes=instruction.chunk_bytes,
        fill=instruction.fill,
    )


def _move(move: Move) -> Row:
    variable = move.variable
    row: Row = {"write" if move.writes else "read": variable.name}
    row |= {"type": variable.type, "shape": list(variable.shape)}
    if variable.decomposition != EVEN:
        row["split"] = plain(variable.decomposition)
    if variable.count > 1:
        row["count"] = variable.count
    row |= _given(file=variable.file, at=variable.at)
    row["transfer_bytes"] = move.transfer_bytes
    row |= _given(collective=move.collective, nonblocking=move.nonblocking)
    if move.depth > 1:
        row["depth"] = move.depth
    if move.order != CONSECUTIVE:
        row["order"] = plain(move.order)
    row |= _given(flush_bytes=move.flush_bytes)
    row |= _given(to_system=move.hands_over and move.flush_bytes is not None)
    if move.lookups is not None:
        row["lookups"] = plain(move.lookups)
    return row

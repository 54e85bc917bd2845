"""The text of a program (docs/reference/program.md)."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from understudy.program.instructions import (
    EACH_GROUP,
    WORD_OF,
    Body,
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
from understudy.program.syscalls import Row
from understudy.program.types import Content, Decomposition, Order


def text_of(program: Program) -> str:
    """The program as text, line by line."""
    return "".join(f"{line}\n" for line in _lines(program))


def _lines(program: Program) -> Iterator[str]:
    yield f"program {program.name} of {_counted(program.ranks, 'rank')}"
    for file_set in program.sets:
        yield f"set {file_set.name}: {', '.join(_facts(file_set))}"
    for stream in program.streams:
        yield f"stream {stream.name} by {stream.method}{_content(stream.content)}"
        yield from _thread(stream)


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _facts(file_set: FileSet) -> Iterator[str]:
    if file_set.tree is not None:
        there = sum(e.count for e in file_set.tree.entries if e.directory or e.bytes is not None)
        yield f"{_counted(file_set.tree.files, 'file')} of calls"
        yield f"{there} of {file_set.tree.count} entries are there before"
        yield f"at most {_counted(file_set.tree.stored_bytes, 'byte')}"
        return
    owner = f"each of {_counted(file_set.groups, 'group')}"
    owner = owner if file_set.owner == EACH_GROUP else file_set.owner
    yield f"{_counted(file_set.files, 'file')} of {owner}"
    if not file_set.numbered:
        yield "no index"
    else:
        yield "index k" if file_set.names is None else f"index k mod {file_set.names}"
    if file_set.own_directories:
        yield "own directories"
    if file_set.files_per_directory is not None:
        yield f"directories of {_counted(file_set.files_per_directory, 'file')}"
    if file_set.prepared:
        yield "prepared"


def _content(content: Content) -> str:
    if content == Content():
        return ""
    share = f" {_number(content.compressibility)}" if content.compressibility else ""
    return f", content {content.kind}{share}"


def _thread(stream: Stream) -> Iterator[str]:
    for step in stream.steps:
        yield f"  {_when(step)}"
        yield from _body(step.body, "    ", stream)
    if stream.closes:
        yield "  close after the last use"


def _when(step: Step) -> str:
    start = _number(step.time_s)
    lasting = "" if step.duration_s is None else f" lasting {_number(step.duration_s)} s"
    if step.count == 1:
        return f"at {start} s{lasting}"
    return f"repeat {step.count} from {start} s every {_number(step.period_s)} s{lasting}"


def _number(value: float) -> str:
    """As C prints it with %.15g."""
    return f"{value + 0.0:.15g}"  # of -0.0, 0


def _body(body: Body, indent: str, stream: Stream) -> Iterator[str]:
    for instruction in body:
        yield indent + " ".join(_words(instruction, stream))
        if isinstance(instruction, Calls):
            yield from _calls(instruction.list.rows, f"{indent}  ")
        elif isinstance(instruction, Passes | InTurn | Files):
            yield from _body(instruction.body, f"{indent}  ", stream)


def _words(instruction: Instruction, stream: Stream) -> Iterator[str]:
    match instruction:
        case Word():
            yield WORD_OF[instruction].replace("_", " ")
        case Skew():
            late = ", ".join(f"{ranks}x{_number(each)}" for ranks, each in instruction.runs)
            yield f"skew [{late}]"
        case Open():
            yield f"open {stream.set.name} {instruction.mode}"
            yield from (f"behind {stream.behind}",) if stream.behind else ()
            yield from (f"last of {stream.last}",) if stream.last else ()
            yield from _flags(direct=instruction.direct, write_through=instruction.write_through)
            if instruction.chunk_bytes is not None:
                yield f"chunk {instruction.chunk_bytes}"
            yield from _flags(fill=instruction.fill)
        case Operate():
            yield f"operate {instruction.kind} {_runs(instruction.runs)}"
        case Compute():
            yield f"compute {_number(instruction.seconds)} s"
        case Move():
            yield from _move(instruction)
        case Calls():
            yield f"calls {stream.set.name}"
        case Passes():
            yield f"passes {instruction.count}"
        case InTurn():
            yield "in turn"
        case Files():
            yield "files"
            yield from _order(instruction.order)


def _calls(rows: Sequence[Row], indent: str) -> Iterator[str]:
    """Calls of the system: the kind, and each key with its value."""
    for row in rows:
        if "call" in row:
            words = (f"{k} {_linear(v)}" for k, v in row.items() if k != "call" and v is not False)
            yield " ".join((f"{indent}{row['call']}", *words))
        else:
            name = "repeat" if "repeat" in row else "ranks"
            yield f"{indent}{name} {_linear(row[name])}"
            yield from _calls(row["do"], f"{indent}  ")


def _linear(value: Any) -> str:
    if value is True:
        return "yes"
    return f"[{', '.join(map(str, value))}]" if isinstance(value, list) else str(value)


def _flags(**flags: bool) -> Iterator[str]:
    yield from (name.replace("_", "-") for name, on in flags.items() if on)


def _move(move: Move) -> Iterator[str]:
    variable = move.variable
    yield f"{'write' if move.writes else 'read'} {variable.name}"
    if variable.count > 1:
        yield f"times {variable.count}"
    yield f"{variable.type} {_list(variable.shape)}"
    yield from _division(variable.decomposition)
    if variable.file:
        yield f"file {variable.file}"
    if move.at is not None:
        yield f"at {move.at}"
    yield f"transfer {move.transfer_bytes}"
    yield from _flags(collective=move.collective, nonblocking=move.nonblocking)
    if move.depth > 1:
        yield f"depth {move.depth}"
    yield from _order(move.order)
    if move.flush_bytes is not None:
        yield f"flush {move.flush_bytes}{' to system' if move.hands_over else ''}"
    if move.lookups is not None:
        calls, size = _number(move.lookups.calls), move.lookups.transfer_bytes
        yield f"lookups {calls} of {size} every {move.lookups.every_bytes}"


def _division(rule: Decomposition) -> Iterator[str]:
    yield rule.rule
    if rule.rule == "grid":
        yield _list(rule.grid)
    elif rule.rule == "runs":
        yield _runs(rule.runs)
    elif rule.rule == "cyclic":
        yield str(rule.block)


def _order(order: Order) -> Iterator[str]:
    if order.rule == "strided":
        yield f"strided {order.step}"
    elif order.rule == "shuffled":
        yield f"shuffled {order.seed}"


def _list(values: Iterable[int]) -> str:
    return f"[{', '.join(map(str, values))}]"


def _runs(runs: Iterable[tuple[int, int]]) -> str:
    return f"[{', '.join(f'{ranks}x{each}' for ranks, each in runs)}]"

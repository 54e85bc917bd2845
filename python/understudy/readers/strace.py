"""Traces of strace: every call of the system that a program made on its files."""

from collections.abc import Callable, Iterator
from pathlib import Path

import click

from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.program import rules
from understudy.tracing.lines import parse
from understudy.tracing.processes import Processes
from understudy.tracing.program import closing, of_processes

__all__ = ["KIND", "OPTIONS", "SUFFIXES", "closing", "read"]
KIND = "a trace of strace"
SUFFIXES = (".strace",)
OPTIONS = (
    click.option(
        "--below",
        multiple=True,
        metavar="DIRECTORY",
        help="strace: take the files below this directory; may be given several times.  "
        "[default: the directory in which the program was started]",
    ),
)


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    below: tuple[str, ...] = (),
) -> Workload:
    """The workload of what `strace -f -ttt -T -y -o FILE COMMAND` has written."""
    traced = Processes(below)
    try:
        total = max(1, path.stat().st_size)
        with path.open(encoding="utf-8", errors="surrogateescape") as file:
            traced.follow(parse(_ticked(file, tick, total)))
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    if not traced.calls:
        raise UnderstudyError(
            f"{path}: no calls of the system; expected the output of strace -f -ttt -T -y"
        )
    named = name or (path.stem if keep_names else "traced")
    workload = of_processes(named, traced, "strace", str(path), notes=list(_notes(traced)))
    rules.check(workload, str(path))
    return workload


def _notes(traced: Processes) -> Iterator[str]:
    """Notes on what a trace lacks."""
    if traced.unended:
        yield f"The trace has no end of {traced.unended:,} of its processes: it may be cut."
    if traced.disordered:
        yield (
            f"{traced.disordered:,} of its lines are earlier than those before them of the same "
            "process: the order of calls and the times may be wrong."
        )


def _ticked(lines: Iterator[str], tick: Callable[[float], None], total: int) -> Iterator[str]:
    done = 0
    for k, line in enumerate(lines):
        done += len(line)
        if k % 10_000 == 0:
            tick(done / total)
        yield line

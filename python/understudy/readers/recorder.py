"""Traces of Recorder: the calls of libraries that a program made, as those of the system."""

import re
from collections.abc import Callable
from pathlib import Path

from understudy.contracts.workload import Workload
from understudy.program import rules
from understudy.readers.strace import OPTIONS
from understudy.tracing.processes import Processes
from understudy.tracing.program import closing, of_processes
from understudy.tracing.recorder_calls import lines, root
from understudy.tracing.recorder_files import INDEX, Trace

__all__ = ["INDEX", "OPTIONS", "closing"]  # hooks

KIND = "a trace of Recorder"
SUFFIXES = (".mt",)
RESULTS = (
    "Recorder does not tell what calls return: reads are as long as asked, but for files that the "
    "program has made."
)


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    below: tuple[str, ...] = (),
) -> Workload:
    """The workload of the trace with this file recorder.mt, or in this directory."""
    trace = Trace(_folder(path))
    traced = Processes(str(Path(p).absolute()) for p in below or (root(trace),))
    traced.call_s = 0  # as much as it takes for a call, nobody has measured
    traced.follow(lines(trace, traced))
    tick(1.0)
    named = name or (public_name(path) if keep_names else "traced")
    workload = of_processes(named, traced, "recorder", str(path), trace.version, (RESULTS,))
    rules.check(workload, str(path))
    return workload


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def private_words(path: Path) -> set[str]:
    """Those of the directory's name, which Recorder makes of host, user and program."""
    words = re.split(r"[^A-Za-z]+", _folder(path).absolute().name.lower())
    return {word for word in words if len(word) > 2}


def public_name(path: Path) -> str:
    """A name without host, user and program."""
    return "recorder"

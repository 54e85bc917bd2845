"""Readers: one file per trace format, the plugin directory of `understudy describe`.

A reader defines

* `KIND`: its traces, with an article, for messages ("a Darshan log");
* `SUFFIXES`: the suffixes of its files, a tuple;
* `read(path, *, name, keep_names, tick, ...)`: returns the workload; `tick` is told the share of
  the work that is done. With a parameter `others` it joins more traces with the first;

and may define

* `STARTS`: first bytes of its files, by which one with another suffix is known;
* `INDEX`: the name of a file by which a directory is one trace; `read` is given either;
* `INSIDE`: true where that file is not looked for in directories below;
* `NAMED`: true where a file states the name of its workload;
* `OPTIONS`: `click.option` decorators: options of `understudy describe` and arguments of `read`;
* `private_words(path)`: words in lower case, such as the user and the job, that a workload's name
  made from the name of the output file must not repeat;
* `of_job(paths, job)`: the traces of this job (`--job`); an error if there is none;
* `closing(workload)`: a last message on standard error.

Wrong content is an `UnderstudyError` that names the file and what was expected. Text that cannot
be decoded becomes such an error by itself.
"""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from understudy import studies
from understudy.errors import UnderstudyError, refuse_exit


def modules() -> list[ModuleType]:
    """The readers, by name: ours, and those of studies."""
    plugins = studies.plugins("readers", __name__, tuple(__path__))
    return [studies.load(module, f"reader {name}") for name, module in sorted(plugins.items())]


def trace_in(folder: Path) -> Path | None:
    """The file that stands for all of a directory, the `INDEX` of a reader: in it, or up to two
    directories below. None where there is none; an UnderstudyError where there are several."""
    for module in (m for m in modules() if hasattr(m, "INDEX")):
        name: str = module.INDEX
        traces = [folder / name] if (folder / name).is_file() else []
        if not traces and not getattr(module, "INSIDE", False):
            traces += (*folder.glob(f"*/{name}"), *folder.glob(f"*/*/{name}"))
        if len(traces) > 1:
            raise UnderstudyError(
                f"{folder}: {len(traces)} traces, such as {min(traces).parent}; choose one"
            )
        if traces:
            return traces[0]
    return None


def reader_of(trace: Path) -> ModuleType:
    """The reader with the suffix of a file, else the one with its beginning; of a directory, that
    of the file which stands for it."""
    readers = modules()
    if trace.is_dir():
        trace = trace_in(trace) or trace
    if trace.exists() and not trace.is_file() and not trace.is_dir():
        raise UnderstudyError(f"{trace}: expected a regular file, not a FIFO or device")
    for module in readers:
        if trace.suffix in module.SUFFIXES:
            return module
    try:
        with trace.open("rb") as file:
            head = file.read(64)
    except OSError as error:
        raise UnderstudyError(f"{trace}: cannot be opened: {error.strerror}") from error
    for module in readers:
        if head.startswith(getattr(module, "STARTS", ())):
            return module
    expected = " or ".join(f"{m.KIND} ({', '.join(m.SUFFIXES)})" for m in readers)
    raise UnderstudyError(f"{trace}: it starts with {head[:8]!r}, expected {expected}")


def asked(reader: ModuleType, hook: str, trace: Path, *arguments: Any, **options: Any) -> Any:
    """Call a function of a reader for a trace; text that cannot be decoded is an error of the
    trace."""
    function: Callable[..., Any] = getattr(reader, hook)
    try:
        with refuse_exit(f"reader {reader.__name__.rpartition('.')[2]}"):
            return function(*arguments, **options)
    except UnicodeDecodeError as error:
        raise UnderstudyError(
            f"{trace}: not {reader.KIND}: no text at byte {error.start} ({error.reason})"
        ) from error


def options_of(reader: ModuleType) -> list[click.Option]:
    """The options of the command line that a reader defines."""

    def holder() -> None:
        """Holds the options that the decorators add."""

    for option in reversed(getattr(reader, "OPTIONS", ())):
        option(holder)
    parameters: list[click.Option] = getattr(holder, "__click_params__", [])
    return parameters[::-1]


def options() -> list[click.Option]:
    """Those of all readers, each name once, with what each reader says of it."""
    by_name: dict[str | None, click.Option] = {}
    for option in (option for module in modules() for option in options_of(module)):
        first = by_name.setdefault(option.name, option)
        if option.help != first.help:
            first.help = f"{first.help} {option.help}"
    return list(by_name.values())


def takes(reader: ModuleType, argument: str) -> bool:
    """True if the function `read` of a reader has an argument."""
    return argument in inspect.signature(reader.read).parameters


def kinds_with(argument: str) -> Iterator[str]:
    """The kinds of traces whose readers have an argument."""
    return (module.KIND for module in modules() if takes(module, argument))

"""BP4 and BP5 files of ADIOS2: the output of an application, as a workload."""

from collections.abc import Callable
from pathlib import Path

import click

from understudy.adios2 import bp_file, configuration, description
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.program import rules

KIND = "a BP4 or BP5 file of ADIOS2"
INDEX = "md.idx"
INSIDE = True
SUFFIXES = (".bp", ".bp4", ".bp5", ".idx")
OPTIONS = (
    click.option(
        "--config",
        "config",
        type=click.Path(path_type=Path),
        default=None,
        help="ADIOS2: engine and parameters from a configuration (XML or YAML of ADIOS2, JSON or "
        "TOML of openPMD-api); default: the engine of the BP file.",
    ),
    click.option(
        "--io",
        default=None,
        help="ADIOS2: the IO of the configuration; default: the only one.",
    ),
)


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    config: Path | None = None,
    io: str | None = None,
) -> Workload:
    """The workload of the file with this md.idx, or of this directory; with `config`, as if it
    were written with that configuration of ADIOS2, its `io`."""
    output = configuration.chosen(bp_file.read(_folder(path), tick), config, io)
    workload = description.workload_of(output, name=name, keep_names=keep_names)
    rules.check(workload, str(_folder(path)))
    return workload


def _folder(path: Path) -> Path:
    """The directory that is the file."""
    if path.is_dir():
        if not (path / INDEX).is_file():
            raise UnderstudyError(f"{path}: a directory without {INDEX}: expected {KIND}")
        return path
    if path.name == INDEX:
        return path.parent
    raise UnderstudyError(
        f"{path}: expected {KIND}, which is a directory; a program that writes the contents of a "
        "BP file of ADIOS 1: understudy skel replay FILE"
    )

"""understudy describe: from a trace to a workload."""

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from understudy import readers
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.skel.project import SETTINGS, settings_of
from understudy.workload import identifier


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None,
    help="Write the workload to this file, whose name becomes its name; default: standard output.",
)  # fmt: skip
@click.option(
    "--name", default=None, help="Name of the workload; default: that of the output file."
)
@click.option(
    "--keep-names", is_flag=True,
    help="Keep the trace's names of files or variables as labels. By default nothing of the "
    "source's names, paths, users or hosts gets into the workload.",
)  # fmt: skip
@click.option(
    "--partial", is_flag=True,
    help="Describe a log whose modules ran out of memory; later files are missing from it.",
)  # fmt: skip
@click.option(
    "-n", "--ranks", type=click.IntRange(min=1), default=None,
    help="ADIOS: MPI ranks of the workload; default: the cores of the parameters' batch.",
)  # fmt: skip
@click.option(
    "-p", "--parameters", "parameters_file", type=click.Path(path_type=Path), default=None,
    help="ADIOS: the sizes, a file as `understudy skel params` makes it; default: the one beside "
    "the descriptor.",
)  # fmt: skip
@SETTINGS
@click.option(
    "-a", "--method", default=None,
    help="ADIOS: the method to be described, e.g. POSIX, MPI_LUSTRE, MPI_AMR, or adios for the "
    "library itself; default: the descriptor's.",
)  # fmt: skip
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    trace: Path,
    output: Path | None,
    name: str | None,
    keep_names: bool,
    partial: bool,
    ranks: int | None,
    parameters_file: Path | None,
    settings: tuple[str, ...],
    method: str | None,
    force: bool,
) -> None:
    """Describe the I/O that TRACE tells of, as a workload that can be played. TRACE is a Darshan
    log, or an ADIOS descriptor (adios-config XML) with its parameters beside it.

    \b
    Example: understudy describe app.darshan -o app.json
             understudy describe gts.xml -n 64 -a MPI_AMR -o gts-64.json
    """
    if output is not None and output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    if name is not None and name != identifier(name):
        raise UnderstudyError(
            f"--name {name}: expected at most 100 letters, digits, '_', '.' and '-', "
            "a letter or digit first"
        )
    name = name or (identifier(output.stem) if output else None)
    reader = _reader(trace)
    more = {
        "ranks": ranks,
        "parameters_file": parameters_file,
        "settings": settings_of(settings),
        "method": method,
    }
    given = {key: value for key, value in more.items() if value}
    known = inspect.signature(reader.read).parameters
    for key in given:
        if key not in known:
            option = key.removesuffix("_file").replace("settings", "set")
            raise UnderstudyError(
                f"--{option}: expected only with an ADIOS descriptor, not {trace}"
            )
    console = Console(file=sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"reading {trace.name}", total=None)
        workload = reader.read(
            trace,
            name=name,
            keep_names=keep_names,
            partial=partial,
            tick=lambda: bar.advance(task),
            **given,
        )
    text = workload.to_text()
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _reader(trace: Path) -> ModuleType:
    """The reader whose suffixes fit the file, else whose beginnings (STARTS) do, else the one that
    has no beginnings and takes any file."""
    modules = [
        importlib.import_module(f"{readers.__name__}.{m.name}")
        for m in pkgutil.iter_modules(readers.__path__)
    ]
    fitting = [m for m in modules if trace.suffix in m.SUFFIXES]
    if not fitting and trace.is_file():
        with trace.open("rb") as file:
            head = file.read(64)
        fitting = [m for m in modules if head.startswith(getattr(m, "STARTS", ()))]
    return (fitting or [m for m in modules if not hasattr(m, "STARTS")])[0]

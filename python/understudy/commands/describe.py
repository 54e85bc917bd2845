"""understudy describe: from a trace to a workload."""

import importlib
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
    help="Keep the trace's file names as labels. By default nothing of the source's names, paths, "
    "users or hosts gets into the workload.",
)  # fmt: skip
@click.option(
    "--partial", is_flag=True,
    help="Describe a log whose modules ran out of memory; later files are missing from it.",
)  # fmt: skip
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(
    trace: Path,
    output: Path | None,
    name: str | None,
    keep_names: bool,
    partial: bool,
    force: bool,
) -> None:
    """Describe the I/O that TRACE, a Darshan log, recorded: as a workload that can be played.

    Example: understudy describe app.darshan -o app.json
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
        )
    text = workload.to_text()
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)


def _reader(trace: Path) -> ModuleType:
    """The reader whose suffixes fit the file; the only one there is where none fits."""
    modules = [
        importlib.import_module(f"{readers.__name__}.{m.name}")
        for m in pkgutil.iter_modules(readers.__path__)
    ]
    fitting = [m for m in modules if trace.suffix in m.SUFFIXES]
    return (fitting or modules)[0]

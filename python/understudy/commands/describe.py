"""understudy describe: from a trace to a workload."""

import importlib
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from understudy import readers
from understudy.contracts.workload import identifier, parse
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.inference.role_of_stream import decided, known
from understudy.skel.project import SETTINGS, settings_of


def _roles(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
    """Roles by the names of streams."""
    found: dict[str, str] = {}
    for text in given:
        stream, equals, role = text.rpartition("=")
        if not equals or role not in known():
            expected = f"expected STREAM=ROLE with one of the roles {', '.join(known())}"
            raise click.BadParameter(f"{text!r}: {expected}")
        if stream in found:
            raise click.BadParameter(f"{text!r}: {stream} has the role {found[stream]} already")
        found[stream] = role
    return found


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), default=None,
    help="Write the workload to this file; default: standard output.",
)  # fmt: skip
@click.option(
    "--name",
    default=None,
    help="Name of the workload; default: the name of the output file, unless it repeats the user, "
    "job, executable or file name of a log.",
)
@click.option(
    "--keep-names", is_flag=True,
    help="Keep names of files or variables as labels. By default, the workload contains "
    "no name, path, user or host of the source.",
)  # fmt: skip
@click.option(
    "--partial", is_flag=True,
    help="Describe a log whose modules ran out of memory; files opened later are missing.",
)  # fmt: skip
@click.option(
    "-n", "--ranks", type=click.IntRange(min=1), default=None,
    help="ADIOS: MPI ranks of the workload; default: the cores of the parameters' batch.",
)  # fmt: skip
@click.option(
    "-p", "--parameters", "parameters_file", type=click.Path(path_type=Path), default=None,
    help="ADIOS: parameters with the sizes, from `understudy skel params`; default: "
    "the file next to the descriptor.",
)  # fmt: skip
@SETTINGS
@click.option(
    "-a", "--method", default=None,
    help="ADIOS: method, e.g. POSIX, MPI_LUSTRE, MPI_AMR, or adios for the library "
    "itself; default: the method of the descriptor.",
)  # fmt: skip
@click.option(
    "--role", "roles", metavar="STREAM=ROLE", multiple=True, callback=_roles,
    help="Decide what a stream is for, e.g. output-0=checkpoint; may be repeated. Streams keep "
    "the names that they have without this option.",
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
    roles: dict[str, str],
    force: bool,
) -> None:
    """Describe the I/O in TRACE as a workload. TRACE is a Darshan log, or an ADIOS descriptor
    (adios-config XML) with a parameter file in the same directory.

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
    reader = _reader(trace)
    repeated = ""
    if name is None and output is not None:
        name = identifier(output.stem)
        if not keep_names and (repeated := _repeated(reader, trace, output.stem)):
            name = None
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
    try:
        workload = decided(workload, roles)
    except UnderstudyError as error:
        raise click.BadParameter(str(error), param_hint="'--role'") from None
    if repeated:
        click.echo(
            f"understudy: {output}: the file name repeats {repeated!r} of the log, so the "
            f"workload is named {workload.name}; choose a name with --name",
            err=True,
        )
    text = workload.to_text()
    parse(text, f"{trace}: the workload described from it")  # never write what no reader accepts
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
    if hasattr(reader, "closing"):
        click.echo(reader.closing(workload), err=True)


def _repeated(reader: ModuleType, trace: Path, name: str) -> str:
    """The longest private word of the trace in the name; empty if there is none. Short words
    count only where they stand alone."""
    if not hasattr(reader, "private_words"):
        return ""
    name = name.lower()
    alone = set(re.split(r"[^a-z0-9]+", name))
    found = [w for w in reader.private_words(trace) if w in alone or (len(w) > 3 and w in name)]
    return max(found, key=len, default="")


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

"""understudy describe: from a trace, or several, to a workload."""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from understudy import readers
from understudy.contracts.workload import identifier, parse
from understudy.darshanlog import logs_below
from understudy.errors import UnderstudyError, one_line
from understudy.files import write_text
from understudy.inference.role_of_stream import decided, known
from understudy.messages import tell, tell_some
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
@click.argument(
    "traces", metavar="TRACE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
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
    "--job", type=click.IntRange(min=0), default=None,
    help="Several Darshan logs: describe those of this job; default: they must be of one.",
)  # fmt: skip
@click.option(
    "--join-jobs", is_flag=True,
    help="Several Darshan logs: join those of different jobs of one program, such as runs of a "
    "campaign, or processes whose job IDs are process IDs. The time between jobs is left out.",
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
    traces: tuple[Path, ...],
    output: Path | None,
    name: str | None,
    keep_names: bool,
    partial: bool,
    job: int | None,
    join_jobs: bool,
    ranks: int | None,
    parameters_file: Path | None,
    settings: tuple[str, ...],
    method: str | None,
    roles: dict[str, str],
    force: bool,
) -> None:
    """Describe the I/O in TRACE as a workload. TRACE is a Darshan log, or an ADIOS descriptor
    (adios-config XML) with a parameter file in the same directory. Several Darshan logs of one
    job, or a directory with them, are joined into one workload.

    \b
    Example: understudy describe app.darshan -o app.json
             understudy describe logs/ --job 4711 -o app.json
             understudy describe gts.xml -n 64 -a MPI_AMR -o gts-64.json
    """
    if output is not None and output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    if name is not None and name != identifier(name):
        raise UnderstudyError(
            f"--name {name}: expected at most 100 letters, digits, '_', '.' and '-', "
            "a letter or digit first"
        )
    reader, traces = _chosen(traces, job)
    trace = traces[0]
    repeated = ""
    if name is None and output is not None:
        name = identifier(output.stem)
        if not keep_names and (repeated := _repeated(reader, traces, output.stem)):
            name = None
    more = {
        "ranks": ranks,
        "parameters_file": parameters_file,
        "settings": settings_of(settings),
        "method": method,
        "join_jobs": join_jobs,
        "others": traces[1:],
    }
    given = {key: value for key, value in more.items() if value}
    known = inspect.signature(reader.read).parameters
    for key in given:
        if key not in known:
            raise UnderstudyError(_unfit(key, trace))
    console = Console(file=sys.stderr)
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(f"reading {one_line(trace.name)}", total=1.0)
        workload = reader.read(
            trace,
            name=name,
            keep_names=keep_names,
            partial=partial,
            tick=lambda share: bar.update(task, completed=share),
            **given,
        )
    try:
        workload = decided(workload, roles)
    except UnderstudyError as error:
        raise click.BadParameter(str(error), param_hint="'--role'") from None
    if repeated:
        tell(
            f"{output}: the file name repeats {repeated!r} of the log, so the workload is named "
            f"{workload.name}; choose a name with --name"
        )
    text = workload.to_text()
    parse(text, f"{trace}: the workload described from it")  # never write what no reader accepts
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)
    if hasattr(reader, "closing"):
        click.echo(reader.closing(workload), err=True)


def _unfit(key: str, trace: Path) -> str:
    """Why an argument does not fit the reader of a trace."""
    if key == "others":
        return f"{trace}: expected alone; only Darshan logs are joined"
    if key == "join_jobs":
        return f"--join-jobs: expected only with Darshan logs, not {trace}"
    option = key.removesuffix("_file").replace("settings", "set")
    return f"--{option}: expected only with an ADIOS descriptor, not {trace}"


def _chosen(traces: Sequence[Path], job: int | None) -> tuple[ModuleType, tuple[Path, ...]]:
    """The reader of all traces, and the traces without directories: of `job`, if given."""
    found: list[Path] = []
    lost: list[str] = []
    for trace in traces:
        if trace.is_dir():
            below = logs_below(trace)
            found += below.logs
            lost += below.left_out
        else:
            found.append(trace)
    tell_some(lost, f"{len(lost)} left out of directories", "the workload is without them")
    modules = {trace.suffix: _reader(trace) for trace in found}
    if len(set(modules.values())) > 1:
        one, other = (next(t for t in found if modules[t.suffix] is m) for m in modules.values())
        raise UnderstudyError(f"{other}: expected traces of one kind, but {one} is of another")
    reader = _reader(found[0])
    if job is not None:
        if not hasattr(reader, "of_job"):
            raise UnderstudyError(f"--job: expected only with Darshan logs, not {found[0]}")
        found = reader.of_job(found, job)
    return reader, tuple(found)


def _repeated(reader: ModuleType, traces: Sequence[Path], name: str) -> str:
    """The longest private word of the traces in the name; empty if there is none. Short words
    count only where they stand alone."""
    if not hasattr(reader, "private_words"):
        return ""
    name = name.lower()
    alone = set(re.split(r"[^a-z0-9]+", name))
    words = {word for trace in traces for word in reader.private_words(trace)}
    found = [w for w in words if w in alone or (len(w) > 3 and w in name)]
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

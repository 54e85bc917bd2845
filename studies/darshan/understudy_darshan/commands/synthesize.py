"""understudy synthesize: the Darshan log of a job that never was."""

from pathlib import Path

import click
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from understudy.darshanlog import layouts
from understudy.darshanlog.synthetic import (
    INTERFACES,
    LAYOUTS,
    RELEASES,
    TRAPS,
    Synthetic,
    write,
)
from understudy.errors import UnderstudyError
from understudy.files import expect_new, new_file
from understudy.messages import progress
from understudy.units import parse_size

COMPRESSIONS = tuple(name for name in layouts.COMPRESSIONS)


def _size(_: click.Context, __: click.Parameter, text: str) -> int:
    try:
        return parse_size(text)
    except UnderstudyError as error:
        raise click.BadParameter(str(error)) from None


@click.command()
@click.argument("output", metavar="LOG", type=click.Path(path_type=Path))
@click.option(
    "-n",
    "--processes",
    type=click.IntRange(min=1, max=1 << 24),
    required=True,
    help="Processes of the job.",
)
@click.option(
    "-m",
    "--files",
    type=click.IntRange(min=1, max=1 << 32),
    default=1,
    show_default=True,
    help="Files of each process, or files that all share.",
)
@click.option(
    "-l",
    "--layout",
    type=click.Choice(LAYOUTS),
    default="process",
    show_default=True,
    help="process: each has files of its own; shared: all processes use each file.",
)
@click.option(
    "-i",
    "--interface",
    type=click.Choice(tuple(INTERFACES)),
    default="posix",
    show_default=True,
    help="What the application calls; with mpiio, the log has POSIX records, too.",
)
@click.option("--read", is_flag=True, help="The files are read; default: written.")
@click.option(
    "--dumps",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The files are of as many dumps, a minute apart.",
)
@click.option(
    "-b",
    "--file-bytes",
    default="4MiB",
    show_default=True,
    callback=_size,
    help="Bytes that a process moves of a file; some move up to a quarter more.",
)
@click.option(
    "-t",
    "--transfer-bytes",
    default="1MiB",
    show_default=True,
    callback=_size,
    help="Bytes of a call.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0, max=1 << 50),
    default=1,
    show_default=True,
    help="Another seed gives other sizes and times; the same gives the same bytes.",
)
@click.option(
    "--darshan",
    type=click.Choice(tuple(RELEASES)),
    default="3.5",
    show_default=True,
    help="The release of Darshan whose formats are written.",
)
@click.option(
    "--byte-order", type=click.Choice(("little", "big")), default="little", show_default=True
)
@click.option("--compression", type=click.Choice(COMPRESSIONS), default="zlib", show_default=True)
@click.option(
    "--trap",
    "traps",
    type=click.Choice(tuple(TRAPS)),
    multiple=True,
    help="An error of real logs; may be repeated. "
    + "; ".join(f"{name}: {what}" for name, what in TRAPS.items())
    + ".",
)
@click.option("-f", "--force", is_flag=True, help="Replace LOG if it exists.")
def command(
    output: Path,
    processes: int,
    files: int,
    layout: str,
    interface: str,
    read: bool,
    dumps: int,
    file_bytes: int,
    transfer_bytes: int,
    seed: int,
    darshan: str,
    byte_order: str,
    compression: str,
    traps: tuple[str, ...],
    force: bool,
) -> None:
    """Write a synthetic Darshan log to LOG, for tests of programs that read logs.

    Its metadata says that it is synthetic. Memory does not grow with the number of files; a
    million files take about 50 MB.

    \b
    Example: understudy synthesize -n 64 job.darshan
             understudy synthesize -n 12000 -m 1024 large.darshan
             understudy synthesize -n 64 -m 20 --dumps 20 --darshan 3.1 old.darshan
    """
    expect_new(output, force)
    try:
        job = Synthetic(
            processes=processes,
            files=files,
            layout=layout,
            interface=interface,
            write=not read,
            dumps=dumps,
            file_bytes=file_bytes,
            transfer_bytes=min(transfer_bytes, file_bytes),
            seed=seed,
            darshan=darshan,
            byte_order=byte_order,
            compression=compression,
            traps=frozenset(traps),
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with (
        progress(*columns) as bar,
        new_file(output) as temporary,
    ):
        steps = (1 + len(INTERFACES[interface])) * job.records
        task = bar.add_task("writing", total=steps)
        write(temporary, job, lambda count: bar.advance(task, count))
    click.echo(
        f"understudy: {output}: {job.records:,} files of {processes:,} processes, "
        f"{output.stat().st_size:,} B",
        err=True,
    )

"""understudy record: the calls of the system that a program makes, as a trace."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy.tracing import recorder


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file.  [default: <program>.strace]",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(output: Path | None, force: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND and write down the calls by which it, and all that it starts, use files.

    strace records them; each call takes some 20 µs longer. The file has the names of files, but
    nothing of what is in them. The exit status is that of COMMAND. `understudy describe` makes a
    workload of the file, without names; `understudy run -- COMMAND` does both and plays it.

    Example: understudy record -o app.strace -- mpirun -n 4 ./app
    """
    output = output or Path(f"{Path(command[0]).name}.strace")
    if output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    status = recorder.record(command, output)
    click.echo(f"understudy: {output}: {output.stat().st_size:,} bytes", err=True)
    if status < 0:
        click.echo(f"understudy: {command[0]} was killed by signal {-status}", err=True)
    raise SystemExit(status if status >= 0 else 128 - status)

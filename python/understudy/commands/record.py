"""understudy record: the calls of the system that a program makes, as a trace."""

from pathlib import Path

import click

from understudy.files import expect_new
from understudy.tracing import recording


@click.command(context_settings={"ignore_unknown_options": True})
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write to this file.  [default: <program>.strace, <program>.darshan]",
)
@click.option(
    "--with",
    "name",
    type=click.Choice([recording.STRACE, recording.DARSHAN]),
    help="Record with this tool.  [default: strace where it may trace, else darshan]",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def command(output: Path | None, name: str | None, force: bool, command: tuple[str, ...]) -> None:
    """Run COMMAND and write down the calls by which it, and all that it starts, use files.

    strace records them; each call takes some 20 µs longer. The file has the names of files, but
    nothing of what is in them. Where strace is missing or may not trace, Darshan's runtime
    (DARSHAN_RUNTIME, or darshan-config on PATH) records counters of each file and, with DXT, its
    reads and writes. The exit status is that of COMMAND. `understudy describe` makes a workload of
    the file, without names; `understudy run -- COMMAND` does both and plays it.

    Example: understudy record -o app.strace -- mpirun -n 4 ./app
    """
    tool = recording.chosen(name)
    suffix = f".{tool.name}"
    output = output or Path(f"{Path(command[0]).name}{suffix}")
    if output.suffix in (".strace", ".darshan"):
        output = output.with_suffix(suffix)  # by which `describe` knows it
    expect_new(output, force)
    if tool.why:
        click.echo(f"understudy: {tool.why}; Darshan records", err=True)
    status, written = recording.record(command, output, tool, force)
    for path in written:
        click.echo(f"understudy: {path}: {path.stat().st_size:,} bytes", err=True)
    if len(written) > 1:
        click.echo(
            f"understudy: {len(written)} processes have logs of their own; all of them are one "
            "workload: understudy describe FILE...",
            err=True,
        )
    if status < 0:
        click.echo(f"understudy: {command[0]} was killed by signal {-status}", err=True)
    raise SystemExit(status if status >= 0 else 128 - status)

"""understudy scale: a workload for another number of ranks."""

from pathlib import Path

import click

from understudy.contracts import workload
from understudy.errors import UnderstudyError
from understudy.files import write_text
from understudy.model import scaling


@click.command()
@click.argument("source", metavar="WORKLOAD", type=click.Path(path_type=Path))
@click.option("-n", "--ranks", type=int, required=True, help="MPI ranks of the new workload.")
@click.option(
    "--rule",
    type=click.Choice(scaling.RULES),
    required=True,
    help="strong: the same total bytes. weak: the same bytes per rank.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write to this file; default: standard output.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(source: Path, ranks: int, rule: str, output: Path | None, force: bool) -> None:
    """Convert WORKLOAD to another number of ranks.

    Example: understudy scale app.json -n 64 --rule weak -o app-64.json
    """
    if output is not None and output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    text = scaling.scale(workload.load(source), ranks, rule).to_text()
    if output is None:
        click.echo(text, nl=False)
    else:
        write_text(output, text)

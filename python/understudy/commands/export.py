"""understudy export: a workload and the player as one archive."""

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from understudy import export
from understudy.contracts import workload
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError, printable
from understudy.files import write_bytes


@click.command()
@click.argument("source", metavar="WORKLOAD", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write to this file; default: <workload>-player.tar.gz.",
)
@click.option(
    "--keep-names",
    is_flag=True,
    help="Include names of the source (labels); otherwise a workload with labels is refused.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def command(source: Path, output: Path | None, keep_names: bool, force: bool) -> None:
    """Pack WORKLOAD for a vendor, with the source of the player, instructions and expected bytes.

    Prints the files of the archive and every free-form string of the workload. Review them before
    you send the archive.

    Example: understudy export app.json -o app-player.tar.gz
    """
    made = workload.load(source)
    output = output or Path(f"{made.name}-player.tar.gz")
    if output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    if not keep_names:
        export.refuse_labels(made)
    files = export.contents(made)
    data = export.archive(made, files)
    write_bytes(output, data)
    _show(made, files, output, len(data))


def _show(made: Workload, files: dict[str, bytes], output: Path, size: int) -> None:
    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False, markup=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("file", no_wrap=True)
    table.add_column("bytes", justify="right")
    for path, data in files.items():
        table.add_row(Text(printable(path)), f"{len(data):,}")
    console.print(table)
    texts = export.strings(made)
    console.print(f"\nStrings of the workload besides words of the contract ({len(texts)}):")
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for one in texts:
        table.add_row(Text(printable(", ".join(one.keys))), Text(printable(one.text)))
    console.print(table)
    console.print(
        f"\n{printable(str(output))}: {len(files)} files, {size:,} B. "
        "Read the strings before it leaves."
    )

"""understudy export: a workload and the player as one archive."""

from pathlib import Path

import click

from understudy import export
from understudy.contracts import workload
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError, one_line
from understudy.files import write_bytes
from understudy.tables import table, wrapped


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

    Prints the files that tell of the workload, and every free-form string of it. Review them
    before you send the archive.

    Example: understudy export app.json -o app-player.tar.gz
    """
    described = workload.load(source)
    output = output or Path(f"{described.name}-player.tar.gz")
    if output.exists() and not force:
        raise UnderstudyError(f"{output}: exists already; choose another name or use --force")
    if not keep_names:
        export.refuse_labels(described)
    files = export.contents(described)
    data = export.archive(described, files)
    write_bytes(output, data)
    _show(described, files, output, len(data))


def _show(described: Workload, files: dict[str, bytes], output: Path, size: int) -> None:
    workload_files = [path for path in files if path in export.of_workload(described)]
    rows = [(one_line(path), f"{len(files[path]):,}") for path in workload_files]
    for line in table("", ("file", ">bytes"), rows):
        click.echo(line)
    rest = [data for path, data in files.items() if path not in workload_files]
    click.echo(
        f"and the player: {len(rest)} files, {sum(map(len, rest)):,} B, as in every archive"
    )
    texts = export.strings(described)
    click.echo(f"\nStrings of the workload besides words of the contract ({len(texts)}):")
    for string in texts:
        for line in wrapped(f"{', '.join(string.keys)}: {string.text}"):
            click.echo(line)
    click.echo()
    text = f"{output}: {len(files)} files, {size:,} B. Read the strings before it leaves."
    for line in wrapped(text):
        click.echo(line)

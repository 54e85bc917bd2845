"""`understudy report`: one self-contained page from results."""

from pathlib import Path

import click

from understudy.paths import REPORTS

DEFAULT = REPORTS / "out" / "index.html"


@click.command("report")
@click.argument("results", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT,
    help="HTML file to write.  [default: reports/out/index.html of the checkout]",
)
def command(results: tuple[Path, ...], output: Path) -> None:
    """Show RESULTS as one HTML page: figures, tables, verdicts and the origin of every number.

    RESULTS are result.json files, or folders that are searched for them. The page needs no
    network.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    from understudy.report import cases, page  # matplotlib takes a second: only who draws pays

    console = Console(stderr=True)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("reading results")

        def tell(what: object) -> None:
            progress.update(task, description=str(what))

        found = cases.group(cases.load(cases.find(results), tell))
        page.save(page.render(found, tell), output)
    click.echo(f"{output}: {len(found)} workload{'s' * (len(found) != 1)}", err=True)

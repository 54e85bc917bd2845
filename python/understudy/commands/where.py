"""understudy where: the paths of what is installed."""

import click

from understudy import paths


@click.command(epilog=f"KIND is one of {', '.join(paths.kinds())}.")
@click.argument("kind", required=False)
def command(kind: str | None) -> None:
    """Print the directory in which Understudy's files of a KIND are.

    Without KIND: the directory that holds them all, a source tree of the player too. As in
    reframe -C "$(understudy where config)" -c "$(understudy where checks)" -r
    """
    click.echo(paths.where(kind) if kind else paths.ROOT)

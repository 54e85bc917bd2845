"""understudy skel model: a model of an output of ADIOS2."""

from pathlib import Path

import click

from understudy_skel.adios2.project import EXAMPLE_MODEL
from understudy_skel.project import FORCE, write


@click.group()
def command() -> None:
    """Models of an application's output by ADIOS2: variables, shapes and steps, where there is no
    file that it wrote."""


@command.command()
@click.argument("file", metavar="MODEL", type=click.Path(path_type=Path))
@FORCE
def new(file: Path, force: bool) -> None:
    """Write an example to MODEL, to be edited.

    Example: understudy skel model new app.yaml && understudy skel make app.yaml
    """
    write({file: EXAMPLE_MODEL}, force)

"""understudy skel xml: the descriptor as ADIOS takes it."""

from pathlib import Path

import click

from understudy_skel import generate
from understudy_skel.project import DESCRIPTOR, FORCE, METHOD, application_of, read, write


@click.command()
@DESCRIPTOR
@METHOD
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write to this file [default: <application>_skel.xml].",
)
@FORCE
def command(descriptor_file: Path, method: str | None, output: Path | None, force: bool) -> None:
    """Check DESCRIPTOR (adios-config XML) and write it as ADIOS 1.13.1 reads it: with the XML
    declaration, and with the full names of dimensions.

    Example: understudy skel xml gts.xml
    """
    descriptor = read(descriptor_file, method)
    names = generate.Names(application=application_of(descriptor_file))
    text = generate.config(descriptor)
    write({output or Path(names.config): text}, force)

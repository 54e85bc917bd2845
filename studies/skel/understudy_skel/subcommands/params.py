"""understudy skel params: what the descriptor leaves open."""

from pathlib import Path

import click

from understudy_skel import generate, parameters
from understudy_skel.project import (
    CORES,
    DESCRIPTOR,
    FORCE,
    METHOD,
    SETTINGS,
    application_of,
    check,
    read,
    write,
)


@click.command()
@DESCRIPTOR
@CORES
@SETTINGS
@METHOD
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    default=None,
    help="Write to this file [default: <application>_params.xml].",
)
@FORCE
def command(
    descriptor_file: Path,
    cores: int,
    settings: dict[str, str],
    method: str | None,
    output: Path | None,
    force: bool,
) -> None:
    """Write parameters for DESCRIPTOR, to be edited: a value for each scalar, the contents of each
    array, and a batch with a test for each group.

    Scalars for ranks, offsets and global sizes are recognized by the global bounds and get
    expressions for any number of processes. Local sizes are 128, or 32 in three dimensions and
    fewer in more.

    Example: understudy skel params gts_skel.xml --set mimax=820000 --set mgrid=200000
    """
    descriptor = read(descriptor_file, method)
    names = generate.Names(application=application_of(descriptor_file))
    values = parameters.default(descriptor, names.application, cores)
    values = parameters.with_values(descriptor, values, settings)
    check(descriptor, values)
    text = generate.parameters_text(descriptor, values)
    write({output or Path(names.parameters): text}, force)

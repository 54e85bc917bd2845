"""understudy skel make: xml, params, source and build in one."""

from pathlib import Path

import click
from click.core import ParameterSource

from understudy.skel import generate
from understudy.skel.commands import build, params, source, xml
from understudy.skel.dialects import DIALECTS
from understudy.skel.project import (
    DESCRIPTOR,
    DIRECTORY,
    FORCE,
    MAKES,
    SETTINGS,
    application_of,
    make_directory,
)


@click.command()
@DESCRIPTOR
@click.option(
    "-n",
    "--cores",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Processes of the batch.",
)
@SETTINGS
@click.option(
    "-l",
    "--language",
    type=click.Choice(list(DIALECTS)),
    default="c",
    show_default=True,
    help="Language of the program.",
)
@DIRECTORY
@MAKES
@FORCE
@click.pass_context
def command(
    context: click.Context,
    descriptor_file: Path,
    cores: int,
    settings: dict[str, str],
    language: str,
    directory: Path,
    makes: bool,
    force: bool,
) -> None:
    """From DESCRIPTOR to a program that runs: understudy skel xml, params, source and build.

    Parameters that are there already are kept, so that they can be edited and the command be
    repeated; --set and --cores then need --force, with which they are written anew. All other
    files are generated, and replaced.

    Example: understudy skel make gts.xml --set mimax=820000 -d gts
    """
    names = generate.Names(application=application_of(descriptor_file))
    made = make_directory(directory)
    config, parameters = made / names.config, made / names.parameters
    context.invoke(xml.command, descriptor_file=descriptor_file, output=config, force=True)
    asked = settings or context.get_parameter_source("cores") == ParameterSource.COMMANDLINE
    if force or asked or not parameters.exists():
        context.invoke(
            params.command,
            descriptor_file=config,
            cores=cores,
            settings=settings,
            output=parameters,
            force=force,
        )
    shared = {"descriptor_file": config, "parameters_file": parameters, "directory": made}
    context.invoke(source.command, **shared, language=language, force=True)
    context.invoke(build.command, **shared, makes=makes, force=True)

"""understudy skel make: xml, params, source and build in one."""

from pathlib import Path

import click
from click.core import ParameterSource

from understudy.errors import UnderstudyError
from understudy.files import make_folder, read_text, write_text
from understudy.messages import tell
from understudy_skel import generate
from understudy_skel.adios2 import project as adios2
from understudy_skel.adios2.dialects import CPP
from understudy_skel.project import (
    CORES,
    DESCRIPTOR,
    DIRECTORY,
    FORCE,
    LANGUAGE,
    MAKES,
    METHOD,
    SETTINGS,
    application_of,
)
from understudy_skel.subcommands import build, params, source, xml


@click.command()
@DESCRIPTOR
@CORES
@SETTINGS
@METHOD
@LANGUAGE
@click.option(
    "--variables",
    type=click.Path(path_type=Path),
    default=None,
    help="Of ADIOS2: the BP4 or BP5 file, or the model, with the variables that a configuration "
    "does not state.",
)
@click.option(
    "--io", default=None, help="Of ADIOS2: the IO of the configuration [default: the only one]."
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
    method: str | None,
    language: str | None,
    variables: Path | None,
    io: str | None,
    directory: Path,
    makes: bool,
    force: bool,
) -> None:
    """From DESCRIPTOR to a program that runs: understudy skel xml, params, source and build.

    Parameters that are there already are kept, in the directory or else beside DESCRIPTOR, so that
    they can be edited and the command be repeated; --set, --method and --cores then need --force,
    with which they are written anew. All other files are generated, and replaced.

    Of ADIOS2, DESCRIPTOR is a BP4 or BP5 file, a model of one, or a configuration (XML, YAML;
    JSON or TOML of openPMD-api) with --variables.

    Example: understudy skel make gts.xml --set mimax=820000 -d gts
    """
    if adios2.is_adios2(descriptor_file):
        given = [name for name in ("cores", "settings", "method") if _is_given(context, name)]
        if given:
            option = {"settings": "set"}.get(given[0], given[0])
            raise UnderstudyError(f"--{option}: only for ADIOS 1; {descriptor_file} is of ADIOS2")
        adios2.generate_files(
            descriptor_file,
            language or CPP,
            directory,
            makes,
            force,
            variables=variables,
            io=io,
        )
        return
    for option, value in (("--variables", variables), ("--io", io)):
        if value is not None:
            raise UnderstudyError(
                f"{option} {value}: only for ADIOS2; {descriptor_file} is of ADIOS 1"
            )
    names = generate.Names(application=application_of(descriptor_file))
    make_folder(directory)
    config, parameters = directory / names.config, directory / names.parameters
    context.invoke(
        xml.command, descriptor_file=descriptor_file, method=method, output=config, force=True
    )
    cores_asked = _is_given(context, "cores")
    beside = descriptor_file.with_name(names.parameters)
    anew = force or settings or method or cores_asked
    if not anew and not parameters.exists() and beside.is_file():
        write_text(parameters, read_text(beside))
        tell(f"{parameters}: the parameters of {beside}")
    elif anew or not parameters.exists():
        context.invoke(
            params.command,
            descriptor_file=config,
            cores=cores,
            settings=settings,
            output=parameters,
            force=force,
        )
    shared = {"descriptor_file": config, "parameters_file": parameters, "directory": directory}
    context.invoke(source.command, **shared, language=language, force=True)
    context.invoke(build.command, **shared, makes=makes, force=True)


def _is_given(context: click.Context, name: str) -> bool:
    return context.get_parameter_source(name) == ParameterSource.COMMANDLINE

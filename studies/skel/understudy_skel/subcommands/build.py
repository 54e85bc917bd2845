"""understudy skel build: the files that build the programs, and the programs."""

import os
import subprocess
from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy_skel import generate
from understudy_skel.dialects import DIALECTS
from understudy_skel.project import DESCRIPTOR, FORCE, MAKES, PARAMETERS, check, load, write


@click.command()
@DESCRIPTOR
@PARAMETERS
@click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Directory with the sources, also for the new files [default: current].",
)
@MAKES
@FORCE
def command(
    descriptor_file: Path, parameters_file: Path | None, directory: Path, makes: bool, force: bool
) -> None:
    """Write Makefile, CMakeLists.txt and adios.cmake for the programs that understudy skel source
    wrote, and build them.

    Example: understudy skel build gts_skel.xml
    """
    descriptor, values = load(descriptor_file, parameters_file)
    check(descriptor, values)
    names = generate.Names(application=values.application)
    programs = [directory / names.program(group) for group in values.tested]
    language = _language(programs)
    if language is None and makes:
        raise UnderstudyError(
            f"{programs[0]}.c: not there; make it with: understudy skel source {descriptor_file}"
        )
    files = generate.build_files(values, language or "c")
    write({directory / name: text for name, text in files.items()}, force, directory)
    if makes:
        make(directory)


def _language(programs: list[Path]) -> str | None:
    """The language of which all sources are there; the program that was made last decides."""
    whole = {}
    for language, dialect in DIALECTS.items():
        sources = [path.with_name(f"{path.name}.{dialect.suffix}") for path in programs]
        if all(path.exists() for path in sources):
            whole[language] = max(path.stat().st_mtime for path in sources)
    return max(whole, key=lambda language: whole[language], default=None)


def make(directory: Path, library: Path | None = None) -> None:
    """Build the programs; what the compiler says is shown where it fails, or warns. `library`: the
    directory of ADIOS2, unless the environment states ADIOS2_ROOT or CMAKE_PREFIX_PATH."""
    stated = {"ADIOS2_ROOT", "CMAKE_PREFIX_PATH"} & os.environ.keys()
    environment = {"ADIOS2_ROOT": str(library)} if library and not stated else {}
    try:
        done = subprocess.run(
            ["make", "-C", str(directory)],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | environment,
        )
    except FileNotFoundError:
        raise UnderstudyError("make: not found; install it, or build with CMake") from None
    said = done.stdout + done.stderr
    if done.returncode != 0 or "warning:" in said:
        click.echo(said, err=True, nl=False)
    if done.returncode != 0:
        raise UnderstudyError(f"{directory}: the programs could not be built, see above")
    click.echo(f"understudy: built {directory / 'build'}", err=True)

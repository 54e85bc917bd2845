"""understudy skel replay: from a file that the application wrote."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy_skel import bpfile, generate
from understudy_skel.adios2 import project as adios2
from understudy_skel.adios2.dialects import CPP
from understudy_skel.project import DIRECTORY, FORCE, LANGUAGE, MAKES, check, write
from understudy_skel.subcommands.build import make


@click.command()
@click.argument("file", metavar="BP_FILE", type=click.Path(path_type=Path))
@LANGUAGE
@DIRECTORY
@MAKES
@FORCE
def command(file: Path, language: str | None, directory: Path, makes: bool, force: bool) -> None:
    """Generate a skeletal application that writes the contents of BP_FILE: descriptor, parameters,
    program and build files, for the number of processes that wrote it.

    A file of ADIOS 1 (BP3) gives a program in C, a file of ADIOS2 (BP4, BP5) one in C++ or Python.

    Example: understudy skel replay restart.bp -d replay
    """
    if file.is_dir():
        adios2.generate_files(file, language or CPP, directory, makes, force)
        return
    if language not in (None, "c"):
        raise UnderstudyError(f"--language {language}: expected c for a file of ADIOS 1")
    replica = bpfile.read(file)
    check(replica.descriptor, replica.parameters)
    names = generate.Names(application=replica.parameters.application)
    [group] = replica.descriptor.groups
    [batch] = replica.parameters.batches
    files = {
        names.config: generate.config(replica.descriptor),
        names.parameters: generate.parameters_text(replica.descriptor, replica.parameters),
        f"{names.program(group.name)}.c": generate.source(
            replica.descriptor, replica.parameters, group, batch.tests[0]
        ),
        **generate.runtime_files(),
        **generate.build_files(replica.parameters),
    }
    write({directory / name: text for name, text in files.items()}, force, directory)
    for name in replica.left_out:
        click.echo(f"understudy: {name} is left out: no bytes, or not of a fixed size", err=True)
    if replica.added:
        click.echo(
            f"understudy: {replica.added} integer scalars are added, which hold sizes and offsets "
            "that differ from process to process",
            err=True,
        )
    click.echo(f"understudy: {group.name}: for {batch.cores} processes", err=True)
    if makes:
        make(directory)

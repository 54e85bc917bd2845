"""understudy skel source: the programs."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy.messages import tell
from understudy_skel import generate
from understudy_skel.dialects import DIALECTS
from understudy_skel.project import (
    DESCRIPTOR,
    DIRECTORY,
    FORCE,
    LANGUAGE,
    PARAMETERS,
    check,
    load,
    write,
)


@click.command()
@DESCRIPTOR
@PARAMETERS
@DIRECTORY
@LANGUAGE
@FORCE
def command(
    descriptor_file: Path,
    parameters_file: Path | None,
    directory: Path,
    language: str | None,
    force: bool,
) -> None:
    """Write a program in C or Fortran for each group of DESCRIPTOR that has a test in the
    parameters, with the runtime that measures it and its descriptor for ADIOS.

    The blocks of each process are computed first; blocks that exceed their global bounds are
    refused. The number of bytes is printed on standard error.

    Example: understudy skel source gts_skel.xml
    """
    language = language or "c"
    if language not in DIALECTS:
        raise UnderstudyError(f"--language {language}: expected {' or '.join(DIALECTS)}")
    descriptor, values = load(descriptor_file, parameters_file)
    bytes_of = check(descriptor, values)
    names = generate.Names(application=values.application)
    files = {names.config: generate.config(descriptor)}
    for batch in values.batches:
        for test in batch.tests:
            name = f"{names.program(test.group)}.{DIALECTS[language].suffix}"
            if name not in files:
                files[name] = generate.source(
                    descriptor, values, descriptor.group(test.group), test, language
                )
    files |= generate.runtime_files(language)
    write({directory / name: text for name, text in files.items()}, force, directory)
    for (group, cores), (least, most) in bytes_of.items():
        each = f"{most} bytes" if least == most else f"{least} to {most} bytes"
        click.echo(f"understudy: {group}: {each} of each of {cores} processes a step", err=True)
    for name in values.tested:
        variables = descriptor.group(name).variables
        kinds = sorted({v.transform for v in variables if v.transform})
        if kinds:
            tell(
                f"{name}: variables are transformed ({', '.join(kinds)}): bytes on storage depend "
                "on the contents, see fill-method in the parameters"
            )

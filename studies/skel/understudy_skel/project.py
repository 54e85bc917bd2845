"""The files of a skeletal application in one folder: found by their names, written whole or not at
all."""

from collections.abc import Mapping
from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy.files import make_folder, read_text, write_text
from understudy.messages import tell_some
from understudy_skel import blocks, descriptor, parameters
from understudy_skel.blocks import GroupBlocks
from understudy_skel.descriptor import IN_PIECES, Descriptor
from understudy_skel.dialects import DIALECTS
from understudy_skel.generate import Names
from understudy_skel.parameters import Parameters, Test

DESCRIPTOR = click.argument(
    "descriptor_file", metavar="DESCRIPTOR", type=click.Path(path_type=Path)
)
PARAMETERS = click.option(
    "-p",
    "--parameters",
    "parameters_file",
    type=click.Path(path_type=Path),
    default=None,
    help="Parameters [default: <application>_params.xml next to DESCRIPTOR].",
)
DIRECTORY = click.option(
    "-d",
    "--directory",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Write to this directory, created where missing [default: current].",
)
CORES = click.option(
    "-n",
    "--cores",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Processes of the batch.",
)
LANGUAGE = click.option(
    "-l",
    "--language",
    type=click.Choice([*DIALECTS, "c++", "python"]),
    default=None,
    help="Language of the program: c or fortran for ADIOS 1 [default: c], c++ or python for "
    "ADIOS2 [default: c++].",
)
MAKES = click.option(
    "--make/--no-make",
    "makes",
    default=True,
    show_default=True,
    help="Also build the program, in build/.",
)
FORCE = click.option("-f", "--force", is_flag=True, help="Replace existing files.")


def application_of(path: Path) -> str:
    """The application's name: that of its descriptor's file."""
    return path.stem.removesuffix("_skel")


METHOD = click.option(
    "-a",
    "--method",
    default=None,
    help=f"ADIOS method of all groups: {', '.join(descriptor.METHODS)} [default: those of "
    "DESCRIPTOR].",
)


def read(descriptor_file: Path, method: str | None = None) -> Descriptor:
    """A descriptor, with another method if one is given; messages name what has no effect."""
    checked = method and descriptor.check_method(method)
    parsed = descriptor.read(descriptor_file, checked)
    effect = "the skeletal application writes the same without"
    tell_some(parsed.ignored, f"{len(parsed.ignored)} attributes are ignored", effect)
    return parsed


def load(descriptor_file: Path, parameters_file: Path | None) -> tuple[Descriptor, Parameters]:
    """A descriptor and its parameters."""
    parsed = read(descriptor_file)
    if parameters_file is None:
        names = Names(application=application_of(descriptor_file))
        parameters_file = descriptor_file.with_name(names.parameters)
        if not parameters_file.exists():
            raise UnderstudyError(
                f"{parameters_file}: not there; make it with: understudy skel params "
                f"{descriptor_file}"
            )
    return parsed, parameters.read(parameters_file, parsed)


def settings_of(words: tuple[str, ...]) -> dict[str, str]:
    """The words NAME=VALUE of the command line."""
    for word in words:
        if "=" not in word.strip("="):
            raise UnderstudyError(f"--set {word}: expected NAME=VALUE")
    return {name: value for name, _, value in (word.partition("=") for word in words)}


SETTINGS = click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=lambda _, __, words: settings_of(words),
    help="Set a scalar, or a switch (yes, no); may be repeated.",
)


def check(config: Descriptor, values: Parameters) -> dict[tuple[str, int], tuple[int, int]]:
    """Works out every group that a batch writes on the batch's cores, so that nothing is made that
    could not run; gives the minimum and maximum of bytes of a process by group and cores."""
    Names(application=values.application).programs(values.tested)  # no two alike
    bytes_of = {}
    for batch in values.batches:
        for test in batch.tests:
            group = config.group(test.group)
            group_blocks = blocks.of_group(group, values.groups[group.name], batch.cores)
            _check_buffer(config, test, group_blocks, values)
            here = (int(group_blocks.bytes.min()), int(group_blocks.bytes.max()))
            bytes_of[group.name, batch.cores] = here
    return bytes_of


# Of the group and of a variable, which ADIOS keeps in the buffer with the contents.
HEADER_BYTES = 4096


def _check_buffer(
    config: Descriptor, test: Test, group_blocks: GroupBlocks, values: Parameters
) -> None:
    """ADIOS writes what a process has in its buffer when the file is closed; only the method POSIX
    does so when the buffer is full, but each variable must fit. Contents are transformed there, so
    that they need their room as they are."""
    if config.buffer_mb is None:
        return
    header, remedy = 0, f", or the method {IN_PIECES}"
    most, what = int(group_blocks.bytes.max()), f"the group {test.group!r}"
    if test.method == IN_PIECES:
        header, remedy = HEADER_BYTES, ""
        largest = max(group_blocks.blocks, key=lambda block: int(block.bytes.max()))
        most = int(largest.bytes.max())
        what = f"the variable {largest.variable.name!r} of the group {test.group!r}"
    if most + header <= config.buffer_mb << 20:
        return
    sizes = parameters.free_sizes(config.group(test.group), values.groups[test.group])
    if sizes:
        remedy += f", or smaller sizes by understudy skel make --set NAME=VALUE ({sizes})"
    raise UnderstudyError(
        f'{config.file}: <buffer max-size-MB="{config.buffer_mb}">: on {group_blocks.ranks} '
        f"processes, one writes {most} bytes of {what} a step, and the method {test.method} needs "
        f'all of them in the buffer; expected at least max-size-MB="'
        f'{((most + header) >> 20) + 1}"' + remedy
    )


def write(files: Mapping[Path, str], force: bool, directory: Path | None = None) -> None:
    """All files, or none where one is there that differs and `force` is not given. `directory`, in
    which they are, is created where it is missing; no other is."""
    for path, text in files.items():
        if not force and path.exists() and read_text(path) != text:
            raise UnderstudyError(f"{path}: exists already; use --force to replace it")
        if directory is None and not path.parent.exists():
            raise UnderstudyError(f"{path}: cannot be written: there is no folder {path.parent}")
    for path, text in files.items():
        make_folder(path.parent)
        write_text(path, text)
        click.echo(f"understudy: wrote {path}", err=True)

"""understudy skel measure: an application as it is, measured like its skeleton."""

from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy_skel import generate
from understudy_skel.adios2 import source
from understudy_skel.adios2.project import library as adios2_library
from understudy_skel.project import DIRECTORY, FORCE, MAKES, write
from understudy_skel.subcommands.build import make


@click.command()
@click.argument(
    "sources", metavar="SOURCE...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@DIRECTORY
@MAKES
@FORCE
def command(sources: tuple[Path, ...], directory: Path, makes: bool, force: bool) -> None:
    """Build an application from its sources, in C or Fortran, such that its ADIOS calls are
    measured like those of a skeletal application. The sources are not modified.

    The program is named after the first SOURCE. It reads options from SKELETON_OPTIONS, writes to
    the directory given there, and measures like a skeletal application.

    A SOURCE in C++ is one that writes by skeleton/output.h, for ADIOS2, and takes the same options
    on its command line.

    \b
    understudy skel measure app.c
    SKELETON_OPTIONS="-o /scratch/try -r app.json" mpirun -n 4 build/app
    """
    for path in sources:
        if not path.is_file():
            raise UnderstudyError(f"{path}: not there; expected a source in C or Fortran")
    if [path.suffix for path in sources] == [".cpp"]:
        files = source.measured_files(sources[0]) | generate.runtime_files("c++", adios=2)
        write({directory / name: text for name, text in files.items()}, force, directory)
        if makes:
            make(directory, adios2_library())
        return
    for path in sources:
        if path.suffix not in generate.C_SUFFIXES + generate.FORTRAN_SUFFIXES:
            expected = "a source in C or Fortran: *.c, *.f90, *.F90; or one in C++: *.cpp"
            raise UnderstudyError(f"{path}: expected {expected}")
    language = "fortran" if generate.in_fortran(sources) else "c"
    files = {
        **generate.measured_files(sources[0].stem, sources),
        **generate.runtime_files(language, application=True),
    }
    write({directory / name: text for name, text in files.items()}, force, directory)
    if makes:
        make(directory)

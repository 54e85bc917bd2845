"""understudy skel: from an ADIOS descriptor to a skeletal application."""

import click

from understudy.cli import CommandDirectory
from understudy_skel import subcommands


@click.group(cls=CommandDirectory, package=subcommands)
def command() -> None:
    """Generate a skeletal application from an ADIOS descriptor (adios-config XML), or for ADIOS2
    from a file or a model: a program that writes what the application writes, and measures each
    process.

    \b
    understudy skel make gts.xml             the next four in one
    understudy skel xml gts.xml              gts_skel.xml, as ADIOS 1.13.1 reads it
    understudy skel params gts_skel.xml      gts_params.xml: sizes, methods; to be edited
    understudy skel source gts_skel.xml      gts_skel_restart_write.c and its runtime
    understudy skel build gts_skel.xml       Makefile and CMakeLists.txt, and the program
    understudy skel submit gts_skel.xml      a job script for Slurm, PBS or Torque
    understudy skel replay restart.bp        all of the above, from a BP file
    understudy skel make out.bp              a program for ADIOS2, from a BP4 or BP5 file
    understudy skel model new out.yaml       an example of a model, where there is no file
    understudy skel measure app.c            the application itself, measured like a skeleton
    """

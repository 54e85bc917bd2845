"""An application, or its I/O kernel, whose calls of ADIOS are measured."""

from pathlib import Path

from understudy.contracts.measurement import ProgramRun
from understudy_skel.producers import _program

SCHEMA = "understudy/application/1"
ARM = "application"
parse = _program.parse
samples = _program.samples


def read(path: Path) -> ProgramRun:
    """The measurement in a file, of understudy/application/1 or understudy/result/1."""
    return _program.read(path, ARM)

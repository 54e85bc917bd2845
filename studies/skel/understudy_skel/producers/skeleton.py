"""A skeletal application: generated from a descriptor, computes nothing."""

from pathlib import Path

from understudy.contracts.measurement import ProgramRun
from understudy_skel.producers import _program

SCHEMA = "understudy/skeleton/1"
ARM = "skeleton"
parse = _program.parse
samples = _program.samples


def read(path: Path) -> ProgramRun:
    """The measurement in a file, of understudy/skeleton/1 or understudy/result/1."""
    return _program.read(path, ARM)

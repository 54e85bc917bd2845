# ReFrame has no type hints: its classes and decorators are Any to the type checker.
"""Stage directories of any name: ReFrame 4.10 gives their paths to shells without quotes."""

import re
import shlex
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from reframe.core.schedulers.local import LocalJobScheduler
from reframe.core.schedulers.pbs import PbsJobScheduler


def quote_paths() -> None:
    """From now on, jobs start in directories with spaces in their paths, too."""
    for scheduler, name, quoted in (
        (LocalJobScheduler, "submit", _submit), (PbsJobScheduler, "emit_preamble", _preamble),
    ):  # fmt: skip
        real = getattr(scheduler, name)
        if not hasattr(real, "__wrapped__"):
            setattr(scheduler, name, wraps(real)(quoted(real)))


def _submit(real: Callable[..., None]) -> Callable[..., None]:
    def submit(self: Any, job: Any) -> None:
        """The path of the script is split into words as a shell does."""
        name = job.script_filename
        job._script_filename = re.sub(r"([^\w@%+=:,./-])", r"\\\1", str(Path(name).absolute()))
        try:
            real(self, job)
        finally:
            job._script_filename = name

    return submit


def _preamble(real: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def emit_preamble(self: Any, job: Any) -> list[str]:
        plain, quoted = f"cd {job.workdir}", f"cd {shlex.quote(job.workdir)}"
        return [quoted if line == plain else line for line in real(self, job)]

    return emit_preamble

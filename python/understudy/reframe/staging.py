# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc"
"""Where a session stages its cases: in a directory of its own, whatever its name.

ReFrame 4.10 gives the paths to shells without quotes, and empties the stage directory of a case
before it uses it, be it that of a job of another session.
"""

import fcntl
import itertools
import os
import re
import shlex
import socket
import sys
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import IO, Any

from reframe.core.runtime import runtime
from reframe.core.schedulers.local import LocalJobScheduler
from reframe.core.schedulers.pbs import PbsJobScheduler
from reframe.frontend.executors import Runner

_held: list[IO[str]] = []  # the lock of this run of ReFrame, until it ends
LOCK = ".session"


@cache
def own_directories() -> None:
    """From now on, a session that runs cases while another one does so in the same directory has
    directories beside: stage-2 and output-2. One that is refused makes none."""
    run_all = Runner.runall

    @wraps(run_all)
    def apart(*arguments: Any, **options: Any) -> Any:
        _take_directories()
        return run_all(*arguments, **options)

    Runner.runall = apart


def _take_directories() -> None:
    here = runtime()
    stage = Path(here.stagedir or Path(here.prefix) / "stage").absolute()
    output = Path(here.outputdir or Path(here.prefix) / "output").absolute()
    for number in itertools.count(1):
        end = f"-{number}" if number > 1 else ""
        try:
            end = end if _locked(stage.with_name(stage.name + end)) else ""
        except BlockingIOError:
            continue
        except OSError:  # of a file system without locks
            end = f"-{socket.gethostname()}-{os.getpid()}"
        break
    if not end:
        return
    for name, folder in (("stagedir", stage), ("outputdir", output)):
        own = str(folder.with_name(folder.name + end))
        here.site_config.add_sticky_option(f"systems/{name}", own)
    print(
        f"understudy: another session uses {stage}; this one uses {stage.name}{end} and "
        f"{output.name}{end} beside it",
        file=sys.stderr,
        flush=True,
    )


def _locked(folder: Path) -> bool:
    """Take the lock of a directory; a BlockingIOError where another session has it. False where
    the directory cannot be written, as ReFrame will say."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("a", encoding="utf-8")
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise
    _held.append(file)
    return True


def quote_paths() -> None:
    """From now on, jobs start in directories with spaces in their paths, too."""
    for scheduler, name, quoted in (
        (LocalJobScheduler, "submit", _submit),
        (PbsJobScheduler, "emit_preamble", _preamble),
    ):
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

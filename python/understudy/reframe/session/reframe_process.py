"""ReFrame as a process that a command starts."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from understudy.launch import signals_go_to

SECOND_S = 1.0


class Ended(Exception):
    """A signal ended a session."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def program() -> str:
    """The ReFrame of this environment, which need not be active."""
    return shutil.which("reframe", path=str(Path(sys.executable).parent)) or "reframe"


def environment() -> dict[str, str]:
    """Environment of ReFrame here: relative paths of variables start in this directory."""
    return os.environ | {"PWD": str(Path.cwd())}


def run(
    command: Sequence[str | Path],
    environment: dict[str, str],
    out: BinaryIO | None = None,
    meanwhile: Callable[[], None] = lambda: None,
) -> int:
    """Run a session in a process group of its own, and return ReFrame's exit status.

    A signal to us ends the group, with the jobs that ReFrame has started: then Ended. Signals that
    are ignored (nohup) stay so. `meanwhile` is called each second, and at the end.
    """
    caught: list[int] = []
    process: subprocess.Popen[bytes] | None = None

    def end(number: int, _: object) -> None:
        caught.append(number)
        if process is not None:
            _end(process)

    with signals_go_to(end):
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out and subprocess.STDOUT,
            start_new_session=True,
        )
        if caught:  # before there was a process
            _end(process)
        while _runs(process):
            meanwhile()
        meanwhile()
    if caught:
        raise Ended(caught[0])
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)  # ReFrame ends its jobs, and says so


def _runs(process: subprocess.Popen[bytes]) -> bool:
    """True if the process still runs after a second."""
    try:
        process.wait(SECOND_S)
    except subprocess.TimeoutExpired:
        return True
    return False

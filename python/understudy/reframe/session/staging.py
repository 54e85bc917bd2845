"""Where a session stages its cases: in a directory of its own."""

import fcntl
import itertools
import os
import socket
import sys
from pathlib import Path
from typing import IO

from understudy.reframe import reframe_internals

_held: list[IO[str]] = []  # the lock of this run of ReFrame, until it ends
LOCK = ".session"


def take_directories() -> None:
    """Have a session use directories beside, stage-2 and output-2, while another one uses those
    that it was to use. To be called before it runs cases: one that is refused makes none."""
    stage, output = reframe_internals.directories()
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
    reframe_internals.use_directories(
        stage.with_name(stage.name + end),
        output.with_name(output.name + end),
    )
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

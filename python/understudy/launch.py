"""How programs start on this host, and which signals end them.

What Open MPI refuses by default is allowed here: more ranks than cores are usual on a desk, and a
container has no other user than root.
"""

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SETTINGS = Path(__file__).with_name("open-mpi.sh")


def lines() -> list[str]:
    """The settings as lines of a job script of this host."""
    text = SETTINGS.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def with_settings(command: Sequence[str]) -> list[str]:
    """A command that runs another one with the settings."""
    return ["sh", "-c", '. "$0" && exec "$@"', str(SETTINGS), *command]


@contextmanager
def signals_go_to(handler: Callable[[int, Any], None]) -> Iterator[None]:
    """Signals that end this process go to the handler instead, but for those that are ignored, as
    nohup has SIGHUP."""
    former = {number: signal.getsignal(number) for number in SIGNALS}
    for number, handler_before in former.items():
        if handler_before != signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler_before in former.items():
            signal.signal(number, handler_before)

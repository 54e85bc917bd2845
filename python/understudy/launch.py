"""How MPI programs start on this host: what Open MPI refuses by default is allowed here.

More ranks than cores are usual on a desk, and a container has no other user than root.
"""

from collections.abc import Sequence
from pathlib import Path

SETTINGS = Path(__file__).with_name("open-mpi.sh")


def lines() -> list[str]:
    """The settings as lines of a job script of this host."""
    text = SETTINGS.read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def with_settings(command: Sequence[str]) -> list[str]:
    """A command that runs another one with the settings."""
    return ["sh", "-c", '. "$0" && exec "$@"', str(SETTINGS), *command]

"""The option --live of commands that run checks."""

import os
from pathlib import Path

import click

from understudy.errors import UnderstudyError
from understudy.reframe.session.live import VARIABLE

LIVE = click.option(
    "--live",
    "live_file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Add a line of JSON to FILE for each case that ends: bandwidth, dump times, time left.",
)


def follow(file: Path | None) -> None:
    """Checks that run from here on add their lines to the file."""
    if file is None:
        return
    if file.exists() and not file.is_file():
        raise UnderstudyError(f"--live {file}: expected a regular file, or one to be created")
    try:
        with file.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        raise UnderstudyError(f"--live {file}: cannot be written: {error.strerror}") from None
    os.environ[VARIABLE] = str(file.absolute())

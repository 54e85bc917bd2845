"""Messages of commands on standard error, one line each, and their progress."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from understudy.errors import one_line

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

MAX_NAMED = 20  # messages of one kind that are printed


def tell(message: str) -> None:
    """Print a message; names of files in it are no lines and no commands to a terminal."""
    click.echo(f"understudy: {one_line(message)}", err=True)


def tell_some(messages: Sequence[str], outcome: str, effect: str) -> None:
    """Print the first messages, then how many there are: "`outcome`; `effect`"."""
    for message in messages[:MAX_NAMED]:
        tell(message)
    rest = len(messages) - MAX_NAMED
    if messages:
        tell(f"{outcome}{f', {rest} of them not named here' if rest > 0 else ''}; {effect}")


def progress(*columns: ProgressColumn) -> Progress:
    """Progress of long work, where standard error is a terminal; else nothing is printed."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    console.quiet = not console.is_terminal  # older versions print an empty line else
    return Progress(*columns, console=console, transient=True, disable=console.quiet)

"""Messages of commands on standard error, one line each."""

from collections.abc import Sequence

import click

from understudy.errors import one_line

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

"""Tables and paragraphs of text."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from understudy.errors import one_line

WIDTH = 80
NARROW = 8  # no column of a table is made narrower


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], room: int | None = None
) -> Iterator[str]:
    """Lines of a table whose columns are right-aligned where the name begins with >. On a terminal
    they fit it, or the `room` that is given: cells are wrapped; else a row is a line. A table of
    rich takes 50 times as long."""
    named = [tuple(c.lstrip(">") for c in columns), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*named, strict=True)]
    if room is None and sys.stdout.isatty():
        room = shutil.get_terminal_size().columns
    if room is not None:
        _narrow(widths, columns, room)
    line = "  ".join(
        f"{{:{'>' if c.startswith('>') else '<'}{width}}}"
        for c, width in zip(columns, widths, strict=True)
    )
    if title:
        yield title
    for row in named:
        cells = [
            textwrap.wrap(cell, width) if len(cell) > width else [cell]
            for cell, width in zip(row, widths, strict=True)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            yield line.format(*parts).rstrip()


def _narrow(widths: list[int], columns: Sequence[str], room: int) -> None:
    """Make the widest columns of text narrower, until they fit or are NARROW."""
    texts = [k for k, name in enumerate(columns) if not name.startswith(">")]
    while texts and (over := sum(widths) + 2 * (len(widths) - 1) - room) > 0:
        widest = max(texts, key=lambda k: widths[k])
        if widths[widest] <= NARROW:
            return
        second = max((widths[k] for k in texts if k != widest), default=0)
        least = max(NARROW, widths[widest] - over, min(second, widths[widest] - 1))
        widths[widest] = least


def wrapped(text: str, indent: int = 0) -> list[str]:
    """Lines of at most WIDTH characters, those after the first one indented by two more; what
    cannot be shown is escaped."""
    first = " " * indent
    return textwrap.wrap(
        one_line(text),
        WIDTH,
        initial_indent=first,
        subsequent_indent=first + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )

"""Tables and paragraphs of text."""

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from understudy.errors import one_line


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Lines of a table whose columns are right-aligned where the name begins with >. A table of
    rich takes 50 times as long."""
    named = [tuple(c.lstrip(">") for c in columns), *map(tuple, rows)]
    widths = [max(map(len, column)) for column in zip(*named, strict=True)]
    line = "  ".join(
        f"{{:{'>' if c.startswith('>') else '<'}{width}}}"
        for c, width in zip(columns, widths, strict=True)
    )
    if title:
        yield title
    for row in named:
        yield line.format(*row).rstrip()


WIDTH = 80


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

"""The one exception that the project raises on purpose, and how text reaches a terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class UnderstudyError(Exception):
    """A message for the user: what could not be done, with file, key and what was expected."""


class Mistakes(UnderstudyError):
    """Several of one file, each a message by itself."""

    def __init__(self, messages: Sequence[str]) -> None:
        super().__init__("; ".join(messages))
        self.messages = messages


@contextmanager
def refuse_exit(path: Path | str | None) -> Iterator[None]:
    """The code of a plugin file must not end the process, with status 0 and nothing done."""
    try:
        yield
    except SystemExit as error:
        raise UnderstudyError(
            f"{path}: the file ends Python with sys.exit({error.code!r}); expected it to define "
            "what it is for"
        ) from None


def printable(text: str) -> str:
    """Text with control, format and other unprintable characters as escapes, \\x1b or \\u202e:
    names in files are not commands to a terminal. Ends of lines stay."""
    return "\n".join(
        line
        if line.isprintable()
        else "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in line)
        for line in text.split("\n")
    )


def one_line(text: str) -> str:
    """As `printable`, with ends of lines as escapes, too."""
    return printable(text).replace("\n", "\\n")

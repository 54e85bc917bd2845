"""Text that is safe where a template puts it: one type and one filter per language.

A template prints only a whole number, an `Identifier` (safe in every language) or the text type of
its language, and refuses everything else. Text from a descriptor, a BP file or the command line
becomes such a type through the filters below (`c_string`, `fortran_comment`, `shell`, ...) and
through nothing else. XML has no type of its own: its templates escape every value.
"""

import re
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup

from understudy.errors import UnderstudyError

TEMPLATES = Path(__file__).parent / "templates"
IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
# Longer texts are split, so that a line of Fortran can be folded between the pieces.
FORTRAN_PIECE = 40
AnyText = TypeVar("AnyText", bound="Text")


class UnfilteredError(TypeError):
    """A template or a text was given a value that no filter made safe: a fault of ours."""


class Identifier(str):
    """At most 63 letters, digits and '_', a letter first: safe in every language."""

    __slots__ = ()

    def __new__(cls, text: str) -> "Identifier":
        if not IDENTIFIER.fullmatch(text):
            raise UnfilteredError(f"{text!r} is no identifier")
        return super().__new__(cls, text)


class Text(str):
    """Text of one language. Only a filter or a literal in our own code may construct it."""

    __slots__ = ()

    @classmethod
    def accept(cls, value: object) -> str:
        """The value, if it may stand in this language as it is."""
        if isinstance(value, cls | Identifier) or type(value) is int:
            return str(value)
        raise UnfilteredError(f"{value!r} is not {cls.__name__}: no filter was applied")

    @classmethod
    def of(cls: type[AnyText], pattern: str, *parts: object) -> AnyText:
        """`pattern`, a literal, with each {} replaced by a part that is accepted."""
        return cls(pattern.format(*map(cls.accept, parts)))

    @classmethod
    def joined(cls: type[AnyText], separator: str, parts: Iterable[object]) -> AnyText:
        return cls(separator.join(map(cls.accept, parts)))


class CText(Text):
    __slots__ = ()


class FortranText(Text):
    __slots__ = ()


class PythonText(Text):
    __slots__ = ()


class ShellText(Text):
    __slots__ = ()


class MakeText(Text):
    """Make and CMake."""

    __slots__ = ()


def _printable(text: str) -> str:
    """On one line, without characters that are not shown or that change the order of others."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))


def c_string(text: str) -> CText:
    """A string literal: '?' is escaped because of trigraphs, and what cannot be printed because
    the source would not read as it is compiled."""

    def escaped(c: str) -> str:
        if c in '"\\?':
            return f"\\{c}"
        if c.isprintable():
            return c
        return "".join(f"\\{byte:03o}" for byte in c.encode(errors="surrogateescape"))

    return CText('"' + "".join(map(escaped, text)) + '"')


def c_comment(text: str) -> CText:
    """Text that is safe inside a comment, between blanks: it neither ends nor begins one."""
    return CText(re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", _printable(text)))


def fortran_string(text: str) -> FortranText:
    """A character expression; what is not plain ASCII, and the backslash, which some compilers
    take as an escape, are given by their codes."""
    pieces = re.findall(rf"[ -\[\]-~]{{1,{FORTRAN_PIECE}}}|[^ -\[\]-~]", text)
    words = []
    for piece in pieces or [""]:
        if piece == "" or re.match(r"[ -\[\]-~]", piece):
            words.append('"' + piece.replace('"', '""') + '"')
        else:
            words += [f"char({byte})" for byte in piece.encode(errors="surrogateescape")]
    return FortranText(" // ".join(words))


def fortran_comment(text: str) -> FortranText:
    """Text that is safe behind a '!' on a line of its own."""
    return FortranText(_printable(text)[:100])


def python_string(text: str) -> PythonText:
    """A string literal of ASCII."""
    return PythonText(ascii(text))


def python_comment(text: str) -> PythonText:
    """Text that is safe in a comment, and between the quotes of a docstring."""
    return PythonText(_printable(text).replace("\\", "/").replace('"', "'"))


def shell(text: str) -> ShellText:
    """One word."""
    if "\0" in text:
        raise UnderstudyError(f"{text!r}: expected a text without NUL")
    return ShellText(shlex.quote(text))


def cmake_path(path: Path) -> MakeText:
    """A path as a quoted argument of CMake, which has no way to write some characters."""
    text = path.as_posix()
    if not text.isprintable() or re.search(r'[;"\\]', text):
        raise UnderstudyError(
            f'{text!r}: CMake cannot build from this path; expected one without ; " \\ and '
            "without characters that cannot be printed"
        )
    return MakeText('"' + text.replace("$", "\\$") + '"')


def word(text: str, what: str) -> str:
    """Text that becomes part of file names, targets and directives: letters, digits and _ . + -,
    not beginning with a mark."""
    if not WORD.fullmatch(text) or len(text) > 200:
        raise UnderstudyError(
            f"{what} {text!r}: expected at most 200 letters, digits and _ . + -, beginning with a "
            "letter, a digit or _"
        )
    return text


FILTERS: dict[str, Callable[[str], Text]] = {
    "c_string": c_string,
    "c_comment": c_comment,
    "fortran_string": fortran_string,
    "fortran_comment": fortran_comment,
    "python_string": python_string,
    "python_comment": python_comment,
    "shell": shell,
}


def environment(language: type[Text] | None) -> jinja2.Environment:
    """Templates of a language; None: XML, where every value is escaped."""

    def finalize(value: Any) -> Any:
        return value if language is None else language.accept(value)

    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=language is None,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    templates.filters |= FILTERS
    return templates


def xml_attribute(key: str, value: str) -> Markup:
    """An attribute, or nothing where it has no value."""
    return Markup(' {}="{}"').format(key, value) if value else Markup()

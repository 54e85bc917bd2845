"""XML files as elements that know their line. Document types, and with them entities, are refused.
Attribute values without quotes are taken, as by the reader of ADIOS.

An `UnderstudyError` names the file, the line and the element.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from understudy.errors import UnderstudyError
from understudy.files import read_bytes


@dataclass(kw_only=True)
class Element:
    """One element: its attributes in order of the file, the text in it and the elements below."""

    file: str
    line: int
    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    text: str = ""

    def __str__(self) -> str:
        named = [
            f' {key}="{self.attributes[key]}"'
            for key in ("name", "group")
            if key in self.attributes
        ]
        shown = "".join(c if c.isprintable() else "?" for c in "".join(named[:1]))
        return f"<{self.tag}{shown}>"

    def fault(self, message: str) -> UnderstudyError:
        return UnderstudyError(f"{self.file}: line {self.line}: {self}: {message}")

    def get(self, key: str, default: str = "") -> str:
        """The attribute's value; upper and lower case of its name are alike, as to ADIOS."""
        if key in self.attributes:
            return self.attributes[key]
        wanted = key.lower()
        return next((v for k, v in self.attributes.items() if k.lower() == wanted), default)

    def need(self, key: str) -> str:
        """The attribute's value without blanks around it, which must not be empty."""
        value = self.get(key).strip()
        if not value:
            raise self.fault(f'the attribute {key}="..." is missing or empty')
        return value

    def all(self, *tags: str) -> Iterator["Element"]:
        """The elements directly below with one of these tags; upper and lower case are alike."""
        return (child for child in self.children if child.tag.lower() in tags)


def is_whole(text: str) -> bool:
    """Is it a whole number that 64 bits hold?"""
    return text.isascii() and text.isdecimal() and len(text) <= 18


def check_printable(text: str, element: Element, key: str) -> None:
    """Control characters, and those that change the order of the others, are refused: text that
    does not read as it is taken would go into sources, file names and messages."""
    for c in text:
        if not c.isprintable():
            raise element.fault(
                f"{key}={text!r}: the character U+{ord(c):04X} cannot be printed; expected a text "
                "of one line without it"
            )


def load(path: Path, root: str) -> Element:
    """The file's root element, which must be <root>."""
    try:
        data = read_bytes(path)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    return parse(data, str(path), root)


class _NotXml(UnderstudyError):
    """XML that is not well-formed."""


# Comments, CDATA and processing instructions, whole or to the end of the file; a tag.
_MARKUP = re.compile(
    rb"<!--(?:.*?-->|.*)|<!\[CDATA\[(?:.*?\]\]>|.*)|<\?(?:.*?\?>|.*)"
    rb"|(<[A-Za-z_](?:[^\"'<>]|\"[^\"<]*\"|'[^'<]*')*>)",
    re.DOTALL,
)
_VALUE = re.compile(rb"(\"[^\"]*\"|'[^']*')|(=\s*)([^\s\"'<>=/]+)")


def quoted(data: bytes) -> bytes:
    """The same XML with quotes around the values of attributes that lack them."""

    def value(match: re.Match[bytes]) -> bytes:
        return match[1] or b'%b"%b"' % (match[2], match[3])

    def markup(match: re.Match[bytes]) -> bytes:
        return _VALUE.sub(value, match[1]) if match[1] else match[0]

    return _MARKUP.sub(markup, data)


def parse(data: bytes, file: str, root: str) -> Element:
    """The same of the bytes of a file; `file` names it in messages."""
    try:
        return _parse(data, file, root)
    except _NotXml as error:
        try:
            return _parse(quoted(data), file, root)
        except _NotXml:
            raise error from None


def _parse(data: bytes, file: str, root: str) -> Element:
    roots: list[Element] = []
    above: list[Element] = []
    parser = expat.ParserCreate()

    def begin(tag: str, attributes: dict[str, str]) -> None:
        line = parser.CurrentLineNumber
        element = Element(file=file, line=line, tag=tag, attributes=attributes)
        for key, value in attributes.items():
            check_printable(value, element, key)
        (above[-1].children if above else roots).append(element)
        above.append(element)

    def end(tag: str) -> None:
        above.pop()

    def text(more: str) -> None:
        above[-1].text += more

    def refuse(*about: object) -> NoReturn:
        raise UnderstudyError(
            f"{file}: line {parser.CurrentLineNumber}: <!DOCTYPE>: a document type is not read; "
            "expected a file without one"
        )

    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = refuse
    parser.buffer_text = True
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        inside = f"{above[-1]}: " if above else ""
        what = expat.errors.messages[error.code]
        raise _NotXml(f"{file}: line {error.lineno}: {inside}not XML: {what}") from None
    if roots[0].tag.lower() != root:
        raise roots[0].fault(f"not the right kind of file; expected <{root}>")
    return roots[0]

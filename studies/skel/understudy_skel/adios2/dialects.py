"""How a program says values, blocks and conditions in C++ and in Python."""

import math
import re
from dataclasses import dataclass
from typing import Protocol

from understudy.adios2.output import STRING
from understudy_skel.adios2.plan import Side
from understudy_skel.escape import (
    CText,
    PythonText,
    Text,
    c_comment,
    c_string,
    python_comment,
    python_string,
)

CPP, PYTHON = "c++", "python"
COMPLEX = re.compile(r"\(?\s*([^,()\s]+)\s*,\s*([^,()\s]+)\s*\)?")
# The types of whole numbers, and the least and the largest of each.
INTEGERS = {
    f"{sign}int{bits}_t": (0 if sign else -(1 << bits - 1), (1 << bits - (not sign)) - 1)
    for sign in ("", "u")
    for bits in (8, 16, 32, 64)
} | {"char": (-128, 255)}


class Dialect(Protocol):
    """Texts of a language; `code` makes one of a literal in our own code."""

    @property
    def suffix(self) -> str: ...
    @property
    def template(self) -> str: ...
    @property
    def tables(self) -> str: ...
    @property
    def code(self) -> type[Text]: ...
    def literal(self, kind: str, text: str) -> Text: ...
    def comment(self, text: str) -> Text: ...
    def string(self, text: str) -> Text: ...
    def type_of(self, kind: str) -> Text: ...
    def truth(self, value: bool) -> Text: ...
    def joined(self) -> Text: ...
    def start(self, side: Side) -> Text: ...
    def count(self, side: Side) -> Text: ...
    def among(self, name: Text, count: int) -> Text: ...
    def both(self, first: Text, second: Text) -> Text: ...


def whole(kind: str, text: str) -> int:
    """The text of a whole number; a ValueError if the type cannot hold it."""
    low, high = INTEGERS[kind]
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{text!r}: expected a whole number") from None
    if not low <= value <= high:
        raise ValueError(f"{text}: expected a number from {low} to {high}")
    return value


def real(text: str) -> float:
    """The text of a real number."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r}: expected a number") from None


def parts_of(text: str) -> tuple[float, float]:
    """The text of a complex number."""
    match = COMPLEX.fullmatch(text)
    if match:
        return real(match.group(1)), real(match.group(2))
    try:
        number = complex(text)
    except ValueError:
        raise ValueError(f"{text!r}: expected a complex number") from None
    return number.real, number.imag


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("expected a text without NUL")
    return text


def _unicode(text: str) -> str:
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(
            "bytes that are not UTF-8, which ADIOS2's module cannot write; expected --language c++"
        )
    return text


@dataclass(frozen=True, slots=True)
class Cpp:
    suffix: str = "cpp"
    template: str = "adios2/write.cpp"
    tables: str = "adios2/blocks.h"
    code: type[Text] = CText

    def literal(self, kind: str, text: str) -> CText:
        if kind == STRING:
            return c_string(_without_nul(text))
        if kind in INTEGERS:
            value = whole(kind, text)
            if value == -(1 << 63):
                return CText("INT64_MIN")
            if kind == "char":
                return CText.of("static_cast<char>({})", value)
            return CText.of("{}{}", value, CText("U" if value >= 1 << 63 else ""))
        if kind.endswith("complex"):
            return CText.of("{{{}, {}}}", *map(self._real, parts_of(text)))
        return self._real(real(text))

    def _real(self, value: float) -> CText:
        if math.isnan(value):
            return CText("NAN")
        if math.isinf(value):
            return CText("INFINITY" if value > 0 else "-INFINITY")
        return CText(repr(value))

    def comment(self, text: str) -> CText:
        return c_comment(text)

    def string(self, text: str) -> CText:
        return c_string(text)

    def type_of(self, kind: str) -> CText:
        if kind.endswith(" complex"):
            return CText.of("std::complex<{}>", CText(kind.removesuffix(" complex")))
        return CText("std::string" if kind == STRING else kind)

    def truth(self, value: bool) -> CText:
        return CText("true" if value else "false")

    def joined(self) -> CText:
        return CText("adios2::JoinedDim")

    def _index(self, side: Side) -> CText:
        text = CText("rank") if side.stride == 1 else CText.of("rank / {}", side.stride)
        return CText.of("{} % {}", text, side.parts)

    def start(self, side: Side) -> CText:
        if side.is_whole:
            return CText.of("{}", 0)
        start = CText.of("{} * {}", self._index(side), side.step)
        if side.larger:
            return CText.of("{} + std::min<size_t>({}, {})", start, self._index(side), side.larger)
        return start

    def count(self, side: Side) -> CText:
        if side.larger:
            return CText.of("{}u + ({} < {})", side.count, self._index(side), side.larger)
        if side.is_whole or side.count == side.last_count:
            return CText.of("{}", side.last_count)
        last = side.parts - 1
        return CText.of(
            "({} == {} ? {}u : {}u)", self._index(side), last, side.last_count, side.count
        )

    def among(self, name: Text, count: int) -> CText:
        return CText.of("skel::among({}, {}, rank)", name, count)

    def both(self, first: Text, second: Text) -> CText:
        return CText.of("{} && {}", first, second)


@dataclass(frozen=True, slots=True)
class Python:
    suffix: str = "py"
    template: str = "adios2/write.py.jinja"
    tables: str = "adios2/blocks.py.jinja"
    code: type[Text] = PythonText

    def literal(self, kind: str, text: str) -> PythonText:
        if kind == STRING:
            return python_string(_unicode(_without_nul(text)))
        if kind == "char":
            raise ValueError(
                "type char, which ADIOS2's module cannot write; expected --language c++"
            )
        if kind in INTEGERS:
            return PythonText.of("{}", whole(kind, text))
        if kind.endswith("complex"):
            return PythonText.of("complex({}, {})", *map(self._real, parts_of(text)))
        return self._real(real(text))

    def _real(self, value: float) -> PythonText:
        if math.isfinite(value):
            return PythonText(repr(value))
        return PythonText(f'float("{value}")')

    def comment(self, text: str) -> PythonText:
        return python_comment(text)

    def string(self, text: str) -> PythonText:
        return python_string(text)

    def type_of(self, kind: str) -> PythonText:
        return PythonText(f'"{kind}"')

    def truth(self, value: bool) -> PythonText:
        return PythonText(str(value))

    def joined(self) -> PythonText:
        return PythonText("JOINED")

    def _index(self, side: Side) -> PythonText:
        text = PythonText("rank")
        if side.stride != 1:
            text = PythonText.of("rank // {}", side.stride)
        return PythonText.of("{} % {}", text, side.parts)

    def start(self, side: Side) -> PythonText:
        if side.is_whole:
            return PythonText.of("{}", 0)
        start = PythonText.of("{} * {}", self._index(side), side.step)
        if side.larger:
            return PythonText.of("{} + min({}, {})", start, self._index(side), side.larger)
        return start

    def count(self, side: Side) -> PythonText:
        if side.larger:
            return PythonText.of("{} + ({} < {})", side.count, self._index(side), side.larger)
        if side.is_whole or side.count == side.last_count:
            return PythonText.of("{}", side.last_count)
        last = side.parts - 1
        return PythonText.of(
            "({} if {} == {} else {})", side.last_count, self._index(side), last, side.count
        )

    def among(self, name: Text, count: int) -> PythonText:
        return PythonText.of("rank in {}", name)

    def both(self, first: Text, second: Text) -> PythonText:
        return PythonText.of("{} and {}", first, second)


DIALECTS: dict[str, Dialect] = {CPP: Cpp(), PYTHON: Python()}

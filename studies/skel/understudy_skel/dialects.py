"""How the generated program says things in C and in Fortran.

Every function takes identifiers, numbers and text of its own language, and refuses anything else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from understudy_skel.escape import (
    CText,
    FortranText,
    Identifier,
    Text,
    c_comment,
    c_string,
    fortran_comment,
    fortran_string,
)
from understudy_skel.types import ElementType


class Dialect(Protocol):
    """Texts of a language. Whole numbers are computed with 64 bits."""

    @property
    def suffix(self) -> str: ...
    @property
    def template(self) -> str: ...
    @property
    def language(self) -> type[Text]: ...
    def number(self, value: int) -> Text: ...
    def value(self, identifier: Identifier) -> Text: ...
    def negative(self, value: Text) -> Text: ...
    def operation(self, left: Text, operator: str, right: Text) -> Text: ...
    def parenthesized(self, value: Text) -> Text: ...
    def call(self, function: str, before: Sequence[Text], numbers: Sequence[int]) -> Text: ...
    def list_of(self, numbers: Sequence[int]) -> Text: ...
    def integer(self, kind: ElementType, text: Text) -> Text: ...
    def real(self, kind: ElementType, value: float) -> Text: ...
    def condition(self, macros: Sequence[tuple[Identifier, bool]]) -> Text: ...
    def product(self, factors: Sequence[Text]) -> Text: ...
    def type_of(self, kind: ElementType) -> Text: ...
    def constant(self, name: str) -> Text: ...
    def comment(self, text: str) -> Text: ...
    def text(self, value: str) -> Text: ...
    def part(self, number: int) -> Text: ...
    def declared(self, kind: ElementType, identifier: Identifier, size: int) -> Text: ...
    def size(self, kind: ElementType, identifier: Identifier, size: int) -> Text: ...
    def folded(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class C:
    suffix: str = "c"
    template: str = "write.c"
    language: type[Text] = CText

    def number(self, value: int) -> CText:
        return CText.of("{}", value)

    def value(self, identifier: Identifier) -> CText:
        return CText.of("(int64_t)data->{}", identifier)

    def negative(self, value: Text) -> CText:
        return CText.of("(-({}))", value)

    def operation(self, left: Text, operator: str, right: Text) -> CText:
        return CText.of("{} {} {}", left, CText(operator), right)

    def parenthesized(self, value: Text) -> CText:
        return CText.of("({})", value)

    def call(self, function: str, before: Sequence[Text], numbers: Sequence[int]) -> CText:
        return CText.of("{}({})", CText(function), CText.joined(", ", [*before, *numbers]))

    def list_of(self, numbers: Sequence[int]) -> CText:
        return CText.of("(const int64_t[]){{{}}}", CText.joined(", ", numbers))

    def integer(self, kind: ElementType, text: Text) -> CText:
        return CText.of("({})({})", CText(kind.c), text)

    def real(self, kind: ElementType, value: float) -> CText:
        return CText.of("({})({})", CText(kind.c), CText(repr(float(value))))

    def condition(self, macros: Sequence[tuple[Identifier, bool]]) -> CText:
        return CText.joined(
            " && ", [CText.of("{}" if value else "!{}", macro) for macro, value in macros]
        )

    def product(self, factors: Sequence[Text]) -> CText:
        plain = [CText(CText.accept(factor).removeprefix("(int64_t)")) for factor in factors]
        return CText.joined(" * ", [CText.of("(size_t){}", factor) for factor in plain])

    def type_of(self, kind: ElementType) -> CText:
        return CText(kind.c)

    def constant(self, name: str) -> CText:
        return CText(name)

    def comment(self, text: str) -> CText:
        return CText.of("/* {} */", c_comment(text))

    def text(self, value: str) -> CText:
        return c_string(value)

    def part(self, number: int) -> CText:
        return CText.of("[{}]", number)

    def declared(self, kind: ElementType, identifier: Identifier, size: int) -> CText:
        if kind.text:
            return CText.of("{}{}", CText(kind.c), identifier)
        parts = CText.of("[{}]", kind.parts) if kind.parts > 1 else CText("")
        return CText.of("{} {}{}", CText(kind.c), identifier, parts)

    def size(self, kind: ElementType, identifier: Identifier, size: int) -> CText:
        return CText.of("strlen(data->{})" if kind.text else "sizeof data->{}", identifier)

    def folded(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Fortran:
    suffix: str = "f90"
    template: str = "write.f90"
    language: type[Text] = FortranText

    def number(self, value: int) -> FortranText:
        return FortranText.of("{}_c_int64_t", value)

    def value(self, identifier: Identifier) -> FortranText:
        return FortranText.of("int(data%{}, c_int64_t)", identifier)

    def negative(self, value: Text) -> FortranText:
        return FortranText.of("(-({}))", value)

    def operation(self, left: Text, operator: str, right: Text) -> FortranText:
        if operator == "%":
            return FortranText.of("mod({}, {})", left, right)
        return FortranText.of("{} {} {}", left, FortranText(operator), right)

    def parenthesized(self, value: Text) -> FortranText:
        return FortranText.of("({})", value)

    def call(self, function: str, before: Sequence[Text], numbers: Sequence[int]) -> FortranText:
        words = [*before, *(FortranText.of("{}_c_int", n) for n in numbers)]
        return FortranText.of("{}({})", FortranText(function), FortranText.joined(", ", words))

    def list_of(self, numbers: Sequence[int]) -> FortranText:
        return FortranText.of("[{}]", FortranText.joined(", ", [self.number(n) for n in numbers]))

    def integer(self, kind: ElementType, text: Text) -> FortranText:
        return FortranText.of("int({}, {})", text, self._kind(kind))

    def real(self, kind: ElementType, value: float) -> FortranText:
        return FortranText.of("{}_{}", FortranText(repr(float(value))), self._kind(kind))

    def _kind(self, kind: ElementType) -> FortranText:
        """c_double of real(c_double)."""
        return FortranText(kind.fortran.partition("(")[2].rstrip(")"))

    def condition(self, macros: Sequence[tuple[Identifier, bool]]) -> FortranText:
        return FortranText.joined(
            " .and. ",
            [FortranText.of("{}" if value else ".not. {}", macro) for macro, value in macros],
        )

    def product(self, factors: Sequence[Text]) -> FortranText:
        return FortranText.joined(" * ", factors)

    def type_of(self, kind: ElementType) -> FortranText:
        return FortranText(kind.fortran)

    def constant(self, name: str) -> FortranText:
        return FortranText(name)

    def comment(self, text: str) -> FortranText:
        return FortranText.of("! {}", fortran_comment(text))

    def text(self, value: str) -> FortranText:
        """ADIOS takes texts as C has them."""
        return FortranText.of("{} // c_null_char", fortran_string(value))

    def part(self, number: int) -> FortranText:
        return FortranText.of("({})", number + 1)

    def declared(self, kind: ElementType, identifier: Identifier, size: int) -> FortranText:
        if kind.text:
            return FortranText.of("character(kind=c_char, len={}) :: {}", size + 1, identifier)
        parts = FortranText.of("({})", kind.parts) if kind.parts > 1 else FortranText("")
        return FortranText.of("{} :: {}{}", FortranText(kind.fortran), identifier, parts)

    def size(self, kind: ElementType, identifier: Identifier, size: int) -> FortranText:
        return FortranText.of("{}", size)

    def folded(self, text: str) -> str:
        """The program with lines of at most 132 characters, as Fortran demands."""
        return "".join(_folded(line) for line in text.splitlines(keepends=True))


def _folded(line: str, maximum: int = 120) -> str:
    """A statement on as many lines as it needs, cut at blanks outside of texts. No comment stands
    behind a statement, so none can be cut."""
    if len(line) <= maximum or line.lstrip().startswith("!"):
        return line
    blanks = [
        i
        for i, c in enumerate(line[:maximum])
        if c == " "
        and line[:i].strip()
        and line[:i].count('"') % 2 == 0
        and line[i:].strip() != "&"
    ]
    if not blanks:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    rest = indent + line[blanks[-1] :].lstrip()
    return f"{line[: blanks[-1]]} &\n{_folded(rest, maximum)}"


DIALECTS: dict[str, Dialect] = {"c": C(), "fortran": Fortran()}

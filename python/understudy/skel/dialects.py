"""How the generated program says things in C and in Fortran."""

import json
from dataclasses import dataclass
from typing import Protocol

from understudy.skel.types import ElementType


class Dialect(Protocol):
    """Texts of a language. Whole numbers are computed with 64 bits."""

    @property
    def suffix(self) -> str: ...
    @property
    def template(self) -> str: ...
    def number(self, value: int) -> str: ...
    def variable(self, identifier: str) -> str: ...
    def value(self, identifier: str) -> str: ...
    def modulo(self, left: str, right: str) -> str: ...
    def call(self, function: str, before: list[str], numbers: list[int]) -> str: ...
    def list_of(self, numbers: list[int]) -> str: ...
    def integer(self, kind: ElementType, text: str) -> str: ...
    def real(self, kind: ElementType, value: float) -> str: ...
    def condition(self, macros: list[tuple[str, bool]]) -> str: ...
    def product(self, factors: list[str]) -> str: ...
    def type_of(self, kind: ElementType) -> str: ...
    def comment(self, text: str) -> str: ...
    def quoted(self, text: str) -> str: ...
    def text(self, value: str) -> str: ...
    def part(self, number: int) -> str: ...
    def declared(self, kind: ElementType, identifier: str, size: int) -> str: ...
    def size(self, kind: ElementType, identifier: str, size: int) -> str: ...
    def folded(self, text: str) -> str: ...


@dataclass(frozen=True, slots=True)
class C:
    suffix: str = "c"
    template: str = "write.c"

    def number(self, value: int) -> str:
        return str(value)

    def variable(self, identifier: str) -> str:
        return f"data->{identifier}"

    def value(self, identifier: str) -> str:
        return f"(int64_t)data->{identifier}"

    def modulo(self, left: str, right: str) -> str:
        return f"{left} % {right}"

    def call(self, function: str, before: list[str], numbers: list[int]) -> str:
        return f"{function}({', '.join([*before, *map(str, numbers)])})"

    def list_of(self, numbers: list[int]) -> str:
        return f"(const int64_t[]){{{', '.join(map(str, numbers))}}}"

    def integer(self, kind: ElementType, text: str) -> str:
        return f"({kind.c})({text})"

    def real(self, kind: ElementType, value: float) -> str:
        return f"({kind.c})({value!r})"

    def condition(self, macros: list[tuple[str, bool]]) -> str:
        return " && ".join(f"{'' if value else '!'}{macro}" for macro, value in macros)

    def product(self, factors: list[str]) -> str:
        return " * ".join(f"(size_t){factor.removeprefix('(int64_t)')}" for factor in factors)

    def type_of(self, kind: ElementType) -> str:
        return kind.c

    def comment(self, text: str) -> str:
        """Text that cannot end a comment."""
        return f"/* {' '.join(text.replace('*/', '* /').split())} */"

    def quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)

    def text(self, value: str) -> str:
        return self.quoted(value)

    def part(self, number: int) -> str:
        return f"[{number}]"

    def declared(self, kind: ElementType, identifier: str, size: int) -> str:
        if kind.text:
            return f"{kind.c}{identifier}"
        return f"{kind.c} {identifier}{f'[{kind.parts}]' if kind.parts > 1 else ''}"

    def size(self, kind: ElementType, identifier: str, size: int) -> str:
        return f"strlen(data->{identifier})" if kind.text else f"sizeof data->{identifier}"

    def folded(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Fortran:
    suffix: str = "f90"
    template: str = "write.f90"

    def number(self, value: int) -> str:
        return f"{value}_c_int64_t"

    def variable(self, identifier: str) -> str:
        return f"data%{identifier}"

    def value(self, identifier: str) -> str:
        return f"int(data%{identifier}, c_int64_t)"

    def modulo(self, left: str, right: str) -> str:
        return f"mod({left}, {right})"

    def call(self, function: str, before: list[str], numbers: list[int]) -> str:
        words = [*before, *(f"{n}_c_int" for n in numbers)]
        return f"{function}({', '.join(words)})"

    def list_of(self, numbers: list[int]) -> str:
        return f"[{', '.join(self.number(n) for n in numbers)}]"

    def integer(self, kind: ElementType, text: str) -> str:
        return f"int({text}, {kind.fortran.partition('(')[2]}"

    def real(self, kind: ElementType, value: float) -> str:
        return f"{value!r}_{kind.fortran.partition('(')[2].rstrip(')')}"

    def condition(self, macros: list[tuple[str, bool]]) -> str:
        words = (f"{'' if value else '.not. '}{macro}" for macro, value in macros)
        return " .and. ".join(words)

    def product(self, factors: list[str]) -> str:
        return " * ".join(factors)

    def type_of(self, kind: ElementType) -> str:
        return kind.fortran

    def comment(self, text: str) -> str:
        return f"! {' '.join(text.split())[:100]}"

    def quoted(self, text: str) -> str:
        return '"' + text.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """ADIOS takes texts as C has them."""
        return f"{self.quoted(value)} // c_null_char"

    def part(self, number: int) -> str:
        return f"({number + 1})"

    def declared(self, kind: ElementType, identifier: str, size: int) -> str:
        if kind.text:
            return f"character(kind=c_char, len={size + 1}) :: {identifier}"
        return f"{kind.fortran} :: {identifier}{f'({kind.parts})' if kind.parts > 1 else ''}"

    def size(self, kind: ElementType, identifier: str, size: int) -> str:
        return str(size)

    def folded(self, text: str) -> str:
        """The program with lines of at most 132 characters, as the standard has it."""
        return "".join(_folded(line) for line in text.splitlines(keepends=True))


def _folded(line: str, most: int = 120) -> str:
    """A statement on as many lines as it needs, cut at blanks outside of texts."""
    if len(line) <= most or line.lstrip().startswith("!"):
        return line
    blanks = [
        i for i, c in enumerate(line[:most])
        if c == " " and line[:i].strip() and line[:i].count('"') % 2 == 0
    ]  # fmt: skip
    if not blanks:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    rest = indent + line[blanks[-1] :].lstrip()
    return f"{line[: blanks[-1]]} &\n{_folded(rest, most)}"


DIALECTS: dict[str, Dialect] = {"c": C(), "fortran": Fortran()}

"""Names of an application's variables as identifiers of the generated program, each its own."""

import re
from collections.abc import Iterable

C_WORDS = frozenset((
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else",
    "enum", "extern", "float", "for", "goto", "if", "inline", "int", "long", "register",
    "restrict", "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef",
    "union", "unsigned", "void", "volatile", "while", "bool", "true", "false", "elements",
))  # fmt: skip
SPOKEN = {"+": "_plus_", "-": "_minus_", "*": "_times_", "/": "_", "%": "_", "#": "_no_"}


def of(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """An identifier for every name, valid in C and Fortran: at most 50 letters, digits and '_', a
    letter first, no keyword, and no two alike, whether or not capitals count."""
    used = {word.lower() for word in (*C_WORDS, *taken)}
    found = {}
    for name in names:
        text = "".join(SPOKEN.get(c, c) for c in name)
        text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", text)).strip("_")[:50] or "v"
        text = text if text[0].isalpha() else f"v_{text}"
        unique, number = text, 2
        while unique.lower() in used:
            unique, number = f"{text}_{number}", number + 1
        used.add(unique.lower())
        found[name] = unique
    return found

"""Names of an application's variables as identifiers of the generated program, each its own."""

import re
from collections.abc import Iterable

from understudy_skel.escape import Identifier

SPOKEN = {"+": "_plus_", "-": "_minus_", "*": "_times_", "/": "_", "%": "_", "#": "_no_"}


def plain(name: str) -> Identifier:
    """The name as at most 50 letters, digits and '_', a letter first. Two names may give the same,
    and it may be a word of a language: for files and targets."""
    text = "".join(SPOKEN.get(c, c) for c in name)
    text = re.sub(r"_+", "_", re.sub(r"[^A-Za-z0-9_]", "_", text)).strip("_")[:50] or "v"
    return Identifier(text if text[0].isalpha() else f"v_{text}")


def of(names: Iterable[str], ending: str = "") -> dict[str, Identifier]:
    """An identifier for every name, no two alike, whether or not capitals count."""
    used: set[str] = set()
    identifiers = {}
    for name in names:
        text = f"{plain(name)}{ending}"
        unique, number = text, 2
        while unique.lower() in used:
            unique, number = f"{plain(name)}_{number}{ending}", number + 1
        used.add(unique.lower())
        identifiers[name] = Identifier(unique)
    return identifiers


def members(names: Iterable[str]) -> dict[str, Identifier]:
    """The same for the members of a structure. The '_' at the end keeps them apart from every
    keyword and macro: a program cannot use `unix`, `NULL` or `MPI_INT`, but it can use `NULL_`."""
    return of(names, "_")

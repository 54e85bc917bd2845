"""The modules of the C core include each other in one order, without circles.

A module is a `.c` file with its header. An include against the order fails with the file and the
header.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from understudy.paths import ROOT

CORE = ROOT / "proxies" / "core"
# A folder includes from itself and from those before it; docs/architecture.md explains them.
FOLDERS = ("text", "job", "interfaces", "options", "workload", "plan", "storage", "playing")
# Files that are pieces of one module.
PIECES = dict.fromkeys(
    (
        f"playing/{name}"
        for name in ("stream_files", "stream_internal", "stream_names", "transfers")
    ),
    "playing/stream_player",
)


def module(name: str) -> str:
    """`folder/stem` of a file below proxies/core, or of the module that it is a piece of."""
    stem = name.rpartition(".")[0]
    return PIECES.get(stem, stem)


def files() -> list[str]:
    return sorted(path.relative_to(CORE).as_posix() for path in CORE.rglob("*.[ch]"))


def includes() -> Iterator[tuple[str, str, str]]:
    """(file, its module, the module of the header) for each include of another module."""
    for name in files():
        text = (CORE / name).read_text("utf-8")
        for header in re.findall(r'^#include "(\w+/\w+\.h)"', text, re.MULTILINE):
            if module(header) != module(name):
                yield name, module(name), module(header)


def test_every_folder_has_its_place_in_the_order() -> None:
    assert {Path(name).parent.as_posix() for name in files()} == set(FOLDERS)


def test_no_include_goes_against_the_order() -> None:
    place = {folder: i for i, folder in enumerate(FOLDERS)}
    wrong = [
        f"proxies/core/{name} must not include {target}.h"
        for name, source, target in includes()
        if place[target.split("/")[0]] > place[source.split("/")[0]]
    ]
    assert wrong == []


def test_no_circle_of_includes() -> None:
    arrows: dict[str, set[str]] = {module(name): set() for name in files()}
    for _, source, target in includes():
        arrows[source].add(target)
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above[above.index(name) :], name))
        if name in done:
            return
        for target in sorted(arrows[name]):
            visit(target, (*above, name))
        done.add(name)

    for name in arrows:
        visit(name, ())

"""The modules of the C core include each other in one order, without circles.

A module is a `.c` file with its header. An include against the order fails with the file and the
header.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from understudy.paths import ROOT

CORE = ROOT / "proxies" / "core"
# A layer includes from itself and from those before it; docs/architecture.md explains them.
LAYERS = (
    ("error", "identity", "init", "launcher", "mpi_settings", "order", "print", "sha256"),
    ("agree", "die", "environment", "stop", "timing"),
    ("calls", "layout_backend", "layout_request", "method", "mount", "mount_json"),
    ("option", "setting", "strict"),
    ("program", "skew", "stream", "syscalls", "variable", "workload"),
    ("decomposition", "fold", "operations", "pattern", "plan", "schedule", "stencil"),
    ("files", "run", "run_directory", "space", "tree", "watch"),
    ("caller", "layout_log", "metadata", "pace", "small_file_set", "stream_player"),
    ("phase", "repetition"),
    ("totals",),
)
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}
# Files that are pieces of one module.
PIECES = {
    **dict.fromkeys(
        ("stream_files", "stream_internal", "stream_names", "transfers"), "stream_player"
    ),
}


def module(path: Path) -> str:
    return PIECES.get(path.stem, path.stem)


def files() -> list[Path]:
    return sorted(CORE.glob("*.[ch]"))


def includes() -> Iterator[tuple[Path, str, str]]:
    """(file, its module, the module of the header) for each include of another module."""
    for path in files():
        for name in re.findall(
            r'^#include "core/(\w+)\.h"', path.read_text("utf-8"), re.MULTILINE
        ):
            if module(Path(name)) != module(path):
                yield path, module(path), module(Path(name))


def test_every_module_has_its_place_in_the_order() -> None:
    assert {module(path) for path in files()} == set(RANK)


def test_no_include_goes_against_the_order() -> None:
    wrong = [
        f"proxies/core/{path.name}: {source} must not include {target}.h"
        for path, source, target in includes()
        if RANK[target] > RANK[source]
    ]
    assert wrong == []


def test_no_circle_of_includes() -> None:
    arrows: dict[str, set[str]] = {name: set() for name in RANK}
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

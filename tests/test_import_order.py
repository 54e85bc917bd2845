"""The packages import each other in one order, without circles, and no file grows without limit.

An arrow against the order fails with the file and the import.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from understudy.paths import ROOT

PACKAGE = ROOT / "python" / "understudy"
# A layer imports from itself and from those before it.
LAYERS = (
    ("__init__", "errors", "files", "launch", "messages", "paths", "release", "studies"),
    ("tables", "units", "xmlfile"),
    ("program",),
    ("contracts",),
    ("darshanlog",),
    ("adios2", "inference", "model", "tracing"),
    ("readers",),
    ("observations",),
    ("producers",),
    ("records",),
    ("judge",),
    ("reframe", "report"),
    ("export", "samples", "commands", "cli", "__main__"),
)
# Folders of a package, after the modules that they use, in the order in which they may import each
# other. Other modules of the package use them.
FOLDERS = {
    "inference": ("table constants", "names", "calls", "log", "score", "streams", "steps"),
    "judge": ("statistics", "fidelity", "acceptance", "comparison", "page"),
    "reframe": ("reframe_internals spaces spack systems", "session", "bases", "checks"),
}
# Both ask judge; neither imports the other.
APART = {("reframe", "report"), ("report", "reframe")}
RANK = {name: i for i, names in enumerate(LAYERS) for name in names}
MAX_LINES = {".py": 600, ".c": 900}


def modules() -> dict[str, Path]:
    """Each module of the package by its dotted name."""
    return {
        ".".join(p.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): p
        for p in sorted(PACKAGE.rglob("*.py"))
        if "templates" not in p.parts
    }


def imports(path: Path, ours: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, module of this package) for each import, those inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in ours else str(node.module) for name in full]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name in ours)


def part(module: str) -> str:
    """What of the package's own listing a module belongs to."""
    return [*module.split("."), "__init__"][1]


def test_every_part_of_the_package_has_its_place_in_the_order() -> None:
    assert {part(m) for m in modules()} == set(RANK) - {
        name for name in RANK if not list(PACKAGE.glob(f"{name}*"))
    }


def test_a_verdict_describes_no_log() -> None:
    """Its sides are observed before: an error of the description cannot pass for one of a side."""
    ours = modules()
    called = {
        name
        for module, path in ours.items()
        if part(module) == "judge"
        for _, name in imports(path, ours)
    }
    assert {"readers", "tracing"} & {part(name) for name in called} == set()
    assert "understudy.observations.observation" in called
    assert "understudy.observations.observed_logs" not in called


def test_no_import_goes_against_the_order() -> None:
    ours = modules()
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {part(module)} must not import {name}"
        for module, path in ours.items()
        if module != "understudy_skel.commands.skel"  # mounts the sub-commands of understudy skel
        for line, name in imports(path, ours)
        if (RANK[part(name)] > RANK[part(module)] and ".skel.commands" not in module)
        or (part(module), part(name)) in APART
    ]
    assert wrong == []


def test_the_core_imports_no_study_and_no_study_another() -> None:
    packages = [PACKAGE, *sorted(ROOT.glob("studies/*/understudy_*"))]
    assert len(packages) > 3
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for package in packages
        for path in sorted(package.rglob("*.py"))
        for name in re.findall(r"\bunderstudy_[a-z]+", path.read_text(encoding="utf-8"))
        if name != package.name and list(ROOT.glob(f"studies/*/{name}"))
    ]
    assert wrong == []


@pytest.mark.parametrize("package", FOLDERS)
def test_no_folder_of_a_package_imports_one_behind_it(package: str) -> None:
    ours = modules()
    prefix = f"understudy.{package}."
    rank = {name: i for i, names in enumerate(FOLDERS[package]) for name in names.split()}
    folders = {p.parent.name for p in (PACKAGE / package).glob("*/__init__.py")}
    assert folders <= set(rank)
    behind = len(rank)
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: must not import {name}"
        for module, path in ours.items()
        if module.startswith(prefix)
        for line, name in imports(path, ours)
        if name.startswith(prefix)
        and rank.get(name.removeprefix(prefix).split(".")[0], behind)
        > rank.get(module.removeprefix(prefix).split(".")[0], behind)
    ]
    assert wrong == []


def test_no_circle_of_imports() -> None:
    ours = modules()
    arrows = {m: {n for _, n in imports(p, ours) if n != m} for m, p in ours.items()}
    # An import of a package by its own modules is Python's way to reach a sibling.
    arrows = {m: {n for n in ns if not m.startswith(f"{n}.")} for m, ns in arrows.items()}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join((*above[above.index(module) :], module))
        if module in done:
            return
        for name in sorted(arrows[module]):
            visit(name, (*above, module))
        done.add(module)

    for module in ours:
        visit(module, ())


@pytest.mark.parametrize("suffix", MAX_LINES)
def test_a_long_file_says_why(suffix: str) -> None:
    """In its first paragraph: 'One file because ...'."""
    folders = [PACKAGE, ROOT / "proxies", ROOT / "studies"]
    sources = [
        path
        for folder in folders
        for path in folder.rglob(f"*{suffix}")
        if not {*path.parts} & ({"templates"} | ({"tests"} if suffix == ".py" else set()))
    ]
    assert len(sources) > 20
    long = [
        p for p in sources if len(p.read_text(encoding="utf-8").splitlines()) > MAX_LINES[suffix]
    ]
    silent = [
        str(p.relative_to(ROOT))
        for p in long
        if not re.search(r"\bOne file because\b", p.read_text(encoding="utf-8")[:1500])
    ]
    assert silent == []

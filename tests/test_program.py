"""What a workload means has one home: nothing else reads the keys that say so."""

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from understudy.cli import main
from understudy.contracts import workload
from understudy.paths import ROOT
from understudy.semantics.lowering import lower
from understudy.semantics.needs import needs
from understudy.semantics.program import Close, Files, InTurn, Open, Passes, flat
from understudy.semantics.text import text_of

PACKAGE = ROOT / "python" / "understudy"
KEYS = {
    "names",
    "reopen",
    "reads",
    "extends",
    "continues",
    "removes",
    "turns",
    "own_directories",
    "files_per_directory",
    "at",
    "passes",
    "pace",
    "files",
}
# Attributes of these names that are of other classes: modules, and what the attribute is taken of.
OTHERS = {
    "darshanlog": {"names", "files", "at"},
    "skel": {"names", "at"},
    "records": {"files"},
    "inference": {"names", "files", "at", "continues", "pace", "removes", "reopen"},  # of drafts
}
OBJECTS = {
    "block.dtype",
    "campaign",
    "change",
    "d",
    "found",
    "found_blocks",
    "importlib.metadata",
    "known",
    "log",
    "one",
    "paths",
    "producers",
    "references",
    "row",
    "self",
    "series",
    "super()",
    "v.change",
    "words",
    "workload",
    "workloads",
    "accesses.idle",
    "accesses.templates",
}
ALIKE = {"flood_streams: dump.files"}  # a dump of a flood, not of a stream


def reads(path: Path) -> list[tuple[int, str]]:
    """(line, expression) for each attribute of these names, and each question for the layout."""
    found = []
    part = path.relative_to(PACKAGE).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in KEYS:
            of = ast.unparse(node.value)
            stream = of.split(".")[-1] in ("stream", "s", "base", "dump", "variable", "v")
            known = of in OBJECTS or node.attr in OTHERS.get(part, ()) or of.startswith("np.")
            stream = stream and f"{path.stem}: {ast.unparse(node)}" not in ALIKE
            if isinstance(node.ctx, ast.Load) and (stream or not known):
                found.append((node.lineno, ast.unparse(node)))
        if isinstance(node, ast.Compare) and "'flood'" in ast.unparse(node):
            found.append((node.lineno, ast.unparse(node)))
    return found


def test_nothing_else_reads_the_keys_of_files() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if "semantics" not in path.parts
        for line, text in reads(path)
    ]
    assert wrong == []


def test_one_file_of_the_player_reads_the_keys_of_files() -> None:
    words = [f'"{key}"' for key in KEYS - {"files", "at"}]
    wrong = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in sorted((ROOT / "proxies" / "core").glob("*.[ch]"))
        if path.name not in ("program.c", "method.c")
        for word in words
        if word in path.read_text(encoding="utf-8")
    ]
    assert wrong == []


def program(name: str) -> str:
    return text_of(lower(workload.load(ROOT / "proxies" / "tests" / "samples" / name)))


def test_show_prints_the_program() -> None:
    path = ROOT / "workloads" / "n-m.json"
    result = CliRunner().invoke(main, ["show", "--program", str(path)])
    assert result.exit_code == 0
    assert result.output == text_of(lower(workload.load(path)))
    assert result.output.startswith("program n-m of 4 ranks\nset checkpoint: 1 file of each of 2")


@pytest.mark.parametrize("path", sorted((ROOT / "workloads").glob("*.json")), ids=lambda p: p.stem)
def test_a_program_opens_what_it_closes(path: Path) -> None:
    for thread in lower(workload.load(path)).threads:
        opened = [i for s in thread.steps for i in flat(s.body) if isinstance(i, Open)]
        closed = [i for s in thread.steps for i in flat(s.body) if isinstance(i, Close)]
        assert opened and (thread.closes or len(opened) == len(closed))


def test_a_program_is_as_long_as_its_descriptor(tmp_path: Path) -> None:
    row = json.loads((ROOT / "proxies/tests/samples/shared.json").read_text(encoding="utf-8"))
    stream = row["streams"][0]
    stream["dumps"] = [stream["dumps"][0] | {"repeat": {"count": 1_000_000, "period_s": 1}}]
    row["streams"] = [stream]
    made = lower(workload.build(row, "w"))
    assert len(made.threads[0].steps) == 1
    assert text_of(made).count("\n") < 20


def test_turns_passes_and_floods_are_loops() -> None:
    row = json.loads((ROOT / "proxies/tests/samples/single.json").read_text(encoding="utf-8"))
    base = row["streams"][0] | {"method": "posix", "sync": False}

    def body(**keys: object) -> list[type]:
        made = lower(workload.build(row | {"streams": [base | keys]}, "w"))
        return [type(i) for i in flat(made.threads[0].steps[0].body)]

    assert InTurn in body(turns=True, layout="shared", collective=False, groups=None)
    reading = {"operation": "read", "role": "input", "files": "new"}
    assert Passes in body(passes=3, **reading)
    rows = base["dumps"][0]["variables"][0] | {"decomposition": {"rule": "even"}}
    flood = {"layout": "flood", "groups": None, "collective": False}
    dumps = [base["dumps"][0] | {"variables": [rows]}]
    assert Files in body(dumps=dumps, **flood, **reading)


def test_needs_of_a_program() -> None:
    row = json.loads((ROOT / "proxies/tests/samples/single.json").read_text(encoding="utf-8"))
    base = row["streams"][0] | {"name": "s"}
    base["dumps"] = [base["dumps"][0] | {"time_s": time_s} for time_s in (0, 1, 2)]

    def found(**keys: object) -> frozenset[str]:
        return needs(lower(workload.build(row | {"streams": [base | keys]}, "w")))["s"]

    assert found() == frozenset()
    assert found(files="rewrite", names=2) == {"rewrite"}
    assert found(files="rewrite", names=3) == frozenset()
    assert found(files="update") == {"update"}
    assert found(files="append") == frozenset()
    assert found(files="append", reopen=True) == {"reopen"}
    assert found(write_through=True) == {"write_through"}

"""What a workload means has one home: nothing else reads the keys that say so."""

import ast
import json
import re
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
    "backup",
    "turns",
    "own_directories",
    "files_per_directory",
    "at",
    "passes",
    "pace",
    "files",
}
# Attributes of these names that are of other classes, as each module takes them.
OTHERS = {
    "commands/_show_log.py": "found.files",
    "commands/archive.py": "row.files",
    "commands/compare.py": "verdict.turns",
    "commands/show.py": "d.files",
    "darshanlog/archive.py": "made.files",
    "darshanlog/convert.py": "header.names made.files",
    "darshanlog/header.py": "header.names",
    "darshanlog/log.py": "self._header.names",
    "darshanlog/sizes.py": "self.files",
    "darshanlog/synthetic.py": "job.files self.files",
    "inference/accesses.py": "self.templates.names",
    "inference/counters.py": "ACCESS.names DATASET.names FLUSH.names",
    "inference/crosscheck.py": "gap.files",
    "inference/division.py": "edges.at",
    "inference/candidates.py": "evidence.files",
    "inference/drafts.py": "draft.files first.files one.files other.files self.files "
    "written.files",
    "inference/dumps.py": "draft.turned[k].continues",
    "inference/flood_streams.py": "d.files dump.files",
    "inference/floods.py": "found.at home.files templates.names",
    "inference/in_turn.py": "t.continues turn.continues",
    "inference/metadata.py": "found.at",
    "inference/names.py": "self.names",
    "inference/evidence.py": "self._templates.names",
    "inference/orders.py": "cell.files draft.names",
    "inference/pace.py": "draft.pace",
    "inference/pauses.py": "self.at",
    "inference/proofs.py": "draft.backup draft.files draft.names draft.pace draft.removes "
    "draft.reopen",
    "inference/rewrites.py": "c.files draft.files one.files other.files",
    "inference/role_of_stream.py": "draft.files",
    "inference/series.py": "c.files templates.names",
    "inference/skews.py": "draft.pace",
    "inference/small_inputs.py": "_pauses().at",
    "inference/spill.py": "batch.at",
    "inference/streams.py": "draft.backup draft.files draft.names draft.pace draft.removes "
    "draft.reopen",
    "inference/time_steps.py": "c.files d.files draft.files found.at pauses.cut_into().at",
    "judge/compare.py": "found_blocks.turns",
    "judge/observation.py": "known.names",
    "model/simulation.py": "series.files",
    "readers/darshan.py": "accesses.idle.files accesses.templates.names",
    "reframe/benchmark.py": "self.files",
    "reframe/operations.py": "self.files",
    "skel/blocks.py": "kind.names",
    "skel/bpfile.py": "self.names",
    "skel/bpindex.py": "index.at self.at",
    "skel/descriptor.py": "TEXT.names kind.names",
    "skel/expressions.py": "whole.names",
    "skel/generate.py": "expression.names self.names",
    "skel/parameters.py": "expressions.parse().names found.names found[n].names found[name].names",
    "skel/types.py": "kind.names",
}
# Texts that happen to be the name of a key.
WORDS = {("judge/headline.py", "reads"), ("judge/layers.py", "reads")}
AMBIGUOUS = {"files", "names", "at", "turns"}  # as texts


def modules() -> dict[str, ast.Module]:
    """Of the package, but for the one home."""
    return {
        str(path.relative_to(PACKAGE)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "semantics"
    }


def taken(module: ast.Module) -> set[str]:
    """What a module takes that has the name of a key: no methods, which keys are not, and not of
    NumPy's types of records."""
    called = {id(n.func) for n in ast.walk(module) if isinstance(n, ast.Call)}
    return {
        re.sub(r"\(.*\)", "()", ast.unparse(n))
        for n in ast.walk(module)
        if isinstance(n, ast.Attribute)
        and n.attr in KEYS
        and isinstance(n.ctx, ast.Load)
        and id(n) not in called
        and not ast.unparse(n).endswith("dtype.names")
    }


def test_nothing_else_reads_the_keys_of_files() -> None:
    found = {name: taken(module) for name, module in modules().items()}
    others = {name: set(known.split()) for name, known in OTHERS.items()}
    assert {name: some for name, some in found.items() if some} == others


def test_nothing_else_names_the_keys_of_files() -> None:
    found = {
        (name, n.value)
        for name, module in modules().items()
        for n in ast.walk(module)
        if isinstance(n, ast.Constant) and n.value in KEYS - AMBIGUOUS
    }
    assert found == WORDS


def test_nothing_else_asks_for_floods() -> None:
    wrong = [
        f"{name}:{n.lineno}: {ast.unparse(n)}"
        for name, module in modules().items()
        for n in ast.walk(module)
        if isinstance(n, ast.Compare) and "'flood'" in ast.unparse(n)
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
    looks_up = {"every_bytes": 1, "calls": 1, "transfer_bytes": 1}
    assert found(lookups=looks_up) == {"lookups"}

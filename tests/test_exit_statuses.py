"""The exit statuses that docs/tutorial/nightly.md tells, and what it does at night."""

import ast
import inspect
import os
import re
import signal
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest
from click.testing import CliRunner

from understudy import cli
from understudy.judge.comparison.case_comparison import Comparison
from understudy.judge.comparison.trend import Trend
from understudy.paths import ROOT

TEXT = (ROOT / "docs/tutorial/nightly.md").read_text(encoding="utf-8")
NAMED = {name: getattr(cli, name) for name in ("FAILED", "UNUSABLE", "UNDECIDED")}
JUDGED: dict[str, Any] = {"compare": Comparison.status, "trend": Trend.status}


def table() -> dict[str, set[int]]:
    """The statuses of each command besides 0 and 2."""
    lines = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")]
    head, _, *rows = ([cell.strip() for cell in line] for line in lines)
    assert head == ["command", "1", "3"]
    statuses_by_name: dict[str, set[int]] = {}
    for names, failed, undecided in rows:
        told = {status for status, text in ((1, failed), (3, undecided)) if text}
        for name in re.findall(r"`([a-z]+)[^`]*`", names):
            assert name not in statuses_by_name
            statuses_by_name[name] = told
    return statuses_by_name


def function_of(judged: Any) -> ast.AST:
    source = inspect.getsource(judged.fget if isinstance(judged, property) else judged)
    return ast.parse(textwrap.dedent(source))


def values(node: ast.AST, name: str, module: ModuleType, tree: ast.AST) -> Iterator[int]:
    """What an expression for a status can be; nothing of one that is unknown."""
    here: Callable[[ast.AST], Iterator[int]] = lambda node: values(node, name, module, tree)  # noqa: E731
    match node:
        case ast.Constant(value=int(number)):
            yield number
        case ast.Name(id=word) if word in NAMED:
            yield NAMED[word]
        case ast.Name(id=word):
            for other in ast.walk(tree):
                if isinstance(other, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == word for t in other.targets
                ):
                    yield from here(other.value)
        case ast.BoolOp(values=parts):
            for part in parts:
                yield from here(part)
        case ast.IfExp(body=branch, orelse=other):
            yield from here(branch)
            yield from here(other)
        case ast.Subscript(value=ast.Name(id=word)):
            yield from getattr(module, word).values()
        case ast.Call(func=ast.Attribute(attr="status")) | ast.Attribute(attr="status"):
            for inner in ast.walk(function_of(JUDGED[name])):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield from here(inner.value)


def statuses(name: str) -> set[int]:
    """Those with which a module of a command ends, by its source."""
    command = cli.main.get_command(click.Context(cli.main), name)
    assert command is not None
    modules = [inspect.getmodule(inspect.unwrap(c.callback)) for c in within(command)]
    returned = set()
    for module in filter(None, modules):
        tree = ast.parse(inspect.getsource(module))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("SystemExit", "sys.exit"):
                returned |= set(values(node.args[0], name, module, tree))
    return returned


def within(command: click.Command) -> Iterator[Any]:
    yield command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from within(below)


def test_the_table_has_every_command_and_its_statuses() -> None:
    told = table()
    names = cli.main.list_commands(click.Context(cli.main))
    assert sorted(told) == names
    of_code = {name: statuses(name) - {0, cli.UNUSABLE} for name in names}
    assert told == of_code
    assert of_code["compare"] == {1, 3}, "the code is understood"


def script() -> str:
    [text] = re.findall(r"^```bash\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize("failing", ["", "reframe", "understudy trend", "understudy metrics"])
def test_cron_mails_what_failed_and_else_nothing(failing: str, tmp_path: Path) -> None:
    for name in ("reframe", "understudy", "curl"):
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $*"\n[ {name} != curl ] || echo "$*" >"{tmp_path}/posted"\n'
            f'case "{name} $1" in "{failing or "none"}"*) exit 1 ;; esac\n'
        )
        program.chmod(0o755)
    (tmp_path / "setup-env.sh").touch()
    text = script().replace("/opt/understudy", str(tmp_path)).replace("/projects", str(tmp_path))
    env = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-c", text], env=env, capture_output=True, text=True, check=False
    )
    if not failing:
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert not (tmp_path / "posted").exists()
        return
    assert done.returncode == 1 and done.stderr == ""
    for words in ("reframe -c checks/ -r", "understudy trend", "understudy metrics"):
        assert words in done.stdout, "all of it ran"
    assert (tmp_path / "posted").read_text().endswith("http://hooks.example/storage\n")
    assert not list(tmp_path.glob("tmp.*"))


def test_an_interrupt_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("understudy.records.index.of_folder", interrupted)
    words = ["trend", "--fail", "--system", "sample", "--folder", "."]
    done = CliRunner().invoke(cli.main, words)
    assert (done.exit_code, done.stderr) == (128 + signal.SIGINT, "understudy: ended by SIGINT\n")

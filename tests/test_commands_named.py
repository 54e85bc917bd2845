"""The commands that pages, messages, help texts and documents name: each exists, with its options.

They are parsed by the command's own parser and not run. A name alone, such as `understudy accept`,
is a mention; a line or a code span with more words is a command, and has all that it requires.
"""

import ast
import html
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache

import click
import pytest

from tests.support import player
from understudy.cli import main
from understudy.paths import ROOT

PROGRAMS = ("understudy", "reframe", "understudy-replay", "understudy-storage")
START = rf"(?:{'|'.join(PROGRAMS)}) "
# Where a command begins: a line (of a help text behind "Example:", of a shell behind a prompt).
LINE = re.compile(
    r"^\s*(?:Examples?: |\$ |sudo )?(?:mpirun -n \S+ )?"
    rf"(?P<command>{START}[^\n:]*?)(?:  +#.*|\\n.*)?$",
    re.MULTILINE,
)
SPAN = re.compile(rf"(?:`|<code>)(?P<command>{START}[^`<]+)(?:`|</code>)")
BLOCK = re.compile(r"^ *```(?:sh|bash)?\n(.*?)^ *```", re.M | re.S)
SHELL = re.compile(r"\s*(?:[|;&>]|2>|\|\||#).*", re.S)
ANY = "X"  # what a program fills in


def documents() -> Iterator[tuple[str, str]]:
    """(place, command) of all documents: blocks of code, and spans."""
    for path in sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("*/README.md")]
    ):
        text = path.read_text(encoding="utf-8")
        for block in BLOCK.findall(text):
            whole = re.sub(r"\\\n *", "", block)
            yield from ((path.name, m["command"]) for m in LINE.finditer(whole))
        spans = " ".join(BLOCK.sub("", text).split())
        yield from ((path.name, m["command"]) for m in SPAN.finditer(spans))


def templates() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "reports" / "templates").glob("*.html")):
        text = re.sub(r"\{\{.*?\}\}", ANY, path.read_text(encoding="utf-8"))
        yield from ((path.name, html.unescape(m["command"])) for m in SPAN.finditer(text))


def texts(tree: ast.AST) -> Iterator[str]:
    """The strings of a module, with what is filled in as ANY."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (v.value if isinstance(v, ast.Constant) else ANY for v in node.values)
            yield "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"\{[a-z_]*\}", ANY, node.value)


def sources() -> Iterator[tuple[str, str]]:
    """Those of Python, C and shell: lines and spans of their strings."""
    folders = ("python", "checks", "configs", "reports/figures", "studies")
    for path in sorted(p for f in folders for p in (ROOT / f).rglob("*.py")):
        for text in texts(ast.parse(path.read_text(encoding="utf-8"))):
            for pattern in (LINE, SPAN):
                yield from ((path.name, m["command"]) for m in pattern.finditer(text))
    for path in sorted((ROOT / "proxies").rglob("*.[ch]")):
        for text in re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text(encoding="utf-8")):
            yield from ((path.name, m["command"]) for m in LINE.finditer(text))


@cache
def options_of(program: str) -> frozenset[str]:
    """Of a program that is no command of click: as its help lists them."""
    command = (
        player.program().replace("understudy-replay", program) if program != "reframe" else program
    )
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    return frozenset(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", done.stdout))


def fault(line: str) -> str:
    """Why there is no such command; empty if there is."""
    line = SHELL.sub("", line.replace("…", ANY)) if "'" not in line and '"' not in line else line
    try:
        words = shlex.split(line, comments=True)
    except ValueError:  # cut within quotes, as prose is
        words = line.split()
    words = [w for word in words if (w := word.strip("[]").rstrip(",.")) not in ("...", "|", "")]
    program, *rest = words
    if program != "understudy":
        options = options_of(program)
        wrong = [w for w in rest if re.match(r"--?[A-Za-z]", w) and not is_known(w, options)]
        return f"no option {wrong[0]}" if wrong else ""
    return fault_of_ours(rest)


def fault_of_ours(rest: list[str]) -> str:
    """The same of a command of understudy."""
    command: click.Command = main
    context = click.Context(main, info_name="understudy")
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        subcommand = command.get_command(context, rest[0])
        if subcommand is None and command.name == "accept":
            subcommand, rest = command.commands["judge"], ["judge", *rest]
        if subcommand is None and rest[0] == ANY:
            return ""
        if subcommand is None:
            return f"no command {rest[0]}"
        command, rest = subcommand, rest[1:]
        context = click.Context(command, parent=context, info_name=command.name)
    if not rest or isinstance(command, click.Group):
        return ""
    if all(word.startswith("-") for word in rest):  # names options, whose values do not matter
        variables = {
            name for p in command.get_params(context) for name in (*p.opts, *p.secondary_opts)
        }
        wrong = [word for word in rest if word.partition("=")[0] not in variables]
        return f"no option {wrong[0]}" if wrong else ""
    try:
        given, _, _ = command.make_parser(context).parse_args(list(rest))
    except click.UsageError as error:
        return error.format_message()
    lacks = [p.name for p in command.get_params(context) if p.required and not is_given(p, given)]
    return f"without {lacks[0]}" if lacks else ""


def is_given(parameter: click.Parameter, given: Mapping[str, object]) -> bool:
    """Whether the command line has a value; versions of click differ in what stands for none."""
    value = given.get(parameter.name or "")
    return isinstance(value, str) or (isinstance(value, list | tuple) and len(value) > 0)


def is_known(word: str, options: frozenset[str]) -> bool:
    name = word.partition("=")[0]
    return name in options or (not name.startswith("--") and name[:2] in options)


@pytest.mark.parametrize("of", [documents, templates, sources], ids=lambda f: f.__name__)
def test_every_command_exists(of: object) -> None:
    assert callable(of)
    commands = list(dict.fromkeys(of()))
    least = {"documents": 150, "templates": 2, "sources": 60}[of.__name__]
    assert len(commands) >= least, commands
    wrong = [(place, line, why) for place, line in commands if (why := fault(line))]
    assert not wrong, "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("understudy doctor --system s", "No such option"),
        ("understudy report --workload NAME", "without runs"),
        ("understudy judge x", "no command judge"),
        ("understudy-replay -w app.json --fast", "no option --fast"),
        ("reframe -r --sistem x", "no option --sistem"),
    ],
)
def test_one_that_does_not_is_found(line: str, why: str) -> None:
    assert why in fault(line)

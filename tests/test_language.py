"""Texts for users are plain English: no words that the style guide replaces, prose within 100
columns."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from understudy.cli import main
from understudy.paths import ROOT

MAX_COLUMNS = 100
# A word to avoid, and what to write instead.
AVOID = {
    r"\bmend(s|ed|ing)?\b": "fix, correct",
    r"\bwhoever\b": "the user, the program",
    r"\b(is|are) not to be had\b": "is not available",
    r"\b(has|have|had) nothing to say\b": "is missing",
    r"\bin one sentence\b": "with an error message",
    r"\b(the|a) room\b": "plugin directory",
    r"\bmak(e|es|ing) away\b": "remove",
    r"\bfor ever\b": "hang",
    r"\btoo secret\b": "sensitive",
    r"\bhow fast it took it\b": "bandwidth",
    r"\bknobs?\b": "variable, option",
    r"\bleaves? the house\b": "discloses",
    r"\bstands? there\b": "is there",
    r"\bmost (bytes|ranks|nodes) (of|on|that)\b": "maximum",
    r"\b(with|has|have|gives) the most\b": "maximum",
    r"\bthe least (?!significant)": "minimum",
    r"\bearlier states\b": "time steps",
}


def tracked(*patterns: str) -> list[Path]:
    """Files of the repository, or without git of the directory, that match."""
    command = ["git", "ls-files", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    paths = [ROOT / line for line in listed.stdout.splitlines()]
    paths = paths or [p for pattern in patterns for p in ROOT.rglob(pattern)]
    return [p for p in paths if "build" not in p.parts and p.exists()]


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for word in command.list_commands(context):
            below = command.get_command(context, word)
            assert below is not None
            yield from commands(below, f"{name} {word}")


DOCSTRING = re.compile(r'"{3}.*?"{3}', re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)+)"')
HELP = dict(commands(main, "understudy"))


def faults(text: str) -> list[str]:
    text = " ".join(text.split())
    return [
        f"{match[0]!r} in {text[max(0, match.start() - 40) : match.end() + 40]!r}: write {better}"
        for word, better in AVOID.items()
        for match in re.finditer(word, text, re.IGNORECASE)
    ]


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Lines that wrap: no code, tables or links on a line of their own."""
    code = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            code = not code
        elif not code and not line.startswith(("|", "    ")) and "](" not in line:
            yield number, line


@pytest.mark.parametrize("path", tracked("*.md"), ids=lambda p: str(p.relative_to(ROOT)))
def test_pages_are_plain_and_wrapped(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert faults(text) == []
    assert [n for n, line in prose(text) if len(line) > MAX_COLUMNS] == []


@pytest.mark.parametrize("name", HELP)
def test_help_is_plain(name: str) -> None:
    text = HELP[name].get_help(click.Context(HELP[name], info_name=name))
    assert text.startswith("Usage:")
    assert faults(text) == []


def source_texts() -> Iterator[tuple[Path, str]]:
    """Docstrings and literals of Python, comments and literals of C; literals of tests, such as
    the words of this file, are none of users'."""
    sources = [p for p in tracked("*.py", "*.c", "*.h") if p != Path(__file__).resolve()]
    for path in sources:
        text = path.read_text("utf-8")
        prose = DOCSTRING if path.suffix == ".py" else COMMENT
        yield from ((path, each) for each in prose.findall(text))
        if path.relative_to(ROOT).parts[0] in ("python", "proxies", "studies"):
            yield from ((path, each) for each in LITERAL.findall(DOCSTRING.sub("", text)))


def test_docstrings_comments_and_messages_are_plain() -> None:
    texts = list(source_texts())
    assert len(texts) > 2000
    wrong = [f"{path.relative_to(ROOT)}: {each}" for path, t in texts for each in faults(t)]
    assert wrong == []


def test_what_is_to_be_avoided_is_found() -> None:
    assert faults("Whoever mends it") and faults("the knob of\nthe room")
    assert faults("The check fails with an error message.") == []

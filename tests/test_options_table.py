"""The player takes what docs/reference/options.md says of it, word by word."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.support import player
from understudy.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "options.md"
WORKLOAD = ROOT / "proxies" / "tests" / "samples" / "file-per-process.json"


def commands() -> list[str]:
    """The last cell of each row."""
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    cells = [row.strip("|").split("|")[-1].strip() for row in rows]
    return [cell.strip("`") for cell in cells if cell.startswith("`")]


def test_table_has_rows() -> None:
    assert len(commands()) > 15


@pytest.mark.parametrize("command", commands())
def test_row_is_taken(command: str, tmp_path: Path) -> None:
    """Where its method was built; else that is what is wrong."""
    words = shlex.split(command)
    method = words[words.index("-a") + 1] if "-a" in words else "posix"
    line = [player.program(), "-w", str(WORKLOAD), "-o", "run", *words, "--dry-run"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    offers = subprocess.run(
        [player.program(), "--list"], capture_output=True, text=True, check=True
    )
    if re.search(rf"(?m)^{method} +unavailable: ", offers.stdout):
        assert done.returncode == 2 and method in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_options_are_of_the_player() -> None:
    """Also those of the prose."""
    done = subprocess.run([player.program(), "--help"], capture_output=True, text=True, check=True)
    options = set(re.findall(r"(?<!\S)--?[a-zA-Z][a-z-]*", done.stdout.replace(",", " ")))
    prose = PAGE.read_text(encoding="utf-8").partition("\nFiles, ")[2].replace("(IOR: `-j`)", "")
    named = set(re.findall(r"`(--?[a-zA-Z][a-z-]*)", " ".join(map("`{}`".format, commands()))))
    named |= set(re.findall(r"`(--?[a-zA-Z][a-z-]*)", prose))
    assert named <= options, named - options

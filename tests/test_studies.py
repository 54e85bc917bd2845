"""Studies that a distribution names: what is wrong with one is told, and the core goes on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.paths import ROOT
from understudy.release import version


def install(folder: Path, target: str, files: dict[str, str], number: str) -> None:
    """A distribution that names the package `target` as its study."""
    about = folder / "und_study-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: und-study\nVersion: {number}\n")
    (about / "entry_points.txt").write_text(f"[understudy.studies]\nours = {target}\n")
    for name, text in files.items():
        path = folder / target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def understudy(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    path = f"{folder}:{ROOT / 'python'}"
    return subprocess.run(
        [sys.executable, "-m", "understudy", *arguments],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


COMMAND = "import click\n@click.command()\ndef command() -> None:\n    print('hello')\n"


def test_a_study_brings_commands(tmp_path: Path) -> None:
    files = {"__init__.py": "", "commands/__init__.py": "", "commands/greet.py": COMMAND}
    install(tmp_path, "und_greeting", files, version())
    done = understudy(tmp_path, "greet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


@pytest.mark.parametrize("target", ["no_such_package", ":::", "no_such_package:attribute"])
def test_a_study_without_its_package_is_told_and_left_out(target: str, tmp_path: Path) -> None:
    install(tmp_path, target.partition(":")[0] or "x", {}, version())
    (tmp_path / "und_study-1.dist-info" / "entry_points.txt").write_text(
        f"[understudy.studies]\nours = {target}\n"
    )
    done = understudy(tmp_path, "--version")
    assert done.returncode == 0 and done.stdout
    assert (
        done.stderr.startswith("understudy: study ours: left out") and "und-study" in done.stderr
    )
    assert done.stderr.count("\n") == 1


def test_a_study_of_another_version_is_told(tmp_path: Path) -> None:
    install(tmp_path, "und_old", {"__init__.py": ""}, "0.0.1")
    done = understudy(tmp_path, "--version")
    assert done.returncode == 0
    assert done.stderr.startswith(f"understudy: und-study 0.0.1: expected {version()}")


def test_a_name_that_is_taken_is_told_and_left_out(tmp_path: Path) -> None:
    files = {"__init__.py": "", "commands/__init__.py": "", "commands/doctor.py": COMMAND}
    install(tmp_path, "und_greeting", files, version())
    done = understudy(tmp_path, "doctor", "--paths", "root")
    assert done.returncode == 0 and "hello" not in done.stdout
    assert "und_greeting.commands.doctor: left out" in done.stderr


@pytest.mark.parametrize("text", ["raise ValueError('x')", "import sys; sys.exit(0)", "def"])
def test_a_study_that_cannot_be_loaded_is_one_message(text: str, tmp_path: Path) -> None:
    files = {"__init__.py": "", "commands/__init__.py": "", "commands/greet.py": text}
    install(tmp_path, "und_greeting", files, version())
    done = understudy(tmp_path, "greet")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("understudy: ") and "Traceback" not in done.stderr


def test_a_page_without_an_addition_is_one_message(tmp_path: Path) -> None:
    install(tmp_path, "und_greeting", {"__init__.py": "", "page.py": "ADDITION = 3\n"}, version())
    code = "from understudy.report import page\npage.render([])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT / 'python'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "page.py: ADDITION: expected an Addition" in done.stderr

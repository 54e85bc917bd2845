"""Directories of logs: what is left out is counted and named, by describe and by rank."""

import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.readers.synthetic import Run
from tests.support.said import raises, said
from understudy.cli import main
from understudy.darshanlog import logs_below
from understudy.errors import UnderstudyError

MIB = 1 << 20


def log(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    run = Run(nprocs=1)
    run.write("/s/out", MIB, 2.0, rank=0)
    return run.log(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with one log, and with five entries that are left out."""
    logs = tmp_path / "logs"
    log(logs / "a" / "good.darshan")
    (logs / "run_id7.darshan_partial").write_bytes(b"")
    (logs / "gone.darshan").symlink_to(logs / "nothing")
    (logs / "elsewhere").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(logs / "pipe.darshan")
    log(logs / "closed" / "b.darshan")
    (logs / "notes.txt").write_text("no log")
    return logs


@pytest.fixture
def closed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A directory that nobody, root included, can read."""
    name, scan = str(folder / "closed"), os.scandir

    def refuse(path: Any) -> Any:
        if str(path) == name:
            raise PermissionError(13, "Permission denied", name)
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return name


@pytest.mark.parametrize("command", ["describe", "rank"])
def test_what_is_left_out_is_counted_and_named(command: str, folder: Path, closed: str) -> None:
    done = CliRunner().invoke(main, [command, str(folder)])
    assert done.exit_code == 0, done.output
    lines = done.stderr.splitlines()[:6]
    for name, why in (
        (closed, "cannot be read: Permission denied"),
        (f"{folder}/elsewhere", "a link to a directory"),
        (f"{folder}/gone.darshan", "broken link: No such file"),
        (f"{folder}/pipe.darshan", "expected a regular file"),
        (f"{folder}/run_id7.darshan_partial", "not yet a log: its program still runs"),
    ):
        assert any(line.startswith(f"understudy: {name}: {why}") for line in lines), name
    said("left-out-directories", lines[5])
    assert "notes.txt" not in done.stderr


def test_many_that_are_left_out_are_counted(folder: Path) -> None:
    for n in range(40):
        (folder / f"{n}.darshan_partial").write_bytes(b"")
    done = CliRunner().invoke(main, ["rank", str(folder)])
    lines = done.stderr.splitlines()
    assert done.exit_code == 0 and len(lines) == 22  # 20 and the count; a copy of a log
    said("left-out-directories-them", lines[20])


def test_a_directory_without_a_log_says_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "x.darshan_partial").write_bytes(b"")
    with raises(UnderstudyError, "expected-least-one-file"):
        logs_below(tmp_path)


@pytest.mark.parametrize("command", ["describe", "rank", "fidelity", "show"])
def test_names_of_files_are_no_lines_and_no_escapes(command: str, tmp_path: Path) -> None:
    logs = tmp_path / "a\nunderstudy: all well\x1b[2J"
    logs.mkdir()
    (logs / "b\nc\x1b.darshan_partial").write_bytes(b"")
    bad = logs / "d\n\x1b.darshan"
    bad.write_bytes(b"no log")
    given = {"describe": [logs], "rank": [logs], "fidelity": [bad, bad], "show": [bad]}[command]
    done = CliRunner().invoke(main, [command, *map(str, given)])
    assert done.exit_code
    assert "\x1b" not in done.output and "\\x1b" in done.stderr
    assert all(line.startswith("understudy: ") for line in done.stderr.splitlines())
    assert "\nunderstudy: all well" not in done.output

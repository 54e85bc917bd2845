"""Inputs that are no regular files are refused with one message: a FIFO to which nobody writes
would hang."""

import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import results as samples
from tests.support.said import raises, said
from understudy.contracts import human, schema
from understudy.errors import UnderstudyError
from understudy.records import ledger, store
from understudy.reframe.bases import references
from understudy_papers.judge import claims

TIMEOUT_S = 120  # a command that waits for the input would never end
COMMANDS = {
    "show": ["show", "{bad}"],
    "show log": ["show", "{bad}.darshan"],
    "scale": ["describe", "{bad}.json", "-n", "2", "--rule", "weak"],
    "predict": ["show", "{bad}", "--counters"],
    "export": ["export", "{bad}", "-o", "x.tar.gz"],
    "describe": ["describe", "{bad}"],
    "describe xml": ["describe", "{bad}.xml"],
    "fidelity": ["fidelity", "{bad}", "{bad}"],
    "migrate": ["records", "migrate", "{bad}"],
    "report": ["report", "{bad}"],
    "compare": ["compare", "{bad}", "{bad}"],
    "accept": ["accept", "{bad}.yaml", "."],
    "skel xml": ["skel", "xml", "{bad}.xml"],
    "skel make xml": ["skel", "make", "{bad}.xml"],
    "skel make": ["skel", "make", "{bad}.bp"],
    "skel replay": ["skel", "replay", "{bad}.bp"],
    "records import": ["records", "import", "{bad}"],
    "run": ["run", "{bad}"],
}


def special(kind: str, path: Path) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path.relative_to(Path.cwd())))


def understudy(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "understudy", *arguments],
        cwd=folder,
        env=os.environ | {"UNDERSTUDY_OUTPUT": str(folder / "out")},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_fifo_is_no_input(name: str, tmp_path: Path) -> None:
    words = [word.format(bad="bad") for word in COMMANDS[name]]
    for word in words:
        if word.startswith("bad") and not (tmp_path / word).exists():
            special("fifo", tmp_path / word)
    done = understudy(tmp_path, *words)
    assert done.returncode != 0 and "bad" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "x.tar.gz").exists()


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "directory"])
def test_a_special_file_is_no_document(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    special(kind, tmp_path / "bad")
    with pytest.raises(UnderstudyError, match=r"bad: cannot read the record: \w"):
        schema.read(tmp_path / "bad", "record")


@pytest.mark.parametrize("kind", ["fifo", "device", "directory"])
def test_a_special_file_is_no_ledger(kind: str, tmp_path: Path) -> None:
    """Neither one that is verified nor one that is continued."""
    folder = tmp_path / "records"
    folder.mkdir()
    special(kind, folder / ledger.FILE)
    done = understudy(tmp_path, "records", "verify", "--folder", str(folder))
    assert done.returncode == 2, done.stdout
    assert done.stderr.count("\n") == 1 and str(folder / ledger.FILE) in done.stderr
    source = samples.write(samples.result(samples.per_process()), tmp_path / "a" / "result.json")
    done = understudy(tmp_path, "records", "import", str(source), "--folder", str(folder))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    assert f"{folder / ledger.FILE}: " in done.stderr


def test_a_fifo_among_records_is_left_out(tmp_path: Path) -> None:
    source = samples.write(samples.result(samples.per_process()), tmp_path / "a" / "result.json")
    folder = tmp_path / "records"
    assert understudy(tmp_path, "records", "import", str(source), "--folder", str(folder)).stdout
    os.mkfifo(folder / store.NO_SESSION / "bad.json.gz")
    os.mkfifo(tmp_path / "a" / "run.json")
    for words in (["records", "list", "--folder", str(folder)], ["report", str(tmp_path / "a")]):
        done = understudy(tmp_path, *words)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["systems", "figures", "references"])
def test_a_fifo_is_no_plugin(kind: str, tmp_path: Path) -> None:
    source = samples.write(samples.result(samples.per_process()), tmp_path / "result.json")
    folder = tmp_path / "site" / kind
    folder.mkdir(parents=True)
    os.mkfifo(folder / ("bad.yaml" if kind == "references" else "bad.py"))
    program = [sys.executable, "-m", "understudy", "report", str(source)]
    if kind == "systems":
        settings = "from understudy.paths import where; print(where('config'))"
        config = subprocess.run(
            [sys.executable, "-c", settings], capture_output=True, text=True, check=True
        ).stdout.strip()
        program = [str(Path(sys.executable).parent / "reframe"), "-C", config, "-l"]
    done = subprocess.run(
        program,
        cwd=tmp_path,
        env=os.environ
        | {"UNDERSTUDY_PATH": str(tmp_path / "site"), "UNDERSTUDY_OUTPUT": str(tmp_path / "out")},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode != 0 and said("no-regular-file", done.stderr), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("where", ["marks", "claims", "references"])
def test_yaml_that_is_nested_deep_is_refused_at_once(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyYAML looks at the levels above for each token; it gets few of 100,000."""
    path = tmp_path / "x.yaml"
    path.write_text(f"Claims: {'[' * 100_000}{']' * 100_000}\n")
    scanned = []
    fetch = yaml.SafeLoader.fetch_more_tokens

    def counted(loader: Any) -> Any:
        scanned.append(1)
        return fetch(loader)

    monkeypatch.setattr(yaml.SafeLoader, "fetch_more_tokens", counted)
    read = {
        "marks": lambda: human.load(path, "acceptance"),
        "claims": lambda: claims.load(path),
        "references": lambda: references.read(path),
    }[where]
    with raises((UnderstudyError, SystemExit), "yaml-nested-more-than"):
        read()
    assert 0 < len(scanned) < 5_000


def test_a_loop_of_links_is_one_message(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for command in ("report", "show", "describe", "records migrate", "export"):
        done = understudy(tmp_path, *command.split(), "a")
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("understudy: ") and done.stderr.count("\n") == 1
        words = ("Symlink loop", "levels of symbolic links", "no such file or folder")
        assert any(word in done.stderr for word in words)

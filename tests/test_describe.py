"""The command `understudy describe`, as its how-to shows it and on every real log at hand."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.darshanlog.corpus import real_logs
from tests.readers.logs import TRACES
from understudy.cli import main
from understudy.darshanlog import open_log
from understudy.paths import ROOT
from understudy.workload import load, numbers, parse, provenance_of

HOW_TO = ROOT / "docs" / "how-to" / "describe-a-log.md"
LOG = str(TRACES / "mphys_dyn.darshan")
REASONS = (
    r"is incomplete: Darshan ran out of memory|holds no records of files|not a Darshan log|"
    r"no file of the application moved a byte"
)


def test_it_prints_what_it_would_write(tmp_path: Path) -> None:
    out = tmp_path / "app.json"
    printed = CliRunner().invoke(main, ["describe", LOG, "--name", "app"])
    written = CliRunner().invoke(main, ["describe", LOG, "-o", str(out)])
    assert (printed.exit_code, written.exit_code, written.output) == (0, 0, "")
    assert printed.stdout == out.read_text()
    assert load(out).name == "app"


def test_standard_error_is_empty_where_nobody_looks(tmp_path: Path) -> None:
    """No progress into a file or a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "describe", LOG],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ranks"] == 4


def test_a_log_by_any_other_name(tmp_path: Path) -> None:
    other = tmp_path / "archived"
    other.write_bytes(Path(LOG).read_bytes())
    same = [CliRunner().invoke(main, ["describe", str(p)]).stdout for p in (LOG, other)]
    assert same[0] == same[1]


def test_help_says_what_becomes_of_names() -> None:
    text = " ".join(CliRunner().invoke(main, ["describe", "--help"]).stdout.split())
    assert "nothing of the source's names, paths, users or hosts gets into the workload" in text
    assert "Example: understudy describe app.darshan -o app.json" in text


def test_there_are_real_logs() -> None:
    assert len(real_logs()) >= 10


@pytest.mark.parametrize("path", real_logs(), ids=lambda p: p.stem)
def test_every_real_log_is_described_or_refused_in_one_sentence(path: Path) -> None:
    done = CliRunner().invoke(main, ["describe", "--partial", str(path)])
    if done.exit_code:
        assert done.exit_code == 1, done.exception
        assert done.stderr.count("\n") == 1 and re.search(REASONS, done.stderr), done.stderr
        return
    made = parse(done.stdout, path.name)
    with open_log(path) as log:
        assert made.ranks == log.job.nprocs
        assert (made.source.format, made.source.version) == ("darshan", log.version)
    assert made.bytes > 0
    assert all(provenance_of(made, pointer) for pointer in numbers(made))
    for stream in made.streams:
        assert all(dump.bytes > 0 for dump in stream.dumps)
        assert all(dump.time_s < 1e7 for dump in stream.dumps)


def test_the_how_to_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run, one after another."""
    (tmp_path / "traces").symlink_to(TRACES)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"(?ms)^```sh\n(.*?)```", HOW_TO.read_text())
    lines = [line.partition("  #")[0] for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("understudy ")]
    assert len(commands) >= 4
    for command in commands:
        done = CliRunner().invoke(main, command[1:])
        assert done.exit_code == 0, (command, done.output)

"""The command `understudy describe`, as its how-to shows it and on every real log at hand."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.darshanlog.corpus import real_logs
from tests.readers.logs import TRACES
from tests.support.said import said
from understudy.cli import main
from understudy.contracts.workload import load, numbers, parse, provenance_of
from understudy.darshanlog import open_log
from understudy.paths import ROOT

HOW_TO = ROOT / "docs" / "how-to" / "describe-a-log.md"
LOG = str(TRACES / "mphys_dyn.darshan")
STANDS = (  # of which lines are wrapped
    r"explained:\s[\d.]+\s%\sof\sthe\sI/O\stime\sof\sthe\slog\n"
    r"(contradicted:\s[\d.]+\s%:\s[^\0]*\spredicted,\s[^\0]*counted[^\0]*\n)?"
    r"(not\sknown:\s[\d.]+\s%:\s[^\0]*\stells\sit[^\0]*\n)?"
    r"not\sknown:\scalls\sthat\sDarshan\sdoes\snot\scount,[^\0]*\stells\s+them\n"
    r"(traced:\seach\sread[^\0]*as\sit\s+was\n)?"
    r"unsure:\s(no value is a guess|\d+ of \d+ values are guesses: [^:]*--why)\n"
    r"(unsure:\s[^\0]*\n)?expect:\sOf \d+ measured[^\0]*\.\n"
)
REASONS = (
    r"is incomplete: Darshan ran out of memory|holds no records of files|not a Darshan log|"
    r"no file of the application moved a byte"
)


def describe(*words: object) -> Result:
    return CliRunner().invoke(main, ["describe", *map(str, words)])


def test_it_prints_what_it_would_write_of_a_log_by_any_name(tmp_path: Path) -> None:
    out, other = tmp_path / "app.json", tmp_path / "archived"
    other.write_bytes(Path(LOG).read_bytes())
    printed, written = describe(LOG, "--name", "app"), describe(LOG, "-o", out)
    assert (printed.exit_code, written.exit_code, written.stdout) == (0, 0, "")
    assert printed.stdout == out.read_text()
    assert load(out).name == "app"
    assert describe(other, "--name", "app").stdout == printed.stdout


USUAL = "mkarrels_lmp-gpu_id4817263-90125_11-21-33190-17_1.darshan"  # as Darshan names a log


STEMS = [Path(USUAL).stem, f"{Path(USUAL).stem}-small", "mkarrels", "run-of-mkarrels", "lmp-gpu"]


@pytest.mark.parametrize("stem", [*STEMS, "gpu", "job4817263", "90125", "LMP_run"])
def test_a_name_that_repeats_the_log_is_not_used(stem: str, tmp_path: Path) -> None:
    log, out = tmp_path / USUAL, tmp_path / f"{stem}.json"
    log.write_bytes(Path(LOG).read_bytes())
    done = describe(log, "-o", out)
    assert done.exit_code == 0
    assert re.fullmatch(
        rf"understudy: {re.escape(str(out))}: the file name repeats '[^']+' of the log, so the "
        r"workload is named darshan-4-ranks; choose a name with --name\n" + STANDS,
        done.stderr,
    )
    assert load(out).name == "darshan-4-ranks"
    assert stem not in out.read_text()


def test_other_names_are_kept(tmp_path: Path) -> None:
    """One that repeats the log if it is asked for, also where a log has been renamed: its
    executable and user are still in it."""
    usual, renamed = tmp_path / USUAL, tmp_path / "gpu.darshan"
    for log in (usual, renamed):
        log.write_bytes(Path(LOG).read_bytes())
    for log, stem, name, options in (
        (usual, usual.stem, usual.stem, ["--keep-names"]),
        (usual, usual.stem, usual.stem, ["--name", usual.stem]),
        (renamed, "plume", "plume", []),
        (renamed, "gpu", "darshan-4-ranks", []),
    ):
        out = tmp_path / f"{stem}.json"
        done = describe(log, "-o", out, "-f", *options)
        assert (done.exit_code, load(out).name) == (0, name)
        assert log == renamed or re.fullmatch(STANDS, done.stderr)


def test_standard_error_has_one_line_where_nobody_looks(tmp_path: Path) -> None:
    """No progress into a file or a pipe, only what the workload explains."""
    done = subprocess.run(
        [sys.executable, "-m", "understudy", "describe", LOG],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and re.fullmatch(STANDS, done.stderr), done.stderr
    assert json.loads(done.stdout)["ranks"] == 4


def test_help_says_what_becomes_of_names() -> None:
    text = " ".join(describe("--help").stdout.split())
    said("workload-contains-no-name", text)
    said("example-describe-app-darshan", text)


assert len(real_logs()) >= 10


@pytest.mark.parametrize("path", real_logs(), ids=lambda p: p.stem)
def test_every_real_log_is_described_or_refused_in_one_message(path: Path) -> None:
    done = describe("--partial", path)
    if done.exit_code:
        assert done.exit_code == 2, done.exception
        assert done.stderr.count("\n") == 1 and re.search(REASONS, done.stderr), done.stderr
        return
    described = parse(done.stdout, path.name)
    assert re.fullmatch(STANDS, done.stderr)
    assert described.source is not None
    shares = [float(x) for x in re.findall(r"^[a-z ]+: ([\d.]+) %", done.stderr, re.M)]
    assert sum(shares) == pytest.approx(100, abs=0.1)
    differ = [note for note in described.source.notes if note.startswith("Contradicted: ")]
    assert ("contradicted: " in done.stderr) == bool(differ)
    assert max(map(len, done.stderr.splitlines())) <= 80
    with open_log(path) as log:
        assert described.ranks == log.job.nprocs
        assert (described.source.format, described.source.version) == ("darshan", log.version)
    assert described.bytes > 0
    assert all(provenance_of(described, pointer) for pointer in numbers(described))
    for stream in described.streams:
        assert all(dump.bytes > 0 or dump.operations for dump in stream.steps)
        assert all(dump.time_s < 1e7 for dump in stream.steps)


def test_the_how_to_is_true(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands run, one after another."""
    (tmp_path / "traces").symlink_to(TRACES)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"(?ms)^```sh\n(.*?)```", HOW_TO.read_text())
    lines = [line.partition("  #")[0] for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line) for line in lines if line.startswith("understudy ")]
    assert len(commands) >= 4
    for command in commands:
        done = CliRunner().invoke(main, command[1:])
        assert done.exit_code == 0, (command, done.output)


@pytest.mark.parametrize("more", [["-n", "8"], ["--rule", "weak"]])
def test_a_workload_is_scaled_by_a_rule_to_ranks(more: list[str]) -> None:
    source = ROOT / "docs" / "by-hand.json"
    done = describe(source, *more)
    assert done.exit_code == 2 and done.stdout == ""
    assert done.stderr == f"understudy: {source}: expected -n and --rule together, or neither\n"


def test_a_described_workload_keeps_its_name_unless_another_is_given(tmp_path: Path) -> None:
    source = ROOT / "workloads" / "n-m.json"
    for more, name in (([], "n-m"), (["--name", "other"], "other")):
        out = tmp_path / f"{name}-x.json"
        done = describe(source, *more, "-o", out)
        assert done.exit_code == 0, done.output
        assert load(out).name == name

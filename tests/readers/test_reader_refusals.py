"""What cannot be described is refused with one message and its remedy; nothing is left."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.readers.logs import PARTIAL, TRACES
from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.cli import main
from understudy.contracts.workload import load
from understudy.darshanlog.writer import write_log


def empty(path: Path) -> Path:
    path.touch()
    return path


def text(path: Path) -> Path:
    path.write_text("a table of numbers, not a log\n")
    return path


def truncated(path: Path) -> Path:
    path.write_bytes((TRACES / "mphys_dyn.darshan").read_bytes()[:4000])
    return path


def short(path: Path) -> Path:
    path.write_bytes((TRACES / "mphys_dyn.darshan").read_bytes()[:100])
    return path


def newer_module(path: Path) -> Path:
    run = Run(module_versions={"POSIX": 9})
    run.write("/s/a", 1000, 1.0)
    return run.log(path)


def no_records(path: Path) -> Path:
    return write_log(path)


def no_bytes(path: Path) -> Path:
    run = Run()
    run.write("/s/a", 0, 1.0, OPENS=0)
    return run.log(path)


def other_modules(path: Path) -> Path:
    run = Run(raw={16: (1, b"\0" * 64)})
    run.write("/s/a", 0, 1.0, OPENS=0)
    return run.log(path)


def no_ranks(path: Path) -> Path:
    run = Run(nprocs=0)
    run.write("/s/a", 1000, 1.0)
    return run.log(path)


def partial(path: Path) -> Path:
    path.write_bytes(PARTIAL.read_bytes())
    return path


def missing(path: Path) -> Path:
    return path


MODULES = "POSIX, MPI-IO, STDIO, H5F, H5D"
MESSAGES = {
    empty: "the file is empty, expected a Darshan log",
    text: "not a Darshan log: it starts with b'a table ', expected a version such as '3.41'",
    truncated: "truncated Darshan log: ",  # where depends on the log
    short: "truncated Darshan log: its header takes 1328 bytes, the file has 100",
    newer_module: "module POSIX version 9 is not known, expected one of 1, 2, 3, 4; "
    "a newer version of understudy may support it",
    no_records: "holds no records of files (modules: none); expected POSIX, MPI-IO, STDIO or H5D",
    no_bytes: f"no file of the application moved a byte in {MODULES} of this log: "
    "nothing to replay",
    other_modules: f"no file of the application moved a byte in {MODULES} of this log, "
    "and its modules DFS are not decoded: nothing to replay",
    no_ranks: "the job record has 0 processes, expected 1 to 16777216",
    partial: "module POSIX is incomplete: Darshan ran out of memory for records and left out "
    "later files; record it again with more memory (environment DARSHAN_MODMEM=64, in MiB, and a "
    "line 'MAX_RECORDS 20000 *' in the file that DARSHAN_CONFIG_PATH "
    "names), or describe what is there with --partial",
    missing: "cannot be opened: No such file or directory",
}


def expected(log: Path, message: str, stderr: str) -> None:
    assert stderr.startswith(f"understudy: {log}: {message}"), stderr
    assert stderr.endswith("\n") and stderr.count("\n") == 1, stderr
    if not message.endswith(" "):
        assert stderr == f"understudy: {log}: {message}\n"


@pytest.mark.parametrize("make", MESSAGES, ids=lambda make: make.__name__)
def test_a_refusal_is_one_message(make: object, tmp_path: Path) -> None:
    assert callable(make)
    log, out = make(tmp_path / "x.darshan"), tmp_path / "out.json"
    done = CliRunner().invoke(main, ["describe", str(log), "-o", str(out)])
    assert (done.exit_code, done.stdout) == (2, "")
    expected(log, MESSAGES[make], done.stderr)
    assert not list(tmp_path.glob("*out.json*")), "no output, whole or half"


@pytest.mark.parametrize("make", [empty, truncated, partial, no_records], ids=lambda m: m.__name__)
def test_a_refusal_of_the_program_itself(make: object, tmp_path: Path) -> None:
    assert callable(make)
    log = make(tmp_path / "x.darshan")
    command = [sys.executable, "-m", "understudy", "describe", log, "-o", tmp_path / "out.json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    expected(log, MESSAGES[make], done.stderr)
    assert sorted(tmp_path.iterdir()) == [log]


@pytest.mark.parametrize("cut", [200, 1400, 2500, 3500, 5000, 8000])
def test_a_log_cut_anywhere_is_one_message(cut: int, tmp_path: Path) -> None:
    log = tmp_path / "x.darshan"
    log.write_bytes((TRACES / "lammps_growth.darshan").read_bytes()[:cut])
    done = CliRunner().invoke(main, ["describe", str(log)])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    said("truncated-darshan-log", done.stderr, log=log)


def test_damaged_data_is_one_message(tmp_path: Path) -> None:
    log, data = tmp_path / "x.darshan", bytearray((TRACES / "mphys_dyn.darshan").read_bytes())
    data[len(data) // 2 : len(data) // 2 + 64] = bytes(64)
    log.write_bytes(data)
    done = CliRunner().invoke(main, ["describe", str(log), "-o", str(tmp_path / "out.json")])
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"understudy: {log}: ")
    assert sorted(tmp_path.iterdir()) == [log]


def test_partial_describes_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = CliRunner().invoke(main, ["describe", "--partial", str(PARTIAL), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert any("POSIX is incomplete" in note for note in load(out).source.notes)


def test_an_output_is_not_replaced_unless_told(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine")
    arguments = ["describe", str(TRACES / "mphys_dyn.darshan"), "-o", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    said("exists-already-choose-another", done.stderr, out=out)
    assert out.read_text() == "mine"
    assert CliRunner().invoke(main, [*arguments, "--force"]).exit_code == 0
    assert load(out).name == "out"


def test_an_output_that_cannot_be_written_is_one_message(tmp_path: Path) -> None:
    out = tmp_path / "none" / "out.json"
    done = CliRunner().invoke(
        main, ["describe", str(TRACES / "mphys_dyn.darshan"), "-o", str(out)]
    )
    assert done.exit_code == 2
    said("cannot-written-no-such", done.stderr, out=out)


def test_names_that_the_contract_does_not_allow(tmp_path: Path) -> None:
    log = str(TRACES / "mphys_dyn.darshan")
    done = CliRunner().invoke(main, ["describe", log, "--name", "my run"])
    assert done.exit_code == 2
    said("name-my-run-expected", done.stderr)
    out = tmp_path / "my run (2).json"
    assert CliRunner().invoke(main, ["describe", log, "-o", str(out)]).exit_code == 0
    assert load(out).name == "my-run-2"

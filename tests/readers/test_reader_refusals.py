"""What cannot be described is refused with one message and its remedy; nothing is left."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.readers.logs import PARTIAL, TRACES
from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.cli import main
from understudy.contracts.workload import load
from understudy.darshanlog.writer import write_log

LOG = TRACES / "mphys_dyn.darshan"
DATA = LOG.read_bytes()


def run(size: int = 1000, counters: dict[str, int] | None = None, **options: Any) -> Run:
    application = Run(**options)
    application.write("/s/a", size, 1.0, **(counters or {}))
    return application


def idle(**options: Any) -> Run:
    return run(0, {"OPENS": 0}, **options)


MODULES = "POSIX, MPI-IO, STDIO, H5F, H5D"
# What makes the log, and the message; it goes on where it ends in a space.
MESSAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "empty": (Path.touch, "the file is empty, expected a Darshan log"),
    "text": (
        lambda path: path.write_text("a table of numbers, not a log\n"),
        "not a Darshan log: it starts with b'a table ', expected a version such as '3.41'",
    ),
    "truncated": (lambda path: path.write_bytes(DATA[:4000]), "truncated Darshan log: "),
    "short": (
        lambda path: path.write_bytes(DATA[:100]),
        "truncated Darshan log: its header takes 1328 bytes, the file has 100",
    ),
    "newer module": (
        lambda path: run(module_versions={"POSIX": 9}).log(path),
        "module POSIX version 9 is not known, expected one of 1, 2, 3, 4; "
        "a newer version of understudy may support it",
    ),
    "no records": (
        write_log,
        "holds no records of files (modules: none); expected POSIX, MPI-IO, STDIO or H5D",
    ),
    "no bytes": (
        lambda path: idle().log(path),
        f"no file of the application moved a byte in {MODULES} of this log: nothing to replay",
    ),
    "other modules": (
        lambda path: idle(raw={16: (1, bytes(64))}).log(path),
        f"no file of the application moved a byte in {MODULES} of this log, "
        "and its modules DFS are not decoded: nothing to replay",
    ),
    "no ranks": (
        lambda path: run(nprocs=0).log(path),
        "the job record has 0 processes, expected 1 to 16777216",
    ),
    "partial": (
        lambda path: path.write_bytes(PARTIAL.read_bytes()),
        "module POSIX is incomplete: Darshan ran out of memory for records and left out later "
        "files; record it again with more memory (environment DARSHAN_MODMEM=64, in MiB, and a "
        "line 'MAX_RECORDS 20000 *' in the file that DARSHAN_CONFIG_PATH "
        "names), or describe what is there with --partial",
    ),
    "missing": (lambda path: None, "cannot be opened: No such file or directory"),
    "damaged": (
        lambda path: path.write_bytes(DATA[: (half := len(DATA) // 2)] + bytes(64) + DATA[half:]),
        "",
    ),
    **{
        f"cut {length}": (
            lambda path, length=length: path.write_bytes(DATA[:length]),  # type: ignore[misc]
            "truncated Darshan log: ",
        )
        for length in (200, 1400, 2500, 3500, 5000)
    },
}


def describe(*words: object) -> Result:
    return CliRunner().invoke(main, ["describe", *map(str, words)])


def refused(log: Path, message: str, status: int, stdout: str, stderr: str) -> None:
    assert (status, stdout, stderr.count("\n")) == (2, "", 1)
    assert stderr.startswith(f"understudy: {log}: {message}"), stderr
    if message and not message.endswith(" "):
        assert stderr == f"understudy: {log}: {message}\n"
    assert not [*log.parent.glob("*out.json*")], "no output, whole or half"


@pytest.mark.parametrize("what", MESSAGES)
def test_a_refusal_is_one_message(what: str, tmp_path: Path) -> None:
    make, message = MESSAGES[what]
    make(log := tmp_path / "x.darshan")
    done = describe(log, "-o", tmp_path / "out.json")
    refused(log, message, done.exit_code, done.stdout, done.stderr)


def test_a_refusal_of_the_program_itself(tmp_path: Path) -> None:
    make, message = MESSAGES["partial"]
    make(log := tmp_path / "x.darshan")
    command = [sys.executable, "-m", "understudy", "describe", log, "-o", tmp_path / "out.json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    refused(log, message, done.returncode, done.stdout, done.stderr)


def test_partial_describes_what_is_there(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    assert describe("--partial", PARTIAL, "-o", out).exit_code == 0
    assert any("POSIX is incomplete" in note for note in load(out).source.notes)


def test_an_output_is_not_replaced_unless_told(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    out.write_text("mine")
    done = describe(LOG, "-o", out)
    assert done.exit_code == 2 and said("exists-already-choose-another", done.stderr, out=out)
    assert out.read_text() == "mine"
    assert describe(LOG, "-o", out, "--force").exit_code == 0 and load(out).name == "out"
    absent = tmp_path / "none" / "out.json"
    done = describe(LOG, "-o", absent)
    assert done.exit_code == 2 and said("cannot-written-no-such", done.stderr, out=absent)


def test_names_that_the_contract_does_not_allow(tmp_path: Path) -> None:
    done = describe(LOG, "--name", "my run")
    assert done.exit_code == 2 and said("name-my-run-expected", done.stderr)
    out = tmp_path / "my run (2).json"
    assert describe(LOG, "-o", out).exit_code == 0 and load(out).name == "my-run-2"

"""`understudy record` chooses strace or Darshan by what is there and may record."""

import ctypes
import os
import platform
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.needs import need
from tests.support.said import said
from understudy.cli import UNUSABLE, main
from understudy.contracts.workload import load
from understudy.darshanlog import open_log
from understudy.paths import ROOT
from understudy.reframe.session.replica_workloads import describe

REFUSED = "strace: ptrace(PTRACE_SEIZE, 7): Operation not permitted"
LOG = ROOT / "traces" / "mphys_dyn.darshan"
# A runtime that writes a log for each process: of others, and at its start.
RUNTIME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void log_it(void) {
    char name[4096], piece[65536];
    if (!getenv("DARSHAN_ENABLE_NONMPI") && !getenv("RANK")) return;
    snprintf(name, sizeof name, "%s/%d.darshan", getenv("DARSHAN_LOGPATH"), (int)getpid());
    FILE *from = fopen(getenv("LOG"), "rb"), *to = fopen(name, "wb");
    for (size_t n; (n = fread(piece, 1, sizeof piece, from)) > 0;) fwrite(piece, 1, n, to);
    fclose(to);
}
"""


@pytest.fixture
def bin_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory on PATH: sh, true and cp, but no strace and no darshan-config."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "true", "cp"):
        (folder / name).symlink_to(shutil.which(name) or "")
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("DARSHAN_RUNTIME", raising=False)
    return folder


def program(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def fake_runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    library = tmp_path / "dr" / "lib" / "libdarshan.so"
    library.parent.mkdir(parents=True)
    source = tmp_path / "runtime.c"
    source.write_text(RUNTIME)
    compile_ = ["cc", "-shared", "-fPIC", "-o", str(library), str(source)]
    subprocess.run(compile_, check=True, env={**os.environ, "PATH": path})
    monkeypatch.setenv("DARSHAN_RUNTIME", str(tmp_path / "dr"))
    monkeypatch.setenv("LOG", str(LOG))


def record(*words: str) -> Result:
    return CliRunner().invoke(main, ["record", *words])


PATH = os.environ["PATH"]


def test_one_message_says_what_was_tried(bin_: Path) -> None:
    program(bin_, "strace", f"echo '{REFUSED}' >&2; echo more >&2; exit 1")
    done = record("--", "true")
    assert done.exit_code == UNUSABLE and done.stderr.count("\n") == 1
    for text in (REFUSED, "DARSHAN_RUNTIME is not set", "install strace", "Recorder"):
        assert text in done.stderr
    (bin_ / "strace").unlink()
    said("strace-installed-there-no", record("true").stderr)
    assert "strace is not" not in record("--with", "darshan", "true").stderr
    assert "Darshan runtime:" not in record("--with", "strace", "true").stderr


def test_what_a_tool_says_is_printed_with_escapes(bin_: Path) -> None:
    program(bin_, "strace", r"printf 'a\033[2Jb\n' >&2; exit 1")
    assert r"a\x1b[2Jb" in record("true").stderr


def test_darshan_records_where_strace_may_not(
    bin_: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(bin_, "strace", f"echo '{REFUSED}' >&2; exit 1")
    fake_runtime(tmp_path, monkeypatch, PATH)
    done = record("-o", "app.strace", "--", "sh", "-c", "exit 3")
    assert done.exit_code == 3 and f"{REFUSED}; Darshan records" in done.stderr
    assert Path("app.darshan").read_bytes() == LOG.read_bytes()
    assert not Path("app.strace").exists()
    again = record("-o", "app.strace", "--", "true")
    assert again.exit_code == UNUSABLE and said("app-darshan-exists-already", again.stderr)


def test_each_process_without_mpi_has_a_log(
    bin_: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_runtime(tmp_path, monkeypatch, PATH)
    done = record("--", "sh", "-c", "cp /dev/null a; true & wait; true > b; exit 0")
    assert done.exit_code == 0, done.output
    count = len([*Path().glob("sh-*.darshan")])
    assert count > 1 and said("processes-have-logs-their", done.stderr, count=count)
    assert not Path("sh.darshan").exists()
    again = record("--", "sh", "-c", "cp /dev/null a; exit 0")
    assert again.exit_code == UNUSABLE and "exists already" in again.stderr


def test_ranks_that_a_launcher_starts_are_not_logged_one_by_one(
    bin_: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_runtime(tmp_path, monkeypatch, PATH)
    program(bin_, "mpirun", "RANK=0 cp /dev/null a; cp /dev/null b")
    done = record("--", "mpirun")
    assert done.exit_code == 0 and Path("mpirun.darshan").exists(), done.output
    program(bin_, "mpirun", "cp /dev/null a")
    done = record("-f", "--", "mpirun")
    assert done.exit_code == UNUSABLE and said("darshan-wrote-no-log", done.stderr)


FILTER = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))
class Program(ctypes.Structure):
    _fields_ = [("count", ctypes.c_ushort), ("code", ctypes.c_void_p)]
asked = Program(len(code.raw) // 8, ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0  # no new privileges
assert libc.prctl(22, 2, ctypes.byref(asked)) == 0  # a filter of system calls
os.execvp(sys.argv[2], sys.argv[2:])
"""
PTRACE = {"x86_64": 101, "aarch64": 117}.get(platform.machine(), 101)


def without_ptrace() -> list[str]:
    """Before a command: ptrace gives EPERM, as under the profile of a container."""
    rows = [(0x20, 0, 0, 0), (0x15, 0, 1, PTRACE), (6, 0, 0, 0x50001), (6, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("=HBBI", *row) for row in rows)
    return [sys.executable, "-c", FILTER, code.hex()[: 2 * 8 * len(rows)]]


def test_a_filter_of_system_calls_forbids_strace(tmp_path: Path) -> None:
    need("strace", "ptrace")
    assert ctypes.sizeof(ctypes.c_void_p) == 8
    command = [*without_ptrace(), "understudy", "record", "--with", "strace", "--", "true"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == UNUSABLE, done.stderr
    said("strace-may-trace-here", done.stderr)
    assert said("operation-permitted", done.stderr) and done.stderr.count("\n") == 1


def modules_of(path: Path) -> set[str]:
    with open_log(path) as log:
        return {*log.modules}


def test_what_darshan_records_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("Darshan's runtime", "strace", "ptrace")
    command = [*without_ptrace(), "understudy", "record", "-o", "app.strace", "--"]
    shell = "for n in 1000 4096; do dd if=/dev/zero of=$n bs=$n count=10; done"
    done = subprocess.run(
        [*command, "sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "Darshan records" in done.stderr, done.stderr
    logs = sorted(tmp_path.glob("app-*.darshan"))
    assert sum("DXT_POSIX" in modules_of(path) for path in logs) == 2
    words = ["describe", *map(str, logs), "-o", str(tmp_path / "app.json")]
    assert CliRunner().invoke(main, words).exit_code == 0
    written = load(tmp_path / "app.json").bytes
    assert written == 10 * (1000 + 4096)
    monkeypatch.chdir(tmp_path)
    recorded = tuple(logs)
    described = describe(recorded[0], "app", False, recorded)
    assert described.bytes == written
    [dd, *_] = (path for path in logs if "DXT_POSIX" in modules_of(path))
    each = describe(dd, "app", False, (dd,))
    assert each.streams[0].tree is not None  # every read and write was traced


def test_a_trace_that_cannot_be_written_is_refused_before_the_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need("strace", "ptrace")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["record", "-o", "none/a.strace", "--", "touch", "ran"])
    assert done.exit_code != 0 and said("none-strace-cannot-written", done.output)
    assert not (tmp_path / "ran").exists()


def test_a_trace_that_is_cut_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the directory for temporary files is full, strace goes on without a word in the
    trace."""
    fake = tmp_path / "bin" / "strace"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\n'
        'case "$2" in /dev/null) exit 0;; esac\n'
        'echo \'7 1.0 openat(AT_FDCWD</d>, "a", O_RDONLY\' >"$2"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["record", "--with", "strace", "-o", "a.strace", "--", "true"])
    assert done.exit_code != 0 and said("ends-before-program-does", done.output)
    assert not (tmp_path / "a.strace").exists()

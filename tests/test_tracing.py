"""Traces of calls: what strace writes becomes calls that the player makes again."""

import json
import signal
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import damaged_traces
from tests.support.needs import need
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts.workload import Workload, build, load
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.program.workload import row_of
from understudy.readers import strace
from understudy.tracing.folding import fold, item_of
from understudy.tracing.folding import row_of as folded_row
from understudy.tracing.lines import parse, unquoted
from understudy.tracing.processes import Processes
from understudy.tracing.program import left_out, of_processes
from understudy.tracing.program import steps as steps_of
from understudy.tracing.recording import without_contents

Row = dict[str, Any]


OPEN = '7 1.0 openat(AT_FDCWD</d>, "{}", {}, 0666) = {}</d/{}> <0.000001>\n'


def opened(name: str, flags: str, fd: int = 3) -> str:
    return OPEN.format(name, flags, fd, name)


def traced(text: str, *below: str) -> Processes:
    processes = Processes(below or ("/d",))
    processes.follow(parse(text.splitlines()))
    return processes


def kinds(processes: Processes) -> list[str]:
    return [
        f"{call.row['call']}{' fails' * bool(call.row.get('fails'))}"
        for call in processes.system_calls
    ]


# What a trace becomes, and what is left out.
CLONE = "7 1.1 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000001>\n"
THREAD = "7 1.1 clone(child_stack=1, flags=CLONE_VM|CLONE_FILES|CLONE_THREAD) = 8 <0.000001>\n"
PLACE = '7 0.2 pwrite64(3</d/a>, ""..., 4096, 99999999999999999999) = 4096 <0.000002>\n'
DESCRIPTORS = """7 0.1 clone(child_stack=NULL, flags=SIGCHLD) = 8 <0.000002>
8 0.2 write(1</d/out>, ""..., 100) = 100 <0.000002>
8 0.3 +++ exited with 0 +++
7 0.4 write(1</d/out>, ""..., 50) = 50 <0.000002>
7 0.5 write(2</dev/null>, ""..., 50) = 50 <0.000002>
7 0.6 pwrite64(4</d/gone>(deleted), ""..., 50, 0) = 50 <0.000002>
"""
ERRORS = """7 1.0 unlink("/d/a") = -1 ENOENT (No such file or directory) <0.000001>
7 1.0 mkdir("/d/b", 0777) = -1 EACCES (Permission denied) <0.000001>
"""
QUOTES = """7 1.0 openat(AT_FDCWD</d>, "f\\"x", O_RDWR|O_CREAT, 0666) = 3</d/f\\"x> <0.000001>
7 1.1 write(3</d/f\\"x>, ""..., 10) = 10 <0.000001>
7 1.2 pread64(3</d/f\\"x>, ""..., 10, 0) = 10 <0.000001>
"""
CALLS: dict[str, tuple[str, list[str], dict[str, int]]] = {
    "a place beyond all files is a damaged line": (
        opened("a", "O_RDWR|O_CREAT") + PLACE,
        ["open"],
        {"lines that are damaged": 1},
    ),
    "what is open when a process ends is closed": (
        opened("a", "O_RDONLY")
        + opened("b", "O_RDONLY|O_CLOEXEC", 4)
        + CLONE
        + '8 1.2 execve("/bin/x", [], []) = 0 <0.000001>\n'
        + "8 1.3 +++ exited with 0 +++\n7 1.4 +++ exited with 0 +++\n",
        ["open", "open", "dup", "dup", *4 * ["close"]],
        {},
    ),
    "threads share descriptors": (
        opened("a", "O_RDONLY")
        + THREAD
        + "8 1.2 close(3</d/a>) = 0 <0.000001>\n8 1.3 +++ exited with 0 +++\n"
        + "7 1.4 +++ exited with 0 +++\n",
        ["open", "close"],
        {},
    ),
    "errors that come back are calls and others are named": (
        ERRORS,
        ["unlink fails"],
        {"mkdir: EACCES": 1},
    ),
    "quotation marks in names are none of strings": (QUOTES, ["open", "write", "read"], {}),
}


@pytest.mark.parametrize("what", CALLS)
def test_a_trace_becomes_calls(what: str) -> None:
    text, expected, left = CALLS[what]
    processes = traced(text)
    assert (kinds(processes), processes.left_out) == (expected, left)


# -- memory ---------------------------------------------------------------------------------------


def test_a_call_of_a_trace_takes_no_object() -> None:
    count = 20_000
    lines = [
        f'7 {k}.5 pwrite64(3</d/a>, ""..., 4096, {4096 * (k % 9973)}) = 4096 <0.000002>'
        for k in range(count)
    ]
    first = '7 0.1 openat(AT_FDCWD</d>, "a", O_RDWR|O_CREAT, 0666) = 3</d/a> <0.000002>'
    processes = Processes(("/d",))
    tracemalloc.start()
    try:
        processes.follow(parse([first, *lines]))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 64 * count
    _, *writes = processes.system_calls
    assert [m.row["at"] for m in writes] == [4096 * (k % 9973) for k in range(count)]
    assert [m.begin_s for m in writes] == [k + 0.5 for k in range(count)]
    assert (processes.begin_s, processes.end_s) == (0.1, count - 0.5 + 0.000002)


def test_a_descriptor_that_was_open_before_is_opened() -> None:
    """Of a redirection: what two processes write one behind the other is not lost."""
    processes = traced(DESCRIPTORS)
    assert kinds(processes) == ["open", "dup", "write", "close", "dup", "write"]
    (file,) = processes.files
    assert (file.size, processes.unended, processes.disordered) == (150, 1, 0)
    (note,) = left_out(processes.left_out)
    said("played-descriptors-were-open", note)


def test_what_a_trace_should_have_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "cut.strace"
    text = """7 0.2 openat(AT_FDCWD</d>, "a", O_RDONLY) = 3</d/a> <0.000002>
7 0.1 read(3</d/a>, ""..., 100) = 100 <0.000002>
"""
    path.write_text(text, encoding="utf-8")
    source = strace.read(path, below=("/d",)).source
    assert source is not None
    told = " ".join(source.notes)
    said("no-end-its-processes", told)
    said("its-lines-earlier", told)


# -- lines ----------------------------------------------------------------------------------------


def test_a_call_that_others_interrupt_is_one() -> None:
    text = """7 1.5 read(3</d/a>,  <unfinished ...>
8 1.6 close(4</d/b>) = 0 <0.000002>
7 1.5 <... read resumed>""..., 4096) = 12 <0.000300>
"""
    other, read = parse(text.splitlines())
    assert (other.pid, other.name, other.result) == (8, "close", 0)
    assert (read.pid, read.begin_s, read.name, read.result) == (7, 1.5, "read", 12)
    assert read.arguments == ["3</d/a>", '""...', "4096"] and read.seconds == 0.0003


def test_names_are_read_as_they_are() -> None:
    text = r"""7 1.0 openat(AT_FDCWD</d>, "a, \"b\"\n\303\244", O_RDONLY) = 3</d/x> <0.000002>"""
    (line,) = parse([text])
    assert line.arguments[0] == "AT_FDCWD</d>"
    assert unquoted(line.arguments[1]) == 'a, "b"\nä'
    assert line.path == "/d/x"


def test_lines_that_are_no_calls_are_left_out() -> None:
    assert list(parse(["", "7 1.0 --- SIGCHLD ---", "strace: Process 7 attached"])) == []
    assert [line.name for line in parse(["garbage", "7 1.0 open("])] == ["?", "?"]


# -- calls in flight ------------------------------------------------------------------------------

BEGUN = "7 {:f} io_submit(0x7f, {}, [{}]) = {} <0.000001>\n"
REQUEST = "{{aio_data={}, aio_lio_opcode=IOCB_CMD_{}, aio_fildes=3</d/a>, {}, aio_offset={}}}"
ENDED = "7 {:f} io_getevents(0x7f, 1, 8, [{}], NULL) = {} <0.000001>\n"
EVENT = "{{data={}, obj=0x1, res={}, res2=0}}"


def submitted(at_s: float, kind: str, *requests: tuple[str, int, int]) -> str:
    plain = 'aio_buf="", aio_nbytes={}'
    texts = [REQUEST.format(d, kind, plain.format(n), at) for d, n, at in requests]
    return BEGUN.format(at_s, len(texts), ", ".join(texts), len(texts))


def ended(at_s: float, *events: tuple[str, int]) -> str:
    return ENDED.format(at_s, ", ".join(EVENT.format(*e) for e in events), len(events))


def rows_of(text: str) -> list[Row]:
    return [call.row for call in traced(text).system_calls]


def test_requests_in_flight_state_how_many_they_are() -> None:
    workload = strace.read(ROOT / "traces" / "cases" / "fio_libaio.strace")
    (step,) = workload.streams[0].steps
    assert step.calls is not None
    ((*_, loop, wait, close),) = (row["do"] for row in step.calls.rows)
    write = {"call": "write", "of": 0, "bytes": 4096, "at": [0, 0, 4096], "depth": 8}
    assert loop == {"repeat": 32, "do": [write]}
    assert (wait, close) == ({"call": "wait"}, {"call": "close", "of": 0})
    assert step.calls.sizes("write") == {4096: 32}


def test_requests_one_after_the_other_are_calls() -> None:
    text = opened("a", "O_RDWR|O_CREAT") + "".join(
        submitted(2 + k, "PWRITE", ("0", 10, 10 * k)) + ended(2.5 + k, ("0", 10)) for k in range(3)
    )
    assert rows_of(text)[1:] == [
        {"call": "write", "of": 0, "bytes": 10, "at": 10 * k} for k in range(3)
    ]


def test_a_request_reads_what_is_there() -> None:
    text = opened("a", "O_RDONLY")
    text += submitted(2, "PREAD", ("0x1", 100, 0), ("0x2", 100, 100), ("0x3", 100, 200))
    text += ended(3, ("0x2", 70), ("0x1", 100)) + ended(4, ("0x3", 0))
    processes = traced(text)
    first = {"call": "read", "of": 0, "bytes": 100, "depth": 3}
    assert [call.row for call in processes.system_calls][1:] == [
        first | {"at": 0},
        first | {"at": 100, "moved": 70},
        first | {"at": 200, "moved": 0},
        {"call": "wait"},
    ]
    assert processes.paths["/d/a"].bytes == 170


def vectored(data: str, kind: str, sizes: tuple[int, ...], at: int, more: str = "") -> str:
    """A request with a vector as strace 6.1 shows it: it takes the place of aio_nbytes, too."""
    vectors = ", ".join(f'{{iov_base="", iov_len={n}}}' for n in sizes)
    return REQUEST.format(data, kind, f"aio_buf=[{vectors}{more}]", at)


def test_requests_of_other_kinds_are_called_or_named() -> None:
    vectors = [vectored("0", "PWRITEV", (30, 12), at) for at in (0, 42)]
    reads = vectored("3", "PREADV", (4096,), 0).replace('""', "0x5617ff921000")
    syncs = [REQUEST.format(n, "FDSYNC", 'aio_buf="", aio_nbytes=0', 0) for n in (1, 2)]
    text = opened("a", "O_RDWR|O_CREAT") + BEGUN.format(2, 3, ", ".join([*vectors, reads]), 3)
    text += BEGUN.format(2.1, 2, ", ".join(syncs), 2) + "7 2.2 io_destroy(0x7f) = 0 <0.000001>\n"
    processes = traced(text)
    assert kinds(processes) == ["open", "write", "write", "read", "sync", "sync", "wait"]
    assert [c.row.get("bytes") for c in processes.system_calls][1:4] == [42, 42, 4096]
    assert processes.damaged == 0


def test_requests_that_strace_cuts_off_are_counted_with_a_remedy() -> None:
    """It shows as many entries of a list as -s has letters, of vectors, too."""
    requests = [vectored("0", "PWRITEV", (10,), 0), vectored("0", "PWRITEV", (10,), 10, ", ...")]
    text = opened("a", "O_RDWR|O_CREAT")
    text += BEGUN.format(2, 64, ", ".join([*requests, "..."]), 64)
    text += ENDED.format(3, ", ".join([EVENT.format("0", 10), "..."]), 64)
    text += submitted(4, "PWRITE", ("0", 10, 20)) + ended(5, ("0", 10))
    processes = traced(text)
    writes = [call.row for call in processes.system_calls][1:]
    write = {"call": "write", "of": 0, "bytes": 10}
    assert writes == [write | {"at": 0, "depth": 64}, {"call": "wait"}, write | {"at": 20}]
    notes = "\n".join(processes.unseen())
    said("requests-left-out", notes, count=63, total=65)
    said("requests-cut", notes, count=63)
    said("ends-cut", notes, count=63)


def test_damaged_requests_are_counted() -> None:
    """Each of a line, and the other ones of it are calls."""
    text = opened("a", "O_RDWR|O_CREAT") + submitted(2, "PWRITE", ("0", 10, 0))
    requests = ", ".join([*15 * ["{}"], vectored("0", "PWRITEV", (9,), 0)])
    for line, damaged, writes in (
        (f"io_submit(0x7f, 16, [{requests}]) = 16", 15, 2),
        ("io_submit(0x7f, 16, 0x7ffc) = 16", 16, 1),
    ):
        processes = traced(f"{text}7 3.0 {line} <0.000001>\n")
        assert kinds(processes).count("write") == writes
        share, note = processes.unseen()
        said("requests-left-out", share, count=damaged, total=damaged + writes)
        said("requests-damaged", note, count=damaged)
        assert not processes.left_out["lines that are damaged"]


def test_damaged_lines_of_requests_are_named() -> None:
    text = opened("a", "O_RDWR|O_CREAT") + submitted(2, "PWRITE", ("0", 10, 0))
    for line in ("io_submit(0x7f, 1, [{}]) = 2", "io_getevents(0x7f, 1, 1, [x], NULL) = 1"):
        processes = traced(f"{text}7 3.0 {line} <0.000001>\n")
        assert processes.left_out == {"lines that are damaged": 1}


CANCELLED = (
    "7 {:f} io_cancel(0x7f, {{aio_data={}, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3</d/a>}}, "
)


def test_cancelled_requests_have_moved_nothing() -> None:
    """Their end says so, or the call that cancels them, or nothing does any more."""
    text = opened("a", "O_RDWR|O_CREAT")
    text += submitted(2, "PWRITE", *((f"0x{k}", 10, 10 * k) for k in range(1, 6)))
    text += submitted(2.1, "PWRITE", ("0x6", 99, 0)).replace("/d/a", "/e/large.dat")
    in_progress = "0x7ffc) = -1 EINPROGRESS (Operation now in progress) <0.000001>\n"
    text += CANCELLED.format(2.2, "0x2") + in_progress + CANCELLED.format(2.3, "0x4") + in_progress
    text += CANCELLED.format(2.4, "0x3") + "{data=0x3, obj=0x1, res=-125, res2=0}) = 0 <0.1>\n"
    text += CANCELLED.format(2.5, "0x5") + "0x7ffc) = -1 EAGAIN (Try again) <0.000001>\n"
    text += ended(3, ("0x1", 10), ("0x2", -4), ("0x5", 10), ("0x6", -125))
    processes = traced(text)
    writes = [call.row["at"] for call in processes.system_calls if call.row["call"] == "write"]
    assert writes == [10, 50] and processes.system_calls.moves == 2
    assert not any(written for _, written in processes.elsewhere.values())
    said("requests-cancelled", next(left_out(processes.left_out)), count=4)


def test_ends_of_requests_that_were_not_submitted_are_counted() -> None:
    text = opened("a", "O_RDWR|O_CREAT") + submitted(2, "PWRITE", ("0x1", 10, 0))
    text += ended(3, ("0x1", 10), ("0x2", 10)) + ENDED.format(4, "...", 3)
    processes = traced(text)
    assert processes.system_calls.moves == 1
    said("ends-not-begun", next(left_out(processes.left_out)), count=4)
    said("requests-left-out", next(iter(processes.unseen())), count=4, total=5)
    processes = traced(text + ENDED.format(5, EVENT.format("0x1", 10), 2))
    assert processes.left_out["lines that are damaged"] == 1


def test_requests_that_no_call_ends_are_not_all_in_flight() -> None:
    """Programs such as QEMU see their ends in memory that they share with the kernel."""
    each = "".join(submitted(2 + k, "PWRITE", ("0", 10, 10 * k)) for k in range(20))
    text = opened("a", "O_RDWR|O_CREAT")
    processes = traced(text + each)
    assert not any("depth" in call.row for call in processes.system_calls)
    said("no-call-ends", next(left_out(processes.left_out)))
    pairs = [("0", 10, 0), ("0", 10, 10)]
    processes = traced(text + submitted(2, "PWRITE", *pairs) + submitted(3, "PWRITE", *pairs))
    assert [call.row.get("depth") for call in processes.system_calls] == [None, *4 * [2], None]
    assert kinds(processes)[-1] == "wait" and processes.requests.unended == 4


def test_reads_of_threads_at_a_time_are_in_flight() -> None:
    text = opened("a", "O_RDONLY") + THREAD
    reads = []
    for k in range(6):
        begin_s = 2 + k * 0.5
        reads.append(
            (begin_s + 1, f"{7 + k % 2} {begin_s} pread64(3</d/a>, ..., 8, {{8 * k}}) = 8")
        )
    text += "".join(f"{line} <1.000000>\n" for _, line in sorted(reads))
    text += "7 9.0 pread64(3</d/a>, ..., 8, 0) = 8 <0.5>\n"
    processes = traced(text + "7 9.6 close(3</d/a>) = 0 <0.000001>\n")
    depths = [call.row.get("depth", 1) for call in processes.system_calls]
    assert depths == [1, 2, 2, 2, 2, 2, 2, 2, 1]
    assert processes.left_out == {"reads and writes of threads at a time, as calls in flight": 7}
    assert list(processes.unseen()) == []


def test_threads_that_overlap_now_and_then_say_how_much() -> None:
    """Of an average nearer to 1 than to 2, calls state no depth."""
    text = opened("a", "O_RDONLY") + THREAD
    starts = [2.0, 2.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    lines = [
        f"{7 + k % 2} {t} pread64(3</d/a>, ..., 8, {{8 * k}}) = 8" for k, t in enumerate(starts)
    ]
    processes = traced(text + "".join(f"{line} <1.000000>\n" for line in lines))
    assert not any("depth" in call.row for call in processes.system_calls)
    (note,) = processes.unseen()
    assert said("threads-overlap", note, count=7, average="1.40", maximum=3)


def test_calls_that_follow_each_other_are_not_in_flight() -> None:
    text = opened("a", "O_RDONLY") + THREAD
    for k in range(6):  # each begins within the resolution of the clock before the end of the last
        begin_s = 2 + k * 0.1
        text += f"{7 + k % 2} {begin_s:.6f} pread64(3</d/a>, ..., 8, {{8 * k}}) = 8 <0.100001>\n"
    processes = traced(text)
    assert not any("depth" in call.row for call in processes.system_calls)
    assert not processes.left_out


def test_requests_that_a_trace_does_not_show_are_counted(tmp_path: Path) -> None:
    path = ROOT / "traces" / "cases" / "fio_io_uring.strace"
    workload = strace.read(path)
    assert workload.bytes == 0 and workload.source is not None
    assert said("io-uring-requests", " ".join(workload.source.notes), count=32)
    said("requests-left-out", workload.source.requests_left_out, count=32, total=32)
    alone = tmp_path / "a.strace"
    alone.write_text(
        "7 1.0 io_uring_setup(8, {flags=IORING_SETUP_SQPOLL, sq_entries=8}) = 6 <0.000001>\n"
    )
    with raises(UnderstudyError, "io-uring-polled"):
        strace.read(alone)
    with raises(UnderstudyError, "requests-unknown"):
        strace.read(alone)


BATCH = """
import ctypes, os, platform, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("a", os.O_RDWR | os.O_CREAT)
data = ctypes.create_string_buffer(8)
context = ctypes.c_ulong()
setup, submit, events_of = (206, 209, 208) if platform.machine() == "x86_64" else (0, 2, 4)
assert libc.syscall(setup, 128, ctypes.byref(context)) == 0


class Request(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_uint64), ("key", ctypes.c_uint64), ("kind", ctypes.c_uint16),
        ("priority", ctypes.c_int16), ("fd", ctypes.c_uint32), ("buf", ctypes.c_uint64),
        ("nbytes", ctypes.c_uint64), ("offset", ctypes.c_int64), ("more", ctypes.c_uint64 * 2),
    ]


class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


vectors = (Vector * 60)(*60 * [Vector(ctypes.addressof(data), 8)])
address = ctypes.addressof(vectors)
requests = [Request(0, 0, 8, 0, fd, address, 60, 480 * k) for k in range(100)]
pointers = (ctypes.c_void_p * 100)(*map(ctypes.addressof, requests))
count = ctypes.c_long(100)
assert libc.syscall(submit, context, count, pointers) == 100
events = ctypes.create_string_buffer(32 * 100)
assert libc.syscall(events_of, context, count, count, events, None) == 100
"""


def test_many_requests_of_a_call_are_recorded_whole(tmp_path: Path) -> None:
    """strace would cut lists of requests, of vectors and of ends at 40 entries."""
    need("strace", "ptrace")
    trace = tmp_path / "a.strace"
    command = ["understudy", "record", "-o", str(trace), "--", sys.executable, "-c", BATCH]
    subprocess.run(command, cwd=tmp_path, check=True)
    workload = strace.read(trace)
    (step,) = workload.streams[0].steps
    assert step.calls is not None and workload.source is not None
    assert step.calls.sizes("write") == {480: 100}
    assert workload.source.requests_left_out == "", workload.source.notes


def test_contents_and_arguments_are_not_kept() -> None:
    rows = [
        '7 1.0 execve("/bin/app", ["app", "secret"], ["A=1", "PMI_RANK=3"]) = 0 <0.1>\n',
        '7 1.0 write(3</d/a>, "secret", 6) = 6 <0.1>\n',
        '7 1.0 <... pread64 resumed>"secret"..., 6, 0) = 6 <0.1>\n',
        '7 1.0 write(3</d/it\\"b>, "secret", 6) = 6 <0.1>\n',
        '7 1.0 setxattr("kept", "user.secret", "secret", 6, 0) = 0 <0.1>\n',
        '7 1.0 mount("secret", "/m", "cifs", 0, "password=secret") = 0 <0.1>\n',
        '7 1.0 anything at all "secret"\n',
        "7 1.0 --- SIGUSR1 {si_signo=SIGUSR1, si_code=SI_USER, si_pid=8, si_uid=1000} ---\n",
        '7 1.0 openat(AT_FDCWD</d>, "name", O_RDONLY) = 3</d/name> <0.1>\n',
    ]
    kept = "".join(without_contents(rows))
    assert "si_uid" not in kept
    assert "secret" not in kept and "A=1" not in kept
    assert '"PMI_RANK=3"' in kept and '"name"' in kept and '"kept"' in kept
    assert 'it\\"b' in kept


def test_a_signal_is_for_the_program_and_the_trace_is_kept(tmp_path: Path) -> None:
    need("strace", "ptrace")
    trace = tmp_path / "a.strace"
    shell = "echo 1 > a; exec sleep 60"
    command = ["understudy", "record", "-o", str(trace), "--", "sh", "-c", shell]
    running = subprocess.Popen(command, cwd=tmp_path)
    while not (tmp_path / "a").exists():
        time.sleep(0.02)
    running.terminate()
    assert running.wait(timeout=60) == 128 + signal.SIGTERM
    assert '"a"' in trace.read_text()


DAEMON = """import os, signal, sys
if os.fork():
    os._exit(3)
os.setsid()
while not os.path.exists("go"):
    signal.sigtimedwait([], 0.05)
open("lives", "w").close()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_wait_for_what_the_program_left(
    tmp_path: Path, number: signal.Signals
) -> None:
    """The trace until then is kept, and the daemon goes on, with calls that do not fail."""
    need("strace", "ptrace")
    code = (
        "import signal, sys; from understudy.cli import main; "
        f"signal.signal({number:d}, signal.SIG_DFL); main(sys.argv[1:])"
    )
    words = ["record", "-o", "a.strace", "--", sys.executable, "-c", DAEMON]
    with (tmp_path / "stderr").open("w") as out:
        running = subprocess.Popen([sys.executable, "-c", code, *words], cwd=tmp_path, stderr=out)
    stderr = tmp_path / "stderr"
    try:
        until(lambda: "waiting for 1 process that the program left" in stderr.read_text())
        running.send_signal(number)
        assert running.wait(timeout=LIMIT_S) == 3, "the status of the program"
        assert not (tmp_path / "lives").exists()
        text = (tmp_path / "a.strace").read_text()
        assert text.endswith("\n") and " +++ exited with 3 +++\n" in text
        assert stderr.read_text().count("waiting for") == 1
    finally:
        (tmp_path / "go").touch()
        running.wait(timeout=LIMIT_S)
    until((tmp_path / "lives").exists)


def test_a_signal_to_the_command_alone_is_passed_on(tmp_path: Path) -> None:
    """SIGINT, too, where no terminal sends it; what the program left is not waited for."""
    need("strace", "ptrace")
    shell = "until [ -e go ]; do sleep 0.1; done & echo 1 > a; exec sleep 600"
    code = (
        "import signal, sys; from understudy.cli import main; "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); main(sys.argv[1:])"
    )
    words = ["record", "-o", "a.strace", "--", "sh", "-c", shell]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words], cwd=tmp_path, start_new_session=True
    )
    try:
        until((tmp_path / "a").exists)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=LIMIT_S) == 128 + signal.SIGINT
        said("killed-sigint", (tmp_path / "a.strace").read_text())
    finally:
        (tmp_path / "go").touch()


LIMIT_S = 300


def until(happened: Callable[[], bool]) -> None:
    begin = time.monotonic()
    while not happened():
        assert time.monotonic() < begin + LIMIT_S
        time.sleep(0.02)


# -- what processes do ----------------------------------------------------------------------------


def test_what_a_file_held_before_is_what_the_calls_found() -> None:
    text = opened("a", "O_RDWR|O_CREAT")
    text += '7 1.1 pread64(3</d/a>, ""..., 100, 400) = 50 <0.000001>\n'
    text += '7 1.2 write(3</d/a>, ""..., 10) = 10 <0.000001>\n'
    processes = traced(text)
    assert processes.paths["/d/a"].before and processes.paths["/d/a"].bytes == 450
    assert processes.system_calls[1].row == {
        "call": "read",
        "of": 0,
        "bytes": 100,
        "at": 400,
        "moved": 50,
    }


def test_a_file_that_the_program_makes_was_not_there() -> None:
    for flags in ("O_WRONLY|O_CREAT|O_TRUNC", "O_WRONLY|O_CREAT|O_EXCL", "O_WRONLY|O_CREAT"):
        text = opened("a", flags) + '7 1.1 write(3</d/a>, ""..., 10) = 10 <0.000001>\n'
        text += '7 1.2 newfstatat(AT_FDCWD</d>, "a", {st_mode=S_IFREG|0644, st_size=10}, 0) = 0\n'
        assert not traced(text).paths["/d/a"].before, flags


def test_handles_are_used_again() -> None:
    text = "".join(opened(n, "O_RDONLY") + f"7 1.1 close(3</d/{n}>) = 0 <0.1>\n" for n in "abc")
    assert {call.row.get("as", call.row.get("of")) for call in traced(text).system_calls} == {0}


def test_only_files_below_the_directory_count() -> None:
    text = opened("a", "O_RDONLY")
    text += '7 1.1 openat(AT_FDCWD</d>, "/e/b", O_RDONLY) = 4</e/b> <0.000001>\n'
    text += '7 1.1 read(4</e/b>, ""..., 10) = 10 <0.000001>\n'
    assert kinds(traced(text)) == ["open"]
    assert traced(text).elsewhere == {"/e/b": [10, 0]}
    assert kinds(traced(text, "/d", "/e")) == ["open", "open", "read"]


@pytest.mark.parametrize(
    ("path", "written", "elsewhere"),
    [
        ("/srv/b", True, [4, 7]),
        ("/var/tmp/b", True, [4, 7]),  # what is written is data, wherever it is
        ("/dev/shm/b", True, [4, 7]),
        ("/variable/b", False, [4, 0]),
        ("/usr/lib/b", False, None),
        ("/dev/null", True, None),
        ("/proc/self/b", True, None),
    ],
)
def test_bytes_of_other_directories_are_counted(
    path: str, written: bool, elsewhere: list[int] | None
) -> None:
    text = opened("a", "O_RDONLY")
    text += f'7 1.1 openat(AT_FDCWD</d>, "{path}", O_RDWR) = 4<{path}> <0.000001>\n'
    text += f'7 1.2 write(4<{path}>, ""..., 7) = 7 <0.000001>\n' * written
    text += f'7 1.3 read(4<{path}>, ""..., 9) = 4 <0.000001>\n'
    assert traced(text).elsewhere == ({path: elsewhere} if elsewhere else {})


def test_what_two_ranks_wrote_is_read_in_the_next_step(tmp_path: Path) -> None:
    text = "".join(
        f'{pid} 1.0 execve("/bin/x", [], ["PMI_RANK={pid - 7}"]) = 0 <0.000001>\n'
        f'{pid} 1.1 openat(AT_FDCWD</d>, "a", O_RDWR) = 3</d/a> <0.000001>\n'
        for pid in (7, 8)
    )
    for pid, at in ((8, 10), (7, 0)):
        text += f'{pid} 1.2 pwrite64(3</d/a>, ""..., 10, {at}) = 10 <0.000001>\n'
    text += '7 1.3 pread64(3</d/a>, ""..., 20, 0) = 20 <0.000001>\n'
    path = tmp_path / "a.strace"
    path.write_text(text)
    *_, wrote, read = strace.read(path, below=("/d",)).streams[0].steps
    assert wrote.calls and wrote.calls.kinds["write"] == 2 and not wrote.calls.kinds["read"]
    assert read.calls and read.calls.kinds["read"] == 1


def of_ranks(*calls: tuple[int, str, str, str]) -> list[list[tuple[int, str]]]:
    """The steps of calls of ranks: rank, name, arguments, result."""
    text = "".join(
        f'{rank} 0.{rank} execve("/bin/x", [], ["PMIX_RANK={rank}"]) = 0 <0.000001>\n'
        for rank in {call[0] for call in calls}
    )
    for k, (rank, name, arguments, result) in enumerate(calls):
        text += f"{rank} {k + 1}.0 {name}({arguments}) = {result} <0.000001>\n"
    calls_made = traced(text).system_calls
    return [[(m.rank, m.row["call"]) for m in step] for step in steps_of(calls_made)]


def test_a_rank_waits_for_what_it_needs_of_another() -> None:
    name = 'AT_FDCWD</d>, "a"'
    make = (1, "openat", f"{name}, O_RDWR|O_CREAT, 0600", "3</d/a>")
    write = (1, "pwrite64", '3</d/a>, "", 4, 0', "4")
    join = (2, "openat", f"{name}, O_RDWR|O_CREAT, 0600", "3</d/a>")
    read = (2, "pread64", '3</d/a>, "", 4, 0', "4")
    first, two = of_ranks(make, join, read, write)
    assert first == [(1, "open")]  # the name
    assert two[:3] == [(2, "open"), (2, "read"), (1, "write")]
    assert [step[0] for step in of_ranks(make, join, write, read)][1:] == [
        (2, "open"),
        (2, "read"),
    ]


def test_a_rank_does_not_wait_where_a_file_is_open_or_there() -> None:
    name = 'AT_FDCWD</d>, "a"'
    calls = []
    for rank in (1, 2):
        calls.append((rank, "openat", f"{name}, O_RDWR|O_CREAT, 0600", "3</d/a>"))
    for k in range(20):
        for rank in (1, 2):
            calls.append((rank, "lseek", f"3</d/a>, {8 * k + 4 * rank}, SEEK_SET", "0"))
            calls.append((rank, "write", '3</d/a>, "", 4', "4"))
            calls.append((rank, "close", "3</d/a>", "0"))
            calls.append((rank, "openat", f"{name}, O_RDWR|O_CREAT, 0600", "3</d/a>"))
    assert len(of_ranks(*calls)) == 2  # rank 1 makes the file, and rank 2 finds it


MISSING = '7 1.0 openat(AT_FDCWD</d>, "e/f", O_RDONLY) = -1 ENOENT (No such file) <0.000001>\n'
STATUS = "{st_mode=S_IFDIR|0755, st_size=40}"
FOUND = {
    "nothing": "",
    "file": opened("e/g", "O_RDWR|O_CREAT"),
    "stat": f'7 1.1 newfstatat(AT_FDCWD</d>, "e", {STATUS}, 0) = 0 <0.000001>\n',
    "open": opened("e", "O_RDONLY|O_DIRECTORY"),
    "chdir": '7 1.1 chdir("e") = 0 <0.000001>\n',
    "mkdir": '7 1.1 mkdir("e", 0777) = 0 <0.000001>\n' + opened("e/g", "O_RDWR|O_CREAT"),
}


@pytest.mark.parametrize("call", FOUND)
def test_a_directory_is_there_if_a_call_has_found_it(call: str) -> None:
    tree = of_processes("a", traced(MISSING + FOUND[call]), "strace", "a").streams[0].tree
    assert tree is not None
    directories = sum(entry.count for entry in tree.entries if entry.directory)
    assert directories == (call not in ("nothing", "mkdir"))


# -- loops ----------------------------------------------------------------------------------------


def test_what_has_something_in_it_is_a_directory() -> None:
    """access() does not tell whether it found a file or a directory."""
    processes = traced(
        '7 1.0 access("/d/a", X_OK) = 0\n'
        '7 2.0 openat(AT_FDCWD</d>, "/d/a/b", O_RDONLY|O_DIRECTORY) = 3</d/a/b>\n'
    )
    assert processes.paths["/d/a"].directory and processes.paths["/d/a"].file is None


def expanded(rows: list[Row], *passes: int) -> Iterator[Row]:
    """The calls of loops, one by one."""
    for row in rows:
        if "repeat" in row:
            for k in range(row["repeat"]):
                yield from expanded(row["do"], *passes, k)
            continue
        call = dict(row)
        for key in ("path", "to", "at"):
            if isinstance(call.get(key), list):
                base, *factors = call[key]
                call[key] = base + sum(f * k for f, k in zip(factors, passes, strict=False))
        yield call


def body(rng: Random, depth: int) -> list[Row]:
    """Calls with loops."""
    rows: list[Row] = []
    for _ in range(rng.randint(1, 4)):
        if depth and rng.random() < 0.5:
            inner, passes = body(rng, depth - 1), rng.randint(2, 5)
            step = rng.choice([0, 1, 7, 4096])
            for k in range(passes):
                for row in inner:
                    rows.append(row | ({"at": row["at"] + k * step} if "at" in row else {}))
        else:
            row: Row = {"call": rng.choice(["read", "write"]), "of": 0, "bytes": rng.randint(1, 3)}
            rows.append(row | ({"at": rng.randint(0, 9)} if rng.random() < 0.7 else {}))
    return rows


def test_loops_stand_for_the_same_calls() -> None:
    shorter = 0
    for seed in range(1000):
        rows = body(Random(f"loops {seed}"), 3)
        folded = [folded_row(item) for item in fold([item_of(row) for row in rows])]
        assert list(expanded(folded)) == rows
        shorter += len(folded) < len(rows)
    assert shorter > 300


def test_many_calls_of_two_loops_are_a_few_lines() -> None:
    rows = [
        {"call": kind, "of": 0, "bytes": 8192} for _ in range(27_000) for kind in ("read", "write")
    ]
    (loop,) = (folded_row(item) for item in fold([item_of(row) for row in rows]))
    assert loop["repeat"] == 27_000 and len(loop["do"]) == 2


def test_many_calls_in_no_order_take_time_in_proportion_to_them() -> None:
    rng = Random("no order")
    rows = [
        {"call": "read", "of": 0, "bytes": 4096, "at": rng.randrange(1 << 40)}
        for _ in range(20_000)
    ]
    folded = [folded_row(item) for item in fold([item_of(row) for row in rows])]
    assert list(expanded(folded)) == rows


# -- the whole way --------------------------------------------------------------------------------

PROGRAMS = {
    "shell": "mkdir d && for i in 1 2 3; do echo $i > d/$i; cat d/$i >> all; done; mv all d/all",
    "tar": "mkdir d e && head -c 30000 /dev/zero > d/x && tar cf t.tar d && tar xf t.tar -C e",
    "python": "python3 -c \"import os; f=open('a','wb'); [f.write(b'x'*5000) for _ in range(9)]; "
    "f.close(); f=open('a','r+b'); f.seek(100); f.write(b'y'); f.truncate(777); f.close(); "
    "os.rename('a','b'); print(os.stat('b').st_size, os.path.exists('a'), os.listdir('.'))\"",
    "mv": "for i in 1 2 3; do echo $i > c.tmp; mv c.tmp c; done; mkdir a; echo 1 > a/f; mv a b; "
    "cat b/f c; echo 2 >> b/f; rm -r b",
    "cp": "mkdir d; head -c 5000 /dev/zero > a; cp a d; "
    "for i in 1 2 3; do cp a b; cp -p b c; done; cat a >> e",
    "dd": "dd if=/dev/zero of=a bs=4096 count=20 conv=fsync; dd if=a of=b bs=1000 seek=3",
}
NAMES = {"ftruncate": "truncate", "getdents64": "list", "lseek": "seek", "fdatasync": "sync"}
NAMES |= {"fsync": "sync", "openat": "open", "pread64": "read", "pwrite64": "write"}
NAMES |= {"fstat": "stat", "newfstatat": "stat", "utimensat": "attribute", "unlinkat": "unlink"}
NAMES |= {"fadvise64": "advise", "openat2": "open", "renameat2": "rename", "fallocate": "allocate"}
NAMES |= {"copy_file_range": "copy"}
NAMES |= {"mkdirat": "mkdir", "renameat": "rename", "linkat": "link", "symlinkat": "symlink"}


def made_by(trace: Path, tree: str) -> Counter[tuple[str, int | None]]:
    """The calls below a directory: kind, and bytes that were moved."""
    calls: Counter[tuple[str, int | None]] = Counter()
    for line in parse(trace.read_text(errors="surrogateescape").splitlines()):
        if not line.name or line.arguments[0].find(f"<{tree}") < 0:
            continue
        if "O_PATH" in line.text:  # the directory of a name, which is closed again
            calls["close", None] -= 1
        else:
            kind = NAMES.get(line.name, line.name)
            kind = "rmdir" if "AT_REMOVEDIR" in line.text else kind
            calls[kind, line.result if kind in ("read", "write") else None] += 1
    return calls


def described(workload: Workload) -> Counter[tuple[str, int | None]]:
    calls: Counter[tuple[str, int | None]] = Counter()
    for dump in workload.streams[0].steps:
        assert dump.calls is not None
        for call, times in dump.calls.each():
            kind = call["call"]
            moved = call.get("moved", call.get("bytes")) if kind in ("read", "write") else None
            calls[kind, moved] += times
    return calls


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_player_makes_the_calls_of_the_program(program: str, tmp_path: Path) -> None:
    need("strace", "ptrace")
    folder = tmp_path / "app"
    folder.mkdir()
    trace, descriptor = tmp_path / "app.strace", tmp_path / "app.json"
    command = ["record", "-o", str(trace), "--", "sh", "-c", PROGRAMS[program]]
    recorded = subprocess.run(
        ["understudy", *command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert recorded.returncode == 0, recorded.stderr
    done = CliRunner().invoke(main, ["describe", str(trace), "-o", str(descriptor)])
    assert done.exit_code == 0, done.output
    workload = load(descriptor)
    assert json.loads(workload.to_text()) == json.loads(descriptor.read_text(encoding="utf-8"))
    player = ROOT / "build" / "bin" / "understudy-replay"
    again = tmp_path / "again.strace"
    start = f'. "{ROOT}/setup-env.sh" 2>/dev/null; exec "$@"'
    tracing = ["strace", "-f", "-ttt", "-T", "-y", "-s", "0", "-o", str(again)]
    played = subprocess.run(
        ["bash", "-c", start, "-", *tracing, player, "-w", descriptor, "-o", "data", "-k"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    calls = made_by(again, f"{tmp_path}/data/{workload.streams[0].name}.tree")
    assert calls == described(workload) + prepared(workload)


def prepared(workload: Workload) -> Counter[tuple[str, int | None]]:
    """What the player does before the first call, and when it leaves the directory."""
    calls: Counter[tuple[str, int | None]] = Counter({("close", None): 1, ("statx", None): 2})
    tree = workload.streams[0].tree
    for entry in tree.entries if tree else ():
        if entry.directory:
            calls["mkdir", None] += entry.count
        elif entry.bytes is not None:
            calls.update({(kind, None): entry.count for kind in ("open", "sync", "close")})
            calls["write", entry.bytes] += entry.count if entry.bytes else 0
    return calls


def test_a_trace_of_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.strace"
    path.write_text("no calls\n")
    with raises(UnderstudyError, "expected-output-strace"):
        strace.read(path)
    path.write_text('7 1.0 openat(AT_FDCWD</d>, "/e/b", O_RDONLY) = 4</e/b> <0.000001>\n')
    with pytest.raises(UnderstudyError, match="describe --below DIRECTORY"):
        strace.read(path)


def test_damaged_traces_are_read_or_refused(tmp_path: Path) -> None:
    rng = Random("damaged traces")
    for _ in range(2000):
        path = damaged_traces.of_strace(rng)(tmp_path)
        try:
            workload = strace.read(path, below=("/d",))
        except UnderstudyError:
            continue
        again = build(json.loads(workload.to_text()), "again")
        assert row_of(again) == row_of(workload)

"""The queue of the method uring: what it asks the kernel for, and what it says without it."""

import ctypes
import errno
import itertools
import re
import sys
from pathlib import Path

from mpi_support import (
    Json,
    Player,
    Skip,
    dump,
    dumps_of,
    equal,
    expect,
    main,
    methods_with_libraries,
    named,
    need_direct_io,
    need_injection,
    need_method,
    need_sectors,
    need_strace,
    payload,
    phases_of,
    refused,
    resident_bytes,
    stream,
    traced,
    traces,
    variable,
    verified,
    workload,
)

DEPTH = 8
QUEUED = ("-a", "uring", "-m", f"uring.depth={DEPTH}")
CALLS = "io_uring_setup,io_uring_register,io_uring_enter,fsync,openat"
# Every process that it becomes gets an error for io_uring_setup: FORBID ERRNO PROGRAM...
FORBID = """
import ctypes, os, struct, sys
IO_URING_SETUP, NO_NEW_PRIVILEGES, SET_SECCOMP, FILTER = 425, 38, 22, 2
LOAD, EQUAL, RETURN, ALLOW, ERROR = 0x20, 0x15, 0x06, 0x7FFF0000, 0x00050000
rows = (LOAD, 0, 0, 0), (EQUAL, 0, 1, IO_URING_SETUP), (RETURN, 0, 0, ERROR | int(sys.argv[1]))
code = b"".join(struct.pack("HBBI", *row) for row in (*rows, (RETURN, 0, 0, ALLOW)))
program = struct.pack("HxxxxxxP", 4, ctypes.addressof(buffer := ctypes.create_string_buffer(code)))
system = ctypes.CDLL(None)
assert system.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0
assert system.prctl(SET_SECCOMP, FILTER, program) == 0
os.execv(sys.argv[2], sys.argv[2:])
"""


def described(transfers: int = 64, **changes: object) -> Json:
    """One dump of one rank: so many transfers of 4096 bytes."""
    data = variable("data", [512 * transfers])
    keys = {"method": "uring", "transfer_bytes": 4096, "dumps": [dump(0.0, data)]}
    return workload(stream("field", **keys | changes), ranks=1)


def seen(player: Player, row: Json, *options: object) -> list[str]:
    """The system calls of a run that is verified."""
    need_strace()
    path = player.describe(row)
    command = ("-w", path, "-o", "data", "-O", "r.json", *QUEUED, "-k", "--verify", *options)
    outcome = traced(player, CALLS).run(0, *command)
    expect(outcome.status == 0, outcome.err)
    (lines,) = traces(player).values()
    player.clear()
    return lines


def of(lines: list[str], word: str) -> list[str]:
    return [line for line in lines if word in line and "resumed" not in line]


def registers_memory_and_files(player: Player) -> None:
    """The memory once; a file that has many calls, and no longer than it is open."""
    need_method("uring")
    lines = seen(player, described())
    equal(len(of(lines, "IORING_REGISTER_BUFFERS,")), 1, "memory")
    few = seen(player, described(transfers=8))
    # Two updates find out whether the kernel drops files at once; two are of each of two opens.
    updates, none = (len(of(x, "IORING_REGISTER_FILES_UPDATE")) for x in (lines, few))
    equal(none, 2, "of a file with few calls")
    expect(updates in (2, 6), f"{updates} updates")


def submits_together(player: Player) -> None:
    """One system call submits and waits, and a flush behind transfers needs none of its own."""
    need_method("uring")
    lines = seen(player, described(sync=True))
    enters = len(of(lines, "io_uring_enter("))
    expect(0 < enters < 150, f"{enters} calls for 128 transfers, written and verified")
    flushes = len(of(lines, "fsync("))
    inner = seen(player, described(sync=True, sync_bytes=4 * 4096))
    equal(len(of(inner, "fsync(")), flushes, "flushes outside of the queue")
    result = player.play(described(sync_bytes=4 * 4096), *QUEUED, "--verify")
    equal(phases_of(dumps_of(result)[0])["write"], 64 + 16, "transfers and flushes")


def plays_where_nothing_can_be_registered(player: Player) -> None:
    """Neither memory nor files: the bytes are the same."""
    need_method("uring")
    need_injection(player.folder)
    row = described()
    options = ("-e", "inject=io_uring_register:error=ENOMEM")
    command = ("-w", player.describe(row), "-o", "data", "-O", "r.json", *QUEUED, "--verify")
    outcome = traced(player, CALLS, *options).run(0, *command)
    expect(outcome.status == 0, outcome.err)
    (lines,) = traces(player).values()
    expect(len(of(lines, "INJECTED")) >= 3, f"registered in spite of errors: {lines}")


def direct_is_direct(player: Player) -> None:
    """Whole pages bypass the page cache, what is before and behind them does not."""
    need_method("uring")
    need_direct_io(player.folder)
    rest = 100
    for choice, expected in (("yes", {4096}), ("no", {8 * 4096 + 4096})):
        data = variable("data", [8 * 4096 + rest], type="byte")
        row = described(dumps=[dump(0.0, data)], transfer_bytes=1 << 20)
        options = (*QUEUED, "-m", f"uring.direct={choice}", "-k")
        player.play(row, *options)
        (path,) = (p for p in player.data.iterdir() if p.name.startswith("field"))
        equal(path.stat().st_size, 8 * 4096 + rest, "size")
        equal({resident_bytes(path)}, expected, f"direct={choice}: bytes in memory")
        player.clear()


def short_direct_calls(player: Player) -> None:
    """What follows half of a page is no direct call, what is behind that page is again; the bytes
    are the same."""
    need_method("uring")
    need_sectors(player.folder)
    pages = 255
    data = variable("data", [2 * pages * 4096], type="byte")
    row = described(dumps=[dump(0.0, data)], transfer_bytes=pages * 4096)
    _, expected = player.kept(row, "-a", "posix")
    player.clear()
    for method, call in itertools.product(("posix", "uring"), ("write", "read")):
        log = player.folder / f"{method}.{call}"
        variables = {"UNDER": player.folder.resolve(), "RANK": 0, "NAME": "/data/field"}
        variables |= {"CALL": call, "ERROR": "half", "LOG": log}
        short = player.preloading("UND_FAULT", "FAULT", **variables)
        options = ("-a", method, "-m", f"{method}.direct=yes", "-k")
        command = ("-w", player.describe(row), "-o", "data", "-O", "r.json", *options)
        outcome = short.run(1, *command, *["--verify"] * (call == "read"))
        expect(outcome.status == 0 and log.exists(), f"{method}, {call}: {outcome.err}")
        (path,) = (p for p in player.data.iterdir() if p.name.startswith("field"))
        expect(
            resident_bytes(path) <= 2 * 4096, f"{method}: {resident_bytes(path)} bytes in memory"
        )
        equal(player.files() == expected, True, f"{method}, {call}: bytes")
        player.clear()


def kinds_of_streams(player: Player) -> None:
    """Written through, read between writes, appended, in any order, polled: as posix."""
    need_method("uring")
    polled = ("-m", "uring.sqpoll=yes")
    cases: list[tuple[Json, tuple[str, ...]]] = [
        ({"write_through": True}, ()),
        ({"write_through": True, "sync_bytes": 8192}, polled),
        ({"lookups": {"every_bytes": 9000, "calls": 1.5, "transfer_bytes": 300}}, ()),
        ({"files": "append", "sync": True}, polled),
        ({"order": {"rule": "shuffled", "seed": 3}, "transfer_bytes": 1000}, ()),
        ({"order": {"rule": "strided", "step": 7}, "sync_bytes": 5000}, polled),
    ]
    for keys, options in cases:
        row = described(**keys)
        result, files = player.kept(row, *QUEUED, *options, "--verify", "--restart")
        verified(result, payload(row))
        _, others = player.kept(row, "-a", "posix")
        equal(files == others, True, f"{keys}: bytes as of posix")
    lines = of(seen(player, described(write_through=True)), "O_DSYNC")
    equal(len(lines), 1, "opens that write through")


def names_its_errors(player: Player) -> None:
    """A failed transfer is named by its file, place and reason, though a flush is behind it."""
    need_method("uring")
    variables = {"UNDER": player.folder.resolve(), "RANK": 0, "NAME": "/data/field"}
    row = described(sync_bytes=8 * 4096)
    path = player.describe(row | {"ranks": 1})
    for error, number, words in (
        ("ENOSPC", errno.ENOSPC, "No space left on device"),
        ("EIO", errno.EIO, "Input/output error"),
    ):
        faulty = player.preloading(
            "UND_FAULT", "FAULT", **variables, CALL="write", ERROR=number, TURN=3
        )
        outcome = faulty.run(1, "-w", path, "-o", "data", "-O", "r.json", *QUEUED)
        expect(outcome.status not in (0, 2), outcome.err)
        words = f"uring: cannot write 4096 bytes at byte 8192 of data/field.000000: {words}"
        expect(words in outcome.message(), f"{error}: {outcome.err}")


def repeats_what_is_put_off(player: Player) -> None:
    """A signal or a lack of memory in the kernel is no error of storage."""
    need_method("uring")
    variables = {"UNDER": player.folder.resolve(), "RANK": 0, "NAME": "/data/field"}
    path = player.describe(described(sync_bytes=8 * 4096))
    for call, number in itertools.product(("write", "read", "sync"), (errno.EINTR, errno.EAGAIN)):
        log = player.folder / f"{call}.{number}"
        faulty = player.preloading(
            "UND_FAULT", "FAULT", **variables, CALL=call, ERROR=number, TURN=2, LOG=log
        )
        command = ("-w", path, "-o", "data", "-O", "r.json", *QUEUED, "--verify")
        outcome = faulty.run(1, *command)
        expect(outcome.status == 0 and log.exists(), f"{call}, {number}: {outcome.err}")


def has_filters() -> bool:
    """Whether the kernel has filters of system calls, asked without the player."""
    get_seccomp = 21
    return bool(ctypes.CDLL(None).prctl(get_seccomp, 0, 0, 0, 0) >= 0)


def forbidden(player: Player, number: int) -> Player:
    """The player in a filter of system calls, as containers have."""
    if not has_filters():
        raise Skip("seccomp", "the kernel has no filters of system calls")
    script = player.folder / "forbid.py"
    script.write_text(FORBID)
    return player.script(f"exec {sys.executable} {script} {number}")


def forbidden_by_the_system(player: Player) -> None:
    """--list states why, and a run is refused in one line, on any number of ranks."""
    if "uring" not in methods_with_libraries():
        need_method("uring")
    path = player.describe(described())
    for number, words in (
        (
            1,
            "a filter of system calls forbids io_uring, as containers do: Operation not permitted",
        ),
        (38, "the kernel has no io_uring, or a filter of system calls hides it: Function not"),
        (12, "io_uring locks more memory than ulimit -l permits: Cannot allocate memory"),
    ):
        filtered = forbidden(player, number)
        listed = filtered.listed()
        expect(listed["uring"].startswith("unavailable: "), f"listed: {listed}")
        switched_off = "kernel.io_uring_disabled is" in listed["uring"] and number == 1
        expect(words in listed["uring"] or switched_off, f"listed: {listed}")
        expect(listed["posix"].startswith("available"), f"listed: {listed}")
        said = listed["uring"].removeprefix("unavailable: ")
        where = f"--method: the method uring cannot be used here: {said}"
        refused(filtered, 1, "-w", path, "-o", "data", *QUEUED, words=(where,))
        four = described()
        four |= {"ranks": 4, "scaling": {"rule": "none", "from_ranks": 4}}
        shared = player.describe(four, "four.json")
        refused(filtered, 4, "-w", shared, "-o", "data", *QUEUED, words=(where,))


def polling_thread_forbidden(player: Player) -> None:
    """The second queue, that with a thread, is not permitted; strace plays the kernel."""
    need_method("uring")
    need_injection(player.folder)
    options = ("-e", "inject=io_uring_setup:error=EPERM:when=2")
    polled = (*QUEUED, "-m", "uring.sqpoll=yes")
    player.describe(described())
    outcome = traced(player, CALLS, *options).run(
        0, "-w", "workload.json", "-o", "data", "-O", "r.json", *polled
    )
    expect("INJECTED" in str(traces(player)), f"no error: {outcome.err}")
    equal(outcome.status, 2, outcome.err)
    words = r"--method-option uring\.sqpoll=yes: .*: Operation not permitted$"
    expect(bool(re.search(words, outcome.message())), outcome.err)
    expect(not Path(player.folder / "r.json").exists(), "a result was written")


CASES = {
    **named(registers_memory_and_files, submits_together, plays_where_nothing_can_be_registered),
    **named(
        direct_is_direct,
        short_direct_calls,
        kinds_of_streams,
        names_its_errors,
        forbidden_by_the_system,
    ),
    **named(polling_thread_forbidden, repeats_what_is_put_off),
}

if __name__ == "__main__":
    sys.exit(main("uring", CASES))

"""Calls of the system: the player makes them one by one, on files that it makes and removes.

Each case is started by ctest; see mpi_support.py.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpi_errors import refused
from mpi_support import Json, Player, aborted, expect, finish, main

HEADER: Json = {
    "schema": "understudy/workload/3",
    "name": "traced",
    "description": "",
    "runtime_s": None,
    "compute": "sleep",
    "source": {"format": "hand", "version": "", "reader": "", "notes": []},
    "provenance": [],
}


def opened(path: Any, handle: int, *flags: str) -> Json:
    """An open."""
    return {"call": "open", "path": path, "as": handle, "flags": list(flags)}


def workload(*calls: Json, entries: list[Json], stored: int = 1 << 20, ranks: int = 1) -> Json:
    """One step with these calls."""
    row: Json = HEADER | {"ranks": ranks, "scaling": {"rule": "none", "from_ranks": ranks}}
    row["sets"] = [{"name": "app", "of": "callers", "entries": entries, "stored_bytes": stored}]
    step = {"at": 0, "do": [{"calls": "app", "do": list(calls)}]}
    stream = {"name": "app", "role": "output", "method": "posix", "steps": [step]}
    return row | {"streams": [stream]}


CLOSE = {"call": "close", "of": 0}
# A file that grows, is cut, renamed and read; one of a directory; one that is there before.
EVERY = workload(
    {"call": "stat", "path": 3, "fails": True},
    opened(1, 0, "read"),
    {"call": "advise", "of": 0, "advice": "sequential"},
    {"call": "read", "of": 0, "bytes": 4096, "moved": 1000},
    {"call": "read", "of": 0, "bytes": 4096, "moved": 0},
    CLOSE,
    opened(2, 0, "read", "write", "create", "truncate"),
    {"repeat": 10, "do": [{"call": "write", "of": 0, "bytes": 1000}]},
    {"call": "truncate", "of": 0, "at": 2500},
    {"call": "seek", "of": 0, "at": 0, "from_end": True},
    {"call": "write", "of": 0, "bytes": 500},
    {"call": "write", "of": 0, "bytes": 8, "at": 7000},
    {"call": "dup", "of": 0, "as": 1},
    {"call": "sync", "of": 1, "data_only": True},
    {"call": "stat", "of": 1},
    {"call": "close", "of": 1},
    {"call": "attribute", "of": 0},
    CLOSE,
    {"call": "rename", "path": 2, "to": 3},
    {"call": "link", "path": 3, "to": 4},
    {"call": "symlink", "path": 9, "to": 3},
    {"call": "stat", "path": 9},
    {"call": "unlink", "path": 9},
    {"call": "mkdir", "path": 5},
    {
        "repeat": 3,
        "do": [
            opened([6, 1], 0, "write", "create", "append"),
            {"repeat": 2, "do": [{"call": "write", "of": 0, "bytes": 100, "at": [0, 0, 100]}]},
            CLOSE,
        ],
    },
    opened(5, 0, "read", "directory"),
    {"call": "list", "of": 0, "bytes": 32768},
    CLOSE,
    opened(1, 0, "read"),
    opened(10, 1, "write", "create"),
    {"call": "copy", "of": 0, "into": 1, "length": 1 << 62, "moved": 1000},
    {"call": "copy", "of": 0, "into": 1, "length": 1 << 62, "moved": 0},
    CLOSE,
    {"call": "close", "of": 1},
    {"call": "unlink", "path": 8},
    {"call": "unlink", "path": 8, "fails": True},
    {"call": "mkdir", "path": 5, "fails": True},
    entries=[
        {"directory": True},
        {"bytes": 1000, "in": 0},
        {"count": 4},
        {"in": 5, "count": 3},
        {"count": 2},
    ],
)


def every_kind(player: Player) -> None:
    """Files are as the calls leave them, and all of them go with the run."""
    result = player.play(EVERY, "--verify", "-k")
    (dump,) = result["repetitions"][0]["streams"][0]["dumps"]
    found = {phase["phase"]: phase for phase in dump["phases"]}
    expect(found["write"]["operations"] == 20, f"{found['write']}")
    expect(dump["bytes"] == dump["described_bytes"] == 2000 + 10_000 + 508 + 600, f"{dump}")
    sizes = {name: len(data) for name, data in player.data().items()}
    kept = {"0/1": 1000, "3": 7008, "4": 7008, "5/6": 200, "5/7": 200, "10": 1000}
    expect(sizes == {f"app.tree/{name}": size for name, size in kept.items()}, f"{sizes}")
    # Of the file that is cut, renamed and linked: 2,500 bytes, 500 and 8; of the others 200 each.
    right = {"bytes": 3008 + 400, "wrong_bytes": 0}
    expect(result["verification"] == right, f"{result['verification']}")
    player.clear()
    player.play(EVERY)
    expect(not (player.folder / "data").exists(), "files of the run are left")


def flipped_bytes(player: Player) -> None:
    """Whichever byte of what the calls have written last is flipped, it is found."""
    write = {"call": "write", "of": 0, "bytes": 3000}
    made = workload(opened(0, 0, "write", "create"), write, CLOSE, entries=[{}])
    later = {"at": 2, "do": [{"calls": "app", "do": [{"call": "stat", "path": 0}]}]}
    made["streams"][0]["steps"].append(later)
    target = player.folder / "data" / "app.tree" / "0"
    for place in (0, 1, 2999):
        running = player.start(1, "-w", player.describe(made), "-o", "data", "--verify")
        wait_until(lambda: target.exists() and target.stat().st_size == 3000)
        with target.open("r+b") as file:
            file.seek(place)
            byte = file.read(1)
            file.seek(place)
            file.write(bytes([byte[0] ^ 1]))
        outcome = finish(running)
        expect(aborted(outcome), f"byte {place}: status {outcome.status}\n{outcome.err}")
        message = outcome.message()
        expect("app.tree/0" in message and f"byte {place} " in message, message)


def flipped_input(player: Player) -> None:
    """A byte of a file that was there before is flipped, and the calls read it."""
    read = {"call": "read", "of": 0, "bytes": 5000}
    wait = {"at": 0, "do": [{"calls": "app", "do": [{"call": "stat", "path": 0}]}]}
    made = workload(opened(0, 0, "read"), read, CLOSE, entries=[{"bytes": 5000}])
    made["streams"][0]["steps"][0]["at"] = 2
    made["streams"][0]["steps"].insert(0, wait)
    target = player.folder / "data" / "app.tree" / "0"
    running = player.start(1, "-w", player.describe(made), "-o", "data", "--verify")
    wait_until(lambda: target.exists() and target.stat().st_size == 5000)
    time.sleep(0.5)
    with target.open("r+b") as file:
        file.seek(4321)
        byte = file.read(1)
        file.seek(4321)
        file.write(bytes([byte[0] ^ 1]))
    outcome = finish(running)
    expect(aborted(outcome), f"status {outcome.status}\n{outcome.err}")
    expect("app.tree/0" in outcome.message() and "byte 4321 " in outcome.message(), outcome.err)


def direct(player: Player) -> None:
    """A file that is opened past the page cache is, and has what was written."""
    target = player.folder / "data" / "app.tree" / "0"
    write = {"call": "write", "of": 0, "bytes": 4096}
    made = workload(
        opened(0, 0, "read", "write", "create", "direct"),
        {"repeat": 2, "do": [write]},
        {"call": "read", "of": 0, "bytes": 4096, "at": 4096},
        entries=[{}],
    )
    later = {"at": 2, "do": [{"calls": "app", "do": [CLOSE]}]}
    made["streams"][0]["steps"].append(later)
    running = player.start(1, "-w", player.describe(made), "-o", "data", "--verify")
    wait_until(lambda: target.exists() and target.stat().st_size == 8192)
    flags = [
        int((link.parent.parent / "fdinfo" / link.name).read_text().split()[3], 8)
        for link in Path("/proc").glob("[0-9]*/fd/*")
        if link.is_symlink() and points_to(link, target)
    ]
    expect(bool(flags) and all(f & os.O_DIRECT for f in flags), f"flags {flags}")
    outcome = finish(running)
    expect(outcome.status == 0, outcome.err)


def points_to(link: Path, target: Path) -> bool:
    """Whether a link does, if it is still there."""
    try:
        return link.readlink() == target
    except OSError:
        return False


def by_ranks(player: Player) -> None:
    """Ranks make the same calls on files of their own, and other ranks make none."""
    calls = [
        opened([0, 1], 0, "write", "create", "exclusive"),
        {"repeat": 4, "do": [{"call": "write", "of": 0, "bytes": 10, "at": [5, 100, 10]}]},
        CLOSE,
    ]
    made = workload({"ranks": [1, 2], "do": calls}, entries=[{"count": 3}], ranks=4)
    result = player.play(made, "--verify", "-k")
    sizes = {name: len(data) for name, data in player.data().items()}
    expect(sizes == {"app.tree/0": 45, "app.tree/1": 145}, f"{sizes}")
    expect(result["verification"]["bytes"] == 80, f"{result['verification']}")


def through_links(player: Player) -> None:
    """A file that is written and read through a link is the file that has the name."""
    link = {"call": "symlink", "path": 1, "to": 0}
    write = {"call": "write", "of": 0, "bytes": 6}
    read = {"call": "read", "of": 0, "bytes": 6}
    anew = [opened(0, 0, "write", "create", "truncate"), write, CLOSE]
    cut = [opened(1, 0, "write", "truncate"), write, CLOSE]
    more = [opened(1, 0, "write", "append"), write, CLOSE]
    reads = [part for path in (0, 1) for part in (opened(path, 0, "read"), read, CLOSE)]
    before: list[tuple[Json, list[Json]]] = [({}, anew), ({"bytes": 6}, reads[:3])]
    for entry, first in before:
        calls = [*first, link, *reads, *cut, *reads, *more, *reads]
        result = player.play(workload(*calls, entries=[entry, {}], stored=12), "--verify")
        right = {"bytes": 12, "wrong_bytes": 0}
        expect(result["verification"] == right, f"{result['verification']}")


def through_directories(player: Player) -> None:
    """A file that is read through a link to its directory, or that has another name, is right."""
    entries: list[Json] = [{"directory": True}, {"in": 0}, {}, {"in": 2, "name": 1}]
    make = [opened(1, 0, "write", "create"), {"call": "write", "of": 0, "bytes": 6}, CLOSE]
    read = [opened(3, 0, "read"), {"call": "read", "of": 0, "bytes": 6}, CLOSE]
    for change in (
        {"call": "rename", "path": 0, "to": 2},
        {"call": "symlink", "path": 2, "to": 0},
    ):
        player.play(workload(*make, change, *read, entries=entries), "--verify")


def renamed_directories(player: Player) -> None:
    """A directory takes its files along: they grow and are cut where they are then, and a file of
    the same name in a new directory is another one."""
    entries: list[Json] = [
        {},
        {"in": 0},
        {"in": 1},
        {},
        {"in": 3, "name": 1},
        {"in": 4, "name": 2},
    ]
    write = {"call": "write", "of": 0, "bytes": 6}
    make = [
        *({"call": "mkdir", "path": n} for n in (0, 1)),
        *(opened(2, 0, "write", "create", "exclusive"), write, CLOSE),
    ]
    more = [opened(5, 0, "write", "append"), write, CLOSE]
    anew = [opened(5, 0, "write", "truncate"), write, CLOSE]
    away, back = ({"call": "rename", "path": p, "to": 3 - p} for p in (0, 3))
    for calls, stored, compared in (
        ([*make, away, *more, back], 12, 12),
        ([*make, away, *anew, back], 6, 6),
        ([*make, away, *make, *more], 18, 18),
    ):
        made = workload(*calls, entries=entries, stored=stored)
        result = player.play(made, "--verify")
        right = {"bytes": compared, "wrong_bytes": 0}
        expect(result["verification"] == right, f"{result['verification']}")


BAD: dict[str, tuple[Callable[[Json], Any], tuple[str, ...]]] = {
    "kind": (lambda r: r | {"call": "mmap"}, ("do[0].call", "open")),
    "key": (lambda r: r | {"size": 1}, ("do[0]", "size")),
    "no-path": (lambda r: {"call": "open", "flags": ["read"], "as": 0}, ("do[0]", "path")),
    "path-beyond": (lambda r: r | {"path": 2}, ("do[0].path", "from 0 to 1")),
    "path-negative": (lambda r: r | {"path": -1}, ("do[0].path",)),
    "handle-beyond": (lambda r: r | {"as": 65536}, ("do[0].as", "65535")),
    "flag": (lambda r: r | {"flags": ["read", "w"]}, ("do[0].flags", "truncate")),
    "no-access": (lambda r: r | {"flags": ["create"]}, ("do[0]", "read or write")),
    "fails-with-handle": (lambda r: r | {"fails": True}, ("do[0]", "unless the call fails")),
    "loop-beyond": (
        lambda r: {"repeat": 3, "do": [r | {"path": [0, 1]}]},
        ("do[0].do[0].path", "from 0 to 1 in all passes"),
    ),
    "loops-without-end": (
        lambda r: {"repeat": 1 << 62, "do": [{"repeat": 1 << 62, "do": [r]}]},
        ("counted",),
    ),
    "ranks-beyond": (lambda r: {"ranks": [0, 2], "do": [r]}, ("do[0].ranks", "within 1")),
    "factor-without-loop": (lambda r: r | {"path": [0, 1]}, ("do[0].path",)),
}
# What is only seen when it is played: calls, and what is said.
WRONG: dict[str, tuple[list[Json], tuple[str, ...]]] = {
    "not-open": ([CLOSE], ("call 1", "handle 0", "not open")),
    "open-twice": ([opened(0, 0, "read"), opened(0, 0, "read")], ("call 2", "handle 0")),
    "not-there": ([opened(1, 0, "read")], ("call 1", "open 1", "No such file")),
    "there": ([{"call": "stat", "path": 0, "fails": True}], ("stat 0", "expected that it fails")),
    "short": (
        [opened(0, 0, "read"), {"call": "read", "of": 0, "bytes": 11}],
        ("call 2", "read 10 bytes", "expected 11"),
    ),
    "too-large": (
        [opened(0, 0, "write"), {"call": "write", "of": 0, "bytes": 1, "at": 100}],
        ("more than the 50 bytes",),
    ),
}


def bad_calls(player: Player) -> None:
    """What is wrong in a call is named, before anything is written."""
    good = opened(0, 0, "read")
    for name, (change, words) in BAD.items():
        made = workload(change(dict(good)), entries=[{"bytes": 1}, {}])
        refused(player, 1, "-w", player.describe(made), "-o", "data", words=words)
        expect(not (player.folder / "data").exists(), f"{name}: files are left")
    for entry, word in (({"in": 0}, "in"), ({"top": True, "bytes": 1}, "top"), ({"is": 1}, "is")):
        made = workload(good, entries=[entry])
        refused(player, 1, "-w", player.describe(made), "-o", "data", words=("entries[0]", word))
    path = player.describe(workload(good, CLOSE, entries=[{"bytes": 1}]))
    refused(player, 1, "-w", path, "-o", "data", "-a", "stdio", words=("stdio", "calls"))


def wrong_calls(player: Player) -> None:
    """What turns out wrong while it is played ends the run, and leaves nothing."""
    for name, (calls, words) in WRONG.items():
        made = workload(*calls, entries=[{"bytes": 10}, {}], stored=50)
        outcome = player.run(1, "-w", player.describe(made), "-o", "data")
        expect(outcome.status == 1, f"{name}: status {outcome.status}\n{outcome.err}")
        for word in words:
            expect(word in outcome.message(), f"{name}: {word!r} is missing: {outcome.err}")
        expect(not (player.folder / "data").exists(), f"{name}: files are left")


def file_of_another(player: Player) -> None:
    """What the run has not made stays, and so do the directories that it is in."""
    made = workload(opened(0, 0, "write", "create"), CLOSE, entries=[{}, {"directory": True}])
    later = {"at": 2, "do": [{"calls": "app", "do": [{"call": "stat", "path": 0}]}]}
    made["streams"][0]["steps"].append(later)
    running = player.start(1, "-w", player.describe(made), "-o", "data")
    strange = player.folder / "data" / "app.tree" / "1" / "mine"
    wait_until(strange.parent.exists)
    strange.write_text("mine")
    running.communicate(timeout=60)
    expect(strange.read_text() == "mine", "a file of somebody else is gone")
    expect(
        sorted(p.name for p in (player.folder / "data").rglob("*")) == ["1", "app.tree", "mine"],
        "",
    )


def link_in_the_way(player: Player) -> None:
    """A link that somebody puts in place of a name leads to nothing that is written or removed."""
    elsewhere = player.folder / "elsewhere"
    elsewhere.mkdir()
    precious = elsewhere / "1"
    precious.write_text("precious")
    data = player.folder / "data" / "app.tree"
    entries: list[Json] = [{"directory": True}, {"in": 0}, {}]
    for link, to, path in ((data / "2", precious, 2), (data / "0", elsewhere, 1)):
        later = [opened(path, 0, "write", "create"), {"call": "write", "of": 0, "bytes": 3}, CLOSE]
        made = workload({"call": "stat", "path": 0}, entries=entries)
        step = {
            "at": 2,
            "do": [{"calls": "app", "do": [*later, {"call": "unlink", "path": path}]}],
        }
        made["streams"][0]["steps"].append(step)
        running = player.start(1, "-w", player.describe(made), "-o", "data")
        wait_until((data / "0").exists)
        if link.exists():
            link.rename(data / "moved")
        link.symlink_to(to)
        outcome = finish(running)
        expect(outcome.status == 1, f"{link}: status {outcome.status}\n{outcome.err}")
        expect(precious.read_text() == "precious", f"{link}: led out of the tree")
        player.clear()


def stopped(player: Player) -> None:
    """A run that is stopped removes what it has made."""
    made = workload(opened(0, 0, "write", "create"), CLOSE, entries=[{}, {"directory": True}])
    later = {"at": 60, "do": [{"calls": "app", "do": [{"call": "stat", "path": 0}]}]}
    made["streams"][0]["steps"].append(later)
    running = player.start(1, "-w", player.describe(made), "-o", "data")
    wait_until((player.folder / "data" / "app.tree" / "0").exists)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=60)
    expect(not (player.folder / "data").exists(), "files are left")


# Entries and calls that put a file or a directory where no entry is, or only another one.
STRAYS: dict[str, tuple[list[Json], list[Json]]] = {
    "named": (
        [{"directory": True}, {"in": 0}, {}, {"in": 2, "name": 1}],
        [opened(1, 0, "write", "create"), CLOSE, {"call": "rename", "path": 0, "to": 2}],
    ),
    "directories": (
        [{"directory": True}, {"in": 0}, {"in": 1}, {"in": 0}],
        [*({"call": "mkdir", "path": n} for n in (1, 2)), {"call": "rename", "path": 1, "to": 3}],
    ),
    "link to a directory": (
        [{"directory": True}, {}, {"in": 1}],
        [{"call": "symlink", "path": 1, "to": 0}, opened(2, 0, "write", "create"), CLOSE],
    ),
    "link to a file": (
        [{"count": 2}],
        [{"call": "symlink", "path": 0, "to": 1}, opened(0, 0, "write", "create"), CLOSE],
    ),
    "link in place of a directory": (
        [{"directory": True}, {"in": 0}, {}, {"directory": True}],
        [
            {"call": "rename", "path": 0, "to": 2},
            {"call": "symlink", "path": 0, "to": 3},
            opened(1, 0, "write", "create"),
            CLOSE,
        ],
    ),
}


def strays(player: Player) -> None:
    """What has come elsewhere with a directory or by a link is removed, too."""
    for name, (entries, calls) in STRAYS.items():
        player.play(workload(*calls, entries=entries))
        expect(not (player.folder / "data").exists(), f"{name}: files are left")
        made = workload(*calls, {"call": "close", "of": 1}, entries=entries)  # which is not open
        outcome = player.run(1, "-w", player.describe(made), "-o", "data")
        expect(outcome.status == 1, f"{name}: status {outcome.status}\n{outcome.err}")
        expect(not (player.folder / "data").exists(), f"{name}: files are left by a failure")


def wait_until(there: Callable[[], bool]) -> None:
    """Waits until something is so."""
    for _ in range(6000):
        if there():
            return
        time.sleep(0.01)
    raise AssertionError("not within a minute")


CASES: dict[str, Callable[[Player], None]] = {
    "every-kind": every_kind,
    "flipped-bytes": flipped_bytes,
    "flipped-input": flipped_input,
    "direct": direct,
    "by-ranks": by_ranks,
    "through-links": through_links,
    "through-directories": through_directories,
    "renamed-directories": renamed_directories,
    "bad-calls": bad_calls,
    "wrong-calls": wrong_calls,
    "file-of-another": file_of_another,
    "link-in-the-way": link_in_the_way,
    "stopped": stopped,
    "strays": strays,
}

if __name__ == "__main__":
    sys.exit(main("calls", CASES))

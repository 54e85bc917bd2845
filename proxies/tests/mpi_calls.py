"""Calls of the system: the player makes them one by one, on files that it makes and removes."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpi_support import (
    Json,
    Player,
    aborted,
    disturbed,
    dumps_of,
    equal,
    expect,
    flip,
    largest_mapping,
    left_only,
    main,
    named,
    refused,
    stopped,
    verified,
)

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


def workload(
    *calls: Json, entries: list[Json], stored: int = 1 << 20, ranks: int = 1, later: Any = ()
) -> Json:
    """A step with these calls, and one with others 2 s later."""
    row: Json = HEADER | {"ranks": ranks, "scaling": {"rule": "none", "from_ranks": ranks}}
    row["sets"] = [{"name": "app", "of": "callers", "entries": entries, "stored_bytes": stored}]
    steps = [
        {"at": at, "do": [{"calls": "app", "do": list(each)}]}
        for at, each in ((0, calls), (2, later))
        if each
    ]
    stream = {"name": "app", "role": "output", "method": "posix", "steps": steps}
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


def write(size: int, **more: Any) -> Json:
    return {"call": "write", "of": 0, "bytes": size} | more


def read(size: int, **more: Any) -> Json:
    return {"call": "read", "of": 0, "bytes": size} | more


LATER = [{"call": "stat", "path": 0}]
CREATE = opened(0, 0, "write", "create")


def every_kind(player: Player) -> None:
    """Files are as the calls leave them, and all of them go with the run."""
    result, files = player.kept(EVERY, "--verify")
    (dump,) = dumps_of(result)
    equal({p["phase"]: p["operations"] for p in dump["phases"]}["write"], 20, "writes")
    expect(dump["bytes"] == dump["described_bytes"] == 2000 + 10_000 + 508 + 600, dump)
    sizes = {"0/1": 1000, "3": 7008, "4": 7008, "5/6": 200, "5/7": 200, "10": 1000}
    expected = {f"app.tree/{name}": size for name, size in sizes.items()}
    equal({name: len(data) for name, data in files.items()}, expected, "sizes")
    # Of the file that is cut, renamed and linked: 2,500 bytes, 500 and 8; of the others 200 each.
    verified(result, 3008 + 400)
    player.play(EVERY)
    left_only(player, result=True)


def disturb(
    player: Player, described: Json, act: Callable[[Path], object], *options: str
) -> tuple[int, str]:
    """Does something to the tree while the run waits for its second step; how it ended."""
    outcome = disturbed(
        player,
        lambda p, _: act(p.data / "app.tree"),
        *options,
        described=described,
        ranks=1,
        after="",
    )
    return outcome.status, outcome.message() if outcome.lines else ""


def flipped_bytes(player: Player) -> None:
    """Whichever byte of what the calls have written last is flipped, it is found; so is one of a
    file that was there before, and that the calls read."""
    wrote = workload(CREATE, write(3000), CLOSE, entries=[{}], later=LATER)
    reads = [opened(0, 0, "read"), read(5000), CLOSE]
    there = workload(*LATER, entries=[{"bytes": 5000}], later=reads)
    for described, place in ((wrote, 0), (wrote, 1), (wrote, 2999), (there, 4321)):
        status, message = disturb(
            player, described, lambda tree, n=place: flip(tree / "0", n), "--verify"
        )
        expect(status not in (0, 2), f"byte {place}: status {status}")
        expect("app.tree/0" in message and f"byte {place} " in message, message)


def direct(player: Player) -> None:
    """A file that is opened past the page cache is, and has what was written."""
    calls = (
        opened(0, 0, "read", "write", "create", "direct"),
        {"repeat": 2, "do": [write(4096)]},
        read(4096, at=4096),
    )

    def flags(tree: Path) -> None:
        seen = [
            int((link.parent.parent / "fdinfo" / link.name).read_text().split()[3], 8)
            for link in Path("/proc").glob("[0-9]*/fd/*")
            if link.is_symlink() and points_to(link, tree / "0")
        ]
        expect(bool(seen) and all(flag & os.O_DIRECT for flag in seen), f"flags {seen}")

    described = workload(*calls, entries=[{}], later=[CLOSE])
    equal(disturb(player, described, flags, "--verify"), (0, ""))


def points_to(link: Path, target: Path) -> bool:
    """Whether a link does, if it is still there."""
    try:
        return link.readlink() == target
    except OSError:
        return False


def in_flight(player: Player) -> None:
    """Calls in flight move the bytes that they would one after the other."""
    calls: list[Json] = [
        opened(0, 0, "read", "write", "create"),
        {"repeat": 50, "do": [write(1000, at=[0, 1000], depth=8)]},
        {"call": "wait"},
        {"repeat": 50, "do": [write(500, at=[49500, -1000], depth=4096)]},
        {"call": "sync", "of": 0},
        {"repeat": 9, "do": [read(6000, at=[1000, 6000], depth=2)]},
        read(6000, at=49000, moved=1000, depth=2),
        CLOSE,
        opened(1, 0, "read"),
        {"repeat": 9, "do": [read(1000, at=[0, 1000], depth=3)]},
        read(1000, at=8500, moved=500, depth=3),
        CLOSE,
    ]
    calls[5]["repeat"] = 8
    entries: list[Json] = [{}, {"bytes": 9000}]
    described = workload(*calls, entries=entries, later=LATER)
    result, files = player.kept(described, "--verify")
    one_by_one = without_depth(described)
    usual, expected = player.kept(one_by_one, "--verify")
    equal(files, expected, "bytes")
    equal(result["verification"], usual["verification"], "verified")
    for kind, row in result["repetitions"][0]["streams"][0]["latency"].items():
        phases = [p for d in dumps_of(result) for p in d["phases"] if p["phase"] == kind]
        equal(row["count"], sum(p["operations"] for p in phases), f"latencies: {kind}")
    for row, other in zip(dumps_of(result), dumps_of(usual), strict=True):
        equal(
            [(p["phase"], p["operations"]) for p in row["phases"]],
            [(p["phase"], p["operations"]) for p in other["phases"]],
            "calls",
        )
    missing = [opened(0, 0, "read"), read(10, at=5, depth=2)]
    row = workload(*missing, entries=[{"bytes": 10}])
    outcome = player.run(0, "-w", player.describe(row), "-o", "data")
    expect(aborted(outcome) and "read 5 bytes at 5" in outcome.message(), outcome.err)
    there = workload(*LATER, entries=entries[::-1], later=[opened(0, 0, "read"), *calls[9:]])
    status, message = disturb(player, there, lambda tree: flip(tree / "0", 8999), "--verify")
    expect(status not in (0, 2) and "byte 8999 " in message, f"{status}: {message}")


def memory_of_calls(player: Player) -> None:
    """Calls stated deeper than there are take memory for those that there are."""
    size = 1 << 20
    made: list[Json] = [opened(0, 0, "read", "write", "create")]
    made += [{"repeat": 4, "do": [write(size, at=[0, size], depth=4096)]}, CLOSE]
    path = player.describe(workload(*made, entries=[{}], stored=4 * size))
    planned = player.run(0, "-w", path, "--dry-run")
    (memory,) = re.findall(r"memory per rank +(\d+)", planned.out)
    expect(int(memory) < 64 * size, f"{memory} bytes planned")
    allocation = largest_mapping(player, "-w", path, "-o", "data")
    expect(allocation < 1 << 30, f"{allocation} bytes at once")


def without_depth(value: Any) -> Any:
    """The workload with each call behind the other."""
    if isinstance(value, list):
        return [without_depth(each) for each in value]
    if isinstance(value, dict):
        return {key: without_depth(each) for key, each in value.items() if key != "depth"}
    return value


def by_ranks(player: Player) -> None:
    """Ranks make the same calls on files of their own, and other ranks make none."""
    calls = [
        opened([0, 1], 0, "write", "create", "exclusive"),
        {"repeat": 4, "do": [write(10, at=[5, 100, 10])]},
        CLOSE,
    ]
    described = workload({"ranks": [1, 2], "do": calls}, entries=[{"count": 3}], ranks=4)
    result, files = player.kept(described, "--verify")
    sizes = {name: len(data) for name, data in files.items()}
    equal(sizes, {"app.tree/0": 45, "app.tree/1": 145}, "sizes")
    verified(result, 80)


def anew(path: int, *flags: str) -> list[Json]:
    return [opened(path, 0, "write", *flags), write(6), CLOSE]


def again(*paths: int) -> list[Json]:
    return [call for path in paths for call in (opened(path, 0, "read"), read(6), CLOSE)]


def move(path: int, to: int, call: str = "rename") -> Json:
    return {"call": call, "path": path, "to": to}


LINKED = [move(1, 0, "symlink"), *again(0, 1), *anew(1, "truncate"), *again(0, 1)]
LINKED += [*anew(1, "append"), *again(0, 1)]
MADE: list[Json] = [{"call": "mkdir", "path": n} for n in (0, 1)]
MADE += anew(2, "create", "exclusive")
FILE_IN: list[Json] = [{"directory": True}, {"in": 0}, {}, {"in": 2, "name": 1}]
NESTED: list[Json] = [{}, {"in": 0}, {"in": 1}, {}, {"in": 3, "name": 1}, {"in": 4, "name": 2}]
# What calls do to names, the entries that they have, and the bytes that are verified.
NAMES: dict[str, tuple[list[Json], list[Json], int]] = {
    "through a link": ([*anew(0, "create", "truncate"), *LINKED], [{}, {}], 12),
    "through a link to a file before": ([*again(0), *LINKED], [{"bytes": 6}, {}], 12),
    "in a renamed directory": ([*anew(1, "create"), move(0, 2), *again(3)], FILE_IN, 6),
    "in a linked one": ([*anew(1, "create"), move(2, 0, "symlink"), *again(3)], FILE_IN, 6),
    # A directory takes its files along: they grow and are cut where they are then, and a file of
    # the same name in a new directory is another one.
    "grown elsewhere": ([*MADE, move(0, 3), *anew(5, "append"), move(3, 0)], NESTED, 12),
    "cut elsewhere": ([*MADE, move(0, 3), *anew(5, "truncate"), move(3, 0)], NESTED, 6),
    "another of the name": ([*MADE, move(0, 3), *MADE, *anew(5, "append")], NESTED, 18),
}


def names(player: Player) -> None:
    """A file is the same by each of its names, and another one has its own bytes."""
    for name, (calls, entries, size) in NAMES.items():
        stored = max(size, 12)
        result = player.play(workload(*calls, entries=entries, stored=stored), "--verify")
        verified(result, size, name)


BAD: dict[str, tuple[Callable[[Json], Any], tuple[str, ...]]] = {
    "kind": (lambda r: r | {"call": "mmap"}, ("do[0].call", "open")),
    "key": (lambda r: r | {"size": 1}, ("do[0]", "size")),
    "no-path": (lambda r: {"call": "open", "flags": ["read"], "as": 0}, ("do[0]", "path")),
    "path-beyond": (lambda r: r | {"path": 2}, ("do[0].path", "from 0 to 1")),
    "path-negative": (lambda r: r | {"path": -1}, ("do[0].path",)),
    "handle-beyond": (lambda r: r | {"as": 65536}, ("do[0].as", "65535")),
    "flag": (lambda r: r | {"flags": ["read", "w"]}, ("do[0].flags", "truncate")),
    "depth-of-no-place": (lambda r: write(1, depth=2), ("do[0]", "depth: expected with at")),
    "depth-of-one": (lambda r: write(1, at=0, depth=1), ("do[0].depth", "from 2 to 4096")),
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
    cases = [
        (workload(change(dict(good)), entries=[{"bytes": 1}, {}]), (), words)
        for change, words in BAD.values()
    ]
    cases += [
        (workload(good, entries=[entry]), (), ("entries[0]", word))
        for entry, word in (
            ({"in": 0}, "in"),
            ({"top": True, "bytes": 1}, "top"),
            ({"is": 1}, "is"),
        )
    ]
    by_stdio = ("-a", "stdio")
    cases.append((workload(good, CLOSE, entries=[{"bytes": 1}]), by_stdio, ("stdio", "calls")))
    for row, options, words in cases:
        refused(player, 0, "-w", player.describe(row), "-o", "data", *options, words=words)


def wrong_calls(player: Player) -> None:
    """What turns out wrong while it is played ends the run, and leaves nothing."""
    for name, (calls, words) in WRONG.items():
        row = workload(*calls, entries=[{"bytes": 10}, {}], stored=50)
        outcome = player.run(0, "-w", player.describe(row), "-o", "data")
        expect(aborted(outcome), f"{name}: status {outcome.status}\n{outcome.err}")
        for word in words:
            expect(word in outcome.message(), f"{name}: {word!r} is missing: {outcome.err}")
        left_only(player)


def file_of_another(player: Player) -> None:
    """What the run has not made stays, and so do the directories that it is in."""
    described = workload(CREATE, CLOSE, entries=[{}, {"directory": True}], later=LATER)
    disturb(player, described, lambda tree: (tree / "1" / "mine").write_text("mine"))
    equal(player.files(), {"app.tree/1/mine": b"mine"})


def link_in_the_way(player: Player) -> None:
    """A link that somebody puts in place of a name leads to nothing that is written or removed."""
    entries: list[Json] = [{"directory": True}, {"in": 0}, {}]
    for name, to, path in (("2", "../../elsewhere/1", 2), ("0", "../../elsewhere", 1)):
        calls = [*anew(path, "create"), {"call": "unlink", "path": path}]

        def plant(tree: Path, name: str = name, to: str = to) -> None:
            elsewhere = tree.parents[1] / "elsewhere"
            elsewhere.mkdir()
            (elsewhere / "1").write_text("precious")
            if (tree / name).exists():
                (tree / name).rename(tree / "moved")
            (tree / name).symlink_to(to)

        described = workload(*LATER, entries=entries, later=calls)
        equal(disturb(player, described, plant)[0], 1, f"{name}: status")
        equal((player.folder / "elsewhere" / "1").read_text(), "precious", f"{name}: led out")


def stops_cleanly(player: Player) -> None:
    """A run that is stopped removes what it has made."""
    described = workload(CREATE, CLOSE, entries=[{}, {"directory": True}], later=LATER)
    described["streams"][0]["steps"][1]["at"] = 60
    outcome = disturbed(
        player, lambda _, run: run.terminate(), described=described, ranks=1, after=""
    )
    expect(stopped(player, outcome), "status 0")
    left_only(player)


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
        left_only(player, result=True)
        row = workload(*calls, {"call": "close", "of": 1}, entries=entries)  # which is not open
        outcome = player.run(0, "-w", player.describe(row), "-o", "data")
        expect(aborted(outcome), f"{name}: status {outcome.status}\n{outcome.err}")
        equal([*player.data.rglob("*")], [], f"{name}: left by a failure")


CASES = named(
    *(
        every_kind,
        flipped_bytes,
        direct,
        in_flight,
        memory_of_calls,
        by_ranks,
        names,
        bad_calls,
        wrong_calls,
    ),
    *(file_of_another, link_in_the_way, stops_cleanly, strays),
)

if __name__ == "__main__":
    sys.exit(main("calls", CASES))

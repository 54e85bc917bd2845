"""Kinds of streams: files written again, extended by another stream, orders, passes, paces.

Every case is held against a plain workload, which has new files, even blocks and consecutive
transfers: contents depend on the stream, the dump and the byte alone, so files must be equal.
"""

import copy
import re
import subprocess
import sys
from functools import partial
from typing import Any

from mpi_errors import refused as made_to_refuse
from mpi_support import (
    SUFFIXES,
    Json,
    Player,
    begun,
    dump_bytes,
    expect,
    main,
    need_direct_io,
    need_method,
    need_program,
    program,
    sample,
)

RANKS = 3
BYTE_METHODS = ("posix", "stdio", "mpiio")
METHODS = (*BYTE_METHODS, "hdf5", "adios")
WHOLE_BYTES = 30 * 37 * 8
EMPTY: Json = {
    **{"time_s": 0.0, "duration_s": None, "overhead_bytes": None, "variables": []},
    "operations": [{"operation": "create", "runs": [[3, 1]]}],
}


def dump(time_s: float = 0.0, rows: int = 30, **keys: Any) -> Json:
    """A dump of rows of 296 bytes, not a multiple of a page or of a transfer."""
    variable = {
        "name": "v",
        "label": "",
        "count": 1,
        "type": "f64",
        "shape": [rows, 37],
        "decomposition": {"rule": "even"},
        "file": 0,
    }
    row = {"time_s": time_s, "duration_s": None, "overhead_bytes": None, "variables": [variable]}
    return row | keys


def stream(name: str, **keys: Any) -> Json:
    plain = {k: v for k, v in sample("single")["streams"][0].items() if k != "dumps"}
    plain |= {
        "name": name,
        "role": "output",
        "operation": "write",
        "files": "new",
        "layout": "shared",
        "groups": None,
        "method": "posix",
        "transfer_bytes": 700,
        "collective": False,
        "sync": False,
        "turns": False,
    }
    return plain | {"dumps": [dump()]} | keys


def workload(*streams: Json) -> Json:
    scaling = {"rule": "none", "from_ranks": RANKS}
    return sample("single") | {"ranks": RANKS, "scaling": scaling, "streams": list(streams)}


def plain(described: Json) -> Json:
    """The same bytes in new files, in even blocks, one transfer after the other."""
    made = copy.deepcopy(described)
    for one in made["streams"]:
        for key in (
            "names",
            "reopen",
            "extends",
            "order",
            "passes",
            "pace",
            "direct",
            "reads",
            "sync_bytes",
            "flush_bytes",
            "chunk_bytes",
            "fill",
            "lookups",
            "write_through",
            "removes",
            "backup",
            "own_directories",
        ):
            one.pop(key, None)
        one["files"] = "new"
        for row in one["dumps"]:
            row.pop("skew", None)
            for variable in row["variables"]:
                variable["decomposition"] = {"rule": "even"}
    return made


def kept(player: Player, described: Json, *arguments: object) -> tuple[Json, dict[str, bytes]]:
    """The result of a run, and its files."""
    player.clear()
    result = player.play(described, "-k", *arguments)
    found = player.data()
    player.clear()
    return result, found


def played(result: Json, name: str) -> list[Json]:
    (found,) = (s for s in result["repetitions"][0]["streams"] if s["name"] == name)
    dumps: list[Json] = found["dumps"]
    return dumps


def operations(one: Json, phase: str) -> int:
    """Calls of all ranks in a phase of a dump; 0 where it did not take place."""
    return sum(p["operations"] for p in one["phases"] if p["phase"] == phase)


SERIES = [dump(0.0), dump(0.1, repeat={"count": 3, "period_s": 0.1}), dump(0.5)]
AGAIN = {
    "one": {"files": "rewrite"},
    "anew": {"files": "rewrite", "removes": True},
    "turn": {"files": "rewrite", "names": 2, "layout": "grouped", "groups": 2},
    "place": {"files": "update", "layout": "file-per-process"},
    "open": {"files": "update", "names": 2, "reopen": False},
}
GROWN = {
    "grows": {"files": "append"},
    "shared": {"files": "append", "reopen": True},
    "apart": {"files": "append", "reopen": True, "layout": "file-per-process"},
    "paired": {"files": "append", "reopen": True, "layout": "grouped", "groups": 2},
}


def rewritten(player: Player, method: str) -> None:
    """Sets of files that are written again hold their last dump, and are opened as they should."""
    need_method(method)
    kinds = {k: v for k, v in AGAIN.items() if method != "adios"}
    if not kinds:
        refused(player)
        return
    described = workload(*(stream(k, dumps=SERIES, **v) for k, v in kinds.items()))
    for one in described["streams"]:
        one["method"] = method
    result, files = kept(player, described, "--verify", "--time-scale", 0)
    lasting = sum(one.get("names", 1) for one in described["streams"])
    expect(
        result["verification"] == {"bytes": lasting * WHOLE_BYTES, "wrong_bytes": 0},
        f"verified {result['verification']}, expected the last dump of {lasting} sets",
    )
    for name, keys in kinds.items():
        dumps = played(result, name)
        expect([d["bytes"] for d in dumps] == 5 * [WHOLE_BYTES], f"{name}: {dumps}")
        opens = [operations(d, "open") > 0 for d in dumps]
        expect(opens == [True, True, *([name != "open"] * 3)], f"{name}: opens {opens}")
        sizes = [d["file_bytes"] for d in dumps]
        expect((None in sizes) == (keys["files"] == "update"), f"{name}: file_bytes {sizes}")
    if method not in BYTE_METHODS:
        return
    _, wanted = kept(player, plain(described), "--time-scale", 0)
    expect(len(files) == 1 + 1 + 2 * 2 + 3 + 2, f"files {sorted(files)}")
    for path, data in files.items():
        name, number, *rest = path.split(".")
        names = int(kinds[name].get("names", 1))
        last = max(d for d in range(5) if d % names == int(number))
        twin = ".".join([name, f"{last:06d}", *rest])
        expect(len(data) == len(wanted[twin]), f"{path} is not as large as the last dump, {twin}")
        # Each dump has contents of its own in the same place: those of the last are verified.
        first = ".".join([name, f"{int(number):06d}", *rest])
        expect((data == wanted[first]) == (last == int(number)), f"{path} has contents of {first}")


def backed_up(player: Player, method: str) -> None:
    """Each content is a new file beside one backup, which holds the content before; bytes and
    files on storage count it, and a run that does not keep its files leaves none of both."""
    need_method(method)
    keys = {"files": "rewrite", "removes": True, "backup": True, "method": method}
    described = workload(stream("s", layout="file-per-process", dumps=SERIES, **keys))
    result, files = kept(player, described, "--verify", "--time-scale", 0)
    expect(result["verification"]["wrong_bytes"] == 0, f"verified {result['verification']}")
    opens = [operations(d, "open") > 0 for d in played(result, "s")]
    expect(opens == 5 * [True], f"opens {opens}")
    expect(len(files) == 2 * RANKS, f"files {sorted(files)}")
    if method in BYTE_METHODS:
        _, wanted = kept(player, plain(described), "--time-scale", 0)
        for path, data in files.items():
            dump = "000003" if path.endswith(".backup") else "000004"
            twin = path.removesuffix(".backup").replace(".000000.", f".{dump}.", 1)
            expect(len(data) == len(wanted[twin]), f"{path} is not as large as dump {dump}")
            expect(data != files.get(f"{path}.backup"), f"{path} is as before")
    outcome = player.run(0, "-w", player.describe(described), "-o", "data", "--dry-run")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for line in (f"files on storage {2 * RANKS}", f"bytes on storage {2 * WHOLE_BYTES}"):
        expect(line in lines, f"{line!r} is missing in {outcome.out}")
    player.play(described, "--time-scale", 0)
    expect(player.data() == {}, f"left: {sorted(player.data())}")
    if method not in BYTE_METHODS:
        return
    more = stream("more", extends="s", files="rewrite", dumps=SERIES, method=method)
    both = workload(stream("s", dumps=SERIES, **keys), more)
    _, files = kept(player, both, "--time-scale", 0)
    outcome = player.run(0, "-w", player.describe(both), "-o", "data", "--dry-run")
    told = f"bytes on storage {sum(map(len, files.values()))}"
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    expect(told in lines, f"{told!r} is missing in {outcome.out}")


def grown(player: Player, method: str) -> None:
    """Appended files that each dump opens hold the same as those that stay open."""
    need_method(method)
    described = workload(*(stream(k, dumps=SERIES, **v) for k, v in GROWN.items()))
    for one in described["streams"]:
        one["method"] = method
    result, files = kept(player, described, "--verify", "--time-scale", 0)
    expect(
        result["verification"] == {"bytes": len(GROWN) * 5 * WHOLE_BYTES, "wrong_bytes": 0},
        f"verified {result['verification']}, expected all dumps",
    )
    for name, keys in GROWN.items():
        dumps = played(result, name)
        expect([d["bytes"] for d in dumps] == 5 * [WHOLE_BYTES], f"{name}: {dumps}")
        again = "reopen" in keys
        for phase, times in (("open", [True, *(4 * [again])]), ("close", [*(4 * [again]), True])):
            found = [operations(d, phase) > 0 for d in dumps]
            expect(found == times, f"{name}: {phase} {found}")
        if again:
            expect(not any(operations(d, "sync") for d in dumps), f"{name}: flushed")
    if method in BYTE_METHODS:
        _, wanted = kept(
            player,
            described
            | {
                "streams": [
                    {k: v for k, v in one.items() if k != "reopen"} for one in described["streams"]
                ]
            },
            "--time-scale",
            0,
        )
        expect(files == wanted, "files differ from those that stay open")
        expect(len(files) == 1 + 1 + RANKS + 2, f"files {sorted(files)}")
    for one in described["streams"]:
        one["operation"] = "read"
    result = player.play(described, "--verify", "--time-scale", 0)
    expect(result["verification"]["wrong_bytes"] == 0, "wrong bytes in a file that is read")


def refused(player: Player) -> None:
    """One line where a method cannot do what a stream asks."""
    for keys, words in (
        ({"files": "rewrite"}, "cannot rewrite files"),
        ({"files": "update"}, "cannot update files in place"),
        ({"files": "append", "reopen": True}, "cannot open appended files again"),
        ({"write_through": True}, "cannot write through"),
        (
            {"lookups": {"every_bytes": 9, "calls": 1, "transfer_bytes": 9}},
            "cannot read files between writes",
        ),
    ):
        path = player.describe(workload(stream("s", dumps=SERIES, **keys)))
        outcome = player.run(RANKS, "-w", path, "-o", "data", "-a", "adios", "--dry-run")
        expect(outcome.status == 2, outcome.err)
        expect("streams[0] (s)" in outcome.message() and words in outcome.message(), outcome.err)


def smaller(player: Player) -> None:
    """A smaller dump shortens a rewritten file, and leaves the rest of an updated one."""
    dumps = [dump(0.0), dump(0.1, rows=10)]
    described = workload(
        stream("r", files="rewrite", dumps=dumps), stream("u", files="update", dumps=dumps)
    )
    _, files = kept(player, described, "--verify")
    _, wanted = kept(player, plain(described))
    small, whole = len(wanted["u.000001"]), wanted["u.000000"]
    expect(len(files["r.000000"]) == small, "the rewritten file is not as large as the last dump")
    expect(files["u.000000"][small:] == whole[small:], "the rest of an updated file has changed")
    expect(files["u.000000"][:small] != whole[:small], "the updated bytes are as before")
    result = player.play(described, "--restart", "--restart-stream", "r")
    expect(result["repetitions"][0]["streams"][2]["name"] == "r-restart", "no restart")
    outcome = player.run(
        RANKS,
        "-w",
        player.describe(described),
        "-o",
        "data",
        "--restart",
        "--restart-stream",
        "r",
        "--restart-dump",
        0,
    )
    expect("overwrites that dump later, expected 1 to 1" in outcome.message(), outcome.err)


HEADER = {"rule": "runs", "runs": [[1, 2], [2, 0]]}  # by rank 0


def extended(player: Player) -> None:
    """A file written through three interfaces holds one stream behind the other."""
    variable = dump(rows=2)["variables"][0] | {"decomposition": HEADER}
    head = [dump(t, variables=[variable]) for t in (0.0, 0.1)]
    body = [dump(0.0), dump(0.1)]
    for files in ("new", "rewrite"):
        described = workload(
            stream("head", method="stdio", files=files, dumps=head),
            stream(
                "body", method="mpiio", files=files, dumps=body, extends="head", collective=True
            ),
            stream("tail", method="posix", files=files, dumps=head, extends="body"),
        )
        result, found = kept(player, described, "--verify")
        expect(result["verification"]["wrong_bytes"] == 0, "wrong bytes")
        _, apart = kept(player, plain(described))
        last = [1] if files == "rewrite" else [0, 1]
        expect(sorted(found) == [f"head.{k:06d}" for k in range(len(last))], f"{sorted(found)}")
        for k, d in enumerate(last):
            wanted = sum(len(apart[f"{n}.{d:06d}"]) for n in ("head", "body", "tail"))
            made, part = found[f"head.{k:06d}"], apart[f"head.{k:06d}"]
            expect(len(made) == wanted, f"{files}: file {k} is not as large as the three parts")
            expect((made[: len(part)] == part) == (k == d), f"{files}: file {k} begins otherwise")
        for name, size in (("head", 592), ("body", WHOLE_BYTES), ("tail", 592)):
            grown = [d["file_bytes"] for d in played(result, name)]
            expect(grown == [size, size], f"{files}: {name} grew by {grown}")
    for one in described["streams"]:
        one |= {"operation": "read", "files": "new"}
    result = player.play(described, "--verify")
    expect(result["verification"]["wrong_bytes"] == 0, "wrong bytes in a file that is read")
    outcome = player.run(RANKS, "-w", player.describe(described), "-o", "data", "-a", "hdf5")
    expect("share a file with another method" in outcome.message(), outcome.err)


ORDERS = {"strided": {"rule": "strided", "step": 4}, "shuffled": {"rule": "shuffled", "seed": 9}}


def ordered(player: Player, method: str) -> None:
    """Every order and cyclic blocks leave the bytes of the plain workload."""
    need_method(method)
    cyclic = dump()["variables"][0] | {"decomposition": {"rule": "cyclic", "block": 4}}
    blocks = [dump(variables=[cyclic | {"type": "i16", "count": 2}])]
    described = workload(
        *(stream(k, order=v) for k, v in ORDERS.items()),
        stream("cyclic", dumps=blocks, collective=method in ("mpiio", "hdf5")),
        stream("both", dumps=blocks, order=ORDERS["shuffled"]),
        stream("groups", dumps=blocks, layout="grouped", groups=2),
    )
    for one in described["streams"]:
        one["method"] = method
    result, files = kept(player, described, "--verify")
    total = sum(dump_bytes(d) for s in described["streams"] for d in s["dumps"])
    expect(
        result["verification"] == {"bytes": total, "wrong_bytes": 0}, f"{result['verification']}"
    )
    if method not in BYTE_METHODS:
        return
    _, wanted = kept(player, plain(described))
    for path, data in files.items():
        if not path.startswith("groups"):  # whose files hold other rows
            expect(data == wanted[path], f"{path} differs")
    # Rounds of 12 rows of 74 bytes: two ranks have 12 + 8 rows, or 10 and 10 in all of them.
    calls = operations(played(result, "cyclic")[0], "write")
    expect(calls == 2 * 8 if method != "mpiio" else calls >= 16, f"cyclic: {calls} calls")


def calls(player: Player) -> None:
    """Passes, flushes within a dump and writes to storage make the calls that they should."""
    described = workload(
        stream("read", operation="read", passes=3),
        stream(
            "again",
            operation="read",
            files="update",
            names=2,
            dumps=[dump(repeat={"count": 6, "period_s": 0.1})],
        ),
        stream("flush", sync_bytes=1400),
        stream(
            "together",
            sync_bytes=1400,
            method="mpiio",
            dumps=[
                dump(
                    variables=[
                        dump()["variables"][0]
                        | {"decomposition": {"rule": "runs", "runs": [[1, 20], [1, 10], [1, 0]]}}
                    ]
                )
            ],
        ),
        stream("buffered", method="stdio", flush_bytes=1400),
        stream("unbuffered", flush_bytes=1400),
        stream("through", write_through=True),
        stream("wide", layout="file-per-process", order=ORDERS["shuffled"], sync_bytes=1),
    )
    result, files = kept(player, described, "--verify", "--time-scale", 0)
    (read,) = played(result, "read")
    expect(read["bytes"] == 3 * WHOLE_BYTES == read["described_bytes"], f"read {read['bytes']}")
    each = 3 * 5  # 10 rows of 296 bytes by calls of two rows
    expect(operations(read, "read") == 3 * each, f"{operations(read, 'read')} reads")
    again = played(result, "again")
    expect(len(again) == 6 and len([f for f in files if f.startswith("again")]) == 2, "again")
    # 592 bytes a call: a flush behind every third of five, or behind every one.
    calls = {"flush": each + 3, "buffered": each + 3, "unbuffered": each, "through": each}
    calls["wide"] = 2 * each
    found = {n: operations(played(result, n)[0], "write") for n in calls}
    expect(found == calls, f"{found}")
    together = operations(played(result, "together")[0], "write")
    # 10 and 5 calls of two ranks; both flush behind every second of 10 rounds.
    expect(together == 15 + 2 * 5, f"together: {together} calls")
    wanted = kept(player, plain(described))[1]
    for path, data in files.items():
        expect(path.startswith("again") or data == wanted[path], f"{path} differs")


def looked_up(player: Player) -> None:
    """Reads between writes are made by every method that can, and what is written is the same."""
    found = {"every_bytes": 1000, "calls": 1.5, "transfer_bytes": 300}
    described = workload(
        *(stream(method, method=method, lookups=found) for method in ("posix", "stdio")),
        stream("turns", method="stdio", turns=True, lookups=found),
        stream("flushed", method="stdio", sync_bytes=1, lookups=found),
    )
    result, files = kept(player, described, "--verify")
    # A rank writes 592 bytes a call, 5 times: 1 and then 2 reads behind the second and the fourth.
    made = operations(played(result, "posix")[0], "write")
    expect(made == 3 * (5 + 3), f"{made} calls")
    wanted = kept(player, plain(described))[1]
    for path, data in files.items():
        if not path.startswith("turns"):
            expect(data == wanted[path], f"{path} differs")


def laid_out(player: Player) -> None:
    """Datasets are in chunks and filled, unless options say otherwise; the bytes are the same."""
    need_method("hdf5")
    need_program("h5dump", "hdf5-tools")
    described = workload(stream("s", method="hdf5", chunk_bytes=296 * 4, fill=True))
    wanted = kept(player, workload(stream("s")))[1]["s.000000"]
    for options, layout, fill in (
        ((), "CHUNKED ( 3, 37 )", "H5D_FILL_TIME_ALLOC"),
        (("-m", "hdf5.chunk=0", "-m", "hdf5.fill=no"), "CONTIGUOUS", "H5D_FILL_TIME_NEVER"),
    ):
        player.clear()
        player.play(described, "-k", "--verify", *options)
        shown, _ = (
            subprocess.run(
                ["h5dump", *how, "data/s.000000.h5"],
                cwd=player.folder,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            for how in (["-p", "-H"], ["-d", "/v", "-b", "MEMORY", "-o", "dumped"])
        )
        expect(layout in shown and fill in shown, shown)
        expect((player.folder / "dumped").read_bytes() == wanted, "other bytes")


def paced(player: Player) -> None:
    """Steady transfers last as long as their dump, and waiting is no time of a rank."""
    described = workload(stream("s", pace="steady", dumps=[dump(duration_s=4.0)]))
    result = player.play(described, "--time-scale", 0.1, "--verify")
    (one,) = played(result, "s")
    (phase,) = (p for p in one["phases"] if p["phase"] == "write")
    span = phase["last_end_s"] - phase["first_start_s"]
    expect(span >= 0.32, f"5 transfers of a rank begin within {span} s, expected 0.32 at least")
    expect(phase["rank_s"]["max"] < span, f"waiting counts: {phase['rank_s']} of {span} s")


def between(player: Player) -> None:
    """What a rank computes between transfers takes its time, which is no time of I/O, and pauses
    can be kept after a dump that took longer than in the original."""
    dumps = [dump(duration_s=0.01, compute_s=0.4), dump(0.3)]
    described = workload(stream("s", dumps=dumps))
    result = player.play(described, "--keep-pauses", "--verify")
    first, second = played(result, "s")
    (phase,) = (p for p in first["phases"] if p["phase"] == "write")
    span = phase["last_end_s"] - phase["first_start_s"]
    expect(span >= 0.4, f"5 transfers of a rank took {span} s, expected 0.4 at least")
    expect(phase["rank_s"]["max"] < span - 0.3, f"computing counts: {phase['rank_s']} of {span} s")
    begins = min(p["first_start_s"] for p in second["phases"])
    expect(begins >= 0.4 + 0.29, f"the pause of 0.29 s was not kept: {begins} s")
    expect(result["options"]["keep_pauses"] is True, f"{result['options']}")


def says_that_it_waits(player: Player) -> None:
    """With -v, what passes before a dump and between its transfers is announced."""
    computing, steady = dump(1.5, compute_s=0.01), dump(1.6, duration_s=0.02)
    streams = [stream("s", dumps=[computing]), stream("p", pace="steady", dumps=[steady])]
    outcome = player.run(3, "-w", player.describe(workload(*streams)), "-o", "data", "-v")
    expect(outcome.status == 0, outcome.err)
    lines = [line for line in outcome.err.splitlines() if " waits " in line]
    expect(re.fullmatch(r"understudy: s: waits [01]\.\d{3} s for dump 0", lines[0]), outcome.err)
    for name, seconds in (("s", "0.010"), ("p", "0.020")):
        line = f"understudy: {name}: dump 0 computes or waits {seconds} s between its transfers"
        expect(line in lines, outcome.err)
    outcome = player.run(3, "-w", player.describe(workload(streams[0])), "-o", "again")
    expect(not outcome.complaints, f"without -v: {outcome.err}")


def late(player: Player) -> None:
    """Ranks begin a dump late, each for itself, and wait outside of I/O; where they open a
    file together, they do so first. Scaled times scale it, and the bytes are the same."""
    skew = [[1, 0.3], [1, 0], [1, 0.6]]
    methods = [m for m in ("posix", "stdio", "mpiio", "hdf5") if m in player.methods([m])]
    kinds: list[Json] = [{"method": method} for method in methods]
    kinds += [{"layout": "file-per-process"}, {"layout": "flood"}, {"turns": True}]
    kinds += [{"operation": "read"}, {"files": "append"}, {"dumps": [EMPTY]}]
    for keys in kinds:
        dumps = [one | {"skew": skew} for one in keys.get("dumps", [dump(duration_s=0)])]
        described = workload(stream("s", **keys | {"dumps": dumps}))
        for scale in (1, 0):
            result, files = kept(player, described, "--verify", "--time-scale", scale)
            (one,) = played(result, "s")
            phases = {p["phase"]: p for p in one["phases"]}
            moved = next(p for n, p in phases.items() if n in ("write", "read", "metadata"))
            expect((moved["last_end_s"] >= 0.6) == (scale == 1), f"{keys}, {scale}: {moved}")
            # The second rank begins at once, unless it has to wait for its turn behind the first.
            first = phases.get("open", moved)["first_start_s"]
            expect(first < 0.3 or "turns" in keys, f"{keys}: {phases}")
            expect(moved["rank_s"]["max"] < 0.25, f"{keys}: waiting counts: {moved}")
            opened_late = keys.get("method", "posix") == "posix" and "dumps" not in keys
            if opened_late and scale == 1:
                expect(phases["open"]["last_end_s"] >= 0.6, f"{keys}: {phases}")
                expect(phases["open"]["rank_s"]["max"] < 0.25, f"{keys}: {phases}")
        if keys.get("method") in BYTE_METHODS:
            wanted = kept(player, plain(described), "--time-scale", 0)[1]
            expect(files == wanted, f"{keys}: other bytes")
    dumps = [dump(duration_s=0, skew=skew), dump(0.3, skew=skew)]
    result = player.play(workload(stream("s", dumps=dumps)), "--keep-pauses")
    first, second = (max(p["last_end_s"] for p in d["phases"]) for d in played(result, "s"))
    expect(second - first >= 0.9, f"pauses kept: {first} s, {second} s")


def own(player: Player) -> None:
    """The files of each rank, or group, lie in a directory of their own, and nothing is left."""
    described = workload(
        stream("s", layout="file-per-process", own_directories=True),
        stream(
            "g",
            layout="grouped",
            groups=2,
            own_directories=True,
            files="rewrite",
            removes=True,
            dumps=SERIES,
        ),
        stream("r", layout="file-per-process", own_directories=True, operation="read"),
    )
    result, files = kept(player, described, "--verify", "--time-scale", 0)
    expect(result["verification"]["wrong_bytes"] == 0, f"{result['verification']}")
    wanted = {f"{s}.d{r}/{s}.000000.{r:08d}" for s in "sr" for r in range(RANKS)}
    wanted |= {f"g.d{g}/g.000000.g{g}" for g in range(2)}
    expect(set(files) == wanted, f"files {sorted(files)}, expected {sorted(wanted)}")
    _, others = kept(player, plain(described), "--time-scale", 0)
    for path, data in files.items():
        name = path.partition("/")[2]
        twin = name.replace("g.000000", "g.000004")
        expect(len(data) == len(others[twin]), f"{path} is not as large as {twin}")
        expect(name != twin or data == others[twin], f"{path} is not {twin}")
    for method in ("mpiio", "stdio", "hdf5"):
        if method in player.methods([method]):
            player.play(described, "-a", method, "--time-scale", 0)
            expect(not player.data(), f"{method}: left {sorted(player.data())}")


def direct(player: Player) -> None:
    """A direct stream is played past the page cache where that is possible, or it says so."""
    described = workload(stream("s", direct=True, transfer_bytes=8192))
    path = player.describe(described)
    outcome = player.run(RANKS, "-w", path, "-o", "data", "-a", "mpiio")
    expect(outcome.status == 0, outcome.err)
    expect("direct in the original; the method mpiio uses" in outcome.message(), outcome.err)
    need_direct_io(player.folder)
    outcome = player.run(RANKS, "-w", path, "-o", "data", "--verify")
    expect(outcome.status == 0 and outcome.complaints == "", outcome.err)
    outcome = player.run(RANKS, "-w", path, "-o", "data", "-t", 2**63 - 1, "--verify")
    expect(outcome.status == 0, outcome.err)
    outcome = player.run(RANKS, "-w", path, "-o", "data", "-t", 1000)
    expect("no whole pages" in outcome.message(), outcome.err)


def pieces(*names: str, rows: int = 30, again: tuple[str, ...] = ()) -> list[Json]:
    """Variables of these names; those of `again` have the place of one before."""
    (one,) = dump(rows=rows)["variables"]
    return [one | {"name": name} | ({"at": name} if name in again else {}) for name in names]


def in_turn(player: Player, method: str) -> None:
    """Files are read and written in turn in one open: records at their places, new ones behind."""
    need_method(method)
    old = ("a", "b")
    life = [
        dump(0.0, variables=pieces(*old)),
        dump(0.2, variables=pieces("a", "b", "c", again=old), continues=True),
        dump(0.4, variables=pieces("c", again=("c",)), continues=True),
    ]
    later = [row | {"time_s": row["time_s"] + 1.0} for row in life]
    reads = [
        dump(0.1, variables=pieces(*old, again=old)),
        dump(0.3, variables=pieces("b", rows=60, again=("b",))),  # over the next
        dump(0.5, rows=90),  # the files are closed
        dump(1.1, variables=pieces("b", again=old)),
    ]
    kinds: dict[str, Json] = {
        "anew": {"files": "rewrite", "removes": True},
        "apart": {"files": "rewrite", "layout": "file-per-process", "own_directories": True},
        "place": {"files": "update", "layout": "grouped", "groups": 2},
        "turn": {"files": "rewrite", "names": 2},
        "new": {},
    }
    streams = []
    for name, keys in kinds.items():
        base = stream(name, dumps=[*life, *later], method=method, **keys)
        layout = {k: base[k] for k in ("layout", "groups", "method")}
        streams += [
            base,
            stream(
                f"{name}-read", operation="read", files="update", reads=name, dumps=reads, **layout
            ),
        ]
    result, files = kept(player, workload(*streams), "--verify", "--time-scale", 0)
    lasting = sum(2 if name in ("turn", "new") else 1 for name in kinds)
    expect(
        result["verification"] == {"bytes": lasting * 6 * WHOLE_BYTES, "wrong_bytes": 0},
        f"verified {result['verification']}, expected six records of {lasting} contents",
    )
    sizes = sum(len(data) for data in files.values())
    expect(sizes == lasting * 3 * WHOLE_BYTES, f"{sizes} B in files of three records each")
    for name in kinds:
        opens = [operations(d, "open") > 0 for d in played(result, name)]
        expect(opens == 2 * [True, False, False], f"{name} opens {opens}")
        found = played(result, f"{name}-read")
        opens = [operations(d, "open") > 0 for d in found]
        expect(opens == [False, False, True, False], f"{name}-read opens {opens}")
        expect(all(operations(d, "read") > 0 for d in found), f"{name}-read: {found}")
        moved = [d["bytes"] for d in found]
        expect(moved == [n * WHOLE_BYTES for n in (2, 2, 3, 1)], f"{name}-read: {moved}")


def lent(player: Player, method: str) -> None:
    """Updated files that stay open do so until they are read for the last time."""
    need_method(method)
    streams = []
    for name, dumps, layout in (
        ("once", [dump(0.0)], {}),
        ("twice", [dump(0.0), dump(0.2)], {"layout": "file-per-process"}),
    ):
        base = stream(name, dumps=dumps, method=method, files="update", reopen=False, **layout)
        streams.append(base)
        for number, times in enumerate(((0.1, 0.4), (0.3, 0.5, 0.6))):
            streams.append(
                stream(
                    f"{name}-read-{number}",
                    operation="read",
                    files="update",
                    reads=name,
                    dumps=[dump(t) for t in times],
                    method=method,
                    **layout,
                )
            )
    described = workload(*streams)
    result = player.play(described, "--verify", "--time-scale", 0)
    expect(result["verification"]["wrong_bytes"] == 0, f"{result['verification']}")
    for name, count in (("once", 1), ("twice", 2)):
        opens = [operations(d, "open") > 0 for d in played(result, name)]
        expect(opens == [True, False][:count], f"{name} opens {opens}")
        expect(not any(operations(d, "close") for d in played(result, name)), f"{name} closes")
        for number in range(2):
            found = played(result, f"{name}-read-{number}")
            expect(not any(operations(d, "open") for d in found), f"{name}, {number}: it opens")
            expect(all(d["bytes"] == WHOLE_BYTES for d in found), f"{name}, {number}: {found}")
            closes = [operations(d, "close") > 0 for d in found]
            expected = [False, False, True] if number else [False, False]
            expect(closes == expected, f"{name}, {number}: closes {closes}")
    player.play(described, "--restart", "--verify", "--time-scale", 0)


def in_turn_restart(player: Player) -> None:
    """A restart reads a dump that continues where it is."""
    old = ("a",)
    dumps = [
        dump(0.0, variables=pieces("a", "b")),
        dump(0.1, variables=pieces("a", "c", again=old), continues=True),
    ]
    result = player.play(
        workload(stream("s", role="checkpoint", files="rewrite", dumps=dumps)),
        "--restart",
        "--verify",
        "--time-scale",
        0,
    )
    moved = [d["bytes"] for d in played(result, "s-restart")]
    expect(moved == [2 * WHOLE_BYTES], f"restart: {moved}")


def at_appended(player: Player) -> None:
    """What is read of an appended file may be what any dump before has written."""
    described = workload(
        stream(
            "s",
            files="append",
            dumps=[dump(variables=pieces("a")), dump(0.2, variables=pieces("b"))],
        ),
        stream(
            "r",
            operation="read",
            files="update",
            reads="s",
            dumps=[
                dump(0.3, variables=pieces("b", again=("b",))),
                dump(0.4, variables=pieces("a", again=("a",))),
            ],
        ),
    )
    result = player.play(described, "--verify", "--time-scale", 0)
    moved = [d["bytes"] for d in played(result, "r")]
    expect(moved == 2 * [WHOLE_BYTES], f"read {moved}")


def in_turn_refused(player: Player) -> None:
    """Methods that cannot read what they write, or have no bytes to address, say so."""
    described = workload(
        stream("s", files="rewrite", dumps=[dump(), dump(0.2, continues=True)]),
        stream("r", operation="read", files="update", reads="s", dumps=[dump(0.1)]),
    )
    path = player.describe(described)
    for method in player.methods(["hdf5", "adios"]):
        outcome = player.run(RANKS, "-w", path, "-o", "data", "-a", method)
        expect(f"the method {method} cannot" in outcome.message(), outcome.err)
    beyond = program(described)
    for move in beyond["streams"][1]["steps"][0]["do"]:
        if isinstance(move, dict) and "read" in move:
            move["shape"][0] *= 2
    outcome = player.run(RANKS, "-w", player.describe(beyond), "-o", "data", "--time-scale", 0)
    expect(outcome.status != 0, "a read beyond the end of the file is possible")
    expect("posix: cannot read" in outcome.message(), outcome.err)
    expect(
        "data/s.000000" in outcome.message() and "the file ends before" in outcome.message(),
        outcome.err,
    )


def repeated(player: Player) -> None:
    """A rule stands for its dumps; space is counted for what lasts."""
    described = workload(
        stream("s", files="rewrite", dumps=[dump(1.0, repeat={"count": 50, "period_s": 2.0})])
    )
    path = player.describe(described)
    outcome = player.run(RANKS, "-w", path, "-o", "data", "--dry-run")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    for line in (
        "dumps 50, rewritten",
        "files 1",
        f"bytes {50 * WHOLE_BYTES}",
        f"bytes on storage {WHOLE_BYTES}",
        "last dump due 99.000 s",
    ):
        expect(line in lines, f"{line!r} is missing in {outcome.out}")
    result = player.play(described, "--time-scale", 0)
    expect(len(played(result, "s")) == 50, "dumps are missing")


def nonblocking(player: Player) -> None:
    """Moves that are begun and waited for later leave the same bytes, and read them."""
    need_method("mpiio")
    columns = {"rule": "grid", "grid": [1, 3]}
    for collective in (False, True):
        two = [dump(), dump(0.1)]
        for one in two:
            more = [dict(one["variables"][0], name=f"w{k}", count=2) for k in range(2)]
            more[1]["decomposition"] = columns
            one["variables"] += more
        keys: Json = {"method": "mpiio", "collective": collective, "dumps": two}
        described = workload(stream("out", **keys), stream("in", **keys, operation="read"))
        described["streams"][1]["role"] = "input"
        usual, wanted = kept(player, described, "--verify")
        result, files = kept(player, begun(described), "--verify")
        expect(files == wanted, f"collective {collective}: other bytes")
        expect(result["verification"] == usual["verification"], f"{result['verification']}")
        for name, phase in (("out", "write"), ("in", "read")):
            counts = [operations(d, phase) for d in played(result, name)]
            calls = [operations(d, phase) for d in played(usual, name)]
            expect(counts == calls, f"{name}: {counts} calls, expected {calls}")
    not_begun(player, begun(described), "--method", "posix", words=("posix", "begin moves"))
    left = begun(described)
    left["streams"][0]["steps"][0]["do"].remove("wait_all")
    not_begun(player, left, words=("streams[0].steps[0].do", "wait_all"))
    left = begun(described)
    left["streams"][1]["steps"][1]["do"].insert(-2, "sync")
    not_begun(player, left, words=("streams[1].steps[1].do", "wait_all"))


def not_begun(player: Player, made: Json, *options: object, words: tuple[str, ...]) -> None:
    """Refused, and nothing is left."""
    player.clear()
    made_to_refuse(player, RANKS, "-w", player.describe(made), "-o", "data", *options, words=words)
    expect(not (player.folder / "data").exists(), "files are left")


CASES = {
    **{f"rewritten.{m}": partial(rewritten, method=m) for m in METHODS},
    **{f"backed-up.{m}": partial(backed_up, method=m) for m in METHODS if m != "adios"},
    **{f"grown.{m}": partial(grown, method=m) for m in METHODS if m != "adios"},
    **{f"ordered.{m}": partial(ordered, method=m) for m in METHODS},
    **{f"in-turn.{m}": partial(in_turn, method=m) for m in ("posix", "stdio", "mpiio")},
    **{f"lent.{m}": partial(lent, method=m) for m in ("posix", "stdio", "mpiio")},
    "in-turn-restart": in_turn_restart,
    "in-turn-refused": in_turn_refused,
    "at-appended": at_appended,
    "smaller": smaller,
    "extended": extended,
    "calls": calls,
    "looked-up": looked_up,
    "laid-out": laid_out,
    "paced": paced,
    "between": between,
    "says-that-it-waits": says_that_it_waits,
    "late": late,
    "own": own,
    "direct": direct,
    "repeated": repeated,
    "nonblocking": nonblocking,
}

if __name__ == "__main__":
    assert set(METHODS) <= set(SUFFIXES) | set(BYTE_METHODS)
    sys.exit(main("kinds", CASES))

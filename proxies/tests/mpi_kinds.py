"""Kinds of streams: files written again, extended by another stream, orders, passes, paces.

Every kind is held against a plain workload, which has new files, even blocks and consecutive
transfers: contents depend on the stream, the dump and the byte alone, so files must be equal.
"""

import copy
import json
import re
import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from mpi_support import (
    BYTE_METHODS,
    EVEN,
    HERE,
    STEP_METHODS,
    Json,
    Player,
    at,
    begun,
    changed,
    dry_run,
    dump,
    dump_bytes,
    dumps_of,
    equal,
    expect,
    in_flight,
    largest_mapping,
    main,
    moves_of,
    named,
    need_direct_io,
    need_method,
    need_program,
    output,
    phase_of,
    phases_of,
    program,
    refused,
    stream,
    variable,
    verified,
    workload,
)

RANKS = 3
METHODS = (*BYTE_METHODS, "hdf5", *STEP_METHODS)
NOW = ("--time-scale", 0)
WHOLE = 30 * 37 * 8  # bytes of a dump
TABLE = json.loads((HERE / "kinds.json").read_text())
KINDS: dict[str, Json] = TABLE["kinds"]
OTHERWISE = (
    *("names", "reopen", "extends", "order", "passes", "pace", "direct", "reads", "sync_bytes"),
    *("flush_bytes", "chunk_bytes", "fill", "lookups", "write_through", "removes", "backup"),
    "own_directories",
)


def row_of(row: Json) -> Json:
    """A dump of the table: `of` names variables, some of them `at` the place of one before."""
    rest = dict(row)
    names, places = rest.pop("of", "v"), rest.pop("at", "")
    changes: Json = {"shape": [rest.pop("rows", 30), 37]}
    changes |= {key: rest.pop(key) for key in ("type", "count") if key in rest}
    if "runs" in rest:
        changes["decomposition"] = {"rule": "runs", "runs": rest.pop("runs")}
    if "cyclic" in rest:
        changes["decomposition"] = {"rule": "cyclic", "block": rest.pop("cyclic")}
    again: dict[str, Json] = {name: {"at": name} for name in places}
    moved = [variable(name, **changes | again.get(name, {})) for name in names]
    return dump(rest.pop("time_s", 0.0), *moved, **rest)


def dumps_named(name: str) -> list[Json]:
    return [row_of(row) for row in TABLE["dumps"][name]]


def described_by(kind: Json, **more: Any) -> Json:
    """The workload of a kind, with the dumps that it names."""
    rows = {name: {"dumps": "one"} | keys | more for name, keys in kind["streams"].items()}
    return workload(
        *(
            stream(name, **keys | {"dumps": dumps_named(keys["dumps"])})
            for name, keys in rows.items()
        )
    )


def plain(described: Json, keep: Iterable[str] = ()) -> Json:
    """The same bytes in new files, in even blocks, one transfer after the other."""
    twin = copy.deepcopy(described)
    for row in twin["streams"]:
        for key in OTHERWISE:
            row.pop(key, None)
        row["files"] = row["files"] if "files" in keep else "new"
        for each in row["dumps"]:
            each.pop("skew", None)
            for moved in each["variables"]:
                moved["decomposition"] = EVEN
    return twin


def play(player: Player, name: str, method: str | None = None) -> None:
    """Plays the kind, verified by the player and against the plain files. The table has, besides
    the streams: in which dumps there are calls of a phase ("10011"), or how many; how many bytes
    are verified, if not all; as which plain files together each file is as long; of which streams
    the files are not compared; what a plan says; and what a run that keeps nothing is given."""
    kind = KINDS[name]
    described = described_by(kind, **({"method": method} if method else {}))
    for row in described["streams"] if method in ("mpiio", "hdf5") else []:
        row["collective"] = row["name"] == "cyclic"
    result, files = player.kept(described, "--verify", *kind.get("options", ()), *NOW)
    moved = sum(check_dumps(row, kind, result) for row in described["streams"])
    verified(result, kind.get("verified", moved))
    for place, expected in kind.get("calls", {}).items():
        of, phase = place.split()
        counts = [phases_of(row).get(phase, 0) for row in dumps_of(result, of)]
        text = "".join("01"[count > 0] for count in counts)
        equal(text if isinstance(expected, str) else counts, expected, place)
    if method in (None, *BYTE_METHODS):
        check_files(player, kind, described, files)
    if "plan" in kind:
        dry_run(player, described, lines=kind["plan"])
    if "read" in kind:
        reads = [row | {"operation": "read"} for row in described["streams"]]
        player.play(described | {"streams": reads}, "--verify", *NOW)
    for other in player.methods(kind.get("also", [])):
        player.play(described, "-a", other, *NOW)
    player.play(described, *kind.get("then", ()), *NOW)
    equal([*player.files()], [], "left")


def check_dumps(row: Json, kind: Json, result: Json) -> int:
    """Each dump of a stream moved what is described, and files grew unless they have a size
    already; returns the bytes of all dumps."""
    name, each = row["name"], row.get("passes", 1)
    repeated = [d for d in row["dumps"] for _ in range(d.get("repeat", {}).get("count", 1))]
    moved = [dump_bytes(d) * each for d in repeated]
    dumps = dumps_of(result, name)
    equal([d["bytes"] for d in dumps], moved, f"{name}: bytes")
    sizes = [d["file_bytes"] for d in dumps]
    expect((None in sizes) == (row["operation"] == "read" or row["files"] == "update"), sizes)
    equal(sizes, kind.get("grown", {}).get(name, sizes), f"{name}: grew")
    for restart, expected in kind.get("moved", {}).items():
        equal([d["bytes"] for d in dumps_of(result, restart)], expected, f"{restart}: bytes")
    return sum(moved)


def check_files(player: Player, kind: Json, described: Json, files: dict[str, bytes]) -> None:
    """The files are the plain ones, or of the size that the kind says and of other contents; with
    `namesakes` those begin as the plain one of the same name that are told to."""
    if "stored" in kind:
        equal(sum(map(len, files.values())), kind["stored"], "bytes in all files")
        return
    _, others = player.kept(plain(described, kind.get("keep", ())), *NOW)
    if "files" not in kind:
        kept = [path for path in files if not path.startswith(tuple(kind.get("unlike", ["?"])))]
        equal([path for path in kept if files[path] != others[path]], [], "other bytes")
        return
    equal(sorted(files), sorted(kind["files"]), "files")
    equal(len(set(files.values())), len(files), "contents of their own")
    for path, parts in kind["files"].items():
        equal(len(files[path]), sum(len(others[p]) for p in parts), f"{path}: as long as {parts}")
        twin = path.rpartition("/")[2].removesuffix(".backup")
        same = "namesakes" in kind and parts[0] == twin
        expect(files[path].startswith(others[twin]) == same, f"{path}: contents of the first dump")


def of_kind(name: str) -> dict[str, Callable[[Player], None]]:
    """The cases of a kind: of each method, or of the methods that it names itself."""
    if "methods" not in KINDS[name]:
        return {name: partial(play, name=name)}

    def case(player: Player, method: str) -> None:
        need_method(method)
        if name == "rewritten" and method in STEP_METHODS:
            not_by_adios(player, method)
        else:
            play(player, name, method)

    return {f"{name}.{m}": partial(case, method=m) for m in KINDS[name]["methods"]}


def cannot(player: Player, described: Json, *options: object, words: Iterable[str]) -> None:
    ranks = described["ranks"]
    command = ("-w", player.describe(described), "-o", "data", *options)
    refused(player, ranks, *command, words=words)


def not_by_adios(player: Player, method: str) -> None:
    """One line where a method cannot do what a stream asks."""
    for keys, words in (
        ({"files": "rewrite"}, "cannot rewrite files"),
        ({"files": "update"}, "cannot update files in place"),
        ({"files": "append", "reopen": True}, "cannot open appended files again"),
        ({"write_through": True}, "cannot write through"),
        (KINDS["looked-up"]["streams"]["posix"], "cannot read files between writes"),
    ):
        described = workload(stream("s", dumps=dumps_named("series"), **keys))
        cannot(player, described, "-a", method, "--dry-run", words=("streams[0] (s)", words))


def parts_stay(player: Player) -> None:
    """Of an updated file the bytes behind a smaller dump stay, a restart reads the last dump; a
    backup and what extends a stream are counted."""
    described = described_by(KINDS["smaller"])
    _, files = player.kept(described, *NOW)
    _, others = player.kept(plain(described), *NOW)
    size, whole = len(others["u.000001"]), others["u.000000"]
    equal(files["u.000000"][size:], whole[size:], "the rest of an updated file")
    expect(files["u.000000"][:size] != whole[:size], "the updated bytes are as before")
    restart = ("--restart", "--restart-stream", "r")
    result = player.play(described, *restart)
    equal(result["repetitions"][0]["streams"][2]["name"], "r-restart")
    words = ("overwrites that dump later, expected 1 to 1",)
    cannot(player, described, *restart, "--restart-dump", 0, words=words)
    for method in player.methods(BYTE_METHODS):
        keys = {"method": method, "dumps": dumps_named("series"), "files": "rewrite"}
        backed = stream("s", **keys, removes=True, backup=True)
        both = workload(backed, stream("more", **keys, extends="s"))
        _, files = player.kept(both, *NOW)
        size = sum(map(len, files.values()))
        dry_run(player, both, lines=[f"bytes on storage {size}"])
    described = described_by(KINDS["extended"])
    cannot(player, described, "-a", "hdf5", words=("share a file with another method",))


def in_turn_refused(player: Player) -> None:
    """Methods that cannot read what they write, or have no bytes to address, say so."""
    dumps = [dump(), dump(0.2, continues=True)]
    reads = stream("r", operation="read", files="update", reads="s", dumps=[dump(0.1)])
    described = workload(stream("s", files="rewrite", dumps=dumps), reads)
    for method in player.methods(["hdf5", *STEP_METHODS]):
        cannot(player, described, "-a", method, words=(f"the method {method} cannot",))
    beyond = program(described)
    for move in beyond["streams"][1]["steps"][0]["do"]:
        if isinstance(move, dict) and "read" in move:
            move["shape"][0] *= 2
    outcome = player.run(RANKS, "-w", player.describe(beyond), "-o", "data", *NOW)
    expect(outcome.status != 0, "a read beyond the end of the file is possible")
    for words in ("posix: cannot read", "data/s.000000", "the file ends before"):
        expect(words in outcome.message(), outcome.err)


def laid_out(player: Player) -> None:
    """Datasets are in chunks and filled, unless options say otherwise; the bytes are the same."""
    need_method("hdf5")
    need_program("h5dump", "hdf5-tools")
    described = workload(stream("s", method="hdf5", chunk_bytes=296 * 4, fill=True))
    expected = player.kept(workload(stream("s")))[1]["s.000000"]
    for options, *words in (
        ((), "CHUNKED ( 3, 37 )", "H5D_FILL_TIME_ALLOC"),
        (("-m", "hdf5.chunk=0", "-m", "hdf5.fill=no"), "CONTIGUOUS", "H5D_FILL_TIME_NEVER"),
    ):
        player.clear()
        player.play(described, "-k", "--verify", *options)
        shown = output(player, "h5dump", "-p", "-H", "data/s.000000.h5")
        output(player, "h5dump", "-d", "/v", "-b", "MEMORY", "-o", "dump", "data/s.000000.h5")
        expect(all(word in shown for word in words), shown)
        equal((player.folder / "dump").read_bytes(), expected, "bytes")


def paced(player: Player) -> None:
    """Steady transfers last as long as their dump, and waiting is no time of a rank."""
    described = workload(stream("s", pace="steady", dumps=[dump(duration_s=4.0)]))
    result = player.play(described, "--time-scale", 0.1, "--verify")
    phase = phase_of(dumps_of(result)[0], "write")
    span = phase["last_end_s"] - phase["first_start_s"]
    expect(span >= 0.32, f"5 transfers of a rank begin within {span} s, expected 0.32 at least")
    expect(phase["rank_s"]["max"] < span, f"waiting counts: {phase['rank_s']} of {span} s")


def between(player: Player) -> None:
    """What a rank computes between transfers takes its time, which is no time of I/O, and pauses
    can be kept after a dump that took longer than in the original."""
    dumps = [dump(duration_s=0.01, compute_s=0.4), dump(0.3)]
    result = player.play(workload(stream("s", dumps=dumps)), "--keep-pauses", "--verify")
    first, second = dumps_of(result)
    phase = phase_of(first, "write")
    span = phase["last_end_s"] - phase["first_start_s"]
    expect(span >= 0.4, f"5 transfers of a rank took {span} s, expected 0.4 at least")
    expect(phase["rank_s"]["max"] < span - 0.3, f"computing counts: {phase['rank_s']} of {span} s")
    begins = min(p["first_start_s"] for p in second["phases"])
    expect(begins >= 0.4 + 0.29, f"the pause of 0.29 s was not kept: {begins} s")
    expect(result["options"]["keep_pauses"] is True, result["options"])


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
    created = dump(operations={"create": [[3, 1]]}) | {"variables": []}
    kinds: list[Json] = [{"method": method} for method in player.methods([*BYTE_METHODS, "hdf5"])]
    kinds += [{"layout": "file-per-process"}, {"layout": "flood"}, {"turns": True}]
    kinds += [{"operation": "read"}, {"files": "append"}, {"dumps": [created]}]
    for keys in kinds:
        dumps = [row | {"skew": skew} for row in keys.get("dumps", [dump(duration_s=0)])]
        described = workload(stream("s", **keys | {"dumps": dumps}))
        for scale in (1, 0):
            result, files = player.kept(described, "--verify", "--time-scale", scale)
            (row,) = dumps_of(result)
            moved = phase_of(row, "write", "read", "metadata")
            opens = phase_of(row, "open") if "dumps" not in keys else moved
            expect((moved["last_end_s"] >= 0.6) == (scale == 1), f"{keys}, {scale}: {moved}")
            # The second rank begins at once, unless it has to wait for its turn behind the first.
            expect(opens["first_start_s"] < 0.3 or "turns" in keys, f"{keys}: {opens}")
            expect(moved["rank_s"]["max"] < 0.25, f"{keys}: waiting counts: {moved}")
            if keys.get("method", "posix") == "posix" and "dumps" not in keys and scale == 1:
                expect(opens["last_end_s"] >= 0.6, f"{keys}: {opens}")
                expect(opens["rank_s"]["max"] < 0.25, f"{keys}: {opens}")
        if keys.get("method") in BYTE_METHODS:
            equal(files, player.kept(plain(described), *NOW)[1], f"{keys}: bytes")
    dumps = [dump(duration_s=0, skew=skew), dump(0.3, skew=skew)]
    result = player.play(workload(stream("s", dumps=dumps)), "--keep-pauses")
    first, second = (max(p["last_end_s"] for p in d["phases"]) for d in dumps_of(result))
    expect(second - first >= 0.9, f"pauses kept: {first} s, {second} s")


def direct(player: Player) -> None:
    """A direct stream is played past the page cache where that is possible, or it says so."""
    path = player.describe(workload(stream("s", direct=True, transfer_bytes=8192)))
    for needed, options, words in (
        (False, ("-a", "mpiio"), "direct in the original; the method mpiio uses"),
        (True, ("--verify",), ""),
        (True, ("-t", 2**63 - 1, "--verify"), "no whole pages"),
        (True, ("-t", 1000), "no whole pages"),
    ):
        if needed:
            need_direct_io(player.folder)
        outcome = player.run(RANKS, "-w", path, "-o", "data", *options)
        expect(outcome.status == 0, outcome.err)
        expect(words in outcome.message() if words else not outcome.complaints, outcome.err)


def nonblocking(player: Player) -> None:
    """Moves that are begun and waited for later leave the same bytes, and read them."""
    for collective in (False, True):
        columns = {"rule": "grid", "grid": [1, 3]}
        moved = [variable(), variable("w0", count=2), variable("w1", count=2)]
        moved[2]["decomposition"] = columns
        keys: Json = {"method": "mpiio", "collective": collective}
        keys["dumps"] = [dump(0, *moved), dump(0.1, *moved)]
        reads = stream("in", **keys, operation="read") | {"role": "input"}
        described = workload(stream("out", **keys), reads)
        usual, expected = player.kept(described, "--verify")
        result, files = player.kept(begun(described), "--verify")
        equal(files, expected, f"collective {collective}: bytes")
        equal(result["verification"], usual["verification"])
        for row in (described, begun(described)):
            split, files = player.kept(row, "-m", "mpiio.split=yes", "--verify")
            equal(files, expected, f"collective {collective}, split: bytes")
            equal(split["verification"], usual["verification"])
            for name in ("out", "in"):
                alike(split, usual, name)
        for name, phase in (("out", "write"), ("in", "read")):
            counts, others = (
                [phases_of(row)[phase] for row in dumps_of(each, name)] for each in (result, usual)
            )
            equal(counts, others, f"{name}: calls")
    ready = begun(described)
    no_wait = changed(ready, ("streams", 0, "steps", 0, "do"), lambda do: without(do, "wait_all"))
    early = copy.deepcopy(ready)
    at(early, ("streams", 1, "steps", 1, "do")).insert(-2, "sync")
    cannot(player, ready, "--method", "posix", words=("posix", "begin moves"))
    cannot(player, no_wait, words=("streams[0].steps[0].do", "wait_all"))
    cannot(player, early, words=("streams[1].steps[1].do", "wait_all"))


def deep(player: Player) -> None:
    """Calls in flight move the same bytes in as many calls; other methods say that they make one
    after the other."""
    columns = {"rule": "grid", "grid": [1, 3]}
    moved = [variable(), variable("w0", count=5), variable("w1", count=2)]
    moved[2]["decomposition"] = columns
    keys: Json = {"transfer_bytes": 64, "dumps": [dump(0, *moved), dump(0.1, *moved)]}
    reads = stream("in", **keys, operation="read") | {"role": "input"}
    described = workload(stream("out", **keys), reads)
    usual, expected = player.kept(described, "--verify")
    flushed = in_flight(described, 3)
    for move in moves_of(flushed["streams"][0]):
        move["flush_bytes"] = 100
    for method in player.methods(["uring", "mpiio"]):
        for row, option in ((in_flight(described, 3), 0), (in_flight(described, 4096), 2)):
            given = ("-a", method, "-m", f"{method}.depth={option}", "--verify")
            result, files = player.kept(row, *given)
            equal(files, expected, f"{method}, {option}: bytes")
            equal(result["verification"], usual["verification"])
            for name in ("out", "in") if method == "uring" else ():
                alike(result, usual, name)
        equal(player.kept(flushed, "-a", method, "--verify")[1], expected, f"{method}: flushes")
    path = player.describe(in_flight(described, 3))
    for method in player.methods(["posix", "stdio", "hdf5"]):
        outcome = player.run(RANKS, "-w", path, "-a", method, "-o", method, *NOW)
        words = f"up to 3 calls of a rank in flight in the original; the method {method} makes one"
        expect(outcome.status == 0 and words in outcome.err, outcome.err)
    outcome = player.run(1, "-w", path, "-a", "mpiio", "--dry-run")
    expect("3 calls of a rank in flight" in outcome.out, outcome.out)
    collective = in_flight(described, 3)
    for move in moves_of(collective["streams"][1]):
        move["collective"] = True
    cannot(player, collective, words=("the variable", "depth: expected none in files of each row"))


def memory_of_calls(player: Player) -> None:
    """A queue deeper than a move has calls takes no memory for more, nor does the estimate; the
    depth that is asked for stays stated."""
    size = 1 << 20
    data = variable("data", [4 * size], type="byte")
    row = workload(stream("out", transfer_bytes=size, dumps=[dump(0, data)]), ranks=1)
    path, deep = player.describe(row), player.describe(in_flight(row, 4096), "deep.json")
    for method in player.methods(["uring", "mpiio"]):
        option = ("-m", f"{method}.depth=4096")
        mixed = [("-w", path, *option, "--mix", 75)] if method == "uring" else []
        for given in (("-w", path, *option), ("-w", deep), *mixed):
            planned = player.run(0, *given, "-a", method, "--dry-run")
            equal(planned.status, 0, planned.err)
            (memory,) = re.findall(r"memory per rank +(\d+)", planned.out)
            expect(int(memory) < 64 * size, f"{method}, {given}: {memory} bytes planned")
            expect("4096 calls of a rank in flight" in planned.out, planned.out)
            allocations = largest_mapping(player, *given, "-a", method, "-o", "data", "--verify")
            expect(allocations < 1 << 30, f"{method}, {given}: {allocations} bytes at once")


def alike(result: Json, usual: Json, name: str) -> None:
    """As many operations of each phase."""
    counts = [[phases_of(row) for row in dumps_of(each, name)] for each in (result, usual)]
    equal(counts[0], counts[1], f"{name}: calls")


def without(body: list[Any], word: str) -> list[Any]:
    return [instruction for instruction in body if instruction != word]


CASES = {
    **{case: run for name in KINDS for case, run in of_kind(name).items()},
    **named(parts_stay, in_turn_refused, laid_out, paced, between, says_that_it_waits, late),
    **named(direct, nonblocking, deep, memory_of_calls),
}

if __name__ == "__main__":
    sys.exit(main("kinds", CASES))

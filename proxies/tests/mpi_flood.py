"""Floods of small files, and operations without bytes."""

import itertools
import json
import os
import re
import sys
from collections import Counter
from subprocess import Popen

from mpi_support import (
    BYTE_METHODS,
    EVEN,
    FILE_METHODS,
    STEP_METHODS,
    SUFFIXES,
    Json,
    Player,
    disturbed,
    dump,
    dumps_of,
    equal,
    expect,
    failed,
    for_each,
    left_only,
    main,
    named,
    need_direct_io,
    need_method,
    phase_of,
    phases_of,
    refused,
    stopped,
    stream,
    traced,
    traces,
    variable,
    variable_bytes,
    verified,
    workload,
)

METHODS = [method for method in FILE_METHODS if method not in STEP_METHODS]
NOW = ("--time-scale", 0)
RANKS = 3
RUNS = {"rule": "runs", "runs": [[1, 5], [1, 0], [1, 8]]}


def rows(name: str, shape: list[int], rule: Json = EVEN, **more: object) -> Json:
    """Rows of bytes, each a file."""
    return variable(name, shape, **{"type": "byte", "decomposition": rule} | more)


FILES = [
    rows("small", [25, 300]),
    rows("mixed", [13, 7, 50], RUNS, count=2, type="f64"),
    rows("dealt", [17, 1500], {"rule": "cyclic", "block": 4}),
]
FILES_OF_DUMP = 25 + 2 * 13 + 17
CALLS_OF_DUMP = 25 + 2 * 13 * 4 + 17 * 2  # of 1000 bytes: of 7 rows of 400 bytes two at a time
SIZES = [
    variable_bytes(v) // v["count"] // v["shape"][0]
    for v in FILES
    for _ in range(v["count"] * v["shape"][0])
]


def flood(*dumps: Json, **more: object) -> Json:
    """A workload of one flood."""
    keys: Json = {"layout": "flood", "role": "checkpoint", "transfer_bytes": 1000}
    return workload(stream("many", **keys | {"dumps": list(dumps)} | more))


def files_dump(time_s: float = 0.0, **more: object) -> Json:
    return dump(time_s, *FILES, **more)


def order(rule: str, **more: object) -> Json:
    return {"order": {"rule": rule} | more}


def expected_names(dumps: int, files: int, per_directory: int | None, suffix: str) -> list[str]:
    """Names of the files below the run directory, in the order of their numbers."""
    return [
        f"many.{d:06d}.d{n // per_directory:06d}/{n:08d}{suffix}"
        if per_directory
        else f"many.{d:06d}.{n:08d}{suffix}"
        for d, n in itertools.product(range(dumps), range(files))
    ]


def writes(player: Player, method: str) -> None:
    """Each row is a file, by every decomposition, in directories or not; any rank reads any."""
    need_method(method)
    suffix = SUFFIXES.get(method, "")
    contents = []
    size = sum(SIZES)
    for per_directory, ordered in (
        (None, order("consecutive")),
        (10, order("shuffled", seed=5)),
        (7, order("strided", step=3)),
    ):
        keys = {"files_per_directory": per_directory, "sync": per_directory == 7} | ordered
        described = flood(files_dump(), files_dump(0.1), **keys)
        options = ("-a", method, *NOW, "--verify", "--restart", "--drop-cache")
        result, files = player.kept(described, *options)
        verified(result, 2 * size)
        names = expected_names(2, FILES_OF_DUMP, per_directory, suffix)
        equal(sorted(files), names, "files")
        for row in dumps_of(result):
            equal(row["files"], FILES_OF_DUMP, "files of a dump")
            expect(suffix or row["file_bytes"] == size, f"{row['file_bytes']} of {size} bytes")
            calls = {"open": FILES_OF_DUMP, "write": CALLS_OF_DUMP, "close": FILES_OF_DUMP}
            calls |= {"sync": FILES_OF_DUMP} if keys["sync"] else {}
            equal(phases_of(row) if method in BYTE_METHODS else calls, calls, "calls")
        equal(dumps_of(result, 1)[0]["bytes"], size, "restart")
        if not suffix:
            equal([len(files[name]) for name in names], SIZES * 2, "sizes")
            contents.append([files[name] for name in names])
    expect(not contents or contents.count(contents[0]) == 3, "the order changed the contents")
    if method == "posix":
        equal(len(set(contents[0])), 2 * FILES_OF_DUMP, "contents of their own")
        player.play(described, "-k")
        path = player.folder / "workload.json"
        later = player.run(RANKS, "-w", path, "--restart-from", "data", "--verify")
        expect(later.status == 0, later.err)
        player.clear()
    player.play(described, "-a", method, *NOW, "-i", 2)
    left_only(player, result=True)


def reads(player: Player, method: str) -> None:
    """Files are prepared, then read as often as described; every file once in a pass."""
    need_method(method)
    size = sum(SIZES)
    for files, epochs in (("new", 2), ("update", 3)):
        keys: Json = {"operation": "read", "role": "input", "files": files, "passes": 2}
        keys |= {"files_per_directory": 10} | order("shuffled", seed=1)
        again = {"repeat": {"count": epochs, "period_s": 0.01}}
        described = flood(files_dump(**again), **keys)
        result, kept = player.kept(described, "-a", method, "--verify")
        counts = [(row["bytes"], phases_of(row)["open"]) for row in dumps_of(result)]
        equal(counts, [(2 * size, 2 * FILES_OF_DUMP)] * epochs, "bytes and opens")
        sets = 1 if files == "update" else epochs
        names = expected_names(sets, FILES_OF_DUMP, 10, SUFFIXES.get(method, ""))
        equal(sorted(kept), names, "files")
        verified(result, sets * size)
        player.play(described, "-a", method)
        left_only(player, result=True)


def lines_of(player: Player, described: Json, calls: str, *options: object) -> list[list[str]]:
    """The calls of each rank about files of the run that succeeded."""
    tracing = traced(player, calls, "-y")
    outcome = tracing.run(RANKS, "-w", player.describe(described), "-o", "data", *options)
    expect(outcome.status == 0, outcome.err)
    ours = re.compile(r'data[/>]|"(data|many)\.')  # the latter from within the run directory
    return [
        [line for line in lines if ours.search(line) and not re.search(r"= -1 E", line)]
        for lines in traces(player).values()
    ]


def shuffles(player: Player) -> None:
    """In each epoch every file is opened once, by other ranks and in another order than before."""
    twice = dump(0.0, rows("v", [40, 10]), repeat={"count": 2, "period_s": 0.01})
    keys = {"operation": "read", "files": "update"} | order("shuffled", seed=9)
    ranks = []
    for lines in lines_of(player, flood(twice, **keys), "openat"):
        opened = [re.search(r"many\.000000\.(\d+)", x) for x in lines if "O_CREAT" not in x]
        ranks.append([int(match[1]) for match in opened if match])
    epochs = [[r[: len(r) // 2] for r in ranks], [r[len(r) // 2 :] for r in ranks]]
    for epoch in epochs:
        equal(sorted(itertools.chain(*epoch)), list(range(40)), "an epoch reads")
    sets = [[sorted(rank) for rank in epoch] for epoch in epochs]
    expect(sets[0] != sets[1], "each rank reads the same files again")
    expect(any(r != sorted(r) for r in epochs[0]), "an epoch in the order of the files")


STORM = {
    "mkdir": [[1, 1], [2, 2]],
    "create": [[1, 12], [2, 0]],
    "open": [[3, 4]],
    "stat": [[3, 5]],
    "seek": [[3, 3]],
    "sync": [[3, 2]],
    "rename": [[1, 3], [2, 0]],
    "unlink": [[1, 1], [2, 0]],
}
CALLS = {
    "mkdir": r"mkdir(at)?\(",
    "rename": r"rename(at2?)?\(",
    "unlink": r"unlink(at)?\(",
    "stat": r"(newfstatat|stat)\(",
    "seek": r"lseek\(",
    "sync": r"fsync\(",
}


def operations(player: Player) -> None:
    """Each operation is made as often as described, on data files where there are any."""
    row = dump(0.0, rows("v", [9, 100]), operations=STORM)
    described = workload(stream("data", layout="file-per-process", dumps=[row]))
    calls = "openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,stat,newfstatat,lseek"
    lines = lines_of(player, described, calls + ",fsync", "-k")
    result = json.loads((player.folder / "result.json").read_text())
    counts = {name: sum(n * each for n, each in runs) for name, runs in STORM.items()}
    equal(phases_of(dumps_of(result)[0])["metadata"], sum(counts.values()), "operations")
    seen: Counter[str] = Counter()
    for line in itertools.chain(*lines):
        # Asks about a name in the directory, or about what was opened, are the player's own; so is
        # its claim on the directory.
        if any(x in line for x in ("AT_SYMLINK_NOFOLLOW", "AT_EMPTY_PATH", '".understudy"')):
            continue
        seen.update(k for k, call in CALLS.items() if re.search(call, line))
        seen["create"] += "O_CREAT" in line and "data.made." in line
        seen["open"] += bool(re.search(r'openat\(.*"data\.000000\.\d+", O_RDONLY', line))
    del counts["mkdir"]  # counted below: the run directory is made too
    equal({name: seen[name] for name in counts}, counts, "the kernel saw")
    left = Counter(re.sub(r"\d{8}", "N", name) for name in player.files())
    equal(left, {"data.000000.N": 3, "data.made.N": 9, "data.made.N.renamed": 2}, "left")
    equal(sum(p.is_dir() for p in player.data.iterdir()), 5, "directories")


def storms(player: Player, method: str) -> None:
    """Storms of metadata without data, over several dumps, with all methods; nothing is left.
    One removes and renames more than it creates, which must be there before."""
    need_method(method)

    def storm(*operations: Json) -> list[Json]:
        dumps = [dump(0.1 * n, operations=runs) for n, runs in enumerate(operations)]
        return [row | {"variables": []} for row in dumps]

    renamed: Json = {"stat": [[3, 50]], "open": [[3, 10]], "rename": [[2, 20], [1, 4]]}
    dumps = storm({"create": [[2, 20], [1, 4]]}, renamed, {"unlink": [[2, 15], [1, 4]]})
    lacks = storm({"unlink": [[3, 4]], "rename": [[1, 9], [2, 0]]}, {"stat": [[3, 1]]})
    both = files_dump(operations={"stat": [[3, 30]], "open": [[3, 2]]})
    described = workload(
        stream("storm", files_per_directory=8, role="checkpoint", dumps=dumps),
        stream("lacks", role="checkpoint", dumps=lacks),
        *flood(both)["streams"],
    )
    result = player.play(described, "-a", method, *NOW, "-k")
    for of in described["streams"]:
        for row, played in zip(of["dumps"], dumps_of(result, of["name"]), strict=True):
            count = sum(n * each for o in row["operations"] for n, each in o["runs"])
            equal(phases_of(played)["metadata"], count, f"{of['name']}: operations")
            expect(bool(row["variables"]) == ("open" in phases_of(played)), phases_of(played))
    left = Counter(p.suffix == ".renamed" for p in player.data.glob("storm.made.d*/*"))
    equal(left, {True: 10}, "left of the storm, renamed")
    each = [len(list(p.iterdir())) for p in player.data.glob("storm.made.d*")]
    expect(max(each) <= 8, f"{max(each)} files in a directory")
    left = Counter(p.suffix == ".renamed" for p in player.data.glob("lacks.made.*"))
    equal(left, {True: 5, False: 2}, "left of what lacked files, renamed")
    player.clear()
    player.play(described, "-a", method, *NOW, "-i", 2, "--restart")
    left_only(player, result=True)


def flushes(player: Player) -> None:
    """Files are flushed after so many bytes of a rank, as part of the write phase."""
    described = flood(dump(0.0, rows("v", [RANKS * 10, 500])), sync_bytes=1200)
    for method in player.methods(BYTE_METHODS):
        row = dumps_of(player.play(described, "-a", method, "--verify"))[0]
        # After the third file of 500 bytes, the sixth and the ninth of each rank.
        equal(phases_of(row)["write"], RANKS * (10 + 3), f"{method}: calls")
        expect("sync" not in phases_of(row), f"{method}: {phases_of(row)}")


def paces(player: Player) -> None:
    """The transfers of all files are spread over the duration; waiting is nobody's time."""
    steady = dump(0.0, rows("v", [RANKS * 10, 1500]), duration_s=2.0)
    for operation in ("write", "read"):
        result = player.play(flood(steady, operation=operation, pace="steady"))
        moved = phase_of(dumps_of(result)[0], operation)
        span = moved["last_end_s"] - moved["first_start_s"]
        expect(span > 1.8, f"{operation}: took {span} s")  # the last of 20 begins at 1.9 s
        expect(moved["rank_s"]["max"] < span, f"{operation}: {moved['rank_s']} of {span} s")


def goes_past_the_cache(player: Player) -> None:
    """Direct files and those that are written through are opened so."""
    need_direct_io(player.folder)
    for key, flag in (("write_through", "O_DSYNC"), ("direct", "O_DIRECT")):
        keys = {key: True, "transfer_bytes": 4096}
        described = flood(dump(0.0, rows("v", [RANKS, 8192])), **keys)
        lines = lines_of(player, described, "openat", "--verify")
        opened = [line for line in itertools.chain(*lines) if flag in line]
        expect(len(opened) >= RANKS, f"{key}: opened {opened}")


def stops_cleanly(player: Player) -> None:
    """What a stopped run has made goes, a stranger's file in its directories stays."""
    created = {"create": [[3, 3]], "mkdir": [[3, 2]]}
    keys = {"files_per_directory": 10} | order("shuffled", seed=2)
    described = flood(files_dump(operations=created), files_dump(60.0), **keys)
    place = "many.000000.d000002"

    def stop(player: Player, process: "Popen[str]") -> None:
        expect(len(player.files()) >= FILES_OF_DUMP + 9, "the files of the first dump are there")
        (player.data / place / "stranger").write_text("mine")
        process.terminate()

    outcome = disturbed(player, stop, described=described, ranks=RANKS, after="many.000001*/*")
    expect(stopped(player, outcome), "status 0")
    left_only(player, place, f"{place}/stranger")


def file_of_another(player: Player) -> None:
    """A file under a name of the flood is not overwritten, and survives."""
    name = "many.000001.00000030"
    outcome = disturbed(
        player,
        lambda p, _: (p.data / name).write_text("mine"),
        described=flood(files_dump(), files_dump(2.0)),
        ranks=RANKS,
        after="many.000001*",
    )
    failed(outcome, name, "File exists")
    left_only(player, name)
    equal(player.files(), {name: b"mine"})


def invalid_input(player: Player) -> None:
    """What cannot be played or does not fit is refused before anything is written."""
    path = player.describe(flood(files_dump()))
    fewer = [files_dump(), dump(1.0, *FILES[:2])]
    other = player.describe(flood(*fewer, operation="read", files="update"), "other.json")
    huge = player.describe(flood(dump(0.0, rows("v", [1 << 20, 1 << 32]))), "huge.json")
    free = os.statvfs(player.folder).f_favail
    created = dump(operations={"create": [[3, free]]}) | {"variables": []}
    storm = player.describe(workload(stream("s", dumps=[created])), "storm.json")
    cases: list[tuple[tuple[object, ...], tuple[str, ...]]] = [
        ((path, "-c"), ("--collective", "flood")),
        ((other,), ("streams[0].dumps", "dump 1", "dump 0")),
        ((huge,), ("bytes", "free")),
    ]
    cases += [((storm,), ("files", "can be created"))] if free > 0 else []
    cases += [((path, "-a", m), (m, "flood")) for m in player.methods(STEP_METHODS)]
    for (described, *more), words in cases:
        refused(player, RANKS, "-w", described, "-o", "data", *more, words=words)


def memory_does_not_grow(player: Player) -> None:
    """A rank takes eight bytes for each of its files."""
    memory = []
    for files in (10, 1_000_000):
        path = player.describe(flood(dump(0.0, rows("v", [files, 100]))))
        outcome = player.run(0, "-w", path, "--dry-run")
        expect(outcome.status == 0, outcome.err)
        memory += map(int, re.findall(r"memory per rank +(\d+)", outcome.out))
    few, many = memory
    equal(many - few, 8 * (-(-1_000_000 // RANKS) - -(-10 // RANKS)), "bytes more")


CASES = {
    **named(shuffles, operations, flushes, paces, goes_past_the_cache, stops_cleanly),
    **named(file_of_another, invalid_input, memory_does_not_grow),
    **for_each(writes, METHODS),
    **for_each(reads, METHODS),
    **for_each(storms, METHODS),
}

if __name__ == "__main__":
    sys.exit(main("flood", CASES))

"""Floods of small files, and operations without bytes.

`mpi_flood.py --list` names the cases, `mpi_flood.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import itertools
import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from mpi_errors import FILE_METHODS, failed, refused
from mpi_run import dumps_of, wait_for
from mpi_support import (
    SUFFIXES,
    Json,
    Player,
    dump_bytes,
    expect,
    files_below,
    finish,
    main,
    need_direct_io,
    need_method,
    need_strace,
    program,
    sample,
    stopped,
)

METHODS = [method for method in FILE_METHODS if method != "adios"]
RANKS = 3
EVEN = {"rule": "even"}
RUNS = {"rule": "runs", "runs": [[1, 5], [1, 0], [1, 8]]}
CYCLIC = {"rule": "cyclic", "block": 4}


def variable(name: str, shape: list[int], rule: Json, **more: object) -> Json:
    """Rows of bytes, each a file."""
    return {
        "name": name,
        "label": "",
        "count": 1,
        "type": "byte",
        "shape": shape,
        "decomposition": rule,
        "file": 0,
    } | more


def dump(
    variables: list[Json], time_s: float = 0.0, operations: dict[str, Json] | None = None
) -> Json:
    """A dump; operations by name as runs."""
    made = [{"operation": name, "runs": runs} for name, runs in (operations or {}).items()]
    return {
        "time_s": time_s,
        "duration_s": None,
        "overhead_bytes": None,
        "variables": variables,
    } | ({"operations": made} if made else {})


def workload_of(*streams: Json, ranks: int = RANKS) -> Json:
    """A workload with these changes to a plain stream each."""
    made = sample("single") | {"ranks": ranks, "scaling": {"rule": "none", "from_ranks": ranks}}
    plain = made["streams"][0] | {"sync": False, "transfer_bytes": 1000}
    return made | {"streams": [plain | stream for stream in streams]}


FILES = [
    variable("small", [25, 300], EVEN),
    variable("mixed", [13, 7, 50], RUNS, count=2, type="f64"),
    variable("dealt", [17, 1500], CYCLIC),
]
FLOOD = {"name": "many", "layout": "flood", "role": "checkpoint"}
FILES_OF_DUMP = 25 + 2 * 13 + 17
CALLS_OF_DUMP = 25 + 2 * 13 * 4 + 17 * 2  # of 1000 bytes: of 7 rows of 400 bytes two at a time


def sizes_of(variables: list[Json]) -> list[int]:
    """Bytes of each file, in the order of their numbers."""
    sizes = []
    for v in variables:
        each = 8 if v["type"] == "f64" else 1
        for n in v["shape"][1:]:
            each *= n
        sizes += [each] * v["shape"][0] * v["count"]
    return sizes


def expected_names(dumps: int, files: int, per_directory: int | None, suffix: str) -> list[str]:
    """Names of the files below the run directory, in the order of their numbers."""
    return [
        f"many.{d:06d}.d{n // per_directory:06d}/{n:08d}{suffix}"
        if per_directory
        else f"many.{d:06d}.{n:08d}{suffix}"
        for d, n in itertools.product(range(dumps), range(files))
    ]


def phases_of(dump: Json) -> dict[str, int]:
    """Operations of each phase."""
    return {p["phase"]: p["operations"] for p in dump["phases"]}


def writes(player: Player, method: str) -> None:
    """Each row is a file, by every decomposition, in directories or not; any rank reads any."""
    need_method(method)
    suffix = SUFFIXES.get(method, "")
    contents = []
    for per_directory, rule in ((None, "consecutive"), (10, "shuffled"), (7, "strided")):
        order = {"rule": rule} | {"shuffled": {"seed": 5}, "strided": {"step": 3}}.get(rule, {})
        stream = FLOOD | {
            "files_per_directory": per_directory,
            "order": order,
            "sync": rule == "strided",
            "dumps": [dump(FILES), dump(FILES, 0.1)],
        }
        player.clear()
        common = ("-a", method, "--time-scale", 0, "--verify", "--restart", "--drop-cache")
        result = player.play(workload_of(stream), *common, "-k")
        compared = result["verification"]
        size = dump_bytes(stream["dumps"][0])
        expect(compared == {"bytes": 2 * size, "wrong_bytes": 0}, f"{compared}")
        found = player.data()
        names = expected_names(2, FILES_OF_DUMP, per_directory, suffix)
        expect(sorted(found) == names, f"{len(found)} files, expected {len(names)}")
        sizes = sizes_of(FILES) * 2
        wrong = [n for n, s in zip(names, sizes, strict=True) if not suffix and len(found[n]) != s]
        expect(not wrong, f"other sizes than described: {wrong[:3]}")
        contents.append([found[n] for n in names] if not suffix else None)
        for one in dumps_of(result):
            expect(one["files"] == FILES_OF_DUMP, f"{one['files']} files")
            expect(suffix or one["file_bytes"] == size, f"{one['file_bytes']} of {size} bytes")
            calls = {"open": FILES_OF_DUMP, "write": CALLS_OF_DUMP, "close": FILES_OF_DUMP}
            calls |= {"sync": FILES_OF_DUMP} if rule == "strided" else {}
            if method in ("posix", "stdio", "mpiio"):
                expect(phases_of(one) == calls, f"{phases_of(one)}, expected {calls}")
        read = dumps_of(result, 1)[0]
        expect(read["bytes"] == size, f"restart of {read['bytes']} bytes")
    expect(contents.count(contents[0]) == 3, "the order changed the contents")
    if method == "posix":
        expect(len(set(contents[0])) == 2 * FILES_OF_DUMP, "files have equal contents")
        later = player.run(
            RANKS, "-w", player.folder / "workload.json", "--restart-from", "data", "--verify"
        )
        expect(later.status == 0, later.err)
    player.clear()
    player.play(workload_of(stream), "-a", method, "--time-scale", 0, "-i", 2)
    expect(not (player.folder / "data").exists(), f"left {list(player.data())[:3]}")


def reads(player: Player, method: str) -> None:
    """Files are prepared, then read as often as described; every file once in a pass."""
    need_method(method)
    for files, epochs in (("new", 2), ("update", 3)):
        stream = FLOOD | {
            "operation": "read",
            "role": "input",
            "files": files,
            "passes": 2,
            "files_per_directory": 10,
            "order": {"rule": "shuffled", "seed": 1},
            "dumps": [dump(FILES) | {"repeat": {"count": epochs, "period_s": 0.01}}],
        }
        result = player.play(workload_of(stream), "-a", method, "--verify", "-k")
        size = dump_bytes(stream["dumps"][0])
        found = dumps_of(result)
        expect(len(found) == epochs, f"{len(found)} dumps")
        for one in found:
            expect(one["bytes"] == 2 * size, f"{one['bytes']} bytes, expected {2 * size}")
            expect(phases_of(one)["open"] == 2 * FILES_OF_DUMP, f"{phases_of(one)}")
        sets = 1 if files == "update" else epochs
        names = expected_names(sets, FILES_OF_DUMP, 10, SUFFIXES.get(method, ""))
        expect(sorted(player.data()) == names, f"{len(player.data())} files")
        compared = result["verification"]
        expect(compared == {"bytes": sets * size, "wrong_bytes": 0}, f"{compared}")
        player.clear()
        player.play(workload_of(stream), "-a", method)
        expect(not (player.folder / "data").exists(), f"left {list(player.data())[:3]}")


def traced(player: Player, calls: str) -> Player:
    """The player with the system calls of each rank in a file trace.<process>."""
    need_strace()
    script = player.folder / "traced"
    trace = f"strace -f -y -e trace={calls} -o trace.$$"
    script.write_text(f'#!/bin/sh\nexec {trace} {player.program} "$@"\n')
    script.chmod(0o755)
    return Player(program=script, mpiexec=player.mpiexec, folder=player.folder)


def lines_of(player: Player) -> list[list[str]]:
    """The calls about files of the run that succeeded, of each rank."""
    ours = re.compile(r'data[/>]|"(data|many)\.')  # the latter from within the run directory
    return [
        [x for x in log.read_text().splitlines() if ours.search(x) and not re.search(r"= -1 E", x)]
        for log in sorted(player.folder.glob("trace.*"))
    ]


def shuffles(player: Player) -> None:
    """In each epoch every file is opened once, by other ranks and in another order than before."""
    stream = FLOOD | {
        "operation": "read",
        "files": "update",
        "order": {"rule": "shuffled", "seed": 9},
        "dumps": [dump([variable("v", [40, 10], EVEN)]) | {"repeat": {"count": 2, "period_s": 0}}],
    }
    stream["dumps"][0]["repeat"]["period_s"] = 0.01
    path = player.describe(workload_of(stream))
    outcome = traced(player, "openat").run(RANKS, "-w", path, "-o", "data")
    expect(outcome.status == 0, outcome.err)
    ranks = []
    for lines in lines_of(player):
        opened = [re.search(r"many\.000000\.(\d+)", x) for x in lines if "O_CREAT" not in x]
        ranks.append([int(found[1]) for found in opened if found])
    expect(sum(map(len, ranks)) == 80, f"{[len(r) for r in ranks]} opens, expected 80")
    epochs = [[r[: len(r) // 2] for r in ranks], [r[len(r) // 2 :] for r in ranks]]
    for epoch in epochs:
        numbers = sorted(itertools.chain(*epoch))
        expect(numbers == list(range(40)), f"an epoch reads {numbers}")
    expect(
        [sorted(r) for r in epochs[0]] != [sorted(r) for r in epochs[1]], "the same files again"
    )
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


def counts_of(operations: dict[str, Json]) -> dict[str, int]:
    """How often all ranks make each."""
    return {name: sum(n * each for n, each in runs) for name, runs in operations.items()}


def operations(player: Player) -> None:
    """Each operation is made as often as described, on data files where there are any."""
    data = {
        "name": "data",
        "layout": "file-per-process",
        "dumps": [dump([variable("v", [9, 100], EVEN)], operations=STORM)],
    }
    path = player.describe(workload_of(data))
    calls = "openat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,stat,newfstatat,lseek"
    outcome = traced(player, calls + ",fsync").run(RANKS, "-w", path, "-o", "data", "-k")
    expect(outcome.status == 0, outcome.err)
    result = json.loads((player.folder / "result.json").read_text())
    wanted = counts_of(STORM)
    found = phases_of(dumps_of(result)[0])
    expect(found["metadata"] == sum(wanted.values()), f"{found}, expected {wanted}")
    seen: Counter[str] = Counter()
    for line in itertools.chain(*lines_of(player)):
        # Asks about a name in the directory, or about what was opened, are the player's own; so is
        # its claim on the directory.
        own = any(x in line for x in ("AT_SYMLINK_NOFOLLOW", "AT_EMPTY_PATH", '".understudy"'))
        seen.update(k for k, call in CALLS.items() if re.search(call, line) and not own)
        seen["create"] += "O_CREAT" in line and "data.made." in line
        seen["open"] += bool(re.search(r'openat\(.*"data\.000000\.\d+", O_RDONLY', line))
    del wanted["mkdir"]  # counted below: the run directory is made too
    rest = {name: seen[name] for name in wanted}
    expect(rest == wanted, f"the kernel saw {rest}, expected {wanted}")
    left = Counter(re.sub(r"\d{8}", "N", name) for name in player.data())
    expect(left == {"data.000000.N": 3, "data.made.N": 9, "data.made.N.renamed": 2}, f"{left}")
    made = [p for p in (player.folder / "data").iterdir() if p.is_dir()]
    expect(len(made) == 5, f"{len(made)} directories, expected 5")


def storms(player: Player, method: str) -> None:
    """Storms of metadata without data, over several dumps, with all methods; nothing is left."""
    need_method(method)
    storm = {
        "name": "storm",
        "layout": "shared",
        "files_per_directory": 8,
        "role": "checkpoint",
        "dumps": [
            dump([], 0.0, {"create": [[2, 20], [1, 4]]}),
            dump([], 0.1, {"stat": [[3, 50]], "open": [[3, 10]], "rename": [[2, 20], [1, 4]]}),
            dump([], 0.2, {"unlink": [[2, 15], [1, 4]]}),
        ],
    }
    # Removes and renames more than it creates, which must be there before.
    lacks = storm | {
        "name": "lacks",
        "files_per_directory": None,
        "dumps": [
            dump([], 0.0, {"unlink": [[3, 4]], "rename": [[1, 9], [2, 0]]}),
            dump([], 0.1, {"stat": [[3, 1]]}),
        ],
    }
    flood = FLOOD | {"dumps": [dump(FILES, 0.0, {"stat": [[3, 30]], "open": [[3, 2]]})]}
    made = workload_of(storm, lacks, flood)
    result = player.play(made, "-a", method, "--time-scale", 0, "-k")
    for described, played in zip(
        made["streams"], result["repetitions"][0]["streams"], strict=True
    ):
        for one, dumped in zip(described["dumps"], played["dumps"], strict=True):
            count = sum(n * e for o in one["operations"] for n, e in o["runs"])
            found = phases_of(dumped)
            expect(found["metadata"] == count, f"{found}, expected {count}")
            expect(bool(one["variables"]) == ("open" in found), f"phases {list(found)}")
    folder = player.folder / "data"
    left = Counter(p.name[-8:] == ".renamed" for p in folder.glob("storm.made.d*/*"))
    expect(left == {True: 10}, f"{left} of the storm are left, expected 10, renamed")
    each = [len(list(p.iterdir())) for p in folder.glob("storm.made.d*")]
    expect(max(each) <= 8, f"{max(each)} files in a directory")
    left = Counter(p.name[-8:] == ".renamed" for p in folder.glob("lacks.made.*"))
    expect(left == {True: 5, False: 2}, f"{left} of what lacked files are left")
    player.clear()
    player.play(made, "-a", method, "--time-scale", 0, "-i", 2, "--restart")
    expect(not folder.exists(), f"left {list(files_below(folder))[:3]}")


def flushes(player: Player) -> None:
    """Files are flushed after so many bytes of a rank, as part of the write phase."""
    rows = [variable("v", [RANKS * 10, 500], EVEN)]
    stream = FLOOD | {"sync_bytes": 1200, "dumps": [dump(rows)]}
    for method in player.methods(["posix", "stdio", "mpiio"]):
        player.clear()
        made = dumps_of(player.play(workload_of(stream), "-a", method, "--verify"))[0]
        # After the third file of 500 bytes, the sixth and the ninth of each rank.
        expect(phases_of(made)["write"] == RANKS * (10 + 3), f"{method}: {phases_of(made)}")
        expect("sync" not in phases_of(made), f"{method}: {phases_of(made)}")


def paces(player: Player) -> None:
    """The transfers of all files are spread over the duration; waiting is nobody's time."""
    rows = [variable("v", [RANKS * 10, 1500], EVEN)]
    steady = dump(rows) | {"duration_s": 2.0}
    for operation in ("write", "read"):
        stream = FLOOD | {"operation": operation, "pace": "steady", "dumps": [steady]}
        result = player.play(workload_of(stream))
        moved = next(p for p in dumps_of(result)[0]["phases"] if p["phase"] == operation)
        span = moved["last_end_s"] - moved["first_start_s"]
        expect(span > 1.8, f"{operation}: took {span} s")  # the last of 20 begins at 1.9 s
        expect(moved["rank_s"]["max"] < span, f"{operation}: {moved['rank_s']} of {span} s")
        elapsed = result["repetitions"][0]["elapsed_s"]
        expect(elapsed > 1.8, f"{operation}: {elapsed} s")


def goes_past_the_cache(player: Player) -> None:
    """Direct files and those that are written through are opened so."""
    need_direct_io(player.folder)
    rows = [variable("v", [RANKS, 8192], EVEN)]
    for key, flag in (("write_through", "O_DSYNC"), ("direct", "O_DIRECT")):
        stream = FLOOD | {key: True, "dumps": [dump(rows)], "transfer_bytes": 4096}
        path = player.describe(workload_of(stream))
        outcome = traced(player, "openat").run(RANKS, "-w", path, "-o", "data", "--verify")
        expect(outcome.status == 0, outcome.err)
        opened = [x for x in itertools.chain(*lines_of(player)) if flag in x]
        expect(len(opened) >= RANKS, f"{key}: opened {opened}")
        for trace in player.folder.glob("trace.*"):
            trace.unlink()


def stops_cleanly(player: Player) -> None:
    """What a stopped run has made goes, a stranger's file in its directories stays."""
    stream = FLOOD | {
        "files_per_directory": 10,
        "order": {"rule": "shuffled", "seed": 2},
        "dumps": [dump(FILES, 0.0, {"create": [[3, 3]], "mkdir": [[3, 2]]}), dump(FILES, 60.0)],
    }
    path = player.describe(workload_of(stream))
    process = player.start(RANKS, "-w", path, "-o", "data", "-O", "no.json")
    folder = player.folder / "data"
    wait_for(folder, 7 + 1 + 6)
    deadline = time.monotonic() + 60
    while len(files_below(folder)) < FILES_OF_DUMP + 9 and time.monotonic() < deadline:
        time.sleep(0.05)
    stranger = folder / "many.000000.d000002" / "stranger"
    stranger.write_text("mine")
    process.send_signal(signal.SIGTERM)
    outcome = finish(process)
    expect(stopped(player, outcome), "status 0")
    left = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*"))
    expect(left == ["many.000000.d000002", "many.000000.d000002/stranger"], f"left {left}")


def file_of_another(player: Player) -> None:
    """A file under a name of the flood is not overwritten, and survives."""
    stream = FLOOD | {"dumps": [dump(FILES), dump(FILES, 4.0)]}
    path = player.describe(workload_of(stream))
    process = player.start(RANKS, "-w", path, "-o", "data", "-O", "no.json")
    wait_for(player.folder / "data", FILES_OF_DUMP)
    other = player.folder / "data" / "many.000001.00000030"
    other.write_text("mine")
    failed(finish(process), other.name, "File exists")
    expect(list(player.data().items()) == [(other.name, b"mine")], f"left {list(player.data())}")


def invalid_input(player: Player) -> None:
    """What cannot be played or does not fit is refused before anything is written."""
    path = player.describe(workload_of(FLOOD | {"dumps": [dump(FILES)]}))
    other = player.folder / "other.json"
    epochs = [dump(FILES), dump(FILES[:2], 1.0)]
    wrong = FLOOD | {"operation": "read", "files": "update", "dumps": epochs}
    other.write_text(json.dumps(program(workload_of(wrong))))
    huge = player.folder / "huge.json"
    rows = variable("v", [1 << 20, 1 << 32], EVEN)
    huge.write_text(json.dumps(program(workload_of(FLOOD | {"dumps": [dump([rows])]}))))
    storm = player.folder / "storm.json"
    free = os.statvfs(player.folder).f_favail
    storm.write_text(
        json.dumps(program(workload_of({"dumps": [dump([], operations={"create": [[3, free]]})]})))
    )
    cases: list[tuple[tuple[object, ...], tuple[str, ...]]] = [
        ((path, "-c"), ("--collective", "flood")),
        ((other,), ("streams[0].dumps", "dump 1", "dump 0")),
        ((huge,), ("bytes", "free")),
    ]
    if free > 0:
        cases.append(((storm,), ("files", "can be created")))
    if player.methods(["adios"]):
        cases.append(((path, "-a", "adios"), ("adios", "flood")))
    for (workload, *more), words in cases:
        refused(player, RANKS, "-w", workload, "-o", "data", *more, words=words)


def memory_does_not_grow(player: Player) -> None:
    """A rank takes eight bytes for each of its files."""
    found = []
    for files in (10, 1_000_000):
        made = workload_of(FLOOD | {"dumps": [dump([variable("v", [files, 100], EVEN)])]})
        outcome = player.run(0, "-w", player.describe(made), "--dry-run")
        expect(outcome.status == 0, outcome.err)
        found += map(int, re.findall(r"memory per rank +(\d+)", outcome.out))
    expect(len(found) == 2, f"{found} bytes")
    more = -(-1_000_000 // RANKS) - -(-10 // RANKS)
    expect(found[1] - found[0] == 8 * more, f"{found} bytes, expected {8 * more} more")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        shuffles,
        operations,
        flushes,
        paces,
        goes_past_the_cache,
        stops_cleanly,
        file_of_another,
        invalid_input,
        memory_does_not_grow,
    )
}
for _method in METHODS:
    CASES[f"writes.{_method}"] = partial(writes, method=_method)
    CASES[f"reads.{_method}"] = partial(reads, method=_method)
    CASES[f"storms.{_method}"] = partial(storms, method=_method)

if __name__ == "__main__":
    sys.exit(main("flood", CASES))

"""Turns, contents, what fills the pauses, options of methods, and every way to restart."""

import copy
import itertools
import json
import re
import shutil
import sys
import zlib
from typing import Any

from mpi_support import (
    EVEN,
    FILE_METHODS,
    METHODS,
    SUFFIXES,
    Json,
    Player,
    aborted,
    changed,
    dumps_of,
    equal,
    expect,
    files_below,
    flip,
    for_each,
    in_time,
    main,
    named,
    need_direct_io,
    need_injection,
    need_method,
    payload,
    phases_of,
    program,
    refused,
    sample,
    timed,
    traced,
    traces,
    variable_of_rank,
    verified,
)

LAYOUTS: dict[str, Json] = {
    "shared": {"layout": "shared", "groups": None},
    "grouped": {"layout": "grouped", "groups": 2},
    "file-per-process": {"layout": "file-per-process", "groups": None},
}


def one_stream(layout: str, dumps: int = 2, **changes: object) -> Json:
    """Slabs and a grid, several thousand bytes, as one checkpoint stream of the layout."""
    row = sample("shared")
    first = row["streams"][0]
    first |= LAYOUTS[layout] | {"transfer_bytes": 4096} | changes
    rho = first["dumps"][0]["variables"][0]
    field = rho | {"name": "field", "shape": [4000, 5], "decomposition": EVEN}
    count = rho | {"name": "count", "type": "i32", "shape": [997], "decomposition": EVEN}
    twin = first["dumps"][0] | {"time_s": 0.0, "variables": [rho, field, count]}
    first["dumps"] = [copy.deepcopy(twin) for _ in range(dumps)]
    return row


def for_ranks(row: Json, ranks: int, grid: list[int]) -> Json:
    """The same bytes by another number of ranks (scaled strongly)."""
    scaling = {"rule": "strong", "from_ranks": row["ranks"]}
    twin = copy.deepcopy(row) | {"ranks": ranks, "scaling": scaling}
    for dump in itertools.chain(*(stream["dumps"] for stream in twin["streams"])):
        for moved in dump["variables"]:
            if moved["decomposition"]["rule"] == "grid":
                moved["decomposition"]["grid"] = grid
    return twin


def content(kind: str, compressibility: float = 0) -> Json:
    return {"content": {"kind": kind, "compressibility": compressibility}}


def turns(player: Player, method: str) -> None:
    """Each rank has the file alone, in order; with other numbers of ranks in a file too."""
    need_method(method)
    for groups, ranks in ((1, 1), (1, 4), (2, 3), (3, 3), (3, 4)):
        row = for_ranks(
            one_stream("grouped", groups=groups, turns=True, sync=True), ranks, [ranks, 1, 1]
        )
        more = () if method == "null" else ("--verify",)
        result = player.play(row, "-a", method, "--restart", *more)
        if method != "null":
            verified(result, payload(row))
        for dump in itertools.chain(*(s["dumps"] for s in result["repetitions"][0]["streams"])):
            spent = sum(p["rank_s"]["mean"] * ranks for p in dump["phases"])
            span = max(p["last_end_s"] for p in dump["phases"]) - dump["start_s"]
            # As many ranks at once as there are files, and never more.
            expect(spent <= groups * span + 1e-6, f"{groups} files, {ranks} ranks: not in turns")
        equal(phases_of(dumps_of(result)[0])["open"], ranks, "opens")


def turns_of_one_rank_at_a_time(player: Player) -> None:
    """The file system sees it: a rank opens the file after the one before has closed it."""
    path = player.describe(one_stream("shared", dumps=1, turns=True))
    outcome = traced(player, "openat,close,pwrite64", "-ttt").run(4, "-w", path, "-o", "data")
    expect(outcome.status == 0, outcome.err)
    spans = []
    for lines in traces(player).values():
        times, name = [], ""
        for line in lines:
            _, time_s, call = line.split(maxsplit=2)
            if '"field.000000' in line and "O_RDWR" in line:
                name = line.rpartition("= ")[2].split()[0]
            elif not name or not call.startswith((f"close({name})", f"pwrite64({name},")):
                continue
            times.append(float(time_s))
            name = "" if call.startswith("close") else name
        expect(len(times) > 2, f"{len(times)} calls on the file")
        spans.append((times[0], times[-1]))
    equal(len(spans), 4, "traces")
    for before, after in itertools.pairwise(sorted(spans)):
        expect(before[1] <= after[0], f"two ranks had the file open: {sorted(spans)}")


def refuses_turns(player: Player) -> None:
    """Where nobody shares a file, or files stay, or calls are collective."""

    def collective(body: list[Any]) -> Any:
        return json.loads(json.dumps(body).replace('"transfer', '"collective": true, "transfer'))

    row = program(one_stream("shared", turns=True))
    for words, path, value in (
        ("several ranks", ("sets", 0, "of"), "each rank"),
        ("the index k", ("sets", 0, "index"), "none"),
        ("no ranks call together", ("streams", 0, "steps", 0, "do"), collective),
    ):
        described = player.describe(changed(row, path, value))
        refused(player, 4, "-w", described, "-o", "data", words=("streams[0]", words))
    described = player.describe(sample("turns"))
    words = ("--collective", "streams[0]", "take turns", "independent")
    refused(player, 4, "-w", described, "-o", "data", "-c", "-a", "mpiio", words=words)


SMALL = {"random": (0.45, 0.6), "zero": (0, 0.01), "constant": (0, 0.01), "smooth": (0, 0.98)}


def contents(player: Player, layout: str) -> None:
    """Every kind with every method, written in every way, is what it says and can be verified."""
    for method, kind in itertools.product(player.methods(FILE_METHODS), SMALL):
        row = one_stream(layout, dumps=1, **content(kind, 0.5 if kind == "random" else 0))
        result, files = player.kept(row, "-a", method, "--verify")
        verified(result, payload(row))
        if method != "posix":
            continue
        data = b"".join(files.values())
        low, high = SMALL[kind]
        expect(low <= len(zlib.compress(data, 6)) / len(data) <= high, f"{kind}: zlib")
        blocks = [data[i : i + 4096] for i in range(0, len(data) - 4095, 4096)]
        unique = len(set(blocks)) / len(blocks)
        expect(unique == 1 if kind in ("random", "smooth") else unique < 0.5, f"{kind}: {unique}")
        expect(kind != "zero" or not any(data), "zero: a byte is not zero")


def computes(player: Player) -> None:
    """--compute and the descriptor choose what fills pauses; the result says what was asked."""

    def once(row: Json, *options: str) -> None:
        result = player.play(row, *options)
        equal(result["options"]["compute"], (*options, None, None)[1], "compute")
        # Ranks that compute on fewer cores wait for each other; those that sleep do not.
        limit = 0.3 if "sleep" in options else 1.0
        for dump in dumps_of(result):
            expect(-1e-6 <= dump["lateness_s"] < limit, f"{options}: {dump['lateness_s']} s late")

    for name in ("single", "shared"):
        for options, described in (
            (("--compute", "stencil"), "sleep"),
            ((), "stencil"),
            (("--compute", "sleep"), "stencil"),
        ):
            row = timed([0.0, 0.35, 0.7], name) | {"compute": described}
            in_time(lambda row=row, options=options: once(row, *options))
            # Behind its time a stencil ends at once.
            late = timed([0, 500, 1000], name) | {"compute": described}
            result = player.play(late, *options, "--time-scale", 0)
            expect(result["repetitions"][0]["elapsed_s"] < 250, "a pause at time scale 0")


PACKED = ("chunk=160000", "deflate=6", "shuffle=yes")
HDF5_OPTIONS: tuple[tuple[str, ...], ...] = (
    *((), ("alignment=16KiB",), ("chunk=20000",), ("chunk=160000",), PACKED, ("flush=never",)),
    *(("libver=latest", "collective_metadata=yes"), ("chunk=1MiB", "shuffle=yes")),
)


def hdf5(*options: str) -> list[str]:
    return ["-a", "hdf5", *(word for option in options for word in ("-m", f"hdf5.{option}"))]


def hdf5_options(player: Player, layout: str) -> None:
    """Each option, in new and appended files: contents stay, files change as they should."""
    need_method("hdf5")
    sizes = {}
    for files, options in itertools.product(("new", "append"), HDF5_OPTIONS):
        row = one_stream(layout, files=files, **content("smooth"))
        calls = ("-c",) if re.search("deflate|shuffle", str(options)) else ()
        result = player.play(row, *hdf5(*options), *calls, "--verify", "--restart")
        verified(result, payload(row))
        pairs = dict(option.split("=") for option in options)
        expected = {f"hdf5.{name}": value for name, value in pairs.items()}
        equal(result["options"]["method_options"], expected)
        dumps = dumps_of(result)
        equal(sum(d["bytes"] for d in dumps), payload(row), f"{options}: payload")
        sizes[files, options] = sum(d["file_bytes"] for d in dumps)
        synced = result["repetitions"][0]["streams"][0]["sync"]
        expect(synced or "flush=never" in options, f"{options}: sync {synced}")
    for files in ("new", "append"):
        larger = sizes[files, ("alignment=16KiB",)]
        expect(larger > sizes[files, ()], f"{files}: alignment changed nothing")
        expect(sizes[files, PACKED] < sizes[files, PACKED[:1]], f"{files}: not packed: {sizes}")
    expect(sizes["new", ("chunk=20000",)] > sizes["new", ()], "chunks changed nothing")


def hdf5_turns(player: Player) -> None:
    """Ranks that take turns compress each for itself."""
    need_method("hdf5")
    row = one_stream("shared", turns=True, **content("constant"))
    options = hdf5("chunk=1MiB", "deflate=9", "alignment=4KiB")
    result = player.play(row, *options, "--verify", "--restart")
    verified(result, payload(row))
    for dump in dumps_of(result):
        expect(dump["file_bytes"] < dump["bytes"], f"{dump['file_bytes']} bytes on storage")


def direct(player: Player, layout: str) -> None:
    """METHOD.direct: the same bytes as through the cache, by calls with O_DIRECT."""
    need_direct_io(player.folder)
    methods = player.methods(["posix", "uring"])
    for files, turn in (("new", False), ("append", False), ("new", True)):
        if turn and layout == "file-per-process":
            continue
        row = one_stream(layout, files=files, turns=turn, transfer_bytes=10000)
        contents = set()
        for method, choice in (*itertools.product(methods, ("yes", "read")), ("posix", "no")):
            options = ("-a", method, "-m", f"{method}.direct={choice}")
            options += ("-m", "uring.depth=8") if method == "uring" else ()
            result, kept = player.kept(row, "--verify", "--restart", *options)
            verified(result, payload(row))
            contents.add(tuple(kept.items()))
        equal(len(contents), 1, "contents")


def one_rank(rows: int) -> Json:
    """So many bytes by one rank in one file that is not flushed."""
    row = timed([0.0], "single")
    first = row["streams"][0]
    first |= {"role": "checkpoint", "sync": False}
    moved = first["dumps"][0]["variables"][0]
    first["dumps"][0]["variables"] = [
        moved | {"type": "byte", "shape": [rows], "decomposition": EVEN}
    ]
    return row


def calls_of(
    player: Player,
    calls: str,
    row: Json,
    *arguments: object,
    name: str = "one.000000",
    inject: str = "",
) -> list[str]:
    """The calls of one rank on a file, by strace; with an error injected it must fail, and leave
    neither files nor a result. The kernel names open files by their whole paths."""
    player.clear()
    options = ["-P", player.folder.resolve() / "data" / name, "-P", name]
    options += ["-e", f"inject={calls}:error={inject}"] if inject else []
    command = ("-w", player.describe(row), "-o", "data", "-O", "r.json", *arguments)
    outcome = traced(player, calls, *options).run(0, *command)
    (lines,) = traces(player).values()
    if inject:
        expect(any("INJECTED" in line for line in lines), f"no error: {outcome.err}")
        expect(outcome.status != 0, "status 0")
        equal([*player.files()], [], "left")
        expect(not (player.folder / "r.json").exists(), "a result was written")
        return outcome.lines
    expect(outcome.status == 0, outcome.err)
    return lines


def moved_by(lines: list[str], call: str) -> list[int]:
    return [int(line.rpartition("= ")[2]) for line in lines if f"{call}(" in line]


def direct_is_direct(player: Player) -> None:
    """The kernel sees O_DIRECT, and whole pages on that descriptor only."""
    need_direct_io(player.folder)
    options = ("-m", "posix.direct=yes")
    lines = calls_of(player, "openat,pwrite64", one_rank(100_001), *options)
    opened = [line for line in lines if "O_DIRECT" in line]
    equal(len(opened), 1, opened)
    descriptor = opened[0].rpartition("= ")[2]
    moved = [int(x.rpartition("= ")[2]) for x in lines if f"pwrite64({descriptor}," in x]
    expect(all(n % 4096 == 0 for n in moved), f"direct calls of {moved} bytes")
    equal(sum(moved), 98_304, "bytes that were written directly")


def stdio_writes_only(player: Player) -> None:
    """A file that is updated in place by standard I/O is not read for it."""
    row = one_rank(100_000)
    first = row["streams"][0]
    first |= {"files": "update", "names": 1, "order": {"rule": "strided", "step": 7}}
    first["dumps"] = [first["dumps"][0], first["dumps"][0] | {"time_s": 0.1}]
    options = ("-a", "stdio", "-t", 100, "-k", "--verify")
    lines = calls_of(player, "openat,write,read,pread64,lseek", row, *options)
    opened = [k for k, line in enumerate(lines) if "openat(" in line]
    equal(len(opened), 3, "opens, the last one to verify")
    writing = lines[: opened[2]]
    equal(sum(moved_by(writing, "write")), 200_000, "bytes written")
    expect(not any("read" in line for line in writing), "the file was read")
    expect(all("O_WRONLY" in lines[k] for k in opened[:2]), f"opened {lines[opened[1]]}")


def stdio_buffers(player: Player) -> None:
    """stdio.buffer decides on the calls of the system, in writes and reads, not on the bytes."""
    contents = set()
    for size, calls in ((None, range(100)), ("64KiB", [2]), ("4096", [25]), ("1", [1000])):
        chosen = () if size is None else ("-m", f"stdio.buffer={size}")
        options = ("-a", "stdio", "-t", 100, "-k", "--restart", *chosen)
        lines = calls_of(player, "openat,write,read,lseek", one_rank(100_000), *options)
        wrote, read = moved_by(lines, "write"), moved_by(lines, "read")
        equal((sum(wrote), sum(read)), (100_000, 100_000), "written and read")
        expect(len(wrote) in calls, f"buffer {size}: {len(wrote)} writes")
        # The last read meets the end of the file only where the buffer asked for more.
        expect(len(read) - len(wrote) in (0, 1), f"buffer {size}: {len(read)} reads")
        expect(not any("lseek(" in line for line in lines), f"buffer {size}: positioned")
        # One fopen creates the file, as in an application, and another opens it to read.
        opened = [line for line in lines if "openat(" in line]
        expect(len(opened) == 2 and "O_WRONLY|O_CREAT|O_EXCL|O_TRUNC" in opened[0], opened)
        contents.add(player.files()["one.000000"])
    equal(len(contents), 1, "contents")


def errors_that_libraries_hide_are_named(player: Player) -> None:
    """What a buffer hides until fflush or fclose; MPI-IO and HDF5 keep an exceeded quota to
    themselves, so the player asks the file system."""
    need_injection(player.folder)
    buffered = ("-a", "stdio", "-m", "stdio.buffer=1MiB")
    for more, what in (((), "cannot close"), (("-e",), "cannot write what is buffered of")):
        lines = calls_of(player, "write", one_rank(100_000), *buffered, *more, inject="ENOSPC")
        expect(f"stdio: {what} data/one.000000: No space left on device" in lines[0], lines)
    for method in player.methods(["posix", "mpiio", "hdf5"]):
        name = f"one.000000{SUFFIXES.get(method, '')}"
        calls, row = "write,writev,pwrite64,pwritev,pwritev2", one_rank(100_000)
        lines = calls_of(player, calls, row, "-a", method, name=name, inject="EDQUOT")
        expect(f"data/{name}" in lines[0] and "Disk quota exceeded" in lines[0], lines)


def no_direct_io(player: Player) -> None:
    """A file system without O_DIRECT is refused before anything is written; strace plays one."""
    need_injection(player.folder)
    # The first open of the probe creates it, the second asks for O_DIRECT.
    options = ("-P", ".direct", "-e", "inject=openat:error=EINVAL:when=2")
    path = player.describe(sample("single"))
    for method in player.methods(["posix", "uring"]):
        command = ("-w", path, "-o", "data", "-a", method, "-m", f"{method}.direct=read")
        outcome = traced(player, "openat", *options).run(0, *command)
        expect("INJECTED" in str(traces(player)), f"no error: {outcome.err}")
        equal(outcome.status, 2, outcome.err)
        words = f"--method-option {method}.direct=read: the file system of data cannot bypass"
        expect(words in outcome.message(), outcome.err)
        names = sorted(p.name for p in player.folder.iterdir())
        equal(names, ["script", "workload.json"], "left")


def restarts(player: Player, method: str) -> None:
    """Any dump of any written stream, with ranks shifted and memory dropped, in every layout: each
    of the three streams meets each of the three shifts in two of the six layouts."""
    need_method(method)
    layouts = list(LAYOUTS) if method != "null" else ["shared"]
    for turn, (layout, files) in enumerate(itertools.product(layouts, ("new", "append"))):
        row = one_stream(layout, dumps=3, files=files)
        row["streams"].append(copy.deepcopy(row["streams"][0]))
        row["streams"][1] |= {"name": "other", "role": "visualization"}
        name, dump = (("other", 1), ("field", 0), (None, None))[turn % 3]
        for shift in (0, 1, 5)[turn % 2 :: 2]:
            options: list[object] = ["--restart", "--shift-ranks", shift, "--drop-cache"]
            options += ["--restart-stream", name, "--restart-dump", dump] if name else []
            options += ["--verify"] if method != "null" else []
            result = player.play(row, "-a", method, *options)
            again = result["repetitions"][0]["streams"][2:]
            equal([s["name"] for s in again], [f"{name or 'field'}-restart"], options)
            expected = [(2 if dump is None else dump, payload(row) // 6)]
            equal([(d["dump"], d["bytes"]) for d in again[0]["dumps"]], expected, options)
            keys = ("restart_stream", "restart_dump", "shift_ranks", "drop_cache")
            equal([result["options"][key] for key in keys], [name, dump, shift, True])


def shifted_ranks(player: Player) -> None:
    """Rank r reads the file of rank r+N: strace sees which file each process opens."""
    path = player.describe(one_stream("file-per-process", dumps=1))
    by_rank = traced(player, "openat", name=f"${variable_of_rank(player.mpiexec)}")
    for shift in (1, 2, 7):
        command = ("-w", path, "-o", "data", "--restart", "--shift-ranks", shift)
        outcome = by_rank.run(4, *command)
        expect(outcome.status == 0, outcome.err)
        read = {
            int(rank): {x.split('"')[1][-8:] for x in lines if '"field' in x and "O_RDONLY" in x}
            for rank, lines in traces(player).items()
        }
        equal(read, {rank: {f"{(rank + shift) % 4:08d}"} for rank in range(4)}, f"shift {shift}")


def drops_cache(player: Player) -> None:
    """--drop-cache empties the page cache of the file, where it is not the storage itself."""
    row = for_ranks(one_stream("shared", dumps=1), 1, [1, 1, 1])
    options = ("--restart", "--drop-cache")
    lines = calls_of(player, "openat,fsync,fadvise64,pread64", row, *options, name="field.000000")
    advised = [k for k, line in enumerate(lines) if "POSIX_FADV_DONTNEED" in line]
    read = [k for k, line in enumerate(lines) if "pread64(" in line]
    equal(len(advised), 2, "pieces of advice, expected one as writer and one as reader")
    expect(max(advised) < min(read), f"dropped while the file was read: {lines}")


def later_job(player: Player, method: str) -> None:
    """--restart-from reads what an earlier run kept, shared files by other ranks too."""
    need_method(method)
    result = player.folder / "r.json"
    for turn, (layout, files) in enumerate(itertools.product(LAYOUTS, ("new", "append"))):
        row = one_stream(layout, files=files)
        player.play(row, "-a", method, "-k")
        kept = player.data.rename(player.folder / "kept")
        before = files_below(kept)
        for k, ranks in enumerate((4, 2) if turn % 2 else (4, 1, 3)):
            path = player.describe(for_ranks(row, ranks, [1, ranks, 1]) if ranks != 4 else row)
            command = (
                "-w",
                path,
                "--restart-from",
                "kept",
                "-a",
                method,
                "--verify",
                "-O",
                result,
            )
            outcome = player.run(ranks, *command, "--restart-dump", (k + turn) % 2)
            # Two ranks of two groups find in each group's file just what they need.
            readable = layout == "shared" or ranks == 4 or (layout == "grouped" and ranks == 2)
            expect((outcome.status == 0) == readable, f"{ranks}, {layout}, {files}: {outcome.err}")
            if readable:
                rows = json.loads(result.read_text())
                verified(rows, payload(row) // 2)
                names = [s["name"] for s in rows["repetitions"][0]["streams"]]
                equal((names, rows["options"]["restart_from"]), (["field-restart"], "kept"))
                result.unlink()
        equal(
            files_below(kept) == before, True, f"{layout}, {files}: the kept files are as before"
        )
        shutil.rmtree(kept)


def later_job_finds_wrong_bytes(player: Player) -> None:
    """A byte that changed between the jobs is found."""
    row = one_stream("shared")
    player.play(row, "-k")
    flip(player.data / "field.000001", 12345, 4)
    command = ("-w", player.describe(row), "--restart-from", "data", "--verify")
    outcome = player.run(4, *command)
    expect(aborted(outcome), f"status {outcome.status}")
    # Behind the 10240 bytes of rho.
    expect("field.000001" in outcome.message() and "byte 2105" in outcome.message(), outcome.err)
    outcome = player.run(4, *command, "--restart-dump", 0)
    expect(outcome.status == 0, outcome.err)


def invalid_input(player: Player) -> None:
    """Options that do not fit each other, the workload, the methods or the files; see
    unit_option.c and unit_setting.c for those that are wrong in themselves."""
    apart, shared = one_stream("file-per-process"), one_stream("shared")
    player.play(apart, "-k")
    player.data.rename(player.folder / "kept")
    path, same = player.describe(shared), player.describe(apart, "same.json")
    other = player.describe(for_ranks(shared, 2, [2, 1, 1]), "other.json")
    turned = for_ranks(one_stream("shared", turns=True), 2, [2, 1, 1])
    of_turns = player.describe(turned, "turns.json")
    of_two = player.describe(for_ranks(apart, 2, [2, 1, 1]), "two.json")
    of_kept = f"kept/{min((player.folder / 'kept').iterdir()).name}"
    to, later = ("-o", "data"), ("--restart-from", "kept")
    cases: list[tuple[int, tuple[object, ...], tuple[str, ...]]] = [
        (4, (path, *to, "--restart", "--restart-dump", 2), ("--restart-dump 2", "0 to 1")),
        (4, (path, *to, "--restart", "--restart-stream", "x"), ("x", "no stream")),
        (4, (path, "--restart-from", "none"), ("--restart-from none", "expected a directory")),
        (4, (path, *later), ("cannot find kept/field.000001", "No such file")),
        (2, (other, *later), ("cannot find kept/field.000001",)),
        (2, (of_two, *later), ("2 ranks", "all ranks share")),
        (2, (of_turns, *later), ("--restart-from", "took turns", "streams[0]")),
        (4, (path, *later, "-a", "null"), ("null", "no files")),
        (4, (path, *to, "-O", path), ("--output", "is the workload")),
        (4, (same, *later, "-O", of_kept), ("file of the run",)),
        (4, (path, *to, "-a", "null", "-m", "posix.direct=yes"), ("no stream is played",)),
    ]
    for options, words in (
        (("chunk=4KiB", "deflate=10"), ("deflate=10", "from 0 to 9")),
        (("chunk=4m",), ("chunk=4m", "1MiB")),
        (("deflate=1",), ("need hdf5.chunk",)),
        (("chunk=4KiB", "deflate=1"), ("streams[0] (field)", "collective calls", "--collective")),
        (("libver=v18",), ("earliest or latest",)),
        (("flush=x",), ("state or never",)),
    ):
        if player.methods(["hdf5"]):
            cases.append((4, (path, *to, *hdf5(*options)), words))
    for ranks, (described, *arguments), words in cases:
        refused(player, ranks, "-w", described, *arguments, words=words)


def lists_options(player: Player) -> None:
    """--list -v names the options of methods, --list alone does not."""
    outcome = player.run(0, "--list", "-v")
    expect(outcome.status == 0, outcome.err)
    names = ["posix.direct=no|read|yes", "stdio.buffer=BYTES"]
    if player.methods(["uring"]):
        names += ["uring.depth=N", "uring.direct=no|read|yes", "uring.sqpoll=no|yes"]
    if player.methods(["hdf5"]):
        names += ["hdf5.alignment=BYTES", "hdf5.chunk=BYTES", "hdf5.deflate=N", "hdf5.shuffle="]
        names += ["hdf5.libver=", "hdf5.collective_metadata=", "hdf5.flush=state|never"]
    for name in names:
        expect(f"-m {name}" in outcome.out, f"{name} is missing in\n{outcome.out}")
    expect("-m " not in player.run(0, "--list").out, "--list alone is not short")


CASES = {
    **named(turns_of_one_rank_at_a_time, refuses_turns, computes, hdf5_turns, direct_is_direct),
    **named(stdio_writes_only, stdio_buffers, errors_that_libraries_hide_are_named, no_direct_io),
    **named(shifted_ranks, drops_cache, later_job_finds_wrong_bytes, invalid_input, lists_options),
    **for_each(turns, METHODS),
    **for_each(restarts, METHODS),
    **for_each(later_job, FILE_METHODS),
    **for_each(contents, LAYOUTS),
    **for_each(hdf5_options, LAYOUTS),
    **for_each(direct, LAYOUTS),
}

if __name__ == "__main__":
    sys.exit(main("modes", CASES))

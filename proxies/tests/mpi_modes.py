"""Turns, contents, what fills the pauses, options of methods, and every way to restart.

`mpi_modes.py --list` names the cases, `mpi_modes.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import array
import copy
import itertools
import json
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from mpi_errors import refused
from mpi_play import METHODS
from mpi_run import dumps_of, timed
from mpi_support import (
    SUFFIXES,
    Json,
    Player,
    aborted,
    dump_bytes,
    expect,
    files_below,
    in_time,
    keys,
    main,
    need_direct_io,
    need_injection,
    need_method,
    need_strace,
    program,
    sample,
    variable_of_rank,
)

FILE_METHODS = [method for method in METHODS if method != "null"]
LAYOUTS: dict[str, Json] = {
    "shared": {"layout": "shared", "groups": None},
    "grouped": {"layout": "grouped", "groups": 2},
    "file-per-process": {"layout": "file-per-process", "groups": None},
}
EVEN = {"rule": "even"}


def one_stream(layout: str, dumps: int = 2, **changes: object) -> Json:
    """Slabs and a grid, several thousand bytes, as one checkpoint stream of the layout."""
    workload = sample("shared")
    stream = workload["streams"][0]
    stream |= LAYOUTS[layout] | {"transfer_bytes": 4096} | changes
    rho = stream["dumps"][0]["variables"][0]
    field = rho | {"name": "field", "shape": [4000, 5], "decomposition": EVEN}
    count = rho | {"name": "count", "type": "i32", "shape": [997], "decomposition": EVEN}
    stream["dumps"] = [
        stream["dumps"][0] | {"time_s": 0.0, "variables": [rho, field, count]}
        for _ in range(dumps)
    ]
    return workload


def for_ranks(workload: Json, ranks: int, grid: list[int]) -> Json:
    """The same bytes by another number of ranks (scaled strongly)."""
    twin = copy.deepcopy(workload) | {
        "ranks": ranks,
        "scaling": {"rule": "strong", "from_ranks": workload["ranks"]},
    }
    for stream in twin["streams"]:
        for dump in stream["dumps"]:
            for variable in dump["variables"]:
                if variable["decomposition"]["rule"] == "grid":
                    variable["decomposition"]["grid"] = grid
    return twin


def verified(result: Json, payload: int) -> None:
    """So many bytes were compared, and none was wrong."""
    found = result["verification"]
    expect(found == {"bytes": payload, "wrong_bytes": 0}, f"{found}, expected {payload} bytes")


def payload_of(workload: Json) -> int:
    """Bytes of all dumps."""
    return sum(dump_bytes(d) for s in workload["streams"] for d in s["dumps"])


def turns(player: Player, method: str) -> None:
    """Each rank has the file alone, in order; with other numbers of ranks in a file too."""
    need_method(method)
    for groups, ranks in itertools.product((1, 2, 3), (1, 2, 3, 4)):
        if groups > ranks:
            continue
        workload = one_stream("grouped", groups=groups, turns=True, sync=True)
        workload = for_ranks(workload, ranks, [ranks, 1, 1])
        more = ("--restart",) if method == "null" else ("--restart", "--verify")
        result = player.play(workload, "-a", method, *more)
        if method != "null":
            verified(result, payload_of(workload))
        for stream, dump in (
            (s, d) for s in result["repetitions"][0]["streams"] for d in s["dumps"]
        ):
            spent = sum(p["rank_s"]["mean"] * ranks for p in dump["phases"])
            ends = max(p["last_end_s"] for p in dump["phases"])
            # As many ranks at once as there are files, and never more.
            expect(
                spent <= groups * (ends - dump["start_s"]) + 1e-6,
                f"{stream['name']}: not in turns",
            )
        opened = {p["phase"]: p["operations"] for p in dumps_of(result)[0]["phases"]}
        expect(opened["open"] == ranks, f"{opened['open']} opens by {ranks} ranks")


def turns_of_one_rank_at_a_time(player: Player) -> None:
    """The file system sees it: a rank opens the file after the one before has closed it."""
    need_strace()
    path = player.describe(one_stream("shared", dumps=1, turns=True))
    trace = ["strace", "-f", "-ttt", "-e", "trace=openat,close,pwrite64", "-o"]
    script = player.folder / "traced"
    script.write_text(f'#!/bin/sh\nexec {" ".join(trace)} trace.$$ {player.program} "$@"\n')
    script.chmod(0o755)
    traced = Player(program=script, mpiexec=player.mpiexec, folder=player.folder)
    outcome = traced.run(4, "-w", path, "-o", "data", "-a", "posix")
    expect(outcome.status == 0, outcome.err)
    spans = []
    for log in player.folder.glob("trace.*"):
        times, name = [], None
        for line in log.read_text().splitlines():
            words = line.split(maxsplit=2)
            if '"field.000000' in line and "openat" in line and "O_RDWR" in line:
                name = line.rpartition("= ")[2].split()[0]
                times.append(float(words[1]))
            elif name and f"close({name})" in line:
                times.append(float(words[1]))
                name = None
            elif name and f"pwrite64({name}," in line:
                times.append(float(words[1]))
        expect(len(times) > 2, f"{log.name}: {len(times)} calls on the file")
        spans.append((times[0], times[-1]))
    expect(len(spans) == 4, f"{len(spans)} traces")
    for before, after in itertools.pairwise(sorted(spans)):
        expect(before[1] <= after[0], f"two ranks had the file open: {sorted(spans)}")


def refuses_turns(player: Player) -> None:
    """Where nobody shares a file, or files stay, or calls are collective."""
    turns = program(one_stream("shared", turns=True))
    cases: dict[str, tuple[tuple[str | int, ...], Any]] = {
        "several ranks": (("sets", 0, "of"), "each rank"),
        "the index k": (("sets", 0, "index"), "none"),
        "no ranks call together": (("streams", 0, "steps", 0, "do"), _collective),
    }
    for words, (path, value) in cases.items():
        workload = json.loads(json.dumps(turns))
        *above, last = path
        at: Any = workload
        for key in above:
            at = at[key]
        at[last] = value(at[last]) if callable(value) else value
        described = player.describe(workload)
        refused(player, 4, "-w", described, "-o", "data", words=("streams[0]", words))


def _collective(body: list[Any]) -> list[Any]:
    """The instructions, with collective moves."""
    text = json.dumps(body).replace('"transfer_bytes"', '"collective": true, "transfer_bytes"')
    found: list[Any] = json.loads(text)
    return found


def contents(player: Player, layout: str) -> None:
    """Every kind with every method, written in every way, is what it says and can be verified."""
    methods = player.methods(FILE_METHODS)
    for method, kind in itertools.product(methods, ("random", "zero", "constant", "smooth")):
        content = {"kind": kind, "compressibility": 0.5 if kind == "random" else 0}
        workload = one_stream(layout, content=content, dumps=1)
        result = player.play(workload, "-a", method, "--verify", "-k")
        verified(result, payload_of(workload))
        if method == "posix":
            check_bytes(kind, b"".join(player.data().values()))
        player.clear()


def check_bytes(kind: str, data: bytes) -> None:
    """How small zlib makes them, and how often a block of 4 KiB occurs."""
    small = len(zlib.compress(data, 6)) / len(data)
    low, high = {
        "random": (0.45, 0.6),
        "zero": (0, 0.01),
        "constant": (0, 0.01),
        "smooth": (0, 0.98),
    }[kind]
    expect(low <= small <= high, f"{kind}: compressed to {small:.3f}")
    blocks = [data[i : i + 4096] for i in range(0, len(data) - 4095, 4096)]
    unique = len(set(blocks)) / len(blocks)
    expect(
        unique == 1 if kind in ("random", "smooth") else unique < 0.5, f"{kind}: {unique} unique"
    )
    expect(kind != "zero" or not any(data), "zero: a byte is not zero")


def smooth_values(player: Player) -> None:
    """A smooth field of doubles is one to a reader that is not the player."""
    workload = one_stream("shared", content={"kind": "smooth", "compressibility": 0}, dumps=1)
    variables = workload["streams"][0]["dumps"][0]["variables"]
    workload["streams"][0]["dumps"][0]["variables"] = [variables[1] | {"shape": [20000, 5]}]
    player.play(workload, "-a", "mpiio", "-k")
    values = array.array("d", next(iter(player.data().values())))
    steps = [abs(b - a) for a, b in itertools.pairwise(values)]
    expect(max(steps) < 0.1, f"a step of {max(steps)}")
    expect(max(values) - min(values) > 90, f"from {min(values)} to {max(values)}")


def computes_once(player: Player, workload: Json, asked: str | None) -> None:
    result = player.play(workload, *(("--compute", asked) if asked else ()))
    expect(result["options"]["compute"] == asked, f"{result['options']['compute']}")
    # Ranks that compute on fewer cores wait for each other; those that sleep do not.
    limit = 0.3 if asked == "sleep" else 1.0
    for dump in dumps_of(result):
        late = dump["lateness_s"]
        expect(-1e-6 <= late < limit, f"{asked}: late by {late} s")


def computes(player: Player) -> None:
    """--compute and the descriptor choose what fills pauses; the result says what was asked."""
    times = [0.0, 0.35, 0.7]
    for ranks in (1, 4):
        name = "single" if ranks == 1 else "shared"
        for asked, described in (("stencil", "sleep"), (None, "stencil"), ("sleep", "stencil")):
            workload = timed(times, name) | {"compute": described}
            in_time(lambda workload=workload, asked=asked: computes_once(player, workload, asked))
            # Behind its time a stencil ends at once.
            late = workload | {"streams": timed([0, 500, 1000], name)["streams"]}
            result = player.play(late, *(("--compute", asked) if asked else ()), "--time-scale", 0)
            expect(result["repetitions"][0]["elapsed_s"] < 250, "a pause at time scale 0")
    refused(
        player,
        1,
        "-w",
        player.describe(sample("single")),
        "-o",
        "data",
        "--compute",
        "pray",
        words=("--compute pray", "sleep, busy or stencil"),
    )


def hdf5_options(player: Player, layout: str) -> None:
    """Each option, in new and appended files: contents stay, files change as they should."""
    need_method("hdf5")
    sizes = {}
    for files, options in itertools.product(("new", "append"), HDF5_OPTIONS):
        content = {"kind": "smooth", "compressibility": 0}
        workload = one_stream(layout, files=files, content=content)
        given = [word for option in options for word in ("-m", f"hdf5.{option}")]
        calls = ("-c",) if any("deflate" in o or "shuffle" in o for o in options) else ()
        result = player.play(workload, "-a", "hdf5", *given, *calls, "--verify", "--restart")
        verified(result, payload_of(workload))
        found = result["options"]["method_options"]
        expect(found == {f"hdf5.{o.split('=')[0]}": o.split("=")[1] for o in options}, f"{found}")
        dumps = dumps_of(result)
        payload = payload_of(workload)
        expect(sum(d["bytes"] for d in dumps) == payload, f"{options}: another payload")
        sizes[files, options] = sum(d["file_bytes"] for d in dumps)
        synced = result["repetitions"][0]["streams"][0]["sync"]
        expect(synced or "flush=never" in options, f"{options}: sync {synced}")
    for files in ("new", "append"):
        plain = sizes[files, ()]
        expect(sizes[files, ("alignment=16KiB",)] > plain, f"{files}: alignment changed nothing")
        packed = sizes[files, ("chunk=160000", "deflate=6", "shuffle=yes")]
        unpacked = sizes[files, ("chunk=160000",)]
        expect(packed < unpacked, f"{files}: {packed} bytes packed, {unpacked} otherwise")
    expect(sizes["new", ("chunk=20000",)] > sizes["new", ()], "chunks changed nothing")


HDF5_OPTIONS: tuple[tuple[str, ...], ...] = (
    (),
    ("alignment=16KiB",),
    ("chunk=20000",),
    ("chunk=160000",),
    ("chunk=160000", "deflate=6", "shuffle=yes"),
    ("libver=latest", "collective_metadata=yes"),
    ("chunk=1MiB", "shuffle=yes"),
    ("flush=never",),
)


def hdf5_turns(player: Player) -> None:
    """Ranks that take turns compress each for itself."""
    need_method("hdf5")
    workload = one_stream("shared", turns=True, content={"kind": "constant", "compressibility": 0})
    given = ("-m", "hdf5.chunk=1MiB", "-m", "hdf5.deflate=9", "-m", "hdf5.alignment=4KiB")
    result = player.play(workload, "-a", "hdf5", *given, "--verify", "--restart")
    verified(result, payload_of(workload))
    for dump in dumps_of(result):
        expect(dump["file_bytes"] < dump["bytes"], f"{dump['file_bytes']} bytes on storage")


def direct(player: Player, layout: str) -> None:
    """posix.direct: the same bytes as through the cache, by calls with O_DIRECT."""
    need_direct_io(player.folder)
    for files, turn in (("new", False), ("append", False), ("new", True)):
        if turn and layout == "file-per-process":
            continue
        workload = one_stream(layout, files=files, turns=turn, transfer_bytes=10000)
        common = ("-a", "posix", "--verify", "--restart", "-k", "-m")
        result = player.play(workload, *common, "posix.direct=yes")
        verified(result, payload_of(workload))
        data = player.data()
        player.clear()
        for choice in ("read", "no"):
            player.play(workload, *common, f"posix.direct={choice}")
            expect(player.data() == data, f"{choice}: other bytes")
            player.clear()


def direct_is_direct(player: Player) -> None:
    """The kernel sees O_DIRECT, and whole pages on that descriptor only."""
    need_strace()
    need_direct_io(player.folder)
    workload = timed([0.0], "single")
    variable = workload["streams"][0]["dumps"][0]["variables"][0]
    workload["streams"][0]["dumps"][0]["variables"] = [
        variable | {"type": "byte", "shape": [100_001], "decomposition": EVEN}
    ]
    path = player.describe(workload)
    trace = ["strace", "-f", "-e", "trace=openat,pwrite64", "-o", "trace"]
    done = subprocess.run(
        [*trace, str(player.program), "-w", str(path), "-o", "data", "-m", "posix.direct=yes"],
        cwd=player.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    expect(done.returncode == 0, done.stderr)
    lines = (player.folder / "trace").read_text().splitlines()
    opened = [x for x in lines if "O_DIRECT" in x and '"one.000000' in x]
    expect(len(opened) == 1, f"opened {opened}")
    descriptor = opened[0].rpartition("= ")[2]
    calls = [x for x in lines if f"pwrite64({descriptor}," in x]
    expect(len(calls) > 0, "nothing was written directly")
    moved = [int(x.rpartition("= ")[2]) for x in calls]
    expect(all(n % 4096 == 0 for n in moved), f"direct calls of {moved} bytes")
    expect(sum(moved) == 98_304, f"{sum(moved)} bytes were written directly, expected 98304")


def one_rank(rows: int) -> Json:
    """So many bytes by one rank in one file that is not flushed."""
    workload = timed([0.0], "single")
    workload["streams"] = workload["streams"][:1]
    variable = workload["streams"][0]["dumps"][0]["variables"][0]
    workload["streams"][0] |= {"role": "checkpoint", "sync": False}
    workload["streams"][0]["dumps"][0]["variables"] = [
        variable | {"type": "byte", "shape": [rows], "decomposition": EVEN}
    ]
    return workload


def traced_file(
    player: Player,
    trace: tuple[str, ...],
    workload: Json,
    *arguments: object,
    name: str = "one.000000",
) -> "subprocess.CompletedProcess[str]":
    """A run of one rank under strace, whose lines about its first file are in ./trace."""
    need_strace()
    player.clear()
    path = player.describe(workload)
    # The kernel names open files by their whole paths.
    file = player.folder.resolve() / "data" / name
    command = ["strace", "-f", "-o", "trace", "-P", str(file), "-P", name]
    command += trace
    command += [str(player.program), "-w", str(path)]
    return subprocess.run(
        [*command, "-o", "data", *map(str, arguments)],
        cwd=player.folder,
        capture_output=True,
        text=True,
        check=False,
    )


def stdio_writes_only(player: Player) -> None:
    """A file that is updated in place by standard I/O is not read for it."""
    workload = one_rank(100_000)
    stream = workload["streams"][0]
    stream |= {"files": "update", "names": 1, "order": {"rule": "strided", "step": 7}}
    stream["dumps"] = [stream["dumps"][0], stream["dumps"][0] | {"time_s": 0.1}]
    trace = ("-e", "trace=openat,write,read,pread64,lseek")
    done = traced_file(player, trace, workload, "-a", "stdio", "-t", 100, "-k", "--verify")
    expect(done.returncode == 0, done.stderr)
    lines = (player.folder / "trace").read_text().splitlines()
    opened = [k for k, x in enumerate(lines) if "openat(" in x]
    expect(len(opened) == 3, f"opened {[lines[k] for k in opened]}")  # the last one to verify
    writing = lines[: opened[2]]
    wrote = [int(x.rpartition("= ")[2]) for x in writing if "write(" in x]
    expect(sum(wrote) == 200_000, f"{sum(wrote)} bytes written")
    expect(not any("read" in x for x in writing), "the file was read")
    expect(all("O_WRONLY" in lines[k] for k in opened[:2]), f"opened {lines[opened[1]]}")


def stdio_buffers(player: Player) -> None:
    """stdio.buffer decides on the calls of the system, in writes and reads, not on the bytes."""
    workload = one_rank(100_000)
    given = ("-a", "stdio", "-t", 100, "-k", "--restart")
    trace = ("-e", "trace=openat,write,read,lseek")
    contents = set()
    for size, most in ((None, 100), ("64KiB", 2), ("4096", 25), ("1", 1000)):
        chosen = () if size is None else ("-m", f"stdio.buffer={size}")
        done = traced_file(player, trace, workload, *given, *chosen)
        expect(done.returncode == 0, done.stderr)
        lines = (player.folder / "trace").read_text().splitlines()
        wrote = [int(x.rpartition("= ")[2]) for x in lines if "write(" in x]
        read = [int(x.rpartition("= ")[2]) for x in lines if "read(" in x]
        expect(sum(wrote) == sum(read) == 100_000, f"{sum(wrote)} written, {sum(read)} read")
        right = len(wrote) < most if size is None else len(wrote) == most
        expect(right, f"buffer {size}: {len(wrote)} writes, expected {most}")
        # The last read meets the end of the file only where the buffer asked for more.
        expect(len(read) - len(wrote) in (0, 1), f"buffer {size}: {len(read)} reads")
        expect(not any("lseek(" in x for x in lines), f"buffer {size}: positioned")
        # One fopen creates the file, as in an application, and another opens it to read.
        opened = [x for x in lines if "openat(" in x]
        expect(len(opened) == 2, f"opened {opened}")
        expect("O_WRONLY|O_CREAT|O_EXCL|O_TRUNC" in opened[0], f"opened {opened}")
        contents.add(player.data()["one.000000"])
    expect(len(contents) == 1, "the buffer changed the bytes")


def stdio_reports_late_errors(player: Player) -> None:
    """An error that the buffer hides until fflush or fclose ends the run, and is named."""
    need_injection(player.folder)
    trace = ("-e", "trace=write", "-e", "inject=write:error=ENOSPC")
    given = ("-a", "stdio", "-m", "stdio.buffer=1MiB", "-O", "no.json")
    for more, what in (((), "cannot close"), (("-e",), "cannot write what is buffered of")):
        done = traced_file(player, trace, one_rank(100_000), *given, *more)
        expect("INJECTED" in (player.folder / "trace").read_text(), f"no error: {done.stderr}")
        expect(done.returncode != 0, "status 0")
        message = f"stdio: {what} data/one.000000: No space left on device"
        expect(message in done.stderr, done.stderr)
        expect(not player.data(), f"left {list(player.data())}")
        expect(not (player.folder / "no.json").exists(), "a result was written")


def quota_is_named(player: Player) -> None:
    """MPI-IO and HDF5 keep an exceeded quota to themselves; the player asks the file system."""
    need_injection(player.folder)
    calls = "write,writev,pwrite64,pwritev,pwritev2"
    trace = ("-e", f"trace={calls}", "-e", f"inject={calls}:error=EDQUOT")
    for method in player.methods(["posix", "mpiio", "hdf5"]):
        name = f"one.000000{SUFFIXES.get(method, '')}"
        given = ("-a", method, "-O", "no.json")
        done = traced_file(player, trace, one_rank(100_000), *given, name=name)
        expect("INJECTED" in (player.folder / "trace").read_text(), f"{method}: {done.stderr}")
        expect(done.returncode != 0, f"{method}: status 0")
        lines = [x for x in done.stderr.splitlines() if x.startswith("understudy: ")]
        expect(bool(lines), f"{method}: {done.stderr}")
        expect(f"data/{name}" in lines[0], lines[0])
        expect("Disk quota exceeded" in lines[0], lines[0])
        expect(not player.data(), f"{method}: left {list(player.data())}")


def restarts(player: Player, method: str) -> None:
    """Any dump of any written stream, with ranks shifted and memory dropped, in every layout: each
    of the three streams meets each of the three shifts in two of the six layouts."""
    need_method(method)
    layouts = list(LAYOUTS) if method != "null" else ["shared"]
    for turn, (layout, files) in enumerate(itertools.product(layouts, ("new", "append"))):
        workload = one_stream(layout, dumps=3, files=files)
        workload["streams"].append(copy.deepcopy(workload["streams"][0]))
        workload["streams"][1] |= {"name": "other", "role": "visualization"}
        for k, (name, dump) in enumerate((("other", 1), ("field", 0), (None, None))):
            shift = (0, 1, 5)[(k + turn) % 3]
            given: list[object] = ["--restart", "--shift-ranks", shift, "--drop-cache"]
            given += ["--restart-stream", name, "--restart-dump", dump] if name else []
            given += ["--verify"] if method != "null" else []
            result = player.play(workload, "-a", method, *given)
            again = result["repetitions"][0]["streams"][2:]
            expect(
                [s["name"] for s in again] == [f"{name or 'field'}-restart"], f"{given}: {again}"
            )
            expected = 2 if dump is None else dump
            expect([d["dump"] for d in again[0]["dumps"]] == [expected], f"{given}: {again}")
            expect(again[0]["dumps"][0]["bytes"] == payload_of(workload) // 6, f"{given}: bytes")
            options = result["options"]
            asked = (options["restart_stream"], options["restart_dump"], options["shift_ranks"])
            expect((*asked, options["drop_cache"]) == (name, dump, shift, True), f"{options}")


def shifted_ranks(player: Player) -> None:
    """Rank r reads the file of rank r+N: strace sees which file each process opens."""
    need_strace()
    rank = variable_of_rank(player.mpiexec)
    script = player.folder / "traced"
    script.write_text(
        f'#!/bin/sh\nexec strace -f -e trace=openat -o trace.${rank} {player.program} "$@"\n'
    )
    script.chmod(0o755)
    path = player.describe(one_stream("file-per-process", dumps=1))
    traced = Player(program=script, mpiexec=player.mpiexec, folder=player.folder)
    for shift in (1, 2, 7):
        outcome = traced.run(
            4, "-w", path, "-o", "data", "-a", "posix", "--restart", "--shift-ranks", shift
        )
        expect(outcome.status == 0, outcome.err)
        for rank in range(4):
            log = player.folder / f"trace.{rank}"
            names = {
                x.split('"')[1][-8:]
                for x in log.read_text().splitlines()
                if '"field' in x and "O_RDONLY" in x
            }
            expect(
                names == {f"{(rank + shift) % 4:08d}"}, f"rank {rank} read {names}, shift {shift}"
            )
            log.unlink()


def drops_cache(player: Player) -> None:
    """--drop-cache empties the page cache of the file, where it is not the storage itself."""
    need_strace()
    path = player.describe(one_stream("shared", dumps=1))
    path.write_text(json.dumps(program(for_ranks(keys(path), 1, [1, 1, 1]))))
    trace = ["strace", "-f", "-e", "trace=openat,fsync,fadvise64,pread64", "-o", "trace"]
    command = [
        *trace,
        str(player.program),
        "-w",
        str(path),
        "-o",
        "data",
        "-a",
        "posix",
        "--restart",
    ]
    done = subprocess.run(
        [*command, "--drop-cache"], cwd=player.folder, capture_output=True, text=True, check=False
    )
    expect(done.returncode == 0, done.stderr)
    calls = [
        x.split()[1].split("(")[0]
        for x in (player.folder / "trace").read_text().split('"field.000000')[-1].splitlines()
        if "pread64" in x or "fadvise64" in x
    ]
    text = (player.folder / "trace").read_text()
    advised = text.count("POSIX_FADV_DONTNEED")
    expect(advised == 2, f"{advised} pieces of advice, expected one as writer and one as reader")
    expect(text.rindex("POSIX_FADV_DONTNEED") < text.rindex("pread64("), "dropped after the read")
    expect("fadvise64" not in calls, f"dropped while the file was read: {calls}")


def later_job(player: Player, method: str) -> None:
    """--restart-from reads what an earlier run kept, shared files by other ranks too."""
    need_method(method)
    for turn, (layout, files) in enumerate(itertools.product(LAYOUTS, ("new", "append"))):
        workload = one_stream(layout, files=files)
        player.play(workload, "-a", method, "-k")
        (player.folder / "data").rename(player.folder / "kept")
        kept = files_below(player.folder / "kept")
        for k, ranks in enumerate((4, 1, 2, 3)):
            dump = (k + turn) % 2
            path = player.describe(
                for_ranks(workload, ranks, [1, ranks, 1]) if ranks != 4 else workload
            )
            given = (
                "-w",
                path,
                "--restart-from",
                "kept",
                "-a",
                method,
                "--verify",
                "-O",
                "r.json",
            )
            outcome = player.run(ranks, *given, "--restart-dump", dump)
            # Two ranks of two groups find in each group's file just what they need.
            readable = layout == "shared" or ranks == 4 or (layout == "grouped" and ranks == 2)
            if not readable:
                expect(outcome.status != 0, f"{ranks} ranks read {layout} {method} {files}")
                continue
            expect(outcome.status == 0, outcome.err)
            result = json.loads((player.folder / "r.json").read_text())
            verified(result, payload_of(workload) // 2)
            names = [s["name"] for s in result["repetitions"][0]["streams"]]
            expect(names == ["field-restart"], f"streams {names}")
            expect(result["options"]["restart_from"] == "kept", f"{result['options']}")
            (player.folder / "r.json").unlink()
        now = files_below(player.folder / "kept")
        expect(list(now) == list(kept), f"kept {list(kept)}, found {list(now)}")
        expect(now == kept, "the kept files were changed")
        shutil.rmtree(player.folder / "kept")


def later_job_finds_wrong_bytes(player: Player) -> None:
    """A byte that changed between the jobs is found."""
    workload = one_stream("shared")
    path = player.describe(workload)
    player.play(workload, "-a", "posix", "-k")
    with (player.folder / "data" / "field.000001").open("r+b") as file:
        file.seek(12345)
        byte = file.read(1)
        file.seek(12345)
        file.write(bytes([byte[0] ^ 4]))
    outcome = player.run(4, "-w", path, "--restart-from", "data", "-a", "posix", "--verify")
    expect(aborted(outcome), f"status {outcome.status}")
    # Behind the 10240 bytes of rho.
    expect("field.000001" in outcome.message() and "byte 2105" in outcome.message(), outcome.err)
    outcome = player.run(
        4, "-w", path, "--restart-from", "data", "-a", "posix", "--verify", "--restart-dump", 0
    )
    expect(outcome.status == 0, outcome.err)


def invalid_input(player: Player) -> None:
    """Options that do not fit each other, the workload, the methods or the files."""
    player.play(one_stream("file-per-process"), "-a", "posix", "-k")
    (player.folder / "data").rename(player.folder / "kept")
    path = player.describe(one_stream("shared"))
    other = player.folder / "turns.json"
    turned = for_ranks(one_stream("shared", turns=True), 2, [2, 1, 1])
    other.write_text(json.dumps(program(turned)))
    own = player.folder / "own.json"
    own.write_text(json.dumps(program(for_ranks(one_stream("file-per-process"), 2, [2, 1, 1]))))
    to = ("-o", "data")
    same = player.folder / "same.json"
    same.write_text(json.dumps(program(one_stream("file-per-process"))))
    of_kept = f"kept/{min((player.folder / 'kept').iterdir()).name}"
    cases: list[tuple[int, tuple[object, ...], tuple[str, ...]]] = [
        (4, (path, *to, "--restart-dump", 1), ("--restart-dump", "together with --restart")),
        (4, (path, *to, "--restart-stream", "field"), ("--restart-stream", "--restart")),
        (4, (path, *to, "--drop-cache"), ("--drop-cache", "together with --restart")),
        (4, (path, *to, "--restart", "--restart-dump", 2), ("--restart-dump 2", "0 to 1")),
        (4, (path, *to, "--restart", "--restart-stream", "x"), ("x", "no stream")),
        (4, (path, *to, "--restart", "--shift-ranks", "-1"), ("--shift-ranks -1", "at least 0")),
        (4, (path, *to, "--restart-from", "kept"), ("--restart-from", "exclude")),
        (4, (path, "--restart-from", "kept", "-k"), ("--restart-from", "--keep", "exclude")),
        (4, (path, "--restart-from", "none"), ("--restart-from none", "expected a directory")),
        (4, (path, "--restart-from", "kept"), ("cannot find kept/field.000001", "No such file")),
        (2, (own, "--restart-from", "kept", "-a", "posix"), ("2 ranks", "all ranks share")),
        (2, (other, "--restart-from", "kept"), ("--restart-from", "took turns", "streams[0]")),
        (4, (path, "--restart-from", "kept", "-a", "null"), ("null", "no files")),
        (4, (path, *to, "-m", "posix.direct=perhaps"), ("perhaps", "no, read or yes")),
        (4, (path, *to, "-m", "posix.colour=red"), ("posix.OPTION=VALUE", "options direct")),
        (4, (path, *to, "-m", "null.colour=red"), ("null.OPTION=VALUE", "options none")),
        (4, (path, *to, "-m", "floppy.side=2"), ("floppy.side=2", "METHOD.OPTION=VALUE")),
        (4, (path, *to, "-O", path), ("--output", "is the workload")),
        (4, (same, "--restart-from", "kept", "-a", "posix", "-O", of_kept), ("file of the run",)),
        (4, (path, *to, "-m", "direct"), ("--method-option direct", "METHOD.OPTION=VALUE")),
        (4, (path, *to, "-m", ""), ("--method-option", "METHOD.OPTION=VALUE")),
        (4, (path, *to, "-a", "null", "-m", "posix.direct=yes"), ("no stream is played",)),
    ]
    if player.methods(["hdf5"]):
        chunk = ("-a", "hdf5", "-m", "hdf5.chunk=4KiB", "-m", "hdf5.deflate=1")
        cases += [
            (4, (path, *to, *chunk[:2], "-m", "hdf5.deflate=10"), ("deflate=10", "from 0 to 9")),
            (4, (path, *to, *chunk[:2], "-m", "hdf5.chunk=4m"), ("chunk=4m", "1MiB")),
            (4, (path, *to, *chunk[:2], *chunk[4:]), ("need hdf5.chunk",)),
            (4, (path, *to, *chunk), ("streams[0] (field)", "collective calls", "--collective")),
            (4, (path, *to, *chunk[:2], "-m", "hdf5.libver=v18"), ("earliest or latest",)),
            (4, (path, *to, *chunk[:2], "-m", "hdf5.flush=x"), ("state or never",)),
        ]
    for ranks, (workload, *arguments), words in cases:
        refused(player, ranks, "-w", workload, *arguments, words=words)
    print(f"{len(cases)} errors")


def no_direct_io(player: Player) -> None:
    """A file system without O_DIRECT is refused before anything is written; strace plays one."""
    need_injection(player.folder)
    path = player.describe(sample("single"))
    # The first open of the probe creates it, the second asks for O_DIRECT.
    trace = ["strace", "-f", "-o", "trace", "-P", ".direct", "-e", "trace=openat"]
    trace += ["-e", "inject=openat:error=EINVAL:when=2"]
    command = [*trace, str(player.program), "-w", str(path), "-o", "data", "-a", "posix"]
    done = subprocess.run(
        [*command, "-m", "posix.direct=read"],
        cwd=player.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    expect("INJECTED" in (player.folder / "trace").read_text(), f"no error: {done.stderr}")
    expect(done.returncode == 2, f"status {done.returncode}: {done.stderr}")
    message = "--method-option posix.direct=read: the file system of data cannot bypass the cache"
    expect(message in done.stderr, done.stderr)
    left = sorted(p.name for p in player.folder.iterdir())
    expect(left == ["trace", "workload.json"], f"left {left}")


def lists_options(player: Player) -> None:
    """--list -v names every option of every method that --list names."""
    outcome = player.run(0, "--list", "-v")
    expect(outcome.status == 0, outcome.err)
    names = ["posix.direct=no|read|yes", "stdio.buffer=BYTES"]
    if player.methods(["hdf5"]):
        names += ["hdf5.alignment=BYTES", "hdf5.chunk=BYTES", "hdf5.deflate=N", "hdf5.shuffle="]
        names += ["hdf5.libver=", "hdf5.collective_metadata=", "hdf5.flush=state|never"]
    for name in names:
        expect(f"-m {name}" in outcome.out, f"{name} is missing in\n{outcome.out}")
    expect("-m " not in player.run(0, "--list").out, "--list alone is not short")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        turns_of_one_rank_at_a_time,
        refuses_turns,
        smooth_values,
        computes,
        hdf5_turns,
        direct_is_direct,
        stdio_writes_only,
        stdio_buffers,
        stdio_reports_late_errors,
        quota_is_named,
        shifted_ranks,
        drops_cache,
        later_job_finds_wrong_bytes,
        invalid_input,
        no_direct_io,
        lists_options,
    )
}
for _method in METHODS:
    CASES[f"turns.{_method}"] = partial(turns, method=_method)
    CASES[f"restarts.{_method}"] = partial(restarts, method=_method)
for _method in FILE_METHODS:
    CASES[f"later-job.{_method}"] = partial(later_job, method=_method)
for _layout in LAYOUTS:
    CASES[f"contents.{_layout}"] = partial(contents, layout=_layout)
    CASES[f"hdf5-options.{_layout}"] = partial(hdf5_options, layout=_layout)
    CASES[f"direct.{_layout}"] = partial(direct, layout=_layout)

if __name__ == "__main__":
    sys.exit(main("modes", CASES))

"""What goes wrong is said in one message, with an exit status that is not 0, and nothing is left.

`mpi_errors.py --list` names the cases, `mpi_errors.py CASE PROGRAM MPIEXEC FOLDER` runs one.
Usage errors have status 2 and a message without rank and place in the source; what one
rank meets in the middle of a run has both.
"""

import copy
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpi_run import CLAIM, METHODS, timed, wait_for
from mpi_support import (
    HERE,
    SUFFIXES,
    Json,
    Outcome,
    Player,
    Skip,
    aborted,
    begun,
    expect,
    finish,
    main,
    program,
    ranks_below,
    sample,
    stops_in_order,
    together,
)

SHARED = HERE / "samples" / "shared.json"
SINGLE = HERE / "samples" / "single.json"
FILE_METHODS = [method for method in METHODS if method != "null"]


def refused(player: Player, ranks: int, *arguments: object, words: tuple[str, ...]) -> None:
    """The run is refused for a usage error, with these words, and leaves nothing new."""
    before = sorted(player.folder.rglob("*"))
    outcome = player.run(ranks, *arguments)
    shown = f"{[str(a) for a in arguments]}: status {outcome.status}\n{outcome.err}"
    expect(outcome.status == 2, shown)
    expect(outcome.out == "", f"stdout: {outcome.out}")
    message = outcome.message()
    expect(not re.search(r"rank \d+ on|\.c:\d+", message), f"not an error of a rank: {shown}")
    for word in words:
        expect(word.lower() in message.lower(), f"{word!r} is missing: {shown}")
    expect(sorted(player.folder.rglob("*")) == before, f"files were left behind: {shown}")


OPTIONS: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "no-workload": (("-o", "data"), ("-w",)),
    "unknown-option": (("-w", SINGLE, "-o", "data", "--frobnicate"), ("frobnicate",)),
    "unknown-letter": (("-w", SINGLE, "-o", "data", "-Z"), ("Z",)),
    "missing-value": (("-w", SINGLE, "-o"), ("o",)),
    "extra-argument": (("-w", SINGLE, "-o", "data", "more"), ("more",)),
    "unknown-method": (("-w", SINGLE, "-o", "data", "-a", "floppy"), ("floppy", "posix")),
    "transfer-4m": (("-w", SINGLE, "-o", "data", "-t", "4m"), ("4m", "4MiB", "4MB")),
    "transfer-0": (("-w", SINGLE, "-o", "data", "-t", "0"), ("transfer", "0")),
    "transfer-negative": (("-w", SINGLE, "-o", "data", "-t", "-1"), ("transfer", "-1")),
    "transfer-huge": (("-w", SINGLE, "-o", "data", "-t", "9999999999GiB"), ("9999999999GiB",)),
    "transfer-empty": (("-w", SINGLE, "-o", "data", "-t", ""), ("transfer",)),
    "transfer-below-element": (("-w", SINGLE, "-o", "data", "-t", "3"), ("3", "8")),
    "repetitions-0": (("-w", SINGLE, "-o", "data", "-i", "0"), ("repetitions", "0")),
    "repetitions-word": (("-w", SINGLE, "-o", "data", "-i", "two"), ("repetitions", "two")),
    "repetitions-fraction": (("-w", SINGLE, "-o", "data", "-i", "1.5"), ("repetitions", "1.5")),
    "time-scale-negative": (("-w", SINGLE, "-o", "data", "--time-scale", "-1"), ("-1",)),
    "time-scale-nan": (("-w", SINGLE, "-o", "data", "--time-scale", "nan"), ("nan",)),
    "time-scale-infinite": (("-w", SINGLE, "-o", "data", "--time-scale", "inf"), ("inf",)),
    "bytes-scale-0": (("-w", SINGLE, "-o", "data", "--bytes-scale", "0"), ("bytes-scale", "0")),
    "bytes-scale-huge": (("-w", SINGLE, "-o", "data", "--bytes-scale", "1e300"), ("bytes",)),
    "both-kinds-of-call": (("-w", SINGLE, "-o", "data", "-c", "--independent"), ("independent",)),
    "seed-word": (("-w", SINGLE, "-o", "data", "--seed", "x"), ("seed", "x")),
    "no-such-workload": (("-w", "missing.json", "-o", "data"), ("missing.json", "No such file")),
    "workload-is-a-folder": (("-w", ".", "-o", "data"), (".", "directory")),
    "no-such-parent": (("-w", SINGLE, "-o", "no/data"), ("no/data", "No such file")),
    "directory-is-a-file": (("-w", SINGLE, "-o", SINGLE), ("single.json", "directory")),
    "directory-unwritable": (("-w", SINGLE, "-o", "/proc/data"), ("/proc/data",)),
    "result-unwritable": (("-w", SINGLE, "-o", "data", "-O", "no/r.json"), ("no/r.json",)),
    "result-is-a-folder": (("-w", SINGLE, "-o", "data", "-O", "."), ("output", ".")),
}

ANY = object()
DO = ("streams", 0, "steps", 0, "do")
DESCRIPTORS: dict[str, tuple[tuple[str | int, ...], Any, tuple[str, ...]]] = {
    "schema": (("schema",), "understudy/workload/1", ("schema", "understudy describe")),
    "unknown-key": (("colour",), "red", ("colour",)),
    "unknown-key-below": (("streams", 0, "steps", 1, "size"), 1, ("streams[0].steps[1]", "size")),
    "missing-key": (("streams", 0, "role"), ANY, ("streams[0]", "role")),
    "missing-streams": (("streams",), ANY, ("streams",)),
    "no-streams": (("streams",), [], ("streams",)),
    "ranks-0": (("ranks",), 0, ("ranks", "0")),
    "ranks-text": (("ranks",), "4", ("ranks", "integer")),
    "ranks-fraction": (("ranks",), 4.0, ("ranks", "integer")),
    "ranks-huge": (("ranks",), 2**40, ("ranks",)),
    "name-with-slash": (("streams", 0, "name"), "../x", ("streams[0].name",)),
    "name-with-dot-first": (("sets", 0, "name"), ".x", ("sets[0].name",)),
    "name-empty": (("streams", 0, "name"), "", ("streams[0].name",)),
    "name-long": (("sets", 0, "name"), "x" * 101, ("sets[0].name", "100")),
    "role": (("streams", 0, "role"), "backup", ("streams[0].role", "checkpoint")),
    "instruction": ((*DO, 0), "append", ("steps[0].do[0]", "append")),
    "no-instruction": ((*DO, 0), {"opens": 1}, ("steps[0].do[0]", "write")),
    "no-instructions": (DO, [], ("steps[0].do",)),
    "mode": ((*DO, 1, "mode"), "append", ("do[1].mode", "truncate")),
    "other-set": ((*DO, 1, "open"), "data", ("do[1].open", "data")),
    "not-open": ((*DO, 1), "sync", ("streams[0]", "expected open")),
    "not-closed": ((*DO, 7), "sync", ("streams[0]", "close")),
    "owner": (("sets", 0, "of"), "N-1", ("sets[0].of", "all ranks")),
    "groups-of-all": (("sets", 0, "groups"), 2, ("sets[0].groups", "none")),
    "method-unknown": (("streams", 0, "method"), "floppy", ("floppy",)),
    "transfer-0": ((*DO, 2, "transfer_bytes"), 0, ("do[2].transfer_bytes", "0")),
    "transfer-text": ((*DO, 2, "transfer_bytes"), "4MiB", ("do[2].transfer_bytes",)),
    "transfer-small": ((*DO, 2, "transfer_bytes"), 1, ("streams[0]", "transfer_bytes", "element")),
    "collective-number": ((*DO, 2, "collective"), 1, ("do[2].collective", "true")),
    "time-negative": (("streams", 0, "steps", 0, "at"), -1, ("streams[0].steps[0].at",)),
    "time-text": (("streams", 0, "steps", 0, "at"), "0", ("streams[0].steps[0].at",)),
    "time-backwards": (("streams", 0, "steps", 0, "at"), 9, ("streams[0].steps[1]", "at is")),
    "type": ((*DO, 2, "type"), "f16", ("do[2].type",)),
    "count-0": ((*DO, 2, "count"), 0, ("do[2].count",)),
    "shape-0": ((*DO, 3, "shape"), [0], ("do[3].shape",)),
    "shape-empty": ((*DO, 3, "shape"), [], ("do[3].shape",)),
    "shape-of-9": ((*DO, 3, "shape"), [1] * 9, ("do[3].shape",)),
    "shape-fraction": ((*DO, 3, "shape"), [1.5], ("do[3].shape",)),
    "bytes-overflow": ((*DO, 3, "shape"), [2**60, 2**60], ("steps[0]", "bytes")),
    "grid-product": ((*DO, 2, "split", "grid"), [2, 1, 1], ("do[2].split", "2", "4")),
    "grid-dimensions": ((*DO, 2, "split", "grid"), [2, 2], ("do[2].split", "2", "3")),
    "runs-ranks": (
        (*DO, 4, "split", "runs"),
        [[1, 4000], [1, 0], [1, 6000]],
        ("do[4].split.runs", "3", "4"),
    ),
    "runs-rows": (
        (*DO, 4, "split", "runs"),
        [[1, 4000], [2, 1], [1, 6000]],
        ("do[4].split.runs", "10000"),
    ),
    "rule": ((*DO, 2, "split", "rule"), "odd", ("do[2].split.rule", "even")),
    "rule-without-grid": ((*DO, 3, "split"), {"rule": "grid"}, ("do[3].split", "grid")),
    "file-1024": ((*DO, 2, "file"), 1024, ("do[2].file", "1023")),
    "file-negative": ((*DO, 2, "file"), -1, ("do[2].file",)),
    "file-of-no-set": ((*DO, 2, "file"), 2, ("the variable rho", "file")),
    "same-variable-names": ((*DO, 3, "write"), "rho", ("steps[0]", "rho")),
    "same-counted-names": ((*DO, 2, "write"), "ids_1", ("ids_1", "ids")),
    "compute": (("compute",), "spin", ("compute", "sleep", "busy", "stencil")),
    "provenance-path": (("provenance", 0, "path"), "ranks", ("provenance[0]", "path")),
    "scaling": (("scaling", "from_ranks"), 8, ("scaling", "8", "4")),
}


def changed(workload: Json, path: tuple[str | int, ...], value: Any) -> Json:
    """The workload with one value replaced, or taken out (ANY)."""
    twin: Any = copy.deepcopy(workload)
    at = twin
    for step in path[:-1]:
        at = at[step]
    if value is ANY:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    found: Json = twin
    return found


def options(player: Player) -> None:
    """Every error on the command line."""

    def one(player: Player, name: str) -> None:
        arguments, words = OPTIONS[name]
        refused(player, 0, *arguments, words=words)

    together(player, OPTIONS, one)
    print(f"{len(OPTIONS)} errors on the command line")


def descriptors(player: Player) -> None:
    """Every error in a descriptor names the file and the place in it."""
    workload = json.loads(SHARED.read_text())

    def one(player: Player, name: str) -> None:
        path, value, words = DESCRIPTORS[name]
        where = player.describe(changed(workload, path, value))
        words = (*words, *(() if name == "method-unknown" else ("workload.json",)))
        refused(player, 0, "-w", where, "-o", "data", "--dry-run", words=words)

    together(player, DESCRIPTORS, one)
    print(f"{len(DESCRIPTORS)} errors in a descriptor")


def texts(player: Player) -> None:
    """Text that is no descriptor at all: each is refused with the name of the file."""
    good = SHARED.read_text()
    bad = {
        "empty": ("", ()),
        "not-json": ("ranks: 4", ()),
        "cut-off": (good[: len(good) // 2], ()),
        "text-behind": (good + "{}", ()),
        "a-list": ("[]", ("object",)),
        "duplicate-key": (good.replace('"ranks": 4,', '"ranks": 4, "ranks": 4,', 1), ("ranks",)),
        "nan": (good.replace('"at": 0.0', '"at": NaN', 1), ()),
        "latin-1": (good.replace("One file", "Ein gro\udcdfes", 1), ()),
        "nul": (good.replace("One file", "One\\u0000file", 1), ()),
        "deep": ("[" * 100_000, ()),
        "long-number": (good.replace('"ranks": 4,', f'"ranks": {"9" * 400},', 1), ()),
    }
    path = player.folder / "bad.json"
    for name, (text, words) in bad.items():
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        try:
            refused(player, 4, "-w", path, "-o", "data", words=("bad.json", *words))
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
    print(f"{len(bad)} texts that are no descriptor")


def same_stream_names(player: Player) -> None:
    """Two streams of one name would write the same files."""
    workload = program(sample("file-per-process"))
    workload["streams"][1]["name"] = workload["streams"][0]["name"]
    path = player.describe(workload)
    refused(player, 4, "-w", path, "-o", "data", words=("streams[1]", "is taken by a stream"))


def collective_turns(player: Player) -> None:
    """Ranks that take turns cannot make calls together."""
    path = HERE / "samples" / "turns.json"
    words = ("--collective", "streams[0]", "take turns", "independent")
    refused(player, 4, "-w", path, "-o", "data", "-c", "-a", "mpiio", words=words)


def colliding_file_names(player: Player) -> None:
    """Streams whose files would have the same names never write into one file."""
    workload = sample("shared")
    one = workload["streams"][0]
    one["dumps"] = [d | {"variables": d["variables"][:1]} for d in one["dumps"]]
    other = copy.deepcopy(one) | {"name": "field.000000", "files": "append"}
    workload["streams"] = [one, other]
    outcome = player.run(4, "-w", player.describe(workload), "-o", "data", "--verify")
    expect(outcome.status != 0, "two streams wrote one file")
    failed(outcome, "data/field.000000", "File exists")
    expect(not player.data(), f"left {list(player.data())}")


def ranks(player: Player) -> None:
    """Another number of ranks: the message has both and says what to do."""
    for started in (1, 3, 5):
        refused(
            player,
            started,
            "-w",
            SHARED,
            "-o",
            "data",
            words=("4", str(started), " by ", "launcher", "understudy describe -n"),
        )
    refused(player, 0, "-w", SHARED, "-o", "data", words=("but 1 was started without a launcher",))


def launcher_of_another_mpi(player: Player) -> None:
    """Each process is a run of one rank: the first says so for all, with launcher and library."""
    for rank, size, name in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's launcher"),
        ("PMI_RANK", "PMI_SIZE", "MPICH's family"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"),
    ):
        for process in (0, 3):
            told = replace(player, environment={rank: str(process), size: "4"})
            outcome = told.run(0, "-w", SHARED, "-o", "data")
            expect(outcome.status == 2, f"{name}: status {outcome.status}\n{outcome.err}")
            if process:
                expect(outcome.err == "", f"{name}: process {process} says {outcome.err}")
                continue
            message = outcome.message()
            for word in ("4 processes", name, "is alone", "built with another MPI, "):
                expect(word in message, f"{word!r} is missing: {message}")


def not_empty(player: Player) -> None:
    """A directory that holds something is refused, and left alone."""
    (player.folder / "data").mkdir()
    (player.folder / "data" / "thesis.tex").write_text("mine")
    refused(player, 4, "-w", SHARED, "-o", "data", words=("data", "not empty"))
    expect((player.folder / "data" / "thesis.tex").read_text() == "mine", "the file was touched")


def too_large(player: Player) -> None:
    """What does not fit is not begun: need and free are named."""
    workload = timed([0, 1], "shared")
    for dump in workload["streams"][0]["dumps"]:
        dump["variables"] = [dump["variables"][1] | {"shape": [10**15], "count": 1}]
    path = player.describe(workload)
    refused(player, 4, "-w", path, "-o", "data", words=("data", "free", "8000000000000000"))


def too_much_memory(player: Player) -> None:
    """What does not fit the memory of the node is not begun: need and available are named."""
    workload = timed([0, 1], "shared")
    known = workload["streams"][0]["dumps"][0]["variables"][1]
    variable = known | {"type": "byte", "count": 1, "shape": [1 << 42]}
    for dump in workload["streams"][0]["dumps"]:
        dump["variables"] = [variable]
    path = player.describe(workload)
    words = ("4 ranks", "bytes of memory", "available", "--transfer")
    refused(player, 4, "-w", path, "-o", "data", "-a", "null", "-t", "1TiB", words=words)
    if player.methods(["adios"]):  # which keeps a whole step in its buffer, whatever the transfers
        refused(player, 4, "-w", path, "-o", "data", "-a", "adios", words=words)
    outcome = player.run(4, "-w", path, "-o", "data", "-a", "posix")
    expect(
        "are free" in outcome.message(), f"refused for memory, but buffers are small: {outcome}"
    )


def collective_posix(player: Player) -> None:
    """POSIX has no collective calls: asked for them, the player refuses or says false."""
    outcome = player.run(4, "-w", SHARED, "-o", "data", "-a", "posix", "-c", "-O", "r.json")
    if outcome.status == 0:
        stream = json.loads((player.folder / "r.json").read_text())["repetitions"][0]["streams"][0]
        expect(stream["collective"] is False, "collective POSIX calls were reported")
        return
    expect(outcome.status == 2, f"status {outcome.status}\n{outcome.err}")
    expect("posix" in outcome.message() and "collective" in outcome.message(), outcome.err)


@contextmanager
def small_disk(player: Player, size: str) -> Iterator[Path]:
    """A tmpfs of this size in the case's folder."""
    if os.geteuid() != 0:
        raise Skip("root", "a full disk needs root, to mount a small tmpfs")
    disk = player.folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", disk],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        disk.rmdir()
        raise Skip("mounts", f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def fill(path: Path) -> None:
    """Takes all space that is left, for a file of somebody else."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(descriptor, bytes(4096))
    os.close(descriptor)


def failed(outcome: Outcome, *words: str) -> None:
    """A rank met an error: its message has rank, host, place in the source, and these words."""
    expect(aborted(outcome), f"status {outcome.status}\n{outcome.err}")
    # ADIOS' MPI_LUSTRE says there that a file is gone, which the rank that failed has removed.
    words = re.sub(r"Warning: statfs failed .*\n\s*", "", outcome.out)
    expect(words == "", f"stdout: {words}")
    lines = [line for line in outcome.err.splitlines() if line.startswith("understudy: rank ")]
    expect(bool(lines), f"no message of a rank:\n{outcome.err}")
    expect(bool(re.search(r"rank \d+ on \S+: .* \([\w/]+\.c:\d+\)$", lines[0])), lines[0])
    for word in words:
        expect(any(word in line for line in lines), f"{word!r} is missing: {lines}")


def full_disk(player: Player) -> None:
    """The disk fills up in the middle of the run, through each method, each kind of call."""
    for method in player.methods(FILE_METHODS):
        for layout in ("shared", "file-per-process"):
            for kind in ("--independent", "-c")[: 1 + player.collective(method)]:
                full_disk_once(player, method, layout, kind)
                if method == "mpiio":
                    full_disk_once(player, method, layout, kind, in_flight=True)


def full_disk_once(
    player: Player, method: str, layout: str, kind: str, in_flight: bool = False
) -> None:
    """Fills the disk with a file of somebody else in the pause between two dumps."""
    workload = timed([0, 4], "shared")
    stream = workload["streams"][0]
    stream |= {"layout": layout, "transfer_bytes": 65536}
    for dump in stream["dumps"]:
        dump["variables"] = [dump["variables"][1] | {"shape": [1 << 18], "count": 1}]
    path = player.describe(begun(workload) if in_flight else workload)
    with small_disk(player, "4m") as disk:
        command = ("-w", path, "-o", disk / "data", "-a", method, kind, "-O", "no.json")
        process = player.start(4, *command)
        wait_for(disk / "data", 1 if layout == "shared" else 4)
        time.sleep(1)
        fill(disk / "data" / "stranger")
        outcome = finish(process)
        where = f"{method} {layout} {kind}{' in flight' * in_flight}"
        try:
            failed(outcome, method, "data/")
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from None
        left = sorted(p.name for p in (disk / "data").iterdir())
        expect(left == ["stranger"], f"{where}: left {left}")
        expect(not (player.folder / "no.json").exists(), f"{where}: a result was written")
    (player.folder / "disk").rmdir()


def full_disk_is_named(player: Player) -> None:
    """posix says that no space is left."""
    workload = timed([0, 4], "shared")
    for dump in workload["streams"][0]["dumps"]:
        dump["variables"] = [dump["variables"][1] | {"shape": [1 << 18], "count": 1}]
    path = player.describe(workload)
    for method in player.methods(FILE_METHODS):
        with small_disk(player, "4m") as disk:
            process = player.start(4, "-w", path, "-o", disk / "data", "-a", method)
            wait_for(disk / "data", 1)
            time.sleep(1)
            fill(disk / "stranger")
            failed(finish(process), "No space left on device")
        (player.folder / "disk").rmdir()


def limited(player: Player, kibibytes: int) -> Player:
    """The player with a limit of the size of files."""
    script = player.folder / "limited"
    script.write_text(f'#!/bin/bash\nulimit -f {kibibytes}\nexec {player.program} "$@"\n')
    script.chmod(0o755)
    return replace(player, program=script)


# More than MPI takes for the memory that ranks share, which are files as well.
LIMIT_KIB = 16 << 10
NONE = {"rule": "none", "from_ranks": 1}


def sized(layout: str, rows_of_ranks: list[int]) -> Json:
    """One dump of so many bytes by each rank."""
    workload = timed([0], "shared")
    stream = workload["streams"][0]
    runs = {"rule": "runs", "runs": [[1, rows] for rows in rows_of_ranks]}
    changes = {"type": "byte", "count": 1, "shape": [sum(rows_of_ranks)], "decomposition": runs}
    for dump in stream["dumps"]:
        dump["variables"] = [dump["variables"][1] | changes]
    stream |= {"layout": layout, "transfer_bytes": 1 << 20}
    return workload


def size_limit_is_known_before(player: Player) -> None:
    """A file that may not become so large is not begun; one that just may, is."""
    small = limited(player, LIMIT_KIB)
    limit = LIMIT_KIB << 10
    shared = player.describe(sized("shared", [limit // 4] * 3 + [limit // 4 + 1]))
    words = ("rank", str(limit + 1), str(limit), "ulimit -f")
    for method in player.methods(FILE_METHODS):
        if method == "adios":  # whose ranks write files of their own
            continue
        before = sorted(player.folder.iterdir())
        outcome = small.run(4, "-w", shared, "-o", "data", "-a", method)
        expect(outcome.status == 2, f"{method}: status {outcome.status}\n{outcome.err}")
        for word in words:
            expect(word in outcome.message(), f"{method}: {word!r}: {outcome.err}")
        expect(sorted(player.folder.iterdir()) == before, f"{method}: files were left")
    for layout in ("shared", "file-per-process"):
        small.play(sized(layout, [limit // 4] * 4), "-a", "posix", "--verify")
    small.play(sized("file-per-process", [limit] * 4), "-a", "posix", "-O", "result.json")


def size_limit_is_named(player: Player) -> None:
    """A rank that meets the limit says so; no signal ends it."""
    small = limited(player, LIMIT_KIB)
    path = player.describe(sized("file-per-process", [3 * LIMIT_KIB << 9, 0, 0, 0]))
    for method in player.methods(FILE_METHODS):
        outcome = small.run(4, "-w", path, "-o", "data", "-a", method, "-O", "no.json")
        try:
            failed(outcome, method, "data/", "File too large")
        except AssertionError as error:
            raise AssertionError(f"{method}: {error}") from None
        expect(not (player.folder / "data").exists(), f"{method}: files were left")
        expect(not (player.folder / "no.json").exists(), f"{method}: a result was written")
    one = sized("file-per-process", [3 * LIMIT_KIB << 9]) | {"ranks": 1, "scaling": NONE}
    refused(small, 0, "-w", player.describe(one), "-o", "data", words=("ulimit -f",))


def file_of_another(player: Player) -> None:
    """A file that appears under a name of the run is not overwritten, and survives."""
    for method in player.methods(FILE_METHODS):
        player.clear()
        path = player.describe(timed([0, 4], "shared"))
        process = player.start(4, "-w", path, "-o", "data", "-a", method, "-O", "no.json")
        wait_for(player.folder / "data", 2)
        suffix = SUFFIXES.get(method, "")
        other = player.folder / "data" / f"field.000001.f0{suffix}"
        other.write_text("mine")
        outcome = finish(process)
        failed(outcome, "field.000001.f0", "File exists")
        expect(
            list(player.data().items()) == [(other.name, b"mine")], f"left {player.data().keys()}"
        )


def lost_rank(player: Player) -> None:
    """A rank is killed: the run ends, and the files that the others made go, at once or, where
    the launcher kills the others, too, as the next run starts."""
    for method in player.methods(FILE_METHODS):
        player.clear()
        path = player.describe(timed([0, 30], "shared"))
        process = player.start(4, "-w", path, "-o", "data", "-a", method, "-O", "no.json")
        wait_for(player.folder / "data", 2)
        time.sleep(1)
        children = ranks_below(player, process.pid)
        expect(len(children) == 4, f"{len(children)} ranks")
        os.kill(children[max(children)], signal.SIGKILL)
        outcome = finish(process)
        expect(outcome.status != 0, "status 0")
        left = list(player.data()) if (player.folder / "data").exists() else []
        if not stops_in_order(player.mpiexec):
            expect(CLAIM in left, f"{method}: left {left}")
            outcome = player.run(4, "-w", path, "--time-scale", 0, "-o", "data", "-a", method)
            expect(outcome.status == 0 and "of a run that was killed" in outcome.err, outcome.err)
            left = list(player.data())
        expect(not left, f"{method}: left {left}")
        expect(not (player.folder / "no.json").exists(), f"{method}: a result was written")


def full_standard_output(player: Player) -> None:
    """What cannot be printed is an error, of every program of ours that prints."""
    programs = sorted(player.program.parent.glob("understudy-*"))
    prints: list[list[object]] = []
    for path in programs:  # a kernel of a build without its library has nothing to print
        asked = subprocess.run([path, "--help"], cwd=player.folder, capture_output=True)
        prints += [[path, "--help"]] if asked.returncode == 0 else []
    expect([player.program, "--help"] in prints, f"{player.program}: --help fails")
    own: list[list[object]] = [["--version"], ["--list"], ["--list", "-v"]]
    own += [["-w", SINGLE, "-o", "data", "--dry-run"]]
    prints += [[player.program, *arguments] for arguments in own]
    for command in prints:
        with Path("/dev/full").open("w") as full:
            ended = subprocess.run(
                [*map(str, command)], cwd=player.folder, stdout=full, stderr=subprocess.PIPE
            )
        said = ended.stderr.decode()
        expect(ended.returncode in (1, 2), f"{command}: status {ended.returncode}: {said}")
        # Of a text longer than the buffer, the reason is gone when the program ends.
        full_or_earlier = "No space left on device" in said or "an earlier write failed" in said
        expect(full_or_earlier, f"{command}: {said}")


def short_file(player: Player) -> None:
    """A file to be read that somebody cut: every method says so, none goes on."""
    workload = sample("read")
    stream = workload["streams"][1]
    stream["dumps"][0]["time_s"], stream["dumps"][1]["time_s"] = 0.0, 4.0
    workload["streams"] = [stream]
    for method in player.methods(FILE_METHODS):
        player.clear()
        path = player.describe(workload)
        process = player.start(4, "-w", path, "-o", "data", "-a", method, "-O", "no.json")
        wait_for(player.folder / "data", 8)
        time.sleep(1)
        suffix = SUFFIXES.get(method, "")
        target = player.folder / "data" / f"old.000001.00000002{suffix}"
        os.truncate(target, target.stat().st_size // 2)
        outcome = finish(process)
        failed(outcome, target.name)
        expect(not (player.folder / "no.json").exists(), f"{method}: a result was written")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        options,
        descriptors,
        texts,
        same_stream_names,
        collective_turns,
        colliding_file_names,
        ranks,
        launcher_of_another_mpi,
        not_empty,
        too_large,
        too_much_memory,
        collective_posix,
        full_disk,
        full_disk_is_named,
        size_limit_is_known_before,
        size_limit_is_named,
        file_of_another,
        lost_rank,
        full_standard_output,
        short_file,
    )
}

if __name__ == "__main__":
    sys.exit(main("errors", CASES))

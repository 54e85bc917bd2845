"""What goes wrong is said in one message, with an exit status that is not 0, and nothing is left.

Usage errors have status 2 and a message without rank and place in the source; what one rank meets
in the middle of a run has both. See unit_option.c and unit_workload.c for the wording of most.
"""

import copy
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpi_support import (
    CLAIM,
    FILE_METHODS,
    REMOVED,
    SHARED,
    SINGLE,
    STEP_METHODS,
    SUFFIXES,
    Json,
    Player,
    Skip,
    begun,
    changed,
    data_of,
    disturbed,
    equal,
    expect,
    failed,
    left_only,
    main,
    named,
    ranks_below,
    refused,
    sample,
    stops_in_order,
    timed,
    together,
    variable,
)

TO = ("-o", "data")
OF_SINGLE = ("-w", SINGLE, *TO)
OPTIONS: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "unknown-option": ((*OF_SINGLE, "--frobnicate"), ("frobnicate",)),
    "unknown-method": ((*OF_SINGLE, "-a", "floppy"), ("floppy", "posix")),
    "transfer-below-element": ((*OF_SINGLE, "-t", "3"), ("3", "8")),
    "bytes-scale-huge": ((*OF_SINGLE, "--bytes-scale", "1e300"), ("bytes",)),
    "no-such-workload": (("-w", "missing.json", *TO), ("missing.json", "No such file")),
    "workload-is-a-folder": (("-w", ".", *TO), (".", "directory")),
    "no-such-parent": (("-w", SINGLE, "-o", "no/data"), ("no/data", "No such file")),
    "directory-is-a-file": (("-w", SINGLE, "-o", SINGLE), ("single.json", "directory")),
    "directory-unwritable": (("-w", SINGLE, "-o", "/proc/data"), ("/proc/data",)),
    "result-unwritable": ((*OF_SINGLE, "-O", "no/r.json"), ("no/r.json",)),
    "result-is-a-folder": ((*OF_SINGLE, "-O", "."), ("output", ".")),
}
STEP = ("streams", 0, "steps", 0)
MOVE = (*STEP, "do", 2)
DESCRIPTORS: dict[str, tuple[tuple[str | int, ...], Any, tuple[str, ...]]] = {
    "unknown-key": (("streams", 0, "steps", 1, "size"), 1, ("streams[0].steps[1]", "size")),
    "missing-key": (("streams", 0, "role"), REMOVED, ("streams[0]", "role")),
    "ranks-huge": (("ranks",), 2**40, ("ranks",)),
    "name-long": (("sets", 0, "name"), "x" * 101, ("sets[0].name", "100")),
    "no-instruction": ((*STEP, "do", 0), {"opens": 1}, ("steps[0].do[0]", "write")),
    "method-unknown": (("streams", 0, "method"), "floppy", ("floppy",)),
    "transfer-small": ((*MOVE, "transfer_bytes"), 1, ("streams[0]", "transfer_bytes", "element")),
    "shape-fraction": ((*STEP, "do", 3, "shape"), [1.5], ("do[3].shape",)),
    "file-negative": ((*MOVE, "file"), -1, ("do[2].file",)),
}
# Text that is no descriptor at all, by what it is made of a good one.
TEXTS: dict[str, tuple[str, str]] = {
    "text-behind": ("", "{}"),
    "nan": ('"at": 0.0', '"at": NaN'),
    "latin-1": ("One file", "Ein gro\udcdfes"),
    "nul": ("One file", "One\\u0000file"),
    "long-number": ('"ranks": 4,', f'"ranks": {"9" * 400},'),
    "deep": ("{", "[" * 100_000),
}


def options(player: Player) -> None:
    """Errors on the command line that only a run can see."""
    together(player, OPTIONS, lambda p, n: refused(p, 0, *OPTIONS[n][0], words=OPTIONS[n][1]))


def descriptors(player: Player) -> None:
    """An error in a descriptor names the file and the place in it."""
    row, text = json.loads(SHARED.read_text()), SHARED.read_text()

    def once(player: Player, name: str) -> None:
        if name in TEXTS:
            path = player.folder / "workload.json"
            old, new = TEXTS[name]
            bad = text.replace(old, new, 1) if old else text + new
            path.write_bytes(bad.encode("utf-8", "surrogateescape"))
            words: tuple[str, ...] = ()
        else:
            place, value, words = DESCRIPTORS[name]
            path = player.describe(changed(row, place, value))
        words = (*words, *(() if name == "method-unknown" else ("workload.json",)))
        refused(player, 0, "-w", path, *TO, "--dry-run", words=words)

    together(player, [*DESCRIPTORS, *TEXTS], once)


def colliding_file_names(player: Player) -> None:
    """Streams whose files would have the same names never write into one file."""
    row = sample("shared")
    first = row["streams"][0]
    first["dumps"] = [d | {"variables": d["variables"][:1]} for d in first["dumps"]]
    other = copy.deepcopy(first) | {"name": "field.000000", "files": "append"}
    row["streams"] = [first, other]
    outcome = player.run(4, "-w", player.describe(row), *TO, "--verify")
    failed(outcome, "data/field.000000", "File exists")
    left_only(player)


def ranks(player: Player) -> None:
    """Another number of ranks: the message has both and says what to do."""
    for started in (1, 5):
        words = ("4", str(started), " by ", "launcher", "understudy describe -n")
        refused(player, started, "-w", SHARED, *TO, words=words)
    refused(player, 0, "-w", SHARED, *TO, words=("but 1 was started without a launcher",))


def launcher_of_another_mpi(player: Player) -> None:
    """Each process is a run of one rank: the first says so for all, with launcher and library."""
    for rank, size, name in (
        ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI's launcher"),
        ("PMI_RANK", "PMI_SIZE", "MPICH's family"),
        ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "srun"),
    ):
        first, other = (
            replace(player, environment={rank: str(process), size: "4"}) for process in (0, 3)
        )
        words = ("4 processes", name, "is alone", "built with another MPI, ")
        refused(first, 0, "-w", SHARED, *TO, words=words)
        outcome = other.run(0, "-w", SHARED, *TO)
        equal((outcome.status, outcome.err), (2, ""), f"{name}: process 3")


def not_empty(player: Player) -> None:
    """A directory that holds something is refused, and left alone."""
    player.data.mkdir()
    (player.data / "thesis.tex").write_text("mine")
    refused(player, 4, "-w", SHARED, *TO, words=("data", "not empty"))
    equal((player.data / "thesis.tex").read_text(), "mine")


def too_large(player: Player) -> None:
    """What fits neither the storage nor the memory is not begun: need and rest are named."""
    path = player.describe(timed([0, 1], "shared", variable(shape=[10**15])))
    refused(player, 4, "-w", path, *TO, words=("data", "free", "16000000000000000"))
    path = player.describe(timed([0, 1], "shared", variable(shape=[1 << 42], type="byte")))
    words = ("4 ranks", "bytes of memory", "available", "--transfer")
    refused(player, 4, "-w", path, *TO, "-a", "null", "-t", "1TiB", words=words)
    for method in player.methods(STEP_METHODS):  # whatever the transfers
        refused(player, 4, "-w", path, *TO, "-a", method, words=words)
    refused(player, 4, "-w", path, *TO, words=("are free",))  # by small buffers


def collective_posix(player: Player) -> None:
    """POSIX has no collective calls."""
    refused(player, 4, "-w", SHARED, *TO, "-c", words=("posix", "collective"))


@contextmanager
def small_disk(player: Player, size: str) -> Iterator[None]:
    """A tmpfs of this size in the case's folder, on which ./data is then."""
    if os.geteuid() != 0:
        raise Skip("root", "a full disk needs root, to mount a small tmpfs")
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", player.folder]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        raise Skip("mounts", f"a tmpfs cannot be mounted here: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", player.folder], check=True)


def fill(path: Path) -> None:
    """Takes all space that is left, for a file of somebody else."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    with suppress(OSError):
        while True:
            os.write(descriptor, bytes(4096))
    os.close(descriptor)


def full_disk(player: Player) -> None:
    """The disk fills up in the middle of the run, through each method, each kind of call."""
    for method, layout in itertools.product(
        player.methods(FILE_METHODS), ("shared", "file-per-process")
    ):
        kinds = [
            "--independent",
            *["-c"] * player.collective(method),
            *["-v"] * (method == "mpiio"),
        ]
        for option in kinds:
            row = timed([0, 2], "shared", variable(shape=[1 << 18]))
            row["streams"][0] |= {"layout": layout, "transfer_bytes": 65536}
            described = begun(row) if option == "-v" else row
            options = ("-a", method, option)
            with small_disk(player, "4200k"):
                outcome = disturbed(player, fill_up, *options, described=described)
                failed(outcome, method, "data/")
                left_only(player, "stranger")


def fill_up(player: Player, _: object) -> None:
    fill(player.data / "stranger")


# More than MPI takes for the memory that ranks share, which are files as well.
LIMIT_KIB = 16 << 10
LIMIT = LIMIT_KIB << 10


def sized(layout: str, rows_of_ranks: list[int]) -> Json:
    """One dump of so many bytes by each rank."""
    runs = {"rule": "runs", "runs": [[1, rows] for rows in rows_of_ranks]}
    moved = variable(type="byte", shape=[sum(rows_of_ranks)], decomposition=runs)
    row = timed([0], "shared", moved)
    row["streams"][0] |= {"layout": layout, "transfer_bytes": 1 << 20}
    return row


def size_limit(player: Player) -> None:
    """A file that may not become so large is not begun, one that just may is; a rank that meets
    the limit says so, and no signal ends it."""
    small = player.script(f"ulimit -f {LIMIT_KIB}; exec")
    quarter = LIMIT // 4
    words = ("rank", str(LIMIT + 1), str(LIMIT), "ulimit -f")
    large = player.describe(sized("shared", [quarter] * 3 + [quarter + 1]))
    for method in player.methods(FILE_METHODS):
        if method != "adios":  # whose ranks write files of their own
            refused(small, 4, "-w", large, *TO, "-a", method, words=words)
    for layout in ("shared", "file-per-process"):
        small.play(sized(layout, [quarter] * 4), "--verify")
    small.play(sized("file-per-process", [LIMIT] * 4))
    beyond = sized("file-per-process", [3 * LIMIT // 2, 0, 0, 0])
    for method in player.methods(FILE_METHODS):
        (player.folder / "result.json").unlink(missing_ok=True)
        path = player.describe(beyond)
        outcome = small.run(4, "-w", path, *TO, "-a", method, "-O", "result.json")
        failed(outcome, method, "data/", "File too large")
        left_only(player)
    alone = sized("file-per-process", [3 * LIMIT // 2])
    alone |= {"ranks": 1, "scaling": {"rule": "none", "from_ranks": 1}}
    refused(small, 0, "-w", player.describe(alone), *TO, words=("ulimit -f",))


def file_of_another(player: Player) -> None:
    """A file that appears under a name of the run is not overwritten, and survives."""
    for method in player.methods(FILE_METHODS):
        name = f"field.000001.f0{SUFFIXES.get(method, '')}"
        outcome = disturbed(
            player, lambda p, _, n=name: (p.data / n).write_text("mine"), "-a", method
        )
        failed(outcome, "field.000001.f0", "File exists")
        left_only(player, name)
        equal(player.files(), {name: b"mine"})


def lost_rank(player: Player) -> None:
    """A rank is killed: the run ends, and the files that the others made go, at once or, where
    the launcher kills the others, too, as the next run starts."""

    def kill(player: Player, process: "subprocess.Popen[str]") -> None:
        children = ranks_below(player, process.pid)
        equal(len(children), 4, "ranks")
        os.kill(children[max(children)], signal.SIGKILL)

    for method in player.methods(FILE_METHODS):
        outcome = disturbed(player, kill, "-a", method, described=timed([0, 30], "shared"))
        expect(outcome.status != 0, "status 0")
        if not stops_in_order(player.mpiexec):
            expect(CLAIM in player.files(), f"{method}: left {[*player.files()]}")
            command = ("-w", player.folder / "workload.json", "--time-scale", 0, *TO, "-a", method)
            outcome = player.run(4, *command, "-O", "later.json")
            expect(outcome.status == 0 and "of a run that was killed" in outcome.err, outcome.err)
        left_only(player)


def full_standard_output(player: Player) -> None:
    """What cannot be printed is an error, of every program of ours that prints."""
    prints: list[list[object]] = [[player.program, word] for word in ("--version", "--list")]
    prints += [[player.program, "--list", "-v"], [player.program, *OF_SINGLE, "--dry-run"]]
    for path in sorted(player.program.parent.glob("understudy-*")):
        # A kernel of a build without its library has nothing to print.
        if (
            subprocess.run([path, "--help"], cwd=player.folder, capture_output=True).returncode
            == 0
        ):
            prints.append([path, "--help"])
    expect([player.program, "--help"] in prints, f"{player.program}: --help fails")
    for command in prints:
        with Path("/dev/full").open("w") as full:
            words = [*map(str, command)]
            ended = subprocess.run(words, cwd=player.folder, stdout=full, stderr=subprocess.PIPE)
        said = ended.stderr.decode()
        expect(ended.returncode in (1, 2), f"{command}: status {ended.returncode}: {said}")
        # Of a text longer than the buffer, the reason is gone when the program ends.
        full_or_earlier = re.search("No space left on device|an earlier write failed", said)
        expect(full_or_earlier is not None, f"{command}: {said}")


def short_file(player: Player) -> None:
    """A file to be read that somebody cut: every method says so, none goes on."""
    row = sample("read")
    row["streams"] = row["streams"][1:2]
    for dump, time_s in zip(row["streams"][0]["dumps"], (0.0, 2.0), strict=True):
        dump["time_s"] = time_s
    for method in player.methods(FILE_METHODS):
        name = f"old.000001.00000002{SUFFIXES.get(method, '')}"

        def cut(player: Player, _: object, name: str = name) -> None:
            path = data_of(player.data / name)
            os.truncate(path, path.stat().st_size // 2)

        outcome = disturbed(player, cut, "-a", method, described=row, after="")
        failed(outcome, name)
        expect(not (player.folder / "result.json").exists(), f"{method}: a result was written")


CASES = named(
    *(options, descriptors, colliding_file_names, ranks, launcher_of_another_mpi, not_empty),
    *(too_large, collective_posix, full_disk, size_limit, file_of_another, lost_rank),
    *(full_standard_output, short_file),
)

if __name__ == "__main__":
    sys.exit(main("errors", CASES))

"""What the player's options do, and what a run keeps to: times, repetitions, files of others.

`mpi_run.py --list` names the cases, `mpi_run.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import itertools
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mpi_support import (
    ROOT,
    Json,
    Player,
    aborted,
    configured_methods,
    dump_bytes,
    expect,
    expected_files,
    finish,
    in_time,
    main,
    need_strace,
    sample,
    stopped,
)

CLAIM = ".understudy"  # of a run on its directory, while it runs
# Ends MPI_Init of Open MPI, and of an MPICH that finds no process manager behind the descriptor.
NO_MPI = {"OMPI_MCA_pml": "missing", "PMI_FD": "999", "PMI_RANK": "0", "PMI_SIZE": "1"}
METHODS = sorted(
    path.stem for folder in ("proxies", "studies/*") for path in ROOT.glob(f"{folder}/methods/*.c")
)


def timed(times_s: list[float], name: str = "single") -> Json:
    """A workload of one rank (or of four: shared) whose only stream has dumps at these times."""
    workload = sample(name)
    stream = workload["streams"][0]
    stream["dumps"] = [stream["dumps"][0] | {"time_s": t} for t in times_s]
    return workload | {"streams": [stream]}


def dumps_of(result: Json, stream: int = 0) -> list[Json]:
    """The dumps of a stream in the first repetition."""
    found: list[Json] = result["repetitions"][0]["streams"][stream]["dumps"]
    return found


def keeps_the_schedule(player: Player) -> None:
    """Dumps begin when they are due, by the time scale, and none waits when it is late."""
    workload = timed([0.0, 0.4, 0.7], "shared")
    for scale in (1, 0.5):
        in_time(lambda scale=scale: keeps_it_once(player, workload, scale))


def keeps_it_once(player: Player, workload: Json, scale: float) -> None:
    result = player.play(workload, "--time-scale", scale)
    for described, dump in zip((0.0, 0.4, 0.7), dumps_of(result), strict=True):
        expect(math.isclose(dump["scheduled_s"], described * scale), f"{dump['scheduled_s']}")
        expect(dump["lateness_s"] < 0.25, f"late by {dump['lateness_s']} s")
    elapsed = result["repetitions"][0]["elapsed_s"]
    expect(0.7 * scale <= elapsed < 0.7 * scale + 0.3, f"took {elapsed} s")


def does_not_wait_at_scale_0(player: Player) -> None:
    """A time scale of 0 leaves the pauses out."""
    result = player.play(timed([0.0, 1000.0, 2000.0]), "--time-scale", 0)
    elapsed = result["repetitions"][0]["elapsed_s"]
    expect(elapsed < 500, f"took {elapsed} s")
    expect(all(dump["scheduled_s"] == 0 for dump in dumps_of(result)), "not all due at 0 s")


def subtracts_what_io_takes(player: Player) -> None:
    """Times are absolute: a dump that takes long takes from the pause behind it."""
    workload = timed([0.0, 0.0, 0.001, 0.5])
    variable = workload["streams"][0]["dumps"][0]["variables"][0]
    variable["shape"], variable["type"] = [4_000_000, 3], "f64"

    def once() -> None:
        dumps = dumps_of(player.play(workload))
        expect(dumps[2]["lateness_s"] > 0, "two dumps of 96 MB in a millisecond?")
        late, took = dumps[3]["lateness_s"], dumps[2]["phases"][-1]["last_end_s"]
        expect(took > 0.5 or late < 0.25, f"late by {late} s, but the dump before ended at {took}")

    in_time(once)


def computes_or_sleeps(player: Player) -> None:
    """compute: busy keeps a processor, sleep leaves it idle."""

    def once() -> None:
        used = {}
        for compute in ("busy", "sleep"):
            before = children_cpu_s()
            player.play(timed([0.0, 1.0]) | {"compute": compute})
            used[compute] = children_cpu_s() - before
        expect(
            used["busy"] > 1.5 * used["sleep"], f"CPU seconds {used}"
        )  # however busy others are

    in_time(once)


def children_cpu_s() -> float:
    """CPU seconds of all children that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def orders_equal_times(player: Player) -> None:
    """Dumps of equal times run in the order of the streams, never two at a time."""
    workload = sample("grouped")
    for stream in workload["streams"]:
        for dump in stream["dumps"]:
            dump["time_s"] = 0.0
    result = player.play(workload)
    spans = [
        (dump["start_s"], max(p["last_end_s"] for p in dump["phases"]))
        for stream in result["repetitions"][0]["streams"]
        for dump in stream["dumps"]
    ]
    for before, after in itertools.pairwise(spans):
        expect(before[1] <= after[0] + 1e-6, f"dumps overlap: {before} and {after}")


def has_phases(player: Player) -> None:
    """Phases of a dump: what was asked, in order; appended files open once and close once."""
    result = player.play(sample("shared"), "--time-scale", 0)
    for dump in dumps_of(result):
        phases = [p["phase"] for p in dump["phases"]]
        expect(phases == ["open", "write", "sync", "close"], f"phases {phases}")
    result = player.play(sample("single"), "--time-scale", 0, "-a", "posix")
    phases = [[p["phase"] for p in dump["phases"]] for dump in dumps_of(result, 1)]
    expect(phases[0][:2] == ["open", "write"] and "close" not in phases[0], f"phases {phases}")
    expect("open" not in phases[1] and "close" not in phases[1], f"phases {phases}")
    expect(phases[-1][-1] == "close" and "open" not in phases[-1], f"phases {phases}")


def counts_operations(player: Player) -> None:
    """The calls of the data phase are those that the transfer size makes, for every method."""
    workload = sample("single")
    workload["streams"] = workload["streams"][:1]
    workload["streams"][0]["dumps"][0]["variables"] = [
        workload["streams"][0]["dumps"][0]["variables"][0]
        | {"type": "byte", "shape": [100_000], "decomposition": {"rule": "even"}}
    ]
    for method in player.methods(METHODS):
        for transfer, calls in ((100_000, 1), (99_999, 2), (1000, 100), (30_000, 4)):
            result = player.play(workload, "-a", method, "-t", transfer)
            phases = {p["phase"]: p for p in dumps_of(result)[0]["phases"]}
            found = phases["write"]["operations"]
            expect(found == calls, f"{method}: {found} operations of {transfer} bytes")


def repeats(player: Player) -> None:
    """-i repeats on fresh files; equal work, as many repetitions."""
    result = player.play(sample("file-per-process"), "--time-scale", 0, "-i", 3, "-k")
    expect([r["repetition"] for r in result["repetitions"]] == [0, 1, 2], "repetitions")
    names = sorted(player.data())
    expect(names == sorted(expected_files(sample("file-per-process"))), f"files {names}")


def is_reproducible(player: Player) -> None:
    """The seed decides on the contents: equal seeds equal bytes, other seeds other bytes."""
    contents = {}
    for run, seed in (("a", 1), ("b", 1), ("c", 2)):
        player.clear()
        player.play(sample("shared"), "--time-scale", 0, "-k", "--seed", seed)
        contents[run] = player.data()
    expect(contents["a"] == contents["b"], "equal seeds gave different bytes")
    for name, content in contents["a"].items():
        expect(contents["c"][name] != content, f"{name}: different seeds gave equal bytes")


def differs_in_content(player: Player) -> None:
    """Variables, dumps and streams have contents of their own, so that a mix-up is seen."""
    player.play(sample("shared"), "--time-scale", 0, "-k")
    data = player.data()
    first, second = data["field.000000.f0"], data["field.000001.f0"]
    expect(first != second, "dumps have equal contents")
    # Behind rho stand three variables of one shape; each begins with a word of its own.
    starts = [8 * 16 * 10 * 8 + i * 13 * 4 for i in range(3)]
    words = {content[at : at + 8] for content in (first, second) for at in starts}
    expect(len(words) == 6, f"{len(words)} different words at the starts of 6 variables")


def keeps_only_its_own(player: Player) -> None:
    """A directory that was there stays; files that others put there stay; its own do not."""
    (player.folder / "data").mkdir()
    player.play(sample("shared"), "--time-scale", 0)
    expect(list((player.folder / "data").iterdir()) == [], "files were left behind")

    process = player.start(4, "-w", player.describe(timed([0, 4], "shared")), "-o", "data")
    wait_for(player.folder / "data", 1)
    (player.folder / "data" / "stranger").write_text("mine")
    outcome = finish(process)
    expect(outcome.status == 0, outcome.err)
    expect(list(player.data()) == ["stranger"], f"left are {list(player.data())}")


def wait_for(folder: Path, files: int, timeout_s: float = 60) -> None:
    """Waits until the folder holds so many files besides the claim of the run."""
    end = time.monotonic() + timeout_s
    while len([name for name in folder.glob("*") if name.name != CLAIM]) < files:
        expect(time.monotonic() < end, f"{folder} holds no {files} files after {timeout_s} s")
        time.sleep(0.02)


def default_result_file(player: Player) -> None:
    """Without -O the result is ./result.json, and nothing else appears."""
    path = player.describe(sample("single"))
    outcome = player.run(1, "-w", path, "-o", "data")
    expect(outcome.status == 0, outcome.err)
    names = sorted(p.name for p in player.folder.iterdir())
    expect(names == ["result.json", "workload.json"], f"left are {names}")


def runs_without_mpiexec(player: Player) -> None:
    """One rank needs no mpiexec."""
    path = player.describe(sample("single"))
    outcome = player.run(0, "-w", path, "-o", "data", "-i", 2, "-O", "made.json")
    expect(outcome.status == 0, outcome.err)
    expect(outcome.err == f"wrote made.json: 2 repetitions of {path}\n", outcome.err)


def plans_without_writing(player: Player) -> None:
    """--dry-run says bytes and files, and touches nothing."""
    workload = sample("shared")
    path = player.describe(workload)
    outcome = player.run(4, "-w", path, "-o", "data", "--dry-run")
    expect(outcome.status == 0 and outcome.err == "", outcome.err)
    total = sum(dump_bytes(dump) for dump in workload["streams"][0]["dumps"])
    expect(str(total) in outcome.out.replace(",", ""), f"{total} bytes not in\n{outcome.out}")
    expect([p.name for p in player.folder.iterdir()] == ["workload.json"], "something was made")


def lists_methods(player: Player) -> None:
    """--list has one line for every method: available where CMake found it."""
    outcome = player.run(0, "--list")
    expect(outcome.status == 0, outcome.err)
    listed = player.listed()
    expect(set(METHODS) <= set(listed), f"{[*listed]} lacks one of {METHODS}")
    available = {name for name, said in listed.items() if said.startswith("available")}
    expect(available == set(configured_methods()), f"{available} are listed as available")


def helps(player: Player) -> None:
    """--help names every option of the contract, --version the version; both on stdout."""
    outcome = player.run(0, "--help")
    expect(outcome.status == 0 and outcome.err == "", outcome.err)
    letters = [f"-{letter}" for letter in "watcoiekOv"]
    for name in ("independent", "time-scale", "bytes-scale", "verify", "restart", "output"):
        letters.append(f"--{name}")
    for option in (*letters, "--seed", "--list", "--dry-run", "--help", "--version"):
        expect(option in outcome.out, f"--help does not say {option}")
    outcome = player.run(0, "--version")
    expect(outcome.status == 0 and len(outcome.out.splitlines()) == 1, outcome.out)


def informs_without_mpi(player: Player) -> None:
    """--help, --version and --list start no MPI, and rank 0 alone prints."""
    without = replace(player, environment=NO_MPI)
    started = without.run(0, "-w", player.describe(sample("single")), "-o", "data")
    expect(started.status != 0, "MPI starts in spite of the environment that ends it")
    for arguments in (["--help"], ["--version"], ["--list"], ["--list", "-v"]):
        alone = without.run(0, *arguments)
        expect(alone.status == 0 and alone.err == "", f"{arguments}: {alone.err}")
        together = player.run(2, *arguments)
        expect(together.status == 0, f"{arguments}: {together.err}")
        expect(together.out == alone.out, f"{arguments} on 2 ranks: {together.out}")


def reads_sizes(player: Player) -> None:
    """-t in bytes, decimal and binary units."""
    for text, size in (("4096", 4096), ("4KiB", 4096), ("4kB", 4000), ("1MiB", 1 << 20)):
        result = player.play(sample("single"), "--time-scale", 0, "-t", text)
        expect(result["options"]["transfer_bytes"] == size, f"{text} is {result['options']}")
        used = result["repetitions"][0]["streams"][0]["transfer_bytes"]
        expect(used == size, f"-t {text}: {used} bytes in force")


def finds_wrong_bytes(player: Player) -> None:
    """--verify notices one flipped byte, says where, and the run fails."""
    for method in ("posix", "mpiio"):
        player.clear()
        workload = player.describe(timed([0, 4], "shared"))
        process = player.start(
            4, "-w", workload, "-o", "data", "-a", method, "--verify", "-O", "wrong.json"
        )
        target = player.folder / "data" / "field.000000.f0"
        wait_for(player.folder / "data", 2)
        time.sleep(1)
        with target.open("r+b") as file:
            file.seek(5000)
            byte = file.read(1)
            file.seek(5000)
            file.write(bytes([byte[0] ^ 1]))
        outcome = finish(process)
        expect(aborted(outcome), f"{method}: status {outcome.status}\n{outcome.err}")
        message = outcome.message()
        expect(target.name in message and "5000" in message, message)
        path = player.folder / "wrong.json"
        if path.exists():
            result = json.loads(path.read_text())
            expect(result["verification"]["wrong_bytes"] == 1, f"{result['verification']}")


def stops_cleanly(player: Player) -> None:
    """SIGINT and SIGTERM to mpiexec, or to one rank: own files go, others' stay, no result."""
    for number in (signal.SIGINT, signal.SIGTERM):
        for method in player.methods(METHODS):
            player.clear()
            (player.folder / "data").mkdir()
            path = player.describe(timed([0, 30], "shared"))
            process = player.start(4, "-w", path, "-o", "data", "-a", method, "-O", "no.json")
            if method != "null":
                wait_for(player.folder / "data", 2)
            time.sleep(1)
            (player.folder / "data" / "stranger").write_text("mine")
            process.send_signal(number)
            outcome = finish(process)
            where = f"{method}, signal {number}"
            expect(stopped(player, outcome), f"{where}: status 0")
            expect(list(player.data()) == ["stranger"], f"{where}: left {list(player.data())}")
            expect(not (player.folder / "no.json").exists(), f"{where}: a result was written")


def says_what_a_stop_removes(player: Player) -> None:
    """A rank speaks for the ranks that are left: the files of one that was killed stay."""
    process = player.start(0, "-w", player.describe(timed([0, 30])), "-o", "data", "-O", "no.json")
    wait_for(player.folder / "data", 1)
    process.send_signal(signal.SIGTERM)
    outcome = finish(process)
    expect("each rank that still runs removes the files" in outcome.message(), outcome.err)
    expect(not player.data(), f"left {list(player.data())}")


def ends_where_it_began(player: Player) -> None:
    """The player leaves its run directory: what ends with the process may write beside it."""
    need_strace()
    path = player.describe(timed([0]))
    command = ["strace", "-f", "-y", "-e", "trace=fchdir,chdir", "-o", "trace"]
    command += player.command(0, "-w", path, "-o", "data")
    done = subprocess.run(command, cwd=player.folder, capture_output=True, text=True, check=False)
    expect(done.returncode == 0, done.stderr)
    moves = re.findall(r"chdir\(\d+<(.*?)>", (player.folder / "trace").read_text())
    here = str(player.folder.resolve())
    expect(moves == [f"{here}/data", here], f"went to {moves}")


CASES: dict[str, Callable[[Player], None]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        keeps_the_schedule,
        does_not_wait_at_scale_0,
        subtracts_what_io_takes,
        computes_or_sleeps,
        orders_equal_times,
        has_phases,
        counts_operations,
        repeats,
        is_reproducible,
        differs_in_content,
        keeps_only_its_own,
        default_result_file,
        runs_without_mpiexec,
        plans_without_writing,
        lists_methods,
        helps,
        informs_without_mpi,
        reads_sizes,
        finds_wrong_bytes,
        stops_cleanly,
        says_what_a_stop_removes,
        ends_where_it_began,
    )
}

if __name__ == "__main__":
    sys.exit(main("run", CASES))

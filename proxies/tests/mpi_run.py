"""What the player's options do, and what a run keeps to: times, repetitions, files of others."""

import itertools
import math
import os
import re
import signal
import sys
from dataclasses import replace
from subprocess import Popen

from mpi_support import (
    EVEN,
    METHODS,
    Json,
    Player,
    aborted,
    configured_methods,
    disturbed,
    dumps_of,
    equal,
    expect,
    flip,
    in_time,
    left_only,
    main,
    named,
    payload,
    phases_of,
    sample,
    stopped,
    timed,
    traced,
    traces,
)

NOW = ("--time-scale", 0)
# Ends MPI_Init of Open MPI, and of an MPICH that finds no process manager behind the descriptor.
NO_MPI = {"OMPI_MCA_pml": "missing", "PMI_FD": "999", "PMI_RANK": "0", "PMI_SIZE": "1"}


def keeps_the_schedule(player: Player) -> None:
    """Dumps begin when they are due, by the time scale, and none waits when it is late."""
    times = (0.0, 0.4, 0.7)

    def once(scale: float) -> None:
        result = player.play(timed(times, "shared"), "--time-scale", scale)
        for described, dump in zip(times, dumps_of(result), strict=True):
            expect(math.isclose(dump["scheduled_s"], described * scale), dump["scheduled_s"])
            expect(dump["lateness_s"] < 0.25, f"late by {dump['lateness_s']} s")
        elapsed = result["repetitions"][0]["elapsed_s"]
        expect(0.7 * scale <= elapsed < 0.7 * scale + 0.3, f"took {elapsed} s")

    for scale in (1, 0.5):
        in_time(lambda scale=scale: once(scale))
    result = player.play(timed([0.0, 1000.0, 2000.0]), *NOW)
    expect(result["repetitions"][0]["elapsed_s"] < 500, "a pause at time scale 0")
    expect(all(dump["scheduled_s"] == 0 for dump in dumps_of(result)), "not all due at 0 s")


def subtracts_what_io_takes(player: Player) -> None:
    """Times are absolute: a dump that takes long takes from the pause behind it."""
    workload = timed([0.0, 0.0, 0.001, 0.5])
    variable = workload["streams"][0]["dumps"][0]["variables"][0]
    variable |= {"shape": [4_000_000, 3], "type": "f64"}
    for dump in workload["streams"][0]["dumps"]:
        dump["variables"][0] = variable

    def once() -> None:
        dumps = dumps_of(player.play(workload))
        expect(dumps[2]["lateness_s"] > 0, "two dumps of 96 MB in a millisecond?")
        late, took = dumps[3]["lateness_s"], dumps[2]["phases"][-1]["last_end_s"]
        expect(took > 0.5 or late < 0.25, f"late by {late} s, but the dump before ended at {took}")

    in_time(once)


def computes_or_sleeps(player: Player) -> None:
    """compute: busy keeps a processor, sleep leaves it idle."""

    def used(compute: str) -> float:
        """CPU seconds of a run, however busy others are."""
        before = os.times()
        player.play(timed([0.0, 1.0]) | {"compute": compute})
        after = os.times()
        times = (after.children_user, after.children_system)
        return sum(times) - before.children_user - before.children_system

    in_time(lambda: expect(used("busy") > 1.5 * used("sleep"), "busy takes no more than sleep"))


def orders_equal_times(player: Player) -> None:
    """Dumps of equal times run in the order of the streams, never two at a time."""
    workload = sample("grouped")
    for dump in itertools.chain(*(stream["dumps"] for stream in workload["streams"])):
        dump["time_s"] = 0.0
    spans = [
        (dump["start_s"], max(p["last_end_s"] for p in dump["phases"]))
        for stream in player.play(workload)["repetitions"][0]["streams"]
        for dump in stream["dumps"]
    ]
    for before, after in itertools.pairwise(spans):
        expect(before[1] <= after[0] + 1e-6, f"dumps overlap: {before} and {after}")


def has_phases(player: Player) -> None:
    """Phases of a dump: what was asked, in order; appended files open once and close once."""
    for dump in dumps_of(player.play(sample("shared"), *NOW)):
        equal([*phases_of(dump)], ["open", "write", "sync", "close"], "phases")
    phases = [[*phases_of(d)] for d in dumps_of(player.play(sample("single"), *NOW), 1)]
    expect(phases[0][:2] == ["open", "write"] and phases[-1][-1] == "close", phases)
    expect(sum(p.count("open") + p.count("close") for p in phases) == 2, phases)


def counts_operations(player: Player) -> None:
    """The calls of the data phase are those that the transfer size makes, for every method."""
    workload = timed([0.0])
    dump = workload["streams"][0]["dumps"][0]
    bytes_of_rank: Json = {"type": "byte", "shape": [100_000], "decomposition": EVEN}
    dump["variables"] = [dump["variables"][0] | bytes_of_rank]
    for method in player.methods(METHODS):
        for transfer, calls in ((100_000, 1), (99_999, 2), ("1kB", 100), (30_000, 4)):
            result = player.play(workload, "-a", method, "-t", transfer)
            equal(phases_of(dumps_of(result)[0])["write"], calls, f"{method}: {transfer} bytes")


def is_reproducible(player: Player) -> None:
    """The seed decides on the contents: equal seeds equal bytes, other seeds other bytes.
    Variables and dumps have contents of their own, so that a mix-up is seen."""
    files, again, other = (player.kept(sample("shared"), *NOW, "--seed", n)[1] for n in (1, 1, 2))
    equal(files == again, True, "equal seeds give equal bytes")
    expect(all(other[name] != files[name] for name in files), "other seeds give equal bytes")
    # Behind rho stand three variables of one shape; each begins with a word of its own.
    places = [8 * 16 * 10 * 8 + i * 13 * 4 for i in range(3)]
    dumps = [files[f"field.00000{n}.f0"] for n in (0, 1)]
    equal(len({d[at : at + 8] for d in dumps for at in places}), 6, "different words")


def keeps_only_its_own(player: Player) -> None:
    """A directory that was there stays; files that others put there stay; its own do not."""
    player.data.mkdir()
    player.play(sample("shared"), *NOW)
    equal([*player.data.iterdir()], [], "left")
    outcome = disturbed(player, lambda p, _: (p.data / "stranger").write_text("mine"))
    equal((outcome.status, outcome.complaints), (0, ""))
    left_only(player, "stranger", result=True)


def needs_little(player: Player) -> None:
    """One rank needs no mpiexec; without -O the result is ./result.json, and nothing else appears;
    a dry run says bytes and files, and touches nothing."""
    path = player.describe(sample("shared"))
    plan = player.run(4, "-w", path, "-o", "data", "--dry-run")
    equal((plan.status, plan.err), (0, ""))
    size = payload(sample("shared"))
    expect(str(size) in plan.out.replace(",", ""), f"{size} bytes not in\n{plan.out}")
    equal([p.name for p in player.folder.iterdir()], ["workload.json"])
    path = player.describe(sample("single"))
    outcome = player.run(0, "-w", path, "-o", "data", "-i", 2)
    equal((outcome.status, outcome.err), (0, f"wrote result.json: 2 repetitions of {path}\n"))
    equal(sorted(p.name for p in player.folder.iterdir()), ["result.json", "workload.json"])


def lists_methods(player: Player) -> None:
    """--list has one line for every method: available where CMake found it."""
    listed = player.listed()
    expect(set(METHODS) <= set(listed), f"{[*listed]} lacks one of {METHODS}")
    available = {name for name, said in listed.items() if said.startswith("available")}
    equal(available, set(configured_methods()), "available")


def informs_without_mpi(player: Player) -> None:
    """--help, --version and --list start no MPI, and rank 0 alone prints."""
    without = replace(player, environment=NO_MPI)
    started = without.run(0, "-w", player.describe(sample("single")), "-o", "data")
    expect(started.status != 0, "MPI starts in spite of the environment that ends it")
    for arguments in (["--help"], ["--version"], ["--list"], ["--list", "-v"]):
        alone = without.run(0, *arguments)
        equal((alone.status, alone.err), (0, ""), arguments)
        together = player.run(2, *arguments)
        equal((together.status, together.out), (0, alone.out), f"{arguments} on 2 ranks")
        expect(len(alone.out.splitlines()) == 1 or arguments != ["--version"], alone.out)


def finds_wrong_bytes(player: Player) -> None:
    """--verify notices one flipped byte, says where, and the run fails."""
    for method in player.methods(["posix", "mpiio", "uring"]):
        outcome = disturbed(
            player,
            lambda p, _: flip(p.data / "field.000000.f0", 5000),
            *("-a", method, "--verify"),
        )
        expect(aborted(outcome), f"{method}: status {outcome.status}\n{outcome.err}")
        expect("field.000000.f0" in outcome.message() and "5000" in outcome.message(), outcome.err)


def stops_cleanly(player: Player) -> None:
    """SIGINT and SIGTERM to mpiexec, or to one rank: own files go, others' stay, no result."""

    for number, method in itertools.product(
        (signal.SIGINT, signal.SIGTERM), player.methods(METHODS)
    ):

        def act(player: Player, process: "Popen[str]", number: int = number) -> None:
            (player.data / "stranger").write_text("mine")
            process.send_signal(number)

        outcome = disturbed(player, act, "-a", method, described=timed([0, 30], "shared"))
        expect(stopped(player, outcome), f"{method}, signal {number}: status 0")
        left_only(player, "stranger")


def says_what_a_stop_removes(player: Player) -> None:
    """A rank speaks for the ranks that are left: the files of one that was killed stay."""
    outcome = disturbed(player, lambda _, run: run.terminate(), described=timed([0, 30]), ranks=0)
    expect("each rank that still runs removes the files" in outcome.message(), outcome.err)
    left_only(player)


def ends_where_it_began(player: Player) -> None:
    """The player leaves its run directory: what ends with the process may write beside it."""
    path = player.describe(timed([0]))
    outcome = traced(player, "fchdir,chdir", "-y").run(0, "-w", path, "-o", "data")
    expect(outcome.status == 0, outcome.err)
    moves = re.findall(r"chdir\(\d+<(.*?)>", str(traces(player)))
    here = str(player.folder.resolve())
    equal(moves, [f"{here}/data", here], "went to")


CASES = named(
    *(keeps_the_schedule, subtracts_what_io_takes, computes_or_sleeps, orders_equal_times),
    *(has_phases, counts_operations, is_reproducible, keeps_only_its_own, needs_little),
    *(lists_methods, informs_without_mpi, finds_wrong_bytes, stops_cleanly),
    *(says_what_a_stop_removes, ends_where_it_began),
)

if __name__ == "__main__":
    sys.exit(main("run", CASES))

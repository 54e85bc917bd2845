"""A run in which an operation does not return ends, and every rank says where it is.

`mpi_watch.py --list` names the cases, `mpi_watch.py CASE PROGRAM MPIEXEC FOLDER` runs one.
"""

import os
import re
import signal
import sys
from dataclasses import replace

from mpi_run import timed
from mpi_support import Json, Outcome, Player, expect, finish, main, ranks_below

RANKS = 4
LINE = (
    r"(?m)^understudy: rank (\d) on \S+: no progress for \d+ s: "
    r"stream field, dump (\d), (.*?)(?:; the storage .*)?$"
)


BYTES, TRANSFER_BYTES = 65536, 4096
CALLS = BYTES // RANKS // TRANSFER_BYTES  # of a rank in a dump


def plain(*times_s: float) -> Json:
    """Dumps of one variable in a file of all ranks, flushed after each."""
    workload = timed(list(times_s), "shared")
    [stream] = workload["streams"]
    stream["transfer_bytes"] = TRANSFER_BYTES
    variable = {
        "name": "data",
        "label": "",
        "count": 1,
        "type": "u8",
        "shape": [BYTES],
        "decomposition": {"rule": "even"},
        "file": 0,
    }
    for dump in stream["dumps"]:
        dump["variables"] = [variable]
    return workload


def hang(player: Player, call: str, turn: int, *options: object, **more: str) -> Outcome:
    """A run whose rank 2 does not return from a call; it ends within the time of `Player.run`."""
    variables = {
        "LD_PRELOAD": os.environ["UND_FAULT"],
        "FAULT_UNDER": str((player.folder / "data").resolve()),
        "FAULT_RANK": "2",
        "FAULT_CALL": call,
        "FAULT_TURN": str(turn),
        "FAULT_ERROR": "hang",
        **more,
    }
    hanging = replace(player, environment=player.environment | variables)
    path = player.describe(plain(0, 0.1))
    common = ("-w", path, "-o", "data", "-O", "no.json", "--watchdog", 3)
    return hanging.run(RANKS, *common, *options)


def places(outcome: Outcome) -> dict[int, tuple[int, str]]:
    """The dump and the operation that each rank is in."""
    return {int(rank): (int(dump), text) for rank, dump, text in re.findall(LINE, outcome.err)}


def ended(player: Player, outcome: Outcome, operation: str) -> None:
    expect(outcome.status not in (0, None), f"status {outcome.status}")
    found = places(outcome)
    expect(set(found) == set(range(RANKS)), f"ranks {sorted(found)}: {outcome.err}")
    dump, text = found[2]
    expect(dump == 1 and re.match(operation, text) is not None, f"rank 2: dump {dump}, {text}")
    expect(not player.data(), f"left {list(player.data())}")
    expect(not (player.folder / "no.json").exists(), "a result was written")


def says_where_a_write_hangs(player: Player) -> None:
    """All ranks are there: the one that hangs, and those that wait for it."""
    outcome = hang(player, "write", CALLS + 2)
    ended(player, outcome, r"write, call 1, \S*field\.000001")
    for rank in (0, 1, 3):
        expect(places(outcome)[rank][1] == "waits for other ranks", outcome.err)


def says_where_a_flush_hangs(player: Player) -> None:
    outcome = hang(player, "sync", 2)
    ended(player, outcome, r"flush, call \d+, \S*field\.000001")


def ends_a_rank_that_no_signal_reaches(player: Player) -> None:
    """Its files stay, as after a kill; those of the other ranks go."""
    outcome = hang(player, "sync", 2, FAULT_DEAF="1")
    expect(outcome.status not in (0, None), f"status {outcome.status}")
    expect(places(outcome)[2][1].startswith("flush"), outcome.err)


def says_whether_the_storage_is_full(player: Player) -> None:
    """Whichever rank notices first asks."""
    full = hang(player, "write", CALLS + 2, FAULT_FULL="1")
    expect(full.err.count("; the storage is full: 0 bytes are free\n") >= 1, full.err)
    expect("; the storage is not full: " in hang(player, "write", CALLS + 2).err, "not said")


def ends_at_the_start_and_the_end(player: Player) -> None:
    """Neither a directory that is not made nor a file that is not removed holds up a run."""
    for call, rank, words in (
        ("mkdir", "0", r"prepare the run directory, call 0, data$"),
        ("unlink", "0", r"remove files, call \d+, data"),
    ):
        outcome = hang(player, call, 1, FAULT_RANK=rank)
        expect(outcome.status not in (0, None), f"{call}: status {outcome.status}")
        line = rf"(?m)^understudy: rank 0 on \S+: no progress for \d+ s: {words}"
        expect(re.search(line, outcome.err) is not None, f"{call}: {outcome.err}")
        player.clear()


def ends_when_a_rank_is_stopped_early(player: Player) -> None:
    """As soon as it is there, and before MPI is."""
    path = player.describe(plain(0))
    process = player.start(RANKS, "-w", path, "-o", "data", "-O", "no.json", "--watchdog", 3)
    ranks: dict[int, int] = {}
    while 2 not in ranks:
        ranks = ranks_below(player, process.pid)
    os.kill(ranks[2], signal.SIGSTOP)
    outcome = finish(process, 60)
    expect(outcome.status != 0, "status 0")
    expect("no progress for" in outcome.err, outcome.err)
    expect(not (player.folder / "no.json").exists(), "a result was written")


def leaves_pauses_alone(player: Player) -> None:
    """A pause, before a dump or between its calls, may be longer than the time."""
    steady = plain(7)
    steady["streams"][0] |= {"pace": "steady", "transfer_bytes": 2 * TRANSFER_BYTES}
    steady["streams"][0]["dumps"][0] |= {"duration_s": 14}  # for two calls of a rank
    result = player.play(steady, "--watchdog", 5)
    expect(result["repetitions"][0]["elapsed_s"] > 7, "there was no pause")


def never_with_zero(player: Player) -> None:
    player.play(plain(0), "--watchdog", 0)


CASES = {
    case.__name__.replace("_", "-"): case
    for case in (
        says_where_a_write_hangs,
        says_where_a_flush_hangs,
        ends_a_rank_that_no_signal_reaches,
        says_whether_the_storage_is_full,
        ends_at_the_start_and_the_end,
        ends_when_a_rank_is_stopped_early,
        leaves_pauses_alone,
        never_with_zero,
    )
}

if __name__ == "__main__":
    sys.exit(main("watch", CASES))

"""A run in which an operation does not return ends, and every rank says where it is."""

import os
import re
import signal
import sys

from mpi_support import (
    Json,
    Outcome,
    Player,
    equal,
    expect,
    finish,
    left_only,
    main,
    named,
    ranks_below,
    timed,
    variable,
)

RANKS = 4
LINE = (
    r"(?m)^understudy: rank (\d) on \S+: no progress for \d+ s: "
    r"stream field, dump (\d), (.*?)(?:; the storage .*)?$"
)
BYTES, TRANSFER_BYTES = 65536, 4096
CALLS = BYTES // RANKS // TRANSFER_BYTES  # of a rank in a dump
TO = ("-o", "data", "-O", "result.json", "--watchdog")


def plain(*times_s: float) -> Json:
    """Dumps of one variable in a file of all ranks, flushed after each."""
    row = timed(times_s, "shared", variable(type="u8", shape=[BYTES]))
    row["streams"][0]["transfer_bytes"] = TRANSFER_BYTES
    return row


def hang(
    player: Player, call: str, turn: int, *options: str, rank: int = 2, **more: str
) -> Outcome:
    """A run whose rank does not return from a call; it ends within the time of `Player.run`."""
    under = player.data.resolve()
    variables = {"UNDER": under, "RANK": rank, "CALL": call, "TURN": turn, "ERROR": "hang"}
    hanging = player.preloading("UND_FAULT", "FAULT", **variables | more)
    outcome = hanging.run(RANKS, "-w", player.describe(plain(0, 0.1)), *TO, 3, *options)
    expect(outcome.status != 0, "status 0")
    return outcome


def places(outcome: Outcome) -> dict[int, tuple[str, str]]:
    """The dump and the operation that each rank is in."""
    return {int(rank): (dump, text) for rank, dump, text in re.findall(LINE, outcome.err)}


def says_where_it_hangs(player: Player) -> None:
    """All ranks are there: the one that hangs, and those that wait for it."""
    cases: list[tuple[str, int, str, tuple[str, ...]]] = [
        ("write", CALLS + 2, r"write, call 1, \S*field\.000001", ()),
        ("sync", 2, r"flush, call \d+, \S*field\.000001", ()),
    ]
    if player.methods(["uring"]):  # whose next transfer begins when one of two has ended
        queued = ("-a", "uring", "-m", "uring.depth=2")
        cases.append(("write", CALLS + 2, r"write, call \d, \S*field\.000001", queued))
    for call, turn, operation, options in cases:
        outcome = hang(player, call, turn, *options)
        at = places(outcome)
        equal(set(at), set(range(RANKS)), f"ranks: {outcome.err}")
        expect(at[2][0] == "1" and re.match(operation, at[2][1]) is not None, f"rank 2: {at}")
        left_only(player)
        expect("; the storage is not full: " in outcome.err, outcome.err)
        others = {at[rank][1] for rank in (0, 1, 3)}
        expect(call != "write" or others == {"waits for other ranks"}, outcome.err)


def ends_a_rank_that_no_signal_reaches(player: Player) -> None:
    """Its files stay, as after a kill; those of the other ranks go. Whichever rank notices first
    asks the storage whether it is full."""
    outcome = hang(player, "sync", 2, DEAF="1", FULL="1")
    expect(places(outcome)[2][1].startswith("flush"), outcome.err)
    expect("; the storage is full: 0 bytes are free\n" in outcome.err, outcome.err)


def ends_at_the_start_and_the_end(player: Player) -> None:
    """Neither a directory that is not made nor a file that is not removed holds up a run."""
    for call, words in (
        ("mkdir", r"prepare the run directory, call 0, data$"),
        ("unlink", r"remove files, call \d+, data"),
    ):
        outcome = hang(player, call, 1, rank=0)
        line = rf"(?m)^understudy: rank 0 on \S+: no progress for \d+ s: {words}"
        expect(re.search(line, outcome.err) is not None, f"{call}: {outcome.err}")
        player.clear()


def ends_when_a_rank_is_stopped_early(player: Player) -> None:
    """As soon as it is there, and before MPI is."""
    process = player.start(RANKS, "-w", player.describe(plain(0)), *TO, 3)
    ranks: dict[int, int] = {}
    while 2 not in ranks:
        ranks = ranks_below(player, process.pid)
    os.kill(ranks[2], signal.SIGSTOP)
    outcome = finish(process, 60)
    expect(outcome.status != 0 and "no progress for" in outcome.err, outcome.err)
    expect(not (player.folder / "result.json").exists(), "a result was written")


def leaves_pauses_alone(player: Player) -> None:
    """A pause, before a dump or between its calls, may be longer than the time; 0 is no time."""
    steady = plain(4)
    steady["streams"][0] |= {"pace": "steady", "transfer_bytes": 2 * TRANSFER_BYTES}
    steady["streams"][0]["dumps"][0] |= {"duration_s": 8}  # for two calls of a rank
    result = player.play(steady, "--watchdog", 3)
    expect(result["repetitions"][0]["elapsed_s"] > 4, "there was no pause")
    player.play(plain(0), "--watchdog", 0)


CASES = named(
    *(says_where_it_hangs, ends_a_rank_that_no_signal_reaches, ends_at_the_start_and_the_end),
    *(ends_when_a_rank_is_stopped_early, leaves_pauses_alone),
)

if __name__ == "__main__":
    sys.exit(main("watch", CASES))

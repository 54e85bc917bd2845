"""Limits of a run as IOR, fio and elbencho have them: a deadline, also worn out, a rate, reads
between writes, the slowest rank."""

import sys

from mpi_flood import flood, rows
from mpi_kinds import KINDS, described_by
from mpi_support import (
    FILE_METHODS,
    STEP_METHODS,
    Json,
    Player,
    begun,
    changed,
    dump,
    dumps_of,
    equal,
    expect,
    for_each,
    main,
    named,
    need_method,
    payload,
    phase_of,
    program,
    refused,
    sample,
    stream,
    variable,
    verified,
    workload,
)

RANKS = 3
ROW = 100 * 8
ROWS = (4, 10, 16)  # of each rank, a transfer each
DEADLINE_S = 0.5
SHUFFLED = {"rule": "shuffled", "seed": 9}
FILE_BYTES = 300


def spread(lasting_s: float = 2.0, **changes: object) -> Json:
    """One dump whose transfers of each rank are spread evenly over the time."""
    runs = {"rule": "runs", "runs": [[1, rows] for rows in ROWS]}
    each: Json = {"time_s": 0.0, "variables": [variable("v", (30, 100), decomposition=runs)]}
    row = stream("s", role="checkpoint", transfer_bytes=ROW, pace="steady", dumps=[])
    row["dumps"] = [each | {"duration_s": lasting_s, "overhead_bytes": None}]
    return workload(row | changes)


def sample_of_calls(count: int, size: int) -> Json:
    """The trace of a program of one rank that writes so often."""
    opened = {"call": "open", "path": 0, "as": 0, "flags": ["write", "create", "truncate"]}
    calls = [opened, {"repeat": count, "do": [{"call": "write", "of": 0, "bytes": size}]}]
    calls += [{"call": "close", "of": 0}]
    row = program(workload(stream("s"), ranks=1))
    row["sets"] = [
        {"name": "s", "of": "callers", "stored_bytes": count * size, "entries": [{"count": 1}]}
    ]
    row["streams"] = [{"name": "s", "role": "output", "method": "posix", "steps": []}]
    row["streams"][0]["steps"] = [{"at": 0, "do": [{"calls": "s", "do": calls}]}]
    return row


def deadline_of(result: Json, name: str = "s") -> Json:
    """What was moved by the deadline; its sums belong together."""
    [dump] = dumps_of(result, name)
    row: Json = dump["deadline"]
    for key in ("rank_bytes", "rank_transfers"):
        expect(row[key]["min"] <= row[key]["max"], row)
    expect(row["rank_bytes"]["max"] <= row["bytes"] <= dump["bytes"], row)
    return row


def stops_at_deadline(player: Player, method: str) -> None:
    """Each rank stops at the deadline; what it has written is known, and right."""
    need_method(method)
    if method in STEP_METHODS:
        described = player.describe(spread(method=method))
        command = ("-w", described, "-o", "data", "--deadline", DEADLINE_S)
        refused(player, RANKS, *command, words=("cannot leave out a part",))
        return
    result = player.play(spread(method=method), "-D", DEADLINE_S, "--verify", "--restart")
    [dump] = dumps_of(result)
    row = deadline_of(result)
    equal(row["stopped_ranks"], RANKS, "ranks that it stopped")
    # Transfers 0.5, 0.2 and 0.125 s apart, the first at once; one more or less by the clock.
    for limit, expected in (("min", 1), ("max", 4)):
        count = row["rank_transfers"][limit]
        expect(expected <= count <= expected + 1, f"{limit}: {count} transfers")
        equal(row["rank_bytes"][limit], count * ROW, limit)
    equal(dump["bytes"], row["bytes"], "bytes of the dump")
    equal(phase_of(dump, "write")["bytes"], row["bytes"], "bytes that were written")
    verified(result, row["bytes"])
    end_s = phase_of(dump, "write")["last_end_s"]
    expect(end_s < DEADLINE_S + 1, f"the last rank ended at {end_s} s")
    [again] = dumps_of(result, "s-restart")
    expect(again["bytes"] <= row["bytes"], f"{again['bytes']} of {row['bytes']} were read")


def wears_out(player: Player) -> None:
    """Behind the deadline all ranks go on to the transfers of the fastest, or to their end."""
    result = player.play(spread(), "-D", DEADLINE_S, "--wear-out", "--verify", "--restart")
    row, [dump] = deadline_of(result), dumps_of(result)
    most = row["rank_transfers"]["max"]
    equal(dump["bytes"], sum(min(most, rows) for rows in ROWS) * ROW, "bytes")
    expect(row["bytes"] < dump["bytes"], f"{row['bytes']} bytes at the deadline")
    verified(result, dump["bytes"])
    equal(dumps_of(result, "s-restart")[0]["bytes"], dump["bytes"], "bytes that were read")


def reaches_no_deadline(player: Player) -> None:
    """A run that ends before is complete."""
    for options in ((), ("--wear-out",)):
        whole = spread()
        result = player.play(whole, "-D", 1e9, "--verify", "--time-scale", 0, *options)
        row = deadline_of(result)
        equal((row["stopped_ranks"], row["bytes"]), (0, payload(whole)), "all")
        equal(row["rank_transfers"], {"min": min(ROWS), "max": max(ROWS)}, "transfers")
        verified(result, payload(whole))


def collective_ranks_stop_together(player: Player) -> None:
    """The ranks of a collective call end with the same one."""
    described = spread(method="mpiio", collective=True)
    result = player.play(described, "-D", 0.3, "--verify")
    row = deadline_of(result)
    expect(0 < row["rank_transfers"]["max"] < max(ROWS), row)
    verified(result, row["bytes"])


def stops_reads(player: Player) -> None:
    """Reads stop, too."""
    row = deadline_of(player.play(spread(operation="read"), "-D", DEADLINE_S, "--verify"))
    equal(row["stopped_ranks"], RANKS, "ranks that it stopped")


def stops_kind(player: Player, name: str) -> None:
    """Dumps that are stopped soon, of all kinds of streams: what is there is right."""
    kinds = [
        method for method in KINDS[name].get("methods", ["posix"]) if method not in STEP_METHODS
    ]
    for method in player.methods(kinds):
        described = described_by(KINDS[name], method=method)
        result = player.play(described, "-D", 1e-5, "--verify", "-t", 64, "--time-scale", 0)
        dumps = [d for row in described["streams"] for d in dumps_of(result, row["name"])]
        stopped = [d for d in dumps if d["deadline"]["stopped_ranks"]]
        expect(stopped, f"{method}: no dump was stopped")


def stops_small_files(player: Player) -> None:
    """The files behind the deadline are not made, and none is left."""
    described = flood(dump(0.0, rows("v", [6000, FILE_BYTES])))
    result = player.play(described, "-D", 0.01, "--verify", "--restart")
    row, [stopped] = deadline_of(result, "many"), dumps_of(result)
    expect(0 < stopped["bytes"] < payload(described), f"{stopped['bytes']} bytes")
    empty = stopped["files"] - row["bytes"] // FILE_BYTES  # which a rank had opened by then
    expect(0 <= empty <= RANKS, f"{empty} empty files")
    expect(not player.data.exists(), "the run directory is left")


def keeps_rate(player: Player, method: str) -> None:
    """A rank that has bytes for a second at its rate takes a second, most of it no I/O time."""
    need_method(method)
    described = spread(method=method)
    del described["streams"][0]["pace"]
    size = max(ROWS) * ROW
    more: dict[str, list[tuple[str, ...]]] = {"posix": [("--restart",)]}
    more |= {queues: [("-m", f"{queues}.depth=4")] for queues in ("uring", "mpiio")}
    for options in [(), *more.get(method, [])]:
        result = player.play(described, "--rate", size, "--verify", *options)
        equal(result["options"]["rate_bytes_per_s"], size, "the option")
        verified(result, payload(described))
        for stream_row in result["repetitions"][0]["streams"]:
            moved = phase_of(stream_row["dumps"][0], "write", "read")
            span_s = moved["last_end_s"] - moved["first_start_s"]
            limit_s = (max(ROWS) - 1) / max(ROWS)  # up to the begin of the last transfer
            expect(span_s >= limit_s, f"{method}: {span_s} s")
            expect(moved["rank_s"]["max"] < span_s / 2, f"{method}: {moved['rank_s']} of {span_s}")
            # The rank of 4 rows ends after 3/16 s, when the others have a third and a fifth.
            first, first_s = moved["first_end_bytes"], moved["first_end_s"]
            expect(first_s - moved["first_start_s"] < span_s / 2, f"{method}: {first_s} s")
            expect(min(ROWS) * ROW < first < payload(described) / 2, f"{method}: {first} bytes")
            # Waiting for the rate is no latency, also of what is in flight: a transfer has 1/16 s.
            for latency in stream_row["latency"].values():
                expect(latency["p50_s"] < 1 / max(ROWS) / 4, f"{method}: {latency['p50_s']} s")


def mixes_reads(player: Player, method: str) -> None:
    """So many of 100 transfers are reads of bytes written before, compared with --verify; what is
    written is the same, by any order, into one file or many."""
    need_method(method)
    plain = spread(method=method)
    del plain["streams"][0]["pace"]
    shuffled = changed(plain, ("streams", 0), lambda s: s | {"order": SHUFFLED})
    for described, percent in ((plain, 30), (shuffled, 50), (plain, 75)):
        result, files = player.kept(described, "--mix", percent, "--verify")
        equal(files, player.kept(described)[1], "files")
        verified(result, payload(described))
        [row] = dumps_of(result)
        between = [int(rows * percent / (100 - percent)) for rows in ROWS]
        equal(phase_of(row, "write")["bytes"], payload(described), "bytes that were written")
        equal(phase_of(row, "read")["bytes"], sum(between) * ROW, "bytes that were read")
        equal(phase_of(row, "read")["operations"], sum(between), "reads")
        noted = result["repetitions"][0]["streams"][0]["latency"]["read"]
        equal((noted["count"], noted["bytes"]), (sum(between), sum(between) * ROW), "latencies")
    small = flood(dump(0.0, rows("v", [40, FILE_BYTES])), method=method)
    [row] = dumps_of(player.play(small, "--mix", 50, "--verify", "-t", 100))
    equal(phase_of(row, "read")["bytes"], 40 * FILE_BYTES, "bytes read of small files")


def compares_mixed_reads(player: Player) -> None:
    """A bit that is wrong in a read between writes, and in no other, is seen."""
    described = spread()
    del described["streams"][0]["pace"]
    variables = {"CALL": "read", "ERROR": "flip", "RANK": 0, "UNDER": player.folder.resolve()}
    faulty = player.preloading("UND_FAULT", "FAULT", **variables, NAME="/data/s.", TURN=2)
    command = ("-w", player.describe(described), "-o", "data", "--mix", 50, "--verify")
    outcome = faulty.run(RANKS, *command)
    equal(outcome.status, 1, outcome.err)
    expect("verification: 1 of" in outcome.err, outcome.err)


def refuses_mixes(player: Player) -> None:
    """What cannot have reads between its writes."""
    none = ("--mix: no stream of the workload writes",)
    cases = [
        (spread(), ("--mix", 100), ("--mix 100: expected 1 to 99",)),
        (spread(method="mpiio"), ("--mix", 10), ("cannot read files between writes",)),
        (spread(operation="read"), ("--mix", 10), none),
        (sample_of_calls(1, 1), ("--mix", 10), none),
    ]
    if player.methods(["uring"]):
        nonblocking = begun(spread(method="uring"))
        cases.append((nonblocking, ("--mix", 10), ("transfers of", "are nonblocking")))
    for described, options, words in cases:
        command = ("-w", player.describe(described), "-o", "data", *options)
        refused(player, described["ranks"], *command, words=words)


def names_slowest_rank(player: Player) -> None:
    """A rank that moves far more than the others is named, with its host."""
    runs = {"rule": "runs", "runs": [[1, 1], [1, 20000], [1, 1]]}
    moved = variable("v", (20002, 100), decomposition=runs)
    result = player.play(workload(stream("s", transfer_bytes=ROW, dumps=[dump(0.0, moved)])))
    [repetition] = result["repetitions"]
    rank, host = repetition["slowest_rank"], repetition["slowest_host"]
    equal((rank["rank"], rank["host"]), (1, result["environment"]["host"]), "the rank")
    expect(rank["io_s"] > rank["median_io_s"] > 0, rank)
    equal((host["host"], host["io_s"]), (rank["host"], host["median_io_s"]), "the only host")


def limits_calls(player: Player) -> None:
    """Calls of the system keep a rate, too; a deadline would leave some out."""
    described = sample_of_calls(10, 1000)
    result = player.play(described, "--rate", 10000, "--verify")
    moved = phase_of(dumps_of(result)[0], "write")
    expect(moved["rank_s"]["max"] < 0.5 < 0.9 <= moved["last_end_s"], moved)
    command = ("-w", player.describe(described), "-o", "data", "-D", 1)
    refused(player, 1, *command, words=("--deadline", "is a list of calls"))


def refuses_deadlines(player: Player) -> None:
    """Options and streams that do not go together."""
    plain, small = spread(), flood(dump(0.0, rows("v", [3, 10])))
    others = described_by(KINDS["lent"])
    cases = [
        (plain, ("-D", 1, "-k"), ("--deadline and --keep exclude each other",)),
        (plain, ("--wear-out",), ("--wear-out: expected --deadline",)),
        (plain, ("-D", 0), ("--deadline 0", "above 0")),
        (spread(method="mpiio", collective=True), ("-D", 1, "--wear-out"), ("collective",)),
        (small, ("-D", 1, "--wear-out"), ("--wear-out", "many files")),
        (others, ("-D", 1), ("--deadline", "reads what another stream")),
        (sample("turns"), ("-D", 1, "--wear-out"), ("--wear-out", "take turns")),
    ]
    if player.methods(["hdf5"]):
        cases.append((spread(method="hdf5"), ("-D", 1, "--wear-out"), ("cannot go on",)))
    for described, options, words in cases:
        command = ("-w", player.describe(described), "-o", "data", *options)
        refused(player, described["ranks"], *command, words=words)


CASES = {
    **named(wears_out, reaches_no_deadline, collective_ranks_stop_together, stops_reads),
    **named(stops_small_files, limits_calls, refuses_deadlines),
    **for_each(stops_kind, ("ordered", "grown", "calls", "looked-up", "own", "rewritten")),
    **for_each(stops_at_deadline, FILE_METHODS),
    **named(compares_mixed_reads, refuses_mixes, names_slowest_rank),
    **for_each(mixes_reads, ("posix", "stdio", "uring")),
    **for_each(keeps_rate, ("posix", "uring", "mpiio", "hdf5")),
}

if __name__ == "__main__":
    sys.exit(main("limits", CASES))

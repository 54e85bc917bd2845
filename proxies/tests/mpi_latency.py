"""The latencies of data calls: each is counted once, in the histogram of its kind."""

import json
import math
import sys

from mpi_calls import EVERY
from mpi_support import (
    EVEN,
    METHODS,
    Json,
    Player,
    begun,
    dump,
    dumps_of,
    equal,
    expect,
    finish,
    in_time,
    main,
    named,
    need_injection,
    phases_of,
    refused,
    sample,
    stream,
    timed,
    traced,
    variable,
    wait_until,
    workload,
)

NOW = ("--time-scale", 0)


def latencies(result: Json, name: str | int = 0, repetition: int = 0) -> Json:
    """Those of a stream, by kind."""
    streams = result["repetitions"][repetition]["streams"]
    row = streams[name] if isinstance(name, int) else {s["name"]: s for s in streams}[name]
    kinds: Json = row["latency"]
    for kind, row in kinds.items():
        pairs = row["histogram_ns"]
        equal(sum(count for _, count in pairs), row["count"], f"{kind}: in the histogram")
        for key, share in (("p50_s", 0.5), ("p99_s", 0.99), ("p999_s", 0.999), ("max_s", 1.0)):
            each = [ns for ns, count in pairs for _ in range(count)]
            nearest = each[max(0, math.ceil(share * len(each) * (1 - 1e-12)) - 1)]
            least = min(nearest * 1e-9, row["max_s"])
            expect(abs(row[key] - least) <= 1e-12, f"{kind}: {key}: {row[key]}, not {least}")
    return kinds


def call_of(size: int, **changes: object) -> Json:
    """A workload of one rank that moves so many bytes."""
    described = timed([0.0])
    first = described["streams"][0]
    shape: Json = {"type": "byte", "shape": [size], "decomposition": EVEN}
    first["dumps"][0]["variables"] = [first["dumps"][0]["variables"][0] | shape]
    first.update(changes)
    return described


def notes_each_call(player: Player) -> None:
    """By every method, in each repetition anew: as many as the transfer size makes."""
    for method in player.methods(METHODS):
        result = player.play(call_of(100_000), "-a", method, "-t", "1kB", "-i", 2)
        for repetition in (0, 1):
            kinds = latencies(result, 0, repetition)
            equal([*kinds], ["write"], method)
            row = kinds["write"]
            equal((row["count"], row["bytes"]), (100, 100_000), method)


def notes_none(player: Player) -> None:
    """Not with --no-latency."""
    result = player.play(sample("mixed"), *NOW, "--no-latency")
    for row in result["repetitions"][0]["streams"]:
        expect("latency" not in row, row["name"])


def adds_ranks_and_dumps(player: Player) -> None:
    """Their sums are the operations of the data phases, and take no longer than these."""
    for name in ("mixed", "shared", "turns", "read", "grouped"):
        described = sample(name)
        result = player.play(described, *NOW)
        for row in result["repetitions"][0]["streams"]:
            for kind, each in latencies(result, row["name"]).items():
                phases = [p for d in row["dumps"] for p in d["phases"] if p["phase"] == kind]
                where = f"{name}: {row['name']}: {kind}"
                equal(each["bytes"], sum(p["bytes"] for p in phases), where)
                spent_s = sum(p["rank_s"]["mean"] * described["ranks"] for p in phases)
                least_s = sum(ns * count for ns, count in each["histogram_ns"]) * 1e-9
                expect(least_s * 127 / 128 <= spent_s, f"{where}: {least_s} s of {spent_s} s")


def tells_kinds_apart(player: Player) -> None:
    """Writes, reads between them, restarts, and small files from open to close."""
    written = call_of(100_000)
    written["streams"][0]["role"] = "checkpoint"
    result = player.play(written, "-t", 1000, "--restart")
    name = written["streams"][0]["name"]
    equal({k: v["count"] for k, v in latencies(result, name).items()}, {"write": 100})
    restart = latencies(result, f"{name}-restart")
    equal({k: v["count"] for k, v in restart.items()}, {"read": 100})
    lookups: Json = {"every_bytes": 1000, "calls": 2, "transfer_bytes": 100}
    result = player.play(call_of(10_000, lookups=lookups, method="posix"), "-t", 1000)
    kinds = latencies(result)
    equal({k: (v["count"], v["bytes"]) for k, v in kinds.items()}, LOOKED_UP, "lookups")
    files = dump(0.0, variable("v", (40, 1500), type="byte"))
    flood = stream("flood", layout="flood", transfer_bytes=1000, dumps=[files])
    result = player.play(workload(flood, ranks=3))
    counts = {k: (v["count"], v["bytes"]) for k, v in latencies(result).items()}
    equal(counts, {"write": (80, 60_000), "file": (40, 60_000)}, "small files")
    expect(latencies(result)["file"]["p50_s"] > latencies(result)["write"]["p50_s"], "no longer")


LOOKED_UP = {"write": (10, 10_000), "read": (20, 2000)}


def notes_calls_of_the_system(player: Player) -> None:
    """Those that read, write and copy."""
    result = player.play(EVERY)
    phases = [p for d in dumps_of(result) for p in d["phases"]]
    for kind, row in latencies(result).items():
        calls = sum(p["operations"] for p in phases if p["phase"] == kind)
        moved = sum(p["bytes"] for p in phases if p["phase"] == kind)
        equal((row["count"], row["bytes"]), (calls, moved), kind)
    equal([*latencies(result)], ["write", "read"], "kinds")


def waits_for_what_is_begun(player: Player) -> None:
    """A transfer that is begun ends when it was waited for: behind the computing beside it."""
    for method in ("mpiio", "null"):
        described = begun(timed([0.0], "shared"))
        described["streams"][0]["method"] = method
        result = player.play(described)
        count = sum(phases_of(d)["write"] for d in dumps_of(result))
        row = latencies(result)["write"]
        expect(0 < row["count"] <= count, f"{method}: {row['count']} of {count}")
        expect(row["p50_s"] >= 0.01, f"{method}: {row['p50_s']} s, computing takes 0.01 s")


def shows_a_slow_call(player: Player) -> None:
    """One call of a hundred that takes 0.2 s is the maximum, and in no percentile below it."""
    need_injection(player.folder)
    path = player.describe(call_of(100_000, method="posix"))
    delay = ("-e", "inject=pwrite64:delay_enter=200000:when=50")
    slow = traced(player, "pwrite64", *delay)

    def once() -> None:
        outcome = slow.run(0, "-w", path, "-o", "data", "-t", 1000)
        expect(outcome.status == 0, outcome.err)
        result = json.loads((player.folder / "result.json").read_text())
        row = latencies(result)["write"]
        equal(row["count"], 100, "calls")
        expect(0.2 <= row["max_s"] < 5, f"maximum {row['max_s']} s")
        expect(row["p50_s"] < 0.1 and row["p99_s"] < 0.2, f"others: {row}")

    in_time(once)


def series_of(player: Player, described: Json, *options: object) -> tuple[Json, list[Json]]:
    """The result, and the lines of its time series."""
    file = player.folder / "series.jsonl"
    result = player.play(described, "--time-series", file, *options)
    lines = file.read_text().splitlines()
    file.unlink()
    return result, [json.loads(line) for line in lines]


def has_seconds(player: Player) -> None:
    """Lines of all repetitions, ranks and kinds; their sums are those of the result."""
    described = timed([0.0, 1.0, 2.5], "shared")
    described["streams"][0] |= {"role": "checkpoint"}
    in_time(lambda: compare_seconds(*series_of(player, described, "-i", 2, "--restart")))


def compare_seconds(result: Json, lines: list[Json]) -> None:
    """Lines of a time series beside the latencies of the result."""
    for repetition in (0, 1):
        for stream_ in result["repetitions"][repetition]["streams"]:
            for kind, row in latencies(result, stream_["name"], repetition).items():
                key = (repetition, stream_["name"], kind)
                of = [x for x in lines if (x["repetition"], x["stream"], x["operation"]) == key]
                starts = [x["time_s"] for x in of]
                equal(starts, sorted(set(starts)), f"{key}: seconds")
                expect(kind != "write" or {0, 1, 2} <= set(starts), f"{key}: {starts}")
                equal(sum(x["operations"] for x in of), row["count"], f"{key}: operations")
                equal(sum(x["bytes"] for x in of), row["bytes"], f"{key}: bytes")
                equal(max(x["max_s"] for x in of), row["max_s"], f"{key}: maximum")
                for x in of:
                    off = x["bytes_per_s"] * x["interval_s"] - x["bytes"]
                    expect(abs(off) <= 1e-6 * x["bytes"], f"{key}: rate: {x}")
                    shares = [x[share] for share in ("p50_s", "p99_s", "p999_s", "max_s")]
                    expect(shares[0] > 0 and shares == sorted(shares), f"{key}: {x}")
                equal({x["interval_s"] for x in of[:-1]} | {1.0}, {1.0}, f"{key}: intervals")
                ends = [p["last_end_s"] for d in stream_["dumps"] for p in d["phases"]]
                last = of[-1]["time_s"] + of[-1]["interval_s"]
                expect(of[-1]["time_s"] < last <= max(ends) + 1e-3, f"{key}: {last} of {ends}")


def tells_them_in_between(player: Player) -> None:
    """With -v, behind each dump: what 99 % of the calls of rank 0 take so far."""
    path = player.describe(timed([0.0, 0.1], "shared"))
    outcome = player.run(4, "-w", path, "-o", "data", "-v")
    expect(outcome.status == 0, outcome.err)
    lines = [line for line in outcome.err.splitlines() if "p99 of rank 0's calls" in line]
    equal(len(lines), 2, outcome.err)
    row = latencies(json.loads((player.folder / "result.json").read_text()))["write"]
    for line in lines:
        expect(0 < float(line.split()[-2]) <= row["max_s"] + 1e-6, f"{line}: {row['max_s']}")
    outcome = player.run(4, "-w", path, "-o", "data", "-v", "--no-latency")
    expect(outcome.status == 0 and "p99" not in outcome.err, outcome.err)


def has_the_series_whole(player: Player) -> None:
    """The file is there when the run has ended well, and nothing of it when it has not."""
    path = player.describe(timed([0.0, 30.0]))
    series = player.folder / "series.jsonl"
    options = ("-w", path, "-o", "data", "--time-series", series)
    process = player.start(1, *options)
    wait_until(lambda: any(player.folder.glob("series.jsonl.*.part")), "the series in work")
    process.terminate()
    outcome = finish(process)
    expect(outcome.status != 0, outcome.err)
    equal([*player.folder.glob("series.*")], [], "left")
    both = "--time-series and --no-latency exclude each other"
    refused(player, 1, *options, "--no-latency", words=[both])
    refused(player, 1, *options, "-O", series, words=["is the file of --output"])
    series.mkdir()
    refused(
        player, 1, *options, words=["--time-series", "expected the name of a file, found a dir"]
    )
    series.rmdir()
    refused(player, 1, *options[:-1], path, words=["--time-series", "is the workload"])


CASES = named(
    *(notes_each_call, notes_none, adds_ranks_and_dumps, tells_kinds_apart),
    *(notes_calls_of_the_system, waits_for_what_is_begun, shows_a_slow_call),
    *(tells_them_in_between, has_seconds, has_the_series_whole),
)

if __name__ == "__main__":
    sys.exit(main("latency", CASES))

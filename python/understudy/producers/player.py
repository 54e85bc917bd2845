"""The player (understudy-replay): plays a workload."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from understudy.contracts import schema, workload
from understudy.contracts.long_dumps import LongDumps, dump_of
from understudy.contracts.measurement import (
    Deadline,
    Latency,
    Played,
    PlayedDump,
    PlayedRepetition,
    PlayedStream,
    RankRange,
    SlowestHost,
    SlowestRank,
    Verification,
)
from understudy.contracts.run import Sample
from understudy.contracts.workload import Workload
from understudy.errors import UnderstudyError
from understudy.producers._reading import (
    LOWER,
    SECONDS,
    common_samples,
    environment_and_storage,
)

SCHEMA = "understudy/player/1"
LAST_NS = (1 << 42) - 1  # of the last bucket, which all longer latencies are in
ARM = "replica"

Dumps = tuple[PlayedDump, ...]  # of a stream


def read(path: Path) -> Played:
    """The measurement in a file that the player wrote, or wrote as understudy/result/1."""
    row = schema.read(path, "measurement of the player")
    kind = schema.check(row, str(path))
    if kind not in ("player", "result") or "program" in row:
        raise UnderstudyError(f"{path}: expected a measurement of the player, found {kind}")
    return parse(row, str(path))


@lru_cache(maxsize=64)
def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=64)
def _workload(text: str) -> tuple[Workload, dict[str, list[int]]]:
    """Many runs play one workload: itself, and the bytes of each stream's dumps."""
    played = workload.parse(text, "workload")
    return played, {s.name: [d.bytes for d in s.expanded()] for s in played.streams}


def parse(row: dict[str, Any], where: str) -> Played:
    """Parse a JSON object that is valid by its schema."""
    text = row["workload"]
    if _sha256(text) != row["workload_sha256"]:
        raise UnderstudyError(f"{where}: workload_sha256 is not the SHA-256 of the workload in it")
    try:
        played, described_bytes = _workload(text)
    except UnderstudyError:
        workload.parse(text, f"{where}: workload")  # raises it with the place
        raise
    nodes = row["environment"]["nodes"]
    if isinstance(nodes, int) and nodes > played.ranks:  # of result/1
        raise UnderstudyError(
            f"{where}: environment.nodes: expected {played.ranks} at most, the ranks of the "
            f"workload, found {nodes}"
        )
    made = [[_dumps_of(s["dumps"]) for s in r["streams"]] for r in row["repetitions"]]
    if fault := _fault(row, described_bytes, made):
        raise UnderstudyError(f"{where}: {fault}")
    environment, storage = environment_and_storage(row)
    verification = row["verification"]
    return Played(
        workload=played,
        workload_sha256=row["workload_sha256"],
        options=row["options"],
        environment=environment,
        storage=storage,
        striping=tuple(row.get("striping", ())),
        repetitions=tuple(map(_repetition, row["repetitions"], made)),
        verification=Verification(**verification) if verification else None,
    )


def _dumps_of(rows: Any) -> Dumps:
    return rows.dumps if isinstance(rows, LongDumps) else tuple(map(dump_of, rows))


def _fault(
    row: dict[str, Any], described_bytes: dict[str, list[int]], made: Sequence[Sequence[Dumps]]
) -> str:
    """Where a measurement contradicts its own workload, of which the bytes of each stream's dumps
    are known, or itself; empty if nowhere. `made` are its dumps, by repetition and stream."""
    whole = row["options"].get("bytes_scale", 1) == 1
    described = described_bytes if whole else {}
    streams = (s for r in row["repetitions"] for s in r["streams"])
    for stream, dumps in zip(streams, chain.from_iterable(made), strict=True):
        played_bytes = [d.described_bytes for d in dumps]
        expected = described.get(stream["name"], played_bytes)[: len(played_bytes)]
        if played_bytes != expected:
            return (
                f"{stream['name']}: described_bytes: expected {expected[:3]}, as the workload has "
                f"them, found {played_bytes[:3]}"
            )
        for kind, latency in stream.get("latency", {}).items():
            if fault := _histogram_fault(latency):
                return f"{stream['name']}: latency: {kind}: {fault}"
        deadline_s = row["options"].get("deadline_s")
        for dump in dumps:
            if fault := _dump_fault(dump, deadline_s):
                return f"{stream['name']}: dump {dump.dump}: {fault}"
    return ""


def _dump_fault(dump: PlayedDump, deadline_s: float | None) -> str:
    """Where the times of a dump contradict each other; empty if nowhere."""
    for name, most, _, begin, end, _, first_s, moved in dump.phases:
        if begin > end:
            return f"{name}: last_end_s: expected at least {begin:.9g}, its start, found {end:.9g}"
        if first_s is not None and not begin <= first_s <= end:
            return f"{name}: first_end_s: expected {begin:.9g} to {end:.9g}, found {first_s:.9g}"
        if moved is not None and moved > most:
            return f"{name}: first_end_bytes: expected {most} at most, found {moved}"
    if dump.deadline:
        return _deadline_fault(dump.deadline, dump.bytes, deadline_s, dump.elapsed_s)
    return ""


def _deadline_fault(
    deadline: Deadline, moved: int, deadline_s: float | None, elapsed_s: float
) -> str:
    """Where a deadline contradicts the bytes and the seconds of its dump; empty if nowhere."""
    if deadline.stopped_ranks and deadline_s and elapsed_s < deadline_s * (1 - 1e-6):
        return (
            f"deadline: stopped_ranks: expected 0, as the dump took {elapsed_s:.9g} s of "
            f"{deadline_s:g} s, found {deadline.stopped_ranks}"
        )
    if deadline.bytes > moved:
        found = deadline.bytes
        return f"deadline: bytes: expected {moved} at most, as the dump has, found {found}"
    for key in ("rank_bytes", "rank_transfers"):
        of_ranks: RankRange = getattr(deadline, key)
        if of_ranks.min > of_ranks.max:
            both = f"{of_ranks.min} and {of_ranks.max}"
            return f"deadline: {key}: expected min up to max, found {both}"
    return ""


def _histogram_fault(latency: dict[str, Any]) -> str:
    """Where a latency contradicts its own histogram; empty if nowhere."""
    pairs = latency["histogram_ns"]
    if any(before[0] >= after[0] for before, after in pairwise(pairs)):
        return "histogram_ns: expected ascending buckets"
    if any(not _is_edge(ns) for ns, _ in pairs):
        return "histogram_ns: expected buckets of HdrHistogram's layout"
    counted = sum(count for _, count in pairs)
    if counted != latency["count"]:
        return f"count: expected {counted}, as histogram_ns has them, found {latency['count']}"
    known = Latency(**latency)
    for key, share in (("p50_s", 0.5), ("p99_s", 0.99), ("p999_s", 0.999), ("max_s", 1)):
        expected = known.quantile(share)
        is_beyond = key == "max_s" and pairs[-1][0] == LAST_NS
        if not is_beyond and not math.isclose(latency[key], expected, rel_tol=1e-6):
            return f"{key}: expected {expected:.9g}, as histogram_ns has it, found {latency[key]}"
    last = pairs[-1][0]
    if latency["max_s"] * 1e9 < (last - _width(last)) * (1 - 1e-6):
        return (
            f"max_s: expected {(last - _width(last) + 1) / 1e9:.9g} at least, as histogram_ns has "
            f"it, found {latency['max_s']}"
        )
    return ""


def _width(ns: int) -> int:
    """Nanoseconds of the bucket whose largest latency it is: there are 128 in each power of two,
    the smallest of 1 ns."""
    return 1 << max(0, ns.bit_length() - 8)


def _is_edge(ns: int) -> bool:
    """Is it the largest latency of a bucket?"""
    return ns <= LAST_NS and (ns + 1) % _width(ns) == 0


def _repetition(row: dict[str, Any], made: Sequence[Dumps]) -> PlayedRepetition:
    parts: dict[str, Any] = {"streams": tuple(map(_stream, row["streams"], made))}
    if rank := row.get("slowest_rank"):
        parts["slowest_rank"] = SlowestRank(**rank)
    if host := row.get("slowest_host"):
        parts["slowest_host"] = SlowestHost(**host)
    return PlayedRepetition(**(row | parts))


def _stream(row: dict[str, Any], dumps: Dumps) -> PlayedStream:
    latency = {kind: Latency(**row_) for kind, row_ in row.get("latency", {}).items()}
    return PlayedStream(**(row | {"dumps": dumps, "latency": latency}))


def samples(measurement: Played) -> Iterator[Sample]:
    yield from common_samples(measurement.repetitions)
    yield from _latencies(measurement)
    if not measurement.options["time_scale"]:
        return  # without pauses, lateness says nothing
    for repetition in measurement.repetitions:
        for stream in repetition.streams:
            yield Sample(
                metric="max_lateness_s",
                unit=SECONDS,
                better=LOWER,
                stream=stream.name,
                repetition=repetition.repetition,
                value=max(d.lateness_s for d in stream.dumps),
            )


def _latencies(measurement: Played) -> Iterator[Sample]:
    """Of each kind of operation of a stream in each repetition, such as write_latency_p99_s."""
    for repetition in measurement.repetitions:
        for stream in repetition.streams:
            for kind, latency in stream.latency.items():
                for name in ("p50_s", "p99_s", "p999_s", "max_s"):
                    yield Sample(
                        metric=f"{kind}_latency_{name}",
                        unit=SECONDS,
                        better=LOWER,
                        stream=stream.name,
                        repetition=repetition.repetition,
                        value=getattr(latency, name),
                    )

"""What publications claim of a system, held against the records of a sweep.

A claim is a ratio of two mean bandwidths with its bounds: an ordering has one bound, 1. It stands
in configs/references/<system>.yaml under `Claims`, with its source.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.judge import accuracy
from understudy.judge.accuracy import Estimate
from understudy.paths import files

KEY = "Claims"
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
RUNS = 3  # fewer say nothing of the scatter
AS_DESCRIBED = "described"
FIRST, LARGEST = "first", "largest"
BANDWIDTH, DUMP_BANDWIDTH = "bandwidth_bytes_per_s", "dump_bandwidth_bytes_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which runs of the workload; None: any. `dump` is the first or the largest of the stream.
    `method` is by default what a publication measured: that of each stream as described."""

    system: str | None = None
    stripe_count: str | None = None
    method: str | None = None
    nodes: int | None = None
    dump: str | None = None

    def __str__(self) -> str:
        named = {key: getattr(self, key) for key in self.__slots__}
        return ", ".join(f"{key} {v}" for key, v in named.items() if v is not None) or "all runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`of` over `to` lies between `low` and `high`; None: unbounded."""

    name: str
    source: str
    says: str
    system: str
    workload: str
    stream: str
    of: Side
    to: Side
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    claim: Claim
    state: str
    why: str
    ratio: Estimate | None = None

    def __str__(self) -> str:
        return f"{self.claim.name}: {self.state}: {self.why} ({self.claim.source})"


def load(path: Path) -> list[Claim]:
    """The claims in a file of references; an UnderstudyError for what is none."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UnderstudyError(f"{path}: cannot be read: {error}") from None
    rows = found.get(KEY, []) if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise UnderstudyError(f"{path}: {KEY}: expected a list")
    return [_claim(row, f"{path}: {KEY}[{i}]", path.stem) for i, row in enumerate(rows)]


def _claim(row: Any, where: str, system: str) -> Claim:
    texts = ("name", "source", "says", "workload", "stream")
    wanted = {*texts, "of", "to", "ratio"}
    if not isinstance(row, dict) or set(row) != wanted:
        raise UnderstudyError(f"{where}: expected the keys {', '.join(sorted(wanted))}")
    for key in texts:
        if not isinstance(row[key], str) or not row[key]:
            raise UnderstudyError(f"{where}: {key}: expected text, got {row[key]!r}")
    bounds = row["ratio"]
    if (
        not isinstance(bounds, list) or len(bounds) != 2 or bounds == [None, None]
        or not all(b is None or (_is_number(b) and b > 0) for b in bounds)
    ):  # fmt: skip
        raise UnderstudyError(f"{where}: ratio: expected [low, high], of which one may be null")
    return Claim(
        **{key: row[key] for key in texts}, system=system, low=bounds[0], high=bounds[1],
        of=_side(row["of"], f"{where}: of"), to=_side(row["to"], f"{where}: to"),
    )  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _side(row: Any, where: str) -> Side:
    if not isinstance(row, dict) or set(row) - set(Side.__slots__):
        raise UnderstudyError(f"{where}: expected the keys {', '.join(Side.__slots__)}")
    nodes, dump = row.get("nodes"), row.get("dump")
    if nodes is not None and (not isinstance(nodes, int) or isinstance(nodes, bool) or nodes < 1):
        raise UnderstudyError(f"{where}: nodes: expected a number above 0, got {nodes!r}")
    if dump not in (None, FIRST, LARGEST):
        raise UnderstudyError(f"{where}: dump: expected {FIRST} or {LARGEST}, got {dump!r}")
    texts = {key: None if row.get(key) is None else str(row[key]) for key in Side.__slots__[:3]}
    return Side(**texts, nodes=nodes, dump=dump)


def judged(found_runs: Sequence[Run]) -> list[Finding]:
    """Every claim on a system that has runs here."""
    systems = {run.place.system for run in found_runs}
    known = [path for name, path in files("references", ".yaml").items() if name in systems]
    return [judge(claim, found_runs) for path in known for claim in load(path)]


def judge(claim: Claim, found_runs: Iterable[Run]) -> Finding:
    """By the interval of the ratio, over the runs of both sides. A side needs runs of at least
    RUNS sessions. Where runs of a side failed, those that are left may be the lucky ones: nothing
    is decided, nor where their options differ, such as the method or whether they flushed."""
    every = list(found_runs)
    for side in (claim.of, claim.to):
        of_side = [run for run in every if _belongs(run, claim, side)]
        if failed := sum(run.failed for run in of_side):
            why = f"{failed} of {len(of_side)} runs of {claim.workload} with {side} failed"
            return Finding(claim=claim, state=UNDECIDED, why=why)
    sides = [_values(claim, side, every) for side in (claim.of, claim.to)]
    for side, found in zip((claim.of, claim.to), sides, strict=True):
        if len(found) < RUNS:
            why = f"{len(found)} runs of {claim.workload} with {side}, expected at least {RUNS}"
            return Finding(claim=claim, state=UNDECIDED, why=why)
        used = [run for run in every if _belongs(run, claim, side)]
        if (sessions := len({run.identity.session for run in used})) < RUNS:
            why = (
                f"the runs of {claim.workload} with {side} are of {sessions} "
                f"session{'s' * (sessions > 1)}, expected at least {RUNS}"
            )
            return Finding(claim=claim, state=UNDECIDED, why=why)
    options = {
        schema.canonical(run.producer.options): run.producer.options
        for run in every
        if _belongs(run, claim, claim.of) or _belongs(run, claim, claim.to)
    }
    if len(options) > 1:
        differing = ", ".join(runs.differences(list(options.values()))[0])
        why = f"the runs of {claim.workload} differ in their options: {differing}"
        return Finding(claim=claim, state=UNDECIDED, why=why)
    ratio = accuracy.ratio(*([[value] for value in found] for found in sides))
    why = (
        f"{claim.of} over {claim.to}: {ratio.value:.3g} ({ratio.low:.3g} to {ratio.high:.3g}), "
        f"claimed {bounds(claim)}"
    )
    return Finding(claim=claim, state=_state(claim, ratio), why=why, ratio=ratio)


def bounds(claim: Claim) -> str:
    """at least 1.1"""
    if claim.low is None:
        return f"at most {claim.high:g}"
    return f"at least {claim.low:g}" if claim.high is None else f"{claim.low:g} to {claim.high:g}"


def _state(claim: Claim, ratio: Estimate) -> str:
    low = claim.low if claim.low is not None else float("-inf")
    high = claim.high if claim.high is not None else float("inf")
    if low <= ratio.low and ratio.high <= high:
        return HOLDS
    return FAILS if ratio.high < low or ratio.low > high else UNDECIDED


def _values(claim: Claim, side: Side, every: Sequence[Run]) -> list[float]:
    """The mean bandwidth of each run of a side."""
    found = []
    for run in every:
        if _belongs(run, claim, side) and (values := _bandwidths(run, claim.stream, side.dump)):
            found.append(sum(values) / len(values))
    return found


def _belongs(run: Run, claim: Claim, side: Side) -> bool:
    played = run.producer.workload
    scaled = f"{claim.workload}-weak-" if side.nodes is not None else claim.workload
    return (
        played is not None
        and (played.name == claim.workload or played.name.startswith(scaled))
        and (side.nodes is not None or played.name == claim.workload)
        and run.place.system == (side.system or claim.system)
        and side.nodes in (None, len(run.place.nodes))
        and side.stripe_count in (None, stripe_count(run))
        and (side.method or AS_DESCRIBED) == (run.producer.options.get("method") or AS_DESCRIBED)
    )


def stripe_count(run: Run) -> str:
    """What the case asked for, in its words: default, nodes, cores or a number."""
    case = run.identity.case or ""
    for pattern in (r"%point=\S*?\bstripe_count=(\w+)", r"%\.?stripe_count=(\S+)"):
        if found := re.search(pattern, case):
            return found[1]
    count = run.storage.asked.get("stripe_count")
    return "default" if count is None else str(count)


def _bandwidths(run: Run, stream: str, dump: str | None) -> list[float]:
    """Of every repetition."""
    if dump is None:
        return [
            s.value for s in run.samples
            if (s.metric, s.stream) == (BANDWIDTH, stream) and s.value > 0
        ]  # fmt: skip
    found = []
    for number in sorted({s.repetition for s in run.samples if s.repetition is not None}):
        speeds = [
            s.value for s in run.samples
            if (s.metric, s.stream, s.repetition) == (DUMP_BANDWIDTH, stream, number)
        ]  # fmt: skip
        if not speeds:
            continue
        at = 0 if dump == FIRST else _largest(run, stream, number)
        if at < len(speeds) and speeds[at] > 0:
            found.append(speeds[at])
    return found


def _largest(run: Run, stream: str, repetition: int) -> int:
    """The dump with the highest payload, of which the measurement tells."""
    for played in (run.measurement or {})["repetitions"]:
        if played["repetition"] == repetition:
            [one] = [s for s in played["streams"] if s["name"] == stream]
            sizes = [d["bytes"] for d in one["dumps"]]
            return sizes.index(max(sizes))
    return 0

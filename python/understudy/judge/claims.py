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
from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.judge import accuracy, labels
from understudy.judge.accuracy import Estimate
from understudy.judge.conditions import OF_THE_ARM
from understudy.paths import files

KEY = "Claims"
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
RUNS = 3  # fewer say nothing of the scatter
AS_DESCRIBED = "described"
FIRST, LARGEST = "first", "largest"
NUMBERS = ("nodes", "ranks")  # keys of a side
# Options in which two sides differ that differ in a key.
OF_A_SIDE = {
    "method": ("method", "parameters"),
    "parameters": ("parameters",),
    "stripe_count": ("parameters",),
    "arm": OF_THE_ARM,
}
BANDWIDTH, DUMP_BANDWIDTH = "bandwidth_bytes_per_s", "dump_bandwidth_bytes_per_s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """Which runs of the workload; None: any. `dump` is the first or the largest of the stream.
    `method` is by default what a publication measured: that of each stream as described. `arm` is
    the application or its skeleton; a run must have the `parameters` of its ADIOS method.
    """

    system: str | None = None
    stripe_count: str | None = None
    method: str | None = None
    arm: str | None = None
    parameters: str | None = None
    nodes: int | None = None
    ranks: int | None = None
    dump: str | None = None

    def __str__(self) -> str:
        named = {key: getattr(self, key) for key in self.__slots__}
        return ", ".join(f"{key} {v}" for key, v in named.items() if v is not None) or "all runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """`of` over `to` lies between `low` and `high`; None: unbounded. Of programs that write by
    themselves, the workload is the name of the application."""

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
    for key in NUMBERS:
        number = row.get(key)
        if number is not None and (type(number) is not int or number < 1):
            raise UnderstudyError(f"{where}: {key}: expected a number above 0, got {number!r}")
    dump = row.get("dump")
    if dump not in (None, FIRST, LARGEST):
        raise UnderstudyError(f"{where}: dump: expected {FIRST} or {LARGEST}, got {dump!r}")
    texts = [key for key in Side.__slots__ if key not in (*NUMBERS, "dump")]
    named: dict[str, Any] = {key: str(row[key]) for key in texts if row.get(key) is not None}
    return Side(**named, **{key: row.get(key) for key in NUMBERS}, dump=dump)


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
    if differing := _differing(claim, every):
        why = f"the runs of {claim.workload} differ in their options: {', '.join(differing)}"
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


def _differing(claim: Claim, every: Sequence[Run]) -> list[str]:
    """Options in which runs of one side differ, or those of both, but for what the sides name."""
    named = {key for key in OF_A_SIDE if getattr(claim.of, key) != getattr(claim.to, key)}
    apart = {option for key in named for option in OF_A_SIDE[key]}
    sides = [
        [run.producer.options for run in every if _belongs(run, claim, side)]
        for side in (claim.of, claim.to)
    ]
    common = [
        {key: value for key, value in options.items() if key not in apart}
        for side in sides
        for options in side
    ]
    groups = (*sides, common)
    return sorted({key for rows in groups if rows for key in runs.differences(rows)[0]})


def _belongs(run: Run, claim: Claim, side: Side) -> bool:
    options, case = run.producer.options, _case(run)
    name = _name(run)
    scaled = side.nodes is not None or side.ranks is not None
    method = options.get("method") or (case.get("method") if run.measurement is None else None)
    given = labels.parameters(options.get("parameters"))
    return (
        (name == claim.workload or (scaled and name.startswith(f"{claim.workload}-weak-")))
        and run.place.system == (side.system or claim.system)
        and side.nodes in (None, len(run.place.nodes))
        and side.ranks in (None, _ranks(run))
        and side.arm in (None, run.identity.arm)
        and side.stripe_count in (None, stripe_count(run))
        and (side.method or AS_DESCRIBED) == (method or AS_DESCRIBED)
        and (
            run.measurement is None
            or labels.parameters(side.parameters).items() <= given.items()
        )
    )  # fmt: skip


def _case(run: Run) -> dict[str, str]:
    """The parameters of the check's case, of itself and of its fixtures."""
    return dict(re.findall(r"%(?:\w*\.)*(\w+)=(\S+)", run.identity.case or ""))


def _name(run: Run) -> str:
    """The workload or the application; of a run that left no measurement, as its case has it."""
    if "application" in run.producer.options:
        return str(run.producer.options["application"])
    if run.producer.workload is not None:
        return run.producer.workload.name
    case = _case(run)
    return case.get("workload") or case.get("application") or ""


def _ranks(run: Run) -> int | None:
    if run.measurement is not None:
        return int(run.measurement["environment"]["ranks"])
    ranks = _case(run).get("ranks", "")
    return int(ranks) if ranks.isdecimal() else None


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

"""Claims of publications on a system, compared with the records of a sweep.

A claim stands in configs/references/<system>.yaml under `Claims`, with its source. It is a ratio
of two means with its bounds (an ordering has one bound, 1), a mean time with its bounds, or the
share of cases in which a skeleton predicts its application.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from understudy.contracts import human
from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.judge.statistics import paired_errors
from understudy.judge.statistics.conditions import OF_THE_ARM
from understudy.judge.statistics.paired_errors import APPLICATION, CONTROLS, SKELETON, Estimate
from understudy.paths import files
from understudy_papers.judge import claim_sides
from understudy_papers.judge.claim_sides import Side, selected, values

KEY = "Claims"
HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "undecided"
RUNS = 3  # fewer say nothing of the scatter
# Options in which two sides differ that differ in a key.
OF_A_SIDE = {
    "method": ("method", "parameters"),
    "parameters": ("parameters",),
    "stripe_count": ("parameters",),
    "arm": OF_THE_ARM,
}
TEXTS = ("name", "source", "says", "workload", "stream")
KINDS = {"ratio": ("of", "to"), "seconds": ("of",), "share": ("cases", "error")}
CASE_KEYS = ("system", "stripe_count", "method", "parameters", "nodes")
OF_CASES = (*CASE_KEYS, "ranks", "ranks_per_aggregator")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """An application and its skeleton, on each number of ranks; None: on all that were run."""

    side: Side
    ranks: tuple[int, ...] | None
    ranks_per_aggregator: int | None

    def on(self, ranks: int) -> Side:
        """The runs of both on so many ranks."""
        side = replace(self.side, ranks=ranks)
        if self.ranks_per_aggregator is None:
            return side
        many = f"num_aggregators={max(1, ranks // self.ranks_per_aggregator)}"
        given = [side.parameters] if side.parameters else []
        return replace(side, parameters=";".join([*given, many]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A value that lies between `low` and `high`; None: unbounded.

    The value is `of` over `to`; without `to`, it is `of` itself, in seconds; with `cases`, the
    share of them in which the error of the skeleton is at most `error`. Of programs that write by
    themselves, the workload is the name of the application.
    """

    name: str
    source: str
    says: str
    system: str
    workload: str
    stream: str
    of: Side
    low: float | None
    high: float | None
    to: Side | None = None
    cases: tuple[Cases, ...] = ()
    error: float = paired_errors.LIMIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    claim: Claim
    state: str
    why: str
    value: Estimate | None = None

    def __str__(self) -> str:
        return f"{self.claim.name}: {self.state}: {self.why} ({self.claim.source})"


def load(path: Path) -> list[Claim]:
    """The claims in a file of references; an UnderstudyError for what is none."""
    try:
        content = human.loaded(path, yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UnderstudyError(f"{path}: cannot be read: {error}") from None
    rows = content.get(KEY, []) if isinstance(content, dict) else None
    if not isinstance(rows, list):
        raise UnderstudyError(f"{path}: {KEY}: expected a list")
    return [_claim(row, f"{path}: {KEY}[{i}]", path.stem) for i, row in enumerate(rows)]


def _claim(row: Any, where: str, system: str) -> Claim:
    kinds = [kind for kind in KINDS if isinstance(row, dict) and kind in row]
    if len(kinds) != 1:
        raise UnderstudyError(f"{where}: expected one of the keys {', '.join(KINDS)}")
    [kind] = kinds
    wanted = {*TEXTS, *KINDS[kind], kind}
    if set(row) != wanted:
        raise UnderstudyError(
            f"{where}: expected the keys {', '.join(sorted(wanted))}, got {', '.join(sorted(row))}"
        )
    for key in TEXTS:
        if not isinstance(row[key], str) or not row[key]:
            raise UnderstudyError(f"{where}: {key}: expected text, got {row[key]!r}")
    low, high = _bounds(row[kind], f"{where}: {kind}")
    parts: dict[str, Any] = {"of": Side()} | {
        key: claim_sides.side(row[key], f"{where}: {key}") for key in ("of", "to") if key in row
    }
    if kind == "seconds" and not parts["of"].time:
        raise UnderstudyError(f"{where}: of: expected the key time, of which seconds are the unit")
    if kind == "ratio" and bool(parts["of"].time) != bool(parts["to"].time):
        raise UnderstudyError(f"{where}: to: expected the key time on both sides, or on neither")
    if kind == "share":
        parts["cases"] = tuple(_cases(row["cases"], f"{where}: cases"))
        parts["error"] = row["error"]
        if not _is_number(row["error"]) or not 0 < row["error"] < 1:
            raise UnderstudyError(f"{where}: error: expected a fraction, got {row['error']!r}")
    return Claim(**{key: row[key] for key in TEXTS}, system=system, low=low, high=high, **parts)


def _bounds(row: Any, where: str) -> list[float | None]:
    if (
        not isinstance(row, list)
        or len(row) != 2
        or row == [None, None]
        or not all(b is None or (_is_number(b) and b > 0) for b in row)
    ):
        raise UnderstudyError(f"{where}: expected [low, high], of which one may be null")
    return row


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cases(rows: Any, where: str) -> Iterator[Cases]:
    if not isinstance(rows, list) or not rows:
        raise UnderstudyError(f"{where}: expected a list, at least one entry")
    for i, row in enumerate(rows):
        here = f"{where}[{i}]"
        if not isinstance(row, dict) or set(row) - set(OF_CASES):
            raise UnderstudyError(f"{here}: expected the keys {', '.join(OF_CASES)}")
        ranks, share = row.get("ranks"), row.get("ranks_per_aggregator")
        if ranks is not None and (not isinstance(ranks, list) or not ranks):
            raise UnderstudyError(f"{here}: ranks: expected a list, got {ranks!r}")
        for number in (*(ranks or ()), *([] if share is None else [share])):
            if type(number) is not int or number < 1:
                raise UnderstudyError(f"{here}: expected ranks above 0, got {number!r}")
        side = {key: row[key] for key in CASE_KEYS if key in row}
        yield Cases(
            side=claim_sides.side(side, here),
            ranks=ranks and tuple(ranks),
            ranks_per_aggregator=share,
        )


def judged(found_runs: Sequence[Run]) -> list[Finding]:
    """Every claim on a system that has runs here."""
    systems = {run.place.system for run in found_runs}
    paths = [path for name, path in files("references", ".yaml").items() if name in systems]
    return [judge(claim, found_runs) for path in paths for claim in load(path)]


def judge(claim: Claim, found_runs: Iterable[Run]) -> Finding:
    """By the interval of the value, over the runs that the claim selects."""
    every = list(found_runs)
    if claim.cases:
        return _judge_share(claim, every)
    sides = [claim.of, *([claim.to] if claim.to else [])]
    if why := _obstacle(claim, sides, every):
        return Finding(claim=claim, state=UNDECIDED, why=why)
    means = [_means(claim, side, every) for side in sides]
    for side, run_means in zip(sides, means, strict=True):
        if min(run_means) <= 0:
            why = f"a run of {claim.workload} with {side} took 0 s"
            return Finding(claim=claim, state=UNDECIDED, why=why)
    of_runs = [[[value] for value in run_means] for run_means in means]
    value = (
        paired_errors.ratio(of_runs[0], of_runs[1])
        if claim.to
        else paired_errors.average(of_runs[0])
    )
    why = (
        f"{' over '.join(map(str, sides))}: {value.value:.3g} ({value.low:.3g} to "
        f"{value.high:.3g}){'' if claim.to else ' s'}, claimed {bounds(claim)}"
    )
    return Finding(claim=claim, state=_state(claim, value), why=why, value=value)


def bounds(claim: Claim) -> str:
    """at least 1.1"""
    unit = " of the cases" if claim.cases else " s" if claim.to is None else ""
    low, high = (None if b is None else text(claim, b) for b in (claim.low, claim.high))
    if low is None:
        return f"at most {high}{unit}"
    return f"at least {low}{unit}" if high is None else f"{low} to {high}{unit}"


def text(claim: Claim, value: float) -> str:
    """A value of the claim, without its unit; a share is a percentage."""
    return f"{100 * value:.3g}%" if claim.cases else f"{value:.3g}"


def subject(claim: Claim) -> str:
    """Subject of the value, and what it is taken over, for a table."""
    if claim.cases:
        return f"share of cases whose skeleton errs by at most {claim.error:.0%}"
    return f"{claim.of} over {claim.to}" if claim.to else str(claim.of)


def _state(claim: Claim, value: Estimate) -> str:
    low = claim.low if claim.low is not None else float("-inf")
    high = claim.high if claim.high is not None else float("inf")
    if low <= value.low and value.high <= high:
        return HOLDS
    return FAILS if value.high < low or value.low > high else UNDECIDED


def _obstacle(claim: Claim, sides: Sequence[Side], every: Sequence[Run]) -> str:
    """Why nothing is decided; empty where something is. A side needs runs of at least RUNS
    sessions. Where runs of a side failed, those that are left may be the lucky ones: nothing is
    decided, nor where their options differ, such as the method or whether they flushed."""
    of_sides = [selected(claim, side, every) for side in sides]
    for side, used in zip(sides, of_sides, strict=True):
        if failed := sum(run.failed for run in used):
            return f"{failed} of {len(used)} runs of {claim.workload} with {side} failed"
    for side, used in zip(sides, of_sides, strict=True):
        if (n := len(_means(claim, side, used))) < RUNS:
            return f"{n} runs of {claim.workload} with {side}, expected at least {RUNS}"
        if (sessions := len({run.identity.session for run in used})) < RUNS:
            return (
                f"the runs of {claim.workload} with {side} are of {sessions} "
                f"session{'s' * (sessions > 1)}, expected at least {RUNS}"
            )
    if differing := _differing(sides, of_sides):
        return f"the runs of {claim.workload} differ in their options: {', '.join(differing)}"
    return ""


def _means(claim: Claim, side: Side, every: Sequence[Run]) -> list[float]:
    """The mean of each run of a side that has a value."""
    values_of_runs = [values(run, claim.stream, side) for run in selected(claim, side, every)]
    return [sum(of_run) / len(of_run) for of_run in values_of_runs if of_run]


def _differing(sides: Sequence[Side], of_sides: Sequence[Sequence[Run]]) -> list[str]:
    """Options in which runs of one side differ, or those of both, but for what the sides name."""
    named = {key for key in OF_A_SIDE if len({getattr(side, key) for side in sides}) > 1}
    apart = {option for key in named for option in OF_A_SIDE[key]}
    each = [[run.producer.options for run in used] for used in of_sides]
    common = [
        {key: value for key, value in options.items() if key not in apart}
        for rows in each
        for options in rows
    ]
    groups = (*each, common)
    return sorted({key for rows in groups if rows for key in runs.differences(rows)[0]})


def _judge_share(claim: Claim, every: Sequence[Run]) -> Finding:
    """Every case counts, by each statistic of its throughput: one that is not measured, or whose
    interval crosses the limit, may lie within as well as outside."""
    states: list[str] = []
    missing: list[str] = []
    inside = 0
    for case in _each_case(claim, every):
        errors, why = _errors(claim, case, every)
        if why:
            missing.append(why)
            states += [UNDECIDED] * len(paired_errors.OF_THE_PAPER)
        states += [error.state(claim.error) for error in errors]
        inside += paired_errors.count_within((error.error for error in errors), claim.error)
    if not states:
        why = f"no runs of {claim.workload} by an application and its skeleton"
        return Finding(claim=claim, state=UNDECIDED, why=why)
    n, outside = len(states), states.count("outside")
    value = Estimate(value=inside / n, low=states.count("within") / n, high=(n - outside) / n)
    why = (
        f"of {n} cases of {claim.workload} {states.count('within')} are within {claim.error:.0%}, "
        f"{outside} outside and {states.count(UNDECIDED)} undecided: {text(claim, value.low)} to "
        f"{text(claim, value.high)}, claimed {bounds(claim)}"
    )
    if missing:
        why += f"; {len(paired_errors.OF_THE_PAPER) * len(missing)} are not measured, the first: "
        why += missing[0]
    state = _state(claim, value)
    return Finding(claim=claim, state=state, why=why, value=None if missing else value)


def _each_case(claim: Claim, every: Sequence[Run]) -> Iterator[Side]:
    for cases in claim.cases:
        if cases.ranks is not None:
            yield from map(cases.on, cases.ranks)
            continue
        scales = {claim_sides.ranks(run) for run in every}
        for ranks in sorted(n for n in scales if n is not None):
            if selected(claim, cases.on(ranks), every):
                yield cases.on(ranks)


def _errors(
    claim: Claim, case: Side, every: Sequence[Run]
) -> tuple[list[paired_errors.Error], str]:
    """The error of each statistic of the paper, of runs of one round; or why there is none."""
    arms = (APPLICATION, SKELETON, *CONTROLS.values())
    sides = [replace(case, arm=arm) for arm in arms]
    if not all(selected(claim, side, every) for side in sides[2:]):
        sides = sides[:2]
    if why := _obstacle(claim, sides, every):
        return [], why
    rounds = [
        {_round(run): values(run, claim.stream, side) for run in selected(claim, side, every)}
        for side in sides
    ]
    if any(of.keys() != rounds[0].keys() for of in rounds) or any(
        k[-1] is None for k in rounds[0]
    ):
        return [], f"the runs of {claim.workload} with {case} are not in pairs"
    try:
        theirs, ours, *again = ([of_arm[key] for key in rounds[0]] for of_arm in rounds)
        errors = paired_errors.errors(theirs, ours, (again[0], again[1]) if again else None)
    except UnderstudyError as error:
        return [], f"{claim.workload} with {case}: {error}"
    return [errors[name] for name in paired_errors.OF_THE_PAPER], ""


def _round(run: Run) -> tuple[str | None, str | None, str | None, int | None]:
    identity = run.identity
    return identity.session, run.place.job_id, identity.case, identity.round

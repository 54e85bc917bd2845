"""References from records: what a system delivered, and how far its sessions differ."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.contracts.schema import digest

MIB = 1 << 20
SESSIONS = 5  # fewer do not tell how far sessions differ
NARROWEST = 0.05  # of a bound
SIGMAS = 3.0
SIGMA_OF_MAD = 1.4826  # of a normal distribution
NUMBERS = ("ranks", "ranks_per_aggregator")  # parameters of checks that are no text
BANDWIDTH, TIME = "MiB/s", "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value over `sessions`; `bound` is the fraction by which it may be worse, None where there
    are too few of them."""

    name: str
    value: float
    unit: str
    bound: float | None
    sessions: int

    @property
    def entry(self) -> str:
        """As ReFrame has it: value, lower and upper bound, unit."""
        low, high = (None, self.bound) if self.unit == TIME else (-(self.bound or 0), None)
        return json.dumps([float(f"{self.value:.4g}"), low, high, self.unit])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """References of one case of a check; `keys` are its parameters in order. `others` counts runs
    under another condition, which are left out."""

    check: str
    partition: str
    keys: tuple[tuple[str, str], ...]
    references: tuple[Reference, ...]
    others: int


def cases(found: Iterable[Run]) -> list[Case]:
    """Of the runs of checks that did not fail, by check, partition and parameters. Of a case that
    ran under several conditions, those of the latest run count."""
    grouped: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Run]] = {}
    for run in sorted(found, key=lambda r: r.identity.time):
        words = (run.identity.case or "").split()
        if run.failed or not words or not run.place.system or not run.identity.session:
            continue
        place = f"{run.place.system}:{run.place.partition}"
        grouped.setdefault((words[0], place, _parameters(words[1:])), []).append(run)
    made = []
    for (check, place, keys), same in sorted(grouped.items()):
        latest = digest(_alike(same[-1]))
        kept = [run for run in same if digest(_alike(run)) == latest]
        references = tuple(_references(kept))
        if references:
            made.append(
                Case(
                    check=check, partition=place, keys=keys, references=references,
                    others=len(same) - len(kept),
                )
            )  # fmt: skip
    return made


def _alike(run: Run) -> list[object]:
    """What the runs of a case have in common; arms of a pair differ in their program."""
    condition = runs.condition(run)
    return [condition["place"], condition["storage"], condition["producer"]["options"]] + (
        [condition["producer"]["workload"]] if run.producer.name == "player" else []
    )


def _parameters(words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    found = (re.fullmatch(r"%([^=]+)=(.*)", word) for word in words)
    return tuple((m[1].rpartition(".")[2], m[2]) for m in found if m)


def _references(same: Sequence[Run]) -> Iterator[Reference]:
    by_session: dict[str, dict[tuple[str, str], list[float]]] = {}
    for run in same:
        found = by_session.setdefault(str(run.identity.session), {})
        for name, unit, value in values(run):
            found.setdefault((name, unit), []).append(value)
    names = dict.fromkeys(key for found in by_session.values() for key in found)
    for name, unit in names:
        each = [
            median(found[name, unit]) for found in by_session.values() if (name, unit) in found
        ]
        middle = median(each)
        if middle <= 0:
            continue
        yield Reference(
            name=name, unit=unit, value=middle, sessions=len(each),
            bound=_bound(each, middle, unit) if len(each) >= SESSIONS else None,
        )  # fmt: skip


def _bound(each: Sequence[float], middle: float, unit: str) -> float:
    """The fraction by which the worst session fell short, and at least three deviations of all;
    rounded up to a percent, and below 1."""
    deviation = SIGMA_OF_MAD * median(abs(value - middle) for value in each)
    worst = max(each) - middle if unit == TIME else middle - min(each)
    wide = max(SIGMAS * deviation, worst) / middle
    percent = -(-max(wide, NARROWEST) * 100 // 1)
    return float(min(percent, 99.0 if unit != TIME else percent) / 100)


def values(run: Run) -> Iterator[tuple[str, str, float]]:
    """What a site promises, by the names of the performance variables of the checks."""
    producer = run.producer.name
    for sample in run.samples:
        name = sample.stream or ""
        if producer == "player" and sample.metric == "bandwidth_bytes_per_s":
            yield f"{name}_bandwidth", BANDWIDTH, sample.value / MIB
        elif producer == "player" and sample.metric == "elapsed_s":
            yield "elapsed", TIME, sample.value
        elif producer == "ior" and sample.metric == "bandwidth_bytes_per_s":
            yield f"{name}_bandwidth", BANDWIDTH, sample.value / MIB
        elif producer == "mdtest" and sample.metric == "rate_per_s":
            yield f"{name.lower().replace(' ', '_')}_rate", "1/s", sample.value
    speeds = [s.value for s in run.samples if s.metric == "dump_bandwidth_bytes_per_s"]
    if producer == "skeleton" and speeds:
        yield "skeleton_mean", BANDWIDTH, fmean(speeds) / MIB


def text(system: str, found: Sequence[Case], since: str | None) -> str:
    """The references as YAML, for configs/references/<system>.yaml of a site."""
    lines = [
        f"# {system}: written by understudy references from records"
        f"{f' since {since}' if since else ''}. Values are medians over sessions.",
        f"# Bounds: the worst session, and at least {SIGMAS:g} deviations of all (by the median "
        "absolute deviation).",
    ]
    for check in dict.fromkeys(case.check for case in found):
        members = [case for case in found if case.check == check]
        # Cases with other parameters than the first, as of -P, cannot stand under one index.
        index = [key for key, _ in members[0].keys]
        kept = [case for case in members if [key for key, _ in case.keys] == index]
        lines += ["", f"{check}:", f"  $index: {json.dumps(['$partition', *index])}"]
        if len(kept) < len(members):
            lines.append(f"  # {len(members) - len(kept)} cases with other parameters: left out")
        lines += _tree(kept)
    return "\n".join(lines) + "\n"


def _tree(found: Sequence[Case]) -> Iterator[str]:
    before: tuple[str, ...] = ()
    for case in found:
        path = (
            json.dumps(case.partition),
            *(v if k in NUMBERS and v.isdigit() else json.dumps(v) for k, v in case.keys),
        )
        same = 0
        while same < min(len(path), len(before)) and path[same] == before[same]:
            same += 1
        for depth in range(same, len(path)):
            yield f"{'  ' * (depth + 1)}{path[depth]}:"
        before = path
        indent = "  " * (len(path) + 1)
        if case.others:
            yield f"{indent}# {case.others} runs under other conditions: left out"
        for reference in case.references:
            name = json.dumps(reference.name)
            if reference.bound is None:
                yield (
                    f"{indent}# {name}: {reference.value:.4g} {reference.unit}, of too few "
                    f"sessions: {reference.sessions}, expected at least {SESSIONS}"
                )
            else:
                yield f"{indent}{name}: {reference.entry}  # {reference.sessions} sessions"
        if not any(reference.bound is not None for reference in case.references):
            yield f"{indent}{{}}"

"""References from records: what a system delivered, and how far its sessions differ.

A reference holds under one condition, which stands in the index of the file: what was asked for
(place, producer, options, workload, layout). Checks look it up by the record of their own run.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.errors import printable
from understudy.judge.statistics import cache
from understudy.judge.statistics.labels import facts

MIB = 1 << 20
SESSIONS = 5  # fewer do not tell how far sessions differ
NARROWEST, WIDEST = 0.05, 0.5  # of a bound
SIGMAS = 3.0
SIGMA_OF_MAD = 1.4826  # of a normal distribution
BANDWIDTH, TIME = "MiB/s", "s"
INDEX = ("$partition", "condition")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A value over `sessions`; `bound` is the fraction by which it may be worse, `remedy` what
    would make storage serve it where the page cache may have; else empty."""

    name: str
    value: float
    unit: str
    bound: float
    sessions: int
    remedy: str = ""

    @property
    def refused(self) -> str | None:
        """Why nothing can be held against it; None if something can."""
        if self.remedy:
            return f"it may come from the page cache: {self.remedy}"
        if self.sessions < SESSIONS:
            return f"of too few sessions: {self.sessions}, expected at least {SESSIONS}"
        if self.bound > WIDEST:
            return f"sessions differ by {self.bound:.0%}, expected at most {WIDEST:.0%}"
        return None

    @property
    def entry(self) -> str:
        """As ReFrame has it: value, lower and upper bound, unit."""
        low, high = (None, self.bound) if self.unit == TIME else (-self.bound, None)
        return json.dumps([float(f"{self.value:.4g}"), low, high, self.unit])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Runs of one check under one condition. `used` are the runs of its references, `failed` and
    `others` those that are left out; those differ from the latest in `differing`."""

    check: str
    partition: str
    condition: str
    used: tuple[Run, ...]
    failed: tuple[Run, ...]
    others: tuple[Run, ...]
    differing: tuple[str, ...]
    references: tuple[Reference, ...]

    @property
    def words(self) -> str:
        """The condition as text for a person."""
        names = dict.fromkeys(str(run.identity.case).partition(" ")[2] for run in self.used)
        served = {name for run in self.used for name in (run.cache or {}).get("may_serve", ())}
        cached = f"; may come from the page cache: {', '.join(sorted(served))}" if served else ""
        told = facts(asked(self.used[-1]))
        cases = " | ".join(filter(None, names))
        return printable(" ".join(f"{cases}; {told}{cached}".split()))

    @property
    def counts(self) -> str:
        sessions = len({run.identity.session for run in self.used})
        dates = sorted(run.identity.time[:10] for run in self.used)
        return (
            f"{len(self.used)} runs of {sessions} sessions, {dates[0]} to {dates[-1]}, "
            f"{len(self.failed)} failed"
        )


def asked(run: Run) -> runs.Condition:
    """The part of the condition that a case states itself. What it finds, such as software and
    the versions of the file system, is what references are held against."""
    whole = runs.condition(run)
    return {
        "place": whole["place"],
        "producer": whole["producer"],
        "storage": {"asked": whole["storage"]["asked"]},
    }


def condition(run: Run) -> str:
    """The key of a run's references."""
    return runs.short_hash(asked(run))


def cases(all_runs: Iterable[Run]) -> list[Case]:
    """Cases of checks, by check, partition and condition. Runs are pooled where the whole of their
    conditions is equal to that of the latest run."""
    grouped: dict[tuple[str, str, str], list[Run]] = {}
    failed: dict[tuple[str, str, str | None], list[Run]] = {}
    for run in sorted(all_runs, key=lambda r: r.identity.time):
        words = (run.identity.case or "").split()
        if not words or not run.place.system or not run.identity.session:
            continue
        place = f"{run.place.system}:{run.place.partition}"
        if run.fault:
            failed.setdefault((words[0], place, run.identity.case), []).append(run)
        elif any(values(run)):
            grouped.setdefault((words[0], place, condition(run)), []).append(run)
    pooled_cases = []
    for (check, place, key), same in sorted(grouped.items()):
        latest = runs.condition(same[-1])
        used = [run for run in same if runs.condition(run) == latest]
        others = [run for run in same if runs.condition(run) != latest]
        differing = runs.differences([latest, *map(runs.condition, others)])[0]
        named = dict.fromkeys(run.identity.case for run in used)
        lost = [
            run
            for name in named
            for run in failed.get((check, place, name), ())
            if (case_key := (check, place, condition(run))) == (check, place, key)
            or case_key not in grouped  # it failed before all of its condition was known
        ]
        pooled_cases.append(
            Case(
                check=check,
                partition=place,
                condition=key,
                used=tuple(used),
                failed=tuple(lost),
                others=tuple(others),
                differing=tuple(differing),
                references=tuple(_references(used)),
            )
        )
    return pooled_cases


def _references(same: Sequence[Run]) -> Iterator[Reference]:
    by_session: dict[str, dict[tuple[str, str], list[float]]] = {}
    for run in same:
        session_values = by_session.setdefault(str(run.identity.session), {})
        for name, unit, value in values(run):
            session_values.setdefault((name, unit), []).append(value)
    names = dict.fromkeys(key for session_values in by_session.values() for key in session_values)
    remedies = _remedies(same)
    for name, unit in names:
        each = [
            median(session_values[name, unit])
            for session_values in by_session.values()
            if (name, unit) in session_values
        ]
        middle = median(each)
        if middle > 0:
            yield Reference(
                name=name,
                unit=unit,
                value=middle,
                sessions=len(each),
                bound=bound_of(each, middle, unit),
                remedy="; ".join(remedies.get(name, ())),
            )


def _remedies(same: Sequence[Run]) -> dict[str, dict[str, None]]:
    """Remedies, by value, that make storage serve what the page cache may have served."""
    remedies: dict[str, dict[str, None]] = {}
    for run in same:
        served = (run.cache or {}).get("may_serve", ())
        measured = producers.measured(run) if served else None
        if measured is None:
            continue
        for stream in served:
            remedy = cache.remedies(run, measured, (stream,))
            for name in (f"{stream}_bandwidth", "elapsed"):
                remedies.setdefault(name, {})[remedy] = None
    return remedies


def bound_of(each: Sequence[float], middle: float, unit: str) -> float:
    """The fraction by which the worst session fell short, and at least three deviations of all;
    rounded up to a percent."""
    deviation = SIGMA_OF_MAD * median(abs(value - middle) for value in each)
    worst = max(each) - middle if unit == TIME else middle - min(each)
    wide = max(SIGMAS * deviation, worst) / middle
    return float(-(-max(wide, NARROWEST) * 100 // 1) / 100)


def values(run: Run) -> Iterator[tuple[str, str, float]]:
    """Values that a site promises, by the names of the performance variables of the checks."""
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


def text(system: str, pooled_cases: Sequence[Case], since: str | None) -> str:
    """The references as YAML, for configs/references/<system>.yaml of a site."""
    lines = [
        f"# {system}: written by understudy references from records"
        f"{f' since {since}' if since else ''}. Values are medians over sessions.",
        f"# Bounds: the worst session, and at least {SIGMAS:g} deviations of all (by the median "
        "absolute deviation).",
    ]
    for check in dict.fromkeys(case.check for case in pooled_cases):
        named = check if check.isidentifier() else json.dumps(check)
        lines += ["", f"{named}:", f"  $index: {json.dumps(INDEX)}"]
        members = [case for case in pooled_cases if case.check == check]
        for place in dict.fromkeys(case.partition for case in members):
            lines.append(f"  {json.dumps(place)}:")
            for case in (member for member in members if member.partition == place):
                lines += [f"    # {case.words}", f"    # {case.counts}"]
                lines += [f"    {json.dumps(case.condition)}:", *map(_line, case.references)]
                if all(reference.refused for reference in case.references):
                    lines.append("      {}")
    return "\n".join(lines) + "\n"


def _line(reference: Reference) -> str:
    name = json.dumps(reference.name)
    if reference.refused:
        return f"      # {name}: {reference.value:.4g} {reference.unit}, {reference.refused}"
    return f"      {name}: {reference.entry}  # {reference.sessions} sessions"

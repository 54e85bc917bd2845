"""What all cases of a page come to: counts, reasons, what to do next.

A case is what the page judges: a workload in one place under one condition, a skeleton against
its application, an application against its replica, or the overhead of a version of Darshan. A
case of which a run failed is a failed
case, also where another of its runs was measured.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from understudy import units
from understudy.contracts import run as contract
from understudy.contracts.run import Run
from understudy.judge import accuracy, overhead
from understudy.judge.fidelity import transfer
from understudy.judge.page.programs import AccuracyRow
from understudy.judge.statistics import metrics
from understudy.judge.statistics.cache import IN_MEMORY
from understudy.judge.statistics.conditions import (
    AS_DESCRIBED,
    OBSERVED,
    Case,
    Condition,
    Failed,
    Measured,
)
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.units import plural

NO_CASE = "No case was judged."
ACCEPT = "understudy run --mode accept"
SHOWN = 3  # of the names in a sentence
PASS, FAIL, UNDECIDED, FAILED = "pass", "fail", "undecided", "failed"
WORST_FIRST = (FAILED, FAIL, UNDECIDED, PASS)
REPLICA, SKELETON, TRANSFER, OVERHEAD = "replica", "skeleton", "transfer", "overhead"
OTHER = "other"  # nothing tells what would have been judged
CLAIMS = {  # of a kind: what is counted, and what it is held against the original by
    REPLICA: ("replica", "replicas", "the bytes of the original"),
    SKELETON: ("skeleton", "skeletons", "the throughput of the application"),
    TRANSFER: ("transfer", "transfers", "the time in I/O of the application"),
    OVERHEAD: ("version of Darshan", "versions of Darshan", "an overhead"),
    OTHER: ("other case", "other cases", "what was expected"),
}
_OF_ACCURACY = {"within": PASS, "outside": FAIL, "undecided": UNDECIDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case; `anchor` is where the page has it, None: nowhere. `verdict` is that of a workload.
    `why` explains what is not a pass, `limit` is that of its error, `kind` one of CLAIMS.
    `original` has by operation the application's own speed, on its own machine, in bytes/s."""

    name: str
    place: str
    method: str
    label: str
    state: str
    why: str
    anchor: str | None = None
    verdict: metrics.Verdict | None = None
    write: metrics.Spread | None = None
    read: metrics.Spread | None = None
    limit: float = LIMIT_FRACTION
    kind: str = REPLICA
    original: Mapping[str, float] = field(default_factory=dict)
    in_memory: bool = False  # the place is memory
    cached: frozenset[str] = frozenset()  # operations that the page cache can have served

    @property
    def system(self) -> str:
        return self.place.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Every case, worst first. `changed` are conditions that changed between sessions, which are
    never pooled."""

    cases: tuple[Judged, ...]
    changed: tuple[str, ...] = ()
    skipped: tuple[tuple[str, tuple[str, ...]], ...] = ()  # why cases were not run, and which

    def count(self, state: str) -> int:
        return sum(case.state == state for case in self.cases)

    @property
    def not_run(self) -> int:
        return sum(len(names) for _, names in self.skipped)

    @property
    def counts(self) -> str:
        """6 of 10 replicas with the bytes of the original within 10 %, 1 failed, 3 undecided;
        nothing of replicas that all have them."""
        kinds = [(kind, [c for c in self.cases if c.kind == kind]) for kind in CLAIMS]
        news = [(k, own) for k, own in kinds if k != REPLICA or any(c.state != PASS for c in own)]
        return "; ".join(_counted(kind, own) for kind, own in news if own)

    @property
    def divided(self) -> str:
        """Which conditions are shown in parts; empty if none is."""
        if not self.changed:
            return ""
        return (
            f"{_conditions(len(self.changed))} changed between sessions, which are shown apart: "
            f"{named(self.changed, '; ')}."
        )

    @property
    def cached(self) -> int:
        """Speeds that the page cache can have served."""
        return sum(len(case.cached) for case in self.cases)

    @property
    def _verdicts(self) -> list[metrics.Verdict]:
        return [case.verdict for case in self.cases if case.verdict]

    @property
    def flushed(self) -> bool:
        """Whether some case flushed what it wrote, as the mode accept asks for."""
        return any(v.condition.options.get("fsync") for v in self._verdicts)

    @property
    def remedies(self) -> list[str]:
        """What would make storage serve what the page cache can have served."""
        cached = (r for v in self._verdicts for r in v.remedies)
        return list(dict.fromkeys(part for r in cached for part in r.split("; ") if part))

    @property
    def reasons(self) -> list[tuple[str, list[Judged]]]:
        """Why cases failed or are outside, and which; the reason of most first."""
        found: dict[str, list[Judged]] = {}
        for case in self.cases:
            if case.state in (FAILED, FAIL):
                found.setdefault(case.why, []).append(case)
        return sorted(found.items(), key=lambda item: -len(item[1]))

    def next_steps(self, changed: str = "") -> list[tuple[str, str]]:
        """What to do, and the command for it, in this order; none where nothing is open: `changed`
        is the place that changed most."""
        asks, system = self.cached and not self.flushed, quote(changed.partition(":")[0])
        return [
            *self._of_state(
                FAILED, "See why {} failed", "understudy records list --failed --system {system}"
            ),
            *self._of_state(
                FAIL, "See why {} outside", "understudy report RECORDS --workload {name}"
            ),
            *([("Measure storage, not memory", ACCEPT)] if asks else []),
            *self._undecided(),
            *([("See when it changed", f"understudy trend --system {system}")] if changed else []),
        ]

    def _of_state(self, state: str, what: str, command: str) -> list[tuple[str, str]]:
        found = [case for case in self.cases if case.state == state]
        if not found:
            return []
        verb = "" if state == FAILED else " is" if len(found) == 1 else " are"
        first = found[0]
        words = {"system": quote(first.system), "name": quote(first.name.partition(", ")[0])}
        return [(what.format(f"{len(found)}{verb}"), command.format_map(words))]

    def _undecided(self) -> list[tuple[str, str]]:
        kinds = {case.kind for case in self.cases if case.state == UNDECIDED}
        if REPLICA in kinds:  # whose contents were not compared
            return [("Compare the contents", "reframe -c checks/ -r -S verify=1")]
        if kinds:
            return [("Decide with more rounds", "reframe -c checks/ -r -S rounds=24")]
        return []


def summarize(
    cases: Sequence[Case],
    failed: Sequence[Failed] = (),
    accuracies: Iterable[tuple[Case, AccuracyRow]] = (),
    study: transfer.Study | None = None,
    overheads: Sequence[overhead.Case] = (),
    skipped: Iterable[tuple[str, str]] = (),
) -> Summary:
    """All cases of a page. `skipped` has names of cases that were not run, and why."""
    reasons: dict[str, list[str]] = {}
    for name, why in skipped:
        reasons.setdefault(why, []).append(name)
    lost: dict[Key, list[Failed]] = {}
    own = {(job.name, job.place) for job in overheads}
    for one in failed:
        of_study = study is not None and one.run.producer.name == OBSERVED
        of_overhead = overhead.is_of(one.run) and (one.run.identity.case, one.place) in own
        if not of_study and not of_overhead:  # which count their own
            lost.setdefault(_key(one.run, one.place), []).append(one)
    rows: list[Judged] = []
    for case in cases:
        if not case.programs:  # which are judged by their accuracy
            rows += (
                _of_condition(case, one, _taken(one.runs, lost, case.conditions))
                for one in case.conditions
            )
    rows += (_of_accuracy(case, row, _taken(row.runs, lost)) for case, row in accuracies)
    rows += _of_study(study)
    rows += _of_overheads(overheads)
    rows += (_of_failed(same) for same in lost.values())
    order = {state: k for k, state in enumerate(WORST_FIRST)}
    every = [(case, condition) for case in cases for condition in case.conditions]
    return Summary(
        cases=tuple(
            sorted(rows, key=lambda r: (order[r.state], r.name, r.place, r.method, r.label))
        ),
        changed=tuple(
            _called(case, replace(condition, facts=condition.facts[:-1]))
            for case, condition in every
            if condition.part == 1
        ),
        skipped=tuple((why, tuple(names)) for why, names in reasons.items()),
    )


def _counted(kind: str, cases: Sequence[Judged]) -> str:
    singular, plural, what = CLAIMS[kind]
    nouns = singular if len(cases) == 1 else plural
    limits = {case.limit for case in cases}
    limit = f"{limits.pop() * 100:g} %" if len(limits) == 1 else "their limits"
    count = {state: sum(case.state == state for case in cases) for state in WORST_FIRST}
    if kind == OTHER:
        return f"{len(cases)} {nouns} failed"
    parts = [f"{count[PASS]} of {len(cases)} {nouns} with {what} within {limit}"]
    for state, words in ((FAIL, "outside"), (FAILED, "failed"), (UNDECIDED, "undecided")):
        if count[state]:
            parts.append(f"{count[state]} {words}")
    return ", ".join(parts)


def _called(case: Case, condition: Condition) -> str:
    return f"{case.workload.name} {condition.label} on {condition.place}"


def _conditions(count: int) -> str:
    return plural(count, "condition")


def named(names: Sequence[str], comma: str = ", ") -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{comma.join(names[:SHOWN])}{more}"


Key = tuple[str, str]


def _key(run: Run, place: str) -> Key:
    """What all runs of one case have in common, those of all arms and of other sessions."""
    return place, run.identity.case or run.identity.id


def _taken(
    runs: Sequence[Measured], lost: dict[Key, list[Failed]], conditions: Sequence[Condition] = ()
) -> list[Failed]:
    """The failed runs of the cases that these runs are of, which are taken out. Where several
    `conditions` are of one case, as before and after an upgrade, a failed run is taken by that to
    which it is nearest."""
    taken = []
    for key in sorted({_key(run.run, run.place) for run in runs}):
        same = [c for c in conditions if any(_key(r.run, r.place) == key for r in c.runs)]
        for one in lost.pop(key, []):
            if len(same) < 2 or _nearest(one, same).runs == tuple(runs):
                taken.append(one)
            else:
                lost.setdefault(key, []).append(one)
    return taken


def _nearest(one: Failed, conditions: Sequence[Condition]) -> Condition:
    """The condition that differs in fewest keys; of equals the one that ran last."""
    own = contract.condition(one.run)

    def distance(condition: Condition) -> tuple[int, int]:
        other = contract.condition(condition.runs[-1].run)
        return len(contract.differences([own, other])[0]), -conditions.index(condition)

    return min(conditions, key=distance)


def _of_condition(case: Case, condition: Condition, bad: Sequence[Failed]) -> Judged:
    made = metrics.verdict(condition)
    state, why = made.state, ""
    if bad:
        state, why = FAILED, _failures(bad, len(condition.runs))
    elif state == FAIL:
        why = (
            f"{units.exact(made.wrong_bytes)} differ from what was written"
            if made.wrong_bytes
            else f"the payload error is {units.percent(made.error)}"
        )
    elif state == UNDECIDED:
        why = f"contents were compared in {made.verified_runs} of {len(condition.runs)} runs"
    return Judged(
        name=case.workload.name,
        place=condition.place,
        method=condition.method,
        label=condition.label,
        state=state,
        why=why,
        anchor=case.key,
        verdict=made,
        in_memory=condition.runs[0].run.storage.type in IN_MEMORY,
        original={
            name: speed
            for name in metrics.DATA_PHASES
            if (speed := metrics.original_speed(condition, name))
        },
        write=made.write,
        read=made.read,
        cached=made.cached,
    )


def _failures(bad: Sequence[Failed], measured: int) -> str:
    total = len(bad) + measured
    return f"{len(bad)} of {total} runs failed: {_short(bad[0].failure)}"


def _of_accuracy(case: Case, row: AccuracyRow, bad: Sequence[Failed]) -> Judged:
    """By the overall throughput; failed where a run of any arm failed."""
    state, why = _OF_ACCURACY[row.state], row.reason
    if bad:
        state, why = FAILED, _failures(bad, len(row.runs))
    elif row.errors:
        found = row.errors[accuracy.OVERALL]
        noise = (f"{arm} against itself {_interval(c)}" for arm, c in found.controls.items())
        why = ", ".join([f"error of the throughput {_interval(found.error)}", *noise])
    played = metrics.verdict(row.skeleton)
    return Judged(
        name=f"{case.workload.name}, {row.skeleton.ranks} ranks",
        place=row.skeleton.place,
        method=row.skeleton.method,
        label=row.skeleton.label,
        state=state,
        why=why,
        anchor=case.key,
        kind=SKELETON,
        write=played.write,
        read=played.read,
        cached=played.cached,
    )


def _of_study(study: transfer.Study | None) -> Iterator[Judged]:
    for case in study.cases if study else ():
        found = case.state()
        error = case.headline
        why = (
            f"{case.failed} of {case.runs} runs failed"
            if found == transfer.FAILED or error is None
            else f"the replica's time in I/O is {units.percent(error.error.value)} off"
        )
        yield Judged(
            name=case.application,
            place=case.place,
            method=TRANSFER,
            label=TRANSFER,
            kind=TRANSFER,
            state=_OF_ACCURACY.get(found, FAILED),
            why=why,
            anchor=study.key if study else None,
        )


def _of_overheads(jobs: Sequence[overhead.Case]) -> Iterator[Judged]:
    limit = overhead.LIMIT_PERCENT / 100
    for job in jobs:
        for found in job.overheads:
            change, control = found.error.error, found.error.control
            state = _OF_ACCURACY[found.state(limit)]
            why = (
                f"overhead {units.percent(change.value)} ({units.percent(change.low)} to "
                f"{units.percent(change.high)}), control {units.percent(control.low)} to "
                f"{units.percent(control.high)}, limit {overhead.LIMIT_PERCENT:g} %"
            )
            if job.failed:
                state, why = FAILED, f"{job.failed} runs failed"
            yield Judged(
                name=f"Darshan {found.name}",
                place=job.place,
                method=OVERHEAD,
                kind=OVERHEAD,
                label=f"overhead, {job.ranks} ranks",
                state=state,
                why=why,
                anchor="page-overhead",
                limit=limit,
            )


def _interval(found: accuracy.Estimate) -> str:
    return f"{units.percent(found.value)} ({_bounds(found)})"


def _bounds(found: accuracy.Estimate) -> str:
    if not math.isfinite(found.reach):
        return "one round has no interval"
    return f"{units.percent(found.low)} to {units.percent(found.high)}"


def _of_failed(same: Sequence[Failed]) -> Judged:
    one = same[0]
    played = one.run.producer.workload
    words = dict(
        word.lstrip("%").rpartition(".")[2].split("=", 1)
        for word in (one.run.identity.case or "").split()
        if word.startswith("%") and "=" in word
    )
    application = one.run.producer.options.get("application") or words.get("application")
    name = (played.name if played else None) or words.get("workload") or application
    method = str(one.run.producer.options.get("method") or words.get("method") or "unknown")
    method = AS_DESCRIBED if method == "described" else method  # the value of the checks' axis
    return Judged(
        name=str(name or one.run.identity.case or one.run.producer.name),
        place=one.place,
        method=method,
        label=method,
        state=FAILED,
        kind=_kind(one.run),
        why=_failures(same, 0),
        anchor="failures",
    )


def _kind(run: Run) -> str:
    """Of a case of which no run was measured."""
    if overhead.is_of(run):
        return OVERHEAD
    names = {"player": REPLICA, "skeleton": SKELETON, OBSERVED: TRANSFER}
    return REPLICA if run.producer.workload else names.get(run.producer.name, OTHER)


def _short(text: str) -> str:
    return units.shorten(" ".join(text.split()), 160)

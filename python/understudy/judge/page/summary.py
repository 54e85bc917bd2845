"""Summary of all cases of a page: counts, reasons, what to do next.

A case is what the page judges: a workload in one place under one condition, an application
against its replica, and what studies add. A case of which a run failed is a failed case, also if
another of its runs was measured.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from shlex import quote

from understudy import units
from understudy.contracts.run import Run
from understudy.judge.fidelity import transfer
from understudy.judge.page.additions import Addition
from understudy.judge.page.judged import (
    FAIL,
    FAILED,
    PASS,
    REPLICA,
    STATE_OF_ERROR,
    UNDECIDED,
    Judged,
    Lost,
    failures,
)
from understudy.judge.statistics import metrics
from understudy.judge.statistics.cache import IN_MEMORY
from understudy.judge.statistics.conditions import AS_DESCRIBED, OBSERVED, Case, Condition, Failed
from understudy.units import plural

NO_CASE = "No case was judged."
ACCEPT = "understudy run --mode accept"
SHOWN = 3  # of the names in a sentence
WORST_FIRST = (FAILED, FAIL, UNDECIDED, PASS)
TRANSFER = "transfer"
OTHER = "other"  # nothing tells what would have been judged
KINDS = {  # of a kind: what is counted, and what it is held against the original by
    REPLICA: ("replica", "replicas", "the bytes of the original"),
    TRANSFER: ("transfer", "transfers", "the time in I/O of the application"),
    OTHER: ("other case", "other cases", "what was expected"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Every case, worst first. `changed` are conditions that changed between sessions, which are
    never pooled."""

    cases: tuple[Judged, ...]
    kinds: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)  # beside KINDS
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
        words = KINDS | dict(self.kinds)
        kinds = [(kind, [c for c in self.cases if c.kind == kind]) for kind in words]
        news = [
            (k, kind_cases)
            for k, kind_cases in kinds
            if k != REPLICA or any(c.state != PASS for c in kind_cases)
        ]
        return "; ".join(
            _counted(kind, words[kind], kind_cases) for kind, kind_cases in news if kind_cases
        )

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
        """True if some case flushed its writes, as the mode accept asks for."""
        return any(v.condition.options.get("fsync") for v in self._verdicts)

    @property
    def remedies(self) -> list[str]:
        """How to make storage serve what the page cache can have served."""
        cached = (r for v in self._verdicts for r in v.remedies)
        return list(dict.fromkeys(part for r in cached for part in r.split("; ") if part))

    @property
    def reasons(self) -> list[tuple[str, list[Judged]]]:
        """Why cases failed or are outside, and which; the reason of most first."""
        cases_by_reason: dict[str, list[Judged]] = {}
        for case in self.cases:
            if case.state in (FAILED, FAIL):
                cases_by_reason.setdefault(case.why, []).append(case)
        return sorted(cases_by_reason.items(), key=lambda item: -len(item[1]))

    def next_steps(self, changed: str = "") -> list[tuple[str, str]]:
        """Next steps, and the command for each, in this order; none where nothing is open:
        `changed` is the place that changed most."""
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
        cases = [case for case in self.cases if case.state == state]
        if not cases:
            return []
        verb = "" if state == FAILED else " is" if len(cases) == 1 else " are"
        first = cases[0]
        words = {"system": quote(first.system), "name": quote(first.name.partition(", ")[0])}
        return [(what.format(f"{len(cases)}{verb}"), command.format_map(words))]

    def _undecided(self) -> list[tuple[str, str]]:
        kinds = {
            case.kind
            for case in self.cases
            if case.state == UNDECIDED and not (case.verdict and case.verdict.bounded)
        }
        if REPLICA in kinds:  # whose contents were not compared
            return [("Compare the contents", "reframe -c checks/ -r -S verify=1")]
        if kinds:
            return [("Decide with more rounds", "reframe -c checks/ -r -S rounds=24")]
        return []


def summarize(
    cases: Sequence[Case],
    failed: Sequence[Failed] = (),
    study: transfer.Study | None = None,
    skipped: Iterable[tuple[str, str]] = (),
    additions: Sequence[Addition] = (),
    runs: Sequence[Run] = (),
) -> Summary:
    """All cases of a page, those that `additions` judge by the records of all `runs`, too.
    `skipped` has names of cases that were not run, and why."""
    reasons: dict[str, list[str]] = {}
    for name, why in skipped:
        reasons.setdefault(why, []).append(name)
    of_study = study is not None
    lost = Lost(
        failed_run
        for failed_run in failed
        if not (of_study and failed_run.run.producer.name == OBSERVED)
    )
    rows: list[Judged] = []
    for case in cases:
        if not case.programs:  # which a study judges
            rows += (
                _of_condition(case, condition, lost.take(condition.runs, case.conditions))
                for condition in case.conditions
            )
    rows += _of_study(study)
    for addition in additions:
        rows += addition.judged(cases, runs, lost)
    rows += (_of_failed(same, additions) for same in lost.left())
    order = {state: k for k, state in enumerate(WORST_FIRST)}
    every = [(case, condition) for case in cases for condition in case.conditions]
    return Summary(
        cases=tuple(
            sorted(rows, key=lambda r: (order[r.state], r.name, r.place, r.method, r.label))
        ),
        kinds={kind: words for addition in additions for kind, words in addition.KINDS.items()},
        changed=tuple(
            _called(case, replace(condition, facts=condition.facts[:-1]))
            for case, condition in every
            if condition.part == 1
        ),
        skipped=tuple((why, tuple(names)) for why, names in reasons.items()),
    )


def _counted(kind: str, words: tuple[str, str, str], cases: Sequence[Judged]) -> str:
    singular, plural, what = words
    nouns = singular if len(cases) == 1 else plural
    limits = {case.limit for case in cases}
    limit = f"{limits.pop() * 100:g} %" if len(limits) == 1 else "their limits"
    count = {state: sum(case.state == state for case in cases) for state in WORST_FIRST}
    if kind == OTHER:
        return f"{len(cases)} {nouns} failed"
    parts = [f"{count[PASS]} of {len(cases)} {nouns} with {what} within {limit}"]
    for state, name in ((FAIL, "outside"), (FAILED, "failed"), (UNDECIDED, "undecided")):
        if count[state]:
            parts.append(f"{count[state]} {name}")
    return ", ".join(parts)


def _called(case: Case, condition: Condition) -> str:
    return f"{case.workload.name} {condition.label} on {condition.place}"


def _conditions(count: int) -> str:
    return plural(count, "condition")


def named(names: Sequence[str], comma: str = ", ") -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{comma.join(names[:SHOWN])}{more}"


def _of_condition(case: Case, condition: Condition, bad: Sequence[Failed]) -> Judged:
    verdict = metrics.verdict(condition)
    state, why = verdict.state, ""
    if bad:
        state, why = FAILED, failures(bad, len(condition.runs))
    elif state == FAIL:
        why = (
            f"{units.exact(verdict.wrong_bytes)} differ from what was written"
            if verdict.wrong_bytes
            else f"the payload error is {units.percent(verdict.error)}"
        )
    elif state == UNDECIDED and verdict.bounded:
        moved, planned = verdict.bounded
        why = f"bounded by the deadline: {moved:,} of {planned:,.0f} bytes"
    elif state == UNDECIDED:
        why = f"contents were compared in {verdict.verified_runs} of {len(condition.runs)} runs"
    return Judged(
        name=case.workload.name,
        place=condition.place,
        method=condition.method,
        label=condition.label,
        state=state,
        why=why,
        anchor=case.key,
        verdict=verdict,
        in_memory=condition.runs[0].run.storage.type in IN_MEMORY,
        original={
            name: speed
            for name in metrics.DATA_PHASES
            if (speed := metrics.original_speed(condition, name))
        },
        write=verdict.write,
        read=verdict.read,
        cached=verdict.cached,
    )


def _of_study(study: transfer.Study | None) -> Iterator[Judged]:
    for case in study.cases if study else ():
        state = case.state()
        error = case.headline
        why = (
            f"{case.failed} of {case.runs} runs failed"
            if state == transfer.FAILED or error is None
            else f"the replica's time in I/O is {units.percent(error.error.value)} off"
        )
        yield Judged(
            name=case.application,
            place=case.place,
            method=TRANSFER,
            label=TRANSFER,
            kind=TRANSFER,
            state=STATE_OF_ERROR.get(state, FAILED),
            why=why,
            anchor=study.key if study else None,
        )


def _of_failed(same: Sequence[Failed], additions: Sequence[Addition]) -> Judged:
    first = same[0]
    played = first.run.producer.workload
    words = dict(
        word.lstrip("%").rpartition(".")[2].split("=", 1)
        for word in (first.run.identity.case or "").split()
        if word.startswith("%") and "=" in word
    )
    application = first.run.producer.options.get("application") or words.get("application")
    name = (played.name if played else None) or words.get("workload") or application
    method = str(first.run.producer.options.get("method") or words.get("method") or "unknown")
    method = AS_DESCRIBED if method == "described" else method  # the value of the checks' axis
    return Judged(
        name=str(name or first.run.identity.case or first.run.producer.name),
        place=first.place,
        method=method,
        label=method,
        state=FAILED,
        kind=_kind(first.run, additions),
        why=failures(same, 0),
        anchor="failures",
    )


def _kind(run: Run, additions: Sequence[Addition]) -> str:
    """The kind of a case of which no run was measured."""
    for addition in additions:
        if kind := addition.kind(run):
            return kind
    names = {"player": REPLICA, OBSERVED: TRANSFER}
    return REPLICA if run.producer.workload else names.get(run.producer.name, OTHER)

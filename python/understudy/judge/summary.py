"""What all cases of a page come to: a sentence, first look, systems.

A case is what the page judges: a workload in one place under one condition, a skeleton against
its application, an application against its replica, or the overhead of a version of Darshan. A
case of which a run failed is a failed
case, also where another of its runs was measured.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from understudy import units
from understudy.contracts.run import Run
from understudy.judge import accuracy, metrics, overhead, pooling, transfer
from understudy.judge.conditions import OBSERVED, Case, Condition, Failed
from understudy.judge.limits import LIMIT_FRACTION
from understudy.judge.programs import AccuracyRow

SHOWN = 3  # of the names in a sentence
PASS, FAIL, UNDECIDED, FAILED = "pass", "fail", "undecided", "failed"
WORST_FIRST = (FAILED, FAIL, UNDECIDED, PASS)
_OF_ACCURACY = {"within": PASS, "outside": FAIL, "undecided": UNDECIDED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case; `anchor` is where the page has it, None: nowhere. `verdict` is that of a workload.
    `why` explains what is not a pass, `limit` is that of its error."""

    name: str
    place: str
    method: str
    label: str
    state: str
    why: str
    anchor: str | None = None
    verdict: metrics.Verdict | None = None
    limit: float = LIMIT_FRACTION

    @property
    def system(self) -> str:
        return self.place.partition(":")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemRow:
    """The cases of one place, by state."""

    place: str
    cases: int
    states: dict[str, int]
    write: metrics.Spread | None
    read: metrics.Spread | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Every case, worst first. `changed` are conditions that changed between sessions, which are
    never pooled; of `differing`, sessions lie apart by more than the limit."""

    cases: tuple[Judged, ...]
    changed: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()

    def count(self, state: str) -> int:
        return sum(case.state == state for case in self.cases)

    @property
    def sentence(self) -> str:
        """6 of 10 cases are within 10 %, 1 failed, 3 are undecided."""
        if not self.cases:
            return "No case was judged."
        limits = {case.limit for case in self.cases}
        limit = f"{limits.pop() * 100:g} %" if len(limits) == 1 else "their limits"
        total = len(self.cases)
        parts = [f"{self.count(PASS)} of {total} case{'s' * (total != 1)} within {limit}"]
        for state, words in ((FAIL, "outside"), (FAILED, "failed"), (UNDECIDED, "undecided")):
            if n := self.count(state):
                parts.append(f"{n} {words}")
        return " ".join([f"{', '.join(parts)}.", *self._sessions()])

    def _sessions(self) -> Iterator[str]:
        """What the sessions of one condition say of the figures beside them."""
        if self.changed:
            yield (
                f"{_conditions(len(self.changed))} changed between sessions, which are shown "
                f"apart: {_named(self.changed)}."
            )
        if self.differing:
            yield (
                f"The sessions of {_conditions(len(self.differing))} differ by more than "
                f"{LIMIT_FRACTION * 100:g} %, undecided whether by chance: "
                f"{_named(self.differing)}."
            )

    @property
    def state(self) -> str:
        """That of the worst case."""
        return next((s for s in WORST_FIRST if self.count(s)), UNDECIDED)

    @property
    def first(self) -> Judged | None:
        """What to look at first; None where all passed."""
        return self.cases[0] if self.cases and self.state != PASS else None

    @property
    def systems(self) -> list[SystemRow]:
        """A row for each place."""
        rows = []
        for place in sorted({case.place for case in self.cases}):
            here = [case for case in self.cases if case.place == place]
            found = [case.verdict for case in here if case.verdict]
            rows.append(
                SystemRow(
                    place=place,
                    cases=len(here),
                    states={s: sum(c.state == s for c in here) for s in WORST_FIRST},
                    write=metrics.spread(v.write.median for v in found if v.write),
                    read=metrics.spread(v.read.median for v in found if v.read),
                )
            )
        return rows


def summarize(
    cases: Sequence[Case],
    failed: Sequence[Failed] = (),
    accuracies: Iterable[tuple[Case, AccuracyRow]] = (),
    study: transfer.Study | None = None,
    overheads: Sequence[overhead.Case] = (),
) -> Summary:
    """All cases of a page."""
    lost: dict[tuple[str, str, str], list[Failed]] = {}
    own = {(job.name, job.place) for job in overheads}
    for one in failed:
        of_study = study is not None and one.run.producer.name == OBSERVED
        of_overhead = overhead.is_of(one.run) and (one.run.identity.case, one.place) in own
        if not of_study and not of_overhead:  # which count their own
            lost.setdefault(_key(one), []).append(one)
    rows: list[Judged] = []
    for case in cases:
        for condition in case.conditions:
            keys = {_key_of_run(run.run, run.place) for run in condition.runs}
            bad = [one for key in keys for one in lost.get(key, ())]
            for key in keys:
                lost.pop(key, None)
            rows += _of_condition(case, condition, bad)
    rows += (_of_accuracy(case, row) for case, row in accuracies)
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
        differing=tuple(
            f"{_called(case, condition)} ({apart:.0%})"
            for case, condition in every
            if not condition.part and (apart := pooling.differ(condition))
        ),
    )


def _called(case: Case, condition: Condition) -> str:
    return f"{case.workload.name} {condition.label} on {condition.place}"


def _conditions(count: int) -> str:
    return f"{count} condition{'s' * (count != 1)}"


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{'; '.join(names[:SHOWN])}{more}"


def _key(one: Failed) -> tuple[str, str, str]:
    return _key_of_run(one.run, one.place)


def _key_of_run(run: Run, place: str) -> tuple[str, str, str]:
    """What repetitions of one case in other sessions have in common."""
    identity = run.identity
    return place, identity.arm, identity.case or identity.id


def _of_condition(case: Case, condition: Condition, bad: Sequence[Failed]) -> Iterator[Judged]:
    """Nothing of a program, which is judged by its accuracy, unless a run of it failed."""
    made = metrics.verdict(condition)
    if condition.program is not None and not bad:
        return
    state, why = made.state, ""
    if bad:
        total = len(bad) + len(condition.runs)
        state, why = FAILED, f"{len(bad)} of {total} runs failed: {_short(bad[0].failure)}"
    elif state == FAIL:
        why = (
            f"{units.exact(made.wrong_bytes)} differ from what was written"
            if made.wrong_bytes
            else f"the payload error is {units.percent(made.error)}"
        )
    elif state == UNDECIDED:
        why = f"contents were compared in {made.verified_runs} of {len(condition.runs)} runs"
    yield Judged(
        name=case.workload.name, place=condition.place, method=condition.method,
        label=condition.label, state=state, why=why, anchor=case.key,
        verdict=made if condition.program is None else None,
    )  # fmt: skip


def _of_accuracy(case: Case, row: AccuracyRow) -> Judged:
    """The worst of its errors."""
    found = [_OF_ACCURACY[accuracy.state(e)] for e in row.errors.values()]
    state = next((s for s in WORST_FIRST if s in found), UNDECIDED)
    why = row.reason or ", ".join(
        f"error of the {name} {units.percent(e.value)}" for name, e in row.errors.items()
    )
    return Judged(
        name=f"{case.workload.name}, {row.skeleton.ranks} ranks", place=row.skeleton.place,
        method=row.skeleton.method, label=row.skeleton.label, state=state, why=why,
        anchor=case.key,
    )  # fmt: skip


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
            name=case.application, place=case.place, method="transfer", label="transfer",
            state=_OF_ACCURACY.get(found, FAILED), why=why, anchor=study.key if study else None,
        )  # fmt: skip


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
                name=f"Darshan {found.name}", place=job.place, method="overhead",
                label=f"overhead, {job.ranks} ranks", state=state, why=why,
                anchor="page-overhead", limit=limit,
            )  # fmt: skip


def _of_failed(same: Sequence[Failed]) -> Judged:
    one = same[0]
    played = one.run.producer.workload
    words = dict(
        word.lstrip("%").rpartition(".")[2].split("=", 1)
        for word in (one.run.identity.case or "").split()
        if word.startswith("%") and "=" in word
    )
    name = (played.name if played else None) or words.get("workload") or one.run.producer.name
    method = str(one.run.producer.options.get("method") or words.get("method") or "unknown")
    return Judged(
        name=name, place=one.place, method=method, label=method, state=FAILED,
        why=f"{len(same)} of {len(same)} runs failed: {_short(one.failure)}", anchor="failures",
    )  # fmt: skip


def _short(text: str) -> str:
    return units.shorten(" ".join(text.split()), 160)

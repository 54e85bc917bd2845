"""Verdict on the marks of an acceptance: pass, fail or undecided, with the evidence.

A mark passes only by runs that were made, on storage, and in enough sessions; a failed run counts
against it. docs/how-to/accept-a-system.md defines each metric and how it is decided.
One file because a finding is decided by all that may leave runs out of it.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from understudy import producers, units
from understudy.contracts import run as runs
from understudy.contracts.acceptance import EVERY, MDTEST, PLAYER, READ, Acceptance, Mark
from understudy.contracts.acceptance_plan import Plan
from understudy.contracts.measurement import Benchmark, Measurement, Played
from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.judge.acceptance import mark_values, pinned_runs
from understudy.judge.statistics import latencies, night_statistics
from understudy.judge.statistics.cache import IN_MEMORY, memory_of_nodes, remedies, volume
from understudy.judge.statistics.compared_samples import nights_of
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.night_statistics import NIGHTS, Rule, Session
from understudy.units import plural

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
STATES = (FAIL, UNDECIDED, PASS)
LATENCY = "latency"
BY_HAND = "by hand"  # and the day: the session of runs that state none
STORAGE, MEMORY, CACHE, UNKNOWN = (
    "storage",
    "file system in memory",
    "page cache possible",
    "not known",
)
NO_MEMORY = "run it as a check (--mode accept), whose job notes the memory of its nodes"
NO_LEDGER = "no ledger: records that were edited or removed do not show"
SHOWN_KEYS = 3  # in which conditions differ


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run as evidence; `values` of its repetitions, none of a failed run; `remedy` is what would
    make storage serve what the page cache may have served, `small` says that it moves less than
    fits into the memory of its nodes."""

    run: Run
    values: tuple[float, ...]
    failure: str | None
    served: str  # STORAGE, MEMORY, CACHE or UNKNOWN
    remedy: str = ""
    small: str = ""
    night: int = 0  # from 0; sessions that begin within the time that the file states share it

    @property
    def session(self) -> str:
        return _session(self.run)


class _Incomplete(Exception):
    """Why a run does not count for a mark: it did not move what its workload has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A mark and what became of it. `value` with `low` and `high` is in the unit of the mark;
    None where nothing was measured, infinite where there is no bound."""

    mark: Mark
    state: str
    why: str
    rows: tuple[RunRow, ...] = ()
    value: float | None = None
    low: float | None = None
    high: float | None = None
    left_out: tuple[str, ...] = ()  # why runs that the mark is of do not count, of each
    pinned: str | None = None  # SHA-256 of the workload; None where nothing pins it
    missing: tuple[int, ...] = ()  # sessions of the plan without a run of the mark

    @property
    def failed(self) -> int:
        return sum(row.failure is not None for row in self.rows)

    @property
    def nights(self) -> int:
        return len({row.night for row in self.rows if row.failure is None})

    @property
    def omitted(self) -> str:
        """Runs that do not count, in words; empty if there are none."""
        return "; ".join(
            f"{plural(n, 'run')} left out: {why}" for why, n in Counter(self.left_out).items()
        )

    @property
    def served(self) -> str:
        """Source of the values, by the worst of the runs."""
        sources = {row.served for row in self.rows if row.failure is None}
        return next((s for s in (CACHE, UNKNOWN, MEMORY, STORAGE) if s in sources), "not measured")

    @property
    def warning(self) -> str:
        """Warning of runs that move too few bytes, or are not pinned; empty if there is none."""
        small = [row.small for row in self.rows if row.small]
        warnings = []
        if small and not self.mark.cache_allowed:
            warnings.append(
                f"{len(small)} of {len(self.rows)} runs move less than the memory of their nodes, "
                f"such as {small[0]}: caches of servers may take it, too"
            )
        played = {r.run.producer.workload.sha256 for r in self.rows if r.run.producer.workload}
        if self.pinned is None and played:
            warnings.append(
                f"nothing pins what ran: state workload_sha256: {', '.join(sorted(played))}"
            )
        return "; ".join(warnings)

    @property
    def result(self) -> str:
        """The value with its interval, in words."""
        if self.value is None:
            return "not measured"
        text = self.mark.text(self.value)
        if self.low is None or self.high is None:
            return text
        if math.isinf(self.high) and not self.low > 0:
            return f"{text} (no interval)"
        return f"{text} ({self.mark.text(self.low)} to {self.mark.text(self.high)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """All marks of a file. `unclaimed` counts runs of the system that no mark is of, `unread` has
    a message for each record that does not count: it may be one that failed. `span` are the first
    and the last start of all runs."""

    acceptance: Acceptance
    findings: tuple[Finding, ...]
    runs: int
    failed: int
    unclaimed: int
    unread: tuple[str, ...] = ()
    span: tuple[str, str] | None = None
    plan: Plan | None = None
    kept: str = NO_LEDGER  # what shows that records were edited or removed
    nights_differ: float = NIGHTS  # as stated

    @property
    def sessions(self) -> str:
        """Sessions of the plan, in words: planned, run, failed and missing."""
        night = (
            f"those within {units.quantity(self.acceptance.night_s, units.SECONDS)} count once, "
            f"nights differ by {units.share(self.nights_differ)}"
        )
        if self.plan is None:
            return f"{night}; no plan: what was left away does not show"
        names = {self.plan.turn(k): k for k in range(1, self.plan.sessions + 1)}
        rows = [row for f in self.findings for row in f.rows]
        run = {row.run.identity.turn for row in rows}
        failed = {row.run.identity.turn for row in rows if row.failure is not None}
        missing = [str(k) for name, k in names.items() if name not in run]
        told = f"{len(names)} sessions planned, {len(run)} run, {len(failed)} with failed runs, "
        told += f"missing: {', '.join(missing)}" if missing else "none missing"
        return f"{told}; {night}"

    @property
    def state(self) -> str:
        states = {f.state for f in self.findings} | ({UNDECIDED} if self.unread else set())
        return next(s for s in STATES if s in states)

    def count(self, state: str) -> int:
        return sum(finding.state == state for finding in self.findings)

    @property
    def sentence(self) -> str:
        """The verdict, for the head of the page."""
        total = len(self.findings)
        counts = f"{self.count(PASS)} of {total} marks passed"
        more = [
            f"{n} {word}"
            for word, n in (("failed", self.count(FAIL)), ("undecided", self.count(UNDECIDED)))
            if n
        ]
        head = {
            PASS: "Accepted",
            FAIL: "Not accepted",
            UNDECIDED: "Not decided",
        }[self.state]
        left_out = len(self.unread)
        if left_out:
            more.append(f"{plural(left_out, 'fault')} of records")
        return f"{head}: {', '.join([counts, *more])}."

    @property
    def left_out(self) -> int:
        """Runs that a mark is of and that do not count for it, of all marks."""
        return sum(len(finding.left_out) for finding in self.findings)

    @property
    def first(self) -> Finding | None:
        """The mark to look at first; None where all passed."""
        worst = [f for f in self.findings if f.state == self.state]
        return worst[0] if worst and self.state != PASS else None


def judge(
    acceptance: Acceptance,
    all_runs: Iterable[Run],
    unread: Iterable[str] = (),
    plan: Plan | None = None,
    kept: str = NO_LEDGER,
    rule: Rule = Rule(),  # noqa: B008
) -> Verdict:
    """Every mark by the runs that it is of; `unread` and `kept`: see `Verdict`."""
    planned = None
    if plan is not None:
        if plan.marks_sha256 != acceptance.sha256:
            raise UnderstudyError(
                f"{acceptance.path}: is not the file that the plan {plan.name} was made of: "
                f"expected the SHA-256 {plan.marks_sha256}, found {acceptance.sha256}"
            )
        planned = frozenset(plan.turn(k) for k in range(1, plan.sessions + 1))
    counted = [run for run in all_runs if acceptance.covers(run.place.system, run.identity.time)]
    nights = _nights(counted, acceptance.night_s)
    claimed: set[str] = set()
    findings = []
    for mark in acceptance.marks:
        of_mark = [run for run in counted if pinned_runs.matches(run, mark)]
        claimed |= {run.identity.id for run in of_mark}
        pinned = pinned_runs.pin(mark)
        why = {run.identity.id: pinned_runs.differs(run, mark, pinned, planned) for run in of_mark}
        used_runs = [run for run in of_mark if not why[run.identity.id]]
        finding = _finding(mark, used_runs, nights, rule)
        if not used_runs and (lacking := pinned_runs.lacking(mark, counted)):
            finding = replace(finding, why=lacking)
        left_out = (*filter(None, why.values()), *finding.left_out)
        finding = replace(finding, left_out=left_out, pinned=pinned)
        if finding.left_out and not finding.rows:
            finding = replace(finding, why=f"not run; {finding.omitted}")
        findings.append(_whole(finding, plan))
    times = [run.identity.time for run in counted]
    return Verdict(
        acceptance=acceptance,
        findings=tuple(findings),
        runs=len(counted),
        failed=sum(run.failed for run in counted),
        unclaimed=sum(run.identity.id not in claimed for run in counted),
        unread=tuple(unread),
        span=(min(times), max(times)) if times else None,
        plan=plan,
        kept=kept,
        nights_differ=rule.nights,
    )


def _whole(finding: Finding, plan: Plan | None) -> Finding:
    """Turn a pass into undecided if sessions are missing."""
    if plan is None:
        return finding
    run = {row.run.identity.turn for row in finding.rows}
    missing = tuple(k for k in range(1, plan.sessions + 1) if plan.turn(k) not in run)
    finding = replace(finding, missing=missing)
    if not missing or finding.state != PASS:
        return finding
    named = ", ".join(map(str, missing))
    return _with(
        finding, UNDECIDED, f"{finding.why}, but sessions of the plan are missing: {named}"
    )


def _session(run: Run) -> str:
    return run.identity.session or f"{BY_HAND} {run.identity.time[:10]}"


def _nights(all_runs: Iterable[Run], night_s: float) -> Mapping[str, int]:
    """The night of each session."""
    begun: dict[str, str] = {}
    for run in all_runs:
        name = _session(run)
        begun[name] = min(run.identity.time, begun.get(name, run.identity.time))
    return nights_of(begun, night_s / 3600)


# -- values of a run -----------------------------------------------------------------------------


def _row(mark: Mark, run: Run) -> RunRow:
    if run.failed:
        return RunRow(
            run=run,
            values=(),
            served=UNKNOWN,
            failure=run.failure,
        )
    measurement = producers.measured(run)
    assert measurement is not None, "a run that did not fail has a measurement"
    values = tuple(mark_values.VALUES[mark.metric](mark, run, measurement))
    if not values and mark.of.scatters:
        raise UnderstudyError(_nothing(mark, measurement))
    if mark.metric not in _EXACT and mark.program == PLAYER:
        error = next(mark_values.errors(mark, run, measurement), 0.0)
        if error > LIMIT_FRACTION:
            raise _Incomplete(f"moved {error:.0%} more or less than its workload has")
    served, remedy = _served(mark, run, measurement)
    return RunRow(
        run=run,
        values=values,
        failure=None,
        served=served,
        remedy=remedy,
        small="" if served == MEMORY else _small(mark, run, measurement),
    )


def _small(mark: Mark, run: Run, measurement: Measurement) -> str:
    """Bytes and memory, where a run moves fewer than its nodes have."""
    if not mark.of.scatters or mark.program == MDTEST:
        return ""
    memory_bytes = memory_of_nodes(run, measurement)
    moved = volume(measurement, _names(mark, measurement))
    if memory_bytes is None or moved is None or moved >= memory_bytes:
        return ""
    return f"{units.size(moved)} of {units.size(memory_bytes)}"


def _nothing(mark: Mark, measurement: Measurement) -> str:
    if isinstance(measurement, Benchmark):
        operations = {rate.operation for rate in measurement.rates}
        return (
            f"no figure of {mark.operation}, only of {', '.join(sorted(operations)) or 'nothing'}"
        )
    names = {s.name for r in measurement.repetitions for s in r.streams}
    what = f"stream {mark.stream}" if mark.stream else f"stream to {mark.operation or READ}"
    if mark.metric == LATENCY and (names_ := _names(mark, measurement)):
        kinds = latencies.kinds(measurement, names_)
        if kinds:
            return f"no {mark.operation} of the {what}; it has latencies of {', '.join(kinds)}"
        return (
            f"no latency of a {mark.operation} in runs of the {what}: a player of an earlier "
            "version, or --no-latency"
        )
    return f"no {what}; the runs have {', '.join(sorted(names)) or 'none'}"


def _served(mark: Mark, run: Run, measurement: Measurement) -> tuple[str, str]:
    """Source of the values (storage or not), and a remedy."""
    if run.storage.type in IN_MEMORY:
        return MEMORY, ""
    if mark.program == MDTEST or not mark.of.scatters:
        return STORAGE, ""
    if run.cache is None:
        return UNKNOWN, NO_MEMORY
    remedy = remedies(run, measurement, _names(mark, measurement))
    return (CACHE, remedy) if remedy else (STORAGE, "")


def _names(mark: Mark, measurement: Measurement) -> set[str]:
    """The streams, or the operation of a benchmark, that a mark is of."""
    if isinstance(measurement, Benchmark):
        return {str(mark.operation)}
    return {
        s.name
        for s in measurement.repetitions[0].streams
        if mark.metric == "elapsed"
        or (
            mark.metric == "restart"
            and isinstance(measurement, Played)
            and mark_values.restarted(mark, measurement, s.name, s.operation)
        )
        or mark_values.belongs(mark, s.name, s.operation)
    }


# -- verdicts ------------------------------------------------------------------------------------


def _finding(
    mark: Mark, mark_runs: Sequence[Run], nights: Mapping[str, int], rule: Rule
) -> Finding:
    if not mark_runs:
        return Finding(mark=mark, state=UNDECIDED, why="not run")
    some, left_out = [], []
    try:
        for run in mark_runs:
            try:
                some.append(_row(mark, run))
            except _Incomplete as incomplete:
                left_out.append(str(incomplete))
    except UnderstudyError as error:
        bare = tuple(
            RunRow(run=run, values=(), failure=run.failure, served=UNKNOWN) for run in mark_runs
        )
        return Finding(mark=mark, state=UNDECIDED, why=str(error), rows=bare)
    rows = tuple(replace(row, night=nights[row.session]) for row in sorted(some, key=_order))
    finding = replace(_judged_rows(mark, rows, rule), left_out=tuple(left_out))
    if not left_out or finding.state != PASS:
        return finding
    return _with(finding, UNDECIDED, f"{finding.why}, but {left_out[0]}")


def _judged_rows(mark: Mark, rows: tuple[RunRow, ...], rule: Rule) -> Finding:
    """The finding of the runs that count, failed ones too."""
    finding = _judged(mark, rows, rule)
    failed = [row for row in rows if row.failure is not None]
    if len(failed) > mark.allow_failed:
        why = f"{len(failed)} of {len(rows)} runs failed, at most {mark.allow_failed} may"
        return _with(finding, FAIL, f"{why}; {finding.why}" if finding.why else why)
    if failed:
        return _with(
            finding, finding.state, f"{finding.why}; {len(failed)} of {len(rows)} runs failed"
        )
    return finding


def _order(row: RunRow) -> tuple[str, str]:
    return row.run.identity.time, row.run.identity.id


def _with(finding: Finding, state: str, why: str) -> Finding:
    return replace(finding, state=state, why=why)


def _judged(mark: Mark, rows: tuple[RunRow, ...], rule: Rule) -> Finding:
    if not mark.of.scatters:
        return _EXACT[mark.metric](mark, rows)
    good = [row for row in rows if row.failure is None]
    if not good:
        return Finding(mark=mark, state=UNDECIDED, why="no run was measured", rows=rows)
    every = mark.statistic == EVERY
    finding = _every(mark, rows, good) if every else _median(mark, rows, good, rule)
    if finding.state == FAIL and every:
        return finding
    if differing := _differing(good):
        why = f"the runs are of different conditions, they differ in {differing}: use where"
        return _with(finding, UNDECIDED, why)
    if finding.state == PASS and not mark.cache_allowed and finding.served in (CACHE, UNKNOWN):
        words = {CACHE: "the page cache may have served it", UNKNOWN: "cache or storage: unknown"}
        how = "; ".join(dict.fromkeys(row.remedy for row in good if row.served == finding.served))
        return _with(finding, UNDECIDED, f"{finding.why}, but {words[finding.served]}: {how}")
    return finding


def _differing(good: Sequence[RunRow]) -> str:
    """The keys in which conditions differ; empty where they are equal."""
    keys = list(runs.differences([runs.condition(row.run) for row in good])[0])
    more = f" and {len(keys) - SHOWN_KEYS} more" if len(keys) > SHOWN_KEYS else ""
    return ", ".join(keys[:SHOWN_KEYS]) + more


def _every(mark: Mark, rows: tuple[RunRow, ...], good: Sequence[RunRow]) -> Finding:
    """By the worst repetition of all runs."""
    values = [value for row in good for value in row.values]
    worst = min(values) if mark.at_least else max(values)
    reached = worst >= mark.limit if mark.at_least else worst <= mark.limit
    finding = Finding(mark=mark, state=PASS if reached else FAIL, why="", rows=rows, value=worst)
    if not reached:
        missed = sum((v < mark.limit) if mark.at_least else (v > mark.limit) for v in values)
        return _with(finding, FAIL, f"{missed} of {len(values)} repetitions missed {mark.demand}")
    if finding.nights < mark.sessions:
        return _with(finding, UNDECIDED, _few(finding))
    what = f"all {len(values)} repetitions" if len(values) > 1 else "the only repetition"
    return _with(finding, PASS, f"{what} reached {mark.demand}")


def _few(finding: Finding, nights: int | None = None) -> str:
    count = finding.nights if nights is None else nights
    return f"sessions in {plural(count, 'night')}, {finding.mark.sessions} needed"


def _lost(failed: int, runs: int) -> bool:
    """True if the median of runs may be a failed one."""
    from scipy import special

    return bool(special.bdtr(failed, runs, 0.5) > 1 - night_statistics.CONFIDENCE)


def _since(
    mark: Mark,
    sessions: list[Session],
    good: Sequence[RunRow],
    names: Sequence[tuple[int, str]],
    rule: Rule,
) -> tuple[list[Session], str]:
    """The sessions since the last change, and since when that is."""
    points = night_statistics.changes(sessions, rule)
    if not points:
        return sessions, ""
    first, at = [0, *points][-2:]
    begun = min(row.run.identity.time for row in good if row.session == names[at][1])
    step = night_statistics.measure(sessions[first:at], sessions[at:], rule).step
    word = night_statistics.SLOWER if (step < 0) == mark.at_least else night_statistics.FASTER
    return sessions[at:], f" since {begun[:10]} ({word} than before)"


def _median(mark: Mark, rows: tuple[RunRow, ...], good: Sequence[RunRow], rule: Rule) -> Finding:
    """By the interval of the level of nights, or of their variability. A session counts with the
    medians of its runs; of the level, only those since the last change count."""
    varies = mark.metric == "variability"
    session_medians: dict[tuple[int, str], list[float]] = {}
    for row in good:  # by time
        session_medians.setdefault((row.night, row.session), []).append(median(row.values))
    sessions = [
        Session(night=night, values=tuple(medians))
        for (night, _), medians in session_medians.items()
    ]
    finding = Finding(mark=mark, state=UNDECIDED, why="", rows=rows)
    since = ""
    if not varies:
        sessions, since = _since(mark, sessions, good, list(session_medians), rule)
    each = {session.night for session in sessions}
    if varies and len(each) < 2:
        return _with(finding, UNDECIDED, _few(finding))
    value, low, high = (
        night_statistics.variability(sessions)
        if varies
        else night_statistics.level(sessions, rule)
    )
    finding = replace(finding, value=value, low=low, high=high)
    if len(each) < mark.sessions:
        return _with(finding, UNDECIDED, f"{_few(finding, len(each))}{since}")
    surely, never = (
        (low >= mark.limit, high < mark.limit)
        if mark.at_least
        else (high <= mark.limit, low > mark.limit)
    )
    over = f"over {len(each)} nights{since}"
    if surely and finding.failed and not varies and _lost(finding.failed, len(rows)):
        return _with(
            finding, UNDECIDED, "failed runs have no value, and may be those of the median"
        )
    if surely:
        return _with(finding, PASS, f"the interval {over} reaches {mark.demand}")
    if never:
        return _with(finding, FAIL, f"the interval {over} misses {mark.demand}")
    return _with(
        finding, UNDECIDED, f"the interval {over} holds the limit: more nights are needed"
    )


def _fidelity(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    values = [value for row in rows for value in row.values]
    missed = sum(value > mark.limit for value in values)
    bounded = sum(row.failure is None and not row.values for row in rows)
    if not missed and (bounded or not values):
        of = f"a deadline bounded the payload of {plural(bounded, 'run')}"
        why = of if bounded else "no run was measured"
        return Finding(mark=mark, state=UNDECIDED, why=why, rows=rows)
    why = (
        f"the payload of {missed} of {len(values)} runs is farther off"
        if missed
        else f"the payload of all {len(values)} runs is within {mark.text(mark.limit)}"
    )
    return _enough(
        Finding(mark=mark, state=FAIL if missed else PASS, why=why, rows=rows, value=max(values))
    )


def _data_errors(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    good = [row for row in rows if row.failure is None]
    compared = [row for row in good if row.values]
    wrong = sum(value for row in compared for value in row.values)
    finding = Finding(mark=mark, state=PASS, why="", rows=rows, value=wrong if compared else None)
    if wrong > mark.limit:
        return _with(finding, FAIL, f"{mark.text(wrong)} read back differ from what was written")
    if not compared or len(compared) < len(good):
        return _with(
            finding, UNDECIDED, f"contents compared in {len(compared)} of {len(rows)} runs"
        )
    least = min(_compared_bytes(row) for row in compared)
    why = f"no wrong byte in {len(compared)} runs, of at least {units.size(least)} each"
    return _enough(_with(finding, PASS, why))


def _compared_bytes(row: RunRow) -> int:
    measurement = producers.measured(row.run)
    checked = getattr(measurement, "verification", None)
    return int(checked.bytes) if checked else 0


def _survival(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    """Runs that ended well and whose contents were right."""
    good = [row for row in rows if row.failure is None]
    wrong = sum(value for row in good for value in row.values)
    right = sum(bool(row.values) or mark.program != PLAYER for row in good)
    finding = Finding(mark=mark, state=PASS, why="", rows=rows, value=float(right))
    if wrong:
        return _with(finding, FAIL, f"{wrong:,.0f} B read back differ from what was written")
    if len(good) > right:
        return _with(finding, UNDECIDED, f"contents compared in {right} of {len(rows)} runs")
    if right < mark.limit:
        return _with(finding, UNDECIDED, f"{mark.text(right)} survived, {mark.limit:.0f} needed")
    return _enough(_with(finding, PASS, f"all {right} runs ended, with the right contents"))


def _enough(finding: Finding) -> Finding:
    if finding.state == PASS and finding.nights < finding.mark.sessions:
        return _with(finding, UNDECIDED, _few(finding))
    return finding


_EXACT: Mapping[str, Callable[[Mark, tuple[RunRow, ...]], Finding]] = {
    "fidelity": _fidelity,
    "data-errors": _data_errors,
    "survival": _survival,
}

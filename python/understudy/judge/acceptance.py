"""Whether storage reached the marks of an acceptance: pass, fail or undecided, with the evidence.

A mark passes only by runs that were made, on storage, and in enough sessions; a failed run counts
against it. docs/how-to/accept-a-system.md defines each metric and how it is decided.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from understudy import producers, units
from understudy.contracts import run as runs
from understudy.contracts.acceptance import EVERY, MDTEST, PLAYER, READ, Acceptance, Mark
from understudy.contracts.measurement import Benchmark, Measurement, Played, ProgramRun
from understudy.contracts.run import RECORD_FILE, Run
from understudy.errors import UnderstudyError
from understudy.judge import change, metrics
from understudy.judge.cache import IN_MEMORY, memory_of_nodes, remedies, volume
from understudy.judge.conditions import RESTART_SUFFIX, Condition, Measured, described, method_of

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"
STATES = (FAIL, UNDECIDED, PASS)
BY_HAND = "started by hand"  # the session of runs that state none
STORAGE, MEMORY, CACHE, UNKNOWN = (
    "storage", "file system in memory", "page cache possible", "not known",
)  # fmt: skip
NO_MEMORY = "run it as a check (--mode accept), whose job notes the memory of its nodes"
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

    @property
    def session(self) -> str:
        return self.run.identity.session or BY_HAND


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

    @property
    def failed(self) -> int:
        return sum(row.failure is not None for row in self.rows)

    @property
    def sessions(self) -> int:
        return len({row.session for row in self.rows if row.failure is None})

    @property
    def served(self) -> str:
        """What the values are of, by the worst of the runs."""
        found = {row.served for row in self.rows if row.failure is None}
        return next((s for s in (CACHE, UNKNOWN, MEMORY, STORAGE) if s in found), "not measured")

    @property
    def warning(self) -> str:
        """Of runs that move too few bytes; empty if there is none."""
        small = [row.small for row in self.rows if row.small]
        if not small or self.mark.cache_allowed:
            return ""
        return (
            f"{len(small)} of {len(self.rows)} runs move less than the memory of their nodes, "
            f"such as {small[0]}: caches of servers may take it, too"
        )

    @property
    def result(self) -> str:
        """The value with its interval, in words."""
        if self.value is None:
            return "not measured"
        text = self.mark.text(self.value)
        if self.low is None or self.high is None:
            return text
        if math.isinf(self.low) and math.isinf(self.high):
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

    @property
    def state(self) -> str:
        found = {f.state for f in self.findings} | ({UNDECIDED} if self.unread else set())
        return next(s for s in STATES if s in found)

    def count(self, state: str) -> int:
        return sum(finding.state == state for finding in self.findings)

    @property
    def sentence(self) -> str:
        """The verdict, for the head of the page."""
        total = len(self.findings)
        counts = f"{self.count(PASS)} of {total} marks passed"
        more = [f"{n} {word}" for word, n in (
            ("failed", self.count(FAIL)), ("undecided", self.count(UNDECIDED))) if n]  # fmt: skip
        head = {
            PASS: "Accepted", FAIL: "Not accepted", UNDECIDED: "Not decided",
        }[self.state]  # fmt: skip
        left_out = len(self.unread)
        if left_out:
            more.append(f"{left_out} record{'s' * (left_out != 1)} left out")
        return f"{head}: {', '.join([counts, *more])}."

    @property
    def first(self) -> Finding | None:
        """The mark to look at first; None where all passed."""
        worst = [f for f in self.findings if f.state == self.state]
        return worst[0] if worst and self.state != PASS else None


def judge(acceptance: Acceptance, found: Iterable[Run], unread: Iterable[str] = ()) -> Verdict:
    """Every mark by the runs that it is of; `unread`: see `Verdict`."""
    counted = [run for run in found if _counts(run, acceptance)]
    claimed: set[str] = set()
    findings = []
    for mark in acceptance.marks:
        own = [run for run in counted if matches(run, mark)]
        lacking = "" if own else _lacking(mark, counted)
        claimed |= {run.identity.id for run in own}
        findings.append(
            Finding(mark=mark, state=UNDECIDED, why=lacking) if lacking else _finding(mark, own)
        )
    times = [run.identity.time for run in counted]
    return Verdict(
        acceptance=acceptance, findings=tuple(findings), runs=len(counted),
        failed=sum(run.failed for run in counted),
        unclaimed=sum(run.identity.id not in claimed for run in counted), unread=tuple(unread),
        span=(min(times), max(times)) if times else None,
    )  # fmt: skip


def _lacking(mark: Mark, counted: Sequence[Run]) -> str:
    """Keys of `where` that no run has: they may be misspelled."""
    flat = [runs.differences([runs.condition(run), {}])[0] for run in counted if mark.where]
    unknown = [key for key in mark.where if not any(key in row for row in flat)]
    return f"not run; no run has the key {', '.join(unknown)}" if unknown and flat else ""


def _counts(run: Run, acceptance: Acceptance) -> bool:
    """Texts of times compare as times; a date is its midnight."""
    started = run.identity.time
    return (
        run.place.system == acceptance.system
        and (acceptance.since is None or started >= acceptance.since)
        and (acceptance.until is None or started < acceptance.until)
    )


# -- which runs ----------------------------------------------------------------------------------


def matches(run: Run, mark: Mark) -> bool:
    """Whether a mark is of a run. What a failed run left unknown counts as the mark has it."""
    parameters = _parameters(run)
    played = run.producer.workload
    if run.producer.name != mark.program:
        return False
    if played is not None:
        if played.name != mark.workload:
            return False
    elif not _could_play(_asked(run, parameters), mark.workload):
        return False
    known = {
        "partition": run.place.partition,
        "campaign": run.identity.campaign,
        "method": run.producer.options.get("method") or parameters.get("method"),
        "nodes": len(run.place.nodes) or None,
        "ranks": _ranks(run),
    }
    for key, value in known.items():
        wanted = getattr(mark, key)
        unknown = value is None and run.failed and key != "campaign"
        if wanted is not None and value != wanted and not unknown:
            return False
    return not mark.where or _has(run, mark.where)


def _asked(run: Run, parameters: Mapping[str, str]) -> str | None:
    """The workload of the player, or the case of a benchmark, as its measurement would name it."""
    case = parameters.get("case")
    return parameters.get("workload") or (case and f"{run.producer.name}-{case}")


def _could_play(asked: str | None, wanted: str) -> bool:
    """A run that failed before its workload was read: by the parameter of its check, which is
    without the scaling."""
    return asked is not None and (
        wanted == asked or re.fullmatch(rf"{re.escape(asked)}-(weak|strong)-[0-9]+", wanted)
        is not None
    )  # fmt: skip


def _parameters(run: Run) -> dict[str, str]:
    """Those of the check, from the name of the case."""
    found = (re.fullmatch(r"%([^=]+)=(.*)", word) for word in (run.identity.case or "").split())
    return {m[1].rpartition(".")[2]: m[2] for m in found if m}


def _ranks(run: Run) -> int | None:
    each = [node.ranks for node in run.place.nodes]
    return sum(n for n in each if n) if each and all(each) else None


def _has(run: Run, wanted: Mapping[str, Any]) -> bool:
    flat = runs.differences([runs.condition(run), {}])[0]
    return all(
        flat.get(key) == value or (run.failed and key not in flat) for key, value in wanted.items()
    )


# -- values of a run -----------------------------------------------------------------------------


def _row(mark: Mark, run: Run) -> RunRow:
    if run.failed:
        return RunRow(
            run=run, values=(), served=UNKNOWN, failure=run.failure,
        )  # fmt: skip
    measurement = producers.measured(run)
    assert measurement is not None, "a run that did not fail has a measurement"
    values = tuple(_VALUES[mark.metric](mark, run, measurement))
    if not values and mark.of.scatters:
        raise UnderstudyError(_nothing(mark, measurement))
    served, remedy = _served(mark, run, measurement)
    return RunRow(
        run=run, values=values, failure=None, served=served, remedy=remedy,
        small="" if served == MEMORY else _small(mark, run, measurement),
    )  # fmt: skip


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
        known = {rate.operation for rate in measurement.rates}
        return f"no figure of {mark.operation}, only of {', '.join(sorted(known)) or 'nothing'}"
    names = {s.name for r in measurement.repetitions for s in r.streams}
    what = f"stream {mark.stream}" if mark.stream else f"stream to {mark.operation or READ}"
    return f"no {what}; the runs have {', '.join(sorted(names)) or 'none'}"


def _bandwidths(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """Of each repetition, bytes over the sum of the times from first open to last close."""
    if isinstance(measurement, Benchmark):
        for sample in run.samples:
            if (sample.metric, sample.stream) == ("bandwidth_bytes_per_s", mark.operation):
                yield sample.value
        return
    for repetition in measurement.repetitions:
        streams = [s for s in repetition.streams if _belongs(mark, s.name, s.operation)]
        elapsed_s = sum(d.elapsed_s for s in streams for d in s.dumps)
        if elapsed_s > 0:
            yield sum(s.bytes for s in streams) / elapsed_s


def _belongs(mark: Mark, name: str, operation: str) -> bool:
    return name == mark.stream if mark.stream else operation == mark.operation


def _restarts(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """Seconds in which the checkpoints are read back."""
    assert isinstance(measurement, Played), "of the player"
    for repetition in measurement.repetitions:
        streams = [
            s for s in repetition.streams if _restarted(mark, measurement, s.name, s.operation)
        ]
        if streams:
            yield sum(d.elapsed_s for s in streams for d in s.dumps)


def _restarted(mark: Mark, measurement: Played, name: str, operation: str) -> bool:
    if mark.stream:
        return name in (mark.stream, mark.stream + RESTART_SUFFIX) and operation == READ
    stream = described(measurement.workload, name)
    return operation == READ and (
        stream is None or stream.name != name or stream.role == "restart"
    )


def _elapsed(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    assert isinstance(measurement, Played | ProgramRun), "with repetitions"
    yield from (r.elapsed_s for r in measurement.repetitions)


def _rates(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    for sample in run.samples:
        if (sample.metric, sample.stream) == ("rate_per_s", mark.operation):
            yield sample.value


def _errors(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """The size of the worst error of payload."""
    assert isinstance(measurement, Played), "of the player"
    one = Measured(path=Path(RECORD_FILE), run=run, measurement=measurement)
    alone = Condition(
        method=method_of(one), facts=(), place=one.place, arm=run.identity.arm, runs=(one,)
    )
    yield abs(metrics.condition_error(alone))


def _wrong_bytes(mark: Mark, run: Run, measurement: Measurement) -> Iterator[float]:
    """Nothing where no byte was compared."""
    checked = getattr(measurement, "verification", None)
    if checked is not None and checked.bytes:
        yield checked.wrong_bytes


Values = Callable[[Mark, Run, Measurement], Iterator[float]]
_VALUES: Mapping[str, Values] = {
    "bandwidth": _bandwidths, "variability": _bandwidths, "restart": _restarts,
    "elapsed": _elapsed, "metadata-rate": _rates, "fidelity": _errors,
    "data-errors": _wrong_bytes, "survival": _wrong_bytes,
}  # fmt: skip


def _served(mark: Mark, run: Run, measurement: Measurement) -> tuple[str, str]:
    """Whether the values are those of storage, and what would make them so."""
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
        or (mark.metric == "restart" and isinstance(measurement, Played)
            and _restarted(mark, measurement, s.name, s.operation))
        or _belongs(mark, s.name, s.operation)
    }  # fmt: skip


# -- verdicts ------------------------------------------------------------------------------------


def _finding(mark: Mark, own: Sequence[Run]) -> Finding:
    if not own:
        return Finding(mark=mark, state=UNDECIDED, why="not run")
    try:
        rows = tuple(sorted((_row(mark, run) for run in own), key=_order))
    except UnderstudyError as error:
        bare = tuple(
            RunRow(run=run, values=(), failure=run.failure, served=UNKNOWN) for run in own
        )
        return Finding(mark=mark, state=UNDECIDED, why=str(error), rows=bare)
    made = _judged(mark, rows)
    failed = [row for row in rows if row.failure is not None]
    if len(failed) > mark.allow_failed:
        why = f"{len(failed)} of {len(rows)} runs failed, at most {mark.allow_failed} may"
        return _with(made, FAIL, f"{why}; {made.why}" if made.why else why)
    if failed:
        return _with(made, made.state, f"{made.why}; {len(failed)} of {len(rows)} runs failed")
    return made


def _order(row: RunRow) -> tuple[str, str]:
    return row.run.identity.time, row.run.identity.id


def _with(made: Finding, state: str, why: str) -> Finding:
    return Finding(
        mark=made.mark, state=state, why=why, rows=made.rows, value=made.value, low=made.low,
        high=made.high,
    )  # fmt: skip


def _judged(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    if not mark.of.scatters:
        return _EXACT[mark.metric](mark, rows)
    good = [row for row in rows if row.failure is None]
    if not good:
        return Finding(mark=mark, state=UNDECIDED, why="no run was measured", rows=rows)
    made = _every(mark, rows, good) if mark.statistic == EVERY else _median(mark, rows, good)
    if made.state == FAIL and mark.statistic == EVERY:
        return made
    if differing := _differing(good):
        why = f"the runs are of different conditions, they differ in {differing}: use where"
        return _with(made, UNDECIDED, why)
    if made.state == PASS and not mark.cache_allowed and made.served in (CACHE, UNKNOWN):
        words = {CACHE: "the page cache may have served it", UNKNOWN: "cache or storage: unknown"}
        how = "; ".join(dict.fromkeys(row.remedy for row in good if row.served == made.served))
        return _with(made, UNDECIDED, f"{made.why}, but {words[made.served]}: {how}")
    return made


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
    made = Finding(mark=mark, state=PASS if reached else FAIL, why="", rows=rows, value=worst)
    if not reached:
        missed = sum((v < mark.limit) if mark.at_least else (v > mark.limit) for v in values)
        return _with(made, FAIL, f"{missed} of {len(values)} repetitions missed {mark.demand}")
    if made.sessions < mark.sessions:
        return _with(made, UNDECIDED, _few(made))
    return _with(made, PASS, f"all {len(values)} repetitions reached {mark.demand}")


def _few(made: Finding) -> str:
    return f"{made.sessions} session{'s' * (made.sessions != 1)}, {made.mark.sessions} needed"


def _median(mark: Mark, rows: tuple[RunRow, ...], good: Sequence[RunRow]) -> Finding:
    """By the interval of the median over sessions, or of their variability. A session counts with
    the median of its runs, in which failed ones have the worst value."""
    worst = 0.0 if mark.at_least else math.inf
    sessions: dict[str, list[float]] = {}
    for row in rows:
        value = median(row.values) if row.failure is None else worst
        if row.failure is None or mark.metric != "variability":
            sessions.setdefault(row.session, []).append(value)
    each = [median(values) for values in sessions.values()]
    if mark.metric == "variability" and len(each) < 2:
        made = Finding(mark=mark, state=UNDECIDED, why="", rows=rows)
        return _with(made, UNDECIDED, _few(made))
    value, low, high = (
        change.variability(each) if mark.metric == "variability" else change.median_interval(each)
    )
    made = Finding(mark=mark, state=UNDECIDED, why="", rows=rows, value=value, low=low, high=high)
    if made.sessions < mark.sessions:
        return _with(made, UNDECIDED, _few(made))
    surely, never = (
        (low >= mark.limit, high < mark.limit)
        if mark.at_least
        else (high <= mark.limit, low > mark.limit)
    )
    over = f"over {len(each)} sessions"
    if surely:
        return _with(made, PASS, f"the interval {over} reaches {mark.demand}")
    if never:
        return _with(made, FAIL, f"the interval {over} misses {mark.demand}")
    return _with(made, UNDECIDED, f"the interval {over} holds the limit: more sessions are needed")


def _fidelity(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    values = [value for row in rows for value in row.values]
    if not values:
        return Finding(mark=mark, state=UNDECIDED, why="no run was measured", rows=rows)
    missed = sum(value > mark.limit for value in values)
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
    made = Finding(mark=mark, state=PASS, why="", rows=rows, value=wrong if compared else None)
    if wrong > mark.limit:
        return _with(made, FAIL, f"{mark.text(wrong)} read back differ from what was written")
    if not compared or len(compared) < len(good):
        return _with(made, UNDECIDED, f"contents compared in {len(compared)} of {len(rows)} runs")
    return _enough(_with(made, PASS, f"no wrong byte in {len(compared)} runs"))


def _survival(mark: Mark, rows: tuple[RunRow, ...]) -> Finding:
    """Runs that ended well and whose contents were right."""
    good = [row for row in rows if row.failure is None]
    wrong = sum(value for row in good for value in row.values)
    right = sum(bool(row.values) or mark.program != PLAYER for row in good)
    made = Finding(mark=mark, state=PASS, why="", rows=rows, value=float(right))
    if wrong:
        return _with(made, FAIL, f"{wrong:,.0f} B read back differ from what was written")
    if len(good) > right:
        return _with(made, UNDECIDED, f"contents compared in {right} of {len(rows)} runs")
    if right < mark.limit:
        return _with(made, UNDECIDED, f"{mark.text(right)} survived, {mark.limit:.0f} needed")
    return _enough(_with(made, PASS, f"all {right} runs ended, with the right contents"))


def _enough(made: Finding) -> Finding:
    if made.state == PASS and made.sessions < made.mark.sessions:
        return _with(made, UNDECIDED, _few(made))
    return made


_EXACT: Mapping[str, Callable[[Mark, tuple[RunRow, ...]], Finding]] = {
    "fidelity": _fidelity, "data-errors": _data_errors, "survival": _survival,
}  # fmt: skip

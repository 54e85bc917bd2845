"""Figures over sessions: their steps and drifts (`judge.steps`), failures and upgrades."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from understudy.contracts import run as runs
from understudy.contracts.acknowledgements import Acknowledgement
from understudy.judge import labels, rows, steps
from understudy.judge.rows import Row, Series, Subject
from understudy.judge.steps import Fit
from understudy.records.index import Index
from understudy.records.select import Where

VERSIONS = ("software", "storage.client_version", "storage.server_version")
_SUFFIXES = ("_bytes_per_s", "_per_s", "_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """Versions that became others between two sessions of a case: keys and both values."""

    subject: Subject
    before: str
    time: str
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A run that failed; `why` is the first line of its reason."""

    subject: Subject
    time: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A change from one session to the next, in values as they are shown."""

    before: str
    time: str
    low: float  # level before
    high: float  # level after
    known: Acknowledgement | None = None

    @property
    def ratio(self) -> float:
        return self.high / self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a case; `values` and `fitted` are as they are shown."""

    series: Series
    words: str  # what tells it from others of the same case
    fit: Fit
    values: tuple[float, ...]
    fitted: tuple[float, ...]
    changes: tuple[Step, ...]
    failures: tuple[Failure, ...]
    upgrades: tuple[Upgrade, ...]

    @property
    def name(self) -> str:
        series = self.series
        metric = series.metric
        for suffix in _SUFFIXES:
            metric = metric.removesuffix(suffix)
        time = " time" * (series.unit == "s")
        parts = (f"{series.subject}", self.words, series.stream, metric.replace("_", " ") + time)
        return ", ".join(filter(None, parts))

    @property
    def several(self) -> bool:
        """Whether there is more than one session: one alone is no trend."""
        return len(self.values) > 1

    @property
    def drift(self) -> float | None:
        """What a session changes, as a ratio of the values shown."""
        if not self.fit.drifts:
            return None
        return math.exp(self.fit.slope * (-1 if self.series.better == "lower" else 1))

    @property
    def open(self) -> tuple[Step, ...]:
        return tuple(step for step in self.changes if step.known is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Figures with findings first. `runs` counts all, those that failed with them."""

    figures: tuple[Figure, ...]
    failures: tuple[Failure, ...]
    upgrades: tuple[Upgrade, ...]
    runs: int


def of(index: Index, where: Where, known: Sequence[Acknowledgement] = ()) -> Trend:
    """The figures of the runs that a selection names, versions apart."""
    found = rows.read(index, where, across=VERSIONS)
    failures = _failures(found)
    upgrades = _upgrades(index, where)
    every = list(rows.series(found))
    words = _words(index, where, every)
    figures = [
        figure(one, words.get((one.subject, one.condition), ""), failures, upgrades, known)
        for one in every
    ]
    figures.sort(
        key=lambda f: (
            not f.open,
            f.drift is None,
            not f.changes,
            not f.failures,
            len(f.values) == 1,
        )
    )
    return Trend(
        figures=tuple(figures),
        failures=tuple(failures),
        upgrades=tuple(upgrades),
        runs=len(found),
    )


def case(subject: Subject) -> str:
    """How a change of it is acknowledged."""
    return subject.case or subject.workload or subject.producer


def figure(
    one: Series,
    words: str = "",
    failures: Iterable[Failure] = (),
    upgrades: Iterable[Upgrade] = (),
    known: Sequence[Acknowledgement] = (),
) -> Figure:
    """What happened to a series, with what is of its subject."""
    import numpy as np

    levels = np.array([median(values) for values in one.values])
    fit = steps.fit(np.log(levels).tolist())
    fitted = np.exp(np.array(fit.fitted))
    if one.better == "lower":
        levels, fitted = 1 / levels, 1 / fitted
    made = Figure(
        series=one,
        words=words,
        fit=fit,
        values=tuple(levels.tolist()),
        fitted=tuple(fitted.tolist()),
        failures=tuple(f for f in failures if f.subject == one.subject),
        upgrades=tuple(u for u in upgrades if u.subject == one.subject),
        changes=(),
    )
    return replace(made, changes=tuple(_step(made, at, known) for at in fit.told))


def _step(figure: Figure, at: int, known: Sequence[Acknowledgement]) -> Step:
    times = figure.series.times
    # The step may move by one session as more of them are known.
    first, last = times[at - 2][:10], times[min(at + 1, len(times) - 1)][:10]
    subject = figure.series.subject
    fits = (
        one
        for one in known
        if (one.system, one.case) == (subject.system, case(subject)) and first <= one.date <= last
    )
    return Step(
        before=times[at - 1],
        time=times[at],
        low=figure.fitted[at - 1],
        high=figure.fitted[at],
        known=next(fits, None),
    )


def _failures(found: Iterable[Row]) -> list[Failure]:
    made = [
        Failure(subject=row.subject, time=row.time, why=(row.failure.splitlines() or [""])[0])
        for row in found
        if row.failure is not None
    ]
    return sorted(made, key=lambda one: one.time)


def _words(index: Index, where: Where, every: Iterable[Series]) -> dict[tuple[Subject, str], str]:
    """What tells conditions of one subject apart, but for versions."""
    whole: dict[str, runs.Condition] = {}
    for (digest,) in dict.fromkeys(index.select(["condition"], *where)):
        condition = index.condition(digest)
        whole.setdefault(rows.without(condition, VERSIONS), condition)
    of: dict[Subject, dict[str, None]] = {}
    for one in every:
        of.setdefault(one.subject, {})[one.condition] = None
    made: dict[tuple[Subject, str], str] = {}
    for subject, digests in of.items():
        if len(digests) > 1:
            stripped = [_versionless(whole[digest]) for digest in digests]
            methods = [str(c["producer"]["options"].get("method") or "") for c in stripped]
            own = [[method] * (len(set(methods)) > 1) for method in methods]
            same = [str(subject)] * len(digests)
            found = labels.label(stripped, same, [0] * len(digests), own)
            made |= {(subject, d): ", ".join(w) for d, w in zip(digests, found, strict=True)}
    return made


def _versionless(condition: runs.Condition) -> runs.Condition:
    tops = {name for name in VERSIONS if "." not in name}
    made = {key: value for key, value in condition.items() if key not in tops}
    for name in VERSIONS:
        top, _, key = name.partition(".")
        if key and isinstance(made.get(top), dict):
            made[top] = {k: v for k, v in made[top].items() if k != key}
    return made


def _upgrades(index: Index, where: Where) -> list[Upgrade]:
    """What differs in versions from one session to the next of the same subject, by time."""
    last: dict[Subject, tuple[str, str]] = {}
    found = []
    names = tuple(Subject.__slots__)
    for time, digest, *key in index.select(["time", "condition", *names], *where):
        subject = Subject(**dict(zip(names, key, strict=True)))
        before, earlier = last.get(subject, (digest, time))
        last[subject] = digest, time
        if before == digest:
            continue
        first, second = runs.differences([index.condition(before), index.condition(digest)])
        what = tuple(
            f"{name}: {first[name]} \N{RIGHTWARDS ARROW} {second[name]}"
            for name in first
            if rows.below(name, VERSIONS)
        )
        if what:
            found.append(Upgrade(subject=subject, before=earlier, time=time, what=what))
    return found

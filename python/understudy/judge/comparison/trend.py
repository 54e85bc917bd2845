"""Figures over sessions: what changed since when (`night_statistics`), failures and upgrades."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

from understudy.contracts import run as runs
from understudy.contracts.acknowledgements import Acknowledgement
from understudy.judge.statistics import compared_samples, labels, night_statistics
from understudy.judge.statistics.compared_samples import Row, Series, Subject
from understudy.judge.statistics.night_statistics import Rule
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
    """A change from one session to the next, in values as they are shown. `slower`: it is a loss;
    `drift`: the sessions before it, or those after it, were already on the way. `confirmed`: all
    sessions of both sides together tell it, too; else nights differ by more than was stated."""

    before: str
    time: str
    low: float  # level before
    high: float  # level after
    slower: bool
    drift: bool
    confirmed: bool
    acknowledgement: Acknowledgement | None = None

    @property
    def ratio(self) -> float:
        return self.high / self.low


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure of a case; `values` and `fitted`, the level of each session, are as they are
    shown. `points` are the first sessions after changes."""

    series: Series
    words: str  # what tells it from others of the same case
    points: tuple[int, ...]
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
        """True if there is more than one session: one alone is no trend."""
        return len(self.values) > 1

    @property
    def open(self) -> tuple[Step, ...]:
        return tuple(step for step in self.changes if step.acknowledgement is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Figures with findings first. `runs` counts all, those that failed with them."""

    figures: tuple[Figure, ...]
    failures: tuple[Failure, ...]
    upgrades: tuple[Upgrade, ...]
    runs: int

    @property
    def status(self) -> int:
        """For cron: 1 where a loss is open, 3 where nothing can be told of a figure, since there
        is one session of it, or its last run failed; else 0."""
        if any(step.slower for figure in self.figures for step in figure.open):
            return 1
        lost = (f.failures and f.failures[-1].time > f.series.times[-1] for f in self.figures)
        single = (not figure.several for figure in self.figures)
        return 3 if not self.figures or any(lost) or any(single) else 0


def of(
    index: Index,
    where: Where,
    acknowledgements: Sequence[Acknowledgement] = (),
    rule: Rule = Rule(),  # noqa: B008
    metrics: Sequence[str] = (),
) -> Trend:
    """The figures of the runs that a selection names, versions apart: of these metrics, or of the
    rates."""
    [rows] = compared_samples.with_nights(
        [compared_samples.read(index, where, metrics, VERSIONS)], compared_samples.NIGHT_H
    )
    failures = _failures(rows)
    upgrades = _upgrades(index, where)
    every = list(compared_samples.series(rows))
    words = _words(index, where, every)
    figures = [
        figure(
            series,
            words.get((series.subject, series.condition), ""),
            failures,
            upgrades,
            acknowledgements,
            rule,
            count,
        )
        for series, count in zip(every, _counts(rows, every), strict=True)
    ]
    figures.sort(
        key=lambda f: (
            not f.open,
            not f.changes,
            not f.failures,
            len(f.values) == 1,
        )
    )
    return Trend(
        figures=tuple(figures),
        failures=tuple(failures),
        upgrades=tuple(upgrades),
        runs=len(rows),
    )


def _counts(rows: Iterable[Row], every: Sequence[Series]) -> Iterator[list[int]]:
    """How many figures there were at each session: more of them later do not undo a change."""
    begun: dict[str, str] = {}
    for row in rows:
        begun[row.session] = min(row.time, begun.get(row.session, row.time))
    firsts = sorted(begun[series.sessions[0]] for series in every)
    for series in every:
        yield [bisect_right(firsts, begun[session]) for session in series.sessions]


def case(subject: Subject) -> str:
    """How a change of it is acknowledged."""
    return subject.case or subject.workload or subject.producer


def figure(
    series: Series,
    words: str = "",
    failures: Iterable[Failure] = (),
    upgrades: Iterable[Upgrade] = (),
    acknowledgements: Sequence[Acknowledgement] = (),
    rule: Rule = Rule(),  # noqa: B008
    figures: int | Sequence[int] = 1,
) -> Figure:
    """Figure of a series, one of `figures` at each session, with the events of its subject."""
    sessions = series.of_nights
    points = night_statistics.changes(sessions, rule, figures)
    parts = [sessions[a:b] for a, b in pairwise([0, *points, len(sessions)])]
    lower = series.better == "lower"
    shown = [1 / median(s.values) if lower else median(s.values) for s in sessions]
    levels = [night_statistics.level(part, rule)[0] for part in parts]
    levels = [1 / level for level in levels] if lower else levels
    base_figure = Figure(
        series=series,
        words=words,
        points=tuple(points),
        values=tuple(shown),
        fitted=tuple(v for v, part in zip(levels, parts, strict=True) for _ in part),
        failures=tuple(f for f in failures if f.subject == series.subject),
        upgrades=tuple(u for u in upgrades if u.subject == series.subject),
        changes=(),
    )
    changes = zip(points, pairwise(parts), strict=True)
    return replace(
        base_figure,
        changes=tuple(
            _step(base_figure, at, both, acknowledgements, rule) for at, both in changes
        ),
    )


def _step(
    figure: Figure,
    at: int,
    sides: tuple[night_statistics.Side, night_statistics.Side],
    acknowledgements: Sequence[Acknowledgement],
    rule: Rule,
) -> Step:
    times = figure.series.times
    # One of an earlier version may be a session beside it.
    first, last = times[at - 1][:10], times[min(at + 1, len(times) - 1)][:10]
    subject = figure.series.subject
    fits = (
        acknowledgement
        for acknowledgement in acknowledgements
        if (acknowledgement.system, acknowledgement.case) == (subject.system, case(subject))
        and first <= acknowledgement.date <= last
    )
    change = night_statistics.measure(*sides, rule)
    return Step(
        before=times[at - 1],
        time=times[at],
        low=figure.fitted[at - 1],
        high=figure.fitted[at],
        slower=change.step < 0,
        confirmed=night_statistics.decide([change], rule)[0]
        in (night_statistics.SLOWER, night_statistics.FASTER),
        drift=any(
            night_statistics.drifting(side, change, sum(map(len, sides)) / 2) for side in sides
        ),
        acknowledgement=next(fits, None),
    )


def _failures(rows: Iterable[Row]) -> list[Failure]:
    failures = [
        Failure(subject=row.subject, time=row.time, why=(row.failure.splitlines() or [""])[0])
        for row in rows
        if row.failure is not None
    ]
    return sorted(failures, key=lambda failure: failure.time)


def _words(index: Index, where: Where, every: Iterable[Series]) -> dict[tuple[Subject, str], str]:
    """Words that distinguish conditions of one subject, except by versions."""
    whole: dict[str, runs.Condition] = {}
    for (digest,) in dict.fromkeys(index.select(["condition"], *where)):
        condition = index.condition(digest)
        whole.setdefault(compared_samples.without(condition, VERSIONS), condition)
    of: dict[Subject, dict[str, None]] = {}
    for series in every:
        of.setdefault(series.subject, {})[series.condition] = None
    words_by_condition: dict[tuple[Subject, str], str] = {}
    for subject, digests in of.items():
        if len(digests) > 1:
            stripped = [_versionless(whole[digest]) for digest in digests]
            methods = [str(c["producer"]["options"].get("method") or "") for c in stripped]
            method_words = [[method] * (len(set(methods)) > 1) for method in methods]
            same = [str(subject)] * len(digests)
            label_words = labels.label(stripped, same, [0] * len(digests), method_words)
            words_by_condition |= {
                (subject, d): ", ".join(w) for d, w in zip(digests, label_words, strict=True)
            }
    return words_by_condition


def _versionless(condition: runs.Condition) -> runs.Condition:
    tops = {name for name in VERSIONS if "." not in name}
    versionless = {key: value for key, value in condition.items() if key not in tops}
    for name in VERSIONS:
        top, _, key = name.partition(".")
        if key and isinstance(versionless.get(top), dict):
            versionless[top] = {k: v for k, v in versionless[top].items() if k != key}
    return versionless


def _upgrades(index: Index, where: Where) -> list[Upgrade]:
    """Changes of versions between consecutive sessions of the same subject, by time."""
    last: dict[Subject, tuple[str, str]] = {}
    upgrades = []
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
            if compared_samples.below(name, VERSIONS)
        )
        if what:
            upgrades.append(Upgrade(subject=subject, before=earlier, time=time, what=what))
    return upgrades

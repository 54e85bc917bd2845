"""The marks that storage must reach to be accepted (contract: schemas/acceptance.schema.json).

The schema says which keys there are; the table METRICS below, what each metric needs of a mark.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from understudy import units
from understudy.contracts import human, run, schema, workload
from understudy.errors import UnderstudyError

KIND = "acceptance"
PLAYER, MDTEST = "player", "mdtest"
AT_LEAST, AT_MOST = "at_least", "at_most"
MEDIAN, EVERY = "median", "every"
SESSIONS = 5  # of which a median has an interval at all
EVERY_SESSIONS = 3
NIGHT = "6 h"
READ, WRITE = "read", "write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """`unit` of its limit, which is `limit`; `programs` that have it, the default first.

    `scatters`: whether runs of one condition differ, so that sessions are needed to tell.
    """

    unit: str
    limit: str
    programs: tuple[str, ...]
    keys: frozenset[str] = frozenset()
    scatters: bool = True


_ANY = (PLAYER, "skeleton", "application")
_STREAMS = frozenset({"operation", "stream", "cache"})
METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        "bandwidth": Metric(
            unit=units.RATE,
            limit=AT_LEAST,
            programs=(*_ANY, "ior"),
            keys=_STREAMS | {"statistic"},
        ),
        "restart": Metric(
            unit=units.SECONDS,
            limit=AT_MOST,
            programs=(PLAYER,),
            keys=frozenset({"stream", "cache", "statistic"}),
        ),
        "elapsed": Metric(
            unit=units.SECONDS,
            limit=AT_MOST,
            programs=_ANY,
            keys=frozenset({"cache", "statistic"}),
        ),
        "metadata-rate": Metric(
            unit=units.PER_SECOND,
            limit=AT_LEAST,
            programs=(MDTEST,),
            keys=frozenset({"operation", "statistic"}),
        ),
        "dump-time": Metric(
            unit=units.SECONDS,
            limit=AT_MOST,
            programs=_ANY,
            keys=_STREAMS | {"statistic", "quantile"},
        ),
        "rank-time": Metric(
            unit=units.SECONDS,
            limit=AT_MOST,
            programs=_ANY,
            keys=_STREAMS | {"statistic", "quantile"},
        ),
        "latency": Metric(
            unit=units.SECONDS,
            limit=AT_MOST,
            programs=(PLAYER,),
            keys=_STREAMS | {"statistic", "quantile"},
        ),
        "fidelity": Metric(unit=units.FRACTION, limit=AT_MOST, programs=(PLAYER,), scatters=False),
        "variability": Metric(
            unit=units.FRACTION, limit=AT_MOST, programs=(*_ANY, "ior"), keys=_STREAMS
        ),
        "data-errors": Metric(unit=units.BYTES, limit=AT_MOST, programs=(PLAYER,), scatters=False),
        "survival": Metric(
            unit=units.RUNS, limit=AT_LEAST, programs=(*_ANY, "ior", MDTEST), scatters=False
        ),
    }
)
_OF_METRICS = frozenset({"operation", "stream", "cache", "statistic", "quantile"})
QUANTILE = "99 %"
LEAST_QUANTILE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One promise; None: any, but of `campaign`, of which it is none. `limit` is in bytes/s,
    seconds, 1/s, bytes, runs or a fraction."""

    name: str
    source: str
    metric: str
    limit: float
    workload: str
    program: str
    method: str | None = None
    operation: str | None = None
    stream: str | None = None
    partition: str | None = None
    campaign: str | None = None
    nodes: int | None = None
    ranks: int | None = None
    workload_sha256: str | None = None
    where: Mapping[str, Any] = field(default_factory=dict)
    statistic: str = MEDIAN
    quantile: float | None = None  # of dumps or calls of a run; None of metrics without it
    sessions: int = SESSIONS
    allow_failed: int = 0
    cache_allowed: bool = False

    @property
    def of(self) -> Metric:
        return METRICS[self.metric]

    @property
    def at_least(self) -> bool:
        return self.of.limit == AT_LEAST

    def text(self, value: float) -> str:
        """A value of this metric as a person reads it."""
        return units.quantity(value, self.of.unit)

    @property
    def demand(self) -> str:
        """at least 200 MiB/s"""
        return f"{self.of.limit.replace('_', ' ')} {self.text(self.limit)}"

    @property
    def selection(self) -> str:
        """Which runs it is of, in words."""
        named = {
            "program": self.program if self.program != PLAYER else None,
            "quantile": self.quantile and units.quantity(self.quantile, units.FRACTION),
            "method": self.method,
            "operation": self.operation,
            "stream": self.stream,
            "partition": self.partition,
            "campaign": self.campaign,
            "nodes": self.nodes,
            "ranks": self.ranks,
            **self.where,
        }
        words = [f"{key} {value}" for key, value in named.items() if value is not None]
        return ", ".join([self.workload, *words])


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """The marks of one file; `sha256` is of its bytes. Runs count that start from `since` on and
    before `until`; sessions that begin within `night_s` share the night."""

    path: Path
    sha256: str
    title: str
    system: str
    supplier: str
    customer: str
    since: str
    until: str
    night_s: float
    marks: tuple[Mark, ...]

    def covers(self, system: str | None, time: str) -> bool:
        """True if runs of a system that started at `time` count. Texts of times compare as times;
        a date is its midnight."""
        return system == self.system and self.since <= time < self.until


def load(path: Path) -> Acceptance:
    """The marks in a file; an UnderstudyError names the file, and of each mistake the key and what
    was expected."""
    row, data, faults = human.read(path, KIND)
    wrong = {steps[1] for steps, _ in faults if steps[:1] == ("marks",) and len(steps) > 1}
    whole = isinstance(row.get("marks"), list)
    for i, mark in enumerate(row["marks"] if whole else ()):
        if i not in wrong:
            faults += ((("marks", i, key), message) for key, message in _mistakes(mark))
            earlier = [m.get("name") for m in row["marks"][:i] if isinstance(m, dict)]
            if mark["name"] in earlier:
                faults.append((("marks", i, "name"), "is the name of another mark"))
    if {"since", "until", "night"}.isdisjoint(steps[0] for steps, _ in faults if steps):
        faults += (((key,), message) for key, message in _wrong_times(row))
    if faults:
        raise human.mistakes(path, row, faults)
    return Acceptance(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        marks=tuple(map(_mark, row["marks"])),
        night_s=units.parse_quantity(row.get("night", NIGHT), units.SECONDS),
        **{k: row[k] for k in ("title", "system", "supplier", "customer", "since", "until")},
    )


def _wrong_times(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and message of each mistake in the dates and the length of a night."""
    dates = [key for key in ("since", "until") if key in row]
    for key in dates:
        if not schema.is_time(row[key]):
            yield (
                key,
                "expected a day of the calendar, or a second of one, such as 2026-01-31 or "
                f"2026-01-31T20:00:00Z, found {row[key]}",
            )
    if len(dates) == 2 and row["since"] >= row["until"]:
        yield "until", f"expected a time after since, {row['since']}, found {row['until']}"
    try:
        units.parse_quantity(row.get("night", NIGHT), units.SECONDS)
    except UnderstudyError as error:
        yield "night", str(error)


def _mistakes(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and message of each mistake in a mark that the schema allows."""
    name, metric = row["metric"], METRICS[row["metric"]]
    yield from _wrong_limit(row, metric)
    program = row.get("program", metric.programs[0])
    if program not in metric.programs:
        yield "program", f"expected {' or '.join(metric.programs)} for {name}"
    for key in sorted(_OF_METRICS & row.keys() - metric.keys):
        yield key, f"{name} does not take it"
    operation = row.get("operation")
    if name == "metadata-rate" and operation is None:
        yield "operation", "missing: expected one of mdtest, such as File creation"
    if name != "metadata-rate" and operation not in (None, READ, WRITE):
        yield "operation", f"expected {WRITE} or {READ}, found {operation!r}"
    if "quantile" in metric.keys:
        try:
            if not LEAST_QUANTILE <= _quantile(row) <= 1:
                yield "quantile", f"expected 50 % to 100 %, found {row['quantile']!r}"
        except UnderstudyError as error:
            yield "quantile", str(error)
    if program == PLAYER and (unknown := _unknown_workload(row["workload"])):
        yield "workload", unknown
    for key in row.get("where", ()):
        if not run.knows(key):
            yield (
                f"where.{key}",
                "no key of a condition; expected one such as storage.asked.stripe_count",
            )
    statistic, sessions = _statistic(row, metric)
    least = 1 if statistic == EVERY or not metric.scatters else SESSIONS
    if sessions < least:
        yield "sessions", f"expected at least {least} for the {statistic}, found {sessions}"


def _wrong_limit(row: dict[str, Any], metric: Metric) -> Iterator[tuple[str, str]]:
    name = row["metric"]
    other = AT_MOST if metric.limit == AT_LEAST else AT_LEAST
    if other in row:
        yield other, f"{name} has the limit {metric.limit}"
    elif metric.limit not in row:
        yield metric.limit, f"missing: {name} needs it, such as {_EXAMPLES[metric.unit]}"
    if metric.limit in row:
        try:
            units.parse_quantity(row[metric.limit], metric.unit)
        except UnderstudyError as error:
            yield metric.limit, str(error)


def _quantile(row: dict[str, Any]) -> float:
    return units.parse_quantity(row.get("quantile", QUANTILE), units.FRACTION)


def _statistic(row: dict[str, Any], metric: Metric) -> tuple[str, int]:
    """How runs decide, and the sessions needed."""
    statistic = row.get("statistic", MEDIAN)
    return statistic, row.get("sessions", _default_sessions(metric, statistic))


def _mark(row: dict[str, Any]) -> Mark:
    """A mark without mistakes."""
    name, metric = row["metric"], METRICS[row["metric"]]
    limit = units.parse_quantity(row[metric.limit], metric.unit)
    program = row.get("program", metric.programs[0])
    operation = row.get("operation")
    quantile = _quantile(row) if "quantile" in metric.keys else None
    statistic, sessions = _statistic(row, metric)
    return Mark(
        limit=limit,
        program=program,
        statistic=statistic,
        sessions=sessions,
        quantile=quantile,
        operation=operation or (WRITE if "operation" in metric.keys else None),
        cache_allowed=row.get("cache") == "allowed" or not _cacheable(name),
        **{
            key: row[key]
            for key in (
                "name",
                "source",
                "metric",
                "workload",
                "method",
                "stream",
                "partition",
                "campaign",
                "nodes",
                "ranks",
                "where",
                "allow_failed",
                "workload_sha256",
            )
            if key in row
        },
    )


def _default_sessions(metric: Metric, statistic: str) -> int:
    if not metric.scatters:
        return 1
    return EVERY_SESSIONS if statistic == EVERY else SESSIONS


def _cacheable(metric: str) -> bool:
    return "cache" in METRICS[metric].keys


_EXAMPLES = {
    units.RATE: "200 MiB/s",
    units.SECONDS: "90 s",
    units.PER_SECOND: "5000 /s",
    units.FRACTION: "10 %",
    units.BYTES: "0 B",
    units.RUNS: "3 runs",
}


def _unknown_workload(name: str) -> str:
    """Why it is none of the suite or of the site; scaled ones end with the rule and the ranks."""
    names = workload.names()
    if name in names or re.sub(r"-(weak|strong)-[0-9]+$", "", name) in names:
        return ""
    return f"{name!r} is unknown; expected one of {', '.join(names)}"

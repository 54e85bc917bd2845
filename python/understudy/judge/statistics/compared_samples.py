"""Input of a comparison of runs: their samples, and the nights or turns in which they ran."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.judge.statistics.conditions import is_benchmark
from understudy.judge.statistics.night_statistics import Session
from understudy.producers._reading import IO_RATE
from understudy.records.index import Index
from understudy.records.select import Where
from understudy.units import plural

RATE_UNITS = ("bytes/s", "1/s")
OF_DUMPS = "dump_"
OPERATIONS = {"write_s": "write", "read_s": "read"}
COLUMNS = (
    "number",
    "run",
    "time",
    "session",
    "turn",
    "case",
    "arm",
    "system",
    "partition",
    "producer",
    "workload",
    "workload_sha256",
    "condition",
    "failed",
    "failure",
    "canary",
    "seconds",
    "key",
    "sketch",
)
NIGHT_H = 6.0  # sessions that begin within it share the night
PLACE = ("system", "partition")  # keys of a condition that name a subject, too
SHOWN_TURNS = 5  # of those that do not count


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Key of compared runs, whatever their condition."""

    case: str | None
    arm: str
    system: str | None
    partition: str | None
    producer: str
    workload: str | None

    def __str__(self) -> str:
        place = ":".join(filter(None, (self.system, self.partition)))
        arm = "" if self.case and is_benchmark(self.producer) else self.arm
        return " ".join(filter(None, (self.case or self.workload, arm, place and f"on {place}")))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A run, and of its samples those that are judged: (metric, unit, better, stream, value)."""

    subject: Subject
    session: str
    time: str
    sha256: str | None
    condition: str
    failure: str | None
    seconds: float | None
    canary: tuple[dict[str, Any], ...]
    samples: tuple[tuple[str, str, str, str | None, float], ...]
    turn: str | None = None  # of a campaign
    block: int = 0  # the night or the turn, see `with_nights` and `blocks`
    operations: dict[str | None, str] = field(default_factory=dict)
    run: str = ""
    sketch: str = ""  # equal for copies of one run, see `producers.sketch`
    whole: str = ""  # the condition with the keys that may differ
    has_latencies: bool = False  # of data calls


def read(
    index: Index, where: Where, metrics: Sequence[str] = (), across: Sequence[str] = ()
) -> list[Row]:
    """The runs that a selection names. Of keys in `across`, such as storage.server_version,
    conditions may differ; where place.partition is one of them, subjects have none."""
    anywhere = [name for name in PLACE if below(f"place.{name}", across)]
    wanted = f"metric IN ({', '.join('?' * len(metrics))})"
    values = tuple(metrics)
    if not metrics:
        wanted = "unit IN (?, ?) AND substr(metric, 1, 5) <> ? AND metric <> ?"
        values = (*RATE_UNITS, OF_DUMPS, IO_RATE)  # whose bandwidth is one figure, and not two
    of = f"number IN (SELECT number FROM runs WHERE {where[0]})"
    sql = f"SELECT number, metric, unit, better, stream, value FROM samples WHERE {of} AND "
    samples_by_run: dict[int, list[tuple[str, str, str, str | None, float]]] = {}
    for number, *sample in index.connection.execute(sql + wanted, (*where[1], *values)):
        samples_by_run.setdefault(number, []).append(tuple(sample))
    if not metrics:
        rest = sql + "metric = 'elapsed_s'"
        slow: dict[int, list[Any]] = {}
        for number, *sample in index.connection.execute(rest, where[1]):
            if number not in samples_by_run:
                slow.setdefault(number, []).append(tuple(sample))
        samples_by_run |= slow
    operations: dict[int, dict[str | None, str]] = {}
    sql = f"SELECT number, stream, metric FROM samples WHERE {of} AND metric IN (?, ?)"
    for number, stream, metric in index.connection.execute(sql, (*where[1], *OPERATIONS)):
        operations.setdefault(number, {})[stream] = OPERATIONS[metric]
    sql = f"SELECT DISTINCT number FROM samples WHERE {of} AND metric LIKE '%_latency_p99_s'"
    timed = {number for (number,) in index.connection.execute(sql, where[1])}
    reduced: dict[str, str] = {}
    rows = []
    for values_ in index.select(COLUMNS, *where):
        row = dict(zip(COLUMNS, values_, strict=True)) | dict.fromkeys(anywhere)
        digest = row["condition"]
        if digest not in reduced:
            reduced[digest] = without(index.condition(digest), across) if across else digest
        rows.append(
            Row(
                subject=Subject(**{name: row[name] for name in Subject.__slots__}),
                session=row["session"] or f"by hand {row['time'][:10]}",
                time=row["time"],
                turn=row["turn"],
                sha256=row["workload_sha256"],
                condition=reduced[digest],
                whole=digest,
                failure=row["failure"],
                seconds=row["seconds"],
                canary=tuple(json.loads(row["canary"] or "[]")),
                samples=tuple(samples_by_run.get(row["number"], ())),
                operations=operations.get(row["number"], {}),
                run=row["run"],
                sketch=row["sketch"] or row["key"],
                has_latencies=row["number"] in timed,
            )
        )
    return rows


def without(condition: runs.Condition, across: Sequence[str]) -> str:
    """The hash of a condition without some keys, a.b.c or all below a.b."""
    flat = runs.differences([condition, {}])[0]
    return schema.digest({k: value for k, value in flat.items() if not below(k, across)})


def below(key: str, names: Iterable[str]) -> bool:
    """True if a key, a.b.c, is one of the names or below one."""
    return any(f"{key}.".startswith(f"{name}.") for name in names)


def with_nights(sides: Sequence[Sequence[Row]], hours: float) -> list[list[Row]]:
    """The rows with their nights, over all sides, from 0: see `nights_of`."""
    begun: dict[str, str] = {}
    for row in (row for side in sides for row in side):
        begun[row.session] = min(row.time, begun.get(row.session, row.time))
    nights = nights_of(begun, hours)
    return [[replace(row, block=nights[row.session]) for row in side] for side in sides]


def nights_of(begun: Mapping[str, str], hours: float) -> dict[str, int]:
    """The night of each session, from 0, by the times when they began: a night begins with the
    first session that begins `hours` or more after the one with which the last night began."""
    nights: dict[str, int] = {}
    first, night = None, -1
    for session in sorted(begun, key=lambda name: (begun[name], name)):
        time = datetime.fromisoformat(begun[session].replace("Z", "+00:00"))
        if first is None or time - first >= timedelta(hours=hours):
            first, night = time, night + 1
        nights[session] = night
    return nights


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Before, after and history, with the blocks that are compared: nights, or turns of a
    campaign. `notes` say what these are worth."""

    sides: tuple[list[Row], list[Row], list[Row]]
    turns: bool = False
    notes: tuple[str, ...] = ()


def blocks(
    before: Sequence[Row], after: Sequence[Row], history: Sequence[Row], hours: float
) -> Blocks:
    """Turns, where all runs of both sides have one and both sides ran in some of them; else
    nights. A turn that one side lacks, or in which a session was ended, does not count."""
    first, second, past = with_nights([before, after, history], hours)
    both = [*first, *second]
    turns = [{row.turn for row in side if row.turn} for side in (first, second)]
    every = turns[0] | turns[1]
    # A record without a case is that of a session that was ended, or in which nothing ran.
    whole = (turns[0] & turns[1]) - {row.turn for row in both if row.subject.case is None}
    if not every:
        return Blocks(sides=(first, second, past))
    if not whole or None in {row.turn for row in both}:
        without = sum(row.turn is None for row in both)
        why = f"{without} of {len(both)} runs are of no turn" if without else "no turn is whole"
        return Blocks(sides=(first, second, past), notes=(f"{why}: nights are compared",))
    sides = [[row for row in side if row.turn in whole] for side in (first, second)]
    notes = list(_of_turns(sides, every - whole, bool(past)))
    by_time = sorted((row for side in sides for row in side), key=lambda row: row.time)
    numbers: dict[str | None, int] = {}
    for row in by_time:
        numbers.setdefault(row.turn, len(numbers))
    first, second = ([replace(row, block=numbers[row.turn]) for row in side] for side in sides)
    return Blocks(sides=(first, second, []), turns=True, notes=tuple(notes))


def _of_turns(
    nights: Sequence[Sequence[Row]], lone: Iterable[str], history: bool
) -> Iterator[str]:
    """Notes on rows with their nights, and on turns that do not count."""
    count = len({row.turn for side in nights for row in side})
    spread = len({row.block for side in nights for row in side})
    text = f"{plural(count, 'turn')} in {plural(spread, 'night')}"
    if spread < count:
        text += ": what a night does to one side alone is not told from a change"
    yield text
    if names := sorted(lone, key=lambda name: (len(name), name)):
        more = f" and {len(names) - SHOWN_TURNS} more" if len(names) > SHOWN_TURNS else ""
        yield (
            f"{', '.join(names[:SHOWN_TURNS])}{more}: one side only, or its session was ended: "
            "does not count"
        )
    if history:
        yield "--history does not count: turns have both sides"


def kinds_of(rows: Iterable[Row], metric: str, stream: str | None) -> set[tuple[str, str]]:
    return {(s[1], s[2]) for row in rows for s in row.samples if (s[0], s[3]) == (metric, stream)}


def turned(sides: list[list[float]], better: str) -> list[list[float]]:
    """With values of which higher is better."""
    return [[1 / v for v in s] for s in sides] if better == "lower" else sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One figure of a subject over sessions, by time, with their nights; of values the higher is
    better."""

    subject: Subject
    condition: str
    metric: str
    unit: str
    stream: str | None
    sessions: tuple[str, ...]
    blocks: tuple[int, ...]
    times: tuple[str, ...]
    values: tuple[tuple[float, ...], ...]
    better: str
    repetition_s: float | None  # median elapsed time of a repetition

    @property
    def name(self) -> str:
        return " ".join(filter(None, (str(self.subject), self.stream, self.metric)))

    @property
    def of_nights(self) -> list[Session]:
        """The sessions as `night_statistics` takes them."""
        pairs = zip(self.blocks, self.values, strict=True)
        return [Session(night=night, values=values) for night, values in pairs]


def series(rows: Iterable[Row]) -> Iterator[Series]:
    """Every figure of runs that did not fail, by subject, condition and unit: of values above
    0, so that no later run takes away what was found."""
    pooled: dict[tuple[Subject, str], list[Row]] = {}
    for row in rows:
        if row.failure is None:
            pooled.setdefault((row.subject, row.condition), []).append(row)
    for (subject, digest), same in sorted(pooled.items(), key=lambda item: str(item[0])):
        same.sort(key=lambda row: row.time)
        for kind in dict.fromkeys(s[:4] for row in same for s in row.samples):
            metric, unit, better, stream = kind
            values_by_session: dict[str, list[float]] = {}
            times: dict[str, str] = {}
            blocks: dict[str, int] = {}
            lengths = []
            for row in same:
                row_values = [s[4] for s in row.samples if s[:4] == kind and s[4] > 0]
                if row_values:
                    values_by_session.setdefault(row.session, []).extend(row_values)
                    times.setdefault(row.session, row.time)
                    blocks.setdefault(row.session, row.block)
                    if row.seconds:
                        lengths.append(row.seconds / len(row_values))
            if not values_by_session:
                continue
            values = turned(list(values_by_session.values()), better)
            yield Series(
                subject=subject,
                condition=digest,
                metric=metric,
                unit=unit,
                stream=stream,
                sessions=tuple(values_by_session),
                blocks=tuple(blocks.values()),
                times=tuple(times.values()),
                values=tuple(map(tuple, values)),
                better=better,
                repetition_s=median(lengths) if lengths else None,
            )

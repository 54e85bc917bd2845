"""Changes between the sessions of a page, and their dates, for the first look; without what the
page cache may have served.

A change is what `night_statistics` finds, as `understudy trend` does.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from understudy.judge.statistics import night_statistics, pooling
from understudy.judge.statistics.conditions import Case, Condition
from understudy.judge.statistics.metrics import DATA_PHASES, verdict
from understudy.judge.statistics.night_statistics import Rule

SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One condition: the median bandwidth (bytes/s) of each session, the oldest first, and its
    last change: the levels before and after, and the days of the sessions at it."""

    name: str
    place: str
    label: str
    operation: str
    values: tuple[float, ...]
    levels: tuple[float, float] | None = None
    days: tuple[str, str] = ("", "")

    @property
    def change(self) -> float:
        """As a fraction."""
        return self.levels[1] / self.levels[0] - 1 if self.levels else 0.0

    @property
    def points(self) -> str:
        """A line in a box of 100 by 20, zero at the bottom, for an SVG."""
        top = max(self.values)
        across = 100 / (len(self.values) - 1)
        pairs = ((k * across, 19 - 18 * v / top) for k, v in enumerate(self.values))
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changed ones of `conditions` with several sessions, the largest change first; `places`
    has for each place how many are slower, and faster, of how many, the median change of these,
    and since when."""

    conditions: int
    every: tuple[Recent, ...]
    places: tuple[tuple[str, int, int, int, float, str], ...]

    @property
    def changed(self) -> int:
        return len(self.every)

    @property
    def shown(self) -> tuple[Recent, ...]:
        return self.every[:SHOWN]


def changes(cases: Sequence[Case], rule: Rule = Rule()) -> Changes | None:  # noqa: B008
    """None where no condition has more than one session."""
    recents = list(_every(cases, rule))
    if not recents:
        return None
    moved = [recent for recent in recents if recent.levels]
    moved.sort(
        key=lambda recent: (
            -abs(math.log1p(recent.change)),
            recent.name,
            recent.place,
            recent.label,
        )
    )
    rows = []
    for place in sorted({recent.place for recent in moved}):
        place_changes = [recent for recent in moved if recent.place == place]
        slower = sum(recent.change < 0 for recent in place_changes)
        every = sum(recent.place == place for recent in recents)
        middle = median(recent.change for recent in place_changes)
        since = min(recent.days[1] for recent in place_changes)
        rows.append((place, slower, len(place_changes) - slower, every, middle, since))
    return Changes(
        conditions=len(recents),
        every=tuple(moved),
        places=tuple(sorted(rows, key=lambda row: -row[1] - row[2])),
    )


def _every(cases: Sequence[Case], rule: Rule) -> Iterator[Recent]:
    count = pooling.figures(cases)
    for case in cases:
        parts: dict[tuple[object, ...], list[Condition]] = {}
        for condition in case.conditions if not case.programs else ():
            facts = condition.facts[:-1] if condition.part else condition.facts
            key = (condition.place, condition.method, condition.arm, condition.ranks, facts)
            parts.setdefault(key, []).append(condition)
        for same in parts.values():
            whole = same[0]
            if whole.part or len(same) > 1:
                facts = whole.facts[:-1] if whole.part else whole.facts
                every_run = tuple(run for part in same for run in part.runs)
                whole = replace(whole, runs=every_run, facts=facts, part=0)
            cached = verdict(whole).cached
            for operation, sessions in pooling.of_nights(whole).items():
                if operation in DATA_PHASES and operation not in cached:
                    yield _recent(case, whole, operation, sessions, count, rule)


def _recent(
    case: Case,
    whole: Condition,
    operation: str,
    sessions: night_statistics.Side,
    figures: int,
    rule: Rule,
) -> Recent:
    recent = Recent(
        name=case.workload.name,
        place=whole.place,
        label=whole.label,
        operation=operation,
        values=tuple(median(session.values) for session in sessions),
    )
    points = night_statistics.changes(sessions, rule, figures)
    if not points:
        return recent
    first, last = [0, *points][-2:]
    change = night_statistics.measure(sessions[first:last], sessions[last:], rule)
    begun = [runs[0].run.identity.time[:10] for runs in pooling.sessions(whole)]
    return replace(recent, levels=change.levels, days=(begun[last - 1], begun[last]))

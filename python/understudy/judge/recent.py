"""What differs between the last two sessions of each condition, for the first look; without what
the page cache may have served.

No test stands behind it: `understudy compare` decides whether a difference is more than chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log1p
from statistics import median

from understudy.judge import pooling
from understudy.judge.conditions import Case, Condition, Measured
from understudy.judge.limits import LIMIT_FRACTION
from understudy.judge.metrics import DATA_PHASES, bandwidths, verdict

SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One condition: the median bandwidth (bytes/s) of each session, the oldest first."""

    name: str
    place: str
    label: str
    operation: str
    values: tuple[float, ...]
    days: tuple[str, str]  # on which the last two began

    @property
    def change(self) -> float:
        """Of the last session against the one before, as a fraction."""
        return self.values[-1] / self.values[-2] - 1

    @property
    def points(self) -> str:
        """A line in a box of 100 by 20, zero at the bottom, for an SVG."""
        top = max(self.values)
        across = 100 / (len(self.values) - 1)
        pairs = ((k * across, 19 - 18 * v / top) for k, v in enumerate(self.values))
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Of `conditions` with several sessions those that differ most: beyond the limit, the largest
    first, SHOWN at most; `beyond` counts all of them, and `places` has for each place how many are
    slower, and faster, of how many, and the median change of these."""

    conditions: int
    beyond: int
    shown: tuple[Recent, ...]
    places: tuple[tuple[str, int, int, int, float], ...]  # slower, faster, of, median change


def changes(cases: Sequence[Case]) -> Changes | None:
    """None where no condition has more than one session."""
    found = list(_every(cases))
    beyond = [one for one in found if abs(one.change) > LIMIT_FRACTION]
    beyond.sort(key=lambda one: (-abs(log1p(one.change)), one.name, one.place, one.label))
    if not found:
        return None
    rows = []
    for place in sorted({one.place for one in beyond}):
        own = [one.change for one in found if one.place == place]
        slower = sum(change < -LIMIT_FRACTION for change in own)
        faster = sum(change > LIMIT_FRACTION for change in own)
        rows.append((place, slower, faster, len(own), median(own)))
    return Changes(
        conditions=len(found),
        beyond=len(beyond),
        shown=tuple(beyond[:SHOWN]),
        places=tuple(sorted(rows, key=lambda row: -row[1] - row[2])),
    )


def _every(cases: Sequence[Case]) -> Iterator[Recent]:
    for case in cases:
        parts: dict[tuple[object, ...], list[Condition]] = {}
        for condition in case.conditions if not case.programs else ():
            facts = condition.facts[:-1] if condition.part else condition.facts
            key = (condition.place, condition.method, condition.arm, condition.ranks, facts)
            parts.setdefault(key, []).append(replace(condition, facts=facts, part=0))
        for same in parts.values():
            whole = replace(same[0], runs=tuple(run for part in same for run in part.runs))
            sessions = pooling.sessions(whole)
            if len(sessions) < 2:
                continue
            cached = verdict(whole).cached
            for operation in DATA_PHASES:
                speeds = [bandwidths(runs, operation) for runs in sessions]
                if all(speeds) and operation not in cached:
                    yield Recent(
                        name=case.workload.name,
                        place=whole.place,
                        label=whole.label,
                        operation=operation,
                        values=tuple(median(values) for values in speeds),
                        days=_days(sessions[-2], sessions[-1]),
                    )


def _days(before: Sequence[Measured], last: Sequence[Measured]) -> tuple[str, str]:
    first, second = (min(run.run.identity.time for run in runs)[:10] for runs in (before, last))
    return first, second

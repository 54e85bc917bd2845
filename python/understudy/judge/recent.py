"""What differs between the last two sessions of each condition, for the first look.

No test stands behind it: `understudy compare` decides whether a difference is more than chance.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from understudy.judge import pooling
from understudy.judge.conditions import Case, Condition
from understudy.judge.limits import LIMIT_FRACTION
from understudy.judge.metrics import DATA_PHASES, bandwidths

SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """One condition: the median bandwidth (bytes/s) of each session, the oldest first."""

    name: str
    place: str
    label: str
    operation: str
    values: tuple[float, ...]

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
    first, SHOWN at most; `beyond` counts all of them."""

    conditions: int
    beyond: int
    shown: tuple[Recent, ...]


def changes(cases: Sequence[Case]) -> Changes | None:
    """None where no condition has more than one session."""
    found = list(_every(cases))
    beyond = [one for one in found if abs(one.change) > LIMIT_FRACTION]
    beyond.sort(key=lambda one: (-abs(one.change), one.name, one.place, one.label))
    if not found:
        return None
    return Changes(conditions=len(found), beyond=len(beyond), shown=tuple(beyond[:SHOWN]))


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
            for operation in DATA_PHASES:
                speeds = [bandwidths(runs, operation) for runs in sessions]
                if len(speeds) > 1 and all(speeds):
                    yield Recent(
                        name=case.workload.name,
                        place=whole.place,
                        label=whole.label,
                        operation=operation,
                        values=tuple(median(values) for values in speeds),
                    )
                    break

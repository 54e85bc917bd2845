"""Results of the canary before and after the runs of a condition, side by side."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from understudy.judge.statistics.conditions import Condition
from understudy.judge.statistics.metrics import Spread, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of the canary; `change` is the median over the runs of after / before - 1,
    None where no run has both."""

    condition: Condition
    program: str
    operation: str
    unit: str
    before: Spread | None
    after: Spread | None
    change: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Canaries:
    """Those of a case; `failures` are the messages of the `failed` of all `count`."""

    rows: list[Row]
    count: int
    failed: int
    failures: list[str]


def canaries(conditions: Iterable[Condition]) -> Canaries | None:
    """None where no run had a canary."""
    all_conditions = list(conditions)
    measurements = [
        canary
        for condition in all_conditions
        for run in condition.runs
        for canary in run.run.canary
    ]
    if not measurements:
        return None
    failures = [str(canary["failure"]) for canary in measurements if canary["failure"] is not None]
    return Canaries(
        rows=[row for condition in all_conditions for row in _rows(condition)],
        count=len(measurements),
        failed=len(failures),
        failures=list(dict.fromkeys(failures)),
    )


def _rows(condition: Condition) -> Iterator[Row]:
    values: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for run in condition.runs:
        of_run: dict[tuple[str, str, str], dict[str, float]] = {}
        for canary in run.run.canary:
            for rate in canary["rates"]:
                key = (canary["program"], rate["operation"], rate["unit"])
                of_run.setdefault(key, {})[canary["when"]] = rate["value"]
        for key, pair in of_run.items():
            values.setdefault(key, []).append(pair)
    for (program, operation, unit), pairs in values.items():
        changes = [p["after"] / p["before"] - 1 for p in pairs if len(p) == 2 and p["before"] > 0]
        yield Row(
            condition=condition,
            program=program,
            operation=operation,
            unit=unit,
            before=spread(p["before"] for p in pairs if "before" in p),
            after=spread(p["after"] for p in pairs if "after" in p),
            change=median(changes) if changes else None,
        )

"""Costs of Darshan in single operations: seconds and instructions of open, write and close."""

from collections.abc import Iterable
from dataclasses import dataclass

from understudy.contracts.run import Run
from understudy.judge.statistics.conditions import UNDER, place_of
from understudy.judge.statistics.metrics import Spread, spread
from understudy_darshan.judge.overhead import CONTROL, WITHOUT

PRODUCER = "operations"
TIME, ADDED = "time_s", "added_instructions"
OPERATIONS = ("open", "write", "close")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation by one method under one version. `added_s`: over the rounds, the seconds under
    Darshan less the mean of both runs without it; `control_s`: those of the control less the
    first, which is noise alone. `instructions` None: not counted."""

    place: str
    case: str
    version: str
    operation: str
    without_s: float
    added_s: Spread
    control_s: Spread
    instructions: float | None


def rows(runs: Iterable[Run]) -> list[Row]:
    """By place, case, version and operation; rounds with a failed run are left out."""
    times: dict[tuple[str, str, str], dict[int, dict[str, dict[str, float]]]] = {}
    versions: dict[str, str] = {}
    counted: dict[tuple[str, str, str, str], float] = {}
    for run in runs:
        if run.producer.name != PRODUCER or run.failed or run.measurement is None:
            continue
        arm, case = run.identity.arm, str(run.measurement["name"])
        version = str(run.measurement["environment"]["version"])
        versions[arm] = version
        key = (place_of(run), case, str(run.identity.session))
        home = times.setdefault(key, {}).setdefault(run.identity.round or 0, {})
        for sample in run.samples:
            if sample.metric == TIME:
                home.setdefault(arm, {})[str(sample.stream)] = sample.value
            elif sample.metric == ADDED:
                counted[place_of(run), case, version, str(sample.stream)] = sample.value
    rows_of_arms = []
    for (place, case, _), rounds in sorted(times.items()):
        arms = sorted({arm for of in rounds.values() for arm in of if arm.startswith(UNDER)})
        for arm in arms:
            whole = [of for of in rounds.values() if {WITHOUT, CONTROL, arm} <= set(of)]
            for operation in OPERATIONS:
                trios = [
                    tuple(of[a][operation] for a in (WITHOUT, CONTROL, arm))
                    for of in whole
                    if all(operation in of[a] for a in (WITHOUT, CONTROL, arm))
                ]
                base = spread((a + b) / 2 for a, b, _ in trios)
                added = spread(c - (a + b) / 2 for a, b, c in trios)
                control = spread(b - a for a, b, _ in trios)
                if base and added and control:
                    version = versions[arm]
                    rows_of_arms.append(
                        Row(
                            place=place,
                            case=case,
                            version=version,
                            operation=operation,
                            without_s=base.median,
                            added_s=added,
                            control_s=control,
                            instructions=counted.get((place, case, version, operation)),
                        )
                    )
    return rows_of_arms

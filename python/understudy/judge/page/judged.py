"""Cases that the page judges, and the failed runs that are theirs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from understudy import units
from understudy.contracts import run as contract
from understudy.contracts.run import Run
from understudy.judge.statistics import metrics
from understudy.judge.statistics.conditions import Condition, Failed, Measured
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.paired_errors import Estimate

PASS, FAIL, UNDECIDED, FAILED = "pass", "fail", "undecided", "failed"
STATE_OF_ERROR = {"within": PASS, "outside": FAIL, "undecided": UNDECIDED}
REPLICA = "replica"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One case; `anchor` is where the page has it, None: nowhere. `verdict` is that of a workload.
    `why` explains what is not a pass, `limit` is that of its error, `kind` one of the summary's.
    `original` has by operation the application's own speed, on its own machine, in bytes/s."""

    name: str
    place: str
    method: str
    label: str
    state: str
    why: str
    anchor: str | None = None
    verdict: metrics.Verdict | None = None
    write: metrics.Spread | None = None
    read: metrics.Spread | None = None
    limit: float = LIMIT_FRACTION
    kind: str = REPLICA
    original: Mapping[str, float] = field(default_factory=dict)
    in_memory: bool = False  # the place is memory
    cached: frozenset[str] = frozenset()  # operations that the page cache can have served

    @property
    def system(self) -> str:
        return self.place.partition(":")[0]


Key = tuple[str, str]


def _key(run: Run, place: str) -> Key:
    """Key of a case: equal for its runs, those of all arms and of other sessions."""
    return place, run.identity.case or run.identity.id


class Lost:
    """The failed runs of a page, by their case, until a case takes them."""

    def __init__(self, failed: Iterable[Failed]) -> None:
        self._failed: dict[Key, list[Failed]] = {}
        for failed_run in failed:
            self._failed.setdefault(_key(failed_run.run, failed_run.place), []).append(failed_run)

    def take(self, runs: Sequence[Measured], conditions: Sequence[Condition] = ()) -> list[Failed]:
        """The failed runs of the cases that these runs are of. Where several `conditions` are of
        one case, as before and after an upgrade, a failed run is taken by that to which it is
        nearest."""
        taken = []
        for key in sorted({_key(run.run, run.place) for run in runs}):
            same = [c for c in conditions if any(_key(r.run, r.place) == key for r in c.runs)]
            for failed_run in self._failed.pop(key, []):
                if len(same) < 2 or _nearest(failed_run, same).runs == tuple(runs):
                    taken.append(failed_run)
                else:
                    self._failed.setdefault(key, []).append(failed_run)
        return taken

    def leave_out(self, counted: Callable[[Failed], bool]) -> None:
        """Take out those that a case has counted by itself."""
        kept = {
            k: [failed_run for failed_run in same if not counted(failed_run)]
            for k, same in self._failed.items()
        }
        self._failed = {key: same for key, same in kept.items() if same}

    def left(self) -> list[list[Failed]]:
        """Those that no case took, by their case."""
        return list(self._failed.values())


def _nearest(failed_run: Failed, conditions: Sequence[Condition]) -> Condition:
    """The condition that differs in fewest keys; of equals the one that ran last."""
    failed_condition = contract.condition(failed_run.run)

    def distance(condition: Condition) -> tuple[int, int]:
        other = contract.condition(condition.runs[-1].run)
        differences = contract.differences([failed_condition, other])[0]
        return len(differences), -conditions.index(condition)

    return min(conditions, key=distance)


def failures(bad: Sequence[Failed], measured: int) -> str:
    """Text on the failed runs of a case, beside those that were measured."""
    total = len(bad) + measured
    return f"{len(bad)} of {total} runs failed: {shortened(bad[0].failure)}"


def interval(estimate: Estimate) -> str:
    """A value with its interval."""
    return f"{units.percent(estimate.value)} ({_bounds(estimate)})"


def _bounds(estimate: Estimate) -> str:
    if not math.isfinite(estimate.reach):
        return "one round has no interval"
    return f"{units.percent(estimate.low)} to {units.percent(estimate.high)}"


def shortened(text: str) -> str:
    """In one line of at most 160 characters."""
    return units.shorten(" ".join(text.split()), 160)

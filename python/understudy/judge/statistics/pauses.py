"""Schedule of a replica: the total of the pauses, and lateness."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from understudy.contracts.measurement import PlayedDump
from understudy.errors import UnderstudyError


@dataclass(frozen=True, slots=True, kw_only=True)
class Pauses:
    """How a replica kept its schedule, seconds.

    `asked_s` and `kept_s` are the gaps between the moments of the schedule, added up: as
    scheduled, and between the first starts of what is due at each moment. Lateness is that of
    each dump, below 0 where one began early.
    """

    asked_s: float
    kept_s: float
    median_lateness_s: float
    max_lateness_s: float

    @property
    def error(self) -> float:
        """Error of the total, as a fraction; 0 where no pauses were asked for."""
        return (self.kept_s - self.asked_s) / self.asked_s if self.asked_s else 0.0


def pauses(dumps: Iterable[PlayedDump]) -> Pauses:
    """Pauses kept between these dumps of one repetition, one or more."""
    starts: dict[float, float] = {}
    lateness = []
    for dump in dumps:
        starts[dump.scheduled_s] = min(dump.start_s, starts.get(dump.scheduled_s, dump.start_s))
        lateness.append(dump.lateness_s)
    if not lateness:
        raise UnderstudyError("no dumps: expected one or more to compare with their schedule")
    asked = sorted(starts)
    return Pauses(
        asked_s=asked[-1] - asked[0],
        kept_s=starts[asked[-1]] - starts[asked[0]],
        median_lateness_s=median(lateness),
        max_lateness_s=max(lateness, key=abs),
    )

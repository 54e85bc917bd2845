# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Does the replica start its dumps when the schedule says?"""

from statistics import median

from reframe.core.builtins import run_after, run_before, variable

from understudy.judge.statistics import pauses
from understudy.judge.statistics.metrics import worst
from understudy.reframe.bases.played import Played

SCHEDULE_S = 30.0  # time of the last dump, at most


class Pauses(Played):
    """The total of the pauses between dumps, against the schedule, and lateness."""

    pauses_tolerance_percent = variable(float, value=1.0, loggable=True)  # of their total
    tolerance = variable(float, type(None), value=None)
    renamed = {"tolerance": "pauses_tolerance_percent"}

    def _time_scale(self, last_s: float) -> float:
        return float(f"{SCHEDULE_S / last_s:.4g}") if last_s > SCHEDULE_S else 1.0

    @run_after("setup")
    def skip_without_pauses(self) -> None:
        self.skip_if(self.time_scale == 0, "there are no pauses with -S time_scale=0")

    @run_before("performance")
    def pauses_and_lateness(self) -> None:
        self.measure("pauses_error", "%", self._error_percent)
        self.measure("pauses", "s", self._seconds, "kept_s")
        self.measure("median_lateness", "s", self._seconds, "median_lateness_s")
        self.measure("max_lateness", "s", self._seconds, "max_lateness_s")
        limit = self.pauses_tolerance_percent
        self.reference = {"*": {"pauses_error": (0, -limit, limit, "%")}}

    def _pauses(self) -> list[pauses.Pauses]:
        return [
            pauses.pauses(d for s in r.streams for d in s.dumps) for r in self.played.repetitions
        ]

    def _error_percent(self) -> float:
        return 100 * worst(pauses.error for pauses in self._pauses())

    def _seconds(self, name: str) -> float:
        return median(float(getattr(pauses, name)) for pauses in self._pauses())

    def _verdict(self) -> str:
        pauses = self._pauses()[0]
        return (
            f"{super()._verdict()}; pauses {pauses.kept_s:.3f} s of {pauses.asked_s:.3f} s "
            f"(error {pauses.error:+.3%}), lateness of a dump {pauses.median_lateness_s:.4f} s "
            f"(median), {pauses.max_lateness_s:.4f} s (maximum)"
        )

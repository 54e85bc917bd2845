"""All that is on one page, for figures that put several cases side by side."""

from collections.abc import Sequence
from dataclasses import dataclass

from understudy.contracts.run import Run
from understudy.judge.page.benchmarks import Row
from understudy.judge.statistics.conditions import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The cases of a page, what IOR and mdtest measured beside them, and the records of all
    runs."""

    cases: Sequence[Case]
    beside: Sequence[Row] = ()
    runs: Sequence[Run] = ()
    key: str = "page"  # an anchor of the page

    @property
    def places(self) -> tuple[str, ...]:
        """Those that have colours."""
        return self.cases[0].everywhere if self.cases else ()

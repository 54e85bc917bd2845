"""Additions of studies to the page: cases that they judge, tables and sections.

A study with a module `page` states its `ADDITION` there, an `Addition`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from understudy.contracts.run import Run
from understudy.judge.page.judged import Judged, Lost
from understudy.judge.statistics.conditions import Case

Render = Callable[..., str]  # HTML of a template by its name, with its values


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of the page."""

    anchor: str
    title: str
    lead: str
    html: str


class Addition:
    """Each method adds nothing by default. KINDS has by the kind of its cases how one and several
    are called, and what they are held against."""

    KINDS: Mapping[str, tuple[str, str, str]] = {}

    def kind(self, run: Run) -> str | None:
        """The kind of a case of which no run was measured; None: none of KINDS."""
        return None

    def judged(self, cases: Sequence[Case], runs: Sequence[Run], lost: Lost) -> Iterable[Judged]:
        """Its cases. It takes their failed runs out of `lost`, which then count in no other."""
        return ()

    def tables(self, case: Case, render: Render) -> str:
        """HTML above the results of a case by condition."""
        return ""

    def parts(self, cases: Sequence[Case], runs: Sequence[Run], render: Render) -> Iterable[Part]:
        """Sections behind those of the cases."""
        return ()

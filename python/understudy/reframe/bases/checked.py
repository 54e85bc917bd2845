# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Base class of all checks: they count in the session, which ends before any of them runs if it is
asked for something impossible."""

from collections.abc import Sequence
from typing import Any

import reframe as rfm

from understudy.reframe import reframe_internals
from understudy.reframe.session import listing, option_values, session, staging


class Checked(rfm.RunOnlyRegressionTest):
    """A check, of which the session knows that it was skipped or selected."""

    def skip(self, msg: str | None = None) -> None:
        session.note_skip(msg, self.tags)
        super().skip(msg)

    @classmethod
    def before_any_runs(cls, cases: Sequence[Any]) -> None:
        """End the session if the selected cases, of all checks, cannot be listed or run."""


def _check_selection(cases: Sequence[Any]) -> None:
    option_values.check_names()
    session.check_selection(cases)
    for kind in dict.fromkeys(type(case.check) for case in cases):
        if issubclass(kind, Checked):
            kind.before_any_runs(cases)


def _prepare_run(cases: Sequence[Any]) -> None:
    session.note_cases(len(cases))
    staging.take_directories()


reframe_internals.attach(_check_selection, listing.summarize, _prepare_run)

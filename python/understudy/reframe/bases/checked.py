# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Base class of all checks: they count in the session, which ends before any of them runs if it is
asked for something impossible."""

import reframe as rfm
from reframe.core.builtins import run_after

from understudy.reframe import reframe_internals
from understudy.reframe.session import listing, option_values, session, staging


class Checked(
    reframe_internals.Selectable, rfm.RunOnlyRegressionTest, metaclass=option_values.Abstract
):
    """A check, of which the session knows that it was created, skipped, or selected."""

    def skip(self, msg: str | None = None) -> None:
        session.note_skip(msg, self.tags)
        super().skip(msg)

    def before_any_runs(self) -> None:
        option_values.check()

    @run_after("init")
    def note_creation(self) -> None:
        session.note_check()


def _prepare_run(cases: int) -> None:
    session.note_cases(cases)
    staging.take_directories()


reframe_internals.attach(
    Checked,
    on_names=option_values.check_names,
    on_listing=listing.summarize,
    on_run=_prepare_run,
)

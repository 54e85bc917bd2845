# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of the check of what publications claim: it measures nothing, and reads records."""

from pathlib import Path
from typing import Any

import reframe.utility.sanity as sn
from reframe.core.builtins import run_after, run_before, sanity_function, variable
from reframe.core.exceptions import SanityError
from reframe.core.logging import getlogger

from understudy import paths, producers
from understudy.errors import UnderstudyError
from understudy.reframe.bases.checked import Checked
from understudy.reframe.session import session
from understudy.reframe.session.session import exit_on_error
from understudy_papers.judge import claims

STATES = {claims.HOLDS: "held", claims.FAILS: "refuted", claims.UNDECIDED: "undecided"}


class Claimed(Checked):
    """Judges every claim in the references of the system; one that does not hold fails."""

    records = variable(str, value="", loggable=True)  # a directory; by default those kept
    sourcesdir = None
    local = True
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "true"

    @run_after("init")
    def load_claims(self) -> None:
        path = paths.files("references", ".yaml").get(self.current_system.name)
        with exit_on_error():
            self.claims = claims.load(path) if path else []

    @run_after("setup")
    def skip_without_claims(self) -> None:
        """Claims are on a system, so that the first of its partitions is enough."""
        system = self.current_system
        self.skip_if(not self.claims, f"no publication claims anything of {system.name}")
        self.skip_if(
            self.current_partition.fullname != system.partitions[0].fullname
            or self.current_environ.name != self.current_partition.environs[0].name,
            f"judged on {system.partitions[0].fullname}",
        )

    @run_before("run")
    def count_as_run(self) -> None:
        session.note_run(self)

    @run_before("performance")
    def count_states(self) -> None:
        for state, name in STATES.items():
            self.perf_variables[f"claims_{name}"] = sn.make_performance_function(
                self._count, "claims", state
            )
        self.reference = {"*": {"claims_refuted": (0, 0, 0, "claims")}}

    @sanity_function
    def records_can_be_read(self) -> bool:
        try:
            self.findings: Any = self._judge()
        except UnderstudyError as error:
            raise SanityError(str(error)) from None
        for finding in self.findings:
            getlogger().info(f"verdict: {finding}")
        return True

    def _judge(self) -> list[claims.Finding]:
        folder = Path(self.records) if self.records else paths.records()
        if not folder.is_dir():
            raise UnderstudyError(
                f"{folder}: no records; run the checks Replay, Scaling and Skel first"
            )
        runs = [run for _, run in producers.load_all(producers.find([folder]))]
        return [claims.judge(claim, runs) for claim in self.claims]

    def _count(self, state: str) -> int:
        return sum(finding.state == state for finding in self.findings)

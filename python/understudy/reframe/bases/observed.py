# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
# ruff: noqa: RUF012 (ReFrame copies what stands in a class body)
"""Base class of the checks that run programs under Darshan, in one or several versions.

They need a runtime: DARSHAN_RUNTIME, or darshan-config on PATH, or the prefixes that are given.
"""

from collections.abc import Iterator

from reframe.core.builtins import parameter, run_after, variable

from understudy.errors import UnderstudyError
from understudy.judge.statistics.conditions import UNDER
from understudy.reframe.bases import observer
from understudy.reframe.bases.benchmark import Benchmark
from understudy.reframe.session.session import exit_on_error

LOG = "run.darshan"
LETTERS = "abcdefgh"  # of the versions, in the names of arms


class Observed(Benchmark):
    """Runs programs under one or several versions of Darshan."""

    darshan = variable(str, value="", loggable=True)  # prefixes, separated by commas

    case = parameter(["paper"], type=str, loggable=True)
    cases = {"paper": ""}

    @property
    def prefixes(self) -> list[str]:
        """Prefixes of the versions; an UnderstudyError where there is none."""
        given = [prefix.strip() for prefix in self.darshan.split(",") if prefix.strip()]
        return given or [observer.runtime()]

    @property
    def versions(self) -> int:
        """How many of them there are, as far as it is known before the setup."""
        return len([prefix for prefix in self.darshan.split(",") if prefix.strip()]) or 1

    @run_after("init")
    def check_versions(self) -> None:
        with exit_on_error():
            if len(self.darshan.split(",")) > len(LETTERS):
                raise UnderstudyError(
                    f"-S darshan={self.darshan}: expected at most {len(LETTERS)} prefixes"
                )

    @run_after("setup")
    def find_darshan(self) -> None:
        self.runtimes = [f"${observer.VARIABLE}"]  # the job's, in a dry run
        if self.is_dry_run():
            return
        self.skip_if(bool(reason := self._without_darshan(self.local)), reason)
        self.runtimes = self.prefixes

    def missing(self) -> str | None:
        return self._without_darshan(True) or super().missing()

    def _without_darshan(self, here: bool) -> str | None:
        """Why there is no runtime of Darshan, which is looked at if it is to be used on this
        host."""
        try:
            for prefix in self.prefixes:
                if here:
                    observer.preloaded(prefix)
        except UnderstudyError as error:
            return f"{error}; build darshan-runtime, and give its prefix: -S darshan=PREFIX"
        return None

    @property
    def arms_under_darshan(self) -> list[str]:
        """Names of the arms under Darshan, one for each version."""
        return [f"{UNDER}{LETTERS[n]}" for n in range(self.versions)]

    def runtime_of(self, arm: str) -> str:
        """The prefix of the runtime of an arm under Darshan."""
        return str(self.runtimes[LETTERS.index(arm.removeprefix(UNDER))])


def under_darshan(prefix: str, log: str) -> Iterator[str]:
    """Words before a program under Darshan as a site deploys it: all that the build does by
    default. The log is written to `log`, a word in double quotes of the shell."""
    yield "env -u LD_BIND_NOW"
    yield f'LD_PRELOAD="{prefix}/lib/libdarshan.so"'
    yield f'DARSHAN_CONFIG_PATH="$PWD/{observer.SETTINGS}"'
    yield f'DARSHAN_LOGFILE="{log}"'

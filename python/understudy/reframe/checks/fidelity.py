# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Does an independent observer see the I/O that the descriptor states?"""

from collections.abc import Iterator
from pathlib import Path

from reframe.core.builtins import parameter, run_after, run_before

from understudy.errors import UnderstudyError
from understudy.judge.fidelity.stream_fidelity import Comparison, compare
from understudy.observations.observed_logs import observe
from understudy.reframe.bases import observer
from understudy.reframe.bases.recording import PlannedRun
from understudy.reframe.checks.volume import Volume
from understudy.reframe.systems import SLOWEST_BYTES_PER_S

PLAYER, DARSHAN = "player", "darshan"
OBSERVERS = (PLAYER, DARSHAN)
OBSERVED_S = 6.0  # time of the last dump, so that lateness is small against it


class ObservedVolume(Volume):
    """The volumes, and what Darshan, which knows nothing of the descriptor, sees of the replica.

    The observer `player` is the player itself: volumes as it found them on storage. With the
    observer `darshan` the player runs under Darshan's runtime, and its log is compared with the
    descriptor stream by stream, within the same tolerance.
    """

    observer = parameter(type=str, loggable=True)

    @run_after("init")
    def play_once_without_reading_back(self) -> None:
        if self.observer == DARSHAN:
            self.verify = False  # the application does not read back
            self.repetitions = 1
            self.arm = "with-darshan"

    def _time_scale(self, last_s: float) -> float:
        if self.observer != DARSHAN or not last_s:
            return super()._time_scale(last_s)
        due_s = max(OBSERVED_S, self.described.bytes / SLOWEST_BYTES_PER_S)
        return float(f"{due_s / last_s:.4g}")

    @run_after("setup")
    def find_darshan(self) -> None:
        self.runtime = f"${observer.VARIABLE}"  # the job's, in a dry run
        if self.observer == DARSHAN and not self.is_dry_run():
            here = self.current_partition.scheduler.is_local
            self.skip_if(bool(reason := self._without_darshan(here)), reason)
            self.runtime = observer.runtime()

    def missing(self) -> str | None:
        lacking = self._without_darshan(True) if self.observer == DARSHAN else None
        return lacking or super().missing()

    def _without_darshan(self, here: bool) -> str | None:
        """Why there is no runtime of Darshan, which is looked at if it is to be used on this
        host, or what it does not see."""
        if any(stream.tree for stream in self.described.streams):
            return f"Darshan does not see openat2, by which calls are played: {self.workload}"
        try:
            runtime = observer.runtime()
            if here:
                observer.expect_seen(observer.preloaded(runtime), self.methods_needed)
        except UnderstudyError as error:
            return str(error)
        return None

    @run_before("run")
    def preload_darshan(self) -> None:
        if self.observer == DARSHAN:
            lines = " ".join(f"'{line}'" for line in observer.settings(observer.DIRECTORY))
            self.prerun_cmds += [f"printf '%s\\n' {lines} >{observer.SETTINGS}"]
            program, *preload = " ".join(observer.prefix_of(self.runtime)).split(" ", 1)
            self.executable_opts = [*preload, self.executable, *self.executable_opts]
            self.executable = program
            self.keep_files = [*self.keep_files, observer.LOG]

    def _faults(self) -> Iterator[tuple[PlannedRun | None, str]]:
        """A difference that Darshan sees is no failure of the run: its measurement counts."""
        faults = list(super()._faults())
        yield from faults
        if self.observer == DARSHAN and not faults:
            differences = list(self._observed().failures())
            yield from ((None, f"{observer.LOG}: {difference}") for difference in differences)

    def _verdict(self) -> str:
        words = super()._verdict()
        return f"{words}; {self._observed().summary}" if self.observer == DARSHAN else words

    def _observed(self) -> Comparison:
        """Comparison of Darshan's log with the descriptor and the options in force."""
        folder = Path(self.stagedir)
        original = observe(folder / "workload.json")
        return compare(
            original,
            observe(folder / observer.LOG, original),
            tolerance_fraction=self.tolerance_percent / 100,
            time_scale=self.time_scale,
        )

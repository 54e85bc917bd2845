# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Does a case fit on a partition: in ranks, nodes, bytes, time and methods?"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from reframe.core.builtins import run_after, variable

from understudy.errors import UnderstudyError
from understudy.reframe import spack
from understudy.reframe.bases.checked import Checked
from understudy.reframe.bases.methods import lacks
from understudy.reframe.session import option_values
from understudy.reframe.systems import (
    MAX_BYTES,
    MAX_NODES,
    MAX_SECONDS,
    RANKS_PER_NODE,
    SCRATCH,
    SHARED,
    expanded,
    slowest_bytes_per_s,
)
from understudy.units import hms


def even_ranks_per_node(ranks: int, maximum: int) -> int:
    """The largest number of ranks per node, at most `maximum`, that fills all nodes equally."""
    return next(n for n in range(min(ranks, maximum), 0, -1) if ranks % n == 0)


class Fitting(Checked):
    """A check that is skipped, with the reason, on a partition that it does not fit on."""

    max_bytes = variable(option_values.Size, int, type(None), value=None)
    ranks_per_node = variable(int, type(None), value=None)
    skip_reason = variable(str, value="", loggable=True)  # ReFrame's report leaves it out
    time_limit: Any
    ranks: Any
    how_to_fit = "use more ranks per node with -S ranks_per_node=N"

    def skip(self, msg: str | None = None) -> None:
        self.skip_reason = msg or ""
        super().skip(msg)

    @property
    def bytes_needed(self) -> int:
        """Largest volume on the file system at any time."""
        raise NotImplementedError

    @property
    def methods_needed(self) -> set[str]:
        """Methods of the player, or of the programs built with it."""
        raise NotImplementedError

    @run_after("init")
    def check_ranks_per_node(self) -> None:
        if self.ranks_per_node is not None and self.ranks_per_node < 1:
            sys.exit(f"understudy: -S ranks_per_node={self.ranks_per_node}: expected at least 1")

    def adapt_to_partition(self) -> None:
        """Before the ranks are distributed: what depends on the partition."""

    def ranks_on(self, here: Any) -> int:
        """The ranks of the case on a partition."""
        return int(self.ranks)

    def bytes_on(self, here: Any) -> int:
        """`bytes_needed` on a partition."""
        return self.bytes_needed

    def moved_on(self, here: Any) -> int:
        """Bytes that the job writes and reads on a partition, for its time."""
        return self.bytes_on(here)

    def idle_s(self) -> float:
        """Time in which the job moves no bytes, such as the pauses of a schedule."""
        return 0.0

    def seconds_on(self, here: Any) -> float:
        """The longest time that is expected, at the slowest bandwidth of the file system."""
        return self.idle_s() + self.moved_on(here) / slowest_bytes_per_s(here)

    def beside_s(self, here: Any) -> float:
        """Time limits of what the job runs besides, which end it."""
        return 0.0

    def limit_s(self, here: Any) -> int:
        """The time limit of the job: that which is given, else ten minutes and twice the longest
        time that is expected."""
        if self.time_limit is not None:
            return int(self.time_limit)
        return 600 + round(2 * self.seconds_on(here) + self.beside_s(here))

    def distribution(self, here: Any) -> tuple[int, int]:
        """Nodes, and ranks on each."""
        ranks = self.ranks_on(here)
        each = even_ranks_per_node(ranks, self.ranks_per_node or here.extras[RANKS_PER_NODE])
        return ranks // each, each

    @run_after("setup")
    def distribute_ranks(self) -> None:
        self.adapt_to_partition()
        self.node_count, self.num_tasks_per_node = self.distribution(self.current_partition)

    @run_after("setup")
    def leave_out(self) -> None:
        self.skip_if(bool(reason := next(self.reasons(self.current_partition), None)), reason)

    def reasons(self, here: Any) -> Iterator[str]:
        """Why the case does not run on a partition: it cannot, or it would repeat another."""
        nodes, _ = self.distribution(here)
        if nodes > here.extras[MAX_NODES]:
            maximum = self.ranks_per_node or here.extras[RANKS_PER_NODE]
            yield (
                f"{self.ranks_on(here)} ranks need {nodes} nodes, {here.fullname} has "
                f"{here.extras[MAX_NODES]} with {maximum} ranks each; {self.how_to_fit}"
            )
        if nodes > 1 and SHARED not in here.features:  # the run directory is made on one node
            yield (
                f"{here.fullname}: its nodes do not share {here.extras[SCRATCH]}, and "
                f"{self.ranks_on(here)} ranks need {nodes} nodes; {self.how_to_fit}"
            )
        longest, asked = here.extras.get(MAX_SECONDS), self.limit_s(here)
        if longest is not None and asked > longest:
            yield (
                f"its job asks for {hms(asked)}, {here.fullname} gives jobs at most "
                f"{hms(longest)}; ask for less with -S time_limit=TIME, such as 12h, or move "
                "fewer bytes"
            )

    @run_after("setup")
    def check_host(self) -> None:
        program = spack.player(self.current_environ.name)
        if not self.current_partition.scheduler.is_local:
            with suppress(UnderstudyError):  # it need not start on this node
                if program and not self.is_dry_run():
                    self._skip_without_method(program)
            return
        # Only local tests count against one limit for all partitions (max_local_jobs): two
        # replays on two file systems of one host would disturb each other.
        self.local = True
        if not self.is_dry_run():
            self._skip_without_method(program)
            self._skip_without_space(self.current_partition.extras[SCRATCH])

    @run_after("setup")
    def skip_oversized(self) -> None:
        self.skip_if(bool(reason := self.oversized(self.current_partition)), reason)

    @run_after("setup")
    def limit_time(self) -> None:
        self.time_limit = self.limit_s(self.current_partition)

    def oversized(self, here: Any) -> str | None:
        """Why the case is too large for a partition, if it is."""
        needed = self.bytes_on(here)
        maximum = here.extras.get(MAX_BYTES, needed) if self.max_bytes is None else self.max_bytes
        if needed <= maximum:
            return None
        return (
            f"{needed} bytes exceed the limit of {maximum} on {here.fullname}; "
            "raise it with -S max_bytes=SIZE, such as 100GiB"
        )

    def _skip_without_method(self, program: Path | None) -> None:
        self.skip_if(bool(reason := self.without_method(program)), reason)

    def without_method(self, program: Path | None = None) -> str | None:
        """Reason why a player, by default that on PATH, cannot run the case; None if it can."""
        reasons = (lacks(method, program) for method in sorted(self.methods_needed))
        return next(filter(None, reasons), None)

    def missing(self) -> str | None:
        """Reason why this host cannot run the case, if it runs here; None if it can."""
        return self.without_method()

    def _skip_without_space(self, stated: str) -> None:
        scratch, _ = expanded(stated)
        if not scratch.is_absolute() or not scratch.is_dir():
            return  # the job fails, and says so: the file system may have been there yesterday
        free = shutil.disk_usage(scratch).free
        self.skip_if(
            self.bytes_needed > free,
            f"{scratch}: {self.bytes_needed} bytes are needed, {free} are free",
        )

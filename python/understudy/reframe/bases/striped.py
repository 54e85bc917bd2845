# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Which layout of files does a case ask of the file system?"""

import re
import sys
from collections.abc import Iterator
from typing import Any

from reframe.core.builtins import run_after, variable
from reframe.core.runtime import runtime

from understudy.errors import UnderstudyError
from understudy.reframe import spaces
from understudy.reframe.bases.fitting import Fitting
from understudy.reframe.systems import MPI, NO_STRIPING, STRIPE_COUNT_MAX, STRIPING
from understudy.units import parse_size

STRIPE_COUNTS = ("default", "nodes", "cores")
# Options of understudy-storage and the player, by the key of the record.
LAYOUT_OPTIONS = {"stripe_count": "--stripe-count", "stripe_size_bytes": "--stripe-size"}


def stripe_counts() -> tuple[str, ...]:
    """Values of the axis on the current system: the default alone where no file system stripes, or
    forbids it and has to say so."""
    partitions = runtime().system.partitions
    striped = any(STRIPING in here.features or NO_STRIPING in here.extras for here in partitions)
    return STRIPE_COUNTS if striped else STRIPE_COUNTS[:1]


class Striped(Fitting):
    """A check with a stripe count and a stripe size, by default those of the file system."""

    stripe_size = variable(str, value=spaces.DEFAULT, loggable=True)
    stripe_count: Any
    axes: tuple[str, ...] = (spaces.STRIPE_COUNT_AXIS, spaces.STRIPE_SIZE_AXIS)  # of -S and -P

    @run_after("init")
    def check_stripe_count(self) -> None:
        number = re.fullmatch("[1-9][0-9]*", self.stripe_count)
        if self.stripe_count not in STRIPE_COUNTS and not number:
            sys.exit(
                f"understudy: -P stripe_count={self.stripe_count}: expected "
                f"{', '.join(STRIPE_COUNTS)} or a number of targets"
            )

    def wanted(self, axis: str) -> str:
        """The value of an axis of `spaces`; `default` if nothing is asked."""
        return str(getattr(self, axis)) if axis in self.axes else spaces.DEFAULT

    @run_after("init")
    def check_axes(self) -> None:
        for axis in self.axes:
            value = self.wanted(axis)
            if axis == spaces.STRIPE_COUNT_AXIS or value == spaces.DEFAULT:
                continue  # that of the stripe count is checked above
            try:
                spaces.check(axis, value)
            except UnderstudyError as error:
                sys.exit(f"understudy: -S {error}")

    @property
    def asks_for_layout(self) -> bool:
        return any(self.wanted(axis) != spaces.DEFAULT for axis in Striped.axes)

    @run_after("init")
    def require_striping(self) -> None:
        if self.asks_for_layout:
            self.valid_systems = [f"+{MPI} +{STRIPING}", f"+{MPI} +{NO_STRIPING}"]

    def reasons(self, here: Any) -> Iterator[str]:
        yield from super().reasons(here)
        if self.asks_for_layout and STRIPING not in here.features:
            yield f"{here.fullname}: {here.extras.get(NO_STRIPING)}"
            return
        count = self.wanted(spaces.STRIPE_COUNT_AXIS)
        if count == spaces.DEFAULT:
            return
        targets = here.extras[STRIPE_COUNT_MAX]
        if count.isdigit() and targets is not None and int(count) > targets:
            yield f"{here.fullname} has {targets} targets, fewer than {count}"
        nodes, _ = self.distribution(here)
        number = self.layout_on(here)["stripe_count"]
        if count == "cores" and number == _at_most(nodes, targets):
            yield f"stripe count {number} is that of the case with a target for each node"

    def layout_options(self) -> list[str]:
        """The layout that is asked for, as the player and understudy-storage take it."""
        return [f"{LAYOUT_OPTIONS[key]} {n}" for key, n in self.asked_layout().items()]

    def asked_layout(self) -> dict[str, int]:
        """Layout requested from the file system; none by default."""
        return self.layout_on(self.current_partition)

    def layout_on(self, here: Any) -> dict[str, int]:
        """`asked_layout` on a partition, by the keys of the run record."""
        asked = {}
        if (wanted := self.wanted(spaces.STRIPE_COUNT_AXIS)) != spaces.DEFAULT:
            named = {"nodes": self.distribution(here)[0], "cores": self.ranks_on(here)}
            count = named.get(wanted) or int(wanted)
            asked["stripe_count"] = _at_most(count, here.extras[STRIPE_COUNT_MAX])
        if (wanted := self.wanted(spaces.STRIPE_SIZE_AXIS)) != spaces.DEFAULT:
            asked["stripe_size_bytes"] = parse_size(wanted)
        return asked


def _at_most(count: int, targets: int | None) -> int:
    """The count, or all targets of the file system if it has fewer and states it."""
    return count if targets is None else min(count, targets)

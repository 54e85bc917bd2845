# ReFrame has no type hints: its classes and decorators are Any to the type checker.
# mypy: disable-error-code="misc,untyped-decorator"
"""Base class of the checks that visit the points of a parameter space."""

from collections.abc import Iterator
from typing import Any

from reframe.core.builtins import parameter
from reframe.core.runtime import runtime

from understudy.reframe import spaces
from understudy.reframe.checks.bandwidth import Bandwidth
from understudy.reframe.session.session import exit_on_error
from understudy.reframe.systems import MAX_NODES, SPACES, STRIPE_COUNT, STRIPE_COUNT_MAX, STRIPING


def values(space: str, axis: str) -> list[str]:
    """The values of an axis on any partition of the system, for a parameter."""
    return spaces.union(runtime().system.partitions, lambda p: spaces.values(_own(p), space, axis))


def points(space: str) -> list[str]:
    """The points of any partition of the system, for a parameter: those that its partitions can
    fulfil."""
    return spaces.union(runtime().system.partitions, lambda p: _points(p, space))


def _own(partition: Any) -> dict[str, Any]:
    return dict(partition.extras.get(SPACES, {}))


def _points(partition: Any, space: str) -> list[str]:
    """Those for which it has the nodes, the targets, and control of striping at all."""
    striped = STRIPING in partition.features
    most = partition.extras.get(STRIPE_COUNT_MAX) if striped else None

    def possible(point: str) -> bool:
        asked = spaces.parse(point)
        if int(asked.get(spaces.NODES_AXIS, 1)) > partition.extras.get(MAX_NODES, 1):
            return False
        count = asked.get(spaces.STRIPE_COUNT_AXIS, "")
        if count.isdigit() and most is not None and int(count) > most:
            return False
        return striped or not {spaces.STRIPE_COUNT_AXIS, spaces.STRIPE_SIZE_AXIS} & set(asked)

    with exit_on_error():
        return [point for point in spaces.points(_own(partition), space) if possible(point)]


class Swept(Bandwidth):
    """Bandwidth at one point of a space. A point that asks for what an earlier point of the
    partition asks for is left out, with the reason."""

    space: str
    point = parameter(type=str, loggable=True)

    def wanted(self, axis: str) -> str:
        with exit_on_error():
            return spaces.parse(self.point).get(axis) or super().wanted(axis)

    def reasons(self, here: Any) -> Iterator[str]:
        space_points = _points(here, self.space)
        axis_values = spaces.parse(self.point)
        listed = set(points(self.space))
        if self.point in listed and self.point not in space_points:
            yield f"{self.point} is not in the space of {here.fullname}"
            return
        yield from super().reasons(here)
        resolved = self._resolved(self.point, here)
        position = space_points.index(self.point) if self.point in space_points else 0
        for earlier in space_points[:position]:
            if axis_values and self._resolved(earlier, here) == resolved:
                yield f"{self.point} asks for the same as {earlier} on {here.fullname}"
                return

    def _resolved(self, point: str, here: Any) -> dict[str, Any]:
        """Values of a point, with numbers for names."""
        asked: dict[str, Any] = {axis: v for axis, v in spaces.parse(point).items()}
        nodes, _ = self.distribution(here)
        ranks = self.ranks_on(here)
        if (count := asked.pop(spaces.STRIPE_COUNT_AXIS, None)) is not None:
            number = {"nodes": nodes, "cores": ranks}.get(count) or int(count)
            most, default = here.extras[STRIPE_COUNT_MAX], here.extras[STRIPE_COUNT]
            number = number if most is None else min(number, most)
            if number != default:
                asked[spaces.STRIPE_COUNT_AXIS] = number
        if (wanted := asked.get(spaces.AGGREGATORS_AXIS)) is not None:
            asked[spaces.AGGREGATORS_AXIS] = spaces.aggregators(wanted, ranks, nodes)
        if (layout := asked.get(spaces.LAYOUT_AXIS)) is not None:
            if {s.layout for s in self.as_listed.streams} == {layout} and layout != "grouped":
                del asked[spaces.LAYOUT_AXIS]
            elif layout == "grouped" and nodes == 1:
                asked[spaces.LAYOUT_AXIS] = "shared"
        return asked

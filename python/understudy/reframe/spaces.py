"""Parameter spaces: which points a sweep visits, and what a point asks of storage and of MPI-IO.

A space is data of a partition (its extra `spaces`); DEFAULTS are what the partition leaves open.
A point changes one axis, or several joined by +: `stripe_count=8+stripe_size=4MiB`; `default` asks
for nothing. A sweep visits one axis after the other, not all their combinations.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from understudy.errors import UnderstudyError
from understudy.units import parse_size

DEFAULT = "default"
SWEEP, SCALING = "sweep", "scaling"
STRIPE_COUNT_AXIS, STRIPE_SIZE_AXIS = "stripe_count", "stripe_size"
AGGREGATORS_AXIS, LAYOUT_AXIS, NODES_AXIS = "aggregators", "layout", "nodes"
LAYOUTS = ("shared", "grouped", "file-per-process")  # grouped: a file for each node

_NUMBER = "[1-9][0-9]{0,8}"
# What an axis takes, for a message, and how it is known.
AXES: Mapping[str, tuple[str, str]] = {
    LAYOUT_AXIS: (", ".join(LAYOUTS), "|".join(LAYOUTS)),
    STRIPE_COUNT_AXIS: ("nodes, cores or a number of targets", f"nodes|cores|{_NUMBER}"),
    STRIPE_SIZE_AXIS: ("bytes, such as 4MiB", "[1-9][0-9]*[A-Za-z]*"),
    AGGREGATORS_AXIS: (
        "a number, node (one for each), per-N (one for N ranks) or all",
        f"{_NUMBER}|node|per-{_NUMBER}|all",
    ),
    NODES_AXIS: ("a number of nodes", _NUMBER),
}
# Axes that choose cases and are no part of a point.
CASES = ("workload", "method")


def powers_of_two(highest: int) -> list[str]:
    return [str(1 << power) for power in range(highest.bit_length())]


DEFAULTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    SWEEP: {
        "workload": ["n-1"],
        "method": ["mpiio", "posix"],
        LAYOUT_AXIS: ["grouped", "file-per-process"],
        STRIPE_COUNT_AXIS: ["nodes", "cores", *powers_of_two(1024)],
        STRIPE_SIZE_AXIS: ["1MiB", "4MiB", "16MiB", "64MiB"],
        AGGREGATORS_AXIS: ["1", "node", "per-16", "per-4", "all"],
    },
    SCALING: {
        "workload": ["mphys-e"],
        "method": ["described"],
        STRIPE_COUNT_AXIS: [DEFAULT, "nodes"],
        NODES_AXIS: powers_of_two(64),
    },
}


def check(axis: str, value: str) -> str:
    """The value; an UnderstudyError if the axis does not take it."""
    if axis not in AXES:
        raise UnderstudyError(f"axis {axis!r}: expected one of {', '.join(AXES)}")
    words, pattern = AXES[axis]
    if not re.fullmatch(pattern, value):
        raise UnderstudyError(f"{axis}={value}: expected {words}")
    if axis == STRIPE_SIZE_AXIS:
        parse_size(value)
    return value


def parse(point: str) -> dict[str, str]:
    """Values of a point, by axis; an UnderstudyError for any other text."""
    values_by_axis: dict[str, str] = {}
    for word in point.split("+") if point != DEFAULT else ():
        axis, equals, value = word.partition("=")
        if not equals or axis in values_by_axis:
            raise UnderstudyError(
                f"point {point!r}: expected {DEFAULT}, or AXIS=VALUE of different axes, joined "
                "by +"
            )
        values_by_axis[axis] = check(axis, value)
    return values_by_axis


def faults(spaces: Any) -> Iterator[str]:
    """Messages on the extra `spaces` of a partition."""
    if not isinstance(spaces, dict):
        yield f"expected a dict by {' and '.join(DEFAULTS)}, got {spaces!r}"
        return
    for space, axes in spaces.items():
        axis_names = [*CASES, *(axis for axis in AXES if axis in DEFAULTS.get(space, ()))]
        if space not in DEFAULTS:
            yield f"{space!r}: expected {' or '.join(DEFAULTS)}"
        elif not isinstance(axes, dict) or set(axes) - set(axis_names):
            yield f"{space!r}: expected a dict by {', '.join(axis_names)}"
        else:
            for axis, values in axes.items():
                yield from (f"{space!r}: {fault}" for fault in _faults_of_axis(axis, values))


def _faults_of_axis(axis: str, values: Any) -> Iterator[str]:
    if not isinstance(values, list) or not all(isinstance(value, str | int) for value in values):
        yield f"{axis!r}: expected a list of texts or numbers, got {values!r}"
        return
    for value in () if axis in CASES else map(str, values):
        try:
            if value != DEFAULT:
                check(axis, value)
        except UnderstudyError as error:
            yield str(error)


def values(spaces: Mapping[str, Any], space: str, axis: str) -> list[str]:
    """The values of an axis on a partition whose extra `spaces` is `own`."""
    return list(map(str, spaces.get(space, {}).get(axis, DEFAULTS[space].get(axis, ()))))


def points(spaces: Mapping[str, Any], space: str) -> list[str]:
    """The points of a partition, in the order in which a later one may repeat an earlier one."""
    if space == SCALING:
        return [f"{NODES_AXIS}={value}" for value in values(spaces, space, NODES_AXIS)]
    return [
        DEFAULT,
        *(f"{axis}={v}" for axis in AXES for v in values(spaces, space, axis) if v != DEFAULT),
    ]


def union(partitions: Iterable[Any], of: Callable[[Any], Iterable[str]]) -> list[str]:
    """Values of all partitions, each once, in their order."""
    return list(dict.fromkeys(value for partition in partitions for value in of(partition)))


def aggregators(value: str, ranks: int, nodes: int) -> int:
    """How many ranks write for all others."""
    if value == "node":
        return nodes
    if value == "all":
        return ranks
    if value.startswith("per-"):
        return max(1, ranks // int(value.removeprefix("per-")))
    return min(int(value), ranks)


# Hints with which ROMIO takes the number of aggregators. An MPI library that does not know them,
# such as Open MPI's OMPIO, needs none beside that number.
OF_ROMIO = ("romio_cb_write", "cb_config_list")


def hints(count: int, nodes: int) -> dict[str, str]:
    """Hints for so many aggregators. ROMIO takes one of each node unless it is told otherwise;
    without collective buffering, aggregators have nothing to do."""
    asked = {"cb_nodes": str(count), "romio_cb_write": "enable"}
    each = -(-count // nodes)
    return asked | ({"cb_config_list": f"*:{each}"} if each > 1 else {})

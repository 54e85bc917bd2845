"""The smallest workload that still fails, for a person to look at."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

from tests.support.random_workloads import Row
from understudy.contracts.workload import build
from understudy.errors import UnderstudyError


def shrunk(row: Row, fails: Callable[[Row], bool]) -> Row:
    """The workload without all that it can lack and still be a workload that fails."""
    at, last = 0, -1  # where it became smaller last
    smaller = list(_smaller(row))
    while at < len(smaller):
        if _is_valid(smaller[at]) and fails(smaller[at]):
            row, last = smaller[at], at
            smaller = list(_smaller(row))
            continue
        at += 1
        if at >= len(smaller) and last >= 0:
            at, last = 0, -1  # once more: what was needed may no longer be
    return row


def _is_valid(row: Row) -> bool:
    try:
        build(row, "shrunk")
    except UnderstudyError:
        return False
    return True


def _smaller(row: Row) -> Iterator[Row]:
    """Copies that lack one value each, the largest first, or have a smaller number."""
    places = sorted(_places(row, ()), key=len)
    for place in places:
        smaller = deepcopy(row)
        *path, last = place
        del _at(smaller, path)[last]
        yield smaller
    for place in places:
        *path, last = place
        number = _at(row, path)[last]
        if isinstance(number, int) and not isinstance(number, bool) and number > 1:
            for less in sorted({1, number // 2} - {number}):
                smaller = deepcopy(row)
                _at(smaller, path)[last] = less
                yield smaller


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys if isinstance(value, dict | list) else ():
        yield (*path, key)
        if isinstance(value[key], dict | list):
            yield from _places(value[key], (*path, key))


def _at(value: Any, path: list[Any]) -> Any:
    for key in path:
        value = value[key]
    return value

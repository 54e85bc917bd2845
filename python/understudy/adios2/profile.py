"""Times of each rank as ADIOS2 measured them: profiling.json in a BP file."""

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from understudy.adios2.output import Profile
from understudy.errors import one_line
from understudy.files import read_bytes

UNITS = {"_mus": 1e-6, "_ms": 1e-3, "_s": 1.0, "_m": 60.0, "_h": 3600.0}
LARGEST_BYTES = 1 << 30
_BYTES = ("bytes", "databytes", "metadatabytes", "metametadatabytes", "wbytes", "rbytes")
_CALLS = "nCalls"


class DifferenceError(ValueError):
    """A number that is stated twice, and differently."""


def load(file: Path) -> tuple[Profile | None, str]:
    """The times in a profile, None where there is none; and why an existing one is left out."""
    if not file.exists():
        return None, ""
    try:
        if file.stat().st_size > LARGEST_BYTES:
            raise ValueError
        rows = _rows(read_bytes(file))
        by_rank = {int(row["rank"]): _equal(_numbers(row)) for row in rows}
        if len(by_rank) != len(rows) or min(by_rank, default=0) < 0:
            raise ValueError
    except DifferenceError as error:
        return None, f"{file.name} states {error} twice, and differently; its times are left out."
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None, f"{file.name} is not a profile of ADIOS2; its times are left out."
    return _profile(by_rank), ""


def _rows(data: bytes) -> Any:
    """The rows of the ranks. Up to ADIOS2 2.7, a rank without a file has a comma at its end."""
    try:
        return json.loads(data)
    except ValueError:
        return json.loads(re.sub(rb",(\s*})", rb"\1", data))


def _equal(numbers: Iterable[tuple[tuple[str, str], float]]) -> dict[tuple[str, str], float]:
    """The numbers of a rank by what they are. BP5 states a time as NAME_mus, and with its calls:
    both are equal, unless the file is damaged."""
    by_key: dict[tuple[str, str], float] = {}
    for key, value in numbers:
        if by_key.setdefault(key, value) != value:
            raise DifferenceError(one_line(key[1]))
    return by_key


def _numbers(row: dict[str, Any], prefix: str = "") -> Any:
    """The numbers of a rank: (what it is, name, value)."""
    for key, value in row.items():
        name = prefix + key
        if isinstance(value, dict):
            yield from _inner(name, value)
        elif isinstance(value, bool) or not isinstance(value, int | float):
            continue
        elif not math.isfinite(value) or value < 0:
            raise ValueError
        elif key in _BYTES:
            yield ("bytes", name), int(value)
        elif unit := next((u for u in UNITS if key.endswith(u)), ""):
            yield ("seconds", name.removesuffix(unit)), value * UNITS[unit]


def _inner(name: str, row: dict[str, Any]) -> Any:
    """Of a timer, its seconds and calls; of a transport, what it has."""
    unit = next((u for u in UNITS if u[1:] in row), "")
    if not unit:
        yield from _numbers(row, f"{name}.")
        return
    value, calls = row[unit[1:]], row.get(_CALLS, 0)
    if not (0 <= value < math.inf and 0 <= calls < math.inf):
        raise ValueError
    yield ("seconds", name), value * UNITS[unit]
    yield ("calls", name), int(calls)


def _profile(by_rank: dict[int, dict[tuple[str, str], float]]) -> Profile:
    ranks = sorted(by_rank)
    keys = sorted({key for row in by_rank.values() for key in row})

    def table(kind: str, type_: Any) -> dict[str, Any]:
        return {
            name: np.array([by_rank[rank].get((kind, name), 0) for rank in ranks], dtype=type_)
            for what, name in keys
            if what == kind
        }

    return Profile(
        ranks=np.array(ranks, dtype=np.int64),
        seconds=table("seconds", np.float64),
        calls=table("calls", np.int64),
        bytes=table("bytes", np.int64),
    )

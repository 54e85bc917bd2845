"""One quantity of an original and of its replica, and the error between them.

How each error is defined stands in docs/metrics.md. Errors are fractions (0.1 is 10%), with a sign
where a direction has a meaning; the replica is above the original where it is positive.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.program.calls import Calls
from understudy.program.counters import BINS


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One quantity on both sides; `error` is None where it was not compared, `reason` says why."""

    quantity: str
    original: str
    replica: str
    error: float | None
    reason: str = ""


def relative(original: int, replica: int) -> float:
    if original == replica:
        return 0.0
    return (replica - original) / original if original else math.inf


def counted(quantity: str, original: int, replica: int) -> Measure:
    return Measure(
        quantity=quantity,
        original=f"{original:,}",
        replica=f"{replica:,}",
        error=relative(original, replica),
    )


def sizes(a: Calls, b: Calls, quantity: str = "access sizes") -> Measure:
    """The share of calls that would have to change their bin of access sizes; a call without a
    size may be in any."""
    if not any(a.sizes) or not any(b.sizes):
        reason = "Darshan keeps no access sizes of stdio calls"
        return Measure(quantity=quantity, original="", replica="", error=None, reason=reason)
    x, y = np.array(a.sizes) / a.count, np.array(b.sizes) / b.count
    wrong = (
        np.maximum(x - y, 0).sum() - (1 - y.sum()),
        np.maximum(y - x, 0).sum() - (1 - x.sum()),
    )
    return Measure(
        quantity=quantity,
        original=_mode(a.sizes),
        replica=_mode(b.sizes),
        error=round(max(0.0, *map(float, wrong)), 12),
    )


def _mode(bins: Sequence[int]) -> str:
    """The bin with most calls, and its share."""
    most = max(range(len(bins)), key=bins.__getitem__)
    low, _, high = BINS[most].partition("_")
    return f"{bins[most] / sum(bins):.0%} {low} to {high}" if high != "PLUS" else f"{low} and more"

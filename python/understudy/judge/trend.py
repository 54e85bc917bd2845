"""Sessions over time: change points of a figure, and upgrades between sessions.

A change point is the split with the smallest p of the rank test, at least FEWEST sessions from
either end, if p times the number of splits is at most `change.ALPHA` and the medians differ by the
effect of `change.Rule`; both parts are then split again. One bad night moves no rank test of so
many sessions. Sessions are assumed independent: where they are not, change points are false more
often, and `resemblance` tells so. (What two steps leave on either side of one split looks like
dependence, so that counting sessions as fewer would hide them.)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from understudy.contracts import run as runs
from understudy.judge import change, dependence
from understudy.records.index import Index
from understudy.records.select import Where

FEWEST = 5  # sessions on each side of a change point
VERSIONS = ("software", "storage.client_version", "storage.server_version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """A session whose software differs from that of the one before: keys and both values."""

    time: str
    what: tuple[str, ...]


def change_points(values: Sequence[Sequence[float]]) -> list[int]:
    """The first session of each part but the first; values of each session, by time, above 0."""
    return _split([math.log(median(session)) for session in values], 0)


def resemblance(
    every: Sequence[Sequence[Sequence[float]]], points: Sequence[Sequence[int]]
) -> float:
    """How many sessions count as one between the change points of all figures, see
    `judge.dependence`; 1 where they are independent."""
    import numpy as np

    found, counts, parts = [], [], []
    for values, own in zip(every, points, strict=True):
        levels = np.array([math.log(median(session)) for session in values])
        split = np.split(levels, list(own))
        found.append(dependence.lags(split).tolist())
        counts.append(len(levels))
        parts.append(len(split))
    most = max(counts, default=1)
    sides = round(median(parts)) if parts else 1
    return float(dependence.factor(dependence.pooled(found, counts), most, sides))


def _split(levels: Sequence[float], offset: int) -> list[int]:
    import numpy as np

    splits = range(FEWEST, len(levels) - FEWEST + 1)
    if not splits:
        return []
    y = np.array(levels)
    p, _, at = min(
        (float(change.rank_p(y[:i], y[i:])), -abs(float(np.median(y[i:]) - np.median(y[:i]))), i)
        for i in splits
    )
    moved = abs(float(np.median(y[at:]) - np.median(y[:at])))
    if p * len(splits) > change.ALPHA or moved < -math.log(1 - change.Rule().effect):
        return []
    return [*_split(levels[:at], offset), offset + at, *_split(levels[at:], offset + at)]


def upgrades(index: Index, where: Where) -> list[Upgrade]:
    """What differs in versions from one session to the next of the same case, by time."""
    last: dict[tuple[object, ...], str] = {}
    found: dict[tuple[str, tuple[str, ...]], None] = {}
    for time, digest, *key in index.select(
        ["time", "condition", "case", "arm", "partition", "producer"], *where
    ):
        before = last.get(tuple(key), digest)
        last[tuple(key)] = digest
        if before == digest:
            continue
        first, second = runs.differences([index.condition(before), index.condition(digest)])
        what = tuple(
            f"{name}: {first[name]} \N{RIGHTWARDS ARROW} {second[name]}"
            for name in first
            if any(f"{name}.".startswith(f"{kept}.") for kept in VERSIONS)
        )
        if what:
            found[time, what] = None
    return [Upgrade(time=time, what=what) for time, what in found]

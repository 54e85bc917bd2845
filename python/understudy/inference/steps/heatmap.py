"""Time steps of a file from the heatmap: the bytes of a module over all ranks in bins of time,
minus those of other files."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.log.accesses import Hint
from understudy.inference.streams import pauses
from understudy.inference.streams.file_series import DumpFacts, Series
from understudy.inference.streams.stream_grouping import Draft

FULL = levels.HALF  # share of the heatmap's bins in use above which it shows no pauses
HALF = levels.HALF  # of a time step's bytes are at least in the heatmap at its time
NOISE = levels.SMALL  # fraction of a time step below which a rest in the heatmap is none
FROM_HEAT = "times and sizes from the HEATMAP bins, minus the bytes of other files in them"
SHARED_HEAT = (
    "times from the HEATMAP bins, which are shared with other files; equal sizes are assumed"
)


READS = " reads"  # behind the name of a module: its bytes read

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Bytes written over all ranks per time bin, of one module; `movers`: of each rank the bins
    in which it moved some, as packed bits, u8 [ranks, ceil(bins / 8)]."""

    width_s: float
    bytes: Bytes
    movers: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((0, 0), np.uint8))

    def at(self, time_s: float) -> int:
        """Bytes of the bin of this time and its neighbours."""
        n = int(time_s / self.width_s)
        return int(self.bytes[max(0, n - 1) : n + 2].sum())

    def ranks_of(self, group: npt.NDArray[np.intp]) -> set[int]:
        """The ranks that moved bytes in these bins."""
        mask = np.packbits(np.isin(np.arange(len(self.bytes)), group))
        return set(np.flatnonzero((self.movers & mask).any(axis=1)).tolist())


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    start_s: float
    end_s: float
    bytes: int
    calls: Bytes | None = None  # of each bin of sizes, if known


def from_heat(
    heats: Mapping[str, Heat],
    series: Series,
    dump: DumpFacts,
    hint: Hint | None,
    others: Iterable[Draft],
    *,
    again: bool = False,
) -> list[Burst]:
    """Time steps from the heatmap, or passes over a file that is written `again`; of 1 B each if
    the bytes of others, whose times within their files are unknown, were in the bins of several.
    One only: ranks of which each moved its bytes at another time, which are one dump.
    """
    steps = hint.steps if hint else None
    name = _MODULE[series.method] + ("" if series.write else READS)
    heat = heats.get(name)
    if heat is None:
        return []
    left = heat.bytes.astype(np.float64)
    first, last = int(dump.start_s / heat.width_s), int(dump.end_s / heat.width_s)
    left[:first] = left[last + 1 :] = 0
    taken: list[DumpFacts] = []
    for other in others:
        for other_series in other.series:
            if series.method in _SEEN[other_series.method]:
                for burst in other_series.dumps:
                    _subtract(left, heat.width_s, burst, other_series.method == "hdf5")
                    taken.append(burst)
    left[left < NOISE * left.sum() / (steps or 10)] = 0
    weak = hint is not None and hint.weak
    groups = _groups(np.flatnonzero(left), None if weak else steps)
    if len(groups) < 2 or (steps and not weak and len(groups) != steps):
        return []
    if len(heat.movers) and not again and (weak or not steps):
        groups = [
            np.concatenate(groups[part])
            for part in pauses.rounds_of([heat.ranks_of(group) for group in groups])
        ]
    if again and steps:
        hidden = [n for n in (first, last) if not left[max(0, n - 1) : n + 2].any()]
        if any(heat.at((n + 0.5) * heat.width_s) >= HALF * dump.bytes / steps for n in hidden):
            return []  # others are counted for the first or last one, which the counters time
    if weak and np.count_nonzero(left) > FULL * (last - first + 1):
        return []  # too coarse to show pauses
    ends = [
        (
            float(max(dump.start_s, g[0] * heat.width_s)),
            float(min(dump.end_s, (g[-1] + 1) * heat.width_s)),
        )
        for g in groups
    ]
    unplaced = sum(
        burst.bytes
        for burst in taken
        if sum(a < burst.end_s and burst.start_s < b for a, b in ends) > 1
    )
    if unplaced > NOISE * dump.bytes:
        period_s = (dump.end_s - dump.start_s) / (len(groups) - 1)
        times = [dump.start_s + k * period_s for k in range(len(groups))]
        if all(heat.at(t) >= HALF * dump.bytes / len(groups) for t in times):
            return [Burst(start_s=t, end_s=t, bytes=1) for t in times]
        return [Burst(start_s=a, end_s=b, bytes=1) for a, b in ends]
    return [
        Burst(start_s=a, end_s=b, bytes=max(2, round(left[g[0] : g[-1] + 1].sum())))
        for g, (a, b) in zip(groups, ends, strict=True)
    ]


def crowded(series: Series, dump: DumpFacts, others: Iterable[Draft]) -> bool:
    """True if other files have bytes in the same heatmap at the time of this one."""
    return any(
        series.method in _SEEN[other_series.method]
        and a.start_s < dump.end_s
        and dump.start_s < a.end_s
        for other in others
        for other_series in other.series
        for a in other_series.dumps
    )


def align(drafts: Sequence[Draft], heat: Mapping[str, Heat]) -> None:
    """Time steps that are known to within a bin of the heatmap are moved to a dump of another
    stream that a counter times in that bin: an application writes its files at the same time
    step, and on shared storage they wait for each other."""
    for draft in drafts:
        draft_heat = heat.get(draft.method.upper())
        if draft_heat is None or not draft.write or "DXT" in draft.timing or not draft.timing:
            continue
        exact = np.sort([s for other in drafts if other is not draft for s in _exact(other)])
        steps = draft.series[0].dumps
        for before, step, after in zip(steps, steps[1:], steps[2:], strict=False):
            near = exact[(exact > before.start_s) & (exact < after.start_s)]
            if step.count == 1 and len(near):
                to_s = float(near[np.argmin(np.abs(near - step.start_s))])
                if abs(to_s - step.start_s) <= draft_heat.width_s:
                    step.end_s += to_s - step.start_s
                    step.start_s = to_s


def _exact(draft: Draft) -> list[float]:
    """When dumps start by a counter: all, or the first of a file that stays open."""
    if not draft.write:
        return []
    return [draft.start_s(k) for k in range(1 if draft.timing else draft.dumps)]


_MODULE = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "MPIIO"}
# Methods whose bytes appear in the same heatmap, by the method of the file under study.
_SEEN = {
    "posix": ("posix",),
    "stdio": ("stdio",),
    "mpiio": ("posix", "mpiio", "hdf5"),
    "hdf5": ("posix", "mpiio", "hdf5"),
}


def _subtract(
    left: npt.NDArray[np.float64], width_s: float, burst: DumpFacts, whole: bool
) -> None:
    """Subtract the dump of another file from the heatmap, in the bins that it spans."""
    span = slice(int(burst.start_s / width_s), int(burst.end_s / width_s) + 1)
    there = left[span].sum()
    if there <= 0:
        return
    rest = there - burst.bytes
    left[span] *= 0 if whole or rest < NOISE * burst.bytes else rest / there


def _groups(bins: npt.NDArray[np.intp], steps: int | None) -> list[npt.NDArray[np.intp]]:
    """Groups of neighbouring bins; if there are too many, the closest are merged."""
    if not len(bins):
        return []
    groups = np.split(bins, np.flatnonzero(np.diff(bins) > 1) + 1)
    while steps and len(groups) > steps:
        gaps = [b[0] - a[-1] for a, b in pairwise(groups)]
        k = int(np.argmin(gaps))
        groups[k : k + 2] = [np.concatenate(groups[k : k + 2])]
    return groups

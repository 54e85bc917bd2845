"""States of a file that stays open: when each was appended and how large it is.

A log has one record for such a file. What tells its states apart is, best first: datasets written
at different times, traced accesses (DXT), the heatmap less what other files moved in the same
time, and, where a counter says how many states there are and nothing says when, an even spread.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt

from understudy.accesses import Hint
from understudy.series import BURST, Cell, DumpFacts, Series
from understudy.streams import Draft

MAX_STATES = 10_000
FEW_STATES, LEAST_BYTES = 100, 4096  # more states than few, smaller than that: lines of a text
NOISE = 0.01  # share of a state below which what is left in the heatmap is not one

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Bytes written over all ranks per time bin, of one module."""

    width_s: float
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Traced writes to one file: [n] each."""

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    bytes: Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    start_s: float
    end_s: float
    bytes: int


@dataclass(slots=True)
class States:
    """Splits drafts of one dump into states where the trace tells them apart."""

    runtime_s: float
    hints: dict[int, Hint] = field(default_factory=dict)
    heat: dict[str, Heat] = field(default_factory=dict)
    trace: Callable[[int, str], Segments | None] = lambda file, method: None

    def split(self, drafts: Sequence[Draft]) -> None:
        """Turn every draft that is one long-open file into a stream of states."""
        for draft in drafts:
            series = draft.series[0]
            items = {item for item, _ in series.dumps[0].cells}
            alone = draft.dumps == 1 and len(draft.series) == 1 and len(items) == 1
            if draft.write and alone:
                self._split(draft, [d for d in drafts if d is not draft and d.write])

    def _split(self, draft: Draft, others: Sequence[Draft]) -> None:
        series = draft.series[0]
        dump = series.dumps[0]
        file = next(iter(dump.cells.values())).file
        hint = self.hints.get(file)
        long = dump.end_s - dump.start_s > 5 * BURST * self.runtime_s
        if not long or (hint and _too_fine(hint.states, dump.bytes)):
            return
        states = hint.states if hint else None
        several = len(series.rank_spans) > 1  # ranks have files of their own
        counted = f"{hint.counter} = {hint.states}; " if hint else ""
        bursts = self._from_trace(file, series.method, states, dump.bytes)
        if grown := _by_growth(dump, bursts):
            how = (
                "H5D_BYTES_WRITTEN in equal shares of the states that a dataset spans; times from "
                "the DXT segments, divided at the largest gaps"
            )
            series.dumps = grown
        elif not _lasting(dump, bursts) and (parts := self._by_dataset(dump, states)):
            how = "H5D_F_WRITE_START_TIMESTAMP and H5D_BYTES_WRITTEN of the datasets of each state"
            series.dumps = [_dump_of(cells, dump) for cells in parts]
        elif bursts:
            how = "times and sizes from the DXT segments, divided at the largest gaps"
            series.dumps = _divide(dump, bursts)
            if several:
                how += ", of the file of one rank; that the others grew alike is assumed"
                draft.assumed = True
        elif several:
            return
        elif bursts := self._from_heat(series, dump, states, others):
            how = "times and sizes from the HEATMAP bins, less what other files moved in them"
            series.dumps = _divide(dump, self._equal(hint, bursts))
        elif states:
            how = "equal sizes, spread evenly from the first write to the last, are assumed"
            draft.assumed = True
            series.dumps = _divide(dump, _spread_evenly(dump, states))
        else:
            return
        series.dumps = [d for d in series.dumps if d.bytes]
        draft.timing = counted + how
        draft.files = "append"
        for state in series.dumps[:-1]:  # container bytes are counted with the last state
            state.extent = state.bytes if dump.extent else 0
        series.dumps[-1].extent = dump.extent - sum(d.extent for d in series.dumps[:-1])
        series.key = tuple((k,) for k in range(len(series.dumps)))

    def _by_dataset(self, dump: DumpFacts, states: int | None) -> list[list[tuple[int, Cell]]]:
        """Datasets in groups that are far apart in time, one per state."""
        cells = sorted(
            ((part, cell) for (_, part), cell in dump.cells.items()), key=lambda c: c[1].start_s
        )
        cuts = _cuts([c.start_s for _, c in cells], states, 5 * BURST * self.runtime_s)
        if not cuts:
            return []
        edges = [0, *cuts, len(cells)]
        return [cells[a:b] for a, b in pairwise(edges)]

    def _from_trace(self, file: int, method: str, states: int | None, payload: int) -> list[Burst]:
        segments = self.trace(file, method)
        if segments is None or not len(segments.bytes):
            return []
        segments = _of_payload(segments, payload)
        order = np.argsort(segments.start_s, kind="stable")
        start, end = segments.start_s[order], np.maximum.accumulate(segments.end_s[order])
        gaps = start[1:] - end[:-1]
        if states:
            cuts = sorted((np.argsort(gaps)[::-1][: states - 1] + 1).tolist())
        else:
            cuts = (np.flatnonzero(gaps > BURST * self.runtime_s) + 1).tolist()
        if not cuts or (states and len(cuts) != states - 1):
            return []
        edges = [0, *cuts, len(start)]
        sizes = segments.bytes[order]
        if not sizes.any():
            return []
        return [
            Burst(start_s=float(start[a]), end_s=float(end[b - 1]), bytes=int(sizes[a:b].sum()))
            for a, b in pairwise(edges)
        ]

    def _from_heat(
        self, series: Series, dump: DumpFacts, states: int | None, others: Iterable[Draft]
    ) -> list[Burst]:
        name = _MODULE[series.method]
        heat = self.heat.get(name)
        if heat is None:
            return []
        left = heat.bytes.astype(np.float64)
        first, last = int(dump.start_s / heat.width_s), int(dump.end_s / heat.width_s)
        left[:first] = left[last + 1 :] = 0
        for other in others:
            for one in other.series:
                if series.method in _SEEN[one.method]:
                    for burst in one.dumps:
                        _take_away(left, heat.width_s, burst, one.method == "hdf5")
        left[left < NOISE * left.sum() / (states or 10)] = 0
        groups = _groups(np.flatnonzero(left), states)
        if len(groups) < 2 or (states and len(groups) != states):
            return []
        return [
            Burst(
                start_s=float(max(dump.start_s, g[0] * heat.width_s)),
                end_s=float(min(dump.end_s, (g[-1] + 1) * heat.width_s)),
                bytes=max(1, round(left[g[0] : g[-1] + 1].sum())),
            )
            for g in groups
        ]

    def _equal(self, hint: Hint | None, bursts: list[Burst]) -> list[Burst]:
        """States of a dataset that grew by its first shape again and again are equal."""
        if hint is None or "NPOINTS" not in hint.counter:
            return bursts
        return [Burst(start_s=b.start_s, end_s=b.end_s, bytes=1) for b in bursts]


def _by_growth(dump: DumpFacts, bursts: Sequence[Burst]) -> list[DumpFacts]:
    """Datasets that grew by one shape again and again, in equal shares over the states that they
    span, and those of two states; so are those that grew in another way, if they are so small that
    it makes no difference. Nothing where none grew, or a large one in another way: there the trace
    knows more."""
    between = _between(bursts)
    made = [DumpFacts(cells={}, start_s=b.start_s, end_s=b.end_s) for b in bursts]
    grew = False
    assumed: list[tuple[int, slice]] = []
    for key, cell in dump.cells.items() if made else ():
        if _grew(cell, len(made)):  # it is in every state, wherever the gaps are
            first, last = 0, len(made) - 1
        else:
            first, last = np.searchsorted(between, (cell.start_s, cell.end_s)).tolist()
        spans = last - first + 1
        ends = list(range(spans + 1))
        if spans > 1 and not _grew(cell, spans):
            ends = [0, cell.points * cell.element, _bytes(cell)]
            if spans > 2 or not 0 < ends[1] < ends[2]:
                ends = list(range(spans + 1))
                assumed.append((_bytes(cell), slice(first, last + 1)))
        grew = grew or spans > 1
        for k in range(spans):
            made[first + k].cells[key] = _share(cell, k, ends)
    if any(size > NOISE * sum(state.bytes for state in made[span]) for size, span in assumed):
        return []
    return made if grew and all(state.bytes for state in made) else []


def _between(bursts: Sequence[Burst]) -> list[float]:
    """A time between each burst and the next."""
    return [(a.end_s + b.start_s) / 2 for a, b in pairwise(bursts)]


def _lasting(dump: DumpFacts, bursts: Sequence[Burst]) -> bool:
    """Was a dataset written in several bursts? Its states are then not told by the datasets."""
    between = _between(bursts)
    return any(
        np.searchsorted(between, c.start_s) != np.searchsorted(between, c.end_s)
        for c in dump.cells.values()
    )


def _grew(cell: Cell, times: int) -> bool:
    """Whether a dataset took one shape so many times, up to an element each. Darshan knows its
    elements when it was opened last: its first shape if it stayed open, else all but the last."""
    size, opened = _bytes(cell), cell.points * cell.element
    return any(
        0 < shape < size and abs(size - times * shape) <= times * cell.element
        for shape in (opened, size - opened)
    )


def _bytes(cell: Cell) -> int:
    return cell.shared_bytes + (0 if cell.rank_bytes is None else int(cell.rank_bytes.sum()))


def _too_fine(states: int, size: int) -> bool:
    return states > MAX_STATES or (states > FEW_STATES and size < LEAST_BYTES * states)


_MODULE = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "MPIIO"}
# In whose heatmaps the bytes of a method show up, by the method of the file under study.
_SEEN = {
    "posix": ("posix",),
    "stdio": ("stdio",),
    "mpiio": ("posix", "mpiio", "hdf5"),
    "hdf5": ("posix", "mpiio", "hdf5"),
}


def _of_payload(segments: Segments, payload: int) -> Segments:
    """Without the accesses of a library for itself (HDF5's metadata), which are small: those that
    are left are the longest, if there is a length from which on they are the payload."""
    lengths, count = np.unique(segments.bytes, return_counts=True)
    longest = np.cumsum((lengths * count)[::-1])[::-1]
    found = np.flatnonzero(longest == payload)
    if not len(found):
        return segments
    kept = segments.bytes >= lengths[found[0]]
    return Segments(
        start_s=segments.start_s[kept], end_s=segments.end_s[kept], bytes=segments.bytes[kept]
    )


def _cuts(starts: Sequence[float], states: int | None, gap_s: float) -> list[int]:
    gaps = np.diff(starts)
    if states:
        if len(starts) < states:
            return []
        return sorted((np.argsort(gaps, kind="stable")[::-1][: states - 1] + 1).tolist())
    return (np.flatnonzero(gaps > gap_s) + 1).tolist()  # type: ignore[no-any-return]


def _take_away(
    left: npt.NDArray[np.float64], width_s: float, burst: DumpFacts, whole: bool
) -> None:
    """Take another file's dump out of the heatmap, in the bins that it spans."""
    span = slice(int(burst.start_s / width_s), int(burst.end_s / width_s) + 1)
    there = left[span].sum()
    if there <= 0:
        return
    rest = there - burst.bytes
    left[span] *= 0 if whole or rest < NOISE * burst.bytes else rest / there


def _groups(bins: npt.NDArray[np.intp], states: int | None) -> list[npt.NDArray[np.intp]]:
    """Neighbouring bins as groups; more groups than states are joined where they are closest."""
    if not len(bins):
        return []
    groups = np.split(bins, np.flatnonzero(np.diff(bins) > 1) + 1)
    while states and len(groups) > states:
        gaps = [b[0] - a[-1] for a, b in pairwise(groups)]
        k = int(np.argmin(gaps))
        groups[k : k + 2] = [np.concatenate(groups[k : k + 2])]
    return groups


def _spread_evenly(dump: DumpFacts, states: int) -> list[Burst]:
    step = (dump.end_s - dump.start_s) / max(1, states - 1)
    times = [dump.start_s + k * step for k in range(states)]
    return [Burst(start_s=t, end_s=t, bytes=1) for t in times]


def _dump_of(cells: list[tuple[int, Cell]], whole: DumpFacts) -> DumpFacts:
    start_s = min(c.start_s for _, c in cells)
    return DumpFacts(
        cells={((), part): cell for part, cell in cells},
        start_s=start_s,
        end_s=max(c.end_s for _, c in cells),
        extent=0,
    )


def _divide(dump: DumpFacts, bursts: Sequence[Burst]) -> list[DumpFacts]:
    """The dump in as many as there are bursts, each rank's bytes in proportion to theirs."""
    edges = [0, *accumulate(b.bytes for b in bursts)]
    return [
        DumpFacts(
            cells={key: _share(cell, k, edges) for key, cell in dump.cells.items()},
            start_s=burst.start_s,
            end_s=burst.end_s,
        )
        for k, burst in enumerate(bursts)
    ]


def _share(cell: Cell, k: int, edges: Sequence[int]) -> Cell:
    """State k of a cell, whose bytes are in proportion to what lies between edges k and k + 1."""
    low, high, total = edges[k], edges[k + 1], edges[-1]
    states, share = len(edges) - 1, (high - low) / total

    def part(size: int) -> int:
        rows = size // cell.element
        return (rows * high // total - rows * low // total) * cell.element

    ranks = cell.rank_bytes
    return Cell(
        rank_bytes=None
        if ranks is None
        else np.array([part(n) for n in ranks.tolist()], np.int64),
        rank_calls=cell.rank_calls.state(k, states, share),
        shared_bytes=part(cell.shared_bytes),
        shared_calls=cell.shared_calls.state(k, states, share),
        even=cell.even,
        element=cell.element,
        start_s=cell.start_s,
        end_s=cell.end_s,
        file=cell.file,
    )

"""Pace of a dump in a trace: its bytes are moved at once, or evenly over its duration."""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.steps import skews
from understudy.inference.streams.file_series import Cell
from understudy.inference.streams.stream_grouping import Draft
from understudy.inference.table import BURST, LONG
from understudy.program.sizes import PLAIN

FILES = levels.ALIKE  # of a stream, whose traces are looked at
CALLS = levels.SEVERAL  # of a rank in a dump from which on they have a pace
BUSY = levels.HALF  # share of the duration in calls, above which they follow each other
UNEVEN = levels.SOME  # share of the duration by which a call may be off
SHARED = levels.PART  # share of the dumps in which dumps of other streams may begin
# Times that a rank is in calls, above which a dump is not one burst for sure.
APART = levels.TIMES
AT_LEAST_S = levels.NEAR_S  # seconds of such a dump, or LONG of the run
TRACED = levels.SOME  # share of the run up to which a dump in a trace lasts for sure
OPEN = levels.HALF  # share of a dump's length that has to be alone for its calls to be spread
# Interfaces in whose calls ranks do not wait for each other, but in collective ones.
ALONE = PLAIN
STEADY = 10**12  # calls that leave no time to others
AGREE = 1 - levels.THIRD  # share of the dumps that have to be alike

Times = npt.NDArray[np.float64]


class Traced(Protocol):
    """Accesses to one file, see `understudy.inference.steps.passes.Segments`."""

    @property
    def rank(self) -> npt.NDArray[np.int64]: ...
    @property
    def start_s(self) -> Times: ...
    @property
    def end_s(self) -> Times: ...
    @property
    def bytes(self) -> npt.NDArray[np.int64]: ...


def learn(
    drafts: Sequence[Draft], trace: Callable[[int, str, bool], Traced | None], runtime_s: float
) -> None:
    """Make the pace of drafts steady if most of their dumps that are traced have calls at equal
    distances; their duration then includes the distance behind the last one. A rank plays one
    dump at a time: those in which others begin stay bursts."""
    begins = [np.array([d.start_s(k) for k in range(d.dumps)]) for d in drafts]
    every = np.sort(np.concatenate([np.empty(0), *begins]))
    for draft, start_s in zip(drafts, begins, strict=True):
        edges = [start_s, np.array([draft.end_s(k) for k in range(draft.dumps)])]
        all_begun, own_begun = (
            np.subtract(*(np.searchsorted(starts, edge) for edge in reversed(edges)))
            for starts in (every, np.sort(start_s))
        )
        if (all_begun > own_begun).mean() <= SHARED:
            _learn(draft, trace, runtime_s)


def _learn(
    draft: Draft, trace: Callable[[int, str, bool], Traced | None], runtime_s: float
) -> None:
    main = max(draft.series, key=lambda s: s.bytes)
    lengths = np.array([draft.end_s(k) - draft.start_s(k) for k in range(draft.dumps)])
    if draft.method not in ("posix", "mpiio") or main.collective or lengths.min() < 1e-6:
        return
    if np.median(lengths) <= BURST * runtime_s:
        return
    traces: dict[int, Traced | None] = {}
    seen, steady, calls = 0, 0, []
    for dump in main.dumps:
        cell = max(dump.cells.values(), key=lambda c: c.bytes)
        if cell.file not in traces:
            if len(traces) >= FILES:
                continue
            traces[cell.file] = trace(cell.file, draft.method, draft.write)
        segments = traces[cell.file]
        if segments is None:
            continue
        seen += 1
        count = even_calls(segments, dump.start_s, dump.end_s)
        steady += count > 0
        calls.append(count)
    if not seen or steady < AGREE * seen:
        return
    draft.pace = "steady"
    usual = float(np.median([n for n in calls if n]))
    for series in draft.series:
        for dump in series.dumps:
            dump.end_s += (dump.end_s - dump.start_s) / (usual - 1)


def part(drafts: Sequence[Draft], runtime_s: float) -> None:
    """Note how long the dumps of drafts are alone, in seconds: until another begins; and the share
    of each in the calls of those that begin with it, among which that time is divided."""
    dumps = [(d, k) for d in drafts for k in range(d.dumps)]
    time_s = np.array([d.start_s(k) for d, k in dumps])
    calls = np.array([_calls(d, k) for d, k in dumps], np.float64)
    order = np.argsort(time_s, kind="stable")
    begins = np.append(time_s[order], np.inf)
    before = np.append(0.0, np.cumsum(calls[order]))
    same_s = levels.NEGLIGIBLE * runtime_s
    first, behind = (np.searchsorted(begins, time_s + s, "right") for s in (-same_s, same_s))
    alone = np.stack(
        [begins[behind] - time_s, calls / np.maximum(1, before[behind] - before[first])]
    )
    ends = np.cumsum([d.dumps for d in drafts])
    for draft, columns in zip(
        drafts, np.split(alone, ends[:-1], axis=1) if drafts else (), strict=True
    ):
        draft.alone = columns


def _calls(draft: Draft, k: int) -> int:
    if draft.pace != "burst":
        return STEADY
    return sum(c.calls for s in draft.series for c in s.dumps[k].cells.values())


def compute_s(draft: Draft, k: int, ranks: int, runtime_s: float) -> float:
    """Seconds that a rank spent between the calls of a dump; 0 where the log does not tell when
    these were made, or ranks waited for each other in them. In a dump that lasts long, a rank did
    other I/O too, for which it ends when another begins, and shares the time with those that began
    with it."""
    told = "DXT" in draft.timing if draft.timing else not draft.assumed
    length_s = draft.end_s(k) - draft.start_s(k)
    if not told or draft.pace != "burst" or (draft.paced and not draft.spread):
        return 0.0
    if draft.spread or length_s > (TRACED if draft.timing else LONG) * runtime_s:
        alone_s, share = draft.alone[:, k].tolist()
        if draft.late or OPEN * length_s > alone_s:
            return 0.0
        length_s = share * min(length_s, alone_s)
    cells = [c for s in draft.series for c in s.dumps[k].cells.values()]
    if draft.method not in ALONE or _any_together(cells):
        return 0.0
    known_s = [c.busy_s for c in cells if np.isfinite(c.busy_s)]
    rest_s = length_s - skews.last_s(draft, k) - sum(known_s) / _ranks_of(cells, ranks)
    return max(0.0, rest_s) if known_s else 0.0


def _any_together(cells: Sequence[Cell]) -> bool:
    tallies = [tally for cell in cells for tally in cell.tallies]
    return any(collective for tally in tallies for collective, _ in tally.kinds)


def _ranks_of(cells: Sequence[Cell], ranks: int) -> float:
    """How many ranks move the bytes of a dump."""
    movers = [c.rank_bytes > 0 for c in cells if c.rank_bytes is not None]
    some = float(np.mean(np.any(movers, axis=0))) if len({len(m) for m in movers}) == 1 else 1.0
    return ranks if any(c.shared_bytes for c in cells) else max(1.0, some * ranks)


def doubt(draft: Draft, ranks: int, runtime_s: float) -> None:
    """Note that dumps last far longer than their calls, if nothing tells when these were made.
    These are spread where no other dump begins, else one burst, so that others keep their
    times."""
    if draft.timing or draft.folded or draft.pace != "burst":
        return
    length_s = busy_s = open_s = 0.0
    for k in range(draft.dumps):
        cells = [c for s in draft.series for c in s.dumps[k].cells.values()]
        busy_s += sum(c.busy_s for c in cells) / _ranks_of(cells, ranks) / draft.dumps
        alone_s = draft.end_s(k) - draft.start_s(k) - skews.last_s(draft, k)
        length_s += alone_s / draft.dumps
        open_s += alone_s / draft.dumps * (OPEN * alone_s <= draft.alone[0, k])
    if length_s > APART * busy_s and length_s > min(AT_LEAST_S, LONG * runtime_s):
        draft.spread = open_s > OPEN * length_s and draft.method in ALONE and not draft.late
        draft.paced = (
            f"a dump lasted {length_s:.3g} s, of which a rank spent {busy_s:.2g} s in data calls"
        )
        how = "its calls are spread over that" if draft.spread else "it is played as one burst"
        draft.remarks.append(f"{draft.paced}; {how}: when they were made is not described")


def even_calls(segments: Traced, first_s: float, last_s: float) -> int:
    """How many calls the rank that moved most made between these times, if they are spread
    evenly; 0 if not."""
    inside = np.flatnonzero((segments.start_s >= first_s - 1e-6) & (segments.start_s <= last_s))
    if len(inside) < CALLS:
        return 0
    ranks, index = np.unique(segments.rank[inside], return_inverse=True)
    moved = np.bincount(index.ravel(), weights=segments.bytes[inside])
    rank_calls = inside[segments.rank[inside] == ranks[int(np.argmax(moved))]]
    rank_calls = rank_calls[np.argsort(segments.start_s[rank_calls], kind="stable")]
    if len(rank_calls) < CALLS:
        return 0
    start_s, size = segments.start_s[rank_calls], segments.bytes[rank_calls].astype(np.float64)
    span_s = float(start_s[-1] - start_s[0])
    if (segments.end_s[rank_calls] - start_s).sum() > BUSY * span_s or not size.sum():
        return 0
    before = (np.cumsum(size) - size) / max(1.0, float(size.sum() - size[-1]))
    along = (start_s - start_s[0]) / span_s
    return len(rank_calls) if float(np.abs(along - before).max()) <= UNEVEN else 0

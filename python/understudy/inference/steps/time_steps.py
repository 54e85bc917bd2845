"""Time steps of a file that stays open: when each was appended and how large it is.

A log has one record for such a file. The time steps are found, in order of preference, from
datasets written at different times, from traced accesses (DXT), from the heatmap minus the bytes
of other files in the same time, or, if only a counter gives their number, by an even spread.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Order
from understudy.inference import constants as levels
from understudy.inference.log.accesses import Hint
from understudy.inference.steps import (
    orders,
    overlaps,
    pace,
    reads_between_writes,
    scratch_files,
)
from understudy.inference.steps.heatmap import (
    FROM_HEAT,
    NOISE,
    SHARED_HEAT,
    Burst,
    Heat,
    align,
    crowded,
    from_heat,
)
from understudy.inference.steps.overwritten_files import counted, is_again
from understudy.inference.steps.passes import (
    Segments,
    filled,
    grows,
    moved_once,
    of_payload,
    passes,
    reads_once,
    runs_of,
    some,
)
from understudy.inference.steps.split_dump import (
    RULE_STEPS,
    Bytes,
    as_rule,
    divide,
    evenly,
)
from understudy.inference.streams import pauses
from understudy.inference.streams.file_series import Cell, DumpFacts, Series
from understudy.inference.streams.stream_grouping import Draft
from understudy.inference.table import BURST, LONG
from understudy.program.counters import BIN_BYTES, BINS
from understudy.program.types import MAX_DUMPS

MAX_STEPS = 10_000  # irregular ones
PLACED = levels.PRECISE  # share of the run by which a rule may misplace a time step
FEW_STEPS, MIN_BYTES = levels.HUNDRED, levels.LINES  # more and smaller: lines of a text file
SINGLE = 1 + levels.QUARTER  # calls of such a time step on average, at most
MANY = levels.TIMES  # time steps that show themselves in a shorter time too
TINY = levels.TINY  # share of the largest time step below which accesses are none
LIVES = "lives in the DXT segments, of other sizes"
IDLE = 1 - levels.PART  # if the file rests for this share of the time


@dataclass(slots=True)
class TimeSteps:
    """Splits drafts of one dump into time steps, if the trace separates them."""

    runtime_s: float
    ranks: int = 1
    hints: dict[int, Hint] = field(default_factory=dict)
    heat: dict[str, Heat] = field(default_factory=dict)
    trace: Callable[[int, str, bool], Segments | None] = lambda file, method, write: None

    def split(self, drafts: Sequence[Draft]) -> Sequence[Draft]:
        """Turn every draft that is one long-open file into a stream of time steps."""
        for written, read in _both_directions(drafts):
            self._divide_scratch_file(written, read)
        drafts = reads_between_writes.joined(drafts)
        for draft in drafts:
            if draft.files != "new" or draft.scratch_dumps:
                continue
            series = draft.series[0]
            items = {item for item, _ in series.dumps[0].cells}
            alone = draft.dumps == 1 and len(draft.series) == 1 and len(items) == 1
            if draft.write and alone:
                self._split(draft, _others(drafts, draft))
            elif alone and is_again(cells := list(series.dumps[0].cells.values())):
                segments = self._traced(cells[0].file, series, 0)
                if remark := reads_once(cells, self.ranks, segments):
                    draft.remarks.append(remark)
                else:
                    self._split_again(draft, _others(drafts, draft))
        others = [d for d in drafts if not d.scratch_dumps]
        for draft in others:
            orders.traced(draft, self.trace)
            overlaps.learn(draft, self.trace)
        align(others, self.heat)
        pace.learn(others, self.trace, self.runtime_s)
        return drafts

    def _divide_scratch_file(self, written: Draft, read: Draft) -> None:
        """A file that is read and written in turn, if its traces show that."""
        both = [
            (draft, draft.series[0].dumps[0], next(iter(draft.series[0].dumps[0].cells.values())))
            for draft in (written, read)
        ]
        traces = []
        shares = []
        for draft, _, cell in both:
            segments = self._traced(cell.file, draft.series[0], 0)
            rank_bytes = cell.rank_bytes
            if (
                segments is None
                or rank_bytes is None
                or len(rank_bytes) != self.ranks
                or cell.shared_bytes
            ):
                return
            segments = some(segments, np.flatnonzero(segments.bytes))
            traced = int(segments.rank[0])
            if not 0 <= traced < self.ranks or not rank_bytes[traced]:
                return
            if abs(segments.bytes.sum() - rank_bytes[traced]) > NOISE * rank_bytes[traced]:
                return
            traces.append(segments)
            shares.append(rank_bytes / rank_bytes[traced])
        if both[0][2].file != both[1][2].file or np.abs(shares[0] - shares[1]).max() > NOISE:
            return
        opens = max(cell.opens for _, _, cell in both)
        scratch = scratch_files.find(traces[0], traces[1], opens, BURST * self.runtime_s)
        if scratch is None:
            return
        for (draft, dump, _), segments, dumps in zip(
            both, traces, (scratch.written, scratch.read), strict=True
        ):
            bursts = [_burst(segments, slice(t.first, t.last)) for t in dumps]
            draft.series[0].dumps = divide(dump, bursts)
            draft.series[0].key = tuple((k,) for k in range(len(dumps)))
            draft.scratch_dumps, draft.shares = dumps, shares[0]
            draft.order, draft.ordered, draft.block, draft.remarks = Order(), "", 0, []
            draft.timing = "times, sizes and places from the DXT segments of both directions"
            if self.ranks > 1 and np.count_nonzero(shares[0]) > 1:
                draft.timing += ", of the file of one rank; those of the others are alike"
        read.files = "update"
        again = scratch.contents > 1
        written.files, written.removes = ("rewrite", LIVES) if again else ("new", "")
        written.again = (
            f"of {opens} opens per rank, {scratch.contents} behind which nothing was read that "
            "was written before"
        )
        written.again_sure = scratch.sure
        if again:
            written.remarks.append(
                f"that its files were removed and created again {scratch.contents - 1} times is "
                "assumed, since nothing was read any more of what was written before"
            )

    def _split(self, draft: Draft, others: Sequence[Draft]) -> None:
        series = draft.series[0]
        dump = series.dumps[0]
        file = next(iter(dump.cells.values())).file
        cells = list(dump.cells.values())
        once = filled(cells, dump.extent) or grows(self.trace(file, "posix", True), dump.extent)
        if is_again(cells) and not once:
            whole = self._traced(file, series, 0)
            if whole is None or not moved_once(whole, write=True):
                self._split_again(draft, others)
                return
        hint = self.hints.get(file)
        steps = hint.steps if hint else None
        several = len(series.rank_spans) > 1  # ranks have files of their own
        counted = f"{hint.counter} = {hint.steps}; " if hint else ""
        segments = self._traced(file, series, dump.bytes)
        bursts, plausible, clear = self._from_trace(segments, hint)
        if not self._lasts(dump, bursts):
            return
        if len(bursts) == 1:
            draft.late = True
            return
        if bursts and (_too_fine(len(bursts), dump.bytes) or _lines(bursts)):
            fine, plausible = len(bursts), ()
            lines = segments if _lines(bursts) else None
            if lines is not None and pace.even_calls(lines, dump.start_s, dump.end_s):
                draft.remarks.append(
                    "its calls follow one another at equal distances; that they are one dump, and "
                    f"not {fine} time steps, is assumed"
                )
                return
            bursts = self._coarse(segments)
            draft.remarks.append(_lost(fine, len(bursts), dump.bytes))
            if len(bursts) < 2:
                return
        elif hint and not bursts and _too_fine(hint.steps, dump.bytes):
            draft.remarks.append(_lost(hint.steps, 1, dump.bytes))
            return
        if not _lasting(dump, bursts) and (parts := self._by_dataset(dump, hint)):
            how = (
                "H5D_F_WRITE_START_TIMESTAMP and H5D_BYTES_WRITTEN of the datasets of each time "
                "step"
            )
            series.dumps = [_dump_of(cells, dump) for cells in parts]
        elif bursts:
            how = "times and sizes from the DXT segments, divided at the longest pauses"
            series.dumps, many = self._held(dump, bursts, segments)
            draft.remarks += many
            if not clear and hint is not None and hint.weak:
                draft.unclear = True
                draft.remarks.append(
                    f"the pauses of its trace tell no time steps; that there are {len(bursts)} is "
                    f"a guess from {hint.counter}"
                )
            if plausible:
                draft.unclear = True
                draft.remarks.append(
                    f"the pauses of its trace tell {len(bursts)} time steps from each other, but "
                    f"{' or '.join(map(str, plausible))} are plausible too"
                )
            if several:
                how += ", of the file of one rank; equal growth of the others is assumed"
                draft.assumed = True
        elif several:
            return
        elif bursts := from_heat(self.heat, series, dump, hint, others):
            if len(bursts) == 1:
                draft.late = True
                return
            how = FROM_HEAT
            draft.unclear = crowded(series, dump, others)
            if bursts[0].bytes == 1:
                how, draft.assumed, draft.unclear = SHARED_HEAT, True, False
            series.dumps = divide(dump, self._equal(hint, bursts))
        elif hint and steps:
            how = "equal sizes, spread evenly from the first write to the last, are assumed"
            draft.assumed = True
            if hint.weak:
                draft.remarks.append(
                    f"no trace shows its time steps; that there are {steps} is a guess from "
                    f"{hint.counter}"
                )
            series.dumps = evenly(dump, min(steps, MAX_DUMPS))
            if steps > MAX_DUMPS:
                draft.remarks.append(_lost(steps, MAX_DUMPS, dump.bytes))
        else:
            return
        series.dumps = [d for d in series.dumps if d.bytes]
        draft.timing = counted + how
        draft.files, draft.reopen = "append", False
        for step in series.dumps[:-1]:  # container bytes are counted with the last time step
            step.extent = step.bytes if dump.extent else 0
        series.dumps[-1].extent = dump.extent - sum(d.extent for d in series.dumps[:-1])
        series.key = tuple((k,) for k in range(len(series.dumps)))

    def _lasts(self, dump: DumpFacts, bursts: Sequence[Burst]) -> bool:
        """True if a file is used for so long, or so often, that it holds several time steps."""
        span_s = dump.end_s - dump.start_s
        busy_s = sum(b.end_s - b.start_s for b in bursts)
        often = len(bursts) >= MANY and busy_s <= (1 - IDLE) * span_s
        return span_s > LONG * self.runtime_s or often

    def _by_dataset(self, dump: DumpFacts, hint: Hint | None) -> list[list[tuple[int, Cell]]]:
        """Datasets in groups that are far apart in time, one per time step."""
        cells = sorted(
            ((variable, cell) for (_, variable), cell in dump.cells.items()),
            key=lambda c: c[1].start_s,
        )
        start_s = np.array([c.start_s for _, c in cells])
        end_s = np.array([c.end_s for _, c in cells])
        gaps = np.diff(start_s) if hint else pauses.pauses_of(start_s, end_s)
        if hint:
            cuts = _told(gaps, hint)
        else:
            sizes = np.array([c.bytes for _, c in cells], np.int64)
            call_s = float(np.median(end_s - start_s))
            cuts = pauses.cut(gaps, sizes, call_s=call_s, few_s=LONG * self.runtime_s)
        if not cuts.at:
            return []
        edges = [0, *cuts.at, len(cells)]
        return [cells[a:b] for a, b in pairwise(edges)]

    def _split_again(self, draft: Draft, others: Sequence[Draft]) -> None:
        """The passes over files that are written again and again."""
        series = draft.series[0]
        dump = series.dumps[0]
        cells = list(dump.cells.values())
        segments = self._traced(cells[0].file, series, 0)
        begins = (passes(segments) or []) if segments is not None else []
        repeats = counted(cells, len(begins) + 1 if begins else 0)
        if not series.write:  # other ranks may have read the same bytes
            repeats = replace(repeats, sure=bool(begins))
        bursts: list[Burst] = []
        if segments is not None and begins:
            how = "times and sizes from the DXT segments, divided where offsets start again"
            bursts = _bursts(segments, np.searchsorted(segments.start_s, begins).tolist())
        elif segments is not None:
            how = "times and sizes from the DXT segments, divided at the longest pauses"
            gaps = pauses.pauses_of(segments.start_s, segments.end_s)
            bursts = _bursts(segments, pauses.cut_into(gaps, repeats.times).at)
        if len(bursts) < 2:
            how = FROM_HEAT
            bursts = from_heat(
                self.heat, series, dump, Hint(repeats.times, ""), others, again=True
            )
            shared = bool(bursts) and bursts[0].bytes == 1
            if bursts and (repeats.sure or max(b.bytes for b in bursts) > dump.extent):
                how = "times from the HEATMAP bins; the whole file each time"
                bursts = [replace(b, bytes=1) for b in bursts]
            if bursts and bursts[0].bytes == 1 and not repeats.sure:
                how, draft.assumed = SHARED_HEAT, True
            elif shared:
                how += "; the bins are shared with other files"
                draft.assumed = True
            elif bursts:
                draft.unclear = crowded(series, dump, others)
        if len(bursts) < 2:
            how = "equal sizes, spread evenly from the first write to the last, are assumed"
            draft.assumed = True
            series.dumps = evenly(dump, repeats.times)
        else:
            series.dumps, many = self._held(dump, bursts, segments)
            draft.remarks += many
        if len(series.rank_spans) > 1 and not draft.assumed:
            how += ", of the file of one rank; those of the others are assumed to be alike"
            draft.assumed = True
        if not repeats.sure and not begins:
            draft.remarks.append(
                f"that its files were {'written' if series.write else 'read'} {repeats.times} "
                f"times is a guess: {repeats.how}"
            )
        largest = max(d.bytes for d in series.dumps)
        # What is left of earlier, longer contents was not truncated.
        left_over = bool(begins) and dump.extent > (1 + NOISE) * largest
        rewritten = series.write and repeats.rewritten and not left_over
        draft.files = "rewrite" if rewritten and not draft.lookups else "update"
        draft.reopen = rewritten or repeats.reopened
        draft.again, draft.again_sure = repeats.how, repeats.sure or bool(begins)
        draft.timing = how
        series.dumps = [d for d in series.dumps if d.bytes]
        container = series.method == "hdf5" and rewritten
        beyond = max(0, dump.extent - largest) if container else 0
        for step in series.dumps:
            step.extent = step.bytes + beyond if series.write else 0
        series.key = tuple((k,) for k in range(len(series.dumps)))

    def _held(
        self, dump: DumpFacts, bursts: Sequence[Burst], segments: Segments | None
    ) -> tuple[list[DumpFacts], list[str]]:
        """The dumps of the bursts, a rule for many that are regular, and remarks: of very many
        that are not, neighbours are put together."""
        count = len(bursts)
        if count <= RULE_STEPS:
            return divide(dump, bursts), []
        start_s = np.array([b.start_s for b in bursts])
        sizes = np.array([b.bytes for b in bursts[:-1]])
        period_s = float(start_s[-1] - start_s[0]) / (count - 1)
        late_s = np.abs(start_s - start_s[0] - period_s * np.arange(count)).max()
        mean = float(sizes.mean())
        if late_s <= PLACED * self.runtime_s and np.abs(sizes - mean).max() <= NOISE * mean:
            length_s = float(np.median([b.end_s - b.start_s for b in bursts]))
            return as_rule(dump, bursts[0].start_s, period_s, length_s, count), []
        if count > MAX_STEPS and segments is not None:
            gaps = pauses.pauses_of(segments.start_s, segments.end_s)
            bursts = _bursts(segments, pauses.cut_into(gaps, MAX_STEPS).at)
            return divide(dump, bursts), [_lost(count, len(bursts), dump.bytes)]
        return divide(dump, bursts), []

    def _traced(self, file: int, series: Series, payload: int) -> Segments | None:
        """The trace of a file in order of time, without a library's own accesses where the
        payload tells them; None if it has no bytes."""
        segments = self.trace(file, series.method, series.write)
        if segments is None or not segments.bytes.any():
            return None
        cells = [c for d in series.dumps for c in d.cells.values()]
        single_file = len({c.file for c in cells}) == 1 and max(c.files for c in cells) == 1
        if single_file and segments.bytes.sum() < (1 - NOISE) * sum(c.bytes for c in cells):
            return None  # it was cut short: what happened later is not in it
        segments = of_payload(segments, payload)
        return some(segments, np.argsort(segments.start_s, kind="stable"))

    def _coarse(self, segments: Segments | None) -> list[Burst]:
        """Time steps at pauses that are long for the run."""
        if segments is None:
            return []
        gaps = pauses.pauses_of(segments.start_s, segments.end_s)
        return _bursts(segments, (np.flatnonzero(gaps > BURST * self.runtime_s) + 1).tolist())

    def _from_trace(
        self, segments: Segments | None, hint: Hint | None
    ) -> tuple[list[Burst], tuple[int, ...], bool]:
        """The time steps of a trace, which other numbers of them are plausible, and whether its
        pauses tell them."""
        if segments is None:
            return [], (), False
        start, end, sizes = segments.start_s, segments.end_s, segments.bytes
        gaps = pauses.pauses_of(start, end)
        call_s = float(np.median(end - start))
        cuts = pauses.cut(gaps, sizes, call_s=call_s, few_s=BURST * self.runtime_s)
        if hint:
            told = _told(gaps, hint)
            if hint.sure or not cuts.clear or (told.clear and not hint.weak):
                cuts = told
        if not cuts.clear and hint is not None and hint.weak:
            steps = runs_of(segments)
            if len(steps) == hint.steps:
                return [_burst(segments, step) for step in steps], (), False
        if not cuts.at:
            return [], (), False
        at = _without_tiny(sizes, cuts.at)
        if hint is None or hint.weak:
            edges = [0, *at, len(sizes)]
            rounds = pauses.rounds_of(
                [set(segments.rank[a:b].tolist()) for a, b in pairwise(edges)]
            )
            at = tuple(edges[part.start] for part in rounds[1:])
            if not at and len(edges) > 2:
                return _bursts(segments, ()), (), True
        return _bursts(segments, at), cuts.others, cuts.clear

    def _equal(self, hint: Hint | None, bursts: list[Burst]) -> list[Burst]:
        """Time steps of a dataset that grew by its first shape repeatedly are equal."""
        if hint is None or "NPOINTS" not in hint.counter:
            return bursts
        return [Burst(start_s=b.start_s, end_s=b.end_s, bytes=1) for b in bursts]


def _both_directions(drafts: Sequence[Draft]) -> list[tuple[Draft, Draft]]:
    """The drafts of single files that are written, and the same files that are read."""
    alone = [
        d
        for d in drafts
        if d.files == "new"
        and d.dumps == 1
        and len(d.series) == 1
        and len(d.series[0].dumps[0].cells) == 1
        and d.series[0].template
    ]
    named: dict[object, list[Draft]] = {}
    for draft in alone:
        key = (draft.series[0].template, draft.method, draft.spans)
        named.setdefault(key, []).append(draft)
    return [
        (both[0], both[1]) if both[0].write else (both[1], both[0])
        for both in named.values()
        if len(both) == 2 and both[0].write != both[1].write
    ]


def _others(drafts: Sequence[Draft], draft: Draft) -> list[Draft]:
    """The other drafts of the same direction."""
    return [d for d in drafts if d is not draft and d.write == draft.write]


def _without_tiny(sizes: Bytes, at: Sequence[int]) -> tuple[int, ...]:
    """Where time steps begin, without those of almost no bytes: what a library writes when it
    closes a file is of the time step before."""
    moved = np.add.reduceat(sizes, [0, *at])
    large = moved >= TINY * moved.max()
    first = int(np.argmax(large))
    return tuple(begin for n, begin in enumerate(at, 1) if large[n] and n > first)


def _told(gaps: npt.NDArray[np.float64], hint: Hint) -> pauses.Cuts:
    """As many time steps as a counter tells, at the longest pauses."""
    flushed = "FLUSHES" in hint.counter or "SYNCS" in hint.counter
    return (pauses.cut_flushed if flushed else pauses.cut_into)(gaps, hint.steps)


def _between(bursts: Sequence[Burst]) -> list[float]:
    """A time between each burst and the next."""
    return [(a.end_s + b.start_s) / 2 for a, b in pairwise(bursts)]


def _lasting(dump: DumpFacts, bursts: Sequence[Burst]) -> bool:
    """True if a dataset was written in several bursts: it does not separate time steps."""
    between = _between(bursts)
    return any(
        np.searchsorted(between, c.start_s) != np.searchsorted(between, c.end_s)
        for c in dump.cells.values()
    )


def _too_fine(steps: int, size: int) -> bool:
    return steps > FEW_STEPS and size < MIN_BYTES * steps


def _lines(bursts: Sequence[Burst]) -> bool:
    """True if time steps are calls of a rank's file one by one, of a page at most."""
    calls = sum(int(b.calls.sum()) for b in bursts if b.calls is not None)
    moved = sum(b.bytes for b in bursts)
    alone = len(bursts) <= calls <= SINGLE * len(bursts)
    return len(bursts) > FEW_STEPS and alone and moved <= MIN_BYTES * calls


def _bursts(segments: Segments, at: Sequence[int]) -> list[Burst]:
    """The time steps that begin at these segments and at the first."""
    edges = [0, *at, len(segments.bytes)]
    return [_burst(segments, slice(a, b)) for a, b in pairwise(edges) if b > a]


def _burst(segments: Segments, which: Any) -> Burst:
    """The time step of these segments."""
    moved = segments.bytes[which]
    return Burst(
        start_s=float(segments.start_s[which].min()),
        end_s=float(segments.end_s[which].max()),
        bytes=int(moved.sum()),
        calls=np.bincount(np.searchsorted(BIN_BYTES, moved), minlength=len(BINS)),
    )


def _lost(steps: int, kept: int, size: int) -> str:
    """A remark on time steps that were put together."""
    held = "one dump" if kept < 2 else f"{kept} dumps"
    return (
        f"its {steps} time steps of {size // steps} B each on average were put together in {held}"
    )


def _dump_of(cells: list[tuple[int, Cell]], whole: DumpFacts) -> DumpFacts:
    start_s = min(c.start_s for _, c in cells)
    return DumpFacts(
        cells={((), variable): cell for variable, cell in cells},
        start_s=start_s,
        end_s=max(c.end_s for _, c in cells),
        extent=0,
    )

"""Repeated moves of the same bytes of a file in a trace: passes over it, or ranks that each move
the same."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.steps.heatmap import NOISE
from understudy.inference.steps.overwritten_files import passes_of
from understudy.inference.streams.file_series import Cell, bin_edges

GROWS = levels.PART  # share of the file by which its size may be off the share that is written
# Share of the file by which what fills it may be off, which is the library's own.
FILLED = levels.SMALL

Bytes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segments:
    """Traced writes to one file: [n] each. Offsets of MPI-IO may be unknown: all the same."""

    rank: npt.NDArray[np.int64]
    offset: Bytes

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    bytes: Bytes


def some(segments: Segments, which: npt.NDArray[Any]) -> Segments:
    """These of them."""
    return Segments(**{f.name: getattr(segments, f.name)[which] for f in fields(segments)})


def passes(segments: Segments) -> list[float] | None:
    """When the passes after the first begin: those of the rank that moved most, which the others
    join until it is halfway from one to the next. None if the offsets are unknown."""
    ranks, index = np.unique(segments.rank, return_inverse=True)
    moved = np.bincount(index.ravel(), weights=segments.bytes)
    rank_segments = some(segments, segments.rank == ranks[int(np.argmax(moved))])
    if len(np.unique(rank_segments.offset)) < 2 and len(np.unique(rank_segments.bytes)) > 1:
        return None
    if rank_segments.offset.min() < 0:
        return None
    begins = passes_of(
        rank_segments.offset, rank_segments.bytes, rank_segments.start_s, rank_segments.end_s
    )[1:]
    return [float(rank_segments.end_s[:n].max() + rank_segments.start_s[n]) / 2 for n in begins]


def runs_of(segments: Segments) -> list[npt.NDArray[np.intp]]:
    """The segments of each time step, if all ranks began as many runs of consecutive offsets, of
    several calls: a rank that goes on behind the others begins the next time step."""
    order = np.lexsort((segments.start_s, segments.rank))
    rank, offset = segments.rank[order], segments.offset[order]
    ends = offset + segments.bytes[order]
    same = rank[1:] == rank[:-1]
    begins = np.concatenate([[True], ~same | (offset[1:] != ends[:-1])])
    first = np.concatenate([[True], ~same])
    number = np.cumsum(begins) - 1
    number -= np.maximum.accumulate(np.where(first, number, 0))
    each = np.unique(np.bincount(np.cumsum(first) - 1, weights=begins))
    if len(each) > 1 or each[0] < 2 or first.sum() < 2 or begins.all() or offset.min() < 0:
        return []
    steps = [order[number == k] for k in range(int(each[0]))]
    starts = [float(segments.start_s[step].min()) for step in steps]
    return steps if all(a < b for a, b in pairwise(starts)) else []


def moved_once(segments: Segments, *, write: bool) -> bool | None:
    """True if no rank came back to the bytes of a file, but several ranks, at the same time where
    they wrote, moved the same; None without offsets."""
    begins = passes(segments)
    if begins is None:
        return None
    by_rank = [segments.rank == rank for rank in np.unique(segments.rank)]
    if not write and any(_comes_back(some(segments, np.flatnonzero(m))) for m in by_rank):
        return False
    last_first = max(float(segments.start_s[m].min()) for m in by_rank)
    first_last = min(float(segments.end_s[m].max()) for m in by_rank)
    return not begins and len(by_rank) > 1 and (not write or last_first < first_last)


def _comes_back(segments: Segments) -> bool:
    """True if a rank read bytes that it had read before."""
    order = np.argsort(segments.offset, kind="stable")
    begin, end = segments.offset[order], (segments.offset + segments.bytes)[order]
    behind = np.maximum.accumulate(end)
    new = end - np.maximum(begin, np.concatenate([begin[:1], behind[:-1]]))
    different = int(np.maximum(new, 0).sum())
    return bool(segments.bytes.sum() > (1 + NOISE) * different)


def reads_once(cells: Sequence[Cell], ranks: int, segments: Segments | None) -> str:
    """A remark if no rank has to have read a byte twice, though the file has fewer than all of
    them read; else empty."""
    once = None if segments is None else moved_once(segments, write=False)
    if once is not None:
        return once * (
            "its ranks read the same bytes of a file, as the trace shows; the replica's ranks "
            "read different ones, of a larger file"
        )
    within_top = all(
        not c.shared_bytes and c.opens <= 1 and _most(c, ranks) <= c.top * (1 + NOISE)
        for c in cells
    )
    alike = all(
        c.even
        and c.rank_bytes is None
        and abs(c.shared_bytes - ranks * c.top) <= NOISE * c.shared_bytes
        for c in cells
    )
    return (within_top or alike) * (
        "each rank reads all of a file, or its own part again and again, which the log does not "
        "tell; that the ranks read different bytes, of a larger file, is assumed"
    )


def _most(cell: Cell, ranks: int) -> float:
    """Bytes of the rank that moved most, on average of its bin of ranks."""
    if cell.rank_bytes is None:
        return 0.0
    return float((cell.rank_bytes / np.diff(bin_edges(ranks, len(cell.rank_bytes)))).max())


def grows(segments: Segments | None, extent: int) -> bool:
    """True if a file grows to its end as it is written, so that overwriting is no earlier pass:
    HDF5 fills the space of a dataset that grows before its data come."""
    if segments is None or not segments.bytes.sum() or segments.offset.min() < 0 or not extent:
        return False  # no trace of this file, or an empty one
    segments = some(segments, np.argsort(segments.start_s, kind="stable"))
    ends = np.maximum.accumulate(segments.offset + segments.bytes)
    written = np.cumsum(segments.bytes) / segments.bytes.sum()
    return all(
        abs(float(ends[np.searchsorted(written, share)]) / extent - share) <= GROWS
        for share in (0.25, 0.5, 0.75)
    )


def filled(cells: Sequence[Cell], extent: int) -> bool:
    """True if the collective calls on a file that was open once have written as many bytes as it
    has, and the others as many again: a library fills the space of a dataset, which may grow, and
    each rank then writes its data there."""
    tallies = [tally for cell in cells for tally in (cell.rank_calls, cell.shared_calls)]
    both = [
        sum(
            float(kind.bytes.sum())
            for tally in tallies
            for (collective, _), kind in tally.kinds.items()
            if collective is together
        )
        for together in (True, False)
    ]
    once = max(cell.opens for cell in cells) == 1
    return once and all(abs(moved - extent) <= FILLED * extent for moved in both)


def of_payload(segments: Segments, payload: int) -> Segments:
    """Without the small accesses of a library for itself (HDF5 metadata): the longest accesses, if
    there is a minimum length from which on they add up to the payload."""
    lengths, count = np.unique(segments.bytes, return_counts=True)
    longest = np.cumsum((lengths * count)[::-1])[::-1]
    matches = np.flatnonzero(longest == payload)
    if not len(matches):
        return segments
    kept = segments.bytes >= lengths[matches[0]]
    return some(segments, kept)

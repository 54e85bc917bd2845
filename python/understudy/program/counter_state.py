"""Counted state of a stream, by the names of Darshan."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from understudy.program.block_calls import Mask, Whole
from understudy.program.counters import BINS, OF_SIZE, Tally, bin_of
from understudy.program.instructions import Move, Stream, Sync, instructions
from understudy.program.segments import Segments

MOVED = {"READ": "READ", "WRITE": "WRITTEN"}
OPENS = {
    "posix": ("POSIX_OPENS",),
    "stdio": ("STDIO_OPENS",),
    "mpiio": ("MPIIO_INDEP_OPENS",),
    "hdf5": ("H5F_OPENS", "MPIIO_INDEP_OPENS"),
}
TOPS = {"posix": "POSIX", "stdio": "STDIO", "mpiio": "MPIIO", "hdf5": "H5D"}
FLUSHES = {
    "posix": "POSIX_FSYNCS",
    "stdio": "STDIO_FLUSHES",
    "mpiio": "MPIIO_SYNCS",
    "hdf5": "H5F_FLUSHES",
}


@dataclass(slots=True)
class File:
    """An open file: behind which byte each rank goes on (of the first rank of each segment, and
    by how much more from rank to rank), and the ranks whose descriptor Darshan knows."""

    ranks: Mask
    end: Whole
    slope: Whole
    recorded: Mask


class Ranks:
    """Some ranks, by segments."""

    def __init__(self, segments: Segments) -> None:
        self.ends = segments.ends
        self._has: Mask = np.zeros(len(segments.ends), np.bool_)

    def add(self, mask: Mask) -> None:
        self._has = self._has | mask

    def at(self, ends: Whole) -> Mask:
        """Mask of the ranks that they hold, before these ends, which divide all segments."""
        mask: Mask = self._has[np.searchsorted(self.ends, ends)]
        return mask


class Sums:
    """The counters of equal dumps of a stream, until they are taken."""

    def __init__(self, stream: Stream, segments: Segments, tally: Tally) -> None:
        self.segments, self.tally, self.method = segments, tally, stream.method
        self.none: Whole = np.zeros(len(segments.starts), np.int64)
        self.sums: Counter[str] = Counter()
        each = list(instructions(stream))
        syncs = any(isinstance(i, Sync) for i in each) and not stream.set.prepared
        moves = [i for i in each if isinstance(i, Move)]
        self.lasting = syncs or any(m.flush_bytes and not m.hands_over for m in moves)
        # Ranks that closed a FILE whose descriptor Darshan goes on to take for that file, those
        # that flush or seek by one which it does not know, and those whose MPI library may move
        # bytes by one.
        self.left, self.taken, self.moved = (Ranks(segments) for _ in range(3))

    def count(self, name: str, each: Whole | Mask, times: int = 1) -> None:
        """Add a number of each rank, given for each segment."""
        self.sums[name] += times * int((each * self.segments.counts).sum())

    def note_calls(self, way: str, sizes: Mapping[int, int], times: int, kind: str = "") -> None:
        """Calls of all ranks by size."""
        module = TOPS[self.method]
        moved = sum(size * number for size, number in sizes.items())
        self.sums[f"{module}_{kind}{way}S"] += times * sum(sizes.values())
        self.sums[f"{module}_BYTES_{MOVED[way]}"] += times * moved
        for size, number in sizes.items():
            self.sums[f"{module}{OF_SIZE}{size}"] += times * number
            if module == "STDIO":
                continue
            suffix = "" if module == "POSIX" else "_AGG"
            self.sums[f"{module}_SIZE_{way}{suffix}_{BINS[bin_of(size)]}"] += times * number

    def flushed(self, each: Whole | Mask, recorded: Whole | Mask) -> None:
        """So many flushes of each rank, and those by descriptors that Darshan knows."""
        self.count(FLUSHES[self.method], each)
        if self.method == "stdio" and self.lasting:
            self.count("POSIX_FSYNCS", recorded)
            self.taken.add((each > 0) & (recorded == 0))

    def take(self, times: int) -> None:
        """Add so many dumps to the tally."""
        for name, number in self.sums.items():
            self.tally.add(name, times * number)
        self.sums = Counter()

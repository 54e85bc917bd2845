"""What is counted of one stream of a program, besides where its calls lie."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.semantics.counters import BIN_BYTES, BINS, Tally
from understudy.semantics.flushes import Written
from understudy.semantics.pieces import Mask, Segments, Whole
from understudy.semantics.program import Begin, Body, Move, Open, Step, Sync, Thread, flat
from understudy.semantics.types import Variable

PAGE = 4096  # of direct transfers


@dataclass(slots=True)
class File:
    """An open file: behind which byte each rank goes on (of the first rank of each segment, and
    by how much more from rank to rank), and the ranks whose descriptor Darshan knows."""

    end: Whole
    slope: Whole
    known: Mask


class Ranks:
    """Some ranks, by segments."""

    def __init__(self, segments: Segments) -> None:
        self.ends = segments.ends
        self._has: Mask = np.zeros(len(segments.ends), np.bool_)

    def add(self, mask: Mask) -> None:
        self._has = self._has | mask

    def at(self, ends: Whole) -> Mask:
        """Whether they hold the ranks before these ends, which divide all segments."""
        found: Mask = self._has[np.searchsorted(self.ends, ends)]
        return found


class Sums:
    """The counters of the dump in hand of a stream, and how its files are opened."""

    def __init__(self, thread: Thread, segments: Segments, tally: Tally) -> None:
        self.thread, self.segments, self.tally = thread, segments, tally
        self.method = thread.method
        instructions = [i for step in thread.steps for i in flat(step.body)]
        moves = [i for i in instructions if isinstance(i, Move)]
        syncs = any(isinstance(i, Sync) for i in instructions)
        self.writes = any(m.writes for m in moves)
        self.direct = any(i.direct for i in instructions if isinstance(i, Open))
        self.lasting = any(m.flush_bytes and not m.hands_over for m in moves) or (
            syncs and not thread.set.prepared
        )
        self.none: Whole = np.zeros(len(segments.starts), np.int64)
        self.sums: Counter[str] = Counter()
        self.tops: dict[tuple[str, int], Whole] = {}
        self.written: dict[int, list[Written]] = {}
        # Ranks that closed a FILE whose descriptor Darshan goes on to take for that file, those
        # that flush or seek by one which it does not know, and those whose MPI library may move
        # bytes by one.
        self.left, self.taken, self.moved = (Ranks(segments) for _ in range(3))

    def take(self, times: int) -> None:
        for name, number in self.sums.items():
            self.tally.add(name, times * number)
        for (name, _), top in self.tops.items():
            self._top(name, top)

    def _top(self, name: str, top: Whole) -> None:
        if top.max(initial=-1) >= 0:
            self.tally.top(name, int(top.max()))

    def count(self, name: str, each: Whole | Mask, times: int = 1) -> None:
        """Add a number of each rank, given for each segment."""
        self.sums[name] += times * int((each * self.segments.counts).sum())

    def flushed(self, each: Whole | Mask, known: Whole | Mask) -> None:
        """So many flushes of each rank, and those by descriptors that Darshan knows."""
        match self.method:
            case "posix":
                self.count("POSIX_FSYNCS", each)
            case "stdio":
                self.count("STDIO_FLUSHES", each)
                if self.lasting:
                    self.count("POSIX_FSYNCS", known)
                    self.taken.add((each > 0) & (known == 0))
            case "mpiio":
                self.count("MPIIO_SYNCS", each)
            case "hdf5":
                self.count("H5F_FLUSHES", each)

    def decline_split(self, way: str) -> None:
        """Calls past the cache whose bytes are not whole pages are split, each in its own way."""
        self.tally.decline(
            f"POSIX_{way}S", f"POSIX_SIZE_{way}", f"POSIX_CONSEC_{way}S", f"POSIX_SEQ_{way}S"
        )

    def note_top(self, name: str, way: str, file: int, last: Whole) -> None:
        key = f"{name}_{'WRITTEN' if way == 'WRITE' else way}", file
        self.tops[key] = np.maximum(self.tops.get(key, last), last)

    def note_bytes(self, module: str, way: str, moved: int) -> None:
        self.sums[f"{module}_BYTES_{'WRITTEN' if way == 'WRITE' else way}"] += moved

    def note_sizes(self, prefix: str, way: str, sizes: Mapping[int, int], times: int) -> None:
        suffix = "" if prefix == "POSIX_SIZE" else "_AGG"
        for size, number in sizes.items():
            bin_ = BINS[sum(size > end for end in BIN_BYTES)]
            self.sums[f"{prefix}_{way}{suffix}_{bin_}"] += times * number

    def note_written(self, file: int, written: Written) -> None:
        self.written.setdefault(file, []).append(written)
        sizes = {s for c in written.cuts if c is not None for s, _ in c.sizes}
        if written.move.order.rule != "consecutive" and len(sizes) > 1:
            self.tally.decline("FSYNCS", "FLUSHES", "SYNCS")


def directly(sizes: Mapping[int, int]) -> Mapping[int, int]:
    """Calls that begin with a page, with the pages of each apart from the bytes behind them."""
    made: Counter[int] = Counter()
    for size, number in sizes.items():
        pages = size - size % PAGE
        for part in (pages, size - pages):
            if part:
                made[part] += number
    return made


def begins_content(step: Step) -> bool:
    """Whether each dump of a step is another content of its files."""
    return any(isinstance(i, Begin) for i in step.body)


def variables_of(bodies: Iterator[Body]) -> list[Variable]:
    """The variables that they move."""
    return [i.variable for body in bodies for i in flat(body) if isinstance(i, Move)]


def masks_of(segments: Segments, variables: Sequence[Variable]) -> dict[int, Mask]:
    """Of each file the segments with bytes in it."""
    masks: dict[int, Mask] = {}
    for variable in dict.fromkeys(variables):
        has = segments.block(variable, False).size > 0
        file = variable.file
        masks[file] = masks[file] | has if file in masks else has
    return masks

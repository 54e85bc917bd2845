"""Files that are read and written in turn within one open, as scratch files are.

A trace of both directions shows the records of such a file: a dump is what is written between two
reads, over records that are there or behind them, and what is read between two writes. A file
begins anew where nothing is read any more of what was written before.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.inference.steps.heatmap import NOISE
from understudy.inference.steps.overwritten_files import passes_of
from understudy.inference.steps.passes import Segments
from understudy.inference.streams.scratch_dumps import Part, ScratchDump

MAX_DUMPS = 5000  # dumps of a file
MAX_PARTS = 64  # variables of a dump
MAX_EVENTS = 100_000  # traced calls of a file

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ScratchFile:
    """The dumps of a file that is read and written in turn."""

    written: list[ScratchDump]
    read: list[ScratchDump]
    contents: int
    sure: bool  # of how many contents it has


def find(written: Segments, read: Segments, opens: int, few_s: float) -> ScratchFile | None:
    """The dumps of a file that one rank alone uses, by its traces in the order of time; None where
    it is no such file. Pauses above `few_s` divide, too."""
    events = len(written.bytes) + len(read.bytes)
    if events > MAX_EVENTS or len(np.unique(np.concatenate([written.rank, read.rank]))) > 1:
        return None
    if not len(read.bytes) or min(written.offset.min(), read.offset.min()) < 0:
        return None
    dumps = _divided(written, read, few_s)
    edges = _edges(written, dumps)
    if edges is None or len(dumps) > MAX_DUMPS or not _irregular(written):
        return None
    records: dict[int, int] = {}
    for dump in dumps:
        if dump.write and not _write(dump, written, edges):
            return None
        for part in dump.parts:
            if records.setdefault(part.number, part.bytes) != part.bytes:
                return None  # other calls
    if not all(d.write or _read(d, read, edges, records) for d in dumps):
        return None
    sure = _begin_anew(dumps, edges, opens)
    if sure is None or any(len(d.parts) > MAX_PARTS for d in dumps):
        return None
    writes = [d for d in dumps if d.write]
    contents = sum(not d.continues for d in writes)
    if contents == len(writes):
        return None
    return ScratchFile(writes, [d for d in dumps if not d.write], contents, sure)


def _irregular(written: Segments) -> bool:
    """True if the passes over the file differ: equal ones are updates in place."""
    begins = passes_of(written.offset, written.bytes, written.start_s, written.end_s)
    sizes = np.add.reduceat(written.bytes, begins)
    return len(sizes) > 1 and bool(sizes.max() - sizes.min() > NOISE * sizes.max())


def _divided(written: Segments, read: Segments, few_s: float) -> list[ScratchDump]:
    """Runs of one direction, divided where they come back to a record and at long pauses."""
    write = np.concatenate([np.ones(len(written.bytes), np.bool_), np.zeros(len(read.bytes), "?")])
    start = np.concatenate([written.start_s, read.start_s])
    index = np.concatenate([np.arange(len(written.bytes)), np.arange(len(read.bytes))])
    dumps: list[ScratchDump] = []
    seen: set[int] = set()
    end_s = 0.0
    for n in np.lexsort((index, start)).tolist():
        segments, at = (written if write[n] else read), int(index[n])
        offset = int(segments.offset[at])
        again = offset in seen or start[n] - end_s > few_s
        if not dumps or dumps[-1].write != write[n] or again:
            dumps.append(ScratchDump(bool(write[n]), at, at, float(start[n])))
            seen = set()
        dumps[-1].last = at + 1
        seen.add(offset)
        end_s = float(segments.end_s[at])
    return dumps


def _runs(offset: Ints, size: Ints, *, alike: bool) -> list[slice]:
    """Calls that follow one another in the file, and with `alike` of one size."""
    new = offset[1:] != (offset + size)[:-1]
    if alike:
        new |= size[1:] != size[:-1]
    begins = [0, *(np.flatnonzero(new) + 1).tolist(), len(offset)]
    return [slice(a, b) for a, b in pairwise(begins)]


def _edges(written: Segments, dumps: Sequence[ScratchDump]) -> Ints | None:
    """Where parts of the file begin and end: where runs of written calls of one size do. None if a
    call goes beyond one."""
    edges: set[int] = set()
    for dump in dumps:
        if dump.write:
            offset = written.offset[dump.first : dump.last]
            size = written.bytes[dump.first : dump.last]
            for run in _runs(offset, size, alike=True):
                edges |= {int(offset[run][0]), int(offset[run][-1] + size[run][-1])}
    sorted_edges = np.array(sorted(edges), np.int64)
    inside = np.searchsorted(sorted_edges, written.offset, "right")
    ends = sorted_edges[np.minimum(inside, len(sorted_edges) - 1)]
    return None if (ends < written.offset + written.bytes).any() else sorted_edges


def _write(dump: ScratchDump, segments: Segments, edges: Ints) -> bool:
    """Divide what is written into parts; False where it is one in another way than as a whole."""
    offset = segments.offset[dump.first : dump.last]
    size = segments.bytes[dump.first : dump.last]
    number = np.searchsorted(edges, offset, "right") - 1
    for part in dict.fromkeys(number.tolist()):
        calls = np.flatnonzero(number == part)
        whole = int(edges[part + 1] - edges[part])
        alike = len(np.unique(size[calls])) == 1 and (np.diff(calls) == 1).all()
        if not alike or (np.diff(offset[calls]) <= 0).any() or size[calls].sum() != whole:
            return False
        dump.parts.append(Part(part, len(calls), int(size[calls[0]]), again=False))
    return True


def _read(dump: ScratchDump, segments: Segments, edges: Ints, records: dict[int, int]) -> bool:
    """The parts that are read: as they were written, or from one on by calls of another size;
    False where it does not begin with one."""
    offset = segments.offset[dump.first : dump.last]
    size = segments.bytes[dump.first : dump.last]
    for run in _runs(offset, size, alike=False):
        first = int(np.searchsorted(edges, offset[run][0]))
        last = int(np.searchsorted(edges, offset[run][-1] + size[run][-1]))
        if first + 1 >= len(edges) or edges[first] != offset[run][0]:
            return False
        whole = [
            Part(number, int(edges[number + 1] - edges[number]) // each, each, again=False)
            for number in range(first, min(last, len(edges) - 1))
            if (each := records.get(number, 0))
        ]
        sizes = size[run]
        if sizes.tolist() == [p.bytes for p in whole for _ in range(p.records)]:
            dump.parts += whole
        elif (sizes[:-1] == sizes[0]).all() and sizes[-1] <= sizes[0]:
            moved = int(sizes.sum())
            dump.parts.append(Part(first, 1, moved, again=False, call_bytes=int(sizes[0])))
        else:
            return False
    return len({p.number for p in dump.parts}) == len(dump.parts)


def _begin_anew(dumps: list[ScratchDump], edges: Ints, opens: int) -> bool | None:
    """Note which dumps begin anew and which records are there; whether that is sure. None if a
    record is read that was not written."""
    wrote: dict[int, int] = {}  # the dump that wrote a part last
    held = np.zeros(len(dumps) + 1, np.int64)  # dumps behind which earlier records are read
    for n, dump in enumerate(dumps):
        for part in dump.parts:
            for number in _covered(part, edges):
                if not dump.write:
                    if number not in wrote:
                        return None
                    held[wrote[number] + 1] += 1
                    held[n] -= 1
                else:
                    wrote[number] = n
    lowest = min(part.number for dump in dumps if dump.write for part in dump.parts)
    free = np.cumsum(held)[:-1] == 0
    rests = [dumps[n].start_s - dumps[max(0, n - 1)].start_s for n in range(len(dumps))]
    usual = sum(rests) / len(rests)
    able = [  # what is written right after it was read goes on
        n
        for n, dump in enumerate(dumps)
        if n
        and dump.write
        and free[n]
        and dump.parts[0].number == lowest
        and (dumps[n - 1].write or rests[n] > usual)
    ]
    chosen = able
    if len(able) >= opens:  # those before which the file rests longest
        chosen = sorted(sorted(able, key=lambda n: -rests[n])[: max(0, opens - 1)])
    there: set[int] = set()
    for n, dump in enumerate(dumps):
        if dump.write:
            dump.continues = n > 0 and n not in chosen and bool(there)
            there = there if dump.continues else set()
        elif any(number not in there for p in dump.parts for number in _covered(p, edges)):
            return None
        dump.parts = [replace(p, again=p.number in there) for p in dump.parts]
        if dump.write:
            there |= {p.number for p in dump.parts}
    return len(able) < opens


def _covered(part: Part, edges: Ints) -> range:
    """The parts of the file that one moves."""
    end = int(edges[part.number]) + part.records * part.bytes
    return range(part.number, int(np.searchsorted(edges, end)))

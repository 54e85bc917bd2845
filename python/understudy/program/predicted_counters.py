"""The counters of Darshan that a run of a program by the player will have.

Counters have Darshan's names and meaning, summed (MAX_…: the largest) over ranks and files. None
is a counter that a library decides: what HDF5 and MPI-IO make of the calls of an application.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.program.counter_state import TOPS, Ranks
from understudy.program.counter_sums import Counting
from understudy.program.counters import (
    BINS,
    OF_SIZE,
    PLAYED,
    RECORDS,
    Counters,
    Tally,
    bin_of,
    total,
)
from understudy.program.equal_dumps import with_equal_dumps_together
from understudy.program.evaluator import evaluate_set
from understudy.program.instructions import (
    EACH_ROW,
    Close,
    FileSet,
    Move,
    Open,
    Program,
    Stream,
    calls_of_system,
    flat,
    variables_of,
)
from understudy.program.operations import lacking
from understudy.program.segments import masks_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The counters of a set of files, by module, of the calls that stand for the application's
    (`calls`) and of those that only the player makes, before it takes time (`prepared`); the
    former's data calls by size; and when the first and the last dump of its streams are due."""

    name: str
    streams: tuple[str, ...]
    calls: Mapping[str, Counters]
    prepared: Mapping[str, Counters]
    sizes: Mapping[str, Counter[int]]
    first_s: float
    last_s: float

    @property
    def all(self) -> Mapping[str, Counters]:
        """Counters that the log of a run will have."""
        return total([self.calls, self.prepared])


def predict(program: Program) -> tuple[Predicted, ...]:
    """The counters of each set of files."""
    summed = with_equal_dumps_together(program)
    sets = [
        _Set(summed, each, tuple(t for t in program.streams if t.set == each))
        for each in program.sets
    ]
    plays = [play for each in sets for play in each.plays]
    left = [p.left for p in plays]
    for others, counters in (
        ([p.taken for p in plays], ("POSIX_FSYNCS", "POSIX_SEEKS")),
        ([p.moved for p in plays], ("POSIX_",)),
    ):
        if _meet(left, others):
            for each in sets:
                if "stdio" in each.calls:
                    each.calls["stdio"].decline(*counters)
    return tuple(each.predicted() for each in sets)


def _of_methods(tallies: Mapping[str, Tally]) -> Mapping[str, Counters]:
    """Counters over all methods; those that one library decides are unknown."""
    return total([tally.counters(method) for method, tally in tallies.items()])


def _meet(some: Sequence[Ranks], others: Sequence[Ranks]) -> bool:
    """True if a rank is in both."""
    if not some:
        return False
    ends = np.unique(np.concatenate([each.ends for each in (*some, *others)]))
    in_some, in_others = (np.any([e.at(ends) for e in part], axis=0) for part in (some, others))
    return bool((in_some & in_others).any())


class _Set:
    """The counters of a set of files, as its streams are played, each by its own method; `program`
    may have equal dumps together, which `streams` have at their times."""

    def __init__(self, program: Program, each: FileSet, streams: tuple[Stream, ...]) -> None:
        self._set, self._threads = each, streams
        self.calls = {stream.method: Tally() for stream in streams}
        self.prepared = {stream.method: Tally() for stream in streams}
        self.plays: list[Counting] = []
        switches = 0
        for walk in evaluate_set(program, each) if PLAYED.issuperset(self.calls) else ():
            stream, tally = walk.stream, self.prepared[walk.stream.method]
            self.plays.append(
                Counting(walk, tally if walk.prepares else self.calls[stream.method])
            )
            if walk.prepares:
                switches += _records(self.plays[-1])
            else:
                tally.add("POSIX_OPENS", lacking(stream, walk.segments))
                _note_calls(stream, self.calls[stream.method])
        self._note_switches(switches)
        if len(streams) > 1 and any(_stays_open(t) for t in streams):
            self._decline("CONSEC_", "SEQ_")

    def _decline(self, *parts: str) -> None:
        for tally in self.calls.values():
            tally.decline(*parts)

    def _note_switches(self, prepared: int) -> None:
        """Reads behind writes of the same rank and file, and the reverse."""
        bodies = (body for t in self._threads for body in t.bodies)
        moves = [i for body in bodies for i in flat(body) if isinstance(i, Move)]
        several = len(self.plays) > 2 and self._set.prepared
        if len({m.writes for m in moves}) > 1 or several:
            self._decline("RW_SWITCHES")
            return
        for method, tally in self.calls.items() if self._set.prepared else ():
            if method == "hdf5":
                tally.decline("H5D_RW_SWITCHES")
            elif method in ("posix", "mpiio"):
                tally.add(f"{method.upper()}_RW_SWITCHES", prepared)

    def predicted(self) -> Predicted:
        """Predicted counters of the set of files."""
        return Predicted(
            name=self._set.name,
            streams=tuple(t.name for t in self._threads),
            calls=_of_methods(self.calls),
            prepared=_of_methods({m: t for m, t in self.prepared.items() if t}),
            sizes={m: t.sizes(TOPS[m]) for m, t in self.calls.items() if m in TOPS},
            first_s=min(t.steps[0].time_s for t in self._threads),
            last_s=max(t.steps[-1].start_s(t.steps[-1].count - 1) for t in self._threads),
        )


# Counters of Darshan, by the kind of the calls of the system that they count.
_COUNTED = {"read": "READS", "write": "WRITES", "seek": "SEEKS", "stat": "STATS", "sync": "FSYNCS"}


def _note_calls(stream: Stream, tally: Tally) -> None:
    """Calls of the system. Of those that fail, Darshan counts the looks at a name. Where bytes
    are in the file and in which order, is not followed."""
    for calls, dumps in calls_of_system(stream):
        tally.add("POSIX_OPENS", dumps * calls.opens)
        for kind, counter in _COUNTED.items():
            tally.add(f"POSIX_{counter}", dumps * calls.kinds[kind])
        for kind, moved in (("read", "READ"), ("write", "WRITTEN")):
            for size, number in calls.sizes(kind).items():
                tally.add(f"POSIX_BYTES_{moved}", dumps * number * size)
                tally.add(f"POSIX_SIZE_{kind.upper()}_{BINS[bin_of(size)]}", dumps * number)
                tally.add(f"POSIX{OF_SIZE}{size}", dumps * number)
        tally.decline("CONSEC_", "SEQ_", "RW_SWITCHES", "MAX_BYTE", "FSYNCS")


def _records(counting: Counting) -> int:
    """Number of pairs of a rank and a file with its bytes, over all sets of files."""
    walk = counting.walk
    if walk.stream.set.owner == EACH_ROW:
        return counting.tally.sums[RECORDS]
    sets = walk.sets if walk.names else 0
    dump_counts: Counter[tuple[int, ...]] = Counter()
    for i, dumps in enumerate(() if sets else walk.dumps):
        dump_counts[(i,)] += dumps.count
    for j in range(sets):
        hits = (i for i, d in enumerate(walk.dumps) if (j - d.content) % sets < d.count)
        dump_counts[tuple(hits) if not walk.appends else tuple(range(len(walk.dumps)))] += 1
    total = 0
    for which, times in dump_counts.items():
        variables = variables_of(walk.dumps[i].step.body for i in which)
        for mask in masks_of(walk.segments, variables).values():
            total += times * int(walk.segments.counts[mask].sum())
    return total


def _stays_open(stream: Stream) -> bool:
    for step in stream.steps:
        kinds = [type(i) for i in flat(step.body)]
        if (Open in kinds) != (Close in kinds):
            return True
    return stream.closes

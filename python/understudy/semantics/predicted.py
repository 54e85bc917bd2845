"""The counters of Darshan that a run of a program by the player will have.

Counters have Darshan's names and meaning, summed (MAX_…: the largest) over ranks and files. None
is a counter that a library decides: what HDF5 and MPI-IO make of the calls of an application.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from understudy.semantics.counters import PLAYED, RECORDS, Counters, Tally, total
from understudy.semantics.needs import borrows
from understudy.semantics.opens import preparing
from understudy.semantics.pieces import Segments
from understudy.semantics.plays import Play
from understudy.semantics.program import (
    EACH_ROW,
    Close,
    FileSet,
    Move,
    Open,
    Operate,
    Program,
    Thread,
    flat,
)
from understudy.semantics.sums import Ranks, begins_content, masks_of, variables_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The counters of a set of files, by module, of the calls that stand for the application's
    (`calls`) and of those that only the player makes, before it takes time (`own`); and when the
    first and the last dump of its streams are due."""

    name: str
    streams: tuple[str, ...]
    calls: Mapping[str, Counters]
    own: Mapping[str, Counters]
    first_s: float
    last_s: float

    @property
    def all(self) -> Mapping[str, Counters]:
        """What the log of a run will say."""
        return total([self.calls, self.own])


def predict(program: Program) -> tuple[Predicted, ...]:
    """The counters of each set of files."""
    sets = [
        _Set(program, each, tuple(t for t in program.threads if t.set == each))
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
    """What one library decides of a module is not known of all."""
    return total([tally.counters(method) for method, tally in tallies.items()])


def _meet(some: Sequence[Ranks], others: Sequence[Ranks]) -> bool:
    """Whether a rank is in both."""
    if not some:
        return False
    ends = np.unique(np.concatenate([each.ends for each in (*some, *others)]))
    one, other = (np.any([e.at(ends) for e in part], axis=0) for part in (some, others))
    return bool((one & other).any())


class _Set:
    """The counters of a set of files, as its streams are played, each by its own method."""

    def __init__(self, program: Program, each: FileSet, threads: tuple[Thread, ...]) -> None:
        self._set, self._threads = each, threads
        instructions = [i for t in threads for s in t.steps for i in flat(s.body)]
        segments = Segments(
            program.ranks,
            program.ranks if each.owner == EACH_ROW else each.groups,
            [i.variable for i in instructions if isinstance(i, Move)],
            [i.runs for i in instructions if isinstance(i, Operate)],
        )
        for thread in threads:
            variables = variables_of(s.body for s in thread.steps)
            segments.split_leads(masks_of(segments, variables).values())
        self.calls = {thread.method: Tally() for thread in threads}
        self.own = {thread.method: Tally() for thread in threads}
        made: list[Play] = []
        played: list[Play] = []
        switches = 0
        for thread in threads if PLAYED.issuperset(self.calls) else ():
            own = self.own[thread.method]
            if each.prepared and not borrows(thread):
                made.append(Play(preparing(thread), segments, own, made))
                made[-1].run()
                switches += _records(made[-1])
            play = Play(thread, segments, self.calls[thread.method], played)
            play.run()
            played.append(play)
            own.add("POSIX_OPENS", int((play.made.lacking * segments.counts).sum()))
        self.plays = (*made, *played)
        self._note_switches(switches)
        if len(threads) > 1 and any(_stays_open(t) for t in threads):
            self._decline("CONSEC_", "SEQ_")

    def _decline(self, *parts: str) -> None:
        for tally in self.calls.values():
            tally.decline(*parts)

    def _note_switches(self, prepared: int) -> None:
        """Reads behind writes of the same rank and file, and the reverse."""
        bodies = (s.body for t in self._threads for s in t.steps)
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
        """What was found."""
        return Predicted(
            name=self._set.name,
            streams=tuple(t.name for t in self._threads),
            calls=_of_methods(self.calls),
            own=_of_methods({m: t for m, t in self.own.items() if t}),
            first_s=min(t.steps[0].time_s for t in self._threads),
            last_s=max(t.steps[-1].start_s(t.steps[-1].count - 1) for t in self._threads),
        )


def _records(play: "Play") -> int:
    """Of each rank the files in which it has bytes, over all sets of files."""
    if play.thread.set.owner == EACH_ROW:
        return play.tally.sums[RECORDS]
    sets = play.names or sum(s.count for s in play.thread.steps if begins_content(s))
    found: Counter[frozenset[int]] = Counter()
    for j in range(min(sets, 1) if play.appends else sets):
        which, first = [], 0
        for i, step in enumerate(play.thread.steps):
            if play.appends or step.count >= sets or (j - first) % sets < step.count:
                which.append(i)
            first += step.count
        found[frozenset(which)] += 1
    total_ = 0
    for steps, times in found.items():
        bodies = (play.thread.steps[i].body for i in sorted(steps))
        for mask in masks_of(play.segments, variables_of(bodies)).values():
            total_ += times * int(play.segments.counts[mask].sum())
    return total_


def _stays_open(thread: Thread) -> bool:
    for step in thread.steps:
        kinds = [type(i) for i in flat(step.body)]
        if (Open in kinds) != (Close in kinds):
            return True
    return thread.closes

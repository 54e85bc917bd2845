"""The one evaluator: which calls the ranks make for a program, in runs that are never expanded.

It walks the instructions of each stream, one dump after the other where dumps differ, and says of
equal dumps once what they do. Everything that is said of a program is a sum over these runs.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from understudy.program.dump_calls import Dump, State
from understudy.program.instructions import (
    Body,
    FileSet,
    Open,
    Program,
    Step,
    Stream,
    begins_content,
    flat,
    variables_of,
)
from understudy.program.needs import borrows, reads_open
from understudy.program.preparation import preparing
from understudy.program.runs import (
    Closed,
    Dumps,
    Opened,
    Rows,
)
from understudy.program.segments import Segments, masks_of, segments_of
from understudy.program.times import leaves_open, open_spans


def evaluate(program: Program) -> Iterator["Walk"]:
    """Walks of all streams, by set of files; first those that prepare its files, untimed."""
    for files in program.sets:
        yield from evaluate_set(program, files)


def evaluate_set(program: Program, files: FileSet) -> list["Walk"]:
    """Walks of the streams of a set of files."""
    streams = [t for t in program.streams if t.set == files]
    segments = segments_of(streams, program.ranks)
    prepared: list[Walk] = []
    played: list[Walk] = []
    for stream in streams:
        if files.prepared and not borrows(stream):
            prepared.append(Walk(preparing(stream), segments, prepared, prepares=True))
        is_read = any(t.last == stream.name and reads_open(t, streams) for t in streams)
        played.append(Walk(stream, segments, played, is_read_open=is_read))
    for walk in (*prepared, *played):
        _close_last(walk, [other for other in played if other.writer is walk])
    return [*prepared, *played]


@lru_cache(maxsize=64)
def walk_of(stream: Stream, ranks: int, *before: Stream) -> "Walk":
    """Walk of one stream, with those whose files it goes into or reads."""
    segments = segments_of([*before, stream], ranks)
    walks: list[Walk] = []
    for each in (*before, stream):
        walks.append(Walk(each, segments, walks))
    return walks[-1]


def _close_last(walk: "Walk", readers: Sequence["Walk"]) -> None:
    """Files of a stream that stay open are closed behind the last dump that reads them."""
    if not walk.lends:
        return
    *_, last = sorted((walk, *readers), key=lambda w: w.last_s)
    last.dumps[-1].calls += (Closed(walk.stream, f, o.ranks) for f, o in walk.open.items())


class Walk(State):
    """The dumps of one stream; `before` are those of the same files before it."""

    def __init__(
        self,
        stream: Stream,
        segments: Segments,
        before: Sequence["Walk"],
        prepares: bool = False,
        is_read_open: bool = False,
    ) -> None:
        super().__init__(stream, segments, before, is_read_open)
        self.prepares = prepares
        self.dumps += self._walk()

    @property
    def last_s(self) -> float:
        """When the last dump is due."""
        step = self.stream.steps[-1]
        return step.start_s(step.count - 1)

    # -- which dumps are alike --------------------------------------------------------------------

    def _walk(self) -> Iterator[Dumps]:
        cuts = sorted(set(self._cuts()))
        for i, step in enumerate(self.stream.steps):
            begin, end = self.firsts[i], self.firsts[i + 1]
            if self.names is None and begins_content(step):
                self.masks = masks_of(self.segments, variables_of(self._content_of(i)))
            inside = cuts[bisect_left(cuts, begin + 1) : bisect_left(cuts, end)]
            for first, behind in pairwise((begin, *inside, end)):
                yield self._dumps(step, begin, first, behind - first)

    def _cuts(self) -> Iterator[int]:
        """Dumps that differ from those before them, besides the first ones of steps."""
        for walk in self.extended:
            yield from walk.firsts
        if self.stream.closes:
            yield self.total - self.sets
        content, opened = -1, set[int]()
        for first, step in zip(self.firsts, self.stream.steps, strict=False):
            content += begins_content(step)
            yield from (first + k for k in self._turns_of(step))
            yield from (first + k for k in self._fresh(step, content, opened))
            content += step.count - 1 if begins_content(step) else 0

    def _fresh(self, step: Step, content: int, opened: set[int]) -> Iterator[int]:
        """Dumps of a step from which on it finds files of earlier ones, or finds none."""
        opens = any(isinstance(i, Open) for i in flat(step.body))
        fresh = content % self.sets not in opened
        for k in range(min(step.count, self.sets) if len(opened) < self.sets else 0):
            set_ = (content + k) % self.sets
            if fresh != (set_ not in opened):
                fresh = not fresh
                yield k
            if opens:
                opened.add(set_)
        yield self.sets

    def _turns_of(self, step: Step) -> Iterator[int]:
        """Dumps of a step from which on it finds open files, or has settled places."""
        if leaves_open(step):
            yield 1
        if self.writer:
            yield step.count - 1
            for span in open_spans(self.writer.stream):
                yield from (bisect_left(range(step.count), t, key=step.start_s) for t in span)
        elif not begins_content(step):
            at = {v.name: v.at for v in variables_of([step.body])}
            placed = sum(name is not None for name in at.values())
            yield from range(1, 1 + min(step.count, step.count if _exchanges(at) else placed))

    def _content_of(self, i: int) -> Iterator[Body]:
        """The bodies of the content that begins with a step."""
        yield self.stream.steps[i].body
        for step in self.stream.steps[i + 1 :]:
            if begins_content(step):
                return
            yield step.body

    def _dumps(self, step: Step, begin: int, first: int, count: int) -> Dumps:
        """So many equal dumps, of a step whose first one is `begin`."""
        body = Dump(self, step, first, step.start_s(first - begin))
        calls = [*body.calls(step.body), *body.closes_last()]
        dumps = Dumps(
            step=step,
            first=first,
            number=first - begin,
            count=count,
            content=self.content,
            begins=body.begins,
            masks=self.masks,
            calls=calls,
            places=self.places,
        )
        if any(isinstance(c, Opened | Rows) for c in calls):
            self.opened |= {(self.content + k) % self.sets for k in range(min(count, self.sets))}
        self.content += count - 1 if body.begins else 0
        for file, growth in body.growth.items():
            at, slope = self.payload[file]
            self.payload[file] = at + (count - 1) * growth, slope
        self.places = {
            name: (at + (count - 1) * growth, slope, self.none)
            for name, (at, slope, growth) in self.places.items()
        }
        return dumps


def _exchanges(at: Mapping[str, str | None]) -> bool:
    """True if variables change their places with each other in every dump: more than two, of which
    each has that of the next."""
    for name in at:
        chain = [name]
        while (behind := at.get(chain[-1])) is not None and behind not in chain:
            chain.append(behind)
        if behind is not None and len(chain) - chain.index(behind) > 2:
            return True
    return False

"""How often the ranks open which files, and what the player opens before it takes time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from understudy.program.block_calls import Whole
from understudy.program.evaluator import walk_of
from understudy.program.instructions import Operate, Stream, calls_of_system, flat, instructions
from understudy.program.needs import borrows
from understudy.program.operations import lacking
from understudy.program.preparation import preparing
from understudy.program.runs import Opened, Rows
from understudy.program.segments import Segments, masks_of, segments_of
from understudy.program.types import Variable


@dataclass(frozen=True, slots=True)
class PerRank:
    """A number for each rank, in runs of ranks that have the same."""

    ranks: Whole
    each: Whole

    @property
    def total(self) -> int:
        """The sum over all ranks."""
        return int((self.ranks * self.each).sum())

    def by_rank(self, ranks: int) -> Whole:
        """The number of each rank: [ranks]."""
        each: Whole = np.repeat(self.each, self.ranks)
        return each if len(each) else np.zeros(ranks, np.int64)


def opened(variables: Sequence[Variable], ranks: int) -> PerRank:
    """How many files with these variables each rank opens."""
    segments = Segments(ranks, ranks, variables, [])
    files: Whole = np.zeros(len(segments.counts), np.int64)
    for mask in masks_of(segments, variables).values():
        files = files + mask
    return PerRank(segments.counts, files)


def files_of(stream: Stream, ranks: int) -> int:
    """The files of a stream's own set in all its contents that any rank has bytes in. Of the set
    of another stream, 0."""
    return _fresh(stream, ranks)[0]


def ranks_of_files(stream: Stream, ranks: int) -> int:
    """The ranks that open each of these files, over all files."""
    return _fresh(stream, ranks)[1]


def _fresh(stream: Stream, ranks: int) -> tuple[int, int]:
    """Files that no content had before, and the ranks that open each."""
    if stream.base is not None:
        return 0, 0
    if stream.set.tree is not None:
        return stream.set.tree.files, stream.set.tree.files
    walk = walk_of(stream, ranks)
    files = pairs = 0
    for dumps in walk.dumps:
        for call in dumps.calls:
            if isinstance(call, Opened) and call.fresh:
                heads = walk.segments.leads(call.ranks)
                files += dumps.count * int(walk.segments.counts[heads].sum())
                pairs += dumps.count * int(walk.segments.counts[call.ranks].sum())
            elif isinstance(call, Rows) and call.fresh:
                files += dumps.count * call.number
                pairs += dumps.count * call.number
    return files, pairs


def opens_of(stream: Stream, ranks: int, writer: Stream | None = None) -> int:
    """How often the ranks open files, operations included. Those of `writer`, whose files it
    reads, are not opened where they are open."""
    before = [writer] if writer and writer.name == stream.last else []
    walk = walk_of(stream, ranks, *before)
    total = 0
    for dumps in walk.dumps:
        for call in dumps.calls:
            if isinstance(call, Opened):
                each = walk.segments.counts[call.ranks & ~call.lent]
                total += dumps.count * int(each.sum())
            elif isinstance(call, Rows):
                total += dumps.count * call.times * call.number
    total += sum(dumps * calls.opens for calls, dumps in calls_of_system(stream))
    operations = [(s, i) for s in stream.steps for i in flat(s.body) if isinstance(i, Operate)]
    return total + sum(s.count * i.count for s, i in operations if i.kind in ("open", "create"))


def prepared_opens(stream: Stream, ranks: int) -> tuple[int, int]:
    """How often the player opens files before it takes time: those that the stream reads, by the
    stream's method, and those that its operations need and do not create, by POSIX."""
    reads = 0
    if stream.set.prepared and not borrows(stream):
        reads = opens_of(preparing(stream), ranks)
    if not any(isinstance(i, Operate) for i in instructions(stream)):
        return reads, 0
    return reads, lacking(stream, segments_of([stream], ranks))

"""The counters of operations without bytes, and the files that they need."""

from collections.abc import Sequence

import numpy as np

from understudy.program.block_calls import Whole
from understudy.program.counter_state import File, Sums
from understudy.program.instructions import OPERATIONS, Operate, Step, Stream, flat, variables_of
from understudy.program.runs import Operated
from understudy.program.segments import Segments


def operate(counting: Sums, call: Operated, opened: Sequence[File]) -> None:
    """Count operations; `opened` are the files that the ranks have open."""
    _Operations(counting, call, opened).count()


class _Operations:
    """Operations on the files that are open."""

    def __init__(self, counting: Sums, call: Operated, opened: Sequence[File]) -> None:
        self._counting, self._call = counting, call
        self._before: list[tuple[File, Whole]] = []  # files of each rank before it
        self._files = counting.none
        for file in opened:
            self._before.append((file, self._files))
            self._files = self._files + file.ranks
        if call.rows is not None:
            self._files = call.rows

    def count(self) -> None:
        counting, each = self._counting, self._call.each
        match self._call.kind:
            case "create":
                counting.count("POSIX_OPENS", each)
            case "open":
                by_library = {"stdio": "STDIO_OPENS", "mpiio": "MPIIO_INDEP_OPENS"}
                counting.count(by_library.get(counting.method, "POSIX_OPENS"), each)
                if counting.method == "posix":
                    self._forget_places()
            case "stat":
                counting.count("POSIX_STATS", each)
            case "seek":
                self._act("POSIX_SEEKS")
            case "sync":
                self._act("POSIX_FSYNCS")

    def _forget_places(self) -> None:
        """Darshan begins anew with a file when it is opened once more."""
        for file, before in self._before:
            again = file.ranks & (before < self._call.each)
            file.end, file.slope = np.where(again, 1, file.end), np.where(again, 0, file.slope)

    def _act(self, name: str) -> None:
        """On a descriptor of each data file in turn, or on one that is opened for it."""
        counting, each = self._counting, self._call.each
        by_descriptor = self._call.rows is None and counting.method in ("posix", "stdio")
        by_name = (self._files == 0) | (not by_descriptor)
        targets = np.maximum(self._files, 1)
        counting.count("POSIX_OPENS", np.where(by_name, np.minimum(each, targets), 0))
        counting.count(name, np.where(by_name, each, 0))
        for file, before in self._before:
            share = each // targets + (before < each % targets)
            counting.count(name, np.where(~by_name & file.ranks & file.recorded, share, 0))
            counting.taken.add(~by_name & file.ranks & ~file.recorded & (share > 0))


def lacking(stream: Stream, segments: Segments) -> int:
    """Files that the operations of the ranks need and do not create."""
    created = _Created(np.zeros(len(segments.starts), np.int64))
    for step in stream.steps:
        created.go_on(segments, step)
    return int((created.lacking * segments.counts).sum())


class _Created:
    """Files that the operations of each rank make, need and remove, and how many of those that
    they need are lacking."""

    def __init__(self, none: Whole) -> None:
        self._none = none
        self._created, self._first, self._renamed, self.lacking = none, none, none, none

    def go_on(self, segments: Segments, step: Step) -> None:
        """Behind the dumps of a step."""
        operations = [i for i in flat(step.body) if isinstance(i, Operate)]
        if not operations:
            return
        number = dict.fromkeys(OPERATIONS, self._none)
        for operation in operations:
            number[operation.kind] = number[operation.kind] + segments.spread(operation.runs)
        creates, renames, unlinks = (number[kind] for kind in ("create", "rename", "unlink"))
        acts = sum((number[kind] for kind in ("open", "stat", "seek", "sync")), self._none)
        data = self._none.astype(np.bool_)
        for variable in variables_of(iter([step.body])):
            data = data | (segments.block(variable, False).size > 0)
        created, first, renamed = self._created, self._first, self._renamed
        # What is lacking grows evenly, or does not grow, up to a dump and from it on.
        for k in {0, step.count - 1}:
            end = created + (k + 1) * creates
            gone = first + k * unlinks
            lacks = np.where(~data & (acts > 0), gone + 1 - end, 0)
            moved = np.maximum(
                renamed + (k + 1) * renames,
                np.maximum(first + (k + 1) * renames, gone + renames),
            )
            moved = np.where(renames > 0, moved, renamed)
            lacks = np.maximum(np.maximum(lacks, moved - end), gone + unlinks - end)
            self.lacking = np.maximum(self.lacking, lacks)
        self._created, self._renamed = created + step.count * creates, moved
        self._first = first + step.count * unlinks

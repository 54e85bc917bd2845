"""The counters of operations without bytes, and the files that they need."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, groupby
from typing import TypeAlias

import numpy as np

from understudy.semantics.pieces import Mask, Segments, Whole
from understudy.semantics.program import OPERATIONS, Body, Instruction, Operate, Runs, Step, flat
from understudy.semantics.sums import File, Sums, variables_of

# The ranks of a file that is open, the file, and how many each of them has open before it.
Target: TypeAlias = tuple[Mask, File, Whole]


def together(body: Body) -> Iterator[Instruction]:
    """The instructions, those of one operation in a row as one."""
    for kind, same in groupby(body, lambda i: i.kind if isinstance(i, Operate) else id(i)):
        first, *more = same
        if isinstance(first, Operate) and more:
            runs = [i.runs for i in (first, *more) if isinstance(i, Operate)]
            yield Operate(kind=str(kind), runs=tuple(_added(runs)))
        else:
            yield first


def _added(several: Sequence[Runs]) -> Iterator[tuple[int, int]]:
    """The sums of the numbers of each rank, in runs."""
    ends = sorted({end for runs in several for end in accumulate(n for n, _ in runs)})
    begin = 0
    for end in ends:
        yield end - begin, sum(_at(runs, begin) for runs in several)
        begin = end


def _at(runs: Runs, rank: int) -> int:
    for ranks, each in runs:
        if rank < ranks:
            return each
        rank -= ranks
    return 0


def operate(sums: Sums, operation: Operate, opened: Sequence[Target], files: Whole | None) -> None:
    """Count an operation; `opened` are the files that the ranks have open, `files` those of each
    rank in a flood."""
    counts = sums.segments.spread(operation.runs)
    match operation.kind:
        case "create":
            sums.count("POSIX_OPENS", counts)
        case "open":
            by_library = {"stdio": "STDIO_OPENS", "mpiio": "MPIIO_INDEP_OPENS"}
            sums.count(by_library.get(sums.method, "POSIX_OPENS"), counts)
            if sums.method == "posix":
                _forget_places(opened, counts)
        case "stat":
            sums.count("POSIX_STATS", counts)
        case "seek" | "sync":
            name = "SEEKS" if operation.kind == "seek" else "FSYNCS"
            _act(sums, counts, f"POSIX_{name}", opened, files)


def _forget_places(opened: Sequence[Target], counts: Whole) -> None:
    """Darshan begins anew with a file when it is opened once more."""
    for mask, file, before in opened:
        file.end = np.where(mask & (before < counts), 1, file.end)
        file.slope = np.where(mask & (before < counts), 0, file.slope)


def _act(
    sums: Sums, counts: Whole, name: str, opened: Sequence[Target], rows: Whole | None
) -> None:
    """On a descriptor of each data file in turn, or on one that is opened for it."""
    files = sum((mask for mask, _, _ in opened), sums.none)
    if rows is not None:
        files = rows
    own = rows is None and sums.method in ("posix", "stdio")
    by_name = (files == 0) | (not own)
    targets = np.maximum(files, 1)
    sums.count("POSIX_OPENS", np.where(by_name, np.minimum(counts, targets), 0))
    sums.count(name, np.where(by_name, counts, 0))
    for mask, file, before in opened:
        share = counts // targets + (before < counts % targets)
        sums.count(name, np.where(~by_name & mask & file.known, share, 0))
        sums.taken.add(~by_name & mask & ~file.known & (share > 0))


class Made:
    """Files that the operations of each rank make, need and remove, and how many of those that
    they need are lacking."""

    def __init__(self, none: Whole) -> None:
        self._none = none
        self._made, self._first, self._renamed, self.lacking = none, none, none, none

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
        made, first, renamed = self._made, self._first, self._renamed
        # What is lacking grows evenly, or does not grow, up to a dump and from it on.
        for k in {0, step.count - 1}:
            end = made + (k + 1) * creates
            gone = first + k * unlinks
            lacks = np.where(~data & (acts > 0), gone + 1 - end, 0)
            moved = np.maximum(
                renamed + (k + 1) * renames,
                np.maximum(first + (k + 1) * renames, gone + renames),
            )
            moved = np.where(renames > 0, moved, renamed)
            lacks = np.maximum(np.maximum(lacks, moved - end), gone + unlinks - end)
            self.lacking = np.maximum(self.lacking, lacks)
        self._made, self._renamed = made + step.count * creates, moved
        self._first = first + step.count * unlinks

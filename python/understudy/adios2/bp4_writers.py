"""The writer of each block of BP4, which its metadata do not state."""

from collections.abc import Callable

import numpy as np

from understudy.adios2.metadata import Metadata
from understudy.adios2.output import Integers


class Writers:
    """Finds the writer of each block.

    The blocks of a process lie one behind the other in its subfile, and the processes of a subfile
    in the order of their ranks. The file does not state the subfile of a process: it is one that
    fits the places of the first step, groups of consecutive ranks, as by number of aggregators, or
    every n-th rank, as by nodes.
    """

    def __init__(
        self, ranks: Integers, subfiles: int, groups: Callable[[int, int], Integers | None]
    ) -> None:
        self.ranks = ranks
        self.subfiles = subfiles
        self.groups = groups
        self.subfile: Integers = np.zeros(0, np.int64)  # of each of the ranks

    def of_step(
        self, data: Metadata, number: int, processes: Integers, begins: Integers, blocks: Integers
    ) -> Integers:
        """The writer of each block, int64[n], of a step in which the processes stated that their
        blocks begin there, right in the first step only. `blocks` int64[n, 3] are the subfile of
        each, where it begins and where it ends."""
        if not len(self.subfile):
            self.subfile = self._subfiles(processes, begins, blocks)
        ranks = np.sort(processes)
        subfiles = self.subfile[np.searchsorted(self.ranks, ranks)]
        rows = np.lexsort((blocks[:, 1], blocks[:, 0]))
        file, begin, end = blocks[rows].T
        same = file[1:] == file[:-1]
        if (same & (begin[1:] < end[:-1])).any():
            raise data.fault(0, "blocks overlap in their file of data")
        fresh = np.concatenate([[True], ~same | (begin[1:] != end[:-1])])[: len(file)]
        first = np.flatnonzero(fresh)
        writers = np.full(len(blocks), -1, np.int64)
        for subfile in np.unique(file):
            here = np.flatnonzero(subfiles == subfile)
            runs = first[file[first] == subfile]
            which: Integers = np.arange(len(runs))
            if len(runs) != len(here):
                which = self._gaps(data, number, int(subfile), len(here), begin[runs])
            inside = np.flatnonzero(file == subfile)
            run = np.searchsorted(runs, inside, side="right") - 1
            writers[rows[inside]] = ranks[here[which[run]]]
        return writers

    def _gaps(
        self, data: Metadata, number: int, subfile: int, processes: int, begins: Integers
    ) -> Integers:
        """The processes of runs of blocks, where some wrote none: by the groups in the data."""
        groups = self.groups(subfile, number + 1)
        if groups is None or len(groups) != processes:
            raise data.fault(
                0,
                f"{len(begins):,} runs of blocks in data.{subfile} of {processes:,} processes: "
                "which of them wrote none stands only in that file, which is missing or wrong",
            )
        which = np.searchsorted(groups, begins, side="right") - 1
        if (which < 0).any():
            raise data.fault(0, f"blocks before those of the first process in data.{subfile}")
        return which

    def _subfiles(self, processes: Integers, begins: Integers, blocks: Integers) -> Integers:
        """The subfile of each rank."""
        count = len(self.ranks)
        subfiles = self.subfiles or int(blocks[:, 0].max()) + 1
        groups = max(1, min(subfiles, count))
        size, larger = divmod(count, groups)
        place = np.arange(count)
        head = larger * (size + 1)
        slabs = np.where(
            place < head, place // (size + 1), larger + (place - head) // max(size, 1)
        )
        every = place % groups
        order = np.argsort(processes)
        at, begins = np.searchsorted(self.ranks, processes[order]), begins[order]
        fits = _fits(slabs[at], begins, blocks) or not _fits(every[at], begins, blocks)
        return slabs if fits else every


def _fits(subfile: Integers, begins: Integers, blocks: Integers) -> bool:
    """True if all blocks lie behind the begin of a process of their subfile, and these are in the
    order of the ranks."""
    order = np.lexsort((begins, subfile))
    if (np.diff(order)[np.diff(subfile[order]) == 0] <= 0).any():
        return False
    keys = np.rec.fromarrays([subfile[order], begins[order]])
    rows = np.rec.fromarrays([blocks[:, 0], blocks[:, 1]], dtype=keys.dtype)
    at = np.searchsorted(keys, rows, side="right") - 1
    return bool((at >= 0).all() and (subfile[order][at] == blocks[:, 0]).all())

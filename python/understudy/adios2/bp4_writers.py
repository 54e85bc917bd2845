"""The writer of each block of BP4, which its metadata do not state."""

from collections.abc import Callable, Sequence

import numpy as np

from understudy.adios2.metadata import LARGEST, Metadata
from understudy.adios2.output import Integers

BLOCK = b"[VMD"  # with which a block begins in a file of data


class Writers:
    """Finds the writer of each block.

    The blocks of a process lie one behind the other in its subfile, and the processes of a subfile
    in the order of their ranks. The file does not state the subfile of a process: it is one that
    fits the places of the first step, groups of consecutive ranks, as by number of aggregators, or
    every n-th rank, as by nodes.

    Of a text, ADIOS2 states the place in the buffer of its process, not in the subfile, unless the
    process collects the data of others. `groups` gives where the processes of a subfile begin in
    a step, `content` bytes of a subfile at a place.
    """

    def __init__(
        self,
        ranks: Integers,
        subfiles: int,
        groups: Callable[[int, int], Integers | None],
        content: Callable[[int, int, int], bytes] = lambda subfile, at, size: b"",
    ) -> None:
        self.ranks = ranks
        self.subfiles = subfiles
        self.groups = groups
        self.content = content
        self.starts: dict[int, list[int]] = {}  # of the data of each step, by the subfile
        self.subfile: Integers = np.zeros(0, np.int64)  # of each of the ranks

    def of_step(
        self,
        data: Metadata,
        number: int,
        processes: Integers,
        begins: Integers,
        blocks: Integers,
        *,
        by_groups: bool = False,
    ) -> Integers:
        """The writer of each block, int64[n], of a step in which the processes stated that their
        blocks begin there, right in the first step only. `blocks` int64[n, 3] are the subfile of
        each, where it begins and where it ends; `by_groups`, if there are others between them."""
        self.place(processes, begins, blocks)
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
            if by_groups or len(runs) != len(here):
                which = self._gaps(data, number, int(subfile), len(here), begin[runs])
            inside = np.flatnonzero(file == subfile)
            run = np.searchsorted(runs, inside, side="right") - 1
            writers[rows[inside]] = ranks[here[which[run]]]
        return writers

    def place(self, processes: Integers, begins: Integers, blocks: Integers) -> None:
        """Find the subfile of each rank, by the first step."""
        if not len(self.subfile):
            self.subfile = self._subfiles(processes, begins, blocks)

    def group_begins(self, number: int, processes: Integers) -> Integers | None:
        """Where the data of each process begin in a step, in order of the ranks, int64[processes];
        None where the files of data are missing."""
        subfiles = self.subfile[np.searchsorted(self.ranks, np.sort(processes))]
        begins = np.zeros(len(subfiles), np.int64)
        for subfile in np.unique(subfiles).tolist():
            places = self.groups(subfile, number + 1)
            here = subfiles == subfile
            if places is None or len(places) != np.count_nonzero(here):
                return None
            begins[here] = np.sort(places)
        return begins

    def of_texts(
        self,
        data: Metadata,
        number: int,
        processes: Integers,
        begins: Integers,
        blocks: Integers,
        texts: Sequence[bytes],
    ) -> tuple[Integers, Integers]:
        """The writers of the blocks of a text variable in a step, and the blocks at their places
        in the subfiles: in order of the writers, each where the same text stands in its data.
        `texts` are what each block ends with."""
        ranks = np.sort(processes)
        subfiles = self.subfile[np.searchsorted(self.ranks, ranks)]
        writers, placed = np.zeros(len(blocks), np.int64), blocks.copy()
        k = end = 0
        for row, text in enumerate(texts):
            size = len(text).to_bytes(2, "big" if data.big_endian else "little")
            while True:
                if k >= len(ranks):
                    raise data.fault(0, "a text is not in the data of any process")
                subfile, inside = int(subfiles[k]), begins[subfiles == subfiles[k]]
                limit = int(inside[inside > begins[k]].min(initial=LARGEST))
                first = max(end, int(begins[k]))
                if int(blocks[row, 0]) == subfile:
                    bases = self._bases(subfile, number, int(begins[k]))
                    base = self._base(bases, blocks[row], (first, limit), size + text)
                    if base is not None:
                        break
                k, end = k + 1, 0
            writers[row] = ranks[k]
            placed[row, 1:] += base
            end = int(placed[row, 2])
        return writers, placed

    def _bases(self, subfile: int, number: int, begin: int) -> Integers:
        """To what a place of a process may be relative whose data in a step begin there: to the
        file, or to its buffer and the end of the file before the session, which is where the data
        of a step begin."""
        starts = self.starts.setdefault(subfile, [])
        for step in range(len(starts), number + 1):
            places = self.groups(subfile, step + 1)
            starts.append(LARGEST if places is None else int(places.min()))
        return begin - np.array([begin, 0, *starts], dtype=np.int64)

    def _base(
        self, bases: Integers, block: Integers, within: tuple[int, int], stored: bytes
    ) -> int | None:
        """That of the bases with which the block lies within its process and ends so."""
        subfile, begin, end = block.tolist()
        last = end - len(stored)
        if last < begin + len(BLOCK):
            return None
        fits = (bases + begin >= within[0]) & (bases + end <= within[1])
        for base in bases[fits].tolist():
            if (
                self.content(subfile, base + begin, len(BLOCK)) == BLOCK
                and self.content(subfile, base + last, len(stored)) == stored
            ):
                return int(base)
        return None

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

"""Layers held against each other, file by file: H5D and MPI-IO against POSIX.

Layers differ because libraries add to what the application asks for (fill values, metadata, data
sieving) or save some of it (caches, bytes that several ranks read), and because records are
missing. What can be completed from another layer is; every other gap above 1 % is noted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.counters import DATASET, PRESENT
from understudy.inference.table import ALL_RANKS, Rows

GAP = levels.SMALL  # share of the application's bytes above which a difference is stated


@dataclass(slots=True)
class Gap:
    """Files in which storage moved more, or less, than the application asked for, and bytes."""

    files: int = 0
    asked: int = 0
    moved: int = 0


@dataclass(slots=True)
class Layers:
    """The gaps found so far, by (interface, write, kind)."""

    gaps: dict[tuple[str, bool, str], Gap] = field(default_factory=dict)

    def compare(self, datasets: Rows, mpiio: Rows, posix: Rows) -> None:
        """Note the gaps of some files, of which all rows are given."""
        above = np.unique(datasets["file"])
        for interface, rows in (
            ("HDF5", datasets),
            ("MPI-IO", mpiio[~np.isin(mpiio["file"], above)]),
        ):
            files = np.unique(rows["file"])
            if not len(files):
                continue
            seen = np.isin(files, posix["file"])
            overflowed = np.isin(files, rows["file"][rows["bytes"] < 0])
            for write in (True, False):
                asked, moved = (_sums(files, r[r["write"] == write]) for r in (rows, posix))
                known = ~overflowed
                more, less = moved - asked > GAP * asked, asked - moved > GAP * asked
                self._add((interface, write, "more"), asked, moved, known & more)
                self._add((interface, write, "less"), asked, moved, known & less & seen)
                self._add((interface, write, "unseen"), asked, moved, known & less & ~seen)

    def _add(
        self,
        key: tuple[str, bool, str],
        asked: npt.NDArray[np.int64],
        moved: npt.NDArray[np.int64],
        mine: npt.NDArray[np.bool_],
    ) -> None:
        if mine.any():
            gap = self.gaps.setdefault(key, Gap())
            gap.files += int(mine.sum())
            gap.asked += int(asked[mine].sum())
            gap.moved += int(moved[mine].sum())

    def notes(self) -> Iterator[str]:
        """A message for each kind of gap."""
        for (interface, write, kind), gap in sorted(self.gaps.items()):
            files = "1 file" if gap.files == 1 else f"{gap.files} files"
            word = "written" if write else "read"
            if kind == "unseen":
                yield (
                    f"Without a POSIX record: {gap.asked:,} B {word} through {interface} in "
                    f"{files}; what storage moved for them is unknown."
                )
                continue
            share = f" ({(gap.moved - gap.asked) / gap.asked:+.1%})" if gap.asked else ""
            yield (
                f"Of {files} {'written' if write else 'read'} through {interface}, storage moved "
                f"{gap.moved:,} B where the application asked for {gap.asked:,} B"
                f"{share}: {_WHY[write, kind]}. The replica asks for the latter; its libraries "
                "decide about the former."
            )


_WHY = {
    (True, "more"): "fill values, metadata or data sieving of the library",
    (True, "less"): "bytes that the library merged or kept, or records that are missing",
    (False, "more"): "metadata, read-ahead or data sieving of the library",
    (False, "less"): "bytes that the library read once for several ranks or calls, or kept",
}


def _sums(files: npt.NDArray[np.uint64], rows: Rows) -> npt.NDArray[np.int64]:
    """Bytes of each file; `files` are sorted."""
    total = np.zeros(len(files), np.int64)
    if not len(files):
        return total
    rows = rows[np.isin(rows["file"], files)]
    np.add.at(total, np.searchsorted(files, rows["file"]), np.maximum(rows["bytes"], 0))
    return total


# -- HDF5 records that are missing ----------------------------------------------------------------


def missing_datasets(
    datasets: Rows, present: Rows, mpiio: Rows, ranks: int
) -> tuple[Rows, int, int]:
    """Rows for ranks without HDF5 records, how many files have such, and the bytes of the rows.

    All ranks open the datasets of a parallel file. If one that opened the file through MPI-IO has
    no record of any dataset, its record is missing; if MPI-IO moved more than the other ranks'
    datasets, the difference is its. Its calls are taken to be those of the rank with most bytes.
    """
    assert present.dtype == PRESENT
    made: list[Rows] = [np.empty(0, DATASET)]
    completed = 0
    for file in np.unique(present["file"]):
        if (datasets["rank"][datasets["file"] == file] == ALL_RANKS).any():
            continue
        opened = mpiio[mpiio["file"] == file]
        who = np.arange(ranks) if (opened["rank"] == ALL_RANKS).any() else opened["rank"]
        absent = np.setdiff1d(who, present["rank"][present["file"] == file])
        if not len(absent) or len(absent) == len(np.unique(who)):
            continue
        before = len(made)
        for write in (True, False):
            mine = datasets[(datasets["file"] == file) & (datasets["write"] == write)]
            made += _copied(mine, opened[opened["write"] == write], absent)
        completed += len(made) > before
    rows = np.concatenate(made)
    return rows, completed, int(rows["bytes"].sum())


def _copied(mine: Rows, below: Rows, absent: npt.NDArray[np.int64]) -> Iterator[Rows]:
    """The rows of the rank with most bytes, for each absent one with the bytes that it moved."""
    whole = int(np.maximum(below["bytes"], 0).sum())
    rest = whole - int(mine["bytes"].sum())
    if not len(mine) or rest <= GAP * whole:
        return
    who, index = np.unique(mine["rank"], return_inverse=True)
    moved = np.zeros(len(who), np.int64)
    np.add.at(moved, index.ravel(), mine["bytes"])
    rows, usual = mine[mine["rank"] == who[np.argmax(moved)]], int(moved.max())
    for rank in absent.tolist():
        own = below[below["rank"] == rank]["bytes"].sum() if (below["rank"] == rank).any() else 0
        size = int(own) if own > 0 else rest // len(absent)
        if size <= 0:
            continue
        copy = rows.copy()
        copy["rank"], copy["corrected"], copy["even"] = rank, True, False
        if abs(size - usual) > GAP * usual:
            elements = copy["bytes"] // copy["element"] * size // usual
            copy["bytes"] = elements * copy["element"]
        yield copy[copy["bytes"] > 0]

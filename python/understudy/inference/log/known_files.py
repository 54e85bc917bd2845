"""Names and sizes of files, found by their ids."""

import numpy as np
import numpy.typing as npt

from understudy.inference.table import Once, Rows, place_in, same, sorting


def lookup(
    keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Which of `wanted` are among the sorted `keys`, and where."""
    if not len(keys):
        return np.zeros(len(wanted), np.bool_), np.zeros(len(wanted), np.intp)
    if len(keys) == len(wanted) and (keys == wanted).all() and (keys[1:] > keys[:-1]).all():
        return np.ones(len(wanted), np.bool_), np.arange(len(wanted))
    place = place_in(keys, wanted)
    place[place == len(keys)] = 0
    return keys[place] == wanted, place


def names_of(
    names: Rows, files: npt.NDArray[np.uint64], once: Once
) -> tuple[npt.NDArray[np.bool_], Rows]:
    """Which of some files have a name, and the first name of each of these."""
    if same(names["file"], files) and once(files):
        return np.ones(len(files), np.bool_), names
    order = sorting(names["file"])
    matched, place = lookup(names["file"][order], files)
    return matched, names[order[place if matched.all() else place[matched]]]


class Extents:
    """Size on storage of each written file: the largest offset written, plus one."""

    def __init__(self, posix: Rows, stdio: Rows, once: Once) -> None:
        written = [t["write"] & (t["bytes"] > 0) for t in (posix, stdio)]
        files, tops = (
            np.concatenate([t[name][m] for t, m in zip((posix, stdio), written, strict=True)])
            for name in ("file", "top")
        )
        if once(files):
            self._ids, self._sizes = files, np.maximum(tops, 0)
            return
        self._ids, index = np.unique(files, return_inverse=True)
        self._sizes = np.zeros(len(self._ids), np.int64)
        np.maximum.at(self._sizes, index.ravel(), tops)

    def forget(self, file: int) -> None:
        """Set the size of a file to unknown, as its records are incomplete."""
        self._sizes[self._ids == file] = 0

    def of(self, files: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Bytes of each file, 0 where unknown."""
        sizes: npt.NDArray[np.int64] = np.zeros(len(files), np.int64)
        if not len(files):
            return sizes
        if same(self._ids, files):
            sizes[:] = self._sizes
            return sizes
        if (self._ids[1:] < self._ids[:-1]).any():
            order = np.argsort(self._ids)
            self._ids, self._sizes = self._ids[order], self._sizes[order]
        matched, place = lookup(self._ids, files)
        sizes[matched] = self._sizes[place[matched]]
        return sizes

"""Rows sorted by file into buckets, so that memory is bounded whatever the number of files."""

import os
import tempfile
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.table import Rows, over_rows

HELD_BYTES = 8 << 20  # rows held before they go to a temporary file


Words = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Same:
    """The words of some rows: their values where all rows have the same (else 0), and which others
    there are."""

    values: Words
    others: npt.NDArray[np.intp]
    key: bytes  # equal for what is equal


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows in the file: where their other words begin."""

    at: int
    rows: int
    same: _Same


class Spill:
    """Rows in buckets by file: in memory and, if there are many, in a temporary file."""

    def __init__(self, dtype: Any, buckets: int) -> None:
        self._dtype, self._buckets = np.dtype(dtype), buckets
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._end = 0  # bytes in the file
        self._held: list[Rows] = []
        self._held_rows = 0
        self._pieces: list[list[_Piece]] = [[] for _ in range(buckets)]

    def add(self, rows: Rows) -> None:
        """Keep rows of any files."""
        if not len(rows):
            return
        self._held.append(rows)
        self._held_rows += len(rows)
        if self._held_rows * self._dtype.itemsize >= HELD_BYTES:
            self._write()

    def add_block(self, bucket: int, rows: Rows) -> None:
        """Keep rows that are all of one bucket."""
        if self._buckets == 1:
            self.add(rows)
        elif len(rows):
            self._append([rows], [(bucket, 0, len(rows))], None)

    def bucket(self, bucket: int) -> Rows:
        """All rows of one bucket, in the order in which they came."""
        if self._held and self._buckets > 1:
            self._write()
        pieces, held = self._pieces[bucket], self._held
        if not pieces and len(held) == 1:
            return held[0]
        found: Rows = np.empty(sum(p.rows for p in pieces) + sum(map(len, held)), self._dtype)
        words, done = self._words(found), 0
        for _, alike in groupby(pieces, lambda piece: piece.same.key):
            some = list(alike)
            same, count = some[0].same, sum(piece.rows for piece in some)
            mine = words[done : done + count]
            mine[:] = same.values
            if len(same.others):
                varied = np.empty((count, len(same.others)), words.dtype)
                plain = memoryview(varied.view(np.uint8).reshape(-1).data)
                for piece in some:
                    size = piece.rows * varied.strides[0]
                    self._read(plain[:size], piece.at)
                    plain = plain[size:]
                for k, word in enumerate(same.others.tolist()):
                    mine[:, word] = varied[:, k]
            done += count
        for rows in held:
            found[done : done + len(rows)] = rows
            done += len(rows)
        return found

    def _words(self, rows: Rows) -> Words:
        """Rows as words of 8 bytes, or as bytes where they do not divide: [rows, words]."""
        size = self._dtype.itemsize
        kind = np.uint8 if size % 8 else np.uint64
        return rows.view(kind).reshape(len(rows), size // np.dtype(kind).itemsize)

    def _write(self) -> None:
        held, self._held, self._held_rows = self._held, [], 0
        if self._buckets == 1:
            self._append(held, [(0, 0, sum(map(len, held)))], None)
            return
        buckets = np.concatenate([rows["file"] % np.uint64(self._buckets) for rows in held])
        order = np.argsort(buckets.astype(np.int16), kind="stable")
        edges = np.searchsorted(buckets[order], np.arange(self._buckets + 1)).tolist()
        found = [(n, edges[n], edges[n + 1]) for n in range(self._buckets)]
        self._append(held, [piece for piece in found if piece[1] < piece[2]], order)

    def _append(
        self,
        parts: list[Rows],
        pieces: list[tuple[int, int, int]],
        order: npt.NDArray[np.intp] | None,
    ) -> None:
        """Write rows in some order. Most counters are 0: words that are the same in all rows are
        kept once."""
        words = [self._words(np.ascontiguousarray(rows)) for rows in parts]
        low, high = (
            merge.reduce([over_rows(merge, some) for some in words])
            for merge in (np.minimum, np.maximum)
        )
        differ = low != high
        others, values = np.flatnonzero(differ), np.where(differ, 0, words[0][0])
        kept = _Same(values, others, values.tobytes() + others.tobytes())
        varied = np.concatenate([some.take(others, axis=1) for some in words])
        varied = varied if order is None else varied.take(order, axis=0)
        row_bytes = varied.shape[1] * varied.itemsize
        for bucket, begin, end in pieces:
            at = self._end + begin * row_bytes
            self._pieces[bucket].append(_Piece(at=at, rows=end - begin, same=kept))
        plain = memoryview(np.ascontiguousarray(varied).view(np.uint8).reshape(-1).data)
        while len(plain):
            done = os.pwrite(self._file.fileno(), plain, self._end)
            self._end += done
            plain = plain[done:]

    def _read(self, plain: memoryview, at: int) -> None:
        while len(plain):
            done = os.preadv(self._file.fileno(), [plain], at)
            assert done > 0, "the temporary file is shorter than what was written"
            at += done
            plain = plain[done:]

    def close(self) -> None:
        self._file.close()

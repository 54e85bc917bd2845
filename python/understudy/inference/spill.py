"""Rows sorted by file into buckets, so that memory is bounded whatever the number of files."""

import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.table import Rows

ROWS_AT_ONCE = 16_384  # rows held before they go to a temporary file


class Spill:
    """Rows in buckets by file: in memory and, if there are many, in a temporary file."""

    def __init__(self, dtype: Any, buckets: int) -> None:
        self._dtype, self._buckets = np.dtype(dtype), buckets
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._held: list[Rows] = []
        self._edges: list[list[int]] = []  # per write: first row of each bucket in the file

    def add(self, rows: Rows) -> None:
        self._held.append(rows)
        if sum(map(len, self._held)) >= ROWS_AT_ONCE:
            rows = np.concatenate(self._held)
            buckets = self._bucket_of(rows)
            order = np.argsort(buckets, kind="stable")
            begin = self._file.tell() // self._dtype.itemsize
            edges = np.searchsorted(buckets[order], np.arange(self._buckets + 1))
            self._edges.append((begin + edges).tolist())
            self._file.write(rows[order].tobytes())
            self._held = []

    def bucket(self, bucket: int) -> Rows:
        """All rows of one bucket, in the order in which they came."""
        found = [np.empty(0, self._dtype)]
        size = self._dtype.itemsize
        for edges in self._edges:
            self._file.seek(edges[bucket] * size)
            data = self._file.read((edges[bucket + 1] - edges[bucket]) * size)
            found.append(np.frombuffer(data, self._dtype))
        self._file.seek(0, 2)
        found += [rows[self._bucket_of(rows) == bucket] for rows in self._held]
        return np.concatenate(found)

    def _bucket_of(self, rows: Rows) -> npt.NDArray[np.uint64]:
        bucket: npt.NDArray[np.uint64] = rows["file"] % np.uint64(self._buckets)
        return bucket

    def close(self) -> None:
        self._file.close()

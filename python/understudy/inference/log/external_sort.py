"""Rows sorted by file into buckets, so that memory is bounded whatever the number of files."""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.table import Rows, over_rows

HELD_BYTES = 8 << 20  # rows held before they go to a temporary file


Words = npt.NDArray[Any]


class _Layout:
    """How rows are packed: words that are the same in all rows are kept once, others as numbers of
    1, 2, 4 or 8 bytes.

    `least` and `most` are the range of each word (of 4 bytes, or of 1 where they do not divide).
    """

    def __init__(self, dtype: np.dtype[Any], least: Words, most: Words) -> None:
        self.least, self.most = least, most
        kind = most.dtype
        widths = np.where(least == most, 0, kind.itemsize)
        for width in (2, 1):
            widths[(widths > width) & (most < 1 << 8 * width)] = width
        self._plain, self._wide = kind, np.dtype(np.uint64)
        pairs = kind.itemsize == 4 and dtype.itemsize % 8 == 0
        self._columns: list[tuple[bool, int, str, str]] = []
        n = 0
        while n < len(widths):
            double = pairs and n % 2 == 0 and bool((widths[n : n + 2] == 4).all())
            if double:
                self._columns.append((True, n // 2, f"w{n}", "u8"))
            elif widths[n]:
                self._columns.append((False, n, f"w{n}", f"u{widths[n]}"))
            n += 1 + double
        self._columns.sort(key=lambda column: -int(column[3][1:]))
        # even if all rows are the same, each takes a byte
        fields = [(name, form) for _, _, name, form in self._columns] or [("w", "u1")]
        self.dtype = np.dtype(fields, align=True)

    def widened(self, dtype: np.dtype[Any], low: Words, high: Words) -> "_Layout":
        """That of rows with these smallest and largest words as well. Any range begins at 0 and
        ends at a power of 256, so that few of them follow each other."""
        least, most = np.minimum(self.least, low), np.maximum(self.most, high)
        varied = least != most
        ends = np.array([(1 << 8 * w) - 1 for w in (1, 2, 4) if w <= most.itemsize], most.dtype)
        least[varied], most[varied] = 0, ends[np.searchsorted(ends, most[varied])]
        return _Layout(dtype, least, most)

    def fits(self, low: Words, high: Words) -> bool:
        """True if rows with these smallest and largest words can be packed so."""
        return bool((low >= self.least).all() and (high <= self.most).all())

    def packed(self, words: Words) -> Rows:
        """Rows, given as words, packed."""
        rows = np.empty(len(words), self.dtype)
        double = words.view(self._wide) if any(c[0] for c in self._columns) else words
        for wide, n, name, _ in self._columns:
            rows[name] = (double if wide else words)[:, n]
        return rows

    def unpack(self, rows: Rows, words: Words, some: Words | None) -> None:
        """The words of packed rows: all, or those of some pairs."""
        words[:] = self.least if some is None else self.least.reshape(-1, 2)[some].ravel()
        double = words.view(self._wide) if any(c[0] for c in self._columns) else words
        place = None if some is None else {pair: k for k, pair in enumerate(some.tolist())}
        for wide, n, name, _ in self._columns:
            at = n
            if place is not None:
                if (pair := n if wide else n // 2) not in place:
                    continue
                at = place[pair] if wide else 2 * place[pair] + n % 2
            (double if wide else words)[:, at] = rows[name]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Packed rows in the file, by bucket: where they begin, and which are of each."""

    layout: _Layout
    at: int
    edges: npt.NDArray[np.int64]


class Spill:
    """Rows in buckets by file: in memory and, if there are many, in a temporary file."""

    def __init__(self, dtype: Any, buckets: int) -> None:
        self._dtype, self._buckets = np.dtype(dtype), buckets
        self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
        self._end = 0  # bytes in the file
        self._layout: _Layout | None = None
        self._held: list[Rows] = []  # packed if there are several buckets
        self._held_bytes = 0
        self._bucket_of: list[npt.NDArray[np.int16]] = []
        self._batches: list[_Batch] = []
        self._whole: dict[int, list[_Batch]] = {}  # those of one bucket

    def add(self, rows: Rows) -> None:
        """Keep rows of any files."""
        if not len(rows):
            return
        if self._buckets > 1:
            number = (rows["file"] % np.uint64(self._buckets)).astype(np.int16)
            rows = self._packed(rows)
            self._bucket_of.append(number)
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= HELD_BYTES:
            self._write()

    def add_block(self, bucket: int, rows: Rows) -> None:
        """Keep rows that are all of one bucket."""
        if self._buckets == 1:
            self.add(rows)
        elif len(rows):
            packed = self._packed(rows)
            edges = np.array([0, len(rows)], np.int64)
            self._whole.setdefault(bucket, []).append(self._stored(packed, edges))

    def bucket(self, bucket: int, columns: Sequence[str] = ()) -> Rows:
        """All rows of one bucket, in the order in which they came; at least these columns of them,
        if given."""
        if self._held and self._buckets > 1:
            self._write()
        held = self._held
        if not self._batches and len(held) == 1:
            return held[0]
        pieces = [(b, *b.edges[bucket : bucket + 2].tolist()) for b in self._batches]
        pieces += [(b, *b.edges.tolist()) for b in self._whole.get(bucket, ())]
        count = sum(end - begin for _, begin, end in pieces)
        dtype, pairs = self._of_columns(columns) if count else (self._dtype, None)
        all_rows: Rows = np.empty(count + sum(map(len, held)), dtype)
        words, done = self._words(all_rows), 0
        while pieces:
            layout = pieces[0][0].layout
            some = [piece for piece in pieces if piece[0].layout is layout]
            pieces = pieces[len(some) :]
            rows = np.empty(sum(end - begin for _, begin, end in some), layout.dtype)
            plain, size = memoryview(rows.view(np.uint8).data), layout.dtype.itemsize
            for batch, begin, end in some:
                if begin < end:
                    self._read(plain[: (end - begin) * size], batch.at + begin * size)
                    plain = plain[(end - begin) * size :]
            layout.unpack(rows, words[done : done + len(rows)], pairs)
            done += len(rows)
        for rows in held:
            all_rows[done : done + len(rows)] = rows
            done += len(rows)
        return all_rows

    def _of_columns(self, columns: Sequence[str]) -> tuple[np.dtype[Any], Words | None]:
        """The type of rows with these columns, and the pairs of words that they have."""
        size, fields = self._dtype.itemsize, self._dtype.fields or {}
        if not columns or size % 8 or self._held:
            return self._dtype, None
        spans = [(fields[name][1], fields[name][0].itemsize) for name in columns]
        pairs = sorted({n for at, long in spans for n in range(at // 8, (at + long + 7) // 8)})
        some = np.array(pairs)
        dtype: np.dtype[Any] = np.dtype(
            {
                "names": list(columns),
                "formats": [fields[name][0] for name in columns],
                "offsets": [8 * pairs.index(at // 8) + at % 8 for at, _ in spans],
                "itemsize": 8 * len(pairs),
            }
        )
        return dtype, some

    def _words(self, rows: Rows) -> Words:
        """Rows as words of 4 bytes, or as bytes where they do not divide: [rows, words]."""
        size = rows.dtype.itemsize
        kind = np.uint8 if size % 4 else np.uint32
        return rows.view(kind).reshape(len(rows), size // np.dtype(kind).itemsize)

    def _packed(self, rows: Rows) -> Rows:
        words = self._words(np.ascontiguousarray(rows))
        low, high = (over_rows(merge, words) for merge in (np.minimum, np.maximum))
        if self._layout is None:
            self._layout = _Layout(self._dtype, low, low)
        if not self._layout.fits(low, high):
            if self._held:
                self._write()
            self._layout = self._layout.widened(self._dtype, low, high)
        rows = self._layout.packed(words)
        packed: Rows = rows.view(f"V{rows.itemsize}")  # joined as bytes, not by column
        return packed

    def _write(self) -> None:
        held, self._held, self._held_bytes = np.concatenate(self._held), [], 0
        if self._buckets == 1:
            edges = np.array([0, len(held)], np.int64)
            self._batches.append(self._stored(self._packed(held), edges))
            return
        number, self._bucket_of = np.concatenate(self._bucket_of), []
        order = np.argsort(number, kind="stable")
        edges = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=self._buckets))])
        self._batches.append(self._stored(held.take(order), edges))

    def _stored(self, packed: Rows, edges: npt.NDArray[np.int64]) -> _Batch:
        assert self._layout is not None
        batch = _Batch(layout=self._layout, at=self._end, edges=edges)
        plain = memoryview(packed.view(np.uint8).data)
        while len(plain):
            done = os.pwrite(self._file.fileno(), plain, self._end)
            self._end += done
            plain = plain[done:]
        return batch

    def _read(self, plain: memoryview, at: int) -> None:
        while len(plain):
            done = os.preadv(self._file.fileno(), [plain], at)
            assert done > 0, "the temporary file is shorter than what was written"
            at += done
            plain = plain[done:]

    def close(self) -> None:
        self._file.close()

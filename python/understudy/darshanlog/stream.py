"""A region of a log as one stream of plain bytes, inflated piece by piece.

A region holds one or many compressed streams, one after the other: each process of the application
compressed its own share. Memory is one compressed chunk and what the reader asks for.
"""

import bz2
import importlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol

from understudy.errors import UnderstudyError

CHUNK_BYTES = 1 << 16
"""Compressed bytes read at a time."""

PIECE_BYTES = 1 << 22
"""Plain bytes inflated at a time: a corrupt length claims no memory without data for it."""

SHORT_BYTES = 1 << 12
"""Compressed streams of at most so many bytes are inflated several at a time."""


class _Stream(Protocol):
    """The common interface of the decompressors of zlib and bz2."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes | memoryview, max_length: int, /) -> bytes: ...


def _module_of_isal() -> Any:
    """An extra of the package, which inflates more than twice as fast; None if not installed."""
    try:
        return importlib.import_module("isal.igzip_lib")
    except ImportError:
        return None


_isal = _module_of_isal()


def fast_stream() -> _Stream:
    """A decompressor of zlib's format by ISA-L, which is there."""
    stream: _Stream = _isal.IgzipDecompressor(flag=_isal.DECOMP_ZLIB)
    return stream


NEW_STREAM: Mapping[str, Callable[[], _Stream]] = MappingProxyType(
    {
        "zlib": fast_stream if _isal else zlib.decompressobj,
        "bzip2": bz2.BZ2Decompressor,
    }
)
_ISAL_ERROR: type[Exception] = _isal.error if _isal else zlib.error


class DamagedRegion(UnderstudyError):
    """A region whose bytes no Darshan has written. `what`: where and how, without the file."""

    def __init__(self, path: Path, name: str, position: int, message: str) -> None:
        super().__init__(f"{path}: {name}, byte {position}: {message}")
        self.what = f"at byte {position} of the log, {message}"


class Region:
    """The plain bytes of one region of a log file, read once from its start to its end.

    Several regions of one file can be read at the same time. Raises DamagedRegion, with the file,
    the region and the byte offset in the file, where the data is corrupt or ends too early.
    """

    def __init__(
        self,
        file: BinaryIO,
        path: Path,
        *,
        name: str,
        offset: int,
        length_bytes: int,
        compression: str,
        taken: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._file = file
        self._path = path
        self._name = name
        self._position = offset
        self._end = offset + length_bytes
        self._taken = taken
        self._new_stream = NEW_STREAM.get(compression)  # None: plain bytes
        self._stream: _Stream | None = None  # None between two streams
        self._begin = (offset, b"")  # `_position` and `_pending` at the begin of the stream
        self._inflated = 0  # plain bytes of the stream
        self._short = 0  # compressed bytes of a stream, if the last one was short
        self._pending = b""  # compressed bytes that the stream has not taken yet
        self._hungry = True  # whether the stream needs more input
        self.streams = 0  # compressed streams read to their ends
        self.plain_bytes = 0  # given so far

    def error(self, message: str) -> DamagedRegion:
        """An error that names the file, the region and how far it has been read."""
        return DamagedRegion(self._path, self._name, self._position, message)

    def read(self, n_bytes: int) -> bytes:
        """At most `n_bytes` plain bytes; fewer only at the end of the region."""
        parts = []
        missing = n_bytes
        while missing:
            part = self._piece(min(missing, PIECE_BYTES))
            if not part:
                break
            self.plain_bytes += len(part)
            parts.append(part)
            missing -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_exactly(self, n_bytes: int, what: str) -> bytes:
        """`n_bytes` plain bytes, or an error that names the missing item."""
        data = self.read(n_bytes)
        if len(data) != n_bytes:
            raise self.error(
                f"the data ends in the middle of {what}: "
                f"expected {n_bytes} bytes, found {len(data)}"
            )
        return data

    def blocks(self, n_bytes: int) -> Iterator[bytes]:
        """All plain bytes in pieces of `n_bytes`, the last one possibly shorter."""
        while data := self.read(n_bytes):
            yield data

    def _piece(self, limit_bytes: int) -> bytes:
        """Some plain bytes, none only at the end of the region."""
        if self._new_stream is None:
            return self._compressed(limit_bytes)
        while True:
            if self._hungry and not self._pending:
                self._pending = self._compressed(CHUNK_BYTES)
                if not self._pending:
                    break
            if self._stream is None:
                if self._short:
                    if plain := self._short_streams(limit_bytes):
                        return plain
                    if not self._pending:
                        continue
                self._stream = self._new_stream()
                self._begin, self._inflated = (self._position, self._pending), 0
            plain = self._inflate(self._stream, limit_bytes)
            if plain:
                return plain
        if self._stream is not None:
            raise self.error("the compressed data ends in the middle of a stream")
        return b""

    def _short_streams(self, limit_bytes: int) -> bytes:
        """The plain bytes of the next streams, which make at most `limit_bytes`, are about as long
        as the last and whole in what is pending: each process of a job may have compressed a
        single record. A stream that is not so, or is damaged, is left to `_inflate`."""
        # isal takes longer to begin a stream than zlib to inflate a short one
        new = zlib.decompressobj if self._new_stream is fast_stream else self._new_stream
        assert new is not None
        data, at, parts = memoryview(self._pending), 0, list[bytes]()
        size = 2 * self._short
        while at < len(data) and limit_bytes:
            some, stream = data[at : at + size], new()
            try:
                plain = stream.decompress(some, limit_bytes)
            except (zlib.error, OSError, ValueError):
                break
            if not stream.eof:
                break
            at += len(some) - len(stream.unused_data)
            parts.append(plain)
            limit_bytes -= len(plain)
        self.streams += len(parts)
        self._pending = self._pending[at:]
        return b"".join(parts)

    def _inflate(self, stream: _Stream, limit_bytes: int) -> bytes:
        try:
            plain = stream.decompress(self._pending, limit_bytes)
        except (_ISAL_ERROR, zlib.error, OSError, ValueError) as error:
            if self._new_stream is fast_stream:
                self._inflate_again()
                return b""
            raise self.error(f"the compressed data is corrupt: {error}") from error
        # zlib returns unused input, the others keep it
        self._pending = getattr(stream, "unconsumed_tail", b"")
        self._hungry = len(plain) < limit_bytes
        self._inflated += len(plain)
        if stream.eof:
            self.streams += 1
            self._pending = stream.unused_data
            begin, first = self._begin
            used = len(first) - len(self._pending)
            short = begin == self._position and used <= SHORT_BYTES
            self._short = max(self._short, used) if short else 0
            self._hungry = True
            self._stream = None
        return plain

    def _inflate_again(self) -> None:
        """Go on with zlib, which has the last word on what is corrupt."""
        self._new_stream = zlib.decompressobj
        self._position, self._pending = self._begin
        missing, self._inflated = self._inflated, 0
        self._stream, self._hungry = zlib.decompressobj(), True
        while missing and (plain := self._piece(min(missing, PIECE_BYTES))):
            missing -= len(plain)

    def _compressed(self, limit_bytes: int) -> bytes:
        n_bytes = min(limit_bytes, self._end - self._position)
        try:
            data = os.pread(self._file.fileno(), n_bytes, self._position)
        except OSError as error:
            raise UnderstudyError(
                f"{self._path}: {self._name}, byte {self._position}: cannot be read: "
                f"{error.strerror}"
            ) from error
        if len(data) < n_bytes:
            raise self.error(f"the file is truncated: {n_bytes} more bytes were expected")
        self._position += len(data)
        self._taken(len(data))
        return data

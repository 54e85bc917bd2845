"""A log in another compression: its regions one by one, each as one compressed stream.

The result holds the same plain bytes, and is byte for byte what darshan-convert writes of a log of
the format that it writes (version 3.41, little-endian, newest module versions). For that, such a
log's mounts are ordered and its names made unique as darshan-convert does. Logs of older formats
keep theirs, and modules that darshan-convert leaves out stay. It fills two fields of HEATMAP's
records with addresses of its own memory, and may correct their number of bins; here they stay.
"""

import bz2
import hashlib
import os
import re
import struct
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.header import Header, Job, read_header, read_job
from understudy.darshanlog.names import NameBlock, first_of_each, name_blocks, without_repeats
from understudy.darshanlog.stream import Region
from understudy.errors import UnderstudyError

PIECE_BYTES = 1 << 20
"""Plain bytes compressed at a time."""

OF_CONVERT = ("3.41", "<")
"""Version and byte order of the logs that darshan-convert writes."""

JOB, NAMES = "the job record", "the names"
_MOUNT = re.compile(rb"[^\s]+\t[^\s]+")

Tick = Callable[[int], None]


class _Stream(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


# bzip2 is not made faster by a smaller block, and darshan-convert uses the largest.
_NEW_STREAM: Mapping[str, Callable[[], _Stream]] = MappingProxyType(
    {"zlib": zlib.compressobj, "bzip2": lambda: bz2.BZ2Compressor(9)}
)
COMPRESSIONS = tuple(_NEW_STREAM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Converted:
    """Result of a conversion: sizes of the files in bytes, processes of the job, and records of
    names (`files`), each id once. `digests`: of the plain bytes of each region of the result."""

    before_bytes: int
    after_bytes: int
    nprocs: int
    files: int
    digests: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A region of a log: index of its module in the header; -2: the job record, -1: the names."""

    name: str
    index: int
    offset: int
    length_bytes: int
    record_bytes: int = 1  # its plain bytes are a multiple of this


class Source:
    """An open log, by its regions.

    Raises UnderstudyError where it is no log, or damaged; with `whole`, also where not every byte
    of it belongs to one region: a damaged header does not go unnoticed.
    """

    def __init__(self, path: Path, *, whole: bool = True) -> None:
        self.path = path
        try:
            # a FIFO without a writer would be waited for
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise UnderstudyError(f"{path}: cannot be opened: {error.strerror}") from None
        self.file: BinaryIO = os.fdopen(descriptor, "rb", buffering=0)  # see close
        try:
            self.status = os.fstat(descriptor)
            self.bytes = self.status.st_size
            self.header = read_header(self.file, path, self.bytes)
            self.parts = list(_parts(self.header))
            if whole:
                self._check_tiling()
            self.partial = self._partial_flags()
            self.job: Job = read_job(self.region(self.parts[0]), self.header)[0]
        except OSError as error:
            self.close()
            raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.file.close()

    @property
    def is_of_convert(self) -> bool:
        return (self.header.version, self.header.order) == OF_CONVERT

    def region(self, part: Part, kind: type[Region] = Region) -> Region:
        """The plain bytes of a region, from its start."""
        return kind(
            self.file,
            self.path,
            name=part.name,
            offset=part.offset,
            length_bytes=part.length_bytes,
            compression=self.header.compression,
        )

    def _check_tiling(self) -> None:
        position = self.header.format.header_bytes
        for part in sorted(self.parts, key=lambda p: p.offset):
            if part.offset != position:
                raise UnderstudyError(
                    f"{self.path}: corrupt header: {part.name} starts at byte {part.offset}, "
                    f"expected {position}, where the region before it ends"
                )
            position += part.length_bytes
        if position != self.bytes:
            raise UnderstudyError(
                f"{self.path}: corrupt: the regions of the header end at byte {position}, the "
                f"file has {self.bytes}"
            )

    def _partial_flags(self) -> bytes:
        offset, kind = self.header.format.partial_flag
        return os.pread(self.file.fileno(), int(kind[1:]), offset)


def _parts(header: Header) -> Iterator[Part]:
    """In the order in which they are written."""
    start, end = header.job
    yield Part(name=JOB, index=-2, offset=start, length_bytes=end - start)
    offset, length = header.names
    if length:
        yield Part(name=NAMES, index=-1, offset=offset, length_bytes=length)
    for module in sorted(header.modules.values(), key=lambda m: m.index):
        layout = layouts.RECORDS.get(module.name, {}).get(module.version)
        yield Part(
            name=f"module {module.name}",
            index=module.index,
            offset=module.offset,
            length_bytes=module.length_bytes,
            record_bytes=layout.record_bytes if layout and module.supported else 1,
        )


class _Stopped(Exception):
    """Another thread has failed."""


class _Output:
    """Where compressed bytes go: an open file, at its position."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self.descriptor, view) :]

    def restart(self, position: int) -> None:
        """Take back what was written after `position`."""
        os.ftruncate(self.descriptor, position)
        os.lseek(self.descriptor, position, os.SEEK_SET)

    @property
    def position(self) -> int:
        return os.lseek(self.descriptor, 0, os.SEEK_CUR)


class _Conversion:
    """One log on its way into a file."""

    def __init__(self, source: Source, compression: str, digest: bool, tick: Tick) -> None:
        self.source = source
        self.compression = compression
        self.tick = tick
        self.digest = digest
        self.files = 0
        self.digests: dict[str, bytes] = {}
        self.stop = threading.Event()

    def write(self, part: Part, out: _Output) -> int:
        """Write one region, compressed; its plain bytes."""
        if part.index == -2:
            return self._compress(part, [self._job(part)], out)
        if part.index == -1:
            return self._names(part, out)
        plain = self._compress(part, self.source.region(part).blocks(PIECE_BYTES), out)
        if plain % part.record_bytes:
            raise UnderstudyError(
                f"{self.source.path}: {part.name}: its {plain} bytes end in the middle of a "
                f"record of {part.record_bytes} bytes"
            )
        return plain

    def _compress(self, part: Part, pieces: Iterable[bytes], out: _Output) -> int:
        stream, plain = None, 0
        digest = hashlib.sha256() if self.digest else None
        for piece in pieces:
            if self.stop.is_set():
                raise _Stopped
            stream = stream or _NEW_STREAM[self.compression]()
            plain += len(piece)
            if digest:
                digest.update(piece)
            out.write(stream.compress(piece))
            self.tick(len(piece))
        if stream:
            out.write(stream.flush())
        if digest and plain:
            self.digests[part.name] = digest.digest()
        return plain

    def _job(self, part: Part) -> bytes:
        data = self.source.region(part).read(layouts.JOB_RECORD_BYTES + 1)
        if len(data) > layouts.JOB_RECORD_BYTES:
            raise UnderstudyError(
                f"{self.source.path}: the job record has more than "
                f"{layouts.JOB_RECORD_BYTES} bytes"
            )
        return ordered_job(data, self.source.header) if self.source.is_of_convert else data

    def _names(self, part: Part, out: _Output) -> int:
        """Darshan's readers take the first name of an id that is not empty, and darshan-convert
        writes only that. Rare: files of some ranks, but not all."""
        start = out.position
        ids: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]
        again: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]

        blocks_again = set[bool]()  # whether a block came again, of which no names are kept

        def counted() -> Iterator[bytes]:
            region = self.source.region(part, _Tee)
            assert isinstance(region, _Tee)
            blocks = self._name_blocks(region)
            while True:
                block = next(blocks, None)
                yield from region.taken()
                if block is None:
                    return
                blocks_again.add(block.repeats > 0)
                each, times = np.unique(block.ids, return_counts=True)
                ids.append(each)
                again.append(each[times > 1])

        plain = self._compress(part, counted(), out)
        all_ids = np.sort(np.concatenate(ids))
        again.append(all_ids if True in blocks_again else all_ids[1:][all_ids[1:] == all_ids[:-1]])
        self.files = len(np.unique(all_ids))
        repeated = set(np.concatenate(again).tolist())
        if not repeated or not self.source.is_of_convert:
            return plain
        out.restart(start)
        return self._compress(part, self._first_names(part, repeated), out)

    def _name_blocks(self, region: Region) -> Iterator[NameBlock]:
        header = self.source.header
        return name_blocks(region, header.order, counted=header.format.counted_names)

    def _first_names(self, part: Part, again: set[int]) -> Iterator[bytes]:
        best: dict[int, bytes] = {}
        for names in without_repeats(self._name_blocks(self.source.region(part))):
            for number, name in zip(names.ids.tolist(), names.texts(), strict=True):
                if number in again and name:
                    best.setdefault(number, name)
        seen: set[int] = set()
        for names in self._name_blocks(self.source.region(part)):
            if names.repeats:
                continue
            block, names = [], names.of_rows(first_of_each(names.ids))
            for number, name in zip(names.ids.tolist(), names.texts(), strict=True):
                if number in again:
                    if number in seen:
                        continue
                    seen.add(number)
                    name = best.get(number, b"")
                block.append(struct.pack(f"{self.source.header.order}Q", number) + name + b"\0")
            yield b"".join(block)


class _Tee(Region):
    """Keeps the plain bytes that it gives, until they are taken."""

    _kept: list[bytes]

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._kept = []

    def read(self, n_bytes: int) -> bytes:
        data = super().read(n_bytes)
        self._kept.append(data)
        return data

    def taken(self) -> list[bytes]:
        kept, self._kept = [data for data in self._kept if data], []
        return kept


def ordered_job(data: bytes, header: Header) -> bytes:
    """The job record as darshan-convert writes it: a line end after the metadata, and the mounts
    by the length of their paths. Text that it would lose or refuse stays as it is."""
    head = 8 * len(header.format.job_fields)
    end = head + layouts.JOB_METADATA_BYTES
    metadata = bytearray(data[head:end])
    length = metadata.find(b"\0")
    if length > 0 and metadata[length - 1] != 0x0A and length + 1 < len(metadata):
        metadata[length : length + 2] = b"\n\0"
    text = data[end:].split(b"\0", 1)[0]
    exe, *mounts = text.split(b"\n")
    if all(_MOUNT.fullmatch(mount) for mount in mounts):
        longest_first = sorted(mounts, key=lambda mount: -len(mount.split(b"\t")[1]))
        text = b"\n".join([exe, *reversed(longest_first)])
    return data[:head] + bytes(metadata) + text + b"\0"


def convert(
    source: Source,
    target: int,
    compression: str,
    *,
    threads: int = 1,
    digest: bool = False,
    tick: Tick = lambda _: None,
    folder: Path | None = None,
) -> Converted:
    """Write a log into the open, empty file `target` in another compression, zlib or bzip2.

    With several `threads`, regions are compressed at the same time, into unnamed files in
    `folder`. `tick` is told of plain bytes. Memory does not grow with the log, but for 16 bytes a
    name. Raises UnderstudyError where the log is damaged, OSError where the target cannot be
    written; its content has no meaning then.
    """
    conversion = _Conversion(source, compression, digest, tick)
    out = _Output(target)
    out.write(bytes(source.header.format.header_bytes))
    places = {}
    if threads > 1 and len(source.parts) > 1:
        for part, plain, spool in _in_threads(conversion, threads, folder or source.path.parent):
            start = out.position
            with spool:
                _append(spool, out)
            places[part.index] = (start, out.position - start) if plain else (0, 0)
    else:
        for part in source.parts:
            start = out.position
            plain = conversion.write(part, out)
            places[part.index] = (start, out.position - start) if plain else (0, 0)
    size = out.position
    os.lseek(target, 0, os.SEEK_SET)
    out.write(_header(source, compression, places))
    return Converted(
        before_bytes=source.bytes,
        after_bytes=size,
        nprocs=source.job.nprocs,
        files=conversion.files,
        digests=conversion.digests,
    )


def _in_threads(
    conversion: _Conversion, threads: int, folder: Path
) -> Iterator[tuple[Part, int, BinaryIO]]:
    """Regions in their order, the largest begun first."""
    parts = conversion.source.parts
    spools: dict[int, BinaryIO] = {}
    try:
        for part in parts:
            spools[part.index] = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115
        with ThreadPoolExecutor(min(threads, len(parts))) as pool:
            try:
                begun = {
                    part.index: pool.submit(
                        conversion.write, part, _Output(spools[part.index].fileno())
                    )
                    for part in sorted(parts, key=lambda p: -p.length_bytes)
                }
                for part in parts:
                    yield part, begun[part.index].result(), spools[part.index]
            finally:
                conversion.stop.set()  # of no effect where all have ended
    finally:
        for spool in spools.values():
            spool.close()


def _append(spool: BinaryIO, out: _Output) -> None:
    spool.seek(0)
    while data := spool.read(1 << 20):
        out.write(data)


def _header(source: Source, compression: str, places: Mapping[int, tuple[int, int]]) -> bytes:
    """The header of the result: regions where they are now, the rest as it was. As darshan-convert
    does, modules without a record leave no trace in it but their flag."""
    shape, order = source.header.format, source.header.order
    result_header = bytearray(shape.header_bytes)
    struct.pack_into(
        f"{order}8sq", result_header, 0, source.header.version.encode(), layouts.MAGIC
    )
    result_header[16] = layouts.COMPRESSIONS.index(compression)
    flags_at = shape.partial_flag[0]
    result_header[flags_at : flags_at + len(source.partial)] = source.partial
    for index, place in places.items():
        if index != -2:
            struct.pack_into(
                f"{order}2Q", result_header, shape.name_map_offset + 16 * (1 + index), *place
            )
    for module in source.header.modules.values():
        if places[module.index][1]:
            at = shape.versions_offset + 4 * module.index
            struct.pack_into(f"{order}I", result_header, at, module.version)
    return bytes(result_header)


def verify(
    path: Path, converted: Converted, source: Source, check: Callable[[], None] = lambda: None
) -> None:
    """Read the result again: an UnderstudyError unless its header and the plain bytes of all its
    regions are those of the source. `check` is called for each MiB."""
    with Source(path) as result:
        before, after = source.header, result.header
        kept = [(m.name, m.version, m.partial) for m in after.modules.values()]
        modules = {(m.name, m.version, m.partial) for m in before.modules.values()}
        if (
            (before.version, before.order, source.partial)
            != (after.version, after.order, result.partial)
            or not modules.issuperset(kept)
            or {p.name for p in result.parts} != set(converted.digests)
        ):
            raise UnderstudyError(f"{path}: the header of the result differs from the original's")
        for part in result.parts:
            digest = hashlib.sha256()
            for piece in result.region(part).blocks(PIECE_BYTES):
                check()
                digest.update(piece)
            if digest.digest() != converted.digests[part.name]:
                raise UnderstudyError(
                    f"{path}: {part.name} of the result differs from the original"
                )

"""The header of a Darshan log and its job record: read when a log is opened."""

import bz2
import gzip
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from understudy.darshanlog import layouts
from understudy.darshanlog.layouts import LogFormat
from understudy.darshanlog.stream import Region
from understudy.errors import UnderstudyError

MAX_BEYOND = 1 << 20
YEAR_10000_S = 253_402_300_800.0  # since the epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One module of a log.

    `index` and `offset` (bytes) are those of the header of this log, `length_bytes` is compressed.
    `partial`: the module ran out of memory and lacks records. `supported` False: it cannot be
    decoded, and `reason` is a message that says why. `remark`: a known limit of what can be
    decoded.
    """

    name: str
    index: int
    version: int
    offset: int
    length_bytes: int
    partial: bool
    supported: bool
    reason: str | None
    remark: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A mounted file system of the node of rank 0."""

    path: str
    fs_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The job that wrote the log.

    Times are seconds since the epoch, whole ones before log version 3.41. Where the end is unknown
    (a process that was killed) `end_s` is what the log says, mostly 0, and `run_time_s` is None.
    Before 3.41 the run time includes its last second, as in Darshan.
    """

    uid: int
    jobid: int
    nprocs: int
    start_s: float
    end_s: float
    run_time_s: float | None
    metadata: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The header: version, byte order (`<` or `>`), compression and regions."""

    version: str
    format: LogFormat
    order: str
    compression: str
    job: tuple[int, int]  # offset and length in bytes, as the next
    names: tuple[int, int]
    modules: dict[str, Module]
    empty: tuple[str, ...]  # modules that the log registers without a region
    doubts: tuple[str, ...]  # messages on what a damaged header may be the reason for


def read_header(file: BinaryIO, path: Path, file_bytes: int) -> Header:
    """The header of an open log of `file_bytes` bytes.

    Raises UnderstudyError where the file is no Darshan log, or a truncated or a damaged one.
    """
    if not file_bytes:
        raise UnderstudyError(f"{path}: the file is empty, expected a Darshan log")
    start = file.read(16)
    version, log_format = _version(path, start)
    data = start + file.read(log_format.header_bytes - len(start))
    if len(data) < log_format.header_bytes:
        raise UnderstudyError(
            f"{path}: truncated Darshan log: its header takes {log_format.header_bytes} bytes, "
            f"the file has {len(data)}"
        )
    order = _byte_order(path, data)
    compression = data[16]
    if compression >= len(layouts.COMPRESSIONS):
        raise UnderstudyError(
            f"{path}: unknown compression {compression} at byte 16, "
            f"expected 0 (zlib), 1 (bzip2) or 2 (none)"
        )
    flag_offset, flag_type = log_format.partial_flag
    flag_code = {"u4": "I", "u8": "Q"}[flag_type]
    (partial,) = struct.unpack_from(order + flag_code, data, flag_offset)
    slots = log_format.module_slots
    regions = struct.unpack_from(f"{order}{2 + 2 * slots}Q", data, log_format.name_map_offset)
    versions = struct.unpack_from(f"{order}{slots}I", data, log_format.versions_offset)
    names = (regions[0], regions[1])
    modules, empty = {}, []
    for index in range(slots):
        offset, length = regions[2 + 2 * index], regions[3 + 2 * index]
        if length or offset or versions[index]:
            module = _module(
                log_format, index, versions[index], offset, length, bool(partial >> index & 1)
            )
            if length:
                modules[module.name] = module
            else:
                empty.append(module.name)
    indices = {modules[name].index for name in modules}
    marked = [n for n in range(1, 64) if partial >> n & 1 and n not in indices]
    doubts = [
        f"module {log_format.module_names[n] if n < len(log_format.module_names) else n} is "
        "marked incomplete, but the log has no record of it"
        for n in marked
    ]
    header = Header(
        version=version,
        format=log_format,
        order=order,
        compression=layouts.COMPRESSIONS[compression],
        job=(log_format.header_bytes, _job_end(names, modules, file_bytes)),
        names=names,
        modules=modules,
        empty=tuple(empty),
        doubts=(),
    )
    _check_regions(path, header, file_bytes)
    return replace(header, doubts=(*doubts, *_gaps(header, file_bytes)))


def _version(path: Path, start: bytes) -> tuple[str, LogFormat]:
    magic = struct.pack("<q", layouts.MAGIC)
    text = start[:8].split(b"\0")[0].decode("ascii", errors="replace")
    if text in layouts.LOG_FORMATS:
        return text, layouts.LOG_FORMATS[text]
    if start[8:16] in (magic, magic[::-1]):
        raise UnderstudyError(
            f"{path}: Darshan log version {text!r} is not known, "
            f"expected one of {', '.join(layouts.LOG_FORMATS)}"
        )
    _refuse_compressed(path, start)
    raise UnderstudyError(
        f"{path}: not a Darshan log: it starts with {start[:8]!r}, expected a version such as "
        f"{max(layouts.LOG_FORMATS)!r}"
    )


def _refuse_compressed(path: Path, start: bytes) -> None:
    """Logs of Darshan 2 are compressed as a whole, and start with their version inside."""
    open_as = next((o for magic, o in _WHOLE.items() if start.startswith(magic)), None)
    if open_as is None:
        return
    try:
        with open_as(path) as file:
            inside = file.read(4)
    except (OSError, EOFError, ValueError, zlib.error):
        return
    if re.fullmatch(rb"[12]\.\d\d", inside):
        raise UnderstudyError(
            f"{path}: a log of Darshan {inside.decode()}, expected one of Darshan 3.0 or later: "
            "record the application again with Darshan 3"
        )
    if inside.decode("ascii", "replace") in layouts.LOG_FORMATS:
        raise UnderstudyError(
            f"{path}: a Darshan log that was compressed again as a whole; decompress it first"
        )


_WHOLE: Mapping[bytes, Callable[[Path], BinaryIO]] = MappingProxyType(
    {b"\x1f\x8b": gzip.open, b"BZh": bz2.open}  # type: ignore[dict-item]
)


def _byte_order(path: Path, data: bytes) -> str:
    for order in "<>":
        if struct.unpack_from(order + "q", data, 8)[0] == layouts.MAGIC:
            return order
    raise UnderstudyError(
        f"{path}: not a Darshan log: the number at byte 8 is {data[8:16]!r}, "
        f"expected {layouts.MAGIC} in either byte order"
    )


def _module(
    log_format: LogFormat, index: int, version: int, offset: int, length: int, partial: bool
) -> Module:
    named = index < len(log_format.module_names)
    name = log_format.module_names[index] if named else f"module {index}"
    decodable = layouts.VERSIONS.get(name, frozenset())
    reason = None
    if not named:
        reason = f"module {index} is newer than this decoder"
    elif not decodable:
        reason = f"module {name} is not decoded"
    elif version not in decodable:
        reason = (
            f"module {name} version {version} is not known, "
            f"expected one of {', '.join(map(str, sorted(decodable)))}"
        )
    return Module(
        name=name,
        index=index,
        version=version,
        offset=offset,
        length_bytes=length,
        partial=partial,
        supported=reason is None,
        reason=reason,
        remark=layouts.REMARKS.get((name, version)),
    )


def _job_end(names: tuple[int, int], modules: dict[str, Module], file_bytes: int) -> int:
    """The job record ends where the next region starts, be it the names, a module or nothing."""
    if names[0]:
        return names[0]
    return min((module.offset for module in modules.values()), default=file_bytes)


def _regions(header: Header) -> list[tuple[str, int, int]]:
    """Name, offset and length of each region."""
    start = header.format.header_bytes
    return [
        ("the job record", start, header.job[1] - start),
        ("the names", *header.names),
        *((f"module {m.name}", m.offset, m.length_bytes) for m in header.modules.values()),
    ]


def _gaps(header: Header, file_bytes: int) -> Iterator[str]:
    """Bytes of no region: Darshan writes one region behind the other."""
    end = header.format.header_bytes
    regions = sorted((offset, length) for _, offset, length in _regions(header) if length)
    for offset, length in [*regions, (file_bytes, 0)]:
        if offset > end:
            yield (
                f"bytes {end} to {offset} belong to no region: the header may be damaged, and "
                "what is described may lack them"
            )
        end = max(end, offset + length)


def _check_regions(path: Path, header: Header, file_bytes: int) -> None:
    start = header.format.header_bytes
    regions = _regions(header)
    for name, offset, length in regions:
        if name != "the names" and length < 1:
            raise UnderstudyError(f"{path}: corrupt header: {name} at byte {offset} is empty")
        if length and offset < start:
            raise UnderstudyError(
                f"{path}: corrupt header: {name} starts at byte {offset}, inside the header"
            )
        if offset + length > file_bytes and length:
            raise UnderstudyError(
                f"{path}: truncated Darshan log: {name} takes bytes {offset} to "
                f"{offset + length}, the file has {file_bytes}"
            )

    used = sorted((offset, length, name) for name, offset, length in regions if length)
    for (offset, length, name), (begin, _, other) in pairwise(used):
        if begin < offset + length:
            raise UnderstudyError(
                f"{path}: corrupt header: {name} takes bytes {offset} to {offset + length}, but "
                f"{other} starts at byte {begin}"
            )


def read_job(region: Region, header: Header) -> tuple[Job, str, tuple[Mount, ...]]:
    """The job, the command line and the mount table (longest path first)."""
    n_fields = len(header.format.job_fields)
    data = region.read(layouts.JOB_RECORD_BYTES)
    if more := len(region.read(MAX_BEYOND)):  # a checksum holds only if all is read
        raise region.error(
            f"the job record takes {more} bytes more than the {layouts.JOB_RECORD_BYTES} that "
            "Darshan writes"
        )
    head_bytes = 8 * n_fields
    if len(data) < head_bytes + layouts.JOB_METADATA_BYTES:
        raise region.error(
            f"the job record ends too early: expected at least "
            f"{head_bytes + layouts.JOB_METADATA_BYTES} bytes, found {len(data)}"
        )
    values = dict(
        zip(
            header.format.job_fields,
            struct.unpack_from(f"{header.order}{n_fields}q", data),
            strict=True,
        )
    )
    text_start = head_bytes + layouts.JOB_METADATA_BYTES
    exe, mounts = _exe_and_mounts(_text(data[text_start:]))
    job = _job(values, _text(data[head_bytes:text_start]), header.format)
    for name, time_s in (("start", job.start_s), ("end", job.end_s)):
        if not (0 if name == "start" else -math.inf) <= time_s < YEAR_10000_S:
            raise region.error(
                f"the job record has the {name} time {time_s:.6g} s since 1970, expected a time "
                "before the year 10000"
            )
    return job, exe, mounts


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode("utf-8", errors="surrogateescape")


def _job(values: dict[str, int], metadata: str, log_format: LogFormat) -> Job:
    start_s = values["start_time_sec"] + values.get("start_time_nsec", 0) / 1e9
    end_s = values["end_time_sec"] + values.get("end_time_nsec", 0) / 1e9
    run_time_s = float(end_s - start_s + log_format.whole_seconds)
    pairs = (line.split("=", 1) for line in metadata.split("\n") if "=" in line)
    return Job(
        uid=values["uid"],
        jobid=values["jobid"],
        nprocs=values["nprocs"],
        start_s=start_s,
        end_s=end_s,
        run_time_s=run_time_s if end_s > 0 and run_time_s >= 0 else None,
        metadata={key: value for key, value in pairs},
    )


def _exe_and_mounts(text: str) -> tuple[str, tuple[Mount, ...]]:
    exe, *lines = text.split("\n")
    # a command line may hold line breaks itself, so a line that is no mount is passed over
    pairs = [line.split("\t") for line in lines]
    mounts = [Mount(fs_type=pair[0], path=pair[1]) for pair in pairs if len(pair) == 2]
    return exe, tuple(sorted(mounts, key=lambda mount: -len(mount.path)))

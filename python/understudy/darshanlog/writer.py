"""Writes Darshan logs: any number of records, version, byte order, compression.

    write_log(
        path,
        names={7: b"/scratch/ckpt.0"},
        POSIX=[{"id": 7, "rank": -1, "POSIX_BYTES_WRITTEN": 1 << 20}],
    )

Counters that are not given are 0. Records are dicts of counters, structured arrays (blocks) or any
mix of them, and can come from a generator, as names can: memory does not grow with their number.
"""

import bz2
import struct
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.layouts import LogFormat, RecordLayout
from understudy.darshanlog.records import Block

Record = Mapping[str, Any]
Records = Iterable[Record | Block]
Ids = npt.NDArray[np.uint64]
Texts = npt.NDArray[np.bytes_]
Names = Mapping[int, bytes] | Iterable[tuple[int, bytes] | tuple[Ids, Texts]]
START_S = 1_700_000_000.0
BATCH_RECORDS = 4096


def write_log(
    path: str | Path,
    *,
    nprocs: int = 4,
    run_time_s: float | None = 100.0,
    start_s: float = START_S,
    uid: int = 1000,
    jobid: int = 42,
    exe: str = "/bin/app --input case",
    mounts: Iterable[tuple[str, str]] = (("/scratch", "lustre"), ("/", "ext4")),
    metadata: Mapping[str, str] | None = None,
    names: Names = (),
    version: str = "3.41",
    byte_order: str = "little",
    compression: str = "zlib",
    level: int = 6,
    stream_bytes: int = 1 << 24,
    names_stream_bytes: int | None = None,
    partial: Iterable[str] = (),
    module_versions: Mapping[str, int] | None = None,
    raw: Mapping[int, tuple[int, bytes]] | None = None,
    **modules: Records,
) -> Path:
    """Write a log to `path` and return it.

    `run_time_s` None: the end is unknown, as after a crash. `mounts`: pairs of path and type.
    `metadata` of the job; without it, `lib_ver=3.5.0`. `names`: pairs of id and name, or of arrays
    of them, in which all names are of one length. `stream_bytes`: a new compressed stream starts
    after as many plain bytes, as if another process had written it (`names_stream_bytes`: the same
    of the names). `partial`: names of modules that lack records. `module_versions`: by module
    name, the newest known where absent; a version that the decoder does not know is stated in the
    header over records of the newest layout. `raw`: modules of any sort, by index in the header:
    version and plain bytes. Modules by name, MPI-IO as `MPIIO`:

    * POSIX, MPIIO, STDIO, H5F, H5D, PNETCDF_FILE, PNETCDF_VAR: `id`, `rank`, counters by name;
    * LUSTRE: `id`, `rank`, `stripe_size_bytes`, `ost_ids` for one component, or `components`, a
      list of dicts of `stripe_size_bytes`, `ost_ids` and any of `stripe_count` (without it, the
      number of OSTs), `pattern`, `flags`, `extent_start`, `extent_end`, `mirror_id`, `pool_name`;
    * HEATMAP: `id`, `rank`, `bin_width_s`, `write_bins`, `read_bins`;
    * DXT_POSIX, DXT_MPIIO: `id`, `rank`, `hostname`, `write_segments`, `read_segments`, lists of
      (offset, length, start_s, end_s[, pthread_id]).

    Raises ValueError for a module, counter or option that does not exist.
    """
    log_format = layouts.LOG_FORMATS[version]
    order = {"little": "<", "big": ">"}[byte_order]
    regions = _module_regions(log_format, order, dict(module_versions or {}), modules)
    for index, (number, data) in (raw or {}).items():
        regions[index] = (number, iter([data]))
    job = _job(log_format, order, [uid, jobid, nprocs], start_s, run_time_s)
    text = _metadata({"lib_ver": "3.5.0"} if metadata is None else metadata)
    tail = exe + "".join(f"\n{kind}\t{mount}" for mount, kind in mounts)
    job_record = job + text + tail.encode("utf-8", errors="surrogateescape") + b"\0"
    if len(job_record) > layouts.JOB_RECORD_BYTES:
        raise ValueError(
            f"the job record takes {len(job_record)} bytes, at most 4096 are possible"
        )
    out = _Output(compression, level, stream_bytes)
    of_names = _Output(compression, level, names_stream_bytes or stream_bytes)
    path = Path(path)
    with path.open("wb") as file:
        file.write(bytes(log_format.header_bytes))
        out.region(file, [job_record])
        name_map = of_names.region(file, _names(names, log_format, order))
        places = {
            index: (number, *out.region(file, data))
            for index, (number, data) in sorted(regions.items())
        }
        file.seek(0)
        flags = sum(1 << log_format.module_names.index(_module_name(name)) for name in partial)
        file.write(_header(version, log_format, order, compression, flags, name_map, places))
    return path


def file_dtype(layout: RecordLayout, order: str) -> np.dtype[np.void]:
    """The structured type of a fixed-size record in the file."""
    return np.dtype(
        [
            (
                name,
                order
                + ("u8" if name in layouts.UNSIGNED else "f8" if layouts.is_float(name) else "i8"),
            )
            for name in layout.fields
        ]
    )


class _Output:
    """Compresses regions into the file."""

    def __init__(self, compression: str, level: int, stream_bytes: int) -> None:
        if compression not in layouts.COMPRESSIONS:
            raise ValueError(f"compression {compression!r} is none of {layouts.COMPRESSIONS}")
        self._compression = compression
        self._level = level
        self._stream_bytes = stream_bytes

    def _stream(self) -> Any:
        if self._compression == "zlib":
            return zlib.compressobj(self._level)
        return bz2.BZ2Compressor(max(1, self._level))

    def region(self, file: BinaryIO, parts: Iterable[bytes]) -> tuple[int, int]:
        """Offset and length of what was written; zeros where there was nothing."""
        start = file.tell()
        if self._compression == "none":
            file.writelines(parts)
        else:
            self._compress(file, parts)
        length = file.tell() - start
        return (start, length) if length else (0, 0)

    def _compress(self, file: BinaryIO, parts: Iterable[bytes]) -> None:
        stream, taken = None, 0
        for part in parts:
            for first in range(0, max(1, len(part)), self._stream_bytes):
                piece = part[first : first + self._stream_bytes]
                if stream is not None and taken + len(piece) > self._stream_bytes:
                    file.write(stream.flush())
                    stream = None
                if stream is None:
                    stream, taken = self._stream(), 0
                file.write(stream.compress(piece))
                taken += len(piece)
        if stream is not None:
            file.write(stream.flush())


def _module_name(name: str) -> str:
    return "MPI-IO" if name == "MPIIO" else name


def _module_regions(
    log_format: LogFormat, order: str, wanted: dict[str, int], modules: Mapping[str, Records]
) -> dict[int, tuple[int, Iterator[bytes]]]:
    wanted = {_module_name(name): number for name, number in wanted.items()}
    regions = {}
    for key, records in modules.items():
        name = _module_name(key)
        if name not in layouts.VERSIONS:
            raise ValueError(f"{key} is no module that can be written")
        if name not in log_format.module_names:
            raise ValueError(f"logs of this version have no module {name}")
        newest = max(layouts.VERSIONS[name])
        number = wanted.get(name, newest)
        layout = number if number in layouts.VERSIONS[name] else newest
        encode = _ENCODERS.get(name, _fixed)
        items = [records] if isinstance(records, (np.ndarray, dict)) else records
        regions[log_format.module_names.index(name)] = (number, encode(name, layout, order, items))
    return regions


def _fixed(name: str, number: int, order: str, records: Any) -> Iterator[bytes]:
    dtype = file_dtype(layouts.RECORDS[name][number], order)
    batch: list[Record] = []
    for item in records:
        if isinstance(item, np.ndarray):
            yield from _dicts(name, dtype, batch)
            batch = []
            yield _block(name, dtype, item)
            continue
        batch.append(item)
        if len(batch) == BATCH_RECORDS:
            yield from _dicts(name, dtype, batch)
            batch = []
    yield from _dicts(name, dtype, batch)


def _known(name: str, dtype: np.dtype[np.void], fields: Iterable[str]) -> None:
    unknown = sorted(set(fields) - set(dtype.names or ()))
    if unknown:
        raise ValueError(f"module {name} of this version has no counter {', '.join(unknown)}")


def _block(name: str, dtype: np.dtype[np.void], block: Block) -> bytes:
    if block.dtype == dtype:
        return block.tobytes()
    out = np.zeros(len(block), dtype)
    _known(name, dtype, block.dtype.names or ())
    for field in block.dtype.names or ():
        out[field] = block[field]
    return out.tobytes()


def _dicts(name: str, dtype: np.dtype[np.void], batch: list[Record]) -> Iterator[bytes]:
    if batch:
        out = np.zeros(len(batch), dtype)
        for row, record in enumerate(batch):
            _known(name, dtype, record)
            for field, value in record.items():
                out[field][row] = value
        yield out.tobytes()


def _head(fields: tuple[tuple[str, str], ...], order: str, **values: Any) -> bytes:
    head = np.zeros(1, [(name, order + kind) for name, kind in fields])
    for name, value in values.items():
        head[name] = value
    return head.tobytes()


def _lustre(_: str, number: int, order: str, records: Any) -> Iterator[bytes]:
    layout = layouts.LUSTRE[number]
    for record in records:
        base = {"id": record["id"], "rank": record.get("rank", -1)}
        whole = {key: value for key, value in record.items() if key not in ("id", "rank")}
        parts = [dict(part) for part in whole.pop("components", [whole])]
        osts = [part.pop("ost_ids") for part in parts]
        for part, ids in zip(parts, osts, strict=True):
            part.setdefault("stripe_count", len(ids))
            part["stripe_size"] = part.pop("stripe_size_bytes")
        flat = [ost for ids in osts for ost in ids]
        if layout.component:
            counts = {"components": len(parts), "stripes": len(flat)}
            yield _head(layout.head, order, **base, **counts)
            defaults = {"pattern": 0, "flags": 0, "extent_end": -1, "mirror_id": 0}
            for part in parts:
                yield _head(layout.component, order, **(defaults | part))
        else:
            yield _head(layout.head, order, **base, osts=64, mdts=1, **parts[0])
        yield np.array(flat, order + "i8").tobytes()


def _heatmap(_: str, number: int, order: str, records: Any) -> Iterator[bytes]:
    for record in records:
        bins = np.array([record["write_bins"], record["read_bins"]], order + "i8")
        yield _head(
            layouts.HEATMAP_HEAD,
            order,
            id=record["id"],
            rank=record.get("rank", 0),
            bin_width_s=record["bin_width_s"],
            nbins=bins.shape[1],
        )
        yield bins.tobytes()


def _dxt(name: str, number: int, order: str, records: Iterable[Record]) -> Iterator[bytes]:
    fields = layouts.DXT[name][number].segment
    dtype = np.dtype([(field, order + kind) for field, kind in fields])
    for record in records:
        writes, reads = record.get("write_segments", ()), record.get("read_segments", ())
        yield _head(
            layouts.DXT_HEAD,
            order,
            id=record["id"],
            rank=record.get("rank", 0),
            hostname=record.get("hostname", b"node0"),
            write_count=len(writes),
            read_count=len(reads),
        )
        rows = [(*segment, 0)[: len(fields)] for segment in [*writes, *reads]]
        yield np.array(rows, dtype).tobytes()


_ENCODERS: Mapping[str, Callable[[str, int, str, Any], Iterator[bytes]]] = {
    "LUSTRE": _lustre,
    "HEATMAP": _heatmap,
    "DXT_POSIX": _dxt,
    "DXT_MPIIO": _dxt,
}


def _job(
    log_format: LogFormat,
    order: str,
    ids: list[int],
    start_s: float,
    run_time_s: float | None,
) -> bytes:
    uid, jobid, nprocs = ids
    start_nsec = round(start_s * 1e9)
    end_nsec = 0 if run_time_s is None else start_nsec + round(run_time_s * 1e9)
    if log_format.whole_seconds and run_time_s is not None:
        end_nsec -= 10**9  # such logs count the last second in
    values = {
        "uid": uid,
        "start_time_sec": start_nsec // 10**9,
        "start_time_nsec": start_nsec % 10**9,
        "end_time_sec": end_nsec // 10**9,
        "end_time_nsec": end_nsec % 10**9,
        "nprocs": nprocs,
        "jobid": jobid,
    }
    fields = log_format.job_fields
    return struct.pack(f"{order}{len(fields)}q", *(values[name] for name in fields))


def _metadata(metadata: Mapping[str, str]) -> bytes:
    text = "".join(f"{key}={value}\n" for key, value in metadata.items()).encode()
    if len(text) >= layouts.JOB_METADATA_BYTES:
        raise ValueError(f"the metadata takes {len(text)} bytes, at most 1023 are possible")
    return text.ljust(layouts.JOB_METADATA_BYTES, b"\0")


def _names(names: Names, log_format: LogFormat, order: str) -> Iterator[bytes]:
    batch = bytearray()
    pairs: Iterable[tuple[Any, Any]] = names.items() if isinstance(names, Mapping) else names
    for number, name in pairs:
        if isinstance(number, np.ndarray):
            yield bytes(batch) + _many(number, name, log_format, order)
            batch.clear()
            continue
        batch += struct.pack(order + "Q", number)
        counted = log_format.counted_names
        batch += struct.pack(order + "I", len(name)) + name if counted else name + b"\0"
        if len(batch) > 1 << 16:
            yield bytes(batch)
            batch.clear()
    if batch:
        yield bytes(batch)


def _many(ids: Any, texts: Texts, log_format: LogFormat, order: str) -> bytes:
    """Name records of names of one length."""
    size = texts.dtype.itemsize
    if texts.size and not texts.view(np.uint8).reshape(-1, size)[:, -1].all():
        raise ValueError("names in arrays are of different lengths")
    counted = log_format.counted_names
    middle, end = ([("size", order + "u4")], []) if counted else ([], [("end", "u1")])
    rows = np.zeros(len(ids), [("id", order + "u8"), *middle, ("name", texts.dtype), *end])
    rows["id"], rows["name"] = ids, texts
    if counted:
        rows["size"] = size
    return rows.tobytes()


def _header(
    version: str,
    log_format: LogFormat,
    order: str,
    compression: str,
    flags: int,
    name_map: tuple[int, int],
    modules: Mapping[int, tuple[int, int, int]],
) -> bytes:
    header = bytearray(log_format.header_bytes)
    struct.pack_into(f"{order}8sqB", header, 0, version.encode(), layouts.MAGIC, 0)
    header[16] = layouts.COMPRESSIONS.index(compression)
    flag_offset, flag_type = log_format.partial_flag
    struct.pack_into(order + {"u4": "I", "u8": "Q"}[flag_type], header, flag_offset, flags)
    struct.pack_into(order + "2Q", header, log_format.name_map_offset, *name_map)
    for index, (number, offset, length) in modules.items():
        region_at = log_format.name_map_offset + 16 * (1 + index)
        struct.pack_into(order + "2Q", header, region_at, offset, length)
        struct.pack_into(order + "I", header, log_format.versions_offset + 4 * index, number)
    return bytes(header)


def write_regions(
    target: Path,
    header: bytes,
    job: bytes,
    regions: Sequence[bytes],
    compression: str,
    keep: Collection[int] = (),
) -> Path:
    """A log from a header, whose map of regions is made anew, and plain regions: the names, then
    each slot of a module. Those in `keep` get a compressed stream even if they are empty."""
    log_format = layouts.LOG_FORMATS[header[:8].split(b"\0")[0].decode()]
    order = "<" if struct.unpack_from("<q", header, 8)[0] == layouts.MAGIC else ">"
    result_header = bytearray(header)
    result_header[16] = layouts.COMPRESSIONS.index(compression)
    out = _Output(compression, 6, 1 << 24)
    with target.open("wb") as file:
        file.write(bytes(log_format.header_bytes))
        out.region(file, [job])
        for slot, plain in enumerate(regions):
            parts = [plain] if plain or slot in keep else []
            place = out.region(file, parts)
            struct.pack_into(
                order + "2Q", result_header, log_format.name_map_offset + 16 * slot, *place
            )
        file.seek(0)
        file.write(result_header)
    return target

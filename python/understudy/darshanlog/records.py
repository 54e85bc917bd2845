"""Records of one module, decoded from the plain bytes of its region."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.layouts import DxtLayout, LustreLayout, RecordLayout
from understudy.darshanlog.stream import Region
from understudy.errors import UnderstudyError

MAX_BINS = 1 << 20  # of a heatmap; Darshan uses at most 200
MAX_HEATMAPS = 16  # of a rank; Darshan has one for each of its modules
MAX_SEGMENTS = 1 << 22  # traced accesses of a record: 128 MiB; by default, Darshan keeps 2 MiB
MAX_REPEATS = 1000  # equal records in a row
Block = npt.NDArray[np.void]
"""A structured array in native byte order."""


def record_keys(
    ids: npt.NDArray[np.uint64], ranks: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """A number for each file and rank; those of others differ, except by accident."""
    spread = np.uint64(0xD6E8FEB86659FD93)
    keys: npt.NDArray[np.uint64] = ids + spread * (ranks + 2).astype(np.uint64)
    return keys


def distinct(
    blocks: Iterator[Block], keys: npt.NDArray[np.uint64], left_out: Callable[[int], None]
) -> Iterator[Block]:
    """Blocks without records that equal another with one of these keys; `left_out` is told how
    many there were."""
    seen: set[int] = set()
    count = 0
    for block in blocks:
        some = np.flatnonzero(np.isin(record_keys(block["id"], block["rank"]), keys))
        good = np.ones(len(block), np.bool_)
        for n in some.tolist():
            content = hash(block[n].tobytes())
            good[n] = content not in seen
            seen.add(content)
        count += len(block) - int(good.sum())
        if good.any():
            yield block[good]
    left_out(count)


def _dtype(fields: tuple[tuple[str, str], ...], order: str = "=") -> np.dtype[np.void]:
    return np.dtype([(name, order + kind) for name, kind in fields])


def _native(data: bytes, fields: tuple[tuple[str, str], ...], order: str) -> Block:
    """Structured records in the byte order of the log, as records in that of this machine."""
    return np.frombuffer(data, _dtype(fields, order)).astype(_dtype(fields))


def record_dtype(name: str) -> np.dtype[np.void]:
    """The structured type of the blocks of a module of fixed-size records, such as `POSIX`."""
    versions = layouts.RECORDS[name]
    return _dtype(tuple((field, _kind(field)) for field in versions[max(versions)].fields))


def _kind(field: str) -> str:
    if field in layouts.UNSIGNED:
        return "u8"
    return "f8" if layouts.is_float(field) else "i8"


def fixed_records(
    region: Region, name: str, version: int, order: str, block_records: int
) -> Iterator[Block]:
    """Blocks of at most `block_records` records in the newest layout of the module."""
    layout = layouts.RECORDS[name][version]
    dtype = record_dtype(name)
    for data in region.blocks(layout.record_bytes * block_records):
        beyond = len(data) % layout.record_bytes
        if beyond:
            raise _cut(region, layout.record_bytes, beyond)
        words = np.frombuffer(data, order + "i8").astype("=i8", copy=False)
        words = words.reshape(-1, len(layout.fields))
        block = _upgrade(words, layout, dtype)
        if len(block):
            yield block


def _upgrade(
    words: npt.NDArray[np.int64], layout: RecordLayout, dtype: np.dtype[np.void]
) -> Block:
    """Records of one version, as 8-byte words, in the newest layout."""
    assert dtype.names is not None
    if layout.fields == dtype.names:
        return words.view(dtype)[:, 0]
    column = {field: index for index, field in enumerate(layout.fields)}
    if layout.omit_where_positive:
        words = words[words[:, column[layout.omit_where_positive]] <= 0]
    block = np.empty(len(words), dtype)
    for field in dtype.names:
        if field in layout.sums:
            old = [column[part] for part in layout.sums[field]]
            block[field] = words[:, old].sum(axis=1)
        elif field in column:
            block[field] = words[:, column[field]].view(dtype[field])
        else:
            block[field] = 0 if field in layouts.UPGRADE_ZERO else -1
    return block


def _heads(region: Region, fields: tuple[tuple[str, str], ...], order: str) -> Iterator[Any]:
    """The fixed part of each record; the caller reads what follows it before it takes the next."""
    head_bytes = _dtype(fields).itemsize
    last, repeats = b"", 0
    while data := region.read(head_bytes):
        if len(data) < head_bytes:
            raise _cut(region, head_bytes, len(data))
        last, repeats = data, repeats + 1 if data == last else 0
        if repeats > MAX_REPEATS:
            raise region.error(f"a record is there more than {MAX_REPEATS} times in a row")
        yield _native(data, fields, order)[0]


def _cut(region: Region, expected_bytes: int, found_bytes: int) -> UnderstudyError:
    return region.error(
        f"the data ends in the middle of a record: "
        f"expected {expected_bytes} bytes, found {found_bytes}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreComponent:
    """One component of a file's layout: an extent of the file (bytes) and how it is striped.

    `extent_end` -1: up to the end of the file. `pattern`, `flags` and `mirror_id` are Lustre's
    numbers, -1 where the log is older than them. `ost_ids`: i8 [stripe count].
    """

    stripe_size_bytes: int
    stripe_count: int
    pattern: int
    flags: int
    extent_start: int
    extent_end: int
    mirror_id: int
    pool_name: bytes
    ost_ids: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreRecord:
    """How one file is striped. `ost_ids`: i8, those of all components, one after the other."""

    id: int
    rank: int
    components: tuple[LustreComponent, ...]
    ost_ids: npt.NDArray[np.int64]

    @property
    def stripe_size_bytes(self) -> int:
        """That of the component with the maximum of stripes, the first of them; 0 without any."""
        return self._widest("stripe_size_bytes")

    @property
    def stripe_count(self) -> int:
        """The maximum stripe count of any component."""
        return self._widest("stripe_count")

    def _widest(self, what: str) -> int:
        if not self.components:
            return 0
        widest = max(self.components, key=lambda component: component.stripe_count)
        value: int = getattr(widest, what)
        return value


def lustre_records(region: Region, version: int, order: str) -> Iterator[LustreRecord]:
    """The records of the LUSTRE module."""
    layout = layouts.LUSTRE[version]
    for head in _heads(region, layout.head, order):
        components, n_osts = _lustre_components(region, layout, order, head)
        data = region.read_exactly(8 * n_osts, "the OST ids of a record")
        yield _lustre_record(head, components, np.frombuffer(data, order + "i8").astype("=i8"))


def _lustre_components(
    region: Region, layout: LustreLayout, order: str, head: Any
) -> tuple[list[dict[str, Any]], int]:
    """The components as stored and the number of OST ids that follow."""
    if not layout.component:
        count = _count(region, int(head["stripe_count"]), "stripe count")
        unknown = dict.fromkeys(("pattern", "flags", "extent_end", "mirror_id"), -1)
        stripes = {"stripe_size": int(head["stripe_size"]), "stripe_count": count}
        return [{**stripes, **unknown, "extent_start": 0, "pool_name": b""}], count
    n_components = _count(region, int(head["components"]), "number of components")
    n_osts = _count(region, int(head["stripes"]), "number of stripes")
    size = _dtype(layout.component).itemsize
    data = region.read_exactly(size * n_components, "the components of a record")
    rows = _native(data, layout.component, order)
    names = [name for name, _ in layout.component]
    return [dict(zip(names, row.tolist(), strict=True)) for row in rows], n_osts


def _count(region: Region, value: int, what: str, limit: int | None = None) -> int:
    if value < 0:
        raise region.error(f"the {what} of a record is {value}, expected 0 or more")
    if limit is not None and value > limit:
        raise region.error(f"the {what} of a record is {value}, expected at most {limit}")
    return value


def _lustre_record(
    head: Any, rows: list[dict[str, Any]], ost_ids: npt.NDArray[np.int64]
) -> LustreRecord:
    components = []
    used = 0
    for row in rows:
        if row["stripe_size"] == -1:  # space reserved by the runtime and not used
            break
        stripe_size_bytes = row.pop("stripe_size")
        end = used + max(0, row["stripe_count"])
        components.append(
            LustreComponent(stripe_size_bytes=stripe_size_bytes, ost_ids=ost_ids[used:end], **row)
        )
        used = end
    return LustreRecord(
        id=int(head["id"]),
        rank=int(head["rank"]),
        components=tuple(components),
        ost_ids=ost_ids[:used],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatmapRecord:
    """Bytes read and written over time by one rank through one API: i8 [nbins] each.

    Bin i covers i·`bin_width_s` to (i+1)·`bin_width_s`. The name of the record id is the API.
    """

    id: int
    rank: int
    bin_width_s: float
    nbins: int
    write_bins: npt.NDArray[np.int64]
    read_bins: npt.NDArray[np.int64]


def heatmap_records(region: Region, order: str, ranks: int) -> Iterator[HeatmapRecord]:
    """The records of the HEATMAP module.

    Darshan 3.4.0 to 3.4.3 could give a rank one bin more or less than the others: such a
    record loses its last bin or gains an empty one, so that all have as many as the first.
    """
    first: tuple[float, int] | None = None
    for n, head in enumerate(_heads(region, layouts.HEATMAP_HEAD, order), 1):
        if n > MAX_HEATMAPS * ranks:
            raise region.error(
                f"there are more than {MAX_HEATMAPS * ranks} records, expected at most "
                f"{MAX_HEATMAPS} of each of the {ranks} ranks"
            )
        width_s = float(head["bin_width_s"])
        nbins = _count(region, int(head["nbins"]), "number of bins", MAX_BINS)
        data = region.read_exactly(16 * nbins, "the bins of a record")
        plain = np.frombuffer(data, order + "i8").astype("=i8")
        bins: npt.NDArray[np.int64] = plain.reshape(2, nbins)
        first = first or (width_s, nbins)
        if width_s == first[0] and abs(nbins - first[1]) == 1:
            bins = np.hstack([bins, np.zeros((2, 1), np.int64)])[:, : first[1]]
        yield HeatmapRecord(
            id=int(head["id"]),
            rank=int(head["rank"]),
            bin_width_s=width_s,
            nbins=bins.shape[1],
            write_bins=bins[0],
            read_bins=bins[1],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DxtRecord:
    """Every traced access of one rank to one file.

    Segments are structured arrays: offset and length in bytes, start_s and end_s after the start
    of the job, and pthread_id where the module version has it.
    """

    id: int
    rank: int
    hostname: bytes
    write_segments: Block
    read_segments: Block


def dxt_records(region: Region, name: str, version: int, order: str) -> Iterator[DxtRecord]:
    """The records of a DXT module; memory is that of the longest one."""
    layout: DxtLayout = layouts.DXT[name][version]
    segment_bytes = _dtype(layout.segment).itemsize
    for head in _heads(region, layouts.DXT_HEAD, order):
        writes = _count(region, int(head["write_count"]), "number of writes")
        reads = _count(region, int(head["read_count"]), "number of reads")
        _count(region, writes + reads, "number of segments", MAX_SEGMENTS)
        data = region.read_exactly(segment_bytes * (writes + reads), "the segments of a record")
        segments = _native(data, layout.segment, order)
        if not layout.offsets_known:
            segments["offset"] = -1
        yield DxtRecord(
            id=int(head["id"]),
            rank=int(head["rank"]),
            hostname=bytes(head["hostname"]).split(b"\0")[0],
            write_segments=segments[:writes],
            read_segments=segments[writes:],
        )

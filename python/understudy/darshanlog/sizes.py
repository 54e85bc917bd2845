"""Sizes of a Darshan log: its regions, compressed and plain, and their records."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.convert import NAMES, PIECE_BYTES, Part, Source
from understudy.darshanlog.header import Job, Module
from understudy.darshanlog.log import Log, open_log
from understudy.darshanlog.names import name_blocks
from understudy.darshanlog.stream import Region

Tick = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSize:
    """A region of a log. `records` None: not known, as the region cannot be decoded. `streams`:
    compressed streams, one for each process that wrote some of it."""

    name: str
    version: int | None  # of a module
    partial: bool
    records: int | None
    streams: int
    bytes: int
    plain_bytes: int
    record_bytes: int | None  # of a module whose records have one size

    @property
    def ratio(self) -> float:
        """Plain bytes over compressed ones."""
        return self.plain_bytes / self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSize:
    """The sizes of a log in bytes. `job_bytes`: of the fixed part of the plain job record.
    `files`: names, each id once."""

    path: Path
    version: str
    byte_order: str
    compression: str
    library_version: str | None
    job: Job
    bytes: int
    header_bytes: int
    job_bytes: int
    files: int
    regions: tuple[RegionSize, ...]
    remarks: tuple[str, ...]

    @property
    def bytes_per_file(self) -> float | None:
        return self.bytes / self.files if self.files else None


def log_size(path: Path, tick: Tick = lambda _: None) -> LogSize:
    """Read a whole log; memory does not grow with it, but for 16 bytes a name. `tick` is told of
    plain bytes. Raises UnderstudyError where the log cannot be read or is damaged."""
    with open_log(path) as log, Source(path, whole=False) as source:
        head = source.header.format
        files, regions = 0, []
        for part in source.parts:
            module = next((m for m in log.modules.values() if m.index == part.index), None)
            region = source.region(part)
            records: int | None
            if part.name == NAMES:
                files, records = _names(region, source)
            else:
                for piece in region.blocks(PIECE_BYTES):
                    tick(len(piece))
                records = 1 if module is None else _records(log, module, region, part)
            regions.append(
                RegionSize(
                    name=part.name if module is None else module.name,
                    version=None if module is None else module.version,
                    partial=module is not None and module.partial,
                    records=records,
                    streams=region.streams,
                    bytes=part.length_bytes,
                    plain_bytes=region.plain_bytes,
                    record_bytes=part.record_bytes if part.record_bytes > 1 else None,
                )
            )
        return LogSize(
            path=path,
            version=log.version,
            byte_order=log.byte_order,
            compression=log.compression,
            library_version=log.library_version,
            job=log.job,
            bytes=source.bytes,
            header_bytes=head.header_bytes,
            job_bytes=8 * len(head.job_fields) + layouts.JOB_METADATA_BYTES,
            files=files,
            regions=tuple(regions),
            remarks=log.remarks,
        )


def _names(region: Region, source: Source) -> tuple[int, int]:
    """Ids and names."""
    counted, names = source.header.format.counted_names, 0
    ids: list[npt.NDArray[np.uint64]] = [np.empty(0, np.uint64)]
    for block in name_blocks(region, source.header.order, counted=counted):
        names += len(block.ids) + block.repeats
        ids.append(np.unique(block.ids))
    return len(np.unique(np.concatenate(ids))), names


def _records(log: Log, module: Module, region: Region, part: Part) -> int | None:
    if not module.supported:
        return None
    if part.record_bytes > 1:
        if region.plain_bytes % part.record_bytes:
            raise region.error(
                f"the data ends in the middle of a record: {region.plain_bytes} bytes, records "
                f"have {part.record_bytes}"
            )
        return region.plain_bytes // part.record_bytes
    streams = {"LUSTRE": log.lustre, "HEATMAP": log.heatmap}
    records = streams[module.name]() if module.name in streams else log.dxt(module.name)
    return sum(1 for _ in records)

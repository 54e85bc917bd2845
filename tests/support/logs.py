"""Plain bytes of Darshan logs, and blocks of records for tests."""

import bz2
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from understudy.darshanlog import layouts
from understudy.darshanlog.writer import BATCH_RECORDS, file_dtype, write_regions


@dataclass(slots=True)
class Parts:
    """A log in plain bytes: the regions are those of the names and then of each module's slot."""

    header: bytearray
    job: bytearray
    regions: list[bytearray]

    @classmethod
    def of(cls, data: bytes) -> "Parts":
        """Take a log apart."""
        log_format = layouts.LOG_FORMATS[data[:8].split(b"\0")[0].decode()]
        order = "<" if struct.unpack_from("<q", data, 8)[0] == layouts.MAGIC else ">"
        maps = struct.unpack_from(
            f"{order}{2 + 2 * log_format.module_slots}Q", data, log_format.name_map_offset
        )
        pairs = list(zip(maps[::2], maps[1::2], strict=True))
        start = log_format.header_bytes
        job_end = min((offset for offset, length in pairs if length), default=len(data))
        return cls(
            header=bytearray(data[:start]),
            job=bytearray(inflate(data[start:job_end], data[16])),
            regions=[bytearray(inflate(data[at : at + n], data[16])) for at, n in pairs],
        )

    @property
    def order(self) -> str:
        return "<" if struct.unpack_from("<q", self.header, 8)[0] == layouts.MAGIC else ">"

    @property
    def format(self) -> layouts.LogFormat:
        return layouts.LOG_FORMATS[self.header[:8].split(b"\0")[0].decode()]

    def version(self, slot: int) -> int:
        """The module's version that the header states."""
        at = self.format.versions_offset + 4 * slot
        return int(struct.unpack_from(self.order + "I", self.header, at)[0])


def inflate(data: bytes, compression: int) -> bytes:
    """The plain bytes of a region."""
    plain = b""
    while data and compression != layouts.COMPRESSIONS.index("none"):
        stream: Any = zlib.decompressobj() if compression == 0 else bz2.BZ2Decompressor()
        plain += stream.decompress(data)
        data = stream.unused_data
    return plain + data


def recompress(source: Path, target: Path, compression: str) -> Path:
    """The same log in another compression, region by region, as darshan-convert does."""
    parts = Parts.of(source.read_bytes())
    regions = [bytes(region) for region in parts.regions]
    return write_regions(target, bytes(parts.header), bytes(parts.job), regions, compression)


def posix_blocks(n_records: int, nprocs: int = 64, seed: int = 1) -> Iterator[np.ndarray]:
    """POSIX records of a run that wrote one file per process and step, with counters that vary."""
    rng = np.random.default_rng(seed)
    newest = layouts.RECORDS["POSIX"]
    dtype = file_dtype(newest[max(newest)], "=")
    for first in range(0, n_records, BATCH_RECORDS):
        index = np.arange(first, min(first + BATCH_RECORDS, n_records), dtype=np.int64)
        block = np.zeros(len(index), dtype)
        block["id"] = record_id(index)
        block["rank"] = index % nprocs
        transfers = rng.integers(1, 100, len(index))
        start_s = index // nprocs * 1e-3
        for name, values in {
            "OPENS": 1,
            "WRITES": transfers,
            "BYTES_WRITTEN": transfers << 20,
            "MAX_BYTE_WRITTEN": (transfers << 20) - 1,
            "SIZE_WRITE_1M_4M": transfers,
            "ACCESS1_ACCESS": 1 << 20,
            "ACCESS1_COUNT": transfers,
            "F_OPEN_START_TIMESTAMP": start_s,
            "F_WRITE_START_TIMESTAMP": start_s,
            "F_WRITE_END_TIMESTAMP": start_s + 0.5,
            "F_WRITE_TIME": rng.random(len(index)),
        }.items():
            block[f"POSIX_{name}"] = values
        yield block


def posix_names(n_records: int) -> Iterator[tuple[int, bytes]]:
    """The names of the records of `posix_blocks`."""
    for index in range(n_records):
        number = int(record_id(np.array([index]))[0])
        yield number, b"/scratch/run/dump.%06d/part.%08d" % (index // 64, index)


def record_id(index: np.ndarray) -> np.ndarray:
    """Numbers that look like Darshan's hashes, all different (odd factor modulo 2^64)."""
    return (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)

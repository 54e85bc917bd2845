"""Synthetic jobs: Darshan logs of processes and files that never were, for tests at scale.

    write(Path("job.darshan"), Synthetic(processes=12_000, files=1024))

Every number follows from the seed, so the same job gives the same bytes. Memory does not grow with
the number of files.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy import __version__
from understudy.darshanlog import layouts
from understudy.darshanlog.records import Block
from understudy.darshanlog.writer import BATCH_RECORDS, Ids, Texts, file_dtype, write_log
from understudy.program.counters import BIN_BYTES, BINS

LAYOUTS = ("process", "shared")
INTERFACES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"posix": ("POSIX",), "mpiio": ("POSIX", "MPI-IO"), "stdio": ("STDIO",)}
)
TRAPS: Mapping[str, str] = MappingProxyType(
    {
        "partial": "the modules ran out of memory after three quarters of the files",
        "stale": "every 16th record holds the bytes of the next file, too",
        "overflow": "byte counters of MPI-IO are negative: one call of 2 GiB or more",
        "missing": "every eighth rank has no records",
    }
)
# What each release of Darshan writes: format of the log, versions of modules, its own version.
RELEASES: Mapping[str, tuple[str, Mapping[str, int], str]] = MappingProxyType(
    {
        "3.0": ("3.00", {"POSIX": 1, "MPI-IO": 1}, "3.0.1"),
        "3.1": ("3.10", {"POSIX": 3, "MPI-IO": 3, "STDIO": 1}, "3.1.8"),
        "3.2": ("3.21", {"POSIX": 4, "MPI-IO": 3, "STDIO": 2}, "3.2.1"),
        "3.3": ("3.21", {"POSIX": 4, "MPI-IO": 3, "STDIO": 2}, "3.3.1"),
        "3.4": ("3.41", {"POSIX": 4, "MPI-IO": 3, "STDIO": 2}, "3.4.7"),
        "3.5": ("3.41", {"POSIX": 4, "MPI-IO": 3, "STDIO": 2}, "3.5.0"),
    }
)
TICK_S = 2.0**-10  # all times are multiples of it: as few digits as clocks in a log compress to
FILE_TICKS = 8  # from one file of a process to its next
REST_S = 60.0  # between two dumps
FOLDER = b"/scratch/synthetic"
OVERFLOW_BYTES = 1 << 31

Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthetic:
    """A job: `files` of each of the `processes`, or as many that all of them share.

    Each process moves `file_bytes` of a file, some up to a quarter more, in calls of
    `transfer_bytes`. The files are of `dumps` dumps with a minute between them. `darshan` is the
    release that could have written the log. Raises ValueError for what cannot be.
    """

    processes: int
    files: int = 1
    layout: str = "process"
    interface: str = "posix"
    write: bool = True
    dumps: int = 1
    file_bytes: int = 4 << 20
    transfer_bytes: int = 1 << 20
    seed: int = 1
    darshan: str = "3.5"
    byte_order: str = "little"
    compression: str = "zlib"
    level: int = 6
    traps: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if not (1 <= self.processes <= 1 << 24 and 1 <= self.files <= 1 << 32):
            raise ValueError("expected 1 to 16,777,216 processes and 1 to 2^32 files")
        if self.processes * self.files > 1 << 40:
            raise ValueError("expected at most 2^40 files in all")
        if not 1 <= self.dumps <= self.files:
            raise ValueError(
                f"{self.dumps} dumps: expected 1 to the number of files, {self.files}"
            )
        if not 1 <= self.transfer_bytes <= self.file_bytes <= 1 << 40:
            raise ValueError("expected 1 <= bytes of a transfer <= bytes of a file <= 1 TiB")
        if self.interface == "stdio" and self.darshan == "3.0":
            raise ValueError("Darshan 3.0 has no records of stdio; expected 3.1 or later")
        if "overflow" in self.traps and self.interface != "mpiio":
            raise ValueError("the trap overflow is one of MPI-IO; expected the interface mpiio")
        if "overflow" in self.traps and not OVERFLOW_BYTES <= self.file_bytes <= 3 << 30:
            raise ValueError("the trap overflow needs files of 2 to 3 GiB")
        if "missing" in self.traps and (self.layout == "shared" or self.processes < 8):
            raise ValueError("the trap missing needs files of 8 or more processes each")

    @property
    def records(self) -> int:
        """Files of the job; a module has a record of each that is not missing."""
        return self.files if self.layout == "shared" else self.files * self.processes

    @property
    def run_time_s(self) -> float:
        """From the start of the job to its end."""
        return (self.dumps + 1) * REST_S + self.files * FILE_TICKS * TICK_S

    def names(self) -> Iterator[tuple[Ids, Texts]]:
        """The names of all files, in blocks."""
        for index in self._indices():
            _, file = self._places(index)
            yield self._ids(index), self._texts(index, file)

    def blocks(self, module: str) -> Iterator[Block]:
        """The records of a module, in blocks as the log has them."""
        order = {"little": "<", "big": ">"}[self.byte_order]
        layout = layouts.RECORDS[module][RELEASES[self.darshan][1][module]]
        dtype = file_dtype(layout, order)
        for index in self._indices():
            rank, file = self._places(index)
            kept = np.ones(len(index), np.bool_)
            if "partial" in self.traps:
                kept &= file < -(-3 * self.files // 4)
            if "missing" in self.traps:
                kept &= rank % 8 != 7
            if kept.any():
                yield self._block(module, dtype, index[kept], rank[kept], file[kept])

    # -- the files of a block -----------------------------------------------------------------

    def _indices(self) -> Iterator[Whole]:
        """Numbers of files, those of a process in a row; whole processes if they fit."""
        each = max(1, BATCH_RECORDS // self.files) * self.files
        step = each if each <= BATCH_RECORDS else BATCH_RECORDS
        for first in range(0, self.records, step):
            yield np.arange(first, min(first + step, self.records), dtype=np.int64)

    def _places(self, index: Whole) -> tuple[Whole, Whole]:
        """The rank of each file, and which of its files it is."""
        if self.layout == "shared":
            return np.full(len(index), -1), index
        rank, file = np.divmod(index, self.files)
        return rank, file

    def _random(self, index: Whole, what: int) -> Ids:
        """Numbers that look random, all different: the finalizer of SplitMix64."""
        start = (self.seed * 64 + what) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
        bits = index.astype(np.uint64) + np.uint64(start)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Ids = bits ^ (bits >> np.uint64(31))
        return mixed

    def _ids(self, index: Whole) -> Ids:
        return self._random(index, 0)

    def _dump(self, file: Whole) -> tuple[Whole, Whole]:
        """The dump of each file, and which of the process's files of that dump it is."""
        dump = file * self.dumps // self.files
        return dump, file - -(-dump * self.files // self.dumps)

    def _texts(self, index: Whole, file: Whole) -> Texts:
        dump, within = self._dump(file)
        parts: list[bytes | tuple[Whole, int]] = [FOLDER, b"/dump.", (dump, self.dumps)]
        if self.layout == "process":
            parts += [b"/part.", (index // self.files, self.processes)]
        if self.layout == "shared" or self.dumps < self.files:
            parts += [b"/field." if self.layout == "shared" else b".", (within, self.files)]
        columns: list[npt.NDArray[np.uint8]] = []
        for part in parts:
            if isinstance(part, bytes):
                columns += [np.full(len(index), byte, np.uint8) for byte in part]
            else:
                value, count = part
                for power in reversed(range(max(4, len(str(count - 1))))):
                    columns.append((value // 10**power % 10 + ord("0")).astype(np.uint8))
        matrix = np.ascontiguousarray(np.stack(columns, axis=1))
        texts: Texts = matrix.view(f"S{matrix.shape[1]}")[:, 0]
        return texts

    def _sizes(self, index: Whole) -> tuple[Whole, Whole]:
        """Calls of each process for a file, and bytes."""
        calls = np.full(len(index), -(-self.file_bytes // self.transfer_bytes))
        more = (self._random(index, 1) % np.uint64(1 + int(calls[0]) // 4)).astype(np.int64)
        calls += more
        return calls, self.file_bytes + more * self.transfer_bytes

    def _times(self, index: Whole, rank: Whole, file: Whole) -> tuple[Whole, Whole]:
        """First and last tick of the use of each file."""
        dump, _ = self._dump(file)
        late = (self._random(rank, 2) % np.uint64(64)).astype(np.int64)
        noise = self._random(index, 3)
        start = (
            1024
            + dump * int(REST_S / TICK_S)
            + file * FILE_TICKS
            + late
            + (noise % np.uint64(4)).astype(np.int64)
        )
        return start, start + 2 + (noise >> np.uint64(32) & np.uint64(3)).astype(np.int64)

    def _block(
        self, module: str, dtype: np.dtype[np.void], index: Whole, rank: Whole, file: Whole
    ) -> Block:
        calls, moved = self._sizes(index)
        start, end = self._times(index, rank, file)
        if "stale" in self.traps:
            first = (file % 16 == 0) & (file + 1 < self.files)
            later, follows = index + first, (file % 16 == 1)
            more = self._sizes(later)
            calls, moved = calls + first * more[0], moved + first * more[1]
            end = np.where(first, self._times(later, rank, file + first)[1], end)
            calls, moved = np.where(follows, 0, calls), np.where(follows, 0, moved)
        block: Block = np.zeros(len(index), dtype)
        block["id"], block["rank"] = self._ids(index), rank
        prefix = {"MPI-IO": "MPIIO"}.get(module, module)
        for name, values in self._counters(module, calls, moved, start, end).items():
            if f"{prefix}_{name}" in (dtype.names or ()):
                block[f"{prefix}_{name}"] = values
        return block

    def _counters(
        self, module: str, calls: Whole, moved: Whole, start: Whole, end: Whole
    ) -> dict[str, Any]:
        """Counters without the prefix of the module, of all that a module may have."""
        shared = self.layout == "shared"
        ranks = self.processes if shared else 1
        verb, past = ("WRITE", "WRITTEN") if self.write else ("READ", "READ")
        some = calls > 0
        start_s, end_s, busy_s = start * TICK_S, end * TICK_S, (end - start) * TICK_S
        counted = moved * ranks
        if module == "MPI-IO" and "overflow" in self.traps:
            counted = counted.astype(np.int32).astype(np.int64)
        transfer = moved if "overflow" in self.traps else self.transfer_bytes
        calls = np.where(some, 1, 0) if "overflow" in self.traps else calls
        size = int(np.searchsorted(BIN_BYTES, int(np.max(transfer))))
        kind = f"SIZE_{verb}_{'AGG_' if module == 'MPI-IO' else ''}{BINS[size]}"
        counters: dict[str, Any] = {
            "OPENS": ranks,
            f"{verb}S": calls * ranks,
            "MODE": 0o100644,
            f"{'COLL' if shared else 'INDEP'}_OPENS": ranks,
            f"{'COLL' if shared else 'INDEP'}_{verb}S": calls * ranks,
            f"BYTES_{past}": counted,
            f"MAX_BYTE_{past}": np.where(some, moved * ranks - 1, 0),
            f"CONSEC_{verb}S": np.where(some, (calls - 1) * ranks, 0),
            f"SEQ_{verb}S": np.where(some, (calls - 1) * ranks, 0),
            "MEM_ALIGNMENT": 8,
            "FILE_ALIGNMENT": 4096,
            f"MAX_{verb}_TIME_SIZE": transfer,
            kind: calls * ranks,
            "ACCESS1_ACCESS": np.where(some, transfer, 0),
            "ACCESS1_COUNT": calls * ranks,
            "F_OPEN_START_TIMESTAMP": start_s,
            "F_OPEN_END_TIMESTAMP": start_s + TICK_S,
            f"F_{verb}_START_TIMESTAMP": np.where(some, start_s + TICK_S, 0),
            f"F_{verb}_END_TIMESTAMP": np.where(some, end_s, 0),
            "F_CLOSE_START_TIMESTAMP": end_s,
            "F_CLOSE_END_TIMESTAMP": end_s,
            f"F_{verb}_TIME": np.where(some, busy_s * ranks, 0),
            "F_META_TIME": TICK_S * ranks,
            f"F_MAX_{verb}_TIME": np.where(some, busy_s / np.maximum(calls, 1), 0),
        }
        if shared:
            counters |= {
                "FASTEST_RANK": 0,
                "FASTEST_RANK_BYTES": moved,
                "SLOWEST_RANK": self.processes - 1,
                "SLOWEST_RANK_BYTES": moved,
                "F_FASTEST_RANK_TIME": busy_s,
                "F_SLOWEST_RANK_TIME": busy_s,
            }
        return counters


def write(path: Path, job: Synthetic, tick: Callable[[int], None] = lambda _: None) -> Path:
    """Write the log of a job; `tick` is told how many records and names more are written.

    As in a real log, each process has compressed its own share, and the metadata says that the
    log is synthetic.
    """
    log_version, versions, release = RELEASES[job.darshan]
    modules = INTERFACES[job.interface]

    def counted(blocks: Iterator[Any], count: Callable[[Any], int]) -> Iterator[Any]:
        for block in blocks:
            yield block
            tick(count(block))

    each = 1 if job.layout == "process" else job.processes
    share = max(1, job.files // each)
    name_bytes = 9 + 4 * (log_version == "3.00") + len(next(job.names())[1][0])
    largest = max(layouts.RECORDS[m][versions[m]].record_bytes for m in modules)
    records: dict[str, Any] = {
        {"MPI-IO": "MPIIO"}.get(m, m): counted(job.blocks(m), len) for m in modules
    }
    return write_log(
        path,
        nprocs=job.processes,
        run_time_s=job.run_time_s,
        uid=0,
        jobid=job.seed,
        exe=f"synthetic --processes {job.processes} --files {job.files} --layout {job.layout}",
        metadata={
            "lib_ver": release,
            "synthetic": f"understudy {__version__}, seed {job.seed}",
            "traps": " ".join(sorted(job.traps)) or "none",
        },
        names=counted(job.names(), lambda block: len(block[0])),
        version=log_version,
        byte_order=job.byte_order,
        compression=job.compression,
        level=job.level,
        stream_bytes=share * largest,
        names_stream_bytes=share * name_bytes,
        partial=modules if "partial" in job.traps else (),
        module_versions={m: versions[m] for m in modules},
        **records,
    )

"""An open Darshan log: header, job record and streams of its records."""

import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.header import Header, Job, Module, Mount, read_header, read_job
from understudy.darshanlog.names import NameBlock, Names, name_blocks, without_repeats
from understudy.darshanlog.records import (
    Block,
    DxtRecord,
    HeatmapRecord,
    LustreRecord,
    distinct,
    dxt_records,
    fixed_records,
    heatmap_records,
    lustre_records,
)
from understudy.darshanlog.stream import DamagedRegion, Region
from understudy.errors import UnderstudyError

BLOCK_RECORDS = 4096
DAMAGED = "it is damaged"  # why a module is left out
MORE_MEMORY = (
    "with more memory (environment DARSHAN_MODMEM=64, in MiB, and a line 'MAX_RECORDS 20000 *' in "
    "the file that DARSHAN_CONFIG_PATH names)"
)
PLAIN_BYTES = 1 << 20


class Log:
    """A Darshan log open for reading; made by `open_log`, closed by `with` or `close`.

    The streams (`names`, `records`, …) read the file as they are iterated; each call starts a new
    one and several can be open at the same time. They raise UnderstudyError, with the file, the
    module and the byte offset, where the log is damaged; asked for a module that the log lacks
    they are empty, asked for one that cannot be decoded they raise its `reason`.

    Attributes: `path`; `version` of the log ("3.41"); `byte_order` "little" or "big";
    `compression` "zlib", "bzip2" or "none"; `library_version` of the Darshan that wrote it, where
    it says so; `job`; `exe`, the command line; `mounts`, longest path first; `modules` by name, in
    the order of the file; `remarks`, messages on what is known to be wrong in logs such as this
    one; `notes`, messages on how the log was made of several.
    """

    notes: tuple[str, ...] = ()
    _read_bytes = 0  # compressed bytes that streams have taken, also again
    _repeated: Mapping[str, npt.NDArray[np.uint64]] = MappingProxyType({})

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self._file = file
        self.repeats: dict[str, int] = {}  # records that `leave_out_repeats` left out, by module
        self._header: Header = read_header(file, path, os.fstat(file.fileno()).st_size)
        header = self._header
        self.version: str = header.version
        self.byte_order: str = {"<": "little", ">": "big"}[header.order]
        self.compression: str = header.compression
        self.modules: dict[str, Module] = header.modules
        start, end = header.job
        job = self._region("the job record", start, end - start)
        self.job: Job
        self.exe: str
        self.mounts: tuple[Mount, ...]
        self.job, self.exe, self.mounts = read_job(job, header)
        self.library_version: str | None = self.job.metadata.get("lib_ver")
        self.remarks: tuple[str, ...] = tuple(
            remark
            for remark in (
                header.format.remark,
                *(
                    module.remark and f"{module.name}: {module.remark}"
                    for module in self.modules.values()
                ),
                *(f"{name}: registered by the log without any record" for name in header.empty),
                *header.doubts,
            )
            if remark
        )

    def __enter__(self) -> "Log":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; streams that are still open cannot be read any further."""
        self._file.close()

    def names(self) -> Iterator[Names]:
        """Blocks of record ids (u8 [n]) and names (n of them), as many as fit in 1 MiB.

        Most repetitions are left out, but an id can occur more than once; Darshan takes its first
        name that is not empty.
        """
        return ((block.ids, block.texts()) for block in self.name_blocks())

    def name_blocks(self) -> Iterator[NameBlock]:
        """As `names`, without an object for each name."""
        region = self._region("the names", *self._header.names)
        blocks = name_blocks(region, self._header.order, counted=self._header.format.counted_names)
        return without_repeats(blocks)

    def records(self, module: str, block_records: int = BLOCK_RECORDS) -> Iterator[Block]:
        """Blocks of records of a fixed-size module: POSIX, MPI-IO, STDIO, H5F, H5D, PNETCDF_….

        A block is a structured array [at most `block_records`], in native byte order: id (u8),
        rank (i8, -1: all ranks), for H5D and PNETCDF_VAR file_rec_id (u8), then every counter by
        its Darshan name (i8, or f8 in seconds or bytes for `_F_` ones). Records of old module
        versions come in the newest layout; counters that they lack are -1, record ids 0, as in
        Darshan. Blocks are read-only or not, as it comes; copy before writing.
        """
        if module not in layouts.RECORDS:
            raise ValueError(
                f"{module} has no fixed-size records, only {', '.join(layouts.RECORDS)}"
            )
        if block_records < 1:
            raise ValueError(f"block_records is {block_records}, expected 1 or more")
        counters = self._module(module)
        if counters is None:
            return iter(())
        blocks = fixed_records(
            self._module_region(counters),
            module,
            counters.version,
            self._header.order,
            block_records,
        )
        return self._distinct(module, blocks)

    @property
    def files_at_most(self) -> int:
        """A rough upper bound of the number of files, from compressed lengths: a name takes the 8
        bytes of its id and some more, a record at least 32."""
        lengths = [module.length_bytes for module in self.modules.values()]
        return max(self._names_bytes // 12, max(lengths, default=0) // 32)

    @property
    def has_names(self) -> bool:
        """True if there is any name."""
        return self._names_bytes > 0

    @property
    def _names_bytes(self) -> int:
        return self._header.names[1]

    @property
    def share_read(self) -> float:
        """The share of the compressed bytes that streams have taken so far, at most 1."""
        whole = self._names_bytes + sum(m.length_bytes for m in self.modules.values())
        return min(1.0, self._read_bytes / max(1, whole))

    def leave_out_repeats(self, keys: Mapping[str, npt.NDArray[np.uint64]]) -> None:
        """Leave out records that equal an earlier one of the same module, file and rank from here
        on. `keys` are those of the records that may (`record_keys`), by module."""
        self._repeated = dict(keys)
        self.repeats = {}

    def leave_out_damaged(self) -> dict[str, str]:
        """Read the modules beside the counters (traces, heatmap, striping) to their ends, and take
        those that are damaged for not decoded from here on. Returns how, by module."""
        beside: dict[str, Callable[[], Iterable[object]]] = {
            "LUSTRE": self.lustre,
            "HEATMAP": self.heatmap,
            **{name: partial(self.dxt, name) for name in layouts.DXT},
        }
        damages = {}
        for name, records in beside.items():
            if name in self.modules and self.modules[name].supported:
                try:
                    for _ in records():
                        pass
                except DamagedRegion as damage:
                    damages[name] = damage.what
                    self._leave_out(name, f"{DAMAGED}: {damage.what}")
        return damages

    def _leave_out(self, name: str, reason: str) -> None:
        self.modules[name] = replace(self.modules[name], supported=False, reason=reason)

    def _distinct(self, module: str, blocks: Iterator[Block]) -> Iterator[Block]:
        if module not in self._repeated:
            return blocks
        repeats = self.repeats
        return distinct(blocks, self._repeated[module], lambda n: repeats.update({module: n}))

    def lustre(self) -> Iterator[LustreRecord]:
        """How each file on Lustre is striped."""
        lustre = self._module("LUSTRE")
        if lustre is None:
            return iter(())
        return lustre_records(self._module_region(lustre), lustre.version, self._header.order)

    def heatmap(self) -> Iterator[HeatmapRecord]:
        """Bytes over time, by rank and API."""
        heatmap = self._module("HEATMAP")
        if heatmap is None:
            return iter(())
        ranks = max(1, self.job.nprocs)
        return heatmap_records(self._module_region(heatmap), self._header.order, ranks)

    def dxt(self, module: str, file: int | None = None) -> Iterator[DxtRecord]:
        """Every traced access, by file and rank, or those of one file; `module` is DXT_POSIX or
        DXT_MPIIO."""
        if module not in layouts.DXT:
            raise ValueError(f"{module} has no traced accesses, only {', '.join(layouts.DXT)}")
        traces = self._module(module)
        if traces is None:
            return iter(())
        region = self._module_region(traces)
        records = dxt_records(region, module, traces.version, self._header.order)
        return (record for record in records if file is None or record.id == file)

    def plain(self, module: str) -> Iterator[bytes]:
        """The plain bytes of a module's region, decoded or not, a MiB at a time."""
        return self._module_region(self.modules[module]).blocks(PLAIN_BYTES)

    def _module(self, name: str) -> Module | None:
        module = self.modules.get(name)
        if module is not None and module.reason is not None:
            raise UnderstudyError(f"{self.path}: {module.reason}")
        return module

    def _module_region(self, module: Module) -> Region:
        return self._region(f"module {module.name}", module.offset, module.length_bytes)

    def _region(self, name: str, offset: int, length_bytes: int) -> Region:
        return Region(
            self._file,
            self.path,
            name=name,
            offset=offset,
            length_bytes=length_bytes,
            compression=self.compression,
            taken=self._take,
        )

    def _take(self, n_bytes: int) -> None:
        self._read_bytes += n_bytes


def _at_once(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def open_log(path: str | os.PathLike[str]) -> Log:
    """Open a Darshan log and read its header and job record.

    Raises UnderstudyError where it cannot be read: no such file, a directory, empty, no Darshan
    log, an unknown version or compression, truncated, corrupt.
    """
    path = Path(path)
    try:
        # a FIFO without a writer would be waited for
        file = open(path, "rb", buffering=0, opener=_at_once)  # noqa: SIM115
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be opened: {error.strerror}") from error
    try:
        kind = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
            raise UnderstudyError(f"{path}: expected a regular file, not a FIFO or device")
        return Log(path, file)
    except OSError as error:
        file.close()
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from error
    except BaseException:
        file.close()
        raise

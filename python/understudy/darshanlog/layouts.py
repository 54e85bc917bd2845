"""The layout of a Darshan log, as data: one table per log version and per module version.

Source: the log format headers of Darshan 3.0.0 to 3.5.0 and the pthread annotation of DXT that
followed. Every field of a fixed-size record is 8 bytes wide (id: unsigned, counters: signed, `_F_`
counters: double), so that an old record becomes a new one by moving columns.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from understudy.program.counters import BINS

MAGIC = 6567223
"""Eight signed bytes after the version string; tells the byte order."""

COMPRESSIONS = ("zlib", "bzip2", "none")
"""By the value of the compression byte in the header."""

JOB_RECORD_BYTES = 4096
"""Maximum size of the job, the command line and the mount table together."""

JOB_METADATA_BYTES = 1024


def _words(text: str) -> list[str]:
    return text.split()


MODULES = _words(
    "NULL POSIX MPI-IO H5F H5D PNETCDF_FILE PNETCDF_VAR BG/Q LUSTRE STDIO "
    "DXT_POSIX DXT_MPIIO MDHIM APXC APMPI HEATMAP DFS DAOS"
)
"""By index in the header of a log of the newest version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFormat:
    """The header and the job record of one log version; offsets and sizes in bytes."""

    module_names: tuple[str, ...]
    module_slots: int
    partial_flag: tuple[int, str]  # offset and numpy type, without byte order
    job_fields: tuple[str, ...]  # signed, 8 bytes each, before the metadata
    counted_names: bool = False  # name records state a length instead of ending in a zero byte
    whole_seconds: bool = False  # times are whole seconds, a run time includes its last one
    remark: str | None = None

    @property
    def name_map_offset(self) -> int:
        """Where the regions (offset, length; 8 bytes each) start: the names, the modules."""
        return 24 + (8 if self.partial_flag[1] == "u8" else 0)

    @property
    def versions_offset(self) -> int:
        """Where the module versions (4 bytes each) start."""
        return self.name_map_offset + 16 * (1 + self.module_slots)

    @property
    def header_bytes(self) -> int:
        """How long the header is; the job record follows it."""
        return self.versions_offset + 4 * self.module_slots


def _without(*names: str) -> tuple[str, ...]:
    return tuple(name for name in MODULES if name not in names)


_JOB = ("uid", "start_time_sec", "end_time_sec", "nprocs", "jobid")
_JOB_NSEC = (
    "uid",
    "start_time_sec",
    "start_time_nsec",
    "end_time_sec",
    "end_time_nsec",
    "nprocs",
    "jobid",
)


def _old_format(*absent: str, counted_names: bool = False, remark: str | None = None) -> LogFormat:
    return LogFormat(
        module_names=_without(*absent),
        module_slots=16,
        partial_flag=(20, "u4"),
        job_fields=_JOB,
        counted_names=counted_names,
        whole_seconds=True,
        remark=remark,
    )


LOG_FORMATS: Mapping[str, LogFormat] = MappingProxyType(
    {
        "3.00": _old_format("H5D", "PNETCDF_VAR", counted_names=True),
        "3.10": _old_format("H5D", "PNETCDF_VAR"),
        "3.20": _old_format(
            "PNETCDF_VAR",
            remark="Darshan 3.2.0 wrote wrong values into the common access sizes of POSIX, "
            "MPI-IO and H5D and possibly into the preceding counters",
        ),
        "3.21": _old_format("PNETCDF_VAR"),
        "3.41": LogFormat(
            module_names=tuple(MODULES),
            module_slots=64,
            partial_flag=(24, "u8"),
            job_fields=_JOB_NSEC,
        ),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordLayout:
    """The fields of one version of a fixed-size module, in the order of the file."""

    fields: tuple[str, ...]
    sums: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # new counter: old ones
    omit_where_positive: str | None = None  # such records have no meaning in the newest layout
    remark: str | None = None

    @property
    def record_bytes(self) -> int:
        """Bytes of one record in the file."""
        return 8 * len(self.fields)


def is_float(name: str) -> bool:
    """True if a field is a double: Darshan marks these counters with `_F_`."""
    return "_F_" in name


UNSIGNED = frozenset({"id", "file_rec_id"})

UPGRADE_ZERO = frozenset({"file_rec_id", "POSIX_RENAMED_FROM"})
"""Record ids: 0 where an old record lacks them; all other fields are -1."""


def _prefixed(prefix: str, names: str | Iterable[str]) -> list[str]:
    return [prefix + name for name in (names.split() if isinstance(names, str) else names)]


_HISTOGRAM = [f"SIZE_{way}_{size}" for way in ("READ", "WRITE") for size in BINS]
_HISTOGRAM_AGG = [f"SIZE_{way}_AGG_{size}" for way in ("READ", "WRITE") for size in BINS]
_FOUR = (1, 2, 3, 4)
_STRIDES = [f"STRIDE{i}_{what}" for what in ("STRIDE", "COUNT") for i in _FOUR]
_ACCESS_COUNTS = [f"ACCESS{i}_COUNT" for i in _FOUR]
_ACCESSES = [f"ACCESS{i}_ACCESS" for i in _FOUR] + _ACCESS_COUNTS
_HYPERSLABS = [
    name
    for i in _FOUR
    for name in (
        f"ACCESS{i}_ACCESS",
        *(f"ACCESS{i}_{what}_D{dim}" for what in ("LENGTH", "STRIDE") for dim in range(1, 6)),
    )
] + _ACCESS_COUNTS
_RANKS = _words("FASTEST_RANK FASTEST_RANK_BYTES SLOWEST_RANK SLOWEST_RANK_BYTES")
_RANK_TIMES = _words(
    "F_FASTEST_RANK_TIME F_SLOWEST_RANK_TIME F_VARIANCE_RANK_TIME F_VARIANCE_RANK_BYTES"
)
_TIMES = (
    _words(
        "F_OPEN_START_TIMESTAMP F_READ_START_TIMESTAMP F_WRITE_START_TIMESTAMP "
        "F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP F_READ_END_TIMESTAMP "
        "F_WRITE_END_TIMESTAMP F_CLOSE_END_TIMESTAMP F_READ_TIME F_WRITE_TIME F_META_TIME "
        "F_MAX_READ_TIME F_MAX_WRITE_TIME"
    )
    + _RANK_TIMES
)

_POSIX = [
    *("id", "rank"),
    *_prefixed(
        "POSIX_",
        "OPENS FILENOS DUPS READS WRITES SEEKS STATS MMAPS FSYNCS FDSYNCS RENAME_SOURCES "
        "RENAME_TARGETS RENAMED_FROM MODE BYTES_READ BYTES_WRITTEN MAX_BYTE_READ "
        "MAX_BYTE_WRITTEN CONSEC_READS CONSEC_WRITES SEQ_READS SEQ_WRITES RW_SWITCHES "
        "MEM_NOT_ALIGNED MEM_ALIGNMENT FILE_NOT_ALIGNED FILE_ALIGNMENT MAX_READ_TIME_SIZE "
        "MAX_WRITE_TIME_SIZE",
    ),
    *_prefixed("POSIX_", _HISTOGRAM + _STRIDES + _ACCESSES + _RANKS + _TIMES),
]
_MPIIO = [
    *("id", "rank"),
    *_prefixed(
        "MPIIO_",
        "INDEP_OPENS COLL_OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES SPLIT_READS "
        "SPLIT_WRITES NB_READS NB_WRITES SYNCS HINTS VIEWS MODE BYTES_READ BYTES_WRITTEN "
        "RW_SWITCHES MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE",
    ),
    *_prefixed("MPIIO_", _HISTOGRAM_AGG + _ACCESSES + _RANKS + _TIMES),
]
_STDIO = [
    *("id", "rank"),
    *_prefixed(
        "STDIO_",
        "OPENS FDOPENS READS WRITES SEEKS FLUSHES BYTES_WRITTEN BYTES_READ MAX_BYTE_READ "
        "MAX_BYTE_WRITTEN",
    ),
    *_prefixed("STDIO_", _RANKS),
    *_prefixed(
        "STDIO_",
        "F_META_TIME F_WRITE_TIME F_READ_TIME F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP "
        "F_WRITE_START_TIMESTAMP F_READ_START_TIMESTAMP F_OPEN_END_TIMESTAMP "
        "F_CLOSE_END_TIMESTAMP F_WRITE_END_TIMESTAMP F_READ_END_TIMESTAMP",
    ),
    *_prefixed("STDIO_", _RANK_TIMES),
]
_H5F = [
    *("id", "rank"),
    *_prefixed(
        "H5F_",
        "OPENS FLUSHES USE_MPIIO F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP "
        "F_OPEN_END_TIMESTAMP F_CLOSE_END_TIMESTAMP F_META_TIME",
    ),
]
_H5D = [
    *("id", "rank", "file_rec_id"),
    *_prefixed(
        "H5D_",
        "OPENS READS WRITES FLUSHES BYTES_READ BYTES_WRITTEN RW_SWITCHES "
        "REGULAR_HYPERSLAB_SELECTS IRREGULAR_HYPERSLAB_SELECTS POINT_SELECTS "
        "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE",
    ),
    *_prefixed("H5D_", _HISTOGRAM_AGG + _HYPERSLABS),
    *_prefixed(
        "H5D_",
        "DATASPACE_NDIMS DATASPACE_NPOINTS DATATYPE_SIZE CHUNK_SIZE_D1 CHUNK_SIZE_D2 "
        "CHUNK_SIZE_D3 CHUNK_SIZE_D4 CHUNK_SIZE_D5 USE_MPIIO_COLLECTIVE USE_DEPRECATED",
    ),
    *_prefixed("H5D_", _RANKS + _TIMES),
]
_PNETCDF_FILE = [
    *("id", "rank"),
    *_prefixed(
        "PNETCDF_FILE_",
        "CREATES OPENS REDEFS INDEP_WAITS COLL_WAITS SYNCS BYTES_READ BYTES_WRITTEN "
        "WAIT_FAILURES F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_WAIT_START_TIMESTAMP "
        "F_OPEN_END_TIMESTAMP F_CLOSE_END_TIMESTAMP F_WAIT_END_TIMESTAMP F_META_TIME F_WAIT_TIME",
    ),
]
_PNETCDF_VAR = [
    *("id", "rank", "file_rec_id"),
    *_prefixed(
        "PNETCDF_VAR_",
        "OPENS INDEP_READS INDEP_WRITES COLL_READS COLL_WRITES NB_READS NB_WRITES BYTES_READ "
        "BYTES_WRITTEN RW_SWITCHES",
    ),
    *(
        f"PNETCDF_VAR_{call}_{kind}"
        for call, kinds in (
            ("PUT", "VAR VAR1 VARA VARS VARM VARN VARD"),
            ("GET", "VAR VAR1 VARA VARS VARM VARN VARD"),
            ("IPUT", "VAR VAR1 VARA VARS VARM VARN"),
            ("IGET", "VAR VAR1 VARA VARS VARM VARN"),
            ("BPUT", "VAR VAR1 VARA VARS VARM VARN"),
        )
        for kind in kinds.split()
    ),
    *_prefixed("PNETCDF_VAR_", "MAX_READ_TIME_SIZE MAX_WRITE_TIME_SIZE"),
    *_prefixed("PNETCDF_VAR_", _HISTOGRAM_AGG + _HYPERSLABS),
    *_prefixed("PNETCDF_VAR_", "NDIMS NPOINTS DATATYPE_SIZE IS_RECORD_VAR"),
    *_prefixed("PNETCDF_VAR_", _RANKS + _TIMES),
]

_NO_CLOSE_START = "F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP"


def _minus(fields: list[str], prefix: str, names: str) -> list[str]:
    absent = set(_prefixed(prefix, names))
    return [name for name in fields if name not in absent]


_POSIX_3 = _minus(_POSIX, "POSIX_", "FILENOS DUPS RENAME_SOURCES RENAME_TARGETS RENAMED_FROM")
_POSIX_2 = _minus(_POSIX_3, "POSIX_", _NO_CLOSE_START)
_POSIX_1 = [
    *_POSIX_2[:8],
    *_prefixed("POSIX_", "FOPENS FREADS FWRITES FSEEKS"),
    *_POSIX_2[8:],
]
_MPIIO_2 = _minus(_MPIIO, "MPIIO_", _NO_CLOSE_START)
_H5F_2 = _minus(_H5F, "H5F_", "FLUSHES USE_MPIIO F_META_TIME")
_PNETCDF_FILE_2 = [
    *("id", "rank", "PNETCDF_INDEP_OPENS", "PNETCDF_COLL_OPENS"),
    *_prefixed(
        "PNETCDF_FILE_",
        "F_OPEN_START_TIMESTAMP F_CLOSE_START_TIMESTAMP F_OPEN_END_TIMESTAMP "
        "F_CLOSE_END_TIMESTAMP",
    ),
]
_PNETCDF_OPENS = MappingProxyType(
    {"PNETCDF_FILE_OPENS": ("PNETCDF_INDEP_OPENS", "PNETCDF_COLL_OPENS")}
)


def _layout(fields: list[str], remark: str | None = None) -> RecordLayout:
    return RecordLayout(fields=tuple(fields), remark=remark)


RECORDS: Mapping[str, Mapping[int, RecordLayout]] = MappingProxyType(
    {
        "POSIX": {
            1: RecordLayout(
                fields=tuple(_POSIX_1),
                omit_where_positive="POSIX_FOPENS",
                remark="records of files opened by fopen mix POSIX and STDIO counters "
                "and are left out",
            ),
            2: _layout(_POSIX_2),
            3: _layout(_POSIX_3),
            4: _layout(_POSIX),
        },
        "MPI-IO": {
            1: _layout(_MPIIO_2, "MPIIO_F_WRITE_START_TIMESTAMP may be wrong"),
            2: _layout(_MPIIO_2),
            3: _layout(_MPIIO),
        },
        "STDIO": {1: _layout(_minus(_STDIO, "STDIO_", "FDOPENS")), 2: _layout(_STDIO)},
        "H5F": {
            1: _layout(_minus(_H5F_2, "H5F_", _NO_CLOSE_START)),
            2: _layout(_H5F_2),
            3: _layout(_H5F),
        },
        "H5D": {1: _layout(_minus(_H5D, "", "file_rec_id")), 2: _layout(_H5D)},
        "PNETCDF_FILE": {
            1: RecordLayout(
                fields=tuple(_minus(_PNETCDF_FILE_2, "PNETCDF_FILE_", _NO_CLOSE_START)),
                sums=_PNETCDF_OPENS,
            ),
            2: RecordLayout(fields=tuple(_PNETCDF_FILE_2), sums=_PNETCDF_OPENS),
            3: _layout(_PNETCDF_FILE),
        },
        "PNETCDF_VAR": {1: _layout(_PNETCDF_VAR)},
    }
)
"""Modules of fixed-size records: name, version, layout. The highest version is presented."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DxtLayout:
    """The segments of one version of a DXT module: numpy types without byte order."""

    segment: tuple[tuple[str, str], ...]
    offsets_known: bool = True


_SEGMENT = (("offset", "i8"), ("length", "i8"), ("start_s", "f8"), ("end_s", "f8"))
_SEGMENT_THREAD = (*_SEGMENT, ("pthread_id", "u8"))

DXT: Mapping[str, Mapping[int, DxtLayout]] = MappingProxyType(
    {
        "DXT_POSIX": {1: DxtLayout(segment=_SEGMENT), 2: DxtLayout(segment=_SEGMENT_THREAD)},
        "DXT_MPIIO": {
            1: DxtLayout(segment=_SEGMENT, offsets_known=False),
            2: DxtLayout(segment=_SEGMENT),
            3: DxtLayout(segment=_SEGMENT_THREAD),
        },
    }
)
DXT_HEAD = (
    *(("id", "u8"), ("rank", "i8"), ("shared_record", "i8"), ("hostname", "S64")),
    *(("write_count", "i8"), ("read_count", "i8")),
)

HEATMAP_HEAD = (
    *(("id", "u8"), ("rank", "i8"), ("bin_width_s", "f8"), ("nbins", "i8")),
    # two pointers of the process that wrote the log
    *(("write_bins", "u8"), ("read_bins", "u8")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LustreLayout:
    """The head of one version of a LUSTRE record; components and OST ids (i8) follow it."""

    head: tuple[tuple[str, str], ...]
    component: tuple[tuple[str, str], ...]  # empty: the head describes the only one


LUSTRE: Mapping[int, LustreLayout] = MappingProxyType(
    {
        1: LustreLayout(
            head=tuple(
                (name, "u8" if name == "id" else "i8")
                for name in _words("id rank osts mdts stripe_offset stripe_size stripe_count")
            ),
            component=(),
        ),
        2: LustreLayout(
            head=(("id", "u8"), ("rank", "i8"), ("components", "i8"), ("stripes", "i8")),
            component=(
                *(
                    (name, "i8")
                    for name in _words(
                        "stripe_size stripe_count pattern flags extent_start extent_end mirror_id"
                    )
                ),
                ("pool_name", "S16"),
            ),
        ),
    }
)

VERSIONS: Mapping[str, frozenset[int]] = MappingProxyType(
    {
        **{name: frozenset(versions) for name, versions in RECORDS.items()},
        **{name: frozenset(versions) for name, versions in DXT.items()},
        "LUSTRE": frozenset(LUSTRE),
        "HEATMAP": frozenset({1}),
    }
)
"""The module versions that can be decoded."""

REMARKS: Mapping[tuple[str, int], str] = MappingProxyType(
    {
        (name, version): layout.remark
        for name, versions in RECORDS.items()
        for version, layout in versions.items()
        if layout.remark is not None
    }
    | {("DXT_MPIIO", 1): "offsets are unknown and given as -1"}
)

"""How long Darshan takes to end and how large its logs are, by processes, beside the values of
"Performance Evaluation of Darshan 3.0.0 on the Cray XC30" (ANL, 2016)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType

from understudy.contracts.run import Run
from understudy.judge.statistics.conditions import place_of
from understudy.judge.statistics.metrics import Spread, spread

PRODUCER = "shutdown"
WORKLOADS = ("shared", "1024-shared", "file-per-process", "1024-per-process")
TITLES: Mapping[str, str] = MappingProxyType(
    {
        "shared": "1 shared file",
        "1024-shared": "1,024 shared files",
        "file-per-process": "file per process",
        "1024-per-process": "1,024 files per process",
    }
)
WHOLE = "core_shutdown_s"
LOG_BYTES = "log_bytes"

ARCHIVED_BYTES = "archived_bytes"  # of the log, compressed with bzip2
# Of a log: its header; the fixed part of its job record; a POSIX and an MPI-IO record and a name.
PARTS = ("header_bytes", "job_record_bytes", "file_record_bytes")

KIB, MIB = 1 << 10, 1 << 20
PAPER_PROCESSES = 12_000  # of the tables, where they state no others
OLD, NEW = "2.3.0", "3.0.0"
_STEPS = (2_400, 4_800, 7_200, 9_600, 12_000)
# Bytes of a log by version, workload and processes: Tables I and III.
PAPER: Mapping[str, Mapping[str, Mapping[int, float]]] = MappingProxyType(
    {
        OLD: {
            "shared": {12_000: 0.870 * KIB},
            "1024-shared": {12_000: 27.342 * KIB},
            "file-per-process": {
                n: x * MIB
                for n, x in zip(_STEPS, (0.279, 0.557, 0.836, 1.114, 1.395), strict=True)
            },
            "1024-per-process": {
                n: x * MIB
                for n, x in zip(_STEPS, (61.282, 125.546, 185.651, 251.213, 309.414), strict=True)
            },
        },
        NEW: {
            "shared": {12_000: 1.050 * KIB},
            "1024-shared": {12_000: 54.646 * KIB},
            "file-per-process": {
                n: x * MIB
                for n, x in zip(_STEPS, (0.518, 1.114, 1.672, 2.229, 2.789), strict=True)
            },
            "1024-per-process": {
                n: x * MIB
                for n, x in zip(_STEPS, (111.511, 223.557, 335.228, 447.068, 558.980), strict=True)
            },
        },
    }
)
# Bytes of the parts of a log by version, in the order of PARTS: Table II.
PAPER_PARTS: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {OLD: (0, 1080, 1328), NEW: (360, 1064, 1324)}
)
# Bytes of a log of 12,000 processes after it was converted to bzip2: Table IV.
PAPER_ARCHIVED: Mapping[str, float] = MappingProxyType(
    {
        "shared": 1.264 * KIB,
        "1024-shared": 41.270 * KIB,
        "file-per-process": 706.040 * KIB,
        "1024-per-process": 397.312 * MIB,
    }
)


def files(workload: str, ranks: int) -> int:
    """That the records of a workload describe."""
    each = 1024 if workload.startswith("1024") else 1
    return each * (1 if workload.endswith("shared") else ranks)


def paper_bytes_per_file(workload: str, version: str = NEW) -> float:
    """At the largest number of processes."""
    ranks, size = max(PAPER[version][workload].items())
    return size / files(workload, ranks)


def paper_saved(workload: str) -> float:
    """By bzip2, as a fraction of the original."""
    return 1 - PAPER_ARCHIVED[workload] / PAPER[NEW][workload][PAPER_PROCESSES]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One workload on a number of processes, over the samples of all its runs; seconds and bytes.

    `parts` are medians of what Darshan itself says of its steps, by name; each is that of the
    process that took longest, so that they do not add up. `archived_bytes` None: not measured;
    `sizes`: those of PARTS that are known.
    """

    place: str
    version: str
    workload: str
    ranks: int
    seconds: Spread
    parts: Mapping[str, float]
    log_bytes: Spread
    archived_bytes: float | None
    sizes: Mapping[str, float]

    @property
    def saved(self) -> float | None:
        """By bzip2, as a fraction of the log."""
        if self.archived_bytes is None:
            return None
        return 1 - self.archived_bytes / self.log_bytes.median

    @property
    def bytes_per_file(self) -> float:
        return self.log_bytes.median / files(self.workload, self.ranks)


def rows(runs: Iterable[Run]) -> list[Row]:
    """By place, version, workload and processes; failed runs are left out."""
    values: dict[tuple[str, str, str, int], dict[str, list[float]]] = {}
    for run in runs:
        if run.producer.name != PRODUCER or run.failed or run.measurement is None:
            continue
        here = run.measurement["environment"]
        for sample in run.samples:
            key = (place_of(run), str(here["version"]), str(sample.stream), int(here["ranks"]))
            values.setdefault(key, {}).setdefault(sample.metric, []).append(sample.value)
    table = []
    for (place, version, workload, ranks), of in sorted(values.items()):
        took, size = spread(of.get(WHOLE, [])), spread(of.get(LOG_BYTES, []))
        if workload in WORKLOADS and took and size:
            medians = {name: median(v) for name, v in of.items() if name not in (WHOLE, LOG_BYTES)}
            table.append(
                Row(
                    place=place,
                    version=version,
                    workload=workload,
                    ranks=ranks,
                    seconds=took,
                    log_bytes=size,
                    archived_bytes=medians.pop(ARCHIVED_BYTES, None),
                    sizes={name: medians.pop(name) for name in PARTS if name in medians},
                    parts=medians,
                )
            )
    return table


def columns(all_rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Place and version of all rows, sorted."""
    return sorted({(row.place, row.version) for row in all_rows})

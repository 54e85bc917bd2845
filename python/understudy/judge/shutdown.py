"""How long Darshan takes to end and how large its logs are, by processes, beside the values of
"Performance Evaluation of Darshan 3.0.0 on the Cray XC30" (ANL, 2016)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from types import MappingProxyType

from understudy.contracts.run import Run
from understudy.judge.conditions import place_of
from understudy.judge.metrics import Spread, spread

PRODUCER = "shutdown"
WORKLOADS = ("shared", "1024-shared", "file-per-process", "1024-per-process")
TITLES: Mapping[str, str] = MappingProxyType({
    "shared": "1 shared file", "1024-shared": "1,024 shared files",
    "file-per-process": "file per process", "1024-per-process": "1,024 files per process",
})  # fmt: skip
WHOLE = "core_shutdown_s"
LOG_BYTES = "log_bytes"

KIB, MIB = 1 << 10, 1 << 20
# Bytes of a log of Darshan 3.0.0 by workload and processes: Tables I and III.
PAPER: Mapping[str, Mapping[int, float]] = MappingProxyType({
    "shared": {12_000: 1.050 * KIB},
    "1024-shared": {12_000: 54.646 * KIB},
    "file-per-process": {
        2_400: 0.518 * MIB, 4_800: 1.114 * MIB, 7_200: 1.672 * MIB, 9_600: 2.229 * MIB,
        12_000: 2.789 * MIB,
    },
    "1024-per-process": {
        2_400: 111.511 * MIB, 4_800: 223.557 * MIB, 7_200: 335.228 * MIB, 9_600: 447.068 * MIB,
        12_000: 558.980 * MIB,
    },
})  # fmt: skip


def files(workload: str, ranks: int) -> int:
    """That the records of a workload describe."""
    each = 1024 if workload.startswith("1024") else 1
    return each * (1 if workload.endswith("shared") else ranks)


def paper_bytes_per_file(workload: str) -> float:
    """At the largest number of processes."""
    ranks, size = max(PAPER[workload].items())
    return size / files(workload, ranks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One workload on a number of processes, over the samples of all its runs; seconds and bytes.

    `parts` are medians of what Darshan itself says of its steps, by name; each is that of the
    process that took longest, so that they do not add up.
    """

    place: str
    version: str
    workload: str
    ranks: int
    seconds: Spread
    parts: Mapping[str, float]
    log_bytes: Spread

    @property
    def bytes_per_file(self) -> float:
        return self.log_bytes.median / files(self.workload, self.ranks)


def rows(found: Iterable[Run]) -> list[Row]:
    """By place, version, workload and processes; failed runs are left out."""
    values: dict[tuple[str, str, str, int], dict[str, list[float]]] = {}
    for run in found:
        if run.producer.name != PRODUCER or run.failed or run.measurement is None:
            continue
        here = run.measurement["environment"]
        for sample in run.samples:
            key = (place_of(run), str(here["version"]), str(sample.stream), int(here["ranks"]))
            values.setdefault(key, {}).setdefault(sample.metric, []).append(sample.value)
    made = []
    for (place, version, workload, ranks), of in sorted(values.items()):
        took, size = spread(of.get(WHOLE, [])), spread(of.get(LOG_BYTES, []))
        if workload in WORKLOADS and took and size:
            parts = {name: median(v) for name, v in of.items() if name not in (WHOLE, LOG_BYTES)}
            made.append(Row(
                place=place, version=version, workload=workload, ranks=ranks, seconds=took,
                parts=parts, log_bytes=size,
            ))  # fmt: skip
    return made


def columns(found: Sequence[Row]) -> list[tuple[str, str]]:
    """Place and version of all rows, sorted."""
    return sorted({(row.place, row.version) for row in found})

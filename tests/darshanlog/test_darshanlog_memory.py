"""Memory does not grow with the number of records or names."""

import subprocess
import sys
from pathlib import Path

from tests.support.logs import posix_blocks, posix_names
from understudy.darshanlog.writer import write_log

PEAK = r"""
import sys, tracemalloc
from understudy import darshanlog
with darshanlog.open_log(sys.argv[1]) as log:
    written_bytes = sum(int(b["POSIX_BYTES_WRITTEN"].sum()) for b in log.records("POSIX"))
    names = sum(len(texts) for _, texts in log.names())
print(names, written_bytes, tracemalloc.get_traced_memory()[1] >> 10)
"""
LIMIT_KIB = 5 * 1024


def read(path: Path) -> tuple[int, int, int]:
    """Number of names, bytes written and peak of what a process that reads the log allocated, in
    KiB: what the system counts for a process depends on its allocator and its pages as well."""
    done = subprocess.run(
        [sys.executable, "-X", "tracemalloc", "-c", PEAK, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    names, written_bytes, peak_kib = map(int, done.stdout.split())
    return names, written_bytes, peak_kib


def test_peak_memory(tmp_path: Path) -> None:
    """400,000 records and names (282 MB, inflated) take as much memory as a hundred thousand."""
    peaks_kib = []
    for n_records in (100_000, 400_000):
        path = write_log(
            tmp_path / f"{n_records}.darshan",
            level=1,
            names=posix_names(n_records),
            POSIX=posix_blocks(n_records),
        )
        names, written_bytes, peak_kib = read(path)
        assert names == n_records
        assert written_bytes > n_records << 20
        peaks_kib.append(peak_kib)
    assert peaks_kib[1] - peaks_kib[0] < LIMIT_KIB, peaks_kib

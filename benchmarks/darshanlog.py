"""Reading a large Darshan log: this project's stream of blocks beside pydarshan.

    PYTHONPATH=python:. python benchmarks/darshanlog.py [--records N] [--repetitions N]

Makes a log of N POSIX records and names and reads it in separate processes, one after the other
and interleaved. Prints CPU seconds (user and system) and peak memory of each: medians, and their
ratio to ours. Each reader states what it has added up; a difference ends with exit status 1.

Readers: `stream` (understudy.darshanlog), `records` (pydarshan's backend, one record at a time)
and `frames` (darshan.DarshanReport, pandas frames). pydarshan's are left out where it does not
import.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.logs import posix_blocks, posix_names
from understudy.darshanlog.writer import write_log

PROLOGUE = "import resource, sys\npath = sys.argv[1]\n"
EPILOGUE = """
usage = resource.getrusage(resource.RUSAGE_SELF)
print(names, written_bytes, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
"""
IMPORT = "import darshan.backend.cffi_backend"
READERS = {
    "stream": """
from understudy import darshanlog
with darshanlog.open_log(path) as log:
    written_bytes = sum(int(b["POSIX_BYTES_WRITTEN"].sum()) for b in log.records("POSIX"))
    names = sum(len(texts) for _, texts in log.names())
""",
    "records": """
from darshan.backend import cffi_backend as backend
log = backend.log_open(path)
column = backend.counter_names("POSIX").index("POSIX_BYTES_WRITTEN")
written_bytes = 0
while (record := backend.log_get_record(log, "POSIX")) is not None:
    written_bytes += int(record["counters"][column])
names = len(backend.log_get_name_records(log))
""",
    "frames": """
import darshan
report = darshan.DarshanReport(path, read_all=False)
report.mod_read_all_records("POSIX")
frames = report.records["POSIX"].to_df()
written_bytes = int(frames["counters"]["POSIX_BYTES_WRITTEN"].sum())
names = len(report.name_records)
""",
}


def run(reader: str, path: Path) -> tuple[tuple[int, int], float, float]:
    """Return a reader's totals, its CPU seconds and its peak memory in MiB."""
    code = PROLOGUE + READERS[reader] + EPILOGUE
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True, check=True
    )
    names, written_bytes, cpu_s, peak_kib = done.stdout.split()
    return (int(names), int(written_bytes)), float(cpu_s), int(peak_kib) / 1024


def measure(path: Path, readers: list[str], repetitions: int) -> int:
    """Print the table; 1 where the readers disagree, else 0."""
    cpu_s: dict[str, list[float]] = {reader: [] for reader in readers}
    peak_mib: dict[str, list[float]] = {reader: [] for reader in readers}
    sums = set()
    for _ in range(repetitions):
        for reader in readers:
            total, seconds, mib = run(reader, path)
            sums.add(total)
            cpu_s[reader].append(seconds)
            peak_mib[reader].append(mib)
    print(f"{'reader':8} {'CPU s (min … max)':>24} {'ratio':>7} {'peak MiB':>9} {'ratio':>7}")
    ours_s, ours_mib = statistics.median(cpu_s["stream"]), statistics.median(peak_mib["stream"])
    for reader in readers:
        seconds, mib = statistics.median(cpu_s[reader]), statistics.median(peak_mib[reader])
        spread = f"{seconds:.2f} ({min(cpu_s[reader]):.2f} … {max(cpu_s[reader]):.2f})"
        print(f"{reader:8} {spread:>24} {seconds / ours_s:7.2f} {mib:9.1f} {mib / ours_mib:7.2f}")
    if len(sums) > 1:
        print(f"the readers disagree about names and bytes written: {sorted(sums)}")
    return int(len(sums) > 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1_000_000, help="records and names")
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each reader")
    parser.add_argument("--compression", choices=["zlib", "bzip2"], default="zlib")
    options = parser.parse_args()
    readers = ["stream"]
    if options.compression == "bzip2":
        print("pydarshan from PyPI reads no bzip2: left out")
    elif subprocess.run([sys.executable, "-c", IMPORT], stderr=subprocess.DEVNULL).returncode:
        print("pydarshan cannot be imported: left out")
    else:
        readers = list(READERS)
    with tempfile.TemporaryDirectory() as folder:
        path = write_log(
            Path(folder) / "large.darshan",
            compression=options.compression,
            names=posix_names(options.records),
            POSIX=posix_blocks(options.records),
        )
        size = path.stat().st_size
        print(
            f"{options.records} records and names, {size} bytes, {options.repetitions} runs each"
        )
        return measure(path, readers, options.repetitions)


if __name__ == "__main__":
    sys.exit(main())

"""Lines that `understudy show` prints for a Darshan log."""

import struct
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

from rich.progress import DownloadColumn, TextColumn, TimeElapsedColumn

from understudy.darshanlog import layouts
from understudy.darshanlog.sizes import LogSize, log_size
from understudy.errors import UnderstudyError, printable
from understudy.messages import progress
from understudy.tables import table
from understudy.units import exact, seconds, size

START_BYTES = 16
FILE_RECORDS = ("POSIX", "MPI-IO")  # whose records the paper adds up to that of a file


def is_log(file: Path) -> bool:
    """By its first bytes, or else its name."""
    if not file.is_file():  # a FIFO would be waited for
        return False
    try:
        with file.open("rb") as opened:
            start = opened.read(START_BYTES)
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None
    magic = struct.pack("<q", layouts.MAGIC)
    return start[8:16] in (magic, magic[::-1]) or file.suffix == ".darshan"


def lines(file: Path) -> Iterator[str]:
    """The lines of a log; it is read as a whole."""
    columns = (TextColumn("reading"), DownloadColumn(binary_units=True), TimeElapsedColumn())
    with progress(*columns) as bar:
        task = bar.add_task("", total=None)
        log = log_size(file, lambda plain: bar.advance(task, plain))
    yield from map(printable, _head(log))
    yield ""
    columns_ = (
        "region",
        ">version",
        ">records",
        ">streams",
        ">bytes",
        ">plain",
        ">ratio",
        ">bytes a record",
        "",
    )
    yield from table(
        "",
        columns_,
        [
            ("header", "", "", "", *[f"{log.header_bytes:,}"] * 2, "1.0", "", ""),
            *(
                (
                    region.name,
                    "" if region.version is None else str(region.version),
                    "unknown" if region.records is None else f"{region.records:,}",
                    f"{region.streams:,}",
                    f"{region.bytes:,}",
                    f"{region.plain_bytes:,}",
                    f"{region.ratio:.1f}",
                    f"{region.bytes / region.records:.1f}" if region.records else "",
                    "partial: records are missing" if region.partial else "",
                )
                for region in log.regions
            ),
        ],
    )
    yield ""
    yield from _components(log)
    for remark in log.remarks:
        yield printable(f"Note: {remark}")


def _head(log: LogSize) -> Iterator[str]:
    job = log.job
    by = f", written by Darshan {log.library_version}" if log.library_version else ""
    yield (
        f"{log.path.name}: Darshan log {log.version}, {log.byte_order}-endian, "
        f"{log.compression}{by}"
    )
    took = "unknown" if job.run_time_s is None else seconds(job.run_time_s)
    yield f"job {job.jobid}: {job.nprocs:,} processes, {_when(job.start_s)}, run time {took}"
    each = "" if log.bytes_per_file is None else f", {log.bytes_per_file:.1f} B a name"
    names = f"{log.files:,} {'name' if log.files == 1 else 'names'}"
    yield f"{exact(log.bytes)} ({size(log.bytes)}), {names}{each}"


def _when(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _components(log: LogSize) -> Iterator[str]:
    """Table II of the paper."""
    words = [f"header {log.header_bytes:,} B", f"job record {log.job_bytes:,} B"]
    sizes = [r.record_bytes for r in log.regions if r.name in FILE_RECORDS and r.record_bytes]
    names = next((r for r in log.regions if r.name == "the names"), None)
    if sizes and names is not None and names.records:
        name_bytes = names.plain_bytes / names.records
        modules = " + ".join(f"{n:,}" for n in sizes)
        words.append(
            f"record of a file {sum(sizes) + name_bytes:,.0f} B "
            f"({modules} of modules + {name_bytes:.0f} of its name)"
        )
    yield f"Uncompressed: {', '.join(words)}"

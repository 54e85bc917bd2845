"""Damaged logs and files that are no logs: one clear message each, never anything else."""

import bz2
import errno
import gzip
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.darshanlog.corpus import real_logs
from tests.support.logs import posix_blocks
from tests.support.needs import needs
from tests.support.said import raises, said
from understudy import darshanlog
from understudy.darshanlog import layouts
from understudy.darshanlog.log import Log
from understudy.darshanlog.writer import write_log
from understudy.errors import UnderstudyError

COMPRESSIONS = pytest.mark.parametrize("compression", layouts.COMPRESSIONS)


def read_all(log: Log) -> int:
    """Read every stream to its end and return how many blocks and records came."""
    streams: list[Iterator[object]] = [log.names()]
    for name, module in log.modules.items():
        if module.supported and name in layouts.RECORDS:
            streams.append(log.records(name))
        elif module.supported and name in layouts.DXT:
            streams.append(log.dxt(name))
    if log.modules.get("LUSTRE"):
        streams.append(log.lustre())
    if log.modules.get("HEATMAP"):
        streams.append(log.heatmap())
    return sum(1 for stream in streams for _ in stream)


def error_message(path: Path) -> str:
    """The message of the error that reading the log raises."""
    with pytest.raises(UnderstudyError) as error, darshanlog.open_log(path) as log:
        read_all(log)
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def full_log(path: Path, compression: str = "zlib") -> Path:
    """A log with every kind of module."""
    segments = [(i << 20, 1 << 20, i / 8, i / 4) for i in range(40)]
    return write_log(
        path,
        compression=compression,
        stream_bytes=3000,
        names={number: b"/scratch/dump.%04d" % number for number in range(1, 60)},
        POSIX=posix_blocks(30),
        STDIO=[{"id": number, "STDIO_OPENS": number} for number in range(20)],
        LUSTRE=[{"id": 1, "stripe_size_bytes": 1 << 20, "ost_ids": list(range(30))}] * 9,
        HEATMAP=[{"id": 1, "bin_width_s": 0.1, "write_bins": [7] * 99, "read_bins": [0] * 99}] * 4,
        DXT_POSIX=[{"id": 1, "write_segments": segments, "read_segments": segments}] * 3,
    )


@COMPRESSIONS
def test_truncated_at_every_offset(tmp_path: Path, compression: str) -> None:
    """Cut short by any number of bytes a log is refused when it is opened, saying so."""
    whole = full_log(tmp_path / "whole.darshan", compression)
    data = whole.read_bytes()
    cut = tmp_path / "cut.darshan"
    step = 1 if len(data) < 6000 else 37
    lengths = [*range(1, 1400, 3), *range(1400, len(data), step)]
    for length in lengths:
        cut.write_bytes(data[:length])
        with pytest.raises(UnderstudyError) as error:
            darshanlog.open_log(cut)
        assert "truncated" in str(error.value) or length < 16
    with darshanlog.open_log(whole) as log:
        assert read_all(log) == 1 + 2 + 9 + 4 + 3


@COMPRESSIONS
def test_any_byte_may_be_wrong(tmp_path: Path, compression: str) -> None:
    """Whatever byte is damaged, the log reads or one message names the file."""
    data = bytearray(full_log(tmp_path / "whole.darshan", compression).read_bytes())
    damaged = tmp_path / "damaged.darshan"
    refused = 0
    positions = [*range(0, 1328, 5), *range(1328, len(data), max(1, len(data) // 700))]
    for position in positions:
        kept = data[position]
        for value in (kept ^ 0xFF, kept ^ 1):
            data[position] = value
            damaged.write_bytes(data)
            try:
                with darshanlog.open_log(damaged) as log:
                    read_all(log)
            except UnderstudyError as error:
                assert str(damaged) in str(error)
                refused += 1
        data[position] = kept
    assert refused > 30


def test_real_logs_truncated(tmp_path: Path) -> None:
    logs = [path for path in real_logs() if path.stat().st_size < 20_000]
    assert logs
    for path in logs:
        data = path.read_bytes()
        cut = tmp_path / "cut.darshan"
        for length in range(1, len(data), max(1, len(data) // 97)):
            cut.write_bytes(data[:length])
            error_message(cut)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.darshan"
    path.touch()
    said("file-empty-expected-darshan", error_message(path), path=path)


def test_directory(tmp_path: Path) -> None:
    said("cannot-opened-directory", error_message(tmp_path), tmp_path=tmp_path)


def test_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "absent.darshan"
    said("cannot-opened-no-such", error_message(path), path=path)


@needs("another user than root")
def test_unreadable(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan")
    path.chmod(0)
    said("cannot-opened-permission-denied", error_message(path), path=path)


@pytest.mark.parametrize("text", [b"x", b"hello, world\n", b"\x89HDF\r\n\x1a\n", bytes(5000)])
def test_no_darshan_log(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(text)
    said("darshan-log-starts", error_message(path))


def test_version_without_magic_number(tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(b"3.41".ljust(2000, b"\0"))
    said("number-byte", error_message(path))


@pytest.mark.parametrize("version", [b"2.05", b"3.50", b"4.00"])
def test_unknown_log_version(tmp_path: Path, version: bytes) -> None:
    path = write_log(tmp_path / "log.darshan")
    patch(path, 0, version)
    said("darshan-log-version-known", error_message(path), decode=f"{version.decode()!r}")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (b"2.05", "a log of Darshan 2.05, expected one of Darshan 3.0 or later: record the appl"),
        (b"1.24", "a log of Darshan 1.24"),
        (b"3.41", "compressed again as a whole; decompress it first"),
        (b"PK", "not a Darshan log: it starts with"),
    ],
)
def test_logs_that_are_compressed_as_a_whole(
    tmp_path: Path, compress: Callable[[bytes], bytes], start: bytes, expected: str
) -> None:
    path = tmp_path / "log.darshan.gz"
    path.write_bytes(compress(start.ljust(5000, b"\0")))
    assert expected in error_message(path)
    path.write_bytes(path.read_bytes()[:12])  # nothing comes out of it
    said("darshan-log", error_message(path))


def test_names_end_at_a_zero_byte(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", version="3.00", names={1: b"/a\0b", 2: b"/c"})
    with darshanlog.open_log(path) as log:
        assert [names for _, names in log.names()] == [[b"/a", b"/c"]]


def test_modules_that_are_registered_without_records(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", POSIX=[{"id": 1}])
    patch(path, layouts.LOG_FORMATS["3.41"].versions_offset + 4 * 2, struct.pack("<I", 3))
    with darshanlog.open_log(path) as log:
        assert "MPI-IO: registered by the log without any record" in log.remarks


def test_unknown_compression(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan")
    patch(path, 16, b"\7")
    said("unknown-compression-byte-expected", error_message(path))


def patch(path: Path, offset: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def region_at(path: Path, index: int) -> int:
    """Where the header states offset and length of a module."""
    return layouts.LOG_FORMATS["3.41"].name_map_offset + 16 * (1 + index)


def test_region_beyond_the_end_of_the_file(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", POSIX=[{"id": 1}])
    size = path.stat().st_size
    patch(path, region_at(path, 1), struct.pack("<QQ", size - 5, 1000))
    message = error_message(path)
    said("module-posix-takes-bytes", message, size=size - 5, size2=size + 995, size3=size)


def test_region_inside_the_header(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", names={1: b"/x"}, POSIX=[{"id": 1}])
    patch(path, region_at(path, 1), struct.pack("<QQ", 100, 10))
    said("module-posix-starts-byte", error_message(path))


def test_region_offset_that_overflows(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", names={1: b"/x"}, POSIX=[{"id": 1}])
    patch(path, region_at(path, 1), struct.pack("<QQ", 2**64 - 1, 2**64 - 1))
    said("truncated-darshan-log-module", error_message(path))


@pytest.mark.parametrize("compression", ["zlib", "bzip2"])
def test_corrupt_compressed_data(tmp_path: Path, compression: str) -> None:
    path = write_log(tmp_path / "log.darshan", compression=compression, POSIX=posix_blocks(50))
    with darshanlog.open_log(path) as log:
        start = log.modules["POSIX"].offset
    patch(path, start, b"\xff" * 20)
    message = error_message(path)
    said("module-posix-byte", message)
    said("compressed-data-corrupt", message)


def test_stream_that_ends_too_early(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", POSIX=posix_blocks(50))
    with darshanlog.open_log(path) as log:
        module = log.modules["POSIX"]
    patch(path, region_at(path, 1) + 8, struct.pack("<Q", module.length_bytes - 4))
    end = module.offset + module.length_bytes - 4
    said("module-posix-byte-compressed", error_message(path), end=end)


@COMPRESSIONS
@pytest.mark.parametrize(
    ("index", "version", "data", "expected"),
    [
        (1, 4, bytes(704 + 100), "in the middle of a record: expected 704 bytes, found 100"),
        (1, 3, bytes(663), "in the middle of a record: expected 664 bytes, found 663"),
        (8, 2, bytes(40), "in the middle of a record: expected 32 bytes, found 8"),
        (8, 2, struct.pack("<4q", 1, 0, 2, 0) + bytes(72), "the components of a record"),
        (8, 2, struct.pack("<4q", 1, 0, -1, 0), "the number of components of a record is -1"),
        (8, 2, struct.pack("<4q", 1, 0, 0, 2**60), "the OST ids of a record"),
        (
            8,
            1,
            struct.pack("<7q", 1, 0, 4, 1, 0, 1 << 20, -5),
            "the stripe count of a record is -5",
        ),
        (15, 1, struct.pack("<2qd3q", 1, 0, 0.1, 2**20, 0, 0), "the bins of a record"),
        (15, 1, struct.pack("<2qd3q", 1, 0, 0.1, 2**59, 0, 0), "expected at most 1048576"),
        (
            15,
            1,
            struct.pack("<2qd3q", 1, 0, 0.1, -1, 0, 0),
            "the number of bins of a record is -1",
        ),
        (10, 2, bytes(104) + struct.pack("<q", -3), "in the middle of a record"),
        (10, 2, bytes(88) + struct.pack("<2q", -3, 0), "the number of writes of a record is -3"),
        (10, 2, bytes(88) + struct.pack("<2q", 3, 2**20), "the segments of a record"),
        (10, 2, bytes(88) + struct.pack("<2q", 3, 2**58), "the number of segments of a record is"),
    ],
)
def test_records_that_make_no_sense(
    tmp_path: Path, index: int, version: int, data: bytes, expected: str, compression: str
) -> None:
    path = write_log(
        tmp_path / "log.darshan", raw={index: (version, data)}, compression=compression
    )
    message = error_message(path)
    assert expected in message
    assert f"module {layouts.MODULES[index]}, byte " in message


def test_name_that_ends_too_early(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", names={1: b"/scratch"}, compression="none")
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    said("names-byte", error_message(path))


def test_name_without_end(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.darshan", names={1: b"n" * 10_000_000})
    said("name-takes-more-than", error_message(path))


def test_job_record_too_short(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    write_log(path, compression="none")
    patch(path, 32, struct.pack("<QQ", 1328 + 500, 10))
    said("job-record-byte-job", error_message(path))


def test_failing_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = write_log(tmp_path / "log.darshan", POSIX=posix_blocks(5))
    with darshanlog.open_log(path) as log:
        monkeypatch.setattr(os, "pread", fail)
        with raises(UnderstudyError, "module-posix-byte-cannot"):
            next(log.records("POSIX"))


def test_reading_after_close(tmp_path: Path) -> None:
    log = darshanlog.open_log(write_log(tmp_path / "log.darshan", POSIX=posix_blocks(5)))
    log.close()
    with pytest.raises(ValueError, match="closed file"):
        next(log.records("POSIX"))

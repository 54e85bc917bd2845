"""Inflating with isal, or several short streams at a time: as zlib does it one by one."""

import bz2
import random
import zlib
from pathlib import Path

import pytest

from tests.support.needs import need
from understudy.darshanlog import stream
from understudy.darshanlog.stream import DamagedRegion, Region


def some_streams(rng: random.Random, damaged: bool) -> bytes:
    """Compressed streams one after the other; some bytes of them changed, or the end cut off."""
    plain = bytes(rng.randrange(4) for _ in range(20_000))
    parts = []
    for _ in range(rng.randrange(1, 6)):
        begin, noise = rng.randrange(20_000), rng.randbytes(rng.randrange(300))
        parts.append(zlib.compress(plain[begin:] + noise, rng.choice([0, 1, 6, 9])))
    data = bytearray(b"".join(parts))
    if damaged:
        for _ in range(rng.randrange(3)):
            data[rng.randrange(rng.choice([len(data), 12]))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
    return bytes(data)


def inflated(
    path: Path, sizes: random.Random, compression: str = "zlib"
) -> tuple[bytes, int] | str:
    """The plain bytes of a file and how many streams it has, or the error."""
    with path.open("rb", buffering=0) as file:
        region = Region(
            file,
            path,
            name="all",
            offset=0,
            length_bytes=path.stat().st_size,
            compression=compression,
        )
        parts = []
        try:
            while part := region.read(sizes.choice([1, 100, 5000, 100_000])):
                parts.append(part)
        except DamagedRegion as error:
            return str(error)
        return b"".join(parts), region.streams


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("chunk_bytes", [1, 3, 100, 1 << 16])
def test_isal_inflates_as_zlib(
    chunk_bytes: int, damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chunks end anywhere in a stream: within its header, and within its checksum."""
    need("isal")
    monkeypatch.setattr(stream, "CHUNK_BYTES", chunk_bytes)
    rng, errors = random.Random(chunk_bytes), 0
    for n in range(30):
        path = tmp_path / f"{n}"
        path.write_bytes(some_streams(rng, damaged))
        outcomes = []
        for new_stream in (zlib.decompressobj, stream.fast_stream):
            monkeypatch.setattr(stream, "NEW_STREAM", {"zlib": new_stream})
            outcomes.append(inflated(path, random.Random(n)))
        assert outcomes[0] == outcomes[1]
        errors += isinstance(outcomes[0], str)
    assert (errors > 5) == damaged


@pytest.mark.parametrize("damaged", [False, True])
@pytest.mark.parametrize("compression", ["zlib", "bzip2"])
def test_short_streams_are_inflated_as_others(
    compression: str, damaged: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Streams of a record each, some of them empty, and a few long ones between them."""
    compress = {"zlib": zlib.compress, "bzip2": bz2.compress}[compression]
    rng, errors = random.Random(4), 0
    for n in range(12):
        records = [rng.randbytes(9) * 63 for _ in range(200)]
        records[50], records[60:65] = rng.randbytes(70_000), [b""] * 5
        data = bytearray(b"".join(map(compress, records)))
        if damaged:
            data[rng.randrange(len(data))] ^= rng.randrange(1, 256)
        path = tmp_path / f"{n}"
        path.write_bytes(data)
        outcomes = []
        for short_bytes in (stream.SHORT_BYTES, 0):
            monkeypatch.setattr(stream, "SHORT_BYTES", short_bytes)
            outcomes.append(inflated(path, random.Random(n), compression))
        monkeypatch.undo()
        assert outcomes[0] == outcomes[1]
        errors += isinstance(outcomes[0], str)
        if not damaged:
            assert outcomes[0] == (b"".join(records), len(records))
    assert (errors > 9) == damaged


def test_short_streams_have_short_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a stream leaves of its input is copied: of 64 KiB, that takes longer than inflating."""
    inputs: list[int] = []

    class Counted:
        def __init__(self) -> None:
            self.stream = zlib.decompressobj()

        def decompress(self, data: bytes, limit_bytes: int) -> bytes:
            inputs.append(len(data))
            return self.stream.decompress(data, limit_bytes)

        def __getattr__(self, name: str) -> object:
            return getattr(self.stream, name)

    path = tmp_path / "x"
    path.write_bytes(b"".join(zlib.compress(b"%d" % n) for n in range(2000)))
    monkeypatch.setattr(stream, "NEW_STREAM", {"zlib": Counted})
    plain = b"".join(b"%d" % n for n in range(2000))
    assert inflated(path, random.Random(1)) == (plain, 2000)
    assert sum(inputs) < 10 * path.stat().st_size

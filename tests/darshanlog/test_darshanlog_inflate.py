"""Inflating with isal, where it is installed: the same bytes and the same errors as with zlib."""

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


def inflated(path: Path, sizes: random.Random) -> tuple[bytes, int] | str:
    """The plain bytes of a file and how many streams it has, or the error."""
    with path.open("rb", buffering=0) as file:
        length = path.stat().st_size
        region = Region(file, path, name="all", offset=0, length_bytes=length, compression="zlib")
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

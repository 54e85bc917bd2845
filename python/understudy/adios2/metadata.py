"""Bytes of a metadata file, whose every offset and length is checked before it is used."""

import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from understudy.adios2.output import Integers
from understudy.errors import UnderstudyError

LARGEST = 1 << 62  # of a size, an offset and a number of elements


class Metadata:
    """The bytes of one file, or of a part of it that begins at `first`, in its byte order."""

    def __init__(
        self, file: str, data: bytes, *, first: int = 0, big_endian: bool = False
    ) -> None:
        self.file = file
        self.data = data
        self.first = first
        self.big_endian = big_endian
        self.order = ">" if big_endian else "<"
        self.array = np.frombuffer(data, np.uint8)

    def __len__(self) -> int:
        return len(self.data)

    def fault(self, at: int, text: str) -> UnderstudyError:
        """The file is damaged at this byte."""
        return UnderstudyError(f"{self.file}: byte {self.first + at:,}: {text}")

    def expect(self, at: int, size: int, what: str) -> None:
        """The bytes of `what`, of that size, must be there."""
        if at < 0 or size < 0 or at + size > len(self.data):
            raise self.fault(at, f"{what} of {size:,} bytes exceeds the {len(self.data):,} there")

    def number(self, at: int, size: int) -> int:
        """The unsigned number of 1, 2, 4 or 8 bytes there."""
        self.expect(at, size, "a number")
        return int.from_bytes(self.data[at : at + size], "big" if self.big_endian else "little")

    def size(self, at: int, size: int, what: str) -> int:
        """A number there that counts something in memory or in a file."""
        value = self.number(at, size)
        if value > LARGEST:
            raise self.fault(at, f"{what}: {value:,}: expected at most {LARGEST:,}")
        return value

    def text(self, at: int, size: int) -> str:
        """The text of that many bytes; bytes that are not UTF-8 stay apart as surrogates."""
        self.expect(at, size, "a text")
        return self.data[at : at + size].decode(errors="surrogateescape")

    def line(self, at: int, end: int) -> str:
        """The text there up to a zero, which stands before the byte `end`."""
        self.expect(at, 1, "a text")
        stop = self.data.find(b"\0", at, end)
        if stop < 0:
            raise self.fault(at, "a text does not end")
        return self.text(at, stop - at)

    def gather(self, at: Integers, size: int) -> npt.NDArray[np.uint64]:
        """The unsigned numbers of that size at each of these bytes."""
        if not len(at):
            return np.zeros(0, np.uint64)
        if size not in (1, 2, 4, 8):
            raise self.fault(int(at[0]), f"a number of {size:,} bytes: expected 1, 2, 4 or 8")
        if int(at.min()) < 0 or int(at.max()) > len(self.data) - size:
            worst = int(at.max() if at.min() >= 0 else at.min())
            raise self.fault(
                worst, f"a number of {size} bytes exceeds the {len(self.data):,} there"
            )
        rows = self.array[at[:, None] + np.arange(size)]
        return rows.view(f"{self.order}u{size}").ravel().astype(np.uint64)

    def sizes(self, at: Integers, size: int, what: str) -> Integers:
        """The same of numbers that count something."""
        values = self.gather(at, size)
        if len(values) and int(values.max()) > LARGEST:
            worst = int(values.argmax())
            raise self.fault(
                int(at[worst]), f"{what}: {int(values[worst]):,}: expected at most {LARGEST:,}"
            )
        return values.astype(np.int64)

    def value(self, at: int, kind: str) -> str:
        """The number of one of ADIOS2's types there, as text; of a character, its code."""
        code, size = _CODES[kind]
        self.expect(at, size, f"a value of type {kind}")
        if kind == "long double":
            return str(_long_double(self.data[at : at + size], self.big_endian))
        parts = struct.unpack_from(self.order + code, self.data, at)
        if len(parts) == 2:
            return f"({_shown(parts[0], code)},{_shown(parts[1], code)})"
        return _shown(parts[0], code)

    def values(self, at: int, kind: str, count: int) -> tuple[str, ...]:
        """So many numbers of a type, one behind the other."""
        size = _CODES[kind][1]
        self.expect(at, count * size, f"{count:,} values of type {kind}")
        return tuple(self.value(at + k * size, kind) for k in range(count))


def ragged(counts: Integers) -> Integers:
    """0, 1, ... counts[0] - 1, 0, 1, ... counts[1] - 1, ..."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) - np.repeat(ends - counts, counts)


def _shown(value: float, code: str) -> str:
    return str(np.float32(value)) if "f" in code else str(value)


def _long_double(data: bytes, big_endian: bool) -> float:
    """The value of an extended or quadruple number, as far as a double holds it."""
    if big_endian:  # IEEE quadruple precision
        bits = int.from_bytes(data, "big")
        sign, exponent, fraction = bits >> 127, bits >> 112 & 0x7FFF, bits & ((1 << 112) - 1)
        share = 1 + fraction / (1 << 112)
    else:  # 80 bits of x86
        bits = int.from_bytes(data[:10], "little")
        sign, exponent, share = bits >> 79, bits >> 64 & 0x7FFF, (bits & ((1 << 64) - 1)) / 2**63
    if not -1074 <= exponent - 16383 <= 1023:
        share, exponent = (0.0, 16383) if exponent < 16383 else (float("inf"), 16383)
    return (-share if sign else share) * 2.0 ** (exponent - 16383)


_CODES = {
    "char": ("B", 1),
    "int8_t": ("b", 1),
    "int16_t": ("h", 2),
    "int32_t": ("i", 4),
    "int64_t": ("q", 8),
    "uint8_t": ("B", 1),
    "uint16_t": ("H", 2),
    "uint32_t": ("I", 4),
    "uint64_t": ("Q", 8),
    "float": ("f", 4),
    "double": ("d", 8),
    "long double": ("", 16),
    "float complex": ("2f", 8),
    "double complex": ("2d", 16),
}


def joined(parts: Sequence[Integers], columns: int = 0) -> Integers:
    """Arrays of blocks put together, also where there are none."""
    shape = (0, columns) if columns else (0,)
    return np.concatenate([np.zeros(shape, np.int64), *parts])

"""The index at the end of a BP file of ADIOS 1.x: which variables are transformed (compressed),
which ADIOS' own programs do not tell.

The file ends with the offsets of the index of process groups, of variables and of attributes
(8 bytes each) and the version (4 bytes, big-endian; the highest bit: the rest is big-endian). An
entry of a variable has sets of characteristics; the transform comes after those of fixed size and
before the statistics.
"""

import errno
import os
import struct
from pathlib import Path

from understudy.errors import UnderstudyError

FOOTER_BYTES = 28
MAX_INDEX_BYTES = 1 << 31
DIMENSIONS, TRANSFORM = 4, 11
FIXED_BYTES = {3: 8, 6: 8, 7: 4, 8: 4}  # offset, payload offset, file, time step


class _Index:
    """A cursor on the index of variables."""

    def __init__(self, data: bytes, order: str) -> None:
        self.data, self.order, self.at = data, order, 0

    def number(self, kind: str) -> int:
        [value] = struct.unpack_from(self.order + kind, self.data, self.at)
        self.at += struct.calcsize(kind)
        return int(value)

    def text(self, kind: str = "H") -> str:
        size = self.number(kind)
        self.at += size
        if self.at > len(self.data):
            raise ValueError("a text ends behind the index")
        return self.data[self.at - size : self.at].decode("utf-8", "surrogateescape")


def transforms(path: Path) -> dict[str, str]:
    """The transform of each variable that has one, by the variable's full name."""
    try:
        index = _index(path)
        transform_of = {}
        count = index.number("I")
        index.number("Q")
        for _ in range(count):
            size = index.number("I")
            end = index.at + size
            name, kind = _variable(index)
            if kind:
                transform_of[name] = kind
            index.at = end
        return transform_of
    except (struct.error, ValueError):
        raise UnderstudyError(f"{path}: not a BP file: its index is damaged") from None
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None


def _index(path: Path) -> _Index:
    if not path.is_file():
        raise OSError(errno.EINVAL, "is no regular file")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - FOOTER_BYTES))
        footer = file.read(FOOTER_BYTES)
        order = ">" if len(footer) == FOOTER_BYTES and footer[-4] & 0x80 else "<"
        _, variables, attributes = struct.unpack_from(f"{order}3Q", footer)
        if not 0 <= attributes - variables <= min(size, MAX_INDEX_BYTES):
            raise ValueError("offsets of the index")
        file.seek(variables)
        return _Index(file.read(attributes - variables), order)


def _variable(index: _Index) -> tuple[str, str]:
    """Full name and transform of the entry that begins here."""
    index.number("I")
    index.text()
    name, path = index.text(), index.text().rstrip("/")
    index.number("B")
    sets = index.number("Q")
    characteristics = index.number("B") if sets else 0
    if sets:
        index.number("I")
    full = f"{path}/{name}" if path else name
    for _ in range(characteristics):
        kind = index.number("B")
        if kind == TRANSFORM:
            return full, index.text("B")
        if kind == DIMENSIONS:
            index.number("B")
            index.text()
        elif kind in FIXED_BYTES:
            index.at += FIXED_BYTES[kind]
        else:
            break
    return full, ""

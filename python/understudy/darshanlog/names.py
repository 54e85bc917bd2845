"""The names behind the record ids: mostly paths of files."""

import struct
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from understudy.darshanlog.stream import Region

NAMES_BYTES = 1 << 18
"""Plain bytes of name records taken at a time; no name is as long."""

MAX_SAME = 100
"""Names of one record, on average of a block: no log repeats names as often."""

Names = tuple[npt.NDArray[np.uint64], list[bytes]]


def name_blocks(region: Region, order: str, *, counted: bool) -> Iterator[Names]:
    """Blocks of record ids and their names, in the order of the file."""
    split = _split_counted if counted else _split_terminated
    rest = b""
    for data in region.blocks(NAMES_BYTES):
        ids, names, rest = split(rest + data, order)
        if len(rest) > NAMES_BYTES:
            raise region.error(f"a name takes more than {NAMES_BYTES} bytes")
        if len(names) > MAX_SAME and len(set(ids)) * MAX_SAME < len(names):
            raise region.error(f"{len(names)} names in a row are of {len(set(ids))} records")
        if names:
            yield np.frombuffer(b"".join(ids), order + "u8").astype("=u8"), names
    if rest:
        raise region.error(f"the data ends in the middle of a name, after {len(rest)} bytes of it")


def _split_terminated(data: bytes, order: str) -> tuple[list[bytes], list[bytes], bytes]:
    """Records of an id (8 bytes) and a name that ends in a zero byte; and what is left over."""
    ids, names = [], []
    start = 0
    while (end := data.find(b"\0", start + 8)) >= 0:
        ids.append(data[start : start + 8])
        names.append(data[start + 8 : end])
        start = end + 1
    return ids, names, data[start:]


def _split_counted(data: bytes, order: str) -> tuple[list[bytes], list[bytes], bytes]:
    """Records of an id (8 bytes), a length (4 bytes) and a name, as in log version 3.00; a name
    ends at its first zero byte, if it has one."""
    ids, names = [], []
    start = 0
    while start + 12 <= len(data):
        (length,) = struct.unpack_from(order + "I", data, start + 8)
        end = start + 12 + length
        if end > len(data):
            break
        ids.append(data[start : start + 8])
        names.append(data[start + 12 : end].split(b"\0", 1)[0])
        start = end
    return ids, names, data[start:]

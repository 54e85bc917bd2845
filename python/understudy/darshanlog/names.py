"""The names behind the record ids: mostly paths of files."""

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from understudy.darshanlog.stream import Region

NAMES_BYTES = 1 << 20
"""Plain bytes of name records taken at a time."""

MAX_NAME_BYTES = 1 << 18
"""No name is as long."""

HEAD_BYTES = 8  # of the id before a name

Names = tuple[npt.NDArray[np.uint64], list[bytes]]
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NameBlock:
    """Record ids (u8 [n]) and where in `data` the name of each starts and ends (i8 [n]).

    `repeats`: none are here, but as many as in an earlier block, byte for byte."""

    ids: npt.NDArray[np.uint64]
    data: bytes
    starts: Places
    ends: Places
    repeats: int = 0

    @classmethod
    def of(cls, ids: npt.NDArray[np.uint64], texts: list[bytes]) -> "NameBlock":
        """Make a block from names."""
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        starts = np.concatenate([[0], ends[:-1]])[: len(texts)]
        return cls(ids=ids, data=b"".join(texts), starts=starts, ends=ends)

    def of_rows(self, rows: Places) -> "NameBlock":
        """Some of its names."""
        if len(rows) == len(self.ids):
            return self
        return replace(self, ids=self.ids[rows], starts=self.starts[rows], ends=self.ends[rows])

    def texts(self) -> list[bytes]:
        """The names."""
        pairs = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        return [self.data[start:end] for start, end in pairs]


def name_blocks(region: Region, order: str, *, counted: bool) -> Iterator[NameBlock]:
    """Blocks of record ids and their names, in the order of the file, with every repetition.

    A block whose bytes came before is counted and not split again: a few hundred kB can hold GiB
    of them."""
    split = _split_counted if counted else split_terminated
    rest, nothing = b"", NameBlock.of(np.empty(0, np.uint64), [])
    blocks: dict[bytes, tuple[int, int]] = {}  # names of a block, and where its rest begins
    for data in region.blocks(NAMES_BYTES):
        whole = rest + data
        digest = hashlib.blake2b(whole, digest_size=16).digest()
        if digest in blocks:
            count, begin = blocks[digest]
            rest = whole[begin:]
            if count:
                yield replace(nothing, repeats=count)
            continue
        block, begin = split(whole, order)
        blocks[digest] = len(block.ids), begin
        rest = whole[begin:]
        if len(rest) > MAX_NAME_BYTES:
            raise region.error(f"a name takes more than {MAX_NAME_BYTES} bytes")
        if len(block.ids):
            yield block
    if rest:
        raise region.error(f"the data ends in the middle of a name, after {len(rest)} bytes of it")


def first_of_each(ids: npt.NDArray[np.uint64]) -> Places:
    """Where each id comes first, in order."""
    _, first = np.unique(ids, return_index=True)
    return np.sort(first)


def without_repeats(blocks: Iterable[NameBlock]) -> Iterator[NameBlock]:
    """One name of each record id of a block, the first that is not empty, and none of ids that the
    block before names. Each process can have written the names of all: a few kB hold GiB of them,
    whose memory is then that of the different ones."""
    before: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
    for block in blocks:
        if block.repeats:
            continue
        empty = block.ends == block.starts
        both = np.sort(np.concatenate([block.ids, before]))
        if (both[1:] != both[:-1]).all():
            before = block.ids[~empty] if empty.any() else block.ids
            yield block
            continue
        best_first = np.concatenate([np.flatnonzero(~empty), np.flatnonzero(empty)])
        one_each = np.sort(best_first[first_of_each(block.ids[best_first])])
        new = one_each[~np.isin(block.ids[one_each], before)]
        before = block.ids[one_each[~empty[one_each]]]
        if len(new):
            yield block.of_rows(new)


def split_terminated(data: bytes, order: str) -> tuple[NameBlock, int]:
    """Records of an id (8 bytes) and a name up to a zero byte; and where the rest begins."""
    zeros = np.flatnonzero(np.frombuffer(data, np.uint8) == 0)
    # A zero that is far behind another ends a name, be that other one an end or part of an id.
    ends = np.diff(zeros, prepend=-1) > HEAD_BYTES
    last = np.maximum.accumulate(np.where(ends, zeros, -1))
    unsure = np.flatnonzero(~ends & (zeros - last > HEAD_BYTES))
    if len(unsure):  # the first ends a name, and then each that is far enough behind the last end
        places = zeros[unsure]
        behind = np.searchsorted(places, places + HEAD_BYTES, "right").data
        ending, n = [], 0
        while n < len(unsure):
            ending.append(n)
            n = behind[n]
        ends[unsure[ending]] = True
    stops = zeros[ends]
    begins = np.concatenate([[0], stops + 1])
    return _block(data, order, begins[:-1], begins[:-1] + HEAD_BYTES, stops), int(begins[-1])


def _split_counted(data: bytes, order: str) -> tuple[NameBlock, int]:
    """Records of an id (8 bytes), a length (4 bytes) and a name, as in log version 3.00; a name
    ends at its first zero byte, if it has one."""
    begins, stops = [], []
    begin, head_bytes = 0, HEAD_BYTES + 4
    unpack = struct.Struct(order + "I").unpack_from
    while begin + head_bytes <= len(data):
        end = begin + head_bytes + unpack(data, begin + HEAD_BYTES)[0]
        if end > len(data):
            break
        zero = data.find(b"\0", begin + head_bytes, end)
        begins.append(begin)
        stops.append(end if zero < 0 else zero)
        begin = end
    first = np.array(begins, np.int64)
    return _block(data, order, first, first + head_bytes, np.array(stops, np.int64)), begin


def _block(data: bytes, order: str, begins: Places, starts: Places, ends: Places) -> NameBlock:
    ids = gathered(data, begins, HEAD_BYTES).view(order + "u8").astype("=u8")[:, 0]
    return NameBlock(ids=ids, data=data, starts=starts, ends=ends)


def gathered(data: bytes, starts: Places, size: int) -> npt.NDArray[np.uint8]:
    """The `size` bytes from each of some places: u8 [n, size]."""
    if not len(starts):
        return np.empty((0, size), np.uint8)
    view: npt.NDArray[np.void] = np.ndarray(
        (len(data) - size + 1,), dtype=f"V{size}", buffer=data, strides=(1,)
    )
    return view[starts].view(np.uint8).reshape(len(starts), size)

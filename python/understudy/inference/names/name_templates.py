"""File names as templates: the name with its numbers taken out, and the numbers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from understudy.darshanlog.names import NameBlock, gathered
from understudy.inference.table import MAX_FIELDS

MAX_TEMPLATES = 8192
MAX_SINGLES = 1000  # templates of one file each that are taken for meaningful names
MAX_KINDS = 32  # of names of one length in a block
NAMELESS = 0  # template of files without usable names

_ZERO, _TEN = np.uint8(ord("0")), np.uint8(10)

_JUNK = re.compile(
    rb"\.locktest\.\d+$|_cid-.*\.sm$|^<STD(IN|OUT|ERR)>$|^(/dev(?!/shm/)|/proc|/sys|/etc|/usr/lib|/lib)/|\.shfp\.\d+$"
)


Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Alike:
    """Names that differ in nothing but their digits, which are at the same places: which of a
    block, and their bytes (u8 [n, length])."""

    which: Places
    letters: npt.NDArray[np.uint8]

    @property
    def first(self) -> bytes:
        """The first of them."""
        text: bytes = self.letters[0].tobytes()
        return text

    def one_by_one(self) -> Iterator[tuple[int, bytes]]:
        """Each, and its place in the block."""
        return zip(self.which.tolist(), (row.tobytes() for row in self.letters), strict=True)


def alike(block: NameBlock) -> list[Alike]:
    """The names of a block, by kind in the order of the first of each kind."""
    size = block.ends - block.starts
    order = np.argsort(size, kind="stable")
    groups: list[Alike] = []
    for members in np.split(order, np.flatnonzero(np.diff(size[order])) + 1):
        length = int(size[members[0]]) if len(members) else 0
        if length:
            groups += _kinds(members, gathered(block.data, block.starts[members], length))
    return sorted(groups, key=lambda some: int(some.which[0]))


def _kinds(which: Places, names: npt.NDArray[np.uint8]) -> Iterator[Alike]:
    """The kinds among names of one length; if there are too many, some are found again."""
    for _ in range(MAX_KINDS):
        digit = (names - _ZERO) < _TEN
        same = ((digit == digit[0]) & (digit | (names == names[0]))).all(axis=1)
        if same.all():
            yield Alike(which, names)
            return
        yield Alike(which[same], names[same])
        which, names = which[~same], names[~same]
    for n in range(len(which)):
        yield Alike(which[n : n + 1], names[n : n + 1])


def is_junk(name: bytes) -> bool:
    """True if a file is MPI's, the system's or a standard stream, not the application's."""
    return _JUNK.search(name) is not None


class Templates:
    """Names without their numbers. Each gets an index; NAMELESS is for names that are only numbers
    (obfuscated logs), or missing, or too many."""

    # A folder such as 0.05 is one number.
    _NUMBER = re.compile(rb"((?<=/)\d+\.\d+(?=/|$)|\d+)")

    def __init__(self) -> None:
        self.names: list[bytes] = [b""]
        self._index: dict[bytes, int] = {}
        self._files = [0]

    def split(self, name: bytes) -> tuple[int, list[int]]:
        """Index of the template and the numbers, coded so that 2, 02, 11 and 1.1 differ."""
        parts = self._NUMBER.split(name)
        numbers, shape = parts[1::2], b"\x00".join(parts[0::2])
        if not shape.strip(b"\x00"):
            return NAMELESS, []
        while len(numbers) > MAX_FIELDS:  # the first numbers are of folders: keep them as text
            shape = shape.replace(b"\x00", numbers.pop(0), 1)
        index = self._index.get(shape)
        if index is None:
            if len(self.names) >= MAX_TEMPLATES:
                return NAMELESS, []
            index = self._index[shape] = len(self.names)
            self.names.append(shape)
            self._files.append(0)
        self._files[index] += 1
        return index, [_code(text) for text in numbers]

    def split_all(self, names: Alike) -> tuple[int, npt.NDArray[np.int64]]:
        """As `split` for names of one template (`parted`): its index and the numbers,
        [n, MAX_FIELDS]."""
        first = names.first
        numbers = np.zeros((len(names.which), MAX_FIELDS), np.int64)
        index, codes = self.split(first)
        if codes:
            self._files[index] += len(names.which) - 1
            for k, field in enumerate(list(self._NUMBER.finditer(first))[-MAX_FIELDS:]):
                places = [n for n in range(*field.span()) if first[n] != ord(".")][-16:]
                value = numbers[:, k]  # a view
                value += _prefix(field[0].partition(b".")[2])
                for place in places:
                    value *= 10
                    value += names.letters[:, place] - _ZERO
        elif index != NAMELESS:
            self._files[index] += len(names.which) - 1
        return index, numbers

    @classmethod
    def parted(cls, names: Alike) -> Iterator[Alike]:
        """Those of one template each: names with too many numbers keep the first ones as text."""
        fields = list(cls._NUMBER.finditer(names.first))
        kept = [n for field in fields[:-MAX_FIELDS] for n in range(*field.span())]
        if not kept:
            yield names
            return
        which, rows = names.which, names.letters
        for _ in range(MAX_KINDS):
            same = (rows[:, kept] == rows[0, kept]).all(axis=1)
            yield Alike(which[same], rows[same])
            which, rows = which[~same], rows[~same]
            if not len(which):
                return
        for n in range(len(which)):
            yield Alike(which[n : n + 1], rows[n : n + 1])

    def meaningful(self) -> npt.NDArray[np.int32]:
        """Each template, or NAMELESS if too many templates have only one file: such names are made
        of random letters."""
        indices = np.arange(len(self.names), dtype=np.int32)
        single = np.array(self._files) == 1
        if single.sum() > MAX_SINGLES:
            indices[single] = NAMELESS
        return indices


def _code(text: bytes) -> int:
    """A number as an integer: its last digits, prefixed by the number of its decimals plus one."""
    whole, _, decimals = text.partition(b".")
    return int(b"%d%s" % (_prefix(decimals), (whole + decimals)[-16:]))


def _prefix(decimals: bytes) -> int:
    return 1 + min(len(decimals), 99)


def own_number(name: bytes) -> int:
    """Index of the first number of the file's own name, else of its directory's name; past the end
    if there is neither, since numbers higher up apply to all files below. The digit of an
    extension (.h5) does not count."""
    above, _, file_name = name.rpartition(b"/")
    above, _, folder = above.rpartition(b"/")
    first = above.count(b"\x00")
    if b"\x00" in re.sub(rb"\.[A-Za-z]+\x00$", b"", file_name):
        return first + folder.count(b"\x00")
    return first if b"\x00" in folder else len(name)

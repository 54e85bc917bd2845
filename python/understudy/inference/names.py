"""File names as templates: the name with its numbers taken out, and the numbers."""

import re

import numpy as np
import numpy.typing as npt

MAX_FIELDS = 6  # numbers of a name
MAX_TEMPLATES = 8192
MAX_SINGLES = 1000  # templates of one file each that are taken for meaningful names
NAMELESS = 0  # template of files without usable names

_JUNK = re.compile(
    rb"\.locktest\.\d+$|_cid-.*\.sm$|^<STD(IN|OUT|ERR)>$|^(/dev(?!/shm/)|/proc|/sys|/etc|/usr/lib|/lib)/|\.shfp\.\d+$"
)


def is_junk(name: bytes) -> bool:
    """Whether a file is MPI's, the system's or a standard stream, not the application's."""
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
        found, shape = parts[1::2], b"\x00".join(parts[0::2])
        if not shape.strip(b"\x00"):
            return NAMELESS, []
        while len(found) > MAX_FIELDS:  # the first numbers are of folders: keep them as text
            shape = shape.replace(b"\x00", found.pop(0), 1)
        index = self._index.get(shape)
        if index is None:
            if len(self.names) >= MAX_TEMPLATES:
                return NAMELESS, []
            index = self._index[shape] = len(self.names)
            self.names.append(shape)
            self._files.append(0)
        self._files[index] += 1
        return index, [_code(text) for text in found]

    def meaningful(self) -> npt.NDArray[np.int32]:
        """Each template, or NAMELESS if too many templates have only one file: such names are made
        of random letters."""
        found = np.arange(len(self.names), dtype=np.int32)
        single = np.array(self._files) == 1
        if single.sum() > MAX_SINGLES:
            found[single] = NAMELESS
        return found


def _code(text: bytes) -> int:
    """A number as an integer: its digits, prefixed by the number of its decimals plus one."""
    whole, _, decimals = text.partition(b".")
    return int(b"%d%s" % (1 + len(decimals), (whole + decimals)[-16:]))


def own_number(name: bytes) -> int:
    """Index of the first number of the file's own name, else of its directory's name; past the end
    if there is neither, since numbers higher up apply to all files below. The digit of an
    extension (.h5) does not count."""
    above, _, own = name.rpartition(b"/")
    above, _, folder = above.rpartition(b"/")
    first = above.count(b"\x00")
    if b"\x00" in re.sub(rb"\.[A-Za-z]+\x00$", b"", own):
        return first + folder.count(b"\x00")
    return first if b"\x00" in folder else len(name)

"""python3 -m nightly.rehearsal.ceph.placement DIRECTORY AHEAD LOG

CephFS places objects by a hash of the file's inode number, so two stripes may share an OSD. This
uses up inode numbers of the directory's client until one comes whose first objects, one for each
OSD, are all on different OSDs, and which AHEAD more files will precede. LOG gets a line with the
working directory, the inode and the bytes written to each OSD so far.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from nightly.rehearsal.ceph.cluster import PLACEMENT_GROUPS, Cluster, Failure

LIMIT = 20_000  # inode numbers
SHIFTS = ((13, -8, 13), (12, -16, 5), (3, -10, 15))
WORD = (1 << 32) - 1


def object_name(inode: int, number: int) -> str:
    return f"{inode:x}.{number:08x}"


def spread(inode: int, osds: int, osd_of: Callable[[str], int]) -> bool:
    """Are its first objects all on different OSDs?"""
    used: set[int] = set()
    for number in range(osds):
        osd = osd_of(object_name(inode, number))
        if osd in used:
            return False
        used.add(osd)
    return True


def _mix(words: list[int]) -> None:
    for shifts in SHIFTS:
        for at, shift in enumerate(shifts):
            other, last = words[at - 2], words[at - 1]
            moved = last >> shift if shift > 0 else last << -shift
            words[at] = ((words[at] - other - last) ^ moved) & WORD


def name_hash(name: str) -> int:
    """Of an object, by its name (Ceph's rjenkins; B. Jenkins, Dr. Dobb's Journal, 9/1997)."""
    key = name.encode()
    words = [0x9E3779B9, 0x9E3779B9, 0]
    whole = len(key) // 12 * 12
    rest = key[whole:].ljust(11, b"\0")
    rest = rest[:8] + b"\0" + rest[8:]  # the lowest byte of the last word is for the length
    for start in range(0, whole + 1, 12):
        block = key[start : start + 12] if start < whole else rest
        if start == whole:
            words[2] += len(key)
        for at in range(3):
            words[at] = words[at] + int.from_bytes(block[4 * at : 4 * at + 4], "little") & WORD
        _mix(words)
    return words[2]


def placed_by(cluster: Cluster) -> Callable[[str], int]:
    """Where an object is, as the cluster says, which is asked once for each placement group."""
    osd_of_group: dict[int, int] = {}

    def osd_of(name: str) -> int:
        group = name_hash(name) % PLACEMENT_GROUPS
        if group not in osd_of_group:
            osd_of_group[group] = cluster.osd_of(name)
        return osd_of_group[group]

    return osd_of


def next_inode(directory: Path) -> int:
    """The number that the next file gets, unless the client is given others."""
    path = directory / f".rehearsal.{os.getpid()}"
    path.touch(exist_ok=False)
    inode = path.stat().st_ino
    path.unlink()
    return inode + 1


def advance(directory: Path, ahead: int, osds: int, osd_of: Callable[[str], int]) -> int:
    """Returns the inode of the file that comes after `ahead` others."""
    inode = next_inode(directory)
    for _ in range(LIMIT):
        if spread(inode + ahead, osds, osd_of):
            return inode + ahead
        inode = next_inode(directory)
    raise Failure(f"{directory}: no inode number whose objects are on {osds} OSDs")


def main() -> None:
    directory, ahead, log = Path(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    cluster = Cluster.running(Path(os.environ["CEPH_CONF"]).parent)
    inode = advance(directory, ahead, cluster.osds, placed_by(cluster))
    row = {"job": str(Path.cwd()), "inode": inode, "written": cluster.written()}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

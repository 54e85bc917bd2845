"""python3 -m tests.rehearsal.ceph.placement DIRECTORY AHEAD LOG

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

from tests.rehearsal.ceph.cluster import Cluster, Failure

LIMIT = 20_000  # inode numbers


def spread(inode: int, osds: int, osd_of: Callable[[str], int]) -> bool:
    """Are its first objects all on different OSDs?"""
    found: set[int] = set()
    for number in range(osds):
        osd = osd_of(f"{inode:x}.{number:08x}")
        if osd in found:
            return False
        found.add(osd)
    return True


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
    inode = advance(directory, ahead, cluster.osds, cluster.osd_of)
    row = {"job": str(Path.cwd()), "inode": inode, "written": cluster.written()}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()

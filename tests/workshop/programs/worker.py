"""One of several processes of a job without MPI: worker.py NUMBER PROCESSES."""

import os
import sys
import time
from pathlib import Path

number, processes = int(sys.argv[1]), int(sys.argv[2])
MIB = 1 << 20


def rest(seconds: float) -> None:
    time.sleep(max(0.0, begin + seconds - time.monotonic()))


begin = time.monotonic()
with Path("in.all").open("rb", buffering=0) as file:  # all read the same
    os.access("@all", os.F_OK)
    while file.read(MIB):
        pass
    os.access("@", os.F_OK)
for epoch in range(2):
    rest(0.4 + 0.8 * epoch)
    os.access("@in", os.F_OK)
    for n in range(number, 200, processes):
        with Path(f"set/in_{n:05d}.bin").open("rb", buffering=0) as file:
            file.read(24_000)
    os.access("@", os.F_OK)
    rest(0.8 + 0.8 * epoch)
    os.access("@out", os.F_OK)
    with Path(f"out.{epoch}.{number:03d}").open("wb", buffering=0) as out:
        for _ in range(4):
            out.write(bytes(256 << 10))
    os.access("@", os.F_OK)
with os.fdopen(os.open("results.bin", os.O_WRONLY | os.O_CREAT, 0o644), "wb", 0) as shared:
    rest(2.0)
    os.access("@results", os.F_OK)
    os.pwrite(shared.fileno(), bytes(MIB), number * MIB)
    os.access("@", os.F_OK)
rest(2.2)

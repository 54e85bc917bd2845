"""Archiving a large Darshan log: `understudy archive` beside darshan-convert.

    PYTHONPATH=python:. python benchmarks/archive.py [--files N] [--repetitions N] [--jobs N]

Makes a log of N files, with a POSIX and an MPI-IO record each, and converts it from zlib to bzip2
and back, in separate processes, one after the other and interleaved. Prints CPU seconds (user and
system) and elapsed seconds of each: medians, and their ratio to darshan-convert. Results that are
not the same bytes end with exit status 1. darshan-convert is that of DARSHAN_RUNTIME, or on PATH;
without it, ours are compared with each other alone.
"""

import argparse
import filecmp
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.support.logs import posix_blocks, posix_names, record_id
from understudy.darshanlog.writer import write_log

THEIRS = "darshan-convert"
BATCH = 4096


def mpiio_blocks(files: int, seed: int = 2) -> Iterator[np.ndarray]:
    """MPI-IO records of the files of `posix_blocks`."""
    dice = np.random.default_rng(seed)
    names = ("INDEP_OPENS", "INDEP_WRITES", "BYTES_WRITTEN", "SIZE_WRITE_AGG_1M_4M")
    fields = [("id", "u8"), ("rank", "i8"), *((f"MPIIO_{name}", "i8") for name in names)]
    fields += [("MPIIO_F_WRITE_TIME", "f8")]
    for first in range(0, files, BATCH):
        index = np.arange(first, min(first + BATCH, files), dtype=np.int64)
        block = np.zeros(len(index), fields)
        writes = dice.integers(1, 100, len(index))
        block["id"], block["rank"] = record_id(index), index % 64
        for name, values in zip(names, (1, writes, writes << 20, writes), strict=True):
            block[f"MPIIO_{name}"] = values
        block["MPIIO_F_WRITE_TIME"] = dice.random(len(index))
        yield block


def seconds(command: list[str]) -> tuple[float, float]:
    """CPU and elapsed seconds of a command and its children."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    elapsed = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, elapsed


def measure(
    source: Path, folder: Path, to: str, theirs: str | None, options: argparse.Namespace
) -> int:
    """Prints a table; 1 where the bytes differ, else 0. Leaves our result in the folder."""
    ours = [sys.executable, "-m", "understudy", "archive", str(source), "--always", "--to", to]
    sides = {"understudy": folder / "ours", f"understudy --jobs {options.jobs}": folder / "jobs"}
    commands = {name: [*ours, "--into", str(out)] for name, out in sides.items()}
    commands[f"understudy --jobs {options.jobs}"] += ["--jobs", str(options.jobs)]
    if theirs:
        sides[THEIRS] = folder / "theirs"
        flag = ["--bzip2"] if to == "bzip2" else []
        commands[THEIRS] = [theirs, *flag, str(source), str(sides[THEIRS] / source.name)]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    differ = 0
    for _ in range(options.repetitions):
        for name, command in commands.items():
            shutil.rmtree(sides[name], ignore_errors=True)
            sides[name].mkdir()
            times[name].append(seconds(command))
        result, *others = (out / source.name for out in sides.values())
        differ += sum(not filecmp.cmp(result, other, shallow=False) for other in others)
    base = times[THEIRS if theirs else "understudy"]
    cpu, wall = (statistics.median(values) for values in zip(*base, strict=True))
    print(f"to {to}: {source.stat().st_size} bytes became {result.stat().st_size}")
    print(f"{'program':22} {'CPU s':>8} {'ratio':>6} {'elapsed s':>10} {'ratio':>6}")
    for name, values in times.items():
        cpu_s, took = (statistics.median(v) for v in zip(*values, strict=True))
        print(f"{name:22} {cpu_s:8.2f} {cpu_s / cpu:6.2f} {took:10.2f} {took / wall:6.2f}")
    if differ:
        print(f"{differ} results differ")
    return int(differ > 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=1 << 20)
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each program")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None, help="where the logs are written")
    options = parser.parse_args()
    prefix = os.environ.get("DARSHAN_RUNTIME")
    theirs = shutil.which(THEIRS, path=f"{prefix}/bin" if prefix else None)
    if not theirs:
        print(f"SKIPPED: all beside {THEIRS}: not in DARSHAN_RUNTIME nor on PATH")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        log = write_log(
            folder / "large.darshan",
            nprocs=64,
            names=posix_names(options.files),
            POSIX=posix_blocks(options.files),
            MPIIO=mpiio_blocks(options.files),
            stream_bytes=1 << 20,
        )
        print(f"{options.files} files, {options.repetitions} runs each")
        status = measure(log, folder, "bzip2", theirs, options)
        back = folder / "bzip2.darshan"
        shutil.copy(folder / "ours" / log.name, back)
        return status | measure(back, folder, "zlib", theirs, options)


if __name__ == "__main__":
    sys.exit(main())

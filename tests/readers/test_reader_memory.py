"""Memory does not grow with the number of records, nor a descriptor with that of ranks."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.readers.logs import WHOLE
from tests.readers.synthetic import only, per_process_log, rank_bytes, sizes
from understudy.contracts.workload import load
from understudy.readers import darshan

MIB = 1 << 20
PEAK = r"""
import sys, tracemalloc
from click.testing import CliRunner
from understudy.cli import main
done = CliRunner().invoke(main, ["describe", *sys.argv[1:]])
assert done.exit_code == 0, done.output
print(tracemalloc.get_traced_memory()[1] >> 10)
"""


def peak_kib(log: Path, out: Path) -> int:
    """Peak of what a process that describes a log allocated, arrays and all: what the system
    counts for a process depends on its allocator and on the size of the pages as well."""
    done = subprocess.run(
        [sys.executable, "-X", "tracemalloc", "-c", PEAK, str(log), "-o", str(out)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize("form", [b"/s/ck.%05d/part.%06d", b"/s/t%06d_r%d.bin"])
def test_memory_does_not_grow_with_records(form: bytes, tmp_path: Path) -> None:
    """1,000 ranks, 100 and 250 files each: 70 bytes kept of each record more would be too many."""
    peaks = []
    for dumps in (100, 250):
        log, out = tmp_path / f"{dumps}.darshan", tmp_path / f"{dumps}.json"
        peaks.append(peak_kib(per_process_log(log, 1000, dumps, form), out))
        log.unlink()
        stream = only(load(out))
        assert (stream.layout, stream.role) == ("file-per-process", "checkpoint")
        assert sizes(stream) == [1000 * MIB] * dumps
        assert [d.time_s for d in stream.steps] == [10.0 * k + 1 for k in range(dumps)]
    assert peaks[1] - peaks[0] < 10 << 10, peaks


def test_memory_of_a_real_log(tmp_path: Path) -> None:
    largest = max(WHOLE, key=lambda path: path.stat().st_size)
    assert peak_kib(largest, tmp_path / "out.json") < 300 << 10


def test_a_workload_of_many_unequal_ranks_is_a_small_file(tmp_path: Path) -> None:
    """65,536 ranks with a file each, all of slightly different sizes."""
    ranks = 65_536
    log, out = tmp_path / "x.darshan", tmp_path / "x.json"
    per_process_log(log, ranks, 2, spread=100_000)
    workload = darshan.read(log)
    out.write_text(workload.to_text())
    assert out.stat().st_size < 200_000
    stream = only(load(out))
    true = [MIB + (rank * 7919) % 100_001 for rank in range(ranks)]
    assert stream.layout == "file-per-process"
    assert sizes(stream) == [sum(true)] * 2
    moved = rank_bytes(stream, 1, ranks)
    assert max(abs(a - b) / b for a, b in zip(moved, true, strict=True)) < 0.1
    assert any("blocks of equal ones" in note for note in workload.source.notes)


@pytest.mark.parametrize("ranks", [7, 63])
def test_few_unequal_ranks_stay_exact(ranks: int, tmp_path: Path) -> None:
    stream = only(darshan.read(per_process_log(tmp_path / "x", ranks, 300, spread=100_000)))
    true = [MIB + (rank * 7919) % 100_001 for rank in range(ranks)]
    assert all(rank_bytes(stream, k, ranks) == true for k in (0, 150, 299))

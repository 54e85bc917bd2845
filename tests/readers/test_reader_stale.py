"""Records with bytes of other files, since a descriptor was used again out of Darshan's sight."""

from pathlib import Path

import pytest

from tests.readers.synthetic import Run, only, sizes
from understudy.contracts.workload import Workload

MIB = 1 << 20


def notes(workload: Workload) -> str:
    return " ".join(workload.source.notes)


def dumps_of_ten(run: Run, *, trace: bool, stale: bool = True) -> None:
    """Five dumps of 40 MiB by two ranks; of the fourth, 10 MiB of each rank were recorded for the
    second file of that rank, behind its own bytes."""
    for k in range(5):
        for rank in range(2):
            at_s, size, end_s = 20.0 * k + 2, 20 * MIB, 1.0
            segments = [
                (n * 10 * MIB, 10 * MIB, at_s + 0.5 * n, at_s + 0.5 * n + 0.4) for n in range(2)
            ]
            if stale and k == 3:
                size, segments = 10 * MIB, segments[:1]
            if stale and k == 1:
                size, end_s = 30 * MIB, 41.0
                segments.append((20 * MIB, 10 * MIB, 62.5, 62.9))
            file = run.write(
                f"/s/plt{k:05d}.{rank}",
                size,
                at_s,
                rank=rank,
                duration_s=end_s,
                calls=size // (10 * MIB),
            )
            if trace:
                run.add("DXT_POSIX", {"id": file, "rank": rank, "write_segments": segments})


def test_a_trace_shows_which_bytes_are_of_a_later_file(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    dumps_of_ten(run, trace=True)
    workload = run.describe(tmp_path)
    stream = only(workload)
    assert (stream.layout, sizes(stream)) == ("file-per-process", [40 * MIB] * 5)
    assert [d.overhead_bytes for d in stream.steps] == [0] * 5
    assert all(d.duration_s is not None and d.duration_s < 2 for d in stream.steps)
    assert f"{20 * MIB} B in all, which were moved to the file of that time" in notes(workload)


def test_bytes_go_to_the_file_whose_time_it_is_and_not_to_the_next(tmp_path: Path) -> None:
    """The file of the second dump is written for 30 s; the third begins just after the end."""
    run = Run(nprocs=1)
    for k, (first_s, last_s) in enumerate([(2, 1), (10, 30), (41, 1), (60, 1), (80, 1)]):
        own = [
            (n * MIB, MIB, first_s + n * last_s / 4, first_s + n * last_s / 4 + 0.1)
            for n in range(4)
        ]
        stale = [(4 * MIB, 2 * MIB, 39.0, 39.5)] if k == 0 else []
        file = run.write(
            f"/s/plt{k:05d}",
            (6 if stale else 4) * MIB,
            float(first_s),
            rank=0,
            duration_s=37.5 if stale else float(last_s),
            calls=5 if stale else 4,
        )
        run.add("DXT_POSIX", {"id": file, "rank": 0, "write_segments": own + stale})
    workload = run.describe(tmp_path)
    moved = sorted((d.time_s, d.bytes) for s in workload.streams for d in s.steps)
    assert [size for _, size in moved] == [n * MIB for n in (4, 6, 4, 4, 4)]


def test_without_a_trace_it_is_noted(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    dumps_of_ten(run, trace=False)
    workload = run.describe(tmp_path)
    assert workload.bytes == 200 * MIB
    assert f"last into the time of later files of their kind, {60 * MIB} B in all" in (
        notes(workload)
    )


@pytest.mark.parametrize("trace", [False, True])
def test_right_records_stay_as_they_are(trace: bool, tmp_path: Path) -> None:
    run = Run(nprocs=2)
    dumps_of_ten(run, trace=trace, stale=False)
    workload = run.describe(tmp_path)
    assert sizes(only(workload)) == [40 * MIB] * 5
    assert "of later files" not in notes(workload)
    assert "used again" not in notes(workload)

"""Operations without bytes: opens, stats and renames of a log."""

from pathlib import Path

import pytest

from tests.readers.synthetic import Run
from understudy.contracts.workload import Stream, provenance_of

MIB = 1 << 20


def made(stream: Stream) -> list[dict[str, tuple[tuple[int, int], ...]]]:
    """Operations by dump."""
    return [{o.kind: o.runs for o in d.operations} for d in stream.steps]


def test_opens_beside_those_of_the_data_are_of_their_dump(tmp_path: Path) -> None:
    """Each rank opens its file three times and looks at it twice; the header's rank once more."""
    run = Run(nprocs=4)
    for step in range(3):
        for rank in range(4):
            run.write(
                f"/s/ck.{step}.{rank}",
                MIB,
                20.0 * step + 5,
                rank=rank,
                OPENS=4 if rank == 0 else 3,
                STATS=2,
            )
    workload = run.describe(tmp_path)
    entry = provenance_of(workload, "/streams/0/dumps/0/operations/0/runs/0/1")
    assert entry is not None and "POSIX_OPENS" in entry.how
    assert not any(note.startswith("Contradicted") for note in workload.source.notes)


def test_a_shared_record_stands_for_all_ranks(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/a", 4 * MIB, 5.0, calls=4, OPENS=10)
    run.describe(tmp_path)


def test_a_file_that_each_time_step_opens(tmp_path: Path) -> None:
    """A monitor file: closed and opened again for each of the 20 lines that rank 0 appends."""
    run = Run(nprocs=4, run_time_s=100.0)
    file = run.write(
        "/s/monitor",
        20 * MIB,
        2.0,
        rank=0,
        calls=20,
        duration_s=95.0,
        OPENS=20,
        SEQ_WRITES=19,
        F_WRITE_TIME=0.1,
    )
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [(n * MIB, MIB, 2.0 + 5 * n, 2.1 + 5 * n) for n in range(20)],
        },
    )
    run.describe(tmp_path)


def test_files_that_move_no_byte_are_a_stream(tmp_path: Path) -> None:
    """449 of 467 files are only looked at: those that exist, and locks that are created."""
    run = Run(nprocs=2, run_time_s=100.0)
    run.write("/s/out", MIB, 90.0, rank=0)
    for burst in range(3):
        for n in range(100):
            at_s = 10.0 + 20 * burst + 0.001 * n
            file = run.file(f"/s/looked.at.{burst}.{n}")
            run.add(
                "POSIX",
                {
                    "id": file,
                    "rank": n % 2,
                    "POSIX_OPENS": 2,
                    "POSIX_STATS": 3,
                    "POSIX_F_OPEN_START_TIMESTAMP": at_s,
                    "POSIX_F_OPEN_END_TIMESTAMP": at_s,
                },
            )
    run.add(
        "POSIX",
        {
            "id": run.file("/s/lock"),
            "rank": 1,
            "POSIX_OPENS": 1,
            "POSIX_MODE": 420,
            "POSIX_F_OPEN_START_TIMESTAMP": 70.0,
            "POSIX_RENAME_SOURCES": 1,
            "POSIX_F_OPEN_END_TIMESTAMP": 70.0,
        },
    )
    run.add(
        "STDIO",
        {
            "id": run.file("/s/text"),
            "rank": -1,
            "STDIO_OPENS": 2,
            "STDIO_F_OPEN_START_TIMESTAMP": 1.0,
            "STDIO_F_OPEN_END_TIMESTAMP": 1.0,
        },
    )
    workload = run.describe(tmp_path)
    assert not any(note.startswith("Contradicted") for note in workload.source.notes)


def test_a_log_of_operations_alone(tmp_path: Path) -> None:
    """As mdtest leaves one: nothing is written."""
    run = Run(nprocs=2, run_time_s=10.0)
    for n in range(1000):
        run.add(
            "POSIX",
            {
                "id": run.file(f"/s/d/file.{n}"),
                "rank": n % 2,
                "POSIX_OPENS": 1,
                "POSIX_STATS": 1,
                "POSIX_MODE": 420,
                "POSIX_F_OPEN_START_TIMESTAMP": 1 + n * 1e-3,
                "POSIX_F_OPEN_END_TIMESTAMP": 1 + n * 1e-3,
            },
        )
    run.describe(tmp_path)


@pytest.mark.parametrize("opens", [1, 2])
def test_a_file_read_and_written_is_opened_no_more_often(opens: int, tmp_path: Path) -> None:
    """By one descriptor for both, which the player then keeps open, or by two."""
    run = Run(nprocs=1)
    read_too = {
        "READS": 1,
        "BYTES_READ": MIB,
        "MAX_BYTE_READ": MIB - 1,
        "F_READ_START_TIMESTAMP": 2.0,
        "F_READ_END_TIMESTAMP": 2.1,
    }
    run.write("/s/scratch", MIB, 1.0, rank=0, OPENS=opens, **read_too)
    run.write("/s/other", 9 * MIB, 50.0, rank=0, OPENS=5)
    workload = run.describe(tmp_path)
    written, read, _other = workload.streams
    assert read.last == written.name

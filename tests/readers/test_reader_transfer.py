"""What decides whether a replica takes as long as its application on other storage."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.synthetic import Run
from understudy.contracts.workload import Stream

MIB = 1 << 20


def made(stream: Stream) -> list[dict[str, tuple[tuple[int, int], ...]]]:
    return [{o.kind: o.runs for o in dump.operations} for dump in stream.steps]


def heat(run: Run, bins: dict[int, int], count: int) -> None:
    """STDIO bytes written in some bins of a second."""
    found = np.zeros(count, np.int64)
    for n, size in bins.items():
        found[n] = size
    run.names[9] = b"heatmap:STDIO"
    run.add(
        "HEATMAP",
        {
            "id": 9,
            "rank": 0,
            "bin_width_s": 1.0,
            "write_bins": found.tolist(),
            "read_bins": [0] * count,
        },
    )


def test_a_rank_computes_between_the_calls_of_a_dump(tmp_path: Path) -> None:
    """A dump of 0.5 s, of which each of two ranks spends 0.1 s in calls; one that lasts for most
    of the run has no such time."""
    run = Run(nprocs=2, run_time_s=100.0)
    for rank in range(2):
        run.write(
            f"/s/text.{rank}", MIB, 10.0, rank=rank, duration_s=0.5, calls=64, F_WRITE_TIME=0.1
        )
    run.write("/s/whole", 4 * MIB, 20.0, rank=0, duration_s=60.0, calls=64, F_WRITE_TIME=0.1)
    run.describe(tmp_path)


@pytest.mark.parametrize("together", [False, True])
def test_ranks_compute_between_independent_calls(together: bool, tmp_path: Path) -> None:
    """In collective calls they wait for each other: what is between them is not known."""
    run = Run(nprocs=2, run_time_s=100.0)
    for rank in range(2):
        run.write(
            "/s/shared",
            MIB,
            10.0,
            rank=rank,
            module="MPIIO",
            duration_s=0.5,
            calls=64,
            F_WRITE_TIME=0.1,
            COLL_WRITES=64 * together,
            INDEP_WRITES=64 * (not together),
        )
    run.describe(tmp_path)


def test_ranks_with_directories_of_their_own(tmp_path: Path) -> None:
    """A directory for each rank, and in it one for each dump with another in it; files of all in
    one directory for each dump; and files that all lie in one."""
    run = Run(nprocs=4, run_time_s=100.0)
    for k in range(3):
        for rank in range(4):
            at_s = 10.0 + 20 * k
            run.write(f"/s/part{rank}/{k}/field", MIB, at_s, rank=rank)
            run.write(f"/s/part{rank}/{k}/more/mesh", MIB, at_s, rank=rank)
            run.write(f"/s/all/{k}/of.{rank}", 2 * MIB, at_s + 8, rank=rank)
            run.write(f"/s/flat.{k}.{rank}", 3 * MIB, at_s + 14, rank=rank)
    run.describe(tmp_path)


def test_a_file_that_grows_is_written_over_as_it_grows(tmp_path: Path) -> None:
    """HDF5 fills the space of a dataset before its data come: that is no second pass."""
    run = Run(nprocs=1, run_time_s=100.0)
    segments = [
        (4 * MIB * k, 4 * MIB, 1.0 + 4 * k + again, 1.1 + 4 * k + again)
        for k in range(20)
        for again in (0.0, 0.2)
    ]
    file = run.write(
        "/s/grows",
        160 * MIB,
        1.0,
        rank=0,
        duration_s=77.0,
        calls=40,
        MAX_BYTE_WRITTEN=80 * MIB - 1,
    )
    run.add("DXT_POSIX", {"id": file, "rank": 0, "write_segments": segments})
    run.describe(tmp_path)


def test_a_dataset_that_grows_is_filled_first(tmp_path: Path) -> None:
    """Without a trace: rank 0 fills the space of each time step in a collective call, then each
    rank writes its rows alone. A few calls more are the library's own."""
    steps, rows, size = 8, 1000, 256
    run = Run(nprocs=2, run_time_s=100.0)
    whole = 2 * steps * rows * size
    for rank in range(2):
        filled = 0 if rank else whole
        counts = {
            "ACCESS1_ACCESS": size,
            "ACCESS1_COUNT": steps * rows,
            "SIZE_WRITE_AGG_100_1K": steps * rows + 3,
            "BYTES_WRITTEN": filled + (steps * rows + 3) * size,
            "F_WRITE_TIME": 0.5,
        }
        if filled:
            counts |= {
                "ACCESS2_ACCESS": whole // steps,
                "ACCESS2_COUNT": steps,
                "SIZE_WRITE_AGG_100K_1M": steps,
            }
        else:
            counts |= {"SIZE_WRITE_AGG_0_100": steps}  # its collective calls are empty
        file = run.write(
            "/s/grows",
            0,
            1.0,
            rank=rank,
            duration_s=77.0,
            module="MPIIO",
            calls=steps,
            COLL_OPENS=1,
            INDEP_WRITES=steps * rows + 3,
            **counts,
        )
        run.add(
            "POSIX",
            {
                "id": file,
                "rank": rank,
                "POSIX_OPENS": 1,
                "POSIX_BYTES_WRITTEN": counts["BYTES_WRITTEN"],
                "POSIX_MAX_BYTE_WRITTEN": whole - 1,
            },
        )
    run.describe(tmp_path)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_last_write_hidden_in_the_heatmap(hidden: bool, tmp_path: Path) -> None:
    """A restart file of two contents. Where another file has all bytes of the last bin, the
    heatmap seems to show the second one earlier; its end is known from a counter."""
    run = Run(nprocs=1, run_time_s=60.0)
    run.write(
        "/s/restart",
        8 * MIB,
        5.0,
        rank=0,
        module="STDIO",
        duration_s=40.0,
        calls=8,
        OPENS=2,
        MAX_BYTE_WRITTEN=4 * MIB - 1,
        F_WRITE_TIME=0.2,
    )
    bins = {5: 4 * MIB, 30: MIB, 45: 4 * MIB}
    if hidden:
        run.write("/s/last", 9 * MIB, 45.2, rank=0, module="STDIO", duration_s=0.3)
        bins[45] = 9 * MIB
    else:
        del bins[30]
    heat(run, bins, 60)
    run.describe(tmp_path)


def test_time_steps_go_with_the_files_of_their_bin(tmp_path: Path) -> None:
    """Text is appended at each time step; every second time step has files of their own, whose
    times are known. In the original both were written one after the other."""
    run = Run(nprocs=2, run_time_s=60.0)
    run.write("/s/text", 9 * MIB, 5.0, rank=0, module="STDIO", duration_s=40.1, calls=9)
    bins = {5 + 5 * k: MIB for k in range(9)}
    for k in range(1, 4):
        at_s = 5.3 + 10.0 * k
        run.write(f"/s/part.{k}", 2 * MIB, at_s, rank=1, module="STDIO", duration_s=0.1)
        bins[5 + 10 * k] += 2 * MIB
    heat(run, bins, 60)
    run.describe(tmp_path)


def test_a_file_without_bytes_is_created_again_and_again(tmp_path: Path) -> None:
    """A test whether one can write: created and removed each time. A file that is opened once, or
    is not created, stays."""
    run = Run(nprocs=2, run_time_s=100.0)
    run.write("/s/out", MIB, 50.0, rank=0)
    for name, opens, mode in (("test", 4, 420), ("lock", 1, 420), ("looked", 4, 0)):
        run.add(
            "POSIX",
            {
                "id": run.file(f"/s/{name}"),
                "rank": 1,
                "POSIX_OPENS": opens,
                "POSIX_MODE": mode,
                "POSIX_F_OPEN_START_TIMESTAMP": 10.0,
                "POSIX_F_OPEN_END_TIMESTAMP": 10.0,
            },
        )
    run.describe(tmp_path)

"""Layers that differ, and are completed from one another where possible."""

from pathlib import Path
from typing import Any

import pytest

from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.contracts.workload import Workload

MIB = 1 << 20


def notes(workload: Workload) -> str:
    return "\n".join(workload.source.notes)


def dataset(run: Run, name: str, size: int, at_s: float, rank: int = -1, **more: Any) -> int:
    """The record of a dataset in a file."""
    file = run.file(name)
    run.add(
        "H5D",
        {
            "id": run.file(f"{name}:/u"),
            "file_rec_id": file,
            "rank": rank,
            "H5D_OPENS": 1,
            "H5D_BYTES_WRITTEN": size,
            "H5D_WRITES": int(size > 0),
            "H5D_DATATYPE_SIZE": 8,
            "H5D_F_WRITE_START_TIMESTAMP": at_s,
            "H5D_F_WRITE_END_TIMESTAMP": at_s + 0.1,
        }
        | more,
    )
    return file


# -- HDF5 records of some ranks are missing -------------------------------------------------------


@pytest.mark.parametrize("reduced", [True, False], ids=["shared", "of each rank"])
def test_a_missing_dataset_record_is_completed_from_mpiio(reduced: bool, tmp_path: Path) -> None:
    """Rank 0 of four lacks its record in the second of three files; MPI-IO has all bytes."""
    run = Run(nprocs=4)
    for step in range(3):
        name, at_s = f"/s/ck.{step}.h5", 10.0 * step + 1
        for rank in range(1 if step == 1 else 0, 4):
            dataset(run, name, MIB, at_s, rank)
        if reduced:
            run.write(name, 4 * MIB + 800, at_s, module="MPIIO", calls=4)
        else:
            for rank in range(4):
                more = 800 * (rank == 0)
                run.write(name, MIB + more, at_s, rank=rank, module="MPIIO")
        run.write(name, 4 * MIB + 800, at_s, rank=0)
    workload = run.describe(tmp_path)
    said("mpi-io-recorded-them", notes(workload), MIB=MIB)


def test_a_missing_dataset_record_takes_the_bytes_of_mpiio(tmp_path: Path) -> None:
    """The rank without a record moved half as much as the others."""
    run = Run(nprocs=2)
    dataset(run, "/s/a.h5", 2 * MIB, 1.0, rank=1)
    for rank, size in ((0, MIB), (1, 2 * MIB)):
        run.write("/s/a.h5", size, 1.0, rank=rank, module="MPIIO")
    run.write("/s/a.h5", 3 * MIB, 1.0, rank=0)
    run.describe(tmp_path)


def test_a_rank_that_writes_nothing_is_not_missing(tmp_path: Path) -> None:
    """It has a record without bytes: what MPI-IO moved more is the library's."""
    run = Run(nprocs=2)
    for rank, size in ((0, 0), (1, 2 * MIB)):
        dataset(run, "/s/a.h5", size, 1.0, rank)
    run.write("/s/a.h5", 4 * MIB, 1.0, module="MPIIO")
    run.write("/s/a.h5", 4 * MIB, 1.0, rank=0)
    workload = run.describe(tmp_path)
    assert "HDF5 records of some ranks" not in notes(workload)


# -- incomplete POSIX records ---------------------------------------------------------------------


@pytest.mark.parametrize("partial", [True, False])
def test_incomplete_posix_records_do_not_override_mpiio(partial: bool, tmp_path: Path) -> None:
    """97 % of a file that MPI-IO wrote once; where POSIX is complete, the rest was rewritten."""
    size = 100 * MIB
    run = Run(nprocs=4, partial=["POSIX"] if partial else [])
    run.write("/s/a.dat", size, 1.0, module="MPIIO", calls=4)
    below = 97 * MIB if partial else size
    run.write("/s/a.dat", below, 1.0, rank=0, MAX_BYTE_WRITTEN=97 * MIB - 1)
    workload = run.describe(tmp_path, partial=True)
    assert ("bytes of the files" in notes(workload)) == (not partial)
    assert (f"With {3 * MIB} B through MPI-IO that the incomplete POSIX" in notes(workload)) == (
        partial
    )


def test_what_hdf5_writes_of_a_file_without_data_is_noted(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    file = run.write("/s/empty.h5", 96, 1.0, rank=0)
    run.add("H5F", {"id": file, "rank": 0, "H5F_OPENS": 1})
    run.write("/s/other", MIB, 2.0, rank=0)
    said("opened-hdf-without-byte", notes(run.describe(tmp_path)))

"""Layers that differ, and are completed from one another where possible; layouts of datasets."""

from typing import Any

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run

# HDF5 records of some ranks are missing.


@case(reduced=FLAGS)
def missing_dataset_record_is_completed_from_mpiio(reduced: bool) -> Run:
    """Rank 0 of four lacks its record in the second of three files; MPI-IO has all bytes."""
    run = Run()
    for step in range(3):
        name, at_s = f"/s/ck.{step}.h5", 10.0 * step + 1
        for rank in range(1 if step == 1 else 0, 4):
            run.dataset(name, MIB, at_s, rank)
        if reduced:
            run.write(name, 4 * MIB + 800, at_s, module="MPIIO", calls=4)
        for rank in range(0 if reduced else 4):
            run.write(name, MIB + 800 * (rank == 0), at_s, rank=rank, module="MPIIO")
        run.write(name, 4 * MIB + 800, at_s, rank=0)
    return run


@case()
def missing_dataset_record_takes_the_bytes_of_mpiio() -> Run:
    """The rank without a record moved half as much as the others."""
    run = Run(2)
    run.dataset("/s/a.h5", 2 * MIB, 1.0, rank=1)
    for rank, size in ((0, MIB), (1, 2 * MIB)):
        run.write("/s/a.h5", size, 1.0, rank=rank, module="MPIIO")
    run.write("/s/a.h5", 3 * MIB, 1.0, rank=0)
    return run


@case()
def rank_that_writes_nothing_is_not_missing() -> Run:
    """It has a record without bytes: what MPI-IO moved more is the library's."""
    run = Run(2)
    for rank, size in ((0, 0), (1, 2 * MIB)):
        run.dataset("/s/a.h5", size, 1.0, rank)
    run.write("/s/a.h5", 4 * MIB, 1.0, module="MPIIO")
    run.write("/s/a.h5", 4 * MIB, 1.0, rank=0)
    return run


@case()
def record_of_hdf5_of_all_ranks_but_one() -> Run:
    """Rank 0 has no record of HDF5, but one of MPI-IO like the others."""
    run = Run()
    for rank in range(4):
        run.write("/s/a.h5", MIB, 1.0, module="MPIIO", rank=rank, COLL_OPENS=1)
        if rank:
            run.record("H5F", "/s/a.h5", rank, OPENS=1)
            more = {"SIZE_WRITE_AGG_100K_1M": 1, "USE_MPIIO_COLLECTIVE": 1, "DATATYPE_SIZE": 0}
            run.dataset("/s/a.h5", MIB, 1.0, rank, **more)
    return run


@case(partial=FLAGS)
def incomplete_posix_records_do_not_override_mpiio(partial: bool) -> Run:
    """97 % of a file that MPI-IO wrote once; where POSIX is complete, the rest was rewritten."""
    size, below = 100 * MIB, 97 * MIB if partial else 100 * MIB
    run = Run(partial=["POSIX"] if partial else [], reading={"partial": True})
    run.write("/s/a.dat", size, 1.0, module="MPIIO", calls=4)
    run.write("/s/a.dat", below, 1.0, rank=0, MAX_BYTE_WRITTEN=97 * MIB - 1)
    return run


@case()
def hdf5_file_without_data() -> Run:
    run = Run(1)
    run.write("/s/empty.h5", 96, 1.0, rank=0)
    run.record("H5F", "/s/empty.h5", OPENS=1)
    run.write("/s/other", MIB, 2.0, rank=0)
    return run


@case(interface=("MPIIO", "H5D"))
def ranks_that_moved_one_of_two_shares(interface: str) -> Run:
    """Of 16 ranks eight wrote 5 blocks and eight 4, as those of MACSio: the bytes of the fastest
    and of the slowest rank, the sum and the variance tell how many of each there are."""
    block, run = 184_512, Run(16)
    more = {"FASTEST_RANK": 9, "FASTEST_RANK_BYTES": 4 * block, "SLOWEST_RANK": 7}
    more |= {"SLOWEST_RANK_BYTES": 5 * block, "F_VARIANCE_RANK_BYTES": (block / 2) ** 2}
    more |= {"ACCESS1_ACCESS": block, "ACCESS1_COUNT": 72}
    more |= {"SIZE_WRITE_AGG_100K_1M": 72, "SIZE_WRITE_AGG_0_100": 8}
    if interface == "MPIIO":
        more |= {"COLL_OPENS": 16, "INDEP_WRITES": 0, "COLL_WRITES": 80}
        run.write("/s/a.h5", 72 * block, 1.0, module="MPIIO", calls=80, **more)
    else:
        run.record("H5F", "/s/a.h5", -1, OPENS=16)
        more |= {"OPENS": 16, "WRITES": 80, "USE_MPIIO_COLLECTIVE": 1, "F_WRITE_TIME": 1.0}
        run.dataset("/s/a.h5", 72 * block, 1.0, DATATYPE_SIZE=0, **more)
    return run


@case(small=(0, 16_384))
def library_that_makes_other_calls_of_its_data(small: int) -> Run:
    """4 MiB in four collective calls of HDF5, which are 16,384 calls of POSIX."""
    run = Run()
    run.record("H5F", "/s/a.h5", -1, OPENS=4)
    more = {"WRITES": 4, "F_WRITE_TIME": 1.0, "USE_MPIIO_COLLECTIVE": 1, "DATATYPE_SIZE": 0}
    run.dataset("/s/a.h5", 4 * MIB, 1.0, OPENS=4, SIZE_WRITE_AGG_100K_1M=4, **more)
    sizes = {"SIZE_WRITE_100_1K": small} if small else {"SIZE_WRITE_100K_1M": 4}
    run.write("/s/a.h5", 4 * MIB, 1.0, calls=small or 4, OPENS=4, **sizes)
    return run


# Chunks, and what they are filled with.

CHUNKS = {"CHUNK_SIZE_D1": 64, "CHUNK_SIZE_D2": 128}


def dataset(run: Run, size: int, below: int, name: str = "/s/a.h5", **more: Any) -> Run:
    """A dataset of doubles, what all ranks wrote to it and what POSIX did."""
    run.record("H5F", name, -1, OPENS=4)
    usual = {"OPENS": 4, "WRITES": 4, "SIZE_WRITE_AGG_100K_1M": 4, "DATASPACE_NDIMS": 2}
    run.dataset(name, size, 1.0, **(usual | {"DATASPACE_NPOINTS": size // 8} | more))
    top = {"BYTES_WRITTEN": below, "WRITES": 8, "MAX_BYTE_WRITTEN": size + 2047}
    run.record("POSIX", name, -1, OPENS=4, **top)
    return run


@case(
    below=(MIB, 1_900_000, 2 * MIB + 2048, 3 * MIB, 4 * MIB + 2048),
    more=({}, {"CHUNK_SIZE_D1": 64}, CHUNKS),
)
def chunks_and_fill(below: int, more: dict[str, int]) -> Run:
    """Fewer bytes at the storage than in the dataset are those of a compressed one."""
    return dataset(Run(), 2 * MIB, below, **more)


@case()
def dataset_that_grows_is_filled_as_it_is_written() -> Run:
    """H5D has the shape that it had when it was opened."""
    more = {"DATASPACE_NPOINTS": MIB // 8, "CHUNK_SIZE_D1": 1024, "CHUNK_SIZE_D2": 128}
    return dataset(Run(), 8 * MIB, 16 * MIB + 4096, **more)


@case()
def files_of_a_stream_that_differ_have_no_common_layout() -> Run:
    run = Run()
    for step in range(3):
        at_s = 20.0 * step + 1
        more = {"F_WRITE_START_TIMESTAMP": at_s, "F_WRITE_END_TIMESTAMP": at_s + 1}
        more |= CHUNKS if step else {}
        dataset(run, 2 * MIB, 2 * MIB + 2048, f"/s/a{step}.h5", **more)
    return run


@case()
def dataset_that_grows_is_filled_first() -> Run:
    """Without a trace: rank 0 fills the space of each time step in a collective call, then each
    rank writes its rows alone. A few calls more are the library's own."""
    steps, rows, size = 8, 1000, 256
    run, alone = Run(2), steps * rows + 3
    whole = 2 * steps * rows * size
    for rank in range(2):
        moved = (0 if rank else whole) + alone * size
        counts = {"BYTES_WRITTEN": moved, "SIZE_WRITE_AGG_100_1K": alone, "INDEP_WRITES": alone}
        counts |= {"ACCESS1_ACCESS": size, "ACCESS1_COUNT": steps * rows, "COLL_OPENS": 1}
        if rank:
            counts["SIZE_WRITE_AGG_0_100"] = steps  # its collective calls are empty
        else:
            counts |= {"ACCESS2_ACCESS": whole // steps, "ACCESS2_COUNT": steps}
            counts["SIZE_WRITE_AGG_100K_1M"] = steps
        more = {"module": "MPIIO", "calls": steps, "duration_s": 77.0, "F_WRITE_TIME": 0.5}
        run.write("/s/grows", 0, 1.0, rank=rank, **more, **counts)
        top = {"BYTES_WRITTEN": moved, "MAX_BYTE_WRITTEN": whole - 1}
        run.record("POSIX", "/s/grows", rank, OPENS=1, **top)
    return run

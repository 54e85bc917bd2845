"""Opens, stats and renames, reads between writes, time between calls, ways to use files."""

from typing import Any

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run, access

# Operations without bytes.


@case()
def opens_beside_those_of_the_data_are_of_their_dump() -> Run:
    """Each rank opens its file three times and looks at it twice; the header's rank once more."""
    run = Run()
    for step in range(3):
        for rank in range(4):
            more = {"OPENS": 4 if rank == 0 else 3, "STATS": 2}
            run.write(f"/s/ck.{step}.{rank}", MIB, 20.0 * step + 5, rank=rank, **more)
    return run


@case()
def opens_of_a_shared_record_are_those_of_all_ranks() -> Run:
    run = Run()
    run.write("/s/a", 4 * MIB, 5.0, calls=4, OPENS=10)
    return run


@case()
def file_that_each_time_step_opens() -> Run:
    """A monitor file: closed and opened again for each of the 20 lines that rank 0 appends."""
    run = Run()
    segments = [(n * MIB, MIB, 2.0 + 5 * n, 2.1 + 5 * n) for n in range(20)]
    more = {"duration_s": 95.0, "OPENS": 20, "SEQ_WRITES": 19, "F_WRITE_TIME": 0.1}
    run.traced("/s/monitor", segments, **more)
    return run


@case()
def files_that_move_no_byte_are_a_stream() -> Run:
    """449 of 467 files are only looked at: those that exist, and locks that are created."""
    run = Run(2)
    run.write("/s/out", MIB, 90.0, rank=0)
    for burst in range(3):
        for n in range(100):
            at_s = 10.0 + 20 * burst + 0.001 * n
            run.opened(f"/s/looked.at.{burst}.{n}", at_s, n % 2, OPENS=2, STATS=3)
    run.opened("/s/lock", 70.0, 1, MODE=420, RENAME_SOURCES=1)
    run.opened("/s/text", 1.0, -1, "STDIO", OPENS=2)
    return run


@case()
def log_of_operations_alone() -> Run:
    """As mdtest leaves one: nothing is written."""
    run = Run(2, 10.0)
    for n in range(1000):
        run.opened(f"/s/d/file.{n}", 1 + n * 1e-3, n % 2, STATS=1, MODE=420)
    return run


@case(opens=(1, 2))
def file_that_is_read_and_written_is_opened_no_more_often(opens: int) -> Run:
    """By one descriptor for both, which the player then keeps open, or by two."""
    run = Run(1)
    more = {"READS": 1, "BYTES_READ": MIB, "MAX_BYTE_READ": MIB - 1}
    more |= {"F_READ_START_TIMESTAMP": 2.0, "F_READ_END_TIMESTAMP": 2.1}
    run.write("/s/scratch", MIB, 1.0, rank=0, OPENS=opens, **more)
    run.write("/s/other", 9 * MIB, 50.0, rank=0, OPENS=5)
    return run


@case()
def file_without_bytes_is_created_again_and_again() -> Run:
    """A test whether one can write: created and removed each time. A file that is opened once, or
    is not created, stays."""
    run = Run(2)
    run.write("/s/out", MIB, 50.0, rank=0)
    for name, opens, mode in (("test", 4, 420), ("lock", 1, 420), ("looked", 4, 0)):
        run.opened(f"/s/{name}", 10.0, 1, OPENS=opens, MODE=mode)
    return run


@case()
def mapped_files() -> Run:
    run = Run(1)
    run.write("/s/a", MIB, 1.0, rank=0, MMAPS=5000)
    return run


# Files that are read between the writes to them.

LOOKUPS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("STDIO", {"SEEKS": 1000}),
    ("POSIX", {"RW_SWITCHES": 800}),
    # Others are streams of their own.
    ("STDIO", {"SEEKS": 600}),  # as many as there are reads
    ("STDIO", {"SEEKS": 1000, "F_READ_START_TIMESTAMP": 4.0, "F_READ_END_TIMESTAMP": 6.0}),
    ("POSIX", {"RW_SWITCHES": 2}),  # written, read and written again in one open
    ("POSIX", {"RW_SWITCHES": 800, "OPENS": 500}),  # opens explain it
    ("POSIX", {"RW_SWITCHES": 800, "SEQ_WRITES": 500}),  # of a cache of pixels, at random
)


@case(row=LOOKUPS)
def database(row: tuple[str, dict[str, Any]]) -> Run:
    """1,000 writes of 100 B from 1 s to 3 s and 600 reads of 300 B."""
    module, counters = row
    run = Run(1)
    more = {"module": module, "duration_s": 2.0}
    file = run.file("/s/app.db")
    reads = access(file, 180_000, 1.0, calls=600, write=False, **more)
    record = access(file, 100_000, 1.0, calls=1000, rank=0, **more)
    record |= {key: value for key, value in reads.items() if value and not record.get(key)}
    run.add(module, record | {f"{module}_{name}": value for name, value in counters.items()})
    return run


# What decides whether a replica takes as long as its application on other storage.


@case()
def rank_computes_between_the_calls_of_a_dump() -> Run:
    """A dump of 0.5 s, of which each of two ranks spends 0.1 s in calls; one that lasts for most
    of the run has no such time."""
    run = Run(2)
    more = {"calls": 64, "F_WRITE_TIME": 0.1}
    for rank in range(2):
        run.write(f"/s/text.{rank}", MIB, 10.0, rank=rank, duration_s=0.5, **more)
    run.write("/s/whole", 4 * MIB, 20.0, rank=0, duration_s=60.0, **more)
    return run


@case(together=FLAGS)
def ranks_compute_between_independent_calls(together: bool) -> Run:
    """In collective calls they wait for each other: what is between them is not known."""
    run = Run(2)
    more = {"COLL_WRITES": 64 * together, "INDEP_WRITES": 64 * (not together)}
    more |= {"duration_s": 0.5, "calls": 64, "F_WRITE_TIME": 0.1}
    for rank in range(2):
        run.write("/s/shared", MIB, 10.0, rank=rank, module="MPIIO", **more)
    return run


@case()
def file_that_grows_is_written_over_as_it_grows() -> Run:
    """HDF5 fills the space of a dataset before its data come: that is no second pass."""
    run = Run(1)
    segments = [
        (4 * MIB * k, 4 * MIB, 1.0 + 4 * k + again, 1.1 + 4 * k + again)
        for k in range(20)
        for again in (0.0, 0.2)
    ]
    more = {"duration_s": 77.0, "F_WRITE_TIME": 77.0, "MAX_BYTE_WRITTEN": 80 * MIB - 1}
    run.traced("/s/grows", segments, **more)
    return run


@case(hidden=FLAGS)
def last_write_hidden_in_the_heatmap(hidden: bool) -> Run:
    """A restart file of two contents. Where another file has all bytes of the last bin, the
    heatmap seems to show the second one earlier; its end is known from a counter."""
    run = Run(1, 60.0)
    more = {"OPENS": 2, "MAX_BYTE_WRITTEN": 4 * MIB - 1, "F_WRITE_TIME": 0.2}
    more |= {"module": "STDIO", "duration_s": 40.0, "calls": 8}
    run.write("/s/restart", 8 * MIB, 5.0, rank=0, **more)
    bins = {5: 4 * MIB, 45: 4 * MIB}
    if hidden:
        run.write("/s/last", 9 * MIB, 45.2, rank=0, module="STDIO", duration_s=0.3)
        bins |= {30: MIB, 45: 9 * MIB}
    run.heatmap(bins, 60, module="STDIO")
    return run


@case()
def time_steps_go_with_the_files_of_their_bin() -> Run:
    """Text is appended at each time step; every second time step has files of their own, whose
    times are known. In the original both were written one after the other."""
    run = Run(2, 60.0)
    run.write("/s/text", 9 * MIB, 5.0, rank=0, module="STDIO", duration_s=40.1, calls=9)
    bins = {5 + 5 * k: MIB for k in range(9)}
    for k in range(1, 4):
        run.write(f"/s/part.{k}", 2 * MIB, 5.3 + 10.0 * k, rank=1, module="STDIO")
        bins[5 + 10 * k] += 2 * MIB
    run.heatmap(bins, 60, module="STDIO")
    return run


# The ways to use the files of a stream.


@case()
def file_that_is_opened_and_written_as_a_whole() -> Run:
    run = Run(2)
    more = {"OPENS": 6, "SEQ_WRITES": 0, "MAX_BYTE_WRITTEN": MIB - 1}
    run.write("/s/a.chk", 6 * MIB, 1.0, rank=0, calls=6, duration_s=60.0, **more)
    return run


@case()
def files_of_each_step_that_are_read_in_the_next() -> Run:
    """They are no appended one."""
    run = Run(1)
    sizes = {"calls": 4, "SIZE_WRITE_100K_1M": 4, "CONSEC_WRITES": 3, "SEQ_WRITES": 3}
    for n in range(12):
        more = {}
        if n < 11:
            more = {"READS": 4, "OPENS": 2, "BYTES_READ": MIB, "MAX_BYTE_READ": MIB - 1}
            more |= {"SIZE_READ_100K_1M": 4, "CONSEC_READS": 3, "SEQ_READS": 3, "RW_SWITCHES": 1}
            more |= {
                "F_READ_START_TIMESTAMP": 8.0 * n + 9.5,
                "F_READ_END_TIMESTAMP": 8.0 * n + 9.6,
            }
        run.write(f"/s/p{n:03d}", MIB, 8.0 * n + 1, rank=0, **sizes, **more)
    return run

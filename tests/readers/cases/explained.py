"""What counters of a log tell against its description, and what they do not tell."""

from typing import Any

from tests.readers.cases import MIB, Runs, case
from tests.readers.synthetic import Run

IN_ORDER = {"CONSEC_WRITES": 3, "SEQ_WRITES": 3}
PAGES = {"CONSEC_WRITES": 1023, "SEQ_WRITES": 1023, "FILE_NOT_ALIGNED": 1024}
PAGES |= {"ACCESS1_ACCESS": 8192, "ACCESS1_COUNT": 1024, "MAX_BYTE_WRITTEN": 8 * MIB + 99}


def reads(size: int, at_s: float, calls: int = 1) -> dict[str, float]:
    """Counters of bytes that are read besides."""
    return {
        "READS": calls,
        "BYTES_READ": size,
        "MAX_BYTE_READ": size - 1,
        "F_READ_TIME": 0.1,
        "F_READ_START_TIMESTAMP": at_s,
        "F_READ_END_TIMESTAMP": at_s + 0.1,
    }


# A file that one process writes: its bytes, calls and other counters.
WRITTEN: dict[str, tuple[int, int, dict[str, Any]]] = {
    "as predicted": (MIB, 4, IN_ORDER),
    "few consecutive": (MIB, 4, IN_ORDER | {"CONSEC_WRITES": 1}),
    "a file that is longer": (MIB, 4, IN_ORDER | {"MAX_BYTE_WRITTEN": 2 * MIB - 1}),
    "two sizes": (MIB, 4, IN_ORDER | {"SIZE_WRITE_100K_1M": 2, "SIZE_WRITE_1K_10K": 2}),
    "another size": (MIB, 4, IN_ORDER | {"ACCESS1_ACCESS": 8192, "SIZE_WRITE_100K_1M": 4}),
    "duplicates of descriptors are no opens": (MIB, 1, {"OPENS": 9, "DUPS": 8}),
    "a contradicted part of which more is not known": (MIB, 4, {"CONSEC_WRITES": 1, "MMAPS": 1}),
    "sizes that do not add up to the calls": (20 * MIB, 20, {"SIZE_WRITE_100_1K": 40}),
    "writes within pages": (8 * MIB, 1024, PAGES | {"FILE_ALIGNMENT": 4096}),
    "pages that are none of the storage": (8 * MIB, 1024, PAGES | {"FILE_ALIGNMENT": MIB}),
    "reads that alternate": (MIB, 100, reads(MIB, 1.0, 100) | {"RW_SWITCHES": 50}),
    "no time": (MIB, 1, {"F_WRITE_TIME": 0.0}),
    "a mapped file": (MIB, 4, IN_ORDER | {"MMAPS": 1}),
    "no seeks": (MIB, 4, IN_ORDER | {"F_META_TIME": 0.1}),
    "seeks that may ask for the size": (MIB, 4, IN_ORDER | {"F_META_TIME": 0.1, "SEEKS": 12}),
}


@case(what=WRITTEN)
def written(what: str) -> Run:
    size, calls, counters = WRITTEN[what]
    run = Run(1)
    run.write("/s/a", size, 1.0, rank=0, calls=calls, **counters)
    return run


@case()
def files_of_four_ranks() -> Run:
    run = Run()
    for rank in range(4):
        run.write(f"/s/a.{rank}", MIB, 1.0, rank=rank, calls=4, **IN_ORDER)
    return run


@case(fdopens=(0, 3))
def streams_of_open_descriptors_are_no_opens(fdopens: int) -> Run:
    """A file that is opened, and three streams of it by fdopen() or by fopen()."""
    run = Run(1)
    run.write("/s/a", MIB, 1.0, rank=0, module="STDIO", calls=3, OPENS=3, FDOPENS=fdopens)
    more = {"OPENS": 1 + fdopens, "DUPS": fdopens, "MODE": 0o644, "F_META_TIME": 0.1}
    run.opened("/s/a", 1.0, **more)
    return run


@case()
def files_that_are_written_and_read_are_each_counted() -> Run:
    """Of five files that are read, one is written: taken for one that is appended to."""
    run = Run(1)
    for n in range(5):
        more = reads(28, 60.0 + n, 2) | {"MAX_BYTE_READ": 21, "FLUSHES": 1, "OPENS": 3}
        run.write(f"/s/a{n}", 22, 1.0 + 2 * n, rank=0, module="STDIO", **more)
    return run


@case(name=("/s/d", "/s/e"))
def opens_of_directories_may_be_none_of_files(name: str) -> Run:
    """Darshan counts the opens of both, of which a directory is one that others are in."""
    run = Run(1)
    run.write("/s/d/a", MIB, 1.0, rank=0)
    run.opened(name, 5.0, OPENS=9, F_META_TIME=0.1)
    return run


@case(nprocs=(1, 2), written=(0, MIB))
def processes_that_write_to_no_file_may_write_elsewhere(nprocs: int, written: int) -> Run:
    """To a descriptor that a shell has opened for them; ranks of MPI have a launcher."""
    run = Run(nprocs)
    run.read("/s/in", MIB, 1.0, rank=0)
    if written:
        run.write("/s/out", written, 2.0, rank=0)
    return run


@case()
def one_process_of_several_that_wrote_to_no_file_is_enough() -> Runs:
    return [processes_that_write_to_no_file_may_write_elsewhere(1, size) for size in (0, MIB)]


@case(
    coll=({"COLL_OPENS": 4}, {"INDEP_OPENS": 4}, {"COLL_OPENS": 4, "VIEWS": 4}),
    calls=(4, 16),
    below=(1, 4, 64),
)
def places_of_calls_of_mpiio(coll: dict[str, int], calls: int, below: int) -> Run:
    """They are not known of views, of collective calls unless each rank makes one, and of calls
    that POSIX made in parts."""
    run = Run()
    run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=calls, **coll)
    run.write("/s/a", 16 * MIB, 1.0, calls=below, SEQ_WRITES=below - 1)
    return run


@case(row=((161, 3_528_044), (352_008, 4_272_389)))
def sizes_of_stdio_of_two_explanations_or_one(row: tuple[int, int]) -> Run:
    calls, size = row
    run = Run(1)
    run.write("/s/a", size, 1.0, rank=0, module="STDIO", calls=calls)
    return run


@case()
def time_of_files_that_no_stream_has() -> Run:
    """Writes of no bytes, which take all of the time."""
    run = Run(1)
    run.write("/s/a", MIB, 1.0, rank=0, F_WRITE_TIME=0.1)
    run.write("/s/b", 1, 50.0, rank=0, BYTES_WRITTEN=0, WRITES=100_000, F_WRITE_TIME=30.0)
    return run


@case(module=("POSIX", "STDIO"), end=(MIB, 1 << 40, 4 * MIB))
def files_that_are_read_farther_or_less_far_than_by_the_replica(module: str, end: int) -> Run:
    """All ranks read the same bytes, or one reads here and there: other files than those of the
    replica. Of the whole file, each rank its part, nothing is otherwise."""
    run = Run()
    more = {"CONSEC_READS": 1020, "SEQ_READS": 1020} if module == "POSIX" else {}
    more |= {"MAX_BYTE_READ": end - 1, "OPENS": 4}
    run.read("/s/a", 4 * MIB, 1.0, calls=1024, module=module, **more)
    return run


@case(value=("nan", "inf", "-1"))
def variance_that_is_no_number_or_not_finite(value: str) -> Run:
    run = Run()
    more = {"F_VARIANCE_RANK_BYTES": float(value), "OPENS": 4, "SEQ_WRITES": 3}
    run.write("/s/a", 4 * MIB, 1.0, calls=4, **more)
    return run


@case()
def shares_of_files_that_are_written_and_read() -> Run:
    """Darshan adds up what a rank wrote and read."""
    run = Run()
    more = reads(4 * MIB, 5.0, 4) | {"F_VARIANCE_RANK_BYTES": float(MIB) ** 2, "OPENS": 8}
    run.write("/s/a", 4 * MIB, 1.0, calls=4, **more)
    return run


@case()
def posix_reads_files_that_mpiio_only_wrote() -> Run:
    run = Run()
    run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=4, COLL_OPENS=4)
    run.write("/s/a", 16 * MIB, 1.0, rank=0, **reads(16 * MIB, 5.0, 16))
    return run


@case(
    row=(
        ("POSIX", {}),
        ("POSIX", {"OPENS": 3, "MODE": 0o644}),
        ("POSIX", {"READS": 1}),
        ("STDIO", {}),
    )
)
def files_of_which_opens_alone_are_counted(row: tuple[str, dict[str, int]]) -> Run:
    """Of stdio's putc, fprintf and _unlocked calls, of copies within the system and of descriptors
    that are inherited, Darshan counts nothing; and of opens through stdio, no mode."""
    module, more = row
    run = written("as predicted")
    end = {"F_READ_START_TIMESTAMP": 2.0, "F_READ_END_TIMESTAMP": 2.1}
    end["F_CLOSE_END_TIMESTAMP"] = 2.1
    run.opened("/t/b", 2.0, module=module, **(end | more))
    return run


@case()
def open_that_is_given_to_fdopen_may_have_created_its_file() -> Run:
    """Of mkstemp(), Darshan has no mode."""
    run = written("as predicted")
    run.opened("/t/b", 5.0, F_META_TIME=0.1)
    run.opened("/t/b", 5.0, module="STDIO", FDOPENS=1, F_META_TIME=0.1)
    return run


@case()
def readers_of_what_one_rank_wrote_may_all_read_the_same() -> Run:
    """The replica's readers have a file of their own, which is larger."""
    run = Run(2)
    run.write("/s/a", 4 * MIB, 1.0, rank=0, calls=4, **IN_ORDER)
    for rank in range(2):
        run.read("/s/a", 4 * MIB, 9.0, rank=rank, calls=4)
    return run

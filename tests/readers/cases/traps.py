"""Known traps of Darshan's records, by synthetic logs that show them."""

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run, access

# Bytes that are written are not the application's.


def written_by_mpiio(run: Run, name: str, size: int, below: int) -> int:
    """A file that all ranks write through MPI-IO, `below` bytes of it through POSIX."""
    run.write(name, below, 1.0, rank=0, MAX_BYTE_WRITTEN=size - 1)
    return run.write(name, size, 1.0, module="MPIIO")


@case()
def fill_of_hdf5() -> Run:
    run = Run()
    name, more = "/s/out.h5", {"DATASPACE_NPOINTS": MIB, "USE_MPIIO_COLLECTIVE": 1}
    run.dataset(name, 8 * MIB, 1.0, **more)
    run.write(name, 16 * MIB, 1.0, module="MPIIO")
    run.write(name, 16 * MIB, 1.0, MAX_BYTE_WRITTEN=8 * MIB + 2047)
    return run


@case()
def data_sieving() -> Run:
    run = Run()
    written_by_mpiio(run, "/s/sieved.dat", 4 * MIB, below=16 * MIB)
    run.read("/s/sieved.dat", 12 * MIB, 1.0, rank=0)
    return run


@case(module=("POSIX", "STDIO"))
def rewrites_in_place(module: str) -> Run:
    """14 times the bytes of the file: the extent says how many passes there were."""
    run = Run()
    more = {"rank": 0, "calls": 14, "MAX_BYTE_WRITTEN": MIB - 1, "SEEKS": 13}
    run.write("/s/wfc.1", 14 * MIB, 1.0, module=module, **more)
    return run


@case()
def rewrites_in_place_by_mpiio() -> Run:
    run = Run(2)
    for rank, size in ((0, 6 * MIB), (1, 2 * MIB)):
        run.write("/s/r.dat", size, 1.0, rank=rank, module="MPIIO")
    run.write("/s/r.dat", 8 * MIB, 1.0, MAX_BYTE_WRITTEN=4 * MIB - 1)
    return run


@case()
def overflow_of_bytes_that_mpiio_read() -> Run:
    run = Run()
    run.read("/s/big", -5, 1.0, module="MPIIO")
    run.read("/s/big", 3 << 30, 1.0, rank=0, calls=3)
    return run


@case()
def partial_trace() -> Run:
    """A DXT module that ran out of memory is no reason to refuse, but not to be believed."""
    run = Run(partial=["DXT_POSIX"])
    run.write("/s/v", 4 * MIB, 1.0, rank=0, duration_s=90.0, calls=4)
    run.trace("/s/v", [(0, 2 * MIB, 1.0, 1.1), (2 * MIB, 2 * MIB, 50.0, 50.1)])
    return run


# Rank -1 stands only where all ranks touched the file and the reduction ran.


@case(reduced=FLAGS)
def shared_file(reduced: bool) -> Run:
    """A record of all ranks, or one of each: the same series."""
    run = Run()
    for step in range(3):
        at_s = 10.0 * step + 1
        if reduced:
            run.write(f"/s/ck.{step}", 4 * MIB, at_s, calls=4)
        for rank in range(0 if reduced else 4):
            top = (rank + 1) * MIB - 1
            run.write(f"/s/ck.{step}", MIB, at_s, rank=rank, MAX_BYTE_WRITTEN=top)
    return run


@case()
def record_of_all_of_which_one_wrote() -> Run:
    run = Run()
    run.write("/s/log", 1000, 1.0, SLOWEST_RANK=2, SLOWEST_RANK_BYTES=1000)
    return run


@case()
def unequal_ranks_of_one_record() -> Run:
    run = Run()
    more = {"F_VARIANCE_RANK_BYTES": 3 / 16 * MIB**2, "SLOWEST_RANK": 3, "FASTEST_RANK": 0}
    more |= {"ACCESS1_ACCESS": 2 * MIB, "ACCESS1_COUNT": 3, "FASTEST_RANK_BYTES": 2 * MIB}
    more |= {"ACCESS2_ACCESS": MIB, "ACCESS2_COUNT": 1, "SLOWEST_RANK_BYTES": MIB}
    run.write("/s/a", 7 * MIB, 1.0, calls=4, **more)
    return run


@case(variance=(0.0, 1.0))
def even_where_nothing_says_otherwise(variance: float) -> Run:
    run = Run()
    run.write("/s/a", 7 * MIB, 1.0, calls=9, F_VARIANCE_RANK_BYTES=variance)
    return run


@case()
def aggregators_are_not_the_application() -> Run:
    run = Run()
    for rank in range(4):
        run.write("/s/a.dat", (rank + 1) * MIB, 1.0, rank=rank, module="MPIIO", calls=2)
    run.write("/s/a.dat", 10 * MIB, 1.0, rank=0)
    return run


@case()
def files_of_open_mpi() -> Run:
    run = Run()
    for rank in range(4):
        run.write(f"/s/a.dat.locktest.{rank}", 100, 1.0, rank=rank)
        run.write(f"/dev/shm/x_cid-0-{rank}.sm", 100, 1.0, rank=rank)
    written_by_mpiio(run, "/s/a.dat", 4 * MIB, below=4 * MIB)
    run.write("<STDOUT>", 100, 1.0, module="STDIO")
    return run


@case()
def memory_file_systems_are_no_devices() -> Run:
    run = Run()
    for name in ("/dev/shm/job/ck.1", "/dev/null"):
        run.write(name, MIB, 1.0, rank=0)
    return run


# Streams of stdio and of C++.


@case()
def checkpoints_in_stdio_alone() -> Run:
    run = Run()
    for step in range(3):
        for rank in range(4):
            run.write(f"/s/rst.{step}.{rank}", MIB, 9.0 * step + 1, rank=rank, module="STDIO")
    return run


@case()
def header_through_another_interface() -> Run:
    """159 calls of stdio, then collective MPI-IO over the last bytes of them: two streams."""
    run = Run()
    for step in range(3):
        name, at_s = f"/s/ck.{step}.mpiio", 9.0 * step + 1
        run.write(name, 921, at_s, rank=0, module="STDIO", calls=159)
        run.write(name, 4 * MIB, at_s + 0.5, module="MPIIO", calls=4, COLL_OPENS=4)
        run.write(name, 4 * MIB, at_s + 0.5, rank=0, MAX_BYTE_WRITTEN=4 * MIB + 904)
        run.write(f"/s/ck.{step}.base", 905, at_s + 1, rank=0, module="STDIO", calls=158)
    return run


def stream_of(
    run: Run, name: str, begin_s: float, end_s: float, rank: int = 0, **more: int
) -> None:
    """The record of stdio without bytes that a C++ stream leaves."""
    times = {"F_OPEN_START_TIMESTAMP": begin_s, "F_CLOSE_END_TIMESTAMP": end_s}
    run.record("STDIO", name, rank, **({"OPENS": 1} | more | times))


@case()
def stream_without_bytes() -> Run:
    """STDIO sees it opened, POSIX sees its bytes; it is one file."""
    run = Run(2)
    for rank in range(2):
        run.write(f"/s/U.{rank}", MIB, 1.0, rank=rank, FILENOS=1)
        stream_of(run, f"/s/U.{rank}", 1.0, 1.2, rank)
    return run


@case()
def stream_that_is_opened_again_counts_on() -> Run:
    """Truncated and written three times: Darshan adds up the offsets too."""
    run = Run(1)
    run.write("/s/time", 3000, 1.0, rank=0, calls=3, duration_s=8.0, FILENOS=3, OPENS=3)
    stream_of(run, "/s/time", 1.0, 9.0, OPENS=3)
    return run


@case()
def bytes_that_are_booked_to_a_closed_file() -> Run:
    """They are those of a file that is open."""
    run = Run(1)
    for name, size, begin_s, end_s in (("/s/a", 500, 1.0, 2.0), ("/s/b", 700, 4.0, 6.0)):
        run.write(name, size, 5.0, rank=0, FILENOS=1)
        stream_of(run, name, begin_s, end_s)
    return run


# Times.


@case()
def time_of_zero_is_never() -> Run:
    run = Run()
    none = {"F_WRITE_START_TIMESTAMP": 0.0, "F_WRITE_END_TIMESTAMP": 0.0}
    run.write("/s/a", MIB, 7.5, rank=0, **none)
    return run


@case()
def ranks_that_never_wrote_begin_no_dump() -> Run:
    run = Run()
    run.write("/s/a", MIB, 7.5, rank=1)
    run.record("POSIX", "/s/a", OPENS=1)
    return run


@case()
def crash_leaves_no_end_time() -> Run:
    run = Run(run_time_s=None)
    run.write("/s/a", MIB, 7.5, rank=0)
    return run


@case(version=("3.00", "3.10", "3.21"))
def run_time_in_whole_seconds(version: str) -> Run:
    run = Run(run_time_s=20.0, version=version)
    run.write("/s/a", MIB, 7.5, rank=0)
    return run


@case()
def run_time_shorter_than_the_dumps() -> Run:
    """Whole seconds can be too few: time steps are told apart by the last record's time."""
    run = Run(run_time_s=1.0, version="3.21")
    for step in range(4):
        run.write(f"/s/ck.{step}", MIB, 0.3 * step + 0.1, rank=0)
    return run


@case(version=(1, 2))
def wrong_starts_of_old_mpiio(version: int) -> Run:
    """Of Darshan 3.0.0 to 3.1.0 (version 1): the opening is taken."""
    old = {"version": "3.10", "module_versions": {"MPI-IO": version}}
    run = Run(metadata={"lib_ver": "3.1.0"}, **old)
    run.write("/s/a", 4 * MIB, 5.0, module="MPIIO", F_OPEN_START_TIMESTAMP=3.0)
    return run


# Names that tell nothing.


@case(form=("", "{}", "/scratch/{}", "//{}"))
def obfuscated_names(form: str) -> Run:
    """Dumps of a file per process, shared dumps and small files, by size and time alone."""
    run = Run(mounts=(("/scratch", "lustre"), ("/", "ext4")))
    names = (form.format(7_919_000_017 * n % 4_294_967_291) for n in range(1, 30))
    for step in range(3):
        for rank in range(4):
            at_s = 30.0 * step + 2
            run.write(next(names), (step + 2) * MIB, at_s + 0.01 * rank, rank=rank)
            run.write(next(names), 900, at_s + 0.2, rank=rank)
    for step in range(5):
        run.write(next(names), 400 * MIB, 20.0 * step + 5, calls=4, module="MPIIO")
    return run


@case()
def log_of_one_process() -> Run:
    """Programs without MPI, and forks, leave a log per process."""
    run = Run(1)
    for step in range(3):
        run.write(f"/s/ck.{step}", MIB, 10.0 * step + 1, rank=0)
    return run


# Traces.


@case(offset=(-1, 0))
def traced_offsets_are_unknown(offset: int) -> Run:
    """Time steps of a file without datasets or counters are found by the traced times."""
    run = Run(2)
    times = ((1, 1.0), (2, 40.0), (3, 90.9))
    for rank in range(2):
        segments = [(offset, size * MIB, at_s, at_s + 0.1) for size, at_s in times]
        more = {"COLL_WRITES": 0, "INDEP_WRITES": 3, "F_WRITE_TIME": 0.3, "duration_s": 90.0}
        run.traced("/s/viz", segments, rank=rank, module="MPIIO", **more)
    run.write("/s/viz", 12 * MIB, 1.0, rank=0)
    return run


@case(size=(8 * MIB, 7), syncs=(10, 40))
def steps_of_a_file_without_any_times(size: int, syncs: int) -> Run:
    """A counter that says more time steps than there are bytes leaves no empty dump behind."""
    run = Run(2)
    more = {"SYNCS": syncs, "INDEP_WRITES": syncs, "COLL_WRITES": 0, "F_WRITE_TIME": 0.5}
    run.write("/s/viz", size, 1.0, module="MPIIO", duration_s=80.0, calls=syncs, **more)
    return run


@case(length=(0, 1))
def traces_of_nothing(length: int) -> Run:
    """Segments without bytes, or of a file whose record says otherwise."""
    run = Run(1)
    run.write("/s/viz", 8 * MIB, 1.0, rank=0, duration_s=90.0)
    run.trace("/s/viz", [(0, 0, 1.0, 1.1), (0, length, 50.0, 50.1)])
    return run


# Old layouts.


@case(byte_order=("little", "big"), version=("3.00", "3.10", "3.21", "3.41"))
def old_layouts_and_big_endian(byte_order: str, version: str) -> Run:
    number = {"3.00": 1, "3.10": 2, "3.21": 3, "3.41": 4}[version]
    run = Run(version=version, byte_order=byte_order, module_versions={"POSIX": number})
    for step in range(3):
        for rank in range(4):
            run.write(f"/s/ck.{step}.{rank}", (rank + 1) * MIB, 30.0 * step + 2, rank=rank)
    return run


@case()
def datasets_of_old_logs_do_not_name_their_file() -> Run:
    """H5D version 1 lacks the record id of the file; its name says it."""
    run = Run(version="3.21", module_versions={"H5D": 1})
    for step in range(3):
        name, at_s = f"/s/o{step}.h5", 30.0 * step + 1
        more = {"OPENS": 0, "WRITES": 4, "DATATYPE_SIZE": 4, "DATASPACE_NPOINTS": MIB // 4}
        file, dataset = run.file(name), run.file(f"{name}:/grid:0/u")
        run.dataset(name, MIB, at_s, **more)
        del run.modules["H5D"][-1]["file_rec_id"]
        run.modules["H5D"][-1]["id"] = dataset
        run.add("POSIX", access(file, MIB + 2048, at_s, rank=0))
    return run


# Sync is what reaches storage, not what leaves a buffer of the process.


@case(counter=("STDIO_FLUSHES", "POSIX_FSYNCS", "MPIIO_SYNCS"))
def flush_and_sync(counter: str) -> Run:
    module, _, name = counter.partition("_")
    run = Run()
    run.write("/s/a", MIB, 1.0, module=module, **{name: 4})
    return run


@case(flushes=(1, 5, 9, 10))
def flushes_of_a_file_of_ten_dumps(flushes: int) -> Run:
    run = Run(1)
    segments = [(k * MIB, MIB, 1 + 10.0 * k, 1.1 + 10 * k) for k in range(10)]
    run.traced("/s/viz", segments, F_WRITE_TIME=1.0, FSYNCS=flushes)
    return run


@case(length_s=(60.0, 4.0, 0.9))
def dump_far_longer_than_its_calls(length_s: float) -> Run:
    run = Run()
    more = {"duration_s": length_s, "calls": 200, "F_WRITE_TIME": 0.5}
    for rank in range(4):
        run.write(f"/s/stream-{rank}.log", 200 * 16384, 1.0, rank=rank, **more)
    run.write("/s/last", MIB, 99.0, rank=0, duration_s=0.5, F_WRITE_TIME=0.5)
    return run


@case(begins_s=(3.0, 41.0, 99.0))
def dump_in_which_another_begins(begins_s: float) -> Run:
    """It is spread up to there."""
    run = Run(1)
    more = {"module": "STDIO", "duration_s": 60.0, "calls": 200, "F_WRITE_TIME": 0.5}
    run.write("/s/log", MIB, 1.0, rank=0, **more)
    run.write("/s/other", 100 * MIB, begins_s, rank=0, duration_s=0.5, F_WRITE_TIME=0.5)
    return run


@case()
def text_that_is_flushed_line_by_line_is_one_dump() -> Run:
    run = Run(1)
    for name, size, calls in (("/s/log", 240_000, 4000), ("/s/viz", 400 * MIB, 400)):
        more = {"duration_s": 90.0, "calls": calls, "FLUSHES": calls, "F_WRITE_TIME": 0.1}
        run.write(name, size, 1.0, rank=0, module="STDIO", **more)
    return run


@case(size=(100_000,), calls=(1000,), flushes=(1, 250, 1000))
def buffer_that_is_flushed_within_a_dump(size: int, calls: int, flushes: int) -> Run:
    run = Run(1)
    run.write("/s/log", size, 1.0, rank=0, module="STDIO", calls=calls, FLUSHES=flushes)
    return run


@case()
def flush_behind_several_calls_that_differ_by_a_byte() -> Run:
    return buffer_that_is_flushed_within_a_dump(66_000, 9000, 3000)

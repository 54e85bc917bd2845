"""Each known trap of Darshan's records, by the log that shows it or a synthetic one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.readers.logs import PARTIAL, TRACES
from tests.readers.synthetic import Run, access, only, rank_bytes, sizes
from tests.support.logs import recompress
from tests.support.said import raises, said
from understudy.contracts.workload import Workload, parse, provenance_of
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.inference.score.explanation import CONTRADICTED, Explanation
from understudy.program.syncs import syncs_of
from understudy.readers import darshan

MIB = 1 << 20


def notes(workload: Workload) -> str:
    return "\n".join(workload.source.notes)


def origin(workload: Workload, pointer: str) -> str:
    entry = provenance_of(workload, pointer)
    assert entry is not None, pointer
    return entry.origin


def mpiio_file(run: Run, name: str, size: int, at_s: float, *, below: int, **more: int) -> int:
    """A file that all ranks write through MPI-IO, `below` bytes of it through POSIX."""
    file = run.write(name, size, at_s, module="MPIIO", **more)
    run.add("POSIX", access(file, below, at_s, rank=0) | {"POSIX_MAX_BYTE_WRITTEN": size - 1})
    return file


# 1. Bytes written are not the application's.


def test_trap_hdf5_fill_doubles_posix_bytes_in_a_real_log() -> None:
    """Meep: HDF5 fills before the data; the application's bytes are those of H5D."""
    path = TRACES / "meep_sphere.darshan"
    with open_log(path) as log:
        below = sum(int(b["POSIX_BYTES_WRITTEN"].sum()) for b in log.records("POSIX"))
        own = sum(int(b["H5D_BYTES_WRITTEN"].sum()) for b in log.records("H5D"))
    workload = darshan.read(path)
    written = sum(s.bytes for s in workload.streams if s.operation == "write")
    assert written == own
    assert below > 1.1 * own


def test_trap_hdf5_fill(tmp_path: Path) -> None:
    run = Run()
    file, dataset = run.file("/s/out.h5"), run.file("/s/out.h5:/u")
    h5d = access(
        dataset,
        8 * MIB,
        1.0,
        module="H5D",
        DATATYPE_SIZE=8,
        DATASPACE_NPOINTS=MIB,
        USE_MPIIO_COLLECTIVE=1,
    )
    del h5d["H5D_OPENS"], h5d["H5D_MAX_BYTE_WRITTEN"], h5d["H5D_F_CLOSE_END_TIMESTAMP"]
    run.add("H5D", h5d | {"file_rec_id": file})
    run.add("MPIIO", access(file, 16 * MIB, 1.0, module="MPIIO"))
    twice = access(file, 16 * MIB, 1.0) | {"POSIX_MAX_BYTE_WRITTEN": 8 * MIB + 2047}
    run.add("POSIX", twice)
    run.describe(tmp_path)


def test_trap_data_sieving_reads_and_writes_are_not_the_applications(tmp_path: Path) -> None:
    run = Run()
    file = mpiio_file(run, "/s/sieved.dat", 4 * MIB, 1.0, below=16 * MIB)
    run.add("POSIX", access(file, 12 * MIB, 1.0, rank=0, write=False))
    run.describe(tmp_path)


@pytest.mark.parametrize("module", ["POSIX", "STDIO"])
def test_trap_rewrites_in_place(module: str, tmp_path: Path) -> None:
    """14 times the bytes of the file: the extent says how many passes there were."""
    run = Run()
    run.add(
        module,
        access(run.file("/s/wfc.1"), 14 * MIB, 1.0, rank=0, module=module, calls=14)
        | {f"{module}_MAX_BYTE_WRITTEN": MIB - 1, f"{module}_SEEKS": 13},
    )
    run.describe(tmp_path)


def test_trap_rewrites_in_place_by_mpiio(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    for rank, size in ((0, 6 * MIB), (1, 2 * MIB)):
        file = run.write("/s/r.dat", size, 1.0, rank=rank, module="MPIIO")
    run.add("POSIX", access(file, 8 * MIB, 1.0) | {"POSIX_MAX_BYTE_WRITTEN": 4 * MIB - 1})
    run.describe(tmp_path)


# 2. MPI-IO byte counters overflow.


def test_trap_mpiio_int32_overflow_in_a_real_log() -> None:
    path = TRACES / "trap_mpiio_int32_overflow.darshan"
    with open_log(path) as log:
        assert min(int(b["MPIIO_BYTES_WRITTEN"].min()) for b in log.records("MPI-IO")) < 0
        right = max(int(b["POSIX_MAX_BYTE_WRITTEN"].max()) + 1 for b in log.records("POSIX"))
    workload = darshan.read(path)
    stream = only(workload)
    assert (stream.method, sizes(stream), right) == ("mpiio", [right], 2_400_000_000)
    assert "overflowed at 2^31" in notes(workload)
    assert origin(workload, "/streams/0/dumps/0/variables/0/shape/0") == "derived"


def test_trap_mpiio_int32_overflow_of_a_read(tmp_path: Path) -> None:
    run = Run()
    file = run.read("/s/big", -5, 1.0, module="MPIIO")
    run.add("POSIX", access(file, 3 << 30, 1.0, rank=0, write=False, calls=3))
    run.describe(tmp_path)


# 3. Partial modules.


def test_trap_partial_is_refused_and_described_on_demand() -> None:
    with raises(UnderstudyError, "module-posix-incomplete-darshan"):
        darshan.read(PARTIAL)
    workload = darshan.read(PARTIAL, partial=True)
    said("module-posix-incomplete", notes(workload))
    stream = only(workload, operation="write")
    with open_log(PARTIAL) as log:
        kept = np.concatenate(list(log.records("POSIX")))
    ours = kept[kept["POSIX_BYTES_WRITTEN"] > 0]
    assert stream.bytes <= ours["POSIX_BYTES_WRITTEN"].sum()
    assert stream.layout == "flood"


def test_trap_partial_trace_is_not_used(tmp_path: Path) -> None:
    """A DXT module that ran out of memory is no reason to refuse, but not to be believed."""
    run = Run(partial=["DXT_POSIX"])
    file = run.write("/s/v", 4 * MIB, 1.0, rank=0, duration_s=90.0, calls=4)
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [(0, 2 * MIB, 1.0, 1.1), (2 * MIB, 2 * MIB, 50.0, 50.1)],
        },
    )
    workload = run.describe(tmp_path)
    said("module-dxt-posix-incomplete", notes(workload))


# 4. Rank -1 stands only where all ranks touched the file and the reduction ran.


def test_trap_one_record_for_all_or_one_each(tmp_path: Path) -> None:
    """The same shared file, reduced and not, is the same series."""
    found = []
    for reduced in (True, False):
        run = Run(nprocs=4)
        for step in (0, 1, 2):
            if reduced:
                run.write(f"/s/ck.{step}", 4 * MIB, 10.0 * step + 1, calls=4)
            else:
                for rank in range(4):
                    run.write(f"/s/ck.{step}", MIB, 10.0 * step + 1, rank=rank)
                    file = run.file(f"/s/ck.{step}")
                    run.modules["POSIX"][-1]["POSIX_MAX_BYTE_WRITTEN"] = (rank + 1) * MIB - 1
                    assert run.modules["POSIX"][-1]["id"] == file
        stream = only(run.describe(tmp_path), layout="shared")
        found.append((sizes(stream), rank_bytes(stream, 2, 4), stream.steps[1].overhead_bytes))
    assert found == [([4 * MIB] * 3, [MIB] * 4, 0)] * 2


def test_trap_a_record_of_all_in_which_one_did_it(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/log", 1000, 1.0, SLOWEST_RANK=2, SLOWEST_RANK_BYTES=1000)
    run.describe(tmp_path)


def test_trap_unequal_ranks_of_one_record_by_their_access_sizes(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write(
        "/s/a",
        7 * MIB,
        1.0,
        calls=4,
        F_VARIANCE_RANK_BYTES=3 / 16 * MIB**2,
        ACCESS1_ACCESS=2 * MIB,
        ACCESS1_COUNT=3,
        ACCESS2_ACCESS=MIB,
        ACCESS2_COUNT=1,
        SLOWEST_RANK=3,
        SLOWEST_RANK_BYTES=MIB,
        FASTEST_RANK=0,
        FASTEST_RANK_BYTES=2 * MIB,
    )
    run.describe(tmp_path)


def test_trap_even_is_assumed_where_nothing_says_otherwise(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/a", 7 * MIB, 1.0, calls=9, F_VARIANCE_RANK_BYTES=1.0)
    run.describe(tmp_path)
    run.modules["POSIX"][0]["POSIX_F_VARIANCE_RANK_BYTES"] = 0.0
    run.describe(tmp_path)


# 5. POSIX shows the aggregators' ranks, MPI-IO the application's.


def test_trap_aggregators_are_not_the_application(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for rank in range(4):
        file = run.write("/s/a.dat", (rank + 1) * MIB, 1.0, rank=rank, module="MPIIO", calls=2)
    run.add("POSIX", access(file, 10 * MIB, 1.0, rank=0, calls=1))
    run.describe(tmp_path)


# 6. Open MPI's own files.


def test_trap_open_mpi_junk(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for rank in range(4):
        run.write(f"/s/a.dat.locktest.{rank}", 100, 1.0, rank=rank)
        run.write(f"/dev/shm/x_cid-0-{rank}.sm", 100, 1.0, rank=rank)
    mpiio_file(run, "/s/a.dat", 4 * MIB, 1.0, below=4 * MIB)
    run.write("<STDOUT>", 100, 1.0, module="STDIO")
    workload = run.describe(tmp_path)
    said("devices-standard-streams-files", notes(workload))


# 7. Checkpoints in STDIO alone; zero-byte twins of C++ streams.


def test_trap_checkpoints_in_stdio_alone(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for step in range(3):
        for rank in range(4):
            run.write(f"/s/rst.{step}.{rank}", MIB, 9.0 * step + 1, rank=rank, module="STDIO")
    workload = run.describe(tmp_path)
    said("may-have-moved-more", notes(workload))
    said("fewer-larger", notes(workload))


def test_trap_a_header_through_another_interface(tmp_path: Path) -> None:
    """159 calls of stdio, then collective MPI-IO over the last bytes of them: two streams."""
    run = Run(nprocs=4)
    for step in range(3):
        name, at_s = f"/s/ck.{step}.mpiio", 9.0 * step + 1
        file = run.write(name, 921, at_s, rank=0, module="STDIO", calls=159)
        run.write(name, 4 * MIB, at_s + 0.5, module="MPIIO", calls=4, COLL_OPENS=4)
        run.add(
            "POSIX",
            access(file, 4 * MIB, at_s + 0.5, rank=0) | {"POSIX_MAX_BYTE_WRITTEN": 4 * MIB + 904},
        )
        run.write(f"/s/ck.{step}.base", 905, at_s + 1, rank=0, module="STDIO", calls=158)
    workload = run.describe(tmp_path)
    header, data = (
        only(workload, method=m, files="new", role="checkpoint") for m in ("stdio", "mpiio")
    )
    assert (header.behind, data.behind) == (None, header.name)
    said("each-interface-stream-its", notes(workload))
    said("all-files", notes(workload))


def test_trap_zero_byte_stdio_twins(tmp_path: Path) -> None:
    """A C++ stream: STDIO sees it opened, POSIX sees its bytes; it is one file."""
    run = Run(nprocs=2)
    for rank in range(2):
        file = run.write(f"/s/U.{rank}", MIB, 1.0, rank=rank, FILENOS=1)
        run.add(
            "STDIO",
            {
                "id": file,
                "rank": rank,
                "STDIO_OPENS": 1,
                "STDIO_F_OPEN_START_TIMESTAMP": 1.0,
                "STDIO_F_CLOSE_END_TIMESTAMP": 1.2,
            },
        )
    run.describe(tmp_path)


def test_trap_a_stream_opened_again_counts_on(tmp_path: Path) -> None:
    """Truncated and written three times: Darshan adds up the offsets too."""
    run = Run(nprocs=1)
    file = run.write("/s/time", 3000, 1.0, rank=0, calls=3, duration_s=8.0, FILENOS=3, OPENS=3)
    run.add(
        "STDIO",
        {
            "id": file,
            "rank": 0,
            "STDIO_OPENS": 3,
            "STDIO_F_OPEN_START_TIMESTAMP": 1.0,
            "STDIO_F_CLOSE_END_TIMESTAMP": 9.0,
        },
    )
    run.describe(tmp_path)


def test_trap_a_write_after_the_close_is_another_files(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    stale = run.write("/s/a", 500, 5.0, rank=0, FILENOS=1)
    home = run.write("/s/b", 700, 5.0, rank=0, FILENOS=1)
    for file, opened, closed in ((stale, 1.0, 2.0), (home, 4.0, 6.0)):
        run.add(
            "STDIO",
            {
                "id": file,
                "rank": 0,
                "STDIO_OPENS": 1,
                "STDIO_F_OPEN_START_TIMESTAMP": opened,
                "STDIO_F_CLOSE_END_TIMESTAMP": closed,
            },
        )
    workload = run.describe(tmp_path)
    assert sizes(only(workload, name="output-0")) == [1200]
    said("all-which-were-attributed", notes(workload))


# 8. Times.


def test_trap_a_time_of_zero_is_never(tmp_path: Path) -> None:
    run = Run()
    run.write("/s/a", MIB, 7.5, rank=0, F_WRITE_START_TIMESTAMP=0.0, F_WRITE_END_TIMESTAMP=0.0)
    run.describe(tmp_path)


def test_trap_the_start_is_not_the_earliest_zero(tmp_path: Path) -> None:
    """Of ranks that never wrote, none makes the dump begin at 0."""
    run = Run(nprocs=4)
    run.write("/s/a", MIB, 7.5, rank=1)
    run.add("POSIX", {"id": run.file("/s/a"), "rank": 0, "POSIX_OPENS": 1})
    run.describe(tmp_path)


def test_trap_crash_leaves_no_end_time(tmp_path: Path) -> None:
    run = Run(run_time_s=None)
    run.write("/s/a", MIB, 7.5, rank=0)
    for workload in (run.describe(tmp_path), darshan.read(TRACES / "trap_crash_merged.darshan")):
        assert workload.runtime_s is None
        said("log-has-no-end", notes(workload))


@pytest.mark.parametrize("version", ["3.00", "3.10", "3.21"])
def test_trap_integer_run_times(version: str, tmp_path: Path) -> None:
    run = Run(version=version, run_time_s=20.0)
    run.write("/s/a", MIB, 7.5, rank=0)
    workload = run.describe(tmp_path)
    entry = provenance_of(workload, "/runtime_s")
    assert workload.runtime_s == 20.0
    assert entry is not None and said("whole-seconds", entry.how)


def test_trap_a_run_time_shorter_than_its_dumps(tmp_path: Path) -> None:
    """Whole seconds can be too few: time steps are told apart by the last record's time."""
    run = Run(version="3.21", run_time_s=1.0)
    for step in range(4):
        run.write(f"/s/ck.{step}", MIB, 0.3 * step + 0.1, rank=0)
    run.describe(tmp_path)


@pytest.mark.parametrize("version", [1, 2])
def test_trap_old_mpiio_starts_are_wrong(version: int, tmp_path: Path) -> None:
    """MPI-IO records of Darshan 3.0.0 to 3.1.0 (version 1): the opening is taken."""
    run = Run(version="3.10", module_versions={"MPI-IO": version}, metadata={"lib_ver": "3.1.0"})
    run.write("/s/a", 4 * MIB, 5.0, module="MPIIO", F_OPEN_START_TIMESTAMP=3.0)
    workload = run.describe(tmp_path)
    entry = provenance_of(workload, "/streams/0/dumps/0/time_s")
    assert entry is not None and (("F_OPEN_START" in entry.how) == (version == 1))
    assert ("MPIIO_F_WRITE_START_TIMESTAMP may be wrong" in notes(workload)) == (version == 1)


# 9. Names that tell nothing.


@pytest.mark.parametrize("form", ["", "{}", "/scratch/{}", "//{}"])
def test_trap_obfuscated_names(form: str, tmp_path: Path) -> None:
    """Dumps of a file per process, shared dumps and small files, by size and time alone."""
    run = Run(nprocs=4, mounts=(("/scratch", "lustre"), ("/", "ext4")))
    count = 0

    def name() -> str:
        nonlocal count
        count += 1
        return form.format(7_919_000_017 * count % 4_294_967_291)

    for step in range(3):
        for rank in range(4):
            run.write(name(), (step + 2) * MIB, 30.0 * step + 2 + 0.01 * rank, rank=rank)
            run.write(name(), 900, 30.0 * step + 2.2, rank=rank)
    for step in range(5):
        run.write(name(), 400 * MIB, 20.0 * step + 5, calls=4, module="MPIIO")
    run.describe(tmp_path)


def test_trap_a_log_of_one_process(tmp_path: Path) -> None:
    """Programs without MPI, and forks, leave a log per process."""
    run = Run(nprocs=1)
    for step in range(3):
        run.write(f"/s/ck.{step}", MIB, 10.0 * step + 1, rank=0)
    run.describe(tmp_path)


# 10. DXT.


@pytest.mark.parametrize("offset", [-1, 0])
def test_trap_dxt_offsets_are_unknown(offset: int, tmp_path: Path) -> None:
    """Time steps of a file without datasets or counters are found by the traced times."""
    run = Run(nprocs=2)
    for rank in range(2):
        file = run.write(
            "/s/viz",
            6 * MIB,
            1.0,
            rank=rank,
            module="MPIIO",
            duration_s=90.0,
            calls=3,
            F_WRITE_TIME=0.3,
            COLL_WRITES=0,
            INDEP_WRITES=3,
        )
        run.add(
            "DXT_MPIIO",
            {
                "id": file,
                "rank": rank,
                "write_segments": [
                    (offset, size * MIB, at_s, at_s + 0.1)
                    for size, at_s in ((1, 1.0), (2, 40.0), (3, 90.9))
                ],
            },
        )
    run.add("POSIX", access(file, 12 * MIB, 1.0, rank=0))
    workload = run.describe(tmp_path)
    assert "DXT" in provenance_of(workload, "/streams/0/dumps/1/time_s").how  # type: ignore[union-attr]


def test_trap_states_of_a_file_without_any_times_are_assumed(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    run.write(
        "/s/viz",
        8 * MIB,
        1.0,
        module="MPIIO",
        duration_s=80.0,
        calls=10,
        SYNCS=10,
        F_WRITE_TIME=0.5,
        INDEP_WRITES=10,
        COLL_WRITES=0,
    )
    workload = run.describe(tmp_path)
    assert "MPIIO_SYNCS" in provenance_of(workload, "/streams/0/dumps/2/time_s").how  # type: ignore[union-attr]


# 11. Archived logs.


@pytest.mark.parametrize("name", ["lammps_growth", "mphys_dyn", "openfoam_dambreak_nn"])
def test_trap_bzip2_is_read_like_zlib(name: str, tmp_path: Path) -> None:
    plain = TRACES / f"{name}.darshan"
    for compression in ("bzip2", "none"):
        archived = recompress(plain, tmp_path / f"{compression}.darshan", compression)
        assert darshan.read(archived, name="x") == darshan.read(plain, name="x")


# 12. Old layouts and the other byte order.


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize(
    ("version", "number"), [("3.00", 1), ("3.10", 2), ("3.21", 3), ("3.41", 4)]
)
def test_trap_old_layouts_and_big_endian(
    byte_order: str, version: str, number: int, tmp_path: Path
) -> None:
    run = Run(nprocs=4, version=version, byte_order=byte_order, module_versions={"POSIX": number})
    for step in range(3):
        for rank in range(4):
            run.write(f"/s/ck.{step}.{rank}", (rank + 1) * MIB, 30.0 * step + 2, rank=rank)
    run.describe(tmp_path)


def test_trap_datasets_of_old_logs_do_not_name_their_file(tmp_path: Path) -> None:
    """H5D version 1 lacks the record id of the file; its name says it."""
    run = Run(version="3.21", module_versions={"H5D": 1})
    for step in range(3):
        file, dataset = run.file(f"/s/o{step}.h5"), run.file(f"/s/o{step}.h5:/grid:0/u")
        run.add(
            "H5D",
            {
                "id": dataset,
                "rank": -1,
                "H5D_BYTES_WRITTEN": MIB,
                "H5D_WRITES": 4,
                "H5D_DATATYPE_SIZE": 4,
                "H5D_DATASPACE_NPOINTS": MIB // 4,
                "H5D_F_WRITE_START_TIMESTAMP": 30.0 * step + 1,
                "H5D_F_WRITE_END_TIMESTAMP": 30.0 * step + 2,
            },
        )
        run.add("POSIX", access(file, MIB + 2048, 30.0 * step + 1, rank=0))
    run.describe(tmp_path)


# Sync is what reaches storage, not what leaves a buffer of the process.


def test_trap_fflush_is_no_fsync(tmp_path: Path) -> None:
    for module, counter in (("STDIO", "FLUSHES"), ("POSIX", "FSYNCS"), ("MPIIO", "SYNCS")):
        run = Run(nprocs=4)
        run.write("/s/a", MIB, 1.0, module=module, **{counter: 4})
        run.describe(tmp_path)


@pytest.mark.parametrize(("flushes", "sync"), [(1, False), (5, False), (9, True), (10, True)])
def test_trap_a_flush_of_a_file_is_none_of_each_of_its_dumps(
    tmp_path: Path, flushes: int, sync: bool
) -> None:
    run = Run(nprocs=1)
    file = run.write(
        "/s/viz",
        10 * MIB,
        1.0,
        rank=0,
        calls=10,
        duration_s=90.1,
        F_WRITE_TIME=1.0,
        FSYNCS=flushes,
    )
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [(k * MIB, MIB, 1 + 10.0 * k, 1.1 + 10 * k) for k in range(10)],
        },
    )
    workload = run.describe(tmp_path)
    stream = only(workload)
    note = f"{stream.name}: each of its files was flushed {flushes} x in its 10 dumps; that these"
    assert any(n.startswith(note) for n in workload.source.notes) is not sync


@pytest.mark.parametrize(("length_s", "told"), [(60.0, True), (4.0, False), (0.9, False)])
def test_trap_a_dump_far_longer_than_its_calls_is_no_burst_for_sure(
    tmp_path: Path, length_s: float, told: bool
) -> None:
    run = Run(nprocs=4)
    for rank in range(4):
        run.write(
            f"/s/stream-{rank}.log",
            200 * 16384,
            1.0,
            rank=rank,
            duration_s=length_s,
            calls=200,
            F_WRITE_TIME=0.5,
        )
    run.write("/s/last", MIB, 99.0, rank=0, duration_s=0.5, F_WRITE_TIME=0.5)
    workload = run.describe(tmp_path)
    stream = next(s for s in workload.streams if s.bytes > MIB)
    note = (
        f"{stream.name}: a dump lasted {length_s:.3g} s, of which a rank spent 0.5 s in data calls"
    )
    assert any(n.startswith(note) for n in workload.source.notes) is told
    found = provenance_of(workload, f"/streams/{workload.streams.index(stream)}/dumps/*/compute_s")
    assert found is not None and (found.confidence == "guess") is told


@pytest.mark.parametrize(("begins_s", "alone_s"), [(3.0, 0.0), (41.0, 40.0), (99.0, 60.0)])
def test_trap_a_dump_in_which_another_begins_is_spread_up_to_there(
    tmp_path: Path, begins_s: float, alone_s: float
) -> None:
    run = Run(nprocs=1)
    run.write(
        "/s/log", MIB, 1.0, rank=0, module="STDIO", duration_s=60.0, calls=200, F_WRITE_TIME=0.5
    )
    run.write("/s/other", 100 * MIB, begins_s, rank=0, duration_s=0.5, F_WRITE_TIME=0.5)
    workload = run.describe(tmp_path)
    [log] = [s for s in workload.streams if s.method == "stdio"]
    assert log.steps[0].compute_s == pytest.approx(max(0.0, alone_s - 0.5))
    [note] = [n for n in workload.source.notes if "a dump lasted 60 s" in n]
    assert ("it is played as one burst" in note) == (alone_s == 0)


def test_trap_a_text_that_is_flushed_line_by_line_is_one_dump(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write(
        "/s/log",
        240_000,
        1.0,
        rank=0,
        module="STDIO",
        duration_s=90.0,
        calls=4000,
        FLUSHES=4000,
        F_WRITE_TIME=0.1,
    )
    run.write(
        "/s/viz",
        400 * MIB,
        1.0,
        rank=0,
        module="STDIO",
        duration_s=90.0,
        calls=400,
        FLUSHES=400,
        F_WRITE_TIME=0.1,
    )
    run.describe(tmp_path)


@pytest.mark.parametrize(("flushes", "every"), [(1, None), (250, 400), (1000, 100)])
def test_trap_a_buffer_that_is_flushed_within_a_dump(
    tmp_path: Path, flushes: int, every: int | None
) -> None:
    """The calls of the system are those that the flushes make, by stdio alone."""
    run = Run(nprocs=1)
    run.write("/s/log", 100_000, 1.0, rank=0, module="STDIO", calls=1000, FLUSHES=flushes)
    told: list[Explanation] = []
    stream = only(run.describe(tmp_path, told=told.append))
    differ = [part.way for part in told[0].of(CONTRADICTED)]
    assert differ == (["META"] if flushes == 1 else [])
    assert syncs_of(stream, 1) == (flushes if every else 0)
    assert syncs_of(replace(stream, method="posix"), 1) == 0


def test_trap_a_flush_behind_several_calls_that_differ_by_a_byte(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/log", 66_000, 1.0, rank=0, module="STDIO", calls=9000, FLUSHES=3000)
    told: list[Explanation] = []
    run.describe(tmp_path, told=told.append)
    assert not told[0].of(CONTRADICTED)


def test_trap_more_states_than_bytes(tmp_path: Path) -> None:
    """A counter that says more time steps than there are bytes leaves no empty dump behind."""
    run = Run(nprocs=2)
    run.write(
        "/s/viz",
        7,
        1.0,
        module="MPIIO",
        duration_s=80.0,
        calls=40,
        SYNCS=40,
        F_WRITE_TIME=0.5,
        INDEP_WRITES=40,
        COLL_WRITES=0,
    )
    run.describe(tmp_path)


def test_trap_traces_of_nothing(tmp_path: Path) -> None:
    """Segments without bytes, or of a file whose record says otherwise."""
    for length in (0, 1):
        run = Run(nprocs=1)
        file = run.write("/s/viz", 8 * MIB, 1.0, rank=0, duration_s=90.0)
        run.add(
            "DXT_POSIX",
            {"id": file, "rank": 0, "write_segments": [(0, 0, 1.0, 1.1), (0, length, 50.0, 50.1)]},
        )
        assert sum(sizes(only(parse(run.describe(tmp_path).to_text(), "x")))) == 8 * MIB

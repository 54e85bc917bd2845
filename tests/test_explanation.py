"""What a description explains of a log: equal, contradicted, or not known."""

from collections import Counter
from pathlib import Path

import pytest

from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.commands import describe
from understudy.inference.score.explanation import (
    BESIDE,
    CONTRADICTED,
    CREATED,
    EXPLAINED,
    INHERITED,
    LIBRARY,
    MAPPED,
    ORDER,
    PLACES,
    RANKS,
    SEEKS,
    SIZES,
    STATES,
    SUMS,
    UNCOUNTED,
    UNKNOWN,
    Explanation,
    Part,
)
from understudy.paths import where
from understudy.program.opens import opens_of
from understudy.readers import darshan

MIB = 1 << 20
CASES = where("traces") / "cases"


def explained(path: Path) -> Explanation:
    found: list[Explanation] = []
    darshan.read(path, told=found.append)
    return found[0]


def of_run(run: Run, folder: Path) -> Explanation:
    found: list[Explanation] = []
    run.describe(folder, told=found.append)
    return found[0]


def differences(log: Explanation) -> dict[str, tuple[int, int]]:
    return {d.what: (d.predicted, d.counted) for part in log.parts for d in part.differences}


# Of logs that are described wrongly, by what they say themselves.
NAMED = {
    "collective_rounds": PLACES,
    "collective_views": PLACES,
    "one_h5dwrite": ("MPIIO_INDEP_WRITES", 49_051_962, 73_600_007),
    "readshift": ("ranks of files", 4, 8),
    "zerolen": ("MPIIO_COLL_WRITES", 16, 32),
}


def test_every_case_is_one_of_these() -> None:
    assert {path.stem for path in CASES.glob("*.darshan")} == {
        *NAMED,
        "ior_4_passes",
        "iwriteat",
        "rename",
        "uneven",
    }


def test_renames_are_operations() -> None:
    log = explained(CASES / "rename.darshan")
    assert log.share(log.of(EXPLAINED)) == 1


def test_calls_of_one_size_are_of_that_size_in_each_time_step() -> None:
    """As many in each as its bytes need, rather than equally many of another size."""
    found: list[Explanation] = []
    made = darshan.read(CASES / "uneven.darshan", told=found.append)
    moves = [(m.variable.bytes, m.transfer_bytes) for m in made.streams[0].moves]
    assert moves == [(4_000_000, 100_000), (16_000_000, 100_000), (64_000_000, 100_000)]
    assert found[0].share(found[0].of(EXPLAINED)) == 1


def test_moves_that_were_only_begun_are_begun() -> None:
    """Computing beside them, and waiting, are not told apart."""
    found: list[Explanation] = []
    made = darshan.read(CASES / "iwriteat.darshan", told=found.append)
    [stream] = made.streams
    [step] = stream.steps
    assert [type(i).__name__ for i in step.body] == ["Begin", "Open", "Move", "WaitAll", "Close"]
    assert next(stream.moves).nonblocking and not found[0].of(CONTRADICTED)
    assert not any(one.path.endswith("compute_s") for one in made.provenance)
    assert made.source and any("nor computing beside them" in note for note in made.source.notes)


@pytest.mark.parametrize("name", NAMED)
def test_what_is_described_wrongly_is_named(name: str) -> None:
    log, expected = explained(CASES / f"{name}.darshan"), NAMED[name]
    if isinstance(expected, str):
        assert log.share([p for p in log.of(UNKNOWN) if expected in p.unknown]) > 0.9
    else:
        what, predicted, counted = expected
        assert differences(log)[what] == (predicted, counted)
    assert sum(log.share(log.of(state)) for state in STATES) == pytest.approx(1)


def writing(log: Explanation) -> Part:
    return next(part for part in log.parts if part.way == "WRITE")


def test_a_log_of_which_every_counter_is_as_predicted(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for rank in range(4):
        run.write(f"/s/a.{rank}", MIB, 1.0, rank=rank, calls=4, CONSEC_WRITES=3, SEQ_WRITES=3)
    log = of_run(run, tmp_path)
    assert log.of(EXPLAINED) == list(log.parts) and log.share(log.of(EXPLAINED)) == 1


@pytest.mark.parametrize(
    ("counters", "what"),
    [
        ({"CONSEC_WRITES": 1}, "POSIX_CONSEC_WRITES"),
        ({"MAX_BYTE_WRITTEN": 2 * MIB - 1}, "bytes of the files"),
        ({"SIZE_WRITE_100K_1M": 2, "SIZE_WRITE_1K_10K": 2}, "calls of 262,144 B"),
        ({"ACCESS1_ACCESS": 8192, "SIZE_WRITE_100K_1M": 4}, "calls of 8,192 B"),
    ],
)
def test_a_counter_that_is_otherwise_is_named(
    counters: dict[str, int], what: str, tmp_path: Path
) -> None:
    """Each of these is read, or left out by the description; what it says is held against it."""
    run = Run(nprocs=1)
    usual = {"CONSEC_WRITES": 3, "SEQ_WRITES": 3}
    run.write("/s/a", MIB, 1.0, rank=0, calls=4, **(usual | counters))
    log = of_run(run, tmp_path)
    part = writing(log)
    assert part.state == CONTRADICTED and what in {d.what for d in part.differences}
    assert any(note.startswith("Contradicted: writing output-0") for note in log.notes())


def test_duplicates_of_descriptors_are_no_opens(tmp_path: Path) -> None:
    """POSIX_OPENS counts each dup() and fileno() as well."""
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, OPENS=9, DUPS=8)
    assert not of_run(run, tmp_path).of(CONTRADICTED)


@pytest.mark.parametrize(("fdopens", "opens"), [(0, 4), (3, 1)])
def test_streams_of_open_descriptors_are_no_opens(
    fdopens: int, opens: int, tmp_path: Path
) -> None:
    """A file that is opened, and three streams of it by fdopen() or by fopen()."""
    run = Run(nprocs=1)
    file = run.write("/s/a", MIB, 1.0, rank=0, module="STDIO", calls=3, OPENS=3, FDOPENS=fdopens)
    times = {"F_OPEN_START_TIMESTAMP": 1.0, "F_OPEN_END_TIMESTAMP": 1.1, "F_META_TIME": 0.1}
    counters = {"OPENS": 1 + fdopens, "DUPS": fdopens, "MODE": 0o644} | times
    run.add(
        "POSIX", {"id": file, "rank": 0} | {f"POSIX_{name}": n for name, n in counters.items()}
    )
    found: list[Explanation] = []
    made = run.describe(tmp_path, told=found.append)
    assert sum(opens_of(stream, 1) for stream in made.streams) == opens
    assert not found[0].of(CONTRADICTED)


def test_files_that_are_written_and_read_are_each_counted(tmp_path: Path) -> None:
    """Of five files that are read, one is written: taken for one that is appended to."""
    run = Run(run_time_s=100.0, nprocs=1)
    for n in range(5):
        more = {"READS": 2, "BYTES_READ": 28, "MAX_BYTE_READ": 21, "FLUSHES": 1}
        more |= {"F_READ_START_TIMESTAMP": 60.0 + n, "F_READ_END_TIMESTAMP": 60.1 + n}
        more |= {"OPENS": 3, "F_READ_TIME": 0.001}
        run.write(f"/s/a{n}", 22, 1.0 + 2 * n, rank=0, module="STDIO", **more)
    assert differences(of_run(run, tmp_path))["files that are written"] == (1, 5)


def test_what_is_not_known_of_a_contradicted_part_is_said(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, calls=4, CONSEC_WRITES=1, MMAPS=1)
    log = of_run(run, tmp_path)
    assert writing(log) in log.of(CONTRADICTED) and writing(log) in log.lacking()
    told = [note for note in log.notes() if " writing output-0 " in note]
    assert [note.split(":")[0] for note in told] == ["Contradicted", "Not known"]


def test_opens_of_directories_may_be_none_of_files(tmp_path: Path) -> None:
    """Darshan counts the opens of both, of which a directory is one that others are in."""
    for name, unknown in (("/s/d", (CREATED,)), ("/s/e", ())):
        (tmp_path / name[3:]).mkdir()
        run = Run(nprocs=1)
        run.write("/s/d/a", MIB, 1.0, rank=0)
        times = {"F_OPEN_START_TIMESTAMP": 5.0, "F_OPEN_END_TIMESTAMP": 5.1, "F_META_TIME": 0.1}
        counters = {f"POSIX_{key}": n for key, n in ({"OPENS": 9} | times).items()}
        run.add("POSIX", {"id": run.file(name), "rank": 0} | counters)
        log = of_run(run, tmp_path / name[3:])
        assert {lack for p in log.parts if p.way == "META" for lack in p.unknown} == {*unknown}


def test_processes_that_write_to_no_file_may_write_elsewhere(tmp_path: Path) -> None:
    """To a descriptor that a shell has opened for them; ranks of MPI have a launcher."""
    for nprocs, written, named in ((1, 0, True), (1, MIB, False), (2, 0, False)):
        folder = tmp_path / f"{nprocs}-{written}"
        folder.mkdir()
        run = Run(nprocs=nprocs)
        run.read("/s/in", MIB, 1.0, rank=0)
        if written:
            run.write("/s/out", written, 2.0, rank=0)
        log = of_run(run, folder)
        assert (INHERITED in {lack for part in log.parts for lack in part.unknown}) == named


def test_one_process_of_several_that_wrote_to_no_file_is_enough(tmp_path: Path) -> None:
    logs = []
    for name in ("reads", "writes"):
        run = Run(nprocs=1)
        run.read("/s/in", MIB, 1.0, rank=0)
        if name == "writes":
            run.write("/s/out", MIB, 2.0, rank=0)
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    found: list[Explanation] = []
    darshan.read(logs[0], others=logs[1:], told=found.append)
    assert any(INHERITED in part.unknown for part in found[0].parts)


def test_places_of_collective_calls_are_not_known_unless_each_rank_makes_one(
    tmp_path: Path,
) -> None:
    for calls, unknown in ((4, ()), (16, (PLACES,))):
        (tmp_path / str(calls)).mkdir()
        run = Run(nprocs=4)
        run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=calls, COLL_OPENS=4)
        run.write("/s/a", 16 * MIB, 1.0, rank=0, calls=1)
        assert writing(of_run(run, tmp_path / str(calls))).unknown == unknown


def test_a_view_of_which_posix_has_other_calls_is_not_known(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=4, COLL_OPENS=4, VIEWS=4)
    run.write("/s/a", 16 * MIB, 1.0, rank=0, calls=1)
    assert writing(of_run(run, tmp_path)).unknown == (PLACES,)


def test_sizes_of_stdio_are_not_known_where_two_explanations_are_as_short(tmp_path: Path) -> None:
    for calls, size, unknown in ((161, 3_528_044, (SIZES,)), (352_008, 4_272_389, ())):
        (tmp_path / str(calls)).mkdir()
        run = Run(nprocs=1)
        run.write("/s/a", size, 1.0, rank=0, module="STDIO", calls=calls)
        assert writing(of_run(run, tmp_path / str(calls))).unknown == unknown


def test_sizes_that_do_not_add_up_to_the_calls_are_not_known(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", 20 * MIB, 1.0, rank=0, calls=20, SIZE_WRITE_100_1K=40)
    assert writing(of_run(run, tmp_path)).unknown == (SUMS,)


@pytest.mark.parametrize("page", [4096, MIB])
def test_writes_within_pages_contradict_those_of_whole_pages(page: int, tmp_path: Path) -> None:
    """Shifted by 100 B: the storage is asked for twice as many pages. Of other pages than those of
    the storage, nothing is told."""
    run = Run(nprocs=1)
    more = {"CONSEC_WRITES": 1023, "SEQ_WRITES": 1023, "FILE_ALIGNMENT": page}
    more |= {"ACCESS1_ACCESS": 8192, "ACCESS1_COUNT": 1024, "FILE_NOT_ALIGNED": 1024}
    more |= {"MAX_BYTE_WRITTEN": 8 * MIB + 99}
    run.write("/s/a", 8 * MIB, 1.0, rank=0, calls=1024, **more)
    expected = {"POSIX_FILE_NOT_ALIGNED": (0, 1024)} if page == 4096 else {}
    assert differences(of_run(run, tmp_path)) == expected


def test_reads_and_writes_that_alternate_in_no_known_way(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    more = {"READS": 100, "BYTES_READ": MIB, "RW_SWITCHES": 50, "F_READ_TIME": 0.1}
    more |= {"F_READ_START_TIMESTAMP": 1.0, "F_READ_END_TIMESTAMP": 1.1, "MAX_BYTE_READ": MIB - 1}
    run.write("/s/a", MIB, 1.0, rank=0, calls=100, **more)
    log = of_run(run, tmp_path)
    told = {lack for part in log.parts for lack in part.unknown}
    assert ORDER in told or "POSIX_RW_SWITCHES" in differences(log)


def test_a_library_that_makes_other_calls_of_its_data_is_not_known(tmp_path: Path) -> None:
    """4 MiB in four collective calls of HDF5, which are 16,384 calls of POSIX."""
    for small, unknown in ((0, ()), (16_384, (LIBRARY,))):
        (tmp_path / str(small)).mkdir()
        run = Run(nprocs=4)
        file, dataset = run.file("/s/a.h5"), run.file("/s/a.h5:/u")
        run.add("H5F", {"id": file, "rank": -1, "H5F_OPENS": 4})
        counters = {"OPENS": 4, "BYTES_WRITTEN": 4 * MIB, "WRITES": 4, "F_WRITE_TIME": 1.0}
        counters |= {"USE_MPIIO_COLLECTIVE": 1, "SIZE_WRITE_AGG_100K_1M": 4}
        counters |= {"F_WRITE_START_TIMESTAMP": 1.0, "F_WRITE_END_TIMESTAMP": 2.0}
        record = {f"H5D_{name}": value for name, value in counters.items()}
        run.add("H5D", {"id": dataset, "file_rec_id": file, "rank": -1} | record)
        sizes = {"SIZE_WRITE_100_1K": small} if small else {"SIZE_WRITE_100K_1M": 4}
        run.write("/s/a.h5", 4 * MIB, 1.0, calls=small or 4, OPENS=4, **sizes)
        assert writing(of_run(run, tmp_path / str(small))).unknown == unknown


def test_time_of_files_that_no_stream_has_is_not_explained(tmp_path: Path) -> None:
    """Writes of no bytes, which take all of the time."""
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, F_WRITE_TIME=0.1)
    run.write("/s/b", 1, 50.0, rank=0, BYTES_WRITTEN=0, WRITES=100_000, F_WRITE_TIME=30.0)
    log = of_run(run, tmp_path)
    assert log.share(log.of(EXPLAINED)) < 0.01
    assert any("POSIX_WRITES 0 predicted, 100,000 counted" in note for note in log.notes())


def test_a_log_without_time_is_divided_by_its_parts(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, F_WRITE_TIME=0.0)
    log = of_run(run, tmp_path)
    assert log.share(log.of(EXPLAINED)) == 1


def reading(log: Explanation) -> Part:
    return next(part for part in log.parts if part.way == "READ")


@pytest.mark.parametrize("module", ["POSIX", "STDIO"])
def test_files_that_are_read_farther_or_less_far_than_the_replica_does(
    module: str, tmp_path: Path
) -> None:
    """All ranks read the same bytes, or one reads here and there: other files than those of the
    replica. Of the whole file, each rank its part, nothing is otherwise."""
    for last, state in ((MIB, CONTRADICTED), (1 << 40, CONTRADICTED), (4 * MIB, EXPLAINED)):
        (tmp_path / str(last)).mkdir()
        run = Run(nprocs=4)
        more = {"CONSEC_READS": 1020, "SEQ_READS": 1020} if module == "POSIX" else {}
        run.read(
            "/s/a",
            4 * MIB,
            1.0,
            calls=1024,
            module=module,
            MAX_BYTE_READ=last - 1,
            OPENS=4,
            **more,
        )
        part = reading(of_run(run, tmp_path / str(last)))
        assert part.state == state
        assert ("bytes of the files up to the last one read" in str(part.differences)) == (
            state == CONTRADICTED
        )


def test_a_variance_that_is_no_number_or_not_finite_is_none(tmp_path: Path) -> None:
    for value in (float("nan"), float("inf"), -1.0):
        (tmp_path / str(value)).mkdir()
        run = Run(nprocs=4)
        run.write(
            "/s/a", 4 * MIB, 1.0, calls=4, OPENS=4, SEQ_WRITES=3, F_VARIANCE_RANK_BYTES=value
        )
        assert "deviation" not in str(writing(of_run(run, tmp_path / str(value))).differences)


def test_shares_of_files_that_are_written_and_read_are_not_known(tmp_path: Path) -> None:
    """Darshan adds up what a rank wrote and read."""
    run = Run(nprocs=4)
    more = {"READS": 4, "BYTES_READ": 4 * MIB, "MAX_BYTE_READ": 4 * MIB - 1, "F_READ_TIME": 0.1}
    more |= {"F_READ_START_TIMESTAMP": 5.0, "F_READ_END_TIMESTAMP": 5.1}
    run.write(
        "/s/a", 4 * MIB, 1.0, calls=4, OPENS=8, F_VARIANCE_RANK_BYTES=float(MIB) ** 2, **more
    )
    log = of_run(run, tmp_path)
    assert log.of(EXPLAINED) == [p for p in log.parts if p.way == "META"]
    assert RANKS in {lack for part in log.parts for lack in part.unknown}


def test_files_that_were_mapped_into_memory_are_not_known(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, calls=4, CONSEC_WRITES=3, SEQ_WRITES=3, MMAPS=1)
    assert MAPPED in writing(of_run(run, tmp_path)).unknown


def test_what_posix_read_of_files_that_mpiio_only_wrote_is_not_known(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=4, COLL_OPENS=4)
    more = {"READS": 16, "BYTES_READ": 16 * MIB, "F_READ_TIME": 1.0, "MAX_BYTE_READ": 16 * MIB - 1}
    more |= {"F_READ_START_TIMESTAMP": 5.0, "F_READ_END_TIMESTAMP": 6.0}
    run.write("/s/a", 16 * MIB, 1.0, rank=0, calls=1, **more)
    [part] = [p for p in of_run(run, tmp_path).parts if p.module == "POSIX"]
    assert part.way == "READ" and part.unknown == (BESIDE,)


def test_calls_of_mpiio_that_posix_made_in_parts_are_not_placed(tmp_path: Path) -> None:
    for calls, unknown in ((4, ()), (64, (PLACES,))):
        (tmp_path / str(calls)).mkdir()
        run = Run(nprocs=4)
        run.write("/s/a", 16 * MIB, 1.0, module="MPIIO", calls=4, INDEP_OPENS=4)
        run.write("/s/a", 16 * MIB, 1.0, calls=calls, SEQ_WRITES=calls - 1)
        assert writing(of_run(run, tmp_path / str(calls))).unknown == unknown


def test_datasets_that_another_layer_completes_are_counted(tmp_path: Path) -> None:
    """Rank 0 has no record of HDF5, but one of MPI-IO like the others."""
    run = Run(nprocs=4)
    file, dataset = run.file("/s/a.h5"), run.file("/s/a.h5:/u")
    for rank in range(4):
        run.write("/s/a.h5", MIB, 1.0, module="MPIIO", rank=rank, calls=1, COLL_OPENS=1)
        if rank:
            times = {"H5D_F_WRITE_START_TIMESTAMP": 1.0, "H5D_F_WRITE_END_TIMESTAMP": 2.0}
            counters = {"H5D_OPENS": 1, "H5D_WRITES": 1, "H5D_BYTES_WRITTEN": MIB}
            counters |= {"H5D_SIZE_WRITE_AGG_100K_1M": 1, "H5D_USE_MPIIO_COLLECTIVE": 1}
            run.add("H5F", {"id": file, "rank": rank, "H5F_OPENS": 1})
            run.add("H5D", {"id": dataset, "file_rec_id": file, "rank": rank} | counters | times)
    assert not of_run(run, tmp_path).of(CONTRADICTED)


@pytest.mark.parametrize("interface", ["MPIIO", "H5D"])
def test_ranks_that_moved_one_of_two_shares(interface: str, tmp_path: Path) -> None:
    """Of 16 ranks eight wrote 5 blocks and eight 4, as those of MACSio: the bytes of the fastest
    and of the slowest rank, the sum and the variance tell how many of each there are."""
    block, run = 184_512, Run(nprocs=16)
    counters = {"FASTEST_RANK": 9, "FASTEST_RANK_BYTES": 4 * block, "SLOWEST_RANK": 7}
    counters |= {"SLOWEST_RANK_BYTES": 5 * block, "F_VARIANCE_RANK_BYTES": (block / 2) ** 2}
    counters |= {"ACCESS1_ACCESS": block, "ACCESS1_COUNT": 72}
    sizes = {"SIZE_WRITE_AGG_100K_1M": 72, "SIZE_WRITE_AGG_0_100": 8}
    if interface == "MPIIO":
        opens = {"COLL_OPENS": 16, "INDEP_WRITES": 0, "COLL_WRITES": 80}
        run.write("/s/a", 72 * block, 1.0, module="MPIIO", calls=80, **counters, **sizes, **opens)
    else:
        file, dataset = run.file("/s/a.h5"), run.file("/s/a.h5:/u")
        run.add("H5F", {"id": file, "rank": -1, "H5F_OPENS": 16})
        counters |= {"OPENS": 16, "BYTES_WRITTEN": 72 * block, "WRITES": 80} | sizes
        counters |= {"USE_MPIIO_COLLECTIVE": 1, "F_WRITE_TIME": 1.0}
        counters |= {"F_WRITE_START_TIMESTAMP": 1.0, "F_WRITE_END_TIMESTAMP": 2.0}
        record = {f"H5D_{name}": value for name, value in counters.items()}
        run.add("H5D", {"id": dataset, "file_rec_id": file, "rank": -1} | record)
    found: list[Explanation] = []
    made = run.describe(tmp_path, told=found.append)
    [move] = made.streams[0].moves
    runs = Counter[int]()
    for ranks, rows in move.variable.decomposition.runs:
        runs[rows] += ranks
    assert runs == {4 * block: 8, 5 * block: 8} and move.transfer_bytes == block
    assert not found[0].of(CONTRADICTED)


def test_what_was_moved_in_files_of_which_opens_alone_are_counted_is_not_known(
    tmp_path: Path,
) -> None:
    """Of stdio's putc, fprintf and _unlocked calls, of copies within the system and of descriptors
    that are inherited, Darshan counts nothing; and of opens through stdio, no mode."""
    for module, more, created in (
        ("POSIX", {}, ()),
        ("POSIX", {"OPENS": 3, "MODE": 0o644}, (CREATED,)),
        ("POSIX", {"READS": 1}, None),
        ("STDIO", {}, (CREATED,)),
    ):
        folder = tmp_path / f"{module}{len(more)}{created}"
        folder.mkdir()
        run = Run(nprocs=1)
        run.write("/s/a", MIB, 1.0, rank=0, calls=4, CONSEC_WRITES=3, SEQ_WRITES=3)
        counters = {"BYTES_READ": 0, "READS": 0, "MAX_BYTE_READ": 0, "ACCESS1_COUNT": 0}
        if module == "STDIO":
            del counters["ACCESS1_COUNT"]
        counters["F_READ_TIME"] = 0
        run.read("/t/b", 0, 2.0, rank=0, module=module, **(counters | more))
        parts = of_run(run, folder).of(UNKNOWN)
        either = [part for part in parts if part.way == "EITHER"]
        others = [part for part in parts if part.way == "META"]
        assert [part.unknown for part in either] == [(UNCOUNTED,)] * (created is not None)
        assert all(part.time_s == 0 and "reading or writing" in part.name for part in either)
        assert {lack for part in others for lack in part.unknown} == set(created or ())


def test_an_open_that_is_given_to_fdopen_may_have_created_its_file(tmp_path: Path) -> None:
    """Of mkstemp(), Darshan has no mode."""
    run = Run(nprocs=1)
    run.write("/s/a", MIB, 1.0, rank=0, calls=4, CONSEC_WRITES=3, SEQ_WRITES=3)
    for module, counters in (("POSIX", {"OPENS": 1}), ("STDIO", {"OPENS": 1, "FDOPENS": 1})):
        times = {"F_OPEN_START_TIMESTAMP": 5.0, "F_OPEN_END_TIMESTAMP": 5.1, "F_META_TIME": 0.1}
        row = {f"{module}_{name}": n for name, n in (counters | times).items()}
        run.add(module, {"id": run.file("/t/b"), "rank": 0} | row)
    log = of_run(run, tmp_path)
    assert CREATED in {lack for part in log.parts for lack in part.unknown}


def test_seeks_that_may_ask_for_the_size_of_a_file_are_not_known(tmp_path: Path) -> None:
    """Each may go to the end, as those behind an open to append."""
    for seeks, unknown in ((0, ()), (12, (SEEKS,))):
        (tmp_path / str(seeks)).mkdir()
        run = Run(nprocs=1)
        more = {"CONSEC_WRITES": 3, "SEQ_WRITES": 3, "F_META_TIME": 0.1, "SEEKS": seeks}
        run.write("/s/a", MIB, 1.0, rank=0, calls=4, **more)
        log = of_run(run, tmp_path / str(seeks))
        assert next(part for part in log.parts if part.way == "META").unknown == unknown
        assert writing(log).state == EXPLAINED


def test_everything_that_is_not_known_has_a_source_that_tells_it() -> None:
    lacks = {SIZES, PLACES, LIBRARY, ORDER, RANKS, MAPPED, BESIDE, UNCOUNTED, CREATED, SEEKS}
    lacks |= {INHERITED, SUMS}
    assert set(describe.SOURCES) == lacks


def test_readers_of_what_one_rank_wrote_may_all_read_the_same(tmp_path: Path) -> None:
    """The replica's readers have a file of their own, which is larger."""
    run = Run(nprocs=2)
    run.write("/s/a", 4 * MIB, 1.0, rank=0, calls=4, CONSEC_WRITES=3, SEQ_WRITES=3)
    for rank in range(2):
        run.read("/s/a", 4 * MIB, 9.0, rank=rank, calls=4, MAX_BYTE_READ=4 * MIB - 1)
    part = reading(of_run(run, tmp_path))
    said("bytes-files-up-last", str(part.differences))

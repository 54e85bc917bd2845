"""The raw counters of logs, interface by interface: of an application and of a replica."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.readers.synthetic import Run
from tests.support.keys import with_keys
from tests.support.said import said
from understudy.contracts import workload
from understudy.darshanlog import open_log
from understudy.inference.log import interface_counters
from understudy.judge.fidelity.stream_fidelity import Comparison, compare
from understudy.observations.observed_logs import observe
from understudy.paths import where

MIB = 1 << 20


def raw(log: Path) -> interface_counters.Interfaces:
    with open_log(log) as opened:
        return interface_counters.of_log(opened)


def errors(made: Comparison) -> dict[tuple[str, str], float | None]:
    return {(layer.name, m.quantity): m.error for layer in made.layers for m in layer.measures}


@pytest.mark.parametrize("side", ["original", "replica"])
def test_a_darshan_without_hdf5_is_named_as_the_cause(side: str, tmp_path: Path) -> None:
    whole, bare = Run(nprocs=1), Run(nprocs=1)
    for run in (whole, bare):
        run.write("/s/a.h5", MIB, 1.0, rank=0)
    file, dataset = whole.file("/s/a.h5"), whole.file("/s/a.h5:/u")
    whole.add("H5F", {"id": file, "rank": 0, "H5F_OPENS": 1})
    whole.add(
        "H5D",
        {"id": dataset, "file_rec_id": file, "rank": 0, "H5D_BYTES_WRITTEN": MIB, "H5D_WRITES": 1},
    )
    for folder, run in (("whole", whole), ("bare", bare)):
        (tmp_path / folder).mkdir()
        run.log(tmp_path / folder / "a.darshan")
    logs = [tmp_path / folder / "a.darshan" for folder in ("whole", "bare")]
    first, second = map(observe, logs if side == "replica" else reversed(logs))
    told = [n for n in compare(first, second).notes if "built without HDF5" in n]
    assert len(told) == 1 and said("log-has-no-records", told[0], side=side)
    assert not any("HDF5" in n for n in compare(first, first).notes)


def test_the_highest_module_is_the_applications(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    file, dataset = run.file("/s/a.h5"), run.file("/s/a.h5:/u")
    run.add("H5F", {"id": file, "rank": -1, "H5F_OPENS": 4})
    run.add(
        "H5D",
        {
            "id": dataset,
            "file_rec_id": file,
            "rank": -1,
            "H5D_BYTES_WRITTEN": MIB,
            "H5D_WRITES": 4,
            "H5D_SIZE_WRITE_AGG_100K_1M": 4,
        },
    )
    run.write("/s/a.h5", 2 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/a.h5", 3 * MIB, 1.0)
    run.write("/s/b.dat", 5 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/b.dat", 6 * MIB, 1.0)
    run.write("/s/b.dat", 7, 1.0, rank=0, module="STDIO")
    run.write("/s/c.dat", 8 * MIB, 1.0, rank=1)
    run.write("/dev/shm/x_cid-0-1.sm", 99, 1.0)  # is left out: it is Open MPI's
    found = raw(run.log(tmp_path / "a.darshan"))
    assert {name: (t.bytes, t.opens) for name, t in found.direct.items()} == {
        "HDF5": ([0, MIB], 4),
        "MPI-IO": ([0, 5 * MIB], 4),
        "STDIO": ([0, 7], 1),
        "POSIX": ([0, 8 * MIB], 1),
    }
    assert {key: t.bytes[1] for key, t in found.below.items()} == {
        ("MPI-IO", "HDF5"): 2 * MIB,
        ("POSIX", "HDF5"): 3 * MIB,
        ("POSIX", "MPI-IO"): 6 * MIB,
    }


def test_a_stream_by_handle_is_opened_once(tmp_path: Path) -> None:
    """A C++ stream has a record in STDIO, without bytes, and one in POSIX."""
    run = Run(nprocs=1)
    file = run.write("/s/U", MIB, 1.0, rank=0, FILENOS=1)
    run.add("STDIO", {"id": file, "rank": 0, "STDIO_OPENS": 1})
    assert {name: t.opens for name, t in raw(run.log(tmp_path / "a.darshan")).direct.items()} == {
        "POSIX": 1
    }


def test_an_overflowed_counter_is_counted_without_its_sign(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/big", 2_400_000_000 - (1 << 32), 1.0, rank=0, module="MPIIO")
    assert raw(run.log(tmp_path / "a.darshan")).direct["MPI-IO"].bytes == [0, 2_400_000_000]


def test_an_error_of_the_reader_does_not_cancel_out(tmp_path: Path) -> None:
    """A file is written 14 times in place. However both logs are described, a replica that writes
    it once moves a 14th of the bytes."""
    logs = []
    for name, times in (("app", 14), ("replica", 1)):
        run = Run(nprocs=1)
        run.write(
            "/s/wfc.1",
            times * MIB,
            1.0,
            rank=0,
            calls=times,
            MAX_BYTE_WRITTEN=MIB - 1,
            SIZE_WRITE_1M_4M=times,
        )
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    made = compare(*map(observe, logs), time_scale=0)
    assert errors(made)["POSIX", "bytes written"] == pytest.approx(1 / 14 - 1)
    assert errors(made)["POSIX", "writes"] == pytest.approx(1 / 14 - 1)
    assert errors(made)["POSIX", "sizes of writes"] == 0
    said("posix-writes-became", list(made.failures()))
    assert compare(observe(logs[0]), observe(logs[0])).passed


def test_what_a_library_makes_at_the_storage_is_judged(tmp_path: Path) -> None:
    logs = []
    for name, below in (("app", 4 * MIB), ("replica", 16 * MIB)):
        run = Run()
        run.write("/s/a.dat", 4 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
        run.write("/s/a.dat", below, 1.0, rank=0, MAX_BYTE_WRITTEN=4 * MIB - 1)
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    made = compare(*map(observe, logs), time_scale=0)
    assert (made.application, made.storage, made.passed) == (True, False, False)
    assert errors(made)["POSIX below MPI-IO", "bytes written"] == 3
    assert any("POSIX below MPI-IO: bytes written" in failure for failure in made.failures())
    same = compare(observe(logs[0]), observe(logs[0]))
    assert (same.application, same.storage, same.passed) == (True, True, True)
    [below_mpi] = [x for x in made.layers if x.name == "POSIX below MPI-IO"]
    assert [(m.original, m.replica) for m in below_mpi.measures[:1]] == [
        ("4,194,304", "16,777,216")
    ]


def test_seeks_of_stdio_are_compared_with_its_calls(tmp_path: Path) -> None:
    logs = []
    for name, seeks in (("app", 90), ("same", 85), ("replica", 2)):
        run = Run(nprocs=1)
        run.write("/s/a", MIB, 1.0, rank=0, module="STDIO", calls=100, SEEKS=seeks)
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    made = [compare(observe(logs[0]), observe(log), time_scale=0) for log in logs[1:]]
    assert [errors(m)["STDIO", "seeks"] for m in made] == [-0.05, -0.88]
    assert [(m.passed, m.storage) for m in made] == [(True, None), (False, None)]


@pytest.mark.parametrize(("stdio_bytes", "storage"), [(0, True), (MIB, True), (20 * MIB, None)])
def test_of_stdio_only_what_can_decide_leaves_the_storage_open(
    tmp_path: Path, stdio_bytes: int, storage: bool | None
) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", 100 * MIB, 1.0, rank=0, calls=100)
    if stdio_bytes:
        run.write("/s/b", stdio_bytes, 1.0, rank=0, module="STDIO", calls=1)
    found = observe(run.log(tmp_path / "a.darshan"))
    made = compare(found, found)
    assert (made.passed, made.storage) == (True, storage)


def test_a_storage_of_which_a_side_does_not_tell_is_no_pass(tmp_path: Path) -> None:
    """MPI-IO without the records of POSIX, beside a file of POSIX that is the same."""
    run = Run()
    run.write("/s/a.dat", 4 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/b", MIB, 1.0, rank=0)
    found = observe(run.log(tmp_path / "a.darshan"))
    made = compare(found, found)
    assert (made.application, made.storage, made.passed) == (True, None, True)


def test_stats_that_no_runtime_sees_are_not_compared(tmp_path: Path) -> None:
    def log(name: str, stats: int) -> Path:
        run = Run(nprocs=1)
        run.write("/s/a", MIB, 1.0, rank=0, STATS=stats)
        return run.log(tmp_path / name)

    many, few, none = log("many", 100), log("few", 50), log("none", 0)
    assert errors(compare(observe(many), observe(few)))["POSIX", "stats"] == -0.5
    made = compare(observe(many), observe(none))
    assert errors(made)["POSIX", "stats"] is None and made.passed


def test_flushes_that_the_application_never_made_are_found(tmp_path: Path) -> None:
    """fflush empties the buffer of stdio; an fsync besides it waits for storage."""
    logs = []
    for name, fsyncs in (("app", 0), ("replica", 4)):
        run = Run(nprocs=1)
        file = run.write("/s/a", MIB, 1.0, rank=0, module="STDIO", calls=4, FLUSHES=4)
        if fsyncs:
            run.add(
                "POSIX",
                {"id": file, "rank": 0, "POSIX_OPENS": 1, "POSIX_FILENOS": 1}
                | {"POSIX_FSYNCS": fsyncs},
            )
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    made = compare(*map(observe, logs))
    assert list(made.failures()) == ["POSIX: flushes: 0 became 4 (+inf%)"]


def test_a_replica_without_the_flushes_of_a_descriptor_fails(tmp_path: Path) -> None:
    def error(flushes: int, sync: bool = False, **more: Any) -> float | None:
        made = workload.load(where("workloads") / "n-1.json")
        run = Run(nprocs=made.ranks)
        run.write("/s/a", MIB, 1.0, rank=0, FSYNCS=flushes)
        path = tmp_path / f"{flushes}.json"
        one = with_keys(made, method="posix", collective=False, sync=sync, **more)
        path.write_text(replace(one, streams=one.streams[:1]).to_text())
        both = observe(path), observe(run.log(tmp_path / "replica.darshan"))
        return errors(compare(*both)).get(("POSIX", "flushes"))

    assert error(0, sync=True) == -1
    assert error(2, sync=True) == pytest.approx(-1 / 3)  # it has three dumps
    assert error(3, sync=True) == error(90, sync=True) == 0
    assert error(0, sync_bytes=1000) == -1
    assert error(0, sync_bytes=1 << 40) is None  # no rank has as many bytes
    assert error(3) is None


def checkpoints(folder: Path, name: str, *, header_by_stdio: bool) -> Path:
    """Four checkpoints: 159 small calls of rank 0, then collective MPI-IO of all."""
    run = Run(nprocs=4)
    for step in range(4):
        file, at_s = f"/s/ck.{step}.mpiio", 9.0 * step + 1
        alone = 0 if header_by_stdio else 159
        run.write(
            file,
            4 * MIB + alone * 6,
            at_s + 0.5,
            module="MPIIO",
            calls=4,
            COLL_OPENS=4,
            INDEP_WRITES=alone,
            SIZE_WRITE_AGG_100K_1M=4,
            SIZE_WRITE_AGG_0_100=alone,
            ACCESS2_ACCESS=6,
            ACCESS2_COUNT=alone,
        )
        if header_by_stdio:
            run.write(file, 159 * 6, at_s, rank=0, module="STDIO", calls=159)
        run.write(file, 4 * MIB, at_s + 0.5, rank=0, MAX_BYTE_WRITTEN=4 * MIB + 159 * 6 - 1)
    return run.log(folder / f"{name}.darshan")


def test_calls_of_one_interface_do_not_stand_for_those_of_another(tmp_path: Path) -> None:
    """As many calls and bytes in all, the header through MPI-IO instead of stdio."""
    original = observe(checkpoints(tmp_path, "app", header_by_stdio=True))
    other = observe(checkpoints(tmp_path, "other", header_by_stdio=False))
    assert compare(original, original).passed
    made = compare(original, other)
    assert errors(made)["MPI-IO", "writes"] == pytest.approx(159 / 4)
    assert errors(made)["STDIO", "writes"] == -1
    assert {
        "MPI-IO: writes: 16 became 652 (+3975.0%)",
        "STDIO: writes: 636 became 0 (-100.0%)",
    } <= set(made.failures())
    assert {s.stream.method for s in original.streams} == {"stdio", "mpiio"}


def test_the_time_of_a_shared_record_is_that_of_all_ranks(tmp_path: Path) -> None:
    """A timer of a shared record may exceed the run time; a time stamp may not."""
    run = Run(nprocs=64, run_time_s=100.0)
    run.write("/s/a", 64 * MIB, 1.0, F_WRITE_TIME=64 * 90.0)
    run.write("/s/b", 64 * MIB, 1.0, F_WRITE_TIME=64 * 900.0)  # longer than the run: unknown
    assert raw(run.log(tmp_path / "a.darshan")).direct["POSIX"].time_s == [64 * 90.0, 0.0]


def test_files_that_are_longer_at_the_storage_are_found(tmp_path: Path) -> None:
    """The same calls and bytes, but updates in place became appended ones."""
    logs = []
    for name, end in (("app", 4 * MIB), ("replica", 20 * MIB)):
        run = Run(nprocs=2)
        for rank in (0, 1):
            run.write("/s/a", 10 * MIB, 1.0, rank=rank, calls=10, MAX_BYTE_WRITTEN=end - 1)
        logs.append(run.log(tmp_path / f"{name}.darshan"))
    original, replica = map(observe, logs)
    made = compare(original, replica)
    assert made.storage is False
    assert errors(made)["POSIX files", "bytes of files"] == 4
    assert errors(compare(original, original))["POSIX files", "bytes of files"] == 0

"""The raw counters of logs, interface by interface: of an application and of a replica."""

from collections.abc import Callable
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
Errors = dict[tuple[str, str], float | None]


def raw(log: Path) -> interface_counters.Interfaces:
    with open_log(log) as opened:
        return interface_counters.of_log(opened)


def errors(comparison: Comparison) -> Errors:
    layers = comparison.layers
    return {(layer.name, m.quantity): m.error for layer in layers for m in layer.measures}


def written(nprocs: int = 1, size: int = MIB, **more: Any) -> Run:
    """A run of which one rank writes a file."""
    run = Run(nprocs)
    run.write("/s/a", size, 1.0, rank=0, **more)
    return run


def beside(folder: Path, original: Run, replica: Run, **options: Any) -> Comparison:
    logs = (run.log(folder / f"{n}.darshan") for n, run in enumerate((original, replica)))
    return compare(*map(observe, logs), **options)


@pytest.mark.parametrize("side", ["original", "replica"])
def test_a_darshan_without_hdf5_is_named_as_the_cause(side: str, tmp_path: Path) -> None:
    whole, bare = Run(1), Run(1)
    for run in (whole, bare):
        run.write("/s/a.h5", MIB, 1.0, rank=0)
    whole.record("H5F", "/s/a.h5", OPENS=1)
    whole.dataset("/s/a.h5", MIB, 1.0, rank=0)
    runs = (whole, bare) if side == "replica" else (bare, whole)
    [note] = [n for n in beside(tmp_path, *runs).notes if "built without HDF5" in n]
    said("log-has-no-records", note, side=side)
    assert not any("HDF5" in n for n in beside(tmp_path, whole, whole).notes)


def test_the_highest_module_is_the_applications(tmp_path: Path) -> None:
    run = Run()
    run.record("H5F", "/s/a.h5", -1, OPENS=4)
    run.dataset("/s/a.h5", MIB, 1.0, WRITES=4, SIZE_WRITE_AGG_100K_1M=4)
    run.write("/s/a.h5", 2 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/a.h5", 3 * MIB, 1.0)
    run.write("/s/b.dat", 5 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/b.dat", 6 * MIB, 1.0)
    run.write("/s/b.dat", 7, 1.0, rank=0, module="STDIO")
    run.write("/s/c.dat", 8 * MIB, 1.0, rank=1)
    run.write("/dev/shm/x_cid-0-1.sm", 99, 1.0)  # is left out: it is Open MPI's
    interfaces = raw(run.log(tmp_path / "a.darshan"))
    assert {name: (t.bytes, t.opens) for name, t in interfaces.direct.items()} == {
        "HDF5": ([0, MIB], 4),
        "MPI-IO": ([0, 5 * MIB], 4),
        "STDIO": ([0, 7], 1),
        "POSIX": ([0, 8 * MIB], 1),
    }
    assert {key: t.bytes[1] for key, t in interfaces.below.items()} == {
        ("MPI-IO", "HDF5"): 2 * MIB,
        ("POSIX", "HDF5"): 3 * MIB,
        ("POSIX", "MPI-IO"): 6 * MIB,
    }


def test_a_stream_by_handle_is_opened_once(tmp_path: Path) -> None:
    """A C++ stream has a record in STDIO, without bytes, and one in POSIX."""
    run = written(FILENOS=1)
    run.record("STDIO", "/s/a", OPENS=1)
    opens = {name: t.opens for name, t in raw(run.log(tmp_path / "a.darshan")).direct.items()}
    assert opens == {"POSIX": 1}


def test_an_overflowed_counter_is_counted_without_its_sign(tmp_path: Path) -> None:
    run = written(size=2_400_000_000 - (1 << 32), module="MPIIO")
    assert raw(run.log(tmp_path / "a.darshan")).direct["MPI-IO"].bytes == [0, 2_400_000_000]


def test_the_time_of_a_shared_record_is_that_of_all_ranks(tmp_path: Path) -> None:
    """A timer of a shared record may exceed the run time; a time stamp may not."""
    run = Run(64)
    run.write("/s/a", 64 * MIB, 1.0, F_WRITE_TIME=64 * 90.0)
    run.write("/s/b", 64 * MIB, 1.0, F_WRITE_TIME=64 * 900.0)  # longer than the run: unknown
    assert raw(run.log(tmp_path / "a.darshan")).direct["POSIX"].time_s == [64 * 90.0, 0.0]


def in_place(times: int) -> Run:
    return written(size=times * MIB, calls=times, MAX_BYTE_WRITTEN=MIB - 1, SIZE_WRITE_1M_4M=times)


def collective(below: int) -> Run:
    run = Run()
    run.write("/s/a.dat", 4 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    run.write("/s/a.dat", below, 1.0, rank=0, MAX_BYTE_WRITTEN=4 * MIB - 1)
    return run


def seeks(number: int) -> Run:
    return written(module="STDIO", calls=100, SEEKS=number)


def stats(number: int) -> Run:
    return written(STATS=number)


def flushed(fsyncs: int) -> Run:
    """fflush empties the buffer of stdio; an fsync besides it waits for storage."""
    run = written(module="STDIO", calls=4, FLUSHES=4)
    if fsyncs:
        run.record("POSIX", "/s/a", OPENS=1, FILENOS=1, FSYNCS=fsyncs)
    return run


def updated(end: int) -> Run:
    run = Run(2)
    for rank in range(2):
        run.write("/s/a", 10 * MIB, 1.0, rank=rank, calls=10, MAX_BYTE_WRITTEN=end - 1)
    return run


def checkpoints(header_by_stdio: bool) -> Run:
    """Four checkpoints: 159 small calls of rank 0, then collective MPI-IO of all. As many calls
    and bytes in all, where the header is through MPI-IO instead of stdio."""
    run = Run()
    for step in range(4):
        file, at_s = f"/s/ck.{step}.mpiio", 9.0 * step + 1
        alone = 0 if header_by_stdio else 159
        more = {"COLL_OPENS": 4, "INDEP_WRITES": alone, "SIZE_WRITE_AGG_100K_1M": 4}
        more |= {"SIZE_WRITE_AGG_0_100": alone, "ACCESS2_ACCESS": 6, "ACCESS2_COUNT": alone}
        run.write(file, 4 * MIB + alone * 6, at_s + 0.5, module="MPIIO", calls=4, **more)
        if header_by_stdio:
            run.write(file, 159 * 6, at_s, rank=0, module="STDIO", calls=159)
        run.write(file, 4 * MIB, at_s + 0.5, rank=0, MAX_BYTE_WRITTEN=4 * MIB + 159 * 6 - 1)
    return run


OTHERS: list[tuple[Callable[[Any], Run], Any, Any, Errors, bool, bool | None]] = [
    # However both logs are described, a replica that writes once moves a 14th of the bytes.
    (
        in_place,
        14,
        1,
        {("POSIX", q): n for q, n in (("bytes written", -13 / 14), ("writes", -13 / 14))}
        | {("POSIX", "sizes of writes"): 0},
        False,
        False,
    ),
    # What a library makes at the storage is judged.
    (
        collective,
        4 * MIB,
        16 * MIB,
        {("POSIX below MPI-IO", "bytes written"): 3},
        False,
        False,
    ),
    (seeks, 90, 85, {("STDIO", "seeks"): -0.05}, True, None),
    (seeks, 90, 2, {("STDIO", "seeks"): -0.88}, False, None),
    (stats, 100, 50, {("POSIX", "stats"): -0.5}, False, False),
    (stats, 100, 0, {("POSIX", "stats"): None}, True, True),  # no runtime sees them
    (flushed, 0, 4, {("POSIX", "flushes"): float("inf")}, False, False),
    # Of the same calls and bytes: updates in place became appended ones.
    (updated, 4 * MIB, 20 * MIB, {("POSIX files", "bytes of files"): 4}, False, False),
    (
        checkpoints,
        True,
        False,
        {("MPI-IO", "writes"): 159 / 4, ("STDIO", "writes"): -1},
        False,
        None,
    ),
]


@pytest.mark.parametrize(
    ("make", "original", "replica", "expected", "passed", "storage"),
    OTHERS,
    ids=[f"{row[0].__name__}-{row[2]}" for row in OTHERS],
)
def test_a_replica_is_compared_layer_by_layer(
    make: Callable[[Any], Run],
    original: Any,
    replica: Any,
    expected: Errors,
    passed: bool,
    storage: bool | None,
    tmp_path: Path,
) -> None:
    comparison = beside(tmp_path, make(original), make(replica), time_scale=0)
    measured = errors(comparison)
    assert {key: measured[key] for key in expected} == pytest.approx(expected)
    assert (comparison.passed, comparison.storage) == (passed, storage)
    failures = [f"{layer}: {quantity}: " for (layer, quantity), error in expected.items() if error]
    if not passed:
        assert all(any(text.startswith(f) for text in comparison.failures()) for f in failures)
    same = beside(tmp_path, make(original), make(original))
    assert same.passed and all(errors(same).get(key) in (0, None) for key in expected)


def test_a_failure_says_what_became_of_a_number(tmp_path: Path) -> None:
    said("posix-writes-became", list(beside(tmp_path, in_place(14), in_place(1)).failures()))
    failures = beside(tmp_path, checkpoints(True), checkpoints(False)).failures()
    assert {
        "MPI-IO: writes: 16 became 652 (+3975.0%)",
        "STDIO: writes: 636 became 0 (-100.0%)",
    } <= set(failures)
    failures = beside(tmp_path, flushed(0), flushed(4)).failures()
    assert list(failures) == ["POSIX: flushes: 0 became 4 (+inf%)"]


@pytest.mark.parametrize(("stdio_bytes", "storage"), [(0, True), (MIB, True), (20 * MIB, None)])
def test_of_stdio_only_what_can_decide_leaves_the_storage_open(
    tmp_path: Path, stdio_bytes: int, storage: bool | None
) -> None:
    run = written(size=100 * MIB, calls=100)
    if stdio_bytes:
        run.write("/s/b", stdio_bytes, 1.0, rank=0, module="STDIO", calls=1)
    comparison = beside(tmp_path, run, run)
    assert (comparison.passed, comparison.storage) == (True, storage)


def test_a_storage_of_which_a_side_does_not_tell_is_no_pass(tmp_path: Path) -> None:
    """MPI-IO without the records of POSIX, beside a file of POSIX that is the same."""
    run = written(4)
    run.write("/s/a.dat", 4 * MIB, 1.0, module="MPIIO", COLL_OPENS=4)
    same = beside(tmp_path, run, run)
    assert (same.application, same.storage, same.passed) == (True, None, True)


@pytest.mark.parametrize(
    ("flushes", "keys", "error"),
    [
        (0, {"sync": True}, -1),
        (2, {"sync": True}, -1 / 3),  # it has three dumps
        (3, {"sync": True}, 0),
        (90, {"sync": True}, 0),
        (0, {"sync_bytes": 1000}, -1),
        (0, {"sync_bytes": 1 << 40}, None),  # no rank has as many bytes
        (3, {}, None),
    ],
)
def test_a_replica_without_the_flushes_of_a_descriptor_fails(
    flushes: int, keys: dict[str, Any], error: float | None, tmp_path: Path
) -> None:
    sample = workload.load(where("workloads") / "n-1.json")
    changed = with_keys(sample, **({"method": "posix", "collective": False, "sync": False} | keys))
    (tmp_path / "a.json").write_text(replace(changed, streams=changed.streams[:1]).to_text())
    log = written(sample.ranks, FSYNCS=flushes).log(tmp_path / "replica.darshan")
    measured = errors(compare(observe(tmp_path / "a.json"), observe(log)))
    assert measured.get(("POSIX", "flushes")) == pytest.approx(error)

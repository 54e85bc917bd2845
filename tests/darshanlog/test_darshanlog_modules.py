"""Modules of records of any length, modules that cannot be decoded, and jobs without an end."""

from pathlib import Path

import pytest

from tests.support.said import raises, said
from understudy import darshanlog
from understudy.darshanlog import layouts
from understudy.darshanlog.writer import write_log
from understudy.errors import UnderstudyError

BINS = {"id": 1, "bin_width_s": 0.1}


def test_newer_versions_and_unknown_modules_are_skipped_with_a_word(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "log.darshan",
        module_versions={"H5D": 9},
        raw={40: (1, b"future"), 7: (2, b"blue gene"), 14: (1, b"mpi")},
        POSIX=[{"id": 1, "POSIX_OPENS": 2}],
        H5D=[{"id": 1}],
    )
    with darshanlog.open_log(path) as log:
        reasons = {name: module.reason for name, module in log.modules.items()}
        assert reasons == {
            "POSIX": None,
            "H5D": "module H5D version 9 is not known, expected one of 1, 2",
            "BG/Q": "module BG/Q is not decoded",
            "APMPI": "module APMPI is not decoded",
            "module 40": "module 40 is newer than this decoder",
        }
        assert [m.supported for m in log.modules.values()] == [True, False, False, False, False]
        assert next(log.records("POSIX"))["POSIX_OPENS"].tolist() == [2]
        with raises(UnderstudyError, "version-known"):
            log.records("H5D")


def test_absent_modules_are_empty(tmp_path: Path) -> None:
    with darshanlog.open_log(write_log(tmp_path / "log.darshan")) as log:
        assert log.modules == {}
        assert not [*log.names(), *log.records("POSIX"), *log.lustre(), *log.heatmap()]
        assert not list(log.dxt("DXT_POSIX"))


def test_modules_of_another_kind(tmp_path: Path) -> None:
    with darshanlog.open_log(write_log(tmp_path / "log.darshan")) as log:
        with raises(ValueError, "lustre-has-no-fixed"):
            log.records("LUSTRE")
        with raises(ValueError, "posix-has-no-traced"):
            log.dxt("POSIX")
        with pytest.raises(ValueError, match="block_records is 0"):
            log.records("POSIX", 0)


def test_remarks(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "log.darshan",
        module_versions={"POSIX": 1, "DXT_MPIIO": 1},
        POSIX=[{"id": 1}],
        DXT_MPIIO=[{"id": 1, "write_segments": [(5, 6, 0.0, 1.0)]}],
    )
    with darshanlog.open_log(path) as log:
        assert len(log.remarks) == 2
        assert log.modules["POSIX"].remark is not None
        (record,) = log.dxt("DXT_MPIIO")
    assert record.write_segments["offset"].tolist() == [-1]
    assert record.write_segments["length"].tolist() == [6]


@pytest.mark.parametrize("byte_order", ["little", "big"])
@pytest.mark.parametrize(
    ("name", "version"), [(name, v) for name, versions in layouts.DXT.items() for v in versions]
)
def test_dxt(tmp_path: Path, name: str, version: int, byte_order: str) -> None:
    writes = [(i, 2 * i, i / 8, i / 4, 77) for i in range(5)]
    reads = [(9, 8, 7.5, 8.5, 99)]
    records = [
        {"id": 1, "rank": 3, "hostname": b"n" * 63, "write_segments": writes},
        {"id": 2, "rank": 4},
        {"id": 2**64 - 1, "rank": -1, "write_segments": writes, "read_segments": reads},
    ]
    path = write_log(
        tmp_path / "log.darshan",
        byte_order=byte_order,
        module_versions={name: version},
        **{name: records},
    )
    with darshanlog.open_log(path) as log:
        dxt_records = list(log.dxt(name))
    assert [(r.id, r.rank, len(r.hostname)) for r in dxt_records] == [
        (1, 3, 63),
        (2, 4, 5),
        (2**64 - 1, -1, 5),
    ]
    layout = layouts.DXT[name][version]
    columns = slice(0, len(layout.segment))
    expected = [(*segment,)[columns] for segment in writes]
    if not layout.offsets_known:
        expected = [(-1, *segment[1:]) for segment in expected]
    assert dxt_records[0].write_segments.tolist() == expected
    assert dxt_records[2].write_segments.tolist() == expected
    assert dxt_records[2].read_segments["length"].tolist() == [8]
    assert dxt_records[2].read_segments.dtype.isnative
    assert ("pthread_id" in (dxt_records[0].read_segments.dtype.names or ())) == (
        len(expected[0]) == 5
    )


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_lustre_components(tmp_path: Path, byte_order: str) -> None:
    """A composite layout: a start on the metadata server, two components on OSTs, one unused."""
    components = [
        {"stripe_size_bytes": 65536, "ost_ids": [], "pattern": 2, "extent_end": 65536},
        {
            "stripe_size_bytes": 1 << 20,
            "ost_ids": [5],
            "extent_start": 65536,
            "extent_end": 1 << 30,
        },
        {"stripe_size_bytes": 4 << 20, "ost_ids": [1, 2, 3], "pool_name": b"flash"},
        {"stripe_size_bytes": -1, "ost_ids": [0, 0]},
    ]
    path = write_log(
        tmp_path / "log.darshan",
        byte_order=byte_order,
        LUSTRE=[
            {"id": 1, "rank": -1, "components": components},
            {"id": 2, "rank": 0, "components": []},
            {"id": 3, "rank": 1, "stripe_size_bytes": 1 << 16, "ost_ids": [8]},
        ],
    )
    with darshanlog.open_log(path) as log:
        composite, bare, simple = log.lustre()
    assert [part.ost_ids.tolist() for part in composite.components] == [[], [5], [1, 2, 3]]
    assert composite.ost_ids.tolist() == [5, 1, 2, 3]
    assert (composite.stripe_size_bytes, composite.stripe_count) == (4 << 20, 3)
    assert composite.components[2].pool_name == b"flash"
    assert (composite.components[0].pattern, composite.components[1].extent_start) == (2, 65536)
    assert (bare.stripe_size_bytes, bare.stripe_count, bare.components) == (0, 0, ())
    assert (simple.id, simple.rank, simple.ost_ids.tolist()) == (3, 1, [8])


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_lustre_version_1(tmp_path: Path, byte_order: str) -> None:
    path = write_log(
        tmp_path / "log.darshan",
        byte_order=byte_order,
        module_versions={"LUSTRE": 1},
        LUSTRE=[
            {"id": 1, "stripe_size_bytes": 1 << 20, "ost_ids": [7, 9]},
            {"id": 2, "stripe_size_bytes": 1 << 21, "ost_ids": [3]},
        ],
    )
    with darshanlog.open_log(path) as log:
        first, second = log.lustre()
    assert (first.stripe_size_bytes, first.stripe_count) == (1 << 20, 2)
    assert first.ost_ids.tolist() == [7, 9]
    assert first.components[0].extent_end == -1
    assert (second.id, second.stripe_size_bytes, second.ost_ids.tolist()) == (2, 1 << 21, [3])


@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_heatmap_bins_are_as_many_as_those_of_the_first_record(
    tmp_path: Path, byte_order: str
) -> None:
    path = write_log(
        tmp_path / "log.darshan",
        byte_order=byte_order,
        HEATMAP=[
            {**BINS, "rank": 0, "write_bins": [1, 2, 3], "read_bins": [4, 5, 6]},
            {**BINS, "rank": 1, "write_bins": [1, 2, 3, 9], "read_bins": [4, 5, 6, 9]},
            {**BINS, "rank": 2, "write_bins": [1, 2], "read_bins": [4, 5]},
            {**BINS, "rank": 3, "write_bins": [1], "read_bins": [4]},
        ],
    )
    with darshanlog.open_log(path) as log:
        records = list(log.heatmap())
    assert [(r.rank, r.nbins, r.bin_width_s) for r in records] == [
        (0, 3, 0.1),
        (1, 3, 0.1),
        (2, 3, 0.1),
        (3, 1, 0.1),
    ]
    assert [r.write_bins.tolist() for r in records] == [[1, 2, 3], [1, 2, 3], [1, 2, 0], [1]]
    assert [r.read_bins.tolist() for r in records] == [[4, 5, 6], [4, 5, 6], [4, 5, 0], [4]]


@pytest.mark.parametrize("version", ["3.21", "3.41"])
def test_unknown_end(tmp_path: Path, version: str) -> None:
    path = write_log(tmp_path / "log.darshan", version=version, run_time_s=None)
    with darshanlog.open_log(path) as log:
        assert log.job.run_time_s is None
        assert log.job.end_s == 0


def test_fractions_of_a_second(tmp_path: Path) -> None:
    with darshanlog.open_log(write_log(tmp_path / "log.darshan", run_time_s=0.125)) as log:
        assert log.job.run_time_s == pytest.approx(0.125, abs=1e-6)


def test_command_line_with_line_breaks_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    """The mount table is found after a command line over several lines; no byte is lost."""
    exe = b"python -c 'import os\nos.stat(1)'\xff".decode("utf-8", errors="surrogateescape")
    path = write_log(tmp_path / "log.darshan", exe=exe, mounts=[("/home", "nfs4")])
    with darshanlog.open_log(path) as log:
        said("python-import-os", log.exe)
        assert [(mount.path, mount.fs_type) for mount in log.mounts] == [("/home", "nfs4")]


def test_writer_refuses_what_does_not_exist(tmp_path: Path) -> None:
    path = tmp_path / "log.darshan"
    with pytest.raises(ValueError, match="no counter POSIX_OPENZ"):
        write_log(path, POSIX=[{"id": 1, "POSIX_OPENZ": 1}])
    with raises(ValueError, "possix-no-module"):
        write_log(path, POSSIX=[{"id": 1}])
    with raises(ValueError, "have-no-module"):
        write_log(path, version="3.10", H5D=[{"id": 1}])

"""Every module version, log version, byte order and compression, from logs made for it."""

import importlib
from pathlib import Path

import numpy as np
import pytest

from tests.darshanlog.corpus import chosen_logs, real_logs
from tests.support.logs import recompress
from tests.support.needs import need, needs
from understudy import darshanlog
from understudy.darshanlog import layouts
from understudy.darshanlog.log import Log
from understudy.darshanlog.writer import file_dtype, write_log

VERSIONS = [(name, version) for name, versions in layouts.RECORDS.items() for version in versions]
ORDERS = ("little", "big")
SIZES_BYTES = {  # as the headers and utilities of Darshan have them
    "POSIX": {1: 680, 2: 648, 3: 664, 4: 704},
    "MPI-IO": {1: 544, 2: 544, 3: 560},
    "STDIO": {1: 240, 2: 248},
    "H5F": {1: 40, 2: 56, 3: 80},
    "H5D": {1: 904, 2: 912},
    "PNETCDF_FILE": {1: 48, 2: 64, 3: 152},
    "PNETCDF_VAR": {1: 1120},
}


def written(name: str, version: int, n_records: int = 5) -> np.ndarray:
    """Records with a different small number in every counter."""
    dtype = file_dtype(layouts.RECORDS[name][version], "=")
    block = np.zeros(n_records, dtype)
    for column, field in enumerate(dtype.names or ()):
        block[field] = np.arange(n_records) + column + 0.25
    if omit := layouts.RECORDS[name][version].omit_where_positive:
        block[omit] = [0, 3, 0, 0, 7][:n_records]
    return block


def log_with(path: Path, name: str, version: int, byte_order: str) -> tuple[Path, np.ndarray]:
    block = written(name, version)
    key = name.replace("-", "")
    write_log(path, byte_order=byte_order, module_versions={name: version}, **{key: [block]})
    return path, block


def read(path: Path, name: str) -> np.ndarray:
    with darshanlog.open_log(path) as log:
        return np.concatenate(list(log.records(name)))


def test_record_sizes() -> None:
    sizes = {
        name: {version: layout.record_bytes for version, layout in versions.items()}
        for name, versions in layouts.RECORDS.items()
    }
    assert sizes == SIZES_BYTES


@pytest.mark.parametrize("byte_order", ORDERS)
@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_upgrade(tmp_path: Path, name: str, version: int, byte_order: str) -> None:
    """What was written is read, and what a version lacks is -1, or 0 for a record id."""
    path, block = log_with(tmp_path / "log.darshan", name, version, byte_order)
    if name == "POSIX" and version == 1:
        block = block[[0, 2, 3]]
    ours = read(path, name)
    assert ours.dtype.isnative
    assert ours.dtype == darshanlog.record_dtype(name)
    old = set(block.dtype.names or ())
    for field in ours.dtype.names or ():
        if field in old:
            expected = block[field]
        elif field == "PNETCDF_FILE_OPENS":
            expected = block["PNETCDF_INDEP_OPENS"] + block["PNETCDF_COLL_OPENS"]
        else:
            expected = np.full(len(block), 0 if "FROM" in field or "rec_id" in field else -1)
        np.testing.assert_array_equal(ours[field], expected, err_msg=field)


@pytest.mark.parametrize("byte_order", ORDERS)
@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_oracle_reads_the_same(tmp_path: Path, name: str, version: int, byte_order: str) -> None:
    """pydarshan reads what the writer writes, whichever version, as this decoder does."""
    need("pydarshan")
    oracle = importlib.import_module("tests.darshanlog.oracle")
    path, _ = log_with(tmp_path / "log.darshan", name, version, byte_order)
    ours = read(path, name)
    with oracle.OracleLog(path) as log:
        theirs = log.fixed(name)
    if name == "H5D" and byte_order == "big":
        # the C library looks at the version of H5F to decide whether to swap this field of H5D
        theirs["file_rec_id"] = theirs["file_rec_id"].byteswap()
    lost = oracle.repair(theirs, name, version, byte_order)
    assert oracle.assert_equal_columns(ours, theirs, lost) > 0


@pytest.mark.parametrize("byte_order", ORDERS)
@pytest.mark.parametrize("version", layouts.LOG_FORMATS)
def test_log_versions(tmp_path: Path, version: str, byte_order: str) -> None:
    names = {7: b"/scratch/a", 8: b"/scratch/b"}
    path = write_log(
        tmp_path / "log.darshan",
        version=version,
        byte_order=byte_order,
        nprocs=12,
        run_time_s=7.0,
        names=names,
        exe="app\twith tab",
        mounts=[("/", "ext4"), ("/scratch", "lustre")],
        metadata={"lib_ver": "3.1.7", "h": "cb_nodes=4"},
        partial=["STDIO"],
        POSIX=[{"id": 7, "rank": 3, "POSIX_OPENS": 11}],
        STDIO=[{"id": 8, "rank": 0, "STDIO_OPENS": 5}],
    )
    with darshanlog.open_log(path) as log:
        assert (log.version, log.byte_order) == (version, byte_order)
        assert (log.job.nprocs, log.job.run_time_s, log.job.uid) == (12, 7.0, 1000)
        assert (log.exe, log.library_version) == ("app\twith tab", "3.1.7")
        assert log.job.metadata["h"] == "cb_nodes=4"
        assert [mount.path for mount in log.mounts] == ["/scratch", "/"]
        names_read = {}
        for ids, texts in log.names():
            names_read |= dict(zip(ids.tolist(), texts, strict=True))
        assert names_read == names
        assert {name: m.partial for name, m in log.modules.items()} == {
            "POSIX": False,
            "STDIO": True,
        }
        assert next(log.records("STDIO"))["STDIO_OPENS"].tolist() == [5]
        assert bool(log.remarks) == (version == "3.20")


def test_oracle_reads_the_other_modules(tmp_path: Path) -> None:
    """Names, job, LUSTRE, HEATMAP and DXT of the writer's logs are read by pydarshan too."""
    need("pydarshan")
    oracle = importlib.import_module("tests.darshanlog.oracle")
    path = write_log(
        tmp_path / "log.darshan",
        names={1: b"/scratch/x", 2: b"heatmap:POSIX"},
        module_versions={"DXT_POSIX": 1, "DXT_MPIIO": 2},
        LUSTRE=[{"id": 1, "stripe_size_bytes": 1 << 20, "ost_ids": [3, 1, 4]}],
        HEATMAP=[{"id": 2, "bin_width_s": 0.5, "write_bins": [1, 2, 3], "read_bins": [4, 5, 6]}],
        DXT_POSIX=[{"id": 1, "write_segments": [(0, 9, 0.5, 0.75)], "hostname": b"nid1"}],
        DXT_MPIIO=[{"id": 1, "rank": 2, "read_segments": [(5, 4, 1.5, 1.75)]}],
    )
    with oracle.OracleLog(path) as log:
        assert log.names == {1: b"/scratch/x", 2: b"heatmap:POSIX"}
        assert oracle.backend.log_get_job(log.handle)["run_time"] == 100.0
        assert oracle.backend.log_get_exe(log.handle) == "/bin/app --input case"
        (lustre,) = log.records("LUSTRE")
        assert lustre["components"][0]["ost_ids"].tolist() == [3, 1, 4]
        (heatmap,) = log.records("HEATMAP")
        assert heatmap["read_bins"].tolist() == [4, 5, 6]
        (posix,) = log.records("DXT_POSIX")
        assert (posix["hostname"], posix["write_segments"][0]["end_time"]) == ("nid1", 0.75)
        (mpiio,) = log.records("DXT_MPIIO")
        assert (mpiio["rank"], mpiio["read_segments"][0]["offset"]) == (2, 5)


def everything(log: Log) -> dict[str, object]:
    """All that a log holds, comparable with ==."""
    contents: dict[str, object] = {"job": log.job, "exe": log.exe, "mounts": log.mounts}
    contents["names"] = [
        pair for ids, texts in log.names() for pair in zip(ids.tolist(), texts, strict=True)
    ]
    for name, module in log.modules.items():
        if not module.supported:
            contents[name] = module.reason
        elif name in layouts.RECORDS:
            contents[name] = b"".join(block.tobytes() for block in log.records(name))
        elif name in layouts.DXT:
            contents[name] = [
                (r.id, r.rank, r.hostname, r.write_segments.tolist(), r.read_segments.tolist())
                for r in log.dxt(name)
            ]
    contents["LUSTRE"] = [repr(record) for record in log.lustre()]
    contents["HEATMAP"] = [
        (r.id, r.rank, r.bin_width_s, r.write_bins.tolist(), r.read_bins.tolist())
        for r in log.heatmap()
    ]
    return contents


@pytest.mark.parametrize("compression", ["bzip2", "none"])
def test_compressions_of_real_logs(tmp_path: Path, compression: str) -> None:
    """Archived logs are bzip2: converted region by region, every real log reads the same."""
    logs = real_logs()
    assert logs
    for source in logs:
        target = recompress(source, tmp_path / "converted.darshan", compression)
        with darshanlog.open_log(source) as before, darshanlog.open_log(target) as after:
            assert after.compression == compression
            assert everything(before) == everything(after), source


@pytest.mark.parametrize("compression", layouts.COMPRESSIONS)
@pytest.mark.parametrize("stream_bytes", [100, 704, 5000, 1 << 24])
def test_concatenated_streams(tmp_path: Path, compression: str, stream_bytes: int) -> None:
    """A region is as many compressed streams as processes wrote it; they end anywhere."""
    block = written("POSIX", 4, 300)
    names = {number: b"/scratch/%d" % number * 20 for number in range(1, 300)}
    path = write_log(
        tmp_path / "log.darshan",
        compression=compression,
        stream_bytes=stream_bytes,
        names=names,
        POSIX=[block],
    )
    with darshanlog.open_log(path) as log:
        assert b"".join(b.tobytes() for b in log.records("POSIX")) == block.tobytes()
        read_names = [text for _, texts in log.names() for text in texts]
        assert read_names == list(names.values())


@pytest.mark.parametrize("block_records", [1, 7, 299, 300, 4096])
def test_block_records(tmp_path: Path, block_records: int) -> None:
    path = write_log(tmp_path / "log.darshan", POSIX=[written("POSIX", 4, 300)])
    with darshanlog.open_log(path) as log:
        sizes = [len(block) for block in log.records("POSIX", block_records)]
    assert sum(sizes) == 300
    assert set(sizes[:-1]) <= {block_records}
    assert sizes[-1] <= block_records


def test_streams_side_by_side(tmp_path: Path) -> None:
    """Several streams of one log can be open at once, and started again."""
    path = write_log(
        tmp_path / "log.darshan",
        names={1: b"/x"},
        POSIX=[written("POSIX", 4, 50)],
        STDIO=[written("STDIO", 2, 50)],
    )
    with darshanlog.open_log(path) as log:
        pairs = list(zip(log.records("POSIX", 10), log.records("STDIO", 10), strict=True))
        assert len(pairs) == 5
        assert sum(len(block) for block in log.records("POSIX")) == 50


def test_long_names(tmp_path: Path) -> None:
    """Names that cross the pieces in which they are read, and one that is empty."""
    names = {number: b"/scratch/" + b"n" * (number % 5000) for number in range(1, 2000)}
    names[5000] = b""
    path = write_log(tmp_path / "log.darshan", names=names)
    with darshanlog.open_log(path) as log:
        blocks = list(log.names())
    assert len(blocks) > 1
    names_read = {
        number: text
        for ids, texts in blocks
        for number, text in zip(ids.tolist(), texts, strict=True)
    }
    assert names_read == names


@needs("a folder of Darshan logs")
def test_chosen_folder_has_both_byte_orders() -> None:
    orders = set()
    for path in chosen_logs():
        with darshanlog.open_log(path) as log:
            orders.add(log.byte_order)
    assert orders == {"little", "big"}

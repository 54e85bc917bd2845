"""Every record of every module of every real log at hand equals pydarshan's, bit by bit."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.darshanlog.corpus import pydarshan_logs, real_logs
from tests.darshanlog.oracle import OracleLog, assert_equal_columns, backend, repair
from tests.darshanlog.tally import compared
from understudy import darshanlog
from understudy.darshanlog import layouts
from understudy.darshanlog.log import Log

LOGS = real_logs()


@pytest.fixture(params=LOGS, ids=lambda path: path.stem[:60])
def both(request: pytest.FixtureRequest) -> Iterator[tuple[Log, OracleLog]]:
    with darshanlog.open_log(request.param) as log, OracleLog(request.param) as oracle:
        yield log, oracle


def test_logs_are_at_hand() -> None:
    """pydarshan brings its example logs: an empty corpus would compare nothing."""
    assert len(pydarshan_logs()) >= 10
    assert len(LOGS) >= 10


def test_job(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    job = backend.log_get_job(oracle.handle)
    ours = log.job
    assert log.version == job["log_ver"]
    assert (ours.uid, ours.jobid, ours.nprocs) == (job["uid"], job["jobid"], job["nprocs"])
    assert ours.start_s == job["start_time_sec"] + job["start_time_nsec"] / 1e9
    assert ours.end_s == job["end_time_sec"] + job["end_time_nsec"] / 1e9
    assert ours.run_time_s == (job["run_time"] if job["run_time"] >= 0 else None)
    assert ours.metadata == job["metadata"]
    exe = backend.log_get_exe(oracle.handle)
    if log.mounts:  # without a line break after it, pydarshan gives no command line at all
        assert log.exe == exe
    else:
        assert exe == ""
    mounts = [(mount.path, mount.fs_type) for mount in log.mounts]
    assert sorted(mounts) == sorted(backend.log_get_mounts(oracle.handle))
    compared["logs"] += 1


def test_names(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    names: dict[int, bytes] = {}
    for ids, texts in log.names():
        assert len(ids) == len(texts)
        for number, text in zip(ids.tolist(), texts, strict=True):
            names[number] = names.get(number) or text
    assert names == oracle.names
    compared["names"] += len(names)


def test_modules(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    theirs = oracle.modules
    assert set(theirs) <= set(log.modules)
    for name in set(log.modules) - set(theirs):
        assert not log.modules[name].supported
    for name, info in theirs.items():
        module = log.modules[name]
        assert (module.version, module.length_bytes) == (info["ver"], info["len"])
        assert layouts.MODULES.index(name) == info["idx"]
        if log.byte_order == "little":  # pydarshan does not swap the flags
            assert module.partial == info["partial_flag"]
        compared["modules"] += 1


def test_records(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    for name, module in log.modules.items():
        if not module.supported or name not in layouts.RECORDS:
            continue
        blocks = list(log.records(name))
        empty = np.empty(0, darshanlog.record_dtype(name))
        ours = np.concatenate([empty, *blocks])
        theirs = oracle.fixed(name)
        lost = repair(theirs, name, module.version, log.byte_order)
        compared["counters"] += assert_equal_columns(ours, theirs, lost)
        compared["records"] += len(ours)


def test_lustre(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    ours, theirs = list(log.lustre()), list(oracle.records("LUSTRE"))
    assert len(ours) == len(theirs)
    for record, other in zip(ours, theirs, strict=True):
        assert (record.id, record.rank) == (other["id"], other["rank"])
        for part, expected in zip(record.components, other["components"], strict=True):
            counters = [
                *(part.stripe_size_bytes, part.stripe_count, part.pattern, part.flags),
                *(part.extent_start, part.extent_end, part.mirror_id),
            ]
            assert counters == expected["counters"].tolist()
            assert part.pool_name == expected["pool_name"].encode()
            np.testing.assert_array_equal(part.ost_ids, expected["ost_ids"])
            compared["counters"] += len(counters) + len(part.ost_ids)
    compared["records"] += len(ours)


def test_heatmap(both: tuple[Log, OracleLog]) -> None:
    log, oracle = both
    ours, theirs = list(log.heatmap()), list(oracle.records("HEATMAP"))
    assert len(ours) == len(theirs)
    for record, other in zip(ours, theirs, strict=True):
        assert (record.id, record.rank) == (other["id"], other["rank"])
        assert (record.bin_width_s, record.nbins) == (other["bin_width_seconds"], other["nbins"])
        np.testing.assert_array_equal(record.write_bins, other["write_bins"])
        np.testing.assert_array_equal(record.read_bins, other["read_bins"])
        compared["counters"] += 2 * record.nbins
    compared["records"] += len(ours)


@pytest.mark.parametrize("name", layouts.DXT)
def test_dxt(both: tuple[Log, OracleLog], name: str) -> None:
    log, oracle = both
    ours, theirs = list(log.dxt(name)), list(oracle.records(name))
    if any("pthread_id" in (record.write_segments.dtype.names or ()) for record in ours):
        assert not theirs, "pydarshan reads this version now: compare it"
        compared["DXT modules that pydarshan refuses"] += 1
        return
    assert len(ours) == len(theirs)
    for record, other in zip(ours, theirs, strict=True):
        assert (record.id, record.rank) == (other["id"], other["rank"])
        assert record.hostname == other["hostname"].encode()
        for way in ("write_segments", "read_segments"):
            assert getattr(record, way).tolist() == _tuples(other[way])
            compared["segments"] += len(other[way])
    compared["records"] += len(ours)


def _tuples(segments: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(segment.values()) for segment in segments]


def test_a_known_log_whole() -> None:
    """Figures of one log written down, so that an error on both sides shows as well."""
    path = next(path for path in pydarshan_logs() if path.name == "example.darshan")
    with darshanlog.open_log(Path(path)) as log:
        assert (log.version, log.byte_order, log.compression) == ("3.10", "little", "zlib")
        assert log.job.nprocs == 2048
        (block,) = log.records("POSIX")
        assert int(block["POSIX_BYTES_WRITTEN"].sum()) == 2199023259968
        assert [(r.stripe_size_bytes, r.stripe_count) for r in log.lustre()] == [(1048576, 24)]

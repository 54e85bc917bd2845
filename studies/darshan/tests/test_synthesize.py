"""Synthetic logs: the same bytes for a seed, of every release, order and compression, readable,
and with the errors that were asked for."""

import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.needs import needs
from understudy import darshanlog
from understudy.cli import main
from understudy.darshanlog.synthetic import INTERFACES, RELEASES, TRAPS, Synthetic, write
from understudy.program import counters
from understudy.readers import darshan


def made(folder: Path, **options: object) -> Path:
    job = Synthetic(**({"processes": 8, "files": 20} | options))  # type: ignore[arg-type]
    return write(folder / "job.darshan", job)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("byte_order", ["little", "big"])
def test_all_releases_tell_the_same(tmp_path: Path, release: str, byte_order: str) -> None:
    compression = "bzip2" if byte_order == "big" else "zlib"
    path = made(tmp_path, darshan=release, byte_order=byte_order, compression=compression)
    with darshanlog.open_log(path) as log:
        assert (log.version, log.byte_order) == (RELEASES[release][0], byte_order)
        assert log.compression == compression
        assert "understudy" in log.job.metadata["synthetic"]
        blocks = list(log.records("POSIX"))
        names = [text for _, texts in log.names() for text in texts]
    records = np.concatenate(blocks)
    assert len(set(records["id"].tolist())) == len(records) == len(set(names)) == 160
    assert sorted(set(records["rank"].tolist())) == list(range(8))
    modern = made(tmp_path)
    with darshanlog.open_log(modern) as log:
        expected = np.concatenate(list(log.records("POSIX")))
    for name in ("id", "rank", "POSIX_BYTES_WRITTEN", "POSIX_F_WRITE_START_TIMESTAMP"):
        assert records[name].tolist() == expected[name].tolist()


def test_a_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first = made(tmp_path, seed=7).read_bytes()
    assert made(tmp_path, seed=7).read_bytes() == first
    assert made(tmp_path, seed=8).read_bytes() != first


@pytest.mark.parametrize("interface", INTERFACES)
@pytest.mark.parametrize("layout", ["process", "shared"])
def test_a_description_has_the_bytes(tmp_path: Path, interface: str, layout: str) -> None:
    path = made(tmp_path, interface=interface, layout=layout, dumps=20)
    with darshanlog.open_log(path) as log:
        module, prefix = {"mpiio": ("MPI-IO", "MPIIO")}.get(interface, (interface.upper(),) * 2)
        whole = sum(int(b[f"{prefix}_BYTES_WRITTEN"].sum()) for b in log.records(module))
    workload = darshan.read(path)
    assert whole >= 8 * 20 * (4 << 20)
    assert [(s.method, len(s.steps), s.bytes) for s in workload.streams] == [
        (interface, 20, whole)
    ]
    assert workload.streams[0].layout == ("shared" if layout == "shared" else "file-per-process")
    assert any("synthetic" in note for note in workload.source.notes)


@pytest.mark.parametrize("trap", TRAPS)
def test_traps(tmp_path: Path, trap: str) -> None:
    options = {"traps": frozenset({trap})}
    more = {"interface": "mpiio", "file_bytes": 2 << 30} if trap == "overflow" else {}
    path = made(tmp_path, **options, **more)
    with darshanlog.open_log(path) as log:
        posix = np.concatenate(list(log.records("POSIX")))
        if trap == "partial":
            assert log.modules["POSIX"].partial
            assert len(posix) == 8 * 15
        elif trap == "missing":
            assert 7 not in posix["rank"]
            assert len(posix) == 7 * 20
        elif trap == "stale":
            assert (posix["POSIX_BYTES_WRITTEN"] == 0).sum() == 8 * 2
            assert (posix["POSIX_BYTES_WRITTEN"] >= 8 << 20).sum() == 8 * 2
        else:
            mpiio = np.concatenate(list(log.records("MPI-IO")))
            assert (mpiio["MPIIO_BYTES_WRITTEN"] < 0).all()
            assert (posix["POSIX_BYTES_WRITTEN"] >= 2 << 30).all()


def test_a_log_is_written_in_a_stream(tmp_path: Path) -> None:
    """Each process has compressed its own share, and blocks are not kept."""
    job = Synthetic(processes=100, files=1000)
    assert max(map(len, job.blocks("POSIX"))) <= 4096
    assert job.records == sum(map(len, job.blocks("POSIX"))) == 100_000


@needs("darshan-parser")
@pytest.mark.parametrize("release", RELEASES)
def test_darshan_parser_reads_it(tmp_path: Path, release: str) -> None:
    path = made(tmp_path, darshan=release, interface="mpiio")
    done = subprocess.run(
        ["darshan-parser", "--total", str(path)], capture_output=True, text=True, check=True
    )
    with darshanlog.open_log(path) as log:
        whole = sum(int(b["POSIX_BYTES_WRITTEN"].sum()) for b in log.records("POSIX"))
    assert f"total_POSIX_BYTES_WRITTEN: {whole}" in done.stdout


def test_the_command(tmp_path: Path) -> None:
    log = tmp_path / "x.darshan"
    command = ["synthesize", str(log), "-n", "8", "-m", "4", "--darshan", "3.1", "--read"]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "32 files of 8 processes" in done.output
    again = CliRunner().invoke(main, command)
    assert again.exit_code == 2
    assert "exists already" in again.output
    assert [p.name for p in tmp_path.iterdir()] == ["x.darshan"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-m", "2", "--dumps", "3"], "expected 1 to the number of files, 2"),
        (["--trap", "overflow"], "expected the interface mpiio"),
        (["--trap", "missing"], "files of 8 or more processes"),
        (["-i", "stdio", "--darshan", "3.0"], "Darshan 3.0 has no records of stdio"),
        (["-b", "4x"], "expected bytes, such as"),
    ],
)
def test_impossible_jobs(tmp_path: Path, options: list[str], expected: str) -> None:
    done = CliRunner().invoke(main, ["synthesize", str(tmp_path / "x"), "-n", "4", *options])
    assert done.exit_code == 2
    assert expected in done.output
    assert not list(tmp_path.iterdir())


def test_bins_fit_their_ends() -> None:
    assert len(counters.BINS) == len(counters.BIN_BYTES) + 1

"""Floods: logs of very many small files, described without a list of them."""

from pathlib import Path

import pytest

from tests.readers.synthetic import flood_log, only, rank_bytes, sizes
from tests.readers.test_reader_memory import peak_kib
from tests.support.folds import calls_of
from tests.support.keys import to_keys
from understudy.contracts.workload import load, parse, provenance_of
from understudy.readers import darshan


def test_epochs_of_a_loader(tmp_path: Path) -> None:
    """Each file is read once in each of three epochs, in another order, by another rank."""
    log = flood_log(tmp_path / "x", 4, 20_000, epochs=3, sizes=(150_000, 150_000, 90_000, 1000))
    workload = darshan.read(log)
    stream = only(parse(to_keys(workload), "x"))
    assert (stream.operation, stream.files, stream.layout) == ("read", "update", "flood")
    assert (stream.order.rule, stream.role, stream.dump_count) == ("shuffled", "input", 3)
    assert sizes(stream) == [20_000 * 391_000 // 4]
    assert [(v.shape, v.bytes) for v in stream.steps[0].variables] == [
        ((5000, 1000), 5_000_000),
        ((5000, 90_000), 450_000_000),
        ((10_000, 150_000), 1_500_000_000),
    ]
    times = [d.time_s for d in stream.expanded()]
    assert times == pytest.approx([5, 125, 245], abs=0.5)
    assert stream.steps[0].duration_s == pytest.approx(100, abs=0.5)
    entry = provenance_of(workload, "/streams/0/order")
    assert entry is not None and entry.confidence == "likely"
    assert len(to_keys(workload)) < 6000


def test_files_of_which_a_part_is_read_twice_are_those_of_epochs(tmp_path: Path) -> None:
    """As archives are read: their table of contents, and then everything."""
    more = {"READS": 2, "BYTES_READ": 152_000}
    stream = only(darshan.read(flood_log(tmp_path / "x", 4, 1000, epochs=3, **more)))
    assert (stream.files, stream.layout, stream.dump_count) == ("update", "flood", 3)
    assert sizes(stream) == [1000 * 152_000]
    assert calls_of(stream, 4).count == 2 * 3 * 1000


def test_opens_of_files_that_are_read_in_part_are_no_epochs(tmp_path: Path) -> None:
    log = flood_log(tmp_path / "x", 4, 1000, epochs=3, BYTES_READ=70_000)
    assert all(s.layout != "flood" or s.files == "new" for s in darshan.read(log).streams)


def test_reads_that_find_the_end_are_played(tmp_path: Path) -> None:
    """As a language reads a whole file: a call for its size, and one that is empty."""
    log = flood_log(tmp_path / "x", 4, 4000, epochs=2, READS=2, SIZE_READ_0_100=1)
    workload = darshan.read(log)
    found = calls_of(stream := only(workload), 4)
    assert (found.count, found.sizes[0], stream.bytes) == (16_000, 8000, 8000 * 150_000)
    assert "8000 reads of no bytes, at the ends of files, are played" in (
        " ".join(workload.source.notes)
    )


def test_files_read_once_in_order(tmp_path: Path) -> None:
    stream = only(darshan.read(flood_log(tmp_path / "x", 4, 10_001, shuffled=False)))
    assert (stream.files, stream.order.rule) == ("new", "consecutive")
    [variable] = stream.steps[0].variables
    assert variable.decomposition.rule == "even"
    assert rank_bytes(stream, 0, 4) == [150_000 * n for n in (2501, 2500, 2500, 2500)]


@pytest.mark.parametrize("form", [b"/d/out_%07d.dat", b"/d/%d"])
def test_writers_of_many_files(form: bytes, tmp_path: Path) -> None:
    """Five dumps of new files; names may be numbers alone."""
    log = flood_log(tmp_path / "x", 4, 4000, epochs=5, write=True, shuffled=False, form=form)
    stream = only(darshan.read(log))
    assert (stream.operation, stream.files, stream.layout) == ("write", "new", "flood")
    assert sizes(stream) == [600_000_000] * 5
    assert [d.time_s for d in stream.steps] == pytest.approx([5 + 120 * k for k in range(5)])


def test_sizes_of_all_kinds_keep_their_bytes(tmp_path: Path) -> None:
    """Files of 997 sizes are 16 classes at most; the sum is exact."""
    many = tuple(1000 + 301 * k for k in range(997))
    log = flood_log(tmp_path / "x", 3, 9970, sizes=many)
    stream = only(darshan.read(log))
    assert stream.bytes == 10 * sum(many)
    assert len(stream.steps[0].variables) <= 32
    assert sum(v.shape[0] for v in stream.steps[0].variables) == 9970


def test_a_million_files(tmp_path: Path) -> None:
    """Under 100 kB; what a process needs does not grow with the files. A tenth of them here."""
    peaks = []
    for files in (50_000, 100_000):
        log, out = flood_log(tmp_path / f"{files}", 8, files), tmp_path / f"{files}.json"
        peaks.append(peak_kib(log, out))
        assert out.stat().st_size < 10_000
        assert only(load(out)).bytes == files * 150_000
    assert peaks[1] - peaks[0] < 10 << 10, peaks

"""Logs of very many small files; `cases/small_files.py` has what they are described as."""

from pathlib import Path

import pytest

from tests.readers.synthetic import flood_log, only
from tests.readers.test_reader_memory import peak_kib
from tests.support.folds import calls_of
from understudy.contracts.workload import load, parse
from understudy.readers import darshan


def test_a_description_does_not_grow_with_the_files(tmp_path: Path) -> None:
    """Each file is read once in each of three epochs, in another order, by another rank."""
    sizes = (150_000, 150_000, 90_000, 1000)
    log = flood_log(tmp_path / "x", 4, 20_000, epochs=3, sizes=sizes)
    text = darshan.read(log).to_text()
    stream = only(parse(text, "x"))
    assert (stream.bytes, calls_of(stream, 4).count) == (3 * 5000 * sum(sizes), 60_000)
    times = [d.time_s for d in stream.expanded()]
    assert times == pytest.approx([5, 125, 245], abs=0.5) and len(text) < 6000


def test_a_million_files(tmp_path: Path) -> None:
    """Under 10 kB; what a process needs does not grow with the files. A tenth of them here."""
    peaks = []
    for files in (50_000, 100_000):
        log, out = flood_log(tmp_path / f"{files}", 8, files), tmp_path / f"{files}.json"
        peaks.append(peak_kib(log, out))
        assert out.stat().st_size < 10_000
        assert only(load(out)).bytes == files * 150_000
    assert peaks[1] - peaks[0] < 10 << 10, peaks

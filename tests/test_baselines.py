"""The baselines beside replicas: what the player of a trace does, and what is counted of a run."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import baselines
from benchmarks.baselines import ORIGINAL, TRACE, Run
from benchmarks.support import dxt
from understudy.darshanlog import open_log
from understudy.darshanlog.writer import write_log

OUT, IN, LOCK, STREAM, RENAMED = 1, 2, 3, 4, 5


def record(file: int, rank: int, opens: int, **counters: float) -> dict[str, float]:
    first = {"POSIX_F_OPEN_START_TIMESTAMP": 0.01, "POSIX_F_CLOSE_END_TIMESTAMP": 0.05}
    return {"id": file, "rank": rank, "POSIX_OPENS": opens, **first, **counters}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two ranks write one file at their offsets and one reads another; a lock is only opened."""
    return write_log(
        tmp_path / "run.darshan",
        nprocs=2,
        names={
            OUT: b"/scratch/run/dumps/out",
            IN: b"/scratch/run/in",
            LOCK: b"/scratch/run/lock",
            STREAM: b"<STDOUT>",
            RENAMED: b"/scratch/run/old",
        },
        POSIX=[
            record(OUT, -1, 4, POSIX_WRITES=6, POSIX_BYTES_WRITTEN=60),
            record(IN, 1, 1, POSIX_READS=2, POSIX_BYTES_READ=5),
            record(LOCK, 0, 2),
            record(STREAM, 0, 1),
            record(RENAMED, 0, 0),
        ],
        DXT_POSIX=[
            {
                "id": OUT,
                "rank": rank,
                "write_segments": [
                    (100 * rank + 10 * k, 10, at, at + 0.001)
                    for k, at in enumerate((0.02, 0.03, 0.2))
                ],
            }
            for rank in (0, 1)
        ]
        + [{"id": IN, "rank": 1, "read_segments": [(3, 5, 0.01, 0.02), (8, 0, 0.02, 0.021)]}],
    )


def test_a_trace_is_played(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_log(log) as opened:
        result = dxt.plans(opened)
    place = tmp_path / "place"
    dxt.prepare(place, result)
    assert (place / "in").read_bytes() == bytes(8)
    assert not (place / "dumps" / "out").exists()
    seen: list[tuple[object, ...]] = []
    names: dict[int, str] = {}

    def spy_open(name: str, flags: int, mode: int) -> int:
        descriptor = open_really(name, flags, mode)
        names[descriptor] = name
        seen.append(("open", name, bool(flags & os.O_CREAT)))
        return descriptor

    def spy_write(descriptor: int, data: memoryview, offset: int) -> int:
        seen.append(("write", names[descriptor], offset, len(data)))
        return write_really(descriptor, data, offset)

    def spy_read(descriptor: int, size: int, offset: int) -> bytes:
        seen.append(("read", names[descriptor], offset, size))
        return read_really(descriptor, size, offset)

    open_really, write_really, read_really = os.open, os.pwrite, os.pread
    monkeypatch.chdir(place)
    with monkeypatch.context() as patch:
        for name, spy in (("open", spy_open), ("pwrite", spy_write), ("pread", spy_read)):
            patch.setattr(os, name, spy)
        start = time.monotonic()
        dxt.play(result[1], start)
    assert time.monotonic() - start >= 0.2
    # Opens are spread over the calls: of three writes, before the first and the second.
    assert seen == [
        ("open", "in", False),
        ("read", "in", 3, 5),
        ("open", "dumps/out", True),
        ("read", "in", 8, 0),
        ("write", "dumps/out", 100, 10),
        ("open", "dumps/out", True),
        ("write", "dumps/out", 110, 10),
        ("write", "dumps/out", 120, 10),
    ]
    assert (place / "dumps" / "out").stat().st_size == 130
    # What is opened and neither read nor written has its opens from the first to the last close.
    opens = [(step[0], step[2]) for step in result[0]["steps"] if step[1] == dxt.OPEN]
    assert opens == [(0.01, LOCK), (0.02, OUT), (0.03, OUT), (pytest.approx(0.03), LOCK)]
    assert set(result[0]["files"]) == {str(OUT), str(LOCK)}  # neither a stream nor a rename


def test_a_process_of_the_player_needs_nothing_else(log: Path, tmp_path: Path) -> None:
    with open_log(log) as opened:
        result = dxt.plans(opened)
    dxt.prepare(tmp_path, result)
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps(result[0]))
    words = [sys.executable, "-I", "-S", dxt.__file__, plan, str(time.monotonic())]
    subprocess.run(words, cwd=tmp_path, check=True)
    assert (tmp_path / "dumps" / "out").stat().st_size == 30
    assert (tmp_path / "lock").stat().st_size == 0


def test_counters_are_of_files_alone(log: Path) -> None:
    with open_log(log) as opened:
        # opens, reads, writes, bytes read, bytes written, files
        assert baselines.counters(opened) == [7, 2, 6, 5, 60, 3]
        assert baselines.counters(opened, {OUT}) == [6, 2, 0, 5, 0, 3]


def test_errors_are_of_the_same_round() -> None:
    runs = [
        Run(
            application="app",
            storage="w500",
            arm=arm,
            round=k,
            counters=[opens, 0.0, 10.0, 0.0, 1e6, 2.0],
            io_s=io_s,
        )
        for arm, opens, times in ((ORIGINAL, 4.0, (1.0, 2.0)), (TRACE, 3.0, (0.5, 3.0)))
        for k, io_s in enumerate(times)
    ]
    rest, trace = baselines.table(runs)[2:]
    assert rest == "| app | application | 4 | 0 | 10 | 0 | 1,000,000 | 2 | 1.50 (1.00…2.00) s |"
    minus = "\N{MINUS SIGN}"
    assert trace == f"|  | DXT player | {minus}25.0 | 0 | 0 | 0 | 0 | 0 | 0.0 ({minus}50.0…50.0) |"
    assert baselines.error(1, 0) == math.inf

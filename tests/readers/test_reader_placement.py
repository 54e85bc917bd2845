"""Bytes are where the trace has them: at most 5 % of them are off by 1 % of the run."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.logs import ALL
from tests.readers.placement import misplaced
from tests.readers.synthetic import Run
from understudy.contracts.workload import provenance_of
from understudy.darshanlog import open_log

MIB = 1 << 20
LIMIT = 0.05
# Waves are updated while others are read; a rank of the player moves one dump at a time.
INTERLEAVED = {"qe_si_md_dxt": 0.1}


def traced() -> list[Path]:
    found = []
    for path in ALL:
        with open_log(path) as log:
            if {"DXT_POSIX", "DXT_MPIIO"} & set(log.modules):
                found.append(path)
    return found


def share(path: Path) -> float:
    found = misplaced(path)
    assert found
    return sum(far * size for far, size in found.values()) / sum(
        size for _, size in found.values()
    )


def test_there_are_traced_logs() -> None:
    assert len(traced()) >= 2


@pytest.mark.parametrize("path", traced(), ids=lambda p: p.stem)
def test_real_logs(path: Path) -> None:
    assert share(path) < INTERLEAVED.get(path.stem, LIMIT)


def written(run: Run, name: str, starts: np.ndarray, length_s: float, rank: int = 0) -> None:
    """A file that is written in calls of 1 MiB."""
    count = len(starts)
    file = run.write(
        name,
        count * MIB,
        float(starts[0]),
        rank=rank,
        calls=count,
        duration_s=float(starts[-1] - starts[0]) + length_s,
        F_WRITE_TIME=count * length_s,
    )
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": rank,
            "write_segments": [
                (n * MIB, MIB, at_s, at_s + length_s) for n, at_s in enumerate(starts.tolist())
            ],
        },
    )


def test_a_steady_stream(tmp_path: Path) -> None:
    """Each rank updates its file in place all the time, 8 calls a pass, 10 s from call to call."""
    run = Run(nprocs=4, run_time_s=1000.0)
    for rank in range(4):
        starts = 10 + 10.0 * np.arange(80) + 0.01 * rank
        file = run.write(
            f"/s/wave.{rank}",
            80 * MIB,
            10.0,
            rank=rank,
            calls=80,
            duration_s=790.1,
            MAX_BYTE_WRITTEN=8 * MIB - 1,
            F_WRITE_TIME=0.8,
        )
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": rank,
                "write_segments": [
                    (n % 8 * MIB, MIB, at_s, at_s + 0.01) for n, at_s in enumerate(starts.tolist())
                ],
            },
        )
    workload = run.describe(tmp_path)
    entry = provenance_of(workload, "/streams/0/pace")
    assert entry is not None and entry.confidence == "likely" and "DXT" in entry.how
    assert share(tmp_path / "run.darshan") < LIMIT


def test_calls_one_behind_the_other_are_a_burst(tmp_path: Path) -> None:
    run = Run(nprocs=1, run_time_s=100.0)
    written(run, "/s/large", 5 + 0.1 * np.arange(300), 0.099)
    run.describe(tmp_path)
    assert share(tmp_path / "run.darshan") < LIMIT


def test_a_trace_that_is_cut_short_is_not_believed(tmp_path: Path) -> None:
    """Darshan keeps so many segments of a rank; the counters have the rest."""
    run = Run(nprocs=1, run_time_s=1000.0)
    written(run, "/s/history", 10.0 * np.arange(1, 91), 0.009)
    record = run.modules["DXT_POSIX"][0]
    record["write_segments"] = record["write_segments"][:30]
    run.describe(tmp_path)


def test_time_steps_and_checkpoints(tmp_path: Path) -> None:
    run = Run(nprocs=2, run_time_s=1000.0)
    steps = (20.0 * np.arange(1, 45)[:, None] + 0.01 * np.arange(5)).ravel()
    written(run, "/s/history", steps, 0.009)
    for n in range(8):
        written(run, f"/s/restart.{n}", 110.0 * n + 50 + 0.02 * np.arange(30), 0.019, 1)
    run.log(tmp_path / "run.darshan")
    assert share(tmp_path / "run.darshan") < LIMIT

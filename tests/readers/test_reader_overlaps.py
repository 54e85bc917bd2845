"""Calls that are in flight: those of a rank that overlap in a trace, and split ones of MPI-IO."""

from pathlib import Path

import pytest

from tests.readers.synthetic import Run
from tests.readers.test_described import valid
from tests.support.said import said
from understudy.contracts.workload import Workload
from understudy.inference.score.explanation import Explanation
from understudy.program.instructions import Move, instructions

Segment = tuple[int, int, float, float]


def threads(count: int, calls: int = 40, late_s: float = 0.0) -> list[Segment]:
    """Calls of so many threads, each behind the last one of its thread."""
    return [
        (1000 * k, 1000, 1 + k // count + late_s, 1.95 + k // count + late_s) for k in range(calls)
    ]


def described(folder: Path, *of_ranks: list[Segment]) -> Workload:
    """Of a file that ranks write, one behind the other."""
    run = Run(len(of_ranks), 100.0)
    for rank, segments in enumerate(of_ranks):
        begin = rank * 1_000_000
        run.traced("/s/a", [(begin + at, *rest) for at, *rest in segments], rank=rank)
    workload = run.describe(folder)
    valid(workload)
    return workload


def depths(workload: Workload) -> set[int]:
    (stream,) = workload.streams
    return {i.depth for i in instructions(stream) if isinstance(i, Move)}


def test_ranks_with_threads_have_as_many_calls_in_flight(tmp_path: Path) -> None:
    workload = described(tmp_path, threads(4), threads(6))
    assert depths(workload) == {4} and workload.source is not None
    assert said("in-flight", " ".join(workload.source.notes))


@pytest.mark.parametrize(
    "segments",
    [
        threads(1),
        [(1000 * k, 1000, 1.0 + k, 2.0 + k + 9e-7) for k in range(40)],  # within the clock
        [(1000 * k, 1000, 1.0 + k, 1.9 + k + 0.5 * (k % 8 == 0)) for k in range(40)],
    ],
    ids=["one behind the other", "overlaps of the clock", "few overlap"],
)
def test_calls_one_behind_the_other_are_not_in_flight(
    segments: list[Segment], tmp_path: Path
) -> None:
    assert depths(described(tmp_path, threads(4), segments)) == {1}


def test_split_collective_calls_are_collective_ones(tmp_path: Path) -> None:
    size, calls = 1 << 20, 32
    run = Run(4, 100.0)
    times = {"OPEN_START": 1.0, "WRITE_START": 1.0, "WRITE_END": 9.0, "CLOSE_END": 10.0}
    times = {f"F_{name}_TIMESTAMP": time_s for name, time_s in times.items()}
    counters = {"COLL_OPENS": 1, "SPLIT_WRITES": calls, "BYTES_WRITTEN": calls * size}
    counters |= {"SIZE_WRITE_AGG_100K_1M": calls, "ACCESS1_ACCESS": size, "ACCESS1_COUNT": calls}
    for rank in range(4):
        run.record("MPIIO", "/s/a", rank, **counters, **times)
    explanations: list[Explanation] = []
    workload = run.describe(tmp_path, told=explanations.append)
    moves = [i for i in instructions(workload.streams[0]) if isinstance(i, Move)]
    assert all(move.collective and not move.nonblocking for move in moves) and moves
    assert [d for part in explanations[0].parts for d in part.differences] == []
    assert workload.source is not None
    assert said("split", " ".join(workload.source.notes))

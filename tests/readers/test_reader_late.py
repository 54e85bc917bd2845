"""Ranks that move their bytes later than others: a dump, and no time step of its own."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.synthetic import Run, only
from understudy.contracts.workload import Workload
from understudy.inference.steps import skews
from understudy.inference.streams.file_series import Cell, DumpFacts, Series
from understudy.inference.streams.stream_grouping import Draft

MIB, RANKS, WIDTH_S = 1 << 20, 8, 0.1


def described(
    folder: Path,
    at_s: list[list[float]],
    *,
    calls: int,
    trace: bool,
    reduced: bool,
    run_time_s: float = 60.0,
) -> Workload:
    """A file of all ranks, to which each writes so many MiB at each of its times."""
    run = Run(nprocs=RANKS, run_time_s=run_time_s)
    each = calls * MIB
    for rank in range(0 if reduced else RANKS):
        mine = at_s[rank]
        lasts_s = mine[-1] - mine[0] + 0.01
        number = calls * len(mine)
        top = ((len(mine) - 1) * RANKS + rank + 1) * each - 1
        run.write(
            "/s/all",
            number * MIB,
            mine[0],
            rank=rank,
            calls=number,
            duration_s=lasts_s,
            MAX_BYTE_WRITTEN=top,
        )
    if reduced:
        first, last = min(map(min, at_s)), max(map(max, at_s))
        number = calls * sum(map(len, at_s))
        run.write("/s/all", number * MIB, first, calls=number, duration_s=last - first + 0.01)
    file = run.file("/s/all")
    run.names[9] = b"heatmap:POSIX"
    for rank, mine in enumerate(at_s):
        bins = np.zeros(int(run_time_s / WIDTH_S), np.int64)
        np.add.at(bins, [int(s / WIDTH_S) for s in mine], each)
        run.add(
            "HEATMAP",
            {
                "id": 9,
                "rank": rank,
                "bin_width_s": WIDTH_S,
                "write_bins": bins.tolist(),
                "read_bins": [0] * len(bins),
            },
        )
        if trace:
            run.add(
                "DXT_POSIX",
                {
                    "id": file,
                    "rank": rank,
                    "write_segments": [
                        (
                            ((k * RANKS + rank) * calls + c) * MIB,
                            MIB,
                            s + 1e-4 * c,
                            s + 1e-4 * c + 1e-4,
                        )
                        for k, s in enumerate(mine)
                        for c in range(calls)
                    ],
                },
            )
    return run.describe(folder)


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("calls", [1, 4])
def test_a_late_rank_is_no_time_step(
    calls: int, reduced: bool, trace: bool, tmp_path: Path
) -> None:
    at_s = [[0.3]] * (RANKS - 1) + [[1.3]]
    workload = described(tmp_path, at_s, calls=calls, trace=trace, reduced=reduced, run_time_s=1.5)
    [dump] = only(workload, operation="write").steps
    assert sum(v.count * v.shape[0] for v in dump.variables) == RANKS * calls * MIB
    assert workload.source is not None
    [note] = [n for n in workload.source.notes if "some later than others" in n]
    assert ("begin together" in note) == reduced
    assert dump.skew == (() if reduced else ((RANKS - 1, 0.0), (1, 1.0)))
    assert dump.compute_s < 0.1


@pytest.mark.parametrize("trace", [False, True])
def test_a_rank_that_is_late_each_time_is_in_each_time_step(trace: bool, tmp_path: Path) -> None:
    starts = [5.0, 20.0, 35.0, 50.0]
    at_s = [starts] * (RANKS - 1) + [[s + 1.0 for s in starts]]
    workload = described(tmp_path, at_s, calls=4, trace=trace, reduced=True)
    stream = only(workload, operation="write")
    assert [round(dump.time_s) for dump in stream.steps] == [5, 20, 35, 50]


@pytest.mark.parametrize("trace", [False, True])
def test_ranks_that_come_back_make_time_steps(trace: bool, tmp_path: Path) -> None:
    """Half of the ranks write at each time, one of them at all."""
    at_s = [[5.0, 20.0, 35.0]] + [[5.0, 35.0]] * 4 + [[20.0]] * 3
    workload = described(tmp_path, at_s, calls=4, trace=trace, reduced=True)
    assert len(only(workload, operation="write").steps) == 3


def test_ranks_with_files_of_their_own_are_late(tmp_path: Path) -> None:
    """Each to within 5 % of the dump, and none where all begin about together."""
    late_s = [0.0, 0.004, 0.002, 0.0, 0.9, 2.0, 2.0, 2.0]
    run = Run(nprocs=RANKS, run_time_s=60.0)
    for k, at_s in enumerate((10.0, 30.0)):
        for rank, late in enumerate(late_s):
            run.write(f"/s/d{k}.{rank}", MIB, at_s + late * (1 - k) + 0.01 * rank, rank=rank)
    run.describe(tmp_path)


def draft(starts_s: np.ndarray, length_s: float) -> Draft:
    cell = Cell(rank_bytes=np.ones(len(starts_s), np.int64), rank_start_s=starts_s)
    facts = DumpFacts(cells={((), 0): cell}, start_s=5.0, end_s=5.0 + length_s)
    named = {"template": b"f", "stem": b"f", "key": ((0,),), "fixed": (), "write": True}
    how = {"method": "posix", "collective": False, "synced": False, "transfer_bytes": 1}
    series = Series(**named, **how, corrected=False, rank_spans=(), dumps=[facts])  # type: ignore[arg-type]
    return Draft(series=[series])


def test_ranks_that_move_nothing_begin_with_those_before_them() -> None:
    starts_s = np.array([np.inf, 5.0, np.inf, 6.0, np.inf])
    assert skews.of_dump(draft(starts_s, 1.5), 0) == ((3, 0.0), (2, 1.0))
    assert skews.of_dump(draft(np.full(4, np.inf), 1.5), 0) == ()


def test_what_is_little_beside_the_dump_or_for_a_machine_is_no_skew() -> None:
    for late_s, length_s in ((0.5, 5.0), (0.05, 0.06)):
        assert skews.of_dump(draft(np.array([5.0, 5.0 + late_s]), length_s), 0) == ()


def test_a_million_ranks_have_few_runs() -> None:
    ranks = 1_000_000
    noise_s = np.random.default_rng(1).uniform(0, 0.01, ranks)
    half_s = 5 + noise_s + np.where(np.arange(ranks) < ranks // 2, 0.0, 3.0)
    found = skews.of_dump(draft(half_s, 4.0), 0)
    assert [n for n, _ in found] == [ranks // 2] * 2 and abs(found[1][1] - 3.005) < 0.001
    slope_s = 5 + np.linspace(0, 3, ranks) + 100 * noise_s
    many = skews.of_dump(draft(slope_s, 5.0), 0, 64)
    assert 10 < len(many) <= 64 and sum(n for n, _ in many) == ranks
    assert many[0][1] < 0.7 and abs(many[-1][1] - 3.5) < 0.2

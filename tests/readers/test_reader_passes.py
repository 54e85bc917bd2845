"""Passes over a file, ranks that are late, and bytes that are where a trace has them."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.cases import CASES, Run, periods
from tests.readers.logs import ALL
from tests.readers.placement import misplaced
from understudy.darshanlog import open_log
from understudy.inference.steps import skews
from understudy.inference.steps.overwritten_files import passes_of
from understudy.inference.steps.passes import Segments, grows
from understudy.inference.streams.file_series import Cell, DumpFacts, RankSpans, Series
from understudy.inference.streams.stream_grouping import Draft

STRIDES = [0, 400, 800, 100, 500, 900]
TEN_EACH = range(0, 900, 10)
# Offsets, sizes and starts of calls, and where passes begin.
PASSES: dict[str, tuple[list[int], list[int], list[float], list[int]]] = {
    "a count in the header is written last, the header of the second pass first": (
        [0, 100, 200, 4, 0, 20, 120, 220, 4],
        [100, 100, 100, 1, 2, 100, 100, 80, 1],
        [0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3, 9.4],
        [0, 4],
    ),
    "a pass begins with small writes, some of them after a pause of no meaning": (
        [0, 5, 10, 3000] * 2,
        [5, 5, 2990, 3000] * 2,
        [0.0, 0.1, 0.2, 0.3, 9.0, 9.01, 9.3, 9.4],
        [0, 4],
    ),
    "strides and blocks out of order are one pass": (STRIDES, [100] * 6, [*range(6)], [0]),
    "strides twice": (STRIDES * 2, [100] * 12, [*range(12)], [0, 6]),
    "many small calls, each less than 1 % of a pass": (
        [*TEN_EACH] * 3,
        [10] * 270,
        [k * 0.001 + n for n in (0.0, 10.0, 20.0) for k in range(90)],
        [0, 90, 180],
    ),
    "a count in the header that is updated after each of 500 records": (
        [100, *(n for k in range(500) for n in (1100 + 10 * k, 4))],
        [1000, *(n for _ in range(500) for n in (10, 2))],
        [*range(1001)],
        [0],
    ),
}


@pytest.mark.parametrize("what", PASSES)
def test_passes_begin_where_offsets_start_again(what: str) -> None:
    at, size, start_s, begins = PASSES[what]
    times = np.array(start_s, float)
    assert passes_of(np.array(at), np.array(size), times, times + 0.0005) == begins


@pytest.mark.parametrize("sizes", [[], [0, 0]])
def test_an_empty_trace_tells_nothing_of_a_file_that_grows(sizes: list[int]) -> None:
    size = np.array(sizes, np.int64)
    at_s = np.arange(float(len(sizes)))
    none = Segments(rank=0 * size, offset=0 * size, bytes=size, start_s=at_s, end_s=at_s)
    assert not grows(none, 1 << 20)


def skew(starts_s: np.ndarray, length_s: float, *limit: int) -> tuple[tuple[int, float], ...]:
    """Ranks and how late they are in a dump, whose ranks start at these times."""
    cell = Cell(rank_bytes=np.ones(len(starts_s), np.int64), rank_start_s=starts_s)
    facts = DumpFacts(cells={((), 0): cell}, start_s=5.0, end_s=5.0 + length_s)
    named = {"template": b"f", "stem": b"f", "key": ((0,),), "fixed": (), "write": True}
    how = {"method": "posix", "collective": False, "synced": False, "transfer_bytes": 1}
    series = Series(**named, **how, corrected=False, rank_spans=RankSpans(), dumps=[facts])  # type: ignore[arg-type]
    return skews.of_dump(Draft(series=[series]), 0, *limit)


@pytest.mark.parametrize(
    ("starts_s", "length_s", "late"),
    [
        ([np.inf, 5.0, np.inf, 6.0, np.inf], 1.5, ((3, 0.0), (2, 1.0))),  # some move nothing
        ([np.inf] * 4, 1.5, ()),
        ([5.0, 5.5], 5.0, ()),  # little beside the dump
        ([5.0, 5.05], 0.06, ()),  # little for a machine
    ],
)
def test_ranks_are_late(
    starts_s: list[float], length_s: float, late: tuple[tuple[int, float], ...]
) -> None:
    assert skew(np.array(starts_s), length_s) == late


def test_a_million_ranks_have_few_runs() -> None:
    ranks = 1_000_000
    noise_s = np.random.default_rng(1).uniform(0, 0.01, ranks)
    (first, begin_s), (second, late_s) = skew(
        5 + noise_s + np.where(np.arange(ranks) < ranks // 2, 0.0, 3.0), 4.0
    )
    assert first == second == ranks // 2 and abs(late_s - 3.005) < 0.001 > abs(begin_s)
    many = skew(5 + np.linspace(0, 3, ranks) + 100 * noise_s, 5.0, 64)
    assert 10 < len(many) <= 64 and sum(n for n, _ in many) == ranks
    assert many[0][1] < 0.7 and abs(many[-1][1] - 3.5) < 0.2


LIMIT = 0.05  # share of the bytes that are off by 1 % of the run
# Waves are updated while others are read; a rank of the player moves one dump at a time.
LIMITS = {"qe_si_md_dxt": 0.1}


def traced() -> list[Path]:
    logs = []
    for path in ALL:
        with open_log(path) as log:
            logs += [path] if {"DXT_POSIX", "DXT_MPIIO"} & set(log.modules) else []
    return logs


def share(path: Path) -> float:
    rows = misplaced(path)
    assert rows
    return sum(far * size for far, size in rows.values()) / sum(size for _, size in rows.values())


@pytest.mark.parametrize("path", traced(), ids=lambda p: p.stem)
def test_bytes_are_where_the_trace_of_a_real_log_has_them(path: Path) -> None:
    assert share(path) < LIMITS.get(path.stem, LIMIT)


@pytest.mark.parametrize(
    "make",
    [
        periods.steady_stream,
        periods.calls_close_behind_each_other_are_a_burst,
        periods.time_steps_and_checkpoints,
    ],
)
def test_bytes_are_where_the_trace_of_a_case_has_them(make: object, tmp_path: Path) -> None:
    assert callable(make) and CASES
    run = make()
    assert isinstance(run, Run) and share(run.log(tmp_path / "run.darshan")) < LIMIT

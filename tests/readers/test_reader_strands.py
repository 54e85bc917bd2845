"""Parts of a shared file that are not contiguous: views, hyperslabs and strides."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.readers.synthetic import Run, only
from understudy.contracts.workload import Stream, Workload
from understudy.inference.score.explanation import PLACES, UNKNOWN, Explanation
from understudy.program.calls import Calls, calls_of
from understudy.program.counters import BIN_BYTES, BINS

RANKS, ROWS = 4, 512
MIB = 1 << 20


def bins(word: str, sizes: dict[int, int], suffix: str = "") -> dict[str, int]:
    """The histogram of calls by their size."""
    found: dict[str, int] = {}
    for size, times in sizes.items():
        name = f"SIZE_{word}{suffix}_{BINS[sum(size > end for end in BIN_BYTES)]}"
        found[name] = found.get(name, 0) + times
    return found


def below(run: Run, sizes: dict[int, int], *, write: bool = True, **more: Any) -> None:
    """The calls of POSIX that MPI-IO or HDF5 made of the file `/s/f`, most of them ahead."""
    word = "WRITE" if write else "READ"
    calls = sum(sizes.values())
    common = sorted(sizes, key=lambda size: -sizes[size])[:4]
    counters: dict[str, Any] = {
        f"SEQ_{word}S": calls - RANKS,
        f"CONSEC_{word}S": 0,
        "OPENS": RANKS,
    }
    for k, size in enumerate(common, 1):
        counters |= {f"ACCESS{k}_ACCESS": size, f"ACCESS{k}_COUNT": sizes[size]}
    moved = sum(size * times for size, times in sizes.items())
    run.write(
        "/s/f", moved, 1.0, calls=calls, write=write, **(counters | bins(word, sizes) | more)
    )


def asked(
    run: Run,
    size: int,
    calls: int,
    *,
    write: bool = True,
    collective: bool = False,
    **counters: Any,
) -> None:
    """Calls of MPI-IO of all ranks."""
    word = "WRITE" if write else "READ"
    kind = "COLL" if collective else "INDEP"
    more = {f"COLL_{word}S": 0, f"{kind}_{word}S": calls, "COLL_OPENS": RANKS, "VIEWS": RANKS}
    more |= counters or bins(word, {size // calls: calls}, "_AGG")
    run.write("/s/f", size, 1.0, module="MPIIO", calls=calls, write=write, **more)


def described(run: Run, folder: Path) -> tuple[Stream, Workload, Explanation]:
    told: list[Explanation] = []
    workload = run.describe(folder, told=told.append)
    return only(workload), workload, told[0]


def at_storage(stream: Stream) -> Calls:
    """A call for each run of consecutive bytes."""
    return calls_of(replace(stream, method="posix"), RANKS)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("calls", [1, 4])
def test_a_view_of_columns_is_a_grid_of_one_run_of_each_rank_in_a_row(
    tmp_path: Path, calls: int, write: bool
) -> None:
    run = Run(nprocs=RANKS)
    asked(run, RANKS * ROWS * 1024, RANKS * calls, write=write)
    gap = {"STRIDE1_STRIDE": 3072, "STRIDE1_COUNT": RANKS * (ROWS - 1)}
    below(run, {1024: RANKS * ROWS}, write=write, **gap)
    stream, workload, told = described(run, tmp_path)
    (variable,) = stream.steps[0].variables
    assert variable.shape == (ROWS, 4096)
    assert variable.decomposition.grid == (1, RANKS)
    assert calls_of(stream, RANKS).count == RANKS * calls
    assert not told.of(UNKNOWN)
    assert workload.source and not [n for n in workload.source.notes if "assumed" in n]


def test_a_gap_of_one_run_tells_that_two_ranks_share_a_row(tmp_path: Path) -> None:
    run = Run(nprocs=RANKS)
    asked(run, RANKS * ROWS * 2048, RANKS)
    below(run, {2048: RANKS * ROWS}, STRIDE1_STRIDE=2048, STRIDE1_COUNT=RANKS * (ROWS - 1))
    stream, _, told = described(run, tmp_path)
    (variable,) = stream.steps[0].variables
    assert variable.shape == (2 * ROWS, 4096)
    assert variable.decomposition.grid == (2, 2)
    assert not told.of(UNKNOWN)


def test_collective_calls_that_are_not_joined_are_a_grid(tmp_path: Path) -> None:
    run = Run(nprocs=RANKS)
    asked(run, RANKS * ROWS * 256, RANKS, collective=True)
    below(run, {256: RANKS * ROWS}, STRIDE1_STRIDE=768, STRIDE1_COUNT=RANKS * (ROWS - 1))
    stream, _, _ = described(run, tmp_path)
    assert stream.steps[0].variables[0].decomposition.grid == (1, RANKS)
    assert stream.collective


def test_a_few_small_calls_of_a_library_beside_them(tmp_path: Path) -> None:
    """HDF5 without records of its own: the bytes are those of MPI-IO, with the metadata."""
    run = Run(nprocs=RANKS)
    sizes = {256: 6144, 272: 3, 96: 2, 544: 1, 16: 1}
    size = sum(each * times for each, times in sizes.items())
    asked(run, size, sum(sizes.values()), **bins("WRITE", sizes, "_AGG"), ACCESS1_ACCESS=256)
    below(run, sizes, STRIDE1_STRIDE=768, STRIDE1_COUNT=6140)
    stream, _, _ = described(run, tmp_path)
    main = max(stream.steps[0].variables, key=lambda v: v.bytes)
    assert main.decomposition.grid == (1, RANKS)
    assert main.shape == (size // 1024, 1024)
    assert stream.bytes == size
    for calls in (at_storage(stream), calls_of(stream, RANKS)):
        assert calls.count == pytest.approx(sum(sizes.values()), rel=0.01)


def test_runs_of_several_sizes_and_the_fill_before_them(tmp_path: Path) -> None:
    """As Meep writes: two sizes of runs add up to the bytes, and so does one call of HDF5."""
    run = Run(nprocs=RANKS)
    runs = {88: 28_800, 784: 14_400}
    size = sum(each * times for each, times in runs.items())
    asked(run, size, RANKS * 12)
    below(run, runs | {size: 1}, STRIDE1_STRIDE=872, STRIDE1_COUNT=27_840)
    stream, workload, _ = described(run, tmp_path)
    storage = at_storage(stream)
    assert {n: c for n, c in zip(BINS, storage.sizes, strict=True) if c} == {
        "0_100": 28_800,
        "100_1K": 14_400,
    }
    assert sum(v.bytes for v in stream.steps[0].variables) == size
    assert workload.source and any("alternate" in n for n in workload.source.notes)


def test_calls_that_hdf5_cuts_without_gaps_are_runs_with_a_note(tmp_path: Path) -> None:
    run = Run(nprocs=RANKS)
    asked(run, RANKS * ROWS * 1552, RANKS)
    below(run, {1552: RANKS * ROWS}, CONSEC_WRITES=RANKS * (ROWS - 1))
    stream, workload, _ = described(run, tmp_path)
    assert at_storage(stream).count == RANKS * ROWS
    assert workload.source and any("one behind the other" in n for n in workload.source.notes)


def test_runs_that_do_not_add_up_are_told_and_counted_as_missing(tmp_path: Path) -> None:
    run = Run(nprocs=RANKS)
    asked(run, RANKS * ROWS * 1024, RANKS)
    below(run, {1024: 2 * RANKS * ROWS}, STRIDE1_STRIDE=3072, STRIDE1_COUNT=RANKS * ROWS)
    stream, workload, told = described(run, tmp_path)
    assert stream.steps[0].variables[0].decomposition.rule == "even"
    assert workload.source and any("not contiguous" in n for n in workload.source.notes)
    assert [part.unknown for part in told.parts if part.way == "WRITE"] == [(PLACES,)]


def test_unequal_ranks_are_told(tmp_path: Path) -> None:
    """No grid gives ranks columns of these widths."""
    run = Run(nprocs=2)
    alone = {"COLL_WRITES": 0, "INDEP_WRITES": 1, "VIEWS": 1}
    for rank, size in enumerate((ROWS * 2672, ROWS * 400)):
        run.write("/s/f", size, 1.0, module="MPIIO", rank=rank, **alone)
    more = {"STRIDE1_STRIDE": 2672, "STRIDE1_COUNT": ROWS - 1}
    below(run, {2672: ROWS, 400: ROWS}, **more)
    stream, workload, told = described(run, tmp_path)
    assert all(v.decomposition.rule != "grid" for v in stream.steps[0].variables)
    assert workload.source and any("not contiguous" in n for n in workload.source.notes)
    assert [part.unknown for part in told.parts if part.way == "WRITE"] == [(PLACES,)]


@pytest.mark.parametrize(
    ("sizes", "more"),
    [
        ({4 * MIB: 64}, {"STRIDE1_STRIDE": 4 * MIB, "STRIDE1_COUNT": 60}),  # of two aggregators
        ({MIB: 256}, {"CONSEC_WRITES": 252}),
        ({MIB: 256}, {"SEQ_WRITES": 128}),  # in any order
    ],
)
def test_contiguous_parts_stay_contiguous(
    tmp_path: Path, sizes: dict[int, int], more: dict[str, int]
) -> None:
    run = Run(nprocs=RANKS)
    asked(run, 256 * MIB, 256, collective=True)
    below(run, sizes, **more)
    stream, workload, _ = described(run, tmp_path)
    (variable,) = stream.steps[0].variables
    assert variable.decomposition.rule == "even"
    assert workload.source and not [n for n in workload.source.notes if "not contiguous" in n]

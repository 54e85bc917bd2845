"""Ranks that move their bytes later than others, in parts of a file, or in files of their own."""

from collections.abc import Sequence
from typing import Any

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run
from understudy.program.counters import BIN_BYTES, BINS

RANKS, WIDTH_S = 8, 0.1

# Ranks that are late: a dump, and no time step of its own.


def at_times(
    at_s: Sequence[Sequence[float]], calls: int, trace: bool, reduced: bool, run_s: float = 60.0
) -> Run:
    """A file of all ranks, to which each writes so many MiB at each of its times."""
    run = Run(RANKS, run_s)
    each = calls * MIB
    if reduced:
        first, last = min(map(min, at_s)), max(map(max, at_s))
        number = calls * sum(map(len, at_s))
        run.write("/s/all", number * MIB, first, calls=number, duration_s=last - first + 0.01)
    for rank, starts in enumerate(at_s):
        number = calls * len(starts)
        top = ((len(starts) - 1) * RANKS + rank + 1) * each - 1
        if not reduced:
            more = {"duration_s": starts[-1] - starts[0] + 0.01, "MAX_BYTE_WRITTEN": top}
            run.write("/s/all", number * MIB, starts[0], rank=rank, calls=number, **more)
        bins: dict[int, int] = {}
        for start in starts:
            bins[int(start / WIDTH_S)] = bins.get(int(start / WIDTH_S), 0) + each
        run.heatmap(bins, int(run_s / WIDTH_S), rank=rank, width_s=WIDTH_S)
        places = [(k, s, c) for k, s in enumerate(starts) for c in range(calls)] if trace else ()
        offsets = (((k * RANKS + rank) * calls + c) * MIB for k, _, c in places)
        times = ((s + 1e-4 * c, s + 1e-4 * (c + 1)) for _, s, c in places)
        if trace:
            pairs = zip(offsets, times, strict=True)
            run.trace("/s/all", [(at, MIB, *span) for at, span in pairs], rank)
    return run


@case(calls=(1, 4), reduced=FLAGS, trace=FLAGS)
def late_rank_is_no_time_step(calls: int, reduced: bool, trace: bool) -> Run:
    at_s = [[0.3]] * (RANKS - 1) + [[1.3]]
    return at_times(at_s, calls, trace, reduced, run_s=1.5)


@case(trace=FLAGS)
def rank_that_is_late_each_time_is_in_each_time_step(trace: bool) -> Run:
    starts = [5.0, 20.0, 35.0, 50.0]
    at_s = [starts] * (RANKS - 1) + [[s + 1.0 for s in starts]]
    return at_times(at_s, 4, trace, reduced=True)


@case(trace=FLAGS)
def ranks_that_come_back_make_time_steps(trace: bool) -> Run:
    """Half of the ranks write at each time, one of them at all."""
    at_s = [[5.0, 20.0, 35.0]] + [[5.0, 35.0]] * 4 + [[20.0]] * 3
    return at_times(at_s, 4, trace, reduced=True)


@case()
def ranks_with_files_of_their_own_are_late() -> Run:
    """Each to within 5 % of the dump, and none where all begin about together."""
    late_s = [0.0, 0.004, 0.002, 0.0, 0.9, 2.0, 2.0, 2.0]
    run = Run(RANKS, 60.0)
    for k, at_s in enumerate((10.0, 30.0)):
        for rank, late in enumerate(late_s):
            run.write(f"/s/d{k}.{rank}", MIB, at_s + late * (1 - k) + 0.01 * rank, rank=rank)
    return run


@case()
def ranks_with_directories_of_their_own() -> Run:
    """A directory for each rank, and in it one for each dump with another in it; files of all in
    one directory for each dump; and files that all lie in one."""
    run = Run()
    for k in range(3):
        for rank in range(4):
            at_s = 10.0 + 20 * k
            run.write(f"/s/part{rank}/{k}/field", MIB, at_s, rank=rank)
            run.write(f"/s/part{rank}/{k}/more/mesh", MIB, at_s, rank=rank)
            run.write(f"/s/all/{k}/of.{rank}", 2 * MIB, at_s + 8, rank=rank)
            run.write(f"/s/flat.{k}.{rank}", 3 * MIB, at_s + 14, rank=rank)
    return run


# Parts of a shared file that are not contiguous: views, hyperslabs and strides.

ROWS = 512
PARTS = 4 * ROWS  # one of each rank in a row
COLUMNS = {"STRIDE1_STRIDE": 3072, "STRIDE1_COUNT": 4 * (ROWS - 1)}


def bins(word: str, sizes: dict[int, int], suffix: str = "") -> dict[str, int]:
    """The histogram of calls by their size."""
    counters: dict[str, int] = {}
    for size, times in sizes.items():
        name = f"SIZE_{word}{suffix}_{BINS[sum(size > end for end in BIN_BYTES)]}"
        counters[name] = counters.get(name, 0) + times
    return counters


def below(run: Run, sizes: dict[int, int], *, write: bool = True, **more: Any) -> Run:
    """The calls of POSIX that MPI-IO or HDF5 made of the file `/s/f`, most of them ahead."""
    word, calls = "WRITE" if write else "READ", sum(sizes.values())
    counters: dict[str, Any] = {f"SEQ_{word}S": calls - 4, f"CONSEC_{word}S": 0, "OPENS": 4}
    for k, size in enumerate(sorted(sizes, key=lambda size: -sizes[size])[:4], 1):
        counters |= {f"ACCESS{k}_ACCESS": size, f"ACCESS{k}_COUNT": sizes[size]}
    moved = sum(size * times for size, times in sizes.items())
    counters |= bins(word, sizes) | more
    run.write("/s/f", moved, 1.0, calls=calls, write=write, **counters)
    return run


def asked(
    size: int, calls: int, *, write: bool = True, coll: bool = False, **counters: Any
) -> Run:
    """A run with calls of MPI-IO of all ranks."""
    word = "WRITE" if write else "READ"
    more = {f"COLL_{word}S": 0, f"{'COLL' if coll else 'INDEP'}_{word}S": calls}
    more |= {"COLL_OPENS": 4, "VIEWS": 4}
    more |= counters or bins(word, {size // calls: calls}, "_AGG")
    run = Run()
    run.write("/s/f", size, 1.0, module="MPIIO", calls=calls, write=write, **more)
    return run


@case(calls=(1, 4), write=FLAGS)
def view_of_columns_is_a_grid_of_one_part_of_each_rank_in_a_row(calls: int, write: bool) -> Run:
    run = asked(PARTS * 1024, 4 * calls, write=write)
    return below(run, {1024: PARTS}, write=write, **COLUMNS)


@case()
def gap_of_one_part_tells_that_two_ranks_share_a_row() -> Run:
    return below(asked(PARTS * 2048, 4), {2048: PARTS}, **(COLUMNS | {"STRIDE1_STRIDE": 2048}))


@case()
def collective_calls_that_are_not_joined_are_a_grid() -> Run:
    run = asked(PARTS * 256, 4, coll=True)
    return below(run, {256: PARTS}, **(COLUMNS | {"STRIDE1_STRIDE": 768}))


@case()
def small_calls_of_a_library_beside_a_grid() -> Run:
    """HDF5 without records of its own: the bytes are those of MPI-IO, with the metadata."""
    sizes = {256: 6144, 272: 3, 96: 2, 544: 1, 16: 1}
    size = sum(each * times for each, times in sizes.items())
    more = bins("WRITE", sizes, "_AGG") | {"ACCESS1_ACCESS": 256}
    run = asked(size, sum(sizes.values()), **more)
    return below(run, sizes, STRIDE1_STRIDE=768, STRIDE1_COUNT=6140)


@case()
def parts_of_several_sizes_and_the_fill_before_them() -> Run:
    """As Meep writes: two sizes of parts add up to the bytes, and so does one call of HDF5."""
    parts = {88: 28_800, 784: 14_400}
    size = sum(each * times for each, times in parts.items())
    run = asked(size, 48)
    return below(run, parts | {size: 1}, STRIDE1_STRIDE=872, STRIDE1_COUNT=27_840)


@case()
def calls_that_hdf5_cuts_without_gaps() -> Run:
    return below(asked(PARTS * 1552, 4), {1552: PARTS}, CONSEC_WRITES=4 * (ROWS - 1))


@case()
def parts_that_do_not_add_up() -> Run:
    more = {"STRIDE1_STRIDE": 3072, "STRIDE1_COUNT": PARTS}
    return below(asked(PARTS * 1024, 4), {1024: 2 * PARTS}, **more)


@case()
def unequal_ranks() -> Run:
    """No grid gives ranks columns of these widths."""
    run = Run(2)
    alone = {"COLL_WRITES": 0, "INDEP_WRITES": 1, "VIEWS": 1}
    for rank, size in enumerate((ROWS * 2672, ROWS * 400)):
        run.write("/s/f", size, 1.0, module="MPIIO", rank=rank, **alone)
    return below(run, {2672: ROWS, 400: ROWS}, STRIDE1_STRIDE=2672, STRIDE1_COUNT=ROWS - 1)


CONTIGUOUS = (
    ({4 * MIB: 64}, {"STRIDE1_STRIDE": 4 * MIB, "STRIDE1_COUNT": 60}),  # of two aggregators
    ({MIB: 256}, {"CONSEC_WRITES": 252}),
    ({MIB: 256}, {"SEQ_WRITES": 128}),  # in any order
)


@case(row=CONTIGUOUS)
def contiguous_parts_stay_contiguous(row: tuple[dict[int, int], dict[str, int]]) -> Run:
    sizes, more = row
    return below(asked(256 * MIB, 256, coll=True), sizes, **more)

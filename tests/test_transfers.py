"""From counters of calls to variables that make them: sizes, time steps, ranks, exact bytes."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.readers.synthetic import Run
from tests.support.folds import calls_of
from understudy.contracts.workload import Workload
from understudy.inference.calls.stdio_calls import of_streams
from understudy.inference.calls.transfers import (
    MAX_PIECES,
    Piece,
    Tally,
    of_average,
    pieces,
    sizes_of,
    told,
)
from understudy.inference.table import ACCESS
from understudy.program.counters import BINS, bin_of


def whole(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


# -- sizes from counters --------------------------------------------------------------------------


def counters(sizes: list[int]) -> tuple[Any, Any, Any, Any]:
    """The histogram, the most common sizes and the bytes of such calls, as Darshan has them."""
    histogram = np.zeros((1, len(BINS)), np.int64)
    for size in sizes:
        histogram[0, bin_of(size)] += 1
    common = sorted(set(sizes), key=lambda s: (-sizes.count(s), s))[:4]
    common += [0] * (4 - len(common))
    return (
        histogram,
        whole(*common)[None],
        whole(*map(sizes.count, common))[None],
        whole(sum(sizes)),
    )


@pytest.mark.parametrize(
    "sizes",
    [
        [65536] * 8,
        [96] * 3 + [272] * 3 + [1 << 20] * 12,
        [1, 46602, 44108],
        [1001, 1001],
        [0, 5],
    ],
)
def test_common_sizes_are_exact(sizes: list[int]) -> None:
    means = sizes_of(*counters(sizes))[0]
    for place in range(len(BINS)):
        each = [s for s in sizes if bin_of(s) == place]
        assert means[place] == pytest.approx(sum(each) / len(each) if each else 0)


def test_other_sizes_lie_in_their_bins_and_add_up() -> None:
    rng = random.Random(5)
    for _ in range(200):
        sizes = [int(10 ** rng.uniform(0, 7.5)) for _ in range(rng.randint(5, 60))]
        histogram, values, times, moved = counters(sizes)
        means = sizes_of(histogram, values, times, moved)[0]
        assert (means * histogram[0]).sum() == pytest.approx(moved[0], rel=1e-9)
        for place in np.flatnonzero(histogram[0]).tolist():
            assert bin_of(means[place]) == place


def test_common_sizes_of_the_other_direction_are_not_believed() -> None:
    """A file that was read in calls of 8,191 B and written in one of 1,030 B."""
    histogram, _, _, _ = counters([1030])
    values, times = whole(8191, 1030, 0, 0)[None], whole(2, 1, 0, 0)[None]
    means = sizes_of(histogram, values, times, whole(1030))[0]
    assert means[2] == pytest.approx(1030)


def test_calls_without_sizes_are_alike() -> None:
    histogram, sizes = of_average(whole(6, 0), whole(600_000, 0))
    assert histogram[0].tolist() == [0, 0, 0, 6, 0, 0, 0, 0, 0, 0]
    assert sizes[0][3] == 100_000 and not histogram[1].any()


@pytest.mark.parametrize(
    ("calls", "units", "moved", "items"),
    [
        (328, 2, 5_633_842, 326),  # a restart file of LAMMPS, twice: a header and the atoms
        (421, 18, 601_412, 403),  # frames of GROMACS that are flushed: items and coordinates
        (21, 1, 400_080, 20),  # a header of 20 integers, then an array
        (662, 114, 5_254_048, 548),  # arrays of GPAW: some by elements, others as a whole
        (2001, 82, 2_889_968, 1919),  # frames of GROMACS: a header and what was compressed
        (55, 11, 55 * 933_225, 0),  # a buffer of each rank behind a header
        (25, 1, 197_055, 0),  # copied in calls of 8 KiB
        (160, 1, 160 * 16384 - 5, 0),
        (811, 1, 4_052_632, 0),  # bunzip2 in calls of 5,000 B
        (617, 1, 3_073_599, 0),  # bzip2, the same beside two small calls
        (171, 1, 438_381, 0),  # chunks of a PNG file
        (2000, 1, 2000 * 1864, 0),  # records
        (352_008, 1, 4_272_389, 0),  # lines of text
        (144_084, 5, 576_360, 0),  # numbers one by one
        (12, 1, 12 * 17_000, 0),  # of one size
        (4, 1, 4_000_008, 3),  # even bytes alone do not make calls of one size
        (11, 10, 20_530_943, 0),  # hardly more calls than flushes
    ],
)
def test_calls_of_standard_io_are_what_takes_the_shortest_code(
    calls: int, units: int, moved: int, items: int
) -> None:
    histogram, sizes = of_streams(whole(calls), whole(units), whole(moved))
    assert histogram.sum() == calls
    assert (histogram * sizes).sum() == pytest.approx(moved)
    assert sorted(n for n in histogram[0].tolist() if n) == sorted(
        [items, calls - items] if items else [calls]
    )


def stdio(folder: Path, ranks: int = 1, **counters: int) -> list[tuple[int, int]]:
    """Calls and bytes of the variables of a dump of the one file of such a record."""
    run, times = Run(ranks), {"F_OPEN_START_TIMESTAMP": 0.1}
    for word, verb, at_s in (("WRITTEN", "WRITE", 1.0), ("READ", "READ", 3.0)):
        if f"BYTES_{word}" in counters:
            times |= {f"MAX_BYTE_{word}": counters[f"BYTES_{word}"] - 1, f"F_{verb}_TIME": 0.5}
            times |= {f"F_{verb}_START_TIMESTAMP": at_s, f"F_{verb}_END_TIMESTAMP": at_s + 1}
    run.record("STDIO", "/s/a.dat", **times, **counters)
    [stream] = [s for s in run.describe(folder).streams if s.operation == "write"]
    moves = stream.steps[0].moves
    return [(m.variable.bytes // m.transfer_bytes or 1, m.variable.bytes) for m in moves]


def test_items_and_arrays_are_those_between_two_flushes(tmp_path: Path) -> None:
    """Sixty frames, each of 15 items and an array: without flushes, all are alike."""
    calls, moved = 60 * 16, 60 * (15 * 4 + 23_003)
    frames = {"OPENS": 1, "WRITES": calls, "BYTES_WRITTEN": moved}
    variables = stdio(tmp_path, **frames, FLUSHES=61)
    assert variables == [(900, 7200), (60, moved - 7200)]
    assert len(stdio(tmp_path, **frames)) == 1


def test_parts_of_all_ranks_that_one_of_them_writes_are_no_items(tmp_path: Path) -> None:
    """Text of LAMMPS: in each of 13 time steps, rank 0 writes that of each rank and flushes."""
    text = {"OPENS": 1, "WRITES": 52, "BYTES_WRITTEN": 58_354_886, "FLUSHES": 13}
    assert all(size > 4096 for _, size in stdio(tmp_path, ranks=4, **text))
    assert any(size < 4096 for _, size in stdio(tmp_path, ranks=3, **text))


def test_opens_to_read_a_file_are_none_of_its_writes(tmp_path: Path) -> None:
    """A header of 20 integers and an array, read again: one array, though there were two opens."""
    both = {"OPENS": 2, "WRITES": 21, "BYTES_WRITTEN": 400_080, "READS": 21, "BYTES_READ": 400_080}
    assert [size for _, size in stdio(tmp_path, **both)] == [160, 399_920]


# -- adding up ------------------------------------------------------------------------------------


def tally(*records: tuple[int, list[int], int], bins: int = 1) -> Tally:
    """Of records (bin of ranks, sizes of calls, how many of them are collective)."""
    total = Tally(bins=bins)
    for where, sizes, collectives in records:
        rows = np.zeros(1, ACCESS)
        histogram, values, times, moved = counters(sizes)
        rows["calls"], rows["sizes"] = histogram, sizes_of(histogram, values, times, moved)
        rows["collectives"] = collectives
        total.add(rows, whole(where))
    return total


def test_states_have_as_many_calls_and_large_ones_grow() -> None:
    """Thirteen time steps by four ranks, each with a header of 159 B: what differs in size does so
    because the time steps grow."""
    growing = [(k + 1) * 100_000 for k in range(13) for _ in range(4)]
    total = tally((0, [159] * 13 + growing, 52))
    share = [(k + 1) / 91 for k in range(13)]
    for k in range(13):
        state = total.step(k, 13, (k * (k + 1) // 2, (k + 1) * (k + 2) // 2, 91))
        assert state.kinds[False, 1].calls.sum() == 1
        assert state.kinds[False, 1].size == pytest.approx(159)
        [large] = [kind for (collective, _), kind in state.kinds.items() if collective]
        assert large.calls.sum() == 4
        assert large.size == pytest.approx(sum(growing) * share[k] / 4, rel=1e-6)


def test_states_that_can_have_as_many_of_each_size_do() -> None:
    total = tally((0, ([50_000] * 28 + [200_000] * 16 + [2_000_000] * 4) * 10, 0))
    state = total.step(3, 10, (3, 4, 10))
    kinds = {bin_: (kind.calls.sum(), round(kind.size)) for (_, bin_), kind in state.kinds.items()}
    assert kinds == {3: (28, 50_000), 4: (16, 200_000), 5: (4, 2_000_000)}


def test_calls_that_no_number_of_states_divides_are_all_kept() -> None:
    total = tally((0, [10] * 61, 0))
    assert (
        sum(int(total.step(k, 4, (k, k + 1, 4)).kinds[False, 0].calls.sum()) for k in range(4))
        == 61
    )


# -- pieces ---------------------------------------------------------------------------------------


def cut(moved: Any, ranks: Any, tally: Tally, **more: Any) -> list[Piece]:
    usual = {"element": 1, "even": False, "transfer_bytes": 1000, "collective": False}
    return pieces(moved, ranks, tally, **(usual | more))


SMALL = [124] * 5 + [42] * 5 + [22] * 5 + [0] * 5
COLLECTIVE = {"transfer_bytes": 1_000_000, "collective": True}
# Bytes and ranks of blocks, records (block, sizes of calls, how many are collective), options, and
# the pieces: rows of each block, bytes of a row, transfer size, whether they are collective.
CUTS: dict[str, tuple[list[int], list[int], list[Any], dict[str, Any], list[Any]]] = {
    "without calls the stream's transfer size holds": (
        [8000], [4], [], {}, [([8000], 1, None, False)],
    ),
    "calls of the size that the stream has need no word": (
        [8000], [4], [(0, [1000] * 8, 0)], {}, [([8000], 1, None, False)],
    ),
    "calls of another size": ([8000], [4], [(0, [500] * 16, 0)], {}, [([8000], 1, 500, False)]),
    "a header before collective calls": (
        [4_000_192], [4], [(0, [96] * 2 + [1_000_000] * 4, 4)], COLLECTIVE,
        [([2], 96, 96, False), ([4_000_000], 1, None, True)],
    ),
    "each rank makes its own calls": (
        [5030, 7000, 0, 6010], [1] * 4,
        [(0, [10] * 3 + [5000], 0), (1, [7000], 0), (3, [10, 6000], 0)], {},
        [([3, 0, 0, 1], 10, 10, False), ([5000, 7000, 0, 6000], 1, 7000, False)],
    ),
    "a rank without large calls makes no more than it made": (
        [160_000, 90], [1, 1], [(0, [40_000] * 4, 0), (1, [90], 0)], {},
        [([160_000, 90], 1, 40_000, False)],
    ),
    "calls of a bin have the sizes that records name, never their mean": (
        [30 * 8192 + 10 * 2048 + 8 * 3000], [1],
        [(0, [8192] * 30 + [2048] * 10 + [3000] * 8, 0)],
        {"named": {2: (48, {8192: 30, 2048: 10})}},
        [([10], 2048, 2048, False), ([8], 3000, 3000, False), ([30 * 8192], 1, 8192, False)],
    ),
    # Of eight dumps with headers of 13 B to 544 B, of which a dump has an eighth.
    "small calls take what equal large ones leave": (
        [(16 << 20) + 552], [16], [(0, [312] + [1 << 20] * 16, 16)],
        {"transfer_bytes": 1 << 20, "collective": True},
        [([1], 552, 552, False), ([16 << 20], 1, None, True)],
    ),
    "calls of a few bytes come out by two sizes": (
        [921, 0, 0, 0], [1] * 4, [(0, [5] * 33 + [6] * 126, 0)], {},
        [([126, 0, 0, 0], 6, 6, False), ([33, 0, 0, 0], 5, 5, False)],
    ),
    # An archive read in blocks of 4 MiB: its tables make no block longer.
    "main calls of one size get no byte of others": (
        [(240 << 22) + 940], [1], [(0, [4 << 20] * 240 + SMALL, 0)], {"transfer_bytes": 4 << 20},
        [
            *(([5], 22, 22, False), ([10], 21, 21, False), ([5], 124, 124, False)),
            ([240 << 22], 1, None, False),
        ],
    ),
    "a call of 500 MB is one": (
        [500_000_000], [1], [(0, [500_000_000], 0)], {}, [([500_000_000], 1, 500_000_000, False)],
    ),
    "a rank with few bytes takes part in collective calls": (
        [8_000_000, 80], [1, 1], [(0, [800_000] * 10, 10), (1, [8] * 10, 10)], COLLECTIVE,
        [([8_000_000, 80], 1, 800_000, True)],
    ),
    "elements stay whole": (
        [320_120], [4], [(0, [24] * 5 + [80_000] * 4, 0)], {"element": 8},
        [([5], 24, 24, False), ([40_000], 8, 80_000, False)],
    ),
    "all ranks take part in collective calls of several sizes": (
        [65_000], [4], [(0, [5_000] * 3 + [50_000], 4)],
        {"transfer_bytes": 50_000, "collective": True}, [([65_000], 1, None, True)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CUTS)
def test_bytes_are_cut_into_pieces_of_calls(what: str) -> None:
    moved, ranks, records, options, expected = CUTS[what]
    parts = cut(whole(*moved), whole(*ranks), tally(*records, bins=len(moved)), **options)
    assert [
        (p.rows.tolist(), p.row_elements * p.element, p.transfer_bytes, p.collective)
        for p in parts
    ] == expected


def test_sizes_that_not_all_files_have_are_not_told_apart() -> None:
    """Of three files with a size each, the mean of all is that of the one in the middle."""
    each = [tally((0, [size] * 12, 0)) for size in (2000, 3000, 4000)]
    named = {2: (36, {2000: 12, 3000: 12, 4000: 12})}
    assert told(named, each) == {}
    assert told(named, each[1:2]) == named


def test_fewer_calls_than_ranks_are_the_first_ones() -> None:
    parts = cut(whole(6000), whole(1000), tally((0, [2000] * 3, 0)), transfer_bytes=4096)
    [piece] = parts
    assert (piece.ranks.tolist(), piece.rows.tolist()) == ([3, 997], [6000, 0])


def test_a_header_that_one_rank_reads_alone_may_be_the_largest_call() -> None:
    """Of 512 ranks all make two calls of 300 B and thirteen of 3 kB together."""
    total = Tally()
    rows = np.zeros(1, ACCESS)
    rows["calls"][0, [1, 2, 4]], rows["collectives"] = [1024, 6656, 1], 7680
    rows["sizes"][0, [1, 2, 4]] = [300, 3000, 200_000]
    total.add(rows, whole(0), 512)
    assert {key: int(kind.calls.sum()) for key, kind in total.kinds.items()} == {
        (True, 1): 1024,
        (True, 2): 6656,
        (False, 4): 1,
    }


def test_kinds_are_few() -> None:
    sizes = [50, 500, 5_000, 50_000, 500_000, 3 << 20, 8 << 20, 50 << 20]
    parts = cut(whole(3 * sum(sizes)), whole(3), tally((0, sizes * 3, 0)))
    assert 2 < len(parts) <= MAX_PIECES
    assert sum(int((p.rows * p.row_elements).sum()) for p in parts) == 3 * sum(sizes)


def test_the_bytes_of_every_rank_are_exact_whatever_the_counters_say() -> None:
    rng = random.Random(11)
    for _ in range(300):
        blocks = rng.choice([1, 1, 3, 8])
        ranks = whole(*(rng.choice([1, 4]) if blocks > 1 else 16 for _ in range(blocks)))
        element = rng.choice([1, 4, 8])
        moved = whole(*(element * rng.choice([0, 1, 7, 1000, 12345]) for _ in range(blocks)))
        if not moved.any():
            continue
        records = [
            (
                rng.randrange(blocks),
                [int(10 ** rng.uniform(0, 6)) for _ in range(rng.randint(1, 9))],
                rng.randint(0, 3),
            )
            for _ in range(rng.randint(0, 12))
        ]
        parts = cut(
            moved,
            ranks,
            tally(*records, bins=blocks),
            element=element,
            even=rng.random() < 0.3,
            transfer_bytes=rng.choice([8, 100, 1 << 20]),
            collective=rng.random() < 0.5,
        )
        sums = np.zeros(int(ranks.sum()), np.int64)
        for piece in parts:
            assert piece.rows.any() and piece.row_elements >= 1
            assert piece.transfer_bytes is None or piece.transfer_bytes >= piece.element
            size = piece.rows * piece.row_elements * piece.element
            edges = np.concatenate([[0], np.cumsum(piece.ranks)])
            for first, end, part in zip(edges, edges[1:], size, strict=False):
                sums[first] += part
                assert end > first
        edges = np.concatenate([[0], np.cumsum(ranks)])
        for first, end, part in zip(edges, edges[1:], moved, strict=False):
            assert sums[first:end].sum() == part


# -- from a log -----------------------------------------------------------------------------------


def file_of_each_rank(path: Path, ranks: int, sizes: list[list[int]]) -> Workload:
    """A dump of a file for each rank, written by calls of such sizes."""
    run = Run(ranks)
    for rank in range(ranks):
        each = sizes[rank % len(sizes)]
        histogram, values, times, _ = counters(each)
        bins = {f"SIZE_WRITE_{b}": int(n) for b, n in zip(BINS, histogram[0], strict=True)}
        for k in range(4):
            bins |= {f"ACCESS{k + 1}_ACCESS": int(values[0, k])}
            bins |= {f"ACCESS{k + 1}_COUNT": int(times[0, k])}
        name, more = f"/x/time step.{rank:08d}", {"calls": len(each), "duration_s": 1.0}
        run.write(name, sum(each), 1.0, rank=rank, **more, **bins)
    return run.describe(path)


@pytest.mark.parametrize(
    "sizes",
    [
        [[100, 900, 70_000], [100, 900, 70_000]],
        [[50] * 4 + [70_000], [70_000], [400, 400, 90_000, 90_000]],
        [[3, 3, 3], [50_000], [2_000] * 5],
    ],
)
def test_a_log_with_a_record_per_rank_gives_each_its_calls(
    sizes: list[list[int]], tmp_path: Path
) -> None:
    [stream] = file_of_each_rank(tmp_path, 12, sizes).streams
    calls = calls_of(stream, 12)
    wanted = [n for rank in range(12) for n in sizes[rank % len(sizes)]]
    assert calls.count == len(wanted)
    assert stream.bytes == sum(wanted)
    wrong = [abs(n - sum(bin_of(w) == k for w in wanted)) for k, n in enumerate(calls.sizes)]
    assert sum(wrong) / 2 <= 0.1 * len(wanted)


def test_many_ranks_stay_a_small_file(tmp_path: Path) -> None:
    """65,536 ranks of three kinds, whose calls are of three sizes."""
    sizes = [[96] * 3 + [70_000], [96] * 3 + [70_000, 70_000], [70_008]]
    workload = file_of_each_rank(tmp_path, 65_536, sizes)
    assert len(workload.to_text()) < 300_000
    [stream] = workload.streams
    wanted = [n for rank in range(65_536) for n in sizes[rank % 3]]
    assert stream.bytes == sum(wanted)
    assert calls_of(stream, 65_536).count == pytest.approx(len(wanted), rel=0.1)

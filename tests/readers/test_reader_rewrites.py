"""Files that are written again and again under the same names: every pass is a dump."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.readers.logs import TRACES
from tests.readers.synthetic import Run, only, sizes
from tests.support.said import said
from understudy.contracts.workload import Stream, Workload, parse, provenance_of
from understudy.inference.steps.overwritten_files import passes_of
from understudy.inference.steps.passes import Segments, grows
from understudy.readers import darshan

MIB = 1 << 20


def notes(workload: Workload) -> str:
    return " ".join(workload.source.notes)


def written_again(
    run: Run,
    name: str,
    contents: Sequence[int],
    times: Sequence[float],
    *,
    opens: int,
    trace: bool,
    calls: int = 2,
    rank: int = 0,
) -> None:
    """A file that is written from its start each time; the last content may be shorter."""
    file = run.write(
        name,
        sum(contents),
        times[0],
        rank=rank,
        duration_s=times[-1] - times[0] + 0.1,
        calls=calls * len(contents),
        OPENS=opens,
        MAX_BYTE_WRITTEN=max(contents) - 1,
        F_WRITE_TIME=0.1 * len(contents),
    )
    if trace:
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": rank,
                "write_segments": [
                    (c * (size // calls), size // calls, at_s + 0.04 * c, at_s + 0.04 * c + 0.03)
                    for size, at_s in zip(contents, times, strict=True)
                    for c in range(calls)
                ],
            },
        )


def kind(stream: Stream) -> tuple[str, int, bool]:
    return stream.files, stream.names, not stream.closes


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("opens", [100, 1, 7])
def test_a_restart_file_of_one_name(trace: bool, opens: int, tmp_path: Path) -> None:
    """The classic: a hundred times its size is written in a run."""
    run = Run(run_time_s=1000.0, nprocs=1)
    times = [5.0 + 9.5 * k for k in range(100)]
    written_again(run, "/s/restart", [4 * MIB] * 100, times, opens=opens, trace=trace)
    run.describe(tmp_path)


@pytest.mark.parametrize("trace", [False, True])
def test_contents_that_grow(trace: bool, tmp_path: Path) -> None:
    """Without a trace the number is known from the opens, and the sizes are a guess."""
    run = Run(nprocs=1)
    contents = [MIB * n for n in (4, 6, 8, 10)]
    written_again(run, "/s/restart", contents, [5.0, 30.0, 55.0, 80.0], opens=4, trace=trace)
    workload = run.describe(tmp_path)
    assert ("that its files were written 4 times is a guess" in notes(workload)) != trace


def test_a_file_of_each_rank(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    times = [5.0 + 10.0 * k for k in range(8)]
    for rank in range(4):
        written_again(run, f"/s/wfc{rank + 1}", [MIB] * 8, times, opens=1, trace=True, rank=rank)
    run.describe(tmp_path)


def test_an_hdf5_file_made_anew_each_time(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    file, dataset = run.file("/s/ck.h5"), run.file("/s/ck.h5:/u")
    run.add(
        "H5D",
        {
            "id": dataset,
            "file_rec_id": file,
            "rank": -1,
            "H5D_OPENS": 10,
            "H5D_BYTES_WRITTEN": 80 * MIB,
            "H5D_WRITES": 40,
            "H5D_DATATYPE_SIZE": 8,
            "H5D_DATASPACE_NPOINTS": MIB,
            "H5D_F_WRITE_START_TIMESTAMP": 5.0,
            "H5D_F_WRITE_END_TIMESTAMP": 95.0,
        },
    )
    run.write(
        "/s/ck.h5",
        80 * MIB + 20480,
        5.0,
        calls=50,
        duration_s=90.0,
        OPENS=40,
        MAX_BYTE_WRITTEN=8 * MIB + 2047,
    )
    run.describe(tmp_path)


def test_a_header_written_again_is_no_pass(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    for k in range(3):
        run.write(f"/s/ck.{k}", MIB + 512, 30.0 * k + 2, rank=0, calls=3, MAX_BYTE_WRITTEN=MIB - 1)
    run.describe(tmp_path)


@pytest.mark.parametrize("sizes", [[], [0, 0]])
def test_an_empty_trace_tells_nothing_of_a_file_that_grows(sizes: list[int]) -> None:
    """A trace may name a file without an access to it."""
    size = np.array(sizes, np.int64)
    at_s = np.arange(float(len(sizes)))
    none = Segments(rank=0 * size, offset=0 * size, bytes=size, start_s=at_s, end_s=at_s)
    assert not grows(none, MIB)


def test_passes_begin_where_offsets_start_again() -> None:
    """A count in the header is written last, the header of the second pass first."""
    at = np.array([0, 100, 200, 4, 0, 20, 120, 220, 4])
    size = np.array([100, 100, 100, 1, 2, 100, 100, 80, 1])
    start_s = np.array([0.0, 0.1, 0.2, 0.3, 9.0, 9.1, 9.2, 9.3, 9.4])
    assert passes_of(at, size, start_s, start_s + 0.05) == [0, 4]


def test_small_writes_go_where_the_longest_pause_is() -> None:
    """A pass begins with small writes, some of them after a pause of no meaning."""
    at = np.array([0, 5, 10, 3000, 0, 5, 10, 3000])
    size = np.array([5, 5, 2990, 3000, 5, 5, 2990, 3000])
    start_s = np.array([0.0, 0.1, 0.2, 0.3, 9.0, 9.01, 9.3, 9.4])
    assert passes_of(at, size, start_s, start_s + 0.005) == [0, 4]


def test_strides_and_blocks_out_of_order_are_one_pass() -> None:
    at = np.array([0, 400, 800, 100, 500, 900])
    size = np.full(6, 100)
    start_s = np.arange(6.0)
    assert passes_of(at, size, start_s, start_s + 0.5) == [0]
    twice = np.concatenate([at, at])
    times = np.arange(12.0)
    assert passes_of(twice, np.full(12, 100), times, times + 0.5) == [0, 6]


@pytest.mark.parametrize("calls", [3, 90, 300])
def test_passes_of_many_small_calls(calls: int) -> None:
    """Each is less than 1 % of a pass."""
    at = np.tile(np.arange(calls) * 10, 3)
    start_s = np.arange(3 * calls) * 0.001 + np.repeat([0.0, 10.0, 20.0], calls)
    size = np.full(3 * calls, 10)
    assert passes_of(at, size, start_s, start_s + 0.0005) == [0, calls, 2 * calls]


def test_a_header_between_small_calls_begins_no_pass() -> None:
    """Its count is updated after each of 500 records, which follow larger ones."""
    at = np.array([100, *(n for k in range(500) for n in (1100 + 10 * k, 4))])
    size = np.array([1000, *(n for _ in range(500) for n in (10, 2))])
    start_s = np.arange(1001.0)
    assert passes_of(at, size, start_s, start_s + 0.5) == [0]


EPOCHS = (10.0, 40.0, 70.0)


def epochs(run: Run, name: str, *, order: Sequence[int], trace: bool) -> None:
    """Each rank reads its quarter of a file in each epoch, 64 records of 4 KiB."""
    for rank in range(4):
        file = run.read(
            name,
            3 * MIB // 4,
            EPOCHS[0],
            rank=rank,
            duration_s=61.0,
            calls=192,
            OPENS=3,
            MAX_BYTE_READ=(rank + 1) * MIB // 4 - 1,
            F_READ_TIME=0.3,
        )
        if trace:
            run.add(
                "DXT_POSIX",
                {
                    "id": file,
                    "rank": rank,
                    "read_segments": [
                        (
                            rank * MIB // 4 + 4096 * k,
                            4096,
                            at_s + 0.002 * n,
                            at_s + 0.002 * n + 0.001,
                        )
                        for at_s in EPOCHS
                        for n, k in enumerate(order)
                    ],
                },
            )


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("shuffled", [False, True])
def test_epochs_over_a_file_whose_parts_the_ranks_read(
    shuffled: bool, trace: bool, tmp_path: Path
) -> None:
    run = Run(run_time_s=100.0, nprocs=4)
    order = np.random.default_rng(1).permutation(64).tolist() if shuffled else list(range(64))
    epochs(run, "/s/input", order=order, trace=trace)
    workload = run.describe(tmp_path)
    assert "the same bytes" not in notes(workload)


@pytest.mark.parametrize("trace", [False, True])
def test_epochs_over_several_files(trace: bool, tmp_path: Path) -> None:
    """Each file is three passes, not three times as large."""
    run = Run(run_time_s=100.0, nprocs=4)
    for name in ("/s/train_0.rec", "/s/train_1.rec"):
        epochs(run, name, order=range(64), trace=trace)
    run.describe(tmp_path)


def test_quantum_espresso_updates_in_place() -> None:
    """A molecular-dynamics run: 26.4 MB written into files of 5.2 MB; the wave functions, 1.4 MB
    on two ranks, are updated 14 times."""
    workload = darshan.read(TRACES / "qe_si_md_dxt.darshan", keep_names=True)
    written = [s for s in workload.streams if s.operation == "write"]
    assert round(sum(s.bytes for s in written) / 1e6, 1) == 26.4
    waves = next(s for s in written if s.label.endswith("si.wfc*"))
    assert (waves.files, waves.closes) == ("update", True)
    assert (waves.layout, sizes(waves)) == ("file-per-process", [1_420_288] * 14)
    density = next(s for s in written if s.label.endswith("charge-density.dat"))
    assert (density.files, sizes(density)) == ("rewrite", [308_656] * 5)
    mixing = next(s for s in written if s.label.endswith("si.mix*"))
    assert (mixing.files, len(mixing.steps), mixing.bytes) == ("new", 5, 3_173_472)
    assert [d.continues for d in mixing.steps] == [False, True, True, True, True]
    turns = next(s for s in workload.streams if s.last == mixing.name)
    assert (len(turns.steps), turns.bytes) == (4, 3_526_080)


@pytest.mark.parametrize("top", [511, (1 << 50) - 1])
def test_more_dumps_than_a_workload_may_have(top: int, tmp_path: Path) -> None:
    """Counters of a broken log: what comes out is still a workload."""
    run = Run(nprocs=1)
    run.write(
        "/s/a",
        1 << 50,
        1.0,
        rank=0,
        duration_s=90.0,
        calls=1000,
        OPENS=1 << 40,
        FSYNCS=1 << 35,
        MAX_BYTE_WRITTEN=top,
        F_WRITE_TIME=0.1,
    )
    workload = parse(run.describe(tmp_path).to_text(), "x")
    assert "put together" in notes(workload) or "is a guess" in notes(workload)


@pytest.mark.parametrize("fdopens", [5, 6])
def test_streams_of_descriptors_are_each_of_the_whole_file(fdopens: int, tmp_path: Path) -> None:
    """Darshan adds up the offsets of a file that is opened and given to fdopen() each time."""
    run = Run(run_time_s=100.0, nprocs=1)
    run.write(
        "/s/restart",
        6 * MIB,
        10.0,
        module="STDIO",
        duration_s=60.0,
        calls=60,
        OPENS=6,
        FDOPENS=fdopens,
        MAX_BYTE_WRITTEN=6 * MIB - 1,
    )
    workload = run.describe(tmp_path)
    said("its-files-were-truncated", notes(workload))


def test_a_file_read_again_and_again(tmp_path: Path) -> None:
    """Three passes; that each rank may have read all of the file is another matter."""
    run = Run(run_time_s=100.0, nprocs=4)
    more = {"duration_s": 60.0, "rank": -1, "F_VARIANCE_RANK_BYTES": 0.0}
    run.read("/s/input", 6 * MIB, 10.0, calls=24, MAX_BYTE_READ=2 * MIB - 1, **more)
    workload = run.describe(tmp_path)
    said("were-read-times-guess", notes(workload))

    run = Run(run_time_s=100.0, nprocs=4)
    run.read("/s/input", 8 * MIB, 10.0, calls=24, MAX_BYTE_READ=2 * MIB - 1, **more)
    workload = run.describe(tmp_path)
    said("each-rank-reads-all", notes(workload))


@pytest.mark.parametrize("way", ["counters", "trace"])
def test_ranks_that_each_read_a_whole_file_make_no_passes_over_it(
    way: str, tmp_path: Path
) -> None:
    """Modules of Python: four ranks read all of a file, 2 kB in two calls, and its end."""
    run = Run(run_time_s=100.0, nprocs=4)
    for rank in range(4):
        at_s = 10.0 + 5 * rank
        more = {"READS": 3, "MAX_BYTE_READ": 1999, "SIZE_READ_100_1K": 2, "SIZE_READ_0_100": 1}
        file = run.read("/s/module", 2000, at_s, rank=rank, calls=2, **more)
        if way == "trace":
            run.add(
                "DXT_POSIX",
                {
                    "id": file,
                    "rank": rank,
                    "read_segments": [
                        (n * 1000, 1000 if n < 2 else 0, at_s + 0.01 * n, at_s + 0.01 * n + 0.001)
                        for n in range(3)
                    ],
                },
            )
    workload = run.describe(tmp_path)
    told = "the same bytes of a file, as the trace shows" if way == "trace" else "which the log"
    assert told in notes(workload)


def test_ranks_that_write_the_same_bytes_together_write_them_once(tmp_path: Path) -> None:
    run = Run(run_time_s=100.0, nprocs=4)
    for rank in range(4):
        file = run.write("/s/same", 4 * MIB, 10.0, rank=rank, calls=4, OPENS=2)
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": rank,
                "write_segments": [
                    (n * MIB, MIB, 10.0 + 0.02 * n, 10.01 + 0.02 * n) for n in range(4)
                ],
            },
        )
    workload = run.describe(tmp_path)
    told = f"bytes of the files {16 * MIB:,} predicted, {4 * MIB:,} counted"
    assert told in notes(workload)


@pytest.mark.parametrize("other_s", [None, 12.0, 5.0])
def test_times_from_bins_of_several_files_are_not_certain(
    other_s: float | None, tmp_path: Path
) -> None:
    """A restart file in the heatmap: alone, with a burst of another file between, and with one
    that lasts as long as all its passes."""
    run = Run(run_time_s=60.0, nprocs=1)
    written_again(run, "/s/restart", [4 * MIB] * 3, [5.0, 25.0, 45.0], opens=3, trace=False)
    bins = np.zeros(60, np.int64)
    bins[[5, 25, 45]] = 4 * MIB
    if other_s is not None:
        lasts_s = 40.0 if other_s == 5.0 else 0.5
        run.write("/s/else", 9 * MIB, other_s, rank=0, duration_s=lasts_s, F_WRITE_TIME=lasts_s)
        bins[[5, 25, 45] if lasts_s > 1 else [12]] += 3 * MIB if lasts_s > 1 else 9 * MIB
    run.names[9] = b"heatmap:POSIX"
    run.add(
        "HEATMAP",
        {
            "id": 9,
            "rank": 0,
            "bin_width_s": 1.0,
            "write_bins": bins.tolist(),
            "read_bins": [0] * 60,
        },
    )
    workload = run.describe(tmp_path)
    stream = only(workload, files="rewrite")
    entry = provenance_of(workload, f"/streams/{workload.streams.index(stream)}/dumps/1/time_s")
    assert entry is not None and "HEATMAP" in entry.how


@pytest.mark.parametrize("kind_of", ["columns", "random", "back"])
def test_a_trace_tells_the_order_of_updates(kind_of: str, tmp_path: Path) -> None:
    """Five passes of 64 calls over a file that stays open: column by column, at random, or from
    the end to the start, which no order of a workload is."""
    order = {
        "columns": np.arange(64).reshape(8, 8).T.ravel(),
        "back": np.arange(64)[::-1],
        "random": np.random.default_rng(1).permutation(64),
    }[kind_of]
    run, size = Run(run_time_s=60.0, nprocs=1), 4096
    ahead = 5 * int((np.diff(order) > 0).sum())
    file = run.write(
        "/s/state",
        5 * 64 * size,
        5.0,
        rank=0,
        duration_s=40.7,
        calls=320,
        MAX_BYTE_WRITTEN=64 * size - 1,
        SEQ_WRITES=ahead,
        CONSEC_WRITES=0,
        F_WRITE_TIME=0.3,
    )
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [
                (int(place) * size, size, 5.0 + 10 * k + 0.01 * n, 5.005 + 10 * k + 0.01 * n)
                for k in range(5)
                for n, place in enumerate(order)
            ],
        },
    )
    workload = run.describe(tmp_path)
    assert ("in an order that the log does not tell" in notes(workload)) == (kind_of == "back")

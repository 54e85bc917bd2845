"""Files that are written or read again and again under the same names: every pass is a dump."""

from collections.abc import Sequence

import numpy as np

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run

EPOCHS = (10.0, 40.0, 70.0)


def written_again(
    run: Run, name: str, contents: Sequence[int], times: Sequence[float], **more: int
) -> None:
    """A file that is written from its start each time; the last content may be shorter."""
    segments = [
        (c * (size // 2), size // 2, at_s + 0.04 * c, at_s + 0.04 * c + 0.03)
        for size, at_s in zip(contents, times, strict=True)
        for c in range(2)
    ]
    usual = {"duration_s": times[-1] - times[0] + 0.1, "F_WRITE_TIME": 0.1 * len(contents)}
    run.traced(name, segments, MAX_BYTE_WRITTEN=max(contents) - 1, **(usual | more))


@case(trace=FLAGS, opens=(100, 1, 7))
def restart_file_of_one_name(trace: bool, opens: int) -> Run:
    """The classic: a hundred times its size is written in a run."""
    run = Run(1, 1000.0)
    times = [5.0 + 9.5 * k for k in range(100)]
    written_again(run, "/s/restart", [4 * MIB] * 100, times, OPENS=opens, trace=trace)
    return run


@case(trace=FLAGS)
def contents_that_grow(trace: bool) -> Run:
    """Without a trace the number is known from the opens, and the sizes are a guess."""
    run = Run(1)
    contents = [MIB * n for n in (4, 6, 8, 10)]
    written_again(run, "/s/restart", contents, [5.0, 30.0, 55.0, 80.0], OPENS=4, trace=trace)
    return run


@case()
def file_of_each_rank() -> Run:
    run = Run()
    times = [5.0 + 10.0 * k for k in range(8)]
    for rank in range(4):
        written_again(run, f"/s/wfc{rank + 1}", [MIB] * 8, times, rank=rank)
    return run


@case()
def hdf5_file_that_is_created_each_time() -> Run:
    run = Run()
    end = {"F_WRITE_END_TIMESTAMP": 95.0, "DATASPACE_NPOINTS": MIB}
    run.dataset("/s/ck.h5", 80 * MIB, 5.0, OPENS=10, WRITES=40, **end)
    more = {"duration_s": 90.0, "OPENS": 40, "MAX_BYTE_WRITTEN": 8 * MIB + 2047}
    run.write("/s/ck.h5", 80 * MIB + 20480, 5.0, calls=50, **more)
    return run


@case()
def header_that_is_written_again_is_no_pass() -> Run:
    run = Run(1)
    for k in range(3):
        top = {"calls": 3, "MAX_BYTE_WRITTEN": MIB - 1}
        run.write(f"/s/ck.{k}", MIB + 512, 30.0 * k + 2, rank=0, **top)
    return run


def epochs(run: Run, name: str, order: Sequence[int], trace: bool) -> None:
    """Each rank reads its quarter of a file in each epoch, 64 records of 4 KiB."""
    for rank in range(4):
        begin = rank * MIB // 4
        segments = [
            (begin + 4096 * k, 4096, at_s + 0.002 * n, at_s + 0.002 * n + 0.001)
            for at_s in EPOCHS
            for n, k in enumerate(order)
        ]
        more = {"duration_s": 61.0, "OPENS": 3, "MAX_BYTE_READ": begin + MIB // 4 - 1}
        more |= {"F_READ_TIME": 0.3, "rank": rank, "write": False, "trace": trace}
        run.traced(name, segments, **more)


@case(trace=FLAGS, shuffled=FLAGS)
def epochs_over_a_file_whose_parts_the_ranks_read(trace: bool, shuffled: bool) -> Run:
    run = Run()
    order = np.random.default_rng(1).permutation(64).tolist() if shuffled else range(64)
    epochs(run, "/s/input", order, trace)
    return run


@case(trace=FLAGS)
def epochs_over_several_files(trace: bool) -> Run:
    """Each file is three passes, not three times as large."""
    run = Run()
    for name in ("/s/train_0.rec", "/s/train_1.rec"):
        epochs(run, name, range(64), trace)
    return run


@case(top=(511, (1 << 50) - 1))
def more_dumps_than_a_workload_may_have(top: int) -> Run:
    """Counters of a broken log: what comes out is still a workload."""
    run = Run(1)
    more = {"OPENS": 1 << 40, "FSYNCS": 1 << 35, "MAX_BYTE_WRITTEN": top, "F_WRITE_TIME": 0.1}
    run.write("/s/a", 1 << 50, 1.0, rank=0, duration_s=90.0, calls=1000, **more)
    return run


@case(fdopens=(5, 6))
def streams_of_descriptors_are_each_of_the_whole_file(fdopens: int) -> Run:
    """Darshan adds up the offsets of a file that is opened and given to fdopen() each time."""
    run = Run(1)
    more = {"OPENS": 6, "FDOPENS": fdopens, "MAX_BYTE_WRITTEN": 6 * MIB - 1, "calls": 60}
    run.write("/s/restart", 6 * MIB, 10.0, module="STDIO", duration_s=60.0, **more)
    return run


@case(size=(6 * MIB, 8 * MIB))
def file_that_is_read_again_and_again(size: int) -> Run:
    """Three passes, or each rank may have read all of the file."""
    run = Run()
    more = {"duration_s": 60.0, "F_VARIANCE_RANK_BYTES": 0.0, "MAX_BYTE_READ": 2 * MIB - 1}
    run.read("/s/input", size, 10.0, calls=24, **more)
    return run


@case(trace=FLAGS)
def ranks_that_each_read_a_whole_file_make_no_passes_over_it(trace: bool) -> Run:
    """Modules of Python: four ranks read all of a file, 2 kB in two calls, and its end."""
    run = Run()
    for rank in range(4):
        at_s = 10.0 + 5 * rank
        more = {"READS": 3, "MAX_BYTE_READ": 1999, "SIZE_READ_100_1K": 2, "SIZE_READ_0_100": 1}
        run.read("/s/module", 2000, at_s, rank=rank, calls=2, **more)
        times = [at_s + 0.01 * n for n in range(3)]
        reads = [(n * 1000, 1000 * (n < 2), s, s + 0.001) for n, s in enumerate(times)]
        if trace:
            run.trace("/s/module", rank=rank, reads=reads)
    return run


@case()
def ranks_that_write_the_same_bytes_together_write_them_once() -> Run:
    run = Run()
    for rank in range(4):
        segments = [(n * MIB, MIB, 10.0 + 0.02 * n, 10.01 + 0.02 * n) for n in range(4)]
        run.traced("/s/same", segments, rank=rank, OPENS=2, duration_s=0.1, F_WRITE_TIME=0.1)
    return run


@case(other_s=(None, 12.0, 5.0))
def restart_file_in_the_heatmap(other_s: float | None) -> Run:
    """Alone, with a burst of another file between, and with one that lasts as long as all its
    passes: times from bins of several files are not certain."""
    run = Run(1, 60.0)
    written_again(run, "/s/restart", [4 * MIB] * 3, [5.0, 25.0, 45.0], OPENS=3, trace=False)
    bins = dict.fromkeys((5, 25, 45), 4 * MIB)
    if other_s == 5.0:
        run.write("/s/else", 9 * MIB, 5.0, rank=0, duration_s=40.0, F_WRITE_TIME=40.0)
        bins = dict.fromkeys(bins, 7 * MIB)
    elif other_s:
        run.write("/s/else", 9 * MIB, 12.0, rank=0, duration_s=0.5, F_WRITE_TIME=0.5)
        bins[12] = 9 * MIB
    run.heatmap(bins, 60)
    return run


@case(kind=("columns", "random", "back"))
def order_of_updates(kind: str) -> Run:
    """Five passes of 64 calls over a file that stays open: column by column, at random, or from
    the end to the start, which no order of a workload is."""
    order = {
        "columns": np.arange(64).reshape(8, 8).T.ravel(),
        "back": np.arange(64)[::-1],
        "random": np.random.default_rng(1).permutation(64),
    }[kind]
    run, size = Run(1, 60.0), 4096
    segments = [
        (int(place) * size, size, 5.0 + 10 * k + 0.01 * n, 5.005 + 10 * k + 0.01 * n)
        for k in range(5)
        for n, place in enumerate(order)
    ]
    more = {"SEQ_WRITES": 5 * int((np.diff(order) > 0).sum()), "CONSEC_WRITES": 0}
    more |= {"MAX_BYTE_WRITTEN": 64 * size - 1, "F_WRITE_TIME": 0.3, "duration_s": 40.7}
    run.traced("/s/state", segments, **more)
    return run

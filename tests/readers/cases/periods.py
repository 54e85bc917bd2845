"""Dumps that are near to each other compared with the run: each is found."""

import numpy as np

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run

MINUTES, DAY_S = 60.0, 86_400.0


def appended(
    run: Run,
    steps: int,
    period_s: float,
    *,
    size: int = MIB,
    calls: int = 1,
    trace: bool = True,
    jitter: float = 0.0,
    pause_s: float = 0.0,
    **more: int,
) -> Run:
    """A file of rank 0 that takes a time step of so many calls every so often."""
    shift = np.random.default_rng(7).uniform(-jitter, jitter, steps) * period_s
    starts = [10.0 + period_s * k + float(shift[k]) for k in range(steps)]
    each, number = size // calls, steps * calls
    segments = [
        (k * size + c * each, each, at_s + 0.02 * c, at_s + 0.02 * c + 0.01)
        for k, at_s in enumerate(starts)
        for c in range(calls)
    ]
    usual = {"duration_s": starts[-1] - starts[0] + 0.1, "F_WRITE_TIME": 0.01 * steps}
    usual |= {"CONSEC_WRITES": number - 1, "SEQ_WRITES": number - 1}
    if pause_s:  # in the middle of the trace
        late = (pause_s * (k // (number // 2)) for k in range(number))
        segments = [(at, n, s + w, e + w) for (at, n, s, e), w in zip(segments, late, strict=True)]
    run.traced("/s/traj.xtc", segments, trace=trace, **(usual | more))
    return run


RUNS = (
    (DAY_S, 140, 10 * MINUTES, 4),  # checkpoints of a day-long run
    (30 * MINUTES, 100, 15.0, 1),  # a molecular-dynamics code
    (60 * MINUTES, 1000, 3.0, 2),
    (DAY_S, 12, 60.0, 4),  # all within a hundredth of the run
)


@case(row=RUNS, jitter=(0.0, 0.2))
def dumps_nearer_than_a_hundredth_of_the_run(
    row: tuple[float, int, float, int], jitter: float
) -> Run:
    run_s, steps, period_s, calls = row
    return appended(Run(2, run_s), steps, period_s, calls=calls, jitter=jitter)


@case()
def thousand_dumps_of_35_gib() -> Run:
    return appended(Run(2, DAY_S), 1000, 80.0, size=35 << 30, calls=5)


@case(counter=("", "FSYNCS", "OPENS"))
def counters_tell_without_a_trace(counter: str) -> Run:
    """Syncs, opens or writes of one size; the last two could be several in a time step."""
    more = {counter: 100} if counter else {}
    return appended(Run(2, 30 * MINUTES), 100, 15.0, trace=False, **more)


@case()
def several_plausible_periods() -> Run:
    """Two calls each half second in each of ten groups, sixty seconds apart."""
    run = Run(1, 700.0)
    starts = [60.0 * g + 2.0 * k for g in range(10) for k in range(3)]
    segments = [(k * MIB, MIB, at_s, at_s + 0.05) for k, at_s in enumerate(starts)]
    run.traced("/s/out", segments, duration_s=starts[-1] + 0.1, F_WRITE_TIME=starts[-1] + 0.1)
    return run


@case()
def slow_checkpoint_of_a_long_run_is_one_dump() -> Run:
    """Three variables with pauses between, within a hundredth of the run."""
    run = Run(1, 1000.0)
    segments = [(k * MIB, MIB, 500.0 + 4 * k, 501.0 + 4 * k) for k in range(3)]
    run.traced("/s/state", segments, F_WRITE_TIME=9.0)
    return run


@case()
def dates_every_ten_minutes_of_two_days() -> Run:
    """Hours and minutes repeat, but each of their files is a dump of its own."""
    run = Run(4, 2 * DAY_S)
    for k in range(288):
        day, minute = divmod(10 * k, 1440)
        name = f"/s/out_2026-11-{21 + day}_{minute // 60:02d}:{minute % 60:02d}:00"
        run.write(name, 4 * MIB, 600.0 * k + 5, calls=4, duration_s=20.0)
    return run


@case()
def files_far_apart_are_no_dump_however_long_the_run() -> Run:
    run = Run(4, DAY_S)
    run.write("/s/dump_t006/fields.h5", MIB, 1.0, rank=0)
    run.write("/s/dump_t006/late.h5", MIB, 600.0, rank=0)
    return run


@case()
def small_inputs_far_apart_are_dumps_of_their_own() -> Run:
    """Tables read at the start of a day-long run and three every ten minutes."""
    run = Run(4, DAY_S)
    run.write("/s/ck", 4000 * MIB, 50_000.0, rank=0)
    for name, at_s in zip("abcdef", (1.0, 1.5, 2.0, 601.0, 1201.0, 1801.0), strict=True):
        run.read(f"/s/{name}-table", MIB, at_s, rank=0)
    return run


@case(trace=FLAGS)
def regular_series_of_any_length_is_a_rule(trace: bool) -> Run:
    return appended(Run(2, DAY_S), 20_000, 4.0, size=8192, trace=trace, FSYNCS=20_000)


@case()
def irregular_time_steps_beyond_the_limit() -> Run:
    return appended(Run(1, DAY_S), 12_000, 6.0, size=8192, jitter=0.4, pause_s=3000.0)


@case(trace=FLAGS)
def lines_of_a_text_are_put_together(trace: bool) -> Run:
    """With a trace at a steady pace, so that they are at their time."""
    return appended(Run(1, 1000.0), 400, 2.4, size=64, trace=trace, FSYNCS=400, jitter=0.3)


@case(trace=FLAGS)
def ranks_that_go_on_behind_the_others_begin_a_time_step(trace: bool) -> Run:
    """Two calls of each of four ranks in a time step, with no clear pauses between them."""
    run, step = Run(4, 10.0), 16 * 1024
    rng = np.random.default_rng(3)
    begins = np.cumsum(rng.uniform(0.004, 0.03, 60))
    more = {"duration_s": float(begins[-1] - begins[0]), "calls": 480, "F_WRITE_TIME": 0.01}
    more |= {"CONSEC_WRITES": 240, "SEQ_WRITES": 479}
    run.write("/s/all", 60 * 8 * step, float(begins[0]), **more)
    for rank in range(4 if trace else 0):
        at = np.sort(begins + rng.uniform(0, 0.003, (2, 60)), axis=0)
        places = [(k, c) for k in range(60) for c in range(2)]
        writes = [
            ((8 * k + 2 * rank + c) * step, step, at[c, k], at[c, k] + 1e-4) for k, c in places
        ]
        run.trace("/s/all", writes, rank)
    return run


@case()
def small_calls_at_equal_distances_are_one_steady_dump() -> Run:
    run = Run(2)
    for rank in range(2):
        starts = 5.0 + 0.2 * np.arange(400)
        segments = [(n * 4096, 4096, at_s, at_s + 1e-4) for n, at_s in enumerate(starts)]
        run.traced(f"/s/out.{rank}", segments, rank=rank, duration_s=80.0, F_WRITE_TIME=0.1)
    return run


@case(syncs=(5, 12, 24))
def flushes_of_a_stream_of_stdio_are_in_its_dumps(syncs: int) -> Run:
    """A log that is given to fsync() now and then; as often as dumps, each of them ends so."""
    run = Run(2)
    for k in range(12):
        name, number = f"/s/out.{k:03d}", (k + 1) * syncs // 12 - k * syncs // 12
        run.write(name, MIB, 5.0 + 7 * k, rank=0, module="STDIO", calls=16)
        run.record("POSIX", name, OPENS=1, FILENOS=1, FSYNCS=number)
    return run


def written(run: Run, name: str, starts: np.ndarray, length_s: float, **more: float) -> None:
    """A file that is written in calls of 1 MiB."""
    times = enumerate(starts.tolist())
    run.traced(name, [(n * MIB, MIB, at_s, at_s + length_s) for n, at_s in times], **more)


@case()
def steady_stream() -> Run:
    """Each rank updates its file in place all the time, 8 calls a pass, 10 s from call to call."""
    run = Run(4, 1000.0)
    for rank in range(4):
        starts = 10 + 10.0 * np.arange(80) + 0.01 * rank
        segments = [(n % 8 * MIB, MIB, s, s + 0.01) for n, s in enumerate(starts.tolist())]
        more = {"duration_s": 790.1, "MAX_BYTE_WRITTEN": 8 * MIB - 1, "F_WRITE_TIME": 0.8}
        run.traced(f"/s/wave.{rank}", segments, rank=rank, **more)
        run.modules["POSIX"][-1]["POSIX_F_WRITE_START_TIMESTAMP"] = 10.0
    return run


@case()
def calls_close_behind_each_other_are_a_burst() -> Run:
    run = Run(1)
    written(run, "/s/large", 5 + 0.1 * np.arange(300), 0.099)
    return run


@case()
def trace_that_is_cut_short_is_not_believed() -> Run:
    """Darshan keeps so many segments of a rank; the counters have the rest."""
    run = Run(1, 1000.0)
    written(run, "/s/history", 10.0 * np.arange(1, 91), 0.009)
    del run.modules["DXT_POSIX"][0]["write_segments"][30:]
    return run


@case()
def time_steps_and_checkpoints() -> Run:
    run = Run(2, 1000.0)
    steps = (20.0 * np.arange(1, 45)[:, None] + 0.01 * np.arange(5)).ravel()
    written(run, "/s/history", steps, 0.009)
    for n in range(8):
        written(run, f"/s/restart.{n}", 110.0 * n + 50 + 0.02 * np.arange(30), 0.019, rank=1)
    return run

"""Dumps that are near to each other compared with the run: each is found."""

from pathlib import Path

import numpy as np
import pytest

from tests.readers.synthetic import Run
from tests.support.said import said
from understudy.contracts.workload import Workload

MIB = 1 << 20
MINUTES, DAY_S = 60.0, 86_400.0


def notes(workload: Workload) -> str:
    return " ".join(workload.source.notes)


def appended(
    run: Run,
    steps: int,
    period_s: float,
    *,
    size: int = MIB,
    calls: int = 1,
    trace: bool = True,
    jitter: float = 0.0,
    **more: int,
) -> None:
    """A file of rank 0 that takes a time step of so many calls every so often."""
    shift = np.random.default_rng(7).uniform(-jitter, jitter, steps) * period_s
    starts = [10.0 + period_s * k + float(shift[k]) for k in range(steps)]
    file = run.write(
        "/s/traj.xtc",
        steps * size,
        starts[0],
        rank=0,
        duration_s=starts[-1] - starts[0] + 0.1,
        calls=steps * calls,
        CONSEC_WRITES=steps * calls - 1,
        SEQ_WRITES=steps * calls - 1,
        F_WRITE_TIME=0.01 * steps,
        **more,
    )
    each = size // calls
    if trace:
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": 0,
                "write_segments": [
                    (k * size + c * each, each, at_s + 0.02 * c, at_s + 0.02 * c + 0.01)
                    for k, at_s in enumerate(starts)
                    for c in range(calls)
                ],
            },
        )


@pytest.mark.parametrize(
    ("run_s", "steps", "period_s", "calls"),
    [
        (DAY_S, 140, 10 * MINUTES, 4),  # checkpoints of a day-long run
        (30 * MINUTES, 100, 15.0, 1),  # a molecular-dynamics code
        (60 * MINUTES, 1000, 3.0, 2),
        (DAY_S, 12, 60.0, 4),  # all within a hundredth of the run
    ],
)
@pytest.mark.parametrize("jitter", [0.0, 0.2])
def test_dumps_nearer_than_a_hundredth_of_the_run(
    run_s: float, steps: int, period_s: float, calls: int, jitter: float, tmp_path: Path
) -> None:
    run = Run(run_time_s=run_s, nprocs=2)
    appended(run, steps, period_s, calls=calls, jitter=jitter)
    run.describe(tmp_path)


def test_a_thousand_dumps_of_35_gib(tmp_path: Path) -> None:
    run = Run(run_time_s=DAY_S, nprocs=2)
    appended(run, 1000, 80.0, size=35 << 30, calls=5)
    run.describe(tmp_path)


@pytest.mark.parametrize("counters", [{}, {"FSYNCS": 100}, {"OPENS": 100}])
def test_without_a_trace_counters_tell(counters: dict[str, int], tmp_path: Path) -> None:
    """Syncs, opens or writes of one size; the last two could be several in a time step."""
    run = Run(run_time_s=30 * MINUTES, nprocs=2)
    appended(run, 100, 15.0, trace=False, **counters)
    workload = run.describe(tmp_path)
    guess = "is a guess from POSIX_" + ("OPENS" if counters else "WRITES of one size")
    assert (guess in notes(workload)) == ("FSYNCS" not in counters)


def test_several_plausible_periods_are_noted(tmp_path: Path) -> None:
    """Two calls each half second in each of ten groups, sixty seconds apart."""
    run = Run(run_time_s=700.0, nprocs=1)
    starts = [60.0 * g + 2.0 * k for g in range(10) for k in range(3)]
    file = run.write("/s/out", 30 * MIB, starts[0], rank=0, duration_s=starts[-1] + 0.1, calls=30)
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [(k * MIB, MIB, at_s, at_s + 0.05) for k, at_s in enumerate(starts)],
        },
    )
    workload = run.describe(tmp_path)
    said("tell-time-steps-from", notes(workload))


def test_one_slow_checkpoint_of_a_long_run_is_one_dump(tmp_path: Path) -> None:
    """Three variables with pauses between, within a hundredth of the run."""
    run = Run(run_time_s=1000.0, nprocs=1)
    file = run.write("/s/state", 3 * MIB, 500.0, rank=0, duration_s=9.0, calls=3)
    run.add(
        "DXT_POSIX",
        {
            "id": file,
            "rank": 0,
            "write_segments": [(k * MIB, MIB, 500.0 + 4 * k, 501.0 + 4 * k) for k in range(3)],
        },
    )
    run.describe(tmp_path)


def test_dates_every_ten_minutes_of_two_days(tmp_path: Path) -> None:
    """Hours and minutes repeat, but each of their files is a dump of its own."""
    run = Run(run_time_s=2 * DAY_S, nprocs=4)
    for k in range(288):
        day, minute = divmod(10 * k, 1440)
        run.write(
            f"/s/out_2026-11-{21 + day}_{minute // 60:02d}:{minute % 60:02d}:00",
            4 * MIB,
            600.0 * k + 5,
            calls=4,
            duration_s=20.0,
        )
    run.describe(tmp_path)


def test_files_far_apart_are_no_dump_however_long_the_run(tmp_path: Path) -> None:
    run = Run(run_time_s=DAY_S)
    run.write("/s/dump_t006/fields.h5", MIB, 1.0, rank=0)
    run.write("/s/dump_t006/late.h5", MIB, 600.0, rank=0)
    run.describe(tmp_path)


def test_small_inputs_far_apart_are_dumps_of_their_own(tmp_path: Path) -> None:
    """Tables read at the start of a day-long run and three every ten minutes."""
    run = Run(run_time_s=DAY_S)
    run.write("/s/ck", 4000 * MIB, 50_000.0, rank=0)
    for name, at_s in zip("abcdef", (1.0, 1.5, 2.0, 601.0, 1201.0, 1801.0), strict=True):
        run.read(f"/s/{name}-table", MIB, at_s, rank=0)
    run.describe(tmp_path)


@pytest.mark.parametrize("trace", [False, True])
def test_a_regular_series_of_any_length_is_a_rule(trace: bool, tmp_path: Path) -> None:
    run = Run(run_time_s=DAY_S, nprocs=2)
    appended(run, 20_000, 4.0, size=8192, trace=trace, FSYNCS=20_000)
    run.describe(tmp_path)


def test_irregular_time_steps_beyond_the_limit_are_noted(tmp_path: Path) -> None:
    run = Run(run_time_s=DAY_S, nprocs=1)
    appended(run, 12_000, 6.0, size=8192, jitter=0.4)
    run.modules["DXT_POSIX"][0]["write_segments"] = [
        (at, length, start + 3000.0 * (k // 6000), end + 3000.0 * (k // 6000))
        for k, (at, length, start, end) in enumerate(run.modules["DXT_POSIX"][0]["write_segments"])
    ]
    workload = run.describe(tmp_path)
    said("its-time-steps-each", notes(workload))


@pytest.mark.parametrize("trace", [False, True])
def test_lines_of_a_text_are_put_together_with_a_note(trace: bool, tmp_path: Path) -> None:
    """With a trace at a steady pace, so that they are at their time."""
    run = Run(run_time_s=1000.0, nprocs=1)
    appended(run, 400, 2.4, size=64, trace=trace, FSYNCS=400, jitter=0.3)
    workload = run.describe(tmp_path)
    told = "its 400 time steps of 64 B each on average were put together in one dump"
    assert (told if not trace else "one dump, and not 400 time steps") in notes(workload)


@pytest.mark.parametrize("trace", [False, True])
def test_ranks_that_go_on_behind_the_others_begin_a_time_step(trace: bool, tmp_path: Path) -> None:
    """Two calls of each of four ranks in a time step, with no clear pauses between them."""
    run, step = Run(run_time_s=10.0, nprocs=4), 16 * 1024
    rng = np.random.default_rng(3)
    begins = np.cumsum(rng.uniform(0.004, 0.03, 60))
    file = run.write(
        "/s/all",
        60 * 8 * step,
        float(begins[0]),
        duration_s=float(begins[-1] - begins[0]),
        calls=480,
        CONSEC_WRITES=240,
        SEQ_WRITES=479,
        F_WRITE_TIME=0.01,
    )
    for rank in range(4 if trace else 0):
        at = np.sort(begins + rng.uniform(0, 0.003, (2, 60)), axis=0)
        run.add(
            "DXT_POSIX",
            {
                "id": file,
                "rank": rank,
                "write_segments": [
                    ((k * 8 + 2 * rank + c) * step, step, at[c, k], at[c, k] + 1e-4)
                    for k in range(60)
                    for c in range(2)
                ],
            },
        )
    workload = run.describe(tmp_path)
    said("guess-from-posix-writes", notes(workload))


def test_small_calls_at_equal_distances_are_one_steady_dump(tmp_path: Path) -> None:
    run = Run(run_time_s=100.0, nprocs=2)
    for rank in range(2):
        starts = 5.0 + 0.2 * np.arange(400)
        file = run.write(
            f"/s/out.{rank}",
            400 * 4096,
            5.0,
            rank=rank,
            duration_s=80.0,
            calls=400,
            F_WRITE_TIME=0.1,
        )
        segments = [(n * 4096, 4096, at_s, at_s + 1e-4) for n, at_s in enumerate(starts)]
        run.add("DXT_POSIX", {"id": file, "rank": rank, "write_segments": segments})
    workload = run.describe(tmp_path)
    said("one-dump-time-steps", notes(workload))


@pytest.mark.parametrize("syncs", [5, 12, 24])
def test_flushes_of_a_stream_of_stdio_are_in_its_dumps(syncs: int, tmp_path: Path) -> None:
    """A log that is given to fsync() now and then; as often as dumps, each of them ends so."""
    run = Run(run_time_s=100.0, nprocs=2)
    for k in range(12):
        name = f"/s/out.{k:03d}"
        run.write(name, MIB, 5.0 + 7 * k, rank=0, module="STDIO", calls=16)
        mine = (k + 1) * syncs // 12 - k * syncs // 12
        run.add(
            "POSIX",
            {
                "id": run.file(name),
                "rank": 0,
                "POSIX_OPENS": 1,
                "POSIX_FILENOS": 1,
                "POSIX_FSYNCS": mine,
            },
        )
    workload = run.describe(tmp_path)
    assert "flushes through POSIX" not in notes(workload)

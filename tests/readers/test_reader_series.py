"""Series, dumps and layouts by the numbers in file names, whatever their order and meaning."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.readers.synthetic import Run, access

MIB = 1 << 20
STEPS = (30, 60, 90, 120)  # numbers that skip


def per_process(run: Run, form: str, ranks: int, steps: tuple[int, ...], size: int) -> None:
    for k, step in enumerate(steps):
        for rank in range(ranks):
            run.write(form.format(step=step, rank=rank), size + rank, 20.0 * k + 2, rank=rank)


@pytest.mark.parametrize(
    "form",
    [
        "/s/ck.{step:04d}.{rank}",
        "/s/ck.{rank}.{step:04d}",
        "/s/r{rank:05d}/t{step}/ck",
        "/s/{step}/{rank}",
        "/s/2026-11-21/run7/ck-{step}-of-{rank}.v2.dat",
        "/a1/b2/c3/d4/e5/f6/g7/ck.{rank:03d}.{step:08d}",
        "/s/{rank}_{step}",
        "/s/{step:02d}{rank:02d}",
    ],
)
@pytest.mark.parametrize("ranks", [2, 5, 48])
def test_file_per_process(form: str, ranks: int, tmp_path: Path) -> None:
    run = Run(nprocs=ranks)
    per_process(run, form, ranks, STEPS, MIB)
    run.describe(tmp_path)


@pytest.mark.parametrize("pattern", ["at once", "skewed", "one after another"])
def test_file_per_process_whatever_the_ranks_do_in_time(pattern: str, tmp_path: Path) -> None:
    delay_s = {"at once": 0.0, "skewed": 0.05, "one after another": 0.2}[pattern]
    run = Run(nprocs=8)
    for k in range(3):
        for rank in range(8):
            run.write(f"/s/ck{k}.{rank}", MIB, 30.0 * k + 1 + delay_s * rank, rank=rank)
    run.describe(tmp_path)


@pytest.mark.parametrize("dumps", [1, 3])
@pytest.mark.parametrize("form", ["/s/part.{n:08d}", "/s/ck.{k}/part.{n:08d}"])
def test_numbers_that_count_files_on(form: str, dumps: int, tmp_path: Path) -> None:
    """Neither the rank nor the dump, but both at once."""
    run = Run(nprocs=16)
    for n in range(16 * dumps):
        k, rank = divmod(n, 16)
        run.write(form.format(n=n, k=k), MIB, 30.0 * k + 1 + 1e-3 * rank, rank=rank)
    run.describe(tmp_path)


@pytest.mark.parametrize(("ranks", "groups"), [(4, 2), (12, 3), (12, 6), (64, 4), (7, 3)])
def test_grouped(ranks: int, groups: int, tmp_path: Path) -> None:
    run = Run(nprocs=ranks)
    for k in range(3):
        for rank in range(ranks):
            run.write(f"/s/ck.{k}.g{rank * groups // ranks}", MIB, 20.0 * k + 2, rank=rank)
            run.modules["POSIX"][-1]["POSIX_MAX_BYTE_WRITTEN"] = ranks * MIB
    run.describe(tmp_path)


def test_grouped_by_one_writer_each(tmp_path: Path) -> None:
    """An aggregator writes for its group: the files are those of the groups."""
    run = Run(nprocs=16)
    for k in range(3):
        for group in range(4):
            run.write(f"/s/ck.{k}.g{group}", 4 * MIB, 20.0 * k + 2, rank=4 * group)
    run.describe(tmp_path)


def test_several_files_a_dump(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for k, step in enumerate(STEPS):
        for name, size in (("u", 8), ("p", 4), ("rho", 2)):
            run.write(f"/s/{step}/{name}.dat", size * MIB, 20.0 * k + 2, calls=4)
    run.describe(tmp_path)


def test_numbered_files_of_one_dump(tmp_path: Path) -> None:
    """alpha_1, alpha_2 of the same time are files of one dump."""
    run = Run(nprocs=4)
    for k, step in enumerate(STEPS):
        for n in (1, 2):
            run.write(f"/s/{step}/alpha_{n}", n * MIB, 20.0 * k + 2 + 0.01 * (k % 2), calls=4)
    run.describe(tmp_path)


def test_two_series_in_one_folder_with_different_steps(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for k in range(4):
        run.write(f"/s/ck.{30 * k:04d}", 64 * MIB, 20.0 * k + 2, calls=4)
    for k in range(9):
        run.write(f"/s/viz.{10 * k:04d}", MIB, 9.0 * k + 1, calls=4)
    run.describe(tmp_path)


@pytest.mark.parametrize("layout", ["shared", "file-per-process"])
def test_growing_sizes(layout: str, tmp_path: Path) -> None:
    run = Run(nprocs=4)
    for k, step in enumerate(STEPS):
        if layout == "shared":
            run.write(f"/s/ck.{step}", (k + 1) * 4 * MIB, 20.0 * k + 2, calls=4)
        else:
            per_process(run, "/s/ck.{step}.{rank}", 4, (step,), 0)
            for record in run.modules["POSIX"][-4:]:
                record.update(
                    access(record["id"], (k + 1) * MIB, 20.0 * k + 2, rank=record["rank"])
                )
    run.describe(tmp_path)


def test_dates_in_names(tmp_path: Path) -> None:
    """wrfout_d01_2026-11-21_06:00:00: several numbers rise at once."""
    run = Run(nprocs=4)
    for domain in ("d01", "d02"):
        for k in range(6):
            day, hour = divmod(6 * k + 6, 24)
            run.write(
                f"/s/wrfout_{domain}_2026-11-{21 + day}_{hour:02d}:00:00",
                (4 if domain == "d01" else 8) * MIB,
                15.0 * k + 2,
                calls=4,
            )
    run.describe(tmp_path)


def test_one_number_for_all_dumps_is_a_file_written_again(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.write("/s/time step.1", 4 * MIB, 5.0, calls=4)
    run.describe(tmp_path)


def test_a_restart_reads_what_was_written(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.read("/s/ck.0", 4 * MIB, 1.0, calls=4)
    for k in (1, 2, 3):
        run.write(f"/s/ck.{k}", 4 * MIB, 20.0 * k, calls=4)
    run.describe(tmp_path)


def test_a_small_input_is_an_input(tmp_path: Path) -> None:
    run = Run(nprocs=4)
    run.read("/s/case.in", 900, 1.0, rank=0)
    run.read("/s/module.pyc", 90 * MIB, 1.0, rank=0)
    run.write("/s/ck.1", MIB, 20.0, calls=4)
    run.describe(tmp_path)


@pytest.mark.parametrize(
    "spread",
    [
        lambda k, rank: 0.0,
        lambda k, rank: 1e-6 * rank,
        lambda k, rank: 0.3 * ((rank * 7 + k) % 5),
    ],
)
def test_ranks_start_a_dump_at_different_times(
    spread: Callable[[int, int], float], tmp_path: Path
) -> None:
    run = Run(nprocs=6)
    for k in range(3):
        for rank in range(6):
            at_s = 30.0 * k + 1 + spread(k, rank)
            run.write(f"/s/ck.{k}.{rank}", MIB, at_s, rank=rank, duration_s=2.0)
    run.describe(tmp_path)


def test_the_last_dump_is_cut_short(tmp_path: Path) -> None:
    """Only some ranks wrote the last one."""
    run = Run(nprocs=6)
    for k in range(3):
        for rank in range(6 if k < 2 else 4):
            run.write(f"/s/ck.{k}.{rank}", MIB, 30.0 * k + 1, rank=rank)
    run.describe(tmp_path)


def test_times_as_names_of_folders(tmp_path: Path) -> None:
    """As OpenFOAM has it; 0.25 is one number."""
    run = Run(nprocs=4)
    for k, time in enumerate(("0.25", "0.5", "0.75", "0.875")):
        for rank in range(4):
            run.write(f"/s/processor{rank}/{time}/U", MIB, 20.0 * k + 2, rank=rank)
    run.describe(tmp_path)


def test_numbers_are_told_apart_by_their_digits(tmp_path: Path) -> None:
    """2, 02 and 002 are three dumps, 1.1, 1.10 and 11.0 too."""
    run = Run(nprocs=4)
    for k, step in enumerate(("2", "02", "002", "11", "110", "0110")):
        run.write(f"/s/ck.{step}", MIB, 15.0 * k + 2, calls=4)
    for k, step in enumerate(("1.1", "1.10", "11.0", "0.02")):
        run.write(f"/s/{step}/u", MIB, 15.0 * k + 2, calls=4)
    run.describe(tmp_path)


def test_random_names_are_grouped_by_time(tmp_path: Path) -> None:
    """2,400 files called by letters alone: three dumps of 800 ranks."""
    run = Run(nprocs=800)
    for n in range(2400):
        name = "".join(chr(97 + (n * 7 // 26**place + n) % 26) for place in range(8))
        k, rank = divmod(n, 800)
        run.write(f"/s/{name}", MIB, 30.0 * k + 2, rank=rank)
    assert len(run.names) == 2400
    run.describe(tmp_path)


def test_a_digit_in_the_path_does_not_join_files(tmp_path: Path) -> None:
    run = Run()
    for name in ("mesh", "result"):
        run.write(f"/scratch01/run/{name}.dat", MIB, 1.0, rank=0)
    run.describe(tmp_path)


def test_files_of_one_numbered_folder_are_one_dump_if_close_in_time(tmp_path: Path) -> None:
    run = Run()
    for name, at_s in (("fields", 1.0), ("structure", 1.1), ("late", 50.0)):
        run.write(f"/s/dump_t006/{name}.h5", MIB, at_s, rank=0)
    run.describe(tmp_path)
    run.describe(tmp_path)


def test_memory_file_systems_under_dev_are_no_devices(tmp_path: Path) -> None:
    run = Run()
    run.write("/dev/shm/job/ck.1", MIB, 1.0, rank=0)
    run.write("/dev/null", MIB, 1.0, rank=0)
    run.describe(tmp_path)

"""Series, dumps, layouts and streams by the names, sizes and times of files."""

from tests.readers.cases import MIB, case
from tests.readers.synthetic import Run

STEPS = (30, 60, 90, 120)  # numbers that skip


def shared(
    run: Run, form: str, steps: int, period_s: float, size: int = MIB, at_s: float = 2
) -> Run:
    """A file of all ranks in each time step; `form` takes the number of the step."""
    for k in range(steps):
        run.write(form.format(k=k, step=30 * (k + 1)), size, period_s * k + at_s, calls=4)
    return run


@case(
    form=(
        "/s/ck.{step:04d}.{rank}",
        "/s/ck.{rank}.{step:04d}",
        "/s/r{rank:05d}/t{step}/ck",
        "/s/{step}/{rank}",
        "/s/2026-11-21/run7/ck-{step}-of-{rank}.v2.dat",
        "/a1/b2/c3/d4/e5/f6/g7/ck.{rank:03d}.{step:08d}",
        "/s/{rank}_{step}",
        "/s/{step:02d}{rank:02d}",
    ),
    ranks=(2, 5, 48),
)
def file_per_process(form: str, ranks: int) -> Run:
    run = Run(ranks)
    for k, step in enumerate(STEPS):
        for rank in range(ranks):
            run.write(form.format(step=step, rank=rank), MIB + rank, 20.0 * k + 2, rank=rank)
    return run


@case(delay_s=(0.0, 0.05, 0.2))
def file_per_process_whatever_the_ranks_do_in_time(delay_s: float) -> Run:
    """At once, skewed, one after another."""
    run = Run(8)
    for k in range(3):
        for rank in range(8):
            run.write(f"/s/ck{k}.{rank}", MIB, 30.0 * k + 1 + delay_s * rank, rank=rank)
    return run


@case(dumps=(1, 3), form=("/s/part.{n:08d}", "/s/ck.{k}/part.{n:08d}"))
def numbers_that_count_files_on(dumps: int, form: str) -> Run:
    """Neither the rank nor the dump, but both at once."""
    run = Run(16)
    for n in range(16 * dumps):
        k, rank = divmod(n, 16)
        run.write(form.format(n=n, k=k), MIB, 30.0 * k + 1 + 1e-3 * rank, rank=rank)
    return run


@case(row=((4, 2), (12, 3), (12, 6), (64, 4), (7, 3)))
def grouped(row: tuple[int, int]) -> Run:
    ranks, groups = row
    run = Run(ranks)
    for k in range(3):
        for rank in range(ranks):
            name, top = f"/s/ck.{k}.g{rank * groups // ranks}", {"MAX_BYTE_WRITTEN": ranks * MIB}
            run.write(name, MIB, 20.0 * k + 2, rank=rank, **top)
    return run


@case()
def grouped_by_one_writer_each() -> Run:
    """An aggregator writes for its group: the files are those of the groups."""
    run = Run(16)
    for k in range(3):
        for group in range(4):
            run.write(f"/s/ck.{k}.g{group}", 4 * MIB, 20.0 * k + 2, rank=4 * group)
    return run


@case()
def several_files_a_dump() -> Run:
    run = Run()
    for name, size in (("u", 8), ("p", 4), ("rho", 2)):
        shared(run, f"/s/{{step}}/{name}.dat", 4, 20.0, size * MIB)
    return run


@case()
def numbered_files_of_one_dump() -> Run:
    """alpha_1, alpha_2 of the same time are files of one dump."""
    run = Run()
    for k, step in enumerate(STEPS):
        for n in (1, 2):
            run.write(f"/s/{step}/alpha_{n}", n * MIB, 20.0 * k + 2 + 0.01 * (k % 2), calls=4)
    return run


@case()
def two_series_in_one_folder_with_different_steps() -> Run:
    run = shared(Run(), "/s/ck.{step:04d}", 4, 20.0, 64 * MIB)
    return shared(run, "/s/viz.{k:03d}0", 9, 9.0, at_s=1)


@case(layout=("shared", "file-per-process"))
def growing_sizes(layout: str) -> Run:
    run = Run()
    for k, step in enumerate(STEPS):
        if layout == "shared":
            run.write(f"/s/ck.{step}", (k + 1) * 4 * MIB, 20.0 * k + 2, calls=4)
        for rank in range(0 if layout == "shared" else 4):
            run.write(f"/s/ck.{step}.{rank}", (k + 1) * MIB, 20.0 * k + 2, rank=rank)
    return run


@case()
def dates_in_names() -> Run:
    """wrfout_d01_2026-11-21_06:00:00: several numbers rise at once."""
    run = Run()
    for domain, size in ((1, 4), (2, 8)):
        for k in range(6):
            day, hour = divmod(6 * k + 6, 24)
            name = f"/s/wrfout_d0{domain}_2026-11-{21 + day}_{hour:02d}:00:00"
            run.write(name, size * MIB, 15.0 * k + 2, calls=4)
    return run


@case()
def file_that_is_written_once() -> Run:
    return shared(Run(), "/s/time step.1", 1, 1.0, 4 * MIB)


@case()
def restart_reads_what_was_written() -> Run:
    run = Run()
    run.read("/s/ck.0", 4 * MIB, 1.0, calls=4)
    return shared(run, "/s/ck.{step}", 3, 20.0, 4 * MIB, at_s=20)


@case()
def small_input() -> Run:
    run = Run()
    run.read("/s/case.in", 900, 1.0, rank=0)
    run.read("/s/module.pyc", 90 * MIB, 1.0, rank=0)
    return shared(run, "/s/ck.1", 1, 1.0, at_s=20)


@case(spread=(0, 1, 2))
def ranks_start_a_dump_at_different_times(spread: int) -> Run:
    run = Run(6)
    for k in range(3):
        for rank in range(6):
            late_s = (0.0, 1e-6 * rank, 0.3 * ((rank * 7 + k) % 5))[spread]
            run.write(f"/s/ck.{k}.{rank}", MIB, 30.0 * k + 1 + late_s, rank=rank, duration_s=2.0)
    return run


@case()
def last_dump_is_cut_short() -> Run:
    """Only some ranks wrote the last one."""
    run = Run(6)
    for k in range(3):
        for rank in range(6 if k < 2 else 4):
            run.write(f"/s/ck.{k}.{rank}", MIB, 30.0 * k + 1, rank=rank)
    return run


@case()
def times_as_names_of_folders() -> Run:
    """As OpenFOAM has it; 0.25 is one number."""
    run = Run()
    for k, time in enumerate(("0.25", "0.5", "0.75", "0.875")):
        for rank in range(4):
            run.write(f"/s/processor{rank}/{time}/U", MIB, 20.0 * k + 2, rank=rank)
    return run


@case()
def numbers_are_told_apart_by_their_digits() -> Run:
    """2, 02 and 002 are three dumps, 1.1, 1.10 and 11.0 too."""
    run = Run()
    for k, step in enumerate(("2", "02", "002", "11", "110", "0110")):
        run.write(f"/s/ck.{step}", MIB, 15.0 * k + 2, calls=4)
    for k, step in enumerate(("1.1", "1.10", "11.0", "0.02")):
        run.write(f"/s/{step}/u", MIB, 15.0 * k + 2, calls=4)
    return run


@case()
def random_names_are_grouped_by_time() -> Run:
    """2,400 files called by letters alone: three dumps of 800 ranks."""
    run = Run(800)
    for n in range(2400):
        name = "".join(chr(97 + (n * 7 // 26**place + n) % 26) for place in range(8))
        run.write(f"/s/{name}", MIB, 30.0 * (n // 800) + 2, rank=n % 800)
    assert len(run.names) == 2400
    return run


@case()
def digit_in_the_path_does_not_join_files() -> Run:
    run = Run()
    for name in ("mesh", "result"):
        run.write(f"/scratch01/run/{name}.dat", MIB, 1.0, rank=0)
    return run


@case()
def files_of_one_numbered_folder_are_one_dump_if_close_in_time() -> Run:
    run = Run()
    for name, at_s in (("fields", 1.0), ("structure", 1.1), ("late", 50.0)):
        run.write(f"/s/dump_t006/{name}.h5", MIB, at_s, rank=0)
    return run


# Two kinds are two streams, one dump is one, and many names are few.


@case(form=("/s/case.cam.h{kind}.{k:04d}.nc", "/s/{k:04d}/h{kind}.nc"))
def history_files_of_two_kinds_that_alternate(form: str) -> Run:
    """h0 with fields, h1 with means of half the period later."""
    run = Run()
    for k in range(4):
        run.write(form.format(kind=0, k=k), 64 * MIB + k * MIB, 20.0 * k + 2, calls=4)
        run.write(form.format(kind=1, k=k), 8 * MIB + k * MIB, 20.0 * k + 12, calls=4)
    return run


@case()
def two_kinds_that_are_numbered_in_common() -> Run:
    """out.0.000, out.1.001, out.0.002, ...: a large one and a small one in turn."""
    run = Run()
    for k in range(8):
        run.write(f"/s/out.{k % 2}.{k:03d}", (64, 4)[k % 2] * MIB, 10.0 * k + 2, calls=4)
    return run


@case()
def equal_files_in_turn_are_one_series() -> Run:
    """Hours of a date: the sizes tell no kinds."""
    run = Run()
    for k in range(8):
        run.write(f"/s/out.{k // 4}_{k % 4 * 6:02d}", (8 + k) * MIB, 10.0 * k + 2, calls=4)
    return run


@case(layout=("shared", "file-per-process"))
def names_that_differ_by_a_word_are_one_dump(layout: str) -> Run:
    run = Run()
    for k in range(3):
        for n, word in enumerate(("velocity", "pressure", "energy")):
            name, at_s = f"/s/{word}_{10 * k:04d}", 20.0 * k + 2 + 0.2 * n
            if layout == "shared":
                run.write(f"{name}.dat", (n + 1) * 4 * MIB, at_s, calls=4)
            for rank in range(0 if layout == "shared" else 4):
                run.write(f"{name}.{rank}", (n + 1) * MIB, at_s, rank=rank)
    return run


@case()
def words_far_apart_in_time_are_two_series() -> Run:
    run = shared(Run(), "/s/history_{k}.dat", 3, 30.0)
    return shared(run, "/s/restart_{k}.dat", 3, 30.0, 2 * MIB, at_s=14)


@case(stations=(160, 482))
def many_stations_are_few_streams(stations: int) -> Run:
    """Three seismograms of each station, by the rank that has it; of more than a thousand names
    without numbers none is taken for a word."""
    run = Run(8)
    for n in range(stations):
        name = "".join(chr(65 + n // 26**place % 26) for place in range(3))
        for component in "ENZ":
            size, at_s = 40_000 + 16 * (n % 9), 90.0 + 1e-3 * n
            run.write(f"/s/OUT/{name}.BX{component}.semd", size, at_s, rank=n % 8)
    run.write("/s/OUT/mesh.bin", 64 * MIB, 5.0, calls=8)
    return run


@case()
def few_files_of_different_names_stay_apart() -> Run:
    run = Run()
    for n, name in enumerate(("mesh", "energies", "spectrum")):
        run.write(f"/s/{name}", MIB, 10.0 * n + 2, rank=0)
    return run


# Many small files.


def small_files(run: Run, count: int, form: str, **more: int) -> Run:
    for n in range(count):
        name, rank = form.format(n=n, folder=n % 30), n % 2
        run.read(name, 4096, 1 + 0.01 * n, rank=rank, duration_s=0.001, **more)
    return run


@case()
def directories_opens_and_stats() -> Run:
    return small_files(Run(2), 3000, "/d/class_{folder:03d}/img_{n:06d}", OPENS=2, STATS=1)


@case()
def index_beside_small_files_is_a_stream_of_its_own() -> Run:
    """Some files are read more often than the others; one file is written."""
    run = small_files(Run(2), 2500, "/d/img_{n:06d}")
    for record in run.modules["POSIX"][:20]:
        twice = {"BYTES_READ": 8192, "READS": 2, "OPENS": 2, "ACCESS1_COUNT": 2}
        record |= {f"POSIX_{name}": value for name, value in twice.items()}
    run.write("/d/log", 1 << 20, 90.0, rank=0)
    return run


@case()
def file_of_each_rank_in_each_dump_is_no_flood() -> Run:
    run = Run(16, 1000.0)
    for step in range(90):
        for rank in range(16):
            run.write(f"/s/ck.{step}.{rank}", 1 << 20, 10.0 * step + 1, rank=rank)
    return run

"""What streams are for: the signs in a log, and how sure they are."""

from tests.readers.cases import case
from tests.readers.synthetic import Run

MB = 1_000_000


def files(
    run: Run, form: str, count: int, period_s: float, at_s: float, size: int, rank: int = -1
) -> Run:
    for k in range(count):
        name = form.format(k=k)
        run.write(name, size, period_s * k + at_s, rank=rank, calls=4, duration_s=1.0)
    return run


@case()
def smaller_files_written_more_often_are_history() -> Run:
    """As WRF: a history file each hour by rank 0, the whole state by all ranks every three."""
    run = files(Run(4, 1000), "/s/wrfout.{k:02d}", 9, 100.0, 10, 20 * MB, rank=0)
    return files(run, "/s/wrfrst.{k:02d}", 3, 300.0, 50, 90 * MB)


@case()
def one_kind_of_file_of_one_rank_is_a_guess() -> Run:
    return files(Run(4, 1000), "/s/data.{k}", 5, 100.0, 10, 20 * MB, rank=0)


@case()
def files_that_are_read_at_the_start_are_checkpoints_where_written() -> Run:
    run = Run(4, 1000)
    run.read("/s/state.0", 50 * MB, 1.0, calls=4)
    return files(run, "/s/state.1", 1, 0.0, 900, 50 * MB)  # a single one


@case(at_s=(1.0, 500.0))
def read_at_the_start_or_in_the_course_of_the_run(at_s: float) -> Run:
    """A restart, or input."""
    run = Run(4, 1000)
    run.read("/s/begin.dat", 60 * MB, at_s, calls=4)
    return files(run, "/s/ckpt.{k}", 4, 200.0, 100, 50 * MB)

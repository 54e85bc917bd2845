"""Several logs of a job as one workload: the whole is what a log of all ranks would give."""

import hashlib
from collections.abc import Callable
from typing import Any

from tests.readers.cases import FLAGS, MIB, case
from tests.readers.synthetic import Run
from understudy.darshanlog.writer import START_S


class Part(Run):
    """A run whose record ids are those of the names, as Darshan's, and equal in all logs."""

    def __init__(self, nprocs: int = 1, late_s: float = 0.0, **options: Any) -> None:
        super().__init__(nprocs, **({"start_s": START_S + late_s} | options))

    def file(self, name: str) -> int:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        self.names[number] = name.encode()
        return number


def processes(count: int, **options: Any) -> list[Run]:
    """Runs of one process each, with a microsecond from start to start."""
    return [Part(late_s=1e-6 * n, **options) for n in range(count)]


@case()
def processes_with_a_file_each_are_one_stream() -> list[Run]:
    runs = processes(8)
    for n, run in enumerate(runs):
        for k in range(3):
            run.write(f"/s/ck.{k}.{n:03d}", (n + 1) * MIB, 20.0 * k + 2, rank=0, calls=n + 1)
    return runs


@case()
def one_file_of_all_processes_is_shared() -> list[Run]:
    runs = processes(4)
    for n, run in enumerate(runs):
        run.write("/s/all.bin", MIB, 2.0, rank=0, MAX_BYTE_WRITTEN=(n + 1) * MIB - 1)
    return runs


@case()
def steps_after_each_other_use_the_same_ranks() -> list[Run]:
    """Three runs of four ranks write files of the same names, on one clock."""
    runs: list[Run] = [Part(4, 200.0 * k) for k in range(3)]
    for run in runs:
        run.write("/s/restart.h5", 8 * MIB, 50.0, calls=8)
        run.read("/s/mesh.bin", 4 * MIB, 1.0, calls=4)
    return runs


@case()
def tasks_share_the_ranks_that_are_free() -> list[Run]:
    """Twelve tasks of one process, three at a time, as GNU parallel starts them."""
    runs: list[Run] = [Part(1, 30.0 * (n // 3) + n % 3, run_time_s=25.0) for n in range(12)]
    for n, run in enumerate(runs):
        run.write(f"/s/out.{n:04d}", MIB, 20.0, rank=0)
    return runs


@case()
def shared_record_of_some_ranks_is_dealt_to_them() -> list[Run]:
    """Two programs of four ranks at the same time; a file of each."""
    runs: list[Run] = [Part(4, n, exe=f"/bin/app{n}") for n in range(2)]
    for n, run in enumerate(runs):
        run.write(f"/s/{'ab'[n]}.bin", 8 * MIB, 50.0 + 20 * n, calls=8)
    return runs


@case()
def small_files_of_processes_are_joined() -> list[Run]:
    runs = processes(4)
    for k in range(1200):
        runs[k % 4].read(f"/s/set/in_{k:05d}.bin", 24_000, 1 + 0.01 * k, rank=0)
    return runs


@case()
def queue_between_joined_jobs_is_left_out() -> list[Run]:
    more = {"reading": {"join_jobs": True}}
    runs: list[Run] = [Part(4, 5000.0 * k, jobid=70 + k, **more) for k in range(2)]
    for k, run in enumerate(runs):
        run.write(f"/s/ck.{k}", 8 * MIB, 50.0, calls=8)
    return runs


@case()
def killed_run_ends_with_its_records() -> list[Run]:
    runs: list[Run] = [Part(2, run_time_s=None), Part(2, 60)]
    for k, run in enumerate(runs):
        run.write(f"/s/ck.{k}", 2 * MIB, 50.0, calls=2)
    return runs


@case()
def impossible_times_and_ranks_are_left_out_as_of_one_log() -> list[Run]:
    runs = processes(2)
    runs[0].write("/s/out.0", MIB, 2.0, rank=0)
    runs[1].write("/s/out.1", MIB, 2.0, rank=1)  # has no rank 1
    runs[1].write("/s/out.2", MIB, 500.0, rank=0)  # ended at 100 s
    return runs


@case()
def hundreds_of_processes() -> list[Run]:
    runs = processes(300)
    for n, run in enumerate(runs):
        run.write(f"/s/out.{n:04d}", MIB, 2.0, rank=0)
    return runs


# Small files of runs that follow each other.


def readers(runs: int, files: Callable[[int], int]) -> list[Run]:
    """Runs of 50 s, 100 s apart, one rank each, that each read the same small files twice."""
    parts: list[Run] = [Part(1, 100.0 * k, run_time_s=50.0) for k in range(runs)]
    for k, run in enumerate(parts):
        for n in range(files(k)):
            more = {"BYTES_READ": 48_000, "OPENS": 2, "F_READ_END_TIMESTAMP": 20 + 0.01 * n}
            run.read(f"/s/set/in_{n:05d}.bin", 24_000, 1 + 0.01 * n, rank=0, calls=2, **more)
    return parts


@case()
def small_files_of_runs_after_each_other_are_played_in_each() -> list[Run]:
    return readers(8, lambda k: 50)


@case()
def runs_that_read_other_files_have_streams_of_their_own() -> list[Run]:
    return readers(4, lambda k: 100 - k // 2)


@case()
def small_files_of_runs_that_overlap_are_a_guess() -> list[Run]:
    """No time is without a run: one rank has runs one after another while another lasts."""
    runs = [Part(run_time_s=900.0), *readers(8, lambda k: 50)]
    runs[0].write("/s/out", MIB, 2.0, rank=0)
    runs[1].options["start_s"] += 1
    return runs


@case(other=FLAGS)
def processes_that_are_begun_anew_in_each_epoch(other: bool) -> list[Run]:
    """A program that lasts, and two workers anew in each epoch that read each file once, but for
    `other`: in the last one, a file of another name."""
    runs: list[Run] = [Part(run_time_s=300.0)]
    runs[0].write("/s/out", MIB, 2.0, rank=0)
    for epoch in range(3):
        for half in range(2):
            run = Part(1, 100 * epoch + 1e-6 * half, run_time_s=50.0)
            for n in range(1200):
                if (n * 7 + epoch * n // 3 + epoch) % 2 == half:
                    number = n + 1000 * (other and epoch == 2 and n == 5)
                    name = f"/s/set/{n % 4}/in_{number:05d}.bin"
                    run.read(name, 24_000, 1 + 0.01 * n, rank=0)
            runs.append(run)
    return runs

"""Several logs of a job as one workload: the whole is what a log of all ranks would give."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.readers.synthetic import Run, only, rank_bytes, sizes
from tests.support.logs import recompress
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts.workload import Workload, load, provenance_of
from understudy.darshanlog import open_joined, open_log
from understudy.darshanlog.writer import START_S
from understudy.errors import UnderstudyError
from understudy.readers import darshan

MIB = 1 << 20


class Part(Run):
    """A run whose record ids are those of the names, as Darshan's, and equal in all logs."""

    def file(self, name: str) -> int:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        self.names[number] = name.encode()
        return number


def joined(runs: Iterable[Run], folder: Path, **options: Any) -> Workload:
    """The workload of the logs of these runs."""
    paths = []
    for n, run in enumerate(runs):
        (folder / f"{n}").mkdir()
        paths.append(run.log(folder / f"{n}" / "run.darshan"))
    return darshan.read(paths[0], others=paths[1:], **options)


def processes(count: int, **options: Any) -> list[Run]:
    """Runs of one process each, with a microsecond from start to start."""
    return [Part(nprocs=1, start_s=START_S + 1e-6 * n, **options) for n in range(count)]


def test_processes_with_a_file_each_are_one_stream(tmp_path: Path) -> None:
    runs = processes(8)
    for n, run in enumerate(runs):
        for k in range(3):
            run.write(f"/s/ck.{k}.{n:03d}", (n + 1) * MIB, 20.0 * k + 2, rank=0, calls=n + 1)
    workload = joined(runs, tmp_path)
    stream = only(workload)
    assert (workload.ranks, stream.layout, stream.role) == (8, "file-per-process", "checkpoint")
    assert sizes(stream) == [36 * MIB] * 3
    assert rank_bytes(stream, 0, 8) == [(n + 1) * MIB for n in range(8)]


@pytest.mark.parametrize("trace", ["", "DXT", "HEATMAP"])
def test_processes_are_what_one_log_of_all_would_be(trace: str, tmp_path: Path) -> None:
    """A file that stays open, files of all and of each; the trace and the heatmap are shifted."""

    def fill(run: Run, rank: int, own: int, late_s: float) -> None:
        for k in range(3):
            run.write(f"/s/ck.{k}.{rank}", MIB, 20.0 * k + 2 - late_s, rank=own)
        file = run.write(
            "/s/log.bin", 4 * MIB, 5 - late_s, rank=own, calls=4, duration_s=61.0, F_WRITE_TIME=0.4
        )
        times = [5 + 20 * k - late_s for k in range(4)]
        if trace == "DXT":
            calls = [(k << 20, 1 << 20, at_s, at_s + 0.1) for k, at_s in enumerate(times)]
            run.add("DXT_POSIX", {"id": file, "rank": own, "write_segments": calls})
        elif trace == "HEATMAP":
            run.names[90] = b"heatmap:POSIX"
            bins = [0] * 100
            for at_s in [*times, *(20.0 * k + 2 - late_s for k in range(3))]:
                bins[int(at_s)] += MIB
            run.add(
                "HEATMAP",
                {
                    "id": 90,
                    "rank": own,
                    "bin_width_s": 1.0,
                    "write_bins": bins,
                    "read_bins": [0] * 100,
                },
            )
        run.read("/s/in.bin", MIB, 1.0 - late_s, rank=own)

    whole = Part(nprocs=4)
    parts = [Part(nprocs=1, start_s=START_S + 0.25 * n) for n in range(4)]
    for n, part in enumerate(parts):
        fill(whole, n, n, 0.0)
        fill(part, n, 0, 0.25 * n)
    expected = whole.describe(tmp_path)
    found = joined(parts, tmp_path)
    assert found.ranks == 4
    close = [
        replace(s, steps=tuple(replace(d, time_s=round(d.time_s, 6)) for d in s.steps))
        for s in found.streams
    ]
    if trace == "HEATMAP":  # its bins are those of the shifted clocks
        shared = [(s.layout, s.operation) == ("shared", "write") for s in close]
        open_ = close[shared.index(True)]
        assert [(d.time_s, d.bytes) for d in open_.steps] == [
            (pytest.approx(5 + 20 * k, abs=1), 4 * MIB) for k in range(4)
        ]
        pairs = zip(close, expected.streams, shared, strict=True)
        close = [replace(s, steps=e.steps) if is_open else s for s, e, is_open in pairs]
    assert close == list(expected.streams)


@pytest.mark.parametrize("gap_s", [0.0, 100.0])
def test_the_trace_of_a_file_is_in_the_logs_that_have_it(gap_s: float, tmp_path: Path) -> None:
    """Runs that follow each other have files of their own, though of one name."""
    paths = []
    for n in range(6):
        run = Part(nprocs=1, start_s=START_S + 1e-6 * n + gap_s * n, run_time_s=50.0)
        for name in ("/s/all", f"/s/{n % 3}"):
            file = run.write(name, MIB, 5.0, rank=0)
            calls = [(0, MIB, 5.0 + n, 5.1 + n)]
            run.add("DXT_POSIX", {"id": file, "rank": 0, "write_segments": calls})
        paths.append(run.log(tmp_path / f"{n}.darshan"))
    with open_joined(paths) as log:
        every = list(log.dxt("DXT_POSIX"))
        files = {record.id for record in every}
        assert (len(every), len(files)) == (12, 12 if gap_s else 4)
        for file in files:
            of_file = [(r.rank, r.write_segments.tolist()) for r in every if r.id == file]
            found = [(r.rank, r.write_segments.tolist()) for r in log.dxt("DXT_POSIX", file)]
            assert found == of_file
        assert list(log.dxt("DXT_POSIX", 1)) == []
    with open_log(paths[0]) as log:
        (one,) = log.dxt("DXT_POSIX", next(iter(log.dxt("DXT_POSIX"))).id)
        assert len(one.write_segments) == 1


def test_one_file_of_all_processes_is_shared(tmp_path: Path) -> None:
    runs = processes(4)
    for n, run in enumerate(runs):
        run.write("/s/all.bin", MIB, 2.0, rank=0, MAX_BYTE_WRITTEN=(n + 1) * MIB - 1)
    stream = only(joined(runs, tmp_path))
    assert (stream.layout, sizes(stream), rank_bytes(stream, 0, 4)) == (
        "shared",
        [4 * MIB],
        [MIB] * 4,
    )


def test_steps_after_each_other_use_the_same_ranks(tmp_path: Path) -> None:
    """Three runs of four ranks write files of the same names, on one clock."""
    runs = [Part(nprocs=4, start_s=START_S + 200.0 * k) for k in range(3)]
    for run in runs:
        run.write("/s/restart.h5", 8 * MIB, 50.0, calls=8)
        run.read("/s/mesh.bin", 4 * MIB, 1.0, calls=4)
    workload = joined(runs, tmp_path)
    write, read = sorted(workload.streams, key=lambda s: s.operation == "read")
    assert (workload.ranks, workload.runtime_s) == (4, 500.0)
    assert [d.time_s for d in write.steps] == [50.0, 250.0, 450.0]
    assert sizes(write) == [8 * MIB] * 3 and sizes(read) == [4 * MIB] * 3
    assert any("up to 3 one after another on a rank" in note for note in workload.source.notes)
    assert any("files of their own in each run" in note for note in workload.source.notes)


def test_tasks_share_the_ranks_that_are_free(tmp_path: Path) -> None:
    """Twelve tasks of one process, three at a time, as GNU parallel starts them."""
    runs = []
    for n in range(12):
        slot, turn = n % 3, n // 3
        start_s = START_S + 30.0 * turn + slot
        run = Part(nprocs=1, start_s=start_s, run_time_s=25.0)
        run.write(f"/s/out.{n:04d}", MIB, 20.0, rank=0)
        runs.append(run)
    workload = joined(runs, tmp_path)
    assert workload.ranks == 3
    assert sum(s.bytes for s in workload.streams) == 12 * MIB
    stream = only(workload)
    assert (len(stream.steps), set(sizes(stream))) == (12, {MIB})
    assert [rank_bytes(stream, k, 3).index(MIB) for k in range(12)] == [0, 1, 2] * 4


def test_a_shared_record_of_some_ranks_is_dealt_to_them(tmp_path: Path) -> None:
    """Two programs of four ranks at the same time; a file of each."""
    runs = [Part(nprocs=4, start_s=START_S + n, exe=f"/bin/app{n}") for n in range(2)]
    for n, run in enumerate(runs):
        run.write(f"/s/{'ab'[n]}.bin", 8 * MIB, 50.0 + 20 * n, calls=8)
    workload = joined(runs, tmp_path)
    assert workload.ranks == 8
    shares = [
        rank_bytes(s, 0, 8) for s in sorted(workload.streams, key=lambda s: s.steps[0].time_s)
    ]
    assert shares == [[2 * MIB] * 4 + [0] * 4, [0] * 4 + [2 * MIB] * 4]
    assert any("2 logs have fewer ranks than the whole" in n for n in workload.source.notes)


def test_dealt_counters_add_up(tmp_path: Path) -> None:
    runs = [Part(nprocs=3, start_s=START_S + n) for n in range(2)]
    for run in runs:
        run.write("/s/all.bin", 7 * MIB + 1, 50.0, calls=7, STATS=5, FSYNCS=1)
    paths = [run.log(tmp_path / f"{n}.darshan") for n, run in enumerate(runs)]
    with open_joined(paths) as log, open_log(paths[0]) as one:
        rows = [row for block in log.records("POSIX") for row in block]
        (single,) = [row for block in one.records("POSIX") for row in block]
        assert [row["rank"] for row in rows] == list(range(6))
        for name in ("BYTES_WRITTEN", "WRITES", "OPENS", "STATS", "FSYNCS", "ACCESS1_COUNT"):
            total = sum(int(row[f"POSIX_{name}"]) for row in rows)
            assert total == 2 * int(single[f"POSIX_{name}"]) > 0


def test_floods_of_processes_are_joined(tmp_path: Path) -> None:
    runs = processes(4)
    for k in range(1200):
        runs[k % 4].read(f"/s/set/in_{k:05d}.bin", 24_000, 1 + 0.01 * k, rank=0)
    stream = only(joined(runs, tmp_path))
    assert (stream.layout, stream.bytes) == ("flood", 1200 * 24_000)


def test_jobs_are_joined_only_where_it_is_asked_for(tmp_path: Path) -> None:
    """Runs of a campaign; the queue between them is left out."""

    def runs() -> list[Run]:
        made = [Part(nprocs=4, start_s=START_S + 5000.0 * k, jobid=70 + k) for k in range(2)]
        for k, run in enumerate(made):
            run.write(f"/s/ck.{k}", 8 * MIB, 50.0, calls=8)
        return made

    (tmp_path / "a").mkdir()
    with raises(UnderstudyError, "job-but-job-join"):
        joined(runs(), tmp_path / "a")
    (tmp_path / "b").mkdir()
    workload = joined(runs(), tmp_path / "b", join_jobs=True)
    assert [d.time_s for d in only(workload).steps] == [50.0, 150.0]
    assert "4900 s between 2 jobs are left out." in workload.source.notes


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"jobid": 7, "exe": "/bin/other"}, "a log of the program 'other', but .* of 'app'"),
        ({"uid": 7}, "a log of another user than"),
        ({"nprocs": 0}, "has 0 processes, expected 1 to"),
        ({"nprocs": 1 << 40}, "has 1099511627776 processes, expected 1 to"),
    ],
)
def test_what_does_not_fit_is_refused(other: dict[str, Any], message: str, tmp_path: Path) -> None:
    runs = [Part(nprocs=1), Part(start_s=START_S + 1, **({"nprocs": 1} | other))]
    for run in runs:
        run.write("/s/out", MIB, 2.0, rank=0)
    with pytest.raises(UnderstudyError, match=message):
        joined(runs, tmp_path, join_jobs=True)


def test_a_job_id_that_is_used_again_is_asked_about(tmp_path: Path) -> None:
    """The programs of a batch job follow each other within a day; 300 days later it is another."""
    runs = []
    for k, days in enumerate((0.0, 0.5, 300.0)):
        run = Part(nprocs=1, start_s=START_S + 86400 * days)
        run.write(f"/s/out.{k}", MIB, 2.0, rank=0)
        runs.append(run)
    (tmp_path / "near").mkdir()
    near = joined(runs[:2], tmp_path / "near")
    assert near.bytes == 2 * MIB and said("joined-from-logs-one", near.source.notes[0])
    message = (
        r"2/run.darshan: starts 299\.5 days after .*1/run.darshan ended, with the same job ID"
    )
    with pytest.raises(UnderstudyError, match=message):
        joined(runs, tmp_path)
    again = darshan.read(
        tmp_path / "0/run.darshan",
        others=[tmp_path / "1/run.darshan", tmp_path / "2/run.darshan"],
        join_jobs=True,
    )
    said("joined-from-logs-jobs", again.source.notes[0])
    assert any("s between 2 jobs are left out." in note for note in again.source.notes)
    assert again.streams[-1].last_s < 86400


def test_a_log_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    """Also under another name and compression; another process of the same times is none."""
    run, other = Part(nprocs=1), Part(nprocs=1)
    run.write("/s/out.0", MIB, 2.0, rank=0)
    other.write("/s/out.1", MIB, 2.0, rank=0)
    first, second = run.log(tmp_path / "a.darshan"), other.log(tmp_path / "b.darshan")
    again = recompress(first, tmp_path / "c.darshan", "bzip2")
    assert darshan.read(first, others=[second]).ranks == 2
    for twin in (first, again):
        with raises(UnderstudyError, "same-log-give-once"):
            darshan.read(first, others=[second, twin])


def test_a_killed_run_ends_with_its_records(tmp_path: Path) -> None:
    killed, after = Part(nprocs=2, run_time_s=None), Part(nprocs=2, start_s=START_S + 60)
    killed.write("/s/ck.0", 2 * MIB, 50.0, calls=2)
    after.write("/s/ck.1", 2 * MIB, 50.0, calls=2)
    workload = joined([killed, after], tmp_path)
    assert workload.ranks == 2
    assert any("1 log has no end time" in note for note in workload.source.notes)


def test_impossible_times_and_ranks_are_left_out_as_of_one_log(tmp_path: Path) -> None:
    runs = processes(2)
    runs[0].write("/s/out.0", MIB, 2.0, rank=0)
    runs[1].write("/s/out.1", MIB, 2.0, rank=1)  # has no rank 1
    runs[1].write("/s/out.2", MIB, 500.0, rank=0)  # ended at 100 s
    workload = joined(runs, tmp_path)
    assert sum(s.bytes for s in workload.streams) == 2 * MIB
    notes = " ".join(workload.source.notes)
    assert "POSIX: 1 record left out, whose rank" in notes
    assert "POSIX: 1 record with times that" in notes


def test_the_command_takes_directories(tmp_path: Path) -> None:
    for job in (70, 71):
        for n in range(2):
            run = Part(nprocs=1, jobid=job, start_s=START_S + 1000 * job + n)
            run.write(f"/s/out.{n}", MIB, 2.0, rank=0)
            (tmp_path / "logs" / f"{job}").mkdir(parents=True, exist_ok=True)
            run.log(tmp_path / "logs" / f"{job}" / f"{n}.darshan")
    out, logs = tmp_path / "app.json", str(tmp_path / "logs")
    done = CliRunner().invoke(main, ["describe", logs, "-o", str(out)])
    assert done.exit_code == 2 and "`understudy rank`" in done.stderr
    done = CliRunner().invoke(main, ["describe", logs, "--job", "71", "-o", str(out)])
    assert (done.exit_code, load(out).ranks) == (0, 2)
    done = CliRunner().invoke(main, ["describe", logs, "--job", "72"])
    assert (done.exit_code, done.stderr) == (
        2,
        "understudy: --job 72: none of 4 logs is of this job\n",
    )
    (tmp_path / "none").mkdir()
    done = CliRunner().invoke(main, ["describe", str(tmp_path / "none")])
    assert done.exit_code == 2 and said("expected-least-one-file", done.stderr)


def test_hundreds_of_processes(tmp_path: Path) -> None:
    runs = processes(300)
    for n, run in enumerate(runs):
        run.write(f"/s/out.{n:04d}", MIB, 2.0, rank=0)
    workload = joined(runs, tmp_path)
    assert (workload.ranks, only(workload).layout) == (300, "file-per-process")
    assert only(workload).bytes == 300 * MIB


def readers(runs: int, gap_s: float, files: Callable[[int], int]) -> Iterator[Run]:
    """Runs of 50 s, one rank each, that each read the same small files twice."""
    for k in range(runs):
        run = Part(nprocs=1, start_s=START_S + gap_s * k, run_time_s=50.0)
        for n in range(files(k)):
            run.read(
                f"/s/set/in_{n:05d}.bin",
                24_000,
                1 + 0.01 * n,
                rank=0,
                BYTES_READ=48_000,
                calls=2,
                OPENS=2,
                F_READ_END_TIMESTAMP=20 + 0.01 * n,
            )
        yield run


def test_floods_of_runs_after_each_other_are_played_in_each(tmp_path: Path) -> None:
    workload = joined(readers(8, 100.0, lambda k: 50), tmp_path)
    stream = only(workload)
    assert (stream.layout, stream.files, stream.bytes) == ("flood", "update", 800 * 24_000)
    times = [d.time_s for d in stream.expanded()]
    assert times == pytest.approx([100 * k + at for k in range(8) for at in (1, 20)], abs=0.1)
    assert any("was read 2 times by one run or by runs" in note for note in workload.source.notes)


def loaders(epochs: int, files: int, other: bool = False) -> Iterator[Run]:
    """A program that lasts, and two processes anew in each epoch that read each file once, but
    for `other`: in the last one, a file of another name."""
    yield Part(nprocs=1, run_time_s=100.0 * epochs)
    for epoch in range(epochs):
        for half in range(2):
            run = Part(nprocs=1, start_s=START_S + 100 * epoch + 1e-6 * half, run_time_s=50.0)
            for n in range(files):
                if (n * 7 + epoch * n // 3 + epoch) % 2 == half:
                    number = n + 1000 * (other and epoch == epochs - 1 and n == 5)
                    name = f"/s/set/{n % 4}/in_{number:05d}.bin"
                    run.read(name, 24_000, 1 + 0.01 * n, rank=0)
            yield run


def test_files_that_processes_of_each_epoch_read_are_the_same(tmp_path: Path) -> None:
    """As those of a loader whose workers are begun anew."""
    runs = list(loaders(3, 1200))
    runs[0].write("/s/out", MIB, 2.0, rank=0)
    stream = next(s for s in joined(runs, tmp_path).streams if s.layout == "flood")
    assert (stream.files, stream.dump_count, stream.bytes) == ("update", 3, 3 * 1200 * 24_000)
    assert stream.set.files_per_directory == 300


def test_files_of_which_one_is_another_are_not_the_same(tmp_path: Path) -> None:
    runs = list(loaders(3, 1200, other=True))
    runs[0].write("/s/out", MIB, 2.0, rank=0)
    stream = next(s for s in joined(runs, tmp_path).streams if s.layout == "flood")
    assert (stream.files, stream.dump_count) == ("new", 3)


def test_runs_that_read_other_files_have_streams_of_their_own(tmp_path: Path) -> None:
    workload = joined(readers(4, 100.0, lambda k: 100 - k // 2), tmp_path)
    assert [s.name for s in workload.streams] == ["input-0", "input-1"]
    assert [[d.time_s for d in s.steps] for s in workload.streams] == [[1, 101], [201, 301]]
    assert sum(s.bytes for s in workload.streams) == 398 * 48_000


def test_floods_of_runs_that_overlap_are_a_guess(tmp_path: Path) -> None:
    """No time is without a run: one rank has runs one after another while another lasts."""
    runs = [Part(nprocs=1, run_time_s=900.0), *readers(8, 100.0, lambda k: 50)]
    runs[0].write("/s/out", MIB, 2.0, rank=0)
    runs[1].options["start_s"] += 1
    workload = joined(runs, tmp_path)
    number = next(n for n, s in enumerate(workload.streams) if s.layout == "flood")
    entry = provenance_of(workload, f"/streams/{number}/dumps/0/time_s")
    assert entry is not None and entry.confidence == "guess"
    name = workload.streams[number].name
    assert any(
        note.startswith(f"{name}: 19,200,000 B were read by runs that follow each other")
        for note in workload.source.notes
    )

"""Several logs of a job as one workload; `cases/joined.py` has what comes out."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.readers.cases.joined import Part
from tests.readers.synthetic import Run
from tests.support.logs import recompress
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts.workload import Workload, load
from understudy.darshanlog import open_joined, open_log
from understudy.errors import UnderstudyError
from understudy.readers import darshan

MIB = 1 << 20
DAY_S = 86400.0


def logs(runs: Iterable[Run], folder: Path) -> list[Path]:
    paths = []
    for n, run in enumerate(runs):
        (folder / f"{n}").mkdir(parents=True)
        paths.append(run.log(folder / f"{n}" / "run.darshan"))
    return paths


def joined(runs: Iterable[Run], folder: Path, **options: Any) -> Workload:
    first, *others = logs(runs, folder)
    return darshan.read(first, others=others, **options)


def writers(*parts: dict[str, Any]) -> list[Run]:
    """Runs that each write a file of their own."""
    runs: list[Run] = [Part(**options) for options in parts]
    for n, run in enumerate(runs):
        run.write(f"/s/out.{n}", MIB, 2.0, rank=0)
    return runs


@pytest.mark.parametrize("trace", ["", "DXT", "HEATMAP"])
def test_processes_are_what_one_log_of_all_would_be(trace: str, tmp_path: Path) -> None:
    """A file that stays open, files of all and of each; the trace and the heatmap are shifted."""

    def fill(run: Run, process: int, rank: int, late_s: float) -> None:
        steps, times = [20.0 * k + 2 - late_s for k in range(3)], [5 + 20 * k for k in range(4)]
        for k, at_s in enumerate(steps):
            run.write(f"/s/ck.{k}.{process}", MIB, at_s, rank=rank)
        segments = [(k * MIB, MIB, s - late_s, s - late_s + 0.1) for k, s in enumerate(times)]
        more = {"duration_s": 61.0, "F_WRITE_TIME": 0.4, "trace": trace == "DXT"}
        run.traced("/s/log.bin", segments, rank=rank, **more)
        if trace == "HEATMAP":
            bins = dict.fromkeys((int(s) for s in (*steps, *(t - late_s for t in times))), MIB)
            run.heatmap(bins, 100, rank=rank)
        run.read("/s/in.bin", MIB, 1.0 - late_s, rank=rank)

    whole, parts = Part(4), [Part(1, 0.25 * n) for n in range(4)]
    for n, part in enumerate(parts):
        fill(whole, n, n, 0.0)
        fill(part, n, 0, 0.25 * n)
    expected = whole.describe(tmp_path)
    workload = joined(parts, tmp_path)
    assert workload.ranks == 4
    for stream, wanted in zip(workload.streams, expected.streams, strict=True):
        if trace == "HEATMAP" and (stream.layout, stream.operation) == ("shared", "write"):
            assert [(pytest.approx(d.time_s, abs=1), d.bytes) for d in wanted.steps] == [
                (d.time_s, d.bytes) for d in stream.steps
            ]  # its bins are those of the shifted clocks
            continue
        steps = tuple(replace(d, time_s=round(d.time_s, 6)) for d in stream.steps)
        assert replace(stream, steps=steps) == wanted


@pytest.mark.parametrize("gap_s", [0.0, 100.0])
def test_the_trace_of_a_file_is_in_the_logs_that_have_it(gap_s: float, tmp_path: Path) -> None:
    """Runs that follow each other have files of their own, though of one name."""
    runs = [Part(1, (gap_s + 1e-6) * n, run_time_s=50.0) for n in range(6)]
    for n, run in enumerate(runs):
        for name in ("/s/all", f"/s/{n % 3}"):
            run.traced(name, [(0, MIB, 5.0 + n, 5.1 + n)])
    with open_joined(logs(runs, tmp_path)) as log:
        every = list(log.dxt("DXT_POSIX"))
        files = {record.id for record in every}
        assert (len(every), len(files)) == (12, 12 if gap_s else 4)
        for file in files:
            rows = [(r.rank, r.write_segments.tolist()) for r in every if r.id == file]
            again = log.dxt("DXT_POSIX", file)
            assert [(r.rank, r.write_segments.tolist()) for r in again] == rows
        assert list(log.dxt("DXT_POSIX", 1)) == []


def test_dealt_counters_add_up(tmp_path: Path) -> None:
    runs = [Part(3, n) for n in range(2)]
    for run in runs:
        run.write("/s/all.bin", 7 * MIB + 1, 50.0, calls=7, STATS=5, FSYNCS=1)
    paths = logs(runs, tmp_path)
    with open_joined(paths) as log, open_log(paths[0]) as part:
        rows = [row for block in log.records("POSIX") for row in block]
        [single] = [row for block in part.records("POSIX") for row in block]
        assert [row["rank"] for row in rows] == list(range(6))
        for name in ("BYTES_WRITTEN", "WRITES", "OPENS", "STATS", "FSYNCS", "ACCESS1_COUNT"):
            total = sum(int(row[f"POSIX_{name}"]) for row in rows)
            assert total == 2 * int(single[f"POSIX_{name}"]) > 0


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"jobid": 7, "exe": "/bin/other"}, "a log of the program 'other', but .* of 'app'"),
        ({"uid": 7}, "a log of another user than"),
        ({"nprocs": 0}, "has 0 processes, expected 1 to"),
        ({"nprocs": 1 << 40}, "has 1099511627776 processes, expected 1 to"),
        (
            {"late_s": 299.5 * DAY_S + 100},
            r"1/run.darshan: starts 299\.5 days after .*0/run.darshan ended, with the same job ID",
        ),
    ],
)
def test_what_does_not_fit_is_refused(other: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(UnderstudyError, match=message):
        joined(writers({}, {"late_s": 1} | other), tmp_path, join_jobs="jobid" in other)


def test_jobs_are_joined_only_where_it_is_asked_for(tmp_path: Path) -> None:
    """The programs of a batch job follow each other within a day; a job ID is used again."""
    near = joined(writers({}, {"late_s": DAY_S / 2}), tmp_path / "near")
    assert near.bytes == 2 * MIB and said("joined-from-logs-one", near.source.notes[0])
    with raises(UnderstudyError, "job-but-job-join"):
        joined(writers({"jobid": 70}, {"jobid": 71}), tmp_path / "other")
    runs = writers({}, {"late_s": DAY_S / 2}, {"late_s": 300 * DAY_S})
    again = joined(runs, tmp_path / "far", join_jobs=True)
    said("joined-from-logs-jobs", again.source.notes[0])
    assert any("s between 2 jobs are left out." in note for note in again.source.notes)
    assert again.streams[-1].last_s < DAY_S


def test_a_log_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    """Also under another name and compression; another process of the same times is none."""
    first, second = logs(writers({}, {}), tmp_path)
    again = recompress(first, tmp_path / "c.darshan", "bzip2")
    assert darshan.read(first, others=[second]).ranks == 2
    for twin in (first, again):
        with raises(UnderstudyError, "same-log-give-once"):
            darshan.read(first, others=[second, twin])


def test_the_command_takes_directories(tmp_path: Path) -> None:
    rows = [{"jobid": job, "late_s": 1000.0 * job + n} for job in (70, 71) for n in range(2)]
    logs(writers(*rows), tmp_path / "logs")
    (tmp_path / "none").mkdir()
    out, folder = tmp_path / "app.json", str(tmp_path / "logs")

    def describe(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["describe", *words])
        return done.exit_code, done.stderr

    status, stderr = describe(folder, "-o", str(out))
    assert status == 2 and "`understudy rank`" in stderr
    assert describe(folder, "--job", "71", "-o", str(out))[0] == 0 and load(out).ranks == 2
    message = "understudy: --job 72: none of 4 logs is of this job\n"
    assert describe(folder, "--job", "72") == (2, message)
    status, stderr = describe(str(tmp_path / "none"))
    assert status == 2 and said("expected-least-one-file", stderr)

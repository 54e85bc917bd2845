"""The command `understudy rank`: a table of the jobs of a directory of logs."""

import csv
import gc
import json
import tracemalloc
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.readers.synthetic import Run
from tests.support.logs import recompress
from tests.support.said import said
from understudy.cli import main
from understudy.darshanlog.writer import START_S
from understudy.judge.page.ranking import program_of, rank

MIB = 1 << 20


def job(
    folder: Path, number: int, io_s: float, size: int, logs: int = 1, **options: object
) -> None:
    """A job of `logs` processes, each with as many bytes and seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(logs):
        run = Run(nprocs=1, jobid=number, start_s=START_S + number, **options)
        run.write(f"/s/out.{n}", size, 2.0 + 1e-6 * n, rank=0, F_WRITE_TIME=io_s, F_META_TIME=0.0)
        run.read("/s/in", MIB, 1.0, rank=0, F_READ_TIME=0.0)
        run.log(folder / f"alice_secret_id{number}-{n}.darshan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs = tmp_path / "logs"
    job(logs / "1", 11, 2.0, 4 * MIB, logs=4, exe="/home/alice/secret -x")  # 8 s, 16 MiB
    job(logs / "2", 12, 1.0, 100 * MIB, exe="python3 -u /home/alice/train.py 7")  # 1 s, 100 MiB
    job(logs / "2", 13, 0.5, MIB, exe="/home/alice/secret -y")
    job(logs / "2", 14, 0.1, MIB, exe="/bin/small", run_time_s=None)
    return logs


def ranked(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["rank", *map(str, arguments)])


def test_jobs_are_in_order_of_their_time_or_bytes(folder: Path, tmp_path: Path) -> None:
    for by, order in (("time", [11, 12, 13, 14]), ("bytes", [12, 11, 13, 14])):
        out = tmp_path / "rank.json"
        done = ranked(folder, "--by", by, "--json", out, "--force")
        assert done.exit_code == 0, done.stderr
        rows = json.loads(out.read_text())["jobs"]
        assert [row["job"] for row in rows] == order
        assert [row["place"] for row in rows] == [1, 2, 3, 4]
        shown = [line.split()[0] for line in done.stdout.splitlines()[2:]]
        assert shown == [str(n) for n in order]


def test_the_numbers_are_those_of_the_logs(folder: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "rank.json", tmp_path / "rank.csv"
    assert ranked(folder, "--json", out, "--csv", table).exit_code == 0
    row_ = json.loads(out.read_text())
    first, last = row_["jobs"][0], row_["jobs"][-1]
    assert (row_["logs"], row_["unreadable_logs"]) == (7, 0)
    assert (first["logs"], first["processes"], first["opens"]) == (4, 1, 8)
    assert (first["written_bytes"], first["read_bytes"]) == (16 * MIB, 4 * MIB)
    assert (first["io_s"], first["process_s"], first["io_fraction"]) == (8.0, 400.0, 0.02)
    assert first["start"] == "2023-11-14T22:13:31Z"
    assert (last["io_fraction"], last["unfinished_logs"]) == (None, 1)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["job"] for row in rows] == [str(row["job"]) for row in row_["jobs"]]
    assert rows[0]["written_bytes"] == str(16 * MIB)


def test_it_says_which_jobs_are_worth_a_replica(folder: Path, tmp_path: Path) -> None:
    """One of each program that has most of the time or of the bytes."""
    out = tmp_path / "rank.json"
    ranked(folder, "--json", out)
    told = {row["job"]: row["replicate"] for row in json.loads(out.read_text())["jobs"]}
    said("yes-its-program-has", told[11])
    said("yes-its-program-has-2", told[12])
    assert (told[13], told[14]) == ("as job 11", "")


def test_names_are_hidden(folder: Path, tmp_path: Path) -> None:
    out, table = tmp_path / "rank.json", tmp_path / "rank.csv"
    files = ["--force", "--json", out, "--csv", table]
    hidden = ranked(folder, *files).output + out.read_text() + table.read_text()
    kept = ranked(folder, "--keep-names", *files).output + out.read_text() + table.read_text()
    for name in ("secret", "train.py", "small"):
        assert name not in hidden and kept.count(name) >= 3
    for text in (hidden, kept):
        assert "alice" not in text and "1000" not in text.split()


def test_logs_that_cannot_be_read_are_counted_and_named(folder: Path) -> None:
    for n in range(3):
        (folder / f"bad{n}.darshan").write_bytes(b"no log" * n)
    done = ranked(folder, "--limit", "2")
    assert done.exit_code == 0
    said("jobs-logs", done.stdout)
    said("jobs-more", done.stdout)
    errors = done.stderr.splitlines()
    assert all(f"bad{n}.darshan: " in errors[n] for n in range(3))
    said("logs-cannot-read-ranking", errors[3])


@pytest.mark.parametrize("nprocs", [0, -1])
def test_a_log_without_processes_is_counted(nprocs: int, folder: Path) -> None:
    run = Run(nprocs=nprocs, jobid=99)
    run.write("/s/out", MIB, 2.0, rank=0)
    run.log(folder / "empty.darshan")
    done = ranked(folder)
    assert done.exit_code == 0
    said("empty-darshan-job-record", done.stderr, nprocs=nprocs)
    said("logs-cannot-read", done.stderr)


def test_a_directory_without_a_log_that_can_be_read(tmp_path: Path) -> None:
    done = ranked(tmp_path)
    assert done.exit_code == 2 and said("expected-least-one-file", done.stderr)
    (tmp_path / "a.darshan").write_bytes(b"")
    done = ranked(tmp_path)
    assert done.exit_code == 2
    said("none-logs-can-read", done.stderr.splitlines()[-1])
    done = ranked(tmp_path / "gone")
    assert done.exit_code == 2 and said("no-such-file", done.stderr)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/opt/app/bin/lmp -in in.x", "lmp"),
        ("python3.11 -u /x/train.py 7", "train.py"),
        ("python3 -c code", "code"),
        ("bash", "bash"),
        ("", ""),
        ("python3", "python3"),
    ],
)
def test_a_program_is_its_executable_or_script(command: str, name: str) -> None:
    assert program_of(command) == name


def test_a_copied_log_counts_once(tmp_path: Path) -> None:
    """Whatever its name and compression; processes of one job that are alike are no copies."""
    folder, out = tmp_path / "logs", tmp_path / "rank.json"
    job(folder, 11, 2.0, 4 * MIB, logs=3)
    first = folder / "alice_secret_id11-0.darshan"
    (folder / "again.darshan").write_bytes(first.read_bytes())
    recompress(first, folder / "packed.darshan", "bzip2")
    done = ranked(folder, "--json", out)
    assert done.exit_code == 0 and said("job-logs-mib", done.stdout)
    said("copies-logs-left-out", done.stderr)
    row = json.loads(out.read_text())
    assert (row["logs"], row["copied_logs"], row["jobs"][0]["logs"]) == (5, 2, 3)
    assert row["jobs"][0]["written_bytes"] == 12 * MIB


def test_modules_that_are_not_decoded_are_marked(tmp_path: Path) -> None:
    """A job of DAOS is not one without I/O; its processes are not copies of each other."""
    folder, out, values = tmp_path / "logs", tmp_path / "rank.json", tmp_path / "rank.csv"
    job(folder, 12, 1.0, MIB, raw={7: (2, b"blue gene")})
    for n in range(2):
        raw = {16: (1, bytes([n]) * 64), 17: (1, b"\0" * 64)}
        Run(nprocs=1, jobid=11, exe="/bin/daos", raw=raw).log(folder / f"daos{n}.darshan")
    done = ranked(folder, "--json", out, "--csv", values)
    assert done.exit_code == 0 and done.stderr == ""
    [line] = [line for line in done.stdout.splitlines() if line.split()[0] == "11"]
    said("its-modules-daos-dfs", line)
    assert done.stdout.count("not decoded") == 1
    rows = json.loads(out.read_text())["jobs"]
    assert [row["undecoded_modules"] for row in rows] == [[], ["DAOS", "DFS"]]
    assert (rows[1]["logs"], rows[1]["replicate"]) == (2, "")
    with values.open(newline="") as file:
        assert [row["undecoded_modules"] for row in csv.DictReader(file)] == ["", "DAOS, DFS"]


def test_a_recompressed_log_of_modules_that_are_not_decoded_counts_once(tmp_path: Path) -> None:
    run = Run(nprocs=1, jobid=11, raw={16: (1, bytes(range(64))), 17: (1, b"\0" * 64)})
    log = run.log(tmp_path / "daos.darshan")
    recompress(log, tmp_path / "packed.darshan", "bzip2")
    done = ranked(tmp_path)
    assert done.exit_code == 0 and said("job-log", done.stdout)
    said("copy-logs-left-out", done.stderr)


def test_files_of_the_user_are_replaced_only_if_asked(folder: Path, tmp_path: Path) -> None:
    for option in ("--json", "--csv"):
        path = tmp_path / "mine"
        path.write_text("mine")
        done = ranked(folder, option, path)
        assert done.exit_code == 2 and path.read_text() == "mine"
        said("exists-already-choose-another", done.stderr, page=path)
        assert ranked(folder, option, path, "--force").exit_code == 0
        assert path.read_text() != "mine"


def test_names_in_a_table_are_no_formulas_and_no_escapes(tmp_path: Path) -> None:
    folder, out = tmp_path / "logs", tmp_path / "rank.csv"
    programs = ("=cmd|'x'!A1", "+1", "-1", "@SUM(A1)", "\x1b[2Jx", "a\rb", "\t=1")
    for n, name in enumerate(programs):
        job(folder, 10 + n, 1.0, MIB, exe=f"/bin/{name}")
    done = ranked(folder, "--keep-names", "--csv", out)
    assert done.exit_code == 0 and "\x1b" not in done.output
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(programs)
    for row in rows:
        assert row["program"].isprintable() and row["program"][:1] not in ("=", "+", "-", "@")


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_a_job_id_that_is_used_again_is_another_job(
    order: tuple[int, ...], tmp_path: Path
) -> None:
    """Processes of one job are near each other in time, whatever the order of their logs."""
    days = (0.0, 0.5, 300.0)
    paths = []
    for n in order:
        run = Run(nprocs=1, jobid=11, start_s=START_S + 86400 * days[n])
        run.write(f"/s/{n}", MIB << n, 2.0, rank=0)
        paths.append(run.log(tmp_path / f"{n}.darshan"))
    jobs = rank(paths, "bytes").jobs
    assert [(job.logs, job.written_bytes) for job in jobs] == [(1, 4 * MIB), (2, 3 * MIB)]


def test_memory_grows_by_little_with_the_logs_of_a_job(tmp_path: Path) -> None:
    job(tmp_path, 11, 1.0, MIB, logs=210)
    paths = sorted(tmp_path.glob("*.darshan"))
    peaks: dict[int, list[int]] = {10: [], 210: []}
    thresholds = gc.get_threshold()
    gc.set_threshold(1)  # what is garbage does not count
    for count in (10, 210) * 3:  # tables of the interpreter grow by 30 kB in some of the runs
        tracemalloc.start()
        done = rank(paths[:count])
        peaks[count].append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (len(done.jobs), done.jobs[0].logs) == (1, count)
    gc.set_threshold(*thresholds)
    assert min(peaks[210]) - min(peaks[10]) < 200 * 500  # a name and a digest for each

"""The check transfer: timers from logs, decisions on made-up times, the figure, the page, the job,
and a small program and its replica under Darshan, where its runtime is there."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from click.testing import CliRunner

from tests.readers.synthetic import Run as Synthetic
from tests.support import player
from tests.support.needs import needs
from tests.support.said import raises, said
from understudy import cli, producers
from understudy.contracts import case as applications
from understudy.contracts import run as runs
from understudy.contracts.measurement import Spans
from understudy.contracts.run import Identity, Place, Run
from understudy.darshanlog.writer import write_log
from understudy.errors import UnderstudyError
from understudy.judge.fidelity import transfer
from understudy.judge.fidelity.transfer import FAILED, OUTSIDE, UNDECIDED, WITHIN, Error
from understudy.paths import ROOT
from understudy.producers import observed
from understudy.report import figures

NAMES = {
    1: b"/scratch/run/a",
    2: b"/scratch/run/b",
    3: b"<STDOUT>",
    4: b"/scratch/run",
    5: b"/scratch/",
}


def measurement(log: Path, **more: Any) -> dict[str, Any]:
    given = {
        "application": "app",
        "options": {"application": "app"},
        "workload": ("w", "0" * 64),
        "directory": "/scratch",
        "command_line": ["app"],
    }
    return observed.of_log(log, **(given | more))


def log_of(folder: Path, *, posix_s: float = 2.0) -> Path:
    """File a by both ranks, b by rank 1; the directory and <STDOUT> count for nothing."""
    times = {"POSIX_F_READ_TIME": 0.25, "POSIX_F_META_TIME": 0.5, "POSIX_OPENS": 2}
    posix = [
        {"id": 1, "rank": rank, "POSIX_F_WRITE_TIME": s, "POSIX_BYTES_WRITTEN": size} | times
        for rank, s, size in ((0, posix_s, 10), (1, 1.0, 5))
    ]
    posix += [{"id": n, "rank": 0, "POSIX_F_META_TIME": 9.0} for n in (4, 5)]
    stdio = [
        {"id": n, "rank": rank, "STDIO_F_WRITE_TIME": s, "STDIO_BYTES_WRITTEN": size}
        for n, rank, s, size in ((2, 1, 4.0, 7), (3, 0, 100.0, 9))
    ]
    return write_log(folder / "run.darshan", nprocs=2, names=NAMES, POSIX=posix, STDIO=stdio)


def values(row: dict[str, Any]) -> dict[str, float]:
    return {s.metric: s.value for s in observed.samples(observed.parse(row, "x"))}


def test_timers_of_a_log_are_those_of_its_files(tmp_path: Path) -> None:
    timers = values(measurement(log_of(tmp_path), dumps=[Spans(stream="s", seconds=(1.0, 2.0))]))
    assert timers == {
        "io_slowest_rank_s": 1.75 + 4.0,
        "io_all_ranks_s": 2.75 + 1.75 + 4.0,
        "metadata_slowest_rank_s": 0.5,
        "metadata_all_ranks_s": 1.0,
        "posix_slowest_rank_s": 2.75,
        "posix_all_ranks_s": 4.5,
        "stdio_slowest_rank_s": 4.0,
        "stdio_all_ranks_s": 4.0,
        "elapsed_s": 100.0,
        "dumps_s": 3.0,
    }


def test_what_the_player_prepares_is_left_out(tmp_path: Path) -> None:
    """Of a file that is read, the writes, and the one open of two that made it."""
    row = measurement(log_of(tmp_path), prepared={1})
    [posix] = [m for m in row["modules"] if m["module"] == "POSIX"]
    assert (posix["write_s"], posix["bytes_written"]) == ([0.0, 0.0], 0)
    assert (posix["read_s"], posix["meta_s"]) == ([0.25, 0.25], [0.25, 0.25])


@pytest.mark.parametrize(
    ("record", "options", "message"),
    [
        ({"rank": -1}, {}, "records-all-ranks-together"),
        ({"rank": 2}, {}, "or-unknown-ones"),
        ({"id": 4}, {}, "darshan-saw-no-file"),
        ({}, {"partial": ["POSIX"]}, "log-lacks-records"),
        ({}, {"run_time_s": None}, "did-end"),
    ],
)
def test_a_log_without_timers_of_each_file_and_rank_is_refused(
    record: dict[str, int], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    rows = [{"id": 1, "rank": 0} | record]
    log = write_log(tmp_path / "x.darshan", nprocs=2, names=NAMES, POSIX=rows, **options)
    with raises(UnderstudyError, message):
        measurement(log)


def test_a_measurement_is_recorded_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(measurement(log_of(tmp_path))))
    record = producers.record(tmp_path / "result.json")
    runs.write(tmp_path / "run.json", record)
    assert producers.load(tmp_path / "run.json") == record
    assert (record.producer.name, record.identity.arm) == ("observed", "application")


def test_a_damaged_measurement_is_one_message(tmp_path: Path) -> None:
    row = measurement(log_of(tmp_path))
    row["modules"][0]["read_s"] = [1.0]
    with raises(UnderstudyError, "posix-expected-ranks"):
        observed.parse(row, "x")
    (tmp_path / "result.json").write_text(json.dumps(row | {"finished": False}))
    with pytest.raises(UnderstudyError, match="finished"):
        observed.read(tmp_path / "result.json")


# -- decisions ------------------------------------------------------------------------------------


def times(middle: float, scatter: float, seed: int, rounds: int = 11) -> list[float]:
    dice = np.random.default_rng(seed)
    return list(middle * np.exp(scatter * dice.standard_normal(rounds)))


def error_of(replica: float, scatter: float, rounds: int = 11) -> Error:
    middles = {"application": 1.0, "control": 1.0, "replica": replica}
    arms = {a: times(m, scatter, n, rounds) for n, (a, m) in enumerate(middles.items(), 1)}
    error = transfer.error("m", arms)
    assert error is not None
    return error


@pytest.mark.parametrize(
    ("replica", "scatter", "state"),
    [
        (1.0, 0.02, WITHIN),
        (1.04, 0.02, WITHIN),
        (1.30, 0.02, OUTSIDE),
        (0.70, 0.02, OUTSIDE),
        (1.10, 0.02, UNDECIDED),  # at the limit
        (1.0, 0.4, UNDECIDED),  # the application differs from itself by more
        (5.0, 0.4, OUTSIDE),  # which does not hide what is far off
    ],
)
def test_the_decision_follows_the_truth(replica: float, scatter: float, state: str) -> None:
    error = error_of(replica, scatter)
    assert error.state() == state
    if scatter < 0.1:
        assert error.error.value == pytest.approx(replica - 1, abs=0.03)
        assert error.scatter < 0.1


def test_one_round_or_no_time_decides_nothing() -> None:
    assert {error_of(factor, 0.0, rounds=1).state() for factor in (1.0, 9.0)} == {UNDECIDED}
    values = {"application": [1.0, 0.0], "control": [1.0, 1.0], "replica": [1.0, 1.0]}
    assert transfer.error("m", values) is None


def run_of(
    folder: Path,
    arm: str,
    round_: int,
    write_s: float,
    place: str,
    application: str = "app",
    failure: str | None = None,
    requests: dict[str, Any] | None = None,
) -> Run:
    """The record of one run, whose slowest rank writes for so long."""
    path = folder / "result.json"
    row = measurement(
        log_of(folder, posix_s=100 * write_s),
        application=application,
        options={"application": application},
    )
    row["modules"] = row["modules"][:1]
    row["requests"] = requests
    row["environment"]["command_line"] = [arm, place, str(round_)]
    path.write_text(json.dumps(row))
    return producers.record(
        path,
        producer="observed",
        options={"application": application},
        failure=failure,
        place=Place(system="lab", partition=place),
        identity=Identity(arm=arm, round=round_, session="s", case="Transfer"),
    )


def records(folder: Path, place: str, replica: float, **more: Any) -> list[Run]:
    return [
        run_of(folder, arm, n, factor * (1 + 0.001 * n), place, **more)
        for n in range(4)
        for arm, factor in (("application", 1.0), ("replica", replica), ("control", 1.0))
    ]


def test_every_case_is_counted_failed_ones_too(tmp_path: Path) -> None:
    measured = [*records(tmp_path, "good", 1.0), *records(tmp_path, "bad", 2.0)]
    measured += records(tmp_path, "broken", 1.0)[:-1]
    measured += [run_of(tmp_path, "control", 3, 1.0, "broken", failure="it was killed")]
    measured += records(tmp_path, "good", 1.0, application="other")[:3]
    cases = transfer.cases(measured)
    assert [(c.application, c.place, c.state(), c.failed) for c in cases] == [
        ("app", "lab:bad", OUTSIDE, 0),
        ("app", "lab:broken", FAILED, 1),
        ("app", "lab:good", WITHIN, 0),
        ("other", "lab:good", UNDECIDED, 0),
    ]
    counted = transfer.tally(cases)
    assert (counted.within, counted.outside, counted.undecided, counted.failed) == (1, 1, 1, 1)
    assert counted.cases == 4 and counted.share_within == 0.5
    assert transfer.tally([]).share_within is None
    headline = cases[0].headline
    assert headline is not None and headline.rounds == 4
    assert headline.error.value == pytest.approx(1.0, abs=0.05)


def asked(writes: int, waited_s: float, **others: int) -> dict[str, Any]:
    """What a storage tells."""
    kinds = dict.fromkeys(("open", "create", "stat", "remove", "read", "flush"), 0) | others
    row = {kind: {"requests": n, "bytes": 0, "waited_s": 0.0} for kind, n in kinds.items()}
    row["write"] = {"requests": writes, "bytes": 4096 * writes, "waited_s": waited_s}
    return {"schema": "understudy/requests/1", "at_once": 1, "unaligned_writes": 0} | row


@pytest.mark.parametrize(
    ("replica", "control", "time", "waits", "state"),
    [
        ({"write": 1000}, {"write": 1000}, 1.0, 0.9, WITHIN),
        ({"write": 1020}, {"write": 1000}, 1.0, 0.9, WITHIN),
        ({"write": 2000}, {"write": 1000}, 1.0, 0.9, OUTSIDE),  # in the same time
        ({"write": 1000}, {"write": 1000}, 2.0, 0.9, OUTSIDE),  # of the same requests
        ({"write": 1000}, {"write": 1000}, 2.0, 0.1, WITHIN),  # the host's time
        ({"write": 2000}, {"write": 1000}, 1.0, 0.1, OUTSIDE),
        ({"write": 2000}, {"write": 1500}, 1.0, 0.9, UNDECIDED),  # nor is the application
        ({"stat": 3}, {}, 1.0, 0.9, WITHIN),
        ({"stat": 4}, {}, 1.0, 0.9, OUTSIDE),
    ],
)
def test_requests_are_judged_by_kind_and_time_where_the_storage_decides(
    replica: dict[str, int],
    control: dict[str, int],
    time: float,
    waits: float,
    state: str,
    tmp_path: Path,
) -> None:
    measured = []
    for n in range(4):
        for arm, factor, more in (
            ("application", 1.0, {}),
            ("replica", time, replica),
            ("control", 1.0, control),
        ):
            spent_s = factor * (1 + 0.001 * n)
            counts = {"write": 1000} | more
            told = asked(counts.pop("write"), waits * 100 * spent_s, **counts)
            measured.append(run_of(tmp_path, arm, n, spent_s, "slow", requests=told))
    [case] = transfer.cases(measured)
    assert case.waits == pytest.approx(waits, rel=0.5) and case.state() == state


def test_requests_of_a_storage_are_those_since_it_told_before(tmp_path: Path) -> None:
    for name, writes in (("first", 5), ("last", 12)):
        (tmp_path / name).write_text(json.dumps(asked(writes, writes / 10)))
    requests = observed.requests_in(tmp_path / "last", tmp_path / "first")
    assert requests["write"] == {"requests": 7, "bytes": 7 * 4096, "waited_s": 0.7}
    (tmp_path / "last").write_text('{"schema": "something"}')
    with raises(UnderstudyError, "expected-requests-storage"):
        observed.requests_in(tmp_path / "last")


def test_dumps_are_compared_of_the_streams_that_all_runs_show(tmp_path: Path) -> None:
    measured = []
    for arm, spans in (
        ("application", {"a": 1.0, "b": 9.0}),
        ("replica", {"a": 2.0}),
        ("control", {"a": 1.0}),
    ):
        row = measurement(
            log_of(tmp_path), dumps=[Spans(stream=name, seconds=(s,)) for name, s in spans.items()]
        )
        (tmp_path / "result.json").write_text(json.dumps(row))
        identity = Identity(arm=arm, round=0, session="s")
        measured.append(producers.record(tmp_path / "result.json", identity=identity))
    [case] = transfer.cases(measured)
    assert case.errors["dumps_s"].error.value == 1.0


# -- figure and page ------------------------------------------------------------------------------


def drawer() -> figures.Drawer:
    [transfers] = [d for d in figures.drawers() if d.name == "transfer"]
    return transfers


def test_the_figure_has_a_dot_for_each_case(tmp_path: Path) -> None:
    measured = [*records(tmp_path, "good", 1.0), *records(tmp_path, "bad", 2.0)]
    measured += records(tmp_path, "alone", 1.0)[:3]
    study = transfer.Study(cases=tuple(transfer.cases(measured)))
    assert drawer().of == figures.TRANSFER and drawer().title.endswith("?")
    text = figures.svg(drawer(), study)
    assert text is not None
    words = "".join(ElementTree.fromstring(text).itertext())
    assert all(word in words for word in ("app", "lab:good", "lab:bad", "lab:alone", "undecided"))
    assert "math" not in words, "plain numbers on the axes"
    drawn = figures.svg(drawer(), transfer.Study(cases=()))
    assert drawn is None


def test_the_page_shows_the_cases(tmp_path: Path) -> None:
    measured = [*records(tmp_path, "good", 1.0), *records(tmp_path, "bad", 2.0)]
    measured += [run_of(tmp_path, "replica", 0, 1.0, "broken", failure="it was killed")]
    for i, run in enumerate(measured):
        (tmp_path / "runs" / str(i)).mkdir(parents=True)
        runs.write(tmp_path / "runs" / str(i) / "run.json", run)
    page = tmp_path / "page.html"
    done = CliRunner().invoke(cli.main, ["report", str(tmp_path / "runs"), "-o", str(page)])
    assert done.exit_code == 0, done.output
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text()))
    said("cases-within-outside-undecided", text)
    said("decided-cases-within", text)
    said("runs-failed", text)
    said("runs-failed-2", text)
    assert "transfer-transfer" in page.read_text()


# -- descriptions of applications -----------------------------------------------------------------

ROW = {
    "schema": "understudy/case/1",
    "description": "d",
    "ranks": 2,
    "command": ["true"],
    "environment": {},
    "inputs": None,
    "original": "w.json",
}


@pytest.mark.parametrize("name", applications.names())
def test_each_application_is_complete(name: str) -> None:
    case = applications.get(name)
    assert case.name == name
    assert case.original is None or case.original.suffix == ".json"
    assert not any("/" in word.removeprefix("./") for word in case.command), "no path of a machine"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ranks": 0}, "ranks"),
        ({"more": 1}, "more"),
        ({"inputs": "gone"}, "inputs: .*gone is not a directory"),
        ({"original": "gone.darshan"}, r"original: .*gone\.darshan is not a file"),
        ({"mpi": 1}, "mpi"),
        ({"prepare": []}, "prepare"),
        ({"requires": {"package": "p"}}, "package"),
        ({"schema": "understudy/run/1"}, "expected understudy/case/1"),
    ],
)
def test_a_wrong_description_is_one_message(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "w.json").touch()
    (tmp_path / "x.json").write_text(json.dumps(ROW | change))
    with pytest.raises(UnderstudyError, match=message):
        applications.load(tmp_path / "x.json")


def application(folder: Path, **change: Any) -> applications.Application:
    (folder / "w.json").touch()
    (folder / "x.json").write_text(json.dumps(ROW | change))
    return applications.load(folder / "x.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"command": ["gone"]}, r"^gone: not found on PATH; x needs it \(Debian: p\)$"),
        ({"prepare": ["gone"]}, "^gone: not found on PATH"),
        ({"requires": {"programs": ["gone"]}}, "^gone: not found on PATH; x needs it$"),
        (
            {"command": ["python3", "x.py"], "requires": {"modules": ["json", "gone_b"]}},
            "^python3: none on PATH has json and gone_b; x needs it$",
        ),
    ],
)
def test_what_is_missing_is_said_with_its_package(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    case = application(tmp_path, **({"requires": {"packages": "Debian: p"}} | change))
    with pytest.raises(UnderstudyError, match=message):
        case.found()


def test_the_first_interpreter_with_the_modules_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, status in (("a", 1), ("b", 0), ("c", 0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "python9").write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name / "python9").chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join(str(tmp_path / name) for name in "abc"))
    words = {"command": ["python9", "x.py"]}
    asked = application(
        tmp_path, **words, requires={"modules": ["m"]}, prepare=["python9", "y.py"]
    ).found()
    there = str(tmp_path / "b" / "python9")
    assert (asked.command, asked.prepare) == ((there, "x.py"), (there, "y.py"))
    assert application(tmp_path, **words).found().command == ("python9", "x.py")


def test_what_the_application_builds_need_not_be_there(tmp_path: Path) -> None:
    assert application(tmp_path, command=["./built"], prepare=["true"]).found()


# -- the check ------------------------------------------------------------------------------------

# Four dumps, each a file of its own of 2 ranks, flushed; between them nothing is computed.
PROGRAM = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char data[1 << 20];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(data, rank + 1, sizeof data);
    for (int dump = 0; dump < 4; ++dump) {
        char name[64];
        snprintf(name, sizeof name, "dump.%d.%d", dump, rank);
        const int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (file < 0 || write(file, data, sizeof data) != sizeof data)
            MPI_Abort(MPI_COMM_WORLD, 2);
        if (fsync(file) || close(file))
            MPI_Abort(MPI_COMM_WORLD, 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
"""


def reframe(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PATH": f"{Path(player.program()).parent}:{os.environ['PATH']}",
        "RFM_CONFIG_FILES": str(ROOT / "configs" / "settings.py"),
        "RFM_PREFIX": str(folder / "reframe"),
        "RFM_COLORIZE": "0",
        "RFM_REPORT_FILE": str(folder / "report.json"),
        "RFM_ENABLE_RESULTS_STORAGE": "0",
        "UNDERSTUDY_PATH": str(folder / "site"),
        "UNDERSTUDY_OUTPUT": str(folder / "out"),
        **variables,
    }
    command = [
        str(Path(sys.executable).parent / "reframe"),
        "-c",
        str(ROOT / "checks" / "transfer.py"),
        "--system=localhost:tmpfs",
        "-E",
        "application == 'mine'",
        *arguments,
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An application of a user's: the small program, and a log of it with known times."""
    folder = tmp_path / "site" / "applications"
    (folder / "inputs").mkdir(parents=True)
    (folder / "inputs" / "case.in").write_text("nothing\n")
    built = tmp_path / "program"
    (tmp_path / "program.c").write_text(PROGRAM)
    subprocess.run(["mpicc", "-O1", tmp_path / "program.c", "-o", built], check=True)
    run = Synthetic(2, 1.0)
    for dump in range(4):
        for rank in range(2):
            more = {"FSYNCS": 1, "SIZE_WRITE_100K_1M": 1, "F_META_TIME": 0.002}
            name, at_s = f"/scratch/run/dump.{dump}.{rank}", 0.1 + 0.1 * dump
            run.write(name, 1 << 20, at_s, rank=rank, duration_s=0.009, **more)
    run.log(folder / "mine.darshan")
    row = ROW | {"command": [str(built)], "inputs": "inputs", "original": "mine.darshan"}
    (folder / "mine.json").write_text(json.dumps(row))
    return tmp_path


def test_the_job_runs_the_arms_in_changing_order(site: Path) -> None:
    done = reframe(site, "--dry-run", "-S", "rounds=2", "-S", "time_scale=0.5")
    assert done.returncode == 0, done.stdout + done.stderr
    [script] = [p.read_text() for p in (site / "reframe").rglob("rfm_job.sh")]
    folders = re.findall(r"(?m)^mkdir -p (\S+)$", script)
    assert folders == [
        "application/0",
        "replica/0",
        "control/0",
        "replica/1",
        "control/1",
        "application/1",
    ]
    assert script.count('(cd "$dir/control" && mpirun -np 2 env ') == 2
    assert script.count('understudy-replay -w workload.json -o "$dir/replica"') == 2
    assert script.count("--time-scale 0.5") == 2
    assert script.count("/inputs/. ") == 4, "every run of the application has fresh inputs"


def of_mine(site: Path, *without: str, **change: Any) -> None:
    """Change the description of the application."""
    path = site / "site" / "applications" / "mine.json"
    row = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: row[key] for key in row if key not in without}))


def test_a_program_without_mpi_is_prepared_once_and_started_without_a_launcher(site: Path) -> None:
    of_mine(site, mpi=False, prepare=["make", "it"], environment={"A": "b c"})
    done = reframe(site, "--dry-run", "-S", "rounds=2")
    assert done.returncode == 0, done.stdout + done.stderr
    [script] = [p.read_text() for p in (site / "reframe").rglob("rfm_job.sh")]
    assert script.count("(cd inputs && A='b c' make it >../prepared.txt)") == 1
    assert script.count("cp -R inputs/. ") == 4, "every run has the files as prepared"
    assert script.count('(cd "$dir/control" && env -u LD_BIND_NOW -u DARSHAN_LOGFILE ') == 2
    assert script.count("DARSHAN_ENABLE_NONMPI=1") == 4
    assert script.count('DARSHAN_LOGPATH="$stage/control/0/logs"') == 1
    assert len(re.findall(r"(?m)^mpirun -np 2 .*understudy-replay", script)) == 2


def test_without_an_original_the_check_is_skipped_or_takes_a_given_one(site: Path) -> None:
    of_mine(site, "original")
    done = reframe(site, "-r", DARSHAN_RUNTIME=str(site))
    said("mine-names-no-original", done.stdout)
    given = site / "given"
    given.mkdir()
    done = reframe(site, "-r", "-S", f"originals={given}", DARSHAN_RUNTIME=str(site))
    said("mine-names-no-original-2", done.stdout, given=given)
    (site / "site" / "applications" / "mine.darshan").rename(given / "mine.darshan")
    done = reframe(site, "--dry-run", "-S", "rounds=2", "-S", f"originals={given}")
    assert done.returncode == 0, done.stdout + done.stderr


def test_without_a_runtime_or_a_program_the_check_is_skipped_with_the_reason(site: Path) -> None:
    done = reframe(site, "-r", DARSHAN_RUNTIME=str(site))
    said("darshan-runtime-there-no", done.stdout, site=site)
    assert "1 skipped" in done.stdout, done.stdout
    (site / "lib").mkdir()
    (site / "lib" / "libdarshan.so").touch()
    of_mine(site, command=["no-such-program"])
    done = reframe(site, "-r", DARSHAN_RUNTIME=str(site))
    said("no-such-program-found", done.stdout)


def test_an_application_that_fails_is_told_by_what_it_prints(site: Path) -> None:
    """Its launcher is a stand-in, so that no runtime of Darshan is loaded."""
    (site / "lib").mkdir()
    (site / "lib" / "libdarshan.so").touch()
    (site / "bin").mkdir()
    mpirun = site / "bin" / "mpirun"
    mpirun.write_text(
        "#!/bin/sh\necho step 1\necho 'ERROR: write: No space left on device'\n"
        'echo "mine: a.c:1: main: Assertion \\`rc >= 0\' failed." >&2\nexit 134\n'
    )
    mpirun.chmod(0o755)
    path = f"{mpirun.parent}:{Path(player.program()).parent}:{os.environ['PATH']}"
    done = reframe(site, "-r", DARSHAN_RUNTIME=str(site), PATH=path)
    assert done.returncode == 1
    said("job-ended-status-error", done.stdout)


def test_an_invalid_description_ends_the_session(site: Path) -> None:
    of_mine(site, ranks=3)
    path = site / "site" / "applications" / "mine.json"
    done = reframe(site, "-l")
    assert done.returncode == 1
    said("ranks-expected-mine-found", done.stderr, darshan=path.with_name("mine.darshan"))


needs_darshan = needs("Darshan's runtime")


@needs_darshan
def test_a_program_and_its_replica_are_measured_and_judged(site: Path) -> None:
    done = reframe(site, "-r", "-S", "rounds=3", "-S", "tolerance_percent=1e9")
    assert done.returncode == 0, done.stdout + done.stderr
    said("verdict-transfer-mine-localhost", done.stdout)
    measured = [runs.load(path) for path in (site / "reframe" / "output").rglob("run.json")]
    assert len(measured) == 9 and not any(run.failed for run in measured)
    for run in measured:
        assert run.measurement is not None
        [posix] = [m for m in run.measurement["modules"] if m["module"] == "POSIX"]
        assert posix["bytes_written"] == 8 << 20 and posix["files"] == 8
        assert all(s > 0 for s in posix["write_s"])
    [case] = transfer.cases(measured)
    assert case.state() != FAILED and set(case.errors) >= {transfer.HEADLINE, "elapsed_s"}


@needs_darshan
def test_processes_without_mpi_are_measured_together(site: Path) -> None:
    """A shell and the two copies that it starts, each with a log. Darshan sees no copy_file_range,
    which cp and cat of new systems call."""
    copy = "dd bs=64k status=none"
    (site / "site" / "applications" / "inputs" / "a").write_bytes(bytes(1 << 20))
    of_mine(site, mpi=False, command=["sh", "-c", f"{copy} if=a of=b; {copy} if=b of=c"])
    done = reframe(site, "-r", "-S", "rounds=2", "-S", "tolerance_percent=1e9")
    assert done.returncode == 0, done.stdout + done.stderr
    measured = [runs.load(path) for path in (site / "reframe" / "output").rglob("run.json")]
    assert len(measured) == 6 and not any(run.failed for run in measured)
    for run in measured:
        assert run.measurement is not None
        [posix] = [m for m in run.measurement["modules"] if m["module"] == "POSIX"]
        replica = run.identity.arm == "replica"
        assert run.measurement["environment"]["ranks"] == 2 or not replica
        assert replica or 2 << 20 <= posix["bytes_written"] <= (2 << 20) + 16


@needs_darshan
def test_a_program_that_fails_makes_a_failed_case(site: Path) -> None:
    of_mine(site, command=["false"])
    done = reframe(site, "-r", "-S", "rounds=2")
    assert done.returncode == 1
    measured = [runs.load(path) for path in (site / "reframe" / "stage").rglob("run.json")]
    assert [run.failed for run in measured] == [True]
    [case] = transfer.cases(measured)
    assert (case.application, case.state()) == ("mine", FAILED)

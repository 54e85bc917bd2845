"""Costs of Darshan: overhead, shutdown and log sizes, from output to verdict and figure."""

import json
import shutil
import subprocess
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import matplotlib
import pytest
from click.testing import CliRunner
from matplotlib.axes import Axes
from matplotlib.text import Text

from tests.support import player
from tests.support.needs import need
from tests.test_benchmark_producers import GOLDEN, RUN, SUMMARY, fake, reframe
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts.run import Identity, Place, Run
from understudy.darshanlog.sizes import log_size
from understudy.darshanlog.synthetic import Synthetic, write
from understudy.darshanlog.writer import write_log
from understudy.errors import UnderstudyError
from understudy.judge.fidelity import transfer
from understudy.judge.page import benchmarks, summary
from understudy.judge.statistics.conditions import Failed
from understudy.paths import where
from understudy.producers import ior
from understudy.reframe.bases import observer
from understudy.report import figures
from understudy.report.book import Book
from understudy_darshan.checks import shutdown as check
from understudy_darshan.judge import operations as judged
from understudy_darshan.judge import overhead, shutdown
from understudy_darshan.judge.overhead import CONTROL, UNDER, WITHOUT
from understudy_darshan.judge.shutdown import WORKLOADS
from understudy_darshan.page import ADDITION
from understudy_darshan.producers import operations
from understudy_darshan.producers import shutdown as producer

PROGRAM = "understudy-darshan-shutdown"
NOISE = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0)
LOUD = (0.7, 1.0, 1.3, 0.8, 1.2, 0.75, 1.25)


def recorded(
    folder: Path, row: dict[str, Any], program: str, case: str, arm: str, round_: int
) -> Run:
    """The record of a result, in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(row))
    identity = Identity(case=case, session="s", arm=arm, round=round_)
    run = producers.record(folder / "result.json", place=HERE, producer=program, identity=identity)
    runs.write(folder / "run.json", run)
    return run


HERE = Place(system="here", partition="disk")


def timed(folder: Path, arm: str, round_: int, seconds: float) -> Run:
    """The record of a run of IOR."""
    row = ior.of_summary(
        GOLDEN / "ior-4.0.0.json",
        name="overhead-ior",
        started=f"2026-11-22T11:15:{round_:02}Z",
        command_line=["ior", arm],
    )
    for rate in row["rates"]:
        if (rate["operation"], rate["metric"]) == ("write", "total_s"):
            rate["value"] = seconds
    if arm.startswith(UNDER):
        row["options"]["darshan"] = f"3.5.{ord(arm[-1]) - ord('a')}"
    return recorded(folder / arm / str(round_), row, "ior", "Overhead", arm, round_)


def job(folder: Path, cost: dict[str, float], noise: tuple[float, ...] = NOISE) -> list[Run]:
    factors = {WITHOUT: 1.0, CONTROL: 1.0} | cost
    return [
        timed(folder, arm, n, 10 * factor * noise[(n + 3 * k) % len(noise)])
        for n in range(15)
        for k, (arm, factor) in enumerate(factors.items())
    ]


@pytest.mark.parametrize(
    ("cost", "noise", "state"),
    [
        (1.0, NOISE, transfer.WITHIN),
        (0.9, NOISE, transfer.WITHIN),
        (1.1, NOISE, transfer.OUTSIDE),
        (1.02, NOISE, transfer.UNDECIDED),
        (1.0, LOUD, transfer.UNDECIDED),
        (1.1, LOUD, transfer.UNDECIDED),
    ],
)
def test_an_overhead_has_three_verdicts(
    cost: float, noise: tuple[float, ...], state: str, tmp_path: Path
) -> None:
    [case] = overhead.cases(job(tmp_path, {f"{UNDER}a": cost}, noise))
    [runtime_overhead] = case.overheads
    assert runtime_overhead.state(0.02) == state
    assert (
        runtime_overhead.name == "3.5.0"
        and runtime_overhead.error.rounds == 15
        and case.failed == 0
    )


def test_rounds_with_a_failed_run_are_left_out_and_counted(tmp_path: Path) -> None:
    records = job(tmp_path, {f"{UNDER}a": 1.0, f"{UNDER}b": 1.1})
    broken = producers.record(
        tmp_path / "none",
        producer="ior",
        failure="gone",
        place=Place(system="here", partition="disk"),
        identity=Identity(case="Overhead", session="s", arm=CONTROL, round=3),
    )
    kept = [r for r in records if (r.identity.arm, r.identity.round) != (CONTROL, 3)]
    [case] = overhead.cases([*kept, broken])
    assert case.failed == 1 and {len(values) for values in case.seconds.values()} == {14}
    states = [o.state(0.02) for o in case.overheads]
    assert states == [transfer.WITHIN, transfer.OUTSIDE]
    assert overhead.cases([r for r in records if r.identity.arm != WITHOUT]) == []


# -- shutdown -------------------------------------------------------------------------------------


def output(path: Path, ranks: int = 4, samples: int = 3) -> Path:
    """Write output as the program does."""
    rows = [
        {
            "sample": n,
            "workload": workload,
            "log_bytes": 2000 + shutdown.files(workload, ranks) * 40,
            "seconds": {
                "log_open": 0.001,
                "POSIX_shutdown": 0.01,
                "core_shutdown": 0.1 + 0.01 * n,
            },
        }
        for n in range(samples)
        for workload in WORKLOADS
    ]
    here = {
        "version": "0.1.0",
        "command_line": [PROGRAM],
        "started": "2026-11-22T11:15:02Z",
        "ranks": ranks,
        "nodes": [{"name": "n0", "ranks": ranks}],
        "mpi": "",
        "directory": "/s",
        "library": "/x/libdarshan.so",
        "program_sha256": "",
    }
    options = {"samples": samples, "warm_up": 1, "all_modules": False}
    path.write_text(
        json.dumps({"options": options, "environment": here, "samples": rows, "finished": True})
    )
    return path


SIZES = {
    "archived_bytes": {"shared": 2500.0, "1024-shared": 21480.0},
    "header_bytes": {"shared": 1328.0},
    "job_record_bytes": {"shared": 1080.0},
    "file_record_bytes": {"shared": 1344.0},
}


def ended(folder: Path, ranks: int, version: str = "3.5.0") -> Run:
    row = producer.of_output(
        output(folder / "samples.json", ranks),
        version=version,
        command_line=[PROGRAM],
        sizes=SIZES,
    )
    return recorded(folder / version / str(ranks), row, "shutdown", "Shutdown", f"{UNDER}a", 0)


def test_samples_become_rows_by_workload_and_processes(tmp_path: Path) -> None:
    rows = shutdown.rows([ended(tmp_path, ranks) for ranks in (4, 8)])
    assert [(r.workload, r.ranks) for r in rows if r.ranks == 8] == [
        (workload, 8) for workload in sorted(WORKLOADS)
    ]
    [row] = [r for r in rows if (r.workload, r.ranks) == ("1024-per-process", 8)]
    assert row.seconds.low == pytest.approx(0.1) and row.seconds.high == pytest.approx(0.12)
    assert row.bytes_per_file == pytest.approx((2000 + 8192 * 40) / 8192)
    assert row.parts == {"log_open_s": 0.001, "POSIX_shutdown_s": 0.01}
    assert (row.saved, row.sizes) == (None, {})
    [row] = [r for r in rows if (r.workload, r.ranks) == ("1024-shared", 8)]
    assert row.saved == pytest.approx(1 - 21480 / (2000 + 1024 * 40))
    [row] = [r for r in rows if (r.workload, r.ranks) == ("shared", 8)]
    assert row.sizes == {name: SIZES[name]["shared"] for name in shutdown.PARTS}
    assert benchmarks.rows([ended(tmp_path, 4)]) == []


def test_sizes_of_the_parts_of_a_log_and_of_its_archive(tmp_path: Path) -> None:
    job = Synthetic(processes=4, files=64, interface="mpiio", layout="shared")
    log = write(tmp_path / "1024-shared.darshan", job)
    sizes = dict(check.part_sizes(log_size(log)))
    assert sizes["header_bytes"] == 1328 and sizes["job_record_bytes"] == 1080
    name = len(next(job.names())[1][0]) + 9
    assert sizes["file_record_bytes"] == 704 + 560 + name
    (tmp_path / "into").mkdir()
    table = tmp_path / "archived.csv"
    done = CliRunner().invoke(
        main,
        [
            "archive",
            "--always",
            "--into",
            f"{tmp_path}/into",
            "--csv",
            str(table),
            str(log),
        ],
    )
    assert done.exit_code == 0, done.output
    size = (tmp_path / "into" / log.name).stat().st_size
    assert check.archived_sizes(table) == {"1024-shared": size}
    assert check.archived_sizes(tmp_path / "none.csv") == {}


def test_paper_has_bytes_per_file_of_its_tables() -> None:
    for workload, stated, before, saved in (
        ("shared", 1075.0, 890.9, -20.4),
        ("1024-shared", 54.6, 27.3, 24.5),
        ("file-per-process", 243.7, 121.9, 75.3),
        ("1024-per-process", 47.7, 26.4, 28.9),
    ):
        old = shutdown.paper_bytes_per_file(workload, shutdown.OLD)
        assert shutdown.paper_bytes_per_file(workload) == pytest.approx(stated, abs=0.3)
        assert old == pytest.approx(before, abs=0.1)
        assert 100 * shutdown.paper_saved(workload) == pytest.approx(saved, abs=0.06)


@pytest.mark.parametrize("spoil", ["half", "unfinished", "few", "empty", "list"])
def test_damaged_output_is_refused(spoil: str, tmp_path: Path) -> None:
    path = output(tmp_path / "samples.json")
    text = path.read_text()
    measurement = json.loads(text)
    if spoil == "unfinished":
        measurement["finished"] = False
    elif spoil == "few":
        measurement["samples"].pop()
    spoiled_texts = {"half": text[: len(text) // 2], "empty": "", "list": "[]"}
    path.write_text(spoiled_texts.get(spoil, json.dumps(measurement)))
    with pytest.raises(UnderstudyError, match="expected the measurement of a shutdown"):
        producer.of_output(path, version="", command_line=[])


def page_of(folder: Path) -> str:
    """The page of the records in a folder."""
    page = folder / "page.html"
    done = CliRunner().invoke(main, ["report", str(folder), "-o", str(page)])
    assert done.exit_code == 0, done.output
    return page.read_text()


def test_page_draws_overhead_shutdown_and_sizes(tmp_path: Path) -> None:
    job(tmp_path, {f"{UNDER}a": 1.0, f"{UNDER}b": 1.1})
    for ranks in (2, 16, 64):
        ended(tmp_path, ranks)
    text = page_of(tmp_path)
    for title in (
        "What does Darshan cost a program?",
        "How long does the shutdown of Darshan take?",
        "How large are Darshan logs?",
        "What does a Darshan log consist of?",
        "How much smaller is an archived Darshan log?",
    ):
        assert title in text
    assert "without (control)" in text and "1,024 files per process" in text
    assert "mathdefault" not in text


@pytest.mark.parametrize(
    ("cost", "noise", "sentence"),
    [
        (1.0, NOISE, "1 of 1 version of Darshan with an overhead within 2 %."),
        (1.3, NOISE, "0 of 1 version of Darshan with an overhead within 2 %, 1 outside."),
        (1.1, LOUD, "0 of 1 version of Darshan with an overhead within 2 %, 1 undecided."),
    ],
)
def test_page_judges_an_overhead(
    cost: float, noise: tuple[float, ...], sentence: str, tmp_path: Path
) -> None:
    job(tmp_path, {f"{UNDER}a": cost}, noise)
    text = page_of(tmp_path)
    assert f'<p class="sentence">{sentence}' in text
    assert "No case was judged" not in text and text.count('href="#page-overhead"')
    assert 'id="page-overhead"' in text


def test_a_failed_run_of_an_overhead_makes_one_failed_case(tmp_path: Path) -> None:
    runs_ = job(tmp_path, {f"{UNDER}a": 1.0})
    lost = replace(runs_[0], producer=replace(runs_[0].producer, failure="killed"))
    failed = [Failed(path=tmp_path, run=lost)]
    page_summary = summary.summarize([], failed, additions=[ADDITION], runs=[lost, *runs_[1:]])
    assert [(c.state, c.why) for c in page_summary.cases] == [("failed", "1 runs failed")]


def labels_in_view(axes: Axes) -> list[Text]:
    """Those of the x axis; a locator may give more of them."""
    low, high = axes.get_xlim()
    return [label for label in axes.get_xticklabels() if low <= label.get_position()[0] <= high]


def test_values_and_labels_of_many_versions_do_not_overlap(tmp_path: Path) -> None:
    """Numbers in the figure of log sizes are plain, and apart."""
    runs_ = [ended(tmp_path, ranks, f"3.{n}.0") for n in range(5) for ranks in (2, 64)]
    drawer = next(d for d in figures.drawers() if d.name == "logsizes")
    with matplotlib.rc_context(fname=str(where("style"))):
        figure = drawer.draw(Book(cases=(), runs=runs_))
        assert figure is not None
        figure.canvas.draw()
        axes = figure.axes[0]
        values = [text for text in axes.texts if text.get_text()]
        assert len(values) == 7 * len(WORKLOADS)
        for texts in (values, *map(labels_in_view, figure.axes)):
            boxes = [text.get_window_extent() for text in texts]
            assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        labels = [label.get_text() for a in figure.axes for label in a.get_yticklabels()]
        assert "1,000" in labels and not any("$" in label for label in labels)


# -- single operations ----------------------------------------------------------------------------

PROFILE = """\
events: Ir
ob=(1) /bin/understudy-replay
fn=(1) main
0 10
cob=(2) /opt/lib/libdarshan.so
cfn=(2) open64
calls={calls} 0
0 {open}
cob=(2)
cfn=(4) MPI_File_write_at
calls={calls} 0
+3 {write}
ob=(2)
fn=(2)
0 5
cob=(3) /lib/libc.so.6
cfn=(3) __open64
calls={calls} 0
* {real_open}
cfn=(5) darshan_core_register
calls=1 0
* 99999
fn=(4)
0 7
cob=(6) /lib/libmpi.so
cfn=(6) PMPI_File_write_at
calls={calls} 0
0 {real_write}
ob=(6)
fn=(6)
0 7
cob=(2)
cfn=(7) pwrite
calls={calls} 0
0 {below}
ob=(2)
fn=(7)
0 7
cob=(3)
cfn=(8) __libc_pwrite64
calls={calls} 0
0 {real_below}
totals: 1
"""


def profile(path: Path, calls: int) -> Path:
    """1,000 more instructions of an open, 300 of a write by MPI-IO, 50 of the one below it."""
    path.write_text(
        PROFILE.format(
            calls=calls,
            open=1200 * calls + 50000,
            real_open=200 * calls,
            write=900 * calls,
            real_write=600 * calls,
            below=150 * calls,
            real_below=100 * calls,
        )
    )
    return path


def test_instructions_of_darshan_are_those_of_its_functions_alone(tmp_path: Path) -> None:
    few, many = profile(tmp_path / "few", 20), profile(tmp_path / "many", 120)
    assert operations.added(few, many) == {"open": 1000.0, "write": 350.0}
    many.write_text(many.read_text()[:200])
    with pytest.raises(UnderstudyError, match="expected a profile of callgrind"):
        operations.added(few, many)


def operated(folder: Path, arm: str, round_: int, seconds: float) -> Run:
    """The record of a run of the check Operations."""
    row = operations.of_player(
        GOLDEN.parent / "measurements" / "player.json",
        name="operations-posix",
        started="2026-11-22T11:15:02Z",
        version="3.5.0" if arm.startswith(UNDER) else "",
        command_line=[arm],
        instructions={"open": 1000.0} if arm.startswith(UNDER) and not round_ else {},
    )
    for rate in row["rates"]:
        if rate["metric"] == "time_s":
            rate["value"] = seconds
    return recorded(folder / arm / str(round_), row, "operations", "Operations", arm, round_)


def test_operations_are_judged_and_drawn(tmp_path: Path) -> None:
    records = [
        operated(tmp_path, arm, n, 1e-6 * (1 + cost) + 1e-9 * n)
        for n in range(3)
        for arm, cost in ((WITHOUT, 0), (CONTROL, 0), (f"{UNDER}a", 0.5))
    ]
    rows = {row.operation: row for row in judged.rows(records)}
    assert set(rows) == {"open", "write", "close"}
    assert rows["open"].added_s.median == pytest.approx(0.5e-6)
    assert rows["open"].control_s.high == pytest.approx(0)
    assert (rows["open"].instructions, rows["close"].instructions) == (1000.0, None)
    assert "What does Darshan add to an open, a write and a close?" in page_of(tmp_path)


def bench() -> str:
    program = shutil.which(PROGRAM, path=str(Path(player.program()).parent))
    assert program is not None, f"{PROGRAM} is not built"
    return program


def test_program_without_darshan_says_what_to_preload(tmp_path: Path) -> None:
    done = subprocess.run(
        [bench(), "-o", tmp_path, "-O", tmp_path / "r.json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (
        done.returncode == 2 and "set LD_PRELOAD to the path of its libdarshan.so" in done.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ([], "--output: a directory is missing"),
        (["-o", "d"], "--result: a file is missing"),
        (["-o", "d", "-O", "r", "-n", "0"], "--samples 0: expected a whole number from 1 to 1000"),
        (["-o", "d", "-O", "r", "--warm-up", "x"], "--warm-up x: expected"),
        (["--nonsense"], "--nonsense: no such option"),
        (["-o"], "-o: a value is missing"),
        (["-o", "d", "-O", "r", "more"], "more: unexpected argument"),
    ],
)
def test_invalid_options_of_the_program(options: list[str], fault: str) -> None:
    done = subprocess.run([bench(), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and fault in done.stderr


# -- the checks -----------------------------------------------------------------------------------


def prefix(folder: Path) -> Path:
    """Stands for a runtime: nothing is preloaded."""
    runtime_prefix = folder / "darshan"
    (runtime_prefix / "lib").mkdir(parents=True)
    (runtime_prefix / "lib" / "libdarshan.so").write_bytes(b"")
    return runtime_prefix


def test_the_check_of_overhead_interleaves_and_judges(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    block = 1 << 20
    log = write_log(
        tmp_path / "seen.darshan",
        metadata={"lib_ver": "3.5.0"},
        POSIX=[{"id": n, "POSIX_BYTES_WRITTEN": block} for n in range(4)],
    )
    fake(
        tmp_path / "bin",
        "ior",
        f"{SUMMARY.format(GOLDEN / 'ior-4.0.0.json')}\n"
        'if [ "$OMPI_COMM_WORLD_RANK" = 0 ] && [ -n "$DARSHAN_LOGFILE" ]; then '
        f'cp {log} "$DARSHAN_LOGFILE"; fi',  # of one process: two copies at once fail
    )
    line = f"-S rounds=3 -S pause_s=0 -S block_bytes={block} -S darshan={prefix(tmp_path)}"
    options = (*RUN, *line.split(), "-n", "^Overhead")
    done = reframe(tmp_path, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        "verdict: overhead of Darshan localhost:tmpfs: 3 rounds, 1.00 MiB on each" in done.stdout
    )
    assert "Darshan 3.5.0: " in done.stdout and "overhead 0 %" in done.stdout
    records = [runs.load(p) for p in (tmp_path / "out" / "records").rglob("*.json.gz")]
    assert sorted((r.identity.arm, r.identity.round) for r in records) == [
        (arm, n) for arm in (CONTROL, f"{UNDER}a", WITHOUT) for n in range(3)
    ]
    [case] = overhead.cases(records)
    assert case.versions[f"{UNDER}a"] == "3.5.0"
    (tmp_path / "seen.darshan").write_bytes(write_log(tmp_path / "little.darshan").read_bytes())
    done = reframe(tmp_path, *options)
    assert done.returncode == 1 and "Darshan saw 0 bytes written, expected 4194304" in done.stdout


def test_without_darshan_checks_are_skipped_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DARSHAN_RUNTIME", raising=False)
    names = ("Overhead", "Shutdown", "Operations")
    chosen = f"^({'|'.join(names)})"
    done = reframe(tmp_path, *RUN, "-S", f"darshan={tmp_path}/none", "-n", chosen)
    skipped = [line for line in done.stdout.splitlines() if "SKIP" in line]
    for name in names:
        assert any(name in line for line in skipped), done.stdout
    reason = "there is no lib/libdarshan.so in it; build darshan-runtime"
    assert done.stdout.count(reason) >= len(names) and "verdict: " not in done.stdout


def runtime() -> Path:
    need("Darshan's runtime")
    return Path(observer.runtime())


def with_darshan(folder: Path, line: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """A session of ReFrame with the runtime, which must succeed."""
    usual = options or ("-r", "--system=localhost:tmpfs")
    done = reframe(folder, *usual, "-S", f"darshan={runtime()}", *line.split())
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_the_shutdown_of_darshan_itself(tmp_path: Path) -> None:
    bench()
    done = with_darshan(tmp_path, "-S samples_of_each=2 -n ^Shutdown%.*processes=2")
    assert (
        "verdict: shutdown of Darshan on 2 processes localhost:tmpfs: median of 2" in done.stdout
    )
    [kept] = [runs.load(p) for p in (tmp_path / "out" / "records").rglob("*.json.gz")]
    rows = {row.workload: row for row in shutdown.rows([kept])}
    assert set(rows) == set(WORKLOADS) and not list(Path("/dev/shm").glob("understudy.*/dars*"))
    # Within 10 % of what 64 ranks had, where ranks play little part.
    assert rows["shared"].bytes_per_file == pytest.approx(1734, rel=0.1)
    assert rows["1024-per-process"].bytes_per_file == pytest.approx(48.7, rel=0.1)
    assert "POSIX_shutdown_s" in rows["shared"].parts
    assert rows["1024-per-process"].saved == pytest.approx(0.3, abs=0.1)  # Table IV: 0.289
    assert rows["shared"].sizes["header_bytes"] == 1328
    assert rows["shared"].sizes["file_record_bytes"] == pytest.approx(1350, rel=0.1)


@pytest.mark.parametrize("method", ["posix", "mpiio"])
def test_operations_under_darshan_itself(method: str, tmp_path: Path) -> None:
    player.needs(method)
    done = with_darshan(tmp_path, f"-S rounds=1 -S files=50 -n ^Operations.*case={method}")
    records = [runs.load(p) for p in (tmp_path / "out" / "records").rglob("*.json.gz")]
    rows = {row.operation: row for row in judged.rows(records)}
    assert set(rows) == {"open", "write", "close"}
    if shutil.which("valgrind") is None:
        assert "instructions: skipped, valgrind is not on PATH" in done.stdout
        return
    assert all(100 < (row.instructions or 0) < 1e6 for row in rows.values()), rows


def test_darshan_sees_what_the_player_writes(tmp_path: Path) -> None:
    line = "-S program=understudy-replay -S pause_s=0 -S block_bytes=1MiB -n ^Overhead"
    done = with_darshan(tmp_path, line, *RUN)
    assert "overhead of Darshan by understudy-replay localhost:tmpfs: 2 rounds" in done.stdout

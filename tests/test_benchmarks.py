"""The benchmarks: what their runs cost, and the workload made from MACSio's datasets."""

import csv
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import instructions, macsio, queue_depth, replay, requests
from benchmarks.macsio import Dataset
from benchmarks.support import accuracy, counted, sides
from benchmarks.support.ior import Pattern
from tests.support import player
from tests.support.said import raises, said
from understudy.contracts.workload import runs
from understudy.judge.fidelity import calibration

MIB = 1 << 20
BURN = """
import os, sys
data = bytearray(int(sys.argv[1]))
for at in range(0, len(data), 4096):
    data[at] = 1
while sum(os.times()[:2]) < float(sys.argv[2]):
    pass
print("done")
"""


def test_a_command_is_metered(tmp_path: Path) -> None:
    small = sides.run(tmp_path, [sys.executable, "-S", "-c", BURN, "0", "0"])
    large = sides.run(tmp_path, [sys.executable, "-S", "-c", BURN, str(64 * MIB), "0.3"])
    assert large.out == "done\n"
    assert 0.3 <= large.cpu_s < small.cpu_s + 1
    assert large.elapsed_s >= 0.29
    assert 60 * MIB < large.peak_bytes - small.peak_bytes < 68 * MIB
    # Not the peak of the process that started it.
    assert small.peak_bytes < 40 * MIB


def test_a_command_that_fails_ends_the_benchmark(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('no room'); sys.exit(3)"
    with raises(SystemExit, "status-no-room"):
        sides.run(tmp_path, [sys.executable, "-S", "-c", code])


def test_the_interval_is_that_of_the_median() -> None:
    # Of 9 values the 2nd and the 8th enclose the median with 96 %, the 3rd and 7th with 82 %.
    assert sides.spread([9, 1, 8, 2, 7, 3, 6, 4, 5]) == "5.00 (2.00…8.00)"
    assert sides.spread([3, 1, 2], 0) == "2 (1…3)"


def test_cells_tell_the_parts_of_a_shared_file() -> None:
    nodes = Dataset(name="xramp", rank=None, type="f64", shape=(1024, 512))
    cells = Dataset(name="xlayers", rank=None, type="i32", shape=(1022, 511))
    variables = macsio.shared_variables([cells, nodes])
    assert [(v.name, v.type, v.shape) for v in variables] == [
        ("xlayers", "i32", (1022, 511)),
        ("xramp", "f64", (1024, 512)),
    ]
    assert all(v.decomposition.grid == (2, 1) for v in variables)


def test_ranks_of_unlike_datasets_keep_their_bytes() -> None:
    datasets = [
        Dataset(name="xramp", rank=0, type="f64", shape=(4, 8)),
        Dataset(name="expansion_000", rank=0, type="f64", shape=(3, 7)),
        Dataset(name="xramp", rank=1, type="f64", shape=(4, 8)),
        Dataset(name="expansion_000", rank=1, type="f64", shape=(2, 5)),
        Dataset(name="expansion_001", rank=2, type="f64", shape=(1, 9)),
        Dataset(name="xramp", rank=2, type="f64", shape=(4, 8)),
    ]
    like, unlike, lone = macsio.own_variables(datasets, 3)
    assert (like.shape, like.decomposition.rule) == ((12, 8), "even")
    assert (unlike.shape, unlike.decomposition) == ((31,), runs([(1, 21), (1, 10), (1, 0)]))
    assert (lone.shape, lone.decomposition) == ((9,), runs([(2, 0), (1, 9)]))


@pytest.mark.parametrize(
    "name", ["baselines", "instructions", "instrumentation", "macsio", "replay"]
)
def test_a_missing_peer_is_said(name: str, tmp_path: Path) -> None:
    few = ["--rounds", "1", "--operations", "10"] if name == "replay" else []
    variables = ("UNDERSTUDY_IOR", "UNDERSTUDY_MACSIO", "DARSHAN_RUNTIME")
    gone = {name: str(tmp_path / "gone") for name in variables}
    done = subprocess.run(
        [sys.executable, sides.ROOT / "benchmarks" / f"{name}.py", *few],
        env={**os.environ, **gone, "PYTHONPATH": str(sides.ROOT)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "SKIPPED: " in done.stdout.splitlines()[-1]


def test_a_missing_program_is_built_by_the_command_that_is_said(tmp_path: Path) -> None:
    # `make build` leaves out the programs of the tests, which mpi_rewrite is among.
    with raises(SystemExit, "mpi-rewrite-run-setup"):
        sides.program(tmp_path, "mpi_rewrite")


def test_neither_side_is_charged_for_removing_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []

    def run(folder: Path, command: Sequence[str | Path]) -> sides.Usage:
        usage = run_really(folder, command)
        held.append([path.name for path in (folder / "data").iterdir()])
        return usage

    run_really = sides.run
    monkeypatch.setattr(sides, "run", run)
    bench = replay.Bench(
        replay=sides.program(sides.ROOT / "build", "understudy-replay"),
        rewrite=Path("not used"),
        ior=None,
        mpiexec="not used",
        folder=tmp_path,
    )
    pattern = Pattern(ranks=1, layout="shared", transfer_bytes=4096, block_bytes=8192)
    for read in (True, False):
        bench.play(pattern, "posix", read)
    assert all(held) and not (tmp_path / "data").exists()


def test_the_table_of_records_is_measured() -> None:
    done = subprocess.run(
        [
            sys.executable,
            sides.ROOT / "benchmarks" / "records.py",
            "--samples",
            "800",
            "--sessions",
            "2",
            "--rounds",
            "1",
            "--runs",
            "6",
            "--dumps",
            "40",
        ],
        env={**os.environ, "PYTHONPATH": f"{sides.ROOT}:{sides.ROOT / 'python'}"},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    steps = [line for line in done.stdout.splitlines() if line.startswith(" ")]
    heads = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert heads[0].endswith(", 2 sessions")
    assert heads[1:] == ["6 records of 2 sessions", "one run of 40 dumps"]
    assert len(steps) == 4 + 3 + 2 and all(" s, CPU " in line for line in steps)
    assert sum(", page " in line for line in steps) == 3


def test_no_benchmark_hides_a_module_of_python() -> None:
    # Python finds the modules beside a script first.
    names = {path.stem for path in (sides.ROOT / "benchmarks").glob("*.py")}
    assert not names & sys.stdlib_module_names


def arm(writes: int, cost_s: float, waited_s: float = 1.0) -> requests.Row:
    """The requests of a run, which are writes alone."""
    none = {"requests": 0, "bytes": 0, "waited_s": 0.0}
    row: requests.Row = dict.fromkeys(requests.KINDS[:-1], none)
    row["write"] = {"requests": writes, "bytes": 0, "waited_s": waited_s}
    return row | {"unaligned_writes": 0, "cost_s": cost_s, "io_s": 1.5}


@pytest.mark.parametrize(
    ("application", "replica", "again", "state"),
    [
        (arm(100, 1), arm(102, 1.05), arm(100, 1), "within"),
        (arm(100, 1), arm(110, 1), arm(100, 1), "outside"),
        (arm(100, 1), arm(110, 1), arm(90, 1), "undecided"),
        (arm(100, 1), arm(100, 1.2), arm(100, 1), "outside"),  # the time
        (arm(100, 1), arm(100, 1.2), arm(100, 1.1), "within"),  # the program does not repeat it
        (arm(100, 1), arm(100, 1.2, 0.7), arm(100, 1), "within"),  # the waits are less than half
    ],
)
def test_a_replica_is_judged_by_requests_and_then_by_time(
    application: requests.Row, replica: requests.Row, again: requests.Row, state: str
) -> None:
    case = {"application": application, "replica": replica, "again": again}
    assert requests.state(case) == state


def test_what_could_not_be_run_is_a_row_of_the_table() -> None:
    measured = [
        {"program": "a", "failed": "no <such>\n|file"},
        {"program": "b", "skipped": "lacks"},
    ]
    *_, first, second, _, last, more = requests.table(measured)
    assert first.startswith("| `a` | all | no \\<such\\> \\|file |")
    assert " skipped | " in second
    assert f"{last} {more}" == (
        "Of these 6 cases: 0 within, 0 outside, 0 undecided, 3 failed, 3 skipped. "
        "Requests decided; time, too, in 0."
    )


def test_the_page_of_accuracy_counts_what_is_kept() -> None:
    text = accuracy.PAGE.read_text(encoding="utf-8")
    assert accuracy.written(text) == text, "again: python -m benchmarks.support.accuracy"


def test_held_out_cases_are_those_that_descriptions_count() -> None:
    """The series of transfers.csv and the table that `understudy describe` reads."""
    series = accuracy.transfers()
    ours = calibration.ours()
    for developed, start in ((True, "developed with"), (False, "held out")):
        counts = [count for name, count in series.items() if name.startswith(start)]
        assert counts and sum(counts, Counter()) == Counter(
            row.verdict for row in ours if row.developed == developed
        )


@pytest.mark.parametrize("path", sorted(accuracy.MEASURED.iterdir()), ids=lambda path: path.name)
def test_what_was_measured_says_how(path: Path) -> None:
    first, second, *_ = path.read_text(encoding="utf-8").splitlines()
    assert first.startswith("# ") and second.startswith("# ")
    rows = accuracy.rows(path)
    assert rows and all(None not in (*row, *row.values()) for row in rows)


def test_kinds_of_requests_are_judged_where_they_wait() -> None:
    """One that waits little is left out; what repeats or lies between the runs is within."""

    def arm(**requests: int) -> dict[str, dict[str, float]]:
        waits = {"open": 2.0, "write": 5.0, "read": 1.0, "stat": 3.0, "create": 0.1}
        return {
            kind: {"requests": requests.get(kind, 0), "waited_s": waits.get(kind, 0.0)}
            for kind in ("open", "create", "stat", "remove", "read", "write", "flush")
        }

    case = {
        "program": "p",
        "storage": "s",
        "from": "counters",
        "explained": 0.5,
        "said": {"write": ["not known"]},
        "application": arm(open=10, write=100, stat=5, create=1) | {"unaligned_writes": 0},
        "again": arm(open=20, write=100, stat=5) | {"unaligned_writes": 0},
        "replica": arm(open=9, write=120, stat=9, create=50) | {"unaligned_writes": 0},
    }
    expected = {"open": "within", "stat": "named", "write": "named"}
    assert counted.judged(case) == expected and requests.state(case) == "named"
    case["said"] = {}
    assert counted.judged(case) == expected | {"write": "silent"}
    failed = {"program": "q", "from": "counters", "failed": "a|b"}
    *_, told, _, kinds, _ = requests.table([case, failed])
    said("these-cases-within-named", told)
    said("kinds-requests-within-named", kinds)


@pytest.mark.parametrize("options", instructions.OPTIONS)
def test_a_transfer_is_not_a_tenth_more_expensive(options: str) -> None:
    player.needs(options.split()[1])
    kept = instructions.kept()
    with sides.folder_in(sides.memory_folder()) as folder:
        for kind, count in instructions.costs(Path(player.program()), folder, options):
            assert count <= 1.1 * kept[options, kind], kind


def test_the_page_of_results_has_the_table_of_transfers_in_flight() -> None:
    with queue_depth.TABLE.open() as file:
        _, *rows = csv.reader(line for line in file if not line.startswith("#"))
    _, rest = queue_depth.PAGE.read_text().split(queue_depth.BEGIN)
    assert rest.split(queue_depth.END)[0] == queue_depth.page(rows)

"""Campaigns: two sides in turn, what they leave, and how they go on."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.said import said
from tests.test_checks import ROOT
from understudy.cli import main
from understudy.paths import OUTPUT_VARIABLE, RECORDS_VARIABLE
from understudy.records import index
from understudy.reframe.session import campaign as sessions
from understudy.reframe.session import reframe_process
from understudy.reframe.session.campaign import error_in

# A stand-in for ReFrame: a case that passes, or fails on a side, with its record and the report.
STAND_IN = f"""#!{sys.executable}
import json, os, signal, sys, time
from pathlib import Path
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "python")!r}]
from tests.test_compare import keep
words = sys.argv[1:]
given = dict(word.split("=", 1) for i, word in enumerate(words) if words[i - 1] == "-S")
campaign, (name, number) = given["campaign"], given["turn"].split("/")
folder = Path(os.environ[{RECORDS_VARIABLE!r}])
[system] = [words[i + 1] for i, word in enumerate(words) if word == "--system"]
told = " ".join([campaign, number, os.environ.get("SCRATCH", "")])
with (folder.parent / "started").open("a") as out:
    print(told, file=out)

def turn(row, case="Replay n"):
    row["identity"] |= {{"campaign": campaign, "turn": given["turn"], "case": case}}
    row["place"]["partition"] = system.partition(":")[2] or "disk"

def ended(*_):
    keep(folder, campaign + number, 1, 1.0, failure="ended", change_row=lambda r: turn(r, None))
    print("ABORTED")
    sys.exit(1)

how = os.environ.get("HOW", "")
if how == "refuse":
    sys.exit("reframe: error: no such file\\nlast line")
if how == "wait":
    signal.signal(signal.SIGTERM, ended)
    (folder.parent / "waiting").touch()
    while True:
        time.sleep(1)
bad = how == "fail"
hour = len((folder.parent / "started").read_text().splitlines())
speed = 0.2 if how == "slow" else 1.0
keep(folder, campaign + number, 1 + hour // 24, speed, failure="full" if bad else None,
     hour=hour % 24, change_row=turn)
[report] = [words[i + 1] for i, word in enumerate(words) if word == "--report-file"]
cases = [{{"result": "fail" if bad else "pass"}}]
Path(report).write_text(json.dumps({{"runs": [{{"testcases": cases}}]}}))
sys.exit(int(bad))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "records"))
    monkeypatch.setenv(OUTPUT_VARIABLE, str(tmp_path / "out"))
    return tmp_path


@pytest.fixture
def stand_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = here / "reframe"
    path.write_text(STAND_IN)
    path.chmod(0o755)
    monkeypatch.setattr(reframe_process, "program", lambda: str(path))
    return here


def campaign(*words: str, turns: int = 2) -> Result:
    start = ("campaign", "c", "--system", "localhost", "--turns", str(turns))
    return CliRunner().invoke(main, [*start, *words])


def started(here: Path) -> list[str]:
    return (here / "started").read_text().splitlines()


def test_each_side_is_first_once_in_two_turns() -> None:
    firsts = set()
    for number in range(100):
        name = f"c{number}"
        orders = [sessions.order(name, turn) for turn in range(1, 9)]
        assert all(set(side_name) == {"before", "after"} for side_name in orders)
        pairs = [
            (side_name[0], other[0])
            for side_name, other in zip(orders[::2], orders[1::2], strict=True)
        ]
        assert all(side_name != other for side_name, other in pairs)
        assert orders == [sessions.order(name, turn) for turn in range(1, 9)], "it can be resumed"
        firsts.add(tuple(side for side, _ in pairs))
    assert len(firsts) == 16, "every order of four pairs is drawn"


def test_the_sides_run_in_turn(stand_in: Path) -> None:
    done = campaign("--after", "SCRATCH=/mnt/new", turns=4)
    assert done.exit_code == 0, done.stderr
    wanted = [
        f"c-{side} {n} {'/mnt/new' if side == 'after' else os.environ.get('SCRATCH', '')}"
        for n in range(1, 5)
        for side in sessions.order("c", n)
    ]
    assert started(stand_in) == wanted
    said("turns-done-seed", done.stderr, seed=sessions.seed("c"))
    assert "turn 4, " in done.stderr and "1 passed, 0 failed" in done.stderr
    said("compare-campaign-before-campaign", done.stdout)
    compared = CliRunner().invoke(main, shlex.split(done.stdout)[1:])
    assert " 4 turns " in compared.stdout, compared.output


def test_it_tells_what_its_turns_find_and_ends_where_that_is_decided(stand_in: Path) -> None:
    done = campaign("--after", "HOW=slow", turns=8)
    assert done.exit_code == 0, done.stderr
    assert re.search(
        r"^understudy: 8 turns find a loss of \d% where sessions differ by 2%, of \d\d% where",
        done.stderr,
        re.M,
    )
    turns = len(started(stand_in)) // 2
    assert turns < 8
    said("decided-after-turns-slower", " ".join(done.stderr.split()), turns=turns)
    done = campaign("--after", "HOW=slow", "--all-turns", "--nights-differ", "45%", turns=4)
    assert "where sessions differ by 45%" in done.stderr
    assert done.exit_code == 0 and len(started(stand_in)) == 8


def test_a_campaign_goes_on(stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert campaign(turns=2).exit_code == 0
    assert campaign(turns=2).exit_code == 0 and len(started(stand_in)) == 4, "nothing is left"
    done = campaign(turns=3)
    assert done.exit_code == 0 and said("turns-done", done.stderr)
    assert [line.split()[1] for line in started(stand_in)] == ["1", "1", "2", "2", "3", "3"]
    done = campaign("--after", "SCRATCH=/x", turns=4)
    assert done.exit_code == 2 and said("was-begun-after-scratch", done.stderr)


def test_a_turn_with_one_side_is_named_and_run_no_more(stand_in: Path) -> None:
    assert campaign(turns=2).exit_code == 0
    side = sessions.order("c", 2)[1]
    for (file,) in index.of_folder().select(("file",), "session = ?", (f"c-{side}2",)):
        (stand_in / "records" / file).unlink()
    done = campaign(turns=2)
    assert done.exit_code == 0, done.stderr
    said("turn-whole-does-count", done.stderr)
    said("turns-done-2", done.stderr)
    assert [line.split()[1] for line in started(stand_in)][4:] == ["3", "3"]
    compared = CliRunner().invoke(main, shlex.split(done.stdout)[1:])
    said("one-side-only-its", compared.stdout)


def test_cases_that_fail_count_and_do_not_end_it(stand_in: Path) -> None:
    sides = ("--before", "partition=tmpfs", "--after", "partition=disk")
    done = campaign(*sides, "--after", "HOW=fail")
    assert done.exit_code == 0 and len(started(stand_in)) == 4
    assert said("after-passed-failed", done.stderr) and "after.log" in done.stderr
    assert " --across place.partition" in done.stdout
    compared = CliRunner().invoke(main, [*shlex.split(done.stdout)[1:], "--fail-below", "10%"])
    assert compared.exit_code == 1
    said("failed-runs-before-after", " ".join(compared.stdout.split()))


def test_a_session_that_cannot_start_ends_it(stand_in: Path) -> None:
    done = campaign("--after", "HOW=refuse")
    assert done.exit_code == 2 and said("reframe-error-no-such", done.stderr)
    assert "last line" not in done.stderr and len(started(stand_in)) <= 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_session_and_the_campaign_goes_on(
    stand_in: Path, number: signal.Signals
) -> None:
    code = "import signal, sys; from understudy.reframe.session import reframe_process; "
    code += "from understudy.cli import main; "
    code += f"signal.signal({number:d}, signal.SIG_DFL); "  # a shell's background ignores SIGINT
    code += f"reframe_process.program = lambda: {str(stand_in / 'reframe')!r}; main(sys.argv[1:])"
    words = ["campaign", "c", "--system", "localhost", "--turns", "1"]
    environment = os.environ | {"HOW": "wait", "PYTHONPATH": str(ROOT / "python")}
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words], env=environment, stderr=subprocess.PIPE, text=True
    )
    while not (stand_in / "waiting").exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    stderr = process.communicate()[1]
    assert process.returncode == 128 + number
    said("ended-same-command-goes", stderr, number_name=number.name)
    assert "Traceback" not in stderr
    side = sessions.order("c", 1)[0]
    assert "ABORTED" in (stand_in / f"out/campaigns/c/turn-1-{side}.log").read_text()
    done = campaign(turns=1)
    assert done.exit_code == 0 and said("turn-whole", done.stderr)
    assert [line.split()[1] for line in started(stand_in)] == ["1", "2", "2"]


def test_an_interrupt_between_two_sessions_is_no_other_end(
    stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sessions.Campaign, "run", interrupted)
    done = campaign()
    assert done.exit_code == 130 and said("ended-sigint-same-command", done.stderr)


EXPECTED = "expected partition=NAME, an environment variable such as SCRATCH=/mnt/new, or a "


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--before", "old"], f"--before old: {EXPECTED}"),
        (["--after", "=x"], f"--after =x: {EXPECTED}"),
        (["--after", "a-b=x"], f"--after a-b=x: {EXPECTED}"),
        (["--after", "partition="], "--after partition=: expected the name of a partition"),
        (
            ["--after", "partition=olt"],
            "--after partition=olt: localhost has no such partition; expected one of tmpfs, disk",
        ),
        (["--after", "A=1", "--after", "A=2"], "--after A=2: A is given twice"),
        (
            ["--after", "Replay.turn=1"],
            "--after Replay.turn=1: the campaign itself sets Replay.turn",
        ),
        (["--system", "nowhere"], "--system nowhere: expected one of archer, "),
        (
            ["--system", "localhost:disk", "--after", "partition=tmpfs"],
            "--after partition=tmpfs: --system localhost:disk names a partition, too",
        ),
        (["--", "--system=x"], "--system=x: the campaign itself sets the system of ReFrame"),
    ],
)
def test_a_bad_setting_is_one_message(stand_in: Path, words: list[str], message: str) -> None:
    done = campaign(*words)
    assert done.exit_code == 2 and done.stderr.startswith(f"understudy: {message}"), done.stderr
    assert done.stderr.count("\n") == 1 and not (stand_in / "started").exists()


def test_records_of_that_name_without_a_turn_are_refused(stand_in: Path) -> None:
    assert campaign(turns=1).exit_code == 0
    for path in (stand_in / "records").glob("*/*.gz"):
        row = json.loads(subprocess.run(["gzip", "-dc", path], capture_output=True).stdout)
        del row["identity"]["turn"]
        path.write_text(json.dumps(row))
    done = campaign(turns=1)
    assert done.exit_code == 2 and said("has-runs-no-turn", done.stderr)


SELECTION = (
    "-n",
    "^Replay",
    "-P",
    "workload=n-1",
    "-P",
    "method=posix",
    "-P",
    "stripe_count=default",
    "-S",
    "time_scale=0",
)


def test_partitions_are_compared_end_to_end(here: Path) -> None:
    """ReFrame, the player and the comparison, in two turns on memory and on disk."""
    sides = ("--before", "partition=tmpfs", "--after", "partition=disk")
    done = campaign(*sides, "--dry-run", "--", *SELECTION)
    assert done.exit_code == 0, done.output
    said("turns-two-sessions", done.stdout)
    assert f"turn 2: {', '.join(sessions.order('c', 2))}" in done.stdout
    said("after-each-session-cases", done.stdout)
    assert not (here / "records").exists()
    done = campaign(*sides, "--", *SELECTION)
    assert done.exit_code == 0, done.output
    rows = list(index.of_folder().select(("campaign", "turn", "partition", "failed")))
    wanted = [
        (f"c-{side_name}", f"c/{turn}", {"before": "tmpfs", "after": "disk"}[side_name], 0)
        for turn in (1, 2)
        for side_name in sessions.order("c", turn)
    ]
    assert rows == wanted
    assert " --across place.partition " in done.stdout and " storage.type" in done.stdout
    done_ = json.loads(CliRunner().invoke(main, [*shlex.split(done.stdout)[1:], "--json"]).stdout)
    assert done_["not_compared"] == [] and len(done_["verdicts"]) == 2
    assert {tuple(side_name["nights"]) for side_name in done_["verdicts"]} == {(2, 2)}


def test_what_reframe_refuses_is_told_in_its_words(here: Path) -> None:
    done = campaign("--", "--mode", "nosuch", *SELECTION)
    assert done.exit_code == 2
    assert re.search(r"turn 1, \w+: ERROR: invalid mode: 'nosuch' \(.*\.log\)\n", done.stderr)
    done = campaign("--", "-n", "Replai")
    assert done.exit_code == 2, "what never ran can be corrected"
    said("nothing-ran-no-case", done.stderr)


def test_a_session_that_printed_nothing_has_a_message() -> None:
    assert error_in("") == error_in("\n") == "ReFrame printed nothing"

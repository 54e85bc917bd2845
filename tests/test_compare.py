"""Two sets of sessions: what is compared, what is said of it, and the exit status."""

import copy
import gzip
import hashlib
import json
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from tests.support import results
from tests.support.said import said
from understudy import producers
from understudy.cli import main
from understudy.contracts import run as runs
from understudy.contracts.run import Identity, Place
from understudy.judge.comparison import case_comparison as comparing
from understudy.judge.statistics.compared_samples import Row, Subject
from understudy.judge.statistics.night_statistics import SLOWER, UNDECIDED, WITHIN
from understudy.paths import RECORDS_VARIABLE
from understudy.records import store

CALM = ("--fail-below", "10%", "--nights-differ", "3%")
BASE = results.result(results.per_process())


def canary(speed: float, after: float = 1.0) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "when": when,
            "program": "ior, mdtest",
            "note": None,
            "failure": None,
            "rates": [
                {
                    "operation": "write",
                    "metric": "bandwidth_bytes_per_s",
                    "unit": "bytes/s",
                    "value": 1e8 * speed * more,
                }
            ],
        }
        for when, more in (("before", 1.0), ("after", after))
    )


def keep(
    folder: Path,
    session: str,
    night: int,
    speed: float,
    *,
    failure: str | None = None,
    canaries: tuple[dict[str, Any], ...] = (),
    change_row: Any = None,
    name: str = "n",
    hour: int = 1,
) -> None:
    dice = random.Random(f"{session} {name}")
    row = copy.deepcopy(BASE)
    for dump in row["repetitions"][0]["streams"][0]["dumps"]:
        slower = dice.lognormvariate(0, 0.01) / speed
        for phase in dump["phases"]:
            for key in ("first_start_s", "last_end_s"):
                phase[key] = dump["start_s"] + (phase[key] - dump["start_s"]) * slower
    row["environment"]["started"] = f"2026-01-{night:02d}T{hour:02d}:00:00Z"
    path = folder.parent / "result.json"
    path.write_text(json.dumps(row))
    run = producers.record(
        path,
        place=Place(system="star", partition="disk"),
        failure=failure,
        identity=Identity(session=session, campaign=session.split("-")[0], case=f"Replay {name}"),
    )
    made = runs.to_row(run) | ({"canary": list(canaries)} if canaries else {})
    made = json.loads(json.dumps(made))
    if change_row:
        change_row(made)
    store.keep(runs.from_row(made, "made"), folder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def nights(site: Path, before: int = 6, after: int = 6, loss: float = 0.0, **more: Any) -> None:
    for i in range(before):
        keep(site, f"old-{i}", 1 + i, 1.0, canaries=more.get("first", ()))
    for i in range(after):
        keep(
            site,
            f"new-{i}",
            11 + i,
            1 - loss,
            canaries=more.get("second", ()),
            change_row=more.get("change_row"),
        )


def words(done: Result) -> str:
    """The output in one line."""
    return " ".join(done.stdout.split())


def compare(*words: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def verdict(*words: object) -> dict[str, Any]:
    (found,) = json.loads(compare("old", "new", "--json", *words).stdout)["verdicts"]
    assert isinstance(found, dict)
    return found


def test_a_loss_is_slower_and_the_status_says_so(site: Path) -> None:
    nights(site, loss=0.5)
    done = compare("old", "new", "--fail-below", "10%")
    assert done.exit_code == 1 and said("slower-decided-faster", words(done))
    assert re.search(r"nights: before( \d{3}){6}, after( \d{3}){6} MiB/s", words(done))
    said("all-after-lie-below", words(done))
    assert compare("old", "new", "--fail-below", "60%").exit_code == 0
    assert compare("new", "old", "--fail-below", "10%").exit_code == 0
    assert compare("old", "new").exit_code == 0
    assert verdict()["state"] == SLOWER and verdict()["ratio"] == pytest.approx(0.5, rel=0.1)


def test_without_a_change_the_status_is_0(site: Path) -> None:
    nights(site)
    assert compare("old", "new", "--fail-below", "10%").exit_code == 3
    assert compare("old", "new", *CALM).exit_code == 0
    found = verdict(*CALM)
    assert found["state"] == WITHIN and 0.9 < found["low"] < 1 < found["high"] < 1.11


@pytest.mark.parametrize(
    ("nights_", "loss", "more", "status"),
    [
        (1, 0.9, (), 1),
        (1, 0.3, (), 3),
        (1, 0.3, ("--nights-differ", "3%"), 1),
        (3, 0.5, ("--nights-differ", "60%"), 3),
        (3, 0.9, ("--strict",), 3),
    ],
)
def test_one_night_decides_what_no_night_does(
    site: Path, nights_: int, loss: float, more: tuple[str, ...], status: int
) -> None:
    nights(site, nights_, nights_, loss=loss)
    done = compare("old", "new", "--fail-below", "10%", *more)
    assert done.exit_code == status, done.output
    text = words(done)
    if "not decided: " in text:
        assert re.search(
            r"no loss above \d\d%.*; (more than )?\d+ nights on each side would", text
        )
    if nights_ == 1 and status == 1:
        said("told-apart-from-what", text)


def test_history_is_more_nights_before(site: Path) -> None:
    nights(site, 1, 6, loss=0.5)
    for i in range(8):
        keep(site, f"past-{i}", 2 + i, 1.0)
    found = verdict("--history", "past")
    assert found["state"] == SLOWER and found["nights"] == [9, 6]
    assert verdict()["nights"] == [1, 6]


def test_sessions_of_one_night_share_what_it_did(site: Path) -> None:
    """Six after of one night tell no more of a loss of 20 % than the night does."""
    for i in range(6):
        keep(site, f"old-{i}", 1 + i, 1.0)
        keep(site, f"new-{i}", 11, 0.8, hour=i % 5)
    found = verdict()
    assert (found["state"], found["nights"]) == (UNDECIDED, [6, 1])
    assert verdict("--night", "0")["state"] == SLOWER


def test_sides_that_take_turns_need_fewer_nights(site: Path) -> None:
    """What a night does to both sides is not in their difference; one side first in all of them
    may be a drift."""
    dice = random.Random(5)
    for i in range(4):
        level = dice.lognormvariate(0, 0.3)
        for side, speed, hour in (("old", level, i % 2), ("new", 0.8 * level, 1 - i % 2)):
            keep(site, f"{side}-{i}", 1 + i, speed, hour=hour)
    found = verdict()
    assert (found["state"], found["nights"], found["nights_with_both"]) == (SLOWER, [4, 4], 4)
    assert found["ratio"] == pytest.approx(found["after"] / found["before"])
    assert found["ratio"] == pytest.approx(0.8, rel=0.05)
    assert "drift" not in found["cause_why"]
    for i in range(8):
        keep(site, f"was-{i}", 1 + i, 1.0, hour=0)
        keep(site, f"is-{i}", 1 + i, 0.5, hour=1)
    (one,) = json.loads(compare("was", "is", "--json").stdout)["verdicts"]
    assert (one["state"], one["cause"]) == (SLOWER, "")
    said("drift-within-night-one", one["cause_why"])


@pytest.mark.parametrize(
    ("first", "second", "cause"),
    [
        (canary(1), canary(0.5), "storage"),
        (canary(1), canary(0.8), "storage"),
        (canary(1), canary(1), "library or layout"),
        (canary(1), canary(1, 0.4), "noisy neighbour"),
        ((), (), ""),
    ],
)
def test_the_canary_tells_what_it_is_due_to(
    site: Path, first: Any, second: Any, cause: str
) -> None:
    nights(site, loss=0.5, first=first, second=second)
    found = verdict()
    assert (found["state"], found["cause"]) == (SLOWER, cause)
    assert found["cause_why"]
    status = compare("old", "new", "--fail-below", "10%", "--strict").exit_code
    assert status == (1 if cause else 3)


def test_a_drift_is_slower_and_not_told_apart_from_a_change(site: Path) -> None:
    for i in range(16):
        keep(site, f"{'old' if i < 8 else 'new'}-{i}", 1 + i, 0.96**i)
    found = verdict()
    assert (found["state"], found["cause"]) == (SLOWER, "")
    assert "not told apart from a drift: those before were already falling" in found["cause_why"]


def server(row: dict[str, Any]) -> None:
    row["storage"]["server_version"] = "2.15"


def test_conditions_that_differ_are_not_compared_unless_asked(site: Path) -> None:
    nights(site, loss=0.5, change_row=server)
    done = compare("old", "new", "--fail-below", "10%")
    assert done.exit_code == 3
    said("condition-differs-storage-server", words(done))
    assert verdict("--across", "storage.server_version")["state"] == SLOWER


def test_failed_runs_are_counted_and_nothing_is_fine(site: Path) -> None:
    nights(site)
    keep(site, "new-8", 20, 1.0, failure="no space left")
    done = compare("old", "new", *CALM)
    assert done.exit_code == 3
    said("runs-after-failed-before", words(done))
    said("failed-runs-before-after", words(done))


def test_a_case_that_ran_on_one_side_only_is_told(site: Path) -> None:
    nights(site)
    keep(site, "old-1", 3, 1.0, name="lost")
    done = compare("old", "new", *CALM)
    assert done.exit_code == 3 and said("ran-only-before", done.stdout)


def test_junit_has_no_pass_for_undecided(site: Path, tmp_path: Path) -> None:
    nights(site, 1, 1, loss=0.3)
    compare("old", "new", "--junit", tmp_path / "x.xml")
    suite = ElementTree.parse(tmp_path / "x.xml").getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")


def test_a_file_of_others_is_not_replaced(site: Path, tmp_path: Path) -> None:
    nights(site)
    made = tmp_path / "x.xml"
    made.write_text("mine")
    done = compare("old", "new", "--junit", made)
    assert done.exit_code == 2 and f"{made}: exists already" in done.stderr
    assert made.read_text() == "mine"
    assert compare("old", "new", "--junit", made, "--force").exit_code == 0
    assert "<testsuite" in made.read_text()


def test_the_page_has_a_row_and_an_interval_for_each_case(site: Path, tmp_path: Path) -> None:
    nights(site, loss=0.3)
    made = tmp_path / "<x>.html"
    done = compare("old", "new", "--html", made)
    assert done.exit_code == 0, done.output
    text = made.read_text(encoding="utf-8")
    assert text.count('<td class="verdict">') == text.count('<svg class="change"') > 0
    assert "✗ slower" in text and "http" not in text and "<script" not in text
    assert re.search(r"<b>[1-9]\d*</b> ✗ slower", text)
    said("slower-decided", text)
    assert compare("old", "new", "--html", made).exit_code == 0  # one of understudy is replaced
    made.write_text("mine", encoding="utf-8")
    assert compare("old", "new", "--html", made).exit_code == 2
    assert made.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("key", ["storage.server_verson", "identity.time", "place.system.x"])
def test_a_misspelled_key_is_an_error(site: Path, key: str) -> None:
    nights(site, 1, 1)
    done = compare("old", "new", "--across", key)
    assert done.exit_code == 2 and said("across-no-key-condition", done.stderr, key=key)
    assert compare("old", "new", "--across", "software.libraries.hdf5").exit_code == 0


def test_files_and_folders_are_compared(site: Path, tmp_path: Path) -> None:
    nights(site, 6, 6, loss=0.5)
    for name in ("old", "new"):
        folder = tmp_path / name
        folder.mkdir()
        for path in site.glob(f"{name}-*/*"):
            (folder / f"{path.parent.name}{path.name}").write_bytes(path.read_bytes())
    done = compare(tmp_path / "old", tmp_path / "new", "--fail-below", "10%")
    assert done.exit_code == 1


def test_errors_have_a_status_of_their_own(site: Path) -> None:
    nights(site, 1, 1)
    for words in (("zzzz", "new"), ("old", "new", "--fail-below", "much")):
        done = compare(*words)
        assert done.exit_code == 2 and "Traceback" not in done.output
        assert done.stderr.startswith("understudy: ")


def test_a_case_of_which_all_runs_fail_is_slower(site: Path, tmp_path: Path) -> None:
    for i in range(3):
        keep(site, f"old-{i}", 1 + i, 1.0)
        keep(site, f"new-{i}", 11 + i, 1.0, failure="no space left")
    done = compare("old", "new", "--fail-below", "10%", "--junit", tmp_path / "x.xml")
    assert done.exit_code == 1
    said("slower-replay-replica-star", words(done))
    said("slower-decided-faster-within", words(done))
    suite = ElementTree.parse(tmp_path / "x.xml").getroot()
    assert (suite.get("errors"), suite.get("failures")) == ("0", "1")
    assert compare("new", "old", "--fail-below", "10%").exit_code == 3


def other_unit(row: dict[str, Any]) -> None:
    for sample in row["samples"]:
        if sample["unit"] == "bytes/s":
            sample["unit"] = "MB/s"


def other_workload(row: dict[str, Any]) -> None:
    made = row["measurement"]
    made["workload"] += "\n"
    digest = hashlib.sha256(made["workload"].encode()).hexdigest()
    made["workload_sha256"] = row["producer"]["workload"]["sha256"] = digest


def no_samples(row: dict[str, Any]) -> None:
    row["samples"] = []


@pytest.mark.parametrize(
    ("change_row", "message"),
    [
        (other_unit, "left out: "),
        (
            other_workload,
            "not compared: Replay n replica on star:disk: 1 of 2 conditions ran only",
        ),
        (
            no_samples,
            "not compared: Replay n replica on star:disk: 1 of 7 runs after have no rate",
        ),
    ],
)
def test_a_session_that_cannot_be_compared_is_told_once(
    site: Path, change_row: Any, message: str
) -> None:
    nights(site)
    keep(site, "new-9", 20, 1.0, change_row=change_row)
    kept = sorted(site.glob("*/*.gz"))
    done = compare("old", "new", "--fail-below", "10%")
    assert sum(message in line for line in done.output.splitlines()) == 1
    assert "Traceback" not in done.output and sorted(site.glob("*/*.gz")) == kept


def test_a_half_written_record_is_left_out_and_stays(site: Path) -> None:
    nights(site)
    path = next(site.glob("new-3/*.gz"))
    half = path.read_bytes()[:300]
    path.write_bytes(half)
    done = compare("old", "new")
    (line,) = done.stderr.splitlines()
    said("left-out-damaged-file", line, path=path)
    assert path.read_bytes() == half and "of 5 after" in done.stdout


def test_records_that_cannot_be_read_are_no_pass(site: Path, tmp_path: Path) -> None:
    nights(site)
    assert compare("old", "new", *CALM).exit_code == 0
    keep(site, "lost", 20, 0.3)
    (path,) = site.glob("lost/*.gz")
    path.write_bytes(path.read_bytes()[:300])
    junit = tmp_path / "j.xml"
    done = compare("old", "new", *CALM, "--junit", junit)
    assert done.exit_code == 3 and said("record-left-out", done.stdout)
    assert ElementTree.fromstring(junit.read_text()).attrib["errors"] == "1"
    made = json.loads(compare("old", "new", "--json", *CALM).stdout)
    assert made["unread"] == 1 and str(path) in made["unread_records"][0]


def test_a_site_gets_on_after_a_record_that_cannot_be_read(site: Path) -> None:
    nights(site)
    keep(site, "old-9", 9, 1.0)
    (path,) = site.glob("old-9/*.gz")
    path.write_bytes(path.read_bytes()[:300])
    assert compare("old", "new", *CALM).exit_code == 3
    path.rename(site / "old-0" / path.name)  # of a session of which the campaign is known
    assert compare("old", "new", *CALM).exit_code == 3
    keep(site, "other-0", 9, 1.0)
    (site / "old-0" / path.name).rename(site / "other-0" / path.name)
    assert compare("old", "new", *CALM).exit_code == 0
    (site / "other-0" / path.name).rename(site / "old-0" / path.name)
    done = CliRunner().invoke(main, ["records", "set-aside", "--yes"])
    assert done.exit_code == 0
    assert compare("old", "new", *CALM).exit_code == 0


def test_the_change_of_a_time_is_that_of_the_values_shown(site: Path) -> None:
    """Twice the time is +100 %, and slower."""
    nights(site, loss=0.5)
    one = verdict("--metric", "write_s")
    assert one["better"] == "lower" and one["state"] == SLOWER
    assert one["ratio"] == pytest.approx(one["after"] / one["before"]) and one["ratio"] > 1
    assert 1 < one["low"] < one["ratio"] < one["high"]
    done = compare("old", "new", "--metric", "write_s", "--fail-below", "10%")
    assert done.exit_code == 1 and " +" in done.stdout


def wrong_bytes(row: dict[str, Any]) -> None:
    row["measurement"]["verification"] = {"bytes": 8192, "wrong_bytes": 4096}


def bad_status(row: dict[str, Any]) -> None:
    row["producer"]["exit_status"] = 1


@pytest.mark.parametrize(
    ("change_row", "why"),
    [
        (wrong_bytes, "4,096 B read back differ from what was written"),
        (bad_status, "it ended with status 1"),
    ],
)
def test_runs_that_did_wrong_have_failed(site: Path, change_row: Any, why: str) -> None:
    nights(site, change_row=change_row)
    done = compare("old", "new", "--fail-below", "10%")
    assert done.exit_code == 1, done.output
    said("all-runs-after-failed", words(done), why=why)
    assert "6 of 6 after" in done.stdout


def test_the_change_is_the_ratio_of_the_medians_shown(site: Path) -> None:
    for i in range(8):
        keep(site, f"old-{i}", 1 + i, (1.0, 100.0)[i % 2])
        keep(site, f"new-{i}", 11 + i, 30.0)
    one = verdict()
    assert one["after"] / one["before"] == pytest.approx(one["ratio"])
    assert one["ratio"] == pytest.approx(3, rel=0.1)


def test_an_edited_copy_hides_no_loss(site: Path) -> None:
    nights(site, loss=0.5)
    for i in range(6):
        (path,) = site.glob(f"new-{i}/*.gz")
        lost = json.loads(gzip.decompress(path.read_bytes()))["identity"]["id"]

        def forged(row: dict[str, Any], of: str = lost) -> None:
            row["identity"]["id"] = of

        keep(site, f"a-{i}", 11 + i, 1.0, change_row=forged)
    done = compare("old", "new", "--fail-below", "10%")
    assert done.exit_code == 2, done.output
    said("left-out-more-all", done.stderr)
    said("has-other-content", done.stderr)


def test_nights_in_which_a_case_did_not_run_are_no_pass(site: Path) -> None:
    nights(site)
    for i in range(6):
        keep(site, f"old-{i}", 1 + i, 1.0, name="m")
        if i < 3:
            keep(site, f"new-{i}", 11 + i, 1.0, name="m")
    done = compare("old", "new", *CALM)
    assert done.exit_code == 3, done.output
    said("did-run-sessions-after", words(done))
    found = json.loads(compare("old", "new", "--json", *CALM).stdout)["verdicts"]
    assert {one["case"]: one["state"] for one in found} == {
        "Replay n": WITHIN,
        "Replay m": UNDECIDED,
    }


def test_runs_that_failed_before_their_workload_was_known_belong_to_their_case() -> None:
    good = [row(f"2026-01-1{i}") for i in range(3)]
    early = replace(good[0].subject, workload=None)
    bad = [
        replace(row(f"2026-01-2{i}", samples=0), subject=early, failure="read-only")
        for i in range(3)
    ]
    (one,) = comparing.compare(good, bad).skipped
    assert one.lost and said("all-runs-after-failed-2", one.why)


def test_a_run_is_not_compared_with_itself(site: Path) -> None:
    nights(site, 2, 0)
    done = compare("old", "old")
    assert done.exit_code == 2
    said("old-old-share-runs", done.stderr)


def row(session: str, unit: str = "bytes/s", sha256: str = "a" * 64, samples: int = 1) -> Row:
    subject = Subject(
        case="Replay",
        arm="replica",
        system="star",
        partition="disk",
        producer="player",
        workload="n",
    )
    return Row(
        subject=subject,
        session=session,
        time=session,
        sha256=sha256,
        condition=sha256,
        failure=None,
        seconds=None,
        canary=(),
        samples=(("bandwidth", unit, "higher", "out", 1e8),) * samples,
    )


@pytest.mark.parametrize(
    ("after", "message"),
    [
        ({"unit": "1/s"}, "out bandwidth: the unit differs: bytes/s higher before, 1/s higher"),
        ({"sha256": "b" * 64}, "the workload differs: SHA-256 aaaaaaaaaaaa before, bbbbbbbbbbbb"),
        ({"samples": 0}, "no samples after: 3 runs, none has a rate or a time"),
    ],
)
def test_what_cannot_be_compared_is_told_once(after: Any, message: str) -> None:
    days = [[f"2026-01-{first + i}" for i in range(3)] for first in (10, 20)]
    found = comparing.compare([row(d) for d in days[0]], [row(d, **after) for d in days[1]], [])
    (one,) = found.skipped
    assert one.why.startswith(message) and not found.verdicts
    assert found.status(0.1) == 3 and found.failed == ((0, 3), (0, 3))


def test_the_plan_is_printed(site: Path) -> None:
    nights(site, 12)
    done = CliRunner().invoke(main, ["plan", "old", "--detect", "10%"])
    assert done.exit_code == 0 and said("figure-case", done.stdout)
    (line,) = (line for line in done.stdout.splitlines() if "Replay n" in line)
    turns, apart = (int(word) for word in re.findall(r" (\d+)(?=  )", f"{line}  ")[-3:-1])
    assert 1 < turns < apart


def test_a_plan_without_an_end_takes_no_time(site: Path) -> None:
    for i in range(8):
        keep(site, f"old-{i}", 1 + i, (1.0, 100.0)[i % 2])
    done = CliRunner().invoke(main, ["plan", "old"])
    assert done.exit_code == 0 and "over 40" in done.stdout
    assert "take" not in done.stdout and said("time-case-known", done.stdout)

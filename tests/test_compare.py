"""Two sets of sessions: what is compared, what is said of it, and the exit status."""

import copy
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
    base: dict[str, Any] = BASE,
    scatter: float = 0.01,
) -> None:
    """Keep the record of a run of a measurement, at another speed."""
    dice = random.Random(f"{session} {name}")
    row = copy.deepcopy(base)
    for dump in (d for r in row["repetitions"] for s in r["streams"] for d in s["dumps"]):
        slower = dice.lognormvariate(0, scatter) / speed
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
    record = runs.to_row(run) | ({"canary": list(canaries)} if canaries else {})
    record = json.loads(json.dumps(record))
    if change_row:
        change_row(record)
    store.keep(runs.from_row(record, "record"), folder)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "kept"))
    return tmp_path / "kept"


def nights(site: Path, before: int = 6, after: int = 6, loss: float = 0.0) -> None:
    for i in range(before):
        keep(site, f"old-{i}", 1 + i, 1.0)
    for i in range(after):
        keep(site, f"new-{i}", 11 + i, 1 - loss)


def words(done: Result) -> str:
    """The output in one line."""
    return " ".join(done.stdout.split())


def compare(*words: object) -> Result:
    return CliRunner().invoke(main, ["compare", *map(str, words)])


def verdict(*words: object) -> dict[str, Any]:
    (row,) = json.loads(compare("old", "new", "--json", *words).stdout)["verdicts"]
    assert isinstance(row, dict)
    return row


def test_junit_has_no_pass_for_undecided(site: Path, tmp_path: Path) -> None:
    nights(site, 1, 1, loss=0.3)
    compare("old", "new", "--junit", tmp_path / "x.xml")
    suite = ElementTree.parse(tmp_path / "x.xml").getroot()
    assert (suite.get("tests"), suite.get("errors"), suite.get("failures")) == ("1", "1", "0")


def test_a_file_of_others_is_not_replaced(site: Path, tmp_path: Path) -> None:
    nights(site)
    path = tmp_path / "x.xml"
    path.write_text("mine")
    done = compare("old", "new", "--junit", path)
    assert done.exit_code == 2 and f"{path}: exists already" in done.stderr
    assert path.read_text() == "mine"
    assert compare("old", "new", "--junit", path, "--force").exit_code == 0
    assert "<testsuite" in path.read_text()


def test_the_page_has_a_row_and_an_interval_for_each_case(site: Path, tmp_path: Path) -> None:
    nights(site, loss=0.3)
    path = tmp_path / "<x>.html"
    done = compare("old", "new", "--html", path)
    assert done.exit_code == 0, done.output
    text = path.read_text(encoding="utf-8")
    assert text.count('<td class="verdict">') == text.count('<svg class="change"') > 0
    assert "✗ slower" in text and "http" not in text and "<script" not in text
    assert re.search(r"<b>[1-9]\d*</b> ✗ slower", text)
    said("slower-decided", text)
    assert compare("old", "new", "--html", path).exit_code == 0  # one of understudy is replaced
    path.write_text("mine", encoding="utf-8")
    assert compare("old", "new", "--html", path).exit_code == 2
    assert path.read_text(encoding="utf-8") == "mine"


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
    row = json.loads(compare("old", "new", "--json", *CALM).stdout)
    assert row["unread"] == 1 and str(path) in row["unread_records"][0]


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


def test_runs_that_failed_before_their_workload_was_known_belong_to_their_case() -> None:
    good = [row(f"2026-01-1{i}") for i in range(3)]
    early = replace(good[0].subject, workload=None)
    bad = [
        replace(row(f"2026-01-2{i}", samples=0), subject=early, failure="read-only")
        for i in range(3)
    ]
    (item,) = comparing.compare(good, bad).skipped
    assert item.lost and said("all-runs-after-failed-2", item.why)


def test_a_run_is_not_compared_with_itself(site: Path) -> None:
    nights(site, 2, 0)
    done = compare("old", "old")
    assert done.exit_code == 2
    said("old-old-share-runs", done.stderr)


def test_runs_that_begin_alike_are_compared(tmp_path: Path) -> None:
    """Those of different content are two, even where their first values are the same."""
    measured = results.result(results.per_process(), repetitions=3)
    results.write(measured, tmp_path / "a" / "result.json")
    for repetition in measured["repetitions"][1:]:
        for phase in repetition["streams"][0]["dumps"][-1]["phases"]:
            phase["rank_s"] = {key: 3 * value for key, value in phase["rank_s"].items()}
    results.write(measured, tmp_path / "b" / "result.json")
    sketches = {producers.sketch(producers.load(tmp_path / f / "result.json")) for f in "ab"}
    assert len(sketches) == 1
    done = CliRunner().invoke(main, ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert "share" not in done.output and done.exit_code in (0, 1), done.output


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
    result = comparing.compare([row(d) for d in days[0]], [row(d, **after) for d in days[1]], [])
    (item,) = result.skipped
    assert item.why.startswith(message) and not result.verdicts
    assert result.status(0.1) == 3 and result.failed == ((0, 3), (0, 3))


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

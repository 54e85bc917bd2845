"""What commands print for programs: JSON of contracts in schemas/, and JUnit XML."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
from click.testing import CliRunner, Result

from tests.support import results as samples
from tests.test_accept import STORAGE, marks
from tests.test_campaign import campaign, here, stand_in
from understudy import producers
from understudy.cli import main
from understudy.contracts import workload
from understudy.contracts.run import Identity, Place
from understudy.paths import where
from understudy.records import store

__all__ = ["here", "stand_in"]  # fixtures

KINDS = ("campaign", "comparison", "report", "trend", "verdict")
HOSTILE = "n\x1b[31m </testcase>&\"'\\ \n\N{RIGHT-TO-LEFT OVERRIDE}]]> \x00"
WORKLOAD = "n-n"


def invoke(*words: object, status: int = 0) -> Result:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == status, done.output
    return done


def valid(text: str, kind: str) -> dict[str, Any]:
    """A document by its own schema; its text has no character that a terminal obeys."""
    assert text.isascii() and text.replace("\n", "").isprintable()

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    row: dict[str, Any] = json.loads(text, parse_constant=refuse)
    schema = json.loads((where("schemas") / f"{kind}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(row, schema, jsonschema.Draft202012Validator)
    assert row["schema"] == f"understudy/{kind}/1"
    return row


def keep(folder: Path, upgrade: bool = True) -> Path:
    """Twelve nights in which a case of a hostile name loses half, with a failure and an upgrade:
    the folder of records."""
    for night in range(12):
        row = samples.result(workload.get(WORKLOAD), seed=night, speed=1 if night < 6 else 0.5)
        row["environment"]["started"] = f"2026-01-{night + 1:02d}T01:00:00Z"
        record = producers.record(
            samples.write(row, folder / f"{night}.json"),
            place=Place(system="sample", partition="disk", environment="gnu"),
            identity=Identity(session=f"s-{night}", case=f"Replay {HOSTILE}"),
            failure=HOSTILE if night == 3 else None,
            exit_status=1 if night == 3 else 0,
        )
        server = "2.15" if night < 6 or not upgrade else HOSTILE
        record = replace(
            record, cache=STORAGE, storage=replace(record.storage, server_version=server)
        )
        store.keep(record, folder / "kept")
    return folder / "kept"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return keep(tmp_path)


def before_and_after(kept: Path) -> tuple[Path, Path]:
    sides = kept.parent / "before", kept.parent / "after"
    for side, nights in zip(sides, (range(6), range(6, 12)), strict=True):
        for night in nights:
            shutil.copytree(kept / f"s-{night}", side / f"s-{night}")
    return sides


def test_a_comparison(kept: Path) -> None:
    words = ("compare", *before_and_after(kept), "--across", "storage.server_version")
    row = valid(invoke(*words, "--json").stdout, "comparison")
    assert row["verdicts"][0]["state"] == "slower"
    assert row["verdicts"][0]["case"] == f"Replay {HOSTILE}"
    assert row["failed_runs"] == {"before": [1, 6], "after": [0, 6]}


def test_one_night_has_no_bound_and_no_infinity(kept: Path) -> None:
    before, after = kept / "s-0", kept / "s-6"
    words = ("compare", before, after, "--across", "storage.server_version")
    row = valid(invoke(*words, "--nights-differ", "99.99%", "--json").stdout, "comparison")
    assert [verdict["state"] for verdict in row["verdicts"]] == ["not decided"] * len(
        row["verdicts"]
    )


def test_a_trend(kept: Path) -> None:
    (kept / "s-3" / "broken.json.gz").write_text("damaged")
    done = invoke("trend", "--system", "sample", "--folder", kept, "--json")
    row = valid(done.stdout, "trend")
    assert (row["status"], row["runs"], row["unread"]) == (1, 12, 1)
    (figure,) = (f for f in row["figures"] if f["stream"] is None or f["changes"])
    (change,) = figure["changes"]
    assert (change["state"], change["time"][:10], change["open"]) == ("slower", "2026-01-07", True)
    assert (len(row["failures"]), len(row["upgrades"]), len(figure["sessions"])) == (1, 1, 11)
    why = ("--acknowledge", "Replay@2026-01-07", "--why", HOSTILE, "--by", "me")
    done = invoke("trend", "--system", "sample", "--folder", kept, "--json", *why)
    [change] = valid(done.stdout, "trend")["figures"][0]["changes"]
    assert change["acknowledged_by"] == "me" and not change["open"]


@pytest.mark.parametrize("upgrade", [True, False])
def test_a_report(upgrade: bool, tmp_path: Path) -> None:
    done = invoke("report", keep(tmp_path, upgrade), "-o", tmp_path / "p.html", "--json")
    row = valid(done.stdout, "report")
    assert row["page"] == str(tmp_path / "p.html") and (row["runs"], row["failed_runs"]) == (12, 1)
    assert {case["state"] for case in row["cases"]} >= {"failed"}
    assert [case["state"] for case in row["changes"]] == ["slower"] * (not upgrade)
    assert row["undrawn"] == [] and "\x1b" not in done.stderr


def test_a_verdict(kept: Path, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"name": "fast", "source": HOSTILE, "at_least": "9 GiB/s"},
        {"name": "calm", "metric": "fidelity", "at_most": "10 %", "allow_failed": 1},
        {"name": "none", "method": "hdf5", "at_least": "1 MiB/s"},
    ]
    file = marks(tmp_path, *({"workload": WORKLOAD, **row} for row in rows))
    page, junit = tmp_path / "p.html", tmp_path / "j.xml"
    done = invoke("accept", file, kept, "-o", page, "--json", "--junit", junit, status=1)
    row = valid(done.stdout, "verdict")
    assert [mark["verdict"] for mark in row["marks"]] == ["fail", "pass", "undecided"]
    suite = ElementTree.fromstring(junit.read_text())
    counts = {key: suite.get(key) for key in ("tests", "failures", "errors")}
    assert counts == {"tests": "3", "failures": "1", "errors": "1"}
    assert [[fault.tag for fault in case] for case in suite] == [["failure"], [], ["error"]]


def test_a_campaign(stand_in: Path) -> None:
    done = campaign("--after", "HOW=slow", "--json", turns=2)
    row = valid(done.stdout, "campaign")
    comparison = valid(json.dumps(row["comparison"]), "comparison")
    assert (row["turns_done"], row["turns_not_whole"]) == ([1, 2], [])
    assert [verdict["state"] for verdict in comparison["verdicts"]] == ["slower"]
    assert row["command"][:2] == ["understudy", "compare"]
    assert campaign("--json", "--dry-run").exit_code == 2


def test_junit_of_a_comparison_is_xml_whatever_its_names(kept: Path, tmp_path: Path) -> None:
    junit = tmp_path / "j.xml"
    words = ("compare", *before_and_after(kept), "--junit", junit)
    invoke(*words, "--across", "storage.server_version")
    suite = ElementTree.fromstring(junit.read_text())
    assert [case.tag for case in suite] == ["testcase"] * int(suite.get("tests", 0)) != []
    assert "\\x1b" in suite[0].get("name", "")


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_has_no_open_object_and_words_for_each_key(kind: str) -> None:
    schema = json.loads((where("schemas") / f"{kind}.schema.json").read_text())
    seen = 0

    def look(part: dict[str, Any]) -> None:
        nonlocal seen
        if "properties" in part:
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
            for key, schema_of_key in part["properties"].items():
                seen += 1
                assert schema_of_key.get("description"), key
                look(schema_of_key)
        if "items" in part:
            look(part["items"])

    look(schema)
    assert seen > 10

"""Acceptance: the file of marks and its mistakes, each metric, the verdict, the page to sign."""

import gzip
import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support import results as samples
from tests.support.needs import needs
from tests.support.said import said
from understudy import cli, producers
from understudy.contracts import acceptance, acceptance_plan, run, schema, workload
from understudy.contracts.run import Identity, Place, Run
from understudy.judge.acceptance import marks as judge
from understudy.paths import files
from understudy.records import ledger, store
from understudy.report import pdf

MIB = 1 << 20
NAME = "n-n"
STORAGE = {"node_memory_bytes": 1, "may_serve": []}  # every run moves more


def marks(folder: Path, *rows: dict[str, Any], **more: Any) -> Path:
    """A file of marks; each row is completed."""
    base = {"name": "mark", "source": "Contract, row 1", "metric": "bandwidth", "workload": NAME}
    every = [base | ({"at_least": "1 MiB/s"} if "metric" not in row else {}) | row for row in rows]
    text = yaml.safe_dump(
        {
            "schema": "understudy/acceptance/1",
            "title": "New storage",
            "system": "sample",
            "supplier": "S",
            "customer": "C",
            "since": "2026-01-01",
            "until": "2026-02-01",
            "marks": every,
        }
        | more
    )
    path = folder / "marks.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def played(
    tmp_path: Path,
    k: int,
    *,
    session: str | None = None,
    failure: str | None = None,
    cache: dict[str, Any] | None = STORAGE,
    campaign: str | None = None,
    **options: Any,
) -> Run:
    """A run of n-n in a session of its own; its seed is its number."""
    row = samples.result(workload.get(NAME), seed=k, **options)
    if {"mix_percent", "deadline_s"} & {*options}:
        row = samples.of_today(row)
    row["environment"]["started"] = f"2026-01-{k % 28 + 1:02d}T00:00:{k // 28:02d}Z"
    run_ = producers.record(
        samples.write(row, tmp_path / f"{k}.json"),
        place=Place(system="sample", partition="disk", environment="gnu"),
        identity=Identity(
            session=session or f"session {k}", campaign=campaign, case=f"Replay %workload={NAME}"
        ),
        failure=failure,
        exit_status=1 if failure else 0,
    )
    return replace(run_, cache=cache)


def finding(tmp_path: Path, runs: list[Run], **row: Any) -> judge.Finding:
    (result,) = judge.judge(acceptance.load(marks(tmp_path, row)), runs).findings
    return result


def accept(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["accept", *map(str, arguments)])


def seven(tmp_path: Path, **options: Any) -> list[Run]:
    return [played(tmp_path, k, **options) for k in range(7)]


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return keep(tmp_path / "r", seven(tmp_path))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    kept = tmp_path / "kept"
    monkeypatch.setenv("UNDERSTUDY_RECORDS", str(kept))
    return kept


@pytest.fixture
def stored(tmp_path: Path, site: Path) -> Path:
    """The folder of a site with seven records."""
    for run_ in seven(tmp_path):
        store.keep(run_)
    return site


# The file


def test_the_examples_are_valid() -> None:
    result = files("acceptance", ".yaml")
    assert "example" in result
    for path in result.values():
        assert acceptance.load(path).marks


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"at_least": "200 MiB"}, "mark 1 (mark): at_least: expected bytes in a second"),
        ({"at_least": 200}, "mark 1 (mark): at_least: 200 is not of type 'string'"),
        (
            {"atleast": "1 MiB/s"},
            "mark 1 (mark): Additional properties are not allowed ('atleast'",
        ),
        ({"metric": "speed"}, "mark 1 (mark): metric: 'speed' is not one of"),
        ({"metric": "restart"}, "mark 1 (mark): at_most: missing: restart needs it, such as 90 s"),
        ({"metric": "restart", "at_least": "90 s"}, "restart has the limit at_most"),
        ({"metric": "fidelity", "at_most": "10 parts"}, "expected a share, such as 10 %"),
        ({"metric": "survival", "at_least": "2.5 runs"}, "expected a number of runs"),
        ({"workload": "no-such"}, "mark 1 (mark): workload: 'no-such' is unknown; expected"),
        ({"program": "mdtest"}, "mark 1 (mark): program: expected player or skeleton"),
        ({"operation": "erase"}, "expected write or read, found 'erase'"),
        ({"metric": "metadata-rate", "at_least": "5 /s"}, "mark 1 (mark): operation: missing"),
        ({"sessions": 4}, "mark 1 (mark): sessions: expected at least 5 for the median, found 4"),
        ({"metric": "data-errors", "at_most": "0 B", "cache": "allowed"}, "does not take it"),
        ({"metric": "dump-time", "at_most": "1 s", "quantile": "120 %"}, "50 % to 100 %, fou"),
        ({"metric": "dump-time", "at_most": "1 s", "quantile": "2 %"}, "50 % to 100 %, found '2 "),
        ({"metric": "dump-time", "at_most": "1 s", "quantile": "p99"}, "quantile: expecte"),
        ({"quantile": "95 %"}, "mark 1 (mark): quantile: bandwidth does not take it"),
        ({"where": {"storge.type": "x"}}, "mark 1 (mark): where.storge.type: no key of a cond"),
        ({"where": {"place.job_id": "1"}}, "mark 1 (mark): where.place.job_id: no key of a cond"),
        ({"where": {"storage.type.x": 1}}, "where.storage.type.x: no key of a condition"),
        ({"until": "2026-02-30"}, "until: expected a day of the calendar"),
        ({"until": "2025-12-31"}, "until: expected a time after since, 2026-01-01, found"),
        ({"night": "6 nights"}, "night: expected a time, such as 90 s"),
        ("", "top level: expected keys and values"),
        ("a: [", "not YAML"),
        ("schema: understudy/acceptance/2", "schema: expected understudy/acceptance/1"),
        ("schema: understudy/acceptance/1\ntitle: a\ntitle: b", "'title' stands twice at line 3"),
        ("? [a]\n: b", "not YAML"),
        ("a: !!python/object/apply:os.getcwd []", "not YAML"),
        ("a: &x [1]\nb: [*x, *x]", "alias *x: expected the value itself"),
    ],
)
def test_an_invalid_file_is_one_message(tmp_path: Path, row: Any, message: str) -> None:
    """By a key of its mark or of the file, or its whole text."""
    whole = {"until", "night"} & {*row}
    path = marks(tmp_path, {} if whole or isinstance(row, str) else row, **(row if whole else {}))
    if isinstance(row, str):
        path.write_text(row, encoding="utf-8")
    done = accept(path, tmp_path)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"understudy: {path}: ") and message in done.stderr


def test_each_mistake_is_a_message(tmp_path: Path) -> None:
    """Of the schema and of its meaning, in one mark or in several, counted as people count."""
    rows: list[dict[str, Any]] = [
        {"name": "a", "at_least": "200 MiB", "workload": "no-such"},
        {"name": "b", "metric": "speed", "atmost": "1 s"},
        {"name": "a"},
    ]
    done = accept(marks(tmp_path, *rows, until="soon", night="long"), tmp_path)
    assert done.exit_code == 2
    told = [line.partition("marks.yaml: ")[2] for line in done.stderr.splitlines()]
    for place in (
        "mark 1 (a): at_least: expected bytes",
        "mark 1 (a): workload: 'no-such'",
        "mark 2 (b): Additional properties",
        "mark 2 (b): metric: 'speed'",
        "mark 3 (a): name: is the name of another",
        "until: ",
    ):
        assert sum(line.startswith(place) for line in told) == 1, (place, told)


# Verdicts


def test_a_run_that_failed_early_is_of_its_case(tmp_path: Path) -> None:
    lost = producers.record(
        tmp_path / "missing.json",
        failure="no such program",
        producer="player",
        place=Place(system="sample", partition="disk"),
        identity=Identity(
            session="x",
            case=f"Replay %workload={NAME} %method=posix",
            time="2026-01-02T00:00:00Z",
        ),
    )
    assert lost.producer.workload is None
    assert finding(tmp_path, [lost], at_least="1 MiB/s").state == "fail"
    assert finding(tmp_path, [lost], at_least="1 MiB/s", method="hdf5").why == "not run"


def test_metadata_rates_are_of_mdtest(tmp_path: Path) -> None:
    mark = {
        "metric": "metadata-rate",
        "at_least": "100 /s",
        "operation": "File creation",
        "workload": "mdtest-easy",
    }
    rate = {"operation": "File creation", "metric": "rate_per_s", "unit": "1/s", "repetition": 0}
    row: dict[str, Any] = {
        "schema": "understudy/mdtest/1",
        "name": "mdtest-easy",
        "options": {},
        "environment": {
            "version": "4.0.0",
            "command_line": ["mdtest"],
            "ranks": 4,
            "nodes": 1,
            "started": "2026-01-01T00:00:00Z",
            "directory": "/scratch",
        },
        "finished": True,
    }
    runs = []
    for k in range(5):
        row["rates"] = [rate | {"value": 5000.0 + k}]
        row["environment"]["started"] = f"2026-01-0{k + 1}T00:00:00Z"
        run_ = producers.record(
            samples.write(row, tmp_path / "m.json"), place=Place(system="sample")
        )
        runs.append(replace(run_, identity=replace(run_.identity, session=str(k))))
    assert finding(tmp_path, runs, **mark).state == "pass"
    other = finding(tmp_path, runs, **(mark | {"operation": "File stat"}))
    assert other.state == "undecided" and said("only-file-creation", other.why)


def test_the_dates_limit_the_runs(tmp_path: Path) -> None:
    path = marks(tmp_path, {"statistic": "every"}, since="2026-01-03", until="2026-01-06")
    verdict = judge.judge(acceptance.load(path), seven(tmp_path))
    assert len(verdict.findings[0].rows) == 3


# What was run is pinned


def pinned(tmp_path: Path, runs: list[Run], **row: Any) -> judge.Finding:
    return finding(tmp_path, runs, at_least="1 MiB/s", **row)


def test_a_workload_of_the_name_with_other_content_does_not_count(tmp_path: Path) -> None:
    smaller = replace(workload.get(NAME), description="one sixty-fourth")
    runs = []
    for k in range(7):
        row = samples.result(smaller, seed=k)
        row["environment"]["started"] = f"2026-01-{k + 1:02d}T00:00:00Z"
        run_ = producers.record(
            samples.write(row, tmp_path / f"{k}.json"),
            place=Place(system="sample"),
            identity=Identity(session=str(k)),
        )
        runs.append(replace(run_, cache=STORAGE))
    run_ = pinned(tmp_path, runs)
    assert run_.state == "undecided" and len(run_.left_out) == 7 and not run_.rows
    said("run-runs-left-out", run_.why)
    rest = runs[0].producer.workload
    assert rest is not None
    assert pinned(tmp_path, runs, workload_sha256=rest.sha256).state == "pass"


def test_bytes_that_were_scaled_do_not_count(tmp_path: Path) -> None:
    options = {"bytes_scale": 1 / 64}
    runs = [
        replace(run_, producer=replace(run_.producer, options=run_.producer.options | options))
        for run_ in seven(tmp_path)
    ]
    scaled = pinned(tmp_path, runs)
    assert scaled.state == "undecided" and said("bytes-multiplied", scaled.why)
    where = {"producer.options.bytes_scale": 1 / 64}
    assert pinned(tmp_path, runs, where=where).state == "pass"


@pytest.mark.parametrize(
    ("options", "why"),
    [({"mix_percent": 30}, "run-mixed-reads"), ({"deadline_s": 1.5}, "run-has-a-deadline")],
)
def test_runs_that_move_other_bytes_by_their_options_do_not_count(
    tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    runs = [*seven(tmp_path), played(tmp_path, 8, **options)]
    result = pinned(tmp_path, runs)
    assert result.state == "pass" and len(result.rows) == 7 and said(why, result.omitted)
    where = {f"producer.options.{key}": value for key, value in options.items()}
    assert len(pinned(tmp_path, runs, where=where).rows) == 1


def test_a_payload_that_a_deadline_bounds_is_no_fidelity(tmp_path: Path) -> None:
    run_ = played(tmp_path, 1, deadline_s=1e-3)
    assert run_.measurement is not None
    both = {"min": 1, "max": 2}
    ends = {"stopped_ranks": 1, "bytes": 1, "rank_bytes": both, "rank_transfers": both}
    for dump in run_.measurement["repetitions"][0]["streams"][0]["dumps"]:
        dump |= {"bytes": dump["bytes"] // 2, "deadline": ends}
    mark = {"metric": "fidelity", "at_most": "10 %"}
    mark["where"] = {"producer.options.deadline_s": 1e-3}
    result = finding(tmp_path, [run_], **mark)
    assert result.state == "undecided" and said("deadline-bounded-the-payload", result.why)


def test_runs_of_a_campaign_do_not_count_for_a_mark_of_none(tmp_path: Path) -> None:
    runs = [*seven(tmp_path), *(played(tmp_path, k, campaign="degraded") for k in range(8, 11))]
    result = pinned(tmp_path, runs)
    assert result.state == "pass" and len(result.rows) == 7
    said("runs-left-out-campaign", result.omitted)


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        (("identity", "time"), "2026-01-09T00:00:00Z", "identity.time: differs from the meas"),
        (("producer", "workload", "sha256"), "0" * 64, "producer.workload: differs from the m"),
        (("storage", "type"), "lustre", "storage.type: differs from the measurement's"),
    ],
)
def test_a_record_that_contradicts_its_measurement_does_not_count(
    records: Path, tmp_path: Path, keys: tuple[str, ...], value: str, message: str
) -> None:
    row = json.loads((records / "0" / "run.json").read_text())
    inner = row
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    (records / "0" / "run.json").write_text(json.dumps(row))
    done = accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and message in done.stderr


# The page and the command


def keep(folder: Path, runs: list[Run]) -> Path:
    for k, run_ in enumerate(runs):
        (folder / str(k)).mkdir(parents=True)
        run.write(folder / str(k) / "run.json", run_)
    return folder


@pytest.mark.parametrize(
    ("row", "state", "status"),
    [
        ({"at_least": "1 MiB/s"}, "pass", 0),
        ({"at_least": "9 GiB/s"}, "fail", 1),
        ({"method": "hdf5"}, "undecided", 3),
    ],
)
def test_status_and_json(
    records: Path, tmp_path: Path, row: dict[str, Any], state: str, status: int
) -> None:
    page = tmp_path / "page.html"
    done = accept(marks(tmp_path, row), records, "-o", page, "--json")
    assert done.exit_code == status, done.output
    row_ = json.loads(done.stdout)
    assert (row_["verdict"], row_["marks"][0]["verdict"]) == (state, state)
    hashes = [o["value"] for o in row_["origins"] if o["what"] == "workload"]
    assert [len(h) for h in hashes] == ([] if state == "undecided" else [64])


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    path, kept = marks(tmp_path, {}), keep(tmp_path / "kept", seven(tmp_path))
    page = tmp_path / "page.html"
    page.write_text("mine")
    done = accept(path, kept, "-o", page)
    assert done.exit_code == 2 and "exists already" in done.stderr
    assert page.read_text() == "mine"
    for force in (["--force"], []):
        assert accept(path, kept, "-o", page, *force).exit_code != 2
    assert page.read_text() != "mine"


def test_nothing_that_is_read_is_written_over(records: Path, tmp_path: Path) -> None:
    path = marks(tmp_path, {})
    for target in (path, records / "0" / "run.json"):
        before = target.read_bytes()
        done = accept(path, records, "-o", target)
        assert done.exit_code == 2 and said("read-this-command", done.stderr)
        assert target.read_bytes() == before


def test_the_page_is_the_same_for_the_same_records(records: Path, tmp_path: Path) -> None:
    path = marks(tmp_path, {})
    texts = []
    for name in ("a.html", "b.html"):
        assert accept(path, records, "-o", tmp_path / name).exit_code == 0
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]
    assert texts[0].index(b"Accepted: 1 of 1 marks passed.") < texts[0].index(b"<section")
    assert acceptance.load(path).sha256.encode() in texts[0]


def test_text_from_outside_is_escaped(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script>\x1b[2J\u202e"
    records = keep(tmp_path / "r", [played(tmp_path, 1, failure=bad)])
    row = {"source": "<b>annex</b>", "at_least": "1 MiB/s"}
    done = accept(marks(tmp_path, row, title="<i>x"), records, "-o", tmp_path / "p.html")
    assert done.exit_code == 1 and "\x1b" not in done.output
    text = (tmp_path / "p.html").read_text()
    assert "<script" not in text and "<b>annex" not in text and "<i>x" not in text
    assert "\x1b" not in text and "\u202e" not in text


def test_a_damaged_record_is_named_and_counted(records: Path, tmp_path: Path) -> None:
    (records / "0" / "run.json").write_text("{", encoding="utf-8")
    done = accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--json")
    row = json.loads(done.stdout)
    assert row["unread"] == 1 and "left out" in done.stderr
    text = (tmp_path / "p.html").read_text()
    assert said("records-cannot-relied", text) and str(records / "0" / "run.json") in text
    assert done.exit_code == 3 and row["verdict"] == "undecided"
    said("decided-marks-passed-fault", text)


def test_the_page_dates_all_runs(records: Path, tmp_path: Path) -> None:
    accept(marks(tmp_path, {"method": "hdf5"}), records, "-o", tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    said("runs-from", text)


def test_no_browser_is_said_and_fails_nothing(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "browser", lambda: None)
    done = accept(
        marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--pdf", tmp_path / "p.pdf"
    )
    assert done.exit_code == 0 and "install chromium" in done.stderr
    assert not (tmp_path / "p.pdf").exists()


@needs("Chromium")
def test_the_pdf_is_made_from_the_page(records: Path, tmp_path: Path) -> None:
    runs = []
    for name in ("a.pdf", "b.pdf"):
        accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--pdf", tmp_path / name)
        runs.append((tmp_path / name).read_bytes())
    assert runs[0] == runs[1] and runs[0].startswith(b"%PDF-")


def test_a_name_of_a_plugin_directory_is_a_file(records: Path, tmp_path: Path) -> None:
    assert accept("example", records, "-o", tmp_path / "p.html").exit_code == 3
    done = accept("no-such", records, "-o", tmp_path / "p.html")
    assert done.exit_code == 2 and "example" in done.stderr


def test_the_kept_records_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for run_ in seven(tmp_path):
        store.keep(run_, tmp_path / "kept")
    monkeypatch.setenv("UNDERSTUDY_RECORDS", str(tmp_path / "kept"))
    assert accept(marks(tmp_path, {}), "-o", tmp_path / "p.html").exit_code == 0


# The plan and the ledger


def planned(folder: Path, path: Path, *more: object) -> Path:
    target = folder / "plan.json"
    done = accept("plan", path, "-o", target, "--sessions", 7, *more)
    assert done.exit_code == 0, done.output
    assert done.stdout.count("-S turn=accept-") == 7
    return target


def in_turn(run_: Run, plan: Path, number: int) -> Run:
    turn = acceptance_plan.load(plan).turn(number)
    return replace(run_, identity=replace(run_.identity, turn=turn))


def test_what_was_planned_and_not_run_is_named(tmp_path: Path, site: Path) -> None:
    path = marks(tmp_path, {})
    plan = planned(tmp_path, path)
    for k, run_ in enumerate(seven(tmp_path)):
        if k != 3:
            store.keep(in_turn(run_, plan, k + 1))
    store.keep(played(tmp_path, 20))  # of no plan
    done = accept(path, "--plan", plan, "-o", tmp_path / "p.html", "--json")
    row = json.loads(done.stdout)
    assert done.exit_code == 3 and row["marks"][0]["missing_sessions"] == [4]
    assert row["marks"][0]["left_out"] == ["not planned"]
    told = "7 sessions planned, 6 run, 0 with failed runs, missing: 4"
    assert row["sessions"].startswith(told) and told in (tmp_path / "p.html").read_text()
    store.keep(in_turn(played(tmp_path, 21), plan, 4))
    done = accept(path, "--plan", plan, "-o", tmp_path / "p.html")
    assert done.exit_code == 0 and "none missing" in " ".join(done.stdout.split()), done.output


def test_a_plan_that_was_edited_or_is_of_other_marks_is_refused(
    tmp_path: Path, site: Path
) -> None:
    path = marks(tmp_path, {})
    plan = planned(tmp_path, path)
    store.keep(in_turn(seven(tmp_path)[0], plan, 1))
    row = json.loads(plan.read_text())
    (tmp_path / "edited.json").write_text(json.dumps(row | {"sessions": 3}))
    done = accept(path, "--plan", tmp_path / "edited.json", "-o", tmp_path / "p.html")
    assert done.exit_code == 2 and said("plan-was-edited", done.stderr)
    marks(tmp_path, {"at_least": "2 MiB/s"})
    done = accept(path, "--plan", plan, "-o", tmp_path / "p.html")
    assert done.exit_code == 2 and said("file-plan", done.stderr)


def test_too_few_sessions_are_not_planned(tmp_path: Path, site: Path) -> None:
    done = accept("plan", marks(tmp_path, {}), "-o", tmp_path / "x", "--sessions", 4)
    assert done.exit_code == 2 and "--sessions 4: expected 5" in done.stderr


def test_records_that_went_away_or_were_edited_are_named(tmp_path: Path, site: Path) -> None:
    path, page = marks(tmp_path, {}), tmp_path / "p.html"
    kept = [store.keep(run_) for run_ in seven(tmp_path)]
    assert accept(path, "-o", page).exit_code == 0
    head = ledger.audit(site)
    assert head and said("ledger-head", page.read_text(), head_head=head.head)
    whole = kept[2].read_bytes()
    kept[2].unlink()
    done = accept(path, "-o", page)
    assert done.exit_code == 3 and f"{kept[2]}: is missing" in done.stderr
    kept[2].write_bytes(whole)
    row = json.loads(gzip.decompress(whole))
    row["measurement"]["verification"]["wrong_bytes"] = 0
    row["measurement"]["environment"]["host"] = "another"
    kept[2].write_bytes(gzip.compress(json.dumps(row).encode()))
    done = accept(path, "-o", page)
    assert done.exit_code == 3 and said("was-changed-after-was", done.stderr, kept=kept[2])
    kept[2].write_bytes(whole)
    assert accept(path, "-o", page).exit_code == 0
    lines = (site / ledger.FILE).read_text().splitlines(keepends=True)
    (site / ledger.FILE).write_text("".join(lines[:4] + lines[6:]))
    done = accept(path, "-o", page)
    assert done.exit_code == 3 and f"{kept[2]}: is not in the ledger" in done.stderr


def test_a_record_that_a_command_removed_shows(tmp_path: Path, stored: Path) -> None:
    path = marks(tmp_path, {})
    run_records("prune", "--session", "session 6", "--yes")
    done = accept(path, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and "was removed" in done.stderr
    done = accept(marks(tmp_path, {}, until="2026-01-07"), "-o", tmp_path / "p.html")
    assert done.exit_code == 0, done.output


def run_records(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["records", *map(str, arguments)])


def test_a_rewritten_ledger_is_not_that_of_the_plan(tmp_path: Path, site: Path) -> None:
    runs = seven(tmp_path)
    store.keep(played(tmp_path, 20))
    path = marks(tmp_path, {})
    plan = planned(tmp_path, path)
    (site / ledger.FILE).unlink()
    for k, run_ in enumerate(runs):
        store.keep(in_turn(run_, plan, k + 1))
    done = accept(path, "--plan", plan, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and "does not begin with what it was when the plan" in done.stderr


@needs("OpenSSH")
def test_a_signature_of_the_ledger(tmp_path: Path, stored: Path) -> None:
    key, signers = tmp_path / "key", tmp_path / "signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_name("key.pub").read_text()
    signers.write_text(f"admin@site {public}")
    path, page = marks(tmp_path, {}), tmp_path / "p.html"
    unsigned = accept(path, "--signers", signers, "-o", page)
    assert unsigned.exit_code == 3 and "SHA256SUMS.sig: not found" in unsigned.stderr
    assert run_records("sign", key).exit_code == 0
    done = accept(path, "--signers", signers, "-o", page)
    assert done.exit_code == 0 and said("signed-admin-site", page.read_text()), done.output
    store.keep(played(tmp_path, 20))
    later = accept(path, "--signers", signers, "-o", page)
    assert later.exit_code == 3 and "sign it after the last record" in later.stderr
    assert run_records("verify", "--signers", signers).exit_code == 1
    lines = (stored / ledger.FILE).read_text().splitlines(keepends=True)
    (stored / ledger.FILE).write_text("".join([*lines[1:], lines[0]]))
    done = run_records("verify", "--signers", signers)
    assert done.exit_code == 1 and "is no signature of SHA256SUMS as it is by" in done.stderr


def test_several_sessions_write_one_ledger(tmp_path: Path, site: Path) -> None:
    runs = seven(tmp_path)
    for run_ in runs[:2]:
        store.keep(run_)
    code = (
        "import sys; from pathlib import Path; from understudy.contracts import run\n"
        "from understudy.records import ledger, store\n"
        "for path in sys.argv[1:]: store.keep(run.load(Path(path)))"
    )
    kept = keep(tmp_path / "r", runs)
    started = [
        subprocess.Popen([sys.executable, "-c", code, kept / str(k) / "run.json"])
        for k in range(2, 7)
    ]
    assert [run_.wait() for run_ in started] == [0] * 5
    audit = ledger.audit(site)
    assert audit and (audit.records, audit.faults) == (7, ())


FORMER = ("action", "file", "sha256", "time", "system", "previous")


def former(site: Path) -> list[str]:
    """Replace the ledger by one of an earlier version; its lines."""
    rows = [json.loads(line[2:]) for line in ledger_text(site) if line.startswith("#")]
    sums = {line[66:]: line[:64] for line in ledger_text(site) if not line.startswith("#")}
    lines: list[str] = []
    previous = "0" * 64
    for row in rows:
        sha256 = sums[row["file"]] if row["action"] == "kept" else None
        full = row | {"sha256": sha256, "previous": previous}
        assert set(full) == set(FORMER)
        lines.append(f"{schema.canonical(full)}\n")
        previous = hashlib.sha256(lines[-1].encode()).hexdigest()
    (site / ledger.FILE).unlink()
    (site / "ledger.jsonl").write_text("".join(lines))
    return lines


def ledger_text(site: Path) -> list[str]:
    return (site / ledger.FILE).read_text().splitlines()


def test_a_ledger_of_an_earlier_version_is_continued(tmp_path: Path, site: Path) -> None:
    *first, last = seven(tmp_path)
    for item in first:
        store.keep(item)
    run_records("prune", "--session", "session 3", "--yes")
    before = ledger.audit(site)
    lines = former(site)
    read = ledger.audit(site)  # without a new file
    assert read and before and not (site / ledger.FILE).exists()
    assert (read.records, read.faults) == (before.records, before.faults) == (5, before.faults)
    assert [fault.what for fault in read.faults] == ["was removed"]
    store.keep(last)
    after = ledger.audit(site)
    assert after and (after.records, after.faults) == (6, before.faults)
    head = hashlib.sha256(lines[4].encode()).hexdigest()
    assert head in after.heads, "a plan of then knows it"
    (site / "ledger.jsonl").write_text("".join(lines[:2] + lines[3:]))
    edited = ledger.audit(site)
    assert edited and "line 3 does not follow the one before" in [f.what for f in edited.faults]


def test_sha256sum_reads_the_ledger(tmp_path: Path, stored: Path) -> None:
    odd = stored / "odd" / "a\\b\nc\u2028d" / "run.json"
    odd.parent.mkdir(parents=True)
    odd.write_text("{}")
    (stored / ledger.FILE).unlink()
    store.keep(played(tmp_path, 20))
    run_records("prune", "--session", "session 6", "--yes")
    check = ["sha256sum", "--ignore-missing", "--strict", "-c", ledger.FILE]
    done = subprocess.run(check, cwd=stored, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.count(": OK") == 8, done.stderr
    audit = ledger.audit(stored)
    assert audit and audit.records == 8 and all(fault.told for fault in audit.faults)
    odd.write_text("[]")
    done = subprocess.run(check, cwd=stored, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout.count(": FAILED") == 1
    edited = ledger.audit(stored)
    assert edited and [f.what for f in edited.faults if not f.told] == [
        "was changed after it was kept"
    ]


def test_a_ledger_vouches_for_its_own_folder_only(tmp_path: Path, site: Path) -> None:
    path = marks(tmp_path, {})
    plan = planned(tmp_path, path)
    store.keep(played(tmp_path, 20))
    others = keep(
        tmp_path / "r", [in_turn(run_, plan, k + 1) for k, run_ in enumerate(seven(tmp_path))]
    )
    done = accept(path, site, others, "--plan", plan, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and said("no-ledger-records", done.stderr)
    done = accept(path, site, others, "-o", tmp_path / "p.html")
    said("no-ledger", " ".join(done.stdout.split()))


def test_a_ledger_that_is_a_link_is_refused(tmp_path: Path, site: Path) -> None:
    store.keep(seven(tmp_path)[0])
    (site / ledger.FILE).rename(tmp_path / "other")
    (site / ledger.FILE).symlink_to(tmp_path / "other")
    done = accept(marks(tmp_path, {}), "-o", tmp_path / "p.html")
    assert done.exit_code == 2 and "SHA256SUMS: is a symbolic link" in done.stderr


def test_what_a_command_removed_is_no_fault_of_the_folder(tmp_path: Path, stored: Path) -> None:
    run_records("prune", "--session", "session 6", "--yes")
    done = run_records("verify")
    assert done.exit_code == 0 and said(
        "removed-set-aside-commands", " ".join(done.stdout.split())
    )


def test_two_records_of_one_measurement_with_other_facts_do_not_count(tmp_path: Path) -> None:
    runs = seven(tmp_path)
    edited = [replace(run_, cache=STORAGE | {"node_memory_bytes": 2}) for run_ in runs]
    records = keep(tmp_path / "b", runs)
    keep(tmp_path / "a", edited)
    done = accept(marks(tmp_path, {}), tmp_path / "a", records, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and done.stderr.count("has other content; neither counts") == 7


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda m: m["repetitions"][0]["streams"][0]["dumps"][0].update(described_bytes=1),
            "described_bytes: expected",
        ),
        (lambda m: m["environment"].update(started="2026-01-01T23:59:60Z"), "identity.time: e"),
    ],
)
def test_a_measurement_that_contradicts_itself_cannot_be_read(
    records: Path, tmp_path: Path, change: Any, message: str
) -> None:
    file = records / "0" / "run.json"
    row = json.loads(file.read_text())
    change(row["measurement"])
    row["identity"]["time"] = row["measurement"]["environment"]["started"]
    file.write_text(json.dumps(row))
    done = accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html")
    assert done.exit_code == 3 and message in done.stderr and "Traceback" not in done.stderr


def test_a_run_of_which_repetitions_are_missing_does_not_count(tmp_path: Path) -> None:
    runs = []
    for run_ in seven(tmp_path, repetitions=3):
        row = json.loads(json.dumps(run_.measurement))
        del row["repetitions"][1:]
        runs.append(replace(run_, measurement=row))
    result = finding(tmp_path, runs, at_least="1 MiB/s")
    assert result.state == "undecided" and said("runs-left-out-repetitions", result.omitted)


def test_a_run_took_at_least_as_long_as_its_dumps(tmp_path: Path) -> None:
    runs = []
    for run_ in seven(tmp_path):
        row = json.loads(json.dumps(run_.measurement))
        row["repetitions"][0]["elapsed_s"] = 1e-9
        runs.append(replace(run_, measurement=row))
    assert finding(tmp_path, runs, metric="elapsed", at_most="1 ms").state == "fail"


def test_records_of_before_the_ledger_are_taken_in(tmp_path: Path, site: Path) -> None:
    runs, two = seven(tmp_path)[:2]
    store.keep(runs)
    (site / ledger.FILE).unlink()
    store.keep(two)
    audit = ledger.audit(site)
    assert audit and (audit.records, audit.faults) == (2, ())


@pytest.mark.parametrize("text", ["{", "[1]\n", '# {"action": "kept"}\n', "\0\n", "# -\n"])
def test_a_damaged_ledger_is_one_message(tmp_path: Path, site: Path, text: str) -> None:
    store.keep(seven(tmp_path)[0])
    (site / ledger.FILE).write_text(text)
    done = accept(marks(tmp_path, {}), "-o", tmp_path / "p.html")
    assert (
        done.exit_code == 2 and "SHA256SUMS: line 1: expected a SHA-256 and a file" in done.stderr
    )
    assert done.stderr.count("\n") == 1

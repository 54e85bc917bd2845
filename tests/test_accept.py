"""Acceptance: the file of marks and its mistakes, each metric, the verdict, the page to sign."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from tests.support import results as samples
from tests.support.needs import needs
from understudy import cli, producers
from understudy.contracts import acceptance, run, workload
from understudy.contracts.run import Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.judge import acceptance as judge
from understudy.judge import change
from understudy.paths import files
from understudy.records import store
from understudy.report import pdf

MIB = 1 << 20
NAME = "n-n"
STORAGE = {"node_memory_bytes": 1 << 30, "may_serve": []}


def marks(folder: Path, *rows: dict[str, Any], **more: Any) -> Path:
    """A file of marks; each row is completed."""
    base = {"name": "mark", "source": "Contract, row 1", "metric": "bandwidth", "workload": NAME}
    every = [base | ({"at_least": "1 MiB/s"} if "metric" not in row else {}) | row for row in rows]
    text = yaml.safe_dump(
        {"schema": "understudy/acceptance/1", "title": "New storage", "system": "sample",
         "supplier": "S", "customer": "C", "marks": every} | more
    )  # fmt: skip
    path = folder / "marks.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def played(
    tmp_path: Path, k: int, *, session: str | None = None, failure: str | None = None,
    cache: dict[str, Any] | None = STORAGE, campaign: str | None = None, **options: Any,
) -> Run:  # fmt: skip
    """A run of n-n in a session of its own; its seed is its number."""
    row = samples.result(workload.get(NAME), seed=k, **options)
    row["environment"]["started"] = f"2026-01-{k % 28 + 1:02d}T00:00:{k // 28:02d}Z"
    made = producers.record(
        samples.write(row, tmp_path / f"{k}.json"),
        place=Place(system="sample", partition="disk", environment="gnu"),
        identity=Identity(
            session=session or f"session {k}", campaign=campaign, case=f"Replay %workload={NAME}"
        ),
        failure=failure,
        exit_status=1 if failure else 0,
    )
    return replace(made, cache=cache)


def finding(tmp_path: Path, found: list[Run], **row: Any) -> judge.Finding:
    (made,) = judge.judge(acceptance.load(marks(tmp_path, row)), found).findings
    return made


def accept(*arguments: object) -> Result:
    return CliRunner().invoke(cli.main, ["accept", *map(str, arguments)])


def seven(tmp_path: Path, **options: Any) -> list[Run]:
    return [played(tmp_path, k, **options) for k in range(7)]


# The file


def test_the_examples_are_valid() -> None:
    found = files("acceptance", ".yaml")
    assert "example" in found
    for path in found.values():
        assert acceptance.load(path).marks


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"at_least": "200 MiB"}, "marks.0.at_least (mark): expected bytes in a second"),
        ({"at_least": 200}, "marks.0.at_least: 200 is not of type 'string'"),
        ({"atleast": "1 MiB/s"}, "marks.0: Additional properties are not allowed ('atleast'"),
        ({"metric": "speed"}, "marks.0.metric: 'speed' is not one of"),
        ({"metric": "restart"}, "marks.0.at_most (mark): missing: restart needs it, such as 90 s"),
        ({"metric": "restart", "at_least": "90 s"}, "restart has the limit at_most"),
        ({"metric": "fidelity", "at_most": "10 parts"}, "expected a share, such as 10 %"),
        ({"metric": "survival", "at_least": "2.5 runs"}, "expected a number of runs"),
        ({"workload": "no-such"}, "marks.0.workload (mark): 'no-such' is unknown; expected"),
        ({"program": "mdtest"}, "marks.0.program (mark): expected player or skeleton"),
        ({"operation": "erase"}, "expected write or read, found 'erase'"),
        ({"metric": "metadata-rate", "at_least": "5 /s"}, "marks.0.operation (mark): missing"),
        ({"sessions": 4}, "marks.0.sessions (mark): expected at least 5 for the median, found 4"),
        ({"metric": "data-errors", "at_most": "0 B", "cache": "allowed"}, "does not take it"),
        ({"where": {"storge.type": "x"}}, "marks.0.where.storge.type (mark): no key of a cond"),
        ({"where": {"place.job_id": "1"}}, "marks.0.where.place.job_id (mark): no key of a cond"),
        ({"where": {"storage.type.x": 1}}, "where.storage.type.x (mark): no key of a condition"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_message(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    path = marks(tmp_path, row)
    with pytest.raises(UnderstudyError) as caught:
        acceptance.load(path)
    text = str(caught.value)
    assert text.startswith(str(path)) and message in text and "\n" not in text
    found = accept(path, tmp_path)
    assert found.exit_code == 2 and found.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "top level: expected keys and values"),
        ("a: [", "not YAML"),
        ("schema: understudy/acceptance/2", "schema: expected understudy/acceptance/1"),
        ("schema: understudy/acceptance/1\ntitle: a\ntitle: b", "'title' stands twice at line 3"),
        ("? [a]\n: b", "not YAML"),
        ("schema: understudy/acceptance/1", "is a required property"),
        ("a: !!python/object/apply:os.getcwd []", "not YAML"),
        ("a: &x [1]\nb: [*x, *x]", "alias *x: expected the value itself"),
    ],
)
def test_what_is_no_file_of_marks(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "marks.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnderstudyError, match=r"marks\.yaml: ") as caught:
        acceptance.load(path)
    assert message in str(caught.value)


def test_dates_are_text_and_names_are_unique(tmp_path: Path) -> None:
    made = acceptance.load(marks(tmp_path, {}, since="2026-01-05"))
    assert made.since == "2026-01-05"
    with pytest.raises(UnderstudyError, match="is the name of another mark"):
        acceptance.load(marks(tmp_path, {}, {}))


# Verdicts


def test_a_median_is_decided_by_its_interval_over_sessions(tmp_path: Path) -> None:
    found = seven(tmp_path)
    assert finding(tmp_path, found, at_least="10 MiB/s").state == "pass"
    assert finding(tmp_path, found, at_least="9 GiB/s").state == "fail"
    middle = finding(tmp_path, found, at_least="1 MiB/s").value
    assert middle is not None
    near = finding(tmp_path, found, at_least=f"{middle / MIB:.6f} MiB/s")
    assert near.state == "undecided" and "holds the limit" in near.why


def test_few_sessions_decide_nothing(tmp_path: Path) -> None:
    found = [played(tmp_path, k, session="one") for k in range(9)]
    made = finding(tmp_path, found, at_least="1 MiB/s")
    assert (made.state, made.why) == ("undecided", "1 session, 5 needed")


def test_what_was_not_run_is_not_passed(tmp_path: Path) -> None:
    made = finding(tmp_path, seven(tmp_path), at_least="1 MiB/s", method="hdf5")
    assert (made.state, made.why, made.rows) == ("undecided", "not run", ())


def test_a_failed_run_counts_against(tmp_path: Path) -> None:
    found = [*seven(tmp_path), played(tmp_path, 8, failure="killed")]
    made = finding(tmp_path, found, at_least="1 MiB/s")
    assert made.state == "fail" and "1 of 8 runs failed, at most 0 may" in made.why
    made = finding(tmp_path, found, at_least="1 MiB/s", allow_failed=1)
    assert made.state == "pass" and "1 of 8 runs failed" in made.why
    many = [*seven(tmp_path)[:5], *(played(tmp_path, k, failure="x") for k in range(8, 13))]
    made = finding(tmp_path, many, at_least="1 MiB/s", allow_failed=9)
    assert made.state != "pass"  # a tolerated failure still has no bandwidth


def test_a_run_that_failed_early_is_of_its_case(tmp_path: Path) -> None:
    lost = producers.record(
        tmp_path / "missing.json", failure="no such program", producer="player",
        place=Place(system="sample", partition="disk"),
        identity=Identity(session="x", case=f"Replay %workload={NAME} %method=posix"),
    )  # fmt: skip
    assert lost.producer.workload is None
    assert finding(tmp_path, [lost], at_least="1 MiB/s").state == "fail"
    assert finding(tmp_path, [lost], at_least="1 MiB/s", method="hdf5").why == "not run"


def test_different_conditions_are_not_pooled(tmp_path: Path) -> None:
    found = [played(tmp_path, k, fsync=k < 3) for k in range(7)]
    made = finding(tmp_path, found, at_least="1 MiB/s")
    assert made.state == "undecided" and "producer.options.fsync" in made.why
    where = {"producer.options.fsync": False}
    more = [*found, *(played(tmp_path, k) for k in range(7, 9))]
    made = finding(tmp_path, more, at_least="1 MiB/s", where=where)
    assert made.state == "pass" and len(made.rows) == 6


@pytest.mark.parametrize("known", [True, False])
def test_the_page_cache_passes_nothing(tmp_path: Path, known: bool) -> None:
    stream = workload.get(NAME).streams[0].name
    found = seven(tmp_path, cache=STORAGE | {"may_serve": [stream]} if known else None)
    made = finding(tmp_path, found, at_least="1 MiB/s")
    remedy = "move at least 1.00 GiB, the memory of all nodes" if known else "--mode accept"
    assert made.state == "undecided" and remedy in made.why
    assert finding(tmp_path, found, at_least="1 MiB/s", cache="allowed").state == "pass"
    assert finding(tmp_path, found, at_least="9 GiB/s").state == "fail"


def test_every_repetition_must_reach_it(tmp_path: Path) -> None:
    found = [played(tmp_path, k, repetitions=3) for k in range(3)]
    made = finding(tmp_path, found, at_least="1 MiB/s", statistic="every")
    assert made.state == "pass" and "all 9 repetitions" in made.why
    values = sorted(v for row in made.rows for v in row.values)
    between = f"{(values[0] + values[1]) / 2 / MIB:.6f} MiB/s"
    made = finding(tmp_path, found, at_least=between, statistic="every")
    assert made.state == "fail" and "1 of 9 repetitions missed" in made.why


def test_variability_is_that_of_sessions(tmp_path: Path) -> None:
    found = seven(tmp_path)
    assert finding(tmp_path, found, metric="variability", at_most="90 %").state == "pass"
    assert finding(tmp_path, found, metric="variability", at_most="0.1 %").state == "fail"
    made = finding(tmp_path, found[:1], metric="variability", at_most="90 %")
    assert (made.state, made.value) == ("undecided", None)


def test_fidelity_is_that_of_every_run(tmp_path: Path) -> None:
    found = [played(tmp_path, k) for k in range(2)]
    assert finding(tmp_path, found, metric="fidelity", at_most="10 %").state == "pass"
    half = min(d.bytes for s in workload.get(NAME).streams for d in s.dumps) // 2
    worse = [*found, played(tmp_path, 3, lost_bytes=half)]
    made = finding(tmp_path, worse, metric="fidelity", at_most="10 %")
    assert made.state == "fail" and "1 of 3 runs" in made.why


def test_contents_must_have_been_compared(tmp_path: Path) -> None:
    found = seven(tmp_path)
    assert finding(tmp_path, found, metric="data-errors", at_most="0 B").state == "pass"
    more = [*found, played(tmp_path, 9, verify=False)]
    made = finding(tmp_path, more, metric="data-errors", at_most="0 B")
    assert (made.state, made.why) == ("undecided", "contents compared in 7 of 8 runs")
    row = samples.result(workload.get(NAME))
    row["verification"] = {"bytes": 1000, "wrong_bytes": 3}
    bad = producers.record(samples.write(row, tmp_path / "bad.json"), place=found[0].place)
    made = finding(tmp_path, [*found, bad], metric="data-errors", at_most="0 B")
    assert made.state == "fail" and made.value == 3


def test_survival_counts_whole_runs_of_its_campaign(tmp_path: Path) -> None:
    mark = {"metric": "survival", "at_least": "3 runs", "campaign": "one-server-down"}
    others = seven(tmp_path)
    assert finding(tmp_path, others, **mark).why == "not run"
    down = [played(tmp_path, k, campaign="one-server-down") for k in range(10, 13)]
    assert finding(tmp_path, [*others, *down], **mark).state == "pass"
    assert finding(tmp_path, down[:2], **mark).state == "undecided"
    lost = played(tmp_path, 14, campaign="one-server-down", failure="I/O error")
    assert finding(tmp_path, [*down, lost], **mark).state == "fail"


def test_restart_reads_the_checkpoints_back(tmp_path: Path) -> None:
    mark = {"metric": "restart", "at_most": "1000 s", "statistic": "every"}
    assert any(s.role == "checkpoint" for s in workload.get(NAME).streams)
    found = [played(tmp_path, k, restart=True) for k in range(3)]
    assert finding(tmp_path, found, **mark).state == "pass"
    none = finding(tmp_path, [played(tmp_path, 5)], **mark)
    assert none.state == "undecided" and "no stream to read" in none.why and none.rows


def test_metadata_rates_are_of_mdtest(tmp_path: Path) -> None:
    mark = {"metric": "metadata-rate", "at_least": "100 /s", "operation": "File creation",
            "workload": "mdtest-easy"}  # fmt: skip
    rate = {"operation": "File creation", "metric": "rate_per_s", "unit": "1/s", "repetition": 0}
    row: dict[str, Any] = {
        "schema": "understudy/mdtest/1", "name": "mdtest-easy", "options": {},
        "environment": {"version": "4.0.0", "command_line": ["mdtest"], "ranks": 4, "nodes": 1,
                        "started": "2026-01-01T00:00:00Z", "directory": "/scratch"},
        "finished": True,
    }  # fmt: skip
    found = []
    for k in range(5):
        row["rates"] = [rate | {"value": 5000.0 + k}]
        made = producers.record(
            samples.write(row, tmp_path / "m.json"), place=Place(system="sample")
        )
        found.append(replace(made, identity=replace(made.identity, session=str(k))))
    assert finding(tmp_path, found, **mark).state == "pass"
    other = finding(tmp_path, found, **(mark | {"operation": "File stat"}))
    assert other.state == "undecided" and "only of File creation" in other.why


def test_the_interval_of_a_median_assumes_no_distribution() -> None:
    assert change.median_interval([1, 2, 3, 4, 100]) == (3, 1, 100)
    assert change.median_interval([1, 2, 3, 4])[1:] == (float("-inf"), float("inf"))


def test_the_dates_limit_the_runs(tmp_path: Path) -> None:
    path = marks(tmp_path, {"statistic": "every"}, since="2026-01-03", until="2026-01-06")
    verdict = judge.judge(acceptance.load(path), seven(tmp_path))
    assert len(verdict.findings[0].rows) == 3


# The page and the command


def keep(folder: Path, found: list[Run]) -> Path:
    for k, one in enumerate(found):
        (folder / str(k)).mkdir(parents=True)
        run.write(folder / str(k) / "run.json", one)
    return folder


@pytest.mark.parametrize(
    ("row", "state", "status"),
    [
        ({"at_least": "1 MiB/s"}, "pass", 0),
        ({"at_least": "9 GiB/s"}, "fail", 1),
        ({"method": "hdf5"}, "undecided", 3),
    ],
)
def test_status_and_json(tmp_path: Path, row: dict[str, Any], state: str, status: int) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    page = tmp_path / "page.html"
    found = accept(marks(tmp_path, row), records, "-o", page, "--json")
    assert found.exit_code == status, found.output
    made = json.loads(found.stdout)
    assert (made["verdict"], made["marks"][0]["verdict"]) == (state, state)
    hashes = [o["value"] for o in made["origins"] if o["what"] == "workload"]
    assert [len(h) for h in hashes] == ([] if state == "undecided" else [64])


def test_a_key_that_no_run_has_is_told(tmp_path: Path) -> None:
    found = finding(tmp_path, seven(tmp_path), where={"producer.options.fsnyc": 4})
    assert found.state == judge.UNDECIDED
    assert found.why == "not run; no run has the key producer.options.fsnyc"


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


def test_nothing_that_is_read_is_written_over(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    path = marks(tmp_path, {})
    for target in (path, records / "0" / "run.json"):
        before = target.read_bytes()
        found = accept(path, records, "-o", target)
        assert found.exit_code == 2 and "is read by this command" in found.stderr
        assert target.read_bytes() == before


def test_the_page_is_the_same_for_the_same_records(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
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
    found = accept(marks(tmp_path, row, title="<i>x"), records, "-o", tmp_path / "p.html")
    assert found.exit_code == 1 and "\x1b" not in found.output
    text = (tmp_path / "p.html").read_text()
    assert "<script" not in text and "<b>annex" not in text and "<i>x" not in text
    assert "\x1b" not in text and "\u202e" not in text


def test_a_damaged_record_is_named_and_counted(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    (records / "0" / "run.json").write_text("{", encoding="utf-8")
    found = accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--json")
    made = json.loads(found.stdout)
    assert made["unread"] == 1 and "left out" in found.stderr
    text = (tmp_path / "p.html").read_text()
    assert "1 record could not be read" in text and str(records / "0" / "run.json") in text
    assert found.exit_code == 3 and made["verdict"] == "undecided"
    assert "Not decided: 1 of 1 marks passed, 1 record left out." in text


def test_the_page_dates_all_runs(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    accept(marks(tmp_path, {"method": "hdf5"}), records, "-o", tmp_path / "p.html")
    text = (tmp_path / "p.html").read_text()
    assert "By 7 runs from 2026-01-01T00:00:00Z to 2026-01-07T00:00:00Z" in text


def test_no_browser_is_said_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "browser", lambda: None)
    records = keep(tmp_path / "r", seven(tmp_path))
    found = accept(
        marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--pdf", tmp_path / "p.pdf"
    )
    assert found.exit_code == 0 and "install chromium" in found.stderr
    assert not (tmp_path / "p.pdf").exists()


@needs("Chromium")
def test_the_pdf_is_made_from_the_page(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    made = []
    for name in ("a.pdf", "b.pdf"):
        accept(marks(tmp_path, {}), records, "-o", tmp_path / "p.html", "--pdf", tmp_path / name)
        made.append((tmp_path / name).read_bytes())
    assert made[0] == made[1] and made[0].startswith(b"%PDF-")


def test_a_name_of_a_plugin_directory_is_a_file(tmp_path: Path) -> None:
    records = keep(tmp_path / "r", seven(tmp_path))
    assert accept("example", records, "-o", tmp_path / "p.html").exit_code == 3
    found = accept("no-such", records, "-o", tmp_path / "p.html")
    assert found.exit_code == 2 and "example" in found.stderr


def test_the_kept_records_are_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in seven(tmp_path):
        store.keep(one, tmp_path / "kept")
    monkeypatch.setenv("UNDERSTUDY_RECORDS", str(tmp_path / "kept"))
    assert accept(marks(tmp_path, {}), "-o", tmp_path / "p.html").exit_code == 0

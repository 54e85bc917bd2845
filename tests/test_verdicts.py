"""Tables of nights: what compare, accept and trend make of the same records.

Each case of verdicts.yaml has

- nights: [side, first night, speeds, options]: a session in each night; 6*0.5 are six of 50 MiB/s.
  Options are those of `keep`, keys of the record to set (set), options of
  the measurement (result), and its workload (of).
- compare: arguments, the exit status, and what --json tells of each case or of the only one.
- accept: keys of a mark, and its finding.
- trend: the first session after each change, and the status of --fail.
"""

import copy
import functools
import hashlib
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from tests.support import results
from tests.support.said import said
from tests.test_accept import STORAGE, marks
from tests.test_compare import canary, compare, keep, site, words
from tests.test_trend import trend
from understudy import producers
from understudy.cli import main
from understudy.contracts import acceptance, workload
from understudy.judge.acceptance import marks as judge
from understudy.judge.comparison import trend as trends
from understudy.judge.page import last_two_sessions
from understudy.judge.statistics import conditions, pooling
from understudy.records import index as indexes
from understudy.records import select

__all__ = ["site"]  # a fixture

CASES: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("verdicts.yaml").read_text(encoding="utf-8")
)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "workloads").mkdir()
    (tmp_path / "workloads/per-process.json").write_text(results.per_process().to_text())
    monkeypatch.setenv("UNDERSTUDY_WORKLOADS", str(tmp_path / "workloads"))


def another_workload(record: dict[str, Any]) -> None:
    measured = record["measurement"]
    measured["workload"] += "\n"
    digest = hashlib.sha256(measured["workload"].encode()).hexdigest()
    measured["workload_sha256"] = record["producer"]["workload"]["sha256"] = digest


EDITS = {edit.__name__: edit for edit in (another_workload,)}


@functools.cache
def measurement(name: str, options: str) -> dict[str, Any]:
    return results.result(workload.get(name), **json.loads(options))


def speeds(text: object) -> Iterator[float]:
    for word in str(text).split():
        count, _, speed = word.rpartition("*")
        yield from [float(speed)] * int(count or 1)


def keep_nights(
    folder: Path, side: str, first: int, levels: object, options: dict[str, Any]
) -> None:
    """Keep a session of the side in each night."""
    options = copy.deepcopy(options)
    base = measurement(
        options.pop("of", "per-process"), json.dumps(options.pop("result", {}), sort_keys=True)
    )
    changes = {"cache": STORAGE} | options.pop("set", {})
    moved = [d for s in base["repetitions"][0]["streams"] for d in s["dumps"]]
    took_s = sum(d["phases"][-1]["last_end_s"] - d["start_s"] for d in moved)
    unit = 100 * MIB * took_s / sum(d["bytes"] for d in moved)
    hours = str(options.pop("hours", 1)).split()
    session = options.pop("session", None)
    edit = EDITS.get(options.pop("edit", ""))
    one_night = options.pop("one_night", False)
    if "canary" in options:
        options["canaries"] = canary(*options.pop("canary"))

    def change(row: dict[str, Any]) -> None:
        for path, value in changes.items():
            *keys, last = path.split(".")
            functools.reduce(lambda inner, key: inner[key], keys, row)[last] = value
        if edit:
            edit(row)

    for i, speed in enumerate(speeds(levels)):
        keep(
            folder,
            session or f"{side}-{i}",
            first + i * (not one_night),
            speed * unit,
            hour=i % 6 if one_night else int(hours[i % len(hours)]),
            base=base,
            change_row=change,
            **({"scatter": 0} | options),
        )


def check(wanted: dict[str, Any], told: dict[str, Any]) -> None:
    """What is told has the wanted values: sentences by name, numbers to a thousandth."""
    for key, value in wanted.items():
        if isinstance(value, str) and value.startswith("said "):
            said(value.removeprefix("said "), told[key])
        else:
            numbers = isinstance(value, float | list)
            assert told[key] == (pytest.approx(value, rel=1e-3) if numbers else value), key


def check_comparison(wanted: dict[str, Any]) -> None:
    arguments = shlex.split(wanted.get("asked", ""))
    sides = wanted.get("sides", "old new").split()
    done = compare(*sides, *arguments, "--json")
    assert done.exit_code == wanted.get("status", 0), done.output
    row = json.loads(done.stdout)
    for case, figure in wanted.get("cases", {}).items():
        [verdict] = [v for v in row["verdicts"] if v["case"] == f"Replay {case}"]
        check(figure, verdict | {"change": [verdict[key] for key in ("ratio", "low", "high")]})
    assert len(row["verdicts"]) == len(wanted.get("cases", row["verdicts"]))
    skipped = [item["why"] for item in row["not_compared"]]
    assert len(skipped) == len(wanted.get("not_compared", []))
    for name, why in zip(wanted.get("not_compared", []), skipped, strict=True):
        said(name, why)
    if "text" in wanted:
        text = words(compare(*sides, *arguments))
        assert all(said(name, text) for name in wanted["text"].split())


def check_mark(wanted: dict[str, Any], folder: Path) -> None:
    """Judge a mark by all runs, of whatever campaign unless the mark is of one."""
    keys = ("state", "why", "result", "rows", "nights", "served", "omitted")
    expected = {key: wanted[key] for key in keys if key in wanted}
    mark = {"workload": "per-process"} | {k: v for k, v in wanted.items() if k not in keys}
    runs = [producers.load(path) for path in producers.find([folder])]
    if "campaign" not in mark:
        runs = [replace(run, identity=replace(run.identity, campaign=None)) for run in runs]
    night = {"night": mark.pop("night")} if "night" in mark else {}
    path = marks(folder.parent, mark, system="star", until="2026-03-01", **night)
    [finding] = judge.judge(acceptance.load(path), runs).findings
    told = {key: getattr(finding, key) for key in keys}
    check(expected, told | {"rows": len(finding.rows)})


def check_trend(wanted: dict[str, Any], folder: Path) -> None:
    """Trend and the report tell the same changes."""
    figure = figure_of(folder, "n")
    assert list(figure.points) == wanted["points"]
    done = trend("--fail")
    assert done.exit_code == wanted["status"]
    assert "text" not in wanted or said(wanted["text"], words(done))
    cases = conditions.group(conditions.load(producers.find([folder]))[0])
    changes = last_two_sessions.changes(cases)
    assert len(pooling.apart(cases)[0].conditions) == len(figure.points) + 1
    assert len(changes.shown if changes else ()) == bool(figure.points)
    if figure.points and changes:
        [step], [shown] = figure.changes[-1:], changes.shown
        assert (shown.days[1], shown.change < 0) == (step.time[:10], step.slower)
        assert shown.change == pytest.approx(step.ratio - 1, abs=0.03)


@pytest.mark.parametrize("name", CASES)
def test_nights_have_their_verdicts(name: str, site: Path) -> None:
    case = copy.deepcopy(CASES[name])
    for side, first, levels, *options in case.pop("nights"):
        keep_nights(site, side, first, levels, *(options or [{}]))
    for wanted in case.pop("compare", []):
        check_comparison(wanted)
    for wanted in case.pop("accept", []):
        check_mark(wanted, site)
    if "trend" in case:
        check_trend(case.pop("trend"), site)
    assert not case, "a key that nothing reads"


def figure_of(folder: Path, case: str) -> trends.Figure:
    [figure] = [
        figure_
        for figure_ in trends.of(indexes.of_folder(folder), select.ALL).figures
        if figure_.series.subject.case == f"Replay {case}"
    ]
    return figure


def test_a_change_stays_whatever_runs_later(site: Path) -> None:
    """More sessions, other levels and more figures."""
    keep_nights(site, "s", 1, "10*1 0.5", {"scatter": 0.08})
    before = figure_of(site, "n")
    assert before.points == (10,)
    for more in range(4):
        keep_nights(site, f"{more}", 12 + 2 * more, f"{(0.5, 1)[more > 1]} 1", {"scatter": 0.08})
        keep_nights(site, f"x{more}", 12 + 2 * more, "2*1", {"name": f"x{more}", "hours": 2})
        after = figure_of(site, "n")
        assert after.points[:1] == before.points and after.open[0].time == before.open[0].time
        assert trend("--fail").exit_code == 1


def test_how_far_nights_differ_is_stated_alike(site: Path, tmp_path: Path) -> None:
    """Nights that may differ more hide what a bad night was."""
    keep_nights(site, "s", 1, "6*1 0.5 5*1", {})
    mark = marks(site.parent, {"workload": "per-process", "campaign": "s"}, system="star")
    texts = {}
    for share in ("10%", "60%"):
        page, accepted = tmp_path / "page.html", tmp_path / "accepted.html"
        for arguments in (
            ("report", site, "-o", page, "-f"),
            ("accept", mark, site, "-o", accepted, "-f"),
            ("trend", "--system", "star"),
        ):
            done = CliRunner().invoke(main, [*map(str, arguments), "--nights-differ", share])
            assert done.exit_code in (0, 3), done.output
            path = {"report": page, "accept": accepted}.get(str(arguments[0]))
            texts[arguments[0], share] = path.read_text() if path else done.stdout
    assert "sessions 1 to" in texts["report", "10%"]
    assert "sessions 1 to" not in texts["report", "60%"]
    assert "than before" in texts["accept", "10%"] and "10 %" in texts["accept", "10%"]
    assert "than before" not in texts["accept", "60%"] and "60 %" in texts["accept", "60%"]
    assert "0 open changes" not in texts["trend", "10%"]
    assert "0 open changes" in texts["trend", "60%"]


@pytest.mark.parametrize("name", ["accept x", "campaign", "compare", "plan", "report", "trend"])
def test_a_share_that_is_invalid_is_one_message(name: str) -> None:
    done = CliRunner().invoke(main, [*name.split(), "--nights-differ", "much"])
    assert (done.exit_code, done.stdout) == (2, "")
    said("nights-differ-much-expected", done.stderr)

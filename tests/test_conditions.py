"""Which runs are pooled: those whose conditions are equal in full; and what labels tell."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import results as samples
from tests.support.results import cases_in
from tests.support.said import said
from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts.run import Identity, Place
from understudy.judge.statistics import conditions
from understudy.paths import where
from understudy.report import page
from understudy_skel import accuracy_rows

OLD = where("schemas") / "old" / "fixtures" / "result-1"
REAL = ("player", "player-direct", "player-drop-cache", "player-compute")


def record(source: Path, target: Path, **more: Any) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    runs.write(target, producers.record(source, **more))


def later(row: dict[str, Any], day: int) -> dict[str, Any]:
    """Of a run that started on another day: no two runs have one measurement."""
    time = f"2026-01-0{day}T00:00:00Z"
    row["measurement"]["environment"]["started"] = row["identity"]["time"] = time
    return row


def test_five_runs_that_differ_are_five_conditions(tmp_path: Path) -> None:
    """In stripe count, posix.direct, --drop-cache and --compute: real runs of one workload, which
    were pooled while a list said which options count."""
    place = Place(system="s", partition="p")
    for name in REAL:
        record(OLD / f"{name}.json", tmp_path / name / "run.json", place=place)
    record(
        OLD / "player-first.json",
        tmp_path / "striped" / "run.json",
        place=place,
        asked={"stripe_count": 4},
    )
    (case,) = cases_in(tmp_path)
    assert [len(c.runs) for c in case.conditions] == [1] * 5
    labels = sorted(c.label for c in case.conditions)
    assert len(set(labels)) == 5
    words = " | ".join(labels)
    for word in ("stripe count 4", "posix.direct=yes", "drop cache", "compute busy"):
        assert word in words, word
    assert "condition" not in words, "words tell them apart, not hashes"
    text = page.render([case])
    assert "stripe count 4" in text and said("runs-cases", text)


def test_runs_of_one_condition_are_pooled(tmp_path: Path) -> None:
    for stem in ("player", "player-first"):
        record(OLD / f"{stem}.json", tmp_path / stem / "run.json")
    (case,) = cases_in(tmp_path)
    assert [(len(c.runs), c.facts) for c in case.conditions] == [(2, ())]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"seed": 7}, "seed 7"),
        ({"unheard_of_bytes": 1 << 20}, "unheard of 1.00 MiB"),
        ({"hint": {"cb_nodes": "4"}}, "cb nodes 4"),
        ({"patience_s": 0.5}, "patience 500 ms"),
        ({"new_flag": True}, "new flag"),
    ],
)
def test_an_option_counts_from_the_day_it_is_recorded(
    tmp_path: Path, options: dict[str, Any], word: str
) -> None:
    for i, more in enumerate(({}, options)):
        run = producers.record(OLD / "player.json", identity=Identity(id=str(i)))
        row = runs.to_row(run)
        row["producer"]["options"] = row["producer"]["options"] | more
        samples.write(later(row, i + 1), tmp_path / str(i) / "run.json")
    measured, _ = conditions.load(producers.find([tmp_path]))
    (case,) = conditions.group(measured)
    assert sorted(c.facts for c in case.conditions) == [(), (word,)]


def test_what_differs_in_the_software_only_is_told_once(tmp_path: Path) -> None:
    for i, change in enumerate(({}, {"commit": "a" * 40, "program_sha256": "b" * 64})):
        row = runs.to_row(producers.record(OLD / "player.json", identity=Identity(id=str(i))))
        row["software"] = row["software"] | change
        samples.write(later(row, i + 1), tmp_path / str(i) / "run.json")
    (case,) = cases_in(tmp_path)
    assert sorted(c.label for c in case.conditions) == [
        "as described",
        "as described commit aaaaaaaa",
    ]


def test_striping_that_options_and_storage_both_state_is_told_once(tmp_path: Path) -> None:
    for count in (2, 4):
        run = producers.record(
            OLD / "player.json", identity=Identity(id=str(count)), asked={"stripe_count": count}
        )
        row = runs.to_row(run)
        row["producer"]["options"] = row["producer"]["options"] | {"stripe_count": count}
        samples.write(later(row, count), tmp_path / str(count) / "run.json")
    (case,) = cases_in(tmp_path)
    assert sorted(c.facts for c in case.conditions) == [("stripe count 2",), ("stripe count 4",)]


def test_arms_are_never_pooled(tmp_path: Path) -> None:
    for i, arm in enumerate(("replica", "without-darshan")):
        run = producers.record(OLD / "player.json", identity=Identity(id=str(i), arm=arm))
        samples.write(later(runs.to_row(run), i + 1), tmp_path / arm / "run.json")
    (case,) = cases_in(tmp_path)
    assert sorted(c.facts for c in case.conditions) == [("replica",), ("without-darshan",)]


def study(folder: Path, rounds: dict[str, list[int | None]]) -> None:
    """Runs of both arms, slower from round to round; they start in an order that says nothing."""
    for arm, numbers in rounds.items():
        for k, number in enumerate(numbers):
            row = samples.program_result(
                kind=arm,
                name="kernel-star" if arm == "application" else "star-restart",
                speeds=[1e8 / (1 + (number or 0))] * 2,
                started=f"2026-01-01T00:0{9 - k}:00Z",
            )
            samples.write_record(
                row,
                folder / arm / str(k),
                partition="disk",
                session="1",
                case="skel",
                arm=arm,
                round=number,
            )


def test_pairs_are_the_rounds_that_records_state(tmp_path: Path) -> None:
    """By the order of the starts, round 0 of one would meet round 2 of the other."""
    study(tmp_path, {"application": [0, 1, 2, 3], "skeleton": [2, 0, 3, 1]})
    (case,) = cases_in(tmp_path)
    (row,) = accuracy_rows.accuracies(case)
    assert (row.rounds, row.unpaired) == (2, 0)
    for value in row.errors.values():
        ends = (value.error.low, value.error.high)
        assert ends == pytest.approx((0, 0), abs=1e-6)


def test_a_round_without_a_counterpart_is_left_out_and_counted(tmp_path: Path) -> None:
    study(tmp_path, {"application": [0, 1, 2, 3, 4], "skeleton": [0, 1, 2, 4]})
    (case,) = cases_in(tmp_path)
    (row,) = accuracy_rows.accuracies(case)
    assert (row.rounds, row.unpaired) == (2, 1)
    said("run-without-counterpart", page.render([case]))


def test_failed_runs_are_listed_and_counted(tmp_path: Path) -> None:
    record(OLD / "player.json", tmp_path / "good" / "run.json")
    for i in range(2):
        record(
            tmp_path / "none.json",
            tmp_path / f"bad{i}" / "run.json",
            place=Place(system="s", partition="p"),
            identity=Identity(case="replay", round=i),
            exit_status=1,
            failure="no space left <on> device",
        )
    measured, failed = conditions.load(producers.find([tmp_path]))
    assert (len(measured), len(failed)) == (1, 2)
    text = page.render(conditions.group(measured), failed)
    said("runs-failed", text)
    said("no-space-left-lt", text)
    assert text.count("s:p") >= 2 and "round 1" in text
    said("runs-failed", page.render([], failed))


def test_a_record_takes_the_place_of_the_measurement_beside_it(tmp_path: Path) -> None:
    samples.write_record(json.loads((OLD / "player.json").read_text()), tmp_path, partition="disk")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["result.json", "run.json"]
    (case,) = cases_in(tmp_path)
    assert case.places == ["sample:disk"] and case.conditions[0].repetitions == 1

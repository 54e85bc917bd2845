"""What descriptions of logs were worth."""

from dataclasses import replace
from pathlib import Path

from tests.support.said import raises, said
from understudy.errors import UnderstudyError
from understudy.judge.fidelity.calibration import Measured, load, save, sentence
from understudy.paths import where

ROW = Measured(
    application="a",
    storage="rate5",
    developed=True,
    explained=0.991,
    error=-3.25,
    low=-4.0,
    high=1.5,
    control_low=-2.0,
    control_high=2.0,
    verdict="within",
)


def test_every_case_counts_that_was_held_out(tmp_path: Path) -> None:
    rows = [
        replace(ROW, developed=False),
        replace(ROW, developed=False, application="b", verdict="outside"),
        replace(ROW, developed=False, application="b", verdict="undecided"),
        replace(ROW, developed=False, error=None, low=None, high=None, verdict="failed"),
        ROW,
        replace(ROW, explained=None),
    ]
    said("measured-transfers-programs-were", sentence(rows))
    assert sentence([]) == ""
    save(tmp_path / "t.csv", rows)
    assert load(tmp_path / "t.csv") == rows


def test_ours_can_be_read() -> None:
    assert {row.developed for row in load(where("applications") / "measured.csv")} == {True, False}


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("application,error\na,much\n", encoding="utf-8")
    with raises(UnderstudyError, "csv-cannot-read-measured"):
        load(tmp_path / "t.csv")

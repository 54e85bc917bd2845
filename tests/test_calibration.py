"""What descriptions were worth that claimed as much."""

from dataclasses import replace
from pathlib import Path

import pytest

from understudy.errors import UnderstudyError
from understudy.judge.calibration import Measured, alike, load, save, sentence
from understudy.paths import where

ROW = Measured(
    application="a",
    storage="rate5",
    developed=True,
    claim=0.991,
    error=-3.25,
    low=-4.0,
    high=1.5,
    control_low=-2.0,
    control_high=2.0,
    verdict="within",
)


def test_every_case_counts_beside_claims_that_are_alike(tmp_path: Path) -> None:
    rows = [
        replace(ROW, developed=False),
        replace(ROW, developed=False, application="b", verdict="outside"),
        replace(ROW, developed=False, application="b", verdict="undecided"),
        replace(ROW, developed=False, error=None, low=None, high=None, verdict="failed"),
        ROW,
        replace(ROW, claim=0.9),
        replace(ROW, claim=0.2, developed=False),
    ]
    assert sentence(1.0, rows) == (
        "Of 4 measured transfers of 2 programs that were held out and have descriptions like "
        "this one, 1 of 2 decided ones were within 10 % (1 undecided, 1 failed)."
    )
    assert [row.claim for row in alike(0.8, rows)] == [0.9]
    assert sentence(0.5, []) == ""
    save(tmp_path / "t.csv", rows)
    assert load(tmp_path / "t.csv") == rows


def test_ours_can_be_read() -> None:
    assert all(0 <= row.claim <= 1 for row in load(where("applications") / "measured.csv"))


def test_a_table_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("application,claim\na,much\n", encoding="utf-8")
    with pytest.raises(UnderstudyError, match=r"t\.csv: cannot read the measured transfers"):
        load(tmp_path / "t.csv")

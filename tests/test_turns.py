"""Turns of a campaign, and how they are compared."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.said import said
from tests.test_compare import compare, keep, site, verdict, words
from understudy.judge.statistics.night_statistics import SLOWER, UNDECIDED, WITHIN

__all__ = ["site"]  # a fixture


def of_turn(turn: str | None, partition: str = "disk", case: str | None = "Replay n") -> Any:
    def change(row: dict[str, Any]) -> None:
        row["identity"] |= {"case": case} | ({"turn": turn} if turn else {})
        row["place"]["partition"] = partition

    return change


def side(site: Path, name: str, number: int, speed: float, hour: int, **more: Any) -> None:
    """One session of a turn, an hour apart from the other side's: all in one night."""
    how = {"turn": f"c/{number}"} | more
    keep(site, f"{name}-{number}", 1, speed, hour=hour, change_row=of_turn(**how))


def turns(site: Path, count: int, loss: float, first: str = "", **after: Any) -> None:
    """Turns in which the sides alternate, or one is always first."""
    dice = random.Random(5)
    for number in range(1, count + 1):
        level = dice.lognormvariate(0, 0.3)
        hours = (0, 1) if (first or ("old" if number % 2 else "new")) == "old" else (1, 0)
        side(site, "old", number, level, hours[0])
        side(site, "new", number, (1 - loss) * level, hours[1], **after)


@pytest.mark.parametrize(("loss", "state"), [(0.2, SLOWER), (0.0, WITHIN)])
def test_turns_of_one_night_are_compared_turn_by_turn(site: Path, loss: float, state: str) -> None:
    turns(site, 8, loss)
    row = verdict()
    assert (row["state"], row["nights"], row["turns"]) == (state, [8, 8], True)
    assert row["ratio"] == pytest.approx(1 - loss, rel=0.05)
    text = compare("old", "new").stdout
    assert " 8 turns " in text
    said("note-turns-night-what", text)


def test_few_turns_are_called_turns(site: Path) -> None:
    turns(site, 2, 0.12)
    assert re.search(r"no loss above \d\d%.*; \d turns would decide", verdict()["why"])


def test_turns_in_one_order_may_be_a_drift(site: Path) -> None:
    turns(site, 8, 0.5, first="old")
    row = verdict()
    assert row["state"] == SLOWER
    assert "a drift within the turn: one side ran first in every turn" in row["cause_why"]


def test_a_turn_that_is_not_whole_does_not_count(site: Path) -> None:
    """One side only, or a session that was ended."""
    turns(site, 8, 0.0)
    side(site, "old", 9, 1.0, 2)
    side(site, "old", 10, 1.0, 2)
    side(site, "new", 10, 0.1, 3)
    keep(site, "new-10b", 1, 1.0, hour=3, failure="ended", change_row=of_turn("c/10", case=None))
    comparison = json.loads(compare("old", "new", "--json").stdout)
    (row,) = comparison["verdicts"]
    assert row["nights"] == [8, 8] and row["state"] == WITHIN
    assert comparison["failed_runs"] == {"before": [0, 8], "after": [0, 8]}
    said("one-side-only-its", comparison["notes"][1])
    assert compare("old", "new", "--fail-below", "10%").exit_code == 0


def test_a_failed_run_in_a_turn_counts(site: Path) -> None:
    turns(site, 8, 0.0)
    side(site, "old", 9, 1.0, 2)
    keep(site, "new-9", 1, 1.0, hour=3, failure="no space", change_row=of_turn("c/9"))
    row = verdict()
    assert row["state"] == UNDECIDED and "1 of 9 runs after failed" in row["why"]
    assert row["nights_with_both"] == 8


def test_runs_with_and_without_a_turn_are_nights(site: Path) -> None:
    turns(site, 8, 0.5)
    side(site, "new", 9, 1.0, 2, turn=None)
    row = verdict()
    assert row["nights"] == [1, 1] and row["turns"] is False
    said("note-runs-no-turn", compare("old", "new").stdout)


def test_turns_of_two_campaigns_are_no_pairs(site: Path) -> None:
    for number in range(1, 9):
        side(site, "old", number, 1.0, 0)
        side(site, "new", number, 0.5, 1, turn=f"d/{number}")
    row = verdict()
    assert (row["state"], row["nights"], row["turns"]) == (SLOWER, [1, 1], False)
    said("note-no-turn-whole", compare("old", "new").stdout)


def test_turns_that_never_have_a_case_on_both_sides_are_no_nights(site: Path) -> None:
    """Another case makes the turns whole; that of which the values alternate has no pair."""
    turns(site, 8, 0.0)
    for number in range(1, 9):
        name = ("old", "new")[number % 2]
        keep(
            site,
            f"{name}-{number}",
            1,
            0.5 + 0.5 * (name == "old"),
            hour=2,
            name="m",
            change_row=of_turn(f"c/{number}", case="Replay m"),
        )
    comparison = json.loads(compare("old", "new", "--json").stdout)
    assert [row["case"] for row in comparison["verdicts"]] == ["Replay n"]
    assert {row["case"] for row in comparison["not_compared"]} == {"Replay m"}
    assert "no turn has values of both sides" in comparison["not_compared"][0]["why"]


def test_history_is_no_part_of_turns(site: Path) -> None:
    turns(site, 8, 0.0)
    keep(site, "past-1", 2, 0.1)
    given = ("--history", "campaign:past")
    assert verdict(*given)["nights"] == [8, 8]
    said("note-history-does-count", compare("old", "new", *given).stdout)


def test_sides_on_two_partitions_are_compared_where_asked(site: Path) -> None:
    turns(site, 8, 0.5, partition="memory")
    done = compare("old", "new", "--fail-below", "10%")
    assert done.exit_code == 3
    said("compared-replay-replica-star", words(done))
    row = verdict("--across", "place.partition")
    assert (row["state"], row["partition"], row["nights"]) == (SLOWER, None, [8, 8])
    assert compare("old", "new", "--across", "place").exit_code == 0

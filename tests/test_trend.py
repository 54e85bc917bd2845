"""Sessions over time: change points, bad nights, upgrades and the page."""

import math
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.test_compare import keep
from understudy.cli import main
from understudy.judge import trend
from understudy.paths import RECORDS_VARIABLE


def history(seed: int, sessions: int = 30) -> list[list[float]]:
    dice = random.Random(seed)
    return [[math.exp(dice.gauss(0, 0.03))] for _ in range(sessions)]


def test_a_step_is_a_change_point() -> None:
    values = history(1)
    for session in values[18:]:
        session[0] *= 0.8
    (found,) = trend.change_points(values)
    assert abs(found - 18) <= 1


@pytest.mark.parametrize("night", [0, 15, 29])
def test_one_bad_night_is_none(night: int) -> None:
    values = history(2)
    values[night][0] *= 0.3
    assert trend.change_points(values) == []


def test_sessions_that_follow_each_other_are_told() -> None:
    """Two steps are none of it, and slow ups and downs are."""
    dice = random.Random(5)
    steps = [history(seed) for seed in range(6)]
    for values in steps:
        for i, session in enumerate(values):
            session[0] *= 0.8 ** (i // 10)
    points = [trend.change_points(values) for values in steps]
    assert all(len(own) == 2 for own in points)
    assert trend.resemblance(steps, points) < 1.5
    slow = []
    for _ in range(6):
        level, values = 0.0, []
        for _ in range(30):
            level = 0.9 * level + dice.gauss(0, 0.01)
            values.append([math.exp(level)])
        slow.append(values)
    assert trend.resemblance(slow, [[] for _ in slow]) > 2


def test_few_sessions_have_none() -> None:
    assert trend.change_points([[1.0]] * 4 + [[0.5]] * 4) == []


def test_the_page_is_self_contained_and_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RECORDS_VARIABLE, str(tmp_path / "kept"))

    def upgraded(row: dict[str, Any]) -> None:
        row["storage"]["server_version"] = "<script>2.15</script>"

    for i in range(16):
        more = {"change_row": upgraded} if i >= 8 else {}
        keep(tmp_path / "kept", f"s-{i}", i + 1, 0.5 if i >= 8 else 1.0, name="<b>", **more)
    page = tmp_path / "trend.html"
    words = ["trend", "--system", "star", "-o", str(page)]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert "1 figures, 1 change points, 1 upgrades; failed runs: 0 of 16" in done.stderr
    text = page.read_text()
    assert "<script" not in text and "<b>" not in text and "http" not in text
    assert "&lt;script&gt;2.15" in text and text.count("<circle") == 16
    assert 'class="change"' in text and 'class="upgrade"' in text
    page.write_text("mine")
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code != 0 and page.read_text() == "mine"

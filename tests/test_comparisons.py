"""The operating characteristic of comparisons: its short way is that of the library, and holds."""

import itertools
import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import comparisons
from benchmarks.comparisons import APART, IN_TURN, NOISE
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import FASTER, SLOWER, STATES, Rule, Session


@pytest.mark.parametrize("design", [(APART, 1), (APART, 9), (IN_TURN, 4), (IN_TURN, 9)])
@pytest.mark.parametrize("noise", ["quiet", "heavy tails"])
@pytest.mark.parametrize("repetitions", [1, 3])
def test_the_short_way_says_what_the_library_says(
    design: tuple[str, int], noise: str, repetitions: int
) -> None:
    dice = np.random.default_rng(11)
    one = comparisons.sample(dice, NOISE[noise], *design, repetitions, 40)
    found = comparisons.estimated(one, Rule())
    seen: set[str] = set()
    for loss, (cases, changed) in ((0.0, (1, 1)), (0.2, (20, 1)), (0.7, (20, 20))):
        index = comparisons.judge(found, loss, cases, changed, Rule())
        fell = np.tile(np.arange(cases) < changed, 40 // cases)[:, None, None]
        runs = np.exp(one.runs + np.log1p(-loss) * fell * one.sides[None, :, None])
        for campaign, states in zip(runs.reshape(-1, cases, *runs.shape[1:]), index, strict=True):
            changes = []
            for figure in campaign.tolist():
                sides: tuple[list[Session], list[Session]] = ([], [])
                for at, night, values in zip(one.sides, one.nights, figure, strict=True):
                    sides[at].append(Session(night=int(night), values=tuple(values)))
                changes.append(night_statistics.measure(*sides))
            assert [STATES[i] for i in states] == night_statistics.decide(changes)
            seen |= {STATES[i] for i in states}
    assert len(seen) > 1


@pytest.mark.parametrize("noise", comparisons.STATED)
@pytest.mark.parametrize(
    "design", [(APART, 1), (APART, 3), (APART, 12), (IN_TURN, 1), (IN_TURN, 5)]
)
def test_what_is_promised_holds_where_nights_are_as_stated(
    noise: str, design: tuple[str, int]
) -> None:
    """Of 10,000 figures: two ways may have 1.1 %, and three standard errors are 0.3 %."""
    dice = np.random.default_rng(12)
    found = comparisons.estimated(
        comparisons.sample(dice, NOISE[noise], *design, 3, 10_000), Rule()
    )
    wrong = [STATES.index(state) for state in (SLOWER, FASTER)]
    assert np.isin(comparisons.judge(found, 0, 1, 1, Rule()), wrong).mean() <= 0.014
    for loss, least in ((0.9, 0.999), (0.5, 0.95)):
        slower = comparisons.judge(found, loss, 20, 20, Rule()) == STATES.index(SLOWER)
        assert slower.mean() >= least


def test_more_nights_find_more() -> None:
    for noise, loss in (("quiet", 0.1), ("nights differ by 10 %", 0.2)):
        found = []
        for n in (1, 2, 3, 4, 5, 8, 12, 20):
            dice = np.random.default_rng(15)
            one = comparisons.sample(dice, NOISE[noise], APART, n, 3, 4000)
            index = comparisons.judge(comparisons.estimated(one, Rule()), loss, 1, 1, Rule())
            found.append(float((index == STATES.index(SLOWER)).mean()))
        assert all(b >= a - 0.02 for a, b in itertools.pairwise(found)), found
        assert found[-1] > 0.9


def test_a_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--figures", "200", "--only", "in turn quiet", "-o", str(tmp_path / "t.json")]
    monkeypatch.setattr(sys, "argv", ["comparisons.py", *words])
    runpy.run_path(str(Path(comparisons.__file__)), run_name="__main__")
    cells = json.loads((tmp_path / "t.json").read_text())
    assert len(cells) == len(comparisons.SIZES) * 2 * (3 + 6 * 5)
    assert all(
        c["slower"] + c["faster"] + c["within"] + c["undecided"] == c["campaigns"] * c["changed"]
        for c in cells
    )
    assert capsys.readouterr().out.startswith(f"{len(cells)} cells, {len(cells)} with nights as")

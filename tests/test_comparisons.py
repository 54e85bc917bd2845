"""The operating characteristic of comparisons: its short way is that of the library, and holds."""

import json
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import comparisons
from understudy.judge import change
from understudy.judge.change import UNDECIDED, Rule

DESIGNS = [
    (comparisons.APART, (9, 9)),
    (comparisons.APART, (12, 5)),
    (comparisons.IN_TURN, (9, 9)),
]


@pytest.mark.parametrize(("design", "size"), DESIGNS)
@pytest.mark.parametrize("noise", ["quiet", "bimodal", "heavy tails"])
@pytest.mark.parametrize("cases", [1, 20])
def test_the_short_way_says_what_the_library_says(
    design: str, size: tuple[int, int], noise: str, cases: int
) -> None:
    dice = np.random.default_rng(11)
    both = [
        comparisons.sides(dice, comparisons.NOISE[noise], design, size, 3, loss, 40)
        for loss in (0.0, 0.1, 0.99)
    ]
    before, after = (np.concatenate([one[i] for one in both]) for i in (0, 1))
    index = comparisons.states(before, after, design, cases, Rule())
    measure = change.measure_pairs if design == comparisons.IN_TURN else change.measure
    found: list[str] = []
    for at in range(0, len(before), cases):
        changes = [
            measure([[x] for x in np.exp(b)], [[x] for x in np.exp(a)])
            for b, a in zip(before[at : at + cases], after[at : at + cases], strict=True)
        ]
        found += [state for state, _ in change.decide(changes)]
    assert [comparisons.STATES[i] for i in index] == found
    assert len(set(found)) > 1


@pytest.mark.parametrize("noise", comparisons.NOISE)
@pytest.mark.parametrize(("design", "size"), DESIGNS)
def test_false_alarms_are_rare_whatever_the_noise(
    design: str, size: tuple[int, int], noise: str
) -> None:
    """Of 4,000 figures that did not change at most 1 % are called so; and of as many that lost
    12 %, at most 1 % are called no change."""
    dice = np.random.default_rng(12)
    for loss, wrong in ((0.0, (0, 1)), (0.12, (1, 2))):
        both = comparisons.sides(dice, comparisons.NOISE[noise], design, size, 1, loss, 4000)
        index = comparisons.states(*both, design, 1, Rule())
        assert np.isin(index, wrong).mean() <= 0.01


@pytest.mark.parametrize("size", [(2, 2), (3, 3), (37, 1)])
def test_few_nights_apart_say_that_they_cannot_tell(size: tuple[int, int]) -> None:
    """At a loss of 12 %, two nights on each side once were "no change"."""
    dice = np.random.default_rng(13)
    noise = comparisons.NOISE["independent"]
    before, after = comparisons.sides(dice, noise, comparisons.APART, size, 1, 0.12, 500)
    states = comparisons.states(before, after, comparisons.APART, 1, Rule())
    assert (states == comparisons.STATES.index(UNDECIDED)).mean() >= 0.99
    one = change.measure([[x] for x in np.exp(before[0])], [[x] for x in np.exp(after[0])])
    [(state, why)] = change.decide([one])
    assert state == UNDECIDED and "nights" in why


def test_the_interval_of_small_samples_holds_the_truth() -> None:
    """It held it in 60 to 68 % of comparisons of two nights and one repetition."""
    dice = np.random.default_rng(14)
    for size in ((4, 4), (6, 6), (12, 12)):
        before, after = comparisons.sides(
            dice, comparisons.NOISE["independent"], comparisons.APART, size, 1, 0.0, 4000
        )
        step, error, freedom = change.apart(before, after)
        inside = np.abs(step) <= change.half_width(error, freedom, change.CONFIDENCE)
        assert inside.mean() >= change.CONFIDENCE


def test_power_does_not_fall_with_the_nights() -> None:
    found = []
    for n in (8, 10, 12, 16, 20):
        dice = np.random.default_rng(15)
        both = comparisons.sides(
            dice, comparisons.NOISE["quiet"], comparisons.APART, (n, n), 3, 0.1, 4000
        )
        found.append(float((comparisons.states(*both, comparisons.APART, 1, Rule()) == 0).mean()))
    assert found == sorted(found) and found[-1] > 0.9


def test_as_many_nights_as_planned_find_the_loss() -> None:
    in_turn, apart = comparisons.planned("quiet", 0.1, 1, 3, 16)
    for line in (in_turn, apart):
        assert "3 of 3 planned for" in line and float(line.split()[-2]) >= 90


@pytest.mark.parametrize("n", [1, 2, 5, 9, 12])
def test_the_signed_rank_test_is_that_of_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.3, 1, (20, n))
    expected = stats.wilcoxon(differences, axis=1, method="exact").pvalue
    assert change.signed_rank_p(differences) == pytest.approx(expected)


def test_a_table_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys,
        "argv",
        [
            "comparisons.py",
            "--figures",
            "200",
            "--only",
            "in turn quiet",
            "-o",
            str(tmp_path / "t.json"),
        ],
    )
    runpy.run_path(str(Path(comparisons.__file__)), run_name="__main__")
    cells = json.loads((tmp_path / "t.json").read_text())
    assert len(cells) == 6 * 3 * 5 * 3
    assert all(c["worse"] + c["better"] + c["no_change"] + c["undecided"] == 200 for c in cells)
    assert capsys.readouterr().out.startswith(f"{len(cells)} cells; in 0 more than 1 %")

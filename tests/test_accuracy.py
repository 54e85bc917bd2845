"""Errors of a skeleton's throughput: known answers, states, the paper's own table, refusals."""

import math

import numpy as np
import pytest

from understudy.errors import UnderstudyError
from understudy.judge import accuracy
from understudy.judge.accuracy import AVERAGE, MAXIMUM, Estimate

# Percent, Skel's tables: CHIMERA on Jaguar (128 ... 4,096 cores) and on Sith (128 ... 1,024).
PAPER = [
    1.23299306, 1.16572625, -0.7565853, 0.91980066, -4.3526464, 0.26457144,
    6.35053155, 7.18255015, -4.5819049, -7.0988589, 4.96703107, -0.9504542,
    -1.1075423, 1.60319245, 0.81126651, -6.1477011, -2.7247985, 0.22539071,
    -15.586524, 22.9848149, 1.76922079, 6.63736976, -2.5146621, -0.3474594,
    -1.1188266, -2.6544645, -9.2216744, -2.8223058, 4.53511945, 0.13061827,
    6.63407572, 0.32418106, -1.2447502, -4.4013228, 0.13788721, 0.97436759,
    -4.3197237, 0.88416525, -0.0444967, 0.0639165,
    -1.0537163, -0.1010961, -0.272298, 2.86825714,
    4.60492215, 1.06613332, 0.2709434, 1.02694457,
    0.20222178, -1.0747786, -3.9282669, -1.0447177,
    25.8798844, 19.0632635, 0.10644743, 0.67528339,
    2.00347839, 9.93222729, -1.0470642, -2.0402408,
]  # fmt: skip


def noisy(
    factor: float, seed: int, *, pairs: int = 11, scatter: float = 0.02
) -> list[list[float]]:
    dice = np.random.default_rng(seed)
    made: list[list[float]] = (factor * 1e8 * dice.normal(1, scatter, (pairs, 4))).tolist()
    return made


def test_errors_are_those_of_the_average_and_the_maximum() -> None:
    application = [[100.0, 300.0], [200.0, 200.0]]
    skeleton = [[150.0, 150.0], [200.0, 400.0]]
    found = accuracy.errors(application, skeleton)
    assert found[AVERAGE].value == pytest.approx(225 / 200 - 1)
    assert found[MAXIMUM].value == pytest.approx(400 / 300 - 1)


def test_the_same_runs_have_no_error_and_no_doubt() -> None:
    runs = noisy(1, 1)
    for error in accuracy.errors(runs, runs).values():
        assert (error.value, error.low, error.high) == (0, 0, 0)
        assert accuracy.state(error) == "within"


def test_intervals_come_from_pairs_that_are_drawn_together() -> None:
    """What both programs of a pair share, a slow minute of the machine, is no doubt about them."""
    minutes = np.linspace(1, 5, 11)[:, None]
    application = (1e8 * minutes * np.ones((11, 3))).tolist()
    skeleton = (1.05e8 * minutes * np.ones((11, 3))).tolist()
    error = accuracy.errors(application, skeleton)[AVERAGE]
    assert error.value == pytest.approx(0.05)
    assert error.high - error.low < 1e-9
    apart = accuracy.ratio(skeleton, application)
    assert apart.value == pytest.approx(1.05)
    assert apart.low < 0.8 and apart.high > 1.3


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(60):
        error = accuracy.errors(
            noisy(1, 2 * seed, scatter=0.1), noisy(1.07, 2 * seed + 1, scatter=0.1)
        )[AVERAGE]
        held += error.crosses(0.07)
    assert 50 <= held < 60  # 95 % of 60 are 57; an interval of 11 pairs is a little too narrow


def test_intervals_are_the_same_every_time() -> None:
    first, again = (accuracy.errors(noisy(1, 1), noisy(1.2, 2)) for _ in range(2))
    assert first == again


@pytest.mark.parametrize(("low", "high", "state"), [
    (-0.04, 0.06, "within"), (0.08, 0.12, "undecided"), (0.12, 0.3, "outside"),
    (-0.3, -0.11, "outside"), (-0.12, 0.02, "undecided"), (-0.2, 0.2, "undecided"),
    (-math.inf, math.inf, "undecided"),
])  # fmt: skip
def test_state_is_that_of_the_whole_interval(low: float, high: float, state: str) -> None:
    middle = (low + high) / 2 if math.isfinite(low) else 0.0
    assert accuracy.state(Estimate(value=middle, low=low, high=high)) == state


@pytest.mark.parametrize(("low", "high", "least"), [
    (0.1, 0.2, 0.1), (-0.2, -0.1, 0.1), (-0.1, 0.2, 0.0),
])  # fmt: skip
def test_the_least_error_that_an_interval_allows(low: float, high: float, least: float) -> None:
    assert Estimate(value=(low + high) / 2, low=low, high=high).least == least


def test_one_pair_decides_nothing() -> None:
    error = accuracy.errors([[100.0]], [[101.0]])[AVERAGE]
    assert error.value == pytest.approx(0.01)
    assert accuracy.state(error) == "undecided"


def test_a_difference_of_thirty_percent_is_outside() -> None:
    found = accuracy.errors(noisy(1, 3), noisy(1.3, 4))
    assert [accuracy.state(error) for error in found.values()] == ["outside", "outside"]


def test_cases_are_counted_as_the_paper_counts_them() -> None:
    found = [Estimate(value=v / 100, low=v / 100, high=v / 100) for v in PAPER]
    assert accuracy.share_within(found) == pytest.approx(56 / 60)  # "over 93 %"


def test_the_winner_is_the_fastest_on_average_where_that_is_decided() -> None:
    runs = {"POSIX": noisy(1, 5), "MPI_AMR": noisy(1.5, 6), "MPI_LUSTRE": noisy(0.5, 7)}
    found = accuracy.winner(runs)
    assert (found.name, found.second, found.decided) == ("MPI_AMR", "POSIX", True)
    assert found.lead is not None and found.lead.value == pytest.approx(1.5, rel=0.03)
    close = accuracy.winner({"a": noisy(1, 8, scatter=0.3), "b": noisy(1, 9, scatter=0.3)})
    assert not close.decided
    alone = accuracy.winner({"a": noisy(1, 8)})
    assert (alone.name, alone.second, alone.lead, alone.decided) == ("a", None, None, False)


@pytest.mark.parametrize(("application", "skeleton", "message"), [
    ([[1.0]] * 3, [[1.0]] * 2, "3 runs of the application and 2 of the skeleton make no pairs"),
    ([[1.0], [1.0, 2.0]], [[1.0]] * 2, "runs of 1, 2 steps; expected runs with as many steps"),
    ([], [], "runs of no steps"),
    ([[1.0]] * 2, [[1.0, 1.0]] * 2, "runs of 1 and of 2 steps: the maximum of more steps"),
    ([[1.0]], [[0.0]], "a throughput that is not above 0"),
    ([[1.0]], [[math.nan]], "a throughput that is not above 0"),
])  # fmt: skip
def test_what_cannot_be_compared_is_refused(
    application: list[list[float]], skeleton: list[list[float]], message: str
) -> None:
    with pytest.raises(UnderstudyError, match=message):
        accuracy.errors(application, skeleton)


def test_no_cases_have_no_share() -> None:
    with pytest.raises(UnderstudyError, match="expected at least one case"):
        accuracy.share_within([])

"""Steps and drifts of series: places, false alarms, bad nights; ruptures agrees on the places."""

import math

import numpy as np
import pytest

from benchmarks import trends
from tests.support.needs import need
from understudy.judge import steps
from understudy.judge.steps import Fit


def series(seed: int, sessions: int = 30, loss: float = 0.0, drift: float = 0.0) -> list[float]:
    """Logarithms that scatter by 5 %, with a step in the middle."""
    t = np.arange(sessions)
    levels = np.random.default_rng(seed).normal(0, 0.05, sessions) + math.log1p(-drift) * t
    return [float(v) for v in levels + math.log1p(-loss) * (t >= sessions // 2)]


def fits(count: int, sessions: int, loss: float = 0.0, drift: float = 0.0) -> list[Fit]:
    return [steps.fit(series(seed, sessions, loss, drift)) for seed in range(count)]


def test_a_step_is_found_where_it_is() -> None:
    found = fits(20, 30, loss=0.3)
    assert all(len(one.told) == 1 and abs(one.told[0] - 15) <= 1 for one in found)
    assert all(one.ratio(one.told[0]) == pytest.approx(0.7, rel=0.1) for one in found)
    assert not any(one.drifts for one in found)


def test_two_steps_are_two() -> None:
    levels = series(1, 45)
    for i in range(15, 45):
        levels[i] += math.log(0.7) * (2 if i >= 30 else 1)
    assert steps.fit(levels).told == (15, 30)


@pytest.mark.parametrize("noise", [name for name in trends.NOISE if "0.9" not in name])
@pytest.mark.parametrize("sessions", [10, 16, 40])
def test_an_unchanged_series_has_no_step(noise: str, sessions: int) -> None:
    cell = trends.play(noise, sessions, 0.0, 0.0, 60, seed=1)
    assert cell.steps * 60 <= 2 and cell.drifts * 60 <= 2


@pytest.mark.parametrize("sessions", [16, 30, 60])
@pytest.mark.parametrize("drift", [0.003, 0.01])
def test_a_drift_is_no_step(sessions: int, drift: float) -> None:
    cell = trends.play("independent", sessions, 0.0, drift, 60, seed=1)
    assert cell.steps * 60 <= 2
    if drift * sessions > 0.5:
        assert cell.drifts == 1


def test_a_drift_with_a_step_is_both() -> None:
    found = fits(10, 60, loss=0.2, drift=0.01)
    assert all(one.drifts and len(one.told) == 1 for one in found)
    assert all(abs(one.told[0] - 30) <= 1 for one in found)
    assert all(one.slope == pytest.approx(-0.01, abs=0.003) for one in found)


@pytest.mark.parametrize("night", [0, 15, 29])
def test_a_bad_night_is_an_outlier_and_no_step(night: int) -> None:
    levels = series(2)
    levels[night] += math.log(0.3)
    found = steps.fit(levels)
    assert found.told == () and night in found.outliers


def test_few_sessions_have_no_step() -> None:
    assert steps.change_points([[1.0]] * 4 + [[0.5]] * 5) == ()
    assert steps.fit([0.0]).told == ()


def test_a_step_without_any_noise_is_found() -> None:
    assert steps.change_points([[1.0]] * 5 + [[0.5]] * 5) == (5,)
    assert steps.change_points([[1.0]] * 20) == ()


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_places_are_those_of_ruptures(count: int) -> None:
    need("ruptures")
    import ruptures

    for seed in range(10):
        levels = np.array(series(seed, 50, loss=0.2))
        made = ruptures.Dynp(model="l2", min_size=steps.FEWEST, jump=1).fit(levels)
        assert [*steps.partition(levels, count), 50] == made.predict(n_bkps=count)


@pytest.mark.parametrize("ratio", [1 / 1.4, 1.4])
@pytest.mark.parametrize("night", [2, 5, 8, 13, 16])
def test_a_bad_night_does_not_move_a_step(ratio: float, night: int) -> None:
    dice = np.random.default_rng(4)
    levels = dice.normal(0, 0.02, 22) + math.log(ratio) * (np.arange(22) >= 11)
    levels[night] += math.log(0.45)
    assert steps.fit([float(v) for v in levels]).points == (11,)

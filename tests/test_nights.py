"""The model of nights: estimates with a known answer, decisions, and changes over time."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import (
    CHOICE,
    FASTER,
    SLOWER,
    STATES,
    UNDECIDED,
    WITHIN,
    Rule,
    Scatter,
    Session,
)

Floats = NDArray[np.float64]


def side(levels: Floats | list[float], at: list[int] | None = None) -> list[Session]:
    """One repetition in each session, by logarithms; the nights are from 0, or given."""
    return [
        Session(night=night, values=(math.exp(level),))
        for night, level in zip(at or range(len(levels)), levels, strict=True)
    ]


def apart(n: int) -> list[int]:
    return list(range(100, 100 + n))


def test_a_few_nights_apart_are_judged_by_what_is_stated() -> None:
    before, after = [0.0, 0.1], [-0.5, -0.4, -0.6]
    change = night_statistics.measure(side(before), side(after, apart(3)))
    error = math.sqrt((0.01 + 0.0025) * (1 / 2 + 1 / 3))  # a repetition differs by half a night
    assert change.step == pytest.approx(np.mean(after) - np.mean(before))
    assert change.p == pytest.approx(2 * stats.norm.sf(-change.step / error))
    assert change.interval() == pytest.approx(
        np.exp(change.step + np.array([-1, 1]) * 1.959964 * error)
    )
    assert (change.nights, change.sessions, change.shared) == ((2, 3), (2, 3), 0)


def test_nights_in_turn_are_those_of_the_paired_t_test() -> None:
    dice = np.random.default_rng(1)
    level = dice.normal(0, 0.5, 10)
    before, after = level + dice.normal(0, 0.05, 10), level + dice.normal(-0.1, 0.05, 10)
    change = night_statistics.measure(side(before), side(after))
    assert change.p == pytest.approx(stats.ttest_rel(before, after).pvalue, rel=1e-3)
    assert change.freedom == pytest.approx([9], rel=1e-3)


def test_sessions_of_one_night_are_those_of_the_t_test() -> None:
    dice = np.random.default_rng(2)
    before, after = dice.normal(0, 0.03, 6), dice.normal(-0.1, 0.03, 5)
    change = night_statistics.measure(side(before, [0] * 6), side(after, [0] * 5))
    assert change.freedom == pytest.approx([9], rel=1e-3)
    assert change.p == pytest.approx(stats.ttest_ind(before, after).pvalue, rel=1e-3)


def test_any_design_is_that_of_generalized_least_squares() -> None:
    """By its matrices, with the variances that were found or stated."""
    dice = np.random.default_rng(3)
    for _ in range(100):
        count = int(dice.integers(3, 12))
        at = np.unique(dice.integers(0, 5, count), return_inverse=True)[1]
        sides = np.r_[0, 1, dice.integers(0, 2, count - 2)]
        y = dice.normal(0, 0.1, count)
        item, other = (side(y[sides == k], at[sides == k].tolist()) for k in (0, 1))
        change = night_statistics.measure(item, other)
        scatter, expected = change.scatter, change.scatter.session_known
        sessions = [scatter.session] if expected else []
        if not expected or len(change.error) > 1:
            more = 0.01 * (change.shared > 0) * (CHOICE if expected else 1)
            sessions.append(scatter.noise + more)
        x = np.eye(2)[sides]
        for error, session in zip(change.error, sessions, strict=True):
            v = session * np.eye(count) + scatter.night * (at[:, None] == at[None, :])
            inside = np.linalg.inv(x.T @ np.linalg.solve(v, x))
            if math.isfinite(error):
                assert error == pytest.approx(math.sqrt(np.array([1, -1]) @ inside @ [1, -1]))
            if session == sessions[0]:
                low, high = inside @ x.T @ np.linalg.solve(v, y)
                assert change.step == pytest.approx(high - low)


@pytest.mark.parametrize("scale", [0.0, 1e-9, 50.0])
def test_no_scatter_and_any_scale_have_an_answer(scale: float) -> None:
    for at in (list(range(4)), [0] * 4, apart(4)):
        values = scale * np.array([0, 1, 0, 1], float)
        same = night_statistics.measure(side(values), side(values, at))
        assert same.step == pytest.approx(0, abs=1e-3 * scale + 1e-8) and 0 < same.p <= 1
        low, high = same.interval()
        assert low <= 1 <= high or scale == 0
    assert night_statistics.changes(side([0.0] * 30)) == []
    assert night_statistics.changes(side([0.0] * 10 + [-0.7] * 10)) == [10]


def test_from_eight_nights_on_those_seen_count() -> None:
    """Shrunk towards what is stated; what refutes it replaces it."""
    dice = np.random.default_rng(4)
    calm = night_statistics.measure(
        side(dice.normal(0, 0.02, 20)), side(dice.normal(0, 0.02, 20), apart(20))
    )
    assert 0.02 < math.sqrt(calm.scatter.night) < 0.1 and not calm.contradicted
    few = night_statistics.measure(
        side(dice.normal(0, 0.02, 4)), side(dice.normal(0, 0.02, 4), apart(4))
    )
    assert few.scatter.night == pytest.approx(0.01)
    wild = night_statistics.measure(
        side(dice.normal(0, 0.5, 9)), side(dice.normal(0, 0.5, 9), apart(9))
    )
    assert wild.contradicted and 0.3 < math.sqrt(wild.scatter.night) < 1


@pytest.mark.parametrize("at", [list(range(6)), apart(6)])
def test_decisions(at: list[int]) -> None:
    rule = Rule(nights=0.02)
    change = [
        night_statistics.measure(
            side([0.001 * (-1) ** i for i in range(6)]), side([step] * 6, at), rule
        )
        for step in (-0.7, 0.7, 0.01, -0.7)
    ]
    assert night_statistics.decide(change, rule) == [SLOWER, FASTER, WITHIN, SLOWER]
    change_ = [night_statistics.measure(side([0.0]), side([-0.2], [9]))]
    assert night_statistics.decide(change_) == [UNDECIDED] and night_statistics.decide([]) == []


def test_many_figures_are_decided_by_the_rate_of_false_discoveries() -> None:
    p = np.random.default_rng(6).beta(0.2, 3, (50, 12)) ** 2
    states = night_statistics.states(np.full(p.shape, -1.0), p, np.ones(p.shape), Rule())
    expected = np.array([stats.false_discovery_control(row) for row in p]) <= 0.01
    assert ((states == STATES.index(SLOWER)) == expected).all() and 0 < expected.mean() < 1


def test_the_level_of_one_side_and_its_variability() -> None:
    levels = np.random.default_rng(7).normal(3, 0.1, 5)
    value, low, high = night_statistics.level(side(levels))
    half = stats.norm.ppf(0.95) * math.sqrt((0.01 + 0.0025) / 5)
    assert (value, low, high) == pytest.approx(
        tuple(np.exp(levels.mean() + half * np.array([0, -1, 1])))
    )
    variance = levels.var(ddof=1) * 4 / special.chdtri(4, [0.05, 0.95])
    assert night_statistics.variability(side(levels))[1:] == pytest.approx(
        np.sqrt(np.expm1(variance))
    )


@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("blocks", [1, 4, 12])
def test_what_can_be_found_is_found(in_turn: bool, blocks: int) -> None:
    """In 95 % of a thousand plays of the loss that is told."""
    scatter = Scatter(night=0.01, session=0.0004, session_known=True, noise=0.0)
    loss = night_statistics.findable(scatter, blocks, in_turn, 1, Rule(nights=0.1))
    dice = np.random.default_rng(8)
    at = np.r_[np.arange(blocks), np.arange(blocks) + (0 if in_turn else blocks)]
    sides = np.repeat([0, 1], blocks)
    levels = dice.normal(0, 0.1, (1000, at.max() + 1))[:, at] + dice.normal(
        0, 0.02, (1000, len(at))
    )
    item = night_statistics.estimate(
        levels + math.log1p(-loss) * sides, sides, at, np.zeros(levels.shape), Rule()
    )
    p = night_statistics.student_p(item.step, item.error, item.freedom).min(axis=0)
    assert ((p <= 0.01) & (item.step < 0)).mean() >= 0.92
    fewest = night_statistics.needed(scatter, in_turn, 1, Rule(limit=loss))
    assert fewest is not None and fewest <= blocks


@pytest.mark.parametrize("per_night", [1, 3])
def test_what_is_found_over_time_depends_on_no_later_session(per_night: int) -> None:
    dice = np.random.default_rng(9)
    truth = np.repeat([0, -0.7, -0.7, 0.2], 12)
    levels = truth + dice.normal(0, 0.1, 16).repeat(3) + dice.normal(0, 0.05, 48)
    series = side(levels, [i // per_night for i in range(48)])
    whole = night_statistics.changes(series, figures=20)
    assert len(whole) == 2 and abs(whole[0] - 12) <= 1 and abs(whole[1] - 36) <= 1
    items: list[int] = []
    for end in range(1, 49):
        now = night_statistics.changes(series[:end], figures=20)
        assert now[: len(items)] == items
        items = now
    assert items == whole


def test_a_drift_is_told_from_a_step() -> None:
    drift = side([-0.03 * i for i in range(20)])
    step = side([0.0] * 10 + [-0.5] * 10)
    for series, drifts in ((drift, True), (step, False)):
        change = night_statistics.measure(series[:10], series[10:])
        assert night_statistics.drifting(series[:10], change, 10) == drifts

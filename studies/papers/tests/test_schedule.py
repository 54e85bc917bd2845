"""Equations 2 to 4 and the timestep schedule (docs/equations.md), against known answers."""

from fractions import Fraction
from itertools import pairwise
from math import prod

import numpy as np
import pytest

from tests.support.said import raises
from understudy.contracts.measurement import PlayedDump
from understudy.errors import UnderstudyError
from understudy.judge.statistics import pauses as judge
from understudy_papers.model import schedule
from understudy_papers.model.schedule import Timesteps

SEEDS = range(20)


def as_printed(total_bytes: float, factors: list[float]) -> float:
    """Equation 4 as the paper prints it for states 0 … n, with factors F_0 … F_n."""
    nest = 1.0 + factors[-1]
    for factor in reversed(factors[:-1]):
        nest = 1.0 + factor * nest
    return total_bytes / nest


def random_factors(seed: int) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(f) for f in rng.uniform(0.5, 3.0, size=rng.integers(0, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_states_add_up_to_the_total_and_follow_the_factors(seed: int) -> None:
    factors = random_factors(seed)
    total = 10**12 + seed
    sizes = schedule.state_bytes(total, factors)
    assert len(sizes) == len(factors) + 1
    assert sum(sizes) == total  # Equation 2, to the byte
    assert sizes[0] == pytest.approx(schedule.first_state_bytes(total, factors), abs=1)
    for (before, after), factor in zip(pairwise(sizes), factors, strict=True):  # Equation 3
        assert abs(after - factor * before) <= 1 + factor


def test_equation_4_by_hand() -> None:
    assert schedule.first_state_bytes(700, [2, 2]) == 100  # 100 + 200 + 400
    assert schedule.first_state_bytes(700, []) == 700
    assert schedule.state_bytes(700, [2, 2]) == (100, 200, 400)


@pytest.mark.parametrize("states", [1, 2, 50])
def test_equation_4_as_printed_gives_one_state_too_many(states: int) -> None:
    """Its innermost term holds F_n, which leads to a state n + 1: the states 0 … n fall short."""
    first = as_printed(1.0, [1.0] * states)
    assert first == pytest.approx(1 / (states + 1))
    assert first * states == pytest.approx(1 - 1 / (states + 1))
    assert schedule.first_state_bytes(1.0, [1.0] * (states - 1)) == pytest.approx(1 / states)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_growth_sequence_gives_its_sizes_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(s) for s in rng.integers(10**6, 10**10, size=rng.integers(1, 60))]
    factors = schedule.growth_factors(sizes)
    assert len(factors) == len(sizes) - 1
    assert schedule.grown(sizes[0], factors) == tuple(sizes)


@pytest.mark.parametrize("sizes", [[], [5, 0, 5]])
def test_sizes_that_cannot_grow_are_one_message(sizes: list[int]) -> None:
    with raises(UnderstudyError, "expected-one-more-above"):
        schedule.growth_factors(sizes)


@pytest.mark.parametrize("seed", SEEDS)
def test_apportioned_numbers_are_whole_near_and_complete(seed: int) -> None:
    rng = np.random.default_rng(seed)
    weights = [float(w) for w in rng.uniform(0.01, 100, size=rng.integers(1, 200))]
    total = int(rng.integers(1, 10**15))
    parts = schedule.apportion(total, weights)
    assert sum(parts) == total
    whole = sum(map(Fraction, weights))
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - total * Fraction(weight) / whole) <= 1


def test_a_series_follows_the_latest_dump_of_another() -> None:
    changes = [(10.0, 100), (20.0, 300), (30.0, 300), (40.0, 900)]
    times = [0.0, 10.0, 19.0, 20.0, 45.0]
    assert schedule.followed_factors(times, changes) == (1, 1, 3, 3)


STATED = {
    "dumps": 27,
    "first_bytes": 259_000_000,
    "activation_dump": 5,
    "peak_dump": 10,
    "peak_bytes": 1_600_000_000,
    "last_bytes": 1_900_000_000,
}


def test_the_reconstructed_growth_is_what_the_text_states() -> None:
    """Section V-B2: 27 checkpoints, 259 MB at first, a jump around the fifth, 1.6 GB around the
    tenth (V-D2), 1.9 GB in the end, non-linear."""
    factors = [step.factor for step in schedule.reconstructed_growth(**STATED)]
    sizes = schedule.grown(STATED["first_bytes"], factors)
    assert len(factors) == 26 and len(sizes) == 27
    assert (sizes[0], sizes[9], sizes[26]) == (259_000_000, 1_600_000_000, 1_900_000_000)
    assert prod(factors) == pytest.approx(1900 / 259)
    assert all(factor > 1 for factor in factors)
    gains = [after - before for before, after in pairwise(sizes)]
    assert factors.index(max(factors)) == gains.index(max(gains)) == 3  # leads to the fifth
    assert factors[3:9] == sorted(factors[3:9], reverse=True)  # the jump fades
    assert factors[:3] == pytest.approx([factors[-1]] * 3)
    assert len(set(np.round(factors[9:], 12))) == 1


def test_every_reconstructed_factor_states_its_constraint() -> None:
    steps = schedule.reconstructed_growth(**STATED)
    slow = steps[-1].factor
    said = [step.constraint.partition(":")[0].partition(",")[0] for step in steps]
    assert said[:3] == ["no jump before the activation"] * 3
    assert said[3] == "the jump"
    assert all(s.startswith("the excess over the slow growth halves") for s in said[4:9])
    assert said[9:] == ["constant"] * 17
    excess = [np.log(step.factor / slow) for step in steps[3:9]]
    assert excess[1:] == pytest.approx([e / 2 for e in excess[:-1]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"activation_dump": 10}, "expected 1 < activation_dump < peak_dump < number of dumps"),
        ({"dumps": 10}, "expected 1 < activation_dump < peak_dump < number of dumps"),
        ({"peak_bytes": 2_000_000_000}, "expected 0 < first_bytes < peak_bytes < last_bytes"),
        (
            {"first_bytes": 1_599_999_999},
            "expected it to be faster than the growth after that dump",
        ),
    ],
)
def test_bounds_that_contradict_are_one_message(change: dict[str, int], message: str) -> None:
    with pytest.raises(UnderstudyError, match=message):
        schedule.reconstructed_growth(**{**STATED, **change})


@pytest.mark.parametrize(
    ("checkpoints", "states", "end", "checkpoint_every", "state_every"),
    [
        (49, 50, 2500, 50, 50),
        (27, 28, 784, 28, 28),
        (3, 116, 464, 116, 4),
        (3, 88, 352, 88, 4),
        (10, 0, 11, 1, 11),
        (0, 5, 5, 5, 1),
    ],
)
def test_timesteps_of_the_paper(
    checkpoints: int, states: int, end: int, checkpoint_every: int, state_every: int
) -> None:
    steps = Timesteps(checkpoints=checkpoints, states=states)
    assert (steps.end, steps.checkpoint_every) == (end, checkpoint_every)
    assert len(steps.checkpoint_steps) == checkpoints and len(steps.state_steps) == states
    assert all(0 < step < end for step in steps.checkpoint_steps)
    if states:
        assert steps.state_every == state_every
        assert steps.state_steps[0] == 0 and steps.state_steps[-1] == end - state_every


@pytest.mark.parametrize(("checkpoints", "states"), [(49, 50), (27, 28), (3, 116), (1, 7)])
def test_absolute_times_are_those_of_the_timesteps(checkpoints: int, states: int) -> None:
    steps, runtime_s = Timesteps(checkpoints=checkpoints, states=states), 7139.5
    for ours, of_steps in (
        (schedule.spread_s(checkpoints, runtime_s, from_start=False), steps.checkpoint_steps),
        (schedule.spread_s(states, runtime_s, from_start=True), steps.state_steps),
    ):
        assert ours == pytest.approx([steps.time_s(s, runtime_s) for s in of_steps], abs=1e-6)
    gap_s = steps.checkpoint_every * runtime_s / steps.end
    by_dt = schedule.seconds_by_dt(gap_s, steps.checkpoint_every)
    assert steps.end * by_dt == pytest.approx(runtime_s)


def test_no_dump_at_all_is_one_message() -> None:
    with raises(UnderstudyError, "least-one-dump"):
        Timesteps(checkpoints=0, states=0)
    with pytest.raises(UnderstudyError, match="expected >= 0 s in >= 1"):
        schedule.seconds_by_dt(1.0, 0)


def pauses(whole_seconds: list[int], every: int, total_s: float) -> list[float]:
    """Pauses with these whole seconds per timestep; the fractions make up the rest, evenly."""
    rest = (total_s - every * sum(whole_seconds)) / len(whole_seconds)
    assert 0 <= rest < every
    return [every * whole + rest for whole in whole_seconds]


@pytest.mark.parametrize(
    ("checkpoints", "states", "whole_seconds", "asked_s", "played_s", "error"),
    [
        (49, 50, [1] * 35 + [2] * 3 + [3, 3, 4, 4, 5, 6, 7, 8, 10, 13, 16], 6862, 6050, -0.12),
        (
            27,
            28,
            [0]
            + [1] * 4
            + [2, 3, 4, 5, 6, 6, 7, 8, 9, 9, 10, 11, 13, 13, 14, 15, 16, 16]
            + [17] * 4,
            7051,
            6692,
            -0.05,
        ),
        (3, 88, [6, 0, 2], 754, 1232, 0.63),
    ],
    ids=["A", "C", "E"],
)
def test_what_truncation_made_of_the_paper_s_pauses(
    checkpoints: int,
    states: int,
    whole_seconds: list[int],
    asked_s: float,
    played_s: int,
    error: float,
) -> None:
    """The published replicas of A, C and E pause 12 % and 5 % too short and 63 % too long."""
    steps = Timesteps(checkpoints=checkpoints, states=states)
    asked = pauses(whole_seconds, steps.checkpoint_every, asked_s)
    assert sum(asked) == pytest.approx(asked_s)
    played = schedule.truncated_pauses_s(asked, steps)
    assert played == played_s
    assert played / asked_s - 1 == pytest.approx(error, abs=0.005)


def test_pauses_of_less_than_a_second_per_timestep_vanish() -> None:
    steps = Timesteps(checkpoints=3, states=88)
    assert schedule.truncated_pauses_s([87.9] * 3, steps) == 0
    with raises(UnderstudyError, "expected-one-per-checkpoint"):
        schedule.truncated_pauses_s([1.0], steps)


def played(*times: tuple[float, float]) -> list[PlayedDump]:
    """Dumps by (scheduled, started)."""
    return [
        PlayedDump(
            dump=i,
            scheduled_s=due,
            start_s=start,
            lateness_s=start - due,
            described_bytes=1,
            bytes=1,
            file_bytes=1,
            files=1,
            phases=(),
        )
        for i, (due, start) in enumerate(times)
    ]


def test_pauses_are_the_gaps_between_the_moments_of_the_schedule() -> None:
    """Two dumps are due at 20 s: the second waits for the first, which is no pause."""
    pauses = judge.pauses(played((0, 0.1), (20, 20.3), (10, 10.1), (20, 25.0)))
    assert (pauses.asked_s, pauses.kept_s) == (20, pytest.approx(20.2))
    assert pauses.error == pytest.approx(0.01)
    assert pauses.median_lateness_s == pytest.approx(0.2)
    assert pauses.max_lateness_s == 5


def test_pauses_that_are_cut_short_are_an_error() -> None:
    """Whole seconds cut 10 pauses of 1.5 s short, as in the loop of the paper."""
    pauses = judge.pauses(played(*((1.5 * k, 1.0 * k) for k in range(11))))
    assert pauses.error == pytest.approx(-1 / 3)
    assert pauses.max_lateness_s == -5


def test_one_moment_has_no_pauses() -> None:
    assert judge.pauses(played((3, 3.5))).error == 0
    with raises(UnderstudyError, "no-dumps-expected-one"):
        judge.pauses([])

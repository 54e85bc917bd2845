"""Time steps by the pauses between accesses, whatever their share of the run."""

import numpy as np
import pytest

from understudy.inference.streams.pauses import cut, cut_flushed, cut_into, pauses_of

Sizes = list[int]


def found(
    pauses: list[float], sizes: Sizes | None = None, call_s: float = 0.01
) -> tuple[int, ...]:
    equal = np.ones(len(pauses) + 1, np.int64)
    of_calls = equal if sizes is None else np.array(sizes, np.int64)
    return cut(np.array(pauses), of_calls, call_s=call_s, few_s=10.0).at


@pytest.mark.parametrize("period_s", [0.5, 15.0, 600.0, 86_400.0])
def test_pauses_of_two_kinds(period_s: float) -> None:
    """Three calls in each of four time steps, a few milliseconds apart."""
    assert found([0.004, 0.006, period_s] * 3 + [0.005, 0.003]) == (3, 6, 9)


def test_pauses_of_one_kind_divide_if_they_are_long() -> None:
    assert found([15.0, 14.0, 16.0]) == (1, 2, 3)
    assert found([0.02, 0.02, 0.03], call_s=1.0) == ()  # calls take longer than the pauses
    assert found([1e-5, 2e-4, 9e-4]) == ()
    assert found([]) == ()


def test_without_a_break_the_longest_divide() -> None:
    """Pauses of every length from one to 40 seconds, calls of half a second."""
    pauses = [1.0, 2.5, 6.0, 15.0, 3.0, 40.0]
    assert found(pauses, call_s=0.5) == (4, 6)


def test_a_run_of_a_tenth_of_a_second_is_not_divided_where_a_process_waited() -> None:
    equal = np.ones(7, np.int64)
    pauses = np.array([3e-3, 7e-3, 2e-3, 6e-3, 8e-3, 1e-4])
    assert cut(pauses, equal, call_s=1e-4, few_s=5.5e-3).at == ()
    pauses = np.array([3e-3, 12e-3, 5e-3, 11e-3, 14e-3, 1e-4])
    assert cut(pauses, equal, call_s=1e-4, few_s=5.5e-3).at == (2, 4, 5)


def test_one_long_pause_does_not_hide_the_others() -> None:
    """The job was stopped once for an hour; calls are a second apart, time steps fifteen."""
    pauses = ([1.0, 15.0] * 9 + [1.0, 300.0]) * 2 + [1.0]
    at = found(pauses, call_s=0.2)
    assert at == tuple(range(2, 42, 2))
    cuts = cut(np.array(pauses), np.ones(len(pauses) + 1, np.int64), call_s=0.2, few_s=10.0)
    assert cuts.clear
    assert cuts.others  # two steps are plausible as well


def test_alike_time_steps_count_for_more_than_a_break() -> None:
    """Three variables half a second apart: not time steps of their own."""
    pauses = ([0.5, 0.5, 100.0] * 4)[:-1]
    assert found(pauses, [8, 1, 1] * 4, call_s=1e-3) == (3, 6, 9)


def test_a_known_number_of_time_steps() -> None:
    pauses = np.array([0.1, 5.0, 0.1, 6.0, 0.2])
    assert cut_into(pauses, 3).at == (2, 4)
    assert cut_into(pauses, 3).clear
    assert not cut_into(pauses, 4).clear
    assert cut_into(pauses, 7).at == () == cut_into(pauses, 1).at


def test_pauses_are_from_the_last_end_on() -> None:
    start, end = np.array([0.0, 1.0, 9.0]), np.array([8.0, 2.0, 9.5])
    assert pauses_of(start, end).tolist() == [-7.0, 1.0]


def test_the_last_time_step_may_end_without_a_flush() -> None:
    pauses = np.array([0.3] * 7)
    assert cut_flushed(pauses, 7).steps == 8
    assert cut_flushed(pauses, 8).steps == 8
    assert cut_flushed(np.array([0.3, 0.001] * 4), 5).steps == 5

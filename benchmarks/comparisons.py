"""The rules of `understudy compare` on histories whose truth is known.

    PYTHONPATH=python:. python benchmarks/comparisons.py [--campaigns N] [--cases K] [--sessions S]

A campaign is a comparison of K cases, S sessions before and S after. False alarms are campaigns in
which a case that did not change is called worse or better. Prints the table of docs/statistics.md.
"""

import argparse
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from understudy.judge import change, plan
from understudy.judge.change import BETTER, NO_CHANGE, UNDECIDED, WORSE, Change

WITHIN, BETWEEN = 0.05, 0.03  # standard deviations of logarithms
REPETITIONS = 5
COMPARED = 24  # sessions of which one is bad
PLANNED_LOSS = 0.1
Level = NDArray[np.float64]
Dice = np.random.Generator
Make = Callable[[Dice, int, int], Level]


def plain(dice: Dice, sessions: int, _: int) -> Level:
    """float64[sessions, repetitions] of logarithms"""
    level = dice.normal(0, BETWEEN, (sessions, 1))
    return level + dice.normal(0, WITHIN, (sessions, REPETITIONS))


def bimodal(dice: Dice, sessions: int, _: int) -> Level:
    return plain(dice, sessions, 0) - 0.3 * (dice.random((sessions, 1)) < 0.3)


def wide(dice: Dice, sessions: int, _: int) -> Level:
    """Sessions differ by 10 %."""
    return plain(dice, sessions, 0) + dice.normal(0, 0.1, (sessions, 1))


def heavy(dice: Dice, sessions: int, _: int) -> Level:
    """Student's t of two degrees of freedom, between and within sessions."""
    level = BETWEEN * dice.standard_t(2, (sessions, 1))
    return level + WITHIN * dice.standard_t(2, (sessions, REPETITIONS))


def cached(dice: Dice, sessions: int, _: int) -> Level:
    """One repetition of ten, and one session of ten, is served by a cache, five times as fast."""
    hit = dice.random((sessions, REPETITIONS)) < 0.1
    hit |= dice.random((sessions, 1)) < 0.1
    return plain(dice, sessions, 0) + math.log(5) * hit


def one_bad_night(dice: Dice, sessions: int, bad: int) -> Level:
    found = plain(dice, sessions, 0)
    if bad >= 0:
        found[bad % sessions] -= 0.7
    return found


def drift(dice: Dice, sessions: int, _: int) -> Level:
    return plain(dice, sessions, 0) - 0.01 * np.arange(sessions)[:, None]


def wandering(dice: Dice, sessions: int, _: int) -> Level:
    """Each session keeps 0.7 of the deviation of the last."""
    found = plain(dice, sessions, 0)
    level = 0.0
    for i in range(sessions):
        level = 0.7 * level + dice.normal(0, BETWEEN * math.sqrt(1 - 0.49))
        found[i] += level
    return found


SCENARIOS: dict[str, tuple[Make, float]] = {
    "no change": (plain, 0), "-5 %": (plain, 0.05), "-10 %": (plain, 0.1),
    "-30 %": (plain, 0.3), "no change, sessions differ by 10 %": (wide, 0),
    "no change, bimodal": (bimodal, 0), "no change, heavy tails": (heavy, 0),
    "no change, cache hit or miss": (cached, 0), "no change, one bad night": (one_bad_night, 0),
    "no change, drift of 1 % a session": (drift, 0),
    "no change, sessions that follow each other": (wandering, 0),
    "-10 %, one bad night": (one_bad_night, 0.1), "-10 %, heavy tails": (heavy, 0.1),
    "-30 %, bimodal": (bimodal, 0.3), "-30 %, cache hit or miss": (cached, 0.3),
    "-10 %, drift of 1 % a session": (drift, 0.1),
}  # fmt: skip


def campaign(
    dice: Dice, make: Make, loss: float, cases: int, before: int, after: int, history: int
) -> tuple[list[Change], list[str]]:
    changes = []
    bad = int(dice.integers(before + after)) + history
    for _ in range(cases):
        values = np.exp(make(dice, history + before + after, bad))
        values[history + before :] *= 1 - loss
        past, first, second = np.split(values, [history, history + before])
        changes.append(
            change.measure(first.tolist(), second.tolist(), past.tolist(), resamples=500)
        )
    changes = change.adjusted(changes)
    return changes, [state for state, _ in change.decide(changes)]


def planned(dice: Dice, make: Make, loss: float, cases: int, pilot: int) -> int | None:
    """Sessions on each side that `understudy plan` asks for, for all cases; None where it says
    that no practical number suffices. The pilot has a bad night as often as a comparison."""
    bad = int(dice.integers(COMPARED))
    series = [np.exp(make(dice, pilot, bad if bad < pilot else -1)).tolist() for _ in range(cases)]
    factor = plan.factor(series)
    needs = [plan.need(one, loss, cases, REPETITIONS, factor) for one in series]
    counts = [need.sessions if need else None for need in needs]
    return None if None in counts else max(n for n in counts if n)


def row(name: str, args: argparse.Namespace, seed: int) -> str:
    make, loss = SCENARIOS[name]
    dice = np.random.default_rng(seed)
    states: Counter[str] = Counter()
    alarms = held = silent = total = 0
    sizes: list[int] = []
    for _ in range(args.campaigns):
        before, after = args.sessions, args.after or args.sessions
        if args.pilot and loss:
            wanted = planned(dice, make, PLANNED_LOSS, args.cases, args.pilot)
            if wanted is None:
                continue
            before = after = wanted
        sizes.append(before)
        changes, found = campaign(dice, make, loss, args.cases, before, after, args.history)
        states.update(found)
        wrong = (BETTER,) if loss else (WORSE, BETTER)
        alarms += any(state in wrong for state in found)
        for one, state in zip(changes, found, strict=True):
            inside = one.low <= 1 - loss <= one.high
            held += inside
            total += 1
            silent += state == NO_CHANGE and not inside
    if not sizes:
        return f"| {name} | no campaign could be planned |"
    cells = [f"{100 * states[s] / total:.1f}" for s in (WORSE, BETTER, NO_CHANGE, UNDECIDED)]
    rate = stats.binomtest(alarms, len(sizes), alternative="less").proportion_ci()
    bound = 100 * float(rate.high)
    return (
        f"| {name} | {min(sizes)} to {max(sizes)} | {' | '.join(cells)} | "
        f"{alarms} of {len(sizes)} ({100 * alarms / len(sizes):.1f} %, at most {bound:.1f} %) | "
        f"{100 * silent / total:.2f} | {100 * held / total:.1f} |"
    ).replace("-", "\N{MINUS SIGN}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=200)
    parser.add_argument("--cases", type=int, default=10)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--after", type=int, default=0, help="sessions after, if other")
    parser.add_argument("--history", type=int, default=0)
    parser.add_argument(
        "--pilot",
        type=int,
        default=0,
        help="rows with a loss: as many sessions as `understudy plan` asks for to find 10 %% "
        "after a pilot of so many",
    )
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0, help="of the first scenario")
    args = parser.parse_args()
    print("| truth | sessions on a side | worse | better | no change | undecided | "
          "campaigns with a false alarm | "
          "\N{LEFT DOUBLE QUOTATION MARK}no change\N{RIGHT DOUBLE QUOTATION MARK} and truth "
          "outside the interval | truth inside the interval |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|")
    for seed, name in enumerate(SCENARIOS):
        if args.only in name:
            print(row(name, args, args.seed + seed), flush=True)


if __name__ == "__main__":
    main()

"""Accuracy of `understudy trend` on series whose truth is known: false alarms, and changes found.

    PYTHONPATH=python:. python benchmarks/trends.py [--series N] [--seed S]

A session a night, of 3 repetitions that differ by 5 %. A cell is a kind of noise (those of
benchmarks/comparisons.py), a number of sessions and a truth: nothing, a loss in the middle, or a
drift. Found is a loss with its date: the last change, a session from where it is at most.
"""

import argparse
import itertools
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np

from benchmarks.comparisons import APART, NOISE, sample
from benchmarks.support import heat
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import Rule, Session

SESSIONS = (10, 20, 40, 120)
LOSSES = (0.1, 0.2, 0.3, 0.5, 0.9)
DRIFTS = (0.003, 0.01)
REPETITIONS = 3
FIGURES = 20  # among which each series is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Shares of series: `alarms`, with a change besides the true one, and `found`."""

    noise: str
    sessions: int
    loss: float
    drift: float
    alarms: float
    found: float


def play(noise: str, sessions: int, loss: float, drift: float, series: int, seed: int) -> Cell:
    truth = [list(NOISE).index(noise), sessions, round(1000 * loss), round(1000 * drift)]
    dice = np.random.default_rng([seed, *truth])
    one = sample(dice, NOISE[noise], APART, sessions // 2, REPETITIONS, series)
    t, middle = np.arange(sessions), sessions // 2
    moved = math.log1p(-drift) * t + math.log1p(-loss) * (t >= middle)
    alarms = found = 0
    for runs in np.exp(one.runs + moved[:, None]):
        side = [Session(night=i, values=tuple(values)) for i, values in enumerate(runs.tolist())]
        points = night_statistics.changes(side, Rule(), FIGURES)
        at = bool(points) and abs(points[-1] - middle) <= 1
        found += bool(loss) and at
        alarms += len(points) > (bool(loss) and at)
    return Cell(
        noise=noise,
        sessions=sessions,
        loss=loss,
        drift=drift,
        alarms=alarms / series,
        found=found / series,
    )


def table(made: Sequence[Cell], loss: float, drift: float, what: str) -> None:
    shares = np.zeros((len(NOISE), len(SESSIONS)))
    for c in made:
        if (c.loss, c.drift) == (loss, drift):
            shares[list(NOISE).index(c.noise), SESSIONS.index(c.sessions)] = getattr(c, what)
    heads = [f"{n} sessions" for n in SESSIONS]
    print(*heat.table(list(NOISE), heads, 100 * shares, "{:.1f}"), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, default=100, help="of each cell with a loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    truths = [(0.0, 0.0), *((0.0, drift) for drift in DRIFTS), *((loss, 0.0) for loss in LOSSES)]
    wanted = [(noise, n, *truth) for noise, n, truth in itertools.product(NOISE, SESSIONS, truths)]
    with ProcessPoolExecutor(args.processes) as pool:
        jobs = [
            pool.submit(play, *one, args.series * (4 if not any(one[2:]) else 1), args.seed)
            for one in wanted
        ]
        made = [job.result() for job in jobs]
    print("Unchanged, and a change is told (%):\n")
    table(made, 0, 0, "alarms")
    for drift in DRIFTS:
        print(f"\nA drift of {drift:.1%} a session, and a change is told (%):\n")
        table(made, 0, drift, "alarms")
    for loss in LOSSES:
        print(f"\nA loss of {loss:.0%} in the middle, found with its date (%):\n")
        table(made, loss, 0, "found")


if __name__ == "__main__":
    main()

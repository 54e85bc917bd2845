"""What `understudy trend` makes of series whose truth is known: false alarms, steps and drifts.

    PYTHONPATH=python:. python benchmarks/trends.py [--series N] [--seed S]

Sessions differ by 5 %. A cell is a kind of noise, a number of sessions and a truth: nothing, a
step in the middle, a drift, or both. The prices of `judge.steps` were chosen with the seeds 1 to
77; the tables of docs/statistics.md are of seed 9000.
"""

import argparse
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from understudy.judge import steps

Floats = NDArray[np.float64]
Dice = np.random.Generator
SCATTER = 0.05  # standard deviation of logarithms
BAD = math.log(0.5)
SESSIONS = (10, 16, 30, 60, 120)
LOSSES = (0.1, 0.2, 0.3)
DRIFTS = (0.003, 0.005, 0.01)
DRIFTING = (16, 30, 60)
AR_1 = "each keeps {} of the last"


def following(share: float, shape: tuple[int, int], dice: Dice) -> Floats:
    made = dice.normal(0, SCATTER, shape)
    for i in range(1, shape[1]):
        made[:, i] = share * made[:, i - 1] + math.sqrt(1 - share**2) * made[:, i]
    return made


def _following(share: float) -> Callable[[tuple[int, int], Dice], Floats]:
    return lambda shape, dice: following(share, shape, dice)


NOISE: dict[str, Callable[[tuple[int, int], Dice], Floats]] = {
    "independent": lambda shape, dice: dice.normal(0, SCATTER, shape),
    "heavy tails": lambda shape, dice: SCATTER * dice.standard_t(2, shape),
    "one bad night of ten": lambda shape, dice: (
        dice.normal(0, SCATTER, shape) + BAD * (dice.random(shape) < 0.1)
    ),
    **{AR_1.format(share): _following(share) for share in (0.5, 0.7, 0.9)},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Shares of series: `steps` told, `placed`: one, within one session of its place, `drifts`."""

    noise: str
    sessions: int
    loss: float
    drift: float
    steps: float
    placed: float
    drifts: float


def play(noise: str, sessions: int, loss: float, drift: float, series: int, seed: int) -> Cell:
    truth = [list(NOISE).index(noise), sessions, round(1000 * loss), round(1000 * drift)]
    levels = NOISE[noise]((series, sessions), np.random.default_rng([seed, *truth]))
    t, middle = np.arange(sessions), sessions // 2
    found = [
        steps.fit((one + math.log1p(-drift) * t + math.log1p(-loss) * (t >= middle)).tolist())
        for one in levels
    ]
    placed = [len(one.told) == 1 and abs(one.told[0] - middle) <= 1 for one in found]
    return Cell(
        noise=noise,
        sessions=sessions,
        loss=loss,
        drift=drift,
        steps=float(np.mean([bool(one.told) for one in found])),
        placed=float(np.mean(placed)),
        drifts=float(np.mean([one.drifts for one in found])),
    )


def table(
    heads: Sequence[str], made: Sequence[Cell], text: Callable[[Cell], str]
) -> Iterator[str]:
    yield f"| noise | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    for noise in NOISE:
        yield f"| {noise} | {' | '.join(text(one) for one in made if one.noise == noise)} |"


def percent(share: float) -> str:
    return f"{100 * share:.1f}" if share < 0.1 else f"{100 * share:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--series", type=int, default=20, help="of every step; 5 times as many without one"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    wanted = [(noise, n, 0.0, 0.0) for noise, n in itertools.product(NOISE, SESSIONS)]
    wanted += list(itertools.product(NOISE, SESSIONS, LOSSES, [0.0]))
    wanted += list(itertools.product(NOISE, DRIFTING, [0.0], DRIFTS))
    wanted += list(itertools.product(NOISE, DRIFTING, [0.2], [0.01]))
    with ProcessPoolExecutor(args.processes) as pool:
        jobs = [
            pool.submit(play, *one, args.series * (1 if one[2] else 5), args.seed)
            for one in wanted
        ]
        made = [job.result() for job in jobs]
    still = [one for one in made if not one.loss and not one.drift]
    print("Unchanged series with a step, and with a drift (%):\n")
    heads = [f"{n} sessions" for n in SESSIONS]
    print(*table(heads, still, lambda c: f"{percent(c.steps)}, {percent(c.drifts)}"), sep="\n")
    for loss in LOSSES:
        some = [one for one in made if one.loss == loss and not one.drift]
        print(f"\nSteps of {loss:.0%}: found, and one within a session of its place (%):\n")
        print(*table(heads, some, lambda c: f"{percent(c.steps)}, {percent(c.placed)}"), sep="\n")
    heads = [f"{n} sessions" for n in DRIFTING]
    for drift in DRIFTS:
        some = [one for one in made if one.drift == drift and not one.loss]
        print(f"\nDrifts of {drift:.1%} a session: with a false step, and found (%):\n")
        print(*table(heads, some, lambda c: f"{percent(c.steps)}, {percent(c.drifts)}"), sep="\n")
    some = [one for one in made if one.drift and one.loss]
    print("\nDrifts of 1 % with a step of 20 %: step found, drift found (%):\n")
    print(*table(heads, some, lambda c: f"{percent(c.steps)}, {percent(c.drifts)}"), sep="\n")


if __name__ == "__main__":
    main()

"""The operating characteristic of `understudy accept`: its verdicts where the truth is known.

    PYTHONPATH=python:. python benchmarks/acceptances.py [--figures N] [--seed S] [-o TABLE.json]

A cell is a number of nights, of repetitions, a kind of noise (those of benchmarks/comparisons.py)
and how far the median of the system lies from the limit of a mark. A system at the limit must not
pass, nor fail, in more than 5 % of acceptances. Of a drift the limit is at its last night.
All figures of a cell are judged at once, by the function of the command, but for changes within
the nights, which the command looks for, too.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from benchmarks.comparisons import IN_TURN, NOISE, REPETITIONS, sample
from benchmarks.support import heat
from understudy.judge.statistics import night_statistics as judged
from understudy.judge.statistics.night_statistics import CONFIDENCE, Rule

NIGHTS = (1, 2, 3, 5, 8, 12, 20, 37)
MARGINS = (-0.2, -0.1, 0.0, 0.05, 0.1, 0.2, 0.3)  # of the limit, relative to the median
ALLOWED = 0.05
MANY = 400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Figures by state; `margin` is how far the limit lies below the median."""

    nights: int
    repetitions: int
    noise: str
    margin: float
    figures: int
    passed: int
    failed: int

    @property
    def wrong(self) -> float:
        """The larger share of a system at the limit that passes or fails."""
        return max(self.passed, self.failed) / self.figures


def interval(
    dice: np.random.Generator, name: str, nights: int, repetitions: int, figures: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Both ends, logarithms, of the levels of figures."""
    one = sample(dice, NOISE[name], IN_TURN, nights, repetitions, figures)
    found = judged.estimate(
        one.levels[:, :nights],
        np.ones(nights, np.intp),
        one.nights[:nights],
        np.full((figures, nights), math.nan),  # a run is one value of its session
        Rule(),
    )
    half = judged.reach(found.error, found.freedom, 2 - 2 * CONFIDENCE).min(axis=0)
    return found.step - half, found.step + half


def cells(figures: int, seed: int) -> Iterator[Cell]:
    wanted = list(itertools.product(NOISE, REPETITIONS))
    show = Console(stderr=True, quiet=not sys.stderr.isatty())
    for number, (name, repetitions) in enumerate(track(wanted, console=show)):
        dice = np.random.default_rng([seed, number])
        # Nights that follow each other have the median of one night.
        alone = sample(dice, NOISE[name], IN_TURN, 1, repetitions, MANY).levels
        for nights in NIGHTS:
            low, high = interval(dice, name, nights, repetitions, figures)
            middle = float(np.median(alone)) - (0.01 * (nights - 1) if "drift" in name else 0)
            for margin in MARGINS:
                limit = middle + math.log1p(-margin)
                yield Cell(
                    nights=nights,
                    repetitions=repetitions,
                    noise=name,
                    margin=margin,
                    figures=figures,
                    passed=int((low >= limit).sum()),
                    failed=int((high < limit).sum()),
                )


def shares(made: Sequence[Cell], margin: float, repetitions: int | None) -> NDArray[np.float64]:
    """Percent by noise and nights: of a system at the limit what is wrong in the worst number of
    repetitions, else what passes (or fails, below it)."""
    found = np.zeros((len(NOISE), len(NIGHTS)))
    for (i, noise), (j, nights) in itertools.product(enumerate(NOISE), enumerate(NIGHTS)):
        of = [
            c
            for c in made
            if (c.noise, c.nights, c.margin) == (noise, nights, margin)
            and repetitions in (None, c.repetitions)
        ]
        found[i, j] = 100 * max(
            c.wrong if margin == 0 else (c.passed if margin > 0 else c.failed) / c.figures
            for c in of
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, help="JSON of every cell")
    parser.add_argument("--svg", type=Path, help="heat maps")
    args = parser.parse_args()
    made = list(cells(args.figures, args.seed))
    if args.output:
        args.output.write_text(json.dumps([asdict(cell) for cell in made], indent=0) + "\n")
    wrong, found = shares(made, 0, None), shares(made, 0.1, 3)
    heads = [str(n) for n in NIGHTS]
    print("Passed or failed at the limit, the worse of 1 and 3 repetitions (%):\n")
    print(*heat.table(list(NOISE), heads, wrong, "{:.1f}"), sep="\n")
    print("\nPassed with the limit 10 % below the median, 3 repetitions (%):\n")
    print(*heat.table(list(NOISE), heads, found, "{:.0f}"), sep="\n")
    print("\nFailed with the limit 10 % above the median, 3 repetitions (%):\n")
    print(*heat.table(list(NOISE), heads, shares(made, -0.1, 3), "{:.0f}"), sep="\n")
    if args.svg:
        heat.draw(
            args.svg,
            list(NOISE),
            heads,
            "nights",
            [
                ("passed or failed at the limit (%)", wrong, 100 * ALLOWED),
                ("passed with the limit 10 % below the median (%)", found, None),
            ],
        )
    bad = [c for c in made if c.margin == 0 and c.wrong > ALLOWED]
    for c in bad:
        print(
            f"{c.noise}, {c.nights} nights of {c.repetitions}: {c.passed} passed and {c.failed} "
            f"failed of {c.figures} at the limit"
        )
    print(f"{len(made)} cells; in {len(bad)} more than 5 % at the limit pass or fail")


if __name__ == "__main__":
    main()

"""The operating characteristic of `understudy compare`: its verdicts where the truth is known.

    PYTHONPATH=python:. python benchmarks/comparisons.py [--figures N] [--seed S] [-o TABLE.json]

A cell is a design (nights apart, or in turn), a number of nights of each side, of repetitions, a
kind of noise and a true change. N figures of each are judged as one campaign of 1, and in
campaigns of 20 and 200, of which all figures changed or one did. False alarms are campaigns in
which a figure that did not change is called slower or faster, or one that fell is called faster;
silent losses are figures that are called within the limit though the truth is beyond it. All
figures of a cell are judged at once, by the functions that `compare` calls;
tests/test_comparisons.py shows that its verdicts are the same.
"""

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from scipy import stats

from benchmarks.support import heat
from understudy.judge.statistics import night_statistics
from understudy.judge.statistics.night_statistics import STATES, WITHIN, Rule, of_median

Floats = NDArray[np.float64]
Dice = np.random.Generator
REPEATED, BETWEEN = 0.05, 0.03  # standard deviations of logarithms
QUIET = 0.02  # both of them where noise is a fifth of the limit of 10 %
CAMPAIGNS = ((1, 1), (20, 20), (20, 1), (200, 200), (200, 1))  # figures, and how many changed
SIZES = (1, 2, 3, 4, 5, 8, 12, 20)
REPETITIONS = (1, 3)
LOSSES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.9)
IN_TURN, APART = "in turn", "apart"
DESIGNS = tuple(itertools.product((APART, IN_TURN), SIZES))


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Noise of nights, float64[figures, nights], and of runs, [figures, nights, runs]."""

    nights: Callable[[Dice, int, int], Floats]
    runs: Callable[[Dice, tuple[int, int, int]], Floats]


def _normal(between: float) -> Callable[[Dice, int, int], Floats]:
    return lambda dice, figures, n: dice.normal(0, between, (figures, n))


def _runs(dice: Dice, shape: tuple[int, int, int]) -> Floats:
    return dice.normal(0, REPEATED, shape)


def _following(share: float) -> Callable[[Dice, int, int], Floats]:
    def of_nights(dice: Dice, figures: int, n: int) -> Floats:
        made = np.empty((figures, n))
        made[:, 0] = dice.normal(0, BETWEEN, figures)
        for i in range(1, n):
            fresh = dice.normal(0, BETWEEN * math.sqrt(1 - share**2), figures)
            made[:, i] = share * made[:, i - 1] + fresh
        return made

    return of_nights


def _rarely(share: float, by: float) -> Callable[[Dice, int, int], Floats]:
    """Some nights are off."""
    return lambda dice, figures, n: (
        dice.normal(0, BETWEEN, (figures, n)) + by * (dice.random((figures, n)) < share)
    )


def _sessions(dice: Dice, shape: tuple[int, int, int]) -> Floats:
    """Sessions of a night differ as much as nights may."""
    return _runs(dice, shape) + dice.normal(0, 0.1, (*shape[:2], 1))


def _cached(dice: Dice, shape: tuple[int, int, int]) -> Floats:
    """One run of ten is served by a cache, five times as fast."""
    return _runs(dice, shape) + math.log(5) * (dice.random(shape) < 0.1)


NOISE = {
    "independent": Noise(nights=_normal(BETWEEN), runs=_runs),
    "quiet": Noise(nights=_normal(QUIET), runs=lambda dice, shape: dice.normal(0, QUIET, shape)),
    "nights differ by 5 %": Noise(nights=_normal(0.05), runs=_runs),
    "nights differ by 10 %": Noise(nights=_normal(0.1), runs=_runs),
    "sessions of a night differ by 10 %": Noise(nights=_normal(0), runs=_sessions),
    "nights differ by 20 %": Noise(nights=_normal(0.2), runs=_runs),
    "each night keeps 0.7 of the last": Noise(nights=_following(0.7), runs=_runs),
    "each night keeps 0.9 of the last": Noise(nights=_following(0.9), runs=_runs),
    "drift of 1 % a night": Noise(
        nights=lambda dice, figures, n: (
            dice.normal(0, BETWEEN, (figures, n)) - 0.01 * np.arange(n)
        ),
        runs=_runs,
    ),
    "bimodal": Noise(nights=_rarely(0.3, -0.3), runs=_runs),
    "heavy tails": Noise(
        nights=lambda dice, figures, n: BETWEEN * dice.standard_t(2, (figures, n)),
        runs=lambda dice, shape: REPEATED * dice.standard_t(2, shape),
    ),
    "one bad night of ten": Noise(nights=_rarely(0.1, -0.7), runs=_runs),
    "cache hit or miss": Noise(nights=_normal(BETWEEN), runs=_cached),
}


STATED = tuple(NOISE)[:5]  # nights as they are stated, or calmer


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Logarithms of medians, and their variances by repetitions, [figures, sessions], with the
    sides and nights of the sessions: one of each side in a night, or turn, or in nights apart."""

    levels: Floats
    noise: Floats
    sides: NDArray[np.intp]
    nights: NDArray[np.intp]
    runs: Floats  # logarithms


def sample(
    dice: Dice, noise: Noise, design: str, size: int, repetitions: int, figures: int
) -> Sample:
    """Nothing changed."""
    own = np.arange(size) if design == IN_TURN else np.arange(2 * size)
    at = np.concatenate([own, own]) if design == IN_TURN else own
    whole = noise.nights(dice, figures, len(own))[:, at]
    runs = whole[:, :, None] + noise.runs(dice, (figures, len(at), repetitions))
    scatter = np.full(whole.shape, math.nan)
    if repetitions > 1:
        scatter = of_median(repetitions) * runs.var(axis=2, ddof=1)
    return Sample(
        levels=np.median(runs, axis=2),
        noise=scatter,
        sides=np.repeat([0, 1], size),
        nights=at,
        runs=runs,
    )


def estimated(one: Sample, rule: Rule) -> night_statistics.Estimate:
    return night_statistics.estimate(one.levels, one.sides, one.nights, one.noise, rule)


def judge(
    found: night_statistics.Estimate, loss: float, cases: int, changed: int, rule: Rule
) -> NDArray[np.intp]:
    """Numbers of STATES, [campaigns, cases], where the first `changed` of each campaign fell: a
    loss moves the step, and nothing else."""
    shape = -1, cases
    fell = math.log1p(-loss) * (np.arange(cases) < changed)
    step = (found.step.reshape(shape) + fell).ravel()
    p = night_statistics.student_p(step, found.error, found.freedom).min(axis=0)
    half = night_statistics.reach(found.error, found.freedom, 2 * rule.alpha).min(axis=0)
    return night_statistics.states(
        step.reshape(shape), p.reshape(shape), half.reshape(shape), rule
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Figures that changed by state (all of them where the loss is 0), campaigns, of these with a
    false alarm, and silent losses."""

    design: str
    nights: int
    repetitions: int
    noise: str
    loss: float
    cases: int
    changed: int
    slower: int
    faster: int
    within: int
    undecided: int
    campaigns: int
    alarms: int
    silent: int

    @property
    def figures(self) -> int:
        return self.slower + self.faster + self.within + self.undecided

    @property
    def found(self) -> float:
        """Percent of the figures that changed."""
        return 100 * self.slower / self.figures

    @property
    def alarm_limit(self) -> float:
        """The upper limit of the interval of 95 % of the rate of false alarms."""
        found = stats.binomtest(self.alarms, self.campaigns).proportion_ci(method="exact")
        return float(found.high)


def cells(
    figures: int,
    seed: int,
    only: str = "",
    rule: Rule = Rule(),  # noqa: B008
    losses: Sequence[float] = LOSSES,
) -> Iterator[Cell]:
    wanted = list(itertools.product(DESIGNS, REPETITIONS, NOISE))
    for number, ((design, size), repetitions, name) in enumerate(
        track(wanted, console=Console(stderr=True, quiet=not sys.stderr.isatty()))
    ):
        if only not in f"{design} {name}":
            continue
        dice = np.random.default_rng([seed, number])
        found = estimated(sample(dice, NOISE[name], design, size, repetitions, figures), rule)
        for loss, (cases, changed) in itertools.product(losses, CAMPAIGNS):
            if not loss and changed < cases:
                continue
            index = judge(found, loss, cases, changed, rule)
            slower, undecided, faster, within = (index == i for i in range(len(STATES)))
            fell = (np.arange(cases) < changed) & (loss > 0)
            wrong = faster | (slower & ~fell)
            yield Cell(
                design=design,
                nights=size,
                repetitions=repetitions,
                noise=name,
                loss=loss,
                cases=cases,
                changed=changed,
                slower=int(slower[:, :changed].sum()),
                faster=int(faster[:, :changed].sum()),
                within=int(within[:, :changed].sum()),
                undecided=int(undecided[:, :changed].sum()),
                campaigns=len(index),
                alarms=int(wrong.any(axis=1).sum()),
                silent=int(within[:, :changed].sum()) if loss > rule.limit else 0,
            )


def row(cell: Cell) -> str:
    return (
        f"{cell.design}, {cell.nights} nights of {cell.repetitions} runs, {cell.noise}, loss of "
        f"{cell.loss:.0%} of {cell.changed} of {cell.cases} figures: {cell.alarms} of "
        f"{cell.campaigns} false alarms (at most {cell.alarm_limit:.1%}), {cell.silent} of "
        f"{cell.figures} losses called {WITHIN}"
    )


def alarms(made: Sequence[Cell]) -> Iterator[str]:
    """By noise and design: campaigns with a false alarm where nothing changed, and the worst
    cell."""
    yield "| noise | design | 1 figure | 20 | 200 | worst cell of 1 or 20 | silent losses |"
    yield "|---|---|---|---|---|---|---|"
    for noise, design in itertools.product(NOISE, (APART, IN_TURN)):
        some = [c for c in made if (c.noise, c.design) == (noise, design)]
        same = [c for c in some if not c.loss]
        columns = []
        for cases in (1, 20, 200):
            of = [c for c in same if c.cases == cases]
            columns.append(f"{sum(c.alarms for c in of) / sum(c.campaigns for c in of):.2%}")
        worst = max((c for c in same if c.cases < 200), key=lambda c: c.alarms / c.campaigns)
        lost = [c for c in some if c.loss > Rule().limit]
        silent = sum(c.silent for c in lost) / max(1, sum(c.figures for c in lost))
        yield (
            f"| {noise} | {design} | {' | '.join(columns)} | "
            f"{worst.alarms / worst.campaigns:.1%} ({worst.nights} of {worst.repetitions}, "
            f"{worst.cases}) | {silent:.3%} |"
        )


def power(
    made: Sequence[Cell], loss: float, campaign: tuple[int, int], repetitions: int = 3
) -> Iterator[str]:
    """By noise and nights: the share of losses that are found."""
    heads = [f"{n} {design}" if design == IN_TURN else f"{n}" for design, n in DESIGNS]
    yield f"| noise | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    known = {
        (c.noise, c.design, c.nights): c
        for c in made
        if (c.loss, (c.cases, c.changed), c.repetitions) == (loss, campaign, repetitions)
    }
    for noise in NOISE:
        cells = (known.get((noise, *design)) for design in DESIGNS)
        yield f"| {noise} | {' | '.join(_percent(c.found) if c else '' for c in cells)} |"


def _percent(share: float) -> str:
    """Without more digits than matter; 100 is all of them."""
    return f"{share:.1f}" if 90 <= share < 100 else f"{share:.0f}"


def draw(path: Path, made: Sequence[Cell]) -> None:
    """Heat maps: campaigns with a false alarm, and losses that are found."""
    heads = [f"{n} in turn" if design == IN_TURN else f"{n}" for design, n in DESIGNS]
    wrong, found = np.zeros((2, len(NOISE), len(DESIGNS)))
    for c in made:
        at = (list(NOISE).index(c.noise), DESIGNS.index((c.design, c.nights)))
        if not c.loss and c.cases < 200:
            wrong[at] = max(wrong[at], 100 * c.alarms / c.campaigns)
        if (c.loss, c.cases, c.changed, c.repetitions) == (0.3, 20, 1, 3):
            found[at] = c.found
    heat.draw(
        path,
        list(NOISE),
        heads,
        "nights of each side",
        [
            ("campaigns with a false alarm, worst of 1 or 20 figures (%)", wrong, 1.0),
            ("losses of 30 % found, in one of 20 figures, 3 repetitions (%)", found, None),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=int, default=20_000, help="a multiple of 200")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of design and noise")
    parser.add_argument("--losses", type=float, nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("-o", "--output", type=Path, help="JSON of every cell")
    parser.add_argument("--table", type=Path, help="such a JSON, instead of playing")
    parser.add_argument("--svg", type=Path, help="heat maps")
    args = parser.parse_args()
    if args.figures % 200:
        parser.error(f"--figures {args.figures}: expected a multiple of 200")
    if args.table:
        made = [Cell(**one) for one in json.loads(args.table.read_text())]
    else:
        made = list(cells(args.figures, args.seed, args.only, losses=args.losses))
    if args.output:
        args.output.write_text(json.dumps([asdict(cell) for cell in made], indent=0) + "\n")
    if args.svg:
        draw(args.svg, made)
    if not args.only:
        print(*alarms(made), sep="\n")
        for loss, campaign in itertools.product(args.losses, ((1, 1), (20, 20), (20, 1))):
            if loss:
                print(f"\nFound of a loss of {loss:.0%} in {campaign[1]} of {campaign[0]} (%):\n")
                print(*power(made, loss, campaign), sep="\n")
    stated = [c for c in made if c.noise in STATED]
    bad = [c for c in stated if c.alarms > 0.01 * c.campaigns and not c.loss]
    silent = [c for c in stated if c.silent > 0.01 * c.figures]
    for cell in dict.fromkeys([*bad, *silent]):
        print(row(cell))
    print(
        f"{len(made)} cells, {len(stated)} with nights as stated or calmer; in {len(bad)} of "
        f"these more than 1 % of campaigns have a false alarm, in {len(silent)} more than 1 % of "
        f"losses are called {WITHIN}"
    )


if __name__ == "__main__":
    main()

"""The operating characteristic of `understudy compare`: its verdicts where the truth is known.

    PYTHONPATH=python:. python benchmarks/comparisons.py [--figures N] [--seed S] [-o TABLE.json]

A cell is a design (nights apart, or in turn), a number of nights before and after, of repetitions,
a kind of noise and a true change. N figures of each are judged as one campaign of 1, and in
campaigns of 20 and 200. False alarms are campaigns in which a figure that did not change is called
worse or better, or one that fell is called better; silent losses are figures that are called no
change though the truth is outside the limit. All figures of a cell are judged at once, by the
functions of the library; tests/test_comparisons.py shows that its verdicts are the same one by
one.
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
from understudy.judge import change, plan
from understudy.judge.change import BETTER, NO_CHANGE, UNDECIDED, WORSE, Rule

Floats = NDArray[np.float64]
Dice = np.random.Generator
STATES = (WORSE, BETTER, NO_CHANGE, UNDECIDED)
WITHIN, BETWEEN = 0.05, 0.03  # standard deviations of logarithms
QUIET = 0.02  # both of them where noise is a fifth of the limit of 10 %
CAMPAIGNS = (1, 20, 200)  # figures of one
SIZES = ((2, 2), (3, 3), (5, 5), (8, 8), (12, 12), (20, 20), (28, 7), (37, 1))
REPETITIONS = (1, 3, 5)
LOSSES = (0.0, 0.05, 0.1, 0.2, 0.3)
IN_TURN, APART = "in turn", "apart"
DESIGNS = [(APART, size) for size in SIZES]
DESIGNS += [(IN_TURN, size) for size in SIZES if size[0] == size[1]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What nights do, float64[figures, nights], and runs of a side, [figures, nights, runs]."""

    nights: Callable[[Dice, int, int], Floats]
    runs: Callable[[Dice, tuple[int, int, int]], Floats]


def _normal(between: float) -> Callable[[Dice, int, int], Floats]:
    return lambda dice, figures, n: dice.normal(0, between, (figures, n))


def _runs(dice: Dice, shape: tuple[int, int, int]) -> Floats:
    return dice.normal(0, WITHIN, shape)


def _following(share: float) -> Callable[[Dice, int, int], Floats]:
    def nights(dice: Dice, figures: int, n: int) -> Floats:
        made = np.empty((figures, n))
        made[:, 0] = dice.normal(0, BETWEEN, figures)
        for i in range(1, n):
            fresh = dice.normal(0, BETWEEN * math.sqrt(1 - share**2), figures)
            made[:, i] = share * made[:, i - 1] + fresh
        return made

    return nights


def _rarely(share: float, by: float) -> Callable[[Dice, int, int], Floats]:
    """Some nights are off."""
    return lambda dice, figures, n: (
        dice.normal(0, BETWEEN, (figures, n)) + by * (dice.random((figures, n)) < share)
    )


def _cached(dice: Dice, shape: tuple[int, int, int]) -> Floats:
    """One run of ten is served by a cache, five times as fast."""
    return _runs(dice, shape) + math.log(5) * (dice.random(shape) < 0.1)


NOISE = {
    "independent": Noise(nights=_normal(BETWEEN), runs=_runs),
    "quiet": Noise(nights=_normal(QUIET), runs=lambda dice, shape: dice.normal(0, QUIET, shape)),
    "nights differ by 5 %": Noise(nights=_normal(0.05), runs=_runs),
    "nights differ by 10 %": Noise(nights=_normal(0.1), runs=_runs),
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
        runs=lambda dice, shape: WITHIN * dice.standard_t(2, shape),
    ),
    "one bad night of ten": Noise(nights=_rarely(0.1, -0.7), runs=_runs),
    "cache hit or miss": Noise(nights=_normal(BETWEEN), runs=_cached),
}


def sides(
    dice: Dice,
    noise: Noise,
    design: str,
    size: tuple[int, int],
    repetitions: int,
    loss: float,
    figures: int,
) -> tuple[Floats, Floats]:
    """Logarithms of the medians of both sides, float64[figures, nights]."""
    before, after = size
    whole = noise.nights(dice, figures, before if design == IN_TURN else before + after)
    levels = (whole, whole) if design == IN_TURN else np.split(whole, [before], axis=1)
    first, second = (
        np.median(level[:, :, None] + noise.runs(dice, (*level.shape, repetitions)), axis=2)
        for level in levels
    )
    return first, second + math.log1p(-loss)


def states(before: Floats, after: Floats, design: str, cases: int, rule: Rule) -> Floats:
    """Numbers of STATES, [figures], in campaigns of so many figures, one after another: what
    `change.decide` says of them."""
    if design == IN_TURN:
        estimate, rank = change.paired(after - before), change.signed_rank_p(after - before)
        ratio = np.median(after - before, axis=1)
    else:
        estimate, rank = change.apart(before, after), change.rank_p(before, after)
        ratio = np.median(after, axis=1) - np.median(before, axis=1)
    step, error, freedom = estimate
    p = np.maximum(rank, change.student_p(*estimate)).reshape(-1, cases)
    order = np.argsort(p, axis=1)
    factors = np.arange(cases, 0, -1)
    highest = np.maximum.accumulate(
        np.minimum(1, np.take_along_axis(p, order, axis=1) * factors), axis=1
    )
    corrected = np.empty_like(p)
    np.put_along_axis(corrected, order, highest, axis=1)
    moved = np.abs(ratio) >= -math.log1p(-rule.effect)
    found = (corrected.ravel() <= rule.alpha) & moved & ((ratio < 0) == (step < 0))
    half = change.half_width(error, freedom, 1 - 2 * rule.alpha)
    limit = -math.log1p(-rule.limit)
    same = (np.maximum(np.abs(ratio), np.abs(step)) + half < limit) & (freedom >= 1)
    index = np.where(same, STATES.index(NO_CHANGE), STATES.index(UNDECIDED))
    index = np.where(found, np.where(ratio < 0, 0, 1), index)
    return np.asarray(index)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Figures by state, campaigns, of these with a false alarm, and silent losses."""

    design: str
    before: int
    after: int
    repetitions: int
    noise: str
    loss: float
    cases: int
    figures: int
    worse: int
    better: int
    no_change: int
    undecided: int
    campaigns: int
    alarms: int
    silent: int

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
    wanted = list(itertools.product(DESIGNS, REPETITIONS, NOISE, LOSSES))
    for number, ((design, size), repetitions, name, loss) in enumerate(
        track(wanted, console=Console(stderr=True, quiet=not sys.stderr.isatty()))
    ):
        if only not in f"{design} {name}" or loss not in losses:
            continue
        dice = np.random.default_rng([seed, number])
        before, after = sides(dice, NOISE[name], design, size, repetitions, loss, figures)
        for cases in CAMPAIGNS:
            index = states(before, after, design, cases, rule)
            count = np.bincount(index, minlength=len(STATES)).tolist()
            wrong = (index == 1) | ((index == 0) & (loss == 0))
            yield Cell(
                design=design,
                before=size[0],
                after=size[1],
                repetitions=repetitions,
                noise=name,
                loss=loss,
                cases=cases,
                figures=figures,
                worse=count[0],
                better=count[1],
                no_change=count[2],
                undecided=count[3],
                campaigns=figures // cases,
                alarms=int(wrong.reshape(-1, cases).any(axis=1).sum()),
                silent=count[2] if loss > rule.limit else 0,
            )


def row(cell: Cell) -> str:
    return (
        f"{cell.design}, {cell.before} and {cell.after} nights of {cell.repetitions} runs, "
        f"{cell.noise}, loss of {cell.loss:.0%}, campaigns of {cell.cases}: {cell.alarms} of "
        f"{cell.campaigns} false alarms (at most {cell.alarm_limit:.1%}), {cell.silent} of "
        f"{cell.figures} losses called no change"
    )


def alarms(made: Sequence[Cell]) -> Iterator[str]:
    """By noise and design: campaigns with a false alarm in all cells, and in the worst one."""
    yield "| noise | design | campaigns of 1 | of 20 | of 200 | worst cell | silent losses |"
    yield "|---|---|---|---|---|---|---|"
    for noise, design in itertools.product(NOISE, (APART, IN_TURN)):
        some = [c for c in made if (c.noise, c.design) == (noise, design)]
        columns = []
        for cases in CAMPAIGNS:
            of = [c for c in some if c.cases == cases]
            columns.append(f"{sum(c.alarms for c in of)} of {sum(c.campaigns for c in of)}")
        worst = max(
            (c for c in some if c.cases < CAMPAIGNS[-1]), key=lambda c: c.alarms / c.campaigns
        )
        lost = [c for c in some if c.loss > Rule().limit]
        silent = f"{sum(c.silent for c in lost)} of {sum(c.figures for c in lost)}"
        yield (
            f"| {noise} | {design} | {' | '.join(columns)} | "
            f"{worst.alarms / worst.campaigns:.2%} | {silent} |"
        )


def power(made: Sequence[Cell], loss: float, cases: int, repetitions: int) -> Iterator[str]:
    """By noise and nights: the share of losses that are found."""
    heads = [f"{d} {b}" if d == IN_TURN else f"{b}, {a}" for d, (b, a) in DESIGNS]
    yield f"| noise | {' | '.join(heads)} |"
    yield f"|---|{'---|' * len(heads)}"
    known = {
        (c.noise, c.design, c.before, c.after): c
        for c in made
        if (c.loss, c.cases, c.repetitions) == (loss, cases, repetitions)
    }
    for noise in NOISE:
        cells = (known.get((noise, design, *size)) for design, size in DESIGNS)
        columns = (f"{100 * c.worse / c.figures:.0f}" if c else "" for c in cells)
        yield f"| {noise} | {' | '.join(columns)} |"


def draw(path: Path, made: Sequence[Cell]) -> None:
    """Heat maps: the worst share of campaigns with a false alarm, and losses that are found."""
    heads = [f"{b} in turn" if d == IN_TURN else f"{b}, {a}" for d, (b, a) in DESIGNS]
    wrong, found = np.zeros((2, len(NOISE), len(DESIGNS)))
    for c in made:
        at = (list(NOISE).index(c.noise), DESIGNS.index((c.design, (c.before, c.after))))
        if c.cases < CAMPAIGNS[-1]:
            wrong[at] = max(wrong[at], 100 * c.alarms / c.campaigns)
        if (c.loss, c.cases, c.repetitions) == (0.1, 1, 3):
            found[at] = 100 * c.worse / c.figures
    title = "campaigns with a false alarm, worst of 1 or 20 figures, repetitions, losses (%)"
    heat.draw(
        path,
        list(NOISE),
        heads,
        "nights before, after",
        [(title, wrong, 1.0), ("losses of 10 % found, 1 figure, 3 repetitions (%)", found, None)],
    )


def planned(noise: str, loss: float, cases: int, pilots: int, seed: int) -> Iterator[str]:
    """What `understudy plan` asks for after pilots of 12 nights, and how often it finds a loss."""
    dice = np.random.default_rng(seed)
    for design in (IN_TURN, APART):
        nights, found = [], []
        for _ in range(pilots):
            pilot, _ = sides(dice, NOISE[noise], IN_TURN, (12, 12), 1, 0, cases)
            needs = [plan.need(np.exp(one)[:, None].tolist(), loss, cases, 1) for one in pilot]
            counts = [(n.in_turn if design == IN_TURN else n.sessions) for n in needs if n]
            if None in counts:
                continue
            nights.append(max(n for n in counts if n))
            both = sides(dice, NOISE[noise], design, (nights[-1],) * 2, 1, loss, 20 * cases)
            found.append(float((states(*both, design, cases, Rule()) == 0).mean()))
        told = f"{noise}, {design}, campaigns of {cases}: {len(nights)} of {pilots} planned for"
        if nights:
            told += (
                f", {min(nights)} to {max(nights)} nights, {np.median(nights):.0f} in the "
                f"middle, which find {100 * np.mean(found):.1f} %"
            )
        yield told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figures", type=int, default=20_000, help="a multiple of 200")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of design and noise")
    parser.add_argument("--losses", type=float, nargs="+", choices=LOSSES, default=LOSSES)
    parser.add_argument("-o", "--output", type=Path, help="JSON of every cell")
    parser.add_argument("--table", type=Path, help="such a JSON, instead of playing")
    parser.add_argument("--svg", type=Path, help="heat maps")
    parser.add_argument(
        "--pilots", type=int, default=0, help="only what plan asks for after so many"
    )
    args = parser.parse_args()
    if args.pilots:
        for cases in (1, 10):
            print(*planned("quiet", 0.1, cases, args.pilots, args.seed), sep="\n", flush=True)
        return
    if args.figures % max(CAMPAIGNS):
        parser.error(f"--figures {args.figures}: expected a multiple of {max(CAMPAIGNS)}")
    if args.table:
        made = [Cell(**one) for one in json.loads(args.table.read_text())]
    else:
        made = list(cells(args.figures, args.seed, args.only, losses=args.losses))
    if args.output:
        args.output.write_text(json.dumps([asdict(cell) for cell in made], indent=0) + "\n")
    if args.svg:
        draw(args.svg, made)
    if not args.only and args.losses == LOSSES:
        print(*alarms(made), sep="\n")
        for loss, cases in ((0.1, 1), (0.1, 20), (0.3, 20)):
            print(f"\nFound of a loss of {loss:.0%}, campaigns of {cases}, 3 repetitions (%):\n")
            print(*power(made, loss, cases, 3), sep="\n")
    bad = [c for c in made if c.alarms > 0.01 * c.campaigns]
    silent = [c for c in made if c.silent > 0.01 * c.figures]
    for cell in dict.fromkeys([*bad, *silent]):
        print(row(cell))
    print(
        f"{len(made)} cells; in {len(bad)} more than 1 % of campaigns have a false alarm, in "
        f"{len(silent)} more than 1 % of losses are called no change"
    )


if __name__ == "__main__":
    main()

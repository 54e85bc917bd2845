"""When dumps happen and how they grow: Equations 2 to 4 and the timestep schedule of the M-Phys
study (Cray User Group 2017, Section IV-B); docs/equations.md derives them.

Sizes are bytes, times are seconds since the start. n + 1 dumps have n growth factors
F_0 … F_{n-1}: dump i + 1 has F_i times the bytes of dump i (Equation 3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import log
from operator import mul

from understudy.errors import UnderstudyError


def growth_factors(sizes: Sequence[int]) -> tuple[float, ...]:
    """The growth sequence of dumps of these bytes: one factor fewer than dumps."""
    if not sizes or any(size <= 0 for size in sizes):
        raise UnderstudyError(f"sizes {list(sizes)[:5]}: expected one or more above 0 bytes")
    return tuple(after / before for before, after in pairwise(sizes))


def grown(first_bytes: int, factors: Iterable[float]) -> tuple[int, ...]:
    """Equation 3: the bytes of all dumps, each rounded from the exact product."""
    return tuple(round(size) for size in accumulate(factors, mul, initial=float(first_bytes)))


def first_state_bytes(total_bytes: float, factors: Sequence[float]) -> float:
    """Equation 4 with corrected index: the first of len(factors) + 1 dumps.

    Vis_0 = VisTotal / (1 + F_0 (1 + F_1 (… (1 + F_{n-1})))).
    """
    nest = 1.0
    for factor in reversed(factors):
        nest = 1.0 + factor * nest
    return total_bytes / nest


def state_bytes(total_bytes: int, factors: Sequence[float]) -> tuple[int, ...]:
    """Equations 2 to 4: whole bytes of all dumps; their sum is exactly the total."""
    return apportion(total_bytes, list(accumulate(factors, mul, initial=1.0)))


def apportion(total: int, weights: Sequence[float]) -> tuple[int, ...]:
    """Whole numbers in these proportions, each less than 1 off, with exactly this sum."""
    sums = list(accumulate((Fraction(w) for w in weights), initial=Fraction(0)))
    bounds = [round(total * part / sums[-1]) for part in sums]
    return tuple(after - before for before, after in pairwise(bounds))


def followed_factors(
    times_s: Sequence[float], changes: Sequence[tuple[float, int]]
) -> tuple[float, ...]:
    """Factors between dumps at `times_s` of a series that grows as another one does.

    `changes` are (time, bytes) of the other one's dumps, in order. The data have the size of its
    latest dump, which counts at its own time already, and that of its first one before.
    """
    levels = []
    for time_s in times_s:
        before = [size for change_s, size in changes if change_s <= time_s]
        levels.append(before[-1] if before else changes[0][1])
    return growth_factors(levels)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowthStep:
    """One reconstructed factor, and the constraint that it satisfies."""

    factor: float
    constraint: str


def reconstructed_growth(
    *,
    dumps: int,
    first_bytes: int,
    activation_dump: int,
    peak_dump: int,
    peak_bytes: int,
    last_bytes: int,
) -> tuple[GrowthStep, ...]:
    """The factors of the smoothest series that passes through what is stated.

    After the peak dump nothing is stated but the last size: one constant factor, the slow growth.
    The dumps before the activation grow by it too. The rest of the growth up to the peak
    dump falls on the dumps from the activation on, and its logarithm halves from one to the next,
    so that the jump is at the activation and fades without a bend at the peak dump. Dumps count
    from 1.
    """
    if not 1 < activation_dump < peak_dump < dumps:
        raise UnderstudyError(
            f"activation_dump {activation_dump}, peak_dump {peak_dump} of {dumps} dumps: expected "
            "1 < activation_dump < peak_dump < number of dumps"
        )
    if not 0 < first_bytes < peak_bytes < last_bytes:
        raise UnderstudyError(
            f"{first_bytes}, {peak_bytes} and {last_bytes} B: expected "
            "0 < first_bytes < peak_bytes < last_bytes"
        )
    slow = (last_bytes / peak_bytes) ** (1 / (dumps - peak_dump))
    rising = peak_dump - activation_dump + 1
    jump = peak_bytes / first_bytes / slow ** (peak_dump - 1)
    if log(jump) <= 0:
        raise UnderstudyError(
            f"growth from {first_bytes} to {peak_bytes} B by dump "
            f"{peak_dump}: expected it to be faster than the growth after that dump"
        )
    to_peak = f"; the product up to dump {peak_dump} gives {peak_bytes} B"
    steps = []
    for place in range(2 - activation_dump, dumps - activation_dump + 1):
        share = 2 ** (rising - 1 - place) / (2**rising - 1) if 0 <= place < rising else 0
        if place < 0:
            said = "no jump before the activation: the slow growth of the dumps after the peak"
        elif place == 0:
            said = f"the jump, at dump {activation_dump}{to_peak}"
        elif place < rising:
            said = f"the excess over the slow growth halves in logarithm{to_peak}"
        else:
            said = f"constant, so that the product of all gives {last_bytes} B at dump {dumps}"
        steps.append(GrowthStep(factor=slow * jump**share, constraint=said))
    return tuple(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timesteps:
    """The paper's schedule: an end timestep and one frequency per series (Section IV-B4).

    A series that leaves the start of the run free cuts it into one block more than it has dumps,
    one that begins at the start into as many as dumps; the end timestep is the product.
    """

    checkpoints: int
    states: int

    def __post_init__(self) -> None:
        if self.checkpoints < 0 or self.states < 0 or self.checkpoints + self.states == 0:
            raise UnderstudyError(
                f"{self.checkpoints} checkpoints and {self.states} visualization dumps: "
                "expected no negative number and at least one dump"
            )

    @property
    def end(self) -> int:
        return (self.checkpoints + 1) * max(1, self.states)

    @property
    def checkpoint_every(self) -> int:
        return self.end // (self.checkpoints + 1)

    @property
    def state_every(self) -> int:
        return self.end // max(1, self.states)

    @property
    def checkpoint_steps(self) -> tuple[int, ...]:
        return tuple(k * self.checkpoint_every for k in range(1, self.checkpoints + 1))

    @property
    def state_steps(self) -> tuple[int, ...]:
        return tuple(k * self.state_every for k in range(self.states))

    def time_s(self, step: int, runtime_s: float) -> float:
        """When a timestep begins if all take equally long."""
        return step * runtime_s / self.end


def seconds_by_dt(gap_s: float, steps: int) -> float:
    """Pause of one timestep where `steps` timesteps lie in a gap of `gap_s` between two dumps."""
    if steps < 1 or gap_s < 0:
        raise UnderstudyError(f"gap of {gap_s} s in {steps} timesteps: expected >= 0 s in >= 1")
    return gap_s / steps


def spread_s(count: int, runtime_s: float, *, from_start: bool) -> tuple[float, ...]:
    """Absolute times of `count` dumps spread evenly, as `Timesteps` does but in exact seconds."""
    blocks = count if from_start else count + 1
    first = 0 if from_start else 1
    return tuple(round((first + k) * runtime_s / blocks, 6) for k in range(count))


def truncated_pauses_s(pauses_s: Sequence[float], steps: Timesteps) -> int:
    """The total pause of the paper's replicas, if `pauses_s` were requested.

    Their main loop sleeps whole seconds after each timestep, so that the fraction of
    `seconds_by_dt` is lost in each; the first pause is used before and after the first checkpoint,
    and the last one only after the last. Here the pauses need no such loop: dumps have times.
    """
    if len(pauses_s) != steps.checkpoints:
        raise UnderstudyError(
            f"{len(pauses_s)} pauses: expected one per checkpoint, {steps.checkpoints}"
        )
    every = steps.checkpoint_every
    return sum(every * int(seconds_by_dt(gap, every)) for gap in (pauses_s[0], *pauses_s))

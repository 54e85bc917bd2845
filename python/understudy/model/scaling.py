"""Scale a workload to another number of ranks, or its bytes."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from understudy.contracts.workload import (
    Decomposition,
    Provenance,
    Scaling,
    Stream,
    Variable,
    Workload,
    equal_ranks,
    runs_at_most,
)
from understudy.errors import UnderstudyError
from understudy.model import aggregators
from understudy.model.aggregators import Aggregators
from understudy.program.instructions import (
    ALL_RANKS,
    Compute,
    Instruction,
    Move,
    Operate,
    Skew,
    Step,
)

RULES = ("strong", "weak")

Each = TypeVar("Each", int, float)


def scale(workload: Workload, ranks: int, rule: str) -> Workload:
    """The workload for that number of ranks.

    strong: the same total bytes. even keeps its shape, runs are stretched so that the cumulative
    distribution of rows over the ranks stays the same, a grid is factored anew; operations without
    bytes are distributed as runs are.
    weak: the same bytes per rank; rank r takes the rows of rank floor(r*from/ranks), the first
    dimension of an even or cyclic variable is multiplied by ranks/from (rounded down, at least 1),
    a grid grows along its first dimension, which needs a multiple of the ranks.

    With both, rank r begins a dump as late as rank floor(r*from/ranks) did. Dumps begin when they
    did: a rank computes within one as long for a byte as before, but no longer than before.

    Funnels and aggregators stay what they are (`understudy.model.aggregators`), and what rank 0
    alone moves of a stream to which others contribute, such as a header, stays as it is.
    """
    if rule not in RULES:
        raise UnderstudyError(f"scaling rule {rule!r}: expected strong or weak")
    if any(stream.tree for stream in workload.streams):
        raise UnderstudyError(
            f"{workload.name}: expected no calls of the system, which are those of "
            f"{workload.ranks} ranks; trace a run of {ranks}"
        )
    if not 1 <= ranks < 1 << 31:
        raise UnderstudyError(f"ranks {ranks}: expected 1 to {(1 << 31) - 1}")
    old = workload.ranks
    notes: dict[int, str] = {}

    def stream(index: int, s: Stream) -> Stream:
        groups = s.groups
        if groups is not None:
            grown = groups * ranks // old if rule == "weak" else groups
            groups = min(max(1, grown), ranks)
        single = aggregators.of_stream(s, old, groups)
        if single is not None:
            notes[index] = f"{s.name}: {_told(single, rule)}"
        scaled = _Scaled(old=old, new=ranks, weak=rule == "weak", single=single)
        many = groups or (1 if s.set.owner == ALL_RANKS else ranks)
        regrouped = replace(s, set=replace(s.set, groups=many))
        return replace(regrouped, steps=tuple(map(scaled.step, s.steps)))

    streams = tuple(stream(i, s) for i, s in enumerate(workload.streams))
    how = f"scaled {rule}ly from {workload.ranks} to {ranks} ranks"
    before = workload.source.notes
    if before:
        before = (*before, f"The notes above are on {old} ranks; the workload was then {how}.")
    return replace(
        workload,
        name=f"{workload.name[:80]}-{rule}-{ranks}",
        ranks=ranks,
        scaling=Scaling(rule=rule, from_ranks=workload.ranks),
        streams=streams,
        source=replace(workload.source, notes=(*before, *notes.values())),
        provenance=(
            *workload.provenance,
            Provenance(path="/ranks", origin="assumed", how=how),
            Provenance(path="/streams/*/groups", origin="derived", how=how),
            Provenance(path="/streams/*/dumps/*/variables", origin="derived", how=how),
            *(
                Provenance(
                    path=f"/streams/{i}/dumps/*/variables/*/decomposition",
                    origin="derived",
                    confidence="likely",
                    how=f"{how}: {note.partition(': ')[2]}",
                )
                for i, note in notes.items()
            ),
        ),
    )


def _told(single: Aggregators, rule: str) -> str:
    if single.funnel:
        bytes_ = "; its bytes grow with the ranks" if rule == "weak" else ""
        return f"one rank moves the data of all, and stays the only one{bytes_}"
    if single.groups is not None:
        return "one rank of each group moves the data of the group, as before"
    return f"one of {single.every} ranks moves the data of all, as before"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scaled:
    """A stream on `new` ranks, with its aggregators if it has any."""

    old: int
    new: int
    weak: bool
    single: Aggregators | None

    def step(self, step: Step) -> Step:
        scaled = step.mapped(self.instruction)
        if not step.compute_s or not step.bytes:
            return scaled
        each = scaled.bytes / step.bytes / self._moving()  # of a rank that moves bytes

        def shorter(instruction: Instruction) -> Instruction | None:
            if not isinstance(instruction, Compute):
                return instruction
            seconds = round(min(each, 1.0) * instruction.seconds, 6)
            return Compute(seconds) if seconds else None

        return scaled.mapped(shorter)

    def instruction(self, instruction: Instruction) -> Instruction | None:
        match instruction:
            case Move():
                return replace(instruction, variable=self.variable(instruction))
            case Operate():
                return self.operation(instruction)
            case Skew():
                late = tuple(_repeated(instruction.runs, self.old, self.new))
                return Skew(late) if any(each_s for _, each_s in late) else None
            case _:
                return instruction

    def _moving(self) -> float:
        """How many times as many ranks move bytes."""
        if self.single is None or self.single.groups is None:
            funnel = self.single is not None and self.single.funnel
            return 1.0 if funnel else self.new / self.old
        before, after = self.single.groups
        return after / before

    def variable(self, move: Move) -> Variable:
        v = move.variable
        runs = v.decomposition.runs
        if self.single is not None:
            pairs = aggregators.scaled(
                self.single.moving(runs),
                self.old,
                self.new,
                grow=self.weak,
                transfer_rows=move.transfer_bytes // v.row_bytes,
            )
        elif self.old > 1 and runs and runs[0][0] == 1 and not any(n for _, n in runs[1:]):
            pairs = [runs[0], (self.new - 1, 0)]  # a header
        else:
            return (_weak if self.weak else _strong)(v, self.old, self.new)
        shape = (sum(n * rows for n, rows in pairs), *v.shape[1:])
        return replace(v, shape=shape, decomposition=runs_at_most(pairs))

    def operation(self, o: Operate) -> Operate:
        pairs: Iterable[tuple[int, int]]
        if self.single is not None and all(n == 1 for n, each in o.runs if each):
            single = self.single.moving(o.runs)
            grow = self.weak and not single.funnel
            pairs = aggregators.scaled(single, self.old, self.new, grow=grow)
        else:
            pairs = (_repeated if self.weak else _stretched)(o.runs, self.old, self.new)
        return replace(o, runs=runs_at_most(pairs).runs)


def _strong(variable: Variable, old: int, new: int) -> Variable:
    rule = variable.decomposition
    if rule.rule in ("even", "cyclic"):
        return variable
    if rule.rule == "grid":
        grid = _factor_grid(new, variable.shape)
        return replace(variable, decomposition=Decomposition(rule="grid", grid=grid))
    pairs = _stretched(rule.runs, old, new)
    return replace(variable, decomposition=runs_at_most(pairs))


def _stretched(pairs: Sequence[tuple[int, int]], old: int, new: int) -> Iterator[tuple[int, int]]:
    """Old runs over new ranks; the cumulative distribution of rows holds to a row per rank."""
    rank, row = 0, 0  # the next new rank and its first row
    begin, rows_before = 0, 0  # the old run's
    for ranks, rows in pairs:
        end = begin + ranks
        # The first new rank that ends within the run may have begun before it.
        for last in (-(-begin * new // old), end * new // old):
            if rank < last <= end * new // old:
                stop = rows_before + (last * old - begin * new) * rows // new
                yield from equal_ranks(last - rank, stop - row)
                rank, row = last, stop
        rows_before += ranks * rows
        begin = end


def _factor_grid(ranks: int, shape: Sequence[int]) -> tuple[int, ...]:
    """A grid for that many ranks: prime factors, largest first, go where blocks are longest."""
    grid = [1] * len(shape)
    for factor in sorted(primes(ranks), reverse=True):
        longest = max(range(len(shape)), key=lambda d: (shape[d] / grid[d], -d))
        grid[longest] *= factor
    return tuple(grid)


def primes(n: int) -> Iterator[int]:
    """The prime factors, the smallest first."""
    divisor = 2
    while divisor * divisor <= n:
        while n % divisor == 0:
            yield divisor
            n //= divisor
        divisor += 1
    if n > 1:
        yield n


def _weak(variable: Variable, old: int, new: int) -> Variable:
    rule = variable.decomposition
    first, *rest = variable.shape
    if rule.rule in ("even", "cyclic"):
        return replace(variable, shape=(max(1, first * new // old), *rest))
    if rule.rule == "grid":
        if rule.grid[0] * new % old or first * new % old:
            raise UnderstudyError(
                f"variable {variable.name}: a grid of {rule.grid[0]} along its first dimension "
                f"and {first} rows cannot be scaled weakly from {old} to {new} ranks; "
                f"take a multiple of {old}"
            )
        grid = (rule.grid[0] * new // old, *rule.grid[1:])
        shape = (first * new // old, *rest)
        return replace(variable, shape=shape, decomposition=Decomposition(rule="grid", grid=grid))
    pairs = list(_repeated(rule.runs, old, new))
    if not any(rows for _, rows in pairs):  # the first of the ranks that have rows stands for them
        pairs = [(1, next(rows for _, rows in rule.runs if rows)), (new - 1, 0)]
    shape = (sum(n * rows for n, rows in pairs), *rest)
    return replace(variable, shape=shape, decomposition=runs_at_most(pairs))


def _repeated(pairs: Sequence[tuple[int, Each]], old: int, new: int) -> Iterator[tuple[int, Each]]:
    """Old runs over new ranks: rank r has what rank floor(r*old/new) had."""
    start = 0
    for ranks, each in pairs:
        begin, end = -(-start * new // old), -(-(start + ranks) * new // old)
        start += ranks
        if end > begin:
            yield end - begin, each


# -- bytes ----------------------------------------------------------------------------------------


def scale_bytes(workload: Workload, factor: float) -> Workload:
    """The workload that the player plays with `--bytes-scale` (core/workload/workload.c): the
    longest dimension of each variable is multiplied and rounded, to one at least; the rows of each
    rank are, where the decomposition states them along this dimension."""
    if not (math.isfinite(factor) and factor > 0):
        raise UnderstudyError(f"bytes scale {factor:g}: expected a number above 0")

    def variable(v: Variable) -> Variable:
        longest = max(range(len(v.shape)), key=v.shape.__getitem__)
        if v.decomposition.rule == "runs" and longest == 0:
            runs = tuple((n, _multiplied(rows, factor, 0)) for n, rows in v.decomposition.runs)
            rows = sum(n * each for n, each in runs)
            if not rows:
                rows = _multiplied(v.shape[0], factor, 1)
                runs = tuple(_shared(v.decomposition.runs, rows))
            decomposition = replace(v.decomposition, runs=runs)
            return replace(v, shape=(rows, *v.shape[1:]), decomposition=decomposition)
        length = _multiplied(v.shape[longest], factor, 1)
        return replace(v, shape=(*v.shape[:longest], length, *v.shape[longest + 1 :]))

    streams = tuple(stream.with_variables(variable) for stream in workload.streams)
    return replace(workload, streams=streams)


def _multiplied(number: int, factor: float, least: int) -> int:
    """The nearest whole number, that of a half upwards."""
    wanted = number * factor
    if not wanted < 9.2e18:
        raise UnderstudyError(f"bytes scale {factor:g}: {number} becomes more than can be counted")
    whole = math.floor(wanted)
    return max(least, whole + (wanted - whole >= 0.5))


def _shared(runs: Sequence[tuple[int, int]], rows: int) -> Iterator[tuple[int, int]]:
    """Rows for the first ranks that had any, one each."""
    for ranks, each in runs:
        some = min(ranks, rows) if each else 0
        rows -= some
        if some:
            yield some, 1
        if some < ranks:
            yield ranks - some, 0

"""Is a replica faithful? Two observations of I/O, held against each other stream by stream.

What is compared and how each error is defined stands in docs/metrics.md. Errors are fractions
(0.1 is 10%), with a sign where a direction has a meaning; the replica is above the original where
it is positive.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from understudy.contracts.workload import Stream
from understudy.judge.fidelity.layers import Layer, compare_layers, lacking
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.judge.statistics.measures import Measure, counted, relative, sizes
from understudy.observations.observation import Observation, Seen
from understudy.program import words
from understudy.program.calls import Calls
from understudy.units import plural

START_S = 0.25  # a dump that is off by less is on time: processes start and stop by as much apart
UNPAUSED = "it was played without pauses (time scale 0)"
MERGED = f"{UNPAUSED}: its dumps cannot be told apart by their times"
UNTOLD = "a log does not tell apart dumps of the same bytes of files that stay open"
_NEVER = 1e9  # cost of matching a read with a write


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A stream of the original and the one of the replica that stands for it."""

    original: Seen
    replica: Seen
    measures: tuple[Measure, ...]

    @property
    def name(self) -> str:
        return self.original.stream.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """All pairs, what has no counterpart on the other side, the interfaces, and the verdict."""

    ranks: tuple[int, int]  # of the original, of the replica
    pairs: tuple[Pair, ...]
    layers: tuple[Layer, ...]
    missing: tuple[Stream, ...]  # in the replica
    extra: tuple[Stream, ...]  # in the replica
    notes: tuple[str, ...]
    tolerance_fraction: float

    def above(self, measure: Measure) -> bool:
        """True if the error is above the tolerance."""
        return measure.error is not None and not abs(measure.error) <= self.tolerance_fraction

    def rows(self) -> Iterator[tuple[str, Measure]]:
        """Every measure, with the name of its stream or interface."""
        yield from ((pair.name, m) for pair in self.pairs for m in pair.measures)
        yield from ((layer.name, m) for layer in self.layers for m in layer.measures)

    @property
    def passed(self) -> bool:
        return not any(True for _ in self.failures())

    @property
    def application(self) -> bool:
        """True if it passes at the interfaces that the application called."""
        measures = [m for pair in self.pairs for m in pair.measures]
        measures += [m for layer in self.layers if not layer.below for m in layer.measures]
        whole = self.ranks[0] == self.ranks[1] and not self.missing and not self.extra
        return whole and not any(map(self.above, measures))

    @property
    def storage(self) -> bool | None:
        """True if it passes at the storage; None if an uncompared part could take the whole out of
        the tolerance, and no other fails: bytes of stdio, or a library whose calls to the storage
        a side does not have."""
        told = [layer for layer in self.layers if layer.storage]
        measures = [m for layer in told for m in layer.measures]
        if any(map(self.above, measures)):
            return False
        above = {layer.name.rpartition(" below ")[2] for layer in told if layer.below}
        untold = [
            layer.moved
            for layer in self.layers
            if not layer.storage and " below " not in layer.name and layer.name not in above
        ]
        seen = [sum(layer.moved[k] for layer in told) for k in range(2)]
        unseen = [sum(moved[k] for moved in untold) for k in range(2)]
        compared = any(m.error is not None for m in measures)
        few = all(u <= self.tolerance_fraction * s for u, s in zip(unseen, seen, strict=True))
        return True if compared and few else None

    @property
    def summary(self) -> str:
        """How much was compared, and the largest error, in one message."""
        errors = [(m.error, name, m.quantity) for name, m in self.rows() if m.error is not None]
        if not errors:
            return "nothing was compared"
        error, name, quantity = max(errors, key=lambda e: abs(e[0]))
        where = f", the largest {error:+.2%} ({name}: {quantity})" if error else ", all 0"
        layers = sum(any(m.error is not None for m in each.measures) for each in self.layers)
        of = f"{len(self.pairs)} streams and {plural(layers, 'interface')}"
        return f"{len(errors)} errors of {of}{where}"

    def failures(self) -> Iterator[str]:
        """A message for each stream without a counterpart and each error above the tolerance."""
        if self.ranks[0] != self.ranks[1]:
            yield f"ranks: {self.ranks[0]} in the original, {self.ranks[1]} in the replica"
        for stream in self.missing:
            yield f"{stream.name}: not in the replica ({outline(stream)})"
        for stream in self.extra:
            yield f"{stream.name}: only in the replica ({outline(stream)})"
        for name, m in self.rows():
            if self.above(m):
                error = f"{m.error:+.1%}"
                yield f"{name}: {m.quantity}: {m.original} became {m.replica} ({error})"


def outline(stream: Stream) -> str:
    """Short description of a stream."""
    dumps = plural(stream.dump_count, "dump")
    return f"{stream.operation}, {_layout(stream)}, {dumps}, {stream.bytes:,} B"


def compare(
    original: Observation,
    replica: Observation,
    *,
    tolerance_fraction: float = LIMIT_FRACTION,
    time_scale: float = 1.0,
) -> Comparison:
    """The replica against the original, whose times are multiplied by `time_scale`; 0 means that
    the replica was played without pauses, so that its times are not compared."""
    moving = [[s for s in side.streams if s.stream.bytes] for side in (original, replica)]
    matched, extra, notes = _match(*moving)
    begin = tuple(
        min((seen.stream.first_s for seen in side), default=0.0)
        for side in ((o for o, _ in matched), (r for _, r in matched))
    )
    last_s = max((o.stream.last_s for o, _ in matched), default=0.0)
    clock = _Clock(begin[0], begin[1], (last_s - begin[0]) * time_scale, time_scale)
    paired = [id(o) for o, _ in matched]
    return Comparison(
        ranks=(original.ranks, replica.ranks),
        pairs=tuple(
            Pair(original=o, replica=r, measures=tuple(_measures(o, r, original.ranks, clock)))
            for o, r in matched
        ),
        layers=compare_layers(original.interfaces, replica.interfaces),
        missing=tuple(o.stream for o in moving[0] if id(o) not in paired),
        extra=tuple(r.stream for r in extra),
        notes=(
            *notes,
            *lacking(original.interfaces, replica.interfaces),
            *original.notes,
            *replica.notes,
        ),
        tolerance_fraction=tolerance_fraction,
    )


# -- which stream stands for which ----------------------------------------------------------------

Matched = list[tuple[Seen, Seen]]


def _match(
    originals: Sequence[Seen], replicas: Sequence[Seen]
) -> tuple[Matched, list[Seen], list[str]]:
    """Pairs in the order of the originals, replicas left over, and how they were matched."""
    pairs: dict[int, Seen] = {}
    left = list(replicas)
    for k, original in enumerate(originals):
        candidates = [r for r in left if _names(r, original)]
        if candidates:
            pairs[k] = max(candidates, key=lambda r: r.stream.bytes)
            left = [r for r in left if r is not pairs[k]]
    reads = {o.stream.name for o in originals if o.stream.operation == "read"}
    input_writes = [r for r in left if r.stands_for in reads and r.stream.operation == "write"]
    left = [r for r in left if r not in input_writes]
    notes = []
    if pairs:
        notes.append(f"{len(pairs)} streams were matched by the names of the replica's files.")
    if input_writes:
        size = sum(r.stream.bytes for r in input_writes)
        notes.append(
            f"{size:,} B that the replica wrote are the files that it reads later; "
            "they were left out."
        )
    rest = [k for k in range(len(originals)) if k not in pairs]
    chosen = _assign([originals[k] for k in rest], left)
    if chosen:
        notes.append(
            f"{len(chosen)} streams were matched by operation, layout, role, number of dumps, "
            "bytes and order."
        )
    pairs |= {rest[i]: left[j] for i, j in chosen}
    taken = [left[j] for _, j in chosen]
    matched = [(originals[k], pairs[k]) for k in sorted(pairs)]
    return matched, [r for r in left if not any(r is t for t in taken)], notes


def _names(replica: Seen, original: Seen) -> bool:
    same = replica.stream.operation == original.stream.operation
    return same and replica.stands_for == original.stream.name


def _assign(originals: Sequence[Seen], replicas: Sequence[Seen]) -> list[tuple[int, int]]:
    """Pairs of indices for which the sum of differences is least."""
    if not originals or not replicas:
        return []
    cost = np.array(
        [
            [
                _difference(o.stream, r.stream) + abs(i / len(originals) - j / len(replicas))
                for j, r in enumerate(replicas)
            ]
            for i, o in enumerate(originals)
        ]
    )
    from scipy.optimize import linear_sum_assignment  # 0.2 s to import: only who judges pays

    rows, columns = linear_sum_assignment(cost)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return [(i, j) for i, j in pairs if cost[i, j] < _NEVER]


def _difference(a: Stream, b: Stream) -> float:
    """How unlike two streams are, in doublings."""
    if a.operation != b.operation:
        return _NEVER
    return (
        2.0 * (a.layout != b.layout)
        + 2.0 * (not words.same_use(a, b))
        + (a.role != b.role)
        + abs(math.log2(a.dump_count / b.dump_count))
        + abs(math.log2(max(1, a.bytes) / max(1, b.bytes)))
    )


# -- the quantities -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clock:
    """When both runs began their first dump, and how long the schedule should take, in seconds."""

    original_s: float
    replica_s: float
    length_s: float
    scale: float


def _measures(original: Seen, replica: Seen, ranks: int, clock: _Clock) -> Iterator[Measure]:
    a, b = original.stream, replica.stream
    other = a.dump_count > 1 and a.dump_count != b.dump_count
    why = UNTOLD if _stays_open(a) else MERGED if clock.scale == 0 and other else ""
    again = bool(why) or words.again(a) == words.again(b)
    same = ranks == 1 or (again and _files(a, ranks) == _files(b, ranks))
    layout = Measure(
        quantity="layout", original=_layout(a), replica=_layout(b), error=float(not same)
    )
    told = words.again(a) == words.again(b) or not why or not same
    yield layout if told else replace(layout, error=None, reason=why)
    dumps = counted("dumps", a.dump_count, b.dump_count)
    yield replace(dumps, error=None, reason=why) if why else dumps
    estimated = _estimated(a) or _estimated(b) or _stays_open(a)
    yield _bytes(a, b, estimated or original.guessed)
    yield from _calls(original.calls, replica.calls)
    reason = ""
    if _stays_open(a):
        reason = UNTOLD
    elif estimated:
        reason = (
            "Darshan does not trace stdio: the time steps of a file that stays open are estimated"
        )
    elif original.guessed:
        reason = "the original's times are assumed"
    yield _timeline(a, b, clock, reason)


def _layout(stream: Stream) -> str:
    groups = f" ({stream.groups})" if stream.layout == "grouped" else ""
    return f"{stream.layout}{groups}{words.again(stream)}"


def _files(stream: Stream, ranks: int) -> int | str:
    """The files of a dump, where ranks share them; one group is all ranks, and each may be one."""
    counts = {"shared": 1, "grouped": stream.groups, "file-per-process": ranks}
    return counts.get(stream.layout) or stream.layout


def _bytes(a: Stream, b: Stream, estimated: bool) -> Measure:
    """The dump that is farthest off; of the whole stream where their numbers differ, or where the
    time steps are estimated."""
    errors = [relative(a.bytes, b.bytes)]
    if a.dump_count == b.dump_count and not estimated:
        pairs = zip(a.expanded(), b.expanded(), strict=True)
        errors += [relative(x.bytes, y.bytes) for x, y in pairs]
    return Measure(
        quantity="bytes",
        original=f"{a.bytes:,}",
        replica=f"{b.bytes:,}",
        error=max(errors, key=abs),
    )


def _stays_open(stream: Stream) -> bool:
    """True if its dumps move the same bytes of files that stay open."""
    return stream.closes and not stream.grows and stream.dump_count > 1


def _estimated(stream: Stream) -> bool:
    """True if the time steps of a stream cannot be told apart: Darshan does not trace stdio."""
    return stream.method == "stdio" and stream.grows


def _calls(a: Calls | None, b: Calls | None) -> Iterator[Measure]:
    if a is None or b is None:
        reason = f"the {'original' if a is None else 'replica'} does not tell which calls are its"
        for quantity in ("operations", "access sizes", "collective"):
            yield Measure(quantity=quantity, original="", replica="", error=None, reason=reason)
        return
    yield counted("operations", a.count, b.count)
    yield sizes(a, b)
    yield Measure(
        quantity="collective",
        original=f"{a.collective_share:.1%}",
        replica=f"{b.collective_share:.1%}",
        error=b.collective_share - a.collective_share,
    )


def _timeline(a: Stream, b: Stream, clock: _Clock, reason: str) -> Measure:
    """The dump that is farthest from its time, in shares of the length of the schedule; not
    compared for a reason."""
    first = [s.first_s - begin for s, begin in ((a, clock.original_s), (b, clock.replica_s))]
    shown = (f"from {first[0] * clock.scale:.3f} s", f"from {first[1]:.3f} s")
    if clock.scale == 0:
        reason = UNPAUSED
    elif clock.length_s == 0:
        reason = "all begins at once"
    elif a.dump_count != b.dump_count:
        reason = "the numbers of dumps differ"
    if reason:
        return Measure(quantity="timeline", original="", replica="", error=None, reason=reason)
    late = [
        (y.time_s - clock.replica_s) - (x.time_s - clock.original_s) * clock.scale
        for x, y in zip(a.expanded(), b.expanded(), strict=True)
    ]
    worst_s = max(late, key=abs)
    return Measure(
        quantity="timeline",
        original=shown[0],
        replica=shown[1],
        error=worst_s / clock.length_s if abs(worst_s) > START_S else 0.0,
    )

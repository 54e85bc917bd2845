"""The data calls of a stream: how many, how many of them collective, and of which sizes."""

from collections import Counter
from dataclasses import dataclass

from understudy.program.counters import BINS, bin_of
from understudy.program.equal_dumps import together
from understudy.program.evaluator import walk_of
from understudy.program.instructions import Stream, calls_of_system
from understudy.program.runs import Moved, Rows

# Methods of the player that make a call for each run of consecutive bytes, and none collectively.
BY_RUNS = ("posix", "stdio", "uring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """`sizes` has a count per bin of `BINS`; of the calls that are in none the source keeps no
    sizes (STDIO)."""

    count: int
    collective: int = 0
    sizes: tuple[int, ...] = (0,) * len(BINS)

    def __add__(self, other: "Calls") -> "Calls":
        return total([self, other])

    @property
    def collective_share(self) -> float:
        return self.collective / self.count if self.count else 0.0


def total(parts: list[Calls]) -> Calls:
    """The sum of calls of several kinds of files."""
    return Calls(
        count=sum(p.count for p in parts),
        collective=sum(p.collective for p in parts),
        sizes=tuple(map(sum, zip(*(p.sizes for p in parts), strict=True))),
    )


def calls_of(stream: Stream, ranks: int) -> Calls:
    """The calls by which the player moves the bytes of a stream, by the stream's own method."""
    sizes: Counter[int] = Counter()
    collective = 0
    by_runs = stream.method in BY_RUNS
    for called, times in calls_of_system(stream):
        for size, number in (called.sizes("read") + called.sizes("write")).items():
            sizes[bin_of(size)] += times * number
    walk = walk_of(together(stream), ranks)
    for dumps in walk.dumps:
        for call in dumps.calls:
            if isinstance(call, Moved):
                times = dumps.count * call.times * call.move.variable.count
                call_sizes = call.sizes(by_runs)
                if call.move.collective and not by_runs:
                    collective += times * call_sizes.total()
            elif isinstance(call, Rows):
                times, call_sizes = dumps.count * call.times, call.sizes
            else:
                continue
            for size, number in call_sizes.items():
                sizes[bin_of(size)] += times * number
    return Calls(
        count=sizes.total(), collective=collective, sizes=tuple(sizes[k] for k in range(len(BINS)))
    )

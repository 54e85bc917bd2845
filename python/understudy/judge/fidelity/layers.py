"""The raw counters of an original and of its replica, interface by interface.

The counters are sums over the records of a log, untouched by the reader that describes it: an
error of that reader cannot cancel out.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from understudy.inference.log.interface_counters import READ, WRITE, Interfaces, Totals
from understudy.inference.score.counter_comparison import lacking as lacking_sizes
from understudy.judge.statistics.measures import Measure, counted, sizes

_UNSEEN = "Darshan does not see stats of programs that were built with glibc 2.33 or later"
_SEEKS = "seeks of POSIX reach no storage, and the player gives each call its offset"
STORAGE = "POSIX"  # the module that sees what reaches the storage
_HDF5 = frozenset({"H5F", "H5D"})
_UNSTATED = "a workload does not state them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Comparison of one interface: of one that the application called, or of the storage below it
    (`below`). Of a library below another one nothing is judged."""

    name: str
    measures: tuple[Measure, ...]
    below: bool = False
    moved: tuple[int, int] = (0, 0)  # bytes and data calls, of the side that has more

    @property
    def storage(self) -> bool:
        """True if logs show by it what reached the storage. No log has the calls that the C
        library makes for stdio."""
        return self.below or self.name == STORAGE


def compare_layers(original: Interfaces, replica: Interfaces) -> tuple[Layer, ...]:
    """Each interface that either side used."""
    layers = [
        Layer(name=name, measures=tuple(_measures(a, b, name)), moved=_moved(a, b))
        for name in sorted(original.direct | replica.direct)
        for a, b in ((original.direct.get(name, Totals()), replica.direct.get(name, Totals())),)
    ]
    for module, above in sorted(original.below | replica.below):
        if not (original.modules and replica.modules):
            continue
        a = original.below.get((module, above), Totals())
        b = replica.below.get((module, above), Totals())
        measures = _measures(a, b, module)
        if module != STORAGE:
            reason = f"the library makes them below {above}"
            measures = (replace(m, error=None, reason=reason) for m in measures)
        name = f"{module} below {above}"
        below = module == STORAGE
        layers.append(Layer(name=name, measures=tuple(measures), below=below, moved=_moved(a, b)))
    if original.stored and replica.stored is not None:
        stored = counted("bytes of files", original.stored, replica.stored)
        layers.append(Layer(name=f"{STORAGE} files", measures=(stored,), below=True))
    if original.foreign is not None and replica.foreign is not None:
        whole = sum(original.direct.get(m, Totals()).bytes[READ] for m in (STORAGE, "STDIO"))
        foreign = counted("bytes read of other ranks' files", original.foreign, replica.foreign)
        apart = replica.foreign - original.foreign
        if original.foreign or replica.foreign:
            foreign = replace(foreign, error=apart / whole if whole else math.inf)
            layers.append(Layer(name="files of ranks", measures=(foreign,)))
    return tuple(layer for layer in layers if layer.measures)


def lacking(original: Interfaces, replica: Interfaces) -> Iterator[str]:
    """A message where one side's log has no module of HDF5, though the other's has."""
    sides = {"original": original.modules, "replica": replica.modules}
    for (side, modules), other in zip(sides.items(), reversed(sides.values()), strict=True):
        if modules and not modules & _HDF5 and other & _HDF5:
            yield (
                f"The {side}'s log has no records of HDF5 (H5F, H5D): its Darshan was built "
                "without HDF5, or the program links HDF5 statically. Its HDF5 calls are missing, "
                "and what HDF5 did below stands for itself."
            )


def _moved(a: Totals, b: Totals) -> tuple[int, int]:
    sides = [(sum(side.bytes), sum(calls.count for calls in side.calls)) for side in (a, b)]
    return max(size for size, _ in sides), max(calls for _, calls in sides)


def _measures(a: Totals, b: Totals, module: str) -> Iterator[Measure]:
    for way, past, verb in ((READ, "read", "reads"), (WRITE, "written", "writes")):
        if a.calls[way].count or b.calls[way].count or a.bytes[way] or b.bytes[way]:
            yield counted(f"bytes {past}", a.bytes[way], b.bytes[way])
            yield counted(verb, a.calls[way].count, b.calls[way].count)
            if a.calls[way].count and b.calls[way].count:
                yield sizes(a.calls[way], b.calls[way], f"sizes of {verb}")
    if a.sizes and b.sizes:
        yield _exact(a, b)
    yield from _operations("opens", a.opens, b.opens, "")
    yield from _flushes(a, b)
    yield from _operations("stats", a.stats, b.stats, _UNSEEN)
    if a.seeks or b.seeks:
        seeks = counted("seeks", a.seeks, b.seeks)
        if module == "STDIO":  # which empty and fill the buffer of the C library
            calls = sum(c.count for c in a.calls)
            yield replace(seeks, error=(b.seeks - a.seeks) / calls if calls else math.inf)
        else:
            yield replace(seeks, error=None, reason=_SEEKS)


def _exact(a: Totals, b: Totals) -> Measure:
    """The share of the calls of named sizes in the original for which the replica has none that is
    as good to the storage, which is asked for pages."""
    original, replica = (Counter({n: k for (_, n), k in t.sizes.items()}) for t in (a, b))
    missed, named = lacking_sizes(original, replica), sum(original.values())
    most = max(missed or original, key=lambda size: ((missed or original)[size], size))
    told = Measure(
        quantity="exact sizes",
        original=f"{original[most]:,} x {most:,} B",
        replica=f"{replica[most]:,} x {most:,} B",
        error=sum(missed.values()) / named,
    )
    if sum(replica.values()) < named:  # others may be of these sizes
        return replace(told, error=None, reason="records name only four sizes of a file")
    return told


def _flushes(a: Totals, b: Totals) -> Iterator[Measure]:
    """Flushes. For a workload, only that each of its flushed dumps has at least one is known."""
    if a.flushes is not None and b.flushes is not None:
        yield from _operations("flushes", a.flushes, b.flushes, "")
        return
    least = max(t.flushed_dumps for t in (a, b))
    if not least:
        yield from _operations("flushes", a.flushes, b.flushes, "")
        return
    flushes = [t.flushed_dumps if t.flushes is None else min(t.flushes, least) for t in (a, b)]
    yield replace(counted("flushes", *flushes), original=_at_least(a), replica=_at_least(b))


def _at_least(totals: Totals) -> str:
    if totals.flushes is None:
        return f"at least {totals.flushed_dumps:,}"
    return f"{totals.flushes:,}"


def _operations(what: str, a: int | None, b: int | None, unseen: str) -> Iterator[Measure]:
    if a is None or b is None:
        if a or b:
            yield replace(counted(what, a or 0, b or 0), error=None, reason=_UNSTATED)
    elif unseen and a and not b:
        yield replace(counted(what, a, b), error=None, reason=unseen)
    elif a or b:
        yield counted(what, a, b)

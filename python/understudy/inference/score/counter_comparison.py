"""How far a workload explains a log: what is predicted for it beside what the log counted.

Of the files of each group of streams, every way of using them (reading, writing, other calls) is
explained where all counters that are known of it are as predicted, contradicted where one is not,
and unknown where they are, but do not tell what the storage was asked for. Each has the share of
the log's I/O time that was spent in it.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import sqrt

import numpy as np

from understudy.inference import constants as levels
from understudy.inference.calls.calls import PREFIXES
from understudy.inference.log.counter_totals import (
    HANDLES,
    RECORDS,
    RENAMES,
    SHARED,
    SYSTEM,
    WAYS,
    CounterTotals,
    Records,
    is_call,
)
from understudy.inference.score.explanation import (
    BESIDE,
    CREATED,
    EITHER,
    FILES,
    INHERITED,
    LIBRARY,
    MAPPED,
    ORDER,
    OTHER,
    PLACES,
    RANKS,
    READ,
    SEEKS,
    SIZES,
    SUMS,
    UNCOUNTED,
    WRITE,
    Difference,
    Explanation,
    Part,
)
from understudy.program.block_calls import Whole
from understudy.program.counters import BIN_BYTES, BINS, COUNTERS, NOT_ALIGNED, total
from understudy.program.evaluator import walk_of
from understudy.program.instructions import (
    Move,
    Operate,
    Program,
    Stream,
    flat,
    instructions,
    writes,
)
from understudy.program.needs import borrows
from understudy.program.opens import files_of, ranks_of_files
from understudy.program.page_alignment import PAGE
from understudy.program.predicted_counters import Predicted, predict
from understudy.program.preparation import preparing
from understudy.program.reads_between_writes import lookups_of
from understudy.program.runs import Moved
from understudy.program.sizes import stored_by

EQUAL = levels.SMALL  # share by which a number may be otherwise
OF_METHOD: Mapping[str, tuple[str, ...]] = {
    "posix": ("POSIX",),
    "stdio": ("STDIO",),
    "mpiio": ("MPI-IO",),
    "hdf5": ("H5D", "H5F"),
}
BELOW: Mapping[str, tuple[str, ...]] = {
    "posix": ("STDIO",),
    "stdio": ("POSIX",),
    "mpiio": ("POSIX",),
    "hdf5": ("MPI-IO", "POSIX"),
}


def explain(
    streams: Sequence[Stream],
    templates: Sequence[frozenset[bytes]],
    records: Records,
    ranks: int,
    inherits: bool = False,
) -> Explanation:
    """How far streams explain the records of a log; `templates` are those of each one's files.
    `inherits`: processes may have used descriptors that they inherited."""
    groups = _groups(streams, templates) if records.apart else [range(len(streams))]
    names = [frozenset[bytes]().union(*(templates[n] for n in group)) for group in groups]
    group_totals, rest = records.parts(names)
    parts = list[Part]()
    for group, totals in zip(groups, group_totals, strict=True):
        parts += _Group([streams[n] for n in group], totals, ranks).parts()
    parts += _Group([], rest, ranks).parts()
    if inherits:
        parts.append(_not_counted((), "POSIX", INHERITED))
    return Explanation(parts=tuple(parts))


def _not_counted(streams: tuple[str, ...], module: str, lack: str) -> Part:
    """The part for bytes moved without a counter."""
    return Part(
        streams=streams,
        module=module,
        way=EITHER,
        time_s=0.0,
        differences=(),
        unknown=(lack,),
    )


def _groups(
    streams: Sequence[Stream], templates: Sequence[frozenset[bytes]]
) -> list[Sequence[int]]:
    """Streams that use the same files, in the log or in the workload."""
    groups: list[tuple[set[object], list[int]]] = []
    for n, (stream, names) in enumerate(zip(streams, templates, strict=True)):
        keys: set[object] = {stream.set.name, *names}
        home = [n]
        for group_keys, others in [g for g in groups if g[0] & keys]:
            keys |= group_keys
            home += others
        groups = [g for g in groups if not g[0] & keys] + [(keys, home)]
    return [sorted(home) for _, home in groups]


class _Group:
    """Streams, and what was counted of their files."""

    def __init__(self, streams: Sequence[Stream], totals: CounterTotals, ranks: int) -> None:
        self.streams, self.totals, self.ranks = streams, totals, ranks
        methods = {s.method for s in streams}
        self.above = {m for method in methods for m in OF_METHOD.get(method, ())}
        self.below = {m for method in methods for m in BELOW.get(method, ())} - self.above
        sets = self._predict(streams)
        self.predicted = total([each.calls for each in sets])
        self.sizes: dict[str, Counter[int]] = {}
        for each in sets:
            for method, sizes in each.sizes.items():
                self.sizes.setdefault(OF_METHOD[method][0], Counter()).update(sizes)

    def _predict(self, streams: Sequence[Stream]) -> tuple[Predicted, ...]:
        return predict(Program(name="", ranks=self.ranks, streams=tuple(streams)))

    def parts(self) -> Iterator[Part]:
        """Every way in which the files were used, by the modules that saw the application."""
        yield from self._beside()
        yield from self._uncounted()
        for module in self.totals.counters:
            if module in self.below and not (module == "STDIO" and self._moves(module)):
                continue
            for way, time_s in zip(WAYS, self.totals.times[module], strict=True):
                differences = tuple(self._differences(module, way))
                unknown = tuple(self._unknown(module, way))
                if differences or unknown or time_s > 0 or self._calls(module, way):
                    names = [s.name for s in self.streams if self._uses(s, module, way)]
                    yield Part(
                        streams=tuple(names),
                        module=module,
                        way=way,
                        time_s=time_s,
                        differences=differences,
                        unknown=unknown,
                    )

    def _beside(self) -> Iterator[Part]:
        """Parts for bytes that POSIX moved of a library's files in a direction without calls of
        the library: others may have used them, or the library itself (data sieving)."""
        counted = self.totals.counters
        above = [m for m in ("MPI-IO", "H5D") if m in self.above and m in counted]
        if "POSIX" in self.above or "POSIX" not in counted or not above:
            return
        asked = sum(self._bytes(m) for m in above)
        for n, way in enumerate(WAYS[:2]):
            if any(self._calls(m, way) for m in above):
                continue
            if self._bytes("POSIX", way) > EQUAL * asked:
                yield Part(
                    streams=(),
                    module="POSIX",
                    way=way,
                    time_s=self.totals.times["POSIX"][n],
                    differences=(),
                    unknown=(BESIDE,),
                )

    def _uncounted(self) -> Iterator[Part]:
        """Files that were opened for a purpose, and which no counted call read or wrote."""
        modules = [m for m in ("STDIO", "POSIX") if m in self.totals.counters]
        if self.totals.unused and modules:
            names = [
                s.name
                for s in self.streams
                if any(isinstance(i, Operate) for i in instructions(s))
            ]
            yield _not_counted(tuple(names), modules[-1], UNCOUNTED)

    def _uses(self, stream: Stream, module: str, way: str) -> bool:
        """True if a part has calls of a stream."""
        if module not in OF_METHOD.get(stream.method, ()):
            return False
        return way == OTHER or (way == WRITE) == writes(stream)

    def _moves(self, module: str) -> bool:
        return any(self._calls(module, way) for way in WAYS[:2])

    def _calls(self, module: str, way: str) -> int:
        """Calls that were counted."""
        counted = self.totals.counters[module]
        return sum(counted[name] for name in COUNTERS[module] if is_call(name, way))

    def _bytes(self, module: str, *ways: str) -> int:
        """Bytes that were counted."""
        counted, prefix = self.totals.counters[module], PREFIXES.get(module, module)
        words = {READ: "READ", WRITE: "WRITTEN"}
        return sum(counted[f"{prefix}_BYTES_{words[way]}"] for way in ways or words)

    # -- what is otherwise ------------------------------------------------------------------------

    def _differences(self, module: str, way: str) -> Iterator[Difference]:
        if way == OTHER:
            yield from self._of_other_calls(module)
            return
        predicted = self.predicted.get(module, {})
        counted, calls = self.totals.counters[module], self._calls(module, way)
        names = [n for n in COUNTERS[module] if is_call(n, way) or _is_of_calls(n, way)]
        emptied = ("STDIO_SEEKS", "STDIO_FLUSHES") if module == "STDIO" and calls else ()
        if not any(self._sized(module, way)) or not self._add_up(module, way):
            names = [n for n in names if "_SIZE_" not in n]
        for name in (*names, *emptied):  # both empty the buffer
            if name not in counted:
                continue
            here, there = predicted.get(name, 0), counted[name]
            of = max(there, here or 0) if "BYTES" in name else max(calls, here or 0)
            if here is not None and abs(here - there) > EQUAL * of:
                yield Difference(name, here, there)
        if calls:
            yield from self._of_sizes(module, way)
            yield from self._of_turns(module, way)
            yield from self._of_pages(module, way)
        if calls and way == READ:  # which may be those of other ranks
            yield from self._of_ranks_of_files(module)
            yield from self._of_reach()
        if way == WRITE and calls:
            yield from self._of_storage(module)
            yield from self._of_ranks(module)

    def _sized(self, module: str, way: str) -> list[int]:
        """The counters of calls by size, where there are any."""
        names = [n for n in COUNTERS[module] if _is_of_calls(n, way) and "_SIZE_" in n]
        return [self.totals.counters[module].get(n, 0) for n in names]

    def _add_up(self, module: str, way: str) -> bool:
        """True if the counters have a size for each call, or none at all."""
        sized, calls = sum(self._sized(module, way)), self._calls(module, way)
        return not sized or abs(sized - calls) <= EQUAL * calls

    def _of_sizes(self, module: str, way: str) -> Iterator[Difference]:
        """Calls of sizes that records name, which reads and writes have in common."""
        first_way = next(w for w in WAYS[:2] if self._calls(module, w))
        predicted = self.sizes.get(module, Counter())
        if way != first_way or not predicted:
            return
        counted = self.totals.sizes.get(module, Counter())
        calls = sum(self._calls(module, w) for w in WAYS[:2])
        left_out = lacking(counted, predicted)
        many = sum(left_out.values()) > EQUAL * calls
        if many or sum(n * size for size, n in left_out.items()) > EQUAL * self._bytes(module):
            size = max(left_out, key=lambda size: (left_out[size] * max(1, size), size))
            yield Difference(f"calls of {size:,} B", counted[size] - left_out[size], counted[size])

    def _of_pages(self, module: str, way: str) -> Iterator[Difference]:
        """Calls that do not begin with a page, which reads and writes have in common: of writes,
        the storage is asked for one page more each."""
        first_way = next(w for w in WAYS[:2] if self._calls(module, w))
        here = self.predicted.get(module, {}).get(NOT_ALIGNED)
        there = self.totals.counters[module].get(NOT_ALIGNED)
        if way != first_way or here is None or there is None:
            return
        if abs(here - there) > EQUAL * sum(self._calls(module, w) for w in WAYS[:2]):
            yield Difference(NOT_ALIGNED, here, there)

    def _of_turns(self, module: str, way: str) -> Iterator[Difference]:
        """Reads behind writes and writes behind reads of the same files."""
        name = f"{PREFIXES.get(module, module)}_RW_SWITCHES"
        if way != READ or name not in self.totals.counters[module]:
            return
        there, here = self.totals.counters[module][name], self._turns(module)
        if here is not None and abs(here - there) > EQUAL * self._calls(module, way):
            yield Difference(name, here, there)

    def _turns(self, module: str) -> int | None:
        """Predicted turns between reads and writes; None if unknown."""
        streams = [s for s in self.streams if module in OF_METHOD.get(s.method, ())]
        looked = sum(2 * lookups_of(s, self.ranks)[0] for s in streams)
        if looked:
            return looked
        kinds = {
            (s.set.name, i.writes) for s in streams for i in instructions(s) if isinstance(i, Move)
        }
        alone = len(kinds) == len({name for name, _ in kinds})
        calls = any(s.set.tree is not None for s in streams)
        return 0 if alone and not calls else None

    def _of_storage(self, module: str) -> Iterator[Difference]:
        stored = sum(stored_by(s) for s in self.streams if writes(s))
        there = self.totals.stored
        comparable = there and self.streams and module in self.above - {"H5D"}
        if comparable and abs(stored - there) > EQUAL * max(stored, there):
            yield Difference("bytes of the files", stored, there)

    def _of_reach(self) -> Iterator[Difference]:
        """Up to where files are read that streams have to themselves, as far as they read."""
        reads = [s for s in self.streams if not writes(s)]
        here, there = sum(stored_by(preparing(s)) for s in reads), self.totals.reach
        alone = there and reads and not any(borrows(s) for s in reads)
        if alone and abs(here - there) > EQUAL * max(here, there):
            yield Difference("bytes of the files up to the last one read", here, there)

    def _of_ranks(self, module: str) -> Iterator[Difference]:
        """How unlike the ranks of shared files are, in bytes of a rank (standard deviation)."""
        here, there, small = self._deviations(module)
        if here is not None and abs(here - there) > small:
            yield Difference("standard deviation of the ranks' bytes", here, there)

    def _deviations(self, module: str) -> tuple[int | None, int, float]:
        """Standard deviations of the ranks' bytes in shared files, predicted (None: not known) and
        counted, and a negligible difference; unknown where not all files are shared."""
        counted = self.totals.counters[module]
        files = counted[SHARED]
        if not files or counted[RECORDS] != files * self.ranks or not self.streams:
            return None, 0, 0
        streams = [s for s in self.streams if module in OF_METHOD.get(s.method, ())]
        alone = len({s.set.name for s in streams}) == len(streams)
        each = [_variance(s, self.ranks) if alone else None for s in streams]
        moved = sum(n for name, n in counted.items() if "_BYTES_" in name and "MAX" not in name)
        there = round(sqrt(self.totals.variance[module] / files))
        variances = [variance for variance in each if variance is not None]
        here = round(sqrt(sum(variances) / files)) if len(variances) == len(each) else None
        return here, there, EQUAL * moved / files / self.ranks

    def _of_other_calls(self, module: str) -> Iterator[Difference]:
        for name, there in self._corrected(module):
            of = "POSIX" if name.startswith("POSIX") else module
            here = self.predicted.get(of, {}).get(name, 0)
            if here is not None and abs(here - there) > EQUAL * max(here, there):
                yield Difference(name, here, there)
        if module in ("POSIX", "STDIO"):
            yield from self._of_renames()
        if not self._calls(module, READ):
            yield from self._of_ranks_of_files(module)
        for way in WAYS[:2]:
            yield from self._of_files(module, way)

    def _of_renames(self) -> Iterator[Difference]:
        there = self.totals.counters.get("POSIX", {}).get(RENAMES)
        here = sum(map(_renames, self.streams))
        if there is not None and abs(here - there) > EQUAL * max(here, there):
            yield Difference(RENAMES, here, there)

    def _corrected(self, module: str) -> Iterator[tuple[str, int]]:
        """The counters of other calls, as they would be of the player's."""
        counted, others = self.totals.counters[module], self._others(module)
        if module == "STDIO" and (below := self.totals.counters.get("POSIX")):
            yield "POSIX_FSYNCS", below["POSIX_FSYNCS"] + below["POSIX_FDSYNCS"]
        for name in COUNTERS[module]:
            if not name.endswith(("OPENS", "STATS", "SYNCS", "FLUSHES")):
                continue
            there = counted[name]
            if name.endswith("_OPENS"):
                there = self._opens(module, name) + others
            elif name == "POSIX_FSYNCS":
                there += counted["POSIX_FDSYNCS"]
            yield name, max(0, there)

    def _opens(self, module: str, name: str) -> int:
        """Opens without those of descriptors that are open."""
        counted = self.totals.counters[module]
        return max(0, counted[name] - sum(counted.get(n, 0) for n in HANDLES.get(module, ())))

    def _others(self, module: str) -> int:
        """Opens through stdio of files whose bytes POSIX has (C++ streams), and through POSIX of
        files whose bytes stdio has (fdopen)."""
        other = {"POSIX": "STDIO", "STDIO": "POSIX"}.get(module, "")
        if other not in self.totals.counters or self._moves(other):
            return 0
        if module == "STDIO":
            told = "STDIO_FDOPENS" in self.totals.counters["STDIO"]
            if not told or not self._moves("STDIO"):
                return 0
        return self._opens(other, f"{other}_OPENS")

    def _of_files(self, module: str, way: str) -> Iterator[Difference]:
        """How many files were written, or read that no stream writes."""
        streams = [s for s in self._located(module) if writes(s) == (way == WRITE)]
        here, there = sum(files_of(s, self.ranks) for s in streams), self.totals.moved[way]
        comparable = here and there and not any(borrows(s) for s in streams)
        if comparable and abs(here - there) > EQUAL * there:
            yield Difference(FILES[way], here, there)

    def _of_ranks_of_files(self, module: str) -> Iterator[Difference]:
        """Which ranks had which files; readers may have those of writers."""
        each, there = [0, 0], self.totals.counters[module][RECORDS]
        for stream in self._located(module):
            each[writes(stream)] += ranks_of_files(stream, self.ranks)
        comparable = any(each) and any(self.totals.moved.values())
        if comparable and abs(max(each) - there) > EQUAL * there:
            yield Difference("ranks of files", max(each), there)

    def _located(self, module: str) -> Sequence[Stream]:
        """The streams, where all of them are of a module that tells which files each rank had."""
        of = module in ("POSIX", "STDIO", "MPI-IO")
        return self.streams if of and self.above == {module} else ()

    # -- what nobody counted ----------------------------------------------------------------------

    def _unknown(self, module: str, way: str) -> Iterator[str]:
        calls = self._calls(module, way) if way != OTHER else 0
        counted = self.totals.counters[module]
        if counted.get("POSIX_MMAPS"):
            yield MAPPED
        if way == OTHER and self.totals.unsure:
            yield CREATED
        if way == OTHER and module == "POSIX":
            seeks = self.predicted.get(module, {}).get("POSIX_SEEKS", 0) or 0
            others = sum(there for _, there in self._corrected(module))
            if counted["POSIX_SEEKS"] - seeks > EQUAL * others:
                yield SEEKS
        if not calls:
            return
        here, there, small = self._deviations(module)
        if here is None and there > small:
            yield RANKS
        if not self._add_up(module, way):
            yield SUMS
        if module == "STDIO":
            taken, off = (counted[f"{way}{word}"] for word in SYSTEM)
            if off > EQUAL * taken:
                yield SIZES
        elif module == "POSIX":
            if self._turns(module) is None and counted["POSIX_RW_SWITCHES"] > EQUAL * calls:
                yield ORDER
        elif module == "MPI-IO":
            if not self._is_placed(way):
                yield PLACES
        elif not self._passes("hdf5", way, places=False):
            yield LIBRARY

    def _is_placed(self, way: str) -> bool:
        """True if the places of MPI-IO calls follow from the counters: each rank makes one call of
        a variable, without a view; or each is one call of POSIX, which tells if it goes on."""
        moves = [
            m
            for s in self.streams
            if self._uses(s, "MPI-IO", way)
            for d in walk_of(s, self.ranks).dumps
            for m in d.calls
            if isinstance(m, Moved)
        ]
        alone = all((m.calls.transfers <= 1).all() and m.times == 1 for m in moves)
        below = self._calls("POSIX", way) if "POSIX" in self.totals.counters else 0
        whole = below <= self._calls("MPI-IO", way)  # none of POSIX is a part of one
        if alone and whole and not self.totals.counters["MPI-IO"]["MPIIO_VIEWS"]:
            return True
        return self._passes("mpiio", way)

    def _passes(self, method: str, way: str, places: bool = True) -> bool:
        """True if each run of bytes that is handed to a library becomes one POSIX call; small ones
        may be its own."""
        counted = self.totals.counters.get("POSIX")
        streams = [replace(s, method="posix") for s in self.streams if s.method == method]
        if counted is None:
            return False
        predicted = total([each.calls for each in self._predict(streams)])["POSIX"]
        bins = [f"POSIX_SIZE_{way}_{b}" for b in BINS]
        ends = np.array([*BIN_BYTES, 2 * BIN_BYTES[-1]], np.float64)
        moved = np.cumsum(ends * [predicted[name] or 0 for name in bins])
        usual = int(np.searchsorted(moved, moved[-1] / 2))
        names = bins[usual:]
        if places:
            names = [*bins, f"POSIX_CONSEC_{way}S", f"POSIX_SEQ_{way}S"]
        calls = sum(predicted[name] or 0 for name in bins)
        return all(
            predicted[n] is not None and abs((predicted[n] or 0) - counted[n]) <= EQUAL * calls
            for n in names
        )


def _is_of_calls(name: str, way: str) -> bool:
    """True if a counter is of the bytes, sizes or order of data calls."""
    moved = "READ" if way == READ else "WRITTEN"
    return (
        name.endswith(f"_BYTES_{moved}")
        or f"_SIZE_{way}_" in name
        or name.endswith((f"CONSEC_{way}S", f"SEQ_{way}S"))
    )


def _renames(stream: Stream) -> int:
    return sum(
        s.count * i.count
        for s in stream.steps
        for i in flat(s.body)
        if isinstance(i, Operate) and i.kind == "rename"
    )


def lacking(counted: Counter[int], predicted: Counter[int]) -> Counter[int]:
    """Calls of counted sizes for which none is made that is as good: the storage is asked for
    pages, so that one within a page is as good as another, one of whole pages is as good as none
    but itself, and others as those that are a little longer or shorter."""
    missing, left = counted - predicted, predicted - counted
    _take(missing, left, [n for n in missing if n < PAGE], [n for n in left if n < PAGE], None)
    _take(missing, left, [n for n in missing if n % PAGE], [n for n in left if n % PAGE], EQUAL)
    return +missing


def _take(
    lacking: Counter[int],
    left: Counter[int],
    sizes: Iterable[int],
    others: Iterable[int],
    near: float | None,
) -> None:
    """Take calls of others of the sizes that are left for those that are lacking: of all, or of
    those that differ by no more than a part of the size."""
    waiting = deque(sorted(others))
    for size in sorted(sizes):
        while waiting and near is not None and waiting[0] < size - near * size:
            waiting.popleft()
        while lacking[size] and waiting and (near is None or waiting[0] <= size + near * size):
            taken = min(lacking[size], left[waiting[0]])
            lacking[size] -= taken
            left[waiting[0]] -= taken
            if not left[waiting[0]]:
                waiting.popleft()


def _variance(stream: Stream, ranks: int) -> float | None:
    """Variance of the ranks' bytes, summed over the files of a stream; None if unknown."""
    walk = walk_of(stream, ranks)
    if walk.sets > 1:
        return None
    counts, variance = walk.segments.counts, 0.0
    moved: dict[int, Whole] = {}

    def spread() -> float:
        return sum(
            float(np.average(b.astype(float) ** 2, weights=counts))
            - float(np.average(b, weights=counts)) ** 2
            for b in moved.values()
        )

    for dumps in walk.dumps:
        lasts = walk.appends or walk.names is not None or not dumps.begins
        if dumps.begins and not lasts:
            variance += spread()
            moved = {}
        for call in dumps.calls:
            if isinstance(call, Moved):
                file, times = call.move.variable.file, call.times * call.move.variable.count
                each = np.where(call.takes_part, call.block.size, 0) * times
                moved[file] = moved.get(file, 0 * each) + each * (dumps.count if lasts else 1)
        if not lasts:
            variance += (dumps.count - 1) * spread()
    return variance + spread()

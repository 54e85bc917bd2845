"""The raw counters of a log, added up by interface, and those that a workload makes of each.

Several modules of Darshan record the same file. The highest one that has it is the interface that
the application called; what a lower one records of that file is the library's. HDF5 is above
MPI-IO, MPI-IO above POSIX; no library writes through STDIO, so its records are always the
application's own.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Log
from understudy.inference.calls.calls import PREFIXES, counters_of
from understudy.inference.log.counter_totals import HANDLES, add_sizes
from understudy.inference.log.filtered_datasets import without_filtered
from understudy.inference.log.impossible_values import Screen
from understudy.inference.names.name_templates import alike, is_junk
from understudy.inference.table import IdSet, over_rows
from understudy.program.calls import Calls, calls_of
from understudy.program.counters import BINS, bin_of
from understudy.program.equal_dumps import with_equal_dumps_together
from understudy.program.instructions import Operate, Program, Stream, flat, writes
from understudy.program.opens import opens_of
from understudy.program.predicted_counters import predict
from understudy.program.reads_between_writes import lookups_of
from understudy.program.sizes import bytes_of
from understudy.program.syncs import surely_synced, syncs, syncs_of

Ids = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[np.int64]
_USER = np.dtype([("file", "u8"), ("rank", "i8"), ("wrote", "?"), ("read", "i8")])
READ, WRITE = 0, 1
WORDS = (("READ", "READ"), ("WRITE", "WRITTEN"))
_ORDER = ("HDF5", "MPI-IO", "POSIX", "STDIO")
OF_METHOD = {"posix": "POSIX", "mpiio": "MPI-IO", "hdf5": "HDF5", "stdio": "STDIO"}
_ABOVE = {"H5D": (), "MPI-IO": ("HDF5",), "POSIX": ("HDF5", "MPI-IO"), "STDIO": ()}
_DIRECT = {"H5D": "HDF5", "MPI-IO": "MPI-IO", "POSIX": "POSIX", "STDIO": "STDIO"}
_OPENS = {
    "POSIX": ("POSIX_OPENS",),
    "STDIO": ("STDIO_OPENS",),
    "MPI-IO": ("MPIIO_INDEP_OPENS", "MPIIO_COLL_OPENS"),
}
_FLUSHES = {
    "POSIX": ("POSIX_FSYNCS", "POSIX_FDSYNCS"),
    "STDIO": ("STDIO_FLUSHES",),
    "MPI-IO": ("MPIIO_SYNCS",),
}


@dataclass(slots=True)
class Totals:
    """Counters of one interface: pairs are of reads and of writes; None: the source does not tell.

    `flushed_dumps` is what a workload states of flushes: each of these dumps has at least one;
    `played_flushes` are those that the player makes of it.
    `time_s` are the seconds that all ranks spent in it: moving data, and in opens, stats, closes.
    `sizes` are the calls of the sizes that records name, by (0, size).
    """

    bytes: list[int] = field(default_factory=lambda: [0, 0])
    calls: list[Calls] = field(default_factory=lambda: [Calls(count=0), Calls(count=0)])
    opens: int | None = 0
    stats: int | None = 0
    seeks: int = 0
    mmaps: int = 0
    flushes: int | None = 0
    flushed_dumps: int = 0
    played_flushes: int = 0
    time_s: list[float] = field(default_factory=lambda: [0.0, 0.0])
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)


@dataclass(slots=True)
class Interfaces:
    """Totals by interface: `direct` of those that the application uses itself, `below` of modules
    under another one, by (module, above)."""

    direct: dict[str, Totals] = field(default_factory=dict)
    below: dict[tuple[str, str], Totals] = field(default_factory=dict)
    modules: frozenset[str] = frozenset()  # that the log has; empty: it is no log
    stored: int | None = None  # bytes of the files that POSIX wrote: the largest offsets plus one
    foreign: int | None = None  # bytes that ranks read of files that only others of them wrote


# -- of a log -------------------------------------------------------------------------------------


class Sums:
    """The sums over the records of a log, a block at a time: those of H5F, H5D, MPI-IO (before or
    after POSIX), POSIX and STDIO, in this order, without values that no run can have.

    `kept` tells which files count, `prepared` those that a replica writes only to read them: of
    these, the writes are left out, but not the opens.
    """

    def __init__(
        self, log: Log, kept: Callable[[Ids], Mask], prepared: Callable[[Ids], Mask] | None = None
    ) -> None:
        self._log, self._kept, self._prepared = log, kept, prepared
        self._interfaces = Interfaces(modules=frozenset(m for m in log.modules if _usable(log, m)))
        self._hdf5, self._by_handle = IdSet(), IdSet()
        self._of_hdf5 = [0, 0]  # opens and flushes of its files

    @cached_property
    def _mpiio(self) -> IdSet:
        return _set_of(self._log, "MPI-IO", lambda block: block["id"])

    @cached_property
    def _tells_fdopen(self) -> bool:
        """True if opens of stdio are counted without fdopen()."""
        return any("STDIO_FDOPENS" in b.dtype.names for b in _records(self._log, "STDIO"))

    @cached_property
    def _streamed(self) -> IdSet:
        """Files that moved bytes through stdio."""
        return _set_of(self._log, "STDIO", lambda block: block["id"][_moved(block, "STDIO") > 0])

    def add(self, module: str, block: Any) -> None:
        """Add the records of a block."""
        ids = block["file_rec_id" if module == "H5D" else "id"]
        if module in ("H5F", "H5D"):
            self._hdf5.add(np.unique(ids))
        if module == "POSIX":  # of C++ streams
            self._by_handle.add(ids[block["POSIX_FILENOS"] > 0])
        kept = self._kept(ids)
        if module == "H5F":
            sums = _Columns(block if kept.all() else block[kept])
            self._of_hdf5[0] += sums["H5F_OPENS"]
            self._of_hdf5[1] += sums["H5F_FLUSHES"]
            return
        left = kept.copy()
        for layer in _ABOVE[module]:
            of_layer = left & (self._hdf5 if layer == "HDF5" else self._mpiio).has(ids)
            if of_layer.any():
                totals = self._interfaces.below.setdefault((module, layer), Totals())
                self._add(totals, block[of_layer], module, ids[of_layer])
                left &= ~of_layer
        if module == "STDIO":  # a C++ stream: its bytes are in POSIX, so its open belongs there
            left &= ~self._twins(block, ids, kept)
        if module == "POSIX":  # opened, then given to fdopen(): its open is one of STDIO
            left &= ~self._given(block, ids, kept)
        if left.any():
            totals = self._interfaces.direct.setdefault(_DIRECT[module], Totals())
            every = bool(left.all())
            self._add(totals, block if every else block[left], module, ids if every else ids[left])

    def done(self) -> Interfaces:
        """The sums of all blocks."""
        interfaces = self._interfaces
        if "HDF5" in interfaces.direct:
            counted = _usable(self._log, "H5F")
            opens, flushes = self._of_hdf5 if counted else (None, None)
            interfaces.direct["HDF5"].opens, interfaces.direct["HDF5"].flushes = opens, flushes
        interfaces.direct = {
            name: interfaces.direct[name] for name in _ORDER if name in interfaces.direct
        }
        return interfaces

    def _twins(self, block: Any, ids: Ids, kept: Mask) -> Mask:
        twins: Mask = kept & (_moved(block, "STDIO") == 0) & self._by_handle.has(ids)
        if twins.any():
            posix = self._interfaces.direct.setdefault("POSIX", Totals())
            posix.opens = (posix.opens or 0) + _opens(block[twins], "STDIO")
        return twins

    def _given(self, block: Any, ids: Ids, kept: Mask) -> Mask:
        given: Mask = kept & (_moved(block, "POSIX") == 0)
        if given.any():
            given &= self._streamed.has(ids)
        if given.any() and self._tells_fdopen:
            stdio = self._interfaces.direct.setdefault("STDIO", Totals())
            stdio.opens = (stdio.opens or 0) + _opens(block[given], "POSIX")
        if given.any() and (flushed := _flushes(_Columns(block[given]), "POSIX")):
            totals = self._interfaces.direct.setdefault("POSIX", Totals())
            totals.flushes = (totals.flushes or 0) + flushed
        return given

    def _add(self, totals: Totals, block: Any, module: str, ids: Ids) -> None:
        kept = block
        if self._prepared is not None:
            prepared = self._prepared(ids)
            kept = block[~prepared] if prepared.any() else block
        prefix, whole = PREFIXES[module], _Columns(block)
        of_kept = whole if kept is block else _Columns(kept)
        for way, (verb, past) in enumerate(WORDS):
            rows, sums = (kept, of_kept) if way == WRITE else (block, whole)
            counter = f"{prefix}_BYTES_{past}"
            if module == "MPI-IO":
                totals.bytes[way] += int(_bytes(rows, counter).sum())
            else:
                totals.bytes[way] += sums[counter]
            totals.calls[way] += _calls(rows, sums, module, verb)
            totals.time_s[0] += _time_s(rows, module, verb)
        totals.time_s[1] += _time_s(block, module, "META")
        if module != "STDIO":
            add_sizes(totals.sizes, kept, prefix, np.zeros(len(kept), np.int64))
        if module in _OPENS and totals.opens is not None:
            totals.opens += _opens(block, module)
        if totals.flushes is not None:
            totals.flushes += _flushes(of_kept, module)
        if module in ("POSIX", "STDIO"):
            totals.seeks += whole[f"{module}_SEEKS"]
        if module == "POSIX" and totals.stats is not None:
            totals.stats += whole["POSIX_STATS"]
            totals.mmaps += whole["POSIX_MMAPS"]


class _Columns:
    """Sums of the counters of a block; what is not known (negative) counts as 0."""

    def __init__(self, block: Any) -> None:
        self._words = (
            np.ascontiguousarray(block)
            .view(np.int64)
            .reshape(len(block), block.dtype.itemsize // 8)
        )
        self._place = {name: k for k, name in enumerate(block.dtype.names)}
        self._sums = over_rows(np.add, self._words)
        self._low = self._words.min(axis=0, initial=0)

    def __getitem__(self, name: str) -> int:
        k = self._place[name]
        if self._low[k] >= 0:
            return int(self._sums[k])
        return int(np.maximum(self._words[:, k], 0).sum())


def of_log(
    log: Log,
    kept: Callable[[Ids], Mask] | None = None,
    prepared: Callable[[Ids], Mask] | None = None,
) -> Interfaces:
    """The sums over the records of a log; see `Sums`. By default, all files count but those of MPI
    and the system."""
    kept = kept or not_junk(log)
    sums = Sums(log, kept, prepared)
    ids, ends = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    users = _Users()
    for module in ("H5F", *PREFIXES):
        for block in _records(log, module):
            sums.add(module, block)
            if module in ("POSIX", "STDIO"):
                counted = kept(block["id"])
                counted &= ~prepared(block["id"]) if prepared is not None else True
                users.add(module, block[counted])
            if module == "POSIX":
                wrote = (block["POSIX_BYTES_WRITTEN"] > 0) & kept(block["id"])
                if prepared is not None:
                    wrote &= ~prepared(block["id"])
                ids.append(block["id"][wrote])
                ends.append(block["POSIX_MAX_BYTE_WRITTEN"][wrote] + 1)
    interfaces = sums.done()
    files, index = np.unique(np.concatenate(ids), return_inverse=True)
    top = np.zeros(len(files), np.int64)
    np.maximum.at(top, index.ravel(), np.concatenate(ends))
    interfaces.stored = int(top.sum())
    interfaces.foreign = users.foreign()
    return interfaces


class _Users:
    """Which ranks wrote and read files that each rank has a record of."""

    def __init__(self) -> None:
        self._rows: list[Any] = [np.zeros(0, _USER)]

    def add(self, module: str, block: Any) -> None:
        """Add records."""
        rows = np.zeros(len(block), _USER)
        rows["file"], rows["rank"] = block["id"], block["rank"]
        rows["wrote"] = block[f"{module}_BYTES_WRITTEN"] > 0
        rows["read"] = np.maximum(block[f"{module}_BYTES_READ"], 0)
        self._rows.append(rows[(rows["rank"] >= 0) & (rows["wrote"] | (rows["read"] > 0))])

    def foreign(self) -> int:
        """Bytes that ranks read of files that only others wrote."""
        rows = np.concatenate(self._rows)
        wrote = np.unique(rows[rows["wrote"]][["file", "rank"]])
        reads = rows[(rows["read"] > 0) & np.isin(rows["file"], wrote["file"])]
        by_writers = np.isin(reads[["file", "rank"]], wrote)
        return int(reads["read"][~by_writers].sum())


def _calls(rows: Any, sums: _Columns, module: str, verb: str) -> Calls:
    if module == "STDIO":
        return Calls(count=sums[f"STDIO_{verb}S"])
    if module == "POSIX":
        sizes = tuple(sums[f"POSIX_SIZE_{verb}_{name}"] for name in BINS)
        return Calls(count=sums[f"POSIX_{verb}S"], sizes=sizes)
    count, collective, *bins = counters_of(rows, module, verb).sum(axis=0).tolist()
    return Calls(count=count, collective=collective, sizes=tuple(bins))


def _opens(block: Any, module: str) -> int:
    """Without those that Darshan counts for descriptors that are open."""
    opens, others = (
        sum((np.maximum(block[n], 0) for n in names if n in block.dtype.names), np.int64(0))
        for names in (_OPENS[module], HANDLES.get(module, ()))
    )
    return int(np.maximum(opens - others, 0).sum())


def _flushes(sums: _Columns, module: str) -> int:
    return sum(sums[name] for name in _FLUSHES.get(module, ()))


def _usable(log: Log, module: str) -> bool:
    return module in log.modules and log.modules[module].supported


def _records(log: Log, module: str) -> Iterator[Any]:
    """The blocks of a module, without values that no run can have."""
    if _usable(log, module):
        screen = Screen(str(log.path), log.job.nprocs, log.job.run_time_s)
        for block in log.records(module):
            yield without_filtered(log, module, screen(module, block))


def _moved(block: Any, module: str) -> npt.NDArray[np.int64]:
    prefix = PREFIXES[module]
    moved: npt.NDArray[np.int64] = np.zeros(len(block), np.int64)
    for _, past in WORDS:
        moved += _bytes(block, f"{prefix}_BYTES_{past}")
    return moved


def _bytes(block: Any, counter: str) -> npt.NDArray[np.int64]:
    """A byte counter; what MPI-IO counted in 32 bits with a sign is counted without."""
    values: npt.NDArray[np.int64] = block[counter]
    if counter.startswith("MPIIO"):
        values = np.where(values < 0, values + (1 << 32), values)
    return np.maximum(values, 0)


def _sum(block: Any, counter: str) -> int:
    return int(np.maximum(block[counter], 0).sum())


def _time_s(block: Any, module: str, word: str) -> float:
    name = f"{PREFIXES[module]}_F_{word}_TIME"
    return float(np.maximum(block[name], 0).sum()) if name in block.dtype.names else 0.0


def _set_of(log: Log, module: str, ids: Callable[[Any], Ids]) -> IdSet:
    id_set = IdSet()
    for block in _records(log, module):
        id_set.add(ids(block))
    return id_set


def not_junk(log: Log) -> Callable[[Ids], Mask]:
    """Which files are the application's."""
    junk = IdSet()
    for block in log.name_blocks():
        for some in alike(block):
            if is_junk(some.first):
                junk.add(block.ids[some.which])
    return lambda ids: ~junk.has(ids)


# -- of a workload --------------------------------------------------------------------------------


def of_streams(streams: Sequence[Stream], ranks: int) -> Interfaces:
    """Interfaces that the player uses for a workload, each stream by its own method."""
    interfaces = Interfaces()
    named = {stream.name: stream for stream in streams}
    program = Program(name="", ranks=ranks, streams=tuple(streams))

    def totals_of(name: str) -> Totals:
        return interfaces.direct.setdefault(name, Totals(stats=None, flushes=None))

    for stream in with_equal_dumps_together(program).streams:
        totals = totals_of(OF_METHOD.get(stream.method, stream.method))
        way = WRITE if writes(stream) else READ
        totals.bytes[way] += bytes_of(stream)
        totals.calls[way] += calls_of(stream, ranks)
        number, moved, size = lookups_of(stream, ranks)
        sizes = tuple(number * (k == bin_of(size)) for k in range(len(BINS)))
        totals.bytes[READ] += moved
        totals.calls[READ] += Calls(count=number, sizes=sizes)
        totals.opens = (totals.opens or 0) + opens_of(stream, ranks, named.get(stream.last or ""))
        synced = syncs_of(stream, ranks)
        totals.played_flushes += synced
        if stream.method == "stdio" and any(map(syncs, stream.steps)):  # fflush() and fsync()
            totals_of("POSIX").played_flushes += synced
        totals.flushed_dumps += surely_synced(stream, ranks)
        for step in stream.steps:
            for each in flat(step.body):
                if not isinstance(each, Operate):
                    continue
                if each.kind == "sync":
                    totals_of("POSIX").played_flushes += step.count * each.count
                elif each.kind == "seek":
                    totals.seeks += step.count * each.count
                elif each.kind == "stat":
                    totals.stats = (totals.stats or 0) + step.count * each.count
    if stdio := interfaces.direct.get("STDIO"):
        sets = predict(program)
        counted = [each.calls["STDIO"] for each in sets if each.calls.get("STDIO")]
        stdio.seeks = sum(counters["STDIO_SEEKS"] or 0 for counters in counted)
        flushes = [counters["STDIO_FLUSHES"] for counters in counted]
        numbers = [number for number in flushes if number is not None]
        if len(numbers) == len(flushes):
            stdio.played_flushes = sum(numbers)
    return interfaces

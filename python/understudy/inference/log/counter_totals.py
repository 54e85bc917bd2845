"""Counters of a log for some files, with which their description is compared.

Files are known by the templates of their names. Counters are those that can be predicted for a
workload (`understudy.program.counters`), summed over the records.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.inference.calls.calls import HISTOGRAM, MODULES, PREFIXES
from understudy.inference.calls.stdio_calls import system_calls
from understudy.inference.calls.transfers import Named
from understudy.inference.log.known_files import lookup
from understudy.inference.names.name_templates import Templates
from understudy.inference.table import Rows, over_rows
from understudy.program.counters import BINS, COUNTERS, NOT_ALIGNED, bin_of
from understudy.program.page_alignment import PAGE

Whole = npt.NDArray[np.int64]
Real = npt.NDArray[np.float64]
Ids = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
_NAME = np.dtype([("file", "u8"), ("template", "i4")])
_REACH = np.dtype([("file", "u8"), ("bytes", "i8")])
MAX_FILES = 16_384  # of a log whose counters are kept by template; else they are kept together
MAX_SIZES = 16_384  # of calls that are told apart
SIZE_BITS = 44  # of the largest of these calls, and of the last byte that was read
ACCESSES = 4  # sizes of which a record names the commonest
RENAMES = "POSIX_RENAME_SOURCES"
# What is counted as an open beside, of a descriptor that is open.
HANDLES = {"POSIX": ("POSIX_FILENOS", "POSIX_DUPS"), "STDIO": ("STDIO_FDOPENS",)}
# Counters beside those that can be predicted, which these are corrected by, or which show what
# nobody predicts.
BESIDE = {
    "POSIX": ("POSIX_FDSYNCS", *HANDLES["POSIX"], "POSIX_MMAPS", RENAMES),
    "STDIO": HANDLES["STDIO"],
    "MPI-IO": ("MPIIO_VIEWS", "MPIIO_SPLIT_READS", "MPIIO_SPLIT_WRITES"),
}
RECORDS, SHARED = "ranks of files", "files of all ranks"  # by the records of a module
WAYS = ("READ", "WRITE", "META")
SYSTEM = (" calls of the system", " calls of the system, off by")  # of stdio, reading and writing


@dataclass(slots=True)
class CounterTotals:
    """The counters of some files by module; how many files there are, how many of these were read
    and written (0: unknown), and their bytes on storage (0: unknown). `unused`: files that were
    opened, but neither read nor written; `unsure` are those of them of which nothing tells whether
    an open created them (opened through stdio, or more than once) or that are directories of
    others. `reach`: of bytes from
    the begin of each to the last that was read. `times`: seconds that all ranks spent reading,
    writing, in other calls. `sizes`: calls by size, at least. `variance`: of the bytes of ranks,
    summed over shared files.
    """

    counters: dict[str, dict[str, int]] = field(default_factory=dict)
    files: int = 0
    moved: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS[:2], 0))
    stored: int = 0
    unused: int = 0
    unsure: int = 0
    reach: int = 0
    times: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    sizes: dict[str, Counter[int]] = field(default_factory=dict)
    variance: dict[str, float] = field(default_factory=dict)

    def named(self, method: str, write: bool) -> Named:
        """Calls in one direction, by bin: their number, and the number by size. Bins in which the
        other direction has calls too are left out, since records name sizes of both."""
        module = MODULES[method]
        if not self.sizes.get(module):
            return {}
        prefix, suffix = HISTOGRAM[module]
        verbs = WAYS[:2] if write else WAYS[1::-1]
        calls_by_bin: dict[int, tuple[int, dict[int, int]]] = {}
        for n, bin_ in enumerate(BINS):
            other, count = (
                self.counters[module].get(f"{prefix}_SIZE_{verb}{suffix}_{bin_}", 0)
                for verb in verbs
            )
            some = {size: k for size, k in self.sizes[module].items() if bin_of(size) == n}
            if some and not other and count >= sum(some.values()):
                calls_by_bin[n] = count, some
        return calls_by_bin


@dataclass(slots=True)
class _Module:
    """Sums of the records of a module: [templates, counters], [templates, 3 times and a variance],
    and calls by template and size."""

    counters: Whole
    times: Real
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)


class Records:
    """The counters of the records of a log by template and module; of a log of many `files`, all
    together. Names are added first, then records, then accesses. `kept` tells which files count,
    `again` that a file may have several records of one rank (joined logs).
    """

    def __init__(
        self,
        templates: Templates,
        files: int,
        ranks: int,
        kept: Callable[[Ids], Mask],
        again: bool = False,
    ) -> None:
        self._templates, self._ranks, self._counts, self._again = templates, ranks, kept, again
        self.apart = files <= MAX_FILES
        self._names: list[Rows] = []
        self._modules: dict[str, _Module] = {}
        self._seen: list[Ids] = []  # files of records, sorted
        self._stored: Whole = np.zeros(0, np.int64)
        self._lacking: set[str] = set()  # columns that records do not have, or wrongly
        # Files of records with bytes, by way.
        self._moved: dict[str, list[Ids]] = {way: [] for way in WAYS[:2]}
        self._used: list[Ids] = []  # files of records with data calls
        self._opened: list[Ids] = []  # files of records with opens
        self._unsure: list[Ids] = []  # files of records whose opens may have created them, or not
        self._reached: list[Any] = []  # files of records that read, and up to which byte
        self.file_of: dict[int, int] = {}  # by dataset, where records do not tell

    def name(self, rows: Rows) -> None:
        """Add names, which have the index of their template."""
        if self.apart:
            self._names.append(rows[["file", "template"]].astype(_NAME))

    def add(self, module: str, block: Any) -> None:
        """Add records."""
        if module not in COUNTERS:
            return
        ids = self._files_in(block) if module == "H5D" else block["id"]
        counted = self._counts(ids)
        block, ids = (block, ids) if counted.all() else (block[counted], ids[counted])
        template, names = self._template_of(ids), _names(module)
        if module not in self._modules:
            shape = len(self._stored)
            self._modules[module] = _Module(
                np.zeros((shape, len(names)), np.int64), np.zeros((shape, 4))
            )
        sums = self._modules[module]
        self._add_counters(module, block, template, sums.counters)
        if module == "POSIX" and (block["POSIX_FILE_ALIGNMENT"] != PAGE).any():
            self._lacking.add(NOT_ALIGNED)
        prefix = PREFIXES.get(module, module)
        if module != "H5F":
            ways = [block[f"{prefix}_BYTES_{past}"] != 0 for past in ("READ", "WRITTEN")]
            moved = ways[0] | ways[1]
            shared = moved & (block["rank"] < 0)
            self._add(sums.counters, -2, template, moved * np.where(shared, self._ranks, 1))
            self._add(sums.counters, -1, template, shared)
            if self.apart and module != "H5D":
                for way, moves in zip(WAYS[:2], ways, strict=True):
                    self._moved[way].append(np.unique(ids[moves & (template > 0)]))
                self._note_unused(module, block, ids, template > 0)
            if self.apart and f"{module}_MAX_BYTE_READ" in block.dtype.names:
                reads = (block[f"{module}_BYTES_READ"] > 0) & (template > 0)
                reached = np.zeros(np.count_nonzero(reads), _REACH)
                reached["file"] = ids[reads]
                last = block[f"{module}_MAX_BYTE_READ"][reads]
                reached["bytes"] = np.clip(last, -1, (1 << SIZE_BITS) - 1) + 1
                self._reached.append(_largest(reached))
        timers = (*(f"{prefix}_F_{way}_TIME" for way in WAYS), f"{prefix}_F_VARIANCE_RANK_BYTES")
        for k, name in enumerate(timers):
            if name in block.dtype.names:
                finite = np.where(np.isfinite(block[name]), block[name], 0.0)
                self._add(sums.times, k, template, np.maximum(finite, 0))
        if module == "STDIO":
            for n, verb in enumerate(WAYS[:2]):
                for k, number in enumerate(system_calls(block, verb, self._ranks)):
                    self._add(sums.counters, 2 * n + k - 6, template, number)
        elif module != "H5F":
            add_sizes(sums.sizes, block, prefix, template)

    def _note_unused(self, module: str, block: Any, ids: Ids, named: Mask) -> None:
        """Note which files were opened, and which of these had data calls."""
        names = [n for n in COUNTERS[module] if n in block.dtype.names]
        calls = [n for n in names if any(is_call(n, way) for way in WAYS[:2])]
        used = np.any([self._counted(block, n) > 0 for n in calls], axis=0)
        opens = sum(np.maximum(block[n], 0) for n in names if n.endswith("OPENS"))
        opens = opens - sum(block[n] for n in HANDLES.get(module, ()) if n in block.dtype.names)
        unsure = opens > 1
        if module == "POSIX":
            unsure = (opens > 1) & (block["POSIX_MODE"] > 0)
        elif module == "STDIO":  # which has no mode, nor has mkstemp()
            unsure = block["STDIO_OPENS"] > 0
        for home, which in (
            (self._used, used),
            (self._opened, opens > 0),
            (self._unsure, unsure),
        ):
            home.append(np.unique(ids[named & which]))

    def complete(self, lost: Rows) -> None:
        """Add datasets of ranks whose records are missing (`understudy.inference.table.DATASET`),
        each opened once, and their files by each rank to write and to read."""
        if not len(lost):
            return
        counts: dict[str, Whole] = {"H5D_OPENS": np.ones(len(lost), np.int64)}
        for verb, past, write in (("WRITE", "WRITTEN", True), ("READ", "READ", False)):
            of_way = lost["write"] == write
            counts[f"H5D_{verb}S"] = of_way * lost["calls"].sum(axis=1)
            counts[f"H5D_BYTES_{past}"] = of_way * lost["bytes"]
            for k, bin_ in enumerate(BINS):
                counts[f"H5D_SIZE_{verb}_AGG_{bin_}"] = of_way * lost["calls"][:, k]
        template, names = self._template_of(lost["file"]), _names("H5D")
        for name, numbers in counts.items():
            self._add(self._modules["H5D"].counters, names.index(name), template, numbers)
        if "H5F" in self._modules:
            files = np.unique(lost[["file", "rank", "write"]])["file"]
            opens, column = self._modules["H5F"].counters, _names("H5F").index("H5F_OPENS")
            self._add(opens, column, self._template_of(files), np.ones(len(files), np.int64))

    def _add_counters(self, module: str, block: Any, template: Whole, sums: Whole) -> None:
        """Add each counter; where all are kept together and none is negative, all at once."""
        names = (*COUNTERS[module], *BESIDE.get(module, ()))
        columns, place = _places(names, block.dtype.names)
        if len(columns) < len(names):
            self._lacking |= set(names) - set(block.dtype.names)
        if not self.apart and len(block):
            words = np.ascontiguousarray(block).view(np.int64).reshape(len(block), -1)
            low, whole = (over_rows(merge, words)[place] for merge in (np.minimum, np.add))
            sums[0, columns[low >= 0]] += whole[low >= 0]
            columns = columns[low < 0]
        for k in columns.tolist():
            self._add(sums, k, template, np.maximum(self._counted(block, names[k]), 0))

    def _add(self, sums: Any, k: int, template: Whole, numbers: Any) -> None:
        """Add numbers of records to a column of sums."""
        if self.apart:
            np.add.at(sums[:, k], template, numbers)
        else:
            sums[0, k] += numbers.sum()

    def _counted(self, block: Any, name: str) -> Whole:
        """A counter; bytes that MPI-IO counted in 32 bits with a sign, without; with collective
        calls those that are split (MPI_File_write_all_begin and _end)."""
        values: Whole = block[name]
        split = name.replace("_COLL_", "_SPLIT_")
        if split != name and split in block.dtype.names:
            values = np.maximum(values, 0) + np.maximum(block[split], 0)
        if name.startswith("MPIIO_BYTES_") and (values < 0).any():
            self._lacking |= {n for n in COUNTERS["MPI-IO"] if "_SIZE_" in n}
            values = np.where(values < 0, values + (1 << 32), values)
        return values

    def _files_in(self, block: Any) -> Ids:
        """The files of datasets."""
        ids: Ids = block["file_rec_id"]
        if not (ids == 0).any():
            return ids
        pairs = zip(ids.tolist(), block["id"].tolist(), strict=True)
        return np.array([file or self.file_of.get(n, n) for file, n in pairs], np.uint64)

    def _template_of(self, ids: Ids) -> Whole:
        if not self.apart:
            self._stored = self._stored if len(self._stored) else np.zeros(1, np.int64)
            return np.zeros(len(ids), np.int64)
        matched, place = lookup(self._file_names["file"], ids)
        template = np.zeros(len(ids), np.int64)
        template[matched] = self._file_names["template"][place[matched]]
        self._seen.append(np.unique(ids[template > 0]))
        return template

    def store(self, rows: Rows) -> None:
        """Add the sizes of files."""
        if self.apart:
            np.add.at(self._stored, rows["template"], rows["extent"])

    @cached_property
    def _file_names(self) -> Rows:
        """The names in order of files; the template of those that do not count is 0."""
        names = np.concatenate([np.zeros(0, _NAME), *self._names])
        names = names[np.argsort(names["file"], kind="stable")]
        usual = self._templates.meaningful()[names["template"]]
        names["template"] = np.where(names["template"] < 0, 0, usual)
        self._stored = np.zeros(len(self._templates.names), np.int64)
        return names

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {name: n for n, name in enumerate(self._templates.names)}

    @cached_property
    def _folders(self) -> Mask:
        """Templates of directories that others are in."""
        names = self._templates.names
        above = {name[:at] for name in names for at in _ends(name)}
        return np.array([name in above for name in names], np.bool_)

    def _count_of(self, parts: list[Ids]) -> Whole:
        """How many of some files there are, by template."""
        if len(parts) != 1:
            parts[:] = [_together(parts)]
        template = self._file_names["template"][lookup(self._file_names["file"], parts[0])[1]]
        return np.bincount(template, minlength=len(self._stored))

    def _reach_of(self, which: Collection[int]) -> int:
        """Bytes from the begin of each file to the last that was read."""
        parts = self._reached
        parts[:] = [_largest(np.concatenate([np.zeros(0, _REACH), *parts]))]
        place = lookup(self._file_names["file"], parts[0]["file"])[1]
        chosen = np.isin(self._file_names["template"][place], list(which))
        return sum(parts[0]["bytes"][chosen].tolist())

    def of(self, templates: Iterable[bytes]) -> CounterTotals:
        """The counters of all files with names of these templates; nothing where names say
        nothing."""
        which = [n for name in templates if (n := self._index.get(name, 0))]
        return self._sum(which) if which and self.apart else CounterTotals()

    def counted(self, module: str, name: str) -> int:
        """A counter of all files."""
        if module not in self._modules:
            return 0
        return int(self._modules[module].counters[:, _names(module).index(name)].sum())

    def parts(
        self, groups: Sequence[Collection[bytes]]
    ) -> tuple[list[CounterTotals], CounterTotals]:
        """The counters of each group of files, of which each template is in one at most, and of
        those that are in none; if the log has many files, all in the first."""
        if not self.apart:
            whole = self._sum([0])
            return ([whole], CounterTotals()) if groups else ([], whole)
        each = [[self._index[name] for name in group if name in self._index] for group in groups]
        used = {n for which in each for n in which}
        rest = [n for n in range(len(self._stored)) if n not in used]
        return [self._sum(which) for which in each], self._sum(rest)

    def _sum(self, which: Sequence[int]) -> CounterTotals:
        totals = CounterTotals()
        chosen = set(which)
        for module, sums in self._modules.items():
            if not sums.counters[which].any():
                continue
            counted = sums.counters[which].sum(axis=0).tolist()
            totals.counters[module] = dict(zip(_names(module), counted, strict=True))
            zero = {*COUNTERS["POSIX"], *COUNTERS["STDIO"]} - {NOT_ALIGNED}
            for name in self._lacking - zero:
                totals.counters[module].pop(name, None)
            read, write, other, variance = sums.times[which].sum(axis=0).tolist()
            totals.times[module] = read, write, other
            totals.variance[module] = variance
            sizes = totals.sizes.setdefault(module, Counter())
            for (template, size), number in sums.sizes.items():
                if template in chosen:
                    sizes[size] += number
        if totals.counters and self.apart:
            totals.files = int(self._count_of(self._seen)[which].sum())
            for way, parts in self._moved.items() if not self._again else ():
                totals.moved[way] = int(self._count_of(parts)[which].sum())
            totals.stored = int(self._stored[which].sum())
            used = _together(self._used)
            unused, unsure = (
                self._count_of([np.setdiff1d(_together(some), used)])
                for some in (self._opened, self._unsure)
            )
            totals.unused = int(unused[which].sum())
            totals.unsure = int(np.where(self._folders, unused, unsure)[which].sum())
            totals.reach = self._reach_of(chosen)
        return totals


def is_call(name: str, way: str) -> bool:
    """True if a counter is one of data calls."""
    return name.endswith(f"_{way}S") and "CONSEC" not in name and "SEQ" not in name


def _names(module: str) -> tuple[str, ...]:
    """Names of the columns of a module."""
    system = [f"{way}{word}" for way in WAYS[:2] for word in SYSTEM if module == "STDIO"]
    more = (*BESIDE.get(module, ()), *system, RECORDS, SHARED)
    return (*COUNTERS[module], *more)


@cache
def _places(names: tuple[str, ...], fields: tuple[str, ...]) -> tuple[Whole, Whole]:
    """Which of some names records have, and where."""
    has = [(k, fields.index(name)) for k, name in enumerate(names) if name in fields]
    columns, place = np.array(has, np.int64).reshape(-1, 2).T
    return columns, place


def _ends(name: bytes) -> Iterator[int]:
    """Where the directories of a name end."""
    at = name.find(b"/")
    while at >= 0:
        yield at
        at = name.find(b"/", at + 1)


def _together(parts: Sequence[Ids]) -> Ids:
    """All of them, each once."""
    ids: Ids = np.unique(np.concatenate([np.zeros(0, np.uint64), *parts]))
    return ids


def _largest(reached: Any) -> Any:
    """The row with the last byte of each file."""
    reached = np.sort(reached, order=("file", "bytes"))
    last = np.ones(len(reached), np.bool_)
    last[:-1] = reached["file"][1:] != reached["file"][:-1]
    return reached[last]


def add_sizes(sizes: Counter[tuple[int, int]], block: Any, prefix: str, template: Whole) -> None:
    """The commonest sizes of calls by template and size, if these are not too many."""
    for k in range(1, ACCESSES + 1):
        name, counted = f"{prefix}_ACCESS{k}_ACCESS", f"{prefix}_ACCESS{k}_COUNT"
        if name not in block.dtype.names or len(sizes) > MAX_SIZES:
            return
        some, values = block[counted], block[name]
        has = (some > 0) & (values >= 0) & (values < 1 << SIZE_BITS)
        if not has.any():
            continue
        keys, some = (template[has] << SIZE_BITS) + values[has], some[has]
        if (keys == keys[0]).all():
            sizes[divmod(int(keys[0]), 1 << SIZE_BITS)] += int(some.sum())
            continue
        unique_keys, place = np.unique(keys, return_inverse=True)
        times = np.zeros(len(unique_keys), np.int64)
        np.add.at(times, place.ravel(), some)
        for key, number in zip(unique_keys.tolist(), times.tolist(), strict=True):
            sizes[divmod(key, 1 << SIZE_BITS)] += number

"""From accesses to series: which files belong together, which are one dump, which ranks share one.

A reader hands over *accesses*: rows of `ACCESS`, one for every rank (or for all ranks together) of
every part of every file in one direction. File names are known here only as a *template*, the name
with its numbers taken out, and the numbers. What a number means follows from the accesses
themselves: it counts ranks where its values belong to disjoint ranks, dumps where its values
follow one another in time, and else it tells several files of one dump apart. What is kept grows
with the number of dumps, not with the number of files.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.calls import BINS
from understudy.transfers import Tally

MAX_FIELDS = 6
ALL_RANKS = -1
CELLS = 4_000_000  # most numbers (dumps x ranks) kept per family: 32 MB
MAX_TEMPLATES = 8192
MAX_SINGLES = 1000  # most templates of one file each that are taken for names with a meaning
MAX_VALUES = 1 << 18  # most values of a number whose ranks and times are kept
MAX_CALLS = 4096  # most kinds of calls that are counted at a time
MAX_ITEMS = 1024  # most files of one dump that are told apart
BURST = 0.01  # accesses closer than this share of the run belong together
NAMELESS = 0  # template of files without usable names

Rows = npt.NDArray[np.void]

ACCESS = np.dtype(
    [
        ("template", "i4"),  # index into the name templates
        ("numbers", "i8", (MAX_FIELDS,)),  # the numbers of the name, see `Templates.split`
        ("file", "u8"),  # identity of the file
        ("part", "i4"),  # variable within the file, in the order of time
        ("rank", "i4"),  # ALL_RANKS, or the one that did it
        ("write", "?"),
        ("method", "i1"),  # index into METHODS
        ("bytes", "i8"),  # payload
        ("extent", "i8"),  # size of the file on storage, on the first row of a file; else 0
        ("element", "i2"),  # bytes of an element
        ("points", "i8"),  # elements of an HDF5 dataset when it was opened last; else 0
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("transfer", "i8"),  # bytes of the most important call size
        ("calls", "i4", (len(BINS),)),  # in each of Darshan's bins of sizes
        ("sizes", "f4", (len(BINS),)),  # their mean size in each, bytes
        ("collectives", "i4"),  # calls that are collective
        ("collective", "?"),
        ("synced", "?"),
        ("even", "?"),  # the log says that all ranks moved the same
        ("mended", "?"),  # the bytes are not those of the counter
    ]
)
METHODS = ("posix", "mpiio", "hdf5", "stdio")


class Templates:
    """Names without their numbers. Each gets an index; NAMELESS is for names that are only numbers
    (obfuscated logs), or missing, or too many."""

    # A folder such as 0.05 is one number.
    _NUMBER = re.compile(rb"(?<=/)\d+\.\d+(?=/|$)|\d+")

    def __init__(self) -> None:
        self.names: list[bytes] = [b""]
        self._index: dict[bytes, int] = {}
        self._files = [0]

    def split(self, name: bytes) -> tuple[int, list[int]]:
        """Index of the template and the numbers, coded so that 2, 02, 11 and 1.1 differ."""
        found = self._NUMBER.findall(name)
        shape = self._NUMBER.sub(b"\x00", name)
        if not shape.strip(b"\x00"):
            return NAMELESS, []
        while len(found) > MAX_FIELDS:  # the first numbers are of folders: keep them as text
            shape = shape.replace(b"\x00", found.pop(0), 1)
        index = self._index.get(shape)
        if index is None:
            if len(self.names) >= MAX_TEMPLATES:
                return NAMELESS, []
            index = self._index[shape] = len(self.names)
            self.names.append(shape)
            self._files.append(0)
        self._files[index] += 1
        return index, [_code(text) for text in found]

    def telling(self) -> npt.NDArray[np.int32]:
        """Each template, or NAMELESS where too many others are of one file alone too: made from
        random letters, they tell nothing."""
        telling = np.arange(len(self.names), dtype=np.int32)
        single = np.array(self._files) == 1
        if single.sum() > MAX_SINGLES:
            telling[single] = NAMELESS
        return telling


def _code(text: bytes) -> int:
    """A number as a whole one: before its digits stands the number of its decimals plus one."""
    whole, _, decimals = text.partition(b".")
    return int(b"%d%s" % (1 + len(decimals), (whole + decimals)[-16:]))


class _Spans:
    """Ranks and times of the accesses by the value that one number of their names has."""

    _FIELDS = (
        ("value", "i8"), ("first_rank", "i8"), ("last_rank", "i8"),
        ("first_s", "f8"), ("last_s", "f8"),  # first and last start
        ("end_s", "f8"),
    )  # fmt: skip
    _MERGE = (
        ("first_rank", np.minimum), ("last_rank", np.maximum), ("first_s", np.minimum),
        ("last_s", np.maximum), ("end_s", np.maximum),
    )  # fmt: skip

    def __init__(self, most: int) -> None:
        self.rows = np.empty(0, list(self._FIELDS))
        self.full = False  # more values than are kept
        self._most = most

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, values: npt.NDArray[np.int64], seen: Rows) -> None:
        """Note the values of accesses; `seen` has the other columns."""
        if self.full:
            return
        new = seen.copy()
        new["value"] = values
        both = np.concatenate([self.rows, new])
        both = both[np.argsort(both["value"], kind="stable")]
        begin = np.flatnonzero(np.diff(both["value"], prepend=both["value"][0] - 1))
        self.rows = both[begin]
        for name, merge in self._MERGE:
            self.rows[name] = merge.reduceat(both[name], begin)
        self.full = len(self.rows) > self._most

    @classmethod
    def seen(cls, accesses: Rows, ranks: int) -> Rows:
        """Ranks and times of accesses, for `add`."""
        rows = np.zeros(len(accesses), list(cls._FIELDS))
        shared = accesses["rank"] == ALL_RANKS
        rows["first_rank"] = np.where(shared, 0, accesses["rank"])
        rows["last_rank"] = np.where(shared, ranks - 1, accesses["rank"])
        rows["first_s"] = rows["last_s"] = accesses["start_s"]
        rows["end_s"] = accesses["end_s"]
        return rows

    @property
    def disjoint_ranks(self) -> bool:
        rows = self.rows[np.argsort(self.rows["first_rank"], kind="stable")]
        return bool(np.all(rows["last_rank"][:-1] < rows["first_rank"][1:]))

    @property
    def disjoint_times(self) -> bool:
        rows = self._in_time()
        return bool(np.all(rows["last_s"][:-1] < rows["first_s"][1:]))

    def concurrent(self, runtime_s: float) -> bool:
        """Some overlap in time, or all follow one another within a hundredth of the run."""
        gaps = self._gaps()
        return bool(gaps.min() < 0 or gaps.max() < BURST * runtime_s)

    @property
    def serial(self) -> bool:
        """The number counts files: each is one rank's, and most overlap with the next."""
        one = self.rows["first_rank"] == self.rows["last_rank"]
        several = len(np.unique(self.rows["first_rank"])) > 1
        return bool(one.all() and several and np.mean(self._gaps() < 0) > 0.5)

    @property
    def baton(self) -> bool:
        """The values rise with the ranks."""
        return self.rows["first_rank"][0] == 0 and bool(
            np.all(np.diff(self.rows["first_rank"]) > 0)
        )

    def bursts(self) -> npt.NDArray[np.float64]:
        """When the bursts after the first begin, if each rank has one file in each."""
        who = len(np.unique(self.rows["first_rank"]))
        return _bursts(np.unique(self.rows["first_s"]), -(-len(self) // who))

    def _in_time(self) -> Rows:
        return self.rows[np.argsort(self.rows["first_s"], kind="stable")]

    def _gaps(self) -> npt.NDArray[np.float64]:
        rows = self._in_time()
        gaps: npt.NDArray[np.float64] = rows["first_s"][1:] - rows["end_s"][:-1]
        return gaps


@dataclass(slots=True)
class Cell:
    """One part of one file of one dump: bytes per rank (or bin of ranks), and of all together."""

    rank_bytes: npt.NDArray[np.int64] | None = None
    rank_calls: Tally = field(default_factory=Tally)  # of as many bins, or of one
    shared_bytes: int = 0
    shared_calls: Tally = field(default_factory=Tally)
    even: bool = False
    element: int = 1
    points: int = 0  # elements of an HDF5 dataset when it was opened last
    start_s: float = np.inf
    end_s: float = 0.0
    extent: int = 0  # size of the files on storage
    files: int = 0
    file: int = 0  # one of them


@dataclass(slots=True)
class DumpFacts:
    """One dump: its cells by (item, part), when, and the size of its files."""

    cells: dict[tuple[tuple[int, ...], int], Cell] = field(default_factory=dict)
    start_s: float = np.inf
    end_s: float = 0.0
    extent: int = 0

    @classmethod
    def of(cls, cells: dict[tuple[tuple[int, ...], int], Cell]) -> "DumpFacts":
        return cls(
            cells=cells,
            start_s=min(c.start_s for c in cells.values()),
            end_s=max(c.end_s for c in cells.values()),
            extent=sum(c.extent for c in cells.values()),
        )

    @property
    def bytes(self) -> int:
        return sum(
            c.shared_bytes + (0 if c.rank_bytes is None else int(c.rank_bytes.sum()))
            for c in self.cells.values()
        )


@dataclass(slots=True)
class Series:
    """Dumps of one kind of file, in the order of time."""

    template: bytes
    stem: bytes  # the template up to the number that counts dumps (or the first one)
    key: tuple[tuple[int, ...], ...]  # per dump: the numbers that count dumps
    fixed: tuple[int, ...]  # the numbers before the end of the stem that do not vary
    write: bool
    method: str
    collective: bool
    synced: bool
    transfer_bytes: int
    mended: bool  # some bytes are not those of the counter
    rank_spans: tuple[
        tuple[int, int], ...
    ]  # first and last rank of each file where files differ by rank
    dumps: list[DumpFacts]

    @property
    def bytes(self) -> int:
        return sum(d.bytes for d in self.dumps)


@dataclass(slots=True)
class _Family:
    """All accesses of one template, direction and method."""

    spans: list[_Spans]
    roles: list[str] = field(default_factory=list)  # per number, see `_roles`
    bursts: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # by the numbers that count dumps, then by item and part
    dumps: dict[tuple[int, ...], dict[tuple[tuple[int, ...], int], Cell]] = field(
        default_factory=dict
    )
    calls: "_Calls" = field(default_factory=lambda: _Calls())
    bins: int = 0
    call_bins: int = 1  # as many, where there is room
    kinds: set[tuple[bool, int]] = field(default_factory=set)  # of calls, by collective and bin
    mended: bool = False

    def learn(self, rows: Rows) -> None:
        """Note which kinds of calls there are."""
        some = set(np.flatnonzero(rows["calls"].any(axis=0)).tolist())
        collective = bool((rows["collectives"] > 0).any())
        alone = bool((rows["calls"].sum(axis=1) > rows["collectives"]).any())
        self.kinds |= {(c, b) for b in some for c in (False, True) if (collective if c else alone)}

    def places(self, *roles: str) -> list[int]:
        return [i for i, role in enumerate(self.roles) if role in roles]


class _Calls:
    """Which kind of call moved most bytes; of too many those that moved least are dropped."""

    def __init__(self) -> None:
        self._moved: dict[tuple[int, bool, bool], int] = {}

    def add(self, rows: Rows) -> None:
        kinds, which = np.unique(rows[["transfer", "collective", "synced"]], return_inverse=True)
        moved = np.zeros(len(kinds), np.int64)
        np.add.at(moved, which.ravel(), rows["bytes"])
        for kind, size in zip(kinds.tolist(), moved.tolist(), strict=True):
            self._moved[kind] = self._moved.get(kind, 0) + size
        if len(self._moved) > MAX_CALLS:
            self._moved = dict(self._by_bytes()[: MAX_CALLS // 2])

    def main(self) -> tuple[int, bool, bool]:
        """Transfer size, collective, synced."""
        transfer, collective, synced = self._by_bytes()[0][0]
        return max(1, transfer), collective, synced

    def _by_bytes(self) -> list[tuple[tuple[int, bool, bool], int]]:
        return sorted(self._moved.items(), key=lambda item: (item[1], item[0]), reverse=True)


def bin_edges(ranks: int, bins: int) -> npt.NDArray[np.int64]:
    """First rank of each of so many bins of consecutive ranks, and `ranks`: i8 [bins + 1]."""
    edges: npt.NDArray[np.int64] = -(-np.arange(bins + 1, dtype=np.int64) * ranks // bins)
    return edges


def find_series(
    blocks: Callable[[], Iterable[Rows]], templates: Templates, ranks: int, runtime_s: float
) -> list[Series]:
    """All series of a trace. `blocks` gives the rows, all those of a file in one block, and is
    called several times: to learn what the numbers of the names mean, then to add up."""
    blocks = _Nameless(ranks).numbered(blocks)
    families: dict[tuple[int, bool, int], _Family] = {}
    most = max(MAX_VALUES, 2 * ranks)
    for rows in blocks():
        for key, part in _by_family(rows):
            family = families.get(key)
            if family is None:
                count = _NUMBERS if key[0] < 0 else templates.names[key[0]].count(b"\x00")
                family = families[key] = _Family(spans=[_Spans(most) for _ in range(count)])
            family.learn(part)
            seen = _Spans.seen(part, ranks)
            for place, spans in enumerate(family.spans):
                spans.add(part["numbers"][:, place], seen)
    for family in families.values():
        family.roles = _roles(family.spans, ranks, runtime_s)
        cells = 1
        for place in family.places("dump", "item"):
            cells *= len(family.spans[place])
        for place in family.places("burst"):
            family.bursts = family.spans[place].bursts()
            cells *= len(family.bursts) + 1
        family.bins = min(ranks, max(1, CELLS // max(1, cells)))
        numbers = 2 * len(family.kinds) * family.bins
        family.call_bins = family.bins if cells * numbers <= CELLS else 1
    for rows in blocks():
        for key, part in _by_family(rows):
            _add(families[key], part, ranks)
    for family in families.values():
        if family.places("item"):
            _promote(family, runtime_s)
    return [
        _series(templates.names[max(0, template)], write, METHODS[method], family, ranks)
        for (template, write, method), family in families.items()
    ]


# -- files without usable names ---------------------------------------------------------------

_NUMBERS = 2
_KINDS = 3  # a file of one rank, of several, and one open for most of the run


class _Nameless:
    """Groups files without usable names by size and time: what each rank does to files of its own
    becomes a dump per burst; files of several ranks, and those open for most of the run, stay one
    by one. Sizes that differ by a factor of four or more, with none between, are kept apart."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._last_s = 0.0
        self._sizes = np.zeros(
            (2, _KINDS, 64), np.int64
        )  # files by the power of two of their size
        self._starts: list[npt.NDArray[np.float64]] = [np.empty(0), np.empty(0)]  # by direction
        self._files = np.zeros((2, ranks), np.int64)  # how many each rank has

    def numbered(self, blocks: Callable[[], Iterable[Rows]]) -> Callable[[], Iterable[Rows]]:
        for rows in blocks():
            self._last_s = max(self._last_s, float(rows["end_s"].max(initial=0.0)))
        for rows in blocks():
            self._learn(rows[rows["template"] == NAMELESS])
        if not self._sizes.any():
            return blocks
        bursts = [_bursts(self._starts[w], int(self._files[w].max())) for w in (0, 1)]
        classes = [[_classes(sizes) for sizes in kinds] for kinds in self._sizes]

        def numbered() -> Iterator[Rows]:
            for block in blocks():
                rows = block.copy()
                mine = np.flatnonzero(rows["template"] == NAMELESS)
                for write, kind, some, power in self._kinds(rows[mine]):
                    at = mine[some]
                    rows["template"][at] = -1 - (64 * kind + classes[write][kind][power])
                    if kind == 0:
                        start_s = np.round(rows["start_s"][at], 3)
                        rows["numbers"][at, 0] = np.searchsorted(bursts[write], start_s, "right")
                        rows["numbers"][at, 1] = rows["rank"][at]
                    else:
                        rows["numbers"][at, 0] = (rows["file"][at] >> np.uint64(1)).astype(
                            np.int64
                        )
                yield rows

        return numbered

    def _learn(self, rows: Rows) -> None:
        for write, kind, some, power in self._kinds(rows):
            np.add.at(self._sizes[write, kind], power, 1)
            if kind == 0:
                np.add.at(self._files[write], rows["rank"][some], 1)
                starts = np.concatenate([self._starts[write], np.round(rows["start_s"][some], 3)])
                self._starts[write] = np.unique(starts)
                if len(self._starts[write]) > MAX_VALUES:
                    self._starts[write] = self._starts[write][::2]

    def _kinds(self, rows: Rows) -> Iterator[tuple[int, int, Any, Any]]:
        """(direction, kind, which rows, power of two of the size of their file)."""
        files, which = np.unique(rows[["file", "write"]], return_inverse=True)
        which = which.ravel()
        size, ranks = np.zeros(len(files), np.int64), np.zeros(len(files), np.int64)
        np.add.at(size, which, rows["bytes"])
        np.add.at(ranks, which, np.where(rows["rank"] == ALL_RANKS, 2, 1))
        power = np.log2(np.maximum(size, 1)).astype(np.int64)[which]
        long = rows["end_s"] - rows["start_s"] > 0.5 * self._last_s
        kind = np.where(long, 2, np.where(ranks[which] > 1, 1, 0))
        for write in (0, 1):
            for k in range(_KINDS):
                some = np.flatnonzero((rows["write"] == bool(write)) & (kind == k))
                if len(some):
                    yield write, k, some, power[some]


def _classes(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Class of each power of two; an empty one between two that are used parts them."""
    used = np.flatnonzero(sizes)
    new = np.zeros(len(sizes), np.int64)
    new[used[1:][np.diff(used) > 2]] = 1
    classes: npt.NDArray[np.int64] = np.cumsum(new)
    return classes


def _bursts(starts: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """When the bursts after the first begin: at most so many, parted by the largest gaps."""
    gaps = np.diff(starts)
    largest = np.argsort(gaps)[::-1][: max(0, most - 1)]
    largest = largest[gaps[largest] > 0.02 * gaps.max(initial=0.0)]
    begins: npt.NDArray[np.float64] = starts[1:][np.sort(largest)]
    return begins


# -- what the numbers mean --------------------------------------------------------------------


def _by_family(rows: Rows) -> Iterator[tuple[tuple[int, bool, int], Rows]]:
    order = np.lexsort((rows["method"], rows["write"], rows["template"]))
    rows = rows[order]
    keys = rows[["template", "write", "method"]]
    cuts = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    for part in np.split(rows, cuts):
        if len(part):
            yield (
                (int(part["template"][0]), bool(part["write"][0]), int(part["method"][0])),
                part,
            )


def _roles(fields: Sequence[_Spans], ranks: int, runtime_s: float) -> list[str]:
    """What each number of a template is: fixed, rank, dump, item (files of one dump), serial
    (counts files on and on), or burst, a serial number where nothing counts the dumps."""
    disjoint_ranks = [not s.full and s.disjoint_ranks for s in fields]
    disjoint_times = [not s.full and s.disjoint_times for s in fields]
    roles = []
    for place, spans in enumerate(fields):
        in_ranks, in_times = disjoint_ranks[place], disjoint_times[place]
        if len(spans) < 2:
            roles.append("fixed")
        elif spans.full:
            roles.append("serial")
        elif in_ranks and in_times and not spans.concurrent(runtime_s):
            # One rank's file after another's: a baton if the values rise with the ranks, or if
            # another number already counts the dumps.
            others = any(
                disjoint_times[o] and not disjoint_ranks[o] and len(fields[o]) > 1
                for o in range(len(fields))
                if o != place
            )
            baton = spans.baton and len(spans) > ranks // 2
            roles.append("rank" if others or baton else "dump")
        elif in_ranks:
            roles.append("rank")
        elif spans.serial:
            roles.append("serial")
        elif in_times:
            roles.append("dump")
        else:
            roles.append("item" if len(spans) <= MAX_ITEMS else "serial")
    if "serial" in roles and "dump" not in roles and "rank" not in roles:
        roles[roles.index("serial")] = "burst"
    return roles


def _add(family: _Family, rows: Rows, ranks: int) -> None:
    """Add rows to the cells of their dumps."""
    burst = np.searchsorted(family.bursts, rows["start_s"], "right")
    numbers = rows["numbers"]
    of_dumps = [numbers[:, i] for i in family.places("dump")]
    of_dumps += [burst for _ in family.places("burst")]
    of_items = [numbers[:, i] for i in family.places("item")]
    keys = np.column_stack([*of_dumps, *of_items, rows["part"].astype(np.int64)])
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    order = np.argsort(inverse.ravel(), kind="stable")
    cuts = np.flatnonzero(np.diff(inverse.ravel()[order])) + 1
    for key, part in zip(unique.tolist(), np.split(rows[order], cuts), strict=True):
        item = tuple(key[len(of_dumps) : -1])
        cells = family.dumps.setdefault(tuple(key[: len(of_dumps)]), {})
        _add_cell(family, cells.setdefault((item, key[-1]), Cell()), part, ranks)
    family.calls.add(rows)
    family.mended = family.mended or bool(rows["mended"].any())


def _add_cell(family: _Family, cell: Cell, rows: Rows, ranks: int) -> None:
    shared = rows["rank"] == ALL_RANKS
    single = rows[~shared]
    if shared.any():
        cell.even = bool(rows["even"][shared].all()) and (cell.even or not cell.shared_bytes)
        cell.shared_bytes += int(rows["bytes"][shared].sum())
        cell.shared_calls.add(rows[shared], np.zeros(int(shared.sum()), np.int64))
    if len(single):
        if cell.rank_bytes is None:
            cell.rank_bytes = np.zeros(family.bins, np.int64)
            cell.rank_calls = Tally(bins=family.call_bins)
        bins = single["rank"].astype(np.int64) * family.bins // ranks
        np.add.at(cell.rank_bytes, bins, single["bytes"])
        cell.rank_calls.add(single, bins if family.call_bins > 1 else 0 * bins)
    cell.element = int(rows["element"].max())
    cell.points = max(cell.points, int(rows["points"].max()))
    cell.start_s = min(cell.start_s, float(rows["start_s"].min()))
    cell.end_s = max(cell.end_s, float(rows["end_s"].max()))
    cell.file = int(rows["file"][0])
    cell.extent += int(rows["extent"].sum())
    cell.files += len(np.unique(rows["file"]))


def _promote(family: _Family, runtime_s: float) -> None:
    """Numbers that repeat but are far apart in time wherever the dumps' numbers are the same, as
    the hour of a date is, count dumps too."""
    place = 0
    while place < len(next(iter(next(iter(family.dumps.values()))))[0]):
        groups = [_by_item(cells, place) for cells in family.dumps.values()]
        gaps = [
            min(c.start_s for c in b.values()) - max(c.end_s for c in a.values())
            for group in groups
            for a, b in pairwise(sorted(group.values(), key=_start))
        ]
        if not gaps or min(gaps) < BURST * runtime_s:
            place += 1
            continue
        family.dumps = {
            (*key, value): {
                ((*item[:place], *item[place + 1 :]), part): cell
                for (item, part), cell in cells.items()
            }
            for key, group in zip(family.dumps, groups, strict=True)
            for value, cells in group.items()
        }
        family.roles[family.places("item")[place]] = "dump"


def _by_item(
    cells: dict[tuple[tuple[int, ...], int], Cell], place: int
) -> dict[int, dict[tuple[tuple[int, ...], int], Cell]]:
    """Cells by one number of their items."""
    groups: dict[int, dict[tuple[tuple[int, ...], int], Cell]] = {}
    for (item, part), cell in cells.items():
        groups.setdefault(item[place], {})[item, part] = cell
    return groups


def _start(cells: dict[tuple[tuple[int, ...], int], Cell]) -> float:
    return min(c.start_s for c in cells.values())


def _series(name: bytes, write: bool, method: str, family: _Family, ranks: int) -> Series:
    order = sorted(family.dumps, key=lambda k: _start(family.dumps[k]))
    spans: list[tuple[int, int]] = []
    if places := family.places("rank"):
        of_files = max((family.spans[i].rows for i in places), key=len)
        pairs = zip(of_files["first_rank"].tolist(), of_files["last_rank"].tolist(), strict=True)
        spans = sorted(pairs)
    elif family.places("serial", "burst", "item") and family.bins == ranks:
        spans = _own_files(family)
    counted = family.places("dump")
    last = counted[-1] if counted else min([_own_number(name), *family.places("rank", "serial")])
    transfer, collective, synced = family.calls.main()
    return Series(
        template=name,
        stem=b"\x00".join(name.split(b"\x00")[: last + 1]),
        key=tuple(order),
        fixed=tuple(
            int(family.spans[i].rows["value"][0])
            for i in range(min(last + 1, len(family.spans)))
            if family.roles[i] == "fixed"
        ),
        write=write,
        method=method,
        collective=collective,
        synced=synced,
        transfer_bytes=transfer,
        mended=family.mended,
        rank_spans=tuple(spans),
        dumps=[DumpFacts.of(family.dumps[k]) for k in order],
    )


def _own_number(name: bytes) -> int:
    """Place of the first number of the file's own name, else of its folder's; what all files below
    a numbered folder share says nothing of them, so where there is neither it is past the end. The
    digit of an ending (.h5) is no number."""
    above, _, own = name.rpartition(b"/")
    above, _, folder = above.rpartition(b"/")
    first = above.count(b"\x00")
    if b"\x00" in re.sub(rb"\.[A-Za-z]+\x00$", b"", own):
        return first + folder.count(b"\x00")
    return first if b"\x00" in folder else len(name)


def _own_files(family: _Family) -> list[tuple[int, int]]:
    """The ranks, if in every dump each has files of its own whose numbers only count on; their
    cells are then put together."""
    ranks: set[int] = set()
    for cells in family.dumps.values():
        owners = [np.flatnonzero(c.rank_bytes) for c in cells.values()
                  if c.rank_bytes is not None and not c.shared_bytes]  # fmt: skip
        mine = [int(n) for owner in owners for n in owner]
        files = sum(c.files for c in cells.values())
        counts = len(owners) == len(cells) and files >= len(mine) > 1
        if not counts or len(set(mine)) != len(mine):
            return []
        ranks.update(mine)
    family.dumps = {key: _together(cells) for key, cells in family.dumps.items()}
    return [(r, r) for r in sorted(ranks)]


def _together(
    cells: dict[tuple[tuple[int, ...], int], Cell],
) -> dict[tuple[tuple[int, ...], int], Cell]:
    """The cells of all items as one per part."""
    merged: dict[tuple[tuple[int, ...], int], Cell] = {}
    for (_, part), cell in cells.items():
        home = merged.setdefault(((), part), cell)
        if home is not cell and home.rank_bytes is not None and cell.rank_bytes is not None:
            home.rank_bytes = home.rank_bytes + cell.rank_bytes
            home.rank_calls = home.rank_calls + cell.rank_calls
            home.start_s = min(home.start_s, cell.start_s)
            home.end_s = max(home.end_s, cell.end_s)
            home.extent += cell.extent
    return merged

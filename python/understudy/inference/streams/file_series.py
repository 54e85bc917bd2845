"""From accesses to series: which files belong together, and which files form one dump.

A reader provides *accesses* (`understudy.inference.table`). A file name is known only as a
*template* and its numbers (`names`), whose meaning follows from the accesses (`roles`). Memory
grows with the number of dumps, not with the number of files.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from understudy.inference import constants as levels
from understudy.inference.calls.operations import add_to
from understudy.inference.calls.transfers import Tally
from understudy.inference.names.filename_numbers import MAX_VALUES, Spans, roles_of
from understudy.inference.names.name_templates import Templates, own_number
from understudy.inference.names.nameless_files import NUMBERS, Nameless
from understudy.inference.table import ALL_RANKS, BURST, METHODS, Rows, alike, different, selected

CELLS = 4_000_000  # numbers (dumps x ranks) kept per family: 32 MB
# Share of the rest between dumps from which on a rest within one is of that kind.
ALIKE = levels.HALF
NEXT = levels.PART  # share of the rest between dumps below which files are of the same one
MAX_KINDS = 8  # of files that alternate
UNLIKE = 1 + levels.QUARTER  # ratio of the sizes of two kinds
MAX_CALLS = 4096  # kinds of calls that are counted at a time


@dataclass(slots=True)
class Cell:
    """One variable of one file of one dump: bytes per rank (or bin of ranks), and of all ranks."""

    rank_bytes: npt.NDArray[np.int64] | None = None
    rank_calls: Tally = field(default_factory=Tally)  # of as many bins, or of one
    rank_start_s: npt.NDArray[np.float64] | None = None  # of each rank; infinite: it moves nothing
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
    opens: int = 0  # of each rank, of a file
    order: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(3, np.int64))
    gap: int = 0  # most common distance between calls
    gaps: int = 0
    top: int = 0  # bytes of the files up to which they were read
    syncs: int = 0
    flushes: int = 0  # of the buffer of stdio
    switches: int = 0  # interruptions of writes by reads
    busy_s: float = 0.0  # in calls, of all ranks; infinite if unknown
    operations: npt.NDArray[np.int64] | None = None  # see `operations.add_to`

    @property
    def bytes(self) -> int:
        """Sum over all ranks."""
        return self.shared_bytes + (0 if self.rank_bytes is None else int(self.rank_bytes.sum()))

    @property
    def tallies(self) -> tuple[Tally, Tally]:
        """The calls of ranks, and those of all ranks together."""
        return self.rank_calls, self.shared_calls

    @property
    def calls(self) -> int:
        """Sum over all ranks."""
        return sum(int(k.calls.sum()) for tally in self.tallies for k in tally.kinds.values())


@dataclass(slots=True)
class DumpFacts:
    """One dump: its cells by (item, variable), when, and the size of its files."""

    cells: dict[tuple[tuple[int, ...], int], Cell] = field(default_factory=dict)
    start_s: float = np.inf
    end_s: float = 0.0
    extent: int = 0
    count: int = 1  # dumps like this one, `period_s` from start to start
    period_s: float = 0.0

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
        return sum(c.bytes for c in self.cells.values())


@dataclass(frozen=True, slots=True)
class RankSpans:
    """First and last rank of each of some files, in order, as the bytes of i8 [files, 2]: a job
    can have a file of each of millions of processes."""

    data: bytes = b""

    @classmethod
    def of(cls, first: npt.NDArray[np.int64], last: npt.NDArray[np.int64]) -> "RankSpans":
        """Those of files in any order."""
        return cls(np.column_stack([first, last])[np.lexsort((last, first))].tobytes())

    def __len__(self) -> int:
        return len(self.data) // 16

    @property
    def ranks(self) -> npt.NDArray[np.int64]:
        """First and last ranks: i8 [2, files]."""
        return np.frombuffer(self.data, np.int64).reshape(-1, 2).T


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
    corrected: bool  # some bytes are not those of the counter
    rank_spans: RankSpans  # of each file, where files differ by rank
    dumps: list[DumpFacts]
    counted: tuple[int, ...] = ()  # which of the numbers count dumps
    ranked: tuple[int, ...] = ()  # and which ranks

    @property
    def bytes(self) -> int:
        return sum(d.count * d.bytes for d in self.dumps)


@dataclass(slots=True)
class _Family:
    """All accesses of one template, direction and method."""

    spans: list[Spans]
    roles: list[str] = field(default_factory=list)  # per number, see `roles_of`
    bursts: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    # by the numbers that count dumps, then by item and variable
    dumps: dict[tuple[int, ...], dict[tuple[tuple[int, ...], int], Cell]] = field(
        default_factory=dict
    )
    calls: "_Calls" = field(default_factory=lambda: _Calls())
    bins: int = 0
    call_bins: int = 1  # as many, if memory allows
    kinds: set[tuple[bool, int]] = field(default_factory=set)  # of calls, by collective and bin
    corrected: bool = False

    def learn(self, rows: Rows) -> None:
        """Note which kinds of calls there are."""
        some = set(np.flatnonzero(rows["calls"].any(axis=0)).tolist())
        collective = bool((rows["collectives"] > 0).any())
        alone = bool((rows["calls"].sum(axis=1) > rows["collectives"]).any())
        self.kinds |= {(c, b) for b in some for c in (False, True) if (collective if c else alone)}

    def places(self, *roles: str) -> list[int]:
        return [i for i, role in enumerate(self.roles) if role in roles]


class _Calls:
    """Which kind of call moved most bytes; of too many kinds, the smallest are dropped."""

    def __init__(self) -> None:
        self._moved: dict[tuple[int, bool, bool], int] = {}

    def add(self, rows: Rows) -> None:
        names = ["transfer", "collective", "synced"]
        if alike(rows, names):
            kinds, moved = rows[names][:1], rows["bytes"].sum(keepdims=True)
        else:
            kinds, which = np.unique(rows[names], return_inverse=True)
            moved = np.zeros(len(kinds), np.int64)
            np.add.at(moved, which.ravel(), rows["bytes"])
        for kind, size in zip(kinds.tolist(), moved.tolist(), strict=False):
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
    """First rank of each bin of consecutive ranks, then `ranks`: i8 [bins + 1]."""
    edges: npt.NDArray[np.int64] = -(-np.arange(bins + 1, dtype=np.int64) * ranks // bins)
    return edges


def find_series(
    blocks: Callable[[], Iterable[Rows]], templates: Templates, ranks: int, runtime_s: float
) -> list[Series]:
    """All series of a trace. `blocks` gives the rows, all those of a file in one block, and is
    called several times: to learn what the numbers of the names mean, then to add up."""
    blocks = Nameless(ranks).numbered(blocks)
    families: dict[tuple[int, bool, int], _Family] = {}
    most = max(MAX_VALUES, 2 * ranks)
    for rows in blocks():
        for key, family_rows in _by_family(rows):
            family = families.get(key)
            if family is None:
                count = NUMBERS if key[0] < 0 else templates.names[key[0]].count(b"\x00")
                family = families[key] = _Family(spans=[Spans(most) for _ in range(count)])
            family_rows = selected(family_rows, ~family_rows["bare"])
            family.learn(family_rows)
            seen = Spans.seen(family_rows, ranks)
            for place, spans in enumerate(family.spans):
                spans.add(family_rows["numbers"][:, place], seen)
    for family in families.values():
        family.roles = roles_of(family.spans, ranks, runtime_s)
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
        for key, family_rows in _by_family(rows):
            _add(families[key], family_rows, ranks)
    keyed_families = [
        (key, kind)
        for key, family in families.items()
        for kind in (_kinds(family) if family.places("item") else [family])
    ]
    for _, family in keyed_families:
        if family.places("item"):
            _promote(family, runtime_s)
    return [
        _series(templates.names[max(0, template)], write, METHODS[method], family, ranks)
        for (template, write, method), family in keyed_families
    ]


def _by_family(rows: Rows) -> Iterator[tuple[tuple[int, bool, int], Rows]]:
    names = ["template", "write", "method"]
    cuts: npt.NDArray[np.intp] = np.empty(0, np.intp)
    if not alike(rows, names):
        rows = rows[np.lexsort([rows[name] for name in names[::-1]])]
        cuts = np.flatnonzero(rows[names][1:] != rows[names][:-1]) + 1
    for family_rows in np.split(rows, cuts):
        if len(family_rows):
            yield (
                (
                    int(family_rows["template"][0]),
                    bool(family_rows["write"][0]),
                    int(family_rows["method"][0]),
                ),
                family_rows,
            )


def _add(family: _Family, rows: Rows, ranks: int) -> None:
    """Add rows to the cells of their dumps."""
    burst = np.searchsorted(family.bursts, rows["start_s"], "right")
    numbers = rows["numbers"]
    of_dumps = [numbers[:, i] for i in family.places("dump")]
    of_dumps += [burst for _ in family.places("burst")]
    of_items = [numbers[:, i] for i in family.places("item")]
    keys = np.column_stack([*of_dumps, *of_items, rows["variable"].astype(np.int64)])
    unique, parts = keys[:1], [rows]
    if not (keys == unique).all():
        unique, inverse = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(inverse.ravel(), kind="stable")
        cuts = np.flatnonzero(np.diff(inverse.ravel()[order])) + 1
        parts = np.split(rows[order], cuts)
    for key, cell_rows in zip(unique.tolist(), parts, strict=True):
        item = tuple(key[len(of_dumps) : -1])
        cells = family.dumps.setdefault(tuple(key[: len(of_dumps)]), {})
        _add_cell(family, cells.setdefault((item, key[-1]), Cell()), cell_rows, ranks)
    family.calls.add(selected(rows, ~rows["bare"]))
    family.corrected = family.corrected or bool(rows["corrected"].any())


def _add_cell(family: _Family, cell: Cell, rows: Rows, ranks: int) -> None:
    cell.operations = add_to(cell.operations, rows, family.bins, ranks)
    rows = selected(rows, ~rows["bare"])
    shared = rows["rank"] == ALL_RANKS
    single = selected(rows, ~shared)
    if shared.any():
        cell.even = bool(rows["even"][shared].all()) and (cell.even or not cell.shared_bytes)
        cell.shared_bytes += int(rows["bytes"][shared].sum())
        cell.shared_calls.add(rows[shared], np.zeros(int(shared.sum()), np.int64), ranks)
    if len(single):
        if cell.rank_bytes is None:
            cell.rank_bytes = np.zeros(family.bins, np.int64)
            cell.rank_calls = Tally(bins=family.call_bins)
            cell.rank_start_s = np.full(ranks, np.inf) if family.bins == ranks else None
        bins = single["rank"].astype(np.int64) * family.bins // ranks
        np.add.at(cell.rank_bytes, bins, single["bytes"])
        cell.rank_calls.add(single, bins if family.call_bins > 1 else 0 * bins)
        if cell.rank_start_s is not None:
            np.minimum.at(cell.rank_start_s, single["rank"], single["start_s"])
    cell.element = int(rows["element"].max())
    cell.points = max(cell.points, int(rows["points"].max()))
    cell.start_s = min(cell.start_s, float(rows["start_s"].min()))
    cell.end_s = max(cell.end_s, float(rows["end_s"].max()))
    cell.file = int(rows["file"][0])
    cell.extent += int(rows["extent"].sum())
    cell.opens = max(cell.opens, int(rows["opens"].max()))
    cell.files += len(np.unique(rows["file"]))
    cell.order = cell.order + rows["order"].sum(axis=0)
    cell.syncs += int(rows["syncs"].sum())
    cell.flushes += int(rows["flushes"].sum())
    cell.switches += int(rows["switches"].sum())
    cell.busy_s += float(rows["busy_s"].sum())
    most = int(np.argmax(rows["gaps"]))
    if rows["gaps"][most] > cell.gaps:
        cell.gap, cell.gaps = int(rows["gap"][most]), int(rows["gaps"][most])
    if not rows["write"][0]:
        _, file_index = np.unique(rows["file"], return_inverse=True)
        tops = np.zeros(int(file_index.max()) + 1, np.int64)
        np.maximum.at(tops, file_index.ravel(), rows["top"])
        cell.top += int(tops.sum())


def _kinds(family: _Family) -> list[_Family]:
    """The family, or several where one of its numbers tells kinds of files from each other that
    alternate (h0, h1): they are not of one dump, and their sizes do not mix."""
    for index, place in enumerate(family.places("item")):
        groups = [_by_item(cells, index) for cells in family.dumps.values()]
        values = {value for group in groups for value in group}
        between = _rests([list(cells.values()) for cells in family.dumps.values()])
        within = [g for d in groups for g in _rests([list(c.values()) for c in d.values()])]
        together = bool(within) and min(within) < NEXT * max(
            0.0, float(np.median(between or [0.0]))
        )
        if together or not 2 <= len(values) <= MAX_KINDS:
            continue
        sizes = {
            value: [_moved(group[value]) for group in groups if value in group] for value in values
        }
        if min(map(len, sizes.values())) < 2:
            continue
        kinds: list[list[int]] = []
        largest = 0.0
        for value in sorted(values, key=lambda v: min(sizes[v])):
            if not kinds or min(sizes[value]) > UNLIKE * largest:
                kinds.append([])
            kinds[-1].append(value)
            largest = max(largest, *sizes[value])
        if len(kinds) > 1:
            return [_of_kind(family, place, index, kind) for kind in kinds]
    return [family]


def _of_kind(family: _Family, place: int, index: int, values: list[int]) -> _Family:
    """The files of a family whose number at `place`, the item's at `index`, is one of these."""
    alone = len(values) == 1
    selected = replace(family, roles=list(family.roles), spans=list(family.spans), dumps={})
    if alone:
        rows = family.spans[place].rows
        selected.roles[place] = "fixed"
        selected.spans[place] = Spans.of(rows[rows["value"] == values[0]])
    for key, cells in family.dumps.items():
        selected_cells = {
            (item[:index] + item[index + 1 :] if alone else item, variable): cell
            for (item, variable), cell in cells.items()
            if item[index] in values
        }
        if selected_cells:
            selected.dumps[key] = selected_cells
    return selected


def _moved(cells: dict[tuple[tuple[int, ...], int], Cell]) -> int:
    return DumpFacts(cells=cells).bytes


def _promote(family: _Family, runtime_s: float) -> None:
    """Numbers that repeat, but are far apart in time for equal numbers of the dumps (such as the
    hour of a date) also count dumps: their files follow one another like those of two dumps."""
    place = 0
    while place < len(next(iter(next(iter(family.dumps.values()))))[0]):
        groups = [_by_item(cells, place) for cells in family.dumps.values()]
        gaps = [
            gap
            for group in groups
            for gap in _rests([list(cells.values()) for cells in group.values()])
        ]
        between = _rests([list(cells.values()) for cells in family.dumps.values()])
        alike = between and np.median(gaps or [0.0]) >= ALIKE * np.median(between)
        apart = bool(gaps) and min(gaps) >= BURST * runtime_s
        if not apart and not (alike and gaps and min(gaps) > 0):
            place += 1
            continue
        family.dumps = {
            (*key, value): {
                ((*item[:place], *item[place + 1 :]), variable): cell
                for (item, variable), cell in cells.items()
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
    for (item, variable), cell in cells.items():
        groups.setdefault(item[place], {})[item, variable] = cell
    return groups


def _rests(groups: list[list[Cell]]) -> list[float]:
    """Seconds from the end of each group of cells to the start of the next in time."""
    spans = sorted((min(c.start_s for c in g), max(c.end_s for c in g)) for g in groups)
    return [b[0] - a[1] for a, b in pairwise(spans)]


def _start(cells: dict[tuple[tuple[int, ...], int], Cell]) -> float:
    return min(c.start_s for c in cells.values())


def _series(name: bytes, write: bool, method: str, family: _Family, ranks: int) -> Series:
    order = sorted(family.dumps, key=lambda k: _start(family.dumps[k]))
    spans = RankSpans()
    if places := family.places("rank"):
        of_files = max((family.spans[i].rows for i in places), key=len)
        spans = RankSpans.of(of_files["first_rank"], of_files["last_rank"])
    elif family.places("serial", "burst", "item") and family.bins == ranks:
        spans = _own_files(family)
    counted = family.places("dump")
    last = counted[-1] if counted else min([own_number(name), *family.places("rank", "serial")])
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
        corrected=family.corrected,
        rank_spans=spans,
        dumps=[DumpFacts.of(family.dumps[k]) for k in order],
        counted=tuple(counted),
        ranked=tuple(family.places("rank")),
    )


def _own_files(family: _Family) -> RankSpans:
    """The ranks, if each has files of its own in every dump whose numbers are only serial; their
    cells are then merged."""
    ranks = np.empty(0, np.int64)
    for cells in family.dumps.values():
        owners = [
            np.flatnonzero(c.rank_bytes)
            for c in cells.values()
            if c.rank_bytes is not None and not c.shared_bytes
        ]
        owning_ranks = np.concatenate([ranks[:0], *owners])
        files = sum(c.files for c in cells.values())
        counts = len(owners) == len(cells) and files >= len(owning_ranks) > 1
        if not counts or not different(owning_ranks):
            return RankSpans()
        ranks = np.union1d(ranks, owning_ranks)
    family.dumps = {key: _merged(cells) for key, cells in family.dumps.items()}
    return RankSpans.of(ranks, ranks)


def _merged(
    cells: dict[tuple[tuple[int, ...], int], Cell],
) -> dict[tuple[tuple[int, ...], int], Cell]:
    """Merge the cells of all items: one per variable."""
    merged: dict[tuple[tuple[int, ...], int], Cell] = {}
    for (_, variable), cell in cells.items():
        home = merged.setdefault(((), variable), cell)
        if home is not cell and home.rank_bytes is not None and cell.rank_bytes is not None:
            home.rank_bytes = home.rank_bytes + cell.rank_bytes
            home.rank_calls = home.rank_calls + cell.rank_calls
            if home.rank_start_s is not None and cell.rank_start_s is not None:
                home.rank_start_s = np.minimum(home.rank_start_s, cell.rank_start_s)
            home.start_s = min(home.start_s, cell.start_s)
            home.end_s = max(home.end_s, cell.end_s)
            home.extent += cell.extent
            home.top += cell.top
            home.syncs += cell.syncs
            home.flushes += cell.flushes
            home.switches += cell.switches
            home.busy_s += cell.busy_s
            home.order = home.order + cell.order
            if cell.operations is not None:
                home.operations = (
                    cell.operations
                    if home.operations is None
                    else home.operations + cell.operations
                )
    return merged

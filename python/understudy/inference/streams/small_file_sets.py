"""Floods: very many small files, each moved whole by one rank.

Loaders of machine learning read 10^5 to 10^6 files, every file once in each epoch; other programs
write as many. No list per file is kept: a flood is files by size, rank and dump. Files that were
read k times are the files of k epochs: they moved k times their size, or, where parts were read
twice such as a table of contents, as much each of the k times that they were open.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import Wave
from understudy.inference import constants as levels
from understudy.inference.calls.operations import KINDS
from understudy.inference.names.name_templates import NAMELESS, Templates
from understudy.inference.streams.pauses import cut
from understudy.inference.table import ALL_RANKS, BURST, METHODS, Rows, different, sorting

MIN_FILES = levels.THOUSAND  # of a name, moved equally often
LARGEST = 1 / levels.MANY  # of the bytes in one file: a larger one is a dump of its own
MIN_EACH = levels.OFTEN  # files of a rank in a dump, on average
# The same of files that are read in several epochs.
MIN_AGAIN, EACH_AGAIN = levels.HUNDRED, levels.MANY
MAX_EPOCHS = 1 << 20
MAX_KINDS = 256  # names and epochs that are looked at
BINS = 1 << 14  # of time, in which starts are counted
DISTINCT = 16  # sizes up to which each is kept
SAMPLE = 8192  # files whose order is looked at
RANK_BINS = 4096
REST = levels.PART  # share of the time that lies between dumps, below which they are one
MAX_LEFT_BYTES = 8 << 20  # of accesses of no flood that are kept
WHOLE = levels.SMALL  # deviation of the bytes moved from a whole number of times the file

_MIX = np.array([0x9E3779B97F4A7C15 * k % (1 << 64) | 1 for k in (1, 3, 5, 7, 9, 11)], np.uint64)

Whole = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]
Key = tuple[int, bool, int, int]  # template, write, method, how often each file was moved


@dataclass(slots=True)
class FloodDump:
    """The files of a dump by class of size: how many of each bin of ranks, and their bytes."""

    files: Whole
    bytes: Whole
    start_s: float = np.inf
    end_s: float = 0.0


@dataclass(slots=True)
class Flood:
    """Files of one name that were each moved whole, `epochs` times."""

    template: int
    write: bool
    method: str
    epochs: int
    ranks: int
    waves: int = 1  # of runs; see `understudy.darshanlog.joined`
    joined: bool = False  # of several logs
    mixed: bool = False  # whether files of runs that follow each other cannot be told apart
    count: int = 0
    starts: Whole = field(default_factory=lambda: np.zeros(BINS, np.int64))
    first: Times = field(init=False)  # by wave: first and last start, in its first epoch
    last: Times = field(init=False)  # by wave: first and last end, in its last epoch
    sizes: dict[int, int] = field(default_factory=dict)  # files of each, if not too many
    powers: Whole = field(default_factory=lambda: np.zeros(512, np.int64))  # by 8 log2 of the size
    largest: int = 0  # bytes of a file, and of all in one epoch
    total: int = 0
    begins: Times = field(default_factory=lambda: np.empty(0))
    dumps: list[FloodDump] = field(default_factory=list)
    edges: Whole = field(default_factory=lambda: np.empty(0, np.int64))  # upper ends of classes
    calls: int = 0
    empty: int = 0  # calls without bytes
    synced: bool = False
    operations: Whole = field(default_factory=lambda: np.zeros(len(KINDS), np.int64))
    of_one: bool = True  # each file is of one rank
    sample: list[Rows] = field(default_factory=list)
    step: int = 1  # of the files one in so many is in the sample
    folders: set[tuple[int, ...]] = field(default_factory=set)
    named: dict[int, int] = field(default_factory=dict)  # by dump: of its names without the run

    def __post_init__(self) -> None:
        self.first, self.last = (np.tile([np.inf, 0.0], (self.waves, 1)) for _ in range(2))

    @property
    def used(self) -> Whole:
        """The waves with files; of files read again, a dump for each."""
        return np.flatnonzero(np.isfinite(self.first[:, 0]))

    @property
    def same(self) -> bool:
        """True if the runs of several logs that follow each other moved the same files, a dump for
        each of them: the last number of a name is that of the run."""
        return self.joined and len(self.named) > 1 and len(set(self.named.values())) == 1

    @property
    def bytes(self) -> int:
        return self.epochs * int(sum(d.bytes.sum() for d in self.dumps))

    @property
    def bins(self) -> int:
        """Bins of ranks."""
        return min(self.ranks, RANK_BINS)


_FILES = np.dtype(
    [
        ("file", "u8"),
        ("key", "i8"),
        ("moved", "i8"),
        ("size", "i8"),
        ("times", "i8"),
        ("opens", "i8"),
        ("rank", "i8"),
        ("start_s", "f8"),
        ("end_s", "f8"),
        ("first", "i8"),
    ]
)


# The columns of accesses that are needed to find floods, and to add them up.
_LEARNT = [
    "file",
    "bytes",
    "start_s",
    "end_s",
    "rank",
    "write",
    "template",
    "method",
    "size",
    "opens",
    "bare",
]
_TAKEN = [*_LEARNT, "calls", "sizes", "numbers", "synced", "operations"]


def _files_of(rows: Rows, family: Whole, once: bool = False) -> tuple[Rows, Whole]:
    """The files of one block, of a family each, and which of them each row is of; `once`: each
    file is known to have one row."""
    alike = bool(len(family)) and bool((family == family[0]).all())
    if alike and (once or different(rows["file"])):
        files = np.empty(len(rows), _FILES)
        files["key"], files["first"] = family[0], np.arange(len(rows))
        for name, source in (
            ("file", "file"),
            ("moved", "bytes"),
            ("size", "size"),
            ("rank", "rank"),
            ("start_s", "start_s"),
            ("end_s", "end_s"),
        ):
            files[name] = rows[source]
        files["opens"] = np.where(files["rank"] != ALL_RANKS, rows["opens"], 0)
        return _counted(files), files["first"]
    order = sorting(rows["file"]) if alike else np.lexsort((rows["file"], family))
    file, kind = rows["file"][order], family[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (file[1:] != file[:-1]) | (kind[1:] != kind[:-1])
    begin = np.flatnonzero(new)
    which = np.empty(len(order), np.int64)
    which[order] = np.cumsum(new) - 1
    files = np.zeros(len(begin), _FILES)
    files["file"], files["key"], files["first"] = file[begin], kind[begin], order[begin]
    for name, source, merge in (
        ("moved", "bytes", np.add),
        ("size", "size", np.maximum),
        ("start_s", "start_s", np.minimum),
        ("end_s", "end_s", np.maximum),
    ):
        files[name] = merge.reduceat(rows[source][order], begin)
    ranks = rows["rank"].astype(np.int64)[order]
    opens = np.where(ranks != ALL_RANKS, rows["opens"][order], 0).astype(np.int64)
    files["opens"] = np.add.reduceat(opens, begin)
    low, high = np.minimum.reduceat(ranks, begin), np.maximum.reduceat(ranks, begin)
    files["rank"] = np.where(low == high, low, ALL_RANKS)
    return _counted(files), which


def _counted(files: Rows) -> Rows:
    """The files, with how often each was moved."""
    size = np.maximum(files["size"], 1)
    times = np.maximum(1, np.round(files["moved"] / size).astype(np.int64))
    again = (np.abs(files["moved"] - times * size) <= WHOLE * files["moved"]) & (
        times <= MAX_EPOCHS
    )
    times = np.where(again & (files["moved"] % times == 0), times, 1)
    opens = np.maximum(files["opens"], 1)
    reads = files["key"] // len(METHODS) % 2 == 0
    more = reads & (times == 1) & (opens <= MAX_EPOCHS) & (files["moved"] % opens == 0)
    files["times"] = np.where(more & (files["moved"] >= opens * size), opens, times)
    return files


def _families(rows: Rows) -> Whole:
    """Template, direction and method as one number."""
    number = (rows["template"].astype(np.int64) * 2 + rows["write"]) * len(METHODS)
    family: Whole = number + rows["method"]
    return family


class Floods:
    """The floods of a log, and the accesses without them."""

    def __init__(
        self,
        blocks: Callable[[Container[int], Sequence[str]], Iterable[Rows]],
        templates: Templates,
        ranks: int,
        span_s: float,
        waves: Sequence[Wave] = (),
        once: Container[int] = (),
    ) -> None:
        """`blocks` gives the accesses but for blocks of these numbers, all of a file in one; at
        least these columns of them, or all; `once` has blocks of one row for each file."""
        self._blocks, self._ranks = blocks, ranks
        self._names = templates.names
        self._bin_s = max(span_s, 1e-6) / BINS
        self._joined = bool(waves)
        self._waves = np.array([wave.start_s for wave in waves] or [0.0])
        self._mixed = np.array([wave.mixed for wave in waves] or [False])
        self._floods: dict[Key, Flood] = {}
        self._whole: set[int] = set()  # families that are floods as a whole
        self._part: set[int] = set()
        self._left: list[Rows] | None = None  # what `rest` gives, if it is little
        self._full: set[int] = set()  # blocks of nothing but floods
        self._once = once
        self._learn()
        if self._floods:
            self._add_up()

    @property
    def floods(self) -> list[Flood]:
        """In order of time."""
        return sorted(self._floods.values(), key=lambda f: (f.first[:, 0].min(), f.template))

    def rest(self) -> Iterator[Rows]:
        """The blocks of accesses that are of no flood; can be called again."""
        if self._left is not None:
            yield from self._left
            return
        left: list[Rows] = []
        for rows in self._without():
            if sum(part.nbytes for part in left) <= MAX_LEFT_BYTES:
                left.append(rows.copy())
            yield rows
        if self._floods and sum(part.nbytes for part in left) <= MAX_LEFT_BYTES:
            self._left = left

    def _without(self) -> Iterator[Rows]:
        for rows in self._blocks(self._full, ()):
            if self._floods:
                family = _families(rows)
                rows = rows[~np.isin(family, list(self._whole))]
            if self._part:
                family = _families(rows)
                of_part = np.isin(family, list(self._part))
                files, which = _files_of(rows[of_part], family[of_part])
                keys = self._keys(files)
                gone = np.array([key in self._floods for key in keys], np.bool_)
                left = ~of_part
                left[np.flatnonzero(of_part)] = ~gone[which] if len(files) else True
                rows = rows[left]
            if len(rows):
                yield rows

    def _keys(self, files: Rows) -> list[Key]:
        count = len(METHODS)
        return [
            (family // count // 2, bool(family // count % 2), family % count, times)
            for family, times in zip(files["key"].tolist(), files["times"].tolist(), strict=True)
        ]

    # -- which names are floods -------------------------------------------------------------

    def _learn(self) -> None:
        seen: dict[Key, Flood] = {}
        alike: dict[int, int] = {}  # family of all rows, by block
        for n, rows in enumerate(self._blocks((), _LEARNT)):
            family = _families(rows)
            if len(family) and (family == family[0]).all():
                alike[n] = int(family[0])
            bare = rows["bare"]
            if bare.any():
                rows, family = rows[~bare], family[~bare]
            files, _ = _files_of(rows, family, n in self._once)
            for key, some in self._groups(files):
                group = files[some]
                if key not in seen and len(seen) >= 64 * MAX_KINDS:
                    continue
                flood = seen.get(key)
                if flood is None:
                    flood = seen[key] = Flood(
                        template=key[0],
                        write=key[1],
                        method=METHODS[key[2]],
                        epochs=key[3],
                        ranks=self._ranks,
                        waves=len(self._waves),
                        joined=self._joined,
                    )
                self._note(flood, group)
        for key, flood in list(seen.items()):
            self._begin(flood)
            dumps = len(flood.begins) + 1
            least, each = (MIN_AGAIN, EACH_AGAIN) if flood.epochs > 1 else (MIN_FILES, MIN_EACH)
            few = flood.count < least or flood.count < each * self._ranks * dumps
            odd = flood.write and flood.epochs > 1
            lumped = flood.largest > LARGEST * flood.total
            if few or odd or lumped or flood.method == "hdf5" or len(self._floods) >= MAX_KINDS:
                continue
            self._floods[key] = flood
        families = {self._family(key) for key in self._floods}
        others = {self._family(key) for key in seen if key not in self._floods}
        if len(seen) >= 64 * MAX_KINDS:
            others = families
        self._whole, self._part = families - others, families & others
        self._full = {n for n, family in alike.items() if family in self._whole}

    def _family(self, key: Key) -> int:
        return (key[0] * 2 + key[1]) * len(METHODS) + key[2]

    def _note(self, flood: Flood, files: Rows) -> None:
        flood.count += len(files)
        bins = np.clip((files["start_s"] / self._bin_s).astype(np.int64), 0, BINS - 1)
        flood.starts += np.bincount(bins, minlength=BINS)
        for home, column in ((flood.first, "start_s"), (flood.last, "end_s")):
            if len(home) == 1:
                home[0, 0] = np.minimum(home[0, 0], files[column].min())
                home[0, 1] = np.maximum(home[0, 1], files[column].max())
                continue
            wave = np.searchsorted(self._waves[1:], files["start_s"], "right")
            np.minimum.at(home[:, 0], wave, files[column])
            np.maximum.at(home[:, 1], wave, files[column])
        size = files["moved"] // files["times"]
        flood.largest, flood.total = (
            max(flood.largest, int(size.max())),
            flood.total + int(size.sum()),
        )
        flood.powers += np.bincount(_power(size), minlength=len(flood.powers))
        if len(flood.sizes) <= DISTINCT:
            values, count = np.unique(size, return_counts=True)
            for value, n in zip(values[: DISTINCT + 1].tolist(), count.tolist(), strict=False):
                flood.sizes[value] = flood.sizes.get(value, 0) + n

    def _begin(self, flood: Flood) -> None:
        """When the dumps after the first begin: new files after a pause, or, of files that are
        read again, after the end of all runs before."""
        if flood.epochs > 1:
            flood.begins = self._waves[flood.used[1:]]
            flood.mixed = bool(self._mixed[flood.used].any())
            return
        used = np.flatnonzero(flood.starts)
        pauses = (np.diff(used) - 1) * self._bin_s
        if not len(pauses):
            return
        cuts = cut(
            pauses,
            flood.starts[used],
            call_s=self._bin_s,
            few_s=BURST * BINS * self._bin_s,
            least_s=2 * self._bin_s,
        )
        rest_s = pauses[np.array(cuts.at, np.int64) - 1].sum()
        if rest_s >= REST * (used[-1] - used[0]) * self._bin_s:
            flood.begins = self._bin_s * used[list(cuts.at)].astype(np.float64)

    # -- the files of each ------------------------------------------------------------------

    def _add_up(self) -> None:
        for flood in self._floods.values():
            flood.edges = _edges(flood)
            shape = (len(flood.edges), flood.bins)
            flood.dumps = [
                FloodDump(np.zeros(shape, np.int64), np.zeros(shape, np.int64))
                for _ in range(len(flood.begins) + 1)
            ]
            flood.step = max(1, flood.count // SAMPLE)
        wanted = list(self._whole | self._part)
        for n, rows in enumerate(self._blocks((), _TAKEN)):
            family = _families(rows)
            is_wanted = np.isin(family, wanted)
            if not is_wanted.any():
                continue
            rows, family = (
                (rows, family) if is_wanted.all() else (rows[is_wanted], family[is_wanted])
            )
            files, which = _files_of(rows, family, n in self._once)
            for key, some in self._groups(files):
                if key in self._floods:
                    flood = self._floods[key]
                    taken = np.zeros(len(files), np.bool_)
                    taken[some] = True
                    self._take(flood, files[some], rows, taken[which])

    def _groups(self, files: Rows) -> Iterator[tuple[Key, Whole | slice]]:
        alike = len(files) > 0
        for name in ("key", "times"):
            alike = alike and bool((files[name] == files[name][0]).all())
        if alike:
            yield self._keys(files[:1])[0], slice(None)
            return
        order = np.lexsort((files["times"], files["key"]))
        kind, times = files["key"][order], files["times"][order]
        new = (kind[1:] != kind[:-1]) | (times[1:] != times[:-1])
        for some in np.split(order, np.flatnonzero(new) + 1):
            if len(some):
                yield self._keys(files[some[:1]])[0], some

    def _take(self, flood: Flood, files: Rows, rows: Rows, taken: npt.NDArray[np.bool_]) -> None:
        dump = np.searchsorted(flood.begins, files["start_s"], "right")
        size = files["moved"] // files["times"]
        kind = np.minimum(np.searchsorted(flood.edges, size), len(flood.edges) - 1)
        single_rank = files["rank"] != ALL_RANKS
        flood.of_one = flood.of_one and bool(single_rank.all())
        # A file of several ranks was read by each in turn: where it counts does not matter.
        rank = np.where(
            single_rank, files["rank"], (files["file"] % np.uint64(flood.ranks)).astype(np.int64)
        )
        bins = rank * flood.bins // flood.ranks
        for n in np.unique(dump).tolist():
            home, here = flood.dumps[n], dump == n
            place = kind[here] * flood.bins + bins[here]
            home.files += np.bincount(place, minlength=home.files.size).reshape(home.files.shape)
            np.add.at(home.bytes.reshape(-1), place, size[here])
            home.start_s = min(home.start_s, float(files["start_s"][here].min()))
            home.end_s = max(home.end_s, float(files["end_s"][here].max()))
        which = slice(None) if taken.all() else taken
        flood.calls += int(rows["calls"][which].sum())
        flood.empty += int(rows["calls"][which, 0][rows["sizes"][which, 0] < 1].sum())
        flood.operations += rows["operations"][which].sum(axis=0)
        flood.synced = flood.synced or bool(rows["synced"][which].any())
        chosen = files[files["file"] % np.uint64(flood.step) == 0]
        first = rows[chosen["first"][np.argsort(chosen["file"])]]
        flood.sample.append(first[["numbers", "rank", "start_s"]])
        name = self._names[max(0, flood.template)]
        if flood.joined:
            self._name(flood, rows["numbers"][files["first"]], dump, name.count(b"\x00"))
        above = name.rpartition(b"/")[0].count(b"\x00")
        if flood.template != NAMELESS and above and len(flood.folders) < 1 << 16:
            numbers = rows["numbers"][files["first"], :above]
            alike = (numbers == numbers[0]).all()
            some = numbers[:1] if alike else np.unique(numbers, axis=0)
            flood.folders |= set(map(tuple, some.tolist()))

    def _name(self, flood: Flood, numbers: Whole, dump: Whole, count: int) -> None:
        """Add up the names of the files of each dump, without the number of the run."""
        mixed = numbers[:, : count - 1].astype(np.uint64) @ _MIX[: count - 1]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _MIX[0]
        for n in np.unique(dump).tolist():
            some = int(mixed[dump == n].sum(dtype=np.uint64))
            flood.named[n] = (flood.named.get(n, 0) + some) % (1 << 64)


def _power(size: Whole) -> Whole:
    """Class of a size by its logarithm."""
    power: Whole = np.clip(8 * np.log2(np.maximum(size, 1)), 0, 511).astype(np.int64)
    return power


def _edges(flood: Flood) -> Whole:
    """The largest size of each class: each of few sizes, else classes by their logarithm."""
    if len(flood.sizes) <= DISTINCT:
        return np.array(sorted(flood.sizes), np.int64)
    used = np.flatnonzero(flood.powers)
    for width in (1, 2, 4, 8, 16, 32, 64, 512):
        classes = np.unique(used // width)
        if len(classes) <= DISTINCT:
            break
    edges: Whole = np.floor(2.0 ** ((classes + 1) * width / 8)).astype(np.int64)
    return edges


def order_of(flood: Flood) -> tuple[str, bool, str]:
    """Order of the files of each rank in time (`consecutive` or `shuffled`), whether they are
    dealt to the ranks in turn, and how sure that is: of a sample, by the numbers in the names."""
    sample = np.concatenate(flood.sample)
    sample = sample[sample["rank"] != ALL_RANKS]
    if not flood.of_one:
        return "shuffled", False, "likely"
    if len(sample) < 16 or flood.template == NAMELESS or not sample["numbers"].any():
        return "consecutive", False, "guess"
    place = np.empty(len(sample), np.int64)
    place[np.lexsort(sample["numbers"].T[::-1])] = np.arange(len(sample))
    order = np.lexsort((sample["start_s"], sample["rank"]))
    rank, place = sample["rank"][order], place[order]
    same = rank[1:] == rank[:-1]
    if not same.any():
        return "consecutive", False, "guess"
    rising = float((np.diff(place)[same] > 0).mean())
    if 0.1 < rising < 0.9:
        return "shuffled", False, "likely"
    ranks = np.unique(rank)
    low = np.array([place[rank == r].min() for r in ranks])
    high = np.array([place[rank == r].max() for r in ranks])
    overlap = len(ranks) > 1 and float((high - low).mean()) > 0.5 * len(sample)
    return "consecutive", overlap, "likely"

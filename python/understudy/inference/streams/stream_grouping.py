"""Which series belong together: streams in the making."""

from bisect import bisect, bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from understudy.contracts.workload import Lookups, Order
from understudy.inference import constants as levels
from understudy.inference.streams.file_series import NEXT, RankSpans, Series
from understudy.inference.streams.scratch_dumps import ScratchDump
from understudy.inference.table import LONG

MAX_FILES = 1024
ALIKE = levels.ALIKE  # names from which on files that are alike are one stream
# Seconds: files this near to each other can be of one dump, however long the run.
NEAR_S = levels.NEAR_S


@dataclass(slots=True)
class Draft:
    """A stream in the making: series whose dumps belong together."""

    series: list[Series]
    files: str = "new"
    reopen: bool | None = None  # as in the contract
    removes: str = ""  # how one knows that files rewritten are created again; empty: they are not
    again: str = ""  # how it was found that they are written again
    again_sure: bool = False
    timing: str = ""  # how the time steps of a file that stays open were told apart
    assumed: bool = False  # that was by assumption
    unclear: bool = False  # another number of time steps is plausible too
    late: bool = False  # some ranks are, in one dump that took long
    remarks: list[str] = field(default_factory=list)  # notes on it, without its name
    order: Order = field(default_factory=Order)  # of the calls in a dump
    depth: int = 1  # calls of a rank in flight at a time
    block: int = 0  # bytes of the blocks that are dealt to the ranks in turn
    pace: str = "burst"
    paced: str = ""  # why that is no more than assumed
    spread: bool = False  # and yet its calls are assumed to be spread over its dumps
    alone: npt.NDArray[np.float64] = field(default_factory=lambda: np.ones((2, 0)))  # pace.part
    ordered: str = ""  # how the order or the blocks were found
    flushes: float = float("inf")  # of a file in all dumps, if known
    flushed: int = 0  # fsync() calls on all its files
    syncs: float = 0.0  # of a file by a rank in all dumps
    sync_every: float = 0.0  # bytes
    folded: frozenset[bytes] = frozenset()  # templates of the series that were put together
    scratch_dumps: list[ScratchDump] = field(default_factory=list)
    lookups: Lookups | None = None  # between its writes
    shares: npt.NDArray[np.float64] = field(default_factory=lambda: np.ones(0))  # of each rank

    @property
    def templates(self) -> frozenset[bytes]:
        """Templates of the names of all its files."""
        return self.folded or frozenset(s.template for s in self.series)

    @property
    def write(self) -> bool:
        return self.series[0].write

    @property
    def method(self) -> str:
        return self.series[0].method

    @property
    def spans(self) -> RankSpans:
        return max((s.rank_spans for s in self.series), key=len)

    @property
    def bytes(self) -> int:
        return sum(s.bytes for s in self.series)

    @property
    def dumps(self) -> int:
        """Entries, each a dump or several alike."""
        return len(self.series[0].dumps)

    @property
    def dump_bytes(self) -> float:
        """Mean of a dump."""
        return self.bytes / sum(d.count for d in self.series[0].dumps)

    def shares_files(self, other: "Draft") -> bool:
        """True if the other one has the same files, through another interface."""
        return (
            len(self.series) == len(other.series) == 1
            and self.files == other.files == "new"
            and not self.scratch_dumps
            and not other.scratch_dumps
            and same_files(self.series[0], other.series[0])
        )

    def start_s(self, dump: int) -> float:
        return min(s.dumps[dump].start_s for s in self.series)

    def end_s(self, dump: int) -> float:
        return max(s.dumps[dump].end_s for s in self.series)


def file_count(series: Series) -> int:
    """Files in all its dumps that are told apart."""
    return len({item for d in series.dumps for item, _ in d.cells})


def merge(series: Sequence[Series], burst_s: float) -> list[Draft]:
    """Series whose files make up the same dumps become one draft; single dumps only where they are
    within `burst_s` of each other, and within a second or the time that one of them takes."""
    homes: list[_Home] = []
    whole: list[Draft] = []
    order = sorted(series, key=lambda s: (-len(s.rank_spans), -s.bytes))
    near: dict[tuple[object, ...], _Near] = {}  # homes that a series can belong to
    named: dict[bytes, list[Series]] = {}
    for each in order:
        named.setdefault(each.template, []).append(each)
    for each in order:
        alike = named[each.template]
        if len(alike) > 1 and any(same_files(each, other) for other in alike):
            whole.append(Draft(series=[each]))
            continue
        places: list[tuple[object, ...]] = [("stem", each.stem, each.fixed)]
        if len(each.key) > 1:
            places.append(("folder", _folder(each)))
        of = [(*place, each.write, each.method, each.key) for place in places]
        guest, home_index = _Guest(each), None
        if b"\x00" in each.template:
            fitting = {n for p in of if p in near for n in near[p].to(guest, burst_s)}
            home_index = next((n for n in sorted(fitting) if homes[n].takes(guest, burst_s)), None)
        if home_index is not None:
            homes[home_index].add(guest)
            continue
        homes.append(_Home(guest))
        for place in of:
            near.setdefault(place, _Near()).note(len(homes) - 1, homes[-1])
    return [home.draft for home in homes] + whole


class _Guest:
    """A series that looks for a home."""

    def __init__(self, series: Series) -> None:
        self.series = series
        self.starts = [d.start_s for d in series.dumps]
        self.ends = [d.end_s for d in series.dumps]

    @cached_property
    def files(self) -> int:
        return file_count(self.series)

    @cached_property
    def single_rank(self) -> bool:
        return _single_rank(self.series)


class _Home:
    """A draft that series are added to, with what decides which."""

    def __init__(self, first: _Guest) -> None:
        self.draft = Draft(series=[])
        self.starts, self.ends = first.starts, first.ends
        self.noted_s = first.starts[0]
        self.spans = first.series.rank_spans
        self.templates: set[bytes] = set()
        self.files = 0
        self.near: list[_Near] = []
        self.add(first)

    def add(self, guest: _Guest) -> None:
        """Its files are of the same dumps."""
        self.draft.series.append(guest.series)
        self.starts = [min(pair) for pair in zip(self.starts, guest.starts, strict=True)]
        self.ends = [max(pair) for pair in zip(self.ends, guest.ends, strict=True)]
        self.spans = max(self.spans, guest.series.rank_spans, key=len)
        self.templates.add(guest.series.template)
        self.files += guest.files
        for near in self.near:
            near.reach(self)

    def takes(self, guest: _Guest, burst_s: float) -> bool:
        """True if a series of the same dumps, direction and method belongs here."""
        head, series = self.draft.series[0], guest.series
        if (
            self.files + guest.files > MAX_FILES
            or series.template in self.templates  # kinds that alternate
            or not (series.rank_spans == self.spans or guest.single_rank)
        ):
            return False
        starts = [min(pair) for pair in zip(self.starts, guest.starts, strict=True)]
        latest = [max(pair) for pair in zip(self.starts, guest.starts, strict=True)]
        ends = [min(pair) for pair in zip(self.ends, guest.ends, strict=True)]
        if len(starts) == 1:
            longest_s = max(self.ends[0] - self.starts[0], guest.ends[0] - guest.starts[0])
            return latest[0] - ends[0] <= min(burst_s, max(NEAR_S, longest_s))
        if not all(a < b for a, b in zip(latest, starts[1:], strict=False)):
            return False
        if series.stem == head.stem and series.fixed == head.fixed:
            return True
        within_s = max(late - end for late, end in zip(latest, ends, strict=True))
        between_s = min(b - a for a, b in zip(latest[:-1], starts[1:], strict=True))
        return within_s <= NEXT * between_s


class _Near:
    """Homes in the order of their first dump: only those are tried whose first dump is not so far
    from that of a series that it must be of another dump."""

    def __init__(self) -> None:
        self._starts: list[float] = []  # as of when a home was noted
        self._which: list[int] = []
        self._before = self._behind = 0.0  # how far a home reaches from there

    def note(self, n: int, home: _Home) -> None:
        at = bisect(self._starts, home.noted_s)
        self._starts.insert(at, home.noted_s)
        self._which.insert(at, n)
        home.near.append(self)
        self.reach(home)

    def reach(self, home: _Home) -> None:
        """A home has other times, of its first dump and the start of the second."""
        self._before = max(self._before, home.noted_s - home.starts[0])
        self._behind = max(self._behind, max(home.ends[0], *home.starts[:2]) - home.noted_s)

    def to(self, guest: _Guest, burst_s: float) -> list[int]:
        """The homes that a series can belong to."""
        first_s, last_s = guest.starts[0], max(guest.ends[0], *guest.starts[:2])
        apart_s = burst_s if len(guest.starts) == 1 else NEXT * max(0.0, last_s - first_s)
        low = bisect_left(self._starts, first_s - apart_s - self._behind)
        return self._which[low : bisect(self._starts, last_s + apart_s + self._before)]


def two_interfaces(drafts: Sequence[Draft]) -> dict[int, list[Draft]]:
    """The drafts of the same files through other interfaces, by the identity of a draft."""
    named: dict[bytes, list[Draft]] = {}
    for draft in drafts:
        named.setdefault(draft.series[0].template, []).append(draft)
    return {
        id(draft): [other for other in same if draft.shares_files(other)]
        for same in named.values()
        for draft in same
        if len(same) > 1
    }


def same_files(first: Series, second: Series) -> bool:
    """True if two series are of the same files, written through different interfaces."""
    return (
        first.write
        and second.write
        and first.method != second.method
        and first.template == second.template != b""
        and first.key == second.key
        and all(
            {item for item, _ in a.cells} == {item for item, _ in b.cells}
            for a, b in zip(first.dumps, second.dumps, strict=True)
        )
    )


def _folder(series: Series) -> bytes:
    return series.template.rpartition(b"/")[0]


def gather(drafts: Sequence[Draft], runtime_s: float) -> list[Draft]:
    """Files of many names (stations, probes) in one folder that are alike in size and time become
    one draft."""
    groups: dict[tuple[object, ...], list[Draft]] = {}
    for draft in drafts:
        power = int(np.log2(max(1, round(draft.dump_bytes)))) // 2
        span = tuple(round(t / (LONG * runtime_s)) for t in (draft.start_s(0), draft.end_s(-1)))
        folder = _folder(draft.series[0])
        key = (draft.write, draft.method, draft.files, draft.dumps, draft.spans, folder, power)
        alone = id(draft) if draft.scratch_dumps else 0
        groups.setdefault((*key, span, alone), []).append(draft)
    gathered = []
    for group in groups.values():
        whole = len(group) >= ALIKE and all(file_count(s) == 1 for d in group for s in d.series)
        for first in range(0, len(group), MAX_FILES):
            gathered += [_together(group[first : first + MAX_FILES])] if whole else group
            if not whole:
                break
    return gathered


def _together(group: Sequence[Draft]) -> Draft:
    """One draft of them all: dump k has the files of each one's dump k."""
    group = sorted(group, key=lambda d: (d.start_s(0), -d.bytes))
    first = group[0]
    timings = {d.timing for d in group}
    return Draft(
        series=[s for d in group for s in d.series],
        files=first.files,
        timing=first.timing if len(timings) == 1 else "as of the file with most bytes",
        assumed=any(d.assumed for d in group),
        flushes=min(d.flushes for d in group),
        flushed=sum(d.flushed for d in group),
        remarks=[f"{len(group)} files of different names, alike in size and time, are one stream"],
        folded=frozenset(t for d in group for t in d.templates),
    )


def _single_rank(series: Series) -> bool:
    """One rank alone makes all files of the series."""
    who: set[int] = set()
    for dump in series.dumps:
        for cell in dump.cells.values():
            if cell.shared_bytes or cell.rank_bytes is None:
                return False
            who.update(np.flatnonzero(cell.rank_bytes).tolist())
    return len(who) == 1


def wrote(written: Draft, read: Draft) -> bool:
    """True if `written` wrote the files that `read` reads, before each of its dumps."""
    if not written.write or len(written.series) != 1:
        return False
    write_series, read_series = written.series[0], read.series[0]
    same = (
        write_series.template == read_series.template and write_series.method == read_series.method
    )
    if not same or not write_series.template or written.spans != read.spans:
        return False
    if written.files != "new" or written.scratch_dumps or len(write_series.key) == 1:
        return (
            written.files != "new"
            or write_series.key == read_series.key
            or bool(written.scratch_dumps)
        )
    starts = [written.start_s(k) for k in range(written.dumps)]
    last = [bisect_right(starts, read.start_s(k)) - 1 for k in range(read.dumps)]
    return len(read_series.key) == read.dumps and all(
        n >= 0 and write_series.key[n] == read_series.key[k] for k, n in enumerate(last)
    )

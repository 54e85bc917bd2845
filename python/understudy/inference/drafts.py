"""Which series belong together: streams in the making."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from understudy.contracts.workload import Order
from understudy.inference.series import NEXT, Series
from understudy.inference.table import LONG

MAX_FILES = 1024
ALIKE = 8  # names from which on files that are alike are one stream
NEAR_S = 1.0  # seconds: files this near to each other can be of one dump, however long the run


@dataclass(slots=True)
class Draft:
    """A stream in the making: series whose dumps belong together."""

    series: list[Series]
    files: str = "new"
    names: int = 1  # of files rewritten or updated: sets used in turn
    reopen: bool = True  # of updated files
    removes: bool = False  # files rewritten are created again
    again: str = ""  # how it was found that they are written again
    again_sure: bool = False
    timing: str = ""  # how the time steps of a file that stays open were told apart
    assumed: bool = False  # that was by assumption
    unclear: bool = False  # another number of time steps is plausible too
    remarks: list[str] = field(default_factory=list)  # notes on it, without its name
    order: Order = field(default_factory=Order)  # of the calls in a dump
    block: int = 0  # bytes of the blocks that are dealt to the ranks in turn
    pace: str = "burst"
    paced: str = ""  # why that is no more than assumed
    ordered: str = ""  # how the order or the blocks were found
    flushes: float = float("inf")  # of a file in all dumps, if known
    flushed: int = 0  # fsync() calls on all its files
    syncs: float = 0.0  # of a file by a rank in all dumps
    sync_every: float = 0.0  # bytes
    folded: frozenset[bytes] = frozenset()  # templates of the series that were put together

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
    def spans(self) -> tuple[tuple[int, int], ...]:
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
        """Whether the other one is of the same files, through another interface."""
        return (
            len(self.series) == len(other.series) == 1
            and self.files == other.files == "new"
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
    drafts: list[Draft] = []
    whole: list[Draft] = []
    order = sorted(series, key=lambda s: (-len(s.rank_spans), -s.bytes))
    homes: dict[tuple[object, ...], list[int]] = {}  # drafts that a series can belong to
    named: dict[bytes, list[Series]] = {}
    for one in order:
        named.setdefault(one.template, []).append(one)
    for one in order:
        if any(same_files(one, other) for other in named[one.template]):
            whole.append(Draft(series=[one]))
            continue
        places = [(*place, one.write, one.method, one.key)
                  for place in (("stem", one.stem), ("folder", _folder(one)))]  # fmt: skip
        fitting = sorted({n for place in places for n in homes.get(place, ())})
        home = next((drafts[n] for n in fitting if _belongs(one, drafts[n], burst_s)), None)
        if home is None:
            for place in places:
                homes.setdefault(place, []).append(len(drafts))
            drafts.append(Draft(series=[one]))
        else:
            home.series.append(one)
    return drafts + whole


def two_interfaces(drafts: Sequence[Draft]) -> dict[int, list[Draft]]:
    """The drafts of the same files through other interfaces, by the identity of a draft."""
    named: dict[bytes, list[Draft]] = {}
    for draft in drafts:
        named.setdefault(draft.series[0].template, []).append(draft)
    return {
        id(one): [other for other in same if one.shares_files(other)]
        for same in named.values()
        for one in same
        if len(same) > 1
    }


def same_files(one: Series, other: Series) -> bool:
    """Whether two series are of the same files, written through different interfaces."""
    return (
        one.write and other.write
        and one.method != other.method
        and one.template == other.template != b""
        and one.key == other.key
        and all(
            {item for item, _ in a.cells} == {item for item, _ in b.cells}
            for a, b in zip(one.dumps, other.dumps, strict=True)
        )
    )  # fmt: skip


def _belongs(one: Series, draft: Draft, burst_s: float) -> bool:
    head = draft.series[0]
    named = one.stem == head.stem and one.fixed == head.fixed
    same = (
        one.write == head.write
        and one.method == head.method
        and (named or (len(one.key) > 1 and _folder(one) == _folder(head)))
        and one.key == head.key
        and one.template not in {s.template for s in draft.series}  # kinds that alternate
        and b"\x00" in one.template
        and (one.rank_spans == draft.spans or _single_rank(one))
        and sum(map(file_count, draft.series)) + file_count(one) <= MAX_FILES
    )
    if not same:
        return False
    starts = [min(draft.start_s(k), d.start_s) for k, d in enumerate(one.dumps)]
    latest = [max(draft.start_s(k), d.start_s) for k, d in enumerate(one.dumps)]
    if len(starts) == 1:
        pair = ((draft.start_s(0), draft.end_s(0)), (one.dumps[0].start_s, one.dumps[0].end_s))
        longest_s = max(end - start for start, end in pair)
        rest_s = max(start for start, _ in pair) - min(end for _, end in pair)
        return rest_s <= min(burst_s, max(NEAR_S, longest_s))
    if not all(a < b for a, b in zip(latest, starts[1:], strict=False)):
        return False
    if named:
        return True
    ends = [min(draft.end_s(k), d.end_s) for k, d in enumerate(one.dumps)]
    within_s = max(late - end for late, end in zip(latest, ends, strict=True))
    between_s = min(b - a for a, b in zip(latest[:-1], starts[1:], strict=True))
    return within_s <= NEXT * between_s


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
        groups.setdefault((*key, span), []).append(draft)
    made = []
    for group in groups.values():
        whole = len(group) >= ALIKE and all(file_count(s) == 1 for d in group for s in d.series)
        for first in range(0, len(group), MAX_FILES):
            made += [_together(group[first : first + MAX_FILES])] if whole else group
            if not whole:
                break
    return made


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

"""Calls that are in flight at a time: requests of the kernel's asynchronous I/O (io_submit), and
reads and writes of threads, whose times overlap.
"""

from array import array
from dataclasses import dataclass, field, replace

import numpy as np

from understudy.inference.steps.overlaps import MAX_DEPTH, averages, depths, maximum
from understudy.tracing.files import TracedCalls


@dataclass(slots=True)
class Request:
    """One that was submitted: its place in the list of calls (None: it is on no file that counts),
    data of the program, bytes, and the process. `elsewhere`: the file that does not count.
    `cancels`: io_cancel has asked for its end."""

    index: int | None
    data: str
    asked: int
    owner: int
    elsewhere: str = ""
    writes: bool = False
    cancels: bool = False


@dataclass(slots=True)
class _Rank:
    """Requests of a rank in flight, and those on files that count since none was."""

    requests: list[Request] = field(default_factory=list)
    period: "array[int]" = field(default_factory=lambda: array("Q"))
    most: int = 0
    batch: int = 0  # the most that one call submitted
    ends: bool = False  # calls have ended some


class Requests:
    """Requests in flight of each rank. Once none is, those since then state how many were. A
    program can see their ends in memory, without a call: then they state how many the same call
    submitted."""

    def __init__(self, calls: TracedCalls) -> None:
        self.unended = 0  # on files that count, of which no call says how many were in flight
        self.cancelled: list[Request] = []
        self._calls = calls
        self._ranks: dict[int, _Rank] = {}

    def begin(self, rank: int, request: Request, moves: bool = True) -> None:
        """Note a request. `moves`: it reads or writes."""
        here = self._ranks.setdefault(rank, _Rank())
        here.requests.append(request)
        if moves and request.index is not None:
            here.period.append(request.index)
        here.most = max(here.most, len(here.requests))

    def batch(self, rank: int, count: int) -> None:
        """Note that one call has submitted so many."""
        here = self._ranks.setdefault(rank, _Rank())
        here.batch = max(here.batch, count)

    def cancel(self, rank: int, data: str) -> None:
        """Note that the end of the request with these data was asked for."""
        here = self._ranks.get(rank, _Rank())
        if request := next((r for r in here.requests if r.data == data and not r.cancels), None):
            request.cancels = True

    def end(self, rank: int, data: str, moved: int) -> Request | None:
        """The request that ended: that with these data, or the first with so many bytes."""
        here = self._ranks.get(rank, _Rank())
        if not here.requests:
            return None
        some = [r for r in here.requests if r.data == data] or here.requests
        request = next((r for r in some if r.asked == moved), some[0])
        here.requests.remove(request)
        here.ends = True
        if not here.requests:
            self._close(here)
        return request

    def end_all(self, owner: int | None = None) -> None:
        """All requests of a process have ended, or all there are."""
        for here in self._ranks.values():
            ended = [r for r in here.requests if owner in (None, r.owner)]
            self.cancelled += [r for r in ended if r.cancels]
            here.requests = [r for r in here.requests if owner not in (None, r.owner)]
            if not here.requests:
                self._close(here)

    def _close(self, here: _Rank) -> None:
        most = here.most if here.ends else min(here.most, here.batch)
        self.unended += len(here.period) if most < here.most else 0
        if most > 1 and here.period:
            for index in here.period:
                self._calls.change(index, depth=min(most, MAX_DEPTH))
            self._calls.wait_behind(len(self._calls) - 1, self._calls[here.period[0]].rank)
        here.period, here.most, here.batch, here.ends = array("Q"), 0, 0, False


@dataclass(frozen=True, slots=True)
class Overlap:
    """Reads and writes of threads: how many state how many are in flight, and of the rank whose
    others overlap the most, how many these are, and how many of them are in flight, on average and
    at most."""

    stated: int = 0
    others: int = 0
    average: float = 1.0
    maximum: int = 1


def overlap(calls: TracedCalls, resolution_s: float) -> Overlap:
    """Let reads and writes of a rank with places of their own state how many overlap, between its
    other calls, on average: those of which it is nearer to 1 state none."""
    all_ranks = Overlap()
    for indices, parts in calls.placed():
        begin_s, end_s = calls.times(indices)
        each = depths(begin_s, end_s, parts, resolution_s)
        some, rest = np.flatnonzero(each > 1), np.flatnonzero(each == 1)
        for k in some.tolist():
            calls.change(int(indices[k]), depth=int(each[k]))
        all_ranks = replace(all_ranks, stated=all_ranks.stated + len(some))
        times = begin_s[rest], end_s[rest]
        if (most := maximum(*times, resolution_s)) > all_ranks.maximum:
            mean = averages(*times, np.zeros(len(rest), np.int64), resolution_s)[0]
            all_ranks = replace(all_ranks, others=len(rest), average=float(mean), maximum=most)
    return all_ranks

"""How much of a log a workload stands for: at the interfaces that the application called, and at
the storage below them, where a library or the C library makes other calls of these.

Both sides are counters: those of the log, and those that are predicted for the workload.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from understudy.inference import constants as levels
from understudy.inference.interfaces import READ, WRITE, Interfaces, Totals
from understudy.inference.stdio_calls import BUFFER_BYTES
from understudy.semantics.calls import Calls
from understudy.semantics.counters import BIN_BYTES

# Share of a quantity from which on it is named as missing, or as made beyond it.
MISSED = levels.SMALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Calls at the storage: [reads, writes] of the log, and of these as many as the workload makes
    at least; bytes likewise. `fewer` and `more`: by how many the calls may be others, since a log
    does not tell the sizes of those of stdio."""

    calls: tuple[int, int]
    kept: tuple[int, int]
    bytes: int
    kept_bytes: int
    missing: tuple[str, ...]
    buffered: bool = False  # some of the calls are those of stdio
    made_bytes: int = 0
    fewer: tuple[int, int] = (0, 0)
    more: tuple[int, int] = (0, 0)

    @property
    def ranges(self) -> tuple[tuple[int, int, int], ...]:
        """[reads, writes]: the calls as they are taken to be, their minimum and their maximum."""
        pairs = zip(self.calls, self.fewer, self.more, strict=True)
        return tuple((calls, calls - fewer, calls + more) for calls, fewer, more in pairs)

    @property
    def message(self) -> str:
        """A sentence; empty where the log has no calls at the storage."""
        return f" At the storage it makes, as predicted, {self.makes}." if self.makes else ""

    @property
    def makes(self) -> str:
        """The same, as a part of a sentence."""
        parts = [
            f"{_percent(kept / count)} of the {_verb(way)} calls"
            for way, (count, kept) in enumerate(zip(self.calls, self.kept, strict=True))
            if count
        ]
        if not parts or not self.bytes:
            return ""
        parts.append(f"{_percent(self.kept_bytes / self.bytes)} of the bytes")
        if (beyond := self.made_bytes - self.kept_bytes) > MISSED * self.bytes:
            parts.append(f"{beyond:,} B ({100 * beyond / self.bytes:.4g} %) more")
        told = _listed(parts)
        if self.buffered:
            told += "; calls of stdio, whose sizes are not in the log, are taken to fill buffers"
        ranges = [
            f"{least:,} to {most:,} {_verb(way)}s"
            for way, (count, least, most) in enumerate(self.ranges)
            if most - least > MISSED * count
        ]
        if ranges:
            told += f": there may have been {_listed(ranges)} of the system"
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Shares of a log (0 to 1) that a workload reproduces, what it leaves out, and the data calls
    that it makes beyond those of the application."""

    bytes: float
    calls: float
    time: float
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    storage: Storage

    @property
    def claim(self) -> float:
        """The smallest share of the I/O time, and of the calls and bytes at the storage."""
        below = self.storage
        pairs = [(below.kept_bytes, below.bytes), (below.bytes, below.made_bytes)]
        for kept, (count, least, most) in zip(below.kept, below.ranges, strict=True):
            pairs += [(kept, most), (least, count)]
        return min([self.time, *(kept / all_ for kept, all_ in pairs if all_)])

    @property
    def message(self) -> str:
        return f"The workload stands for {self.kept}.{self.storage.message}"

    @property
    def kept(self) -> str:
        """Of the log, as a part of a sentence."""
        more = f", and makes {_listed(self.extra)} more than the application" if self.extra else ""
        return (
            f"{_percent(self.bytes)} of the bytes, {_percent(self.calls)} of the calls and "
            f"{_percent(self.time)} of the I/O time of the log{more}"
        )


def coverage(log: Interfaces, made: Interfaces) -> Coverage:
    """What of the application's own calls in a log is in a workload made from it.

    Calls are data calls, opens, stats and flushes, and seeks through stdio: these make the C
    library empty and fill its buffer, while a seek through POSIX reaches no storage. The data time
    of an interface counts as far as its bytes, its data calls and what is known of the calls below
    do, whichever share is smallest; the time of its other calls as far as these do. Calls beyond
    those of an interface make up for no missing ones of another, nor reads for writes.
    """
    have, whole = Counter[str](), Counter[str]()
    beyond, counted = [0, 0], [0, 0]
    kept_s = all_s = 0.0
    missing = []
    storage = _storage(log, made)
    for name, totals in log.own.items():
        mine = made.own.get(name, Totals())
        for way, word in ((READ, "read"), (WRITE, "written")):
            size, kept = totals.bytes[way], min(totals.bytes[way], mine.bytes[way])
            count, calls = totals.calls[way].count, mine.calls[way].count
            whole["bytes"] += size
            have["bytes"] += kept
            whole["calls"] += count
            have["calls"] += min(count, calls)
            counted[way] += count
            beyond[way] += max(0, calls - count)
            if size - kept > MISSED * size:
                missing.append(
                    f"{size - kept:,} of {size:,} B {word} through {name} "
                    f"({_percent((size - kept) / size)})"
                )
            if count - calls > MISSED * count:
                missing.append(
                    f"{count - calls:,} of {count:,} data calls that {_verb(way)} through {name} "
                    f"({_percent((count - calls) / count)})"
                )
        operations = Counter[str]()
        for what, there, here in _operations(name, totals, mine):
            operations["all"] += there
            operations["kept"] += min(there, here)
            if there - here > MISSED * there and what != "flushes":
                share = _percent((there - here) / there)
                missing.append(f"{there - here:,} of {there:,} {what} through {name} ({share})")
            elif what == "flushes" and abs(there - here) > MISSED * there:
                missing.append(f"{there:,} flushes through {name} (the replica makes {here:,})")
        whole["calls"] += operations["all"]
        have["calls"] += operations["kept"]
        kept_s += totals.time_s[0] * _moved(name, totals, mine, log)
        kept_s += totals.time_s[1] * _share(operations["kept"], operations["all"])
        all_s += sum(totals.time_s)
    return Coverage(
        bytes=_share(have["bytes"], whole["bytes"]),
        calls=_share(have["calls"], whole["calls"]),
        time=kept_s / all_s if all_s > 0 else 1.0,
        missing=(*missing, *storage.missing),
        extra=tuple(
            f"{more:,} {_verb(way)}s" + (f" ({100 * more / count:.4g} %)" if count else "")
            for way, (more, count) in enumerate(zip(beyond, counted, strict=True))
            if more > MISSED * count
        ),
        storage=storage,
    )


def _operations(name: str, totals: Totals, mine: Totals) -> Iterator[tuple[str, int, int]]:
    """Calls that move no bytes: of the log, and of the workload."""
    yield "opens", totals.opens or 0, mine.opens or 0
    yield "stats", totals.stats or 0, mine.stats or 0
    if name == "STDIO":
        yield "seeks", totals.seeks, mine.seeks
    yield "flushes", totals.flushes or 0, mine.played_flushes


def _moved(name: str, totals: Totals, mine: Totals, log: Interfaces) -> float:
    """The share of an interface's data that is moved, with as many calls, also below it."""
    size, kept = sum(totals.bytes), sum(map(min, totals.bytes, mine.bytes))
    count = sum(c.count for c in totals.calls)
    calls = sum(min(a.count, b.count) for a, b in zip(totals.calls, mine.calls, strict=True))
    if not size or not count:
        return 0.0
    below = log.below.get(("POSIX", name))
    moved = min(kept / size, calls / count)
    if below is None:
        return moved
    ways = [way for way in (READ, WRITE) if totals.calls[way].count]
    known = [below.calls[way].count for way in ways]
    made = [_below(below, way, mine.pieces[way]) for way in ways]
    return min(moved, _share(sum(map(min, known, made)), sum(known)))


def _storage(log: Interfaces, made: Interfaces) -> Storage:
    """What is known of the calls at the storage.

    Calls of POSIX are calls at the storage; see `_below` for libraries, `_buffered` for stdio.
    """
    calls, kept, fewer, more, missing = [0, 0], [0, 0], [0, 0], [0, 0], []
    size = kept_size = made_size = 0
    for name, totals in log.own.items():
        mine = made.own.get(name, Totals())
        below = log.below.get(("POSIX", name))
        there = totals if name in ("POSIX", "STDIO") else below
        if there is None:
            continue
        for way in (READ, WRITE):
            if name == "STDIO":
                count, here = _buffered(totals, way), _buffered(mine, way)
            elif name == "POSIX":
                count, here = there.calls[way].count, mine.calls[way].count
            else:
                count, here = there.calls[way].count, _below(there, way, mine.pieces[way])
            calls[way] += count
            kept[way] += min(count, here)
            fewer[way] += min(max(0, count - 1), there.large[way].fewer)
            more[way] += there.large[way].more
            size += there.bytes[way]
            made_bytes = mine.bytes[way] + way * mine.filled_bytes
            kept_size += min(there.bytes[way], made_bytes)
            made_size += made_bytes
            if count - here > MISSED * count and name != "POSIX":
                who, about = ("the C library", "about ") if name == "STDIO" else (name, "")
                missing.append(
                    f"{count - here:,} of {about}{count:,} {_verb(way)} calls that {who} made at "
                    f"the storage ({_percent((count - here) / count)})"
                )
    return Storage(
        calls=(calls[READ], calls[WRITE]),
        kept=(kept[READ], kept[WRITE]),
        bytes=size,
        kept_bytes=kept_size,
        made_bytes=made_size,
        missing=tuple(missing),
        buffered="STDIO" in log.own,
        fewer=(fewer[READ], fewer[WRITE]),
        more=(more[READ], more[WRITE]),
    )


def _below(below: Totals, way: int, pieces: Calls) -> int:
    """How many of the calls of a library at the storage that of a workload makes.

    It makes one for each run of consecutive bytes at most; where it joins several, it does so for
    both sides. Calls beyond these are those of the library for itself as far as they are too small
    to have moved the data; else the application moved it in smaller runs.
    """
    known = below.calls[way]
    if known.count <= pieces.count or not pieces.count:
        return pieces.count
    ends = np.array([*BIN_BYTES, 2 * BIN_BYTES[-1]], np.float64)
    moved = np.cumsum(np.array(pieces.sizes) * ends)
    usual = int(np.searchsorted(moved, moved[-1] / 2))  # the bin of half of the bytes
    small = float((np.array(known.sizes) * ends)[:usual].sum())
    own = 1 - min(1.0, small / max(1, below.bytes[way]))
    return pieces.count + int(own * (known.count - pieces.count))


def _buffered(totals: Totals, way: int) -> int:
    """About how many calls of the system the C library makes of those of stdio, which no module
    of Darshan counts: one for each that is too large for a buffer, and one per buffer of the
    others, of which a flush or a seek ends the last one early.

    Each read of a file that is sought takes a seek of its own; the others are before writes.
    """
    large = totals.large[way]
    count, size = totals.calls[way].count - large.calls, totals.bytes[way] - large.bytes
    reads = totals.calls[READ].count
    if way == READ:
        ends = min(totals.seeks, reads)
    else:
        flushes = max(totals.flushes or 0, totals.played_flushes)
        ends = max(totals.seeks - reads, flushes)
    parts = max(1, min(count, ends))
    return large.calls + (parts * -(-size // (parts * BUFFER_BYTES)) if count > 0 else 0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _verb(way: int) -> str:
    return "write" if way == WRITE else "read"


def _listed(parts: tuple[str, ...] | list[str]) -> str:
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _percent(share: float) -> str:
    """A share in percent; 100 only where nothing is missing, 0 only where all is."""
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{min(99.99, max(0.01, 100 * share)):.4g} %"

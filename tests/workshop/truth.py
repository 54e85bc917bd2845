"""The truth of a run: what its system calls did to the files below one folder, from strace.

A program of the workshop marks its dumps with access("@stream") and ends them with access("@").
Of a program from a package, patterns of names tell the streams, and each open that may create a
file begins a dump.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

TRACED = (
    "trace=access,open,openat,creat,close,read,write,pread64,pwrite64,readv,writev,preadv,pwritev,"
    "preadv2,pwritev2,fsync,fdatasync,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,"
    "stat,lstat,newfstatat,statx"
)
_LINE = re.compile(r"^(\d+) +([\d.]+) (.*)$")
_CALL = re.compile(r"^(\w+)\((.*)\) += (-?\d+)(?:<(.*?)>)?(?: .*)?$")
_UNFINISHED = re.compile(r"^(.*) <unfinished \.\.\.>$")
_RESUMED = re.compile(r"^<\.\.\. \w+ resumed>(.*)$")
_FD = re.compile(r"^(\d+)<([^>]*)>")
_TEXT = re.compile(r'"([^"]*)"')
_MOVES = {
    **dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2"), "read"),
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), "write"),
}
_OF_MPI = re.compile(r"\.locktest\.\d+$")
_NAMED = {
    "mkdir": "mkdir",
    "mkdirat": "mkdir",
    "rename": "rename",
    "renameat": "rename",
    "renameat2": "rename",
    "unlink": "unlink",
    "unlinkat": "unlink",
    "stat": "stat",
    "lstat": "stat",
    "newfstatat": "stat",
    "statx": "stat",
    "fsync": "sync",
    "fdatasync": "sync",
}


@dataclass(frozen=True, slots=True)
class Event:
    """One call of one rank: what it did (open, create, read, write, or an operation)."""

    time_s: float
    rank: int
    what: str
    path: str
    size: int
    offset: int  # -1: where the last call of the file ended
    opened: str  # as a file to append, rewrite or update; with O_DIRECT or O_SYNC
    stream: str
    dump: int


@dataclass(slots=True)
class Truth:
    """Of each stream and direction: bytes of each dump, names, ranks, opens and data calls."""

    ranks: int
    streams: dict[str, dict[str, Any]] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)


def events(lines: Iterable[str], rank: int, folder: str) -> Iterator[Event]:
    """The calls of a rank to files below the folder, by relative names, with its marks."""
    stream, dump, seen = "", -1, Counter[str]()
    for time_s, text in _whole(lines):
        match = _CALL.match(text)
        if not match:
            continue
        name, arguments, result = match[1], match[2], int(match[3])
        texts = _TEXT.findall(arguments)
        if name == "access":
            if texts and texts[0].startswith("@"):
                stream = texts[0][1:]
                dump = seen[stream]
                seen[stream] += 1
            continue
        handle = _FD.match(arguments)
        path = texts[0] if texts and name not in _MOVES else handle[2] if handle else ""
        inside = _below(path, folder)
        if inside is None or result < 0:
            continue
        what, size, offset, flags = _NAMED.get(name, ""), 0, -1, ""
        if name in _MOVES:
            what, size = _MOVES[name], result
            if what == "read" and result == 0:
                what = "end"
            if name.startswith("p"):  # the last argument is the offset, or flags after it
                offset = int(arguments.rsplit(", ", 2 if name.endswith("2") else 1)[1])
        elif name in ("open", "openat", "creat"):
            writes = "O_WRONLY" in arguments or "O_RDWR" in arguments or name == "creat"
            what = "create" if "O_CREAT" in arguments and writes else "open"
            if "O_DIRECTORY" in arguments:
                continue
            kinds = (("O_APPEND", "append"), ("O_TRUNC", "rewrite"), ("", "update"))
            flags = next(kind for flag, kind in kinds if flag in arguments)
            flags += "".join(f" {f}" for f in ("O_DIRECT", "O_SYNC") if f in arguments)
        elif name == "newfstatat" and '""' in arguments:
            continue  # fstat()
        if what:
            yield Event(time_s, rank, what, inside, size, offset, flags, stream, dump)


def _whole(lines: Iterable[str]) -> Iterator[tuple[float, str]]:
    """Calls with their times; those that another thread interrupted are put together."""
    begun: dict[str, tuple[float, str]] = {}
    for line in lines:
        if not (match := _LINE.match(line.rstrip("\n"))):
            continue
        thread, time_s, text = match[1], float(match[2]), match[3]
        if start := _UNFINISHED.match(text):
            begun[thread] = time_s, start[1]
        elif end := _RESUMED.match(text):
            if thread in begun:
                first_s, head = begun.pop(thread)
                yield first_s, head + end[1]
        else:
            yield time_s, text


def _below(path: str, folder: str) -> str | None:
    """A name relative to the folder; None if it is elsewhere."""
    if _OF_MPI.search(path):
        return None
    if path.startswith(folder + "/"):
        return path[len(folder) + 1 :]
    return path if path and not path.startswith(("/", "socket:", "pipe:", "anon_")) else None


def told(
    calls: Sequence[Event], ranks: int, patterns: Mapping[str, str], steps: Mapping[str, int]
) -> Truth:
    """Add up the calls. `patterns` name the streams of a program without marks, `steps` are the
    numbers of time steps of its files that stay open."""
    truth = Truth(ranks=ranks, operations={})
    operations = Counter[str]()
    dumps: dict[tuple[str, str], Counter[int]] = {}
    begun = Counter[str]()
    ends: dict[tuple[str, int], int] = {}
    for event in sorted(calls, key=lambda e: e.time_s):
        stream, dump = event.stream, event.dump
        if patterns:
            stream = next((s for s, p in patterns.items() if re.fullmatch(p, event.path)), "")
            if event.what in ("create", "open") and stream not in steps:
                begun[stream] += 1
            dump = begun[stream]
        if not stream:
            continue  # of MPI, or before the first dump
        if event.what in ("create", "open"):
            operations["open"] += 1
        elif event.what not in ("read", "write", "end"):
            operations[event.what] += 1
        for way in ("read", "write"):
            event_way = {"create": "write", "open": "read", "end": "read"}.get(
                event.what, event.what
            )
            if event_way != way:
                continue
            entry = truth.streams.setdefault(
                f"{stream}:{way}",
                {
                    "dumps": [],
                    "names": set(),
                    "ranks": set(),
                    "calls": 0,
                    "opens": 0,
                    "orders": Counter(),
                    "opened": Counter(),
                    "kinds": Counter(),
                    "flags": set(),
                },
            )
            entry["names"].add(event.path)
            if event.what == "end":
                entry["calls"] += 1
            elif event.what == way:
                entry["calls"] += 1
                place = (event.path, event.rank)
                at = event.offset if event.offset >= 0 else ends.get(place, 0)
                entry["orders"][_order(at, ends.get(place))] += 1
                ends[place] = at + event.size
                entry["ranks"].add(event.rank)
                dumps.setdefault((stream, way), Counter())[dump] += event.size
            else:
                entry["opens"] += 1
                entry["opened"][event.path, event.rank] += 1
                kind, *flags = event.opened.split()
                entry["kinds"][kind] += 1
                entry["flags"].update(flags)
    for (stream, way), moved in dumps.items():
        entry = truth.streams[f"{stream}:{way}"]
        entry["dumps"] = [moved[k] for k in sorted(moved) if moved[k]]
        counted = len(entry["dumps"])
        entry["steps"] = steps.get(stream, counted)
        if way == "read" and stream in steps:
            entry["steps"] = 0  # unknown
    for key in [k for k, entry in truth.streams.items() if not entry["dumps"]]:
        del truth.streams[key]
    for entry in truth.streams.values():
        entry["names"], entry["ranks"] = len(entry["names"]), len(entry["ranks"])
        opened, kinds = entry.pop("opened"), entry.pop("kinds")
        again = max(opened.values(), default=0) > 1 and len(entry["dumps"]) > 1
        entry["flags"] = sorted(entry["flags"])
        entry["again"] = kinds.most_common(1)[0][0] if again else ""
        orders = entry.pop("orders")  # most are consecutive, else ascending, else neither
        jumps = orders["strided"] + orders["shuffled"]
        entry["order"] = (
            "consecutive"
            if 2 * jumps <= entry["calls"]
            else "strided"
            if 10 * orders["shuffled"] <= jumps
            else "shuffled"
        )
    truth.operations = dict(sorted(operations.items()))
    return truth


def _order(offset: int, end: int | None) -> str:
    """How a call follows the one before of its rank and file."""
    if end is None or offset == end or offset == 0:
        return "consecutive"
    return "strided" if offset > end else "shuffled"


def save(truth: Truth, target: Path) -> None:
    """Write a truth; equal dumps in a row as [number, bytes]."""
    row = asdict(truth)
    for entry in row["streams"].values():
        entry["dumps"] = [[len(list(same)), size] for size, same in groupby(entry["dumps"])]
    lines = json.dumps(row, indent=1).replace("\n     ", " ").replace("\n    ]", " ]")
    target.write_text(lines + "\n")


def load(source: Path) -> Truth:
    """Read a truth."""
    truth = Truth(**json.loads(source.read_text()))
    for entry in truth.streams.values():
        entry["dumps"] = [size for count, size in entry["dumps"] for _ in range(count)]
    return truth

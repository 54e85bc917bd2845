"""A description against the truth of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.folds import calls_of, opens_of
from tests.workshop.cases import Case
from tests.workshop.truth import Truth, load
from understudy.contracts.workload import Stream, Workload
from understudy.errors import UnderstudyError
from understudy.readers.darshan import read

LIMIT = 0.01
# What a note on a stream says where a log cannot tell, and the quantities that it is about.
DUMPS = ("dumps", "dumps of another size")
ADMITS = (
    (r"there are \d+ is a guess|put together|plausible|and not \d+ time steps", DUMPS),
    (r"(written|read) \d+ times is a guess", DUMPS),
    (r"truncated each time they were opened is assumed", ("files",)),
    (r"order that the log does not tell", ("order",)),
    (r"no bytes, at the ends of files, are left out", ("calls",)),
)
STDIO = ("bytes", "calls", "names", "ranks", *DUMPS)  # of what Darshan does not see of stdio


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity of one stream: truth and description; `noted` is the note where it differs."""

    stream: str
    quantity: str
    truth: int
    described: int
    noted: str = ""

    @property
    def right(self) -> bool:
        return abs(self.described - self.truth) <= LIMIT * self.truth

    @property
    def verdict(self) -> str:
        return "right" if self.right else "noted" if self.noted else "wrong"


def compared(log: Path, case: Case) -> list[Measure]:
    """Every quantity of a log against the truth beside it."""
    try:
        workload = read(log, keep_names=True)
    except UnderstudyError:
        return [Measure("all", "refused", 0, 1)]
    return list(measures(load(log.with_suffix(".truth.json")), workload, case))


def measures(truth: Truth, workload: Workload, case: Case) -> Iterator[Measure]:
    """Every quantity of every stream, then the operations of all."""
    left = list(workload.streams)
    for key, entry in truth.streams.items():
        name, _, way = key.partition(":")
        if case.library and way == "read" and f"{name}:write" in truth.streams:
            continue  # the library's own (metadata)
        streams = [s for s in left if s.operation == way and _name(s, case) == name]
        left = [s for s in left if s not in streams]
        yield from _of_stream(key, entry, streams, workload, case.library)
    for stream in left:
        yield Measure(_name(stream, case), "bytes", 0, stream.bytes)
    for what in ("stat", "mkdir", "rename", "unlink", "sync") if not case.library else ():
        real = truth.operations.get(what, 0)
        described = sum(_operations(s, what, workload.ranks) for s in workload.streams)
        if real or described:
            yield Measure("all", what, real, described, _missing(workload, what))


def _of_stream(
    key: str, entry: Mapping[str, Any], streams: list[Stream], workload: Workload, library: bool
) -> Iterator[Measure]:
    unseen = all(s.method == "stdio" and s.operation == "read" for s in streams)

    def note(quantity: str) -> str:
        return _note(workload, streams, quantity) or _of_stdio(workload, quantity) * unseen

    def measure(quantity: str, real: int, described: int, noted: str | None = None) -> Measure:
        told = (
            note(quantity.partition(" ")[0] if real == 1 else quantity) if noted is None else noted
        )
        return Measure(key, quantity, real, described, told)

    base = [s for s in streams if s.behind is None]
    sizes = [o.bytes for o in sorted((o for s in base for o in s.expanded()), key=_begin)]
    if entry["steps"]:
        yield measure("dumps", entry["steps"], sum(s.dump_count * s.passes for s in base))
    yield measure("bytes", sum(entry["dumps"]), sum(s.bytes for s in streams))
    if entry["steps"] == len(entry["dumps"]) == len(sizes) and len(streams) == len(base):
        pairs = zip(entry["dumps"], sizes, strict=True)
        wrong = sum(abs(real - size) > LIMIT * real for real, size in pairs)
        yield measure("dumps of another size", 0, wrong)
    yield measure("names", entry["names"], sum(_names(s, workload.ranks) for s in base))
    if entry["again"] and base and all(s.operation == "write" for s in base):
        yield measure(f"files {entry['again']}", 1, all(s.files == entry["again"] for s in base))
    for flag in entry.get("flags", ()):
        has = all(s.open.direct if flag == "O_DIRECT" else s.open.write_through for s in streams)
        yield measure(flag, 1, has, _missing(workload, flag))
    if library:
        return
    ranks = max((_ranks(s, workload.ranks) for s in streams), default=0)
    yield measure("ranks", entry["ranks"], ranks)
    if streams and all(s.layout != "flood" for s in streams):
        same = all(_order(s) == entry["order"] for s in streams)
        yield measure(f"order {entry['order']}", 1, same)
    if all(s.method == "posix" for s in streams):
        count = sum(calls_of(s, workload.ranks).count for s in streams)
        told = note("calls") or _missing(workload, "data calls")
        yield measure("calls", entry["calls"], count, told)
        named = {s.name: s for s in workload.streams}
        those = streams or [s for s in workload.streams if not s.bytes]  # of operations alone
        opens = sum(opens_of(s, workload.ranks, named.get(s.last or "")) for s in those)
        opens = opens if streams else min(opens, entry["opens"])  # of files without a byte
        yield measure("opens", entry["opens"], opens, _missing(workload, "opens"))


def _begin(dump: Any) -> tuple[float, int]:
    return dump.time_s, dump.bytes


def _order(stream: Stream) -> str:
    """The order of the calls of a stream."""
    dealt = any(v.decomposition.rule == "cyclic" for d in stream.steps for v in d.variables)
    return "strided" if dealt else stream.order.rule


def _name(stream: Stream, case: Case) -> str:
    """The truth's name of a stream: its files begin with it, or have its pattern."""
    last = stream.label.rpartition("/")[2]
    for name, pattern in case.patterns.items():
        if re.fullmatch(pattern, last.replace("*", "1")):
            return name
    prefix = re.match(r"[a-z]+", last)
    return prefix[0] if prefix else last


def _names(stream: Stream, ranks: int) -> int:
    """Files of different names that a stream has."""
    if stream.layout == "flood":
        files = [sum(v.count * v.shape[0] for v in d.variables) for d in stream.steps]
    else:
        files = [_files(stream, dump, ranks) for dump in stream.steps]
    if stream.files != "new":
        return stream.names * max(files)
    return sum(n * d.count for n, d in zip(files, stream.steps, strict=True))


def _files(stream: Stream, dump: Any, ranks: int) -> int:
    """Files of one dump."""
    files: set[tuple[int, int]] = set()
    for variable in dump.variables:
        rank = 0
        for count, rows in variable.rank_runs(ranks):
            for r in range(rank, rank + count if rows else rank):
                group = {"shared": 0, "file-per-process": r}.get(stream.layout)
                if group is None:
                    group = r * (stream.groups or 1) // ranks
                files.add((variable.file, group))
            rank += count
    return len(files)


def _ranks(stream: Stream, ranks: int) -> int:
    """Ranks that move bytes."""
    busy: set[int] = set()
    for dump in stream.steps:
        for variable in dump.variables:
            rank = 0
            for count, rows in variable.rank_runs(ranks):
                busy.update(range(rank, rank + count) if rows else ())
                rank += count
    return len(busy)


def synced_every(stream: Stream) -> int | None:
    """Bytes behind which a rank writes a file to storage."""
    return next((m.flush_bytes for m in stream.moves if not m.hands_over), None)


def _operations(stream: Stream, what: str, ranks: int) -> int:
    """Operations without bytes of a kind that a stream has."""
    operations = sum(
        d.count * o.count for d in stream.steps for o in d.operations if o.kind == what
    )
    if what == "rename" and stream.backup:
        files = 1 if stream.layout == "shared" else _ranks(stream, ranks)
        operations += (sum(d.count for d in stream.steps) - stream.names) * files
    if what == "sync":
        for dump in stream.steps:
            if every := synced_every(stream):
                operations += dump.count * (dump.bytes // every)
            elif stream.sync:
                operations += dump.count * _ranks(stream, ranks)
    return operations


def _note(workload: Workload, streams: list[Stream], quantity: str) -> str:
    """Where the description says of these streams that this quantity may be wrong."""
    for stream in streams:
        for note in workload.source.notes:
            if note.startswith(f"{stream.name}:") and any(
                quantity in about and re.search(pattern, note) for pattern, about in ADMITS
            ):
                return note
        if quantity not in DUMPS:
            continue
        for entry in workload.provenance:  # of the number and the sizes of the dumps
            if entry.path == f"/streams/{workload.streams.index(stream)}/dumps" and (
                entry.confidence == "guess"
            ):
                return f"{entry.path}: {entry.confidence}, {entry.how}"
    return ""


def _of_stdio(workload: Workload, quantity: str) -> str:
    """The note that Darshan does not see all that stdio does."""
    if quantity not in STDIO:
        return ""
    return next((n for n in workload.source.notes if "moved more through stdio" in n), "")


def _missing(workload: Workload, what: str) -> str:
    """The note on calls or operations that the workload leaves out."""
    counter = {"sync": r"SYNCS|FLUSHES", "stat": "STATS", "opens": "OPENS"}.get(
        what, "READS|WRITES"
    )
    word = {"sync": "flushes"}.get(what, what)
    differ = rf"Contradicted: .*({counter})|(?i:{word}.*\b(not|no)\b|\b(not|no)\b.*{word})"
    return next((n for n in workload.source.notes if re.search(differ, n)), "")

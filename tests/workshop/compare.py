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


@dataclass(frozen=True, slots=True, kw_only=True)
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
        made = read(log, keep_names=True)
    except UnderstudyError:
        return [Measure(stream="all", quantity="refused", truth=0, described=1)]
    return list(measures(load(log.with_suffix(".truth.json")), made, case))


def measures(truth: Truth, made: Workload, case: Case) -> Iterator[Measure]:
    """Every quantity of every stream, then the operations of all."""
    left = list(made.streams)
    for key, entry in truth.streams.items():
        name, _, way = key.partition(":")
        if case.library and way == "read" and f"{name}:write" in truth.streams:
            continue  # the library's own (metadata)
        mine = [s for s in left if s.operation == way and _name(s, case) == name]
        left = [s for s in left if s not in mine]
        yield from _of_stream(key, entry, mine, made, case.library)
    for stream in left:
        yield Measure(
            stream=_name(stream, case), quantity="bytes", truth=0, described=stream.bytes, noted=""
        )
    for what in ("stat", "mkdir", "rename", "unlink", "sync") if not case.library else ():
        real = truth.operations.get(what, 0)
        found = sum(_operations(s, what, made.ranks) for s in made.streams)
        if real or found:
            yield Measure(
                stream="all",
                quantity=what,
                truth=real,
                described=found,
                noted=_missing(made, what),
            )


def _of_stream(
    key: str, entry: Mapping[str, Any], mine: list[Stream], made: Workload, library: bool
) -> Iterator[Measure]:
    unseen = not mine or all(s.method == "stdio" and s.operation == "read" for s in mine)

    def note(quantity: str) -> str:
        return _note(made, mine, quantity) or _of_stdio(made, quantity) * unseen

    base = [s for s in mine if s.behind is None]
    dumps = sorted((o.time_s, o.bytes) for s in base for o in s.expanded())
    sizes = [size for _, size in dumps]
    if entry["steps"]:
        count = sum(s.dump_count * s.passes for s in base)
        yield Measure(
            stream=key,
            quantity="dumps",
            truth=entry["steps"],
            described=count,
            noted=note("dumps"),
        )
    yield Measure(
        stream=key,
        quantity="bytes",
        truth=sum(entry["dumps"]),
        described=sum(s.bytes for s in mine),
        noted=note("bytes"),
    )
    if entry["steps"] == len(entry["dumps"]) == len(sizes) and len(mine) == len(base):
        pairs = zip(entry["dumps"], sizes, strict=True)
        wrong = sum(abs(real - found) > LIMIT * real for real, found in pairs)
        yield Measure(
            stream=key,
            quantity="dumps of another size",
            truth=0,
            described=wrong,
            noted=note("dumps of another size"),
        )
    names = sum(_names(s, made.ranks) for s in base)
    yield Measure(
        stream=key, quantity="names", truth=entry["names"], described=names, noted=note("names")
    )
    if entry["again"] and base and all(s.operation == "write" for s in base):
        same = all(s.files == entry["again"] for s in base)
        yield Measure(
            stream=key,
            quantity=f"files {entry['again']}",
            truth=1,
            described=int(same),
            noted=note("files"),
        )
    for flag in entry.get("flags", ()):
        has = all(s.open.direct if flag == "O_DIRECT" else s.open.write_through for s in mine)
        yield Measure(
            stream=key, quantity=flag, truth=1, described=int(has), noted=_missing(made, flag)
        )
    if not library:
        ranks = max((_ranks(s, made.ranks) for s in mine), default=0)
        yield Measure(
            stream=key,
            quantity="ranks",
            truth=entry["ranks"],
            described=ranks,
            noted=note("ranks"),
        )
    if not library and mine and all(s.layout != "flood" for s in mine):
        yield Measure(
            stream=key,
            quantity=f"order {entry['order']}",
            truth=1,
            described=int(all(_order(s) == entry["order"] for s in mine)),
            noted=note("order"),
        )
    if not library and all(s.method == "posix" for s in mine):
        count = sum(calls_of(s, made.ranks).count for s in mine)
        yield Measure(
            stream=key,
            quantity="calls",
            truth=entry["calls"],
            described=count,
            noted=note("calls") or _missing(made, "data calls"),
        )
        named = {s.name: s for s in made.streams}
        opens = sum(opens_of(s, made.ranks, named.get(s.last or "")) for s in mine or _idle(made))
        opens = opens if mine else min(opens, entry["opens"])  # of files without a byte
        yield Measure(
            stream=key,
            quantity="opens",
            truth=entry["opens"],
            described=opens,
            noted=_missing(made, "opens"),
        )


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
    found = re.match(r"[a-z]+", last)
    return found[0] if found else last


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
    found: set[tuple[int, int]] = set()
    for variable in dump.variables:
        rank = 0
        for count, rows in variable.rank_runs(ranks):
            for r in range(rank, rank + count if rows else rank):
                group = {"shared": 0, "file-per-process": r}.get(stream.layout)
                if group is None:
                    group = r * (stream.groups or 1) // ranks
                found.add((variable.file, group))
            rank += count
    return len(found)


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
    found = sum(d.count * o.count for d in stream.steps for o in d.operations if o.kind == what)
    if what == "rename" and stream.backup:
        files = 1 if stream.layout == "shared" else _ranks(stream, ranks)
        found += (sum(d.count for d in stream.steps) - stream.names) * files
    if what == "sync":
        for dump in stream.steps:
            if every := synced_every(stream):
                found += dump.count * (dump.bytes // every)
            elif stream.sync:
                found += dump.count * _ranks(stream, ranks)
    return found


def _note(made: Workload, streams: list[Stream], quantity: str) -> str:
    """Where the description says of these streams that this quantity may be wrong."""
    for stream in streams:
        for note in made.source.notes:
            if note.startswith(f"{stream.name}:") and any(
                quantity in about and re.search(pattern, note) for pattern, about in ADMITS
            ):
                return note
        if quantity not in DUMPS:
            continue
        for entry in made.provenance:  # of the number and the sizes of the dumps
            if entry.path == f"/streams/{made.streams.index(stream)}/dumps" and (
                entry.confidence == "guess"
            ):
                return f"{entry.path}: {entry.confidence}, {entry.how}"
    return ""


def _idle(made: Workload) -> list[Stream]:
    """The streams of operations alone, whose files have no names."""
    return [s for s in made.streams if not s.bytes]


def _of_stdio(made: Workload, quantity: str) -> str:
    """The note that Darshan does not see all that stdio does."""
    if quantity not in STDIO:
        return ""
    return next((n for n in made.source.notes if "moved more through stdio" in n), "")


def _missing(made: Workload, what: str) -> str:
    """The note on calls or operations that the workload leaves out."""
    counter = {"sync": r"SYNCS|FLUSHES", "stat": "STATS", "opens": "OPENS"}.get(
        what, "READS|WRITES"
    )
    word = {"sync": "flushes"}.get(what, what)
    differ = rf"Contradicted: .*({counter})|(?i:{word}.*\b(not|no)\b|\b(not|no)\b.*{word})"
    return next((n for n in made.source.notes if re.search(differ, n)), "")

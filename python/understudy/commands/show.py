"""understudy show: a workload, a run or a Darshan log as tables."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import groupby, pairwise, repeat
from pathlib import Path
from typing import Any

import click

from understudy import producers
from understudy.commands import _counters, _show_log, _why
from understudy.contracts import strict, workload
from understudy.contracts.measurement import (
    DumpResult,
    Environment,
    Measurement,
    PlayedDump,
    PlayedRepetition,
    PlayedStream,
    Repetition,
    StreamResult,
)
from understudy.contracts.run import Run
from understudy.contracts.workload import Step, Stream, Workload
from understudy.errors import UnderstudyError, one_line, printable
from understudy.files import read_text, values_stay
from understudy.program import words
from understudy.program.text import text_of
from understudy.tables import table
from understudy.units import plural, rate, seconds, size

LINES = 60  # unless all are asked for
STREAMS, NOTES = 20, 10  # of these lines, at most
FEW = 4  # streams or dumps that are alike and are still listed one by one are fewer
CLOSE = 0.01  # share of their period by which dumps of one line may be off


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dumps/--no-dumps", default=True, help="List the dumps, or only the streams.")
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="List every stream, dump and note; default: at most 60 lines, alike ones folded.",
)
@click.option(
    "--program",
    "as_program",
    is_flag=True,
    help="Print what a workload means: its files and what happens to them, step by step.",
)
@click.option(
    "--why",
    "stream",
    metavar="STREAM",
    help="Print where the values of a stream come from, how sure they are, and what else fits.",
)
@click.option(
    "--counters",
    is_flag=True,
    help="Print the counters that Darshan 3.5 will record when a workload is played with the "
    "default options, by sets of files; a - where a library (HDF5, MPI-IO) decides. "
    "`prepared`: calls of the player alone, which writes first what is read.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the --counters as JSON.")
def command(
    file: Path,
    dumps: bool,
    everything: bool,
    as_program: bool,
    stream: str | None,
    counters: bool,
    as_json: bool,
) -> None:
    """Print the streams and dumps of FILE: a workload, a run record or a measurement.

    Of a Darshan log, print its header and job, and the records, bytes and compression of each
    module.

    Sizes are binary (1 MiB = 1,048,576 bytes), times in seconds since the start. Streams of equal
    kind, calls and number of dumps, and dumps of equal bytes and period, take one line; where the
    lines are more than 60, more of them do. Rates of a run are those of I/O time, without the
    computing and waiting between calls.
    """
    if as_json and not counters:
        raise click.UsageError("--json: expected only with --counters")
    if counters:
        shown = workload.load(file)
        text = json.dumps(_counters.row(shown), indent=1) if as_json else None
        click.echo("\n".join(_counters.lines(shown)) if text is None else text)
        return
    if stream is not None:
        click.echo("\n".join(_why.lines(workload.load(file), stream, file)))
        return
    if as_program:
        click.echo(text_of(workload.load(file).program), nl=False)
        return
    with values_stay():
        lines = list(_lines(file, dumps, everything))
    if not everything and len(lines) > LINES:
        lines[LINES - 1 :] = [_left_out(len(lines) - LINES + 1, "lines")]
    click.echo("\n".join(lines))


def _left_out(count: int, what: str) -> str:
    return f"{count:,} more {what}: --all shows them"


def _lines(file: Path, dumps: bool, everything: bool) -> Iterator[str]:
    if _show_log.is_log(file):
        yield from _show_log.lines(file)
        return
    row = producers.read_long(file) or _decoded(file)
    schema = str(row.get("schema", "")) if isinstance(row, dict) else ""
    if not schema or schema.startswith("understudy/workload/"):
        shown = workload.build(row, str(file))
        text = "\n".join(_all_of(shown, dumps) if everything else _short(shown, dumps))
    else:
        most = None if everything else LINES
        text = "\n".join(_run(*producers.load_row(file, row), dumps, most))
    yield from text.split("\n")


def _decoded(file: Path) -> Any:
    """The content of the file, decoded once; the contracts tell what is wrong with it."""
    try:
        return strict.decode(read_text(file), str(file))
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"{file}: not UTF-8 text") from None


# -- workloads ------------------------------------------------------------------------------------


def _head(shown: Workload) -> str:
    runtime = "unknown" if shown.runtime_s is None else seconds(shown.runtime_s)
    return (
        f"{shown.name}: {plural(shown.ranks, 'rank')}, {size(shown.bytes)} in "
        f"{plural(len(shown.streams), 'stream')}, run time {runtime}"
    )


def _stream_table(folds: Sequence[Sequence[Stream]]) -> Iterator[str]:
    columns = (
        "stream",
        "",
        "layout",
        "method",
        ">dumps",
        ">bytes",
        ">first",
        ">last",
        ">transfer",
    )
    return table("\nStreams", columns, map(_stream_row, folds))


def _dump_table(lines: Iterable["_DumpLine"]) -> Iterator[str]:
    columns = (">time", "", "stream", ">dump", ">bytes", ">overhead", ">variables", ">duration")
    cells = (line.cells for line in sorted(lines, key=lambda x: x.key))
    return table("\nDumps", columns, cells)


def _note_lines(notes: Iterable[str]) -> Iterator[str]:
    for k, note in enumerate(notes):
        yield ("\n" if k == 0 else "") + f"Note: {one_line(note)}"


def _all_of(shown: Workload, dumps: bool) -> Iterator[str]:
    """Every stream, dump and note of a workload."""
    yield _head(shown)
    folds = [[stream] for stream in shown.streams]
    yield from _stream_table(folds)
    if dumps:
        yield from _dump_table(line for f in folds for line in _dump_lines(f, EACH))
    yield from _note_lines(shown.source.notes)


def _short(shown: Workload, dumps: bool) -> Iterator[str]:
    """At most LINES lines of a workload: those that are alike are folded, then the streams with
    fewest bytes left out, and then dumps folded that are alike but for their times, or not."""
    folds = list(_folded(shown.streams))
    largest = sorted(range(len(folds)), key=lambda i: -sum(s.bytes for s in folds[i]))
    kept = [folds[i] for i in sorted(largest[:STREAMS])]
    lines = [_head(shown), *_stream_table(kept)]
    if len(kept) < len(folds):
        lines.append(_left_out(sum(map(len, folds)) - sum(map(len, kept)), "streams"))
    said = shown.source.notes
    cut = max(0, len(said) - NOTES)  # the last one says what the workload stands for
    notes = list(_note_lines([*said[: NOTES - 1], *said[len(said) - 1 :]] if cut else said))
    if cut:
        notes.insert(-1, _left_out(cut, "notes"))
    if dumps:
        left = LINES - sum(x.count("\n") + 1 for x in (*lines, *notes))
        for how in (PERIOD, BYTES, STREAM):
            table_ = _dump_table(line for f in kept for line in _dump_lines(f, how))
            rows = "\n".join(table_).split("\n")
            if len(rows) <= left:
                break
        else:
            rows[left - 1 :] = [_left_out(len(rows) - left + 1, "lines of dumps")]
        lines += rows
    yield from lines + notes


def _folded(streams: Sequence[Stream]) -> Iterator[list[Stream]]:
    """Streams in lists of those that are alike, FEW or more, each at the place of its first."""
    alike: dict[Any, list[Stream]] = {}
    for stream in streams:
        alike.setdefault(_shape(stream), []).append(stream)
    for stream in streams:
        some = alike[_shape(stream)]
        if len(some) < FEW:
            yield [stream]
        elif some[0] is stream:
            yield some


def _shape(stream: Stream) -> tuple[Any, ...]:
    """Key by which streams share a line; their bytes differ by less than a factor of two."""
    largest = max(d.bytes for d in stream.steps)
    return words.alike(stream), stream.dump_count, largest.bit_length()


def _name(streams: Sequence[Stream]) -> str:
    if len(streams) == 1:
        return streams[0].name
    return f"{streams[0].name} and {len(streams) - 1} alike"


def _stream_row(streams: Sequence[Stream]) -> tuple[str, ...]:
    s = streams[0]
    more = [word for word, on in (("collective", s.collective), ("sync", s.sync)) if on]
    return (
        _name(streams),
        words.kind(s) + words.names(s),
        words.layout(s),
        " ".join([s.method, *more]),
        str(s.dump_count),
        size(sum(s.bytes for s in streams)),
        f"{min(s.first_s for s in streams):.3f} s",
        f"{max(s.last_s for s in streams):.3f} s",
        size(s.transfer_bytes),
    )


@dataclass(frozen=True, slots=True)
class _DumpLine:
    """A line of the table of dumps, and what it is sorted by."""

    key: tuple[float, str, int]
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Numbered:
    """An entry of a stream, the number of its first dump, and its sizes over alike streams."""

    number: int
    dump: Step
    sizes: tuple[int, int | None, int]  # bytes, overhead, variables


# What dumps of one line have in common.
EACH, PERIOD, BYTES, STREAM = "each", "period", "bytes", "stream"
_COMMON: dict[str, Callable[[_Numbered], Any]] = {
    PERIOD: lambda e: (e.sizes, e.dump.count, e.dump.period_s),
    BYTES: lambda e: e.sizes,
    STREAM: lambda e: 0,
}


def _dump_lines(streams: Sequence[Stream], how: str) -> Iterator[_DumpLine]:
    """The lines of alike streams: of each entry, or of those in a row that share `how`."""
    name = _name(streams)
    entries = [_numbered(s) for s in streams]
    if (
        len(streams) > 1
    ):  # with repeats their entries may differ in number; the first stands for all
        entries = [_added(entries)] if len({len(e) for e in entries}) == 1 else entries[:1]
    for _, same in groupby(entries[0], key=None if how == EACH else _COMMON[how]):
        group = list(same)
        period_s = _period_s(group, CLOSE if how == PERIOD else math.inf)
        if how != EACH and len(group) >= FEW and period_s is not None:
            yield _line(name, group, period_s, exact=how == PERIOD)
        else:
            for entry in group:
                period_s = entry.dump.period_s if entry.dump.count > 1 else None
                yield _line(name, [entry], period_s, exact=True)


def _numbered(stream: Stream) -> list[_Numbered]:
    entries, first = [], 0
    for dump in stream.steps:
        count = sum(v.count for v in dump.variables)
        entries.append(_Numbered(first, dump, (dump.bytes, dump.overhead_bytes, count)))
        first += dump.count
    return entries


def _added(streams: Sequence[Sequence[_Numbered]]) -> list[_Numbered]:
    """The entries of the first stream with the sizes of all."""
    entries = []
    for each in zip(*streams, strict=True):
        moved, over, count = zip(*(e.sizes for e in each), strict=True)
        whole = None if None in over else sum(over)
        first = min(each, key=lambda e: e.dump.time_s)
        entries.append(_Numbered(each[0].number, first.dump, (sum(moved), whole, sum(count))))
    return entries


def _period_s(group: Sequence[_Numbered], close: float) -> float | None:
    """The seconds between dumps of one line, None where they differ by more than `close` of it."""
    if len(group) < 2 or (group[0].dump.count > 1 and close != math.inf):
        return None
    last = group[-1]
    mean = (last.dump.time_s - group[0].dump.time_s) / (last.number - group[0].number)
    off = max(abs(b.dump.time_s - a.dump.time_s - mean) for a, b in pairwise(group))
    return mean if off <= close * mean or close == math.inf else None


def _line(
    name: str, group: Sequence[_Numbered], period_s: float | None, *, exact: bool
) -> _DumpLine:
    """A line of entries in a row; `exact`: they have the period, else it is their mean."""
    time_s, first = group[0].dump.time_s, group[0].number
    last = group[-1].number + group[-1].dump.count - 1
    every = "every" if exact else "about every"
    return _DumpLine(
        key=(time_s, name, first),
        cells=(
            f"{time_s:.3f} s",
            "" if period_s is None else f"{every} {seconds(period_s)}",
            name,
            str(first) if last == first else f"{first} to {last}",
            *(_range([entry.sizes[k] for entry in group]) for k in range(3)),
            _range([entry.dump.duration_s for entry in group], seconds),
        ),
    )


def _range(values: Sequence[Any], text: Callable[[Any], str] = "{:,}".format) -> str:
    numbers = [value for value in values if value is not None]
    if len(numbers) < len(values):
        return ""
    low, high = min(numbers), max(numbers)
    return text(low) if text(low) == text(high) else f"{text(low)} to {text(high)}"


# -- runs -----------------------------------------------------------------------------------------


def _run(run: Run, shown: Measurement | None, dumps: bool, most: int | None) -> Iterator[str]:
    """The lines of a run; those of dumps behind the first `most` of each repetition are empty."""
    name = run.producer.workload.name if run.producer.workload else run.producer.name
    where = run.storage.type or "unknown file system"
    if run.failure is not None:
        yield printable(f"{name}: failed: {run.failure}")
    if shown is None:
        return
    here = shown.environment
    machine = f"{plural(here.ranks, 'rank')} on {plural(len(here.nodes), 'node')}"
    facts = f"{machine}, {where}, {run.identity.time}"
    yield printable(f"{name}: {facts}, {here.mpi}")
    for repetition in shown.repetitions:
        yield from _repetition(repetition, here, dumps, most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moves:
    """What a stream or a dump read, or wrote. Where it did both, opens and closes count for the
    operation of the stream, `own`."""

    operation: str
    own: bool
    bytes: int
    io_s: float
    elapsed_s: float

    @property
    def rates(self) -> tuple[str, str]:
        """Over I/O time, and from open to close."""
        times = (self.io_s, self.elapsed_s)
        over_io, whole = (rate(self.bytes / t if t > 0 else 0.0) for t in times)
        return over_io, whole


def _moves(operation: str, dumps: Sequence[DumpResult]) -> list[_Moves]:
    """Of dumps of a stream of the operation: first its own."""
    other = "read" if operation == "write" else "write"
    apart = [p for d in dumps for p in d.phases if p.phase == other]
    io_s, elapsed_s = sum(d.io_s for d in dumps), sum(d.elapsed_s for d in dumps)
    bytes_ = sum(d.bytes for d in dumps)
    other_bytes = sum(p.bytes for p in apart)
    if not other_bytes:
        whole = _Moves(operation=operation, own=True, bytes=bytes_, io_s=io_s, elapsed_s=elapsed_s)
        return [whole]
    other_s = min(io_s, sum(p.rank_s.max for p in apart))
    return [
        _Moves(
            operation=operation,
            own=True,
            bytes=bytes_ - other_bytes,
            io_s=io_s - other_s,
            elapsed_s=elapsed_s,
        ),
        _Moves(operation=other, own=False, bytes=other_bytes, io_s=other_s, elapsed_s=elapsed_s),
    ]


def _latency_rows(streams: Sequence[StreamResult]) -> Iterator[tuple[str, ...]]:
    """Of each stream and kind of operations whose latencies are known."""
    for stream in streams:
        for kind, latency in stream.latency.items() if isinstance(stream, PlayedStream) else ():
            shares = (latency.p50_s, latency.p99_s, latency.p999_s, latency.max_s)
            name, count = printable(stream.name), f"{latency.count:,}"
            yield name, printable(kind), count, *map(seconds, shares)


def _repetition(
    repetition: Repetition, environment: Environment, dumps: bool, most: int | None
) -> Iterator[str]:
    rows = []
    for s in repetition.streams:
        late = [d.lateness_s for d in s.dumps if isinstance(d, PlayedDump)]
        latency = s.latency if isinstance(s, PlayedStream) else {}
        for moves in _moves(s.operation, s.dumps):
            of_calls = latency.get(moves.operation)
            rows.append(
                (
                    printable(s.name),
                    printable(f"{moves.operation} {s.method}"),
                    str(len(s.dumps)),
                    size(moves.bytes),
                    seconds(moves.io_s),
                    *moves.rates,
                    seconds(of_calls.p99_s) if of_calls else "",
                    seconds(max(late)) if late else "",
                )
            )
    title = f"\nRepetition {repetition.repetition}: {seconds(repetition.elapsed_s)}"
    columns = (
        *("stream", "", ">dumps", ">bytes", ">I/O time"),
        *(">rate", ">open to close", ">99 % of calls", ">late"),
    )
    yield from table(title, columns, rows)
    latency_rows = list(_latency_rows(repetition.streams))
    if latency_rows:
        columns_ = ("stream", "calls", ">number", ">p50", ">p99", ">p99.9", ">longest")
        yield from table("\nLatency", columns_, latency_rows)
    yield from _deadline(repetition)
    yield from _slowest(repetition, environment)
    if dumps:
        yield ""
        yield from _played_dump_table(repetition, most)


def _played_dump_table(repetition: Repetition, most: int | None) -> Iterator[str]:
    """Dumps by their start; when the first and the last rank were done, where that is known. Only
    the first `most` dumps are written, the lines of the others are empty."""
    by_start = [(d.start_s, s.name, s, d) for s in repetition.streams for d in s.dumps]
    count = len(by_start) if most is None else most
    first = nsmallest(count, by_start, key=lambda row: row[:2])
    dump_rows = [(start_s, name, d, m) for start_s, name, s, d in first for m in _of(s, d)]
    lines = len(by_start) + sum(map(_mixed, repetition.streams))
    done = [_done(d, moves.operation) for _, _, d, moves in dump_rows]
    some = any(first for first, _ in done)
    yield from table(
        "",
        (
            *(">start", "stream", ">dump", ">bytes", ">files", ">time", ">I/O time", ">rate"),
            *((">first done", ">last done") if some else ()),
        ),
        (
            (
                f"{start_s:.3f} s",
                printable(name if moves.own else f"{name} ({moves.operation})"),
                str(d.dump),
                f"{moves.bytes:,}",
                str(d.files),
                seconds(d.elapsed_s),
                seconds(moves.io_s),
                moves.rates[0],
                *(ends if some else ()),
            )
            for (start_s, name, d, moves), ends in zip(dump_rows, done, strict=True)
        ),
    )
    yield from repeat("", lines - len(dump_rows))


def _mixed(stream: StreamResult) -> int:
    """How many of its dumps read and wrote, and so take two lines."""
    if not stream.other_bytes:
        return 0
    other = "read" if stream.operation == "write" else "write"
    return sum(dump.phase_bytes(other) > 0 for dump in stream.dumps)


def _of(stream: StreamResult, dump: DumpResult) -> list[_Moves]:
    return _moves(stream.operation, [dump])


def _done(dump: DumpResult, operation: str) -> tuple[str, str]:
    """When the first rank had moved its bytes, and the last one, from the start of the dump."""
    for phase in dump.phases:
        if phase.phase == operation and phase.first_end_s is not None:
            ends = (phase.first_end_s, phase.last_end_s)
            return seconds(ends[0] - dump.start_s), seconds(ends[1] - dump.start_s)
    return "", ""


def _deadline(repetition: Repetition) -> Iterator[str]:
    """Streams that their deadline stopped."""
    for stream in repetition.streams:
        ends = [d.deadline for d in stream.dumps if isinstance(d, PlayedDump) and d.deadline]
        stopped = [end for end in ends if end.stopped_ranks]
        if stopped:
            fewest = min(end.rank_transfers.min for end in stopped)
            most = max(end.rank_transfers.max for end in stopped)
            yield (
                f"{printable(stream.name)}: the deadline stopped {len(stopped)} of {len(ends)} "
                f"dumps, at {fewest:,} to {most:,} transfers of a rank"
            )


def _slowest(repetition: Repetition, environment: Environment) -> Iterator[str]:
    """The slowest of several hosts, and the slowest rank, against the medians of I/O time."""
    if not isinstance(repetition, PlayedRepetition) or environment.ranks == 1:
        return
    host, rank, hosts = repetition.slowest_host, repetition.slowest_rank, len(environment.nodes)
    words = []
    if hosts > 1 and host and host.ratio:
        name = printable(host.host)
        words.append(f"{name}, {host.ratio:.1f} x the median of {hosts} hosts")
    if rank and rank.ratio:
        name = f"rank {rank.rank} on {printable(rank.host)}"
        words.append(f"{name}, {rank.ratio:.1f} x the median of {environment.ranks} ranks")
    if words:
        yield f"slowest by I/O time: {'; '.join(words)}"

"""understudy show: a workload, a run or a Darshan log as tables."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import click

from understudy import producers
from understudy.commands import _show_log
from understudy.contracts import strict, workload
from understudy.contracts.measurement import PlayedDump, Repetition
from understudy.contracts.run import Run
from understudy.contracts.workload import Dump, Stream, Workload
from understudy.errors import UnderstudyError, printable
from understudy.files import expect_no_device
from understudy.tables import table
from understudy.units import rate, seconds, size

FEW = 4  # streams or dumps that are alike and are still listed one by one are fewer
CLOSE = 0.01  # share of their period by which dumps of one line may be off


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dumps/--no-dumps", default=True, help="List the dumps, or only the streams.")
@click.option(
    "--all", "everything", is_flag=True,
    help="List every stream and dump; default: those that are alike take one line.",
)  # fmt: skip
def command(file: Path, dumps: bool, everything: bool) -> None:
    """Print the streams and dumps of FILE: a workload, a run record or a measurement.

    Of a Darshan log, print its header and job, and the records, bytes and compression of each
    module.

    Sizes are binary (1 MiB = 1,048,576 bytes), times in seconds since the start. Streams of equal
    kind, calls and number of dumps, and dumps of equal bytes and period, take one line.
    """
    if _show_log.is_log(file):
        click.echo("\n".join(_show_log.lines(file)))
        return
    row = _decoded(file)
    schema = str(row.get("schema", "")) if isinstance(row, dict) else ""
    if not schema or schema.startswith("understudy/workload/"):
        lines = _workload(workload.build(row, str(file)), dumps, FEW if not everything else 0)
    else:
        lines = _run(producers.load(file, row), dumps)
    click.echo("\n".join(lines))


def _decoded(file: Path) -> Any:
    """The content of the file, decoded once; the contracts tell what is wrong with it."""
    try:
        expect_no_device(file)
        return strict.decode(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"{file}: not UTF-8 text") from None


# -- workloads ------------------------------------------------------------------------------------


def _workload(shown: Workload, dumps: bool, few: int) -> Iterator[str]:
    """The lines of a workload; `few` or more that are alike are folded, 0: nothing is."""
    runtime = "unknown" if shown.runtime_s is None else seconds(shown.runtime_s)
    count = len(shown.streams)
    yield (
        f"{shown.name}: {shown.ranks} ranks, {size(shown.bytes)} in {count} "
        f"{'stream' if count == 1 else 'streams'}, run time {runtime}"
    )
    folds = list(_folded(shown.streams, few))
    yield from table(
        "\nStreams",
        ("stream", "", "layout", "method", ">dumps", ">bytes", ">first", ">last", ">transfer"),
        map(_stream_row, folds),
    )
    if dumps:
        lines = sorted((line for f in folds for line in _dump_lines(f, few)), key=lambda x: x.key)
        columns = (">time", "", "stream", ">dump", ">bytes", ">overhead", ">variables")
        yield from table("\nDumps", columns, (line.cells for line in lines))
    for k, note in enumerate(shown.source.notes):
        yield ("\n" if k == 0 else "") + printable(f"Note: {note}")


def _folded(streams: Sequence[Stream], few: int) -> Iterator[list[Stream]]:
    """Streams in lists of those that are alike, each at the place of its first."""
    alike: dict[Any, list[Stream]] = {}
    for stream in streams:
        alike.setdefault(_shape(stream), []).append(stream)
    for stream in streams:
        some = alike[_shape(stream)]
        if not few or len(some) < few:
            yield [stream]
        elif some[0] is stream:
            yield some


def _shape(stream: Stream) -> tuple[Any, ...]:
    """What streams of one line have in common; their bytes differ by less than a factor of two."""
    largest = max(d.bytes for d in stream.dumps)
    return (
        stream.role, stream.operation, stream.files, stream.names, stream.layout, stream.groups,
        stream.method, stream.collective, stream.sync, stream.transfer_bytes, stream.dump_count,
        largest.bit_length(), stream.removes, stream.own_directories, stream.reads,
    )  # fmt: skip


def _name(streams: Sequence[Stream]) -> str:
    if len(streams) == 1:
        return streams[0].name
    return f"{streams[0].name} and {len(streams) - 1} alike"


def _stream_row(streams: Sequence[Stream]) -> tuple[str, ...]:
    s = streams[0]
    names = f" ({s.names} names)" if s.names > 1 else ""
    layout = f"{s.layout} ({s.groups})" if s.groups else s.layout
    layout += ", own directories" if s.own_directories else ""
    names += ", removes" if s.removes else ""
    more = [word for word, on in (("collective", s.collective), ("sync", s.sync)) if on]
    return (
        _name(streams), _kind(s) + names, layout, " ".join([s.method, *more]),
        str(s.dump_count), size(sum(s.bytes for s in streams)),
        f"{min(s.first_s for s in streams):.3f} s", f"{max(s.last_s for s in streams):.3f} s",
        size(s.transfer_bytes),
    )  # fmt: skip


def _kind(stream: Stream) -> str:
    """What a stream does; one without a byte writes nothing, whatever its operation."""
    if stream.reads is not None:
        return f"read of {stream.reads}"
    if stream.bytes:
        return f"{stream.operation} {stream.files}"
    return (
        ", ".join(sorted({o.operation for d in stream.dumps for o in d.operations})) or "no bytes"
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
    dump: Dump
    sizes: tuple[int, int | None, int]  # bytes, overhead, variables


def _dump_lines(streams: Sequence[Stream], few: int) -> Iterator[_DumpLine]:
    name = _name(streams)
    entries = [_numbered(s) for s in streams]
    if (
        len(streams) > 1
    ):  # with repeats their entries may differ in number; the first stands for all
        entries = [_added(entries)] if len({len(e) for e in entries}) == 1 else entries[:1]
    for _, same in groupby(entries[0], key=lambda e: (e.sizes, e.dump.repeat)):
        group = list(same)
        period_s = _period_s(group)
        if few and len(group) >= few and period_s is not None:
            yield _line(name, group[0], group[-1].number, period_s)
        else:
            for entry in group:
                repeat = entry.dump.repeat
                last = entry.number + entry.dump.count - 1
                yield _line(name, entry, last, repeat.period_s if repeat else None)


def _numbered(stream: Stream) -> list[_Numbered]:
    made, first = [], 0
    for dump in stream.dumps:
        count = sum(v.count for v in dump.variables)
        made.append(_Numbered(first, dump, (dump.bytes, dump.overhead_bytes, count)))
        first += dump.count
    return made


def _added(streams: Sequence[Sequence[_Numbered]]) -> list[_Numbered]:
    """The entries of the first stream with the sizes of all."""
    made = []
    for each in zip(*streams, strict=True):
        moved, over, count = zip(*(e.sizes for e in each), strict=True)
        whole = None if None in over else sum(over)
        first = min(each, key=lambda e: e.dump.time_s)
        made.append(_Numbered(each[0].number, first.dump, (sum(moved), whole, sum(count))))
    return made


def _period_s(group: Sequence[_Numbered]) -> float | None:
    """The seconds between dumps of one line, None where they differ."""
    if len(group) < 2 or group[0].dump.repeat:
        return None
    mean = (group[-1].dump.time_s - group[0].dump.time_s) / (len(group) - 1)
    off = max(abs(b.dump.time_s - a.dump.time_s - mean) for a, b in pairwise(group))
    return mean if off <= CLOSE * mean else None


def _line(name: str, entry: _Numbered, last: int, period_s: float | None) -> _DumpLine:
    moved, over, count = entry.sizes
    time_s, first = entry.dump.time_s, entry.number
    return _DumpLine(
        key=(time_s, name, first),
        cells=(
            f"{time_s:.3f} s", "" if period_s is None else f"every {seconds(period_s)}", name,
            str(first) if last == first else f"{first} to {last}", f"{moved:,}",
            "" if over is None else f"{over:,}", str(count),
        ),
    )  # fmt: skip


# -- runs -----------------------------------------------------------------------------------------


def _run(run: Run, dumps: bool) -> Iterator[str]:
    shown = producers.measured(run)
    name = run.producer.workload.name if run.producer.workload else run.producer.name
    where = run.storage.type or "unknown file system"
    if run.failure is not None:
        yield printable(f"{name}: failed: {run.failure}")
    if shown is None:
        return
    here = shown.environment
    facts = f"{here.ranks} ranks on {len(here.nodes)} nodes, {where}, {run.identity.time}"
    yield printable(f"{name}: {facts}, {here.mpi}")
    for repetition in shown.repetitions:
        yield from _repetition(repetition, dumps)


def _repetition(repetition: Repetition, dumps: bool) -> Iterator[str]:
    rows = []
    for s in repetition.streams:
        late = [d.lateness_s for d in s.dumps if isinstance(d, PlayedDump)]
        rows.append((
            printable(s.name), printable(f"{s.operation} {s.method}"), str(len(s.dumps)),
            size(s.bytes), rate(s.bandwidth_bytes_per_s), seconds(max(late)) if late else "",
        ))  # fmt: skip
    title = f"\nRepetition {repetition.repetition}: {seconds(repetition.elapsed_s)}"
    yield from table(title, ("stream", "", ">dumps", ">bytes", ">bandwidth", ">late"), rows)
    if dumps:
        found = sorted(
            ((d.start_s, s.name, d) for s in repetition.streams for d in s.dumps),
            key=lambda row: row[:2],
        )
        yield ""
        yield from table(
            "",
            (">start", "stream", ">dump", ">bytes", ">files", ">time", ">bandwidth"),
            (
                (
                    f"{start_s:.3f} s", printable(name), str(d.dump), f"{d.bytes:,}", str(d.files),
                    seconds(d.elapsed_s), rate(d.bandwidth_bytes_per_s),
                )
                for start_s, name, d in found
            ),
        )  # fmt: skip

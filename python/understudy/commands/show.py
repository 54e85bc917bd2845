"""understudy show: a workload or a result as tables."""

import json
import sys
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from understudy import result, workload
from understudy.errors import UnderstudyError
from understudy.report.show import rate, seconds, size
from understudy.workload import Stream, Workload


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--dumps/--no-dumps", default=True, help="List every dump, or only the streams.")
def command(file: Path, dumps: bool) -> None:
    """Print the streams and dumps of FILE, a workload or a result.

    Sizes are binary (1 MiB = 1,048,576 bytes), times are seconds since the start.
    """
    console = Console(width=None if sys.stdout.isatty() else 160)
    if _schema(file) == "understudy/result/1":
        _show_result(console, result.load(file), dumps)
    else:
        _show_workload(console, workload.load(file), dumps)


def _schema(file: Path) -> str:
    """What the file says it is; the loaders tell what is wrong with it."""
    try:
        row = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError:
        return ""
    return str(row.get("schema", "")) if isinstance(row, dict) else ""


def _table(title: str, *columns: str) -> Table:
    """A table whose columns are right-aligned where the name begins with >."""
    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(
            column.lstrip(">"), justify="right" if column.startswith(">") else "left", no_wrap=True
        )
    return table


def _show_workload(console: Console, shown: Workload, dumps: bool) -> None:
    runtime = "unknown" if shown.runtime_s is None else seconds(shown.runtime_s)
    console.print(
        f"{shown.name}: {shown.ranks} ranks, {size(shown.bytes)} in {len(shown.streams)} streams, "
        f"run time {runtime}"
    )
    table = _table(
        "\nStreams", "stream", "", "layout", "method", ">dumps", ">bytes", ">first", ">last",
        ">transfer",
    )  # fmt: skip
    for s in shown.streams:
        table.add_row(
            s.name, f"{s.operation} {s.files}", _layout(s), _method(s), str(len(s.dumps)),
            size(s.bytes), f"{s.dumps[0].time_s:.3f} s", f"{s.dumps[-1].time_s:.3f} s",
            size(s.transfer_bytes),
        )  # fmt: skip
    console.print(table)
    if dumps:
        rows = sorted(
            ((d.time_s, s.name, i, d) for s in shown.streams for i, d in enumerate(s.dumps)),
            key=lambda row: row[:3],
        )
        table = _table("\nDumps", ">time", "stream", ">dump", ">bytes", ">overhead", ">variables")
        for time_s, name, i, dump in rows:
            over = "" if dump.overhead_bytes is None else f"{dump.overhead_bytes:,}"
            count = sum(v.count for v in dump.variables)
            table.add_row(f"{time_s:.3f} s", name, str(i), f"{dump.bytes:,}", over, str(count))
        console.print(table)
    for note in shown.source.notes:
        console.print(f"\nNote: {note}" if note is shown.source.notes[0] else f"Note: {note}")


def _layout(stream: Stream) -> str:
    return f"{stream.layout} ({stream.groups})" if stream.groups else stream.layout


def _method(stream: Stream) -> str:
    more = [word for word, on in (("collective", stream.collective), ("sync", stream.sync)) if on]
    return " ".join([stream.method, *more])


def _show_result(console: Console, shown: result.Result, dumps: bool) -> None:
    here = shown.environment
    console.print(
        f"{shown.workload.name}: {here.ranks} ranks on {here.nodes} nodes, {here.file_system}, "
        f"{here.started}, {here.mpi}"
    )
    for repetition in shown.repetitions:
        title = f"\nRepetition {repetition.repetition}: {seconds(repetition.elapsed_s)}"
        table = _table(title, "stream", "", ">dumps", ">bytes", ">bandwidth", ">late")
        for s in repetition.streams:
            late = max(d.lateness_s for d in s.dumps)
            table.add_row(
                s.name, f"{s.operation} {s.method}", str(len(s.dumps)), size(s.bytes),
                rate(s.bandwidth_bytes_per_s), seconds(late),
            )  # fmt: skip
        console.print(table)
        if dumps:
            table = _table(
                "", ">start", "stream", ">dump", ">bytes", ">files", ">time", ">bandwidth"
            )
            for start_s, name, d in sorted(
                ((d.start_s, s.name, d) for s in repetition.streams for d in s.dumps),
                key=lambda row: row[:2],
            ):
                table.add_row(
                    f"{start_s:.3f} s", name, str(d.dump), f"{d.bytes:,}", str(d.files),
                    seconds(d.elapsed_s), rate(d.bandwidth_bytes_per_s),
                )  # fmt: skip
            console.print(table)

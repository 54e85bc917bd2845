"""understudy archive: Darshan logs in another compression."""

import csv
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import click
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
)

from understudy.cli import UNUSABLE
from understudy.darshanlog import logs_below
from understudy.darshanlog.archive import (
    ALREADY,
    DENSE,
    FAILED,
    LARGER,
    LINKED,
    Archived,
    Options,
    archive,
)
from understudy.darshanlog.convert import COMPRESSIONS
from understudy.darshanlog.workers import Check, Stop, Stopped, each, stopping
from understudy.errors import UnderstudyError, one_line
from understudy.files import expect_new, expect_not_read, make_folder, write_text
from understudy.messages import progress, tell, tell_some
from understudy.tables import table
from understudy.units import exact, size

STATES = {
    LARGER: "kept: the result is larger",
    ALREADY: "has this compression already",
    LINKED: "kept: several hard links",
    FAILED: "kept: cannot be converted",
}
UNREAD = (ALREADY, LINKED, FAILED)  # whose files are not counted
COLUMNS = (
    "log",
    "processes",
    "files",
    "original_bytes",
    "converted_bytes",
    "decrease_percent",
    "state",
    "reason",
)


@click.command()
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--to",
    "compression",
    type=click.Choice(COMPRESSIONS),
    default=DENSE,
    show_default=True,
    help="The compression of the results. The PyPI package darshan reads no bzip2. With "
    "zlib, logs that get larger are converted, too.",
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Write the results to this directory, which is created where it does not exist; by "
    "default, they replace the originals.",
)
@click.option(
    "--always",
    is_flag=True,
    help="Convert logs that bzip2 makes larger, too, and those that have the compression already.",
)
@click.option(
    "--break-links",
    is_flag=True,
    help="Convert logs with several hard links, too: each name given becomes a file of its own.",
)
@click.option(
    "--verify",
    is_flag=True,
    help="Read each result again and compare it before it replaces its original.",
)
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Logs to convert at the same time; of a single log, its modules.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Also write the table to this file, as comma-separated values.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the file of --csv.")
def command(
    logs: tuple[Path, ...],
    compression: str,
    into: Path | None,
    always: bool,
    break_links: bool,
    verify: bool,
    jobs: int,
    csv_file: Path | None,
    force: bool,
) -> None:
    """Compress each Darshan LOG, or the logs below a directory, with bzip2 instead of zlib.

    Each module becomes one compressed stream; nothing else changes. A log of Darshan 3.4.1 to 3.5
    becomes what darshan-convert makes of it, byte for byte. Older formats are kept as they are.
    The result replaces its original only when it is complete and on storage; a damaged log is not
    touched, and named. A log that bzip2 would make larger is kept. Mode and times stay.

    Prints processes, files and sizes of each log, as Table IV of the Darshan 3.0.0 paper. The exit
    status is 2 if a log cannot be converted; the others are.

    \b
    Example: understudy archive --verify --jobs 8 /logs/2025
             understudy archive --to zlib old.darshan      # back again
    """
    paths, left_out = _paths(logs)
    if csv_file is not None:
        _expect_free(csv_file, paths, into, force)
    if into is not None:
        make_folder(into)
    options = Options(
        compression=compression,
        into=into,
        always=always,
        break_links=break_links,
        check=verify,
        threads=max(1, jobs // len(paths)),
    )
    archived: dict[int, Archived] = {}
    with stopping() as stop:
        try:
            for index, row in _converted(paths, options, jobs, stop):
                archived[index] = row
        except Stopped as signal:
            tell(
                f"stopped by {signal} after {len(archived)} of {len(paths)} logs; each log is "
                "whole, converted or as it was; there is no table"
            )
            sys.exit(128 + stop.number)
    rows = [archived[index] for index in range(len(paths))]
    click.echo("\n".join(_lines(rows)))
    if csv_file is not None:
        write_text(csv_file, _values(rows))
    faults = [row.reason for row in rows if row.state == FAILED]
    tell_some(left_out, f"{len(left_out)} left out of directories", "they are as they were")
    tell_some(faults, f"{len(faults)} of {len(paths)} logs cannot be converted", "they are kept")
    if faults:
        sys.exit(UNUSABLE)


def _status(path: Path) -> os.stat_result | None:
    """None where it cannot be opened either."""
    try:
        return path.stat()
    except OSError:
        return None


def _expect_free(table: Path, logs: Sequence[Path], into: Path | None, force: bool) -> None:
    """A usage error where the table would replace a log, a result or, without --force, a file."""
    beside = into is not None and table.parent.resolve() == into.resolve()
    if not table.parent.is_dir() and not beside:
        raise click.UsageError(f"--csv {table}: there is no directory {table.parent}")
    real = table.parent.resolve() / table.name
    if beside:
        for log in logs:
            if log.name == real.name:
                raise click.UsageError(
                    f"--csv {table} is the result of {log}; choose another name"
                )
    try:
        expect_not_read(table, filter(_status, logs))
        expect_new(table, force)
    except UnderstudyError as error:
        raise click.UsageError(str(error)) from None


def _paths(logs: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """The logs, each once, and what was left out of directories."""
    paths: list[Path] = []
    left_out: list[str] = []
    for log in logs:
        status = _status(log)
        if status and stat.S_ISDIR(status.st_mode):
            below = logs_below(log)
            paths += below.logs
            left_out += below.left_out
        else:
            paths.append(log)
    by_identity: dict[object, Path] = {}
    for path in paths:
        by_identity.setdefault(_identity(path), path)
    return list(by_identity.values()), left_out


def _identity(path: Path) -> object:
    """Identity of a file by any name; hard links are apart, as each is a name to replace."""
    status = _status(path)
    if status is None:
        return path
    links = path.resolve() if status.st_nlink > 1 else None
    return status.st_dev, status.st_ino, links


def _converted(
    paths: Sequence[Path], options: Options, jobs: int, stop: Stop
) -> Iterator[tuple[int, Archived]]:
    """Index and result of each log, as they end."""
    if len(paths) == 1:
        columns = (
            TextColumn("converting"),
            DownloadColumn(binary_units=True),
            TimeElapsedColumn(),
        )
        with progress(*columns) as bar:
            task = bar.add_task("", total=None)
            yield 0, _one(paths[0], stop.check, options, lambda plain: bar.advance(task, plain))
        return
    with progress(
        TextColumn("converting logs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as bar:
        task = bar.add_task("", total=len(paths))
        for index, row in _each(paths, partial(_one, options=options), jobs, stop):
            bar.advance(task)
            yield index, row


def _each(
    paths: Sequence[Path], convert: Callable[[Path, Check], Archived], jobs: int, stop: Stop
) -> Iterator[tuple[int, Archived]]:
    if jobs == 1:
        for index, path in enumerate(paths):
            yield index, convert(path, stop.check)
            stop.check()
        return
    for index, row in each(paths, convert, jobs, stop):
        path = paths[index]
        yield index, row or _failed(path, f"{path}: the process that converted it was killed")


def _one(
    path: Path, check: Check, options: Options, tick: Callable[[int], None] = lambda _: None
) -> Archived:
    def checked(plain: int) -> None:
        check()
        tick(plain)

    try:
        return archive(path, options, checked)
    except UnderstudyError as error:
        return _failed(path, str(error))


def _failed(path: Path, reason: str) -> Archived:
    try:
        size_bytes = path.stat().st_size
    except OSError:
        size_bytes = 0
    return Archived(
        path=path,
        nprocs=0,
        files=0,
        before_bytes=size_bytes,
        after_bytes=size_bytes,
        state=FAILED,
        reason=reason,
    )


def _lines(rows: Sequence[Archived]) -> Iterator[str]:
    yield from table(
        "",
        ("log", ">processes", ">files", ">original", ">converted", ">decrease", ""),
        [
            (
                one_line(row.path.name),
                "" if row.state == FAILED else f"{row.nprocs:,}",
                "" if row.state in UNREAD else f"{row.files:,}",
                size(row.before_bytes),
                "" if row.state == FAILED else size(row.after_bytes),
                "" if row.state == FAILED else f"{row.saved * 100:.1f} %",
                STATES.get(row.state, ""),
            )
            for row in rows
        ],
    )
    done = [row for row in rows if row.state not in STATES]
    before = sum(row.before_bytes for row in done)
    after = sum(row.after_bytes for row in done)
    if done:
        yield (
            f"\n{len(done):,} of {len(rows):,} logs converted: {exact(before)} became "
            f"{exact(after)}, {abs(1 - after / before) * 100:.1f} % "
            f"{'less' if after <= before else 'more'}"
        )
    else:
        yield f"\n0 of {len(rows):,} logs converted"


def _values(rows: Sequence[Archived]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        failed = row.state == FAILED
        writer.writerow(
            [
                _cell(str(row.path)),
                "" if failed else row.nprocs,
                "" if row.state in UNREAD else row.files,
                row.before_bytes,
                "" if failed else row.after_bytes,
                "" if failed else f"{row.saved * 100:.2f}",
                row.state,
                _cell(row.reason),
            ]
        )
    return text.getvalue()


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and no terminal for a command."""
    line = one_line(text)
    return f"'{line}" if line[:1] in tuple("=+-@") else line

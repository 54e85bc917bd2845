"""understudy rank: the jobs of many logs, by their I/O."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import click
from rich.progress import MofNCompleteColumn, TextColumn, TimeElapsedColumn

from understudy.darshanlog import logs_below
from understudy.errors import UnderstudyError, one_line
from understudy.files import write_text
from understudy.judge.page.ranking import ORDERS, Job, Ranking, rank
from understudy.messages import progress, tell, tell_some
from understudy.tables import table
from understudy.units import seconds, share, size

LETTERS = 26


@click.command()
@click.argument(
    "folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--by",
    type=click.Choice(list(ORDERS)),
    default="time",
    show_default=True,
    help="Order by the time in I/O calls, by bytes, or by the share of the run time in I/O calls.",
)
@click.option(
    "-l",
    "--limit",
    type=click.IntRange(min=1),
    default=None,
    help="Show so many jobs; default: all.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path),
    default=None,
    help="Also write the ranking to this file, in bytes and seconds.",
)
@click.option(
    "--csv",
    "csv_file",
    type=click.Path(path_type=Path),
    default=None,
    help="Also write the jobs to this file, as comma-separated values.",
)
@click.option(
    "--keep-names",
    is_flag=True,
    help="Show the names of programs; by default, letters tell them apart.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the files of --json and --csv.")
def command(
    folders: tuple[Path, ...],
    by: str,
    limit: int | None,
    json_file: Path | None,
    csv_file: Path | None,
    keep_names: bool,
    force: bool,
) -> None:
    """Rank the jobs whose Darshan logs are below FOLDER by their I/O: which to replicate.

    I/O time is that of all processes in I/O calls. A replica is worth it for the programs that
    have 80 % of all I/O time or bytes; each is represented by the first of its jobs, in order of
    I/O time, whose logs are complete. Logs that cannot be read are counted, and named on standard
    error; so are links to directories, broken links, directories that cannot be read, and logs of
    programs that still run (*.darshan_partial). A copy of a log is left out. A job ID that is used
    again after a day or more is another job. The table tells which modules of a job are not
    decoded: its bytes and times lack theirs.

    \b
    Example: understudy rank /logs/2026/11 --limit 20
             understudy describe /logs/2026/11 --job 4711 -o app.json
    """
    for file in filter(None, (json_file, csv_file)):
        if file.exists() and not force:
            raise UnderstudyError(f"{file}: exists already; choose another name or use --force")
    paths: list[Path] = []
    lost: list[str] = []
    for folder in folders:
        if folder.is_dir():
            below = logs_below(folder)
            paths += below.logs
            lost += below.left_out
        else:
            paths.append(folder)
    columns = (TextColumn("reading logs"), MofNCompleteColumn(), TimeElapsedColumn())
    with progress(*columns) as bar:
        task = bar.add_task("", total=len(paths))
        ranking = rank(dict.fromkeys(paths), by, tick=lambda: bar.advance(task))
    without = "the ranking is without them"
    tell_some(lost, f"{len(lost)} left out of directories", without)
    failed = f"{len(ranking.unreadable)} of {ranking.logs} logs cannot be read"
    tell_some(ranking.unreadable, failed, without)
    if ranking.copies:
        copies = _count(ranking.copies, "copy", "copies")
        tell(f"{copies} of logs left out; each log is counted once")
    if not ranking.jobs:
        raise UnderstudyError(f"{folders[0]}: none of the {ranking.logs} logs can be read")
    names = ranking.programs if keep_names else tuple(map(_letters, range(len(ranking.programs))))
    rows = [_row(n, job, names) for n, job in enumerate(ranking.jobs, 1)]
    if json_file is not None:
        write_text(json_file, json.dumps(_document(ranking, by, rows), indent=1) + "\n")
    if csv_file is not None:
        write_text(csv_file, _values(rows))
    click.echo("\n".join(_lines(ranking, names, limit)))


def _letters(number: int) -> str:
    """A name for a program: A to Z, AA, AB, …"""
    text = chr(ord("A") + number % LETTERS)
    return text if number < LETTERS else _letters(number // LETTERS - 1) + text


def _when(time_s: float) -> str:
    """A time since the epoch, in UTC; empty if no calendar has it."""
    try:
        return datetime.fromtimestamp(time_s, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return ""


def _row(place: int, job: Job, names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "place": place,
        "job": job.job,
        "start": _when(job.start_s),
        "logs": job.logs,
        "processes": job.processes,
        "read_bytes": job.read_bytes,
        "written_bytes": job.written_bytes,
        "opens": job.opens,
        "io_s": job.io_s,
        "process_s": job.process_s,
        "io_fraction": job.io_fraction,
        "incomplete_logs": job.incomplete,
        "unfinished_logs": job.unfinished,
        "undecoded_modules": list(job.undecoded),
        "program": names[job.program],
        "replicate": job.replicate,
    }


def _document(ranking: Ranking, by: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "by": by,
        "logs": ranking.logs,
        "unreadable_logs": len(ranking.unreadable),
        "copied_logs": ranking.copies,
        "jobs": rows,
    }


def _values(rows: list[dict[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        cells = {"undecoded_modules": ", ".join(row["undecoded_modules"])}
        writer.writerow(row | cells | {"program": _cell(row["program"])})
    return text.getvalue()


def _cell(text: str) -> str:
    """Text that no spreadsheet takes for a formula, and no terminal for a command."""
    text = one_line(text)
    return f"'{text}" if text.lstrip()[:1] in tuple("=+-@") else text


def _lines(ranking: Ranking, names: tuple[str, ...], limit: int | None) -> Iterator[str]:
    jobs = ranking.jobs[:limit]
    total_s, total = sum(j.io_s for j in ranking.jobs), sum(j.bytes for j in ranking.jobs)
    logs = ranking.logs - len(ranking.unreadable) - ranking.copies
    yield (
        f"{_count(len(ranking.jobs), 'job')} in {_count(logs, 'log')}:"
        f" {size(total)}, {seconds(total_s)} of I/O time"
    )
    columns = (
        ">job",
        "start (UTC)",
        ">logs",
        ">processes",
        ">read",
        ">written",
        ">I/O time",
        ">of run time",
        "program",
        "replicate",
    )
    yield from table(
        "",
        columns,
        (
            (
                str(job.job),
                _when(job.start_s)[:16].replace("T", " "),
                str(job.logs),
                str(job.processes),
                size(job.read_bytes),
                size(job.written_bytes),
                seconds(job.io_s),
                "unknown" if job.io_fraction is None else share(job.io_fraction),
                one_line(names[job.program]),
                _remark(job),
            )
            for job in jobs
        ),
    )
    if len(jobs) < len(ranking.jobs):
        yield f"and {_count(len(ranking.jobs) - len(jobs), 'job')} more"


def _remark(job: Job) -> str:
    """The last column of a job's row."""
    names = ", ".join(job.undecoded)
    said = "its modules {} are not decoded" if "," in names else "its module {} is not decoded"
    return "; ".join(filter(None, (job.replicate, names and said.format(names))))


def _count(number: int, word: str, words: str | None = None) -> str:
    return f"{number:,} {word if number == 1 else words or f'{word}s'}"

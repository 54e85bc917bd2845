"""understudy records: the folder in which a site keeps every record."""

import json
import re
from pathlib import Path
from typing import Any

import click

from understudy import paths, producers
from understudy.cli import FAILED, UNUSABLE, print_error
from understudy.commands import _migrate
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError, printable
from understudy.files import expect_new, expect_not_read
from understudy.records import index, ledger, select, store
from understudy.tables import table
from understudy.units import size

COLUMNS = (
    "run",
    "time",
    "session",
    "system",
    "partition",
    "case",
    "arm",
    "workload",
    "method",
    "condition",
    "failure",
    "tags",
    "campaign",
)


def _folder_option(function: Any) -> Any:
    return click.option(
        "--folder",
        type=click.Path(path_type=Path, file_okay=False),
        help=f"The folder of records.  [default: {paths.RECORDS_VARIABLE}, else records/ of the "
        "directory for output]",
    )(function)


@click.group()
def command() -> None:
    """List, print, verify, migrate and export the records of all sessions.

    Every check adds the record of each of its runs, failed ones too, to the folder that
    UNDERSTUDY_RECORDS names (by default records/ of the directory for output). Nothing replaces
    a record. The folder has an index, index.sqlite, which is made again if it is removed.
    """


command.add_command(_migrate.command)


@command.command("list")
@click.argument("which", nargs=-1)
@_folder_option
@click.option("--system", help="Only of this system.")
@click.option("--partition", help="Only of this partition.")
@click.option("--condition", metavar="HASH", help="Only of this condition; its first digits do.")
@click.option("--failed", is_flag=True, help="Only runs that failed.")
@click.option("--runs", "each", is_flag=True, help="A line for each run instead of each session.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object for each line.")
def list_(
    which: tuple[str, ...],
    folder: Path | None,
    system: str | None,
    partition: str | None,
    condition: str | None,
    failed: bool,
    each: bool,
    as_json: bool,
) -> None:
    """List sessions, or runs, by time: all, or those that WHICH selects.

    WHICH is a session, a tag or a campaign, a date (2026-01-31), a range (2026-01-01..2026-01-31,
    14d..1d) or a time ago until now (14d, 36h).
    """
    site_index = index.of_folder(folder)
    chosen = [select.parse(word, site_index) for word in which]
    wanted = select.both(
        select.any_of(chosen),
        select.equal(system=system, partition=partition),
        select.begins(condition=condition),
        select.equal(failed=1 if failed else None),
    )
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in site_index.select(COLUMNS, *wanted)]
    for message in site_index.unread:
        print_error(UnderstudyError(f"left out: {message}"))
    if site_index.unread:
        print_error(
            UnderstudyError("records set-aside moves such records to where they do not count")
        )
    if count := store.aside(site_index.base):
        print_error(
            UnderstudyError(f"{site_index.base / producers.SET_ASIDE}: {count} records set aside")
        )
    _expect_readable(site_index)
    shown = [_run_row(row) for row in rows] if each else _session_rows(rows)
    if as_json:
        for row in shown:
            click.echo(json.dumps(row, ensure_ascii=True))
        return
    if shown:
        lines = [[_cell(value) for value in row.values()] for row in shown]
        for line in table("", list(shown[0]), lines):
            click.echo(line)
    bad = sum(row["failure"] is not None for row in rows)
    sessions = len({row["session"] for row in rows})
    click.echo(f"{len(rows)} runs of {sessions} sessions, {bad} failed", err=True)


def _expect_readable(site_index: index.Index) -> None:
    """An UnderstudyError where there are records, and none can be read."""
    if (unread := len(site_index.unread)) and not any(site_index.select(("run",), copies=True)):
        raise UnderstudyError(f"{site_index.base}: none of the {unread} records can be read")


def _cell(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, list) else "" if value is None else str(value)
    return printable(text).replace("\n", "\\n")


def _run_row(row: dict[str, Any]) -> dict[str, Any]:
    condition = (row["condition"] or "")[:12]
    return row | {"condition": condition, "tags": json.loads(row["tags"])}


def _session_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One for each session, by the time of its first run."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        sessions.setdefault(row["session"] or store.NO_SESSION, []).append(row)
    return [
        {
            "session": session,
            "began": same[0]["time"],
            "ended": same[-1]["time"],
            "systems": sorted({r["system"] for r in same if r["system"]}),
            "campaign": sorted({r["campaign"] for r in same if r["campaign"]}),
            "cases": len({(r["case"], r["arm"]) for r in same}),
            "runs": len(same),
            "failed": sum(r["failure"] is not None for r in same),
        }
        for session, same in sessions.items()
    ]


@command.command()
@click.argument("run")
@_folder_option
def show(run: str, folder: Path | None) -> None:
    """Print the record of a RUN, as JSON; the first digits of its identifier do."""
    if not re.fullmatch(r"[A-Za-z0-9_.-]{4,100}", run):
        raise UnderstudyError(f"{run!r}: expected an identifier of a run, of at least 4 digits")
    site_index = index.of_folder(folder)
    of_run = (("run", "file"), *select.begins(run=run))
    rows = list(site_index.select(*of_run)) or list(site_index.select(*of_run, copies=True))
    if not rows:
        raise UnderstudyError(f"{run}: no record of such a run is kept in {site_index.base}")
    if len({name for name, _ in rows}) > 1:
        raise UnderstudyError(f"{run}: {len(rows)} runs begin so; expected more digits")
    # JSON escapes every control character, so that nothing reaches the terminal as a command.
    row = runs.to_row(site_index.load(rows[0][1]))
    click.echo(json.dumps(row, indent=1, ensure_ascii=True))


@command.command("import")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@_folder_option
def import_(files: tuple[Path, ...], folder: Path | None) -> None:
    """Keep records and measurements: FILES, or all below folders.

    What is there already stays as it is. The exit status is 2 if a file could not be read or is
    another record of a run that is kept; the others are kept.
    """
    into = folder or store.folder()
    count = {"kept": 0, "already there": 0, "failed": 0}
    for path in producers.find(files):
        try:
            run = producers.load(path)
            there = (into / store.name_of(run)).exists()
            store.keep(run, into)
            count["already there" if there else "kept"] += 1
        except UnderstudyError as error:
            print_error(error)
            count["failed"] += 1
    click.echo(f"{into}: " + ", ".join(f"{n} {what}" for what, n in count.items()))
    if count["failed"]:
        raise SystemExit(UNUSABLE)


@command.command("set-aside")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@_folder_option
@click.option("--yes", is_flag=True, help="Move them; without it, they are only listed.")
def set_aside(files: tuple[Path, ...], folder: Path | None, yes: bool) -> None:
    """Move records that cannot be read to where they do not count: FILES, or all of them.

    They go to the folder .set-aside in the folder of records, under the names that they had; none
    is lost, and `understudy records import FILE` takes one back once it can be read. Of two
    records of one run with different content, name the one to move. A record that can be read and
    counts is not moved. Without --yes nothing is moved: what would be is listed.
    """
    site_index = index.of_folder(folder)
    unread = site_index.unread_files()
    named = {path.resolve(): path for path in files}
    kept = {(site_index.base / name).resolve(): name for name in unread}
    for resolved, path in named.items():
        if resolved not in kept:
            raise UnderstudyError(
                f"{path}: expected a record in {site_index.base} that cannot be read, or one of "
                "several with one identifier and different content"
            )
    chosen = [kept[path] for path in named]
    if not files:
        sql = "SELECT file FROM files WHERE error IS NOT NULL ORDER BY file"
        chosen = [name for (name,) in site_index.connection.execute(sql)]
    for name in chosen:
        if yes:
            click.echo(printable(f"{name} -> {store.set_aside(site_index.base, name)}"))
        else:
            click.echo(printable(unread[name]))
    if yes:
        site_index.update(site_index.base)
    click.echo(
        f"{len(chosen)} records set aside in {site_index.base / producers.SET_ASIDE}"
        if yes
        else f"{len(chosen)} records would be set aside in "
        f"{site_index.base / producers.SET_ASIDE}; --yes moves them"
    )


@command.command()
@_folder_option
@click.option("--older-than", metavar="TIME", help="Of runs before then: 400d, 60w, or a date.")
@click.option("--session", "sessions", multiple=True, help="Of one session of ReFrame.")
@click.option("--yes", is_flag=True, help="Remove them; without it, they are only listed.")
def prune(
    folder: Path | None, older_than: str | None, sessions: tuple[str, ...], yes: bool
) -> None:
    """Remove old records: those of runs that began before a time, or of sessions; with both
    options, only those of the sessions that began before the time.

    Without --yes nothing is removed: what would be is listed. Files that the store did not write,
    such as records of versions that kept them as run.json, and links, are never removed.
    """
    if older_than is None and not sessions:
        raise click.UsageError("name what to remove: --older-than TIME or --session SESSION")
    site_index = index.of_folder(folder)
    chosen = select.any_of([select.session(name, site_index) for name in sessions])
    if older_than is not None:
        old = ("time < ?", (select.start(older_than, "--older-than "),))
        chosen = select.both(chosen, old)
    rows = list(site_index.select(("file", "run", "bytes"), *chosen, copies=True))
    rows = [row for row in rows if row[0].endswith(producers.KEPT_SUFFIX)]
    freed = sum(row[2] for row in rows)
    if not yes:
        for file, _, _ in rows:
            click.echo(printable(file))
        click.echo(
            f"{len(rows)} records of {size(freed)} would be removed from {site_index.base}; --yes "
            "removes them"
        )
        return
    failed = 0
    for file, run, _ in rows:
        try:
            store.remove(site_index.base, file, run)
        except UnderstudyError as error:
            print_error(error)
            failed += 1
    site_index.update(site_index.base)
    click.echo(f"{len(rows) - failed} records removed from {site_index.base}")
    if failed:
        raise SystemExit(UNUSABLE)


@command.command()
@_folder_option
@click.option(
    "--signers",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Who may have signed the ledger: a file of allowed signers, see ssh-keygen(1).",
)
def verify(folder: Path | None, signers: Path | None) -> None:
    """Compare the records with their ledger: which were edited, removed or added since.

    The ledger is the file SHA256SUMS of the folder. The exit status is 1 if any record was, or if
    nobody of --signers signed the whole ledger, and 2 without a ledger. What `understudy records`
    removed or set aside is counted.
    """
    of = folder or store.folder()
    audit = ledger.audit(of)
    if audit is None:
        raise UnderstudyError(f"{of}: no {ledger.FILE}, which the first record that is kept makes")
    faults = [fault for fault in audit.faults if not fault.told]
    for fault in faults:
        print_error(UnderstudyError(f"{of / fault.file}: {fault.what}"))
    bad = bool(faults)
    words = f"records: {audit.records}, faults: {len(faults)}, head: {audit.head}"
    if removed := len(audit.faults) - len(faults):
        words += f", removed or set aside by commands: {removed}"
    if signers is not None:
        try:
            words += f", signed by {ledger.signer(of, signers)}"
        except UnderstudyError as error:
            print_error(error)
            bad = True
    click.echo(words)
    if bad:
        raise SystemExit(FAILED)


@command.command()
@click.argument("key", type=click.Path(path_type=Path, dir_okay=False))
@_folder_option
def sign(key: Path, folder: Path | None) -> None:
    """Sign the ledger of the records with KEY, a private key of OpenSSH.

    The signature is of all that is in the ledger then: sign again when a record was kept since.
    `understudy records verify --signers` and `understudy accept --signers` check it.
    """
    of = folder or store.folder()
    ledger.sign(of, key)
    click.echo(f"{of / ledger.SIGNATURE}: written")


@command.command("table")
@click.argument("which", nargs=-1)
@_folder_option
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, by its ending: .parquet or .csv.",
)
@click.option("-f", "--force", is_flag=True, help="Replace the output file if it exists.")
def table_(which: tuple[str, ...], folder: Path | None, output: Path, force: bool) -> None:
    """Write all samples of the runs that WHICH selects (as of list) as one tidy table."""
    from understudy.records import table as tables

    expect_not_read(output, folder=folder or store.folder())
    expect_new(output, force)
    site_index = index.of_folder(folder)
    _expect_readable(site_index)
    wanted = select.any_of([select.parse(word, site_index) for word in which])
    tables.write(site_index, output, *wanted)
    click.echo(f"{output}: written", err=True)

"""The command `understudy records migrate`: run records of measurements."""

from pathlib import Path

import click

from understudy import producers
from understudy.cli import UNUSABLE, print_error
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import RECORD_FILE, Identity, Place, Run
from understudy.errors import UnderstudyError
from understudy.producers import MEASUREMENT_FILE


@click.command("migrate")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--in-place",
    is_flag=True,
    help="Replace each file by its record, which holds the measurement word for word.",
)
@click.option("--system", help="System that the runs were made on: the files do not say it.")
@click.option("--partition", help="Partition of that system.")
@click.option("--campaign", help="Name for all these runs together.")
def command(
    files: tuple[Path, ...],
    in_place: bool,
    system: str | None,
    partition: str | None,
    campaign: str | None,
) -> None:
    """Write the run record of each measurement in FILES, which are measurements of any version,
    run records, or folders with both.

    The record of result.json is run.json beside it, that of x.json is x.run.json; a record that is
    there already stays as it is. Files that are records of this version are left alone. Commands
    read old files as they are, too: they migrate on the fly.

    The exit status is 2 if a file could not be migrated; the others are.

    Example: understudy records migrate reports/2025 --system archer2
    """
    place = Place(system=system, partition=partition)
    count = {"migrated": 0, "up to date": 0, "failed": 0}
    for path in producers.find(files):
        try:
            done = _migrate(path, place, Identity(campaign=campaign), in_place)
        except UnderstudyError as error:
            print_error(error)
            count["failed"] += 1
            continue
        if done is None:
            count["up to date"] += 1
        else:
            click.echo(f"{path} -> {done.name}")
            count["migrated"] += 1
    click.echo(", ".join(f"{n} {what}" for what, n in count.items()))
    if count["failed"]:
        raise SystemExit(UNUSABLE)


def _migrate(path: Path, place: Place, identity: Identity, in_place: bool) -> Path | None:
    """The file that was written; None where there was nothing to do."""
    row = schema.read(path, "measurement or run record")
    if schema.kind_of(row, str(path)) == "workload":
        raise UnderstudyError(
            f"{path}: is a workload; understudy describe {path} -o NEW.json writes it in the "
            "format of this version"
        )
    if row.get("schema") == runs.SCHEMA:
        producers.load(path)  # a damaged one is no success
        return None
    target = path if in_place else _beside(path)
    if target.is_symlink() and not target.exists():
        raise UnderstudyError(f"{target}: is a symbolic link to nothing; it is not replaced")
    if not in_place and target.exists():
        if runs.load(target).measurement != row:
            raise UnderstudyError(f"{target}: exists already and is the record of another run")
        return None
    record = _record(path, row, place, identity)
    runs.write(target, record, like=path)
    return target


def _record(path: Path, row: dict[str, object], place: Place, identity: Identity) -> Run:
    if schema.kind_of(row, str(path)) == runs.KIND:
        return producers.load(path)
    return producers.record(path, place=place, identity=identity)


def _beside(path: Path) -> Path:
    """Where the record of a file goes."""
    if path.name == MEASUREMENT_FILE:
        return path.with_name(RECORD_FILE)
    return path.with_name(f"{path.stem}.{RECORD_FILE}")

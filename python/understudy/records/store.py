"""The folder in which a site keeps every record: <session>/<id>.json.gz, one file for each run.

Sessions only add files, under names that no other run has, so that nothing is overwritten and
several sessions can write at a time. What finds records again is the index, which is made of the
files and can be made again; what shows that one was edited or went away is the ledger.
"""

import gzip
import json
import re
from pathlib import Path

from understudy import paths
from understudy.contracts import acknowledgements, schema
from understudy.contracts import run as runs
from understudy.contracts.run import Run
from understudy.errors import UnderstudyError
from understudy.files import write_bytes
from understudy.producers import BESIDE, SET_ASIDE
from understudy.producers import KEPT_SUFFIX as SUFFIX
from understudy.records import ledger

NO_SESSION = "by-hand"
INDEX = "index.sqlite"
OWN = (*BESIDE, acknowledgements.FILE)  # beside the sessions
LONGEST_NAME = 80


def folder() -> Path:
    """The folder of the site: UNDERSTUDY_RECORDS, else records/ of the directory for output."""
    return paths.records()


def name_of(run: Run) -> str:
    """The file of a run, relative to the folder: <session>/<id>.json.gz."""
    return f"{_safe(run.identity.session or NO_SESSION)}/{_safe(run.identity.id)}{SUFFIX}"


def _safe(text: str) -> str:
    """A file name; one of text that is no plain word, or the name of a file beside the sessions,
    ends with a hash, so that no two are one."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", text).lstrip(".-")[:LONGEST_NAME]
    is_free = plain == text and not plain.startswith(OWN)
    return plain if is_free else f"{plain or 'x'}~{schema.digest(text)[:12]}"


def keep(run: Run, into: Path | None = None) -> Path:
    """Add a record to the folder; one that is there stays. An UnderstudyError where a run of the
    same session and id has another content, and where the folder cannot be written."""
    into = folder() if into is None else into
    path = into / name_of(run)
    row = runs.to_row(run)
    text = schema.json_text(row)
    runs.from_row(schema.parse(text, str(path), "run record"), str(path))
    session_folder(run, into)
    if path.is_symlink() or path.exists():
        if schema.canonical(schema.read(path, "run record")) != schema.canonical(json.loads(text)):
            raise UnderstudyError(
                f"{path}: is the record of run {run.identity.id} with other content; it was not "
                "replaced"
            )
        return path
    data = gzip.compress(text.encode(), mtime=0)
    # The ledger first: after a kill between both, a record is missing until it is kept again.
    ledger.append(into, ledger.KEPT, name_of(run), run.identity.time, run.place.system, data)
    write_bytes(path, data)
    return path


def session_folder(run: Run, into: Path | None = None) -> Path:
    """The folder of the run's session, created where it does not exist."""
    path = ((folder() if into is None else into) / name_of(run)).parent
    if path.is_symlink():
        raise UnderstudyError(f"{path}: is a symbolic link; expected a folder of records")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(
            f"{path}: cannot be created: {error.strerror}; {paths.RECORDS_VARIABLE} names another "
            "folder for records"
        ) from None
    return path


def set_aside(of: Path, name: str) -> Path:
    """Move a file of the folder, such as a record that cannot be read, to where it does not count;
    nothing there is replaced."""
    path = of / name
    target = of / SET_ASIDE / name
    number = 1
    while target.exists() or target.is_symlink():
        number += 1
        target = of / SET_ASIDE / f"{name}~{number}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be set aside: {error.strerror}") from None
    ledger.append(of, ledger.ASIDE, name, None, None)
    return target


def aside(of: Path) -> int:
    """The number of files that were set aside."""
    return sum(path.is_file() for path in (of / SET_ASIDE).rglob("*"))


def remove(of: Path, name: str, run_id: str) -> None:
    """Remove one record that `keep` wrote, and the folder of its session where that is empty.

    An UnderstudyError for a file that the store did not make: under another name than the record
    in it has, a symbolic link, or no record of that run.
    """
    path = of / name
    if path.is_symlink():
        raise UnderstudyError(f"{path}: is a symbolic link; it was not removed")
    run = runs.load(path)
    if run.identity.id != run_id or name_of(run) != name:
        raise UnderstudyError(
            f"{path}: the store did not make this file: expected {name_of(run)}; it was not "
            "removed"
        )
    try:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be removed: {error.strerror}") from None
    ledger.append(of, ledger.REMOVED, name, run.identity.time, run.place.system)

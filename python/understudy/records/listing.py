"""Which files of a folder of records are records."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from understudy.contracts import run as runs
from understudy.errors import UnderstudyError
from understudy.producers import KEPT_SUFFIX as SUFFIX
from understudy.producers import SET_ASIDE

_TEMPORARY = re.compile(r"\..*")


def files(of: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Files of records in the folder, relative to it, with what `stat` says: <session>/<name> of
    the store, and <session>/<id>/run.json of versions that did not compress. Symbolic links,
    FIFOs and devices are left out."""
    for session in _entries(of):
        if not session.is_dir(follow_symlinks=False) or session.name == SET_ASIDE:
            continue
        for entry in _entries(Path(session.path)):
            if entry.is_dir(follow_symlinks=False):
                plain = Path(entry.path, runs.RECORD_FILE)
                if plain.is_file() and not plain.is_symlink():
                    yield f"{session.name}/{entry.name}/{plain.name}", plain.stat()
            elif entry.is_file(follow_symlinks=False) and _named(entry.name):
                yield f"{session.name}/{entry.name}", entry.stat(follow_symlinks=False)


def _named(name: str) -> bool:
    return name.endswith(SUFFIX) and not _TEMPORARY.match(name)


def _entries(of: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(of) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnderstudyError(f"{of}: cannot be listed: {error.strerror}") from None

"""The Darshan logs below a directory, and what there is besides that may hold I/O of the jobs."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import UnderstudyError

UNFINISHED = ".darshan_partial"


@dataclass(frozen=True, slots=True, kw_only=True)
class Below:
    """The logs below a directory in order of their names, and a message for each entry that is
    left out but may be a log, or hold logs."""

    logs: tuple[Path, ...]
    left_out: tuple[str, ...]


def logs_below(folder: Path) -> Below:
    """The regular files *.darshan below a directory; links to directories are not followed.

    Raises UnderstudyError where there is none.
    """
    logs: list[Path] = []
    left_out: list[str] = []

    def unreadable(error: OSError) -> None:
        left_out.append(f"{error.filename}: cannot be read: {error.strerror}")

    for name, folders, files in os.walk(folder, onerror=unreadable):
        here = Path(name)
        linked = (here / f for f in folders if _is_link(here / f))
        left_out += (f"{link}: a link to a directory, which is not followed" for link in linked)
        for path in (here / file for file in files):
            if path.name.endswith(UNFINISHED):
                left_out.append(
                    f"{path}: not yet a log: its program still runs, or ended before Darshan "
                    "completed it"
                )
            elif path.suffix == ".darshan":
                try:
                    regular = stat.S_ISREG(path.stat().st_mode)
                except OSError as error:
                    what = "broken link" if _is_link(path) else "cannot be read"
                    left_out.append(f"{path}: {what}: {error.strerror}")
                    continue
                if regular:
                    logs.append(path)
                else:
                    left_out.append(f"{path}: expected a regular file, not a FIFO or device")
    if not logs:
        more = f"; {len(left_out)} left out, such as {left_out[0]}" if left_out else ""
        raise UnderstudyError(
            f"{folder}: expected at least one file *.darshan in this directory{more}"
        )
    return Below(logs=tuple(sorted(logs)), left_out=tuple(sorted(left_out)))


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:  # in a directory that can be listed, but not searched
        return False

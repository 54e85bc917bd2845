"""Logs of very many small files, each moved whole by one rank."""

from pathlib import Path
from typing import Any

from tests.readers.cases import case
from tests.readers.synthetic import Run, flood_log

LOADER = {"epochs": 3, "files": 1000}
KINDS: dict[str, dict[str, Any]] = {
    "epochs of a loader": LOADER | {"sizes": (150_000, 150_000, 90_000, 1000)},
    "a table of contents is read first": LOADER | {"READS": 2, "BYTES_READ": 152_000},
    "files that are read in part": LOADER | {"BYTES_READ": 70_000},
    "reads that find the end": {"epochs": 2, "files": 4000, "READS": 2, "SIZE_READ_0_100": 1},
    "read once in order": {"files": 10_001, "shuffled": False},
    "sizes of all kinds": {"files": 9970, "sizes": tuple(1000 + 301 * k for k in range(997))},
    "written": {"files": 4000, "epochs": 5, "write": True, "shuffled": False},
    "written with numbers as names": {"files": 4000, "epochs": 5, "write": True, "form": b"/d/%d"},
}


class Flood(Run):
    """A run whose log is made at once."""

    def __init__(self, **flood: Any) -> None:
        super().__init__(4)
        self.flood = flood

    def log(self, path: Path) -> Path:
        return flood_log(path, 4, **self.flood)


@case(what=KINDS)
def small_files(what: str) -> Run:
    return Flood(**KINDS[what])

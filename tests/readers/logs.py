"""The logs of the folder traces/, what stood on disk after the runs, and BP files."""

import csv
from pathlib import Path

TRACES = Path(__file__).resolve().parents[2] / "traces"
ALL = sorted(TRACES.glob("*.darshan"))
PARTIAL = TRACES / "trap_partial_1200.darshan"
BP = sorted((Path(__file__).parent / "bp").glob("*.bp"))
WHOLE = [log for log in ALL if log != PARTIAL]


def truth(name: str) -> list[tuple[str, int]]:
    """Path and size of the files of a run; a path can occur for several folders."""
    with (TRACES / f"{name}.truth.csv").open(newline="") as file:
        return [(row[0], int(row[1])) for row in csv.reader(file)]

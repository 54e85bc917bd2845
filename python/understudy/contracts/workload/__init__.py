"""The workload: what an application does to storage (contract: schemas/workload.schema.json).

`types`, `program` and `workload` hold the dataclasses, `patterns` builds streams, `reading` loads
files, `program_reader` makes programs of their rows, `rules` checks what the schema cannot
express, `migration` makes patterns of the versions before. Use this package for all of them.
"""

from pathlib import Path

from understudy.contracts.workload.reading import build, is_current, load, parse
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.paths import files
from understudy.program.instructions import Occurrence, Step, Stream
from understudy.program.patterns import Dump, Operation, Pattern, Repeat, streams_of
from understudy.program.types import (
    CONFIDENCE,
    EVEN,
    MAX_DUMPS,
    MAX_RUNS,
    SCHEMA,
    TYPE_BYTES,
    Content,
    Decomposition,
    Lookups,
    Order,
    Provenance,
    Scaling,
    Source,
    Variable,
    equal_ranks,
    identifier,
    runs,
    runs_at_most,
)
from understudy.program.workload import Workload, numbers, origins, provenance_of, structures

__all__ = [
    "CONFIDENCE",
    "EVEN",
    "MAX_DUMPS",
    "MAX_RUNS",
    "SCHEMA",
    "TYPE_BYTES",
    "Content",
    "Decomposition",
    "Dump",
    "Lookups",
    "Occurrence",
    "Operation",
    "Order",
    "Pattern",
    "Provenance",
    "Repeat",
    "Scaling",
    "Source",
    "Step",
    "Stream",
    "Variable",
    "Workload",
    "build",
    "equal_ranks",
    "get",
    "identifier",
    "is_current",
    "load",
    "names",
    "numbers",
    "origins",
    "parse",
    "path_of",
    "provenance_of",
    "runs",
    "runs_at_most",
    "streams_of",
    "structures",
    "text",
]


def names() -> list[str]:
    """Names of all workloads in the plugin directories."""
    return list(files("workloads", ".json"))


def path_of(name: str) -> Path:
    """The file of a workload."""
    paths = files("workloads", ".json")
    if name not in paths:
        raise UnderstudyError(f"no workload is called {name!r}; known: {', '.join(paths)}")
    return paths[name]


def text(name: str) -> str:
    """The text of a workload as the player reads it, which reads this version only; its result
    states the SHA-256 of what it read."""
    content = read_text(path_of(name))
    return content if is_current(content) else get(name).to_text()


def get(name: str) -> Workload:
    """The workload of that name."""
    return load(path_of(name))

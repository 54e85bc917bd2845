"""The corpus: what each case is described as, and what holds for all descriptions."""

import importlib
import pkgutil
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.readers import cases
from tests.readers.logs import ALL, BP, TRACES
from tests.support.described import FOLDER, corpus, hold, text
from tests.support.folds import calls_of
from understudy.contracts.workload import Workload, numbers, parse, provenance_of, structures
from understudy.darshanlog import open_log
from understudy.inference.score.explanation import EXPLAINED, Explanation
from understudy.readers import bp, darshan

for module in pkgutil.iter_modules(cases.__path__):
    importlib.import_module(f"{cases.__name__}.{module.name}")
REAL = {f"real.{p.stem}": p for p in (*ALL, *sorted((TRACES / "cases").glob("*.darshan")))}
LOGS = sorted({*cases.CASES, *REAL})
BP_FILES = {f"bp.{p.stem}": p for p in BP}
NAMES = sorted({*LOGS, *BP_FILES})
MODULES = {"H5D": "H5D", "MPI-IO": "MPIIO", "STDIO": "STDIO", "POSIX": "POSIX"}  # from the highest
JUNK = re.compile(rb"/dev/(?!shm/)|<STD|.*(\.locktest\.|_cid-.*\.sm$)")


def test_the_corpus_has_the_cases_and_nothing_else() -> None:
    topics = {name.partition(".")[0] for name in NAMES}
    assert {path.stem for path in FOLDER.glob("*.txt")} == topics
    assert sorted(f"{topic}.{name}" for topic in topics for name in corpus(topic)) == NAMES


@pytest.mark.parametrize("name", LOGS)
def test_a_case_is_described(name: str, tmp_path: Path) -> None:
    options: dict[str, object] = {"partial": True}
    if name in REAL:
        logs = [REAL[name]]
    else:
        case = cases.CASES[name]()
        runs = case if isinstance(case, list) else [case]
        logs = [run.log(tmp_path / f"{number}.darshan") for number, run in enumerate(runs)]
        options |= runs[0].reading
    explanations: list[Explanation] = []
    workload = darshan.read(logs[0], others=logs[1:], told=explanations.append, **options)  # type: ignore[arg-type]
    valid(workload)
    explanation = explanations[0] if explanations else None
    kept = not any(re.search("records? left out", note) for note in workload.source.notes)
    if kept and explanation and explanation.of(EXPLAINED) == [*explanation.parts]:
        as_counted(workload, logs)
    hold(name, text(workload, explanation), NAMES)


@pytest.mark.parametrize("name", BP_FILES)
def test_a_bp_file_is_described(name: str) -> None:
    workload = bp.read(BP_FILES[name])
    valid(workload)
    hold(name, text(workload), NAMES)


def valid(workload: Workload) -> None:
    """It is read back as it was written, and says where each number is from."""
    written = workload.to_text()
    again = parse(written, "again")
    assert (again.streams, again.to_text()) == (workload.streams, written)
    pointers = [*numbers(workload), *structures(workload)]
    some = pointers[:: 1 + len(pointers) // 1000]
    assert [p for p in some if provenance_of(workload, p) is None] == []


def as_counted(workload: Workload, logs: list[Path]) -> None:
    """Of a log that is explained, bytes and calls are those that the highest module counted."""
    counted: Counter[str] = Counter()
    for path in logs:
        with open_log(path) as log:
            names = {
                int(i): n for ids, some in log.names() for i, n in zip(ids, some, strict=True)
            }
            above: set[bytes] = set()
            for module in (m for m in MODULES if m in log.modules):
                files: set[bytes] = set()
                for row in np.concatenate([*log.records(module)]):
                    number = int(row["id"])
                    name = names.get(number, b"").partition(b":")[0] or b"%d" % number
                    if not JUNK.match(name) and (module == "STDIO" or name not in above):
                        moved = moves_of(row, MODULES[module])
                        counted += moved
                        files |= {name} if moved else set()
                above |= files
    described: Counter[str] = Counter()
    for stream in workload.streams:
        word = stream.operation.upper()
        calls = calls_of(stream, workload.ranks).count
        described += Counter({f"{word} bytes": stream.bytes, f"{word} calls": calls})
    assert described == counted


def moves_of(row: np.void, prefix: str) -> Counter[str]:
    """Bytes and calls that a record counts."""
    moved: Counter[str] = Counter()
    kinds = ("COLL_", "INDEP_", "NB_", "SPLIT_") if prefix == "MPIIO" else ("",)
    for word, past in (("WRITE", "WRITTEN"), ("READ", "READ")):
        moved[f"{word} bytes"] = int(row[f"{prefix}_BYTES_{past}"])
        moved[f"{word} calls"] = sum(int(row[f"{prefix}_{kind}{word}S"]) for kind in kinds)
    return +moved

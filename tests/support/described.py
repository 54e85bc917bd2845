"""The corpus of descriptions: what each log of a test is described as, to be read as differences.

tests/readers/described/<module>.txt has the program of each described workload with its roles,
overheads and origins of numbers, below the names of the tests that describe it; a test that
describes several has `#2` and so on. `pytest --rewrite-described` writes what is described now.
"""

import functools
import hashlib
import os
import re
from collections import Counter, defaultdict
from pathlib import Path

from understudy.contracts.workload import Workload
from understudy.program.text import text_of

FOLDER = Path(__file__).resolve().parents[1] / "readers" / "described"
REWRITE = "--rewrite-described"
LINES = 60  # of a workload; what is longer is held by its digest

_seen: Counter[str] = Counter()
_new: dict[str, dict[str, str]] = defaultdict(dict)


@functools.cache
def corpus(module: str) -> dict[str, str]:
    """Descriptions by the names of tests."""
    path = FOLDER / f"{module}.txt"
    found: dict[str, str] = {}
    lines = path.read_text(encoding="utf-8") if path.exists() else ""
    for part in re.findall(r"((?:\n== .*)+)\n\n((?:(?!\n== ).|\n(?!\n== |== ))*)", lines):
        found |= dict.fromkeys(part[0].split("\n== ")[1:], part[1])
    return found


def text(workload: Workload) -> str:
    """The program, then each stream's role and overhead, then where numbers come from."""
    lines = text_of(workload.program).splitlines()
    for stream in workload.streams:
        overheads = [step.overhead_bytes for step in stream.steps if step.overhead_bytes]
        lines.append(f"{stream.name}: {stream.role}, overheads {overheads}")
    lines += [f"{p.path}: {p.origin} {p.confidence or ''}".rstrip() for p in workload.provenance]
    if len(lines) > LINES:
        rest = "\n".join(lines[LINES:]).encode()
        lines[LINES:] = [f"... {len(lines) - LINES} lines, {hashlib.sha256(rest).hexdigest()}"]
    return "\n".join(lines)


def described(workload: Workload) -> Workload:
    """The workload, which is that of the corpus."""
    node = os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    _seen[node] += 1
    place, _, name = node.partition("::")
    name += f"#{_seen[node]}" if _seen[node] > 1 else ""
    module, found = Path(place).stem, text(workload)
    if REWRITE in os.environ.get("PYTEST_DESCRIBED", ""):
        _new[module][name] = found
    else:
        assert found.splitlines() == corpus(module).get(name, "").splitlines(), name
    return workload


def write() -> None:
    """The corpus of the modules whose tests ran; equal descriptions once."""
    for module, made in _new.items():
        names: dict[str, list[str]] = defaultdict(list)
        for name, description in sorted(made.items()):
            names[description].append(name)
        parts = [
            "".join(f"\n== {n}" for n in of) + f"\n\n{description}\n"
            for description, of in names.items()
        ]
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{module}.txt").write_text("".join(parts), encoding="utf-8")

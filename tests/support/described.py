"""The corpus of descriptions: what each case of `tests/readers/cases` is described as.

tests/readers/described/<topic>.txt has, below the names of cases: the program; the roles and
overheads of its streams; from which counters its numbers are taken, and how sure they are; the
notes; and how far each part of the log is explained. `pytest --rewrite-described` writes what is
described now: read the difference.
"""

import functools
import hashlib
import os
import re
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from understudy.contracts.workload import Workload
from understudy.inference.score.explanation import Explanation
from understudy.program.text import text_of

FOLDER = Path(__file__).resolve().parents[1] / "readers" / "described"
REWRITE = "--rewrite-described"
LINES = 60  # of a program; what is longer is held by its digest
WIDTH = 100
SOURCE = r"\b[A-Z][A-Z0-9]+(?:_[A-Z0-9]+)*\b"  # counters and modules in a sentence

_new: dict[str, dict[str, str]] = defaultdict(dict)
_cases: set[str] = set()  # all there are


@functools.cache
def corpus(topic: str) -> dict[str, str]:
    """Descriptions by the names of cases."""
    path = FOLDER / f"{topic}.txt"
    descriptions: dict[str, str] = {}
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    for part in re.findall(r"((?:\n== .*)+)\n\n((?:(?!\n== ).|\n(?!\n== |== ))*)", text):
        descriptions |= dict.fromkeys(part[0].split("\n== ")[1:], part[1])
    return descriptions


def text(workload: Workload, explanation: Explanation | None = None) -> str:
    """All that a description says."""
    lines = text_of(workload.program).splitlines()
    if len(lines) > LINES:
        rest = "\n".join(lines[LINES:]).encode()
        lines[LINES:] = [f"... {len(lines) - LINES} lines, {hashlib.sha256(rest).hexdigest()}"]
    for stream in workload.streams:
        overheads = [step.overhead_bytes for step in stream.steps if step.overhead_bytes]
        lines.append(f"{stream.name}: {stream.role}, overheads {overheads}")
    lines += _origins(workload)
    notes = workload.source.notes if workload.source else ()
    parts = explanation.parts if explanation else ()
    states = (f"{part.name}: {part.state}" for part in parts)
    for sentence in (*(f"note: {note}" for note in notes), *states):
        lines += _wrapped(sentence)
    return "\n".join(lines)


def _origins(workload: Workload) -> Iterator[str]:
    """Pointers to numbers and the counters they are from, by origin and confidence; those of
    several streams once, with the numbers of the streams where these are not all."""
    streams: dict[tuple[str, str], list[str | None]] = defaultdict(list)
    for entry in workload.provenance:
        sources = ",".join(dict.fromkeys(re.findall(SOURCE, entry.how)))
        kind = f"{entry.origin} {entry.confidence or ''}".rstrip()
        number, path = re.fullmatch(r"(?:/streams/(\d+))?(.*)", entry.path, re.S).groups()  # type: ignore[union-attr]
        streams[kind, f"{path}({sources})" if sources else path].append(number)
    pointers: dict[str, list[str]] = defaultdict(list)
    for (kind, path), numbers in streams.items():
        of = ",".join(map(str, numbers)) if len(numbers) < len(workload.streams) else "*"
        pointers[kind].append(path if numbers == [None] else f"{of}{path}")
    for kind, paths in pointers.items():
        yield from _wrapped(f"{kind}: {' '.join(paths)}")


def _wrapped(sentence: str) -> list[str]:
    return textwrap.wrap(
        sentence,
        WIDTH,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def hold(case: str, description: str, cases: Iterable[str]) -> None:
    """The description of one of the cases is that of the corpus."""
    topic, _, name = case.partition(".")
    _cases.update(cases)
    if REWRITE in os.environ.get("PYTEST_DESCRIBED", ""):
        _new[topic][name] = description
    else:
        assert description.splitlines() == corpus(topic).get(name, "").splitlines(), case


def write() -> None:
    """The corpus with what the cases that ran are described as; equal descriptions once."""
    for topic, descriptions in _new.items():
        names: dict[str, list[str]] = defaultdict(list)
        for name, description in sorted((corpus(topic) | descriptions).items()):
            if f"{topic}.{name}" in _cases:
                names[description.rstrip("\n")].append(name)
        parts = [
            "".join(f"\n== {name}" for name in equal) + f"\n\n{description}\n"
            for description, equal in names.items()
        ]
        FOLDER.mkdir(exist_ok=True)
        (FOLDER / f"{topic}.txt").write_text("".join(parts), encoding="utf-8")

"""tests/workshop/table.md: all cases with truth, description and replica."""

import itertools
import json
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.workshop.cases import CASES, Case, known_wrong
from tests.workshop.compare import Measure, compared
from tests.workshop.live import LOGS

DOC = Path(__file__).with_name("table.md")
REPLAYED = LOGS.parent / "replayed.json"
_INTRO = """\
# Workshop

Small MPI programs, LAMMPS and GROMACS run under Darshan and strace at the same time. Each log has
its truth: what the system calls did to the files of the run. The logs and truths are in
`tests/workshop/logs`, with DXT traces (`dxt`) and without. `tests/test_workshop.py` compares each
description with its truth, anywhere; the replicas were played under Darshan on one machine.

```sh
export DARSHAN_RUNTIME=/opt/darshan        # with strace, mpicc and hdf5-openmpi
python -m tests.workshop record [CASE …]   # run the programs again
python -m tests.workshop compare [CASE …]  # truth against description
python -m tests.workshop replay [CASE …]   # play the descriptions
python -m tests.workshop table             # write this table
```

Every quantity is *right* (within 1 %), *noted* (a note or the provenance of the stream says of
this quantity that it is a guess, or what the log lacks of it; a note on another one does not
count) or *wrong*. Numbers are truth / described / replayed; calls
are those of POSIX and of stdio, before its buffer, or of a library. The truth of library calls
is not known (?).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A log: what is compared with its truth, the worst verdict, and its replica with failures."""

    case: Case
    log: Path
    measures: Sequence[Measure]
    worst: str
    replica: dict[str, Any]
    failures: Sequence[str]


def described() -> list[Described]:
    """All logs, with DXT and without."""
    replicas = json.loads(REPLAYED.read_text()) if REPLAYED.exists() else {}
    descriptions = []
    for case, ending in itertools.product(CASES, ("", ".dxt")):
        log = LOGS / f"{case.name}{ending}.darshan"
        measures, replica = compared(log, case), replicas.get(log.stem, {})
        failures = replica.get("failures", [replica.get("reason", "not played")])
        descriptions.append(
            Described(
                case=case,
                log=log,
                measures=measures,
                worst=min((m.verdict for m in measures), key=("wrong", "noted", "right").index),
                replica=replica,
                failures=[f.rstrip(".") for f in failures],
            )
        )
    return descriptions


def counts(descriptions: Sequence[Described]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """Logs and quantities by verdict, and replicas that make what their logs have."""
    logs = Counter(description.worst for description in descriptions)
    quantities = Counter(m.verdict for description in descriptions for m in description.measures)
    played = Counter(
        "above" if description.failures else "within 1 %" for description in descriptions
    )
    return logs, quantities, played


def page() -> str:
    """The whole page."""
    rows, notes = [], dict[str, int]()
    descriptions = described()
    logs, count, played = counts(descriptions)
    for description in descriptions:
        case, log = description.case, description.log
        measures, failures = description.measures, description.failures
        reasons = [*_reasons(measures, log.stem), *(f"Replica: {f}." for f in failures)]
        marks = " ".join(f"({notes.setdefault(r, len(notes) + 1)})" for r in reasons)
        rows.append(
            f"| {case.name} | {'dxt' if '.dxt' in log.name else ''} | "
            f"{' | '.join(_cells(measures, description.replica))} | {description.worst} | "
            f"{'yes' if not failures else 'no'} | {marks} |"
        )
    kinds = [f"| {case.name} | {case.kind} |" for case in CASES]
    head = (
        "| case | log | dumps | bytes | names | calls | opens | other operations | description | "
        "replica within 1 % | notes |\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    total = (
        f"Of {sum(logs.values())} logs, {logs['right']} are described right in everything, "
        f"{logs['noted']} with notes, {logs['wrong']} wrongly in something. Of "
        f"{sum(count.values())} quantities, {count['right']} are right, {count['noted']} noted "
        f"and {count['wrong']} wrong. {played['within 1 %']} of {sum(played.values())} replicas "
        "make what their logs have, within 1 % in each compared quantity (bytes, calls, sizes of "
        "calls, opens, flushes, of each interface; dumps of each stream; times within 10 %)."
    )
    listed = [
        textwrap.fill(f"{n}. {text}", 100, subsequent_indent="   ", break_on_hyphens=False)
        for text, n in notes.items()
    ]
    parts = [
        _INTRO,
        textwrap.fill(total, 100),
        "\n".join(["| case | kind |", "|---|---|", *kinds]),
        "\n".join([head, *rows]),
        "Notes:",
        "\n".join(listed),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _reasons(measures: Sequence[Measure], stem: str) -> Iterator[str]:
    """Why quantities are not right, each once."""
    told: dict[str, list[str]] = {}
    for m in measures:
        if m.verdict != "right":
            text = m.noted or f"Wrong: {known_wrong(stem).get(f'{m.stream} {m.quantity}', '')}."
            told.setdefault(text, []).append(f"{m.stream} {m.quantity}")
    for text, what in told.items():
        names = list(dict.fromkeys(w.partition(" ")[0] for w in what))
        yield f"{', '.join(names)}: {text}"


def _cells(measures: Sequence[Measure], replica: dict[str, Any]) -> Iterator[str]:
    played = Counter[str]()
    for _, quantity, _, value, _ in replica.get("rows", []):
        if value.replace(",", "").isdigit():
            played[quantity] += int(value.replace(",", ""))
    of_replica = {
        "dumps": replica.get("dumps"),
        "bytes": played["bytes written"] + played["bytes read"],
        "calls": played["writes"] + played["reads"],
        "opens": played["opens"],
    }
    for quantity in ("dumps", "bytes", "names", "calls", "opens"):
        matches = [m for m in measures if m.quantity == quantity]
        some = [f"{sum(m.truth for m in matches):,}", f"{sum(m.described for m in matches):,}"]
        last = of_replica.get(quantity)
        figures = [*(some if matches else ["?", "?"]), *([f"{last:,}"] if last else [])]
        yield " / ".join(figures)
    others = (f"{m.quantity} {m.truth:,} / {m.described:,}" for m in measures if m.stream == "all")
    yield ", ".join(others)

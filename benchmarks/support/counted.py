"""Programs recorded by Darshan without its trace (DXT), and what descriptions say of requests.

A replica from counters is judged by each kind of request that holds a tenth of the time that the
program's requests wait: it is *within* where it makes as many as one of the two runs of the
program, or between them, but for 10 %; else *named* where the description says that something of
this kind is contradicted or not known, else *silent*.
"""

import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.support.programs import Program
from understudy.errors import UnderstudyError
from understudy.inference.score.explanation import (
    CREATED,
    EXPLAINED,
    INHERITED,
    SEEKS,
    Difference,
    Explanation,
    Part,
)
from understudy.judge.fidelity.transfer import KINDS, WITHIN
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.readers import darshan
from understudy.tracing import darshan_runtime

Row = dict[str, Any]
NAMED, SILENT = "named", "silent"
SHARE = 0.1  # of the waits, which a kind holds that is judged
# Of whatever log: no counter tells of looks, removals and calls that change attributes.
ALWAYS = ("stat", "remove")
OF_WAY = {"READ": ("read",), "WRITE": ("write",), "EITHER": ("read", "write")}
OF_COUNTER = {
    "OPENS": ("open", "create"),
    "files": ("open", "create"),
    "read": ("open",),
    "written": ("open", "create"),
    "STATS": ("stat",),
    "SEEKS": ("stat",),
    "RENAME_SOURCES": ("remove",),
    "FSYNCS": ("flush",),
    "SYNCS": ("flush",),
    "FLUSHES": ("flush",),
}
OF_LACK = {
    CREATED: ("open", "create"),
    INHERITED: ("open", "create", "read", "write"),
    SEEKS: ("stat",),
}


def recorded(program: Program, work: Path, logs: Path, settings: Mapping[str, str]) -> list[Path]:
    """The logs of a program that runs in a directory, of the files in it."""
    config = logs.with_suffix(".config")
    config.write_text(f"NAME_EXCLUDE .* *\nNAME_INCLUDE ^{work}/ *\n")

    def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
        chosen = settings | environment | {"DARSHAN_CONFIG_PATH": str(config)}
        del chosen["DXT_ENABLE_IO_TRACE"]
        if "mpirun " in program.command:
            del chosen["DARSHAN_ENABLE_NONMPI"]  # one log of all ranks
        done = subprocess.run(command, env=chosen, cwd=work, capture_output=True, check=False)
        return done.returncode

    command = ["bash", "-c", program.command]
    status, recorded_logs = darshan_runtime.recorded(command, darshan_runtime.runtime(), logs, run)
    if status != 0:
        raise UnderstudyError(f"{program.command}: status {status} under Darshan")
    return recorded_logs


def described(logs: Sequence[Path], target: Path) -> Row:
    """The workload of logs, written, and what is said of it."""
    told: list[Explanation] = []
    workload = darshan.read(logs[0], others=logs[1:], name=target.stem, told=told.append)
    target.write_text(workload.to_text())
    [explanation] = told
    said: dict[str, list[str]] = {}
    for part in explanation.parts:
        for kind, text in _of_part(part):
            said.setdefault(kind, []).append(text)
    return {
        "logs": len(logs),
        "explained": explanation.share(explanation.of(EXPLAINED)),
        "said": {kind: list(dict.fromkeys(texts)) for kind, texts in said.items()},
    }


def _of_part(part: Part) -> Iterator[tuple[str, str]]:
    """Messages of a part, by kind of requests."""
    for difference in part.differences:
        text = f"{difference.what} {difference.predicted:,}, {difference.counted:,} counted"
        yield from ((kind, text) for kind in _of_difference(part, difference))
    for lack in part.unknown:
        kinds = OF_LACK.get(lack) or OF_WAY.get(part.way, ("read", "write"))
        yield from ((kind, lack) for kind in kinds)


def _of_difference(part: Part, difference: Difference) -> tuple[str, ...]:
    if part.way in OF_WAY:
        return OF_WAY[part.way]
    return next(kinds for end, kinds in OF_COUNTER.items() if difference.what.endswith(end))


def judged(case: Row) -> dict[str, str]:
    """The state of each kind that holds its share of the waits."""
    waits = {kind: case["application"][kind]["waited_s"] for kind in KINDS[:-1]}
    least = SHARE * sum(waits.values())
    states = {}
    for kind in (kind for kind, waited in waits.items() if waited > 0 and waited >= least):
        numbers = [case[arm][kind]["requests"] for arm in ("application", "again")]
        replica_requests = case["replica"][kind]["requests"]
        near = (
            (1 - LIMIT_FRACTION) * min(numbers)
            <= replica_requests
            <= (1 + LIMIT_FRACTION) * max(numbers)
        )
        named = kind in case["said"] or kind in ALWAYS
        states[kind] = WITHIN if near else NAMED if named else SILENT
    return states


def state(case: Row) -> str:
    """The worst of its kinds."""
    states = set(judged(case).values())
    return next((state for state in (SILENT, NAMED) if state in states), WITHIN)


def summary(cases: Sequence[Row]) -> str:
    """How many kinds of requests are in which state, and which are named by little."""
    states, little = Counter[str](), Counter[str]()
    for case in cases:
        for kind, state in judged(case).items():
            states[state] += 1
            said = set(case["said"].get(kind, ()))
            little["always"] += state == NAMED and not said
            little["inherited"] += state == NAMED and said == {INHERITED}
    return (
        f"Of {states.total()} kinds of requests: {states[WITHIN]} within, {states[NAMED]} named "
        f"({little['always']} by the sentence that is said of each log, {little['inherited']} by "
        f"that of redirections alone), {states[SILENT]} silent."
    )

"""The evaluator says call by call what the player does.

CALL_LOGS=1 compares all random workloads that the logs of calls are frozen of.
"""

import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest

from tests import call_logs
from tests.support import call_lines
from tests.support.keys import to_keys
from tests.support.random_workloads import Row
from tests.support.shrinking import shrunk
from understudy.contracts import workload
from understudy.contracts.workload import Workload, load
from understudy.paths import where
from understudy.program.evaluator import evaluate
from understudy.program.text import text_of
from understudy.program.workload import row_of

FROZEN = json.loads(call_logs.GOLDEN.read_text(encoding="utf-8"))
EVERY = 1 if "CALL_LOGS" in os.environ else 20
# What the player does otherwise than docs/reference/program.md says.
OF_PLAYER = []
# What is compared: calls of methods. Left out are calls on names, most of which are checks of the
# player's own (is it still the file that the run made?), and
COMPARED = re.compile(r"(open|define|i?write|i?read|sync|close) .*")
LEFT_OUT = {
    r" creates$": "",  # whether the player or the library makes a file: by options of the storage
    r" run/\S+\.made\b\S*": " made",  # which of its own files an operation opens
    r"^(define .*) rows \d+": r"\1 rows 0",  # where an appended dataset of HDF5 goes on, and
    r"_state\d+": "",  # its name where it cannot: no byte of another method depends on them
}


def compared(text: str) -> Iterator[str]:
    for line in filter(COMPARED.fullmatch, text.splitlines()):
        for pattern, other in LEFT_OUT.items():
            line = re.sub(pattern, other, line)
        yield line


def difference(shown: Workload, logs: list[Path]) -> str:
    """The first call that the player makes otherwise; empty if there is none."""
    made = {p.name: p.read_text(encoding="utf-8") for p in logs}
    for rank, found in enumerate(call_lines.lines(shown.program) if made else []):
        expected = compared(made.get(f"rank.{rank}", ""))
        for at, (mine, its) in enumerate(zip_longest(found, expected)):
            if mine != its:
                return f"rank {rank} call {at}: {mine}, but the player makes: {its}"
    return ""


def of_name(name: str) -> str:
    with TemporaryDirectory() as folder:
        logs = call_logs.logs(name, Path(folder))
        path, _ = call_logs.workload(name, Path(folder))
        found = difference(workload.load(path), logs)
    return f"{name} {found}" if found else ""


def of_row(row: Row) -> str:
    """The same of a workload that is not frozen, which the player must play."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "workload.json"
        path.write_text(json.dumps(row), encoding="utf-8")
        logs = call_logs.played(path, row["ranks"], Path(folder))
        if not logs:
            return "the player does not play it"
        return difference(workload.load(path), logs)


def test_known_differences_are_those_of_the_player() -> None:
    assert [name for name in OF_PLAYER if not of_name(name)] == []


@pytest.mark.parametrize("kind", ["workloads", "samples", "traces", "random"])
def test_calls_are_those_of_the_player(kind: str) -> None:
    named = [n for n in FROZEN if n.startswith(f"{kind}/") and FROZEN[n] != "none"]
    chosen = [n for n in (named[::EVERY] if kind == "random" else named) if n not in OF_PLAYER]
    with ThreadPoolExecutor(2) as pool:
        found = [line for line in pool.map(of_name, chosen) if line]
    if found and kind == "random":
        smallest = shrunk(call_logs.random(int(found[0].split()[0][len("random/") :])), of_row)
        found.append(text_of(workload.build(smallest, "the smallest").program))
    assert found == []


@pytest.mark.parametrize("collective", [False, True])
def test_moves_that_are_begun_are_those_of_the_player(collective: bool) -> None:
    """Beside computing, and waited for; of a set that is prepared too."""
    row = row_of(load(where("workloads") / "n-1.json"))
    row["name"], reads = "begun", 0
    for stream in row["streams"]:
        stream["method"] = "mpiio"
        for step in stream["steps"]:
            at = [k for k, i in enumerate(step["do"]) if isinstance(i, dict) and "write" in i]
            for k in at:
                step["do"][k] |= {"nonblocking": True, "collective": collective}
            step["do"][at[-1] + 1 : at[-1] + 1] = [{"compute": 0}, "wait_all"]
    reading = json.loads(json.dumps(row["streams"][0]).replace('"write":', '"read":'))
    row["sets"].append({"name": "in", "of": "all ranks", "prepared": True})
    for step in reading["steps"]:
        opened = next(i for i in step["do"] if isinstance(i, dict) and "open" in i)
        opened |= {"open": "in", "mode": "read"}
        step["do"] = [i for i in step["do"] if i not in ("remove", "rename", "sync")]
        reads += 1
    row["streams"].append(reading | {"name": "in", "role": "input"})
    assert reads
    assert of_row(row) == ""


def test_a_workload_shrinks_to_what_fails() -> None:
    """The smallest that divides a variable by a grid."""

    def fails(row: Row) -> bool:
        every = [v for s in row["streams"] for d in s["dumps"] for v in d["variables"]]
        return any(v["decomposition"]["rule"] == "grid" for v in every)

    seed = next(k for k in range(100) if fails(call_logs.random(k)))
    row = shrunk(call_logs.random(seed), fails)
    [stream] = row["streams"]
    [dump] = stream["dumps"]
    [variable] = dump["variables"]
    assert len(variable["shape"]) == 1 and variable["count"] == 1
    assert not row["provenance"] and not dump.get("operations")


def test_it_takes_no_longer_for_many_dumps_and_ranks() -> None:
    shown = json.loads(to_keys(load(where("workloads") / "n-n.json")))
    shown["ranks"] = shown["scaling"]["from_ranks"] = 1_000_000
    for stream in shown["streams"]:
        stream["dumps"] = [stream["dumps"][0] | {"repeat": {"count": 1_000_000, "period_s": 1}}]
        for variable in stream["dumps"][0]["variables"]:
            variable["decomposition"] = {"rule": "even"}
    begin = process_time()
    walks = list(evaluate(workload.build(shown, "row").program))
    assert process_time() - begin < 2
    assert sum(dumps.count for walk in walks for dumps in walk.dumps) == 2_000_000
    assert sum(len(walk.dumps) for walk in walks) < 20

"""The player makes the calls that a program says, and those that it made before, whatever its code
looks like.

PROGRAMS=20 plays so many times as many programs, others each time.
"""

import json
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

import pytest
from hypothesis import given

from tests import call_logs
from tests.support import call_lines, player
from tests.support.programs import HEADER, Row, examples, programs
from understudy.contracts.workload import build, load
from understudy.paths import where
from understudy.program.evaluator import evaluate
from understudy.program.predicted_counters import predict
from understudy.program.text import text_of
from understudy.program.workload import row_of

FROZEN = json.loads(call_logs.GOLDEN.read_text(encoding="utf-8"))
VARIABLE = {"type": "u16", "shape": [4], "transfer_bytes": 20}
MOVED = re.compile(r"(?m)^write .* bytes (\d+) runs \d+")


def test_all_are_frozen() -> None:
    assert list(FROZEN) == list(call_logs.names())


@pytest.mark.parametrize("name", FROZEN)
def test_the_calls_are_those_of_before_and_of_the_program(name: str, tmp_path: Path) -> None:
    workload = call_logs.workload(name)
    logs = call_logs.played(workload.to_text(), workload.ranks, tmp_path)
    assert call_logs.difference(workload.program, logs) == ""
    assert call_logs.digest(logs) == FROZEN[name]
    if not any(stream.operation == "read" for stream in workload.streams):
        written = sum(int(size) for log in logs.values() for size in MOVED.findall(log))
        assert written == workload.bytes > 0


@examples(60)
@given(programs())
def test_the_player_makes_the_calls_of_the_program(row: Row) -> None:
    program = build(row, "drawn").program
    with TemporaryDirectory() as folder:
        logs = call_logs.played(json.dumps(row), row["ranks"], Path(folder))
        left = [path for path in (Path(folder) / "run").rglob("*") if path.is_file()]
    assert call_logs.difference(program, logs) == "", text_of(program)
    assert left == []
    assert removed(logs) == expected_removals(row), text_of(program)


WRITES = [{"open": "s0", "mode": "keep"}, {"write": "v"} | VARIABLE]


def kept_open(ranks: int, *contents: list[Row]) -> Row:
    """A stream that closes a content only where the next is written, of two sets of files."""
    steps = [{"at": k, "do": ["begin", *content]} for k, content in enumerate(contents)]
    return HEADER | {
        "ranks": ranks,
        "scaling": {"rule": "none", "from_ranks": ranks},
        "sets": [{"name": "s0", "of": "all ranks", "index": 2}],
        "streams": [
            {"name": "s0", "role": "output", "method": "posix", "close_last": True, "steps": steps}
        ],
    }


def test_a_content_of_operations_alone_has_no_files_that_stay_open(tmp_path: Path) -> None:
    """Nothing is closed behind it, and its operations are on files of their own."""
    operates = [{"operate": kind, "runs": [[2, 1]]} for kind in ("open", "seek")]
    row = kept_open(2, WRITES, operates, WRITES, WRITES)
    logs = call_logs.played(json.dumps(row), 2, tmp_path)
    assert call_logs.difference(build(row, "row").program, logs) == ""


def test_a_dump_without_calls_is_when_it_was_due(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(json.dumps(kept_open(1, WRITES, [], [], [])))
    played = player.play(tmp_path / "w.json", 1, tmp_path / "data", "--time-scale", "0.01")
    [_, dump, *_] = played.repetitions[0].streams[0].dumps
    assert (dump.start_s, dump.elapsed_s, dump.phases) == (0.01, 0.0, ())


DATA = re.compile(r"(s\d+)(?!\.made)(\..*)?")


def removed(logs: dict[str, str]) -> Counter[str]:
    """How often data files are removed, or renamed to their backups, by all ranks together."""
    lines = [line.split() for log in logs.values() for line in log.splitlines()]
    names = [Path(words[1]).name for words in lines if words[0] in ("remove", "rename")]
    return Counter(n for n in names if DATA.fullmatch(n) and not n.endswith(".backup"))


def expected_removals(row: Row) -> Counter[str]:
    """Each file once at the end, and before each time that it is made again."""
    makes = Counter[str]()
    for rank in call_lines.lines(build(row, "drawn").program):
        opened = [line.split()[1] for line in rank if re.match(r"open \S+ create", line)]
        makes |= Counter(Path(path).name for path in opened)
    again = {s["name"] for s in row["streams"] if re.search('"(remove|rename)", {', json.dumps(s))}
    data = ((name, DATA.fullmatch(name), count) for name, count in makes.items())
    return Counter({n: count if match[1] in again else 1 for n, match, count in data if match})


@pytest.mark.parametrize("count", [1_000_000])
def test_it_takes_no_longer_for_many_dumps_and_ranks(count: int) -> None:
    row = row_of(load(where("workloads") / "n-n.json"))
    row["ranks"] = row["scaling"]["from_ranks"] = count
    for stream in row["streams"]:
        stream["steps"] = [stream["steps"][0] | {"repeat": count, "every": 1}]
        for move in stream["steps"][0]["do"]:
            if "write" in move:
                move.pop("split", None)
    program = build(row, "row").program
    begin = process_time()
    walks, [checkpoint, _] = list(evaluate(program)), predict(program)
    assert process_time() - begin < 4
    assert sum(dumps.count for walk in walks for dumps in walk.dumps) == 2 * count
    assert sum(len(walk.dumps) for walk in walks) < 20
    assert checkpoint.calls["POSIX"]["POSIX_BYTES_WRITTEN"] == program.streams[0].bytes

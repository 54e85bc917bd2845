"""Workloads of instructions (understudy/workload/3) that a person writes: what is refused of them,
and by what message."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import call_lines, refused
from tests.support.both_readers import answers, read
from tests.support.keys import to_keys
from tests.support.programs import HEADER
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts.workload import build, load
from understudy.errors import UnderstudyError
from understudy.paths import ROOT

OPEN = {"open": "checkpoint", "mode": "truncate"}
FIELD = {"write": "field", "type": "f64", "shape": [64, 32], "transfer_bytes": 4096}
LINE = {"write": "line", "type": "byte", "shape": [532], "transfer_bytes": 133}
CHECKPOINT = ["begin", OPEN, FIELD | {"collective": True}, "sync", "close"]
STAT = {"operate": "stat", "runs": [[4, 1]]}
LOG: list[Any] = [{"open": "log", "mode": "keep"}, LINE]
APP: dict[str, Any] = HEADER | {
    "sets": [
        {"name": "checkpoint", "of": "all ranks", "index": 2},
        {"name": "log", "of": "each rank", "index": "none"},
    ],
    "streams": [
        {"name": "checkpoint", "role": "checkpoint", "method": "mpiio"}
        | {"steps": [{"at": 0.5, "repeat": 3, "every": 1, "do": CHECKPOINT}]},
        {"name": "log", "role": "output", "method": "stdio", "close_last": True}
        | {"steps": [{"at": 0, "repeat": 5, "every": 1, "do": LOG}]},
    ],
}


def test_a_program_of_a_person() -> None:
    described = build(APP, "app.json")
    assert described.stream("log").files == "append"
    assert described.bytes == 3 * 64 * 32 * 8 + 5 * 532


def test_a_library_that_keeps_bytes_is_flushed_behind_all_runs_of_writes() -> None:
    """Also where the program flushes some of them itself."""
    row = deepcopy(APP)
    row["streams"][1]["steps"][0]["do"] = [*LOG, "sync", LINE | {"write": "more"}]
    for lines in call_lines.lines(build(row, "app.json").program):
        calls = [line.split()[0] for line in lines if " run/log." in line]
        assert calls == ["open", *["write", "sync"] * 10, "close"]


@pytest.mark.parametrize(("place", "value", "message"), refused.cases("program"))
def test_what_is_wrong_is_named(place: str, value: Any, message: str) -> None:
    row = refused.altered(APP, place, value)
    with pytest.raises(UnderstudyError) as error:
        build(row, "app.json")
    assert str(error.value).startswith(f"app.json: {message}"), error.value


def test_turns_have_the_open_of_their_step() -> None:
    row = json.loads((ROOT / "proxies/tests/samples/turns.json").read_text())
    body = row["streams"][0]["steps"][0]["do"]
    turns = next(i for i, instruction in enumerate(body) if "in_turn" in instruction)
    assert "open" in body[turns]["in_turn"][0]
    body.insert(turns, body[turns]["in_turn"].pop(0))
    with raises(UnderstudyError, "turns-open"):
        build(row, "app.json")
    assert said("turns-open", answers([row])[0])


@pytest.mark.parametrize(("place", "value", "message"), refused.cases("program_by_player"))
def test_the_player_says_which_rule_is_broken(place: str, value: Any, message: str) -> None:
    assert message in answers([refused.altered(APP, place, value)])[0]


NAMES = [  # of variables and their counts, and whether they may be together
    ({"v": 3, "v_1": 1}, False),
    ({"v_1": 1, "v": 3}, False),
    ({"v": 3, "v_3": 1}, True),
    ({"v": 3, "v_01": 1}, True),
    ({"v": 3, "v_1": 2}, True),
    ({"v": 1, "v_0": 1}, True),
    ({"v": 3, "v_1x": 1}, True),
    ({"v_1": 3, "v_1_2": 1}, False),
    ({"_": 1}, False),
    ({"v\n": 1}, False),
    ({"v": 2, "v_-0": 1}, True),
    ({"v.": 1}, True),
]


@pytest.mark.parametrize(("counts", "good"), NAMES, ids=[repr(list(c)) for c, _ in NAMES])
def test_both_agree_on_names(counts: dict[str, int], good: bool) -> None:
    """Also on those that the numbers of a count give."""
    moves = [FIELD | {"write": name, "count": count} for name, count in counts.items()]
    row = refused.altered(APP, "streams/0/steps/0/do", ["begin", OPEN, *moves, "close"])
    [answer] = answers([row])
    assert (read(row) == "ok", answer == "ok") == (good, good), answer


def test_a_step_may_have_many_operations() -> None:
    row = refused.altered(APP, "streams/1/steps/0/do", [*LOG, *[STAT] * 4097])
    assert (read(row), answers([row])) == ("ok", ["ok"])


def test_describe_makes_instructions_of_keys(tmp_path: Path) -> None:
    path, source = tmp_path / "app.json", ROOT / "workloads" / "n-m.json"
    path.write_text(to_keys(load(source)), encoding="utf-8")
    done = CliRunner().invoke(main, ["describe", str(path)])
    assert done.exit_code == 0, done.output
    assert done.stdout == source.read_text(encoding="utf-8")

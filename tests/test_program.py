"""Workloads of instructions (understudy/workload/3): Python makes them of keys and reads them
back, and the player carries them out."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from tests import random_workloads as both
from tests.support import refused
from tests.support.keys import to_keys
from tests.support.random_workloads import valid
from understudy.cli import main
from understudy.contracts.workload import SCHEMA, build, load
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.program.workload import row_of

COUNT = 400
OURS = [*(ROOT / "workloads").glob("*.json"), *(ROOT / "proxies/tests/samples").glob("*.json")]
HEADER = {
    "schema": SCHEMA,
    "name": "app",
    "description": "",
    "ranks": 4,
    "scaling": {"rule": "none", "from_ranks": 4},
    "runtime_s": None,
    "compute": "sleep",
    "source": {"format": "hand", "version": "", "reader": "", "notes": []},
    "provenance": [],
}
FIELD = {"type": "f64", "shape": [64, 32], "transfer_bytes": 4096}
APP = HEADER | {
    "sets": [
        {"name": "checkpoint", "of": "all ranks", "index": 2},
        {"name": "log", "of": "each rank", "index": "none"},
    ],
    "streams": [
        {
            "name": "checkpoint",
            "role": "checkpoint",
            "method": "mpiio",
            "steps": [
                {
                    "at": 0.5,
                    "repeat": 3,
                    "every": 1,
                    "do": [
                        "begin",
                        {"open": "checkpoint", "mode": "truncate"},
                        {"write": "field", **FIELD, "collective": True},
                        "sync",
                        "close",
                    ],
                }
            ],
        },
        {
            "name": "log",
            "role": "output",
            "method": "stdio",
            "close_last": True,
            "steps": [
                {
                    "at": 0,
                    "repeat": 5,
                    "every": 1,
                    "do": [
                        {"open": "log", "mode": "keep"},
                        {"write": "line", "type": "byte", "shape": [532], "transfer_bytes": 133},
                    ],
                }
            ],
        },
    ],
}


def rows(count: int = COUNT) -> Iterator[dict[str, Any]]:
    for path in OURS:
        yield json.loads(path.read_text(encoding="utf-8"))
    yield from (valid(Random(f"program {seed}")) for seed in range(count))


def test_instructions_become_the_keys_that_mean_them() -> None:
    for row in rows():
        described = build(row, "workload")
        again = build(row_of(described), "program")
        assert again.ranks == described.ranks
        assert again.bytes == described.bytes
        assert [s.label for s in again.streams] == [s.label for s in described.streams]
        assert row_of(again)["sets"] == row_of(described)["sets"]


def test_the_player_reads_what_the_keys_mean() -> None:
    texts = [json.dumps(row_of(build(row, "workload"))) for row in rows()]
    assert set(both.answers(texts)) == {"ok"}


def test_a_program_of_a_person() -> None:
    described = build(APP, "app.json")
    assert described.stream("log").files == "append"
    assert described.bytes == 3 * 64 * 32 * 8 + 5 * 532
    assert both.answers([json.dumps(APP)]) == ["ok"]


def test_damaged_programs_are_refused_or_read_by_both() -> None:
    """What the keys can say, the player carries out; nothing makes either side fail otherwise."""
    rng = Random("damaged programs")
    given = [both.damaged(rng, APP) for _ in range(300)]
    found = both.answers([json.dumps(row) for row in given])
    verdicts = {both.verdict(both.read(row), its) for row, its in zip(given, found, strict=True)}
    assert verdicts == set(both.GOOD)


@pytest.mark.parametrize(("place", "value", "message"), refused.cases("program"))
def test_what_is_wrong_is_named(place: str, value: Any, message: str) -> None:
    row = refused.altered(APP, place, value)
    with pytest.raises(UnderstudyError) as error:
        build(row, "app.json")
    assert str(error.value).startswith(f"app.json: {message}"), error.value


@pytest.mark.parametrize(("place", "value", "message"), refused.cases("program_by_player"))
def test_the_player_says_which_rule_is_broken(place: str, value: Any, message: str) -> None:
    row = refused.altered(APP, place, value)
    (its,) = both.answers([json.dumps(row)])
    assert message in its


def test_describe_makes_instructions_of_keys(tmp_path: Path) -> None:
    path, source = tmp_path / "app.json", ROOT / "workloads" / "n-m.json"
    path.write_text(to_keys(load(source)), encoding="utf-8")
    done = CliRunner().invoke(main, ["describe", str(path)])
    assert done.exit_code == 0, done.output
    assert done.stdout == source.read_text(encoding="utf-8")

"""Python and C accept the same workloads.

RANDOM_WORKLOADS=100000 compares so many of each kind (or tests/random_workloads.py, which also
starts at any seed).
"""

import json
import os
from itertools import combinations
from random import Random

import pytest

from tests import random_workloads as both
from tests.support.random_workloads import PAIRED, Limits, Row, valid
from understudy.contracts.workload import build, parse
from understudy.errors import UnderstudyError
from understudy.program.workload import row_of

COUNT = int(os.environ.get("RANDOM_WORKLOADS", "2000"))


@pytest.mark.parametrize("kind", both.KINDS)
def test_both_sides_read_alike(kind: str) -> None:
    counts, wrong = both.compare(kind, 0, COUNT)
    assert wrong == []
    assert sum(counts.values()) == COUNT
    if kind == "valid":
        assert counts["accepted"] == COUNT
    else:
        assert counts["refused"] > COUNT // 2


# What no valid stream combines: pairs, and one of a pair of which the other is any of several.
NEVER = {
    *combinations(sorted(p for p in PAIRED if p.startswith("files ")), 2),
    *combinations(sorted(p for p in PAIRED if p.startswith("layout ")), 2),
    ("operation read", "operation write"),
    ("reopen false", "reopen true"),
}
EXCLUDED = {
    "names": ("files new", "files append"),
    "reopen false": ("files new", "files rewrite"),
    "removes": ("files new", "files append", "files update"),
    "continues": ("files append", "reopen false", "operation read"),
    "turns": ("files append", "files rewrite", "files update", "continues", "at", "removes"),
    "passes": ("operation write",),
    "extends": ("files append", "files update", "reopen false", "continues", "turns", "reads"),
    "reads": ("files new", "files append", "files rewrite", "operation write", "names", "removes"),
    "operation read": ("files rewrite",),
    "own_directories": ("layout shared", "layout flood"),
    "layout flood": ("files append", "files rewrite", "at", "continues"),
}
EXCLUDED["names"] += ("turns",)
EXCLUDED["removes"] += ("operation read", "layout flood", "reopen false")
EXCLUDED["turns"] += ("layout file-per-process", "layout flood", "names", "reopen false", "reads")
EXCLUDED["passes"] += ("continues", "removes", "files rewrite")
EXCLUDED["reads"] += ("layout flood", "reopen false", "own_directories", "continues", "turns")
EXCLUDED["extends"] += ("layout flood",)
EXCLUDED["extends twice"] = EXCLUDED["extends"]


def test_all_features_are_combined() -> None:
    single, pairs = both.usage(4000)
    assert all(single[name] >= 50 for name in PAIRED), single
    never = NEVER | {tuple(sorted((a, b))) for a, others in EXCLUDED.items() for b in others}
    possible = {pair for pair in combinations(sorted(PAIRED), 2) if pair not in never}
    assert sorted(pair for pair in possible if not pairs[pair]) == []
    assert not any(pairs[pair] for pair in never if set(pair) <= PAIRED)


def test_limits_keep_workloads_small() -> None:
    limits = Limits(ranks=4, streams=2, bytes=64, long_repeat=50)
    made = [build(valid(Random(f"small {seed}"), limits), "workload") for seed in range(200)]
    assert max(w.ranks for w in made) == 4
    assert max(len(w.streams) for w in made) == 2
    assert max(s.dump_count for w in made for s in w.streams) <= 5 * 50


def _stream(name: str, dumps: list[Row], **keys: object) -> Row:
    """A stream of one rank."""
    row: Row = {
        **{"name": name, "label": "", "role": "output", "operation": "write", "files": "new"},
        **{"layout": "shared", "groups": None, "method": "posix", "transfer_bytes": 8},
        **{"collective": False, "sync": False, "turns": False},
        "content": {"kind": "zero", "compressibility": 0},
    }
    return row | keys | {"dumps": dumps}


def _dump(time_s: float, *variables: Row, **keys: object) -> Row:
    row = {"time_s": time_s, "duration_s": None, "overhead_bytes": None}
    return row | keys | {"variables": list(variables)}


def _variable(name: str, elements: int, **keys: object) -> Row:
    row: Row = {"name": name, "label": "", "count": 1, "type": "byte", "shape": [elements]}
    return row | {"decomposition": {"rule": "even"}, "file": 0} | keys


def _text(*streams: Row, description: str = "") -> str:
    row = valid(Random("base"))
    row |= {"description": description, "ranks": 1, "streams": list(streams)}
    return json.dumps(row | {"scaling": {"rule": "none", "from_ranks": 1}})


A, B = _variable("a", 8), _variable("b", 8)
READS = {"operation": "read", "files": "update", "reads": "s"}
STAT = {"operation": "stat", "runs": [[1, 1]]}
TWICE = {"repeat": {"count": 2, "period_s": 1}}
# Once a reader accepted what another refused, or named another key or index.
ONCE = {
    "a variable in the place of one of an earlier dump of appended files": (
        _text(_stream("s", [_dump(0, A), _dump(1, A | {"at": "a"})], files="append")),
        "ok",
    ),
    "a read beyond the end of the files": (
        _text(_stream("s", [_dump(0, A)]), _stream("r", [_dump(0, _variable("c", 9))], **READS)),
        "streams[1].dumps[0].variables: expected at most 8 bytes of file 0 by then",
    ),
    "a read of what is there, once more bytes are appended": (
        _text(
            _stream("s", [_dump(0, A, repeat={"count": 3, "period_s": 1})], files="append"),
            _stream("r", [_dump(2, _variable("c", 24))], **READS),
        ),
        "ok",
    ),
    "a read of what is there, once more bytes are continued": (
        _text(
            _stream(
                "s", [_dump(0, A), _dump(0, A, continues=True, repeat={"count": 4, "period_s": 1})]
            ),
            _stream("r", [_dump(3, _variable("c", 40))], **READS),
        ),
        "ok",
    ),
    "a read that finds other files when it is repeated": (
        _text(
            _stream("s", [_dump(0, A), _dump(1, B)]),
            _stream("r", [_dump(0, A | {"at": "a"}, **TWICE)], **READS),
        ),
        "streams[1].dumps[0].variables[0].at: ",
    ),
    "a place that the repetition before has given away": (
        _text(
            _stream(
                "s",
                [
                    _dump(0, _variable("a", 100)),
                    _dump(1, _variable("b", 100, at="a"), _variable("a", 7), continues=True)
                    | {"repeat": {"count": 2, "period_s": 1}},
                ],
            )
        ),
        "streams[0].dumps[1].variables[0].at: ",
    ),
    "a place that the dump before has given away": (
        _text(
            _stream(
                "s",
                [
                    _dump(0, _variable("a", 100)),
                    *(
                        _dump(n, _variable("b", 100, at="a"), _variable("a", 7), continues=True)
                        for n in (1, 2)
                    ),
                ],
            )
        ),
        "streams[0].dumps[2].variables[0].at: ",
    ),
    "many operations": (_text(_stream("s", [_dump(0, operations=[STAT] * 4097)])), "ok"),
    "a string with U+0000": (_text(_stream("s", [_dump(0, A)]), description="\0"), ""),
    "seconds that are an integer of more than 64 bits": (
        _text(_stream("s", [_dump(1 << 63, A)])),
        "",
    ),
    "a fault behind repeated dumps": (
        _text(_stream("s", [_dump(0, A, **TWICE), _dump(2, A | {"at": "b"})])),
        "streams[0].dumps[1].variables[0].at: ",
    ),
    "a fault of a stream that extends another": (
        _text(
            _stream("s", [_dump(0, A)]),
            _stream("t", [_dump(0, A | {"at": "b"})], extends="s"),
        ),
        "streams[1].dumps[0].variables[0].at: ",
    ),
    "dumps of an extended stream that continue": (
        _text(
            _stream("s", [_dump(0, A), _dump(0, B, continues=True)]),
            _stream("t", [_dump(0, A), _dump(0, B)], extends="s"),
        ),
        "streams[1].extends: ",
    ),
    "a variable with collective calls in turns": (
        _text(_stream("s", [_dump(0, A | {"collective": True})], turns=True)),
        "streams[0].dumps[0].variables[0].collective: ",
    ),
}


@pytest.mark.parametrize("what", ONCE)
def test_cases_that_differed_once(what: str) -> None:
    text, expected = ONCE[what]
    if expected == "ok":
        assert both.answers([json.dumps(row_of(parse(text, "workload")))]) == ["ok"]
        return
    with pytest.raises(UnderstudyError) as error:
        parse(text, "workload")
    assert str(error.value).startswith(f"workload: {expected}")

"""The kinds of streams and dumps of understudy/workload/2, and the migration to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.support import refused
from tests.support.folds import calls_of, open_at, opens_of, prepared_opens, stored_bytes
from tests.support.keys import to_keys
from tests.support.programs import examples
from tests.support.said import raises
from understudy.cli import main
from understudy.contracts.workload import (
    Decomposition,
    Stream,
    Variable,
    Workload,
    load,
    parse,
    provenance_of,
)
from understudy.errors import UnderstudyError
from understudy.export import expected
from understudy.model.scaling import scale
from understudy.paths import ROOT, where
from understudy.program.rules import check
from understudy.program.types import KEYS

FIXTURES = sorted((where("schemas") / "old" / "fixtures" / "workload-1").glob("*.json"))
assert len(FIXTURES) >= 5
PLAIN = json.loads(to_keys(load(ROOT / "proxies" / "tests" / "samples" / "single.json")))
VARIABLE = {
    "name": "v",
    "label": "",
    "count": 1,
    "type": "f64",
    "shape": [40, 3],
    "decomposition": {"rule": "even"},
    "file": 0,
}


def dump(**keys: Any) -> dict[str, Any]:
    return {
        "time_s": 0.0,
        "duration_s": None,
        "overhead_bytes": None,
        "variables": [VARIABLE],
        **keys,
    }


def stream(**keys: Any) -> dict[str, Any]:
    plain = {k: v for k, v in PLAIN["streams"][0].items() if k != "dumps"}
    plain |= {
        "name": "s",
        "operation": "write",
        "files": "new",
        "layout": "shared",
        "groups": None,
        "method": "posix",
        "transfer_bytes": 96,
        "collective": False,
        "turns": False,
    }
    return plain | {"dumps": [dump()]} | keys


def text(*streams: dict[str, Any]) -> str:
    return json.dumps(
        PLAIN | {"ranks": 4, "scaling": {"rule": "none", "from_ranks": 4}, "streams": streams}
    )


def made(*streams: dict[str, Any]) -> Workload:
    return parse(text(*streams), "w.json")


def only(**keys: Any) -> Stream:
    return made(stream(**keys)).streams[0]


EACH = {"repeat": {"count": 5, "period_s": 0.5}}


def test_what_is_the_default_is_not_written() -> None:
    given = {
        "names": 1,
        "reopen": True,
        "extends": None,
        "order": {"rule": "consecutive"},
        "passes": 1,
        "pace": "burst",
        "direct": False,
        "sync_bytes": None,
        "write_through": False,
        "lookups": None,
        "files_per_directory": None,
        "removes": False,
        "backup": False,
        "own_directories": False,
        "reads": None,
        "dumps": [
            dump(operations=[], compute_s=0, continues=False, skew=[])
            | {"variables": [VARIABLE | {"at": None}]}
        ],
    }
    assert made(stream(**given)) == made(stream())
    assert set(json.loads(to_keys(made(stream(**given))))["streams"][0]) == set(stream())


TURN = {"time_s": 1.0, "continues": True}
AT = VARIABLE | {"at": "v"}
BASE = stream(name="base")
READER = {"operation": "read", "files": "update", "reads": "base"}
EDITED = {
    "stream": text(stream()),
    "extension": text(BASE, stream(name="more", extends="base")),
    "continued": text(stream(dumps=[dump(), dump(**TURN)])),
    "reader": text(BASE, stream(name="more", **READER)),
}


@pytest.mark.parametrize(("of", "edits", "message"), refused.cases("streams"))
def test_keys_that_do_not_go_together_are_one_message(
    of: str, edits: dict[str, Any], message: str
) -> None:
    row = json.loads(EDITED[of])
    for place, value in edits.items():
        row = refused.altered(row, place, value)
    with pytest.raises(UnderstudyError) as error:
        parse(json.dumps(row), "w.json")
    assert str(error.value).startswith(f"w.json: {message}"), error.value
    assert "\n" not in str(error.value)


def test_the_dumps_of_all_streams_are_limited_together() -> None:
    many = [dump(repeat={"count": 10**7 - 1, "period_s": 1})]
    with raises(UnderstudyError, "streams-expected-most-dumps"):
        made(stream(dumps=many), stream(name="more", dumps=many))


def test_what_is_read_and_written_in_turn_is_opened_and_stored_once() -> None:
    again = {"variables": [AT, VARIABLE | {"name": "w"}]}
    base, reader = made(
        stream(
            name="base", files="rewrite", dumps=[dump(), dump(**TURN, **again), dump(time_s=2)]
        ),
        stream(name="more", dumps=[dump(time_s=t, variables=[AT]) for t in (0.5, 1.5)], **READER),
    ).streams
    assert (base.bytes, *(stored_bytes(s) for s in (base, reader))) == (4 * 960, 2 * 960, 0)
    assert open_at(base, [0.5, 1.5]) == [True, False]
    assert (opens_of(base, 4), opens_of(reader, 4, base)) == (8, 4)
    assert prepared_opens(reader, 4) == (0, 0)
    scaled = scale(made(BASE, stream(name="more", **READER)), 8, "weak")
    assert parse(to_keys(scaled), "scaled").streams[1].last == "base"


@pytest.mark.parametrize(
    "keys",
    [
        {"files": "rewrite"},
        {"files": "update", "reopen": False},
        {"files": "append"},
        {"files": "update", "reopen": False, "names": 2},
    ],
    ids=str,
)
def test_files_are_open_between_repeated_dumps_as_between_others(keys: dict[str, Any]) -> None:
    turn = dump(time_s=4, continues=keys["files"] == "rewrite")
    base = only(**keys, dumps=[dump(**EACH), turn, dump(time_s=5, **EACH)])
    times = [k / 8 for k in range(-1, 70)]
    starts = [e.time_s for e in base.expanded()]
    dumps = [e.dump for e in base.expanded()]
    behind = [sum(start <= time for start in starts) for time in times]
    lent = keys == {"files": "update", "reopen": False}
    last = len(dumps) - base.names  # behind the next dump, the set of the content is closed
    assert open_at(base, times) == [
        n > 0 and (lent if n == len(dumps) else (base.closes and n <= last) or dumps[n].continues)
        for n in behind
    ]


@pytest.mark.parametrize("count", [2, 3, 9_000_000])
def test_what_repeated_dumps_appended_can_be_read(count: int) -> None:
    """However many they are: they are not gone through one by one."""
    many = dump(repeat={"count": count, "period_s": 1e-9})
    base = stream(name="base", files="append", dumps=[many, dump(time_s=2)])
    for whole, time_s in ((count, 1), (count + 1, 3)):
        rows = [VARIABLE | {"shape": [40 * whole, 3]}, VARIABLE | {"shape": [40 * whole + 1, 3]}]
        fits, beyond = (
            stream(name="more", dumps=[dump(time_s=time_s, variables=[row])], **READER)
            for row in rows
        )
        assert made(base, fits).streams[1].bytes == whole * 960
        with pytest.raises(UnderstudyError, match=f"at most {whole * 960} bytes of file 0"):
            made(base, beyond)


def test_a_stream_is_extended_once() -> None:
    second = stream(name="second", extends="base")
    assert made(BASE, second, stream(name="third", extends="second")).bytes == 3 * 960
    with raises(UnderstudyError, "streams-extends-expected-stream"):
        made(BASE, second, stream(name="third", extends="base"))


# -- bytes and times ------------------------------------------------------------------------------


def test_a_repeated_dump_counts_as_often() -> None:
    many = only(dumps=[dump(**EACH), dump(time_s=7)])
    assert (many.dump_count, many.bytes, many.last_s) == (6, 6 * 960, 7)
    assert [e.time_s for e in many.expanded()] == [0, 0.5, 1, 1.5, 2, 7]
    assert calls_of(many, 4).count == 6 * calls_of(only(), 4).count


def test_passes_move_bytes_and_do_not_store_them() -> None:
    many = only(operation="read", passes=3)
    assert (many.bytes, stored_bytes(many)) == (3 * 960, 960)
    assert [e.bytes for e in many.expanded()] == [3 * 960]
    assert calls_of(many, 4).count == 3 * calls_of(only(operation="read"), 4).count


def test_what_is_rewritten_is_stored_once() -> None:
    small = dump(variables=[VARIABLE | {"shape": [4, 3]}])
    dumps = [small, dump(**EACH)]
    again, two = (only(files=f, names=n, dumps=dumps) for f, n in (("rewrite", 1), ("update", 2)))
    assert (stored_bytes(again), stored_bytes(two)) == (960, 2 * 960)
    assert stored_bytes(only(dumps=dumps)) == again.bytes == 5 * 960 + 96


@examples(60)
@given(rows=st.integers(1, 60), block=st.integers(1, 20))
def test_cyclic_rows_are_dealt_in_turn(rows: int, block: int) -> None:
    by_hand = [sum(row // block % 4 == rank for row in range(rows)) for rank in range(4)]
    cyclic = Decomposition(rule="cyclic", block=block)
    variable = Variable(name="v", type="byte", shape=(rows,), decomposition=cyclic)
    assert [size for n, size in variable.rank_runs(4) for _ in range(n)] == by_hand


def test_calls_never_cross_a_block_or_a_file() -> None:
    rows = VARIABLE | {"decomposition": {"rule": "cyclic", "block": 3}}  # 24 B a row, 4 a call
    assert calls_of(only(dumps=[dump(variables=[rows])]), 4).count == 14
    assert calls_of(only(layout="flood"), 4).count == 40


def test_an_archive_expects_every_dump() -> None:
    row = expected(made(stream(dumps=[dump(**EACH)])), b"")
    assert row["streams"][0]["dumps"][4] == {"dump": 4, "bytes": 960}
    assert row["bytes"] == 5 * 960


def test_show_folds_a_repeated_dump(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text(text(stream(dumps=[dump(**EACH)])))
    done = CliRunner().invoke(main, ["show", str(tmp_path / "w.json")])
    assert done.exit_code == 0, done.output
    assert "0 to 4" in done.output and "every 500 ms" in done.output


# -- migration ------------------------------------------------------------------------------------


def move_each_by_itself(row: dict[str, Any]) -> None:
    """State of each variable what it has of its stream."""
    for key in ("transfer_bytes", "collective"):
        value = row.pop(key)
        for dump_ in row["dumps"]:
            for variable in dump_["variables"]:
                variable.setdefault(key, value)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_an_old_descriptor_is_read_and_rewritten(path: Path, tmp_path: Path) -> None:
    old = json.loads(path.read_text())
    read = load(path)
    new = json.loads(to_keys(read))
    assert new["schema"] == KEYS != old["schema"]
    assert parse(to_keys(read), "again") == read
    for row in (old, new):
        for stream_ in row["streams"]:
            move_each_by_itself(stream_)
    assert {k: v for k, v in new.items() if k not in ("schema", "provenance")} == {
        k: v for k, v in old.items() if k not in ("schema", "provenance")
    }
    assert [{k: v for k, v in p.items() if k != "confidence"} for p in new["provenance"]] == (
        old["provenance"]
    )
    check(read, "again")
    target = tmp_path / path.name
    for source in (path, target):
        done = CliRunner().invoke(main, ["describe", str(source), "-f", "-o", str(target)])
        assert done.exit_code == 0, done.output
        assert target.read_text() == read.to_text()


def test_confidence_follows_from_the_origin() -> None:
    read = load(next(p for p in FIXTURES if p.stem == "darshan"))
    by_origin = {p.origin: p.confidence for p in read.provenance}
    assert by_origin["read"] == by_origin["derived"] == "certain"
    assert by_origin["assumed"] == "guess"
    assert provenance_of(read, "/ranks").confidence == "certain"  # type: ignore[union-attr]


def test_a_new_key_is_unknown_to_the_old_contract(tmp_path: Path) -> None:
    row = json.loads(FIXTURES[0].read_text())
    row["streams"][0]["names"] = 2
    with raises(UnderstudyError, "streams-key-names-unknown"):
        parse(json.dumps(row), "w.json")

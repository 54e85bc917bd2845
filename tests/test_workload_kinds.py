"""The kinds of streams and dumps of understudy/workload/2, and the migration to it."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.folds import calls_of, open_at, opens_of, prepared_opens, stored_bytes
from tests.support.keys import to_keys
from tests.support.said import raises
from understudy.cli import main
from understudy.contracts.workload import Stream, Workload, load, parse, provenance_of
from understudy.errors import UnderstudyError
from understudy.export import expected
from understudy.model.scaling import scale
from understudy.paths import ROOT, where
from understudy.program.rules import check
from understudy.program.types import KEYS

FIXTURES = sorted((where("schemas") / "old" / "fixtures" / "workload-1").glob("*.json"))
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
ALL: list[dict[str, Any]] = [
    {"files": "rewrite", "names": 2, "dumps": [dump(**EACH)]},
    {"files": "update", "reopen": False, "dumps": [dump(**EACH)]},
    {"files": "append", "reopen": True, "dumps": [dump(**EACH)]},
    {"layout": "flood", "files_per_directory": 100, "order": {"rule": "shuffled", "seed": 7}},
    {"operation": "read", "files": "update", "layout": "flood", "passes": 3},
    {"order": {"rule": "strided", "step": 4}, "direct": True},
    {"pace": "steady", "dumps": [dump(duration_s=2)]},
    {"sync_bytes": 4096, "write_through": True},
    {"lookups": {"every_bytes": 700, "calls": 1.25, "transfer_bytes": 2000}},
    {"files": "rewrite", "removes": True},
    {"files": "rewrite", "removes": True, "backup": True},
    {"layout": "file-per-process", "own_directories": True},
    {"dumps": [dump(duration_s=2, compute_s=1.5)]},
    {"dumps": [dump(skew=[[3, 0], [1, 1.25]])]},
    {"dumps": [dump(variables=[VARIABLE | {"decomposition": {"rule": "cyclic", "block": 3}}])]},
    {
        "files": "rewrite",
        "dumps": [
            dump(),
            dump(
                time_s=1,
                continues=True,
                variables=[VARIABLE | {"at": "v"}, VARIABLE | {"name": "w"}],
            ),
        ],
    },
    {"dumps": [dump(variables=[], operations=[{"operation": "stat", "runs": [[1, 9], [3, 0]]}])]},
]


@pytest.mark.parametrize("keys", ALL, ids=lambda k: "-".join(map(str, k)))
def test_every_kind_survives_a_round_trip(keys: dict[str, Any]) -> None:
    first = made(stream(**keys))
    again = json.loads(to_keys(first))["streams"][0]
    assert {k: again[k] for k in keys} == keys
    assert parse(to_keys(first), "again") == first


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


LOOKUPS = {"every_bytes": 700, "calls": 1.25, "transfer_bytes": 2000}
CYCLIC = {"rule": "cyclic", "block": 3}
OP = {"operation": "open", "runs": [[4, 1]]}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"files": "rewrite", "operation": "read"}, "files: expected new, append or update"),
    ({"names": 2}, "names: expected 1, since the files are new, got 2"),
    ({"names": 0, "files": "update"}, "names: expected at least 1, got 0"),
    ({"reopen": False}, "reopen: expected true, since the files are new"),
    ({"passes": 2}, "passes: expected 1, since the operation is write, got 2"),
    ({"operation": "read", "sync_bytes": 1}, "sync_bytes: expected null, since the operation is"),
    ({"operation": "read", "write_through": True}, "write_through: expected false, since"),
    ({"lookups": LOOKUPS | {"calls": 0}}, "lookups"),
    ({"lookups": LOOKUPS, "operation": "read"}, "lookups: expected null, since the operation is"),
    ({"order": {"rule": "odd"}}, "order: expected an object whose rule is consecutive or strided"),
    ({"order": {"rule": "strided"}}, "order: key 'step' is missing"),
    ({"order": {"rule": "strided", "step": 2}, "collective": True}, "order.rule: expected conse"),
    ({"layout": "flood", "files": "append"}, "files: expected new for the layout flood, got app"),
    ({"layout": "flood", "collective": True}, "collective: expected false, since no ranks share"),
    ({"layout": "flood", "turns": True}, "turns: expected false, since no ranks share a file"),
    ({"files": "rewrite", "turns": True}, "turns: expected false, since the files are rewrite"),
    ({"files_per_directory": 5}, "files_per_directory: expected null, since the layout is not"),
    ({"removes": 1}, "removes: expected true or false, got 1"),
    ({"own_directories": "yes"}, 'own_directories: expected true or false, got "yes"'),
    (
        {"dumps": [dump(skew=[[3, 1]])]},
        "dumps[0].skew: expected runs of 4 ranks in all, got 3",
    ),
    ({"dumps": [dump(skew=[[4, -1]])]}, "dumps[0].skew[0][1]: expected at least 0, got -1"),
    ({"dumps": [dump(skew=[[0, 1], [4, 0]])]}, "dumps[0].skew[0][0]: expected at least 1, got 0"),
    ({"dumps": [dump(skew=None)]}, "dumps[0].skew: expected a list, got null"),
    ({"dumps": [dump(compute_s=-1)]}, "dumps[0].compute_s: expected at least 0, got -1"),
    (
        {"dumps": [dump(compute_s=None)]},
        "dumps[0].compute_s: expected a finite number of at most 64 bits, got null",
    ),
    (
        {"layout": "flood", "dumps": [dump(compute_s=1)]},
        "dumps[0].compute_s: expected 0, since the layout is flood, got 1",
    ),
    ({"removes": True}, "removes: expected false, since the files are new and not rewrite"),
    ({"backup": True}, "backup: expected false, since removes is false"),
    ({"own_directories": True}, "own_directories: expected false, since the layout is neither"),
    (
        {"pace": "steady", "dumps": [dump(duration_s=1, compute_s=1)]},
        "dumps[0].compute_s: expected 0, since the pace is steady, got 1",
    ),
    ({"pace": "steady"}, "dumps[0].duration_s: expected more than 0, since the pace is steady"),
    ({"dumps": [dump(repeat={"count": 1, "period_s": 1})]}, "dumps[0].repeat.count: expected at"),
    (
        {"dumps": [dump(repeat={"count": 2, "period_s": 0})]},
        "dumps[0].repeat.period_s: expected more than 0, got 0",
    ),
    ({"dumps": [dump(**EACH), dump(time_s=1.0)]}, "dumps[1].time_s: expected at least 2.0"),
    ({"dumps": [dump(variables=[])]}, "dumps[0].variables: expected a list of at least 1"),
    (
        {"dumps": [dump(operations=[OP | {"runs": [[3, 1]]}])]},
        "dumps[0].operations[0].runs: expected runs of 4 ranks in all, got 3",
    ),
    (
        {"dumps": [dump(operations=[OP | {"operation": "chmod"}])]},
        "dumps[0].operations[0].operation: expected one of open, stat",
    ),
    (
        {"dumps": [dump(variables=[VARIABLE | {"decomposition": {"rule": "cyclic"}}])]},
        "dumps[0].variables[0].decomposition: key 'block' is missing",
    ),
    (
        {"dumps": [dump(variables=[VARIABLE | {"count": 1 << 51}], **EACH)]},
        "dumps: expected less than 2^63 bytes in all",
    ),
]


@pytest.mark.parametrize(("keys", "message"), BAD, ids=range(len(BAD)))
def test_keys_that_do_not_go_together_are_one_message(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UnderstudyError) as error:
        made(stream(**keys))
    assert str(error.value).startswith(f"w.json: streams[0].{message}"), error.value
    assert "\n" not in str(error.value)


def test_the_dumps_of_all_streams_are_limited_together() -> None:
    many = [dump(repeat={"count": 10**7 - 1, "period_s": 1})]
    with raises(UnderstudyError, "streams-expected-most-dumps"):
        made(stream(dumps=many), stream(name="more", dumps=many))


BASE = stream(name="base")
EXTENSIONS: list[tuple[dict[str, Any], str]] = [
    ({"extends": "other"}, "extends: expected the name of a stream before it, got 'other'"),
    ({"files": "append"}, "files: expected new or rewrite, since it extends a stream"),
    ({"layout": "file-per-process"}, "layout: expected shared, as the stream base"),
    ({"dumps": [dump(), dump(time_s=1.0)]}, "dumps: expected 1, as the stream base that it ext"),
    ({"dumps": [dump(variables=[VARIABLE | {"file": 1}])]}, "dumps: expected file indices below"),
    ({"turns": True}, "turns: expected false"),
]


@pytest.mark.parametrize(("keys", "message"), EXTENSIONS, ids=range(len(EXTENSIONS)))
def test_an_extension_fits_its_stream(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UnderstudyError) as error:
        made(BASE, stream(name="more", **({"extends": "base"} | keys)))
    assert str(error.value).startswith(f"w.json: streams[1].{message}"), error.value


TURN = {"time_s": 1.0, "continues": True}
AT = VARIABLE | {"at": "v"}
UNCONTINUED: list[tuple[dict[str, Any], str]] = [
    ({"dumps": [dump(continues=True)]}, "dumps[0].continues: expected false, since there is no"),
    ({"operation": "read"}, "dumps[1].continues: expected false, since the operation is read"),
    ({"files": "append"}, "dumps[1].continues: expected false, since the files are append"),
    ({"files": "update", "reopen": False}, "dumps[1].continues: expected false, since the files"),
    ({"turns": True}, "dumps[1].continues: expected false, since the ranks of the stream take"),
    ({"layout": "flood"}, "dumps[1].continues: expected false, since the layout is flood"),
    ({"dumps": [dump(variables=[AT])]}, "dumps[0].variables[0].at: expected a variable in"),
    ({"dumps": [dump(), dump(time_s=1.0, variables=[AT])]}, "dumps[1].variables[0].at: expected"),
    (
        {"dumps": [dump(), dump(variables=[AT | {"shape": [4, 3]}], **TURN)]},
        "dumps[1].variables[0].at: expected a variable in the files with the same count",
    ),
    (
        {"dumps": [dump(), dump(variables=[AT | {"at": "v w"}], **TURN)]},
        "dumps[1].variables[0].at: expected letters, digits",
    ),
]


@pytest.mark.parametrize(("keys", "message"), UNCONTINUED, ids=range(len(UNCONTINUED)))
def test_dumps_continue_where_files_can_stay_open(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UnderstudyError) as error:
        made(stream(**({"dumps": [dump(), dump(**TURN)]} | keys)))
    assert str(error.value).startswith(f"w.json: streams[0].{message}"), error.value


READER = {"operation": "read", "files": "update", "reads": "base"}
READERS: list[tuple[dict[str, Any], str]] = [
    ({"reads": "other"}, "reads: expected the name of a stream before it, got 'other'"),
    ({"operation": "write"}, "reads: expected null, since the operation is write"),
    ({"files": "new"}, "files: expected update, since it reads the files of a stream"),
    ({"names": 2}, "names: expected 1, since it reads"),
    ({"reopen": False}, "reopen: expected true, since it reads"),
    ({"collective": True}, "collective: expected false, since it reads"),
    ({"layout": "file-per-process"}, "layout: expected that of the stream base"),
    ({"method": "mpiio"}, "method: expected posix, since it reads"),
    ({"dumps": [dump(variables=[VARIABLE | {"file": 1}])]}, "dumps: expected file indices below"),
    (
        {"dumps": [dump(variables=[VARIABLE | {"shape": [41, 3]}])]},
        "dumps[0].variables: expected at most 960 bytes of file 0 by then, got 984",
    ),
    ({"dumps": [dump(variables=[VARIABLE | {"at": "w"}])]}, "dumps[0].variables[0].at: expected"),
]


@pytest.mark.parametrize(("keys", "message"), READERS, ids=range(len(READERS)))
def test_a_reader_fits_its_stream(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UnderstudyError) as error:
        made(BASE, stream(name="more", **(READER | keys)))
    assert str(error.value).startswith(f"w.json: streams[1].{message}"), error.value


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
    made = only(dumps=[dump(**EACH), dump(time_s=7)])
    assert (made.dump_count, made.bytes, made.last_s) == (6, 6 * 960, 7)
    assert [e.time_s for e in made.expanded()] == [0, 0.5, 1, 1.5, 2, 7]
    assert calls_of(made, 4).count == 6 * calls_of(only(), 4).count


def test_passes_move_bytes_and_do_not_store_them() -> None:
    made = only(operation="read", passes=3)
    assert (made.bytes, stored_bytes(made)) == (3 * 960, 960)
    assert [e.bytes for e in made.expanded()] == [3 * 960]
    assert calls_of(made, 4).count == 3 * calls_of(only(operation="read"), 4).count


def test_what_is_rewritten_is_stored_once() -> None:
    small = dump(variables=[VARIABLE | {"shape": [4, 3]}])
    dumps = [small, dump(**EACH)]
    one, two = (only(files=f, names=n, dumps=dumps) for f, n in (("rewrite", 1), ("update", 2)))
    assert (stored_bytes(one), stored_bytes(two)) == (960, 2 * 960)
    assert stored_bytes(only(dumps=dumps)) == one.bytes == 5 * 960 + 96


@pytest.mark.parametrize(("rows", "block"), [(40, 3), (24, 6), (2, 3), (12, 1), (13, 6)])
def test_cyclic_rows_are_dealt_in_turn(rows: int, block: int) -> None:
    by_hand = [sum(1 for row in range(rows) if row // block % 4 == rank) for rank in range(4)]
    shape = VARIABLE | {
        "shape": [rows],
        "type": "byte",
        "decomposition": {"rule": "cyclic", "block": block},
    }
    (entry,) = only(dumps=[dump(variables=[shape])]).steps
    runs = entry.variables[0].rank_runs(4)
    assert [size for n, size in runs for _ in range(n)] == by_hand


def test_calls_never_cross_a_block_or_a_file() -> None:
    rows = VARIABLE | {"decomposition": {"rule": "cyclic", "block": 3}}  # 24 B a row, 4 a call
    assert calls_of(only(dumps=[dump(variables=[rows])]), 4).count == 14
    assert calls_of(only(layout="flood"), 4).count == 40


@pytest.mark.parametrize("rule", ["strong", "weak"])
def test_scaling_keeps_the_kinds(rule: str) -> None:
    cyclic = VARIABLE | {"decomposition": CYCLIC}
    stats = {"operation": "stat", "runs": [[1, 9], [3, 1]]}
    entry = dump(variables=[cyclic], operations=[stats], **EACH)
    new = scale(made(stream(files="rewrite", names=2, dumps=[entry])), 8, rule)
    again = parse(to_keys(new), "scaled").streams[0]
    assert (again.files, again.names) == ("rewrite", 2)
    assert (again.steps[0].count, again.steps[0].period_s) == (5, 0.5)
    assert again.bytes == 5 * 960 * (2 if rule == "weak" else 1)
    assert again.steps[0].operations[0].count == (24 if rule == "weak" else 12)


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
    made = tmp_path / path.name
    for source in (path, made):
        done = CliRunner().invoke(main, ["describe", str(source), "-f", "-o", str(made)])
        assert done.exit_code == 0, done.output
        assert made.read_text() == read.to_text()


def test_old_descriptors_have_fixtures() -> None:
    assert len(FIXTURES) >= 5


def test_confidence_follows_from_the_origin() -> None:
    read = load(next(p for p in FIXTURES if p.stem == "darshan"))
    found = {p.origin: p.confidence for p in read.provenance}
    assert found["read"] == found["derived"] == "certain" and found["assumed"] == "guess"
    assert provenance_of(read, "/ranks").confidence == "certain"  # type: ignore[union-attr]


def test_a_new_key_is_unknown_to_the_old_contract(tmp_path: Path) -> None:
    row = json.loads(FIXTURES[0].read_text())
    row["streams"][0]["names"] = 2
    with raises(UnderstudyError, "streams-key-names-unknown"):
        parse(json.dumps(row), "w.json")

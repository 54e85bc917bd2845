"""The workload contract on the Python side: strict reading, round trips and scaling."""

import json
import random
import re
from dataclasses import replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.support import refused
from tests.support.keys import to_keys
from tests.support.player import play, strace
from tests.support.programs import examples
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts import workload
from understudy.contracts.workload import (
    EVEN,
    Decomposition,
    Dump,
    Pattern,
    Provenance,
    Source,
    Variable,
    Workload,
    load,
    parse,
    provenance_of,
    runs,
    runs_at_most,
    streams_of,
)
from understudy.errors import UnderstudyError
from understudy.model.scaling import scale
from understudy.paths import ROOT, where

WORKLOADS = sorted((ROOT / "workloads").glob("*.json"))
assert len(WORKLOADS) >= 3
GOOD = json.loads(to_keys(load(ROOT / "workloads" / "n-m.json")))


@pytest.mark.parametrize(("key", "value", "message"), refused.cases("workload"))
def test_a_bad_descriptor_is_one_message(
    key: str, value: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "w.json"
    path.write_text(json.dumps(refused.altered(GOOD, key, value)))
    with pytest.raises(UnderstudyError) as error:
        load(path)
    text = str(error.value)
    assert text.startswith(f"{path}: {message}"), text
    assert "\n" not in text and len(text) < 400 + len(str(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "top level: expected an object, got []"),
        ("3", "top level: expected an object, got 3"),
        ("", "not JSON: Expecting value at line 1, column 1"),
        ("nul", "not JSON: Expecting value at line 1, column 1"),
        ('{"a": 1,\n "a": 2}', "key 'a' stands twice in one object"),
        ('{"a": 1, "a" : 2}', "key 'a' stands twice in one object"),
        (r'{"b": "\u003a", "a": 1, "a": 2}', "key 'a' stands twice in one object"),
        (r'{"c\\": "a:b", "a": [], "a": ":"}', "key 'a' stands twice in one object"),
        ('[[], {"a": {"b": 1}, "a": "::"}]', "key 'a' stands twice in one object"),
        ("[" * 100_000, "nested more than 50 levels deep"),
        ("[" * 51 + "]" * 51, "[0][0][0][0][0][0][0][0][0][0]: nested more than 50 levels deep"),
        ("1" * 5000, "expected a finite number, found an integer of more than 308 digits"),
    ],
)
def test_what_is_no_descriptor_is_one_message(text: str, message: str) -> None:
    with pytest.raises(UnderstudyError) as error:
        parse(text, "w.json")
    assert str(error.value).startswith(f"w.json: {message}")


def test_a_file_that_cannot_be_read_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(UnderstudyError) as error:
        load(tmp_path / "none.json")
    said("none-json-cannot-read", str(error.value), tmp_path=tmp_path)
    (tmp_path / "latin.json").write_bytes(b"\xe9")
    with raises(UnderstudyError, "latin-json-utf-text"):
        load(tmp_path / "latin.json")


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_a_describedof_the_room_survives_a_round_trip(path: Path) -> None:
    first, row = load(path), json.loads(path.read_text())
    assert json.loads(first.to_text()) == row
    text = to_keys(first)
    assert parse(text, "again") == first
    assert to_keys(parse(text, "again")) == text


def test_a_variable_may_have_calls_of_its_own() -> None:
    """Keys that are not there, or null, mean the stream's, and are not written."""
    row = json.loads(to_keys(load(ROOT / "workloads" / "n-1.json")))
    first, second, *_ = row["streams"][0]["dumps"][0]["variables"]
    keys = list(first)
    first |= {"transfer_bytes": 96, "collective": False}
    second |= {"transfer_bytes": None, "collective": None}
    described = parse(json.dumps(row), "w.json")
    alone, alike = described.streams[0].steps[0].moves[:2]
    assert (alone.transfer_bytes, alone.collective) == (96, False)
    assert (alike.transfer_bytes, alike.collective) == (row["streams"][0]["transfer_bytes"], True)
    assert parse(to_keys(described), "again") == described
    first, *_ = json.loads(to_keys(described))["streams"][0]["dumps"][0]["variables"]
    assert list(first) == keys and to_keys(described).count('"transfer_bytes": 96') == 1
    grown = scale(described, 8, "weak").streams[0].steps[0].moves[0]
    assert (grown.transfer_bytes, grown.collective) == (96, False)


def test_the_last_matching_entry_counts() -> None:
    entries = [
        ("/streams", "read"),
        ("/streams/*/dumps/*/time_s", "derived"),
        ("/streams/1/dumps", "assumed"),
    ]
    described = replace(
        parse(json.dumps(GOOD), "w"),
        provenance=tuple(Provenance(path=p, origin=o, how="x") for p, o in entries),
    )
    for pointer, origin in (
        ("/streams/0/dumps/3/time_s", "derived"),
        ("/streams/0/dumps/3", "read"),
        ("/streams/1/dumps/3/time_s", "assumed"),
        ("/streams/1/name", "read"),
        ("/ranks", None),
        ("/streams/10/dumps/0/time_s", "derived"),
        ("/streams/1x", "read"),
    ):
        entry = provenance_of(described, pointer)
        assert (entry.origin if entry else None) == origin, pointer


# -- scaling --------------------------------------------------------------------------------------


def made_of(variable: Variable, ranks: int) -> Workload:
    stream = Pattern(
        name="s",
        role="output",
        operation="write",
        files="new",
        layout="shared",
        method="posix",
        transfer_bytes=1 << 20,
        dumps=(Dump(time_s=0.5, variables=(variable,)),),
    )
    return Workload(
        name="w",
        description="",
        ranks=ranks,
        streams=streams_of((stream,), ranks),
        source=Source(format="hand"),
        provenance=(Provenance(path="/ranks", origin="assumed", how="chosen"),),
    )


def variable_of(scaled: Workload) -> Variable:
    """The variable, after a check that the descriptor is valid and its runs are whole."""
    assert parse(to_keys(scaled), "scaled").streams == scaled.streams
    [variable] = scaled.streams[0].steps[0].variables
    pairs = variable.rank_runs(scaled.ranks)
    assert sum(n for n, _ in pairs) == scaled.ranks
    assert sum(n * size for n, size in pairs) == variable.bytes
    return variable


def per_rank(variable: Variable, ranks: int) -> list[int]:
    return [size for n, size in variable.rank_runs(ranks) for _ in range(n)]


def unequal(ranks: int, seed: int) -> Variable:
    """Rows that differ between the ranks, some of them without any; the last two have some."""
    draw = random.Random(seed)
    rows = [draw.choice((0, draw.randrange(1000), 17)) for _ in range(ranks - 2)] + [9, 5][-ranks:]
    decomposition = runs((1, n) for n in rows)
    return Variable(
        name="v", type="f64", shape=(sum(rows), 3), count=2, decomposition=decomposition
    )


SHAPES = st.lists(st.integers(1, 5000), min_size=1, max_size=3).map(tuple)


@examples(300)
@given(old=st.integers(1, 200), new=st.integers(1, 1000), shape=SHAPES, seed=st.integers(0, 9))
def test_strong_scaling_keeps_the_total(
    old: int, new: int, shape: tuple[int, ...], seed: int
) -> None:
    grid = Decomposition(rule="grid", grid=(old, *[1] * (len(shape) - 1)))
    for variable in (
        Variable(name="v", type="f32", shape=shape),
        Variable(name="v", type="i16", shape=shape, decomposition=grid, count=3),
        unequal(old, seed),
    ):
        scaled = scale(made_of(variable, old), new, "strong")
        after = variable_of(scaled)
        assert (scaled.ranks, after.shape, after.bytes) == (new, variable.shape, variable.bytes)
        if variable.decomposition.rule == "runs":
            assert_stretched(per_rank(variable, old), per_rank(after, new), variable.row_bytes)


def assert_stretched(old: list[int], new: list[int], row_bytes: int) -> None:
    """Where the ranks are multiples of each other, each has what its counterparts had, up to a row
    a rank."""
    few, many = sorted((old, new), key=len)
    m, rest = divmod(len(many), len(few))
    if not rest:
        for k, size in enumerate(few):
            assert abs(sum(many[k * m : k * m + m]) - size) <= m * row_bytes


@examples(300)
@given(old=st.integers(1, 200), new=st.integers(1, 1000), shape=SHAPES, seed=st.integers(0, 9))
def test_weak_scaling_keeps_the_bytes_of_a_rank(
    old: int, new: int, shape: tuple[int, ...], seed: int
) -> None:
    even = variable_of(
        scale(made_of(Variable(name="v", type="f32", shape=shape), old), new, "weak")
    )
    assert even.shape == (max(1, shape[0] * new // old), *shape[1:])
    before = per_rank(unequal(old, seed), old)
    expected = [before[rank * old // new] for rank in range(new)]
    if any(expected):
        after = variable_of(scale(made_of(unequal(old, seed), old), new, "weak"))
        assert per_rank(after, new) == expected


@pytest.mark.parametrize("factor", [1, 2, 3, 10])
def test_weak_scaling_of_a_grid(factor: int) -> None:
    grid = Decomposition(rule="grid", grid=(2, 3, 1))
    old = Variable(name="v", type="f64", shape=(64, 60, 7), decomposition=grid)
    after = variable_of(scale(made_of(old, 6), 6 * factor, "weak"))
    assert after.shape == (64 * factor, 60, 7)
    assert after.decomposition.grid == (2 * factor, 3, 1)
    assert set(per_rank(after, 6 * factor)) == set(per_rank(old, 6))


def test_weak_scaling_of_a_grid_needs_a_multiple() -> None:
    grid = Decomposition(rule="grid", grid=(2, 3))
    old = made_of(Variable(name="v", type="f64", shape=(65, 60), decomposition=grid), 6)
    with raises(UnderstudyError, "variable-grid-take-multiple"):
        scale(old, 7, "weak")


@pytest.mark.parametrize("rule", ["strong", "weak"])
@pytest.mark.parametrize("new", [10_007, 65_536, 1_000_000])
def test_many_ranks_of_unequal_sizes_stay_a_small_file(rule: str, new: int) -> None:
    for old in (7, 4096):
        variable = unequal(old, 1)
        scaled = scale(made_of(variable, old), new, rule)
        after = variable_of(scaled)
        assert len(after.decomposition.runs) <= 4096
        assert len(to_keys(scaled)) < 100_000
        if rule == "strong":
            assert after.bytes == variable.bytes
        else:
            assert abs(after.bytes * old / new / variable.bytes - 1) < 0.01


RUNS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 99)), min_size=1, max_size=300)


@examples(200)
@given(pairs=RUNS, most=st.integers(2, 64))
def test_runs_at_most_keep_the_totals(pairs: list[tuple[int, int]], most: int) -> None:
    rule = runs_at_most(pairs, most)
    assert len(rule.runs) <= most
    assert sum(n for n, _ in rule.runs) == sum(n for n, _ in pairs)
    assert sum(n * rows for n, rows in rule.runs) == sum(n * rows for n, rows in pairs)
    if len(runs(pairs).runs) <= most:
        assert rule == runs(pairs)


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
@pytest.mark.parametrize("rule", ["strong", "weak"])
def test_a_describedof_the_room_is_scaled(path: Path, rule: str, tmp_path: Path) -> None:
    old = load(path)
    out = tmp_path / "scaled.json"
    arguments = ["describe", str(path), "-n", str(2 * old.ranks), "--rule", rule, "-o", str(out)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    new = load(out)
    assert (new.ranks, new.name) == (2 * old.ranks, f"{old.name}-{rule}-{2 * old.ranks}")
    assert new.scaling == workload.Scaling(rule=rule, from_ranks=old.ranks)
    for a, b in zip(old.streams, new.streams, strict=True):
        assert b.bytes == a.bytes * (2 if rule == "weak" else 1)
        assert [d.time_s for d in b.steps] == [d.time_s for d in a.steps]
    assert provenance_of(new, "/ranks").how.startswith(f"scaled {rule}ly")  # type: ignore[union-attr]
    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 2
    said("exists-already-choose-another", again.stderr, out=out)


@pytest.mark.parametrize("ranks", [0, -4, 1 << 31])
def test_a_wrong_number_of_ranks_is_one_message(ranks: int) -> None:
    source = str(ROOT / "workloads" / "n-m.json")
    done = CliRunner().invoke(main, ["describe", source, "-n", str(ranks), "--rule", "weak"])
    assert (done.exit_code, done.stdout) == (2, "")
    assert str(ranks) in done.stderr.splitlines()[-1]


def test_a_scaled_name_stays_one() -> None:
    old = replace(made_of(Variable(name="v", type="f64", shape=(8,)), 4), name="n" * 100)
    assert len(parse(to_keys(scale(old, 8, "weak")), "w").name) <= 100


def test_even_is_the_default() -> None:
    assert Variable(name="v", type="f64", shape=(10,)).decomposition == EVEN
    assert Variable(name="v", type="f64", shape=(10,)).rank_runs(4) == [(2, 24), (2, 16)]


@examples(100)
@given(sides=st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=1, max_size=3))
def test_a_grid_gives_each_rank_its_block(sides: list[tuple[int, int]]) -> None:
    """Against counting every element, which the last parts lack that no length is left for."""
    shape, grid = (tuple(side[k] for side in sides) for k in (0, 1))
    decomposition = Decomposition(rule="grid", grid=grid)
    variable = Variable(name="v", type="u8", shape=shape, decomposition=decomposition)
    count = [0] * prod(grid)
    for element in product(*map(range, shape)):
        rank = 0
        for place, length, parts in zip(element, shape, grid, strict=True):
            low, extra = divmod(length, parts)
            begins = [k * low + min(k, extra) for k in range(parts)]
            rank = rank * parts + max(k for k in range(parts) if begins[k] <= place)
        count[rank] += 1
    assert per_rank(variable, prod(grid)) == count


@pytest.mark.parametrize("method", ["posix", "stdio"])
def test_files_are_read_through_the_open_that_wrote_them(method: str, tmp_path: Path) -> None:
    """As with fopen(…, "w+"), fwrite, rewind and fread."""
    move = {"type": "byte", "shape": [8192], "transfer_bytes": 512}
    opened = {"open": "s", "mode": "keep"}
    wrote = ["begin", opened, {"write": "v"} | move]
    read = ["begin", {"open": "s", "mode": "read", "last": "s"}, {"read": "v"} | move, "close"]
    row = {
        "schema": "understudy/workload/3",
        "name": "scratch",
        "description": "",
        "ranks": 2,
        "scaling": {"rule": "weak", "from_ranks": 2},
        "runtime_s": 1,
        "source": {"format": "test", "version": "1", "reader": "none", "notes": []},
        "provenance": [],
        "compute": "sleep",
        "sets": [{"name": "s", "of": "each rank", "index": 1}],
        "streams": [
            {"name": "s", "role": "output", "method": method, "close_last": True}
            | {"steps": [{"at": 0, "do": wrote}]},
            {"name": "r", "role": "input", "method": method, "steps": [{"at": 0, "do": read}]},
        ],
    }
    path = tmp_path / "scratch.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    played = play(path, 2, tmp_path / "data", "--verify")
    assert played.verification is not None and played.verification.wrong_bytes == 0
    before = [strace(), "-ff", "-qq", "-e", "trace=openat", "-o", "calls", "--"]
    play(path, 2, tmp_path / "data", before=before)
    calls = "".join(each.read_text() for each in tmp_path.glob("calls.*"))
    opens = re.findall(r'"(?:[^"]*/)?s[.0-9]+", ([A-Z_|]+)', calls)
    assert len(opens) == 2 and all({"O_RDWR", "O_CREAT"} <= {*how.split("|")} for how in opens)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"transfer_bytes": True}, "transfer_bytes: expected an integer"),
        ({"transfer_bytes": 512.0}, "transfer_bytes: expected an integer"),
        ({"hands_over": True}, "'hands_over' is unknown"),
    ],
)
def test_a_step_is_not_taken_for_one_that_is_nearly_equal(
    change: dict[str, Any], fault: str
) -> None:
    """Steps that are equal but for their times are checked once."""
    row = json.loads((where("workloads") / "n-1.json").read_text())
    [step, *_] = row["streams"][0]["steps"]
    plain = json.loads(json.dumps(step["do"]))
    k = next(k for k, i in enumerate(plain) if isinstance(i, dict) and "write" in i)
    plain[k]["transfer_bytes"] = 1
    bad = [*plain[:k], plain[k] | change, *plain[k + 1 :]]
    steps = [step | {"at": float(n), "do": do} for n, do in enumerate([plain, plain, bad, bad])]
    row["streams"][0]["steps"] = steps
    with pytest.raises(UnderstudyError, match=rf"^w: streams\[0\].steps\[2\].do\[{k}\].*{fault}"):
        workload.build(row, "w")

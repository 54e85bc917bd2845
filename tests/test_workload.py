"""The workload contract on the Python side: strict reading, round trips and scaling."""

import json
import random
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import refused
from tests.support.keys import keys_of, to_keys
from tests.support.player import play, program, strace
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
from understudy.paths import ROOT
from understudy.program.workload import row_of

WORKLOADS = sorted((ROOT / "workloads").glob("*.json"))
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


def test_the_room_is_not_empty() -> None:
    assert len(WORKLOADS) >= 3


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
def test_a_workload_of_the_room_survives_a_round_trip(path: Path) -> None:
    first, row = load(path), json.loads(path.read_text())
    assert json.loads(first.to_text()) == row
    text = to_keys(first)
    assert parse(text, "again") == first
    assert to_keys(parse(text, "again")) == text


def test_a_variable_may_have_calls_of_its_own() -> None:
    """Keys that are not there, or null, mean the stream's, and are not written."""
    row = json.loads(to_keys(load(ROOT / "workloads" / "n-1.json")))
    first, second, *_ = row["streams"][0]["dumps"][0]["variables"]
    first |= {"transfer_bytes": 96, "collective": False}
    second |= {"transfer_bytes": None, "collective": None}
    made = parse(json.dumps(row), "w.json")
    one, other = made.streams[0].steps[0].moves[:2]
    assert (one.transfer_bytes, one.collective) == (96, False)
    assert (other.transfer_bytes, other.collective) == (row["streams"][0]["transfer_bytes"], True)
    assert parse(to_keys(made), "again") == made
    assert to_keys(made).count('"transfer_bytes": 96') == 1
    assert "null" not in json.dumps(keys_of(row_of(made))["streams"][0]["dumps"][0]["variables"])
    assert list(json.loads(to_keys(made))["streams"][0]["dumps"][0]["variables"][0]) == [
        "name",
        "label",
        "count",
        "type",
        "shape",
        "decomposition",
        "file",
    ]
    grown = scale(made, 8, "weak").streams[0].steps[0].moves[0]
    assert (grown.transfer_bytes, grown.collective) == (96, False)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("transfer_bytes", 0, "transfer_bytes: expected at least 1, got 0"),
        (
            "transfer_bytes",
            "4MiB",
            "transfer_bytes: expected an integer of at most 64 bits or null",
        ),
        ("collective", 1, "collective: expected true or false or null, got 1"),
        ("transfers", 1, "key 'transfers' is unknown, expected name, label, count, type, shape"),
    ],
)
def test_bad_calls_of_a_variable_are_one_message(key: str, value: object, message: str) -> None:
    row = json.loads(to_keys(load(ROOT / "workloads" / "n-1.json")))
    row["streams"][0]["dumps"][0]["variables"][0][key] = value
    with pytest.raises(UnderstudyError, match=re.escape(message)):
        parse(json.dumps(row), "w.json")


LOOKUPS = {"every_bytes": 5, "calls": 1, "transfer_bytes": 4}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "lookups: expected an object or null, got []"),
        (5, "lookups: expected an object or null, got 5"),
        ({"calls": 1}, "lookups: key 'every_bytes' is missing, expected every_bytes, calls"),
        ({**LOOKUPS, "x": 1}, "lookups: key 'x' is unknown, expected every_bytes"),
        ({**LOOKUPS, "every_bytes": 0}, "lookups.every_bytes: expected at least 1, got 0"),
    ],
)
def test_bad_lookups_are_one_message(value: object, message: str) -> None:
    row = json.loads(to_keys(load(ROOT / "workloads" / "n-1.json")))
    row["streams"][0]["lookups"] = value
    with pytest.raises(UnderstudyError, match=re.escape(message)):
        parse(json.dumps(row), "w.json")


def test_ranks_in_turns_make_no_collective_calls() -> None:
    row = json.loads(to_keys(load(ROOT / "proxies" / "tests" / "samples" / "turns.json")))
    row["streams"][0]["dumps"][0]["variables"][0]["collective"] = True
    with raises(UnderstudyError, "collective-expected-false-since"):
        parse(json.dumps(row), "w.json")


def test_the_last_matching_entry_counts() -> None:
    entries = [
        ("/streams", "read"),
        ("/streams/*/dumps/*/time_s", "derived"),
        ("/streams/1/dumps", "assumed"),
    ]
    made = replace(
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
        found = provenance_of(made, pointer)
        assert (found.origin if found else None) == origin, pointer


# -- scaling --------------------------------------------------------------------------------------

RANKS = [1, 2, 3, 4, 7, 8, 12, 31, 64, 100, 1000]


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
    return Variable(
        name="v",
        type="f64",
        shape=(sum(rows), 3),
        count=2,
        decomposition=runs((1, n) for n in rows),
    )


@pytest.mark.parametrize("old", RANKS)
@pytest.mark.parametrize("new", RANKS)
def test_strong_scaling_keeps_the_total(old: int, new: int) -> None:
    for seed, shape in enumerate([(1,), (97,), (4096, 3), (5, 1000), (64, 64, 64)]):
        grid = Decomposition(rule="grid", grid=(old, *[1] * (len(shape) - 1)))
        for variable in (
            Variable(name="v", type="f32", shape=shape),
            Variable(name="v", type="i16", shape=shape, decomposition=grid, count=3),
            unequal(old, seed),
        ):
            scaled = scale(made_of(variable, old), new, "strong")
            found = variable_of(scaled)
            assert (scaled.ranks, found.shape, found.bytes) == (
                new,
                variable.shape,
                variable.bytes,
            )
            if variable.decomposition.rule == "runs":
                assert_stretched(per_rank(variable, old), per_rank(found, new), variable.row_bytes)


def assert_stretched(old: list[int], new: list[int], row_bytes: int) -> None:
    """Where the ranks are multiples of each other, each has what its counterparts had, up to a row
    a rank."""
    few, many = sorted((old, new), key=len)
    m, rest = divmod(len(many), len(few))
    if not rest:
        for k, size in enumerate(few):
            assert abs(sum(many[k * m : k * m + m]) - size) <= m * row_bytes


@pytest.mark.parametrize("old", RANKS)
@pytest.mark.parametrize("new", RANKS)
def test_weak_scaling_keeps_the_bytes_of_a_rank(old: int, new: int) -> None:
    for seed, shape in enumerate([(1,), (97,), (4096, 3), (1000, 1000)]):
        even = Variable(name="v", type="f32", shape=shape)
        found = variable_of(scale(made_of(even, old), new, "weak"))
        assert found.shape == (max(1, shape[0] * new // old), *shape[1:])
        rows = unequal(old, seed)
        found = variable_of(scale(made_of(rows, old), new, "weak"))
        before = per_rank(rows, old)
        expected = [before[r * old // new] for r in range(new)]
        if any(expected):
            assert per_rank(found, new) == expected


@pytest.mark.parametrize("factor", [1, 2, 3, 10])
def test_weak_scaling_of_a_grid(factor: int) -> None:
    grid = Decomposition(rule="grid", grid=(2, 3, 1))
    old = Variable(name="v", type="f64", shape=(64, 60, 7), decomposition=grid)
    found = variable_of(scale(made_of(old, 6), 6 * factor, "weak"))
    assert found.shape == (64 * factor, 60, 7)
    assert found.decomposition.grid == (2 * factor, 3, 1)
    assert set(per_rank(found, 6 * factor)) == set(per_rank(old, 6))


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
        found = variable_of(scaled)
        assert len(found.decomposition.runs) <= 4096
        assert len(to_keys(scaled)) < 100_000
        if rule == "strong":
            assert found.bytes == variable.bytes
        else:
            assert abs(found.bytes * old / new / variable.bytes - 1) < 0.01


def test_runs_at_most_keep_the_totals() -> None:
    draw = random.Random(3)
    for most in (2, 7, 64):
        pairs = [(draw.randrange(1, 5), draw.randrange(100)) for _ in range(1000)]
        rule = runs_at_most(pairs, most)
        assert len(rule.runs) <= most
        assert sum(n for n, _ in rule.runs) == sum(n for n, _ in pairs)
        assert sum(n * r for n, r in rule.runs) == sum(n * r for n, r in pairs)
    assert runs_at_most([(1, 5), (2, 5), (1, 6)], 2) == runs([(3, 5), (1, 6)])


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda p: p.stem)
@pytest.mark.parametrize("rule", ["strong", "weak"])
def test_a_workload_of_the_room_is_scaled(path: Path, rule: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("shape", "grid"), [((5,), (4,)), ((7, 5), (2, 3)), ((4, 4, 4), (2, 2, 2))]
)
def test_a_grid_gives_each_rank_its_block(shape: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """Against counting every element."""
    variable = Variable(
        name="v", type="u8", shape=shape, decomposition=Decomposition(rule="grid", grid=grid)
    )
    ranks = 1
    for side in grid:
        ranks *= side
    count = [0] * ranks

    def owner(place: int, length: int, parts: int) -> int:
        low, extra = divmod(length, parts)
        bounds = [k * low + min(k, extra) for k in range(parts + 1)]
        return max(k for k in range(parts) if bounds[k] <= place)

    def visit(dimension: int, rank: int) -> None:
        if dimension == len(shape):
            count[rank] += 1
            return
        for place in range(shape[dimension]):
            part = owner(place, shape[dimension], grid[dimension])
            visit(dimension + 1, rank * grid[dimension] + part)

    visit(0, 0)
    assert per_rank(variable, ranks) == count


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
def test_the_player_and_the_package_agree_on_names(
    counts: dict[str, int], good: bool, tmp_path: Path
) -> None:
    """Also on those that the numbers of a count give."""
    row = json.loads(to_keys(load(ROOT / "workloads" / "n-1.json")))
    (stream, *_) = row["streams"]
    first = stream["dumps"][0]["variables"][0]
    made = [first | {"name": name, "count": count} for name, count in counts.items()]
    row["streams"] = [stream | {"dumps": [stream["dumps"][0] | {"variables": made}]}]
    text = json.dumps(row)
    again = [first | {"name": f"n{k}", "count": n} for k, n in enumerate(counts.values())]
    stream["dumps"] = [stream["dumps"][0] | {"variables": again}]
    plain = json.loads(parse(json.dumps(row | {"streams": [stream]}), "w.json").to_text())
    moves = [i for i in plain["streams"][0]["steps"][0]["do"] if "write" in i]
    for move, name in zip(moves, counts, strict=True):
        move["write"] = name
    try:
        parse(text, "w.json")
        accepted = True
    except UnderstudyError as error:
        accepted = False
        assert str(error).startswith("w.json: streams[0].dumps[0].variables")
    assert accepted is good
    path = tmp_path / "w.json"
    path.write_text(json.dumps(plain))
    done = subprocess.run(
        [program(), "-w", str(path), "-o", str(tmp_path / "out"), "--dry-run"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is good, done.stderr


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
    calls = [strace(), "-ff", "-qq", "-e", "trace=openat", "-o", "calls", "--"]
    play(path, 2, tmp_path / "data", before=calls)
    made = "".join(each.read_text() for each in tmp_path.glob("calls.*"))
    opens = re.findall(r'"(?:[^"]*/)?s[.0-9]+", ([A-Z_|]+)', made)
    assert len(opens) == 2 and all({"O_RDWR", "O_CREAT"} <= {*how.split("|")} for how in opens)

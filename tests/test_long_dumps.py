"""Long measurements are decoded in blocks: what is read is what the ordinary way reads, and what
is not valid has its message."""

import json
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support import results
from understudy import producers
from understudy.cli import main
from understudy.contracts import long_dumps, schema
from understudy.contracts import run as runs
from understudy.errors import UnderstudyError

BLOCK = 2000  # bytes, a dump or two
# What takes the place of some characters of a valid text, or goes between them.
PIECES = (
    *("NaN", "-Infinity", "1e999", "-1e-999", "9223372036854775808", "-9223372036854775809"),
    *("18446744073709551616", "1" * 400, "1.0", "-1", "0", "true", "null", "[]", "{}", "[1]"),
    *('"bytes": 1, ', '"dump": 1, ', '"phases": [], ', '"min": 0.5, ', '"processes": {}, '),
    *('"deadline": {}, ', '"x": 1, ', '"phase": "open", ', '"dumps": [{"dump": 0}], '),
    *('"by\\u0074es": 1, ', '"dump\\u0073": [0], ', '"\\u003a": 1, ', "\\u0000", "\\ud800"),
    *("{", "}", "[", "]", ":", ",", '"', "\\", "\n", "\r\n", " ", "\x00", "e5", ".5", "é"),
    *("\ufeff", "\ud800", "[" * 60, '{"a":' * 60, "}, {", '}, {"dump": 7', "", ""),
)


def documents() -> list[dict[str, Any]]:
    """Measurements by both contracts, the second one with all keys that dumps can have, and one of
    a program, which has others."""
    sizes = [8192 + 11 * k for k in range(7)]
    streams = [
        results.stream("state", "checkpoint", sizes, [2.0 * k for k in range(7)]),
        results.stream("log", "output", [7], [0.5]),
    ]
    played = results.workload("long", streams)
    old = results.result(played, repetitions=2, restart=True)
    new = results.of_today(results.result(played, repetitions=2))
    for k, dump in enumerate(new["repetitions"][0]["streams"][0]["dumps"]):
        both = {"min": k, "max": 1700}
        if k % 2:
            ends = {"stopped_ranks": 0, "bytes": k, "rank_bytes": both, "rank_transfers": both}
            dump["deadline"] = ends
        moved = dump["phases"][1]
        moved |= {"first_end_s": moved["last_end_s"], "first_end_bytes": k}
        dump["lateness_s"] = 0 if k == 2 else dump["lateness_s"]  # an integer is a number
        dump["file_bytes"] = None if k == 3 else dump["file_bytes"]
    return [old, new, results.program_result()]


def record_of(row: dict[str, Any], folder: Path) -> dict[str, Any]:
    path = folder / "measured.json"
    path.write_text(json.dumps(row))
    return runs.to_row(producers.record(path))


def loaded(path: Path, row: dict[str, Any]) -> Any:
    """What a row means, or why it means nothing."""
    try:
        return producers.load_row(path, row)
    except UnderstudyError as error:
        return str(error)


@st.composite
def texts(draw: st.DrawFn, rows: list[dict[str, Any]]) -> str:
    """Texts of documents, of which some values or characters are others."""
    row = draw(st.sampled_from(rows))
    if draw(st.integers(0, 3)) == 3:
        row = deepcopy(row)
        measured = row.get("measurement", row)
        dumps = measured["repetitions"][0]["streams"][0]["dumps"]
        place = draw(st.sampled_from([*dumps, measured, row]))
        value = st.sampled_from([None, 0, 1.5, -1, True, "x", [], {}, 1 << 63, [{"dump": 0}]])
        place[draw(st.sampled_from(sorted(place)))] = draw(value)
    indent = draw(st.sampled_from([None, 1, 3]))
    text = json.dumps(row, indent=indent, sort_keys=not draw(st.integers(0, 7)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
        begin = draw(st.integers(0, len(text)))
        end = begin + draw(st.sampled_from([0, 0, 1, 2, 5, 40]))
        text = text[:begin] + draw(st.sampled_from(PIECES)) + text[end:]
    return text


def test_what_is_read_in_blocks_is_what_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = documents()
    rows += [record_of(row, tmp_path) for row in rows]
    monkeypatch.setattr(long_dumps, "LONG_BYTES", 0)
    monkeypatch.setattr(long_dumps, "BLOCK_BYTES", BLOCK)
    path = tmp_path / "result.json"
    counts = Counter[str]()

    @settings(
        max_examples=1500,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(texts(rows))
    def alike(text: str) -> None:
        path.write_bytes(text.encode(errors="surrogatepass"))
        row = long_dumps.read(path)
        if row is None:
            counts["at once"] += 1
            return
        whole = schema.read(path, "run record")  # raises nothing
        assert row == whole and whole == row
        assert schema.canonical(row) == schema.canonical(whole)
        some, others = loaded(path, row), loaded(path, whole)
        assert some == others
        counts["refused" if isinstance(some, str) else "read"] += 1

    alike()
    assert min(counts[kind] for kind in ("at once", "refused", "read")) > 50, counts


@pytest.mark.parametrize("key", ["bytes", "start_s"])
def test_a_long_run_with_a_bad_dump_has_one_message(
    key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    row = documents()[1]
    row["repetitions"][1]["streams"][0]["dumps"][5][key] = -1
    path.write_text(json.dumps(row))
    messages = []
    for long_bytes in (1 << 40, 0):
        monkeypatch.setattr(long_dumps, "LONG_BYTES", long_bytes)
        done = CliRunner().invoke(main, ["show", str(path)])
        assert done.exit_code != 0
        messages.append(done.output or str(done.exception))
    assert messages[0] == messages[1]
    assert f"{path}: repetitions.1.streams.0.dumps.5.{key}: -1 is less than" in messages[0]


def test_a_long_run_can_be_written_and_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / runs.RECORD_FILE
    path.write_text(json.dumps(record_of(documents()[1], tmp_path)))
    monkeypatch.setattr(long_dumps, "LONG_BYTES", 0)
    monkeypatch.setattr(long_dumps, "BLOCK_BYTES", BLOCK)
    run, [(_, same)] = producers.load(path), producers.load_all([path])
    assert run == same and producers.measured(run) == producers.measured(same)
    runs.write(tmp_path / "again.json", run)
    assert json.loads((tmp_path / "again.json").read_text()) == json.loads(path.read_text())


def test_a_long_run_is_shown_as_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_dumps, "BLOCK_BYTES", BLOCK)
    for k, row in enumerate(documents()):
        path = tmp_path / f"{k}.json"
        path.write_text(json.dumps(row))
        shown = []
        for long_bytes in (1 << 40, 0):
            monkeypatch.setattr(long_dumps, "LONG_BYTES", long_bytes)
            assert (long_dumps.read(path) is None) == (long_bytes > 0 or "program" in row)
            shown.append(CliRunner().invoke(main, ["show", "--all", str(path)]))
        assert shown[0].exit_code == 0, shown[0].output
        assert shown[0].output == shown[1].output


def test_many_short_runs_are_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list of dumps costs a block."""
    path = tmp_path / "result.json"
    row = documents()[1]
    repetition = row["repetitions"][1]
    row["repetitions"] = [repetition | {"repetition": k} for k in range(40)]
    path.write_text(json.dumps(row))
    monkeypatch.setattr(long_dumps, "LONG_BYTES", 0)
    for block, lists_fit in (
        (path.stat().st_size // 80, True),
        (path.stat().st_size // 79, False),
    ):
        monkeypatch.setattr(long_dumps, "BLOCK_BYTES", block)
        assert (long_dumps.read(path) is not None) == lists_fit

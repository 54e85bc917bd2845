"""The counters that are predicted of a run, against those that Darshan counts."""

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given

from tests.support import observed, player
from tests.support.keys import patterns_of, to_keys, with_patterns
from tests.support.needs import need, needs
from tests.support.programs import Row, examples, programs
from understudy.cli import main
from understudy.contracts import workload
from understudy.contracts.workload import Workload, load
from understudy.paths import where
from understudy.program.calls import calls_of
from understudy.program.predicted_counters import Predicted, predict

# glibc 2.33 and newer have stat under names that Darshan 3.5 does not watch.
UNSEEN = {"POSIX_STATS"}
OURS = sorted(path.stem for path in where("workloads").glob("*.json"))


def predicted(shown: Workload) -> tuple[Predicted, ...]:
    return predict(shown.program)


def differences(shown: Workload, path: Path, folder: Path) -> list[tuple[Any, ...]]:
    """Counters of a run that are predicted otherwise than Darshan counts them."""
    names = [s.name for s in shown.streams]
    counted = observed.counters(path, shown.ranks, folder, names)
    wrong = []
    for each in predicted(shown):
        for module, names_ in each.all.items():
            for name, number in names_.items():
                numbers = [counted[s][module][name] for s in each.streams if s in counted]
                join = max if "_MAX_" in name else sum
                seen = join(numbers) if numbers else 0
                if number is not None and number != seen and name not in UNSEEN:
                    wrong.append((each.name, name, number, seen))
    return wrong


def written(row: Row, folder: Path) -> tuple[Workload, Path]:
    path = folder / "app.json"
    path.write_text(json.dumps(row), encoding="utf-8")
    read = workload.load(path)
    path.write_text(read.to_text(), encoding="utf-8")
    return read, path


def small(name: str) -> Row:
    """A workload of ours on 4 ranks, a thousandth of the larger ones."""
    row: Row = json.loads(to_keys(load(where("workloads") / f"{name}.json")))
    if row["ranks"] > 4:
        row["ranks"] = row["scaling"]["from_ranks"] = 4
        row["scaling"]["rule"] = "none"
        for variable in (v for s in row["streams"] for d in s["dumps"] for v in d["variables"]):
            variable["shape"][0] = max(4, variable["shape"][0] // 1000)
    return row


@pytest.mark.parametrize("method", ["hdf5", "mpiio"])
@pytest.mark.parametrize("collective", [False, True])
def test_a_call_moves_no_more_than_its_library_can(
    method: str, collective: bool, tmp_path: Path
) -> None:
    """As many calls as the player makes by what it says of their size."""
    player.needs(method)
    row = small("n-1")
    del row["streams"][1:]
    stream = row["streams"][0]
    stream |= {"method": method, "transfer_bytes": 1 << 40, "collective": collective}
    variable = {"name": "v", "label": "", "count": 1, "type": "f64", "shape": [int(1e9)]}
    decomposition = {"rule": "runs", "runs": [[1, int(1e9) - 3], [3, 1]]}
    variable |= {"decomposition": decomposition, "file": 0}
    stream["dumps"] = [stream["dumps"][0] | {"variables": [variable]}]
    shown, path = written(row, tmp_path)
    asked = [player.program(), "-w", path, "--dry-run"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    (most,) = map(int, re.findall(r"transfer_bytes +(\d+)", told))
    calls = -(-8 * (int(1e9) - 3) // (most // 8 * 8))
    assert calls == (4 if method == "hdf5" else 1)
    made_calls = calls_of(shown.program.streams[0], 4).count
    assert made_calls == (4 * calls if collective else calls + 3)
    (of_set,) = predicted(shown)
    counters = {k: v for each in of_set.calls.values() for k, v in each.items()}
    kind = "H5D" if method == "hdf5" else "MPIIO_COLL" if collective else "MPIIO_INDEP"
    assert counters[f"{kind}_WRITES"] == made_calls


@needs("Darshan's runtime")
@pytest.mark.parametrize("name", OURS)
def test_darshan_counts_what_is_predicted_of_our_workloads(name: str, tmp_path: Path) -> None:
    shown, path = written(small(name), tmp_path)
    for method in {s.method for s in shown.streams}:
        need(*(["Darshan's HDF5 module"] if method == "hdf5" else []))
        player.needs(method)
    assert differences(shown, path, tmp_path / "run") == []


@needs("Darshan's runtime")
@examples(100)
@given(programs(keys=True))
def test_darshan_counts_what_is_predicted_of_programs(row: Row) -> None:
    need("Darshan's HDF5 module")
    with TemporaryDirectory() as folder:
        assert differences(*written(row, Path(folder)), Path(folder) / "run") == []


@pytest.mark.parametrize("name", ["n-m", "n-1"])
def test_the_player_moves_and_calls_what_is_predicted(name: str, tmp_path: Path) -> None:
    shown, path = written(small(name), tmp_path)
    [repetition] = player.play(
        path, shown.ranks, tmp_path / "run", "--time-scale", "0"
    ).repetitions
    for each, stream in zip(predicted(shown), repetition.streams, strict=True):
        top = each.calls["MPI-IO" if stream.method == "mpiio" else "POSIX"]
        moved = [top[n] or 0 for n in top if "_BYTES_" in n]
        calls = [
            top[n] or 0 for n in top if re.fullmatch(r"[A-Z]+(_COLL|_INDEP)?_(READ|WRITE)S", n)
        ]
        writes = [p.operations for d in stream.dumps for p in d.phases if p.phase == "write"]
        assert (sum(moved), sum(calls)) == (stream.bytes, sum(writes))


def test_what_a_library_decides_is_not_known() -> None:
    shown = workload.load(where("workloads") / "n-1.json")
    [checkpoint, _] = predicted(shown)
    assert checkpoint.calls["POSIX"]["POSIX_WRITES"] is None
    assert checkpoint.calls["MPI-IO"]["MPIIO_COLL_WRITES"] == 72
    for method in ("adios", "uring", "of-a-study"):
        others = [replace(p, method=method, collective=False) for p in patterns_of(shown)]
        [checkpoint, _] = predicted(with_patterns(shown, others))
        assert set(checkpoint.calls["POSIX"].values()) == {None}


def test_reads_between_direct_writes_are_not_known() -> None:
    """One that is not aligned is made as two."""
    row = small("n-1")
    stream = row["streams"][0] | {"method": "posix", "collective": False}
    dump = stream["dumps"][0]
    stream["dumps"] = [dump | {"variables": [dump["variables"][3] | {"shape": [1 << 15]}]}]
    stream["lookups"] = {"every_bytes": 5000, "calls": 3, "transfer_bytes": 7000}
    for direct in (False, True):
        row["streams"] = [stream | {"direct": direct}]
        [checkpoint] = predicted(workload.build(row, "row"))
        assert (checkpoint.calls["POSIX"]["POSIX_READS"] is None) == direct
        assert checkpoint.calls["POSIX"]["POSIX_WRITES"]


def test_each_stream_of_a_set_is_of_its_own_method() -> None:
    """A header by stdio, data behind it by MPI-IO: POSIX is the library's, STDIO is not."""
    row = small("n-1")
    data = row["streams"][0]
    rank_0 = {"rule": "runs", "runs": [[1, 100], [row["ranks"] - 1, 0]]}
    variable = data["dumps"][0]["variables"][0] | {"name": "h", "type": "byte", "shape": [100]}
    header = data | {"name": "header", "method": "stdio", "collective": False, "turns": False}
    header["dumps"] = [
        dump | {"variables": [variable | {"count": 1, "file": 0, "decomposition": rank_0}]}
        for dump in data["dumps"]
    ]
    row["streams"] = [header, data | {"extends": "header"}]
    alone, both = small("n-1"), workload.build(row, "row")
    alone["streams"] = alone["streams"][:1]
    [expected] = predicted(workload.build(alone, "row"))
    [joined] = predicted(both)
    contents = sum(dump.count for dump in both.streams[0].steps)
    assert joined.calls["STDIO"]["STDIO_BYTES_WRITTEN"] == 100 * contents
    assert joined.calls["POSIX"]["POSIX_WRITES"] is None
    for name in ("MPIIO_BYTES_WRITTEN", "MPIIO_COLL_WRITES", "MPIIO_INDEP_WRITES"):
        assert joined.calls["MPI-IO"][name] == expected.calls["MPI-IO"][name] != 0 or (
            "INDEP" in name
        )


def test_the_command_prints_tables_and_json() -> None:
    path = str(where("workloads") / "n-1.json")
    text = CliRunner().invoke(main, ["show", path, "--counters"])
    assert text.exit_code == 0, text.output
    assert re.search(r"(?m)^MPIIO_COLL_WRITES +72 +0$", text.output)
    assert "Not known of POSIX: 16 counters" in text.output
    row = json.loads(CliRunner().invoke(main, ["show", path, "--counters", "--json"]).output)
    assert [s["name"] for s in row["sets"]] == ["checkpoint", "visualization"]
    assert row["total"]["MPI-IO"]["MPIIO_COLL_WRITES"] == 104
    assert row["total"]["POSIX"]["POSIX_WRITES"] is None

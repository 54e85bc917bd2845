"""The counters that are predicted of a run, against those that Darshan counts."""

import json
import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from random import Random
from time import process_time
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import observed, player
from tests.support.keys import patterns_of, to_keys, with_patterns
from tests.support.needs import need, needs
from tests.support.random_workloads import Limits, Row, can_be_played, playable, valid
from understudy.cli import main
from understudy.contracts import workload
from understudy.contracts.workload import Workload, load
from understudy.errors import UnderstudyError
from understudy.paths import where
from understudy.program.calls import calls_of
from understudy.program.counters import Counters
from understudy.program.instructions import Move, Operate, Stream, flat, instructions
from understudy.program.needs import borrows
from understudy.program.opens import opens_of, prepared_opens
from understudy.program.predicted_counters import Predicted, predict
from understudy.program.sizes import bytes_of
from understudy.program.syncs import syncs_of

RANDOM = Limits(ranks=4, streams=3, entries=4, variables=3, bytes=2048, files=2, long_repeat=10)
BATCHES, BATCH = 8, 25
# glibc 2.33 and newer have stat under names that Darshan 3.5 does not watch.
UNSEEN = {"POSIX_STATS"}
OURS = sorted(path.stem for path in where("workloads").glob("*.json"))


def predicted(shown: Workload) -> tuple[Predicted, ...]:
    return predict(shown.program)


def differences(shown: Workload, path: Path, folder: Path) -> list[tuple[Any, ...]]:
    """Counters of a run that are predicted otherwise than Darshan counts them."""
    names = [s.name for s in shown.streams]
    found = observed.counters(path, shown.ranks, folder, names)
    wrong = []
    for each in predicted(shown):
        for module, names_ in each.all.items():
            for name, number in names_.items():
                numbers = [found[s][module][name] for s in each.streams if s in found]
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
    found = calls_of(shown.program.streams[0], 4)
    assert found.count == (4 * calls if collective else calls + 3)
    (of_set,) = predicted(shown)
    counters = {k: v for each in of_set.calls.values() for k, v in each.items()}
    kind = "H5D" if method == "hdf5" else "MPIIO_COLL" if collective else "MPIIO_INDEP"
    assert counters[f"{kind}_WRITES"] == found.count


@needs("Darshan's runtime")
@pytest.mark.parametrize("name", OURS)
def test_darshan_counts_what_is_predicted_of_our_workloads(name: str, tmp_path: Path) -> None:
    shown, path = written(small(name), tmp_path)
    for method in {s.method for s in shown.streams}:
        need(*(["Darshan's HDF5 module"] if method == "hdf5" else []))
        player.needs(method)
    assert differences(shown, path, tmp_path / "run") == []


# -- random workloads -----------------------------------------------------------------------------


def random_rows(first: int, count: int) -> Iterator[Row]:
    for seed in range(first, first + count):
        row = playable(valid(Random(seed), RANDOM))
        if can_be_played(row):
            yield row


def expect_predicted(rows: Iterable[Row], folder: Path) -> None:
    """Of a batch at least half can be played, and all that can has the counters predicted."""
    played, wrong = 0, []
    for k, row in enumerate(rows):
        (folder / str(k)).mkdir()
        shown, path = written(row, folder / str(k))
        try:
            wrong += [(k, *each) for each in differences(shown, path, path.parent / "run")]
            played += 1
        except AssertionError as error:
            assert "understudy: " in str(error), error  # a reason why it cannot be played
    assert wrong == []
    assert played >= BATCH // 2


@needs("Darshan's runtime")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_darshan_counts_what_is_predicted_of_random_workloads(batch: int, tmp_path: Path) -> None:
    need("Darshan's HDF5 module")
    player.needs("hdf5")
    expect_predicted(random_rows(batch * BATCH, BATCH), tmp_path)


# An extended stream makes files without bytes; what reads finds a dump of operations alone; a
# grid of a single rank that takes turns.
ONCE_WRONG = (500010, 500144, 500165, 700088)


@needs("Darshan's runtime")
@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_darshan_counts_what_was_once_predicted_wrong(seed: int, tmp_path: Path) -> None:
    [row] = random_rows(seed, 1)
    assert differences(*written(row, tmp_path), tmp_path / "run") == []


def looking_up(row: Row, rng: Random) -> Row:
    """The workload with reads between the writes of its streams, where they can have them."""
    for stream in row["streams"]:
        stream["method"] = "stdio" if stream["method"] == "stdio" else "posix"
        if stream["operation"] == "write" and stream["layout"] != "flood":
            stream["order"] = {"rule": "consecutive"}
            stream["lookups"] = {
                "every_bytes": rng.choice((1, 50, 200)),
                "calls": rng.choice((0.3, 1, 2.5)),
                "transfer_bytes": rng.choice((1, 16, 100)),
            }
    return row


def test_ranks_that_are_late_change_no_counter() -> None:
    compared = 0
    for row in random_rows(0, 60):
        made = []
        for skew in ({}, {"skew": [[row["ranks"], 0.25]]}):
            one = deepcopy(row)
            for stream in one["streams"]:
                for dump in stream["dumps"]:
                    dump.pop("skew", None)
                    dump |= skew
            made.append(predicted(workload.build(one, "row")))
        early, late = made
        assert late == early
        compared += len(late)
    assert compared > 60


@needs("Darshan's runtime")
@pytest.mark.parametrize("batch", range(4))
def test_darshan_counts_what_is_predicted_of_lookups(batch: int, tmp_path: Path) -> None:
    rng, rows = Random(batch), random_rows(700_000 + batch * BATCH, BATCH)
    expect_predicted((looking_up(row, rng) for row in rows), tmp_path)


def test_calls_opens_and_flushes_are_those_of_the_counters() -> None:
    """Of MPI-IO, which divides no call; some read through opens of another stream."""
    compared = lent = 0
    for row in random_rows(0, 400):
        for stream in row["streams"]:
            stream["method"] = "mpiio"
        program = workload.build(row, "row").program
        threads = {t.name: t for t in program.streams}
        for each in predict(program):
            some = [threads[name] for name in each.streams]
            lent += sum(map(borrows, some))
            calls = [calls_of(t, program.ranks) for t in some]
            opens = sum(opens_of(t, program.ranks, threads.get(t.last)) - creates(t) for t in some)
            assert opens == summed(each.calls, "INDEP_OPENS", "COLL_OPENS")
            prepared = sum(prepared_opens(t, program.ranks)[0] for t in some)
            assert prepared == summed(each.prepared, "INDEP_OPENS", "COLL_OPENS")
            together = summed(each.calls, "COLL_READS", "COLL_WRITES")
            assert sum(c.collective for c in calls) == together
            alone = summed(each.calls, "INDEP_READS", "INDEP_WRITES")
            assert sum(c.count for c in calls) == together + alone
            moved = sum(bytes_of(t) for t in some)
            assert moved == summed(each.calls, "BYTES_READ", "BYTES_WRITTEN")
            if not any(
                i.flush_bytes for t in some for i in instructions(t) if isinstance(i, Move)
            ):
                synced = sum(syncs_of(t, program.ranks) for t in some)
                assert synced == summed(each.calls, "SYNCS")
            compared += 1
    assert compared > 300 and lent > 0


def creates(thread: Stream) -> int:
    """Files that its operations make, by POSIX."""
    return sum(
        step.count * i.count
        for step in thread.steps
        for i in flat(step.body)
        if isinstance(i, Operate) and i.kind == "create"
    )


def summed(some: Mapping[str, Counters], *names: str) -> int:
    """Counters of MPI-IO together."""
    return sum(some.get("MPI-IO", {}).get(f"MPIIO_{name}") or 0 for name in names)


def test_repeated_dumps_count_as_if_they_were_listed() -> None:
    """Nor does it matter how many of them are alike."""
    for row in random_rows(0, 200):
        shown = workload.build(row, "row")
        listed = deepcopy(row)
        for stream in listed["streams"]:
            stream["dumps"] = list(_expanded(stream["dumps"]))
        try:
            expected = predicted(workload.build(listed, "row"))
        except UnderstudyError:  # a variable has a place that it has not in the first of them
            continue
        assert predicted(shown) == expected


def _expanded(dumps: list[Row]) -> Iterator[Row]:
    for dump in dumps:
        repeat = dump.get("repeat", {"count": 1, "period_s": 0})
        for k in range(repeat["count"]):
            row = {key: value for key, value in dump.items() if key != "repeat"}
            row["time_s"] = dump["time_s"] + k * repeat["period_s"] if k else dump["time_s"]
            yield row


def test_it_takes_no_longer_for_many_dumps_and_ranks() -> None:
    row = small("n-n")
    row["ranks"] = row["scaling"]["from_ranks"] = 1_000_000
    for stream in row["streams"]:
        stream["dumps"] = [stream["dumps"][0] | {"repeat": {"count": 1_000_000, "period_s": 1}}]
        for variable in stream["dumps"][0]["variables"]:
            variable["decomposition"] = {"rule": "even"}
    shown = workload.build(row, "row")
    begin = process_time()
    [checkpoint, _] = predicted(shown)
    assert process_time() - begin < 2
    assert checkpoint.calls["POSIX"]["POSIX_BYTES_WRITTEN"] == shown.streams[0].bytes


@pytest.mark.parametrize("name", ["n-n", "n-m", "n-1", "s3d"])
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
        made = [p.operations for d in stream.dumps for p in d.phases if p.phase == "write"]
        assert (sum(moved), sum(calls)) == (stream.bytes, sum(made))


def test_what_a_library_decides_is_not_known() -> None:
    shown = workload.load(where("workloads") / "n-1.json")
    [checkpoint, _] = predicted(shown)
    assert checkpoint.calls["POSIX"]["POSIX_WRITES"] is None
    assert checkpoint.calls["MPI-IO"]["MPIIO_COLL_WRITES"] == 72
    one = [replace(p, method="adios", collective=False) for p in patterns_of(shown)]
    [checkpoint, _] = predicted(with_patterns(shown, one))
    assert set(checkpoint.calls["POSIX"].values()) == {None}


def test_reads_between_direct_writes_are_not_known() -> None:
    """One that is not aligned is made as two."""
    row = small("n-1")
    stream = row["streams"][0] | {"method": "posix", "collective": False}
    dump = stream["dumps"][0]
    stream["dumps"] = [dump | {"variables": [dump["variables"][3] | {"shape": [1 << 15]}]}]
    stream["lookups"] = {"every_bytes": 5000, "calls": 3, "transfer_bytes": 7000}
    found = {}
    for direct in (False, True):
        row["streams"] = [stream | {"direct": direct}]
        [one] = predicted(workload.build(row, "row"))
        found[direct] = one.calls["POSIX"]
    assert found[False]["POSIX_READS"] and found[True]["POSIX_READS"] is None
    assert found[True]["POSIX_WRITES"]


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
    [found] = predicted(both)
    contents = sum(dump.count for dump in both.streams[0].steps)
    assert found.calls["STDIO"]["STDIO_BYTES_WRITTEN"] == 100 * contents
    assert found.calls["POSIX"]["POSIX_WRITES"] is None
    for name in ("MPIIO_BYTES_WRITTEN", "MPIIO_COLL_WRITES", "MPIIO_INDEP_WRITES"):
        assert found.calls["MPI-IO"][name] == expected.calls["MPI-IO"][name] != 0 or (
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

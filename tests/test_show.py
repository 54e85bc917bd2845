"""understudy show: what is alike takes one line, and a file is decoded once."""

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support import results as samples
from tests.support.keys import patterns_of, with_patterns
from tests.support.said import said
from understudy.cli import main
from understudy.contracts import strict
from understudy.contracts.workload import Operation, Pattern, Workload
from understudy.paths import where
from understudy.units import size

PLAYER = Path(__file__).parent / "golden" / "measurements" / "player.json"


def shown(workload: Workload, folder: Path, *options: str) -> list[str]:
    path = folder / "w.json"
    path.write_text(workload.to_text())
    done = CliRunner().invoke(main, ["show", str(path), *options])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def of(*streams: Pattern) -> Workload:
    return with_patterns(samples.per_process(), streams)


def station(number: int) -> Pattern:
    [stream, *_] = patterns_of(samples.per_process())
    dump = replace(stream.dumps[0], time_s=float(number))
    return replace(stream, name=f"output-{number}", role="output", dumps=(dump,))


def test_streams_that_are_alike_take_one_line(tmp_path: Path) -> None:
    many = of(*map(station, range(482)))
    lines = shown(many, tmp_path)
    (line,) = [line for line in lines if line.startswith("output-0 and 481 alike")]
    assert "0.000 s" in line and "481.000 s" in line
    assert len(lines) < 12 and "in 482 streams" in lines[0]
    assert f"{many.bytes:,}" in lines[-1], "the dumps' bytes are added up"
    assert len(shown(many, tmp_path, "--all")) > 2 * 482


def test_streams_that_differ_are_listed(tmp_path: Path) -> None:
    other = replace(station(9), transfer_bytes=77)
    lines = shown(of(*map(station, range(3)), other), tmp_path)
    assert [line.split()[0] for line in lines if line.startswith("output")] == [
        "output-0",
        "output-1",
        "output-2",
        "output-9",
    ]


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([0, 2, 4, 6, 8], ["0 to 4"]),
        ([0, 2, 4, 9, 11], ["0", "1", "2", "3", "4"]),  # of no period
        ([0, 2, 4], ["0", "1", "2"]),
    ],
)
def test_dumps_of_one_period_take_one_line(
    times: list[float], expected: list[str], tmp_path: Path
) -> None:
    stream = station(0)
    dumps = tuple(replace(stream.dumps[0], time_s=float(t)) for t in times)
    lines = shown(of(replace(stream, dumps=dumps)), tmp_path)
    rows = [line for line in lines[lines.index("Dumps") + 2 :] if "output-0" in line]
    numbers = [line.split("output-0")[1].strip().split("  ")[0] for line in rows]
    assert numbers == expected
    assert ("every 2.00 s" in rows[0]) == (len(rows) == 1)


def test_a_file_is_decoded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = tmp_path / "w.json"
    workload.write_text(of(station(0)).to_text())
    plain, seen = strict.decode, []

    def counted(text: str, where: str, *others: Any, **options: Any) -> object:
        seen.append(where)
        return plain(text, where, *others, **options)

    monkeypatch.setattr(strict, "decode", counted)
    for path in (workload, PLAYER):
        seen.clear()
        assert CliRunner().invoke(main, ["show", str(path)]).exit_code == 0
        assert seen.count(str(path)) == 1


def test_files_without_a_byte_are_not_written(tmp_path: Path) -> None:
    """Inputs that are opened and looked at, but not read."""
    stream, runs = station(0), ((samples.per_process().ranks, 2),)
    looked = tuple(Operation(operation=word, runs=runs) for word in ("stat", "open"))
    dump = replace(stream.dumps[0], variables=(), operations=looked)
    lines = shown(of(replace(stream, dumps=(dump,)), station(1)), tmp_path)
    (line,) = [line for line in lines if line.startswith("output-0")][:1]
    assert "open, stat" in line and "write" not in line


def test_a_note_is_one_line(tmp_path: Path) -> None:
    workload = of(station(0))
    workload = replace(workload, source=replace(workload.source, notes=("a\nforged line",)))
    said("note-nforged-line", shown(workload, tmp_path)[-1])


@pytest.mark.parametrize("more", [[], ["--counters"]])
def test_a_device_is_no_input(more: list[str]) -> None:
    """It may never end."""
    done = CliRunner().invoke(main, ["show", "/dev/zero", *more])
    assert done.exit_code == 2
    assert done.stderr.startswith("understudy: /dev/zero: cannot ")
    assert done.stderr.endswith(": is no regular file\n")


def jittering(number: int) -> Pattern:
    """Dumps whose period is never the same, and whose sizes differ from stream to stream."""
    stream = station(number)
    first = stream.dumps[0]
    dumps = tuple(replace(first, time_s=k + 0.1 * (k * 7 % 5), repeat=None) for k in range(100))
    return replace(stream, name=f"output-{number}", dumps=dumps)


@pytest.mark.parametrize("count", [1, 30, 300])
def test_sixty_lines_show_any_workload(count: int, tmp_path: Path) -> None:
    workload = of(*(jittering(k) if k % 3 else station(k) for k in range(count)))
    workload = replace(
        workload, source=replace(workload.source, notes=("a note",) * 100 + ("the last",))
    )
    lines = shown(workload, tmp_path)
    assert len(lines) <= 60 and said("note-last", lines[-1])
    said("more-notes-all-shows", lines[-2])
    assert len(shown(workload, tmp_path, "--all")) > count + 100


def test_a_table_that_is_too_long_does_not_displace_the_notes(tmp_path: Path) -> None:
    """Dumps that no rule folds: too few in a row, of too many streams."""
    first = station(0).dumps[0]
    dumps = tuple(replace(first, time_s=float(2**k)) for k in range(3))
    workload = of(
        *(replace(station(k), dumps=dumps, transfer_bytes=512 * (k + 1)) for k in range(20))
    )
    workload = replace(workload, source=replace(workload.source, notes=("the first", "the last")))
    lines = shown(workload, tmp_path)
    assert len(lines) == 60 and said("note-last", lines[-1])
    assert any("lines of dumps: --all shows them" in line for line in lines)


def test_an_output_that_is_closed_is_one_message() -> None:
    command = f"{shlex.quote(sys.executable)} -m understudy show n-1 >&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    said("standard-output-closed-expected", done.stderr)


@pytest.mark.parametrize(
    "words",
    [("show", str(where("workloads") / "n-1.json")), ("--all",), ("--help",), ("show", "--help")],
)
def test_an_output_that_is_full_is_one_message(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "understudy", *words]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    said("standard-output-cannot-written", done.stderr)


def result_on(hosts: int, folder: Path, **deadline: int) -> list[str]:
    """Lines about a result of 8 ranks whose slowest host takes 2.4 times as long as the median."""
    row = json.loads(PLAYER.read_text())
    row["environment"] |= {"ranks": 8}
    row["environment"]["nodes"] = [{"name": f"node{n}", "ranks": 8 // hosts} for n in range(hosts)]
    host = {"host": "node3", "io_s": 4.8, "median_io_s": 2.0}
    rank = {"rank": 5, "host": "node3", "io_s": 5.0, "median_io_s": 2.0}
    row["repetitions"][0] |= {"slowest_host": host, "slowest_rank": rank}
    if deadline:
        both = {"min": 3, "max": 1700}
        ends = {"bytes": 1, "rank_bytes": both, "rank_transfers": both} | deadline
        row["repetitions"][0]["streams"][0]["dumps"][0]["deadline"] = ends
    path = folder / "result.json"
    path.write_text(json.dumps(row))
    done = CliRunner().invoke(main, ["show", str(path)])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_slowest_host_and_rank_are_named(tmp_path: Path) -> None:
    [line] = [line for line in result_on(4, tmp_path) if line.startswith("slowest")]
    assert said("slowest-host", line)
    [line] = [line for line in result_on(1, tmp_path) if line.startswith("slowest")]
    assert said("slowest-rank", line)


def test_deadline_is_told(tmp_path: Path) -> None:
    assert not any("deadline" in line for line in result_on(1, tmp_path, stopped_ranks=0))
    [line] = [line for line in result_on(1, tmp_path, stopped_ranks=2) if "deadline" in line]
    assert said("deadline-stopped", line)


def test_reads_and_writes_of_a_stream_are_rows(tmp_path: Path) -> None:
    """As of --mix; and the percentiles of their calls, and when ranks were done."""
    row = json.loads(PLAYER.read_text())
    stream = row["repetitions"][0]["streams"][0]
    name, written = stream["name"], sum(d["bytes"] for d in stream["dumps"])
    latency: dict[str, Any] = {"count": 2, "bytes": 8, "p50_s": 1.003e-6}
    latency |= dict.fromkeys(("p99_s", "p999_s", "max_s"), 3e-6)
    latency["histogram_ns"] = [[1003, 1], [3007, 1]]
    stream["latency"] = {kind: latency for kind in ("write", "read")}
    for dump in stream["dumps"]:
        [moved] = [phase for phase in dump["phases"] if phase["bytes"]]
        moved |= {"first_end_s": moved["last_end_s"], "first_end_bytes": moved["bytes"]}
        dump["phases"].append(moved | {"phase": "read", "bytes": 3 << 20})
        dump["bytes"] += 3 << 20
    path = tmp_path / "result.json"
    path.write_text(json.dumps(row))
    done = CliRunner().invoke(main, ["show", str(path)])
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    lines = lines[: lines.index("", lines.index("Latency"))]  # of the first repetition
    rows = [line for line in lines if line.startswith(f"{name}  ")]
    count = len(stream["dumps"])
    assert len(rows) == 4 and size(written) in rows[0] and size(count * 3 << 20) in rows[1]
    assert "write" in rows[0] and " read " in rows[1] and "3.00 µs" in rows[1]
    assert [line.split()[1:3] for line in rows[2:]] == [["write", "2"], ["read", "2"]]
    assert "p99.9" in "".join(lines) and "first done" in done.stdout
    assert done.stdout.count(f"{name} (read)") == count


def test_sixty_lines_of_a_run_begin_those_of_all_of_it(tmp_path: Path) -> None:
    """Of dumps that read and wrote, each takes two."""
    path = tmp_path / "result.json"
    dumps = range(70)
    played = samples.stream("log", "output", [8192 + k for k in dumps], [2.0 * k for k in dumps])
    row = samples.result(samples.workload("long", [played]))
    for dump in row["repetitions"][0]["streams"][0]["dumps"][-3:]:
        [moved] = [phase for phase in dump["phases"] if phase["bytes"]]
        dump["phases"].append(moved | {"phase": "read", "bytes": 512})
        dump["bytes"] += 512
    path.write_text(json.dumps(row))
    some, every = (
        CliRunner().invoke(main, ["show", str(path), *options]).stdout.splitlines()
        for options in ((), ("--all",))
    )
    head = next(k for k, line in enumerate(every) if line.split()[:2] == ["start", "stream"])
    assert len(every) == head + 1 + len(dumps) + 3
    assert [line.split() for line in some[:-1]] == [line.split() for line in every[:59]]
    assert some[-1] == f"{len(every) - 59} more lines: --all shows them"

"""Darshan logs with DXT: each traced read and write becomes a call that the player makes again."""

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.readers.logs import TRACES
from tests.readers.synthetic import Run
from tests.readers.test_described import valid
from tests.support.needs import DARSHAN, need
from tests.support.player import play, strace
from tests.support.said import raises, said
from understudy.cli import main
from understudy.contracts.workload import Workload, load
from understudy.darshanlog import open_log
from understudy.errors import UnderstudyError
from understudy.inference.log.interface_counters import not_junk
from understudy.readers import darshan
from understudy.tracing import dxt
from understudy.tracing.lines import parse as lines_of

Segment = tuple[int, int, float, float]
Call = tuple[str, int, int]


def rows_of(rows: Any, passes: tuple[int, ...] = (), rank: int = 0) -> Iterator[tuple[int, Any]]:
    """Each call of loops, with its rank."""
    for row in rows:
        if "call" in row:
            call = dict(row)
            for key in ("path", "at"):
                if isinstance(call.get(key), list):
                    base, *factors = call[key]
                    call[key] = base + sum(f * k for f, k in zip(factors, passes, strict=False))
            yield rank, call
            continue
        first, count = row.get("ranks", (rank, row.get("repeat")))
        for k in range(count):
            yield from rows_of(row["do"], (*passes, k), first + k * ("ranks" in row))


class Played:
    """What the calls of a workload do, step by step."""

    def __init__(self, workload: Workload) -> None:
        self.kinds: Counter[str] = Counter()
        self.moves: dict[tuple[int, int], list[Call]] = {}  # by rank and entry, in order
        self.flags: dict[tuple[int, int], list[list[str]]] = {}  # of the opens
        self.steps: list[set[tuple[str, int]]] = []  # kinds and ranks
        handles: dict[tuple[int, int], int] = {}
        for step in workload.streams[0].steps:
            assert step.calls is not None
            self.steps.append(set())
            for rank, row in rows_of(step.calls.rows):
                kind = row["call"]
                self.kinds[kind] += 1
                self.steps[-1].add((kind, rank))
                if kind == "open":
                    assert (rank, row["as"]) not in handles
                    handles[rank, row["as"]] = row["path"]
                    self.flags.setdefault((rank, row["path"]), []).append(row["flags"])
                elif kind in ("read", "write"):
                    move = (kind, row["at"], row["bytes"])
                    self.moves.setdefault((rank, handles[rank, row["of"]]), []).append(move)
                elif kind == "close":
                    del handles[rank, row["of"]]
        assert not handles

    @property
    def lives(self) -> list[tuple[int, list[Call]]]:
        """Moves of a rank on a file, of all ranks and files."""
        return sorted((rank, moves) for (rank, _), moves in self.moves.items())


def traced(path: Path) -> list[tuple[int, list[Call]]]:
    """The same, as DXT has them."""
    moves: dict[tuple[int, int], list[tuple[float, Call]]] = {}
    with open_log(path) as log:
        kept = not_junk(log)
        for record in log.dxt("DXT_POSIX"):
            if kept(np.array([record.id], np.uint64))[0]:
                home = moves.setdefault((record.rank, record.id), [])
                for kind, rows in (
                    ("read", record.read_segments),
                    ("write", record.write_segments),
                ):
                    for at, length, start_s, *_ in rows.tolist():
                        home.append((start_s, (kind, at, length)))
    return sorted(
        (rank, [call for _, call in sorted(calls)]) for (rank, _), calls in moves.items() if calls
    )


def add(run: Run, name: str, rank: int, writes: list[Segment], **counters: Any) -> int:
    """Traced writes, or reads with `read=`, and what POSIX counts of them."""
    reads: list[Segment] = counters.pop("read", [])
    run.trace(name, writes, rank, reads=reads)
    usual = {"OPENS": 1, "WRITES": len(writes), "READS": len(reads)}
    usual["BYTES_WRITTEN"] = sum(length for _, length, *_ in writes)
    usual["BYTES_READ"] = sum(length for _, length, *_ in reads)
    return run.record("POSIX", name, rank, **(usual | counters))


def described(run: Run, folder: Path) -> Workload:
    workload = run.describe(folder, calls=True)
    valid(workload)
    return workload


def notes_of(workload: Workload) -> str:
    assert workload.source is not None
    return "\n".join(workload.source.notes)


@pytest.mark.parametrize("seed", range(20))
def test_the_calls_are_those_that_were_traced(seed: int, tmp_path: Path) -> None:
    """In any order in the log, on any places, of ranks with and without calls."""
    rng = Random(f"dxt {seed}")
    run = Run(nprocs=5, run_time_s=1000.0)
    expected: list[tuple[int, list[Call]]] = []
    for n in range(4):
        for rank in rng.sample(range(5), rng.randint(1, 4)):
            calls, now_s = [], rng.random()
            for k in range(rng.randint(1, 30)):
                at = rng.choice([k * 100, rng.randrange(1 << 40)])
                length = rng.choice([0, 100, rng.randrange(1 << 20)])
                kind = rng.choice(["read", "write", "write"])
                calls.append((kind, (at, length, now_s, now_s + 0.001)))
                now_s += rng.choice([0.002, 9.0])
            expected.append((rank, [(kind, at, length) for kind, (at, length, *_) in calls]))
            rng.shuffle(calls)
            writes, reads = ([c for kind, c in calls if kind == k] for k in ("write", "read"))
            add(run, f"/s/{n}", rank, writes, read=reads, OPENS=rng.randint(1, 4))
    workload = described(run, tmp_path)
    assert workload.ranks == 5 and workload.streams[0].set.groups == 5
    assert Played(workload).lives == sorted(expected)


@pytest.mark.parametrize("name", ["qe_si_md_dxt", "trap_newer_dxt"])
def test_the_calls_of_real_logs_are_those_that_were_traced(name: str) -> None:
    path = TRACES / f"{name}.darshan"
    assert Played(darshan.read(path, calls=True)).lives == traced(path)


def test_calls_of_a_rank_at_a_time_are_in_flight(tmp_path: Path) -> None:
    """Where they hold it on average, and by more than the clock tells; not those of two ranks."""
    run = Run(nprocs=3)
    threads = [(k * 10, 10, 1.0 + k // 4, 1.9 + k // 4 + k % 4 * 0.01) for k in range(16)]
    add(run, "/s/0", 0, threads)
    once = [(k * 10, 10, 1.0 + k, 1.9 + k + 0.4 * (k == 3)) for k in range(9)]
    add(run, "/s/1", 1, once)
    add(run, "/s/2", 2, [(k * 10, 10, 1.0 + k, 2.0 + k + 5e-7) for k in range(9)])
    workload = described(run, tmp_path)
    depths: dict[int, set[int]] = {}
    for step in workload.streams[0].steps:
        assert step.calls is not None
        for rank, row in rows_of(step.calls.rows):
            if row["call"] == "write":
                depths.setdefault(rank, set()).add(row.get("depth", 1))
    assert depths == {0: {4}, 1: {1}, 2: {1}}
    assert said("in-flight", notes_of(workload))


def test_opens_stats_and_syncs_are_as_many_as_were_counted(tmp_path: Path) -> None:
    run = Run(nprocs=8)
    writes = [(k * 10, 10, 1.0 + k, 1.5 + k) for k in range(12)]
    add(run, "/s/own", 3, writes, OPENS=7, FILENOS=2, DUPS=1, STATS=5, FSYNCS=3, FDSYNCS=2)
    run.trace("/s/shared", writes, 6)
    whole = {"OPENS": 10, "STATS": 8, "FSYNCS": 16, "WRITES": 12, "BYTES_WRITTEN": 120}
    run.record("POSIX", "/s/shared", -1, **whole)
    run.record("POSIX", "/s/looked", STATS=2)
    played = Played(described(run, tmp_path))
    kinds = {"open": 14, "close": 14, "stat": 15, "sync": 21, "write": 24}
    assert played.kinds == kinds
    assert Counter(rank for (rank, _), opens in played.flags.items() for _ in opens) == {
        **dict.fromkeys(range(8), 1),
        3: 5,
        6: 2,
        0: 2,
    }


def test_opens_are_where_places_start_again_else_in_the_longest_pauses(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    anew = [(k % 4 * 10, 10, 1.0 + k, 1.5 + k) for k in range(12)]
    add(run, "/s/anew", 0, anew, OPENS=3)
    late = [(k * 10, 10, 20.0 + k + 9 * (k > 1), 20.5 + k + 9 * (k > 1)) for k in range(4)]
    add(run, "/s/append", 0, late, OPENS=2)
    workload = described(run, tmp_path)
    opens = [
        (k, row["path"], row["flags"])
        for k, row in enumerate(
            row
            for step in workload.streams[0].steps
            if step.calls
            for _, row in rows_of(step.calls.rows)
            if row["call"] in ("open", "write")
        )
        if row["call"] == "open"
    ]
    anew_flags = ["write", "create", "truncate"]
    assert opens == [
        *((k, 0, anew_flags) for k in (0, 5, 10)),
        (15, 1, anew_flags),
        (18, 1, ["write", "create"]),
    ]
    text = notes_of(workload)
    said("opens-files-rank-opened", text)
    assert "4 opens truncate" in text


def test_bytes_that_are_read_but_not_written_are_there_before(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    add(run, "/a/read", 0, [], read=[(0, 10, 1.0, 1.1), (500, 20, 2.0, 2.1)])
    add(run, "/b/back", 0, [(0, 100, 3.0, 3.1)], read=[(0, 100, 4.0, 4.1)])
    add(run, "/b/more", 0, [(0, 100, 3.0, 3.1)], read=[(0, 150, 4.0, 4.1)])
    add(run, "/b/late", 0, [(0, 100, 3.0, 3.1)], read=[(0, 30, 2.0, 2.1)])
    tree = described(run, tmp_path).streams[0].tree
    assert tree is not None
    folders, files = tree.entries[0], tree.entries[1:]
    assert folders.directory and folders.count == 2
    sizes = sorted(str(f.bytes) for f in files for _ in range(f.count))
    assert sizes == ["150", "30", "520", "None"]
    assert tree.stored_bytes == 520 + 100 + 150 + 100


def test_what_other_ranks_wrote_is_read_in_a_later_step(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    for rank in range(2):
        reads = [((1 - rank) * 100, 100, 1.2, 1.3)]
        run.trace("/s/all", [(rank * 100, 100, 1.0, 1.1)], rank, reads=reads)
    run.record("POSIX", "/s/all", -1, OPENS=2)
    played = Played(described(run, tmp_path))
    reads = next(k for k, step in enumerate(played.steps) if ("read", 0) in step)
    assert not any(kind == "write" for step in played.steps[reads:] for kind, _ in step)


def test_a_pause_of_all_ranks_begins_a_step(tmp_path: Path) -> None:
    run = Run(nprocs=2, run_time_s=100.0)
    for rank in range(2):
        writes = [(k * 10, 10, 10.0 * (k // 5) + 1, 10.0 * (k // 5) + 1.1) for k in range(20)]
        add(run, f"/s/{rank}", rank, writes)
    workload = described(run, tmp_path)
    assert [step.time_s for step in workload.streams[0].steps] == [1.0, 11.0, 21.0, 31.0]


def test_what_is_not_played_is_said(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    lacks = {"WRITES": 5, "BYTES_WRITTEN": 5000, "SEEKS": 3, "RENAME_SOURCES": 1, "MMAPS": 2}
    add(run, "/s/a", 0, [(0, 1000, 1.0, 1.1)], **lacks)
    run.write("/s/text", 1_200_000, 2.0, module="STDIO", rank=0)
    text = notes_of(described(run, tmp_path))
    said("requests-left-out", text)
    said("played-reads-writes-kib", text)
    said("played-stdio-file-mib", text)
    said("played-renames-time", text)
    said("seeks-places-reads-writes", text)


def test_a_log_without_dxt_says_how_to_record_it(tmp_path: Path) -> None:
    run = Run(nprocs=1)
    run.write("/s/a", 10, 1.0, rank=0)
    path = run.log(tmp_path / "a.darshan")
    done = CliRunner().invoke(main, ["describe", "--calls", str(path)])
    assert done.exit_code == 2 and done.stderr.count("\n") == 1
    said("no-module-dxt-posix", done.stderr)


def test_describe_says_where_each_call_is_traced(tmp_path: Path) -> None:
    for lacking, stdio, told in ((0, 0, True), (1, 0, False), (0, 10, False)):
        run = Run(nprocs=1)
        add(run, "/s/a", 0, [(0, 1000, 1.0, 1.1)], WRITES=1 + lacking)
        if stdio:
            run.write("/s/b", stdio, 1.0, module="STDIO", rank=0)
        path = run.log(tmp_path / "a.darshan")
        done = CliRunner().invoke(main, ["describe", str(path)])
        assert done.exit_code == 0
        assert ("understudy describe --calls" in " ".join(done.stderr.split())) is told
        done = CliRunner().invoke(main, ["describe", "--calls", str(path)])
        assert done.exit_code == 0 and said("replica-makes-calls-rank", done.stderr)


INF, NAN = float("inf"), float("nan")
HOSTILE: list[Segment] = [
    (-1, 10, 1.0, 1.1),
    ((1 << 63) - 1, 10, 1.0, 1.1),
    (0, -10, 1.0, 1.1),
    (0, 1 << 31, 1.0, 1.1),
    (0, (1 << 63) - 1, 1.0, 1.1),
    (0, 10, NAN, 1.1),
    (0, 10, 1.0, INF),
    (0, 10, 2.0, 1.0),
    (0, 10, -1.0, 1.0),
    (0, 10, 1.0, 1e300),
]


def test_impossible_calls_are_left_out_and_counted(tmp_path: Path) -> None:
    run = Run(nprocs=2)
    good = (0, 10, 1.0, 1.1)
    add(run, "/s/a", 0, [*HOSTILE, good], WRITES=1, BYTES_WRITTEN=10)
    for rank in (-1, 2, 1 << 40):
        run.trace("/s/a", [good], rank)
    workload = described(run, tmp_path)
    assert Played(workload).lives == [(0, [("write", 0, 10)])]
    assert f"Module DXT_POSIX: {len(HOSTILE) + 3} records left out" in notes_of(workload)


def test_too_many_calls_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(nprocs=2)
    add(run, "/s/a", 0, [(0, 10, 1.0, 1.1)], STATS=1 << 52)
    with raises(UnderstudyError, "calls-expected-most"):
        run.describe(tmp_path, calls=True)
    monkeypatch.setattr(dxt, "MAX_HANDLES", 3)
    run = Run(nprocs=1)
    for n in range(4):
        add(run, f"/s/{n}", 0, [(0, 10, 1.0, 9.0)])
    with raises(UnderstudyError, "rank-has-more-than"):
        run.describe(tmp_path, calls=True)


PROGRAM = r"""
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>

static char bytes[20000];

int main(int argc, char **argv)
{
    int rank, size, bad = 0;
    char name[40];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int shared = open("app/shared", O_RDWR | O_CREAT, 0666);
    for (int k = 0; k < 10; k++)
        bad |= pwrite(shared, bytes, 5000, (k * size + rank) * 5000) != 5000;
    fsync(shared);
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(200000); // by which the clocks of ranks differ at most
    for (int k = 9; k >= 0; k -= 2)
        bad |= pread(shared, bytes, 3000, (k * size + (rank + 1) % size) * 5000 + 7) != 3000;
    close(shared);
    snprintf(name, sizeof name, "app/own.%d", rank);
    for (int n = 1; n < 4; n++) {
        int own = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        for (int k = 0; k < 4; k++)
            bad |= pwrite(own, bytes, 1000 * n, 1000 * n * k) != 1000 * n;
        close(own);
    }
    MPI_Finalize();
    return bad;
}
"""
TRACED = ("-f", "-ttt", "-y", "-e", "trace=pread64,pwrite64,openat,openat2,fsync,close")
_PLACE = re.compile(r"(\d+), (\d+)$")


def system_calls(trace: Path, below: str) -> list[tuple[str, int, int]]:
    """Of a rank, in order: kind, place and bytes; and whether an open writes and truncates."""
    calls = []
    for line in lines_of(trace.read_text(errors="surrogateescape").splitlines()):
        if line.name.startswith("openat") and f"/{below}/" in (line.path or ""):
            flags = line.text
            calls.append(("open", int("O_RDONLY" not in flags), int("O_TRUNC" in flags)))
        elif line.name and f"/{below}/" in line.arguments[0]:
            place = _PLACE.search(line.text)
            moved = (int(place[2]), int(place[1])) if place else (0, 0)
            calls.append((line.name, *moved))
    return calls


def test_the_player_makes_the_calls_of_a_program_that_darshan_traced(tmp_path: Path) -> None:
    need("Darshan's runtime", "strace", "ptrace")
    (tmp_path / "app").mkdir()
    (tmp_path / "p.c").write_text(PROGRAM)
    log, ranks = tmp_path / "a.darshan", 3
    settings = f"DARSHAN_LOGFILE={log} DXT_ENABLE_IO_TRACE=1"
    preload = f"env -u LD_BIND_NOW LD_PRELOAD={DARSHAN}/lib/libdarshan.so {settings}"
    each = 'exec "$@" -o "$OUT.$OMPI_COMM_WORLD_RANK$PMI_RANK"'
    run = f"mpirun -n {ranks} sh -c '{each} {preload} ./p' - {strace()} {' '.join(TRACED)}"
    done = subprocess.run(
        ["bash", "-c", f'. "{TRACES.parent}/setup-env.sh"; mpicc -o p p.c && {run}'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OUT": str(tmp_path / "app.strace")},
    )
    assert done.returncode == 0, done.stderr
    descriptor = tmp_path / "app.json"
    told = CliRunner().invoke(main, ["describe", "--calls", str(log), "-o", str(descriptor)])
    assert told.exit_code == 0, told.output
    tree = f"{load(descriptor).streams[0].set.name}.tree"
    script = tmp_path / "traced.sh"
    script.write_text(
        f"#!/bin/sh\nexec {strace()} {' '.join(TRACED)} "
        f'-o "{tmp_path}/again.strace.$OMPI_COMM_WORLD_RANK$PMI_RANK" "$@"\n'
    )
    script.chmod(0o755)
    play(descriptor, ranks, tmp_path / "data", "--time-scale", "0", before=[str(script)])
    for rank in range(ranks):
        program = system_calls(tmp_path / f"app.strace.{rank}", "app")
        player = system_calls(tmp_path / f"again.strace.{rank}", tree)
        assert len(program) == 1 + 10 + 5 + 2 + 3 * 6
        assert player == program

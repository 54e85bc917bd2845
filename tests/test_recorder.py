"""Traces of Recorder: calls of libraries become calls that the player makes again."""

import json
import os
import struct
import subprocess
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from tests.support import damaged_traces
from tests.support import recorder as encoder
from tests.support.needs import need
from tests.support.said import said
from understudy.cli import main
from understudy.contracts.workload import Workload, build, load
from understudy.errors import UnderstudyError
from understudy.paths import ROOT
from understudy.program.workload import row_of
from understudy.readers import recorder, strace
from understudy.tracing.recorder_files import Trace

PATH = "/scratch/run/a"
CREATE, WRITE_ONLY, READ_WRITE = os.O_CREAT | os.O_TRUNC, os.O_WRONLY, os.O_RDWR
OPEN = ("open64", PATH, str(READ_WRITE | CREATE), "420")
CLOSE = ("close", PATH)
CALLS: list[encoder.Call] = [
    ("mkdir", "/scratch/run/d", "493"),
    OPEN,
    *(("pwrite", PATH, "%p", "4096", str(4096 * k)) for k in range(50)),
    ("fsync", PATH),
    ("lseek", PATH, "0", "0"),
    *3 * [("read", PATH, "%p", "100000")],
    CLOSE,
    ("rename", PATH, "/scratch/run/d/b"),
    ("unlink", "/scratch/run/d/b"),
    ("rmdir", "/scratch/run/d"),
]


def calls_made(workload: Workload) -> list[str]:
    """The calls, in order: `write 4096 at 0`."""
    calls = []
    for step in workload.streams[0].steps:
        assert step.calls is not None
        for call, times in step.calls.each():
            words = (f"{k} {call[k]}" for k in ("at", "moved") if k in call)
            text = " ".join((call["call"], str(call.get("bytes", "")), *words))
            calls += times * [" ".join(text.split()) + " fails" * call.get("fails", False)]
    return calls


def described(folder: Path, calls: list[encoder.Call]) -> tuple[list[str], str]:
    workload = recorder.read(encoder.write(folder, [calls]))
    assert workload.source is not None
    return calls_made(workload), " ".join(workload.source.notes)


@pytest.mark.parametrize(("version", "merged"), damaged_traces.LAYOUTS)
def test_all_layouts_have_the_same_calls(version: str, merged: bool, tmp_path: Path) -> None:
    trace = encoder.write(tmp_path / "t", [CALLS, CALLS], version, merged)
    for rank, calls in enumerate(Trace(trace).calls()):
        decoded = [*calls]
        assert [(call.name, *call.arguments) for call in decoded] == CALLS
        assert {call.rank for call in decoded} == {rank}
        assert decoded[1].begin_s == pytest.approx(20e-6)
        assert decoded[-1].end_s > decoded[-1].begin_s


def test_rules_stand_for_calls(tmp_path: Path) -> None:
    inner = [("write", PATH, "%p", "8"), ("fsync", PATH)]
    calls = [OPEN, *10 * (3 * inner[:1] + inner[1:]), CLOSE]
    rules = {-1: [(0, 1), (-2, 2), (3, 1)], -2: [(-4, 1)], -4: [(-3, 5)], -3: [(1, 3), (2, 1)]}
    trace = encoder.write(tmp_path / "t", [calls], rules=rules)
    (decoded,) = Trace(trace).calls()
    assert [(call.name, *call.arguments) for call in decoded] == calls


def test_calls_become_those_of_the_system(tmp_path: Path) -> None:
    system_calls, notes = described(tmp_path / "t", CALLS)
    writes = 50 * ["write 4096 at [0, 0, 4096]"]
    reads = ["read 100000", "read 100000", "read 100000 moved 4800"]
    assert system_calls == [
        *["mkdir", "open", *writes, "sync", "seek at 0", *reads],
        *["close", "rename", "unlink", "rmdir"],
    ]
    assert "what calls return" in notes and "Not played" not in notes


def test_nothing_of_a_name_is_in_the_workload(tmp_path: Path) -> None:
    secret = '/scratch/run/secret\nname"\\,<x>\udcff'
    calls = [tuple(word.replace(PATH, secret) for word in call) for call in CALLS]
    text = recorder.read(encoder.write(tmp_path / "host-user-app-1", [calls])).to_text()
    assert "secret" not in text and "scratch" not in text and "user" not in text
    assert calls_made(build(json.loads(text), "t")) == described(tmp_path / "plain", CALLS)[0]


def test_what_is_not_known_is_left_out_and_counted(tmp_path: Path) -> None:
    calls = [
        ("access", PATH, "0"),  # may have failed
        ("open", "/scratch/run/none", str(os.O_RDONLY)),  # of which no call follows
        OPEN,
        ("access", PATH, "0"),
        ("dup", "3"),
        ("mmap", "%p", "1", "1", "1", PATH, "0"),
        ("H5Dwrite", "1"),
        CLOSE,
        ("unlink", PATH),
        ("open", PATH, str(os.O_RDONLY)),
        ("pwrite", PATH, "%p", "1", "0"),
    ]
    system_calls, notes = described(tmp_path / "t", calls)
    assert system_calls == ["open", "stat", "close", "unlink", "open fails"]
    assert "access, of which the trace does not tell whether it succeeded (1 time)" in notes
    assert "open, of which the trace does not tell whether it succeeded (1 time)" in notes
    assert "dup" in notes and "HDF5" in notes and "pwrite on a file that is not known" in notes


def test_stdio_is_a_buffer(tmp_path: Path) -> None:
    write = ("fwrite", "%p", "100", "30", PATH)
    calls = [
        ("fopen", PATH, "w"),
        *3 * [write],  # 9,000 bytes
        ("fwrite", "%p", "1", "10000", PATH),
        ("fclose", PATH),
        ("fopen", PATH, "r"),
        *2 * [("fread", "%p", "1", "3000", PATH)],
        ("fseek", PATH, "-1000", "1"),
        ("fread", "%p", "1", "20000", PATH),
        ("fclose", PATH),
    ]
    system_calls, notes = described(tmp_path / "t", calls)
    assert system_calls[:6] == [
        "open",
        "write 4096",
        "write 4096",
        "write 4096",
        "write 4096",
        "write 2616",
    ]
    assert sum(int(call.split()[1]) for call in system_calls if call.startswith("write")) == 19_000
    assert system_calls[6:11] == ["close", "open", "read 4096", "read 4096", "seek at 5000"]
    assert system_calls[11:] == ["read 16384 moved 14000", "read 4096 moved 0", "close"]
    assert "buffer of 4,096 bytes (10 times)" in notes


def test_calls_behind_a_barrier_are_made_behind_it(tmp_path: Path) -> None:
    barrier = ("MPI_Barrier", "MPI_COMM_WORLD")
    first = [OPEN, ("pwrite", PATH, "%p", "8", "0"), barrier, CLOSE]
    second = [barrier, ("open", PATH, str(os.O_RDWR)), ("pread", PATH, "%p", "8", "0"), CLOSE]
    for late_s in (0, 0.005, -0.005):  # of the clock of the second rank
        folder = tmp_path / f"late{late_s}"
        workload = recorder.read(encoder.write(folder, [first, second], late_s=[0, late_s]))
        tree = workload.streams[0].tree
        assert tree is not None and not any(entry.bytes for entry in tree.entries)
        assert calls_made(workload)[:2] == ["open", "write 8 at 0"]
        assert "read 8 at 0" in calls_made(workload)


def test_a_place_of_all_ranks_is_that_of_the_rank(tmp_path: Path) -> None:
    calls = [OPEN, ("pwrite", PATH, "%p", "8", "1024*r+16"), CLOSE]
    system_calls = calls_made(recorder.read(encoder.write(tmp_path / "t", [calls, calls])))
    assert {"write 8 at 16", "write 8 at 1040"} <= set(system_calls)


def test_a_directory_is_one_trace(tmp_path: Path) -> None:
    base = tmp_path / "recorder-20260101"
    trace = encoder.write(base / "node1-alice-app-77-120000.123", [CALLS])
    for given in (base, trace, trace / "recorder.mt", tmp_path):
        done = CliRunner().invoke(main, ["describe", str(given), "--name", "x"])
        assert done.exit_code == 0 and '"recorder"' in done.stdout, done.output
    named = CliRunner().invoke(main, ["describe", str(base), "-o", str(tmp_path / "alice.json")])
    assert named.exit_code == 0 and load(tmp_path / "alice.json").name == "traced"
    encoder.write(base / "node1-alice-app-78-120000.124", [CALLS])
    done = CliRunner().invoke(main, ["describe", str(base)])
    assert done.exit_code != 0 and said("traces-such", done.stderr)


def test_below_takes_a_directory(tmp_path: Path) -> None:
    other = ("pread", "/home/input", "%p", "512", "0")
    calls = [*CALLS, ("open", "/home/input", "0"), other, ("close", "/home/input")]
    trace = encoder.write(tmp_path / "t", [calls])
    workload = recorder.read(trace, below=("/scratch",))
    assert "read 512 at 0" not in calls_made(workload) and workload.source is not None
    assert "1 file of other directories (512 B read, 0 B written)" in " ".join(
        workload.source.notes
    )
    assert "read 512 at 0" in calls_made(recorder.read(trace))


# -- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({-1: [(-2, 1)], -2: [(-3, 1)], -3: [(-2, 2)]}, "holds itself or one that is missing"),
        ({-1: [(-7, 1)]}, "holds itself or one that is missing"),
        ({-1: [(0, 2_000_000_000)]}, "more calls than the"),
        (
            {-k: [(-k - 1, 2_000_000_000), (-k - 1, 2)] for k in range(1, 3000)}
            | {-3000: [(0, 1)]},
            "more calls than the",
        ),
        ({-1: [(0, 1)]}, "1 calls, but 61 have times"),
        ({-1: [(99, 61)]}, "calls in the table"),
        ({-1: [(0, 0)]}, "0 rules, expected 1"),
        ({-1: [(-2, 61)], -2: []}, "1 rules, expected 2"),
        ({-2: [(0, 61)]}, "one of them -1"),
    ],
)
def test_a_damaged_grammar_is_refused(rules: encoder.Rules, message: str, tmp_path: Path) -> None:
    assert len(CALLS) == 61
    with pytest.raises(UnderstudyError, match=message):
        recorder.read(encoder.write(tmp_path / "t", [CALLS], rules=rules))


def test_a_chain_of_rules_takes_no_time(tmp_path: Path) -> None:
    calls = 2000 * [("mkdir", "/d/x")]
    rules = {-1: [(-2, 2000)]} | {-k: [(-k - 1, 1)] for k in range(2, 50_000)}
    trace = encoder.write(tmp_path / "t", [calls], rules=rules | {-50_000: [(0, 1)]})
    assert len([*Trace(trace).calls()[0]]) == 2000


def test_absurd_numbers_are_refused(tmp_path: Path) -> None:
    for version in ("2.4.0", "3.0.0"):
        trace = encoder.write(tmp_path / version, [CALLS], version)
        whole = (trace / "recorder.mt").read_bytes()
        for ranks in (0, -1, 2, (1 << 31) - 1):
            (trace / "recorder.mt").write_bytes(struct.pack("<i", ranks) + whole[4:])
            with pytest.raises(UnderstudyError, match=str(trace)):
                recorder.read(trace)
    bomb = struct.pack("<QQ", 11, 1 << 62) + encoder.deflated(b"")[16:]
    (trace / "recorder.mt").write_bytes(whole)
    (trace / "0.cfg").write_bytes(bomb)
    with pytest.raises(UnderstudyError, match=r"0\.cfg"):
        recorder.read(trace)


def test_places_that_are_differences_are_refused(tmp_path: Path) -> None:
    trace = encoder.write(tmp_path / "t", [CALLS])
    head = bytearray((trace / "recorder.mt").read_bytes())
    head[39] = True
    (trace / "recorder.mt").write_bytes(head)
    with pytest.raises(UnderstudyError, match="RECORDER_INTRAPROCESS_PATTERN_RECOGNITION"):
        recorder.read(trace)


def test_a_trace_of_another_kind_is_refused(tmp_path: Path) -> None:
    trace = encoder.write(tmp_path / "t", [CALLS])
    (trace / "VERSION").write_text("9.0.0")
    done = CliRunner().invoke(main, ["describe", str(trace)])
    assert done.exit_code != 0 and said("expected-trace-recorder", done.stderr)
    (trace / "VERSION").unlink()
    done = CliRunner().invoke(main, ["describe", str(trace)])
    assert done.exit_code != 0 and said("version-cannot-read", done.stderr)
    empty = encoder.write(tmp_path / "e", [[("MPI_Barrier", "MPI_COMM_WORLD")]])
    done = CliRunner().invoke(main, ["describe", str(empty)])
    assert done.exit_code != 0 and said("no-calls-files", done.stderr)


def test_damaged_traces_are_read_or_refused(tmp_path: Path) -> None:
    rng = Random("damaged traces")
    read, count = 0, 2000
    for _ in range(count):
        trace = damaged_traces.of_recorder(rng)(tmp_path)
        try:
            workload = recorder.read(trace)
            again = build(json.loads(workload.to_text()), "again")
            assert row_of(again) == row_of(workload)
            read += 1
        except UnderstudyError as error:
            assert "\n" not in str(error)
    assert 0 < read < count


# -- the whole way --------------------------------------------------------------------------------

PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
static char b[1 << 16];
int main(void) {
    mkdir("d", 0755);
    int fd = open("d/a", O_RDWR | O_CREAT | O_TRUNC, 0644);
    for (int i = 0; i < 100; i++) if (pwrite(fd, b, 4096, 4096L * i) < 0) return 1;
    fsync(fd);
    lseek(fd, 8192, SEEK_SET);
    for (int i = 0; i < 10; i++) if (read(fd, b, 1000) < 0) return 1;
    lseek(fd, 0, SEEK_END);
    if (write(fd, b, 777) < 0 || pread(fd, b, 4096, 409600) < 0) return 1;
    if (ftruncate(fd, 300000) < 0) return 1;
    close(fd);
    rename("d/a", "d/b");
    FILE *f = fopen("d/t", "w");
    for (int i = 0; i < 1000; i++) fwrite(b, 10, 10, f);
    fwrite(b, 1, 30000, f);
    fclose(f);
    f = fopen("d/t", "r");
    for (int i = 0; i < 100; i++) if (fread(b, 1, 100, f) != 100) return 1;
    fclose(f);
    unlink("d/t");
    return 0;
}
"""


def moved(workload: Workload) -> Counter[str]:
    return Counter(call for call in calls_made(workload) if call.startswith(("read", "write")))


def test_recorder_sees_the_calls_that_strace_sees(tmp_path: Path) -> None:
    need("Recorder", "strace", "ptrace")
    source, program, work = tmp_path / "a.c", tmp_path / "a", tmp_path / "work"
    source.write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-o", program, source], check=True)
    work.mkdir()
    tracing = ["understudy", "record", "-o", str(tmp_path / "a.strace"), "--", str(program)]
    subprocess.run(tracing, cwd=work, check=True)
    subprocess.run(["rm", "-r", "d"], cwd=work, check=True)
    traces = tmp_path / "t"
    preload = {"LD_PRELOAD": os.environ["RECORDER_RUNTIME"], "RECORDER_WITH_NON_MPI": "1"}
    more = preload | {"RECORDER_TRACES_DIR": str(traces)}
    subprocess.run([program], cwd=work, check=True, env=os.environ | more)
    assert moved(recorder.read(next(traces.rglob("recorder.mt")))) == moved(
        strace.read(tmp_path / "a.strace")
    )


def test_the_player_makes_the_calls_of_a_trace(tmp_path: Path) -> None:
    need("strace", "ptrace")
    workload = tmp_path / "app.json"
    workload.write_text(recorder.read(encoder.write(tmp_path / "t", [CALLS])).to_text())
    again = tmp_path / "again.strace"
    player = ROOT / "build" / "bin" / "understudy-replay"
    start = f'. "{ROOT}/setup-env.sh" 2>/dev/null; exec "$@"'
    command = ["strace", "-f", "-ttt", "-T", "-y", "-s", "0", "-o", again, player]
    played = subprocess.run(
        ["bash", "-c", start, "-", *command, "-w", workload, "-o", "data", "-k"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stderr
    lines = [line for line in again.read_text().splitlines() if "traced.tree" in line]
    assert sum("pwrite64(" in line for line in lines) == 50
    assert sum(" read(" in line for line in lines) == 3

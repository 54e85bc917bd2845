"""A real job of processes without MPI, which has a log of each: its workload and its replica.

`python -m tests.workshop.processes` makes the logs and the truth.
"""

import os
import subprocess
from pathlib import Path

import pytest

from tests.readers.synthetic import rank_bytes
from tests.support.needs import need
from tests.support.player import program, strace
from tests.workshop import live, processes
from tests.workshop.processes import COUNT, LOGS
from tests.workshop.truth import Truth, load
from understudy.contracts.workload import Stream, Workload
from understudy.darshanlog import logs_below, open_joined, open_log
from understudy.inference.log.interface_counters import of_log
from understudy.judge.fidelity.stream_fidelity import compare
from understudy.observations.observed_logs import observe
from understudy.readers import darshan
from understudy.reframe.bases.observer import SETTINGS, preloaded, runtime, settings

SMALL = 0.01  # error of bytes, calls and opens
KINDS = {  # of the streams of the truth: how they are described
    "all:read": ("shared", "read", 1),
    "in:read": ("flood", "read", 2),
    "out:write": ("file-per-process", "write", 2),
    "results:write": ("shared", "write", 1),
}


def described(folder: Path) -> Workload:
    first, *others = logs_below(folder).logs
    return darshan.read(first, others=others)


def stream(workload: Workload, name: str) -> Stream:
    layout, operation, _ = KINDS[name]
    (match,) = [s for s in workload.streams if (s.layout, s.operation) == (layout, operation)]
    return match


def hold(workload: Workload, truth: Truth) -> None:
    """The workload has the streams of the truth, byte by byte, and those of each rank."""
    assert workload.ranks == truth.ranks == COUNT and set(truth.streams) == set(KINDS)
    assert len(workload.streams) == len(KINDS)
    for name, entry in truth.streams.items():
        described_stream, dumps = stream(workload, name), KINDS[name][2]
        moved = [d.bytes for d in described_stream.steps for _ in range(d.count)]
        assert len(moved) == dumps
        assert moved == entry["dumps"]
        for k in range(dumps if described_stream.layout != "flood" else 0):
            each = described_stream.steps[k].bytes // COUNT
            assert rank_bytes(described_stream, k, COUNT) == [each] * COUNT


def test_the_workload_is_what_the_processes_did() -> None:
    hold(described(LOGS), load(LOGS / "truth.json"))


def test_the_logs_add_up_to_the_truth() -> None:
    truth = load(LOGS / "truth.json")
    with open_joined(logs_below(LOGS).logs) as log:
        (posix,) = of_log(log).direct.values()
    for way, word in enumerate(("read", "write")):
        moved = [sum(e["dumps"]) for n, e in truth.streams.items() if n.endswith(word)]
        assert posix.bytes[way] == sum(moved) > 0
    # of all processes, the file of all and that of the results are opened before their marks
    assert posix.opens == truth.operations["open"] + 2 * COUNT


def test_the_logs_name_no_machine() -> None:
    for path in logs_below(LOGS).logs:
        with open_log(path) as log:
            assert log.exe.startswith("python3 /tmp/workshop/worker.py")
            assert log.job.nprocs == 1 and str(log.job.jobid) == processes.JOB
            assert [mount.path for mount in log.mounts] == ["/"]


def observer() -> str:
    need("Darshan's runtime")
    preloaded(prefix := runtime())
    return str(prefix)


def test_the_replica_moves_the_bytes_in_as_many_calls_and_opens(tmp_path: Path) -> None:
    prefix, player = observer(), program()
    descriptor, data, replica = (tmp_path / n for n in ("w.json", "data", "replica.darshan"))
    descriptor.write_text(described(LOGS).to_text())
    data.mkdir()
    (tmp_path / SETTINGS).write_text("\n".join([*settings(str(data)), ""]))
    environment = {
        **os.environ,
        **live.MPI,
        "DARSHAN_CONFIG_PATH": str(tmp_path / SETTINGS),
        "DARSHAN_LOGFILE": str(replica),
    }
    preload = ["env", "-u", "LD_BIND_NOW", f"LD_PRELOAD={prefix}/lib/libdarshan.so"]
    subprocess.run(
        [
            "mpirun",
            "-n",
            str(COUNT),
            *preload,
            player,
            "-w",
            str(descriptor),
            "-o",
            str(data),
            "-O",
            str(tmp_path / "result.json"),
        ],
        env=environment,
        check=True,
        capture_output=True,
    )
    original = observe(LOGS)
    comparison = compare(original, observe(replica, original))
    measured = {
        (layer.name, m.quantity): m.error
        for layer in comparison.layers
        for m in layer.measures
        if m.error is not None
    }
    assert {q for _, q in measured} >= {"bytes written", "bytes read", "opens"}
    assert {key: e for key, e in measured.items() if abs(e or 0) > SMALL} == {}


def test_a_run_of_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    strace()
    prefix = observer()
    monkeypatch.setattr(processes, "BASE", tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    truth = processes.record(prefix, logs)
    workload = described(logs)
    assert workload.ranks == COUNT
    for way in ("read", "write"):  # how many dumps there are depends on the load of the machine
        moved = sum(sum(e["dumps"]) for n, e in truth.streams.items() if n.endswith(way))
        assert sum(s.bytes for s in workload.streams if s.operation == way) == moved > 0

"""Results with made-up numbers, for tests only: valid by the schema, never shown to a user.

Every bandwidth here comes from a seeded random generator around round figures.
"""

import hashlib
import json
import random
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts.run import Identity, Place
from understudy.contracts.workload import (
    Decomposition,
    Dump,
    Occurrence,
    Pattern,
    Provenance,
    Scaling,
    Source,
    Stream,
    Variable,
    Workload,
    streams_of,
)
from understudy.judge.statistics import conditions
from understudy.judge.statistics.conditions import Case

MIB = 2**20


def stream(
    name: str,
    role: str,
    sizes: Iterable[int],
    times: Iterable[float],
    *,
    layout: str = "shared",
    method: str = "mpiio",
    files: str = "new",
    durations: bool = True,
    **more: Any,
) -> Pattern:
    """A stream of dumps of one variable of bytes; the original moved 500 MiB/s."""
    dumps = tuple(
        Dump(
            time_s=time_s,
            duration_s=size / (500 * MIB) if durations else None,
            overhead_bytes=2048 if method == "hdf5" else 0,
            variables=(Variable(name="data", type="byte", shape=(size,)),),
        )
        for size, time_s in zip(sizes, times, strict=True)
    )
    reads = role in ("restart", "input")
    return Pattern(
        name=name,
        role=role,
        operation="read" if reads else "write",
        files=files,
        layout=layout,
        groups=more.pop("groups", None),
        method=method,
        transfer_bytes=4 * MIB,
        dumps=dumps,
        **more,
    )


def workload(
    name: str, streams: Iterable[Pattern | Stream], *, ranks: int = 16, **more: Any
) -> Workload:
    streams = list(streams)
    of_patterns = streams_of((s for s in streams if isinstance(s, Pattern)), ranks)
    of_streams = tuple(s for s in streams if isinstance(s, Stream))
    return Workload(
        name=name,
        description=more.pop("description", "Synthetic numbers for tests."),
        ranks=ranks,
        runtime_s=more.pop("runtime_s", 700.0),
        streams=(*of_patterns, *of_streams),
        scaling=Scaling(rule="none", from_ranks=ranks),
        source=Source(
            format="hand", notes=more.pop("notes", ("The intervals are round numbers.",))
        ),
        provenance=(
            Provenance(path="/ranks", origin="assumed", how="sixteen"),
            Provenance(path="/runtime_s", origin="assumed", how="round"),
            Provenance(path="/streams", origin="assumed", how="made up"),
            Provenance(path="/streams/*/dumps/*/time_s", origin="derived", how="k * interval"),
            Provenance(path="/streams/0/dumps/*/variables", origin="read", how="table of sizes"),
        ),
        **more,
    )


def growing() -> Workload:
    """N-1 checkpoints that grow, a visualization file of 24 states, a restart and a small log."""
    return workload(
        "growing",
        [
            stream(
                "checkpoint",
                "checkpoint",
                [int(36 * MIB * 1.35**k) for k in range(6)],
                [100.0 * (k + 1) for k in range(6)],
                method="hdf5",
                sync=True,
            ),
            stream(
                "plot",
                "visualization",
                [(5 * MIB + 40_000 * k) for k in range(24)],
                [27.5 * k + 3 for k in range(24)],
                files="append",
            ),
            stream("start", "restart", [36 * MIB], [0.4]),
            stream(
                "log",
                "output",
                [1000 + 7 * k for k in range(12)],
                [55.0 * k + 9 for k in range(12)],
                method="posix",
                durations=False,
            ),
        ],
        description="Growing checkpoints in one file each, and a visualization file that grows.",
    )


def per_process() -> Workload:
    """N-N: a file per process, three dumps within three seconds."""
    return workload(
        "per-process",
        [
            stream(
                "dump",
                "output",
                [64 * MIB] * 3,
                [0.2, 1.1, 2.4],
                layout="file-per-process",
                method="posix",
            )
        ],
        runtime_s=3.1,
        notes=(),
    )


def grouped() -> Workload:
    """N-M with unequal ranks."""
    runs = Decomposition(rule="runs", runs=((4, 3 * MIB), (12, MIB)))
    variable = Variable(name="field", type="f32", shape=(24 * MIB,), decomposition=runs)
    dumps = tuple(Dump(time_s=30.0 * k, variables=(variable,)) for k in range(8))
    pattern = Pattern(
        name="state",
        role="checkpoint",
        operation="write",
        files="new",
        layout="grouped",
        groups=4,
        method="mpiio",
        transfer_bytes=MIB,
        dumps=dumps,
    )
    return workload("grouped", [pattern], runtime_s=None)


def crowded(streams: int = 40, dumps: int = 200, ranks: int = 65536) -> Workload:
    """Forty streams from 1 kB to 10 GB over two hours, the first ones of 200 dumps each."""
    roles = ("checkpoint", "visualization", "output", "output", "output")
    patterns = []
    for i in range(streams):
        n = dumps if i < 6 else 1 + i % 17
        largest = int(10e9 / 1.53**i) + 1000
        sizes = [int(largest * (0.4 + 0.6 * (k + 1) / n)) for k in range(n)]
        patterns.append(
            stream(
                f"fields-of-component-{i:02d}",
                roles[i % 5],
                sizes,
                [7200 * (k + 0.3) / n for k in range(n)],
                durations=i % 2 == 0,
            )
        )
    return workload("crowded", patterns, ranks=ranks, runtime_s=7260.0)


def result(
    played: Workload,
    *,
    method: str = "posix",
    repetitions: int = 1,
    speed: float = 1.0,
    verify: bool = True,
    restart: bool = False,
    seed: int = 1,
    file_system: str = "ext4",
    lost_bytes: int = 0,
    started: str = "2026-01-01T00:00:00Z",
    **options: Any,
) -> dict[str, Any]:
    """A result that the player could have written; `lost_bytes` go missing from every dump."""
    dice = random.Random(f"{played.name} {method} {seed}")
    text = played.to_text()
    asked = {
        "method": method,
        "transfer_bytes": None,
        "collective": None,
        "fsync": False,
        "repetitions": repetitions,
        "keep": False,
        "time_scale": 0.01,
        "bytes_scale": 1.0,
        "verify": verify,
        "restart": restart,
        "compute": None,
        "restart_stream": None,
        "restart_dump": None,
        "restart_from": None,
        "shift_ranks": 0,
        "drop_cache": False,
        "method_options": {},
    } | options
    streams = list(played.streams)
    rows = [
        _repetition(streams, i, method, speed, asked, lost_bytes, dice) for i in range(repetitions)
    ]
    total = sum(s.bytes for s in streams) * repetitions
    return {
        "schema": "understudy/result/1",
        "workload": text,
        "workload_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "options": asked,
        "environment": {
            "understudy_version": "0.0.0",
            "command_line": ["understudy-replay", "-a", method],
            "started": started,
            "ranks": played.ranks,
            "nodes": 1,
            "host": "sample-host",
            "kernel": "Linux 6.1 x86_64",
            "processors": 16,
            "mpi": "Sample MPI 1.0",
            "libraries": {"hdf5": "1.0.0"} if method == "hdf5" else {},
            "directory": "/scratch/sample",
            "file_system": file_system,
            "total_bytes": 400 * 2**30,
            "free_bytes": 200 * 2**30,
        },
        "repetitions": rows,
        "verification": {"bytes": total, "wrong_bytes": 0} if verify else None,
        "finished": True,
    }


def of_today(row: dict[str, Any]) -> dict[str, Any]:
    """The result as the player of today writes it, with its contract."""
    environment = row["environment"]
    storage = dict.fromkeys(
        ("source", "mount_point", "mount_options", "total_inodes", "free_inodes")
    )
    storage |= dict.fromkeys(("client_version", "server_version", "health", "default_layout"))
    storage |= {"type": environment.pop("file_system")}
    storage |= {key: environment.pop(key) for key in ("total_bytes", "free_bytes")}
    environment["nodes"] = [{"name": environment["host"], "ranks": environment["ranks"]}]
    environment |= {"program_sha256": None, "commit": None}
    row |= {"schema": "understudy/player/1", "storage": storage, "striping": []}
    row["options"]["seed"] = 1
    return row


def _repetition(
    streams: list[Stream],
    index: int,
    method: str,
    speed: float,
    asked: dict[str, Any],
    lost_bytes: int,
    dice: random.Random,
) -> dict[str, Any]:
    rows = [
        _stream(
            s.name, s.operation, s, range(s.dump_count), method, speed, asked, lost_bytes, dice
        )
        for s in streams
    ]
    if asked["restart"]:
        rows += [
            _stream(
                f"{s.name}-restart",
                "read",
                s,
                [s.dump_count - 1],
                method,
                speed * 2,
                asked,
                lost_bytes,
                dice,
            )
            for s in streams
            if s.role == "checkpoint"
        ]
    last = max(p["last_end_s"] for s in rows for d in s["dumps"] for p in d["phases"])
    return {"repetition": index, "elapsed_s": last, "streams": rows}


def _stream(
    name: str,
    operation: str,
    s: Stream,
    dumps: Iterable[int],
    method: str,
    speed: float,
    asked: dict[str, Any],
    lost_bytes: int,
    dice: random.Random,
) -> dict[str, Any]:
    expanded = list(s.expanded())
    return {
        "name": name,
        "operation": operation,
        "method": method,
        "transfer_bytes": s.transfer_bytes,
        "collective": s.collective,
        "sync": s.sync,
        "dumps": [
            _dump(
                i, expanded[i], s, operation, method, speed, asked["time_scale"], lost_bytes, dice
            )
            for i in dumps
        ],
    }


def _dump(
    index: int,
    of: Occurrence,
    s: Stream,
    operation: str,
    method: str,
    speed: float,
    time_scale: float,
    lost_bytes: int,
    dice: random.Random,
) -> dict[str, Any]:
    described = of.bytes
    moved = described - lost_bytes
    due = of.time_s * time_scale
    start = due + dice.uniform(0, 0.004)
    data_s = described / (800e6 * speed * dice.lognormvariate(0, 0.18))
    phases = [_phase("open", 0, 16, start, dice.uniform(2e-4, 9e-4), dice)]
    phases.append(
        _phase(operation, moved, 1 + moved // s.transfer_bytes, start + 1e-3, data_s, dice)
    )
    if s.sync and operation == "write":
        phases.append(_phase("sync", 0, 16, start + 1e-3 + data_s, data_s * 0.4, dice))
    phases.append(_phase("close", 0, 16, start + 1e-3 + data_s * 1.4, 2e-4, dice))
    container = 2048 if method == "hdf5" else 0
    return {
        "dump": index,
        "scheduled_s": due,
        "start_s": start,
        "lateness_s": start - due,
        "described_bytes": described,
        "bytes": moved,
        "file_bytes": moved + container if operation == "write" else None,
        "files": 1,
        "phases": phases,
    }


def _phase(
    phase: str, count: int, operations: int, start: float, elapsed: float, dice: random.Random
) -> dict[str, Any]:
    shares = sorted(elapsed * (1 - dice.random() ** 2 * 0.5) for _ in range(24))
    statistics = {
        "min": shares[0],
        "q25": shares[6],
        "median": shares[12],
        "q75": shares[18],
        "q95": shares[22],
        "max": shares[23],
        "mean": sum(shares) / 24,
    }
    return {
        "phase": phase,
        "bytes": count,
        "operations": operations,
        "first_start_s": start,
        "last_end_s": start + elapsed,
        "rank_s": statistics,
    }


def program_result(
    *,
    name: str = "kernel-star",
    kind: str = "application",
    ranks: int = 4,
    method: str = "POSIX",
    parameters: str | None = None,
    speeds: Iterable[float] = (100 * MIB, 110 * MIB),
    process_bytes: int = 10 * MIB,
    slow_rank: tuple[int, float] | None = None,
    collective_s: float = 0.0,
    file_system: str = "ext4",
    started: str = "2026-01-01T00:00:00Z",
) -> dict[str, Any]:
    """A result that a program could have written: a step for each of `speeds`, in bytes/s.

    I/O takes half the time of a process, the slow rank's `slow_rank[1]` seconds more, and
    communication a tenth, `collective_s` more.
    """
    dumps = []
    at_s = 0.0
    for step, speed in enumerate(speeds):
        length_s = ranks * process_bytes / speed
        extra_s = [slow_rank[1] if slow_rank and r == slow_rank[0] else 0.0 for r in range(ranks)]
        io_s = [0.5 * length_s + more for more in extra_s]
        communication_s = [0.1 * length_s + collective_s] * ranks
        rest_s = [0.4 * length_s] * ranks
        total_s = [sum(parts) for parts in zip(io_s, communication_s, rest_s, strict=True)]
        took_s = max(total_s)
        phases = [
            {
                "phase": phase,
                "bytes": ranks * process_bytes * (phase == "write"),
                "operations": ranks,
                "first_start_s": at_s + start * took_s,
                "last_end_s": at_s + end * took_s,
                "rank_s": dict.fromkeys(
                    ("min", "q25", "median", "q75", "q95", "max", "mean"), (end - start) * took_s
                ),
            }
            for phase, start, end in (("open", 0, 0.1), ("write", 0.1, 0.2), ("close", 0.2, 1))
        ]
        dumps.append(
            {
                "dump": step,
                "scheduled_s": at_s,
                "start_s": at_s,
                "lateness_s": 0,
                "described_bytes": ranks * process_bytes,
                "bytes": ranks * process_bytes,
                "file_bytes": ranks * process_bytes + 2048,
                "files": 1,
                "phases": phases,
                "processes": {
                    "bytes": [process_bytes] * ranks,
                    "open_s": [0.1 * t for t in total_s],
                    "write_s": [0.1 * t for t in total_s],
                    "close_s": [0.8 * t for t in total_s],
                    "total_s": total_s,
                    "communication_s": communication_s,
                    "io_s": io_s,
                    "rest_s": rest_s,
                    "library": None,
                },
            }
        )
        at_s += 1.1 * took_s
    base = result(per_process(), file_system=file_system)
    stream = {
        "name": "restart",
        "operation": "write",
        "method": "adios",
        "dumps": dumps,
        "transfer_bytes": process_bytes,
        "collective": False,
        "sync": False,
    }
    return base | {
        "workload": None,
        "workload_sha256": None,
        "verification": None,
        "program": {
            "kind": kind,
            "name": name,
            "method": method,
            "application": name.removeprefix("kernel-").removesuffix("-restart"),
            "parameters": parameters,
            "config": "<adios-config/>",
            "steps": len(dumps),
            "append": False,
            "pause_s": 0,
            "barriers": ["open"],
            "slow_rank": slow_rank and {"rank": slow_rank[0], "seconds": slow_rank[1]},
            "extra_collective_bytes": 8 if collective_s else 0,
        },
        "options": base["options"] | {"method": "adios", "verify": False, "time_scale": 1.0},
        "environment": base["environment"] | {"ranks": ranks, "started": started},
        "repetitions": [{"repetition": 0, "elapsed_s": at_s, "streams": [stream]}],
    }


STAR_METHODS = {
    "POSIX": (None, 1.0),
    "MPI_LUSTRE": ("stripe_count=160;stripe_size=10485760", 0.6),
    "MPI_AMR": ("num_aggregators={};merging_pgs=0", 0.8),
}


STAR_ARMS: dict[str, tuple[str, float] | None] = {  # None: its skeleton
    "application": ("kernel-star", 1.0),
    "skeleton": None,
    "skeleton-control": None,
    "application-control": ("kernel-star", 1.0),
}


def write_study(
    folder: Path, *, rounds: int = 12, ranks: Iterable[int] = (4, 16, 64), places: int = 2
) -> Path:
    """Rounds of an application and its skeleton, each twice, by three methods, on as many ranks,
    in ReFrame's output tree; the skeleton is 2 % faster, but 30 % with MPI_LUSTRE on the fewest
    ranks."""
    ranks = list(ranks)
    for place in ("disk", "memory")[:places]:
        for method, (parameters, factor) in STAR_METHODS.items():
            for n in ranks:
                text = parameters and parameters.format(max(1, n // 4))
                gain = 1.3 if (method, n) == ("MPI_LUSTRE", ranks[0]) else 1.02
                test = folder / "output/sample" / place / f"gnu/Skel_{method}_{n}"
                for round_, arm in product(range(rounds), STAR_ARMS):
                    kind = arm.removesuffix("-control")
                    name, gained = STAR_ARMS[arm] or ("star-restart", gain)
                    dice = random.Random(f"{place} {method} {n} {round_} {arm}")
                    speeds = [
                        120 * MIB * n**0.8 * factor * gained * dice.lognormvariate(0, 0.03)
                        for _ in range(4)
                    ]
                    row = program_result(
                        name=name,
                        kind=kind,
                        ranks=n,
                        method=method,
                        parameters=text,
                        speeds=speeds,
                        started=f"2026-01-01T00:{round_:02d}:00Z",
                        file_system="tmpfs" if place == "memory" else "ext4",
                    )
                    write_record(
                        row,
                        test / arm / f"{round_:02d}",
                        partition=place,
                        arm=arm,
                        session="1",
                        case=test.name,
                        round=round_,
                    )
    return folder


def cases_in(*paths: Path) -> list[Case]:
    """What the page is made of: all runs in some folders."""
    measured, failed = conditions.load(producers.find(paths))
    assert not failed
    return conditions.group(measured)


def write(row: dict[str, Any], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(row), encoding="utf-8")
    return path


def write_record(row: dict[str, Any], folder: Path, *, partition: str, **identity: Any) -> Path:
    """A measurement and beside it its record, as a check leaves them."""
    measured = write(row, folder / "result.json")
    place = Place(system="sample", partition=partition, environment="gnu")
    run = producers.record(measured, place=place, identity=Identity(**identity))
    runs.write(folder / runs.RECORD_FILE, run)
    return folder / runs.RECORD_FILE


def write_tree(
    folder: Path, workloads: Iterable[Workload] | None = None, *, repetitions: int = 5
) -> Path:
    """ReFrame's output tree with every workload by three methods and two partitions."""
    speeds = {"posix": 1.2, "mpiio": 0.9, "hdf5": 0.7}
    places = {"disk": ("ext4", 1.0), "memory": ("tmpfs", 3.5)}
    for played in workloads if workloads is not None else (growing(), per_process(), grouped()):
        for method, speed in speeds.items():
            for partition, (file_system, factor) in places.items():
                row = result(
                    played,
                    method=method,
                    speed=speed * factor,
                    repetitions=repetitions,
                    restart=True,
                    file_system=file_system,
                    verify=method != "hdf5",
                )
                test = f"Replay_{played.name}_{method}"
                tree = folder / "output/sample" / partition / "gnu" / test
                write_record(row, tree, partition=partition, case=test)
    return folder

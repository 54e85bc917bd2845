"""Tables, trends and pages of many records, and of a record of many dumps.

    PYTHONPATH=python:. python benchmarks/records.py [--samples N] [--sessions N] [--rounds N]
        [--runs N] [--dumps N] [--seed N]

Keeps copies of a recorded run in a new folder, as checks keep them, and measures each step in a
process of its own: the first index of all records, an index in which nothing is new, the table of
all sessions and that of one. So are --runs records of workloads on several partitions, one of
which becomes slower: their first index, `understudy trend` and `understudy report` with their
pages; and a run of --dumps dumps: `understudy show` and `understudy report`.
Prints medians and 95 % intervals of elapsed seconds, CPU seconds and peak memory, and the bytes of
pages; a table without all samples ends with exit status 1.
"""

import argparse
import json
import random
import sys
import tempfile
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path
from statistics import median

from benchmarks.support import sides
from tests.support import results
from understudy import producers
from understudy.contracts import run as runs_contract
from understudy.contracts.run import Identity, Place, Run
from understudy.paths import where
from understudy.records import store

FIXTURE = where("schemas") / "old" / "fixtures" / "result-1" / "player.json"
REPETITIONS = 20
MIB = 1 << 20
SPEEDS = {"disk": 1.0, "flash": 3.0, "tape": 0.3, "nvme": 6.0}  # over results' own
LOSING, LOSS = "disk", 0.3
OPEN = """
import sys
from pathlib import Path
from understudy.records import index, select, table
found = index.of_folder(Path(sys.argv[1]))
"""
WHOLE = "table of all"
STEPS = {
    "index, nothing new": OPEN + "print(0)",
    WHOLE: OPEN + "print(len(table.of_samples(found)))",
    "table of one session": OPEN
    + "print(len(table.of_samples(found, *select.parse('session:night-0', found))))",
}


def runs(samples: int, sessions: int, folder: Path) -> list[Run]:
    """Records with as many samples, or a few less, spread over sessions."""
    row = json.loads(FIXTURE.read_text())
    first = row["repetitions"][0]
    row["repetitions"] = [first | {"repetition": i} for i in range(REPETITIONS)]
    path = folder / "result.json"
    path.write_text(json.dumps(row))
    base = producers.record(path, place=Place(system="star", partition="disk"))
    records = []
    for i in range(max(1, samples // len(base.samples))):  # one measurement would be one run
        night, hour = i % sessions, i // sessions % 24
        time = f"20{night // 336:02d}-{night // 28 % 12 + 1:02d}-{night % 28 + 1:02d}T{hour:02d}"
        identity = replace(
            base.identity,
            id=f"{i:016x}",
            time=f"{time}:00:00Z",
            session=f"night-{night}",
            case="Replay",
        )
        here = row["environment"] | {"started": identity.time}
        measurement = row | {"environment": here | {"host": f"node-{i}"}}
        records.append(replace(base, identity=identity, measurement=measurement))
    return records


def keep_cases(count: int, sessions: int, seed: int, folder: Path) -> None:
    """Keep so many records of cases: workloads by two methods on partitions of known speed."""
    patterns = {
        f"application-{k}": [
            results.stream("state", "checkpoint", sizes(6 + 2 * k, MIB), times(6 + 2 * k)),
            results.stream("log", "output", [MIB] * (6 + 2 * k), times(6 + 2 * k)),
            results.stream("start", "restart", [16 * MIB], [0.1]),
        ]
        for k in range(5)
    }
    workloads = [results.workload(name, streams) for name, streams in patterns.items()]
    cases = list(product(workloads, ("posix", "mpiio"), SPEEDS))
    of_night = -(-count // sessions)  # more than the cases: some run again
    dice = random.Random(seed)
    path = folder.parent / "result.json"
    for i in range(count):
        night, k = divmod(i, of_night)
        workload, method, partition = cases[k % len(cases)]
        begin = datetime(2025, 1, 1) + timedelta(days=night, minutes=1000 * k // of_night)
        lost = LOSS if partition == LOSING and night >= sessions // 2 else 0.0
        row = results.result(
            workload,
            method=method,
            speed=SPEEDS[partition] * dice.lognormvariate(0, 0.03) * (1 - lost),
            seed=seed * count + i,
            started=begin.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        path.write_text(json.dumps(row))
        case = f"Replay workload={workload.name} method={method}"
        identity = Identity(session=f"night-{night:03d}", case=case)
        place = Place(system="star", partition=partition)
        store.keep(producers.record(path, place=place, identity=identity), folder)


def sizes(count: int, unit: int) -> list[int]:
    return [(8 + k) * unit for k in range(count)]


def times(count: int) -> list[float]:
    return [30.0 * k for k in range(count)]


def write_dumps(count: int, seed: int, path: Path) -> None:
    """A record of one run with so many dumps of two streams."""
    half = count // 2
    streams = [
        results.stream(
            "state",
            "checkpoint",
            [8 * MIB + k * k % 977 * 4096 for k in range(half)],
            [0.5 * k for k in range(half)],
        ),
        results.stream("log", "output", [MIB // 4] * half, [0.25 * k for k in range(half)]),
    ]
    workload = results.workload("dumps", streams, runtime_s=1.0 * count)
    path.write_text(json.dumps(results.result(workload, seed=seed)))
    place = Place(system="star", partition="disk")
    run = producers.record(path, place=place, identity=Identity(session="night-0", case="Replay"))
    runs_contract.write(path, run)


def measure_commands(args: argparse.Namespace, folder: Path) -> None:
    """Print what commands cost on many records, and on a record of many dumps."""

    def measure(*words: str | Path) -> sides.Usage:
        return sides.run(folder, [sys.executable, *words])

    records, page = folder / "cases", folder / "page.html"
    understudy = ("-m", "understudy")
    keep_cases(args.runs, args.sessions, args.seed, records)
    print(f"{args.runs} records of {args.sessions} sessions")
    report("first index, once", [measure("-c", OPEN + "print(0)", records)])
    trend = ("trend", "--system", "star", "--folder", records, "-o", page, "-f")
    report("trend", [measure(*understudy, *trend) for _ in range(args.rounds)], page)
    whole = ("report", records, "-o", page, "-f")
    report("report", [measure(*understudy, *whole) for _ in range(args.rounds)], page)
    record = folder / "run.json"
    write_dumps(args.dumps, args.seed, record)
    print(f"one run of {args.dumps} dumps")
    report("show", [measure(*understudy, "show", record) for _ in range(args.rounds)])
    single = ("report", record, "-o", page, "-f")
    report("report", [measure(*understudy, *single) for _ in range(args.rounds)], page)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10_000, help="records of trend and report")
    parser.add_argument("--dumps", type=int, default=100_000, help="of the run of show and report")
    parser.add_argument("--seed", type=int, default=1, help="of the made-up numbers")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "records")
        records = runs(args.samples, args.sessions, Path(temporary))
        for run in records:
            store.keep(run, folder)
        sessions = min(args.sessions, len(records))
        total = sum(len(run.samples) for run in records)
        print(f"{total} samples, {len(records)} runs, {sessions} sessions")

        def measure(code: str, rows: int | None = None) -> sides.Usage:
            usage = sides.run(Path(temporary), [sys.executable, "-c", code, folder])
            if rows is not None and int(usage.out) != rows:
                sys.exit(f"the table has {int(usage.out)} rows, expected {rows}")
            return usage

        first = measure(OPEN + "print(0)")
        report("first index, once", [first])
        for name, code in STEPS.items():
            rows = total if name == WHOLE else None
            report(name, [measure(code, rows) for _ in range(args.rounds)])
    with tempfile.TemporaryDirectory() as temporary:
        measure_commands(args, Path(temporary))


def report(name: str, usages: list[sides.Usage], page: Path | None = None) -> None:
    """Print a line; `page` is the file that was written."""
    seconds = sides.spread([usage.elapsed_s for usage in usages])
    cpu = median(usage.cpu_s for usage in usages)
    peak = max(usage.peak_bytes for usage in usages) / (1 << 20)
    size = f", page {page.stat().st_size / MIB:.2f} MiB" if page else ""
    print(f"  {name:<22} {seconds} s, CPU {cpu:.2f} s, peak {peak:.0f} MiB{size}", flush=True)


if __name__ == "__main__":
    main()

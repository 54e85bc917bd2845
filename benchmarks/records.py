"""The tidy table of many sessions: seconds until 10^6 samples are in memory.

    PYTHONPATH=python:. python benchmarks/records.py [--samples N] [--sessions N] [--rounds N]

Keeps copies of a recorded run in a new folder, as checks keep them, and measures each step in a
process of its own: the first index of all records, an index in which nothing is new, the table of
all sessions and that of one. Prints medians and 95 % intervals of elapsed seconds, CPU seconds and
peak memory; a table without all samples ends with exit status 1.
"""

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.support import sides
from understudy import producers
from understudy.contracts.run import Place, Run
from understudy.paths import where
from understudy.records import store

FIXTURE = where("schemas") / "old" / "fixtures" / "result-1" / "player.json"
REPETITIONS = 20
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
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


def report(name: str, usages: list[sides.Usage]) -> None:
    seconds = sides.spread([usage.elapsed_s for usage in usages])
    cpu = median(usage.cpu_s for usage in usages)
    peak = max(usage.peak_bytes for usage in usages) / (1 << 20)
    print(f"  {name:<22} {seconds} s, CPU {cpu:.2f} s, peak {peak:.0f} MiB", flush=True)


if __name__ == "__main__":
    main()

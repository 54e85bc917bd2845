"""A player of DXT traces: each call of the trace at its rank, file, offset, length and time.

As a program, `python dxt.py PLAN.json START`, it plays the calls of one rank in the current
directory and needs only the standard library; the run begins when `time.monotonic`, one clock for
all processes, is START.

A call is made at its time after START, plus what earlier calls of the rank took longer than in the
log, so that slower storage does not take away the pauses. A trace has neither opens nor what a
program does through stdio. Opens are those that the POSIX record counts, spread evenly over the
calls of a rank to a file, or, where it has none, over the time from the first open to the last
close. Whether an open truncates is unknown: none does. Contents are zeros.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from understudy.darshanlog import Log

TRACE = "DXT_POSIX"
OPEN, READ, WRITE = 0, 1, 2
SPIN_S = 100e-6  # before a call is due; sleeping is less precise

Pair = tuple[int, int]  # a file and a rank
Step = tuple[float, int, int, float, int, int]  # start, what, file, seconds, offset, bytes
Plan = dict[str, Any]  # JSON: `files`, name and whether it is written by number; `steps`


def plans(log: Log) -> list[Plan]:
    """The calls of each rank; names are relative to the directory that has all files."""
    names = {
        int(n): os.fsdecode(text)
        for ids, texts in log.names()
        for n, text in zip(ids, texts, strict=True)
        if text.startswith(b"/")  # no standard stream
    }
    calls = _calls(log)
    opens = _opens(log, calls)
    used = sorted(pair for pair in calls.keys() | opens.keys() if pair[0] in names)
    used = [
        pair for pair in used if calls.get(pair) or opens[pair][0]
    ]  # else renamed, or looked at
    base = os.path.commonpath([Path(names[n]).parent for n, _ in used]) if used else "/"
    plans_by_rank: list[Plan] = [{"files": {}, "steps": []} for _ in range(log.job.nprocs)]
    for n, rank in used:
        traced = sorted(calls.get((n, rank), []))
        count, first, last = opens.get((n, rank), (0, 0.0, 0.0))
        count = max(count, 1)
        starts = [
            traced[k * len(traced) // count][0] if traced else first + (last - first) * k / count
            for k in range(count)
        ]
        written = not traced or any(step[1] == WRITE for step in traced)
        plans_by_rank[rank]["files"][str(n)] = [os.path.relpath(names[n], base), written]
        plans_by_rank[rank]["steps"] += [
            *((start, OPEN, n, 0.0, 0, 0) for start in starts),
            *traced,
        ]
    for plan in plans_by_rank:
        plan["steps"].sort()
    return plans_by_rank


def _calls(log: Log) -> dict[Pair, list[Step]]:
    steps = defaultdict(list)
    for record in log.dxt(TRACE):
        for what, rows in ((READ, record.read_segments), (WRITE, record.write_segments)):
            columns = (rows[name].tolist() for name in ("start_s", "end_s", "offset", "length"))
            steps[record.id, record.rank] += [
                (start, what, record.id, end - start, offset, size)
                for start, end, offset, size in zip(*columns, strict=True)
            ]
    return steps


def _opens(log: Log, calls: dict[Pair, list[Step]]) -> dict[Pair, tuple[int, float, float]]:
    """The number of opens, the first open and the last close. Those of a record of all ranks are
    divided among the ranks that have calls."""
    open_times: dict[Pair, tuple[int, float, float]] = {}
    for block in log.records("POSIX") if "POSIX" in log.modules else ():
        for row in block:
            n, count = int(row["id"]), int(row["POSIX_OPENS"])
            first = float(row["POSIX_F_OPEN_START_TIMESTAMP"])
            last = max(first, float(row["POSIX_F_CLOSE_END_TIMESTAMP"]))
            shared = [rank for m, rank in sorted(calls) if m == n] or [0]
            ranks = [int(row["rank"])] if row["rank"] >= 0 else shared
            for k, rank in enumerate(ranks):
                open_times[n, rank] = (count // len(ranks) + (k < count % len(ranks)), first, last)
    return open_times


def prepare(directory: Path, all_plans: list[Plan]) -> None:
    """Makes the directories, and the files with what is read before it is written."""
    names = {n: name for plan in all_plans for n, (name, _) in plan["files"].items()}
    ends: dict[str, int] = defaultdict(int)  # of what is written so far
    missing: dict[str, int] = {}
    for _, what, n, _, offset, size in sorted(
        step for plan in all_plans for step in plan["steps"]
    ):
        name = names[str(n)]
        if what == WRITE:
            ends[name] = max(ends[name], offset + size)
        elif what == READ and (offset + size > ends[name] or not ends[name]):
            missing[name] = max(missing.get(name, 0), offset + size)
    for name in names.values():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
    for name, size in missing.items():
        (directory / name).write_bytes(bytes(size))


def play(plan: Plan, start: float) -> None:
    """In the current directory."""
    zeros = memoryview(bytes(max((s[5] for s in plan["steps"] if s[1] == WRITE), default=0)))
    opened: dict[int, int] = {}
    late = 0.0
    for at, what, n, seconds, offset, size in plan["steps"]:
        due = start + at + late
        while (rest := due - time.monotonic()) > 0:
            if rest > SPIN_S:
                time.sleep(rest - SPIN_S)
        begun = time.monotonic()
        if what == WRITE:
            os.pwrite(opened[n], zeros[:size], offset)
        elif what == READ:
            os.pread(opened[n], size, offset)
        else:
            if n in opened:
                os.close(opened[n])
            name, written = plan["files"][str(n)]
            opened[n] = os.open(name, os.O_RDWR | os.O_CREAT if written else os.O_RDONLY, 0o644)
        late += max(0.0, time.monotonic() - begun - seconds)
    for descriptor in opened.values():
        os.close(descriptor)


if __name__ == "__main__":
    play(json.loads(Path(sys.argv[1]).read_text()), float(sys.argv[2]))

"""Requests at the storage: programs beside replicas of their traces, and beside themselves.

Each program runs on file systems that count what they are asked (understudy-slowfs): itself, the
replica of its trace, and itself again, the control. Compared are requests of each kind, the time
that they waited in all, and the time that the storage costs: what a run takes longer than on the
same file system without waits. A replica is within where each kind of request is within 2 % or 3
requests (looks at names and attributes: 7 %) and, if the waits are at least half of its I/O time
and the program repeats its own time within 5 %, the time within 10 %. What the player does before
the first call is measured by a program that makes no calls, and subtracted.

    python -m benchmarks.requests                       # all programs on all storages
    python -m benchmarks.requests --program sort --storage open2ms
    python -m benchmarks.requests --series third               # kept in benchmarks/requests.jsonl
    python -m benchmarks.requests --kept                       # the tables of the kept cases
    python -m benchmarks.requests --from counters              # of Darshan (DARSHAN_RUNTIME)

Replicas from counters are judged otherwise (see `benchmarks.support.counted`). The player tells
their requests from those of the files that it prepares for them.
"""

import argparse
import json
import lzma
import os
import shutil
import subprocess
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.support import counted
from benchmarks.support.counted import NAMED, SILENT
from benchmarks.support.programs import PROGRAMS, Program
from understudy.contracts.workload import load
from understudy.errors import UnderstudyError
from understudy.judge.fidelity.transfer import (
    FAILED,
    KINDS,
    OUTSIDE,
    UNDECIDED,
    WAITS,
    WITHIN,
    Requests,
)
from understudy.judge.statistics.limits import LIMIT_FRACTION
from understudy.paths import ROOT
from understudy.producers.observed import requests_in
from understudy.program.instructions import calls_of_system
from understudy.readers import strace
from understudy.tracing.recording import STRACE, chosen, record

Row = dict[str, Any]
Arms = Callable[[Sequence[str]], Row]  # on a storage with these options
SKIPPED, UNALIGNED = "skipped", "unaligned_write"
ARMS = ("application", "replica", "again")
# Else a run that takes longer looks more often.
KEEP = ("--keep", "3600s")
STORAGES = {
    "open2ms": ("--open", "2ms", "--create", "2ms", "--stat", "2ms", "--remove", "2ms"),
    "w1500": ("--write", "1500us"),
    "rate20": ("--write-rate", "20MB", "--read-rate", "20MB"),
}
REPEATS = 0.05  # of the time of a program that repeats itself
KEPT = {
    "trace": ROOT / "benchmarks" / "requests.jsonl",
    "counters": ROOT / "benchmarks" / "counters.jsonl",
}
COUNTS = ".understudy-requests"
_PLAYER = ROOT / "build" / "bin" / "understudy-replay"


@dataclass(slots=True)
class Storage:
    """A mounted file system that counts."""

    mount: Path

    def taken(self) -> Row:
        """The counts since they were taken last."""
        counts = self.mount / COUNTS
        counts_taken: Row = json.loads(counts.read_text())
        counts.write_text("")
        return counts_taken


@contextmanager
def storage(folder: Path, options: Sequence[str]) -> Iterator[Storage]:
    """One of them, mounted on a folder."""
    backing, mount = folder / "backing", folder / "mount"
    backing.mkdir(parents=True)
    mount.mkdir()
    program = ROOT / "build" / "bin" / "understudy-slowfs"
    process = subprocess.Popen([program, *KEEP, *options, backing, mount])
    try:
        while not os.path.ismount(mount):
            if process.poll() is not None:
                raise UnderstudyError(f"{program}: status {process.returncode}, see above")
            time.sleep(0.02)
        yield Storage(mount)
    finally:
        subprocess.run(["fusermount3", "-u", str(mount)], check=False)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def settings() -> dict[str, str]:
    """The environment of all commands."""
    command = f'. "{ROOT}/setup-env.sh" 2>/dev/null; env -0'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in done.stdout.split("\0") if line)


def shell(command: str, folder: Path) -> None:
    """Runs a command, which must succeed."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=settings(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise UnderstudyError(f"{command}: status {done.returncode}: {' / '.join(last)}")


def traced(name: str, program: Program, folder: Path) -> Path:
    """The workload of a program, traced on the disk."""
    work = folder / "traced"
    work.mkdir()
    shell(program.prepared, work)
    trace = folder / f"{name}.strace"
    here = Path.cwd()
    os.chdir(work)
    command = f'. "{ROOT}/setup-env.sh" 2>/dev/null; {program.command}'
    try:
        said = f"{{ {command}; }} > {folder}/said 2>&1"
        status, _ = record(["bash", "-c", said], trace, chosen(STRACE))
    finally:
        os.chdir(here)
    if status != 0:
        said = (folder / "said").read_text(errors="replace").strip().splitlines()[-3:]
        raise UnderstudyError(f"{program.command}: status {status}: {' / '.join(said)}")
    workload_file = folder / f"{name}.json"
    workload_file.write_text(strace.read(trace, name=name).to_text())
    return workload_file


def size_of(workload: Path) -> Row:
    """Calls of the trace that count, nodes of the workload after folding, and bytes with xz."""
    calls = nodes = 0
    for stream in load(workload).streams:
        for listed, times in calls_of_system(stream):
            calls += times * listed.count
            nodes += sum(1 for _ in listed.each())
    return {
        "calls": calls,
        "nodes": nodes,
        "xz_bytes": len(lzma.compress(workload.read_bytes(), preset=9)),
    }


def without_calls(workload: Path) -> Path:
    """The same files, and a look at their directory."""
    row: Row = json.loads(workload.read_text())
    (files,) = row["sets"]
    top = sum(entry.get("count", 1) for entry in files["entries"])
    files["entries"].append({"top": True})
    look = {"call": "stat", "path": top}
    row["streams"][0]["steps"] = [{"at": 0, "do": [{"calls": files["name"], "do": [look]}]}]
    path = workload.with_suffix(".none.json")
    path.write_text(json.dumps(row))
    return path


def of_application(program: Program, options: Sequence[str], folder: Path) -> Row:
    """Requests of the program, and its seconds."""
    with storage(folder, options) as fs:
        work = fs.mount / "work"
        work.mkdir()
        shell(program.prepared, work)
        fs.taken()
        begin_s = time.monotonic()
        shell(program.command, work)
        elapsed_s = time.monotonic() - begin_s
        return fs.taken() | {"elapsed_s": elapsed_s}


def of_replica(
    workload: Path, options: Sequence[str], folder: Path, prepares: bool = False
) -> Row:
    """Requests of the player, the seconds from its first call to its last, and those of I/O of
    all ranks. Where it `prepares` files, without the requests before the first dump."""
    ranks = load(workload).ranks
    with storage(folder, options) as fs:
        fs.taken()
        result = fs.mount.parent / "result.json"
        where = f"-o {fs.mount}/try -O {result} -k --time-scale 0"
        where += f" --requests {fs.mount}/{COUNTS}" if prepares else ""
        shell(f"mpirun -n {ranks} {_PLAYER} -w {workload} {where}", fs.mount.parent)
        ends = (Path(f"{result}.{when}") for when in ("last", "first"))
        row = requests_in(*ends) if prepares else fs.taken()
        (repetition,) = json.loads(result.read_text())["repetitions"]
    phases = [p for s in repetition["streams"] for d in s["dumps"] for p in d["phases"]]
    phases = [p for p in phases if p["operations"]]
    begin_s = min((p["first_start_s"] for p in phases), default=0)
    end_s = max((p["last_end_s"] for p in phases), default=0)
    io_s = sum(p["rank_s"]["mean"] * ranks for p in phases)
    return row | {"elapsed_s": end_s - begin_s, "io_s": io_s}


def compared(case: Row) -> list[Requests]:
    """Each kind of request that any arm has made."""
    kinds = []
    for kind in KINDS:
        of_arms = [_requests(case[arm], kind) for arm in ARMS]
        if any(of_arms):
            application, replica, again = of_arms
            kinds.append(
                Requests(kind=kind, application=application, replica=replica, control=again)
            )
    return kinds


def _requests(row: Row, kind: str) -> int:
    return int(row["unaligned_writes"] if kind == UNALIGNED else row[kind]["requests"])


def waited(row: Row) -> float:
    """Seconds of all requests."""
    return float(sum(row[kind]["waited_s"] for kind in KINDS if kind != UNALIGNED))


def times(case: Row) -> tuple[float | None, float | None]:
    """The time of replica and control as ratios to the application; None where the storage costs
    no time that can be told from the host's."""
    application, replica, again = (case[arm]["cost_s"] for arm in ARMS)
    if min(application, replica, again) <= 0:
        return None, None
    return replica / application, again / application


def time_state(case: Row) -> str:
    """State of the replica's elapsed time; undecided where the waits are less than half of its I/O
    time or the program does not repeat its own."""
    took, again = times(case)
    waits = waited(case["replica"]) >= WAITS * case["replica"]["io_s"]
    if took is None or again is None or not waits or abs(again - 1) > REPEATS:
        return UNDECIDED
    return WITHIN if abs(took - 1) <= LIMIT_FRACTION else OUTSIDE


def state(case: Row) -> str:
    """State of the replica: that of its requests, and of its time where that is decided."""
    if "application" not in case:
        return FAILED if FAILED in case else SKIPPED
    if "said" in case:
        return counted.state(case)
    states = {requests.state for requests in compared(case)}
    states |= {time_state(case)} - {UNDECIDED}
    return next(state for state in (OUTSIDE, UNDECIDED, WITHIN) if state in states)


def plain(error: UnderstudyError, base: Path) -> str:
    """The message without the directories of this machine."""
    return str(error).replace(f"{ROOT}/", "").replace(f"{base}/", "")


def from_trace(name: str, program: Program, base: Path) -> tuple[Row, Arms]:
    """Describe a program's trace; return its row and its arms on a storage."""
    workload = traced(name, program, base)
    nothing = without_calls(workload)
    free, free_again = (of_application(program, (), base / "free")["elapsed_s"] for _ in range(2))
    free_replica = of_replica(workload, (), base / "free")["elapsed_s"]

    def arms(options: Sequence[str]) -> Row:
        first = of_application(program, options, base / "first")
        replica = of_replica(workload, options, base / "replica")
        before = of_replica(nothing, options, base / "before")
        again = of_application(program, options, base / "again")
        for kind in KINDS[:-1]:
            for key in ("requests", "bytes", "waited_s"):
                replica[kind][key] -= before[kind][key]
        replica["unaligned_writes"] -= before["unaligned_writes"]
        replica["cost_s"] = replica["elapsed_s"] - free_replica
        first["cost_s"] = first["elapsed_s"] - free
        again["cost_s"] = again["elapsed_s"] - free_again
        return {"application": first, "replica": replica, "again": again}

    return size_of(workload), arms


def from_counters(name: str, program: Program, base: Path) -> tuple[Row, Arms]:
    """Describe a program's log; return its row and its arms on a storage."""
    work, workload = base / "counted", base / f"{name}.json"
    work.mkdir()
    shell(program.prepared, work)
    logs = counted.recorded(program, work, base / "logs", settings())
    about = counted.described(logs, workload)

    def arms(options: Sequence[str]) -> Row:
        return {
            "application": of_application(program, options, base / "first"),
            "replica": of_replica(workload, options, base / "replica", prepares=True),
            "again": of_application(program, options, base / "again"),
        }

    return about, arms


SOURCES = {"trace": from_trace, "counters": from_counters}


def cases(name: str, storages: Iterable[str], source: str) -> Iterator[Row]:
    """The cases of a program, one that cannot be run or played included."""
    program = PROGRAMS[name]
    about: Row = {"program": name, "from": source}
    if program.lacks:
        yield about | {"skipped": f"{', '.join(program.lacks)} is missing ({program.package})"}
        return
    with tempfile.TemporaryDirectory(prefix="requests-") as folder:
        base = Path(folder)
        try:
            facts, arms = SOURCES[source](name, program, base)
        except UnderstudyError as error:
            yield about | {"failed": plain(error, base)}
            return
        about |= facts
        for where in storages:
            row = about | {"storage": where}
            try:
                yield row | arms(STORAGES[where])
            except UnderstudyError as error:
                yield row | {"failed": plain(error, base)}


def words(case: Row) -> list[str]:
    """The columns of a case."""
    size = ["", ""]
    if "calls" in case:
        size = [f"{case['calls']:,} → {case['nodes']:,}", f"{case['xz_bytes'] / 1000:.1f}"]
    about = [f"`{case['program']}`", case.get("storage", "all")]
    if case.get("from") == "counters":
        return [*about, *of_counters(case)]
    if "application" not in case:
        why = case.get(FAILED) or case.get(SKIPPED) or ""
        return [*about, escaped(why), "", "", state(case), *size]
    kinds = "; ".join(
        f"{requests.kind.replace('_', ' ')} {requests.application:g}"
        + _others(requests.application, requests.replica, requests.control, requests.state)
        for requests in compared(case)
    )
    waits = [waited(case[arm]) for arm in ARMS]
    took, again = times(case)
    time = "-" if took is None else f"{took:.2f}, {again:.2f}"
    time += "" if time_state(case) != UNDECIDED else " (undecided)"
    shown = f"{waits[0]:.2f} s: {ratio(waits[0], waits[1])}, {ratio(waits[0], waits[2])}"
    return [*about, kinds, shown, time, state(case), *size]


def of_counters(case: Row) -> list[str]:
    """The columns of a case from counters behind program and storage."""
    if "application" not in case:
        return [escaped(case.get(FAILED) or case.get(SKIPPED) or ""), "", state(case), ""]
    kinds = []
    for kind, state_ in counted.judged(case).items():
        requests = next(requests for requests in compared(case) if requests.kind == kind)
        shown = f"{kind} {requests.application:g} ({requests.replica:g}, {requests.control:g})"
        kinds.append(shown if state_ == WITHIN else f"{shown} **{state_}**")
    waits = f"{waited(case['application']):.2f} s"
    return ["; ".join(kinds), waits, state(case), f"{case['explained']:.0%}"]


def _others(application: float, replica: float, again: float, state: str) -> str:
    """Values of replica and control in parentheses, where they differ; bold where that counts."""
    if application == replica == again:
        return ""
    shown = f" ({replica:g}, {again:g})"
    return shown if state == WITHIN else f" **({replica:g}, {again:g})**"


def ratio(first: float, other: float) -> str:
    """The other to the one."""
    return f"{other / first:.2f}" if first > 0 else "-"


def escaped(text: str) -> str:
    """Text from outside as a cell of a table."""
    plain = "".join(c if c.isprintable() else " " for c in text)[:300]
    return "".join(f"\\{c}" if c in "\\|<>*_`[]&" else c for c in plain)


COLUMNS_MAX = 100  # of prose
COLUMNS_OF_COUNTERS = (
    *("program", "storage", "requests: application (replica, again)"),
    *("waits", "replica", "explained"),
)
COLUMNS = (
    *("program", "storage", "requests: application (replica, again)"),
    *("waits: application: replica, again", "time: replica, again", "replica"),
    *("calls → nodes", "kB (xz)"),
)


def table(all_cases: Sequence[Row]) -> list[str]:
    """A table of Markdown, and a line that counts the states."""
    told = any(case.get("from") == "counters" for case in all_cases)
    columns = COLUMNS_OF_COUNTERS if told else COLUMNS
    rows = [
        "| " + " | ".join(row) + " |" for row in (columns, *(words(case) for case in all_cases))
    ]
    rows.insert(1, "|" + "---|" * len(columns))
    counts = Counter[str]()
    for case in all_cases:  # one without a storage stands for all of them
        counts[state(case)] += 1 if "storage" in case else len(STORAGES)
    states = (WITHIN, NAMED, SILENT) if told else (WITHIN, OUTSIDE, UNDECIDED)
    said = ", ".join(f"{counts[s]} {s}" for s in (*states, FAILED, SKIPPED))
    told_of = [f"Of these {counts.total()} cases: {said}."]
    played = [case for case in all_cases if "application" in case]
    if told:
        told_of.append(counted.summary(played))
    else:
        decided = sum(time_state(case) != UNDECIDED for case in played)
        told_of[0] += f" Requests decided; time, too, in {decided}."
    return [*rows, *(line for each in told_of for line in ("", *textwrap.wrap(each, COLUMNS_MAX)))]


def kept(source: str) -> dict[str, list[Row]]:
    """The kept cases of a front end, by series."""
    cases_by_series: dict[str, list[Row]] = {}
    for line in KEPT[source].read_text(encoding="utf-8").splitlines():
        case: Row = json.loads(line)
        cases_by_series.setdefault(case["series"], []).append(case)
    return cases_by_series


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="default: all")
    parser.add_argument("--storage", choices=STORAGES, action="append", help="default: all")
    parser.add_argument("--from", dest="source", choices=SOURCES, default="trace")
    parser.add_argument("--series", help="append the cases to those kept, with this name")
    parser.add_argument("--kept", action="store_true", help="only print the cases that are kept")
    given = parser.parse_args()
    if given.kept:
        for series, measured in kept(given.source).items():
            print(f"\n## {series}\n", *table(measured), sep="\n")
        return
    measured = []
    for name in given.program or PROGRAMS:
        for case in cases(name, given.storage or STORAGES, given.source):
            measured.append(case)
            print("| " + " | ".join(words(case)) + " |", flush=True)
            if given.series:
                with KEPT[given.source].open("a") as file:
                    print(json.dumps({"series": given.series} | case), file=file)
    print(table(measured)[-1])


if __name__ == "__main__":
    main()

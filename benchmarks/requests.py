"""Requests at the storage: programs beside replicas of their traces, and beside themselves.

Each program runs on file systems that count what they are asked (understudy-slowfs): itself, the
replica of its trace, and itself again, the control. Shown are requests of each kind, and the time
that they waited in all, as ratios to the first run; `within` says whether each kind is within 2 %
or 3 requests (looks at names and attributes: 7 %). What the player does before the first call is
measured by a program that makes no calls, and subtracted.

    python -m benchmarks.requests                       # all programs on all storages
    python -m benchmarks.requests --program sort --storage open2ms
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.contracts.workload import load
from understudy.judge.transfer import as_many
from understudy.paths import ROOT
from understudy.readers import strace
from understudy.tracing.recorder import STRACE, chosen, record

Row = dict[str, Any]
KINDS = ("open", "create", "stat", "remove", "read", "write", "flush")
STORAGES = {
    "open2ms": ("--open", "2ms", "--create", "2ms", "--stat", "2ms", "--remove", "2ms"),
    "w1500": ("--write", "1500us"),
    "rate20": ("--write-rate", "20MB", "--read-rate", "20MB"),
}
_PLAYER = ROOT / "build" / "bin" / "understudy-replay"
_MPI = f"mpirun -n 4 {_PLAYER} --time-scale 0 -o out -O result.json -k"
# By name: what is there before, and the program. All are of Debian, or the player itself with MPI.
PROGRAMS = {
    "sort": ("seq 200000 -1 1 > in", "sort -n -S 1M -T . in > out"),
    "split": ("seq 100000 > in", "split -l 5000 in part. && cat part.* > all && rm part.*"),
    "gcc": (
        'for i in 1 2 3 4; do echo "int f$i(int x){return x*$i;}" > $i.c; done',
        "for i in 1 2 3 4; do gcc -c $i.c -o $i.o; done; ar rcs lib.a *.o",
    ),
    "xz": ("head -c 3000000 /dev/urandom > in", "xz -0 -k in && xz -dc in.xz > again"),
    "zip": ("mkdir d; for i in 1 2 3 4 5; do seq $i 9999 > d/$i; done", "zip -qr a.zip d"),
    "sqlite": (
        "true",
        "for i in 1 2 3 4 5 6 7 8; do sqlite3 a.db "
        "'create table if not exists t(x); insert into t values(hex(randomblob(4000)));'; done",
    ),
    "perl": (
        "seq 20000 > in",
        'perl -e \'open(I,"in");open(O,">>log");while(<I>){print O $_ x 3;'
        'if($.%1000==0){close O;open(O,">>log")}}\'',
    ),
    "shell": ("mkdir d", "for i in $(seq 60); do echo $i >> log; cp log d/$i; done; ls d > list"),
    "mpi-posix": ("true", f"{_MPI} -w {ROOT}/workloads/n-n.json -a posix --bytes-scale 0.05"),
    "mpi-mpiio": ("true", f"{_MPI} -w {ROOT}/workloads/n-1.json -a mpiio --bytes-scale 0.05"),
    "mpi-hdf5": ("true", f"{_MPI} -w {ROOT}/workloads/n-1.json -a hdf5 --bytes-scale 0.05"),
    "mpi-stdio": ("true", f"{_MPI} -w {ROOT}/workloads/n-m.json -a stdio --bytes-scale 0.05"),
}


@dataclass(slots=True)
class Storage:
    """A mounted file system that counts."""

    mount: Path

    def taken(self) -> Row:
        """The counts since they were taken last."""
        counts = self.mount / ".understudy-requests"
        found: Row = json.loads(counts.read_text())
        counts.write_text("")
        return found


@contextmanager
def storage(folder: Path, options: tuple[str, ...]) -> Iterator[Storage]:
    """One of them, mounted on a folder."""
    backing, mount = folder / "backing", folder / "mount"
    backing.mkdir(parents=True)
    mount.mkdir()
    program = ROOT / "build" / "bin" / "understudy-slowfs"
    process = subprocess.Popen([program, *options, backing, mount])
    try:
        while not os.path.ismount(mount):
            time.sleep(0.02)
        yield Storage(mount)
    finally:
        subprocess.run(["fusermount3", "-u", str(mount)], check=False)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def shell(command: str, folder: Path) -> None:
    """Runs a command, which must succeed."""
    done = subprocess.run(
        ["bash", "-c", f'. "{ROOT}/setup-env.sh" 2>/dev/null; {command}'],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"{command}: status {done.returncode}\n{done.stderr[-2000:]}")


def traced(name: str, folder: Path) -> Path:
    """The workload of a program, traced on the disk."""
    before, program = PROGRAMS[name]
    work = folder / "traced"
    work.mkdir()
    shell(before, work)
    trace = folder / f"{name}.strace"
    here = Path.cwd()
    os.chdir(work)
    try:
        command = ["bash", "-c", f'. "{ROOT}/setup-env.sh" 2>/dev/null; {program}']
        record(command, trace, chosen(STRACE))
    finally:
        os.chdir(here)
    made = folder / f"{name}.json"
    made.write_text(strace.read(trace, name=name).to_text())
    return made


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


def of_application(name: str, options: tuple[str, ...], folder: Path) -> Row:
    """Requests of the program."""
    before, program = PROGRAMS[name]
    with storage(folder, options) as fs:
        work = fs.mount / "work"
        work.mkdir()
        shell(before, work)
        fs.taken()
        shell(program, work)
        return fs.taken()


def of_replica(workload: Path, options: tuple[str, ...], folder: Path) -> Row:
    """Requests of the player."""
    ranks = load(workload).ranks
    with storage(folder, options) as fs:
        fs.taken()
        result = fs.mount.parent / "result.json"
        where = f"-o {fs.mount}/try -O {result} -k --time-scale 0"
        shell(f"mpirun -n {ranks} {_PLAYER} -w {workload} {where}", fs.mount.parent)
        return fs.taken()


def compared(one: Row, other: Row) -> tuple[bool, str]:
    """Whether requests are within the bounds, and the kinds that differ."""
    wrong = []
    for kind in KINDS:
        a, b = one[kind]["requests"], other[kind]["requests"]
        if not as_many(kind, a, b):
            wrong.append(f"{kind} {a} -> {b}")
    a, b = one["unaligned_writes"], other["unaligned_writes"]
    if not as_many("write", a, b):
        wrong.append(f"unaligned {a} -> {b}")
    return not wrong, ", ".join(wrong)


def waited(row: Row) -> float:
    """Seconds of all requests."""
    return float(sum(row[kind]["waited_s"] for kind in KINDS))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--program", choices=PROGRAMS, action="append", help="default: all")
    parser.add_argument("--storage", choices=STORAGES, action="append", help="default: all")
    given = parser.parse_args()
    counts = {"replica": 0, "again": 0, "cases": 0}
    for name in given.program or PROGRAMS:
        with tempfile.TemporaryDirectory(prefix="requests-") as folder:
            base = Path(folder)
            workload = traced(name, base)
            nothing = without_calls(workload)
            for where in given.storage or STORAGES:
                options = STORAGES[where]
                first = of_application(name, options, base / "first")
                replica = of_replica(workload, options, base / "replica")
                before = of_replica(nothing, options, base / "before")
                again = of_application(name, options, base / "again")
                for kind in KINDS:
                    for key in ("requests", "bytes", "waited_s"):
                        replica[kind][key] -= before[kind][key]
                replica["unaligned_writes"] -= before["unaligned_writes"]
                counts["cases"] += 1
                said = []
                for what, row in (("replica", replica), ("again", again)):
                    within, wrong = compared(first, row)
                    counts[what] += within
                    ratio = waited(row) / waited(first) if waited(first) else 1.0
                    said.append(f"{what} {'within' if within else 'OUTSIDE'} {ratio:.3f} {wrong}")
                total = sum(first[kind]["requests"] for kind in KINDS)
                print(f"{name:10} {where:8} {total:6} requests; {'; '.join(said)}", flush=True)
    print(
        f"within, of {counts['cases']} cases: replicas {counts['replica']}, "
        f"the programs again {counts['again']}"
    )


if __name__ == "__main__":
    main()

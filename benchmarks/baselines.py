"""The replica of an application and simpler ones, on file systems of known behaviour.

    PYTHONPATH=python:. python benchmarks/baselines.py --logs DIRECTORY [--storages NAME …]
        [--applications NAME …] [--rounds N] [-o RUNS.json]

DIRECTORY has the logs of `python -m nightly.rehearsal.record`, with traces. In each round run, in
turn and in changing order, an application of applications/, the replica that `understudy describe`
makes of its log, and a player of its trace (support/dxt.py), all under Darshan (DARSHAN_RUNTIME)
on each storage of nightly/rehearsal/slow.py. Prints a row for each: the counters of POSIX and
STDIO together and the I/O time of the slowest rank, of the application as they are, of the others
as errors in percent: medians of the rounds, of times with the lowest and the highest. Opens and
writes that make files to be read are left out. Needs root or a user who may open /dev/fuse.
"""

import argparse
import contextlib
import json
import math
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmarks.support import dxt, sides
from nightly.rehearsal.slow import STORAGES, mounted
from understudy.contracts import case as cases
from understudy.contracts import workload as workloads
from understudy.contracts.case import Application
from understudy.darshanlog import Log, logs_below, open_joined, open_log
from understudy.errors import UnderstudyError
from understudy.observations.observed_logs import prepared
from understudy.paths import program
from understudy.producers import observed
from understudy.readers import darshan
from understudy.reframe.bases import observer

APPLICATIONS = ("cp2k-argon", "lammps-melt", "meep-ring", "qe-silicon")
COUNTERS = ("OPENS", "READS", "WRITES", "BYTES_READ", "BYTES_WRITTEN")
HEADS = ("opens", "reads", "writes", "bytes read", "bytes written", "files")
AHEAD_S = 1.0  # from the start of the processes to that of the calls
Seen = tuple[list[float], float]  # counters and I/O time
ORIGINAL, REPLICA, TRACE = "application", "Understudy", "DXT player"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Counters of a run in Darshan's log, by HEADS, and the I/O time of the slowest rank."""

    application: str
    storage: str
    arm: str
    round: int
    counters: list[float]
    io_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One application on one storage. Runs are below `scratch`, their logs in `folder`."""

    case: Application
    log: Path
    scratch: Path
    folder: Path
    runtime: str

    def arms(self) -> dict[str, Callable[[], Seen]]:
        """Functions that measure a run, by name of the arm."""
        return {ORIGINAL: self.original, REPLICA: self.replica, TRACE: self.trace}

    def original(self) -> Seen:
        """In a copy of its inputs."""
        place = self._place(ORIGINAL)
        if self.case.inputs:
            shutil.copytree(self.case.inputs, place, dirs_exist_ok=True)
        self._on_ranks(place, self.case.command)
        return self._seen(self._log)

    def replica(self) -> Seen:
        """As the check `transfer` runs it."""
        text = self.folder / "workload.json"
        if not text.exists():
            text.write_text(darshan.read(self.log, name=self.case.name).to_text())
        place = self._place(REPLICA)
        words = [program("understudy-replay"), "-w", text, "-o", place]
        words += ["-O", self.folder / "result.json", "--time-scale", "1", "--keep-pauses"]
        self._on_ranks(self.folder, list(map(str, words)))  # Darshan takes all in place for data
        return self._seen(self._log, prepared(self._log, workloads.load(text).streams))

    def trace(self) -> Seen:
        """A process for each rank, whose logs count as one run."""
        with open_log(self.log) as log:
            plans = dxt.plans(log)
        if not any(plan["steps"] for plan in plans):
            return [0.0] * len(HEADS), 0.0
        place, logs = self._place(TRACE), self.folder / observer.LOGS
        dxt.prepare(place, plans)
        shutil.rmtree(logs, ignore_errors=True)
        subprocess.run(observer.make_directory(str(logs)), shell=True, check=True)
        under = " ".join(observer.prefix_of_processes(self.runtime, str(self.folder), str(logs)))
        start = time.monotonic() + AHEAD_S
        started = []
        for rank, plan in enumerate(plans):
            text = self.folder / f"plan.{rank}.json"
            text.write_text(json.dumps(plan))
            words = [sys.executable, "-I", "-S", dxt.__file__, str(text), str(start)]
            started.append(self._started(place, f"exec {under} {shlex.join(words)}"))
        self._ended(started)
        return self._seen(logs)

    @property
    def _log(self) -> Path:
        return self.folder / "run.darshan"

    def _place(self, arm: str) -> Path:
        """An empty directory on the storage, which Darshan looks at."""
        place = self.scratch / arm.split()[0]
        place.mkdir()
        self._log.unlink(missing_ok=True)
        settings = "\n".join(observer.settings(str(place), traced=False))
        (self.folder / observer.SETTINGS).write_text(settings + "\n")
        return place

    def _on_ranks(self, place: Path, words: Sequence[str]) -> None:
        under = " ".join(observer.prefix_of(self.runtime, str(self.folder), self._log.name))
        line = f"mpirun -np {self.case.ranks} {under} {shlex.join(words)}"
        self._ended([self._started(place, line)])

    def _started(self, place: Path, line: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["sh", "-c", line],
            cwd=place,
            env=os.environ | self.case.environment | {"DARSHAN_DISABLE_SHARED_REDUCTION": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _ended(self, started: Sequence[subprocess.Popen[str]]) -> None:
        said = [process.communicate()[1] for process in started]
        for process, text in zip(started, said, strict=True):
            if process.returncode:
                raise UnderstudyError(f"ended with status {process.returncode}:\n{text}")

    def _seen(self, path: Path, prepared: Collection[int] = ()) -> Seen:
        """Removes what the run wrote."""
        for place in self.scratch.iterdir():
            shutil.rmtree(place)
        row = observed.of_log(
            path,
            application=self.case.name,
            options={},
            workload=("", ""),
            directory="",
            command_line=[],
            prepared=prepared,
        )
        samples = observed.samples(observed.parse(row, str(path)))
        [io_s] = [s.value for s in samples if s.metric == "io_slowest_rank_s"]
        with open_joined(logs_below(path).logs if path.is_dir() else [path]) as log:
            return counters(log, prepared), io_s


def counters(log: Log, prepared: Collection[int] = ()) -> list[float]:
    """Sums of COUNTERS, and the number of files that were opened; of the files `made` neither
    their first open nor writes. Neither directories nor standard streams count."""
    names = {
        int(n): text for ids, texts in log.names() for n, text in zip(ids, texts, strict=True)
    }
    folders = {parent for text in names.values() for parent in _parents(text)}
    sums, files = dict.fromkeys(COUNTERS, 0), set()
    for module in observed.LOWEST:
        for block in log.records(module) if module in log.modules else ():
            for row in block:
                n = int(row["id"])
                if not names[n].startswith(b"/") or names[n] in folders:
                    continue
                counts = {name: max(0, int(row[f"{module}_{name}"])) for name in COUNTERS}
                if counts["OPENS"]:
                    files.add(n)
                if n in prepared:
                    counts |= {
                        "WRITES": 0,
                        "BYTES_WRITTEN": 0,
                        "OPENS": max(0, counts["OPENS"] - 1),
                    }
                for name, value in counts.items():
                    sums[name] += value
    return [*sums.values(), len(files)]


def _parents(name: bytes) -> Iterator[bytes]:
    while b"/" in name:
        name = name.rpartition(b"/")[0]
        yield name


def measure(name: str, log: Path, storages: Sequence[str], rounds: int, runtime: str) -> list[Run]:
    """The runs of one application."""
    case, runs = cases.get(name).found(), []
    with contextlib.ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="understudy-base-")))
        for storage in storages:
            mount, backing, folder = (base / f"{storage}{s}" for s in ("", ".backing", ".runs"))
            for path in (mount, backing, folder):
                path.mkdir()
            with mounted(mount, backing, *STORAGES[storage]) as scratch:
                bench = Bench(case=case, log=log, scratch=scratch, folder=folder, runtime=runtime)
                arms = list(bench.arms().items())
                for k in range(rounds):
                    for arm, run in arms[k % len(arms) :] + arms[: k % len(arms)]:
                        os.sync()
                        seen, io_s = run()
                        runs.append(
                            Run(
                                application=name,
                                storage=storage,
                                arm=arm,
                                round=k,
                                counters=seen,
                                io_s=io_s,
                            )
                        )
                        print(*asdict(runs[-1]).values(), file=sys.stderr, flush=True)
    return runs


def table(runs: Sequence[Run]) -> list[str]:
    """Rows of Markdown: counters of all storages together, times of each."""
    storages = list(dict.fromkeys(run.storage for run in runs))
    heads = ["application", "arm", *HEADS, *(f"I/O time, {name}" for name in storages)]
    rows = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for case, arm in dict.fromkeys((run.application, run.arm) for run in runs):
        pairs = {name: _pairs(runs, case, arm, name) for name in storages}
        both = [pair for of in pairs.values() for pair in of]
        values, originals = (
            [median(column) for column in zip(*(pair[k].counters for pair in both), strict=True)]
            for k in (0, 1)
        )
        if arm == ORIGINAL:
            cells = [f"{value:,.0f}" for value in originals]
            cells += [f"{sides.spread([r.io_s for r, _ in of])} s" for of in pairs.values()]
        else:
            errors = (error(v, o) for v, o in zip(values, originals, strict=True))
            cells = [f"{e:+.1f}" if abs(e) >= 0.05 else "0" for e in errors]
            cells += [
                sides.spread([error(run.io_s, app.io_s) for run, app in of], 1)
                for of in pairs.values()
            ]
            cells = [cell.replace("-", "\N{MINUS SIGN}") for cell in cells]
        rows.append(f"| {' | '.join([case if arm == ORIGINAL else '', arm, *cells])} |")
    return rows


def _pairs(runs: Sequence[Run], case: str, arm: str, storage: str) -> list[tuple[Run, Run]]:
    """The runs of an arm, each with that of the application in the same round."""
    runs_of_case = [run for run in runs if (run.application, run.storage) == (case, storage)]
    of = {run.round: run for run in runs_of_case if run.arm == ORIGINAL}
    return [(run, of[run.round]) for run in runs_of_case if run.arm == arm]


def error(value: float, original: float) -> float:
    """In percent."""
    if value == original:
        return 0.0
    return 100 * (value / original - 1) if original else math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=Path, metavar="DIRECTORY")
    parser.add_argument("--storages", nargs="+", choices=STORAGES, default=["open2ms", "w500"])
    parser.add_argument("--applications", nargs="+", choices=cases.names(), default=APPLICATIONS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="JSON of every run")
    args = parser.parse_args()
    try:
        runtime = observer.runtime()
        observer.preloaded(runtime)
    except UnderstudyError as fault:
        print(f"SKIPPED: {fault}")
        return
    if args.logs is None:
        print("SKIPPED: no logs of applications (--logs)")
        return
    runs: list[Run] = []
    for name in args.applications:
        log = args.logs / f"{name}.darshan"
        try:
            runs += measure(name, log, args.storages, args.rounds, runtime)
        except UnderstudyError as fault:
            print(f"{name}: left out: {fault}")
    if args.output:
        args.output.write_text(json.dumps([asdict(run) for run in runs], indent=0) + "\n")
    print(*table(runs), sep="\n")


if __name__ == "__main__":
    main()

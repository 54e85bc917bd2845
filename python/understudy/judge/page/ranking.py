"""The jobs of many Darshan logs by their I/O, and which of them are worth a replica.

A log is read once, as a stream. Of a job is kept what does not grow with its logs: memory is that
of one log and a few hundred bytes for each job and each log.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from understudy.darshanlog import JOB_GAP_S, Log, Twins, open_log
from understudy.errors import UnderstudyError
from understudy.inference.log.interface_counters import READ, WRITE, of_log

COVERED = 0.8  # share of all I/O time, and of all bytes, of the programs that are worth a replica
_SUMS = (
    "logs",
    "read_bytes",
    "written_bytes",
    "opens",
    "io_s",
    "process_s",
    "incomplete",
    "unfinished",
)
NO_FILES = ("BG/Q", "MDHIM", "APXC", "APMPI")  # modules that count no I/O of files
_SCRIPTED = re.compile(r"(python|perl|ruby|R$|Rscript|bash|sh$|julia|java$|node$)[\d.]*$")


@dataclass(slots=True, kw_only=True)
class Job:
    """Totals of the logs of a job: bytes and seconds. `io_s` is spent by all processes in I/O
    calls, `process_s` are the run times of all processes; `processes` are those of the largest
    log. `program` is that of the log with most bytes, by a number from 0. `undecoded`: modules of
    file I/O whose bytes and seconds are not in these sums."""

    job: int
    start_s: float = float("inf")  # since the epoch
    end_s: float = 0.0
    logs: int = 0
    processes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    opens: int = 0
    io_s: float = 0.0
    process_s: float = 0.0
    incomplete: int = 0  # logs whose records do not hold all files
    unfinished: int = 0  # logs without an end
    undecoded: tuple[str, ...] = ()
    program: int = 0
    replicate: str = ""  # why a replica of this job is worth it, or which job stands for it
    largest_bytes: int = field(default=-1, repr=False)  # of a log

    def near(self, other: "Job") -> bool:
        """True if logs of the same job ID are of one job: they overlap, or nearly so."""
        return max(other.start_s - self.end_s, self.start_s - other.end_s) <= JOB_GAP_S

    def add(self, other: "Job") -> None:
        """Add the logs of the same job."""
        if other.largest_bytes > self.largest_bytes:
            self.largest_bytes, self.program = other.largest_bytes, other.program
        self.start_s = min(self.start_s, other.start_s)
        self.end_s = max(self.end_s, other.end_s)
        self.processes = max(self.processes, other.processes)
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.undecoded = tuple(sorted({*self.undecoded, *other.undecoded}))

    @property
    def bytes(self) -> int:
        return self.read_bytes + self.written_bytes

    @property
    def io_fraction(self) -> float | None:
        """I/O's share of the time of all processes; None where a log does not tell its end."""
        return self.io_s / self.process_s if self.process_s and not self.unfinished else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Jobs in descending order, the names of their programs, and why logs cannot be read. `logs`
    counts all of them, `copies` those that repeat another and are left out."""

    jobs: tuple[Job, ...]
    programs: tuple[str, ...]
    unreadable: tuple[str, ...]
    logs: int
    copies: int


ORDERS: dict[str, Callable[[Job], float]] = {
    "time": lambda job: job.io_s,
    "bytes": lambda job: job.bytes,
    "share": lambda job: job.io_fraction or 0.0,
}


def rank(
    paths: Iterable[Path], by: str = "time", tick: Callable[[], None] = lambda: None
) -> Ranking:
    """Rank the jobs of these logs by `by`, a key of `ORDERS`. `tick` is called for each log."""
    jobs: dict[tuple[int, int], list[Job]] = {}
    programs: dict[str, int] = {}
    twins = Twins()
    unreadable, logs, copies = [], 0, 0
    for path in paths:
        tick()
        logs += 1
        try:
            with open_log(path) as log:
                copies += not _add(jobs, programs, log, path, twins)
        except UnderstudyError as error:
            unreadable.append(str(error))
    ranked = sorted(
        chain.from_iterable(jobs.values()), key=lambda job: (-ORDERS[by](job), -job.bytes, job.job)
    )
    _choose(ranked)
    return Ranking(
        jobs=tuple(ranked),
        programs=tuple(programs),
        unreadable=tuple(unreadable),
        logs=logs,
        copies=copies,
    )


def _add(
    jobs: dict[tuple[int, int], list[Job]],
    programs: dict[str, int],
    log: Log,
    path: Path,
    twins: Twins,
) -> bool:
    """Add a log to its job; False for the copy of another."""
    about = log.job
    if about.nprocs < 1:
        raise UnderstudyError(
            f"{log.path}: the job record has {about.nprocs} processes, expected 1 or more"
        )
    module_totals = of_log(log).direct.values()
    if twins.of(path, about, log.exe):
        return False
    read, written = (sum(totals.bytes[way] for totals in module_totals) for way in (READ, WRITE))
    run_s = about.run_time_s
    lacking = {m.name for m in log.modules.values() if m.reason and m.name not in NO_FILES}
    job = Job(
        job=about.jobid,
        start_s=about.start_s,
        end_s=about.end_s if run_s is not None else about.start_s,
        logs=1,
        processes=about.nprocs,
        read_bytes=read,
        written_bytes=written,
        opens=sum(totals.opens or 0 for totals in module_totals),
        io_s=sum(sum(totals.time_s) for totals in module_totals),
        process_s=about.nprocs * (run_s or 0.0),
        incomplete=any(m.partial for m in log.modules.values()),
        unfinished=run_s is None,
        undecoded=tuple(sorted(lacking)),
        largest_bytes=read + written,
        program=programs.setdefault(program_of(log.exe), len(programs)),
    )
    others = []
    for earlier_job in jobs.get((about.jobid, about.uid), ()):
        if earlier_job.near(job):
            earlier_job.add(job)
            job = earlier_job
        else:
            others.append(earlier_job)
    jobs[about.jobid, about.uid] = [*others, job]
    return True


def program_of(command: str) -> str:
    """The file name of an executable, or of the script that an interpreter runs."""
    words = command.split()
    names = [Path(word).name for word in words]
    if names and _SCRIPTED.match(names[0]):
        return next(
            (n for n, w in zip(names[1:], words[1:], strict=True) if w[0] != "-"), names[0]
        )
    return names[0] if names else ""


def _choose(jobs: Sequence[Job]) -> None:
    """State for each job why a replica of it is worth it: the programs that spend most of the I/O
    time, or move most of the bytes, are, each by its job with most I/O time whose logs are
    complete."""
    measures: dict[str, Callable[[Job], float]] = {
        "I/O time": ORDERS["time"],
        "bytes": ORDERS["bytes"],
    }
    reasons: dict[int, list[str]] = {}
    for name, of in measures.items():
        total = sum(map(of, jobs))
        sums: dict[int, float] = {}
        for job in jobs:
            sums[job.program] = sums.get(job.program, 0.0) + of(job)
        covered = 0.0
        for program, share in sorted(sums.items(), key=lambda item: -item[1]):
            if total <= 0 or covered >= COVERED * total or share <= 0:
                break
            covered += share
            reasons.setdefault(program, []).append(f"{100 * share / total:.3g} % of the {name}")
    chosen: dict[int, Job] = {}
    for job in sorted(jobs, key=lambda job: (job.incomplete > 0, -job.io_s, -job.bytes)):
        if job.bytes:
            chosen.setdefault(job.program, job)
    for job in jobs:
        best = chosen.get(job.program)
        if best is None or job.program not in reasons:
            continue
        if job is not best:
            job.replicate = f"as job {best.job}"
            continue
        job.replicate = "yes: its program has " + " and ".join(reasons[job.program])
        if job.incomplete:
            job.replicate += "; --partial, its logs lack files"

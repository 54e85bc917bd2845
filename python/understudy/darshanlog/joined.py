"""Several logs as one: processes side by side, and runs after each other on the same ranks.

Each run takes the lowest free ranks at its start, in the order of time, so that the whole has as
many ranks as there were processes at the same time. All times count from the first start. Files
that several runs on the same ranks used, one after another, are files of their own in each.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import layouts
from understudy.darshanlog.header import Job, Module
from understudy.darshanlog.log import BLOCK_RECORDS, Log, open_log
from understudy.darshanlog.names import NameBlock
from understudy.darshanlog.records import Block, DxtRecord, HeatmapRecord, LustreRecord
from understudy.darshanlog.stream import DamagedRegion
from understudy.errors import UnderstudyError

MAX_RANKS = 1 << 24  # as in `impossible_values`
MAX_BINS = 8192  # of a heatmap of the whole
JOB_GAP_S = 86400.0  # without a process of a job; after that its ID is another job's
LATE = 1.1  # a time after so much of its run and a minute is wrong: see `impossible_values`
_SUM = re.compile(
    r"(READS|WRITES|OPENS|SEEKS|STATS|MMAPS|SYNCS|FLUSHES|FILENOS|DUPS|FDOPENS|SOURCES|TARGETS|"
    r"SWITCHES|NOT_ALIGNED|BYTES_READ|BYTES_WRITTEN|ACCESS\d_COUNT|STRIDE\d_COUNT|HINTS|VIEWS)$|"
    r"_SIZE_(READ|WRITE)_"
)
_TIMERS = re.compile(r"_F_(READ|WRITE|META)_TIME$")
_EXTENSION = re.compile(rb"(\.[A-Za-z][A-Za-z0-9]*)?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One log of the whole: seconds from its start to that of the whole, its ranks, its first rank
    in the whole, and how many runs were before it on these ranks at most."""

    path: Path
    job: Job
    exe: str
    end_s: float  # since the epoch
    shift_s: float = 0.0
    first: int = 0
    nth: int = 0  # of the runs one after another on its ranks

    @property
    def program(self) -> str:
        """The file name of the executable."""
        return Path((self.exe.split(maxsplit=1) or [""])[0]).name


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """Runs with none before them that lasts: seconds from the start of the whole to theirs, and
    whether some of them follow each other while others last."""

    start_s: float
    mixed: bool


class JoinedLog(Log):
    """Logs as one, with the interface of `Log`; opened by `open_joined`. One file is open at a
    time; memory grows with the number of names where runs follow each other.

    Attributes beyond those of `Log`: `runs`, in the order of their starts, and their `waves`; how
    many logs were left out since they are `empty`.
    """

    def __init__(self, runs: Sequence[Run], notes: Sequence[str], empty: int = 0) -> None:
        self.runs, self.empty = tuple(runs), empty
        self.repeats = {}
        first = self.runs[0]
        self.path = Path(f"{first.path} and {len(self.runs) - 1} more")
        self.notes = tuple(notes)
        self.modules, remarks, mounts, versions, libraries = {}, {}, {}, set(), set()
        self._width_s = 0.0
        self._joined_names_bytes = 0
        for run in self.runs:
            with open_log(run.path) as log:
                self._joined_names_bytes += log._names_bytes
                for module in log.modules.values():
                    former = self.modules.get(module.name)
                    self.modules[module.name] = _both(former, module) if former else module
                remarks.update(dict.fromkeys(log.remarks))
                mounts.update({(m.path, m.fs_type): m for m in log.mounts})
                versions.add(log.version)
                libraries.add(log.library_version)
                self._width_s = max(self._width_s, _bin_width_s(log))
        end_s = max(r.shift_s + r.end_s - r.job.start_s for r in self.runs)
        self._width_s = max(self._width_s, end_s / MAX_BINS, 1e-6)
        self.version = min(versions)
        self.byte_order, self.compression = "little", "none"
        self.library_version = libraries.pop() if len(libraries) == 1 else None
        self.remarks = tuple(remarks)
        self.mounts = tuple(sorted(mounts.values(), key=lambda mount: -len(mount.path)))
        self.exe = first.exe
        self.job = replace(
            first.job,
            nprocs=max(r.first + r.job.nprocs for r in self.runs),
            end_s=first.job.start_s + end_s,
            run_time_s=end_s,
        )
        self.waves = _waves(self.runs)
        self._again = self._used_again()
        self._traced: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.intp]]] = {}

    @property
    def _names_bytes(self) -> int:
        return self._joined_names_bytes

    def close(self) -> None:
        """Nothing is open between two streams."""

    def name_blocks(self) -> Iterator[NameBlock]:
        """As `Log.name_blocks`; names of files that several runs used end in the number of the
        run."""
        for run in self.runs:
            with open_log(run.path) as log:
                for block in log.name_blocks():
                    ids, again = self._own(block.ids, run), np.isin(block.ids, self._again)
                    if again.any():
                        pairs = zip(block.texts(), again.tolist(), strict=True)
                        texts = [
                            _numbered(text, run.nth) if mark else text for text, mark in pairs
                        ]
                        yield NameBlock.of(ids, texts)
                    else:
                        yield replace(block, ids=ids)

    def records(self, module: str, block_records: int = BLOCK_RECORDS) -> Iterator[Block]:
        """As `Log.records`, with ranks, times and files of the whole."""
        return self._distinct(module, self._all_records(module, block_records))

    def _all_records(self, module: str, block_records: int) -> Iterator[Block]:
        held: list[Block] = []  # of many logs with few records each
        for run in self.runs:
            with open_log(run.path) as log:
                for block in log.records(module, block_records):
                    for placed in self._placed(block.copy(), run, block_records):
                        if held and sum(map(len, held)) + len(placed) > block_records:
                            yield np.concatenate(held)
                            held = []
                        held.append(placed)
        if held:
            yield np.concatenate(held)

    def lustre(self) -> Iterator[LustreRecord]:
        """As `Log.lustre`."""
        for run in self.runs:
            with open_log(run.path) as log:
                yield from log.lustre()

    def heatmap(self) -> Iterator[HeatmapRecord]:
        """As `Log.heatmap`, in bins of one width for all logs."""
        for run in self.runs:
            with open_log(run.path) as log:
                for record in log.heatmap():
                    yield self._rebinned(record, run)

    def dxt(self, module: str, file: int | None = None) -> Iterator[DxtRecord]:
        """As `Log.dxt`, with ranks, times and files of the whole."""
        for run in self.runs if file is None else self._runs_that_trace(module, file):
            with open_log(run.path) as log:
                for record in log.dxt(module):
                    file_id = int(self._own(np.array([record.id], np.uint64), run)[0])
                    if file is not None and file_id != file:
                        continue
                    for rows in (record.write_segments, record.read_segments):
                        rows["start_s"] += run.shift_s
                        rows["end_s"] += run.shift_s
                    rank = run.first + record.rank if record.rank >= 0 else record.rank
                    yield replace(record, id=file_id, rank=rank)

    def _runs_that_trace(self, module: str, file: int) -> list[Run]:
        """The runs whose logs have traced accesses of a file."""
        if module not in self._traced:
            ids = []
            for run in self.runs:
                with open_log(run.path) as log:
                    some = np.array([record.id for record in log.dxt(module)], np.uint64)
                    ids.append(np.unique(self._own(some, run)))
            which = np.repeat(np.arange(len(ids)), [len(each) for each in ids])
            files = np.concatenate(ids)
            order = np.argsort(files, kind="stable")
            self._traced[module] = files[order], which[order]
        files, which = self._traced[module]
        begin, end = (np.searchsorted(files, np.uint64(file), side) for side in ("left", "right"))
        return [self.runs[n] for n in which[begin:end].tolist()]

    def leave_out_damaged(self) -> dict[str, str]:
        """As `Log.leave_out_damaged`: a module that is damaged in one log is left out of all."""
        messages_by_module: dict[str, list[str]] = {}
        for run in self.runs:
            with open_log(run.path) as log:
                for name, what in log.leave_out_damaged().items():
                    messages_by_module.setdefault(name, []).append(what)
        first = {}
        for name, messages in messages_by_module.items():
            first[name] = messages[0]
            if self.modules[name].supported:
                count = f"{len(messages)} of {len(self.runs)} logs"
                self._leave_out(name, f"it is damaged in {count}, first {messages[0]}")
        return first

    # -- files, ranks and times of the whole ------------------------------------------------------

    def _used_again(self) -> npt.NDArray[np.uint64]:
        """The files that were used by runs that follow each other, in order."""
        if max(run.nth for run in self.runs) == 0:
            return np.empty(0, np.uint64)
        seen: dict[int, list[npt.NDArray[np.uint64]]] = {}
        for run in self.runs:
            with open_log(run.path) as log:
                for ids, texts in log.names():
                    files = [not text.startswith(b"heatmap:") for text in texts]
                    seen.setdefault(run.nth, []).append(ids[files])
        each = [np.unique(np.concatenate(some)) for some in seen.values()]
        used, times = np.unique(np.concatenate(each), return_counts=True)
        again: npt.NDArray[np.uint64] = used[times > 1]
        return again

    def _own(self, ids: npt.NDArray[np.uint64], run: Run) -> npt.NDArray[np.uint64]:
        """The ids of files in the whole."""
        if not run.nth or not len(self._again):
            return ids
        mark = np.uint64(run.nth * 0x9E3779B97F4A7C15 & (1 << 64) - 1)
        return np.where(np.isin(ids, self._again), ids ^ mark, ids)

    def _placed(self, block: Any, run: Run, most: int) -> Iterator[Block]:
        """Records with the files, times and ranks of the whole."""
        for name in ("id", "file_rec_id"):
            if name in block.dtype.names:
                block[name] = self._own(block[name], run)
        whole_s = run.job.run_time_s
        for name in block.dtype.names:
            if name.endswith("_TIMESTAMP"):
                times = block[name]
                late = times > LATE * whole_s + 60 if whole_s is not None else times < 0
                moved = np.where(times > 0, times + run.shift_s, times)
                block[name] = np.where(late, np.nan, moved)
        rank, ranks = block["rank"], run.job.nprocs
        impossible = (rank < -1) | (rank >= ranks)
        shared = rank == -1 if 1 < ranks < self.job.nprocs else np.zeros(len(block), np.bool_)
        if ranks == 1:
            rank[:] = np.where(impossible, rank, 0)
        rank[:] = np.where(rank >= 0, rank + run.first, rank)
        rank[impossible] = self.job.nprocs  # `impossible_values` leaves it out
        if not shared.all():
            yield block[~shared]
        for n in np.flatnonzero(shared).tolist():
            for begin in range(0, ranks, most):
                yield _dealt(block[n : n + 1], run, begin, min(ranks, begin + most))

    def _rebinned(self, record: HeatmapRecord, run: Run) -> HeatmapRecord:
        """A record of the heatmap in bins of the whole; empty if its bins are impossible."""
        width_s, bins = record.bin_width_s, np.stack([record.write_bins, record.read_bins])
        last_s = run.shift_s + record.nbins * width_s
        if not 1e-6 <= width_s <= self._width_s or ((bins < 0) | (bins > 1 << 56)).any():
            return replace(record, bin_width_s=np.nan)
        count = int(np.ceil(last_s / self._width_s)) + 1
        edges = (np.arange(count + 1) * self._width_s - run.shift_s) / width_s
        sums = np.pad(np.cumsum(bins.astype(np.float64), axis=1), ((0, 0), (1, 0)))
        binned = [np.diff(np.rint(np.interp(edges, np.arange(record.nbins + 1), s))) for s in sums]
        write, read = (m.astype(np.int64) for m in binned)
        rank = run.first + record.rank if record.rank >= 0 else record.rank
        return HeatmapRecord(
            id=record.id,
            rank=rank,
            bin_width_s=self._width_s,
            nbins=count,
            write_bins=write,
            read_bins=read,
        )


def _bin_width_s(log: Log) -> float:
    """The width of the bins of a log's heatmap; 0 where it tells none."""
    module = log.modules.get("HEATMAP")
    if module is None or not module.supported:
        return 0.0
    try:
        width_s = next((record.bin_width_s for record in log.heatmap()), 0.0)
    except DamagedRegion:  # left out where the records are read
        return 0.0
    return width_s if np.isfinite(width_s) else 0.0


def _both(first: Module, other: Module) -> Module:
    """A module of two logs: the older version, and what either lacks."""
    return replace(
        first,
        version=min(first.version, other.version),
        partial=first.partial or other.partial,
        length_bytes=first.length_bytes + other.length_bytes,
        supported=first.supported and other.supported,
        reason=first.reason or other.reason,
        remark=first.remark or other.remark,
    )


def _numbered(name: bytes, nth: int) -> bytes:
    """A name with the number of a run, before its extension. Names that are numbers, of obfuscated
    logs, and of files of MPI stay."""
    last = name.rpartition(b"/")[2]
    if last.isdigit() or not name.startswith(b"/") or b".locktest." in last or b".shfp." in last:
        return name
    extension = _EXTENSION.search(name)
    at = extension.start() if extension else len(name)
    return name[:at] + b";%d" % nth + name[at:]


def _dealt(row: Any, run: Run, begin: int, end: int) -> Block:
    """The record of a file that all ranks of a run share, as records of its ranks from `begin` to
    `end`, which moved the same each."""
    rows: Block = np.repeat(row, end - begin)
    ranks, who = run.job.nprocs, np.arange(begin, end)
    rows["rank"] = run.first + who
    for name in rows.dtype.names or ():
        if _TIMERS.search(name):
            rows[name] = np.where(rows[name] > 0, rows[name] / ranks, rows[name])
        elif "_F_" not in name and _SUM.search(name):
            value = int(row[name][0])
            if value > 0:
                rows[name] = value // ranks + (who < value % ranks)
    return rows


# -- which logs, and where --------------------------------------------------------------------


def open_joined(paths: Sequence[Path], *, several_jobs: bool = False) -> Log:
    """Open logs as one; a single one as `open_log` does.

    `several_jobs` joins logs of different jobs of one program, too; the time between jobs is left
    out. Raises UnderstudyError for a log that is given twice, of another job or of another user,
    and where nothing is left, since logs without a module are left out.
    """
    if len(paths) == 1:
        return open_log(paths[0])
    unscheduled, empty = [], 0
    for path in paths:
        with open_log(path) as log:
            if log.modules:
                unscheduled.append(_run(log))
            else:
                empty += 1
    if not unscheduled:
        raise UnderstudyError(f"{paths[0]}: none of the {len(paths)} logs has a record")
    unscheduled.sort(key=lambda run: (run.job.start_s, _natural(run.path.name)))
    _refuse_strangers(unscheduled, several_jobs)
    _refuse_twins(unscheduled)
    if len(unscheduled) == 1 and not empty:
        return open_log(unscheduled[0].path)
    runs, waits_s = _scheduled(unscheduled)
    return JoinedLog(runs, _notes(runs, waits_s, empty), empty)


def _run(log: Log) -> Run:
    end_s = log.job.end_s
    if log.job.run_time_s is None:
        end_s = log.job.start_s + _last_s(log)
    return Run(path=log.path, job=log.job, exe=log.exe, end_s=max(end_s, log.job.start_s))


def _last_s(log: Log) -> float:
    """The last time in the records of a log that does not tell its end."""
    last_s = 0.0
    for module in ("POSIX", "MPI-IO", "STDIO"):
        counters = log.modules.get(module)
        for block in log.records(module) if counters is not None and counters.supported else ():
            for name in block.dtype.names or ():
                if name.endswith("_TIMESTAMP"):
                    times = block[name][np.isfinite(block[name]) & (block[name] < 1e9)]
                    last_s = max(last_s, float(times.max(initial=0.0)))
    return last_s


def _natural(name: str) -> list[tuple[int, str]]:
    """A key by which 2 comes before 10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name)]


def _refuse_strangers(runs: Sequence[Run], several_jobs: bool) -> None:
    first, last = runs[0], runs[0]
    for run in runs[1:]:
        gap_s, before = run.job.start_s - last.end_s, last
        last = max(last, run, key=lambda run: run.end_s)
        if run.job.uid != first.job.uid:
            raise UnderstudyError(f"{run.path}: a log of another user than {first.path}")
        if run.job.jobid == first.job.jobid:
            if gap_s > JOB_GAP_S and not several_jobs:
                raise UnderstudyError(
                    f"{run.path}: starts {gap_s / 86400:.1f} days after {before.path} ended, with "
                    f"the same job ID {run.job.jobid}: of another job, if job IDs are used again; "
                    "give the logs of one job, or join both with --join-jobs"
                )
            continue
        if not several_jobs:
            raise UnderstudyError(
                f"{run.path}: a log of job {run.job.jobid}, but {first.path} is of job "
                f"{first.job.jobid}: `understudy rank` lists jobs; choose one with --job, or join "
                "processes or runs with job IDs of their own with --join-jobs"
            )
        if run.program != first.program:
            raise UnderstudyError(
                f"{run.path}: --join-jobs: a log of the program {run.program!r}, but {first.path} "
                f"is of {first.program!r}; expected jobs of one program"
            )


class Twins:
    """Finds a log that is given again, also under another name or recompressed. Keeps about 200
    bytes for each log; the counters of a log are compared only with those of logs of the same job,
    program and times."""

    def __init__(self) -> None:
        self._first: dict[tuple[object, ...], Path] = {}
        self._seen: dict[tuple[object, ...], dict[bytes, Path]] = {}

    def of(self, path: Path, job: Job, exe: str) -> Path | None:
        """The log, of those asked for before, that this one repeats; an UnderstudyError if the
        records of one cannot be read."""
        key = (job.start_s, job.end_s, job.nprocs, job.jobid, hash(exe))
        if key not in self._first:
            self._first[key] = path
            return None
        if key not in self._seen:
            self._seen[key] = {_digest(self._first[key]): self._first[key]}
        digest = _digest(path)
        if digest in self._seen[key]:
            return self._seen[key][digest]
        self._seen[key][digest] = path
        return None


def _refuse_twins(runs: Sequence[Run]) -> None:
    """Refuse a log that is given twice."""
    twins = Twins()
    for run in runs:
        if twin := twins.of(run.path, run.job, run.exe):
            raise UnderstudyError(f"{run.path}: the same log as {twin}; give it once")


def _digest(path: Path) -> bytes:
    """Digest of all counters of a log; of all plain bytes of its modules where none is decoded."""
    digest, empty = hashlib.sha256(), True
    with open_log(path) as log:
        for module in layouts.RECORDS:
            counters = log.modules.get(module)
            for block in (
                log.records(module) if counters is not None and counters.supported else ()
            ):
                digest.update(module.encode() + block.tobytes())
                empty = False
        for name in log.modules if empty else ():
            for part in log.plain(name):
                digest.update(part)
    return digest.digest()[:16]


def _scheduled(runs: Sequence[Run]) -> tuple[list[Run], list[float]]:
    """Runs, in order of their starts, with their ranks and times; and the seconds between jobs
    that are left out."""
    free_s: npt.NDArray[np.float64] = np.empty(0)  # by rank: when its last run ended
    numbers: npt.NDArray[np.int64] = np.empty(0, np.int64)  # by rank: of the next run
    scheduled, waits_s, jobs, base = [], [], set[int](), 0
    last_s = runs[0].job.start_s
    for run in runs:
        start_s, count = run.job.start_s, run.job.nprocs
        if not 1 <= count <= MAX_RANKS - len(free_s):
            raise UnderstudyError(
                f"{run.path}: the job record has {count} processes, expected 1 to {MAX_RANKS} "
                "of all logs at the same time"
            )
        again = start_s - last_s > JOB_GAP_S
        if start_s > last_s and jobs and (run.job.jobid not in jobs or again):
            waits_s.append(start_s - last_s)
            jobs = set()
        jobs.add(run.job.jobid)
        last_s = max(last_s, run.end_s)
        first = _room(free_s > start_s, count)
        more = max(0, first + count - len(free_s))
        if not (free_s > start_s).any():  # no run of before overlaps this one
            base = int(numbers.max(initial=0))
            numbers[:] = base
        free_s = np.pad(free_s, (0, more))
        numbers = np.pad(numbers, (0, more), constant_values=base)
        ranks = slice(first, first + count)
        nth = int(numbers[ranks].max())
        free_s[ranks], numbers[ranks] = run.end_s, nth + 1
        shift_s = start_s - runs[0].job.start_s - sum(waits_s)
        scheduled.append(replace(run, shift_s=shift_s, first=first, nth=nth))
    return scheduled, waits_s


def _waves(runs: Sequence[Run]) -> tuple[Wave, ...]:
    """Runs at the same time are one wave, which ends where no run is left."""
    waves: list[list[Run]] = []
    last_s = -np.inf
    for run in runs:
        if run.shift_s >= last_s:
            waves.append([])
        waves[-1].append(run)
        last_s = max(last_s, run.shift_s + run.end_s - run.job.start_s)
    return tuple(
        Wave(start_s=wave[0].shift_s, mixed=len({run.nth for run in wave}) > 1) for wave in waves
    )


def _room(busy: npt.NDArray[np.bool_], count: int) -> int:
    """The first of `count` neighbouring ranks that are free."""
    edges = np.concatenate([[-1], np.flatnonzero(busy)])
    gaps = np.diff(np.append(edges, len(busy) + count)) - 1
    return int(edges[np.argmax(gaps >= count)]) + 1


def _notes(runs: Sequence[Run], waits_s: Sequence[float], empty: int) -> list[str]:
    """Notes on the joined logs and the assumptions."""
    jobs = max(len({run.job.jobid for run in runs}), 1 + len(waits_s))
    longest = 1 + max(run.nth for run in runs)
    how = "at the same time" if longest == 1 else f"up to {longest} one after another on a rank"
    note = (
        f"Joined from {len(runs)} logs of {'one job' if jobs == 1 else f'{jobs} jobs'}, {how}. "
        "Each run takes the lowest free ranks at its start; times count from the first start."
    )
    notes = [note]
    if longest > 1:
        notes.append(
            "Files that runs on the same ranks used one after another are files of their own in "
            "each run: the replica does not write them again, nor append to them."
        )
    whole = max(run.first + run.job.nprocs for run in runs)
    some = sum(1 < run.job.nprocs < whole for run in runs)
    if some:
        notes.append(
            f"{some} {'log has' if some == 1 else 'logs have'} fewer ranks than the whole: what "
            "its record of a shared file adds up is assumed to be even over its ranks."
        )
    if waits_s:
        notes.append(f"{sum(waits_s):.0f} s between {len(waits_s) + 1} jobs are left out.")
    unknown = sum(run.job.run_time_s is None for run in runs)
    if unknown:
        notes.append(
            f"{unknown} {'log has' if unknown == 1 else 'logs have'} no end time (the program was "
            "killed): the last time in the records is assumed to be the end."
        )
    if empty:
        notes.append(f"{empty} {'log' if empty == 1 else 'logs'} without a record left out.")
    return notes

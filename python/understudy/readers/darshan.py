"""Darshan logs: the I/O of an application, as a workload.

Modules take precedence in the order H5D, MPI-IO, POSIX and STDIO. In `understudy.inference`,
`log.accesses` decides which of them describes a file, `streams.file_series` how files become
series of dumps, and `steps.time_steps` handles files that stay open.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from understudy import __version__
from understudy.contracts.workload import Provenance, Source, Workload, identifier, streams_of
from understudy.darshanlog import MORE_MEMORY, JoinedLog, Log, open_joined, open_log
from understudy.errors import UnderstudyError
from understudy.inference.description import Composer
from understudy.inference.log import trace_gaps
from understudy.inference.log.accesses import Accesses, Remarks
from understudy.inference.log.impossible_values import MAX_RANKS, Screen
from understudy.inference.log.inherited_descriptors import may_inherit
from understudy.inference.log.nonblocking_calls import NOTE, in_flight, is_in_flight, split_note
from understudy.inference.score.counter_comparison import explain
from understudy.inference.score.explanation import (
    Explanation,
)
from understudy.inference.steps import overlaps
from understudy.inference.steps.heatmap import READS, Heat
from understudy.inference.steps.passes import Segments
from understudy.inference.steps.time_steps import TimeSteps
from understudy.inference.streams.file_series import find_series
from understudy.inference.streams.small_file_sets import Floods
from understudy.program import rules
from understudy.tracing import dxt
from understudy.tracing.program import closing as made_of
from understudy.tracing.program import left_out, workload_of

KIND = "a Darshan log"
SUFFIXES = (".darshan",)
STARTS = (b"3.", b"\x1f\x8b", b"BZh")  # versions, and logs that are compressed as a whole
OPTIONS = (
    click.option(
        "--partial",
        is_flag=True,
        help="Describe a log whose modules ran out of memory; files opened later are missing.",
    ),
    click.option(
        "--join-jobs",
        is_flag=True,
        help="Several Darshan logs: join those of different jobs of one program, such as runs of "
        "a campaign, or processes whose job IDs are process IDs. The time between jobs is left "
        "out.",
    ),
    click.option(
        "--calls",
        is_flag=True,
        help="Darshan logs with DXT: play each read and write that was traced, at its place and "
        "in its order, as of a trace of strace.",
    ),
)
KEPT_BYTES = 31 << 20
"""Once so much memory was allocated and freed, the C library of GNU keeps smaller blocks for the
next use, instead of asking the kernel for new pages for each."""
RECORDS = ("POSIX", "MPI-IO", "STDIO", "H5F", "H5D")
REMEDY = f"record it again {MORE_MEMORY}"


# Directories of executables that identify nobody.
_COMMON = {"bin", "build", "home", "local", "opt", "sbin", "scratch", "src", "tmp", "usr", "work"}


# The file name that Darshan gives a log: user_executable_id123-456_month-day-...
_LOG_NAME = re.compile(r"(?P<who>.+)_id(?P<jobs>\d+(-\d+)?)_")


def private_words(path: Path) -> set[str]:
    """Words that a workload's name must not repeat, in lower case: the log's file name, user,
    job and executable."""
    who, program = _names_of(path)
    words = who | program | {path.stem.lower()}
    return {word for word in words if len(word) > 2 and word not in _COMMON}


def _names_of(path: Path) -> tuple[set[str], set[str]]:
    """Words that tell user and job, and those that are in the name of the executable."""
    with open_log(path) as log:
        command, job = log.exe.split(maxsplit=1)[:1], log.job
    program = [Path(text).name for text in command]
    texts = [*command, str(job.uid), str(job.jobid)]
    if (name := _LOG_NAME.match(path.name)) is not None:
        texts += [name["who"], *name["jobs"].split("-")]
    who, program_words = (
        {word.lower() for text in some for word in (text, *re.split(r"[^A-Za-z0-9]+", text))}
        for some in (texts, program)
    )
    return who - program_words, program_words


def public_name(path: Path) -> str:
    """Name of the log for people: the name of its file without words that tell user and job; of a
    name that Darshan gave, which tells user, executable, job, time and a number by which the log
    is found again, the number of ranks. Empty if nothing is left."""
    who, program = _names_of(path)
    given = _LOG_NAME.match(path.name)
    if given and not re.search("[A-Za-z]", path.stem[given.end() :]):
        with open_log(path) as log:
            return f"darshan-{log.job.nprocs}-ranks"
    private = {w for w in (who | program if given else who) if len(w) > 2} - _COMMON
    stem = f"log_{path.stem[given.end() :]}" if given else path.stem
    words = re.split(r"[^A-Za-z0-9]+", stem)
    kept = [
        word
        for word in words
        if not any(w == word.lower() or (len(w) > 3 and w in word.lower()) for w in private)
    ]
    return stem if kept == words else "-".join(filter(None, kept))


def of_job(paths: Sequence[Path], job: int) -> list[Path]:
    """The logs of a job."""
    logs = []
    for path in paths:
        with open_log(path) as log:
            if log.job.jobid == job:
                logs.append(path)
    if not logs:
        raise UnderstudyError(f"--job {job}: none of {len(paths)} logs is of this job")
    return logs


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    partial: bool = False,
    tick: Callable[[float], None] = lambda _: None,
    others: Sequence[Path] = (),
    join_jobs: bool = False,
    calls: bool = False,
    told: Callable[[Explanation], None] = lambda _: None,
) -> Workload:
    """The workload of a log, or of several joined: `path` and `others`, which are of one job
    unless `join_jobs` (see `understudy.darshanlog.open_joined`).

    `name` of the workload (default: made from the log's file name only where names may be kept),
    `keep_names` keeps the source's file names as labels, `partial` accepts a log whose modules ran
    out of memory, `calls` makes a workload of each call that DXT traced, `tick` is told now and
    then which share of the work is done, `told` how far the workload explains the log (not with
    `calls`).
    """
    with open_joined([path, *others], several_jobs=join_jobs) as log:
        if calls:
            return _of_calls(log, name, keep_names, partial, tick)
        workload, _, explained = _described(log, name, keep_names, partial, tick)
    told(explained)
    return workload


def _of_calls(
    log: Log, name: str | None, keep_names: bool, partial: bool, tick: Callable[[float], None]
) -> Workload:
    """The workload of the calls that DXT traced."""
    _refuse_incomplete(log, partial)
    ranks = _ranks(log)
    traced = dxt.TracedLog(log, ranks, tick)
    notes = (*log.notes, *traced.notes(), *left_out(traced.left_out))
    if not len(traced.ranks):
        raise UnderstudyError(f"{log.path}: DXT and POSIX have no call of the application")
    how = "read and written as DXT_POSIX has it; opens, stats and syncs as POSIX counted them"
    workload = workload_of(
        _name(log, name, keep_names, ranks),
        traced,
        ranks=ranks,
        runtime_s=traced.run_time_s,
        source=_source(log, (*notes, *traced.screen.notes(["POSIX"]))),
        provenance=(
            *_of_job(log, _run_time(log)),
            Provenance(path="/streams", origin="reconstructed", how=how),
        ),
    )
    rules.check(workload, str(log.path))
    return workload


def closing(workload: Workload) -> str:
    """Summary of the replica of traced calls, with its omissions; empty for streams."""
    return made_of(workload) if workload.streams[0].tree else ""


def describe(
    log: Log,
    *,
    name: str | None = None,
    keep_names: bool = False,
    partial: bool = False,
    tick: Callable[[float], None] = lambda _: None,
) -> tuple[Workload, tuple[frozenset[bytes], ...]]:
    """The workload of an open log, as `read` makes it, and for each of its streams the templates
    of its files' names (see `understudy.inference.names.name_templates.Templates`)."""
    return _described(log, name, keep_names, partial, tick)[:2]


def _described(
    log: Log, name: str | None, keep_names: bool, partial: bool, tick: Callable[[float], None]
) -> tuple[Workload, tuple[frozenset[bytes], ...], Explanation]:
    """The same, and how far it explains the log."""
    _refuse_incomplete(log, partial)
    ranks = _ranks(log)
    log.leave_out_damaged()
    np.empty(KEPT_BYTES, np.uint8)
    accesses = Accesses(log, ranks, tick)
    if accesses.repeated:
        accesses.close()
        log.leave_out_repeats({m: np.concatenate(keys) for m, keys in accesses.repeated.items()})
        accesses = Accesses(log, ranks, tick)
    try:
        workload, templates = _describe(log, accesses, ranks, name, keep_names)
        explained = explain(
            workload.streams, templates, accesses.counter_totals, ranks, inherits=may_inherit(log)
        )
        assert workload.source is not None
        screen = Screen(str(log.path), ranks, log.job.run_time_s)
        explained = replace(explained, traced=trace_gaps.is_whole(log, screen, accesses.kept))
        notes = (*workload.source.notes, *explained.notes())
        workload = replace(workload, source=replace(workload.source, notes=notes))
        return workload, templates, explained
    finally:
        accesses.close()


def _describe(
    log: Log, accesses: Accesses, ranks: int, name: str | None, keep_names: bool
) -> tuple[Workload, tuple[frozenset[bytes], ...]]:
    runtime_s = log.job.run_time_s if (log.job.run_time_s or 0) > 0 else None
    span_s = max(accesses.last_s, runtime_s or 0.0)
    waves = log.waves if isinstance(log, JoinedLog) else ()
    floods = Floods(accesses.blocks, accesses.templates, ranks, span_s, waves, accesses.once)
    series = find_series(floods.rest, accesses.templates, ranks, span_s)
    if not series and not floods.floods and not accesses.idle.files:
        other = [m.name for m in log.modules.values() if m.reason is not None]
        why = f", and its modules {', '.join(other)} are not decoded" if other else ""
        raise UnderstudyError(
            f"{log.path}: no file of the application moved a byte in {', '.join(RECORDS)} of this "
            f"log{why}: nothing to replay"
        )
    starts = {"MPIIO": "MPIIO_F_OPEN_START_TIMESTAMP"} if accesses.wrong_starts else {}
    composer = Composer(
        ranks=ranks,
        runtime_s=span_s,
        keep_names=keep_names,
        starts=starts,
        counter_totals=accesses.counter_totals.of,
        strands=accesses.strands,
        hdf5_layouts=accesses.hdf5_layouts,
        floods=[(accesses.templates.names[max(0, f.template)], f) for f in floods.floods],
    )
    time_steps = TimeSteps(
        runtime_s=span_s,
        ranks=ranks,
        hints=accesses.hints,
        heat=_heat(log, accesses),
        trace=lambda file, method, write: _segments(log, accesses.screen, file, method, write),
    )
    streams = composer.streams(series, time_steps.split, accesses.idle)
    notes = (
        list(log.notes)
        + _notes(log, accesses.remarks, runtime_s)
        + _screened(log, accesses)
        + composer.notes
    )
    program_streams = list(streams_of(streams, ranks))
    unwaited = set[str]()  # paths of computing times that are none
    for n, (stream, templates) in enumerate(zip(program_streams, composer.templates, strict=True)):
        totals = accesses.counter_totals.of(templates)
        if note := split_note(stream, totals):
            notes.append(note)
        if is_in_flight(stream, totals):
            program_streams[n] = in_flight(stream)
            notes.append(f"{stream.name}: {NOTE}.")
            unwaited.add(f"/streams/{n}/dumps/*/compute_s")
        elif depth := composer.depths.get(stream.name):
            program_streams[n] = overlaps.deep(stream, depth)
    if mapped := accesses.counter_totals.counted("POSIX", "POSIX_MMAPS"):
        times = "once" if mapped == 1 else f"{mapped:,} times"
        notes.append(
            f"Files were mapped into memory {times} (mmap): what is read and written there is not "
            "in the log and not reproduced."
        )
    if any(stream.method == "stdio" for stream in streams):
        notes.append(
            "Calls of stdio are counted before the C library's buffer, which makes fewer and "
            "larger ones of them; the replica has the buffer of its own C library. Their sizes "
            "are not in the log: equal calls, or items before an array, whichever is simpler."
        )
    if any(s.method == "posix" and s.operation == "write" and s.dumps for s in streams):
        notes.append("Darshan does not record O_DIRECT and O_SYNC; the replica uses neither.")
    workload = Workload(
        name=_name(log, name, keep_names, ranks),
        description="I/O of an application as recorded by Darshan.",
        ranks=ranks,
        runtime_s=runtime_s,
        streams=tuple(program_streams),
        source=_source(log, notes),
        provenance=(
            *_of_job(log, _run_time(log)),
            *(entry for entry in composer.provenance if entry.path not in unwaited),
        ),
    )
    return workload, tuple(composer.templates)


def _name(log: Log, name: str | None, keep_names: bool, ranks: int) -> str:
    return name or (identifier(log.path.stem) if keep_names else f"darshan-{ranks}-ranks")


def _source(log: Log, notes: Iterable[str]) -> Source:
    reader = f"understudy {__version__}"
    return Source(format="darshan", version=log.version, reader=reader, notes=tuple(notes))


def _run_time(log: Log) -> str:
    """The origin of the run time of a log."""
    if (log.job.run_time_s or 0) <= 0:
        return "unknown: the log has no end time"
    return "job record" if log.version >= "3.41" else "job record, in whole seconds"


def _of_job(log: Log, how: str) -> tuple[Provenance, Provenance]:
    """The origin of the ranks and of the run time."""
    if not isinstance(log, JoinedLog):
        return (
            Provenance(path="/ranks", origin="read", how="nprocs of the job record"),
            Provenance(path="/runtime_s", origin="read", how=how),
        )
    count = len(log.runs)
    return (
        Provenance(
            path="/ranks",
            origin="reconstructed",
            how=f"processes at the same time in {count} logs, which do not tell their ranks",
        ),
        Provenance(
            path="/runtime_s", origin="derived", how=f"first start and last end of {count} logs"
        ),
    )


def _screened(log: Log, accesses: Accesses) -> list[str]:
    notes = accesses.screen.notes(m for m in RECORDS if m in log.modules)
    if accesses.nameless > accesses.named and log.has_names:
        whole = accesses.nameless + accesses.named
        notes.append(
            f"{accesses.nameless} of {whole} accesses are of files that have no name in the log, "
            "though it has names: it may be damaged."
        )
    for module in sorted({*log.repeats, *accesses.repeated}):
        left_out = log.repeats.get(module, 0)
        unlike = sum(map(len, accesses.repeated.get(module, ())))
        if left_out:
            notes.append(f"Module {module}: {_records(left_out)} left out that repeat another.")
        if unlike:
            notes.append(
                f"Module {module}: {_records(unlike)} of a file and rank that have another, of "
                "other counters: they are added up."
            )
    return notes


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _ranks(log: Log) -> int:
    if not 1 <= log.job.nprocs <= MAX_RANKS:
        raise UnderstudyError(
            f"{log.path}: the job record has {log.job.nprocs} processes, expected 1 to {MAX_RANKS}"
        )
    return log.job.nprocs


def _refuse_incomplete(log: Log, partial: bool) -> None:
    unreadable = [m for m in RECORDS if m in log.modules and not log.modules[m].supported]
    if unreadable:
        raise UnderstudyError(
            f"{log.path}: {log.modules[unreadable[0]].reason}; "
            "a newer version of understudy may support it"
        )
    short = [m for m in RECORDS if m in log.modules and log.modules[m].partial]
    if short and not partial:
        raise UnderstudyError(
            f"{log.path}: module {', '.join(short)} is incomplete: Darshan ran out of memory for "
            f"records and left out later files; {REMEDY}, or describe what is there with --partial"
        )
    if not any(m in log.modules for m in RECORDS):
        have = ", ".join(log.modules) or "none"
        raise UnderstudyError(
            f"{log.path}: holds no records of files (modules: {have}); "
            "expected POSIX, MPI-IO, STDIO or H5D"
        )


def _heat(log: Log, accesses: Accesses) -> dict[str, Heat]:
    """Bytes written and read per time bin over all ranks, by module."""
    module = log.modules.get("HEATMAP")
    if module is None or not module.supported or module.partial:
        return {}
    sums: dict[str, Heat] = {}
    movers: dict[str, list[npt.NDArray[np.uint8]]] = {}
    for record in log.heatmap():
        module_name = accesses.module_names.get(record.id, b"").decode("ascii", "replace")
        both = [np.asarray(some, np.int64) for some in (record.write_bins, record.read_bins)]
        if not accesses.screen.heat(record.bin_width_s, *both):
            continue
        for ending, bins in zip(("", READS), both, strict=True):
            name = module_name + ending
            old = sums.get(name)
            movers.setdefault(name, []).append(np.packbits(bins > 0))
            if old is not None:
                size = max(len(bins), len(old.bytes))
                bins = np.pad(bins, (0, size - len(bins))) + np.pad(
                    old.bytes, (0, size - len(old.bytes))
                )
            sums[name] = Heat(width_s=record.bin_width_s, bytes=bins)
    for name, heat in sums.items():
        rows = np.zeros((len(movers[name]), -(-len(heat.bytes) // 8)), np.uint8)
        for row, bits in zip(rows, movers[name], strict=True):
            row[: len(bits)] = bits
        sums[name] = replace(heat, movers=rows)
    return sums


def _segments(log: Log, screen: Screen, file: int, method: str, write: bool) -> Segments | None:
    """Traced accesses to one file in one direction, of the application's own interface."""
    name = {"posix": "DXT_POSIX", "mpiio": "DXT_MPIIO", "hdf5": "DXT_MPIIO"}.get(method, "")
    module = log.modules.get(name)
    if module is None or not module.supported or module.partial:
        return None
    records = list(log.dxt(name, file))
    if not records:
        return None
    parts = [
        screen.segments(name, r.write_segments if write else r.read_segments, r.id, r.rank, write)
        for r in records
    ]
    rows = np.concatenate(parts)
    return Segments(
        rank=np.repeat([r.rank for r in records], [len(part) for part in parts]),
        offset=np.asarray(rows["offset"], np.int64),
        start_s=np.asarray(rows["start_s"], np.float64),
        end_s=np.asarray(rows["end_s"], np.float64),
        bytes=np.asarray(rows["length"], np.int64),
    )


_RULES = {
    "junk": "Left out, since they do not belong to the application (lock tests and shared-memory "
    "files of MPI, devices, standard streams): {files}.",
    "two interfaces": "Written through stdio and another interface; each interface is a stream of "
    "its own: {files}.",
    "overlap": "Written over through another interface after stdio, {bytes} B in all: {files}.",
    "no H5D": "Without the HDF5 records of some ranks; the {bytes} B that MPI-IO recorded for "
    "them are described like those of the rank with most bytes: {files}.",
    "filtered": "Written through HDF5, which stored far less than the {bytes} B of their "
    "datasets, as it does where it compresses: what reached the storage is described, and no "
    "dataset: {files}.",
    "metadata": "Opened by HDF5 without a byte of a dataset; the {bytes} B that the library wrote "
    "of its own are described as writes through POSIX: {files}.",
    "no POSIX": "With {bytes} B through MPI-IO that the incomplete POSIX records lack; those of "
    "MPI-IO were used, the size on storage is unknown: {files}.",
    "overflow": "With an MPI-IO byte counter that overflowed at 2^31; the POSIX bytes were used: "
    "{files}.",
    "unspread": "With bytes of each rank that the access sizes tell, but of too many ranks to "
    "hold them: their bytes are assumed to be even: {files}.",
    "moved": "Written after their close according to Darshan, {bytes} B in all, which were "
    "attributed to the file open at that time: {files}.",
    "stale": "Left out, {bytes} B that Darshan recorded for a file after its close: {files}.",
}


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _notes(log: Log, remarks: Remarks, runtime_s: float | None) -> list[str]:
    notes = [
        text.format(files=_files(remarks.count[rule]), bytes=remarks.bytes[rule])
        for rule, text in _RULES.items()
        if remarks.count[rule]
    ]
    if "synthetic" in log.job.metadata:
        notes.append("The log is synthetic: no application did this I/O.")
    notes += [f"Darshan: {remark}" for remark in log.remarks]
    if runtime_s is None:
        notes.append("The log has no end time (the program was killed): its run time is unknown.")
    for module in log.modules.values():
        if module.reason is not None:
            notes.append(f"Module {module.name} was left out: {module.reason}.")
        elif module.partial:
            notes.append(
                f"Module {module.name} is incomplete: Darshan ran out of memory for its records."
            )
    if "STDIO" in log.modules:
        notes.append(
            "The application may have moved more through stdio than the log says: Darshan does "
            "not see putc, the _unlocked calls and fprintf of programs with _FORTIFY_SOURCE."
        )
    striping = _striping(log)
    if striping:
        notes.append(striping)
    return notes


def _striping(log: Log) -> str:
    """How the files of the source were striped, as a note."""
    module = log.modules.get("LUSTRE")
    if module is None or not module.supported:
        return ""
    seen: dict[tuple[int, int], int] = {}
    for record in log.lustre():
        key = (int(record.stripe_count), int(record.stripe_size_bytes))
        seen[key] = seen.get(key, 0) + 1
    common = sorted(seen, key=lambda k: -seen[k])[:3]
    texts = [f"{seen[k]} with stripe count {k[0]} and stripe size {k[1]} B" for k in common]
    return f"Files on Lustre: {', '.join(texts)}." if texts else ""

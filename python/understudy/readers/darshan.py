"""Darshan logs: what an application's I/O was, as a workload.

The counters stand in the order H5D, MPI-IO, POSIX and STDIO; see `understudy.accesses` for which
of them speaks for a file, `understudy.series` for how files become series of dumps and
`understudy.states` for files that stay open.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from understudy import __version__
from understudy.accesses import Accesses, Remarks
from understudy.darshanlog import Log, open_log
from understudy.errors import UnderstudyError
from understudy.series import find_series
from understudy.states import Heat, Segments, States
from understudy.streams import Composer
from understudy.workload import Provenance, Source, Workload, identifier

SUFFIXES = (".darshan",)
RECORDS = ("POSIX", "MPI-IO", "STDIO", "H5F", "H5D")
REMEDY = (
    "record it again with more memory (environment DARSHAN_MODMEM=64, in MiB, and a line "
    "'MAX_RECORDS 20000 POSIX,MPI-IO,STDIO,H5F,H5D' in the file that DARSHAN_CONFIG_PATH names)"
)


def read(
    path: Path,
    *,
    name: str | None = None,
    keep_names: bool = False,
    partial: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> Workload:
    """The workload of a log.

    `name` of the workload (default: made from the log's file name only where names may be kept),
    `keep_names` keeps the source's file names as labels, `partial` accepts a log whose modules ran
    out of memory, `tick` is called for every block of records.
    """
    with open_log(path) as log:
        return describe(log, name=name, keep_names=keep_names, partial=partial, tick=tick)[0]


def describe(
    log: Log,
    *,
    name: str | None = None,
    keep_names: bool = False,
    partial: bool = False,
    tick: Callable[[], None] = lambda: None,
) -> tuple[Workload, tuple[frozenset[bytes], ...]]:
    """The workload of an open log, as `read` makes it, and for each of its streams the templates
    of its files' names (see `understudy.series.Templates`)."""
    _refuse_incomplete(log, partial)
    ranks = _ranks(log)
    accesses = Accesses(log, ranks, tick)
    try:
        return _describe(log, accesses, ranks, name, keep_names)
    finally:
        accesses.close()


def _describe(
    log: Log, accesses: Accesses, ranks: int, name: str | None, keep_names: bool
) -> tuple[Workload, tuple[frozenset[bytes], ...]]:
    last_s = max((float(b["end_s"].max(initial=0)) for b in accesses.blocks()), default=0.0)
    runtime_s = log.job.run_time_s if (log.job.run_time_s or 0) > 0 else None
    span_s = max(last_s, runtime_s or 0.0)
    series = find_series(accesses.blocks, accesses.templates, ranks, span_s)
    if not series:
        other = [m.name for m in log.modules.values() if m.reason is not None]
        why = f", and its modules {', '.join(other)} are not decoded" if other else ""
        raise UnderstudyError(
            f"{log.path}: no file of the application moved a byte in {', '.join(RECORDS)} of this "
            f"log{why}: nothing to replay"
        )
    starts = {"MPIIO": "MPIIO_F_OPEN_START_TIMESTAMP"} if accesses.wrong_starts else {}
    composer = Composer(ranks=ranks, runtime_s=span_s, keep_names=keep_names, starts=starts)
    states = States(
        runtime_s=span_s,
        hints=accesses.hints,
        heat=_heat(log, accesses),
        trace=lambda file, method: _segments(log, file, method),
    )
    streams = composer.streams(series, states.split)
    notes = _notes(log, accesses.remarks, runtime_s) + composer.notes
    whole = "" if log.version >= "3.41" else ", in whole seconds"
    how = f"job record{whole}" if runtime_s else "unknown: the log has no end time"
    workload = Workload(
        name=name or (identifier(log.path.stem) if keep_names else f"darshan-{ranks}-ranks"),
        description="I/O of an application as recorded by Darshan.",
        ranks=ranks,
        runtime_s=runtime_s,
        streams=streams,
        source=Source(
            format="darshan",
            version=log.version,
            reader=f"understudy {__version__}",
            notes=tuple(notes),
        ),
        provenance=(
            Provenance(path="/ranks", origin="read", how="nprocs of the job record"),
            Provenance(path="/runtime_s", origin="read", how=how),
            *composer.provenance,
        ),
    )
    return workload, tuple(composer.templates)


def _ranks(log: Log) -> int:
    if log.job.nprocs < 1:
        raise UnderstudyError(
            f"{log.path}: the job record has {log.job.nprocs} processes, expected at least 1"
        )
    return log.job.nprocs


def _refuse_incomplete(log: Log, partial: bool) -> None:
    unreadable = [m for m in RECORDS if m in log.modules and not log.modules[m].supported]
    if unreadable:
        raise UnderstudyError(
            f"{log.path}: {log.modules[unreadable[0]].reason}; a newer understudy may know it"
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
    """Bytes written per time bin over all ranks, by module."""
    module = log.modules.get("HEATMAP")
    if module is None or not module.supported or module.partial:
        return {}
    sums: dict[str, Heat] = {}
    for record in log.heatmap():
        name = accesses.module_names.get(record.id, b"").decode("ascii", "replace")
        bins = np.asarray(record.write_bins, np.int64)
        old = sums.get(name)
        if old is not None:
            size = max(len(bins), len(old.bytes))
            bins = np.pad(bins, (0, size - len(bins))) + np.pad(
                old.bytes, (0, size - len(old.bytes))
            )
        sums[name] = Heat(width_s=record.bin_width_s, bytes=bins)
    return sums


def _segments(log: Log, file: int, method: str) -> Segments | None:
    """Traced writes to one file, of the application's own interface."""
    name = {"posix": "DXT_POSIX", "mpiio": "DXT_MPIIO", "hdf5": "DXT_MPIIO"}.get(method, "")
    module = log.modules.get(name)
    if module is None or not module.supported or module.partial:
        return None
    found = [r.write_segments for r in log.dxt(name) if r.id == file]
    if not found:
        return None
    rows = np.concatenate(found)
    return Segments(
        start_s=np.asarray(rows["start_s"], np.float64),
        end_s=np.asarray(rows["end_s"], np.float64),
        bytes=np.asarray(rows["length"], np.int64),
    )


_RULES = {
    "junk": "Left out, as not the application's (lock tests and shared-memory files of MPI, "
    "devices, standard streams): {files}.",
    "header": "With a header that one rank wrote before the MPI-IO part, {bytes} B in all, which "
    "is a variable of its own: {files}.",
    "overflow": "With an MPI-IO byte counter that overflowed at 2^31, so that the POSIX bytes "
    "were taken: {files}.",
    "rewritten": "Partly written in place again, {bytes} B in all, of which the replica writes "
    "each byte once: {files}.",
    "reopened": "Opened, truncated and written several times, which Darshan adds up, so that the "
    "last content was taken, {bytes} B less: {files}.",
    "moved": "Written after their close, as Darshan has it, {bytes} B in all, which were given to "
    "the file open at that time: {files}.",
    "stale": "Left out, {bytes} B that Darshan booked to a file after its close: {files}.",
}


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"


def _notes(log: Log, remarks: Remarks, runtime_s: float | None) -> list[str]:
    notes = [
        text.format(files=_files(remarks.count[rule]), bytes=remarks.bytes[rule])
        for rule, text in _RULES.items()
        if remarks.count[rule]
    ]
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
            "Bytes of the STDIO module may be short by up to 0.02%: Darshan does not see every "
            "stdio call."
        )
    striping = _striping(log)
    if striping:
        notes.append(striping)
    return notes


def _striping(log: Log) -> str:
    """How the source's files were striped, in one sentence."""
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

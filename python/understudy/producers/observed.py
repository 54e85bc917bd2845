"""A program under Darshan: an application or its replica, measured by Darshan's own timers.

The measurement is made from a log by `of_log`. Each rank's records must be its own, because the
slowest rank is sought over all files: Darshan runs with DARSHAN_DISABLE_SHARED_REDUCTION.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from understudy import __version__
from understudy.contracts import schema
from understudy.contracts.measurement import Environment, Node, Observed, Spans, Stated, Timers
from understudy.contracts.run import Sample
from understudy.darshanlog import Log, logs_below, open_joined
from understudy.errors import UnderstudyError
from understudy.producers._reading import EXACT, LOWER, SECONDS

SCHEMA = "understudy/observed/1"
ARM = "application"
REQUESTS = "requests"
# Prefixes of the counters of each module.
MODULES = {"POSIX": "POSIX", "STDIO": "STDIO", "MPI-IO": "MPIIO", "H5F": "H5F", "H5D": "H5D"}
# The calls that reach storage: the other modules contain the time of these.
LOWEST = ("POSIX", "STDIO")
KINDS = ("read", "write", "meta")
Ids = np.ndarray[Any, np.dtype[np.uint64]]


def read(path: Path) -> Observed:
    """The measurement in a file."""
    row = schema.read(path, "observation of a program")
    stated_kind = schema.check(row, str(path))
    if stated_kind != "observed":
        raise UnderstudyError(f"{path}: expected an observation of a program, found {stated_kind}")
    return parse(row, str(path))


def parse(row: dict[str, Any], where: str) -> Observed:
    """Parse a JSON object that is valid by its schema."""
    here, workload = row["environment"], row["workload"]
    modules = tuple(
        Timers(**(m | {f"{kind}_s": tuple(m[f"{kind}_s"]) for kind in KINDS}))
        for m in row["modules"]
    )
    for timers in modules:
        if any(len(s) != here["ranks"] for s in (timers.read_s, timers.write_s, timers.meta_s)):
            raise UnderstudyError(
                f"{where}: modules: {timers.module}: expected {here['ranks']} ranks"
            )
    return Observed(
        application=row["application"],
        workload=Stated(name=workload["name"]),
        workload_sha256=workload["sha256"],
        options=row["options"],
        environment=Environment(
            understudy_version=__version__,
            command_line=tuple(here["command_line"]),
            started=here["started"],
            ranks=here["ranks"],
            nodes=(Node(name=None, ranks=None),),
            host="",
            kernel="",
            processors=0,
            mpi="",
            libraries={"Darshan": here["darshan"] or "unknown"},
            directory=here["directory"],
        ),
        elapsed_s=here["elapsed_s"],
        modules=modules,
        requests=row["requests"],
        dumps=tuple(Spans(stream=d["stream"], seconds=tuple(d["seconds"])) for d in row["dumps"]),
    )


def samples(measurement: Observed) -> Iterator[Sample]:
    """Seconds of the slowest rank and of all ranks: in calls that reach storage, in their
    metadata, and in each module; and of the dumps of each stream together. Requests of each kind
    where the storage tells them, and for how long these waited."""

    def sample(metric: str, value: float, stream: str | None = None) -> Sample:
        return Sample(
            metric=metric, unit=SECONDS, better=LOWER, stream=stream, repetition=None, value=value
        )

    if measurement.requests is not None:
        kinds = {k: v for k, v in measurement.requests.items() if isinstance(v, dict)}
        counts = {kind: told["requests"] for kind, told in kinds.items()}
        counts["unaligned_write"] = measurement.requests["unaligned_writes"]
        for kind, count in counts.items():
            yield Sample(
                metric=f"{kind}_requests",
                unit=REQUESTS,
                better=EXACT,
                stream=None,
                repetition=None,
                value=float(count),
            )
        yield sample("waited_s", sum(told["waited_s"] for told in kinds.values()))

    lowest = [m for m in measurement.modules if m.module in LOWEST]
    groups: dict[str, list[tuple[float, ...]]] = {
        "io": [m.total_s for m in lowest],
        "metadata": [m.meta_s for m in lowest],
    } | {MODULES[m.module].lower(): [m.total_s] for m in measurement.modules}
    for name, parts in groups.items():
        of_ranks = [sum(rank) for rank in zip(*parts, strict=True)]
        yield sample(f"{name}_slowest_rank_s", max(of_ranks, default=0.0))
        yield sample(f"{name}_all_ranks_s", sum(of_ranks))
    yield sample("elapsed_s", measurement.elapsed_s)
    for spans in measurement.dumps:
        yield sample("dumps_s", sum(spans.seconds), spans.stream)


def requests_in(path: Path, before: Path | None = None) -> dict[str, Any]:
    """Requests that a storage reports in a file, less those reported before; an `UnderstudyError`
    where it is something else."""
    row = schema.read(path, "requests of a storage")
    counts = dict(row)
    first = requests_in(before) if before else {}
    try:
        if row["schema"] != "understudy/requests/1":
            raise KeyError("schema")
        for kind, told in row.items():
            if isinstance(told, dict):
                counts[kind] = {
                    key: max(0, round(value - first.get(kind, {}).get(key, 0), 6))
                    for key, value in told.items()
                }
        counts["unaligned_writes"] = row["unaligned_writes"] - first.get("unaligned_writes", 0)
    except (KeyError, TypeError) as error:
        raise UnderstudyError(f"{path}: expected the requests of a storage: {error}") from None
    return counts


def of_log(
    path: Path,
    *,
    application: str,
    options: Mapping[str, Any],
    workload: tuple[str, str],
    directory: str,
    command_line: Sequence[str],
    dumps: Iterable[Spans] = (),
    prepared: Collection[int] = (),
    requests: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The measurement of the run whose log this is, or whose processes' logs are below this
    directory; `workload` is the name and the SHA-256 of
    what the replica plays. An `UnderstudyError` where the log lacks records or timers of ranks.

    `prepared` are the records of files that the player makes, in one open each, before it reads
    them: that open and the writes are left out. So are directories and the standard streams.
    """
    with open_joined(logs_below(path).logs if path.is_dir() else [path]) as log:
        job = log.job
        if job.run_time_s is None:
            raise UnderstudyError(f"{path}: the program did not end; its log has no run time")
        modules = list(_modules(log, prepared))
        if not modules:
            raise UnderstudyError(f"{path}: Darshan saw no file of the run directory")
        started = datetime.fromtimestamp(job.start_s, timezone.utc)
        return {
            "schema": SCHEMA,
            "application": application,
            "options": dict(options),
            "workload": {"name": workload[0], "sha256": workload[1]},
            "environment": {
                "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
                "ranks": job.nprocs,
                "elapsed_s": job.run_time_s,
                "darshan": log.library_version,
                "directory": directory,
                "command_line": list(command_line),
            },
            "modules": modules,
            "requests": requests and dict(requests),
            "dumps": [{"stream": d.stream, "seconds": list(d.seconds)} for d in dumps],
            "finished": True,
        }


def _modules(log: Log, prepared: Collection[int]) -> Iterator[dict[str, Any]]:
    others = _no_files(log)
    prepared_ids = np.fromiter(prepared, np.uint64, len(prepared))
    for module, prefix in MODULES.items():
        if module not in log.modules:
            continue
        if log.modules[module].partial:
            raise UnderstudyError(
                f"{log.path}: {module}: the log lacks records; raise Darshan's MAX_RECORDS"
            )
        ids: set[int] = set()
        moved = {"READ": 0, "WRITTEN": 0}
        spent = {kind: np.zeros(log.job.nprocs) for kind in KINDS}
        for block in log.records(module):
            records = block[~np.isin(block["id"], others)]
            ranks = records["rank"]
            if len(records) and (ranks.min() < 0 or ranks.max() >= log.job.nprocs):
                raise UnderstudyError(
                    f"{log.path}: {module}: records of all ranks together, or of unknown "
                    "ones; run Darshan with DARSHAN_DISABLE_SHARED_REDUCTION=1"
                )
            ids.update(records["id"].tolist())
            is_prepared = np.isin(records["id"], prepared_ids)
            opens = _counter(records, f"{prefix}_OPENS")
            share = {  # of what Darshan counts
                "read": np.ones(len(records)),
                "write": np.where(is_prepared, 0, 1),
                "meta": np.where(is_prepared, np.maximum(opens - 1, 0) / np.maximum(opens, 1), 1),
            }
            moved["READ"] += int(_counter(records, f"{prefix}_BYTES_READ").sum())
            moved["WRITTEN"] += int(
                _counter(records[~is_prepared], f"{prefix}_BYTES_WRITTEN").sum()
            )
            for kind, total in spent.items():
                timer = _counter(records, f"{prefix}_F_{kind.upper()}_TIME")
                np.add.at(total, ranks, timer * share[kind])
        if ids:
            yield {
                "module": module,
                "files": len(ids),
                "bytes_read": moved["READ"],
                "bytes_written": moved["WRITTEN"],
                **{f"{kind}_s": seconds.tolist() for kind, seconds in spent.items()},
            }


def _no_files(log: Log) -> Ids:
    """Records of directories, of <STDIN>, <STDOUT> and <STDERR>."""
    names = {
        int(n): text for ids, texts in log.names() for n, text in zip(ids, texts, strict=True)
    }
    folders = {parent for text in names.values() for parent in _parents(text)}
    excluded = [
        n
        for n, text in names.items()
        if text.startswith(b"<") or text.endswith(b"/") or text in folders
    ]
    return np.array(excluded, np.uint64)


def _parents(name: bytes) -> Iterator[bytes]:
    while b"/" in name:
        name = name.rpartition(b"/")[0]
        yield name


def _counter(block: Any, counter: str) -> Any:
    """Counters are absent, or -1, where a module does not count them."""
    if counter not in block.dtype.names:
        return np.zeros(len(block))
    return np.maximum(block[counter], 0)

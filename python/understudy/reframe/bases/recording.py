"""Run records of a check: one run.json beside each measurement, of failed runs too."""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import RECORD_FILE, Identity, Place, Run, Storage
from understudy.errors import UnderstudyError
from understudy.files import read_text
from understudy.judge.statistics import cache
from understudy.producers import MEASUREMENT_FILE, STORAGE_FACTS
from understudy.records import store
from understudy.reframe import spack

# Files of a job, beside its output.
STORAGE_BEFORE, STORAGE_AFTER = "storage-before.json", "storage-after.json"
EXIT_STATUS = "exit-status"
NODE_MEMORY = "node-memory"
RUN_DIRECTORY = "run-directory"  # when the job began, and in the next line its run directory
PRINTED = "stdout"  # of a run in its folder, where a program that is not ours prints

# Launchers whose job scripts run on a node that is none of the job's.
ON_SERVICE_NODE = ("alps",)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run of a job: what it is, and the folder in the job's directory for its files."""

    folder: Path
    producer: str  # of understudy.producers
    arm: str
    command: str
    round: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def measurement(self) -> Path:
        return self.folder / MEASUREMENT_FILE

    @property
    def record(self) -> Path:
        return self.folder / RECORD_FILE


def write(
    stage: Path,
    run: PlannedRun,
    *,
    place: Place,
    identity: Identity,
    asked: dict[str, Any],
    exit_status: int | None,
    failure: str | None,
    canary: Sequence[dict[str, Any]] = (),
) -> Run:
    """Write the record of a run that was started in the job directory `stage`, and keep a copy of
    it in the folder of the site, where later sessions do not replace it: see `records.store`.
    """
    record = producers.record(
        stage / run.measurement,
        place=replace(place, nodes=()),  # the measurement states the ranks that were on each
        identity=replace(identity, arm=run.arm, round=run.round),
        asked=asked,
        exit_status=exit_status,
        failure=failure,
        producer=run.producer,
        options=dict(run.options),
        command_line=shlex.split(run.command),
    )
    if not record.place.nodes:
        record = replace(record, place=replace(record.place, nodes=place.nodes))
    record = replace(record, storage=_with_facts(record.storage, stage), canary=tuple(canary))
    memory_bytes = _node_memory(stage)
    if (
        memory_bytes
        and record.measurement is not None
        and (measured := producers.measured(record))
    ):
        served = list(cache.may_serve(measured, memory_bytes))
        record = replace(record, cache={"node_memory_bytes": memory_bytes, "may_serve": served})
    if lock := spack.lock(place.environment or ""):
        sha256 = spack.keep(lock, store.session_folder(record))
        record = replace(record, software=replace(record.software, spack_lock=sha256))
    runs.write(stage / run.record, record)
    store.keep(record)
    return record


def lost(run: PlannedRun, place: Place, identity: Identity, failure: str) -> Run:
    """The record of a run of which nothing is known but that it was to be started."""
    return producers.record(
        run.measurement,
        place=place,
        identity=replace(identity, arm=run.arm, round=run.round),
        exit_status=None,
        failure=failure,
        producer=run.producer,
        options=dict(run.options),
        command_line=shlex.split(run.command),
        row={},
    )


def from_cache(all_runs: Iterable[Run]) -> list[str]:
    """Texts on what the page cache may have served of runs, and the remedy."""
    named: dict[str, dict[str, None]] = {}  # by what would help
    for run in all_runs:
        served = (run.cache or {}).get("may_serve", ())
        if served and (measured := producers.measured(run)):
            for name in served:
                remedy = cache.remedies(run, measured, (name,))
                named.setdefault(remedy, {})[name] = None
    return [
        f"the page cache may have served {', '.join(names)}: {remedy}"
        for remedy, names in named.items()
    ]


def of_another_job(stage: Path, measurement: Path, scratch: str) -> Iterator[str]:
    """Where a file of a measurement, if it can be read, is older than the job of the directory
    `stage` or of another run directory. Measurements of programs that do not tell theirs state
    the `scratch` directory of the partition."""
    try:
        here = schema.read(stage / measurement, "measurement")["environment"]
        started, directory = str(here["started"]), str(here["directory"])
    except (UnderstudyError, KeyError, TypeError):
        return
    try:
        noted = read_text(stage / RUN_DIRECTORY, errors="replace")
    except OSError:
        yield f"{measurement}: the job noted no run directory, so it is of another one"
        return
    began, _, run_directory = noted.removesuffix("\n").partition("\n")
    if started < began:
        yield (
            f"{measurement}: environment.started: expected a run of this job, which began at "
            f"{began}, got {started}"
        )
    elif directory != scratch and not Path(directory).is_relative_to(run_directory):
        yield (
            f"{measurement}: environment.directory: expected {run_directory} or a directory "
            f"below, as this job has it, got {directory}"
        )


def load(path: Path) -> Run:
    """The record in a file, which is read again only if it has changed; refused if it contradicts
    the measurement in it."""
    return _loaded(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _loaded(path: Path, _changed_ns: int) -> Run:
    return producers.load(path)


def exit_status(stage: Path) -> int | None:
    """Exit status that the job itself noted at its end; None if it was killed before."""
    try:
        return int(read_text(stage / EXIT_STATUS))
    except (OSError, ValueError):
        return None


def ask_memory(check: Any) -> str:
    """Command of the job of a check that prints the memory of the node on which the job began;
    where the script does not run on a node of the job, the largest of all nodes."""
    ask = "grep ^MemTotal: /proc/meminfo"
    if check.current_partition.launcher_type.registered_name not in ON_SERVICE_NODE:
        return ask
    check.job.num_tasks = check.num_tasks  # the launcher asks the job, which is told later
    check.job.num_tasks_per_node = check.num_tasks_per_node
    launch = check.job.launcher.run_command(check.job)
    return f"{launch} {ask} | grep ^MemTotal: | sort -k 2nr | head -n 1"


def _node_memory(stage: Path) -> int | None:
    """Memory of the node on which the job began; None if it is not known."""
    try:
        name, kib, unit = read_text(stage / NODE_MEMORY).split()
        return 1024 * int(kib) if (name, unit) == ("MemTotal:", "kB") else None
    except (OSError, ValueError):
        return None


def _with_facts(storage: Storage, stage: Path) -> Storage:
    """With what understudy-storage printed before the job, and its health after it too."""
    before, after = _facts(stage / STORAGE_BEFORE), _facts(stage / STORAGE_AFTER)
    if "health" in after and after["health"] != before.get("health"):
        before["health"] = f"{before.get('health')}; after the job: {after['health']}"
    return replace(storage, **before)


def _facts(path: Path) -> dict[str, Any]:
    """Nothing if the job ended before it was written."""
    try:
        row = json.loads(read_text(path))
    except (OSError, ValueError):
        return {}
    return {key: row[key] for key in STORAGE_FACTS if key in row}

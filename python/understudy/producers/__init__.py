"""Producers: what runs in a job and is measured. A plugin directory; its listing is the registry.

A producer is one module with

    SCHEMA         name of the contract of its measurement, understudy/<kind>/<n>
    ARM            what its runs stand for in a comparison: replica, skeleton, application …
    read(path)     the measurement in a file, strictly
    parse(row, where)   the same of a JSON object that has passed `check`
    samples(measurement)   the flat table that statistics read
    check(row, where)   optional: raises an UnderstudyError for what `parse` cannot read; without
                        it the object is checked by schemas/<kind>.schema.json

`record` makes the run record of any measurement file, `load` reads records and measurements alike.
"""

import itertools
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Protocol

from understudy import __version__, studies
from understudy.contracts import long_dumps, schema
from understudy.contracts import run as runs
from understudy.contracts.measurement import Measurement
from understudy.contracts.run import (
    RECORD_FILE,
    Identity,
    Place,
    Played,
    Producer,
    Run,
    Sample,
    Software,
    Storage,
)
from understudy.errors import UnderstudyError, refuse_exit

RESULT = "understudy/result/1"  # every producer's, before each had a contract of its own
MEASUREMENT_FILE = "result.json"
KEPT_SUFFIX = ".json.gz"  # of records in the folder of a site
# What that folder has besides sessions; the last two are of earlier versions.
BESIDE = ("SHA256SUMS", "SHA256SUMS.sig", "index.sqlite", "ledger.jsonl", "ledger.sig")
SET_ASIDE = ".set-aside"  # a folder in it with records that do not count; no session is called so
STORAGE_FACTS = (
    "type",
    "source",
    "mount_point",
    "mount_options",
    "total_bytes",
    "free_bytes",
    "total_inodes",
    "free_inodes",
    "client_version",
    "server_version",
    "health",
    "default_layout",
)
FACTS = ("place", "storage", "software", "producer", "cache")  # of a record, beside its results
PLACES = ("type", "mount_point")  # where a run was, of these


class Module(Protocol):
    """A producer's module."""

    SCHEMA: str
    ARM: str
    read: Callable[[Path], Measurement]
    parse: Callable[[dict[str, Any], str], Measurement]
    samples: Callable[[Any], Iterable[Sample]]


def names() -> list[str]:
    """All producers: the modules here and in studies, without those that begin with _."""
    return sorted(_modules())


def _modules() -> dict[str, str]:
    """The full name of each producer's module."""
    return studies.plugins("producers", __name__, tuple(__path__))


def get(name: str) -> Module:
    """The producer of that name."""
    if name not in _modules():
        raise UnderstudyError(f"no producer is called {name!r}; known: {', '.join(names())}")
    full_name = _modules()[name]
    module: Any = sys.modules.get(full_name) or studies.load(full_name, f"producer {name}")
    return module  # type: ignore[no-any-return]


def of(row: dict[str, Any], where: str) -> str:
    """The name of the producer of a measurement, by the schema that it states."""
    kind = schema.kind_of(row, where)
    if row["schema"] == RESULT:
        program = row.get("program")
        kind = str(program.get("kind")) if isinstance(program, dict) else "player"
    for name in names():
        if get(name).SCHEMA.split("/")[1] == kind:
            return name
    raise UnderstudyError(
        f"{where}: schema: {row['schema']} is no measurement; known producers are "
        f"{', '.join(names())}. If it was made by a newer version, upgrade understudy"
    )


def parse(row: dict[str, Any], where: str) -> tuple[str, Measurement]:
    """The producer's name and the measurement of a JSON object, checked."""
    name = of(row, where)
    module = get(name)
    with refuse_exit(f"producer {name}"):
        getattr(module, "check", schema.check)(long_dumps.with_first_dumps(row), where)
        measurement = module.parse(row, where)
    seen: set[int] = set()
    for i, number in enumerate(r.repetition for r in measurement.repetitions):
        if number in seen:
            raise UnderstudyError(
                f"{where}: repetitions[{i}].repetition: expected a number of its own for each, "
                f"found {number} twice"
            )
        seen.add(number)
    return name, measurement


def read(path: Path) -> Measurement:
    """The measurement in a file, whichever producer wrote it."""
    return parse(schema.read(path, "measurement"), str(path))[1]


def measured(run: Run) -> Measurement | None:
    """The measurement in a record; None where the run failed."""
    if run.measurement is None:
        return None
    return parse(run.measurement, f"run {run.identity.id}")[1]


def record(
    path: Path,
    *,
    place: Place | None = None,
    identity: Identity | None = None,
    asked: dict[str, Any] | None = None,
    exit_status: int | None = 0,
    failure: str | None = None,
    producer: str = "player",
    options: dict[str, Any] | None = None,
    command_line: Sequence[str] = (),
    row: dict[str, Any] | None = None,
) -> Run:
    """The record of the run that wrote the measurement file `path`.

    What `place` and `identity` leave open (None) is taken from the measurement. A run that failed
    has a `failure`; then the file may be missing or damaged, and `producer`, `options` and
    `command_line` say what was to run. `row` is the content of the file, if it is known.
    """
    where = str(path)
    place, identity = place or Place(), identity or Identity()
    try:
        row = schema.read(path, "measurement") if row is None else row
        name, measurement = parse(row, where)
    except UnderstudyError:
        if failure is None:
            raise
        run = Run(
            identity=replace(
                identity,
                time=identity.time or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                arm=identity.arm or get(producer).ARM,
            ),
            place=place,
            storage=Storage(asked=asked or {}),
            software=Software(version=__version__),
            producer=Producer(
                name=producer,
                options=options or {},
                command_line=tuple(command_line),
                exit_status=exit_status,
                failure=failure,
            ),
            measurement=None,
            samples=(),
        )
        digest = schema.digest(runs.to_row(run))[: runs.ID_DIGITS]
        return replace(run, identity=replace(run.identity, id=identity.id or digest))
    return _of_measurement(
        name,
        measurement,
        row,
        place=place,
        identity=identity,
        asked=asked or {},
        exit_status=exit_status,
        failure=failure,
    )


def _of_measurement(
    name: str,
    measurement: Measurement,
    row: dict[str, Any],
    *,
    place: Place,
    identity: Identity,
    asked: dict[str, Any],
    exit_status: int | None = 0,
    failure: str | None = None,
) -> Run:
    """The record of a measurement by the producer of that name, with its JSON object."""
    here = measurement.environment
    module = get(name)
    return Run(
        identity=replace(
            identity,
            id=identity.id or schema.digest(row)[: runs.ID_DIGITS],
            time=identity.time or here.started,
            arm=identity.arm or module.ARM,
        ),
        place=replace(
            place,
            nodes=place.nodes or here.nodes,
            scratch=place.scratch or here.directory,
        ),
        storage=_storage(measurement, asked),
        software=Software(
            version=here.understudy_version,
            commit=here.commit,
            program_sha256=here.program_sha256,
            mpi=here.mpi,
            libraries=here.libraries,
            mpi_settings=here.mpi_settings,
        ),
        producer=Producer(
            name=name,
            workload=Played(name=measurement.workload.name, sha256=measurement.workload_sha256),
            options=measurement.options,
            command_line=here.command_line,
            exit_status=exit_status,
            failure=failure,
        ),
        measurement=row,
        samples=tuple(module.samples(measurement)),
    )


def _storage(measurement: Measurement, asked: dict[str, Any]) -> Storage:
    """Facts of the file system, and the layout that all streams have in common."""
    facts = {key: measurement.storage.get(key) for key in STORAGE_FACTS}
    streams = measurement.striping
    common = _common([s.get("asked") or {} for s in streams])
    return Storage(
        **facts,
        asked=common | asked,
        applied=_common([s["applied"] for s in streams if s.get("applied")]),
        streams=streams,
    )


def _common(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The keys that have one value in all rows, and a value at all."""
    if not rows:
        return {}
    first = {k: v for k, v in rows[0].items() if v not in (None, {}, [])}
    return {k: v for k, v in first.items() if all(row.get(k) == v for row in rows)}


def load(path: Path, row: dict[str, Any] | None = None) -> Run:
    """A record, or the record that a measurement file given by hand makes; `row` is the content
    of the file, if it is known."""
    return load_row(path, schema.read(path, "run record") if row is None else row)[0]


def read_long(path: Path) -> dict[str, Any] | None:
    """The content of a long file for `load_row`, in less time and memory: a row of a dump is made
    when it is asked for, and what is loaded of it cannot be written. None where the file is short
    or not valid."""
    return long_dumps.read(path)


def load_row(path: Path, row: dict[str, Any]) -> tuple[Run, Measurement | None]:
    """A record and its measurement, of the content of the file."""
    try:
        return _load_row(path, row)
    except UnderstudyError:
        if not long_dumps.is_within(row):
            raise
    return _load_row(path, schema.read(path, "run record"))  # which says what is wrong


def _load_row(path: Path, row: dict[str, Any]) -> tuple[Run, Measurement | None]:
    if schema.kind_of(row, str(path)) != runs.KIND:
        name, measurement = parse(row, str(path))
        run = _of_measurement(name, measurement, row, place=Place(), identity=Identity(), asked={})
        return run, measurement
    run = runs.from_row(row, str(path))
    if run.measurement is not None:
        return run, _compared(run, run.measurement, str(path))
    if run.samples:
        raise UnderstudyError(
            f"{path}: samples: expected none without a measurement, found {len(run.samples)}"
        )
    return run, None


def _compared(run: Run, row: dict[str, Any], where: str) -> Measurement:
    """The measurement in a record, which must not contradict it."""
    name, measurement = parse(row, f"{where}: measurement")
    if run.producer.name != name:
        raise UnderstudyError(
            f"{where}: producer.name: differs from the measurement's: expected {name!r}, "
            f"found {run.producer.name!r}"
        )
    here = measurement.environment
    expected, recorded = measurement.options, run.producer.options
    alike = schema.canonical(expected) == schema.canonical(recorded)
    for key in () if alike else expected.keys() & recorded.keys():
        if schema.canonical(expected[key]) != schema.canonical(recorded[key]):
            raise UnderstudyError(
                f"{where}: producer.options.{key}: differs from the measurement's: expected "
                f"{schema.canonical(expected[key])}, found {schema.canonical(recorded[key])}"
            )
    stated: dict[str, tuple[Any, Any]] = {"identity.time": (here.started, run.identity.time)}
    if run.producer.workload is not None:
        played = Played(name=measurement.workload.name, sha256=measurement.workload_sha256)
        stated |= {"producer.workload": (played, run.producer.workload)}
    if here.nodes and run.place.nodes:
        ranks = [[node.ranks for node in nodes] for nodes in (here.nodes, run.place.nodes)]
        stated |= {"place.nodes": (ranks[0], ranks[1])}
    stated |= {
        f"storage.{key}": (kept, getattr(run.storage, key))
        for key in PLACES
        if (kept := measurement.storage.get(key)) is not None
    }
    for key, (expected_value, found_value) in stated.items():
        if expected_value != found_value:
            raise UnderstudyError(
                f"{where}: {key}: differs from the measurement's: expected {expected_value}, "
                f"found {found_value}"
            )
    derived = tuple(get(name).samples(measurement))
    if derived == run.samples:
        return measurement
    derived_rows = _by_metric(derived)
    for metric, rows in _by_metric(run.samples).items():  # earlier versions had fewer metrics
        if not _same(rows, derived_rows.get(metric, [])):
            raise UnderstudyError(f"{where}: samples: differ from the measurement's: {metric}")
    return measurement


def _by_metric(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    by_metric: dict[str, list[Sample]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, []).append(sample)
    return by_metric


def _same(some: Sequence[Sample], others: Sequence[Sample]) -> bool:
    """Equal but for the rounding of sums, which differs between versions of Python."""
    return len(some) == len(others) and all(
        _named(a) == _named(b)
        and (a.value == b.value or math.isclose(a.value, b.value, rel_tol=1e-9))
        for a, b in zip(some, others, strict=True)
    )


def _named(sample: Sample) -> tuple[Any, ...]:
    """Which value of a run it is."""
    return sample[:-1]


def find(paths: Iterable[Path], empty: Sequence[Path] = ()) -> list[Path]:
    """Records and measurements named, or lying anywhere below the folders named, each once; with
    the compressed ones of `understudy.records`.

    In a folder with both, the record stands for the measurements that it holds: see `load_all`.
    `empty` are folders that are known to have none, which may be all of what is named.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            matches = sorted(
                p
                for p in path.rglob("*.json*")
                if (p.name in (RECORD_FILE, MEASUREMENT_FILE) or p.name.endswith(KEPT_SUFFIX))
                and SET_ASIDE not in p.relative_to(path).parts
                and p.is_file()
            )
            if not matches and not any(folder.is_relative_to(path.resolve()) for folder in empty):
                raise UnderstudyError(
                    f"{path}: no {RECORD_FILE} and no {MEASUREMENT_FILE} in this folder or below"
                )
        elif path.is_file():
            matches = [path] if path.name not in BESIDE else []  # as records/* names them
        else:
            raise UnderstudyError(
                f"{path}: no such file or folder; expected a run record or a folder with some"
            )
        files.update(dict.fromkeys(p.resolve() for p in matches))
    if not files and not empty:
        raise UnderstudyError("no run was named; expected run records or folders with them")
    return list(files)


def key(run: Run) -> str:
    """Equal for copies of one run, such as those in ReFrame's stage and output: one measurement is
    one run, whatever a record says of its identity."""
    return run.identity.id if run.measurement is None else schema.digest(run.measurement)


def sketch(run: Run) -> str:
    """Equal for runs with equal keys, in a tenth of the time; of others it can be equal, too."""
    return schema.digest(_sketch(run.measurement))


class _Contents:
    """Numbers of runs, equal for runs with equal keys: the keys of a thousand records would be
    texts of all their measurements."""

    def __init__(self) -> None:
        self._contents: dict[Any, list[tuple[Any, int]]] = {}  # by sketch
        self._numbers = itertools.count()

    def number(self, run: Run) -> int:
        content = run.identity.id if run.measurement is None else run.measurement
        alike = self._contents.setdefault(_sketch(content), [])
        for other, number in alike:
            if other == content:
                return number
        alike.append((content, next(self._numbers)))
        return alike[-1][1]


def _sketch(value: Any) -> Any:
    """A small part of a JSON value, equal for equal values: of a list its length and the first."""
    if type(value) is dict:
        return tuple((name, _sketch(value[name])) for name in sorted(value))
    if type(value) is list or isinstance(value, long_dumps.LongDumps):
        return len(value), _sketch(value[0]) if value else None
    return value


def _rank(run: Run) -> tuple[bool, bool]:
    """Sort key of copies, the first of which counts: a failed one, then one with a session."""
    return not run.failed, run.identity.session is None


def load_all(
    paths: Iterable[Path],
    progress: Callable[[Path], None] = lambda _: None,
    unread: Callable[[Path, UnderstudyError], None] | None = None,
) -> list[tuple[Path, Run]]:
    """Runs with their files; copies of one run (see `key`) count once, one that failed before one
    that did not, and a record takes the place of the bare measurement in it. Of runs with one
    identifier and different content, one was edited: none counts, but for failed ones.

    `unread` is told which file cannot be read and why, and the others are loaded; without it that
    is raised.
    """
    return [(path, run) for path, run, _ in load_measured(paths, progress, unread)]


def load_measured(
    paths: Iterable[Path],
    progress: Callable[[Path], None] = lambda _: None,
    unread: Callable[[Path, UnderstudyError], None] | None = None,
) -> list[tuple[Path, Run, Measurement | None]]:
    """The same with their measurements; None where a run failed."""
    loaded: dict[int, tuple[Path, Run, Measurement | None]] = {}
    facts: dict[int, dict[str, list[Any]]] = {}  # of records, by number and identifier
    contents: dict[str, set[int]] = {}
    content_numbers = _Contents()
    recorded: dict[Path, dict[str, Any] | None] = {}  # by the folder of the record
    for path in sorted(paths, key=lambda p: p.name != RECORD_FILE):
        progress(path)
        try:
            row = read_long(path) or schema.read(path, "run record")
            if path.name != RECORD_FILE and row == recorded.get(path.parent):
                continue
            run, measurement = load_row(path, row)
        except UnderstudyError as error:
            if unread is None:
                raise
            unread(path, error)
            continue
        if path.name == RECORD_FILE:
            recorded[path.parent] = run.measurement
        same = content_numbers.number(run)
        if row.get("schema") == runs.SCHEMA and run.measurement is not None:
            # One measurement with other facts beside it, such as the memory of the nodes.
            told = [row.get(key) for key in FACTS]
            first = facts.setdefault(same, {}).setdefault(run.identity.id, told)
            if first is not told and schema.canonical(first) != schema.canonical(told):
                contents.setdefault(run.identity.id, set()).add(-1)
        contents.setdefault(run.identity.id, set()).add(same)
        if same not in loaded or _rank(run) < _rank(loaded[same][1]):
            loaded[same] = (path, run, measurement)
    for same, (path, run, _) in list(loaded.items()):
        if len(contents[run.identity.id]) > 1 and not run.failed:
            different = UnderstudyError(f"{path}: {other_content(run.identity.id)}")
            if unread is None:
                raise different
            del loaded[same]
            unread(path, different)
    return sorted(loaded.values(), key=lambda entry: entry[0])


def other_content(run_id: str) -> str:
    """Why records of one run with different content do not count."""
    return f"another record of run {run_id} has other content; neither counts"

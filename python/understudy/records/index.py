"""The index of records: a database that says which runs there are, and what they measured.

It is made of the records alone and can be removed at any time. That of a folder lies in it
(index.sqlite) and is brought up to date when it is opened; where it cannot be written, or is
damaged, one in memory takes its place.
"""

import gc
import hashlib
import json
import multiprocessing
import os
import re
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from understudy import producers
from understudy.contracts import run as runs
from understudy.contracts import schema
from understudy.contracts.run import Condition, Run
from understudy.errors import UnderstudyError
from understudy.records import listing, store

FILE = store.INDEX
VERSION = 6
TIME = "%Y-%m-%dT%H:%M:%SZ"  # of records
TIMES = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
MEMORY = ":memory:"
WAIT_S = 20.0  # for another process that writes the index
BATCH = 500  # records between two commits
MANY = 64  # records that are worth other processes
CHUNK = 8  # records that a process reads at a time
MAX_WORKERS = 16
# The columns of a run, in order; docs/how-to/keep-records.md tells of each.
RUN_COLUMNS = {
    "run": "TEXT",
    "time": "TEXT",
    "session": "TEXT",
    "campaign": "TEXT",
    "tags": "TEXT",
    "case": "TEXT",
    "arm": "TEXT",
    "round": "INTEGER",
    "turn": "TEXT",
    "system": "TEXT",
    "partition": "TEXT",
    "environment": "TEXT",
    "job": "TEXT",
    "nodes": "INTEGER",
    "ranks": "INTEGER",
    "producer": "TEXT",
    "workload": "TEXT",
    "workload_sha256": "TEXT",
    "method": "TEXT",
    "condition": "TEXT",
    "failed": "INTEGER",
    "failure": "TEXT",
    "seconds": "REAL",
    "canary": "TEXT",
}
# What the records of one session have in common, or not.
SHARED = ("session", "campaign", "turn", "tags", "system", "partition")
SAMPLE_COLUMNS = {
    "metric": "TEXT",
    "unit": "TEXT",
    "better": "TEXT",
    "stream": "TEXT",
    "repetition": "INTEGER",
    "position": "INTEGER",
    "value": "REAL",
}


def _names(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def _typed(columns: dict[str, str]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in columns.items())


_CREATE = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT);
CREATE TABLE files (
  number INTEGER PRIMARY KEY, file TEXT UNIQUE, bytes INTEGER, mtime_ns INTEGER, error TEXT,
  key TEXT, sketch TEXT,
  {_typed(RUN_COLUMNS)}
);
CREATE INDEX by_time ON files (time);
CREATE INDEX by_key ON files (key, failed, session IS NULL, file);
CREATE INDEX by_run ON files (run, key);
CREATE INDEX by_sketch ON files (sketch);
CREATE TABLE samples (number INTEGER, {_typed(SAMPLE_COLUMNS)});
CREATE INDEX of_file ON samples (number);
CREATE TABLE conditions (hash TEXT PRIMARY KEY, row TEXT);
CREATE VIEW counted AS SELECT * FROM files AS a WHERE error IS NULL AND number = (
  SELECT number FROM files AS b WHERE b.key = a.key AND error IS NULL
  ORDER BY failed DESC, session IS NULL, file LIMIT 1);
CREATE VIEW different AS SELECT * FROM counted AS a WHERE failed = 0 AND EXISTS (
  SELECT 1 FROM files AS b WHERE b.run = a.run AND b.key <> a.key);
CREATE VIEW runs AS SELECT * FROM counted AS a WHERE failed = 1 OR NOT EXISTS (
  SELECT 1 FROM files AS b WHERE b.run = a.run AND b.key <> a.key);
"""
_ADD_FILE = (
    f"INSERT OR REPLACE INTO files (file, bytes, mtime_ns, error, key, sketch, "
    f"{_names(RUN_COLUMNS)}) VALUES ({', '.join('?' * (6 + len(RUN_COLUMNS)))})"
)
_ADD_SAMPLE = (
    f"INSERT INTO samples (number, {_names(SAMPLE_COLUMNS)}) "
    f"VALUES ({', '.join('?' * (1 + len(SAMPLE_COLUMNS)))})"
)
_ALIKE = """SELECT file FROM files WHERE key = sketch AND sketch IN (
  SELECT sketch FROM files WHERE error IS NULL GROUP BY sketch HAVING count(*) > 1)"""


class Index:
    """Runs and their samples. `unread` has a message for each record that does not count.

    Copies of one run count once, see `producers.key`: one that failed before one that did not, so
    that a copy cannot hide a failure, then the first that states a session. Runs with one
    identifier and different content do not count, as one was edited, unless they failed.
    """

    def __init__(self, database: Path | None = None) -> None:
        self.base = Path()
        try:
            self.connection = sqlite3.connect(database or MEMORY, timeout=WAIT_S)
            weakref.finalize(self, self.connection.close)  # of one that nobody closes
            self._prepare()
        except BaseException:
            with suppress(AttributeError):
                self.connection.close()
            raise

    def _prepare(self) -> None:
        expected = f"{VERSION} {schema.digest(schema.current(runs.KIND))}"
        tables = {name for (name,) in self.connection.execute("SELECT name FROM sqlite_master")}
        version = None
        if "meta" in tables:
            row = self.connection.execute("SELECT value FROM meta").fetchone()
            version = row and row[0]
        if version == expected:
            return
        if tables and "meta" not in tables:
            raise sqlite3.OperationalError("it is the database of something else")
        with self.connection:
            for view in ("runs", "different", "counted"):
                self.connection.execute(f"DROP VIEW IF EXISTS {view}")
            for table in ("files", "samples", "conditions", "meta"):
                self.connection.execute(f"DROP TABLE IF EXISTS {table}")
        self.connection.executescript(_CREATE)
        with self.connection:
            self.connection.execute("INSERT INTO meta VALUES ('version', ?)", (expected,))

    def close(self) -> None:
        self.connection.close()

    def update(self, folder: Path, progress: Callable[[str], None] = lambda _: None) -> None:
        """Read what is new or has changed in a folder of `store`, and forget what is gone."""
        self.base = folder
        indexed_states = {
            file: (size, time)
            for file, size, time in self.connection.execute(
                "SELECT file, bytes, mtime_ns FROM files"
            )
        }
        disk_states = {
            name: (stat.st_size, stat.st_mtime_ns) for name, stat in listing.files(folder)
        }
        gone = indexed_states.keys() - disk_states.keys()
        new = [name for name, state in disk_states.items() if indexed_states.get(name) != state]
        if not gone and not new:
            return
        with self.connection:
            for name in gone:
                self._forget(name)
        read = _read_all([folder / name for name in new])
        for begin in range(0, len(new), BATCH):
            with self.connection:
                for name in new[begin : begin + BATCH]:
                    progress(name)
                    self._forget(name)
                    self._add(next(read), name, disk_states[name])
                self._tell_apart()

    def add(
        self, paths: Iterable[Path], progress: Callable[[Path], None] = lambda _: None
    ) -> None:
        """Read records and measurements of any place; each file counts once."""
        with self.connection:
            for path in paths:
                if not _is_utf8(path):
                    raise UnderstudyError(f"{path}: expected a path in UTF-8")
                progress(path)
                self._forget(str(path))
                self._add(_read(path), str(path), (0, 0))
            self._tell_apart()

    def _tell_apart(self) -> None:
        """Give records of equal sketches their keys, which take long: most sketches are of one. It
        belongs to the transaction that adds them: to others, records of one key are copies."""
        for (file,) in self.connection.execute(_ALIKE).fetchall():
            try:
                key = producers.key(self.load(file))
            except UnderstudyError:  # has changed since, and is read again next time
                continue
            self.connection.execute("UPDATE files SET key = ? WHERE file = ?", (key, file))

    def _forget(self, name: str) -> None:
        self.connection.execute(
            "DELETE FROM samples WHERE number = (SELECT number FROM files WHERE file = ?)", (name,)
        )
        self.connection.execute("DELETE FROM files WHERE file = ?", (name,))

    def _add(self, read: "_Rows", name: str, state: tuple[int, int]) -> None:
        nothing = [None] * len(RUN_COLUMNS)
        row = (name, *state, read.error, read.key, read.sketch, *(read.run or nothing))
        try:
            added = self.connection.execute(_ADD_FILE, row)
        except OverflowError:
            reason = f"{read.path}: identity.round and place.nodes.ranks: expected less than 2^63"
            self.connection.execute(_ADD_FILE, (name, *state, reason, None, None, *nothing))
            return
        if read.error is None:
            self.connection.execute(
                "INSERT OR IGNORE INTO conditions VALUES (?, ?)", read.condition
            )
            self.connection.executemany(
                _ADD_SAMPLE, [(added.lastrowid, *sample) for sample in read.samples]
            )

    @property
    def unread(self) -> list[str]:
        return list(self.unread_files().values())

    def unread_files(self, where: str = "1", values: Sequence[Any] = ()) -> dict[str, str]:
        """Messages by file, of those that `where` would select for all that is known.

        Of a record that cannot be read, the session is known by its folder; what all other records
        there share, such as the system and the campaign, is taken for its own. Where there are no
        others, it is of a run that began before the file was written. What is not known excludes
        nothing.
        """
        messages = {}
        columns = ", ".join(f'? AS "{name}"' for name in RUN_COLUMNS)
        sql = f"SELECT 1 FROM (SELECT {columns}) WHERE ({where}) IS NOT FALSE"
        for file, mtime_ns, error in self.connection.execute(
            "SELECT file, mtime_ns, error FROM files WHERE error IS NOT NULL ORDER BY file"
        ).fetchall():
            folder_values, times = self._known_of(file)
            if not times and mtime_ns:
                last = datetime.fromtimestamp(mtime_ns / 1e9, timezone.utc).strftime(TIME)
                starts = (v for v in values if TIMES.fullmatch(str(v)) and str(v) <= last)
                times = {last, *starts}
            for time in times or {None}:
                row = folder_values | {"time": time}
                shared = [row.get(name) for name in RUN_COLUMNS]
                if self.connection.execute(sql, (*shared, *values)).fetchone():
                    messages[file] = error
        sql = f"SELECT file, run FROM different WHERE {where} ORDER BY file"
        for file, run in self.connection.execute(sql, values):
            messages[file] = f"{self.base / file}: {producers.other_content(run)}"
        return messages

    def _known_of(self, file: str) -> tuple[dict[str, Any], set[str | None]]:
        """Columns of a run of which the record cannot be read, and the times of others of its
        session."""
        folder, slash, _ = file.partition("/")
        if not slash or file.startswith("/") or folder == store.NO_SESSION:
            return {}, set()
        rows = self.connection.execute(
            f"SELECT {_names(SHARED)}, time FROM files WHERE error IS NULL "
            "AND substr(file, 1, ?) = ?",
            (len(folder) + 1, f"{folder}/"),
        ).fetchall()
        if not rows:
            return {} if "~" in folder else {"session": folder}, set()
        *columns, times = zip(*rows, strict=True)
        shared = zip(SHARED, map(set, columns), strict=True)
        return {name: every.pop() for name, every in shared if len(every) == 1}, set(times)

    def condition(self, digest: str) -> Condition:
        """The condition of a hash that is in the column `condition`."""
        row = self.connection.execute("SELECT row FROM conditions WHERE hash = ?", (digest,))
        condition: Condition = json.loads(row.fetchone()[0])
        return condition

    def select(
        self,
        columns: Sequence[str],
        where: str = "1",
        values: Sequence[Any] = (),
        copies: bool = False,
    ) -> Iterator[Any]:
        """Rows of runs, by time; `where` is SQL of ours on their columns, with ? for `values`.
        `copies`: all files of a run instead of the one that counts."""
        of = "(SELECT * FROM files WHERE error IS NULL)" if copies else "runs"
        yield from self.connection.execute(
            f"SELECT {_names(columns)} FROM {of} WHERE {where} ORDER BY time, number", values
        )

    def keys_of(self, sketches: Iterable[str]) -> dict[str, str]:
        """By the identifiers of the runs that have these sketches or keys their keys, which are
        equal for copies of one run, in this index or another."""
        keys = {}
        for sketch in sketches:
            where = "sketch = ? OR sketch IS NULL AND key = ?"
            for run, file in self.select(["run", "file"], where, (sketch, sketch)):
                keys[run] = producers.key(self.load(file))
        return keys

    def load(self, file: str) -> Run:
        """The whole record of a run, by its column `file`."""
        return producers.load(self.base / file)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """Rows of the index for one file; `error`: why it has none. `condition`: hash and text. `key`
    is the sketch until another record has it, too."""

    path: Path
    error: str | None = None
    key: str | None = None
    sketch: str | None = None
    run: tuple[Any, ...] = ()
    condition: tuple[str, str] = ("", "")
    samples: tuple[tuple[Any, ...], ...] = ()


def _read(path: Path) -> _Rows:
    try:
        run = producers.load(path)
    except UnderstudyError as error:
        return _Rows(path=path, error=str(error))
    text = schema.canonical(runs.condition(run))
    digest = hashlib.sha256(text.encode()).hexdigest()
    sketch = None if run.measurement is None else producers.sketch(run)
    return _Rows(
        path=path,
        key=sketch or producers.key(run),
        sketch=sketch,
        run=_run_row(run, digest),
        condition=(digest, text),
        samples=tuple(_sample_rows(run)),
    )


def _read_all(paths: Sequence[Path]) -> Iterator[_Rows]:
    """In the order of the paths; of many files, by as many processes as there are processors.
    Where other threads run, a fork is not safe, and this process reads them."""
    workers = min(MAX_WORKERS, len(os.sched_getaffinity(0)))
    if len(paths) < MANY or workers < 2 or threading.active_count() > 1:
        yield from map(_read, paths)
        return
    context = multiprocessing.get_context("fork")
    # What is read is freed without a search for garbage.
    with ProcessPoolExecutor(workers, mp_context=context, initializer=gc.disable) as pool:
        for begin in range(0, len(paths), BATCH):  # no more in memory than the index takes at once
            yield from pool.map(_read, paths[begin : begin + BATCH], chunksize=CHUNK)


def _run_row(run: Run, condition: str) -> tuple[Any, ...]:
    identity, place, producer, failure = run.identity, run.place, run.producer, run.fault
    return (
        identity.id,
        identity.time,
        identity.session,
        identity.campaign,
        json.dumps(identity.tags, ensure_ascii=False),
        identity.case,
        identity.arm,
        identity.round,
        identity.turn,
        place.system,
        place.partition,
        place.environment,
        place.job_id,
        len(place.nodes) or None,
        _ranks(run),
        producer.name,
        producer.workload and producer.workload.name,
        producer.workload and producer.workload.sha256,
        _text(producer.options.get("method")),
        condition,
        int(failure is not None),
        failure,
        _seconds(run),
        json.dumps(run.canary, ensure_ascii=False) if run.canary else None,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _ranks(run: Run) -> int | None:
    node_ranks = [node.ranks for node in run.place.nodes if node.ranks is not None]
    if node_ranks and len(node_ranks) == len(run.place.nodes):
        return sum(node_ranks)
    ranks = (run.measurement or {}).get("environment", {}).get("ranks")
    return None if ranks is None else int(ranks)


def _seconds(run: Run) -> float | None:
    """How long the repetitions took together; None where the producer does not tell."""
    elapsed_s = [sample.value for sample in run.samples if sample.metric == "elapsed_s"]
    return sum(elapsed_s) if elapsed_s else None


def _sample_rows(run: Run) -> Iterator[tuple[Any, ...]]:
    """With the position among the values of one metric, stream and repetition: the dump."""
    seen: dict[tuple[str, str | None, int | None], int] = {}
    for s in run.samples:
        key = (s.metric, s.stream, s.repetition)
        seen[key] = position = seen.get(key, -1) + 1
        yield (s.metric, s.unit, s.better, s.stream, s.repetition, position, s.value)


def _is_utf8(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def of_folder(
    folder: Path | None = None, progress: Callable[[str], None] = lambda _: None
) -> Index:
    """The index of a folder of records, by default that of the site, up to date."""
    folder = store.folder() if folder is None else folder
    if not folder.is_dir():
        raise UnderstudyError(
            f"{folder}: no records; run checks, or understudy records import, first"
        )
    path = folder / FILE
    if not path.is_symlink():
        for attempt in range(2):
            try:
                index = Index(path)
                index.update(folder, progress)
                return index
            except sqlite3.OperationalError:  # read-only, locked, or a file system without locks
                break
            except sqlite3.DatabaseError:  # damaged: it is made again
                if attempt == 0 and not _moved_aside(path):
                    break
    index = Index()
    index.update(folder, progress)
    return index


def _moved_aside(path: Path) -> bool:
    """A damaged index is kept beside as index.sqlite.damaged, where there is none yet."""
    aside = path.with_name(f"{path.name}.damaged")
    if aside.exists() or aside.is_symlink():
        return False
    try:
        path.rename(aside)
    except OSError:
        return False
    return True


def of_files(paths: Iterable[Path]) -> Index:
    """An index in memory of records and measurements named, or in folders named."""
    index = Index()
    index.add(producers.find(paths))
    return index

"""From Darshan records to accesses: which module speaks for a file, and what its counters mean.

A file is seen by several modules at once. The application's bytes are those of the highest that
knows it: H5D, else MPI-IO, else POSIX and STDIO together; the size on storage is the largest
offset written plus one. Every rule that changes or drops a record is counted in `Remarks`.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.calls import BINS, HISTOGRAM
from understudy.darshanlog import Log
from understudy.series import ACCESS, ALL_RANKS, MAX_FIELDS, METHODS, NAMELESS, Rows, Templates
from understudy.transfers import MAX_TRANSFER, of_average, sizes_of

FILES_AT_ONCE = 16_384  # files put together in memory at a time
MAX_PARTS = 256
ROWS_AT_ONCE = 16_384  # rows held before they go to a temporary file
MAX_HINTS = 10_000
MOST_CALLS = (1 << 31) - 1  # of one record

_JUNK = re.compile(
    rb"\.locktest\.\d+$|_cid-.*\.sm$|^<STD(IN|OUT|ERR)>$|^(/dev(?!/shm/)|/proc|/sys|/etc|/usr/lib|/lib)/|\.shfp\.\d+$"
)
JUNK = -1

NAME = np.dtype([("file", "u8"), ("template", "i4"), ("numbers", "i8", (MAX_FIELDS,))])

_SIZED = (("calls", "i4", (len(BINS),)), ("sizes", "f4", (len(BINS),)), ("collectives", "i4"))

# One rank's (or all ranks') use of one file in one direction, as one module saw it.
TOUCH = np.dtype(
    [
        ("file", "u8"), ("rank", "i4"), ("write", "?"), ("bytes", "i8"), ("top", "i8"),
        ("start_s", "f8"), ("end_s", "f8"), ("transfer", "i8"), ("collective", "?"),
        ("syncs", "i8"), ("even", "?"), ("opens", "i8"), ("count", "i8"), ("call_bytes", "i8"),
        ("opened_s", "f8"), ("closed_s", "f8"), ("busy_s", "f8"),
        ("by_handle", "?"), ("mended", "?"), *_SIZED,
    ]
)  # fmt: skip

# The same of one HDF5 dataset; points: its elements when it was opened last.
DATASET = np.dtype(
    [
        ("file", "u8"), ("record", "u8"), ("rank", "i4"), ("write", "?"), ("bytes", "i8"),
        ("element", "i2"), ("points", "i8"), ("start_s", "f8"), ("end_s", "f8"),
        ("transfer", "i8"), ("collective", "?"), ("even", "?"), *_SIZED,
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hint:
    """How many states a file that stays open may hold, and which counter says so."""

    states: int
    counter: str


@dataclass(slots=True)
class Remarks:
    """How often each rule was applied; becomes the notes of the descriptor."""

    count: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, rule: str, count: int = 1, size: int = 0) -> None:
        if count:
            self.count[rule] += count
            self.bytes[rule] += size


class _Spill:
    """Rows sorted into parts by their file, in memory and, where they are many, on disk."""

    def __init__(self, dtype: Any, parts: int) -> None:
        self._dtype, self._parts = np.dtype(dtype), parts
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._held: list[Rows] = []
        self._edges: list[list[int]] = []  # per write: the row in the file where each part begins

    def add(self, rows: Rows) -> None:
        self._held.append(rows)
        if sum(map(len, self._held)) >= ROWS_AT_ONCE:
            rows = np.concatenate(self._held)
            parts = self._part_of(rows)
            order = np.argsort(parts, kind="stable")
            begin = self._file.tell() // self._dtype.itemsize
            edges = np.searchsorted(parts[order], np.arange(self._parts + 1))
            self._edges.append((begin + edges).tolist())
            self._file.write(rows[order].tobytes())
            self._held = []

    def part(self, part: int) -> Rows:
        """All rows of one part, in the order in which they came."""
        found = [np.empty(0, self._dtype)]
        size = self._dtype.itemsize
        for edges in self._edges:
            self._file.seek(edges[part] * size)
            data = self._file.read((edges[part + 1] - edges[part]) * size)
            found.append(np.frombuffer(data, self._dtype))
        self._file.seek(0, 2)
        found += [rows[self._part_of(rows) == part] for rows in self._held]
        return np.concatenate(found)

    def _part_of(self, rows: Rows) -> npt.NDArray[np.uint64]:
        part: npt.NDArray[np.uint64] = rows["file"] % np.uint64(self._parts)
        return part

    def close(self) -> None:
        self._file.close()


class Accesses:
    """The accesses of a log as blocks of rows; memory is bounded whatever the number of files.

    Records and names of a log come in any order, so they are first sorted into parts by file.
    """

    def __init__(self, log: Log, ranks: int, tick: Callable[[], None] = lambda: None) -> None:
        self.log = log
        self.ranks = ranks
        self.templates = Templates()
        self.remarks = Remarks()
        self.hints: dict[int, Hint] = {}
        self.module_names: dict[int, bytes] = {}  # heatmaps: record id -> its module's name
        # Darshan 3.0.0 to 3.1.0, which wrote this version, took wrong starts of MPI-IO writes.
        self.wrong_starts = "MPI-IO" in log.modules and log.modules["MPI-IO"].version == 1
        self._tick = tick
        self._mounts = {b"", *(m.path.rstrip("/").encode(*_AS_READ) for m in log.mounts)}
        files = sum(len(ids) for ids, _ in log.names())
        self._parts = min(MAX_PARTS, max(1, -(-files // FILES_AT_ONCE)))
        self._rows = _Spill(ACCESS, self._parts)
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def blocks(self) -> Iterator[Rows]:
        """The rows, all of a file in one block; can be called again."""
        return (self._rows.part(part) for part in range(self._parts))

    def close(self) -> None:
        """Remove the temporary file."""
        self._rows.close()

    def _read(self) -> None:
        spills = {name: _Spill(dtype, self._parts) for name, dtype in _SPILLED.items()}
        try:
            for ids, texts in self.log.names():
                spills["names"].add(self._names(ids, texts))
            for block in self._records("H5F"):
                rows = np.zeros(len(block), FLUSH)
                for column, counter in zip(FLUSH.names or (), _FLUSH_COUNTERS, strict=True):
                    rows[column] = block[counter]
                spills["H5F"].add(rows[rows["flushes"] > 0])
            files = self._files_of_datasets()
            for block in self._records("H5D"):
                spills["H5D"].add(_datasets(block, self.ranks, files))
            for module, columns in _COLUMNS.items():
                for block in self._records(module):
                    for touches in columns(block, self.ranks):
                        if module == "MPI-IO" and self.wrong_starts:
                            late = touches["write"] & (touches["opened_s"] > 0)
                            touches["start_s"][late] = touches["opened_s"][late]
                        spills[module].add(touches[touches["write"] | (touches["bytes"] != 0)])
            for part in range(self._parts):
                self._rows.add(self._part({n: s.part(part) for n, s in spills.items()}))
        finally:
            for spill in spills.values():
                spill.close()

    def _records(self, module: str) -> Iterator[Any]:
        found = self.log.modules.get(module)
        if found is not None and found.supported:
            for block in self.log.records(module):
                self._tick()
                yield block

    def _names(self, ids: npt.NDArray[np.uint64], texts: list[bytes]) -> Rows:
        """Template and numbers of each name; the template JUNK where MPI or the system owns it."""
        rows = np.zeros(len(ids), NAME)
        rows["file"] = ids
        for n, name in enumerate(texts):
            folder, _, last = name.rpartition(b"/")
            if name.startswith(b"heatmap:"):
                self.module_names[int(ids[n])] = name[8:]
            elif _JUNK.search(name):
                rows["template"][n] = JUNK
            elif not (last.isdigit() and folder.rstrip(b"/") in self._mounts):  # obfuscated
                rows["template"][n], numbers = self.templates.split(name)
                rows["numbers"][n, : len(numbers)] = numbers
        return rows[[bool(name) for name in texts]]

    # -- which module speaks for a file -------------------------------------------------------

    def _part(self, found: dict[str, Rows]) -> Rows:
        """The accesses of the files of one part."""
        names = found["names"][np.argsort(found["names"]["file"], kind="stable")]
        junk = names["file"][names["template"] == JUNK]
        for module in _COLUMNS:
            touches = found[module]
            dropped = np.isin(touches["file"], junk)
            self.remarks.add("junk", len(np.unique(touches["file"][dropped])))
            found[module] = touches[~dropped]
        rows = self._combine(found)
        named, place = _lookup(names["file"], rows["file"])
        rows["template"][named] = self.templates.telling()[names["template"][place[named]]]
        rows["numbers"][named] = names["numbers"][place[named]]
        rows["numbers"][rows["template"] == NAMELESS] = 0
        return rows

    def _combine(self, found: dict[str, Rows]) -> Rows:
        posix, mpiio, stdio = (found[m] for m in _COLUMNS)
        posix = self._undo_streams(posix, stdio)
        extents = _Extents(posix, stdio)
        rows = [_dataset_rows(found["H5D"], found["H5F"]["file"])]
        # What a lower module reads of a file that a higher one only writes (data sieving,
        # metadata) is the library's doing, so a file is spoken for in both directions.
        mpiio = mpiio[~np.isin(mpiio["file"], rows[0]["file"])]
        rows += self._mpiio_rows(mpiio, posix, stdio, extents)
        spoken = np.concatenate([*(r["file"] for r in rows), mpiio["file"]])
        for method, plain in (("posix", posix), ("stdio", stdio)):
            plain = plain[(plain["bytes"] > 0) & ~np.isin(plain["file"], spoken)]
            rows.append(self._rows_of(plain, method))
        self._note_flushes(found["H5F"])
        self._note_growth(found["H5D"])
        self._note_states(mpiio, posix, stdio)
        merged = np.concatenate(rows)
        written = np.flatnonzero(merged["write"])
        files, first = np.unique(merged["file"][written], return_index=True)
        merged["extent"][written[first]] = extents.of(files)
        return merged

    def _undo_streams(self, posix: Rows, stdio: Rows) -> Rows:
        """Undo two errors in records of files used through a stream whose buffer write() empties:
        Darshan books a write on a descriptor that fclose() had closed to the file that had it
        before, and counts on upwards when such a file is opened again and truncated."""
        twins = stdio[(stdio["bytes"] == 0) & stdio["write"] & (stdio["opens"] > 0)]
        if not len(twins):
            return posix
        posix = posix.copy()
        row_of = {
            (int(posix["file"][n]), int(posix["rank"][n])): n
            for n in np.flatnonzero(posix["write"] & posix["by_handle"]).tolist()
        }
        twin_of = {(int(t["file"]), int(t["rank"])): t for t in twins}
        both = [(n, twin_of[key]) for key, n in row_of.items() if key in twin_of]
        for n, twin in both:
            if posix["bytes"][n] > 0 and 0 < twin["closed_s"] < posix["start_s"][n]:
                self._move_stale(posix, n, twins, row_of)
        for n, twin in both:
            row, times = posix[n], int(twin["opens"])
            once = int(row["call_bytes"])
            if row["count"] == times > 1 and once * times == row["bytes"] == row["top"]:
                self.remarks.add("reopened", 1, int(row["bytes"]) - once)
                row["bytes"] = row["top"] = once
                row["mended"] = True
        return posix

    def _move_stale(
        self, posix: Rows, n: int, twins: Rows, row_of: dict[tuple[int, int], int]
    ) -> None:
        """Give a write after the close of its file to the stream that was open at that time."""
        row = posix[n]
        open_then = twins[
            (twins["rank"] == row["rank"])
            & (twins["opened_s"] <= row["start_s"])
            & (twins["closed_s"] >= row["end_s"])
        ]
        size = int(row["bytes"])
        order = np.argsort(open_then["closed_s"] - open_then["opened_s"])
        for twin in open_then[order]:
            home = row_of.get((int(twin["file"]), int(twin["rank"])))
            if home is not None and home != n:
                target = posix[home]
                both = target["calls"] + row["calls"]
                moved = target["calls"] * target["sizes"] + row["calls"] * row["sizes"]
                target["calls"], target["sizes"] = both, moved / np.maximum(both, 1)
                if target["count"] == 0:
                    for name in ("start_s", "end_s", "call_bytes", "transfer"):
                        target[name] = row[name]
                elif target["call_bytes"] != size:
                    target["call_bytes"] = 0
                target["mended"] = True
                for name in ("bytes", "top", "count"):
                    target[name] += size if name != "count" else row["count"]
                self.remarks.add("moved", 1, size)
                break
        else:
            self.remarks.add("stale", 1, size)
        row["bytes"] = row["count"] = 0
        row["calls"] = 0

    def _mpiio_rows(
        self, mpiio: Rows, posix: Rows, stdio: Rows, extents: "_Extents"
    ) -> list[Rows]:
        """Rows of files moved through MPI-IO, and of the headers that one rank put before."""
        mpiio = mpiio.copy()
        headers = [np.empty(0, TOUCH)]
        files, index = np.unique(mpiio[["file", "write"]], return_inverse=True)
        totals = np.zeros(len(files), np.int64)
        np.add.at(totals, index.ravel(), mpiio["bytes"])
        sizes = np.where(files["write"], extents.of(files["file"]), 0)
        negative = np.unique(index.ravel()[mpiio["bytes"] < 0])
        odd = np.union1d(negative, np.flatnonzero((sizes > 0) & (sizes != totals)))
        for n in odd.tolist():
            record, write, size = files["file"][n], files["write"][n], int(sizes[n])
            rows = np.flatnonzero(index.ravel() == n)
            mpiio["mended"][rows] = n in negative or totals[n] > size
            if n in negative:
                below = posix[(posix["file"] == record) & (posix["write"] == write)]
                moved = int(below["bytes"].sum())
                mpiio["bytes"][rows] = 0
                mpiio["bytes"][rows[0]] = min(moved, size) if size else moved
                mpiio["transfer"][rows] = below["transfer"].max(initial=1)
                self.remarks.add("overflow")
            elif totals[n] > size:
                self.remarks.add("rewritten", 1, int(totals[n]) - size)
                mpiio["bytes"][rows] = mpiio["bytes"][rows] * size // totals[n]
                mpiio["bytes"][rows[0]] += size - mpiio["bytes"][rows].sum()
            else:
                head = stdio[(stdio["file"] == record) & stdio["write"] & (stdio["bytes"] > 0)][:1]
                head = head.copy()
                head["bytes"] = head["top"] = size - totals[n]
                head["mended"] = True
                headers.append(head)
        head = np.concatenate(headers)
        head["collective"] = False
        self.remarks.add("header", len(head), int(head["bytes"].sum()))
        body = self._rows_of(mpiio[mpiio["bytes"] > 0], "mpiio")
        body["part"] = np.isin(body["file"], head["file"])
        return [self._rows_of(head, "mpiio"), body]

    def _rows_of(self, touches: Rows, method: str) -> Rows:
        rows = np.zeros(len(touches), ACCESS)
        rows["file"] = touches["file"]
        rows["method"] = METHODS.index(method)
        rows["element"] = 1
        for name in ("rank", "write", "start_s", "end_s", "transfer", "collective", "even",
                     "mended", "calls", "sizes", "collectives"):  # fmt: skip
            rows[name] = touches[name]
        rows["synced"] = (touches["syncs"] > 0) & (method != "stdio")  # fflush is no fsync
        size = touches["bytes"]
        if method in ("posix", "stdio"):
            beyond = touches["write"] & (touches["top"] > 0) & (size > touches["top"])
            more = (size - touches["top"])[beyond]
            self.remarks.add("rewritten", len(more), int(more.sum()))
            size = np.where(beyond, touches["top"], size)
            rows["mended"] |= beyond
        rows["bytes"] = size
        return rows

    # -- how many states a file may hold, the most telling counter first ----------------------

    def _note_flushes(self, files: Rows) -> None:
        for row in files:
            states = int(row["flushes"]) // max(1, int(row["opens"]))
            self._hint(int(row["file"]), states, "H5F_FLUSHES / H5F_OPENS")

    def _note_growth(self, datasets: Rows) -> None:
        """Datasets that all took the same multiple of their first shape."""
        grown = datasets[datasets["write"] & (datasets["points"] > 1)]
        times = grown["bytes"] // (grown["points"] * grown["element"])
        how = "H5D_BYTES_WRITTEN / (H5D_DATASPACE_NPOINTS x H5D_DATATYPE_SIZE)"
        for file in np.unique(grown["file"][times > 1]):
            seen = np.unique(times[grown["file"] == file])
            if len(seen) == 1:
                self._hint(int(file), int(seen[0]), how)

    def _note_states(self, mpiio: Rows, posix: Rows, stdio: Rows) -> None:
        for touches, syncs in (
            (mpiio, "MPIIO_SYNCS"),
            (stdio, "STDIO_FLUSHES"),
            (posix, "POSIX_FSYNCS + POSIX_FDSYNCS"),
        ):
            each = np.where(touches["rank"] == ALL_RANKS, self.ranks, 1)
            # more time in calls than between them: one long dump, not states
            apart = touches["busy_s"] <= 0.5 * each * (touches["end_s"] - touches["start_s"])
            mine = touches["write"] & (touches["bytes"] > 0) & apart
            for column, counter, fit in (
                ("syncs", syncs, mine),
                ("count", "MPIIO_COLL_WRITES", mine & touches["collective"]),
            ):
                states, rest = np.divmod(touches[column], each)
                for n in np.flatnonzero(fit & (states > 1) & (rest == 0)).tolist():
                    self._hint(int(touches["file"][n]), int(states[n]), f"{counter} per rank")

    def _hint(self, file: int, states: int, counter: str) -> None:
        if states >= 2 and (file in self.hints or len(self.hints) < MAX_HINTS):
            self.hints.setdefault(file, Hint(states, counter))

    # -- HDF5 datasets of old logs, which do not say what file they are in --------------------

    def _files_of_datasets(self) -> dict[int, int]:
        """File record by dataset record, found by the names."""
        if "H5D" not in self.log.modules or self.log.modules["H5D"].version > 1:
            return {}
        wanted = {int(n) for block in self._records("H5D") for n in block["id"]}
        prefixes: dict[int, list[bytes]] = {}  # what may be the file's name, the longest first
        for ids, texts in self.log.names():
            for record, text in zip(ids.tolist(), texts, strict=True):
                if record in wanted:
                    ends = [n for n, byte in enumerate(text) if byte == ord(":")]
                    prefixes.setdefault(record, [text[:n] for n in reversed(ends)])
        names = {prefix for some in prefixes.values() for prefix in some}
        files: dict[bytes, int] = {}
        for ids, texts in self.log.names():
            for record, text in zip(ids.tolist(), texts, strict=True):
                if text in names:
                    files.setdefault(text, record)
        return {
            record: next((files[name] for name in some if name in files), record)
            for record, some in prefixes.items()
        }


def _lookup(
    keys: npt.NDArray[np.uint64], wanted: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Which of `wanted` are among the sorted `keys`, and where."""
    if not len(keys):
        return np.zeros(len(wanted), np.bool_), np.zeros(len(wanted), np.intp)
    place = np.searchsorted(keys, wanted)
    place[place == len(keys)] = 0
    return keys[place] == wanted, place


class _Extents:
    """Size on storage of each written file: the largest offset written, plus one."""

    def __init__(self, posix: Rows, stdio: Rows) -> None:
        both = np.concatenate([t[t["write"] & (t["bytes"] > 0)] for t in (posix, stdio)])
        self._ids, index = np.unique(both["file"], return_inverse=True)
        self._sizes = np.zeros(len(self._ids), np.int64)
        np.maximum.at(self._sizes, index.ravel(), both["top"])

    def of(self, files: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
        """Bytes of each file, 0 where unknown."""
        known, place = _lookup(self._ids, files)
        sizes = np.zeros(len(files), np.int64)
        sizes[known] = self._sizes[place[known]]
        return sizes


# -- counters -------------------------------------------------------------------------------------


def _posix(block: Any, ranks: int) -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "POSIX", write, ranks)
        _size(touch, block, "POSIX", "WRITE" if write else "READ", touch["count"])
        touch["syncs"] = np.maximum(block["POSIX_FSYNCS"], 0) + np.maximum(
            block["POSIX_FDSYNCS"], 0
        )
        touch["opens"] = block["POSIX_OPENS"]
        touch["by_handle"] = (block["POSIX_FILENOS"] > 0) & (
            block["POSIX_FILENOS"] == block["POSIX_OPENS"]
        )
        touches.append(_spread(touch, block, "POSIX", ranks))
    return touches


def _mpiio(block: Any, ranks: int) -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "MPIIO", write, ranks)
        word = "WRITES" if write else "READS"
        kinds = [block[f"MPIIO_{k}_{word}"] for k in ("COLL", "INDEP", "SPLIT", "NB")]
        touch["collective"] = (kinds[0] > 0) | (kinds[2] > 0)
        every = sum(np.maximum(k, 0) for k in kinds)
        touch["collectives"] = np.maximum(kinds[0], 0) + np.maximum(kinds[2], 0)
        touch["count"] = np.where(kinds[0] > 0, kinds[0], every)
        _size(touch, block, "MPI-IO", word[:-1], every)
        touch["syncs"] = block["MPIIO_SYNCS"]
        touches.append(_spread(touch, block, "MPIIO", ranks))
    return touches


def _stdio(block: Any, ranks: int) -> list[Rows]:
    touches = []
    for write in (True, False):
        touch = _touch(block, "STDIO", write, ranks)
        _size(touch, block, "STDIO", "WRITE" if write else "READ", touch["count"])
        touch["syncs"] = block["STDIO_FLUSHES"]
        touch["opens"] = block["STDIO_OPENS"]
        touches.append(touch)
    return touches


_COLUMNS: dict[str, Callable[[Any, int], list[Rows]]] = {
    "POSIX": _posix,
    "MPI-IO": _mpiio,
    "STDIO": _stdio,
}


def _touch(block: Any, module: str, write: bool, ranks: int) -> Rows:
    """What the modules' counters have in common."""
    verb, past = ("WRITE", "WRITTEN") if write else ("READ", "READ")
    touch = np.zeros(len(block), TOUCH)
    touch["file"], touch["write"] = block["id"], write
    touch["bytes"] = block[f"{module}_BYTES_{past}"]
    names = block.dtype.names
    if f"{module}_MAX_BYTE_{past}" in names:
        touch["top"] = np.where(touch["bytes"] > 0, block[f"{module}_MAX_BYTE_{past}"] + 1, 0)
    if f"{module}_{verb}S" in names:
        touch["count"] = block[f"{module}_{verb}S"]
    start = block[f"{module}_F_{verb}_START_TIMESTAMP"]
    touch["start_s"] = np.where(start > 0, start, block[f"{module}_F_OPEN_START_TIMESTAMP"])
    touch["end_s"] = np.maximum(block[f"{module}_F_{verb}_END_TIMESTAMP"], touch["start_s"])
    touch["opened_s"] = block[f"{module}_F_OPEN_START_TIMESTAMP"]
    touch["busy_s"] = block[f"{module}_F_{verb}_TIME"]
    touch["closed_s"] = block[f"{module}_F_CLOSE_END_TIMESTAMP"]
    touch["rank"] = _who(block, module, ranks)
    variance = block[f"{module}_F_VARIANCE_RANK_BYTES"]
    touch["even"] = (touch["rank"] == ALL_RANKS) & (variance == 0)
    touch["transfer"], touch["call_bytes"] = _transfers(block, module, touch)
    return touch


def _who(block: Any, module: str, ranks: int) -> npt.NDArray[np.int64]:
    """The rank of each record; one that stands for all is the only one's that moved anything."""
    rank: npt.NDArray[np.int64] = block["rank"].astype(np.int64)
    if ranks == 1:
        return np.zeros_like(rank)
    moved = block[f"{module}_BYTES_READ"] + block[f"{module}_BYTES_WRITTEN"]
    for extreme in ("SLOWEST", "FASTEST"):
        alone = (
            (rank == ALL_RANKS) & (moved > 0) & (block[f"{module}_{extreme}_RANK_BYTES"] == moved)
        )
        rank[alone] = block[f"{module}_{extreme}_RANK"][alone]
    return rank


def _transfers(block: Any, module: str, touch: Rows) -> tuple[Any, Any]:
    """Per record: the call size that moved most bytes, and the only call size (0: several)."""
    average = touch["bytes"] // np.maximum(touch["count"], 1)
    if f"{module}_ACCESS1_ACCESS" not in block.dtype.names:
        return np.clip(average, 1, MAX_TRANSFER), np.zeros(len(block), np.int64)
    sizes = np.column_stack([block[f"{module}_ACCESS{k}_ACCESS"] for k in range(1, 5)])
    counts = np.column_stack([block[f"{module}_ACCESS{k}_COUNT"] for k in range(1, 5)])
    best = np.argmax(sizes * counts, axis=1)[:, None]
    main = np.take_along_axis(sizes, best, axis=1)[:, 0]
    only = np.where(counts[:, 0] == touch["count"], sizes[:, 0], 0)
    return np.clip(np.where(main > 0, main, average), 1, MAX_TRANSFER), only


def _size(rows: Rows, block: Any, module: str, word: str, count: Any) -> None:
    """Calls by their sizes; all alike where the histogram does not tell of as many."""
    moved = np.maximum(rows["bytes"], 0)
    rows["calls"], rows["sizes"] = of_average(np.clip(count, 0, MOST_CALLS), moved)
    if module in HISTOGRAM:
        prefix, suffix = HISTOGRAM[module]
        histogram = np.column_stack([block[f"{prefix}_SIZE_{word}{suffix}_{b}"] for b in BINS])
        values, times = (
            np.column_stack([block[f"{prefix}_ACCESS{k}_{what}"] for k in range(1, 5)])
            for what in ("ACCESS", "COUNT")
        )
        told = (histogram.sum(axis=1) == count) & (histogram >= 0).all(axis=1)
        told &= count <= MOST_CALLS
        rows["calls"][told] = histogram[told]
        rows["sizes"][told] = sizes_of(histogram[told], values[told], times[told], moved[told])


def _spread(touch: Rows, block: Any, module: str, ranks: int) -> Rows:
    """Replace records of all ranks by one per rank where the access sizes tell each rank's bytes:
    as many calls as ranks, all of the four most common sizes, that add up to the whole."""
    sizes = np.column_stack([block[f"{module}_ACCESS{k}_ACCESS"] for k in range(1, 5)])
    counts = np.column_stack([block[f"{module}_ACCESS{k}_COUNT"] for k in range(1, 5)])
    told = (
        (touch["rank"] == ALL_RANKS)
        & ~touch["even"]
        & (counts.sum(axis=1) == ranks)
        & ((sizes * counts).sum(axis=1) == touch["bytes"])
    )
    parts = [touch[~told]]
    for n in np.flatnonzero(told).tolist():
        left = [int(s) for s, c in zip(sizes[n], counts[n], strict=True) for _ in range(int(c))]
        rows = np.repeat(touch[n : n + 1], ranks)
        rows["rank"] = np.arange(ranks)
        rows["bytes"] = -1
        for extreme in ("FASTEST", "SLOWEST"):
            rank = int(block[f"{module}_{extreme}_RANK"][n])
            size = int(block[f"{module}_{extreme}_RANK_BYTES"][n])
            if 0 <= rank < ranks and rows["bytes"][rank] < 0 and size in left:
                rows["bytes"][rank] = size
                left.remove(size)
        rows["bytes"][rows["bytes"] < 0] = left
        rows["count"] = touch["count"][n] // ranks
        rows["collectives"] = touch["collectives"][n] // ranks
        rows["calls"], rows["sizes"] = of_average(np.ones(ranks, np.int64), rows["bytes"])
        rows["syncs"] = touch["syncs"][n] // ranks
        rows["busy_s"] = touch["busy_s"][n] / ranks
        parts.append(rows)
    return np.concatenate(parts)


def _datasets(block: Any, ranks: int, files: dict[int, int]) -> Rows:
    """A row per dataset record and direction that moved bytes."""
    parts = []
    for write, verb, past in ((True, "WRITE", "WRITTEN"), (False, "READ", "READ")):
        used = block[block[f"H5D_BYTES_{past}"] > 0]
        touch = np.zeros(len(used), TOUCH)
        rows = np.zeros(len(used), DATASET)
        rows["record"], rows["file"] = used["id"], used["file_rec_id"]
        for n in np.flatnonzero(rows["file"] == 0).tolist():
            rows["file"][n] = files.get(int(rows["record"][n]), int(rows["record"][n]))
        rows["write"], rows["rank"] = write, _who(used, "H5D", ranks)
        rows["bytes"] = touch["bytes"] = used[f"H5D_BYTES_{past}"]
        touch["count"] = used[f"H5D_{verb}S"]
        _size(rows, used, "H5D", verb, touch["count"])
        size = used["H5D_DATATYPE_SIZE"]
        whole = np.isin(size, (1, 2, 4, 8)) & (rows["bytes"] % np.maximum(size, 1) == 0)
        rows["element"] = np.where(whole, size, 1)
        rows["points"] = used["H5D_DATASPACE_NPOINTS"]
        start = used[f"H5D_F_{verb}_START_TIMESTAMP"]
        rows["start_s"] = np.where(start > 0, start, used["H5D_F_OPEN_START_TIMESTAMP"])
        rows["end_s"] = np.maximum(rows["start_s"], used[f"H5D_F_{verb}_END_TIMESTAMP"])
        rows["transfer"] = _transfers(used, "H5D", touch)[0]
        rows["collective"] = used["H5D_USE_MPIIO_COLLECTIVE"] > 0
        rows["collectives"] = np.where(rows["collective"], rows["calls"].sum(axis=1), 0)
        rows["even"] = (rows["rank"] == ALL_RANKS) & (used["H5D_F_VARIANCE_RANK_BYTES"] == 0)
        parts.append(rows)
    return np.concatenate(parts)


def _dataset_rows(datasets: Rows, flushed: npt.NDArray[np.uint64]) -> Rows:
    """The accesses of datasets; those of a file are its parts, in the order of time."""
    order = np.lexsort((datasets["record"], datasets["start_s"], datasets["file"]))
    datasets = datasets[order]
    rows = np.zeros(len(datasets), ACCESS)
    for name in ACCESS.names or ():
        if name in (DATASET.names or ()):
            rows[name] = datasets[name]
    rows["method"] = METHODS.index("hdf5")
    rows["synced"] = np.isin(rows["file"], flushed)
    _, first, which = np.unique(
        datasets[["file", "write", "record"]], return_index=True, return_inverse=True
    )
    new = np.zeros(len(rows), np.int64)  # in which row a dataset turns up first
    new[first] = 1
    for write in (True, False):
        mine = np.flatnonzero(rows["write"] == write)
        count = np.cumsum(new[mine])
        _, begin, back = np.unique(rows["file"][mine], return_index=True, return_inverse=True)
        part = count - count[begin][back.ravel()]
        rows["part"][mine] = part
    rows["part"] = rows["part"][first][which.ravel()]
    return rows


FLUSH = np.dtype([("file", "u8"), ("flushes", "i8"), ("opens", "i8")])
_FLUSH_COUNTERS = ("id", "H5F_FLUSHES", "H5F_OPENS")
_SPILLED = {"names": NAME, "H5F": FLUSH, "H5D": DATASET, **dict.fromkeys(_COLUMNS, TOUCH)}
_AS_READ = ("utf-8", "surrogateescape")

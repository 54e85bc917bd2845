"""From Darshan records to accesses: which module describes a file.

Several modules record the same file. The bytes of the application are those of the highest module
that has it: H5D, else MPI-IO, else POSIX and STDIO together; the size on storage is the largest
offset written plus one. Every rule that changes or drops a record is counted in `Remarks`.
"""

from collections import Counter
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.darshanlog import JoinedLog, Log, record_keys
from understudy.darshanlog.names import NameBlock
from understudy.inference.calls.interleaved_columns import Key, Strands, find
from understudy.inference.calls.operations import OPERATION, Idle, attached, operations, own
from understudy.inference.log import hdf5_layouts
from understudy.inference.log.counter_totals import Records
from understudy.inference.log.counters import (
    COLUMNS,
    DATASET,
    FLUSH,
    MAX_COUNT,
    PRESENT,
    TOUCH,
    Spread,
    dataset_rows,
    datasets,
    flushes,
    present,
)
from understudy.inference.log.external_sort import Spill
from understudy.inference.log.filtered_datasets import filtered, without_filtered
from understudy.inference.log.hdf5_layouts import Hdf5Layout
from understudy.inference.log.impossible_values import Screen
from understudy.inference.log.known_files import Extents, lookup, names_of
from understudy.inference.log.missing_datasets import missing_datasets
from understudy.inference.names.name_templates import (
    NAMELESS,
    Templates,
    alike,
    is_junk,
)
from understudy.inference.table import (
    ACCESS,
    ALL_RANKS,
    MAX_FIELDS,
    METHODS,
    IdSet,
    Once,
    Rows,
    joined,
    shared,
    sorting,
    within,
)

FILES_AT_ONCE = 16_384  # files combined in memory at a time
MAX_BUCKETS = 512
READING = 0.6  # share of the time that is for reading; the rest is for combining
OTHERS = {"MPI-IO", "STDIO", "H5F", "H5D"}
MAX_HINTS = 10_000

JUNK = -1

NAME = np.dtype([("file", "u8"), ("template", "i4"), ("numbers", "i8", (MAX_FIELDS,))], align=True)


@dataclass(frozen=True, slots=True)
class Hint:
    """The number of time steps that a file may hold, and the counter it is from; `sure`: a
    library's own notion of a time step, which counts for more than pauses; `weak`: only of calls
    that may as well be several in a time step."""

    steps: int
    counter: str
    sure: bool = False
    weak: bool = False


@dataclass(slots=True)
class Remarks:
    """How often each rule was applied; becomes the notes of the descriptor."""

    count: Counter[str] = field(default_factory=Counter)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, rule: str, count: int = 1, size: int = 0) -> None:
        if count:
            self.count[rule] += count
            self.bytes[rule] += size


class Accesses:
    """The accesses of a log as blocks of rows; memory is bounded whatever the number of files.

    Records and names of a log come in any order, so they are first sorted into buckets by file.
    """

    def __init__(
        self, log: Log, ranks: int, tick: Callable[[float], None] = lambda _: None
    ) -> None:
        self.log = log
        self.ranks = ranks
        self.templates = Templates()
        self.remarks = Remarks()
        self.screen = Screen(str(log.path), ranks, log.job.run_time_s)
        self.idle = Idle()
        self.hints: dict[int, Hint] = {}
        self.strands: dict[Key, Strands] = {}
        self.hdf5_layouts: dict[int, Hdf5Layout] = {}
        self.repeated: dict[str, list[npt.NDArray[np.uint64]]] = {}  # keys of records, by module
        self.named, self.nameless = 0, 0  # accesses to files with and without a name
        self.last_s = 0.0  # the last end of an access
        self.once: set[int] = set()  # blocks in which each file has one row
        self.junk = IdSet()  # files of MPI and the system
        self.counter_totals = Records(
            self.templates, log.files_at_most, ranks, self.kept, isinstance(log, JoinedLog)
        )
        self._of_hdf5 = IdSet()  # files that HDF5 opened
        self.module_names: dict[int, bytes] = {}  # heatmaps: record id -> its module's name
        # Darshan 3.0.0 to 3.1.0, which wrote this version, recorded wrong starts of MPI-IO writes.
        self.wrong_starts = "MPI-IO" in log.modules and log.modules["MPI-IO"].version == 1
        self._tick = tick
        self._mounts = {b"", *(m.path.rstrip("/").encode(*_AS_READ) for m in log.mounts)}
        self._alone = not OTHERS & set(log.modules)  # POSIX has no other module beside it
        self._buckets = min(MAX_BUCKETS, max(1, -(-log.files_at_most // FILES_AT_ONCE)))
        self._rows = Spill(ACCESS, self._buckets)
        try:
            self._read()
        except BaseException:
            self.close()
            raise

    def blocks(self, without: Container[int] = (), columns: Sequence[str] = ()) -> Iterator[Rows]:
        """The rows, all of a file in one block, but for some blocks; can be called again. At least
        these columns of them, if given."""
        return (self._rows.bucket(n, columns) for n in range(self._buckets) if n not in without)

    def kept(self, ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
        """Which files are the application's."""
        return ~self.junk.has(ids)

    def close(self) -> None:
        """Remove the temporary file."""
        self._rows.close()

    def _read(self) -> None:
        packed, size = filtered(self.log)
        self.remarks.add("filtered", len(packed), size)
        spills = {name: Spill(dtype, self._buckets) for name, dtype in _SPILLED.items()}
        try:
            for names in self.log.name_blocks():
                self._tick(READING * self.log.share_read)
                name_rows = self._names(names)
                spills["names"].add(name_rows)
                self.counter_totals.name(name_rows)
            for block in self._records("H5F"):
                spills["H5F"].add(flushes(block))
                self._of_hdf5.add(block["id"])
            files = self.counter_totals.file_of = self._files_of_datasets()
            spread = Spread()
            for block in self._records("H5D"):
                spills["H5D"].add(datasets(block, self.ranks, files, spread))
                spills["present"].add(present(block, files))
            for module, columns in COLUMNS.items():
                for block in self._records(module):
                    spills["operations"].add(operations(block, module, self._alone))
                    needed = self.junk.has(block["id"]) if self._alone else None
                    for touches in columns(block, self.ranks, spread, needed):
                        if module == "MPI-IO" and self.wrong_starts:
                            late = touches["write"] & (touches["opened_s"] > 0)
                            touches["start_s"][late] = touches["opened_s"][late]
                        spills[module].add(touches)
            self.remarks.add("unspread", spread.kept)
            for n in range(self._buckets):
                once = Once()
                rows = self._combined({k: s.bucket(n) for k, s in spills.items()}, once)
                if once(rows["file"]):
                    self.once.add(n)
                self.last_s = max(self.last_s, float(rows["end_s"].max(initial=0.0)))
                self._rows.add_block(n, rows)
                self.counter_totals.store(rows)
                self._tick(READING + (1 - READING) * (n + 1) / self._buckets)
        finally:
            for spill in spills.values():
                spill.close()

    def _records(self, module: str) -> Iterator[Any]:
        region = self.log.modules.get(module)
        if region is not None and region.supported:
            for block in self.log.records(module):
                self._tick(READING * self.log.share_read)
                screened = without_filtered(self.log, module, self.screen(module, block))
                self.counter_totals.add(module, screened)
                yield screened

    def _names(self, block: NameBlock) -> Rows:
        """Template and numbers of each name; JUNK if the file belongs to MPI or the system."""
        rows = np.zeros(len(block.ids), NAME)
        rows["file"] = block.ids
        for some in alike(block):
            first = some.first
            last = first.rpartition(b"/")[2]
            if first.startswith(b"heatmap:"):
                for n, name in some.one_by_one():
                    self.module_names[int(block.ids[n])] = name[8:]
            elif is_junk(first):
                rows["template"][some.which] = JUNK
            elif not last.isdigit():
                for part in self.templates.parted(some):
                    template, numbers = self.templates.split_all(part)
                    rows["template"][part.which], rows["numbers"][part.which] = template, numbers
            else:
                for n, name in some.one_by_one():
                    folder = name.rpartition(b"/")[0]
                    if not (last.isdigit() and folder.rstrip(b"/") in self._mounts):  # obfuscated
                        rows["template"][n], name_numbers = self.templates.split(name)
                        rows["numbers"][n, : len(name_numbers)] = name_numbers
        has_name = block.ends > block.starts
        named: Rows = rows if has_name.all() else rows[has_name]
        self.junk.add(named["file"][named["template"] == JUNK])
        return named

    # -- which module describes a file --------------------------------------------------------

    def _combined(self, tables: dict[str, Rows], once: Once) -> Rows:
        """The accesses to the files of one bucket."""
        self._note_repeats(tables, once)
        names = tables["names"]
        junk = names["file"][names["template"] == JUNK]
        for module in COLUMNS:
            touches = tables[module]
            if len(junk) and len(touches):
                dropped = np.isin(touches["file"], junk)
                self.remarks.add("junk", len(np.unique(touches["file"][dropped])))
                tables[module] = touches[~dropped]
        operation_rows = tables["operations"]
        operation_rows = (
            operation_rows[~np.isin(operation_rows["file"], junk)] if len(junk) else operation_rows
        )
        rows = self._combine(tables, once)
        has_name, own_names = names_of(names, rows["file"], once)
        self.nameless += int(len(has_name) - has_name.sum())
        self.named += int(has_name.sum())
        which: Any = slice(None) if has_name.all() else has_name
        rows["template"][which] = self.templates.meaningful()[own_names["template"]]
        rows["numbers"][which] = own_names["numbers"]
        nameless = rows["template"] == NAMELESS
        if nameless.any():
            rows["numbers"][nameless] = 0
        libraries = np.union1d(tables["H5D"]["file"], tables["H5F"]["file"])
        rows, idle = attached(rows, own(operation_rows, libraries), self.ranks, once)
        if len(idle):
            idle_templates = names_of(names, idle["file"], once)[1]["template"]
            self.idle.add(
                idle, {self.templates.names[n] for n in np.unique(idle_templates).tolist()}
            )
        return rows

    def _note_repeats(self, tables: dict[str, Rows], once: Once) -> None:
        """Note files of which a rank has two records, which Darshan does not write."""
        modules = {"H5D": (tables["H5D"], "record", "write")}
        operations = tables["operations"]
        for module, method in (("POSIX", "posix"), ("MPI-IO", "mpiio"), ("STDIO", "stdio")):
            of_method = operations["method"] == METHODS.index(method)
            rows = operations if of_method.all() else operations[of_method]
            modules[module] = (rows, "file", "method")
        for module, (rows, name, other) in modules.items():
            ids, ranks = rows[name], rows["rank"].astype(np.int64)
            if once(ids):
                continue
            keys = record_keys(ids, ranks)
            marked = keys + rows[other].astype(np.uint64)
            both = np.sort(marked)
            both = both[1:][both[1:] == both[:-1]]
            if len(both):
                again = within(marked, both)
                # a shared record may have become one rank's
                shared = record_keys(ids, np.full(len(ids), ALL_RANKS))
                self.repeated.setdefault(module, []).append(
                    np.unique(
                        np.concatenate(
                            [keys[again], shared[again]] if module == "H5D" else [keys[again]]
                        )
                    )
                )

    def _combine(self, tables: dict[str, Rows], once: Once) -> Rows:
        posix, mpiio, stdio = (tables[m] for m in COLUMNS)
        posix = self._undo_streams(posix, stdio)
        extents = Extents(posix, stdio, once)
        lost, files, size = missing_datasets(tables["H5D"], tables["present"], mpiio, self.ranks)
        self.remarks.add("no H5D", files, size)
        self.counter_totals.complete(lost)
        dataset_records = np.concatenate([tables["H5D"], lost])
        rows = [dataset_rows(dataset_records, tables["H5F"]["file"])]
        self._open_datasets(rows[0], posix)
        # Reads in a lower module of a file that a higher one only writes (data sieving,
        # metadata) are due to the library, so the higher module decides in both directions.
        mpiio = mpiio[~np.isin(mpiio["file"], rows[0]["file"])]
        rows.append(self._mpiio_rows(mpiio, posix, extents))
        if len(self.strands) < MAX_HINTS:
            self.strands.update(find(rows, posix, self.ranks))
        if len(self.hdf5_layouts) < MAX_HINTS:
            self.hdf5_layouts.update(hdf5_layouts.find(tables["H5D"], posix))
        described = np.concatenate([rows[0]["file"], mpiio["file"]])
        is_plain = posix["bytes"] > 0
        if len(described):
            is_plain &= ~np.isin(posix["file"], described)
        plain = posix if is_plain.all() else posix[is_plain]
        rows.append(self._rows_of(plain, "posix"))
        bare = plain[plain["write"] & self._of_hdf5.has(plain["file"])]
        self.remarks.add("metadata", len(np.unique(bare["file"])), int(bare["bytes"].sum()))
        # No library writes through stdio: what it moved is the application's own in any file.
        rows.append(self._rows_of(stdio[stdio["bytes"] > 0], "stdio"))
        self._sync_stdio(rows[-1], posix)
        self._note_flushes(tables["H5F"])
        self._note_growth(tables["H5D"])
        self._note_steps(mpiio, posix, stdio, described)
        merged = joined(rows)
        written = np.flatnonzero(merged["write"])
        whose = merged["file"][written]
        if not once(whose):  # the first row of each
            order = sorting(whose)
            sorted_files = whose[order]
            new = np.ones(len(sorted_files), np.bool_)
            new[1:] = sorted_files[1:] != sorted_files[:-1]
            written, whose = written[order[new]], sorted_files[new]
        merged["extent"][written] = extents.of(whose)
        self._share_extents(merged)
        return merged

    def _sync_stdio(self, rows: Rows, posix: Rows) -> None:
        """Files of stdio that are also given to fsync(), once each time they are open."""
        synced = posix[posix["write"] & (posix["bytes"] == 0) & (posix["syncs"] > 0)]
        synced = synced[np.argsort(synced["file"], kind="stable")]
        matched, place = lookup(synced["file"], rows["file"])
        once = synced["syncs"][place[matched]] == rows["opens"][matched]
        rows["synced"][matched] = once & rows["write"][matched]
        rows["syncs"][matched] = synced["syncs"][place[matched]]

    def _open_datasets(self, rows: Rows, posix: Rows) -> None:
        """Note how often the files of datasets were opened by a rank, which POSIX tells."""
        writers = posix[posix["write"] & np.isin(posix["file"], rows["file"])]
        files, index = np.unique(writers["file"], return_inverse=True)
        opens = np.zeros(len(files), np.int64)
        each = np.where(writers["rank"] == ALL_RANKS, self.ranks, 1)
        np.maximum.at(opens, index.ravel(), writers["opens"] // each)
        matched, place = lookup(files, rows["file"])
        rows["opens"][matched] = np.clip(opens[place[matched]], 0, MAX_COUNT)

    def _share_extents(self, rows: Rows) -> None:
        """Subtract the bytes of stdio from the extent of the other interface's rows, in files that
        are written through both."""
        streamed = rows["write"] & (rows["method"] == METHODS.index("stdio"))
        if not streamed.any():
            return
        both = np.intersect1d(rows["file"][streamed], rows["file"][rows["write"] & ~streamed])
        self.remarks.add("two interfaces", len(both))
        for file in both:
            of_file = rows["write"] & (rows["file"] == file)
            small = int(rows["bytes"][of_file & streamed].sum())
            large = int(rows["bytes"][of_file & ~streamed].sum())
            whole = int(rows["extent"][of_file].sum())
            overlap = max(0, min(small, small + large - whole)) if whole else 0
            self.remarks.add("overlap", int(overlap > 0), overlap)
            first = np.flatnonzero(of_file & ~streamed & (rows["extent"] > 0))
            rows["extent"][first] = max(whole - small, min(large, whole))

    def _undo_streams(self, posix: Rows, stdio: Rows) -> Rows:
        """Correct two errors in POSIX records of files that are written through stdio: Darshan
        attributes a write on a descriptor that fclose() had closed to its previous file, and adds
        up the offsets when such a file is truncated and written again."""
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
                row["top"], row["opens"] = once, times
        return posix

    def _move_stale(
        self, posix: Rows, n: int, twins: Rows, row_of: dict[tuple[int, int], int]
    ) -> None:
        """Attribute a write after the close of its file to the stream open at that time."""
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
                target["corrected"] = True
                for name in ("bytes", "top", "count"):
                    target[name] += size if name != "count" else row["count"]
                self.remarks.add("moved", 1, size)
                break
        else:
            self.remarks.add("stale", 1, size)
        row["bytes"] = row["count"] = 0
        row["calls"] = 0

    def _mpiio_rows(self, mpiio: Rows, posix: Rows, extents: Extents) -> Rows:
        """Rows of files accessed through MPI-IO."""
        mpiio = mpiio.copy()
        posix_is_partial = "POSIX" in self.log.modules and self.log.modules["POSIX"].partial
        files, index = np.unique(mpiio[["file", "write"]], return_inverse=True)
        sizes = np.where(files["write"], extents.of(files["file"]), 0)
        negative = np.unique(index.ravel()[mpiio["bytes"] < 0])
        totals = np.zeros(len(files), np.int64)
        np.add.at(totals, index.ravel(), mpiio["bytes"])
        odd = np.flatnonzero((sizes > 0) & (totals > sizes)) if posix_is_partial else negative
        for n in np.union1d(negative, odd).tolist():
            record, write, size = files["file"][n], files["write"][n], int(sizes[n])
            rows = np.flatnonzero(index.ravel() == n)
            below = posix[(posix["file"] == record) & (posix["write"] == write)]
            moved = int(below["bytes"].sum())
            if n in negative:
                mpiio["corrected"][rows] = True
                mpiio["bytes"][rows] = 0
                mpiio["bytes"][rows[0]] = min(moved, size) if size else moved
                mpiio["transfer"][rows] = below["transfer"].max(initial=1)
                self.remarks.add("overflow")
            elif moved < totals[n]:
                self.remarks.add("no POSIX", 1, int(totals[n]) - moved)
                extents.forget(record)
        return self._rows_of(mpiio[mpiio["bytes"] > 0], "mpiio")

    def _rows_of(self, touches: Rows, method: str) -> Rows:
        rows = np.zeros(len(touches), ACCESS)
        shared(rows)[:] = shared(touches)
        rows["method"] = METHODS.index(method)
        rows["element"] = 1
        each = np.where(touches["rank"] == ALL_RANKS, self.ranks, 1)
        rows["opens"] = np.clip(touches["opens"] // each, 0, MAX_COUNT)
        rows["synced"] = (touches["syncs"] > 0) & (method != "stdio")
        flushes = np.clip(touches["syncs"], 0, MAX_COUNT)
        rows["flushes" if method == "stdio" else "syncs"] = flushes
        several = touches["write"] & (touches["switches"] > touches["opens"])
        rows["switches"] = np.where(several, touches["switches"], 0)
        rows["busy_s"] = np.where(touches["busy_s"] > 0, touches["busy_s"], np.inf)
        rows["top"] = np.where(touches["write"], 0, touches["top"])
        rows["size"] = touches["top"]
        return rows

    # -- number of time steps of a file, best counter first ---------------------------------------

    def _note_flushes(self, files: Rows) -> None:
        for row in files:
            steps = int(row["flushes"]) // max(1, int(row["opens"]))
            self._hint(int(row["file"]), Hint(steps, "H5F_FLUSHES / H5F_OPENS", sure=True))

    def _note_growth(self, records: Rows) -> None:
        """Datasets that all took the same multiple of their first shape."""
        grown = records[records["write"] & (records["points"] > 1)]
        times = grown["bytes"] // (grown["points"] * grown["element"])
        how = "H5D_BYTES_WRITTEN / (H5D_DATASPACE_NPOINTS x H5D_DATATYPE_SIZE)"
        for file in np.unique(grown["file"][times > 1]):
            seen = np.unique(times[grown["file"] == file])
            if len(seen) == 1:
                self._hint(int(file), Hint(int(seen[0]), how, sure=True))

    def _note_steps(
        self, mpiio: Rows, posix: Rows, stdio: Rows, described: npt.NDArray[np.uint64]
    ) -> None:
        if len(self.hints) >= MAX_HINTS:  # others are not kept
            return
        for touches, module, syncs in (
            (mpiio, "MPIIO", "MPIIO_SYNCS"),
            (stdio, "STDIO", "STDIO_FLUSHES of writes"),
            (posix, "POSIX", "POSIX_FSYNCS + POSIX_FDSYNCS"),
        ):
            if not len(touches):
                continue
            each = np.where(touches["rank"] == ALL_RANKS, self.ranks, 1)
            # more time in calls than between them: one long dump
            apart = touches["busy_s"] <= 0.5 * each * (touches["end_s"] - touches["start_s"])
            writes = touches["write"] & (touches["bytes"] > 0) & apart
            alike = touches["count"] * touches["call_bytes"] == touches["bytes"]
            direct = writes & ((module == "MPIIO") | ~np.isin(touches["file"], described))
            count, follow = touches["order"][:, 0], touches["order"][:, 1]
            shared = direct & alike & (touches["rank"] == ALL_RANKS) & (follow > 0)
            once = touches["bytes"] <= touches["top"]
            for counts, counter, fit, weak in (
                (touches["syncs"], syncs, writes, False),
                (touches["count"], "MPIIO_COLL_WRITES", writes & touches["collective"], False),
                (touches["opens"], f"{module}_OPENS", direct & once, True),
                # a rank goes on elsewhere, behind what the others have written
                (count - follow, "POSIX_WRITES - POSIX_CONSEC_WRITES", shared & once, True),
                (touches["count"], f"{module}_WRITES of one size", direct & alike, True),
            ):
                several = np.flatnonzero(fit & (counts >= 2 * each))
                steps, rest = np.divmod(counts[several], each[several])
                for n, times in zip(
                    several[rest == 0].tolist(), steps[rest == 0].tolist(), strict=True
                ):
                    if len(self.hints) >= MAX_HINTS:  # others are not kept
                        break
                    file = int(touches["file"][n])
                    self._hint(file, Hint(times, f"{counter} per rank", weak=weak))

    def _hint(self, file: int, hint: Hint) -> None:
        if hint.steps >= 2 and (file in self.hints or len(self.hints) < MAX_HINTS):
            self.hints.setdefault(file, hint)

    # -- HDF5 datasets of old logs, which do not name their file --------- --------------------

    def _files_of_datasets(self) -> dict[int, int]:
        """File record by dataset record, found by the names."""
        if "H5D" not in self.log.modules or self.log.modules["H5D"].version > 1:
            return {}
        wanted = {int(n) for block in self.log.records("H5D") for n in block["id"]}
        prefixes: dict[int, list[bytes]] = {}  # candidates for the file's name, longest first
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


_SPILLED = {
    "names": NAME,
    "H5F": FLUSH,
    "H5D": DATASET,
    "present": PRESENT,
    "operations": OPERATION,
    **dict.fromkeys(COLUMNS, TOUCH),
}
_AS_READ = ("utf-8", "surrogateescape")

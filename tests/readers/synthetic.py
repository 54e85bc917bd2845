"""Synthetic logs of simple applications: which rank wrote which file when, in a few words."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.logs import record_id
from understudy.contracts.workload import Stream, Workload
from understudy.darshanlog import layouts
from understudy.darshanlog.writer import file_dtype, write_log
from understudy.program.counters import BIN_BYTES, BINS
from understudy.readers import darshan

Segment = tuple[int, int, float, float]


def access(
    file: int,
    size: int,
    at_s: float,
    *,
    rank: int = -1,
    module: str = "POSIX",
    write: bool = True,
    duration_s: float = 0.1,
    calls: int = 1,
    **more: Any,
) -> dict[str, Any]:
    """The record of `size` bytes moved in equal calls; `more` are counters without the prefix."""
    verb, past = ("WRITE", "WRITTEN") if write else ("READ", "READ")
    counters: dict[str, Any] = {
        f"BYTES_{past}": size,
        "F_OPEN_START_TIMESTAMP": at_s,
        f"F_{verb}_START_TIMESTAMP": at_s,
        f"F_{verb}_END_TIMESTAMP": at_s + duration_s,
        "F_CLOSE_END_TIMESTAMP": at_s + duration_s,
        f"F_{verb}_TIME": duration_s,
    }
    if module == "MPIIO":
        counters[f"COLL_{verb}S"] = calls
    else:
        counters |= {f"{verb}S": calls, f"MAX_BYTE_{past}": size - 1, "OPENS": 1}
    if module != "STDIO":
        counters |= {"ACCESS1_ACCESS": size // calls, "ACCESS1_COUNT": calls}
    return {"id": file, "rank": rank} | {
        f"{module}_{name}": value for name, value in (counters | more).items()
    }


class Run:
    """An application in the making: names and records, then the workload of its log.

    `reading`: options of the reader; others are those of the log.
    """

    def __init__(
        self,
        nprocs: int = 4,
        run_time_s: float | None = 100.0,
        *,
        reading: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.options: dict[str, Any] = {"nprocs": nprocs, "run_time_s": run_time_s} | options
        self.reading = dict(reading or {})
        self.names: dict[int, bytes] = {}
        self.numbers: dict[bytes, int] = {}
        self.modules: dict[str, list[dict[str, Any]]] = {}

    def file(self, name: str) -> int:
        """The id of a file; files without a name are all different."""
        text, index = name.encode(), len(self.names)
        number = self.numbers.get(text) or int(record_id(np.array([index]))[0])
        self.names[number] = text
        if text:
            self.numbers[text] = number
        return number

    def add(self, module: str, record: dict[str, Any]) -> None:
        self.modules.setdefault(module, []).append(record)

    def record(self, module: str, name: str, rank: int = 0, **counters: Any) -> int:
        """A record with these counters alone, which are named without their prefix."""
        file = self.file(name)
        row = {f"{module}_{key}": value for key, value in counters.items()}
        self.add(module, {"id": file, "rank": rank} | row)
        return file

    def opened(
        self, name: str, at_s: float, rank: int = 0, module: str = "POSIX", **counters: Any
    ) -> int:
        """A file that is opened, once where not said, and of which no byte is moved."""
        times = {"F_OPEN_START_TIMESTAMP": at_s, "F_OPEN_END_TIMESTAMP": at_s}
        return self.record(module, name, rank, **({"OPENS": 1} | times | counters))

    def dataset(self, name: str, size: int, at_s: float, rank: int = -1, **counters: Any) -> int:
        """A dataset of an HDF5 file, and what was written to it within a second."""
        file = self.file(name)
        usual = {"OPENS": 1, "BYTES_WRITTEN": size, "WRITES": int(size > 0), "DATATYPE_SIZE": 8}
        usual |= {"F_WRITE_START_TIMESTAMP": at_s, "F_WRITE_END_TIMESTAMP": at_s + 1}
        self.record("H5D", f"{name}:/u", rank, **(usual | counters))
        self.modules["H5D"][-1]["file_rec_id"] = file
        return file

    def trace(
        self,
        name: str,
        writes: Iterable[Segment] = (),
        rank: int = 0,
        *,
        reads: Iterable[Segment] = (),
        module: str = "DXT_POSIX",
    ) -> int:
        """Traced accesses of a file: offset, bytes, start and end."""
        file = self.file(name)
        row = {"write_segments": [*writes], "read_segments": [*reads]}
        self.add(module, {"id": file, "rank": rank} | row)
        return file

    def traced(
        self,
        name: str,
        segments: Iterable[Segment],
        *,
        rank: int = 0,
        write: bool = True,
        trace: bool = True,
        **more: Any,
    ) -> int:
        """Accesses of a file, and their trace."""
        segments = [*segments]
        size = sum(length for _, length, *_ in segments)
        first_s, last_s = min(s for *_, s, _ in segments), max(e for *_, e in segments)
        usual = {"duration_s": last_s - first_s, "calls": len(segments)}
        usual["F_WRITE_TIME" if write else "F_READ_TIME"] = sum(e - s for *_, s, e in segments)
        file = self.write(name, size, first_s, rank=rank, write=write, **(usual | more))
        if trace:
            module = "DXT_MPIIO" if more.get("module") == "MPIIO" else "DXT_POSIX"
            way = {"writes" if write else "reads": segments}
            self.trace(name, rank=rank, module=module, **way)
        return file

    def heatmap(
        self,
        written: Mapping[int, int],
        count: int,
        *,
        rank: int = 0,
        module: str = "POSIX",
        width_s: float = 1.0,
    ) -> None:
        """Bytes that a rank wrote in some of the bins."""
        self.names[9] = f"heatmap:{module}".encode()
        bins = {"write_bins": [written.get(n, 0) for n in range(count)], "read_bins": [0] * count}
        self.add("HEATMAP", {"id": 9, "rank": rank, "bin_width_s": width_s} | bins)

    def write(self, name: str, size: int, at_s: float, **more: Any) -> int:
        """Record a write through a module (POSIX where not said)."""
        file = self.file(name)
        self.add(more.get("module", "POSIX"), access(file, size, at_s, **more))
        return file

    def read(self, name: str, size: int, at_s: float, **more: Any) -> int:
        return self.write(name, size, at_s, write=False, **more)

    def log(self, path: Path) -> Path:
        names = {number: name for number, name in self.names.items() if name}
        return write_log(path, names=names, **self.options, **self.modules)

    def describe(self, folder: Path, **options: Any) -> Workload:
        return darshan.read(self.log(folder / "run.darshan"), **(self.reading | options))


def per_process_blocks(
    nprocs: int, dumps: int, size: int = 1 << 20, spread: int = 0
) -> Iterator[np.ndarray]:
    """POSIX records of a file per process and dump; sizes differ by at most `spread` bytes."""
    dtype = file_dtype(layouts.RECORDS["POSIX"][max(layouts.RECORDS["POSIX"])], "=")
    for first in range(0, nprocs * dumps, 4096):
        index = np.arange(first, min(first + 4096, nprocs * dumps), dtype=np.int64)
        rank, dump = index % nprocs, index // nprocs
        sizes = size + (rank * 7919) % (spread + 1)
        start_s = 10.0 * dump + 1e-6 * rank + 1
        block = np.zeros(len(index), dtype)
        block["id"], block["rank"] = record_id(index), rank
        for name, values in {
            "OPENS": 1,
            "WRITES": 1,
            "BYTES_WRITTEN": sizes,
            "MAX_BYTE_WRITTEN": sizes - 1,
            "ACCESS1_ACCESS": sizes,
            "ACCESS1_COUNT": 1,
            "F_OPEN_START_TIMESTAMP": start_s,
            "F_WRITE_START_TIMESTAMP": start_s,
            "F_WRITE_END_TIMESTAMP": start_s + 0.5,
            "F_WRITE_TIME": 0.5,
        }.items():
            block[f"POSIX_{name}"] = values
        yield block


def per_process_names(nprocs: int, dumps: int, form: bytes) -> Iterator[tuple[int, bytes]]:
    """Their names: `form` takes the dump and the rank."""
    for first in range(0, nprocs * dumps, 4096):
        index = np.arange(first, min(first + 4096, nprocs * dumps), dtype=np.int64)
        for number, i in zip(record_id(index).tolist(), index.tolist(), strict=True):
            yield number, form % (i // nprocs * 10, i % nprocs)


def per_process_log(
    path: Path, nprocs: int, dumps: int, form: bytes = b"/s/ck.%05d/part.%06d", spread: int = 0
) -> Path:
    return write_log(
        path,
        nprocs=nprocs,
        level=1,
        run_time_s=10.0 * dumps + 10,
        names=per_process_names(nprocs, dumps, form),
        POSIX=per_process_blocks(nprocs, dumps, spread=spread),
    )


def sizes(stream: Stream) -> list[int]:
    """Payload of each dump."""
    return [dump.bytes for dump in stream.steps]


def only(workload: Workload, **wanted: object) -> Stream:
    """The only stream with these attributes."""
    fit = [s for s in workload.streams if all(getattr(s, key) == v for key, v in wanted.items())]
    assert len(fit) == 1, [(s.name, s.layout, len(s.steps), s.bytes) for s in workload.streams]
    return fit[0]


def rank_bytes(stream: Stream, dump: int, ranks: int) -> list[int]:
    """Bytes of each rank in a dump, over all its variables."""
    total = np.zeros(ranks, np.int64)
    for variable in stream.steps[dump].variables:
        runs: Iterable[tuple[int, int]] = variable.rank_runs(ranks)
        total += np.repeat([size for _, size in runs], [n for n, _ in runs])
    return [int(n) for n in total]


def flood_log(
    path: Path,
    ranks: int,
    files: int,
    *,
    epochs: int = 1,
    write: bool = False,
    shuffled: bool = True,
    sizes: tuple[int, ...] = (150_000,),
    form: bytes = b"/d/img_%07d.npz",
    epoch_s: float = 100.0,
    between_s: float = 20.0,
    calls: int = 1,
    **more: int,
) -> Path:
    """A log of many small files, each moved whole by one rank in each epoch; of writes, the files
    of each epoch are new. A file's ranks have a record each, unless all ranks have read it."""
    rng = np.random.default_rng(7)
    count = files * (epochs if write else 1)
    index = np.arange(files, dtype=np.int64)
    size = np.asarray(sizes, np.int64)[index % len(sizes)]
    order = [rng.permutation(files) if shuffled else index for _ in range(epochs)]
    parts = []
    for epoch in range(epochs):
        rows = np.zeros(files, [("file", "i8"), ("rank", "i8"), ("size", "i8"), ("at", "f8")])
        place = np.empty(files, np.int64)
        place[order[epoch]] = index  # where in the order a file is
        rows["file"] = index + (epoch * files if write else 0)
        rows["rank"], rows["size"] = place * ranks // files, size
        within = place - -(-rows["rank"] * files // ranks)
        rows["at"] = 5 + epoch * (epoch_s + between_s) + within * epoch_s / (files / ranks)
        parts.append(rows)
    all_rows = np.concatenate(parts)

    def blocks() -> Iterator[np.ndarray]:
        dtype = file_dtype(layouts.RECORDS["POSIX"][max(layouts.RECORDS["POSIX"])], "=")
        keys = all_rows["file"] * ranks + all_rows["rank"]
        _, first, back, times = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        last = np.zeros(len(first))
        np.maximum.at(last, back.ravel(), all_rows["at"])
        verb, past = ("WRITE", "WRITTEN") if write else ("READ", "READ")
        for a in range(0, len(first), 4096):
            part, n, end_s = all_rows[first[a : a + 4096]], times[a : a + 4096], last[a : a + 4096]
            block = np.zeros(len(part), dtype)
            block["id"], block["rank"] = record_id(part["file"]), part["rank"]
            for name, values in {
                "OPENS": n,
                f"{verb}S": calls * n,
                f"BYTES_{past}": part["size"] * n,
                f"MAX_BYTE_{past}": part["size"] - 1,
                "ACCESS1_ACCESS": part["size"] // calls,
                "ACCESS1_COUNT": calls * n,
                "F_OPEN_START_TIMESTAMP": part["at"],
                f"F_{verb}_START_TIMESTAMP": part["at"],
                "F_OPEN_END_TIMESTAMP": end_s,
                f"F_{verb}_END_TIMESTAMP": end_s + 1e-4,
                f"F_{verb}_TIME": 1e-4 * n,
                "F_META_TIME": 1e-4 * n,
                **{k: v * n for k, v in more.items()},
            }.items():
                block[f"POSIX_{name}"] = values
            bins = np.searchsorted(BIN_BYTES, part["size"] // calls)
            for b, name in enumerate(BINS):
                block[f"POSIX_SIZE_{verb}_{name}"] += calls * n * (bins == b)
            yield block

    def named() -> Iterator[tuple[int, bytes]]:
        for a in range(0, count, 4096):
            some = np.arange(a, min(a + 4096, count), dtype=np.int64)
            for number, i in zip(record_id(some).tolist(), some.tolist(), strict=True):
                yield number, form % i

    return write_log(
        path,
        nprocs=ranks,
        level=1,
        run_time_s=epochs * (epoch_s + between_s) + 30,
        names=named(),
        POSIX=blocks(),
    )

"""Fuzz `understudy describe`, `show` and `archive` with edited and recompressed logs.

    python -m tests.fuzz_describe --seconds 3600 --seed 1

Each case takes a log, inflates its regions, edits headers, records and names with hostile values,
compresses it again and describes it in this process. A case passes if `describe` exits with one
line of error, or with JSON that `understudy.contracts.workload` reads. Every second case is
described with `--calls`, too, every third is shown, and every third archived: then its original
stays as it is, and the archived log has the same description. Every eighth is a damaged trace of
strace or of Recorder instead. A traceback, a warning, more than
20 s of processor time and more than 1 GiB of memory are failures. Every fourth case only changes a
byte of the file, in a region or in the header: then another workload without a note that tells of
the damage is a failure, too, unless no byte of the log could tell (`may_be_silent`). A number, the
seed, determines a case: --seed N --cases 1 repeats it, and --keep DIR keeps the logs of failures.
"""

import argparse
import json
import os
import random
import re
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from types import FrameType

from click.testing import CliRunner, Result

from tests.support import damaged_traces
from tests.support.logs import Parts, posix_blocks
from understudy.cli import main as understudy
from understudy.contracts import workload
from understudy.darshanlog import layouts
from understudy.darshanlog.writer import write_log, write_regions
from understudy.errors import UnderstudyError
from understudy.tracing import dxt

MEMORY_BYTES = 1 << 30
CASE_S = 20
CALLS = 1 << 17  # with --calls, which takes time for each that a log states, at most
BLOCK = 100
DAMAGE = re.compile(
    "belong to no region|marked incomplete|without any record|have no name|left out, whose|"
    "it is damaged"
)
TRACES = Path(__file__).resolve().parents[1] / "traces"

INTEGERS = (
    0,
    1,
    -1,
    2,
    3,
    4,
    5,
    7,
    100,
    4096,
    1 << 20,
    (1 << 31) - 1,
    1 << 31,
    -(1 << 31),
    1 << 32,
    1 << 40,
    1 << 53,
    1 << 56,
    1 << 60,
    (1 << 62) + 1,
    (1 << 63) - 1,
    -(1 << 63),
)
FLOATS = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e-9,
    5e-324,
    1e-300,
    99.5,
    1e6,
    1.7e9,
    1e15,
    1e18,
    1e300,
    1.8e308,
    -1e300,
    float("inf"),
    float("-inf"),
    float("nan"),
)
NAMES = (
    b"",
    b"\0",
    b"a\0b",
    b"/a\0\0",
    b"/0",
    b"/scratch/1",
    b"1" * 400,
    b"/" + b"9/" * 500,
    b"\xff\xfe/\x1b[2J",
    b"/x.\xe2\x80\xae.1",
    b"heatmap:",
    b"heatmap:POSIX",
    b"<STDOUT>",
    b"/d/1.2.3.4.5.6.7.8.9",
    b"/0.05/p",
    b"n" * 5000,
)


# -- logs to start from ---------------------------------------------------------------------------


def corpus(folder: Path, largest_bytes: int = 40_000) -> list[bytes]:
    """Small real logs, and made ones with what those lack."""
    real = [p.read_bytes() for p in sorted(TRACES.glob("*.darshan"))]
    small = [data for data in real if len(data) < largest_bytes]
    return small + list(_made(folder / "made.darshan"))


def _made(path: Path) -> Iterator[bytes]:
    for version, order, compression in (
        ("3.41", "little", "zlib"),
        ("3.00", "little", "none"),
        ("3.10", "big", "bzip2"),
        ("3.21", "little", "zlib"),
    ):
        more = {"H5F": _H5F, "H5D": _H5D} if version in ("3.21", "3.41") else {}
        if version == "3.41":
            more["HEATMAP"] = [
                {
                    "id": 90,
                    "rank": r,
                    "bin_width_s": 0.5,
                    "write_bins": [0, 9, 0, 9] * 50,
                    "read_bins": [0] * 200,
                }
                for r in range(4)
            ]
        write_log(
            path,
            version=version,
            byte_order=order,
            compression=compression,
            names=_names(),
            POSIX=_POSIX,
            MPIIO=_MPIIO,
            STDIO=_STDIO,
            DXT_POSIX=_DXT,
            LUSTRE=[{"id": 1, "stripe_size_bytes": 1 << 20, "ost_ids": [1, 2, 3]}],
            **more,
        )
        yield path.read_bytes()
    write_log(
        path,
        names=[
            (int(b["id"][n]), b"/s/d.%03d/p.%03d" % divmod(n, 4))
            for b in posix_blocks(40, 4)
            for n in range(len(b))
        ],
        nprocs=4,
        POSIX=posix_blocks(40, 4),
    )
    yield path.read_bytes()


def _names() -> dict[int, bytes]:
    return {
        **{n: b"/scratch/dump.%d" % n for n in range(1, 7)},
        10: b"/scratch/log.txt",
        20: b"/scratch/all.bin",
        30: b"/scratch/f.h5",
        31: b"/scratch/f.h5:/a",
        90: b"heatmap:POSIX",
    }


def _row(module: str, number: int, rank: int, size: int, first_s: float) -> dict[str, float]:
    return {
        "id": number,
        "rank": rank,
        f"{module}_BYTES_WRITTEN": size,
        f"{module}_F_OPEN_START_TIMESTAMP": first_s,
        f"{module}_F_WRITE_START_TIMESTAMP": first_s,
        f"{module}_F_WRITE_END_TIMESTAMP": first_s + 0.5,
        f"{module}_F_CLOSE_END_TIMESTAMP": first_s + 0.6,
    }


_SIZES = {
    "POSIX_WRITES": 4,
    "POSIX_OPENS": 4,
    "POSIX_MAX_BYTE_WRITTEN": (4 << 20) - 1,
    "POSIX_ACCESS1_ACCESS": 1 << 20,
    "POSIX_ACCESS1_COUNT": 4,
    "POSIX_SIZE_WRITE_100K_1M": 4,
}
_POSIX = [
    *(_row("POSIX", n, -1, 4 << 20, 10.0 * n) | _SIZES for n in range(1, 7)),
    _row("POSIX", 10, 0, 0, 1.0) | {"POSIX_READS": 3, "POSIX_BYTES_READ": 999},
    _row("POSIX", 20, -1, 8 << 20, 5.0)
    | _SIZES
    | {"POSIX_MAX_BYTE_WRITTEN": (8 << 20) - 1, "POSIX_F_WRITE_END_TIMESTAMP": 95.0},
]
_MPIIO = [
    _row("MPIIO", 20, -1, 8 << 20, 5.0)
    | {"MPIIO_COLL_WRITES": 40, "MPIIO_F_WRITE_END_TIMESTAMP": 95.0}
]
_STDIO = [
    _row("STDIO", 10, 0, 5000, 0.5)
    | {"STDIO_WRITES": 50, "STDIO_OPENS": 1, "STDIO_F_WRITE_END_TIMESTAMP": 90.0}
]
_H5F = [{"id": 30, "rank": -1, "H5F_OPENS": 4, "H5F_FLUSHES": 20}]
_H5D = [
    _row("H5D", 31, -1, 4000, 20.0)
    | {
        "H5D_WRITES": 20,
        "H5D_DATATYPE_SIZE": 8,
        "H5D_DATASPACE_NPOINTS": 100,
        "H5D_F_WRITE_END_TIMESTAMP": 80.0,
    }
]
_DXT = [
    {
        "id": 20,
        "rank": r,
        "write_segments": [
            (k << 20, 1 << 20, 5.0 + 30 * (k // 2) + 0.1 * k, 5.1 + 30 * (k // 2) + 0.1 * k)
            for k in range(8)
        ],
        "read_segments": [],
    }
    for r in range(2)
]


# -- edits ----------------------------------------------------------------------------------------


class Editor:
    """Edits of one case: a few, chosen by the seed."""

    def __init__(self, parts: Parts, seed: int) -> None:
        self.parts = parts
        self.rng = random.Random(seed)
        self.order, self.format = parts.order, parts.format

    def edit(self) -> None:
        """Apply one to four edits."""
        edits = (
            [self.field] * 6
            + [self.column] * 4
            + [self.word] * 3
            + [self.records, self.names, self.job, self.region, self.versions, self.bits]
        )
        for _ in range(self.rng.choice((1, 1, 1, 2, 3, 4))):
            self.rng.choice(edits)()

    def _slot(self) -> int:
        """A module that has records."""
        used = [n for n, data in enumerate(self.parts.regions[1:]) if data]
        return self.rng.choice(used) if used else 1

    def _layout(self, slot: int) -> list[str]:
        """The counters of a record, empty if they are not of fixed size."""
        module_names = self.format.module_names
        versions = layouts.RECORDS.get(module_names[slot], {}) if slot < len(module_names) else {}
        layout = versions.get(self.parts.version(slot))
        return list(layout.fields) if layout else []

    def _value(self, real: bool) -> bytes:
        if real:
            return struct.pack(self.order + "d", self.rng.choice(FLOATS))
        return struct.pack(self.order + "q", self.rng.choice(INTEGERS))

    def _chosen(self) -> tuple[bytearray, int, int, bytes]:
        """A region, its bytes per record, the place of a counter in a record, a value for it."""
        slot = self._slot()
        fields, data = self._layout(slot), self.parts.regions[1 + slot]
        size = 8 * (len(fields) or self.rng.choice((4, 6, 13)))
        if fields and self.rng.random() < 0.7:  # the counters that are used most
            used = (
                "BYTES",
                "TIMESTAMP",
                "rank",
                "id",
                "WRITES",
                "READS",
                "ACCESS",
                "MAX_BYTE",
                "SIZE",
                "OPENS",
                "SYNCS",
                "FLUSHES",
                "RANK",
                "NPOINTS",
            )
            alike = self.rng.choice([w for w in used if any(w in name for name in fields)])
            k = self.rng.choice([k for k, name in enumerate(fields) if alike in name])
        else:
            k = self.rng.randrange(size // 8)
        real = layouts.is_float(fields[k]) if fields else self.rng.random() < 0.5
        return data, size, 8 * k, self._value(real != (self.rng.random() < 0.05))

    def field(self) -> None:
        """One counter of one record."""
        data, size, at, value = self._chosen()
        if len(data) >= size:
            start = self.rng.randrange(len(data) // size) * size + at
            data[start : start + 8] = value

    def column(self) -> None:
        """One counter of all records."""
        data, size, at, value = self._chosen()
        for start in range(at, len(data) - 7, size):
            data[start : start + 8] = value

    def word(self) -> None:
        """Any eight bytes of a region."""
        data = self.parts.regions[1 + self._slot()]
        if len(data) >= 8:
            start = 8 * self.rng.randrange(len(data) // 8)
            data[start : start + 8] = self._value(self.rng.random() < 0.5)

    def records(self) -> None:
        """Remove, repeat or cut records."""
        slot = self._slot()
        data, size = self.parts.regions[1 + slot], 8 * (len(self._layout(slot)) or 1)
        how = self.rng.randrange(4)
        start = self.rng.randrange(max(1, len(data) // size)) * size
        if how == 0:
            del data[start : start + size]
        elif how == 1:
            data += data[start : start + size] * self.rng.choice((1, 3, 50))
        elif how == 2:
            del data[self.rng.randrange(len(data) + 1) :]
        else:
            data.clear()

    def names(self) -> None:
        """Hostile, missing and equal names."""
        data = self.parts.regions[0]
        name, how = self.rng.choice(NAMES), self.rng.randrange(4)
        if how == 0:
            data.clear()
        elif how == 1:  # one more name for a record that has one
            data += data[:8] + self._name(name)
        elif how == 2:
            place = self.rng.randrange(len(data) + 1)
            data[place:place] = name
        else:
            start = data.find(b"/", self.rng.randrange(len(data) + 1))
            if start >= 0:
                data[start] = self.rng.randrange(256)

    def _name(self, name: bytes) -> bytes:
        if self.format.counted_names:
            return struct.pack(self.order + "I", len(name)) + name
        return name + b"\0"

    def job(self) -> None:
        """A number of the job record, or its text."""
        fields = self.format.job_fields
        if self.rng.random() < 0.8:
            k = self.rng.randrange(len(fields))
            k = fields.index("nprocs") if self.rng.random() < 0.4 else k
            self.parts.job[8 * k : 8 * k + 8] = self._value(real=False)
        else:
            place = self.rng.randrange(8 * len(fields), len(self.parts.job))
            self.parts.job[place : place + 4] = self.rng.choice(
                (b"\0\0\0\0", b"\n\t\n\t", b"\xff" * 4)
            )

    def region(self) -> None:
        """Empty a region, exchange two, or state another place for one."""
        regions, how = self.parts.regions, self.rng.randrange(3)
        a, b = 1 + self._slot(), 1 + self._slot()
        if how == 0:
            regions[a].clear()
        elif how == 1:
            regions[a], regions[b] = regions[b], regions[a]
        else:
            regions[self.rng.randrange(len(regions))] = bytearray(regions[a])

    def versions(self) -> None:
        """The version of a module, or the flag that it is incomplete."""
        if self.rng.random() < 0.5:
            at = self.format.versions_offset + 4 * self._slot()
            struct.pack_into(self.order + "I", self.parts.header, at, self.rng.randrange(8))
        else:
            at, kind = self.format.partial_flag
            code = {"u4": "I", "u8": "Q"}[kind]
            struct.pack_into(self.order + code, self.parts.header, at, self.rng.getrandbits(16))

    def bits(self) -> None:
        """Flip bits of plain bytes."""
        data = self.rng.choice([self.parts.job, *filter(None, self.parts.regions)])
        for _ in range(self.rng.choice((1, 8, 64))):
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)


def case(logs: list[bytes], seed: int, path: Path) -> None:
    """Write the log of a case."""
    rng = random.Random(f"log {seed}")
    parts = Parts.of(rng.choice(logs))
    Editor(parts, seed).edit()
    compression = rng.choice(layouts.COMPRESSIONS)
    emptied = [n for n, data in enumerate(parts.regions) if not data and rng.random() < 0.1]
    write_regions(path, parts.header, parts.job, parts.regions, compression, keep=emptied)


# -- damage ---------------------------------------------------------------------------------------


def may_be_silent(data: bytes, at: int) -> bool:
    """Whether a changed byte can give another log that is as good: the format has checksums of
    compressed regions only, not of the header, which states which modules are incomplete and of
    which version they are."""
    log_format = layouts.LOG_FORMATS[data[:8].split(b"\0")[0].decode()]
    if at >= log_format.header_bytes:
        return data[16] == layouts.COMPRESSIONS.index("none")
    flags, kind = log_format.partial_flag
    versions = log_format.versions_offset
    return flags <= at < flags + int(kind[1:]) or at >= versions


def damaged(data: bytes, rng: random.Random) -> tuple[bytes, int]:
    """The log with another byte, and where."""
    header_bytes = layouts.LOG_FORMATS[data[:8].split(b"\0")[0].decode()].header_bytes
    at = rng.randrange(rng.choice((header_bytes, len(data))))
    byte = rng.choice((0, 0xFF, data[at] ^ 1 << rng.randrange(8), rng.randrange(256)))
    return data[:at] + bytes([byte]) + data[at + 1 :], at


class Damage:
    """Cases of single bytes, and what the logs are without the damage."""

    def __init__(self, logs: list[bytes], folder: Path) -> None:
        self._logs, self._path = logs, folder / "whole.darshan"
        self._whole: dict[int, str] = {}

    def case(self, seed: int, path: Path) -> tuple[str, str]:
        """Describe a log with another byte; as `verdict`."""
        rng = random.Random(f"damage {seed}")
        number = rng.randrange(len(self._logs))
        data, at = damaged(self._logs[number], rng)
        path.write_bytes(data)
        what, why = verdict(path, 1)
        if what != "described" or may_be_silent(self._logs[number], at):
            return what, why
        return ("failed", f"byte {at}: {odd}") if (odd := self.odd(number, path)) else (what, why)

    def odd(self, number: int, path: Path) -> str:
        """How a workload differs from that of the log without damage, if no note tells why."""
        if number not in self._whole:
            self._path.write_bytes(self._logs[number])
            self._whole[number] = _text(self._path)
        before, after = (json.loads(text) for text in (self._whole[number], _text(path)))
        notes = [source.pop("notes") for source in (before["source"], after["source"])]
        tells = [n for n in notes[1] if n not in notes[0] and DAMAGE.search(n)]
        return "" if before == after or tells else "another workload, and no note of the damage"


def _text(path: Path) -> str:
    return CliRunner().invoke(understudy, ["describe", str(path), "--partial"]).stdout


# -- judgement ------------------------------------------------------------------------------------


@contextmanager
def limits(memory_bytes: int = MEMORY_BYTES) -> Iterator[None]:
    """At most so much more memory than now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = pages * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + memory_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


class Hang(BaseException):
    """A case took too long."""


def _hang(number: int, frame: FrameType | None) -> None:
    raise Hang(f"more than {CASE_S} s of processor time")


def verdict(path: Path, seed: int) -> tuple[str, str]:
    """Describe a log, every third one after `show` and every third after `archive`: described,
    refused or failed, and why it failed."""
    more = ["--partial"] * (seed % 2) + ["--keep-names"] * (seed % 3 == 0)
    if seed % 3 == 1 and (why := tried("show", path)[1]):
        return "failed", f"show: {why}"
    done, why = tried("describe", path, *more)
    if done is None:
        return "failed", why
    if seed % 3 == 2 and (why := archived(path, more, done)):
        return "failed", f"archive: {why}"
    if done.exit_code:
        return "refused", ""
    dxt.MAX_CALLS = CALLS
    if seed % 2 and (why := _refused(tried("describe", path, "--calls", "--partial"))):
        return "failed", f"calls: {why}"
    why = _refused((done, ""))
    return ("failed", why) if why else ("described", "")


def of_calls(seed: int, folder: Path) -> tuple[str, str]:
    """Describe a damaged trace of calls, which the seed alone determines."""
    rng = random.Random(f"calls {seed}")
    path = rng.choice(damaged_traces.KINDS)(rng)(folder)
    done, why = tried("describe", path, "--below", "/d", "--below", "/scratch/run")
    why = why or _refused((done, ""))
    refused = done is not None and done.exit_code
    return ("failed", why) if why else ("refused" if refused else "described", "")


def _refused(tried: tuple[Result | None, str]) -> str:
    """Why a description that was written is none, or how it failed."""
    done, why = tried
    if done is None or done.exit_code:
        return why
    try:
        workload.parse(done.stdout, "described")
    except UnderstudyError as error:
        return f"JSON that is refused: {error}"
    return ""


def tried(command: str, path: Path, *more: str) -> tuple[Result | None, str]:
    """What a command says of a log; or nothing, and how it fails."""
    signal.signal(signal.SIGPROF, _hang)
    signal.setitimer(signal.ITIMER_PROF, CASE_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            done = CliRunner().invoke(understudy, [command, str(path), *more])
    except Hang as error:
        return None, _where(error)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return None, _where(done.exception)
    if done.exit_code:
        text = done.stderr
        expected = 2 if command == "archive" else 1  # that one counts its logs, too
        names_log = text.startswith((f"understudy: {path}: ", f"understudy: {path}/"))
        if not names_log or text.count("\n") != expected:
            return None, f"message: {text!r}"
    return done, ""


def archived(path: Path, more: list[str], described: Result) -> str:
    """How an archived log is damaged, or is described in another way than before."""
    before = path.read_bytes()
    into = path.parent / "archived"
    into.mkdir(exist_ok=True)
    archived_log = into / path.name
    archived_log.unlink(missing_ok=True)
    done, why = tried("archive", path, "--always", "--verify", "--into", str(into))
    if done is None:
        return why
    if path.read_bytes() != before:
        return "the original has changed"
    if done.exit_code or not archived_log.exists():
        return "" if not archived_log.exists() else "refused, but written"
    again, why = tried("describe", archived_log, *more)
    if again is None:
        return why
    if "is not known" in described.stderr:  # the version of an empty module, which is left out
        return ""
    return "" if _told(again) == _told(described) else "another description"


def _told(done: Result) -> object:
    """A description without its notes (an archive lacks empty modules) and the log's hash."""
    if done.exit_code:
        return done.exit_code
    row = json.loads(done.stdout)
    for key in ("notes", "sha256"):
        row["source"].pop(key, None)
    return row


def _where(error: BaseException) -> str:
    frames: list[traceback.FrameSummary] = traceback.extract_tb(error.__traceback__)
    frames = [f for f in frames if "/understudy/" in f.filename] or frames
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__}: {error} ({place})"


@dataclass(frozen=True)
class Block:
    """Some cases, which one process runs: click keeps every output of its process, so that one
    process for all would grow over the limit."""

    seeds: range
    deadline: float
    keep: Path | None

    def run(self) -> list[tuple[int, str, str, float, int]]:
        """Each case: its seed, what came of it, why it failed, its CPU seconds, and the largest
        memory so far in MiB."""
        done = []
        with tempfile.TemporaryDirectory() as name, limits():
            folder = Path(name)
            logs = corpus(folder)
            bytewise = Damage(logs, folder)
            path = folder / "case.darshan"
            for seed in self.seeds:
                if time.time() > self.deadline:
                    break
                start = time.process_time()
                if seed % 8 == 1:
                    what, why = of_calls(seed, folder)
                elif seed % 4 == 0:
                    what, why = bytewise.case(seed, path)
                else:
                    case(logs, seed, path)
                    what, why = verdict(path, seed)
                if what == "failed" and self.keep is not None and seed % 8 != 1:
                    (self.keep / f"{seed}.darshan").write_bytes(path.read_bytes())
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
                done.append((seed, what, why, time.process_time() - start, peak))
        return done


def run(first: int, cases: int, seconds: float, keep: Path | None, verbose: bool) -> int:
    """Run cases until there are enough of them or time is up; the number of failures."""
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    begin, slowest, largest = time.time(), (0.0, 0), 0
    end = first + cases
    blocks = (
        Block(range(n, min(n + BLOCK, end)), begin + seconds, keep)
        for n in range(first, end, BLOCK)
    )
    with ProcessPoolExecutor(mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        workers = len(os.sched_getaffinity(0))
        running = deque(pool.submit(block.run) for block in islice(blocks, workers))
        while running:
            for seed, what, why, spent_s, peak in running.popleft().result():
                slowest, largest = max(slowest, (spent_s, seed)), max(largest, peak)
                counts[what] += 1
                if what == "failed":
                    kinds[why.rpartition("(")[2] if why.endswith(")") else why[:60]] += 1
                    print(f"seed {seed}: {why}", flush=True)
                elif verbose:
                    print(f"seed {seed}: {what}", flush=True)
            if time.time() < begin + seconds:
                running.extend(pool.submit(block.run) for block in islice(blocks, 1))
    spent = time.time() - begin
    print(
        f"{sum(counts.values())} cases in {spent:.0f} s: {counts['described']} described, "
        f"{counts['refused']} refused, {counts['failed']} failed; slowest {slowest[0]:.1f} s "
        f"(seed {slowest[1]}), at most {largest} MiB"
    )
    for place, count in kinds.most_common():
        print(f"{count:6} {place}")
    return counts["failed"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="the first case; default: 1")
    parser.add_argument("--cases", type=int, default=1 << 62, help="how many; default: no limit")
    parser.add_argument("--seconds", type=float, default=60, help="for how long; default: 60")
    parser.add_argument("--keep", type=Path, help="keep the logs of failures in this directory")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every case")
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    failed = run(given.seed, given.cases, given.seconds, given.keep, given.verbose)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()

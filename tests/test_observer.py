"""The kernel as a witness: system calls of the player, seen by strace, against its result."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import player
from tests.support.keys import patterns_of, with_patterns
from understudy.contracts.measurement import Played
from understudy.contracts.workload import (
    Dump,
    Pattern,
    Provenance,
    Scaling,
    Source,
    Variable,
    Workload,
    streams_of,
)

RANKS = 2
ELEMENTS = (5000, 7001)  # of 8 bytes, per dump; the ranks' halves are no multiple of a transfer
TRANSFER = 6008
CALLS = "openat,write,pwrite64,writev,pwritev,pwritev2,read,pread64,preadv,fsync,fdatasync"


@dataclass
class Used:
    """System calls on one file, all ranks: sizes of the calls that moved bytes, flushes."""

    wrote: Counter[int] = field(default_factory=Counter)
    read: Counter[int] = field(default_factory=Counter)
    flushes: int = 0


LINE = re.compile(r"(?P<call>\w+)\((?P<fd>\d+)<(?P<path>[^>]*)>.*\) += (?P<moved>-?\d+)")


def observed(traces: Iterator[Path]) -> dict[str, Used]:
    """What strace saw, by file name; one trace file per thread, so that no line is cut in two."""
    files: dict[str, Used] = defaultdict(Used)
    for trace in traces:
        for line in trace.read_text(errors="replace").splitlines():
            if match := LINE.match(line):
                used, moved = files[match["path"]], int(match["moved"])
                if match["call"] in ("fsync", "fdatasync"):
                    used.flushes += 1
                elif moved > 0:
                    way = used.read if "read" in match["call"] else used.wrote
                    way[moved] += 1
    return files


def test_lines_of_strace_are_understood(tmp_path: Path) -> None:
    (tmp_path / "t").write_text(
        'openat(AT_FDCWD</x>, "d/a", O_RDWR) = 3</x/d/a>\n'
        'pwrite64(3</x/d/a>, ""..., 6008, 0) = 6008\n'
        'pwritev(3</x/d/a>, [{iov_base=""..., iov_len=8}, {iov_base="", iov_len=4}], 2, 8) = 12\n'
        'pread64(3</x/d/a>, ""..., 100, 0) = 40\n'
        'pwrite64(3</x/d/a>, ""..., 100, 0) = -1 EINTR (Interrupted system call)\n'
        "fsync(3</x/d/a>) = 0\n"
        "+++ exited with 0 +++\n"
    )
    files = observed(iter([tmp_path / "t"]))
    assert files == {"/x/d/a": Used(Counter({6008: 1, 12: 1}), Counter({40: 1}), 1)}


def small(method: str) -> Workload:
    """Two checkpoints of all ranks, and two reads of a file per rank."""

    def dumps(begin_s: float) -> tuple[Dump, ...]:
        return tuple(
            Dump(time_s=begin_s + k, variables=(Variable(name="v", type="f64", shape=(n,)),))
            for k, n in enumerate(ELEMENTS)
        )

    common: dict[str, Any] = {"files": "new", "method": method, "transfer_bytes": TRANSFER}
    return Workload(
        name="small",
        description="For the witness.",
        ranks=RANKS,
        scaling=Scaling(rule="none", from_ranks=RANKS),
        source=Source(format="hand"),
        provenance=(
            Provenance(path="/ranks", origin="assumed", how="sample"),
            Provenance(path="/runtime_s", origin="assumed", how="sample"),
            Provenance(path="/streams", origin="assumed", how="sample"),
        ),
        streams=streams_of(
            (
                Pattern(
                    name="checkpoint",
                    role="checkpoint",
                    operation="write",
                    layout="shared",
                    sync=True,
                    dumps=dumps(0.0),
                    **common,
                ),
                Pattern(
                    name="start",
                    role="input",
                    operation="read",
                    layout="file-per-process",
                    dumps=dumps(0.5),
                    **common,
                ),
            ),
            RANKS,
        ),
    )


def sizes(elements: int) -> Counter[int]:
    """Calls of a rank's block of so many elements."""
    full, rest = divmod(8 * elements, TRANSFER)
    return Counter({TRANSFER: full} | ({rest: 1} if rest else {}))


def of_all_ranks(elements: int) -> Counter[int]:
    half, more = divmod(elements, RANKS)
    return sum((sizes(half + (r < more)) for r in range(RANKS)), Counter())


def operations(result: Played, stream: int, dump: int, phase: str) -> int:
    phases = result.repetitions[0].streams[stream].dumps[dump].phases
    return next(p.operations for p in phases if p.phase == phase)


@pytest.mark.parametrize("method", ["posix", "mpiio", "hdf5"])
def test_the_kernel_saw_what_the_player_says(method: str, tmp_path: Path) -> None:
    player.needs(method)
    descriptor = tmp_path / "small.json"
    descriptor.write_text(small(method).to_text())
    before = [
        player.strace(),
        "-ff",
        "-y",
        "-qq",
        "-s0",
        f"-etrace={CALLS}",
        "-o",
        str(tmp_path / "trace"),
    ]
    result = player.play(descriptor, RANKS, tmp_path / "data", "--time-scale=0.02", before=before)
    files = observed(tmp_path.glob("trace.*"))
    suffix = ".h5" if method == "hdf5" else ""
    for k, elements in enumerate(ELEMENTS):
        told = result.repetitions[0].streams[0].dumps[k]
        used = files[f"{tmp_path}/data/checkpoint.{k:06d}{suffix}"]
        want = of_all_ranks(elements)
        data = Counter({size: n for size, n in used.wrote.items() if size in want})
        assert data == want  # HDF5's own calls, for its metadata, have other sizes
        assert data.total() == operations(result, 0, k, "write")
        assert sum(size * n for size, n in data.items()) == told.bytes == 8 * elements
        if method != "hdf5":
            assert used.wrote == want
            assert used.flushes == operations(result, 0, k, "sync") == RANKS
            assert told.file_bytes == told.bytes
        else:
            assert told.file_bytes is not None and told.file_bytes > told.bytes
            assert sum(s * n for s, n in used.wrote.items()) >= told.bytes
        read: Counter[int] = Counter()
        for rank in range(RANKS):
            rank_file = files[f"{tmp_path}/data/start.{k:06d}.{rank:08d}{suffix}"]
            read += Counter({size: n for size, n in rank_file.read.items() if size in want})
            # made before, in the same calls
            assert method == "hdf5" or rank_file.wrote == rank_file.read
        assert read == want
        assert read.total() == operations(result, 1, k, "read")


@pytest.mark.parametrize("method", ["posix", "stdio", "mpiio"])
def test_time_steps_reach_storage_only_where_it_is_asked_for(method: str, tmp_path: Path) -> None:
    """Each time step leaves the buffer of stdio; fsync waits for storage besides."""
    player.needs(method)
    workload = small(method)
    [checkpoint, _] = patterns_of(workload)
    streams = tuple(
        replace(checkpoint, name=name, files="append", layout="shared", sync=sync)
        for name, sync in (("kept", False), ("lasting", True))
    )
    descriptor = tmp_path / "small.json"
    descriptor.write_text(with_patterns(workload, streams).to_text())
    trace = ["-ff", "-y", "-qq", "-s0", f"-etrace={CALLS}", "-o", str(tmp_path / "trace")]
    player.play(
        descriptor, RANKS, tmp_path / "data", "--time-scale=0", before=[player.strace(), *trace]
    )
    files = observed(tmp_path.glob("trace.*"))
    flushes = {s.name: files[f"{tmp_path}/data/{s.name}"].flushes for s in streams}
    assert flushes == {"kept": 0, "lasting": RANKS * len(ELEMENTS)}

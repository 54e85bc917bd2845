"""What the player costs: null overhead per operation, and every method beside IOR.

IOR is taken from $UNDERSTUDY_IOR or from PATH. Both programs do the same: the same ranks, blocks,
transfer sizes and layout, in files made anew ("fresh", with a read-back) and in files that exist
("overwrite", from 4 passes in one process), in turn, so that what the machine does meanwhile
meets both. Overwriting is for POSIX only: IOR truncates through MPI-IO, and HDF5 creates its
datasets anew. A ratio above 1 in bandwidth, and below 1 in CPU, speaks for the player. CPU is
user and system time of all processes, less what the same command takes with one transfer per
rank, divided by the data calls.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PASSES = 4
IOR_NAMES = {"posix": "POSIX", "mpiio": "MPIIO", "hdf5": "HDF5"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Who moves how much: every rank one block, in transfers."""

    ranks: int
    layout: str
    transfer_bytes: int
    block_bytes: int

    def operations(self) -> int:
        """Data calls of all ranks in one pass."""
        return self.ranks * self.block_bytes // self.transfer_bytes

    def single(self) -> "Pattern":
        """One transfer per rank: what a run costs besides its operations."""
        return Pattern(
            ranks=self.ranks,
            layout=self.layout,
            transfer_bytes=self.transfer_bytes,
            block_bytes=self.transfer_bytes,
        )

    def workload(self) -> dict[str, Any]:
        """The same as a workload with one dump."""
        variable = {
            "name": "data",
            "label": "",
            "count": 1,
            "type": "byte",
            "shape": [self.ranks * self.block_bytes],
            "decomposition": {"rule": "even"},
            "file": 0,
        }
        dump = {"time_s": 0, "duration_s": None, "overhead_bytes": None, "variables": [variable]}
        stream = {
            "name": "bench",
            "label": "",
            "role": "checkpoint",
            "operation": "write",
            "files": "new",
            "layout": self.layout,
            "groups": None,
            "method": "posix",
            "transfer_bytes": self.transfer_bytes,
            "collective": False,
            "sync": False,
            "turns": False,
            "content": {"kind": "random", "compressibility": 0},
            "dumps": [dump],
        }
        return {
            "schema": "understudy/workload/1",
            "name": "bench",
            "description": "The pattern of a benchmark.",
            "ranks": self.ranks,
            "scaling": {"rule": "none", "from_ranks": self.ranks},
            "runtime_s": None,
            "compute": "sleep",
            "streams": [stream],
            "source": {"format": "hand", "version": "", "reader": "", "notes": []},
            "provenance": [],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run: seconds of each writing and reading pass, and CPU seconds of all processes."""

    write_s: list[float]
    read_s: list[float]
    cpu_s: float
    operations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The programs, and where the files go."""

    replay: Path
    rewrite: Path
    ior: str | None
    mpiexec: str
    folder: Path

    def run(self, ranks: int, command: list[str | Path]) -> tuple[str, float]:
        """Standard output and CPU seconds of a command on so many ranks."""
        start = [self.mpiexec, "-n", str(ranks)] if ranks > 1 else []
        before = os.times()
        done = subprocess.run(
            [*start, *command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        after = os.times()
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stderr}")
        cpu_s = after.children_user - before.children_user
        return done.stdout, cpu_s + after.children_system - before.children_system

    def play(self, pattern: Pattern, method: str, read: bool = True) -> Cost:
        """The player, on fresh files."""
        workload, result = self.folder / "workload.json", self.folder / "result.json"
        workload.write_text(json.dumps(pattern.workload()))
        command: list[str | Path] = [self.replay, "-w", workload, "-o", "data", "-a", method]
        command += ["-O", result, "--restart"] if read else ["-O", result]
        _, cpu_s = self.run(pattern.ranks, command)
        streams = json.loads(result.read_text())["repetitions"][0]["streams"]
        phases = [p for s in streams for d in s["dumps"] for p in d["phases"] if p["bytes"]]
        seconds = {p["phase"]: p["last_end_s"] - p["first_start_s"] for p in phases}
        operations = sum(p["operations"] for p in phases)
        reads = [seconds["read"]] if read else []
        return Cost(write_s=[seconds["write"]], read_s=reads, cpu_s=cpu_s, operations=operations)

    def overwrite(self, pattern: Pattern, method: str) -> Cost:
        """The player's loop over files that exist."""
        workload = self.folder / "workload.json"
        workload.write_text(json.dumps(pattern.workload()))
        (self.folder / "data").mkdir(exist_ok=True)
        command: list[str | Path] = [self.rewrite, "-w", workload, "-o", "data", "-a", method]
        command += ["-k", "-i", str(PASSES)]
        out, cpu_s = self.run(pattern.ranks, command)
        passes = [json.loads(line)["write_s"] for line in out.splitlines()]
        shutil.rmtree(self.folder / "data")
        return Cost(write_s=passes[1:], read_s=[], cpu_s=cpu_s)

    def play_ior(self, pattern: Pattern, method: str, overwrite: bool = False) -> Cost:
        """IOR with the same pattern."""
        assert self.ior
        command = [self.ior, "-a", IOR_NAMES[method], "-t", str(pattern.transfer_bytes)]
        command += ["-b", str(pattern.block_bytes), "-o", "ior.data", "-w"]
        command += ["-F"] if pattern.layout == "file-per-process" else []
        command += ["--hdf5.noFill"] if method == "hdf5" else []
        command += ["-E", "-k", "-i", str(PASSES)] if overwrite else ["-r"]
        command += ["-O", "summaryFormat=JSON", "-O", "summaryFile=ior.json"]
        _, cpu_s = self.run(pattern.ranks, [*command])
        results = json.loads((self.folder / "ior.json").read_text())["tests"][0]["Results"]
        seconds: dict[str, list[float]] = {"write": [], "read": []}
        for row in results:
            seconds[row["access"]].append(row["wrRdTime"])
        for path in self.folder.glob("ior.data*"):
            path.unlink()
        writes = seconds["write"][1:] if overwrite else seconds["write"]
        return Cost(write_s=writes, read_s=seconds["read"], cpu_s=cpu_s)


def spread(values: list[float], digits: int = 2) -> str:
    """Median and range of some ratios."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}…{max(values):.{digits}f})"


def null_overhead(bench: Bench, rounds: int, operations: int) -> None:
    """Seconds that the player itself takes for an operation of 4 KiB."""
    pattern = Pattern(ranks=1, layout="shared", transfer_bytes=4096, block_bytes=4096 * operations)
    wall, cpu = [], []
    for _ in range(rounds):
        base = bench.play(pattern.single(), "null", read=False)
        cost = bench.play(pattern, "null", read=False)
        wall.append(cost.write_s[0] / cost.operations)
        cpu.append((cost.cpu_s - base.cpu_s) / operations)
    print(f"null, 1 rank, {operations} operations of 4 KiB, {rounds} rounds")
    print(f"  elapsed per operation  {spread([s * 1e9 for s in wall], 0)} ns")
    print(f"  CPU per operation      {spread([s * 1e9 for s in cpu], 0)} ns")


def in_turn(turn: int, ours: Callable[[], Cost], theirs: Callable[[], Cost]) -> tuple[Cost, Cost]:
    """Both, in alternating order: the second finds the memory that the first gave back."""
    if turn % 2 == 0:
        return ours(), theirs()
    other = theirs()
    return ours(), other


def beside_ior(bench: Bench, pattern: Pattern, method: str, rounds: int) -> None:
    """The player and IOR in turn."""
    rewrites = method == "posix"
    ratios: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}

    def note(kind: str, ours: list[float], theirs: list[float]) -> None:
        size = pattern.ranks * pattern.block_bytes / (1 << 20)
        ratios.setdefault(kind, []).append(median(theirs) / median(ours))
        rates.setdefault(kind, []).append(size / median(ours))

    def note_cpu(kind: str, seconds: float, passes: int) -> None:
        cpu.setdefault(kind, []).append(seconds / (passes * pattern.operations()))

    one = pattern.single()
    for turn in range(rounds):
        ours, theirs = in_turn(
            turn, lambda: bench.play(pattern, method), lambda: bench.play_ior(pattern, method)
        )
        note("fresh write", ours.write_s, theirs.write_s)
        note("read", ours.read_s, theirs.read_s)
        note_cpu("write and read", ours.cpu_s - bench.play(one, method).cpu_s, 2)
        note_cpu("IOR write and read", theirs.cpu_s - bench.play_ior(one, method).cpu_s, 2)
        if not rewrites:
            continue
        ours, theirs = in_turn(
            turn,
            lambda: bench.overwrite(pattern, method),
            lambda: bench.play_ior(pattern, method, True),
        )
        note("overwrite", ours.write_s, theirs.write_s)
        note_cpu("overwrite", ours.cpu_s - bench.overwrite(one, method).cpu_s, PASSES)
        base = bench.play_ior(one, method, True)
        note_cpu("IOR overwrite", theirs.cpu_s - base.cpu_s, PASSES)

    for kind, values in ratios.items():
        print(f"  {method:6} {kind:15} {median(rates[kind]):8.0f} MiB/s, x IOR {spread(values)}")
    for kind in [k for k in cpu if not k.startswith("IOR")]:
        own, other = cpu[kind], cpu[f"IOR {kind}"]
        of = [a / b for a, b in zip(own, other, strict=True)]
        text = f"{median(own) * 1e6:8.2f} µs CPU per operation, IOR {median(other) * 1e6:.2f}"
        print(f"  {method:6} {kind:15} {text}, x IOR {spread(of)}")


@contextmanager
def folder_in(parent: Path) -> Iterator[Path]:
    """A folder of our own."""
    made = Path(tempfile.mkdtemp(prefix="understudy-bench-", dir=parent))
    try:
        yield made
    finally:
        shutil.rmtree(made)


def arguments() -> argparse.Namespace:
    """What was asked for."""
    memory = Path("/dev/shm")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="CMake's build folder")
    parser.add_argument("--rounds", type=int, default=6, help="how often all is done in turn")
    parser.add_argument("--operations", type=int, default=131072, help="of 4 KiB on one rank")
    parser.add_argument("--block-mib", type=int, default=256, help="per rank, for 1 MiB transfers")
    parser.add_argument("--ranks", type=int, default=4, help="for 1 MiB transfers")
    parser.add_argument(
        "--directory",
        type=Path,
        default=memory if memory.is_dir() else Path(tempfile.gettempdir()),
        help="the file system to write to",
    )
    return parser.parse_args()


def main() -> None:
    """Everything, one line per figure."""
    asked = arguments()
    programs = [
        asked.build.resolve() / "bin" / name for name in ("understudy-replay", "mpi_rewrite")
    ]
    mpiexec = shutil.which("mpiexec") or shutil.which("mpirun")
    missing = [str(path) for path in programs if not path.exists()]
    if missing or not mpiexec:
        sys.exit(f"replay.py: missing {', '.join(missing) or 'mpiexec'}: run `make build` first")
    ior = shutil.which(os.environ.get("UNDERSTUDY_IOR", "ior"))
    with folder_in(asked.directory) as folder:
        replay, rewrite = programs
        bench = Bench(replay=replay, rewrite=rewrite, ior=ior, mpiexec=mpiexec, folder=folder)
        null_overhead(bench, asked.rounds, asked.operations)
        if not ior:
            print("SKIPPED: every method beside IOR: no ior on PATH nor in $UNDERSTUDY_IOR")
            return
        apis = subprocess.run([ior, "-h"], capture_output=True, text=True).stdout
        listed = subprocess.run([replay, "--list"], capture_output=True, text=True).stdout
        small = Pattern(
            ranks=1, layout="shared", transfer_bytes=4096, block_bytes=4096 * asked.operations
        )
        block = asked.block_mib << 20
        patterns = {f"1 rank, {asked.operations} transfers of 4 KiB": small}
        for layout in ("shared", "file-per-process"):
            patterns[f"{asked.ranks} ranks, {layout}, {asked.block_mib} of 1 MiB each"] = Pattern(
                ranks=asked.ranks, layout=layout, transfer_bytes=1 << 20, block_bytes=block
            )
        for title, pattern in patterns.items():
            print(f"{title}, {asked.directory}, {asked.rounds} rounds")
            for method, name in IOR_NAMES.items():
                if name not in apis:
                    print(f"SKIPPED: {method}: this ior was built without {name}")
                elif f"{method} " not in listed or "unavailable" in listed.split(method)[1][:20]:
                    print(f"SKIPPED: {method}: not in this build of the player")
                else:
                    beside_ior(bench, pattern, method, asked.rounds)


if __name__ == "__main__":
    main()

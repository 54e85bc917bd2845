"""Cost of the player: null overhead per operation, and every method beside IOR.

IOR is taken from $UNDERSTUDY_IOR or from PATH. Both programs do the same: the same ranks, blocks,
transfer sizes and layout, in files made anew ("fresh", with a read-back) and in files that exist
("overwrite", from 4 passes in one process), in turn, so that what the machine does meanwhile
meets both. Overwriting is for POSIX only: IOR truncates through MPI-IO, and HDF5 creates its
datasets anew. A ratio above 1 in bandwidth, and below 1 in CPU, speaks for the player. CPU is
user and system time of all processes, less what the same command takes with one transfer per
rank, divided by the data calls. Both keep their files, which are removed after the run, outside of
what is measured. With --fsync, the file systems are synced before each run, so that no run pays
for what an earlier one removed.
"""

import argparse
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.support import ior, sides
from benchmarks.support.ior import Pattern
from understudy.producers import player

PASSES = 4


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
    ior: str | None  # where it is
    mpiexec: str
    folder: Path
    flush: bool = False  # each file, within the time of the write

    def run(self, ranks: int, command: Sequence[str | Path]) -> sides.Usage:
        """A command on so many ranks."""
        if self.flush:
            os.sync()
        return sides.run(self.folder, [*sides.on_ranks(self.mpiexec, ranks), *command])

    def play(self, pattern: Pattern, method: str, read: bool = True) -> Cost:
        """The player, on fresh files."""
        workload, result = self.folder / "workload.json", self.folder / "result.json"
        workload.write_text(pattern.workload())
        command: list[str | Path] = [self.replay, "-w", workload, "-o", "data", "-a", method]
        command += ["-k", "-O", result, *(["-e"] if self.flush else [])]
        command += ["--restart", "--shift-ranks", "0"] if read else []
        usage = self.run(pattern.ranks, command)
        shutil.rmtree(self.folder / "data", ignore_errors=True)  # of the method null there is none
        streams = player.read(result).repetitions[0].streams
        phases = [p for s in streams for d in s.dumps for p in d.phases]
        seconds = {p.phase: p.elapsed_s for p in phases if p.bytes}
        writes = [p for p in phases if p.phase in ("write", "sync")]
        write_s = max(p.last_end_s for p in writes) - min(p.first_start_s for p in writes)
        moved = {p.phase: p.bytes for p in phases if p.bytes}
        assert set(moved.values()) == {pattern.ranks * pattern.block_bytes}, moved
        return Cost(
            write_s=[write_s],
            read_s=[seconds["read"]] if read else [],
            cpu_s=usage.cpu_s,
            operations=sum(p.operations for p in phases if p.bytes),
        )

    def overwrite(self, pattern: Pattern, method: str) -> Cost:
        """The player's loop over files that exist."""
        workload = self.folder / "workload.json"
        workload.write_text(pattern.workload())
        (self.folder / "data").mkdir(exist_ok=True)
        command: list[str | Path] = [self.rewrite, "-w", workload, "-o", "data", "-a", method]
        command += ["-k", "-i", str(PASSES)]
        usage = self.run(pattern.ranks, command)
        passes = [json.loads(line)["write_s"] for line in usage.out.splitlines()]
        shutil.rmtree(self.folder / "data")
        return Cost(write_s=passes[1:], read_s=[], cpu_s=usage.cpu_s)

    def play_ior(self, pattern: Pattern, method: str, overwrite: bool = False) -> Cost:
        """IOR with the same pattern."""
        assert self.ior
        command = ior.command(self.ior, pattern, method)
        # As the player does, mark each 4 KiB of a transfer; by default all transfers are alike.
        command += ["-l", "incompressible"]
        command += ["-k", *(["-E", "-i", str(PASSES)] if overwrite else ["-r"])]
        command += ["-e"] if self.flush else []
        command += ["-O", "summaryFormat=JSON", "-O", "summaryFile=ior.json"]
        usage = self.run(pattern.ranks, command)
        results = json.loads((self.folder / "ior.json").read_text())["tests"][0]["Results"]
        seconds: dict[str, list[float]] = {"write": [], "read": []}
        for row in results:
            seconds[row["access"]].append(row["wrRdTime"])
        stored = sum(path.stat().st_size for path in self.folder.glob("ior.data*"))
        overhead = stored - pattern.ranks * pattern.block_bytes
        assert overhead >= 0 and (overhead == 0 or method == "hdf5"), overhead
        ior.clear(self.folder)
        writes = seconds["write"][1:] if overwrite else seconds["write"]
        return Cost(write_s=writes, read_s=seconds["read"], cpu_s=usage.cpu_s)


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
    print(f"  elapsed per operation  {sides.spread([s * 1e9 for s in wall], 0)} ns")
    print(f"  CPU per operation      {sides.spread([s * 1e9 for s in cpu], 0)} ns")


def beside_ior(bench: Bench, pattern: Pattern, method: str, rounds: int, metered: bool) -> None:
    """The player and IOR in turn; `metered` adds the runs that CPU needs."""
    rewrites = method == "posix" and not bench.flush
    ratios: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}

    def note(kind: str, ours: list[float], theirs: list[float]) -> None:
        size = pattern.ranks * pattern.block_bytes / (1 << 20)
        ratios.setdefault(kind, []).append(median(theirs) / median(ours))
        rates.setdefault(kind, []).append(size / median(ours))

    def note_cpu(kind: str, seconds: float, passes: int) -> None:
        cpu.setdefault(kind, []).append(seconds / (passes * pattern.operations()))

    single = pattern.single()
    for turn in range(rounds):
        ours, theirs = sides.in_turn(
            turn, lambda: bench.play(pattern, method), lambda: bench.play_ior(pattern, method)
        )
        note("fresh write", ours.write_s, theirs.write_s)
        note("read", ours.read_s, theirs.read_s)
        if not metered:
            continue
        note_cpu("write and read", ours.cpu_s - bench.play(single, method).cpu_s, 2)
        note_cpu("IOR write and read", theirs.cpu_s - bench.play_ior(single, method).cpu_s, 2)
        if not rewrites:
            continue
        ours, theirs = sides.in_turn(
            turn,
            lambda: bench.overwrite(pattern, method),
            lambda: bench.play_ior(pattern, method, True),
        )
        note("overwrite", ours.write_s, theirs.write_s)
        note_cpu("overwrite", ours.cpu_s - bench.overwrite(single, method).cpu_s, PASSES)
        base = bench.play_ior(single, method, True)
        note_cpu("IOR overwrite", theirs.cpu_s - base.cpu_s, PASSES)

    for kind, values in ratios.items():
        text = f"{median(rates[kind]):8.0f} MiB/s, x IOR {sides.spread(values)}"
        print(f"  {method:6} {kind:15} {text}")
    for kind in [k for k in cpu if not k.startswith("IOR")]:
        player_s, ior_s = cpu[kind], cpu[f"IOR {kind}"]
        of = [a / b for a, b in zip(player_s, ior_s, strict=True)]
        text = f"{median(player_s) * 1e6:8.2f} µs CPU per operation, IOR {median(ior_s) * 1e6:.2f}"
        print(f"  {method:6} {kind:15} {text}, x IOR {sides.spread(of)}")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    parser.add_argument("--rounds", type=int, default=6, help="how often all is done in turn")
    parser.add_argument("--operations", type=int, default=131072, help="of 4 KiB, on all ranks")
    parser.add_argument("--block-mib", type=int, default=256, help="per rank, for 1 MiB transfers")
    parser.add_argument("--ranks", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument(
        "--directory",
        type=Path,
        default=sides.memory_folder(),
        help="the file system to write to",
    )
    parser.add_argument("--only", default="", help="patterns whose title has this text")
    parser.add_argument("--methods", default="", help="these only, with commas")
    parser.add_argument(
        "--fresh-only",
        action="store_true",
        help="fresh files beside IOR alone: no overwrites, no CPU time, no null overhead",
    )
    parser.add_argument(
        "--fsync",
        action="store_true",
        help="flush each file, within the time of the write; without overwrites",
    )
    return parser.parse_args()


def patterns(asked: argparse.Namespace) -> dict[str, Pattern]:
    """Small transfers of one rank; small and large ones of all ranks, in two layouts."""
    ranks, each = asked.ranks, asked.operations // asked.ranks
    few = asked.block_mib
    pattern_of = {
        f"1 rank, {asked.operations} transfers of 4 KiB": Pattern(
            ranks=1, layout="shared", transfer_bytes=4096, block_bytes=4096 * asked.operations
        )
    }
    for layout in ("shared", "file-per-process"):
        for size, count, name in ((4096, each, "4 KiB"), (1 << 20, few, "1 MiB")):
            pattern_of[f"{ranks} ranks, {layout}, {count} transfers of {name} each"] = Pattern(
                ranks=ranks, layout=layout, transfer_bytes=size, block_bytes=size * count
            )
    return pattern_of


def main() -> None:
    """Everything, one line per figure."""
    asked = arguments()
    replay, rewrite = (
        sides.program(asked.build, name) for name in ("understudy-replay", "mpi_rewrite")
    )
    mpiexec = sides.launcher()
    ior_program = ior.find()
    with sides.folder_in(asked.directory) as folder:
        bench = Bench(
            replay=replay,
            rewrite=rewrite,
            ior=ior_program,
            mpiexec=mpiexec,
            folder=folder,
            flush=asked.fsync,
        )
        if not asked.fresh_only:
            null_overhead(bench, asked.rounds, asked.operations)
        if not ior_program:
            print(f"SKIPPED: every method beside IOR: {ior.MISSING}")
            return
        chosen = {t: p for t, p in patterns(asked).items() if asked.only in t}
        for title, pattern in chosen.items():
            flushed = ", flushed" if asked.fsync else ""
            print(f"{title}, {asked.directory}{flushed}, {asked.rounds} rounds")
            for method in ior.methods(ior_program, replay):
                if method in (asked.methods or method).split(","):
                    beside_ior(bench, pattern, method, asked.rounds, not asked.fresh_only)


if __name__ == "__main__":
    main()

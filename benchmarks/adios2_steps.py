"""The player's method adios2 beside a bare loop over ADIOS2: one step of a new file, in turn.

Both put the same blocks in the same transfers, by the same engine with the same parameters, from
memory that was filled before, and are timed from the first rank's open to the last rank's close.
A ratio above 1 in bandwidth speaks for the player.
"""

import argparse
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.support import sides
from benchmarks.support.ior import Pattern
from understudy.producers import player

MIB = 1 << 20
LOOP = Path(__file__).with_name("adios2_loop")
# Options of the player, and the same as the library's parameters.
CASES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "BP5": ({}, {}),
    "BP5 sync": ({"put": "sync"}, {}),
    "BP5 EveryoneWrites": (
        {"aggregation_type": "EveryoneWrites"},
        {"AggregationType": "EveryoneWrites"},
    ),
    "BP4": ({}, {}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The programs, and where the files go."""

    replay: Path
    loop: Path
    mpiexec: str
    folder: Path

    def run(self, ranks: int, command: Sequence[str | Path]) -> sides.Usage:
        """A command on so many ranks, once nothing waits to be written."""
        os.sync()
        return sides.run(self.folder, [*sides.on_ranks(self.mpiexec, ranks), *command])

    def play(self, pattern: Pattern, case: str) -> float:
        """Seconds of the player."""
        given, _ = CASES[case]
        workload, result = self.folder / "workload.json", self.folder / "result.json"
        workload.write_text(pattern.workload())
        command: list[str | Path] = [self.replay, "-w", workload, "-o", "data", "-a", "adios2"]
        for key, value in {"engine": case.partition(" ")[0], **given}.items():
            command += ["-m", f"adios2.{key}={value}"]
        self.run(pattern.ranks, [*command, "-O", result])
        (dump,) = player.read(result).repetitions[0].streams[0].dumps
        expected = pattern.ranks * pattern.block_bytes
        assert sum(p.bytes for p in dump.phases) == expected, dump.phases
        last = max(p.last_end_s for p in dump.phases)
        return last - min(p.first_start_s for p in dump.phases)

    def play_bare(self, pattern: Pattern, case: str) -> float:
        """Seconds of the loop."""
        given, parameters = CASES[case]
        command: list[str | Path] = [self.loop, "loop.bp", str(pattern.block_bytes)]
        command += [str(pattern.transfer_bytes), given.get("put", "deferred")]
        command += [case.partition(" ")[0], *(f"{k}={v}" for k, v in parameters.items())]
        usage = self.run(pattern.ranks, command)
        stored = sum(p.stat().st_size for p in (self.folder / "loop.bp").iterdir())
        assert stored > pattern.ranks * pattern.block_bytes, stored
        shutil.rmtree(self.folder / "loop.bp")
        return float(usage.out.split()[-1])


def beside(bench: Bench, pattern: Pattern, case: str, rounds: int) -> None:
    """One case: both in turn."""
    ours, theirs = [], []
    for turn in range(rounds):
        a, b = sides.in_turn(
            turn, lambda: bench.play(pattern, case), lambda: bench.play_bare(pattern, case)
        )
        ours.append(a)
        theirs.append(b)
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    rate = pattern.ranks * pattern.block_bytes / MIB / median(ours)
    medians = median(theirs) / median(ours)
    print(f"  {case:20} {rate:6.0f} MiB/s, x loop {sides.spread(ratios)}, medians {medians:.2f}")


def built_loop(folder: Path) -> Path | None:
    """The loop, built in the folder; None where ADIOS2 is missing."""
    for step in (["-S", LOOP, "-B", folder], ["--build", folder]):
        done = subprocess.run(["cmake", *step], capture_output=True, text=True)
        if done.returncode != 0:
            return None
    return folder / "adios2_loop"


def main() -> None:
    """Every case, one line each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=sides.ROOT / "build", help="CMake's folder")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--ranks", type=int, default=min(4, os.cpu_count() or 1))
    parser.add_argument("--block-mib", type=int, default=256, help="of a rank")
    parser.add_argument("--transfer-mib", type=int, default=16)
    parser.add_argument("--directory", type=Path, default=sides.memory_folder())
    parser.add_argument("--only", default="", help="cases whose name has this text")
    asked = parser.parse_args()
    replay, mpiexec = sides.program(asked.build, "understudy-replay"), sides.launcher()
    pattern = Pattern(
        ranks=asked.ranks,
        layout="shared",
        transfer_bytes=asked.transfer_mib * MIB,
        block_bytes=asked.block_mib * MIB,
    )
    with sides.folder_in(asked.directory) as folder:
        loop = built_loop(folder / "build")
        if loop is None:
            print("SKIPPED: CMake builds no loop over ADIOS2: give ADIOS2_ROOT")
            return
        bench = Bench(replay=replay, loop=loop, mpiexec=mpiexec, folder=folder)
        print(f"{asked.ranks} ranks, {asked.block_mib} MiB each, {asked.rounds} rounds")
        for case in (name for name in CASES if asked.only in name):
            beside(bench, pattern, case, asked.rounds)


if __name__ == "__main__":
    main()

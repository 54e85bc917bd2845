"""CPU time of reading a small file: the player's layout flood beside a loop that does only that.

Both open, read and close the same number of files of the same size, in directories of the same
size, on as many processes. Each program runs with few and with many passes over its files; the
difference over the files that it read more is what one file costs, so that starting ranks and
creating files are left out. CPU is user and system time of all processes. A ratio below 1 speaks
for the player. "shuffled" reads in another order: the player computes it, the loop keeps a list.
"""

import argparse
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support import sides
from understudy.contracts.workload import Dump, Order, Pattern, Variable

SOURCE = Path(__file__).parent / "support" / "smallfiles.c"
ORDERS = {"consecutive": Order(), "shuffled": Order(rule="shuffled", seed=1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The programs, where the files go, and how many there are."""

    replay: Path
    loop: Path
    mpiexec: str
    folder: Path
    ranks: int
    files: int
    file_bytes: int
    per_directory: int

    def player_s(self, order: str, passes: int) -> float:
        """CPU seconds of a run of the player."""
        rows = Variable(name="v", type="byte", shape=(self.files, self.file_bytes))
        stream = Pattern(
            name="files",
            role="input",
            operation="read",
            files="new",
            layout="flood",
            method="posix",
            transfer_bytes=self.file_bytes,
            passes=passes,
            order=ORDERS[order],
            files_per_directory=self.per_directory,
            dumps=(Dump(time_s=0, variables=(rows,)),),
        )
        workload = self.folder / "workload.json"
        workload.write_text(sides.workload(self.ranks, stream))
        command = [*sides.on_ranks(self.mpiexec, self.ranks), self.replay, "-w", workload]
        return sides.run(self.folder, [*command, "-o", "data", "-O", "result.json"]).cpu_s

    def make(self) -> None:
        """The loop's files."""
        (self.folder / "loop").mkdir()
        self.loop_s("consecutive", 0)

    def loop_s(self, order: str, passes: int) -> float:
        """CPU seconds of a run of the loop."""
        numbers = (self.ranks, self.files, self.file_bytes, self.per_directory, passes)
        command = [self.loop, self.folder / "loop", *map(str, numbers)]
        return sides.run(self.folder, [*command, str(int(order == "shuffled"))]).cpu_s


def compare(bench: Bench, order: str, rounds: int, passes: tuple[int, int]) -> None:
    """A line about one order."""
    few, many = passes
    ours, theirs = [], []

    def each(run: Callable[[str, int], float]) -> float:
        low, high = run(order, few), run(order, many)
        return (high - low) / ((many - few) * bench.files) * 1e6

    for turn in range(rounds):
        player_us, loop_us = sides.in_turn(
            turn, lambda: each(bench.player_s), lambda: each(bench.loop_s)
        )
        ours.append(player_us)
        theirs.append(loop_us)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    print(
        f"{bench.files} files of {bench.file_bytes} B, {order:11}: player "
        f"{sides.spread(ours)} us of CPU per file, loop {sides.spread(theirs)} us, "
        f"ratio {sides.spread(ratios)}",
        flush=True,
    )


def main() -> None:
    """Both orders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    parser.add_argument("--rounds", type=int, default=7, help="runs of each program")
    parser.add_argument("--ranks", type=int, default=4, help="processes")
    parser.add_argument("--files", type=int, default=100_000, help="files in a pass")
    parser.add_argument("--bytes", type=int, default=4096, help="bytes of a file")
    parser.add_argument("--per-directory", type=int, default=1000, help="files of a directory")
    parser.add_argument("--folder", type=Path, help="where files go (default: memory)")
    asked = parser.parse_args()
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        print("SKIPPED: no C compiler on PATH")
        return
    with sides.folder_in(asked.folder or sides.memory_folder()) as folder:
        loop = folder / "smallfiles"
        sides.run(folder, [compiler, "-O2", "-o", loop, SOURCE])
        bench = Bench(
            replay=sides.program(asked.build, "understudy-replay"),
            loop=loop,
            mpiexec=sides.launcher(),
            folder=folder,
            ranks=asked.ranks,
            files=asked.files,
            file_bytes=asked.bytes,
            per_directory=asked.per_directory,
        )
        bench.make()
        for order in ORDERS:
            compare(bench, order, asked.rounds, (1, 6))


if __name__ == "__main__":
    main()

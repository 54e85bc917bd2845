"""The player beside MACSio: the same HDF5 files, dump by dump.

MACSio is taken from $UNDERSTUDY_MACSIO or from PATH, and must have its HDF5 plugin. It runs once
to see which datasets it writes; from these (read by h5ls) a workload is made with the same number
of files, datasets, element types, blocks per rank and calls. Then both write it in turn. SIF is
one file that all ranks share, written collectively; MIF is a number of files on each of which
ranks take turns. In MIF dumps grow (--dataset_growth); in SIF they do not, since MACSio then
writes from behind the end of its last array.

* whole: seconds from starting the command to its end, less the same with variables of 1 KiB, that
  is, contents made, dumped and grown, without the start of MPI
* sequence: seconds from the start of the first dump to the end of the last, with what lies
  between: by MACSio's log, and from the first start to the last end in the player's result
* dumps: seconds within dumps alone, from open to close; MACSio's are the sum of its slowest rank
* CPU: user and system seconds of all processes, less those with variables of 1 KiB
* peak: the most memory that one process had

The cost of contents is the CPU seconds that making them takes on one rank, per byte: MACSio with
no dump (--num_dumps 0), less the same with variables of 1 KiB; the player by its method null,
which counts its bookkeeping too, with many repetitions less one. Ratios above 1 speak for the
player. The default number and size of variables are those of the MACSio runs behind mphys-e.
"""

import argparse
import math
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from benchmarks.support import sides
from understudy.contracts.workload import TYPE_BYTES, Decomposition, Dump, Pattern, Variable, runs
from understudy.producers import player

CASES = ((1, "SIF", 1), (2, "SIF", 1), (4, "SIF", 1), (1, "MIF", 1), (2, "MIF", 2), (4, "MIF", 2))
TINY_BYTES = 1024
HEADERS_BYTES = 1024  # more than HDF5 needs for the headers of a dataset or a group; 8 of a file
REPETITIONS = 1001
SECONDS = {"secs": 1.0, "msecs": 1e-3, "usecs": 1e-6}
TYPES = {"native double": "f64", "native int": "i32"}
DATASET = re.compile(r"^(\S+) +Dataset \{(.*)\}(?:.*\n)*? +Type: +(.*)\n", re.M)
DUMP = re.compile(r"Dump \d+ BW:.*?/ *([0-9.]+) (\w+) =")
SEQUENCE = re.compile(r"Last finisher - First starter = *([0-9.]+) (\w+);")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Sizes and layout that both programs write."""

    ranks: int
    mode: str
    files: int
    dumps: int
    variables: int
    part_bytes: int
    growth: float

    def title(self) -> str:
        """A line for a person."""
        return (
            f"{self.mode} {self.files}, ranks: {self.ranks}, dumps: {self.dumps}, "
            f"{self.variables} variables of {self.part_bytes} B per rank, growth {self.growth}"
        )

    def tiny(self) -> "Case":
        """The same with next to no bytes, and none to grow by."""
        return replace(self, part_bytes=TINY_BYTES, growth=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One run; see the text at the top."""

    sequence_s: float
    dumps_s: float
    usage: sides.Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset of an HDF5 file; the rank is MACSio's domain, or None in a shared file."""

    name: str
    rank: int | None
    type: str
    shape: tuple[int, ...]


def datasets(folder: Path, path: Path) -> list[Dataset]:
    """The datasets of a file, in h5ls' order."""
    listed = []
    for name, extent, kind in DATASET.findall(sides.run(folder, ["h5ls", "-rv", path]).out):
        parts = name.strip("/").split("/")
        rank = int(parts[0].removeprefix("domain_")) if len(parts) > 1 else None
        if kind not in TYPES:
            sys.exit(f"{path}: {name} has the type {kind}, expected {' or '.join(TYPES)}")
        shape = tuple(int(n.split("/")[0]) for n in extent.split(", "))
        listed.append(Dataset(name=parts[-1], rank=rank, type=TYPES[kind], shape=shape))
    return listed


def shared_variables(listed: list[Dataset]) -> list[Variable]:
    """Datasets of a shared file. MACSio's cells are one fewer than its nodes on every part."""
    nodes = max(d.shape for d in listed)
    cells = min(d.shape for d in listed)
    grid = tuple(n - c for n, c in zip(nodes, cells, strict=True))
    rule = Decomposition(rule="grid", grid=grid)
    return [Variable(name=d.name, type=d.type, shape=d.shape, decomposition=rule) for d in listed]


def own_variables(listed: list[Dataset], ranks: int) -> list[Variable]:
    """Datasets of ranks of their own: where shapes differ, they count as rows of elements."""
    variables = []
    for name in dict.fromkeys(d.name for d in listed):
        like = {d.rank: d for d in listed if d.name == name}
        first = next(iter(like.values()))
        if len(like) == ranks and all(d.shape == first.shape for d in like.values()):
            shape = (first.shape[0] * ranks, *first.shape[1:])
            variables.append(Variable(name=name, type=first.type, shape=shape))
            continue
        rows = [math.prod(like[rank].shape) if rank in like else 0 for rank in range(ranks)]
        rule = runs((1, n) for n in rows)
        variables.append(
            Variable(name=name, type=first.type, shape=(sum(rows),), decomposition=rule)
        )
    return variables


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The programs, and where the files go."""

    replay: Path
    macsio: str
    mpiexec: str
    folder: Path

    def start_macsio(self, case: Case) -> sides.Usage:
        """MACSio; its files and logs are in the folder then."""
        command = [self.macsio, "--interface", "hdf5", "--avg_num_parts", "1"]
        command += ["--parallel_file_mode", case.mode, str(case.files)]
        command += ["--num_dumps", str(case.dumps), "--part_size", str(case.part_bytes)]
        command += ["--vars_per_part", str(case.variables), "--dataset_growth", str(case.growth)]
        return sides.run(self.folder, [*sides.on_ranks(self.mpiexec, case.ranks), *command])

    def play_macsio(self, case: Case) -> Cost:
        """MACSio on fresh files, which are removed again."""
        usage = self.start_macsio(case)
        log = (self.folder / "macsio-log.log").read_text().replace("\0", "")
        (sequence,) = SEQUENCE.findall(log)
        spans = [float(number) * SECONDS[unit] for number, unit in DUMP.findall(log)]
        if len(spans) != case.ranks * case.dumps:
            sys.exit(f"macsio-log.log: {len(spans)} dumps, expected {case.ranks * case.dumps}")
        ranks = [spans[k : k + case.dumps] for k in range(0, len(spans), case.dumps)]
        self.clear()
        return Cost(
            sequence_s=float(sequence[0]) * SECONDS[sequence[1]],
            dumps_s=max(sum(rank) for rank in ranks),
            usage=usage,
        )

    def learn(self, case: Case) -> Pattern:
        """The dumps that MACSio writes, as a stream for the player."""
        self.start_macsio(case)
        dumps, stored, headers = [], 0, 0
        for k in range(case.dumps):
            paths = sorted(self.folder.glob(f"macsio_hdf5_*{k:03d}.h5"))
            if len(paths) != case.files:
                sys.exit(f"{case.title()}: dump {k} has {len(paths)} files")
            stored += sum(path.stat().st_size for path in paths)
            listed = [d for path in paths for d in datasets(self.folder, path)]
            headers += HEADERS_BYTES * (len(listed) + case.ranks + 8 * len(paths))
            variables = (
                shared_variables(listed)
                if case.mode == "SIF"
                else own_variables(listed, case.ranks)
            )
            dumps.append(Dump(time_s=k, variables=tuple(variables)))
        self.clear()
        stream = Pattern(
            name="macsio",
            role="checkpoint",
            operation="write",
            files="new",
            layout="shared" if case.mode == "SIF" else "grouped",
            groups=None if case.mode == "SIF" else case.files,
            method="hdf5",
            transfer_bytes=case.part_bytes + max(TYPE_BYTES.values()),
            collective=case.mode == "SIF",
            turns=case.mode == "MIF",
            dumps=tuple(dumps),
        )
        if not 0 <= stored - stream.bytes < headers:
            sys.exit(f"{case.title()}: {stored} B stored, {stream.bytes} B in datasets")
        return stream

    def play(self, case: Case, stream: Pattern, *options: str) -> Cost:
        """The player on fresh files, which it removes again."""
        workload, result = self.folder / "workload.json", self.folder / "result.json"
        workload.write_text(sides.workload(case.ranks, stream))
        command: list[str | Path] = [self.replay, "-w", workload, "-o", "data", "-O", result]
        command += ["--time-scale", "0", *options]
        usage = sides.run(self.folder, [*sides.on_ranks(self.mpiexec, case.ranks), *command])
        (played,) = player.read(result).repetitions[0].streams
        if played.bytes != stream.bytes:
            sys.exit(f"{case.title()}: {played.bytes} B played, expected {stream.bytes}")
        phases = [p for d in played.dumps for p in d.phases]
        return Cost(
            sequence_s=max(p.last_end_s for p in phases) - min(p.first_start_s for p in phases),
            dumps_s=sum(d.elapsed_s for d in played.dumps),
            usage=usage,
        )

    def clear(self) -> None:
        """Removes what MACSio wrote."""
        for path in self.folder.glob("macsio*"):
            path.unlink()


def whole(costs: tuple[Cost, Cost]) -> float:
    """Milliseconds of the command, less those of the tiny one."""
    return (costs[0].usage.elapsed_s - costs[1].usage.elapsed_s) * 1e3


def cpu(costs: tuple[Cost, Cost]) -> float:
    """Milliseconds of CPU, less those of the tiny command."""
    return (costs[0].usage.cpu_s - costs[1].usage.cpu_s) * 1e3


FIGURES: dict[str, tuple[Callable[[tuple[Cost, Cost]], float], str]] = {
    "whole": (whole, "ms"),
    "sequence": (lambda costs: costs[0].sequence_s * 1e3, "ms"),
    "dumps": (lambda costs: costs[0].dumps_s * 1e3, "ms"),
    "CPU": (cpu, "ms"),
    "peak": (lambda costs: costs[0].usage.peak_bytes / (1 << 20), "MiB"),
}


def beside_macsio(bench: Bench, case: Case, rounds: int) -> None:
    """Both in turn, one line per figure."""
    stream, little = bench.learn(case), bench.learn(case.tiny())
    print(f"{case.title()}: {stream.bytes / (1 << 20):.0f} MiB", flush=True)

    def ours() -> tuple[Cost, Cost]:
        return bench.play(case, stream), bench.play(case.tiny(), little)

    def theirs() -> tuple[Cost, Cost]:
        return bench.play_macsio(case), bench.play_macsio(case.tiny())

    pairs = [sides.in_turn(turn, ours, theirs) for turn in range(rounds)]
    for name, (figure, unit) in FIGURES.items():
        player_figures, macsio_figures = (
            [figure(side) for side in both] for both in zip(*pairs, strict=True)
        )
        ratio = sides.spread([b / a for a, b in zip(player_figures, macsio_figures, strict=True)])
        text = f"{median(player_figures):8.0f} {unit}, MACSio {median(macsio_figures):.0f}"
        print(f"  {name:9} {text}, MACSio / ours {ratio}", flush=True)


def contents(bench: Bench, case: Case, rounds: int) -> None:
    """Compare the CPU time to generate one dump's contents."""
    none = replace(case, dumps=0)
    stream = bench.learn(case)
    again = ["-a", "null", "-i", str(REPETITIONS)]

    def ours() -> float:
        many = bench.play(case, stream, *again).usage.cpu_s
        return (many - bench.play(case, stream, "-a", "null").usage.cpu_s) / (REPETITIONS - 1)

    def theirs() -> float:
        return bench.start_macsio(none).cpu_s - bench.start_macsio(none.tiny()).cpu_s

    pairs = [sides.in_turn(turn, ours, theirs) for turn in range(rounds)]
    bench.clear()
    player_ns, macsio_ns = (
        [s / stream.bytes * 1e9 for s in side] for side in zip(*pairs, strict=True)
    )
    ratio = sides.spread([b / a for a, b in zip(player_ns, macsio_ns, strict=True)], 0)
    print(f"contents, 1 rank, {stream.bytes / (1 << 20):.0f} MiB, CPU ns per byte")
    print(f"  ours {median(player_ns):.5f}, MACSio {median(macsio_ns):.3f}, MACSio / ours {ratio}")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    parser.add_argument("--rounds", type=int, default=6, help="how often all is done in turn")
    parser.add_argument("--dumps", type=int, default=4)
    parser.add_argument("--variables", type=int, default=43)
    parser.add_argument("--part-bytes", type=int, default=2276448, help="of a variable, per rank")
    parser.add_argument("--growth", type=float, default=1.2, help="MACSio's --dataset_growth")
    parser.add_argument(
        "--directory",
        type=Path,
        default=sides.memory_folder(),
        help="the file system to write to",
    )
    return parser.parse_args()


def main() -> None:
    """Everything, one line per figure."""
    asked = arguments()
    replay, mpiexec = sides.program(asked.build, "understudy-replay"), sides.launcher()
    macsio = shutil.which(os.environ.get("UNDERSTUDY_MACSIO", "macsio"))
    if not macsio:
        print("SKIPPED: all beside MACSio: no macsio on PATH nor in $UNDERSTUDY_MACSIO")
        return
    if not shutil.which("h5ls"):
        print("SKIPPED: all beside MACSio: no h5ls on PATH (Debian: hdf5-tools)")
        return
    with sides.folder_in(asked.directory) as folder:
        bench = Bench(replay=replay, macsio=macsio, mpiexec=mpiexec, folder=folder)
        if '"hdf5"' not in sides.run(folder, [macsio, "--interface", "list"]).out:
            print("SKIPPED: all beside MACSio: this macsio was built without HDF5")
            return
        first = Case(
            ranks=1,
            mode="MIF",
            files=1,
            dumps=1,
            variables=asked.variables,
            part_bytes=asked.part_bytes,
            growth=1,
        )
        contents(bench, first, asked.rounds)
        for ranks, mode, files in CASES:
            # MIF: each rank adds the growth of its whole file.
            growth = 1.0 if mode == "SIF" else 1 + (asked.growth - 1) * files / ranks
            case = replace(first, ranks=ranks, mode=mode, files=files, dumps=asked.dumps)
            beside_macsio(bench, replace(case, growth=round(growth, 4)), asked.rounds)


if __name__ == "__main__":
    main()

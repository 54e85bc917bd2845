"""Transfers in flight: the player beside fio and IOR, in turn, each pattern at each depth.

    PYTHONPATH=python:. python benchmarks/queue_depth.py [--rounds N] [--directory DIR] [--print]

One process each: transfers of 4 KiB, 64 KiB and 1 MiB, in order or shuffled, into a file made anew
("write"), over one that is there ("overwrite"), and read, past the page cache (O_DIRECT) or
through it. fio has registered buffers and files with io_uring, and measures latencies, as the
player does. CPU is user and system time of the whole process with its kernel threads, less that
of the same command with two transfers, divided by the transfers. Ratios above 1 in bandwidth, and
below 1 in CPU, speak for the player; pairs of programs with one depth are held beside each other
at depth 1 alone. The table goes to benchmarks/measured/ and to the page of results; everything
takes hours, options choose less, whose rows replace theirs in the table.
"""

import argparse
import csv
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.support import ior, sides
from understudy.producers import player

DEPTHS, SIZES = (1, 4, 16, 64), (4096, 65536, 1 << 20)
MOST_BYTES = {4096: 32 << 20, 65536: 128 << 20, 1 << 20: 512 << 20}
FEW = 2  # transfers of a run whose cost is that of a start
KINDS = ("write", "overwrite", "read")
TABLE = sides.ROOT / "benchmarks" / "measured" / "queue_depth.csv"
PAGE = sides.ROOT / "docs" / "results" / "benchmarks.md"
BEGIN, END = "<!-- queue_depth.csv -->\n", "<!-- end of queue_depth.csv -->\n"
# Ours, theirs; without a depth of its own a program is compared at depth 1. The second is the
# control: the same command twice in each round.
PAIRS = (
    ("player uring", "fio io_uring"),
    ("fio io_uring again", "fio io_uring"),
    ("player uring", "fio libaio"),
    ("player uring", "IOR AIO"),
    ("player posix", "fio psync"),
    ("player posix", "IOR POSIX"),
    ("player mpiio", "IOR MPIIO"),
)
WITHOUT_DEPTH = {"posix", "mpiio", "psync", "POSIX", "MPIIO"}
LEAST_DEPTH = {"AIO": 8}  # IOR refuses fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """How one file is moved."""

    depth: int
    transfer_bytes: int
    shuffled: bool
    direct: bool
    transfers: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.transfers * self.transfer_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of one kind of transfers, in one run."""

    bytes_per_s: float
    cpu_s: float  # of a transfer


Costs = dict[str, Cost]


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What is compared, and where the files go."""

    replay: Path
    fio: str | None
    ior: str | None
    folder: Path

    def meter(self, command: Sequence[str | Path]) -> sides.Usage:
        """A run that pays for nothing that earlier ones left to the file system."""
        os.sync()
        return sides.run(self.folder, command)

    def player(self, case: Case, method: str) -> Costs:
        """The player: one dump, over one that has been flushed, and one that is read back."""

        def play(case: Case, dumps: str = "w", *more: str) -> tuple[list[float], float]:
            workload, result = self.folder / "workload.json", self.folder / "result.json"
            workload.write_text(json.dumps(_program(case, dumps)))
            data = tempfile.mkdtemp(prefix="data-", dir=self.folder)
            command: list[str | Path] = [self.replay, "-w", workload, "-o", data, "-a", method]
            command += ["-k", "-O", result, *_options(case, method), *more]
            usage = self.meter(command)
            streams = player.read(result).repetitions[0].streams
            phases = [p for s in streams for d in s.dumps for p in d.phases if p.bytes]
            return [p.elapsed_s for p in phases], usage.cpu_s

        def more(case: Case, dumps: str, *options: str) -> tuple[float, float]:
            """Seconds of the last phase, and CPU seconds that it adds to the dump before it."""
            *_, seconds = (done := play(case, dumps, *options))[0]
            return seconds, done[1] - play(case, dumps[:1])[1]

        few = replace(case, transfers=FEW)
        _, start_s = play(few)
        (write_s,), write_cpu_s = play(case)
        over_s, over_cpu_s = more(case, "fw")
        read_s, read_cpu_s = more(case, "w", "--restart", "--shift-ranks", "0")
        return {
            "write": _cost(case, write_s, write_cpu_s - start_s),
            "overwrite": _cost(case, over_s, over_cpu_s - more(few, "fw")[1]),
            "read": _cost(case, read_s, read_cpu_s - more(few, "w", "--restart")[1]),
        }

    def _one_by_one(
        self, case: Case, once: Callable[[Case, str], tuple[float, float]], name: str
    ) -> Costs:
        """A program that makes one pass per run, over the file `name`."""
        _, start_s = once(replace(case, transfers=FEW), "write")
        (self.folder / name).unlink()
        costs = {}
        for kind in KINDS:
            seconds, cpu_s = once(case, kind)
            costs[kind] = _cost(case, seconds, cpu_s - start_s)
        return costs

    def play_fio(self, case: Case, engine: str) -> Costs:
        """fio with one job."""

        def once(case: Case, kind: str) -> tuple[float, float]:
            doing = "read" if kind == "read" else "write"
            words = [str(self.fio), "--name=bench", "--filename=fio.data", "--thread"]
            words += [f"--size={case.size}", f"--bs={case.transfer_bytes}"]
            words += [f"--rw={'rand' if case.shuffled else ''}{doing}", f"--ioengine={engine}"]
            words += [f"--iodepth={case.depth}", f"--direct={int(case.direct)}", "--invalidate=0"]
            words += ["--fallocate=none", "--output-format=json"]
            words += ["--fixedbufs", "--registerfiles"] if engine == "io_uring" else []
            usage = self.meter(words)
            job = json.loads(usage.out[usage.out.index("{") :])["jobs"][0][doing]
            assert job["io_bytes"] == case.size, job["io_bytes"]
            return max(job["runtime"], 1) / 1e3, usage.cpu_s

        return self._one_by_one(case, once, "fio.data")

    def play_ior(self, case: Case, backend: str) -> Costs:
        """IOR on one rank."""

        def once(case: Case, kind: str) -> tuple[float, float]:
            words = [str(self.ior), "-a", backend, "-o", "ior.data", "-k", "-l", "incompressible"]
            words += ["-t", str(case.transfer_bytes), "-b", str(case.size)]
            words += {"write": ["-w"], "overwrite": ["-w", "-E"], "read": ["-r"]}[kind]
            words += ["-z"] if case.shuffled else []
            words += ["--posix.odirect"] if case.direct else []
            if backend == "AIO":
                words += [f"--aio.max-pending={case.depth}", "--aio.granularity=1"]
            words += ["-O", "summaryFormat=JSON", "-O", "summaryFile=ior.json"]
            usage = self.meter(words)
            (row,) = json.loads((self.folder / "ior.json").read_text())["tests"][0]["Results"]
            return row["wrRdTime"], usage.cpu_s

        return self._one_by_one(case, once, "ior.data")

    def lacking(self, side: str) -> str:
        """Why the side cannot run here; "" where it can."""
        program, how, *_ = side.split()
        if program == "IOR":
            if not self.ior:
                return ior.MISSING
            text = subprocess.run([self.ior, "-h"], capture_output=True, text=True).stdout
            return "" if how in text else f"this ior was built without {how}"
        if program == "fio":
            if not self.fio:
                return "no fio on PATH"
            engines = subprocess.run([self.fio, "--enghelp"], capture_output=True, text=True)
            return "" if how in engines.stdout.split() else f"this fio has no {how}"
        listed = subprocess.run([self.replay, "--list"], capture_output=True, text=True).stdout
        row = next((line for line in listed.splitlines() if line.split()[:1] == [how]), "")
        return "" if row and "unavailable" not in row else f"this player has no method {how}"

    def run(self, side: str, case: Case) -> Costs:
        """One side of a pair."""
        program, how, *_ = side.split()
        meter = {"player": self.player, "fio": self.play_fio, "IOR": self.play_ior}[program]
        costs = meter(case, how)
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        os.sync()
        return costs


def _cost(case: Case, seconds: float, cpu_s: float) -> Cost:
    return Cost(bytes_per_s=case.size / seconds, cpu_s=cpu_s / case.transfers)


def _program(case: Case, dumps: str) -> dict[str, object]:
    """A workload of one rank that writes the same file in each dump, and flushes it in an "f"."""
    move: dict[str, object] = {"write": "data", "type": "byte", "shape": [case.size]}
    move["transfer_bytes"] = case.transfer_bytes
    if case.shuffled:
        move["order"] = {"rule": "shuffled", "seed": 1}
    begin = ["begin", {"open": "file", "mode": "keep"}, move]
    steps = [
        {"at": 0.001 * i, "do": [*begin, *(["sync"] if dump == "f" else []), "close"]}
        for i, dump in enumerate(dumps)
    ]
    return {
        "schema": "understudy/workload/3",
        "name": "bench",
        "description": "",
        "ranks": 1,
        "scaling": {"rule": "none", "from_ranks": 1},
        "runtime_s": None,
        "compute": "sleep",
        "sets": [{"name": "file", "of": "all ranks", "index": 1}],
        "streams": [{"name": "bench", "role": "checkpoint", "method": "posix", "steps": steps}],
        "source": {"format": "hand", "version": "", "reader": "", "notes": []},
        "provenance": [],
    }


def _options(case: Case, method: str) -> list[str]:
    """The player's options of a case."""
    words = []
    if method == "uring":
        words += ["-m", f"uring.depth={case.depth}"]
    if case.direct and method != "mpiio":
        words += ["-m", f"{method}.direct=yes"]
    return words


def _has_depth(how: str, case: Case) -> bool:
    """Can the method, engine or backend have so many transfers in flight?"""
    return case.depth == 1 if how in WITHOUT_DEPTH else case.depth >= LEAST_DEPTH.get(how, 1)


def compare(
    programs: Programs, pairs: Sequence[tuple[str, str]], case: Case, rounds: int
) -> Iterable[list[str]]:
    """Rows of the table: all pairs, every side once in each round, in turning order."""
    at_depth = [pair for pair in pairs if all(_has_depth(s.split()[1], case) for s in pair)]
    if case.direct:
        at_depth = [pair for pair in at_depth if "mpiio" not in pair[0]]
    names = list(dict.fromkeys(itertools.chain.from_iterable(at_depth)))
    taken: dict[str, list[Costs]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in names if turn % 2 == 0 else reversed(names):
            taken[name].append(programs.run(name, case))
    for (ours, theirs), kind in itertools.product(at_depth, KINDS):
        pairs_of = [(a[kind], b[kind]) for a, b in zip(taken[ours], taken[theirs], strict=True)]
        yield [
            kind,
            ours,
            theirs,
            sides.spread([a.bytes_per_s / 2**20 for a, _ in pairs_of], 0),
            sides.spread([a.bytes_per_s / b.bytes_per_s for a, b in pairs_of]),
            sides.spread([a.cpu_s * 1e6 for a, _ in pairs_of]),
            _ratio([(a.cpu_s, b.cpu_s) for a, b in pairs_of]),
        ]


def _ratio(pairs_of: Sequence[tuple[float, float]]) -> str:
    """The spread of ratios; none where a start costs as much as a run."""
    return (
        sides.spread([a / b for a, b in pairs_of]) if min(map(min, pairs_of)) > 0 else "undecided"
    )


HEAD = ["file system", "cache", "bytes", "order", "depth", "kind", "player", "beside"]
COMPARED = len(HEAD)  # columns that say what is compared
HEAD += ["MiB/s", "bandwidth, ratio", "CPU µs per transfer", "CPU, ratio"]


def page(rows: Sequence[Sequence[str]]) -> str:
    """The table of the page of results, from io_uring beside fio's: a column for each depth."""
    depths = sorted({int(row[4]) for row in rows})
    cells: dict[tuple[str, ...], dict[int, str]] = {}
    for row in rows:
        system, cache, size, order, depth, kind, ours, theirs, _, bandwidth, _, cpu = row
        if (ours, theirs) == PAIRS[0]:
            key = (f"{system}, {cache}", size, f"{order} {kind}")
            cells.setdefault(key, {})[int(depth)] = f"{_bare(bandwidth)}, {_bare(cpu)}"
    lines = [f"| files | bytes | transfers | {' | '.join(f'depth {d}' for d in depths)} |"]
    lines += ["|---|---|---|" + "---|" * len(depths)]
    for key, of in cells.items():
        lines.append(f"| {' | '.join([*key, *(of.get(d, '') for d in depths)])} |")
    return "\n".join(lines) + "\n"


def _bare(spread: str) -> str:
    """The median of a spread."""
    return spread.split()[0]


def write(new: Sequence[Sequence[str]], note: str) -> None:
    """The rows to the table of the measured ones, in place of those of the same comparisons and
    beside all others, and to the page between its marks."""
    lines = TABLE.read_text().splitlines()
    notes = [line for line in lines if line.startswith("#")]
    _, *old = csv.reader(lines[len(notes) :])
    rows = list({tuple(row[:COMPARED]): row for row in [*old, *new]}.values())
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([HEAD, *rows])
    TABLE.write_text("\n".join([*notes, note, text.getvalue()]))
    before, rest = PAGE.read_text().split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}{page(rows)}{END}{after}")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=sides.ROOT / "build")
    parser.add_argument("--rounds", type=int, default=11, help="how often all is done in turn")
    parser.add_argument(
        "--directory",
        type=Path,
        nargs="+",
        default=[Path("/var/tmp"), sides.memory_folder()],
        help="the file systems to write to",
    )
    parser.add_argument("--depths", type=int, nargs="+", default=DEPTHS)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--orders", nargs="+", default=["sequential", "random"])
    parser.add_argument("--caches", nargs="+", default=["direct", "buffered"])
    parser.add_argument("--beside", nargs="+", help='these programs only, such as "fio io_uring"')
    parser.add_argument("--share", type=float, default=1, help="of the bytes of each file")
    parser.add_argument("--print", action="store_true", help="and write no tables")
    return parser.parse_args()


def main() -> None:
    """All cases."""
    asked = arguments()
    programs = Programs(
        replay=sides.program(asked.build, "understudy-replay"),
        fio=shutil.which("fio"),
        ior=ior.find(),
        folder=Path(),
    )
    pairs = []
    for pair in PAIRS:
        if asked.beside and pair[1] not in asked.beside:
            continue
        reason = programs.lacking(pair[0]) or programs.lacking(pair[1])
        if reason:
            print(f"SKIPPED: {pair[0]} beside {pair[1]}: {reason}")
        else:
            pairs.append(pair)
    if not pairs:
        return
    rows = []
    print(*HEAD, sep=" | ")
    for directory in asked.directory:
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", directory], capture_output=True, text=True
        ).stdout.strip()
        system = "ext4" if kind == "ext2/ext3" else kind
        with sides.folder_in(directory) as folder:
            here = replace(programs, folder=folder)
            for cache, size, order, depth in itertools.product(
                asked.caches, asked.sizes, asked.orders, asked.depths
            ):
                case = Case(
                    depth=depth,
                    transfer_bytes=size,
                    shuffled=order == "random",
                    direct=cache == "direct",
                    transfers=max(1, int(asked.share * MOST_BYTES[size]) // size),
                )
                for row in compare(here, pairs, case, asked.rounds):
                    rows.append([system, cache, str(size), order, str(depth), *row])
                    print(*rows[-1], sep=" | ", flush=True)
    if not asked.print:
        write(rows, f"# {' '.join(['python', 'benchmarks/queue_depth.py', *sys.argv[1:]])}")


if __name__ == "__main__":
    main()

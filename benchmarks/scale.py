"""Describing logs of 10^4 to 10^7 files, beside darshan-parser --total on the same logs.

    PYTHONPATH=python:. python benchmarks/scale.py [--files 10000 1000000 …] [--figure FILE.svg]

The logs are synthetic, of 1,024 files of each process, of a file of each process, and of files
that all share. All programs run in turns; CPU is user and system time of the process and its
children, the smallest of the rounds, memory the peak of a process. CPU per file is that of the
whole run over the number of files; the ratio is the CPU time over that of describe.

isal is used where it is installed, and describe runs without it as well. darshan-parser is taken
from PATH. --before names another checkout, such as of the version before a change: its describe
runs, too, and its workloads must be the same bytes.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from understudy.darshanlog.synthetic import Synthetic, write

FILES = (10_000, 100_000, 1_048_576)
LAYOUTS = ("many", "one", "shared")
DESCRIBE = "from understudy.cli import main; main()"
WITHOUT_ISAL = f"import sys; sys.modules['isal'] = None; {DESCRIBE}"
OURS, PARSER = "describe", "darshan-parser"


@dataclass(slots=True)
class Cost:
    """CPU and peak memory of a program's runs."""

    cpu_s: list[float] = field(default_factory=list)
    peak_mib: list[float] = field(default_factory=list)

    def run(self, command: Sequence[str | Path], package: Path | None = None) -> None:
        """Run it once more, with the Python package of another checkout if given."""
        more = {"PYTHONPATH": str(package)} if package else {}
        process = subprocess.Popen(
            list(map(str, command)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **more},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"{command[0]}: exit status {process.returncode}")
        self.cpu_s.append(usage.ru_utime + usage.ru_stime)
        self.peak_mib.append(usage.ru_maxrss / 1024)

    @property
    def min_s(self) -> float:
        return min(self.cpu_s)


def job_of(layout: str, files: int) -> Synthetic:
    """A job with about so many files."""
    if layout == "many":
        return Synthetic(processes=max(1, files // 1024), files=min(files, 1024))
    if layout == "one":
        return Synthetic(processes=files)
    return Synthetic(processes=1024, files=files, layout="shared")


def measure(path: Path, parser: str | None, before: Path | None, rounds: int) -> dict[str, Cost]:
    """All programs in turns on a log."""
    scripts: dict[str, tuple[str, Path | None]] = {OURS: (DESCRIBE, None)}
    if find_spec("isal"):
        scripts[f"{OURS} without isal"] = (WITHOUT_ISAL, None)
    if before:
        scripts[f"{OURS} before"] = (DESCRIBE, before / "python")
    costs: dict[str, Cost] = {}
    for _ in range(rounds):
        workloads = set()
        for name, (script, package) in scripts.items():
            out = Path(f"{path}.json")
            command = [sys.executable, "-c", script, "describe", path, "-f", "-o", out]
            costs.setdefault(name, Cost()).run(command, package)
            workloads.add(out.read_bytes())
        if len(workloads) > 1:
            raise SystemExit(f"{path}: {', '.join(scripts)}: expected the same workload")
        if parser:
            costs.setdefault(PARSER, Cost()).run([parser, "--total", path])
    return costs


def line(layout: str, job: Synthetic, size: int, name: str, cost: Cost, ours: Cost) -> str:
    """A row of the table."""
    cells = [
        layout,
        f"{job.records:,}",
        f"{size / 1e6:.1f}",
        name,
        f"{cost.min_s:.2f}",
        f"{1e6 * cost.min_s / job.records:.2f}",
        f"{max(cost.peak_mib):.0f}",
        f"{cost.min_s / ours.min_s:.2f}",
    ]
    return "| " + " | ".join(cells) + " |"


def draw(path: Path, rows_by_layout: dict[str, list[tuple[int, float, float | None]]]) -> None:
    """CPU per file over the number of files."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.add_subplot(xscale="log", xlabel="files in the log", ylabel="CPU per file, µs")
    for number, (layout, rows) in enumerate(rows_by_layout.items()):
        files = [row[0] for row in rows]
        axes.plot(
            files,
            [row[1] for row in rows],
            "o-",
            color=f"C{number}",
            label=f"understudy describe: {NAMES[layout]}",
        )
        if all(row[2] is not None for row in rows):
            axes.plot(
                files,
                [row[2] for row in rows],
                "s--",
                color=f"C{number}",
                mfc="none",
                label=f"darshan-parser --total: {NAMES[layout]}",
            )
    axes.set_ylim(bottom=0)
    axes.legend(fontsize="small")
    figure.savefig(path, metadata={"Date": None})


NAMES = {
    "many": "1,024 files of each process",
    "one": "a file of each process",
    "shared": "shared files",
}


def main() -> None:
    """All layouts and numbers of files."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--files", type=int, nargs="+", default=FILES, help="files of the logs")
    options.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=["many"])
    options.add_argument("--rounds", type=int, default=3, help="runs of each program")
    options.add_argument("--folder", type=Path, help="where the logs go; default: a temporary one")
    options.add_argument("--figure", type=Path, help="draw the CPU per file to this file")
    options.add_argument("--before", type=Path, help="another checkout to compare with")
    asked = options.parse_args()
    parser = shutil.which("darshan-parser")
    if not parser:
        print("darshan-parser is not on PATH: left out")
    print("| layout | files | log, MB | program | CPU s | µs per file | peak MiB | ratio |")
    print("|---" * 8 + "|")
    rows_by_layout: dict[str, list[tuple[int, float, float | None]]] = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        for layout in asked.layouts:
            for files in asked.files:
                job = job_of(layout, files)
                path = write(Path(folder) / "log.darshan", job)
                costs = measure(path, parser, asked.before, asked.rounds)
                size = path.stat().st_size
                for name, cost in costs.items():
                    print(line(layout, job, size, name, cost, costs[OURS]), flush=True)
                each = [
                    1e6 * costs[name].min_s / job.records if name in costs else None
                    for name in (OURS, PARSER)
                ]
                rows_by_layout.setdefault(layout, []).append(
                    (job.records, each[0] or 0.0, each[1])
                )
    if asked.figure:
        draw(asked.figure, rows_by_layout)


if __name__ == "__main__":
    main()

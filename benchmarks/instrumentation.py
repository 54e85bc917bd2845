"""Instructions that Darshan adds to an operation, which noise cannot touch.

    PYTHONPATH=python:. python benchmarks/instrumentation.py [--darshan PREFIX] [--build FOLDER]

The player writes on one rank, with and without the runtime of Darshan preloaded: few and many
writes into one file, and few and many files with one write each. The differences are what a write
costs, and what a file costs (its open and close, and at the end its record and name in the log).
Instructions are those of the process, libraries included and the kernel left out, by valgrind's
callgrind. PREFIX is by default DARSHAN_RUNTIME, or where darshan-config is.
"""

import argparse
import shutil
from pathlib import Path

from benchmarks.instructions import instructions
from benchmarks.support import sides
from understudy.contracts.workload import Dump, Pattern, Variable
from understudy.errors import UnderstudyError
from understudy.reframe.bases import observer

METHODS = ("posix", "mpiio")
TRANSFER_BYTES = 4096
WRITES = (500, 2500)
FILES = (50, 250)


def workload(method: str, files: int, writes: int) -> str:
    """Files one after another, each with so many writes."""
    data = Variable(name="data", type="byte", shape=(TRANSFER_BYTES * writes,))
    return sides.workload(
        1,
        Pattern(
            name="bench",
            role="checkpoint",
            operation="write",
            files="new",
            layout="file-per-process",
            method=method,
            transfer_bytes=TRANSFER_BYTES,
            dumps=tuple(Dump(time_s=0, variables=(data,)) for _ in range(files)),
        ),
    )


def count(
    replay: Path, library: Path | None, folder: Path, method: str, files: int, writes: int
) -> int:
    """Instructions of a run."""
    (folder / "workload.json").write_text(workload(method, files, writes))
    command = [str(replay), "-w", "workload.json", "-o", str(folder / "data"), "-a", method]
    settings = folder / "darshan.conf"
    settings.write_text(f"NAME_INCLUDE ^{folder}(/|$) *\n")
    log = folder / "bench.darshan"
    log.unlink(missing_ok=True)
    if library is None:
        return instructions(folder, command)
    variables = [f"LD_PRELOAD={library}", f"DARSHAN_LOGFILE={log}"]
    variables.append(f"DARSHAN_CONFIG_PATH={settings}")
    executed = instructions(folder, command, *variables)
    if not log.is_file():
        raise SystemExit(f"{library}: it wrote no log")
    return executed


def added(replay: Path, library: Path | None, folder: Path, method: str) -> tuple[float, float]:
    """Instructions of a write, and of a file without its writes."""
    few, many = (count(replay, library, folder, method, 1, n) for n in WRITES)
    write = (many - few) / (WRITES[1] - WRITES[0])
    few, many = (count(replay, library, folder, method, n, 1) for n in FILES)
    return write, (many - few) / (FILES[1] - FILES[0]) - write


def main() -> None:
    """A line for each method and operation."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--build", type=Path, default=sides.ROOT / "build", help="CMake's build folder"
    )
    parser.add_argument("--darshan", default="", help="prefix of Darshan's runtime")
    asked = parser.parse_args()
    replay = sides.program(asked.build, "understudy-replay")
    if not shutil.which("valgrind"):
        print("SKIPPED: instructions: no valgrind on PATH")
        return
    try:
        library = observer.preloaded(asked.darshan or observer.runtime())
    except UnderstudyError as error:
        print(f"SKIPPED: instructions: {error}")
        return
    with sides.folder_in(sides.memory_folder()) as folder:
        for method in METHODS:
            without = added(replay, None, folder, method)
            under = added(replay, library, folder, method)
            for name, a, b in zip(("write", "open and close"), without, under, strict=True):
                print(
                    f"{method:6} {name:14} {a:10,.0f} without, {b:10,.0f} with Darshan, "
                    f"{b - a:+10,.0f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

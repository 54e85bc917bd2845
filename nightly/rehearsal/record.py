"""python -m nightly.rehearsal.record [-o DIRECTORY] [--no-trace] [NAME …]

Runs applications of `applications/` once each on this host under Darshan, and keeps their logs:
NAME.darshan, or of a program without MPI the directory NAME with a log of each of its processes.
Nothing is described. Those whose programs are missing are left out, with the reason. The exit
status is 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from understudy.contracts import case as applications
from understudy.contracts.case import Application
from understudy.darshanlog import logs_below, open_log
from understudy.errors import UnderstudyError
from understudy.producers import observed
from understudy.reframe.bases import observer

SHOWN_LINES = 20


def record(case: Application, target: Path, traced: bool) -> str:
    """Run an application, as `found`, once; the line of the table."""
    prefix = observer.runtime()
    observer.preloaded(prefix)
    with tempfile.TemporaryDirectory(prefix="understudy-record-") as base:
        folder, prepared, place = Path(base), Path(base) / "inputs", Path(base) / "run"
        prepared.mkdir()
        if case.inputs is not None:
            shutil.copytree(case.inputs, prepared, dirs_exist_ok=True)
        variables = os.environ | case.environment
        if case.prepare:
            _run(list(case.prepare), prepared, variables)
        shutil.copytree(prepared, place)
        (folder / observer.SETTINGS).write_text(
            "\n".join(observer.settings(str(place), traced)) + "\n"
        )
        log = folder / "run.darshan"
        under, launch = observer.prefix_of(prefix, base, log.name), f"mpirun -np {case.ranks} "
        if not case.mpi:
            log, launch = folder / observer.LOGS, ""
            subprocess.run(observer.make_directory(str(log)), shell=True, check=True)
            under = observer.prefix_of_processes(prefix, base, str(log))
        start = time.monotonic()
        variables |= {"DARSHAN_DISABLE_SHARED_REDUCTION": "1"}
        _run(
            ["sh", "-c", f"{launch}{' '.join(under)} {shlex.join(case.command)}"], place, variables
        )
        elapsed_s = time.monotonic() - start
        if not log.exists():
            raise UnderstudyError("Darshan wrote no log")
        kept = _keep(log, target / case.name)
    row = observed.of_log(
        kept, application=case.name, options={}, workload=("", ""), directory="", command_line=[]
    )
    lowest = [m for m in row["modules"] if m["module"] in observed.LOWEST]
    moved = [sum(m[f"bytes_{way}"] for m in lowest) / 1e6 for way in ("written", "read")]
    files = sum(m["files"] for m in lowest)
    io_s = max(map(sum, zip(*(m[f"{k}_s"] for m in lowest for k in observed.KINDS), strict=True)))
    ranks = row["environment"]["ranks"]
    return f"{ranks:5}{elapsed_s:8.1f}{moved[0]:10.2f}{moved[1]:10.2f}{files:7}{io_s:9.3f}"


def _run(words: list[str], folder: Path, variables: dict[str, str]) -> None:
    done = subprocess.run(
        words,
        cwd=folder,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = "\n".join(done.stdout.splitlines()[-SHOWN_LINES:])
        raise UnderstudyError(f"ended with status {done.returncode}:\n{said}")


def _keep(log: Path, target: Path) -> Path:
    """Replaces what was kept before."""
    shutil.rmtree(target, ignore_errors=True)
    kept = target.with_name(f"{target.name}.darshan")
    kept.unlink(missing_ok=True)
    if log.is_file():
        shutil.copy(log, kept)
        return kept
    target.mkdir(parents=True)
    for n, path in enumerate(filter(_has_files, logs_below(log).logs)):
        shutil.copy(path, target / f"{n}.darshan")
    return target


def _has_files(path: Path) -> bool:
    """Not so of helpers such as uname, which are no ranks of the workload."""
    with open_log(path) as log:
        streams = (b"<STDIN>", b"<STDOUT>", b"<STDERR>", b"heatmap:")
        return any(not text.startswith(streams) for _, texts in log.names() for text in texts)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m nightly.rehearsal.record", allow_abbrev=False, description=__doc__
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("-o", "--output", type=Path, default=Path("logs"), metavar="DIRECTORY")
    parser.add_argument("--no-trace", action="store_true", help="without Darshan's DXT traces")
    given = parser.parse_args()
    names = applications.names()
    if unknown := [name for name in given.names if name not in names]:
        parser.error(f"{unknown[0]}: no such application; expected one of {', '.join(names)}")
    given.output.mkdir(parents=True, exist_ok=True)
    failed = 0
    print(f"{'':20}ranks run [s] wrote [MB] read [MB]  files  I/O [s]")
    for name in given.names or names:
        try:
            case = applications.get(name).found()
        except UnderstudyError as error:
            print(f"{name:20}left out: {error}")
            continue
        try:
            line = record(case, given.output, traced=not given.no_trace)
        except UnderstudyError as error:
            line, failed = str(error), failed + 1
        print(f"{name:20}{line}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

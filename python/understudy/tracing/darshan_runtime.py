"""Darshan's runtime: where it is, and recording a program with it."""

import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from understudy.errors import UnderstudyError

VARIABLE = "DARSHAN_RUNTIME"
# Open MPI 4 says that it could not read Darshan's buffers in one copy, then takes two.
ONE_COPY = "OMPI_MCA_btl_vader_single_copy_mechanism=none"
# Several aggregators of Open MPI 5.0.5 and older damage each other's parts of the log (Darshan 3.5
# asks for one by itself).
LOG_HINTS = "cb_nodes=1"
LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun", "srun", "aprun", "jsrun", "flux")


def runtime() -> str:
    """The prefix of Darshan's runtime: DARSHAN_RUNTIME, else where darshan-config is.

    Raises UnderstudyError with the reason where there is none.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return given
    program = shutil.which("darshan-config")
    if program is None:
        raise UnderstudyError(
            f"there is no Darshan runtime: {VARIABLE} is not set, darshan-config is not on PATH"
        )
    return str(Path(program).resolve().parent.parent)


def preloaded(prefix: str) -> Path:
    """The runtime's library; an UnderstudyError where it is not there."""
    path = Path(prefix) / "lib" / "libdarshan.so"
    if not path.is_file():
        raise UnderstudyError(f"{VARIABLE}={prefix}: there is no lib/libdarshan.so in it")
    return path


def recorded(
    command: Sequence[str],
    prefix: str,
    folder: Path,
    run: Callable[[Sequence[str], Mapping[str, str]], int],
) -> tuple[int, list[Path]]:
    """The exit status of the command, which `run` runs with these variables, and its logs in the
    order in which they were completed: below the empty directory `folder`.

    Ranks that a launcher of MPI starts have one log. Darshan is told of programs without MPI only
    where there is no launcher: it would log each rank by itself.
    """
    # Unless Darshan was built for a plain directory, it writes below one of the date.
    (folder / time.strftime("%Y/%-m/%-d")).mkdir(parents=True)
    variables = {
        "LD_PRELOAD": ":".join(
            filter(None, (str(preloaded(prefix)), os.environ.get("LD_PRELOAD")))
        ),
        "DARSHAN_LOGPATH": str(folder),
        "DARSHAN_LOGHINTS": LOG_HINTS,
        "DXT_ENABLE_IO_TRACE": "1",
        "DARSHAN_JOBID": "UNDERSTUDY_JOB",  # logs of all processes are of one job
        "UNDERSTUDY_JOB": "1",
        **dict([ONE_COPY.split("=")]),
    }
    if not Path(command[0]).name.startswith(LAUNCHERS):
        variables["DARSHAN_ENABLE_NONMPI"] = "1"
    # A runtime with the HDF5 module ends programs that do not link HDF5 where this is set.
    others = ("LD_BIND_NOW", "DARSHAN_LOGFILE", "DARSHAN_DISABLE")
    kept = {name: value for name, value in os.environ.items() if name not in others}
    status = run(command, kept | variables)
    logs = sorted(folder.rglob("*.darshan"), key=lambda log: log.stat().st_mtime_ns)
    if not logs:
        raise UnderstudyError(
            f"record: Darshan wrote no log of {command[0]}, which ended with status {status}; it "
            "writes none of programs that are linked statically, that a signal ends, or that use "
            "no MPI behind a launcher"
        )
    return status, logs

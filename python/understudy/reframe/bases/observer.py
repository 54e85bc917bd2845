"""Darshan's runtime as an observer of the player: where it is, and how it is set up.

It is preloaded into the player alone, not into the launcher. LD_BIND_NOW is taken away, because a
runtime with the HDF5 module then ends every program that does not link HDF5.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.tracing.darshan_runtime import LOG_HINTS, ONE_COPY, VARIABLE, preloaded, runtime

__all__ = ["ONE_COPY", "VARIABLE", "preloaded", "runtime"]

LOG = "replica.darshan"
SETTINGS = "darshan.conf"
RECORDS = 20_000  # most files per rank and module
LOGS = "logs"  # the directory of those of processes without MPI


def expect_seen(library: Path, methods: Collection[str]) -> None:
    """An UnderstudyError where the runtime cannot tell what a method of these writes: without its
    HDF5 module the calls of the application are lost in those that HDF5 makes for its own data."""
    if "hdf5" in methods and library.is_file() and b"H5Dwrite" not in library.read_bytes():
        raise UnderstudyError(
            f"{library}: has no HDF5 module, without which hdf5 cannot be judged; build Darshan "
            "with --enable-hdf5-mod (Spack: darshan-runtime+hdf5)"
        )


# The data directory of a job in Darshan's settings, between the quotes of a shell: a pattern that
# holds no space, which ends a word there.
DIRECTORY = "'\"${dir// /.}\"'"


def settings(directory: str, traced: bool = True) -> Iterator[str]:
    """Lines of Darshan's settings: nothing but the files in `directory`; with `traced`, every
    access."""
    yield "NAME_EXCLUDE ^/ *"
    # Darshan leaves out /dev and /var by default. It knows what openat() opens only below
    # directories that it has records of.
    yield f"NAME_INCLUDE ^{directory}(/|$) *"
    yield f"MAX_RECORDS {RECORDS} POSIX,MPI-IO,STDIO,H5F,H5D"
    yield "MODMEM 64"
    if traced:
        yield "MOD_ENABLE DXT_POSIX,DXT_MPIIO"


def prefix_of(prefix: str, folder: str = "$PWD", log: str = LOG) -> Iterator[str]:
    """Words before a program: env and its arguments. `folder` is that of the job, with the
    settings; the log is written to `log` in it."""
    yield "env -u LD_BIND_NOW"
    yield f'LD_PRELOAD="{prefix}/lib/libdarshan.so"'
    yield f'DARSHAN_CONFIG_PATH="{folder}/{SETTINGS}"'
    yield f'DARSHAN_LOGFILE="{folder}/{log}"'
    yield f"DARSHAN_LOGHINTS={LOG_HINTS}"
    yield ONE_COPY


def make_directory(logs: str) -> str:
    """The line of a job that makes the directory of the logs of processes. Unless Darshan was
    built to take a plain one, it writes below one of the date, which it does not make."""
    return f'mkdir -p "{logs}/$(date +%Y/%-m/%-d)"'


def prefix_of_processes(prefix: str, folder: str, logs: str) -> Iterator[str]:
    """As `prefix_of`, of a program without MPI: each of its processes writes a log of its own
    below the directory `logs`, and all logs are of one job."""
    yield "env -u LD_BIND_NOW -u DARSHAN_LOGFILE"
    yield f'LD_PRELOAD="{prefix}/lib/libdarshan.so"'
    yield f'DARSHAN_CONFIG_PATH="{folder}/{SETTINGS}"'
    yield f'DARSHAN_LOGPATH="{logs}"'
    yield "DARSHAN_ENABLE_NONMPI=1 DARSHAN_JOBID=UNDERSTUDY_JOB UNDERSTUDY_JOB=1"

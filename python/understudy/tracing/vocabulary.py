"""Words of calls of the system, as strace writes them."""

from understudy.tracing.lines import path_of

# What the kernel makes up, and what a program is, rather than its data: Darshan leaves these out.
KERNEL = ("/dev/", "/proc/", "/sys/")
SYSTEM = (*KERNEL, "/bin/", "/boot/", "/etc/", "/lib/", "/opt/", "/sbin/", "/usr/", "/var/")
MEMORY = "/dev/shm/"  # a file system among devices
MAX_CALL_BYTES = 0x7FFFF000  # that Linux moves in one call, whatever it is asked for
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "MV2_COMM_WORLD_RANK")
# Errors that come back where files are as they were.
RECURRING = ("ENOENT", "EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR")
_AT = (
    "open openat2 newfstat faccess faccessat2 readlink unlink mkdir rename renameat2 link symlink"
)
WITH_AT = frozenset(
    name if name.endswith("2") else f"{name}at"
    for name in f"{_AT} fchmod fchown utimens mknod".split()
) | {"statx", "utimensat"}
ATTRIBUTES = ("chmod", "fchmod", "chown", "lchown", "fchown", "utimens")
ADVICE = ("normal", "sequential", "random", "noreuse", "willneed", "dontneed")
CREAT = ("O_WRONLY", "O_CREAT", "O_TRUNC")
FLAGS = {
    "O_CREAT": "create",
    "O_EXCL": "exclusive",
    "O_TRUNC": "truncate",
    "O_APPEND": "append",
    "O_DIRECT": "direct",
    "O_SYNC": "sync",
    "O_DSYNC": "sync",
    "O_DIRECTORY": "directory",
}


def is_data(path: str, written: bool) -> bool:
    """True if a file holds data of a program: one that it writes, wherever it is, or that is below
    none of the system's directories."""
    whole = f"{path}/"
    if not path.startswith("/") or (whole.startswith(KERNEL) and not whole.startswith(MEMORY)):
        return False
    return written or not whole.startswith(SYSTEM)


def flag_words(flags: str) -> list[str]:
    return flags.strip("{}").removeprefix("flags=").split("|")


def working_directory(text: str) -> str | None:
    return path_of(text) if text.startswith("AT_FDCWD") else None

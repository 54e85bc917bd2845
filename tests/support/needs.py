"""What tests need that a machine may lack, found without the code that is tested.

A case that lacks something is skipped with a reason `needs: NAME, NAME`. tests/skips.txt states
how many cases each name stands for; tests/run.py compares. What setup.sh requires (an MPI, a
compiler, the player) is never a reason to skip: its absence fails.
"""

import functools
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PREFIX = "needs: "
DARSHAN = '"${DARSHAN_RUNTIME:-$(dirname "$(command -v darshan-config)")/..}"'
PYPI = "import urllib.request as web; web.urlopen('https://pypi.org/simple/pip/', timeout=9)"
# The system call io_uring_setup, which a kernel or a container may forbid.
IO_URING = "import ctypes; assert ctypes.CDLL(None).syscall(425, 1, bytes(120)) >= 0"
SECCOMP = "import ctypes; assert ctypes.CDLL(None).prctl(21, 0, 0, 0, 0) >= 0"
# That some versions of Python, or some processors, lack.
MODULES = {
    "adios2": "adios2",
    "isal": "isal",
    "openPMD-api": "openpmd_api",
    "pydarshan": "darshan",
}
# As the shell expressions of requirements-debian.txt: each succeeds where it is there.
MORE = {
    "Chromium": "command -v chromium || command -v chromium-browser || command -v google-chrome",
    "Darshan's HDF5 module": f"grep -q H5Dwrite {DARSHAN}/lib/libdarshan.so",
    "Darshan's runtime": 'test "${DARSHAN_RUNTIME-}" || command -v darshan-config',
    "darshan-convert": f"test -x {DARSHAN}/bin/darshan-convert || command -v darshan-convert",
    "darshan-parser": "command -v darshan-parser",
    "Debian's gcc": "dpkg-query -W gcc",
    "FUSE": "pkg-config --exists fuse3 && test -r /dev/fuse && test -w /dev/fuse",
    "IOR and mdtest": "command -v ior && command -v mdtest",
    "O_DIRECT": "dd if=/dev/zero of=build/probe bs=4096 count=1 oflag=direct && rm build/probe",
    "Open MPI": "mpirun --version | grep -q 'Open MPI'",
    "OpenSSH": "command -v ssh-keygen",
    "Prometheus": "command -v prometheus || apt-cache show prometheus",
    "PyPI": f'python3 -c "{PYPI}"',
    "Recorder": 'test -r "${RECORDER_RUNTIME-}"',
    "Spack": "command -v spack",
    "a folder of Darshan logs": 'test -d "${UNDERSTUDY_DARSHAN_LOGS-}"',
    "another user than root": 'test "$(id -u)" != 0',
    "externals of localhost": "test -f spack-repo/environments/localhost/externals.yaml",
    "io_uring": f"python3 -c '{IO_URING}'",
    "mounts": "unshare --mount mount -t tmpfs none /mnt",
    "no qsub": "! command -v qsub",
    "ptrace": "strace -o /dev/null true",
    "root": 'test "$(id -u)" = 0',
    "seccomp": f"python3 -c '{SECCOMP}'",
    "sectors of 512 bytes": (
        "dd if=/dev/zero of=build/probe bs=512 count=1 oflag=direct && rm build/probe"
    ),
    "zsh": "command -v zsh",
}


def rows() -> Iterator[tuple[str, str]]:
    """What requirements-debian.txt lists, and the command that succeeds where it is there."""
    for line in (ROOT / "requirements-debian.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            _, what, _, command = (field.strip() for field in line.split("|", 3))
            yield what, command


@functools.cache
def there(name: str) -> bool:
    """Is it on this machine?"""
    if name in MODULES:
        return find_spec(MODULES[name]) is not None
    command = (MORE | dict(rows()))[name]
    asked = ["bash", "-c", f"{{ {command}\n}} </dev/null >/dev/null 2>&1"]
    return subprocess.run(asked, cwd=ROOT, check=False).returncode == 0


def lacking(*names: str) -> str:
    """The reason to skip a case that needs all of these; empty where they are there."""
    missing = [name for name in names if not there(name)]
    return PREFIX + ", ".join(missing) if missing else ""


def need(*names: str) -> None:
    """Skip the case where one of these is missing."""
    if reason := lacking(*names):
        pytest.skip(reason)


def needs(*names: str) -> pytest.MarkDecorator:
    """The same, as a mark of a case or a module."""
    reason = lacking(*names)
    return pytest.mark.skipif(bool(reason), reason=reason)

"""A root directory, processes, networks and mounts of their own, which end with one process.

The caller starts `enclosed`, which becomes process 1 of new namespaces. All that it mounts and
starts ends with it, however it ends: the kernel sees to that. Nothing is written to the host: what
must be in a directory that does not exist is put over it, in memory.
"""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

NAMESPACES = ("--mount", "--net", "--uts", "--ipc", "--pid")
PR_SET_PDEATHSIG = 1
LAST_S = 10.0
EMPTY = ("tmp", "run", "proc")  # directories of the new root that show nothing of the host


def end_with_parent() -> None:
    """To be called in a child before its program starts."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def enclosed(command: Callable[[str], Sequence[str]]) -> int:
    """Run a command as process 1 of new namespaces; its exit status, 130 after Ctrl-C.

    It is made with the name of an empty directory to mount things on. After Ctrl-C, which it
    receives too, it has LAST_S to end by itself.
    """
    with tempfile.TemporaryDirectory(prefix="understudy-rehearsal-") as folder:
        inside = ["unshare", *NAMESPACES, "--propagation", "private", "--fork", "--kill-child"]
        process = subprocess.Popen([*inside, *command(folder)], preexec_fn=end_with_parent)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            return process.wait()
        except KeyboardInterrupt:
            with suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
                process.wait(LAST_S)
            return 128 + signal.SIGINT
        finally:
            process.kill()  # and with it, at once, all that is inside
            process.wait()


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True)


def memory(where: Path, name: str, *options: str) -> None:
    """A file system in memory; `name` is what the mount table calls its source."""
    where.mkdir(parents=True, exist_ok=True)
    mount("-t", "tmpfs", "-o", ",".join(("mode=0755", *options)), name, where)


def _show(host: Path, there: Path, leave_out: Iterable[str] = ()) -> None:
    """Show what is in a directory of the host in an empty one."""
    for entry in sorted(host.iterdir()):
        shown = there / entry.name
        if entry.name in leave_out:
            shown.mkdir()
        elif entry.is_symlink():
            shown.symlink_to(entry.readlink())
        elif entry.is_dir():
            shown.mkdir()
            mount("--rbind", entry, shown)
        elif entry.is_file():
            shown.touch()
            mount("--bind", entry, shown)


def new_root(folder: Path) -> Path:
    """The host's root, in memory, with /tmp, /run and /proc of its own."""
    memory(folder, "root")
    root = folder / "root"
    root.mkdir()
    mount("--bind", root, root)
    _show(Path("/"), root, EMPTY)
    for name in ("tmp", "run"):
        memory(root / name, name)
    (root / "tmp").chmod(0o1777)
    mount("-t", "proc", "proc", root / "proc")
    return root


def directory(root: Path, path: Path) -> Path:
    """A directory of the new root, made if need be, yet not on the host."""
    at = root
    for part in path.parts[1:]:
        if not (at / part).is_dir():
            if at != root:
                _cover(root, at)
            (at / part).mkdir()
        at /= part
    return at


def open_up(root: Path, path: Path) -> None:
    """Let every user pass through the directories above a path, in the new root only."""
    for parent in reversed(path.parents):
        at = root / str(parent).strip("/")
        if not at.stat().st_mode & 0o001:
            _cover(root, at)


def _cover(root: Path, at: Path) -> None:
    """Put a directory in memory over one of the host, showing the same."""
    host = root.parent / f"host-{len(list(root.parent.iterdir()))}"
    host.mkdir()
    mount("--rbind", at, host)
    memory(at, "cover")
    _show(host, at)


def replace_file(root: Path, path: str, text: str) -> None:
    """Another text in the place of a file, in the new root only."""
    replacement = root.parent / path.strip("/").replace("/", "-")
    replacement.write_text(text, encoding="utf-8")
    mount("--bind", replacement, root / path.strip("/"))


def enter(root: Path) -> None:
    os.chroot(root)
    os.chdir("/")

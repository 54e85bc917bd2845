"""Files that are whole or not there at all."""

import errno
import gc
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from understudy.errors import UnderstudyError

PAGES = (b'<meta name="generator" content="understudy">', b"<title>Understudy: ")
PAGE_HEAD = 4096  # bytes in which a page says so


def expect_new(path: Path | None, force: bool = False) -> None:
    """An UnderstudyError for a file that is to be written and exists, without --force, or is a
    device, a pipe or a directory, which --force does not replace."""
    if path is None:
        return
    expect_regular(path)
    if not force and (path.exists() or path.is_symlink()):
        raise UnderstudyError(f"{path}: exists already; choose another name or use --force")


def expect_regular(path: Path) -> None:
    """An UnderstudyError for an output that is there and is no regular file, or a name in /dev: a
    new file renamed to it would take the place of a device, or of a link such as /dev/stdout."""
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError:
        regular = True  # not there, or a loop of links, which is replaced as a link
    if not regular or path.parent.resolve() == Path("/dev"):
        raise UnderstudyError(f"{path}: is no regular file; expected the name of a file to write")


def read_bytes(path: Path) -> bytes:
    """The content of a file that others wrote; an OSError, as of any read, for what is no regular
    file: a FIFO to which nobody writes, a socket or a device may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "is no regular file", str(path))
    except OSError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def read_text(path: Path, errors: str = "strict") -> str:
    """The same as text (UTF-8)."""
    text = read_bytes(path).decode(errors=errors)
    return text.replace("\r\n", "\n").replace("\r", "\n")


def expect_not_read(
    path: Path | None, files: Iterable[Path] = (), folder: Path | None = None
) -> None:
    """An UnderstudyError for a file that is to be written and is one of `files`, which are read,
    or is to lie in the `folder` of records, which has nothing else: --force does not help."""
    if path is None:
        return
    if folder is not None and folder.resolve() in path.resolve().parents:
        raise UnderstudyError(
            f"{path}: lies in the folder of records; expected an output file outside of {folder}"
        )
    if path.exists() and any(file.exists() and path.samefile(file) for file in files):
        raise UnderstudyError(f"{path}: is read by this command; expected another output file")


def expect_page(path: Path, force: bool = False) -> None:
    """The same of a page, which takes the place of one that understudy made."""
    try:
        head = read_bytes(path)[:PAGE_HEAD]
        if any(mark in head for mark in PAGES):
            return
    except OSError:
        pass
    expect_new(path, force)


def make_folder(path: Path) -> None:
    """Create a folder and those above it, where they do not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be created: {error.strerror}") from None


def write_text(path: Path, text: str, like: Path | None = None) -> None:
    """Write a file of text (UTF-8) as `write_bytes` does."""
    write_bytes(path, text.encode(), like)


def write_bytes(path: Path, data: bytes, like: Path | None = None) -> None:
    """Write a file under a temporary name beside it, then rename it.

    It has the permissions of the file `like`, by default of the one that it replaces.
    """
    with new_file(path, like) as temporary:
        temporary.write_bytes(data)


@contextmanager
def values_stay() -> Iterator[None]:
    """No search for cycles of garbage while a command reads files into values that it needs until
    it ends, nor among these values from then on."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.freeze()
            gc.enable()


@contextmanager
def new_file(path: Path, like: Path | None = None) -> Iterator[Path]:
    """A temporary file beside `path` to write to, which is renamed to it at the end, or removed
    after an error. UnderstudyError where it cannot be written, or is no regular file."""
    expect_regular(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be written: {error.strerror}") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(_mode(like or path))
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UnderstudyError(f"{path}: cannot be written: {error.strerror}") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """The permissions of a file, or of a new one."""
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask

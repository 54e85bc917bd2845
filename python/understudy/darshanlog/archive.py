"""Darshan logs in another compression, in their place: the original is there until the result is
whole and on storage, whatever happens in between."""

import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.darshanlog.convert import Source, convert, verify
from understudy.errors import UnderstudyError

REPLACED, WRITTEN, LARGER, ALREADY, LINKED, FAILED = (
    "replaced",
    "written",
    "larger",
    "already",
    "linked",
    "failed",
)
DENSE = "bzip2"  # for which a log is archived; any other compression is for its readers
UNFINISHED = ".part"  # the end of the name of a result that is not whole yet


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """One log: sizes in bytes, processes of the job and number of files, and what became of it:
    replaced; written, elsewhere; larger: the original was kept, as it is the smaller of both;
    already: it has this compression; linked: it has several hard links; failed: the original is as
    it was. `reason`: of the last two. Sizes of the last three are those of the original, and what
    was not read is 0."""

    path: Path
    nprocs: int
    files: int
    before_bytes: int
    after_bytes: int
    state: str
    reason: str = ""

    @property
    def saved(self) -> float:
        """As a fraction of the original; below 0 where the result is larger."""
        return 1 - self.after_bytes / self.before_bytes if self.before_bytes else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to archive. `into`: write the results to this directory and keep the originals;
    `always`: also where bzip2 makes the result larger, or the log has the compression already;
    `break_links`: also a log with several hard links, of which one is replaced; `check`: read each
    result again before it replaces its original."""

    compression: str = DENSE
    into: Path | None = None
    always: bool = False
    break_links: bool = False
    check: bool = False
    threads: int = 1


def archive(
    path: Path, options: Options, tick: Callable[[int], None] = lambda _: None
) -> Archived:
    """Write a log in another compression and, without `into`, put the result in its place.

    The result is written beside its destination under a temporary name, flushed to storage, and
    renamed. Mode, times, owner and extended attributes are the original's. Raises UnderstudyError,
    and what `tick` raises; the original is as it was then. A process that is killed leaves the
    temporary file.
    """
    real = _real(path)
    with Source(real) as source:
        same = source.header.compression == options.compression and not options.always
        links = source.status.st_nlink if options.into is None and not options.break_links else 1
        if same or links > 1:
            return Archived(
                path=path,
                nprocs=source.job.nprocs,
                files=0,
                before_bytes=source.bytes,
                after_bytes=source.bytes,
                state=ALREADY if same else LINKED,
                reason="" if same else f"it has {links} hard links, and one would be replaced",
            )
        target = real if options.into is None else options.into / path.name
        if options.into is not None and os.path.lexists(target):
            raise UnderstudyError(f"{target}: exists already; choose another directory")
        try:
            return _archive(path, source, target, options, tick)
        except OSError as error:
            raise UnderstudyError(
                f"{target}: cannot be written: {error.strerror}; {real} is as it was"
            ) from None


def _real(path: Path) -> Path:
    """The file that a link names: the link stays."""
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else "a loop of links"
        raise UnderstudyError(f"{path}: cannot be opened: {why}") from None


def _archive(
    path: Path, source: Source, target: Path, options: Options, tick: Callable[[int], None]
) -> Archived:
    handle, name = tempfile.mkstemp(
        dir=target.parent, prefix=f".{target.name[:200]}.", suffix=UNFINISHED
    )
    temporary = Path(name)
    try:
        try:
            converted = convert(
                source,
                handle,
                options.compression,
                threads=options.threads,
                digest=options.check,
                tick=tick,
                folder=target.parent,
            )
            state = REPLACED if options.into is None else WRITTEN
            keep_smaller = options.compression == DENSE and not options.always
            if keep_smaller and converted.after_bytes >= converted.before_bytes:
                state = LARGER
            else:
                os.fsync(handle)
        finally:
            os.close(handle)
        if state == LARGER:
            temporary.unlink()
        else:
            if options.check:
                verify(temporary, converted, source, lambda: tick(0))
            if options.into is None:
                _own_as_original(source, temporary)
            shutil.copystat(source.path, temporary)
            _put(source, temporary, target, replace=options.into is None)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    return Archived(
        path=path,
        nprocs=converted.nprocs,
        files=converted.files,
        before_bytes=converted.before_bytes,
        after_bytes=converted.after_bytes,
        state=state,
    )


def _own_as_original(source: Source, temporary: Path) -> None:
    status = temporary.stat()
    if (status.st_uid, status.st_gid) != (source.status.st_uid, source.status.st_gid):
        try:
            os.chown(temporary, source.status.st_uid, source.status.st_gid)
        except PermissionError:
            if status.st_uid != source.status.st_uid:
                raise UnderstudyError(
                    f"{source.path}: belongs to another user, whose the result would not be; run "
                    "as that user, or use --into"
                ) from None


def _put(source: Source, temporary: Path, target: Path, *, replace: bool) -> None:
    """Give the result its name, on storage."""
    if replace:
        now, then = source.path.stat(), source.status
        if (now.st_ino, now.st_size, now.st_mtime_ns) != (
            then.st_ino,
            then.st_size,
            then.st_mtime_ns,
        ):
            raise UnderstudyError(f"{source.path}: changed while it was read")
        temporary.replace(target)
    else:
        try:
            os.link(temporary, target)  # refuses a name that is taken meanwhile
            temporary.unlink()
        except FileExistsError:
            raise UnderstudyError(f"{target}: exists already") from None
        except OSError:  # a file system without hard links
            temporary.rename(target)
    try:
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise UnderstudyError(
            f"{target}: converted and in place, but its directory cannot be flushed: "
            f"{error.strerror}"
        ) from None

"""Calls of libraries, as Recorder writes them down, as the calls of the system that they make.

Recorder keeps names of files in place of descriptors, and no results. Descriptors are numbered
here; what a call returns follows from the calls before it. A call that does not tell whether it
has succeeded, such as a look at a file of which nothing else is known, is left out and counted.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from posixpath import commonpath, dirname, normpath

from understudy.tracing.files import Opened
from understudy.tracing.lines import Line
from understudy.tracing.processes import Processes
from understudy.tracing.recorder_files import Call, Trace
from understudy.tracing.vocabulary import FLAGS, SYSTEM

BUFFER_BYTES = 4096  # of glibc's stdio, where files have blocks of this size
STDIO = f"calls of stdio, as reads and writes of a buffer of {BUFFER_BYTES:,} bytes"
ABOVE = "calls of {}, as the calls of the system that are in the trace"
TWICE = "calls on files that are open several times, as calls on the last of these opens"
UNKNOWN = "{}, of which the trace does not tell whether it succeeded"
COPIES = "calls on copies of descriptors (dup), which are not in the trace"
SILENT = ("getcwd", "umask", "fileno", "ftell", "ftello", "chdir")  # use no files
WHENCE = ("SEEK_SET", "SEEK_CUR", "SEEK_END")
OPENS = ("open", "creat", "fopen")
STREAMS = ("fclose", "fread", "fwrite", "fseek", "fseeko", "fflush", "vfprintf")
MOVES = ("read", "write", "pread", "pwrite", "readv", "writev")
HANDLES = (*MOVES, *STREAMS, "close", "lseek", "fsync", "fdatasync", "ftruncate", "__fxstat")
NAMES = (
    *("mkdir", "rmdir", "unlink", "remove", "rename", "link", "access", "stat", "lstat"),
    *("__xstat", "__lxstat", "truncate", "chmod", "chown", "lchown"),
)
_AT = {"fread": 3, "fwrite": 3, "__fxstat": 1, "__xstat": 1, "__lxstat": 1}  # the name's argument


def root(trace: Trace) -> str:
    """The directory that holds all files of the calls, but for those of the system."""
    names = _used(trace, (*OPENS, *NAMES))
    return commonpath({dirname(name) for name in names} or {"/"})


def _used(trace: Trace, functions: Sequence[str]) -> set[str]:
    """The names of files in the calls of functions."""
    tables = {id(table): table for table in map(trace.table, range(trace.ranks))}
    rows = (row for table in tables.values() for row in table)
    names = (n for name, words in rows if _plain(name) in functions for n in _names(name, words))
    return {name for name in names if name.startswith("/") and not _of_system(name)}


def _plain(name: str) -> str:
    return name.removesuffix("64")


def _names(name: str, arguments: tuple[str, ...]) -> list[str]:
    at = _AT.get(_plain(name), 0)
    count = 2 if name in ("rename", "link") else 1
    return [normpath(re.sub("^/+", "/", text)) for text in arguments[at : at + count]]


def _of_system(name: str) -> bool:
    return f"{name}/".startswith(SYSTEM)


def lines(trace: Trace, traced: Processes) -> Iterator[Line]:
    """The calls of all ranks in the order in which they ended. `traced` must follow each line
    before the next is taken: what it knows of files decides what calls return."""
    used, directories = _used(trace, HANDLES), set[str]()
    callers = [Caller(rank, traced, used, directories) for rank in range(trace.ranks)]
    for rank in range(trace.ranks):
        yield Line(rank, 0, "execve", f'"", [], ["PMI_RANK={rank}"]', 0, "", None, 0)
    end_s = 0.0
    for call in merge(*trace.calls(), key=lambda call: (call.epoch, call.end_s)):
        end_s = call.end_s
        yield from callers[call.rank].lines(call)
    for rank in range(trace.ranks):
        yield Line(rank, end_s, "", "", None, "", None, 0)


@dataclass(slots=True)
class Handle:
    """An open file of a rank; of stdio, what its buffer holds."""

    fd: int
    stdio: bool
    written: int = -1  # bytes of the buffer; below 0: there is none yet
    ahead: int = 0  # bytes that were read and not yet asked for


class Caller:
    """A rank. `used`: files with calls on open files, whose opens have succeeded."""

    def __init__(
        self, rank: int, traced: Processes, used: set[str], directories: set[str]
    ) -> None:
        self._rank, self._traced, self._used = rank, traced, used
        self._directories = directories  # that the program has made
        self._handles: dict[str, list[Handle]] = {}
        self._fds = 2

    def lines(self, call: Call) -> Iterator[Line]:
        """The calls of the system of a call."""
        name, left_out = _plain(call.name), self._traced.left_out
        if name.startswith(("MPI_File", "H5", "nc")):
            left_out[ABOVE.format("MPI-IO, HDF5 and NetCDF")] += 1
        if name.startswith(("MPI", "H5", "nc")) or name in SILENT:
            return
        if name in ("dup", "dup2"):
            left_out[COPIES] += 1
            return
        names = _names(call.name, call.arguments)
        try:
            if not names or not self._counts(names[0]):
                if name in MOVES:
                    moved = _asked(call, name)
                    self._traced.moved_elsewhere(names[0], "read" not in name, moved)
                return
            if name in OPENS:
                yield from self._open(call, name, names[0])
            elif name in HANDLES:
                yield from self._on_handle(call, name, names[0])
            elif name in NAMES:
                yield from self._on_name(call, name, names)
            else:
                left_out[name or "functions of the program"] += 1
        except (IndexError, ValueError, KeyError):
            left_out["calls that are damaged"] += 1

    def _counts(self, name: str) -> bool:
        below = (r for r in self._traced.roots if name.startswith(f"{r.rstrip('/')}/"))
        return any(_of_system(above) or not _of_system(name) for above in below)

    def _line(self, call: Call, name: str, text: str, result: int = 0, error: str = "") -> Line:
        seconds = max(0.0, call.end_s - call.begin_s)
        return Line(self._rank, call.begin_s, name, text, result, error, None, seconds)

    def _open(self, call: Call, name: str, path: str) -> Iterator[Line]:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        if name != "creat":
            flags = int(call.arguments[1]) if name == "open" else _stdio_flags(call.arguments[1])
        access = ("O_RDONLY", "O_WRONLY", "O_RDWR", "O_RDWR")[flags & os.O_ACCMODE]
        words = [access, *(word for word in FLAGS if _has(flags, getattr(os, word)))]
        there, error = self._there(path), ""
        if "O_EXCL" in words and there:
            error = "EEXIST"
        elif "O_CREAT" not in words and there is False:
            error = "ENOENT"
        elif "O_CREAT" not in words and there is None and path not in self._used:
            self._traced.left_out[UNKNOWN.format(name)] += 1
            return
        self._fds += 1
        fd = -1 if error else self._fds
        yield self._line(call, "open", f"{_quoted(path)}, {'|'.join(words)}", fd, error)
        if not error:
            self._handles.setdefault(path, []).append(Handle(fd, stdio=name == "fopen"))

    def _on_handle(self, call: Call, name: str, path: str) -> Iterator[Line]:
        stdio = name in STREAMS
        handles = [handle for handle in self._handles.get(path, ()) if handle.stdio == stdio]
        if not handles:
            self._traced.left_out[f"{name} on a file that is not known to be open"] += 1
            return
        if len(handles) > 1:
            self._traced.left_out[TWICE] += 1
        handle = handles[-1]
        if stdio:
            self._traced.left_out[STDIO] += 1
            yield from self._buffered(call, name, handle)
        elif name in MOVES:
            asked = _asked(call, name)
            at = _number(call.arguments, 3) if name.startswith("p") else None
            yield self._move(call, handle, "read" in name, asked, at)
        elif name == "lseek":
            yield self._seek(call, handle, int(call.arguments[1]))
        elif name == "ftruncate":
            yield self._line(call, name, f"{handle.fd}, {_number(call.arguments, 1)}")
        elif name != "close":
            yield self._line(call, name.replace("__fxstat", "fstat"), str(handle.fd))
        if name in ("close", "fclose"):
            self._handles[path].remove(handle)
            yield self._line(call, "close", str(handle.fd))

    def _opened(self, handle: Handle) -> Opened:
        opened = self._traced.opened(self._rank, handle.fd)
        if opened is None:
            raise KeyError(handle.fd)
        return opened

    def _move(
        self, call: Call, handle: Handle, reads: bool, asked: int, at: int | None = None
    ) -> Line:
        opened, moved = self._opened(handle), asked
        file, sized = opened.file, opened.file.prepared is None
        if file.prepared is not None:  # a file that nothing says was there before
            sized = file.prepared.created and not file.prepared.before and file.most > 0
        if reads and sized:
            moved = max(0, min(asked, file.size - (opened.place if at is None else at)))
        name = ("" if at is None else "p") + ("read" if reads else "write")
        place = "" if at is None else f", {at}"
        return self._line(call, name, f'{handle.fd}, "", {asked}{place}', moved)

    def _seek(self, call: Call, handle: Handle, distance: int) -> Line:
        opened, whence = self._opened(handle), int(call.arguments[2])
        place = (0, opened.place, opened.file.size)[whence] + distance
        text = f"{handle.fd}, {distance}, {WHENCE[whence]}"
        return self._line(call, "lseek", text, place if place >= 0 else -1)

    # -- stdio ------------------------------------------------------------------------------------

    def _buffered(self, call: Call, name: str, handle: Handle) -> Iterator[Line]:
        """As glibc does: bytes fill a buffer, and whole blocks of a large call pass it by."""
        if name == "vfprintf":  # of a text with its end
            yield from self._write(call, handle, _number(call.arguments, 1) - 1)
        elif name in ("fwrite", "fread"):
            asked = _number(call.arguments, 1) * _number(call.arguments, 2)
            move = self._write if name == "fwrite" else self._read
            yield from move(call, handle, asked)
        else:
            yield from self._emptied(call, handle)
        if name.startswith("fseek"):
            ahead = handle.ahead if int(call.arguments[2]) == os.SEEK_CUR else 0
            handle.ahead = 0
            yield self._seek(call, handle, int(call.arguments[1]) - ahead)

    def _write(self, call: Call, handle: Handle, asked: int) -> Iterator[Line]:
        kept = min(asked, BUFFER_BYTES - handle.written) if handle.written >= 0 else 0
        handle.written = max(0, handle.written) + kept
        if asked > kept:
            yield from self._emptied(call, handle)
            handle.written = (asked - kept) % BUFFER_BYTES
            if whole := asked - kept - handle.written:
                yield self._move(call, handle, False, whole)

    def _emptied(self, call: Call, handle: Handle) -> Iterator[Line]:
        if handle.written > 0:
            yield self._move(call, handle, False, handle.written)
            handle.written = 0

    def _read(self, call: Call, handle: Handle, asked: int) -> Iterator[Line]:
        yield from self._emptied(call, handle)
        while asked > handle.ahead:
            asked -= handle.ahead
            whole = asked - asked % BUFFER_BYTES
            line = self._move(call, handle, True, whole or BUFFER_BYTES)
            yield line
            handle.ahead = line.result or 0
            if not line.result:
                return
        handle.ahead -= asked

    # -- names ------------------------------------------------------------------------------------

    def _there(self, path: str) -> bool | None:
        """True if a name is that of a file or a directory; None: not known."""
        return True if path in self._directories else self._traced.there(path)

    def _on_name(self, call: Call, name: str, names: list[str]) -> Iterator[Line]:
        path, there = names[0], self._there(names[0])
        directory = path in self._directories
        name = {"__xstat": "stat", "__lxstat": "lstat"}.get(name, name)
        if name == "remove":
            name = "rmdir" if directory else "unlink"
        if there is None and name not in ("mkdir", "rmdir"):
            self._traced.left_out[UNKNOWN.format(name)] += 1
            return
        error = "" if there or name == "rmdir" else "ENOENT"
        if name == "mkdir":
            error = "EEXIST" if there else ""
            self._directories.add(path)
        text = ", ".join(map(_quoted, names))
        text += f", {_number(call.arguments, 1)}" if name == "truncate" else ""
        text += ", {st_mode=S_IFDIR}" if directory and name.endswith(("stat", "access")) else ""
        yield self._line(call, name, text, error=error)
        if directory and name in ("rmdir", "rename"):
            self._directories.remove(path)
            self._directories.update(names[1:])


def _has(flags: int, value: int) -> bool:
    return flags & value == value


def _number(arguments: Sequence[str], k: int) -> int:
    """A count of bytes, or a place; 0 where it is below."""
    return min(max(0, int(arguments[k])), (1 << 62) - 1)


def _asked(call: Call, name: str) -> int:
    """The bytes that a read or write asks for."""
    return _number(call.arguments, 1 if name.endswith("v") else 2)


def _stdio_flags(mode: str) -> int:
    """Flags of open, for a mode of fopen."""
    flags = {"r": 0, "w": os.O_CREAT | os.O_TRUNC, "a": os.O_CREAT | os.O_APPEND}[mode[:1]]
    flags |= os.O_RDWR if "+" in mode else os.O_WRONLY if mode[0] != "r" else os.O_RDONLY
    return flags | os.O_EXCL * ("x" in mode)


def _quoted(name: str) -> str:
    """A string of C, as `lines.unquoted` reads it."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

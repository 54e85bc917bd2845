"""Use of files by the processes of a program: handles, names and sizes of all its calls.

The processes and threads of a rank become one list of calls in the order of time. Descriptors that
a process inherits are copies (dup), and what is open when it ends is closed, as the kernel does.
One file because every call looks at the same names and handles, and changes them.
"""

import errno
import math
import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from understudy.inference.steps.overlaps import MAX_DEPTH
from understudy.program.types import requests_left_out
from understudy.tracing.files import (
    Descriptor,
    File,
    Opened,
    Path,
    Process,
    TracedCall,
    TracedCalls,
)
from understudy.tracing.in_flight import Overlap, Request, Requests, overlap
from understudy.tracing.lines import Line, number, path_of, split, unquoted
from understudy.tracing.vocabulary import (
    ADVICE,
    ATTRIBUTES,
    CREAT,
    FLAGS,
    MAX_CALL_BYTES,
    RANKS,
    RECURRING,
    WITH_AT,
    flag_words,
    is_data,
    working_directory,
)
from understudy.units import plural

Row = dict[str, Any]
CUT = "..."  # which ends a list of which strace shows the first entries
UNBEGUN = "ends of requests that no io_submit of the trace has begun"
WHOLE = "strace -v writes them whole, as understudy record does"


class Processes:
    """All processes of a trace, one call after the other. `roots`: directories whose files count;
    none: that in which the program was started."""

    call_s: float = 20e-6  # that strace takes, with seccomp
    clock_s: float = 2e-6  # two calls that overlap by less may not
    pause_s = math.inf  # steps begin where ranks need each other alone

    def __init__(self, roots: Iterable[str] = ()) -> None:
        self.roots = tuple(roots)
        self.paths: dict[str, Path] = {}
        self.system_calls = TracedCalls()
        self.requests = Requests(self.system_calls)
        self.hidden = 0  # requests of io_uring
        self.polled = 0  # queues of io_uring that take requests without a call
        self.cut = self.cut_ends = 0  # requests of io_submit, and their ends, that strace cut off
        self.threads = Overlap()
        self.damaged = 0  # requests of io_submit that cannot be read
        self.files: list[File] = []
        self.left_out: Counter[str] = Counter()
        # Bytes read and written of files of other directories.
        self.elsewhere: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        self.calls: Counter[int] = Counter()  # of each rank, those that do not count included
        self._special: set[str] = set()  # pipes, devices, links to files that do not count
        self._placed = False
        self._processes: dict[int, Process] = {}
        self.disordered = 0  # lines that are earlier than the one before of the same process
        self._last_s: dict[int, float] = {}
        self._inherited: dict[tuple[int, str], Descriptor] = {}  # by rank and path
        self._free: dict[int, list[int]] = {}  # handles of a rank
        self._used: Counter[int] = Counter()

    @cached_property
    def ranks(self) -> dict[int, int]:
        """The number in the workload of each rank that made calls on the files; to be asked, as
        the times, behind all calls."""
        return {rank: k for k, rank in enumerate(sorted(self.system_calls.ranks))}

    @cached_property
    def begin_s(self) -> float:
        """The begin of the first call on the files."""
        return self.system_calls.span_s[0]

    @cached_property
    def end_s(self) -> float:
        """The end of the last one."""
        return self.system_calls.span_s[1]

    def follow(self, lines: Iterable[Line]) -> None:
        """Take the calls of a trace."""
        for line in lines:
            if line.name == "":
                self._exit(line)
                continue
            if line.name == "?":
                self.left_out["lines that are damaged"] += 1
                continue
            self.disordered += line.begin_s < self._last_s.get(line.pid, line.begin_s)
            self._last_s[line.pid] = line.begin_s
            if line.pid not in self._processes:
                self._begin(line)
            self.calls[self._processes[line.pid].rank] += 1
            taker = _TAKERS.get(line.name)
            if taker is None:
                continue
            try:
                taker(self, self._processes[line.pid], line, line.arguments)
            except (IndexError, KeyError, OverflowError, ValueError):
                self.left_out["lines that are damaged"] += 1
        self.requests.end_all()
        for request in self.requests.cancelled:
            self._withdraw(request)
        if self.requests.unended:
            what = "requests of io_submit that no call ends, as in flight with those of their call"
            self.left_out[what] += self.requests.unended
        self.threads = overlap(self.system_calls, self.clock_s)
        if self.threads.stated:
            what = "reads and writes of threads at a time, as calls in flight"
            self.left_out[what] += self.threads.stated

    @property
    def unended(self) -> int:
        """Processes of which the trace has no end."""
        return len({id(process) for process in self._processes.values()})

    def opened(self, pid: int, fd: int) -> Opened | None:
        """The open file of a descriptor of a process; None where it does not count."""
        process = self._processes.get(pid)
        descriptor = process.table.get(fd) if process is not None else None
        return descriptor.opened if descriptor is not None else None

    def there(self, name: str) -> bool | None:
        """True if a path is that of a file, after the calls so far; None: no call says so."""
        path = self.paths.get(name)
        if path is None:
            return None
        gone = path.created or (path.before is not None and not path.directory)
        return True if path.file is not None else False if gone else None

    # -- processes --------------------------------------------------------------------------------

    def _begin(self, line: Line) -> None:
        cwd = next((p for a in line.arguments if (p := working_directory(a))), "")
        self._processes[line.pid] = Process(0, cwd)

    def _exit(self, line: Line) -> None:
        process = self._processes.pop(line.pid, None)
        if process is None:
            return
        process.tasks -= 1
        if process.tasks == 0:
            self.requests.end_all(id(process))
        for fd in sorted(process.table) if process.tasks == 0 else ():
            self._close(process, line, fd)

    def _clone(self, process: Process, line: Line, arguments: list[str]) -> None:
        if line.result is None or line.result <= 0:
            return
        if line.name == "vfork" or "CLONE_FILES" not in line.text:
            former = self._processes.get(line.result)  # it may have made calls already
            child = Process(process.rank, process.cwd)
            for fd, descriptor in process.table.items():
                child.table[fd] = self._copied(process, line, descriptor, descriptor.closes)
            if former is not None:
                child.table |= former.table
            self._processes[line.result] = child
        else:
            process.tasks += 1
            self._processes[line.result] = process

    def _exec(self, process: Process, line: Line, arguments: list[str]) -> None:
        if line.result != 0:
            return
        for text in split(arguments[-1].strip("[]")) if len(arguments) > 2 else ():
            name, _, value = unquoted(text).partition("=")
            if name in RANKS and value.isdigit():
                process.rank = int(value)
        for fd in [fd for fd, descriptor in process.table.items() if descriptor.closes]:
            self._close(process, line, fd)

    def _chdir(self, process: Process, line: Line, arguments: list[str]) -> None:
        if line.result == 0:
            if line.name == "fchdir":
                process.cwd = path_of(arguments[0]) or process.cwd
            else:
                process.cwd = self._full(process, unquoted(arguments[0]))
            if self._counts(process, process.cwd):
                self._there(process.cwd, directory=True)

    # -- names ------------------------------------------------------------------------------------

    def _full(self, process: Process, name: str, at: str | None = None) -> str:
        return posixpath.normpath(posixpath.join(at or process.cwd or "/", name))

    def _counts(self, process: Process, path: str) -> bool:
        if not self._placed and process.cwd:  # of the first process that says where it is
            self._placed = True
            self.roots = tuple(self._full(process, root) for root in self.roots or (".",))
        return any(path == r or path.startswith(r.rstrip("/") + "/") for r in self.roots)

    def _name(self, process: Process, line: Line, arguments: list[str], k: int) -> str | None:
        """The path of an argument, if its file counts; behind a directory for calls with `at`."""
        at = None
        if line.name in WITH_AT:
            at = path_of(arguments[k - 1])
            if arguments[k - 1].endswith("(deleted)"):
                self.left_out[f"{line.name} in a directory that is removed"] += 1
                return None
            if at and arguments[k - 1].startswith("AT_FDCWD") and not process.cwd:
                process.cwd = at
        path = self._full(process, unquoted(arguments[k]), at)
        if not self._counts(process, path):
            return None
        if path in self._special:
            self.left_out[f"{line.name} of a pipe, a device or a link to elsewhere"] += 1
            return None
        return path

    def _path(self, name: str) -> Path:
        if name not in self.paths:
            self.paths[name] = Path()
            parent = posixpath.dirname(name)
            if name in self.roots:
                self.paths[name] = Path(directory=True, before=True)
            elif parent not in self.roots:
                above = self._path(parent)
                if above.before is None and above.file is None and not above.created:
                    over = self.paths.get(posixpath.dirname(parent))
                    above.before = over is None or over.before is not False
                    above.directory = above.assumed = True
        return self.paths[name]

    def _file(self, prepared: Path | None = None) -> File:
        self.files.append(File(prepared=prepared))
        return self.files[-1]

    def _there(self, name: str, directory: bool = False) -> Path:
        """A name that a call has found."""
        path = self._path(name)
        if path.before is None and not path.created:
            path.before = True
            path.directory = directory
            path.file = None if directory else self._file(path)
        self._confirm(name)
        return path

    def _confirm(self, name: str) -> None:
        """It is there, and so are the directories above."""
        self.paths[name].assumed = False
        above = posixpath.dirname(name)
        while (path := self.paths.get(above)) is not None:
            path.assumed = False
            if path.before and not path.created and not path.directory:
                path.directory, path.file = True, None  # only looked at, as by access()
            above = posixpath.dirname(above)

    def _absent(self, name: str) -> Path:
        path = self._path(name)
        path.before = bool(path.before)
        return path

    # -- calls ------------------------------------------------------------------------------------

    def _add(self, process: Process, line: Line, row: Row, **more: Any) -> None:
        seconds = 0.0 if row["call"] == "dup" else line.seconds  # a fork makes many
        self.system_calls.append(TracedCall(process.rank, line.begin_s, seconds, row, **more))
        for name in (more.get("path"), more.get("to")) if "fails" not in row else ():
            if name is not None:
                self._confirm(name)

    def _handle(self, rank: int) -> int:
        free = self._free.setdefault(rank, [])
        if free:
            lowest = min(free)
            free.remove(lowest)
            return lowest
        self._used[rank] += 1
        return self._used[rank] - 1

    def _copied(
        self, process: Process, line: Line, descriptor: Descriptor, closes: bool
    ) -> Descriptor:
        handle = self._handle(process.rank)
        self._add(process, line, {"call": "dup", "of": descriptor.handle, "as": handle})
        return Descriptor(handle, descriptor.opened, closes)

    def _close(self, process: Process, line: Line, fd: int) -> None:
        descriptor = process.table.pop(fd, None)
        if descriptor is None:
            return
        self._add(
            process, line, {"call": "close", "of": descriptor.handle}, file=descriptor.opened.file
        )
        self._free.setdefault(process.rank, []).append(descriptor.handle)

    def _open(self, process: Process, line: Line, arguments: list[str]) -> None:
        k = int(line.name in WITH_AT)
        name = self._name(process, line, arguments, k)
        target = line.path  # such as through /proc/self/fd
        if name is None and target and not line.error and self._counts(process, target):
            name = target if target not in self._special else None
        if name is None:
            if line.path and not line.error:
                self.moved_elsewhere(line.path, False, 0)
            return
        words = set(CREAT if line.name == "creat" else flag_words(arguments[k + 1]))
        access = ["read"] if "O_RDONLY" in words else ["write"]
        flags = ["read", "write"] if "O_RDWR" in words else access
        flags += dict.fromkeys(word for o, word in FLAGS.items() if o in words)
        if "O_TMPFILE" in words:
            self.left_out["open with O_TMPFILE"] += 1
            return
        if "O_PATH" in words:  # goes to the name, and opens nothing
            self._look(process, line, name, directory="O_DIRECTORY" in words and not line.error)
            return
        if line.error:
            if self._fails(line, name):
                row = {"call": "open", "flags": flags, "fails": True}
                self._add(process, line, row, path=name)
            return
        assert line.result is not None
        path = self._path(name)
        creates = "create" in flags and path.file is None
        if creates and path.before is None:
            path.created = True  # unless a size says that it was there
            if {"exclusive", "truncate"} & set(flags):
                path.before = False
            else:
                path.file = self._file(path)
        if "directory" not in flags and path.file is None and not path.directory:
            if path.before is None and not path.created:
                self._there(name)
            else:
                path.file = self._file()
        elif path.before is None:
            self._there(name, directory=True)
        opened = Opened(path.file or self._file(), name, append="append" in flags)
        if "truncate" in flags:
            opened.file.cut(0)
        handle = self._handle(process.rank)
        row = {"call": "open", "flags": flags, "as": handle}
        self._close(process, line, line.result)
        process.table[line.result] = Descriptor(handle, opened, "O_CLOEXEC" in words)
        changes = creates or "truncate" in flags
        self._add(process, line, row, path=name, file=opened.file, changes=changes)

    def _look(self, process: Process, line: Line, name: str, directory: bool) -> None:
        row: Row = {"call": "stat"}
        if line.error == "ENOTDIR":
            self._there(name)
        elif line.error:
            if not self._fails(line, name):
                return
            row["fails"] = True
        else:
            self._there(name, directory=directory)
        self._add(process, line, row, path=name)

    def _fails(self, line: Line, name: str) -> bool:
        """True if a call fails again, once files are as they were."""
        if line.error not in RECURRING:
            self.left_out[f"{line.name}: {line.error}"] += 1
            return False
        if line.error == "ENOENT":
            self._absent(name)
        elif line.error == "EEXIST":
            self._there(name, directory=line.name.startswith("mkdir"))
        else:
            self._path(name)
        return True

    def _of(self, process: Process, arguments: list[str], k: int = 0) -> Descriptor | None:
        return process.table.get(number(arguments[k]))

    def _inherits(self, process: Process, line: Line, argument: str) -> Descriptor | None:
        """A descriptor that was open before the trace, of which all processes have copies; None
        if its file does not count."""
        name = path_of(argument)
        if name is None or argument.endswith("(deleted)") or line.result is None:
            return None
        if line.result < 0 or not self._counts(process, name) or name in self._special:
            return None
        key = process.rank, name
        if key not in self._inherited:
            self.left_out["descriptors that were open before, as opens"] += 1
            path = self._there(name)
            opened = Opened(path.file or self._file(), name)
            handle = self._handle(process.rank)
            row = {"call": "open", "flags": ["read", "write"], "as": handle}
            self._add(process, line, row, path=name, file=opened.file)
            self._inherited[key] = Descriptor(handle, opened, False)
        descriptor = self._copied(process, line, self._inherited[key], False)
        process.table[number(argument)] = descriptor
        return descriptor

    def _move(self, process: Process, line: Line, arguments: list[str]) -> None:
        descriptor = self._of(process, arguments) or self._inherits(process, line, arguments[0])
        reads = "read" in line.name
        if descriptor is None or line.result is None or line.result < 0:
            if descriptor is not None:
                self.left_out[f"{line.name}: {line.error}"] += 1
            elif line.result:
                self.moved_elsewhere(path_of(arguments[0]) or "", not reads, line.result)
            return
        plain = line.name in ("read", "pread64", "pread")
        asked = min(number(arguments[2]), MAX_CALL_BYTES) if plain else line.result
        at = number(arguments[3]) if line.name.startswith("p") and len(arguments) > 3 else None
        self._moved(process, line, descriptor, reads, asked, line.result, at)

    def moved_elsewhere(self, path: str, written: bool, moved: int) -> None:
        """Count bytes of a file that is below none of the directories."""
        if path in self.elsewhere or is_data(path, written):
            self.elsewhere[path][written] += moved

    def _moved(
        self,
        process: Process,
        line: Line,
        descriptor: Descriptor,
        reads: bool,
        asked: int,
        moved: int,
        at: int | None,
        found: bool = True,
    ) -> None:
        if not 0 <= moved <= asked <= MAX_CALL_BYTES:
            raise ValueError(f"{moved} of {asked} bytes")
        opened, file = descriptor.opened, descriptor.opened.file
        place = file.size if opened.append and not reads else opened.place if at is None else at
        row: Row = {"call": "read" if reads else "write", "of": descriptor.handle, "bytes": asked}
        if at is not None:
            row["at"] = at
        if reads:
            end = place + moved
            if found:
                self._found(file, end, moved)
            row["bytes"] = asked if moved == asked or file.size <= end else moved
            if moved < row["bytes"]:
                row["moved"] = moved
        else:
            file.grow(place + moved)
        if at is None:
            opened.place = place + moved
        self._add(process, line, row, file=file, changes=not reads, alone=opened.append)

    def _transfer(self, process: Process, line: Line, arguments: list[str]) -> None:
        """copy_file_range, and sendfile as a read and a write."""
        into, of = (0, 1) if line.name == "sendfile" else (2, 0)
        if line.result is None or line.result < 0:
            return
        if line.name != "sendfile" and arguments[1] == arguments[3] == "NULL":
            origin, target = self._of(process, arguments, of), self._of(process, arguments, into)
            if origin is not None and target is not None:
                self._copy(process, line, origin, target, number(arguments[4]))
                return
        if line.result == 0:
            return
        for k, reads in ((of, True), (into, False)):
            descriptor = self._of(process, arguments, k)
            descriptor = descriptor or self._inherits(process, line, arguments[k])
            if descriptor is not None:
                self.left_out[f"{line.name}, as reads and writes"] += reads
                self._moved(process, line, descriptor, reads, line.result, line.result, None)

    def _copy(
        self, process: Process, line: Line, origin: Descriptor, target: Descriptor, asked: int
    ) -> None:
        if asked < 1:
            raise ValueError(f"{asked} bytes to copy")
        copied, source, file = line.result or 0, origin.opened.file, target.opened.file
        self._found(source, origin.opened.place + copied, copied)
        row = {"call": "copy", "of": origin.handle, "into": target.handle, "length": asked}
        if copied < asked:
            row["moved"] = copied
        origin.opened.place += copied
        target.opened.place += copied
        file.grow(target.opened.place)
        self._add(process, line, row, file=file, source=source, changes=True)

    @staticmethod
    def _found(file: File, end: int, moved: int) -> None:
        """Bytes up to there were read: a file that was there before has them."""
        if end > file.size and moved and file.prepared is not None:
            file.was(end)

    # -- asynchronous calls -----------------------------------------------------------------------

    def _submit(self, process: Process, line: Line, arguments: list[str]) -> None:
        """io_submit: requests that are begun."""
        if line.result is None or line.result < 1:
            return
        if line.result > number(arguments[1]):
            raise ValueError(f"{line.result} of {arguments[1]} requests")
        listed = arguments[2].startswith("[")
        texts = split(arguments[2][1:-1])[: line.result] if listed else []
        for text in texts:
            if text == CUT:
                continue
            try:
                self._begin_request(process, line, dict(_keys(text)))
            except (KeyError, OverflowError, ValueError):
                self.damaged += 1
                self._begin_other(process)
        missing = line.result - sum(text != CUT for text in texts)
        if listed:
            self.cut += missing
        else:
            self.damaged += missing
        for _ in range(min(missing, MAX_DEPTH)):
            self._begin_other(process)
        self.requests.batch(process.rank, line.result)

    def _begin_other(self, process: Process, data: str = "") -> None:
        """Note a request that moves no bytes of files that count, as far as the trace tells."""
        self.requests.begin(process.rank, Request(None, data, 0, id(process)), moves=False)

    def _begin_request(self, process: Process, line: Line, keys: dict[str, str]) -> None:
        kind = keys["aio_lio_opcode"].removeprefix("IOCB_CMD_")
        data = keys.get("aio_data", "0")
        descriptor = process.table.get(number(keys["aio_fildes"]))
        if kind in ("FSYNC", "FDSYNC"):
            if descriptor is not None:
                row: Row = {"call": "sync", "of": descriptor.handle}
                row |= {"data_only": True} if kind == "FDSYNC" else {}
                self._add(process, line, row, file=descriptor.opened.file)
            self._begin_other(process, data)
            return
        if not kind.startswith(("PREAD", "PWRITE")):
            self.left_out[f"io_submit of {kind}"] += 1
            self._begin_other(process, data)
            return
        if kind.endswith("V"):  # strace shows the vector in the place of both
            vector = split(keys["aio_buf"][1:-1])
            if vector[-1] == CUT:
                self.cut += 1
                self._begin_other(process, data)
                return
            asked = sum(number(dict(_keys(text))["iov_len"]) for text in vector)
        else:
            asked = number(keys["aio_nbytes"])
        reads, index = kind.startswith("PREAD"), None
        if descriptor is None:
            self.moved_elsewhere(path_of(keys["aio_fildes"]) or "", not reads, asked)
        else:
            index = len(self.system_calls)
            at = number(keys["aio_offset"])
            self._moved(process, line, descriptor, reads, asked, asked, at, found=False)
        alone = descriptor is not None and descriptor.opened.append
        request = Request(index, data, asked, id(process), writes=not reads)
        request.elsewhere = path_of(keys["aio_fildes"]) or "" if descriptor is None else ""
        self.requests.begin(process.rank, request, not alone)

    def _withdraw(self, request: Request) -> None:
        """Leave out a request that was cancelled: it has moved nothing."""
        self.left_out["requests of io_submit that were cancelled"] += 1
        if request.index is not None:
            self.system_calls.withdraw(request.index)
        elif request.elsewhere:
            self.moved_elsewhere(request.elsewhere, request.writes, -request.asked)

    def _cancel(self, process: Process, line: Line, arguments: list[str]) -> None:
        """io_cancel: where it succeeds, the request has ended; else its end is still to come."""
        data = dict(_keys(arguments[1])).get("aio_data", "0")
        if line.error == "EINPROGRESS":
            self.requests.cancel(process.rank, data)
        elif line.result == 0 and (request := self.requests.end(process.rank, data, -1)):
            self.requests.cancelled.append(request)

    def _reap(self, process: Process, line: Line, arguments: list[str]) -> None:
        """io_getevents: requests that have ended."""
        if line.result is None or line.result < 1:
            return
        listed = split(arguments[3].strip()[1:-1])
        if len(listed) < line.result and CUT not in listed:
            raise ValueError(f"{line.result} ends, of which {len(listed)} are listed")
        texts = listed[: line.result]
        for text in texts:
            if text == CUT:
                continue
            keys = dict(_keys(text))
            moved = _signed(keys["res"])
            request = self.requests.end(process.rank, keys.get("data", "0"), moved)
            if request is None:
                self.left_out[UNBEGUN] += 1
                continue
            if moved == -errno.ECANCELED or (moved < 0 and request.cancels):
                self.requests.cancelled.append(request)
                continue
            if request.index is None:
                continue
            call = self.system_calls[request.index]
            reads = call.row["call"] == "read"
            if moved < 0 or (moved < request.asked and not reads):
                self.left_out["requests of io_submit that failed, as others"] += 1
                moved = request.asked
            if moved < request.asked:
                self.system_calls.change(request.index, moved=moved)
            if reads and call.file is not None:
                self._found(call.file, call.row["at"] + moved, moved)
        if CUT in texts:
            cut = line.result - sum(text != CUT for text in texts)
            ends = [self.requests.end(process.rank, "", -1) for _ in range(min(cut, MAX_DEPTH))]
            self.cut_ends += cut - ends.count(None)
            if None in ends:
                self.left_out[UNBEGUN] += ends.count(None)

    def _destroy(self, process: Process, line: Line, arguments: list[str]) -> None:
        """io_destroy waits for all requests."""
        self.requests.end_all(id(process))

    def _enter(self, process: Process, line: Line, arguments: list[str]) -> None:
        """io_uring: its requests are in memory that the program shares with the kernel."""
        if line.name == "io_uring_setup":
            self.polled += "IORING_SETUP_SQPOLL" in line.text and not line.error
        elif line.result is not None and line.result > 0:
            self.hidden += line.result

    def unseen(self) -> Iterator[str]:
        """Notes on requests that the trace does not show, their share of all first, and on what
        is in flight and not played so."""
        if self.polled:
            yield requests_left_out()
        elif lost := self.hidden + self.cut + self.damaged + self.left_out[UNBEGUN]:
            yield requests_left_out(lost, lost + self.system_calls.moves)
        if self.hidden:
            yield (
                f"Not played: io_uring_enter submitted {plural(self.hidden, 'request')} that a "
                "trace of system calls does not show."
            )
        if self.polled:
            yield (
                f"Not played: what {plural(self.polled, 'queue')} of io_uring took without a call "
                "(IORING_SETUP_SQPOLL), which a trace of system calls does not show."
            )
        if self.cut:
            yield (
                f"Not played: {plural(self.cut, 'request')} of io_submit that strace has cut off; "
                f"{WHOLE}."
            )
        if self.damaged:
            yield f"Not played: {plural(self.damaged, 'request')} of io_submit that are damaged."
        if self.cut_ends:
            yield (
                f"Assumed: {plural(self.cut_ends, 'request')} of io_submit, whose ends strace has "
                f"cut off, moved all that was asked, the first submitted first; {WHOLE}."
            )
        if self.threads.others:
            yield (
                f"Played one at a time: {self.threads.others:,} reads and writes of a "
                f"rank's threads, of which {self.threads.average:.2f} are in flight on average, "
                f"{self.threads.maximum} at most."
            )

    def _seek(self, process: Process, line: Line, arguments: list[str]) -> None:
        descriptor = self._of(process, arguments)
        if descriptor is None or line.result is None or line.result < 0:
            return
        if arguments[2] not in ("SEEK_SET", "SEEK_CUR", "SEEK_END"):
            self.left_out[f"lseek with {arguments[2]}"] += 1
            return
        row: Row = {"call": "seek", "of": descriptor.handle, "at": line.result}
        if arguments[2] == "SEEK_END":
            behind = number(arguments[1])
            file = descriptor.opened.file
            if file.prepared is not None:
                file.was(line.result - behind)
            if behind >= 0 and file.size == line.result - behind:
                row |= {"at": behind, "from_end": True}
        descriptor.opened.place = line.result
        self._add(process, line, row, file=descriptor.opened.file)

    def _stat(self, process: Process, line: Line, arguments: list[str]) -> None:
        k = int(line.name in WITH_AT)
        on_handle = line.name in ("fstat", "fstatfs") or (
            k and unquoted(arguments[1]) == "" and '"' in arguments[1]
        )
        if on_handle:
            descriptor = self._of(process, arguments)
            if descriptor is not None and not line.error:
                self._sized(descriptor.opened.file, line)
                row = {"call": "stat", "of": descriptor.handle}
                self._add(process, line, row, file=descriptor.opened.file)
            return
        name = self._name(process, line, arguments, k)
        if name is None:
            return
        row = {"call": "stat"}
        if "AT_SYMLINK_NOFOLLOW" in line.text or line.name in ("lstat", "readlink", "readlinkat"):
            row["itself"] = True
        if line.error == "EINVAL" and line.name.startswith("readlink"):
            self._there(name)  # it is no link
        elif line.error:
            if not self._fails(line, name):
                return
            row["fails"] = True
        elif any(kind in line.text for kind in ("S_IFIFO", "S_IFCHR", "S_IFBLK", "S_IFSOCK")):
            self._special.add(name)
            self.left_out["looks at pipes and devices"] += 1
            return
        else:
            path = self._there(name, directory="S_IFDIR" in line.text)
            if path.file is not None:
                self._sized(path.file, line)
        self._add(process, line, row, path=name)

    def _sized(self, file: File, line: Line) -> None:
        """Set the size that the call states, of a file whose size is not known otherwise."""
        _, mark, text = line.text.partition("st_size=")
        if not mark:
            _, mark, text = line.text.partition("stx_size=")
        digits = text.split(",", 1)[0].split("}", 1)[0]
        if mark and digits.isdigit() and file.prepared is not None:
            file.was(number(digits))

    def _on_handle(self, process: Process, line: Line, arguments: list[str]) -> None:
        descriptor = self._of(process, arguments)
        if descriptor is None or line.error:
            if line.name == "utimensat" and descriptor is None and '"' in line.text:
                self._on_path(process, line, arguments)
            return
        row: Row = {"of": descriptor.handle}
        if line.name in ("fchmod", "fchown", "utimensat"):
            self.left_out["changes of attributes, as changes of times"] += 1
            row["call"] = "attribute"
            self._add(process, line, row, file=descriptor.opened.file)
            return
        if line.name == "ftruncate":
            row |= {"call": "truncate", "at": number(arguments[1])}
            descriptor.opened.file.cut(row["at"])
        elif line.name == "fallocate":
            if arguments[1] != "0":
                self.left_out["fallocate with flags"] += 1
                return
            row |= {"call": "allocate", "at": number(arguments[2]), "length": number(arguments[3])}
            descriptor.opened.file.grow(row["at"] + row["length"])
        elif line.name == "fadvise64":
            advice = arguments[3].removeprefix("POSIX_FADV_").lower()
            if advice not in ADVICE:
                return
            row |= {"call": "advise", "advice": advice}
        elif line.name == "getdents64":
            row |= {"call": "list", "bytes": min(number(arguments[2]), 1 << 30)}
        else:
            row |= {"call": "sync"} | ({"data_only": True} if line.name == "fdatasync" else {})
        self._add(
            process,
            line,
            row,
            file=descriptor.opened.file,
            changes=line.name in ("ftruncate", "fallocate"),
        )

    def _on_path(self, process: Process, line: Line, arguments: list[str]) -> None:
        kind = line.name.removesuffix("2").removesuffix("at")
        k = int(line.name in WITH_AT)
        name = self._name(process, line, arguments, k)
        if name is None:
            return
        kind = "rmdir" if kind == "unlink" and "AT_REMOVEDIR" in line.text else kind
        row: Row = {"call": kind}
        if kind == "truncate":
            row["at"] = number(arguments[k + 1])
        if kind in ATTRIBUTES:
            row["call"] = "attribute"
            self.left_out["changes of attributes, as changes of times"] += 1
        if line.error:
            if self._fails(line, name):
                self._add(process, line, row | {"fails": True}, path=name)
            return
        if kind == "mkdir":
            path = self._absent(name)
            path.before = path.before and not path.assumed
            path.directory = path.directory or bool(path.before)
            path.created, path.file = True, None
        else:
            path = self._there(name, directory=kind == "rmdir")
            if kind == "unlink":
                path.created, path.file = True, None
            elif kind == "truncate" and path.file is not None:
                path.file.cut(row["at"])
        self._add(process, line, row, path=name, changes=True)

    def _symlink(self, process: Process, line: Line, arguments: list[str]) -> None:
        k = 2 if line.name in WITH_AT else 1
        name = self._name(process, line, arguments, k)
        if name is None:
            return
        row: Row = {"call": "symlink"}
        if line.error:
            if self._fails(line, name):
                self._add(process, line, row | {"fails": True}, path=name)
            return
        target = self._full(process, unquoted(arguments[0]), posixpath.dirname(name))
        if not self._counts(process, target):
            self._special.add(name)
            self.left_out["links to files elsewhere"] += 1
            return
        path = self._absent(name)
        path.created, path.file = True, None
        target_path = self.paths.get(target)
        if target_path is not None:
            path.file = target_path.file
        to = target if target_path is not None else None
        self._add(process, line, row, path=name, to=to, changes=True)

    def _node(self, process: Process, line: Line, arguments: list[str]) -> None:
        name = self._name(process, line, arguments, int(line.name in WITH_AT))
        if name is not None and not line.error:
            self._special.add(name)
            self.left_out["pipes and devices that are made"] += 1

    def _on_two(self, process: Process, line: Line, arguments: list[str]) -> None:
        with_at = line.name in WITH_AT
        old = self._name(process, line, arguments, 1 if with_at else 0)
        new = self._name(process, line, arguments, 3 if with_at else 1)
        kind = "rename" if line.name.startswith("rename") else "link"
        if old is None or new is None:
            if old or new:
                self.left_out[f"{line.name} from or to a file elsewhere"] += 1
            return
        row: Row = {"call": kind}
        if "RENAME_EXCHANGE" in line.text or "RENAME_WHITEOUT" in line.text:
            self.left_out["renames that exchange two files"] += 1
            return
        if "RENAME_NOREPLACE" in line.text:
            row["exclusive"] = True
        if line.error:
            if self._fails(line, old if line.error == "ENOENT" else new):
                self._path(old), self._path(new)
                self._add(process, line, row | {"fails": True}, path=old, to=new)
            return
        source = self._there(old)
        target = self._path(new)
        target.before = bool(target.before)
        target.file = source.file
        moves = {p for p in self.paths if p.startswith(old + "/")} if kind == "rename" else set()
        for below in moves:  # a directory
            renamed = self._path(new + below[len(old) :])
            renamed.before, renamed.file = bool(renamed.before), self.paths[below].file
            origin = self.paths[below].like or below
            renamed.like = origin if self.paths[origin].like is None else None
            renamed.like = None if origin == new + below[len(old) :] else renamed.like
            self.paths[below].file = None
        if kind == "rename":
            source.file = None
        self._add(process, line, row, path=old, to=new, changes=True)

    def _dup(self, process: Process, line: Line, arguments: list[str]) -> None:
        descriptor = self._of(process, arguments)
        if line.name == "fcntl" and not arguments[1].startswith("F_DUPFD"):
            if descriptor is not None and arguments[1] == "F_SETFD":
                descriptor.closes = "FD_CLOEXEC" in arguments[2]
            elif descriptor is not None and "SETLK" in arguments[1]:
                self.left_out["locks of files"] += 1
            return
        if line.result is None or line.result < 0:
            return
        if descriptor is None or process.table.get(line.result) is descriptor:
            if descriptor is None and line.name in ("dup2", "dup3"):
                self._close(process, line, line.result)
            return
        self._close(process, line, line.result)
        closes = "CLOEXEC" in line.text
        process.table[line.result] = self._copied(process, line, descriptor, closes)

    def _closed(self, process: Process, line: Line, arguments: list[str]) -> None:
        if line.name == "close":
            self._close(process, line, number(arguments[0]))
            return
        first, last = number(arguments[0]), number(arguments[1])
        if "CLOEXEC" not in line.text:
            for fd in [fd for fd in process.table if first <= fd <= (last or 1 << 32)]:
                self._close(process, line, fd)

    def _unmade(self, process: Process, line: Line, arguments: list[str]) -> None:
        """Calls that change files and are not made again: they are named."""
        if line.error or not arguments:
            return
        k = 4 if line.name == "mmap" else 0
        if len(arguments) <= k:
            return
        if self._of(process, arguments, k) is not None:
            self.left_out[line.name] += 1
        elif '"' in line.text and line.name != "mmap":
            at = int(line.name in WITH_AT and len(arguments) > 1)
            if '"' in arguments[at] and self._counts(
                process, self._full(process, unquoted(arguments[at]), path_of(arguments[0]))
            ):
                self.left_out[line.name] += 1


def _keys(text: str) -> Iterator[tuple[str, str]]:
    """Keys and values of a structure."""
    for part in split(text.strip("{}")):
        name, mark, value = part.partition("=")
        if mark:
            yield name, value


def _signed(text: str) -> int:
    """A number of 64 bits, whose sign strace may not show."""
    plain = text.split(" ", 1)[0]
    value = -number(plain[1:]) if plain.startswith("-") else number(plain)
    return value - (1 << 64) if value >= 1 << 63 else value


_Taker = Callable[[Processes, Process, Line, list[str]], None]


def _takers() -> Iterator[tuple[str, _Taker]]:
    by: dict[str, _Taker] = {
        "clone clone3 fork vfork": Processes._clone,
        "execve": Processes._exec,
        "chdir fchdir": Processes._chdir,
        "open openat openat2 creat": Processes._open,
        "read pread64 pread readv preadv preadv2": Processes._move,
        "write pwrite64 pwrite writev pwritev pwritev2": Processes._move,
        "sendfile copy_file_range": Processes._transfer,
        "lseek": Processes._seek,
        "stat lstat fstat newfstatat statx access faccessat faccessat2": Processes._stat,
        "readlink readlinkat": Processes._stat,
        "fsync fdatasync ftruncate getdents64 fadvise64 fallocate": Processes._on_handle,
        "fchmod fchown utimensat": Processes._on_handle,
        "truncate unlink unlinkat rmdir mkdir mkdirat": Processes._on_path,
        "chmod fchmodat chown lchown fchownat": Processes._on_path,
        "symlink symlinkat": Processes._symlink,
        "mknod mknodat": Processes._node,
        "rename renameat renameat2 link linkat": Processes._on_two,
        "dup dup2 dup3 fcntl": Processes._dup,
        "close close_range": Processes._closed,
        "mmap flock setxattr fsetxattr sync_file_range": Processes._unmade,
        "io_submit": Processes._submit,
        "io_getevents io_pgetevents": Processes._reap,
        "io_cancel": Processes._cancel,
        "io_destroy": Processes._destroy,
        "io_uring_setup io_uring_enter": Processes._enter,
    }
    for names, taker in by.items():
        yield from ((name, taker) for name in names.split())


_TAKERS = dict(_takers())

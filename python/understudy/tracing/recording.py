"""Runs a program under strace, and keeps what its calls say, but no contents; or under Darshan."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from understudy.errors import UnderstudyError, one_line
from understudy.files import expect_new, new_file, write_bytes
from understudy.launch import signals_go_to
from understudy.messages import tell
from understudy.tracing import darshan_runtime
from understudy.tracing.vocabulary import RANKS

CALLS = "trace=%file,%desc,%process,io_submit,io_getevents,?io_pgetevents,io_cancel,io_destroy"
# What strace does not cut: ranks in environments, and lists of requests and their ends.
WHOLE = "abbrev=!execve,io_submit,io_getevents,?io_pgetevents"
# Strings are cut to so many characters: those that tell the rank of a process are shorter.
STRING = 40
_EXEC = re.compile(
    r"^((?:\d+ +)?\d+\.\d+ execve\(\".*?\", )\[.*\](\) += .*| <unfinished \.\.\.>)$", re.S
)
_RANK = re.compile(rf"\"((?:{'|'.join(RANKS)})=\d+)\"")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"(?:\.\.\.)?")
_CALL = re.compile(
    r"^((?:\d+ +)?\d+\.\d+ (?:<\.\.\. )?(\w+)(?:\(| resumed>))(\d+<[^>]*>(?:\(deleted\))?)?(.*)$",
    re.S,
)
# Calls whose strings are names of files, all of them or the first.
_NAMES = re.compile(
    r"open|openat|openat2|creat|l?stat|newfstatat|statx|access|faccessat2?|readlink(?:at)?|"
    r"unlink(?:at)?|rename(?:at2?)?|mkdir(?:at)?|rmdir|link(?:at)?|symlink(?:at)?|chdir|truncate|"
    r"chmod|fchmodat|l?chown|fchownat|utimensat|mknod(?:at)?"
)
_FIRST = re.compile(r"l?(?:set|remove)xattr")
_SIGNAL = re.compile(r"(?:\d+ +)?\d+\.\d+ --- ")
# The end of a process, behind its number.
_END = re.compile(rb" *\d+\.\d+ \+\+\+ (?:exited with (\d+)|killed by (SIG\w+)).* \+\+\+$")
STRACE, DARSHAN = "strace", "darshan"
WAIT_S = 0.1  # until signals and the program's end are looked for
OTHERS = (
    "install strace (apt install strace), set DARSHAN_RUNTIME to the prefix of Darshan's runtime, "
    "or describe a trace that was made elsewhere: a log of Darshan, a directory of Recorder, or "
    "strace -f -ttt -T -y -o app.strace COMMAND"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """Recording tool: strace or Darshan, its program or prefix, and why it is not the other."""

    name: str
    path: str
    why: str = ""


def chosen(name: str | None = None) -> Tool:
    """The tool of this name, else strace where it may trace, else Darshan. An `UnderstudyError`
    with what was tried where none can record."""
    failed: list[str] = []
    for tool, find in ((STRACE, _strace), (DARSHAN, _darshan)):
        if name in (None, tool):
            try:
                return Tool(tool, find(), "; ".join(failed))
            except UnderstudyError as error:
                failed.append(str(error))
    raise UnderstudyError(f"record: {'; '.join(failed)}; {OTHERS}")


def _strace() -> str:
    """The program, which may trace another one."""
    program = shutil.which("strace")
    if program is None:
        raise UnderstudyError("strace is not installed")
    tried = subprocess.run(
        [program, "-o", os.devnull, "true"], capture_output=True, text=True, errors="replace"
    )
    if tried.returncode != 0:
        said = next(iter(tried.stderr.splitlines()), f"it ended with status {tried.returncode}")
        raise UnderstudyError(f"strace may not trace here: {one_line(said)}")
    return program


def _darshan() -> str:
    prefix = darshan_runtime.runtime()
    darshan_runtime.preloaded(prefix)
    return prefix


def record(
    command: Sequence[str], output: Path, tool: Tool, force: bool = False
) -> tuple[int, list[Path]]:
    """The exit status of the command, and what was written: `output`, or several logs of Darshan
    beside it. An `UnderstudyError` where the command cannot be started or nothing was recorded, or
    where files are there already, without `force`."""
    if shutil.which(command[0]) is None:
        why = "cannot be executed" if Path(command[0]).exists() else "no such program"
        raise UnderstudyError(f"record: {command[0]}: {why}")
    if not os.access(output.parent, os.W_OK | os.X_OK):  # before the program runs
        raise UnderstudyError(f"{output}: cannot be written: expected a directory to write in")
    with tempfile.TemporaryDirectory(prefix="understudy-") as folder:
        if tool.name == DARSHAN:
            status, logs = darshan_runtime.recorded(
                command, tool.path, Path(folder) / "logs", lambda *words: _run(*words)[0]
            )
            outputs = [output]
            if len(logs) > 1:
                outputs = [output.with_stem(f"{output.stem}-{k}") for k in range(1, len(logs) + 1)]
            for path in outputs:
                expect_new(path, force)
            for log, path in zip(logs, outputs, strict=True):
                write_bytes(path, log.read_bytes())
            return status, outputs
        raw = Path(folder) / "raw"
        status, cut = _run([tool.path, *_OPTIONS, "-o", str(raw), "--", *command], raw=raw)
        if not raw.exists() or raw.stat().st_size == 0:
            raise UnderstudyError(f"record: strace has traced nothing; {OTHERS}")
        if status >= 0 and not cut and not _is_whole(raw):
            raise UnderstudyError(
                f"record: the trace of strace ends before the program does: is {folder} full? "
                "TMPDIR names another directory for it"
            )
        with (
            new_file(output) as temporary,
            temporary.open("w", encoding="utf-8", errors="surrogateescape") as kept,
        ):
            lines = (line.decode("utf-8", "surrogateescape") for line in _whole_lines(raw))
            kept.writelines(without_contents(lines))
    return status, [output]


def _is_whole(raw: Path) -> bool:
    """True if the trace of a program that no signal has ended ends with the end of a process."""
    with raw.open("rb") as file:
        file.seek(-min(4096, raw.stat().st_size), os.SEEK_END)
        return b" +++ " in file.read().splitlines()[-1]


_OPTIONS = (
    *("-f", "-ttt", "-T", "-y", "-s", str(STRING), "--seccomp-bpf"),
    *("-e", CALLS, "-e", WHOLE),
)


def _run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    raw: Path | None = None,
) -> tuple[int, bool]:
    """Runs strace, which writes to `raw`, or the program itself in an environment. Returns the
    program's exit status, and whether a signal ended the trace before strace ended.

    Signals are passed on to the program, but for SIGINT of a terminal, which it gets itself. After
    its end, strace waits for processes that it has left, until a signal comes or has come. strace
    then stays with them: under its seccomp filter, system calls fail without a tracer.
    """
    asked: list[int] = []
    sent, waits, told = 0, False, False

    def take(number: int, _: object) -> None:
        if waits or number != signal.SIGINT or not _in_foreground():
            asked.append(number)

    with signals_go_to(take):
        process = subprocess.Popen(command, env=environment)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(WAIT_S), False
            running = [process.pid] if raw is None else _children(process.pid)
            if running:
                for number in asked[sent:]:
                    sent += 1
                    for child in running:
                        with suppress(ProcessLookupError):
                            os.kill(child, number)
            elif raw and raw.exists() and raw.stat().st_size:  # else it has not begun
                waits = True
                if asked and (status := _program_status(raw)) is not None:
                    return status, True
                if not told and (left := _traced_by(process.pid)):
                    told = True
                    tell(
                        f"waiting for {left} process{'es' * (left > 1)} that the program left; "
                        f"Ctrl-C ends the trace without {'them' if left > 1 else 'it'}"
                    )


def _in_foreground() -> bool:
    """True if Ctrl-C of a terminal reaches this process, and thus what it has started."""
    try:
        with Path("/dev/tty").open("rb", buffering=0) as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    try:
        return [*map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    except (FileNotFoundError, ProcessLookupError):
        return []


def _traced_by(pid: int) -> int:
    """How many processes it traces."""
    count = 0
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            count += f"\nTracerPid:\t{pid}\n" in status.read_text(errors="replace")
    return count


def _program_status(raw: Path) -> int | None:
    """The exit status of the first process of a trace, minus the signal that killed it; None while
    the trace does not have its end."""
    first = b""
    for line in _whole_lines(raw):
        pid, _, rest = line.partition(b" ")
        first = first or pid
        if pid == first and (end := _END.match(rest)):
            if end[1]:
                return int(end[1])
            return -signal.Signals[end[2].decode()]
    return None


def _whole_lines(raw: Path) -> Iterator[bytes]:
    """The lines of a file that may grow, up to its size at the beginning."""
    with raw.open("rb") as file:
        left = raw.stat().st_size
        for line in file:
            left -= len(line)
            if left < 0 or not line.endswith(b"\n"):
                return
            yield line


def without_contents(lines: Iterable[str]) -> Iterator[str]:
    """The lines without what was read and written, arguments and environments, but for ranks: of
    calls that take no names of files, no string is kept."""
    for line in lines:
        if _SIGNAL.match(line):
            continue  # strace tells of ends by signals where it tells of signals
        if executed := _EXEC.match(line.rstrip("\n")):
            ranks = ", ".join(f'"{rank}"' for rank in _RANK.findall(line))
            yield f"{executed[1]}[], [{ranks}]{executed[2]}\n"
        elif not (call := _CALL.match(line)):
            yield line if " +++ " in line else _STRING.sub('""', line)
        elif _NAMES.fullmatch(call[2]):
            yield line
        else:
            rest = call[4]
            kept = _STRING.search(rest) if _FIRST.fullmatch(call[2]) else None
            at = kept.end() if kept else 0
            yield call[1] + (call[3] or "") + rest[:at] + _STRING.sub('""', rest[at:])

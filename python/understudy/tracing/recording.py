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
from understudy.tracing import darshan_runtime
from understudy.tracing.vocabulary import RANKS

CALLS = "trace=%file,%desc,%process"
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
STRACE, DARSHAN = "strace", "darshan"
OTHERS = (
    "install strace (apt install strace), set DARSHAN_RUNTIME to the prefix of Darshan's runtime, "
    "or describe a trace that was made elsewhere: a log of Darshan, a directory of Recorder, or "
    "strace -f -ttt -T -y -o app.strace COMMAND"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """What records: strace or Darshan, its program or prefix, and why it is not the other."""

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
                command, tool.path, Path(folder) / "logs", _run
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
        status = _run([tool.path, *_OPTIONS, "-o", str(raw), "--", *command])
        if not raw.exists() or raw.stat().st_size == 0:
            raise UnderstudyError(f"record: strace has traced nothing; {OTHERS}")
        if status >= 0 and not _is_whole(raw):
            raise UnderstudyError(
                f"record: the trace of strace ends before the program does: is {folder} full? "
                "TMPDIR names another directory for it"
            )
        with (
            raw.open(encoding="utf-8", errors="surrogateescape") as lines,
            new_file(output) as temporary,
            temporary.open("w", encoding="utf-8", errors="surrogateescape") as kept,
        ):
            kept.writelines(without_contents(lines))
    return status, [output]


def _is_whole(raw: Path) -> bool:
    """Whether the trace of a program that no signal has ended ends with the end of a process."""
    with raw.open("rb") as file:
        file.seek(-min(4096, raw.stat().st_size), os.SEEK_END)
        return b" +++ " in file.read().splitlines()[-1]


_OPTIONS = (
    *("-f", "-ttt", "-T", "-y", "-s", str(STRING), "--seccomp-bpf"),
    *("-e", CALLS, "-e", "signal=none", "-e", "abbrev=!execve"),
)


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
    """Runs it: strace, or the program itself in an environment. Signals of a terminal are for the
    program; others are passed on to it."""
    asked = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *asked)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, env=environment, preexec_fn=_restore)

    def pass_on(number: int, _: object) -> None:
        children = str(process.pid)
        if environment is None:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        for child in children.split() or [str(process.pid)]:  # it may wait for daemons alone
            with suppress(ProcessLookupError):
                os.kill(int(child), number)

    for number in asked:
        signal.signal(number, pass_on)
    try:
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _restore() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def without_contents(lines: Iterable[str]) -> Iterator[str]:
    """The lines without what was read and written, arguments and environments, but for ranks: of
    calls that take no names of files, no string is kept."""
    for line in lines:
        if found := _EXEC.match(line.rstrip("\n")):
            ranks = ", ".join(f'"{rank}"' for rank in _RANK.findall(line))
            yield f"{found[1]}[], [{ranks}]{found[2]}\n"
        elif not (call := _CALL.match(line)):
            yield line if " +++ " in line else _STRING.sub('""', line)
        elif _NAMES.fullmatch(call[2]):
            yield line
        else:
            rest = call[4]
            kept = _STRING.search(rest) if _FIRST.fullmatch(call[2]) else None
            at = kept.end() if kept else 0
            yield call[1] + (call[3] or "") + rest[:at] + _STRING.sub('""', rest[at:])

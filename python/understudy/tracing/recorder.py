"""Runs a program under strace, and keeps what its calls say, but no contents."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from understudy.errors import UnderstudyError
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
OTHERS = (
    "where programs cannot be traced, describe a log of Darshan, or run strace elsewhere: "
    "strace -f -ttt -T -y -o app.strace COMMAND"
)


def record(command: Sequence[str], output: Path) -> int:
    """The exit status of the command, traced into the file. An `UnderstudyError` where there is
    no strace, it may not trace, or the command cannot be started."""
    strace = shutil.which("strace")
    if strace is None:
        raise UnderstudyError(f"record: strace is not installed (apt install strace); {OTHERS}")
    if shutil.which(command[0]) is None:
        why = "cannot be executed" if Path(command[0]).exists() else "no such program"
        raise UnderstudyError(f"record: {command[0]}: {why}")
    with tempfile.TemporaryDirectory(prefix="understudy-") as folder:
        raw = Path(folder) / "raw"
        status = _traced([strace, *_OPTIONS, "-o", str(raw), "--", *command])
        if not raw.exists() or raw.stat().st_size == 0:
            raise UnderstudyError(f"record: strace has traced nothing; {OTHERS}")
        part = output.with_name(f".{output.name}.part")
        try:
            with (
                raw.open(encoding="utf-8", errors="surrogateescape") as lines,
                part.open("x", encoding="utf-8", errors="surrogateescape") as kept,
            ):
                kept.writelines(without_contents(lines))
            part.replace(output)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise UnderstudyError(f"{output}: cannot be written: {error.strerror}") from None
    return status


_OPTIONS = (
    *("-f", "-ttt", "-T", "-y", "-s", str(STRING), "--seccomp-bpf"),
    *("-e", CALLS, "-e", "signal=none", "-e", "abbrev=!execve"),
)


def _traced(command: Sequence[str]) -> int:
    """Runs it. Signals of a terminal are for the program; others are passed on to it."""
    asked = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *asked)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    process = subprocess.Popen(command, preexec_fn=_restore)

    def pass_on(number: int, _: object) -> None:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
        for child in children.split():
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

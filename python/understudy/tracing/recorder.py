"""Runs a program under strace, and keeps what its calls say, but no contents."""

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from understudy.errors import UnderstudyError
from understudy.tracing.processes import RANKS

CALLS = "trace=%file,%desc,%process"
# Strings are cut to so many characters: those that tell the rank of a process are shorter.
STRING = 40
_EXEC = re.compile(
    r"^((?:\d+ +)?\d+\.\d+ execve\(\".*?\", )\[.*\](\) += .*| <unfinished \.\.\.>)$", re.S
)
_RANK = re.compile(rf"\"((?:{'|'.join(RANKS)})=\d+)\"")
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"(?:\.\.\.)?")
_CONTENTS = re.compile(
    r"(?:^| |\.\.\. )p?(?:read|write)(?:v|v2|64)?(?:\(| resumed>)|sendto|sendmsg|recv|getrandom"
)
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
            part.unlink(missing_ok=True)
            raise UnderstudyError(f"{output}: cannot be written: {error.strerror}") from None
    return status


_OPTIONS = (
    *("-f", "-ttt", "-T", "-y", "-s", str(STRING), "--seccomp-bpf"),
    *("-e", CALLS, "-e", "signal=none", "-e", "abbrev=!execve"),
)


def _traced(command: Sequence[str]) -> int:
    """Runs it; signals of a terminal are for the program."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return subprocess.run(command, check=False, preexec_fn=_restore).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _restore() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def without_contents(lines: Iterable[str]) -> Iterator[str]:
    """The lines without what was read and written, arguments and environments, but for ranks."""
    for line in lines:
        if found := _EXEC.match(line.rstrip("\n")):
            ranks = ", ".join(f'"{rank}"' for rank in _RANK.findall(line))
            yield f"{found[1]}[], [{ranks}]{found[2]}\n"
        elif _CONTENTS.search(line[:120]):
            yield _STRING.sub('""', line)
        else:
            yield line

"""The ledger of a folder of records: a line for each record that was kept, removed or set aside.

Each line states the SHA-256 of the file, and that of the line before it, so that a record that was
edited or went away later shows, and a line that did. Who can write the folder can write another
ledger: a signature of it, or the head that a plan or a page states, shows that, too.
"""

import errno
import fcntl
import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.contracts import schema
from understudy.errors import UnderstudyError, printable
from understudy.files import read_bytes, read_text, write_text
from understudy.records import listing

FILE, SIGNATURE = "ledger.jsonl", "ledger.sig"
KEPT, REMOVED, ASIDE, FOUND = "kept", "removed", "set aside", "found"
ACTIONS = (KEPT, REMOVED, ASIDE, FOUND)  # FOUND: was there before the ledger
KEYS = ("action", "file", "sha256", "time", "system", "previous")
NONE = "0" * 64  # what the first line follows
NAMESPACE = "understudy-records"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What does not agree with the ledger: `file` is a record; `time` and `system` of its run,
    None where that is not known."""

    file: str
    what: str
    told: bool = False  # a command removed it, as the ledger says
    time: str | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`head` is the SHA-256 of the last line; `records` are those that the ledger knows."""

    head: str
    records: int
    faults: tuple[Fault, ...]
    heads: frozenset[str]  # of every line


def append(of: Path, action: str, name: str, time: str | None, system: str | None) -> None:
    """A line for the file `name` of the folder, as it is now. The first one of a folder follows
    lines of all records that are there."""
    try:
        with _locked(of) as file:
            previous = _head(file)
            rows = [(action, name, time, system)]
            if previous == NONE:
                rows = [*((FOUND, n, None, None) for n in sorted(_names(of) - {name})), *rows]
            for row in rows:
                line = _line(of, *row, previous)
                os.write(file, line)
                previous = hashlib.sha256(line).hexdigest()
    except OSError as error:
        raise UnderstudyError(f"{of / FILE}: cannot be written: {error.strerror}") from None


@contextmanager
def _locked(of: Path) -> Iterator[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    file = os.open(of / FILE, flags, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.EINVAL, "is no regular file")
        fcntl.lockf(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _head(file: int) -> str:
    """The SHA-256 of the last line."""
    size, block = os.fstat(file).st_size, b""
    while b"\n" not in block[:-1] and len(block) < size:
        count = min(size, len(block) + 4096)
        block = os.pread(file, count, size - count)
    return hashlib.sha256(block[block[:-1].rfind(b"\n") + 1 :]).hexdigest() if block else NONE


def _line(
    of: Path, action: str, name: str, time: str | None, system: str | None, previous: str
) -> bytes:
    sha256 = _sha256(of / name) if action in (KEPT, FOUND) else None
    row = dict(zip(KEYS, (action, name, sha256, time, system, previous), strict=True))
    return f"{schema.canonical(row)}\n".encode()


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _names(of: Path) -> set[str]:
    return {name for name, _ in listing.files(of)}


def audit(of: Path) -> Audit | None:
    """Compare the folder with its ledger; None of a folder without one."""
    if (of / FILE).is_symlink():
        raise UnderstudyError(f"{of / FILE}: is a symbolic link; expected a file")
    try:
        data = read_bytes(of / FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnderstudyError(f"{of / FILE}: cannot be read: {error.strerror}") from None
    known: dict[str, dict[str, Any]] = {}
    faults: list[Fault] = []
    gone: dict[str, Fault] = {}
    previous, heads = NONE, {NONE}
    lines = data.splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        row = _row(line, f"{of / FILE}: line {number}")
        if row["previous"] != previous:
            faults.append(Fault(file=FILE, what=f"line {number} does not follow the one before"))
        previous = hashlib.sha256(line).hexdigest()
        heads.add(previous)
        name = row["file"]
        if row["action"] in (KEPT, FOUND):
            known[name] = row
            gone.pop(name, None)
            continue
        last = known.pop(name, row)
        gone[name] = Fault(
            file=name,
            what=f"was {row['action']}",
            told=True,
            time=last["time"],
            system=last["system"],
        )
    there = _names(of)
    for name, row in sorted(known.items()):
        where = {"file": name, "time": row["time"], "system": row["system"]}
        if name not in there:
            faults.append(Fault(what="is missing", **where))
        elif _sha256(of / name) != row["sha256"]:
            faults.append(Fault(what="was changed after it was kept", **where))
    faults += gone.values()
    faults += [
        Fault(file=name, what="is not in the ledger") for name in sorted(there - known.keys())
    ]
    return Audit(
        head=previous,
        records=len(known),
        faults=tuple(faults),
        heads=frozenset(heads),
    )


def _row(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if (
        not isinstance(row, dict)
        or set(row) != set(KEYS)
        or row["action"] not in ACTIONS
        or not (
            isinstance(row["file"], str)
            and all(row[key] is None or isinstance(row[key], str) for key in KEYS)
        )
    ):
        raise UnderstudyError(f"{where}: expected an object with {', '.join(KEYS)}")
    return row


# -- signatures -----------------------------------------------------------------------------------


def sign(of: Path, key: Path) -> int:
    """Sign the ledger as it is, by `ssh-keygen -Y sign`; the lines that are signed."""
    try:
        data = read_bytes(of / FILE)
    except OSError as error:
        raise UnderstudyError(f"{of / FILE}: cannot be read: {error.strerror}") from None
    made = _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], data)
    row = {"bytes": len(data), "signature": made}
    write_text(of / SIGNATURE, f"{json.dumps(row, indent=1)}\n")
    return data.count(b"\n")


def signer(of: Path, allowed: Path) -> tuple[str, int]:
    """Who signed the ledger, of those in a file of allowed signers of ssh-keygen, and how many
    lines came after it. An UnderstudyError where nobody of them did."""
    path = of / SIGNATURE
    try:
        row = json.loads(read_text(path))
        count, signature = row["bytes"], row["signature"]
        data = read_bytes(of / FILE)
        signed = data[: int(count)]
        if len(signed) != count or not isinstance(signature, str):
            raise ValueError
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UnderstudyError(
            f"{path}: expected bytes, at most as many as {FILE} has, and signature"
        ) from None
    made = path.with_name(f".{SIGNATURE}.{os.getpid()}")
    write_text(made, signature)
    try:
        who = _ssh_keygen(["-Y", "find-principals", "-s", str(made), "-f", str(allowed)])
        name = who.splitlines()[0] if who else ""
        _ssh_keygen(
            ["-Y", "verify", "-f", str(allowed), "-I", name, "-n", NAMESPACE, "-s", str(made)],
            signed,
        )
    except UnderstudyError as error:
        raise UnderstudyError(
            f"{path}: is no signature of {FILE} by anybody in {allowed}: {error}"
        ) from None
    finally:
        made.unlink(missing_ok=True)
    return printable(name), data[count:].count(b"\n")


def _ssh_keygen(arguments: list[str], given: bytes = b"") -> str:
    try:
        done = subprocess.run(
            ["ssh-keygen", *arguments], input=given, capture_output=True, check=False
        )
    except OSError as error:
        raise UnderstudyError(f"ssh-keygen: {error.strerror}; install OpenSSH's client") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["no message"]
        raise UnderstudyError(f"ssh-keygen {arguments[1]}: {printable(said[0])}")
    return done.stdout.decode(errors="replace")

"""The ledger of a folder of records: SHA256SUMS, to which what is kept, removed or set aside adds.

`sha256sum --ignore-missing -c` reads it: a line has the SHA-256 of a file, and the comment before
it says what was done, and the time and the system of the run. Lines are only added. Who can write
the folder can write another ledger: a signature by `ssh-keygen -Y sign`, or the head that a plan
or a page states, shows that.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from understudy.contracts import schema
from understudy.errors import UnderstudyError, printable
from understudy.files import read_bytes, write_text
from understudy.records import listing

FILE, SIGNATURE = "SHA256SUMS", "SHA256SUMS.sig"
FORMER = "ledger.jsonl"  # of earlier versions: an object in each line, with the hash of the last
KEPT, REMOVED, ASIDE, FOUND = "kept", "removed", "set aside", "found"
ACTIONS = (KEPT, REMOVED, ASIDE, FOUND)  # FOUND: was there before the ledger
KEYS = {"action", "file", "time", "system"}
NAMESPACE = "understudy-records"
_SUM = re.compile(r"\\?([0-9a-f]{64}) [ *](.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A conflict with the ledger: `file` is a record; `time` and `system` of its run, None where
    that is not known."""

    file: str
    what: str
    told: bool = False  # a command removed it, as the ledger says
    time: str | None = None
    system: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """`head` is the SHA-256 of the ledger; `records` are those that it knows."""

    head: str
    records: int
    faults: tuple[Fault, ...]
    heads: frozenset[str]  # of what it was after every line


def append(
    of: Path, action: str, name: str, time: str | None, system: str | None, data: bytes = b""
) -> None:
    """Add a line: the action on the file `name` of the folder; `data` is what the file is to hold.
    The first entry of a folder follows those of a ledger of earlier versions, or of all records
    that are there."""
    try:
        with _locked(of) as file:
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                raise UnderstudyError(
                    f"{of / FILE}: its last line is cut, so nothing was added; expected a line "
                    "that ends: remove it, and compare with understudy records verify"
                )
            before = ""
            if not size:
                before = _text(of, _former(of)[0]) or "".join(
                    _entry(of, FOUND, n, None, None) for n in sorted(_names(of) - {name})
                )
            sha256 = hashlib.sha256(data).hexdigest()
            text = (before + _entry(of, action, name, time, system, sha256)).encode()
            if os.write(file, text) < len(text):
                os.ftruncate(file, size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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


def _entry(
    of: Path, action: str, name: str, time: str | None, system: str | None, sha256: str = ""
) -> str:
    row = {"action": action, "file": name, "time": time, "system": system}
    told = f"# {schema.canonical(row)}\n"
    if action not in (KEPT, FOUND):
        return told
    written = _escaped(name)
    start = "\\" * (written != name)
    return f"{told}{start}{sha256 or _sha256(of / name)}  {written}\n"


def _escaped(name: str) -> str:
    """As sha256sum writes it."""
    return name.replace("\\", "\\\\").replace("\n", "\\n")


def _text(of: Path, rows: Iterable[dict[str, Any]]) -> str:
    """Rows of a ledger of earlier versions as entries."""
    keys = ("action", "file", "time", "system", "sha256")
    return "".join(_entry(of, *(row[key] for key in keys)) for row in rows)


def _sha256(path: Path) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()


def _names(of: Path) -> set[str]:
    return {name for name, _ in listing.files(of)}


def _read(path: Path) -> bytes | None:
    if path.is_symlink():
        raise UnderstudyError(f"{path}: is a symbolic link; expected a file")
    try:
        return read_bytes(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot be read: {error.strerror}") from None


def audit(of: Path) -> Audit | None:
    """Compare the folder with its ledger; None of a folder without one."""
    rows, heads, faults = _former(of)
    data = _read(of / FILE) or _text(of, rows).encode()
    if not data:
        return None
    entries: dict[str, dict[str, Any]] = {}
    gone: dict[str, Fault] = {}
    digest = hashlib.sha256()
    for row in _rows(data, f"{of / FILE}"):
        name = row["file"]
        if row["action"] in (KEPT, FOUND):
            if entries.get(name, row)["sha256"] != row["sha256"]:
                faults.append(Fault(file=name, what="has two SHA-256 in the ledger"))
            entries[name] = row
            gone.pop(name, None)
            continue
        where = {key: entries.pop(name, row)[key] for key in ("file", "time", "system")}
        gone[name] = Fault(what=f"was {row['action']}", told=True, **where)
    for line in data.splitlines(keepends=True):
        digest.update(line)
        heads.add(digest.hexdigest())
    there = _names(of)
    for name, row in sorted(entries.items()):
        where = {key: row[key] for key in ("file", "time", "system")}
        if name not in there:
            faults.append(Fault(what="is missing", **where))
        elif _sha256(of / name) != row["sha256"]:
            faults.append(Fault(what="was changed after it was kept", **where))
    faults += gone.values()
    faults += [
        Fault(file=name, what="is not in the ledger") for name in sorted(there - entries.keys())
    ]
    return Audit(
        head=digest.hexdigest(), records=len(entries), faults=tuple(faults), heads=frozenset(heads)
    )


def _rows(data: bytes, where: str) -> Iterator[dict[str, Any]]:
    """The entries; a sum without a comment is of a record that was kept."""
    told: dict[str, Any] = {}
    for number, line in enumerate(data.decode(errors="replace").removesuffix("\n").split("\n"), 1):
        match = _SUM.fullmatch(line)
        if match:
            same = told and _escaped(told["file"]) == match[2]
            row = told if same else _facts({"action": KEPT, "file": match[2]}, "")
            yield row | {"sha256": match[1]}
            told = {}
            continue
        told = _facts(line.removeprefix("# "), f"{where}: line {number}")
        if told["action"] not in (KEPT, FOUND):
            yield told


def _facts(given: Any, where: str) -> dict[str, Any]:
    """The object of a comment, or of a line of an earlier ledger."""
    try:
        row: dict[str, Any] = json.loads(given) if isinstance(given, str) else given
        row = dict.fromkeys(KEYS) | row
        valid = row["action"] in ACTIONS and isinstance(row["file"], str)
        valid = valid and all(value is None or isinstance(value, str) for value in row.values())
    except (ValueError, TypeError, RecursionError):
        valid = False
    if not valid:
        raise UnderstudyError(
            f"{where}: expected a SHA-256 and a file, or an object with {', '.join(sorted(KEYS))}"
        )
    return row


def _former(of: Path) -> tuple[list[dict[str, Any]], set[str], list[Fault]]:
    """The rows of a ledger of earlier versions, the hashes of its lines, by which plans of then
    know it, and the lines that do not state the hash of the one before."""
    rows, faults, previous = [], [], "0" * 64
    heads = set()
    for number, line in enumerate((_read(of / FORMER) or b"").splitlines(keepends=True), 1):
        rows.append(_facts(line.decode(errors="replace"), f"{of / FORMER}: line {number}"))
        if rows[-1].get("previous") != previous:
            what = f"line {number} does not follow the one before"
            faults.append(Fault(file=FORMER, what=what))
        previous = hashlib.sha256(line).hexdigest()
        heads.add(previous)
    return rows, heads, faults


# -- signatures -----------------------------------------------------------------------------------


def sign(of: Path, key: Path) -> None:
    """Sign the ledger as it is."""
    data = _read(of / FILE)
    if data is None:
        raise UnderstudyError(f"{of / FILE}: not found; the first record that is kept makes it")
    signature = _ssh_keygen(["-Y", "sign", "-f", str(key), "-n", NAMESPACE], data)
    write_text(of / SIGNATURE, signature)


def signer(of: Path, allowed: Path) -> str:
    """Who signed the ledger, of those in a file of allowed signers of ssh-keygen. An
    UnderstudyError where nobody of them did, or where it has grown since."""
    path, by = of / SIGNATURE, ["-f", str(allowed), "-s", str(of / SIGNATURE)]
    if not _read(path):
        raise UnderstudyError(f"{path}: not found; understudy records sign makes it")
    try:
        who = _ssh_keygen(["-Y", "find-principals", *by])
        name = who.splitlines()[0] if who else ""
        _ssh_keygen(["-Y", "verify", "-I", name, "-n", NAMESPACE, *by], _read(of / FILE) or b"")
    except UnderstudyError as error:
        raise UnderstudyError(
            f"{path}: is no signature of {FILE} as it is by anybody in {allowed}: {error}; sign "
            "it after the last record"
        ) from None
    return printable(name)


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

"""JSON documents, checked against the schema of the version that they state.

`schemas/<kind>.schema.json` is the current version of a contract,
`schemas/old/<kind>-<n>.schema.json` an earlier one, frozen. A document states its own version in
the key `schema`: understudy/<kind>/<n>.
"""

import hashlib
import importlib
import json
import re
import zlib
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from understudy.contracts import strict, valid
from understudy.errors import UnderstudyError
from understudy.files import read_bytes
from understudy.paths import where as directory

GZIP = b"\x1f\x8b"
FLAGS, RESERVED = 3, 0xE0  # a byte of its header, and the bits of it that RFC 1952 wants to be 0
MAX_BYTES = 1 << 30  # of a compressed document
BLOCK_BYTES = 1 << 24  # that are unpacked at a time
MAX_RATIO = 300  # of unpacked to compressed bytes; records have about 20, zeros have 1030


def _rows(value: Any) -> list[Any]:
    """The list of a sequence that makes its items when they are asked for."""
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


# A JSON value is a tree: it has no circle that had to be looked for.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False, default=_rows
)
NAME = re.compile(r"understudy/([a-z]+)/([1-9][0-9]*)")


def _inflating() -> Any:
    """The module that inflates: of an extra of the package, in half of the time, or zlib."""
    try:
        return importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib


_zlib = _inflating()


def canonical(value: Any) -> str:
    """One text for one JSON value, whatever the order of its keys and its white space."""
    return _CANONICAL.encode(value)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text, in hexadecimal digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def read(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file; `what` names in messages what was expected."""
    return parse(_text(path, what), str(path), what)


def _text(path: Path, what: str) -> str:
    try:
        data = read_bytes(path)
        return (_unpacked(data, path) if data[:2] == GZIP else data).decode()
    except OSError as error:
        raise UnderstudyError(f"{path}: cannot read the {what}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UnderstudyError(f"{path}: not a {what}: not UTF-8 text") from None


def _unpacked(data: bytes, path: Path) -> bytes:
    """Decompress gzip data; the size is bounded, as a few kB can hold anything."""
    if len(data) > FLAGS and data[FLAGS] & RESERVED:  # which ISA-L takes
        raise UnderstudyError(f"{path}: damaged: cannot be decompressed")
    unpacker = _zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    blocks: list[bytes] = []
    left, total = data, 0
    while not unpacker.eof:
        try:
            blocks.append(unpacker.decompress(left, BLOCK_BYTES))
        except _zlib.error:
            raise UnderstudyError(f"{path}: damaged: cannot be decompressed") from None
        left, more = unpacker.unconsumed_tail, len(blocks[-1])
        if not more and not unpacker.eof:
            raise UnderstudyError(f"{path}: damaged: the file ends early")
        total += more
        if total > MAX_BYTES:
            raise UnderstudyError(f"{path}: holds more than {MAX_BYTES >> 20} MiB of text")
        if total >= BLOCK_BYTES and total > MAX_RATIO * (len(data) - len(left)):
            raise UnderstudyError(
                f"{path}: unpacks to over {MAX_RATIO} times its size: expected a record"
            )
    return blocks[0] if len(blocks) == 1 else b"".join(blocks)


def parse(text: str, where: str, what: str) -> dict[str, Any]:
    """The JSON object in a text."""
    row = strict.decode(text, where, f"a {what}")
    if not isinstance(row, dict):
        raise UnderstudyError(f"{where}: not a {what}: expected a JSON object")
    return row


def json_text(row: dict[str, Any]) -> str:
    """The text of a file; values that JSON cannot hold are a ValueError."""
    return json.dumps(row, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def check(row: dict[str, Any], where: str) -> str:
    """The kind of a document that is valid by the schema it names; an `UnderstudyError` if not."""
    kind, _ = _named(row, where)
    schema = _schema(row["schema"], where)
    if _valid(row["schema"])(row):
        return kind
    from jsonschema.exceptions import best_match  # 0.1 s: only for documents that are not valid

    worst = best_match(valid.explaining(schema).iter_errors(row))
    if worst is not None:
        key = ".".join(map(str, worst.absolute_path)) or "top level"
        raise UnderstudyError(f"{where}: {key}: {worst.message[:300]}")
    return kind


def mistakes(row: dict[str, Any], where: str) -> list[tuple[tuple[str | int, ...], str]]:
    """All that is not valid in a document by the schema it names: place and message, in order."""
    schema = _schema(row["schema"], where)
    if _valid(row["schema"])(row):
        return []
    from jsonschema.exceptions import best_match

    errors = [best_match([error]) for error in valid.explaining(schema).iter_errors(row)]
    told = {(tuple(error.absolute_path), error.message[:300]) for error in errors if error}
    return sorted(told, key=lambda mistake: [(isinstance(s, str), s) for s in mistake[0]])


def kind_of(row: dict[str, Any], where: str) -> str:
    """Kind of a document, before it is checked: player, run, workload …"""
    return _named(row, where)[0]


def _named(row: dict[str, Any], where: str) -> tuple[str, int]:
    stated = row.get("schema")
    match = NAME.fullmatch(stated) if isinstance(stated, str) else None
    if match is None:
        shown = json.dumps(stated, ensure_ascii=False)[:60] if "schema" in row else "nothing"
        raise UnderstudyError(f"{where}: schema: expected understudy/<kind>/<n>, found {shown}")
    return match[1], int(match[2])


@cache
def current(kind: str) -> dict[str, Any] | None:
    """The schema of the current version; None where there is no such contract."""
    path = directory("schemas") / f"{kind}.schema.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


@cache
def _old(kind: str, version: int) -> dict[str, Any] | None:
    path = directory("schemas") / "old" / f"{kind}-{version}.schema.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


@cache
def _valid(name: str) -> valid.Check:
    return valid.validator(_schema(name, name))


def named(name: str) -> dict[str, Any]:
    """The schema of that name, understudy/<kind>/<n>, current or not."""
    return _schema(name, name)


def _schema(name: str, where: str) -> dict[str, Any]:
    kind, version = _named({"schema": name}, where)
    old = _old(kind, version)
    if old is not None:
        return old
    now = current(kind)
    if now is not None and now["$id"] == name:
        return now
    if now is None:
        kinds = ", ".join(
            sorted(p.name.split(".")[0] for p in directory("schemas").glob("*.schema.json"))
        )
        raise UnderstudyError(f"{where}: schema: {name} is unknown; expected one of {kinds}")
    if version > int(now["$id"].rpartition("/")[2]):
        raise UnderstudyError(
            f"{where}: schema: {name} is newer than {now['$id']}, which this version of "
            "understudy reads; upgrade understudy"
        )
    raise UnderstudyError(
        f"{where}: schema: {name} is too old to be read; convert the file with understudy records "
        f"migrate of an earlier version, to one of {now['$id']} at most"
    )


def is_time(text: str) -> bool:
    """True if a text is a day of the calendar, or a second of one, in UTC."""
    try:
        datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True

"""Reading of long measurements of the player, whose dumps are most of the file: they are decoded,
checked and turned into dataclasses block by block, so that neither the text nor its rows are held
at once.

Only what is certainly valid is read here. `read` returns None for all else, and the ordinary way,
`schema.read`, says what is wrong with it.
"""

import json
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, overload

from understudy.contracts import schema, strict, valid
from understudy.contracts.measurement import Deadline, Phase, PlayedDump, RankRange, RankSeconds
from understudy.contracts.run import SCHEMA as RUN
from understudy.errors import UnderstudyError

Row = dict[str, Any]

LONG_BYTES = 8 << 20  # of a file, from which on it is read like this
BLOCK_BYTES = 1 << 20
_MARGIN = 64  # bytes in which the beginning of an array can be
_ARRAY = re.compile(rb'"dumps"[ \t\r\n]*:[ \t\r\n]*\[')
_NEXT = re.compile(rb'\}[ \t\r\n]*(,)[ \t\r\n]*\{[ \t\r\n]*"dump"[ \t\r\n]*:')
_STATED = re.compile(rb'"schema"[ \t\r\n]*:[ \t\r\n]*"(understudy/(?:player|result)/[0-9]+)"')
_DECODER = json.JSONDecoder()
_PHASE = itemgetter("phase", "bytes", "operations", "first_start_s", "last_end_s", "rank_s")
_RANKS = itemgetter(*RankSeconds._fields)


def dump_of(row: Row) -> PlayedDump:
    """A dump of a valid row."""
    parts: Row = {"phases": phases_of(row)}
    if deadline := row.get("deadline"):
        ranges = {key: RankRange(**deadline[key]) for key in ("rank_bytes", "rank_transfers")}
        parts["deadline"] = Deadline(**(deadline | ranges))
    return PlayedDump(**(row | parts))


def phases_of(row: Row) -> tuple[Phase, ...]:
    """The phases of a dump of a valid row."""
    return tuple([_phase_of(p) for p in row["phases"]])


def _phase_of(row: Row) -> Phase:
    phase, moved, operations, first_start_s, last_end_s, rank_s = _PHASE(row)
    more = (row.get("first_end_s"), row.get("first_end_bytes")) if len(row) > 6 else ()
    ranks = RankSeconds(*_RANKS(rank_s))
    return Phase(phase, moved, operations, first_start_s, last_end_s, ranks, *more)


class LongDumps(Sequence[Row]):
    """Rows of dumps that are valid by their schema; each is made when it is asked for."""

    def __init__(self, dumps: tuple[PlayedDump, ...]) -> None:
        self.dumps = dumps

    def __len__(self) -> int:
        return len(self.dumps)

    @overload
    def __getitem__(self, k: int) -> Row: ...
    @overload
    def __getitem__(self, k: slice) -> list[Row]: ...
    def __getitem__(self, k: int | slice) -> Row | list[Row]:
        return _row_of(self.dumps[k]) if isinstance(k, int) else list(map(_row_of, self.dumps[k]))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LongDumps):
            return self.dumps == other.dumps
        return isinstance(other, list) and len(self) == len(other) and list(self) == other

    __hash__ = None  # type: ignore[assignment]


def _row_of(dump: PlayedDump) -> Row:
    keys = ("dump", "scheduled_s", "start_s", "lateness_s", "described_bytes", "bytes")
    row = {key: getattr(dump, key) for key in (*keys, "file_bytes", "files")}
    row["phases"] = [
        {key: value for key, value in p._asdict().items() if value is not None}
        | {"rank_s": p.rank_s._asdict()}
        for p in dump.phases
    ]
    if dump.deadline is not None:
        ranges = ("rank_bytes", "rank_transfers")
        more = {key: asdict(getattr(dump.deadline, key)) for key in ranges}
        row["deadline"] = asdict(dump.deadline) | more
    return row


def is_within(row: Row) -> bool:
    """True if a measurement, or the one in a record, has long dumps."""
    return any(isinstance(s.get("dumps"), LongDumps) for s in _streams(_measurement(row)))


def with_first_dumps(row: Row) -> Row:
    """A measurement with one dump instead of long dumps, which are valid as that is."""
    if not is_within(row):
        return row

    def short(stream: Row) -> Row:
        dumps = stream["dumps"]
        return stream | {"dumps": dumps[:1]} if isinstance(dumps, LongDumps) else stream

    each = row["repetitions"]
    return row | {"repetitions": [r | {"streams": list(map(short, r["streams"]))} for r in each]}


def read(path: Path) -> Row | None:
    """The row of a long measurement or of a record with one, with `LongDumps` in place of the
    lists of dumps; None where it is short or anything but valid."""
    try:
        file_bytes = path.stat().st_size
        if file_bytes < LONG_BYTES:
            return None
        with path.open("rb") as file:
            return _read(file, str(path), file_bytes)
    except (OSError, UnderstudyError, ValueError, RecursionError):
        return None


def _read(file: BinaryIO, where: str, file_bytes: int) -> Row:
    """The row; a ValueError or an UnderstudyError where it is not valid."""
    rest, arrays = _Reading(file), list[LongDumps]()
    mark = secrets.token_hex(16)  # of places of arrays: no file has it
    while rest.find_array():
        if (len(arrays) + 1) * BLOCK_BYTES > file_bytes:
            raise ValueError("many short lists of dumps, which are read faster at once")
        rest.kept.append(f'"{mark}-{len(arrays)}"]'.encode())
        arrays.append(LongDumps(tuple(rest.dumps())))
    if not arrays:
        raise ValueError("no long measurement")
    row = strict.decode(rest.text(), where)
    streams = list(_streams(_measurement(row)))
    if [s.get("dumps") for s in streams] != [[f"{mark}-{k}"] for k in range(len(arrays))]:
        raise ValueError("other lists are called dumps")
    if _measurement(row).get("schema") != rest.stated:
        raise ValueError("the dumps are of another schema")
    for stream, dumps in zip(streams, arrays, strict=True):
        stream["dumps"] = dumps
    return row  # type: ignore[no-any-return]


def _measurement(row: Any) -> Any:
    return row.get("measurement") if isinstance(row, dict) and row.get("schema") == RUN else row


def _streams(row: Any) -> Iterator[Row]:
    """The streams of a measurement that may be no valid one."""
    repetitions = row.get("repetitions") if isinstance(row, dict) else None
    for repetition in repetitions if isinstance(repetitions, list) else ():
        streams = repetition.get("streams") if isinstance(repetition, dict) else None
        yield from (s for s in (streams if isinstance(streams, list) else ()) if type(s) is dict)


class _Reading:
    """Goes through a file from one array of dumps to the next; `kept` is the text besides them."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._left = b""
        self.kept: list[bytes] = []
        self.stated = ""

    def text(self) -> str:
        """The text besides the arrays, which is then not kept."""
        kept, self.kept = b"".join(self.kept), []
        return kept.decode()

    def find_array(self) -> bool:
        """True if there is another array, at whose first dump it then is."""
        while (begin := _ARRAY.search(self._left)) is None:
            more = self._file.read(BLOCK_BYTES)
            end = max(0, len(self._left) - _MARGIN) if more else len(self._left)
            self.kept.append(self._left[:end])
            self._left = self._left[end:] + more
            if not more:
                return False
        self.kept.append(self._left[: begin.end()])
        self._left = self._left[begin.end() :]
        return True

    def dumps(self) -> Iterator[PlayedDump]:
        """The dumps of the array, behind whose end it then is."""
        check = self._check()
        while True:
            while len(self._left) < 2 * BLOCK_BYTES and (more := self._file.read(BLOCK_BYTES)):
                self._left += more
            behind = _NEXT.search(self._left, BLOCK_BYTES)
            piece = self._left[: behind.start() + 1] if behind else self._left
            text = f"[{piece.decode(errors='surrogateescape')}]"
            rows, end = _DECODER.raw_decode(text)
            if not rows or not all(map(check, rows)) or text.count(":", 0, end) != _keys(rows):
                raise ValueError("a dump is not valid")
            yield from map(dump_of, rows)
            if behind is None or end < len(text):  # the array ends in this piece
                if end == len(text) or not text[:end].isascii():
                    raise ValueError("the array does not end")
                self._left = self._left[end - 1 :]
                return
            self._left = self._left[behind.end(1) :]

    def _check(self) -> valid.Check:
        """The check of a dump by the schema that the measurement states."""
        if not self.stated:
            stated = _STATED.search(b"".join(self.kept))
            if stated is None:
                raise ValueError("the schema does not come first")
            self.stated = stated[1].decode()
        return _check_of(self.stated)


def _keys(rows: Sequence[Row]) -> int:
    """The keys of valid dumps; a text with more colons has a key twice."""
    count = 0
    for row in rows:
        count += len(row)
        for phase in row["phases"]:
            count += len(phase) + len(phase["rank_s"])
        if deadline := row.get("deadline"):
            count += len(deadline) + len(deadline["rank_bytes"]) + len(deadline["rank_transfers"])
    return count


@cache
def _check_of(name: str) -> valid.Check:
    """The check of a dump of the player by a schema of measurements."""
    contract = schema.named(name)
    rule = contract["properties"]["repetitions"]["items"]["properties"]["streams"]["items"]
    if rule["properties"]["dumps"]["items"] != {"$ref": "#/$defs/dump"}:
        raise ValueError(f"{name} has other dumps")
    check = valid.validator(contract["$defs"]["dump"] | {"$defs": contract["$defs"]})
    return lambda row: check(row) and "processes" not in row

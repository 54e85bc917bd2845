"""The files of a trace of Recorder (uiuc-hpc/Recorder 2.3 to 3): each call of each rank.

A call is a number in a table of signatures: function and arguments, no result. A grammar
(Sequitur) stands for the numbers of all calls of a rank, and a file has their times. All numbers
are little-endian, as x86 and ARM write them. Versions differ in what is compressed and merged:

* to 2.5, `<rank>.cst`, `.cfg` and `.ts` are plain; with `ug.mt`, ranks have one table `0.cst` and
  share the grammars that it lists;
* from 3 on, `recorder.ts` has the times of all ranks, and tables and grammars are deflated.
"""

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from understudy.errors import UnderstudyError, one_line
from understudy.files import read_bytes

Grammar = dict[int, list[tuple[int, int]]]  # symbols of a rule: a call, or below 0 a rule; times
INDEX = "recorder.mt"
START = -1  # the rule that stands for all
KEY = struct.Struct("<qBBBi")  # of a signature: thread, function, depth, arguments, their bytes
USER_FUNCTION = 255
COLLECTIVE = ("MPI_Barrier", "MPI_Allreduce", "MPI_Allgather", "MPI_Alltoall")
PIECE_BYTES = 1 << 22
MAX_INFLATED = 1 << 28  # bytes of a part of a trace
_VERSION = re.compile(r"2\.[3-9]\.\d+|3\.\d+\.\d+")
_PLACE = re.compile(r"(-?\d{1,19})\*r\+(-?\d{1,19})")  # of all ranks, as a function of the rank


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a library. `epoch`: collective calls that have let all ranks wait before it."""

    rank: int
    name: str
    arguments: tuple[str, ...]
    begin_s: float
    end_s: float
    epoch: int = 0


class Trace:
    """A directory of Recorder. Raises UnderstudyError where a file is missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.version = _text(_bytes(folder / "VERSION")[:20]).strip()
        self.late = (folder / "recorder.ts").exists()  # as from 3 on
        path = folder / INDEX
        head = _bytes(path)
        names = head.find(b"creat\n")  # the first of all functions, in all versions
        if not _VERSION.fullmatch(self.version) or names < (40 if self.late else 32):
            raise UnderstudyError(
                f"{path}: expected a trace of Recorder 2.3 to 3 with a file VERSION, not "
                f"{one_line(self.version)!r}"
            )
        self.functions = [_text(name) for name in head[names:].split(b"\n")]
        (self.ranks,) = struct.unpack_from("<i", head)
        (self.tick_s,) = struct.unpack_from("<d", head, 24 if self.late else 16)
        self.deflated_times, _, _, differences = head[36:40] if self.late else (0, 0, 0, 0)
        if self.ranks < 1 or not (isfinite(self.tick_s) and self.tick_s > 0):
            raise UnderstudyError(
                f"{path}: {self.ranks} ranks and a time resolution of {self.tick_s} s; expected "
                "both above 0"
            )
        if differences:
            raise UnderstudyError(
                f"{path}: some places are differences, which do not tell them; record without "
                "RECORDER_INTRAPROCESS_PATTERN_RECOGNITION"
            )
        self._merged = (folder / "ug.mt").exists()
        self._tables: dict[Path, list[tuple[str, tuple[str, ...]]]] = {}
        self._packed = _of_each(folder / "recorder.ts", self.ranks) if self.late else []
        self._numbers = self._of_ranks()

    def _of_ranks(self) -> list[npt.NDArray[np.int32]]:
        """The numbers of all calls of each rank."""
        if not self._merged:
            paths = (self.folder / f"{rank}.cfg" for rank in range(self.ranks))
            return [self._expanded(k, self._grammar(path), path) for k, path in enumerate(paths)]
        path = self.folder / "ug.mt"
        *shared, count = [int(n) for n in _integers(path, _bytes(path))] or [0]
        if len(shared) != self.ranks or any(not 0 <= n < count for n in shared):
            raise UnderstudyError(
                f"{path}: expected for {self.ranks} ranks one of {count} grammars"
            )
        grammars = [*self._shared_grammars(count)]
        return [self._expanded(k, grammars[n], path) for k, n in enumerate(shared)]

    def _expanded(self, rank: int, grammar: Grammar, path: Path) -> npt.NDArray[np.int32]:
        return _expanded(grammar, len(self.times(rank)), len(self.table(rank)), path)

    def _shared_grammars(self, count: int) -> Iterator[Grammar]:
        if not self.late:
            yield from (self._grammar(self.folder / f"{k}.cfg") for k in range(count))
            return
        path, at = self.folder / "ug.cfg", 0
        data = _bytes(path)
        for _ in range(count):
            plain, at = _inflated(path, data, at)
            yield _rules(path, plain)

    def _grammar(self, path: Path) -> Grammar:
        return _rules(path, self._plain(path))

    def _plain(self, path: Path) -> bytes:
        data = _bytes(path)
        return _inflated(path, data, 0)[0] if self.late else data

    def times(self, rank: int) -> npt.NDArray[np.uint32]:
        """Begin and end of each call of a rank, in ticks behind the begin of the call before."""
        path = self.folder / ("recorder.ts" if self.late else f"{rank}.ts")
        data = self._packed[rank] if self.late else _bytes(path)
        if data and self.deflated_times:
            data, _ = _inflated(path, data, 0)
        if len(data) % 8:
            raise UnderstudyError(f"{path}: {len(data)} bytes of times, expected pairs of 4 bytes")
        return np.frombuffer(data, "<u4").reshape(-1, 2)

    def table(self, rank: int) -> list[tuple[str, tuple[str, ...]]]:
        """Function and arguments of each number of a call."""
        name = "recorder.cst" if self._merged and self.late else "0.cst"
        path = self.folder / (name if self._merged else f"{rank}.cst")
        if path not in self._tables:
            rows = _signatures(path, self._plain(path), 8 if self.version < "2.4" else 16)
            self._tables[path] = [
                ("" if number == USER_FUNCTION else self._function(path, number), arguments)
                for number, arguments in rows
            ]
        return self._tables[path]

    def _function(self, path: Path, number: int) -> str:
        if number >= len(self.functions):
            raise UnderstudyError(
                f"{path}: function {number}, expected one of the {len(self.functions)} of {INDEX}"
            )
        return self.functions[number]

    def _seconds(self, rank: int) -> npt.NDArray[np.float64]:
        """Begin and end of each call of a rank."""
        times = self.times(rank).astype(np.float64)
        begins = np.cumsum(times[:, 0])
        ends = times[:, 1] + begins - times[:, 0]
        seconds: npt.NDArray[np.float64] = np.stack([begins, ends], axis=1) * self.tick_s
        return seconds

    def calls(self) -> list[Iterator[Call]]:
        """All calls of each rank, in the order in which they began. Times of a trace count from
        the start of the rank; here, collective calls of all ranks overlap."""
        seconds = [self._seconds(rank) for rank in range(self.ranks)]
        waits = [self._waits(rank) for rank in range(self.ranks)]
        if len({int(waiting.sum()) for waiting in waits}) > 1:  # of ranks that ended early
            waits = [np.zeros_like(waiting) for waiting in waits]
        waited = seconds[0][waits[0]]
        for times, waiting in zip(seconds[1:], waits[1:], strict=True):
            if len(waited):
                other = times[waiting]
                times += (
                    (waited[:, 0] - other[:, 1]).max() + (waited[:, 1] - other[:, 0]).min()
                ) / 2
        first_s = min((float(times[0, 0]) for times in seconds if len(times)), default=0.0)
        return [
            self._calls(rank, seconds[rank] - first_s, waits[rank]) for rank in range(self.ranks)
        ]

    def _waits(self, rank: int) -> npt.NDArray[np.bool_]:
        """True for each call of a rank that ends only when all ranks have begun it."""
        collective = [
            k
            for k, (name, arguments) in enumerate(self.table(rank))
            if name in COLLECTIVE and arguments[-1:] == ("MPI_COMM_WORLD",)
        ]
        return np.isin(self._numbers[rank], collective)

    def _calls(
        self, rank: int, seconds: npt.NDArray[np.float64], waits: npt.NDArray[np.bool_]
    ) -> Iterator[Call]:
        table = self.table(rank)
        rows = zip(self._numbers[rank], np.cumsum(waits), seconds, strict=True)
        for number, epoch, (begin_s, end_s) in rows:
            name, arguments = table[number]
            if any("*r+" in text for text in arguments):
                arguments = tuple(_at_rank(text, rank) for text in arguments)
            yield Call(rank, name, arguments, float(begin_s), float(end_s), int(epoch))


def _at_rank(text: str, rank: int) -> str:
    match = _PLACE.fullmatch(text)
    return str(int(match[1]) * rank + int(match[2])) if match else text


# -- bytes ---------------------------------------------------------------------------------------


def _bytes(path: Path) -> bytes:
    try:
        return read_bytes(path)
    except OSError as error:
        raise UnderstudyError(
            f"{path}: cannot be read: {error.strerror}; expected it in a trace of Recorder"
        ) from None


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _integers(path: Path, data: bytes) -> Any:
    if len(data) % 4:
        raise UnderstudyError(f"{path}: {len(data)} bytes, expected numbers of 4 bytes")
    return np.frombuffer(data, "<i4")


def _of_each(path: Path, ranks: int) -> list[bytes]:
    """The bytes of each rank, behind the sizes of all."""
    data = _bytes(path)
    sizes = [int(n) for n in np.frombuffer(data, "<u8", min(ranks, len(data) // 8))]
    ends = [*accumulate(sizes, initial=8 * ranks)]
    if len(sizes) < ranks or ends[-1] > len(data):
        raise UnderstudyError(f"{path}: ends too early, expected the times of {ranks} ranks")
    return [data[begin:end] for begin, end in pairwise(ends)]


def _inflated(path: Path, data: bytes, at: int) -> tuple[bytes, int]:
    """The plain bytes behind two sizes, deflated and plain, and where they end."""
    if at + 16 > len(data):
        raise UnderstudyError(f"{path}: ends too early, at byte {len(data)}")
    packed, plain = struct.unpack_from("<QQ", data, at)
    end = at + 16 + packed
    if end > len(data):
        raise UnderstudyError(f"{path}: ends too early, at byte {len(data)} of {end}")
    if plain > MAX_INFLATED:
        raise UnderstudyError(
            f"{path}: byte {at + 8}: {plain} bytes deflated, expected {MAX_INFLATED} at most"
        )
    stream = zlib.decompressobj()
    pieces, size, rest = [], 0, data[at + 16 : end]
    try:
        while rest and size <= plain:
            pieces.append(stream.decompress(rest, PIECE_BYTES))
            size, rest = size + len(pieces[-1]), stream.unconsumed_tail
    except zlib.error as error:
        raise UnderstudyError(f"{path}: byte {at + 16}: cannot be inflated: {error}") from None
    if size != plain or not stream.eof:
        raise UnderstudyError(f"{path}: byte {at + 16}: expected {plain} bytes deflated")
    return b"".join(pieces), end


# -- signatures ----------------------------------------------------------------------------------


def _signatures(path: Path, data: bytes, head: int) -> list[tuple[int, tuple[str, ...]]]:
    """Function and arguments by number. `head`: bytes of number, (rank,) bytes (and count)."""
    count = struct.unpack_from("<i", data)[0] if len(data) >= 4 else -1
    signatures: dict[int, tuple[int, tuple[str, ...]]] = {}
    at = 4
    for _ in range(min(count, len(data))):
        if at + head > len(data):
            break
        fields = struct.unpack_from(f"<{head // 4}i", data, at)
        number, size = fields[0], fields[1 if head == 8 else 2]
        at += head
        if size < KEY.size or at + size > len(data):
            break
        _, function, _, arguments, length = KEY.unpack_from(data, at)
        words = data[at + KEY.size : at + size].split(b" ")
        at += size
        if length != size - KEY.size or len(words) != arguments + 1 or words[-1]:
            break
        signatures[number] = function, tuple(map(_text, words[:-1]))
    if len(signatures) != count or any(k not in signatures for k in range(count)):
        raise UnderstudyError(f"{path}: {len(signatures)} signatures, expected {count}, each once")
    return [signatures[k] for k in range(count)]


# -- grammars ------------------------------------------------------------------------------------


def _rules(path: Path, data: bytes) -> Grammar:
    numbers = _integers(path, data)
    rules: Grammar = {}
    at, count = 1, int(numbers[0]) if len(numbers) else -1
    while len(rules) < count and at + 2 <= len(numbers):
        rule, length = int(numbers[at]), int(numbers[at + 1])
        end = at + 2 + 2 * length
        if rule >= 0 or rule in rules or length < (rule != START) or end > len(numbers):
            break
        body = numbers[at + 2 : end].reshape(-1, 2)
        if (body[:, 1] < 1).any():
            break
        rules[rule], at = [(int(symbol), int(times)) for symbol, times in body], end
    if len(rules) != count or START not in rules:
        raise UnderstudyError(f"{path}: {len(rules)} rules, expected {count}, one of them {START}")
    return rules


def _expanded(rules: Grammar, calls: int, table: int, path: Path) -> npt.NDArray[np.int32]:
    """The numbers that a grammar stands for, of which there are as many as times."""
    lengths = _lengths(rules, calls, table, path)
    if lengths[START] != calls:
        raise UnderstudyError(f"{path}: {lengths[START]} calls, but {calls} have times")
    numbers = np.empty(calls, np.int32)
    at, bodies = 0, [_repeated(rules[START])]
    while bodies:
        symbol, times = next(bodies[-1], (START, 0))
        if times == 0:
            bodies.pop()
        elif symbol >= 0:
            numbers[at : at + times] = symbol
            at += times
        else:
            same = []
            while len(rules[symbol]) == 1 and rules[symbol][0][0] < 0 and rules[symbol][0][1] == 1:
                same.append(symbol)
                symbol = rules[symbol][0][0]
            rules.update((rule, rules[symbol]) for rule in same)  # each is another one
            bodies.append(_repeated(rules[symbol]))
    return numbers


def _repeated(body: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The symbols of a rule: calls with how often they come again, rules once each time."""
    for symbol, times in body:
        if symbol >= 0:
            yield symbol, times
        else:
            yield from ((symbol, 1) for _ in range(times))


def _lengths(rules: Grammar, most: int, table: int, path: Path) -> dict[int, int]:
    """The calls that each rule stands for; an error where a rule holds itself, names what is not
    there, or stands for more than `most`."""
    lengths: dict[int, int] = {}
    waiting, within = [START], set[int]()
    while waiting:
        rule = waiting[-1]
        missing = [s for s, _ in rules[rule] if s < 0 and s not in lengths]
        if rule in lengths:
            waiting.pop()
        elif missing:
            if rule in within or any(s not in rules for s in missing):
                raise UnderstudyError(f"{path}: rule {rule} holds itself or one that is missing")
            within.add(rule)
            waiting += missing
        else:
            waiting.pop()
            if any(s >= table for s, _ in rules[rule]):
                raise UnderstudyError(f"{path}: rule {rule}: expected {table} calls in the table")
            lengths[rule] = sum(times * lengths.get(s, 1) for s, times in rules[rule])
            if lengths[rule] > most:
                raise UnderstudyError(f"{path}: more calls than the {most} that have times")
    return lengths

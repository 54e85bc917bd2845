"""Observations of logs and workloads: streams, and their data calls.

A log is read by the reader that describes the
original, so that both sides are seen with the same eyes. The player names its files
<stream>[.<dump>][.f<file>][.<rank> or .g<group>][.<suffix>], those of floods
<stream>.<dump>[.d<directory>/]<file>, and those of operations <stream>.made.<file>; in a log with
such files the streams are told apart by these names, and the one dump of a stream with a file of
its own is not divided; everything else comes from Darshan's counters and times.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from understudy.contracts import workload
from understudy.contracts.workload import Stream, Workload
from understudy.darshanlog import Log, logs_below, open_joined, open_log
from understudy.darshanlog.log import BLOCK_RECORDS
from understudy.darshanlog.names import NameBlock
from understudy.darshanlog.records import Block
from understudy.errors import UnderstudyError
from understudy.inference.calls import calls
from understudy.inference.log import interface_counters
from understudy.inference.log.interface_counters import OF_METHOD
from understudy.inference.names.name_templates import Templates
from understudy.observations.observation import Observation, Seen, as_described
from understudy.program.calls import total
from understudy.program.instructions import NEW, Begin, Close, Sync
from understudy.program.opens import prepared_opens
from understudy.readers import darshan

Ids = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]


def observe(path: Path, original: Observation | None = None, partial: bool = False) -> Observation:
    """Observe a log, a directory with the logs of a job, or a workload (*.json).

    With `original`, a log of the player's is read as a replica of it: files that belong to no
    stream (the descriptor, the result) are left out and noted. `partial` accepts a log whose
    modules ran out of memory, which lacks files, and notes it.
    """
    if path.suffix == ".json":
        return as_described(workload.load(path))
    if original is not None:
        replica = _observe_player(path, original, partial)
        if replica is not None:
            return replica
    if not path.is_dir():
        with open_log(path) as log:
            return _observe_application(log, partial)
    below = logs_below(path)
    with open_joined(below.logs) as log:
        seen = _observe_application(log, partial)
    lost = len(below.left_out)
    notes = [f"{lost} left out of the directory, such as {below.left_out[0]}"] if lost else []
    return replace(seen, notes=(*seen.notes, *notes))


# -- a log of any application ---------------------------------------------------------------------


def _lacking(log: Log) -> tuple[str, ...]:
    """Notes on a log that was accepted although it lacks files."""
    short = [name for name, module in log.modules.items() if module.partial]
    if not short:
        return ()
    return (f"{log.path}: module {', '.join(short)} ran out of memory: the log lacks files",)


def _observe_application(log: Log, partial: bool) -> Observation:
    described, templates = darshan.describe(log, partial=partial)
    index = {name: k for k, name in enumerate(sorted({t for some in templates for t in some}))}
    name_templates = Templates()
    files = _number_names(
        log, lambda name: index.get(name_templates.names[name_templates.split(name)[0]], -1)
    )
    counted = calls.of_log(log, files.of, len(index))
    guessed = _guessed(described)
    seen: list[Seen] = []
    for stream, stream_templates in zip(described.streams, templates, strict=True):
        keys = [(index[t], stream.operation, stream.method) for t in stream_templates]
        parts = [counted[key] for key in keys if key in counted]
        named = (
            b"" not in stream_templates
        )  # the files of all streams without names have the same template
        seen.append(
            Seen(
                stream=stream,
                calls=total(parts) if parts and named else None,
                guessed=len(seen) in guessed,
            )
        )
    return Observation(
        ranks=described.ranks,
        streams=tuple(seen),
        interfaces=interface_counters.of_log(log),
        notes=_lacking(log),
        workload=described,
    )


def _guessed(described: Workload) -> set[int]:
    """The streams whose times and sizes of dumps are assumed, as the provenance says."""
    indices = set()
    for entry in described.provenance:
        parts = entry.path.split("/")
        if parts[1] == "streams" and parts[3:] == ["dumps"] and entry.confidence == "guess":
            indices.add(int(parts[2]))
    return indices


class _Lookup:
    """Numbers of records by their ids."""

    def __init__(self, ids: Sequence[Ids], numbers: Sequence[Numbers]) -> None:
        together = np.concatenate([np.empty(0, np.uint64), *ids])
        self._ids, first = np.unique(together, return_index=True)
        self._numbers = np.concatenate([np.empty(0, np.int64), *numbers])[first]

    def __len__(self) -> int:
        return len(self._ids)

    def of(self, records: Ids) -> Numbers:
        """The number of each record; -1 where it is unknown."""
        if not len(self._ids):
            return np.full(len(records), -1)
        place = np.minimum(np.searchsorted(self._ids, records), len(self._ids) - 1)
        return np.where(self._ids[place] == records, self._numbers[place], -1)


def _number_names(log: Log, number: Callable[[bytes], int]) -> _Lookup:
    """The records of the log by what `number` says of their names; -1: left out."""
    ids, numbers = [], []
    for block, texts in log.names():
        block_numbers = np.fromiter(map(number, texts), np.int64, len(texts))
        ids.append(block[block_numbers >= 0])
        numbers.append(block_numbers[block_numbers >= 0])
    return _Lookup(ids, numbers)


# -- a log of the player --------------------------------------------------------------------------


class _Player:
    """The player's names of files, for these streams."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self.streams = [s.name for s in streams]
        self._single = [s.dump_count == 1 for s in streams]
        self._index = {name.encode(): k for k, name in enumerate(self.streams)}
        names = b"|".join(map(re.escape, sorted(self._index, key=len, reverse=True)))
        self._file = re.compile(
            rb"(?:^|/)(%s)((?:\.made)?(?:\.\d{6,})?)(?:\.f(\d+))?"
            rb"((?:\.d\d{6,}/\d{8,}|\.\d{8,}|\.g\d+)?(?:\.(?!d\d{6})[a-z]\w*)?)$" % names
        )

    def number(self, name: bytes) -> int:
        """Which stream a file belongs to; -1: none."""
        match = self._file.search(name)
        return self._index[match[1]] if match else -1

    def plain(self, name: bytes) -> bytes:
        """The name with letters for the stream, so that all numbers in it are of dumps, files,
        groups and ranks; for the file too where a stream has one dump, because nothing else
        would tell files that are written one after the other from dumps."""
        match = self._file.search(name)
        if match is None:
            return name
        stream = self._index[match[1]]
        file = match[3] or b""
        if file:
            file = b".f" + (_letters(int(file)) if self._single[stream] else file)
        return _word(stream) + match[2] + file + match[4]

    def streams_of(self, templates: frozenset[bytes]) -> list[int]:
        """The streams of plain names."""
        letters = [_word(k) for k in range(len(self.streams))]
        heads = {name.partition(b".")[0] for name in templates}
        return [k for k, name in enumerate(letters) if name in heads]


def _word(stream: int) -> bytes:
    """A word for a stream that differs from those of others by more than names of files do that
    are used in turn."""
    return b"stream-" + b"".join(3 * bytes([letter]) for letter in _letters(stream))


def _letters(number: int) -> bytes:
    """a, b … z, ba, bb …"""
    head = _letters(number // 26) if number >= 26 else b""
    return head + bytes([ord("a") + number % 26])


class _PlayedLog(Log):
    """A log as if it held nothing but the files of the streams, under plain names."""

    def __init__(self, path: Path, player: _Player, files: _Lookup) -> None:
        self._player, self._files = player, files
        super().__init__(path, path.open("rb", buffering=0))

    def name_blocks(self) -> Iterator[NameBlock]:
        for block in super().name_blocks():
            yield NameBlock.of(block.ids, [self._player.plain(t) for t in block.texts()])

    def records(self, module: str, block_records: int = BLOCK_RECORDS) -> Iterator[Block]:
        for block in super().records(module, block_records):
            kept = block[self._files.of(block["file_rec_id" if module == "H5D" else "id"]) >= 0]
            if len(kept):
                yield kept


def _observe_player(path: Path, original: Observation, partial: bool) -> Observation | None:
    """The streams of a replica; None where no file has a name that the player gives."""
    streams = [seen.stream for seen in original.streams]
    player = _Player(streams)
    with open_log(path) as log:
        files = _number_names(log, player.number)
        if not len(files):
            return None
        if log.job.nprocs != original.ranks:
            raise UnderstudyError(
                f"{path}: the job record has {log.job.nprocs} processes, expected "
                f"{original.ranks}, as the workload that was played"
            )
        notes = (*_others(log, files), *_lacking(log))
        reads = [k for k, s in enumerate(streams) if s.operation == "read"]
        raw = interface_counters.of_log(
            log, lambda ids: files.of(ids) >= 0, lambda ids: np.isin(files.of(ids), reads)
        )
    for played in streams:
        reads_too, lacking = prepared_opens(played, original.ranks)
        for name, opens in ((OF_METHOD.get(played.method, ""), reads_too), ("POSIX", lacking)):
            if (totals := raw.direct.get(name)) is not None and totals.opens is not None:
                totals.opens = max(0, totals.opens - opens)
    with _PlayedLog(path, player, files) as log:
        described, templates = darshan.describe(log, partial=partial)
        counted = calls.of_log(log, files.of, len(streams))
    seen = []
    for stream, names in zip(described.streams, templates, strict=True):
        indices = player.streams_of(names)
        parts = [
            counted[key]
            for k in indices
            if (key := (k, stream.operation, stream.method)) in counted
        ]
        written = _written_by(stream, streams, indices[0]) if len(indices) == 1 else None
        seen.append(
            Seen(
                stream=_whole(stream) if written and _is_one_file(written) else stream,
                calls=total(parts) if parts else None,
                stands_for=written.name if written else "",
            )
        )
    return Observation(ranks=described.ranks, streams=tuple(seen), interfaces=raw, notes=notes)


def _is_one_file(stream: Stream) -> bool:
    """True if a stream writes one dump, to files of its own."""
    return stream.makes_new_files and stream.operation == "write" and stream.dump_count == 1


def _whole(stream: Stream) -> Stream:
    """A stream whose name tells that its files are of one dump: where the machine let a rank wait
    in the midst of it, the pause was taken for the time between two."""
    if not stream.grows or any(step.count > 1 for step in stream.steps):
        return stream
    overheads = [s.overhead_bytes for s in stream.steps if s.overhead_bytes is not None]
    step = replace(
        stream.steps[0],
        overhead_bytes=sum(overheads) if overheads else None,
        duration_s=None,
        body=(
            Begin(),
            replace(stream.open, mode=NEW),
            *(operation for step in stream.steps for operation in step.operations),
            *(move for step in stream.steps for move in step.moves),
            *((Sync(),) if stream.sync else ()),
            Close(),
        ),
    )
    files = replace(stream.set, names=None, numbered=True)
    return replace(stream, set=files, closes=False, steps=(step,))


def prepared(path: Path, streams: Sequence[Stream]) -> set[int]:
    """The records of a player's log that are files of streams that are only read: the player
    makes these files first, outside of what it measures."""
    player = _Player(streams)
    reads = {k for k, s in enumerate(streams) if s.operation == "read"}
    with open_log(path) as log:
        return {
            int(n)
            for ids, texts in log.names()
            for n, text in zip(ids, texts, strict=True)
            if player.number(text) in reads
        }


def _written_by(seen: Stream, streams: Sequence[Stream], k: int) -> Stream:
    """Which stream these files stand for: stream k, whose name they have, or the one of the
    interface that was seen among those that extend it."""
    name = streams[k].name
    several = [streams[k], *(s for s in streams if name == s.base)]
    alike = (s for s in several if (s.method, s.operation) == (seen.method, seen.operation))
    return next(alike, streams[k])


def _others(log: Log, files: _Lookup) -> Iterator[str]:
    """A message on the files that belong to no stream."""
    ids: set[int] = set()
    moved = 0
    for module in ("POSIX", "STDIO"):
        for block in log.records(module) if module in log.modules else ():
            size = block[f"{module}_BYTES_READ"] + block[f"{module}_BYTES_WRITTEN"]
            other = (files.of(block["id"]) < 0) & (size > 0)
            ids.update(block["id"][other].tolist())
            moved += int(size[other].sum())
    if ids:
        yield (
            f"{len(ids)} file{'s' if len(ids) > 1 else ''} of the replica's log belong to "
            f"no stream and were left out ({moved:,} B read and written)."
        )

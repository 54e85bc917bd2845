"""BP4 and BP5 files of ADIOS2, each a directory: what their metadata state, as an `Output`.

Contents are not read, and the files may be without their data. Everything that the metadata state
twice must agree, and so must the sizes of the files.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

import numpy as np

from understudy.adios2 import bp4, bp5, index, profile
from understudy.adios2.bp4_writers import Writers
from understudy.adios2.index import Header, StepBP5
from understudy.adios2.metadata import LARGEST, Metadata
from understudy.adios2.output import (
    GLOBAL_ARRAY,
    JOINED_ARRAY,
    VALUES,
    Attribute,
    Blocks,
    Instance,
    Integers,
    Output,
    Profile,
    Variable,
    element_bytes,
)
from understudy.errors import UnderstudyError, one_line

# ADIOS2's numbers of operators, with which data begin that went through one.
OPERATORS = {
    0: "blosc",
    1: "bzip2",
    2: "libpressio",
    3: "mgard",
    4: "png",
    5: "sirius",
    6: "sz",
    7: "zfp",
    8: "mgardplus",
    9: "bigwhoop",
    10: "mgard_complex",
    11: "sz3",
    41: "mdr",
    42: "prodm",
    45: "caesar",
    53: "plugin",
    127: "null",
}
PADDING = 16  # bytes at most between blocks of BP5
SECTOR = 512  # bytes to which direct I/O fills up
GROUP_HEAD = 1024  # bytes at most in which a group of BP4 states its length and step
GROUP_NONE = b"\xff\xff\xff\xffPGI]"  # behind the length, of a process that wrote nothing
Tick = Callable[[float], None]


@dataclass(slots=True, kw_only=True)
class _Collected:
    """Variables and attributes of the steps so far."""

    path: Path
    types: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    operators: dict[str, str] = field(default_factory=dict)
    instances: dict[str, list[Instance]] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)  # attributes with several values
    writers: int = 0
    times: list[int] = field(default_factory=list)
    behind: list[int] = field(default_factory=list)  # bytes from each step to the end

    def add(self, name: str, kind: tuple[str, str, int], operator: str, row: Instance) -> None:
        """Add a variable of a step. Blocks as of its step before are kept once."""
        if self.types.setdefault(name, kind) != kind:
            raise UnderstudyError(
                f"{self.path}: variable {one_line(name)}: {', '.join(kind[:2])} in step "
                f"{row.step}, {', '.join(self.types[name][:2])} before"
            )
        if operator:
            self.operators.setdefault(name, operator)
        _check_inside(self.path, name, kind[1], row)
        rows = self.instances.setdefault(name, [])
        rows.append(_shared(row, rows[-1]) if rows else row)

    def add_attributes(self, attributes: tuple[Attribute, ...]) -> None:
        """Add those of a step; the last value of one is kept, as ADIOS2 reads it."""
        for attribute in attributes:
            if self.attributes.setdefault(attribute.name, attribute) != attribute:
                self.changed.add(attribute.name)
            self.attributes[attribute.name] = attribute

    def notes(self) -> Iterator[str]:
        """What is not kept of the file."""
        if count := len(self.changed):
            yield (
                f"{count} attribute{'s' * (count != 1)} with several values: only the last of "
                "each is kept."
            )

    def variables(self) -> tuple[Variable, ...]:
        return tuple(
            Variable(
                name=name,
                type=kind[0],
                kind=kind[1],
                bytes=kind[2],
                operators=((self.operators[name], {}),) if name in self.operators else (),
                instances=tuple(self.instances[name]),
            )
            for name, kind in sorted(self.types.items())
        )


def is_bp(path: Path) -> bool:
    """True for a directory that is a BP4 or BP5 file."""
    return (path / "md.idx").is_file() and (path / "md.0").is_file()


def read(path: Path, tick: Tick = lambda _: None) -> Output:
    """The output in a BP4 or BP5 file."""
    header, rows = index.load(path)
    length = _size(path / "md.0")
    collected = _Collected(path=path)
    reader = _read_bp5 if header.format == 5 else _read_bp4
    steps, subfiles, notes = reader(path, header, rows, length, collected, tick)
    measured, left_out = profile.load(path / "profiling.json")
    if measured is not None:
        measured = replace(measured, steps=_profiled_steps(measured, steps, collected.behind))
    notes += [left_out] if left_out else []
    notes += collected.notes()
    if header.active:
        notes.append("The program was still writing, or ended without closing the file.")
    return Output(
        path=path,
        engine=f"BP{header.format}",
        version=header.version,
        writers=collected.writers,
        steps=steps,
        subfiles=subfiles,
        variables=collected.variables(),
        attributes=tuple(row for _, row in sorted(collected.attributes.items())),
        profile=measured,
        times=tuple(float(t - collected.times[0]) for t in collected.times),
        notes=tuple(notes),
    )


def _profiled_steps(measured: Profile, steps: int, behind: list[int]) -> int:
    """The time steps of the last session that wrote to the file, of which the profile is: the
    calls that BP5 counts; of BP4, those whose blocks lie in the bytes that it counts."""
    if "ES" in measured.calls:
        return min(int(measured.calls["ES"].max()), steps) or steps
    if "bytes" in measured.bytes and behind:
        written = int(measured.bytes["bytes"].sum())
        return sum(rest <= written for rest in behind) or steps
    return steps


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None


def _part(file: Path, position: int, length: int, big_endian: bool) -> Metadata:
    """Some bytes of a metadata file."""
    try:
        with file.open("rb") as opened:
            opened.seek(position)
            data = opened.read(length)
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None
    if len(data) < length:
        raise UnderstudyError(f"{file}: ends at byte {position + len(data):,} within a step")
    return Metadata(str(file), data, first=position, big_endian=big_endian)


def _read_bp5(
    path: Path, header: Header, rows: Metadata, length: int, collected: _Collected, tick: Tick
) -> tuple[int, int, list[str]]:
    places = index.steps_bp5(rows, length)
    _expect_end(path, sum(place.length for place in places), length)
    reader = bp5.load(path, index.content(path / "mmd.0"), header.column_major, header.big_endian)
    subfiles = 1 + max((int(place.subfile.max()) for place in places), default=-1)
    sizes, notes = _data_sizes(path, subfiles)
    derived = gaps = differing = 0
    ends = np.zeros(subfiles, np.int64)
    for number, place in enumerate(places):
        data = _part(path / "md.0", place.position, place.length, header.big_endian)
        try:
            step = reader.step(data, number, place)
        except KeyError as error:
            raise data.fault(0, f"a record without the field {error}") from None
        derived = max(derived, step.derived)
        collected.writers = max(collected.writers, len(place.subfile))
        _check_pieces(data, place, step, sizes, ends)
        gaps += _check_data(data, step)
        differing += step.shapes_differ
        for name, instance in step.instances.items():
            written = step.written[name]
            kind = written.type, written.kind, written.bytes
            operator = ""
            if written.operator and name not in collected.operators:
                operator = _operator(path, place, instance, step.places[name])
            collected.add(name, kind, operator, instance)
        collected.add_attributes(step.attributes)
        tick((number + 1) / len(places))
    if derived:
        notes.append(f"{derived} derived variables hold no data and are left out.")
    notes += _doubts(gaps, differing)
    return len(places), subfiles, notes


def _doubts(gaps: int, differing: int) -> Iterator[str]:
    """Notes on what ADIOS2 does not write by itself."""
    if gaps:
        yield f"The data have gaps between blocks in {gaps} steps: it may be damaged."
    if differing:
        yield f"Writers differ in the shape of an array in {differing} steps: it may be damaged."


def _expect_end(path: Path, end: int, length: int) -> None:
    if length != end:
        raise UnderstudyError(
            f"{path / 'md.0'}: {length:,} bytes: expected {end:,}, by the steps of md.idx"
        )


def _data_sizes(path: Path, subfiles: int) -> tuple[list[int], list[str]]:
    """The sizes of the files of data; none, and a note, where the metadata stand alone."""
    names = {int(m[1]) for f in path.iterdir() if (m := re.fullmatch(r"data\.(\d+)", f.name))}
    if not names:
        return [], ["The files of data are missing; their sizes are not checked."]
    missing = sorted(set(range(subfiles)) - names)
    if missing:
        raise UnderstudyError(
            f"{path}: data.{missing[0]} is missing: expected all of {subfiles} files of data, "
            "or none"
        )
    return [_size(path / f"data.{k}") for k in range(subfiles)], []


def _check_pieces(
    data: Metadata, place: StepBP5, step: bp5.Step, sizes: list[int], ends: Integers
) -> None:
    """The pieces of data of a step must lie in their subfiles, not overlap, and be behind those of
    the steps before, which end at `ends`; these are moved."""
    last = step.data_bytes - place.lengths.sum(axis=1)
    if (last < 0).any():
        raise data.fault(0, f"writer {int(last.argmin()):,} has less data than were flushed")
    lengths = np.concatenate([place.lengths, last[:, None]], axis=1)
    if sizes:
        past = (place.positions + lengths) - np.asarray(sizes)[place.subfile][:, None]
        past[lengths == 0] = 0  # of these, the place is where the next data would be
        if int(past.max()) > 0:
            worst = int(past.max(axis=1).argmax())
            raise data.fault(
                0,
                f"data of writer {worst:,} exceed data.{int(place.subfile[worst])} by "
                f"{int(past.max()):,} bytes",
            )
    used = lengths.ravel() > 0
    file = np.repeat(place.subfile, lengths.shape[1])[used]
    begin = place.positions.ravel()[used]
    order = np.lexsort((begin, file))
    file, begin = file[order], begin[order]
    end = begin + lengths.ravel()[used][order]
    before = np.where(np.concatenate([[0], file[:-1]]) == file, np.concatenate([[0], end[:-1]]), 0)
    before = np.maximum(before, ends[file])
    if (begin < before).any():
        worst = int((begin < before).argmax())
        raise data.fault(
            0,
            f"data at byte {int(begin[worst]):,} of data.{int(file[worst])} overlap those before, "
            f"which end at {int(before[worst]):,}",
        )
    np.maximum.at(ends, file, end)


def _check_data(data: Metadata, step: bp5.Step) -> bool:
    """The blocks of each writer must lie in its data, one behind the other. Return whether there
    are gaps, which ADIOS2 does not leave."""
    room = step.data_bytes
    writers, begins, lengths = [], [], []
    for name, instance in step.instances.items():
        if step.written[name].kind in VALUES:
            continue
        writers.append(instance.blocks.writers)
        begins.append(step.places[name])
        lengths.append(block_bytes(instance, step.written[name].bytes))
    if not writers:
        return bool((room > PADDING).any())
    writer, begin, length = (np.concatenate(parts) for parts in (writers, begins, lengths))
    used = length > 0
    writer, begin, length = writer[used], begin[used], length[used]
    order = np.lexsort((begin, writer))
    writer, begin, length = writer[order], begin[order], length[order]
    end = begin + length
    if (begin < 0).any() or (end > room[writer]).any():
        raise data.fault(0, "a block exceeds the data of its writer")
    same = writer[1:] == writer[:-1]
    if (same & (begin[1:] < end[:-1])).any():
        raise data.fault(0, "blocks overlap in the data of their writer")
    none = np.ones(len(room), bool)
    none[writer] = False
    before = np.concatenate([[0], np.where(same, end[:-1], 0)])[: len(begin)]
    last = np.concatenate([~same, [True]])[: len(end)] & (room[writer] % SECTOR > 0)
    filled = np.where(begin % SECTOR == 0, SECTOR, PADDING)
    gaps = (begin - before > filled).any() or (room[writer] - end > PADDING)[last].any()
    return bool(gaps or (room[none] > PADDING).any())


def block_bytes(instance: Instance, size: int) -> Integers:
    """The bytes of each block in the file, int64[n]."""
    if instance.stored is not None:
        return instance.stored
    counts = instance.blocks.counts
    product = counts.astype(np.float64).prod(axis=1) * size
    return np.where(product < 2**62, counts.prod(axis=1) * size, 1 << 62)


def _operator(path: Path, place: StepBP5, instance: Instance, places: Integers) -> str:
    """The operator of a variable, by the first byte of a block; "unknown" without the data."""
    assert instance.stored is not None
    for block in np.flatnonzero(instance.stored):
        writer, at = int(instance.blocks.writers[block]), int(places[block])
        for k, length in enumerate((*place.lengths[writer], 1 << 62)):
            if at < length:
                at += int(place.positions[writer, k])
                break
            at -= int(length)
        try:
            with (path / f"data.{int(place.subfile[writer])}").open("rb") as file:
                file.seek(at)
                return OPERATORS.get(file.read(1)[0], "unknown")
        except (OSError, IndexError):
            return "unknown"
    return "unknown"


def _read_bp4(
    path: Path, header: Header, rows: Metadata, length: int, collected: _Collected, tick: Tick
) -> tuple[int, int, list[str]]:
    places = index.steps_bp4(rows, length)
    _expect_end(path, places[-1].end if places else index.HEADER_BYTES, length)
    names = [m for f in path.iterdir() if (m := re.fullmatch(r"data\.(\d+)", f.name))]
    subfiles = 1 + max((int(m[1]) for m in names), default=-1)
    sizes, notes = _data_sizes(path, subfiles)
    groups = _Groups(path, header.big_endian)
    file = path / "md.0"
    ranks = bp4.ranks(
        _part(file, p.processes, p.variables - p.processes, header.big_endian) for p in places
    )
    writers = Writers(ranks, subfiles, groups.begins, groups.content)
    differing = used = 0
    begins: list[dict[int, int]] = []  # of each step, where the first block is in a subfile
    ends: dict[int, int] = dict(enumerate(sizes))
    for number, place in enumerate(places):
        data = _part(file, place.processes, place.end - place.processes, header.big_endian)
        collected.times.append(place.time_s)
        step = bp4.read_step(data, number, place, writers)
        differing += step.shapes_differ
        collected.writers = max(collected.writers, 1 + int(step.processes.max(initial=-1)))
        begins.append({})
        for name, instance in step.instances.items():
            _check_places(data, name, step.blocks[name], sizes)
            _extend(begins[-1], ends, step.blocks[name])
            used = max(used, 1 + int(step.blocks[name][:, 0].max()))
            kind, shape = step.types[name]
            collected.add(name, (kind, shape, element_bytes(kind)), step.operators[name], instance)
        collected.add_attributes(step.attributes)
        tick((number + 1) / len(places))
    collected.behind = _bytes_behind(begins, ends)
    return len(places), subfiles or used, [*notes, *_doubts(0, differing)]


def _extend(begins: dict[int, int], ends: dict[int, int], blocks: Integers) -> None:
    """Take blocks, int64[n, 3], into where those of a step begin and where each subfile ends."""
    for subfile in np.unique(blocks[:, 0]).tolist():
        _, begin, end = blocks[blocks[:, 0] == subfile].T
        begins[subfile] = min(begins.get(subfile, LARGEST), int(begin.min()))
        ends[subfile] = max(ends.get(subfile, 0), int(end.max()))


def _bytes_behind(begins: list[dict[int, int]], ends: dict[int, int]) -> list[int]:
    """The bytes from the first blocks of each step to the ends of the subfiles."""
    first = dict(ends)
    behind = []
    for step in reversed(begins):
        first |= step
        behind.append(sum(ends.values()) - sum(first.values()))
    return behind[::-1]


class _Groups:
    """The groups of processes in the files of data of BP4, one of each process in each step."""

    def __init__(self, path: Path, big_endian: bool) -> None:
        self.path = path
        self.big_endian = big_endian
        self.places: dict[int, dict[int, list[int]]] = {}

    def begins(self, subfile: int, step: int) -> Integers | None:
        """Where the groups of a step begin; None where the file cannot tell."""
        if subfile not in self.places:
            self.places[subfile] = dict(self._read(subfile))
        rows = self.places[subfile].get(step)
        return None if rows is None else np.array(rows, dtype=np.int64)

    def content(self, subfile: int, at: int, size: int) -> bytes:
        """Bytes of a file of data; fewer where it ends or cannot be read."""
        try:
            with (self.path / f"data.{subfile}").open("rb") as file:
                file.seek(at)
                return file.read(size)
        except OSError:
            return b""

    def _read(self, subfile: int) -> dict[int, list[int]]:
        steps: dict[int, list[int]] = {}
        try:
            with (self.path / f"data.{subfile}").open("rb") as file:
                at = index.HEADER_BYTES
                while head := _at(file, at):
                    row = Metadata(file.name, head, first=at, big_endian=self.big_endian)
                    if head[8:16] == GROUP_NONE:
                        at += 16
                        continue
                    if head[:4] != b"[PGI":
                        break
                    name = row.number(13, 2)
                    step_name = row.number(19 + name, 2)
                    steps.setdefault(row.number(21 + name + step_name, 4), []).append(at)
                    at += 4 + row.size(4, 8, "the length of a group")
        except (OSError, UnderstudyError):
            return {}
        return steps


def _at(file: BinaryIO, at: int) -> bytes:
    file.seek(at)
    return file.read(GROUP_HEAD)


def _check_places(data: Metadata, name: str, blocks: Integers, sizes: list[int]) -> None:
    """Each block must lie within its subfile."""
    if not sizes:
        return
    if int(blocks[:, 0].max()) >= len(sizes):
        raise data.fault(
            0,
            f"variable {one_line(name)}: a block in data.{int(blocks[:, 0].max())}: no such file",
        )
    if (blocks[:, 1:] > np.asarray(sizes)[blocks[:, 0]][:, None]).any():
        raise data.fault(
            0, f"variable {one_line(name)}: a block is behind the end of its file of data"
        )


def _check_inside(path: Path, name: str, kind: str, row: Instance) -> None:
    """Blocks must lie within the global array."""
    if kind not in (GLOBAL_ARRAY, JOINED_ARRAY) or row.shape is None:
        return
    starts, counts, shape = row.blocks.starts, row.blocks.counts, np.asarray(row.shape)
    if counts.shape[1] != len(shape) or (shape < 0).any():
        raise UnderstudyError(
            f"{path}: variable {one_line(name)}: step {row.step}: shape {row.shape}"
        )
    past = np.flatnonzero((counts > 0).all(axis=1) & (starts > shape - counts).any(axis=1))
    if len(past):
        block = int(past[0])
        raise UnderstudyError(
            f"{path}: variable {one_line(name)}: step {row.step}: block of writer "
            f"{int(row.blocks.writers[block])} at {starts[block].tolist()} with "
            f"{counts[block].tolist()} elements exceeds the array of {list(row.shape)}"
        )


def _shared(row: Instance, before: Instance) -> Instance:
    """The instance with the arrays of the one before where they are equal."""
    pairs = [
        (getattr(row.blocks, key), getattr(before.blocks, key))
        for key in ("writers", "starts", "counts")
    ]
    same = [old if np.array_equal(new, old) else new for new, old in pairs]
    if all(array is old for array, (_, old) in zip(same, pairs, strict=True)):
        return replace(row, blocks=before.blocks)
    return replace(row, blocks=Blocks(writers=same[0], starts=same[1], counts=same[2]))

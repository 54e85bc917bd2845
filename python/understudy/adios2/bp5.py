"""Metadata of BP5: for each time step a record of each writer, in formats of FFS (mmd.0).

A record holds a bit for each variable that the writer wrote in the step, the values of scalars,
and of arrays the shape, the blocks and their places in the writer's data.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from understudy.adios2 import ffs
from understudy.adios2.ffs import Field, Format
from understudy.adios2.index import StepBP5
from understudy.adios2.metadata import Metadata, joined, ragged
from understudy.adios2.output import (
    GLOBAL_ARRAY,
    GLOBAL_VALUE,
    JOINED_ARRAY,
    LOCAL_ARRAY,
    LOCAL_VALUE,
    STRING,
    Attribute,
    Blocks,
    Instance,
    Integers,
    element_bytes,
)
from understudy.errors import one_line

KINDS = {
    "g": GLOBAL_VALUE,
    "l": LOCAL_VALUE,
    "G": GLOBAL_ARRAY,
    "L": LOCAL_ARRAY,
    "J": JOINED_ARRAY,
}
# ADIOS2's numbers of its types.
TYPES = (
    "",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "float",
    "double",
    "long double",
    "float complex",
    "double complex",
    STRING,
    "char",
    "struct",
)
MAX_RANK = 64
ARRAYS = 18  # is added to the type of an attribute that is an array
_NAME = re.compile(r"BP(?P<kind>[gGlLJ])_(?P<name>.*)", re.DOTALL)
_DERIVED = re.compile(r"BP[GLJ]-\d+-")
_ARRAY = re.compile(r"(?P<bytes>\d{1,9})_(?P<type>\d{1,3})_(?P<name>.*)", re.DOTALL)
_STRUCT = re.compile(r"[0-9a-f]+_(?P<name>.*)", re.DOTALL)
_SCALARS = {
    "integer": {1: "int8_t", 2: "int16_t", 4: "int32_t", 8: "int64_t"},
    "unsigned integer": {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"},
    "float": {4: "float", 8: "double", 16: "long double"},
    "double": {4: "float", 8: "double", 16: "long double"},
    "complex4": {8: "float complex"},
    "complex8": {16: "double complex"},
    "char": {1: "char"},
    "string": {4: STRING, 8: STRING},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A variable in a format: its name, type, kind and element size, and the field with it."""

    name: str
    type: str
    kind: str
    bytes: int
    field: Field
    operator: bool


@dataclass(slots=True, kw_only=True)
class Pieces:
    """A variable in a time step: the blocks of the writers of each format."""

    written: Written
    writers: list[Integers] = field(default_factory=list)
    starts: list[Integers] = field(default_factory=list)
    counts: list[Integers] = field(default_factory=list)
    places: list[Integers] = field(default_factory=list)
    stored: list[Integers] = field(default_factory=list)
    shape: tuple[int, ...] | None = None
    shapes_differ: bool = False
    value: tuple[int, str] | None = None
    values: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A time step: its variables by name, their `Written`, the place of each block in the data of
    its writer, and the bytes of data of each writer, int64[writers]."""

    instances: Mapping[str, Instance]
    written: Mapping[str, Written]
    places: Mapping[str, Integers]
    data_bytes: Integers
    attributes: tuple[Attribute, ...]
    derived: int
    shapes_differ: bool


class Reader:
    """Reads the time steps of md.0."""

    def __init__(self, formats: Metadata, column_major: bool) -> None:
        self.formats = ffs.formats(formats)
        self.column_major = column_major
        self.room = 0  # bytes of the step that are left for numbers of blocks
        self.written: dict[int, tuple[list[Written | None], int]] = {}

    def step(self, data: Metadata, number: int, place: StepBP5) -> Step:
        """The time step whose metadata these are."""
        writers = len(place.subfile)
        heads = 8 + 16 * writers
        if data.number(0, 8) != len(data) - 8:
            raise data.fault(0, f"step of {data.number(0, 8):,} bytes: expected {len(data) - 8:,}")
        data.expect(0, heads, "the lengths of the writers' records")
        numbers = 8 + 8 * np.arange(2 * writers, dtype=np.int64)
        lengths = data.sizes(numbers, 8, "the length of a record")
        ends = heads + np.cumsum(lengths)
        if float(lengths.sum(dtype=np.float64)) > len(data) or int(ends[-1]) != len(data):
            raise data.fault(8, f"records of {writers:,} writers do not fill the step")
        begins = ends - lengths
        self.room = len(data)
        pieces: dict[str, Pieces] = {}
        data_bytes = np.zeros(writers, np.int64)
        derived = 0
        for format_, rows in self._grouped(data, begins[:writers], lengths[:writers]):
            derived = max(
                derived,
                self._records(
                    data, format_, rows, begins[rows], lengths[rows], pieces, data_bytes
                ),
            )
        attributes = [
            attribute
            for row in np.flatnonzero(lengths[writers:])
            for attribute in self._attributes(
                data, int(begins[writers + row]), int(ends[writers + row])
            )
        ]
        return Step(
            instances={name: self._instance(number, p, data) for name, p in pieces.items()},
            written={name: p.written for name, p in pieces.items()},
            places={name: _ordered(p)[1] for name, p in pieces.items()},
            data_bytes=data_bytes,
            attributes=tuple(attributes),
            derived=derived,
            shapes_differ=any(p.shapes_differ for p in pieces.values()),
        )

    def _grouped(
        self, data: Metadata, begins: Integers, lengths: Integers
    ) -> Iterator[tuple[Format, Integers]]:
        """The formats of the records, and the writers of each."""
        if int(lengths.min()) < ffs.ID_BYTES + 12:
            raise data.fault(int(begins[int(lengths.argmin())]), "a record ends too early")
        identities = data.array[begins[:, None] + np.arange(ffs.ID_BYTES)]
        whole = identities.view(f"V{ffs.ID_BYTES}").ravel()
        _, first, group = np.unique(whole, return_index=True, return_inverse=True)
        for k, row in enumerate(first):
            yield self._format(data, int(begins[row])), np.flatnonzero(group == k)

    def _format(self, data: Metadata, at: int) -> Format:
        identity = data.data[at : at + ffs.ID_BYTES]
        if identity not in self.formats:
            raise data.fault(at, "a record is of a format that is not in mmd.0")
        return self.formats[identity]

    def _records(
        self,
        data: Metadata,
        format_: Format,
        rows: Integers,
        begins: Integers,
        lengths: Integers,
        pieces: dict[str, Pieces],
        data_bytes: Integers,
    ) -> int:
        """Add the blocks of the records of a format, those of the writers `rows`; return how many
        derived variables it has."""
        view = Metadata(data.file, data.data, first=data.first, big_endian=format_.big_endian)
        header = format_.header_bytes
        stated = view.sizes(begins + ffs.ID_BYTES, header - 16 if header > 16 else 4, "a length")
        padding = lengths - header - stated  # up to a multiple of 8
        wrong = np.flatnonzero((padding < 0) | (padding > 7) | (stated < format_.record_bytes))
        if len(wrong):
            raise data.fault(int(begins[wrong[0]]), "the length of a record is wrong")
        base, room = begins + header, lengths - header
        names, derived = self._variables(view, format_)
        count = self._column(view, format_, "BitFieldCount", base)
        if "BitField" not in format_.fields:
            raise data.fault(int(begins[0]), f"a record {format_.name!r}: expected variables")
        bits = self._pointers(view, format_, format_.fields["BitField"], base, count, 8, room)
        behind = format_.fields["BitField"].offset + format_.pointer_bytes  # wrong of 32 bits
        data_bytes[rows] = view.sizes(base + behind, 8, "DataBlockSize")
        for k, written in enumerate(names):
            if written is None:
                continue
            word = np.flatnonzero(count > k // 64)
            present = word[
                (view.gather(bits[word] + k // 64 * 8, 8) >> np.uint64(k % 64) & np.uint64(1)) == 1
            ]
            if not len(present):
                continue
            blocks_of = pieces.setdefault(written.name, Pieces(written=written))
            if (blocks_of.written.type, blocks_of.written.kind) != (written.type, written.kind):
                raise data.fault(0, f"variable {one_line(written.name)}: of two types in one step")
            if written.kind in (GLOBAL_VALUE, LOCAL_VALUE):
                self._scalar(
                    view, format_, written, blocks_of, rows[present], base[present], room[present]
                )
            else:
                self._array(
                    view, format_, written, blocks_of, rows[present], base[present], room[present]
                )
        return derived

    def _column(self, view: Metadata, format_: Format, name: str, base: Integers) -> Integers:
        """The number in a field of each record."""
        if name not in format_.fields:
            raise view.fault(0, f"a format without the field {name}")
        row = format_.fields[name]
        return view.sizes(base + row.offset, row.bytes, name)

    def _pointers(
        self,
        view: Metadata,
        format_: Format,
        row: Field,
        base: Integers,
        count: Integers,
        size: int,
        room: Integers,
    ) -> Integers:
        """Where the array of `count` numbers begins to which a field points; -1 for none."""
        place = view.sizes(base + row.offset, format_.pointer_bytes, row.name)
        past = (count > room) | (place > room) | (place + count * size > room)
        if (past & (place > 0)).any():
            worst = int(np.flatnonzero(past)[0])
            raise view.fault(int(base[worst]) + row.offset, f"{row.name}: exceeds its record")
        return np.where(place > 0, base + place, -1)

    def _variables(self, view: Metadata, format_: Format) -> tuple[list[Written | None], int]:
        """The variables of a format in the order of their bits; None for derived ones."""
        key = id(format_)
        if key not in self.written:
            rows = [r for r in format_.fields.values() if r.name.startswith("BP")]
            names = [_written(view, row, format_) for row in rows]
            self.written[key] = names, names.count(None)
        return self.written[key]

    def _scalar(
        self,
        view: Metadata,
        format_: Format,
        written: Written,
        pieces: Pieces,
        rows: Integers,
        base: Integers,
        room: Integers,
    ) -> None:
        none = np.zeros((len(rows), 0), np.int64)
        pieces.writers.append(rows)
        pieces.starts.append(none)
        pieces.counts.append(none)
        pieces.places.append(np.full(len(rows), -1, np.int64))
        texts: Iterator[str] = (
            self._text(view, format_, written, int(begin), int(size))
            for begin, size in zip(base, room, strict=True)
        )
        if written.kind == LOCAL_VALUE:
            pieces.values += (whole := list(texts))
            texts = iter(whole)
        if pieces.value is None or pieces.value[0] > rows[0]:
            pieces.value = int(rows[0]), next(texts)

    def _text(
        self, view: Metadata, format_: Format, written: Written, begin: int, room: int
    ) -> str:
        """A scalar of the writer whose record begins there."""
        at = begin + written.field.offset
        if written.type != STRING:
            return view.value(at, written.type)
        place = view.size(at, format_.pointer_bytes, "a text")
        return view.line(begin + place, begin + room) if place else ""

    def _array(
        self,
        view: Metadata,
        format_: Format,
        written: Written,
        pieces: Pieces,
        rows: Integers,
        base: Integers,
        room: Integers,
    ) -> None:
        part = format_.parts[written.field.type]
        base_ = base + written.field.offset
        dims = self._column(view, part, "Dims", base_)
        blocks = self._column(view, part, "BlockCount", base_)
        numbers = self._column(view, part, "DBCount", base_)
        name = one_line(written.name)
        wrong = (blocks > room) | (numbers > room) | (dims != dims[0]) | (numbers != dims * blocks)
        if wrong.any():
            raise view.fault(
                int(base_[0]), f"variable {name}: numbers of dimensions or blocks are wrong"
            )
        rank = int(dims[0])
        self.room -= 8 * int(numbers.sum() + blocks.sum())
        if rank > MAX_RANK or self.room < 0:  # each block has numbers of its own
            raise view.fault(int(base_[0]), f"variable {name}: too many dimensions or blocks")
        if pieces.counts and pieces.counts[0].shape[1] != rank:
            raise view.fault(int(base_[0]), f"variable {name}: writers differ in rank")
        each = np.ones_like(blocks)

        def table(name: str, count: Integers) -> Integers:
            row = part.fields[name]
            inner = Field(
                name=row.name,
                type=row.type,
                bytes=row.bytes,
                offset=row.offset + written.field.offset,
            )
            place = self._pointers(view, part, inner, base, count, row.bytes, room)
            used = np.where(place < 0, 0, count)
            at = np.repeat(place, used) + row.bytes * ragged(used)
            return view.gather(at, row.bytes).view(np.int64)

        counts = (
            table("Count", numbers).reshape(-1, rank)
            if rank
            else np.zeros((int(blocks.sum()), 0), np.int64)
        )
        starts = table("Offset", numbers)
        starts = starts.reshape(-1, rank) if len(starts) == counts.size else np.zeros_like(counts)
        places = table("DataBlockLocation", blocks)
        if len(counts) != int(blocks.sum()) or len(places) != len(counts):
            raise view.fault(int(base_[0]), f"variable {name}: blocks without counts")
        shapes = table("Shape", dims * each)
        if len(shapes) >= rank and rank and written.kind != LOCAL_ARRAY:
            shape = tuple(int(n) for n in shapes[-rank:])
            differing = shapes.reshape(-1, rank) != shapes[-rank:]
            pieces.shapes_differ |= bool(differing.any()) or pieces.shape not in (None, shape)
            pieces.shape = shape
        pieces.writers.append(np.repeat(rows, blocks))
        pieces.starts.append(starts)
        pieces.counts.append(counts)
        pieces.places.append(places)
        pieces.stored.append(
            table("DataBlockSize", blocks) if written.operator else np.full(len(counts), -1)
        )

    def _instance(self, number: int, pieces: Pieces, data: Metadata) -> Instance:
        order, _ = _ordered(pieces)
        rank = pieces.counts[0].shape[1]
        starts, counts = (np.concatenate(parts)[order] for parts in (pieces.starts, pieces.counts))
        stored = joined(pieces.stored)[order] if pieces.stored else None
        if stored is not None:
            whole = counts.prod(axis=1) * pieces.written.bytes
            stored = np.where(stored < 0, whole, stored) if (stored >= 0).any() else None
        shape = pieces.shape
        name = one_line(pieces.written.name)
        if len(counts) and (counts.min(initial=0) < 0 or starts.min(initial=0) < 0):
            raise data.fault(0, f"variable {name}: a block is too large")
        if self.column_major:
            starts, counts = starts[:, ::-1], counts[:, ::-1]
            shape = None if shape is None else shape[::-1]
        if pieces.written.kind == JOINED_ARRAY and shape is not None:
            starts, shape = along_joined(counts, shape)
        if pieces.written.kind == GLOBAL_ARRAY and shape is None and rank:
            raise data.fault(0, f"variable {name}: a global array without shape")
        return Instance(
            step=number,
            shape=shape,
            blocks=Blocks(
                writers=joined(pieces.writers)[order],
                starts=np.ascontiguousarray(starts),
                counts=np.ascontiguousarray(counts),
            ),
            value=None if pieces.value is None else pieces.value[1],
            values=tuple(pieces.values[k] for k in order) if pieces.values else (),
            stored=stored,
        )

    def _attributes(self, data: Metadata, begin: int, end: int) -> Iterator[Attribute]:
        """The attributes in a record of a writer."""
        data.expect(begin, ffs.ID_BYTES + 4, "a record of attributes")
        format_ = self._format(data, begin)
        view = Metadata(data.file, data.data, first=data.first, big_endian=format_.big_endian)
        record = _Record(view, begin + format_.header_bytes, end)
        if format_.name == "GenericAttributes":
            yield from _attributes(record, format_)
        elif format_.name == "Attributes":
            yield from _attribute_fields(record, format_)
        else:
            raise data.fault(begin, f"a record {format_.name!r} where attributes were expected")


def along_joined(counts: Integers, shape: tuple[int, ...]) -> tuple[Integers, tuple[int, ...]]:
    """Starts of blocks that are put one behind the other along the joined dimension, the negative
    one of the shape, and the shape of all."""
    dimension = next((d for d, n in enumerate(shape) if n < 0), 0)
    starts = np.zeros_like(counts)
    ends = np.cumsum(counts[:, dimension])
    starts[:, dimension] = ends - counts[:, dimension]
    whole = list(shape)
    whole[dimension] = int(ends[-1]) if len(ends) else 0
    return starts, tuple(whole)


def _ordered(pieces: Pieces) -> tuple[Integers, Integers]:
    """The order of the blocks by writer, and the places of the blocks in it."""
    order = np.argsort(joined(pieces.writers), kind="stable")
    return order, joined(pieces.places)[order]


def _written(view: Metadata, row: Field, format_: Format) -> Written | None:
    """The variable in a field; None where it is derived when it is read."""
    if _DERIVED.match(row.name):
        return None
    match = _NAME.fullmatch(row.name)
    if match is None:
        raise view.fault(0, f"field {row.name!r}: expected a variable")
    kind, name = KINDS[match["kind"]], match["name"]
    if kind in (GLOBAL_VALUE, LOCAL_VALUE):
        type_ = _SCALARS.get(row.type, {}).get(row.bytes, "")
        size = 0 if type_ == STRING else row.bytes
        operator = False
    else:
        array = _ARRAY.fullmatch(name)
        if array is None or row.type not in format_.parts or int(array["type"]) >= len(TYPES):
            raise view.fault(0, f"field {row.name!r} of type {row.type!r}: not supported")
        type_, size, name = TYPES[int(array["type"])], int(array["bytes"]), array["name"]
        if type_ == "struct" and (struct := _STRUCT.fullmatch(name)):
            name = struct["name"]
        operator = row.type.startswith("MetaArrayOp")
    if not type_:
        raise view.fault(0, f"field {row.name!r} of type {row.type!r}: not supported")
    return Written(name=name, type=type_, kind=kind, bytes=size, field=row, operator=operator)


@dataclass(frozen=True, slots=True)
class _Record:
    """A record that begins and ends at these bytes."""

    view: Metadata
    begin: int
    end: int

    def number(self, row: Field, at: int) -> int:
        """The number in a field of the part that begins `at`."""
        return self.view.size(at + row.offset, row.bytes, row.name)

    def pointer(self, row: Field, at: int, bytes_: int, size: int) -> int:
        """Where the `size` bytes stand to which a field points."""
        place = self.view.size(at + row.offset, bytes_, row.name)
        if self.begin + place + size > self.end:
            raise self.view.fault(at + row.offset, f"{row.name}: exceeds its record")
        return self.begin + place

    def text(self, row: Field, at: int, bytes_: int) -> str:
        return self.view.line(self.pointer(row, at, bytes_, 1), self.end)


def _attributes(record: _Record, format_: Format) -> Iterator[Attribute]:
    pointer = format_.pointer_bytes
    for rows in ("PrimAttr", "StrAttr"):
        part = format_.parts[rows]
        count = record.number(format_.fields[f"{rows}Count"], record.begin)
        if not count:
            continue
        if part.record_bytes < 1:
            raise record.view.fault(record.begin, "attributes without bytes")
        first = record.pointer(
            format_.fields[f"{rows}s"], record.begin, pointer, count * part.record_bytes
        )
        for at in range(first, first + count * part.record_bytes, part.record_bytes):
            name = record.text(part.fields["name"], at, pointer)
            type_ = ord(name[0]) - ord("0") if name else 0
            kind = TYPES[type_ % ARRAYS] if type_ % ARRAYS < len(TYPES) and type_ > 0 else ""
            if not kind:
                raise record.view.fault(at, f"attribute {name[1:]!r}: of an unknown type")
            values = _values(record, part, at, kind)
            yield Attribute(name=name[1:], type=kind, values=values, array=type_ > ARRAYS)


def _values(record: _Record, part: Format, at: int, kind: str) -> tuple[str, ...]:
    pointer = part.pointer_bytes
    if kind != STRING:
        total = record.number(part.fields["TotalElementSize"], at)
        place = record.pointer(part.fields["Values"], at, pointer, total)
        size = element_bytes(kind) or 1
        return record.view.values(place, kind, total // size) if kind != "struct" else ()
    count = record.number(part.fields["ElementCount"], at)
    row = part.fields["Values"]
    place = record.pointer(row, at, pointer, count * pointer)
    inner = Field(name=row.name, type=row.type, bytes=pointer, offset=0)
    return tuple(record.text(inner, place + k * pointer, pointer) for k in range(count))


def _attribute_fields(record: _Record, format_: Format) -> Iterator[Attribute]:
    """Attributes with a field of each, as where UseOneTimeAttributes is off."""
    counts = {
        r.name.removesuffix("ElemCount"): r
        for r in format_.fields.values()
        if r.name.endswith("ElemCount")
    }
    for row in format_.fields.values():
        if row in counts.values():
            continue
        kind = row.type.partition("[")[0]
        type_ = _SCALARS.get(kind, {}).get(row.bytes, "")
        if row.name in counts and type_:
            count = record.number(counts[row.name], record.begin)
            size = format_.pointer_bytes if type_ == STRING else row.bytes
            place = record.pointer(row, record.begin, format_.pointer_bytes, count * size)
            inner = Field(name=row.name, type=kind, bytes=size, offset=0)
            values = (
                tuple(record.text(inner, place + k * size, size) for k in range(count))
                if type_ == STRING
                else record.view.values(place, type_, count)
            )
            yield Attribute(name=row.name[4:], type=type_, values=values, array=True)
        elif match := re.fullmatch(r"BPg_\d+_(\d{1,3})_(.*)", row.name, re.DOTALL):
            type_ = TYPES[int(match[1])] if int(match[1]) < len(TYPES) else ""
            if type_ == STRING:
                text = record.text(row, record.begin, format_.pointer_bytes)
                yield Attribute(name=match[2], type=type_, values=(text,))
            elif type_ and type_ != "struct":
                value = record.view.value(record.begin + row.offset, type_)
                yield Attribute(name=match[2], type=type_, values=(value,))


def load(path: Path, data: bytes, column_major: bool, big_endian: bool) -> Reader:
    """A reader of the steps of a BP file, whose mmd.0 these are."""
    formats = Metadata(str(path / "mmd.0"), data, big_endian=big_endian)
    return Reader(formats, column_major)

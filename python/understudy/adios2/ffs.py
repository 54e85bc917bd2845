"""Formats of FFS, in which BP5 describes the records of its metadata: fields with name, type, size
and offset. The identity of a format holds a hash of it, which is checked."""

from collections.abc import Mapping
from dataclasses import dataclass

from understudy.adios2.metadata import Metadata

ID_BYTES = 12
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """`bytes` of a number in it, or of the whole; `offset` from the record's begin."""

    name: str
    type: str
    bytes: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """The fields of a record by name, the formats of records in it, and the layout of both:
    `header_bytes` stand before a record."""

    name: str
    fields: Mapping[str, Field]
    record_bytes: int
    pointer_bytes: int
    header_bytes: int
    big_endian: bool
    parts: Mapping[str, "Format"]


def formats(metadata: Metadata) -> dict[bytes, Format]:
    """The formats in the file mmd.0 by their identities."""
    by_identity: dict[bytes, Format] = {}
    at = 0
    while at < len(metadata):
        lengths = metadata.number(at, 8), metadata.number(at + 8, 8)
        if lengths[0] != ID_BYTES:
            raise metadata.fault(at, f"identity of {lengths[0]:,} bytes: expected {ID_BYTES}")
        at += 16
        metadata.expect(at, sum(lengths), "a format")
        identity = metadata.data[at : at + ID_BYTES]
        at += ID_BYTES
        by_identity[identity] = _format(metadata, at, lengths[1], identity)
        at += lengths[1]
    return by_identity


def _network(data: bytes, low: int, high: int) -> int:
    """A length whose lower and higher 16 bits stand apart, in network order."""
    return int.from_bytes(data[high : high + 2] + data[low : low + 2], "big")


def _format(metadata: Metadata, at: int, length: int, identity: bytes) -> Format:
    text = metadata.data[at : at + length]
    size = _network(text, 0, 6) if length >= 8 else 0
    if not 8 < size <= length:
        raise metadata.fault(at, f"a format of {size:,} bytes in {length:,}")
    stated = int.from_bytes(identity[1:4], "big"), identity[4:]
    hashes = b"".join(number.to_bytes(4, "big") for number in hash_of(text[:size]))
    if identity[0] != 2 or stated != (size >> 2, hashes):
        raise metadata.fault(at, "a format does not fit its hash")
    parts: dict[str, Format] = {}
    position = 8
    top = None
    for _ in range(text[4] + 1):
        part, used = _part(metadata, at + position, size - position, parts)
        parts[part.name] = part
        top = top or part
        position += used
    assert top is not None
    return top


def _part(metadata: Metadata, at: int, rest: int, parts: dict[str, Format]) -> tuple[Format, int]:
    """A format and its length. The hash fits: what is impossible here is of another version."""
    if rest < 28:
        raise metadata.fault(at, "a format ends too early")
    data = metadata.data
    size = _network(data[at : at + 28], 0, 24)
    version, big_endian = data[at + 2], bool(data[at + 3] & 1)
    if version not in (1, 2) or not 28 <= size <= rest:
        raise metadata.fault(at, f"a format of version {version}, which is not supported")
    view = Metadata(metadata.file, data, first=metadata.first, big_endian=big_endian)
    count, header = view.number(at + 8, 4), data[at + 17]
    if header + 16 * count > size:
        raise metadata.fault(at, f"{count:,} fields in a format of {size:,} bytes")
    end = at + size
    fields = []
    for row in range(at + header, at + header + 16 * count, 16):
        name, kind, length, offset = (view.number(row + k, 4) for k in (0, 4, 8, 12))
        fields.append(
            Field(
                name=view.line(at + name, end),
                type=view.line(at + kind, end),
                bytes=length,
                offset=offset,
            )
        )
    counted = ID_BYTES + (4 if version == 1 else 8)  # the length of the record stands there, too
    format_ = Format(
        name=view.line(at + view.number(at + 4, 4), end),
        fields={field.name: field for field in fields},
        record_bytes=view.number(at + 12, 4),
        pointer_bytes=data[at + 16],
        header_bytes=(counted + 7) // 8 * 8,
        big_endian=big_endian,
        parts=parts,
    )
    return format_, size


def hash_of(data: bytes) -> tuple[int, int]:
    """The two hashes of FFS: hashlittle2 of Bob Jenkins' lookup3 (public domain), 2006."""
    a = b = c = (0xDEADBEEF + len(data)) & _MASK
    words = len(data)
    at = 0
    while words - at > 12:
        a = (a + int.from_bytes(data[at : at + 4], "little")) & _MASK
        b = (b + int.from_bytes(data[at + 4 : at + 8], "little")) & _MASK
        c = (c + int.from_bytes(data[at + 8 : at + 12], "little")) & _MASK
        a, b, c = _mixed(a, b, c)
        at += 12
    tail = data[at:]
    if not tail:
        return c, b
    tail = tail.ljust(12, b"\0")
    a = (a + int.from_bytes(tail[:4], "little")) & _MASK
    b = (b + int.from_bytes(tail[4:8], "little")) & _MASK
    c = (c + int.from_bytes(tail[8:12], "little")) & _MASK
    return _last(a, b, c)


def _turn(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def _mixed(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a = (a - c & _MASK) ^ _turn(c, bits)
        c = c + b & _MASK
        a, b, c = b, c, a
    return a, b, c


def _last(a: int, b: int, c: int) -> tuple[int, int]:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        c = (c ^ b) - _turn(b, bits) & _MASK
        a, b, c = b, c, a
    a, b, c = c, a, b  # the seventh step changed what was c
    return c, b

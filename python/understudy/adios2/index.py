"""The index of a BP4 or BP5 file, md.idx: where the metadata of each time step stand in md.0."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from understudy.adios2.metadata import Metadata
from understudy.adios2.output import Integers
from understudy.errors import UnderstudyError
from understudy.files import read_bytes

HEADER_BYTES = 64
TAG = b"ADIOS-BP v"
ARCHIVE = b"This is dummy ADIOS metadata"  # of files that were put together again
BP5_MINOR = 2  # of the format, since ADIOS2 2.8
EARLIEST_S, LATEST_S = 1 << 30, 1 << 33  # of the time of a step: 2004 to 2242
ROW_BYTES = 64  # of a time step of BP4


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the first bytes of md.idx state: `format` 4 or 5, the `version` of the library,
    empty where it is not stated, and whether the writer was `active` when they were written."""

    format: int
    version: str
    big_endian: bool
    active: bool
    column_major: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBP4:
    """Where in md.0 the processes, variables and attributes of a step begin, and where it ends;
    the `time_s` when it was written, since the epoch."""

    processes: int
    variables: int
    attributes: int
    end: int
    time_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBP5:
    """Where in md.0 a step is, the `subfile` of each writer, int64[writers], and the data of each
    there: its pieces at `positions`, int64[writers, flushes + 1], of `lengths`, int64[writers,
    flushes]; that of the last stands in md.0."""

    position: int
    length: int
    subfile: Integers
    positions: Integers
    lengths: Integers


def load(path: Path) -> tuple[Header, Metadata]:
    """The header of md.idx in a BP file, and all of its bytes."""
    file = path / "md.idx"
    data = content(file)
    if len(data) < HEADER_BYTES:
        raise UnderstudyError(f"{file}: {len(data)} bytes: expected at least {HEADER_BYTES}")
    if data[36] not in (0, 1) or data[37] not in (4, 5):
        raise UnderstudyError(
            f"{file}: BP version {data[37]}, byte order {data[36]}: expected BP version 4 or 5"
        )
    if data[37] == 5 and data[38] != BP5_MINOR:
        raise UnderstudyError(
            f"{file}: BP version 5.{data[38]}: expected 5.{BP5_MINOR}; convert the file with "
            "adios2_reorganize"
        )
    if not data.startswith((TAG + b"%c.%c.%c" % tuple(data[32:35]), ARCHIVE)):
        raise UnderstudyError(f"{file}: expected {TAG.decode()!r} and a version at its begin")
    header = Header(
        format=data[37],
        version=".".join(str(d - ord("0")) for d in data[32:35]) * data.startswith(TAG),
        big_endian=bool(data[36]),
        active=bool(data[39] if data[37] == 5 else data[38]),
        column_major=data[37] == 5 and data[40:41] == b"y",
    )
    return header, Metadata(str(file), data, big_endian=header.big_endian)


def content(file: Path) -> bytes:
    """The bytes of a metadata file."""
    try:
        return read_bytes(file)
    except OSError as error:
        raise UnderstudyError(f"{file}: cannot be read: {error.strerror}") from None


def steps_bp4(index: Metadata, length: int) -> list[StepBP4]:
    """The time steps of a BP4 file whose md.0 has that length."""
    rows = len(index) - HEADER_BYTES
    if rows % ROW_BYTES:
        raise index.fault(len(index) - rows % ROW_BYTES, "the row of a step ends too early")
    steps: list[StepBP4] = []
    begin = HEADER_BYTES
    for at in range(HEADER_BYTES, len(index), ROW_BYTES):
        number, _, *places, time_s = (index.number(at + 8 * k, 8) for k in range(7))
        expected = len(steps) + 1
        if number != expected:
            raise index.fault(at, f"step {number:,}: expected {expected:,}")
        if places != sorted(places) or places[0] != begin or places[3] > length:
            raise index.fault(
                at + 16,
                f"step {number:,} at {', '.join(f'{p:,}' for p in places)} of md.0: expected "
                f"rising places from {begin:,} to at most {length:,}",
            )
        if not EARLIEST_S <= time_s < LATEST_S or (steps and time_s < steps[-1].time_s):
            raise index.fault(at + 48, f"step {number:,}: at {time_s:,} s since 1970")
        begin = places[3]
        steps.append(
            StepBP4(
                processes=places[0],
                variables=places[1],
                attributes=places[2],
                end=begin,
                time_s=time_s,
            )
        )
    return steps


def steps_bp5(index: Metadata, length: int) -> list[StepBP5]:
    """The time steps of a BP5 file whose md.0 has that length."""
    steps: list[StepBP5] = []
    subfile: Integers = np.zeros(0, np.int64)
    at = HEADER_BYTES
    begin = 0
    while at < len(index):
        kind, size = index.number(at, 1), index.size(at + 1, 8, "the length of a record")
        index.expect(at + 9, size, "a record")
        if kind == ord("w"):
            subfile = _writers(index, at + 9, size)
        elif kind == ord("s"):
            steps.append(_step(index, at + 9, size, subfile))
            if steps[-1].position != begin:
                raise index.fault(at + 9, f"step at {steps[-1].position:,}: expected {begin:,}")
            begin += steps[-1].length
            if begin > length:
                raise index.fault(at + 17, f"step ends at {begin:,} of {length:,} bytes of md.0")
        else:
            raise index.fault(at, f"record of type {kind}: expected a step or the writers")
        at += 9 + size
    return steps


def _writers(index: Metadata, at: int, size: int) -> Integers:
    writers = index.size(at, 8, "the number of writers")
    files = index.size(at + 16, 8, "the number of subfiles")
    if size != 24 + 8 * writers or not writers:
        raise index.fault(at, f"{writers:,} writers in a record of {size:,} bytes")
    subfile = index.sizes(at + 24 + 8 * np.arange(writers, dtype=np.int64), 8, "a subfile")
    if int(subfile.max()) >= files:
        raise index.fault(at + 24, f"a writer has subfile {int(subfile.max()):,} of {files:,}")
    return subfile


def _step(index: Metadata, at: int, size: int, subfile: Integers) -> StepBP5:
    position = index.size(at, 8, "the place of a step")
    length = index.size(at + 8, 8, "the length of a step")
    flushes = index.size(at + 16, 8, "the number of flushes")
    columns = 2 * flushes + 1
    if not len(subfile) or size != 24 + 8 * columns * len(subfile):
        raise index.fault(
            at + 16, f"{flushes:,} flushes of {len(subfile):,} writers in {size:,} bytes"
        )
    places = at + 24 + 8 * np.arange(columns * len(subfile), dtype=np.int64)
    table = index.sizes(places, 8, "a place in a subfile").reshape(len(subfile), columns)
    return StepBP5(
        position=position,
        length=length,
        subfile=subfile,
        positions=table[:, ::2],
        lengths=table[:, 1::2],
    )

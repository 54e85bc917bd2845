"""Writes traces as Recorder does: `write(folder, ranks)`, of calls of each rank."""

import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

FUNCTIONS = (
    *("creat", "creat64", "open", "open64", "close", "write", "read", "lseek", "pread", "pwrite"),
    *("writev", "fopen", "fclose", "fwrite", "fread", "fseek", "fsync", "ftruncate", "mkdir"),
    *("rmdir", "unlink", "rename", "access", "__xstat", "mmap", "dup", "vfprintf"),
    *("MPI_Barrier", "MPI_File_write_at", "H5Dwrite"),
)
Call = tuple[str, ...]  # the function and its arguments
Rules = dict[int, list[tuple[int, int]]]  # symbols and how often they come again


def cst(table: Sequence[Call], head: int = 16) -> bytes:
    """A table of signatures, each behind 8 (Recorder 2.3) or 16 bytes."""
    encoded = struct.pack("<i", len(table))
    for number, (function, *arguments) in enumerate(table):
        text = "".join(f"{a} " for a in arguments).encode("utf-8", "surrogateescape")
        key = struct.pack("<qBBBi", 0, FUNCTIONS.index(function), 0, len(arguments), len(text))
        key += text
        first = (number, 0, len(key), 1) if head == 16 else (number, len(key))
        encoded += struct.pack(f"<{len(first)}i", *first) + key
    return encoded


def cfg(rules: Rules) -> bytes:
    """A grammar."""
    numbers = [len(rules)]
    for rule, body in rules.items():
        numbers += [rule, len(body), *(n for symbol in body for n in symbol)]
    return struct.pack(f"<{len(numbers)}i", *numbers)


def deflated(plain: bytes) -> bytes:
    packed = zlib.compress(plain)
    return struct.pack("<QQ", len(packed), len(plain)) + packed


def write(
    folder: Path,
    ranks: Sequence[Sequence[Call]],
    version: str = "3.0.0",
    merged: bool = False,
    late_s: Sequence[float] = (),
    rules: Rules | None = None,
) -> Path:
    """A trace of these calls, each of 10 µs every 20 µs: the one of a step of all ranks at the
    same time. `late_s`: when each rank has started its clock. `rules`: the grammar of all ranks,
    of calls of the first in the order in which they come first."""
    folder.mkdir(parents=True, exist_ok=True)
    late = version >= "3"
    calls = [call for rank in ranks for call in rank]
    tables = [[*dict.fromkeys(calls if merged else rank)] for rank in ranks]
    grammars = [
        rules or {-1: [(table.index(call), 1) for call in rank]}
        for rank, table in zip(ranks, tables, strict=True)
    ]
    times = [_times(len(rank), *late_s[k : k + 1]) for k, rank in enumerate(ranks)]
    (folder / "VERSION").write_text(version)
    head = struct.pack("<i4xddiii4x", len(ranks), 1.7e9, 1e-6, 1 << 18, 0, merged)
    if late:
        head = struct.pack(
            "<i6?6xddi4?",
            len(ranks),
            *6 * (True,),
            1.7e9,
            1e-6,
            1 << 18,
            True,
            merged,
            *2 * (False,),
        )
    names = "".join(f"{name}\n" for name in FUNCTIONS)
    (folder / "recorder.mt").write_bytes(head + names.encode())
    packed = deflated if late else bytes
    if merged:
        (folder / ("recorder.cst" if late else "0.cst")).write_bytes(packed(cst(tables[0])))
        different = [*dict.fromkeys(map(cfg, grammars))]
        which = [different.index(cfg(grammar)) for grammar in grammars]
        numbers = struct.pack(f"<{len(which) + 1}i", *which, len(different))
        (folder / "ug.mt").write_bytes(numbers)
        if late:
            (folder / "ug.cfg").write_bytes(b"".join(map(deflated, different)))
    else:
        different = [cfg(grammar) for grammar in grammars]
        for rank, table in enumerate(tables):
            data = packed(cst(table, 8 if version < "2.4" else 16))
            (folder / f"{rank}.cst").write_bytes(data)
    for k, grammar in enumerate(different if not (merged and late) else ()):
        (folder / f"{k}.cfg").write_bytes(packed(grammar))
    if late:
        blobs = [deflated(data) for data in times]
        sizes = struct.pack(f"<{len(blobs)}Q", *map(len, blobs))
        (folder / "recorder.ts").write_bytes(sizes + b"".join(blobs))
    else:
        for rank, data in enumerate(times):
            (folder / f"{rank}.ts").write_bytes(data)
    return folder


def _times(count: int, late_s: float = 0) -> bytes:
    first = round(0.01 * 1e6 - late_s * 1e6)
    begins = [first, *(count - 1) * [20]]
    pairs = [(begin, begin + 10) for begin in begins[:count]]
    return b"".join(struct.pack("<II", *pair) for pair in pairs)

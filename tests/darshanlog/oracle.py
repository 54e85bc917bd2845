"""Records as pydarshan's C library gives them, and where it is known to be wrong."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.needs import lacking

if reason := lacking("pydarshan"):
    pytest.skip(reason, allow_module_level=True)

from darshan.backend import cffi_backend

backend: Any = cffi_backend

Columns = dict[str, np.ndarray]


class OracleLog:
    """A log opened by pydarshan."""

    def __init__(self, path: Path) -> None:
        self.handle = backend.log_open(str(path))
        assert self.handle["handle"] != backend.ffi.NULL, f"pydarshan cannot open {path}"

    def __enter__(self) -> "OracleLog":
        return self

    def __exit__(self, *_: object) -> None:
        backend.log_close(self.handle)

    @property
    def modules(self) -> dict[str, dict[str, Any]]:
        """By name; modules newer than pydarshan have no name and are left out."""
        mods, count = backend.ffi.new("struct darshan_mod_info **"), backend.ffi.new("int *")
        backend.libdutil.darshan_log_get_modules(self.handle["handle"], mods, count)
        infos = [mods[0][i] for i in range(count[0])]
        modules = {
            backend.ffi.string(info.name).decode(): {
                "idx": info.idx,
                "len": info.len,
                "ver": info.ver,
                "partial_flag": bool(info.partial_flag),
            }
            for info in infos
            if info.name != backend.ffi.NULL
        }
        self.handle["modules"] = modules
        return modules

    def records(self, module: str) -> Iterator[dict[str, Any]]:
        """One dict a record, counters as arrays."""
        if module in self.modules:
            while (record := backend.log_get_record(self.handle, module)) is not None:
                yield record

    def fixed(self, module: str) -> Columns:
        """All records of a fixed-size module, by column."""
        rows = list(self.records(module))
        columns = {
            name: np.array([row[name] for row in rows], dtype)
            for name, dtype in (("id", "u8"), ("rank", "i8"), ("file_rec_id", "u8"))
            if not rows or name in rows[0]
        }
        tables = (
            ("counters", backend.counter_names(module), "i8"),
            ("fcounters", backend.fcounter_names(module), "f8"),
        )
        for what, names, dtype in tables:
            table = np.array([row[what] for row in rows], dtype).reshape(len(rows), len(names))
            columns |= {name: table[:, i].copy() for i, name in enumerate(names)}
        return columns

    @property
    def names(self) -> dict[int, bytes]:
        """The first name of each record id that is not empty."""
        names = backend.log_get_name_records(self.handle)
        return {number: name.encode() for number, name in names.items()}


def repair(oracle: Columns, module: str, version: int, byte_order: str) -> set[str]:
    """Undo what darshan-posix-logutils.c gets wrong as it upgrades old records.

    From logs in the other byte order it leaves three counters before version 4 unswapped, since
    it compares their index with that of integer counters: swapped here, in place. And it moves as
    many bytes as the old record had, so that the last counters of versions 2 and 3 are lost and
    read 0: they are returned, to be compared with zeros.
    """
    if module != "POSIX" or version >= 4:
        return set()
    if byte_order == "big":
        for name in ("F_META_TIME", "F_MAX_READ_TIME", "F_MAX_WRITE_TIME"):
            oracle[f"POSIX_{name}"] = oracle[f"POSIX_{name}"].byteswap()
    lost = [
        "POSIX_F_FASTEST_RANK_TIME",
        "POSIX_F_SLOWEST_RANK_TIME",
        "POSIX_F_VARIANCE_RANK_TIME",
        "POSIX_F_VARIANCE_RANK_BYTES",
    ]
    return set({2: lost, 3: lost[2:]}.get(version, []))


def assert_equal_columns(ours: np.ndarray, oracle: Columns, lost: set[str]) -> int:
    """Compare bit by bit and return the number of counters compared."""
    assert ours.dtype.names is not None
    assert set(ours.dtype.names) <= set(oracle)
    compared = 0
    for name in ours.dtype.names:
        if name in lost:
            assert not oracle[name].any(), f"pydarshan has {name} after all"
            continue
        bits = np.ascontiguousarray(ours[name]).view("u8")
        np.testing.assert_array_equal(bits, oracle[name].view("u8"), err_msg=name)
        compared += len(bits)
    return compared

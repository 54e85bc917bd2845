"""Lists a BP file by ADIOS2's own module: `python -m understudy.adios2.library FILE ENGINE`.

It runs as a process of its own, because a damaged file may crash or hang the library. It writes
lines of JSON, and behind the line of an instance its blocks as int64: the writers, then starts and
counts of each block. `bp_file` reads them and believes nothing in them.
"""

import json
import os
import sys
from importlib import import_module
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

KINDS = {
    "GlobalValue": "global value",
    "LocalValue": "local value",
    "GlobalArray": "global array",
    "LocalArray": "local array",
    "JoinedArray": "joined array",
}


def list_file(path: str, engine: str, output: BinaryIO) -> None:
    """Write what is in a file, time step by time step."""
    bindings = import_module("adios2.bindings")

    adios = bindings.ADIOS()
    io = adios.DeclareIO("list")
    io.SetEngine(engine)
    io.SetParameter("OpenTimeoutSecs", "0")
    reader = io.Open(path, bindings.Mode.Read)
    step = 0
    while reader.BeginStep(bindings.StepMode.Read, 0.0) == bindings.StepStatus.OK:
        _write(output, {"step": step})
        for name in io.AvailableVariables():
            _instance(bindings, io, reader, name, output)
        reader.EndStep()
        step += 1
    for name, attribute in io.AvailableAttributes().items():
        _write(output, {"attribute": name, "type": attribute["Type"], "values": _values(io, name)})
    reader.Close()
    _write(output, {"end": step})


def _instance(bindings: Any, io: Any, reader: Any, name: str, output: BinaryIO) -> None:
    variable = io.InquireVariable(name)
    rows = reader.BlocksInfo(name, reader.CurrentStep())
    kind = KINDS[variable.ShapeID().name]
    shape = list(variable.Shape()) if kind in ("global array", "joined array") else None
    value = None
    if kind.endswith("value"):
        rank = 0
        value = _value(bindings, reader, variable, rows)
    else:
        rank = rows[0]["Count"].count(",") + 1 if rows else len(shape or ())
    writers = np.array([row["WriterID"] for row in rows], dtype=np.int64)
    counts = _numbers(rows, "Count", rank)
    has_starts = rank and rows and rows[0]["Start"].count(",") == rank - 1 and rows[0]["Start"]
    parts = [_numbers(rows, "Start", rank) if has_starts else np.zeros_like(counts), counts]
    _write(
        output,
        {
            "variable": name,
            "type": variable.Type(),
            "kind": kind,
            "shape": shape,
            "value": value,
            "blocks": len(rows),
            "rank": rank,
        },
    )
    for array in (writers, *parts):
        output.write(array.tobytes())


def _numbers(rows: list[dict[str, str]], key: str, rank: int) -> npt.NDArray[np.int64]:
    if not rank or not rows:
        return np.zeros(0, np.int64)
    return np.array(",".join(row[key] for row in rows).split(","), dtype=np.int64)


def _value(bindings: Any, reader: Any, variable: Any, rows: list[dict[str, str]]) -> str | None:
    if variable.Type() == "string":
        return str(reader.Get(variable, bindings.Mode.Sync))
    if not rows:
        return None
    return rows[0].get("Value", rows[0].get("Min", "")) or None


def _values(io: Any, name: str) -> list[str]:
    attribute = io.InquireAttribute(name)
    if attribute.Type() == "string":
        return [str(text) for text in attribute.DataString()]
    return [str(number) for number in np.atleast_1d(attribute.Data())]


def _write(output: BinaryIO, row: dict[str, object]) -> None:
    output.write(json.dumps(row).encode() + b"\n")


def main() -> None:
    path, engine = sys.argv[1:]
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # the library's own words are no rows
        list_file(path, engine, output)


if __name__ == "__main__":
    main()

"""From instructions back to the keys of understudy/workload/2 that mean them, for tests that edit
keys: the descriptors of before, of which Python reads programs."""

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import Any, TypeAlias

from understudy.contracts.workload import Pattern, Workload, streams_of
from understudy.contracts.workload.migration import pattern_of
from understudy.program.descriptor import schema
from understudy.program.types import KEYS
from understudy.program.workload import row_of

Row: TypeAlias = dict[str, Any]

HEADER = ("name", "description", "ranks", "scaling", "runtime_s", "compute")

_LAYOUTS = {
    "all ranks": "shared",
    "each rank": "file-per-process",
    "each group": "grouped",
    "each row": "flood",
}

# Keys of a set, an open and a move that have the values of a stream's keys.
_OF_SET = ("own_directories", "files_per_directory")
_OF_OPEN = ("direct", "write_through", "chunk_bytes", "fill")


def to_keys(workload: Workload) -> str:
    """A workload of patterns as keys."""
    return json.dumps(ordered(keys_of(row_of(workload))))


def patterns_of(workload: Workload) -> list[Pattern]:
    """What its streams say as keys."""
    return [pattern_of(stream) for stream in keys_of(row_of(workload))["streams"]]


def with_patterns(workload: Workload, patterns: Iterable[Pattern]) -> Workload:
    """The workload with the streams of other patterns."""
    return replace(workload, streams=streams_of(patterns, workload.ranks))


def with_keys(workload: Workload, index: int = 0, /, **keys: Any) -> Workload:
    """The workload with other keys of one of its streams."""
    patterns = patterns_of(workload)
    patterns[index] = replace(patterns[index], **keys)
    return with_patterns(workload, patterns)


def ordered(value: Any) -> Any:
    """Keys in the order in which the schema documents them."""
    if isinstance(value, list):
        return [ordered(v) for v in value]
    if not isinstance(value, dict):
        return value
    objects = [schema(), *schema()["$defs"].values()]
    documented = (
        o["properties"]
        for o in objects
        if "required" in o and set(o["required"]) <= set(value) <= set(o["properties"])
    )
    return {key: ordered(value[key]) for key in next(documented, value) if key in value}


def keys_of(row: Row) -> Row:
    """The workload/2 of a program."""
    sets = {files["name"]: files for files in row["sets"]}
    keys: dict[str, Row] = {}
    labels, overheads = row.get("labels", {}), row.get("overheads", {})
    for stream in row["streams"]:
        here = overheads.get(stream["name"], [])
        keys[stream["name"]] = _Stream(stream, sets, keys).row(labels, here)
    header = {key: row[key] for key in (*HEADER, "source", "provenance")}
    return {"schema": KEYS, **header, "streams": list(keys.values())}


def flat(body: list[Any]) -> Iterator[Any]:
    """The instructions of a body with those of the loops within."""
    for instruction in body:
        yield instruction
        if isinstance(instruction, dict):
            yield from flat(instruction.get("in_turn") or instruction.get("do") or [])


class _Stream:
    """One stream, whose keys are those of its set, of its open and of its moves."""

    def __init__(self, stream: Row, sets: dict[str, Row], before: dict[str, Row]) -> None:
        self._stream = stream
        self._steps = stream["steps"]
        every = [i for step in self._steps for i in flat(step["do"])]
        self._words = {i for i in every if isinstance(i, str)}
        self._rows = [i for i in every if isinstance(i, dict)]
        self._open: Row = self._first("open") or stream  # which says as much without one
        self._moves = [i for i in self._rows if "write" in i or "read" in i]
        self._set = sets[self._open.get("open", self._open.get("set"))]
        base = self._open.get("behind", self._open.get("last"))
        self._base = before[base] if base else None

    def _first(self, verb: str) -> Row:
        return next((i for i in self._rows if verb in i), {})

    def row(self, labels: Row, overheads: list[list[int]]) -> Row:
        """The stream as its keys say it."""
        name, move = self._stream["name"], self._moves[0] if self._moves else {}
        files = self._files()
        row: Row = {
            "name": name,
            "label": labels.get(name, ""),
            "role": self._stream["role"],
            "operation": "read" if self._reads() else "write",
            "files": files,
            "layout": _LAYOUTS[self._set["of"]],
            "groups": self._set.get("groups"),
            "method": self._stream["method"],
            "transfer_bytes": move.get("transfer_bytes", 1),
            "collective": bool(self._moves) and all(m.get("collective") for m in self._moves),
            "sync": "sync" in self._words,
            "turns": any("in_turn" in i for i in self._rows),
            "content": self._stream.get("content", {"kind": "random", "compressibility": 0}),
        }
        row |= self._optional(files, move)
        pairs = zip(self._steps, _overheads(self._steps, overheads), strict=True)
        row["dumps"] = [self._dump(step, row, labels, bytes_) for step, bytes_ in pairs]
        return row

    def _reads(self) -> bool:
        if self._moves:
            return "read" in self._moves[0]
        prepared = bool(self._set.get("prepared"))
        return prepared or "last" in self._open or self._open.get("mode") == "read"

    def _files(self) -> str:
        if self._base is not None:
            return "update" if "last" in self._open else self._base["files"]
        index = self._set.get("index", "k")
        if index == "none":
            return "append"
        if index == "k":
            return "new"
        kept = self._open.get("mode") in ("keep", "read") or self._reads()
        return "update" if kept else "rewrite"

    def _optional(self, files: str, move: Row) -> Row:
        """Keys that are not there where they have their defaults."""
        row: Row = {}
        index = self._set.get("index")
        if isinstance(index, int) and index > 1 and "last" not in self._open:
            row["names"] = index
        closes = self._stream.get("close_last", False)
        if self._set["of"] != "each row" and closes != (files == "append"):
            row["reopen"] = not closes
        row |= {key: self._open[key] for key in _OF_OPEN if key in self._open}
        owner = self._set if self._base is None else self._stream
        row |= {key: owner[key] for key in _OF_SET if key in owner}
        if self._base is not None and "behind" in self._open:
            row["extends"] = self._open["behind"]
            row |= {key: self._base[key] for key in ("removes", "backup") if key in self._base}
        if "last" in self._open:
            row["reads"] = self._open["last"]
        if self._words & {"remove", "rename"}:
            row |= {"removes": True} | ({"backup": True} if "rename" in self._words else {})
        if "spread" in self._words:
            row["pace"] = "steady"
        order = self._first("each_file").get("order", move.get("order"))
        if order is not None:
            row["order"] = order
        if "repeat" in self._first("repeat"):
            row["passes"] = self._first("repeat")["repeat"]
        if "flush_bytes" in move:
            row["flush_bytes" if move.get("to_system") else "sync_bytes"] = move["flush_bytes"]
        if "lookups" in move:
            row["lookups"] = move["lookups"]
        return row

    def _dump(self, step: Row, stream: Row, labels: Row, overhead: int | None) -> Row:
        rows = [i for i in flat(step["do"]) if isinstance(i, dict)]
        moves = [i for i in rows if "write" in i or "read" in i]
        row: Row = {
            "time_s": step["at"],
            "duration_s": step.get("lasting"),
            "overhead_bytes": overhead,
            "variables": [_variable(move, stream, labels) for move in moves],
        }
        if step.get("repeat", 1) > 1:
            row["repeat"] = {"count": step["repeat"], "period_s": step["every"]}
        operations = [
            {"operation": i["operate"], "runs": i["runs"]} for i in rows if "operate" in i
        ]
        if operations:
            row["operations"] = operations
        for i in rows:
            row |= {"compute_s": i["compute"]} if "compute" in i else {}
            row |= {"skew": i["wait"]} if "wait" in i else {}
        if stream["files"] != "append" and "begin" not in step["do"]:
            row["continues"] = True
        return row


def _overheads(steps: list[Row], runs: list[list[int]]) -> Iterator[int | None]:
    """For each step, the overhead of its first dump; `runs` are (dumps, bytes of each)."""
    ends = list(accumulate(dumps for dumps, _ in runs))
    first = 0
    for step in steps:
        run = bisect_right(ends, first)
        yield runs[run][1] if run < len(runs) else None
        first += step.get("repeat", 1)


def _variable(move: Row, stream: Row, labels: Row) -> Row:
    name = move.get("write", move.get("read"))
    row: Row = {
        "name": name,
        "label": labels.get(f"{stream['name']}/{name}", ""),
        "count": move.get("count", 1),
        "type": move["type"],
        "shape": move["shape"],
        "decomposition": move.get("split", {"rule": "even"}),
        "file": move.get("file", 0),
    }
    if move["transfer_bytes"] != stream["transfer_bytes"]:
        row["transfer_bytes"] = move["transfer_bytes"]
    if move.get("collective", False) != stream["collective"]:
        row["collective"] = move.get("collective", False)
    if "at" in move:
        row["at"] = move["at"]
    return row

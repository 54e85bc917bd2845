"""From instructions back to the keys that stand for them: understudy/workload/3 as workload/2.

What the package does with a workload, it does with its keys; the player carries out instructions.
A program is read if its keys mean just these instructions again, and refused if none do.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, TypeAlias

from understudy.errors import UnderstudyError
from understudy.semantics import types
from understudy.semantics.instructions import HEADER

Row: TypeAlias = dict[str, Any]

_LAYOUTS = {
    "all ranks": "shared",
    "each rank": "file-per-process",
    "each group": "grouped",
    "each row": "flood",
    "callers": "callers",
}

# Keys of a set, an open and a move that have the values of a stream's keys.
_OF_SET = ("own_directories", "files_per_directory")
_OF_OPEN = ("direct", "write_through", "chunk_bytes", "fill")


def is_program(row: Any) -> bool:
    """Whether it says that it is a workload of instructions."""
    return isinstance(row, dict) and row.get("schema") == types.SCHEMA


def keys_of(row: Row, where: str) -> Row:
    """The workload/2 of a program, or an `UnderstudyError` that names the key."""
    sets = {files["name"]: files for files in row["sets"]}
    made: dict[str, Row] = {}
    labels, overheads = row.get("labels", {}), row.get("overheads", {})
    for k, stream in enumerate(row["streams"]):
        for j, step in enumerate(stream["steps"]):
            if step.get("repeat", 1) > 1 and "every" not in step:
                raise UnderstudyError(
                    f"{where}: streams[{k}].steps[{j}].every: expected seconds, got nothing"
                )
        if stream["name"] in made:
            raise UnderstudyError(
                f"{where}: streams[{k}].name: expected a name of its own, "
                f"got {stream['name']!r} again"
            )
        one = _Stream(stream, sets, made, f"{where}: streams[{k}]")
        made[stream["name"]] = one.row(labels, overheads.get(stream["name"], []))
    header = {key: row[key] for key in (*HEADER, "source", "provenance")}
    return {"schema": types.KEYS, **header, "streams": list(made.values())}


def check(row: Row, again: Row, where: str) -> None:
    """Raise an `UnderstudyError` unless two programs, the second of them by the keys that the
    first one has become, say the same."""
    for key in ("sets", "streams"):
        if len(row[key]) != len(again[key]):
            raise UnderstudyError(
                f"{where}: {key}: expected {len(again[key])}, got {len(row[key])}"
            )
        for k, (one, other) in enumerate(zip(row[key], again[key], strict=True)):
            wrong = _difference(_plain(one), other)
            if wrong:
                raise UnderstudyError(
                    f"{where}: {key}[{k}].{wrong}: expected what the keys of a workload can say, "
                    "as docs/reference/program.md lists it; the player carries it out all the same"
                )


def _difference(one: Row, other: Row) -> str:
    """The first key in which they differ; empty if none."""
    if not same_steps(one.get("steps", []), other.get("steps", [])):
        return "steps"
    keys = sorted((set(one) | set(other)) - {"steps"})
    return next((k for k in keys if one.get(k) != other.get(k)), "")


_DEFAULTS: Row = {
    "files": 1,
    "count": 1,
    "file": 0,
    "index": "k",
    "split": {"rule": "even"},
    "order": {"rule": "consecutive"},
    "content": {"kind": "random", "compressibility": 0},
}


def _plain(value: Any) -> Any:
    """Without the keys that have their defaults."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if not isinstance(value, dict) or "calls" in value:
        return value
    kept = {k: v for k, v in value.items() if v is not False and _DEFAULTS.get(k) != v}
    if kept.get("repeat") == 1 and "at" in kept:
        kept = {k: v for k, v in kept.items() if k not in ("repeat", "every")}
    return {k: _plain(v) for k, v in kept.items()}


def same_steps(one: list[Row], other: list[Row]) -> bool:
    """Whether two lists of steps are the same dumps, however they are put together."""
    left, right = _runs(one), _runs(other)
    while left and right:
        (a, at, every, n), (b, its, period, m) = left.pop(), right.pop()
        k = min(n, m)
        ends = (at + (k - 1) * every, its + (k - 1) * period)
        if a != b or not math.isclose(at, its) or not math.isclose(*ends):
            return False
        if n > k:
            left.append((a, at + k * every, every, n - k))
        if m > k:
            right.append((b, its + k * period, period, m - k))
    return not left and not right


def _runs(steps: list[Row]) -> list[tuple[Any, float, float, int]]:
    """Of each step, the last one first: what it does, when, how often. Files that a dump leaves
    open are not opened, and not removed, by those behind it."""
    runs = []
    for step in steps:
        do, count, every = step["do"], step.get("repeat", 1), step.get("every", 0)
        lasting = step.get("lasting")
        opened = [i for i in do if i not in ("remove", "rename") and "open" not in i]
        if count > 1 and "begin" not in do and "close" not in do and opened != do:
            runs.append(((do, lasting), step["at"], every, 1))
            runs.append(((opened, lasting), step["at"] + every, every, count - 1))
        else:
            runs.append(((do, lasting), step["at"], every, count))
    return runs[::-1]


def flat(body: list[Any]) -> Iterator[Any]:
    """The instructions of a body with those of the loops within."""
    for instruction in body:
        yield instruction
        if isinstance(instruction, dict):
            calls = "calls" in instruction  # whose rows are no instructions
            body = [] if calls else instruction.get("in_turn") or instruction.get("do") or []
            yield from flat(body)


class _Stream:
    """One stream, whose keys are those of its set, of its open and of its moves."""

    def __init__(self, stream: Row, sets: dict[str, Row], before: dict[str, Row], where: str):
        self._stream = stream
        self._where = where
        self._steps = stream["steps"]
        every = [i for step in self._steps for i in flat(step["do"])]
        self._words = {i for i in every if isinstance(i, str)}
        self._rows = [i for i in every if isinstance(i, dict)]
        self._open: Row = (
            self._first("open") or stream
        )  # which says as much where nothing is opened
        self._moves = [i for i in self._rows if "write" in i or "read" in i]
        name = self._open.get("open", self._open.get("set"))
        called = self._first("calls")
        name = called["calls"] if called else name
        if name not in sets:
            raise UnderstudyError(f"{where}: expected an open of a set, or the key set of one")
        self._set = sets[name]
        if bool(called) != (self._set["of"] == "callers"):
            raise UnderstudyError(f"{where}: expected calls with a set of callers, and no other")
        base = self._open.get("behind", self._open.get("last"))
        if base is not None and base not in before:
            raise UnderstudyError(f"{where}: expected a stream before it, got {base!r}")
        self._base = before.get(base) if base else None

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
        if self._set["of"] == "callers":
            row |= {"tree": self._set, "transfer_bytes": 1, "files": "new"}
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
        called = [i for i in step["do"] if isinstance(i, dict) and "calls" in i]
        rest = [i for i in step["do"] if not isinstance(i, dict) or "calls" not in i]
        if stream["layout"] == "callers" and (
            len(called) != 1 or any("compute" not in i for i in rest)
        ):
            raise UnderstudyError(
                f"{self._where}.steps: expected calls once in each, and beside them compute alone"
            )
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
        if called:
            row["calls"] = called[0]["do"]
        for i in rows:
            row |= {"compute_s": i["compute"]} if "compute" in i else {}
            row |= {"skew": i["wait"]} if "wait" in i else {}
        if stream["files"] != "append" and "begin" not in step["do"] and not called:
            row["continues"] = True
        return row


def _overheads(steps: list[Row], runs: list[list[int]]) -> Iterator[int | None]:
    """Of each step, that of its first dump; `runs` are (dumps, bytes of each)."""
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

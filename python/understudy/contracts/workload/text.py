"""A descriptor as JSON text that a person can read: keys in the order of the schema, one line
per variable."""

import json
import textwrap
from functools import cache
from typing import Any

from understudy.paths import where

# Optional keys by a key that only their object has; at these values they are omitted.
_OPTIONAL: dict[str, dict[str, Any]] = {
    "dumps": {
        "names": 1,
        "reopen": None,
        "extends": None,
        "order": {"rule": "consecutive"},
        "passes": 1,
        "pace": "burst",
        "direct": False,
        "sync_bytes": None,
        "write_through": False,
        "files_per_directory": None,
        "removes": False,
        "own_directories": False,
        "reads": None,
    },
    "overhead_bytes": {"repeat": None, "compute_s": 0, "operations": [], "continues": False},
    "decomposition": {"transfer_bytes": None, "collective": None, "at": None},
    "rule": {"grid": [], "runs": [], "block": 0},
}
_ORDERS = {"strided": "step", "shuffled": "seed"}  # the one number that each has


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of workloads."""
    return _schema("workload.schema.json")


@cache
def old_schema() -> dict[str, Any]:
    """The schema of understudy/workload/1."""
    return _schema("old/workload-1.schema.json")


def _schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((where("schemas") / name).read_text(encoding="utf-8"))
    return found


def as_text(row: dict[str, Any]) -> str:
    """JSON text of a descriptor."""
    return _layout(_ordered(row), 0) + "\n"


def plain(value: Any) -> Any:
    """The value of `asdict` as JSON has it: tuples become lists, absent keys are omitted."""
    if isinstance(value, dict):
        if "seed" in value:
            return {k: v for k, v in value.items() if k in ("rule", _ORDERS.get(value["rule"]))}
        row = {k: plain(v) for k, v in value.items()}
        omitted = next((rows for key, rows in _OPTIONAL.items() if key in value), {})
        return {k: v for k, v in row.items() if k not in omitted or v != omitted[k]}
    return [plain(v) for v in value] if isinstance(value, list | tuple) else value


def _ordered(value: Any) -> Any:
    """Keys in the order in which the schema documents them."""
    if isinstance(value, list):
        return [_ordered(v) for v in value]
    if not isinstance(value, dict):
        return value
    objects = [schema(), *schema()["$defs"].values()]
    known = (
        o["properties"]
        for o in objects
        if "required" in o and set(o["required"]) <= set(value) <= set(o["properties"])
    )
    return {key: _ordered(value[key]) for key in next(known, value) if key in value}


def _layout(value: Any, depth: int) -> str:
    """Readable JSON: a value that fits on one line stays on one line."""
    line = json.dumps(value, ensure_ascii=False)
    width = 280 if isinstance(value, dict) and "decomposition" in value else 200  # a variable
    if len(line) + 2 * depth <= width or not isinstance(value, dict | list) or not value:
        return line
    pad = "\n" + "  " * (depth + 1)
    end = "\n" + "  " * depth
    if isinstance(value, dict):
        items = [f"{json.dumps(k)}: {_layout(v, depth + 1)}" for k, v in value.items()]
        return "{" + pad + ("," + pad).join(items) + end + "}"
    items = [_layout(v, depth + 1) for v in value]
    if all(isinstance(v, list) and len(v) == 2 for v in value):  # runs: as many as fit a line
        items = textwrap.wrap(", ".join(i.replace(", ", ",") for i in items), 100)
        return "[" + pad + pad.join(items) + end + "]"
    return "[" + pad + ("," + pad).join(items) + end + "]"

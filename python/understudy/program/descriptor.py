"""A workload as JSON text that a person can read, and the schemas of workloads."""

import json
import textwrap
from dataclasses import Field, fields, is_dataclass
from functools import cache
from typing import Any

from understudy.paths import where

_ORDERS = {"strided": "step", "shuffled": "seed"}  # the one number that each has


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of workloads of keys, understudy/workload/2."""
    return _schema("old/workload-2.schema.json")


@cache
def program_schema() -> dict[str, Any]:
    """The schema of workloads, which are instructions."""
    return _schema("workload.schema.json")


@cache
def old_schema() -> dict[str, Any]:
    """The schema of understudy/workload/1."""
    return _schema("old/workload-1.schema.json")


def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((where("schemas") / name).read_text(encoding="utf-8"))
    return schema


def laid_out(row: dict[str, Any]) -> str:
    """JSON text in the order of its keys."""
    return _layout(row, 0) + "\n"


def plain(value: Any) -> Any:
    """The dataclasses of a workload as JSON has them: tuples become lists."""
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if not is_dataclass(value):
        return value
    return {
        field.name: plain(getattr(value, field.name))
        for field in fields(value)
        if not _omitted(value, field)
    }


def _omitted(value: Any, field: "Field[Any]") -> bool:
    """True if a key does not belong to the rule of an order or a decomposition."""
    kind = type(value).__name__.lower()
    if kind == "order":
        return field.name not in ("rule", _ORDERS.get(value.rule))
    return kind == "decomposition" and field.name != "rule" and not getattr(value, field.name)


def _layout(value: Any, depth: int) -> str:
    """Readable JSON: a value that fits on one line stays on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if not line.isprintable():  # as JSON's own escapes: workloads are printed, too
        line = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in line)
    if len(line) + 2 * depth <= 200 or not isinstance(value, dict | list) or not value:
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

"""From understudy/workload/1 and /2, whose streams are keys, to the patterns that these say."""

from typing import Any

from understudy.program.patterns import Dump, Operation, Pattern, Repeat
from understudy.program.types import (
    CONFIDENCE,
    KEYS,
    Content,
    Decomposition,
    Lookups,
    Order,
    Variable,
)

OLD = "understudy/workload/1"
Row = dict[str, Any]


def is_old(row: Any) -> bool:
    """True if the document states the first version of the descriptor."""
    return isinstance(row, dict) and row.get("schema") == OLD


def migrated(row: Row) -> Row:
    """The descriptor, valid by the old schema, in the second version: every new key has its
    default, and the confidence of an entry follows from its origin."""
    entries = [
        {
            "path": p["path"],
            "origin": p["origin"],
            "confidence": CONFIDENCE[p["origin"]],
            "how": p["how"],
        }
        for p in row["provenance"]
    ]
    return row | {"schema": KEYS, "provenance": entries}


def pattern_of(row: Row) -> Pattern:
    """The pattern of a stream of the second version."""
    values = row | {"dumps": tuple(map(_dump, row["dumps"])), "content": Content(**row["content"])}
    if "order" in row:
        values["order"] = Order(**row["order"])
    if row.get("lookups"):
        values["lookups"] = Lookups(**row["lookups"])
    return Pattern(**values)


def _dump(row: Row) -> Dump:
    values = row | {"variables": tuple(map(_variable, row["variables"]))}
    if "repeat" in row:
        values["repeat"] = Repeat(**row["repeat"])
    if "operations" in row:
        values["operations"] = tuple(
            Operation(operation=o["operation"], runs=pairs(o["runs"])) for o in row["operations"]
        )
    if "skew" in row:
        values["skew"] = pairs(row["skew"])
    return Dump(**values)


def _variable(row: Row) -> Variable:
    values = row | {"shape": tuple(row["shape"])}
    return Variable(**(values | {"decomposition": decomposition(row["decomposition"])}))


def decomposition(row: Row) -> Decomposition:
    """How a variable is divided."""
    lists = {"grid": tuple(row.get("grid", ())), "runs": pairs(row.get("runs", []))}
    return Decomposition(rule=row["rule"], block=row.get("block", 0), **lists)


def pairs(rows: list[list[Any]]) -> tuple[tuple[Any, Any], ...]:
    """Runs of ranks."""
    return tuple((ranks, each) for ranks, each in rows)

"""From understudy/workload/1 to understudy/workload/2."""

from typing import Any

from understudy.semantics.types import CONFIDENCE, KEYS

OLD = "understudy/workload/1"


def is_old(row: Any) -> bool:
    """Whether it says that it is a descriptor of the version before."""
    return isinstance(row, dict) and row.get("schema") == OLD


def migrated(row: dict[str, Any]) -> dict[str, Any]:
    """The descriptor, valid by the old schema, in this version: every new key has its default, and
    the confidence of an entry follows from its origin."""
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

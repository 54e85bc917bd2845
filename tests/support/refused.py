"""Edits of documents that are refused: tests/refused/<kind>.json, each a line."""

import copy
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "refused"
MISSING = "(missing)"  # in place of a value: the key is deleted


def cases(kind: str) -> list[list[Any]]:
    """Of each edit the place, such as streams/0/name, the value there, and how the message begins;
    or which document it is of, its values by place, and the message."""
    rows: list[list[Any]] = json.loads((FOLDER / f"{kind}.json").read_text(encoding="utf-8"))
    assert rows
    return rows


def altered(row: Any, place: str, value: Any) -> Any:
    """A copy with another value at a place."""
    row = copy.deepcopy(row)
    *steps, last = [int(step) if step.isdigit() else step for step in place.split("/")]
    at: Any = row
    for step in steps:
        at = at[step]
    if value == MISSING:
        del at[last]
    else:
        at[last] = value
    return row
